/* factory.c: new tensors: zeros, full, arange, random ones, and tensors from numbers and lists. */
#include <math.h>
#include <string.h>

#include "runtime/kernels/factory/factory.h"
#include "base/budget.h"
#include "runtime/half.h"
#include "runtime/kernels/pointwise/iter.h"
#include "runtime/strides.h"

kiln_status *kiln__check_device(kiln_ivalue v) {
  if (v.tag == KILN_TAG_DEVICE && kiln_device_find(v.u.device) != &kiln_device_cpu) {
    return KILN_ERROR(KILN_UNSUPPORTED, "no device but the CPU is available");
  }
  return NULL;
}

kiln_status *kiln__empty(kiln_call *call, kiln_dtype dtype, int rank, const int64_t *sizes,
                         int64_t format, kiln_tensor **out) {
  KILN_TRY(kiln__check_stored(call, dtype));
  const int wanted = kiln_format_rank(format);
  if (wanted >= 0) {
    int64_t strides[KILN_MAX_RANK];
    if (rank != wanted) {
      return KILN_OP_FAIL("required rank %d tensor to use %s format", wanted,
                          wanted == 4   ? "channels_last"
                          : wanted == 5 ? "channels_last_3d"
                                        : "channels_last_1d");
    }
    kiln_strides_channels_last(rank, sizes, strides);
    return kiln_tensor_create_strided(call->env->mem, &call->cache, dtype, rank, sizes, strides,
                                      out);
  }
  return kiln_call_tensor(call, dtype, rank, sizes, out);
}

kiln_status *kiln__empty_like(kiln_call *call, const kiln_tensor *t, kiln_dtype dtype,
                              int64_t format, kiln_tensor **out) {
  const int rank = kiln_tensor_rank(t);
  const int64_t *sizes = kiln_tensor_sizes(t);
  const kiln_strided like = kiln_tensor_strided(t);
  int64_t strides[KILN_MAX_RANK];
  if (format != KILN_FORMAT_PRESERVE || kiln_tensor_has_rows(t)) {
    return kiln__empty(call, dtype, rank, sizes, format, out);
  }
  KILN_TRY(kiln__check_stored(call, dtype));
  kiln_strides_like(&like, strides);
  return kiln_tensor_create_strided(call->env->mem, &call->cache, dtype, rank, sizes, strides, out);
}

/* size, …, then dtype, layout, device at args[at]. */
static kiln_status *make(kiln_call *call, const kiln_ivalue *args, int at, kiln_dtype fallback,
                         const kiln_number *fill, int64_t format, kiln_ivalue *out) {
  int64_t sizes[KILN_MAX_RANK];
  int rank, size_arg = args[0].tag == KILN_TAG_TENSOR ? 1 : 0;
  kiln_tensor *t;
  KILN_TRY(kiln__arg_int_list(args, size_arg, sizes, &rank));
  KILN_TRY(kiln__check_device(args[at + 2]));
  KILN_TRY(kiln__empty(call, kiln__arg_dtype_or(args, at, fallback), rank, sizes, format, &t));
  kiln__give(out, t);
  return kiln_pw_fill_fitting(call, t, *fill);
}
static const kiln_number zero = {KILN_DTYPE_I64, 0, 0, 0}, one = {KILN_DTYPE_I64, 1, 1, 0};

KILN_KERNEL(zeros) { return make(call, args, 1, KILN_DTYPE_F32, &zero, 0, outs); }
KILN_KERNEL(ones) { return make(call, args, 1, KILN_DTYPE_F32, &one, 0, outs); }
/* Not left as it is: the same call gives the same answer. */
KILN_KERNEL(empty) {
  return make(call, args, 1, KILN_DTYPE_F32, &zero, kiln_arg_int_or(args, 5, 0), outs);
}
static kiln_dtype dtype_of_number(kiln_number n) {
  return n.kind == KILN_DTYPE_F64    ? KILN_DTYPE_F32
         : n.kind == KILN_DTYPE_C128 ? KILN_DTYPE_C64
                                     : n.kind;
}
KILN_KERNEL(full) {
  kiln_number value = kiln__number(args[1]);
  return make(call, args, 2, dtype_of_number(value), &value, 0, outs);
}
KILN_KERNEL(full_out) {
  int64_t sizes[KILN_MAX_RANK];
  int rank;
  kiln_tensor *t = ARG(2);
  KILN_TRY(kiln__arg_int_list(args, 0, sizes, &rank));
  kiln__give(outs, kiln_tensor_retain(t));
  KILN_TRY(kiln_tensor_resize(t, rank, sizes));
  return kiln_pw_fill_fitting(call, t, kiln__number(args[1]));
}
/* new_*: like args[0] where nothing else is said. */
static kiln_dtype own(const kiln_ivalue *args) { return kiln_tensor_dtype(SELF); }
KILN_KERNEL(new_zeros) { return make(call, args, 2, own(args), &zero, 0, outs); }
KILN_KERNEL(new_ones) { return make(call, args, 2, own(args), &one, 0, outs); }
KILN_KERNEL(new_empty) { return make(call, args, 2, own(args), &zero, 0, outs); }
KILN_KERNEL(new_full) {
  kiln_number value = kiln__number(args[2]);
  return make(call, args, 3, own(args), &value, 0, outs);
}

/* *_like: dtype, layout, device, pin_memory, memory_format at args[at]. */
static kiln_status *like(kiln_call *call, const kiln_ivalue *args, int at, const kiln_number *fill,
                         kiln_ivalue *out) {
  const int64_t format = kiln_arg_int_or(args, at + 4, KILN_FORMAT_PRESERVE);
  kiln_tensor *t;
  KILN_TRY(kiln__check_device(args[at + 2]));
  KILN_TRY(kiln__empty_like(call, SELF, kiln__arg_dtype_or(args, at, own(args)), format, &t));
  kiln__give(out, t);
  return kiln_pw_fill_fitting(call, t, *fill);
}
KILN_KERNEL(zeros_like) { return like(call, args, 1, &zero, outs); }
KILN_KERNEL(ones_like) { return like(call, args, 1, &one, outs); }
KILN_KERNEL(empty_like) { return like(call, args, 1, &zero, outs); }
KILN_KERNEL(full_like) {
  kiln_number value = kiln__number(args[1]);
  return like(call, args, 2, &value, outs);
}
KILN_KERNEL(scalar_tensor) {
  kiln_number value = kiln__number(args[0]);
  kiln_tensor *t;
  KILN_TRY(kiln__check_device(args[3]));
  KILN_TRY(kiln__empty(call, kiln__arg_dtype_or(args, 1, KILN_DTYPE_F32), 0, NULL, 0, &t));
  kiln__give(outs, t);
  return kiln_pw_fill(call, t, value);
}

/* -- Sequences -- */

/* t[i] = start + i * step, contiguous. */
static kiln_status *sequence(kiln_call *call, kiln_number start, kiln_number step, bool whole,
                             kiln_tensor *t) {
  kiln_dtype dtype = kiln_tensor_dtype(t);
  kiln_ctype ctype = whole ? KILN_CTYPE_I64 : KILN_CTYPE_F64;
  int64_t ints[256];
  double floats[256];
  void *data;
  KILN_TRY(kiln_tensor_writable_data(t, &data));
  size_t item = kiln_dtype_bytes(dtype);
  kiln_cast_loop store = call->dispatch->store[ctype][dtype];
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t at = 0; at < t->numel && !kiln_budget_spent(&left, 256); at += 256) {
    int64_t n = t->numel - at < 256 ? t->numel - at : 256;
    for (int64_t i = 0; i < n; i++) {
      if (whole)
        ints[i] = (int64_t)((uint64_t)start.i + (uint64_t)(at + i) * (uint64_t)step.i);
      else
        floats[i] = start.f + (double)(at + i) * step.f;
    }
    store((char *)data + (size_t)at * item, (int64_t)item, whole ? (char *)ints : (char *)floats, 8,
          n);
  }
  return NULL;
}
static bool is_whole(kiln_number n) {
  return n.kind == KILN_DTYPE_I64 || n.kind == KILN_DTYPE_BOOL;
}

static kiln_status *arange(kiln_call *call, kiln_number start, kiln_number end, kiln_number step,
                           const kiln_ivalue *args, int at, kiln_ivalue *out) {
  bool whole = is_whole(start) && is_whole(end) && is_whole(step);
  kiln_dtype dtype = kiln__arg_dtype_or(args, at, whole ? KILN_DTYPE_I64 : KILN_DTYPE_F32);
  KILN_TRY(kiln__check_device(args[at + 2]));
  KILN_TRY(kiln__check_dtype(call, dtype));
  if (step.f == 0) return KILN_OP_FAIL("step must be nonzero");
  if (!isfinite(start.f) || !isfinite(end.f)) {
    return KILN_OP_FAIL("unsupported range: %g -> %g", start.f, end.f);
  }
  if ((step.f > 0 && end.f < start.f) || (step.f < 0 && end.f > start.f)) {
    return KILN_OP_FAIL("upper bound and larger bound inconsistent with step sign");
  }
  double count = ceil((end.f - start.f) / step.f);
  if (whole) {
    uint64_t span =
        step.i > 0 ? (uint64_t)end.i - (uint64_t)start.i : (uint64_t)start.i - (uint64_t)end.i;
    uint64_t stride = step.i > 0 ? (uint64_t)step.i : (uint64_t)0 - (uint64_t)step.i;
    uint64_t steps = span / stride + (span % stride != 0);
    count = (double)steps;
  }
  if (kiln_dtype_is_int(dtype, true) && !whole) { /* elements are of the truncated numbers */
    start = kiln__number_int(kiln__number_i64(start));
    step = kiln__number_int(kiln__number_i64(step));
    whole = true;
  }
  if (!(count < 0x1p62)) return KILN_OP_FAIL("invalid size, possible overflow?");
  int64_t n = (int64_t)count;
  kiln_tensor *t;
  KILN_TRY(kiln__empty(call, dtype, 1, &n, 0, &t));
  kiln__give(out, t);
  return sequence(call, start, step, whole, t);
}
KILN_KERNEL(arange) { return arange(call, zero, kiln__number(args[0]), one, args, 1, outs); }
KILN_KERNEL(arange_start) {
  return arange(call, kiln__number(args[0]), kiln__number(args[1]), one, args, 2, outs);
}
KILN_KERNEL(arange_start_step) {
  return arange(call, kiln__number(args[0]), kiln__number(args[1]), kiln__number(args[2]), args, 3,
                outs);
}

/* A Scalar, or a tensor of no dimensions, as a number of the dtype. */
static kiln_status *end_of(kiln_ivalue v, kiln_dtype dtype, double *out) {
  *out = 0;
  if (v.tag != KILN_TAG_TENSOR) {
    *out = kiln__number(v).f;
  } else if (kiln_tensor_rank(v.u.tensor) != 0) {
    return KILN_OP_FAIL("linspace only supports 0-dimensional start and end tensors");
  } else {
    KILN_TRY(kiln_tensor_item_f64(v.u.tensor, out));
  }
  if (kiln_dtype_is_int(dtype, false)) *out = trunc(*out);
  if (dtype == KILN_DTYPE_F16) *out = kiln_half_to_float(kiln_float_to_half((float)*out));
  if (dtype == KILN_DTYPE_BF16) *out = kiln_bf16_to_float(kiln_float_to_bf16((float)*out));
  return NULL;
}
/* From both ends towards the middle, so that both are exact. */
/* start, end, steps: a new tensor; powers of `base` where it is not 0. */
static kiln_status *spaced(kiln_call *call, const kiln_ivalue *args, double base, kiln_dtype dtype,
                           kiln_tensor **out) {
  double start, end;
  int64_t steps = kiln_arg_int_or(args, 2, 100);
  kiln_tensor *t;
  KILN_TRY(kiln__check_dtype(call, dtype));
  KILN_TRY(end_of(args[0], dtype, &start));
  KILN_TRY(end_of(args[1], dtype, &end));
  if (steps < 0) return KILN_OP_FAIL("number of steps must be non-negative");
  KILN_TRY(kiln__empty(call, dtype, 1, &steps, 0, &t));
  *out = t;
  void *data;
  KILN_TRY(kiln_tensor_writable_data(t, &data));
  kiln_cast_loop store = call->dispatch->store[KILN_CTYPE_F64][dtype];
  size_t item = kiln_dtype_bytes(dtype);
  bool single = dtype == KILN_DTYPE_F32;
  double step = steps > 1 ? (end - start) / (double)(steps - 1) : 0;
  float step_f32 = steps > 1 ? ((float)end - (float)start) / (float)(steps - 1) : 0;
  const int64_t work = base != 0 ? 16 : 2;
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; i < steps && !kiln_budget_spent(&left, work); i++) {
    bool low = i < steps / 2 || steps == 1;
    double v = low ? start + step * (double)i : end - step * (double)(steps - 1 - i);
    if (single) {
      v = low ? (double)((float)start + step_f32 * (float)i)
              : (double)((float)end - step_f32 * (float)(steps - 1 - i));
    }
    if (base != 0) v = single ? (double)powf((float)base, (float)v) : pow(base, v);
    store((char *)data + (size_t)i * item, 0, (char *)&v, 0, 1);
  }
  return NULL;
}
static kiln_status *new_spaced(kiln_call *call, const kiln_ivalue *args, double base, int at,
                               kiln_ivalue *out) {
  kiln_tensor *t = NULL;
  KILN_TRY(kiln__check_device(args[at + 2]));
  kiln_status *status = spaced(call, args, base, kiln__arg_dtype_or(args, at, KILN_DTYPE_F32), &t);
  if (t) kiln__give(out, t);
  return status;
}
static kiln_status *spaced_out(kiln_call *call, const kiln_ivalue *args, double base, int at,
                               kiln_ivalue *out) {
  kiln_tensor *dest = ARG(at), *t = NULL;
  kiln_status *status = spaced(call, args, base, kiln_tensor_dtype(dest), &t);
  if (status) {
    kiln_tensor_release_to(&call->cache, t);
    return status;
  }
  kiln__give(out, kiln_tensor_retain(dest));
  return kiln__finish(call, out, t);
}
KILN_KERNEL(linspace) { return new_spaced(call, args, 0, 3, outs); }
KILN_KERNEL(logspace) { return new_spaced(call, args, kiln_arg_float(args, 3), 4, outs); }
KILN_KERNEL(linspace_out) { return spaced_out(call, args, 0, 3, outs); }
KILN_KERNEL(logspace_out) { return spaced_out(call, args, kiln_arg_float(args, 3), 4, outs); }

static kiln_status *eye(kiln_call *call, int64_t n, int64_t m, const kiln_ivalue *args, int at,
                        kiln_ivalue *out) {
  int64_t sizes[2] = {n, m};
  kiln_tensor *t, *diagonal;
  KILN_TRY(kiln__check_device(args[at + 2]));
  if (n < 0) return KILN_OP_FAIL("n must be greater or equal to 0, got %lld", (long long)n);
  if (m < 0) return KILN_OP_FAIL("m must be greater or equal to 0, got %lld", (long long)m);
  KILN_TRY(kiln__empty(call, kiln__arg_dtype_or(args, at, KILN_DTYPE_F32), 2, sizes, 0, &t));
  kiln__give(out, t);
  KILN_TRY(kiln_pw_fill(call, t, zero));
  KILN_TRY(kiln_budget_check(&call->budget, 0)); /* ones would touch the pages left out */
  int64_t length = n < m ? n : m, stride = length ? m + 1 : 1;
  KILN_TRY(kiln_tensor_view(&call->cache, t, 1, &length, &stride, t->offset, &diagonal));
  kiln_status *status = kiln_pw_fill(call, diagonal, one);
  kiln_tensor_release_to(&call->cache, diagonal);
  return status;
}
KILN_KERNEL(eye) { return eye(call, kiln_arg_int(args, 0), kiln_arg_int(args, 0), args, 1, outs); }
KILN_KERNEL(eye_m) {
  return eye(call, kiln_arg_int(args, 0), kiln_arg_int(args, 1), args, 2, outs);
}

/* Zeros outside the lower (or upper) triangle. */
static kiln_status *triangle(kiln_call *call, kiln_tensor *self, int64_t diagonal, bool upper,
                             kiln_tensor *to) {
  int rank = kiln_tensor_rank(to);
  if (rank < 2) {
    return KILN_OP_FAIL("%s: input tensor must have at least 2 dimensions",
                        upper ? "triu" : "tril");
  }
  if (to != self) KILN_TRY(kiln_pw_copy(call, to, self));
  int64_t rows = kiln_tensor_sizes(to)[rank - 2], columns = kiln_tensor_sizes(to)[rank - 1];
  int64_t row_stride = kiln_tensor_strides(to)[rank - 2], step = kiln_tensor_strides(to)[rank - 1];
  size_t item = kiln_tensor_item_size(to);
  int64_t batch = 1;
  if (to->numel == 0) return NULL;
  for (int i = 0; i < rank - 2; i++) batch *= kiln_tensor_sizes(to)[i];
  void *data;
  KILN_TRY(kiln_tensor_writable_data(to, &data));
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t b = 0; b < batch && !kiln_budget_spent(&left, 4); b++) {
    char *matrix = (char *)data +
                   kiln__offset_of(rank - 2, kiln_tensor_sizes(to), kiln_tensor_strides(to), b) *
                       (int64_t)item;
    for (int64_t r = 0; r < rows && !kiln_budget_spent(&left, 1); r++) {
      /* The last column of the lower triangle; a diagonal further away is as good as -rows. */
      int64_t edge = r + (diagonal > columns ? columns : diagonal < -rows ? -rows : diagonal);
      int64_t from = upper ? 0 : edge + 1, end = upper ? edge : columns;
      if (from < 0) from = 0;
      if (end > columns) end = columns;
      char *row = matrix + r * row_stride * (int64_t)item;
      if (step == 1 && from < end && !kiln_budget_spent(&left, (end - from) / 16)) {
        memset(row + (size_t)from * item, 0, (size_t)(end - from) * item);
        continue;
      }
      for (int64_t c = from; c < end && !kiln_budget_spent(&left, 1); c++)
        memset(row + c * step * (int64_t)item, 0, item);
    }
  }
  return NULL;
}
static kiln_status *new_triangle(kiln_call *call, const kiln_ivalue *args, bool upper,
                                 kiln_ivalue *out) {
  kiln_tensor *self = SELF, *to = kiln__dest(out);
  if (to && to != self) {
    KILN_TRY(kiln_tensor_resize(to, kiln_tensor_rank(self), kiln_tensor_sizes(self)));
  }
  if (!to) {
    KILN_TRY(kiln_call_tensor(call, kiln_tensor_dtype(self), kiln_tensor_rank(self),
                              kiln_tensor_sizes(self), &to));
    kiln__give(out, to);
  }
  return triangle(call, self, kiln_arg_int(args, 1), upper, to);
}
KILN_KERNEL(tril) { return new_triangle(call, args, false, outs); }
KILN_KERNEL(triu) { return new_triangle(call, args, true, outs); }

/* -- From values -- */

static kiln_dtype dtype_of_value(kiln_ivalue v) {
  if (v.tag == KILN_TAG_TENSOR) return kiln_tensor_dtype(v.u.tensor);
  return dtype_of_number(kiln__number(v));
}
/* Floats become tensors of the default dtype first, whatever dtype is asked for. volatile: GCC 12
 * takes both roundings of a pair for none. */
static kiln_number in_single(kiln_number value) {
  if (value.kind != KILN_DTYPE_F64 && value.kind != KILN_DTYPE_C128) return value;
  const volatile float re = (float)value.f, im = (float)value.im;
  return (kiln_number){value.kind, value.i, (double)re, (double)im};
}
static kiln_status *from_number(kiln_call *call, kiln_number value, const kiln_ivalue *args,
                                int dtype_arg, kiln_ivalue *out) {
  kiln_tensor *t;
  const kiln_dtype first = dtype_of_number(value);
  if (!kiln_dtype_is_int(first, true)) KILN_TRY(kiln__number_fits(value, first));
  KILN_TRY(kiln__empty(call, kiln__arg_dtype_or(args, dtype_arg, first), 0, NULL, 0, &t));
  kiln__give(out, t);
  return kiln_pw_fill(call, t, in_single(value));
}
/* tensor.int, .float, .bool, .complex */
KILN_KERNEL(tensor_number) {
  KILN_TRY(kiln__check_device(args[2]));
  kiln_number value = kiln__number(args[0]);
  return from_number(call, value, args, 1, outs);
}
/* Nested lists: the shape is that of the first elements, and all must agree. */
static kiln_status *list_shape(kiln_ivalue v, int *rank, int64_t *sizes, kiln_dtype *dtype) {
  *rank = 0;
  *dtype = KILN_DTYPE_F32;
  while (v.tag == KILN_TAG_LIST) {
    if (*rank == KILN_MAX_RANK) return KILN_OP_FAIL("tensor: lists are nested too deeply");
    sizes[(*rank)++] = v.u.list->count;
    if (v.u.list->count == 0) {
      const kiln_type *elem = v.u.list->elem_type;
      while (elem && elem->kind == KILN_TYPE_LIST) elem = elem->elems[0];
      if (elem && elem->kind == KILN_TYPE_INT) *dtype = KILN_DTYPE_I64;
      if (elem && elem->kind == KILN_TYPE_BOOL) *dtype = KILN_DTYPE_BOOL;
      return NULL;
    }
    v = v.u.list->items[0];
  }
  *dtype = dtype_of_value(v);
  return NULL;
}
static kiln_status *put_list(kiln_call *call, kiln_ivalue v, int depth, int rank,
                             const int64_t *sizes, kiln_dtype dtype, char **to) {
  if (depth == rank) {
    if (v.tag == KILN_TAG_LIST) return KILN_OP_FAIL("expected a number, got a list");
    double raw[2] = {0, 0};
    size_t item = kiln_dtype_bytes(dtype);
    if (v.tag == KILN_TAG_TENSOR) {
      kiln_tensor *t = v.u.tensor;
      if (t->numel != 1)
        return KILN_OP_FAIL("only one element tensors can be converted to Python scalars");
      KILN_TRY(kiln__check_dtype(call, kiln_tensor_dtype(t)));
      KILN_TRY(kiln__check_dtype(call, dtype));
      kiln_ctype ctype = kiln_ctype_of(dtype);
      call->dispatch->load[kiln_tensor_dtype(t)][ctype]((char *)raw, 0, kiln_tensor_data(t), 0, 1);
      double loaded[2] = {raw[0], raw[1]};
      call->dispatch->store[ctype][dtype](*to, 0, (const char *)loaded, 0, 1);
    } else {
      kiln__number_store(in_single(kiln__number(v)), dtype, raw);
      memcpy(*to, raw, item);
    }
    *to += item;
    return NULL;
  }
  if (v.tag != KILN_TAG_LIST) return KILN_OP_FAIL("expected a list, got a number");
  if (v.u.list->count != sizes[depth]) {
    return KILN_OP_FAIL("Expected sequence of length %lld at dim %d (got %lld)",
                        (long long)sizes[depth], depth, (long long)v.u.list->count);
  }
  for (int64_t i = 0; i < v.u.list->count; i++) {
    KILN_TRY(put_list(call, v.u.list->items[i], depth + 1, rank, sizes, dtype, to));
  }
  return NULL;
}
static kiln_status *from_list(kiln_call *call, kiln_ivalue v, const kiln_ivalue *args,
                              int dtype_arg, kiln_ivalue *out) {
  int rank;
  int64_t sizes[KILN_MAX_RANK];
  kiln_dtype dtype;
  KILN_TRY(list_shape(v, &rank, sizes, &dtype));
  kiln_tensor *t;
  dtype = kiln__arg_dtype_or(args, dtype_arg, dtype);
  KILN_TRY(kiln__empty(call, dtype, rank, sizes, 0, &t));
  kiln__give(out, t);
  void *data;
  KILN_TRY(kiln_tensor_writable_data(t, &data));
  char *to = data;
  return t->numel ? put_list(call, v, 0, rank, sizes, dtype, &to) : NULL;
}
KILN_KERNEL(tensor_list) {
  KILN_TRY(kiln__check_device(args[2]));
  return from_list(call, args[0], args, 1, outs);
}
KILN_KERNEL(as_tensor_list) { return from_list(call, args[0], args, 1, outs); }
KILN_KERNEL(as_tensor_number) { return from_number(call, kiln__number(args[0]), args, 1, outs); }
KILN_KERNEL(as_tensor) {
  kiln_tensor *t = SELF, *to;
  kiln_dtype dtype = kiln__arg_dtype_or(args, 1, kiln_tensor_dtype(t));
  if (dtype == kiln_tensor_dtype(t)) {
    return kiln__give(outs, kiln_tensor_retain(t));
  }
  KILN_TRY(kiln_call_tensor(call, dtype, kiln_tensor_rank(t), kiln_tensor_sizes(t), &to));
  kiln__give(outs, to);
  return kiln_pw_copy(call, to, t);
}
/* prim::NumToTensor: ints stay int64, floats become double. */
KILN_KERNEL(NumToTensor) {
  kiln_number value = kiln__number(args[0]);
  kiln_tensor *t;
  KILN_TRY(kiln_call_tensor(call, value.kind, 0, NULL, &t));
  kiln__give(outs, t);
  return kiln_pw_fill(call, t, value);
}
