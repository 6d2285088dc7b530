/* loop.c: building loop IR, and facts about it. */
#include "codegen/loop/loop.h"

#include <limits.h>
#include <string.h>

#include "runtime/pack.h"

#define F KILN_LOOP_CLASS_F
#define I KILN_LOOP_CLASS_I
#define B KILN_LOOP_CLASS_B
#define ANY KILN_LOOP_CLASS_ANY
const kiln_loop_op_info kiln_loop_ops[KILN_LOOP__COUNT] = {
#define KILN_LOOP_OP(name, arity, rule, classes, eval, emit) \
  {#name, arity, KILN_LOOP_RULE_##rule, classes},
#include "codegen/loop/opcodes.def"
#undef KILN_LOOP_OP
};
#undef F
#undef I
#undef B
#undef ANY

int kiln_loop_class(kiln_dtype dtype) {
  switch (dtype) {
    case KILN_DTYPE_F32:
    case KILN_DTYPE_F64: return KILN_LOOP_CLASS_F;
    case KILN_DTYPE_U8:
    case KILN_DTYPE_I8:
    case KILN_DTYPE_I16:
    case KILN_DTYPE_I32:
    case KILN_DTYPE_I64: return KILN_LOOP_CLASS_I;
    case KILN_DTYPE_BOOL: return KILN_LOOP_CLASS_B;
    case KILN_DTYPE_F16:
    case KILN_DTYPE_BF16: return KILN_LOOP_CLASS_H;
    default: return 0;
  }
}

int kiln_loop_size(kiln_dtype dtype) {
  switch (dtype) {
    case KILN_DTYPE_F64:
    case KILN_DTYPE_I64: return 8;
    case KILN_DTYPE_F32:
    case KILN_DTYPE_I32: return 4;
    case KILN_DTYPE_I16:
    case KILN_DTYPE_F16:
    case KILN_DTYPE_BF16: return 2;
    default: return 1;
  }
}

/* -- Building -- */

kiln_loop_fn *kiln_loop_create(kiln_arena *arena) {
  kiln_loop_fn *fn = KILN_NEW(arena, kiln_loop_fn);
  fn->arena = arena;
  fn->dims = kiln_dims_create(arena);
  return fn;
}

static int add_buffer(kiln_loop_fn *fn, kiln_dtype dtype, int rank, const int64_t *sizes,
                      const int64_t *strides) {
  KILN_ASSERT(rank <= KILN_LOOP_MAX_RANK);
  kiln_loop_buffer buffer = {.dtype = dtype, .rank = rank};
  for (int d = 0; d < rank; d++) {
    buffer.sizes[d] = sizes[d];
    buffer.strides[d] = strides[d];
  }
  kiln_vec_push(fn->arena, &fn->buffers, buffer);
  return fn->buffers.count - 1;
}

int kiln_loop_add_input(kiln_loop_fn *fn, kiln_dtype dtype, int rank, const int64_t *sizes,
                        const int64_t *strides) {
  KILN_ASSERT(fn->input_count == fn->buffers.count);
  fn->input_count++;
  return add_buffer(fn, dtype, rank, sizes, strides);
}

void kiln_loop_set_copy(kiln_loop_fn *fn, int input, int rank, const int64_t *sizes,
                        const int *order, const kiln_loop_copy *copy) {
  kiln_loop_buffer *b = &fn->buffers.data[input];
  kiln_dim step = 1;
  KILN_ASSERT(input < fn->input_count && rank <= KILN_LOOP_MAX_RANK);
  b->copy = copy;
  b->rank = rank;
  for (int i = rank - 1; i >= 0; i--) {
    const int d = order[i];
    b->sizes[d] = sizes[d];
    b->strides[d] = step;
    step = kiln_dim_product(fn->dims, step, sizes[d]);
  }
}

void kiln_loop_memory_order(const kiln_loop_buffer *b, int *out_order) {
  for (int d = 0; d < b->rank; d++) {
    int at = d;
    for (; at > 0 && b->strides[out_order[at - 1]] < b->strides[d]; at--)
      out_order[at] = out_order[at - 1];
    out_order[at] = d;
  }
}

bool kiln_loop_dense_order(kiln_dims *dims, const kiln_loop_buffer *b, int *out_order) {
  bool taken[KILN_LOOP_MAX_RANK] = {false};
  kiln_dim step = 1;
  for (int i = b->rank - 1; i >= 0; i--) {
    int found = -1;
    for (int d = 0; d < b->rank; d++) {
      if (taken[d] || b->strides[d] != step) continue;
      if (found < 0 || b->sizes[found] != 1) found = d; /* one of size 1 lies within others */
    }
    if (found < 0) return false;
    taken[found] = true;
    out_order[i] = found;
    step = kiln_dim_product(dims, step, b->sizes[found]);
    if (!kiln_dim_is_known(step)) return false;
  }
  return true;
}

/* Zeros behind the last element of a dimension; false: their number is not known. */
static bool zeros_after(kiln_dims *dims, const kiln_loop_buffer *b, int d, int64_t *out_after) {
  const kiln_sum size = kiln_sum_of(dims, b->copy->sizes[d]);
  const kiln_sum end = kiln_sum_plus(size, kiln_sum_number(b->copy->before[d]));
  const kiln_sum after = kiln_sum_minus(kiln_sum_of(dims, b->sizes[d]), end);
  *out_after = after.constant;
  return after.known && after.count == 0 && after.constant >= 0;
}

bool kiln_loop_is_dense_copy(kiln_dims *dims, const kiln_loop_buffer *b) {
  int order[KILN_LOOP_MAX_RANK];
  int64_t after;
  bool good = kiln_loop_dense_order(dims, b, order);
  for (int d = 0; d < b->rank; d++) good &= zeros_after(dims, b, d, &after);
  return good;
}

/* The elements of the dimension that lies innermost are the columns of one panel. */
kiln_kernel_pack kiln_loop_describe_copy(const kiln_loop_fn *fn, int input) {
  const kiln_loop_buffer *b = &fn->buffers.data[input];
  const kiln_loop_copy *c = b->copy;
  const int last = b->rank - 1;
  kiln_kernel_pack pack = {.input = input,
                           .item_size = kiln_loop_size(b->dtype),
                           .rank = last,
                           .rounds = b->rounded,
                           .offset = c->from,
                           .as_it_lies = !b->rounded && c->from == 0};
  int order[KILN_LOOP_MAX_RANK];
  (void)kiln_loop_dense_order(fn->dims, b, order);
  for (int d = 0; d < b->rank; d++)
    pack.of_tensor |= !kiln_dim_is_number(c->sizes[d]) || !kiln_dim_is_number(c->strides[d]);
  for (int i = 0; i < b->rank; i++) {
    const int d = order[i];
    int64_t step = c->strides[d], after = 0;
    (void)zeros_after(fn->dims, b, d, &after);
    pack.as_it_lies &= step == b->strides[d] && !c->flipped[d];
    if (c->flipped[d]) {
      pack.offset += (c->sizes[d] - 1) * step;
      step = -step;
    }
    if (pack.of_tensor) pack.dims[i] = (int8_t)d;
    if (i == last) {
      pack.columns_before = c->before[d];
      pack.columns_after = after;
    } else {
      pack.before[i] = c->before[d];
      pack.after[i] = after;
    }
    if (pack.of_tensor) continue;
    if (i == last) {
      pack.columns = c->sizes[d];
      pack.column = step;
      pack.panel = b->sizes[d];
    } else {
      pack.sizes[i] = b->sizes[d];
      pack.strides[i] = step;
    }
  }
  if (!pack.of_tensor) kiln_pack_join_columns(&pack);
  return pack;
}

int kiln_loop_add_output(kiln_loop_fn *fn, kiln_dtype dtype, int rank, const int64_t *sizes,
                         const int64_t *strides) {
  KILN_ASSERT(fn->input_count + fn->output_count == fn->buffers.count);
  fn->output_count++;
  return add_buffer(fn, dtype, rank, sizes, strides);
}

int kiln_loop_add_local(kiln_loop_fn *fn, kiln_dtype dtype, int rank, const int64_t *sizes,
                        const int64_t *strides) {
  return add_buffer(fn, dtype, rank, sizes, strides);
}

int kiln_loop_add_scalar(kiln_loop_fn *fn, kiln_dtype dtype) {
  kiln_vec_push(fn->arena, &fn->scalars, dtype);
  return fn->scalars.count - 1;
}

kiln_loop_nest *kiln_loop_add_nest(kiln_loop_fn *fn, int rank, const int64_t *extents) {
  KILN_ASSERT(rank <= KILN_LOOP_MAX_RANK);
  kiln_loop_nest *nest = KILN_NEW(fn->arena, kiln_loop_nest);
  nest->rank = rank;
  for (int d = 0; d < rank; d++) nest->extents[d] = extents[d];
  kiln_vec_push(fn->arena, &fn->nests, nest);
  return nest;
}

static kiln_loop_inst *push(kiln_loop_fn *fn, kiln_loop_nest *nest, kiln_loop_opcode op,
                            kiln_dtype dtype) {
  kiln_loop_inst inst = {.op = op, .dtype = dtype, .args = {-1, -1, -1}, .index = -1};
  kiln_vec_push(fn->arena, &nest->body, inst);
  return &kiln_vec_last(&nest->body);
}

void kiln_loop_open(kiln_loop_fn *fn, kiln_loop_nest *nest, kiln_loop_opcode kind, int64_t extent) {
  KILN_ASSERT(nest->rank + nest->open < KILN_LOOP_MAX_RANK);
  push(fn, nest, kind, KILN_DTYPE_NONE)->offset = extent;
  nest->open++;
}
void kiln_loop_end(kiln_loop_fn *fn, kiln_loop_nest *nest) {
  KILN_ASSERT(nest->open > 0);
  push(fn, nest, KILN_LOOP_end, KILN_DTYPE_NONE);
  nest->open--;
}

static kiln_loop_inst *push_access(kiln_loop_fn *fn, kiln_loop_nest *nest, kiln_loop_opcode op,
                                   int buffer, int64_t offset, const int64_t *strides) {
  kiln_loop_inst *inst = push(fn, nest, op, fn->buffers.data[buffer].dtype);
  inst->index = buffer;
  inst->offset = offset;
  for (int d = 0; d < nest->rank + nest->open; d++) inst->strides[d] = strides[d];
  return inst;
}

int kiln_loop_load(kiln_loop_fn *fn, kiln_loop_nest *nest, int buffer, int64_t offset,
                   const int64_t *strides) {
  push_access(fn, nest, KILN_LOOP_load, buffer, offset, strides);
  return nest->body.count - 1;
}

int kiln_loop_const_f(kiln_loop_fn *fn, kiln_loop_nest *nest, kiln_dtype dtype, double value) {
  push(fn, nest, KILN_LOOP_const, dtype)->imm.f =
      dtype == KILN_DTYPE_F32 ? (double)(float)value : value;
  return nest->body.count - 1;
}

int kiln_loop_const_i(kiln_loop_fn *fn, kiln_loop_nest *nest, kiln_dtype dtype, int64_t value) {
  switch (dtype) {
    case KILN_DTYPE_U8: value = (uint8_t)value; break;
    case KILN_DTYPE_I8: value = (int8_t)value; break;
    case KILN_DTYPE_I16: value = (int16_t)value; break;
    case KILN_DTYPE_I32: value = (int32_t)value; break;
    case KILN_DTYPE_BOOL: value = value != 0; break;
    default: break;
  }
  push(fn, nest, KILN_LOOP_const, dtype)->imm.i = value;
  return nest->body.count - 1;
}

int kiln_loop_const(kiln_loop_fn *fn, kiln_loop_nest *nest, kiln_dtype dtype, double value) {
  if (kiln_loop_class(dtype) == KILN_LOOP_CLASS_F) return kiln_loop_const_f(fn, nest, dtype, value);
  if (dtype == KILN_DTYPE_BOOL) return kiln_loop_const_i(fn, nest, dtype, value != 0);
  bool fits = value >= -0x1p63 && value < 0x1p63;
  return kiln_loop_const_i(fn, nest, dtype, fits ? (int64_t)value : 0);
}

int kiln_loop_scalar(kiln_loop_fn *fn, kiln_loop_nest *nest, int scalar) {
  push(fn, nest, KILN_LOOP_scalar, fn->scalars.data[scalar])->index = scalar;
  return nest->body.count - 1;
}

int kiln_loop_dim(kiln_loop_fn *fn, kiln_loop_nest *nest, kiln_dim dim) {
  push(fn, nest, KILN_LOOP_dim, KILN_DTYPE_I64)->offset = dim;
  return nest->body.count - 1;
}

int kiln_loop_index(kiln_loop_fn *fn, kiln_loop_nest *nest, int64_t offset,
                    const int64_t *strides) {
  kiln_loop_inst *inst = push(fn, nest, KILN_LOOP_index, KILN_DTYPE_I64);
  inst->offset = offset;
  for (int d = 0; d < nest->rank + nest->open; d++) inst->strides[d] = strides[d];
  return nest->body.count - 1;
}

int kiln_loop_check(kiln_loop_fn *fn, kiln_loop_nest *nest, int value, kiln_dim extent) {
  kiln_loop_inst *inst = push(fn, nest, KILN_LOOP_check, KILN_DTYPE_I64);
  inst->args[0] = value;
  inst->offset = extent;
  return nest->body.count - 1;
}

int kiln_loop_gather(kiln_loop_fn *fn, kiln_loop_nest *nest, int buffer, int64_t offset,
                     const int64_t *strides, int index, kiln_dim step) {
  kiln_loop_inst *inst = push_access(fn, nest, KILN_LOOP_gather, buffer, offset, strides);
  inst->args[0] = index;
  inst->imm.step = step;
  return nest->body.count - 1;
}

int kiln_loop_cast(kiln_loop_fn *fn, kiln_loop_nest *nest, int value, kiln_dtype dtype) {
  kiln_dtype from = nest->body.data[value].dtype;
  if (from == dtype) return value;
  bool narrow =
      kiln_loop_class(from) == KILN_LOOP_CLASS_H || kiln_loop_class(dtype) == KILN_LOOP_CLASS_H;
  if (narrow && from != KILN_DTYPE_F32 && dtype != KILN_DTYPE_F32)
    value = kiln_loop_cast(fn, nest, value, KILN_DTYPE_F32);
  push(fn, nest, KILN_LOOP_cast, dtype)->args[0] = value;
  return nest->body.count - 1;
}

int kiln_loop_op(kiln_loop_fn *fn, kiln_loop_nest *nest, kiln_loop_opcode op, int a, int b, int c) {
  const kiln_loop_op_info *info = &kiln_loop_ops[op];
  int args[3] = {a, b, c};
  KILN_ASSERT(info->arity <= 3);
  kiln_dtype dtype = info->rule == KILN_LOOP_RULE_COMPARE  ? KILN_DTYPE_BOOL
                     : info->rule == KILN_LOOP_RULE_SELECT ? nest->body.data[b].dtype
                                                           : nest->body.data[a].dtype;
  kiln_loop_inst *inst = push(fn, nest, op, dtype);
  for (int i = 0; i < info->arity; i++) inst->args[i] = args[i];
  return nest->body.count - 1;
}

void kiln_loop_store(kiln_loop_fn *fn, kiln_loop_nest *nest, int buffer, int64_t offset,
                     const int64_t *strides, int value) {
  push_access(fn, nest, KILN_LOOP_store, buffer, offset, strides)->args[0] = value;
}

int kiln_loop_reduce(kiln_loop_fn *fn, kiln_loop_nest *nest, kiln_loop_opcode op, int a, int b,
                     int loops) {
  const bool find = kiln_loop_ops[op].rule == KILN_LOOP_RULE_FIND;
  const kiln_dtype dtype = find ? KILN_DTYPE_I64 : nest->body.data[a].dtype;
  kiln_loop_inst *inst = push(fn, nest, op, dtype);
  inst->args[0] = a;
  if (kiln_loop_ops[op].arity > 1) inst->args[1] = b;
  inst->index = loops;
  return nest->body.count - 1;
}

/* -- Facts -- */

void kiln_loop_find_scopes(const kiln_loop_nest *nest, kiln_loop_scopes *scopes) {
  const int count = nest->body.count;
  int open = -1, depth = nest->rank;
  for (int i = 0; i < count; i++) {
    const kiln_loop_rule rule = kiln_loop_ops[nest->body.data[i].op].rule;
    scopes->parent[i] = open;
    scopes->depth[i] = depth;
    if (rule == KILN_LOOP_RULE_OPEN) {
      open = i;
      depth++;
    } else if (rule == KILN_LOOP_RULE_END) {
      KILN_ASSERT(open >= 0);
      scopes->end[open] = i;
      open = scopes->parent[open];
      depth--;
    }
  }
  KILN_ASSERT(open < 0);
}

kiln_loop_scopes kiln_loop_scopes_of(const kiln_loop_nest *nest, kiln_arena *arena) {
  const int count = nest->body.count + 1;
  kiln_loop_scopes scopes = {.parent = KILN_NEW_ARRAY(arena, int, count),
                             .depth = KILN_NEW_ARRAY(arena, int, count),
                             .end = KILN_NEW_ARRAY(arena, int, count)};
  kiln_loop_find_scopes(nest, &scopes);
  return scopes;
}

int kiln_loop_home(const kiln_loop_nest *nest, const kiln_loop_scopes *scopes, int value) {
  const kiln_loop_inst *inst = &nest->body.data[value];
  int home = scopes->parent[value];
  for (int i = 0; kiln_loop_reduces(inst->op) && i < inst->index; i++) home = scopes->parent[home];
  return home;
}

bool kiln_loop_sees(const kiln_loop_nest *nest, const kiln_loop_scopes *scopes, int user,
                    int value) {
  const kiln_loop_inst *inst = &nest->body.data[value];
  int outer = -1, home = scopes->parent[value], at = scopes->parent[user];
  for (int i = 0; kiln_loop_reduces(inst->op) && i < inst->index; i++) {
    outer = home;
    home = scopes->parent[home];
  }
  if (outer >= 0 && user < scopes->end[outer]) return false;
  while (at > home) at = scopes->parent[at]; /* an OPEN stands before what is in it */
  return at == home;
}

bool kiln_loop_keep(kiln_loop_nest *nest, const bool *keep, kiln_arena *scratch) {
  const int count = nest->body.count;
  int kept = 0, *number = KILN_NEW_ARRAY(scratch, int, count + 1);
  for (int i = 0; i < count; i++) {
    if (!keep[i]) continue;
    kiln_loop_inst inst = nest->body.data[i];
    for (int a = 0; a < kiln_loop_ops[inst.op].arity; a++) inst.args[a] = number[inst.args[a]];
    number[i] = kept;
    nest->body.data[kept++] = inst;
  }
  nest->body.count = kept;
  return kept != count;
}

void kiln_loop_levels(const kiln_loop_nest *nest, int *out_levels) {
  int open = 0, stored = INT_MAX; /* the first buffer that is: inputs stand before, locals behind */
  for (int i = 0; i < nest->body.count; i++) {
    const kiln_loop_inst *inst = &nest->body.data[i];
    if (inst->op == KILN_LOOP_store && inst->index < stored) stored = inst->index;
  }
  for (int i = 0; i < nest->body.count; i++) {
    const kiln_loop_inst *inst = &nest->body.data[i];
    const kiln_loop_rule rule = kiln_loop_ops[inst->op].rule;
    open += (rule == KILN_LOOP_RULE_OPEN) - (rule == KILN_LOOP_RULE_END);
    const bool inside = open > 0 || rule == KILN_LOOP_RULE_END || kiln_loop_reduces(inst->op);
    const bool in_order = kiln_loop_is_access(inst) && inst->index >= stored; /* behind its store */
    int level = in_order || inside ? nest->rank : 0;
    if (kiln_loop_has_map(inst)) {
      for (int d = 0; d < nest->rank; d++)
        if (inst->strides[d] != 0 && level < d + 1) level = d + 1;
    }
    for (int a = 0; a < kiln_loop_ops[inst->op].arity; a++)
      if (out_levels[inst->args[a]] > level) level = out_levels[inst->args[a]];
    out_levels[i] = level;
  }
}
