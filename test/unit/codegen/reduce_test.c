/* reduce_test.c: random kernels with loops in their bodies, of numbers and of symbols, on every
 * back end and instruction set, against plain C, to the bit. Seeds are fixed. */
#include "schedule_support.h"
#include "test/unit/codegen/plain.h"

enum {
  INPUTS = 3,
  INDEX = 2,
  LIMIT = 9,
  MAX_OUTPUTS = 5,
  MOST = 1 << 17,
  LANES = KILN_REDUCE_LANES
};

typedef plain_element element;

typedef struct kernel {
  uint64_t seed;
  bool symbolic; /* sizes of two and more become expressions of symbols */
  int symbol_count;
  int64_t symbols[8];
  kiln_loop_fn *fn;
  int64_t spans[INPUTS + MAX_OUTPUTS];
  char *data[INPUTS + MAX_OUTPUTS];
} kernel;

static element load_element(kiln_dtype dtype, const char *data, int64_t at) {
  switch (dtype) {
    case KILN_DTYPE_F32: return (element){.f = (double)((const float *)(const void *)data)[at]};
    case KILN_DTYPE_F64: return (element){.f = ((const double *)(const void *)data)[at]};
    case KILN_DTYPE_I32: return (element){.i = ((const int32_t *)(const void *)data)[at]};
    case KILN_DTYPE_I64: return (element){.i = ((const int64_t *)(const void *)data)[at]};
    case KILN_DTYPE_I8: return (element){.i = ((const int8_t *)data)[at]};
    default: return (element){.i = ((const uint8_t *)data)[at]};
  }
}
static void store_element(kiln_dtype dtype, char *data, int64_t at, element e) {
  switch (dtype) {
    case KILN_DTYPE_F32: ((float *)(void *)data)[at] = (float)e.f; break;
    case KILN_DTYPE_F64: ((double *)(void *)data)[at] = e.f; break;
    case KILN_DTYPE_I32: ((int32_t *)(void *)data)[at] = (int32_t)e.i; break;
    case KILN_DTYPE_I64: ((int64_t *)(void *)data)[at] = e.i; break;
    default: ((uint8_t *)data)[at] = (uint8_t)e.i; break;
  }
}

/* -- Plain C -- */

typedef struct accumulator {
  element lanes[LANES];
  int64_t places[LANES];
} accumulator;

typedef struct plain {
  kernel *k;
  const kiln_loop_nest *nest;
  kiln_loop_scopes scopes;
  bool fma;
  element *values;
  accumulator *accumulators;
  element *locals[4];
  int64_t counters[KILN_LOOP_MAX_RANK], extents[KILN_LOOP_MAX_RANK];
} plain;

static double round_to(kiln_dtype dtype, double f) {
  return dtype == KILN_DTYPE_F32 ? (double)(float)f : f;
}

static element first_value(kiln_loop_opcode op, kiln_dtype dtype) {
  static const struct {
    kiln_dtype dtype;
    int64_t least, most;
  } ends[] = {{KILN_DTYPE_U8, 0, 255},
              {KILN_DTYPE_I8, -128, 127},
              {KILN_DTYPE_I32, INT32_MIN, INT32_MAX},
              {KILN_DTYPE_I64, INT64_MIN, INT64_MAX},
              {KILN_DTYPE_BOOL, 0, 1}};
  const bool least = op == KILN_LOOP_amax || op == KILN_LOOP_argmax;
  const bool most = op == KILN_LOOP_amin || op == KILN_LOOP_argmin || op == KILN_LOOP_all;
  if (plain_is_float(dtype)) {
    if (least || most) return (element){.f = least ? -INFINITY : INFINITY};
    return (element){.f = op == KILN_LOOP_prod ? 1 : 0};
  }
  for (size_t i = 0; (least || most) && i < sizeof ends / sizeof *ends; i++) {
    if (ends[i].dtype == dtype) return (element){.i = least ? ends[i].least : ends[i].most};
  }
  return (element){.i = op == KILN_LOOP_prod};
}

/* What two lanes, or a lane and the next operand, give. */
static element join(kiln_loop_opcode op, kiln_dtype dtype, element a, element b) {
  if (!plain_is_float(dtype)) {
    switch (op) {
      case KILN_LOOP_sum: return (element){.i = plain_wrap(dtype, (uint64_t)a.i + (uint64_t)b.i)};
      case KILN_LOOP_prod: return (element){.i = plain_wrap(dtype, (uint64_t)a.i * (uint64_t)b.i)};
      case KILN_LOOP_amax: return a.i > b.i ? a : b;
      case KILN_LOOP_amin: return a.i < b.i ? a : b;
      case KILN_LOOP_any: return (element){.i = a.i | b.i};
      case KILN_LOOP_all: return (element){.i = a.i & b.i};
      default: fail(); return a;
    }
  }
  switch (op) {
    case KILN_LOOP_sum:
    case KILN_LOOP_dot: return (element){.f = round_to(dtype, a.f + b.f)};
    case KILN_LOOP_prod: return (element){.f = round_to(dtype, a.f * b.f)};
    case KILN_LOOP_amax: return isnan(a.f) || a.f > b.f ? a : b;
    case KILN_LOOP_amin: return isnan(a.f) || a.f < b.f ? a : b;
    default: fail(); return a;
  }
}

static bool beats(kiln_loop_opcode op, kiln_dtype dtype, element x, element best, bool earlier) {
  const bool most = op == KILN_LOOP_argmax;
  if (!plain_is_float(dtype)) {
    return (most ? x.i > best.i : x.i < best.i) || (x.i == best.i && earlier);
  }
  if (isnan(best.f)) return isnan(x.f) && earlier;
  return isnan(x.f) || (most ? x.f > best.f : x.f < best.f) || (x.f == best.f && earlier);
}

static void run_range(plain *p, int begin, int end);

static void accumulate(plain *p, int i) {
  const kiln_loop_inst *inst = &p->nest->body.data[i];
  const kiln_dtype dtype = p->nest->body.data[inst->args[0]].dtype;
  const int depth = p->scopes.depth[i];
  const element x = p->values[inst->args[0]];
  accumulator *a = &p->accumulators[i];
  int64_t place = 0;
  for (int d = depth - inst->index; d < depth; d++) place = place * p->extents[d] + p->counters[d];
  const int lane = (int)(place % LANES);
  if (kiln_loop_ops[inst->op].rule == KILN_LOOP_RULE_FIND) {
    if (!beats(inst->op, dtype, x, a->lanes[lane], place < a->places[lane])) return;
    a->lanes[lane] = x;
    a->places[lane] = place;
  } else if (inst->op == KILN_LOOP_dot) {
    const double y = p->values[inst->args[1]].f, sum = a->lanes[lane].f;
    const bool narrow = dtype == KILN_DTYPE_F32;
    const double apart = round_to(dtype, round_to(dtype, x.f * y) + sum);
    a->lanes[lane].f = !p->fma  ? apart
                       : narrow ? (double)fmaf((float)x.f, (float)y, (float)sum)
                                : fma(x.f, y, sum);
  } else {
    a->lanes[lane] = join(inst->op, dtype, a->lanes[lane], x);
  }
}

static void finish(plain *p, int i) {
  const kiln_loop_inst *inst = &p->nest->body.data[i];
  const kiln_dtype dtype = p->nest->body.data[inst->args[0]].dtype;
  const bool find = kiln_loop_ops[inst->op].rule == KILN_LOOP_RULE_FIND;
  accumulator *a = &p->accumulators[i];
  for (int half = LANES / 2; half > 0; half /= 2) {
    for (int k = 0; k < half; k++) {
      const element other = a->lanes[k + half];
      if (!find) {
        a->lanes[k] = join(inst->op, dtype, a->lanes[k], other);
      } else if (beats(inst->op, dtype, other, a->lanes[k], a->places[k + half] < a->places[k])) {
        a->lanes[k] = other;
        a->places[k] = a->places[k + half];
      }
    }
  }
  if (find)
    p->values[i].i = a->places[0];
  else
    p->values[i] = a->lanes[0];
}

static void run_loop(plain *p, int open) {
  const int end = p->scopes.end[open], depth = p->scopes.depth[open];
  const int64_t extent = p->nest->body.data[open].offset;
  p->extents[depth] = extent;
  for (int i = open; i < end; i++) {
    const kiln_loop_inst *inst = &p->nest->body.data[i];
    if (kiln_loop_carries(inst->op)) p->accumulators[i].places[0] = 0;
    if (!kiln_loop_reduces(inst->op) || p->scopes.depth[i] - inst->index != depth) continue;
    for (int k = 0; k < LANES; k++) {
      p->accumulators[i].lanes[k] = first_value(inst->op, p->nest->body.data[inst->args[0]].dtype);
      p->accumulators[i].places[k] = INT64_MAX;
    }
  }
  for (int64_t n = 0; n < extent; n++) {
    p->counters[depth] = n;
    run_range(p, open + 1, end);
  }
  for (int i = open; i < end; i++) {
    const kiln_loop_inst *inst = &p->nest->body.data[i];
    if (kiln_loop_reduces(inst->op) && p->scopes.depth[i] - inst->index == depth) finish(p, i);
  }
}

static void run_inst(plain *p, int i) {
  const kiln_loop_inst *inst = &p->nest->body.data[i];
  const kiln_loop_fn *fn = p->k->fn;
  const int local = inst->index - fn->input_count - fn->output_count;
  element a = {0}, b = {0}, c = {0}, *r = &p->values[i];
  int64_t at = inst->offset;
  if (inst->args[0] >= 0) a = p->values[inst->args[0]];
  if (inst->args[1] >= 0) b = p->values[inst->args[1]];
  if (inst->args[2] >= 0) c = p->values[inst->args[2]];
  for (int d = 0; d < p->scopes.depth[i]; d++) at += p->counters[d] * inst->strides[d];
  if (kiln_loop_reduces(inst->op)) {
    accumulate(p, i);
  } else if (kiln_loop_carries(inst->op)) { /* of the first iteration it is what comes */
    accumulator *so_far = &p->accumulators[i];
    if (so_far->places[0]++ > 0)
      a = join(kiln_loop_carried(inst->op), inst->dtype, so_far->lanes[0], a);
    *r = so_far->lanes[0] = a;
  } else if (inst->op == KILN_LOOP_load) {
    *r = local >= 0 ? p->locals[local][at] : load_element(inst->dtype, p->k->data[inst->index], at);
  } else if (inst->op == KILN_LOOP_store) {
    if (local >= 0)
      p->locals[local][at] = a;
    else
      store_element(inst->dtype, p->k->data[inst->index], at, a);
  } else if (inst->op == KILN_LOOP_index) {
    r->i = at;
  } else if (inst->op == KILN_LOOP_check) {
    *r = a;
  } else if (inst->op == KILN_LOOP_gather) {
    *r = load_element(inst->dtype, p->k->data[inst->index], at + a.i * inst->imm.step);
  } else {
    const kiln_dtype from =
        inst->args[0] >= 0 ? p->nest->body.data[inst->args[0]].dtype : KILN_DTYPE_NONE;
    *r = plain_inst(inst, from, a, b, c);
  }
}

static void run_range(plain *p, int begin, int end) {
  for (int i = begin; i < end; i++) {
    if (kiln_loop_ops[p->nest->body.data[i].op].rule == KILN_LOOP_RULE_OPEN) {
      run_loop(p, i);
      i = p->scopes.end[i];
    } else {
      run_inst(p, i);
    }
  }
}

static void run_plain(kernel *k, kiln_arena *arena, bool fma) {
  const kiln_loop_nest *nest = k->fn->nests.data[0];
  plain p = {.k = k, .nest = nest, .fma = fma};
  p.scopes = kiln_loop_scopes_of(nest, arena);
  p.values = KILN_NEW_ARRAY(arena, element, nest->body.count + 1);
  p.accumulators = KILN_NEW_ARRAY(arena, accumulator, nest->body.count + 1);
  for (int i = k->fn->input_count + k->fn->output_count, n = 0; i < k->fn->buffers.count; i++, n++)
    p.locals[n] = KILN_NEW_ARRAY(arena, element, MOST);
  for (;;) {
    run_range(&p, 0, nest->body.count);
    int d = nest->rank - 1;
    while (d >= 0 && ++p.counters[d] == nest->extents[d]) p.counters[d--] = 0;
    if (d < 0) return;
  }
}

/* -- Random kernels -- */

#define PICK(seed, list) (list)[random_below(seed, (int)(sizeof(list) / sizeof *(list)))]

/* Strides over memory in which the dimensions lie in any order; some broadcast. Gives the span. */
static kiln_dim random_strides(kernel *k, int rank, const kiln_dim *sizes, bool broadcast,
                               kiln_dim *strides) {
  kiln_dim next = 1;
  bool placed[8] = {false};
  for (int n = 0; n < rank; n++) {
    int d = random_below(&k->seed, 2) ? random_below(&k->seed, rank) : rank - 1 - n;
    while (placed[d]) d = (d + 1) % rank;
    placed[d] = true;
    strides[d] = broadcast && random_below(&k->seed, 8) == 0 ? 0 : next;
    if (strides[d]) next = kiln_dim_product(k->fn->dims, next, sizes[d]);
  }
  return next;
}

static void add_output(kernel *k, kiln_loop_nest *nest, kiln_dtype dtype, int rank,
                       const kiln_dim *sizes, int value) {
  kiln_dim strides[KILN_LOOP_MAX_RANK];
  const kiln_dim span = random_strides(k, rank, sizes, false, strides);
  const int number = kiln_loop_add_output(k->fn, dtype, rank, sizes, strides);
  k->spans[number] = span;
  kiln_loop_store(k->fn, nest, number, 0, strides, value);
}

static kiln_loop_opcode random_reduction(kernel *k, kiln_dtype dtype) {
  static const kiln_loop_opcode floats[] = {KILN_LOOP_sum,    KILN_LOOP_sum,   KILN_LOOP_dot,
                                            KILN_LOOP_prod,   KILN_LOOP_amax,  KILN_LOOP_amin,
                                            KILN_LOOP_argmax, KILN_LOOP_argmin};
  static const kiln_loop_opcode ints[] = {KILN_LOOP_sum,  KILN_LOOP_prod,   KILN_LOOP_amax,
                                          KILN_LOOP_amin, KILN_LOOP_argmax, KILN_LOOP_argmin};
  static const kiln_loop_opcode bools[] = {KILN_LOOP_any, KILN_LOOP_all};
  if (dtype == KILN_DTYPE_BOOL) return PICK(&k->seed, bools);
  return plain_is_float(dtype) ? PICK(&k->seed, floats) : PICK(&k->seed, ints);
}

/* Where the loops stand, in that type. */
static int random_index(kernel *k, kiln_loop_nest *nest, kiln_dtype dtype) {
  int64_t strides[KILN_LOOP_MAX_RANK] = {0};
  for (int d = 0; d < nest->rank + nest->open; d++) {
    static const int64_t steps[] = {0, 1, 1, 1, 3, 1000};
    strides[d] = PICK(&k->seed, steps);
  }
  const int index = kiln_loop_index(k->fn, nest, random_below(&k->seed, 3), strides);
  return kiln_loop_cast(k->fn, nest, index, dtype);
}

/* Made of the two, which are alike. */
static int random_step(kernel *k, kiln_loop_nest *nest, int a, int b) {
  static const kiln_loop_opcode floats[] = {
      KILN_LOOP_add,  KILN_LOOP_sub,   KILN_LOOP_sub,  KILN_LOOP_mul,   KILN_LOOP_mul,
      KILN_LOOP_div,  KILN_LOOP_min,   KILN_LOOP_max,  KILN_LOOP_neg,   KILN_LOOP_abs,
      KILN_LOOP_sqrt, KILN_LOOP_floor, KILN_LOOP_ceil, KILN_LOOP_round, KILN_LOOP_trunc};
  static const kiln_loop_opcode ints[] = {
      KILN_LOOP_add, KILN_LOOP_sub, KILN_LOOP_mul, KILN_LOOP_min, KILN_LOOP_max, KILN_LOOP_and,
      KILN_LOOP_or,  KILN_LOOP_xor, KILN_LOOP_neg, KILN_LOOP_abs, KILN_LOOP_not, KILN_LOOP_quot};
  static const kiln_loop_opcode bools[] = {KILN_LOOP_and, KILN_LOOP_or, KILN_LOOP_xor,
                                           KILN_LOOP_not};
  static const kiln_loop_opcode compares[] = {KILN_LOOP_eq, KILN_LOOP_ne, KILN_LOOP_lt,
                                              KILN_LOOP_le, KILN_LOOP_gt, KILN_LOOP_ge};
  const kiln_dtype dtype = nest->body.data[a].dtype;
  if (random_below(&k->seed, 6) == 0) {
    const int mask = kiln_loop_op(k->fn, nest, PICK(&k->seed, compares), a, b, -1);
    return kiln_loop_op(k->fn, nest, KILN_LOOP_select, mask, b, a);
  }
  const kiln_loop_opcode op = dtype == KILN_DTYPE_BOOL ? PICK(&k->seed, bools)
                              : plain_is_float(dtype)  ? PICK(&k->seed, floats)
                                                       : PICK(&k->seed, ints);
  return kiln_loop_op(k->fn, nest, op, a, b, -1);
}
/* A value of the two, of the same type. */
static int random_value(kernel *k, kiln_loop_nest *nest, int a, int b) {
  const kiln_dtype dtype = nest->body.data[a].dtype;
  if (random_below(&k->seed, 2)) return a;
  if (random_below(&k->seed, 4) == 0) b = random_index(k, nest, dtype);
  if (random_below(&k->seed, 8) == 0)
    b = kiln_loop_const(k->fn, nest, dtype, random_below(&k->seed, 2));
  for (int n = random_below(&k->seed, 3); n >= 0; n--) a = random_step(k, nest, a, b);
  return a;
}

static kiln_dtype random_sizes(kernel *k, int rank, int *loops, int64_t *sizes) {
  static const kiln_dtype dtypes[] = {KILN_DTYPE_F32, KILN_DTYPE_F32, KILN_DTYPE_F64,
                                      KILN_DTYPE_I64, KILN_DTYPE_I32, KILN_DTYPE_U8,
                                      KILN_DTYPE_I8,  KILN_DTYPE_BOOL};
  static const int64_t outer[] = {1, 2, 3, 7, 20, 64, 65, 150};
  static const int64_t inner[] = {1, 2, 5, 16, 63, 64, 65, 100, 130, 600, 1100, 33000};
  const int64_t most = random_rounds(0) ? 1 << 11 : MOST; /* of many kernels small ones */
  int64_t total = 1;
  *loops = 1 + random_below(&k->seed, 2);
  for (int d = 0; d < rank + *loops; d++) {
    sizes[d] = d < rank ? PICK(&k->seed, outer) : PICK(&k->seed, inner);
    if (total * sizes[d] > most) sizes[d] = 1 + random_below(&k->seed, 3);
    if (total * sizes[d] > most) sizes[d] = 1;
    total *= sizes[d];
  }
  return PICK(&k->seed, dtypes);
}

/* A size that differs from call to call, in one of the ways in which sizes come from others. The
 * same random numbers are drawn for a kernel of numbers. */
static kiln_dim random_dim(kernel *k, int64_t size) {
  const int way = random_below(&k->seed, 5), old = random_below(&k->seed, 8);
  const int64_t worth = way == 1 ? size - 1 : way == 2 ? size / 2 : way == 3 ? 2 * size + 1 : size;
  if (!k->symbolic || way == 0 || worth < 2 || (way == 2 && size % 2)) return size;
  int number = old < k->symbol_count && k->symbols[old] == worth ? old : k->symbol_count++;
  k->symbols[number] = worth;
  const kiln_sum s = kiln_sum_of(k->fn->dims, kiln_dim_symbol(number));
  switch (way) {
    case 1: return kiln_sum_dim(k->fn->dims, kiln_sum_plus(s, kiln_sum_number(1)));
    case 2: return kiln_sum_dim(k->fn->dims, kiln_sum_times(s, 2));
    case 3: return kiln_sum_dim(k->fn->dims, kiln_sum_divided(k->fn->dims, s, 2));
    default: return kiln_sum_dim(k->fn->dims, s);
  }
}

/* A loop in turn: running sums or products, and what else is made of them. */
static void add_scan(kernel *k, kiln_loop_nest *nest, const kiln_dim *sizes,
                     const kiln_dim *strides, kiln_dtype dtype, int result) {
  kiln_loop_open(k->fn, nest, KILN_LOOP_scan, sizes[nest->rank]);
  const int a = kiln_loop_load(k->fn, nest, 0, 0, strides);
  static const kiln_loop_opcode scans[] = {KILN_LOOP_cumsum, KILN_LOOP_cumsum, KILN_LOOP_cumprod,
                                           KILN_LOOP_cummax, KILN_LOOP_cummin};
  const kiln_loop_opcode op = PICK(&k->seed, scans);
  int value = kiln_loop_op(k->fn, nest, op, random_value(k, nest, a, result), -1, -1);
  if (random_below(&k->seed, 2)) value = random_value(k, nest, value, a);
  if (random_below(&k->seed, 4) == 0)
    value = kiln_loop_op(k->fn, nest, PICK(&k->seed, scans), value, -1, -1);
  add_output(k, nest, dtype, nest->rank + 1, sizes, value);
  kiln_loop_end(k->fn, nest);
}

/* Instead of an input that moves with the loops a vector, and its element that the index has. */
static void add_table(kernel *k, kiln_dtype dtype) {
  kiln_loop_add_input(k->fn, dtype, 1, (kiln_dim[]){LIMIT}, (kiln_dim[]){1});
  k->spans[1] = LIMIT;
}
static int add_gather(kernel *k, kiln_loop_nest *nest, const kiln_dim *strides) {
  const kiln_dim still[KILN_LOOP_MAX_RANK] = {0};
  const int index = kiln_loop_load(k->fn, nest, INDEX, 0, strides);
  const int check = kiln_loop_check(k->fn, nest, index, LIMIT);
  return kiln_loop_gather(k->fn, nest, 1, 0, still, check, 1);
}

/* One or two groups of loops: what the first reduces, and perhaps keeps in a local buffer, the
 * second uses for each element again. */
static kiln_status *make_kernel(kernel *k, kiln_arena *arena) {
  kiln_dim sizes[8], strides[INPUTS][KILN_LOOP_MAX_RANK];
  int loops, results[2], result_count = 0;
  const int rank = random_below(&k->seed, 3);
  const kiln_dtype dtype = random_sizes(k, rank, &loops, sizes);
  k->fn = kiln_loop_create(arena);
  for (int d = 0; d < rank + loops; d++) sizes[d] = random_dim(k, sizes[d]);
  const bool gathers = random_below(&k->seed, 4) == 0;
  for (int i = 0; i < INPUTS; i++) {
    k->spans[i] = random_strides(k, rank + loops, sizes, true, strides[i]);
    if (gathers && i == 1)
      add_table(k, dtype);
    else
      kiln_loop_add_input(k->fn, i == INDEX ? KILN_DTYPE_I64 : dtype, rank + loops, sizes,
                          strides[i]);
  }
  kiln_loop_nest *nest = kiln_loop_add_nest(k->fn, rank, sizes);
  for (int n = 0; n < loops; n++) kiln_loop_open(k->fn, nest, KILN_LOOP_reduce, sizes[rank + n]);
  int a = kiln_loop_load(k->fn, nest, 0, 0, strides[0]);
  int b =
      gathers ? add_gather(k, nest, strides[INDEX]) : kiln_loop_load(k->fn, nest, 1, 0, strides[1]);
  const int value = random_value(k, nest, a, b);
  const bool inside = loops == 2 && random_below(&k->seed, 3) == 0; /* rows, then their results */
  for (int n = 0; n < 2; n++) {
    kiln_loop_opcode op = random_reduction(k, dtype);
    if (inside && kiln_loop_ops[op].rule == KILN_LOOP_RULE_FIND) op = KILN_LOOP_amax;
    results[result_count++] = kiln_loop_reduce(k->fn, nest, op, value, b, inside ? 1 : loops);
  }
  kiln_loop_end(k->fn, nest);
  for (int n = 0; inside && n < 2; n++) {
    const kiln_loop_opcode op = random_reduction(k, dtype);
    results[n] = kiln_loop_reduce(k->fn, nest, op, results[n], results[n], 1);
  }
  if (loops == 2) kiln_loop_end(k->fn, nest);
  const bool again = random_below(&k->seed, 2), each = random_below(&k->seed, 2);
  const bool scan = loops == 1 && dtype != KILN_DTYPE_BOOL && random_below(&k->seed, 3) > 0;
  int third = -1;
  if (again && scan && nest->body.data[results[0]].dtype == dtype) {
    add_scan(k, nest, sizes, strides[0], dtype, results[0]);
  } else if (again && nest->body.data[results[0]].dtype == dtype) {
    for (int n = 0; n < loops; n++)
      kiln_loop_open(k->fn, nest, each ? KILN_LOOP_for : KILN_LOOP_reduce, sizes[rank + n]);
    a = kiln_loop_load(k->fn, nest, 0, 0, strides[0]);
    b = random_value(k, nest, a, results[0]);
    if (each)
      add_output(k, nest, dtype, rank + loops, sizes, b);
    else
      third = kiln_loop_reduce(k->fn, nest, random_reduction(k, dtype), b, a, loops);
    for (int n = 0; n < loops; n++) kiln_loop_end(k->fn, nest);
  }
  for (int n = 0; n < 2; n++)
    add_output(k, nest, nest->body.data[results[n]].dtype, rank, sizes, results[n]);
  if (third >= 0) add_output(k, nest, nest->body.data[third].dtype, rank, sizes, third);
  KILN_TRY(kiln_loop_verify(k->fn));
  KILN_TRY(kiln_loop_optimize(k->fn, arena));
  return kiln_loop_verify(k->fn);
}

/* One of few numbers, so that many are equal: the edges, and 0. */
static element few_number(kernel *k, kiln_dtype dtype, int count) {
  static const double edges[] = {-INFINITY, INFINITY, 0.0, -0.0};
  const int64_t least = -1 - (INT64_MAX >> (64 - 8 * kiln_loop_size(dtype)));
  const int which = random_below(&k->seed, count);
  if (plain_is_float(dtype)) return (element){.f = edges[which]};
  if (dtype == KILN_DTYPE_BOOL) return (element){.i = which & 1};
  return (element){.i = which == 0 ? least : which == 1 ? -1 - least : which};
}
static void fill_input(kernel *k, int i) {
  static const double special[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1e30, -1e-30, 0x1p-140};
  const kiln_dtype dtype = k->fn->buffers.data[i].dtype;
  const int odd = random_below(&k->seed, 3) ? 1 << 30 : 1000; /* some have no special numbers */
  const int few = random_below(&k->seed, 4) ? 0 : 1 + random_below(&k->seed, 4);
  for (int64_t n = 0; n < k->spans[i]; n++) {
    const int r = random_below(&k->seed, 4000) - 2000;
    element e = {.f = random_below(&k->seed, odd) == 0 ? PICK(&k->seed, special) : r / 700.0};
    if (!plain_is_float(dtype)) e.i = dtype == KILN_DTYPE_BOOL ? r & 1 : r;
    if (few) e = few_number(k, dtype, few);
    if (i == INDEX) e.i = (r + 2000) % LIMIT;
    store_element(dtype, k->data[i], n, e);
  }
}

/* -- Running -- */

/* With the sizes of `of`. */
static void run_code(kernel *k, const kernel *of, const kiln_compiled *code) {
  kiln_kernel_work work = code->info.work;
  assert_int_equal(code->info.symbol_count, of->symbol_count);
  assert_int_equal(code->info.shape != NULL, of->symbol_count > 0);
  if (of->symbol_count > 0)
    assert_true(kiln_kernel_shape_work(code->info.shape, of->symbols, &work));
  void *data[INPUTS + MAX_OUTPUTS], *scratch = aligned_alloc(64, work.scratch_bytes / 64 * 64 + 64);
  for (int i = 0; i < INPUTS + MAX_OUTPUTS; i++) data[i] = k->data[i];
  uint32_t fault = 0;
  const kiln_kernel_args args = {.data = data,
                                 .scratch = scratch,
                                 .closure = code->closure,
                                 .symbols = of->symbols,
                                 .fault = &fault};
  run_in_boxes(&k->seed, code, &args, work.grid, 0);
  assert_int_equal(fault, 0);
  free(scratch);
}

static void check_same(const kernel *k, const kernel *of, char *const *want, int n, const char *who,
                       kiln_arena *arena) {
  for (int i = INPUTS; i < k->fn->input_count + k->fn->output_count; i++) {
    const kiln_dtype dtype = k->fn->buffers.data[i].dtype;
    for (int64_t at = 0; at < k->spans[i]; at++) {
      const element x = load_element(dtype, want[i], at), y = load_element(dtype, k->data[i], at);
      if (x.i == y.i || (plain_is_float(dtype) && isnan(x.f) && isnan(y.f))) continue;
      kiln_str text = kiln_loop_print(of->fn, arena);
      fail_msg("%s, kernel %d, b%d, element %lld: %.9g %lld, not %.9g %lld\n" KILN_STR_FMT, who, n,
               i, (long long)at, y.f, (long long)y.i, x.f, (long long)x.i, KILN_STR_ARG(text));
    }
  }
}

typedef enum runner { EVALUATOR, LLVM, DRAWN } runner; /* the last: LLVM under a random schedule */

static void run_with(kiln_codegen *codegen, kernel *k, const kernel *of, runner how,
                     char *const *want, int n, kiln_arena *arena) {
  const kiln_backend backend = how == EVALUATOR ? KILN_BACKEND_EVAL : KILN_BACKEND_LLVM;
  drawn_job d = {.codegen = codegen, .fn = of->fn, .seed = &k->seed, .arena = arena};
  kiln_reason reason;
  kiln_compiled *code;
  const int buffers = k->fn->input_count + k->fn->output_count;
  for (int i = INPUTS; i < buffers; i++)
    k->data[i] = calloc((size_t)k->spans[i], (size_t)kiln_loop_size(k->fn->buffers.data[i].dtype));
  if (how == DRAWN) {
    assert_ok(compile_drawn(&d));
    code = d.code;
  } else {
    assert_ok(kiln_codegen_compile(codegen, of->fn, backend, &reason, &code, NULL));
  }
  run_code(k, of, code);
  const char *who = how == EVALUATOR ? "evaluator" : how == LLVM ? "LLVM" : d.text.data;
  check_same(k, of, want, n, who, arena);
  kiln_compiled_release(code);
  for (int i = INPUTS; i < buffers; i++) free(k->data[i]);
}

/* False where sizes are longer expressions than there are. */
static bool make_symbolic(kernel *k, kiln_arena *arena) {
  kiln_status *status = make_kernel(k, arena);
  if (!status) return true;
  if (!strstr(kiln_status_report(status), "too many terms")) assert_ok(status);
  kiln_status_destroy(status);
  return false;
}

static void random_kernels(kiln_isa isa, uint64_t seed, int count) {
  fixture f;
  fixture_open(&f);
  f.env->isa = isa;
  kiln_codegen *codegen;
  int with_symbols = 0;
  assert_ok(kiln_codegen_create(f.env, &codegen));
  for (int n = 0; n < count; n++) {
    kernel k = {.seed = random_seed(seed) + (uint64_t)n * 7919};
    char *want[INPUTS + MAX_OUTPUTS];
    random_next(&k.seed);
    kernel symbolic = {.seed = k.seed, .symbolic = true};
    assert_ok(make_kernel(&k, f.arena));
    const bool has_symbols = make_symbolic(&symbolic, f.arena);
    with_symbols += has_symbols && symbolic.symbol_count > 0;
    const int buffers = k.fn->input_count + k.fn->output_count;
    for (int i = 0; i < buffers; i++) {
      k.data[i] = calloc((size_t)k.spans[i], (size_t)kiln_loop_size(k.fn->buffers.data[i].dtype));
      if (i < INPUTS) fill_input(&k, i);
    }
    run_plain(&k, f.arena, isa != KILN_ISA_V2);
    memcpy(want, k.data, sizeof want);
    for (int of = 0; of <= has_symbols; of++) {
      for (int how = EVALUATOR; how <= (llvm_compiles(n) ? DRAWN : EVALUATOR); how++)
        run_with(codegen, &k, of ? &symbolic : &k, (runner)how, want, n, f.arena);
    }
    if (isa == KILN_ISA_AVX2) {
      const uint32_t none = 0, *fault = kiln_loop_can_fault(k.fn) ? &none : NULL;
      write_gpu_case(&(gpu_case){codegen, k.fn, want, k.spans, NULL, NULL, fault}, f.arena);
      if (has_symbols)
        write_gpu_case(
            &(gpu_case){codegen, symbolic.fn, want, k.spans, NULL, symbolic.symbols, fault},
            f.arena);
    }
    for (int i = 0; i < buffers; i++) free(want[i]);
    kiln_arena_reset(f.arena);
  }
  assert_true(with_symbols > count / 2);
  kiln_codegen_destroy(codegen);
  fixture_close(&f);
}

static void test_v2(void **unused) {
  (void)unused;
  random_kernels(KILN_ISA_V2, 1, random_rounds(150));
}
static void test_avx2(void **unused) {
  (void)unused;
  if (isa_count() <= KILN_ISA_AVX2) skip();
  random_kernels(KILN_ISA_AVX2, 1000003, gpu_case_count(150));
}
static void test_avx512(void **unused) {
  (void)unused;
  if (isa_count() <= KILN_ISA_AVX512) skip();
  random_kernels(KILN_ISA_AVX512, 2000003, random_rounds(150));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_v2), cmocka_unit_test(test_avx2),
                                     cmocka_unit_test(test_avx512)};
  filter_gpu_cases();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
