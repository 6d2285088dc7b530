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

/* The view, of the group's own value, in the place of its input. */
static void put_view(kiln_pass *pass, kiln_graph *body, const kiln_node *view, int output,
                     kiln_ir_value *source, kiln_ir_value *input) {
  kiln_node *first = body->top->first;
  kiln_map map = kiln_map_in(pass->scratch);
  kiln_map_set_ptr(&map, kiln_node_input(view, 0), source);
  for (int i = 1; i < view->input_count; i++)
    kiln_node_insert_before(kiln_node_copy(body, kiln_node_input(view, i)->node, &map), first);
  kiln_node *copy = kiln_node_copy(body, view, &map);
  kiln_node_insert_before(copy, first);
  kiln_ir_value_replace_uses(input, copy->outputs[output]);
}

static void sink(kiln_pass *pass, const kiln_node *view, int output, kiln_node *group, int input) {
  kiln_graph *body = kiln_node_graph(group, "Subgraph");
  kiln_ir_value *source = take_input(group, kiln_node_input(view, 0));
  put_view(pass, body, view, output, source, kiln_graph_input(body, input));
  kiln_block_remove_input(body->top, input);
  kiln_node_remove_input(group, input);
}

static bool is_lowered(kiln_pass *pass, const kiln_graph *body) {
  const int inputs = kiln_graph_input_count(body), outputs = kiln_graph_output_count(body);
  kiln_ir_value **values = KILN_NEW_ARRAY(pass->scratch, kiln_ir_value *, inputs + outputs + 1);
  for (int i = 0; i < inputs; i++) values[i] = kiln_graph_input(body, i);
  for (int i = 0; i < outputs; i++) values[inputs + i] = kiln_graph_output(body, i);
  return kiln_codegen_can_lower_values(values, inputs, values + inputs, outputs,
                                       (kiln_factor_type)pass->env->flags.matmul,
                                       kiln_arena_mem(pass->scratch)) == KILN_REASON_none;
}

/* Whether the group can still be lowered with the view in it, as a copy of it tells: it may have
 * been formed without since it could not. */
static bool takes(kiln_pass *pass, const kiln_node *view, const kiln_node *group) {
  const kiln_ir_value *from = kiln_node_input(view, 0);
  kiln_graph *body = kiln_graph_copy(kiln_node_graph(group, "Subgraph"),
                                     kiln_arena_mem(pass->scratch), pass->graph->types);
  kiln_cleanup releasing;
  kiln_ir_value *source = NULL;
  kiln_graph_defer(body, &releasing);
  for (int i = 0; i < group->input_count; i++)
    if (kiln_node_input(group, i) == from) source = kiln_graph_input(body, i);
  if (!source) source = kiln_graph_add_input(body, NULL, from->type);
  source->weight = kiln_ir_value_is_weight(from);
  for (int i = group->input_count - 1; i >= 0; i--) {
    const kiln_ir_value *v = kiln_node_input(group, i);
    if (v->node != view) continue;
    put_view(pass, body, view, v->index, source, kiln_graph_input(body, i));
    kiln_block_remove_input(body->top, i);
  }
  const bool good = is_lowered(pass, body);
  kiln_scope_undefer(&releasing);
  kiln_graph_release(body);
  return good;
}
static bool all_take(kiln_pass *pass, const kiln_node *view) {
  kiln_map asked = kiln_map_in(pass->scratch);
  for (int i = 0; i < view->output_count; i++) {
    for (const kiln_use *use = view->outputs[i]->uses; use; use = use->next) {
      if (kiln_map_find_ptr(&asked, use->user)) continue;
      kiln_map_set_ptr(&asked, use->user, use->user);
      if (!takes(pass, view, use->user)) return false;
    }
  }
  return true;
}

/* From the end on: a view of a view goes first. */
static void visit(kiln_pass *pass, kiln_block *block) {
  bool any = false;
  for (kiln_node *n = block->last, *prev; n; n = prev) {
    prev = n->prev;
    for (int b = 0; b < n->block_count; b++) visit(pass, n->blocks[b]);
    if (!all_read_in_place(block, n) || !is_view(pass, n) || !all_take(pass, n)) continue;
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
