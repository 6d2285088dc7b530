/* nn_fraction.c: pools whose windows lie at random fractions (Graham, 2014), grids of affine maps,
 * convolutions by other names, and interpolation by its name in scripts. */
#include <math.h>
#include <string.h>

#include "runtime/kernels/recipe.h"

#define SELF kiln_arg_tensor(args, 0)

/* -- Fractional pools -- */

enum { MOST = 3 };
typedef struct pool {
  int n; /* dimensions that are pooled */
  int64_t in[MOST], out[MOST], size[MOST];
  int64_t planes, channels;
} pool;

/* Where a window begins; a number that is no random one must not lead out of the input. */
static int64_t begin_of(double place, double origin, int64_t room) {
  const double at = trunc(place) - trunc(origin);
  return !(at > 0) ? 0 : at < (double)room ? (int64_t)at : room;
}
/* Begins of the windows of one dimension, in the arithmetic of the input's dtype. */
static void place_windows(const pool *p, int d, double sample, bool wide, int64_t *at) {
  const int64_t n = p->out[d], room = p->in[d] - p->size[d];
  const double alpha = n > 1 ? (double)room / (double)(n - 1) : 0;
  const float alpha_f32 = n > 1 ? (float)room / (float)(n - 1) : 0;
  for (int64_t i = 0; i + 1 < n; i++) {
    at[i] = wide ? begin_of(((double)i + sample) * alpha, sample * alpha, room)
                 : begin_of((double)(((float)i + (float)sample) * alpha_f32),
                            (double)((float)sample * alpha_f32), room);
  }
  if (n > 0) at[n - 1] = room;
}
static bool read_pool(kiln__recipe *r, const kiln_ivalue *args, int n, pool *p) {
  kiln_tensor *t = SELF, *samples = kiln_arg_tensor(args, 3);
  const int rank = kiln_tensor_rank(t);
  int64_t list[2][KILN_MAX_RANK];
  static const char *const names[MOST] = {"width", "height", "time"};
  p->n = n;
  for (int k = 0; k < 2; k++) {
    int count;
    if (!kiln__recipe_ok(r, kiln__arg_int_list(args, 1 + k, list[k], &count))) return false;
    for (int d = 1; count == 1 && d < n; d++) list[k][d] = list[k][0];
    if (count != 1 && count != n) {
      KILN_RECIPE_FAIL(r,
                       "fractional_max_pool%dd: %s must either be a single int or tuple of %d "
                       "ints",
                       n, k ? "output_size" : "kernel_size", n);
      return false;
    }
  }
  bool empty = rank != n + 1 && rank != n + 2;
  for (int d = rank - n - 1; !empty && d < rank; d++) empty = kiln_tensor_sizes(t)[d] == 0;
  if (empty) {
    KILN_RECIPE_FAIL(r,
                     "fractional_max_pool%dd(): Expected %dD or %dD tensor with non-zero sizes for "
                     "all dimensions but the batch",
                     n, n + 1, n + 2);
    return false;
  }
  p->channels = kiln_tensor_sizes(t)[rank - n - 1];
  p->planes = p->channels * (rank == n + 2 ? kiln_tensor_sizes(t)[0] : 1);
  for (int d = 0; d < n; d++) {
    p->in[d] = kiln_tensor_sizes(t)[rank - n + d];
    p->size[d] = list[0][d];
    p->out[d] = list[1][d];
    if (p->size[d] < 1 || p->out[d] < 1 || p->size[d] > p->in[d] ||
        p->out[d] - (n == 2) > p->in[d] - p->size[d]) { /* in three one place must be left */
      KILN_RECIPE_FAIL(
          r, "fractional_max_pool%dd(): pool %s %lld too large relative to input %s %lld", n,
          names[n - 1 - d], (long long)p->size[d], names[n - 1 - d], (long long)p->in[d]);
      return false;
    }
  }
  if (kiln_tensor_rank(samples) != 3 || samples->numel != p->planes * n ||
      kiln_tensor_sizes(samples)[2] != n) {
    KILN_RECIPE_FAIL(r, "Expect _random_samples to have %d values for each channel of the batch",
                     n);
    return false;
  }
  return true;
}
/* The greatest of a window that begins at `from` (one place a dimension), NaN before all others. */
static int64_t greatest(const pool *p, const double *x, const int64_t *from) {
  int64_t at[MOST] = {0}, best = -1;
  for (;;) {
    int64_t place = 0;
    for (int d = 0; d < p->n; d++) place = place * p->in[d] + from[d] + at[d];
    if (best < 0 || x[place] > x[best] || isnan(x[place])) best = place;
    int d = p->n - 1;
    while (d >= 0 && ++at[d] == p->size[d]) at[d--] = 0;
    if (d < 0) return best;
  }
}
/* self, kernel_size, output_size, random_samples [batch, channels, n] -> output, indices */
static void fractional(kiln__recipe *r, const kiln_ivalue *args, int n, kiln_ivalue *outs) {
  kiln_tensor *t = SELF, *in, *numbers, *out, *places, *room;
  const int rank = kiln_tensor_rank(t);
  const kiln_dtype dtype = kiln_tensor_dtype(t);
  int64_t sizes[KILN_MAX_RANK], all = 0, *windows[MOST];
  pool p;
  if (!kiln_dtype_is_float(dtype)) {
    (void)kiln__recipe_ok(r, kiln__not_implemented(r->call, dtype));
    return;
  }
  if (!read_pool(r, args, n, &p)) return;
  memcpy(sizes, kiln_tensor_sizes(t), sizeof *sizes * (size_t)rank);
  for (int d = 0; d < n; d++) all += sizes[rank - n + d] = p.out[d];
  const double *x = kiln__recipe_read(r, t, KILN_DTYPE_F64, &in);
  const double *sample = kiln__recipe_read(r, kiln_arg_tensor(args, 3), KILN_DTYPE_F64, &numbers);
  double *to = kiln__recipe_new(r, KILN_DTYPE_F64, rank, sizes, &out);
  int64_t *index = kiln__recipe_new(r, KILN_DTYPE_I64, rank, sizes, &places);
  int64_t *begins = kiln__recipe_new(r, KILN_DTYPE_I64, 1, &all, &room);
  if (r->status) return;
  for (int d = 0; d < n; d++) windows[d] = d ? windows[d - 1] + p.out[d - 1] : begins;
  int64_t plane = 1, window = 4;
  for (int d = 0; d < n; d++) plane *= p.in[d], window *= p.size[d];
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; i < p.planes && !kiln_budget_spent(&left, 4); i++, x += plane, sample += n) {
    for (int d = 0; d < n; d++) { /* in two dimensions, the width has the first number */
      place_windows(&p, d, sample[n == 2 ? 1 - d : d], dtype == KILN_DTYPE_F64, windows[d]);
    }
    int64_t at[MOST] = {0};
    for (int d = 0; d >= 0 && !kiln_budget_spent(&left, window);) {
      int64_t from[MOST] = {0};
      for (int k = 0; k < n; k++) from[k] = windows[k][at[k]];
      *index = greatest(&p, x, from);
      *to++ = x[*index++];
      for (d = n - 1; d >= 0 && ++at[d] == p.out[d]; d--) at[d] = 0;
    }
  }
  kiln__recipe_give(r, &outs[0], kiln__recipe_to(r, out, dtype));
  kiln__recipe_give(r, &outs[1], places);
}
KILN_RECIPE(fractional_max_pool2d) { fractional(r, args, 2, outs); }
KILN_RECIPE(fractional_max_pool3d) { fractional(r, args, 3, outs); }

/* -- Grids -- */

/* Place i of n between -1 and 1. */
static double grid_place(int64_t i, int64_t n, bool corners) {
  if (n <= 1) return 0;
  const double x = -1 + 2 * (double)i / (double)(n - 1);
  return corners ? x : x * (double)(n - 1) / (double)n;
}
/* theta [N, k, k + 1], size [N, C, ..k dimensions], align_corners -> [N, .., k] */
KILN_RECIPE(affine_grid_generator) {
  kiln_tensor *t = SELF, *in, *out;
  const bool corners = kiln_arg_bool(args, 2);
  int64_t size[KILN_MAX_RANK];
  int count;
  if (!kiln__recipe_ok(r, kiln__arg_int_list(args, 1, size, &count))) return;
  if (count != 4 && count != 5) {
    KILN_RECIPE_FAIL(r, "AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.");
    return;
  }
  const int k = count - 2;
  if (kiln_tensor_rank(t) != 3 || kiln_tensor_sizes(t)[0] != size[0] ||
      kiln_tensor_sizes(t)[1] != k || kiln_tensor_sizes(t)[2] != k + 1) {
    KILN_RECIPE_FAIL(r,
                     "Expected a batch of %dx%d affine matrices of shape Nx%dx%d for size of %d "
                     "dimensions",
                     k, k + 1, k, k + 1, count);
    return;
  }
  int64_t sizes[KILN_MAX_RANK], at[MOST + 1] = {0};
  sizes[0] = size[0];
  memcpy(sizes + 1, size + 2, sizeof *sizes * (size_t)k);
  sizes[k + 1] = k;
  const double *theta = kiln__recipe_read(r, t, KILN_DTYPE_F64, &in);
  double *to = kiln__recipe_new(r, KILN_DTYPE_F64, k + 2, sizes, &out);
  if (r->status) return;
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; i < out->numel && !kiln_budget_spent(&left, 8 * k); i += k) {
    const double *m = theta + at[0] * k * (k + 1);
    for (int row = 0; row < k; row++) { /* coordinates run from the last dimension: x, y, z */
      double sum = m[row * (k + 1) + k];
      for (int c = 0; c < k; c++) {
        sum += m[row * (k + 1) + c] * grid_place(at[k - c], sizes[k - c], corners);
      }
      to[i + row] = sum;
    }
    for (int d = k; d >= 0 && ++at[d] == sizes[d]; d--) at[d] = 0;
  }
  kiln__recipe_give(r, outs, kiln__recipe_to(r, out, kiln_tensor_dtype(t)));
}

/* -- Convolutions by other names -- */

/* self, weight, kernel_size, bias, stride, padding [, dilation] */
#define PLAIN(name, conv)                                                             \
  KILN_RECIPE(name) {                                                                 \
    const kiln_kernel *kernel = r->call->kernel;                                      \
    const bool dilated = kernel->arg_count > 6 && kernel->dest_arg != 6;              \
    kiln__recipe_give(r, outs,                                                        \
                      KILN_COOK(r, conv, args[0], args[1], args[3], args[4], args[5], \
                                dilated ? args[6] : I(1), I(1)));                     \
  }
PLAIN(thnn_conv2d, conv2d)
PLAIN(slow_conv3d, conv3d)
/* self, weight, kernel_size, bias, stride, padding, output_padding, dilation */
#define TRANSPOSED(name, conv)                                                                    \
  KILN_RECIPE(name) {                                                                             \
    kiln__recipe_give(                                                                            \
        r, outs,                                                                                  \
        KILN_COOK(r, conv, args[0], args[1], args[3], args[4], args[5], args[6], I(1), args[7])); \
  }
TRANSPOSED(slow_conv_transpose2d, conv_transpose2d)
TRANSPOSED(slow_conv_transpose3d, conv_transpose3d)
/* self, weight [C, 1, ..], kernel_size, bias, stride, padding, dilation: a group a channel */
#define DEPTHWISE(name, conv)                                                                  \
  KILN_RECIPE(name) {                                                                          \
    kiln__recipe_give(r, outs,                                                                 \
                      KILN_COOK(r, conv, args[0], args[1], args[3], args[4], args[5], args[6], \
                                I(kiln__recipe_size(SELF, -1 - DIMS_##conv))));                \
  }
enum { DIMS_conv2d = 2, DIMS_conv3d = 3 };
DEPTHWISE(_conv_depthwise2d, conv2d)
DEPTHWISE(conv_depthwise3d, conv3d)
/* self [T, B, I], weight [K, I, O], bias [O], pad -> [T', B, O] */
KILN_RECIPE(conv_tbc) {
  if (kiln_tensor_rank(SELF) != 3 || kiln_tensor_rank(kiln_arg_tensor(args, 1)) != 3 ||
      kiln_tensor_rank(kiln_arg_tensor(args, 2)) != 1) {
    KILN_RECIPE_FAIL(r, "Input must have 3 dims: time, batch, in_channel; weight tensor must have "
                        "3 dims: kernel_width, in_channels, out_channels; bias must be 1-D");
    return;
  }
  kiln_tensor *x = KILN_COOK(r, permute, args[0], INTS(1, 2, 0));
  kiln_tensor *w = KILN_COOK(r, permute, args[1], INTS(2, 1, 0));
  if (kiln__recipe_size(x, 1) == 0 && kiln__recipe_size(w, 1) == 0) { /* the bias alone */
    x = KILN_COOK(r, constant_pad_nd, T(x), INTS(0, 0, 0, 1), I(0));
    w = KILN_COOK(r, constant_pad_nd, T(w), INTS(0, 0, 0, 1), I(0));
  }
  kiln_tensor *y = KILN_COOK(r, conv1d, T(x), T(w), args[2], I(1), args[3], I(1), I(1));
  kiln__recipe_give(r, outs, kiln__recipe_copy(r, KILN_COOK(r, permute, T(y), INTS(2, 0, 1))));
}

/* -- Interpolation by name: aten::__interpolate and its older kin -- */

static void bad_mode(kiln__recipe *r, kiln_str mode, int rank) {
  KILN_RECIPE_FAIL(r,
                   "Input Error: Only 3D, 4D and 5D input Tensors supported (got %dD) for the "
                   "modes: nearest | linear | bilinear | trilinear (got " KILN_STR_FMT ")",
                   rank, KILN_STR_ARG(mode));
}
/* Sizes asked for: `size`, or the input's times `scale`, rounded down. */
static bool output_sizes(kiln__recipe *r, const kiln_tensor *t, kiln_ivalue size, kiln_ivalue scale,
                         int n, int64_t *out) {
  const kiln_ivalue given = size.tag != KILN_TAG_NONE ? size : scale;
  if (given.tag == KILN_TAG_NONE) {
    KILN_RECIPE_FAIL(r, "either size or scale_factor should be defined");
    return false;
  }
  const bool list = given.tag == KILN_TAG_LIST;
  if (scale.tag == KILN_TAG_LIST && scale.u.list->count != n) {
    KILN_RECIPE_FAIL(r,
                     "Input and scale_factor must have the same number of spatial dimensions, "
                     "but got %d and %lld",
                     n, (long long)scale.u.list->count);
    return false;
  }
  if (list && given.u.list->count != n) {
    KILN_RECIPE_FAIL(r, "Sizes should be a list of %d numbers, but got %lld", n,
                     (long long)given.u.list->count);
    return false;
  }
  for (int d = 0; d < n; d++) {
    const kiln_number v = kiln__number(list ? given.u.list->items[d] : given);
    const double x = floor((double)kiln_tensor_sizes(t)[d + 2] * v.f);
    out[d] = size.tag != KILN_TAG_NONE ? v.i : x > 0 && x < 0x1p40 ? (int64_t)x : 0;
  }
  return true;
}
/* Only where the scales themselves are to be used. */
static kiln_ivalue scale_of(kiln_ivalue scale, bool used, int d) {
  if (!used || scale.tag == KILN_TAG_NONE) return NONE;
  return F(kiln__number(scale.tag == KILN_TAG_LIST ? scale.u.list->items[d] : scale).f);
}
static void interpolate(kiln__recipe *r, kiln_tensor *t, kiln_ivalue size, kiln_ivalue scale,
                        kiln_str mode, kiln_ivalue align, bool keep_scale, kiln_ivalue *outs) {
  const int rank = kiln_tensor_rank(t), n = rank - 2;
  const bool nearest = kiln_str_is(mode, "nearest"), area = kiln_str_is(mode, "area");
  int64_t sizes[KILN_MAX_RANK];
  if ((nearest || area) && align.tag != KILN_TAG_NONE) {
    KILN_RECIPE_FAIL(r, "align_corners option can only be set with the interpolating modes: "
                        "linear | bilinear | bicubic | trilinear");
    return;
  }
  if (rank < 3 || rank > 5) {
    bad_mode(r, mode, rank);
    return;
  }
  if (!output_sizes(r, t, size, scale, n, sizes)) return;
  const kiln_ivalue to = kiln__recipe_ints(r, n, sizes);
  const kiln_ivalue corners = B(align.tag == KILN_TAG_BOOL && align.u.b), x = T(t);
  const kiln_ivalue s[3] = {scale_of(scale, keep_scale, 0), scale_of(scale, keep_scale && n > 1, 1),
                            scale_of(scale, keep_scale && n > 2, 2)};
  kiln_tensor *y = NULL;
  if (nearest) {
    y = n == 1   ? KILN_COOK(r, upsample_nearest1d, x, to, s[0])
        : n == 2 ? KILN_COOK(r, upsample_nearest2d, x, to, s[0], s[1])
                 : KILN_COOK(r, upsample_nearest3d, x, to, s[0], s[1], s[2]);
  } else if (area) {
    y = n == 1   ? KILN_COOK(r, adaptive_avg_pool1d, x, to)
        : n == 2 ? KILN_COOK(r, adaptive_avg_pool2d, x, to)
                 : KILN_COOK(r, adaptive_avg_pool3d, x, to);
  } else if (n == 1 && kiln_str_is(mode, "linear")) {
    y = KILN_COOK(r, upsample_linear1d, x, to, corners, s[0]);
  } else if (n == 2 && kiln_str_is(mode, "bilinear")) {
    y = KILN_COOK(r, upsample_bilinear2d, x, to, corners, s[0], s[1]);
  } else if (n == 2 && kiln_str_is(mode, "bicubic")) {
    y = KILN_COOK(r, upsample_bicubic2d, x, to, corners, s[0], s[1]);
  } else if (n == 3 && kiln_str_is(mode, "trilinear")) {
    y = KILN_COOK(r, upsample_trilinear3d, x, to, corners, s[0], s[1], s[2]);
  } else {
    bad_mode(r, mode, rank);
    return;
  }
  kiln__recipe_give(r, outs, y);
}
/* input, size, scale_factor, mode, align_corners, recompute_scale_factor (None: yes), antialias */
KILN_RECIPE(__interpolate) {
  const bool keep_scale = args[5].tag == KILN_TAG_BOOL && !args[5].u.b;
  interpolate(r, SELF, args[1], args[2], kiln_arg_str(args, 3), args[4], keep_scale, outs);
}
KILN_RECIPE(__upsample) {
  interpolate(r, SELF, args[1], args[2], kiln_arg_str(args, 3), args[4], false, outs);
}
KILN_RECIPE(__upsample_nearest) {
  interpolate(r, SELF, args[1], args[2], KILN_STR("nearest"), NONE, false, outs);
}
KILN_RECIPE(__upsample_bilinear) {
  interpolate(r, SELF, args[1], args[2], KILN_STR("bilinear"), B(true), false, outs);
}
