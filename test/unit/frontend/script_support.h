/* script_support.h: archives of one source file, loaded; and graphs written as their structure:
 * operators in order, blocks in braces: "gt If{neg -> 1|exp -> 1}". Constants are left out. */
#pragma once

#include <stdlib.h>

#include "frontend/torchscript/torchscript.h"
#include "test/unit/frontend/archive_support.h"

typedef struct script {
  kiln_env *env;
  kiln_registry *registry;
  kiln_torchscript *model;
  char *text;        /* of the last show */
  const char *lacks; /* an operator that the tables do not have, or NULL */
} script;

static inline int script_setup(void **state) {
  script *s = calloc(1, sizeof *s);
  assert_ok(kiln_env_create(NULL, &s->env));
  assert_ok(kiln_registry_create(s->env, &s->registry));
  /* The structures that are expected stand on these operators' result types. */
  static const char *const needed[] = {"aten::gt.int",        "aten::lt.int",  "aten::add.int",
                                       "aten::add.str",       "aten::__is__",  "aten::len.t",
                                       "aten::__getitem__.t", "aten::append.t"};
  for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
    if (!kiln_registry_find_exact(s->registry, kiln_str_from(needed[i]))) s->lacks = needed[i];
  }
  *state = s;
  return 0;
}

static inline void script_drop(script *s) {
  kiln_torchscript_destroy(s->model);
  s->model = NULL;
}

static inline int script_teardown(void **state) {
  script *s = *state;
  script_drop(s);
  kiln_registry_destroy(s->registry);
  kiln_env_destroy(s->env);
  free(s->text);
  free(s);
  return 0;
}

static archive_builder script_archive;

/* An archive whose root is an object of class M without attributes. */
static inline void script_build(const char *code) {
  static const char root[] = "\x80\x02"
                             "c__torch__\nM\n)\x81}b.",
                    none[] = "\x80\x02).";
  memset(&script_archive, 0, sizeof script_archive);
  archive_add_bytes(&script_archive, "t/data.pkl", root, sizeof root - 1);
  archive_add(&script_archive, "t/code/__torch__.py", code);
  archive_add_bytes(&script_archive, "t/constants.pkl", none, sizeof none - 1);
  archive_add(&script_archive, "t/version", "3\n");
  archive_finish(&script_archive);
}

static inline kiln_status *script_load(script *s, const kiln_torchscript_options *options) {
  script_drop(s);
  kiln_mapping *mapping = NULL;
  KILN_TRY(kiln_mapping_wrap(s->env->mem, script_archive.bytes, script_archive.size, &mapping));
  kiln_status *status = kiln_torchscript_load(s->env, s->registry, mapping, options, &s->model);
  kiln_owner_release(&mapping->owner);
  return status;
}

/* Loads class M with the given body of a class. */
static inline kiln_status *script_compile(script *s, const char *code) {
  script_build(code);
  return script_load(s, NULL);
}

static inline void show_block(kiln_text *out, const kiln_block *block) {
  bool first = true;
  for (const kiln_node *n = block->first; n; n = n->next) {
    if (kiln_node_is(n, KILN_OP_prim_Constant)) continue;
    const char *name = n->name.data + 6; /* without aten:: or prim:: */
    kiln_text_printf(out, "%s%.*s", first ? "" : " ", (int)n->name.len - 6, name);
    first = false;
    for (int b = 0; b < n->block_count; b++) {
      kiln_text_puts(out, b == 0 ? "{" : "|");
      show_block(out, n->blocks[b]);
    }
    if (n->block_count) kiln_text_puts(out, "}");
    const kiln_attr *sub = kiln_node_attr(n, "Subgraph");
    if (sub) {
      kiln_text_puts(out, "<");
      show_block(out, sub->u.graph->top);
      kiln_text_puts(out, ">");
    }
  }
  if (block->owner) {
    kiln_text_printf(out, "%s->%d", first ? "" : " ", kiln_block_output_count(block));
  }
}

/* The structure of a function's graph, which must verify. */
static inline const char *script_show(script *s, const char *qualname) {
  const kiln_function *function = kiln_unit_find_function(s->model->unit, kiln_str_from(qualname));
  assert_non_null(function);
  assert_non_null(function->graph);
  assert_ok(kiln_graph_verify(function->graph));
  kiln_text text = kiln_text_in(s->model->unit->arena);
  show_block(&text, function->graph->top);
  free(s->text);
  s->text = strdup(text.data);
  return s->text;
}
