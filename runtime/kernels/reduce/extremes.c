/* extremes.c: arg-reductions (max.dim, argmax), running sums, sort, topk. */
#include <math.h>
#include <string.h>

#include "runtime/kernels/pointwise/iter.h"
#include "runtime/kernels/reduce/order.h"
#include "runtime/kernels/reduce/reduction.h"
#include "runtime/kernels/shape/view.h"

/* -- Arg-reductions: the place of an extreme, of the first of equal ones; a NaN beats all -- */

enum { PLACE_COLUMNS = 64, PLACE_ROWS = 256, PLACE_STEP = 64 };

/* Whole steps are asked first whether they hold it. Of columns that lie beside each other a block
 * is searched row by row, until all have their place: `at` is it among `rows` of them. */
#define PLACE(name, T)                                                                           \
  static int64_t name##_in_row(const T *row, int64_t n, T most) {                                \
    int64_t at = 0;                                                                              \
    for (int64_t end; (end = kiln_budget_piece(at, n)) > at;) {                                  \
      for (bool hit = false; !hit && at + PLACE_STEP <= end; at += hit ? 0 : PLACE_STEP) {       \
        int any = 0;                                                                             \
        for (int j = 0; j < PLACE_STEP; j++) any |= (row[at + j] == most) | IS_NAN(row[at + j]); \
        hit = any != 0;                                                                          \
      }                                                                                          \
      while (at < end && row[at] != most && !IS_NAN(row[at])) at++;                              \
      if (at < end) return at;                                                                   \
    }                                                                                            \
    return 0;                                                                                    \
  }                                                                                              \
  static int name##_in_columns(const T *from, int64_t rows, int64_t apart, int columns,          \
                               const T *best, int64_t first, int64_t *indices) {                 \
    int32_t at[PLACE_COLUMNS];                                                                   \
    int found = 0;                                                                               \
    for (int c = 0; c < columns; c++) at[c] = -1;                                                \
    for (int32_t r = 0; r < rows; r++, from += apart) {                                          \
      for (int c = 0; c < columns; c++) {                                                        \
        const int32_t hit = -((from[c] == best[c]) | IS_NAN(from[c])) & (at[c] >> 31);           \
        at[c] = (at[c] & ~hit) | (r & hit);                                                      \
      }                                                                                          \
    }                                                                                            \
    for (int c = 0; c < columns; c++) {                                                          \
      if (indices[c] < 0 && at[c] >= 0) indices[c] = first + at[c];                              \
      found += indices[c] >= 0;                                                                  \
    }                                                                                            \
    return found;                                                                                \
  }                                                                                              \
  static void name(const kiln_folded *f, const void *extremes, int64_t *indices) {               \
    const T *from = (const T *)kiln_tensor_data(f->tensor), *best = extremes;                    \
    int64_t left = KILN_BUDGET_ITEMS;                                                            \
    for (int64_t o = 0; o < f->outer; o++, from += f->length * f->inner) {                       \
      for (int64_t c = 0, n; c < f->inner; c += n, best += n, indices += n) {                    \
        n = f->inner == 1 ? 1 : f->inner - c < PLACE_COLUMNS ? f->inner - c : PLACE_COLUMNS;     \
        if (f->inner == 1) {                                                                     \
          *indices =                                                                             \
              kiln_budget_spent(&left, f->length) ? 0 : name##_in_row(from, f->length, *best);   \
          continue;                                                                              \
        }                                                                                        \
        for (int i = 0; i < n; i++) indices[i] = -1;                                             \
        int64_t rows, found = 0;                                                                 \
        for (int64_t r = 0; r < f->length && found < n; r += rows) {                             \
          rows = f->length - r < PLACE_ROWS ? f->length - r : PLACE_ROWS;                        \
          if (kiln_budget_spent(&left, rows * n)) break;                                         \
          found = name##_in_columns(from + r * f->inner + c, rows, f->inner, (int)n, best, r,    \
                                    indices);                                                    \
        }                                                                                        \
        for (int i = 0; i < n; i++) indices[i] = indices[i] < 0 ? 0 : indices[i];                \
      }                                                                                          \
    }                                                                                            \
  }
#define IS_NAN(x) ((x) != (x))
PLACE(place_f32, float)
PLACE(place_f64, double)
#undef IS_NAN
#define IS_NAN(x) false
PLACE(place_i32, int32_t)
PLACE(place_i64, int64_t)
PLACE(place_bool, uint8_t)

typedef void (*place_fn)(const kiln_folded *f, const void *extremes, int64_t *indices);
static place_fn place_of(kiln_ctype ctype) {
  switch (ctype) {
    case KILN_CTYPE_F32: return place_f32;
    case KILN_CTYPE_F64: return place_f64;
    case KILN_CTYPE_I32: return place_i32;
    case KILN_CTYPE_I64: return place_i64;
    case KILN_CTYPE_BOOL: return place_bool;
    default: return NULL;
  }
}
/* The places of the extremes, which are of the reduced sizes, as a new tensor. */
static kiln_status *find_places(kiln_call *call, kiln_tensor *t, uint64_t mask,
                                const kiln_tensor *extremes, kiln_tensor **out_indices) {
  const kiln_dtype compute = kiln_tensor_dtype(extremes);
  kiln_folded folded;
  KILN_TRY(kiln__fold(call, t, mask, compute, &folded));
  kiln_status *status = kiln_call_tensor(call, KILN_DTYPE_I64, kiln_tensor_rank(extremes),
                                         kiln_tensor_sizes(extremes), out_indices);
  if (!status && (*out_indices)->numel) {
    place_of(kiln_ctype_of(compute))(&folded, kiln_tensor_data(extremes),
                                     (int64_t *)(uintptr_t)kiln_tensor_data(*out_indices));
  }
  kiln_tensor_release_to(&call->cache, folded.tensor);
  return status;
}
/* Extremes, as amax and amin give them, and indices: new tensors of the reduced sizes. */
static kiln_status *arg_reduction(kiln_call *call, kiln_tensor *t, uint64_t mask, bool keepdim,
                                  bool largest, kiln_tensor **out_values,
                                  kiln_tensor **out_indices) {
  const kiln_dtype dtype = kiln_tensor_dtype(t), compute = kiln__compute_dtype(dtype);
  kiln_reduce_op op = largest ? KILN_REDUCE_MAX : KILN_REDUCE_MIN;
  if (!place_of(kiln_ctype_of(dtype))) return kiln__not_implemented(call, dtype);
  if (compute == KILN_DTYPE_BOOL) op = largest ? KILN_REDUCE_ANY : KILN_REDUCE_ALL;
  KILN_TRY(kiln__reduce(call, op, t, mask, keepdim, compute, NULL, out_values));
  kiln_status *status = find_places(call, t, mask, *out_values, out_indices);
  if (status) kiln_tensor_release_to(&call->cache, *out_values);
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
  KILN_TRY(arg_reduction(call, t, mask, kiln_arg_bool(args, 2), largest, &values, &indices));
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
  KILN_TRY(arg_reduction(call, t, mask, kiln_arg_bool(args, 2), largest, &values, &indices));
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
  kiln__composite_give(r, &outs[1], places);
  return kiln__composite_to(r, values, kiln_tensor_dtype(t));
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
  return places;
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
