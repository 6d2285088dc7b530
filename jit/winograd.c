/* winograd.c: groups whose convolution runs by Winograd's kernels
 * (runtime/kernels/heavy/winograd.h).
 *
 * Of relu(conv(x, w) + b) these write conv(x, w) where the group's result will be, some rows at a
 * time, and the group's own kernel, which is what is left of it without the convolution, goes over
 * those rows in place while they are in the cache. So it must be a kernel that may write its result
 * over that input, and whose loops begin with rows. Weights are transformed once (runtime/pack.h).
 */
#include "jit/winograd.h"

#include <string.h>

#include "codegen/loop/schedule.h"
#include "jit/convolution.h"
#include "jit/fusion.h"

/* -- Which convolution -- */

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

static int input_of(const kiln_graph *graph, const kiln_ir_value *v) {
  for (int i = 0; i < kiln_graph_input_count(graph); i++)
    if (kiln_graph_input(graph, i) == v) return i;
  return -1;
}

static bool is_floats(const kiln_ir_value *v, int rank) {
  return kiln_type_is_tensor(v->type) && kiln_type_is_complete_tensor(v->type) &&
         v->type->detail->dtype == KILN_DTYPE_F32 && v->type->detail->rank == rank;
}

static bool same_sizes(const kiln_ir_value *a, const kiln_ir_value *b) {
  return memcmp(a->type->detail->sizes, b->type->detail->sizes, 4 * sizeof(kiln_dim)) == 0;
}

/* The group's one convolution, if it is of windows of 3 x 3, its image and weight come from
 * outside, and the image and the group's one result have channels last. */
static const kiln_node *find_convolution(const kiln_graph *body, int64_t *out_padding) {
  const kiln_node *found = NULL;
  for (const kiln_node *n = body->top->first; n; n = n->next) {
    if (!kiln_codegen_contracts(n->op)) continue;
    if (found) return NULL;
    found = n;
  }
  if (!found || !has_unit_steps(found, out_padding) || kiln_graph_output_count(body) != 1)
    return NULL;
  const kiln_ir_value *x = kiln_node_input(found, 0), *w = kiln_node_input(found, 1);
  const kiln_ir_value *y = found->outputs[0], *out = kiln_graph_output(body, 0);
  if (!is_floats(x, 4) || !is_floats(w, 4) || !is_floats(y, 4) || !is_floats(out, 4)) return NULL;
  const kiln_dim *taps = w->type->detail->sizes + 2;
  const bool laid = x->type->detail->physical == KILN_PHYSICAL_CHANNELS_LAST &&
                    out->type->detail->physical == KILN_PHYSICAL_CHANNELS_LAST;
  const bool outside = input_of(body, x) >= 0 && input_of(body, w) >= 0;
  return laid && outside && taps[0] == 3 && taps[1] == 3 && same_sizes(y, out) ? found : NULL;
}

static kiln_winograd problem_of(const kiln_node *conv, const int64_t *padding) {
  const kiln_tensor_detail *x = kiln_node_input(conv, 0)->type->detail;
  const kiln_tensor_detail *y = conv->outputs[0]->type->detail;
  int64_t in[4], out[4];
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

static kiln_ir_value *add_bias(kiln_graph *g, kiln_ir_value *sum, kiln_ir_value *bias,
                               const kiln_type *type) {
  const kiln_type *number = kiln_type_basic(KILN_TYPE_INT);
  const kiln_type *plain = bias->type;
  kiln_ir_value *last = kiln_append_constant(g->top, kiln_int(-1), number);
  kiln_ir_value *one = kiln_append_constant(g->top, kiln_int(1), number);
  for (int dims = 2; dims <= 3; dims++)
    bias = append(g, KILN_OP_unsqueeze, bias, last, NULL, bias_type(g, plain, dims));
  return append(g, KILN_OP_add_Tensor, sum, bias, one, type);
}

/* The group without its convolution, whose result is the last input. */
static kiln_graph *make_rest(kiln_graph *body, const kiln_node *conv, kiln_arena *scratch) {
  kiln_graph *rest = kiln_graph_create_sub(body->root);
  kiln_map copies = kiln_map_in(scratch);
  for (int i = 0; i < kiln_graph_input_count(body); i++) {
    const kiln_ir_value *v = kiln_graph_input(body, i);
    kiln_map_set_ptr(&copies, v, kiln_graph_add_input(rest, NULL, v->type));
  }
  const kiln_ir_value *sum = conv->outputs[0];
  kiln_ir_value *given = kiln_graph_add_input(rest, NULL, kiln_graph_output(body, 0)->type), *bias;
  const kiln_ir_value *b = kiln_node_input(conv, 2);
  bias = kiln_ir_value_is_none(b) ? NULL : kiln_map_find_ptr(&copies, b);
  for (const kiln_node *n = body->top->first; n; n = n->next) {
    if (n == conv) {
      kiln_map_set_ptr(&copies, sum, bias ? add_bias(rest, given, bias, sum->type) : given);
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

static bool is_dense_f32_bias(const kiln_graph *body, const kiln_node *conv) {
  const kiln_ir_value *b = kiln_node_input(conv, 2);
  return kiln_ir_value_is_none(b) || (is_floats(b, 1) && input_of(body, b) >= 0);
}

bool kiln__winograd_choose(kiln_env *env, const kiln_graph *body, kiln_group_winograd *out) {
  int64_t padding[2];
  kiln_machine machine;
  if (!env->flags.winograd || env->flags.exact || env->flags.codegen != (int)KILN_BACKEND_LLVM)
    return false;
  const kiln_node *conv = find_convolution(body, padding);
  if (!conv || !is_dense_f32_bias(body, conv)) return false;
  kiln_status *status = kiln_machine_describe(env->isa, (kiln_str){0}, &machine);
  kiln_status_destroy(status);
  if (status) return false;
  const kiln_winograd_machine caches = {
      .lanes = machine.lanes, .l2_bytes = machine.l2_bytes, .l3_bytes = machine.l3_bytes};
  const kiln_winograd problem = problem_of(conv, padding);
  const kiln_winograd_form form = kiln_winograd_choose(&problem, &caches);
  if (form == KILN_WINOGRAD_NONE) return false;
  const kiln_tensor_detail *weight = kiln_node_input(conv, 1)->type->detail;
  *out = (kiln_group_winograd){.problem = problem,
                               .machine = caches,
                               .form = form,
                               .alone = conv->outputs[0] == kiln_graph_output(body, 0) &&
                                        kiln_ir_value_is_none(kiln_node_input(conv, 2)),
                               .image = input_of(body, kiln_node_input(conv, 0)),
                               .weight = input_of(body, kiln_node_input(conv, 1)),
                               .pack = {.item_size = sizeof(float), .transform = (int)form}};
  for (int d = 0; d < 4; d++) {
    out->pack.sizes[d] = weight->sizes[d];
    out->pack.strides[d] = weight->strides[d];
  }
  return true;
}

kiln_graph *kiln__winograd_rest(kiln_graph *body, kiln_arena *scratch) {
  int64_t padding[2];
  return make_rest(body, find_convolution(body, padding), scratch);
}

bool kiln__winograd_fits(kiln_group_winograd *w, const kiln_kernel_info *info) {
  const kiln_kernel_work *work = &info->work;
  const int64_t rows = w->problem.batch * w->problem.out[0];
  w->given = info->input_count - 1;
  w->row_units = work->grid.end[0] / rows;
  return info->output_count == 1 && info->pack_count == 0 && !info->can_fault && !info->shape &&
         work->scratch_bytes == 0 && work->grid.end[0] % rows == 0 && info->input_count <= 32 &&
         info->donors[0] >> w->given & 1;
}
