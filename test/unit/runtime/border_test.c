/* border_test.c: images with zeros around them in memory. */
#include "runtime/border.h"
#include "base/env.h"
#include "runtime/type.h"
#include "test/unit/unit.h"

/* 2 images of 3 channels and 4 x 5 pixels, and volumes of 2 such planes. */
static const int64_t sizes[4] = {2, 3, 4, 5}, volumes[5] = {2, 3, 2, 4, 5};

/* Whether place `at` of memory is an element of a tensor of channel-last images with zeros around;
 * counts down from the last dimension. */
static bool is_inside(int rank, const int64_t *dims, int border, int64_t at) {
  bool inside = true;
  at /= dims[1];
  for (int d = rank - 1; d >= 2; d--) {
    const int64_t whole = dims[d] + 2 * border, place = at % whole;
    inside &= place >= border && place < border + dims[d];
    at /= whole;
  }
  return inside;
}

/* Memory that was somebody else's has zeros around the elements, and the elements are where the
 * tensor has them. */
static void check_zeros(kiln_env *env, int rank, const int64_t *dims, int border) {
  int64_t strides[5], count = dims[0] * dims[1], elements = 1, seen = 0;
  kiln_tensor *t;
  kiln_physical_strides((kiln_physical)(KILN_PHYSICAL_CHANNELS_LAST + border), rank, dims, strides);
  assert_ok(kiln_border_create(env->mem, NULL, KILN_DTYPE_F32, rank, dims, strides, border, &t));
  assert_true(kiln_border_is_around(t, border));
  assert_false(kiln_border_is_around(t, 3 - border));
  for (int d = 2; d < rank; d++) count *= dims[d] + 2 * border;
  for (int d = 0; d < rank; d++) elements *= dims[d];
  float *all = kiln_border_begin(t);
  for (int64_t i = 0; i < count; i++)
    if (!is_inside(rank, dims, border, i)) assert_float_equal(all[i], 0, 0);
  for (int64_t i = 0; i < elements; i++) {
    int64_t at = 0, left = i;
    for (int d = rank - 1; d >= 0; d--) {
      at += left % dims[d] * strides[d];
      left /= dims[d];
    }
    const int64_t place = (float *)kiln_tensor_data(t) + at - all;
    seen += is_inside(rank, dims, border, place);
  }
  assert_int_equal(seen, elements);
  kiln_tensor_release(t);
}
static void test_zeros(void **state) {
  (void)state;
  kiln_env *env;
  assert_ok(kiln_env_create(NULL, &env));
  for (int border = 1; border <= 2; border++) {
    check_zeros(env, 4, sizes, border);
    check_zeros(env, 5, volumes, border);
  }
  kiln_env_destroy(env);
}

/* A part of a larger image has the strides, but other memory. */
static void test_others(void **state) {
  (void)state;
  kiln_env *env;
  kiln_tensor *dense, *part;
  int64_t strides[4];
  const int64_t all[4] = {2, 3, 6, 7}, offset = 7 * 3 + 3;
  assert_ok(kiln_env_create(NULL, &env));
  kiln_physical_strides(KILN_PHYSICAL_CHANNELS_LAST, 4, all, strides);
  assert_ok(kiln_tensor_create_strided(env->mem, NULL, KILN_DTYPE_F32, 4, all, strides, &dense));
  assert_ok(kiln_tensor_create_on(env->mem, NULL, dense->storage, KILN_DTYPE_F32, 4, sizes, strides,
                                  offset, &part));
  assert_false(kiln_border_is_around(part, 1));
  assert_false(kiln_border_is_around(dense, 1));
  kiln_tensor_release(part);
  kiln_tensor_release(dense);
  kiln_env_destroy(env);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_zeros),
      cmocka_unit_test(test_others),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
