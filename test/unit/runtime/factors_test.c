/* factors_test.c: factorisations of matrices by their definitions: the factors multiply to the
 * matrix, vectors are orthonormal, A v = w v. Signs of vectors are free, so recorded results would
 * not do. */
#include <math.h>
#include <stdlib.h>

#include "runtime/kernels/linalg.h"
#include "test/unit/unit.h"

enum { MOST = 24, KINDS = 6 };

static double next_random(void) {
  static uint64_t s = 88172645463325252ull;
  s ^= s << 13;
  s ^= s >> 7;
  s ^= s << 17;
  return (double)(s >> 11) * 0x1p-52 - 1;
}
/* Real, complex, of rank 1, zero, graded over 20 orders of magnitude, with repeated rows. */
static void make(z *a, int64_t m, int64_t n, int kind) {
  for (int64_t i = 0; i < m * n; i++) {
    a[i] = (z){next_random(), kind == 1 ? next_random() : 0};
    if (kind == 2) a[i] = (z){(double)(i / n + 1) * (double)(i % n - 2), 0};
    if (kind == 3) a[i] = (z){0, 0};
    if (kind == 4) a[i].re *= pow(10, -20.0 * (double)(i / n) / (double)m);
    if (kind == 5) a[i] = (z){(double)(i % n), 1};
  }
}
static double size_of(const z *a, int64_t n) {
  double most = 1e-300;
  for (int64_t i = 0; i < n; i++) most = fmax(most, sqrt(z_size2(a[i])));
  return most;
}
static void assert_near(const z *a, const z *b, int64_t n, double scale, const char *what) {
  for (int64_t i = 0; i < n; i++) {
    const double gap = sqrt(z_size2(z_sub(a[i], b[i])));
    if (!(gap <= 1e-11 * scale)) {
      fail_msg("%s: element %d of %d is off by %g", what, (int)i, (int)n, gap);
    }
  }
}
/* a [m, n] times its adjoint (rows) is the identity. */
static void assert_orthonormal(const z *a, int64_t m, int64_t n, const char *what) {
  static z product[MOST * MOST], one[MOST * MOST];
  kiln__la_multiply(product, a, false, a, true, m, n, m);
  kiln__la_identity(one, m);
  assert_near(product, one, m * m, 1, what);
}

static z a[MOST * MOST], kept[MOST * MOST], u[MOST * MOST], v[MOST * MOST], t[MOST * MOST];
static z room[2 * MOST * MOST + 2 * MOST];

static void test_singular_values(void **state) {
  (void)state;
  double s[MOST];
  for (int kind = 0; kind < KINDS; kind++) {
    for (int64_t m = 1; m <= 20; m += 3) {
      for (int64_t n = m; n <= 24; n += 5) {
        make(a, m, n, kind);
        memcpy(kept, a, sizeof a);
        kiln__la_svd(a, m, n, s, u);
        for (int64_t i = 0; i < m; i++) {
          assert_true(s[i] >= 0 && (i == 0 || s[i] <= s[i - 1]));
          for (int64_t j = 0; j < m; j++) t[j * m + i] = (z){u[j * m + i].re * s[i], u[j * m + i].im * s[i]};
        }
        assert_orthonormal(u, m, m, "u");
        assert_orthonormal(a, m, n, "vh");
        kiln__la_multiply(v, t, false, a, false, m, m, n);
        assert_near(v, kept, m * n, size_of(kept, m * n) * (double)n, "u s vh");
      }
    }
  }
}
static void test_hermitian(void **state) {
  (void)state;
  double w[MOST];
  for (int kind = 0; kind < KINDS; kind++) {
    for (int64_t n = 1; n <= MOST; n++) {
      make(a, n, n, kind);
      for (int64_t i = 0; i < n * n; i++) {
        const int64_t row = i / n, c = i % n;
        if (row == c) a[i].im = 0;
        if (row < c) a[i] = z_conj(a[c * n + row]);
      }
      for (int64_t i = 0; i < n * n; i++) {
        if (i / n < i % n) a[i] = z_conj(a[i % n * n + i / n]);
      }
      memcpy(kept, a, sizeof a);
      kiln__la_eigh(a, n, w, v);
      kiln__la_multiply(t, kept, false, v, false, n, n, n);
      for (int64_t i = 0; i < n * n; i++) {
        const double x = w[i % n];
        assert_true(i % n == 0 || w[i % n] >= w[i % n - 1]);
        u[i] = (z){v[i].re * x, v[i].im * x};
      }
      assert_near(t, u, n * n, size_of(kept, n * n) * (double)n, "a v = w v");
      assert_orthonormal(v, n, n, "v");
    }
  }
}
static void test_any(void **state) {
  (void)state;
  z w[MOST];
  for (int kind = 0; kind < KINDS; kind++) {
    for (int64_t n = 1; n <= MOST; n++) {
      make(a, n, n, kind);
      memcpy(kept, a, sizeof a);
      assert_true(kiln__la_eig(a, n, w, v, room));
      kiln__la_multiply(t, kept, false, v, false, n, n, n);
      z trace = {0, 0}, sum = {0, 0};
      for (int64_t i = 0; i < n * n; i++) {
        u[i] = z_mul(v[i], w[i % n]);
        if (i % (n + 1) == 0) trace = z_add(trace, kept[i]), sum = z_add(sum, w[i % n]);
      }
      const double scale = size_of(kept, n * n) * (double)n;
      assert_near(t, u, n * n, 100 * scale, "a v = v w");
      assert_near(&trace, &sum, 1, 100 * scale, "trace");
    }
  }
}
static void test_reflectors(void **state) {
  (void)state;
  z tau[MOST];
  for (int kind = 0; kind < KINDS; kind++) {
    for (int64_t m = 1; m <= 20; m += 3) {
      for (int64_t n = 1; n <= 20; n += 4) {
        const int64_t k = m < n ? m : n;
        make(a, m, n, kind);
        memcpy(kept, a, sizeof a);
        kiln__la_qr(a, m, n, tau);
        kiln__la_make_q(a, m, n, tau, k, u, m);
        for (int64_t i = 0; i < m * n; i++) v[i] = i / n <= i % n ? a[i] : (z){0, 0};
        kiln__la_multiply(t, u, false, v, false, m, m, n);
        assert_near(t, kept, m * n, size_of(kept, m * n) * (double)m, "q r");
        assert_orthonormal(u, m, m, "q");
      }
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_singular_values),
      cmocka_unit_test(test_hermitian),
      cmocka_unit_test(test_any),
      cmocka_unit_test(test_reflectors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
