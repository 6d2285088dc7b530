/* cost.c: FLOPs and bytes of nodes: 2 FLOPs for each multiply-add of a product, 1 for
 * each element of a pointwise result or of what is reduced; views, copies and bookkeeping are none.
 * The FLOPS column names the formula of a heavy operator. A node whose sizes are not known, or a
 * heavy operator without a formula, is counted as unknown. A loop of constant length counts as
 * often as it runs, another once, each round as the first; of a branch that is not decided the
 * costlier side counts. */
#include "ir/cost.h"
#include "ir/einsum.h"
#include "ir/internal.h"

bool kiln_cost_sizes(const kiln_ir_value *value, uint64_t *out_numel, uint64_t *out_bytes) {
  const kiln_tensor_detail *d = value->type->kind == KILN_TYPE_TENSOR ? value->type->detail : NULL;
  int64_t numel = 0;
  if (!d || !kiln__shape_static(d->rank, d->sizes)) return false;
  if (!kiln_dtype_is_valid(d->dtype)) return false;
  if (!kiln_numel(d->rank, d->sizes, &numel)) return false;
  *out_numel = (uint64_t)numel;
  *out_bytes = *out_numel * kiln_dtype_size((kiln_dtype)d->dtype);
  return true;
}

static bool numel_of(const kiln_node *node, int input, uint64_t *out_numel) {
  uint64_t bytes;
  return input < node->input_count &&
         kiln_cost_sizes(kiln_node_input(node, input), out_numel, &bytes);
}

/* Elements of the first result. */
static bool result_numel(const kiln_node *node, uint64_t *out_numel) {
  uint64_t bytes;
  return kiln_cost_sizes(kiln_node_output(node, 0), out_numel, &bytes);
}

/* Size of a dimension of an input, counted from the last: 1 is the last. */
static bool size_from_end(const kiln_node *node, int input, int from_end, uint64_t *out_size) {
  uint64_t numel;
  if (!numel_of(node, input, &numel)) return false;
  const kiln_tensor_detail *d = kiln_node_input(node, input)->type->detail;
  *out_size = d->rank >= from_end ? (uint64_t)d->sizes[d->rank - from_end] : 1;
  return true;
}

/* -- The FLOPS column -- */

#include "ir/ops_columns.h"
#undef FLOPS
#define FLOPS(fn) bool kiln__flops_##fn(const kiln_node *node, uint64_t *out_flops);
#define KILN_OP(id, schema, ...) __VA_ARGS__
#include "ir/ops.def"
#undef KILN_OP

/* Result * size of the dimension that is summed over: the last of input `lhs`. */
static bool product(const kiln_node *node, int lhs, uint64_t *out_flops) {
  uint64_t out, inner;
  if (!result_numel(node, &out) || !size_from_end(node, lhs, 1, &inner)) return false;
  *out_flops = 2 * out * inner;
  return true;
}

/* mm(a, b) and its kin. */
bool kiln__flops_product(const kiln_node *node, uint64_t *out_flops) {
  return product(node, 0, out_flops);
}

/* addmm(self, a, b) and its kin. */
bool kiln__flops_added_product(const kiln_node *node, uint64_t *out_flops) {
  return product(node, 1, out_flops);
}

/* einsum of two: each label's elements, once. */
bool kiln__flops_einsum(const kiln_node *node, uint64_t *out_flops) {
  kiln_einsum e;
  kiln_ir_value *operands[2];
  uint64_t sizes[KILN_MAX_RANK];
  if (!kiln_einsum_of(node, &e, operands)) return false;
  for (int p = 0; p < e.rank; p++) sizes[p] = 1;
  for (int i = 0; i < 2; i++) {
    const kiln_tensor_detail *t = operands[i]->type->detail;
    for (int d = 0; d < t->rank; d++) {
      if (!kiln_dim_is_number(t->sizes[d])) return false;
      if (t->sizes[d] != 1) sizes[e.places[i][d]] = (uint64_t)t->sizes[d];
    }
  }
  *out_flops = 2;
  for (int p = 0; p < e.rank; p++) *out_flops *= sizes[p];
  return true;
}

static bool convolution(const kiln_node *node, bool transposed, uint64_t *out_flops) {
  uint64_t places, weight;
  const bool known = transposed ? numel_of(node, 0, &places) : result_numel(node, &places);
  if (!known || !numel_of(node, 1, &weight)) return false;
  const kiln_tensor_detail *w = kiln_node_input(node, 1)->type->detail;
  if (w->rank < 1 || w->sizes[0] < 1) return false;
  *out_flops = 2 * places * (weight / (uint64_t)w->sizes[0]);
  return true;
}

/* The argument `transposed`, where the schema has one, is true. */
static bool is_transposed(const kiln_node *node) {
  const kiln_schema *s = node->op->schema;
  for (int i = 0; i < s->arg_count && i < node->input_count; i++) {
    if (!kiln_str_is(s->args[i].name, "transposed")) continue;
    return kiln_ir_value_is_bool(kiln_node_input(node, i), true);
  }
  return false;
}

bool kiln__flops_conv(const kiln_node *node, uint64_t *out_flops) {
  return convolution(node, is_transposed(node), out_flops);
}

bool kiln__flops_conv_transpose(const kiln_node *node, uint64_t *out_flops) {
  return convolution(node, true, out_flops);
}

/* scaled_dot_product_attention(query, key, value) */
bool kiln__flops_attention(const kiln_node *node, uint64_t *out_flops) {
  uint64_t q, depth, keys, value_depth;
  if (!numel_of(node, 0, &q) || !size_from_end(node, 0, 1, &depth) ||
      !size_from_end(node, 1, 2, &keys) || !size_from_end(node, 2, 1, &value_depth) || depth == 0) {
    return false;
  }
  *out_flops = 2 * (q / depth) * keys * (depth + value_depth);
  return true;
}

/* lstm and its kin: each step multiplies with every matrix among the weights once. */
bool kiln__flops_recurrent(const kiln_node *node, uint64_t *out_flops) {
  uint64_t in, width, weights = 0;
  const kiln_node *list = node->input_count > 2 ? kiln_node_input(node, 2)->node : NULL;
  if (!list || !kiln_node_is(list, KILN_OP_prim_ListConstruct) || !numel_of(node, 0, &in) ||
      !size_from_end(node, 0, 1, &width) || width == 0) {
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

/* lstm_cell(input, hx, w_ih, w_hh, ...) and its kin. */
bool kiln__flops_cell(const kiln_node *node, uint64_t *out_flops) {
  uint64_t in, width, a, b;
  if (!numel_of(node, 0, &in) || !size_from_end(node, 0, 1, &width) || width == 0 ||
      !numel_of(node, 2, &a) || !numel_of(node, 3, &b)) {
    return false;
  }
  *out_flops = 2 * (in / width) * (a + b);
  return true;
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
  uint64_t numel, bytes, in = 0, out = 0;
  bool known = true;
  *out_flops = *out_bytes = 0;
  if (!node->op) return false;
  const kiln_op_cost cost = node->op->cost;
  if (cost == KILN_COST_free || cost == KILN_COST_metadata || cost == KILN_COST_view) return true;
  for (int i = 0; i < node->output_count; i++) {
    if (node->outputs[i]->type->kind != KILN_TYPE_TENSOR) continue;
    bool found = kiln_cost_sizes(node->outputs[i], &numel, &bytes);
    known &= found;
    if (found && i == 0) out = numel;
    if (found && !is_view(node->op, i)) *out_bytes += bytes;
  }
  if (!makes_tensors(node) || cost == KILN_COST_data) return known;
  if (cost == KILN_COST_heavy) {
    /* The formulas of layers and cells need no result. */
    const kiln_flops_fn formula = node->op->flops;
    return formula && formula(node, out_flops) && (known || *out_flops > 0);
  }
  if (!known) return false;
  if (cost == KILN_COST_reduction && !numel_of(node, 0, &in)) return false;
  *out_flops = in > out ? in : out;
  return cost != KILN_COST_none;
}

static kiln_cost_row *row_of(kiln_cost *cost, kiln_str name) {
  kiln_cost_row *row = kiln_map_find(&cost->rows, name);
  if (row) return row;
  row = KILN_NEW(cost->arena, kiln_cost_row);
  row->name = kiln_arena_str(cost->arena, name);
  kiln_map_set(&cost->rows, row->name, row);
  return row;
}

/* Counts it in the row of its name, and in the whole. */
static void add_row(kiln_cost *cost, const kiln_cost_row *more) {
  kiln_cost_row *row = row_of(cost, more->name);
  row->count += more->count;
  row->flops += more->flops;
  row->bytes += more->bytes;
  row->unknown += more->unknown;
  cost->total.flops += more->flops;
  cost->total.made_bytes += more->bytes;
  cost->total.unknown += more->unknown;
}

static void add_node(kiln_cost *cost, const kiln_node *node, uint64_t times) {
  kiln_cost_row row = {.name = node->op ? node->op->full_name : node->name, .count = times};
  const bool known = node_cost(node, &row.flops, &row.bytes);
  if (known && row.flops == 0 && row.bytes == 0) return;
  row.flops *= times;
  row.bytes *= times;
  row.unknown = known ? 0 : times;
  add_row(cost, &row);
}

static void add_cost(kiln_cost *cost, const kiln_cost *more) {
  for (int i = 0; i < more->rows.count; i++) add_row(cost, more->rows.entries[i].value);
  cost->total.branches += more->total.branches;
  cost->total.loops += more->total.loops;
}

/* -- Blocks -- */

/* Rounds of a loop that nothing but its length ends. */
static bool trip_count(const kiln_node *loop, uint64_t *out_trips) {
  int64_t trips;
  if (!kiln_ir_value_is_bool(kiln_node_input(loop, 1), true) ||
      !kiln_ir_value_is_bool(kiln_block_output(loop->blocks[0], 0), true) ||
      !kiln_ir_value_const_int(kiln_node_input(loop, 0), &trips) || trips == INT64_MAX) {
    return false;
  }
  *out_trips = trips > 0 ? (uint64_t)trips : 0;
  return true;
}

static void count_block(kiln_cost *cost, const kiln_block *block, uint64_t times);

/* Each side is counted once, on a page of its own: sides nest as deep as a file says `elif`. */
static void count_branch(kiln_cost *cost, const kiln_node *node, uint64_t times) {
  kiln_cost sides[2] = {{.arena = cost->arena}, {.arena = cost->arena}};
  for (int i = 0; i < 2; i++) {
    sides[i].rows = kiln_map_in(cost->arena);
    count_block(&sides[i], node->blocks[i], times);
  }
  cost->total.branches += times;
  add_cost(cost, &sides[sides[1].total.flops > sides[0].total.flops]);
}

static void count_block(kiln_cost *cost, const kiln_block *block, uint64_t times) {
  for (const kiln_node *n = block->first; n; n = n->next) {
    if (kiln_node_is(n, KILN_OP_prim_If)) {
      count_branch(cost, n, times);
    } else if (kiln_node_is(n, KILN_OP_prim_Loop)) {
      uint64_t trips = 1;
      if (!trip_count(n, &trips)) cost->total.loops += times;
      uint64_t product;
      if (__builtin_mul_overflow(times, trips, &product)) product = times;
      count_block(cost, n->blocks[0], product);
    } else {
      add_node(cost, n, times);
    }
  }
}

void kiln_cost_find(kiln_cost *cost, kiln_arena *arena, const kiln_graph *graph) {
  *cost = (kiln_cost){.arena = arena};
  cost->rows = kiln_map_in(arena);
  for (int i = 0; i < kiln_graph_input_count(graph); i++) {
    uint64_t numel, bytes;
    if (kiln_cost_sizes(kiln_graph_input(graph, i), &numel, &bytes)) {
      cost->total.input_bytes += bytes;
    }
  }
  count_block(cost, graph->top, 1);
  cost->total.peak_bytes = kiln__cost_peak(arena, graph);
}

/* -- Groups and nodes -- */

static bool add_bytes(const kiln_ir_value *value, uint64_t *bytes) {
  uint64_t numel, more;
  if (value->type->kind != KILN_TYPE_TENSOR) return true;
  if (!kiln_cost_sizes(value, &numel, &more)) return false;
  *bytes += more;
  return true;
}

bool kiln_cost_of_group(kiln_arena *scratch, const kiln_graph *body, uint64_t *out_flops,
                        uint64_t *out_bytes) {
  kiln_cost cost;
  kiln_cost_find(&cost, scratch, body);
  bool known = cost.total.unknown == 0;
  *out_flops = cost.total.flops;
  *out_bytes = 0;
  for (int i = 0; i < kiln_graph_input_count(body); i++)
    known &= add_bytes(kiln_graph_input(body, i), out_bytes);
  for (int i = 0; i < kiln_graph_output_count(body); i++)
    known &= add_bytes(kiln_block_output(body->top, i), out_bytes);
  return known;
}

bool kiln_cost_of_node(const kiln_node *node, uint64_t *out_flops, uint64_t *out_bytes) {
  bool known = node_cost(node, out_flops, out_bytes);
  if (*out_flops == 0 && *out_bytes == 0) return known;
  for (int i = 0; i < node->input_count; i++)
    known &= add_bytes(kiln_node_input(node, i), out_bytes);
  return known;
}
