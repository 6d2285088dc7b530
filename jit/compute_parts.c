/* compute_parts.c: pass `compute_parts`: parts of images are slices, and what is computed of images
 * that are joined is computed of each before.
 *
 *   a, b = split(x, [48, 48], 1)            a = x[:, :48]; b = x[:, 48:]
 *   y = cat([conv(a), conv(b)], 1)     to   c = relu(batch_norm(conv(a), w[:48], ..))
 *   z = relu(batch_norm(y, w, ..))          d = relu(batch_norm(conv(b), w[48:], ..))
 *                                           z = cat([c, d], 1)
 *
 * A slice goes into the group that reads it (sink_views.c), where it costs nothing; and what stands
 * behind a convolution is computed by its kernel, which may then write its part of z where z is
 * (place_parts.c). Not under KILN_COMPAT=torch. */
#include <string.h>

#include "codegen/codegen.h"
#include "jit/convolution.h"
#include "jit/fusion.h"
#include "jit/norm.h"

enum { MOST_PARTS = 64 };

/* Where the parts of a dimension end. */
typedef struct parts {
  int count;
  int64_t dim;
  int64_t ends[MOST_PARTS];
} parts;

static const kiln_tensor_detail *floats_of(const kiln_ir_value *v) {
  if (!kiln_type_is_tensor(v->type) || !kiln_type_has_dims(v->type)) return NULL;
  const kiln_tensor_detail *d = v->type->detail;
  return kiln_dtype_is_float((kiln_dtype)d->dtype) && d->requires_grad != 1 && d->undefined != 1
             ? d
             : NULL;
}

static bool find_dim(const kiln_ir_value *dim, int rank, int64_t *out_dim) {
  if (!kiln_ir_value_const_int(dim, out_dim)) return false;
  if (*out_dim < 0) *out_dim += rank;
  return *out_dim >= 0 && *out_dim < rank;
}

/* x[begin:end] along `dim`, before `anchor`. */
static kiln_ir_value *insert_slice(kiln_node *anchor, kiln_ir_value *x, int64_t dim, int64_t begin,
                                   int64_t end, const kiln_type *type) {
  kiln_node *slice = kiln_node_create_like(anchor, KILN_OP_slice_Tensor);
  kiln_node_insert_before(slice, anchor);
  kiln_node_add_input(slice, x);
  kiln_node_add_input(slice, kiln_insert_int_before(slice, dim));
  kiln_node_add_input(slice, kiln_insert_int_before(slice, begin));
  kiln_node_add_input(slice, kiln_insert_int_before(slice, end));
  kiln_node_add_input(slice, kiln_insert_int_before(slice, 1));
  return kiln_node_add_output(slice, type);
}

/* -- Splits -- */

static bool add_part(parts *p, int64_t size, int64_t all) {
  const int64_t begin = p->count ? p->ends[p->count - 1] : 0;
  if (p->count == MOST_PARTS || size < 1 || size > all - begin) return false;
  p->ends[p->count++] = begin + size;
  return true;
}

/* The parts of a split by constants, which are all of the dimension. */
static bool find_split(kiln_pass *pass, const kiln_node *n, parts *out) {
  const bool by_size = kiln_node_is(n, KILN_OP_split_Tensor);
  int64_t size;
  *out = (parts){0};
  if (!by_size && !kiln_node_is(n, KILN_OP_split_sizes) &&
      !kiln_node_is(n, KILN_OP_split_with_sizes))
    return false;
  const kiln_type *type = kiln_node_input(n, 0)->type;
  if (!kiln_type_is_tensor(type) || !kiln_type_has_dims(type) ||
      !find_dim(kiln_node_input(n, 2), type->detail->rank, &out->dim))
    return false;
  const int64_t all = type->detail->sizes[out->dim];
  if (!kiln_dim_is_number(all)) return false;
  if (by_size) {
    bool fits = kiln_ir_value_const_int(kiln_node_input(n, 1), &size) && size > 0;
    for (int64_t at = 0; fits && at < all; at += size)
      fits = add_part(out, size < all - at ? size : all - at, all);
    return fits && out->count > 0;
  }
  const kiln_shape_list *sizes = kiln_shape_ints_of(pass->scratch, kiln_node_input(n, 1));
  for (int i = 0; sizes && i < sizes->count; i++)
    if (!sizes->known[i] || !add_part(out, sizes->ints[i], all)) return false;
  return out->count > 0 && out->ends[out->count - 1] == all;
}

/* Whether the user reads parts of the list that are there. */
static bool takes_parts(const kiln_use *use, int count) {
  int64_t at;
  if (kiln_node_is(use->user, KILN_OP_prim_ListUnpack)) return use->user->output_count == count;
  return kiln_node_is(use->user, KILN_OP___getitem___t) && use->index == 0 &&
         kiln_ir_value_const_int(kiln_node_input(use->user, 1), &at) && at >= -count && at < count;
}

static bool open_split(kiln_pass *pass, kiln_node *n, parts *p) {
  if (!find_split(pass, n, p)) return false;
  const kiln_ir_value *list = n->outputs[0];
  for (const kiln_use *use = list->uses; use; use = use->next)
    if (!takes_parts(use, p->count)) return false;
  while (list->uses) {
    kiln_node *user = list->uses->user;
    int64_t first = 0;
    if (kiln_node_is(user, KILN_OP___getitem___t)) {
      (void)kiln_ir_value_const_int(kiln_node_input(user, 1), &first);
      if (first < 0) first += p->count;
    }
    for (int i = 0; i < user->output_count; i++) {
      kiln_ir_value *old = user->outputs[i];
      const int64_t part = first + i;
      if (!old->uses) continue;
      kiln_ir_value *made = insert_slice(n, kiln_node_input(n, 0), p->dim,
                                         part ? p->ends[part - 1] : 0, p->ends[part], old->type);
      if (old->name.len > 0) kiln_ir_value_set_name(made, old->name);
      kiln_ir_value_replace_uses(old, made);
    }
    kiln_node_destroy(user);
  }
  kiln_node_destroy(n);
  return true;
}

/* -- What stands behind a join -- */

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

/* A convolution's result, or what is made of it element by element. */
static bool is_of_convolution(const kiln_ir_value *v) {
  enum { MOST_MAPS = 8 };
  for (int i = 0; i < MOST_MAPS && is_map(v->node); i++) v = kiln_node_input(v->node, 0);
  return v->node->op && kiln_codegen_convolves(v->node->op);
}

/* Images of convolutions that are joined along their channels, for this node alone. */
static bool find_join(kiln_ir_value *v, const kiln_node *user, parts *out) {
  const kiln_tensor_detail *d = kiln_node_is(v->node, KILN_OP_cat) ? floats_of(v) : NULL;
  *out = (parts){0};
  if (!d || d->rank < 3 || !is_own(v, user) || !kiln_dim_is_number(d->sizes[1]) ||
      !find_dim(kiln_node_input(v->node, 1), d->rank, &out->dim) || out->dim != 1)
    return false;
  const kiln_node *list = kiln_node_input(v->node, 0)->node;
  if (!kiln_node_is(list, KILN_OP_prim_ListConstruct) || !is_own(list->outputs[0], v->node))
    return false;
  for (int i = 0; i < list->input_count; i++) {
    const kiln_ir_value *part = kiln_node_input(list, i);
    const kiln_tensor_detail *p = floats_of(part);
    if (!p || p->dtype != d->dtype || p->rank != d->rank || !kiln_dim_is_number(p->sizes[1]) ||
        !is_own(part, list) || !is_of_convolution(part) || !add_part(out, p->sizes[1], d->sizes[1]))
      return false;
  }
  return out->count > 1 && out->ends[out->count - 1] == d->sizes[1];
}

/* Which dimension of an operand goes along the channels of an image of `rank`; -1: none does, it is
 * one number; -2: it is something else. */
static int channels_of(const kiln_ir_value *v, const kiln_node *n, int rank, int64_t channels) {
  if (!kiln_type_is_tensor(v->type)) return -1;
  if (!kiln_type_has_dims(v->type)) return -2;
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
    kiln_map_set_ptr(&values, v, insert_slice(n, v, at, begin, end, type));
  }
  kiln_node *copy = kiln_node_copy(n->graph, n, &values);
  kiln_node_insert_before(copy, n);
  copy->outputs[0]->type = part->type;
  return copy->outputs[0];
}

static bool raise_map(kiln_pass *pass, kiln_node *n, parts *p) {
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

static void visit_block(kiln_pass *pass, kiln_block *block, parts *p) {
  for (kiln_node *n = block->last, *before; n; n = before) { /* what reads a list goes with it */
    for (int b = 0; b < n->block_count; b++) visit_block(pass, n->blocks[b], p);
    before = n->prev;
    pass->changed |= open_split(pass, n, p);
  }
  for (kiln_node *n = block->first, *next; n; n = next) {
    next = n->next;
    pass->changed |= raise_map(pass, n, p);
  }
}

kiln_status *kiln_pass_compute_parts(kiln_pass *pass) {
  if (pass->env->flags.compat == KILN_COMPAT_TORCH) return NULL;
  visit_block(pass, pass->graph->top, KILN_NEW(pass->scratch, parts));
  if (pass->changed) kiln_pass_forget_alias(pass);
  return NULL;
}
