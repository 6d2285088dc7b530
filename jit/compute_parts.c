/* compute_parts.c: pass `compute_parts`: what is computed of images that are joined is computed of
 * each before.
 *
 *   y = cat([conv(a, v), conv(b, u)], 1)   to   c = relu(batch_norm(conv(a, v), w[:m], ..))
 *   z = relu(batch_norm(y, w, ..))              d = relu(batch_norm(conv(b, u), w[m:], ..))
 *                                               z = cat([c, d], 1)
 *
 * What stands behind a convolution is computed by its kernel, which may then write its part of z
 * where z is (place_parts.c). No guard stands here yet, and types are what was seen: all that m
 * follows from are weights, which are of one size in all calls. Not under KILN_COMPAT=torch. */
#include <string.h>

#include "codegen/codegen.h"
#include "jit/convolution.h"
#include "jit/fusion.h"
#include "jit/kept.h"
#include "jit/norm.h"
#include "jit/parts.h"

static const kiln_tensor_detail *floats_of(const kiln_ir_value *v) {
  if (!kiln_type_is_tensor(v->type) || !kiln_type_has_dims(v->type)) return NULL;
  const kiln_tensor_detail *d = v->type->detail;
  return kiln_dtype_is_float((kiln_dtype)d->dtype) && d->requires_grad != 1 && d->undefined != 1
             ? d
             : NULL;
}

/* Batch norm that does not train. */
static bool is_norm(const kiln_node *n) {
  return kiln__is_trained_norm(n) && !kiln_node_writes_stats(n);
}

/* Element by element of its first tensors, and of one number or tensor for each channel. */
static bool is_map(const kiln_node *n) {
  if (!n->op || n->output_count != 1 || n->input_count == 0 || n->block_count) return false;
  if (is_norm(n)) return true;
  return n->op->cost == KILN_COST_pointwise && kiln_codegen_has_lowering(n->op) &&
         (n->op->variant == KILN_VARIANT_NONE ||
          (n->op->variant == KILN_VARIANT_COPY && kiln_shape_keeps_self(n)));
}

static bool is_own(const kiln_ir_value *v, const kiln_node *user) {
  return v->use_count == 1 && v->node->block == user->block;
}

/* A convolution's result, or what is made of it element by element; of a weight, which says how
 * many channels it has. */
static bool is_of_convolution(const kiln_ir_value *v) {
  enum { MOST_MAPS = 8 };
  for (int i = 0; i < MOST_MAPS && is_map(v->node); i++) v = kiln_node_input(v->node, 0);
  return v->node->op && kiln_codegen_convolves(v->node->op) &&
         kiln__is_made_of_weights(kiln_node_input(v->node, 1));
}

/* Images of convolutions that are joined along their channels, for this node alone. */
static bool find_join(kiln_ir_value *v, const kiln_node *user, kiln__parts *out) {
  const kiln_tensor_detail *d = kiln_node_is(v->node, KILN_OP_cat) ? floats_of(v) : NULL;
  *out = (kiln__parts){0};
  if (!d || d->rank < 3 || !is_own(v, user) || !kiln_dim_is_number(d->sizes[1]) ||
      !kiln__find_dim(kiln_node_input(v->node, 1), d->rank, &out->dim) || out->dim != 1)
    return false;
  const kiln_node *list = kiln_node_input(v->node, 0)->node;
  if (!kiln_node_is(list, KILN_OP_prim_ListConstruct) || !is_own(list->outputs[0], v->node))
    return false;
  for (int i = 0; i < list->input_count; i++) {
    const kiln_ir_value *part = kiln_node_input(list, i);
    const kiln_tensor_detail *p = floats_of(part);
    if (!p || p->dtype != d->dtype || p->rank != d->rank || !kiln_dim_is_number(p->sizes[1]) ||
        !is_own(part, list) || !is_of_convolution(part) ||
        !kiln__add_part(out, p->sizes[1], d->sizes[1]))
      return false;
  }
  return out->count > 1 && out->ends[out->count - 1] == d->sizes[1];
}

/* Which dimension of an operand goes along the channels of an image of `rank`; -1: none does, it is
 * one number; -2: it is something else, or no weight: other calls may have another. */
static int channels_of(kiln_ir_value *v, const kiln_node *n, int rank, int64_t channels) {
  if (!kiln_type_is_tensor(v->type)) return -1;
  if (!kiln_type_has_dims(v->type) || !kiln__is_made_of_weights(v)) return -2;
  const kiln_tensor_detail *d = v->type->detail;
  const int at = is_norm(n) ? 0 : d->rank - rank + 1;
  for (int i = 0; i < d->rank; i++)
    if (d->sizes[i] != 1 && (i != at || d->sizes[i] != channels)) return -2;
  return at >= 0 && at < d->rank && d->sizes[at] != 1 ? at : -1;
}

static const kiln_type *part_type(const kiln_graph *graph, const kiln_type *type, int dim,
                                  int64_t size) {
  kiln_tensor_detail d = *type->detail;
  kiln_dim sizes[KILN_MAX_RANK];
  memcpy(sizes, d.sizes, sizeof *sizes * (size_t)d.rank);
  sizes[dim] = size;
  d.sizes = sizes;
  return kiln_type_tensor(graph->types, &d);
}

/* The node of one part, before it. */
static kiln_ir_value *insert_map(kiln_pass *pass, kiln_node *n, int joined, kiln_ir_value *part,
                                 int64_t begin, int64_t end) {
  const kiln_ir_value *image = kiln_node_input(n, joined);
  const int rank = image->type->detail->rank;
  kiln_map values = kiln_map_in(pass->scratch);
  kiln_map_set_ptr(&values, image, part);
  for (int i = 0; i < n->input_count; i++) {
    kiln_ir_value *v = kiln_node_input(n, i);
    const int at = i == joined ? -1 : channels_of(v, n, rank, image->type->detail->sizes[1]);
    if (at < 0 || kiln_map_find_ptr(&values, v)) continue;
    const kiln_type *type = part_type(n->graph, v->type, at, end - begin);
    kiln_ir_value *from = kiln_insert_int_before(n, begin), *to = kiln_insert_int_before(n, end);
    kiln_map_set_ptr(&values, v, kiln__insert_slice(n, v, at, from, to, type));
  }
  kiln_node *copy = kiln_node_copy(n->graph, n, &values);
  kiln_node_insert_before(copy, n);
  copy->outputs[0]->type = part->type;
  return copy->outputs[0];
}

static bool raise_map(kiln_pass *pass, kiln_node *n, kiln__parts *p) {
  int joined = 0;
  if (!is_map(n)) return false;
  while (joined < n->input_count && !find_join(kiln_node_input(n, joined), n, p)) joined++;
  if (joined == n->input_count || (joined > 0 && is_norm(n))) return false;
  kiln_ir_value *image = kiln_node_input(n, joined), *result = n->outputs[0];
  if (result->type != image->type || kiln_alias_has_writers(kiln_pass_alias(pass), image) ||
      kiln_alias_has_writers(kiln_pass_alias(pass), result))
    return false;
  const kiln_tensor_detail *d = image->type->detail;
  for (int i = 0; i < n->input_count; i++)
    if (i != joined && channels_of(kiln_node_input(n, i), n, d->rank, d->sizes[1]) == -2)
      return false;
  kiln_node *cat = image->node, *list = kiln_node_input(cat, 0)->node;
  for (int i = 0; i < p->count; i++)
    kiln_node_set_input(
        list, i,
        insert_map(pass, n, joined, kiln_node_input(list, i), i ? p->ends[i - 1] : 0, p->ends[i]));
  kiln_ir_value_replace_uses(result, image);
  kiln_node_detach(list);
  kiln_node_insert_before(list, n);
  kiln_node_detach(cat);
  kiln_node_insert_before(cat, n);
  kiln_node_destroy(n);
  return true;
}

/* -- The pass -- */

static void visit_block(kiln_pass *pass, kiln_block *block, kiln__parts *p) {
  for (kiln_node *n = block->first, *next; n; n = next) {
    for (int b = 0; b < n->block_count; b++) visit_block(pass, n->blocks[b], p);
    next = n->next;
    pass->changed |= raise_map(pass, n, p);
  }
}

kiln_status *kiln_pass_compute_parts(kiln_pass *pass) {
  if (pass->env->flags.compat == KILN_COMPAT_TORCH) return NULL;
  visit_block(pass, pass->graph->top, KILN_NEW(pass->scratch, kiln__parts));
  if (pass->changed) kiln_pass_forget_alias(pass);
  return NULL;
}
