/* lean_test.c: calls under every limit of memory give the right result or say that the limit is too
 * small: also where some groups find no memory for the copies that their kernels read, and their
 * operators run instead, beside others that find it. */
#include <math.h>

#include "test/unit/api/fixture.h"

enum { SIZE = 40, OUT_MOST = 1 << 18, LEAST_BYTES = 16 << 10, MOST_BYTES = 16 << 20 };

/* All elements of the tensors of a tuple, one after the other. */
static size_t copy_items(const kiln_value *tuple, float *out) {
  size_t total = 0;
  for (int i = 0; i < kiln_value_count(tuple); i++) {
    kiln_value *item;
    size_t count = 1;
    assert_ok(kiln_value_item(tuple, i, &item));
    for (int d = 0; d < kiln_value_rank(item); d++) count *= (size_t)kiln_value_sizes(item)[d];
    assert_true(total + count <= OUT_MOST);
    assert_ok(kiln_value_copy_data(item, out + total, count * sizeof *out));
    kiln_value_destroy(item);
    total += count;
  }
  return total;
}

static kiln_status *call(kiln_instance *instance, kiln_value *x, uint64_t bytes, float *out,
                         size_t *out_count) {
  const kiln_call_options options = {.limits = {.bytes = bytes}};
  kiln_value *result = NULL;
  kiln_status *status =
      kiln_instance_call(instance, "forward", (kiln_value *const[]){x}, 1, &options, &result);
  if (status) return status;
  *out_count = copy_items(result, out);
  kiln_value_destroy(result);
  return NULL;
}

static void test_limits(void **state) {
  (void)state;
  static float data[3 * SIZE * SIZE], expected[OUT_MOST], got[OUT_MOST];
  int refused = 0, served = 0;
  subject s = {.context = context_with(NULL, NULL)};
  kiln_value *x;
  for (int i = 0; i < 3 * SIZE * SIZE; i++) data[i] = (float)((i * 7919) % 64 - 32) / 32;
  assert_ok(kiln_value_tensor(s.context, KILN_DTYPE_F32, 4, (const int64_t[]){1, 3, SIZE, SIZE},
                              data, &x));
  for (double bytes = LEAST_BYTES; bytes < (double)MOST_BYTES; bytes *= 1.1) {
    size_t count, expected_count;
    load_subject(&s, TEST_DATA "/own/borders/model.pt"); /* its weights have no copies yet */
    assert_ok(call(s.instance, x, 0, expected, &expected_count)); /* records types */
    kiln_status *status = call(s.instance, x, (uint64_t)bytes, got, &count);
    if (status) {
      refused++;
      assert_int_equal(kiln_status_code(status), KILN_LIMIT);
      kiln_status_destroy(status);
    } else {
      served++;
      assert_int_equal(count, expected_count);
      for (size_t i = 0; i < count; i++)
        if (!(fabsf(got[i] - expected[i]) <= 1e-4f * (1 + fabsf(expected[i]))))
          fail_msg("limit %.0f: output %zu is %g, not %g", bytes, i, (double)got[i],
                   (double)expected[i]);
    }
    kiln_instance_release(s.instance);
    kiln_model_release(s.model);
  }
  print_message("%d refused, %d served\n", refused, served);
  assert_true(refused > 3 && served > 20);
  kiln_value_destroy(x);
  kiln_context_release(s.context);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_limits)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
