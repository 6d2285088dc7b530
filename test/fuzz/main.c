/* main.c: libFuzzer's entries for the target TARGET, whose inputs are changed as mutate.c says. An
 * input that takes the processor for more than 3 s, about 1 s without sanitizers, is a finding. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "test/fuzz/mutate.h"

#define CALL_(name) fuzz_##name
#define CALL(name) CALL_(name)

enum { change_bytes, change_text, change_archive, change_operator };
#define CHANGE(name, change, meaning) name##_changes = change_##change,
enum { FUZZ_TARGETS(CHANGE) };
#define CHANGES_(name) name##_changes
#define CHANGES(name) CHANGES_(name)

static double processor_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  double begin = processor_seconds();
  CALL(TARGET)(data, size);
  double seconds = processor_seconds() - begin;
  if (seconds > 3) {
    fprintf(stderr, "slow: %.1f s\n", seconds);
    abort();
  }
  return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
  switch ((int)CHANGES(TARGET)) {
    case change_text: return fuzz_mutate_text(data, size, max_size, seed);
    case change_operator: return fuzz_mutate_operator(data, size, max_size, seed);
    case change_archive: return fuzz_mutate_archive(data, size, max_size, seed);
    default: return LLVMFuzzerMutate(data, size, max_size);
  }
}
