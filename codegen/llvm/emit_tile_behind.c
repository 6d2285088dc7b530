/* emit_tile_behind.c: what stands behind a tile's sums. What is short is emitted for each row and
 * vector; else there is a loop over rows and one over vectors, so that functions of runtime/math
 * are inlined once, or twice where two rows are computed in turns. */
#include "codegen/llvm/emit_tile.h"

enum {
  SHORT = 12, /* instructions that are emitted for each row and vector */
  TURNS = 2   /* rows whose functions are computed in turns; more would not stay in registers */
};

/* Not with functions of runtime/math, nor where a panel ends within a vector at run time. */
static bool is_short_behind(const tile *x) {
  int count = 0;
  const int width = x->t->e->width;
  if (x->open >= 0 || x->t->nest->tile.columns % width != 0) return false;
  if (x->t->nest->tile.columns && x->panel % width != 0) return false;
  for (int i = x->begin; i < x->end; i++) {
    const kiln_loop_inst *inst = &x->t->nest->body.data[i];
    if (i >= x->c.first_open && i <= x->c.end) continue;
    if (kiln__llvm_is_of_row(x, i) || is_outside(x, i)) continue;
    if (x->column_depth >= 0 && kiln__llvm_is_of_column(x, i)) continue;
    if (kiln_loop_is_math(inst->op) || inst->op == KILN_LOOP_gather) return false;
    count++;
  }
  return count <= SHORT;
}

/* Rows whose functions behind the sums are computed in turns. */
static int turns_of(const tile *x) {
  bool functions = false;
  for (int i = x->begin; i < x->end; i++)
    functions |= kiln_loop_is_math(x->t->nest->body.data[i].op);
  return functions && x->rows >= TURNS ? TURNS : 1;
}

void kiln__llvm_plan_behind(tile *x) {
  x->short_behind = is_short_behind(x);
  x->turns = turns_of(x);
}

/* The vector at element `at` of what the tile keeps of instruction i. */
static LLVMValueRef load_kept(kiln__llvm_emitter *e, kiln_dtype dtype, int i, LLVMValueRef at) {
  return load_aligned(e, kiln__llvm_emit_vector_type(e, dtype),
                      offset_by(e, dtype, e->tile_places[i], at), kiln_loop_size(dtype));
}

/* One instruction of row `row` and vector `vector`, whose values are the emitter's. */
static void emit_of_element(const tile *x, int i, LLVMValueRef row, LLVMValueRef vector,
                            const place *p) {
  kiln__llvm_emitter *e = x->t->e;
  const kiln_loop_inst *inst = &x->t->nest->body.data[i];
  LLVMValueRef width = kiln__llvm_emit_index(e, e->width);
  if (inst->op == KILN_LOOP_contract) {
    LLVMValueRef at = binary(e, LLVMMul, row, kiln__llvm_emit_index(e, x->vectors));
    at = binary(e, LLVMMul, binary(e, LLVMAdd, at, vector), width);
    e->values[i] = load_kept(e, inst->dtype, i, at);
  } else if (kiln__llvm_is_of_row(x, i)) {
    e->values[i] = load_kept(e, inst->dtype, i, binary(e, LLVMMul, row, width));
  } else if (is_kept_of_column(x, i)) {
    e->values[i] = load_kept(e, inst->dtype, i, binary(e, LLVMMul, vector, width));
  } else if (x->column_depth >= 0 && kiln__llvm_is_of_column(x, i)) {
    return;
  } else if ((i < x->c.first_open || i > x->c.end) && !is_outside(x, i)) {
    x->t->s->counters[x->row_loop] = binary(e, LLVMAdd, x->first_row, row);
    kiln__llvm_emit_straight(x->t, i, p);
  }
}

/* A row and a vector that are known. */
static void emit_known_element(const tile *x, int row, int vector) {
  kiln__llvm_emitter *e = x->t->e;
  LLVMValueRef at_row = kiln__llvm_emit_index(e, row), at_vector = kiln__llvm_emit_index(e, vector);
  const place p = kiln__llvm_go_to(x, row, vector, false);
  e->values = values_at(x, e->tile_values, row, vector);
  for (int i = x->begin; i < x->end; i++) {
    if (kiln__llvm_is_of_row(x, i)) /* it is in no memory */
      e->values[i] = values_at(x, e->tile_values, row, 0)[i];
    else
      emit_of_element(x, i, at_row, at_vector, &p);
  }
}

/* Vector `vector` of `count` rows from `row` on, of which `left` elements are there; NULL: all.
 * Each instruction stands beside itself of the other rows, so that calls of functions do
 * (interleave.c). */
static void emit_elements(const tile *x, LLVMValueRef row, int count, LLVMValueRef vector,
                          LLVMValueRef left) {
  kiln__llvm_emitter *e = x->t->e;
  LLVMValueRef rows[TURNS];
  if (e->width == 1) left = NULL;
  place p = {.loop = x->inner, .reductions = e->reductions, .left = left};
  if (left) p.mask = kiln__llvm_emit_mask(e, left);
  x->t->s->counters[x->inner] =
      x->left ? x->first_column : binary(e, LLVMMul, vector, kiln__llvm_emit_index(e, e->width));
  for (int r = 0; r < count; r++) rows[r] = binary(e, LLVMAdd, row, kiln__llvm_emit_index(e, r));
  for (int i = x->begin; i < x->end; i++) {
    for (int r = 0; r < count; r++) {
      e->values = values_at(x, e->tile_values, r, 0);
      emit_of_element(x, i, rows[r], vector, &p);
    }
  }
}

/* All rows; of `columns` in panels the last one has some of the vectors alone, whole ones. */
static void emit_known(const tile *x, int64_t columns) {
  kiln__llvm_emitter *e = x->t->e;
  const int some = (int)(columns / e->width % x->vectors), always = some ? some : x->vectors;
  for (int row = 0; row < x->rows; row++)
    for (int vector = 0; vector < always; vector++) emit_known_element(x, row, vector);
  if (!some) return;
  LLVMValueRef panel = kiln__llvm_emit_index(e, x->panel);
  LLVMBasicBlockRef behind =
      begin_if(e, LL->BuildICmp(BUILD, LLVMIntEQ, columns_left(x), panel, ""));
  for (int row = 0; row < x->rows; row++)
    for (int vector = always; vector < x->vectors; vector++) emit_known_element(x, row, vector);
  end_if(e, behind);
}

/* All vectors of some rows. */
static void emit_rows_behind(const tile *x, LLVMValueRef row, int count, int64_t columns) {
  kiln__llvm_emitter *e = x->t->e;
  LLVMValueRef zero = kiln__llvm_emit_index(e, 0), width = kiln__llvm_emit_index(e, e->width);
  LLVMValueRef left = columns_left(x);
  LLVMValueRef whole = LL->BuildBinOp(BUILD, LLVMUDiv, left, width, "");
  LLVMValueRef rest = LL->BuildBinOp(BUILD, LLVMURem, left, width, "");
  if (x->left) {
    emit_elements(x, row, count, zero, left);
    return;
  }
  if (x->panel >= e->width) {
    LLVMBasicBlockRef behind = begin_if(e, LL->BuildICmp(BUILD, LLVMIntSLT, zero, whole, ""));
    loop l = loop_begin(e, zero);
    emit_elements(x, row, count, l.counter, NULL);
    loop_end(e, l, 1, whole);
    end_if(e, behind);
  }
  if (x->panel % e->width == 0 && columns % e->width == 0) return;
  LLVMBasicBlockRef behind = begin_if(e, LL->BuildICmp(BUILD, LLVMIntNE, rest, zero, ""));
  emit_elements(x, row, count, whole, rest);
  end_if(e, behind);
}

void kiln__llvm_emit_behind(const tile *x) {
  kiln__llvm_emitter *e = x->t->e;
  const int64_t columns = x->open < 0 ? x->t->nest->tile.columns : 0;
  if (x->short_behind) {
    emit_known(x, columns);
    return;
  }
  const int whole = x->rows / x->turns * x->turns;
  loop rows = loop_begin(e, kiln__llvm_emit_index(e, 0));
  emit_rows_behind(x, rows.counter, x->turns, columns);
  loop_end(e, rows, x->turns, kiln__llvm_emit_index(e, whole));
  if (x->rows > whole)
    emit_rows_behind(x, kiln__llvm_emit_index(e, whole), x->rows - whole, columns);
}
