/* pass_loops.c: the passes over loops: order, collapse and hoist; and the order of all passes.
 *
 * All iterations of a nest are independent, so its loops may be exchanged and merged freely. */
#include <string.h>

#include "codegen/loop/loop.h"

/* -- order -- */

static bool is_more(const kiln_dims *dims, kiln_dim a, kiln_dim b) {
  if (kiln_dim_is_number(a) && kiln_dim_is_number(b)) return a > b;
  return kiln_sum_is_natural(dims, kiln_sum_minus(kiln_sum_of(dims, a), kiln_sum_of(dims, b)));
}

/* Loop a should stand outside of loop b: by the stores' strides, then by the loads'. */
static bool stands_outside(const kiln_dims *dims, const kiln_loop_nest *nest, int a, int b) {
  for (int pass = 0; pass < 2; pass++) {
    for (int i = 0; i < nest->body.count; i++) {
      const kiln_loop_inst *inst = &nest->body.data[i];
      if (inst->op != (pass ? KILN_LOOP_load : KILN_LOOP_store)) continue;
      if (inst->strides[a] != inst->strides[b])
        return is_more(dims, inst->strides[a], inst->strides[b]);
    }
  }
  return false;
}

static void exchange(kiln_loop_nest *nest, int a, int b) {
  int64_t t = nest->extents[a];
  nest->extents[a] = nest->extents[b];
  nest->extents[b] = t;
  for (int i = 0; i < nest->body.count; i++) {
    kiln_loop_inst *inst = &nest->body.data[i];
    if (!kiln_loop_has_map(inst)) continue;
    t = inst->strides[a];
    inst->strides[a] = inst->strides[b];
    inst->strides[b] = t;
  }
}

kiln_status *kiln_loop_pass_order(kiln_loop_fn *fn, kiln_arena *scratch, bool *out_changed) {
  (void)scratch;
  *out_changed = false;
  for (int n = 0; n < fn->nests.count; n++) {
    kiln_loop_nest *nest = fn->nests.data[n];
    for (int i = 1; i < nest->rank; i++) {
      for (int d = i; d > 0 && stands_outside(fn->dims, nest, d, d - 1); d--) {
        exchange(nest, d, d - 1);
        *out_changed = true;
      }
    }
  }
  return NULL;
}

/* -- collapse -- */

/* Takes the strides of loop `loop` from the maps of [begin, end). */
static void remove_strides(kiln_loop_nest *nest, int begin, int end, int loop) {
  for (int i = begin; i < end; i++) {
    kiln_loop_inst *inst = &nest->body.data[i];
    if (!kiln_loop_has_map(inst)) continue;
    for (int d = loop; d + 1 < KILN_LOOP_MAX_RANK; d++) inst->strides[d] = inst->strides[d + 1];
    inst->strides[KILN_LOOP_MAX_RANK - 1] = 0;
  }
}

static void remove_loop(kiln_loop_nest *nest, int loop) {
  for (int d = loop; d + 1 < nest->rank; d++) nest->extents[d] = nest->extents[d + 1];
  remove_strides(nest, 0, nest->body.count, loop);
  nest->rank--;
}

/* Every map of [begin, end) steps from the end of the inner loop, of `extent` iterations, to its
 * next beginning as if it went on. */
static bool walks_as_one(const kiln_loop_fn *fn, const kiln_loop_nest *nest, int begin, int end,
                         int outer, kiln_dim extent) {
  for (int i = begin; i < end; i++) {
    const kiln_loop_inst *inst = &nest->body.data[i];
    if (!kiln_loop_has_map(inst)) continue;
    const kiln_dim step = kiln_dim_product(fn->dims, inst->strides[outer + 1], extent);
    if (!kiln_dim_is_known(step) || inst->strides[outer] != step) return false;
  }
  return true;
}

static bool collapse_nest(kiln_loop_fn *fn, kiln_loop_nest *nest) {
  const int count = nest->body.count;
  bool changed = false;
  for (int d = nest->rank - 1; d >= 0; d--) {
    if (nest->extents[d] != 1) continue;
    remove_loop(nest, d);
    changed = true;
  }
  for (int d = nest->rank - 2; d >= 0; d--) {
    const kiln_dim both = kiln_dim_product(fn->dims, nest->extents[d], nest->extents[d + 1]);
    if (!kiln_dim_is_known(both) || !walks_as_one(fn, nest, 0, count, d, nest->extents[d + 1])) {
      continue;
    }
    nest->extents[d + 1] = both;
    remove_loop(nest, d);
    changed = true;
  }
  return changed;
}

/* Whether all that is reduced in [begin, end) is so over the two innermost loops at least. */
static bool reduces_both(const kiln_loop_nest *nest, int begin, int end) {
  for (int i = begin; i < end; i++) {
    const kiln_loop_inst *inst = &nest->body.data[i];
    if (kiln_loop_ops[inst->op].rule == KILN_LOOP_RULE_OPEN) return false;
    if (kiln_loop_reduces(inst->op) && inst->index < 2) return false;
  }
  return true;
}

/* A loop of the body that holds nothing but one of its kind becomes one with it; one of `for` with
 * one iteration goes. */
static bool collapse_body(kiln_loop_fn *fn, kiln_loop_nest *nest, kiln_arena *scratch) {
  const int count = nest->body.count;
  const kiln_loop_scopes scopes = kiln_loop_scopes_of(nest, scratch);
  bool *keep = KILN_NEW_ARRAY(scratch, bool, count + 1), changed = false;
  for (int i = 0; i < count; i++) keep[i] = true;
  for (int i = count - 1; i >= 0; i--) {
    const kiln_loop_inst *outer = &nest->body.data[i];
    if (kiln_loop_ops[outer->op].rule != KILN_LOOP_RULE_OPEN) continue;
    const int end = scopes.end[i], depth = scopes.depth[i];
    if (outer->op == KILN_LOOP_for && outer->offset == 1) {
      remove_strides(nest, i, end, depth);
      keep[i] = keep[end] = false;
      changed = true;
      continue;
    }
    int at = i + 1;
    while (!keep[at]) at++;
    kiln_loop_inst *inner = &nest->body.data[at];
    int last = end - 1;
    while (!keep[last]) last--;
    if (inner->op != outer->op || scopes.end[at] != last) continue;
    const kiln_dim both = kiln_dim_product(fn->dims, outer->offset, inner->offset);
    if (!kiln_dim_is_known(both) || !walks_as_one(fn, nest, at, end, depth, inner->offset) ||
        !reduces_both(nest, at + 1, end)) {
      continue;
    }
    inner->offset = both;
    remove_strides(nest, at, end, depth);
    for (int k = at; k < end; k++) {
      if (kiln_loop_reduces(nest->body.data[k].op)) nest->body.data[k].index--;
    }
    keep[i] = keep[end] = false;
    changed = true;
  }
  if (changed) kiln_loop_keep(nest, keep, scratch);
  return changed;
}

kiln_status *kiln_loop_pass_collapse(kiln_loop_fn *fn, kiln_arena *scratch, bool *out_changed) {
  *out_changed = false;
  for (int n = 0; n < fn->nests.count; n++) {
    if (collapse_nest(fn, fn->nests.data[n])) *out_changed = true;
    if (collapse_body(fn, fn->nests.data[n], scratch)) *out_changed = true;
  }
  return NULL;
}

/* -- hoist -- */

/* The scope in which an instruction may stand: the innermost one of its operands' and of the loops
 * that it moves with. */
static int scope_needed(const kiln_loop_fn *fn, const kiln_loop_nest *nest,
                        const kiln_loop_scopes *scopes, const int *homes, int number) {
  const kiln_loop_inst *inst = &nest->body.data[number];
  int needed = -1, at = scopes->parent[number];
  const bool is_local = inst->index >= fn->input_count + fn->output_count;
  if (!kiln_loop_has_result(inst->op) || kiln_loop_reduces(inst->op)) return at;
  if (kiln_loop_carries(inst->op)) return at;
  if (inst->op == KILN_LOOP_load && is_local) return at; /* behind its store */
  for (int a = 0; a < kiln_loop_ops[inst->op].arity; a++) {
    if (homes[inst->args[a]] > needed) needed = homes[inst->args[a]];
  }
  for (; kiln_loop_has_map(inst) && at > needed; at = scopes->parent[at]) {
    if (inst->strides[scopes->depth[at]] != 0) needed = at;
  }
  return needed;
}

/* Puts an instruction at the end of what was made again of the body; gives the new end. */
static int place(kiln_loop_nest *nest, const kiln_loop_inst *from, int *number, int i, int made) {
  kiln_loop_inst inst = from[i];
  for (int a = 0; a < kiln_loop_ops[inst.op].arity; a++) inst.args[a] = number[inst.args[a]];
  number[i] = made;
  nest->body.data[made] = inst;
  return made + 1;
}

static bool hoist(const kiln_loop_fn *fn, kiln_loop_nest *nest, kiln_arena *scratch) {
  const int count = nest->body.count;
  const kiln_loop_scopes scopes = kiln_loop_scopes_of(nest, scratch);
  int *homes = KILN_NEW_ARRAY(scratch, int, count + 1),
      *number = KILN_NEW_ARRAY(scratch, int, count + 1);
  /* Before each OPEN, in a list: what is moved there. */
  int *first = KILN_NEW_ARRAY(scratch, int, count + 1),
      *last = KILN_NEW_ARRAY(scratch, int, count + 1);
  int *next = KILN_NEW_ARRAY(scratch, int, count + 1);
  bool *moved = KILN_NEW_ARRAY(scratch, bool, count + 1), changed = false;
  for (int i = 0; i < count; i++) first[i] = next[i] = -1;
  for (int i = 0; i < count; i++) {
    const int scope = scope_needed(fn, nest, &scopes, homes, i);
    homes[i] = kiln_loop_home(nest, &scopes, i);
    if (scope == scopes.parent[i]) continue;
    int open = scopes.parent[i];
    while (scopes.parent[open] != scope) open = scopes.parent[open];
    homes[i] = scope;
    moved[i] = changed = true;
    *(first[open] < 0 ? &first[open] : &next[last[open]]) = i;
    last[open] = i;
  }
  if (!changed) return false;
  kiln_loop_inst *from = KILN_NEW_ARRAY(scratch, kiln_loop_inst, count + 1);
  memcpy(from, nest->body.data, sizeof *from * (size_t)count);
  int made = 0;
  for (int i = 0; i < count; i++) {
    for (int k = first[i]; k >= 0; k = next[k]) made = place(nest, from, number, k, made);
    if (!moved[i]) made = place(nest, from, number, i, made);
  }
  return true;
}

kiln_status *kiln_loop_pass_hoist(kiln_loop_fn *fn, kiln_arena *scratch, bool *out_changed) {
  *out_changed = false;
  for (int n = 0; n < fn->nests.count; n++) {
    if (hoist(fn, fn->nests.data[n], scratch)) *out_changed = true;
  }
  return NULL;
}

/* -- All -- */

kiln_status *kiln_loop_optimize(kiln_loop_fn *fn, kiln_arena *scratch) {
  static const kiln_loop_pass passes[] = {
      kiln_loop_pass_cse,
      kiln_loop_pass_order, /* before collapse, which sees neighbours only */
      kiln_loop_pass_collapse,
      kiln_loop_pass_hoist,
      kiln_loop_pass_cse, /* accesses that have become equal */
      kiln_loop_pass_keep,
      kiln_loop_pass_cse, /* what was computed again */
  };
  for (size_t i = 0; i < sizeof passes / sizeof *passes; i++) {
    bool changed;
    KILN_TRY(passes[i](fn, scratch, &changed));
  }
  return NULL;
}
