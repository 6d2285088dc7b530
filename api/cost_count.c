/* cost_count.c: floating-point operations and bytes of nodes: 2 for each multiply-add of a product,
 * 1 for each element of a pointwise result or of what is reduced; views, copies and bookkeeping are
 * none. A node whose sizes are not known, or a heavy operator without a formula, is counted as
 * unknown. A loop of constant length counts as often as it runs, another once, each round as the
 * first; of a branch that is not decided the costlier side counts. */
#include "api/cost.h"

bool kiln__cost_sizes(const kiln_ir_value *value, uint64_t *out_numel, uint64_t *out_bytes) {
  const kiln_tensor_detail *d = value->type->kind == KILN_TYPE_TENSOR ? value->type->detail : NULL;
  int64_t numel = 0;
  if (!d || d->rank < 0 || !kiln_dtype_is_valid(d->dtype)) return false;
  for (int i = 0; i < d->rank; i++) {
    if (d->sizes[i] < 0) return false;
  }
  if (!kiln_numel(d->rank, d->sizes, &numel)) return false;
  *out_numel = (uint64_t)numel;
  *out_bytes = *out_numel * kiln_dtype_size((kiln_dtype)d->dtype);
  return true;
}

static bool numel_of(const kiln_node *node, int input, uint64_t *out_numel) {
  uint64_t bytes;
  return input < node->input_count &&
         kiln__cost_sizes(kiln_node_input(node, input), out_numel, &bytes);
}

/* Size of a dimension of an input, counted from the last: 1 is the last. */
static bool size_from_end(const kiln_node *node, int input, int from_end, uint64_t *out_size) {
  uint64_t numel;
  if (!numel_of(node, input, &numel)) return false;
  const kiln_tensor_detail *d = kiln_node_input(node, input)->type->detail;
  *out_size = d->rank >= from_end ? (uint64_t)d->sizes[d->rank - from_end] : 1;
  return true;
}

/* -- Products -- */

typedef struct formula_args {
  const kiln_node *node;
  uint64_t out; /* elements of the first result */
} formula_args;

/* out * size of the dimension that is summed over: the last of input `lhs`. */
static bool product(const formula_args *f, int lhs, uint64_t *out_flops) {
  uint64_t inner;
  if (!size_from_end(f->node, lhs, 1, &inner)) return false;
  *out_flops = 2 * f->out * inner;
  return true;
}

static bool convolution(const formula_args *f, bool transposed, uint64_t *out_flops) {
  uint64_t in, weight;
  if (!numel_of(f->node, 0, &in) || !numel_of(f->node, 1, &weight)) return false;
  const kiln_tensor_detail *w = kiln_node_input(f->node, 1)->type->detail;
  if (w->rank < 1 || w->sizes[0] < 1) return false;
  *out_flops = 2 * (transposed ? in : f->out) * (weight / (uint64_t)w->sizes[0]);
  return true;
}

static bool attention(const formula_args *f, uint64_t *out_flops) {
  uint64_t q, depth, keys, value_depth;
  if (!numel_of(f->node, 0, &q) || !size_from_end(f->node, 0, 1, &depth) ||
      !size_from_end(f->node, 1, 2, &keys) || !size_from_end(f->node, 2, 1, &value_depth) ||
      depth == 0) {
    return false;
  }
  *out_flops = 2 * (q / depth) * keys * (depth + value_depth);
  return true;
}

/* Each step multiplies with every matrix among the weights once. */
static bool recurrent(const formula_args *f, uint64_t *out_flops) {
  uint64_t in, width, weights = 0;
  const kiln_node *list = f->node->input_count > 2 ? kiln_node_input(f->node, 2)->node : NULL;
  if (!list || !kiln_node_is(list, KILN_OP_prim_ListConstruct) || !numel_of(f->node, 0, &in) ||
      !size_from_end(f->node, 0, 1, &width) || width == 0) {
    return false;
  }
  for (int i = 0; i < list->input_count; i++) {
    uint64_t numel;
    if (!numel_of(list, i, &numel)) return false;
    if (kiln_node_input(list, i)->type->detail->rank == 2) weights += numel;
  }
  *out_flops = 2 * (in / width) * weights;
  return true;
}

static bool cell(const formula_args *f, uint64_t *out_flops) {
  uint64_t in, width, a, b;
  if (!numel_of(f->node, 0, &in) || !size_from_end(f->node, 0, 1, &width) || width == 0 ||
      !numel_of(f->node, 2, &a) || !numel_of(f->node, 3, &b)) {
    return false;
  }
  *out_flops = 2 * (in / width) * (a + b);
  return true;
}

static bool is_transposed(const kiln_node *node) {
  const kiln_ivalue *c =
      node->input_count > 6 ? kiln_ir_value_constant(kiln_node_input(node, 6)) : NULL;
  return c && c->tag == KILN_TAG_BOOL && c->u.b;
}

static bool is_one_of(kiln_str name, const char *const *names) {
  for (; *names; names++) {
    if (kiln_str_is(name, *names)) return true;
  }
  return false;
}

static bool heavy(const formula_args *f, uint64_t *out_flops) {
  static const char *const first[] = {"aten::mm", "aten::bmm", "aten::matmul", "aten::linear",
                                      NULL};
  static const char *const second[] = {"aten::addmm", "aten::baddbmm", NULL};
  static const char *const layers[] = {"aten::lstm", "aten::gru", "aten::rnn_tanh",
                                       "aten::rnn_relu", NULL};
  static const char *const cells[] = {"aten::lstm_cell", "aten::gru_cell", "aten::rnn_tanh_cell",
                                      "aten::rnn_relu_cell", NULL};
  kiln_str name = f->node->op->name;
  if (is_one_of(name, first)) return product(f, 0, out_flops);
  if (is_one_of(name, second)) return product(f, 1, out_flops);
  if (is_one_of(name, layers)) return recurrent(f, out_flops);
  if (is_one_of(name, cells)) return cell(f, out_flops);
  if (kiln_str_is(name, "aten::scaled_dot_product_attention")) return attention(f, out_flops);
  if (kiln_str_starts(name, "aten::conv_transpose")) return convolution(f, true, out_flops);
  if (kiln_str_is(name, "aten::_convolution") || kiln_str_is(name, "aten::convolution")) {
    return convolution(f, is_transposed(f->node), out_flops);
  }
  if (kiln_str_starts(name, "aten::conv")) return convolution(f, false, out_flops);
  return false;
}

/* -- Nodes -- */

/* Result `index` shares the memory of an argument. */
static bool is_view(const kiln_op *op, int index) {
  return op->schema && index < op->schema->result_count && op->schema->results[index].alias.present;
}

static bool makes_tensors(const kiln_node *node) {
  for (int i = 0; i < node->output_count; i++) {
    if (node->outputs[i]->type->kind == KILN_TYPE_TENSOR) return true;
  }
  return false;
}

/* Whether all is known. */
static bool node_cost(const kiln_node *node, uint64_t *out_flops, uint64_t *out_bytes) {
  formula_args f = {node, 0};
  uint64_t numel, bytes, in = 0;
  bool known = true;
  *out_flops = *out_bytes = 0;
  if (!node->op) return false;
  const kiln_op_cost cost = node->op->cost;
  if (cost == KILN_COST_free || cost == KILN_COST_metadata || cost == KILN_COST_view) return true;
  for (int i = 0; i < node->output_count; i++) {
    if (node->outputs[i]->type->kind != KILN_TYPE_TENSOR) continue;
    bool found = kiln__cost_sizes(node->outputs[i], &numel, &bytes);
    known &= found;
    if (found && i == 0) f.out = numel;
    if (found && !is_view(node->op, i)) *out_bytes += bytes;
  }
  if (!makes_tensors(node) || cost == KILN_COST_data) return known;
  if (cost == KILN_COST_heavy) {
    /* The formulas of layers and cells need no result. */
    return heavy(&f, out_flops) && (known || *out_flops > 0);
  }
  if (!known) return false;
  if (cost == KILN_COST_reduction && !numel_of(node, 0, &in)) return false;
  *out_flops = in > f.out ? in : f.out;
  return cost != KILN_COST_none;
}

static void add_row(kiln__cost *cost, const kiln_node *node, uint64_t times) {
  kiln_str name = node->op ? node->op->full_name : node->name;
  kiln__cost_row *row = kiln_map_find(&cost->rows, name);
  uint64_t flops, bytes;
  bool known = node_cost(node, &flops, &bytes);
  if (known && flops == 0 && bytes == 0) return;
  if (!row) {
    row = KILN_NEW(cost->arena, kiln__cost_row);
    row->name = kiln_str_make(kiln_arena_strndup(cost->arena, name.data, name.len), name.len);
    kiln_map_set(&cost->rows, row->name, row);
  }
  row->count += times;
  row->flops += flops * times;
  row->bytes += bytes * times;
  row->unknown += known ? 0 : times;
  cost->total.flops += flops * times;
  cost->total.made_bytes += bytes * times;
  cost->total.unknown += known ? 0 : times;
}

/* -- Blocks -- */

static bool is_true(const kiln_ir_value *value) {
  const kiln_ivalue *c = kiln_ir_value_constant(value);
  return c && c->tag == KILN_TAG_BOOL && c->u.b;
}

/* Rounds of a loop that nothing but its length ends. */
static bool trip_count(const kiln_node *loop, uint64_t *out_trips) {
  int64_t trips;
  if (!is_true(kiln_node_input(loop, 1)) || !is_true(kiln_block_output(loop->blocks[0], 0)) ||
      !kiln_ir_value_const_int(kiln_node_input(loop, 0), &trips) || trips == INT64_MAX) {
    return false;
  }
  *out_trips = trips > 0 ? (uint64_t)trips : 0;
  return true;
}

static void count_block(kiln__cost *cost, const kiln_block *block, uint64_t times);

/* FLOPs of a block, without leaving anything in `cost`. */
static uint64_t flops_of(const kiln__cost *cost, const kiln_block *block) {
  kiln__cost probe = {.arena = cost->arena};
  kiln_map_init(&probe.rows, cost->arena);
  count_block(&probe, block, 1);
  return probe.total.flops;
}

static void count_block(kiln__cost *cost, const kiln_block *block, uint64_t times) {
  for (const kiln_node *n = block->first; n; n = n->next) {
    if (kiln_node_is(n, KILN_OP_prim_If)) {
      bool second = flops_of(cost, n->blocks[1]) > flops_of(cost, n->blocks[0]);
      cost->total.branches += times;
      count_block(cost, n->blocks[second], times);
    } else if (kiln_node_is(n, KILN_OP_prim_Loop)) {
      uint64_t trips = 1;
      if (!trip_count(n, &trips)) cost->total.loops += times;
      uint64_t product;
      if (__builtin_mul_overflow(times, trips, &product)) product = times;
      count_block(cost, n->blocks[0], product);
    } else {
      add_row(cost, n, times);
    }
  }
}

void kiln__cost_count(kiln__cost *cost, const kiln_graph *graph) {
  for (int i = 1; i < kiln_graph_input_count(graph); i++) {
    uint64_t numel, bytes;
    if (kiln__cost_sizes(kiln_graph_input(graph, i), &numel, &bytes)) {
      cost->total.input_bytes += bytes;
    }
  }
  count_block(cost, graph->top, 1);
}
