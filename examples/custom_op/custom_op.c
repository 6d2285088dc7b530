/* custom_op.c: a host that brings an operator which its model calls.
 *
 *   cc custom_op.c -lkiln -o custom_op && ./custom_op model.pt
 *
 * In Python the operator is torch.ops.mine.relu_cap: x clamped to 0 ... cap. The model here takes
 * two float tensors (test/make/custom_ops.py). */
#include <stdio.h>
#include "kiln/kiln_op.h"

/* Results are made row-major; this kernel wants its argument so too, and refuses any other. */
static kiln_status *relu_cap(void *user, kiln_op_call *call) {
  const kiln_value *x = kiln_op_argument(call, 0);
  float cap = (float)kiln_value_as_float(kiln_op_argument(call, 1));
  const float *in = kiln_value_data(x);
  const int64_t *sizes = kiln_value_sizes(x), *strides = kiln_value_strides(x);
  void *out;
  int64_t count = 1;
  (void)user;
  if (kiln_value_dtype(x) != KILN_DTYPE_F32) {
    return kiln_op_error(KILN_OP_ERROR, "relu_cap is for float32 tensors");
  }
  for (int i = kiln_value_rank(x) - 1; i >= 0; count *= sizes[i--]) {
    if (strides[i] != count && sizes[i] > 1) {
      return kiln_op_error(KILN_OP_ERROR, "relu_cap is for contiguous tensors");
    }
  }
  kiln_status *status =
      kiln_op_result_tensor(call, 0, KILN_DTYPE_F32, kiln_value_rank(x), sizes, &out);
  for (int64_t i = 0; !status && i < count; i++) {
    ((float *)out)[i] = in[i] < 0 ? 0 : in[i] > cap ? cap : in[i];
  }
  return status;
}

/* The result is like the argument. */
static int relu_cap_shape(void *user, kiln_op_shape *shape) {
  kiln_op_tensor_info x;
  (void)user;
  if (!kiln_op_shape_tensor(shape, 0, -1, &x)) return 0;
  kiln_op_shape_set(shape, 0, x.dtype, x.rank, x.sizes);
  return 1;
}

int main(int argc, char **argv) {
  const kiln_op_spec spec = {.struct_size = sizeof spec,
                             .schema = "mine::relu_cap(Tensor x, float cap=6.) -> Tensor",
                             .kernel = relu_cap,
                             .shape = relu_cap_shape,
                             .flags = KILN_OP_SPEC_PURE};
  const float x[2] = {0.5f, -0.5f}, y[2] = {0.25f, 0.25f};
  const int64_t sizes[2] = {1, 2};
  kiln_context *context = NULL;
  kiln_model *model = NULL;
  kiln_instance *instance = NULL;
  kiln_value *arguments[2] = {NULL, NULL}, *result = NULL;
  char *text = NULL;
  if (argc != 2) return fprintf(stderr, "usage: custom_op MODEL\n"), 2;

  kiln_status *status = kiln_context_create(NULL, &context);
  if (!status) status = kiln_op_register(context, &spec); /* before the load */
  if (!status) status = kiln_model_load(context, argv[1], NULL, &model);
  if (!status) status = kiln_instance_create(model, &instance);
  if (!status) status = kiln_value_tensor(context, KILN_DTYPE_F32, 2, sizes, x, &arguments[0]);
  if (!status) status = kiln_value_tensor(context, KILN_DTYPE_F32, 2, sizes, y, &arguments[1]);
  if (!status) status = kiln_instance_call(instance, "forward", arguments, 2, NULL, &result);
  if (!status) status = kiln_value_print(result, 10, &text);
  if (status) fprintf(stderr, "custom_op: %s\n", kiln_status_report(status));
  if (text) printf("%s\n", text);
  int failed = status != NULL;
  kiln_status_destroy(status);
  kiln_text_free(text);
  for (int i = 0; i < 2; i++) kiln_value_destroy(arguments[i]);
  kiln_value_destroy(result);
  kiln_instance_release(instance);
  kiln_model_release(model);
  kiln_context_release(context);
  return failed;
}
