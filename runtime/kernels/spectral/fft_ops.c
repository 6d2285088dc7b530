/* fft_ops.c: the operators of torch.fft, and short-time transforms.
 *
 * Every transform is of complex doubles, along one dimension after the other, and is rounded once
 * at the end. Rows are divided among threads. */
#include <math.h>
#include <string.h>

#include "runtime/kernels/spectral/fft.h"
#include "runtime/kernels/composite.h"

/* -- One dimension -- */

typedef enum kind { C2C, R2C, R2C_WHOLE, C2R } kind;
typedef struct rows {
  kind kind;
  bool forward;
  double scale;
  int64_t in_length, out_length, n, buffer; /* buffer: elements of a worker */
  const double *in;
  double *out;
  kiln__z *buffers;
  kiln__fft fft;
} rows;

static void read_row(const rows *w, int64_t row, kiln__z *to) {
  const int64_t n = w->n;
  const int64_t have = w->in_length < n ? w->in_length : n;
  if (w->kind == R2C || w->kind == R2C_WHOLE) {
    const double *from = w->in + row * w->in_length;
    for (int64_t i = 0; i < have; i++) to[i] = (kiln__z){from[i], 0};
    for (int64_t i = have; i < n; i++) to[i] = (kiln__z){0, 0};
    return;
  }
  const kiln__z *from = (const kiln__z *)(const void *)w->in + row * w->in_length;
  if (w->kind == C2C) {
    for (int64_t i = 0; i < have; i++) to[i] = from[i];
    for (int64_t i = have; i < n; i++) to[i] = (kiln__z){0, 0};
    return;
  }
  for (int64_t i = 0; i <= n / 2; i++) { /* the half that is given, and its mirror image */
    to[i] = i < w->in_length ? from[i] : (kiln__z){0, 0};
    if (i > 0 && i < n - i) to[n - i] = (kiln__z){to[i].re, -to[i].im};
    if (i == 0 || i == n - i) to[i].im = 0;
  }
}
/* Backward transforms are those of the conjugate, conjugated. */
static void run_rows(void *data, int64_t begin, int64_t end, int worker) {
  const rows *w = data;
  kiln__z *a = w->buffers + worker * w->buffer, *b = a + w->n;
  const double turned = w->forward ? w->scale : -w->scale;
  for (int64_t row = begin; row < end; row++) {
    read_row(w, row, a);
    for (int64_t i = 0; !w->forward && i < w->n; i++) a[i].im = -a[i].im;
    kiln__fft_run(&w->fft, a, b, b + w->n);
    if (w->kind == C2R) {
      double *to = w->out + row * w->out_length;
      for (int64_t i = 0; i < w->out_length; i++) to[i] = b[i].re * w->scale;
    } else {
      kiln__z *to = (kiln__z *)(void *)w->out + row * w->out_length;
      for (int64_t i = 0; i < w->out_length; i++) {
        to[i] = (kiln__z){b[i].re * w->scale, b[i].im * turned};
      }
    }
  }
}
/* Along dim, of n points: a tensor of doubles, real ones for C2R. */
static kiln_tensor *transform(kiln__composite *r, kiln_tensor *t, kind how, int dim, int64_t n,
                              bool forward, double scale) {
  const bool real_in = how == R2C || how == R2C_WHOLE;
  const int rank = kiln__composite_rank(t);
  kiln_tensor *in, *out, *buffers;
  int64_t sizes[KILN_MAX_RANK];
  if (rank == 0) {
    return FAIL(r, "Dimension specified as %d but tensor has no dimensions", dim);
  }
  t = KILN_STEP(r, transpose, T(t), I(dim), I(-1));
  rows w = {.kind = how, .forward = forward, .scale = scale, .n = n};
  w.in = kiln__composite_read(r, t, real_in ? KILN_DTYPE_F64 : KILN_DTYPE_C128, &in);
  if (r->status) return NULL;
  memcpy(sizes, kiln_tensor_sizes(in), sizeof(int64_t) * (size_t)rank);
  w.in_length = sizes[rank - 1];
  w.out_length = sizes[rank - 1] = how == R2C ? n / 2 + 1 : n;
  w.out = kiln__composite_new(r, how == C2R ? KILN_DTYPE_F64 : KILN_DTYPE_C128, rank, sizes, &out);
  if (r->status || out->numel == 0) return KILN_STEP(r, transpose, T(out), I(dim), I(-1));
  if (!kiln__composite_ok(r, kiln__fft_init(r->call, n, &w.fft))) return NULL;
  kiln_pool *threads = r->call->pool;
  w.buffer = 2 * n + kiln__fft_scratch(&w.fft);
  const int64_t lines = out->numel / w.out_length;
  const int64_t pieces[] = {threads ? kiln_pool_threads(threads) : 1, w.buffer};
  w.buffers = kiln__composite_new(r, KILN_DTYPE_C128, 2, pieces, &buffers);
  if (!r->status) kiln_pool_for(threads, lines, 1 + 4096 / n, run_rows, &w);
  kiln__fft_deinit(r->call, &w.fft);
  return KILN_STEP(r, transpose, T(out), I(dim), I(-1));
}

/* -- Arguments -- */

/* The dtype of the result's real parts: F32 or F64. */
static kiln_dtype part_of(kiln__composite *r, const kiln_tensor *t) {
  const kiln_dtype dtype = kiln_tensor_dtype(t);
  if (dtype == KILN_DTYPE_F64 || dtype == KILN_DTYPE_C128) return KILN_DTYPE_F64;
  if (dtype == KILN_DTYPE_F32 || dtype == KILN_DTYPE_C64 || kiln_dtype_is_int(dtype, true)) {
    return KILN_DTYPE_F32;
  }
  FAIL(r, "Unsupported dtype %s", kiln_dtype_ir_name(dtype));
  return KILN_DTYPE_F32;
}
static kiln_dtype complex_of(kiln_dtype part) {
  return part == KILN_DTYPE_F64 ? KILN_DTYPE_C128 : KILN_DTYPE_C64;
}
/* What a transform of n points in all is multiplied by. */
static double scale_of(kiln__composite *r, kiln_ivalue norm, bool forward, double n) {
  if (norm.tag == KILN_TAG_NONE) return forward ? 1 : 1 / n;
  const kiln_str mode = kiln_string_view(norm.u.string);
  if (kiln_str_is(mode, "backward")) return forward ? 1 : 1 / n;
  if (kiln_str_is(mode, "forward")) return forward ? 1 / n : 1;
  if (kiln_str_is(mode, "ortho")) return 1 / sqrt(n);
  FAIL(r, "Invalid normalization mode: \"" KILN_STR_FMT "\"", KILN_STR_ARG(mode));
  return 1;
}
typedef struct dims {
  int count, dim[KILN_MAX_RANK];
  int64_t n[KILN_MAX_RANK];
  double points;
} dims;
/* int[]? s, int[]? dim; the last size of a half spectrum is of the whole one. */
static void read_dims(kiln__composite *r, const kiln_tensor *t, kiln_ivalue s, kiln_ivalue dim,
                      bool half, dims *d) {
  const kiln_ivalue args[] = {s, dim};
  int64_t sizes[KILN_MAX_RANK], wanted[KILN_MAX_RANK];
  const int rank = kiln_tensor_rank(t);
  int size_count = 0;
  uint64_t seen = 0;
  *d = (dims){.points = 1};
  if (s.tag != KILN_TAG_NONE &&
      !kiln__composite_ok(r, kiln__arg_int_list(args, 0, sizes, &size_count)))
    return;
  if (dim.tag != KILN_TAG_NONE) {
    if (!kiln__composite_ok(r, kiln__arg_int_list(args, 1, wanted, &d->count))) return;
    if (s.tag != KILN_TAG_NONE && size_count != d->count) {
      FAIL(r, "When given, dim and shape arguments must have the same length");
    }
  } else {
    d->count = s.tag == KILN_TAG_NONE ? rank : size_count;
    if (d->count > rank) {
      FAIL(r, "Got shape with %d values but input tensor only has %d dimensions.", size_count,
           rank);
      return;
    }
    for (int i = 0; i < d->count; i++) wanted[i] = rank - d->count + i;
  }
  if (d->count > 0 && rank == 0) {
    FAIL(r, "Dimension specified as %lld but tensor has no dimensions", (long long)wanted[0]);
  }
  for (int i = 0; i < d->count && !r->status; i++) {
    d->dim[i] = kiln__composite_dim(r, wanted[i], rank);
    if (seen >> d->dim[i] & 1) FAIL(r, "FFT dims must be unique");
    seen |= 1ull << d->dim[i];
    const int64_t have = kiln__composite_size(t, d->dim[i]);
    d->n[i] = size_count && sizes[i] != -1 ? sizes[i]
              : half && i == d->count - 1  ? 2 * (have - 1)
                                           : have;
    if (d->n[i] < 1) {
      FAIL(r, "Invalid number of data points (%lld) specified", (long long)d->n[i]);
    }
    d->points *= (double)d->n[i];
  }
}
/* The same for one dimension: int? n, int dim. */
static void read_dim(kiln__composite *r, const kiln_tensor *t, kiln_ivalue n, kiln_ivalue dim,
                     bool half, dims *d) {
  *d = (dims){.count = 1};
  d->dim[0] = kiln__composite_dim(r, dim.u.i, kiln_tensor_rank(t));
  const int64_t have = kiln__composite_size(t, d->dim[0]);
  d->n[0] = n.tag == KILN_TAG_INT ? n.u.i : half ? 2 * (have - 1) : have;
  d->points = (double)d->n[0];
  if (!r->status && kiln_tensor_rank(t) == 0) {
    FAIL(r, "Dimension specified as %lld but tensor has no dimensions", (long long)dim.u.i);
  }
  if (d->n[0] < 1) {
    FAIL(r, "Invalid number of data points (%lld) specified", (long long)d->n[0]);
  }
}

/* -- torch.fft -- */

static kiln_tensor *dense(kiln__composite *r, kiln_tensor *t, kiln_dtype dtype) {
  t = kiln__composite_to(r, t, dtype);
  return KILN_STEP(r, contiguous, T(t), I(0));
}
/* Along all dimensions; the last one, which comes first, as `first` says: it makes them complex. */
static kiln_tensor *transform_down(kiln__composite *r, kiln_tensor *t, const dims *d, kind first,
                                   bool forward, double scale) {
  for (int i = d->count - 1; i >= 0 && !r->status; i--, scale = 1) {
    t = transform(r, t, i == d->count - 1 ? first : C2C, d->dim[i], d->n[i], forward, scale);
  }
  return t;
}
/* The last one makes them real. */
static kiln_tensor *transform_up(kiln__composite *r, kiln_tensor *t, const dims *d, bool forward,
                                 double scale) {
  for (int i = 0; i < d->count && !r->status; i++, scale = 1) {
    t = transform(r, t, i == d->count - 1 ? C2R : C2C, d->dim[i], d->n[i], forward, scale);
  }
  return t;
}
static kiln_tensor *complex_to_complex(kiln__composite *r, kiln_tensor *t, const dims *d,
                                       bool forward, kiln_ivalue norm) {
  const kiln_dtype part = part_of(r, t);
  const double scale = scale_of(r, norm, forward, d->points);
  t = transform_down(r, t, d, kiln__is_complex(t) ? C2C : R2C_WHOLE, forward, scale);
  return dense(r, t, complex_of(part));
}
static kiln_tensor *real_to_half(kiln__composite *r, kiln_tensor *t, const char *name,
                                 const dims *d, bool forward, kiln_ivalue norm) {
  const kiln_dtype part = part_of(r, t);
  if (kiln__is_complex(t)) {
    FAIL(r, "%s expects a real input tensor, but got %s", name,
         kiln_dtype_ir_name(kiln_tensor_dtype(t)));
  }
  if (d->count == 0) FAIL(r, "%s must transform at least one axis", name);
  const double scale = scale_of(r, norm, forward, d->points);
  return dense(r, transform_down(r, t, d, R2C, forward, scale), complex_of(part));
}
static kiln_tensor *half_to_real(kiln__composite *r, kiln_tensor *t, const char *name,
                                 const dims *d, bool forward, kiln_ivalue norm) {
  const kiln_dtype part = part_of(r, t);
  if (d->count == 0) FAIL(r, "%s must transform at least one axis", name);
  const double scale = scale_of(r, norm, forward, d->points);
  return dense(r, transform_up(r, t, d, forward, scale), part);
}
/* `read`: of one dimension or of many. */
#define TRANSFORM(name, read, half, how, ...)                     \
  KILN_COMPOSITE(fft_##name) {                                    \
    dims d;                                                       \
    read(r, SELF, args[1], args[2], half, &d);                    \
    return r->status ? NULL : how(r, SELF, __VA_ARGS__, args[3]); \
  }
TRANSFORM(fft, read_dim, false, complex_to_complex, &d, true)
TRANSFORM(ifft, read_dim, false, complex_to_complex, &d, false)
TRANSFORM(rfft, read_dim, false, real_to_half, "rfft", &d, true)
TRANSFORM(irfft, read_dim, true, half_to_real, "irfft", &d, false)
TRANSFORM(hfft, read_dim, true, half_to_real, "hfft", &d, true)
TRANSFORM(ihfft, read_dim, false, real_to_half, "ihfft", &d, false)
TRANSFORM(fftn, read_dims, false, complex_to_complex, &d, true)
TRANSFORM(ifftn, read_dims, false, complex_to_complex, &d, false)
TRANSFORM(rfftn, read_dims, false, real_to_half, "rfftn", &d, true)
TRANSFORM(irfftn, read_dims, true, half_to_real, "irfftn", &d, false)
TRANSFORM(hfftn, read_dims, true, half_to_real, "hfftn", &d, true)
TRANSFORM(ihfftn, read_dims, false, real_to_half, "ihfftn", &d, false)

/* self, dim, normalization (0: none, 1: by the root of n, 2: by n), and what the kind needs */
static double scale_by(int64_t how, const dims *d) {
  return how == 0 ? 1 : how == 1 ? 1 / sqrt(d->points) : 1 / d->points;
}
KILN_COMPOSITE(_fft_c2c) {
  dims d;
  read_dims(r, SELF, NONE, args[1], false, &d);
  const double scale = scale_by(kiln_arg_int(args, 2), &d);
  return dense(r, transform_down(r, SELF, &d, C2C, kiln_arg_bool(args, 3), scale),
               kiln_tensor_dtype(SELF));
}
KILN_COMPOSITE(_fft_r2c) {
  dims d;
  const kiln_dtype part = part_of(r, SELF);
  read_dims(r, SELF, NONE, args[1], false, &d);
  const double scale = scale_by(kiln_arg_int(args, 2), &d);
  if (d.count == 0) FAIL(r, "_fft_r2c must transform at least one axis");
  const kind first = kiln_arg_bool(args, 3) ? R2C : R2C_WHOLE;
  return dense(r, transform_down(r, SELF, &d, first, true, scale), complex_of(part));
}
KILN_COMPOSITE(_fft_c2r) {
  dims d;
  const kiln_dtype part = part_of(r, SELF);
  read_dims(r, SELF, NONE, args[1], false, &d);
  if (d.count == 0) FAIL(r, "_fft_c2r must transform at least one axis");
  if (r->status) return NULL;
  d.points *= (double)kiln_arg_int(args, 3) / (double)d.n[d.count - 1];
  d.n[d.count - 1] = kiln_arg_int(args, 3);
  const double scale = scale_by(kiln_arg_int(args, 2), &d);
  return dense(r, transform_up(r, SELF, &d, false, scale), part);
}

/* -- Shifts and frequencies -- */

static kiln_tensor *shift(kiln__composite *r, const kiln_ivalue *args, int extra) {
  int64_t wanted[KILN_MAX_RANK], by[KILN_MAX_RANK];
  int count = kiln_tensor_rank(SELF);
  for (int i = 0; i < count; i++) wanted[i] = i;
  if (!kiln_arg_is_none(args, 1) &&
      !kiln__composite_ok(r, kiln__arg_int_list(args, 1, wanted, &count))) {
    return NULL;
  }
  for (int i = 0; i < count; i++) {
    by[i] = (kiln__composite_size(SELF, kiln__composite_dim(r, wanted[i], kiln_tensor_rank(SELF))) +
             extra) /
            2;
  }
  return KILN_STEP(r, roll, T(SELF), kiln__composite_ints(r, count, by),
                   kiln__composite_ints(r, count, wanted));
}
KILN_COMPOSITE(fft_fftshift) { return shift(r, args, 0); }
KILN_COMPOSITE(fft_ifftshift) { return shift(r, args, 1); }
/* n, d, dtype, ... */
static kiln_tensor *frequencies(kiln__composite *r, const kiln_ivalue *args, bool half) {
  const int64_t n = kiln_arg_int(args, 0);
  if (n < 0 || n > INT32_MAX) {
    return FAIL(r, "Invalid number of data points (%lld) specified", (long long)n);
  }
  const int64_t count = half ? n / 2 + 1 : n;
  kiln_tensor *t;
  double *to = kiln__composite_new(r, KILN_DTYPE_F64, 1, &count, &t);
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; to && i < count && !kiln_budget_spent(&left, 4); i++) {
    to[i] = (double)(!half && i >= (n + 1) / 2 ? i - n : i) * (1 / ((double)n * args[1].u.f));
  }
  return kiln__composite_to(r, t, kiln__arg_dtype_or(args, 2, KILN_DTYPE_F32));
}
KILN_COMPOSITE(fft_fftfreq) { return frequencies(r, args, false); }
KILN_COMPOSITE(fft_rfftfreq) { return frequencies(r, args, true); }
