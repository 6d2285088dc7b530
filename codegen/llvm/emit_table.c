/* emit_table.c: functions that are the same in all rows of a nest without loops in its body. Of
 * y[p][c] = x[p][c] * sigmoid(g[c]) the sigmoids of a row are computed once, into memory on the
 * stack, from which all rows take them. */
#include "codegen/llvm/emit_state.h"

enum {
  LEAST_ROWS = 4,         /* that share a table */
  MOST_ELEMENTS = 1 << 12 /* of all tables of a nest */
};

/* Whether it is the same in all iterations of the loops from `depth` to the last but one, and not
 * along the last; `same` has it of the instructions before. */
static bool is_same(const kiln__llvm_emitter *e, const nest_state *s, int i, int depth,
                    const int *same) {
  const kiln_loop_inst *inst = &e->nest->body.data[i];
  const bool is_load = inst->op == KILN_LOOP_load;
  if (s->levels[i] != s->rank || kiln_loop_class(inst->dtype) != KILN_LOOP_CLASS_F) return false;
  if (!is_load && (kiln_loop_has_map(inst) || inst->op == KILN_LOOP_check)) return false;
  for (int d = depth; is_load && d < s->rank - 1; d++)
    if (inst->strides[d] != 0) return false;
  if (is_load) return inst->index < e->fn->input_count && inst->strides[s->rank - 1] == 1;
  for (int a = 0; a < kiln_loop_ops[inst->op].arity; a++)
    if (!same[inst->args[a]] && s->levels[inst->args[a]] > depth) return false;
  return true;
}

/* Fills s->same with 1, or 2 of functions and what is made of them; gives whether there are any. */
static bool find_same(const kiln__llvm_emitter *e, nest_state *s, int depth) {
  bool any = false;
  for (int i = 0; i < s->count; i++) {
    const kiln_loop_inst *inst = &e->nest->body.data[i];
    s->same[i] = is_same(e, s, i, depth, s->same);
    bool function = kiln_loop_is_math(inst->op);
    for (int a = 0; a < kiln_loop_ops[inst->op].arity; a++) function |= s->same[inst->args[a]] == 2;
    if (s->same[i] && function) s->same[i] = 2, any = true;
  }
  return any;
}

static double rows_from(const nest_state *s, int depth) {
  double rows = 1;
  for (int d = depth; d < s->rank - 1; d++) rows *= (double)kiln_dim_or(s->extents[d], LEAST_ROWS);
  return rows;
}

void kiln__llvm_find_table(kiln__llvm_emitter *e, nest_state *s) {
  const int inner = s->rank - 1;
  const kiln_dim extent = s->extents[inner];
  int64_t elements = 0;
  s->table_depth = -1;
  for (int i = 0; i < s->count; i++) e->tables[i] = NULL;
  if (e->nest->run.partial || !kiln_dim_is_number(extent) || extent % e->width != 0 ||
      kiln__llvm_is_cut(e->nest, inner))
    return;
  for (int depth = 0; s->table_depth < 0 && depth < inner; depth++)
    if (rows_from(s, depth) >= (double)LEAST_ROWS && find_same(e, s, depth)) s->table_depth = depth;
  for (int i = 0; s->table_depth >= 0 && i < s->count; i++) {
    const kiln_loop_inst *inst = &e->nest->body.data[i];
    for (int a = 0; a < kiln_loop_ops[inst->op].arity && !s->same[i]; a++) {
      const int from = inst->args[a];
      if (s->same[from] != 2 || e->tables[from]) continue;
      elements += extent;
      if (elements > MOST_ELEMENTS) return; /* the others are computed in each row */
      e->tables[from] = kiln__llvm_emit_stack(e, e->nest->body.data[from].dtype, extent);
    }
  }
}

LLVMValueRef kiln__llvm_load_same(kiln__llvm_emitter *e, const nest_state *s, int i) {
  const kiln_dtype dtype = e->nest->body.data[i].dtype;
  LLVMValueRef at = offset_by(e, dtype, e->tables[i], s->counters[s->rank - 1]);
  return load_aligned(e, kiln__llvm_emit_vector_type(e, dtype), at, kiln_loop_size(dtype));
}

void kiln__llvm_emit_table(kiln__llvm_emitter *e, nest_state *s) {
  const int inner = s->rank - 1;
  loop l = loop_begin(e, kiln__llvm_emit_index(e, 0));
  s->counters[inner] = l.counter;
  for (int d = s->table_depth; d < inner; d++) s->counters[d] = s->first[d]; /* any */
  for (int i = 0; i < s->count; i++) {
    const kiln_loop_inst *inst = &e->nest->body.data[i];
    if (!s->same[i]) continue;
    const int align = kiln_loop_size(inst->dtype);
    e->values[i] = inst->op == KILN_LOOP_load
                       ? load_aligned(e, kiln__llvm_emit_vector_type(e, inst->dtype),
                                      address_of(e, s, inst, s->rank), align)
                       : kiln__llvm_emit_value(e, inst);
    if (e->tables[i])
      store_aligned(e, e->values[i], offset_by(e, inst->dtype, e->tables[i], l.counter), align);
  }
  loop_end(e, l, e->width, kiln__llvm_emit_dim(e, s->extents[inner]));
}
