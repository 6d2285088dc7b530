/* reduction.c: sum, mean, prod, max, min, any, all, var, norms. */
#include "runtime/kernels/reduce/reduction.h"

#include <math.h>
#include <string.h>

#include "runtime/kernels/pointwise/iter.h"
#include "runtime/kernels/shape/view.h"

/* -- The machine -- */

kiln_status *kiln__fold(kiln_call *call, kiln_tensor *t, uint64_t mask, kiln_dtype compute,
                        kiln_folded *out) {
  int rank = kiln_tensor_rank(t), runs = 0, last = -1;
  out->outer = out->length = out->inner = 1;
  for (int i = 0; i < rank; i++) { /* runs of kept and reduced dimensions */
    int64_t size = kiln_tensor_sizes(t)[i];
    if (size == 1) continue;
    int reduced = (int)(mask >> i & 1);
    if (reduced != last) runs += reduced;
    last = reduced;
    if (reduced)
      out->length *= size;
    else if (out->length == 1 && runs == 0)
      out->outer *= size;
    else
      out->inner *= size;
  }
  if (out->inner == 0) out->outer = 0; /* no results, however many rows of none */
  if (runs < 2) return kiln__as_dtype(call, t, compute, &out->tensor);
  /* Reduced dimensions in several places: they are moved to the end. */
  int dims[KILN_MAX_RANK], n = 0;
  out->outer = out->length = 1;
  out->inner = 1;
  for (int pass = 0; pass < 2; pass++) {
    for (int i = 0; i < rank; i++) {
      if ((int)(mask >> i & 1) != pass) continue;
      dims[n++] = i;
      if (pass)
        out->length *= kiln_tensor_sizes(t)[i];
      else
        out->outer *= kiln_tensor_sizes(t)[i];
    }
  }
  kiln_tensor *view;
  KILN_TRY(kiln__permute(call, t, dims, &view));
  kiln_status *status = kiln__as_dtype(call, view, compute, &out->tensor);
  kiln_tensor_release_to(&call->cache, view);
  return status;
}

void kiln__reduced_sizes(const kiln_tensor *t, uint64_t mask, bool keepdim, int *out_rank,
                         int64_t *out_sizes) {
  *out_rank = 0;
  for (int i = 0; i < kiln_tensor_rank(t); i++) {
    bool reduced = mask >> i & 1;
    if (reduced && !keepdim) continue;
    out_sizes[(*out_rank)++] = reduced ? 1 : kiln_tensor_sizes(t)[i];
  }
}

const void *kiln__composite_fold(kiln__composite *r, kiln_tensor *t, uint64_t mask,
                                 kiln_dtype compute, kiln_folded *out) {
  if (r->status || !kiln__composite_ok(r, kiln__fold(r->call, t, mask, compute, out)) ||
      !kiln__composite_keep(r, out->tensor)) {
    return NULL;
  }
  return kiln_tensor_data(out->tensor);
}

typedef struct reduce_run {
  kiln_reduce_loop loop;
  const kiln_folded *folded;
  const char *from, *shift; /* shift NULL: 0 */
  char *to;
  int64_t item;
  /* Of a spread: `loop` gives squares of distances from the means, these the means. */
  kiln_reduce_loop sum;
  char *means;
  double count;
} reduce_run;

/* So much of a spread's rows is summed and, still in the cache, squared. */
enum { SPREAD_BYTES = 1 << 17 };

/* `count` results from result `at` on, whose elements begin at `from`. */
static void run_results(const reduce_run *r, int64_t at, const char *from, int64_t row_step,
                        int64_t count, int64_t step) {
  const int64_t length = r->folded->length, item = r->item;
  const char *shift = r->shift ? r->shift + at * item : NULL;
  if (r->sum) {
    char *means = r->means + at * item;
    r->sum(means, from, length, row_step, count, step, NULL);
    for (int64_t i = 0; i < count; i++) {
      if (item == sizeof(float))
        ((float *)(void *)means)[i] /= (float)r->count;
      else
        ((double *)(void *)means)[i] /= r->count;
    }
    shift = means;
  }
  r->loop(r->to + at * item, from, length, row_step, count, step, shift);
}

/* Results [begin, end) of the row of outer * inner results. */
static void run_piece(void *data, int64_t begin, int64_t end, int worker) {
  (void)worker;
  const reduce_run *r = data;
  const int64_t length = r->folded->length, inner = r->folded->inner, item = r->item;
  const int64_t few = length > 0 ? SPREAD_BYTES / (length * item) : 0;
  while (begin < end && inner == 1) { /* rows */
    const int64_t some = r->sum ? (few > 1 ? few : 1) : end - begin;
    const int64_t count = some < end - begin ? some : end - begin;
    run_results(r, begin, r->from + begin * length * item, item, count, length * item);
    begin += count;
  }
  while (begin < end) { /* columns of one outer step at a time */
    int64_t outer = begin / inner, column = begin % inner;
    int64_t count = inner - column < end - begin ? inner - column : end - begin;
    run_results(r, begin, r->from + (outer * length * inner + column) * item, inner * item, count,
                item);
    begin += count;
  }
}

/* One result is never cut: the order of its additions is the rule of reduce.h. */
static void run(kiln_pool *pool, reduce_run *r) {
  const int64_t length = r->folded->length > 0 ? r->folded->length : 1;
  int64_t grain = (KILN_PW_GRAIN + length - 1) / length;
  if (r->folded->inner > 1) grain = (grain + 63) & ~(int64_t)63; /* whole blocks of columns */
  kiln_pool_for(pool, r->folded->outer * r->folded->inner, grain, run_piece, r);
}

static int64_t count_of(const kiln_tensor *t, uint64_t mask) {
  int64_t n = 1;
  for (int i = 0; i < kiln_tensor_rank(t); i++) {
    if (mask >> i & 1) n *= kiln_tensor_sizes(t)[i];
  }
  return n;
}

/* *out_means (may be NULL): the operation is SUMSQ, of distances from the means, which it gets. */
static kiln_status *reduce(kiln_call *call, kiln_reduce_op op, kiln_tensor *t, uint64_t mask,
                           bool keepdim, kiln_dtype compute, const kiln_tensor *shift,
                           kiln_tensor **out_means, kiln_tensor **out) {
  kiln_ctype ctype = kiln_ctype_of(compute);
  kiln_reduce_loop loop = ctype == KILN_CTYPE_NONE ? NULL : call->dispatch->reduce[op][ctype];
  if (!loop || kiln_ctype_of(kiln_tensor_dtype(t)) == KILN_CTYPE_NONE) {
    return kiln__not_implemented(call, kiln_tensor_dtype(t));
  }
  int rank;
  int64_t sizes[KILN_MAX_RANK];
  kiln_folded folded;
  kiln__reduced_sizes(t, mask, keepdim, &rank, sizes);
  KILN_TRY(kiln__fold(call, t, mask, compute, &folded));
  kiln_status *status = kiln_call_tensor(call, compute, rank, sizes, out);
  if (!status && out_means) {
    status = kiln_call_tensor(call, compute, rank, sizes, out_means);
    if (status) kiln_tensor_release_to(&call->cache, *out);
  }
  if (!status && (*out)->numel) {
    const size_t item = kiln_dtype_bytes(compute);
    reduce_run r = {.loop = loop,
                    .folded = &folded,
                    .from = kiln_tensor_data(folded.tensor),
                    .shift = shift ? kiln_tensor_data(shift) : NULL,
                    .to = (char *)(*out)->storage->data + (size_t)(*out)->offset * item,
                    .item = (int64_t)item};
    if (out_means) {
      r.sum = call->dispatch->reduce[KILN_REDUCE_SUM][ctype];
      r.means = (*out_means)->storage->data;
      r.count = (double)count_of(t, mask);
    }
    run(call->pool, &r);
  }
  kiln_tensor_release_to(&call->cache, folded.tensor);
  return status;
}

kiln_status *kiln__reduce(kiln_call *call, kiln_reduce_op op, kiln_tensor *t, uint64_t mask,
                          bool keepdim, kiln_dtype compute, const kiln_tensor *shift,
                          kiln_tensor **out) {
  return reduce(call, op, t, mask, keepdim, compute, shift, NULL, out);
}

kiln_status *kiln__finish_as(kiln_call *call, kiln_ivalue *out, kiln_tensor *value,
                             kiln_dtype dtype) {
  if (kiln_tensor_dtype(value) != dtype) {
    kiln_tensor *converted;
    kiln_status *status = kiln__as_dtype(call, value, dtype, &converted);
    kiln_tensor_release_to(&call->cache, value);
    KILN_TRY(status);
    value = converted;
  }
  return kiln__finish(call, out, value);
}

/* -- Sums and products -- */

/* The dtype of a sum: int64 for integers, where none is asked for. */
static kiln_dtype sum_dtype(const kiln_ivalue *args, int arg, const kiln_ivalue *out) {
  if (args[arg].tag == KILN_TAG_INT) return (kiln_dtype)args[arg].u.i;
  if (kiln__dest(out)) return kiln_tensor_dtype(kiln__dest(out));
  kiln_dtype dtype = kiln_tensor_dtype(args[0].u.tensor);
  return kiln_dtype_is_int(dtype, true) ? KILN_DTYPE_I64 : dtype;
}
static kiln_status *accumulate(kiln_call *call, kiln_reduce_op op, kiln_tensor *t, uint64_t mask,
                               bool keepdim, kiln_dtype dtype, kiln_ivalue *out) {
  kiln_tensor *value;
  KILN_TRY(kiln__check_dtype(call, dtype));
  kiln_dtype compute = kiln__compute_dtype(dtype);
  if (compute == KILN_DTYPE_BOOL) op = op == KILN_REDUCE_SUM ? KILN_REDUCE_ANY : KILN_REDUCE_ALL;
  KILN_TRY(kiln__reduce(call, op, t, mask, keepdim, compute, NULL, &value));
  return kiln__finish_as(call, out, value, dtype);
}
KILN_KERNEL(sum) {
  return accumulate(call, KILN_REDUCE_SUM, SELF, kiln__all_dims(SELF), false,
                    sum_dtype(args, 1, outs), outs);
}
KILN_KERNEL(sum_dim) {
  uint64_t mask;
  KILN_TRY(kiln__arg_dims(args, 1, kiln_tensor_rank(SELF), &mask));
  return accumulate(call, KILN_REDUCE_SUM, SELF, mask, kiln_arg_bool(args, 2),
                    sum_dtype(args, 3, outs), outs);
}
KILN_KERNEL(prod) {
  return accumulate(call, KILN_REDUCE_PROD, SELF, kiln__all_dims(SELF), false,
                    sum_dtype(args, 1, outs), outs);
}
KILN_KERNEL(prod_dim) {
  uint64_t mask;
  KILN_TRY(kiln__arg_dims(args, 1, kiln_tensor_rank(SELF), &mask));
  return accumulate(call, KILN_REDUCE_PROD, SELF, mask, kiln_arg_bool(args, 2),
                    sum_dtype(args, 3, outs), outs);
}
static kiln_status *mean(kiln_call *call, kiln_tensor *t, uint64_t mask, bool keepdim,
                         kiln_dtype dtype, kiln_ivalue *out) {
  if (!kiln_dtype_is_float(dtype) && !kiln_dtype_is_complex(dtype)) {
    return KILN_OP_FAIL(
        "mean(): could not infer output dtype. Input dtype must be either a floating "
        "point or complex dtype. Got: %s",
        kiln_dtype_ir_name(dtype));
  }
  kiln_tensor *value;
  KILN_TRY(kiln__reduce(call, KILN_REDUCE_SUM, t, mask, keepdim, kiln__compute_dtype(dtype), NULL,
                        &value));
  kiln_pw pw = {.functor = KILN_PW_div, .in_count = 2, .common = kiln_tensor_dtype(value)};
  pw.in[0].tensor = value;
  pw.in[1].number = kiln__number_float((double)count_of(t, mask));
  kiln_ivalue quotient = kiln_of_tensor(value);
  kiln_status *status = kiln_pw_run(call, &pw, &quotient);
  if (!status) return kiln__finish_as(call, out, value, dtype);
  kiln_tensor_release_to(&call->cache, value);
  return status;
}
KILN_KERNEL(mean) {
  return mean(call, SELF, kiln__all_dims(SELF), false,
              kiln__arg_dtype_or(args, 1, kiln_tensor_dtype(SELF)), outs);
}
KILN_KERNEL(mean_dim) {
  uint64_t mask;
  KILN_TRY(kiln__arg_dims(args, 1, kiln_tensor_rank(SELF), &mask));
  return mean(call, SELF, mask, kiln_arg_bool(args, 2),
              kiln__arg_dtype_or(args, 3, kiln_tensor_dtype(SELF)), outs);
}

/* -- Extremes -- */

static kiln_status *extreme(kiln_call *call, bool largest, kiln_tensor *t, uint64_t mask,
                            bool keepdim, kiln_ivalue *out) {
  kiln_dtype dtype = kiln_tensor_dtype(t);
  KILN_TRY(kiln__check_dtype(call, dtype));
  kiln_dtype compute = kiln__compute_dtype(dtype);
  kiln_reduce_op op = largest ? KILN_REDUCE_MAX : KILN_REDUCE_MIN;
  if (compute == KILN_DTYPE_BOOL) op = largest ? KILN_REDUCE_ANY : KILN_REDUCE_ALL;
  kiln_tensor *value;
  KILN_TRY(kiln__reduce(call, op, t, mask, keepdim, compute, NULL, &value));
  return kiln__finish_as(call, out, value, dtype);
}
static kiln_status *extreme_all(kiln_call *call, bool largest, kiln_tensor *t, kiln_ivalue *out) {
  if (t->numel == 0) {
    return KILN_OP_FAIL("%s(): Expected reduction dim to be specified for input.numel() == 0. "
                        "Specify the reduction dim with the 'dim' argument.",
                        largest ? "max" : "min");
  }
  return extreme(call, largest, t, kiln__all_dims(t), false, out);
}
KILN_KERNEL(max_all) { return extreme_all(call, true, SELF, outs); }
KILN_KERNEL(min_all) { return extreme_all(call, false, SELF, outs); }
static kiln_status *extreme_dims(kiln_call *call, bool largest, const kiln_ivalue *args,
                                 kiln_ivalue *out) {
  uint64_t mask;
  KILN_TRY(kiln__arg_dims(args, 1, kiln_tensor_rank(SELF), &mask));
  if (SELF->numel == 0 && args[1].tag == KILN_TAG_LIST && args[1].u.list->count == 0) {
    return KILN_OP_FAIL("%s(): Expected reduction dim to be specified for input.numel() == 0. "
                        "Specify the reduction dim with the 'dim' argument.",
                        largest ? "amax" : "amin");
  }
  for (int i = 0; i < kiln_tensor_rank(SELF); i++) {
    if ((mask >> i & 1) && kiln_tensor_sizes(SELF)[i] == 0) {
      return KILN_OP_FAIL("%s(): Expected reduction dim %d to have non-zero size.",
                          largest ? "amax" : "amin", i);
    }
  }
  return extreme(call, largest, SELF, mask, kiln_arg_bool(args, 2), out);
}
KILN_KERNEL(amax) { return extreme_dims(call, true, args, outs); }
KILN_KERNEL(amin) { return extreme_dims(call, false, args, outs); }
KILN_KERNEL(aminmax) {
  uint64_t mask = kiln__all_dims(SELF);
  if (!kiln_arg_is_none(args, 1)) {
    int dim;
    KILN_TRY(kiln_wrap_dim(kiln_arg_int(args, 1), kiln_tensor_rank(SELF), &dim));
    mask = (1ull << dim) & kiln__all_dims(SELF);
  }
  if (count_of(SELF, mask) == 0) {
    return KILN_OP_FAIL(
        "aminmax(): cannot compute aminmax over an empty dimension as the operation "
        "has no identity.");
  }
  KILN_TRY(extreme(call, false, SELF, mask, kiln_arg_bool(args, 2), &outs[0]));
  return extreme(call, true, SELF, mask, kiln_arg_bool(args, 2), &outs[1]);
}

/* -- Truth -- */

static kiln_status *truth(kiln_call *call, kiln_reduce_op op, kiln_tensor *t, uint64_t mask,
                          bool keepdim, kiln_ivalue *out) {
  kiln_tensor *value;
  KILN_TRY(kiln__reduce(call, op, t, mask, keepdim, KILN_DTYPE_BOOL, NULL, &value));
  return kiln__finish_as(call, out, value,
                         kiln_tensor_dtype(t) == KILN_DTYPE_U8 ? KILN_DTYPE_U8 : KILN_DTYPE_BOOL);
}
#define TRUTH(name, op)                                                                  \
  KILN_KERNEL(name) { return truth(call, op, SELF, kiln__all_dims(SELF), false, outs); } \
  KILN_KERNEL(name##_dim) {                                                              \
    uint64_t mask;                                                                       \
    KILN_TRY(kiln__arg_dims(args, 1, kiln_tensor_rank(SELF), &mask));                    \
    return truth(call, op, SELF, mask, kiln_arg_bool(args, 2), outs);                    \
  }
TRUTH(any, KILN_REDUCE_ANY)
TRUTH(all, KILN_REDUCE_ALL)
KILN_KERNEL(count_nonzero) {
  uint64_t mask;
  kiln_tensor *flags, *value;
  KILN_TRY(kiln__arg_dims(args, 1, kiln_tensor_rank(SELF), &mask));
  KILN_TRY(kiln__as_dtype(call, SELF, KILN_DTYPE_BOOL, &flags));
  kiln_status *status =
      kiln__reduce(call, KILN_REDUCE_SUM, flags, mask, false, KILN_DTYPE_I64, NULL, &value);
  kiln_tensor_release_to(&call->cache, flags);
  KILN_TRY(status);
  return kiln__finish(call, outs, value);
}

/* -- Spread -- */

/* functor(value), or functor(value, *number): a new tensor, or value itself, written `over`. */
static kiln_tensor *map(kiln__composite *r, kiln_pw_functor functor, kiln_tensor *value,
                        const double *number, bool over) {
  kiln_pw pw = {.functor = functor, .in_count = number ? 2 : 1};
  kiln_ivalue out = over ? T(value) : NONE;
  if (r->status || !value) return NULL;
  pw.common = kiln_tensor_dtype(value);
  pw.in[0].tensor = value;
  if (number) pw.in[1].number = kiln__number_float(*number);
  const bool fine = kiln__composite_ok(r, kiln_pw_run(r->call, &pw, &out));
  kiln_tensor *result = over ? value : kiln__composite_keep(r, kiln__dest(&out));
  return fine ? result : NULL;
}
/* Two passes: the mean, then the squares of the distances from it. Of complex numbers the sum of
 * the variances of their parts. */
static kiln_tensor *variance(kiln__composite *r, kiln_tensor *t, uint64_t mask, double correction,
                             bool keepdim, bool root, kiln_ivalue *out_mean) {
  const kiln_dtype dtype = kiln__composite_dtype(t);
  kiln_tensor *value;
  if (r->status) return NULL;
  if (kiln_dtype_is_complex(dtype)) {
    if (out_mean) (void)kiln__composite_ok(r, mean(r->call, t, mask, keepdim, dtype, out_mean));
    kiln_tensor *re = KILN_STEP(r, real, T(t)), *im = KILN_STEP(r, imag, T(t));
    re = variance(r, re, mask, correction, keepdim, false, NULL);
    im = variance(r, im, mask, correction, keepdim, false, NULL);
    value = KILN_STEP(r, add, T(re), T(im), I(1));
    return root ? KILN_STEP(r, sqrt, T(value)) : value;
  }
  if (!kiln_dtype_is_float(dtype)) {
    return FAIL(r, "std and var only support floating point and complex dtypes");
  }
  const kiln_dtype compute = kiln__compute_dtype(dtype);
  const double n = (double)count_of(t, mask), rest = n - correction;
  const double divisor = n > 0 && rest > 0 ? rest : 0;
  kiln_tensor *center = NULL;
  value = KILN_OWN(
      r, reduce(r->call, KILN_REDUCE_SUMSQ, t, mask, keepdim, compute, NULL, &center, &own_tensor));
  if (center) center = kiln__composite_keep(r, center);
  if (!value || !center) return NULL;
  if (out_mean) kiln__composite_give(r, out_mean, kiln__composite_to(r, center, dtype));
  value = map(r, KILN_PW_div, value, &divisor, true);
  if (root) value = map(r, KILN_PW_sqrt, value, NULL, true);
  return kiln__composite_to(r, value, dtype);
}
/* (unbiased); (dim, unbiased, keepdim); (dim, correction, keepdim), which may be None or a number.
 */
static kiln_tensor *variance_or_root(kiln__composite *r, const kiln_ivalue *args, bool dims,
                                     bool root, kiln_ivalue *out_mean) {
  uint64_t mask = kiln__all_dims(SELF);
  if (!dims) return variance(r, SELF, mask, kiln_arg_bool(args, 1), false, root, out_mean);
  const double correction = args[2].tag == KILN_TAG_NONE ? 1 : kiln__number(args[2]).f;
  (void)kiln__composite_ok(r, kiln__arg_dims(args, 1, kiln_tensor_rank(SELF), &mask));
  return variance(r, SELF, mask, correction, kiln_arg_bool(args, 3), root, out_mean);
}
#define SPREAD(name, root)                                                                 \
  KILN_COMPOSITE(name) { return variance_or_root(r, args, false, root, NULL); }            \
  KILN_COMPOSITE(name##_dim) { return variance_or_root(r, args, true, root, NULL); }       \
  KILN_COMPOSITE(name##_mean) { return variance_or_root(r, args, false, root, &outs[1]); } \
  KILN_COMPOSITE(name##_mean_dim) { return variance_or_root(r, args, true, root, &outs[1]); }
SPREAD(var, false)
SPREAD(std, true)

/* -- Norms -- */

static kiln_tensor *norm(kiln__composite *r, kiln_tensor *t, double p, uint64_t mask, bool keepdim,
                         kiln_dtype dtype) {
  if (kiln_dtype_is_complex(dtype)) { /* that of the absolute values */
    t = map(r, KILN_PW_abs, t, NULL, false);
    dtype = kiln__composite_dtype(t);
  }
  if (r->status) return NULL;
  if (!kiln_dtype_is_float(dtype)) {
    return FAIL(r,
                "linalg.vector_norm: Expected a floating point or complex tensor as "
                "input. Got %s",
                kiln_dtype_ir_name(dtype));
  }
  const kiln_dtype compute = kiln__compute_dtype(dtype);
  if (mask == 0 && p != 0) p = 1; /* of one element: no power of it, which could be infinite */
  const bool powers = p != 0 && p != 1 && p != 2 && !isinf(p);
  const double zero = 0, inverse = 1 / p;
  const kiln_reduce_op op = isinf(p) ? (p > 0 ? KILN_REDUCE_MAX : KILN_REDUCE_MIN)
                            : p == 2 ? KILN_REDUCE_SUMSQ
                            : p == 1 ? KILN_REDUCE_ABS
                                     : KILN_REDUCE_SUM;
  if (isinf(p) && count_of(t, mask) == 0) {
    return FAIL(r, "linalg.vector_norm cannot compute the infinity norm on an empty tensor "
                   "because the operation does not have an identity");
  }
  if (p != 1 && p != 2) t = map(r, KILN_PW_abs, kiln__composite_to(r, t, compute), NULL, false);
  if (p == 0) t = map(r, KILN_PW_ne, t, &zero, false); /* NaN counts as well */
  if (powers) t = map(r, KILN_PW_pow, t, &p, false);
  kiln_tensor *value =
      KILN_OWN(r, kiln__reduce(r->call, op, t, mask, keepdim, compute, NULL, &own_tensor));
  if (p == 2) value = map(r, KILN_PW_sqrt, value, NULL, false);
  if (powers) value = map(r, KILN_PW_pow, value, &inverse, false);
  return kiln__composite_to(r, value, dtype);
}
/* From args[at] on: dim, keepdim. */
static kiln_tensor *norm_over(kiln__composite *r, double p, const kiln_ivalue *args, int at,
                              kiln_dtype dtype) {
  uint64_t mask = 0;
  (void)kiln__composite_ok(r, kiln__arg_dims(args, at, kiln_tensor_rank(SELF), &mask));
  return norm(r, SELF, p, mask, kiln_arg_bool(args, at + 1), dtype);
}
static double order_of(kiln_ivalue v) { return v.tag == KILN_TAG_NONE ? 2 : kiln__number(v).f; }
KILN_COMPOSITE(linalg_vector_norm) { /* ord, dim, keepdim, dtype */
  return norm_over(r, kiln__number(args[1]).f, args, 2,
                   kiln__arg_dtype_or(args, 4, kiln_tensor_dtype(SELF)));
}
KILN_COMPOSITE(norm) { /* p */
  return norm(r, SELF, order_of(args[1]), kiln__all_dims(SELF), false, kiln_tensor_dtype(SELF));
}
KILN_COMPOSITE(norm_dtype) { /* p, dtype */
  return norm(r, SELF, order_of(args[1]), kiln__all_dims(SELF), false,
              (kiln_dtype)kiln_arg_int(args, 2));
}
KILN_COMPOSITE(norm_dim) { /* p, dim, keepdim */
  return norm_over(r, order_of(args[1]), args, 2, kiln_tensor_dtype(SELF));
}
KILN_COMPOSITE(norm_dim_dtype) { /* p, dim, keepdim, dtype */
  return norm_over(r, order_of(args[1]), args, 2, (kiln_dtype)kiln_arg_int(args, 4));
}
KILN_COMPOSITE(frobenius_norm) { /* dim, keepdim */
  return norm_over(r, 2, args, 1, kiln_tensor_dtype(SELF));
}
