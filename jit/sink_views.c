/* sink_views.c: pass `sink_views`: views between groups go into the groups that read them.
 *
 *     x1, x2 = chunk(g1, 2)           g2 reads g1 and has the chunk itself,
 *     y = g2(x2)               to     and so has g3: nothing runs in between,
 *     z = g3(x1, y)                   and g1 may lie as the groups like it
 *
 * In a group a view is an index map and costs nothing. */
#include "codegen/codegen.h"
#include "jit/convolution.h"
#include "jit/fusion.h"

/* A view of a tensor by constants, whose elements nobody writes. */
static bool is_view(kiln_pass *pass, kiln_node *n) {
  if (!n->op || n->block_count || n->op->cost != KILN_COST_view || n->input_count == 0 ||
      n->op->variant != KILN_VARIANT_NONE || !kiln_codegen_has_lowering(n->op) ||
      kiln_codegen_can_lower(n) != KILN_REASON_none ||
      !kiln_type_has_dims(kiln_node_input(n, 0)->type))
    return false;
  for (int i = 1; i < n->input_count; i++)
    if (!kiln__fusion_is_inline(kiln_node_input(n, i))) return false;
  for (int i = 0; i < n->output_count; i++) {
    const kiln_ir_value *v = n->outputs[i];
    if (!kiln_type_has_dims(v->type) || kiln_alias_has_writers(kiln_pass_alias(pass), v))
      return false;
  }
  return true;
}

/* Whether the group reads its input in place: contractions but for products of pixels and of single
 * channels may want a copy, or a kernel of the core, which take inputs. */
static bool reads_in_place(const kiln_node *group, int input) {
  const kiln_ir_value *v = kiln_graph_input(kiln_node_graph(group, "Subgraph"), input);
  for (const kiln_use *use = v->uses; use; use = use->next) {
    const kiln_node *n = use->user;
    if (!n->op || !kiln_codegen_contracts(n->op)) continue;
    const kiln_tensor_detail *w =
        n->input_count > 1 && kiln_type_has_dims(kiln_node_input(n, 1)->type)
            ? kiln_node_input(n, 1)->type->detail
            : NULL;
    if (use->index != 0 || !w || w->rank != 4 || kiln__convolution_groups(n) == 0) return false;
    if (w->sizes[1] != 1 && (w->sizes[2] != 1 || w->sizes[3] != 1)) return false;
  }
  return true;
}

static bool all_read_in_place(const kiln_block *block, const kiln_node *view) {
  bool any = false;
  for (int i = 0; i < view->output_count; i++) {
    for (const kiln_use *use = view->outputs[i]->uses; use; use = use->next) {
      any = true;
      if (use->user->block != block || !kiln_node_is_group(use->user) ||
          !reads_in_place(use->user, use->index))
        return false;
    }
  }
  return any;
}

/* The group's own value for one outside, which becomes an input if it is none. */
static kiln_ir_value *take_input(kiln_node *group, kiln_ir_value *v) {
  kiln_graph *body = kiln_node_graph(group, "Subgraph");
  for (int i = 0; i < group->input_count; i++)
    if (kiln_node_input(group, i) == v) return kiln_graph_input(body, i);
  kiln_node_add_input(group, v);
  kiln_ir_value *own = kiln_graph_add_input(body, NULL, v->type);
  own->weight = kiln_ir_value_is_weight(v);
  return own;
}

static void sink(kiln_pass *pass, const kiln_node *view, int output, kiln_node *group, int input) {
  kiln_graph *body = kiln_node_graph(group, "Subgraph");
  kiln_node *first = body->top->first;
  kiln_map map = kiln_map_in(pass->scratch);
  kiln_ir_value *source = kiln_node_input(view, 0), *old = kiln_graph_input(body, input);
  kiln_map_set_ptr(&map, source, take_input(group, source));
  for (int i = 1; i < view->input_count; i++)
    kiln_node_insert_before(kiln_node_copy(body, kiln_node_input(view, i)->node, &map), first);
  kiln_node *copy = kiln_node_copy(body, view, &map);
  kiln_node_insert_before(copy, first);
  kiln_ir_value_replace_uses(old, copy->outputs[output]);
  kiln_block_remove_input(body->top, input);
  kiln_node_remove_input(group, input);
}

/* From the end on: a view of a view goes first. */
static void visit(kiln_pass *pass, kiln_block *block) {
  bool any = false;
  for (kiln_node *n = block->last, *prev; n; n = prev) {
    prev = n->prev;
    for (int b = 0; b < n->block_count; b++) visit(pass, n->blocks[b]);
    if (!all_read_in_place(block, n) || !is_view(pass, n)) continue;
    for (int i = 0; i < n->output_count; i++) {
      while (n->outputs[i]->uses)
        sink(pass, n, i, n->outputs[i]->uses->user, n->outputs[i]->uses->index);
    }
    kiln_node_destroy(n);
    any = true;
  }
  if (!any) return;
  kiln_pass_forget_alias(pass);
  pass->changed = true;
}

kiln_status *kiln_pass_sink_views(kiln_pass *pass) {
  if (pass->env->flags.compat != KILN_COMPAT_TORCH) visit(pass, pass->graph->top);
  return NULL;
}
