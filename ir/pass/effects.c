/* effects.c: pass `effects`: an analysis that prints which nodes may change an attribute of an
 * object that the graph did not make itself.
 *
 * Such are: a prim::SetAttr of it; a read of an attribute whose memory something in the graph may
 * write (by alias analysis); a call that cannot be looked into. Two calls of a method without such
 * nodes may run on one instance at the same time (jit/effects.h). */
#include "ir/pass.h"

/* NULL: it changes none. */
static const char *effect_of(const kiln_alias *alias, const kiln_node *node) {
  switch (node->op ? node->op->id : -1) {
    case KILN_OP_prim_SetAttr: {
      const kiln_node *object = kiln_node_input(node, 0)->node;
      return kiln_node_is(object, KILN_OP_prim_CreateObject) ? NULL : "sets an attribute";
    }
    case KILN_OP_prim_CallMethod:
    case KILN_OP_prim_CallFunction: return "calls what cannot be looked into";
    case KILN_OP_prim_GetAttr:
      return kiln_alias_has_writers(alias, kiln_node_output(node, 0))
                 ? "reads an attribute whose memory is written"
                 : NULL;
    default: return NULL;
  }
}

/* Whether there are any; `text` NULL: looks no further than the first. */
static bool find_effects(const kiln_alias *alias, const kiln_block *block, kiln_text *text) {
  bool any = false;
  for (const kiln_node *n = block->first; n && (text || !any); n = n->next) {
    const char *effect = effect_of(alias, n);
    if (effect) any = true;
    if (effect && text) {
      const kiln_str name = kiln_node_str(n, "name");
      kiln_text_printf(text, "# effects: " KILN_STR_FMT "%s" KILN_STR_FMT " %s\n",
                       KILN_STR_ARG(n->name), name.len ? " " : "", KILN_STR_ARG(name), effect);
    }
    for (int i = 0; i < n->block_count; i++) any |= find_effects(alias, n->blocks[i], text);
  }
  return any;
}

bool kiln_graph_writes_attributes(const kiln_alias *alias, const kiln_graph *graph) {
  return find_effects(alias, graph->top, NULL);
}

kiln_status *kiln_pass_effects(kiln_pass *pass) {
  if (!pass->report) return NULL;
  if (!find_effects(kiln_pass_alias(pass), pass->graph->top, pass->report)) {
    kiln_text_puts(pass->report, "# effects: none\n");
  }
  return NULL;
}
