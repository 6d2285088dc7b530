/* matmul_test.c: the dispatched gemm against its reference, on every instruction set of this
 * processor: tails of all tile sizes, blocks of k, strides, alpha and beta. */
#include "test/unit/unit.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/kernels/heavy/matmul.h"
#include "test/unit/runtime/numbers.h"
#include "test/unit/traps.h"

typedef struct layout {
  bool a_by_columns, b_by_columns, c_by_columns;
  int64_t step; /* elements from one to the next, in all three */
} layout;

static uint64_t state64 = 1;
/* Multiples of 1/8 in [-2, 2): products and short sums are exact. */
static double next_value(void) {
  state64 = state64 * 6364136223846793005u + 1442695040888963407u;
  return (double)((int64_t)(state64 >> 59) - 16) / 8;
}
static void strides_of(bool by_columns, int64_t rows, int64_t columns, int64_t step, int64_t *row,
                       int64_t *col) {
  *row = by_columns ? step : columns * step;
  *col = by_columns ? rows * step : step;
}

static void compare(kiln_isa isa, kiln_dtype dtype, int64_t m, int64_t n, int64_t k, layout l,
                    double alpha, double beta) {
  const size_t item = kiln_dtype_bytes(dtype);
  const size_t elements = (size_t)((m * k + k * n + 2 * m * n) * l.step + 4);
  char *memory = calloc(elements, item);
  assert_non_null(memory);
  char *a = memory, *b = a + (size_t)(m * k * l.step) * item;
  char *c = b + (size_t)(k * n * l.step) * item, *want = c + (size_t)(m * n * l.step) * item;
  kiln_gemm_args g = {.m = m, .n = n, .k = k, .a = a, .b = b, .c = c, .alpha = alpha, .beta = beta};
  strides_of(l.a_by_columns, m, k, l.step, &g.a_row, &g.a_col);
  strides_of(l.b_by_columns, k, n, l.step, &g.b_row, &g.b_col);
  strides_of(l.c_by_columns, m, n, l.step, &g.c_row, &g.c_col);
  for (int64_t i = 0; i < (m * k + k * n) * l.step; i++) set_value(dtype, a, i, next_value());
  for (int64_t i = 0; i < m * n * l.step; i++) {
    const double value = beta == 0 ? (double)NAN : next_value(); /* beta 0 reads nothing */
    set_value(dtype, c, i, value);
    set_value(dtype, want, i, value);
  }
  const kiln_gemm_plan plan = kiln_gemm_make_plan(&g, item, 1 << 12);
  const kiln_gemm_args whole = kiln__gemm_planned(&g, &plan);
  void *scratch = aligned_alloc(64, plan.scratch + 64);
  assert_non_null(scratch);
  const kiln_dispatch *d = kiln_dispatch_select(isa);
  traps_set(dtype, scratch, plan.scratch + 64);
  (dtype == KILN_DTYPE_F32 ? d->gemm_f32 : d->gemm_f64)(&whole, &plan, scratch);
  assert_false(traps_were_used());
  if (plan.dot) { /* from its end, and asked for: the same bits */
    kiln_gemm_plan other = plan;
    other.backwards = true;
    other.ahead = !plan.ahead;
    const size_t bytes = (size_t)(m * n * l.step) * item;
    void *again = malloc(bytes + 1);
    assert_non_null(again);
    memcpy(again, want, bytes);
    g.c = again;
    const kiln_gemm_args turned = kiln__gemm_planned(&g, &other);
    (dtype == KILN_DTYPE_F32 ? d->gemm_f32 : d->gemm_f64)(&turned, &other, scratch);
    assert_memory_equal(again, c, bytes);
    free(again);
  }
  g.c = want;
  kiln__matmul_reference(dtype, &g);
  const double unit = dtype == KILN_DTYPE_F32 ? 0x1p-23 : 0x1p-52;
  for (int64_t i = 0; i < m * n * l.step; i++) { /* what lies between the elements too */
    const double x = value_of(dtype, c, i), y = value_of(dtype, want, i);
    if (isnan(y) ? isnan(x) : fabs(x - y) <= unit * 8 * (8 + (double)k)) continue;
    fail_msg("%s %lldx%lldx%lld alpha %g beta %g: element %lld is %.17g, not %.17g",
             kiln_isa_name(isa), (long long)m, (long long)n, (long long)k, alpha, beta,
             (long long)i, x, y);
  }
  free(scratch);
  free(memory);
}

static void all_layouts(kiln_isa isa, int64_t m, int64_t n, int64_t k) {
  for (int i = 0; i < 16; i++) {
    const layout l = {(i & 1) != 0, (i & 2) != 0, (i & 4) != 0, i & 8 ? 3 : 1};
    const double alpha = i % 3 == 0 ? 1 : -0.5, beta = i % 3 == 1 ? 0 : i % 3 == 0 ? 1 : 0.25;
    compare(isa, KILN_DTYPE_F32, m, n, k, l, alpha, beta);
    compare(isa, KILN_DTYPE_F64, m, n, k, l, alpha, beta);
    compare(isa, KILN_DTYPE_F32, m, n, k, l, 1, 0);
  }
}

static void test_tails(void **state) {
  (void)state;
  static const int64_t ks[] = {0, 1, 2, 5, 16, 33, 64, 65};
  for (int isa = 0; isa <= (int)kiln_dispatch_last(); isa++) {
    for (int64_t m = 1; m <= 14; m++) {
      for (int64_t n = 1; n <= 70; n += n < 20 ? 1 : 7) {
        all_layouts((kiln_isa)isa, m, n, ks[(m + n) % 8]);
      }
    }
  }
}
static void test_blocks(void **state) {
  (void)state;
  static const int64_t sizes[][3] = {{1, 130, 600}, {3, 65, 257},   {8, 33, 1025}, {25, 40, 513},
                                     {97, 31, 258}, {200, 70, 300}, {5, 2100, 20}, {130, 1, 700},
                                     {1, 1, 1000},  {4, 2049, 3},   {64, 64, 64}};
  for (int isa = 0; isa <= (int)kiln_dispatch_last(); isa++) {
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
      all_layouts((kiln_isa)isa, sizes[i][0], sizes[i][1], sizes[i][2]);
    }
  }
}

/* A weight of a loop is read to and fro; one of a network, behind others, is far each time. */
static void test_recent(void **state) {
  (void)state;
  static const char weights[8][64];
  static kiln_recent recent;
  bool backwards;
  assert_false(kiln_recent_read(&recent, weights[0], 1000, 2000, &backwards));
  for (int i = 0; i < 6; i++) {
    kiln_recent_worked(&recent, 20);
    assert_true(kiln_recent_read(&recent, weights[0], 1000, 2000, &backwards));
    assert_true(backwards == (i % 2 == 0));
  }
  kiln_recent_worked(&recent, 100);
  assert_false(kiln_recent_read(&recent, weights[0], 1000, 2000, &backwards));
  assert_false(backwards);
  for (int i = 1; i < 24; i++) {
    assert_false(kiln_recent_read(&recent, weights[i % 8], 300, 2000, &backwards));
    assert_false(backwards);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_tails), cmocka_unit_test(test_blocks),
                                     cmocka_unit_test(test_recent)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
