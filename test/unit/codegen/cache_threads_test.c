/* cache_threads_test.c: the context's cache of kernels: equal ones are made once, whoever asks, and
 * what is over its budget goes. */
#include <pthread.h>
#include <unistd.h>

#include "base/budget.h"
#include "codegen/cache.h"
#include "test/unit/codegen/codegen_support.h"

enum { THREADS = 8, KERNELS = 20 };

static fixture f;
static kiln_codegen *codegen;

static void open_codegen(const char *budget) {
  fixture_open(&f);
  assert_ok(kiln_flags_set(&f.env->flags, "code_cache", budget));
  assert_ok(kiln_codegen_create(f.env, &codegen));
}
static void close_codegen(void) {
  kiln_codegen_destroy(codegen);
  fixture_close(&f);
}

/* out = in + number */
static kiln_loop_fn *add(int number) {
  kiln_text text = kiln_text_in(f.arena);
  kiln_text_printf(&text,
                   "kernel { in b0: f32[64] [1] out b1: f32[64] [1] nest [64] {\n"
                   "%%0 = load f32 b0 + 0 [1]\n%%1 = const f32 %d.0\n%%2 = add f32 %%0, %%1\n"
                   "store f32 b1 + 0 [1], %%2 } }",
                   number);
  return parse_loop(&f, text.data, false, NULL);
}

/* Whether it had to be made. */
static bool obtain(const kiln_loop_fn *fn, kiln_backend backend, kiln_compiled **out) {
  bool made = false;
  kiln_reason reason = KILN_REASON__COUNT;
  assert_ok(kiln_codegen_compile(codegen, fn, backend, &reason, out, &made));
  assert_int_equal(reason, KILN_REASON_none);
  return made;
}
static bool obtain_number(int number) {
  kiln_compiled *code;
  const bool made = obtain(add(number), KILN_BACKEND_EVAL, &code);
  kiln_compiled_release(code);
  return made;
}

static float run_kernel(const kiln_compiled *code) {
  float in[64] = {0}, out[64];
  void *data[2] = {in, out},
       *scratch = aligned_alloc(64, (code->info.work.scratch_bytes + 64) / 64 * 64);
  const kiln_kernel_args args = {.data = data, .scratch = scratch, .closure = code->closure};
  code->fn(&args, &code->info.work.grid);
  free(scratch);
  return out[63];
}

static void equal_ones_are_one(void **state) {
  kiln_compiled *a, *b, *other;
  (void)state;
  open_codegen("1M");
  assert_true(obtain(add(3), KILN_BACKEND_EVAL, &a));
  assert_false(obtain(add(3), KILN_BACKEND_EVAL, &b));
  assert_ptr_equal(a, b);
  assert_true(obtain(add(4), KILN_BACKEND_EVAL, &other));
  assert_true(run_kernel(a) == 3 && run_kernel(other) == 4);
  kiln_compiled_release(b);
  kiln_compiled_release(other);
  assert_true(obtain(add(3), KILN_BACKEND_LLVM, &b)); /* another back end: another kernel */
  assert_int_equal(b->backend, KILN_BACKEND_LLVM);
  assert_true(run_kernel(b) == 3);
  kiln_compiled_release(a);
  kiln_compiled_release(b);
  close_codegen();
}

/* Room for some of the kernels: the longest unused go, and what is still held works on. */
static void the_longest_unused_go(void **state) {
  kiln_compiled *held;
  (void)state;
  open_codegen("1M");
  (void)obtain(add(0), KILN_BACKEND_EVAL, &held);
  const size_t one = sizeof(kiln__cache_entry) + held->code_bytes + held->object_bytes;
  kiln_compiled_release(held);
  close_codegen();
  char budget[32];
  snprintf(budget, sizeof budget, "%zu", 10 * one + one / 2);
  open_codegen(budget);
  (void)obtain(add(0), KILN_BACKEND_EVAL, &held);
  for (int i = 1; i < KERNELS; i++) {
    assert_true(obtain_number(i));
    if (i < KERNELS / 2) assert_false(obtain_number(1)); /* used again and again */
  }
  for (int i = KERNELS - 1; i >= KERNELS - 10; i--) assert_false(obtain_number(i));
  assert_true(run_kernel(held) == 0);
  kiln_compiled_release(held);
  assert_true(obtain_number(0));
  assert_false(obtain_number(KERNELS - 10)); /* the one that was used last of all: it stays */
  assert_true(obtain_number(KERNELS - 1));   /* the one that was used first of them: it went */
  close_codegen();
}

static void without_room_nothing_is_kept(void **state) {
  (void)state;
  open_codegen("0");
  const kiln_loop_fn *fn = add(5);
  kiln_compiled *code;
  const size_t before = kiln_mem_bytes(f.env->mem);
  for (int i = 0; i < 3; i++) {
    assert_true(obtain(fn, KILN_BACKEND_EVAL, &code));
    assert_true(run_kernel(code) == 5);
    kiln_compiled_release(code);
    assert_int_equal(kiln_mem_bytes(f.env->mem), before);
  }
  close_codegen();
}

typedef struct asking {
  pthread_t thread;
  const kiln_loop_fn *fns[KERNELS];
  kiln_status *status;
  int made;
} asking;

static void *ask(void *arg) {
  asking *a = arg;
  for (int i = 0; i < KERNELS && !a->status; i++) {
    kiln_reason reason;
    kiln_compiled *code = NULL;
    bool made = false;
    a->status = kiln_codegen_compile(codegen, a->fns[i], KILN_BACKEND_LLVM, &reason, &code, &made);
    a->made += made;
    kiln_compiled_release(code);
  }
  return NULL;
}

static void threads_make_each_once(void **state) {
  static asking a[THREADS];
  int made = 0;
  (void)state;
  memset(a, 0, sizeof a);
  open_codegen("32M");
  kiln_codegen_begin(codegen, 0);
  for (int t = 0; t < THREADS; t++) {
    for (int k = 0; k < KERNELS; k++) a[t].fns[k] = add(t % 2 ? k : KERNELS - 1 - k);
  }
  for (int t = 0; t < THREADS; t++) {
    assert_int_equal(pthread_create(&a[t].thread, NULL, ask, &a[t]), 0);
  }
  for (int t = 0; t < THREADS; t++) {
    pthread_join(a[t].thread, NULL);
    assert_ok(a[t].status);
    made += a[t].made;
  }
  assert_int_equal(made, KERNELS);
  kiln_codegen_end(codegen);
  close_codegen();
}

/* -- One entry, held by this thread -- */

static kiln__cache cache;
static const kiln_digest key = {1, 2};

static void *wait_in_vain(void *arg) {
  kiln_status **out_status = arg;
  kiln__cache_entry *entry;
  kiln_budget budget;
  kiln_budget_begin(&budget, "the wait", NULL, &(kiln_limits){.time_ms = 1});
  kiln_budget *outer = kiln_budget_enter(&budget);
  *out_status = kiln__cache_enter(&cache, key, &entry);
  kiln_budget_leave(outer);
  return NULL;
}

/* Who waits for another thread's kernel does so under its own budget; an entry that came to nothing
 * goes, and one that others use stays. */
static void waiting_ends_with_the_budget(void **state) {
  kiln__cache_entry *entry, *other;
  kiln_status *status = NULL;
  pthread_t thread;
  (void)state;
  fixture_open(&f);
  const size_t before = kiln_mem_bytes(f.env->mem);
  kiln__cache_init(&cache, f.env, 1000);
  assert_ok(kiln__cache_enter(&cache, key, &entry));
  assert_ok(kiln__cache_enter(&cache, (kiln_digest){1, 3}, &other)); /* it waits for nobody */
  assert_int_equal(pthread_create(&thread, NULL, wait_in_vain, &status), 0);
  pthread_join(thread, NULL);
  assert_error(status, KILN_LIMIT, NULL);
  assert_int_equal(entry->users, 1);
  kiln__cache_leave(&cache, entry);
  kiln__cache_leave(&cache, other);
  assert_int_equal(kiln_mem_bytes(f.env->mem), before);
  kiln__cache_deinit(&cache);
  fixture_close(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(equal_ones_are_one),           cmocka_unit_test(the_longest_unused_go),
      cmocka_unit_test(without_room_nothing_is_kept), cmocka_unit_test(threads_make_each_once),
      cmocka_unit_test(waiting_ends_with_the_budget),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
