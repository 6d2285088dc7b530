/* emit_reduce.c: what a loop reduces or carries: accumulators, and what they come to (emit_tree.c).
 */
#include <string.h>

#include "codegen/llvm/emit_state.h"

enum {
  FEW_VECTORS = 16, /* that are filled without a loop */
  FIND_VECTORS = 4  /* so many do not wait for each other, and are soon joined */
};

static bool in_strip(const tree *t, int i) { return is_strip(t, t->scopes.parent[i]); }
static bool is_find(const tree *t, int i) {
  return kiln_loop_ops[t->nest->body.data[i].op].rule == KILN_LOOP_RULE_FIND;
}
/* How many accumulators there are. What finds may have any number, as each place goes with its
 * value, and so may sums of products, whose order is the schedule's; PTX has none. */
static int vectors_of(const tree *t, int i) {
  const int all = in_strip(t, i) ? KILN_REDUCE_LANES / t->e->width : KILN_REDUCE_LANES;
  const bool free = t->nest->body.data[i].op == KILN_LOOP_contract && !t->e->target->gpu;
  if (free && !in_strip(t, i)) return 1;
  if (!is_find(t, i)) return all;
  return !in_strip(t, i) ? 1 : all < FIND_VECTORS ? all : FIND_VECTORS;
}
static LLVMValueRef vector_at(const tree *t, LLVMValueRef base, kiln_dtype dtype, int vector) {
  return offset_by(t->e, dtype, base, kiln__llvm_emit_index(t->e, vector * t->e->width));
}
static LLVMValueRef load_vector(const tree *t, LLVMValueRef at, kiln_dtype dtype) {
  const int align = kiln_loop_size(dtype);
  return from_memory(t->e, dtype, load_aligned(t->e, memory_vector(t->e, dtype), at, align));
}
static void store_vector(const tree *t, LLVMValueRef at, kiln_dtype dtype, LLVMValueRef value) {
  store_aligned(t->e, to_memory(t->e, dtype, value), at, kiln_loop_size(dtype));
}
static void copy_vectors(const tree *t, LLVMValueRef to, LLVMValueRef from, kiln_dtype dtype,
                         int count) {
  for (int v = 0; v < count; v++) {
    store_vector(t, vector_at(t, to, dtype, v), dtype,
                 load_vector(t, vector_at(t, from, dtype, v), dtype));
  }
}

static LLVMValueRef number(const tree *t, kiln_dtype dtype, double f, int64_t i) {
  kiln__llvm_emitter *e = t->e;
  LLVMTypeRef type = kiln__llvm_emit_scalar_type(e, dtype);
  const bool is_float = kiln_loop_class(dtype) == KILN_LOOP_CLASS_F;
  return kiln__llvm_emit_splat(
      e, is_float ? LL->ConstReal(type, f) : LL->ConstInt(type, (unsigned long long)i, 1),
      e->width);
}
static LLVMValueRef first_value(const tree *t, int i) {
  const kiln_loop_opcode op = t->nest->body.data[i].op;
  const kiln_dtype dtype = operand_dtype(t, i);
  return number(t, dtype, kiln_loop_first_f(op), kiln_loop_first_i(op, dtype));
}

/* Of the places of what is found: numbers of 4 bytes where they fit, and what is compared has no
 * more. */
static kiln_dtype place_dtype(const tree *t, int i) {
  int64_t count = kiln_loop_size(operand_dtype(t, i)) <= 4 ? 1 : INT64_MAX;
  int open = t->scopes.parent[i];
  for (int k = t->nest->body.data[i].index; k > 0; k--, open = t->scopes.parent[open]) {
    const kiln_dim extent = t->nest->body.data[open].offset;
    if (!kiln_dim_is_number(extent) || extent >= INT32_MAX / count) return KILN_DTYPE_I64;
    count *= extent;
  }
  return KILN_DTYPE_I32;
}
static LLVMValueRef no_place(const tree *t, int i) {
  const kiln_dtype dtype = place_dtype(t, i);
  return number(t, dtype, 0, dtype == KILN_DTYPE_I32 ? INT32_MAX : INT64_MAX);
}
/* As the result has it. */
static LLVMValueRef place_result(const tree *t, int i, LLVMValueRef places) {
  const kiln__llvm_emitter *e = t->e;
  LLVMTypeRef type = kiln__llvm_emit_vector_type(e, KILN_DTYPE_I64);
  if (place_dtype(t, i) == KILN_DTYPE_I64) return places;
  return LL->BuildCast(BUILD, LLVMSExt, places, type, "");
}

/* The first values of the accumulators from `at` on, in elements. Where what is found is no better
 * than they are, it is all there is, and first in place 0. */
static void store_first(const tree *t, int i, LLVMValueRef at) {
  const kiln__llvm_emitter *e = t->e;
  const kiln_dtype dtype = operand_dtype(t, i);
  store_vector(t, offset_by(e, dtype, e->reductions[i], at), dtype, first_value(t, i));
  if (!is_find(t, i)) return;
  const kiln_dtype places = place_dtype(t, i);
  store_vector(t, offset_by(e, places, e->places[i], at), places, number(t, places, 0, 0));
}

void kiln__llvm_begin_reduction(const tree *t, int i) {
  kiln__llvm_emitter *e = t->e;
  const int count = vectors_of(t, i) * e->width;
  e->reductions[i] = kiln__llvm_emit_stack(e, operand_dtype(t, i), count);
  if (is_find(t, i)) e->places[i] = kiln__llvm_emit_stack(e, place_dtype(t, i), count);
  if (vectors_of(t, i) <= FEW_VECTORS) { /* compile faster than a loop */
    for (int at = 0; at < count; at += e->width) store_first(t, i, kiln__llvm_emit_index(e, at));
    return;
  }
  loop l = loop_begin(e, kiln__llvm_emit_index(e, 0));
  store_first(t, i, l.counter);
  loop_end(e, l, e->width, kiln__llvm_emit_index(e, count));
}

/* The number of the iteration that the counters stand at, in the loops of the reduction. */
static LLVMValueRef iteration_of(const tree *t, int i) {
  kiln__llvm_emitter *e = t->e;
  const int depth = t->scopes.depth[i], loops = t->nest->body.data[i].index;
  LLVMValueRef at = kiln__llvm_emit_index(e, 0);
  for (int d = depth - loops, open; d < depth; d++) {
    for (open = t->scopes.parent[i]; t->scopes.depth[open] != d;) open = t->scopes.parent[open];
    LLVMValueRef extent = kiln__llvm_emit_dim(e, t->nest->body.data[open].offset);
    at = binary(e, LLVMAdd, binary(e, LLVMMul, at, extent), t->s->counters[d]);
  }
  return at;
}
/* That of each lane. */
static LLVMValueRef iterations_of(const tree *t, int i) {
  kiln__llvm_emitter *e = t->e;
  LLVMValueRef at = iteration_of(t, i), lanes = kiln__llvm_emit_iota(e, 0, e->width);
  const bool few = place_dtype(t, i) == KILN_DTYPE_I32;
  if (few) at = LL->BuildCast(BUILD, LLVMTrunc, at, e->i32, "");
  at = kiln__llvm_emit_splat(e, at, e->width);
  if (!in_strip(t, i)) return at;
  if (!few) lanes = LL->BuildCast(BUILD, LLVMZExt, lanes, LL->TypeOf(at), "");
  return binary(e, LLVMAdd, at, lanes);
}

/* Whether x is to be taken instead of the best, whose place is before its own. */
static LLVMValueRef beyond(const tree *t, int i, LLVMValueRef x, LLVMValueRef best) {
  const kiln__llvm_emitter *e = t->e;
  const kiln_dtype dtype = operand_dtype(t, i);
  const bool most = t->nest->body.data[i].op == KILN_LOOP_argmax;
  if (kiln_loop_class(dtype) != KILN_LOOP_CLASS_F) {
    const bool is_unsigned = dtype == KILN_DTYPE_U8;
    return LL->BuildICmp(
        BUILD,
        most ? (is_unsigned ? LLVMIntUGT : LLVMIntSGT) : (is_unsigned ? LLVMIntULT : LLVMIntSLT), x,
        best, "");
  }
  return binary(e, LLVMAnd, /* NaN is taken for any number, and none for a NaN */
                LL->BuildFCmp(BUILD, most ? LLVMRealUGT : LLVMRealULT, x, best, ""),
                LL->BuildFCmp(BUILD, LLVMRealORD, best, best, ""));
}

/* Where the accumulators of the iterations lie, in elements. */
static LLVMValueRef lane_at(const tree *t, int i, const place *p) {
  const kiln__llvm_emitter *e = t->e;
  const int count = vectors_of(t, i) * e->width;
  if (vectors_of(t, i) == 1 && !in_strip(t, i)) return kiln__llvm_emit_index(e, 0);
  if (is_find(t, i)) return binary(e, LLVMAnd, p->lane, kiln__llvm_emit_index(e, count - 1));
  if (in_strip(t, i)) return p->lane;
  LLVMValueRef lanes = kiln__llvm_emit_index(e, KILN_REDUCE_LANES - 1);
  LLVMValueRef lane = binary(e, LLVMAnd, iteration_of(t, i), lanes);
  return binary(e, LLVMMul, lane, kiln__llvm_emit_index(e, e->width));
}

/* The better one of the two; of floats by the machine's own instruction and what is known of x
 * alone, so that the next iteration does not wait for `take`. */
static LLVMValueRef better(const tree *t, int i, LLVMValueRef x, LLVMValueRef best,
                           LLVMValueRef take) {
  const kiln__llvm_emitter *e = t->e;
  const bool most = t->nest->body.data[i].op == KILN_LOOP_argmax;
  if (kiln_loop_class(operand_dtype(t, i)) != KILN_LOOP_CLASS_F)
    return LL->BuildSelect(BUILD, take, x, best, "");
  LLVMValueRef more = LL->BuildFCmp(BUILD, most ? LLVMRealOGT : LLVMRealOLT, x, best, "");
  LLVMValueRef nan = LL->BuildFCmp(BUILD, LLVMRealUNO, x, x, "");
  return LL->BuildSelect(BUILD, nan, x, LL->BuildSelect(BUILD, more, x, best, ""), "");
}

static void find(const tree *t, int i, LLVMValueRef x, LLVMValueRef at, LLVMValueRef lane) {
  kiln__llvm_emitter *e = t->e;
  const kiln_dtype dtype = operand_dtype(t, i), of_places = place_dtype(t, i);
  LLVMValueRef place_at = offset_by(e, of_places, e->places[i], lane);
  LLVMValueRef old = load_vector(t, at, dtype), places = load_vector(t, place_at, of_places);
  LLVMValueRef take = beyond(t, i, x, old);
  store_vector(t, at, dtype, better(t, i, x, old, take));
  store_vector(t, place_at, of_places,
               LL->BuildSelect(BUILD, take, iterations_of(t, i), places, ""));
}

void kiln__llvm_accumulate(const tree *t, int i, const place *p) {
  kiln__llvm_emitter *e = t->e;
  const kiln_loop_inst *inst = &t->nest->body.data[i];
  const kiln_dtype dtype = operand_dtype(t, i);
  const bool strip = in_strip(t, i);
  LLVMValueRef mask = strip && p->left ? p->mask : NULL, lane = lane_at(t, i, p);
  LLVMValueRef at = offset_by(e, dtype, p->reductions[i], lane);
  LLVMValueRef x = e->values[inst->args[0]], y = inst->args[1] < 0 ? x : e->values[inst->args[1]];
  if (mask) x = LL->BuildSelect(BUILD, mask, x, first_value(t, i), "");
  if (mask) y = LL->BuildSelect(BUILD, mask, y, first_value(t, i), "");
  if (is_find(t, i)) {
    find(t, i, x, at, lane);
    return;
  }
  LLVMValueRef old = load_vector(t, at, dtype);
  store_vector(t, at, dtype,
               kiln_loop_multiplies(inst->op) ? kiln__llvm_emit_product(e, x, y, old)
                                              : kiln__llvm_emit_join(e, inst->op, dtype, old, x));
}

LLVMValueRef kiln__llvm_emit_product(kiln__llvm_emitter *e, LLVMValueRef x, LLVMValueRef y,
                                     LLVMValueRef more) {
  LLVMTypeRef type = LL->TypeOf(more);
  LLVMValueRef args[3] = {x, y, more};
  return e->target->isa == KILN_ISA_V2
             ? binary(e, LLVMFAdd, binary(e, LLVMFMul, x, y), more)
             : kiln__llvm_emit_intrinsic(e, "llvm.fma", &type, 1, args, 3);
}

/* Lanes `by` further in the vector, in the first ones. */
static LLVMValueRef moved(const tree *t, LLVMValueRef vector, int by) {
  const kiln__llvm_emitter *e = t->e;
  LLVMValueRef lanes[KILN_REDUCE_LANES];
  for (int i = 0; i < e->width; i++)
    lanes[i] = LL->ConstInt(e->i32, (unsigned)((i + by) % e->width), 0);
  return LL->BuildShuffleVector(BUILD, vector, vector, LL->ConstVector(lanes, (unsigned)e->width),
                                "");
}

/* How many accumulators have an iteration, as far as is known: the others change no bit. */
static int used_of(const tree *t, int i) {
  int64_t count = 1;
  if (vectors_of(t, i) == 1) return 1;
  int open = t->scopes.parent[i];
  for (int k = t->nest->body.data[i].index; k > 0; k--, open = t->scopes.parent[open]) {
    const kiln_dim extent = t->nest->body.data[open].offset;
    if (!kiln_dim_is_number(extent) || extent >= KILN_REDUCE_LANES) return KILN_REDUCE_LANES;
    count *= extent;
  }
  return count < KILN_REDUCE_LANES ? (int)count : KILN_REDUCE_LANES;
}

/* The first `count` elements of the accumulators take in those `way` further, a vector at a time.
 */
static void fold_by(const tree *t, int i, LLVMValueRef way, LLVMValueRef count) {
  kiln__llvm_emitter *e = t->e;
  const kiln_dtype dtype = operand_dtype(t, i);
  loop l = loop_begin(e, kiln__llvm_emit_index(e, 0));
  LLVMValueRef far = binary(e, LLVMAdd, l.counter, way);
  LLVMValueRef at = offset_by(e, dtype, e->reductions[i], l.counter);
  LLVMValueRef x = load_vector(t, at, dtype);
  LLVMValueRef other = load_vector(t, offset_by(e, dtype, e->reductions[i], far), dtype);
  store_vector(t, at, dtype, kiln__llvm_emit_join(e, t->nest->body.data[i].op, dtype, x, other));
  loop_end(e, l, e->width, count);
}

/* Accumulators become half as many, until one is left: in memory, by a loop over the halves and one
 * over the vectors of a half. */
static void fold_halves(const tree *t, int i) {
  kiln__llvm_emitter *e = t->e;
  const int most = KILN_REDUCE_LANES / 2 * e->width, halves = __builtin_ctz(KILN_REDUCE_LANES);
  loop outer = loop_begin(e, kiln__llvm_emit_index(e, 0));
  LLVMValueRef way = binary(e, LLVMLShr, kiln__llvm_emit_index(e, most), outer.counter);
  fold_by(t, i, way, way);
  loop_end(e, outer, 1, kiln__llvm_emit_index(e, halves));
}

/* Of vectors, `used` of which have an iteration. */
static void fold_few(const tree *t, int i, int used) {
  const kiln__llvm_emitter *e = t->e;
  for (int half = KILN_REDUCE_LANES / 2; half > 0; half /= 2) {
    const int more = used - half < half ? used - half : half;
    if (more <= 0) continue;
    fold_by(t, i, kiln__llvm_emit_index(e, half * e->width),
            kiln__llvm_emit_index(e, more * e->width));
  }
}

/* `count` vectors to one, whose lanes all have what they come to. */
static LLVMValueRef fold_lanes(const tree *t, kiln_loop_opcode op, kiln_dtype dtype,
                               LLVMValueRef *x, int all, int count) {
  kiln__llvm_emitter *e = t->e;
  for (int vectors = all / 2; vectors > 0; vectors /= 2) {
    for (int v = 0; v < vectors && v + vectors < count; v++)
      x[v] = kiln__llvm_emit_join(e, op, dtype, x[v], x[v + vectors]);
  }
  for (int half = e->width / 2; half > 0; half /= 2)
    x[0] = kiln__llvm_emit_join(e, op, dtype, x[0], moved(t, x[0], half));
  return x[0];
}

/* The best value first, then the least of the places where it, or a NaN, is. */
static LLVMValueRef fold_places(const tree *t, int i) {
  kiln__llvm_emitter *e = t->e;
  const kiln_dtype dtype = operand_dtype(t, i), of_places = place_dtype(t, i);
  const bool is_float = kiln_loop_class(dtype) == KILN_LOOP_CLASS_F;
  const bool most = t->nest->body.data[i].op == KILN_LOOP_argmax;
  const int count = vectors_of(t, i);
  LLVMValueRef x[FIND_VECTORS] = {0}, k[FIND_VECTORS];
  for (int v = 0; v < count; v++)
    x[v] = load_vector(t, vector_at(t, e->reductions[i], dtype, v), dtype);
  memcpy(k, x, sizeof k);
  LLVMValueRef best = fold_lanes(t, most ? KILN_LOOP_amax : KILN_LOOP_amin, dtype, x, count, count);
  for (int v = 0; v < count; v++) {
    LLVMValueRef hit = is_float ? LL->BuildFCmp(BUILD, LLVMRealOEQ, k[v], best, "")
                                : LL->BuildICmp(BUILD, LLVMIntEQ, k[v], best, "");
    if (is_float) hit = binary(e, LLVMOr, hit, LL->BuildFCmp(BUILD, LLVMRealUNO, k[v], k[v], ""));
    LLVMValueRef places = load_vector(t, vector_at(t, e->places[i], of_places, v), of_places);
    k[v] = LL->BuildSelect(BUILD, hit, places, no_place(t, i), "");
  }
  return fold_lanes(t, KILN_LOOP_amin, of_places, k, count, count);
}

/* To one number, whose result goes to all lanes. */
static void fold_numbers(const tree *t, int i) {
  kiln__llvm_emitter *e = t->e;
  const kiln_dtype dtype = operand_dtype(t, i);
  const int count = (used_of(t, i) + e->width - 1) / e->width;
  LLVMValueRef x[KILN_REDUCE_LANES] = {0};
  for (int v = 0; v < count; v++)
    x[v] = load_vector(t, vector_at(t, e->reductions[i], dtype, v), dtype);
  x[0] = fold_lanes(t, t->nest->body.data[i].op, dtype, x, vectors_of(t, i), count);
  e->values[i] = kiln__llvm_emit_splat(e, lane_of(e, x[0], 0), e->width);
}

/* To one vector. */
static void fold_vectors(const tree *t, int i) {
  kiln__llvm_emitter *e = t->e;
  if (used_of(t, i) == KILN_REDUCE_LANES) {
    fold_halves(t, i);
  } else {
    fold_few(t, i, used_of(t, i));
  }
  e->values[i] = load_vector(t, e->reductions[i], operand_dtype(t, i));
}

void kiln__llvm_end_reduction(const tree *t, int i) {
  if (!is_find(t, i)) {
    (in_strip(t, i) ? fold_numbers : fold_vectors)(t, i);
  } else if (in_strip(t, i)) {
    t->e->values[i] = place_result(t, i, fold_places(t, i));
  } else {
    t->e->values[i] = place_result(t, i, load_vector(t, t->e->places[i], place_dtype(t, i)));
  }
}

/* The sums begin anew with accumulators of registers' own (`begin`), or go back to memory. */
void kiln__llvm_exchange_accumulators(const tree *t, int open, bool begin) {
  kiln__llvm_emitter *e = t->e;
  for (int i = open + 1; i < t->scopes.end[open]; i++) {
    if (!kiln_loop_reduces(t->nest->body.data[i].op)) continue;
    const kiln_dtype dtype = operand_dtype(t, i);
    if (begin) e->fast[i] = kiln__llvm_emit_stack(e, dtype, KILN_REDUCE_LANES);
    copy_vectors(t, begin ? e->fast[i] : e->reductions[i], begin ? e->reductions[i] : e->fast[i],
                 dtype, vectors_of(t, i));
  }
}

/* -- Scans: what is carried stands in memory of one vector, or of one number where iterations are
 * lanes -- */

bool kiln__llvm_carries_in(const tree *t, int i, int open) {
  return t->scopes.parent[i] == open && kiln_loop_carries(t->nest->body.data[i].op);
}

void kiln__llvm_begin_scan(const tree *t, int i) {
  kiln__llvm_emitter *e = t->e;
  const kiln_dtype dtype = operand_dtype(t, i);
  LLVMValueRef first = first_value(t, i);
  e->reductions[i] = kiln__llvm_emit_stack(e, dtype, in_strip(t, i) ? 1 : e->width);
  if (in_strip(t, i))
    LL->BuildStore(BUILD, lane_of(e, first, 0), e->reductions[i]);
  else
    store_vector(t, e->reductions[i], dtype, first);
}

void kiln__llvm_carry(const tree *t, int i, const place *p) {
  kiln__llvm_emitter *e = t->e;
  const kiln_loop_inst *inst = &t->nest->body.data[i];
  const kiln_dtype dtype = inst->dtype;
  const kiln_loop_opcode op = kiln_loop_carried(inst->op);
  LLVMValueRef x = e->values[inst->args[0]], at = e->reductions[i], sum;
  if (!in_strip(t, i)) {
    sum = kiln__llvm_emit_join(e, op, dtype, load_vector(t, at, dtype), x);
    store_vector(t, at, dtype, sum);
    e->values[i] = sum;
    return;
  }
  if (p->left) x = LL->BuildSelect(BUILD, p->mask, x, first_value(t, i), "");
  sum = LL->BuildLoad2(BUILD, kiln__llvm_emit_memory_type(e, dtype), at, "");
  e->values[i] = LL->GetPoison(LL->TypeOf(x));
  for (int k = 0; k < e->width; k++) {
    LLVMValueRef lane = LL->ConstInt(e->i32, (unsigned)k, 0);
    if (e->width == 1) {
      e->values[i] = sum = kiln__llvm_emit_join(e, op, dtype, sum, x);
      continue;
    }
    sum = kiln__llvm_emit_join(e, op, dtype, sum, LL->BuildExtractElement(BUILD, x, lane, ""));
    e->values[i] = LL->BuildInsertElement(BUILD, e->values[i], sum, lane, "");
  }
  LL->BuildStore(BUILD, sum, at);
}
