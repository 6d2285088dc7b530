/* pass_cse.c: value numbering, constant folding of casts, and removal of what no store needs.
 *
 * One walk in order: an instruction whose operands have been replaced is looked up among those that
 * it sees (hash of the plain struct, which is zeroed where unused); loads are pure because no nest
 * reads what is written, and a local buffer is written before all its loads. Equal stores are kept.
 * Then a walk backwards marks what is live. */
#include <string.h>

#include "codegen/loop/loop.h"

static bool same_inst(const kiln_loop_inst *a, const kiln_loop_inst *b) {
  return a->op == b->op && a->dtype == b->dtype && a->index == b->index && a->offset == b->offset &&
         memcmp(a->args, b->args, sizeof a->args) == 0 &&
         memcmp(a->strides, b->strides, sizeof a->strides) == 0 && a->imm.i == b->imm.i;
}

static uint64_t hash_inst(const kiln_loop_inst *inst) {
  uint64_t h = kiln_hash_mix((uint64_t)inst->op, (uint64_t)inst->dtype);
  for (int i = 0; i < 3; i++) h = kiln_hash_mix(h, (uint64_t)inst->args[i] + 1);
  h = kiln_hash_mix(h, (uint64_t)inst->index + 1);
  h = kiln_hash_mix(h, (uint64_t)inst->offset);
  for (int d = 0; d < KILN_LOOP_MAX_RANK; d++) h = kiln_hash_mix(h, (uint64_t)inst->strides[d]);
  return kiln_hash_mix(h, (uint64_t)inst->imm.i);
}

/* A cast of a constant, where the result is exact by the rules of both types. */
static bool fold_cast(const kiln_loop_nest *nest, kiln_loop_inst *inst) {
  if (inst->op != KILN_LOOP_cast) return false;
  const kiln_loop_inst *from = &nest->body.data[inst->args[0]];
  if (from->op != KILN_LOOP_const) return false;
  int to = kiln_loop_class(inst->dtype);
  bool was_float = kiln_loop_class(from->dtype) == KILN_LOOP_CLASS_F;
  kiln_loop_inst folded = {
      .op = KILN_LOOP_const, .dtype = inst->dtype, .args = {-1, -1, -1}, .index = -1};
  if (to == KILN_LOOP_CLASS_F) {
    double value = was_float ? from->imm.f : (double)from->imm.i;
    if (inst->dtype == KILN_DTYPE_F32)
      value = was_float ? (double)(float)from->imm.f : (double)(float)from->imm.i;
    folded.imm.f = value;
  } else if (inst->dtype == KILN_DTYPE_BOOL) {
    folded.imm.i = was_float ? from->imm.f != 0 : from->imm.i != 0;
  } else if (inst->dtype == KILN_DTYPE_I64 && !was_float) {
    folded.imm.i = from->imm.i;
  } else {
    return false;
  }
  *inst = folded;
  return true;
}

/* Values that are seen, by their hash: chains whose newest come first, so that a scope's end takes
 * off what it has put there. */
typedef struct seen_value {
  int number;
  size_t slot;
  struct seen_value *next;
} seen_value;
typedef struct seen_table {
  seen_value **slots;
  size_t mask;
  KILN_VEC(seen_value *) order;
} seen_table;

/* The number of an equal value of the same scope or one around it; else i, which is put there. */
static int number_of(seen_table *seen, const kiln_loop_nest *nest, const kiln_loop_scopes *scopes,
                     kiln_arena *scratch, int i) {
  const kiln_loop_inst *inst = &nest->body.data[i];
  const size_t slot = (size_t)hash_inst(inst) & seen->mask;
  for (const seen_value *v = seen->slots[slot]; v; v = v->next) {
    const bool loops = kiln_loop_reduces(inst->op) || kiln_loop_carries(inst->op);
    const bool scope = !loops || scopes->parent[v->number] == scopes->parent[i];
    if (scope && same_inst(&nest->body.data[v->number], inst)) return v->number;
  }
  seen_value *v = KILN_NEW(scratch, seen_value);
  *v = (seen_value){i, slot, seen->slots[slot]};
  seen->slots[slot] = v;
  kiln_vec_push(scratch, &seen->order, v);
  return i;
}

static void forget_scope(seen_table *seen, int open) {
  while (seen->order.count > 0 && kiln_vec_last(&seen->order)->number > open) {
    const seen_value *v = kiln_vec_last(&seen->order);
    seen->slots[v->slot] = v->next;
    seen->order.count--;
  }
}

static bool number_values(kiln_loop_nest *nest, kiln_arena *scratch, int *map) {
  const int count = nest->body.count;
  const kiln_loop_scopes scopes = kiln_loop_scopes_of(nest, scratch);
  bool changed = false;
  seen_table seen = {.mask = 15};
  while (seen.mask < 2 * (size_t)count) seen.mask = seen.mask * 2 + 1;
  seen.slots = KILN_NEW_ARRAY(scratch, seen_value *, (int)seen.mask + 1);
  for (int i = 0; i < count; i++) {
    kiln_loop_inst *inst = &nest->body.data[i];
    for (int a = 0; a < kiln_loop_ops[inst->op].arity; a++) {
      if (map[inst->args[a]] != inst->args[a]) changed = true;
      inst->args[a] = map[inst->args[a]];
    }
    if (fold_cast(nest, inst)) changed = true;
    if (kiln_loop_ops[inst->op].rule == KILN_LOOP_RULE_END) {
      forget_scope(&seen, scopes.parent[i]);
    }
    map[i] = kiln_loop_has_result(inst->op) ? number_of(&seen, nest, &scopes, scratch, i) : i;
  }
  return changed;
}

/* What is stored to a local buffer is needed where a load of it is; a check for its fault, once.
 * `map`: what stands for each instruction. */
static bool remove_dead(const kiln_loop_fn *fn, kiln_loop_nest *nest, const int *map,
                        kiln_arena *scratch) {
  const int count = nest->body.count, first_local = fn->input_count + fn->output_count;
  bool *loaded = KILN_NEW_ARRAY(scratch, bool, fn->buffers.count + 1);
  const kiln_loop_scopes scopes = kiln_loop_scopes_of(nest, scratch);
  bool *live = KILN_NEW_ARRAY(scratch, bool, count + 1);
  for (int i = count - 1; i >= 0; i--) {
    const kiln_loop_inst *inst = &nest->body.data[i];
    if (inst->op == KILN_LOOP_store) live[i] = inst->index < first_local || loaded[inst->index];
    if (inst->op == KILN_LOOP_check) live[i] |= map[i] == i;
    if (!live[i]) continue;
    if (inst->op == KILN_LOOP_load) loaded[inst->index] = true;
    for (int a = 0; a < kiln_loop_ops[inst->op].arity; a++) live[inst->args[a]] = true;
    if (scopes.parent[i] >= 0) live[scopes.parent[i]] = live[scopes.end[scopes.parent[i]]] = true;
  }
  return kiln_loop_keep(nest, live, scratch);
}

kiln_status *kiln_loop_pass_cse(kiln_loop_fn *fn, kiln_arena *scratch, bool *out_changed) {
  *out_changed = false;
  for (int n = 0; n < fn->nests.count; n++) {
    kiln_loop_nest *nest = fn->nests.data[n];
    int *map = KILN_NEW_ARRAY(scratch, int, nest->body.count + 1);
    if (number_values(nest, scratch, map)) *out_changed = true;
    if (remove_dead(fn, nest, map, scratch)) *out_changed = true;
  }
  return NULL;
}
