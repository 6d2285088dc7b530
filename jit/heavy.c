/* heavy.c: groups whose contraction runs in the core's kernels: 3x3 convolutions by Winograd's
 * (runtime/kernels/heavy/winograd.h), products with a weight in blocks
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
  const kiln_tensor_detail *x = a->type->detail, *y = b->type->detail;
  return x->rank == y->rank && memcmp(x->sizes, y->sizes, (size_t)x->rank * sizeof(kiln_dim)) == 0;
}

/* The bias of linear and convolutions; NULL: there is none. */
static const kiln_ir_value *bias_of(const kiln_node *n) {
  const bool has = kiln_node_is(n, KILN_OP_linear) || kiln_codegen_convolves(n->op);
  const kiln_ir_value *bias = has ? kiln_node_input(n, 2) : NULL;
  return bias && !kiln_ir_value_is_none(bias) ? bias : NULL;
}

/* What both families ask for: x and a weight from outside, a result with the sizes of the group's
 * only one, and a bias that is a vector. */
static const kiln_node *find_heavy(const kiln_graph *body) {
  const kiln_node *n = find_contraction(body);
  if (!n || kiln_graph_output_count(body) != 1) return NULL;
  const kiln_ir_value *x = kiln_node_input(n, 0), *w = kiln_node_input(n, 1);
  const kiln_ir_value *y = n->outputs[0], *out = kiln_graph_output(body, 0), *bias = bias_of(n);
  const bool floats = is_floats(x) && is_complete(w) && is_floats(y) && is_floats(out);
  if (!floats || !same_sizes(y, out) || input_of(body, x) < 0 || input_of(body, w) < 0) return NULL;
  return !bias || (is_complete(bias) && bias->type->detail->rank == 1 && input_of(body, bias) >= 0)
             ? n
             : NULL;
}

/* What stands for sizes that are symbols, where the choice asks for them. */
enum { SYMBOL_SIDE = 28, SYMBOL_ROWS = 32 };

/* -- By Winograd's kernels -- */

static bool read_padding(const kiln_ir_value *v, int64_t *out) {
  const kiln_ivalue *c = kiln_ir_value_constant(v);
  for (int d = 0; d < 2; d++) {
    if (!c || (c->tag != KILN_TAG_INT && c->tag != KILN_TAG_LIST)) return false;
    const int64_t count = c->tag == KILN_TAG_INT ? 1 : c->u.list->count;
    if (count != 1 && count != 2) return false;
    out[d] = c->tag == KILN_TAG_INT ? c->u.i : c->u.list->items[count == 1 ? 0 : d].u.i;
    if (out[d] < 0 || out[d] > 2) return false;
  }
  return true;
}

static bool has_unit_steps(const kiln_node *n, int64_t *out_padding) {
  return kiln__convolution_groups(n) == 1 &&
         kiln__convolution_number(n, KILN__CONVOLUTION_STRIDE) == 1 &&
         kiln__convolution_number(n, KILN__CONVOLUTION_DILATION) == 1 &&
         read_padding(kiln_node_input(n, KILN__CONVOLUTION_PADDING), out_padding);
}

/* Whether it is a convolution of square windows of so many taps, and how many channels it has is
 * known. */
static bool has_windows(const kiln_node *n, int taps, int64_t *out_padding) {
  const kiln_tensor_detail *x = kiln_node_input(n, 0)->type->detail;
  const kiln_tensor_detail *w = kiln_node_input(n, 1)->type->detail;
  const kiln_tensor_detail *y = n->outputs[0]->type->detail;
  return has_unit_steps(n, out_padding) && x->rank == 4 && w->rank == 4 && w->sizes[2] == taps &&
         w->sizes[3] == taps && x->sizes[1] == w->sizes[1] && y->sizes[1] == w->sizes[0];
}
static bool is_channels_last(const kiln_ir_value *v) {
  return v->type->detail->physical == KILN_PHYSICAL_CHANNELS_LAST;
}

/* Of images of any size the channels, outputs and padding alone. */
static kiln_winograd windows_of(const kiln_node *conv, const int64_t *padding) {
  const kiln_tensor_detail *x = kiln_node_input(conv, 0)->type->detail;
  const kiln_tensor_detail *y = conv->outputs[0]->type->detail;
  int64_t in[4], out[4];
  if (!is_complete(kiln_node_input(conv, 0)) || !is_complete(conv->outputs[0]))
    return (kiln_winograd){
        .channels = x->sizes[1], .outputs = y->sizes[1], .pad = {padding[0], padding[1]}};
  kiln_physical_strides(KILN_PHYSICAL_CHANNELS_LAST, 4, x->sizes, in);
  kiln_physical_strides(KILN_PHYSICAL_CHANNELS_LAST, 4, y->sizes, out);
  return (kiln_winograd){.batch = y->sizes[0],
                         .channels = x->sizes[1],
                         .outputs = y->sizes[1],
                         .in = {x->sizes[2], x->sizes[3]},
                         .out = {y->sizes[2], y->sizes[3]},
                         .pad = {padding[0], padding[1]},
                         .in_batch = in[0],
                         .in_axis = {in[2], in[3]},
                         .out_batch = out[0],
                         .out_axis = {out[2], out[3]}};
}

static bool choose_winograd(kiln_env *env, const kiln_graph *body, const kiln_node *n,
                            kiln_group_heavy *out) {
  int64_t padding[2];
  if (!env->flags.winograd || !has_windows(n, 3, padding) ||
      !is_channels_last(kiln_node_input(n, 0)) || !is_channels_last(kiln_graph_output(body, 0)))
    return false;
  out->winograd = windows_of(n, padding);
  kiln_winograd problem = out->winograd;
  if (problem.batch == 0) problem.batch = 1, problem.out[0] = problem.out[1] = SYMBOL_SIDE;
  const kiln_winograd_form form = kiln_winograd_choose(&problem, &out->machine);
  if (form == KILN_WINOGRAD_NONE) return false;
  const kiln_tensor_detail *weight = kiln_node_input(n, 1)->type->detail;
  out->pack.transform = KILN_TRANSFORM_WINOGRAD;
  out->pack.form = (int)form;
  for (int d = 0; d < 4; d++) {
    out->pack.sizes[d] = weight->sizes[d];
    out->pack.strides[d] = weight->strides[d];
  }
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
  for (int d = t->rank - 1; d >= 0; d--) {
    if (t->sizes[d] != 1 && t->strides[d] != expected) return false;
    expected = kiln_dim_product(dims, expected, t->sizes[d]);
  }
  return !t->physical;
}

/* linear(x, w), matmul(x, w), a convolution of single pixels. */
static bool read_product(const kiln_graph *body, const kiln_node *n, kiln_group_heavy *h) {
  const kiln_tensor_detail *x = kiln_node_input(n, 0)->type->detail;
  const kiln_tensor_detail *w = kiln_node_input(n, 1)->type->detail;
  const kiln_tensor_detail *y = kiln_graph_output(body, 0)->type->detail;
  static const int pixels[] = {0, 2, 3, 1};
  int in_order[KILN_MAX_RANK], out_order[KILN_MAX_RANK];
  int64_t padding[2], out_rows;
  int outputs = 0; /* the weight's dimension of them */
  const bool conv = kiln_codegen_convolves(n->op);
  if (x->rank != y->rank || x->rank > KILN_MAX_RANK) return false;
  for (int d = 0; d < x->rank; d++) in_order[d] = out_order[d] = conv ? pixels[d] : d;
  if (conv) {
    if (!has_windows(n, 1, padding) || padding[0] || padding[1]) return false;
  } else if (kiln_node_is(n, KILN_OP_mm) || kiln_node_is(n, KILN_OP_matmul)) {
    outputs = 1;
  } else if (!kiln_node_is(n, KILN_OP_linear)) {
    return false;
  }
  if (!conv && w->rank != 2) return false;
  if (kiln_physical_border(x->physical) || kiln_physical_border(y->physical)) return false;
  h->blocked.outputs = w->sizes[outputs];
  h->blocked.depth = w->sizes[1 - outputs];
  if (h->blocked.depth < 1 || h->blocked.outputs < 1) return false;
  if (!is_complete(kiln_node_input(n, 0)) || !is_complete(kiln_graph_output(body, 0))) {
    kiln_dims *dims = kiln_type_table_dims(body->types);
    const int last = in_order[x->rank - 1];
    const bool dense = conv ? is_channels_last(kiln_node_input(n, 0)) &&
                                  is_channels_last(kiln_graph_output(body, 0))
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
  h->pack.strides[0] = w->strides[outputs];
  h->pack.strides[1] = w->strides[1 - outputs];
  return true;
}

static bool choose_blocked(kiln_env *env, const kiln_graph *body, const kiln_node *n,
                           uint64_t weights, kiln_group_heavy *out) {
  const int weight = input_of(body, kiln_node_input(n, 1));
  if (!env->flags.blocked || weight >= 64 || !(weights >> weight & 1)) return false;
  if (!read_product(body, n, out)) return false;
  const kiln_ir_value *bias = bias_of(n);
  if (bias && bias->type->detail->strides[0] == 1 &&
      bias->type->detail->sizes[0] == out->blocked.outputs) {
    out->bias = input_of(body, bias);
    out->alone = n->outputs[0] == kiln_graph_output(body, 0);
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
  const int64_t sizes[] = {d.sizes[0], 1, 1}, strides[] = {d.strides[0], 1, 1};
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
  for (int dims = 2; conv && dims <= 3; dims++)
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
  kiln_ir_value *given = kiln_graph_add_input(rest, NULL, kiln_graph_output(body, 0)->type);
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
  kiln_ir_value *out = kiln_map_find_ptr(&copies, kiln_graph_output(body, 0));
  if (out == given) { /* nothing is left: a kernel that nobody calls */
    kiln_ir_value *rows =
        kiln_append_constant(rest->top, kiln_int(0), kiln_type_basic(KILN_TYPE_INT));
    out = append(rest, KILN_OP_contiguous, given, rows, NULL, given->type);
  }
  kiln_graph_add_output(rest, out);
  return rest;
}

/* -- The choice -- */

bool kiln__heavy_choose(kiln_env *env, const kiln_graph *body, uint64_t weights,
                        kiln_group_heavy *out) {
  kiln_machine machine;
  if (env->flags.exact || env->flags.codegen != (int)KILN_BACKEND_LLVM) return false;
  const kiln_node *n = find_heavy(body);
  if (!n) return false;
  kiln_status *status =
      kiln_machine_describe(env->isa, kiln_str_from(env->flags.machine.text), &machine);
  kiln_status_destroy(status);
  if (status) return false;
  *out = (kiln_group_heavy){.machine = kiln_machine_of_core(&machine, env->tiles),
                            .alone = n->outputs[0] == kiln_graph_output(body, 0) && !bias_of(n),
                            .x = input_of(body, kiln_node_input(n, 0)),
                            .weight = input_of(body, kiln_node_input(n, 1)),
                            .bias = -1,
                            .pack = {.item_size = sizeof(float)}};
  return choose_winograd(env, body, n, out) || choose_blocked(env, body, n, weights, out);
}

bool kiln__heavy_fits(kiln_group_heavy *h, const kiln_kernel_info *info) {
  h->given = info->input_count - 1;
  return info->output_count == 1 && info->pack_count == 0 && !info->can_fault &&
         info->work.scratch_bytes == 0 && info->input_count <= 32 &&
         info->donors[0] >> h->given & 1;
}

const char *kiln__heavy_name(const kiln_group_heavy *h, kiln_arena *arena) {
  if (h->pack.transform == KILN_TRANSFORM_WINOGRAD && h->winograd.batch == 0)
    return "by Winograd's F2 or F4";
  if (h->pack.transform == KILN_TRANSFORM_WINOGRAD)
    return kiln_arena_printf(arena, "by Winograd's F%d",
                             (int)kiln_winograd_tile((kiln_winograd_form)h->pack.form));
  return h->pack.form == (int)KILN_BLOCKED_STRASSEN ? "in blocks, by Strassen's algorithm"
         : kiln_blocked_is_tiles((kiln_blocked_form)h->pack.form) ? "in blocks, by tiles"
                                                                  : "in blocks";
}
