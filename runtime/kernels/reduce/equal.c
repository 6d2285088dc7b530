/* equal.c: comparisons of whole tensors. */
#include <math.h>

#include "runtime/kernels/composite.h"

KILN_COMPOSITE(equal) {
  kiln_tensor *a = SELF, *b = ARG(1);
  *outs = kiln_bool(false);
  if (!kiln_tensor_same_sizes(a, b)) return NULL;
  if (kiln_tensor_dtype(a) != kiln_tensor_dtype(b)) {
    return FAIL(r,
                "Expected object of data type %s but got data type %s for argument 'other' in "
                "call to equal",
                kiln_dtype_short_name(kiln_tensor_dtype(a)),
                kiln_dtype_short_name(kiln_tensor_dtype(b)));
  }
  const kiln_tensor *all = KILN_STEP(r, all, T(KILN_STEP(r, eq, T(a), T(b))));
  if (all) *outs = kiln_bool(kiln__element_i64(all, 0) != 0);
  return NULL;
}
/* |a - b| <= atol + rtol |b|, element by element in complex doubles. */
static kiln_tensor *close(kiln__composite *r, const kiln_ivalue *args) {
  const double rtol = kiln_arg_float(args, 2), atol = kiln_arg_float(args, 3);
  const bool equal_nan = kiln_arg_bool(args, 4);
  kiln_tensor *in[2] = {SELF, ARG(1)}, *result;
  if (!(rtol >= 0)) {
    return FAIL(r, "rtol must be greater than or equal to zero, but got %g", rtol);
  }
  if (!(atol >= 0)) {
    return FAIL(r, "atol must be greater than or equal to zero, but got %g", atol);
  }
  if (kiln_tensor_dtype(in[0]) != kiln_tensor_dtype(in[1])) {
    return FAIL(r, "%s did not match %s", kiln_dtype_ir_name(kiln_tensor_dtype(in[0])),
                kiln_dtype_ir_name(kiln_tensor_dtype(in[1])));
  }
  const kiln_ivalue wide = kiln__composite_broadcast(r, in[0], in[1]);
  const double *elements[2];
  for (int i = 0; i < 2; i++) {
    kiln_tensor *t = KILN_STEP(r, expand, T(in[i]), wide, B(false));
    elements[i] = kiln__composite_read(r, t, KILN_DTYPE_C128, &in[i]);
  }
  if (r->status) return NULL;
  const double *a = elements[0], *b = elements[1];
  uint8_t *to = kiln__composite_new(r, KILN_DTYPE_BOOL, kiln_tensor_rank(in[0]),
                                    kiln_tensor_sizes(in[0]), &result);
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; to && i < result->numel && !kiln_budget_spent(&left, 8);
       i++, a += 2, b += 2) {
    const bool same = a[0] == b[0] && a[1] == b[1];
    const bool nans = (a[0] != a[0] || a[1] != a[1]) && (b[0] != b[0] || b[1] != b[1]);
    const double error = hypot(a[0] - b[0], a[1] - b[1]);
    to[i] = same || (equal_nan && nans) ||
            (isfinite(error) && error <= atol + fabs(rtol) * hypot(b[0], b[1]));
  }
  return result;
}
/* In the memory order of a == b. */
KILN_COMPOSITE(isclose) {
  kiln_tensor *is_close = close(r, args);
  if (!is_close) return NULL;
  return KILN_STEP(r, bitwise_or_inplace, T(KILN_STEP(r, eq, T(SELF), T(ARG(1)))), T(is_close));
}
KILN_COMPOSITE(allclose) {
  const kiln_tensor *all = KILN_STEP(r, all, T(close(r, args)));
  *outs = kiln_bool(all && kiln__element_i64(all, 0) != 0);
  return NULL;
}
