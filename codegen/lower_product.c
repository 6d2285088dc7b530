/* lower_product.c: matrix products as contractions: an element of the result is a reduce loop.
 *
 * An element of a factor is read once for each row or column of the other. So the second factor is
 * an input of the group, or a view of one. The first may be computed: a row of it is, into a local
 * buffer, before the loops over the result. And where the result is itself read in loops, as by
 * softmax, a row of it is computed before them: softmax(q k^T) v is, for each row of q,
 *
 *   for t { reduce d { contract q, k }, store row }, softmax's loops over the row,
 *   for t { store its quotients }, for e { reduce t { contract quotients, v }, store out } */
#include <math.h>
#include <string.h>

#include "codegen/lower.h"
#include "ir/einsum.h"

#define OP2(name, a, b) kiln__lower_op(l, KILN_LOOP_##name, a, b, -1)

/* -- Rows in local buffers -- */

/* The map without its dimension `dim`, and without steps along dimensions of one element. */
static kiln__lower_map *row_of(kiln__lowering *l, const kiln__lower_map *map,
                               const kiln_ir_value *value, int dim) {
  const kiln_tensor_detail *t = value->type->detail;
  kiln__lower_map *kept = kiln__lower_copied(l, map);
  for (int d = 0; d < map->rank; d++)
    if (d == dim || t->sizes[d] == 1) kept->dims[d] = (kiln__lower_dim){0};
  return kept;
}

/* The loop over a row's elements, whose last dimension gets its counter. */
static int open_row(kiln__lowering *l, kiln_loop_opcode kind, kiln_dim size, kiln__lower_map *map) {
  const int loop = kiln__lower_open(l, kind, size);
  if (loop >= 0 && size != 1) map->dims[map->rank - 1] = kiln__lower_along(loop);
  return loop;
}
/* The element of that loop into a local buffer, which is the rows' first value. */
static void store_row(kiln__lowering *l, kiln__rows *rows, int loop, kiln_dim size, int value) {
  const kiln_dim one = 1;
  if (loop < 0 || value < 0) return;
  const kiln__lower_dim along = kiln__lower_along(loop);
  rows->values[0] = kiln_loop_add_local(l->fn, kiln__lower_dtype_of(l, value), 1, &size, &one);
  kiln_loop_store(l->fn, l->nest, rows->values[0], 0, along.steps, value);
  kiln__lower_close(l);
}

/* Stores the elements along the last dimension of a value. */
static void begin_row(kiln__lowering *l, kiln__rows *rows, const kiln_ir_value *value) {
  kiln__lower_map *map = kiln__lower_copied(l, &rows->kept);
  const kiln_dim size = kiln__lower_sizes_of(l, value).sizes[map->rank - 1];
  const int loop = open_row(l, KILN_LOOP_for, size, map);
  if (loop < 0) return;
  l->storing = true;
  const int element = kiln__lower_value(l, value, map);
  l->storing = false;
  store_row(l, rows, loop, size, element);
}

static int row_element(kiln__lowering *l, const kiln__rows *rows, const kiln__lower_dim *at) {
  if (at->check) return kiln__lower_refuse(l, KILN_REASON_no_affine_map);
  return kiln_loop_load(l->fn, l->nest, rows->values[0], at->offset, at->steps);
}

/* -- Sums -- */

/* Whether loops of the body are open that sum up nothing: rows go through those. */
static bool is_in_rows(const kiln_loop_nest *nest) {
  int ended = 0;
  for (int i = nest->body.count - 1; i >= 0; i--) {
    const kiln_loop_opcode op = nest->body.data[i].op;
    if (op == KILN_LOOP_end) ended++;
    if (kiln_loop_ops[op].rule != KILN_LOOP_RULE_OPEN) continue;
    if (ended == 0 && op != KILN_LOOP_reduce) return true;
    ended -= ended > 0;
  }
  return false;
}

static bool is_input(const kiln__lowering *l, int value) {
  const kiln_loop_inst *inst = &l->nest->body.data[value];
  return inst->op == KILN_LOOP_load && inst->index < l->fn->input_count;
}

/* As a number of bf16 that is multiplied in f32. */
static int rounded(kiln__lowering *l, int value) {
  return kiln__lower_cast(l, kiln__lower_cast(l, value, KILN_DTYPE_BF16), KILN_DTYPE_F32);
}

/* Factors are rounded where callers can do it, who pack inputs: what the kernel computes, and the
 * products of attention, which have no weight, stay as they are. */
int kiln__lower_contraction(kiln__lowering *l, int a, int b, int loops) {
  if (a < 0 || b < 0) return -1;
  if (l->factors == KILN_FACTORS_BF16 && kiln__lower_dtype_of(l, a) == KILN_DTYPE_F32 &&
      is_input(l, a) && is_input(l, b) && !is_in_rows(l->nest)) {
    a = rounded(l, a);
    b = rounded(l, b);
  }
  return kiln_loop_reduce(l->fn, l->nest, KILN_LOOP_contract, a, b, loops);
}

/* -- Factors -- */

static const kiln_tensor_detail *detail_of(const kiln_ir_value *value) {
  return kiln_type_is_tensor(value->type) ? value->type->detail : NULL;
}

/* The number of a product's first factor among its inputs. */
static int first_factor(const kiln_node *node) {
  return kiln_node_is(node, KILN_OP_addmm) || kiln_node_is(node, KILN_OP_baddbmm) ||
         kiln_node_is(node, KILN_OP_addmv) || kiln_node_is(node, KILN_OP_addbmm);
}

bool kiln_codegen_factors(const kiln_node *node, kiln_factors *out) {
  kiln_einsum e;
  *out = (kiln_factors){.summed = 0};
  if (!kiln_codegen_contracts(node->op) || kiln_codegen_convolves(node->op) ||
      kiln_node_is(node, KILN_OP_scaled_dot_product_attention))
    return false;
  if (kiln_node_is(node, KILN_OP_einsum)) {
    if (!kiln_einsum_of(node, &e, out->values)) return false;
    for (int d = 0; d < e.ranks[0] && d < 64; d++)
      out->summed |= (uint64_t)(e.places[0][d] >= e.out_rank) << d;
    return true;
  }
  const int first = first_factor(node);
  for (int i = 0; i < 2; i++) out->values[i] = kiln_node_input(node, first + i);
  const kiln_tensor_detail *a = detail_of(out->values[0]), *b = detail_of(out->values[1]);
  if (!a || !b || a->rank < 1 || a->rank > 64 || b->rank < 1) return false;
  out->summed = UINT64_C(1) << (a->rank - 1);
  if (kiln_node_is(node, KILN_OP_addbmm)) out->summed |= 1;
  return !kiln_node_is(node, KILN_OP_tensordot) ||
         kiln__rows_mask(node, KILN__ROWS_named_2, &out->summed);
}

static void begin_factor(kiln__lowering *l, const kiln_node *node, kiln__rows *rows) {
  kiln_factors factors;
  if (kiln_codegen_factors(node, &factors)) begin_row(l, rows, factors.values[0]);
}

/* Whether elements are read from an input of the group, wherever they lie there. */
static bool is_read(const kiln__lowering *l, const kiln_ir_value *value) {
  while (!kiln_map_find_ptr(&l->buffers, value)) {
    const kiln_node *node = value->node;
    if (!node->op || node->input_count == 0) return true;
    if (node->op->cost == KILN_COST_pointwise || node->op->cost == KILN_COST_reduction ||
        node->op->cost == KILN_COST_heavy)
      return false;
    value = kiln_node_input(node, 0);
  }
  return true;
}

/* What is summed over: loops of these sizes, and which of them each dimension of the factors goes
 * along, -1: none. */
typedef struct summed {
  int count;
  kiln_dim sizes[KILN_LOOP_MAX_RANK];
  int8_t loops[2][KILN_LOOP_MAX_RANK];
} summed;

/* Moves a factor's map with the loops, which are numbered from `first`. */
static void go_along(const summed *s, int factor, int first, kiln__lower_map *map) {
  for (int d = 0; d < map->rank; d++) {
    const int k = s->loops[factor][d];
    if (k >= 0 && s->sizes[k] != 1) map->dims[d] = kiln__lower_along(first + k);
  }
}

/* The sum of products of the factors, at maps that lack the dimensions that are summed. */
static int contract(kiln__lowering *l, const kiln_node *node, const summed *s, kiln__lower_map *a,
                    kiln__lower_map *b) {
  kiln_factors of;
  if (!kiln_codegen_factors(node, &of)) return kiln__lower_refuse(l, KILN_REASON_rank);
  const kiln_ir_value *x = of.values[0], *y = of.values[1];
  const kiln_dtype dtype = kiln__lower_result_dtype(node, 0);
  const kiln__rows *row = NULL;
  const int last = a->rank - 1;
  if (kiln_loop_class(dtype) != KILN_LOOP_CLASS_F || detail_of(x)->dtype != (int)dtype ||
      detail_of(y)->dtype != (int)dtype)
    return kiln__lower_refuse(l, KILN_REASON_dtype);
  for (int k = 0; k < s->count; k++) {
    if (!kiln_dim_is_known(s->sizes[k])) return kiln__lower_refuse(l, KILN_REASON_types_unknown);
    if (s->sizes[k] == 0) return kiln__lower_refuse(l, KILN_REASON_zero_size);
  }
  if (!is_read(l, y)) return kiln__lower_refuse(l, KILN_REASON_read_again);
  if (!is_read(l, x)) {
    if (of.summed != UINT64_C(1) << last) return kiln__lower_refuse(l, KILN_REASON_read_again);
    row = kiln__rows_at(l, node, begin_factor, 0, row_of(l, a, x, last));
    if (!row) return -1;
  }
  const int first = kiln__lower_open(l, KILN_LOOP_reduce, s->sizes[0]);
  for (int k = 1; k < s->count && first >= 0; k++) {
    if (kiln__lower_open(l, KILN_LOOP_reduce, s->sizes[k]) < 0) return -1;
  }
  if (first < 0) return -1;
  go_along(s, 0, first, a);
  go_along(s, 1, first, b);
  const int left = row ? row_element(l, row, &a->dims[last]) : kiln__lower_value(l, x, a);
  const int right = kiln__lower_value(l, y, b);
  if (left < 0 || right < 0) return -1;
  const int sum = kiln__lower_contraction(l, left, right, s->count);
  for (int k = 0; k < s->count; k++) kiln__lower_close(l);
  return sum;
}
/* The same of one dimension of each. */
static int contract_one(kiln__lowering *l, const kiln_node *node, kiln__lower_map *a, int a_inner,
                        kiln__lower_map *b, int b_inner) {
  kiln_factors of;
  summed s = {.count = 1};
  if (!kiln_codegen_factors(node, &of)) return kiln__lower_refuse(l, KILN_REASON_rank);
  s.sizes[0] = kiln__lower_sizes_of(l, of.values[0]).sizes[a_inner];
  if (s.sizes[0] != kiln__lower_sizes_of(l, of.values[1]).sizes[b_inner])
    return kiln__lower_refuse(l, KILN_REASON_types_unknown);
  for (int d = 0; d < a->rank; d++) s.loops[0][d] = (int8_t)(d == a_inner ? 0 : -1);
  for (int d = 0; d < b->rank; d++) s.loops[1][d] = (int8_t)(d == b_inner ? 0 : -1);
  return contract(l, node, &s, a, b);
}

/* -- Rows of results -- */

/* Views are looked through: what they show has rows of its own. */
static bool is_of_product(kiln__lowering *l, const kiln_ir_value *value) {
  const kiln_node *node = value->node;
  if (!kiln_type_is_tensor(value->type) || kiln_map_find_ptr(&l->buffers, value) || !node->op)
    return false;
  if (node->op->cost != KILN_COST_pointwise) return kiln_codegen_contracts(node->op);
  bool *known = kiln_map_find_ptr(&l->products, value);
  if (known) return *known;
  known = KILN_NEW(l->arena, bool);
  for (int i = 0; i < node->input_count; i++) *known |= is_of_product(l, kiln_node_input(node, i));
  kiln_map_set_ptr(&l->products, value, known);
  return *known;
}

static void begin_result(kiln__lowering *l, const kiln_node *node, kiln__rows *rows) {
  begin_row(l, rows, node->outputs[0]);
}

int kiln__lower_row(kiln__lowering *l, const kiln_ir_value *value, const kiln__lower_map *map,
                    bool *out_is_row) {
  *out_is_row = false;
  if (l->nest->open == 0 || map->rank == 0 || !is_of_product(l, value)) return -1;
  const kiln__lower_map *kept = row_of(l, map, value, map->rank - 1);
  const kiln__rows *rows = kiln__rows_find(l, value->node, begin_result, kept);
  if (!rows && l->storing) return -1;
  *out_is_row = true;
  if (!rows) rows = kiln__rows_at(l, value->node, begin_result, 0, kept);
  return rows ? row_element(l, rows, &map->dims[map->rank - 1]) : -1;
}

/* -- Operators -- */

/* Its tensor inputs have dimensions, and how many is known. */
static bool ranks_of(const kiln_node *node, int first, int *a, int *b) {
  if (!kiln__lower_is_tensor(node, first) || !kiln__lower_is_tensor(node, first + 1)) return false;
  const kiln_tensor_detail *x = kiln_node_input(node, first)->type->detail;
  const kiln_tensor_detail *y = kiln_node_input(node, first + 1)->type->detail;
  *a = x ? x->rank : -1;
  *b = y ? y->rank : -1;
  return *a >= 1 && *b >= 1;
}

/* linear(x (.., k), w (n, k), b (n)) */
KILN__LOWER(linear) {
  int a_rank, b_rank;
  if (!ranks_of(node, 0, &a_rank, &b_rank) || a_rank < 2 || b_rank != 2 || map->rank != a_rank)
    return kiln__lower_refuse(l, KILN_REASON_rank);
  kiln__lower_map *a = kiln__lower_copied(l, map), *b = kiln__lower_new_map(l, 2);
  b->dims[0] = map->dims[map->rank - 1];
  const int sum = contract_one(l, node, a, a_rank - 1, b, 1);
  if (kiln__lower_is_none(node, 2)) return sum;
  const kiln_dtype dtype = kiln__lower_result_dtype(node, 0);
  if (kiln__lower_input_dtype(node, 2) != dtype) return kiln__lower_refuse(l, KILN_REASON_dtype);
  return OP2(add, sum, kiln__lower_input(l, node, 2, map, dtype));
}

/* The first `count` dimensions of a factor, which are broadcast to the result's up to `end`; false,
 * with a reason: what [s0] and [2] are next the operator itself must see. */
static bool broadcast(kiln__lowering *l, const kiln_node *node, int i, const kiln__lower_map *map,
                      int count, int end, kiln__lower_map *out) {
  const kiln_tensor_detail *t = kiln_node_input(node, i)->type->detail;
  const kiln_tensor_detail *result = node->outputs[0]->type->detail;
  for (int d = 0; d < count; d++) {
    const int at = end - count + d;
    if (t->sizes[d] == 1) continue;
    if (at < 0 || t->sizes[d] != result->sizes[at])
      return kiln__lower_refuse(l, KILN_REASON_types_unknown) == 0;
    out->dims[d] = map->dims[at];
  }
  return true;
}

/* Factors (.., m, k) and (.., k, n), the first of which is that input; a vector (k) has no m or n.
 */
static int product(kiln__lowering *l, const kiln_node *node, int first,
                   const kiln__lower_map *map) {
  int a_rank, b_rank;
  if (!ranks_of(node, first, &a_rank, &b_rank)) return kiln__lower_refuse(l, KILN_REASON_rank);
  const int rows = a_rank > 1, columns = b_rank > 1, batches = map->rank - rows - columns;
  if (batches < a_rank - 2 || batches < b_rank - 2) return kiln__lower_refuse(l, KILN_REASON_rank);
  kiln__lower_map *a = kiln__lower_new_map(l, a_rank), *b = kiln__lower_new_map(l, b_rank);
  if (!broadcast(l, node, first, map, a_rank - 1 - rows, batches, a) ||
      !broadcast(l, node, first + 1, map, b_rank - 1 - columns, batches, b))
    return -1;
  if (rows) a->dims[a_rank - 2] = map->dims[batches];
  if (columns) b->dims[b_rank - 1] = map->dims[map->rank - 1];
  return contract_one(l, node, a, a_rank - 1, b, columns ? b_rank - 2 : 0);
}
KILN__LOWER(matmul) { return product(l, node, 0, map); }

/* beta self + alpha product; beta of 0 reads nothing of self. */
static int plus_self(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *map,
                     int sum) {
  const kiln_dtype dtype = kiln__lower_result_dtype(node, 0);
  double beta, alpha;
  if (!kiln__lower_number(l, node, 3, &beta) || !kiln__lower_number(l, node, 4, &alpha)) return -1;
  if (alpha != 1) sum = OP2(mul, sum, kiln__lower_const(l, dtype, alpha));
  if (beta == 0 || sum < 0) return sum;
  if (kiln__lower_input_dtype(node, 0) != dtype) return kiln__lower_refuse(l, KILN_REASON_dtype);
  int more = kiln__lower_input(l, node, 0, map, dtype);
  if (beta != 1) more = OP2(mul, more, kiln__lower_const(l, dtype, beta));
  return OP2(add, sum, more);
}
KILN__LOWER(addmm) { return plus_self(l, node, map, product(l, node, 1, map)); }

/* The sum over the batches, too: (b, n, m) and (b, m, p). */
KILN__LOWER(addbmm) {
  int a_rank, b_rank;
  summed s = {.count = 2, .loops = {{0, -1, 1}, {0, 1, -1}}};
  if (!ranks_of(node, 1, &a_rank, &b_rank) || a_rank != 3 || b_rank != 3)
    return kiln__lower_refuse(l, KILN_REASON_rank);
  const kiln__lower_sizes x = kiln__lower_sizes_of(l, kiln_node_input(node, 1));
  const kiln__lower_sizes y = kiln__lower_sizes_of(l, kiln_node_input(node, 2));
  s.sizes[0] = x.sizes[0];
  s.sizes[1] = x.sizes[2];
  if (y.sizes[0] != s.sizes[0] || y.sizes[1] != s.sizes[1])
    return kiln__lower_refuse(l, KILN_REASON_types_unknown);
  kiln__lower_map *a = kiln__lower_new_map(l, 3), *b = kiln__lower_new_map(l, 3);
  a->dims[1] = map->dims[0];
  b->dims[2] = map->dims[1];
  return plus_self(l, node, map, contract(l, node, &s, a, b));
}

/* Sums over dimensions of the first and as many of the second, in turn, of the same sizes: the
 * result has the other dimensions of the first, then of the second. */
static int contract_dims(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *map,
                         int count, const int64_t *a_dims, const int64_t *b_dims) {
  const int64_t *dims[2] = {a_dims, b_dims};
  kiln__lower_sizes sizes[2];
  kiln__lower_map *maps[2];
  summed s = {.count = count};
  int ranks[2], at = 0;
  if (!ranks_of(node, 0, &ranks[0], &ranks[1]) || count < 1 || count > KILN_LOOP_MAX_RANK)
    return kiln__lower_refuse(l, KILN_REASON_rank);
  for (int i = 0; i < 2; i++) {
    sizes[i] = kiln__lower_sizes_of(l, kiln_node_input(node, i));
    maps[i] = kiln__lower_new_map(l, ranks[i]);
    memset(s.loops[i], -1, sizeof s.loops[i]);
    for (int k = 0; k < count; k++) {
      const int64_t d = dims[i][k] < 0 ? dims[i][k] + ranks[i] : dims[i][k];
      if (d < 0 || d >= ranks[i]) return kiln__lower_refuse(l, KILN_REASON_raises);
      if (i && sizes[1].sizes[d] != s.sizes[k])
        return kiln__lower_refuse(l, KILN_REASON_types_unknown);
      s.sizes[k] = sizes[i].sizes[d];
      s.loops[i][d] = (int8_t)k;
    }
    for (int d = 0; d < ranks[i]; d++)
      if (s.loops[i][d] < 0) maps[i]->dims[d] = map->dims[at++];
  }
  return contract(l, node, &s, maps[0], maps[1]);
}
KILN__LOWER(inner) {
  const int64_t last = -1;
  return contract_dims(l, node, map, 1, &last, &last);
}
KILN__LOWER(tensordot) {
  const kiln_ivalue *lists[2];
  int64_t dims[2][KILN_LOOP_MAX_RANK];
  for (int i = 0; i < 2; i++) {
    lists[i] = kiln_ir_value_constant(kiln_node_input(node, i + 2));
    if (!lists[i] || lists[i]->tag != KILN_TAG_LIST)
      return kiln__lower_refuse(l, KILN_REASON_not_constant);
    if (lists[i]->u.list->count > KILN_LOOP_MAX_RANK)
      return kiln__lower_refuse(l, KILN_REASON_rank);
    for (int64_t k = 0; k < lists[i]->u.list->count; k++)
      dims[i][k] = lists[i]->u.list->items[k].u.i;
  }
  if (lists[0]->u.list->count != lists[1]->u.list->count)
    return kiln__lower_refuse(l, KILN_REASON_raises);
  return contract_dims(l, node, map, (int)lists[0]->u.list->count, dims[0], dims[1]);
}

/* -- einsum -- */

/* An operand's map: the result's labels from the result's, and which loop of `s` the others go
 * along. False, with a reason. */
static bool place_operand(kiln__lowering *l, const kiln_node *node, const kiln_einsum *e, int i,
                          const kiln_ir_value *operand, const kiln__lower_map *map,
                          const int8_t *loop_of, summed *s, kiln__lower_map *out) {
  const kiln_tensor_detail *t = detail_of(operand), *result = node->outputs[0]->type->detail;
  const kiln__lower_sizes own = kiln__lower_sizes_of(l, operand);
  uint32_t moved = 0;
  for (int d = 0; d < t->rank; d++) {
    const int p = e->places[i][d];
    s->loops[i][d] = -1;
    if (p >= e->out_rank) {
      s->loops[i][d] = loop_of[p];
      if (own.sizes[d] != (loop_of[p] < 0 ? 1 : s->sizes[loop_of[p]]))
        return kiln__lower_refuse(l, KILN_REASON_not_one_product) == 0;
      if (loop_of[p] >= 0) moved |= 1u << loop_of[p];
    } else if (t->sizes[d] != 1) {
      if (t->sizes[d] != result->sizes[p])
        return kiln__lower_refuse(l, KILN_REASON_types_unknown) == 0;
      out->dims[d] = map->dims[p];
    }
  }
  return moved == (1u << s->count) - 1 || kiln__lower_refuse(l, KILN_REASON_not_one_product) == 0;
}

/* The product of two, summed over labels that both have. */
KILN__LOWER(einsum) {
  kiln_einsum e;
  kiln_ir_value *x[2];
  summed s = {0};
  int8_t loop_of[KILN_MAX_RANK];
  if (!kiln_einsum_of(node, &e, x)) return kiln__lower_refuse(l, KILN_REASON_not_one_product);
  if (e.ranks[0] > KILN_LOOP_MAX_RANK || e.ranks[1] > KILN_LOOP_MAX_RANK || e.out_rank != map->rank)
    return kiln__lower_refuse(l, KILN_REASON_rank);
  memset(loop_of, -1, sizeof loop_of);
  const kiln__lower_sizes sizes = kiln__lower_sizes_of(l, x[0]);
  for (int d = 0; d < e.ranks[0]; d++) {
    const int p = e.places[0][d];
    if (p < e.out_rank || loop_of[p] >= 0 || (sizes.sizes[d] == 1 && e.rank > e.out_rank + 1))
      continue;
    s.sizes[s.count] = sizes.sizes[d];
    loop_of[p] = (int8_t)s.count++;
  }
  if (s.count == 0) return kiln__lower_refuse(l, KILN_REASON_not_one_product);
  kiln__lower_map *a = kiln__lower_new_map(l, e.ranks[0]), *b = kiln__lower_new_map(l, e.ranks[1]);
  if (!place_operand(l, node, &e, 0, x[0], map, loop_of, &s, a) ||
      !place_operand(l, node, &e, 1, x[1], map, loop_of, &s, b))
    return -1;
  return contract(l, node, &s, a, b);
}

/* -- scaled_dot_product_attention(query, key, value, mask, dropout, causal, scale, grouped) -- */

enum { QUERY, KEY, VALUE, MASK, DROPOUT, CAUSAL, SCALE, GROUPED };

static int flag_of(kiln__lowering *l, const kiln_node *node, int i) {
  const kiln_ivalue *v = kiln_ir_value_constant(kiln_node_input(node, i));
  return v && v->tag == KILN_TAG_BOOL ? v->u.b : kiln__lower_refuse(l, KILN_REASON_not_constant);
}

/* The batches of an operand, at a map of the result; of grouped heads several of the query's have
 * one of the keys'. NULL, with a reason. */
static kiln__lower_map *operand_map(kiln__lowering *l, const kiln_node *node, int i,
                                    const kiln__lower_map *map) {
  const kiln_tensor_detail *t = detail_of(kiln_node_input(node, i)),
                           *result = node->outputs[0]->type->detail;
  kiln__lower_map *out = kiln__lower_new_map(l, t->rank);
  const int heads = t->rank - 3, all = map->rank - 3;
  const int grouped = flag_of(l, node, GROUPED);
  const bool repeats = grouped > 0 && (i == KEY || i == VALUE) && heads >= 0 &&
                       t->sizes[heads] != result->sizes[all];
  for (int d = 0; d < t->rank - 2; d++) {
    const int at = map->rank - t->rank + d;
    if (at >= 0 && t->sizes[d] != 1) out->dims[d] = map->dims[at];
    if (at >= 0 && (t->sizes[d] == 1 || t->sizes[d] == result->sizes[at])) continue;
    if (at == all && repeats) continue;
    kiln__lower_refuse(l, KILN_REASON_types_unknown);
  }
  if (repeats) {
    const kiln_dim count = t->sizes[heads], many = result->sizes[all];
    kiln__lower_dim quotient, rest;
    if (!kiln_dim_is_number(count) || !kiln_dim_is_number(many) || many % count != 0) {
      kiln__lower_refuse(l, KILN_REASON_types_unknown);
    } else if (kiln__lower_divide(l, &map->dims[all], count, many / count, &quotient, &rest)) {
      out->dims[heads] = quotient;
    }
  }
  return grouped < 0 || l->reason != KILN_REASON_none ? NULL : out;
}

/* Element `column` of a row of scores, behind the mask: hidden ones are -inf. */
static int masked(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *kept,
                  const kiln__lower_dim *column, int score) {
  const kiln_dtype dtype = kiln__lower_result_dtype(node, 0);
  const kiln__lower_dim *row = &kept->dims[kept->rank - 2];
  const int causal = flag_of(l, node, CAUSAL);
  if (causal < 0 || score < 0) return -1;
  const int hidden = kiln__lower_const(l, dtype, -INFINITY);
  if (causal && row->check) return kiln__lower_refuse(l, KILN_REASON_no_affine_map);
  if (causal) {
    const int i = kiln_loop_index(l->fn, l->nest, row->offset, row->steps);
    const int t = kiln_loop_index(l->fn, l->nest, column->offset, column->steps);
    score = kiln__lower_op(l, KILN_LOOP_select, OP2(gt, t, i), hidden, score);
  }
  if (kiln__lower_is_none(node, MASK)) return score;
  const kiln_dtype type = kiln__lower_input_dtype(node, MASK);
  kiln__lower_map *at = operand_map(l, node, MASK, kept);
  const kiln_tensor_detail *mask = detail_of(kiln_node_input(node, MASK));
  if (!at) return -1;
  if (mask->sizes[at->rank - 2] != 1) at->dims[at->rank - 2] = *row;
  if (mask->sizes[at->rank - 1] != 1) at->dims[at->rank - 1] = *column;
  const int value = kiln__lower_value(l, kiln_node_input(node, MASK), at);
  if (type == KILN_DTYPE_BOOL) return kiln__lower_op(l, KILN_LOOP_select, value, score, hidden);
  return type == dtype ? OP2(add, score, value) : kiln__lower_refuse(l, KILN_REASON_dtype);
}

static void begin_scores(kiln__lowering *l, const kiln_node *node, kiln__rows *rows) {
  const kiln__lower_sizes q = kiln__lower_sizes_of(l, kiln_node_input(node, QUERY));
  const kiln__lower_sizes k = kiln__lower_sizes_of(l, kiln_node_input(node, KEY));
  kiln__lower_map *a = operand_map(l, node, QUERY, &rows->kept);
  kiln__lower_map *b = a ? operand_map(l, node, KEY, &rows->kept) : NULL;
  if (!b) return;
  const kiln_dim depth = q.sizes[a->rank - 1], keys = k.sizes[b->rank - 2];
  double scale = kiln_dim_is_number(depth) ? 1 / sqrt((double)depth) : 0;
  if (k.sizes[b->rank - 1] != depth || (kiln__lower_is_none(node, SCALE) && scale == 0))
    kiln__lower_refuse(l, KILN_REASON_types_unknown);
  if (!kiln__lower_is_none(node, SCALE)) (void)kiln__lower_number(l, node, SCALE, &scale);
  kiln__lower_map row = rows->kept;
  const int loop = open_row(l, KILN_LOOP_for, keys, &row);
  const int inner = loop < 0 ? -1 : kiln__lower_open(l, KILN_LOOP_reduce, depth);
  if (inner < 0) return;
  a->dims[a->rank - 2] = rows->kept.dims[rows->kept.rank - 2];
  b->dims[b->rank - 2] = row.dims[row.rank - 1];
  if (depth != 1) a->dims[a->rank - 1] = b->dims[b->rank - 1] = kiln__lower_along(inner);
  const int left = kiln__lower_value(l, kiln_node_input(node, QUERY), a);
  const int right = kiln__lower_value(l, kiln_node_input(node, KEY), b);
  if (left < 0 || right < 0) return;
  int score = kiln__lower_contraction(l, left, right, 1);
  kiln__lower_close(l);
  score = OP2(mul, score, kiln__lower_const(l, kiln__lower_dtype_of(l, score), scale));
  store_row(l, rows, loop, keys, masked(l, node, &rows->kept, &row.dims[row.rank - 1], score));
}

static int exp_of(kiln__lowering *l, int value) {
  return kiln__lower_op(l, KILN_LOOP_exp_normal, value, -1, -1);
}

/* softmax of the scores; a row that the mask hides is 0. */
static void begin_weights(kiln__lowering *l, const kiln_node *node, kiln__rows *rows) {
  const kiln_ir_value *key = kiln_node_input(node, KEY);
  const int key_rank = detail_of(kiln_node_input(node, KEY))->rank;
  const kiln_dim keys = kiln__lower_sizes_of(l, key).sizes[key_rank - 2];
  const kiln__rows *scores = kiln__rows_at(l, node, begin_scores, 0, &rows->kept);
  kiln__lower_map row = rows->kept;
  const kiln__lower_dim *at = &row.dims[row.rank - 1];
  int found[2], loop = -1, value = -1;
  for (int i = 0; scores && i < 2; i++) {
    if (open_row(l, KILN_LOOP_reduce, keys, &row) < 0) return;
    value = row_element(l, scores, at);
    if (i == 1) value = exp_of(l, OP2(sub, value, found[0]));
    if (value < 0) return;
    found[i] = kiln_loop_reduce(l->fn, l->nest, i ? KILN_LOOP_sum : KILN_LOOP_amax, value, -1, 1);
    kiln__lower_close(l);
  }
  if (!scores || (loop = open_row(l, KILN_LOOP_for, keys, &row)) < 0) return;
  value = exp_of(l, OP2(sub, row_element(l, scores, at), found[0]));
  value = OP2(div, value, found[1]);
  if (flag_of(l, node, CAUSAL) > 0 || !kiln__lower_is_none(node, MASK)) {
    const kiln_dtype dtype = kiln__lower_dtype_of(l, value);
    const int none = OP2(eq, found[0], kiln__lower_const(l, dtype, -INFINITY));
    value = kiln__lower_op(l, KILN_LOOP_select, none, kiln__lower_const(l, dtype, 0), value);
  }
  store_row(l, rows, loop, keys, value);
}

static bool fits(kiln__lowering *l, const kiln_node *node) {
  const kiln_tensor_detail *result = node->outputs[0]->type->detail;
  const kiln_dtype dtype = kiln__lower_result_dtype(node, 0);
  double dropout;
  if (!kiln__lower_number(l, node, DROPOUT, &dropout)) return false;
  if (dropout != 0) return kiln__lower_refuse(l, KILN_REASON_no_lowering) == 0;
  for (int i = QUERY; i <= MASK; i++) {
    if (i == MASK && kiln__lower_is_none(node, i)) continue;
    const kiln_tensor_detail *t =
        kiln__lower_is_tensor(node, i) ? detail_of(kiln_node_input(node, i)) : NULL;
    if (!t || t->rank < 2 || t->rank > result->rank)
      return kiln__lower_refuse(l, KILN_REASON_rank) == 0;
    if (i != MASK &&
        (kiln__lower_input_dtype(node, i) != dtype || kiln_loop_class(dtype) != KILN_LOOP_CLASS_F))
      return kiln__lower_refuse(l, KILN_REASON_dtype) == 0;
    if (!is_read(l, kiln_node_input(node, i)))
      return kiln__lower_refuse(l, KILN_REASON_read_again) == 0;
  }
  if (!kiln__lower_is_none(node, MASK) && flag_of(l, node, CAUSAL) != 0)
    return kiln__lower_refuse(l, KILN_REASON_raises) == 0;
  return true;
}

KILN__LOWER(attention) {
  if (!fits(l, node)) return -1;
  const kiln__lower_map *kept = row_of(l, map, node->outputs[0], map->rank - 1);
  const kiln__rows *weights = kiln__rows_at(l, node, begin_weights, 0, kept);
  kiln__lower_map *v = weights ? operand_map(l, node, VALUE, map) : NULL;
  if (!v) return -1;
  const kiln_dim keys = kiln__lower_sizes_of(l, kiln_node_input(node, VALUE)).sizes[v->rank - 2];
  kiln__lower_map row = *kept;
  if (open_row(l, KILN_LOOP_reduce, keys, &row) < 0) return -1;
  v->dims[v->rank - 2] = row.dims[row.rank - 1];
  v->dims[v->rank - 1] = map->dims[map->rank - 1];
  const int left = row_element(l, weights, &row.dims[row.rank - 1]);
  const int right = kiln__lower_value(l, kiln_node_input(node, VALUE), v);
  if (left < 0 || right < 0) return -1;
  const int sum = kiln__lower_contraction(l, left, right, 1);
  kiln__lower_close(l);
  return sum;
}
