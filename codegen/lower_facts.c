/* lower_facts.c: what lowerings ask of nodes, and the instructions that they make. */
#include "codegen/lower.h"
#include "ir/pass.h"

#include <math.h>
#include <string.h>

#include "runtime/half.h"

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

kiln_dtype kiln__lower_number_kind(const kiln_ir_value *value) {
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
      kiln_dtype kind = kiln__lower_number_kind(value);
      if (kind == KILN_DTYPE_NONE) return KILN_DTYPE_NONE;
      kiln_promotion_add_number(&promotion, kind);
    }
  }
  return kiln_promotion_result(&promotion);
}

bool kiln__lower_number(kiln__lowering *l, const kiln_node *node, int i, double *out_value) {
  const kiln_ivalue *constant = kiln_ir_value_constant(kiln_node_input(node, i));
  if (!constant || kiln__lower_number_kind(kiln_node_input(node, i)) == KILN_DTYPE_NONE) {
    kiln__lower_refuse(l, KILN_REASON_not_constant);
    return false;
  }
  *out_value = constant->tag == KILN_TAG_FLOAT  ? constant->u.f
               : constant->tag == KILN_TAG_BOOL ? (double)constant->u.b
                                                : (double)constant->u.i;
  return true;
}

bool kiln__lower_int(kiln__lowering *l, const kiln_node *node, int i, int64_t none, int64_t *out) {
  *out = none;
  if (kiln__lower_is_none(node, i)) return true;
  if (kiln_ir_value_const_int(kiln_node_input(node, i), out)) return true;
  return kiln__lower_refuse(l, KILN_REASON_not_constant) == 0;
}
const kiln_shape_list *kiln__lower_ints(kiln__lowering *l, const kiln_node *node, int i) {
  return kiln_shape_ints_of(l->arena, kiln_node_input(node, i));
}
bool kiln__lower_dimension(kiln__lowering *l, const kiln_node *node, int i, int rank, int *out) {
  int64_t dim;
  if (!kiln__lower_int(l, node, i, 0, &dim)) return false;
  if (dim < 0) dim += rank;
  if (dim < 0 || dim >= rank) return kiln__lower_refuse(l, KILN_REASON_raises) == 0;
  *out = (int)dim;
  return true;
}
bool kiln__lower_has_sizes(kiln__lowering *l, const kiln_node *node, int i) {
  const kiln_tensor_detail *a = kiln_node_input(node, 0)->type->detail;
  const kiln_tensor_detail *b =
      kiln__lower_is_tensor(node, i) ? kiln_node_input(node, i)->type->detail : NULL;
  bool same = b && a->rank == b->rank;
  for (int d = 0; same && d < a->rank; d++) same = a->sizes[d] == b->sizes[d];
  return same || kiln__lower_refuse(l, KILN_REASON_types_unknown) == 0;
}
kiln__lower_sizes kiln__lower_sizes_of(kiln__lowering *l, const kiln_ir_value *value) {
  const kiln_tensor_detail *d = value->type->detail;
  kiln__lower_sizes s = {{0}, {0}};
  for (int i = 0; i < d->rank; i++) {
    s.sizes[i] = kiln_dim_copy(l->fn->dims, d->dims, d->sizes[i]);
    s.strides[i] = kiln_dim_copy(l->fn->dims, d->dims, d->strides[i]);
  }
  if (d->physical)
    kiln_physical_dims(l->fn->dims, (kiln_physical)d->physical, d->rank, s.sizes, s.strides);
  return s;
}

/* -- Copies of inputs -- */

/* Its buffer, as that copy from here on. */
static int set_copy(kiln__lowering *l, const kiln_ir_value *value, int rank, const int64_t *sizes,
                    const int *order, const kiln_loop_copy *copy) {
  const int buffer = (int)(intptr_t)kiln_map_find_ptr(&l->buffers, value) - 1;
  if (buffer < 0) return kiln__lower_refuse(l, KILN_REASON_read_again);
  const kiln_loop_copy *known = l->fn->buffers.data[buffer].copy;
  if (known && memcmp(known, copy, sizeof *copy) != 0)
    return kiln__lower_refuse(l, KILN_REASON_read_again);
  if (known) return buffer;
  kiln_loop_copy *own = KILN_NEW(l->fn->arena, kiln_loop_copy);
  *own = *copy;
  kiln_loop_set_copy(l->fn, buffer, rank, sizes, order, own);
  l->copied = true;
  return buffer;
}

int kiln__lower_copy(kiln__lowering *l, const kiln_ir_value *value, const int64_t *sizes,
                     kiln_physical physical, kiln_loop_copy copy) {
  const kiln__lower_sizes of = kiln__lower_sizes_of(l, value);
  const int rank = value->type->detail->rank;
  int order[KILN_LOOP_MAX_RANK];
  for (int d = 0; d < rank; d++) {
    if (copy.sizes[d] == 0) copy.sizes[d] = of.sizes[d];
    copy.strides[d] = of.strides[d];
    if (!kiln_dim_is_known(sizes[d])) return kiln__lower_refuse(l, KILN_REASON_dynamic_as_static);
  }
  kiln_physical_order(physical, rank, order);
  return set_copy(l, value, rank, sizes, order, &copy);
}

int kiln__lower_reordered(kiln__lowering *l, const kiln_ir_value *value, int rank,
                          const kiln_loop_copy *copy) {
  int order[KILN_LOOP_MAX_RANK];
  for (int d = 0; d < rank; d++) order[d] = d;
  return set_copy(l, value, rank, copy->sizes, order, copy);
}

int kiln__lower_refuse(kiln__lowering *l, kiln_reason reason) {
  if (l->reason == KILN_REASON_none) l->reason = reason;
  return -1;
}

void kiln__lower_close(kiln__lowering *l) {
  if (l->reason == KILN_REASON_none) kiln_loop_end(l->fn, l->nest);
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

/* -- Orders of symbols -- */

void kiln__lower_assume(kiln__lowering *l, kiln_ir_value *const *inputs, int count) {
  if (count == 0) return;
  const kiln_dims *dims = kiln_type_table_dims(inputs[0]->node->graph->types);
  uint64_t symbols = 0;
  for (int i = 0; i < count; i++) {
    const kiln_tensor_detail *d =
        kiln_type_is_tensor(inputs[i]->type) ? inputs[i]->type->detail : NULL;
    if (!d || d->rank < 0) continue;
    for (int k = 0; k < d->rank; k++) symbols |= kiln_dim_symbols(d->dims, d->sizes[k]);
  }
  for (int i = 0; i < kiln_dims_assumed(dims); i++) {
    const kiln_dim_order order = kiln_dims_assumed_at(dims, i);
    const uint64_t here = kiln_dim_symbols(dims, order.less) | kiln_dim_symbols(dims, order.more);
    if (here & ~symbols) continue;
    (void)kiln_dims_assume(l->fn->dims,
                           (kiln_dim_order){kiln_dim_copy(l->fn->dims, dims, order.less),
                                            kiln_dim_copy(l->fn->dims, dims, order.more)});
  }
}

void kiln__lower_ask(const kiln__lowering *l, kiln_ir_value *const *inputs, int count,
                     const kiln_dim_wishes *wishes) {
  kiln_dims *dims = count ? kiln_type_table_dims(inputs[0]->node->graph->types) : NULL;
  for (int i = 0; dims && i < wishes->count; i++) {
    const kiln_dim less = kiln_dim_copy(dims, l->fn->dims, wishes->all[i].less);
    const kiln_dim more = kiln_dim_copy(dims, l->fn->dims, wishes->all[i].more);
    (void)kiln_dims_prove(dims, kiln_sum_of(dims, less), kiln_sum_of(dims, more));
  }
}
