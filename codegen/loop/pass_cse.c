/* pass_cse.c: value numbering, constant folding of casts, and removal of what no store needs.
 *
 * One walk in order: an instruction whose operands have been replaced is looked up among those seen
 * (hash of the plain struct, which is zeroed where unused); loads are pure because no nest reads
 * what is written. Equal stores are kept. Then a walk backwards marks what is live. */
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

static bool number_values(kiln_loop_nest *nest, kiln_arena *scratch, int *map) {
  int count = nest->body.count, mask = 15;
  bool changed = false;
  while (mask < 2 * count) mask = mask * 2 + 1;
  int *table = KILN_NEW_ARRAY(scratch, int, mask + 1);
  for (int i = 0; i < count; i++) {
    kiln_loop_inst *inst = &nest->body.data[i];
    for (int a = 0; a < kiln_loop_ops[inst->op].arity; a++) {
      if (map[inst->args[a]] != inst->args[a]) changed = true;
      inst->args[a] = map[inst->args[a]];
    }
    if (fold_cast(nest, inst)) changed = true;
    map[i] = i;
    if (inst->op == KILN_LOOP_store) continue;
    size_t slot = (size_t)hash_inst(inst) & (size_t)mask;
    for (; table[slot]; slot = (slot + 1) & (size_t)mask) {
      if (!same_inst(&nest->body.data[table[slot] - 1], inst)) continue;
      map[i] = table[slot] - 1;
      break;
    }
    if (!table[slot]) table[slot] = i + 1;
  }
  return changed;
}

static bool remove_dead(kiln_loop_nest *nest, kiln_arena *scratch) {
  int count = nest->body.count, kept = 0;
  bool *live = KILN_NEW_ARRAY(scratch, bool, count + 1);
  int *number = KILN_NEW_ARRAY(scratch, int, count + 1);
  for (int i = count - 1; i >= 0; i--) {
    const kiln_loop_inst *inst = &nest->body.data[i];
    if (inst->op == KILN_LOOP_store) live[i] = true;
    for (int a = 0; live[i] && a < kiln_loop_ops[inst->op].arity; a++) live[inst->args[a]] = true;
  }
  for (int i = 0; i < count; i++) {
    if (!live[i]) continue;
    kiln_loop_inst inst = nest->body.data[i];
    for (int a = 0; a < kiln_loop_ops[inst.op].arity; a++) inst.args[a] = number[inst.args[a]];
    number[i] = kept;
    nest->body.data[kept++] = inst;
  }
  nest->body.count = kept;
  return kept != count;
}

kiln_status *kiln_loop_pass_cse(kiln_loop_fn *fn, kiln_arena *scratch, bool *out_changed) {
  *out_changed = false;
  for (int n = 0; n < fn->nests.count; n++) {
    kiln_loop_nest *nest = fn->nests.data[n];
    int *map = KILN_NEW_ARRAY(scratch, int, nest->body.count + 1);
    if (number_values(nest, scratch, map)) *out_changed = true;
    if (remove_dead(nest, scratch)) *out_changed = true;
  }
  return NULL;
}
