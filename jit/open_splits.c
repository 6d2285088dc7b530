/* open_splits.c: pass `open_splits`: parts of a split or chunk are slices, where types tell how
 * many there are.
 *
 *   a, b = split(x, [48, 48], 1)      to      a = x[:, :48]; b = x[:, 48:]
 *
 * A slice goes into the group that reads it (sink_views.c), where it costs nothing. Behind a guard,
 * for of an x of other sizes the parts are others, or the split raises. Not under
 * KILN_COMPAT=torch. */
#include "jit/fusion.h"
#include "jit/parts.h"

/* Parts of one size, the last of which may be smaller. */
static bool cut_evenly(kiln__parts *p, int64_t size, int64_t all) {
  for (int64_t at = 0; at < all; at += size)
    if (!kiln__add_part(p, size < all - at ? size : all - at, all)) return false;
  return p->count > 0;
}

/* The parts of a split by constants, which are all of the dimension. */
static bool find_split(kiln_pass *pass, const kiln_node *n, kiln__parts *out) {
  const bool by_size = kiln_node_is(n, KILN_OP_split_Tensor);
  int64_t size;
  *out = (kiln__parts){0};
  if (!by_size && !kiln_node_is(n, KILN_OP_split_sizes) &&
      !kiln_node_is(n, KILN_OP_split_with_sizes))
    return false;
  const kiln_type *type = kiln_node_input(n, 0)->type;
  if (!kiln_type_is_tensor(type) || !kiln_type_has_dims(type) ||
      !kiln__find_dim(kiln_node_input(n, 2), type->detail->rank, &out->dim))
    return false;
  const int64_t all = type->detail->sizes[out->dim];
  if (!kiln_dim_is_number(all)) return false;
  if (by_size) {
    return kiln_ir_value_const_int(kiln_node_input(n, 1), &size) && size > 0 &&
           cut_evenly(out, size, all);
  }
  const kiln_shape_list *sizes = kiln_shape_ints_of(pass->scratch, kiln_node_input(n, 1));
  for (int i = 0; sizes && i < sizes->count; i++)
    if (!sizes->known[i] || !kiln__add_part(out, sizes->ints[i], all)) return false;
  return out->count > 0 && out->ends[out->count - 1] == all;
}

/* Whether the user reads parts of the list that are there. */
static bool takes_parts(const kiln_use *use, int count) {
  int64_t at;
  if (kiln_node_is(use->user, KILN_OP_prim_ListUnpack)) return use->user->output_count == count;
  return kiln_node_is(use->user, KILN_OP___getitem___t) && use->index == 0 &&
         kiln_ir_value_const_int(kiln_node_input(use->user, 1), &at) && at >= -count && at < count;
}

/* x[begin:end] takes the place of a part. */
static void replace_part(kiln_node *n, const kiln__parts *p, int64_t part, kiln_ir_value *old) {
  if (!old->uses) return;
  kiln_ir_value *begin = kiln_insert_int_before(n, part ? p->ends[part - 1] : 0);
  kiln_ir_value *end = kiln_insert_int_before(n, p->ends[part]);
  kiln_ir_value *made = kiln__insert_slice(n, kiln_node_input(n, 0), p->dim, begin, end, old->type);
  if (old->name.len > 0) kiln_ir_value_set_name(made, old->name);
  kiln_ir_value_replace_uses(old, made);
}

/* The parts of prim::ConstantChunk, which are its outputs. */
static bool open_chunk(kiln_node *n, kiln__parts *p) {
  if (!kiln_node_is(n, KILN_OP_prim_ConstantChunk)) return false;
  *p = (kiln__parts){.dim = kiln_node_int(n, "dim", 0)};
  const kiln_type *type = kiln_node_input(n, 0)->type;
  if (!kiln_type_is_tensor(type) || !kiln_type_has_dims(type)) return false;
  const int rank = type->detail->rank;
  if (p->dim < 0) p->dim += rank;
  const int64_t all = p->dim < 0 || p->dim >= rank ? KILN_DIM_UNKNOWN : type->detail->sizes[p->dim];
  const int64_t chunks = kiln_node_int(n, "chunks", 0);
  if (!kiln_dim_is_number(all) || all < 1 || chunks < 1) return false;
  if (!cut_evenly(p, (all - 1) / chunks + 1, all) || p->count != n->output_count) return false;
  for (int i = 0; i < n->output_count; i++) replace_part(n, p, i, n->outputs[i]);
  kiln_node_destroy(n);
  return true;
}

static bool open_split(kiln_pass *pass, kiln_node *n, kiln__parts *p) {
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
    for (int i = 0; i < user->output_count; i++) replace_part(n, p, first + i, user->outputs[i]);
    kiln_node_destroy(user);
  }
  kiln_node_destroy(n);
  return true;
}

static void visit_block(kiln_pass *pass, kiln_block *block, kiln__parts *p) {
  for (kiln_node *n = block->last, *before; n; n = before) { /* what reads a list goes with it */
    for (int b = 0; b < n->block_count; b++) visit_block(pass, n->blocks[b], p);
    before = n->prev;
    pass->changed |= open_split(pass, n, p) || open_chunk(n, p);
  }
}

kiln_status *kiln_pass_open_splits(kiln_pass *pass) {
  if (pass->env->flags.compat == KILN_COMPAT_TORCH) return NULL;
  visit_block(pass, pass->graph->top, KILN_NEW(pass->scratch, kiln__parts));
  if (pass->changed) kiln_pass_forget_alias(pass);
  return NULL;
}
