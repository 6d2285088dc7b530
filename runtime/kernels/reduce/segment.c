/* segment.c: reductions over segments of one dimension. */
#include <math.h>
#include <string.h>

#include "runtime/kernels/composite.h"

/* data, reduce, lengths, indices, offsets, axis, unsafe, initial */
KILN_COMPOSITE(segment_reduce) {
  kiln_tensor *t = SELF, *lengths = kiln_arg_tensor_opt(args, 2), *in, *dense, *out;
  kiln_tensor *offsets = kiln_arg_tensor_opt(args, 4);
  const kiln_str how = kiln_arg_str(args, 1);
  const bool is_max = kiln_str_is(how, "max"), is_min = kiln_str_is(how, "min");
  const bool is_mean = kiln_str_is(how, "mean"), is_prod = kiln_str_is(how, "prod");
  const int rank = kiln_tensor_rank(t);
  kiln_tensor *ends = lengths ? lengths : offsets;
  int64_t sizes[KILN_MAX_RANK], axis = kiln_arg_int(args, 5);
  if (axis < 0) axis += rank;
  if (!ends || kiln_tensor_rank(ends) < 1 || axis < 0 || axis >= rank ||
      axis != kiln_tensor_rank(ends) - 1 || !kiln_dtype_is_float(kiln_tensor_dtype(t))) {
    return FAIL(r, "segment_reduce(): expected float data, and lengths or offsets "
                   "whose last dimension is the axis");
  }
  if (!is_max && !is_min && !is_mean && !is_prod && !kiln_str_is(how, "sum")) {
    return FAIL(r, "reduction type " KILN_STR_FMT " is not supported", KILN_STR_ARG(how));
  }
  const bool given = args[7].tag != KILN_TAG_NONE;
  const double initial = given    ? kiln__number(args[7]).f
                         : is_max ? -INFINITY
                         : is_min ? INFINITY
                                  : is_prod;
  const int64_t segments = kiln__composite_size(ends, -1) - (lengths ? 0 : 1);
  int64_t outer = 1, inner = 1;
  memcpy(sizes, kiln_tensor_sizes(t), sizeof *sizes * (size_t)rank);
  for (int d = 0; d < axis; d++) {
    outer *= sizes[d];
    if (sizes[d] != kiln_tensor_sizes(ends)[d])
      FAIL(r, "Expected all dimensions of data before the axis to match lengths");
  }
  for (int64_t d = axis + 1; d < rank; d++) inner *= sizes[d];
  const int64_t n = sizes[axis];
  sizes[axis] = segments < 0 ? 0 : segments;
  const double *x = kiln__composite_read(r, t, KILN_DTYPE_F64, &in);
  const int64_t *end = kiln__composite_read(r, ends, KILN_DTYPE_I64, &dense);
  double *to = kiln__composite_new(r, KILN_DTYPE_F64, rank, sizes, &out);
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t o = 0; !r->status && o < outer && !kiln_budget_spent(&left, 1); o++) {
    int64_t at = 0;
    for (int64_t s = 0; s < segments && !kiln_budget_spent(&left, 1); s++) {
      const int64_t *own = end + o * (segments + !lengths) + s;
      const int64_t begin = lengths ? at : own[0], stop = lengths ? at + own[0] : own[1];
      if (begin < 0 || stop < begin || stop > n) {
        return FAIL(r, "Expected all rows of lengths along axis to sum to data.size(axis)");
      }
      for (int64_t c = 0; c < inner && !kiln_budget_spent(&left, 4); c++) {
        double sum = initial;
        for (int64_t i = begin; i < stop && !kiln_budget_spent(&left, 2); i++) {
          const double v = x[(o * n + i) * inner + c];
          if (is_max) sum = v != v || v > sum ? v : sum;
          if (is_min) sum = v != v || v < sum ? v : sum;
          if (is_prod) sum *= v;
          if (!is_max && !is_min && !is_prod) sum += v;
        }
        if (is_mean && stop > begin) sum /= (double)(stop - begin);
        if (is_mean && stop == begin && !given) sum = NAN;
        to[(o * segments + s) * inner + c] = sum;
      }
      at = stop;
    }
    if (left > 0 && lengths && at != n && !kiln_arg_bool(args, 6)) {
      FAIL(r, "Expected all rows of lengths along axis to sum to "
              "data.size(lengths.dim()-1) when !unsafe.");
    }
  }
  return kiln__composite_to(r, out, kiln_tensor_dtype(t));
}
