/* merge_guards.c: pass `merge_guards`: groups whose inputs follow from one region's inputs share
 * one guard.
 *
 * Regions of a block are taken in order; each next one joins the run of those before it when
 *  - between it and them stands no effect, no write and no random number, so that the first guard
 *    may be asked as late as the last, and a fallback may start all regions anew;
 *  - every value that its guard checks is checked by the run already, or was not made by the run,
 *    so that the merged guard can check it too, or is made from what the run knows by operators
 *    whose shape functions prove the very type.
 * What stands between and leads from the run to the region goes into it, and into the fallback. A
 * finished run is put into the block once (merge_build.c). A proof may need a value that no guard
 * has looked at, a weight: then the merged guard checks it too, for the type that the profile
 * claims.
 *
 * Claims of the profile must prove nothing, so they are set aside while the pass runs: a value's
 * type is then what is known for a fact where the region's guard holds. */
#include "guards/merge.h"

#include <stdlib.h>

enum { MAX_CHECKS = 128 };

/* -- Claims -- */

typedef struct merger {
  kiln_pass *pass;
  kiln_map claims; /* value -> type; also of values made since */
  KILN_VEC(kiln_ir_value *) claimed;
} merger;

static bool type_is_fact(const kiln_node *n) {
  return kiln_node_is(n, KILN_OP_prim_Constant) || kiln_node_is(n, KILN_OP_prim_TypeCheck) ||
         kiln_node_is(n, KILN_OP_prim_TensorExprGroup) || kiln_guards_is_hit(n->block);
}

static void set_aside_node(merger *g, kiln_node *n) {
  if (n != n->block->param && type_is_fact(n)) return;
  for (int i = 0; i < n->output_count; i++) {
    kiln_ir_value *v = n->outputs[i];
    if (!kiln_type_is_tensor(v->type) || !v->type->detail) continue;
    kiln_map_set_ptr(&g->claims, v, (void *)(uintptr_t)v->type);
    kiln_vec_push(g->pass->scratch, &g->claimed, v);
    v->type = kiln_type_unshaped(g->pass->graph->types, v->type);
  }
}

static void set_aside(merger *g, kiln_block *block) {
  set_aside_node(g, block->param);
  for (kiln_node *n = block->first; n; n = n->next) {
    set_aside_node(g, n);
    for (int b = 0; b < n->block_count; b++) set_aside(g, n->blocks[b]);
  }
}

/* Where a guard held there are only facts. */
static void put_back(merger *g, kiln_block *block) {
  if (kiln_guards_is_hit(block)) return;
  for (kiln_node *n = block->param; n; n = n == block->param ? block->first : n->next) {
    for (int i = 0; i < n->output_count; i++) {
      const kiln_type *claim = kiln_map_find_ptr(&g->claims, n->outputs[i]);
      if (claim) n->outputs[i]->type = claim;
    }
    for (int b = 0; b < n->block_count; b++) put_back(g, n->blocks[b]);
  }
}

/* -- Regions -- */

static bool is_miss_block(const kiln_block *miss) {
  const kiln_node *fallback = miss->first;
  if (!fallback || fallback->next || !kiln_node_is(fallback, KILN_OP_prim_FallbackGraph)) {
    return false;
  }
  if (!kiln_node_graph(fallback, "Subgraph")) return false;
  for (int i = 0; i < kiln_block_output_count(miss); i++) {
    if (kiln_block_output(miss, i)->node != fallback) return false;
  }
  return true;
}

static bool used_outside(const kiln_ir_value *v, const kiln_block *block) {
  for (const kiln_use *use = v->uses; use; use = use->next) {
    if (!kiln_node_in_block(use->user, block)) return true;
  }
  return false;
}

/* The region that a TypeCheck guards, if it has the form that this pass makes and understands. */
static bool find_region(kiln_node *check, kiln_guarded *out) {
  const kiln_attr *types = kiln_node_attr(check, "types");
  kiln_node *branch = check->next;
  if (!types || types->kind != KILN_ATTR_TYPES || types->u.types.count != check->input_count ||
      check->output_count != check->input_count + 1) {
    return false;
  }
  const kiln_ir_value *ok = kiln_node_output(check, check->output_count - 1);
  if (!branch || !kiln_node_is(branch, KILN_OP_prim_If) || ok->use_count != 1 ||
      ok->uses->user != branch || !is_miss_block(branch->blocks[1])) {
    return false;
  }
  for (const kiln_node *n = branch->blocks[0]->first; n; n = n->next) {
    if (n->block_count) return false;
  }
  for (int i = 0; i < check->input_count; i++) {
    if (used_outside(kiln_node_output(check, i), branch->blocks[0])) return false;
  }
  *out = (kiln_guarded){check, branch, branch->blocks[1]->first};
  return true;
}

/* The types that a check asks for, by its inputs. */
static const kiln_type *asked_type(const kiln_node *check, int i) {
  return kiln_node_attr(check, "types")->u.types.data[i];
}

/* -- Several checks of one value -- */

/* Adds a check to the list; one that follows from another, or the other from it, is the same. */
static void add_check(kiln_arena *scratch, kiln_guard_checks *list, kiln_ir_value *v,
                      const kiln_type *type) {
  for (int i = 0; i < list->values.count; i++) {
    if (list->values.data[i] != v) continue;
    if (kiln_type_is_subtype(list->types.data[i], type)) return;
    if (!kiln_type_is_subtype(type, list->types.data[i])) continue; /* never both */
    list->types.data[i] = type;
    return;
  }
  kiln_vec_push(scratch, &list->values, v);
  kiln_vec_push(scratch, &list->types, type);
}

static kiln_guard_checks list_checks(kiln_arena *scratch, const kiln_node *check) {
  kiln_guard_checks list = {0};
  for (int i = 0; i < check->input_count; i++) {
    add_check(scratch, &list, kiln_node_input(check, i), asked_type(check, i));
  }
  return list;
}

static void merge_duplicates(merger *g, kiln_guarded *r) {
  kiln_guard_checks list = list_checks(g->pass->scratch, r->check);
  if (list.values.count == r->check->input_count) return;
  kiln_map refined;
  kiln_map_init(&refined, g->pass->scratch);
  kiln_node *check = kiln__guard_check_create(g->pass->graph, &list, &refined);
  check->range = r->check->range;
  kiln_node_insert_before(check, r->check);
  for (int i = 0; i < r->check->input_count; i++) {
    kiln_ir_value_replace_uses(kiln_node_output(r->check, i),
                               kiln_map_find_ptr(&refined, kiln_node_input(r->check, i)));
  }
  kiln_ir_value_replace_uses(kiln_node_output(r->check, r->check->output_count - 1),
                             kiln_node_output(check, check->output_count - 1));
  kiln_node_destroy(r->check);
  r->check = check;
  g->pass->changed = true;
}

/* -- What stands between -- */

/* Dropout that is told not to train is no random number. */
static bool is_random(const kiln_node *n) {
  if (kiln_node_is(n, KILN_OP_dropout)) {
    const kiln_ivalue *train = kiln_ir_value_constant(kiln_node_input(n, 2));
    return !train || train->tag != KILN_TAG_BOOL || train->u.b;
  }
  return kiln_node_is_nondeterministic(n);
}

static bool is_effect(kiln_pass *pass, const kiln_node *n) {
  return !n->op || kiln_node_has_side_effects(n) || is_random(n) ||
         kiln_alias_node_writes(kiln_pass_alias(pass), n);
}

static bool reads_any(const kiln_node *n, const kiln_map *values) {
  for (int i = 0; i < n->input_count; i++) {
    if (kiln_map_find_ptr(values, kiln_node_input(n, i))) return true;
  }
  for (int b = 0; b < n->block_count; b++) {
    if (reads_any(n->blocks[b]->ret, values)) return true;
    for (const kiln_node *m = n->blocks[b]->first; m; m = m->next) {
      if (reads_any(m, values)) return true;
    }
  }
  return false;
}

static void note_values(kiln_map *set, kiln_ir_value *const *values, int count) {
  for (int i = 0; i < count; i++) kiln_map_set_ptr(set, values[i], values[i]);
}

/* -- Runs -- */

/* A run that is being looked for. What is known of values is on them while it lasts. */
typedef struct runner {
  kiln_guard_run run;
  kiln_map made;                     /* values that its regions make, or that are made from them */
  kiln_map between;                  /* nodes in `behind` that no region needs so far */
  kiln_map inner;                    /* nodes that go into the region */
  kiln_map known;                    /* values that `know` was told of */
  KILN_VEC(kiln_ir_value *) touched; /* values that got a type for the time of the run */
} runner;

/* What stands between the run and the next region, and depends on the run. */
static void add_between(runner *r, const kiln_guarded *next) {
  kiln_arena *scratch = r->run.pass->scratch;
  kiln_node *n = kiln_vec_last(&r->run.parts).region.branch->next;
  for (; n != next->check; n = n->next) {
    if (!reads_any(n, &r->made)) continue;
    note_values(&r->made, n->outputs, n->output_count);
    kiln_vec_push(scratch, &r->run.behind, n);
    kiln_map_set_ptr(&r->between, n, n);
  }
}

/* Takes from `between` what the node, or a node in it, reads. */
static void take_inputs(runner *r, const kiln_node *n, kiln_node_vec *inner) {
  for (int i = 0; i < n->input_count; i++) {
    kiln_node *maker = kiln_node_input(n, i)->node;
    if (!kiln_map_remove_ptr(&r->between, maker)) continue;
    kiln_vec_push(r->run.pass->scratch, inner, maker);
  }
  for (int b = 0; b < n->block_count; b++) {
    take_inputs(r, n->blocks[b]->ret, inner);
    for (const kiln_node *m = n->blocks[b]->first; m; m = m->next) take_inputs(r, m, inner);
  }
}

static int compare_places(const void *a, const void *b) {
  const kiln_node *const *x = (const kiln_node *const *)a, *const *y = (const kiln_node *const *)b;
  return kiln_node_is_before(*x, *y) ? -1 : kiln_node_is_before(*y, *x);
}

/* What the next region needs of what stands between, in order. */
static kiln_node_vec take_inner(runner *r, const kiln_guarded *next) {
  kiln_node_vec inner = {0};
  take_inputs(r, next->check, &inner);
  take_inputs(r, next->branch, &inner);
  for (int i = 0; i < inner.count; i++) take_inputs(r, inner.data[i], &inner);
  if (inner.count) qsort(inner.data, (size_t)inner.count, sizeof *inner.data, compare_places);
  return inner;
}

/* -- Proof -- */

static void know(runner *r, kiln_ir_value *v, const kiln_type *type) {
  if (v->type->detail) return; /* a constant: it says more */
  kiln_vec_push(r->run.pass->scratch, &r->touched, v);
  kiln_map_set_ptr(&r->known, v, v);
  v->type = type;
}

static void unshape(runner *r, kiln_ir_value *v) {
  v->type = kiln_type_unshaped(r->run.pass->graph->types, v->type);
}

static void unknow(runner *r, int keep) {
  while (r->touched.count > keep) unshape(r, kiln_vec_pop(&r->touched));
}

/* What a region's guard makes true, and what the region gives. */
static void know_region(runner *r, const kiln_guarded *region) {
  const kiln_guard_run *run = &r->run;
  for (int i = 0; i < run->checks.values.count; i++) {
    kiln_ir_value *v = run->checks.values.data[i];
    know(r, v, run->checks.types.data[i]);
    if (kiln_map_find_ptr(&r->known, v)) v->type = run->checks.types.data[i]; /* it may say more */
  }
  kiln_block *hit = kiln__guarded_hit(region);
  for (int i = 0; i < region->branch->output_count; i++) {
    kiln_ir_value *out = kiln_node_output(region->branch, i);
    if (kiln_type_is_tensor(out->type)) know(r, out, kiln_block_output(hit, i)->type);
  }
}

static bool is_proven(const kiln_node *n) {
  for (int i = 0; i < n->output_count; i++) {
    const kiln_type *type = n->outputs[i]->type;
    if (kiln_type_is_tensor(type) && !kiln_type_is_complete_tensor(type)) return false;
  }
  return true;
}

/* Lets the merged guard check what the node reads from outside and nothing is known of. */
static bool check_operands(runner *r, const kiln_node *n) {
  bool any = false;
  for (int i = 0; i < n->input_count; i++) {
    kiln_ir_value *v = kiln_node_input(n, i);
    if (kiln_node_is(v->node, KILN_OP_prim_ListConstruct) && !kiln_map_find_ptr(&r->made, v)) {
      any |= check_operands(r, v->node);
      continue;
    }
    const kiln_type *claim = kiln_map_find_ptr(r->run.claims, v);
    if (!kiln_type_is_tensor(v->type) || v->type->detail || kiln_map_find_ptr(&r->made, v) ||
        !claim || !kiln_type_is_complete_tensor(claim)) {
      continue;
    }
    know(r, v, claim);
    kiln_vec_push(r->run.pass->scratch, &r->run.checks.values, v);
    kiln_vec_push(r->run.pass->scratch, &r->run.checks.types, claim);
    any = true;
  }
  return any;
}

/* The node's results get the types that its shape function finds. */
static void prove_node(runner *r, kiln_node *n) {
  for (int i = 0; i < n->output_count; i++) {
    kiln_vec_push(r->run.pass->scratch, &r->touched, kiln_node_output(n, i));
  }
  if (kiln_shape_infer(n->graph, n) || is_proven(n)) return;
  int touched = r->touched.count, checks = r->run.checks.values.count;
  if (!check_operands(r, n) || kiln_shape_infer(n->graph, n)) return;
  unknow(r, touched);
  r->run.checks.values.count = r->run.checks.types.count = checks;
  for (int i = 0; i < n->output_count; i++) unshape(r, n->outputs[i]);
}

/* Every value that the next guard checks. */
static bool prove_checks(runner *r, const kiln_node *check) {
  kiln_guard_run *run = &r->run;
  for (int i = 0; i < check->input_count; i++) {
    kiln_ir_value *v = kiln_node_input(check, i);
    const kiln_type *asked = asked_type(check, i);
    if (kiln_type_is_subtype(v->type, asked)) continue;
    if (kiln_map_find_ptr(&r->made, v)) return false;
    if (v->type->detail && !kiln_type_is_subtype(asked, v->type)) return false; /* never both */
    add_check(run->pass->scratch, &run->checks, v, asked);
  }
  return run->checks.values.count <= MAX_CHECKS;
}

static bool can_be_inner(const kiln_node *n) {
  return n->block_count == 0 && !kiln_node_is(n, KILN_OP_prim_TensorExprGroup) &&
         !kiln_node_graph(n, "Subgraph");
}

static bool prove_region(runner *r, const kiln_guarded *next, const kiln_node_vec *inner) {
  for (int i = 0; i < inner->count; i++) {
    if (!can_be_inner(inner->data[i])) return false;
  }
  for (int i = 0; i < inner->count; i++) prove_node(r, inner->data[i]);
  return prove_checks(r, next->check);
}

static void add_region(runner *r, const kiln_guarded *region) {
  kiln_guard_part part = {.region = *region};
  kiln_vec_push(r->run.pass->scratch, &r->run.parts, part);
  note_values(&r->made, region->branch->outputs, region->branch->output_count);
  know_region(r, region);
}

static void begin_run(runner *r, kiln_pass *pass, kiln_map *claims, const kiln_guarded *first) {
  *r = (runner){.run = {.pass = pass, .claims = claims}};
  kiln_map_init(&r->made, pass->scratch);
  kiln_map_init(&r->between, pass->scratch);
  kiln_map_init(&r->inner, pass->scratch);
  kiln_map_init(&r->known, pass->scratch);
  r->run.checks = list_checks(pass->scratch, first->check);
  add_region(r, first);
}

/* Whether the next region belongs to the run; if not, the run is at its end. */
static bool extend_run(runner *r, const kiln_guarded *next) {
  kiln_arena *scratch = r->run.pass->scratch;
  int behind = r->run.behind.count, touched = r->touched.count;
  kiln_guard_checks checks = r->run.checks, *list = &r->run.checks;
  size_t count = (size_t)checks.values.count;
  checks.types.data = kiln_arena_copy(scratch, list->types.data, sizeof *list->types.data * count);
  add_between(r, next);
  kiln_node_vec inner = take_inner(r, next);
  if (!prove_region(r, next, &inner)) {
    unknow(r, touched);
    r->run.behind.count = behind;
    r->run.checks = checks;
    return false;
  }
  for (int i = 0; i < inner.count; i++) {
    kiln_guard_part part = {.inner = inner.data[i]};
    kiln_vec_push(scratch, &r->run.parts, part);
    kiln_map_set_ptr(&r->inner, inner.data[i], inner.data[i]);
  }
  add_region(r, next);
  return true;
}

/* What was inferred for the nodes that go into the region stays on them, for there it is a fact;
 * all else is forgotten. */
static void end_run(runner *r) {
  kiln_guard_run *run = &r->run;
  if (!run->pass) return;
  for (int i = 0; i < r->touched.count; i++) {
    const kiln_node *maker = r->touched.data[i]->node;
    if (!kiln_map_find_ptr(&r->inner, maker)) unshape(r, r->touched.data[i]);
  }
  int kept = 0;
  for (int i = 0; i < run->behind.count; i++) {
    kiln_node *n = run->behind.data[i];
    if (!kiln_map_find_ptr(&r->inner, n)) run->behind.data[kept++] = n;
  }
  run->behind.count = kept;
  if (run->parts.count > 1) {
    kiln__guards_join(run);
    run->pass->changed = true;
  }
  run->pass = NULL;
}

/* -- The pass -- */

static void merge_block(merger *g, kiln_block *block) {
  kiln_pass *pass = g->pass;
  runner run = {0};
  bool effect = false;
  for (kiln_node *n = block->first; n; n = n->next) {
    kiln_guarded next;
    if (!kiln_node_is(n, KILN_OP_prim_TypeCheck) || !find_region(n, &next)) {
      for (int b = 0; b < n->block_count; b++) merge_block(g, n->blocks[b]);
      effect = effect || (run.run.pass && is_effect(pass, n));
      continue;
    }
    merge_duplicates(g, &next);
    if (run.run.pass && (effect || !extend_run(&run, &next))) {
      kiln_pass_refuse(pass, next.check,
                       effect ? KILN_REASON_guard_effect : KILN_REASON_guard_not_proven, "");
      end_run(&run);
    }
    if (!run.run.pass) begin_run(&run, pass, &g->claims, &next);
    effect = false;
    n = next.branch;
  }
  end_run(&run);
}

kiln_status *kiln_pass_merge_guards(kiln_pass *pass) {
  if (pass->env->flags.compat == KILN_COMPAT_TORCH) return NULL; /* one guard a group */
  merger g = {.pass = pass};
  kiln_map_init(&g.claims, pass->scratch);
  set_aside(&g, pass->graph->top);
  merge_block(&g, pass->graph->top);
  put_back(&g, pass->graph->top);
  return NULL;
}
