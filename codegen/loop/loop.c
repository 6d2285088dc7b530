/* loop.c: building loop IR, and facts about it. */
#include "codegen/loop/loop.h"

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

int kiln_loop_add_output(kiln_loop_fn *fn, kiln_dtype dtype, int rank, const int64_t *sizes,
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

int kiln_loop_load(kiln_loop_fn *fn, kiln_loop_nest *nest, int buffer, int64_t offset,
                   const int64_t *strides) {
  kiln_loop_inst *inst = push(fn, nest, KILN_LOOP_load, fn->buffers.data[buffer].dtype);
  inst->index = buffer;
  inst->offset = offset;
  for (int d = 0; d < nest->rank; d++) inst->strides[d] = strides[d];
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
  kiln_loop_inst *inst = push(fn, nest, KILN_LOOP_store, fn->buffers.data[buffer].dtype);
  inst->args[0] = value;
  inst->index = buffer;
  inst->offset = offset;
  for (int d = 0; d < nest->rank; d++) inst->strides[d] = strides[d];
}

/* -- Facts -- */

void kiln_loop_levels(const kiln_loop_nest *nest, int *out_levels) {
  for (int i = 0; i < nest->body.count; i++) {
    const kiln_loop_inst *inst = &nest->body.data[i];
    int level = inst->op == KILN_LOOP_store ? nest->rank : 0;
    if (inst->op == KILN_LOOP_load) {
      for (int d = 0; d < nest->rank; d++)
        if (inst->strides[d] != 0) level = d + 1;
    }
    for (int a = 0; a < kiln_loop_ops[inst->op].arity; a++)
      if (out_levels[inst->args[a]] > level) level = out_levels[inst->args[a]];
    out_levels[i] = level;
  }
}

static bool all_numbers(int count, const kiln_dim *dims) {
  for (int d = 0; d < count; d++) {
    if (!kiln_dim_is_number(dims[d])) return false;
  }
  return true;
}

static bool nest_is_static(const kiln_loop_nest *nest) {
  for (int i = 0; i < nest->body.count; i++) {
    const kiln_loop_inst *inst = &nest->body.data[i];
    if (inst->op != KILN_LOOP_load && inst->op != KILN_LOOP_store) continue;
    if (!kiln_dim_is_number(inst->offset) || !all_numbers(nest->rank, inst->strides)) return false;
  }
  return all_numbers(nest->rank, nest->extents);
}

kiln_status *kiln_loop_needs_numbers(const kiln_loop_fn *fn) {
  bool is_static = true;
  for (int i = 0; i < fn->buffers.count; i++) {
    const kiln_loop_buffer *b = &fn->buffers.data[i];
    is_static &= all_numbers(b->rank, b->sizes) && all_numbers(b->rank, b->strides);
  }
  for (int n = 0; n < fn->nests.count; n++) is_static &= nest_is_static(fn->nests.data[n]);
  if (is_static) return NULL;
  return KILN_ERROR(KILN_UNSUPPORTED, "the kernel has symbolic sizes: back ends need numbers");
}

int kiln_loop_nest_axes(const kiln_loop_nest *nest) {
  const int axes = nest->rank > 1 ? nest->rank - 1 : nest->rank;
  return axes < KILN_KERNEL_AXES ? axes : KILN_KERNEL_AXES;
}
int64_t kiln_loop_nest_extent(const kiln_loop_nest *nest, int axis) {
  return axis < kiln_loop_nest_axes(nest) ? nest->extents[axis] : 1;
}

enum { FIRST_MATH = KILN_LOOP_exp };
_Static_assert((int)FIRST_MATH == (int)KILN_LOOP_ge + 1,
               "the functions of runtime/math are the last opcodes, exp the first of them");

/* Rough nanoseconds of one instruction on one element, with wide vectors. */
static double inst_cost(const kiln_loop_inst *inst) {
  switch (inst->op) {
    case KILN_LOOP_load:
    case KILN_LOOP_store: return 0.05;
    case KILN_LOOP_const:
    case KILN_LOOP_scalar: return 0;
    case KILN_LOOP_div:
    case KILN_LOOP_sqrt: return 0.15;
    default: return (int)inst->op >= FIRST_MATH ? 0.4 : 0.03;
  }
}

static bool same_map(const kiln_loop_nest *nest, const kiln_loop_inst *a, const kiln_loop_inst *b) {
  if (a->offset != b->offset) return false;
  for (int d = 0; d < nest->rank; d++) {
    if (nest->extents[d] > 1 && a->strides[d] != b->strides[d]) return false;
  }
  return true;
}

static bool same_layout(const kiln_loop_buffer *a, const kiln_loop_buffer *b) {
  if (a->dtype != b->dtype || a->rank != b->rank) return false;
  const size_t bytes = (size_t)a->rank * sizeof(int64_t);
  return memcmp(a->sizes, b->sizes, bytes) == 0 && memcmp(a->strides, b->strides, bytes) == 0;
}

/* Whether all loads of `input` in the nest come before a store to `output` at the same place. */
static bool reads_before(const kiln_loop_nest *nest, int input, int output) {
  const kiln_loop_inst *store = NULL;
  for (int i = nest->body.count - 1; i >= 0; i--) {
    const kiln_loop_inst *inst = &nest->body.data[i];
    if (inst->op == KILN_LOOP_store && inst->index == output) store = inst;
    if (inst->op != KILN_LOOP_load || inst->index != input) continue;
    if (!store || !same_map(nest, inst, store)) return false;
  }
  return true;
}

/* The inputs in whose memory each output may be written. */
static void find_donors(const kiln_loop_fn *fn, uint32_t donors[KILN_KERNEL_DONORS]) {
  for (int o = 0; o < KILN_KERNEL_DONORS; o++) {
    const int output = fn->input_count + o;
    for (int i = 0; output < fn->buffers.count && i < fn->input_count && i < 32; i++) {
      bool fits = same_layout(&fn->buffers.data[i], &fn->buffers.data[output]);
      for (int n = 0; n < fn->nests.count && fits; n++) {
        fits = reads_before(fn->nests.data[n], i, output);
      }
      if (fits) donors[o] |= 1u << i;
    }
  }
}

/* Iterations of `cost` nanoseconds that are worth a thread: a microsecond, as a fork and join takes
 * 0.4. Whole multiples keep vectors whole. */
static int64_t grain_of(double cost) {
  const double count = cost > 0 ? 1000 / cost : 1;
  const int64_t grain = count < 1 ? 1 : count > 0x1p40 ? INT64_C(1) << 40 : (int64_t)count;
  return grain > 64 ? (grain + 63) / 64 * 64 : grain;
}
/* By the axis that gives the most pieces, the outermost of equal ones. A kernel of 2 x 64 planes
 * that take 10 us each is cut into 64, not into 2. */
static void cut_grid(kiln_kernel_info *info) {
  int64_t most = -1;
  for (int axis = 0; axis < KILN_KERNEL_AXES; axis++) {
    const int64_t grain = grain_of(info->cost / (double)info->grid.end[axis]);
    const int64_t pieces = info->grid.end[axis] / grain;
    if (pieces <= most) continue;
    most = pieces;
    info->axis = axis;
    info->grain = grain;
  }
}
kiln_kernel_info kiln_loop_info(const kiln_loop_fn *fn) {
  kiln_kernel_info info = {.input_count = fn->input_count,
                           .output_count = fn->buffers.count - fn->input_count,
                           .scalar_count = fn->scalars.count,
                           .grid.end = {fn->nests.count ? 0 : 1, 1, 1}};
  for (int n = 0; n < fn->nests.count; n++) {
    const kiln_loop_nest *nest = fn->nests.data[n];
    double points = 1, each = 0;
    for (int d = 0; d < nest->rank; d++) points *= (double)nest->extents[d];
    for (int i = 0; i < nest->body.count; i++) each += inst_cost(&nest->body.data[i]);
    info.cost += points * each;
    info.grid.end[0] += kiln_loop_nest_extent(nest, 0);
    for (int axis = 1; axis < KILN_KERNEL_AXES; axis++) {
      const int64_t extent = kiln_loop_nest_extent(nest, axis);
      if (extent > info.grid.end[axis]) info.grid.end[axis] = extent;
    }
  }
  cut_grid(&info);
  find_donors(fn, info.donors);
  return info;
}
