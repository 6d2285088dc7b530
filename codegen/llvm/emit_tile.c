/* emit_tile.c: contractions in registers: tiles of a nest's innermost loops, or of two loops of a
 * body.
 *
 * All of the inner loop, some vectors, and some iterations of the loop around it, the rows, are
 * emitted at once: each instruction once for each row and vector, or once for all rows (vectors)
 * where it does not move with them. What is contracted stands in an accumulator for each, in memory
 * that the passes make registers of. Of out[i][j] = sum of x[i][k] * w[k][j], with 2 rows and 2
 * vectors, an iteration of k is
 *
 *   w0 = w[k][0..], x0 = splat x[0][k], s00 += x0 * w0, w1 = w[k][8..], s01 += x0 * w1,
 *   x1 = splat x[1][k], s10 += x1 * w0, s11 += x1 * w1
 *
 * Rows that are left over of a known number are one tile, of others tiles of 8, 4, 2 and 1, or of a
 * body tiles of 1. Few accumulators are several chains, which take the iterations of an unrolled
 * step in turn: each waits for its last sum. Their number is the nest's, so that a row's bits do
 * not depend on the rows that it is summed with: boxes cut them anywhere. Of a part of a body's
 * columns, where it is no whole one, each vector is a tile. */
#include "codegen/llvm/emit_tile.h"

static size_t room_of(const kiln_loop_nest *nest, int rows, int64_t panel) {
  return (size_t)rows * (size_t)panel * (size_t)nest->body.count;
}

/* Vectors may have one element of a kernel's only. */
size_t kiln__llvm_tile_room(const kiln_loop_fn *fn) {
  size_t most = 0;
  for (int n = 0; n < fn->nests.count; n++) {
    const kiln_loop_nest *nest = fn->nests.data[n];
    size_t room = 0;
    if (nest->tile.rows) room = room_of(nest, nest->tile.rows, nest->extents[nest->rank - 1]);
    if (room > most) most = room;
    for (int i = 0; i < nest->body_tiles.count; i++) {
      const kiln_loop_body_tile *of = &nest->body_tiles.data[i];
      room = room_of(nest, of->rows, nest->body.data[of->open + 1].offset);
      if (room > most) most = room;
    }
    for (int i = 0; i < nest->unrolls.count; i++) { /* steps in turns (emit_tree.c) */
      room = room_of(nest, nest->unrolls.data[i].count, 1);
      if (room > most) most = room;
    }
  }
  return most;
}

/* -- What moves -- */

static void find_moves(const tile *x) {
  const kiln_loop_nest *nest = x->t->nest;
  int *moves = x->t->e->tile_moves;
  for (int i = 0; i < x->begin; i++) moves[i] = 0;
  for (int i = x->begin; i < x->end; i++) {
    const kiln_loop_inst *inst = &nest->body.data[i];
    moves[i] = inst->op == KILN_LOOP_store ? ROWS | VECTORS : 0;
    if (kiln_loop_has_map(inst)) {
      if (inst->strides[x->row_loop] != 0) moves[i] |= ROWS;
      if (inst->strides[x->inner] != 0) moves[i] |= VECTORS;
    }
    for (int a = 0; a < kiln_loop_ops[inst->op].arity; a++) moves[i] |= moves[inst->args[a]];
    if (inst->op == KILN_LOOP_contract) moves[i] |= SUMS;
  }
  for (int i = x->c.end; i >= x->begin; i--) {
    const kiln_loop_inst *inst = &nest->body.data[i];
    if (i > x->c.first_open || (moves[i] & WANTED))
      for (int a = 0; a < kiln_loop_ops[inst->op].arity; a++) moves[inst->args[a]] |= WANTED;
  }
}

/* -- One row and vector at a time -- */

place kiln__llvm_go_to(const tile *x, int row, int vector, bool whole) {
  kiln__llvm_emitter *e = x->t->e;
  const int width = e->width, inner = x->inner, left = x->panel - vector * width;
  place p = {.loop = inner, .reductions = e->reductions};
  x->t->s->counters[x->row_loop] = binary(e, LLVMAdd, x->first_row, kiln__llvm_emit_index(e, row));
  x->t->s->counters[inner] = x->left ? x->first_column : kiln__llvm_emit_index(e, vector * width);
  if ((x->left || left < width) && !whole && width > 1) {
    p.left = x->left ? x->left : kiln__llvm_emit_index(e, left);
    p.mask = kiln__llvm_emit_mask(e, p.left);
  }
  return p;
}

bool kiln__llvm_take_known(const tile *x, LLVMValueRef *table, int i, int row, int vector) {
  const int moves = x->t->e->tile_moves[i];
  const int from_row = moves & ROWS ? row : 0, from_vector = moves & VECTORS ? vector : 0;
  if (from_row == row && from_vector == vector) return false;
  values_at(x, table, row, vector)[i] = values_at(x, table, from_row, from_vector)[i];
  return true;
}

bool kiln__llvm_is_of_row(const tile *x, int i) {
  const kiln_loop_inst *inst = &x->t->nest->body.data[i];
  const bool in_loops = i >= x->c.first_open && i <= x->c.end;
  return x->open < 0 && !in_loops && !is_outside(x, i) && inst->op != KILN_LOOP_store &&
         inst->op != KILN_LOOP_check && inst->dtype != KILN_DTYPE_BOOL &&
         !(x->t->e->tile_moves[i] & (VECTORS | SUMS)) && x->t->s->levels[i] <= x->row_loop + 1;
}

/* Behind the sums a loop over rows takes what is of a row from memory. */
static void emit_row_values(const tile *x) {
  kiln__llvm_emitter *e = x->t->e;
  for (int i = x->begin; i < x->end; i++) {
    const kiln_loop_inst *inst = &x->t->nest->body.data[i];
    if (!kiln__llvm_is_of_row(x, i)) continue;
    if (!x->short_behind)
      e->tile_places[i] = kiln__llvm_emit_stack(e, inst->dtype, x->rows * e->width);
    for (int row = 0; row < x->rows; row++) {
      const place p = kiln__llvm_go_to(x, row, 0, true);
      e->values = values_at(x, e->tile_values, row, 0);
      kiln__llvm_emit_straight(x->t, i, &p);
      if (!x->short_behind)
        store_aligned(
            e, e->values[i],
            offset_by(e, inst->dtype, e->tile_places[i], kiln__llvm_emit_index(e, row * e->width)),
            kiln_loop_size(inst->dtype));
    }
  }
}

/* What stands before the contraction's loops and is wanted in them. */
static void emit_before(const tile *x) {
  kiln__llvm_emitter *e = x->t->e;
  for (int row = 0; row < x->rows; row++) {
    for (int vector = 0; vector < x->vectors; vector++) {
      const place p = kiln__llvm_go_to(x, row, vector, false);
      e->values = values_at(x, e->tile_values, row, vector);
      for (int i = x->begin; i < x->c.first_open; i++) {
        if ((e->tile_moves[i] & WANTED) && !is_outside(x, i) &&
            !kiln__llvm_take_known(x, e->tile_values, i, row, vector) &&
            !kiln__llvm_is_of_row(x, i))
          kiln__llvm_emit_straight(x->t, i, &p);
      }
    }
  }
}

/* -- Contractions -- */

/* Whether its vectors may be read whole: behind copies is memory for steps of two elements. */
static bool is_packed(const tile *x, const kiln_loop_inst *inst) {
  if (x->open >= 0 || inst->op != KILN_LOOP_load) return false;
  const bool behind = x->t->e->fn->buffers.data[inst->index].copy && inst->strides[x->inner] <= 2;
  return inst->index == x->t->nest->tile.packed || behind;
}

/* Whether the places of all rows and vectors are known numbers of elements apart. */
static bool moves_by_numbers(const tile *x, const kiln_loop_inst *inst) {
  return kiln_dim_is_number(inst->strides[x->row_loop]) &&
         kiln_dim_is_number(inst->strides[x->inner]);
}

/* Whether what the load reads there is found from a place of its own. */
static bool needs_place(const tile *x, int i, int row, int vector) {
  if (moves_by_numbers(x, &x->t->nest->body.data[i])) return row + vector == 0;
  return !kiln__llvm_take_known(x, x->t->e->tile_places, i, row, vector);
}

/* Addresses at the first iteration of the body's loops, and accumulators. */
static void begin_contractions(const tile *x) {
  kiln__llvm_emitter *e = x->t->e;
  for (int i = x->c.inner_open + 1; i < x->c.end; i++) {
    const kiln_loop_inst *inst = &x->t->nest->body.data[i];
    if (inst->op != KILN_LOOP_load && inst->op != KILN_LOOP_contract) continue;
    for (int row = 0; row < x->rows; row++) {
      for (int vector = 0; vector < x->vectors; vector++) {
        LLVMValueRef *to = values_at(x, e->tile_places, row, vector);
        if (inst->op == KILN_LOOP_contract) {
          to[i] = kiln__llvm_emit_stack(e, inst->dtype, x->chains * e->width);
          LLVMValueRef zero = LL->ConstNull(kiln__llvm_emit_vector_type(e, inst->dtype));
          for (int c = 0; c < x->chains; c++)
            store_aligned(e, zero,
                          offset_by(e, inst->dtype, to[i], kiln__llvm_emit_index(e, c * e->width)),
                          kiln_loop_size(inst->dtype));
        } else if (needs_place(x, i, row, vector)) {
          (void)kiln__llvm_go_to(x, row, vector, true);
          to[i] = address_of(e, x->t->s, inst, x->inner + 1);
        }
      }
    }
  }
}

LLVMValueRef kiln__llvm_sum_at(const tile *x, int i, int row, int vector, int chain) {
  kiln__llvm_emitter *e = x->t->e;
  return offset_by(e, x->t->nest->body.data[i].dtype, values_at(x, e->tile_places, row, vector)[i],
                   kiln__llvm_emit_index(e, chain * e->width));
}

static void contract(const tile *x, int i, int row, int vector, int chain) {
  kiln__llvm_emitter *e = x->t->e;
  const kiln_loop_inst *inst = &x->t->nest->body.data[i];
  const int align = kiln_loop_size(inst->dtype);
  LLVMValueRef at = kiln__llvm_sum_at(x, i, row, vector, chain);
  LLVMValueRef sum = load_aligned(e, kiln__llvm_emit_vector_type(e, inst->dtype), at, align);
  sum = kiln__llvm_emit_product(e, e->values[inst->args[0]], e->values[inst->args[1]], sum);
  store_aligned(e, sum, at, align);
}

/* How far the loops of the sums are from their first iterations, and the known rest of that. */
static LLVMValueRef find_moved(const tile *x, const kiln_loop_inst *inst, int64_t *out_rest) {
  const kiln__llvm_emitter *e = x->t->e;
  const int last = x->inner + x->c.loops - x->pairs;
  LLVMValueRef moved = kiln__llvm_emit_index(e, 0);
  *out_rest = 0;
  for (int d = x->inner + 1; d < x->inner + 1 + x->c.loops; d++) {
    if (inst->strides[d] == 0) continue;
    const bool splits = d == last && kiln_dim_is_number(inst->strides[d]);
    LLVMValueRef step = kiln__llvm_emit_dim(e, inst->strides[d]);
    LLVMValueRef counter = splits ? x->counter : x->t->s->counters[d];
    if (splits) *out_rest = x->step * inst->strides[d];
    moved = binary(e, LLVMAdd, moved, binary(e, LLVMMul, counter, step));
  }
  return moved;
}

/* What moves is one value for all rows, vectors and steps, from which they lie known numbers of
 * elements; or one for all rows, on top of their places. It is frozen: else LLVM weighs induction
 * variables for each of them (Loop Strength Reduction), in a third of the compile time. */
LLVMValueRef kiln__llvm_iteration_at(const tile *x, int i, int row, int vector) {
  kiln__llvm_emitter *e = x->t->e;
  const kiln_loop_inst *inst = &x->t->nest->body.data[i];
  int64_t rest;
  LLVMValueRef at, moved = find_moved(x, inst, &rest);
  if (moves_by_numbers(x, inst)) {
    at = offset_by(e, inst->dtype, values_at(x, e->tile_places, 0, 0)[i], moved);
    at = LL->BuildFreeze(BUILD, at, "");
    rest += row * inst->strides[x->row_loop] + vector * e->width * inst->strides[x->inner];
  } else {
    LLVMValueRef size = kiln__llvm_emit_index(e, kiln_loop_size(inst->dtype));
    moved = LL->BuildFreeze(BUILD, binary(e, LLVMMul, moved, size), "");
    at = values_at(x, e->tile_places, row, vector)[i];
    at = LL->BuildGEP2(BUILD, e->i8, at, &moved, 1, "");
  }
  return offset_by(e, inst->dtype, at, kiln__llvm_emit_index(e, rest));
}

static LLVMValueRef load(const tile *x, int i, int row, int vector, const place *p) {
  return kiln__llvm_emit_load_at(x->t, i, p, kiln__llvm_iteration_at(x, i, row, vector));
}

/* One iteration of the innermost loop, at which its counter stands. */
static void emit_iteration(const tile *x, int chain) {
  kiln__llvm_emitter *e = x->t->e;
  kiln__llvm_emit_next(x);
  if (x->pairs) {
    kiln__llvm_emit_pairs(x, chain);
    return;
  }
  for (int row = 0; row < x->rows; row++) {
    for (int vector = 0; vector < x->vectors; vector++) {
      e->values = values_at(x, e->tile_values, row, vector);
      for (int i = x->c.inner_open + 1; i < x->c.end; i++) {
        const kiln_loop_inst *inst = &x->t->nest->body.data[i];
        if (kiln_loop_ops[inst->op].rule == KILN_LOOP_RULE_END) continue;
        if (inst->op == KILN_LOOP_contract) {
          contract(x, i, row, vector, chain);
        } else if (!is_outside(x, i) && !kiln__llvm_take_known(x, e->tile_values, i, row, vector)) {
          const place p = kiln__llvm_go_to(x, row, vector, is_packed(x, inst));
          if (inst->op == KILN_LOOP_load) {
            e->values[i] = load(x, i, row, vector, &p);
          } else {
            kiln__llvm_emit_straight(x->t, i, &p);
          }
        }
      }
    }
  }
}

static void emit_inner_loop(const tile *x, int depth, kiln_dim extent) {
  kiln__llvm_emitter *e = x->t->e;
  const bool is_number = kiln_dim_is_number(extent);
  LLVMValueRef *counter = &x->t->s->counters[depth];
  LLVMValueRef last = kiln__llvm_emit_dim(e, extent), zero = kiln__llvm_emit_index(e, 0);
  if (x->pairs) counter[1] = zero;
  LLVMValueRef end = is_number ? kiln__llvm_emit_index(e, extent - extent % x->unroll)
                               : whole_steps(e, last, x->unroll);
  if (!is_number || extent >= x->unroll) {
    LLVMBasicBlockRef behind = NULL;
    if (!is_number) behind = begin_if(e, LL->BuildICmp(BUILD, LLVMIntSLT, zero, end, ""));
    loop l = loop_begin(e, zero);
    tile of = *x;
    of.counter = l.counter;
    for (of.step = 0; of.step < x->unroll; of.step++) {
      *counter = binary(e, LLVMAdd, l.counter, kiln__llvm_emit_index(e, of.step));
      emit_iteration(&of, of.step % x->chains);
    }
    loop_end(e, l, x->unroll, end);
    if (behind) end_if(e, behind);
  }
  if (is_number && extent % x->unroll == 0) return;
  LLVMBasicBlockRef behind = begin_if(e, LL->BuildICmp(BUILD, LLVMIntSLT, end, last, ""));
  loop l = loop_begin(e, end);
  tile of = *x;
  *counter = of.counter = l.counter;
  of.step = 0;
  emit_iteration(&of, 0);
  loop_end(e, l, 1, last);
  end_if(e, behind);
}

static void emit_loops(const tile *x, int number) {
  kiln__llvm_emitter *e = x->t->e;
  const int depth = x->inner + 1 + number;
  const kiln_dim extent = x->t->nest->body.data[x->c.first_open + number].offset;
  if (number == x->c.loops - 1 - x->pairs) {
    emit_inner_loop(x, depth, extent);
    return;
  }
  LLVMValueRef zero = kiln__llvm_emit_index(e, 0), last = kiln__llvm_emit_dim(e, extent);
  LLVMBasicBlockRef behind = NULL;
  if (!kiln_dim_is_number(extent))
    behind = begin_if(e, LL->BuildICmp(BUILD, LLVMIntSLT, zero, last, ""));
  loop l = loop_begin(e, zero);
  x->t->s->counters[depth] = l.counter;
  emit_loops(x, number + 1);
  loop_end(e, l, 1, last);
  if (behind) end_if(e, behind);
}

/* What the accumulators come to, in memory of its own: [row][vector]. */
static void end_contractions(const tile *x) {
  kiln__llvm_emitter *e = x->t->e;
  const int count = x->t->nest->body.count;
  for (int i = x->c.inner_open + 1; i < x->c.end; i++) {
    const kiln_loop_inst *inst = &x->t->nest->body.data[i];
    if (inst->op != KILN_LOOP_contract) continue;
    const int align = kiln_loop_size(inst->dtype);
    LLVMTypeRef type = kiln__llvm_emit_vector_type(e, inst->dtype);
    LLVMValueRef sums = kiln__llvm_emit_stack(e, inst->dtype, x->rows * x->vectors * e->width);
    for (int k = 0; k < x->rows * x->vectors; k++) {
      LLVMValueRef at = e->tile_places[k * count + i], sum = NULL;
      for (int c = 0; c < x->chains; c++) {
        LLVMValueRef part = offset_by(e, inst->dtype, at, kiln__llvm_emit_index(e, c * e->width));
        part = load_aligned(e, type, part, align);
        sum = sum ? binary(e, LLVMFAdd, sum, part) : part;
      }
      store_aligned(e, sum, offset_by(e, inst->dtype, sums, kiln__llvm_emit_index(e, k * e->width)),
                    align);
    }
    e->tile_places[i] = sums;
  }
}

/* -- Tiles -- */

/* One tile, at which all loops around it stand. */
static void emit_sums(const tile *x) {
  emit_before(x);
  kiln__llvm_emit_claim(x);
  begin_contractions(x);
  emit_loops(x, 0);
  end_contractions(x);
  x->t->e->values = x->t->e->tile_values;
  kiln__llvm_emit_behind(x);
}

/* The loops between that of the rows and the innermost one. */
static void emit_inside(const tile *x, int depth) {
  const kiln__llvm_emitter *e = x->t->e;
  if (depth == x->inner) {
    emit_sums(x);
    return;
  }
  loop l = loop_begin(e, x->t->s->first[depth]);
  x->t->s->counters[depth] = l.counter;
  emit_inside(x, depth + 1);
  loop_end(e, l, 1, x->t->s->last[depth]);
}

static void emit_rows(const tile *whole, int rows, LLVMValueRef first_row) {
  kiln__llvm_emitter *e = whole->t->e;
  LLVMValueRef *outer = e->values;
  const int count = whole->t->nest->body.count;
  tile x = *whole;
  x.rows = rows;
  x.first_row = first_row;
  if (rows < whole->rows && x.chains == 1) x.unroll = 1; /* they are a tile of many: less code */
  if (rows < whole->rows) x.turns = 1;
  x.next_part = kiln__llvm_find_next_part(&x);
  for (int k = 0; k < rows * x.vectors; k++) {
    for (int i = 0; i < count; i++) e->tile_values[k * count + i] = outer[i];
  }
  emit_row_values(&x);
  emit_inside(&x, x.row_loop + 1);
  e->values = outer;
}

/* Whether it is known how many rows are left over. */
static bool leaves_number(const tile *x) {
  const kiln_loop_inst *rows_loop = &x->t->nest->body.data[x->open];
  return kiln_dim_is_number(rows_loop->offset) &&
         (!kiln_loop_is_part(rows_loop) || kiln_dim_is_number(rows_loop->imm.step));
}

/* Whether that many rows are ever left over: boxes cut anywhere, where they cut. */
static bool is_left_over(const tile *x, int rows) {
  const kiln_loop_nest *nest = x->t->nest;
  const kiln_loop_inst *rows_loop = x->open < 0 ? NULL : &nest->body.data[x->open];
  const kiln_dim all = rows_loop ? rows_loop->offset : nest->extents[x->row_loop];
  if (!kiln_dim_is_number(all) || (!rows_loop && kiln_loop_cuts_tile(nest))) return true;
  int64_t left = all % x->rows;
  if (rows_loop && kiln_loop_is_part(rows_loop)) {
    if (!kiln_dim_is_number(rows_loop->imm.step)) return true;
    left |= rows_loop->imm.step % all % x->rows;
  }
  return left & rows;
}

/* Of a nest's loop of so many iterations as there are: what they leave of whole tiles; -1: tiles of
 * 8, 4, 2 and 1 take what is left. */
static int64_t rows_left(const tile *x) {
  const kiln_dim all = x->t->nest->extents[x->row_loop];
  return x->open < 0 && kiln_dim_is_number(all) ? all % x->rows : -1;
}

/* What is left at the end, and where boxes cut perhaps more or less: row by row. */
static void emit_end(const tile *x, LLVMValueRef from, LLVMValueRef left, int rows) {
  kiln__llvm_emitter *e = x->t->e;
  if (rows > 1) {
    LLVMValueRef these = kiln__llvm_emit_index(e, rows);
    LLVMValueRef there = LL->BuildICmp(BUILD, LLVMIntSGE, left, these, "");
    LLVMBasicBlockRef behind = begin_if(e, there);
    emit_rows(x, rows, from);
    end_if(e, behind);
    from = binary(e, LLVMAdd, from,
                  LL->BuildSelect(BUILD, there, these, kiln__llvm_emit_index(e, 0), ""));
  }
  if (rows != 1 && !kiln_loop_cuts_tile(x->t->nest)) return;
  LLVMBasicBlockRef behind = begin_if(e, LL->BuildICmp(BUILD, LLVMIntSLT, from, x->last, ""));
  loop l = loop_begin(e, from);
  emit_rows(x, 1, l.counter);
  loop_end(e, l, 1, x->last);
  end_if(e, behind);
}

static void emit_row_loop(const tile *x) {
  kiln__llvm_emitter *e = x->t->e;
  const int rows = x->rows;
  LLVMValueRef first = x->first, last = x->last;
  LLVMValueRef left = LL->BuildBinOp(BUILD, LLVMURem, binary(e, LLVMSub, last, first),
                                     kiln__llvm_emit_index(e, rows), "");
  LLVMValueRef end = binary(e, LLVMSub, last, left);
  LLVMBasicBlockRef behind = begin_if(e, LL->BuildICmp(BUILD, LLVMIntSLT, first, end, ""));
  loop l = loop_begin(e, first);
  emit_rows(x, rows, l.counter);
  loop_end(e, l, rows, end);
  end_if(e, behind);
  if (rows_left(x) >= 0 && rows > 1) {
    emit_end(x, end, left, (int)rows_left(x));
    return;
  }
  if (x->open >= 0 && rows > 1 && !leaves_number(x)) { /* little code for few */
    behind = begin_if(e, LL->BuildICmp(BUILD, LLVMIntSLT, end, last, ""));
    l = loop_begin(e, end);
    emit_rows(x, 1, l.counter);
    loop_end(e, l, 1, last);
    end_if(e, behind);
    return;
  }
  for (int some = KILN_SCHEDULE_MAX_ROWS / 2; some > 0; some /= 2) {
    if (some >= rows || !is_left_over(x, some)) continue;
    LLVMValueRef these = binary(e, LLVMAnd, left, kiln__llvm_emit_index(e, some));
    behind = begin_if(e, LL->BuildICmp(BUILD, LLVMIntNE, these, kiln__llvm_emit_index(e, 0), ""));
    emit_rows(x, some, end);
    end_if(e, behind);
    end = binary(e, LLVMAdd, end, these);
  }
}

static void emit_outer_loops(tile *x, int depth) {
  kiln__llvm_emitter *e = x->t->e;
  if (depth == x->column_depth) kiln__llvm_emit_columns(x);
  if (depth == x->row_loop) {
    x->first = x->t->s->first[depth];
    x->last = x->t->s->last[depth];
    emit_row_loop(x);
    return;
  }
  loop l = loop_begin(e, x->t->s->first[depth]);
  x->t->s->counters[depth] = l.counter;
  kiln__llvm_emit_level(e, x->t->s, depth + 1);
  emit_outer_loops(x, depth + 1);
  loop_end(e, l, 1, x->t->s->last[depth]);
}

/* Whether an operand has vectors of its own in each row. */
static bool reads_both(const tile *x) {
  bool both = false;
  for (int i = x->c.inner_open + 1; i < x->c.end; i++) {
    const int moves = x->t->e->tile_moves[i];
    both |= x->t->nest->body.data[i].op == KILN_LOOP_load && (moves & ROWS) && (moves & VECTORS);
  }
  return both;
}

static tile make_tile(const tree *t, int open, int rows, int64_t panel) {
  const kiln_loop_nest *nest = t->nest;
  const int width = t->e->width, column_open = open < 0 ? -1 : open + 1;
  tile x = {.t = t, .open = open, .rows = rows, .panel = (int)panel};
  x.vectors = (x.panel + width - 1) / width;
  x.begin = column_open + 1;
  x.end = open < 0 ? nest->body.count : t->scopes.end[column_open];
  x.row_loop = open < 0 ? nest->tile.row_loop : t->scopes.depth[open];
  x.inner = open < 0 ? nest->rank - 1 : x.row_loop + 1;
  (void)kiln__find_contraction(t->e->fn, nest, &t->scopes, column_open, &x.c); /* verified */
  x.pairs = open < 0 && nest->tile.pairs;
  x.unroll = kiln__llvm_unroll_of(t, x.c.inner_open - x.pairs);
  if (x.unroll == 0) x.unroll = 1;
  find_moves(&x);
  x.chains = kiln_schedule_chains(rows * x.vectors, t->e->target->registers, reads_both(&x));
  while (x.chains > x.unroll) x.chains /= 2;
  kiln__llvm_find_columns(&x);
  kiln__llvm_plan_behind(&x);
  x.next = kiln__llvm_find_next(&x);
  return x;
}

void kiln__llvm_emit_tile(kiln__llvm_emitter *e, nest_state *s) {
  const tree t = kiln__llvm_tree_of(e, s, false);
  tile x = make_tile(&t, -1, e->nest->tile.rows, e->nest->extents[e->nest->rank - 1]);
  s->rank = e->nest->rank;
  emit_outer_loops(&x, 0);
}

/* Vectors of the columns one at a time. */
static void emit_part(const tile *whole, LLVMValueRef columns) {
  kiln__llvm_emitter *e = whole->t->e;
  tile x = *whole;
  x.vectors = 1;
  loop l = loop_begin(e, kiln__llvm_emit_index(e, 0));
  x.first_column = l.counter;
  x.left = least(e, binary(e, LLVMSub, columns, l.counter), kiln__llvm_emit_index(e, e->width));
  emit_row_loop(&x);
  loop_end(e, l, e->width, columns);
}

void kiln__llvm_emit_body_tile(const tree *t, int open, int rows) {
  kiln__llvm_emitter *e = t->e;
  const kiln_loop_inst *column_loop = &t->nest->body.data[open + 1];
  tile x = make_tile(t, open, rows, column_loop->offset);
  x.first = kiln__llvm_emit_index(e, 0);
  x.last = kiln__llvm_emit_extent(t, open);
  if (!kiln_loop_is_part(column_loop)) {
    emit_row_loop(&x);
    return;
  }
  LLVMValueRef columns = kiln__llvm_emit_extent(t, open + 1);
  LLVMValueRef panel = kiln__llvm_emit_index(e, x.panel);
  LLVMBasicBlockRef behind = begin_if(e, LL->BuildICmp(BUILD, LLVMIntEQ, columns, panel, ""));
  emit_row_loop(&x);
  end_if(e, behind);
  behind = begin_if(e, LL->BuildICmp(BUILD, LLVMIntSLT, columns, panel, ""));
  emit_part(&x, columns);
  end_if(e, behind);
}
