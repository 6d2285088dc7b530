/* guard_regions.c: pass `guard_regions`: puts compiled groups into regions with one guard each, and
 * leaves tensor types only where they are facts.
 *
 * Groups of a block are taken in order; each next one joins the region of those before it when
 *  - between it and them stands no effect, no write and no random number, so that the guard may be
 *    asked as late as the last group stands, and a fallback may start the whole region anew;
 *  - every value that its kernel takes for granted is checked by the guard already, or was not made
 *    by the region, so that the guard can check it too, or is made from what the guard checks by
 *    operators whose shape functions prove the very type: what they ask of sizes, and of sums and
 *    products of sizes, the region's own nodes tell.
 * What stands between and leads from the region to the group becomes a part of it. A proof may need
 * a value that no kernel looks at, a weight: then the guard checks it too, for the type that the
 * profile claims. Last, whatever else reads the region and is proven by what the guard checks
 * anyway becomes a part, up to the next effect. What leads up to the first group does not: its
 * operands would have to be checked instead of its result, and x[i] has one shape for all x.
 *
 * Claims of the profile must prove nothing, so they are set aside first: from then on a value's
 * type is what is known for a fact, where the region's guard held. What no guard makes true is not
 * put back. A check that the guard decides (if x.dim() != 4: raise), in front of the region or
 * between its groups, is a part of it, and no effect. Inner blocks come before the block that they
 * stand in, since of what is known there nothing is true for them. Under KILN_COMPAT=torch each
 * group is a region. */
#include <stdlib.h>

#include "guards/region.h"

/* `mark` of nodes; and how often each has led to a group that was refused. */
enum { IS_EFFECT = 1, IS_WRITE = 2, REFUSED = 4, MOST_REFUSED = 8 };

/* -- Claims -- */

typedef struct guarder {
  kiln_pass *pass;
  kiln_map claims;       /* value -> type; also of values made since */
  kiln_map proven;       /* of what regions give: what it is where their guards held */
  kiln_symbols *symbols; /* of a DYNAMIC level */
  bool has_group;
} guarder;

static void set_aside_node(guarder *g, kiln_node *n) {
  if (kiln_node_is(n, KILN_OP_prim_Constant) || kiln_node_is_type_check(n)) return;
  g->has_group = g->has_group || kiln_node_is_group(n);
  for (int i = 0; i < n->output_count; i++) {
    kiln_ir_value *v = n->outputs[i];
    if (!kiln_type_is_tensor(v->type) || !v->type->detail) continue;
    kiln_map_set_ptr(&g->claims, v, (void *)(uintptr_t)v->type);
    v->type = kiln_type_unshaped(g->pass->graph->types, v->type);
    g->pass->changed = true;
  }
}

static void set_aside(guarder *g, kiln_block *block) {
  if (kiln_guards_is_hit(block)) return;
  set_aside_node(g, block->param);
  for (kiln_node *n = block->first; n; n = n->next) {
    set_aside_node(g, n);
    for (int b = 0; b < n->block_count; b++) set_aside(g, n->blocks[b]);
  }
}

/* -- Effects -- */

/* Before anything is changed, since the analysis knows only the nodes that it saw. */
static void mark_effects(const kiln_alias *alias, kiln_block *block) {
  for (kiln_node *n = block->first; n; n = n->next) {
    const bool writes = !n->op || kiln_alias_node_writes(alias, n);
    const bool effect = writes || kiln_node_has_side_effects(n) || kiln__region_is_random(n);
    n->mark = (effect ? IS_EFFECT : 0) | (writes ? IS_WRITE : 0);
    for (int b = 0; b < n->block_count; b++) mark_effects(alias, n->blocks[b]);
  }
}

/* -- The region that is being looked for -- */

/* What is known of values is on them while it lasts. */
typedef struct finder {
  kiln_region region;
  kiln_map made;                     /* values that its parts make, or that are made from them */
  kiln_map between;                  /* nodes of `read` that are no parts so far */
  kiln_map parts;                    /* nodes of region.parts */
  kiln_map ahead;                    /* nodes of region.ahead */
  kiln_node_vec read;                /* nodes that read it, in order, up to an effect */
  int settled;                       /* how many of them stand before its last group */
  const kiln_node *effect;           /* that stands after its last group; NULL: none does */
  const kiln_node *unproven;         /* what the last group that was refused lacks */
  KILN_VEC(kiln_ir_value *) touched; /* values that got a type for its time */
  kiln_numbers numbers;
  kiln_region_weights weights;
} finder;

static void note_made(finder *f, const kiln_node *n) {
  for (int i = 0; i < n->output_count; i++) {
    kiln_map_set_ptr(&f->made, n->outputs[i], n->outputs[i]);
  }
}

/* Takes from `between` what the node reads, in its blocks too (the words of what a check raises);
 * false: it has led to too many refusals. */
static bool take_inputs(finder *f, const kiln_node *n, kiln_node_vec *taken) {
  for (int b = 0; b < n->block_count; b++)
    for (const kiln_node *m = n->blocks[b]->first; m; m = m->next)
      if (!take_inputs(f, m, taken)) return false;
  for (int i = 0; i < n->input_count; i++) {
    kiln_node *maker = kiln_node_input(n, i)->node;
    if (!kiln_map_find_ptr(&f->between, maker)) continue;
    if (maker->mark >= REFUSED * MOST_REFUSED) {
      f->unproven = maker;
      return false;
    }
    (void)kiln_map_remove_ptr(&f->between, maker);
    kiln_vec_push(f->region.pass->scratch, taken, maker);
  }
  return true;
}
/* Others may lead through them. */
static void give_back(finder *f, const kiln_node_vec *taken) {
  for (int i = 0; i < taken->count; i++) {
    taken->data[i]->mark += REFUSED;
    kiln_map_set_ptr(&f->between, taken->data[i], taken->data[i]);
  }
}

static int compare_places(const void *a, const void *b) {
  const kiln_node *const *x = (const kiln_node *const *)a, *const *y = (const kiln_node *const *)b;
  return kiln_node_is_before(*x, *y) ? -1 : kiln_node_is_before(*y, *x);
}

static bool can_be_part(const kiln_node *n) {
  return (n->block_count == 0 && !kiln_node_graph(n, "Subgraph")) || kiln_numbers_is_count(n);
}

/* What leads from the region to the group, in order; false: it holds what cannot be a part. */
static bool take_between(finder *f, const kiln_node *group, kiln_node_vec *taken) {
  if (!take_inputs(f, group, taken)) return false;
  for (int i = 0; i < taken->count; i++) {
    if (!can_be_part(taken->data[i])) {
      f->unproven = taken->data[i];
      return false;
    }
    if (!take_inputs(f, taken->data[i], taken)) return false;
  }
  const size_t count = (size_t)taken->count;
  if (count) qsort(taken->data, count, sizeof *taken->data, compare_places);
  return true;
}

/* -- Proof -- */

static void know(finder *f, kiln_ir_value *v, const kiln_type *type) {
  if (v->type->detail) return; /* a constant: it says more */
  kiln_vec_push(f->region.pass->scratch, &f->touched, v);
  v->type = type;
}

static void unknow(finder *f, int keep) {
  while (f->touched.count > keep) {
    kiln_ir_value *v = kiln_vec_pop(&f->touched);
    v->type = kiln_type_unshaped(f->region.pass->graph->types, v->type);
  }
}

static kiln_dims *dims_of(const finder *f) {
  return kiln_type_table_dims(f->region.pass->graph->types);
}

/* Lets the guard check a value that the region has not made. */
static void add_check(finder *f, kiln_ir_value *v, const kiln_type *type) {
  kiln_guard_checks *checks = &f->region.checks;
  kiln_vec_push(f->region.pass->scratch, &checks->values, v);
  kiln_vec_push(f->region.pass->scratch, &checks->types, type);
  know(f, v, type);
}

/* What is known, for going back to it. */
typedef struct knowledge {
  int touched, numbers, checks, orders;
} knowledge;
static knowledge known_now(const finder *f) {
  const kiln_guard_checks *checks = &f->region.checks;
  return (knowledge){f->touched.count, f->numbers.values.count, checks->values.count,
                     checks->order_count};
}
static void go_back(finder *f, knowledge to) {
  unknow(f, to.touched);
  kiln_dims_forget(dims_of(f), to.orders);
  f->region.checks.order_count = to.orders;
  kiln_numbers_go_back(&f->numbers, to.numbers);
  f->region.checks.values.count = f->region.checks.types.count = to.checks;
}

/* Lets the guard check a tensor that comes from outside and of which nothing is known. */
static void check_tensor(void *finder_, kiln_ir_value *v) {
  finder *f = finder_;
  if (v->type->detail || kiln_map_find_ptr(&f->made, v)) return;
  const kiln_type *claim = kiln_map_find_ptr(f->region.claims, v);
  if (!claim || !kiln_type_has_dims(claim)) return;
  add_check(f, v, kiln__symbols_type(f->region.symbols, v, claim));
}

/* The same of all that the node reads, and whose sizes it asks for. */
static void check_operands(finder *f, const kiln_node *n) {
  for (int i = 0; i < n->input_count; i++) {
    kiln_ir_value *v = kiln_node_input(n, i);
    if (kiln_node_is(v->node, KILN_OP_prim_ListConstruct)) {
      check_operands(f, v->node);
    } else {
      check_tensor(f, v);
    }
  }
  kiln_numbers_ask(&f->numbers, n, check_tensor, f);
}

static bool is_proven(const kiln_node *n) {
  for (int i = 0; i < n->output_count; i++) {
    const kiln_type *type = n->outputs[i]->type;
    if (kiln_type_is_tensor(type) && !kiln_type_has_dims(type)) return false;
  }
  return true;
}

/* The node's results get the types that its shape function finds. */
static bool infer(finder *f, kiln_node *n) {
  kiln_numbers_ask(&f->numbers, n, NULL, NULL);
  kiln_numbers_learn(&f->numbers, n);
  for (int i = 0; i < n->output_count; i++) {
    kiln_vec_push(f->region.pass->scratch, &f->touched, kiln_node_output(n, i));
  }
  return kiln_shape_infer(n->graph, n) || is_proven(n);
}

/* Its results' types from what is known, or from what the guard may ask for in addition. */
static bool infer_asking(finder *f, kiln_node *n) {
  kiln_dim_wishes wishes = {0}, none = {0};
  const int kept = f->region.checks.order_count;
  kiln_dims_listen(dims_of(f), &wishes, NULL);
  bool good = kiln_shape_infer(n->graph, n);
  while (!good && kiln__region_grant(&f->region, &wishes, &none, kept)) {
    wishes.count = 0;
    good = kiln_shape_infer(n->graph, n);
  }
  kiln_dims_listen(dims_of(f), NULL, NULL);
  return good;
}

/* The same, with more checks where they are needed and help. */
static void prove(finder *f, kiln_node *n) {
  if (infer(f, n)) return;
  const knowledge before = known_now(f);
  check_operands(f, n);
  if (infer_asking(f, n)) return;
  go_back(f, before);
  for (int i = 0; i < n->output_count; i++) {
    n->outputs[i]->type = kiln_type_unshaped(n->graph->types, n->outputs[i]->type);
  }
}

/* Whether what is known of the value is all that a group asks for. */
static bool is_known_as(const finder *f, const kiln_ir_value *v, const kiln_type *asked) {
  if (!v->type->detail) return false;
  if (!f->region.symbols) return kiln_type_is_subtype(v->type, asked);
  return kiln__symbols_agree(f->region.symbols, f->region.pass->scratch, v->type, asked);
}

/* Types of symbols in the group, with what the guard may ask for in addition. */
static bool retype(finder *f, kiln_graph *body, const kiln_type *const *types,
                   kiln_type_vec *known) {
  kiln_dim_wishes wishes = {0}, liked = {0};
  const int kept = f->region.checks.order_count;
  kiln_dims_listen(dims_of(f), &wishes, &liked);
  bool good = kiln__symbols_retype(f->region.symbols, f->region.pass, body, types, known);
  while (!good && kiln__region_grant(&f->region, &wishes, &liked, kept)) {
    wishes.count = liked.count = wishes.first = liked.first = 0;
    good = kiln__symbols_retype(f->region.symbols, f->region.pass, body, types, known);
  }
  kiln_dims_listen(dims_of(f), NULL, NULL);
  return good && kiln__region_has_room(&f->region.checks);
}

/* Every value that the group's kernel takes for granted. Constants are facts. Of symbols the
 * group's types are made of. */
static bool prove_inputs(finder *f, const kiln_node *group) {
  kiln_graph *body = kiln_node_graph(group, "Subgraph");
  kiln_arena *scratch = f->region.pass->scratch;
  const int count = group->input_count, first = f->region.checks.values.count;
  const kiln_type **types = KILN_NEW_ARRAY(scratch, const kiln_type *, count + 1);
  kiln_type_vec known = {0}; /* of what makes an operand, and in the group */
  for (int i = 0; i < count; i++) {
    kiln_ir_value *v = kiln_node_input(group, i);
    if (!kiln_type_is_tensor(v->type) || kiln_node_is(v->node, KILN_OP_prim_Constant)) continue;
    const kiln_type *proven = kiln_map_find_ptr(f->region.proven, v);
    if (proven) kiln_vec_push(scratch, &known, proven);
    const kiln_type *asked = kiln_graph_input(body, i)->type;
    if (!is_known_as(f, v, asked)) {
      if (kiln_map_find_ptr(&f->made, v)) {
        f->unproven = v->node;
        return false;
      }
      add_check(f, v, kiln__symbols_type(f->region.symbols, v, asked));
    }
    types[i] = v->type;
  }
  if (!kiln__region_has_room(&f->region.checks)) return false;
  kiln_symbols *s = f->region.symbols;
  const int orders = f->region.checks.order_count;
  if (!s || retype(f, body, types, &known)) return true;
  kiln_dims_forget(dims_of(f), orders); /* of symbols that may be others soon */
  f->region.checks.order_count = orders;
  if (!kiln__symbols_relate(s, scratch, f->region.claims, &known, &f->region.checks, first) ||
      !kiln__region_has_room(&f->region.checks))
    return false;
  for (int i = 0; i < count; i++)
    if (types[i]) types[i] = kiln_node_input(group, i)->type;
  return retype(f, body, types, &known);
}

/* -- Regions -- */

static void note_part(finder *f, kiln_node *n) { kiln_map_set_ptr(&f->parts, n, n); }
static void add_part(finder *f, kiln_node *n) {
  kiln_vec_push(f->region.pass->scratch, &f->region.parts, n);
  note_part(f, n);
}

static void add_group(finder *f, kiln_node *group) {
  const kiln_graph *body = kiln_node_graph(group, "Subgraph");
  add_part(f, group);
  note_made(f, group);
  for (int i = 0; i < group->output_count; i++) {
    kiln_ir_value *v = kiln_node_output(group, i);
    if (kiln_type_is_tensor(v->type)) know(f, v, kiln_graph_output(body, i)->type);
  }
  f->region.last = group;
  f->settled = f->read.count;
}

/* -- Checks that the guard decides -- */

/* Whether it does nothing but raise: the fallback asks checks where the region begins, before what
 * stood between, which must not see what they write. */
static bool only_raises(const kiln_node *n) {
  for (int b = 0; b < n->block_count; b++) {
    for (const kiln_node *m = n->blocks[b]->first; m; m = m->next) {
      const bool raises = kiln_node_is(m, KILN_OP_prim_RaiseException);
      if (!raises && (m->block_count ? !only_raises(m) : m->mark & IS_EFFECT)) return false;
    }
  }
  return true;
}
/* if x.dim() != 4: raise. The side that is taken has nothing to do. */
static bool is_decided(const finder *f, const kiln_node *n) {
  int64_t condition;
  return kiln_node_is(n, KILN_OP_prim_If) && n->output_count == 0 && only_raises(n) &&
         kiln_numbers_find(&f->numbers, kiln_node_input(n, 0), &condition) &&
         !n->blocks[condition ? 0 : 1]->first;
}

/* Whether the value is a part's, or there before the region; or can be, being an attribute of what
 * is: nothing was written since the last group. */
static bool is_ready(finder *f, const kiln_ir_value *v) {
  kiln_node *maker = v->node;
  const kiln_node *last = f->region.last;
  if (kiln_map_find_ptr(&f->parts, maker)) return true;
  if (kiln_map_find_ptr(&f->made, v)) return false;
  if (maker->block != last->block || maker == last->block->param ||
      kiln_node_is_before(maker, last) || kiln_map_find_ptr(&f->ahead, maker))
    return true;
  if (!kiln_node_is(maker, KILN_OP_prim_GetAttr) || !is_ready(f, kiln_node_input(maker, 0)))
    return false;
  kiln_map_set_ptr(&f->ahead, maker, maker);
  kiln_vec_push(f->region.pass->scratch, &f->region.ahead, maker);
  return true;
}
static bool is_ready_for(finder *f, const kiln_node *n) {
  for (int i = 0; i < n->input_count; i++) {
    if (!is_ready(f, kiln_node_input(n, i))) return false;
  }
  for (int b = 0; b < n->block_count; b++) {
    for (const kiln_node *m = n->blocks[b]->first; m; m = m->next) {
      if (!is_ready_for(f, m)) return false;
    }
  }
  return true;
}

/* Whether a node of the block, or of a block in it, stands in `check` or behind it. */
static bool is_behind(const kiln_node *n, const kiln_node *check) {
  while (n && n->block != check->block) n = n->block->owner;
  return n && !kiln_node_is_before(n, check);
}
/* Whether a node behind the last group gives a number that nothing in front of the check asks for
 * but what was taken for it. */
static bool is_asked_for(const finder *f, const kiln_node *n, const kiln_node *check) {
  const bool is_question =
      kiln__region_can_ask(n) && n->output_count == 1 &&
      (n->outputs[0]->type->kind == KILN_TYPE_INT || n->outputs[0]->type->kind == KILN_TYPE_BOOL) &&
      !kiln_node_is(n, KILN_OP_prim_Constant) && !kiln_node_is(n, KILN_OP_prim_GetAttr);
  if (!is_question || n->block != f->region.last->block ||
      !kiln_node_is_before(f->region.last, n) || kiln_map_find_ptr(&f->made, n->outputs[0]))
    return false;
  for (const kiln_use *use = n->outputs[0]->uses; use; use = use->next)
    if (!is_behind(use->user, check) && !kiln_map_find_ptr(&f->parts, use->user)) return false;
  return true;
}
/* Questions about what was there before the region: if x.dim() < 2: raise. */
static void take_questions(finder *f, const kiln_node *n, const kiln_node *check,
                           kiln_node_vec *taken) {
  for (int b = 0; b < n->block_count; b++)
    for (const kiln_node *m = n->blocks[b]->first; m; m = m->next)
      take_questions(f, m, check, taken);
  for (int i = 0; i < n->input_count; i++) {
    kiln_node *maker = kiln_node_input(n, i)->node;
    if (kiln_map_find_ptr(&f->parts, maker) || !is_asked_for(f, maker, check)) continue;
    note_part(f, maker);
    kiln_vec_push(f->region.pass->scratch, taken, maker);
    take_questions(f, maker, check, taken);
  }
}

/* Takes a check, and what leads to it, behind the last group: it is no effect there. */
static bool take_check(finder *f, kiln_node *check) {
  const knowledge before = known_now(f);
  kiln_node_vec taken = {0}, all = {0};
  bool good = kiln_node_is(check, KILN_OP_prim_If) && take_between(f, check, &taken);
  for (int i = 0; i < taken.count; i++) note_part(f, taken.data[i]);
  take_questions(f, check, check, &all);
  for (int i = 0; i < taken.count; i++) take_questions(f, taken.data[i], check, &all);
  for (int i = 0; i < all.count; i++) check_operands(f, all.data[i]);
  for (int i = 0; i < taken.count; i++) kiln_vec_push(f->region.pass->scratch, &all, taken.data[i]);
  if (all.count) qsort(all.data, (size_t)all.count, sizeof *all.data, compare_places);
  for (int i = 0; good && i < all.count; i++) {
    prove(f, all.data[i]);
    good = is_ready_for(f, all.data[i]);
  }
  good = good && is_decided(f, check) && is_ready_for(f, check) &&
         kiln__region_has_room(&f->region.checks);
  if (!good) {
    for (int i = 0; i < all.count; i++) (void)kiln_map_remove_ptr(&f->parts, all.data[i]);
    give_back(f, &taken);
    go_back(f, before);
    return false;
  }
  for (int i = 0; i < all.count; i++) {
    add_part(f, all.data[i]);
    note_made(f, all.data[i]); /* of questions */
  }
  add_part(f, check);
  return true;
}

/* A node after the last group so far. */
static void pass_by(finder *f, kiln_node *n) {
  if (!f->region.pass || f->effect) return;
  if ((n->mark & IS_EFFECT) && take_check(f, n)) return;
  if (n->mark & IS_EFFECT) f->effect = n;
  if (f->effect || !kiln__region_reads_any(n, &f->made)) return;
  kiln_numbers_learn(&f->numbers, n);
  note_made(f, n);
  kiln_vec_push(f->region.pass->scratch, &f->read, n);
  kiln_map_set_ptr(&f->between, n, n);
}

/* Takes the checks before the first group, from the last one back to one that is not decided, or
 * that the region before has taken. */
static void take_before(finder *f, const kiln_node_vec *before) {
  kiln_arena *scratch = f->region.pass->scratch;
  kiln_map wanted = kiln_map_in(scratch); /* by the checks that were taken */
  kiln_node_vec taken = {0};
  int first = before->count;
  while (first > 0 && before->data[first - 1]->block == f->numbers.block) first--;
  for (int i = first; i < before->count; i++) kiln_numbers_learn(&f->numbers, before->data[i]);
  for (int i = before->count - 1; i >= first; i--) {
    kiln_node *n = before->data[i];
    const bool is_check = kiln_node_is(n, KILN_OP_prim_If);
    const bool is_wanted = kiln_map_find_ptr(&wanted, n) && !kiln_node_is(n, KILN_OP_prim_Constant);
    if (is_check ? !is_decided(f, n) : kiln_node_is(n, KILN_OP_size_int) && !is_wanted) break;
    if (!is_check && (!is_wanted || kiln_node_is(n, KILN_OP_prim_GetAttr))) continue;
    kiln_vec_push(scratch, &taken, n);
    for (int k = 0; k < n->input_count; k++) {
      kiln_node *maker = kiln_node_input(n, k)->node;
      kiln_map_set_ptr(&wanted, maker, maker);
    }
  }
  while (taken.count > 0) {
    kiln_node *n = kiln_vec_pop(&taken);
    note_made(f, n);
    add_part(f, n);
  }
}

/* What makes weights of weights, where the group's types follow from it; gives what the group read
 * before (leave_weights). */
static kiln_ir_value **take_weights(finder *f, kiln_node *group) {
  const kiln_graph *body = kiln_node_graph(group, "Subgraph");
  const knowledge before = known_now(f);
  const int first = f->weights.made.count;
  kiln_ir_value **originals = kiln__region_copy_weights(
      f->region.pass, &f->weights, f->region.claims, &f->made, group, f->numbers.since);
  bool good = true;
  for (int i = first; i < f->weights.made.count; i++) {
    prove(f, f->weights.made.data[i]);
    note_made(f, f->weights.made.data[i]);
  }
  for (int i = 0; good && i < group->input_count; i++)
    good =
        !originals[i] || is_known_as(f, kiln_node_input(group, i), kiln_graph_input(body, i)->type);
  if (good) return originals;
  go_back(f, before);
  kiln__region_leave_weights(&f->weights, first, group, originals);
  return originals;
}

static void add_copies(finder *f, int first) {
  for (int i = first; i < f->weights.made.count; i++) add_part(f, f->weights.made.data[i]);
}

/* `before`: what stands right in front of the group; `since`: the last write there. */
static void begin_region(finder *f, guarder *g, kiln_node *group, const kiln_node_vec *before,
                         const kiln_node *since) {
  *f = (finder){
      .region = {
          .pass = g->pass, .claims = &g->claims, .proven = &g->proven, .symbols = g->symbols}};
  f->made = kiln_map_in(g->pass->scratch);
  f->between = kiln_map_in(g->pass->scratch);
  f->parts = kiln_map_in(g->pass->scratch);
  f->ahead = kiln_map_in(g->pass->scratch);
  kiln_numbers_begin(&f->numbers, g->pass->graph, g->pass->scratch);
  f->numbers.block = group->block;
  f->numbers.since = since;
  f->region.asked = &f->numbers.asked;
  f->weights.copies = kiln_map_in(g->pass->scratch);
  (void)take_weights(f, group);
  const knowledge nothing = known_now(f);
  if (!prove_inputs(f, group) && g->symbols) { /* it has numbers then */
    kiln_pass_refuse(g->pass, group, KILN_REASON_dynamic_as_static, "");
    go_back(f, nothing);
    f->region.symbols = NULL;
    (void)prove_inputs(f, group);
  }
  take_before(f, before);
  add_copies(f, 0);
  add_group(f, group);
}

/* Whether the group belongs to the region. */
static bool extend_region(finder *f, kiln_node *group) {
  const knowledge before = known_now(f);
  kiln_node_vec taken = {0};
  const int first = f->weights.made.count;
  f->unproven = group;
  kiln_ir_value **originals = take_weights(f, group);
  bool good = take_between(f, group, &taken);
  for (int i = 0; good && i < taken.count; i++) prove(f, taken.data[i]);
  if (!good || !prove_inputs(f, group)) {
    give_back(f, &taken);
    go_back(f, before);
    kiln__region_leave_weights(&f->weights, first, group, originals);
    return false;
  }
  add_copies(f, first);
  for (int i = 0; i < taken.count; i++) add_part(f, taken.data[i]);
  add_group(f, group);
  return true;
}

/* Whether the node gives tensors alone, whose types follow from what is known, and all that it
 * reads is a part or there before the region. */
static bool follows(finder *f, kiln_node *n) {
  if (!can_be_part(n) || n->output_count == 0 || !is_ready_for(f, n)) return false;
  for (int i = 0; i < n->output_count; i++) {
    if (!kiln_type_is_tensor(n->outputs[i]->type)) return false;
  }
  const knowledge before = known_now(f);
  if (infer(f, n)) return true;
  go_back(f, before);
  return false;
}

/* Whether the region goes on without the group: at a level whose sizes have varied a kernel of
 * numbers would serve the sizes of now alone. */
static bool passes_without(const finder *f, const kiln_node *group) {
  const kiln_symbols *s = f->region.symbols;
  return !f->effect && f->unproven == group && s && s->level_count > 0;
}

/* What was inferred for parts stays on them, for there it is a fact; all else is forgotten. */
static void end_region(finder *f) {
  kiln_region *region = &f->region;
  if (!region->pass) return;
  if (region->checks.values.count > 0) {
    for (int i = 0; i < f->read.count; i++) {
      kiln_node *n = f->read.data[i];
      if (kiln_map_find_ptr(&f->parts, n)) continue;
      if (follows(f, n)) {
        add_part(f, n);
      } else if (i < f->settled) {
        kiln_vec_push(region->pass->scratch, &region->behind, n);
      }
    }
    kiln__region_build(region);
    region->pass->changed = true;
  }
  for (int i = 0; i < f->touched.count; i++) {
    kiln_ir_value *v = f->touched.data[i];
    if (kiln_map_find_ptr(&f->parts, v->node)) continue;
    v->type = kiln_type_unshaped(region->pass->graph->types, v->type);
  }
  kiln__region_drop_weights(&f->weights);
  kiln_numbers_end(&f->numbers);
  kiln_dims_forget(dims_of(f), 0);
  region->pass = NULL;
}

/* -- The pass -- */

static void guard_block(guarder *g, kiln_block *block) {
  kiln_pass *pass = g->pass;
  const bool alone = pass->env->flags.compat == KILN_COMPAT_TORCH;
  for (kiln_node *n = block->first; n; n = n->next) {
    for (int b = 0; b < n->block_count; b++) {
      if (!kiln_guards_is_hit(n->blocks[b])) guard_block(g, n->blocks[b]);
    }
  }
  finder f = {0};
  kiln_node_vec before = {0};
  const kiln_node *write = NULL; /* the last one */
  for (kiln_node *n = block->first, *next; n; n = next) {
    next = n->next;
    if (n->mark & IS_WRITE) write = n;
    if (!kiln_node_is_group(n)) {
      pass_by(&f, n);
      if (!kiln__region_can_ask(n)) before.count = 0;
      if (!alone && kiln__region_can_ask(n)) kiln_vec_push(pass->scratch, &before, n);
      continue;
    }
    if (f.region.pass && (f.effect || !extend_region(&f, n))) {
      if (passes_without(&f, n)) {
        kiln_pass_refuse(pass, n, KILN_REASON_dynamic_by_interpreter, "");
        next = kiln_guards_dissolve(pass, n);
        before.count = 0;
        continue;
      }
      const kiln_node *why = f.effect ? f.effect : f.unproven;
      kiln_pass_refuse(pass, n, f.effect ? KILN_REASON_guard_effect : KILN_REASON_guard_not_proven,
                       kiln_arena_str(pass->scratch, why->name).data);
      end_region(&f);
    }
    if (!f.region.pass) begin_region(&f, g, n, &before, write);
    if (alone || f.region.symbols != g->symbols) end_region(&f); /* what follows has symbols */
    before.count = 0;
  }
  end_region(&f);
}

kiln_status *kiln_pass_guard_regions(kiln_pass *pass) {
  guarder g = {.pass = pass};
  kiln_symbols symbols = {.types = pass->graph->types, .history = pass->graph->history};
  if (symbols.history) {
    symbols.from_one = symbols.history->from_one;
    g.symbols = &symbols;
  }
  g.claims = kiln_map_in(pass->scratch);
  g.proven = kiln_map_in(pass->scratch);
  set_aside(&g, pass->graph->top);
  if (!g.has_group) return NULL;
  if (g.symbols) {
    const bool torch = pass->env->flags.compat == KILN_COMPAT_TORCH;
    const kiln_map none = kiln_map_in(pass->scratch);
    kiln__symbols_begin(&symbols, pass, torch ? &none : &g.claims);
  }
  mark_effects(kiln_pass_alias(pass), pass->graph->top);
  guard_block(&g, pass->graph->top);
  return NULL;
}
