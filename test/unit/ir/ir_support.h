/* ir_support.h: what the tests of ir/ share: a registry, a type table, parsing and printing. */
#ifndef TEST_UNIT_IR_SUPPORT_H
#define TEST_UNIT_IR_SUPPORT_H

#include <stdlib.h>

#include "ir/ir.h"
#include "test/unit/unit.h"

typedef struct fixture {
  kiln_env *env;
  kiln_registry *registry;
  kiln_type_table *types; /* of the test's graphs */
  kiln_arena *arena;      /* for texts */
} fixture;

static inline int fixture_setup(void **state) {
  fixture *f = calloc(1, sizeof *f);
  assert_ok(kiln_env_create(NULL, &f->env));
  assert_ok(kiln_registry_create(f->env, &f->registry));
  assert_ok(kiln_type_table_create(f->env->mem, kiln_registry_types(f->registry), &f->types));
  assert_ok(kiln_arena_create(f->env->mem, &f->arena));
  *state = f;
  return 0;
}

/* Everything must have been given back: the environment's memory counts. */
static inline int fixture_teardown(void **state) {
  fixture *f = *state;
  kiln_arena_destroy(f->arena);
  kiln_type_table_destroy(f->types);
  kiln_registry_destroy(f->registry);
  kiln_env_destroy(f->env);
  free(f);
  return 0;
}

static inline kiln_graph *parse(fixture *f, const char *text) {
  kiln_graph *graph;
  assert_ok(kiln_graph_parse(f->env->mem, f->registry, f->types, kiln_str_from(text), &graph));
  return graph;
}

/* In the fixture's arena. */
static inline const char *print(fixture *f, const kiln_graph *graph, bool ranges) {
  kiln_text text = kiln_text_in(f->arena);
  kiln_graph_print(&text, graph, 3, ranges);
  return text.data;
}

/* The value of that name ("x.1" or "5") anywhere in the graph but its subgraphs. */
static inline kiln_ir_value *find_in(const kiln_node *node, const char *name) {
  char number[16];
  for (int i = 0; i < node->output_count; i++) {
    kiln_ir_value *v = node->outputs[i];
    snprintf(number, sizeof number, "%u", v->id);
    if (v->name.len ? kiln_str_is(v->name, name) : strcmp(number, name) == 0) return v;
  }
  return NULL;
}
static inline kiln_ir_value *find_in_block(const kiln_block *block, const char *name) {
  kiln_ir_value *v = find_in(block->param, name);
  for (const kiln_node *n = block->first; n && !v; n = n->next) {
    v = find_in(n, name);
    for (int b = 0; b < n->block_count && !v; b++) v = find_in_block(n->blocks[b], name);
  }
  return v;
}
static inline kiln_ir_value *value(const kiln_graph *graph, const char *name) {
  kiln_ir_value *v = find_in_block(graph->top, name);
  if (!v) print_error("no value %%%s\n", name);
  assert_non_null(v);
  return v;
}

#endif
