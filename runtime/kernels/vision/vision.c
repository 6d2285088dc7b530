/* vision.c: operators of torchvision: nms (greedy, by falling score), roi_align (means of bilinear
 * samples). Computed in the boxes' own float type. */
#include "runtime/kernels/vision/vision.h"

#include <math.h>
#include <string.h>

#include "runtime/kernels/composite.h"

/* -- nms -- */

/* As box by box in its own type: float results decide what overlaps. */
#define OVERLAPS(name, type)                                                                   \
  static bool name(const type *a, const type *b, double threshold) {                           \
    const type area_a = (a[2] - a[0]) * (a[3] - a[1]), area_b = (b[2] - b[0]) * (b[3] - b[1]); \
    const type left = a[0] > b[0] ? a[0] : b[0], top = a[1] > b[1] ? a[1] : b[1];              \
    const type right = a[2] < b[2] ? a[2] : b[2], bottom = a[3] < b[3] ? a[3] : b[3];          \
    const type w = right > left ? right - left : 0, h = bottom > top ? bottom - top : 0;       \
    const type both = w * h;                                                                   \
    return (double)(both / (area_a + area_b - both)) > threshold;                              \
  }
OVERLAPS(overlaps_f32, float)
OVERLAPS(overlaps_f64, double)

static bool check_boxes(kiln__composite *r, const kiln_tensor *boxes, const kiln_tensor *scores) {
  if (kiln_tensor_rank(boxes) != 2 || kiln_tensor_sizes(boxes)[1] != 4) {
    FAIL(r, "boxes should be a 2d tensor of 4 columns, got %s", kiln__sizes_of(boxes).text);
  } else if (kiln_tensor_rank(scores) != 1) {
    FAIL(r, "scores should be a 1d tensor, got %dD", kiln_tensor_rank(scores));
  } else if (kiln_tensor_sizes(boxes)[0] != kiln_tensor_sizes(scores)[0]) {
    FAIL(r,
         "boxes and scores should have same number of elements in dimension 0, got "
         "%lld and %lld",
         (long long)kiln_tensor_sizes(boxes)[0], (long long)kiln_tensor_sizes(scores)[0]);
  } else if (kiln_tensor_dtype(boxes) != kiln_tensor_dtype(scores)) {
    FAIL(r, "dets should have the same type as scores");
  } else if (!kiln_dtype_is_float(kiln_tensor_dtype(boxes))) {
    (void)kiln__composite_ok(r, kiln__not_implemented(r->call, kiln_tensor_dtype(boxes)));
  }
  return !r->status;
}
KILN_COMPOSITE(torchvision_nms) {
  kiln_tensor *boxes = SELF, *scores = ARG(1), *sorted[2];
  const double threshold = kiln_arg_float(args, 2);
  if (!check_boxes(r, boxes, scores)) return NULL;
  const bool wide = kiln_tensor_dtype(boxes) == KILN_DTYPE_F64;
  const int64_t n = kiln_tensor_sizes(boxes)[0];
  kiln_tensor *dense, *order, *gone_tensor, *result;
  const void *data = kiln__composite_read(r, boxes, wide ? KILN_DTYPE_F64 : KILN_DTYPE_F32, &dense);
  KILN_STEP_MANY(r, sort_stable, 2, sorted, T(scores), B(true), I(0), B(true));
  const int64_t *at = kiln__composite_read(r, sorted[1], KILN_DTYPE_I64, &order);
  uint8_t *gone = kiln__composite_new(r, KILN_DTYPE_BOOL, 1, &n, &gone_tensor);
  int64_t kept = 0, *keep = kiln__composite_new(r, KILN_DTYPE_I64, 1, &n, &result);
  if (r->status) return NULL;
  kiln__zero(gone, (size_t)n);
  for (int64_t i = 0; i < n; i++) {
    if (gone[at[i]]) continue;
    keep[kept++] = at[i];
    for (int64_t k = i + 1; k < n; k++) {
      const size_t a = (size_t)at[i] * 4, b = (size_t)at[k] * 4;
      if (gone[at[k]]) continue;
      gone[at[k]] =
          wide ? overlaps_f64((const double *)data + a, (const double *)data + b, threshold)
               : overlaps_f32((const float *)data + a, (const float *)data + b, threshold);
    }
    if (!kiln__composite_ok(r, kiln_call_check(r->call, 1))) return NULL;
  }
  return kiln__composite_copy(r, kiln__composite_narrow(r, result, 0, 0, kept));
}

/* -- roi_align -- */

double kiln__picture_sample(const kiln__nn *nn, const char *plane, int64_t height, int64_t width,
                            double y, double x) {
  if (!(y >= -1 && y <= (double)height && x >= -1 && x <= (double)width)) return 0;
  if (y < 0) y = 0;
  if (x < 0) x = 0;
  int64_t top = (int64_t)y, left = (int64_t)x, bottom = top + 1, right = left + 1;
  if (top >= height - 1) {
    top = bottom = height - 1;
    y = (double)top;
  }
  if (left >= width - 1) {
    left = right = width - 1;
    x = (double)left;
  }
  const double dy = y - (double)top, dx = x - (double)left;
  return (1 - dy) * ((1 - dx) * kiln__nn_get(nn, plane, top * width + left) +
                     dx * kiln__nn_get(nn, plane, top * width + right)) +
         dy * ((1 - dx) * kiln__nn_get(nn, plane, bottom * width + left) +
               dx * kiln__nn_get(nn, plane, bottom * width + right));
}
typedef struct region {
  double top, left, height, width; /* of one bin */
  int64_t rows, columns;           /* samples of one bin */
} region;
/* One sample a pixel; what no image reaches, or is no number, has as many as an int can say. */
static int64_t samples_of(double pixels) {
  const double count = ceil(pixels);
  return count < INT32_MAX ? (count > 0 ? (int64_t)count : 0) : INT32_MAX;
}
static region region_of(const kiln__nn *nn, const char *roi, double scale, const int64_t bins[2],
                        int64_t ratio, bool aligned) {
  const double shift = aligned ? 0.5 : 0;
  double at[4];
  for (int i = 0; i < 4; i++) at[i] = kiln__nn_get(nn, roi, 1 + i) * scale - shift;
  double height = at[3] - at[1], width = at[2] - at[0];
  if (!aligned && height < 1) height = 1;
  if (!aligned && width < 1) width = 1;
  region g = {at[1], at[0], height / (double)bins[0], width / (double)bins[1], ratio, ratio};
  if (ratio <= 0) {
    g.rows = samples_of(g.height);
    g.columns = samples_of(g.width);
  }
  return g;
}
static double bin_mean(const kiln__nn *nn, const region *g, const char *plane, int64_t height,
                       int64_t width, int64_t by, int64_t bx) {
  double sum = 0;
  for (int64_t i = 0; i < g->rows; i++) {
    const double y =
        g->top + (double)by * g->height + ((double)i + 0.5) * g->height / (double)g->rows;
    for (int64_t j = 0; j < g->columns; j++) {
      const double x =
          g->left + (double)bx * g->width + ((double)j + 0.5) * g->width / (double)g->columns;
      sum += kiln__picture_sample(nn, plane, height, width, y, x);
    }
  }
  const int64_t count = g->rows * g->columns;
  return count > 0 ? sum / (double)count : 0;
}
/* input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned */
KILN_NN_KERNEL(torchvision_roi_align) {
  kiln_tensor *t = SELF, *rois = ARG(1), *result;
  const int64_t bins[2] = {kiln_arg_int(args, 3), kiln_arg_int(args, 4)};
  const char *data, *boxes;
  char *to;
  if (kiln_tensor_rank(rois) != 2 || kiln_tensor_sizes(rois)[1] != 5) {
    return KILN_OP_FAIL("rois must have shape as Tensor[K, 5]");
  }
  if (kiln_tensor_rank(t) != 4) return KILN_OP_FAIL("roi_align expects an input of 4 dimensions");
  if (kiln_tensor_dtype(t) != kiln_tensor_dtype(rois)) {
    return KILN_OP_FAIL(
        "Expected tensor for argument #1 'input' to have the same type as tensor for "
        "argument #2 'rois'");
  }
  if (bins[0] <= 0 || bins[1] <= 0)
    return KILN_OP_FAIL("roi_align: the pooled size must be positive");
  const int64_t *sizes = kiln_tensor_sizes(t), n = kiln_tensor_sizes(rois)[0];
  KILN_TRY(kiln__nn_begin(nn, kiln_tensor_dtype(t)));
  KILN_TRY(kiln__nn_dense(nn, t, &data));
  KILN_TRY(kiln__nn_dense(nn, rois, &boxes));
  KILN_TRY(kiln__nn_new(nn, 4, (const int64_t[]){n, sizes[1], bins[0], bins[1]}, &result, &to));
  const int64_t plane = sizes[2] * sizes[3];
  for (int64_t k = 0; k < n; k++) {
    const char *roi = boxes + (size_t)(k * 5) * nn->item;
    const double batch = kiln__nn_get(nn, roi, 0);
    if (!(batch >= 0 && batch < (double)sizes[0]) || plane == 0) {
      return KILN_OP_FAIL("roi_align: a roi is of no image of the batch");
    }
    const region g = region_of(nn, roi, kiln_arg_float(args, 2), bins, kiln_arg_int(args, 5),
                               kiln_arg_bool(args, 6));
    if (g.rows > 1 << 16 || g.columns > 1 << 16) {
      return KILN_OP_FAIL("roi_align: a roi is too large");
    }
    for (int64_t c = 0; c < sizes[1]; c++) {
      const char *from = data + (size_t)(((int64_t)batch * sizes[1] + c) * plane) * nn->item;
      for (int64_t i = 0; i < bins[0] * bins[1]; i++) {
        KILN_TRY(kiln_call_check(nn->call, 0));
        const double mean = bin_mean(nn, &g, from, sizes[2], sizes[3], i / bins[1], i % bins[1]);
        kiln__nn_set(nn, to, (k * sizes[1] + c) * bins[0] * bins[1] + i, mean);
      }
    }
    KILN_TRY(kiln_call_check(nn->call, 1));
  }
  return kiln__nn_give(nn, result, kiln_tensor_dtype(t), outs);
}
