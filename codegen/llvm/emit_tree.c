/* emit_tree.c: nests with loops in their bodies.
 *
 * Every value is a vector. Its lanes are iterations of the vectors' loop (loop.h): of the nest's
 * innermost one, so that loops of the body are plain loops around vectors, or of each innermost
 * loop of the body, outside of which all lanes are alike. A vectors' loop goes in whole vectors and
 * one partial one. What is reduced stands in KILN_REDUCE_LANES accumulators in memory: numbers, of
 * which a vector takes some, where the iterations are lanes themselves; vectors elsewhere. Of a
 * short body they are in registers, with KILN_REDUCE_LANES iterations at once; what these leave
 * goes in partial vectors alone. */
#include "codegen/llvm/emit_state.h"

enum {
  SHORT_BODY = 12, /* instructions that are emitted several times */
  FEW_VECTORS = 16 /* that are filled without a loop */
};

typedef struct range {
  LLVMValueRef first, last;
  int64_t count; /* -1: not known */
} range;

/* -- Small parts -- */

static bool is_loop(const tree *t, int i) {
  return kiln_loop_ops[t->nest->body.data[i].op].rule == KILN_LOOP_RULE_OPEN;
}
/* Whether the loop's iterations are lanes: not where what it reduces over other loops too begins
 * between two accumulators. */
static bool is_strip(const tree *t, int open) {
  const kiln_dim extent = t->nest->body.data[open].offset;
  const bool whole = kiln_dim_is_number(extent) && extent % KILN_REDUCE_LANES == 0;
  for (int i = open + 1; i < t->scopes.end[open]; i++) {
    const kiln_loop_inst *inst = &t->nest->body.data[i];
    if (is_loop(t, i)) return false;
    if (kiln_loop_reduces(inst->op) && inst->index > 1 && !whole) return false;
  }
  return t->rows;
}
/* Whether what instruction i reduces begins with the loop. */
static bool begins_with(const tree *t, int i, int open) {
  const kiln_loop_inst *inst = &t->nest->body.data[i];
  return kiln_loop_reduces(inst->op) && t->scopes.depth[i] - inst->index == t->scopes.depth[open];
}
static kiln_dtype operand_dtype(const tree *t, int i) {
  return t->nest->body.data[t->nest->body.data[i].args[0]].dtype;
}

/* -- Memory -- */

static bool is_local(const tree *t, const kiln_loop_inst *inst) {
  return inst->index >= t->e->fn->input_count + t->e->fn->output_count;
}

/* Of a local buffer of columns: each of its elements is a vector. */
static LLVMValueRef local_address(const tree *t, const kiln_loop_inst *inst, int depth) {
  const kiln__llvm_emitter *e = t->e;
  LLVMValueRef index = kiln__llvm_emit_dim(e, inst->offset);
  for (int d = t->nest->rank; d < depth; d++) {
    LLVMValueRef step = kiln__llvm_emit_dim(e, inst->strides[d]);
    index = binary(e, LLVMAdd, index, binary(e, LLVMMul, t->s->counters[d], step));
  }
  index = binary(e, LLVMMul, index, kiln__llvm_emit_index(e, e->width));
  return offset_by(e, inst->dtype, e->data[inst->index], index);
}

/* Element by element; lanes that do not exist read the last that does. */
static LLVMValueRef gather(const tree *t, const kiln_loop_inst *inst, const place *p,
                           LLVMValueRef at, kiln_dim step) {
  const kiln__llvm_emitter *e = t->e;
  LLVMValueRef value = LL->GetPoison(memory_vector(e, inst->dtype));
  LLVMValueRef one = kiln__llvm_emit_index(e, 1);
  LLVMValueRef last = p->left ? binary(e, LLVMSub, p->left, one) : NULL;
  for (int i = 0; i < e->width; i++) {
    LLVMValueRef lane = kiln__llvm_emit_index(e, i);
    if (last && i > 0) lane = least(e, lane, last);
    LLVMValueRef index = binary(e, LLVMMul, lane, kiln__llvm_emit_dim(e, step));
    LLVMValueRef element = LL->BuildLoad2(BUILD, kiln__llvm_emit_memory_type(e, inst->dtype),
                                          offset_by(e, inst->dtype, at, index), "");
    value = LL->BuildInsertElement(BUILD, value, element, LL->ConstInt(e->i32, (unsigned)i, 0), "");
  }
  return value;
}

/* Whether a value may differ from lane to lane. */
static bool has_lanes(const tree *t, int value, const place *p) {
  if (p->loop < 0) return false;
  return p->loop < t->nest->rank ? t->s->levels[value] > p->loop : t->scopes.depth[value] > p->loop;
}

LLVMValueRef kiln__llvm_emit_load_at(const tree *t, int number, const place *p, LLVMValueRef at) {
  kiln__llvm_emitter *e = t->e;
  const kiln_loop_inst *inst = &t->nest->body.data[number];
  const int align = kiln_loop_size(inst->dtype);
  LLVMTypeRef type = memory_vector(e, inst->dtype);
  LLVMValueRef value;
  const kiln_dim step = p->loop < 0 ? 0 : inst->strides[p->loop];
  if (inst->op == KILN_LOOP_gather) {
    if (has_lanes(t, inst->args[0], p)) {
      LLVMValueRef one = kiln__llvm_emit_index(e, 1);
      LLVMValueRef last = p->left ? binary(e, LLVMSub, p->left, one) : NULL;
      return from_memory(e, inst->dtype, kiln__llvm_emit_gather(e, inst, at, step, last));
    }
    at = kiln__llvm_emit_row(e, inst, at);
  }
  if (step == 0) {
    value = LL->BuildLoad2(BUILD, kiln__llvm_emit_memory_type(e, inst->dtype), at, "");
    return from_memory(e, inst->dtype, kiln__llvm_emit_splat(e, value, e->width));
  }
  if (step == 1 && p->left && has_masks(e, inst->dtype)) {
    value = load_masked(e, type, at, align, p->mask);
  } else if (step == 1 && !p->left) {
    value = load_aligned(e, type, at, align);
  } else {
    value = gather(t, inst, p, at, step);
  }
  return from_memory(e, inst->dtype, value);
}

static LLVMValueRef emit_load(const tree *t, int number, const place *p) {
  kiln__llvm_emitter *e = t->e;
  const kiln_loop_inst *inst = &t->nest->body.data[number];
  const int depth = t->scopes.depth[number], align = kiln_loop_size(inst->dtype);
  if (is_local(t, inst) && !t->rows) {
    return from_memory(
        e, inst->dtype,
        load_aligned(e, memory_vector(e, inst->dtype), local_address(t, inst, depth), align));
  }
  return kiln__llvm_emit_load_at(t, number, p, address_of(e, t->s, inst, depth));
}

/* Element by element: all lanes, or those that exist. */
static void scatter(const tree *t, const kiln_loop_inst *inst, const place *p, LLVMValueRef value,
                    LLVMValueRef at, kiln_dim step) {
  kiln__llvm_emitter *e = t->e;
  if (!p->left) {
    for (int i = 0; i < e->width; i++) {
      LLVMValueRef index =
          binary(e, LLVMMul, kiln__llvm_emit_index(e, i), kiln__llvm_emit_dim(e, step));
      LL->BuildStore(BUILD, lane_of(e, value, i), offset_by(e, inst->dtype, at, index));
    }
    return;
  }
  LLVMValueRef buffer = kiln__llvm_emit_stack(e, inst->dtype, e->width);
  store_aligned(e, value, buffer, kiln_loop_size(inst->dtype));
  loop l = loop_begin(e, kiln__llvm_emit_index(e, 0));
  LLVMValueRef index = binary(e, LLVMMul, l.counter, kiln__llvm_emit_dim(e, step));
  LLVMValueRef element = LL->BuildLoad2(BUILD, kiln__llvm_emit_memory_type(e, inst->dtype),
                                        offset_by(e, inst->dtype, buffer, l.counter), "");
  LL->BuildStore(BUILD, element, offset_by(e, inst->dtype, at, index));
  loop_end(e, l, 1, p->left);
}

static void emit_store(const tree *t, int number, const place *p) {
  kiln__llvm_emitter *e = t->e;
  const kiln_loop_inst *inst = &t->nest->body.data[number];
  const int depth = t->scopes.depth[number], align = kiln_loop_size(inst->dtype);
  LLVMValueRef value = to_memory(e, inst->dtype, e->values[inst->args[0]]);
  if (is_local(t, inst) && !t->rows) {
    store_aligned(e, value, local_address(t, inst, depth), align);
    return;
  }
  LLVMValueRef at = address_of(e, t->s, inst, depth);
  const kiln_dim step = p->loop < 0 ? 0 : inst->strides[p->loop];
  if (step == 0) { /* of one iteration */
    LL->BuildStore(BUILD, lane_of(e, value, 0), at);
  } else if (step == 1 && p->left && has_masks(e, inst->dtype)) {
    store_masked(e, value, at, align, p->mask);
  } else if (step == 1 && !p->left) {
    store_aligned(e, value, at, align);
  } else {
    scatter(t, inst, p, value, at, step);
  }
}

/* -- Accumulators -- */

static bool in_strip(const tree *t, int i) { return is_strip(t, t->scopes.parent[i]); }
static int vectors_of(const tree *t, int i) {
  return in_strip(t, i) ? KILN_REDUCE_LANES / t->e->width : KILN_REDUCE_LANES;
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

/* The first values of the accumulators from `at` on, in elements. */
static void store_first(const tree *t, int i, bool find, LLVMValueRef at) {
  const kiln__llvm_emitter *e = t->e;
  const kiln_dtype dtype = operand_dtype(t, i);
  store_vector(t, offset_by(e, dtype, e->reductions[i], at), dtype, first_value(t, i));
  if (!find) return;
  store_vector(t, offset_by(e, KILN_DTYPE_I64, e->places[i], at), KILN_DTYPE_I64,
               number(t, KILN_DTYPE_I64, 0, INT64_MAX));
}

static void begin_reduction(const tree *t, int i) {
  kiln__llvm_emitter *e = t->e;
  const bool find = kiln_loop_ops[t->nest->body.data[i].op].rule == KILN_LOOP_RULE_FIND;
  const int count = vectors_of(t, i) * e->width;
  e->reductions[i] = kiln__llvm_emit_stack(e, operand_dtype(t, i), count);
  if (find) e->places[i] = kiln__llvm_emit_stack(e, KILN_DTYPE_I64, count);
  if (vectors_of(t, i) <= FEW_VECTORS) { /* compile faster than a loop */
    for (int at = 0; at < count; at += e->width)
      store_first(t, i, find, kiln__llvm_emit_index(e, at));
    return;
  }
  loop l = loop_begin(e, kiln__llvm_emit_index(e, 0));
  store_first(t, i, find, l.counter);
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
  LLVMValueRef all = kiln__llvm_emit_splat(e, iteration_of(t, i), e->width);
  if (!in_strip(t, i)) return all;
  LLVMTypeRef type = LL->VectorType(e->i64, (unsigned)e->width);
  LLVMValueRef lanes =
      LL->BuildCast(BUILD, LLVMZExt, kiln__llvm_emit_iota(e, 0, e->width), type, "");
  return binary(e, LLVMAdd, all, lanes);
}

/* Whether x, at places k, is to be taken instead of the best, at places b. */
static LLVMValueRef better(const tree *t, int i, LLVMValueRef x, LLVMValueRef k, LLVMValueRef best,
                           LLVMValueRef b) {
  const kiln__llvm_emitter *e = t->e;
  const kiln_dtype dtype = operand_dtype(t, i);
  const bool most = t->nest->body.data[i].op == KILN_LOOP_argmax;
  LLVMValueRef earlier = LL->BuildICmp(BUILD, LLVMIntSLT, k, b, "");
  if (kiln_loop_class(dtype) != KILN_LOOP_CLASS_F) {
    const bool is_unsigned = dtype == KILN_DTYPE_U8;
    const LLVMIntPredicate p =
        most ? (is_unsigned ? LLVMIntUGT : LLVMIntSGT) : (is_unsigned ? LLVMIntULT : LLVMIntSLT);
    LLVMValueRef equal = LL->BuildICmp(BUILD, LLVMIntEQ, x, best, "");
    return binary(e, LLVMOr, LL->BuildICmp(BUILD, p, x, best, ""),
                  binary(e, LLVMAnd, equal, earlier));
  }
  LLVMValueRef x_nan = LL->BuildFCmp(BUILD, LLVMRealUNO, x, x, "");
  LLVMValueRef best_nan = LL->BuildFCmp(BUILD, LLVMRealUNO, best, best, "");
  LLVMValueRef beyond = LL->BuildFCmp(BUILD, most ? LLVMRealOGT : LLVMRealOLT, x, best, "");
  LLVMValueRef equal = LL->BuildFCmp(BUILD, LLVMRealOEQ, x, best, "");
  equal = binary(e, LLVMOr, equal, binary(e, LLVMAnd, x_nan, best_nan));
  LLVMValueRef best_is = LL->BuildFCmp(BUILD, LLVMRealORD, best, best, "");
  LLVMValueRef first_nan = binary(e, LLVMAnd, x_nan, best_is);
  return binary(e, LLVMOr, binary(e, LLVMOr, beyond, first_nan),
                binary(e, LLVMAnd, equal, earlier));
}

/* Where the accumulators of the iterations lie, in elements. */
static LLVMValueRef lane_at(const tree *t, int i, const place *p) {
  const kiln__llvm_emitter *e = t->e;
  if (in_strip(t, i)) return p->lane;
  LLVMValueRef lanes = kiln__llvm_emit_index(e, KILN_REDUCE_LANES - 1);
  LLVMValueRef lane = binary(e, LLVMAnd, iteration_of(t, i), lanes);
  return binary(e, LLVMMul, lane, kiln__llvm_emit_index(e, e->width));
}

static void find(const tree *t, int i, LLVMValueRef x, LLVMValueRef at, LLVMValueRef lane,
                 LLVMValueRef mask) {
  kiln__llvm_emitter *e = t->e;
  const kiln_dtype dtype = operand_dtype(t, i);
  LLVMValueRef place_at = offset_by(e, KILN_DTYPE_I64, e->places[i], lane);
  LLVMValueRef old = load_vector(t, at, dtype), now = iterations_of(t, i);
  LLVMValueRef places = load_vector(t, place_at, KILN_DTYPE_I64);
  if (mask) now = LL->BuildSelect(BUILD, mask, now, number(t, KILN_DTYPE_I64, 0, INT64_MAX), "");
  LLVMValueRef take = better(t, i, x, now, old, places);
  store_vector(t, at, dtype, LL->BuildSelect(BUILD, take, x, old, ""));
  store_vector(t, place_at, KILN_DTYPE_I64, LL->BuildSelect(BUILD, take, now, places, ""));
}

static void accumulate(const tree *t, int i, const place *p) {
  kiln__llvm_emitter *e = t->e;
  const kiln_loop_inst *inst = &t->nest->body.data[i];
  const kiln_dtype dtype = operand_dtype(t, i);
  const bool strip = in_strip(t, i);
  LLVMValueRef mask = strip && p->left ? p->mask : NULL, lane = lane_at(t, i, p);
  LLVMValueRef at = offset_by(e, dtype, p->reductions[i], lane);
  LLVMValueRef x = e->values[inst->args[0]], y = inst->args[1] < 0 ? x : e->values[inst->args[1]];
  if (mask) x = LL->BuildSelect(BUILD, mask, x, first_value(t, i), "");
  if (mask) y = LL->BuildSelect(BUILD, mask, y, first_value(t, i), "");
  if (kiln_loop_ops[inst->op].rule == KILN_LOOP_RULE_FIND) {
    find(t, i, x, at, lane, mask);
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

/* x and its places k, and others: what the two give. */
static void join(const tree *t, int i, LLVMValueRef *x, LLVMValueRef *k, LLVMValueRef other,
                 LLVMValueRef places) {
  kiln__llvm_emitter *e = t->e;
  if (!places) {
    *x = kiln__llvm_emit_join(e, t->nest->body.data[i].op, operand_dtype(t, i), *x, other);
    return;
  }
  LLVMValueRef take = better(t, i, other, places, *x, *k);
  *x = LL->BuildSelect(BUILD, take, other, *x, "");
  *k = LL->BuildSelect(BUILD, take, places, *k, "");
}

/* How many accumulators have an iteration, as far as is known: the others change no bit. */
static int used_of(const tree *t, int i) {
  int64_t count = 1;
  int open = t->scopes.parent[i];
  for (int k = t->nest->body.data[i].index; k > 0; k--, open = t->scopes.parent[open]) {
    const kiln_dim extent = t->nest->body.data[open].offset;
    if (!kiln_dim_is_number(extent) || extent >= KILN_REDUCE_LANES) return KILN_REDUCE_LANES;
    count *= extent;
  }
  return count < KILN_REDUCE_LANES ? (int)count : KILN_REDUCE_LANES;
}

/* The first `count` elements of the accumulators take in those `way` further, a vector at a time. */
static void fold_by(const tree *t, int i, bool find, LLVMValueRef way, LLVMValueRef count) {
  kiln__llvm_emitter *e = t->e;
  const kiln_dtype dtype = operand_dtype(t, i);
  loop l = loop_begin(e, kiln__llvm_emit_index(e, 0));
  LLVMValueRef far = binary(e, LLVMAdd, l.counter, way), k = NULL, place_at = NULL, places = NULL;
  LLVMValueRef at = offset_by(e, dtype, e->reductions[i], l.counter);
  LLVMValueRef x = load_vector(t, at, dtype);
  LLVMValueRef other = load_vector(t, offset_by(e, dtype, e->reductions[i], far), dtype);
  if (find) {
    place_at = offset_by(e, KILN_DTYPE_I64, e->places[i], l.counter);
    k = load_vector(t, place_at, KILN_DTYPE_I64);
    places = load_vector(t, offset_by(e, KILN_DTYPE_I64, e->places[i], far), KILN_DTYPE_I64);
  }
  join(t, i, &x, &k, other, places);
  store_vector(t, at, dtype, x);
  if (find) store_vector(t, place_at, KILN_DTYPE_I64, k);
  loop_end(e, l, e->width, count);
}

/* Accumulators become half as many, `halves` times, the first time `most` elements: in memory, by a
 * loop over the halves and one over the vectors of a half. */
static void fold_halves(const tree *t, int i, bool find, int most, int halves) {
  kiln__llvm_emitter *e = t->e;
  loop outer = loop_begin(e, kiln__llvm_emit_index(e, 0));
  LLVMValueRef way = binary(e, LLVMLShr, kiln__llvm_emit_index(e, most), outer.counter);
  fold_by(t, i, find, way, way);
  loop_end(e, outer, 1, kiln__llvm_emit_index(e, halves));
}

/* Of vectors, `used` of which have an iteration. */
static void fold_few(const tree *t, int i, bool find, int used) {
  const kiln__llvm_emitter *e = t->e;
  for (int half = KILN_REDUCE_LANES / 2; half > 0; half /= 2) {
    const int more = used - half < half ? used - half : half;
    if (more <= 0) continue;
    fold_by(t, i, find, kiln__llvm_emit_index(e, half * e->width),
            kiln__llvm_emit_index(e, more * e->width));
  }
}

/* To one number, whose result goes to all lanes. What finds takes long to compile, so that most of
 * it is a loop. */
static void fold_numbers(const tree *t, int i, bool find) {
  kiln__llvm_emitter *e = t->e;
  const kiln_dtype dtype = operand_dtype(t, i);
  const int used = (used_of(t, i) + e->width - 1) / e->width;
  LLVMValueRef x[KILN_REDUCE_LANES] = {0}, k[KILN_REDUCE_LANES] = {0};
  const bool loops = find && used == vectors_of(t, i);
  const int all = loops ? 1 : vectors_of(t, i), count = loops ? 1 : used;
  if (loops)
    fold_halves(t, i, true, KILN_REDUCE_LANES / 2, __builtin_ctz((unsigned)vectors_of(t, i)));
  for (int v = 0; v < count; v++) {
    x[v] = load_vector(t, vector_at(t, e->reductions[i], dtype, v), dtype);
    if (find) k[v] = load_vector(t, vector_at(t, e->places[i], KILN_DTYPE_I64, v), KILN_DTYPE_I64);
  }
  for (int vectors = all / 2; vectors > 0; vectors /= 2) {
    for (int v = 0; v < vectors && v + vectors < count; v++)
      join(t, i, &x[v], &k[v], x[v + vectors], k[v + vectors]);
  }
  for (int half = e->width / 2; half > 0; half /= 2)
    join(t, i, &x[0], &k[0], moved(t, x[0], half), find ? moved(t, k[0], half) : NULL);
  e->values[i] = kiln__llvm_emit_splat(e, lane_of(e, find ? k[0] : x[0], 0), e->width);
}

/* To one vector. */
static void fold_vectors(const tree *t, int i, bool find) {
  kiln__llvm_emitter *e = t->e;
  if (used_of(t, i) == KILN_REDUCE_LANES) {
    fold_halves(t, i, find, KILN_REDUCE_LANES / 2 * e->width, __builtin_ctz(KILN_REDUCE_LANES));
  } else {
    fold_few(t, i, find, used_of(t, i));
  }
  e->values[i] = find ? load_vector(t, e->places[i], KILN_DTYPE_I64)
                      : load_vector(t, e->reductions[i], operand_dtype(t, i));
}

static void end_reduction(const tree *t, int i) {
  const bool find = kiln_loop_ops[t->nest->body.data[i].op].rule == KILN_LOOP_RULE_FIND;
  (in_strip(t, i) ? fold_numbers : fold_vectors)(t, i, find);
}

/* -- Scans: what is carried stands in memory of one vector, or of one number where iterations are
 * lanes -- */

static bool carries_in(const tree *t, int i, int open) {
  return t->scopes.parent[i] == open && kiln_loop_carries(t->nest->body.data[i].op);
}

static void begin_scan(const tree *t, int i) {
  kiln__llvm_emitter *e = t->e;
  const kiln_dtype dtype = operand_dtype(t, i);
  LLVMValueRef first = first_value(t, i);
  e->reductions[i] = kiln__llvm_emit_stack(e, dtype, in_strip(t, i) ? 1 : e->width);
  if (in_strip(t, i))
    LL->BuildStore(BUILD, lane_of(e, first, 0), e->reductions[i]);
  else
    store_vector(t, e->reductions[i], dtype, first);
}

static void carry(const tree *t, int i, const place *p) {
  kiln__llvm_emitter *e = t->e;
  const kiln_loop_inst *inst = &t->nest->body.data[i];
  const kiln_dtype dtype = inst->dtype;
  const kiln_loop_opcode op = inst->op == KILN_LOOP_cumsum ? KILN_LOOP_sum : KILN_LOOP_prod;
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
    sum = kiln__llvm_emit_join(e, op, dtype, sum, LL->BuildExtractElement(BUILD, x, lane, ""));
    e->values[i] = LL->BuildInsertElement(BUILD, e->values[i], sum, lane, "");
  }
  LL->BuildStore(BUILD, sum, at);
}

/* -- Loops -- */

static void emit_range(const tree *t, int begin, int end, const place *p);

/* One step of a loop of rows, its first iteration being `at`. */
static void emit_step(const tree *t, int open, LLVMValueRef at, place *p) {
  t->s->counters[t->scopes.depth[open]] = at;
  emit_range(t, open + 1, t->scopes.end[open], p);
}

static bool is_short(const tree *t, int open) {
  bool reduces = false;
  int count = 0;
  for (int i = open + 1; i < t->scopes.end[open]; i++) {
    const kiln_loop_opcode op = t->nest->body.data[i].op;
    if (kiln_loop_ops[op].rule == KILN_LOOP_RULE_FIND || (int)op >= (int)KILN_LOOP_FIRST_MATH)
      return false;
    reduces |= kiln_loop_reduces(op);
    count++;
  }
  return reduces && count <= SHORT_BODY;
}

/* The sums begin anew with accumulators of registers' own (`begin`), or go back to memory. */
static void exchange_accumulators(const tree *t, int open, bool begin) {
  kiln__llvm_emitter *e = t->e;
  for (int i = open + 1; i < t->scopes.end[open]; i++) {
    if (!kiln_loop_reduces(t->nest->body.data[i].op)) continue;
    const kiln_dtype dtype = operand_dtype(t, i);
    if (begin) e->fast[i] = kiln__llvm_emit_stack(e, dtype, KILN_REDUCE_LANES);
    copy_vectors(t, begin ? e->fast[i] : e->reductions[i], begin ? e->reductions[i] : e->fast[i],
                 dtype, vectors_of(t, i));
  }
}

/* Iterations KILN_REDUCE_LANES at a time, as far as they go; gives where they end. */
static LLVMValueRef emit_blocks(const tree *t, int open, range r) {
  kiln__llvm_emitter *e = t->e;
  if (!is_short(t, open) || (r.count >= 0 && r.count < KILN_REDUCE_LANES)) return r.first;
  LLVMValueRef count = binary(e, LLVMSub, r.last, r.first);
  count = binary(e, LLVMAnd, count, kiln__llvm_emit_index(e, -KILN_REDUCE_LANES));
  LLVMValueRef end = binary(e, LLVMAdd, r.first, count);
  LLVMBasicBlockRef behind = NULL;
  if (r.count < 0) behind = begin_if(e, LL->BuildICmp(BUILD, LLVMIntSLT, r.first, end, ""));
  exchange_accumulators(t, open, true);
  loop l = loop_begin(e, r.first);
  for (int k = 0; k < KILN_REDUCE_LANES; k += e->width) {
    LLVMValueRef lane = kiln__llvm_emit_index(e, k);
    place p = {.loop = t->scopes.depth[open], .lane = lane, .reductions = e->fast};
    emit_step(t, open, binary(e, LLVMAdd, l.counter, lane), &p);
  }
  loop_end(e, l, KILN_REDUCE_LANES, end);
  exchange_accumulators(t, open, false);
  if (behind) end_if(e, behind);
  return end;
}

/* Whether a partial step's accesses take no more than a whole one's, or little more. */
static bool masks_all(const tree *t, int open) {
  for (int i = open + 1; i < t->scopes.end[open]; i++) {
    const kiln_loop_inst *inst = &t->nest->body.data[i];
    if (inst->op != KILN_LOOP_load && inst->op != KILN_LOOP_store) continue;
    const kiln_dim step = inst->strides[t->scopes.depth[open]];
    if (step != 0 && (step != 1 || !has_masks(t->e, inst->dtype))) return false;
  }
  return true;
}

/* The step at `at`, of the iterations before `last`. */
static void emit_partial_step(const tree *t, int open, LLVMValueRef at, LLVMValueRef last) {
  kiln__llvm_emitter *e = t->e;
  place p = {.loop = t->scopes.depth[open], .reductions = e->reductions};
  p.left = least(e, binary(e, LLVMSub, last, at), kiln__llvm_emit_index(e, e->width));
  p.mask = kiln__llvm_emit_mask(e, p.left);
  p.lane = binary(e, LLVMAnd, at, kiln__llvm_emit_index(e, KILN_REDUCE_LANES - 1));
  emit_step(t, open, at, &p);
}

/* A vectors' loop of rows over the range, which begins at a multiple of KILN_REDUCE_LANES. What
 * blocks leave of a short body is little: there all steps are taken for partial ones, and the body
 * stands once less. */
static void emit_strips(const tree *t, int open, range r) {
  kiln__llvm_emitter *e = t->e;
  const int width = e->width;
  const bool is_block = is_short(t, open), once = is_block && masks_all(t, open);
  LLVMValueRef first = emit_blocks(t, open, r), end = r.last;
  const int64_t left = r.count < 0 ? -1 : is_block ? r.count % KILN_REDUCE_LANES : r.count;
  const bool none = left >= 0 && left % width == 0, whole = left < 0 || left >= width;
  if (left == 0) return;
  if (!once || none) {
    LLVMValueRef count = binary(e, LLVMSub, r.last, first);
    count = binary(e, LLVMAnd, count, kiln__llvm_emit_index(e, -width));
    end = binary(e, LLVMAdd, first, count);
  }
  LLVMBasicBlockRef behind = NULL;
  if (whole) {
    if (left < 0) behind = begin_if(e, LL->BuildICmp(BUILD, LLVMIntSLT, first, end, ""));
    loop l = loop_begin(e, first);
    if (once && !none) {
      emit_partial_step(t, open, l.counter, r.last);
    } else {
      place p = {.loop = t->scopes.depth[open], .reductions = e->reductions};
      p.lane = binary(e, LLVMAnd, l.counter, kiln__llvm_emit_index(e, KILN_REDUCE_LANES - 1));
      emit_step(t, open, l.counter, &p);
    }
    loop_end(e, l, width, end);
    if (behind) end_if(e, behind);
  }
  if (none || (once && whole)) return;
  behind = left < 0 ? begin_if(e, LL->BuildICmp(BUILD, LLVMIntSLT, end, r.last, "")) : NULL;
  emit_partial_step(t, open, whole ? end : first, r.last);
  if (behind) end_if(e, behind);
}

static void emit_iterations(const tree *t, int open, range r, const place *p) {
  kiln__llvm_emitter *e = t->e;
  if (is_strip(t, open)) {
    emit_strips(t, open, r);
    return;
  }
  loop l = loop_begin(e, r.first);
  t->s->counters[t->scopes.depth[open]] = l.counter;
  emit_range(t, open + 1, t->scopes.end[open], p);
  loop_end(e, l, 1, r.last);
}

static void emit_body_loop(const tree *t, int open, const place *p) {
  kiln__llvm_emitter *e = t->e;
  const kiln_dim extent = t->nest->body.data[open].offset;
  for (int i = open + 1; i < t->scopes.end[open]; i++) {
    if (begins_with(t, i, open)) begin_reduction(t, i);
    if (carries_in(t, i, open)) begin_scan(t, i);
  }
  const int64_t count = kiln_dim_is_number(extent) ? extent : -1;
  const range all = {kiln__llvm_emit_index(e, 0), kiln__llvm_emit_dim(e, extent), count};
  emit_iterations(t, open, all, p);
  for (int i = open + 1; i < t->scopes.end[open]; i++) {
    if (begins_with(t, i, open)) end_reduction(t, i);
  }
}

static LLVMValueRef value_at(const tree *t, int i, const place *p) {
  const kiln_loop_inst *inst = &t->nest->body.data[i];
  switch (inst->op) {
    case KILN_LOOP_load:
    case KILN_LOOP_gather: return emit_load(t, i, p);
    case KILN_LOOP_index: return indices_of(t->e, t->s, inst, t->scopes.depth[i], p->loop);
    case KILN_LOOP_check: return kiln__llvm_emit_check(t->e, inst, p->left ? p->mask : NULL);
    default: return kiln__llvm_emit_value(t->e, inst);
  }
}

void kiln__llvm_emit_straight(const tree *t, int i, const place *p) {
  if (t->nest->body.data[i].op == KILN_LOOP_store) {
    emit_store(t, i, p);
  } else {
    t->e->values[i] = value_at(t, i, p);
  }
}

static void emit_range(const tree *t, int begin, int end, const place *p) {
  for (int i = begin; i < end; i++) {
    const kiln_loop_inst *inst = &t->nest->body.data[i];
    if (is_loop(t, i)) {
      emit_body_loop(t, i, p);
      i = t->scopes.end[i];
    } else if (kiln_loop_reduces(inst->op)) {
      accumulate(t, i, p);
    } else if (kiln_loop_carries(inst->op)) {
      carry(t, i, p);
    } else if (inst->op == KILN_LOOP_store || t->s->levels[i] == t->s->rank) {
      kiln__llvm_emit_straight(t, i, p); /* else it stands further out already */
    }
  }
}

/* The nest's innermost loop in vectors, the body in each. */
static void emit_columns(const tree *t) {
  kiln__llvm_emitter *e = t->e;
  const int inner = t->nest->rank - 1, count = t->nest->body.count;
  LLVMValueRef first = t->s->first[inner], last = t->s->last[inner];
  LLVMValueRef whole =
      binary(e, LLVMAnd, binary(e, LLVMSub, last, first), kiln__llvm_emit_index(e, -e->width));
  LLVMValueRef end = binary(e, LLVMAdd, first, whole);
  LLVMBasicBlockRef behind = begin_if(e, LL->BuildICmp(BUILD, LLVMIntSLT, first, end, ""));
  loop l = loop_begin(e, first);
  t->s->counters[inner] = l.counter;
  emit_range(t, 0, count, &(place){.loop = inner, .reductions = e->reductions});
  loop_end(e, l, e->width, end);
  end_if(e, behind);
  behind = begin_if(e, LL->BuildICmp(BUILD, LLVMIntSLT, end, last, ""));
  place p = {.loop = inner, .reductions = e->reductions};
  p.left = binary(e, LLVMSub, last, end);
  p.mask = kiln__llvm_emit_mask(e, p.left);
  t->s->counters[inner] = end;
  emit_range(t, 0, count, &p);
  end_if(e, behind);
}

static void emit_nest_loops(const tree *t, int depth) {
  kiln__llvm_emitter *e = t->e;
  if (depth == t->nest->rank) {
    emit_range(t, 0, t->nest->body.count, &(place){.loop = -1, .reductions = e->reductions});
  } else if (depth == t->nest->rank - 1 && !t->rows) {
    emit_columns(t);
  } else {
    loop l = loop_begin(e, t->s->first[depth]);
    t->s->counters[depth] = l.counter;
    if (depth + 1 < t->nest->rank) kiln__llvm_emit_level(e, t->s, depth + 1);
    emit_nest_loops(t, depth + 1);
    loop_end(e, l, 1, t->s->last[depth]);
  }
}

tree kiln__llvm_tree_of(kiln__llvm_emitter *e, nest_state *s, bool rows) {
  tree t = {.e = e, .s = s, .nest = e->nest, .rows = rows, .scopes = e->scopes};
  kiln_loop_find_scopes(e->nest, &t.scopes);
  return t;
}

void kiln__llvm_emit_tree(kiln__llvm_emitter *e, nest_state *s) {
  if (e->nest->tile.rows) {
    kiln__llvm_emit_tile(e, s);
    return;
  }
  const tree t = kiln__llvm_tree_of(e, s, kiln_loop_strips_body(e->nest));
  s->rank = e->nest->rank;
  emit_nest_loops(&t, 0);
}

void kiln__llvm_emit_iteration(kiln__llvm_emitter *e, nest_state *s) {
  const tree t = kiln__llvm_tree_of(e, s, false);
  emit_range(&t, 0, s->count, &(place){.loop = -1, .reductions = e->reductions});
}
