/* eval.c: the evaluator: one register of `strip` slots for each instruction, in the caller's
 * scratch; an instruction runs over all slots before the next one does.
 *
 * Lanes are elements of the vectors' loop (loop.h): the nest's innermost one, or each innermost one
 * of the body. In the second case what stands outside of those is computed once, and put into all
 * slots if it is read inside. */
#include "codegen/loop/eval.h"

#include <string.h>

#include "base/sanitize.h"
#include "runtime/math/math.h"

#include "codegen/loop/eval_ops.h"
#include "codegen/loop/eval_reduce.h"

enum {
  SLOT_BYTES = 8,
  LEAST_STRIP = KILN_REDUCE_LANES,
  MOST_STRIP = 512,
  REGISTERS_BYTES = 1 << 15
};

/* What is reduced. It has KILN_REDUCE_LANES accumulators, of columns for each slot of a strip; FIND
 * has as many places behind them. */
typedef struct reduction {
  int inst;
  int next; /* of those that begin with the same loop; -1 */
  int type; /* of its operands, and their bytes */
  int size;
  eval_fn combine; /* two accumulators; NULL: FIND */
  size_t values;   /* in scratch */
} reduction;

typedef struct eval_inst {
  kiln_loop_inst inst;
  int size;   /* bytes of an element */
  eval_fn fn; /* NULL: load, store, const, scalar, select, FIND, OPEN, END */
  int depth;  /* loops around it */
  int end;    /* of OPEN */
  int first;  /* of OPEN: the reductions that begin with it; of what reduces: its reduction; -1 */
  bool lanes; /* OPEN: its iterations are lanes. Else: there is a value for each lane */
  bool fills; /* one value that lanes read */
} eval_inst;

typedef struct eval_nest {
  int rank, count, axes; /* of the grid: outermost loops that a box cuts */
  bool strips_body;
  int slots; /* of an accumulator's lane */
  kiln_dim extents[KILN_LOOP_MAX_RANK], grid[KILN_KERNEL_AXES];
  eval_inst *body;
  reduction *reductions;
} eval_nest;

struct kiln_eval_program {
  kiln_mem *mem; /* borrowed */
  size_t bytes;  /* of this block */
  int strip;
  int shared_count; /* buffers that are not local */
  int nest_count;
  eval_nest *nests;
  /* Scratch of a call: registers, accumulators, the values of symbols, then local buffers. */
  size_t values_at, own_bytes;
  kiln_dim *places;               /* of the local buffers, behind own_bytes */
  const kiln_dim_program *values; /* NULL: the dimensions are numbers */
};

/* -- Making a program -- */

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
  if (info->rule == KILN_LOOP_RULE_SAME || info->rule == KILN_LOOP_RULE_REDUCE)
    return eval_table[inst->op][type_index(inst->dtype)];
  if (info->rule == KILN_LOOP_RULE_COMPARE)
    return eval_table[inst->op][type_index(nest->body.data[inst->args[0]].dtype)];
  return NULL;
}

/* How much all nests have of what the program's block holds. */
typedef struct totals {
  int insts, reductions, most;
  bool columns; /* something is reduced that is */
} totals;
static totals count_all(const kiln_loop_fn *fn) {
  totals t = {0};
  for (int n = 0; n < fn->nests.count; n++) {
    const kiln_loop_nest *nest = fn->nests.data[n];
    t.insts += nest->body.count;
    if (nest->body.count > t.most) t.most = nest->body.count;
    for (int i = 0; i < nest->body.count; i++) {
      if (!kiln_loop_reduces(nest->body.data[i].op)) continue;
      t.reductions++;
      t.columns |= !kiln_loop_strips_body(nest);
    }
  }
  return t;
}

static bool is_innermost(const kiln_loop_nest *nest, const kiln_loop_scopes *scopes, int open) {
  for (int i = open + 1; i < scopes->end[open]; i++) {
    if (kiln_loop_ops[nest->body.data[i].op].rule == KILN_LOOP_RULE_OPEN) return false;
  }
  return true;
}

/* Marks what has a value for each lane, and what lanes read that has one. */
static void mark_lanes(eval_nest *nest, const kiln_loop_nest *from,
                       const kiln_loop_scopes *scopes) {
  for (int i = 0; i < nest->count; i++) {
    eval_inst *e = &nest->body[i];
    const bool opens = kiln_loop_ops[e->inst.op].rule == KILN_LOOP_RULE_OPEN;
    const int scope = scopes->parent[i];
    if (!nest->strips_body) {
      e->lanes = !opens;
    } else if (opens) {
      e->lanes = is_innermost(from, scopes, i);
    } else {
      e->lanes = scope >= 0 && nest->body[scope].lanes && !kiln_loop_reduces(e->inst.op);
    }
    const bool reads_lanes = e->lanes || (scope >= 0 && nest->body[scope].lanes);
    for (int a = 0; reads_lanes && a < kiln_loop_ops[e->inst.op].arity; a++) {
      eval_inst *operand = &nest->body[e->inst.args[a]];
      operand->fills |= !operand->lanes;
    }
  }
}

/* Adds what instruction i of the nest reduces; *bytes is the scratch so far. */
static void add_reduction(eval_nest *nest, const kiln_loop_nest *from,
                          const kiln_loop_scopes *scopes, int i, int number, size_t *bytes) {
  eval_inst *e = &nest->body[i];
  const kiln_dtype dtype = from->body.data[e->inst.args[0]].dtype;
  reduction *r = &nest->reductions[number];
  int open = scopes->parent[i];
  *r = (reduction){.inst = i, .type = type_index(dtype), .size = kiln_loop_size(dtype)};
  if (kiln_loop_ops[e->inst.op].rule == KILN_LOOP_RULE_REDUCE) {
    const kiln_loop_opcode op = e->inst.op == KILN_LOOP_dot ? KILN_LOOP_sum : e->inst.op;
    r->combine = eval_table[op][r->type];
  }
  r->values = *bytes;
  *bytes += (size_t)(2 * KILN_REDUCE_LANES * SLOT_BYTES * nest->slots);
  for (int k = 1; k < e->inst.index; k++) open = scopes->parent[open];
  e->first = number;
  r->next = nest->body[open].first;
  nest->body[open].first = number;
}

static void make_nest(eval_nest *nest, const kiln_loop_nest *from, const kiln_loop_scopes *scopes,
                      int strip, size_t *bytes) {
  int reductions = 0;
  nest->rank = from->rank;
  nest->count = from->body.count;
  nest->strips_body = kiln_loop_strips_body(from);
  nest->slots = nest->strips_body ? 1 : strip;
  memcpy(nest->extents, from->extents, sizeof nest->extents);
  nest->axes = kiln_loop_nest_axes(from);
  for (int i = 0; i < KILN_KERNEL_AXES; i++) nest->grid[i] = kiln_loop_nest_extent(from, i);
  for (int i = 0; i < nest->count; i++) {
    const kiln_loop_inst *inst = &from->body.data[i];
    nest->body[i] = (eval_inst){.inst = *inst,
                                .size = kiln_loop_size(inst->dtype),
                                .fn = function_of(from, inst),
                                .depth = scopes->depth[i],
                                .end = scopes->end[i],
                                .first = -1};
  }
  mark_lanes(nest, from, scopes);
  for (int i = 0; i < nest->count; i++) {
    if (kiln_loop_reduces(from->body.data[i].op))
      add_reduction(nest, from, scopes, i, reductions++, bytes);
  }
}

static int strip_of(const totals *t) {
  int strip = t->columns ? LEAST_STRIP : MOST_STRIP;
  while (strip > LEAST_STRIP && strip * SLOT_BYTES * (t->most + 1) > REGISTERS_BYTES) strip /= 2;
  return strip;
}

/* What takes memory of the arena comes first: nobody frees the program then. */
static kiln_status *create(const kiln_loop_fn *fn, kiln_mem *mem, kiln_arena *arena,
                           kiln_eval_program **out_program) {
  const totals t = count_all(fn);
  const int strip = strip_of(&t), locals = fn->buffers.count - fn->input_count - fn->output_count;
  const kiln_loop_flat flat = kiln_loop_flatten(fn, strip, arena);
  kiln_loop_scopes *scopes = KILN_NEW_ARRAY(arena, kiln_loop_scopes, fn->nests.count + 1);
  for (int n = 0; n < fn->nests.count; n++)
    scopes[n] = kiln_loop_scopes_of(fn->nests.data[n], arena);
  const size_t bytes = sizeof(kiln_eval_program) + sizeof(eval_nest) * (size_t)fn->nests.count +
                       sizeof(eval_inst) * (size_t)t.insts +
                       sizeof(reduction) * (size_t)t.reductions +
                       sizeof(kiln_dim) * (size_t)locals + (flat.values ? flat.values->bytes : 0);
  kiln_eval_program *program = kiln_mem_alloc_zero(mem, bytes);
  if (!program) return kiln_status_oom();
  program->mem = mem;
  program->bytes = bytes;
  program->strip = strip;
  program->nest_count = fn->nests.count;
  program->shared_count = fn->input_count + fn->output_count;
  program->nests = (eval_nest *)(program + 1);
  eval_inst *body = (eval_inst *)(program->nests + fn->nests.count);
  reduction *reductions = (reduction *)(body + t.insts);
  program->places = (kiln_dim *)(reductions + t.reductions);
  memcpy(program->places, flat.places, sizeof(kiln_dim) * (size_t)locals);
  program->own_bytes = (size_t)(t.most + 1) * (size_t)strip * SLOT_BYTES;
  for (int n = 0; n < fn->nests.count; n++) {
    eval_nest *nest = &program->nests[n];
    nest->body = body;
    nest->reductions = reductions;
    make_nest(nest, flat.fn->nests.data[n], &scopes[n], strip, &program->own_bytes);
    body += nest->count;
    for (int i = 0; i < nest->count; i++) reductions += kiln_loop_reduces(nest->body[i].inst.op);
  }
  if (flat.values) {
    program->values = memcpy(program->places + locals, flat.values, flat.values->bytes);
    program->values_at = program->own_bytes;
    program->own_bytes +=
        sizeof(int64_t) * (size_t)(kiln_dim_program_room(flat.values) + flat.values->result_count);
  }
  program->own_bytes = (program->own_bytes + 63) / 64 * 64;
  *out_program = program;
  return NULL;
}

#if KILN_KERNEL_LEVEL == 0
void kiln_eval_destroy(kiln_eval_program *program) {
  if (program) kiln_mem_free(program->mem, program, program->bytes);
}
size_t kiln_eval_bytes(const kiln_eval_program *program) { return program->bytes; }
int kiln_eval_lanes(const kiln_eval_program *program) { return program->strip; }
int64_t kiln_eval_own_bytes(const kiln_eval_program *program) {
  return (int64_t)program->own_bytes;
}
#endif

/* -- Elements -- */

#define BY_SIZE(size, ACTION) \
  switch (size) {             \
    case 1: ACTION(uint8_t)   \
    case 2: ACTION(uint16_t)  \
    case 4: ACTION(uint32_t)  \
    default: ACTION(uint64_t) \
  }

static void copy_strip(void *to, int64_t to_stride, const void *from, int64_t from_stride, int size,
                       int n) {
  if (to_stride == 1 && from_stride == 1) {
    memcpy(to, from, (size_t)n * (size_t)size);
    return;
  }
#define COPY(type)                                                         \
  {                                                                        \
    for (int i = 0; i < n; i++)                                            \
      ((type *)to)[i * to_stride] = ((const type *)from)[i * from_stride]; \
    break;                                                                 \
  }
  BY_SIZE(size, COPY)
#undef COPY
}

/* The first slot into all. */
static void fill_strip(void *r, int size, int n) { copy_strip(r, 1, r, 0, size, n); }

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

static void put_number(void *r, kiln_dtype dtype, double f, int64_t i) {
  switch (dtype) {
    case KILN_DTYPE_F32: *(float *)r = (float)f; break;
    case KILN_DTYPE_F64: *(double *)r = f; break;
    case KILN_DTYPE_I16: *(int16_t *)r = (int16_t)i; break;
    case KILN_DTYPE_I32: *(int32_t *)r = (int32_t)i; break;
    case KILN_DTYPE_I64: *(int64_t *)r = i; break;
    default: *(uint8_t *)r = (uint8_t)i; break;
  }
}

static void put_scalar(void *r, kiln_dtype dtype, kiln_kernel_scalar scalar) {
  if (dtype == KILN_DTYPE_F64)
    put_number(r, dtype, scalar.f, 0);
  else
    put_number(r, dtype, 0, dtype == KILN_DTYPE_BOOL ? scalar.i != 0 : scalar.i);
}

/* -- Running -- */

typedef struct running {
  const kiln_kernel_args *args;
  const kiln_eval_program *program;
  const eval_nest *nest;
  size_t strip_bytes;
  const int64_t *values; /* of symbols */
  int64_t counters[KILN_LOOP_MAX_RANK], extents[KILN_LOOP_MAX_RANK];
} running;

static void run_range(running *run, int begin, int end, int n);

static int64_t number_of(const running *run, kiln_dim d) {
  return kiln_dim_is_number(d) ? d : run->values[kiln_dim_symbol(0) - d];
}

static char *register_of(const running *run, int inst) {
  return (char *)run->args->scratch + (size_t)inst * run->strip_bytes;
}

/* Loads or stores n elements; lanes move with the vectors' loop. */
static void run_access(const running *run, const eval_inst *e, char *r, const char *value, int n) {
  const kiln_loop_inst *inst = &e->inst;
  const eval_nest *nest = run->nest;
  const bool local = inst->index >= run->program->shared_count;
  const int loop = nest->strips_body ? e->depth - 1 : nest->rank - 1;
  int64_t at = number_of(run, inst->offset);
  int64_t step = e->lanes && loop >= 0 ? number_of(run, inst->strides[loop]) : 0;
  for (int d = 0; d < e->depth; d++) at += run->counters[d] * number_of(run, inst->strides[d]);
  char *place;
  if (local) {
    const kiln_dim from = run->program->places[inst->index - run->program->shared_count];
    place = (char *)run->args->scratch + run->program->own_bytes + number_of(run, from);
    if (!nest->strips_body) at *= run->program->strip, step = 1;
  } else {
    place = run->args->data[inst->index];
  }
  place += at * e->size;
  if (inst->op == KILN_LOOP_store) {
    copy_strip(place, step, value, 1, e->size, n);
    return;
  }
  copy_strip(r, 1, place, step, e->size, n);
  if (inst->dtype == KILN_DTYPE_BOOL) make_bools((uint8_t *)r, n);
}

/* -- Reductions -- */

static char *values_of(const running *run, const reduction *r, int lane) {
  return (char *)run->args->scratch + r->values + (size_t)(lane * run->nest->slots * r->size);
}
static int64_t *places_of(const running *run, const reduction *r, int lane) {
  const int before = (KILN_REDUCE_LANES + lane) * run->nest->slots;
  return (int64_t *)(void *)((char *)run->args->scratch + r->values) + before;
}

static void begin_reduction(const running *run, const reduction *r) {
  const eval_inst *e = &run->nest->body[r->inst];
  const kiln_dtype dtype = run->nest->body[e->inst.args[0]].inst.dtype;
  const int count = KILN_REDUCE_LANES * run->nest->slots;
  char *values = values_of(run, r, 0);
  put_number(values, dtype, kiln_loop_first_f(e->inst.op), kiln_loop_first_i(e->inst.op, dtype));
  fill_strip(values, r->size, count);
  for (int i = 0; !r->combine && i < count; i++) places_of(run, r, 0)[i] = INT64_MAX;
}

/* The number of the iteration that the counters stand at, in the loops of the reduction. */
static int64_t iteration_of(const running *run, const eval_inst *e) {
  int64_t at = 0;
  for (int d = e->depth - e->inst.index; d < e->depth; d++) {
    at = at * run->extents[d] + run->counters[d];
  }
  return at;
}

/* Iteration i goes to lane i % KILN_REDUCE_LANES: of columns n operands are of one iteration, else
 * of as many. */
static void run_reduction(const running *run, const eval_inst *e, const char *const *operand,
                          int n) {
  const reduction *r = &run->nest->reductions[e->first];
  const bool columns = !run->nest->strips_body;
  const int64_t first = iteration_of(run, e);
  int lane = (int)(first % KILN_REDUCE_LANES);
  for (int i = 0, m; i < n; i += m, lane = 0) {
    const char *x = operand[0] + i * r->size, *y = operand[1] + i * r->size;
    m = columns || n - i < KILN_REDUCE_LANES - lane ? n - i : KILN_REDUCE_LANES - lane;
    char *values = values_of(run, r, lane);
    if (r->combine) {
      e->fn(values, values, x, y, m);
    } else {
      find_table[r->type][e->inst.op == KILN_LOOP_argmin](values, places_of(run, r, lane), x,
                                                          first + i, !columns, m);
    }
  }
}

/* Lanes to one, as a tree, for `n` slots of each. */
static void end_reduction(const running *run, const reduction *r, int n) {
  const eval_inst *e = &run->nest->body[r->inst];
  const int slots = run->nest->slots;
  char *result = register_of(run, r->inst);
  for (int half = KILN_REDUCE_LANES / 2; half > 0; half /= 2) {
    char *values = values_of(run, r, 0), *others = values_of(run, r, half);
    if (r->combine) {
      r->combine(values, values, others, values, half * slots);
    } else {
      join_table[r->type][e->inst.op == KILN_LOOP_argmin](values, places_of(run, r, 0), others,
                                                          places_of(run, r, half), half * slots);
    }
  }
  const void *from = r->combine ? (void *)values_of(run, r, 0) : (void *)places_of(run, r, 0);
  copy_strip(result, 1, from, 1, e->size, n);
  if (e->fills) fill_strip(result, e->size, run->program->strip);
}

/* -- Loops -- */

static void run_loop(running *run, int open, int n) {
  const eval_nest *nest = run->nest;
  const eval_inst *e = &nest->body[open];
  const int64_t extent = number_of(run, e->inst.offset), step = e->lanes ? run->program->strip : 1;
  for (int r = e->first; r >= 0; r = nest->reductions[r].next) {
    begin_reduction(run, &nest->reductions[r]);
  }
  run->extents[e->depth] = extent;
  for (int64_t i = 0; i < extent; i += step) {
    run->counters[e->depth] = i;
    const int64_t left = extent - i;
    run_range(run, open + 1, e->end, !e->lanes ? n : left < step ? (int)left : (int)step);
  }
  for (int r = e->first; r >= 0; r = nest->reductions[r].next) {
    end_reduction(run, &nest->reductions[r], n);
  }
}

static void run_inst(running *run, int k, int n) {
  const eval_inst *e = &run->nest->body[k];
  const kiln_loop_inst *inst = &e->inst;
  char *r = register_of(run, k);
  const char *operand[3] = {r, r, r};
  for (int a = 0; a < 3; a++)
    if (inst->args[a] >= 0) operand[a] = register_of(run, inst->args[a]);
  if (kiln_loop_reduces(inst->op)) {
    run_reduction(run, e, operand, n);
    return;
  }
  if (e->fn) {
    e->fn(r, operand[0], operand[1], operand[2], n);
  } else if (kiln_loop_is_access(inst)) {
    run_access(run, e, r, operand[0], n);
  } else if (inst->op == KILN_LOOP_select) {
    select_strip(r, (const uint8_t *)operand[0], operand[1], operand[2], e->size, n);
  } else {
    if (inst->op == KILN_LOOP_const)
      put_number(r, inst->dtype, inst->imm.f, inst->imm.i);
    else if (inst->op == KILN_LOOP_dim)
      put_number(r, inst->dtype, 0, number_of(run, inst->offset));
    else
      put_scalar(r, inst->dtype, run->args->scalars[inst->index]);
    fill_strip(r, e->size, n);
  }
  if (e->fills) fill_strip(r, e->size, run->program->strip);
}

static void run_range(running *run, int begin, int end, int n) {
  for (int k = begin; k < end; k++) {
    if (kiln_loop_ops[run->nest->body[k].inst.op].rule == KILN_LOOP_RULE_OPEN) {
      run_loop(run, k, n);
      k = run->nest->body[k].end;
    } else {
      run_inst(run, k, n);
    }
  }
}

/* The part of a nest that lies in a box. */
static void run_nest(running *run, const int64_t *begin, const int64_t *end) {
  const eval_nest *nest = run->nest;
  int64_t first[KILN_LOOP_MAX_RANK] = {0}, last[KILN_LOOP_MAX_RANK];
  for (int d = 0; d < nest->rank; d++) last[d] = number_of(run, nest->extents[d]);
  memset(run->counters, 0, sizeof run->counters);
  KILN_ASSERT(nest->axes <= KILN_KERNEL_AXES);
  for (int axis = 0; axis < nest->axes; axis++) {
    run->counters[axis] = first[axis] = begin[axis];
    last[axis] = end[axis];
  }
  const int inner = nest->strips_body ? nest->rank : nest->rank - 1;
  for (;;) {
    if (nest->strips_body || nest->rank == 0) {
      run_range(run, 0, nest->count, 1);
    } else {
      const int strip = run->program->strip;
      for (int64_t i = first[inner]; i < last[inner]; i += strip) {
        run->counters[inner] = i;
        run_range(run, 0, nest->count, last[inner] - i < strip ? (int)(last[inner] - i) : strip);
      }
    }
    int d = inner - 1;
    while (d >= 0 && ++run->counters[d] == last[d]) {
      run->counters[d] = first[d];
      d--;
    }
    if (d < 0) return;
  }
}

static const int64_t *find_values(const kiln_eval_program *program, const kiln_kernel_args *args) {
  if (!program->values) return NULL;
  int64_t *room = (int64_t *)(void *)((char *)args->scratch + program->values_at);
  int64_t *results = room + kiln_dim_program_room(program->values);
  /* Who calls has worked out the kernel's work, so that its sizes fit. */
  (void)kiln_dim_program_run(program->values, args->symbols, room, results);
  return results;
}

static void run(const kiln_kernel_args *args, const kiln_kernel_box *box) {
  const kiln_eval_program *program = args->closure;
  const int64_t *values = find_values(program, args);
  int64_t base = 0;
  for (int n = 0; n < program->nest_count; n++) {
    const eval_nest *nest = &program->nests[n];
    running state = {.args = args,
                     .program = program,
                     .nest = nest,
                     .strip_bytes = (size_t)program->strip * SLOT_BYTES,
                     .values = values};
    int64_t begin[KILN_KERNEL_AXES], end[KILN_KERNEL_AXES];
    bool empty = false;
    for (int axis = 0; axis < KILN_KERNEL_AXES; axis++) {
      const int64_t before = axis == 0 ? base : 0, extent = number_of(&state, nest->grid[axis]);
      begin[axis] = box->begin[axis] > before ? box->begin[axis] - before : 0;
      end[axis] = box->end[axis] - before < extent ? box->end[axis] - before : extent;
      empty |= begin[axis] >= end[axis];
    }
    /* Functions over vectors compute what lies behind the last element too; nobody reads that. */
    kiln_msan_unpoison(args->scratch, (size_t)nest->count * state.strip_bytes);
    if (!empty) run_nest(&state, begin, end);
    base += number_of(&state, nest->grid[0]);
  }
}

#define BACKEND_NAME_(isa) kiln__eval_##isa
#define BACKEND_NAME(isa) BACKEND_NAME_(isa)
const kiln_eval_backend BACKEND_NAME(KILN_KERNEL_ISA) = {create, run};
