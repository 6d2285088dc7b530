/* random_test.c: generators: mt19937's sequence, seeds, the number kept back, values that are none,
 * draws of several threads, and parameters for which no number can be found. */
#include <math.h>
#include <pthread.h>

#include "test/unit/runtime/run_kernel.h"

#define KERNELS(X) \
  X(Generator)     \
  X(initial_seed)  \
  X(seed)          \
  X(randperm_generator)
#define DECLARE(name) \
  kiln_status *kiln__kernel_##name(kiln_call *call, const kiln_ivalue *args, kiln_ivalue *outs);
KERNELS(DECLARE)
kiln_status *kiln__kernel_manual_seed_generator(kiln_call *call, const kiln_ivalue *args,
                                                kiln_ivalue *outs);
kiln_status *kiln__kernel_uniform_(kiln_call *call, const kiln_ivalue *args, kiln_ivalue *outs);
kiln_status *kiln__kernel_binomial(kiln_call *call, const kiln_ivalue *args, kiln_ivalue *outs);

/* The 10000th word of the default seed, by the C++ standard (rand.predef). */
static void test_sequence(void **state) {
  fixture *f = *state;
  kiln_random *g;
  assert_ok(kiln_random_create(f->env->mem, 5489, &g));
  for (int i = 1; i < 10000; i++) (void)kiln_random_u32(g);
  assert_true(kiln_random_u32(g) == 4123659995u);
  kiln_random_seed(g, 5489 + ((uint64_t)1 << 32)); /* the low 32 bits count */
  assert_true(kiln_random_u32(g) == 3499211612u);
  kiln_random_seed(g, 1);
  (void)kiln_random_normal(g);
  assert_true(g->has_normal);
  kiln_random_seed(g, 1);
  assert_false(g->has_normal);
  kiln_random_release(g);
}

static void test_generators(void **state) {
  fixture *f = *state;
  kiln_ivalue g = kiln_none(), out = kiln_none(), same = kiln_none();
  assert_ok(kiln__kernel_Generator(f->call, (kiln_ivalue[]){NONE, NONE}, &g));
  assert_ok(kiln__kernel_initial_seed(f->call, &g, &out));
  assert_true(out.u.i == 67280421310721);
  kiln_tensor *first = RUN(randperm_generator, I(20), g, I(KILN_DTYPE_I64), NONE, NONE, NONE);
  assert_ok(
      kiln__kernel_manual_seed_generator(f->call, (kiln_ivalue[]){g, I(67280421310721)}, &same));
  assert_ptr_equal(same.u.box, g.u.box);
  kiln_tensor *again = RUN(randperm_generator, I(20), g, I(KILN_DTYPE_I64), NONE, NONE, NONE);
  for (int i = 0; i < 20; i++) {
    assert_true(kiln__element_i64(first, i) == kiln__element_i64(again, i));
  }
  assert_null(f->call->random); /* the call's own was not touched */
  assert_ok(kiln__kernel_seed(f->call, &g, &out));
  assert_true((uint64_t)out.u.i == kiln_random_of(g)->seed && out.u.i != 67280421310721);
  drop(f, first);
  drop(f, again);
  kiln_ivalue_release(same);
  kiln_ivalue_release(g);
}

static void destroy_other(kiln_box *box) { kiln_mem_free(box->mem, box, sizeof *box); }
/* Another box under the same tag is no generator. */
static void test_no_generator(void **state) {
  fixture *f = *state;
  kiln_box *box = kiln_mem_alloc(f->env->mem, sizeof *box);
  assert_non_null(box);
  *box = (kiln_box){.refs = 1, .tag = KILN_TAG_OTHER, .mem = f->env->mem, .destroy = destroy_other};
  kiln_ivalue out = kiln_none(), v = kiln_of_box(box);
  assert_null(kiln_random_of(v));
  assert_error(kiln__kernel_initial_seed(f->call, &v, &out), KILN_OP_ERROR, "generator");
  kiln_ivalue_release(v);
}

enum { THREADS = 4, ROUNDS = 20, SIZE = 1000 };
typedef struct drawer {
  kiln_env *env;
  kiln_random *random;
  double sum;
} drawer;
static void *draw(void *arg) {
  drawer *d = arg;
  const int64_t size = SIZE;
  kiln_call *call;
  assert_ok(kiln_call_create(d->env, &call));
  call->random = d->random;
  kiln_tensor *t;
  assert_ok(kiln_call_tensor(call, KILN_DTYPE_F64, 1, &size, &t));
  for (int i = 0; i < ROUNDS; i++) {
    kiln_ivalue out = kiln_none();
    assert_ok(kiln__kernel_uniform_(call, (kiln_ivalue[]){T(t), F(0), F(1), NONE}, &out));
    for (int64_t k = 0; k < SIZE; k++) d->sum += kiln__element_f64(t, k);
    kiln_ivalue_release_to(&call->cache, out);
  }
  kiln_tensor_release_to(&call->cache, t);
  kiln_call_destroy(call);
  return NULL;
}
/* Together they draw the sequence, each of its numbers once. */
static void test_threads(void **state) {
  fixture *f = *state;
  kiln_random *g;
  assert_ok(kiln_random_create(f->env->mem, 3, &g));
  pthread_t threads[THREADS];
  drawer drawers[THREADS];
  double want = 0, got = 0;
  for (int i = 0; i < THREADS; i++) {
    drawers[i] = (drawer){.env = f->env, .random = g};
    assert_int_equal(pthread_create(&threads[i], NULL, draw, &drawers[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
    got += drawers[i].sum;
  }
  kiln_random_seed(g, 3);
  for (int i = 0; i < THREADS * ROUNDS * SIZE; i++) want += kiln_random_f64(g);
  assert_true(fabs(got - want) < 1e-6);
  kiln_random_release(g);
}

/* PyTorch looks for a number for ever. */
static void test_bounds(void **state) {
  fixture *f = *state;
  const int64_t size = 2;
  kiln_tensor *odd, *half;
  kiln_ivalue out = kiln_none();
  assert_ok(kiln_call_tensor(f->call, KILN_DTYPE_F64, 1, &size, &odd));
  assert_ok(kiln_call_tensor(f->call, KILN_DTYPE_F64, 1, &size, &half));
  double *x = (double *)(uintptr_t)kiln_tensor_data(odd),
         *p = (double *)(uintptr_t)kiln_tensor_data(half);
  x[0] = x[1] = NAN;
  p[0] = p[1] = 0.5;
  assert_error(kiln__kernel_binomial(f->call, (kiln_ivalue[]){T(odd), T(half), NONE}, &out),
               KILN_OP_ERROR, "no number was found in 10000 tries");
  drop(f, odd);
  drop(f, half);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_sequence, setup, teardown),
      cmocka_unit_test_setup_teardown(test_generators, setup, teardown),
      cmocka_unit_test_setup_teardown(test_no_generator, setup, teardown),
      cmocka_unit_test_setup_teardown(test_threads, setup, teardown),
      cmocka_unit_test_setup_teardown(test_bounds, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
