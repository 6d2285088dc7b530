/* peak.c: the most of this core, as JSON, for bench/peers/kernels.py: operations a second, and at
 * each size bytes a second that are read, or read and written.
 *
 *   taskset -c 0 build/bench/bench_peak NAME=BYTES ... */
#include <immintrin.h>
#include <stdio.h>
#include <string.h>

#include "bench/peak.h"

enum { RUNS = 20, STEP = 256 };

typedef void (*mover)(const char *from, char *to, size_t bytes);

static void copy(const char *from, char *to, size_t bytes) { memcpy(to, from, bytes); }

/* The same past the caches. */
__attribute__((target("avx2"))) static void stream(const char *from, char *to, size_t bytes) {
  for (size_t at = 0; at < bytes; at += 32)
    _mm256_stream_si256((void *)(to + at), _mm256_load_si256((const void *)(from + at)));
  _mm_sfence();
}

/* Bytes a second, each read and written: the best of several runs. */
static double rate_of(mover move, size_t bytes) {
  char *from = aligned_alloc(64, bytes), *to = aligned_alloc(64, bytes);
  if (!from || !to) exit(3);
  memset(from, 1, bytes), memset(to, 1, bytes);
  const int turns = (int)((1 << 22) / bytes) + 1;
  double best = 0;
  for (int run = 0; run < RUNS; run++) {
    const double start = bench_seconds();
    for (int i = 0; i < turns; i++) move(from, to, bytes);
    const double rate = 2.0 * turns * (double)bytes / (bench_seconds() - start);
    if (rate > best) best = rate;
  }
  free(from), free(to);
  return best;
}

static double best_read(size_t bytes) { return 1e9 * tool_peak_read(bytes); }
static double best_copy(size_t bytes) {
  const double cached = rate_of(copy, bytes), streamed = rate_of(stream, bytes);
  return cached > streamed ? cached : streamed;
}

static void tell(const char *kind, double (*measure)(size_t), int count, char **sizes) {
  printf(", \"%s\": {", kind);
  for (int i = 0; i < count; i++) {
    const char *bytes = strchr(sizes[i], '=');
    const size_t size = bytes ? (size_t)strtoull(bytes + 1, NULL, 10) : 0;
    if (size < STEP) exit(2);
    printf("%s\"%.*s\": %.0f", i ? ", " : "", (int)(bytes - sizes[i]), sizes[i],
           measure(size / STEP * STEP));
  }
  printf("}");
}

int main(int argc, char **argv) {
  printf("{\"fma\": %.0f", 1e9 * bench_peak(kiln_isa_detect()));
  tell("read", best_read, argc - 1, argv + 1);
  tell("copy", best_copy, argc - 1, argv + 1);
  printf("}\n");
  return 0;
}
