/* lower.c: a group's graph to loop IR.
 *
 * Outputs of the same sizes share a nest, whose loops are their dimensions. The body is found by
 * walking from the outputs back, with a memo. */
#include "codegen/lower.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "runtime/half.h"

/* The LOWER and LOWER_EACH columns of the tables. */
#include "ir/ops_columns.h"
#undef LOWER
#undef LOWER_EACH
#undef LOWER_ROWS
#define LOWER(name) KILN__LOWER_TYPE(name);
#define LOWER_EACH(name) KILN__LOWER_EACH_TYPE(name);
#define LOWER_ROWS(name, dims) KILN__ROWS_TYPES(name);
#define KILN_OP(id, schema, ...) __VA_ARGS__
#include "ir/ops.def"
#undef KILN_OP

#include "ir/ops_columns.h"
#undef LOWER
#undef LOWER_EACH
#undef LOWER_ROWS
#define LOWER(name) .fn = kiln__lower_##name,
#define LOWER_EACH(name) .each = kiln__lower_##name,
#define LOWER_ROWS(name, which) \
  .begin = kiln__rows_begin_##name, .rows = kiln__rows_##name, .dims = KILN__ROWS_##which,
typedef struct lowering_entry {
  kiln__lower_fn fn;
  kiln__lower_each_fn each;
  kiln__rows_begin_fn begin;
  kiln__rows_fn rows;
  kiln__rows_dims dims;
  char unused;
} lowering_entry;
static const lowering_entry *lowering_of(const kiln_op *op) {
  static const lowering_entry table[] = {
#define KILN_OP(id, schema, ...) [KILN_OP_##id] = {__VA_ARGS__.unused = 0},
#include "ir/ops.def"
#undef KILN_OP
  };
  if (!op || op->id < 0 || op->id >= KILN_OP__BUILTIN_COUNT) return NULL;
  const lowering_entry *e = &table[op->id];
  return e->fn || e->each || e->rows ? e : NULL;
}

static int lower_rows(kiln__lowering *l, const lowering_entry *e, const kiln_node *node,
                      const kiln__lower_map *map);

static int lower_node(kiln__lowering *l, const kiln_node *node, int output,
                      const kiln__lower_map *map) {
  const lowering_entry *e = lowering_of(node->op);
  if (!e) return kiln__lower_refuse(l, KILN_REASON_no_lowering);
  if (e->rows) return lower_rows(l, e, node, map);
  return e->fn ? e->fn(l, node, map) : e->each(l, node, output, map);
}

bool kiln_codegen_has_lowering(const kiln_op *op) {
  bool pure = op && (op->variant == KILN_VARIANT_NONE || op->variant == KILN_VARIANT_COPY);
  return pure && lowering_of(op) != NULL;
}

int kiln__lower_refuse(kiln__lowering *l, kiln_reason reason) {
  if (l->reason == KILN_REASON_none) l->reason = reason;
  return -1;
}

/* -- Facts of nodes -- */

bool kiln__lower_is_tensor(const kiln_node *node, int i) {
  return kiln_node_input(node, i)->type->kind == KILN_TYPE_TENSOR;
}

bool kiln__lower_is_none(const kiln_node *node, int i) {
  return i >= node->input_count || kiln_ir_value_is_none(kiln_node_input(node, i));
}

kiln_dtype kiln__lower_input_dtype(const kiln_node *node, int i) {
  const kiln_tensor_detail *detail = kiln_node_input(node, i)->type->detail;
  return detail ? (kiln_dtype)detail->dtype : KILN_DTYPE_NONE;
}

kiln_dtype kiln__lower_result_dtype(const kiln_node *node, int output) {
  const kiln_tensor_detail *detail = node->outputs[output]->type->detail;
  return detail ? (kiln_dtype)detail->dtype : KILN_DTYPE_NONE;
}

/* I64, F64 or BOOL for a Python number, NONE where its kind is not known. */
static kiln_dtype number_kind(const kiln_ir_value *value) {
  const kiln_dtype kind = kiln_ir_number_kind(value->type, kiln_ir_value_constant(value));
  return kind == KILN_DTYPE_C128 ? KILN_DTYPE_NONE : kind;
}

kiln_dtype kiln__lower_promote(const kiln_node *node, int first, int count) {
  kiln_promotion promotion = KILN_PROMOTION_INIT;
  for (int i = first; i < first + count; i++) {
    const kiln_ir_value *value = kiln_node_input(node, i);
    if (kiln_ir_value_is_none(value)) continue;
    if (value->type->kind == KILN_TYPE_TENSOR) {
      if (!value->type->detail) return KILN_DTYPE_NONE;
      kiln_promotion_add_tensor(&promotion, (kiln_dtype)value->type->detail->dtype,
                                value->type->detail->rank);
    } else {
      kiln_dtype kind = number_kind(value);
      if (kind == KILN_DTYPE_NONE) return KILN_DTYPE_NONE;
      kiln_promotion_add_number(&promotion, kind);
    }
  }
  return kiln_promotion_result(&promotion);
}

bool kiln__lower_number(kiln__lowering *l, const kiln_node *node, int i, double *out_value) {
  const kiln_ivalue *constant = kiln_ir_value_constant(kiln_node_input(node, i));
  if (!constant || number_kind(kiln_node_input(node, i)) == KILN_DTYPE_NONE) {
    kiln__lower_refuse(l, KILN_REASON_not_constant);
    return false;
  }
  *out_value = constant->tag == KILN_TAG_FLOAT  ? constant->u.f
               : constant->tag == KILN_TAG_BOOL ? (double)constant->u.b
                                                : (double)constant->u.i;
  return true;
}

kiln__lower_sizes kiln__lower_sizes_of(kiln__lowering *l, const kiln_ir_value *value) {
  const kiln_tensor_detail *d = value->type->detail;
  kiln__lower_sizes s = {{0}, {0}};
  for (int i = 0; i < d->rank; i++) {
    s.sizes[i] = kiln_dim_copy(l->fn->dims, d->dims, d->sizes[i]);
    s.strides[i] = kiln_dim_copy(l->fn->dims, d->dims, d->strides[i]);
  }
  return s;
}

/* -- Instructions -- */

int kiln__lower_op(kiln__lowering *l, kiln_loop_opcode op, int a, int b, int c) {
  int arity = kiln_loop_ops[op].arity;
  if (a < 0 || (arity > 1 && b < 0) || (arity > 2 && c < 0)) return -1;
  int typed = kiln_loop_ops[op].rule == KILN_LOOP_RULE_SELECT ? b : a;
  if (!(kiln_loop_class(l->nest->body.data[typed].dtype) & kiln_loop_ops[op].classes))
    return kiln__lower_refuse(l, KILN_REASON_dtype);
  if (l->nest->body.count >= KILN_LOOP_MAX_INSTS - 8)
    return kiln__lower_refuse(l, KILN_REASON_too_long);
  return kiln_loop_op(l->fn, l->nest, op, a, b, c);
}

int kiln__lower_cast(kiln__lowering *l, int value, kiln_dtype dtype) {
  if (value < 0 || dtype == KILN_DTYPE_NONE) return value;
  if (!kiln_loop_class(dtype)) return kiln__lower_refuse(l, KILN_REASON_dtype);
  return kiln_loop_cast(l->fn, l->nest, value, dtype);
}

bool kiln__lower_holds(kiln_dtype dtype, double value) {
  if (!kiln_dtype_is_int(dtype, false)) {
    return !isfinite(value) || fabs(value) <= kiln_float_greatest(dtype);
  }
  const int bits = 8 * (int)kiln_dtype_bytes(dtype);
  const double end = ldexp(1, dtype == KILN_DTYPE_U8 ? bits : bits - 1); /* the first too large */
  return value >= (dtype == KILN_DTYPE_U8 ? 0 : -end) && value < end;
}

int kiln__lower_const(kiln__lowering *l, kiln_dtype dtype, double value) {
  int class = kiln_loop_class(dtype);
  if (class == 0 || class == KILN_LOOP_CLASS_H) return kiln__lower_refuse(l, KILN_REASON_dtype);
  if (!kiln__lower_holds(dtype, value)) return kiln__lower_refuse(l, KILN_REASON_number_too_large);
  return kiln_loop_const(l->fn, l->nest, dtype, value);
}

int kiln__lower_size(kiln__lowering *l, kiln_dtype dtype, kiln_dim size) {
  if (kiln_dim_is_number(size)) return kiln__lower_const(l, dtype, (double)size);
  if (!kiln_dim_is_known(size)) return kiln__lower_refuse(l, KILN_REASON_types_unknown);
  return kiln__lower_cast(l, kiln_loop_dim(l->fn, l->nest, size), dtype);
}

kiln_dtype kiln__lower_dtype_of(const kiln__lowering *l, int value) {
  return value < 0 ? KILN_DTYPE_NONE : l->nest->body.data[value].dtype;
}

/* -- Values -- */

static int lower_number_value(kiln__lowering *l, const kiln_ir_value *value) {
  const kiln_ivalue *constant = kiln_ir_value_constant(value);
  if (constant) {
    switch (constant->tag) {
      case KILN_TAG_INT: return kiln_loop_const_i(l->fn, l->nest, KILN_DTYPE_I64, constant->u.i);
      case KILN_TAG_FLOAT: return kiln_loop_const_f(l->fn, l->nest, KILN_DTYPE_F64, constant->u.f);
      case KILN_TAG_BOOL: return kiln_loop_const_i(l->fn, l->nest, KILN_DTYPE_BOOL, constant->u.b);
      default: return kiln__lower_refuse(l, KILN_REASON_number_unknown);
    }
  }
  void *number = kiln_map_find_ptr(&l->scalars, value);
  if (!number) return kiln__lower_refuse(l, KILN_REASON_not_constant);
  return kiln_loop_scalar(l->fn, l->nest, (int)(intptr_t)number - 1);
}

static int lower_input_tensor(kiln__lowering *l, const kiln_ir_value *value,
                              const kiln__lower_map *map) {
  kiln_dims *dims = l->fn->dims;
  kiln_dim strides[KILN_LOOP_MAX_RANK] = {0}, offset = 0;
  int buffer = (int)(intptr_t)kiln_map_find_ptr(&l->buffers, value) - 1;
  if (buffer < 0) return kiln__lower_refuse(l, KILN_REASON_not_constant);
  for (int d = 0; d < map->rank; d++) {
    const kiln_dim stride = l->fn->buffers.data[buffer].strides[d];
    kiln_dim *moves = map->dims[d].loop >= 0 ? &strides[map->dims[d].loop] : NULL;
    offset = kiln_dim_plus(dims, offset, kiln_dim_product(dims, map->dims[d].offset, stride));
    if (moves) *moves = kiln_dim_plus(dims, *moves, stride);
  }
  return kiln_loop_load(l->fn, l->nest, buffer, offset, strides);
}

/* Scopes of one nest: 0 is its body, loops have their own numbers. */
static int innermost(const kiln__lowering *l) {
  return l->nest->open ? l->scopes[l->nest->open - 1] : 0;
}
static bool is_open(const kiln__lowering *l, int scope) {
  bool open = scope == 0;
  for (int i = 0; i < l->nest->open; i++) open |= l->scopes[i] == scope;
  return open;
}

int kiln__lower_open(kiln__lowering *l, kiln_loop_opcode kind, kiln_dim extent) {
  const int loop = l->nest->rank + l->nest->open;
  if (loop == KILN_LOOP_MAX_RANK) return kiln__lower_refuse(l, KILN_REASON_rank);
  l->scopes[l->nest->open] = ++l->scope_count;
  kiln_loop_open(l->fn, l->nest, kind, extent);
  return loop;
}
void kiln__lower_close(kiln__lowering *l) {
  if (l->reason == KILN_REASON_none) kiln_loop_end(l->fn, l->nest);
}

typedef struct memo_entry {
  kiln__lower_map map;
  int inst;
  int scope; /* that it is seen in */
  struct memo_entry *next;
} memo_entry;

static bool same_map(const kiln__lower_map *a, const kiln__lower_map *b) {
  if (a->rank != b->rank) return false;
  for (int d = 0; d < a->rank; d++)
    if (a->dims[d].offset != b->dims[d].offset || a->dims[d].loop != b->dims[d].loop) return false;
  return true;
}

int kiln__lower_value(kiln__lowering *l, const kiln_ir_value *value, const kiln__lower_map *map) {
  memo_entry *first = kiln_map_find_ptr(&l->memo, value);
  for (memo_entry *m = first; m; m = m->next)
    if (is_open(l, m->scope) && same_map(&m->map, map)) return m->inst;
  int inst;
  if (kiln_map_find_ptr(&l->buffers, value)) {
    inst = lower_input_tensor(l, value, map);
  } else {
    inst = lower_node(l, value->node, value->index, map);
    if (inst >= 0 &&
        l->nest->body.data[inst].dtype != kiln__lower_result_dtype(value->node, value->index))
      inst = kiln__lower_cast(l, inst, kiln__lower_result_dtype(value->node, value->index));
  }
  if (inst < 0) return -1;
  memo_entry *m = KILN_NEW(l->arena, memo_entry);
  *m = (memo_entry){*map, inst, innermost(l), first};
  kiln_map_set_ptr(&l->memo, value, m);
  return inst;
}

int kiln__lower_input(kiln__lowering *l, const kiln_node *node, int i, const kiln__lower_map *map,
                      kiln_dtype dtype) {
  const kiln_ir_value *value = kiln_node_input(node, i);
  if (value->type->kind != KILN_TYPE_TENSOR)
    return kiln__lower_cast(l, lower_number_value(l, value), dtype);
  const kiln_tensor_detail *detail = value->type->detail, *result = node->outputs[0]->type->detail;
  if (!detail || detail->rank < 0 || detail->rank > map->rank || result->rank != map->rank)
    return kiln__lower_refuse(l, KILN_REASON_types_unknown);
  const int missing = map->rank - detail->rank;
  kiln__lower_map own = {.rank = detail->rank};
  for (int d = 0; d < detail->rank; d++) {
    own.dims[d] = map->dims[missing + d];
    if (detail->sizes[d] == 1) {
      own.dims[d] = (kiln__lower_dim){0, -1};
    } else if (detail->sizes[d] != result->sizes[missing + d]) {
      /* [s0] and [2] may be added now; what s0 is next the operator itself must see. */
      return kiln__lower_refuse(l, KILN_REASON_types_unknown);
    }
  }
  return kiln__lower_cast(l, kiln__lower_value(l, value, &own), dtype);
}

/* -- Rows -- */

/* Dimensions that the arguments name; false: they are not known. */
static bool named_dims(const kiln_node *node, int rank, uint64_t *mask) {
  const kiln_ivalue *v = kiln_ir_value_constant(kiln_node_input(node, 1));
  const uint64_t all = rank < 64 ? (UINT64_C(1) << rank) - 1 : UINT64_MAX;
  *mask = 0;
  if (!v) return false;
  if (v->tag == KILN_TAG_NONE) *mask = all;
  const bool is_list = v->tag == KILN_TAG_LIST;
  if (is_list && v->u.list->count == 0) *mask = all;
  const int64_t count = is_list ? v->u.list->count : v->tag == KILN_TAG_INT;
  for (int64_t i = 0; i < count; i++) {
    int64_t dim = is_list ? v->u.list->items[i].u.i : v->u.i;
    if (rank == 0 && (dim == 0 || dim == -1)) continue;
    if (dim < 0) dim += rank;
    if (dim < 0 || dim >= rank || (*mask >> dim & 1)) return false; /* that raises */
    *mask |= UINT64_C(1) << dim;
  }
  return true;
}

bool kiln_codegen_reduces(const kiln_node *node, uint64_t *out_mask) {
  const lowering_entry *e = lowering_of(node->op);
  if (!e || !e->rows) return false;
  const kiln_tensor_detail *d = kiln_node_input(node, 0)->type->detail;
  const int rank = d && d->rank >= 0 ? d->rank : 0;
  *out_mask = (UINT64_C(1) << rank) - 1;
  if (e->dims == KILN__ROWS_all) return d != NULL;
  if (e->dims == KILN__ROWS_named) return d && named_dims(node, rank, out_mask);
  const kiln_ivalue *v = kiln_ir_value_constant(kiln_node_input(node, 1));
  if (!d || !v || v->tag != KILN_TAG_LIST || v->u.list->count > rank) return false;
  for (int64_t i = 0; i < v->u.list->count; i++) { /* what differs raises */
    if (v->u.list->items[i].u.i != d->sizes[rank - v->u.list->count + i]) return false;
  }
  *out_mask &= ~((UINT64_C(1) << (rank - v->u.list->count)) - 1);
  return true;
}

/* The map of the first input, reduced dimensions without loops, of the map of a result, which has
 * these dimensions or not. One element needs no loop: whoever wants a result broadcasts it or not,
 * and its rows are the same. */
static kiln__lower_map kept_map(const kiln_node *node, uint64_t mask, const kiln__lower_map *map) {
  const kiln_tensor_detail *detail = kiln_node_input(node, 0)->type->detail;
  const int rank = detail->rank;
  kiln__lower_map kept = {.rank = rank};
  for (int d = 0, at = 0; d < rank; d++) {
    const bool reduced = mask >> d & 1;
    kept.dims[d] = (kiln__lower_dim){0, -1};
    if (map->rank == rank) at = d;
    if (!reduced) kept.dims[d] = map->dims[at++];
    if (detail->sizes[d] == 1) kept.dims[d] = (kiln__lower_dim){0, -1};
  }
  return kept;
}

static kiln__rows *begin_rows(kiln__lowering *l, const lowering_entry *e, const kiln_node *node,
                              uint64_t mask, const kiln__lower_map *kept) {
  kiln__rows *rows = KILN_NEW(l->arena, kiln__rows);
  *rows = (kiln__rows){.node = node, .mask = mask, .kept = *kept, .values = {-1, -1}};
  e->begin(l, node, rows);
  if (l->reason != KILN_REASON_none) return NULL;
  kiln_vec_push(l->arena, &l->rows, rows);
  return rows;
}

/* In a nest that was planned the rows are there; else they are reduced where they are wanted. */
static int lower_rows(kiln__lowering *l, const lowering_entry *e, const kiln_node *node,
                      const kiln__lower_map *map) {
  uint64_t mask;
  if (!kiln_codegen_reduces(node, &mask)) return kiln__lower_refuse(l, KILN_REASON_not_constant);
  const kiln__lower_map kept = kept_map(node, mask, map);
  for (int i = 0; i < l->rows.count; i++) {
    const kiln__rows *rows = l->rows.data[i];
    if (rows->node == node && same_map(&rows->kept, &kept)) return e->rows(l, node, map, rows);
  }
  const kiln__rows *rows = begin_rows(l, e, node, mask, &kept);
  return rows ? e->rows(l, node, map, rows) : -1;
}

/* -- The graph -- */

static kiln_reason check_tensor_type(const kiln_type *type) {
  if (!kiln_type_has_dims(type)) return KILN_REASON_types_unknown;
  const kiln_tensor_detail *detail = type->detail;
  if (detail->device > KILN_DEVICE_CPU) return KILN_REASON_device;
  if (detail->rank > KILN_LOOP_MAX_RANK) return KILN_REASON_rank;
  if (!kiln_loop_class((kiln_dtype)detail->dtype)) return KILN_REASON_dtype;
  return KILN_REASON_none;
}

/* A tensor becomes a buffer, a number a scalar. */
static void add_input(kiln__lowering *l, const kiln_ir_value *value) {
  if (l->reason != KILN_REASON_none) return;
  if (value->type->kind == KILN_TYPE_TENSOR) {
    kiln_reason reason = check_tensor_type(value->type);
    if (reason != KILN_REASON_none) {
      kiln__lower_refuse(l, reason);
      return;
    }
    const kiln_tensor_detail *d = value->type->detail;
    const kiln__lower_sizes s = kiln__lower_sizes_of(l, value);
    int number = kiln_loop_add_input(l->fn, (kiln_dtype)d->dtype, d->rank, s.sizes, s.strides);
    kiln_map_set_ptr(&l->buffers, value, (void *)(intptr_t)(number + 1));
  } else {
    kiln_dtype kind = number_kind(value);
    if (kind == KILN_DTYPE_NONE) {
      kiln__lower_refuse(l, KILN_REASON_number_unknown);
      return;
    }
    int number = kiln_loop_add_scalar(l->fn, kind);
    kiln_map_set_ptr(&l->scalars, value, (void *)(intptr_t)(number + 1));
  }
}

static void add_outputs(kiln__lowering *l) {
  for (int i = 0; i < kiln_graph_output_count(l->graph); i++) {
    const kiln_ir_value *value = kiln_graph_output(l->graph, i);
    kiln_reason reason = value->type->kind == KILN_TYPE_TENSOR ? check_tensor_type(value->type)
                                                               : KILN_REASON_types_unknown;
    if (reason != KILN_REASON_none) {
      kiln__lower_refuse(l, reason);
      return;
    }
    const kiln_tensor_detail *d = value->type->detail;
    const kiln__lower_sizes s = kiln__lower_sizes_of(l, value);
    kiln_loop_add_output(l->fn, (kiln_dtype)d->dtype, d->rank, s.sizes, s.strides);
  }
}

static bool same_sizes(const kiln_loop_buffer *a, const kiln_loop_buffer *b) {
  return a->rank == b->rank && memcmp(a->sizes, b->sizes, sizeof(int64_t) * (size_t)a->rank) == 0;
}

/* Loops of the axes of an output, and the outputs of its sizes from number `o` on. */
static void store_alike(kiln__lowering *l, int o, const kiln__lower_map *map) {
  const int first = l->fn->input_count, count = kiln_graph_output_count(l->graph);
  const kiln_loop_buffer *like = &l->fn->buffers.data[first + o];
  for (; o < count; o++) {
    const kiln_loop_buffer *buffer = &l->fn->buffers.data[first + o];
    int64_t strides[KILN_LOOP_MAX_RANK] = {0};
    if (!same_sizes(buffer, like)) continue;
    const int value = kiln__lower_value(l, kiln_graph_output(l->graph, o), map);
    if (value < 0) return;
    for (int d = 0; d < map->rank; d++) strides[map->dims[d].loop] = buffer->strides[d];
    kiln_loop_store(l->fn, l->nest, first + o, 0, strides, value);
  }
}

static void begin_nest(kiln__lowering *l, int rank, const kiln_dim *extents) {
  l->nest = kiln_loop_add_nest(l->fn, rank, extents);
  l->memo = kiln_map_in(l->arena);
  l->rows.count = l->scope_count = 0;
}

/* Which axes of the output all rows of the nest go along, a bit each; false, with a reason: they
 * differ, or are found inside others. */
static bool axes_of_rows(kiln__lowering *l, int rank, uint32_t *out_axes) {
  *out_axes = (1u << rank) - 1;
  for (int i = 0; i < l->rows.count; i++) {
    const kiln__rows *rows = l->rows.data[i];
    uint32_t axes = 0;
    for (int d = 0; d < rows->kept.rank; d++) {
      const int loop = rows->kept.dims[d].loop;
      if (loop >= rank) return kiln__lower_refuse(l, KILN_REASON_rows_differ) == 0;
      if (loop >= 0) axes |= 1u << loop;
    }
    if (i > 0 && axes != *out_axes) return kiln__lower_refuse(l, KILN_REASON_rows_differ) == 0;
    *out_axes = axes;
  }
  return true;
}

/* A nest over the axes that rows go along: reductions, each before those that need it, then loops
 * over the other axes. */
static void lower_planned(kiln__lowering *l, int o, uint32_t axes) {
  const kiln_loop_buffer *like = &l->fn->buffers.data[l->fn->input_count + o];
  const int row_count = l->rows.count;
  kiln__rows **planned = KILN_NEW_ARRAY(l->arena, kiln__rows *, row_count + 1);
  memcpy(planned, l->rows.data, sizeof *planned * (size_t)row_count);
  int64_t extents[KILN_LOOP_MAX_RANK];
  kiln__lower_map map = {.rank = like->rank};
  int rank = 0, opened = 0;
  for (int d = 0; d < like->rank; d++) {
    if (!(axes >> d & 1)) continue;
    extents[rank] = like->sizes[d];
    map.dims[d] = (kiln__lower_dim){0, rank++};
  }
  begin_nest(l, rank, extents);
  for (int i = 0; i < row_count; i++) {
    kiln__lower_map kept = planned[i]->kept;
    for (int d = 0; d < kept.rank; d++) {
      if (kept.dims[d].loop >= 0) kept.dims[d].loop = map.dims[kept.dims[d].loop].loop;
    }
    const kiln_node *node = planned[i]->node;
    if (!begin_rows(l, lowering_of(node->op), node, planned[i]->mask, &kept)) return;
  }
  for (int d = 0; d < like->rank; d++) {
    if (axes >> d & 1) continue;
    map.dims[d] = (kiln__lower_dim){0, kiln__lower_open(l, KILN_LOOP_for, like->sizes[d])};
    opened++;
  }
  store_alike(l, o, &map);
  while (opened-- > 0) kiln__lower_close(l);
}

/* Lowers the outputs from `o` on that have its sizes into a new nest: with loops for all their
 * axes, or where rows are found that way, again. */
static void lower_alike(kiln__lowering *l, int o) {
  const kiln_loop_buffer *like = &l->fn->buffers.data[l->fn->input_count + o];
  kiln__lower_map map = {.rank = like->rank};
  uint32_t axes;
  for (int d = 0; d < like->rank; d++) map.dims[d] = (kiln__lower_dim){0, d};
  begin_nest(l, like->rank, like->sizes);
  store_alike(l, o, &map);
  if (l->reason != KILN_REASON_none || l->rows.count == 0) return;
  l->fn->nests.count--;
  if (axes_of_rows(l, like->rank, &axes)) lower_planned(l, o, axes);
}

static void lower_outputs(kiln__lowering *l) {
  const int first = l->fn->input_count;
  for (int o = 0; o < kiln_graph_output_count(l->graph); o++) {
    const kiln_loop_buffer *buffer = &l->fn->buffers.data[first + o];
    bool done = false;
    for (int p = 0; p < o; p++) done |= same_sizes(&l->fn->buffers.data[first + p], buffer);
    for (int d = 0; d < buffer->rank; d++) done |= buffer->sizes[d] == 0;
    if (!done) lower_alike(l, o);
    if (l->reason != KILN_REASON_none) return;
  }
}

kiln_status *kiln_codegen_lower(const kiln_graph *graph, kiln_arena *arena, kiln_reason *out_reason,
                                kiln_loop_fn **out_fn) {
  kiln__lowering lowering = {.graph = graph, .arena = arena}, *l = &lowering;
  l->fn = kiln_loop_create(arena);
  l->buffers = kiln_map_in(arena);
  l->scalars = kiln_map_in(arena);
  for (int i = 0; i < kiln_graph_input_count(graph); i++) add_input(l, kiln_graph_input(graph, i));
  if (l->reason == KILN_REASON_none) add_outputs(l);
  if (l->reason == KILN_REASON_none) lower_outputs(l);
  *out_reason = l->reason;
  if (l->reason != KILN_REASON_none)
    return KILN_ERROR(KILN_UNSUPPORTED, "%s", kiln_reason_sentence(l->reason));
  kiln_status *status = kiln_loop_verify(l->fn);
  if (!status) status = kiln_loop_optimize(l->fn, arena);
  if (!status) status = kiln_loop_verify(l->fn);
  if (status) {
    *out_reason = KILN_REASON_check_failed;
    return status;
  }
  *out_fn = l->fn;
  return NULL;
}

/* -- One node -- */

/* Inputs that a group would have: no constants. */
static void add_trial_inputs(kiln__lowering *l, const kiln_node *node) {
  for (int i = 0; i < node->input_count; i++) {
    const kiln_ir_value *value = kiln_node_input(node, i);
    if (value->type->kind == KILN_TYPE_TENSOR ||
        (!kiln_ir_value_constant(value) && number_kind(value) != KILN_DTYPE_NONE)) {
      add_input(l, value);
    }
  }
}

/* Tries the node on a throw-away nest, with every input a graph input of its type. */
static kiln_reason try_node(const kiln_node *node, kiln_arena *arena) {
  kiln__lowering lowering = {.graph = node->graph, .arena = arena}, *l = &lowering;
  l->fn = kiln_loop_create(arena);
  l->buffers = kiln_map_in(arena);
  l->scalars = kiln_map_in(arena);
  add_trial_inputs(l, node);
  for (int o = 0; o < node->output_count && l->reason == KILN_REASON_none; o++) {
    kiln_reason reason = check_tensor_type(node->outputs[o]->type);
    if (reason != KILN_REASON_none) {
      kiln__lower_refuse(l, reason);
      break;
    }
    kiln__lower_map map = {.rank = node->outputs[o]->type->detail->rank};
    int64_t extents[KILN_LOOP_MAX_RANK];
    for (int d = 0; d < map.rank; d++) {
      map.dims[d] = (kiln__lower_dim){0, d};
      extents[d] = 1; /* the first point */
    }
    l->nest = kiln_loop_add_nest(l->fn, map.rank, extents);
    l->memo = kiln_map_in(arena);
    (void)lower_node(l, node, o, &map);
  }
  return l->reason;
}

kiln_reason kiln_codegen_can_lower(const kiln_node *node) {
  if (!kiln_codegen_has_lowering(node->op)) return KILN_REASON_no_lowering;
  kiln_arena *arena = kiln_arena_scoped(kiln_arena_mem(node->graph->arena));
  const kiln_reason reason = try_node(node, arena);
  kiln_arena_destroy(arena);
  return reason;
}
