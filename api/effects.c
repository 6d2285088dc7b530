/* effects.c: may a method change the attributes of its instance?
 *
 * Answered on an inlined copy of the method's graph, in which the instance's bool attributes
 * (`training` and its like) are constants that decide branches, by alias analysis: it may when it
 * sets an attribute of anything but an object it made itself, when something writes memory that an
 * attribute may share, or when it calls what cannot be looked into. Asked only when two calls meet
 * on one instance, and kept with the flags that it was asked under. */
#include "api/internal.h"
#include "jit/frozen.h"
#include "jit/pass_run.h"

/* What is looked at, and what it takes. */
typedef struct looking {
  kiln_type_table *types;
  kiln_graph *graph;
  kiln_pass_runner runner;
  kiln__effects *effects; /* in an arena of its own */
} looking;

static bool node_writes(const kiln_alias *alias, const kiln_node *node);

static bool block_writes(const kiln_alias *alias, const kiln_block *block) {
  for (const kiln_node *node = block->first; node; node = node->next) {
    if (node_writes(alias, node)) return true;
  }
  return false;
}

static bool node_writes(const kiln_alias *alias, const kiln_node *node) {
  if (kiln_node_is(node, KILN_OP_prim_SetAttr)) {
    return !kiln_node_is(kiln_node_input(node, 0)->node, KILN_OP_prim_CreateObject);
  }
  if (kiln_node_is(node, KILN_OP_prim_CallMethod) ||
      kiln_node_is(node, KILN_OP_prim_CallFunction)) {
    return true;
  }
  if (kiln_node_is(node, KILN_OP_prim_GetAttr) &&
      kiln_alias_has_writers(alias, kiln_node_output(node, 0))) {
    return true;
  }
  for (int i = 0; i < node->block_count; i++) {
    if (block_writes(alias, node->blocks[i])) return true;
  }
  return false;
}

/* `self`: whose flags hold. */
static kiln_status *look(looking *l, kiln_model *model, kiln_function *function, kiln_ivalue self) {
  kiln_mem *mem = model->context->env->mem;
  kiln_arena *kept = kiln_arena_scoped(mem), *scratch = kiln_arena_scoped(mem);
  kiln__effects *effects = KILN_NEW(kept, kiln__effects);
  KILN_TRY(kiln_unit_ensure(function));
  KILN_TRY(kiln_type_table_create(mem, model->script->unit->types, &l->types));
  l->graph = kiln_graph_copy(function->graph, mem, l->types);
  KILN_TRY(kiln_pass_run(&l->runner, l->graph, KILN_PASS_inline));
  effects->frozen = kiln__freeze_flags(l->graph, self, kept, scratch);
  if (effects->frozen) {
    KILN_TRY(kiln_pass_run(&l->runner, l->graph, KILN_PASS_constant_propagation));
  }
  effects->writes = block_writes(kiln_alias_create(scratch, l->graph), l->graph->top);
  effects->arena = kept;
  kiln_arena_keep(kept);
  l->effects = effects;
  return NULL;
}
static kiln_status *try_look(looking *l, kiln_model *model, kiln_function *function,
                             kiln_ivalue self) {
  KILN_PROTECT(look(l, model, function, self));
}

/* -- What is known -- */

enum { MOST_KNOWN = 16 }; /* settings of the flags, of one method */

/* Where nothing is known of these flags: NULL, and *out_count is how many others are. */
static const kiln__effects *find(const kiln__method *method, kiln_ivalue self, int *out_count) {
  const kiln__effects *e = __atomic_load_n(&method->effects, __ATOMIC_ACQUIRE);
  for (*out_count = 0; e; e = e->next, ++*out_count) {
    if (!e->frozen || kiln__frozen_holds(e->frozen, self)) return e;
  }
  return NULL;
}

bool kiln__method_writes(kiln_model *model, kiln__method *method, kiln_ivalue self) {
  looking l = {0};
  int count;
  const kiln__effects *known = find(method, self, &count);
  if (known) return known->writes;
  if (count >= MOST_KNOWN) return true;
  kiln_status *status = kiln_pass_runner_init(&l.runner, model->context->env);
  if (!status) status = try_look(&l, model, method->function, self);
  kiln_status_destroy(status);
  kiln_pass_runner_deinit(&l.runner);
  kiln_graph_release(l.graph);
  kiln_type_table_destroy(l.types);
  kiln__effects *e = l.effects;
  if (!e) return true; /* not known: the careful answer, and asked again next time */
  e->next = __atomic_load_n(&method->effects, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(&method->effects, &e->next, e, false, __ATOMIC_RELEASE,
                                      __ATOMIC_RELAXED)) {
  }
  return e->writes;
}

void kiln__method_forget(kiln__method *method) {
  for (kiln__effects *e = method->effects, *next; e; e = next) {
    next = e->next;
    kiln_arena_destroy(e->arena);
  }
}
