/* verify.c: what every kernel in loop IR must satisfy, so that back ends need no checks.
 *
 * Overlap of stores is checked between whole nests: their index ranges in one output must be
 * disjoint boxes, which cat's splitting makes by construction; within a nest a store must move with
 * every loop. */
#include "codegen/loop/loop.h"

#define REFUSE(...) return KILN_ERROR(KILN_INTERNAL, "loop IR: " __VA_ARGS__)

/* What (size - 1) x stride adds up to over the dimensions: the distance from the first element to
 * the last. Products of two symbols are no sums: those dimensions are left out, as a bit each in
 * *out_products, for the verifier to compare with a buffer's own. */
static kiln_status *distance(const kiln_dims *dims, int rank, const kiln_dim *sizes,
                             const kiln_dim *strides, kiln_sum *out_last, uint32_t *out_products,
                             bool *out_empty) {
  *out_last = kiln_sum_number(0);
  *out_products = 0;
  *out_empty = false;
  for (int d = 0; d < rank; d++) {
    if (!kiln_dim_is_known(sizes[d]) || !kiln_dim_is_known(strides[d])) {
      REFUSE("a negative size or stride");
    }
    *out_empty |= sizes[d] == 0;
    if (!kiln_dim_is_number(sizes[d]) && !kiln_dim_is_number(strides[d])) {
      *out_products |= 1u << d;
      continue;
    }
    const kiln_sum steps = kiln_sum_minus(kiln_sum_of(dims, sizes[d]), kiln_sum_number(1));
    *out_last = kiln_sum_plus(*out_last, kiln_sum_product(steps, kiln_sum_of(dims, strides[d])));
    if (!out_last->known) REFUSE("a buffer of more than 2^63 elements");
  }
  return NULL;
}

static kiln_status *verify_buffer(const kiln_loop_fn *fn, const kiln_loop_buffer *b) {
  kiln_sum last;
  uint32_t products;
  bool empty;
  int64_t least, most;
  KILN_TRY(distance(fn->dims, b->rank, b->sizes, b->strides, &last, &products, &empty));
  if (!empty && last.count == 0 && last.constant > INT64_MAX / 16) {
    REFUSE("a buffer of more than 2^59 elements");
  }
  if (!kiln_sum_range(fn->dims, last, &least, &most)) REFUSE("a buffer whose size has no bounds");
  return NULL;
}

/* Whether each loop whose steps are a product of symbols walks a dimension of the buffer of its
 * own: with the same stride, and not beyond the end. */
static bool walks_dimensions(const kiln_dims *dims, const kiln_loop_nest *nest,
                             const kiln_loop_inst *inst, uint32_t loops,
                             const kiln_loop_buffer *buffer, uint32_t free) {
  for (int d = 0; d < nest->rank; d++) {
    if (!(loops >> d & 1)) continue;
    const kiln_sum extent = kiln_sum_of(dims, nest->extents[d]);
    int at = 0;
    for (; at < buffer->rank; at++) {
      const kiln_sum left = kiln_sum_minus(kiln_sum_of(dims, buffer->sizes[at]), extent);
      if ((free >> at & 1) && buffer->strides[at] == inst->strides[d] &&
          kiln_sum_is_natural(dims, left)) {
        break;
      }
    }
    if (at == buffer->rank) return false;
    free &= ~(1u << at);
  }
  return true;
}

static kiln_status *verify_access(const kiln_loop_fn *fn, const kiln_loop_nest *nest, int number) {
  const kiln_loop_inst *inst = &nest->body.data[number];
  bool is_store = inst->op == KILN_LOOP_store;
  if (inst->index < 0 || inst->index >= fn->buffers.count) REFUSE("%%%d: no such buffer", number);
  const kiln_loop_buffer *buffer = &fn->buffers.data[inst->index];
  if (is_store == (inst->index < fn->input_count))
    REFUSE("%%%d: inputs are loaded, outputs stored", number);
  if (inst->dtype != buffer->dtype) REFUSE("%%%d: not the type of its buffer", number);
  kiln_sum last, reach;
  uint32_t free, products;
  bool empty, none;
  KILN_TRY(distance(fn->dims, buffer->rank, buffer->sizes, buffer->strides, &last, &free, &empty));
  KILN_TRY(distance(fn->dims, nest->rank, nest->extents, inst->strides, &reach, &products, &none));
  const kiln_sum from = kiln_sum_plus(reach, kiln_sum_of(fn->dims, inst->offset));
  if (empty || !kiln_sum_is_natural(fn->dims, kiln_sum_minus(last, from)) ||
      !walks_dimensions(fn->dims, nest, inst, products, buffer, free))
    REFUSE("%%%d reaches outside of b%d", number, inst->index);
  for (int d = 0; is_store && d < nest->rank; d++)
    if (nest->extents[d] != 1 && inst->strides[d] == 0)
      REFUSE("%%%d stores to one place repeatedly", number);
  return NULL;
}

static kiln_status *verify_types(const kiln_loop_nest *nest, int number) {
  const kiln_loop_inst *inst = &nest->body.data[number];
  const kiln_loop_op_info *info = &kiln_loop_ops[inst->op];
  kiln_dtype types[3] = {KILN_DTYPE_NONE, KILN_DTYPE_NONE, KILN_DTYPE_NONE};
  for (int a = 0; a < info->arity; a++) {
    int arg = inst->args[a];
    if (arg < 0 || arg >= number || nest->body.data[arg].op == KILN_LOOP_store)
      REFUSE("%%%d: operand %d is not an earlier value", number, a);
    types[a] = nest->body.data[arg].dtype;
  }
  kiln_dtype operand = info->rule == KILN_LOOP_RULE_COMPARE ? types[0] : inst->dtype;
  int class = kiln_loop_class(operand);
  if (class == 0 || kiln_loop_class(inst->dtype) == 0) REFUSE("%%%d: unknown type", number);
  if (!(class & info->classes)) REFUSE("%%%d: %s does not take this type", number, info->name);
  switch (info->rule) {
    case KILN_LOOP_RULE_LEAF: break;
    case KILN_LOOP_RULE_STORE:
      if (types[0] != inst->dtype) REFUSE("%%%d stores a value of another type", number);
      break;
    case KILN_LOOP_RULE_CAST:
      if (((kiln_loop_class(types[0]) | class) & KILN_LOOP_CLASS_H) && types[0] != KILN_DTYPE_F32 &&
          inst->dtype != KILN_DTYPE_F32)
        REFUSE("%%%d: f16 and bf16 are cast from and to f32 only", number);
      break;
    case KILN_LOOP_RULE_SAME:
    case KILN_LOOP_RULE_COMPARE:
      for (int a = 0; a < info->arity; a++)
        if (types[a] != operand) REFUSE("%%%d: operands of different types", number);
      if (info->rule == KILN_LOOP_RULE_COMPARE && inst->dtype != KILN_DTYPE_BOOL)
        REFUSE("%%%d: a comparison gives bool", number);
      break;
    case KILN_LOOP_RULE_SELECT:
      if (types[0] != KILN_DTYPE_BOOL || types[1] != inst->dtype || types[2] != inst->dtype)
        REFUSE("%%%d: select of wrong types", number);
      break;
  }
  return NULL;
}

/* How far the loops of a nest move a store along one dimension of its output: all loops but those
 * that only make whole steps of the dimension before (`outer`, 0 for the first). */
static int64_t reach_of(const kiln_loop_nest *nest, const kiln_loop_inst *store, int64_t outer) {
  int64_t reach = 0;
  for (int d = 0; d < nest->rank; d++)
    if (outer == 0 || store->strides[d] % outer != 0)
      reach += (nest->extents[d] - 1) * store->strides[d];
  return reach;
}

static bool is_static(const kiln_loop_buffer *b, const kiln_loop_nest *nest,
                      const kiln_loop_inst *store) {
  bool numbers = kiln_dim_is_number(store->offset);
  for (int d = 0; d < nest->rank; d++) {
    numbers &= kiln_dim_is_number(nest->extents[d]) && kiln_dim_is_number(store->strides[d]);
  }
  for (int d = 0; d < b->rank; d++) {
    numbers &= kiln_dim_is_number(b->sizes[d]) && kiln_dim_is_number(b->strides[d]);
  }
  return numbers;
}

/* Whether two stores to an output may meet: they do not if their ranges are apart along some
 * dimension, taken from the greatest stride down. Errs on the side of true. */
static bool may_overlap(const kiln_loop_buffer *b, const kiln_loop_nest *x,
                        const kiln_loop_inst *sx, const kiln_loop_nest *y,
                        const kiln_loop_inst *sy) {
  if (!is_static(b, x, sx) || !is_static(b, y, sy)) return true;
  int64_t ox = sx->offset, oy = sy->offset, outer = 0;
  bool used[KILN_LOOP_MAX_RANK] = {false};
  for (int n = 0; n < b->rank; n++) {
    int best = 0;
    while (used[best]) best++;
    for (int d = best + 1; d < b->rank; d++)
      if (!used[d] && b->strides[d] > b->strides[best]) best = d;
    used[best] = true;
    int64_t stride = b->strides[best];
    if (stride == 0 || b->sizes[best] == 1) continue;
    int64_t end_x = (ox + reach_of(x, sx, outer)) / stride;
    int64_t end_y = (oy + reach_of(y, sy, outer)) / stride;
    if (end_x < oy / stride || end_y < ox / stride) return false;
    ox %= stride;
    oy %= stride;
    outer = stride;
  }
  return true;
}

static kiln_status *verify_stores(const kiln_loop_fn *fn) {
  for (int n = 0; n < fn->nests.count; n++) {
    const kiln_loop_nest *x = fn->nests.data[n];
    for (int i = 0; i < x->body.count; i++) {
      const kiln_loop_inst *sx = &x->body.data[i];
      if (sx->op != KILN_LOOP_store) continue;
      for (int m = n; m < fn->nests.count; m++) {
        const kiln_loop_nest *y = fn->nests.data[m];
        for (int j = m == n ? i + 1 : 0; j < y->body.count; j++) {
          const kiln_loop_inst *sy = &y->body.data[j];
          if (sy->op != KILN_LOOP_store || sy->index != sx->index) continue;
          if (may_overlap(&fn->buffers.data[sx->index], x, sx, y, sy))
            REFUSE("nests %d and %d may store to the same places of b%d", n, m, sx->index);
        }
      }
    }
  }
  return NULL;
}

kiln_status *kiln_loop_verify(const kiln_loop_fn *fn) {
  for (int i = 0; i < fn->scalars.count; i++) {
    kiln_dtype t = fn->scalars.data[i];
    if (t != KILN_DTYPE_I64 && t != KILN_DTYPE_F64 && t != KILN_DTYPE_BOOL)
      REFUSE("scalar x%d is not i64, f64 or bool", i);
  }
  for (int i = 0; i < fn->buffers.count; i++) {
    const kiln_loop_buffer *b = &fn->buffers.data[i];
    if (!kiln_loop_class(b->dtype)) REFUSE("b%d: unknown type", i);
    KILN_TRY(verify_buffer(fn, b));
  }
  for (int n = 0; n < fn->nests.count; n++) {
    const kiln_loop_nest *nest = fn->nests.data[n];
    for (int d = 0; d < nest->rank; d++)
      if (nest->extents[d] == 0 || !kiln_dim_is_known(nest->extents[d]))
        REFUSE("nest %d has an empty loop", n);
    for (int i = 0; i < nest->body.count; i++) {
      const kiln_loop_inst *inst = &nest->body.data[i];
      KILN_TRY(verify_types(nest, i));
      if (inst->op == KILN_LOOP_load || inst->op == KILN_LOOP_store)
        KILN_TRY(verify_access(fn, nest, i));
      if (inst->op == KILN_LOOP_scalar && (inst->index < 0 || inst->index >= fn->scalars.count ||
                                           inst->dtype != fn->scalars.data[inst->index]))
        REFUSE("%%%d: no such scalar of that type", i);
      if (inst->op == KILN_LOOP_const && kiln_loop_class(inst->dtype) == KILN_LOOP_CLASS_H)
        REFUSE("%%%d: no constants of f16 and bf16", i);
    }
  }
  return verify_stores(fn);
}
