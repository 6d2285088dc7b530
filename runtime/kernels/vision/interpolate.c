/* interpolate.c: interpolation by its name in scripts: aten::__interpolate and its kin. */
#include <math.h>

#include "runtime/kernels/composite.h"

static void bad_mode(kiln__composite *r, kiln_str mode, int rank) {
  FAIL(r,
       "Input Error: Only 3D, 4D and 5D input Tensors supported (got %dD) for the "
       "modes: nearest | linear | bilinear | trilinear (got " KILN_STR_FMT ")",
       rank, KILN_STR_ARG(mode));
}
/* Sizes asked for: `size`, or the input's times `scale`, rounded down. */
static bool output_sizes(kiln__composite *r, const kiln_tensor *t, kiln_ivalue size,
                         kiln_ivalue scale, int n, int64_t *out) {
  const kiln_ivalue given = size.tag != KILN_TAG_NONE ? size : scale;
  if (given.tag == KILN_TAG_NONE) {
    return FAIL(r, "either size or scale_factor should be defined");
  }
  const bool list = given.tag == KILN_TAG_LIST;
  if (scale.tag == KILN_TAG_LIST && scale.u.list->count != n) {
    return FAIL(r,
                "Input and scale_factor must have the same number of spatial "
                "dimensions, but got %d and %lld",
                n, (long long)scale.u.list->count);
  }
  if (list && given.u.list->count != n) {
    return FAIL(r, "Sizes should be a list of %d numbers, but got %lld", n,
                (long long)given.u.list->count);
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
static kiln_tensor *interpolate(kiln__composite *r, kiln_tensor *t, kiln_ivalue size,
                                kiln_ivalue scale, kiln_str mode, kiln_ivalue align,
                                bool keep_scale) {
  const int rank = kiln_tensor_rank(t), n = rank - 2;
  const bool nearest = kiln_str_is(mode, "nearest"), area = kiln_str_is(mode, "area");
  int64_t sizes[KILN_MAX_RANK];
  if ((nearest || area) && align.tag != KILN_TAG_NONE) {
    return FAIL(r, "align_corners option can only be set with the interpolating "
                   "modes: linear | bilinear | bicubic | trilinear");
  }
  if (rank < 3 || rank > 5) {
    bad_mode(r, mode, rank);
    return NULL;
  }
  if (!output_sizes(r, t, size, scale, n, sizes)) return NULL;
  const kiln_ivalue to = kiln__composite_ints(r, n, sizes);
  const kiln_ivalue corners = B(align.tag == KILN_TAG_BOOL && align.u.b), x = T(t);
  const kiln_ivalue s[3] = {scale_of(scale, keep_scale, 0), scale_of(scale, keep_scale && n > 1, 1),
                            scale_of(scale, keep_scale && n > 2, 2)};
  kiln_tensor *y = NULL;
  if (nearest) {
    y = n == 1   ? KILN_STEP(r, upsample_nearest1d, x, to, s[0])
        : n == 2 ? KILN_STEP(r, upsample_nearest2d, x, to, s[0], s[1])
                 : KILN_STEP(r, upsample_nearest3d, x, to, s[0], s[1], s[2]);
  } else if (area) {
    y = n == 1   ? KILN_STEP(r, adaptive_avg_pool1d, x, to)
        : n == 2 ? KILN_STEP(r, adaptive_avg_pool2d, x, to)
                 : KILN_STEP(r, adaptive_avg_pool3d, x, to);
  } else if (n == 1 && kiln_str_is(mode, "linear")) {
    y = KILN_STEP(r, upsample_linear1d, x, to, corners, s[0]);
  } else if (n == 2 && kiln_str_is(mode, "bilinear")) {
    y = KILN_STEP(r, upsample_bilinear2d, x, to, corners, s[0], s[1]);
  } else if (n == 2 && kiln_str_is(mode, "bicubic")) {
    y = KILN_STEP(r, upsample_bicubic2d, x, to, corners, s[0], s[1]);
  } else if (n == 3 && kiln_str_is(mode, "trilinear")) {
    y = KILN_STEP(r, upsample_trilinear3d, x, to, corners, s[0], s[1], s[2]);
  } else {
    bad_mode(r, mode, rank);
    return NULL;
  }
  return y;
}
/* input, size, scale_factor, mode, align_corners, recompute_scale_factor (None: yes), antialias */
KILN_COMPOSITE(__interpolate) {
  const bool keep_scale = args[5].tag == KILN_TAG_BOOL && !args[5].u.b;
  return interpolate(r, SELF, args[1], args[2], kiln_arg_str(args, 3), args[4], keep_scale);
}
KILN_COMPOSITE(__upsample) {
  return interpolate(r, SELF, args[1], args[2], kiln_arg_str(args, 3), args[4], false);
}
KILN_COMPOSITE(__upsample_nearest) {
  return interpolate(r, SELF, args[1], args[2], KILN_STR("nearest"), NONE, false);
}
KILN_COMPOSITE(__upsample_bilinear) {
  return interpolate(r, SELF, args[1], args[2], KILN_STR("bilinear"), B(true), false);
}
