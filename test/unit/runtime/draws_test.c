/* draws_test.c: operators that draw numbers, by the moments of many, and what they refuse.
 * PyTorch's numbers themselves are in test/data/kernels/draws.txt. Limits are five deviations of
 * the estimate. */
#include <math.h>

#include "test/unit/runtime/run_kernel.h"

enum { N = 20000 };

/* [rows, N / rows] of one number. */
static kiln_tensor *filled(fixture *f, kiln_dtype dtype, int64_t rows, double value) {
  const int64_t sizes[2] = {rows, N / rows};
  kiln_tensor *t;
  void *data;
  assert_ok(kiln_call_tensor(f->call, dtype, 2, sizes, &t));
  assert_ok(kiln_tensor_writable_data(t, &data));
  for (int64_t i = 0; i < N; i++) {
    kiln__number_store(kiln__number_float(value), dtype,
                       (char *)data + (size_t)i * kiln_dtype_bytes(dtype));
  }
  return t;
}
typedef struct moments {
  double mean, variance, least, most;
  int64_t zeros;
} moments;
static moments moments_of(const kiln_tensor *t) {
  moments m = {0, 0, INFINITY, -INFINITY, 0};
  double square = 0;
  for (int64_t i = 0; i < t->numel; i++) {
    const double x = kiln__element_f64(t, i);
    m.mean += x / (double)t->numel;
    square += x * x / (double)t->numel;
    m.least = fmin(m.least, x);
    m.most = fmax(m.most, x);
    m.zeros += x == 0;
  }
  m.variance = square - m.mean * m.mean;
  return m;
}
/* The mean of count numbers of that mean and variance is near it. */
static void assert_mean(double got, double mean, double variance, double count) {
  if (!(fabs(got - mean) <= 5 * sqrt(variance / count) + 1e-12)) {
    fail_msg("the mean is %g, not %g", got, mean);
  }
}
static void test_whole(void **state) {
  fixture *f = *state;
  kiln_tensor *t = filled(f, KILN_DTYPE_I64, 1, 0), *same = RUN(random_from_, T(t), I(-3), I(5));
  moments m = moments_of(t);
  assert_ptr_equal(same, t);
  assert_true(m.least == -3 && m.most == 4);
  assert_mean(m.mean, 0.5, 63.0 / 12, N);
  drop(f, RUN(random_to_, T(t), I(4)));
  m = moments_of(t);
  assert_true(m.least == 0 && m.most == 3);
  kiln_tensor *like =
      RUN(randint_like_low, T(t), I(2), I(4), I(KILN_DTYPE_F32), NONE, NONE, NONE, NONE);
  m = moments_of(like);
  assert_true(m.least == 2 && m.most == 3 && kiln_tensor_dtype(like) == KILN_DTYPE_F32);
  drop(f, like);
  like = RUN(randint_like, T(t), I(2), NONE, NONE, NONE, NONE, NONE);
  m = moments_of(like);
  assert_true(m.least == 0 && m.most == 1);
  kiln_tensor *bytes = filled(f, KILN_DTYPE_U8, 1, 0);
  drop(f, RUN(random_, T(bytes)));
  m = moments_of(bytes);
  assert_true(m.least == 0 && m.most == 255);
  drop(f, bytes);
  drop(f, like);
  drop(f, t);
  drop(f, t); /* `same` */
}
static void test_real(void **state) {
  fixture *f = *state;
  kiln_tensor *t = filled(f, KILN_DTYPE_F64, 1, 4);
  kiln_tensor *got = RUN(normal_Tensor_float, T(t), F(3));
  moments m = moments_of(got);
  assert_mean(m.mean, 4, 9, N);
  assert_mean(m.variance, 9, 2 * 81, N);
  drop(f, got);
  got = RUN(normal_float_Tensor, F(-1), T(t));
  m = moments_of(got);
  assert_mean(m.mean, -1, 16, N);
  assert_mean(m.variance, 16, 2 * 256, N);
  drop(f, got);
  got = RUN(normal_Tensor_Tensor, T(t), T(t));
  m = moments_of(got);
  assert_mean(m.variance, 16, 2 * 256, N);
  drop(f, got);
  got = RUN(poisson, T(t));
  m = moments_of(got);
  assert_mean(m.mean, 4, 4, N);
  assert_mean(m.variance, 4, 4 + 2 * 16, N);
  drop(f, got);
  got = RUN(_standard_gamma, T(t));
  m = moments_of(got);
  assert_mean(m.mean, 4, 4, N);
  drop(f, got);
  drop(f, RUN(geometric_, T(t), F(0.25)));
  m = moments_of(t);
  assert_true(m.least == 1);
  assert_mean(m.mean, 4, 0.75 / 0.0625, N);
  drop(f, RUN(log_normal_, T(t), F(0), F(0.5)));
  m = moments_of(t);
  assert_mean(m.mean, exp(0.125), (exp(0.25) - 1) * exp(0.25), N);
  drop(f, RUN(cauchy_, T(t), F(1), F(2)));
  int64_t below = 0; /* of the quarter below median - sigma */
  for (int64_t i = 0; i < N; i++) below += kiln__element_f64(t, i) < -1;
  assert_mean((double)below / (double)N, 0.25, 0.1875, N);
  drop(f, t);
}
static void test_counts(void **state) {
  fixture *f = *state;
  kiln_tensor *count = filled(f, KILN_DTYPE_F32, 1, 10), *p = filled(f, KILN_DTYPE_F32, 1, 0.3);
  kiln_tensor *got = RUN(binomial, T(count), T(p));
  moments m = moments_of(got);
  assert_mean(m.mean, 3, 2.1, N);
  assert_true(m.most <= 10);
  drop(f, got);
  drop(f, RUN(bernoulli_Tensor_, T(count), T(p)));
  m = moments_of(count);
  assert_mean(m.mean, 0.3, 0.21, N);
  drop(f, count);
  kiln_tensor *alpha = filled(f, KILN_DTYPE_F32, N / 4, 2);
  got = RUN(_sample_dirichlet, T(alpha));
  for (int64_t i = 0; i < N; i += 4) {
    double sum = 0;
    for (int64_t k = 0; k < 4; k++) sum += kiln__element_f64(got, i + k);
    assert_true(fabs(sum - 1) < 1e-5);
  }
  drop(f, got);
  drop(f, alpha);
  drop(f, p);
}
/* Weights 0, 1, 2, 3 of each row. */
static void test_classes(void **state) {
  fixture *f = *state;
  kiln_tensor *weights = filled(f, KILN_DTYPE_F32, N / 4, 0);
  int64_t seen[4] = {0};
  for (int64_t i = 0; i < N; i++) {
    ((float *)(uintptr_t)kiln_tensor_data(weights))[i] = (float)(i % 4);
  }
  kiln_tensor *got = RUN(multinomial, T(weights), I(8), B(true));
  assert_int_equal(got->numel, 2 * N);
  for (int64_t i = 0; i < got->numel; i++) seen[kiln__element_i64(got, i)]++;
  assert_int_equal(seen[0], 0);
  for (int k = 1; k < 4; k++) assert_mean((double)seen[k] / (2 * N), k / 6.0, 0.25, 2 * N);
  drop(f, got);
  got = RUN(multinomial, T(weights), I(3), B(false));
  int64_t first = 0;
  for (int64_t i = 0; i < got->numel; i += 3) { /* each once, without class 0 */
    int64_t set = 0;
    for (int64_t k = 0; k < 3; k++) set |= 1 << kiln__element_i64(got, i + k);
    assert_int_equal(set, 14);
    first += kiln__element_i64(got, i) == 3;
  }
  assert_mean((double)first / (N / 4), 0.5, 0.25, N / 4);
  drop(f, got);
  drop(f, weights);
}
static void test_layers(void **state) {
  fixture *f = *state;
  kiln_tensor *t = filled(f, KILN_DTYPE_F64, N / 10, -2), *mask, *got;
  got = RUN(rrelu, T(t), F(0.25), F(0.75), B(true));
  moments m = moments_of(got);
  assert_true(m.least >= -1.5 && m.most <= -0.5);
  assert_mean(m.mean, -1, 4 * 0.25 / 12, N);
  drop(f, got);
  kiln_tensor *noise = filled(f, KILN_DTYPE_F64, N / 10, 9);
  got = RUN(rrelu_with_noise, T(t), T(noise), F(0.25), F(0.75), B(true));
  for (int64_t i = 0; i < N; i++) {
    assert_true(kiln__element_f64(got, i) == -2 * kiln__element_f64(noise, i));
  }
  drop(f, got);
  drop(f, noise);
  /* Of standard normal numbers mean and variance stay. */
  kiln_tensor *x = RUN(normal_Tensor_float, T(t), F(1));
  kiln_tensor *plus = filled(f, KILN_DTYPE_F64, N / 10, 2);
  got = RUN(add, T(x), T(plus), I(1));
  drop(f, x);
  x = got;
  got = RUN(alpha_dropout, T(x), F(0.3), B(true));
  m = moments_of(got);
  assert_mean(m.mean, 0, 1, N);
  assert_mean(m.variance, 1, 4, N);
  drop(f, got);
  got = RUN(feature_alpha_dropout, T(x), F(0.3), B(true)); /* two dimensions: as above */
  m = moments_of(got);
  assert_mean(m.mean, 0, 1, N);
  drop(f, got);
  got = run(f, KILN_BODY_OF(native_dropout), 2, 3, (const kiln_ivalue[]){T(plus), F(0.25), NONE},
            &mask);
  m = moments_of(got);
  assert_mean(m.mean, 2, 4 * 0.25 / 0.75, N);
  for (int64_t i = 0; i < N; i++) {
    assert_true((kiln__element_i64(mask, i) != 0) == (kiln__element_f64(got, i) != 0));
  }
  drop(f, got);
  drop(f, mask);
  drop(f, plus);
  drop(f, x);
  drop(f, t);
}

/* -- random.c -- */

static void test_uniform(void **state) {
  fixture *f = *state;
  kiln_list *list = NULL;
  assert_ok(kiln__new_list(f->call, KILN_TYPE_INT, 1, &list));
  assert_ok(kiln_list_push(list, kiln_int(N)));
  const kiln_ivalue size = kiln_of_box(list);
  kiln_tensor *t = RUN(rand, size, NONE, NONE, NONE, NONE);
  moments m = moments_of(t);
  assert_true(m.least >= 0 && m.most <= 1 && t->numel == N);
  assert_mean(m.mean, 0.5, 1.0 / 12, N);
  drop(f, t);
  t = RUN(randn, size, I(KILN_DTYPE_F64), NONE, NONE, NONE);
  m = moments_of(t);
  assert_mean(m.mean, 0, 1, N);
  assert_mean(m.variance, 1, 2, N);
  drop(f, t);
  t = RUN(normal_float_float, F(5), F(2), size, NONE, NONE, NONE, NONE, NONE);
  m = moments_of(t);
  assert_mean(m.mean, 5, 4, N);
  drop(f, t);
  t = RUN(randint, I(7), size, I(KILN_DTYPE_I64), NONE, NONE, NONE);
  m = moments_of(t);
  assert_true(m.least == 0 && m.most == 6);
  assert_mean(m.mean, 3, 4, N);
  drop(f, t);
  t = RUN(randint_low, I(-2), I(2), size, I(KILN_DTYPE_I32), NONE, NONE, NONE);
  m = moments_of(t);
  assert_true(m.least == -2 && m.most == 1 && kiln_tensor_dtype(t) == KILN_DTYPE_I32);
  drop(f, t);
  t = RUN(randperm, I(N), NONE, NONE, NONE, NONE);
  static uint8_t seen[N + 1];
  int64_t fixed = 0;
  for (int64_t i = 0; i < N; i++) {
    const int64_t x = kiln__element_i64(t, i);
    assert_true(x >= 0 && x < N && !seen[x]++);
    fixed += x == i;
  }
  assert_true(fixed < 10); /* one, on average */
  drop(f, t);
  kiln_ivalue_release(size);
}
static void test_like(void **state) {
  fixture *f = *state;
  kiln_tensor *t = filled(f, KILN_DTYPE_F64, 4, 0.25);
  kiln_tensor *got = RUN(rand_like, T(t), NONE, NONE, NONE, NONE, NONE);
  moments m = moments_of(got);
  assert_mean(m.mean, 0.5, 1.0 / 12, N);
  assert_int_equal(kiln_tensor_rank(got), 2);
  drop(f, got);
  got = RUN(randn_like, T(t), NONE, NONE, NONE, NONE, NONE);
  m = moments_of(got);
  assert_mean(m.variance, 1, 2, N);
  drop(f, got);
  got = RUN(bernoulli, T(t), NONE);
  m = moments_of(got);
  assert_mean(m.mean, 0.25, 0.1875, N);
  drop(f, got);
  got = RUN(bernoulli_p, T(t), F(0.75), NONE);
  m = moments_of(got);
  assert_mean(m.mean, 0.75, 0.1875, N);
  drop(f, got);
  drop(f, RUN(bernoulli_float_, T(t), F(0.1), NONE));
  m = moments_of(t);
  assert_mean(m.mean, 0.1, 0.09, N);
  drop(f, RUN(uniform_, T(t), F(-1), F(3), NONE));
  m = moments_of(t);
  assert_true(m.least >= -1 && m.most <= 3);
  assert_mean(m.mean, 1, 16.0 / 12, N);
  drop(f, RUN(normal_, T(t), F(2), F(3), NONE));
  m = moments_of(t);
  assert_mean(m.mean, 2, 9, N);
  assert_mean(m.variance, 9, 2 * 81, N);
  drop(f, RUN(exponential_, T(t), F(0.5), NONE));
  m = moments_of(t);
  assert_true(m.least >= 0);
  assert_mean(m.mean, 2, 4, N);
  drop(f, t);
  t = filled(f, KILN_DTYPE_F32, N / 2, 3);
  got = RUN(feature_dropout, T(t), F(0.5), B(true));
  m = moments_of(got);
  assert_true(m.least == 0 && m.most == 6);
  assert_mean(m.mean, 3, 9, N);
  drop(f, got);
  drop(f, t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_whole, setup, teardown),
      cmocka_unit_test_setup_teardown(test_real, setup, teardown),
      cmocka_unit_test_setup_teardown(test_counts, setup, teardown),
      cmocka_unit_test_setup_teardown(test_classes, setup, teardown),
      cmocka_unit_test_setup_teardown(test_layers, setup, teardown),
      cmocka_unit_test_setup_teardown(test_uniform, setup, teardown),
      cmocka_unit_test_setup_teardown(test_like, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
