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

/* Elements that an iteration reads of a panel. */
static int elements_of(const tile *x) { return x->panel * (1 + x->pairs); }

/* -- The panel that comes next -- */

/* It is asked for in parts, by the tiles that go over this panel in turns, so that it arrives as
 * evenly as this one is worked on. Of a panel of 24 columns, 6 tiles and 100 iterations the first
 * tile asks for the first 400 elements, 4 in each iteration, and the last one for the last. */
typedef struct parts {
  int64_t tiles;       /* that go over a panel; 0: no number */
  int64_t count, step; /* parts, and elements of one for each iteration of the sums */
  int64_t elements;    /* of a part */
} parts;

static parts parts_of(const tile *x) {
  enum { SOME = 16 /* what a number of tiles that is not known is taken for */ };
  const kiln_loop_nest *nest = x->t->nest;
  const int64_t all = elements_of(x);
  int64_t iterations = 1, tiles = 1;
  bool known = true;
  for (int l = 0; l < x->c.loops - x->pairs; l++)
    iterations *= nest->body.data[x->c.first_open + l].offset; /* numbers, of what is packed */
  for (int d = nest->tile.panel_loop + 1; d <= x->row_loop && known; d++) {
    const kiln_dim extent = nest->extents[d];
    const int rows = d == x->row_loop ? nest->tile.rows : 1;
    known = kiln_dim_is_number(extent) &&
            kiln_checked_mul_i64(tiles, (extent + rows - 1) / rows, &tiles);
  }
  const int64_t wanted = known ? tiles : SOME, count = wanted < all ? wanted : all;
  const int64_t step = (all + count - 1) / count;
  return (parts){known ? tiles : 0, count, step, iterations * step};
}

/* Which of the panel's tiles the loops stand at. */
static LLVMValueRef number_of_tile(const tile *x) {
  kiln__llvm_emitter *e = x->t->e;
  const kiln_loop_nest *nest = x->t->nest;
  LLVMValueRef rows = kiln__llvm_emit_index(e, nest->tile.rows);
  LLVMValueRef number = kiln__llvm_emit_index(e, 0);
  for (int d = nest->tile.panel_loop + 1; d < x->row_loop; d++) {
    number = binary(e, LLVMMul, number, kiln__llvm_emit_dim(e, nest->extents[d]));
    number = binary(e, LLVMAdd, number, x->t->s->counters[d]);
  }
  LLVMValueRef tiles = kiln__llvm_emit_dim(e, nest->extents[x->row_loop]);
  tiles = binary(e, LLVMAdd, tiles, kiln__llvm_emit_index(e, nest->tile.rows - 1));
  number = binary(e, LLVMMul, number, LL->BuildBinOp(BUILD, LLVMUDiv, tiles, rows, ""));
  return binary(e, LLVMAdd, number, LL->BuildBinOp(BUILD, LLVMUDiv, x->first_row, rows, ""));
}

/* Where the part of the tile at which the loops stand begins, in elements. */
LLVMValueRef kiln__llvm_find_next_part(const tile *x) {
  kiln__llvm_emitter *e = x->t->e;
  if (x->next < 0 || x->t->nest->tile.ahead) return NULL;
  const parts p = parts_of(x);
  LLVMValueRef number = number_of_tile(x), count = kiln__llvm_emit_index(e, p.count);
  if (!p.tiles) {
    number = LL->BuildBinOp(BUILD, LLVMURem, number, count, "");
  } else if (p.tiles > p.count) {
    number = binary(e, LLVMMul, number, count);
    number = LL->BuildBinOp(BUILD, LLVMUDiv, number, kiln__llvm_emit_index(e, p.tiles), "");
  }
  return binary(e, LLVMMul, number, kiln__llvm_emit_index(e, p.elements));
}

/* The lines of the elements that are this iteration's, but for one that the iteration before it in
 * the step has asked for. */
static void emit_next_panel(const tile *x) {
  kiln__llvm_emitter *e = x->t->e;
  const kiln_loop_nest *nest = x->t->nest;
  const kiln_loop_inst *inst = &nest->body.data[x->next];
  const parts p = parts_of(x);
  const int64_t size = kiln_loop_size(inst->dtype), bytes = p.step * size, from = x->step * bytes;
  const int last = x->inner + x->c.loops - x->pairs;
  if (x->step > 0 && from / LINE == (from - bytes) / LINE) return;
  LLVMValueRef moved = x->next_part;
  for (int d = x->inner + 1; d <= last; d++) {
    LLVMValueRef counter = d == last ? x->counter : x->t->s->counters[d];
    const int64_t by = inst->strides[d] / elements_of(x) * p.step;
    moved = binary(e, LLVMAdd, moved, binary(e, LLVMMul, counter, kiln__llvm_emit_index(e, by)));
  }
  moved = binary(e, LLVMAdd, moved, kiln__llvm_emit_dim(e, inst->strides[nest->tile.panel_loop]));
  LLVMValueRef at = offset_by(e, inst->dtype, values_at(x, e->tile_places, 0, 0)[x->next], moved);
  at = LL->BuildFreeze(BUILD, at, "");
  for (int64_t line = from / LINE * LINE; line < from + bytes; line += LINE)
    ask_for(e, offset_by(e, inst->dtype, at, kiln__llvm_emit_index(e, line / size)), false, true);
}

/* What an iteration asks for of what is packed: what comes so many iterations later, or its share
 * of the next panel. */
void kiln__llvm_emit_next(const tile *x) {
  kiln__llvm_emitter *e = x->t->e;
  const int ahead = x->t->nest->tile.ahead;
  if (x->next < 0) return;
  if (!ahead) {
    emit_next_panel(x);
    return;
  }
  const kiln_loop_inst *inst = &x->t->nest->body.data[x->next];
  const int elements = elements_of(x), step = LINE / kiln_loop_size(inst->dtype);
  LLVMValueRef at = kiln__llvm_iteration_at(x, x->next, 0, 0);
  for (int k = 0; k < elements; k += step)
    ask_for(e,
            offset_by(e, inst->dtype, at, kiln__llvm_emit_index(e, (int64_t)ahead * elements + k)),
            false, false);
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
