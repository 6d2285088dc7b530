/* budget_threads_test.c: limits, cancelling, and who asks: arenas and ranges. */
#include "base/budget.h"

#include <pthread.h>
#include <unistd.h>

#include "base/text.h"
#include "test/unit/unit.h"

static kiln_mem *mem;
static kiln_cancel *cancel;

static int set_up(void **state) {
  (void)state;
  assert_ok(kiln_mem_create(KILN_MEM_DEFAULT, &mem));
  assert_ok(kiln_cancel_create(&cancel));
  return 0;
}
static int tear_down(void **state) {
  (void)state;
  assert_null(kiln_budget_current());
  kiln_cancel_destroy(cancel);
  kiln_mem_release(mem);
  return 0;
}

static kiln_budget begin(kiln_limits limits) {
  kiln_budget budget;
  kiln_budget_begin(&budget, "the test", mem, &limits);
  return budget;
}

static void sleep_over(const kiln_budget *budget) {
  while (kiln_now_ns() <= budget->deadline_ns) usleep(1000);
}

static void limits_name_themselves(void **state) {
  (void)state;
  assert_ok(kiln_budget_check(NULL, SIZE_MAX));
  assert_false(kiln_budget_is_over(NULL));
  kiln_budget none = begin((kiln_limits){0});
  assert_ok(kiln_budget_check(&none, SIZE_MAX));
  assert_false(kiln_budget_may_end(&none));
  kiln_budget bytes = begin((kiln_limits){.bytes = 64 << 20});
  void *block = kiln_mem_alloc(mem, 1000);
  assert_int_equal(kiln_budget_bytes(&bytes), 1000);
  assert_ok(kiln_budget_check(&bytes, (64 << 20) - 1000));
  assert_error(kiln_budget_check(&bytes, (64 << 20) - 999), KILN_LIMIT,
               "the test needs more than its limit of 64 MiB (bytes)");
  kiln_mem_free(mem, block, 1000);
  kiln_budget time = begin((kiln_limits){.time_ms = 5});
  assert_ok(kiln_budget_check(&time, SIZE_MAX));
  sleep_over(&time);
  assert_error(kiln_budget_check(&time, 0), KILN_LIMIT, "longer than its limit of 5 ms (time_ms)");
  assert_true(kiln_budget_is_over(&time));
  kiln_budget host = begin((kiln_limits){.cancel = cancel});
  assert_ok(kiln_budget_check(&host, 0));
  kiln_call_cancel(cancel);
  assert_error(kiln_budget_check(&host, 0), KILN_CANCELLED, "the test was cancelled");
  kiln_cancel_reset(cancel);
  assert_ok(kiln_budget_check(&host, 0));
}

/* What was found over stays so, though the host takes its word back: a range has left something
 * out. */
static void over_stays_over(void **state) {
  (void)state;
  kiln_budget host = begin((kiln_limits){.cancel = cancel, .time_ms = 60000});
  assert_false(kiln_budget_is_over(&host));
  kiln_call_cancel(cancel);
  assert_true(kiln_budget_is_over(&host));
  kiln_cancel_reset(cancel);
  assert_true(kiln_budget_is_over(&host));
  assert_error(kiln_budget_check(&host, 0), KILN_CANCELLED, "the test was cancelled");
  kiln_budget next = begin((kiln_limits){.cancel = cancel});
  assert_false(kiln_budget_is_over(&next));
}

/* The look that a test has named is the first to be told. */
static void looks_are_counted(void **state) {
  (void)state;
  kiln_cancel *counted;
  assert_ok(kiln_cancel_create(&counted));
  assert_false(kiln_cancel_is_asked(counted));
  kiln_cancel_at_look(counted, 2);
  assert_false(kiln_cancel_is_asked(counted));
  assert_true(kiln_cancel_is_asked(counted));
  assert_true(kiln_cancel_is_asked(counted));
  kiln_cancel_destroy(counted);
}

static void operations_are_exact(void **state) {
  (void)state;
  for (uint64_t limit = 1; limit < 200; limit += 33) {
    kiln_budget b = begin((kiln_limits){.operations = limit, .time_ms = 60000});
    kiln_status *status = NULL;
    uint64_t count = 0;
    for (; !status && count < 1000; count++) {
      if (!kiln_budget_burn(&b)) status = kiln_budget_work(&b, 0);
    }
    assert_error(status, KILN_LIMIT, "(operations)");
    assert_int_equal(count, limit + 1);
  }
  /* Without a limit near by, time is looked at as often as without any. */
  for (uint64_t limit = 0; limit <= UINT64_MAX / 2; limit += UINT64_MAX / 4) {
    kiln_budget far = begin((kiln_limits){.operations = limit, .time_ms = 60000});
    assert_ok(kiln_budget_work(&far, 0));
    assert_true(far.granted == far.grant && far.fuel == far.grant && far.grant > 0);
  }
  kiln_budget b = begin((kiln_limits){.operations = 100});
  assert_ok(kiln_budget_work(&b, 60));
  for (int i = 0; i < 40; i++) {
    if (!kiln_budget_burn(&b)) assert_ok(kiln_budget_work(&b, 0));
  }
  assert_int_equal(kiln_budget_operations(&b), 100);
  assert_error(kiln_budget_work(&b, 1), KILN_LIMIT, "100 operations");
}

/* -- Arenas -- */

static kiln_status *grow(kiln_arena *arena) {
  for (int64_t i = 0; i < INT64_MAX; i++) memset(kiln_arena_alloc(arena, 1000), 1, 1000);
  return NULL;
}
static kiln_status *walk(kiln_arena *arena) {
  for (int64_t i = 0; i < INT64_MAX; i++) kiln_arena_step(arena);
  return NULL;
}
/* Into room that is there. */
static kiln_status *write_text(kiln_arena *arena) {
  kiln_text text = kiln_text_in(arena);
  for (int64_t i = 0; i < INT64_MAX; i++) kiln_text_putc(&text, 'a'), text.len = 0;
  return NULL;
}

/* The budget is left with the scope. */
static kiln_status *enter(kiln_budget *budget, kiln_arena *arena,
                          kiln_status *(*body)(kiln_arena *arena)) {
  (void)!kiln_budget_enter(budget);
  return body(arena);
}
static kiln_status *run(kiln_arena *arena, kiln_budget *budget,
                        kiln_status *(*body)(kiln_arena *arena)) {
  KILN_PROTECT(enter(budget, arena, body));
}

static void arenas_leave_the_scope(void **state) {
  (void)state;
  kiln_arena *arena;
  assert_ok(kiln_arena_create(mem, &arena));
  kiln_budget bytes = begin((kiln_limits){.bytes = 1 << 20});
  assert_error(run(arena, &bytes, grow), KILN_LIMIT, "1 MiB");
  assert_true(kiln_mem_bytes(mem) < 2 << 20);
  kiln_arena_reset(arena);
  kiln_budget time = begin((kiln_limits){.time_ms = 5});
  assert_error(run(arena, &time, walk), KILN_LIMIT, "5 ms");
  kiln_budget text = begin((kiln_limits){.time_ms = 5});
  assert_error(run(arena, &text, write_text), KILN_LIMIT, "5 ms");
  kiln_budget again = begin((kiln_limits){.time_ms = 5});
  assert_error(run(arena, &again, grow), KILN_LIMIT, "5 ms");
  kiln_arena_reset(arena);
  kiln_budget *outer = kiln_budget_enter(&again); /* outside of any scope nobody is stopped */
  for (int i = 0; i < 3000; i++) kiln_arena_step(arena);
  kiln_budget_leave(outer);
  kiln_arena_destroy(arena);
}

/* -- Ranges -- */

typedef struct slow {
  int64_t done; /* atomic */
  int64_t n;
  bool bad; /* atomic: a piece shorter than a grain */
} slow;

enum { GRAIN = 4 };

static void work_slowly(void *data, int64_t first, int64_t end, int worker) {
  slow *s = data;
  (void)worker;
  if (first % GRAIN || end - first < GRAIN) __atomic_store_n(&s->bad, true, __ATOMIC_RELAXED);
  for (int64_t i = first; i < end; i++) usleep(50);
  __atomic_fetch_add(&s->done, end - first, __ATOMIC_RELAXED);
}

static void *cancel_soon(void *arg) {
  usleep(20000);
  kiln_call_cancel(arg);
  return NULL;
}

static void ranges_end(void **state) {
  (void)state;
  for (int threads = 1; threads <= 3; threads += 2) {
    kiln_pool *pool = NULL;
    if (threads > 1) assert_ok(kiln_pool_create(threads, &pool));
    slow whole = {.n = 403}, cut = {.n = 100000000}, cancelled = cut;
    kiln_budget ample = begin((kiln_limits){.time_ms = 600000});
    kiln_budget *outer = kiln_budget_enter(&ample);
    kiln_pool_for(pool, whole.n, GRAIN, work_slowly, &whole);
    assert_int_equal(whole.done, whole.n);
    assert_false(whole.bad);
    kiln_budget_leave(outer);

    kiln_budget time = begin((kiln_limits){.time_ms = 20});
    outer = kiln_budget_enter(&time);
    kiln_pool_for(pool, cut.n, GRAIN, work_slowly, &cut);
    assert_true(cut.done < cut.n && !kiln_budget_burn(&time));
    assert_error(kiln_budget_work(&time, 0), KILN_LIMIT, "20 ms");
    kiln_budget_leave(outer);

    kiln_budget host = begin((kiln_limits){.cancel = cancel});
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, cancel_soon, cancel), 0);
    outer = kiln_budget_enter(&host);
    kiln_pool_for(pool, cancelled.n, GRAIN, work_slowly, &cancelled);
    kiln_budget_leave(outer);
    pthread_join(thread, NULL);
    assert_true(cancelled.done < cancelled.n);
    assert_error(kiln_budget_work(&host, 0), KILN_CANCELLED, NULL);
    kiln_cancel_reset(cancel);
    kiln_pool_release(pool);
  }
}

/* -- Jobs -- */

enum { JOB_BYTES = 8 << 20 };

static void *take_aside(void *out_block) {
  (void)kiln_mem_count_aside(true);
  *(void **)out_block = kiln_mem_alloc(mem, JOB_BYTES);
  return NULL;
}
static void *give_aside(void *block) {
  (void)kiln_mem_count_aside(true);
  kiln_mem_free(mem, *(void **)block, JOB_BYTES);
  return NULL;
}
static void run_thread(void *(*body)(void *arg), void *arg) {
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, body, arg), 0);
  pthread_join(thread, NULL);
}

/* What a job takes and keeps is no call's, of those that run beside it and of those that come. */
static void jobs_take_nothing_of_calls(void **state) {
  void *job, *own;
  (void)state;
  const size_t held = kiln_mem_bytes(mem);
  kiln_budget first = begin((kiln_limits){.bytes = 1 << 20});
  run_thread(take_aside, &job);
  assert_non_null(job);
  assert_true(kiln_mem_bytes(mem) >= held + JOB_BYTES);
  assert_int_equal(kiln_budget_bytes(&first), 0);
  assert_ok(kiln_budget_check(&first, 0));
  kiln_budget second = begin((kiln_limits){.bytes = 1 << 20});
  assert_non_null(own = kiln_mem_alloc(mem, 2 << 20));
  assert_int_equal(kiln_budget_bytes(&first), 2 << 20);
  assert_int_equal(kiln_budget_bytes(&second), 2 << 20);
  run_thread(give_aside, &job);
  assert_int_equal(kiln_budget_bytes(&second), 2 << 20);
  assert_error(kiln_budget_check(&second, 0), KILN_LIMIT, "1 MiB");
  kiln_mem_free(mem, own, 2 << 20);
  assert_int_equal(kiln_mem_bytes(mem), held);
  /* A call that gives back what a job took needs no more than nothing. */
  run_thread(take_aside, &job);
  kiln_budget third = begin((kiln_limits){.bytes = 1 << 20});
  kiln_mem_free(mem, job, JOB_BYTES);
  assert_int_equal(kiln_budget_bytes(&third), 0);
  assert_int_equal(kiln_mem_bytes(mem), held);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(limits_name_themselves, set_up, tear_down),
      cmocka_unit_test_setup_teardown(operations_are_exact, set_up, tear_down),
      cmocka_unit_test_setup_teardown(over_stays_over, set_up, tear_down),
      cmocka_unit_test_setup_teardown(looks_are_counted, set_up, tear_down),
      cmocka_unit_test_setup_teardown(arenas_leave_the_scope, set_up, tear_down),
      cmocka_unit_test_setup_teardown(ranges_end, set_up, tear_down),
      cmocka_unit_test_setup_teardown(jobs_take_nothing_of_calls, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
