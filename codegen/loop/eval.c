/* eval.c: the evaluator: strips of STRIP elements of the innermost loop, one register of STRIP
 * slots for each instruction, in the caller's scratch. */
#include "codegen/loop/eval.h"

#include <string.h>

#include "base/checked.h"
#include "base/sanitize.h"
#include "runtime/math/math.h"

#include "codegen/loop/eval_ops.h"

enum { STRIP = 64, SLOT_BYTES = 8, REGISTER_BYTES = STRIP * SLOT_BYTES };

typedef struct eval_inst {
  kiln_loop_inst inst;
  int size;   /* bytes of an element */
  eval_fn fn; /* NULL: load, store, const, scalar, select */
} eval_inst;

typedef struct eval_nest {
  int rank, count, axes; /* of the grid: outermost loops that a box cuts */
  int64_t extents[KILN_LOOP_MAX_RANK], grid[KILN_KERNEL_AXES];
  eval_inst *body;
} eval_nest;

struct kiln_eval_program {
  kiln_mem *mem; /* borrowed */
  size_t bytes;  /* of this block */
  int nest_count;
  eval_nest *nests;
};

static int type_index(kiln_dtype dtype) {
  switch (dtype) {
#define CASE(name, suffix, type) \
  case KILN_DTYPE_##name: return EVAL_TYPE_##name;
    EVAL_TYPES(CASE)
#undef CASE
    default: break;
  }
  KILN_ASSERT(false); /* the verifier refuses it */
  return 0;
}

static eval_fn function_of(const kiln_loop_nest *nest, const kiln_loop_inst *inst) {
  const kiln_loop_op_info *info = &kiln_loop_ops[inst->op];
  if (inst->op == KILN_LOOP_cast) {
    kiln_dtype from = nest->body.data[inst->args[0]].dtype;
    if (from == KILN_DTYPE_F16) return cast_f16_to_f32;
    if (from == KILN_DTYPE_BF16) return cast_bf16_to_f32;
    if (inst->dtype == KILN_DTYPE_F16) return cast_f32_to_f16;
    if (inst->dtype == KILN_DTYPE_BF16) return cast_f32_to_bf16;
    return cast_table[type_index(from)][type_index(inst->dtype)];
  }
  if (info->rule == KILN_LOOP_RULE_SAME) return eval_table[inst->op][type_index(inst->dtype)];
  if (info->rule == KILN_LOOP_RULE_COMPARE)
    return eval_table[inst->op][type_index(nest->body.data[inst->args[0]].dtype)];
  return NULL;
}

static kiln_status *create(const kiln_loop_fn *fn, kiln_mem *mem, kiln_eval_program **out_program,
                           size_t *out_scratch) {
  size_t bytes = sizeof(kiln_eval_program) + sizeof(eval_nest) * (size_t)fn->nests.count;
  int most = 0;
  for (int n = 0; n < fn->nests.count; n++) {
    int count = fn->nests.data[n]->body.count;
    bytes += sizeof(eval_inst) * (size_t)count;
    if (count > most) most = count;
  }
  kiln_eval_program *program = kiln_mem_alloc_zero(mem, bytes);
  if (!program) return kiln_status_oom();
  program->mem = mem;
  program->bytes = bytes;
  program->nest_count = fn->nests.count;
  program->nests = (eval_nest *)(program + 1);
  eval_inst *next = (eval_inst *)(program->nests + fn->nests.count);
  for (int n = 0; n < fn->nests.count; n++) {
    const kiln_loop_nest *from = fn->nests.data[n];
    eval_nest *nest = &program->nests[n];
    nest->rank = from->rank;
    nest->count = from->body.count;
    memcpy(nest->extents, from->extents, sizeof nest->extents);
    nest->axes = kiln_loop_nest_axes(from);
    for (int i = 0; i < KILN_KERNEL_AXES; i++) nest->grid[i] = kiln_loop_nest_extent(from, i);
    nest->body = next;
    next += nest->count;
    for (int i = 0; i < nest->count; i++) {
      const kiln_loop_inst *inst = &from->body.data[i];
      nest->body[i] = (eval_inst){*inst, kiln_loop_size(inst->dtype), function_of(from, inst)};
    }
  }
  *out_program = program;
  *out_scratch = (size_t)(most + 1) * REGISTER_BYTES;
  return NULL;
}

#if KILN_KERNEL_LEVEL == 0
void kiln_eval_destroy(kiln_eval_program *program) {
  if (program) kiln_mem_free(program->mem, program, program->bytes);
}
size_t kiln_eval_bytes(const kiln_eval_program *program) { return program->bytes; }
#endif

/* -- Running -- */

#define BY_SIZE(size, ACTION) \
  switch (size) {             \
    case 1: ACTION(uint8_t)   \
    case 2: ACTION(uint16_t)  \
    case 4: ACTION(uint32_t)  \
    default: ACTION(uint64_t) \
  }

static void copy_strip(void *to, int64_t to_stride, const void *from, int64_t from_stride, int size,
                       int n) {
#define COPY(type)                                                         \
  {                                                                        \
    for (int i = 0; i < n; i++)                                            \
      ((type *)to)[i * to_stride] = ((const type *)from)[i * from_stride]; \
    break;                                                                 \
  }
  BY_SIZE(size, COPY)
#undef COPY
}

/* Of a file or a host: any byte but 0 is true. */
static void make_bools(uint8_t *r, int n) {
  for (int i = 0; i < n; i++) r[i] = r[i] != 0;
}

static void select_strip(void *r, const uint8_t *mask, const void *x, const void *y, int size,
                         int n) {
#define SELECT(type)                                                          \
  {                                                                           \
    for (int i = 0; i < n; i++)                                               \
      ((type *)r)[i] = mask[i] ? ((const type *)x)[i] : ((const type *)y)[i]; \
    break;                                                                    \
  }
  BY_SIZE(size, SELECT)
#undef SELECT
}

static void fill_constant(void *r, const kiln_loop_inst *inst, int n) {
  for (int i = 0; i < n; i++) {
    switch (inst->dtype) {
      case KILN_DTYPE_F32: ((float *)r)[i] = (float)inst->imm.f; break;
      case KILN_DTYPE_F64: ((double *)r)[i] = inst->imm.f; break;
      case KILN_DTYPE_I16: ((int16_t *)r)[i] = (int16_t)inst->imm.i; break;
      case KILN_DTYPE_I32: ((int32_t *)r)[i] = (int32_t)inst->imm.i; break;
      case KILN_DTYPE_I64: ((int64_t *)r)[i] = inst->imm.i; break;
      default: ((uint8_t *)r)[i] = (uint8_t)inst->imm.i; break;
    }
  }
}

static void fill_scalar(void *r, const kiln_loop_inst *inst, kiln_kernel_scalar scalar, int n) {
  for (int i = 0; i < n; i++) {
    switch (inst->dtype) {
      case KILN_DTYPE_F64: ((double *)r)[i] = scalar.f; break;
      case KILN_DTYPE_I64: ((int64_t *)r)[i] = scalar.i; break;
      default: ((uint8_t *)r)[i] = scalar.i != 0; break;
    }
  }
}

/* The body on n elements that begin where the loop counters stand. */
static void run_strip(const kiln_kernel_args *args, const eval_nest *nest, const int64_t *counters,
                      int n) {
  char *registers = args->scratch;
  for (int k = 0; k < nest->count; k++) {
    const eval_inst *e = &nest->body[k];
    const kiln_loop_inst *inst = &e->inst;
    char *r = registers + (size_t)k * REGISTER_BYTES;
    const char *operand[3] = {r, r, r};
    for (int a = 0; a < 3; a++)
      if (inst->args[a] >= 0) operand[a] = registers + (size_t)inst->args[a] * REGISTER_BYTES;
    if (e->fn) {
      e->fn(r, operand[0], operand[1], operand[2], n);
      continue;
    }
    int64_t at = inst->offset, step = nest->rank ? inst->strides[nest->rank - 1] : 0;
    for (int d = 0; d < nest->rank; d++) at += counters[d] * inst->strides[d];
    switch (inst->op) {
      case KILN_LOOP_load:
        copy_strip(r, 1, (const char *)args->data[inst->index] + at * e->size, step, e->size, n);
        if (inst->dtype == KILN_DTYPE_BOOL) make_bools((uint8_t *)r, n);
        break;
      case KILN_LOOP_store:
        copy_strip((char *)args->data[inst->index] + at * e->size, step, operand[0], 1, e->size, n);
        break;
      case KILN_LOOP_const: fill_constant(r, inst, n); break;
      case KILN_LOOP_scalar: fill_scalar(r, inst, args->scalars[inst->index], n); break;
      default: select_strip(r, (const uint8_t *)operand[0], operand[1], operand[2], e->size, n);
    }
  }
}

/* The part of a nest that lies in a box. */
static void run_nest(const kiln_kernel_args *args, const eval_nest *nest, const int64_t *begin,
                     const int64_t *end) {
  /* Functions over vectors compute what lies behind the last element too; nobody reads that. */
  kiln_msan_unpoison(args->scratch, (size_t)nest->count * REGISTER_BYTES);
  int64_t counters[KILN_LOOP_MAX_RANK] = {0};
  int64_t first[KILN_LOOP_MAX_RANK] = {0}, last[KILN_LOOP_MAX_RANK];
  memcpy(last, nest->extents, sizeof last);
  KILN_ASSERT(nest->axes <= KILN_KERNEL_AXES);
  for (int axis = 0; axis < nest->axes; axis++) {
    counters[axis] = first[axis] = begin[axis];
    last[axis] = end[axis];
  }
  if (nest->rank == 0) {
    run_strip(args, nest, counters, 1);
    return;
  }
  int inner = nest->rank - 1;
  for (;;) {
    for (int64_t i = first[inner]; i < last[inner]; i += STRIP) {
      counters[inner] = i;
      run_strip(args, nest, counters, last[inner] - i < STRIP ? (int)(last[inner] - i) : STRIP);
    }
    int d = inner - 1;
    while (d >= 0 && ++counters[d] == last[d]) {
      counters[d] = first[d];
      d--;
    }
    if (d < 0) return;
  }
}

static void run(const kiln_kernel_args *args, const kiln_kernel_box *box) {
  const kiln_eval_program *program = args->closure;
  int64_t base = 0;
  for (int n = 0; n < program->nest_count; n++) {
    const eval_nest *nest = &program->nests[n];
    int64_t begin[KILN_KERNEL_AXES], end[KILN_KERNEL_AXES];
    bool empty = false;
    for (int axis = 0; axis < KILN_KERNEL_AXES; axis++) {
      const int64_t before = axis == 0 ? base : 0, extent = nest->grid[axis];
      begin[axis] = box->begin[axis] > before ? box->begin[axis] - before : 0;
      end[axis] = box->end[axis] - before < extent ? box->end[axis] - before : extent;
      empty |= begin[axis] >= end[axis];
    }
    if (!empty) run_nest(args, nest, begin, end);
    base += nest->grid[0];
  }
}

#define BACKEND_NAME_(isa) kiln__eval_##isa
#define BACKEND_NAME(isa) BACKEND_NAME_(isa)
const kiln_eval_backend BACKEND_NAME(KILN_KERNEL_ISA) = {create, run};
