/* process_test.c: LLVM in a process of its own: it gives what LLVM gives here, and whatever ends it
 * (memory, a signal, time, the host's patience) is a status, after which the next one compiles. */
#include "codegen/process.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/budget.h"
#include "base/sanitize.h"
#include "codegen/codegen.h"
#include "test/unit/child.h"
#include "test/unit/codegen/codegen_support.h"

static fixture f;
static kiln_codegen *codegen;

static int set_up(void **state) {
  (void)state;
  fixture_open(&f);
  assert_ok(kiln_flags_set(&f.env->flags, "compile_process", "on"));
  assert_ok(kiln_flags_set(&f.env->flags, "code_cache", "0")); /* every compilation is one */
  f.env->log.level[KILN_LOG_warn] = 0;
  assert_ok(kiln_codegen_create(f.env, &codegen));
  return 0;
}
static int tear_down(void **state) {
  (void)state;
  kiln_codegen_destroy(codegen);
  assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left, not even a dead one */
  fixture_close(&f);
  return 0;
}

/* out = in + 1 + 1 ..., with `length` different constants: each has to be compiled. */
static kiln_loop_fn *chain(int length) {
  const size_t capacity = (size_t)length * 64 + 256;
  char *text = malloc(capacity);
  assert_non_null(text);
  size_t used = (size_t)snprintf(text, capacity,
                                 "kernel { in b0: f32[64] [1] out b1: f32[64] [1] nest [64] {\n"
                                 "%%0 = load f32 b0 + 0 [1]\n");
  int last = 0;
  for (int i = 0; i < length; i++) {
    used += (size_t)snprintf(text + used, capacity - used,
                             "%%%d = const f32 %d.5\n%%%d = add f32 %%%d, %%%d\n", last + 1, i,
                             last + 2, last, last + 1);
    last += 2;
  }
  snprintf(text + used, capacity - used, "store f32 b1 + 0 [1], %%%d } }", last);
  kiln_loop_fn *fn = parse_loop(&f, text, false, NULL);
  free(text);
  return fn;
}

static void assert_adds(const kiln_compiled *code, float sum) {
  float in[64], out[64];
  for (int i = 0; i < 64; i++) in[i] = (float)i;
  void *data[2] = {in, out};
  const kiln_kernel_args args = {.data = data};
  code->fn(&args, &code->info.work.grid);
  for (int i = 0; i < 64; i++) assert_true(out[i] == in[i] + sum);
}

static void assert_compiles(void) {
  kiln_reason reason;
  kiln_compiled *code;
  assert_ok(kiln_codegen_compile(codegen, chain(2), KILN_BACKEND_LLVM, &reason, &code, NULL));
  assert_adds(code, 2);
  kiln_compiled_release(code);
}

static kiln_reason assert_fails(int length, kiln_code wanted) {
  kiln_reason reason;
  kiln_compiled *code;
  kiln_status *status =
      kiln_codegen_compile(codegen, chain(length), KILN_BACKEND_LLVM, &reason, &code, NULL);
  assert_error(status, wanted, NULL);
  return reason;
}

/* -- What it gives -- */

static void gives_the_same(void **state) {
  (void)state;
  kiln_codegen *here;
  kiln_reason reason;
  kiln_compiled *mine, *other;
  kiln_str mine_text, other_text;
  assert_ok(kiln_flags_set(&f.env->flags, "compile_process", "off"));
  assert_ok(kiln_codegen_create(f.env, &here));
  for (int length = 1; length < 100; length *= 3) {
    const kiln_loop_fn *fn = chain(length);
    assert_ok(kiln_codegen_compile(codegen, fn, KILN_BACKEND_LLVM, &reason, &mine, NULL));
    assert_ok(kiln_codegen_compile(here, fn, KILN_BACKEND_LLVM, &reason, &other, NULL));
    assert_int_equal(mine->object_bytes, other->object_bytes);
    assert_memory_equal(mine->object, other->object, mine->object_bytes);
    assert_adds(mine, (float)(length * length) / 2);
    kiln_compiled_release(mine);
    kiln_compiled_release(other);
    for (int stage = KILN_STAGE_LLVM; stage <= KILN_STAGE_PTX; stage++) {
      const kiln_codegen_stage of = (kiln_codegen_stage)stage;
      assert_ok(kiln_codegen_dump(codegen, fn, of, f.arena, &mine_text));
      assert_ok(kiln_codegen_dump(here, fn, of, f.arena, &other_text));
      assert_true(kiln_str_equal(mine_text, other_text));
    }
  }
  assert_false(kiln_codegen_llvm_is_open(codegen));
  kiln_codegen_destroy(here);
}

/* One process from the first compilation of a job to its end; jobs may overlap. */
static void lives_for_a_job(void **state) {
  (void)state;
  assert_compiles();
  assert_int_equal(find_child(), 0);
  kiln_codegen_begin(codegen, 0);
  assert_int_equal(find_child(), 0);
  assert_compiles();
  const pid_t first = find_child();
  assert_true(first > 0);
  kiln_codegen_begin(codegen, 0);
  assert_compiles();
  kiln_codegen_end(codegen);
  assert_int_equal(find_child(), first);
  kiln_codegen_end(codegen);
  assert_int_equal(find_child(), 0);
}

static void says_that_llvm_is_missing(void **state) {
  (void)state;
  assert_ok(kiln_flags_set(&f.env->flags, "llvm", "/nowhere/libLLVM.so"));
  assert_int_equal(assert_fails(2, KILN_UNSUPPORTED), KILN_REASON_llvm_missing);
  assert_ok(kiln_flags_set(&f.env->flags, "llvm", ""));
  assert_compiles();
}

/* -- What ends it -- */

static void memory_ends_it(void **state) {
  (void)state;
  if (KILN_SANITIZED) skip(); /* test/SKIPPED.md */
  int failed = 0;
  for (uint64_t memory = 4096; memory < (uint64_t)1 << 40; memory *= 2) {
    kiln_reason reason;
    kiln_compiled *code;
    kiln_codegen_begin(codegen, memory);
    kiln_status *status =
        kiln_codegen_compile(codegen, chain(2000), KILN_BACKEND_LLVM, &reason, &code, NULL);
    kiln_codegen_end(codegen);
    if (status) {
      assert_int_not_equal(reason, KILN_REASON_none);
      failed++;
    } else {
      assert_adds(code, 2000.0f * 2000 / 2);
      kiln_compiled_release(code);
    }
    kiln_status_destroy(status);
  }
  assert_in_range(failed, 1, 24); /* 64 GiB are enough */
}

enum { HUGE = 20000 }; /* operations: seconds of LLVM */

static void *kill_soon(void *arg) {
  pid_t pid;
  while (!(pid = find_child())) usleep(1000);
  usleep(30000);
  kill(pid, *(int *)arg);
  return NULL;
}

static void killing_ends_it(void **state) {
  (void)state;
  pthread_t thread;
  int signal = SIGKILL;
  assert_int_equal(pthread_create(&thread, NULL, kill_soon, &signal), 0);
  assert_int_equal(assert_fails(HUGE, KILN_INTERNAL), KILN_REASON_process_ended);
  pthread_join(thread, NULL);
  assert_compiles();
}

/* What is sent to the host's group, and what the host does then, is nothing to it. */
static void on_signal(int number) {
  (void)number;
  _exit(1);
}
static void other_signals_do_not(void **state) {
  (void)state;
  signal(SIGTERM, on_signal);
  kiln_codegen_begin(codegen, 0);
  assert_compiles();
  assert_int_equal(kill(find_child(), SIGTERM), 0);
  assert_int_equal(kill(find_child(), SIGINT), 0);
  const pid_t first = find_child();
  assert_compiles();
  assert_int_equal(find_child(), first);
  kiln_codegen_end(codegen);
  signal(SIGTERM, SIG_DFL);
}

static void *cancel_soon(void *arg) {
  while (!find_child()) usleep(1000);
  usleep(30000);
  kiln_call_cancel(arg);
  return NULL;
}

static void time_ends_it(void **state) {
  (void)state;
  const kiln_limits limits = {.time_ms = 150};
  kiln_loop_fn *fn = chain(HUGE);
  kiln_budget budget;
  kiln_reason reason;
  kiln_compiled *code;
  kiln_budget_begin(&budget, "the compilation", NULL, &limits);
  const double begin = now_ms();
  kiln_budget *outer = kiln_budget_enter(&budget);
  kiln_status *status = kiln_codegen_compile(codegen, fn, KILN_BACKEND_LLVM, &reason, &code, NULL);
  kiln_budget_leave(outer);
  assert_error(status, KILN_LIMIT, "150 ms");
  assert_int_equal(reason, KILN_REASON_compile_budget);
  assert_true(now_ms() - begin < 1500);
  assert_compiles();
}

static void cancelling_ends_it(void **state) {
  (void)state;
  kiln_loop_fn *fn = chain(HUGE);
  kiln_cancel *cancel;
  kiln_reason reason;
  kiln_compiled *code;
  pthread_t thread;
  assert_ok(kiln_cancel_create(&cancel));
  const kiln_limits limits = {.cancel = cancel};
  kiln_budget budget;
  kiln_budget_begin(&budget, "the compilation", NULL, &limits);
  assert_int_equal(pthread_create(&thread, NULL, cancel_soon, cancel), 0);
  kiln_budget *outer = kiln_budget_enter(&budget);
  kiln_status *status = kiln_codegen_compile(codegen, fn, KILN_BACKEND_LLVM, &reason, &code, NULL);
  kiln_budget_leave(outer);
  pthread_join(thread, NULL);
  assert_error(status, KILN_CANCELLED, NULL);
  kiln_cancel_destroy(cancel);
  assert_compiles();
}

/* -- What the host may do meanwhile -- */

/* A reader of the host's sees the end of its pipe although the process was there. */
static void keeps_no_file_open(void **state) {
  (void)state;
  int ends[2];
  char byte;
  assert_int_equal(pipe(ends), 0);
  kiln_codegen_begin(codegen, 0);
  assert_compiles();
  assert_true(find_child() > 0);
  close(ends[1]);
  assert_int_equal(read(ends[0], &byte, 1), 0);
  close(ends[0]);
  kiln_codegen_end(codegen);
}

static void children_may_be_ignored(void **state) {
  (void)state;
  signal(SIGCHLD, SIG_IGN); /* the system reaps then */
  assert_compiles();
  assert_int_equal(find_child(), 0);
  signal(SIGCHLD, SIG_DFL);
}

/* A fork of the host's, in the middle of a job, has a process of its own. */
static void forks_have_their_own(void **state) {
  (void)state;
  kiln_codegen_begin(codegen, 0);
  assert_compiles();
  const pid_t ours = find_child(), pid = fork();
  if (pid == 0) {
    kiln_reason reason;
    kiln_compiled *code;
    kiln_status *status =
        kiln_codegen_compile(codegen, chain(2), KILN_BACKEND_LLVM, &reason, &code, NULL);
    const pid_t own = find_child();
    kiln_codegen_end(codegen);
    _exit(status || own == ours || own == 0 || find_child() != 0);
  }
  int ended;
  assert_int_equal(waitpid(pid, &ended, 0), pid);
  assert_int_equal(ended, 0);
  assert_compiles();
  assert_int_equal(find_child(), ours);
  kiln_codegen_end(codegen);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(gives_the_same),
      CASE(lives_for_a_job),
      CASE(says_that_llvm_is_missing),
      CASE(memory_ends_it),
      CASE(killing_ends_it),
      CASE(other_signals_do_not),
      CASE(time_ends_it),
      CASE(cancelling_ends_it),
      CASE(keeps_no_file_open),
      CASE(children_may_be_ignored),
      CASE(forks_have_their_own),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
