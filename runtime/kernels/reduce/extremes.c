/* extremes.c: arg-reductions (max.dim, argmax), running sums, sort, topk. */
#include <math.h>
#include <string.h>

#include "runtime/kernels/pointwise/iter.h"
#include "runtime/kernels/reduce/order.h"
#include "runtime/kernels/reduce/reduction.h"
#include "runtime/kernels/shape/view.h"

/* -- Arg-reductions: the place of an extreme, of the first of equal ones; a NaN beats all -- */

typedef struct place_run {
  kiln_place_loop loop;
  kiln_reduce_loop extreme; /* what decides between 0 and -0; NULL: nothing does */
  const kiln_folded *folded;
  const char *from;
  char *values;
  int64_t *places, item;
} place_run;

/* So many rows are looked through and, where a value is 0, looked at again in the cache. */
enum { PLACE_BYTES = 1 << 15 };

static bool has_zero(const char *values, int64_t item, int64_t count) {
  int any = 0;
  for (int64_t i = 0; i < count; i++) {
    any |= item == sizeof(float) ? ((const float *)(const void *)values)[i] == 0
                                 : ((const double *)(const void *)values)[i] == 0;
  }
  return any;
}
static void place_some(const place_run *r, int64_t at, const char *from, int64_t row_step,
                       int64_t count, int64_t step) {
  char *values = r->values + at * r->item;
  r->loop(r->places + at, values, from, r->folded->length, row_step, count, step);
  if (r->extreme && has_zero(values, r->item, count))
    r->extreme(values, from, r->folded->length, row_step, count, step, NULL);
}
/* Results [begin, end) of the row of outer * inner results. */
static void place_piece(void *data, int64_t begin, int64_t end, int worker) {
  (void)worker;
  const place_run *r = data;
  const int64_t inner = r->folded->inner, item = r->item, row = r->folded->length * item;
  const int64_t few = row < PLACE_BYTES ? PLACE_BYTES / row : 1;
  for (int64_t count; begin < end; begin += count) {
    const int64_t column = begin % inner, most = inner == 1 ? few : inner - column;
    count = end - begin < most ? end - begin : most;
    place_some(r, begin, r->from + (begin / inner * row * inner + column * item), inner * item,
               count, inner == 1 ? row : item);
  }
}
/* Extremes, as amax and amin give them where exact is set, and indices: new tensors of the reduced
 * sizes. */
static kiln_status *arg_reduction(kiln_call *call, kiln_tensor *t, uint64_t mask, bool keepdim,
                                  bool largest, bool exact, kiln_tensor **out_values,
                                  kiln_tensor **out_indices) {
  const kiln_dtype dtype = kiln_tensor_dtype(t), compute = kiln__compute_dtype(dtype);
  const kiln_ctype ctype = kiln_ctype_of(dtype);
  const kiln_dispatch *d = call->dispatch;
  const bool zeros = exact && (ctype == KILN_CTYPE_F32 || ctype == KILN_CTYPE_F64);
  kiln_place_loop loop = ctype == KILN_CTYPE_NONE ? NULL : d->places[largest][ctype];
  if (!loop) return kiln__not_implemented(call, dtype);
  int rank;
  int64_t sizes[KILN_MAX_RANK];
  kiln_folded folded;
  kiln__reduced_sizes(t, mask, keepdim, &rank, sizes);
  KILN_TRY(kiln__fold(call, t, mask, compute, &folded));
  kiln_status *status = kiln_call_tensor(call, compute, rank, sizes, out_values);
  if (!status) {
    status = kiln_call_tensor(call, KILN_DTYPE_I64, rank, sizes, out_indices);
    if (status) kiln_tensor_release_to(&call->cache, *out_values);
  }
  if (!status && (*out_values)->numel) {
    place_run r = {
        .loop = loop,
        .extreme = zeros ? d->reduce[largest ? KILN_REDUCE_MAX : KILN_REDUCE_MIN][ctype] : NULL,
        .folded = &folded,
        .from = kiln_tensor_data(folded.tensor),
        .values = (char *)(uintptr_t)kiln_tensor_data(*out_values),
        .places = (int64_t *)(uintptr_t)kiln_tensor_data(*out_indices),
        .item = (int64_t)kiln_dtype_bytes(compute)};
    int64_t grain = (KILN_PW_GRAIN + folded.length - 1) / folded.length;
    if (folded.inner > 1) grain = (grain + 63) & ~(int64_t)63; /* whole blocks of columns */
    kiln_pool_for(call->pool, folded.outer * folded.inner, grain, place_piece, &r);
  }
  kiln_tensor_release_to(&call->cache, folded.tensor);
  return status;
}
static kiln_status *arg_and_value(kiln_call *call, const kiln_ivalue *args, bool largest,
                                  kiln_ivalue *outs) {
  kiln_tensor *t = SELF, *values, *indices;
  int dim, rank = kiln_tensor_rank(t);
  KILN_TRY(kiln_wrap_dim(kiln_arg_int(args, 1), rank, &dim));
  if (rank && kiln_tensor_sizes(t)[dim] == 0) {
    return KILN_OP_FAIL("%s(): Expected reduction dim %d to have non-zero size.",
                        largest ? "max" : "min", dim);
  }
  uint64_t mask = rank ? 1ull << dim : 0;
  KILN_TRY(arg_reduction(call, t, mask, kiln_arg_bool(args, 2), largest, true, &values, &indices));
  kiln__give(&outs[1], indices);
  return kiln__finish_as(call, &outs[0], values, kiln_tensor_dtype(t));
}
KILN_KERNEL(max_dim) { return arg_and_value(call, args, true, outs); }
KILN_KERNEL(min_dim) { return arg_and_value(call, args, false, outs); }
static kiln_status *arg_only(kiln_call *call, const kiln_ivalue *args, bool largest,
                             kiln_ivalue *out) {
  kiln_tensor *t = SELF, *values, *indices;
  uint64_t mask = kiln__all_dims(t);
  int rank = kiln_tensor_rank(t);
  const char *name = largest ? "argmax" : "argmin";
  if (!kiln_arg_is_none(args, 1)) {
    int dim;
    KILN_TRY(kiln_wrap_dim(kiln_arg_int(args, 1), rank, &dim));
    mask = rank ? 1ull << dim : 0;
    if (rank && kiln_tensor_sizes(t)[dim] == 0) {
      return KILN_OP_FAIL("%s(): Expected reduction dim %d to have non-zero size.", name, dim);
    }
  } else if (t->numel == 0) {
    return KILN_OP_FAIL("%s(): Expected reduction dim to be specified for input.numel() == 0. "
                        "Specify the reduction dim with the 'dim' argument.",
                        name);
  }
  if (kiln_tensor_dtype(t) == KILN_DTYPE_BOOL) return kiln__not_implemented(call, KILN_DTYPE_BOOL);
  KILN_TRY(arg_reduction(call, t, mask, kiln_arg_bool(args, 2), largest, false, &values, &indices));
  kiln_tensor_release_to(&call->cache, values);
  return kiln__finish(call, out, indices);
}
KILN_KERNEL(argmax) { return arg_only(call, args, true, outs); }
KILN_KERNEL(argmin) { return arg_only(call, args, false, outs); }

/* -- Running sums and products, in order -- */

enum { RUNNING_ROWS = 4, RUNNING_COLUMNS = 64 };

/* One row, or four at once, for each addition waits for the one before; and of columns that lie
 * beside each other a block, row by row. */
#define RUN_ON(T, A, combine, k)         \
  {                                      \
    const A x = (A)from[i + k * length]; \
    const A acc = sum##k;                \
    sum##k = (A)(combine);               \
    to[i + k * length] = (T)sum##k;      \
  }
#define RUNNING(name, T, A, combine)                                                             \
  static void name##_row(const T *from, T *to, int64_t length) {                                 \
    A sum0 = (A)from[0];                                                                         \
    to[0] = (T)sum0;                                                                             \
    for (int64_t i = 1, end; (end = kiln_budget_piece(i, length)) > i;) {                        \
      for (; i < end; i++) RUN_ON(T, A, combine, 0)                                              \
    }                                                                                            \
  }                                                                                              \
  static void name##_rows(const T *from, T *to, int64_t length) {                                \
    A sum0 = (A)from[0], sum1 = (A)from[length], sum2 = (A)from[2 * length];                     \
    A sum3 = (A)from[3 * length];                                                                \
    to[0] = (T)sum0, to[length] = (T)sum1, to[2 * length] = (T)sum2, to[3 * length] = (T)sum3;   \
    for (int64_t i = 1, end; (end = kiln_budget_piece(i, length)) > i;) {                        \
      for (; i < end; i++) {                                                                     \
        RUN_ON(T, A, combine, 0)                                                                 \
        RUN_ON(T, A, combine, 1)                                                                 \
        RUN_ON(T, A, combine, 2)                                                                 \
        RUN_ON(T, A, combine, 3)                                                                 \
      }                                                                                          \
    }                                                                                            \
  }                                                                                              \
  static void name##_columns(const T *from, T *to, int64_t length, int64_t apart, int columns) { \
    A sums[RUNNING_COLUMNS];                                                                     \
    for (int c = 0; c < columns; c++) {                                                          \
      sums[c] = (A)from[c];                                                                      \
      to[c] = (T)sums[c];                                                                        \
    }                                                                                            \
    for (int64_t i = 1, end; (end = kiln_budget_piece(i, length)) > i;) {                        \
      for (; i < end; i++) {                                                                     \
        const T *const more = from + i * apart;                                                  \
        T *const next = to + i * apart;                                                          \
        for (int c = 0; c < columns; c++) {                                                      \
          const A acc = sums[c], x = (A)more[c];                                                 \
          sums[c] = (A)(combine);                                                                \
          next[c] = (T)sums[c];                                                                  \
        }                                                                                        \
      }                                                                                          \
    }                                                                                            \
  }                                                                                              \
  static void name(const kiln_folded *f, char *out) {                                            \
    const T *from = (const T *)kiln_tensor_data(f->tensor);                                      \
    const int64_t length = f->length, block = length * f->inner;                                 \
    T *to = (T *)out;                                                                            \
    int64_t left = KILN_BUDGET_ITEMS, o = 0;                                                     \
    for (; f->inner == 1 && o + RUNNING_ROWS <= f->outer; o += RUNNING_ROWS) {                   \
      if (kiln_budget_spent(&left, RUNNING_ROWS * length)) return;                               \
      name##_rows(from + o * length, to + o * length, length);                                   \
    }                                                                                            \
    for (; o < f->outer; o++) {                                                                  \
      for (int64_t c = 0, n; c < f->inner; c += n) {                                             \
        n = f->inner - c < RUNNING_COLUMNS ? f->inner - c : RUNNING_COLUMNS;                     \
        if (kiln_budget_spent(&left, n * length)) return;                                        \
        if (f->inner == 1)                                                                       \
          name##_row(from + o * block, to + o * block, length);                                  \
        else                                                                                     \
          name##_columns(from + o * block + c, to + o * block + c, length, f->inner, (int)n);    \
      }                                                                                          \
    }                                                                                            \
  }
RUNNING(cumsum_f32, float, double, acc + x)
RUNNING(cumsum_f64, double, double, acc + x)
RUNNING(cumsum_i64, int64_t, uint64_t, acc + x)
RUNNING(cumsum_i32, int32_t, uint32_t, acc + x)
RUNNING(cumsum_c64, float _Complex, double _Complex, acc + x)
RUNNING(cumsum_c128, double _Complex, double _Complex, acc + x)
RUNNING(cumprod_c64, float _Complex, double _Complex, acc *x)
RUNNING(cumprod_c128, double _Complex, double _Complex, acc *x)
RUNNING(cumprod_f32, float, double, acc *x)
RUNNING(cumprod_f64, double, double, acc *x)
RUNNING(cumprod_i64, int64_t, uint64_t, acc *x)
RUNNING(cumprod_i32, int32_t, uint32_t, acc *x)

static kiln_status *running(kiln_call *call, const kiln_ivalue *args, bool product,
                            kiln_ivalue *out) {
  kiln_tensor *t = SELF, *result;
  int dim, rank = kiln_tensor_rank(t);
  KILN_TRY(kiln_wrap_dim(kiln_arg_int(args, 1), rank, &dim));
  kiln_dtype dtype = kiln_tensor_dtype(t);
  dtype = kiln__arg_dtype_or(args, 2, kiln_dtype_is_int(dtype, true) ? KILN_DTYPE_I64 : dtype);
  KILN_TRY(kiln__check_dtype(call, dtype));
  kiln_dtype compute = kiln__compute_dtype(dtype);
  void (*loop)(const kiln_folded *, char *) = NULL;
  switch (kiln_ctype_of(compute)) {
    case KILN_CTYPE_F32: loop = product ? cumprod_f32 : cumsum_f32; break;
    case KILN_CTYPE_F64: loop = product ? cumprod_f64 : cumsum_f64; break;
    case KILN_CTYPE_I32: loop = product ? cumprod_i32 : cumsum_i32; break;
    case KILN_CTYPE_I64: loop = product ? cumprod_i64 : cumsum_i64; break;
    case KILN_CTYPE_C64: loop = product ? cumprod_c64 : cumsum_c64; break;
    case KILN_CTYPE_C128: loop = product ? cumprod_c128 : cumsum_c128; break;
    default: return kiln__not_implemented(call, dtype);
  }
  kiln_folded folded;
  KILN_TRY(kiln__fold(call, t, rank ? 1ull << dim : 0, compute, &folded));
  kiln_status *status = kiln_call_tensor(call, compute, rank, kiln_tensor_sizes(t), &result);
  if (!status && result->numel) loop(&folded, (char *)(uintptr_t)kiln_tensor_data(result));
  kiln_tensor_release_to(&call->cache, folded.tensor);
  KILN_TRY(status);
  return kiln__finish_as(call, out, result, dtype);
}
KILN_KERNEL(cumsum) { return running(call, args, false, outs); }
KILN_KERNEL(cumprod) { return running(call, args, true, outs); }

/* -- Order; ties as PyTorch leaves them -- */

/* How a row is put in order. */
typedef struct ordering {
  int64_t count;                   /* so many first ones are kept; -1: all */
  bool descending, stable, select; /* select: only the kept ones need be in order */
  bool sorted;                     /* those of a selection */
} ordering;
static void put_in_order(const ordering *how, const kiln__keys *k, int64_t *order, int64_t *spare,
                         int64_t n) {
  if (how->select)
    kiln__order_first(k, order, n, how->count, how->sorted);
  else if (how->stable)
    kiln__order_stable(k, order, spare, n);
  else
    kiln__order_quick(k, order, n);
}
/* Sorts along a dimension and keeps the first `count` of each row: values and places. */
static bool sorted(kiln__composite *r, kiln_tensor *t, int dim, const ordering *how,
                   kiln_tensor *out[2]) {
  const kiln_dtype dtype = kiln_tensor_dtype(t);
  const bool whole = kiln_dtype_is_int(dtype, true);
  const kiln_dtype wide = whole ? KILN_DTYPE_I64 : KILN_DTYPE_F64;
  const int rank = kiln_tensor_rank(t);
  int64_t sizes[KILN_MAX_RANK], left = KILN_BUDGET_ITEMS;
  const int64_t count = how->count;
  kiln_folded folded;
  kiln_tensor *room;
  if (!kiln__composite_check_real(r, t)) return false;
  memcpy(sizes, kiln_tensor_sizes(t), sizeof(int64_t) * (size_t)rank);
  if (rank) sizes[dim] = count;
  /* 8-byte elements of either kind */
  const int64_t *from = kiln__composite_fold(r, t, rank ? 1ull << dim : 0, wide, &folded);
  const int64_t n = from ? folded.length : 0, room_size = 3 * n;
  int64_t *key = kiln__composite_new(r, KILN_DTYPE_I64, 1, &room_size, &room);
  int64_t *to = kiln__composite_new(r, wide, rank, sizes, &out[0]);
  int64_t *at = kiln__composite_new(r, KILN_DTYPE_I64, rank, sizes, &out[1]);
  if (r->status || out[0]->numel == 0) return !r->status;
  int64_t *order = key + n, *spare = key + 2 * n;
  const kiln__keys k = {whole ? key : NULL, whole ? NULL : (const double *)key, how->descending,
                        &left};
  for (int64_t o = 0; o < folded.outer; o++) {
    for (int64_t c = 0; c < folded.inner && !kiln_budget_spent(&left, n); c++) {
      for (int64_t i = 0; i < n; i++) {
        key[i] = from[(o * n + i) * folded.inner + c];
        order[i] = i;
      }
      put_in_order(how, &k, order, spare, n);
      for (int64_t i = 0; i < count; i++) {
        to[(o * count + i) * folded.inner + c] = key[order[i]];
        at[(o * count + i) * folded.inner + c] = order[i];
      }
    }
  }
  return true;
}
/* The values; places is what both were sorted by. */
static kiln_tensor *sort_along(kiln__composite *r, kiln_tensor *t, int64_t wanted, ordering how,
                               kiln_tensor **places) {
  const int rank = kiln_tensor_rank(t), dim = kiln__composite_dim(r, wanted, rank);
  const int64_t n = rank ? kiln_tensor_sizes(t)[dim] : 1;
  kiln_tensor *found[2];
  if (how.count < 0) {
    how.count = n;
    /* PyTorch leaves a repeated element where it is, and sorts long vectors of integers by radix */
    how.stable = how.stable || (rank && kiln_tensor_strides(t)[dim] == 0) ||
                 (rank == 1 && n >= 32768 && !how.descending &&
                  kiln_dtype_is_int(kiln_tensor_dtype(t), false));
  }
  *places = NULL;
  if (r->status || !sorted(r, t, dim, &how, found)) return NULL;
  *places = found[1];
  return found[0];
}
static kiln_tensor *give_sorted(kiln__composite *r, kiln_tensor *t, int64_t dim, ordering how,
                                kiln_ivalue *outs) {
  kiln_tensor *places, *values = sort_along(r, t, dim, how, &places);
  const kiln_dtype dtype = kiln_tensor_dtype(t);
  if (how.select) { /* row-major, whatever t is */
    kiln__composite_give(r, &outs[1], places);
    return kiln__composite_to(r, values, dtype);
  }
  kiln__composite_give(r, &outs[1], kiln__composite_lay_like(r, places, KILN_DTYPE_I64, t));
  return kiln__composite_lay_like(r, values, dtype, t);
}
/* dim, descending: two arguments from `at` on. */
static kiln_tensor *sort(kiln__composite *r, const kiln_ivalue *args, int at, bool stable,
                         kiln_ivalue *outs) {
  const ordering how = {.count = -1, .descending = kiln_arg_bool(args, at + 1), .stable = stable};
  return give_sorted(r, SELF, kiln_arg_int(args, at), how, outs);
}
static kiln_tensor *argsort(kiln__composite *r, const kiln_ivalue *args, int at, bool stable) {
  const ordering how = {.count = -1, .descending = kiln_arg_bool(args, at + 1), .stable = stable};
  kiln_tensor *places;
  (void)sort_along(r, SELF, kiln_arg_int(args, at), how, &places);
  return kiln__composite_lay_like(r, places, KILN_DTYPE_I64, SELF);
}
static bool is_stable(kiln_ivalue v) { return v.tag == KILN_TAG_BOOL && v.u.b; }
KILN_COMPOSITE(sort) { return sort(r, args, 1, false, outs); }
KILN_COMPOSITE(sort_stable) { return sort(r, args, 2, is_stable(args[1]), outs); }
KILN_COMPOSITE(argsort) { return argsort(r, args, 1, false); }
KILN_COMPOSITE(argsort_stable) { return argsort(r, args, 2, is_stable(args[1])); }
KILN_COMPOSITE(topk) {
  ordering how = {.count = kiln_arg_int(args, 1),
                  .descending = kiln_arg_bool(args, 3),
                  .select = true,
                  .sorted = kiln_arg_bool(args, 4)};
  const int rank = kiln_tensor_rank(SELF),
            dim = kiln__composite_dim(r, kiln_arg_int(args, 2), rank);
  if (r->status) return NULL;
  if (how.count < 0 || how.count > (rank ? kiln_tensor_sizes(SELF)[dim] : 1)) {
    return FAIL(r, "selected index k out of range");
  }
  if (rank == 0) how.count = 1; /* whatever was asked for, as in PyTorch */
  return give_sorted(r, SELF, dim, how, outs);
}
