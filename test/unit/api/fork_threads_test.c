/* fork_threads_test.c: forked functions on pools of every size: results, errors and the order of
 * writes as with one thread; tasks that wait for tasks; limits; contexts that share a pool, and a
 * host's executor. */
#include <math.h>
#include <pthread.h>

#include "test/unit/api/fixture.h"

enum { ROWS = 64, COLUMNS = 8, ELEMENTS = ROWS * COLUMNS };

/* Threads of its own where `pool` is NULL. */
static subject load(int threads, kiln_pool *pool) {
  char text[16];
  snprintf(text, sizeof text, "%d", threads);
  subject s = {.context = context_with("threads", text)};
  if (pool) kiln_context_set_pool(s.context, pool);
  load_subject(&s, TEST_DATA "/own/forks/model.pt");
  return s;
}

static kiln_value *tensor(const subject *s, float base) {
  float data[ELEMENTS];
  kiln_value *value;
  for (int i = 0; i < ELEMENTS; i++) data[i] = base + (float)(i % 13) / 16;
  assert_ok(
      kiln_value_tensor(s->context, KILN_DTYPE_F32, 2, (int64_t[]){ROWS, COLUMNS}, data, &value));
  return value;
}
static kiln_value *number(const subject *s, int64_t i) {
  kiln_value *value;
  assert_ok(kiln_value_int(s->context, i, &value));
  return value;
}
/* method(x, n), or method(x) where n < 0. */
static kiln_status *call(const subject *s, const char *method, float base, int64_t n,
                         const kiln_call_options *options, kiln_value **out) {
  kiln_value *args[] = {tensor(s, base), n < 0 ? NULL : number(s, n)};
  kiln_status *status = kiln_instance_call(s->instance, method, args, n < 0 ? 1 : 2, options, out);
  for (int i = 0; i < 2; i++) kiln_value_destroy(args[i]);
  return status;
}
/* Gives the elements of method(x, n), a float tensor. */
static void result_of(const subject *s, const char *method, float base, int64_t n, float *out) {
  kiln_value *value = NULL;
  assert_ok(call(s, method, base, n, NULL, &value));
  memcpy(out, kiln_value_data(value), ELEMENTS * sizeof *out);
  kiln_value_destroy(value);
}

static const int pool_sizes[] = {1, 2, 3, 7};
enum { POOLS = sizeof pool_sizes / sizeof *pool_sizes };

static void same_bits_on_every_pool(void **state) {
  static const char *const methods[] = {"forward", "chained"};
  float want[2][ELEMENTS], got[ELEMENTS];
  (void)state;
  for (int p = 0; p < POOLS; p++) {
    subject s = load(pool_sizes[p], NULL);
    for (int m = 0; m < 2; m++) {
      for (int repeat = 0; repeat < 20; repeat++) {
        result_of(&s, methods[m], 0.25f, 9, p || repeat ? got : want[m]);
        if (p || repeat) assert_memory_equal(got, want[m], sizeof got);
      }
    }
    close_subject(&s);
  }
}

/* steps() by hand: the values themselves, not only their being equal. */
static void chained_gives_the_sum(void **state) {
  float got[ELEMENTS];
  subject s = load(3, NULL);
  (void)state;
  result_of(&s, "chained", 0.25f, 4, got);
  for (int i = 0; i < ELEMENTS; i++) {
    const double x = 0.25 + (double)(i % 13) / 16;
    double y = x;
    for (int step = 0; step < 4; step++) y = tanh(y * 1.5 + step);
    assert_true(fabs(got[i] - (y + 4 * x)) < 1e-5);
  }
  close_subject(&s);
}

/* What a forked function appends to a list is there before its frame goes on. */
static void writers_run_in_order(void **state) {
  (void)state;
  for (int p = 0; p < POOLS; p++) {
    subject s = load(pool_sizes[p], NULL);
    for (int repeat = 0; repeat < 5; repeat++) {
      kiln_value *value = NULL;
      assert_ok(call(&s, "in_order", 0, 6, NULL, &value));
      assert_int_equal(kiln_value_count(value), 12);
      for (int i = 0; i < 12; i++) {
        kiln_value *item = item_of(value, i);
        assert_int_equal(kiln_value_as_int(item), i % 2 ? -(i / 2) : i / 2);
        kiln_value_destroy(item);
      }
      kiln_value_destroy(value);
    }
    close_subject(&s);
  }
}

static void errors_wait_in_the_future(void **state) {
  float got[ELEMENTS];
  (void)state;
  for (int p = 0; p < POOLS; p++) {
    subject s = load(pool_sizes[p], NULL);
    for (int repeat = 0; repeat < 5; repeat++) {
      kiln_value *value = NULL;
      assert_error(call(&s, "small", 1000, -1, NULL, &value), KILN_RAISED, "too large");
      assert_null(value);
      result_of(&s, "small", 1, -1, got);
      assert_true(got[0] == 6); /* 2 x 1 + 2 x 2 */
      result_of(&s, "unwaited", 1000, -1, got);
      assert_true(got[0] == 1001);
    }
    close_subject(&s);
  }
}

/* n is a multiple of 3: three sums of i % 3. */
static void results_may_be_ints(void **state) {
  (void)state;
  for (int p = 0; p < POOLS; p++) {
    subject s = load(pool_sizes[p], NULL);
    for (int repeat = 0; repeat < 4; repeat++) {
      kiln_value *n = number(&s, 30000), *value = NULL;
      assert_ok(kiln_instance_call(s.instance, "counts", &n, 1, NULL, &value));
      assert_int_equal(kiln_value_as_int(value), 90000);
      kiln_value_destroy(n);
      kiln_value_destroy(value);
    }
    close_subject(&s);
  }
}

static void limits_hold_in_tasks(void **state) {
  (void)state;
  for (int p = 0; p < POOLS; p++) {
    subject s = load(pool_sizes[p], NULL);
    kiln_value *n = number(&s, INT64_C(1) << 50), *value = NULL;
    const kiln_call_options time = {.limits = {.time_ms = 30}};
    const kiln_call_options work = {.limits = {.operations = 10000}};
    assert_error(kiln_instance_call(s.instance, "counts", &n, 1, &time, &value), KILN_LIMIT, "30");
    assert_error(kiln_instance_call(s.instance, "counts", &n, 1, &work, &value), KILN_LIMIT,
                 "10000");
    kiln_value_destroy(n);
    const kiln_call_options bytes = {.limits = {.bytes = ELEMENTS * sizeof(float) / 2}};
    assert_error(call(&s, "forward", 0, 3, &bytes, &value), KILN_LIMIT, "bytes");
    close_subject(&s);
  }
}

/* -- Pools that are given -- */

typedef struct caller {
  pthread_t thread;
  subject s;
  float base, want[ELEMENTS];
  int faults;
} caller;

static void *call_often(void *arg) {
  caller *c = arg;
  float got[ELEMENTS];
  for (int i = 0; i < 30; i++) {
    result_of(&c->s, "forward", c->base, 5, got);
    c->faults += memcmp(got, c->want, sizeof got) != 0;
  }
  return NULL;
}

static void contexts_share_a_pool(void **state) {
  enum { CALLERS = 3 };
  caller callers[CALLERS];
  kiln_pool *pool;
  (void)state;
  assert_ok(kiln_pool_create(2, &pool));
  for (int i = 0; i < CALLERS; i++) {
    caller *c = &callers[i];
    *c = (caller){.base = (float)i};
    subject alone = load(1, NULL);
    result_of(&alone, "forward", c->base, 5, c->want);
    close_subject(&alone);
    c->s = load(5, pool);
    assert_int_equal(kiln_context_threads(c->s.context), 2);
  }
  kiln_pool_release(pool); /* the contexts keep it */
  for (int i = 0; i < CALLERS; i++) {
    assert_int_equal(pthread_create(&callers[i].thread, NULL, call_often, &callers[i]), 0);
  }
  for (int i = 0; i < CALLERS; i++) {
    pthread_join(callers[i].thread, NULL);
    assert_int_equal(callers[i].faults, 0);
    close_subject(&callers[i].s);
  }
}

static void no_pool_is_one_thread(void **state) {
  (void)state;
  kiln_context *context;
  assert_ok(kiln_context_create(NULL, &context));
  kiln_context_set_pool(context, NULL);
  assert_int_equal(kiln_context_threads(context), 1);
  kiln_context_release(context);
}

/* An executor of the host: a new thread for each piece but the first. */
typedef struct host {
  int runs; /* atomic */
} host;
typedef struct piece {
  pthread_t thread;
  void (*run)(void *data, int index);
  void *data;
  int index;
} piece;
static void *run_piece(void *arg) {
  piece *p = arg;
  p->run(p->data, p->index);
  return NULL;
}
static void run_pieces(void *user, int count, void (*run)(void *data, int index), void *data) {
  enum { MOST = 4 };
  piece pieces[MOST];
  __atomic_fetch_add(&((host *)user)->runs, 1, __ATOMIC_RELAXED);
  assert_in_range(count, 1, MOST);
  for (int i = 1; i < count; i++) {
    pieces[i] = (piece){.run = run, .data = data, .index = i};
    assert_int_equal(pthread_create(&pieces[i].thread, NULL, run_piece, &pieces[i]), 0);
  }
  run(data, 0);
  for (int i = 1; i < count; i++) pthread_join(pieces[i].thread, NULL);
}

/* Tensors large enough for ranges; forks run in order, for a host's executor takes no tasks. */
static void a_host_executor_runs_ranges(void **state) {
  enum { LARGE = 1 << 18 };
  host h = {0};
  const kiln_host_executor executor = {.user = &h, .threads = 4, .run = run_pieces};
  kiln_pool *pool;
  float want[ELEMENTS], got[ELEMENTS], *data = malloc(LARGE * sizeof *data);
  (void)state;
  assert_non_null(data);
  for (int i = 0; i < LARGE; i++) data[i] = (float)(i % 7);
  assert_ok(kiln_pool_create_over(&executor, &pool));
  subject s = load(1, pool), alone = load(1, NULL);
  kiln_pool_release(pool);
  assert_int_equal(kiln_context_threads(s.context), 4);
  result_of(&alone, "forward", 2, 4, want);
  result_of(&s, "forward", 2, 4, got);
  assert_memory_equal(got, want, sizeof got);
  kiln_value *x, *value = NULL;
  assert_ok(kiln_value_tensor(s.context, KILN_DTYPE_F32, 2, (int64_t[]){LARGE / 8, 8}, data, &x));
  for (int repeat = 0; repeat < 4; repeat++) {
    assert_ok(kiln_instance_call(s.instance, "unwaited", &x, 1, NULL, &value));
    for (int i = 0; i < LARGE; i += 1001) {
      assert_true(((const float *)kiln_value_data(value))[i] == data[i] + 1);
    }
    kiln_value_destroy(value);
  }
  assert_true(h.runs > 0);
  kiln_value_destroy(x);
  free(data);
  close_subject(&s);
  close_subject(&alone);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(same_bits_on_every_pool),     cmocka_unit_test(chained_gives_the_sum),
      cmocka_unit_test(writers_run_in_order),        cmocka_unit_test(errors_wait_in_the_future),
      cmocka_unit_test(results_may_be_ints),         cmocka_unit_test(limits_hold_in_tasks),
      cmocka_unit_test(contexts_share_a_pool),       cmocka_unit_test(no_pool_is_one_thread),
      cmocka_unit_test(a_host_executor_runs_ranges),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
