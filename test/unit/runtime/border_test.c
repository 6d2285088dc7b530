/* border_test.c: images with zeros around them in memory. */
#include "runtime/border.h"
#include "base/env.h"
#include "runtime/type.h"
#include "test/unit/unit.h"

/* 2 images of 3 channels and 4 x 5 pixels. */
static const int64_t sizes[4] = {2, 3, 4, 5};

static bool is_inside(int64_t h, int64_t w, int border) {
  return h >= border && h < border + sizes[2] && w >= border && w < border + sizes[3];
}

/* Memory that was somebody else's has zeros around the elements, and the elements are where the
 * tensor has them. */
static void test_zeros(void **state) {
  (void)state;
  kiln_env *env;
  assert_ok(kiln_env_create(NULL, &env));
  for (int border = 1; border <= 2; border++) {
    const int64_t height = sizes[2] + 2 * border, width = sizes[3] + 2 * border;
    int64_t strides[4];
    kiln_tensor *t;
    kiln_physical_strides((kiln_physical)(KILN_PHYSICAL_CHANNELS_LAST + border), 4, sizes, strides);
    assert_ok(kiln_border_create(env->mem, NULL, KILN_DTYPE_F32, sizes, strides, border, &t));
    assert_true(kiln_border_is_around(t, border));
    assert_false(kiln_border_is_around(t, 3 - border));
    float *all = kiln_border_begin(t);
    for (int64_t n = 0; n < sizes[0]; n++)
      for (int64_t c = 0; c < sizes[1]; c++)
        for (int64_t h = 0; h < sizes[2]; h++)
          for (int64_t w = 0; w < sizes[3]; w++)
            ((float *)kiln_tensor_data(
                t))[n * strides[0] + c * strides[1] + h * strides[2] + w * strides[3]] = 1;
    for (int64_t n = 0; n < sizes[0]; n++)
      for (int64_t h = 0; h < height; h++)
        for (int64_t w = 0; w < width; w++)
          for (int64_t c = 0; c < sizes[1]; c++)
            assert_float_equal(all[((n * height + h) * width + w) * sizes[1] + c],
                               is_inside(h, w, border), 0);
    kiln_tensor_release(t);
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
