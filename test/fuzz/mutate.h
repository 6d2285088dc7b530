/* mutate.h: how inputs of the targets are changed, beside what libFuzzer does by itself. */
#pragma once

#include "test/fuzz/fuzz.h"

/* libFuzzer's interface. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

/* Text of a program: words, numbers and lines change places; or bytes change. */
size_t fuzz_mutate_text(uint8_t *data, size_t size, size_t max_size, unsigned seed);
/* Changes, drops or doubles a member and writes an archive whose sums are right; or bytes change.
 */
size_t fuzz_mutate_archive(uint8_t *data, size_t size, size_t max_size, unsigned seed);

/* Another case of the operator, or of another one (operators.c). */
size_t fuzz_mutate_operator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
