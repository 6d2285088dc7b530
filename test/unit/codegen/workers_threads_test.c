/* workers_threads_test.c: threads that compile at the same time in one codegen, with LLVM here and
 * in processes: nobody waits for another's kernel, and all give what one thread gives; and
 * contexts that open LLVM at the same time. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sanitize.h"
#include "codegen/codegen.h"
#include "test/unit/codegen/codegen_support.h"

enum { THREADS = 4, KERNELS = 6, LONG = 5500 };

static fixture f;
static kiln_codegen *codegen;

static void open_codegen(bool apart) {
  fixture_open(&f);
  if (apart) assert_ok(kiln_flags_set(&f.env->flags, "compile_process", "on"));
  assert_ok(kiln_codegen_create(f.env, &codegen));
}
static void close_codegen(void) {
  kiln_codegen_destroy(codegen);
  assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
  fixture_close(&f);
}

/* out = in + `first` + 0 + 1 + ...: `length` numbers in all. */
static kiln_loop_fn *sum(int first, int length) {
  kiln_text text = kiln_text_in(f.arena);
  kiln_text_puts(&text, "kernel { in b0: f32[64] [1] out b1: f32[64] [1] nest [64] {\n"
                        "%0 = load f32 b0 + 0 [1]\n");
  for (int i = 0; i < length; i++) {
    kiln_text_printf(&text, "%%%d = const f32 %d.0\n%%%d = add f32 %%%d, %%%d\n", 2 * i + 1,
                     i ? i - 1 : first, 2 * i + 2, 2 * i, 2 * i + 1);
  }
  kiln_text_printf(&text, "store f32 b1 + 0 [1], %%%d } }", 2 * length);
  return parse_loop(&f, text.data, false, NULL);
}

typedef struct compiling {
  pthread_t thread;
  const kiln_loop_fn *fns[KERNELS];
  int count;
  int done;            /* atomic */
  kiln_status *status; /* of the first that failed */
  kiln_compiled *codes[KERNELS];
} compiling;

static void *compile(void *arg) {
  compiling *c = arg;
  kiln_reason reason;
  for (int i = 0; i < c->count && !c->status; i++) {
    c->status =
        kiln_codegen_compile(codegen, c->fns[i], KILN_BACKEND_LLVM, &reason, &c->codes[i], NULL);
    __atomic_add_fetch(&c->done, 1, __ATOMIC_RELEASE);
  }
  return NULL;
}

static float run(kiln_compiled *code) {
  float in[64] = {0}, out[64];
  void *data[2] = {in, out};
  const kiln_kernel_args args = {.data = data};
  code->fn(&args, &code->info.work.grid);
  kiln_compiled_release(code);
  return out[63];
}

static void all_at_once(bool apart) {
  static compiling c[THREADS];
  memset(c, 0, sizeof c);
  open_codegen(apart);
  for (int t = 0; t < THREADS; t++) {
    c[t].count = KERNELS;
    for (int k = 0; k < KERNELS; k++) c[t].fns[k] = sum(100 * t + k, 3);
  }
  kiln_codegen_begin(codegen, 0);
  for (int t = 0; t < THREADS; t++) {
    assert_int_equal(pthread_create(&c[t].thread, NULL, compile, &c[t]), 0);
  }
  for (int t = 0; t < THREADS; t++) {
    pthread_join(c[t].thread, NULL);
    assert_ok(c[t].status);
    for (int k = 0; k < KERNELS; k++) {
      assert_true(run(c[t].codes[k]) == (float)(100 * t + k + 1));
    }
  }
  kiln_codegen_end(codegen);
  close_codegen();
}

/* A kernel that takes long is not done when another one is, that was begun later. */
static void a_long_one_holds_nobody_up(bool apart) {
  static compiling slow;
  compiling quick = {.count = 1};
  slow = (compiling){.count = 1};
  open_codegen(apart);
  slow.fns[0] = sum(7, LONG);
  quick.fns[0] = sum(5, 2);
  kiln_codegen_begin(codegen, 0);
  assert_int_equal(pthread_create(&slow.thread, NULL, compile, &slow), 0);
  usleep(50000); /* it is in LLVM then, and for a second */
  compile(&quick);
  assert_ok(quick.status);
  assert_int_equal(__atomic_load_n(&slow.done, __ATOMIC_ACQUIRE), 0);
  assert_true(run(quick.codes[0]) == 5);
  pthread_join(slow.thread, NULL);
  assert_ok(slow.status);
  assert_true(run(slow.codes[0]) == 7 + (float)(LONG - 1) * (LONG - 2) / 2);
  kiln_codegen_end(codegen);
  close_codegen();
}

/* Contexts that open LLVM at the same moment: for a CPU, and for a GPU. */
typedef struct opening {
  pthread_t thread;
  fixture f;
  bool gpu;
  kiln_str ptx;
  kiln_status *status;
  kiln_compiled *code;
} opening;

static kiln_status *open_one(opening *o) {
  const char *text = "kernel { in b0: f32[64] [1] out b1: f32[64] [1] nest [64] {\n"
                     "%0 = load f32 b0 + 0 [1]\n %1 = const f32 9\n %2 = add f32 %0, %1\n"
                     "store f32 b1 + 0 [1], %2 } }";
  kiln_codegen *own;
  kiln_loop_fn *fn;
  kiln_reason reason;
  KILN_TRY(kiln_codegen_create(o->f.env, &own));
  kiln_status *status = kiln_loop_parse(kiln_str_from(text), o->f.arena, &fn);
  if (!status && !o->gpu)
    status = kiln_codegen_compile(own, fn, KILN_BACKEND_LLVM, &reason, &o->code, NULL);
  if (!status && o->gpu) status = kiln_codegen_dump(own, fn, KILN_STAGE_PTX, o->f.arena, &o->ptx);
  kiln_codegen_destroy(own);
  return status;
}
static kiln_status *open_protected(opening *o) { KILN_PROTECT(open_one(o)); }
static void *open_thread(void *arg) {
  opening *o = arg;
  o->status = open_protected(o);
  return NULL;
}

static void contexts_open_at_once(void **state) {
  (void)state;
  static opening o[THREADS];
  for (int t = 0; t < THREADS; t++) {
    o[t].gpu = t % 2;
    fixture_open(&o[t].f);
  }
  for (int t = 0; t < THREADS; t++)
    assert_int_equal(pthread_create(&o[t].thread, NULL, open_thread, &o[t]), 0);
  for (int t = 0; t < THREADS; t++) {
    pthread_join(o[t].thread, NULL);
    assert_ok(o[t].status);
    if (o[t].gpu) assert_non_null(strstr(o[t].ptx.data, ".entry"));
    if (!o[t].gpu) assert_true(run(o[t].code) == 9);
    fixture_close(&o[t].f);
  }
}

static void threads_compile_here(void **state) { (void)state, all_at_once(false); }
static void threads_compile_apart(void **state) {
  (void)state;
  if (KILN_ASAN) skip(); /* test/SKIPPED.md */
  all_at_once(true);
}
static void nobody_waits_here(void **state) { (void)state, a_long_one_holds_nobody_up(false); }
static void nobody_waits_apart(void **state) {
  (void)state;
  if (KILN_ASAN) skip();
  a_long_one_holds_nobody_up(true);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(contexts_open_at_once), /* first: LLVM is not open yet */
      cmocka_unit_test(threads_compile_here),  cmocka_unit_test(threads_compile_apart),
      cmocka_unit_test(nobody_waits_here),     cmocka_unit_test(nobody_waits_apart),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
