/* emit_tile_columns.c: what is the same in all rows of a tile: found once for a panel's columns,
 * not for each row. Of batch norm behind a convolution whose channels are the columns that is all
 * but a product and a sum. */
#include "codegen/llvm/emit_tile.h"

/* Whether no loop between the rows' and the innermost one moves it. */
static bool is_outside_rows(const tile *x, int i) {
  const kiln_loop_nest *nest = x->t->nest;
  const kiln_loop_inst *inst = &nest->body.data[i];
  for (int d = x->row_loop + 1; d < x->inner && kiln_loop_has_map(inst); d++)
    if (inst->strides[d] != 0) return false;
  return true;
}

bool kiln__llvm_is_of_column(const tile *x, int i) { return x->t->e->tile_moves[i] & COLUMN; }

/* What it reads is known of the instructions before. */
static bool can_be_of_column(const tile *x, int i) {
  const kiln_loop_inst *inst = &x->t->nest->body.data[i];
  const int moves = x->t->e->tile_moves[i];
  const bool in_loops = i >= x->c.first_open && i <= x->c.end;
  for (int a = 0; a < kiln_loop_ops[inst->op].arity; a++)
    if (!is_outside(x, inst->args[a]) && !kiln__llvm_is_of_column(x, inst->args[a])) return false;
  return x->open < 0 && !in_loops && !is_outside(x, i) && inst->op != KILN_LOOP_store &&
         inst->op != KILN_LOOP_check && inst->op != KILN_LOOP_gather &&
         inst->dtype != KILN_DTYPE_BOOL && (moves & VECTORS) && !(moves & (ROWS | SUMS | WANTED)) &&
         is_outside_rows(x, i);
}

void kiln__llvm_find_columns(tile *x) {
  const kiln_loop_nest *nest = x->t->nest;
  int *moves = x->t->e->tile_moves;
  bool any = false;
  x->column_depth = 0;
  for (int i = x->begin; i < x->end; i++) {
    const kiln_loop_inst *inst = &nest->body.data[i];
    if (can_be_of_column(x, i)) {
      moves[i] |= COLUMN;
      for (int d = 0; d < x->row_loop && kiln_loop_has_map(inst); d++)
        if (inst->strides[d] != 0 && d >= x->column_depth) x->column_depth = d + 1;
      continue;
    }
    for (int a = 0; a < kiln_loop_ops[inst->op].arity; a++) {
      if (!kiln__llvm_is_of_column(x, inst->args[a])) continue;
      moves[inst->args[a]] |= KEPT;
      any = true;
    }
  }
  if (!any) x->column_depth = -1;
}

/* Values of columns, of one vector. */
static void emit_column(const tile *x, LLVMValueRef vector, LLVMValueRef left) {
  kiln__llvm_emitter *e = x->t->e;
  LLVMValueRef at = binary(e, LLVMMul, vector, kiln__llvm_emit_index(e, e->width));
  if (e->width == 1) left = NULL;
  place p = {.loop = x->inner, .reductions = e->reductions, .left = left};
  if (left) p.mask = kiln__llvm_emit_mask(e, left);
  x->t->s->counters[x->inner] = at;
  for (int i = x->begin; i < x->end; i++) {
    const kiln_loop_inst *inst = &x->t->nest->body.data[i];
    if (!kiln__llvm_is_of_column(x, i)) continue;
    kiln__llvm_emit_straight(x->t, i, &p);
    if (!(e->tile_moves[i] & KEPT)) continue;
    store_aligned(e, e->values[i], offset_by(e, inst->dtype, e->tile_places[i], at),
                  kiln_loop_size(inst->dtype));
  }
}

void kiln__llvm_emit_columns(const tile *x) {
  kiln__llvm_emitter *e = x->t->e;
  LLVMValueRef *outer = e->values;
  const int count = x->t->nest->body.count;
  const int64_t columns = x->t->nest->tile.columns;
  for (int i = x->begin; i < x->end; i++) {
    if (!is_kept_of_column(x, i)) continue;
    const kiln_dtype dtype = x->t->nest->body.data[i].dtype;
    e->tile_places[i] = kiln__llvm_emit_stack(e, dtype, x->vectors * e->width);
  }
  for (int i = 0; i < count; i++) e->tile_values[i] = outer[i];
  e->values = e->tile_values;
  LLVMValueRef zero = kiln__llvm_emit_index(e, 0), width = kiln__llvm_emit_index(e, e->width);
  LLVMValueRef left = columns_left(x);
  LLVMValueRef whole = LL->BuildBinOp(BUILD, LLVMUDiv, left, width, "");
  LLVMValueRef rest = LL->BuildBinOp(BUILD, LLVMURem, left, width, "");
  if (x->panel >= e->width) {
    LLVMBasicBlockRef behind = begin_if(e, LL->BuildICmp(BUILD, LLVMIntSLT, zero, whole, ""));
    loop l = loop_begin(e, zero);
    emit_column(x, l.counter, NULL);
    loop_end(e, l, 1, whole);
    end_if(e, behind);
  }
  if (x->panel % e->width != 0 || columns % e->width != 0) {
    LLVMBasicBlockRef behind = begin_if(e, LL->BuildICmp(BUILD, LLVMIntNE, rest, zero, ""));
    emit_column(x, whole, rest);
    end_if(e, behind);
  }
  e->values = outer;
}
