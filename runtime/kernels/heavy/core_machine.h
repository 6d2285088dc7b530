/* core_machine.h: what the choices and plans of the core's own kernels read of a machine. */
#pragma once

#include <stdint.h>

typedef struct kiln_core_machine {
  int lanes; /* floats of a vector */
  int ports; /* fused products of vectors that begin in a cycle */
  int64_t l1_bytes, l2_bytes, l3_bytes;
  int tiles; /* 1: products of tiles of bf16 are instructions */
} kiln_core_machine;
