/* pool_test.c: ranges cover exactly once, nesting, several callers, tasks, executors, few threads.
 */
#include "base/pool.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/unit/unit.h"

enum { LONGEST = 5000 };

static kiln_pool *make(int threads) {
  kiln_pool *pool = NULL;
  assert_ok(kiln_pool_create(threads, &pool));
  assert_int_equal(kiln_pool_threads(pool), threads);
  return pool;
}

/* -- Ranges -- */

typedef struct cover {
  int64_t n, grain;
  int threads;
  unsigned char seen[LONGEST]; /* atomic */
  unsigned char at_work[8];    /* by worker; atomic */
  int pieces, faults;          /* atomic */
} cover;

static void fault(cover *c) { __atomic_fetch_add(&c->faults, 1, __ATOMIC_RELAXED); }

static void mark(void *data, int64_t begin, int64_t end, int worker) {
  cover *c = data;
  if (begin < 0 || end > c->n || begin >= end || worker < 0 || worker >= c->threads) {
    fault(c);
    return;
  }
  if (begin % c->grain || end - begin < (c->n < c->grain ? c->n : c->grain)) fault(c);
  if (__atomic_exchange_n(&c->at_work[worker], 1, __ATOMIC_ACQ_REL)) fault(c);
  for (int64_t i = begin; i < end; i++) __atomic_fetch_add(&c->seen[i], 1, __ATOMIC_RELAXED);
  __atomic_store_n(&c->at_work[worker], 0, __ATOMIC_RELEASE);
  __atomic_fetch_add(&c->pieces, 1, __ATOMIC_RELAXED);
}

static int check_cover(kiln_pool *pool, int64_t n, int64_t grain) {
  cover c = {.n = n, .grain = grain, .threads = kiln_pool_threads(pool)};
  kiln_pool_for(pool, n, grain, mark, &c);
  assert_int_equal(c.faults, 0);
  for (int64_t i = 0; i < n; i++) assert_int_equal(c.seen[i], 1);
  return c.pieces;
}

static void every_index_is_visited_once(void **state) {
  (void)state;
  static const int64_t sizes[] = {1, 2, 3, 7, 8, 63, 64, 100, 1000, 4999};
  static const int64_t grains[] = {1, 2, 3, 16, 64, 999, 5000};
  for (int threads = 1; threads <= 5; threads++) {
    kiln_pool *pool = make(threads);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
      for (size_t k = 0; k < sizeof grains / sizeof *grains; k++) {
        int pieces = check_cover(pool, sizes[i], grains[k]);
        assert_true(pieces <= (sizes[i] / grains[k] > 1 ? sizes[i] / grains[k] : 1));
        if (threads == 1 || sizes[i] < 2 * grains[k]) assert_int_equal(pieces, 1);
      }
    }
    kiln_pool_release(pool);
  }
}

static void small_and_empty_ranges_need_no_thread(void **state) {
  (void)state;
  cover c = {.n = 9, .grain = 10, .threads = 1};
  kiln_pool_for(NULL, 9, 10, mark, &c);
  assert_int_equal(c.pieces, 1);
  assert_int_equal(c.faults, 0);
  assert_int_equal(kiln_pool_threads(NULL), 1);
  kiln_pool *pool = make(3);
  kiln_pool_for(pool, 0, 1, mark, &c);
  kiln_pool_for(pool, -5, 1, mark, &c);
  assert_int_equal(c.pieces, 1);
  assert_int_equal(check_cover(pool, 19, 10), 1);
  assert_int_equal(kiln__pool_started(pool), 0); /* started at first use only */
  check_cover(pool, 20, 10);
  assert_int_equal(kiln__pool_started(pool), 2);
  kiln_pool_release(pool);
}

static void count_piece(void *data, int64_t begin, int64_t end, int worker) {
  (void)worker;
  __atomic_fetch_add((int64_t *)data, end - begin, __ATOMIC_RELAXED);
}

static void huge_ranges_have_larger_units(void **state) {
  (void)state;
  kiln_pool *pool = make(3);
  int64_t sum = 0, n = ((int64_t)1 << 40) + 12345;
  kiln_pool_for(pool, n, 1, count_piece, &sum);
  assert_int_equal(sum, n);
  kiln_pool_release(pool);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_index_is_visited_once),
      cmocka_unit_test(small_and_empty_ranges_need_no_thread),
      cmocka_unit_test(huge_ranges_have_larger_units),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
