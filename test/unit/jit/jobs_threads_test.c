/* jobs_threads_test.c: compile jobs beside each other: who waits for whom, what a job that came to
 * nothing leaves, and what a child of a fork finds.
 *
 * A job is held up where it tells the log of a group that it has compiled. */
#include <pthread.h>
#include <semaphore.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jit/compile_job.h"
#include "test/unit/jit/jit_support.h"

enum { THREADS = 8 };

#define CHAIN(last)                              \
  "graph(%x : Tensor, %y : Tensor):\n"           \
  "  %2 : int = prim::Constant[value=1]()\n"     \
  "  %4 : Tensor = aten::mul(%x, %y)\n"          \
  "  %5 : Tensor = aten::tanh(%4)\n"             \
  "  %6 : Tensor = aten::" last "(%5, %x, %2)\n" \
  "  return (%6)\n"

/* One who calls a function of a model, with inputs of its own. */
typedef struct caller {
  pthread_t thread;
  model m; /* a copy, with its own call */
  kiln_ivalue args[2];
  kiln_limits limits;
  int repeat;
  kiln_status *status;
} caller;

static void caller_open(caller *c, const model *m, kiln_function *function, int64_t rows) {
  *c = (caller){.m = *m, .repeat = 1};
  assert_ok(kiln_call_create(m->env, &c->m.call));
  c->m.call->jit = true;
  c->m.call->types = m->unit->types;
  c->m.function = function;
  c->args[0] = make_matrix(&c->m, rows, 8, 0.01);
  c->args[1] = make_matrix(&c->m, rows, 8, -0.02);
}
static void caller_close(caller *c) {
  for (int i = 0; i < 2; i++) kiln_ivalue_release(c->args[i]);
  kiln_call_destroy(c->m.call);
}

static kiln_status *call_once(caller *c, const kiln_cancel *cancel) {
  kiln_ivalue result = kiln_none();
  c->limits.cancel = cancel;
  kiln_call_begin(c->m.call, &c->limits);
  kiln_status *status = kiln_jit_call(c->m.jit, c->m.call, c->m.function, c->args, 2, &result);
  kiln_ivalue_release(result);
  return status;
}
static void *run(void *arg) {
  caller *c = arg;
  for (int i = 0; !c->status && i < c->repeat; i++) c->status = call_once(c, NULL);
  return NULL;
}
static void start(caller *c) { assert_int_equal(pthread_create(&c->thread, NULL, run, c), 0); }
static void join(caller *c) {
  pthread_join(c->thread, NULL);
  assert_ok(c->status);
}

/* -- Where jobs are held up -- */

static struct hook {
  const char *group; /* "forward/": of these groups; NULL: of none */
  sem_t arrived, go_on;
  kiln_cancel *cancel; /* instead: asked for there */
  bool starve;         /* or: the job gets no more memory */
} hook;

static void on_line(void *user, const char *channel, int level, const char *line) {
  (void)user, (void)level;
  if (strcmp(channel, "compile") != 0 || !hook.group ||
      strncmp(line, hook.group, strlen(hook.group)) != 0) {
    return;
  }
  if (hook.cancel) {
    kiln_call_cancel(hook.cancel);
    return;
  }
  if (hook.starve) {
    kiln_budget_current()->bytes = 1;
    return;
  }
  hook.group = NULL;
  sem_post(&hook.arrived);
  while (sem_wait(&hook.go_on) != 0) continue;
}

static kiln_status *add_function(model *m, const char *name, const char *graph,
                                 kiln_function **out) {
  *out = kiln_unit_add_function(m->unit, kiln_str_from(name), NULL);
  KILN_TRY(kiln_graph_parse(m->env->mem, m->registry, m->unit->types, kiln_str_from(graph),
                            &(*out)->graph));
  (*out)->state = 2;
  return NULL;
}
static kiln_status *try_add_function(model *m, const char *name, const char *graph,
                                     kiln_function **out) {
  KILN_PROTECT(add_function(m, name, graph, out));
}

/* forward() and encode(), whose jobs tell the hook. */
static kiln_function *open_two(model *m, const char *flag) {
  kiln_function *encode;
  hook = (struct hook){0};
  sem_init(&hook.arrived, 0, 0);
  sem_init(&hook.go_on, 0, 0);
  model_open(m, CHAIN("sub"), (const char *[]){"codegen=eval", flag, NULL});
  kiln_jit_destroy(m->jit);
  m->env->log.callback = on_line;
  m->env->log.level[KILN_LOG_compile] = 1;
  assert_ok(try_add_function(m, "__torch__.M.encode", CHAIN("add"), &encode));
  assert_ok(kiln_jit_create(m->env, &m->env->flags, m->unit, m->codegen, &m->jit));
  return encode;
}

/* -- Tests -- */

/* While forward() is compiled, encode() is profiled, compiled and run, new shapes of it too, and
 * all that can be asked is answered; a second caller of forward() gets the plan of the first. */
static void test_functions_do_not_meet(void **state) {
  model m;
  caller first, second, other, new_shape;
  (void)state;
  kiln_function *encode = open_two(&m, NULL);
  caller_open(&first, &m, m.function, 4);
  caller_open(&second, &m, m.function, 4);
  caller_open(&other, &m, encode, 4);
  caller_open(&new_shape, &m, encode, 5);
  assert_ok(call_once(&first, NULL));
  hook.group = "forward/";
  start(&first);
  while (sem_wait(&hook.arrived) != 0) continue;
  second.repeat = 3;
  start(&second);
  for (int i = 0; i < 3; i++) assert_ok(call_once(&other, NULL));
  for (int i = 0; i < 3; i++) assert_ok(call_once(&new_shape, NULL));
  kiln_counters c = counters(&m);
  assert_int_equal(c.groups, 2); /* of encode(); forward()'s is not there yet */
  assert_int_equal(c.compiled_runs, 4);
  assert_int_equal(c.compiles, 2);
  kiln_group_counters group;
  assert_ok(kiln_jit_group(m.jit, 0, &group));
  assert_string_equal(group.name, "encode/TensorExprGroup_0");
  kiln_jit_refusal refusal;
  kiln_guard_miss miss;
  (void)kiln_jit_refusal_at(m.jit, 0, &refusal);
  assert_true(kiln_jit_guard_miss_at(m.jit, 0, &miss));
  char *text = dump_stage(&m, KILN_JIT_STAGE_OPTIMIZED, "");
  assert_words(text, "profiling: not optimised yet");
  free(text);
  sem_post(&hook.go_on);
  join(&first);
  join(&second);
  c = counters(&m);
  assert_int_equal(c.groups, 3);
  assert_int_equal(c.compiles, 3);
  assert_int_equal(c.compiled_runs, 4 + 1 + 3);
  caller_close(&first);
  caller_close(&second);
  caller_close(&other);
  caller_close(&new_shape);
  model_close(&m);
}

/* Threads that meet in a new model compile each group once, whoever comes first. */
static void test_groups_are_compiled_once(void **state) {
  (void)state;
  for (int round = 0; round < 10; round++) {
    model m;
    caller callers[THREADS];
    kiln_function *encode = open_two(&m, NULL);
    for (int i = 0; i < THREADS; i++) {
      caller_open(&callers[i], &m, i % 2 ? encode : m.function, 4);
      callers[i].repeat = 6;
    }
    for (int i = 0; i < THREADS; i++) start(&callers[i]);
    for (int i = 0; i < THREADS; i++) join(&callers[i]);
    for (int i = 0; i < THREADS; i++) caller_close(&callers[i]);
    const kiln_counters c = counters(&m);
    assert_int_equal(c.groups, 2);
    assert_int_equal(c.compiles, 2);
    assert_int_equal(c.guard_misses, 0);
    assert_true(c.compiled_runs >= THREADS * 5); /* first runs may be profiled at the same time */
    model_close(&m);
  }
}

/* A job that is cancelled after its groups were compiled leaves no byte and no record, and its
 * kernels to the context's cache, if that may have any. */
static void cancelled_job(const char *flag, bool kept) {
  model m;
  caller c;
  kiln_cancel *cancel;
  size_t held = 0;
  (void)open_two(&m, flag);
  assert_ok(kiln_cancel_create(&cancel));
  caller_open(&c, &m, m.function, 4);
  assert_ok(call_once(&c, NULL));
  hook.group = "forward/";
  hook.cancel = cancel;
  for (int i = 0; i < 4; i++) {
    kiln_cancel_reset(cancel);
    assert_error(call_once(&c, cancel), KILN_CANCELLED, NULL);
    if (i > 0) assert_int_equal(kiln_mem_bytes(m.env->mem), held);
    held = kiln_mem_bytes(m.env->mem);
    assert_int_equal(counters(&m).groups, 0);
    assert_int_equal(counters(&m).compiles, kept ? 1 : i + 1);
  }
  hook.group = NULL;
  for (int i = 0; i < 2; i++) assert_ok(call_once(&c, NULL));
  assert_int_equal(counters(&m).groups, 1);
  assert_int_equal(counters(&m).compiles, kept ? 1 : 5);
  assert_int_equal(counters(&m).compiled_runs, 2);
  kiln_group_counters group;
  assert_ok(kiln_jit_group(m.jit, 0, &group));
  assert_string_equal(group.name, "forward/TensorExprGroup_0");
  caller_close(&c);
  kiln_cancel_destroy(cancel);
  model_close(&m);
}
static void test_cancelled_job_leaves_its_kernels(void **state) {
  (void)state;
  cancelled_job(NULL, true);
}
static void test_cancelled_job_leaves_nothing(void **state) {
  (void)state;
  cancelled_job("code_cache=0", false);
}

/* The same wherever it is cancelled, until it is not. */
static void test_cancelled_anywhere(void **state) {
  model m;
  caller c;
  kiln_cancel *cancel;
  size_t held = 0;
  uint64_t looks = 0;
  (void)state;
  (void)open_two(&m, "code_cache=0");
  assert_ok(kiln_cancel_create(&cancel));
  caller_open(&c, &m, m.function, 4);
  assert_ok(call_once(&c, NULL));
  for (;;) {
    kiln_cancel_reset(cancel);
    kiln_cancel_at_look(cancel, ++looks);
    kiln_status *status = call_once(&c, cancel);
    if (status) assert_error(status, KILN_CANCELLED, NULL);
    if (counters(&m).groups > 0) break; /* published, whether the call then ran or not */
    if (looks > 1) assert_int_equal(kiln_mem_bytes(m.env->mem), held);
    held = kiln_mem_bytes(m.env->mem);
  }
  assert_true(looks > 20);
  assert_int_equal(counters(&m).groups, 1);
  caller_close(&c);
  kiln_cancel_destroy(cancel);
  model_close(&m);
}

static bool is_told(const model *m, kiln_reason reason, uint64_t count) {
  kiln_jit_refusal r;
  for (int i = 0; kiln_jit_refusal_at(m->jit, i, &r); i++) {
    if (r.reason == reason) return r.count == count;
  }
  return count == 0;
}

/* A job that runs out of the call's allowance is tried by later calls, three times in all; each is
 * served by the interpreter meanwhile, and no try leaves anything. */
static void starved_job(int starved) {
  model m;
  caller c;
  size_t held = 0;
  (void)open_two(&m, NULL);
  caller_open(&c, &m, m.function, 4);
  c.limits.bytes = 1 << 30;
  assert_ok(call_once(&c, NULL));
  hook.group = "forward/";
  hook.starve = true;
  for (int i = 0; i < starved; i++) {
    assert_ok(call_once(&c, NULL));
    if (i > 1) assert_int_equal(kiln_mem_bytes(m.env->mem), held);
    held = kiln_mem_bytes(m.env->mem);
    assert_int_equal(counters(&m).groups, 0);
    assert_true(is_told(&m, KILN_REASON_compile_budget, (uint64_t)i + 1));
  }
  hook.group = NULL;
  for (int i = 0; i < 2; i++) assert_ok(call_once(&c, NULL));
  const bool given_up = starved == KILN__MAX_TRIES;
  assert_int_equal(counters(&m).compile_failures, given_up);
  assert_int_equal(counters(&m).groups, given_up ? 0 : 1);
  assert_int_equal(counters(&m).compiled_runs, given_up ? 0 : 2);
  assert_int_equal(counters(&m).compiles, 1);
  caller_close(&c);
  model_close(&m);
}
static void test_starved_job_is_tried_again(void **state) { (void)state, starved_job(2); }
static void test_starved_job_is_given_up(void **state) { (void)state, starved_job(3); }

/* Equal groups of two models of a context are one kernel. */
static void test_models_share_kernels(void **state) {
  model m;
  caller c;
  kiln_jit *first;
  (void)state;
  (void)open_two(&m, NULL);
  caller_open(&c, &m, m.function, 4);
  for (int i = 0; i < 2; i++) assert_ok(call_once(&c, NULL));
  assert_int_equal(counters(&m).compiles, 1);
  caller_close(&c);
  first = m.jit;
  assert_ok(kiln_jit_create(m.env, &m.env->flags, m.unit, m.codegen, &m.jit));
  caller_open(&c, &m, m.function, 4);
  kiln_jit_destroy(first); /* the kernel stays */
  for (int i = 0; i < 2; i++) assert_ok(call_once(&c, NULL));
  assert_int_equal(counters(&m).groups, 1);
  assert_int_equal(counters(&m).compiles, 0);
  assert_int_equal(counters(&m).compiled_runs, 1);
  char *text = dump_stage(&m, KILN_JIT_STAGE_LOOP, "");
  assert_words(text, "kernel {");
  free(text);
  caller_close(&c);
  model_close(&m);
}

/* A process is forked while forward() is being compiled: the child cannot wait for that, but the
 * rest of the model works. */
static void test_child_of_a_fork(void **state) {
  model m;
  caller first, other;
  int exited = -1;
  (void)state;
  kiln_function *encode = open_two(&m, NULL);
  caller_open(&first, &m, m.function, 4);
  caller_open(&other, &m, encode, 4);
  assert_ok(call_once(&first, NULL));
  hook.group = "forward/";
  start(&first);
  while (sem_wait(&hook.arrived) != 0) continue;
  const pid_t child = fork();
  if (child == 0) {
    other.repeat = 3;
    run(&other);
    const bool worked = !other.status && counters(&m).compiled_runs == 2;
    other.m.function = first.m.function;
    _exit(worked && kiln_status_code(call_once(&other, NULL)) == KILN_UNSUPPORTED ? 0 : 1);
  }
  assert_int_equal(waitpid(child, &exited, 0), child);
  assert_int_equal(exited, 0);
  sem_post(&hook.go_on);
  join(&first);
  assert_int_equal(counters(&m).groups, 1);
  caller_close(&first);
  caller_close(&other);
  model_close(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_functions_do_not_meet),
      cmocka_unit_test(test_groups_are_compiled_once),
      cmocka_unit_test(test_cancelled_job_leaves_its_kernels),
      cmocka_unit_test(test_cancelled_job_leaves_nothing),
      cmocka_unit_test(test_cancelled_anywhere),
      cmocka_unit_test(test_starved_job_is_tried_again),
      cmocka_unit_test(test_starved_job_is_given_up),
      cmocka_unit_test(test_models_share_kernels),
      cmocka_unit_test(test_child_of_a_fork),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
