/* beside_threads_test.c: compile=async: calls while their kernels are made, models that go in the
 * meantime, forks, threads that meet. */
#include <pthread.h>
#include <semaphore.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sanitize.h"
#include "test/unit/jit/jit_support.h"

#define CHAIN                                \
  "graph(%x : Tensor, %y : Tensor):\n"       \
  "  %2 : int = prim::Constant[value=1]()\n" \
  "  %4 : Tensor = aten::mul(%x, %y)\n"      \
  "  %5 : Tensor = aten::tanh(%4)\n"         \
  "  %6 : Tensor = aten::add(%5, %x, %2)\n"  \
  "  return (%6)\n"

static void open_async(model *m, const char *flag) {
  /* Elsewhere the machine may be busy with other tests. */
  model_open(m, CHAIN,
             (const char *[]){"codegen=eval", "compile=async", "max_stall_us=1000000",
                              "compile_after=0", flag, NULL});
}

static void check_rows(model *m, int64_t rows) {
  kiln_ivalue args[2] = {make_matrix(m, rows, 8, 0.01), make_matrix(m, rows, 8, -0.02)};
  check_call(m, args, 2);
  for (int i = 0; i < 2; i++) kiln_ivalue_release(args[i]);
}

/* -- Where jobs are held up -- */

static struct hook {
  bool armed;
  sem_t arrived, go_on;
} hook;

static void on_line(void *user, const char *channel, int level, const char *line) {
  (void)user, (void)level;
  if (strcmp(channel, "compile") != 0 || strncmp(line, "forward/", 8) != 0 ||
      !__atomic_exchange_n(&hook.armed, false, __ATOMIC_ACQ_REL))
    return;
  sem_post(&hook.arrived);
  while (sem_wait(&hook.go_on) != 0) continue;
}

/* A model whose first job is under way. */
static void open_held(model *m) {
  hook = (struct hook){.armed = true};
  sem_init(&hook.arrived, 0, 0);
  sem_init(&hook.go_on, 0, 0);
  open_async(m, NULL);
  kiln_jit_destroy(m->jit); /* which has not been called */
  m->env->log.callback = on_line;
  m->env->log.level[KILN_LOG_compile] = 1;
  assert_ok(kiln_jit_create(m->env, &m->env->flags, m->unit, m->codegen, &m->jit));
  check_rows(m, 4);
  check_rows(m, 4);
  while (sem_wait(&hook.arrived) != 0) continue;
}

/* -- Tests -- */

/* The first call records, the second asks, and those after it go on while the job is under way. */
static void calls_do_not_wait(void **state) {
  model m;
  (void)state;
  open_held(&m);
  for (int i = 0; i < 10; i++) check_rows(&m, 4 + i % 3);
  kiln_counters c = counters(&m);
  assert_int_equal(c.compiled_runs, 0);
  assert_int_equal(c.groups, 0); /* none is published */
  assert_int_equal(c.jobs, 1);
  assert_int_equal(c.profiled_runs, 1);
  sem_post(&hook.go_on);
  assert_ok(kiln_jit_wait_idle(m.jit, NULL));
  assert_int_equal(counters(&m).groups, 1);
  check_rows(&m, 4);
  assert_int_equal(counters(&m).compiled_runs, 1);
  assert_int_equal(counters(&m).stalls, 0);
  model_close(&m);
}

static void *call_once(void *arg) {
  check_rows(arg, 4);
  return NULL;
}

/* While a job makes the first plan, the first call runs without JIT. */
static void first_call_does_not_wait(void **state) {
  const kiln_callable *callable;
  struct timespec until;
  pthread_t thread;
  model m;
  (void)state;
  open_async(&m, NULL);
  assert_ok(kiln_jit_callable(m.jit, m.function, &callable));
  kiln_executor *ex = kiln__executor_of(callable);
  assert_ok(kiln_job_lock_take(&ex->lock, NULL)); /* as the job that a profile starts */
  __atomic_store_n(&ex->asked, true, __ATOMIC_RELEASE);
  assert_int_equal(pthread_create(&thread, NULL, call_once, &m), 0);
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 60;
  assert_int_equal(pthread_timedjoin_np(thread, NULL, &until), 0);
  assert_int_equal(counters(&m).profiled_runs, 0);
  __atomic_store_n(&ex->asked, false, __ATOMIC_RELEASE);
  kiln_job_lock_give(&ex->lock);
  check_rows(&m, 4);
  assert_int_equal(counters(&m).profiled_runs, 1);
  model_close(&m);
}

/* What tells whether processors are left for jobs: each call is counted once, whatever the model
 * has of generations and jobs, and the job that runs is none. */
static void calls_are_counted_once(void **state) {
  model m;
  (void)state;
  open_held(&m);
  assert_int_equal(kiln_job_queue_calls(m.jit->jobs), 0); /* beside the job */
  const uint64_t ticket = kiln_epoch_enter(&m.jit->epoch, 0);
  assert_int_equal(kiln_job_queue_calls(m.jit->jobs), 1);
  sem_post(&hook.go_on);
  assert_ok(kiln_jit_wait_idle(m.jit, NULL));
  assert_int_equal(kiln_job_queue_calls(m.jit->jobs), 1);
  assert_ok(kiln__generation_begin(m.jit));
  assert_int_equal(kiln_job_queue_calls(m.jit->jobs), 1);
  kiln_epoch_leave(&m.jit->epoch, ticket);
  assert_int_equal(kiln_job_queue_calls(m.jit->jobs), 0);
  model_close(&m);
}

static void *go_on_later(void *arg) {
  (void)arg;
  usleep(20000);
  sem_post(&hook.go_on);
  return NULL;
}

/* The model goes in the middle of its job, with another one waiting. */
static void a_model_goes(void **state) {
  pthread_t thread;
  model m;
  (void)state;
  open_held(&m);
  pthread_create(&thread, NULL, go_on_later, NULL);
  kiln_call_destroy(m.call);
  kiln_jit_destroy(m.jit);
  m.call = NULL;
  m.jit = NULL;
  pthread_join(thread, NULL);
  model_close(&m);
}

/* In the child the job of the parent is nobody's: calls go on with what served before. Jobs of
 * other models run there. */
static void a_child_is_served(void **state) {
  model m, other;
  int exited;
  (void)state;
  if (KILN_TSAN) skip(); /* test/SKIPPED.md */
  open_held(&m);
  open_async(&other, NULL);
  check_rows(&other, 4);
  const pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < 5; i++) check_rows(&m, 4 + i % 2);
    for (int i = 0; i < 2; i++) check_rows(&other, 4);
    kiln_status *status = kiln_jit_wait_idle(other.jit, NULL);
    check_rows(&other, 4);
    const bool good =
        !status && counters(&other).compiled_runs > 0 && counters(&m).compiled_runs == 0;
    kiln_jit_destroy(m.jit); /* waits for nobody */
    _exit(good ? 0 : 1);
  }
  assert_int_equal(waitpid(child, &exited, 0), child);
  assert_int_equal(exited, 0);
  sem_post(&hook.go_on);
  assert_ok(kiln_jit_wait_idle(m.jit, NULL));
  check_rows(&m, 4);
  assert_int_equal(counters(&m).compiled_runs, 1);
  model_close(&other);
  model_close(&m);
}

/* New shapes find the plan of their region at once, and its levels are made one after the other, as
 * in synchronous compilation: two static ones where shapes come again, then one for all. */
static void levels_follow(void **state) {
  model m;
  (void)state;
  open_async(&m, "fusion_strategy=STATIC,2;DYNAMIC,1");
  const int64_t rows[] = {4, 5, 5, 6, 7, 9, 10};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    for (int k = 0; k < 3; k++) {
      check_rows(&m, rows[i]);
      assert_ok(kiln_jit_wait_idle(m.jit, NULL));
    }
  }
  kiln_counters c = counters(&m);
  const uint64_t before = c.compiled_runs;
  assert_int_equal(c.compile_failures, 0);
  for (int64_t n = 11; n < 31; n++) check_rows(&m, n);
  assert_ok(kiln_jit_wait_idle(m.jit, NULL));
  c = counters(&m);
  assert_int_equal(c.compiled_runs, before + 20); /* by the kernel for many sizes */
  assert_int_equal(c.stalls, 0);
  model_close(&m);
}

/* -- Threads -- */

enum { THREADS = 8, SHAPES = 60 };

typedef struct caller {
  pthread_t thread;
  model m; /* a copy, with its own call */
  int first;
} caller;

/* Three shapes in a row: one kernel is made for all, and none for the first alone. Where the second
 * or the first comes again, the first has its own. */
static void shapes_that_vary(void **state) {
  static const struct {
    int64_t rows[3];
    uint64_t served; /* of 9, 4 and 5 behind them, by the first kernel */
  } cases[] = {{{4, 5, 6}, 3}, {{4, 5, 5}, 1}, {{4, 5, 4}, 1}, {{4, 4, 5}, 1}};
  static const int64_t rows[] = {9, 4, 5};
  (void)state;
  for (int i = 0; i < 4; i++) {
    model m;
    open_async(&m, "fusion_strategy=STATIC,2;DYNAMIC,1");
    for (int k = 0; k < 3; k++) check_rows(&m, cases[i].rows[k]);
    assert_ok(kiln_jit_wait_idle(m.jit, NULL));
    assert_int_equal(counters(&m).compiles, 1);
    uint64_t served = 0;
    for (int k = 0; k < 3; k++) {
      const uint64_t before = counters(&m).compiled_runs;
      check_rows(&m, rows[k]);
      served += counters(&m).compiled_runs - before;
    }
    assert_int_equal(served, cases[i].served);
    model_close(&m);
  }
}

static void *run_shapes(void *arg) {
  caller *c = arg;
  for (int i = 0; i < 3 * SHAPES; i++) check_rows(&c->m, 1 + (c->first + i) % SHAPES);
  return NULL;
}

static void threads_meet(void **state) {
  static caller callers[THREADS];
  model m;
  (void)state;
  open_async(&m, NULL);
  for (int i = 0; i < THREADS; i++) {
    callers[i] = (caller){.m = m, .first = i * 7};
    assert_ok(kiln_call_create(m.env, &callers[i].m.call));
    callers[i].m.call->jit = true;
    callers[i].m.call->types = m.unit->types;
    pthread_create(&callers[i].thread, NULL, run_shapes, &callers[i]);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(callers[i].thread, NULL);
  assert_ok(kiln_jit_wait_idle(m.jit, NULL));
  const kiln_counters c = counters(&m);
  assert_int_equal(c.stalls, 0);
  assert_int_equal(c.compile_failures, 0);
  assert_int_equal(c.compiles, c.groups); /* each once */
  for (int i = 0; i < THREADS; i++) kiln_call_destroy(callers[i].m.call);
  model_close(&m);
}

/* A model is released, and made anew, while its calls have asked for jobs a moment ago. */
static void models_come_and_go(void **state) {
  model m;
  (void)state;
  open_async(&m, NULL);
  for (int i = 0; i < 50; i++) {
    for (int k = 0; k < i % 5; k++) check_rows(&m, 4 + k);
    model_make_anew(&m);
  }
  model_close(&m);
}

/* Memory that runs out, in calls and in jobs, at each request in turn: right answers, or a status
 * of calls, and nothing is lost. */
static void memory_runs_out(void **state) {
  model m;
  bool failed = true;
  (void)state;
  open_async(&m, "code_cache=0");
  for (uint64_t n = 1; failed; n += n < 64 ? 1 : 7) {
    model_make_anew(&m);
    kiln_ivalue args[4] = {make_matrix(&m, 4, 8, 0.01), make_matrix(&m, 4, 8, 0.02),
                           make_matrix(&m, 5, 8, 0.01), make_matrix(&m, 5, 8, 0.02)};
    (void)kiln_mem_fail_at(m.env->mem, n);
    for (int i = 0; i < 6; i++) {
      kiln_ivalue result = kiln_none();
      kiln_call_begin(m.call, NULL);
      kiln_status *status =
          kiln_jit_call(m.jit, m.call, m.function, i < 3 ? args : args + 2, 2, &result);
      if (status) assert_int_equal(kiln_status_code(status), KILN_OUT_OF_MEMORY);
      kiln_status_destroy(status);
      kiln_ivalue_release(result);
      assert_ok(kiln_jit_wait_idle(m.jit, NULL));
    }
    failed = kiln_mem_fail_at(m.env->mem, 0) >= n;
    check_call(&m, args, 2);
    for (int i = 0; i < 4; i++) kiln_ivalue_release(args[i]);
  }
  model_close(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(calls_do_not_wait),
      cmocka_unit_test(a_model_goes),
      cmocka_unit_test(a_child_is_served),
      cmocka_unit_test(levels_follow),
      cmocka_unit_test(threads_meet),
      cmocka_unit_test(models_come_and_go),
      cmocka_unit_test(memory_runs_out),
      cmocka_unit_test(shapes_that_vary),
      cmocka_unit_test(first_call_does_not_wait),
      cmocka_unit_test(calls_are_counted_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
