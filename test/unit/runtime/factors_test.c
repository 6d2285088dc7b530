/* factors_test.c: factorisations of matrices by their definitions: the factors multiply to the
 * matrix, vectors are orthonormal, A v = w v. Signs are in test/data/kernels/torch2.txt, those of
 * matrices that are divided in test/data/runtime/signs.txt. */
#include <math.h>

#include "runtime/kernels/linalg/linalg.h"
#include "runtime/kernels/linalg/divide.h"
#include "test/unit/runtime/run_kernel.h"
#include "test/unit/runtime/tables.h"

enum { MOST = 24, LARGE = 130, KINDS = 12 };

static double next_random(void) {
  static uint64_t s = 88172645463325252ull;
  s ^= s << 13;
  s ^= s >> 7;
  s ^= s << 17;
  return (double)(s >> 11) * 0x1p-52 - 1;
}
/* Real, complex, of rank 1, zero, graded over 20 orders of magnitude, with repeated rows; the
 * identity, values in clusters, bidiagonal in parts, tiny and huge, graded over 200 orders. */
static void make(z *a, int64_t m, int64_t n, int kind) {
  for (int64_t i = 0; i < m * n; i++) {
    a[i] = (z){next_random(), kind == 1 ? next_random() : 0};
    if (kind == 2) a[i] = (z){(double)(i / n + 1) * (double)(i % n - 2), 0};
    if (kind == 3) a[i] = (z){0, 0};
    if (kind == 4) a[i].re *= pow(10, -20.0 * (double)(i / n) / (double)m);
    if (kind == 5) a[i] = (z){(double)(i % n), 1};
    if (kind == 6) a[i] = (z){i / n == i % n, 0};
    if (kind == 7) a[i].re = a[i].re * 1e-14 + (double)(i / n == i % n) * (double)(1 + i % 3);
    if (kind == 8 && (i % n - i / n > 1 || i % n < i / n || i % n % 9 == 8)) a[i].re = 0;
    if (kind == 9) a[i].re *= 1e-310;
    if (kind == 10) a[i].re *= 1e300;
    if (kind == 11) a[i].re *= pow(10, -200.0 * (double)(i / n) / (double)m);
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
  static z product[LARGE * LARGE], one[LARGE * LARGE];
  kiln__la_multiply(product, a, false, a, true, m, n, m);
  kiln__la_identity(one, m);
  assert_near(product, one, m * m, 1, what);
}

typedef z matrix[LARGE * LARGE];
static z room[8 * LARGE * LARGE];

static bool is_real(int kind) { return kind != 1 && kind != 5; }
static void check_singular(const kiln__la_svd_task *task, int kind) {
  static matrix a, kept, left, turned, right, product;
  const int64_t m = task->m, n = task->n, columns = task->full ? m : n;
  double s[LARGE];
  make(a, m, n, kind);
  memcpy(kept, a, sizeof a);
  assert_true(kiln__la_svd_room(task) <= (int64_t)(sizeof room / sizeof *room));
  assert_true(kiln__la_svd(task, a, s, left, right, room));
  for (int64_t i = 0; i < n; i++) {
    assert_true(s[i] >= 0 && (i == 0 || s[i] <= s[i - 1]));
    for (int64_t k = 0; k < m; k++) {
      const z x = left[k * columns + i];
      turned[k * n + i] = (z){x.re * s[i], x.im * s[i]};
    }
  }
  kiln__la_multiply(product, turned, false, right, false, m, n, n);
  const double scale = size_of(kept, m * n) * (double)m * (task->single ? 1e5 : 1);
  assert_near(product, kept, m * n, scale, "left s right");
  assert_orthonormal(right, n, n, "right");
  for (int64_t i = 0; i < m * columns; i++) {
    turned[i % columns * m + i / columns] = z_conj(left[i]);
  }
  assert_orthonormal(turned, columns, m, "left");
}
static void test_singular_values(void **state) {
  (void)state;
  for (int kind = 0; kind < KINDS; kind++) {
    for (int form = 0; form < 8; form++) { /* full, wide, in single precision */
      for (int64_t n = 1; n <= 20; n += 3) {
        for (int64_t m = n; m <= MOST; m += 5) {
          check_singular(&(kiln__la_svd_task){m, n, form & 1, form & 2, is_real(kind), form & 4},
                         kind);
        }
      }
      for (int64_t n = 26; n <= 60; n += n) {
        check_singular(
            &(kiln__la_svd_task){n + n / 5, n, form & 1, form & 2, is_real(kind), form & 4}, kind);
        check_singular(&(kiln__la_svd_task){n, n, form & 1, form & 2, is_real(kind), form & 4},
                       kind);
      }
    }
  }
}
static void check_hermitian(int64_t n, int kind, bool single) {
  static matrix a, kept, u, v, t;
  double w[LARGE];
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
  assert_true(kiln__la_eigh_room(n, true) <= (int64_t)(sizeof room / sizeof *room));
  assert_true(kiln__la_eigh(a, n, n % 2, single, w, v, room));
  kiln__la_multiply(t, kept, false, v, false, n, n, n);
  for (int64_t i = 0; i < n * n; i++) {
    const double x = w[i % n];
    assert_true(i % n == 0 || w[i % n] >= w[i % n - 1]);
    u[i] = (z){v[i].re * x, v[i].im * x};
  }
  assert_near(t, u, n * n, size_of(kept, n * n) * (double)n * (single ? 1e5 : 1), "a v = w v");
  assert_orthonormal(v, n, n, "v");
}
static void test_hermitian(void **state) {
  (void)state;
  for (int kind = 0; kind < KINDS; kind++) {
    for (int64_t n = 1; n <= MOST; n++) check_hermitian(n, kind, false);
    for (int64_t n = 26; n <= 60; n += 13) {
      check_hermitian(n, kind, false);
      check_hermitian(n, kind, true);
    }
  }
}
/* What is not a number ends, and is told where a leaf does not get it apart. */
static void test_not_finite(void **state) {
  (void)state;
  static matrix a, left, right;
  double s[LARGE];
  for (int64_t at = 0; at < 60; at++) {
    make(a, 60, 60, 0);
    a[at * 61].re = NAN;
    assert_false(kiln__la_svd(&(kiln__la_svd_task){60, 60, .real = true}, a, s, left, right, room));
    make(a, 60, 60, 0);
    a[at * 61].re = NAN;
    assert_false(kiln__la_eigh(a, 60, at % 2, false, s, left, room));
  }
}
/* Multiples of 2^-15 in [-1, 1), as test/make/runtime_tables.py makes them. */
static double draw(uint32_t *x) {
  *x = *x * 1664525 + 1013904223;
  return (double)(*x >> 16) * 0x1p-15 - 1;
}
static void draw_matrix(z *a, int64_t m, int64_t n, char kind, bool real, uint32_t *state) {
  for (int64_t i = 0; i < m * n; i++) {
    const int64_t row = i / n;
    a[i].re = draw(state);
    a[i].im = real ? 0 : draw(state);
    if (kind == 'r') continue;
    const double scale = kind == 'g' ? ldexp(1, -(int)(row / 2)) : 0x1p-8;
    a[i] = (z){a[i].re * scale + (kind == 'n' && row == i % n ? 4 : 0), a[i].im * scale};
  }
}
/* Vectors i of a line of signs.txt: u[i] = their elements, k, each `step` apart. */
static void assert_signs(const char *line, const z *u, int64_t count, int64_t k, int64_t next,
                         int64_t step, uint32_t weights, const char *digits) {
  const int64_t bits = 4 * (int64_t)strlen(digits);
  for (int64_t i = 0; i < count; i++) {
    const int64_t bit = bits - count + i;
    const char digit[2] = {digits[bit / 4]};
    uint32_t from = weights;
    double sum = 0;
    for (int64_t e = 0; e < k; e++) sum += draw(&from) * u[i * next + e * step].re;
    if ((strtol(digit, NULL, 16) >> (3 - bit % 4) & 1) == (sum > 0)) continue;
    fail_msg("vector %d has the other sign: %s", (int)i, line);
  }
}
static void test_signs(void **state) {
  (void)state;
  static matrix a, b, left, right;
  char line[300], what[8], dtype[8], kind[8], side[2], digits[40];
  double s[LARGE];
  FILE *file = open_table("signs.txt");
  int lines = 0;
  for (; fgets(line, sizeof line, file); lines++) {
    int m, n;
    uint32_t x;
    assert_int_equal(
        sscanf(line, "%7s %7s %7s %d %d %1s %u %39s", what, dtype, kind, &m, &n, side, &x, digits),
        8);
    const bool real = dtype[0] == 'F', single = table_dtype(dtype) == KILN_DTYPE_F32 ||
                                                table_dtype(dtype) == KILN_DTYPE_C64;
    assert_true(m <= LARGE && n <= LARGE);
    draw_matrix(a, m, n, kind[0], real, &x);
    for (int64_t i = 0; i < m * n; i++) {
      const int64_t turned = i % n * m + i / n;
      b[turned] = what[0] == 'e' ? z_add(a[turned], z_conj(a[i])) : z_conj(a[i]);
    }
    if (what[0] == 'e') {
      assert_true(kiln__la_eigh(b, n, side[0] == 'U', single, s, left, room));
      assert_signs(line, left, n, n, 1, n, x, digits);
    } else if (m < n) { /* the left vectors are the adjoint's right ones */
      assert_true(
          kiln__la_svd(&(kiln__la_svd_task){n, m, .wide = true, .real = real, .single = single}, b,
                       s, left, right, room));
      assert_signs(line, right, m, m, m, 1, x, digits);
    } else {
      assert_true(kiln__la_svd(&(kiln__la_svd_task){m, n, .real = real, .single = single}, a, s,
                               left, right, room));
      assert_signs(line, left, n, m, 1, n, x, digits);
    }
  }
  fclose(file);
  assert_int_equal(lines, 180);
}
static void test_any(void **state) {
  (void)state;
  static matrix a, kept, u, v, t;
  z w[MOST];
  for (int kind = 0; kind < 6; kind++) {
    for (int64_t n = 1; n <= MOST; n++) {
      make(a, n, n, kind);
      memcpy(kept, a, sizeof a);
      assert_true(is_real(kind) ? kiln__la_eig_real(a, n, false, w, v, room)
                                : kiln__la_eig(a, n, w, v, room));
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
  static matrix a, kept, u, v, t;
  z tau[MOST];
  for (int kind = 0; kind < 6; kind++) {
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

/* -- The operators: batches, shapes, dtypes -- */

static kiln_tensor *random_tensor(fixture *f, kiln_dtype dtype, int64_t m, int64_t n) {
  const int64_t sizes[3] = {2, m, n};
  kiln_tensor *t;
  void *data;
  assert_ok(kiln_call_tensor(f->call, dtype, 3, sizes, &t));
  assert_ok(kiln_tensor_writable_data(t, &data));
  for (int64_t i = 0; i < t->numel; i++) {
    const kiln_number x = {KILN_DTYPE_C128, 0, next_random(),
                           kiln_dtype_is_complex(dtype) ? next_random() : 0};
    kiln__number_store(x, dtype, (char *)data + (size_t)i * kiln_dtype_bytes(dtype));
  }
  return t;
}
/* The greatest size of an element of a - b. */
static double gap_of(fixture *f, kiln_tensor *a, kiln_tensor *b) {
  kiln_tensor *gap = RUN(sub, T(a), T(b), I(1)), *sizes = RUN(abs, T(gap));
  kiln_tensor *none = RUN(amax, T(sizes), NONE, B(false));
  double most = 0;
  assert_ok(kiln_tensor_item_f64(none, &most));
  drop(f, gap);
  drop(f, sizes);
  drop(f, none);
  return most;
}
static kiln_tensor *adjoint(fixture *f, kiln_tensor *t) {
  kiln_tensor *view = RUN(transpose, T(t), I(-2), I(-1)), *result = RUN(conj, T(view));
  drop(f, view);
  return result;
}
/* u[..., :k] s vh[:k] */
static kiln_tensor *product_of(fixture *f, kiln_tensor *u, kiln_tensor *s, kiln_tensor *vh) {
  const int64_t k = kiln_tensor_sizes(s)[1];
  kiln_tensor *left = RUN(narrow, T(u), I(-1), I(0), I(k));
  kiln_tensor *right = RUN(narrow, T(vh), I(-2), I(0), I(k)), *row = RUN(unsqueeze, T(s), I(-2));
  kiln_tensor *scaled = RUN(mul, T(left), T(row)), *product = RUN(matmul, T(scaled), T(right));
  drop(f, left);
  drop(f, right);
  drop(f, row);
  drop(f, scaled);
  return product;
}
static const kiln_dtype dtypes[] = {KILN_DTYPE_F32, KILN_DTYPE_F64, KILN_DTYPE_C64,
                                    KILN_DTYPE_C128};
static void test_svd_operators(void **state) {
  fixture *f = *state;
  for (int i = 0; i < 4; i++) {
    for (int shape = 0; shape < 24; shape++) {
      const int64_t times = shape < 12 ? 1 : 14, n = 3 * times;
      const int64_t m = times * (shape % 3 == 0 ? 3 : shape % 3 == 1 ? 5 : 2);
      const int64_t k = m < n ? m : n;
      const bool old = shape / 6 % 2, all = shape / 3 % 2;
      kiln_tensor *t = random_tensor(f, dtypes[i], m, n), *rest[2];
      kiln_tensor *u =
          old ? run(f, KILN_BODY_OF(svd), 3, 3, (const kiln_ivalue[]){T(t), B(!all), B(true)}, rest)
              : run(f, KILN_BODY_OF(linalg_svd), 3, 3, (const kiln_ivalue[]){T(t), B(all), NONE},
                    rest);
      kiln_tensor *vh = old ? adjoint(f, rest[1]) : kiln_tensor_retain(rest[1]);
      kiln_tensor *product = product_of(f, u, rest[0], vh);
      assert_true(gap_of(f, product, t) < (i % 2 ? 1e-13 : 1e-5));
      assert_int_equal(kiln_tensor_sizes(u)[2], all ? m : k);
      assert_int_equal(kiln_tensor_sizes(vh)[1], all ? n : k);
      assert_int_equal(kiln_tensor_dtype(rest[0]), kiln_dtype_real(dtypes[i]));
      kiln_tensor *each[] = {t, u, rest[0], rest[1], vh, product};
      for (int d = 0; d < 6; d++) drop(f, each[d]);
    }
  }
}
static void test_eigen_operators(void **state) {
  fixture *f = *state;
  for (int i = 0; i < 4; i++) {
    for (int times = 1; times <= 8; times += 7) {
      for (int kind = 0; kind < 3; kind++) {
        const int64_t n = 4 * times;
        kiln_tensor *any = random_tensor(f, dtypes[i], n, n), *turned = adjoint(f, any), *v, *w;
        kiln_tensor *t = kind == 2 ? kiln_tensor_retain(any) : RUN(add, T(any), T(turned), I(1));
        kiln_string *side;
        assert_ok(kiln_string_create(f->env->mem, KILN_STR("L"), &side));
        if (kind == 0) {
          w = run(f, KILN_BODY_OF(linalg_eigh), 2, 2,
                  (const kiln_ivalue[]){T(t), kiln_of_box(side)}, &v);
        } else if (kind == 1) {
          w = run(f, KILN_BODY_OF(symeig), 2, 3, (const kiln_ivalue[]){T(t), B(true), B(true)}, &v);
        } else {
          w = run(f, KILN_BODY_OF(linalg_eig), 2, 1, (const kiln_ivalue[]){T(t)}, &v);
        }
        kiln_ivalue_release(kiln_of_box(side));
        kiln_tensor *row = RUN(unsqueeze, T(w), I(-2)), *scaled = RUN(mul, T(v), T(row));
        kiln_tensor *wide = kiln_tensor_retain(t);
        if (kind == 2 && i < 2) {
          drop(f, wide);
          wide = RUN(to_dtype, T(t), I(kiln_tensor_dtype(v)), B(false), B(false), NONE);
        }
        kiln_tensor *product = RUN(matmul, T(wide), T(v));
        assert_true(gap_of(f, product, scaled) < (i % 2 ? 1e-12 : 1e-4));
        kiln_tensor *each[] = {any, turned, t, v, w, row, scaled, wide, product};
        for (int d = 0; d < 9; d++) drop(f, each[d]);
      }
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_singular_values),
      cmocka_unit_test(test_hermitian),
      cmocka_unit_test(test_not_finite),
      cmocka_unit_test(test_signs),
      cmocka_unit_test(test_any),
      cmocka_unit_test(test_reflectors),
      cmocka_unit_test_setup_teardown(test_svd_operators, setup, teardown),
      cmocka_unit_test_setup_teardown(test_eigen_operators, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
