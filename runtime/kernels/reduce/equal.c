/* equal.c: comparisons of whole tensors. */
#include <math.h>
#include <string.h>

#include "runtime/kernels/pointwise/iter.h"
#include "runtime/kernels/reduce/reduction.h"

KILN_KERNEL(equal) {
  kiln_tensor *a = SELF, *b = ARG(1);
  *outs = kiln_bool(false);
  if (!kiln_tensor_same_sizes(a, b)) return NULL;
  if (kiln_tensor_dtype(a) != kiln_tensor_dtype(b)) {
    return KILN_OP_FAIL(
        "Expected object of data type %s but got data type %s for argument 'other' in "
        "call to equal",
        kiln_dtype_short_name(kiln_tensor_dtype(a)), kiln_dtype_short_name(kiln_tensor_dtype(b)));
  }
  kiln_pw pw = {.functor = KILN_PW_eq,
                .in_count = 2,
                .common = kiln_tensor_dtype(a),
                .in = {{.tensor = a}, {.tensor = b}}};
  kiln_ivalue same = kiln_none();
  kiln_tensor *all = NULL;
  kiln_status *status = kiln_pw_run(call, &pw, &same);
  if (!status) {
    status = kiln__reduce(call, KILN_REDUCE_ALL, same.u.tensor, kiln__all_dims(same.u.tensor),
                          false, KILN_DTYPE_BOOL, NULL, &all);
  }
  if (!status) *outs = kiln_bool(kiln__element_i64(all, 0) != 0);
  kiln_ivalue_release_to(&call->cache, same);
  kiln_tensor_release_to(&call->cache, all);
  return status;
}
/* |a - b| <= atol + rtol |b|, element by element in complex doubles. */
static kiln_status *close(kiln_call *call, const kiln_ivalue *args, kiln_tensor **out) {
  kiln_tensor *in[2] = {SELF, ARG(1)}, *wide[2] = {NULL, NULL};
  double rtol = kiln_arg_float(args, 2), atol = kiln_arg_float(args, 3);
  bool equal_nan = kiln_arg_bool(args, 4);
  int rank;
  int64_t sizes[KILN_MAX_RANK];
  if (!(rtol >= 0))
    return KILN_OP_FAIL("rtol must be greater than or equal to zero, but got %g", rtol);
  if (!(atol >= 0))
    return KILN_OP_FAIL("atol must be greater than or equal to zero, but got %g", atol);
  if (kiln_tensor_dtype(in[0]) != kiln_tensor_dtype(in[1])) {
    return KILN_OP_FAIL("%s did not match %s", kiln_dtype_ir_name(kiln_tensor_dtype(in[0])),
                        kiln_dtype_ir_name(kiln_tensor_dtype(in[1])));
  }
  KILN_TRY(kiln_tensor_broadcast(in[0], in[1], &rank, sizes));
  KILN_TRY(kiln_call_tensor(call, KILN_DTYPE_BOOL, rank, sizes, out));
  kiln_status *status = NULL;
  for (int i = 0; i < 2 && !status; i++) {
    status = kiln_call_tensor(call, KILN_DTYPE_C128, rank, sizes, &wide[i]);
    if (!status) status = kiln_pw_copy(call, wide[i], in[i]);
  }
  if (!status) {
    const double *a = kiln_tensor_data(wide[0]), *b = kiln_tensor_data(wide[1]);
    uint8_t *to = (uint8_t *)(uintptr_t)kiln_tensor_data(*out);
    int64_t left = KILN_BUDGET_ITEMS;
    for (int64_t i = 0; i < (*out)->numel && !kiln_budget_spent(&left, 8); i++, a += 2, b += 2) {
      const bool same = a[0] == b[0] && a[1] == b[1];
      const bool nans = (a[0] != a[0] || a[1] != a[1]) && (b[0] != b[0] || b[1] != b[1]);
      const double error = hypot(a[0] - b[0], a[1] - b[1]);
      to[i] = same || (equal_nan && nans) ||
              (isfinite(error) && error <= atol + fabs(rtol) * hypot(b[0], b[1]));
    }
  }
  kiln_tensor_release_to(&call->cache, wide[0]);
  kiln_tensor_release_to(&call->cache, wide[1]);
  if (status) kiln_tensor_release_to(&call->cache, *out);
  return status;
}
KILN_KERNEL(isclose) {
  kiln_tensor *result;
  KILN_TRY(close(call, args, &result));
  return kiln__give(outs, result);
}
KILN_KERNEL(allclose) {
  kiln_tensor *result;
  KILN_TRY(close(call, args, &result));
  bool all = true;
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; all && i < result->numel && !kiln_budget_spent(&left, 2); i++) {
    all = kiln__element_i64(result, i);
  }
  kiln_tensor_release_to(&call->cache, result);
  return kiln__give_bool(outs, all);
}
