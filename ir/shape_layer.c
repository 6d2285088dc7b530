/* shape_layer.c: shape functions of convolutions, pools, picks, pads, orders and losses. Strides
 * are told where all inputs are row-major; other layouts may show in the result. */
#include "ir/shape.h"

/* -- Windows -- */

/* Element d of a list argument of n numbers (one stands for all); unknown where it is no constant,
 * `fallback` where the schema has no such argument. */
static int64_t item(const kiln_shape_query *q, const char *name, int d, int n, int64_t fallback) {
  const int at = kiln__shape_find(q, name);
  kiln_shape_list list;
  if (at < 0) return fallback;
  if (!kiln__shape_ints(q, at, &list)) return KILN_DIM_UNKNOWN;
  if (list.count == 0) return fallback;
  if (list.count != n && list.count != 1) return KILN_DIM_UNKNOWN;
  const int i = list.count == 1 ? 0 : d;
  return list.known[i] ? list.ints[i] : KILN_DIM_UNKNOWN;
}
static bool is_sane(int64_t x) { return x >= 0 && x < (int64_t)1 << 40; }
/* A size, or an expression: what a sum may begin with. */
static bool is_sane_dim(kiln_dim d) {
  return kiln_dim_is_number(d) ? is_sane(d) : kiln_dim_is_known(d);
}
enum { SAME = -78 /* a padding, beside those of numbers */ };
kiln_dim kiln__shape_windows(kiln_dims *dims, kiln_dim in, int64_t size, int64_t stride,
                             int64_t padding, int64_t dilation, bool ceil_mode) {
  if (!is_sane_dim(in) || !is_sane(size) || !is_sane(stride) || !is_sane(padding) ||
      !is_sane(dilation)) {
    return KILN_DIM_UNKNOWN;
  }
  if (stride == 0 || size == 0 || size > (int64_t)1 << 20 || dilation > (int64_t)1 << 20) {
    return KILN_SHAPE_NO_FIT;
  }
  if (!kiln_dim_is_number(in)) {
    const int64_t reach = dilation * (size - 1) + 1, rest = ceil_mode ? stride - 1 : 0;
    /* Else the last window may begin in the zeros behind, and is none. */
    if (ceil_mode && padding + stride > reach) return KILN_DIM_UNKNOWN;
    /* Where no window fits, the operator raises. */
    if (!kiln_dims_prove(dims, kiln_sum_number(reach - 2 * padding), kiln_sum_of(dims, in)))
      return KILN_DIM_UNKNOWN;
    const kiln_sum more = kiln_sum_number(2 * padding - reach + rest);
    const kiln_sum steps =
        kiln_sum_divided(dims, kiln_sum_plus(kiln_sum_of(dims, in), more), stride);
    return kiln_sum_dim(dims, kiln_sum_plus(steps, kiln_sum_number(1)));
  }
  const int64_t room = in + 2 * padding - dilation * (size - 1) - 1;
  if (room < 0) return KILN_SHAPE_NO_FIT;
  int64_t out = (room + (ceil_mode ? stride - 1 : 0)) / stride + 1;
  if (ceil_mode && (out - 1) * stride >= in + padding) out--;
  return out;
}

/* "same", "valid" or a list: the padding of dimension d, SAME or unknown. */
static int64_t padding_of(const kiln_shape_query *q, int d, int n) {
  const int at = kiln__shape_find(q, "padding");
  const kiln_ivalue *v = at >= 0 && at < q->arg_count ? q->constants[at] : NULL;
  if (v && v->tag == KILN_TAG_STRING) {
    return kiln_str_is(kiln_string_view(v->u.string), "valid") ? 0 : SAME;
  }
  const kiln_type *type = at >= 0 ? q->op->schema->args[at].type : NULL;
  if (type && type->kind == KILN_TYPE_STR) return KILN_DIM_UNKNOWN;
  return item(q, "padding", d, n, 0);
}
/* Input, weight, bias, then by name. */
static bool convolution(kiln_shape_query *q, bool transposed) {
  const kiln_tensor_detail *x = kiln__shape_ranked(q, 0), *w = kiln__shape_ranked(q, 1);
  int64_t sizes[KILN_MAX_RANK], groups = 1;
  const int flag = kiln__shape_find(q, "transposed");
  if (!x || !w || w->rank < 3 || w->rank > 5) return false;
  const int n = w->rank - 2;
  if (q->op->dims && q->op->dims != n) return false;
  if (x->rank != n + 2 && x->rank != n + 1) return false;
  if (flag >= 0 && !kiln__shape_bool(q, flag, &transposed)) return false;
  const int group_arg = kiln__shape_find(q, "groups");
  const bool known = group_arg >= 0 && kiln__shape_int(q, group_arg, &groups);
  int rank = 0;
  if (x->rank == n + 2) sizes[rank++] = x->sizes[0];
  /* No channels make no channels. */
  sizes[rank++] = !transposed ? (w->sizes[1] > 0    ? w->sizes[0]
                                 : w->sizes[1] == 0 ? 0
                                                    : KILN_DIM_UNKNOWN)
                  : known && kiln_dim_is_number(w->sizes[1]) && is_sane(groups)
                      ? w->sizes[1] * groups
                      : KILN_DIM_UNKNOWN;
  for (int d = 0; d < n; d++) {
    const int64_t in = x->sizes[x->rank - n + d], size = w->sizes[2 + d];
    const int64_t stride = item(q, "stride", d, n, 1), padding = padding_of(q, d, n);
    const int64_t dilation = item(q, "dilation", d, n, 1);
    int64_t out;
    if (padding == SAME) {
      out = in;
    } else if (transposed) {
      const int64_t more = item(q, "output_padding", d, n, 0);
      const bool all = is_sane_dim(in) && is_sane(size) && size < (int64_t)1 << 20 &&
                       is_sane(stride) && stride < (int64_t)1 << 20 && is_sane(padding) &&
                       is_sane(dilation) && dilation < (int64_t)1 << 20 && is_sane(more);
      out = KILN_DIM_UNKNOWN;
      if (all) {
        const int64_t rest = dilation * (size - 1) + more + 1 - stride - 2 * padding;
        const kiln_sum steps = kiln_sum_times(kiln_sum_of(q->dims, in), stride);
        const kiln_sum all_of = kiln_sum_plus(steps, kiln_sum_number(rest));
        out = kiln_sum_dim(q->dims, all_of);
        if (kiln_dim_is_number(in) && out <= 0) return false;
        if (!kiln_dims_prove(q->dims, kiln_sum_number(1), all_of)) out = KILN_DIM_UNKNOWN;
      }
    } else {
      out = kiln__shape_windows(q->dims, in, size, stride, padding, dilation, false);
    }
    if (out == KILN_SHAPE_NO_FIT) return false;
    sizes[rank++] = out;
  }
  return kiln__shape_give(q, 0, kiln__shape_shared(x, w), rank, sizes, true);
}

/* conv1d to 3d; convolution, which has an argument `transposed`. */
bool kiln__shape_conv(kiln_shape_query *q) { return convolution(q, false); }
bool kiln__shape_conv_transpose(kiln_shape_query *q) { return convolution(q, true); }

/* Values of x's dtype and, where the operator has two results, their places. */
static bool give_values(kiln_shape_query *q, const kiln_tensor_detail *x, const int64_t *sizes,
                        bool plain) {
  kiln__shape_give(q, 0, x->dtype, x->rank, sizes, plain);
  return q->op->schema->result_count < 2 ||
         kiln__shape_give(q, 1, KILN_DTYPE_I64, x->rank, sizes, plain);
}
/* No window should reach over both edges, nor be all of the image: a kernel of all images has parts
 * for one edge each, and a mean of all is another sum. */
static void like_larger(kiln_dims *dims, kiln_dim in, int64_t size, int64_t dilation) {
  if (!is_sane(size) || !is_sane(dilation) || size > 1 << 20 || dilation > 1 << 20 ||
      !is_sane_dim(in) || kiln_dim_is_number(in))
    return;
  kiln_dims_like(dims, kiln_sum_number(dilation * (size - 1) + 2), kiln_sum_of(dims, in));
}
/* max_pool, avg_pool: self, kernel_size, stride, padding, [dilation,] ceil_mode. */
bool kiln__shape_pool(kiln_shape_query *q) {
  const kiln_tensor_detail *x = kiln__shape_ranked(q, 0);
  const int n = q->op->dims, mode = kiln__shape_find(q, "ceil_mode");
  int64_t sizes[KILN_MAX_RANK];
  bool ceil_mode = false;
  if (!x || x->rank < n + 1 || x->rank > n + 2) return false;
  const bool told = mode < 0 || kiln__shape_bool(q, mode, &ceil_mode);
  for (int d = 0; d < x->rank; d++) {
    const int at = d - (x->rank - n);
    sizes[d] = x->sizes[d];
    if (at < 0) continue;
    const int64_t size = item(q, "kernel_size", at, n, KILN_DIM_UNKNOWN);
    const int64_t padding = item(q, "padding", at, n, 0), dilation = item(q, "dilation", at, n, 1);
    like_larger(q->dims, x->sizes[d], size, dilation);
    sizes[d] = kiln__shape_windows(q->dims, x->sizes[d], size, item(q, "stride", at, n, size),
                                   padding, dilation, ceil_mode);
    if (sizes[d] == KILN_SHAPE_NO_FIT) return false;
    if (!told) sizes[d] = KILN_DIM_UNKNOWN;
  }
  return give_values(q, x, sizes, true);
}
/* adaptive pools: self, output_size; fractional ones: self, kernel_size, output_size. */
bool kiln__shape_pool_to(kiln_shape_query *q) {
  const kiln_tensor_detail *x = kiln__shape_ranked(q, 0);
  const int n = q->op->dims;
  int64_t sizes[KILN_MAX_RANK];
  if (!x || x->rank < n + 1 || x->rank > n + 2) return false;
  for (int d = 0; d < x->rank; d++) {
    const int at = d - (x->rank - n);
    sizes[d] = at < 0 ? x->sizes[d] : item(q, "output_size", at, n, KILN_DIM_UNKNOWN);
    if (at >= 0 && sizes[d] < 0) sizes[d] = KILN_DIM_UNKNOWN;
  }
  return give_values(q, x, sizes, true);
}

/* -- Picks and orders -- */

/* It lies as argument 0 does: row-major where that is, or where what else it is is FORMAT's affair.
 */
static bool follows(const kiln_shape_query *q, const kiln_tensor_detail *self) {
  return q->op->kernel.format || kiln__shape_is_contiguous(q, self);
}
/* A new first result of argument 0's sizes and dtype. */
bool kiln__shape_like(kiln_shape_query *q) {
  const kiln_tensor_detail *self = kiln__shape_ranked(q, 0);
  if (!self) return false;
  return kiln__shape_give(q, 0, self->dtype, self->rank, self->sizes, follows(q, self));
}
/* The same, its matrices column by column. */
bool kiln__shape_columns(kiln_shape_query *q) {
  const kiln_tensor_detail *self = kiln__shape_ranked(q, 0);
  int64_t strides[KILN_MAX_RANK];
  if (!self || self->rank < 2 || !kiln__shape_layer_norm(q)) return false;
  for (int d = 0; d < self->rank - 2; d++) strides[d] = q->outs[0].strides[d];
  strides[self->rank - 2] = 1;
  strides[self->rank - 1] = self->sizes[self->rank - 2] == 0 ? 1 : self->sizes[self->rank - 2];
  kiln__shape_set(q, &q->outs[0], self->rank, self->sizes, strides);
  return true;
}
/* The same of matrices of one batch: what else lies otherwise may show. */
bool kiln__shape_exponential(kiln_shape_query *q) {
  const kiln_tensor_detail *self = kiln__shape_ranked(q, 0);
  return self && kiln__shape_give(q, 0, self->dtype, self->rank, self->sizes,
                                  kiln__shape_is_row_major(q, self));
}
/* The same as empty_like(argument 0) lies. */
bool kiln__shape_kept(kiln_shape_query *q) {
  const kiln_tensor_detail *self = kiln__shape_ranked(q, 0);
  if (!self || !kiln__shape_like(q)) return false;
  kiln__shape_set_like(q, &q->outs[0], self);
  return true;
}
/* The same, row by row whatever the strides of argument 0 are. */
bool kiln__shape_layer_norm(kiln_shape_query *q) {
  const kiln_tensor_detail *self = kiln__shape_ranked(q, 0);
  return self && kiln__shape_give(q, 0, self->dtype, self->rank, self->sizes, true);
}
/* Self with elements [start, start + count) of a dimension replaced; the guard is asked whether it
 * has them. */
static void want_part(const kiln_shape_query *q, kiln_dim size, int64_t start, kiln_sum count) {
  const kiln_sum all = kiln_sum_of(q->dims, size);
  kiln_sum first = kiln_sum_number(start);
  if (start < 0) {
    kiln_dims_like(q->dims, kiln_sum_number(-start), all);
    first = kiln_sum_plus(all, first);
  }
  kiln_dims_like(q->dims, kiln_sum_plus(first, count), all);
}
/* select_scatter(self, src, dim, index) */
bool kiln__shape_select_scatter(kiln_shape_query *q) {
  const kiln_tensor_detail *self = kiln__shape_ranked(q, 0);
  int64_t index;
  int dim;
  if (self && kiln__shape_sized_dim(q, 2, self->rank, &dim) && kiln__shape_int(q, 3, &index) &&
      index > -INT64_MAX)
    want_part(q, self->sizes[dim], index, kiln_sum_number(1));
  return kiln__shape_kept(q);
}
/* slice_scatter(self, src, dim, start, end, step) */
bool kiln__shape_slice_scatter(kiln_shape_query *q) {
  const kiln_tensor_detail *self = kiln__shape_ranked(q, 0), *src = kiln__shape_ranked(q, 1);
  int64_t start = 0;
  int dim;
  if (self && src && src->rank == self->rank && kiln__shape_sized_dim(q, 2, self->rank, &dim) &&
      (kiln__shape_is_none(q, 3) || kiln__shape_int(q, 3, &start)) && start > -INT64_MAX)
    want_part(q, self->sizes[dim], start, kiln_sum_of(q->dims, src->sizes[dim]));
  return kiln__shape_kept(q);
}
/* Whether roll joins two parts, neither of them empty, along each dimension: then it has their
 * format. */
static kiln_truth rolls_parts(const kiln_shape_query *q, const kiln_tensor_detail *self) {
  kiln_shape_list shifts, dims;
  if (!kiln__shape_ints(q, 1, &shifts) || !kiln__shape_ints(q, 2, &dims)) return KILN_OPEN;
  kiln_truth parts = dims.count > 0 ? KILN_YES : KILN_NO;
  for (int i = 0; i < shifts.count && i < dims.count; i++) {
    const int64_t dim = dims.ints[i] < 0 ? dims.ints[i] + self->rank : dims.ints[i];
    const int64_t by = shifts.ints[i];
    const bool known = shifts.known[i] && dims.known[i] && dim >= 0 && dim < self->rank;
    const kiln_dim size = known ? self->sizes[dim] : KILN_DIM_UNKNOWN;
    const bool number = kiln_dim_is_number(size);
    if (known && (by == 0 || (number && size > 0 && by % size == 0))) return KILN_NO;
    if (!number && parts == KILN_YES) parts = KILN_OPEN; /* it may be by all of it */
  }
  return parts;
}
/* roll(self, shifts, dims): a kernel of all sizes shifts by less than they are. */
bool kiln__shape_roll(kiln_shape_query *q) {
  const kiln_tensor_detail *self = kiln__shape_ranked(q, 0);
  kiln_shape_list shifts, dims;
  if (!kiln__shape_layer_norm(q)) return false;
  const kiln_truth parts = rolls_parts(q, self);
  if (parts == KILN_YES) kiln__shape_lay(q, KILN_FORMAT_FROM_self);
  if (parts == KILN_OPEN && kiln_has_channels_last(self->rank) &&
      kiln__shape_suggests_last(q, self) != KILN_NO)
    q->outs[0].has_strides = false;
  for (int d = 0; d < self->rank; d++) /* nothing to shift: a clone */
    if (self->sizes[d] == 0) kiln__shape_set_like(q, &q->outs[0], self);
  if (!kiln__shape_ints(q, 1, &shifts) || !kiln__shape_ints(q, 2, &dims)) return true;
  for (int i = 0; i < shifts.count && i < dims.count; i++) {
    const int64_t dim = dims.ints[i] < 0 ? dims.ints[i] + self->rank : dims.ints[i];
    if (!shifts.known[i] || !dims.known[i] || dim < 0 || dim >= self->rank) continue;
    const int64_t by =
        shifts.ints[i] < 0 ? (int64_t)(0 - (uint64_t)shifts.ints[i]) : shifts.ints[i];
    if (by > 0 && by <= INT32_MAX && kiln_dim_is_known(self->sizes[dim]))
      kiln_dims_like(q->dims, kiln_sum_number(by + 1), kiln_sum_of(q->dims, self->sizes[dim]));
  }
  return true;
}
/* The same of what is made of operators whose results have the strides' order. */
bool kiln__shape_like_made(kiln_shape_query *q) {
  const kiln_tensor_detail *self = kiln__shape_ranked(q, 0);
  bool plain = true;
  if (!self) return false;
  for (int d = 0; d < self->rank; d++) plain = plain && self->sizes[d] != 0;
  for (int i = 0; i < q->arg_count; i++) {
    if (!kiln__shape_is_tensor(q, i)) continue;
    const kiln_tensor_detail *t = kiln__shape_ranked(q, i);
    plain = plain && t && kiln__shape_is_row_major(q, t);
  }
  return kiln__shape_give(q, 0, self->dtype, self->rank, self->sizes, plain);
}
/* The same, but for a tensor without elements, which passes through the operators that are left. */
bool kiln__shape_batch_norm(kiln_shape_query *q) {
  const kiln_tensor_detail *self = kiln__shape_ranked(q, 0);
  if (!self) return false;
  bool rows = true;
  for (int d = 0; d < self->rank; d++) rows = rows && self->sizes[d] != 0;
  return kiln__shape_give(q, 0, self->dtype, self->rank, self->sizes, rows);
}
/* Two vectors like the running mean. */
bool kiln__shape_batch_norm_terms(kiln_shape_query *q) {
  const kiln_tensor_detail *mean = kiln__shape_ranked(q, 2);
  if (!mean || mean->rank != 1) return false;
  return kiln__shape_give(q, 0, mean->dtype, 1, mean->sizes, true) &&
         kiln__shape_give(q, 1, mean->dtype, 1, mean->sizes, true);
}
/* The sizes that it is given, and a vector of the first one. */
bool kiln__shape_joined_convolution(kiln_shape_query *q) {
  const kiln_tensor_detail *like = kiln__shape_ranked(q, 0);
  kiln_shape_list sizes;
  if (!like || !kiln__shape_ints(q, 3, &sizes) || sizes.count < 3) return false;
  return kiln__shape_give(q, 0, like->dtype, sizes.count, sizes.ints, true) &&
         kiln__shape_give(q, 1, like->dtype, 1, sizes.ints, true);
}
/* [N, C, 1, ..] each, of what it computes in. */
bool kiln__shape_group_norm_terms(kiln_shape_query *q) {
  const kiln_tensor_detail *self = kiln__shape_ranked(q, 0);
  int64_t sizes[KILN_MAX_RANK];
  if (!self || self->rank < 2) return false;
  for (int d = 0; d < self->rank; d++) sizes[d] = d < 2 ? self->sizes[d] : 1;
  const int dtype = kiln_dtype_is_half((kiln_dtype)self->dtype) ? KILN_DTYPE_F32 : self->dtype;
  return kiln__shape_give(q, 0, dtype, self->rank, sizes, true) &&
         kiln__shape_give(q, 1, dtype, self->rank, sizes, true);
}
/* gather(self, dim, index): index's sizes. */
bool kiln__shape_gather(kiln_shape_query *q) {
  const kiln_tensor_detail *self = kiln__shape_ranked(q, 0), *index = kiln__shape_ranked(q, 2);
  if (!self || !index) return false;
  return kiln__shape_give(q, 0, self->dtype, index->rank, index->sizes,
                          kiln__shape_is_contiguous(q, index));
}
/* index_select(self, dim, index): as many along the dimension as the index has. */
bool kiln__shape_index_select(kiln_shape_query *q) {
  const kiln_tensor_detail *self = kiln__shape_ranked(q, 0), *index = kiln__shape_ranked(q, 2);
  int64_t sizes[KILN_MAX_RANK];
  int dim;
  if (!self || !index || index->rank > 1) return false;
  if (!kiln__shape_sized_dim(q, 1, self->rank, &dim)) return false;
  for (int d = 0; d < self->rank; d++) sizes[d] = self->sizes[d];
  sizes[dim] = index->rank ? index->sizes[0] : 1;
  return kiln__shape_give(q, 0, self->dtype, self->rank, sizes, true);
}
/* one_hot(self, classes): a dimension more, where their number is given. */
bool kiln__shape_one_hot(kiln_shape_query *q) {
  const kiln_tensor_detail *self = kiln__shape_ranked(q, 0);
  int64_t sizes[KILN_MAX_RANK], classes;
  if (!self || self->rank == KILN_MAX_RANK) return false;
  for (int d = 0; d < self->rank; d++) sizes[d] = self->sizes[d];
  if (!kiln__shape_int(q, 1, &classes) || classes < 1) classes = KILN_DIM_UNKNOWN;
  sizes[self->rank] = classes;
  return kiln__shape_give(q, 0, KILN_DTYPE_I64, self->rank + 1, sizes, true);
}
/* take(self, index): the index's sizes. */
bool kiln__shape_take(kiln_shape_query *q) {
  const kiln_tensor_detail *self = kiln__shape_ranked(q, 0), *index = kiln__shape_ranked(q, 1);
  if (!self || !index) return false;
  return kiln__shape_give(q, 0, self->dtype, index->rank, index->sizes, true);
}
/* topk(self, k, dim): values and places, k of them along dim. */
bool kiln__shape_topk(kiln_shape_query *q) {
  const kiln_tensor_detail *self = kiln__shape_ranked(q, 0);
  int64_t sizes[KILN_MAX_RANK], k;
  int dim;
  if (!self || !kiln__shape_dim(q, 2, self->rank, &dim)) return false;
  if (!kiln__shape_int(q, 1, &k) || k < 0) k = KILN_DIM_UNKNOWN;
  for (int d = 0; d < self->rank; d++) sizes[d] = d == dim ? k : self->sizes[d];
  if (self->rank == 0 && k != 1) return false;
  return give_values(q, self, sizes, false);
}
/* cummax(self, dim): values and places. */
bool kiln__shape_running_values(kiln_shape_query *q) {
  const kiln_tensor_detail *self = kiln__shape_ranked(q, 0);
  return self && give_values(q, self, self->sizes, false);
}
/* sort(self, ...): the same in self's order of memory. */
bool kiln__shape_sort(kiln_shape_query *q) {
  const kiln_tensor_detail *self = kiln__shape_ranked(q, 0);
  if (!kiln__shape_running_values(q)) return false;
  for (int i = 0; i < 2; i++) kiln__shape_set_like(q, &q->outs[i], self);
  return true;
}
/* glu(self, dim): half of it. */
bool kiln__shape_glu(kiln_shape_query *q) {
  const kiln_tensor_detail *self = kiln__shape_ranked(q, 0);
  int64_t sizes[KILN_MAX_RANK];
  int dim;
  if (!self || !kiln__shape_sized_dim(q, 1, self->rank, &dim)) return false;
  for (int d = 0; d < self->rank; d++) sizes[d] = self->sizes[d];
  if (!kiln__shape_part(q, sizes[dim], 2, &sizes[dim])) return false;
  return kiln__shape_give(q, 0, self->dtype, self->rank, sizes, kiln__shape_is_row_major(q, self));
}
/* repeat(self, repeats). */
static bool repeat(kiln_shape_query *q, const kiln_tensor_detail *self,
                   const kiln_shape_list *list) {
  const int rank = self->rank > list->count ? self->rank : list->count;
  int64_t sizes[KILN_MAX_RANK];
  for (int d = 0; d < rank; d++) {
    const int at = d - (rank - self->rank), i = d - (rank - list->count);
    const int64_t own = at < 0 ? 1 : self->sizes[at];
    if (i >= 0 && list->known[i] && list->ints[i] < 0) return false;
    const bool known = i < 0 || list->known[i];
    sizes[d] = known ? kiln_dim_product(q->dims, own, i < 0 ? 1 : list->ints[i]) : KILN_DIM_UNKNOWN;
  }
  return kiln__shape_give(q, 0, self->dtype, rank, sizes, true);
}
bool kiln__shape_repeat(kiln_shape_query *q) {
  const kiln_tensor_detail *self = kiln__shape_ranked(q, 0);
  kiln_shape_list list;
  return self && kiln__shape_ints(q, 1, &list) && list.count >= self->rank &&
         repeat(q, self, &list);
}
/* The same, with 1 for what is missing. */
bool kiln__shape_tile(kiln_shape_query *q) {
  const kiln_tensor_detail *self = kiln__shape_ranked(q, 0);
  kiln_shape_list list;
  return self && kiln__shape_ints(q, 1, &list) && repeat(q, self, &list);
}
/* repeat_interleave(self, repeats, dim): of all elements where no dimension is given. */
bool kiln__shape_repeat_interleave(kiln_shape_query *q) {
  const kiln_tensor_detail *self = kiln__shape_ranked(q, 0);
  int64_t sizes[KILN_MAX_RANK], times;
  kiln_dim numel = 1;
  int dim;
  if (!self || self->rank == 0 || !kiln__shape_int(q, 1, &times) || times < 0) return false;
  for (int d = 0; d < self->rank; d++) {
    sizes[d] = self->sizes[d];
    numel = kiln_dim_product(q->dims, numel, sizes[d]);
  }
  if (kiln__shape_is_none(q, 2)) {
    sizes[0] = kiln_dim_product(q->dims, numel, times);
    return kiln__shape_give(q, 0, self->dtype, 1, sizes, true);
  }
  if (!kiln__shape_sized_dim(q, 2, self->rank, &dim)) return false;
  sizes[dim] = kiln_dim_product(q->dims, sizes[dim], times);
  return kiln__shape_give(q, 0, self->dtype, self->rank, sizes, true);
}
/* A number of a list, or an expression that is 0 or more. */
static kiln_sum ints_item(const kiln_shape_query *q, const kiln_shape_list *list, int i) {
  return list->known[i] ? kiln_sum_number(list->ints[i]) : kiln_sum_of(q->dims, list->dims[i]);
}
/* pad(self, pad, ...), constant_pad_nd: pairs from the last dimension. */
bool kiln__shape_pad(kiln_shape_query *q) {
  const kiln_tensor_detail *self = kiln__shape_ranked(q, 0);
  kiln_shape_list list;
  int64_t sizes[KILN_MAX_RANK];
  bool plain = true, grows = false, cuts = false, all_known = true;
  if (!self || !kiln__shape_ints(q, 1, &list) || list.count % 2 || list.count / 2 > self->rank) {
    return false;
  }
  for (int d = 0; d < self->rank; d++) {
    const int pair = self->rank - 1 - d;
    sizes[d] = self->sizes[d];
    if (pair >= list.count / 2) continue;
    const kiln_sum before = ints_item(q, &list, 2 * pair),
                   after = ints_item(q, &list, 2 * pair + 1);
    const kiln_sum more = kiln_sum_plus(before, after);
    const bool is_number = more.known && more.count == 0 && kiln_dim_is_number(sizes[d]);
    for (int k = 2 * pair; k < 2 * pair + 2; k++) {
      grows |= list.known[k] && list.ints[k] > 0;
      cuts |= list.known[k] && list.ints[k] < 0;
      all_known &= list.known[k];
    }
    sizes[d] = kiln_sum_dim(q->dims, kiln_sum_plus(kiln_sum_of(q->dims, sizes[d]), more));
    if (is_number && !kiln_dim_is_known(sizes[d])) return false;
    /* Nothing may be left, and strides are those of one element then. */
    plain = plain && (is_number || !more.known || kiln_sum_is_natural(q->dims, more));
  }
  /* Constants that are put around nothing leave a part, of which a clone is made. */
  const int mode = kiln__shape_find(q, "mode");
  const kiln_ivalue *v = mode >= 0 ? q->constants[mode] : NULL;
  const bool named = v && v->tag == KILN_TAG_STRING;
  const bool constant = mode < 0 ? q->op->id == KILN_OP_constant_pad_nd
                                 : named && kiln_str_is(kiln_string_view(v->u.string), "constant");
  const bool open = (mode >= 0 && !named) || (constant && !grows && !all_known);
  plain = plain && (!open || (kiln__shape_is_row_major(q, self) && !cuts));
  kiln__shape_give(q, 0, self->dtype, self->rank, sizes, plain);
  if (constant && !grows && all_known) {
    kiln_tensor_detail part = *self;
    part.sizes = q->outs[0].sizes;
    kiln__shape_set_like(q, &q->outs[0], &part);
  }
  if (mode >= 0 && constant) kiln__shape_lay(q, KILN_FORMAT_FROM_self);
  return true;
}
/* pixel_shuffle(self (.., c r r, h, w), r). */
bool kiln__shape_pixel_shuffle(kiln_shape_query *q) {
  const kiln_tensor_detail *self = kiln__shape_ranked(q, 0);
  int64_t sizes[KILN_MAX_RANK], r;
  if (!self || self->rank < 3) return false;
  const bool known = kiln__shape_int(q, 1, &r) && r > 0 && r < 1 << 15;
  const int n = self->rank - 3;
  for (int d = 0; d < self->rank; d++) {
    sizes[d] = self->sizes[d];
    if (d < n) continue;
    if (known && d == n && !kiln__shape_part(q, sizes[d], r * r, &sizes[d])) return false;
    if (known && d > n) sizes[d] = kiln_dim_product(q->dims, sizes[d], r);
    if (!known) sizes[d] = KILN_DIM_UNKNOWN;
  }
  return kiln__shape_give(q, 0, self->dtype, self->rank, sizes, true);
}
bool kiln__shape_pixel_unshuffle(kiln_shape_query *q) {
  const kiln_tensor_detail *self = kiln__shape_ranked(q, 0);
  int64_t sizes[KILN_MAX_RANK], r;
  if (!self || self->rank < 3 || !kiln__shape_int(q, 1, &r) || r < 1 || r >= 1 << 15) return false;
  const int n = self->rank - 3;
  for (int d = 0; d < self->rank; d++) {
    const kiln_sum size = kiln_sum_of(q->dims, self->sizes[d]);
    sizes[d] = self->sizes[d];
    /* Without elements it stays as it is. */
    if (sizes[d] == 0 || !(sizes[d] == 1 || kiln__shape_is_not_one(q->dims, sizes[d])))
      return false;
    if (d == n) sizes[d] = kiln_sum_dim(q->dims, kiln_sum_times(size, r * r));
    if (d > n && !kiln__shape_part(q, sizes[d], r, &sizes[d])) return false;
  }
  return kiln__shape_give(q, 0, self->dtype, self->rank, sizes, true);
}

/* -- Products -- */

/* The product of argument `at` (n, k) and the next one (k). */
static bool matrix_vector(kiln_shape_query *q, int at) {
  const kiln_tensor_detail *a = kiln__shape_ranked(q, at), *x = kiln__shape_ranked(q, at + 1);
  if (!a || !x || a->rank != 2 || x->rank != 1) return false;
  return kiln__shape_give(q, 0, kiln__shape_shared(a, x), 1, a->sizes, true);
}
bool kiln__shape_mv(kiln_shape_query *q) { return matrix_vector(q, 0); }
bool kiln__shape_addmv(kiln_shape_query *q) { return matrix_vector(q, 1); }
bool kiln__shape_dot(kiln_shape_query *q) {
  const kiln_tensor_detail *a = kiln__shape_ranked(q, 0), *b = kiln__shape_ranked(q, 1);
  if (!a || !b || a->rank != 1 || b->rank != 1 || a->dtype != b->dtype) return false;
  return kiln__shape_give(q, 0, a->dtype, 0, NULL, true);
}

/* -- Losses -- */

/* Whether a loss is one number, for certain. */
static bool is_reduced(const kiln_shape_query *q) {
  const int at = kiln__shape_find(q, "reduction");
  int64_t how;
  return at >= 0 && kiln__shape_int(q, at, &how) && (how == 1 || how == 2);
}
/* Or one for each element. */
static bool is_each(const kiln_shape_query *q) {
  const int at = kiln__shape_find(q, "reduction");
  int64_t how;
  return at >= 0 && kiln__shape_int(q, at, &how) && how == 0;
}
/* Of float tensors of the same sizes, row-major ones, without dimension `dim`, or with 1 for it. */
static bool rows_of_two(kiln_shape_query *q, int dim, bool keep) {
  const kiln_tensor_detail *a = kiln__shape_ranked(q, 0), *b = kiln__shape_ranked(q, 1);
  kiln_dim sizes[KILN_MAX_RANK];
  int rank = 0;
  if (!a || !b || a->rank != b->rank || a->rank == 0 || a->dtype != b->dtype ||
      !kiln_dtype_is_float((kiln_dtype)a->dtype))
    return false;
  for (int d = 0; d < a->rank; d++) {
    if (a->sizes[d] != b->sizes[d] || !kiln_dim_is_known(a->sizes[d])) return false;
    if (d != dim || keep) sizes[rank++] = d == dim ? 1 : a->sizes[d];
  }
  const bool plain = kiln__shape_is_contiguous(q, a) && kiln__shape_is_contiguous(q, b);
  return kiln__shape_give(q, 0, a->dtype, rank, sizes, plain);
}
bool kiln__shape_loss(kiln_shape_query *q) {
  const kiln_tensor_detail *self = kiln__shape_tensor(q, 0), *target = kiln__shape_tensor(q, 1);
  if (!self || !target) return false;
  const bool same = self->dtype == target->dtype && self->dtype != KILN_DTYPE_NONE &&
                    kiln_dtype_is_float((kiln_dtype)self->dtype);
  if (!is_reduced(q)) return same && is_each(q) && rows_of_two(q, -1, false);
  return kiln__shape_give(q, 0, same ? self->dtype : (int)KILN_DTYPE_NONE, 0, NULL, true);
}
/* Losses for each element that lie as empty_like(self), or as a pointwise operator's result of
 * self, of both, or of a number and the target. */
static bool each_lies(kiln_shape_query *q, bool of_self, bool of_target, bool number) {
  const kiln_tensor_detail *operands[] = {kiln__shape_tensor(q, 0), kiln__shape_tensor(q, 1)};
  if (!kiln__shape_loss(q)) return false;
  if (is_each(q)) {
    kiln__shape_broadcast_with(q, &q->outs[0], operands + !of_self, of_self + of_target, number);
  }
  return true;
}
bool kiln__shape_loss_like_self(kiln_shape_query *q) {
  if (!kiln__shape_loss(q)) return false;
  if (is_each(q)) kiln__shape_set_like(q, &q->outs[0], kiln__shape_tensor(q, 0));
  return true;
}
bool kiln__shape_loss_of_self(kiln_shape_query *q) { return each_lies(q, true, false, false); }
bool kiln__shape_loss_of_both(kiln_shape_query *q) { return each_lies(q, true, true, false); }
bool kiln__shape_loss_of_target(kiln_shape_query *q) { return each_lies(q, false, true, true); }

/* -- Rows of two tensors -- */

/* cosine_similarity, linalg_vecdot: the dimension is argument 2. */
bool kiln__shape_rows_of_two(kiln_shape_query *q) {
  const kiln_tensor_detail *a = kiln__shape_ranked(q, 0);
  int dim;
  return a && kiln__shape_sized_dim(q, 2, a->rank, &dim) && rows_of_two(q, dim, false);
}
/* pairwise_distance(a, b, p, eps, keepdim) */
bool kiln__shape_pairwise_distance(kiln_shape_query *q) {
  const kiln_tensor_detail *a = kiln__shape_ranked(q, 0);
  bool keep;
  return a && kiln__shape_bool(q, 4, &keep) && rows_of_two(q, a->rank - 1, keep);
}

/* Losses whose target are classes: the dtype is the input's. Each: (N, C, ..) without C. */
bool kiln__shape_class_loss(kiln_shape_query *q) {
  const kiln_tensor_detail *self = kiln__shape_tensor(q, 0);
  kiln_dim sizes[KILN_MAX_RANK];
  int rank = 0;
  if (self && is_reduced(q)) return kiln__shape_give(q, 0, self->dtype, 0, NULL, true);
  if (!self || !is_each(q) || self->rank < 1) return false;
  for (int d = 0; d < self->rank; d++)
    if (d != (self->rank > 1)) sizes[rank++] = self->sizes[d];
  return kiln__shape_give(q, 0, self->dtype, rank, sizes, true);
}
/* Losses of rows, of two tensors or more. */
bool kiln__shape_row_loss(kiln_shape_query *q) {
  const kiln_tensor_detail *self = kiln__shape_ranked(q, 0), *other = kiln__shape_tensor(q, 1);
  const int third = kiln__shape_find(q, "negative");
  const kiln_tensor_detail *more = third < 0 ? other : kiln__shape_tensor(q, third);
  if (!self || !other || !more || self->rank < 1 || self->dtype != other->dtype ||
      self->dtype != more->dtype || !kiln_dtype_is_float((kiln_dtype)self->dtype))
    return false;
  if (is_reduced(q)) return kiln__shape_give(q, 0, self->dtype, 0, NULL, true);
  /* One target for each row: of dimension 1. */
  const int target = kiln__shape_find(q, "target");
  const kiln_tensor_detail *one = target < 0 ? NULL : kiln__shape_ranked(q, target);
  if (target >= 0 && (!one || self->rank > 2 || one->rank != self->rank - 1)) return false;
  return is_each(q) && rows_of_two(q, self->rank - 1, false);
}
/* The same, where the target is no float: multi_margin_loss of rows (N, C) or one (C). */
bool kiln__shape_margin_loss(kiln_shape_query *q) {
  const kiln_tensor_detail *self = kiln__shape_ranked(q, 0);
  if (!self || self->rank < 1 || self->rank > 2) return false;
  if (is_reduced(q)) return kiln__shape_give(q, 0, self->dtype, 0, NULL, true);
  return is_each(q) && kiln__shape_give(q, 0, self->dtype, self->rank - 1, self->sizes, true);
}
/* cdist(x1 (.., P, M), x2 (.., R, M)), of the same sizes in front */
bool kiln__shape_cdist(kiln_shape_query *q) {
  const kiln_tensor_detail *a = kiln__shape_ranked(q, 0), *b = kiln__shape_ranked(q, 1);
  kiln_dim sizes[KILN_MAX_RANK];
  if (!a || !b || a->rank != b->rank || a->rank < 2 || a->dtype != b->dtype ||
      !kiln_dtype_is_float((kiln_dtype)a->dtype))
    return false;
  for (int d = 0; d < a->rank; d++) {
    if (!kiln_dim_is_known(a->sizes[d]) || (d != a->rank - 2 && a->sizes[d] != b->sizes[d]))
      return false;
    sizes[d] = a->sizes[d];
  }
  sizes[a->rank - 1] = b->sizes[a->rank - 2];
  return kiln__shape_give(q, 0, a->dtype, a->rank, sizes, a->rank == 2);
}
/* _softmax_backward_data(grad, output, dim, dtype) */
bool kiln__shape_softmax_backward(kiln_shape_query *q) {
  const kiln_tensor_detail *a = kiln__shape_ranked(q, 0), *b = kiln__shape_ranked(q, 1);
  int64_t dtype;
  if (!a || !b || a->rank != b->rank || !kiln__shape_int(q, 3, &dtype)) return false;
  for (int d = 0; d < a->rank; d++)
    if (a->sizes[d] != b->sizes[d] || !kiln_dim_is_known(a->sizes[d])) return false;
  const bool plain = kiln__shape_is_contiguous(q, a) && kiln__shape_is_contiguous(q, b);
  return kiln__shape_give(q, 0, (int)dtype, a->rank, a->sizes, plain);
}
