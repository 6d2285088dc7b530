/* pairs.h: whether this CPU's instruction for products of two pairs of bf16 is worth its time. */
#pragma once

#include <stdbool.h>

/* Measured, in some 20 us. The caller has seen that the CPU has the instruction
 * (KILN_ISA_AVX512BF16). Any thread. */
bool kiln__pairs_pay(void);
