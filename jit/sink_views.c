/* sink_views.c: pass `sink_views`: views between groups go into the groups that read them.
 *
 *     x1, x2 = chunk(g1, 2)           g2 reads g1 and has the chunk itself,
 *     y = g2(x2)               to     and so has g3: nothing runs in between,
 *     z = g3(x1, y)                   and g1 may lie as the groups like it
 *
 * In a group a view is an index map and costs nothing. Channels of an image that Winograd's kernels
 * would read are the exception: those take images, and a group makes one of the channels. Views
 * that are copied go the other way, into the group that they are of, which then writes its elements
 * where the copy would have them: the heads of attention, transpose(g1, 1, 2).reshape(b, t, h * d),
 * beside each other. */
#include "codegen/codegen.h"
#include "jit/convolution.h"
#include "jit/fusion.h"
#include "jit/heavy.h"
#include "runtime/strides.h"

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
    if (use->index != 0 || !w || w->rank < 3 || kiln__convolution_groups(n) == 0) return false;
    if (w->sizes[1] != 1 && !kiln__is_of_pixels(w)) return false;
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
  kiln_node *first = body->top->first ? body->top->first : body->top->ret;
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
  return kiln_codegen_can_lower_group(body, (kiln_factor_type)pass->env->flags.matmul,
                                      kiln_arena_mem(pass->scratch)) == KILN_REASON_none;
}

/* Whether the group can still be lowered with the view in it, as a copy of it tells: it may have
 * been formed without since it could not. Of a convolution that has a kernel with channels last
 * alone that tells nothing; one of many sizes has none that reads a part of an image. */
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
  const bool good =
      is_lowered(pass, body) || (kiln_type_is_complete_tensor(from->type) &&
                                 !is_lowered(pass, kiln_node_graph(group, "Subgraph")));
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

/* -- Channels as images -- */

/* Whether a kernel of the core would read the channels, if they were an image. */
static bool wants_image(const kiln_pass *pass, const kiln_block *block, const kiln_use *use) {
  return pass->env->flags.layouts && use->user->block == block && kiln_node_is_group(use->user) &&
         !reads_in_place(use->user, use->index) &&
         kiln__heavy_wants_channels_last(pass->env, kiln_node_graph(use->user, "Subgraph"));
}

/* Row by row, as the type of what a group makes is. */
static const kiln_type *image_type(kiln_pass *pass, const kiln_type *channels) {
  kiln_tensor_detail d = *channels->detail;
  int64_t strides[KILN_MAX_RANK], step = 1;
  for (int i = d.rank - 1; i >= 0; step *= d.sizes[i--]) strides[i] = step;
  d.strides = strides;
  return kiln_type_tensor(pass->graph->types, &d);
}

/* A group behind the slice that gives its elements, and has the slice itself. */
static kiln_node *insert_image(kiln_pass *pass, kiln_node *reader, kiln_node *slice) {
  kiln_node *group = kiln__fusion_insert_copy(reader, slice->outputs[0], slice->next);
  sink(pass, slice, 0, group, 0);
  group->outputs[0]->type = image_type(pass, slice->outputs[0]->type);
  kiln_graph_output(kiln_node_graph(group, "Subgraph"), 0)->type = group->outputs[0]->type;
  return group;
}

/* Of what a group makes, in numbers: whoever wants an image of some channels reads one. */
static bool make_image(kiln_pass *pass, kiln_block *block, kiln_node *slice) {
  int64_t begin;
  kiln_node *made = NULL;
  if (!kiln_codegen_cuts_channels(slice, &begin) || !is_view(pass, slice)) return false;
  const kiln_node *from = kiln_node_input(slice, 0)->node;
  if (from->block != block || !kiln_node_is_group(from) ||
      !kiln_type_is_complete_tensor(slice->outputs[0]->type))
    return false;
  for (kiln_use *use = slice->outputs[0]->uses, *next; use; use = next) {
    kiln_node *group = use->user;
    const int input = use->index;
    next = use->next;
    if (!wants_image(pass, block, use)) continue;
    if (!made) made = insert_image(pass, group, slice);
    kiln_node_set_input(group, input, made->outputs[0]);
    kiln_graph_input(kiln_node_graph(group, "Subgraph"), input)->type = made->outputs[0]->type;
  }
  return made;
}

/* -- Views that are copied -- */

/* One product: its kernel may be of the core, which writes rows of columns, and gains more. */
static bool is_product(const kiln_node *group) {
  int products = 0;
  for (const kiln_node *n = kiln_node_graph(group, "Subgraph")->top->first; n; n = n->next)
    products += !n->op || !kiln_codegen_contracts(n->op)                ? 0
                : kiln_node_is(n, KILN_OP_scaled_dot_product_attention) ? 2
                                                                        : 1;
  return products == 1;
}

static bool is_only_use(const kiln_ir_value *v) { return v->use_count == 1; }

/* The group of the block that the copy's views are of, whose result nobody else reads; NULL: there
 * is none. Rows of elements stay rows: apart, each would be a store of its own. */
static kiln_node *find_source(kiln_pass *pass, const kiln_node *copy) {
  enum { MOST_VIEWS = 8 };
  if (!kiln_node_is(copy, KILN_OP_reshape) && !kiln_node_is(copy, KILN_OP_contiguous)) return NULL;
  for (int i = 1; i < copy->input_count; i++)
    if (!kiln__fusion_is_inline(kiln_node_input(copy, i))) return NULL;
  const kiln_ir_value *v = kiln_node_input(copy, 0);
  const kiln_tensor_detail *d = v->type->detail;
  if (!kiln_type_is_complete_tensor(v->type) || d->rank == 0 || d->strides[d->rank - 1] != 1 ||
      d->physical || kiln_strides_are_contiguous(&(kiln_strided){d->rank, d->sizes, d->strides}) ||
      !kiln_type_is_complete_tensor(copy->outputs[0]->type) ||
      copy->outputs[0]->type->detail->physical)
    return NULL;
  for (int i = 0; i < MOST_VIEWS && is_only_use(v) && v->node->block == copy->block &&
                  v->node->output_count == 1 && is_view(pass, v->node);
       i++)
    v = kiln_node_input(v->node, 0);
  const bool is_own = is_only_use(v) && v->node->block == copy->block;
  return is_own && kiln_node_is_group(v->node) && !is_product(v->node) ? v->node : NULL;
}

/* What the copy gives, of the group's own values: behind what the group has. */
static kiln_ir_value *append_copy(kiln_pass *pass, kiln_graph *body, const kiln_node *group,
                                  const kiln_node *n) {
  kiln_ir_value *from = kiln_node_input(n, 0);
  kiln_map map = kiln_map_in(pass->scratch);
  kiln_map_set_ptr(&map, from,
                   from->node == group ? kiln_graph_output(body, from->index)
                                       : append_copy(pass, body, group, from->node));
  for (int i = 1; i < n->input_count; i++)
    kiln_node_append(body->top, kiln_node_copy(body, kiln_node_input(n, i)->node, &map));
  kiln_node *copy = kiln_node_copy(body, n, &map);
  kiln_node_append(body->top, copy);
  return copy->outputs[0];
}

/* The result of the group that the views are of. */
static kiln_ir_value *origin_of(const kiln_node *copy, const kiln_node *group) {
  kiln_ir_value *v = kiln_node_input(copy, 0);
  while (v->node != group) v = kiln_node_input(v->node, 0);
  return v;
}

static bool takes_copy(kiln_pass *pass, const kiln_node *copy, const kiln_node *group) {
  kiln_graph *body = kiln_graph_copy(kiln_node_graph(group, "Subgraph"),
                                     kiln_arena_mem(pass->scratch), pass->graph->types);
  kiln_cleanup releasing;
  kiln_graph_defer(body, &releasing);
  kiln_ir_value *result = append_copy(pass, body, group, copy);
  kiln_node_set_input(body->top->ret, origin_of(copy, group)->index, result);
  const bool good = is_lowered(pass, body);
  kiln_scope_undefer(&releasing);
  kiln_graph_release(body);
  return good;
}

/* Whether it went. *next is a node of the block, or NULL, that may go with it: then one before it.
 */
static bool raise_copy(kiln_pass *pass, kiln_node *copy, kiln_node **next) {
  kiln_node *group = find_source(pass, copy);
  if (!group || kiln_alias_has_writers(kiln_pass_alias(pass), copy->outputs[0]) ||
      !takes_copy(pass, copy, group))
    return false;
  kiln_graph *body = kiln_node_graph(group, "Subgraph");
  const int before = origin_of(copy, group)->index;
  kiln_ir_value *own = append_copy(pass, body, group, copy);
  kiln_graph_add_output(body, own);
  kiln_ir_value_replace_uses(copy->outputs[0], kiln_node_add_output(group, own->type));
  for (kiln_node *n = copy; n != group;) {
    kiln_node *from = kiln_node_input(n, 0)->node;
    if (*next == n) *next = n->prev;
    kiln_node_destroy(n);
    n = from;
  }
  kiln_block_remove_output(body->top, before);
  kiln_node_remove_output(group, before);
  return true;
}

/* From the end on: a view of a view goes first. */
static void visit(kiln_pass *pass, kiln_block *block) {
  bool any = false;
  for (kiln_node *n = block->last, *prev; n; n = prev) {
    prev = n->prev;
    for (int b = 0; b < n->block_count; b++) visit(pass, n->blocks[b]);
    if (make_image(pass, block, n)) {
      any = true;
      if (!n->outputs[0]->uses) {
        kiln_node_destroy(n);
        continue;
      }
    }
    if (!all_read_in_place(block, n) || !is_view(pass, n) || !all_take(pass, n)) {
      any |= raise_copy(pass, n, &prev);
      continue;
    }
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
