/* emit_state.h: a nest at work, and the small parts of which the emitter's files make loops and
 * accesses (of emit.c and emit_tree.c). */
#pragma once

#include "codegen/llvm/emit.h"

/* A load or store that moves with the innermost loop. */
typedef struct access {
  const kiln_loop_inst *inst;
  int number;
  kiln_dim step;       /* of the innermost loop */
  LLVMValueRef row;    /* address at innermost counter 0 */
  LLVMValueRef at;     /* address of this step's first element */
  LLVMValueRef buffer; /* on the stack: partial steps without masks, scattering; or NULL */
  LLVMValueRef value;  /* of a store that waits for the end of its step; or NULL */
  bool lanes;          /* a gather whose index moves with the innermost loop */
} access;

typedef struct nest_state {
  int rank, count, access_count;
  kiln_dim extents[KILN_LOOP_MAX_RANK];
  int *levels;
  access *accesses;
  LLVMValueRef counters[KILN_LOOP_MAX_RANK];
  LLVMValueRef first[KILN_LOOP_MAX_RANK], last[KILN_LOOP_MAX_RANK]; /* in the box */
  LLVMValueRef left; /* elements of this step, 1 to width, i64 */
  LLVMValueRef full; /* left == width; where stores' masks are dear, else NULL */
  LLVMValueRef mask; /* NULL: the step is whole */
  int *same;         /* of instructions that are the same in all rows: 1; functions, and what is
                      * made of them: 2; else 0. Where there are tables */
  int table_depth;   /* loops around the tables' own; -1: there are none */
} nest_state;

/* Where an instruction is emitted. */
typedef struct place {
  int loop;          /* whose iterations are lanes: its depth; -1: all lanes are alike */
  LLVMValueRef left; /* of a partial step: its elements; NULL: all lanes are there */
  LLVMValueRef mask;
  LLVMValueRef lane;        /* rows: of the step's first iteration, below KILN_REDUCE_LANES */
  LLVMValueRef *reductions; /* the accumulators that it adds to */
} place;

typedef struct tree {
  kiln__llvm_emitter *e;
  nest_state *s;
  const kiln_loop_nest *nest;
  kiln_loop_scopes scopes;
  bool rows;
} tree;

static inline bool is_loop(const tree *t, int i) {
  return kiln_loop_ops[t->nest->body.data[i].op].rule == KILN_LOOP_RULE_OPEN;
}
/* Whether the loop's iterations are lanes: not where what it reduces over other loops too begins
 * between two accumulators. */
static inline bool is_strip(const tree *t, int open) {
  const kiln_dim extent = t->nest->body.data[open].offset;
  const bool whole = kiln_dim_is_number(extent) && extent % KILN_REDUCE_LANES == 0;
  for (int i = open + 1; i < t->scopes.end[open]; i++) {
    const kiln_loop_inst *inst = &t->nest->body.data[i];
    if (is_loop(t, i)) return false;
    if (kiln_loop_reduces(inst->op) && inst->index > 1 && !whole) return false;
  }
  return t->rows;
}
static inline kiln_dtype operand_dtype(const tree *t, int i) {
  return t->nest->body.data[t->nest->body.data[i].args[0]].dtype;
}

static inline LLVMBasicBlockRef new_block(const kiln__llvm_emitter *e) {
  return LL->AppendBasicBlockInContext(e->context, e->function, "");
}
static inline LLVMValueRef binary(const kiln__llvm_emitter *e, LLVMOpcode op, LLVMValueRef a,
                                  LLVMValueRef b) {
  return LL->BuildBinOp(BUILD, op, a, b, "");
}
/* What `count` iterations leave of whole steps of so many. */
static inline LLVMValueRef whole_steps(const kiln__llvm_emitter *e, LLVMValueRef count, int step) {
  LLVMValueRef by = LL->ConstInt(e->i64, (unsigned)step, 0);
  if ((step & (step - 1)) == 0)
    return binary(e, LLVMAnd, count, LL->ConstInt(e->i64, (unsigned long long)-(int64_t)step, 1));
  return binary(e, LLVMSub, count, binary(e, LLVMURem, count, by));
}
static inline LLVMValueRef least(const kiln__llvm_emitter *e, LLVMValueRef a, LLVMValueRef b) {
  return LL->BuildSelect(BUILD, LL->BuildICmp(BUILD, LLVMIntSLT, a, b, ""), a, b, "");
}
static inline LLVMValueRef offset_by(const kiln__llvm_emitter *e, kiln_dtype dtype,
                                     LLVMValueRef base, LLVMValueRef index) {
  return LL->BuildGEP2(BUILD, kiln__llvm_emit_memory_type(e, dtype), base, &index, 1, "");
}
static inline LLVMTypeRef memory_vector(const kiln__llvm_emitter *e, kiln_dtype dtype) {
  return kiln__llvm_emit_vector_of(e, kiln__llvm_emit_memory_type(e, dtype));
}

/* Whether boxes cut the loop, anywhere. */
bool kiln__llvm_is_cut(const kiln_loop_nest *nest, int d);
/* emit_table.c: finds what is the same in all rows; makes it, where loops as far as table_depth
 * stand; and takes it, where the innermost one does. */
void kiln__llvm_find_table(kiln__llvm_emitter *e, nest_state *s);
void kiln__llvm_emit_table(kiln__llvm_emitter *e, nest_state *s);
LLVMValueRef kiln__llvm_load_same(kiln__llvm_emitter *e, const nest_state *s, int i);

static inline LLVMValueRef lane_of(const kiln__llvm_emitter *e, LLVMValueRef vector, int lane) {
  if (e->width == 1) return vector;
  return LL->BuildExtractElement(BUILD, vector, LL->ConstInt(e->i32, (unsigned)lane, 0), "");
}

/* A counted loop around what the caller emits: loop_begin leaves the builder in its body and
 * returns the counter; loop_end closes it and leaves the builder behind it. At least one turn. */
typedef struct loop {
  LLVMBasicBlockRef body;
  LLVMValueRef first, counter;
} loop;

static inline loop loop_begin(const kiln__llvm_emitter *e, LLVMValueRef first) {
  loop l = {.body = new_block(e), .first = first};
  LLVMBasicBlockRef before = LL->GetInsertBlock(BUILD);
  LL->BuildBr(BUILD, l.body);
  LL->PositionBuilderAtEnd(BUILD, l.body);
  l.counter = LL->BuildPhi(BUILD, e->i64, "");
  LL->AddIncoming(l.counter, &first, &before, 1);
  return l;
}

static inline void loop_end_by(const kiln__llvm_emitter *e, loop l, LLVMValueRef step,
                               LLVMValueRef last) {
  LLVMBasicBlockRef behind = new_block(e), latch = LL->GetInsertBlock(BUILD);
  LLVMValueRef next = binary(e, LLVMAdd, l.counter, step);
  LLVMValueRef more = LL->BuildICmp(BUILD, LLVMIntSLT, next, last, "");
  LL->AddIncoming(l.counter, &next, &latch, 1);
  kiln__llvm_emit_turns(e, LL->BuildCondBr(BUILD, more, l.body, behind), l.first, step, last);
  LL->PositionBuilderAtEnd(BUILD, behind);
}
static inline void loop_end(const kiln__llvm_emitter *e, loop l, int64_t step, LLVMValueRef last) {
  loop_end_by(e, l, kiln__llvm_emit_index(e, step), last);
}

/* Runs the rest where `condition` holds; gives the block behind it. */
static inline LLVMBasicBlockRef begin_if(const kiln__llvm_emitter *e, LLVMValueRef condition) {
  LLVMBasicBlockRef inside = new_block(e), behind = new_block(e);
  LL->BuildCondBr(BUILD, condition, inside, behind);
  LL->PositionBuilderAtEnd(BUILD, inside);
  return behind;
}
static inline void end_if(const kiln__llvm_emitter *e, LLVMBasicBlockRef behind) {
  LL->BuildBr(BUILD, behind);
  LL->PositionBuilderAtEnd(BUILD, behind);
}

/* What a map gives with the first `levels` counters applied. */
static inline LLVMValueRef index_of(const kiln__llvm_emitter *e, const nest_state *s,
                                    const kiln_loop_inst *inst, int levels) {
  LLVMValueRef index = kiln__llvm_emit_dim(e, inst->offset);
  for (int d = 0; d < levels; d++) {
    if (inst->strides[d] == 0) continue;
    LLVMValueRef step = kiln__llvm_emit_dim(e, inst->strides[d]);
    index = binary(e, LLVMAdd, index, binary(e, LLVMMul, s->counters[d], step));
  }
  return index;
}
/* The address of an access. */
static inline LLVMValueRef address_of(const kiln__llvm_emitter *e, const nest_state *s,
                                      const kiln_loop_inst *inst, int levels) {
  return offset_by(e, inst->dtype, e->data[inst->index], index_of(e, s, inst, levels));
}
/* Of each lane its number times the step. */
static inline LLVMValueRef lanes_times(const kiln__llvm_emitter *e, kiln_dim step) {
  LLVMValueRef steps = kiln__llvm_emit_splat(e, kiln__llvm_emit_dim(e, step), e->width);
  LLVMValueRef lanes =
      LL->BuildCast(BUILD, LLVMZExt, kiln__llvm_emit_iota(e, 0, e->width), LL->TypeOf(steps), "");
  return binary(e, LLVMMul, lanes, steps);
}
/* The numbers of a map, as far as `levels`, whose vectors go along `strip` (-1: no loop). */
static inline LLVMValueRef indices_of(const kiln__llvm_emitter *e, const nest_state *s,
                                      const kiln_loop_inst *inst, int levels, int strip) {
  LLVMValueRef first = kiln__llvm_emit_splat(e, index_of(e, s, inst, levels), e->width);
  if (strip < 0 || inst->strides[strip] == 0 || e->width == 1) return first;
  return binary(e, LLVMAdd, first, lanes_times(e, inst->strides[strip]));
}

/* Whether there are masked loads and stores of the type. */
static inline bool has_masks(const kiln__llvm_emitter *e, kiln_dtype dtype) {
  return e->target->masked && kiln_loop_size(dtype) >= e->target->masked;
}

static inline LLVMValueRef from_memory(const kiln__llvm_emitter *e, kiln_dtype dtype,
                                       LLVMValueRef value) {
  if (dtype != KILN_DTYPE_BOOL) return value;
  return LL->BuildICmp(BUILD, LLVMIntNE, value, LL->ConstNull(LL->TypeOf(value)), "");
}
static inline LLVMValueRef to_memory(const kiln__llvm_emitter *e, kiln_dtype dtype,
                                     LLVMValueRef value) {
  if (dtype != KILN_DTYPE_BOOL) return value;
  return LL->BuildCast(BUILD, LLVMZExt, value, memory_vector(e, dtype), "");
}

static inline LLVMValueRef load_aligned(const kiln__llvm_emitter *e, LLVMTypeRef type,
                                        LLVMValueRef address, int align) {
  LLVMValueRef load = LL->BuildLoad2(BUILD, type, address, "");
  LL->SetAlignment(load, (unsigned)align);
  return load;
}
/* The same of the lanes in a mask; the others are 0. */
static inline LLVMValueRef load_masked(kiln__llvm_emitter *e, LLVMTypeRef type,
                                       LLVMValueRef address, int align, LLVMValueRef mask) {
  LLVMTypeRef types[2] = {type, e->ptr};
  LLVMValueRef args[4] = {address, LL->ConstInt(e->i32, (unsigned)align, 0), mask,
                          LL->ConstNull(type)};
  return kiln__llvm_emit_intrinsic(e, "llvm.masked.load", types, 2, args, 4);
}
static inline void store_masked(kiln__llvm_emitter *e, LLVMValueRef value, LLVMValueRef address,
                                int align, LLVMValueRef mask) {
  LLVMTypeRef types[2] = {LL->TypeOf(value), e->ptr};
  LLVMValueRef args[4] = {value, address, LL->ConstInt(e->i32, (unsigned)align, 0), mask};
  kiln__llvm_emit_intrinsic(e, "llvm.masked.store", types, 2, args, 4);
}
static inline void store_aligned(const kiln__llvm_emitter *e, LLVMValueRef value,
                                 LLVMValueRef address, int align) {
  LL->SetAlignment(LL->BuildStore(BUILD, value, address), (unsigned)align);
}

/* Whether elements that lie so many apart are written by masked vectors of all that lies from the
 * first to the last: channels that are shuffled. */
static inline bool spreads(const kiln__llvm_emitter *e, kiln_dtype dtype, kiln_dim step) {
  enum { MOST_APART = 4, LEAST = 4 /* bytes */, MOST = 256 };
  return e->target->masks && e->width > 1 && step > 1 && step <= MOST_APART &&
         kiln_loop_size(dtype) >= LEAST && step * e->width * kiln_loop_size(dtype) <= MOST;
}

/* -- emit_gather.c -- */

/* The first `left` lanes of `value`, `step` elements apart from the address on. */
void kiln__llvm_emit_spread(kiln__llvm_emitter *e, LLVMValueRef value, LLVMValueRef address,
                            int align, int step, LLVMValueRef left);
/* A check: `mask` has the lanes that exist; NULL: all do, or all are alike. */
LLVMValueRef kiln__llvm_emit_check(kiln__llvm_emitter *e, const kiln_loop_inst *inst,
                                   LLVMValueRef mask);
/* The address of a gather whose lanes have one index; `at` is that of its map. */
LLVMValueRef kiln__llvm_emit_row(const kiln__llvm_emitter *e, const kiln_loop_inst *inst,
                                 LLVMValueRef at);
/* What it reads where each lane has an index; lanes are `step` apart from `at` on, of which those
 * behind `last` (NULL: there are none) read at its place. */
LLVMValueRef kiln__llvm_emit_gather(const kiln__llvm_emitter *e, const kiln_loop_inst *inst,
                                    LLVMValueRef at, kiln_dim step, LLVMValueRef last);

/* What stands in that many of the nest's loops, before the next. */
void kiln__llvm_emit_level(kiln__llvm_emitter *e, const nest_state *s, int level);
/* The loops of a nest that has others in its body. */
void kiln__llvm_emit_tree(kiln__llvm_emitter *e, nest_state *s);
/* The body of one iteration, at which all counters stand: what moves with them, in numbers. */
void kiln__llvm_emit_iteration(kiln__llvm_emitter *e, nest_state *s);
/* -- emit_reduce.c -- */

/* Before and behind the loop with which it begins; and in it, once for each step. */
void kiln__llvm_begin_reduction(const tree *t, int i);
void kiln__llvm_accumulate(const tree *t, int i, const place *p);
void kiln__llvm_end_reduction(const tree *t, int i);
/* The sums begin anew with accumulators of registers' own (`begin`), or go back to memory. */
void kiln__llvm_exchange_accumulators(const tree *t, int open, bool begin);
/* Whether the instruction is carried from iteration to iteration of the loop. */
bool kiln__llvm_carries_in(const tree *t, int i, int open);
void kiln__llvm_begin_scan(const tree *t, int i);
void kiln__llvm_carry(const tree *t, int i, const place *p);

/* A nest with a tile (emit_tile.c); values that the tiles of a kernel need, at most. */
size_t kiln__llvm_tile_room(const kiln_loop_fn *fn);
void kiln__llvm_emit_tile(kiln__llvm_emitter *e, nest_state *s);
/* The loop of the body that instruction `open` opens, with so many rows at once. */
void kiln__llvm_emit_body_tile(const tree *t, int open, int rows);
/* How many steps of a loop of the body are one; 0: it is not unrolled. */
int kiln__llvm_unroll_of(const tree *t, int open);
/* The iterations of a loop of the body. */
LLVMValueRef kiln__llvm_emit_extent(const tree *t, int open);
tree kiln__llvm_tree_of(kiln__llvm_emitter *e, nest_state *s, bool rows);
/* An instruction that is no loop and reduces nothing. */
void kiln__llvm_emit_straight(const tree *t, int i, const place *p);
/* A load of no local buffer, from that address. */
LLVMValueRef kiln__llvm_emit_load_at(const tree *t, int number, const place *p, LLVMValueRef at);
/* x * y + more, rounded once where the CPU can. */
LLVMValueRef kiln__llvm_emit_product(kiln__llvm_emitter *e, LLVMValueRef x, LLVMValueRef y,
                                     LLVMValueRef more);
/* Memory of the function for `count` elements. */
LLVMValueRef kiln__llvm_emit_stack(kiln__llvm_emitter *e, kiln_dtype dtype, int64_t count);
/* -- emit_gpu.c -- */

/* KILN_UNSUPPORTED: a GPU has not so many parameters, or its sizes are too much to work out. */
kiln_status *kiln__llvm_gpu_fits(const kiln_loop_flat *kernel) KILN_MUST_USE;
/* The function and its nests, of a kernel that fits. */
void kiln__llvm_emit_gpu(kiln__llvm_emitter *e, const char *name);
