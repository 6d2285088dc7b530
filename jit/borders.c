/* borders.c: which values with channels last have zeros around them in memory (part of
 * `assign_layouts`).
 *
 * A convolution of one channel at a time does few operations on each element of its image: where
 * its padding makes zeros around it, copying the image costs as much again; and of a strided one of
 * many channels it costs some twentieth. Where groups alone read the value, through that padding or
 * element by element, the group before writes it into memory that has them. The core's kernels of
 * windows (jit/heavy.h) want images and results without. Small images stay as they are: they are in
 * a near cache, and a kernel that makes all of their pixels in one loop makes them in tiles of a
 * row then. */
#include "codegen/codegen.h"
#include "jit/convolution.h"
#include "jit/heavy.h"
#include "jit/layouts.h"

enum { LEAST_WIDTH = 14, MOST_BORDER = KILN_PHYSICAL__COUNT - 1 - KILN_PHYSICAL_CHANNELS_LAST };

/* Whether its windows go by the core's kernels. */
static bool is_of_core(const kiln_pass *pass, const kiln_node *group) {
  kiln_group_heavy heavy;
  return kiln__heavy_choose(pass->env, kiln_node_graph(group, "Subgraph"),
                            kiln__heavy_weights(group), &heavy) &&
         heavy.pack.transform != KILN_TRANSFORM_BLOCKED;
}

/* How wide the zeros are that the group's convolution wants around its image; 0: it does not. */
static int border_wanted(const kiln_pass *pass, const kiln_node *group, const kiln_node *n) {
  const int64_t groups = kiln__convolution_groups(n);
  if (groups == 0 || kiln__convolution_is_transposed(n)) return 0;
  const kiln_type *w = kiln_node_input(n, 1)->type;
  if (!kiln_type_is_tensor(w) || !kiln_type_is_complete_tensor(w) ||
      !kiln_may_lie_channels_last(w->detail->rank))
    return 0;
  const bool each = w->detail->sizes[1] == 1 && groups == w->detail->sizes[0];
  if (!each && (groups != 1 || kiln__is_of_pixels(w->detail))) return 0;
  int64_t before[3] = {0}, after[3] = {0}, most = 0;
  const int64_t padding = kiln__convolution_number(n, KILN__CONVOLUTION_PADDING);
  (void)kiln_codegen_image(n, pass->scratch, before, after);
  for (int d = 0; d < 3; d++) {
    if (before[d] > most) most = before[d];
    if (after[d] > most) most = after[d];
  }
  const int64_t border = padding + most;
  const bool fits = padding >= 0 && border >= 1 && border <= MOST_BORDER &&
                    kiln__convolution_number(n, KILN__CONVOLUTION_DILATION) == 1;
  return fits && (each || !is_of_core(pass, group)) ? (int)border : 0;
}

static bool may_write_bordered(const kiln_pass *pass, const kiln_node *group) {
  const kiln_graph *body = kiln_node_graph(group, "Subgraph");
  for (const kiln_node *n = body->top->first; n; n = n->next) {
    if (!kiln_codegen_contracts(n->op)) continue;
    const kiln_type *w = kiln_node_input(n, 1)->type;
    if (!kiln_codegen_convolves(n->op) || !kiln_type_has_dims(w)) return false;
  }
  return !is_of_core(pass, group);
}

/* The border that a group which reads the value wants, or a wider one; 0: it reads it as it lies,
 * -1: it takes no border. */
static int border_in(const kiln_pass *pass, const kiln_use *use) {
  const kiln_ir_value *own = kiln_graph_input(kiln_node_graph(use->user, "Subgraph"), use->index);
  int border = 0;
  for (const kiln_use *inside = own->uses; inside; inside = inside->next) {
    const kiln_node *conv = kiln__convolution_of_image(inside, pass->scratch);
    const int wanted = conv ? border_wanted(pass, use->user, conv) : 0;
    if (wanted == 0 && inside->user->op->cost != KILN_COST_pointwise) return -1;
    if (wanted > border) border = wanted;
  }
  return border;
}
/* The widest that groups which read the value want; 0: none. */
static int border_of(const kiln_pass *pass, const kiln_ir_value *v, const kiln_block *block) {
  const kiln_tensor_detail *d = v->type->detail;
  if (!kiln_may_lie_channels_last(d->rank) || d->physical != KILN_PHYSICAL_CHANNELS_LAST ||
      !kiln_type_has_dims(v->type) ||
      (kiln_dim_is_number(d->sizes[d->rank - 1]) && d->sizes[d->rank - 1] < LEAST_WIDTH))
    return 0;
  int border = 0;
  for (const kiln_use *use = v->uses; use; use = use->next) {
    if (use->user->block != block || !kiln_node_is_group(use->user)) return 0;
    const int wanted = border_in(pass, use);
    if (wanted < 0) return 0;
    if (wanted > border) border = wanted;
  }
  return border && may_write_bordered(pass, v->node) ? border : 0;
}

static void set_border(kiln_pass *pass, kiln_ir_value *v, int border) {
  kiln_tensor_detail d = *v->type->detail;
  d.physical = (int8_t)(KILN_PHYSICAL_CHANNELS_LAST + border);
  v->type = kiln_type_tensor(pass->graph->types, &d);
}
static void give_border(kiln_pass *pass, kiln_ir_value *v, int border) {
  set_border(pass, v, border);
  set_border(pass, kiln_graph_output(kiln_node_graph(v->node, "Subgraph"), v->index), border);
  for (const kiln_use *use = v->uses; use; use = use->next)
    set_border(pass, kiln_graph_input(kiln_node_graph(use->user, "Subgraph"), use->index), border);
}

void kiln__lay_borders(kiln_pass *pass, kiln_block *block) {
  for (kiln_node *n = block->first; n; n = n->next) {
    if (!kiln_node_is_group(n)) continue;
    for (int i = 0; i < n->output_count; i++) {
      kiln_ir_value *v = n->outputs[i];
      const bool has_type = kiln_type_is_tensor(v->type) && v->type->detail;
      const int border = has_type ? border_of(pass, v, block) : 0;
      if (border) give_border(pass, v, border);
    }
  }
}
