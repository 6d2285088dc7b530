/* emit.c: loop IR to LLVM IR: loops, loads and stores. Vectors are explicit, LLVM's vectoriser is
 * not used: half the compile time at the same speed.
 *
 * The innermost loop goes in steps of `width` elements. Where its schedule unrolls it, whole steps
 * come first, and what they leave goes as elsewhere: in steps of which each may be partial. Where
 * masked memory instructions are cheap (AVX-512) every load and store has the mask of the elements
 * that exist. On other CPUs loads have masks, and stores where the step is partial; what has no
 * masks is read and written through small buffers on the stack then, filled before and drained
 * after it. An instruction stands in the outermost loop that it depends on, always as a vector. */
#include "codegen/llvm/emit_state.h"

const kiln__llvm_target kiln__llvm_targets[KILN_ISA__COUNT] = {
    [KILN_ISA_V2] = {KILN_ISA_V2, 4, 16, false, 0, "x86-64-v2", "", false, false},
    [KILN_ISA_AVX2] = {KILN_ISA_AVX2, 8, 16, false, 4, "x86-64-v3", "", false, false},
    [KILN_ISA_AVX512] = {KILN_ISA_AVX512, 16, 32, true, 1, "x86-64-v4", "", false, false},
    [KILN_ISA_AVX512BF16] = {KILN_ISA_AVX512, 16, 32, true, 1, "x86-64-v4", "+avx512bf16", false,
                             true},
};
const kiln__llvm_target kiln__llvm_gpus[KILN__LLVM_GPUS] = {
    {KILN_ISA_AVX2, 1, 0, false, 0, "sm_80", "+ptx78", true, false},
    {KILN_ISA_AVX2, 1, 0, false, 0, "sm_90", "+ptx78", true, false},
};

/* -- Memory -- */

static LLVMValueRef load_uniform(const kiln__llvm_emitter *e, const nest_state *s,
                                 const kiln_loop_inst *inst, int level) {
  LLVMValueRef address = address_of(e, s, inst, level);
  if (inst->op == KILN_LOOP_gather) address = kiln__llvm_emit_row(e, inst, address);
  LLVMValueRef value =
      LL->BuildLoad2(BUILD, kiln__llvm_emit_memory_type(e, inst->dtype), address, "");
  return from_memory(e, inst->dtype, kiln__llvm_emit_splat(e, value, e->width));
}

enum { LEAST_GATHERED = 4 }; /* bytes of an element that instructions gather */

/* The lanes of the mask, of elements that lie some step apart: one instruction, in place of an
 * address for each. */
static LLVMValueRef gather_masked(kiln__llvm_emitter *e, const nest_state *s, const access *a) {
  const kiln_dtype dtype = a->inst->dtype;
  LLVMTypeRef type = memory_vector(e, dtype);
  LLVMValueRef places = offset_by(e, dtype, a->at, lanes_times(e, a->step));
  LLVMTypeRef types[2] = {type, LL->TypeOf(places)};
  LLVMValueRef args[4] = {places, LL->ConstInt(e->i32, (unsigned)kiln_loop_size(dtype), 0), s->mask,
                          LL->ConstNull(type)};
  return kiln__llvm_emit_intrinsic(e, "llvm.masked.gather", types, 2, args, 4);
}

/* The place of lane i; lanes that do not exist read the last that does. */
static LLVMValueRef lane_place(const kiln__llvm_emitter *e, const access *a, int i,
                               LLVMValueRef last) {
  LLVMValueRef lane = kiln__llvm_emit_index(e, i);
  if (i && last) lane = least(e, lane, last);
  return offset_by(e, a->inst->dtype, a->at,
                   binary(e, LLVMMul, lane, kiln__llvm_emit_dim(e, a->step)));
}

/* Element by element. Where all lanes exist, and the step is in a register, four lanes have a place
 * from which the others are 1, 2 and 3 steps away, so that what addresses them is part of the load.
 */
static LLVMValueRef load_gather(const kiln__llvm_emitter *e, const nest_state *s, const access *a) {
  LLVMTypeRef scalar = kiln__llvm_emit_memory_type(e, a->inst->dtype);
  LLVMValueRef value = LL->GetPoison(memory_vector(e, a->inst->dtype)), base = a->at;
  LLVMValueRef last = binary(e, LLVMSub, s->left, kiln__llvm_emit_index(e, 1));
  const bool by_four = LL->IsConstant(s->left) && !kiln_dim_is_number(a->step);
  if (by_four)
    base = LL->BuildFreeze(BUILD, base, ""); /* one induction variable, and not one for each lane */
  LLVMValueRef steps[5];
  for (int k = 0; by_four && k < 5; k++)
    steps[k] = binary(e, LLVMMul, kiln__llvm_emit_index(e, k), kiln__llvm_emit_dim(e, a->step));
  for (int i = 0; i < e->width; i++) {
    if (by_four && i && i % 4 == 0) base = offset_by(e, a->inst->dtype, base, steps[4]);
    LLVMValueRef address =
        by_four ? offset_by(e, a->inst->dtype, base, steps[i % 4]) : lane_place(e, a, i, last);
    LLVMValueRef element = LL->BuildLoad2(BUILD, scalar, address, "");
    value = LL->BuildInsertElement(BUILD, value, element,
                                   LL->ConstInt(e->i32, (unsigned long long)i, 0), "");
  }
  return value;
}

static LLVMValueRef emit_load(kiln__llvm_emitter *e, const nest_state *s, const access *a) {
  kiln_dtype dtype = a->inst->dtype;
  LLVMTypeRef type = memory_vector(e, dtype);
  LLVMValueRef value;
  const int align = kiln_loop_size(dtype);
  if (e->width == 1) {
    LLVMValueRef at = a->lanes ? kiln__llvm_emit_row(e, a->inst, a->at) : a->at;
    value = load_aligned(e, type, at, align);
  } else if (a->lanes) {
    LLVMValueRef last = binary(e, LLVMSub, s->left, kiln__llvm_emit_index(e, 1));
    value = kiln__llvm_emit_gather(e, a->inst, a->at, a->step, last);
  } else if (a->step != 1 && !a->buffer) {
    const bool gathers =
        s->mask && !LL->IsConstant(s->mask) && e->target->masks && align >= LEAST_GATHERED;
    value = gathers ? gather_masked(e, s, a) : load_gather(e, s, a);
  } else if (s->mask && !a->buffer) {
    value = load_masked(e, type, a->at, align, s->mask);
  } else {
    value = load_aligned(e, type, a->at, align);
  }
  return from_memory(e, dtype, value);
}

/* Between an access's place and its buffer: a store's from there, a load's to there. */
static void copy_element(const kiln__llvm_emitter *e, const access *a, LLVMValueRef lane) {
  const kiln_dtype dtype = a->inst->dtype;
  const bool drain = a->inst->op == KILN_LOOP_store;
  LLVMValueRef index = binary(e, LLVMMul, lane, kiln__llvm_emit_dim(e, a->step));
  LLVMValueRef outside = offset_by(e, dtype, a->at, index);
  LLVMValueRef slot = offset_by(e, dtype, a->buffer, lane);
  LLVMValueRef from = drain ? slot : outside, to = drain ? outside : slot;
  LLVMValueRef element = LL->BuildLoad2(BUILD, kiln__llvm_emit_memory_type(e, dtype), from, "");
  LL->BuildStore(BUILD, element, to);
}

/* Whether it is such a load or store and is not masked where a step is partial. */
static bool is_copied(const access *a, bool store) {
  const bool is_store = a->inst->op == KILN_LOOP_store;
  return a->buffer && is_store == store && (a->step == 1 || !is_store);
}
static bool has_copied(const nest_state *s, bool store) {
  for (int i = 0; i < s->access_count; i++)
    if (is_copied(&s->accesses[i], store)) return true;
  return false;
}

/* The elements of a partial step, of all loads, or of all stores, that have no masks. */
static void copy_partial(kiln__llvm_emitter *e, const nest_state *s, bool stores) {
  if (!has_copied(s, stores)) return;
  loop l = loop_begin(e, kiln__llvm_emit_index(e, 0));
  for (int i = 0; i < s->access_count; i++) {
    if (is_copied(&s->accesses[i], stores)) copy_element(e, &s->accesses[i], l.counter);
  }
  loop_end(e, l, 1, s->left);
}

static void emit_store(kiln__llvm_emitter *e, const nest_state *s, access *a) {
  kiln_dtype dtype = a->inst->dtype;
  LLVMValueRef value = to_memory(e, dtype, e->values[a->inst->args[0]]);
  const int align = kiln_loop_size(dtype);
  if (spreads(e, dtype, a->step)) {
    kiln__llvm_emit_spread(e, value, a->at, align, (int)a->step, s->left);
  } else if (a->step != 1 && e->width > 1 && !s->mask) {
    for (int i = 0; i < e->width; i++)
      LL->BuildStore(BUILD, lane_of(e, value, i), lane_place(e, a, i, NULL));
  } else if (a->step != 1 && e->width > 1) {
    store_aligned(e, value, a->buffer, align);
    loop l = loop_begin(e, kiln__llvm_emit_index(e, 0));
    copy_element(e, a, l.counter);
    loop_end(e, l, 1, s->left);
  } else if (a->buffer && s->mask) {
    LLVMValueRef at = s->full ? LL->BuildSelect(BUILD, s->full, a->at, a->buffer, "") : a->buffer;
    store_aligned(e, value, at, align);
  } else if (s->full) {
    a->value = value;
  } else if (s->mask) {
    store_masked(e, value, a->at, align, s->mask);
  } else {
    store_aligned(e, value, a->at, align);
  }
}

/* -- Loops -- */

void kiln__llvm_emit_level(kiln__llvm_emitter *e, const nest_state *s, int level) {
  for (int i = 0; i < s->count; i++) {
    const kiln_loop_inst *inst = &e->nest->body.data[i];
    if (s->levels[i] != level || inst->op == KILN_LOOP_store) continue;
    e->values[i] = kiln_loop_is_access(inst)     ? load_uniform(e, s, inst, level)
                   : inst->op == KILN_LOOP_index ? indices_of(e, s, inst, level, -1)
                   : inst->op == KILN_LOOP_check ? kiln__llvm_emit_check(e, inst, NULL)
                                                 : kiln__llvm_emit_value(e, inst);
  }
}

static LLVMValueRef lanes_left(const kiln__llvm_emitter *e, const nest_state *s) {
  return s->mask ? s->mask : kiln__llvm_emit_mask(e, s->left);
}

/* What the innermost level computes, in order; loads and stores through s->accesses. */
static void emit_body(kiln__llvm_emitter *e, nest_state *s) {
  int next = 0;
  for (int i = 0; i < s->count; i++) {
    const kiln_loop_inst *inst = &e->nest->body.data[i];
    bool moves = next < s->access_count && s->accesses[next].number == i;
    if (inst->op == KILN_LOOP_store) {
      emit_store(e, s, &s->accesses[next]);
    } else if (e->tables[i]) {
      e->values[i] = kiln__llvm_load_same(e, s, i);
    } else if (moves) {
      e->values[i] = emit_load(e, s, &s->accesses[next]);
    } else if (s->levels[i] == s->rank) {
      e->values[i] = inst->op == KILN_LOOP_index ? indices_of(e, s, inst, s->rank, s->rank - 1)
                     : inst->op == KILN_LOOP_check
                         ? kiln__llvm_emit_check(e, inst, lanes_left(e, s))
                         : kiln__llvm_emit_value(e, inst);
    }
    next += moves;
  }
}

/* A partial step's loads without masks are copied to their buffers first, and `at` becomes the
 * place or the buffer. */
static void emit_partial_loads(kiln__llvm_emitter *e, nest_state *s) {
  if (!has_copied(s, false)) return;
  LLVMBasicBlockRef prepare = new_block(e), body = new_block(e), head = LL->GetInsertBlock(BUILD);
  LL->BuildCondBr(BUILD, s->full, body, prepare);
  LL->PositionBuilderAtEnd(BUILD, prepare);
  copy_partial(e, s, false);
  LLVMBasicBlockRef prepared = LL->GetInsertBlock(BUILD);
  LL->BuildBr(BUILD, body);
  LL->PositionBuilderAtEnd(BUILD, body);
  for (int i = 0; i < s->access_count; i++) {
    access *a = &s->accesses[i];
    if (!is_copied(a, false)) continue;
    LLVMValueRef phi = LL->BuildPhi(BUILD, e->ptr, "");
    LL->AddIncoming(phi, &a->at, &head, 1);
    LL->AddIncoming(phi, &a->buffer, &prepared, 1);
    a->at = phi;
  }
}

static void emit_partial_stores(kiln__llvm_emitter *e, const nest_state *s) {
  LLVMBasicBlockRef all = new_block(e), drain = new_block(e), done = new_block(e);
  LL->BuildCondBr(BUILD, s->full, all, drain);
  LL->PositionBuilderAtEnd(BUILD, all);
  for (int i = 0; i < s->access_count; i++) {
    const access *a = &s->accesses[i];
    if (a->value) store_aligned(e, a->value, a->at, kiln_loop_size(a->inst->dtype));
  }
  LL->BuildBr(BUILD, done);
  LL->PositionBuilderAtEnd(BUILD, drain);
  for (int i = 0; i < s->access_count; i++) {
    const access *a = &s->accesses[i];
    if (a->value) store_masked(e, a->value, a->at, kiln_loop_size(a->inst->dtype), s->mask);
  }
  copy_partial(e, s, true);
  LL->BuildBr(BUILD, done);
  LL->PositionBuilderAtEnd(BUILD, done);
}

/* A step begins: where the counter stands, and how many elements it has at most `left`. */
static void begin_step(const kiln__llvm_emitter *e, nest_state *s, LLVMValueRef counter,
                       LLVMValueRef left) {
  s->counters[s->rank - 1] = counter;
  s->left = left;
  s->full = s->mask = NULL;
  for (int i = 0; i < s->access_count; i++) {
    access *a = &s->accesses[i];
    LLVMValueRef index = binary(e, LLVMMul, counter, kiln__llvm_emit_dim(e, a->step));
    a->at = offset_by(e, a->inst->dtype, a->row, index);
  }
}

/* Each step may be partial. */
static void emit_any_steps(kiln__llvm_emitter *e, nest_state *s, LLVMValueRef first,
                           LLVMValueRef last) {
  LLVMValueRef width = kiln__llvm_emit_index(e, e->width);
  loop l = loop_begin(e, first);
  begin_step(e, s, l.counter, least(e, binary(e, LLVMSub, last, l.counter), width));
  s->mask = kiln__llvm_emit_mask(e, s->left);
  if (e->target->masks) {
    emit_body(e, s);
  } else {
    s->full = LL->BuildICmp(BUILD, LLVMIntEQ, s->left, width, "");
    emit_partial_loads(e, s);
    emit_body(e, s);
    emit_partial_stores(e, s);
  }
  loop_end(e, l, e->width, last);
}

bool kiln__llvm_is_cut(const kiln_loop_nest *nest, int d) {
  for (int axis = 0; axis < kiln_loop_nest_axes(nest); axis++)
    if (kiln_loop_nest_axis(nest, axis) == d) return true;
  return false;
}

/* Whether steps of so many elements leave nothing, as far as is known. */
static bool is_whole(const kiln__llvm_emitter *e, const nest_state *s, int step) {
  const int inner = s->rank - 1;
  return !kiln__llvm_is_cut(e->nest, inner) && kiln_dim_is_number(s->extents[inner]) &&
         s->extents[inner] % step == 0;
}

/* As many whole steps as there are, `count` of them at a time; gives where they end. */
static LLVMValueRef emit_whole_steps(kiln__llvm_emitter *e, nest_state *s, LLVMValueRef first,
                                     LLVMValueRef last, int count) {
  LLVMValueRef width = kiln__llvm_emit_index(e, e->width);
  LLVMValueRef whole = whole_steps(e, binary(e, LLVMSub, last, first), count * e->width);
  LLVMValueRef end = binary(e, LLVMAdd, first, whole);
  const bool once = is_whole(e, s, count * e->width) && s->extents[s->rank - 1] == count * e->width;
  LLVMBasicBlockRef behind = NULL;
  loop l = {.counter = first};
  if (!once) {
    behind = begin_if(e, LL->BuildICmp(BUILD, LLVMIntSLT, first, end, ""));
    l = loop_begin(e, first);
  }
  for (int k = 0; k < count; k++) {
    LLVMValueRef way = kiln__llvm_emit_index(e, (int64_t)k * e->width);
    begin_step(e, s, k ? binary(e, LLVMAdd, l.counter, way) : l.counter, width);
    emit_body(e, s);
  }
  if (once) return end;
  loop_end(e, l, (int64_t)count * e->width, end);
  end_if(e, behind);
  return end;
}

/* Less than a whole step. */
static void emit_partial_step(kiln__llvm_emitter *e, nest_state *s, LLVMValueRef first,
                              LLVMValueRef last) {
  begin_step(e, s, first, binary(e, LLVMSub, last, first));
  s->mask = kiln__llvm_emit_mask(e, s->left);
  copy_partial(e, s, false);
  for (int i = 0; i < s->access_count; i++)
    if (is_copied(&s->accesses[i], false)) s->accesses[i].at = s->accesses[i].buffer;
  emit_body(e, s);
  copy_partial(e, s, true);
}

/* The range of the innermost loop, which is not empty. */
static void emit_steps(kiln__llvm_emitter *e, nest_state *s, LLVMValueRef first,
                       LLVMValueRef last) {
  const int unroll = e->nest->run.unroll;
  if (e->nest->run.partial && e->width > 1) {
    emit_partial_step(e, s, first, last);
    return;
  }
  if (unroll) first = emit_whole_steps(e, s, first, last, unroll);
  if (e->width == 1) { /* no step is partial */
    if (unroll != 1) emit_whole_steps(e, s, first, last, 1);
    return;
  }
  if (!unroll) {
    emit_any_steps(e, s, first, last);
    return;
  }
  if (is_whole(e, s, unroll * e->width)) return;
  LLVMBasicBlockRef behind = begin_if(e, LL->BuildICmp(BUILD, LLVMIntSLT, first, last, ""));
  const bool masked = !has_copied(s, true) && !has_copied(s, false);
  (unroll == 1 && masked ? emit_partial_step : emit_any_steps)(e, s, first, last);
  end_if(e, behind);
}

static void emit_inner(kiln__llvm_emitter *e, nest_state *s, LLVMValueRef first,
                       LLVMValueRef last) {
  for (int i = 0; i < s->access_count; i++) {
    access *a = &s->accesses[i];
    a->row = address_of(e, s, a->inst, s->rank - 1);
    if (a->inst->op == KILN_LOOP_gather && !a->lanes)
      a->row = kiln__llvm_emit_row(e, a->inst, a->row);
  }
  emit_steps(e, s, first, last);
}

static void emit_loops(kiln__llvm_emitter *e, nest_state *s, int depth) {
  LLVMValueRef first = s->first[depth], last = s->last[depth];
  if (depth == s->table_depth) kiln__llvm_emit_table(e, s);
  if (depth == s->rank - 1) {
    emit_inner(e, s, first, last);
    return;
  }
  const bool once = s->extents[depth] == 1 && !kiln__llvm_is_cut(e->nest, depth);
  loop l = {.counter = first};
  if (!once) l = loop_begin(e, first);
  s->counters[depth] = l.counter;
  kiln__llvm_emit_level(e, s, depth + 1);
  emit_loops(e, s, depth + 1);
  if (!once) loop_end(e, l, 1, last);
}

/* -- Nests -- */

LLVMValueRef kiln__llvm_emit_stack(kiln__llvm_emitter *e, kiln_dtype dtype, int64_t count) {
  LLVMBasicBlockRef here = LL->GetInsertBlock(BUILD);
  LL->PositionBuilderAtEnd(BUILD, e->entry);
  LLVMTypeRef type = LL->ArrayType2(kiln__llvm_emit_memory_type(e, dtype), (uint64_t)count);
  LLVMValueRef out = LL->BuildAlloca(BUILD, type, "");
  LL->SetAlignment(out, 64);
  LL->PositionBuilderAtEnd(BUILD, here);
  e->stack_bytes += (size_t)count * (size_t)kiln_loop_size(dtype);
  return out;
}

/* A zeroed buffer of one vector on the stack. */
static LLVMValueRef stack_buffer(kiln__llvm_emitter *e, kiln_dtype dtype) {
  LLVMBasicBlockRef here = LL->GetInsertBlock(BUILD);
  LL->PositionBuilderAtEnd(BUILD, e->entry);
  LLVMTypeRef type = memory_vector(e, dtype);
  LLVMValueRef buffer = LL->BuildAlloca(BUILD, type, "");
  store_aligned(e, LL->ConstNull(type), buffer, kiln_loop_size(dtype));
  LL->PositionBuilderAtEnd(BUILD, here);
  return buffer;
}

static void find_accesses(kiln__llvm_emitter *e, nest_state *s) {
  int inner = s->rank - 1;
  for (int i = 0; i < s->count; i++) {
    const kiln_loop_inst *inst = &e->nest->body.data[i];
    bool is_store = inst->op == KILN_LOOP_store;
    if (!is_store && !(kiln_loop_is_access(inst) && s->levels[i] == s->rank)) continue;
    kiln_dim step = inst->strides[inner];
    if (is_store && s->extents[inner] == 1) step = 1; /* a store of one element moves nowhere */
    access a = {.inst = inst, .number = i, .step = step};
    a.lanes = inst->op == KILN_LOOP_gather && s->levels[inst->args[0]] == s->rank;
    const bool scatters = is_store && step != 1 && !spreads(e, inst->dtype, step),
               gathers = !is_store && !a.lanes && step != 1;
    const bool strided = scatters || (gathers && e->nest->run.partial && !e->target->masks);
    if (e->width > 1 && (strided || (step == 1 && !a.lanes && !has_masks(e, inst->dtype))))
      a.buffer = stack_buffer(e, inst->dtype);
    s->accesses[s->access_count++] = a;
  }
}

/* What a nest takes of an axis of the grid. */
static LLVMValueRef emit_grid(const kiln__llvm_emitter *e, const kiln_loop_nest *nest, int axis) {
  const int step = kiln_loop_nest_step(nest, axis);
  LLVMValueRef extent = kiln__llvm_emit_dim(e, kiln_loop_nest_extent(nest, axis));
  if (step == 1) return extent;
  LLVMValueRef up = binary(e, LLVMAdd, extent, kiln__llvm_emit_index(e, step - 1));
  return binary(e, LLVMUDiv, up, kiln__llvm_emit_index(e, step));
}

/* The part of the nest that lies in the box: [first, last) of each loop. Gives whether it holds
 * anything. The nest's first axis begins at `base` of the grid's. */
static LLVMValueRef emit_part(const kiln__llvm_emitter *e, nest_state *s, LLVMValueRef base) {
  const int axes = kiln_loop_nest_axes(e->nest);
  LLVMValueRef any = NULL;
  for (int d = 0; d < s->rank; d++) {
    s->first[d] = kiln__llvm_emit_index(e, 0);
    s->last[d] = kiln__llvm_emit_dim(e, s->extents[d]);
    if (kiln_dim_is_number(s->extents[d]) || kiln__llvm_is_cut(e->nest, d)) continue;
    /* Of s0 columns x[:, 2:] may have none, and so may whole panels of them. */
    LLVMValueRef some = LL->BuildICmp(BUILD, LLVMIntSLT, s->first[d], s->last[d], "");
    any = any ? binary(e, LLVMAnd, any, some) : some;
  }
  for (int axis = 0; axis < e->axes; axis++) {
    LLVMValueRef zero = kiln__llvm_emit_index(e, 0), before = axis == 0 ? base : zero;
    LLVMValueRef from = binary(e, LLVMSub, e->begin[axis], before);
    LLVMValueRef to = binary(e, LLVMSub, e->end[axis], before);
    LLVMValueRef below = LL->BuildICmp(BUILD, LLVMIntSLT, from, zero, "");
    LLVMValueRef first = LL->BuildSelect(BUILD, below, zero, from, "");
    LLVMValueRef last = least(e, to, emit_grid(e, e->nest, axis));
    LLVMValueRef some = LL->BuildICmp(BUILD, LLVMIntSLT, first, last, "");
    if (axis < axes) {
      const int d = kiln_loop_nest_axis(e->nest, axis);
      LLVMValueRef step = kiln__llvm_emit_index(e, kiln_loop_nest_step(e->nest, axis));
      s->first[d] = binary(e, LLVMMul, first, step);
      s->last[d] = least(e, binary(e, LLVMMul, last, step), s->last[d]);
    }
    any = any ? binary(e, LLVMAnd, any, some) : some;
  }
  return any;
}

static bool has_loops(const kiln_loop_nest *nest) {
  for (int i = 0; i < nest->body.count; i++)
    if (kiln_loop_ops[nest->body.data[i].op].rule == KILN_LOOP_RULE_OPEN) return true;
  return false;
}

static void emit_nest(kiln__llvm_emitter *e, const kiln_loop_nest *nest, LLVMValueRef base) {
  nest_state state = {.rank = nest->rank, .count = nest->body.count}, *s = &state;
  LLVMBasicBlockRef work = new_block(e), behind = new_block(e);
  for (int d = 0; d < nest->rank; d++) s->extents[d] = nest->extents[d];
  s->levels = e->levels;
  s->same = e->same;
  s->accesses = e->accesses;
  e->nest = nest;
  e->width = nest->run.lanes;
  kiln_loop_levels(nest, s->levels);
  const bool loops = has_loops(nest);
  if (s->rank == 0) { /* one point: a loop of one turn, in which the stores stand */
    s->rank = 1;
    s->extents[0] = 1;
    for (int i = 0; i < s->count && !loops; i++)
      if (nest->body.data[i].op == KILN_LOOP_store) s->levels[i] = 1;
  }
  LL->BuildCondBr(BUILD, emit_part(e, s, base), work, behind);
  LL->PositionBuilderAtEnd(BUILD, work);
  if (nest->rank > 0 || !loops) kiln__llvm_emit_level(e, s, 0);
  if (loops) {
    kiln__llvm_emit_tree(e, s);
  } else {
    find_accesses(e, s);
    kiln__llvm_find_table(e, s);
    emit_loops(e, s, 0);
  }
  LL->BuildBr(BUILD, behind);
  LL->PositionBuilderAtEnd(BUILD, behind);
}

/* -- The function -- */

static LLVMValueRef load_field(const kiln__llvm_emitter *e, LLVMTypeRef type, LLVMValueRef args,
                               size_t offset) {
  LLVMValueRef index = kiln__llvm_emit_index(e, (int64_t)offset);
  LLVMValueRef address = LL->BuildGEP2(BUILD, e->i8, args, &index, 1, "");
  return LL->BuildLoad2(BUILD, type, address, "");
}

/* -- Dimensions -- */

LLVMValueRef kiln__llvm_emit_dim(const kiln__llvm_emitter *e, kiln_dim d) {
  if (kiln_dim_is_number(d)) return kiln__llvm_emit_index(e, d);
  return e->steps[kiln_dim_results(e->kernel->values)[kiln_dim_symbol_number(d)]];
}

static LLVMValueRef emit_step(const kiln__llvm_emitter *e, const kiln_dim_step *step) {
  const kiln_dim_use *uses = kiln_dim_uses(e->kernel->values) + step->first;
  LLVMValueRef sum = kiln__llvm_emit_index(e, step->by < 0 ? 1 : step->constant);
  for (int i = 0; i < step->count; i++) {
    LLVMValueRef value = e->steps[uses[i].value];
    LLVMValueRef times = kiln__llvm_emit_index(e, uses[i].coefficient);
    sum = step->by < 0 ? binary(e, LLVMMul, sum, value)
                       : binary(e, LLVMAdd, sum, binary(e, LLVMMul, value, times));
  }
  if (step->by <= 0) return sum;
  LLVMValueRef by = kiln__llvm_emit_index(e, step->by), zero = kiln__llvm_emit_index(e, 0);
  LLVMValueRef below = LL->BuildICmp(BUILD, LLVMIntSLT, binary(e, LLVMSRem, sum, by), zero, "");
  return binary(e, LLVMSub, binary(e, LLVMSDiv, sum, by),
                LL->BuildCast(BUILD, LLVMZExt, below, e->i64, ""));
}

void kiln__llvm_emit_steps(const kiln__llvm_emitter *e) {
  const kiln_dim_program *p = e->kernel->values;
  for (int i = 0; p && i < p->step_count; i++)
    e->steps[p->symbol_count + i] = emit_step(e, &kiln_dim_steps(p)[i]);
}

void kiln__llvm_emit_locals(const kiln__llvm_emitter *e, LLVMValueRef scratch) {
  const int first = e->fn->input_count + e->fn->output_count;
  for (int i = first; i < e->fn->buffers.count; i++) {
    LLVMValueRef offset = kiln__llvm_emit_dim(e, e->kernel->places[i - first]);
    e->data[i] = LL->BuildGEP2(BUILD, e->i8, scratch, &offset, 1, "");
  }
}

/* Element `index` of an array that a field of the arguments points to. */
static LLVMValueRef load_element(const kiln__llvm_emitter *e, LLVMTypeRef type, LLVMValueRef array,
                                 int index) {
  LLVMValueRef at = kiln__llvm_emit_index(e, index);
  return LL->BuildLoad2(BUILD, type, LL->BuildGEP2(BUILD, type, array, &at, 1, ""), "");
}

/* What a kernel's struct of arguments has. */
static void load_arguments(kiln__llvm_emitter *e, LLVMValueRef args) {
  const kiln_loop_fn *fn = e->fn;
  LLVMValueRef data = load_field(e, e->ptr, args, offsetof(kiln_kernel_args, data));
  for (int i = 0; i < fn->input_count + fn->output_count; i++)
    e->data[i] = load_element(e, e->ptr, data, i);
  if (e->kernel->values) {
    LLVMValueRef symbols = load_field(e, e->ptr, args, offsetof(kiln_kernel_args, symbols));
    for (int i = 0; i < e->kernel->values->symbol_count; i++)
      e->steps[i] = load_element(e, e->i64, symbols, i);
  }
  if (fn->scalars.count) {
    LLVMValueRef scalars = load_field(e, e->ptr, args, offsetof(kiln_kernel_args, scalars));
    for (int i = 0; i < fn->scalars.count; i++)
      e->scalars[i] =
          load_element(e, kiln__llvm_emit_argument_type(e, fn->scalars.data[i]), scalars, i);
  }
  if (kiln_loop_can_fault(fn)) {
    e->fault = load_field(e, e->ptr, args, offsetof(kiln_kernel_args, fault));
  }
  kiln__llvm_emit_steps(e);
  if (fn->buffers.count > fn->input_count + fn->output_count)
    kiln__llvm_emit_locals(e, load_field(e, e->ptr, args, offsetof(kiln_kernel_args, scratch)));
}

/* The box's bounds, of the axes that the kernel has: of an axis of extent 1 a box holds all. */
static void load_box(kiln__llvm_emitter *e, LLVMValueRef box) {
  for (int n = 0; n < e->fn->nests.count; n++) {
    const int axes = kiln_loop_nest_axes(e->fn->nests.data[n]);
    if (axes > e->axes) e->axes = axes;
  }
  if (e->axes == 0) e->axes = 1;
  for (int axis = 0; axis < e->axes; axis++) {
    const size_t at = (size_t)axis * sizeof(int64_t);
    e->begin[axis] = load_field(e, e->i64, box, offsetof(kiln_kernel_box, begin) + at);
    e->end[axis] = load_field(e, e->i64, box, offsetof(kiln_kernel_box, end) + at);
  }
}

/* Tables of unwinding are for debuggers (gdb.h): no kernel throws. */
static void add_attributes(const kiln__llvm_emitter *e) {
  enum { ASYNC = 2 };
  const unsigned uwtable = LL->GetEnumAttributeKindForName("uwtable", 7);
  LL->AddAttributeAtIndex(e->function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                          LL->CreateEnumAttribute(e->context, uwtable, ASYNC));
  LL->AddAttributeAtIndex(
      e->function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
      LL->CreateStringAttribute(e->context, "prefer-vector-width", 19, "512", 3));
}

static size_t longest_body(const kiln_loop_fn *fn) {
  int most = 0;
  for (int n = 0; n < fn->nests.count; n++) {
    if (fn->nests.data[n]->body.count > most) most = fn->nests.data[n]->body.count;
  }
  return (size_t)most;
}

static size_t steps_of(const kiln_loop_flat *kernel) {
  return kernel->values ? (size_t)kiln_dim_program_room(kernel->values) : 0;
}

size_t kiln__llvm_emit_room(const kiln_loop_flat *kernel) {
  const kiln_loop_fn *fn = kernel->fn;
  return ((size_t)(fn->buffers.count + 1 + fn->scalars.count) + steps_of(kernel)) *
             sizeof(LLVMValueRef) +
         (longest_body(fn) + 1) * (5 * sizeof(LLVMValueRef) + sizeof(access) + 6 * sizeof(int)) +
         2 * kiln__llvm_tile_room(fn) * sizeof(LLVMValueRef);
}

/* Values and accesses of one nest at a time. */
static void divide_room(kiln__llvm_emitter *e, void *room) {
  const size_t most = longest_body(e->fn) + 1;
  e->data = room;
  e->scalars = e->data + e->fn->buffers.count + 1;
  e->steps = e->scalars + e->fn->scalars.count;
  e->values = e->steps + steps_of(e->kernel);
  e->tables = e->values + most;
  e->reductions = e->tables + most;
  e->fast = e->reductions + most;
  e->places = e->fast + most;
  e->tile_values = e->places + most;
  e->tile_places = e->tile_values + kiln__llvm_tile_room(e->fn);
  e->accesses = (access *)(void *)(e->tile_places + kiln__llvm_tile_room(e->fn));
  e->levels = (int *)(void *)(e->accesses + most);
  e->same = e->levels + most;
  e->scopes.parent = e->same + most;
  e->scopes.depth = e->scopes.parent + most;
  e->scopes.end = e->scopes.depth + most;
  e->tile_moves = e->scopes.end + most;
}

/* The function of kernel_abi.h; nests in turn, each its part of the box. */
static void emit_cpu(kiln__llvm_emitter *e, const char *name) {
  LLVMTypeRef params[2] = {e->ptr, e->ptr};
  kiln__llvm_emit_begin(e, name, params, 2);
  add_attributes(e);
  load_arguments(e, LL->GetParam(e->function, 0));
  load_box(e, LL->GetParam(e->function, 1));
  LLVMValueRef base = kiln__llvm_emit_index(e, 0);
  for (int n = 0; n < e->fn->nests.count; n++) {
    if (n > 0 && !kiln_loop_nest_joins(e->fn, n))
      base = binary(e, LLVMAdd, base, emit_grid(e, e->fn->nests.data[n - 1], 0));
    emit_nest(e, e->fn->nests.data[n], base);
  }
}

void kiln__llvm_emit_begin(kiln__llvm_emitter *e, const char *name, LLVMTypeRef *params,
                           int count) {
  LLVMTypeRef result = LL->VoidTypeInContext(e->context);
  LLVMTypeRef type = LL->FunctionType(result, params, (unsigned)count, 0);
  e->function = LL->AddFunction(e->module, name, type);
  unsigned nounwind = LL->GetEnumAttributeKindForName("nounwind", 8);
  LL->AddAttributeAtIndex(e->function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                          LL->CreateEnumAttribute(e->context, nounwind, 0));
  e->entry = new_block(e);
  e->start = new_block(e);
  LL->PositionBuilderAtEnd(BUILD, e->start);
}

kiln_status *kiln__llvm_emit(const kiln__llvm *llvm, LLVMContextRef context, LLVMModuleRef module,
                             const kiln_loop_flat *kernel, const kiln__llvm_target *target,
                             const char *name, void *room, bool *out_math) {
  kiln__llvm_emitter emitter = {.ll = llvm,
                                .context = context,
                                .module = module,
                                .kernel = kernel,
                                .fn = kernel->fn,
                                .target = target},
                     *e = &emitter;
  if (target->gpu) KILN_TRY(kiln__llvm_gpu_fits(kernel));
  divide_room(e, room);
  e->i1 = LL->IntTypeInContext(context, 1);
  e->i8 = LL->IntTypeInContext(context, 8);
  e->i32 = LL->IntTypeInContext(context, 32);
  e->i64 = LL->IntTypeInContext(context, 64);
  e->ptr = LL->PointerTypeInContext(context, 0);
  e->builder = LL->CreateBuilderInContext(context);
  (target->gpu ? kiln__llvm_emit_gpu : emit_cpu)(e, name);
  LL->BuildRetVoid(BUILD);
  LL->PositionBuilderAtEnd(BUILD, e->entry);
  LL->BuildBr(BUILD, e->start);
  LL->DisposeBuilder(BUILD);
  *out_math = e->math;
  if (e->missing) return KILN_ERROR(KILN_INTERNAL, "this LLVM has no intrinsic %s", e->missing);
  if (target->gpu && e->stack_bytes > KILN_GPU_STACK_BYTES)
    return KILN_ERROR(KILN_UNSUPPORTED, "the kernel takes %zu bytes of a thread, a GPU has %d",
                      e->stack_bytes, KILN_GPU_STACK_BYTES);
  return NULL;
}
