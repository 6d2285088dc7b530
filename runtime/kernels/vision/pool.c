/* pool.c: torchvision's older ways to cut regions out of a picture: roi_pool (the greatest
 * pixel of a bin), ps_roi_pool and ps_roi_align (position-sensitive: every bin reads a channel of
 * its own). Edges of bins are computed in the picture's own float type, for they are rounded. */
#include <math.h>

#include "runtime/kernels/vision/vision.h"

typedef struct regions {
  double scale;
  int64_t images, channels, height, width; /* of the input */
  int64_t count, out_channels, bins[2];
  const char *data, *rois;
  kiln_tensor *result, *places;
  char *to;
  int32_t *place; /* where each element came from */
} regions;

static kiln_status *check_regions(const regions *g, const kiln_tensor *t, const kiln_tensor *rois,
                                  bool by_position) {
  if (kiln_tensor_rank(rois) != 2 || kiln_tensor_sizes(rois)[1] != 5) {
    return KILN_OP_FAIL("Tensor rois should have shape as Tensor[K, 5]");
  }
  if (kiln_tensor_rank(t) != 4) {
    return KILN_OP_FAIL("expected an input of 4 dimensions, got %d", kiln_tensor_rank(t));
  }
  if (kiln_tensor_dtype(t) != kiln_tensor_dtype(rois)) {
    return KILN_OP_FAIL("input should have the same type as rois");
  }
  if (g->bins[0] <= 0 || g->bins[1] <= 0 || g->bins[0] > INT32_MAX || g->bins[1] > INT32_MAX) {
    return KILN_OP_FAIL("the pooled size must be positive");
  }
  if (by_position && kiln_tensor_sizes(t)[1] % (g->bins[0] * g->bins[1]) != 0) {
    return KILN_OP_FAIL("input channels must be a multiple of pooling height * pooling width");
  }
  return NULL;
}
/* input, rois, spatial_scale, pooled_height, pooled_width */
static kiln_status *begin(kiln__nn *nn, const kiln_ivalue *args, bool by_position, regions *g) {
  kiln_tensor *t = SELF, *rois = ARG(1);
  void *data;
  g->bins[0] = kiln_arg_int(args, 3);
  g->bins[1] = kiln_arg_int(args, 4);
  KILN_TRY(check_regions(g, t, rois, by_position));
  KILN_TRY(kiln__nn_begin(nn, kiln_tensor_dtype(t)));
  KILN_TRY(kiln__nn_dense(nn, t, &g->data));
  KILN_TRY(kiln__nn_dense(nn, rois, &g->rois));
  const int64_t *sizes = kiln_tensor_sizes(t);
  g->scale = kiln_arg_float(args, 2);
  g->images = sizes[0];
  g->channels = sizes[1];
  g->height = sizes[2];
  g->width = sizes[3];
  g->count = kiln_tensor_sizes(rois)[0];
  g->out_channels = by_position ? g->channels / (g->bins[0] * g->bins[1]) : g->channels;
  const int64_t out[] = {g->count, g->out_channels, g->bins[0], g->bins[1]};
  KILN_TRY(kiln__nn_new(nn, 4, out, &g->result, &g->to));
  KILN_TRY(kiln__nn_make(nn, KILN_DTYPE_I32, 4, out, &g->places, &data));
  g->place = data;
  return NULL;
}
static kiln_status *give(kiln__nn *nn, const regions *g, const kiln_ivalue *args,
                         kiln_ivalue *outs) {
  KILN_TRY(kiln__nn_give(nn, g->result, kiln_tensor_dtype(SELF), &outs[0]));
  return kiln__give(&outs[1], kiln_tensor_retain(g->places));
}
/* The image of region k. */
static kiln_status *image_of(const kiln__nn *nn, const regions *g, int64_t k, int64_t *image) {
  const double at = kiln__nn_get(nn, g->rois, k * 5);
  if (!(at >= 0 && at < (double)g->images) || g->height * g->width == 0) {
    return KILN_OP_FAIL("a roi is of no image of the batch");
  }
  *image = (int64_t)at;
  return NULL;
}

/* -- Whole pixels -- */

static double own(const kiln__nn *nn, double x) {
  return nn->dtype == KILN_DTYPE_F64 ? x : (double)(float)x;
}
/* What is no number, or beyond every picture, stays an int. */
static int64_t whole(double x) {
  return x >= -0x1p30 && x <= 0x1p30 ? (int64_t)x : x > 0 ? 1 << 30 : -(1 << 30);
}
/* Pixels [begin, end) of bin `at` of a side of `length` pixels, cut at `limit`. */
static void edges(const kiln__nn *nn, int64_t start, int64_t length, int64_t bins, int64_t at,
                  int64_t limit, int64_t *out_begin, int64_t *out_end) {
  const double step = own(nn, (double)length / (double)bins);
  const int64_t begin = whole(floor(own(nn, (double)at * step))) + start;
  const int64_t end = whole(ceil(own(nn, (double)(at + 1) * step))) + start;
  *out_begin = begin < 0 ? 0 : begin < limit ? begin : limit;
  *out_end = end < 0 ? 0 : end < limit ? end : limit;
}
typedef struct window {
  int64_t y0, y1, x0, x1;
} window;
/* `more`: the last pixel of a region is part of it. */
static window window_of(const kiln__nn *nn, const regions *g, int64_t k, int64_t bin, bool more) {
  int64_t at[4];
  for (int i = 0; i < 4; i++) {
    at[i] = whole(round(own(nn, kiln__nn_get(nn, g->rois, k * 5 + 1 + i) * own(nn, g->scale))));
  }
  int64_t height = at[3] - at[1] + more, width = at[2] - at[0] + more;
  if (height < 1) height = 1;
  if (width < 1) width = 1;
  window w;
  edges(nn, at[1], height, g->bins[0], bin / g->bins[1], g->height - !more, &w.y0, &w.y1);
  edges(nn, at[0], width, g->bins[1], bin % g->bins[1], g->width - !more, &w.x0, &w.x1);
  return w;
}
static void take_greatest(const kiln__nn *nn, const regions *g, const window *w, const char *plane,
                          int64_t to) {
  const bool empty = w->y1 <= w->y0 || w->x1 <= w->x0;
  double best = empty ? 0 : -(double)3.402823466e+38F;
  int64_t at = -1;
  for (int64_t y = w->y0; y < w->y1; y++) {
    for (int64_t x = w->x0; x < w->x1; x++) {
      const double value = kiln__nn_get(nn, plane, y * g->width + x);
      if (value > best) {
        best = value;
        at = y * g->width + x;
      }
    }
  }
  kiln__nn_set(nn, g->to, to, best);
  g->place[to] = (int32_t)at;
}
static void take_mean(const kiln__nn *nn, const regions *g, const window *w, const char *plane,
                      int64_t to) {
  double sum = 0;
  for (int64_t y = w->y0; y < w->y1; y++) {
    for (int64_t x = w->x0; x < w->x1; x++) sum += kiln__nn_get(nn, plane, y * g->width + x);
  }
  const bool empty = w->y1 <= w->y0 || w->x1 <= w->x0;
  kiln__nn_set(nn, g->to, to, empty ? 0 : sum / (double)((w->y1 - w->y0) * (w->x1 - w->x0)));
}
/* Every region, bin and channel; by_position: bin i of output channel c reads channel c * bins + i.
 */
static kiln_status *pool_windows(kiln__nn *nn, const regions *g, bool by_position) {
  const int64_t bins = g->bins[0] * g->bins[1], plane = g->height * g->width;
  if (g->result->numel == 0) return NULL; /* bins may be many then */
  for (int64_t k = 0; k < g->count; k++) {
    int64_t image;
    KILN_TRY(image_of(nn, g, k, &image));
    for (int64_t bin = 0; bin < bins; bin++) {
      const window w = window_of(nn, g, k, bin, !by_position);
      KILN_TRY(kiln_call_check(nn->call, 1));
      for (int64_t c = 0; c < g->out_channels; c++) {
        const int64_t channel = by_position ? c * bins + bin : c;
        const int64_t to = (k * g->out_channels + c) * bins + bin;
        const char *from = g->data + (size_t)((image * g->channels + channel) * plane) * nn->item;
        if (!by_position) {
          take_greatest(nn, g, &w, from, to);
          continue;
        }
        take_mean(nn, g, &w, from, to);
        g->place[to] = (int32_t)channel;
      }
    }
  }
  return NULL;
}
KILN_NN_KERNEL(torchvision_roi_pool) {
  regions g;
  KILN_TRY(begin(nn, args, false, &g));
  KILN_TRY(pool_windows(nn, &g, false));
  return give(nn, &g, args, outs);
}
KILN_NN_KERNEL(torchvision_ps_roi_pool) {
  regions g;
  KILN_TRY(begin(nn, args, true, &g));
  KILN_TRY(pool_windows(nn, &g, true));
  return give(nn, &g, args, outs);
}

/* -- Samples -- */

typedef struct lattice {
  double start, step; /* of the bins of a region along one side */
  int64_t samples;    /* of one bin */
} lattice;

static kiln_status *lattice_of(const kiln__nn *nn, const regions *g, int64_t k, int side,
                               int64_t ratio, lattice *l) {
  const int64_t corner = k * 5 + (side == 0 ? 2 : 1); /* y before x */
  const double begin = own(nn, kiln__nn_get(nn, g->rois, corner) * g->scale - 0.5);
  const double end = own(nn, kiln__nn_get(nn, g->rois, corner + 2) * g->scale - 0.5);
  const double bins = (double)g->bins[side];
  *l = (lattice){begin, own(nn, (end - begin) / bins), ratio};
  if (ratio <= 0) l->samples = whole(ceil(own(nn, (end - begin) / bins)));
  return l->samples > 1 << 16 ? KILN_OP_FAIL("ps_roi_align: a roi is too large") : NULL;
}
static double mean_of(const kiln__nn *nn, const regions *g, const lattice l[2], const char *plane,
                      int64_t bin) {
  const int64_t row = bin / g->bins[1], column = bin % g->bins[1];
  const double top = l[0].start + (double)row * l[0].step;
  const double left = l[1].start + (double)column * l[1].step;
  double sum = 0;
  for (int64_t i = 0; i < l[0].samples; i++) {
    const double y = top + ((double)i + 0.5) * l[0].step / (double)l[0].samples;
    for (int64_t j = 0; j < l[1].samples; j++) {
      const double x = left + ((double)j + 0.5) * l[1].step / (double)l[1].samples;
      sum += kiln__picture_sample(nn, plane, g->height, g->width, y, x);
    }
  }
  return sum / (double)(l[0].samples * l[1].samples); /* a region without samples: not a number */
}
/* ..., sampling_ratio */
KILN_NN_KERNEL(torchvision_ps_roi_align) {
  regions g;
  KILN_TRY(begin(nn, args, true, &g));
  const int64_t bins = g.bins[0] * g.bins[1], plane = g.height * g.width;
  for (int64_t k = 0; k < g.count; k++) {
    int64_t image;
    lattice l[2];
    KILN_TRY(image_of(nn, &g, k, &image));
    for (int side = 0; side < 2; side++) {
      KILN_TRY(lattice_of(nn, &g, k, side, kiln_arg_int(args, 5), &l[side]));
    }
    for (int64_t i = 0; i < g.out_channels * bins; i++) {
      const char *from = g.data + (size_t)((image * g.channels + i) * plane) * nn->item;
      KILN_TRY(kiln_call_check(nn->call, 1));
      const int64_t to = k * g.out_channels * bins + i;
      kiln__nn_set(nn, g.to, to, mean_of(nn, &g, l, from, i % bins));
      g.place[to] = (int32_t)i;
    }
  }
  return give(nn, &g, args, outs);
}
