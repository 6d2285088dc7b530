/* pool.c: what an empty range of kiln_pool costs, back to back and after pauses: bench_pool [N].
 *
 * Medians of wall time over all threads of the pool (2 unless N says so). With a pause the threads
 * spin or, when it is long, sleep. */
#include "base/pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { RUNS = 4001 };

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void nothing(void *data, int64_t begin, int64_t end, int worker) {
  (void)data, (void)begin, (void)end, (void)worker;
}

/* Waits until every piece has begun, so that all threads take part. */
static void meet(void *data, int64_t begin, int64_t end, int worker) {
  int *missing = data;
  (void)worker;
  int left = __atomic_sub_fetch(missing, (int)(end - begin), __ATOMIC_ACQ_REL);
  while (left > 0) left = __atomic_load_n(missing, __ATOMIC_ACQUIRE);
}

static void burn(uint64_t ns) {
  for (uint64_t end = now_ns() + ns; now_ns() < end;) continue;
}

static int compare(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static double median_us(kiln_pool *pool, uint64_t pause_ns, bool all) {
  static uint64_t times[RUNS];
  int n = pause_ns > 100000 ? 201 : RUNS;
  for (int i = 0; i < n; i++) {
    int missing = kiln_pool_threads(pool);
    if (pause_ns > 0) burn(pause_ns);
    uint64_t begin = now_ns();
    if (all)
      kiln_pool_for(pool, missing, 1, meet, &missing);
    else
      kiln_pool_for(pool, kiln_pool_threads(pool), 1, nothing, NULL);
    times[i] = now_ns() - begin;
  }
  qsort(times, (size_t)n, sizeof *times, compare);
  return (double)times[n / 2] / 1000;
}

int main(int argc, char **argv) {
  kiln_pool *pool;
  kiln_status *status = kiln_pool_create(argc > 1 ? atoi(argv[1]) : 2, &pool);
  if (status) {
    fprintf(stderr, "%s\n", kiln_status_message(status));
    kiln_status_destroy(status);
    return 2;
  }
  static const uint64_t pauses[] = {0, 50000, 2000000};
  printf("%d threads, us            back to back   50 us pause    2 ms pause\n",
         kiln_pool_threads(pool));
  for (int all = 0; all < 2; all++) {
    printf(all ? "every thread takes part" : "whoever comes          ");
    for (int i = 0; i < 3; i++) printf(" %13.2f", median_us(pool, pauses[i], all));
    printf("\n");
  }
  kiln_pool_release(pool);
  return 0;
}
