/* merge_guards.c: pass `merge_guards`: groups whose inputs follow from one region's inputs share
 * one guard.
 *
 * Regions of a block are taken in order; each next one joins the region before it when
 *  - between the two stands no effect, no write and no random number, so that the first guard may
 *    be asked as late as the second, and a fallback may start both regions anew;
 *  - every value that the second guard checks is checked by the first already, or was not made by
 *    the first region, so that the merged guard can check it too, or is made from what the region
 *    knows by operators whose shape functions prove the very type.
 * What stands between and leads from the first region to the second goes into it, and into the
 * fallback. A proof may need a value that no guard has looked at, a weight: then the merged guard
 * checks it too, for the type that the profile claims.
 *
 * Claims of the profile must prove nothing, so they are set aside while the pass runs: a value's
 * type is then what is known for a fact where the region's guard holds. */
#include "guards/merge.h"

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
static void add_check(kiln_arena *scratch, kiln_check_list *list, kiln_ir_value *v,
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

static kiln_check_list list_checks(kiln_arena *scratch, const kiln_node *check) {
  kiln_check_list list = {0};
  for (int i = 0; i < check->input_count; i++) {
    add_check(scratch, &list, kiln_node_input(check, i), asked_type(check, i));
  }
  return list;
}

static void merge_duplicates(merger *g, kiln_guarded *r) {
  kiln_check_list list = list_checks(g->pass->scratch, r->check);
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

static void note_inputs(kiln_map *set, const kiln_node *n) {
  for (int i = 0; i < n->input_count; i++) {
    kiln_map_set_ptr(set, kiln_node_input(n, i), kiln_node_input(n, i));
  }
  for (int b = 0; b < n->block_count; b++) {
    note_inputs(set, n->blocks[b]->ret);
    for (const kiln_node *m = n->blocks[b]->first; m; m = m->next) note_inputs(set, m);
  }
}

static bool gives_any(const kiln_node *n, const kiln_map *set) {
  for (int i = 0; i < n->output_count; i++) {
    if (kiln_map_find_ptr(set, kiln_node_output(n, i))) return true;
  }
  return false;
}

/* Fills m->dependent and m->inner. `made` gets every value that the merged region makes and the
 * second one can see. */
static void sort_between(kiln_guard_merge *m, kiln_map *made) {
  kiln_arena *scratch = m->pass->scratch;
  kiln_map needed;
  kiln_map_init(&needed, scratch);
  note_values(made, m->a.branch->outputs, m->a.branch->output_count);
  for (kiln_node *n = m->a.branch->next; n != m->b.check; n = n->next) {
    if (!reads_any(n, made)) continue;
    note_values(made, n->outputs, n->output_count);
    kiln_vec_push(scratch, &m->dependent, n);
  }
  note_inputs(&needed, m->b.check);
  note_inputs(&needed, m->b.branch);
  for (int i = m->dependent.count - 1; i >= 0; i--) {
    kiln_node *n = m->dependent.data[i];
    if (!gives_any(n, &needed)) continue;
    note_inputs(&needed, n);
    kiln_vec_push(scratch, &m->inner, n);
  }
  for (int i = 0, k = m->inner.count - 1; i < k; i++, k--) {
    kiln_node *swap = m->inner.data[i];
    m->inner.data[i] = m->inner.data[k];
    m->inner.data[k] = swap;
  }
}

/* -- Proof -- */

typedef struct prover {
  kiln_guard_merge *m;
  kiln_map made;
  KILN_VEC(kiln_ir_value *) touched; /* values that got a type for the time of the proof */
} prover;

static void know(prover *p, kiln_ir_value *v, const kiln_type *type) {
  if (v->type->detail) return; /* a constant: it says more */
  kiln_vec_push(p->m->pass->scratch, &p->touched, v);
  v->type = type;
}

static void unknow(prover *p, int keep) {
  while (p->touched.count > keep) {
    kiln_ir_value *v = kiln_vec_pop(&p->touched);
    v->type = kiln_type_unshaped(p->m->pass->graph->types, v->type);
  }
}

static void know_region(prover *p) {
  const kiln_guard_merge *m = p->m;
  for (int i = 0; i < m->checks.values.count; i++) {
    know(p, m->checks.values.data[i], m->checks.types.data[i]);
  }
  kiln_block *hit = kiln__guarded_hit(&m->a);
  for (int i = 0; i < m->a.branch->output_count; i++) {
    kiln_ir_value *out = kiln_node_output(m->a.branch, i);
    if (kiln_type_is_tensor(out->type)) know(p, out, kiln_block_output(hit, i)->type);
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
static bool check_operands(prover *p, const kiln_node *n) {
  bool any = false;
  for (int i = 0; i < n->input_count; i++) {
    kiln_ir_value *v = kiln_node_input(n, i);
    if (kiln_node_is(v->node, KILN_OP_prim_ListConstruct) && !kiln_map_find_ptr(&p->made, v)) {
      any |= check_operands(p, v->node);
      continue;
    }
    const kiln_type *claim = kiln_map_find_ptr(p->m->claims, v);
    if (!kiln_type_is_tensor(v->type) || v->type->detail || kiln_map_find_ptr(&p->made, v) ||
        !claim || !kiln_type_is_complete_tensor(claim)) {
      continue;
    }
    know(p, v, claim);
    kiln_vec_push(p->m->pass->scratch, &p->m->checks.values, v);
    kiln_vec_push(p->m->pass->scratch, &p->m->checks.types, claim);
    any = true;
  }
  return any;
}

static void touch_outputs(prover *p, kiln_node *n) {
  for (int i = 0; i < n->output_count; i++) {
    kiln_vec_push(p->m->pass->scratch, &p->touched, kiln_node_output(n, i));
  }
}

static void prove_node(prover *p, kiln_node *n) {
  touch_outputs(p, n);
  if (kiln_shape_infer(n->graph, n) || is_proven(n)) return;
  int touched = p->touched.count, checks = p->m->checks.values.count;
  if (!check_operands(p, n) || kiln_shape_infer(n->graph, n)) return;
  unknow(p, touched);
  p->m->checks.values.count = p->m->checks.types.count = checks;
  for (int i = 0; i < n->output_count; i++) {
    n->outputs[i]->type = kiln_type_unshaped(n->graph->types, n->outputs[i]->type);
  }
}

/* Every value that the second guard checks. */
static bool prove_checks(prover *p) {
  kiln_guard_merge *m = p->m;
  for (int i = 0; i < m->b.check->input_count; i++) {
    kiln_ir_value *v = kiln_node_input(m->b.check, i);
    const kiln_type *asked = asked_type(m->b.check, i);
    if (kiln_type_is_subtype(v->type, asked)) continue;
    if (kiln_map_find_ptr(&p->made, v)) return false;
    if (v->type->detail && !kiln_type_is_subtype(asked, v->type)) return false; /* never both */
    add_check(m->pass->scratch, &m->checks, v, asked);
  }
  return m->checks.values.count <= MAX_CHECKS;
}

static bool can_be_inner(const kiln_node *n) {
  return n->block_count == 0 && !kiln_node_is(n, KILN_OP_prim_TensorExprGroup) &&
         !kiln_node_graph(n, "Subgraph");
}

/* The pair may be one: fills what kiln__guards_join needs. What was inferred for the nodes that go
 * into the region stays on them, for there it is a fact; all else is forgotten again. */
static bool may_join(kiln_guard_merge *m) {
  prover p = {.m = m};
  kiln_map_init(&p.made, m->pass->scratch);
  sort_between(m, &p.made);
  for (int i = 0; i < m->inner.count; i++) {
    if (!can_be_inner(m->inner.data[i])) return false;
  }
  m->checks = list_checks(m->pass->scratch, m->a.check);
  know_region(&p);
  for (int i = 0; i < m->inner.count; i++) prove_node(&p, m->inner.data[i]);
  bool joins = prove_checks(&p);
  for (int i = 0; joins && i < m->inner.count; i++) {
    for (int k = 0; k < m->inner.data[i]->output_count; k++) {
      kiln_ir_value *v = kiln_node_output(m->inner.data[i], k);
      kiln_map_set_ptr(&p.made, v, (void *)(uintptr_t)v->type);
    }
  }
  unknow(&p, 0);
  for (int i = 0; joins && i < m->inner.count; i++) {
    for (int k = 0; k < m->inner.data[i]->output_count; k++) {
      kiln_ir_value *v = kiln_node_output(m->inner.data[i], k);
      v->type = kiln_map_find_ptr(&p.made, v);
    }
  }
  return joins;
}

/* -- The pass -- */

static void merge_block(merger *g, kiln_block *block) {
  kiln_pass *pass = g->pass;
  kiln_guarded last = {0};
  bool effect = false;
  for (kiln_node *n = block->first; n; n = n->next) {
    kiln_guarded next;
    if (!kiln_node_is(n, KILN_OP_prim_TypeCheck) || !find_region(n, &next)) {
      for (int b = 0; b < n->block_count; b++) merge_block(g, n->blocks[b]);
      effect = effect || (last.check && is_effect(pass, n));
      continue;
    }
    merge_duplicates(g, &next);
    kiln_guard_merge m = {.pass = pass, .claims = &g->claims, .a = last, .b = next};
    if (last.check && effect) {
      kiln_pass_refuse(pass, next.check, KILN_REASON_guard_effect, "");
    } else if (last.check && may_join(&m)) {
      next = kiln__guards_join(&m);
      pass->changed = true;
    } else if (last.check) {
      kiln_pass_refuse(pass, next.check, KILN_REASON_guard_not_proven, "");
    }
    last = next;
    effect = false;
    n = next.branch;
  }
}

kiln_status *kiln_pass_merge_guards(kiln_pass *pass) {
  if (pass->env->flags.compat == 1) return NULL; /* torch: one guard a group */
  merger g = {.pass = pass};
  kiln_map_init(&g.claims, pass->scratch);
  set_aside(&g, pass->graph->top);
  merge_block(&g, pass->graph->top);
  put_back(&g, pass->graph->top);
  return NULL;
}
