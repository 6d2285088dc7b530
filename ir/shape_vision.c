/* shape_vision.c: shape functions of torchvision's operators, of grids, and of
 * windows as columns. */
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

/* A list of two numbers, or of one for both. */
static bool pair(const kiln_shape_query *q, int i, int64_t out[2]) {
  kiln_shape_list list;
  if (!kiln__shape_ints(q, i, &list) || (list.count != 1 && list.count != 2)) return false;
  for (int d = 0; d < 2; d++) {
    const int at = list.count == 1 ? 0 : d;
    out[d] = list.ints[at];
    if (!list.known[at] || out[d] < 0 || out[d] > INT32_MAX) return false;
  }
  return true;
}

/* im2col(self (.., c, h, w), kernel_size, dilation, padding, stride): (.., c kh kw, windows) */
bool kiln__shape_im2col(kiln_shape_query *q) {
  const kiln_tensor_detail *t = kiln__shape_ranked(q, 0);
  int64_t k[2], apart[2], pad[2], step[2];
  if (!t || t->rank < 3 || t->rank > 4 || !pair(q, 1, k) || !pair(q, 2, apart) ||
      !pair(q, 3, pad) || !pair(q, 4, step))
    return false;
  const int last = t->rank - 1;
  kiln_dim sizes[3], windows = 1;
  for (int d = 0; d < 2; d++) {
    const kiln_dim size = t->sizes[last - 1 + d];
    const kiln_dim count =
        kiln__shape_windows(q->dims, size, k[d], step[d], pad[d], apart[d], false);
    if (count == KILN_SHAPE_NO_FIT) return false;
    windows = kiln_dim_product(q->dims, windows, count);
  }
  sizes[0] = t->sizes[0]; /* without a batch the channels, which follow */
  sizes[last - 2] = kiln_dim_product(q->dims, t->sizes[last - 2], k[0] * k[1]);
  sizes[last - 1] = windows;
  return kiln__shape_give(q, 0, t->dtype, last, sizes, true);
}

/* col2im(self (.., c kh kw, windows), output_size, kernel_size, ...): (.., c, h, w) */
bool kiln__shape_col2im(kiln_shape_query *q) {
  const kiln_tensor_detail *t = kiln__shape_ranked(q, 0);
  kiln_shape_list size;
  int64_t k[2];
  if (!t || t->rank < 2 || t->rank > 3 || !kiln__shape_ints(q, 1, &size) || size.count < 1 ||
      size.count > 2 || !pair(q, 2, k))
    return false;
  const kiln_dim rows = t->sizes[t->rank - 2];
  const bool known = kiln_dim_is_number(rows) && k[0] > 0 && k[1] > 0;
  if (known && rows % (k[0] * k[1]) != 0) return false;
  kiln_dim sizes[4] = {t->sizes[0]};
  sizes[t->rank - 2] = known ? rows / (k[0] * k[1]) : KILN_DIM_UNKNOWN;
  for (int d = 0; d < 2; d++) sizes[t->rank - 1 + d] = size.dims[size.count == 1 ? 0 : d];
  return kiln__shape_give(q, 0, t->dtype, t->rank + 1, sizes, true);
}
