/* heavy.c: groups whose contraction runs in the core's kernels: convolutions of 3 x 3 pixels, and
 * of planes of them, by Winograd's (runtime/kernels/heavy/winograd.h), those of narrow groups
 * (runtime/kernels/heavy/grouped.h), products with a weight in blocks
 * (runtime/kernels/heavy/blocked.h).
 *
 * Of relu(conv(x, w) + b) these write conv(x, w) where the group's result will be, some rows at a
 * time, and the group's own kernel, which is what is left of it without the contraction, goes over
 * those rows in place while they are in the cache. So it must be a kernel that may write its result
 * over that input, and whose loops begin with rows. Weights are transformed once (runtime/pack.h).
 */
#include "jit/heavy.h"

#include <string.h>

#include "codegen/loop/schedule.h"
#include "jit/convolution.h"
#include "jit/fusion.h"
#include "jit/layouts.h"
#include "jit/product.h"
#include "runtime/strides.h"

/* -- The contraction -- */

/* The group's one contraction; NULL: there are several. */
static const kiln_node *find_contraction(const kiln_graph *body) {
  const kiln_node *found = NULL;
  for (const kiln_node *n = body->top->first; n; n = n->next) {
    if (!kiln_codegen_contracts(n->op)) continue;
    if (found) return NULL;
    found = n;
  }
  return found;
}

static int input_of(const kiln_graph *graph, const kiln_ir_value *v) {
  for (int i = 0; i < kiln_graph_input_count(graph); i++)
    if (kiln_graph_input(graph, i) == v) return i;
  return -1;
}

/* Floats whose sizes and places are known; in numbers. */
static bool is_floats(const kiln_ir_value *v) {
  return kiln_type_is_tensor(v->type) && kiln_type_has_dims(v->type) &&
         v->type->detail->dtype == KILN_DTYPE_F32 && v->type->detail->rank >= 1;
}
static bool is_complete(const kiln_ir_value *v) {
  return is_floats(v) && kiln_type_is_complete_tensor(v->type);
}

static bool same_sizes(const kiln_ir_value *a, const kiln_ir_value *b) {
  return kiln_tensor_detail_same_sizes(a->type->detail, b->type->detail);
}

static const kiln_ir_value *x_of(const kiln_node *n) {
  return kiln_node_input(n, kiln__product_x(n));
}
static const kiln_ir_value *w_of(const kiln_node *n) {
  return kiln_node_input(n, kiln__product_w(n));
}

/* The bias of linear, addmm and convolutions; NULL: there is none. */
static const kiln_ir_value *bias_of(const kiln_node *n) {
  const int at = kiln_codegen_convolves(n->op) ? 2 : kiln__product_bias(n);
  const kiln_ir_value *bias = at < 0 ? NULL : kiln_node_input(n, at);
  return bias && !kiln_ir_value_is_none(bias) ? bias : NULL;
}

/* What has the memory of a product's x: that, or where x is x.view(-1, 768) of rows, those. */
static const kiln_ir_value *memory_of(const kiln_graph *body, const kiln_node *n) {
  enum { MOST_VIEWS = 4 };
  kiln_dims *dims = kiln_type_table_dims(body->types);
  const kiln_ir_value *v = x_of(n);
  for (int i = 0; i < MOST_VIEWS && input_of(body, v) < 0 && !kiln_codegen_convolves(n->op); i++) {
    if (!v->node->op || v->node->op->cost != KILN_COST_view || v->node->input_count == 0) break;
    const kiln_ir_value *from = kiln_node_input(v->node, 0);
    if (!is_floats(v) || !is_floats(from) || !kiln__is_row_major(dims, v->type->detail) ||
        !kiln__is_row_major(dims, from->type->detail) || !kiln__has_all_of(v, from))
      break;
    v = from;
  }
  return v;
}

/* The number of the result in whose memory the contraction's lies: itself, or the first that has
 * its sizes. */
static int carrier_of(const kiln_graph *body) {
  const kiln_node *n = find_contraction(body);
  int found = -1;
  for (int i = 0; n && i < kiln_graph_output_count(body); i++) {
    const kiln_ir_value *out = kiln_graph_output(body, i);
    if (out == n->outputs[0]) return i;
    if (found < 0 && is_floats(out) && is_floats(n->outputs[0]) && same_sizes(n->outputs[0], out))
      found = i;
  }
  return found < 0 ? 0 : found;
}
static const kiln_ir_value *result_of(const kiln_graph *body) {
  return kiln_graph_output(body, carrier_of(body));
}

/* What the group computes: this result, or the part of the only one that it writes. */
static const kiln_ir_value *computed_by(const kiln_graph *body) {
  kiln_place place;
  const bool placed = kiln_graph_output_count(body) == 1 && kiln_codegen_place(body, 0, &place);
  return placed ? place.part : result_of(body);
}
static bool is_placed(const kiln_graph *body) { return computed_by(body) != result_of(body); }
static bool is_alone(const kiln_graph *body, const kiln_node *n) {
  return kiln_graph_output_count(body) == 1 && n->outputs[0] == computed_by(body);
}
/* Of several results none is part of another's memory. */
static bool has_parts(const kiln_graph *body) {
  kiln_place place;
  bool any = false;
  for (int i = 0; i < kiln_graph_output_count(body); i++)
    any |= kiln_codegen_place(body, i, &place);
  return any && kiln_graph_output_count(body) > 1;
}

/* With its sizes, and the strides that it has in the memory of the result. */
static kiln_tensor_detail stored_by(const kiln_graph *body, int64_t *strides) {
  kiln_tensor_detail d = *computed_by(body)->type->detail;
  if (!is_placed(body)) return d;
  kiln_tensor_detail_strides(result_of(body)->type->detail, strides);
  d.strides = strides;
  d.physical = KILN_PHYSICAL_STRIDED;
  return d;
}

/* What both families ask for: x and a weight from outside, a result with the sizes of one of the
 * group's, and a bias that is a vector. What is written in part has numbers for sizes. */
static const kiln_node *find_heavy(const kiln_graph *body) {
  const kiln_node *n = find_contraction(body);
  if (!n || !kiln__product_is_unscaled(n) || has_parts(body)) return NULL;
  const kiln_ir_value *x = x_of(n), *w = w_of(n);
  const kiln_ir_value *y = n->outputs[0], *out = computed_by(body), *bias = bias_of(n);
  if (is_placed(body) && !(is_complete(x) && is_complete(result_of(body)))) return NULL;
  const bool floats = is_floats(x) && is_complete(w) && is_floats(y) && is_floats(out);
  if (!floats || !same_sizes(y, out) || input_of(body, memory_of(body, n)) < 0 ||
      input_of(body, w) < 0)
    return NULL;
  return !bias || (is_complete(bias) && bias->type->detail->rank == 1 && input_of(body, bias) >= 0)
             ? n
             : NULL;
}

/* What stands for sizes that are symbols, where the choice asks for them. */
enum { SYMBOL_SIDE = 28, SYMBOL_PLANES = 8, SYMBOL_ROWS = 32 };

/* -- By Winograd's kernels -- */

/* Of planes, rows and columns; an image is one plane. */
enum { AXES = 3 };

/* The windows of a convolution of an image or a volume. */
typedef struct windows {
  int64_t groups, step, taps[AXES], pad[AXES], dilation[AXES];
} windows;
static bool is_of_pixels(const windows *of) {
  return of->groups == 1 && of->step == 1 && of->taps[0] * of->taps[1] * of->taps[2] == 1;
}

/* False: it is another convolution, or how many channels it has is not known. */
static bool read_windows(const kiln_node *n, windows *out) {
  const kiln_tensor_detail *x = kiln_node_input(n, 0)->type->detail;
  const kiln_tensor_detail *w = kiln_node_input(n, 1)->type->detail;
  const kiln_tensor_detail *y = n->outputs[0]->type->detail;
  *out = (windows){.groups = kiln__convolution_groups(n),
                   .step = kiln__convolution_number(n, KILN__CONVOLUTION_STRIDE),
                   .taps = {1, 1, 1},
                   .dilation = {1, 1, 1}};
  if (!kiln_may_lie_channels_last(x->rank) || w->rank != x->rank || out->groups < 1) return false;
  const int first = AXES - (w->rank - 2);
  for (int d = first; d < AXES; d++) {
    out->taps[d] = w->sizes[w->rank - AXES + d];
    out->pad[d] = kiln__convolution_number_at(n, KILN__CONVOLUTION_PADDING, d - first);
    if (out->taps[d] > 1)
      out->dilation[d] = kiln__convolution_number_at(n, KILN__CONVOLUTION_DILATION, d - first);
    if (out->dilation[d] < 1 || out->dilation[d] > KILN_WINOGRAD_DILATION || out->pad[d] < 0 ||
        out->pad[d] > (out->taps[d] - 1) * out->dilation[d])
      return false;
  }
  return x->sizes[1] == w->sizes[1] * out->groups && y->sizes[1] == w->sizes[0];
}
/* Windows of 3 x 3, or planes of them; all of the weight's elements, plane by plane. */
static bool read_square_windows(const kiln_node *n, windows *out, kiln_kernel_pack *pack) {
  if (!read_windows(n, out) || out->taps[1] != 3 || out->taps[2] != 3) return false;
  const kiln_tensor_detail *weight = kiln_node_input(n, 1)->type->detail;
  const bool is_volume = weight->rank == 2 + AXES;
  int64_t strides[KILN_MAX_RANK]; /* which are not the type's where a group makes the weight */
  kiln_tensor_detail_strides(weight, strides);
  for (int d = 0; d < 2 + AXES; d++) {
    const int at = d < 2 || is_volume ? d : d - 1;
    const bool is_missing = d == 2 && !is_volume;
    pack->sizes[d] = is_missing ? 1 : weight->sizes[at];
    pack->strides[d] = is_missing ? 0 : strides[at];
  }
  return true;
}
static bool is_channels_last(const kiln_ir_value *v) {
  return v->type->detail->physical == KILN_PHYSICAL_CHANNELS_LAST;
}

/* Of images of any size the channels, outputs, taps, dilation and padding alone. */
static kiln_winograd problem_of(const kiln_graph *body, const kiln_node *conv, const windows *of) {
  const kiln_tensor_detail *x = kiln_node_input(conv, 0)->type->detail;
  const kiln_tensor_detail *y = conv->outputs[0]->type->detail;
  kiln_winograd p = {.channels = x->sizes[1], .outputs = y->sizes[1], .planes = of->taps[0]};
  int64_t in[KILN_MAX_RANK], out[KILN_MAX_RANK];
  for (int d = 0; d < AXES; d++) p.pad[d] = of->pad[d];
  for (int d = 1; d < AXES; d++) p.dilation[d - 1] = of->dilation[d];
  if (!is_complete(kiln_node_input(conv, 0)) || !is_complete(conv->outputs[0])) return p;
  kiln_physical_strides(KILN_PHYSICAL_CHANNELS_LAST, x->rank, x->sizes, in);
  kiln_physical_strides(KILN_PHYSICAL_CHANNELS_LAST, y->rank, y->sizes, out);
  if (is_placed(body)) kiln_tensor_detail_strides(result_of(body)->type->detail, out);
  p.batch = y->sizes[0];
  p.in_batch = in[0];
  p.out_batch = out[0];
  for (int d = 0; d < AXES; d++) {
    const int at = x->rank - AXES + d;
    p.in[d] = p.out[d] = 1;
    if (at < 2) continue;
    p.in[d] = x->sizes[at];
    p.out[d] = y->sizes[at];
    p.in_axis[d] = in[at];
    p.out_axis[d] = out[at];
  }
  return p;
}

/* Taps of planes that no output reads are left out: of a volume of one plane between zeros only the
 * middle one is read. */
static void drop_planes(kiln_winograd *p, kiln_kernel_pack *pack) {
  int64_t first, begin;
  if (p->batch == 0) return;
  const int64_t end = kiln_winograd_taps(p, 0, &begin); /* later planes end with earlier taps */
  (void)kiln_winograd_taps(p, p->out[0] - 1, &first);
  p->pad[0] -= first;
  p->planes = pack->sizes[2] = end - first;
  pack->offset = first * pack->strides[2];
}

/* What the choice is made for: images of any size are small ones, volumes have a few planes. */
static kiln_winograd with_sizes(kiln_winograd p, bool is_volume) {
  if (p.batch) return p;
  p.batch = p.in[0] = p.out[0] = 1;
  p.out[1] = p.out[2] = SYMBOL_SIDE;
  if (is_volume) p.in[0] = p.out[0] = SYMBOL_PLANES;
  return p;
}

/* If image and result have channels last. */
static bool choose_winograd(kiln_env *env, const kiln_graph *body, const kiln_node *n,
                            kiln_group_heavy *out) {
  windows of;
  if (!env->flags.winograd || !read_square_windows(n, &of, &out->pack) || of.groups != 1 ||
      of.step != 1 || of.dilation[0] != 1)
    return false;
  const bool is_volume = kiln_node_input(n, 1)->type->detail->rank == 2 + AXES;
  out->winograd = problem_of(body, n, &of);
  drop_planes(&out->winograd, &out->pack);
  const kiln_winograd problem = with_sizes(out->winograd, is_volume);
  const kiln_winograd_form form = kiln_winograd_choose(&problem, &out->machine);
  out->pack.transform = form ? KILN_TRANSFORM_WINOGRAD : KILN_TRANSFORM_NONE;
  out->pack.form = (int)form;
  return form != KILN_WINOGRAD_NONE;
}

/* -- In vectors of groups -- */

/* But for the sizes. */
static bool read_groups(const kiln_env *env, const kiln_node *n, windows *of,
                        kiln_group_heavy *out) {
  kiln_kernel_pack *pack = &out->pack;
  if (!env->flags.grouped || !read_square_windows(n, of, pack) || pack->sizes[2] != 1 ||
      kiln_node_input(n, 0)->type->detail->rank != 4 || of->dilation[1] != 1 ||
      of->dilation[2] != 1 || pack->sizes[0] != of->groups * pack->sizes[1])
    return false;
  out->grouped =
      (kiln_grouped){.outputs = pack->sizes[0], .each = pack->sizes[1], .step = of->step};
  return kiln_grouped_fits(&out->grouped, kiln_dispatch_select(env->isa));
}

static bool choose_grouped(kiln_env *env, const kiln_graph *body, const kiln_node *n,
                           kiln_group_heavy *out) {
  windows of;
  if (!read_groups(env, n, &of, out)) return false;
  const kiln_winograd sizes = problem_of(body, n, &of);
  kiln_grouped *p = &out->grouped;
  p->batch = sizes.batch;
  p->in_batch = sizes.in_batch;
  p->out_batch = sizes.out_batch;
  for (int d = 0; d < 2; d++) {
    p->in[d] = sizes.in[1 + d];
    p->out[d] = sizes.out[1 + d];
    p->pad[d] = sizes.pad[1 + d];
    p->in_axis[d] = sizes.in_axis[1 + d];
    p->out_axis[d] = sizes.out_axis[1 + d];
  }
  out->pack.transform = KILN_TRANSFORM_GROUPED;
  out->pack.form = 1; /* there is one */
  return true;
}

/* -- In blocks -- */

/* Rows that are equally far apart and do not overlap, in the order of dimensions `order`, the last
 * of which is the columns and contiguous. */
static bool read_rows(const kiln_tensor_detail *t, const int *order, int64_t *out_rows,
                      int64_t *out_stride) {
  int64_t strides[KILN_MAX_RANK];
  if (t->rank > KILN_MAX_RANK) return false;
  kiln_tensor_detail_strides(t, strides);
  const int last = order[t->rank - 1];
  int64_t rows = 1, stride = t->sizes[last];
  for (int i = t->rank - 2; i >= 0; i--) {
    const int d = order[i];
    if (t->sizes[d] == 1) continue;
    if (rows == 1) stride = strides[d];
    if (strides[d] != rows * stride) return false;
    rows *= t->sizes[d];
  }
  *out_rows = rows;
  *out_stride = stride;
  return rows > 0 && t->sizes[last] > 0 && stride >= t->sizes[last] &&
         (t->sizes[last] == 1 || strides[last] == 1);
}

/* Whether it lies row by row without gaps, whatever its symbols are. */
static bool is_dense(kiln_dims *dims, const kiln_tensor_detail *t) {
  kiln_dim expected = 1;
  if (t->physical == KILN_PHYSICAL_ROWS) return true;
  for (int d = t->rank - 1; d >= 0; d--) {
    if (t->sizes[d] != 1 && t->strides[d] != expected) return false;
    expected = kiln_dim_product(dims, expected, t->sizes[d]);
  }
  return !t->physical;
}

/* linear(x, w), matmul(x, w), a convolution of single pixels. */
static bool read_product(const kiln_graph *body, const kiln_node *n, kiln_group_heavy *h) {
  const kiln_tensor_detail *x = x_of(n)->type->detail;
  const kiln_tensor_detail *w = w_of(n)->type->detail;
  int64_t strides[KILN_MAX_RANK];
  const kiln_tensor_detail stored = stored_by(body, strides), *y = &stored;
  int in_order[KILN_MAX_RANK], out_order[KILN_MAX_RANK];
  int64_t out_rows;
  windows of;
  int outputs = 0; /* the weight's dimension of them */
  const bool conv = kiln_codegen_convolves(n->op);
  if (x->rank != y->rank || x->rank > KILN_MAX_RANK) return false;
  kiln_physical_order(conv ? KILN_PHYSICAL_CHANNELS_LAST : KILN_PHYSICAL_STRIDED, x->rank,
                      in_order);
  memcpy(out_order, in_order, sizeof in_order);
  if (conv) {
    if (!read_windows(n, &of) || !is_of_pixels(&of)) return false;
  } else if (kiln_node_is(n, KILN_OP_mm) || kiln_node_is(n, KILN_OP_matmul) || kiln__is_addmm(n)) {
    outputs = 1;
  } else if (!kiln_node_is(n, KILN_OP_linear)) {
    return false;
  }
  if (!conv && w->rank != 2) return false;
  if (kiln_physical_border(x->physical) || kiln_physical_border(y->physical)) return false;
  h->blocked.outputs = w->sizes[outputs];
  h->blocked.depth = w->sizes[1 - outputs];
  if (h->blocked.depth < 1 || h->blocked.outputs < 1) return false;
  if (!is_complete(x_of(n)) || !is_complete(result_of(body))) {
    kiln_dims *dims = kiln_type_table_dims(body->types);
    const int last = in_order[x->rank - 1];
    const bool dense =
        conv ? is_channels_last(kiln_node_input(n, 0)) && is_channels_last(result_of(body))
             : is_dense(dims, x) && is_dense(dims, y);
    h->blocked.x_row = h->blocked.depth;
    h->blocked.y_row = h->blocked.outputs;
    if (!dense || x->sizes[last] != h->blocked.depth || y->sizes[last] != h->blocked.outputs)
      return false;
  } else if (!read_rows(x, in_order, &h->blocked.rows, &h->blocked.x_row) ||
             !read_rows(y, out_order, &out_rows, &h->blocked.y_row) ||
             out_rows != h->blocked.rows) {
    return false;
  }
  kiln_tensor_detail_strides(w, strides);
  h->pack.strides[0] = strides[outputs];
  h->pack.strides[1] = strides[1 - outputs];
  return true;
}

static bool choose_blocked(kiln_env *env, const kiln_graph *body, const kiln_node *n,
                           uint64_t weights, kiln_group_heavy *out) {
  const int weight = input_of(body, w_of(n));
  if (!env->flags.blocked || weight >= 64 || !(weights >> weight & 1)) return false;
  if (!read_product(body, n, out)) return false;
  const kiln_ir_value *bias = bias_of(n);
  if (bias && bias->type->detail->strides[0] == 1 &&
      bias->type->detail->sizes[0] == out->blocked.outputs) {
    out->bias = input_of(body, bias);
    out->alone = is_alone(body, n);
  }
  kiln_blocked problem = out->blocked;
  if (problem.rows == 0) problem.rows = SYMBOL_ROWS;
  const kiln_blocked_form form =
      env->flags.matmul == (int)KILN_FACTORS_BF16
          ? kiln_blocked_choose_bf16(&problem, &out->machine)
          : kiln_blocked_choose(&problem, &out->machine, out->alone, env->flags.strassen);
  if (form == KILN_BLOCKED_NONE) return false;
  out->pack.transform = KILN_TRANSFORM_BLOCKED;
  out->pack.form = (int)form;
  out->pack.sizes[0] = out->blocked.outputs;
  out->pack.sizes[1] = out->blocked.depth;
  out->pack.sizes[2] = kiln_blocked_slice(form, out->blocked.depth, &out->machine);
  return true;
}

/* -- What is left of the group -- */

static kiln_ir_value *append(kiln_graph *g, kiln_op_id id, kiln_ir_value *a, kiln_ir_value *b,
                             kiln_ir_value *c, const kiln_type *type) {
  kiln_node *n = kiln_node_create_id(g, id);
  kiln_node_add_input(n, a);
  kiln_node_add_input(n, b);
  if (c) kiln_node_add_input(n, c);
  kiln_node_append(g->top, n);
  return kiln_node_add_output(n, type);
}

/* A bias of so many outputs, of `dims` dimensions. */
static const kiln_type *bias_type(kiln_graph *g, const kiln_type *type, int dims) {
  kiln_tensor_detail d = *type->detail;
  const int64_t sizes[] = {d.sizes[0], 1, 1, 1}, strides[] = {d.strides[0], 1, 1, 1};
  d.rank = (int8_t)dims;
  d.sizes = sizes;
  d.strides = strides;
  return kiln_type_tensor(g->types, &d);
}

/* Outputs are a convolution's second dimension, and else the last. */
static kiln_ir_value *add_bias(kiln_graph *g, bool conv, kiln_ir_value *sum, kiln_ir_value *bias,
                               const kiln_type *type) {
  const kiln_type *number = kiln_type_basic(KILN_TYPE_INT);
  const kiln_type *plain = bias->type;
  kiln_ir_value *last = kiln_append_constant(g->top, kiln_int(-1), number);
  kiln_ir_value *one = kiln_append_constant(g->top, kiln_int(1), number);
  for (int dims = 2; conv && dims < type->detail->rank; dims++)
    bias = append(g, KILN_OP_unsqueeze, bias, last, NULL, bias_type(g, plain, dims));
  return append(g, KILN_OP_add_Tensor, sum, bias, one, type);
}

kiln_graph *kiln__heavy_rest(kiln_graph *body, const kiln_group_heavy *h, kiln_arena *scratch) {
  const kiln_node *heavy = find_heavy(body);
  kiln_graph *rest = kiln_graph_create_sub(body->root);
  kiln_map copies = kiln_map_in(scratch);
  for (int i = 0; i < kiln_graph_input_count(body); i++) {
    const kiln_ir_value *v = kiln_graph_input(body, i);
    kiln_map_set_ptr(&copies, v, kiln_graph_add_input(rest, NULL, v->type));
  }
  const kiln_ir_value *sum = heavy->outputs[0], *b = h->bias < 0 ? bias_of(heavy) : NULL;
  int64_t strides[KILN_MAX_RANK];
  const kiln_tensor_detail stored = stored_by(body, strides);
  kiln_ir_value *given = kiln_graph_add_input(rest, NULL, kiln_type_tensor(rest->types, &stored));
  kiln_ir_value *bias = b ? kiln_map_find_ptr(&copies, b) : NULL;
  for (const kiln_node *n = body->top->first; n; n = n->next) {
    if (n == heavy) {
      const bool conv = kiln_codegen_convolves(n->op);
      kiln_map_set_ptr(&copies, sum, bias ? add_bias(rest, conv, given, bias, sum->type) : given);
      continue;
    }
    kiln_node *copy = kiln_node_copy(rest, n, &copies);
    kiln_node_append(rest->top, copy);
    for (int i = 0; i < n->output_count; i++) {
      copy->outputs[i]->type = n->outputs[i]->type;
      kiln_map_set_ptr(&copies, n->outputs[i], copy->outputs[i]);
    }
  }
  for (int i = 0; i < kiln_graph_output_count(body); i++) {
    const bool carries = i == h->carrier;
    kiln_ir_value *out =
        kiln_map_find_ptr(&copies, carries ? computed_by(body) : kiln_graph_output(body, i));
    if (is_placed(body)) out->type = given->type;
    if (out == given) { /* of nothing but it the kernel is one that nobody calls */
      kiln_ir_value *rows =
          kiln_append_constant(rest->top, kiln_int(0), kiln_type_basic(KILN_TYPE_INT));
      out = append(rest, KILN_OP_contiguous, given, rows, NULL, given->type);
    }
    kiln_graph_add_output(rest, out);
  }
  return rest;
}

/* -- The choice -- */

static bool may_serve(const kiln_env *env) {
  return !env->flags.exact && env->flags.codegen == (int)KILN_BACKEND_LLVM;
}

/* NULL: the group has no such contraction. */
static const kiln_node *begin(kiln_env *env, const kiln_graph *body, kiln_group_heavy *out) {
  kiln_machine machine;
  const kiln_node *n = may_serve(env) ? find_heavy(body) : NULL;
  if (!n) return NULL;
  kiln_status *status =
      kiln_machine_describe(env->isa, kiln_str_from(env->flags.machine.text), &machine);
  kiln_status_destroy(status);
  if (status) return NULL;
  *out = (kiln_group_heavy){.machine = kiln_machine_of_core(&machine, env->tiles),
                            .alone = is_alone(body, n) && !bias_of(n),
                            .x = input_of(body, memory_of(body, n)),
                            .weight = input_of(body, w_of(n)),
                            .bias = -1,
                            .carrier = carrier_of(body),
                            .pack = {.item_size = sizeof(float)}};
  return n;
}

bool kiln__heavy_wants_channels_last(kiln_env *env, const kiln_graph *body) {
  kiln_group_heavy heavy;
  const kiln_node *n = begin(env, body, &heavy);
  return n && choose_winograd(env, body, n, &heavy);
}

bool kiln__heavy_takes_groups(const kiln_env *env, const kiln_node *conv) {
  kiln_group_heavy heavy = {0};
  windows of;
  return may_serve(env) && read_groups(env, conv, &of, &heavy);
}

uint64_t kiln__heavy_weights(const kiln_node *group) {
  uint64_t weights = 0;
  for (int i = 0; i < group->input_count && i < 64; i++)
    weights |= (uint64_t)kiln_ir_value_is_weight(kiln_node_input(group, i)) << i;
  return weights;
}

bool kiln__heavy_choose(kiln_env *env, const kiln_graph *body, uint64_t weights,
                        kiln_group_heavy *out) {
  const kiln_node *n = begin(env, body, out);
  if (!n) return false;
  const kiln_ir_value *result = result_of(body);
  const bool lies_last =
      is_channels_last(kiln_node_input(n, 0)) &&
      (is_placed(body) ? kiln_physical_is_channels_last(result->type->detail->physical)
                       : is_channels_last(result));
  return (lies_last && (choose_winograd(env, body, n, out) || choose_grouped(env, body, n, out))) ||
         choose_blocked(env, body, n, weights, out);
}

bool kiln__heavy_fits(kiln_group_heavy *h, const kiln_kernel_info *info) {
  h->given = info->input_count - 1;
  return h->carrier < KILN_KERNEL_DONORS && info->pack_count == 0 && !info->can_fault &&
         info->work.scratch_bytes == 0 && info->input_count <= 32 &&
         info->donors[h->carrier] >> h->given & 1;
}

const char *kiln__heavy_name(const kiln_group_heavy *h, kiln_arena *arena) {
  if (h->pack.transform == KILN_TRANSFORM_GROUPED) return "in vectors of groups";
  if (h->pack.transform == KILN_TRANSFORM_WINOGRAD && h->winograd.batch == 0)
    return "by Winograd's F2 or F4";
  if (h->pack.transform == KILN_TRANSFORM_WINOGRAD)
    return kiln_arena_printf(arena, "by Winograd's F%d",
                             (int)kiln_winograd_tile((kiln_winograd_form)h->pack.form));
  return h->pack.form == (int)KILN_BLOCKED_STRASSEN ? "in blocks, by Strassen's algorithm"
         : kiln_blocked_is_tiles((kiln_blocked_form)h->pack.form) ? "in blocks, by tiles"
                                                                  : "in blocks";
}
