/* bench.h: what the measuring programs share: a clock, and medians. */
#pragma once

#include <stdlib.h>
#include <time.h>

static inline double bench_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The processor's time of this thread: others take turns with it. */
static inline double bench_thread_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static inline int bench__by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Sorts the times. */
static inline double bench_median(double *times, int count) {
  qsort(times, (size_t)count, sizeof *times, bench__by_size);
  return times[count / 2];
}
