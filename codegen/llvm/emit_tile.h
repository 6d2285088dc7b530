/* emit_tile.h: a tile, between emit_tile.c and the files emit_tile_*.c. */
#pragma once

#include "codegen/llvm/emit_state.h"
#include "codegen/loop/schedule.h"

/* Which of a tile's loops an instruction moves with. */
enum {
  ROWS = 1,
  VECTORS = 2,
  SUMS = 4,    /* with a sum */
  WANTED = 8,  /* in the sums' loops */
  COLUMN = 16, /* the same in all rows */
  KEPT = 32,   /* such, and read by what is not */
};

typedef struct tile {
  const tree *t;
  kiln__contraction c;
  int begin, end;      /* its instructions; of a nest all */
  int open;            /* of the body, the rows' loop; -1: the nest's */
  int row_loop, inner; /* the rows', and the innermost one */
  int rows, panel, vectors, chains, unroll;
  int column_depth;         /* loops that values of columns stand in; -1: there are none */
  bool pairs;               /* the innermost loop is a product of pairs (emit_tile_pairs.c) */
  bool short_behind;        /* what stands behind the sums: it is emitted for each vector */
  int turns;                /* else for so many rows at once, in a loop */
  LLVMValueRef first, last; /* of the rows */
  LLVMValueRef first_row;
  LLVMValueRef counter;   /* of the innermost loop of the sums, at the begin of its step */
  int step;               /* the iteration since then */
  int next;               /* the load of a panel whose next one is prefetched; -1: there is none */
  LLVMValueRef next_part; /* where the part of it begins that the tile asks for, in elements */
  /* Of one vector, which perhaps is no whole one: where it begins, and its elements; else NULL. */
  LLVMValueRef first_column, left;
} tile;

static inline bool is_outside(const tile *x, int i) {
  return x->open < 0 && x->t->nest->body.data[i].op != KILN_LOOP_store &&
         x->t->s->levels[i] <= x->row_loop;
}

/* What a tile takes from memory that was found for its columns. */
static inline bool is_kept_of_column(const tile *x, int i) {
  return x->column_depth >= 0 && (x->t->e->tile_moves[i] & KEPT);
}

/* Elements of the panel that the counter of its loop stands at. */
static inline LLVMValueRef columns_left(const tile *x) {
  const kiln__llvm_emitter *e = x->t->e;
  const kiln_loop_tile *of = &x->t->nest->tile;
  LLVMValueRef all = kiln__llvm_emit_index(e, x->panel);
  if (x->left) return x->left;
  if (x->open >= 0 || !of->columns) return all;
  LLVMValueRef before = binary(e, LLVMMul, x->t->s->counters[of->panel_loop], all);
  return least(e, binary(e, LLVMSub, kiln__llvm_emit_index(e, of->columns), before), all);
}

/* What tiles keep of an instruction for a row and a vector. */
static inline LLVMValueRef *values_at(const tile *x, LLVMValueRef *table, int row, int vector) {
  return table + (row * x->vectors + vector) * x->t->nest->body.count;
}
/* Sets the counters to a row and vector that are known; `whole`: vectors have all elements. */
place kiln__llvm_go_to(const tile *x, int row, int vector, bool whole);
/* Whether an instruction is the same in a whole row, whatever loops stand inside of the rows'. */
bool kiln__llvm_is_of_row(const tile *x, int i);
/* Whether the value is that of another row or vector, from which it is taken. */
bool kiln__llvm_take_known(const tile *x, LLVMValueRef *table, int i, int row, int vector);
/* Where a load's element of the iteration lies, and the accumulator of a contraction. */
LLVMValueRef kiln__llvm_iteration_at(const tile *x, int i, int row, int vector);
LLVMValueRef kiln__llvm_sum_at(const tile *x, int i, int row, int vector, int chain);
/* Both iterations of the innermost loop. */
void kiln__llvm_emit_pairs(const tile *x, int chain);

/* emit_tile_behind.c: how what stands behind the sums is emitted, and emits it: sums are in memory,
 * [row][vector]. */
void kiln__llvm_plan_behind(tile *x);
void kiln__llvm_emit_behind(const tile *x);

/* Whether it is the same in all rows: what batch norm makes of its parameters. It is found before
 * the rows. */
bool kiln__llvm_is_of_column(const tile *x, int i);
/* Marks those that others read, and finds the loops that all of them stand in. */
void kiln__llvm_find_columns(tile *x);
/* Puts them into memory, from which all rows take them. */
void kiln__llvm_emit_columns(const tile *x);
/* emit_tile_ahead.c: the load of what is packed, whose next panel is prefetched (-1: there is
 * none); where the tile's part of that begins, in elements: each tile of the panel has one; asking
 * for what goes with an iteration; and for the results' lines. */
int kiln__llvm_find_next(const tile *x);
LLVMValueRef kiln__llvm_find_next_part(const tile *x);
void kiln__llvm_emit_next(const tile *x);
void kiln__llvm_emit_claim(const tile *x);
