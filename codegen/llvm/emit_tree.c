/* emit_tree.c: nests with loops in their bodies.
 *
 * Every value is a vector. Its lanes are iterations of the vectors' loop (loop.h): of the nest's
 * innermost one, so that loops of the body are plain loops around vectors, or of each innermost
 * loop of the body, outside of which all lanes are alike. A vectors' loop goes in whole vectors and
 * one partial one. What is reduced stands in KILN_REDUCE_LANES accumulators in memory: numbers, of
 * which a vector takes some, where the iterations are lanes themselves; vectors elsewhere. Where
 * unrolled steps are multiples of KILN_REDUCE_LANES they are in registers; what these leave goes in
 * partial vectors alone, if it can. */
#include "codegen/llvm/emit_state.h"
#include "codegen/loop/schedule.h"

typedef struct range {
  LLVMValueRef first, last;
  int64_t count; /* -1: not known */
} range;

/* -- Small parts -- */

/* Whether what instruction i reduces begins with the loop. */
static bool begins_with(const tree *t, int i, int open) {
  const kiln_loop_inst *inst = &t->nest->body.data[i];
  return kiln_loop_reduces(inst->op) && t->scopes.depth[i] - inst->index == t->scopes.depth[open];
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
  if (e->width == 1) return load_aligned(e, LL->TypeOf(value), at, kiln_loop_size(inst->dtype));
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

/* Every second element of two vectors, the later of which begins where it reads no further than the
 * last one that is wanted. */
static LLVMValueRef load_evens(const tree *t, const kiln_loop_inst *inst, LLVMValueRef at) {
  const kiln__llvm_emitter *e = t->e;
  const int width = e->width, align = kiln_loop_size(inst->dtype);
  LLVMTypeRef type = memory_vector(e, inst->dtype);
  LLVMValueRef lanes[KILN_LOOP_LANES];
  LLVMValueRef low = load_aligned(e, type, at, align);
  LLVMValueRef next = offset_by(e, inst->dtype, at, kiln__llvm_emit_index(e, width - 1));
  LLVMValueRef high = load_aligned(e, type, next, align);
  for (int i = 0; i < width; i++)
    lanes[i] = LL->ConstInt(e->i32, (unsigned)(2 * i < width ? 2 * i : 2 * i + 1), 0);
  return LL->BuildShuffleVector(BUILD, low, high, LL->ConstVector(lanes, (unsigned)width), "");
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
  } else if (step == 2 && !p->left && e->width > 1 && e->width % 2 == 0) {
    value = load_evens(t, inst, at);
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
  } else if (spreads(e, inst->dtype, step)) {
    LLVMValueRef all = kiln__llvm_emit_index(e, e->width);
    kiln__llvm_emit_spread(e, value, at, align, (int)step, p->left ? p->left : all);
  } else {
    scatter(t, inst, p, value, at, step);
  }
}

/* -- Loops -- */

static void emit_range(const tree *t, int begin, int end, const place *p);

LLVMValueRef kiln__llvm_emit_extent(const tree *t, int open) {
  const kiln__llvm_emitter *e = t->e;
  const kiln_loop_inst *inst = &t->nest->body.data[open];
  LLVMValueRef extent = kiln__llvm_emit_dim(e, inst->offset);
  if (!kiln_loop_is_part(inst)) return extent;
  LLVMValueRef before = binary(e, LLVMMul, t->s->counters[inst->index], extent);
  LLVMValueRef all = kiln__llvm_emit_dim(e, inst->imm.step);
  return least(e, binary(e, LLVMSub, all, before), extent);
}

/* One step of a loop of rows, its first iteration being `at`. */
static void emit_step(const tree *t, int open, LLVMValueRef at, place *p) {
  t->s->counters[t->scopes.depth[open]] = at;
  emit_range(t, open + 1, t->scopes.end[open], p);
}

/* How many steps of the loop are one; 0: it is not unrolled. */
int kiln__llvm_unroll_of(const tree *t, int open) {
  for (int i = 0; i < t->nest->unrolls.count; i++)
    if (t->nest->unrolls.data[i].open == open) return t->nest->unrolls.data[i].count;
  return 0;
}

/* The lane of an iteration. */
static LLVMValueRef lane_number(const kiln__llvm_emitter *e, LLVMValueRef at) {
  return binary(e, LLVMAnd, at, kiln__llvm_emit_index(e, KILN_REDUCE_LANES - 1));
}

/* Whether the steps of a loop that is unrolled are emitted in turns, each instruction for all of
 * them: functions wait for their own instructions else (interleave.c). Lanes are independent, so
 * that it does not matter how many of them read before the first one writes. */
static bool goes_in_turns(const tree *t, int open) {
  bool functions = false;
  for (int i = open + 1; i < t->scopes.end[open]; i++) {
    const kiln_loop_inst *inst = &t->nest->body.data[i];
    if (is_loop(t, i) || kiln_loop_carries(inst->op)) return false;
    functions |= kiln_loop_is_math(inst->op);
  }
  return functions;
}

/* Steps at `at`, so many of them, in turns. */
static void emit_in_turns(const tree *t, int open, const LLVMValueRef *at, const place *places,
                          int steps) {
  kiln__llvm_emitter *e = t->e;
  LLVMValueRef *outer = e->values;
  const int count = t->nest->body.count;
  for (int k = 0; k < steps; k++)
    memcpy(e->tile_values + k * count, outer, (size_t)count * sizeof(LLVMValueRef));
  for (int i = open + 1; i < t->scopes.end[open]; i++) {
    for (int k = 0; k < steps; k++) {
      e->values = e->tile_values + k * count;
      t->s->counters[t->scopes.depth[open]] = at[k];
      emit_range(t, i, i + 1, &places[k]);
    }
  }
  e->values = outer;
}

/* `unroll` whole vectors at a time, as far as they go; gives where they end. */
static LLVMValueRef emit_unrolled(const tree *t, int open, range r, int unroll) {
  kiln__llvm_emitter *e = t->e;
  const int step = unroll * e->width;
  const bool fast = step % KILN_REDUCE_LANES == 0; /* each vector has the same lanes always */
  if (r.count >= 0 && r.count < step) return r.first;
  LLVMValueRef end =
      binary(e, LLVMAdd, r.first, whole_steps(e, binary(e, LLVMSub, r.last, r.first), step));
  LLVMBasicBlockRef behind = NULL;
  if (r.count < 0) behind = begin_if(e, LL->BuildICmp(BUILD, LLVMIntSLT, r.first, end, ""));
  if (fast) kiln__llvm_exchange_accumulators(t, open, true);
  loop l = loop_begin(e, r.first);
  const bool turns = goes_in_turns(t, open);
  LLVMValueRef at[KILN_SCHEDULE_MAX_UNROLL];
  place p[KILN_SCHEDULE_MAX_UNROLL];
  for (int k = 0; k < unroll; k++) {
    at[k] = binary(e, LLVMAdd, l.counter, kiln__llvm_emit_index(e, (int64_t)k * e->width));
    p[k] = (place){.loop = t->scopes.depth[open], .reductions = fast ? e->fast : e->reductions};
    p[k].lane =
        fast ? kiln__llvm_emit_index(e, k * e->width % KILN_REDUCE_LANES) : lane_number(e, at[k]);
    if (!turns) emit_step(t, open, at[k], &p[k]);
  }
  if (turns) emit_in_turns(t, open, at, p, unroll);
  loop_end(e, l, step, end);
  if (fast) kiln__llvm_exchange_accumulators(t, open, false);
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
  p.lane = lane_number(e, at);
  emit_step(t, open, at, &p);
}

/* A vectors' loop of rows over the range, which begins at a multiple of KILN_REDUCE_LANES. What
 * unrolled steps leave is little: there all are taken for partial ones, and the body stands once
 * less. */
static void emit_strips(const tree *t, int open, range r) {
  kiln__llvm_emitter *e = t->e;
  const int width = e->width, unroll = kiln__llvm_unroll_of(t, open);
  const bool once = unroll > 1 && width > 1 && masks_all(t, open);
  LLVMValueRef first = unroll > 1 ? emit_unrolled(t, open, r, unroll) : r.first, end = r.last;
  const int64_t left = r.count < 0 ? -1 : unroll > 1 ? r.count % (unroll * width) : r.count;
  const bool none = width == 1 || (left >= 0 && left % width == 0),
             whole = left < 0 || left >= width;
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
      p.lane = lane_number(e, l.counter);
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

/* Iterations in turn, `unroll` of them in a step; perhaps there are none. */
static void emit_plain_loop(const tree *t, int open, range r, int unroll, const place *p) {
  kiln__llvm_emitter *e = t->e;
  LLVMBasicBlockRef behind = NULL;
  if (r.count < 0) behind = begin_if(e, LL->BuildICmp(BUILD, LLVMIntSLT, r.first, r.last, ""));
  loop l = loop_begin(e, r.first);
  for (int k = 0; k < unroll; k++) {
    t->s->counters[t->scopes.depth[open]] =
        binary(e, LLVMAdd, l.counter, kiln__llvm_emit_index(e, k));
    emit_range(t, open + 1, t->scopes.end[open], p);
  }
  loop_end(e, l, unroll, r.last);
  if (behind) end_if(e, behind);
}

static void emit_iterations(const tree *t, int open, range r, const place *p) {
  kiln__llvm_emitter *e = t->e;
  if (is_strip(t, open)) {
    emit_strips(t, open, r);
    return;
  }
  const int unroll = kiln__llvm_unroll_of(t, open);
  if (unroll > 1 && (r.count < 0 || r.count >= unroll)) {
    LLVMValueRef end =
        binary(e, LLVMAdd, r.first, whole_steps(e, binary(e, LLVMSub, r.last, r.first), unroll));
    emit_plain_loop(t, open, (range){r.first, end, r.count < 0 ? -1 : r.count - r.count % unroll},
                    unroll, p);
    r = (range){end, r.last, r.count < 0 ? -1 : r.count % unroll};
    if (r.count != 0) emit_plain_loop(t, open, r, 1, p);
    return;
  }
  emit_plain_loop(t, open, r, 1, p);
}

static void emit_body_loop(const tree *t, int open, const place *p) {
  kiln__llvm_emitter *e = t->e;
  const kiln_loop_inst *inst = &t->nest->body.data[open];
  for (int i = open + 1; i < t->scopes.end[open]; i++) {
    if (begins_with(t, i, open)) kiln__llvm_begin_reduction(t, i);
    if (kiln__llvm_carries_in(t, i, open)) kiln__llvm_begin_scan(t, i);
  }
  const bool known = kiln_dim_is_number(inst->offset) && !kiln_loop_is_part(inst);
  const range all = {kiln__llvm_emit_index(e, 0), kiln__llvm_emit_extent(t, open),
                     known ? inst->offset : -1};
  emit_iterations(t, open, all, p);
  for (int i = open + 1; i < t->scopes.end[open]; i++) {
    if (begins_with(t, i, open)) kiln__llvm_end_reduction(t, i);
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

/* Rows of the tile whose loop it opens; 0: it does not. */
static int tile_of(const tree *t, int open) {
  for (int i = 0; i < t->nest->body_tiles.count; i++)
    if (t->nest->body_tiles.data[i].open == open) return t->nest->body_tiles.data[i].rows;
  return 0;
}

static void emit_range(const tree *t, int begin, int end, const place *p) {
  for (int i = begin; i < end; i++) {
    const kiln_loop_inst *inst = &t->nest->body.data[i];
    if (is_loop(t, i)) {
      const int rows = tile_of(t, i);
      if (rows) {
        kiln__llvm_emit_body_tile(t, i, rows);
      } else {
        emit_body_loop(t, i, p);
      }
      i = t->scopes.end[i];
    } else if (kiln_loop_reduces(inst->op)) {
      kiln__llvm_accumulate(t, i, p);
    } else if (kiln_loop_carries(inst->op)) {
      kiln__llvm_carry(t, i, p);
    } else if (inst->op == KILN_LOOP_store || t->s->levels[i] == t->s->rank) {
      kiln__llvm_emit_straight(t, i, p); /* else it stands further out already */
    }
  }
}

/* Whether a column's step may be masked, whole or not: loads cost no more then, and what its loops
 * come to is stored once. */
static bool masks_columns(const tree *t) {
  const int inner = t->nest->rank - 1;
  for (int i = 0; i < t->nest->body.count; i++) {
    const kiln_loop_inst *inst = &t->nest->body.data[i];
    if (inst->op == KILN_LOOP_gather) return false;
    if (!kiln_loop_is_access(inst) || (is_local(t, inst) && !t->rows)) continue;
    if (inst->op == KILN_LOOP_store && t->scopes.parent[i] >= 0) return false;
    const kiln_dim step = inst->strides[inner];
    if (step != 0 && (step != 1 || !has_masks(t->e, inst->dtype))) return false;
  }
  return true;
}

/* Whole vectors of columns, `unroll` of them in a step, as far as they go; gives where they end. */
static LLVMValueRef emit_whole_columns(const tree *t, LLVMValueRef first, LLVMValueRef last,
                                       int unroll) {
  kiln__llvm_emitter *e = t->e;
  const int inner = t->nest->rank - 1, step = unroll * e->width;
  LLVMValueRef end =
      binary(e, LLVMAdd, first, whole_steps(e, binary(e, LLVMSub, last, first), step));
  LLVMBasicBlockRef behind = begin_if(e, LL->BuildICmp(BUILD, LLVMIntSLT, first, end, ""));
  loop l = loop_begin(e, first);
  for (int k = 0; k < unroll; k++) {
    t->s->counters[inner] =
        binary(e, LLVMAdd, l.counter, kiln__llvm_emit_index(e, (int64_t)k * e->width));
    emit_range(t, 0, t->nest->body.count, &(place){.loop = inner, .reductions = e->reductions});
  }
  loop_end(e, l, step, end);
  end_if(e, behind);
  return end;
}

/* What whole vectors leave, if anything. */
static void emit_partial_columns(const tree *t, LLVMValueRef first, LLVMValueRef last) {
  kiln__llvm_emitter *e = t->e;
  const int inner = t->nest->rank - 1;
  LLVMBasicBlockRef behind = begin_if(e, LL->BuildICmp(BUILD, LLVMIntSLT, first, last, ""));
  place p = {.loop = inner, .reductions = e->reductions};
  p.left = binary(e, LLVMSub, last, first);
  p.mask = kiln__llvm_emit_mask(e, p.left);
  t->s->counters[inner] = first;
  emit_range(t, 0, t->nest->body.count, &p);
  end_if(e, behind);
}

/* The nest's innermost loop in vectors, the body in each. */
static void emit_columns(const tree *t) {
  kiln__llvm_emitter *e = t->e;
  const int inner = t->nest->rank - 1, count = t->nest->body.count, unroll = t->nest->run.unroll;
  LLVMValueRef first = t->s->first[inner], last = t->s->last[inner], end = first;
  LLVMBasicBlockRef behind = NULL;
  if (unroll > 1) {
    first = emit_whole_columns(t, first, last, unroll);
    behind = begin_if(e, LL->BuildICmp(BUILD, LLVMIntSLT, first, last, ""));
  }
  if (unroll != 1 && e->width > 1 && masks_columns(t)) {
    loop l = loop_begin(e, first);
    place p = {.loop = inner, .reductions = e->reductions};
    p.left = least(e, binary(e, LLVMSub, last, l.counter), kiln__llvm_emit_index(e, e->width));
    p.mask = kiln__llvm_emit_mask(e, p.left);
    t->s->counters[inner] = l.counter;
    emit_range(t, 0, count, &p);
    loop_end(e, l, e->width, last);
  } else {
    end = emit_whole_columns(t, first, last, 1);
    if (e->width > 1) emit_partial_columns(t, end, last);
  }
  if (behind) end_if(e, behind);
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
