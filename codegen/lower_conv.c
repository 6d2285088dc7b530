/* lower_conv.c: convolutions as contractions: an element of the result is a sum over the channels
 * and the taps of its window, each in a reduce loop.
 *
 * Of conv2d(x, w) with stride s and dilation d it is, over c, ky and kx, x[n][c][s oy + d ky][s ox
 * + d kx] * w[o][c][ky][kx]. The zeros that padding puts around x are in a copy of it (loop.h).
 *
 * A transposed one is a convolution for each residue of the result's places by its stride s: with
 * k = T s taps and padding p, place s j + r is the sum over t < T of x[j + (r + p) / s - t] * w[s t
 * + (r + p) % s] (Shi et al., "Is the deconvolution layer the same as a convolutional layer?",
 * arXiv:1609.07009). Loops over j and r have both as maps where p is a multiple of s, or lies in
 * the middle of two: of 4 taps with stride 2 and padding 1, x[j + r - t] * w[2 t + 1 - r]. The
 * weights are read in another order, with what goes back turned round. */
#include "codegen/lower.h"
#include "ir/pass.h"
#include "runtime/kernels/heavy/taps.h"

enum { MOST = 3 }; /* dimensions of a window */

typedef struct conv {
  int nd;
  bool transposed, lone;             /* lone: without batches */
  int64_t groups, channels, outputs; /* of a group */
  int64_t stride[MOST], pad[MOST], dilation[MOST], taps[MOST];
  int64_t first[MOST]; /* of the taps: those before it, and behind the last, read no pixel */
  kiln_dim in[MOST], out[MOST];
  const kiln_ir_value *image; /* what is padded: the input, or what a pad in the group reads */
  int64_t more[MOST];         /* zeros behind it beyond as many as before it */
  int64_t lead[MOST];         /* zeros that lie before the image, and no window reads */
  int64_t begin;              /* the first of the image's channels that are read; */
  bool is_cut;                /* behind the last are others, which have no part in it */
  /* Of a transposed one `taps` and `out` are of one residue. Residues are in 1 half, or in 2 of
   * which the second one's windows begin a pixel later; the first's `skip` pixels behind the
   * first, or before it. */
  int64_t halves[MOST], skip[MOST];
} conv;

/* Where an operator has its arguments; whether it is transposed may be in its name. */
enum { NEVER = -1, ALWAYS = -2 };
enum { EACH_CHANNEL = -3 }; /* a group */
typedef struct conv_args {
  int bias, stride, padding, dilation, transposed, groups;
} conv_args;

/* -- Arguments -- */

static bool refuse(kiln__lowering *l, kiln_reason reason) {
  return kiln__lower_refuse(l, reason) == 0;
}

/* A number for each dimension of the window, or one for all. */
static bool read_spatial(kiln__lowering *l, const kiln_node *node, int i, int nd, int64_t *out) {
  const kiln_ivalue *v = kiln_ir_value_constant(kiln_node_input(node, i));
  if (!v || (v->tag != KILN_TAG_LIST && v->tag != KILN_TAG_INT))
    return refuse(l, KILN_REASON_not_constant);
  const int count = v->tag == KILN_TAG_INT ? 1 : (int)v->u.list->count;
  if (count != 1 && count != nd) return refuse(l, KILN_REASON_raises);
  for (int d = 0; d < nd; d++) {
    out[d] = v->tag == KILN_TAG_INT ? v->u.i : v->u.list->items[count == 1 ? 0 : d].u.i;
    if (out[d] < 0 || out[d] > INT32_MAX) return refuse(l, KILN_REASON_raises);
  }
  return true;
}

/* Zeros before the input; behind it are as many as the result asks for. */
static bool read_padding(kiln__lowering *l, const kiln_node *node, int i, conv *c) {
  const kiln_ivalue *v = kiln_ir_value_constant(kiln_node_input(node, i));
  if (!v || v->tag != KILN_TAG_STRING) return read_spatial(l, node, i, c->nd, c->pad);
  const bool same = kiln_str_is(kiln_string_view(v->u.string), "same");
  for (int d = 0; d < c->nd; d++) c->pad[d] = same ? c->dilation[d] * (c->taps[d] - 1) / 2 : 0;
  return true;
}

static bool read_bool(const kiln_node *node, int i, int64_t *out) {
  const kiln_ivalue *v = kiln_ir_value_constant(kiln_node_input(node, i));
  if (v && v->tag == KILN_TAG_BOOL) *out = v->u.b;
  return v && v->tag == KILN_TAG_BOOL;
}

const kiln_ir_value *kiln_codegen_image(const kiln_node *node, kiln_arena *scratch, int64_t *before,
                                        int64_t *after) {
  const kiln_ir_value *x = kiln_node_input(node, 0);
  const kiln_node *pad = x->node;
  const bool by_mode = kiln_node_is(pad, KILN_OP_pad);
  if (!by_mode && !kiln_node_is(pad, KILN_OP_constant_pad_nd)) return x;
  const kiln_ir_value *value = kiln_node_input(pad, by_mode ? 3 : 2);
  const kiln_shape_list *ints = kiln_shape_ints_of(scratch, kiln_node_input(pad, 1));
  const kiln_type *w = kiln_node_input(node, 1)->type;
  const int nd = kiln_type_has_dims(w) ? w->detail->rank - 2 : 0;
  bool zeros = ints && ints->count % 2 == 0 && ints->count <= 2 * nd && nd <= MOST &&
               (kiln_ir_value_is_none(value) || kiln_ir_value_is_number(value, 0)) &&
               kiln_type_has_dims(kiln_node_input(pad, 0)->type);
  if (by_mode) zeros = zeros && kiln_ir_value_is_text(kiln_node_input(pad, 2), "constant");
  for (int i = 0; zeros && i < ints->count; i++)
    zeros = ints->known[i] && ints->ints[i] >= 0 && ints->ints[i] <= INT32_MAX;
  if (!zeros) return x;
  for (int i = 0; i < ints->count / 2; i++) {
    before[nd - 1 - i] = ints->ints[2 * i];
    after[nd - 1 - i] = ints->ints[2 * i + 1];
  }
  return kiln_node_input(pad, 0);
}

bool kiln_codegen_cuts_channels(const kiln_node *node, int64_t *out_begin) {
  int64_t dim, end;
  if (!kiln_node_is(node, KILN_OP_slice_Tensor) ||
      !kiln_ir_value_const_int(kiln_node_input(node, 1), &dim) || dim != 1 ||
      !kiln_ir_value_const_int(kiln_node_input(node, 2), out_begin) ||
      !kiln_ir_value_const_int(kiln_node_input(node, 3), &end) ||
      !kiln_ir_value_is_number(kiln_node_input(node, 4), 1) ||
      !kiln_type_is_complete_tensor(kiln_node_input(node, 0)->type))
    return false;
  const kiln_tensor_detail *all = kiln_node_input(node, 0)->type->detail;
  return all->rank >= 3 && *out_begin >= 0 && *out_begin < end && end <= all->sizes[1];
}

static bool is_outside(const kiln__lowering *l, const kiln_ir_value *v) {
  return kiln_map_find_ptr(&l->buffers, v) != NULL;
}

/* Zeros of a pad in the group are zeros of the padding: the pad is no nest. Of channels that the
 * group cuts out of an input, for windows of one, that is copied, or read where it lies: windows of
 * many leave the cut to who may make an image of it, which the core's kernels take. */
static void find_image(kiln__lowering *l, const kiln_node *node, conv *c, int64_t *before) {
  int64_t after[MOST] = {0};
  const bool outside = is_outside(l, kiln_node_input(node, 0));
  c->image = outside || c->transposed ? kiln_node_input(node, 0)
                                      : kiln_codegen_image(node, l->arena, before, after);
  for (int d = 0; d < MOST; d++) c->more[d] = after[d] - before[d];
  const kiln_node *cut = c->image->node;
  if (c->transposed || c->lone || c->channels > 1 || is_outside(l, c->image) ||
      !kiln_codegen_cuts_channels(cut, &c->begin) || !is_outside(l, kiln_node_input(cut, 0)))
    return;
  c->image = kiln_node_input(cut, 0);
  c->is_cut = true;
}

static bool read_sizes(kiln__lowering *l, const kiln_node *node, conv *c, int64_t *before) {
  const kiln_ir_value *x = kiln_node_input(node, 0), *w = kiln_node_input(node, 1);
  const kiln_ir_value *result = node->outputs[0];
  const kiln_dtype dtype = kiln__lower_result_dtype(node, 0);
  if (!kiln_type_has_dims(x->type) || !kiln_type_has_dims(w->type) ||
      !kiln_type_has_dims(result->type))
    return refuse(l, KILN_REASON_types_unknown);
  if (kiln_loop_class(dtype) != KILN_LOOP_CLASS_F || kiln__lower_input_dtype(node, 0) != dtype ||
      kiln__lower_input_dtype(node, 1) != dtype)
    return refuse(l, KILN_REASON_dtype);
  const kiln__lower_sizes ws = kiln__lower_sizes_of(l, w);
  const kiln__lower_sizes to = kiln__lower_sizes_of(l, result);
  const int rank = x->type->detail->rank;
  c->nd = w->type->detail->rank - 2;
  c->lone = rank == c->nd + 1;
  if (c->nd < 1 || c->nd > MOST || result->type->detail->rank != rank ||
      (rank != c->nd + 2 && !c->lone))
    return refuse(l, KILN_REASON_rank);
  for (int d = 0; d < c->nd + 2; d++)
    if (!kiln_dim_is_number(ws.sizes[d]) || ws.sizes[d] == 0)
      return refuse(l, KILN_REASON_dynamic_as_static);
  c->channels = c->transposed ? ws.sizes[0] / c->groups : ws.sizes[1];
  c->outputs = c->transposed ? ws.sizes[1] : ws.sizes[0] / c->groups;
  if (c->channels == 0 || c->outputs == 0) return refuse(l, KILN_REASON_raises);
  find_image(l, node, c, before);
  const kiln__lower_sizes xs = kiln__lower_sizes_of(l, c->image);
  for (int d = 0; d < c->nd; d++) {
    const int at = rank - c->nd + d;
    c->taps[d] = ws.sizes[2 + d];
    c->in[d] = xs.sizes[at];
    c->out[d] = to.sizes[at];
  }
  return true;
}

static bool read_groups(const kiln_node *node, int at, int64_t *out) {
  const kiln_tensor_detail *x = kiln_node_input(node, 0)->type->detail;
  const int spatial = node->op->dims;
  if (at != EACH_CHANNEL) return kiln_ir_value_const_int(kiln_node_input(node, at), out);
  if (!x || x->rank <= spatial) return false;
  *out = x->sizes[x->rank - spatial - 1];
  return kiln_dim_is_number(*out);
}

static bool reads_pixel(const conv *c, int d, int64_t tap) {
  return kiln_tap_reads(tap * c->dilation[d] - c->pad[d], c->stride[d], c->out[d], c->in[d]);
}

/* Of an image of 6 x 6, with dilation and padding 12, all taps but the middle one read zeros alone:
 * they are no part of the sum. */
static void drop_taps(conv *c) {
  for (int d = 0; d < c->nd; d++) {
    int64_t first = 0, last = c->taps[d] - 1;
    if (c->stride[d] < 1 || !kiln_dim_is_number(c->in[d]) || !kiln_dim_is_number(c->out[d]))
      continue;
    /* Zeros stand before x, and no fewer than none. */
    while (first < last && !reads_pixel(c, d, first) && (first + 1) * c->dilation[d] <= c->pad[d])
      first++;
    while (last > first && !reads_pixel(c, d, last)) last--;
    c->first[d] = first;
    c->taps[d] = last - first + 1;
    c->pad[d] -= first * c->dilation[d];
  }
}

/* Of a transposed one: the same of each residue by the stride. */
static bool read_residues(kiln__lowering *l, conv *c) {
  kiln_dims *dims = l->fn->dims;
  for (int d = 0; d < c->nd; d++) {
    const int64_t s = c->stride[d], rest = s > 0 ? c->pad[d] % s : 0;
    if (s < 1 || c->dilation[d] < 1) return refuse(l, KILN_REASON_raises);
    const kiln_sum out = kiln_sum_quotient(dims, kiln_sum_of(dims, c->out[d]), kiln_sum_number(s));
    if (c->taps[d] % s != 0 || (s > 1 && c->dilation[d] > 1) || (rest != 0 && 2 * rest != s) ||
        !kiln_sum_is_natural(dims, out))
      return refuse(l, KILN_REASON_no_affine_map);
    c->taps[d] /= s;
    c->out[d] = kiln_sum_dim(dims, out);
    c->halves[d] = rest ? 2 : 1;
    c->skip[d] = c->pad[d] / s - (c->taps[d] - 1) * c->dilation[d];
  }
  return true;
}

static bool read_conv(kiln__lowering *l, const kiln_node *node, conv_args at, conv *c) {
  int64_t transposed = at.transposed == ALWAYS, before[MOST] = {0};
  if (!read_groups(node, at.groups, &c->groups) ||
      (at.transposed >= 0 && !read_bool(node, at.transposed, &transposed)))
    return refuse(l, KILN_REASON_not_constant);
  c->transposed = transposed;
  if (c->groups < 1) return refuse(l, KILN_REASON_raises);
  if (!read_sizes(l, node, c, before) || !read_spatial(l, node, at.stride, c->nd, c->stride) ||
      !read_spatial(l, node, at.dilation, c->nd, c->dilation) ||
      !read_padding(l, node, at.padding, c))
    return false;
  for (int d = 0; d < c->nd; d++) c->pad[d] += before[d];
  if (c->transposed) return read_residues(l, c);
  drop_taps(c);
  return true;
}

/* -- Copies -- */

/* By its layout, or as PyTorch has it: x.transpose(1, 2) of tokens. */
static bool lies_channels_last(kiln__lowering *l, const kiln_ir_value *x, const conv *c) {
  if (kiln_physical_is_channels_last(x->type->detail->physical)) return true;
  const kiln__lower_sizes s = kiln__lower_sizes_of(l, x);
  return !c->lone && s.sizes[1] > 1 && s.strides[1] == 1;
}

/* What the group makes itself, a view, is read where it lies. */
static bool reads_channels_last(kiln__lowering *l, const kiln_ir_value *x, const conv *c) {
  return lies_channels_last(l, x, c) ||
         (l->channels_last && !c->lone && kiln_map_find_ptr(&l->buffers, x));
}

/* Zeros before the image, and its size with those around it. An image with a border of zeros that
 * has all which the windows read is read as it lies. */
static bool find_zeros(kiln__lowering *l, conv *c, int d, int border, kiln_dim *out_before,
                       kiln_dim *out_size) {
  kiln_dims *dims = l->fn->dims;
  const int64_t reach = (c->taps[d] - 1) * c->dilation[d];
  const kiln_dim in = c->in[d], out = c->out[d];
  *out_before = c->pad[d];
  if (c->transposed) {
    const kiln_sum more = kiln_sum_minus(kiln_sum_of(dims, out), kiln_sum_of(dims, in));
    if (!more.known || more.count > 0) return refuse(l, KILN_REASON_dynamic_as_static);
    *out_before = c->skip[d] < 0 ? -c->skip[d] : 0;
    const int64_t end = more.constant + c->skip[d] + *out_before + reach + c->halves[d] - 1;
    *out_size = kiln_dim_plus(dims, in, end > *out_before ? end : *out_before);
  } else if (kiln_dim_is_number(in) && kiln_dim_is_number(out)) {
    const int64_t end = c->pad[d] + in, needed = (out - 1) * c->stride[d] + reach + 1;
    *out_size = end > needed ? end : needed;
    if (border > 0 && c->pad[d] <= border && needed - end <= border) {
      c->lead[d] = border - c->pad[d];
      *out_before = border;
      *out_size = in + 2 * border;
    }
  } else {
    *out_size = kiln_dim_plus(dims, in, 2 * c->pad[d] + c->more[d]);
  }
  return true;
}

/* The image as the window goes over it: with zeros around, and its channels last where the result
 * has them last. *out_buffer: -1: it needs none, as it lies. */
static bool copy_image(kiln__lowering *l, const kiln_ir_value *x, conv *c, int *out_buffer) {
  const kiln__lower_sizes from = kiln__lower_sizes_of(l, x);
  const int first = x->type->detail->rank - c->nd;
  const int border = kiln_physical_border(x->type->detail->physical);
  kiln_loop_copy copy = {.sizes = {0}};
  int64_t sizes[KILN_LOOP_MAX_RANK];
  const bool last = reads_channels_last(l, x, c);
  bool any = last && !lies_channels_last(l, x, c);
  *out_buffer = -1;
  for (int d = 0; d < first; d++) sizes[d] = from.sizes[d];
  if (c->is_cut && !border) {
    sizes[first - 1] = copy.sizes[first - 1] = c->channels * c->groups;
    copy.from = c->begin * from.strides[first - 1];
  }
  for (int d = 0; d < c->nd; d++) {
    if (!find_zeros(l, c, d, border, &copy.before[first + d], &sizes[first + d])) return false;
    any |= sizes[first + d] != c->in[d];
  }
  if (!any) return true;
  if (!border) c->begin = 0; /* the copy has no others */
  *out_buffer = kiln__lower_copy(l, x, sizes,
                                 last ? KILN_PHYSICAL_CHANNELS_LAST : KILN_PHYSICAL_STRIDED, copy);
  return *out_buffer >= 0;
}

/* Dimensions of the weights for one of a window: its taps of a residue, halves of the residues, and
 * residues of a half. */
enum { EACH = 3 };

/* The weights with what windows of residues read, and the halves, the other way round. */
static bool copy_weights(kiln__lowering *l, const kiln_ir_value *w, const conv *c,
                         int *out_buffer) {
  kiln_loop_copy copy = {.sizes = {0}};
  const kiln__lower_sizes from = kiln__lower_sizes_of(l, w);
  *out_buffer = -1;
  if (!c->transposed) return true;
  if (2 + EACH * c->nd > KILN_LOOP_MAX_RANK) return refuse(l, KILN_REASON_rank);
  for (int d = 0; d < 2; d++) {
    copy.sizes[d] = from.sizes[d];
    copy.strides[d] = from.strides[d];
  }
  for (int d = 0; d < c->nd; d++) {
    const int at = 2 + EACH * d;
    const int64_t half = c->stride[d] / c->halves[d], step = from.strides[2 + d];
    if (!kiln_dim_is_number(step)) return refuse(l, KILN_REASON_dynamic_as_static);
    copy.sizes[at] = c->taps[d];
    copy.sizes[at + 1] = c->halves[d];
    copy.sizes[at + 2] = half;
    copy.strides[at] = step * c->stride[d];
    copy.strides[at + 1] = step * half;
    copy.strides[at + 2] = step;
    copy.flipped[at] = c->taps[d] > 1;
    copy.flipped[at + 1] = c->halves[d] > 1;
  }
  *out_buffer = kiln__lower_reordered(l, w, 2 + EACH * c->nd, &copy);
  return *out_buffer >= 0;
}

/* A value at a map, or its copy there. */
static int read_value(kiln__lowering *l, const kiln_ir_value *v, int buffer,
                      const kiln__lower_map *map) {
  return buffer < 0 ? kiln__lower_value(l, v, map) : kiln__lower_load_copy(l, buffer, map);
}

/* -- The sum -- */

/* Of a transposed one's window: the pixel, and the residue's weights. */
static bool begin_residue(kiln__lowering *l, const conv *c, int d, const kiln__lower_dim *out,
                          kiln__lower_dim *x, kiln__lower_dim *w) {
  const int64_t half = c->stride[d] / c->halves[d];
  kiln__lower_dim residue;
  if (!kiln__lower_divide(l, out, c->out[d], c->stride[d], x, &residue) ||
      !kiln__lower_divide(l, &residue, c->halves[d], half, &w[1], &w[2]))
    return false;
  *x = kiln__lower_plus(l, x, &w[1]);
  if (c->skip[d] > 0) *x = kiln__lower_moved(l, x, c->skip[d], 0);
  return true;
}

/* Where the window of a result begins, and which channels and weights it has; false: the loops are
 * to be others. */
static bool begin_maps(kiln__lowering *l, const conv *c, const kiln__lower_map *map,
                       kiln__lower_map *x, kiln__lower_map *w) {
  const int first = c->lone ? 0 : 1;
  kiln__lower_dim group = {0}, output = map->dims[first];
  if (c->groups > 1 &&
      !kiln__lower_divide(l, &map->dims[first], c->groups, c->outputs, &group, &output))
    return false;
  if (!c->lone) x->dims[0] = map->dims[0];
  x->dims[first] = kiln__lower_times(l, &group, c->channels);
  if (c->begin > 0) x->dims[first] = kiln__lower_moved(l, &x->dims[first], c->begin, 0);
  w->dims[0] = c->transposed ? x->dims[first] : map->dims[first];
  if (c->transposed) w->dims[1] = output;
  for (int d = 0; d < c->nd; d++) {
    const kiln__lower_dim *out = &map->dims[first + 1 + d];
    kiln__lower_dim *to = &x->dims[first + 1 + d];
    if (c->transposed) {
      if (!begin_residue(l, c, d, out, to, &w->dims[2 + EACH * d])) return false;
    } else {
      *to = kiln__lower_times(l, out, c->stride[d]);
      if (c->lead[d] > 0) *to = kiln__lower_moved(l, to, c->lead[d], 0);
      w->dims[2 + d].offset = c->first[d];
    }
  }
  return true;
}

/* Moves a dimension with a loop, `step` for each iteration. */
static void move(kiln__lowering *l, kiln__lower_dim *dim, int loop, int64_t step) {
  const kiln__lower_dim along = kiln__lower_along(loop);
  const kiln__lower_dim way = kiln__lower_times(l, &along, step);
  *dim = kiln__lower_plus(l, dim, &way);
}

static int sum_of(kiln__lowering *l, const kiln_node *node, conv *c, const kiln__lower_map *map) {
  const kiln_ir_value *xv = c->image, *wv = kiln_node_input(node, 1);
  const int first = c->lone ? 0 : 1, each = c->transposed ? EACH : 1;
  kiln__lower_map *x = kiln__lower_new_map(l, map->rank);
  kiln__lower_map *w = kiln__lower_new_map(l, 2 + each * c->nd);
  int x_copy, w_copy, loops = 0;
  if (l->nest->open > 0) return kiln__lower_refuse(l, KILN_REASON_read_again);
  if (!copy_image(l, xv, c, &x_copy) || !copy_weights(l, wv, c, &w_copy) ||
      !begin_maps(l, c, map, x, w))
    return -1;
  /* What lies together in the image is summed together: its channels, or pixels of one. */
  const bool last = c->channels > 1 && reads_channels_last(l, xv, c);
  for (int i = -1; i < c->nd; i++) {
    const int k = !last ? i : i == c->nd - 1 ? -1 : i + 1;
    const int64_t count = k < 0 ? c->channels : c->taps[k];
    if (k >= 0 && count == 1) continue;
    const int loop = kiln__lower_open(l, KILN_LOOP_reduce, count);
    if (loop < 0) return -1;
    loops++;
    if (count == 1) continue;
    move(l, &x->dims[first + 1 + k], loop, k < 0 ? 1 : c->dilation[k]);
    move(l, &w->dims[k >= 0 ? 2 + each * k : c->transposed ? 0 : 1], loop, 1);
  }
  const int left = read_value(l, xv, x_copy, x), right = read_value(l, wv, w_copy, w);
  if (left < 0 || right < 0) return -1;
  const int sum = kiln__lower_contraction(l, left, right, loops);
  while (loops-- > 0) kiln__lower_close(l);
  return sum;
}

/* -- The operators -- */

static int lower_conv(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *map,
                      conv_args at) {
  conv c = {.groups = 1};
  if (!read_conv(l, node, at, &c)) return -1;
  if (map->rank != node->outputs[0]->type->detail->rank)
    return kiln__lower_refuse(l, KILN_REASON_rank);
  const int sum = sum_of(l, node, &c, map);
  if (sum < 0 || kiln__lower_is_none(node, at.bias)) return sum;
  const kiln_dtype dtype = kiln__lower_result_dtype(node, 0);
  if (kiln__lower_input_dtype(node, at.bias) != dtype)
    return kiln__lower_refuse(l, KILN_REASON_dtype);
  kiln__lower_map *bias = kiln__lower_new_map(l, 1);
  bias->dims[0] = map->dims[c.lone ? 0 : 1];
  const int more = kiln__lower_value(l, kiln_node_input(node, at.bias), bias);
  return kiln__lower_op(l, KILN_LOOP_add, sum, more, -1);
}

KILN__LOWER(conv) { return lower_conv(l, node, map, (conv_args){2, 3, 4, 5, NEVER, 6}); }
KILN__LOWER(convolution) { return lower_conv(l, node, map, (conv_args){2, 3, 4, 5, 6, 8}); }
KILN__LOWER(conv_transpose) { return lower_conv(l, node, map, (conv_args){2, 3, 4, 7, ALWAYS, 6}); }
/* self, weight, kernel_size, bias, .. */
KILN__LOWER(conv_depthwise) {
  return lower_conv(l, node, map, (conv_args){3, 4, 5, 6, NEVER, EACH_CHANNEL});
}
