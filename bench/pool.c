/* pool.c: what an empty range of kiln_pool costs, back to back and after pauses: bench_pool [N].
 *
 * Medians of wall time over all threads of the pool (2 unless N says so). With a pause the threads
 * spin or, when it is long, sleep. */
#include "base/pool.h"

#include <stdio.h>
#include <stdlib.h>

#include "bench/bench.h"

enum { RUNS = 4001 };

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

static void burn(double seconds) {
  for (double end = bench_seconds() + seconds; bench_seconds() < end;) continue;
}

static double median_us(kiln_pool *pool, double pause, bool all) {
  static double times[RUNS];
  int n = pause > 1e-4 ? 201 : RUNS;
  for (int i = 0; i < n; i++) {
    int missing = kiln_pool_threads(pool);
    if (pause > 0) burn(pause);
    double begin = bench_seconds();
    if (all)
      kiln_pool_for(pool, missing, 1, meet, &missing);
    else
      kiln_pool_for(pool, kiln_pool_threads(pool), 1, nothing, NULL);
    times[i] = bench_seconds() - begin;
  }
  return 1e6 * bench_median(times, n);
}

int main(int argc, char **argv) {
  kiln_pool *pool;
  kiln_status *status = kiln_pool_create(argc > 1 ? atoi(argv[1]) : 2, &pool);
  if (status) {
    fprintf(stderr, "%s\n", kiln_status_message(status));
    kiln_status_destroy(status);
    return 2;
  }
  static const double pauses[] = {0, 50e-6, 2e-3};
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
