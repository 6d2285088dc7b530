/* emit_tile_ahead.c: what a tile asks of memory before it is wanted (schedule.h): lines of the
 * panel that comes next, while this one is worked on, and those of its results, while their sums
 * are. */
#include "codegen/llvm/emit_tile.h"

enum { LINE = 64 };

/* Into the first cache, or, `far`, the second one. */
static void ask_for(kiln__llvm_emitter *e, LLVMValueRef at, bool written, bool far) {
  LLVMValueRef args[4] = {at, LL->ConstInt(e->i32, written, 0),
                          LL->ConstInt(e->i32, far ? 2 : 3, 0), LL->ConstInt(e->i32, 1, 0)};
  kiln__llvm_emit_intrinsic(e, "llvm.prefetch", &e->ptr, 1, args, 4);
}

/* The load of what is packed that is prefetched; -1: there is none. */
int kiln__llvm_find_next(const tile *x) {
  const kiln_loop_nest *nest = x->t->nest;
  if (x->open >= 0 || !nest->tile.prefetch || x->t->e->target->gpu) return -1;
  for (int i = x->c.inner_open + 1; i < x->c.end; i++) {
    const kiln_loop_inst *inst = &nest->body.data[i];
    if (inst->op == KILN_LOOP_load && inst->index == nest->tile.packed) return i;
  }
  return -1;
}

/* Elements, and lines of memory, that an iteration reads of a panel. */
static int elements_of(const tile *x) { return x->panel * (1 + x->pairs); }
static int lines_of(const tile *x) {
  const int size = kiln_loop_size(x->t->nest->body.data[x->next].dtype);
  return (elements_of(x) * size + LINE - 1) / LINE;
}

/* The lines that an iteration reads of the panel, so many iterations on. Or, of the next panel,
 * those of them that this tile asks for: each tile of a panel's rows some, all together all. */
void kiln__llvm_emit_next(const tile *x) {
  kiln__llvm_emitter *e = x->t->e;
  const kiln_loop_nest *nest = x->t->nest;
  if (x->next < 0) return;
  const kiln_loop_inst *inst = &nest->body.data[x->next];
  const int size = kiln_loop_size(inst->dtype), lines = lines_of(x), ahead = nest->tile.ahead;
  const kiln_dim rows = nest->extents[x->row_loop];
  const int64_t tiles =
      kiln_dim_is_number(rows) ? (rows + nest->tile.rows - 1) / nest->tile.rows : lines;
  const int count = ahead ? lines : (int)((lines + tiles - 1) / tiles);
  LLVMValueRef by = ahead ? kiln__llvm_emit_index(e, (int64_t)ahead * elements_of(x))
                          : kiln__llvm_emit_dim(e, inst->strides[nest->tile.panel_loop]);
  LLVMValueRef at = offset_by(e, inst->dtype, kiln__llvm_iteration_at(x, x->next, 0, 0), by);
  for (int k = 0; k < count; k++) {
    LLVMValueRef line =
        binary(e, LLVMAdd, x->next_line, kiln__llvm_emit_index(e, (int64_t)k * LINE / size));
    ask_for(e, offset_by(e, inst->dtype, at, line), false, ahead == 0);
  }
}

/* Where the tile's lines begin, in elements: another place for each tile of the rows. */
LLVMValueRef kiln__llvm_find_next_line(const tile *x) {
  kiln__llvm_emitter *e = x->t->e;
  const kiln_loop_nest *nest = x->t->nest;
  if (x->next < 0) return NULL;
  if (nest->tile.ahead) return kiln__llvm_emit_index(e, 0);
  const int size = kiln_loop_size(nest->body.data[x->next].dtype), lines = lines_of(x);
  LLVMValueRef number =
      LL->BuildBinOp(BUILD, LLVMUDiv, x->first_row, kiln__llvm_emit_index(e, nest->tile.rows), "");
  number = LL->BuildBinOp(BUILD, LLVMURem, number, kiln__llvm_emit_index(e, lines), "");
  return binary(e, LLVMMul, number, kiln__llvm_emit_index(e, LINE / size));
}

/* Its lines of what it stores, all loops but its own standing at it. */
void kiln__llvm_emit_claim(const tile *x) {
  kiln__llvm_emitter *e = x->t->e;
  const kiln_loop_nest *nest = x->t->nest;
  if (x->open >= 0 || !nest->tile.claim || e->target->gpu) return;
  for (int i = x->c.end; i < x->end; i++) {
    const kiln_loop_inst *inst = &nest->body.data[i];
    if (inst->op != KILN_LOOP_store || inst->strides[x->inner] != 1) continue;
    const int step = LINE / kiln_loop_size(inst->dtype);
    for (int row = 0; row < x->rows; row++) {
      x->t->s->counters[x->row_loop] =
          binary(e, LLVMAdd, x->first_row, kiln__llvm_emit_index(e, row));
      for (int column = 0; column < x->vectors * e->width; column += step) {
        x->t->s->counters[x->inner] = kiln__llvm_emit_index(e, column);
        ask_for(e, address_of(e, x->t->s, inst, x->t->s->rank), true, false);
      }
    }
  }
}
