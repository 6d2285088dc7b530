/* range.c: ranges with their end, tensors of given strides. */
#include <math.h>
#include <string.h>

#include "runtime/kernels/composite.h"
#include "runtime/kernels/factory/factory.h"
#include "runtime/kernels/pointwise/iter.h"

/* -- Ranges -- */

/* start, end, [step,] dtype, layout, device, pin_memory: with the end, unlike arange */
static kiln_tensor *whole_range(kiln__composite *r, const kiln_ivalue *args, kiln_number step,
                                int at) {
  const kiln_number start = kiln__number(args[0]), end = kiln__number(args[1]);
  const kiln_dtype dtype = kiln__arg_dtype_or(args, at, KILN_DTYPE_F32);
  kiln_tensor *t;
  if (!kiln__composite_ok(r, kiln__check_device(args[at + 2])) ||
      !kiln__composite_ok(r, kiln__check_dtype(r->call, dtype))) {
    return NULL;
  }
  if (step.f == 0) return FAIL(r, "step must be nonzero");
  if (!isfinite(start.f) || !isfinite(end.f)) {
    return FAIL(r, "unsupported range: %g -> %g", start.f, end.f);
  }
  if (step.f > 0 ? start.f > end.f : start.f < end.f) {
    return FAIL(r, "upper bound and lower bound inconsistent with step sign");
  }
  const double steps = floor((end.f - start.f) / step.f + 1);
  if (!(steps < 0x1p62)) return FAIL(r, "invalid size, possible overflow?");
  const int64_t count = (int64_t)steps;
  double *to = kiln__composite_new(r, KILN_DTYPE_F64, 1, &count, &t);
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; to && i < count && !kiln_budget_spent(&left, 2); i++) {
    to[i] = dtype == KILN_DTYPE_F32 ? (double)((float)start.f + (float)i * (float)step.f)
                                    : start.f + (double)i * step.f;
  }
  return kiln__composite_to(r, t, dtype);
}
KILN_COMPOSITE(range) { return whole_range(r, args, kiln__number_int(1), 2); }
KILN_COMPOSITE(range_step) { return whole_range(r, args, kiln__number(args[2]), 3); }

/* -- Given strides -- */

/* size, stride at args[at], then dtype, layout, device; zeros, so that calls agree */
static kiln_status *strided(kiln_call *call, const kiln_ivalue *args, int at, kiln_dtype fallback,
                            kiln_ivalue *out) {
  int64_t sizes[KILN_MAX_RANK], strides[KILN_MAX_RANK];
  int rank, count;
  const kiln_dtype dtype = kiln__arg_dtype_or(args, at + 2, fallback);
  kiln_tensor *t;
  KILN_TRY(kiln__arg_int_list(args, at, sizes, &rank));
  KILN_TRY(kiln__arg_int_list(args, at + 1, strides, &count));
  KILN_TRY(kiln__check_device(args[at + 4]));
  KILN_TRY(kiln__check_dtype(call, dtype));
  if (rank != count) {
    return KILN_OP_FAIL("mismatch in length of strides and shape: %d sizes and %d strides", rank,
                        count);
  }
  for (int d = 0; d < rank; d++) {
    if (sizes[d] < 0 || strides[d] < 0) {
      return KILN_OP_FAIL("empty_strided: sizes and strides must not be negative");
    }
  }
  KILN_TRY(
      kiln_tensor_create_strided(call->env->mem, &call->cache, dtype, rank, sizes, strides, &t));
  kiln__give(out, t);
  if (t->numel == 0) return NULL;
  void *data;
  KILN_TRY(kiln_tensor_writable_data(t, &data));
  int64_t span = 1;
  for (int d = 0; d < rank; d++) span += (sizes[d] - 1) * strides[d];
  kiln__zero(data, (size_t)span * kiln_dtype_bytes(dtype));
  return NULL;
}
KILN_KERNEL(empty_strided) { return strided(call, args, 0, KILN_DTYPE_F32, outs); }
KILN_KERNEL(new_empty_strided) { return strided(call, args, 1, kiln_tensor_dtype(SELF), outs); }
/* size, physical_layout: dimensions from the outermost in memory, dtype, ... */
KILN_KERNEL(empty_permuted) {
  int64_t sizes[KILN_MAX_RANK], order[KILN_MAX_RANK], strides[KILN_MAX_RANK], step = 1;
  int rank, count;
  uint64_t seen = 0;
  kiln_tensor *t;
  KILN_TRY(kiln__arg_int_list(args, 0, sizes, &rank));
  KILN_TRY(kiln__arg_int_list(args, 1, order, &count));
  KILN_TRY(kiln__check_device(args[4]));
  bool fits = rank == count;
  for (int i = rank - 1; fits && i >= 0; i--) {
    fits = order[i] >= 0 && order[i] < rank && !(seen >> order[i] & 1) && sizes[order[i]] >= 0;
    if (!fits) break;
    seen |= 1ull << order[i];
    strides[order[i]] = step;
    if (!kiln_checked_mul_i64(step, sizes[order[i]] ? sizes[order[i]] : 1, &step)) {
      return kiln_status_oom();
    }
  }
  if (!fits) {
    return KILN_OP_FAIL("empty_permuted: physical_layout must name each dimension of size once "
                        "(Duplicate dim not allowed), and no size may be negative");
  }
  const kiln_dtype dtype = kiln__arg_dtype_or(args, 2, KILN_DTYPE_F32);
  KILN_TRY(kiln__check_dtype(call, dtype));
  KILN_TRY(
      kiln_tensor_create_strided(call->env->mem, &call->cache, dtype, rank, sizes, strides, &t));
  kiln__give(outs, t);
  return kiln_pw_fill(call, t, kiln__number_int(0));
}
