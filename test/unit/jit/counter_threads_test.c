/* counter_threads_test.c: counters of what plans do, which threads add up without sharing a line:
 * none is lost while pages grow, calls end and somebody asks. */
#include <pthread.h>

#include "runtime/call.h"
#include "test/unit/unit.h"

enum { THREADS = 8, ROUNDS = 200, EACH = 500 };

typedef struct counting {
  kiln_env *env;
  kiln_counter_book book;
  uint32_t numbers; /* atomic: the last that is known to all */
  bool stop;        /* atomic */
} counting;

/* Each round is a call: some end for good, others go on with the page that they have. */
static void *count(void *arg) {
  counting *c = arg;
  kiln_call *call = NULL;
  for (int round = 0; round < ROUNDS; round++) {
    if (!call && kiln_call_create(c->env, &call)) return arg;
    kiln_tally_begin(&call->tally, &c->book);
    const uint32_t numbers = __atomic_load_n(&c->numbers, __ATOMIC_ACQUIRE);
    for (int i = 0; i < EACH; i++) kiln_count(&call->tally, 1 + (uint32_t)i % numbers);
    if (round % 7 == 0) {
      kiln_call_destroy(call);
      call = NULL;
    }
  }
  kiln_call_destroy(call);
  return NULL;
}
static uint64_t total(counting *c) {
  const uint32_t numbers = __atomic_load_n(&c->numbers, __ATOMIC_ACQUIRE);
  uint64_t sum = 0;
  for (uint32_t n = 1; n <= numbers; n++) sum += kiln_counter_sum(&c->book, n);
  return sum;
}
/* Numbers are given out, and sums asked for, while the others count. */
static void *grow(void *arg) {
  counting *c = arg;
  uint64_t last = 0;
  while (!__atomic_load_n(&c->stop, __ATOMIC_ACQUIRE)) {
    const uint32_t first = c->numbers < 400 ? kiln_counter_book_new(&c->book, 3) : 0;
    if (first) __atomic_store_n(&c->numbers, first + 2, __ATOMIC_RELEASE);
    const uint64_t now = total(c);
    if (now < last) return arg;
    last = now;
  }
  return NULL;
}

static void test_none_is_lost(void **state) {
  counting c = {0};
  pthread_t threads[THREADS], grower;
  (void)state;
  assert_ok(kiln_env_create(NULL, &c.env));
  kiln_counter_book_init(&c.book, c.env->mem);
  c.numbers = kiln_counter_book_new(&c.book, 1);
  assert_int_equal(c.numbers, 1);
  for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, count, &c);
  pthread_create(&grower, NULL, grow, &c);
  for (int i = 0; i < THREADS; i++) {
    void *failed;
    pthread_join(threads[i], &failed);
    assert_null(failed);
  }
  __atomic_store_n(&c.stop, true, __ATOMIC_RELEASE);
  void *failed;
  pthread_join(grower, &failed);
  assert_null(failed);
  assert_null(c.book.pages);
  assert_int_equal(total(&c), (uint64_t)THREADS * ROUNDS * EACH);
  kiln_counter_book_deinit(&c.book);
  kiln_env_destroy(c.env);
}

/* Two calls count on lines of their own, a call without a book nowhere, a number that is newer than
 * the page on the base. */
static void test_places(void **state) {
  kiln_env *env;
  kiln_call *a, *b;
  kiln_counter_book book;
  (void)state;
  assert_ok(kiln_env_create(NULL, &env));
  assert_ok(kiln_call_create(env, &a));
  assert_ok(kiln_call_create(env, &b));
  kiln_counter_book_init(&book, env->mem);
  const uint32_t n = kiln_counter_book_new(&book, 1);
  kiln_count(&a->tally, n);
  assert_int_equal(kiln_counter_sum(&book, n), 0);
  kiln_tally_begin(&a->tally, &book);
  kiln_tally_begin(&b->tally, &book);
  const char *at = (const char *)&a->tally.page->counts[n], *other = (const char *)b->tally.page;
  assert_true(at + 64 <= other || at >= (const char *)&b->tally.page->counts[n] + 64);
  assert_int_not_equal(a->tally.page->stripe, b->tally.page->stripe);
  kiln_count(&a->tally, n);
  kiln_count(&b->tally, n);
  const uint32_t late = kiln_counter_book_new(&book, 1000) + 999;
  kiln_count(&a->tally, late);
  assert_true(late >= a->tally.page->capacity);
  assert_int_equal(kiln_counter_sum(&book, late), 1);
  kiln_tally_begin(&a->tally, &book); /* a larger page, with what the old one had */
  assert_true(late < a->tally.page->capacity);
  kiln_count(&a->tally, late);
  kiln_call_destroy(b);
  assert_int_equal(kiln_counter_sum(&book, n), 2);
  assert_int_equal(kiln_counter_sum(&book, late), 2);
  assert_int_equal(kiln_counter_sum(&book, 0), 0);
  kiln_call_destroy(a);
  assert_int_equal(kiln_counter_sum(&book, n), 2);
  kiln_counter_book_deinit(&book);
  kiln_env_destroy(env);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_none_is_lost),
                                     cmocka_unit_test(test_places)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
