/* process_threads_test.c: calls with compile_process on: by several threads, under limits that end
 * in the middle of LLVM, and with the process killed from outside. Results are right in any case:
 * what is not compiled is interpreted, and the group says why. */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/budget.h"
#include "base/sanitize.h"
#include "test/unit/api/built.h"
#include "test/unit/child.h"

enum { COLUMNS = 8 };

/* -- Subjects -- */

static kiln_context *process_context(const char *name, const char *value) {
  return context_of((const setting[]){{"compile", "sync"},
                                      {"compile_process", "on"},
                                      {"max_group_size", "1000"},
                                      {name, value},
                                      {NULL, NULL}});
}

static void make_model(subject *s, const char *text, size_t size) {
  s->model = parse_model(s->context, text, size);
  s->instance = instance_of(s->model);
}

/* `format` for each of `length` operators, with its number and that of the one before it, as one
 * group; then `last`, with the number of the last one. */
static void make_chain(subject *s, const char *format, int length, const char *last) {
  const size_t capacity = (size_t)length * 64 + 512;
  char *text = malloc(capacity);
  assert_non_null(text);
  size_t used = (size_t)snprintf(text, capacity,
                                 "graph(%%0 : Tensor):\n"
                                 "  %%one : int = prim::Constant[value=1]()\n"
                                 "  %%none : int = prim::Constant[value=0]()\n");
  for (int i = 0; i < length; i++) {
    used += (size_t)snprintf(text + used, capacity - used, format, i + 1, i);
  }
  used += (size_t)snprintf(text + used, capacity - used, last, length);
  make_model(s, text, used);
  free(text);
}

/* (length + 1) x */
static void make_sum(subject *s, int length) {
  make_chain(s, "  %%%d : Tensor = aten::add(%%%d, %%0, %%one)\n", length, "  return (%%%d)\n");
}

/* x + 0 erf(erf(...)): LLVM has to do for seconds. */
static void make_slow(subject *s) {
  make_chain(s, "  %%%d : Tensor = aten::erf(%%%d)\n", 900,
             "  %%y : Tensor = aten::add(%%0, %%%d, %%none)\n  return (%%y)\n");
}

/* The status of a call; a result must be `factor` times the input. */
static kiln_status *call(const subject *s, int rows, int factor, const kiln_limits *limits) {
  const int64_t sizes[2] = {rows, COLUMNS};
  float data[64 * COLUMNS], got[64 * COLUMNS];
  for (int i = 0; i < rows * COLUMNS; i++) data[i] = (float)(i % 5);
  kiln_call_options options = {.limits = {0}};
  if (limits) options.limits = *limits;
  kiln_value *x = NULL, *y = NULL;
  assert_ok(kiln_value_tensor(s->context, KILN_DTYPE_F32, 2, sizes, data, &x));
  kiln_status *status = kiln_instance_call(s->instance, "forward", &x, 1, &options, &y);
  if (!status) assert_ok(kiln_value_copy_data(y, got, (size_t)rows * COLUMNS * sizeof *got));
  for (int i = 0; !status && i < rows * COLUMNS; i++) {
    assert_true(got[i] == data[i] * (float)factor);
  }
  kiln_value_destroy(x);
  kiln_value_destroy(y);
  return status;
}

static const char *reason_of(const subject *s, int group) {
  kiln_group_counters counters;
  assert_ok(kiln_model_group(s->model, group, &counters));
  return counters.reason;
}

/* -- Processes -- */

static void *kill_child(void *unused) {
  pid_t pid;
  while (!(pid = find_child())) usleep(1000);
  kill(pid, SIGKILL);
  return unused;
}
static void *cancel_in_child(void *cancel) {
  while (!find_child()) usleep(1000);
  usleep(20000);
  kiln_call_cancel(cancel);
  return NULL;
}

static void assert_no_child(void) { assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); }

/* -- Tests -- */

static void killed_is_interpreted(void **state) {
  (void)state;
  subject s = {.context = process_context(NULL, NULL)};
  pthread_t thread;
  make_slow(&s);
  assert_ok(call(&s, 2, 1, NULL));
  assert_int_equal(pthread_create(&thread, NULL, kill_child, NULL), 0);
  assert_ok(call(&s, 2, 1, NULL));
  pthread_join(thread, NULL);
  assert_non_null(strstr(reason_of(&s, 0), "compile_process"));
  const kiln_counters counters = counters_of(s.model);
  assert_int_equal(counters.compile_failures, 1);
  assert_ok(call(&s, 2, 1, NULL));
  close_subject(&s);
  assert_no_child();
}

static void time_ends_within_a_group(void **state) {
  (void)state;
  subject s = {.context = process_context("compile_time", "400")};
  make_slow(&s);
  for (int i = 0; i < 3; i++) {
    const double begin = now_ms();
    assert_ok(call(&s, 2, 1, NULL));
    assert_true(now_ms() - begin < 5000);
  }
  const kiln_counters counters = counters_of(s.model);
  assert_int_equal(counters.compiles, 0);
  close_subject(&s);
  assert_no_child();
}

static void cancelling_ends_within_a_group(void **state) {
  (void)state;
  subject s = {.context = process_context("compile_time", "20000")}; /* also where all is slow */
  kiln_cancel *cancel;
  pthread_t thread;
  make_slow(&s);
  assert_ok(kiln_cancel_create(&cancel));
  const kiln_limits limits = {.cancel = cancel};
  assert_ok(call(&s, 2, 1, &limits));
  assert_int_equal(pthread_create(&thread, NULL, cancel_in_child, cancel), 0);
  assert_error(call(&s, 2, 1, &limits), KILN_CANCELLED, NULL);
  pthread_join(thread, NULL);
  assert_no_child();
  kiln_cancel_reset(cancel);
  assert_ok(call(&s, 2, 1, &limits));
  close_subject(&s);
  kiln_cancel_destroy(cancel);
}

/* What LLVM takes is the process's: too little for it there is enough for everything else. */
static void little_memory_is_enough_to_interpret(void **state) {
  (void)state;
  if (KILN_SANITIZED) skip(); /* test/SKIPPED.md */
  subject s = {.context = process_context("compile_memory", "1M")};
  make_sum(&s, 40);
  for (int i = 0; i < 3; i++) assert_ok(call(&s, 2, 41, NULL));
  assert_non_null(reason_of(&s, 0));
  close_subject(&s);
}

typedef struct caller {
  pthread_t thread;
  subject s;
} caller;

static void *call_often(void *arg) {
  const caller *c = arg;
  for (int i = 0; i < 24; i++) assert_ok(call(&c->s, 1 + i / 3, 6, NULL));
  return NULL;
}

/* Two on one model, one on another in the same context: jobs overlap, processes come and go. */
static void threads_compile(void **state) {
  enum { CALLERS = 3 };
  caller callers[CALLERS];
  (void)state;
  if (KILN_ASAN) skip(); /* test/SKIPPED.md */
  kiln_context *context = process_context(NULL, NULL);
  subject models[2] = {{.context = context}, {.context = context}};
  make_sum(&models[0], 5);
  make_sum(&models[1], 5);
  for (int i = 0; i < CALLERS; i++) {
    callers[i].s = models[i / 2];
    assert_int_equal(pthread_create(&callers[i].thread, NULL, call_often, &callers[i]), 0);
  }
  for (int i = 0; i < CALLERS; i++) pthread_join(callers[i].thread, NULL);
  uint64_t compiles = 0; /* by either: the groups are equal, and who is first compiles for both */
  for (int i = 0; i < 2; i++) {
    const kiln_counters counters = counters_of(models[i].model);
    compiles += counters.compiles;
    assert_int_equal(counters.compile_failures, 0);
  }
  assert_true(compiles > 0);
  for (int i = 0; i < 2; i++) {
    kiln_instance_release(models[i].instance);
    kiln_model_release(models[i].model);
  }
  kiln_context_release(context);
  assert_no_child();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(killed_is_interpreted),
      cmocka_unit_test(time_ends_within_a_group),
      cmocka_unit_test(cancelling_ends_within_a_group),
      cmocka_unit_test(little_memory_is_enough_to_interpret),
      cmocka_unit_test(threads_compile),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
