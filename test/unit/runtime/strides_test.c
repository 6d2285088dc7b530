/* strides_test.c: where elements of results lie, as PyTorch's rules have it (x.stride()). */
#include "runtime/strides.h"
#include "test/unit/unit.h"

enum { RANK = 4 };

typedef struct operand {
  int rank;
  int64_t sizes[RANK], strides[RANK];
} operand;

static kiln_strided strided(const operand *o) {
  return (kiln_strided){o->rank, o->sizes, o->strides};
}

static void test_pointwise(void **state) {
  static const struct {
    operand a, b;
    int rank;
    int64_t sizes[RANK], strides[RANK];
  } cases[] = {
      {{2, {2, 3}, {3, 1}}, {2, {2, 3}, {3, 1}}, 2, {2, 3}, {3, 1}},
      {{2, {2, 3}, {1, 2}}, {2, {2, 3}, {1, 2}}, 2, {2, 3}, {1, 2}}, /* alike, dense */
      {{2, {2, 3}, {1, 2}}, {2, {2, 3}, {3, 1}}, 2, {2, 3}, {1, 2}}, /* the first decides */
      {{2, {2, 3}, {3, 1}}, {2, {2, 3}, {1, 2}}, 2, {2, 3}, {3, 1}},
      {{2, {2, 3}, {1, 2}}, {2, {2, 1}, {1, 1}}, 2, {2, 3}, {1, 2}},
      {{1, {3}, {1}}, {2, {3, 3}, {1, 3}}, 2, {3, 3}, {1, 3}},       /* a row tells nothing */
      {{2, {2, 3}, {1, 8}}, {2, {2, 3}, {1, 8}}, 2, {2, 3}, {1, 2}}, /* alike, with holes */
      {{2, {1, 3}, {9, 1}}, {2, {1, 3}, {9, 1}}, 2, {1, 3}, {3, 1}}, /* contiguous all the same */
      {{4, {2, 3, 4, 5}, {60, 1, 15, 3}},
       {3, {3, 1, 1}, {1, 1, 1}},
       4,
       {2, 3, 4, 5},
       {60, 1, 15, 3}}, /* channels last, and a bias of channels */
      {{2, {0, 3}, {1, 0}}, {2, {0, 3}, {3, 1}}, 2, {0, 3}, {3, 1}},
      {{4, {1, 2, 1LL << 35, 1}, {0, 1, 2, 0}},
       {4, {2, 1, 1, 1LL << 32}, {0, 0, 0, 2}},
       4,
       {2, 2, 1LL << 35, 1LL << 32},
       {KILN_STRIDE_MAX, 1LL << 32, 1LL << 33, 1}}, /* more elements than there are numbers */
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const kiln_strided both[2] = {strided(&cases[i].a), strided(&cases[i].b)};
    int64_t strides[KILN_MAX_RANK];
    kiln_strides_pointwise(cases[i].rank, cases[i].sizes, both, 2, strides);
    assert_memory_equal(strides, cases[i].strides, sizeof *strides * (size_t)cases[i].rank);
  }
}

static void test_questions(void **state) {
  static const struct {
    operand t;
    bool contiguous, dense;
  } cases[] = {
      {{2, {2, 3}, {3, 1}}, true, true},         {{2, {2, 3}, {1, 2}}, false, true},
      {{2, {2, 3}, {4, 1}}, false, false},       {{2, {2, 3}, {0, 1}}, false, false},
      {{2, {1, 3}, {7, 1}}, true, true},         {{2, {0, 3}, {5, 5}}, true, true},
      {{3, {2, 1, 3}, {1, 9, 2}}, false, true},  {{0, {0}, {0}}, true, true},
      {{3, {2, 2, 3}, {1, 1, 2}}, false, false},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const kiln_strided t = strided(&cases[i].t);
    assert_int_equal(kiln_strides_are_contiguous(&t), cases[i].contiguous);
    assert_int_equal(kiln_strides_are_dense(&t), cases[i].dense);
  }
}

static void test_views(void **state) {
  static const struct {
    operand t;
    bool fits;
    int rank;
    int64_t sizes[RANK], strides[RANK];
  } cases[] = {
      {{2, {2, 6}, {6, 1}}, true, 3, {2, 2, 3}, {6, 3, 1}},
      {{2, {2, 3}, {1, 2}}, false, 1, {6}, {0}},
      {{2, {2, 6}, {8, 1}}, true, 3, {2, 3, 2}, {8, 2, 1}},
      {{2, {2, 6}, {8, 1}}, false, 2, {4, 3}, {0}},
      {{2, {3, 4}, {1, 3}}, true, 3, {3, 2, 2}, {1, 6, 3}},
      {{1, {4}, {0}}, true, 2, {2, 2}, {0, 0}},
      {{0, {0}, {0}}, true, 2, {1, 1}, {1, 1}},
      {{2, {0, 3}, {1, 0}}, true, 2, {0, 3}, {1, 0}},
      {{2, {0, 3}, {1, 0}}, true, 2, {3, 0}, {1, 1}},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const kiln_strided t = strided(&cases[i].t);
    int64_t strides[KILN_MAX_RANK];
    const bool fits = kiln_strides_view(&t, cases[i].rank, cases[i].sizes, strides);
    assert_int_equal(fits, cases[i].fits);
    if (!fits) continue;
    assert_memory_equal(strides, cases[i].strides, sizeof *strides * (size_t)cases[i].rank);
  }
}

/* As PyTorch's empty_like, and as the factors of matrices. */
static void test_made(void **state) {
  static const struct {
    operand t;
    int64_t like[RANK], columns[RANK];
  } cases[] = {
      {{2, {2, 3}, {3, 1}}, {3, 1}, {1, 2}},
      {{2, {2, 3}, {1, 2}}, {1, 2}, {1, 2}},
      {{2, {2, 3}, {4, 1}}, {3, 1}, {1, 2}}, /* holes are left out */
      {{2, {2, 3}, {1, 8}}, {1, 2}, {1, 2}},
      {{2, {2, 3}, {0, 1}}, {3, 1}, {1, 2}},
      {{2, {0, 3}, {1, 5}}, {1, 5}, {1, 1}}, /* nothing fills its memory */
      {{2, {3, 0}, {1, 3}}, {1, 3}, {1, 3}},
      {{3, {2, 1, 3}, {3, 1, 1}}, {3, 1, 1}, {3, 1, 1}},
      {{3, {2, 1, 3}, {6, 1, 2}}, {3, 1, 1}, {3, 1, 1}},
      {{3, {2, 4, 3}, {1, 12, 4}}, {1, 6, 2}, {12, 1, 4}},
      {{3, {2, 0, 4}, {4, 4, 1}}, {4, 4, 1}, {4, 1, 1}},
      {{1, {3}, {2}}, {1}, {1}},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const kiln_strided t = strided(&cases[i].t);
    const size_t bytes = sizeof(int64_t) * (size_t)t.rank;
    int64_t strides[KILN_MAX_RANK];
    kiln_strides_like(&t, strides);
    assert_memory_equal(strides, cases[i].like, bytes);
    kiln_strides_columns(t.rank, t.sizes, strides);
    assert_memory_equal(strides, cases[i].columns, bytes);
  }
}

/* As PyTorch's empty(..., memory_format=channels_last); sizes that nothing can have are refused by
 * what makes the tensor. */
static void test_channels_last(void **state) {
  static const struct {
    int64_t sizes[4], strides[4];
  } cases[] = {
      {{2, 3, 4, 5}, {60, 1, 15, 3}},
      {{2, 3, 0, 5}, {0, 1, 15, 3}},
      {{2, 1, 4, 5}, {20, 1, 5, 1}},
      {{2, 3, INT64_MAX, 5}, {KILN_STRIDE_MAX, 1, 15, 3}},
      {{2, 2, INT64_MIN, INT64_MIN}, {KILN_STRIDE_MAX, 1, KILN_STRIDE_MAX, 2}},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int64_t strides[4];
    kiln_strides_channels_last(4, cases[i].sizes, strides);
    assert_memory_equal(strides, cases[i].strides, sizeof strides);
  }
}

/* What PyTorch 1.13 says by the format of constant_pad_nd's result. */
static void test_suggestions(void **state) {
  static const struct {
    int rank;
    int64_t sizes[5], strides[5];
    bool last;
  } cases[] = {
      {4, {2, 4, 6, 5}, {120, 30, 5, 1}, false},
      {4, {2, 4, 6, 5}, {120, 1, 20, 4}, true},
      {4, {2, 4, 6, 5}, {240, 1, 40, 8}, true},
      {4, {2, 4, 6, 5}, {30, 60, 5, 1}, false},
      {4, {2, 1, 6, 5}, {30, 1, 5, 1}, true},
      {4, {2, 1, 6, 5}, {30, 30, 5, 1}, false},
      {4, {2, 1, 1, 1}, {1, 1, 1, 1}, false},
      {4, {2, 1, 1, 5}, {5, 5, 5, 5}, false},
      {4, {2, 4, 1, 1}, {4, 1, 4, 4}, true},
      {4, {2, 4, 1, 1}, {4, 1, 1, 1}, false},
      {4, {1, 4, 1, 6}, {24, 6, 6, 1}, false},
      {4, {2, 4, 6, 5}, {0, 1, 20, 4}, false},
      {4, {2, 4, 6, 5}, {120, 0, 20, 4}, false},
      {4, {0, 4, 6, 5}, {120, 1, 20, 4}, false},
      {4, {2, 4, 6, 5}, {120, 1, 4, 24}, false},
      {4, {1, 1, 6, 5}, {30, 1, 5, 1}, true},
      {4, {1, 4, 6, 1}, {24, 1, 4, 4}, true},
      {5, {2, 2, 3, 4, 5}, {120, 1, 40, 10, 2}, true},
      {5, {2, 2, 3, 4, 5}, {120, 60, 20, 5, 1}, false},
      {5, {2, 2, 3, 4, 5}, {120, 1, 10, 30, 2}, false},
      {3, {2, 4, 6}, {24, 1, 4}, true}, /* as avg_pool1d takes it: (2, 4, 1, 6) */
      {3, {2, 4, 6}, {24, 6, 1}, false},
      {2, {2, 4}, {1, 2}, false},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const kiln_strided t = {cases[i].rank, cases[i].sizes, cases[i].strides};
    assert_int_equal(kiln_strides_suggest_channels_last(&t), cases[i].last);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_suggestions), cmocka_unit_test(test_channels_last),
      cmocka_unit_test(test_made),        cmocka_unit_test(test_pointwise),
      cmocka_unit_test(test_questions),   cmocka_unit_test(test_views),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
