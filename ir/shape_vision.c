/* shape_vision.c: shape functions of torchvision's operators, and of grids. */
#include "ir/shape.h"

static const kiln_tensor_detail *ranked(const kiln_shape_query *q, int i, int rank) {
  const kiln_tensor_detail *t = kiln__shape_tensor(q, i);
  return t && t->rank == rank ? t : NULL;
}
static int64_t int_of(const kiln_shape_query *q, const char *name) {
  const int at = kiln__shape_find(q, name);
  int64_t value;
  return at >= 0 && kiln__shape_int(q, at, &value) && value >= 0 && value < INT32_MAX
             ? value
             : KILN_DIM_UNKNOWN;
}

/* (input (N, C, H, W), rois (K, 5), ...): (K, channels, height, width), and where the elements came
 * from; `by_bin`: each bin has channels of its own. */
static bool regions(kiln_shape_query *q, bool by_bin) {
  const kiln_tensor_detail *t = ranked(q, 0, 4), *rois = ranked(q, 1, 2);
  if (!t || !rois) return false;
  const int64_t height = int_of(q, "pooled_height"), width = int_of(q, "pooled_width");
  int64_t channels = t->sizes[1];
  if (by_bin) {
    const bool known = kiln_dim_is_number(channels) && height > 0 && width > 0;
    if (known && channels % (height * width) != 0) return false;
    channels = known ? channels / (height * width) : KILN_DIM_UNKNOWN;
  }
  const int64_t sizes[4] = {rois->sizes[0], channels, height, width};
  for (int i = 0; i < q->op->schema->result_count; i++) {
    kiln__shape_give(q, i, i == 0 ? t->dtype : (int)KILN_DTYPE_I32, 4, sizes, true);
    if (i > 0) q->outs[i].requires_grad = 0;
  }
  return true;
}

/* roi_align, roi_pool; and the position-sensitive ones. */
bool kiln__shape_regions(kiln_shape_query *q) { return regions(q, false); }
bool kiln__shape_ps_regions(kiln_shape_query *q) { return regions(q, true); }

/* deform_conv2d(input, weight, offset (N, ..., height, width), ...): (N, out, height, width) */
bool kiln__shape_deform_conv(kiln_shape_query *q) {
  const kiln_tensor_detail *t = ranked(q, 0, 4), *w = ranked(q, 1, 4), *offset = ranked(q, 2, 4);
  if (!t || !w || !offset) return false;
  const int64_t sizes[4] = {t->sizes[0], w->sizes[0], offset->sizes[2], offset->sizes[3]};
  return kiln__shape_give(q, 0, t->dtype, 4, sizes, true);
}

/* affine_grid_generator(theta, size (N, C, ...)): (N, ..., k). */
bool kiln__shape_affine_grid(kiln_shape_query *q) {
  const kiln_tensor_detail *theta = kiln__shape_tensor(q, 0);
  kiln_shape_list list;
  int64_t sizes[KILN_MAX_RANK];
  int rank = 0;
  if (!theta || !kiln__shape_ints(q, 1, &list) || list.count < 4 || list.count > 5) return false;
  for (int i = 0; i < list.count; i++) {
    if (i == 1) continue;
    sizes[rank++] = list.known[i] && list.ints[i] >= 0 ? list.ints[i] : KILN_DIM_UNKNOWN;
  }
  sizes[rank++] = list.count - 2;
  return kiln__shape_give(q, 0, theta->dtype, rank, sizes, true);
}
