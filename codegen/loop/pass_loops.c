/* pass_loops.c: the passes over loops: order and collapse; and the order of all passes.
 *
 * All iterations of a nest are independent, so loops may be exchanged and merged freely. */
#include "codegen/loop/loop.h"

static bool is_access(const kiln_loop_inst *inst) {
  return inst->op == KILN_LOOP_load || inst->op == KILN_LOOP_store;
}

/* -- order -- */

/* Loop a should stand outside of loop b: by the stores' strides, then by the loads'. */
static bool stands_outside(const kiln_loop_nest *nest, int a, int b) {
  for (int pass = 0; pass < 2; pass++) {
    for (int i = 0; i < nest->body.count; i++) {
      const kiln_loop_inst *inst = &nest->body.data[i];
      if (inst->op != (pass ? KILN_LOOP_load : KILN_LOOP_store)) continue;
      if (inst->strides[a] != inst->strides[b]) return inst->strides[a] > inst->strides[b];
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
    if (!is_access(inst)) continue;
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
      for (int d = i; d > 0 && stands_outside(nest, d, d - 1); d--) {
        exchange(nest, d, d - 1);
        *out_changed = true;
      }
    }
  }
  return NULL;
}

/* -- collapse -- */

static void remove_loop(kiln_loop_nest *nest, int loop) {
  for (int d = loop; d + 1 < nest->rank; d++) nest->extents[d] = nest->extents[d + 1];
  for (int i = 0; i < nest->body.count; i++) {
    kiln_loop_inst *inst = &nest->body.data[i];
    if (!is_access(inst)) continue;
    for (int d = loop; d + 1 < nest->rank; d++) inst->strides[d] = inst->strides[d + 1];
    inst->strides[nest->rank - 1] = 0;
  }
  nest->rank--;
}

/* Every access steps from the end of the inner loop to its next beginning as if it went on. */
static bool walks_as_one(const kiln_loop_fn *fn, const kiln_loop_nest *nest, int outer) {
  for (int i = 0; i < nest->body.count; i++) {
    const kiln_loop_inst *inst = &nest->body.data[i];
    if (!is_access(inst)) continue;
    const kiln_dim step =
        kiln_dim_product(fn->dims, inst->strides[outer + 1], nest->extents[outer + 1]);
    if (!kiln_dim_is_known(step) || inst->strides[outer] != step) return false;
  }
  return true;
}

kiln_status *kiln_loop_pass_collapse(kiln_loop_fn *fn, kiln_arena *scratch, bool *out_changed) {
  (void)scratch;
  *out_changed = false;
  for (int n = 0; n < fn->nests.count; n++) {
    kiln_loop_nest *nest = fn->nests.data[n];
    for (int d = nest->rank - 1; d >= 0; d--) {
      if (nest->extents[d] == 1) {
        remove_loop(nest, d);
        *out_changed = true;
      }
    }
    for (int d = nest->rank - 2; d >= 0; d--) {
      const kiln_dim both = kiln_dim_product(fn->dims, nest->extents[d], nest->extents[d + 1]);
      if (!kiln_dim_is_known(both) || !walks_as_one(fn, nest, d)) continue;
      nest->extents[d + 1] = both;
      remove_loop(nest, d);
      *out_changed = true;
    }
  }
  return NULL;
}

/* -- All -- */

kiln_status *kiln_loop_optimize(kiln_loop_fn *fn, kiln_arena *scratch) {
  static const kiln_loop_pass passes[] = {
      kiln_loop_pass_cse, kiln_loop_pass_order,    /* before collapse, which only sees neighbours */
      kiln_loop_pass_collapse, kiln_loop_pass_cse, /* accesses that have become equal */
  };
  for (size_t i = 0; i < sizeof passes / sizeof *passes; i++) {
    bool changed;
    KILN_TRY(passes[i](fn, scratch, &changed));
  }
  return NULL;
}
