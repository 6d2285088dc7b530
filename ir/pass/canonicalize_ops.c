/* canonicalize_ops.c: pass `canonicalize_ops`: one form where the language has several.
 *
 * `aten::chunk` with constant arguments whose list is only taken apart becomes prim::ConstantChunk,
 * which fusion understands.
 *
 * What shuffles channels by views becomes aten::channel_shuffle, which has a lowering as a whole
 * and leaves channels where they lie:
 *
 *   b, c, h, w = x.size()
 *   x.view(b, groups, c // groups, h, w).transpose(1, 2).contiguous().view(b, c, h, w)
 *
 * The sizes are x's own, so that no type need be known, and nobody writes to the result, which may
 * be x itself where the views have nothing to turn. */
#include "ir/pass.h"

static bool to_constant_chunk(kiln_node *node) {
  if (!kiln_node_is(node, KILN_OP_chunk)) return false;
  int64_t chunks, dim;
  kiln_ir_value *list = kiln_node_output(node, 0);
  if (!kiln_ir_value_const_int(kiln_node_input(node, 1), &chunks) ||
      !kiln_ir_value_const_int(kiln_node_input(node, 2), &dim) || list->use_count != 1) {
    return false;
  }
  KILN_ASSERT(list->uses);
  kiln_node *unpack = list->uses->user;
  if (!kiln_node_is(unpack, KILN_OP_prim_ListUnpack) || unpack->output_count != chunks)
    return false;
  kiln_node *chunk = kiln_node_create_like(node, KILN_OP_prim_ConstantChunk);
  kiln_node_add_input(chunk, kiln_node_input(node, 0));
  kiln_node_set_int(chunk, "chunks", chunks);
  kiln_node_set_int(chunk, "dim", dim);
  kiln_node_insert_before(chunk, node);
  for (int i = 0; i < unpack->output_count; i++) {
    kiln_ir_value *old = kiln_node_output(unpack, i);
    kiln_ir_value *out = kiln_node_add_output(chunk, old->type);
    if (old->name.len > 0) kiln_ir_value_set_name(out, old->name);
    kiln_ir_value_replace_uses(old, out);
  }
  kiln_node_destroy(unpack);
  kiln_node_destroy(node);
  return true;
}

/* -- Channel shuffles -- */

/* What made a value that nothing else reads; NULL: another operator. */
static kiln_node *only_maker(const kiln_ir_value *v, kiln_op_id id) {
  return v->use_count == 1 && kiln_node_is(v->node, id) ? v->node : NULL;
}

/* x.size(), taken apart: the node with a result for each dimension. */
static const kiln_node *sizes_of(const kiln_ir_value *size, const kiln_ir_value *x) {
  const kiln_node *unpack = size->node;
  if (!kiln_node_is(unpack, KILN_OP_prim_ListUnpack)) return NULL;
  const kiln_node *source = kiln_node_input(unpack, 0)->node;
  return kiln_node_is(source, KILN_OP_size) && kiln_node_input(source, 0) == x ? unpack : NULL;
}

/* Whether the list is [sizes 0, (groups, sizes 1 // groups), sizes 2, ..]: x's sizes, with the
 * channels in groups or not. */
static bool is_sizes(const kiln_ir_value *list, const kiln_node *sizes,
                     const kiln_ir_value *groups) {
  const kiln_node *made = only_maker(list, KILN_OP_prim_ListConstruct);
  const int more = groups != NULL, rank = sizes->output_count;
  if (!made || made->input_count != rank + more) return false;
  for (int d = 0; d < rank; d++) {
    const kiln_ir_value *v = kiln_node_input(made, d + (d > 0 ? more : 0));
    const kiln_node *by = v->node;
    const bool divided = d == 1 && groups;
    if (divided && !kiln_node_is(by, KILN_OP_floordiv_int)) return false;
    if (divided && kiln_node_input(by, 1) != groups) return false;
    if ((divided ? kiln_node_input(by, 0) : v) != kiln_node_output(sizes, d)) return false;
  }
  return !groups || kiln_node_input(made, 1) == groups;
}

/* Whether the node turns dimensions 1 and 2 of `rank`. */
static bool turns_groups(const kiln_node *turn, int rank) {
  int64_t a, b;
  if (!kiln_ir_value_const_int(kiln_node_input(turn, 1), &a) ||
      !kiln_ir_value_const_int(kiln_node_input(turn, 2), &b))
    return false;
  if (a < 0) a += rank;
  if (b < 0) b += rank;
  return (a == 1 && b == 2) || (a == 2 && b == 1);
}

/* A shuffle: its nodes from the one before the last on, of which `copy` may be NULL. */
typedef struct shuffle {
  kiln_node *copy, *turn, *cut;
  kiln_ir_value *x, *groups;
  int rank;
} shuffle;

/* Whether the node ends one. */
static bool find_shuffle(const kiln_node *last, shuffle *s) {
  enum { LEAST_RANK = 3 }; /* of channel_shuffle */
  int64_t format, groups;
  if (!kiln_node_is(last, KILN_OP_view) && !kiln_node_is(last, KILN_OP_reshape)) return false;
  *s = (shuffle){0};
  const kiln_ir_value *whole = kiln_node_input(last, 0);
  s->copy = only_maker(whole, KILN_OP_contiguous);
  if (!s->copy && kiln_node_is(last, KILN_OP_view)) return false;
  if (s->copy) {
    if (!kiln_ir_value_const_int(kiln_node_input(s->copy, 1), &format) || format != 0) return false;
    whole = kiln_node_input(s->copy, 0);
  }
  s->turn = only_maker(whole, KILN_OP_transpose_int);
  if (!s->turn) return false;
  s->cut = only_maker(kiln_node_input(s->turn, 0), KILN_OP_view);
  if (!s->cut) s->cut = only_maker(kiln_node_input(s->turn, 0), KILN_OP_reshape);
  if (!s->cut) return false;
  s->x = kiln_node_input(s->cut, 0);
  const kiln_node *list = kiln_node_input(s->cut, 1)->node;
  if (!kiln_node_is(list, KILN_OP_prim_ListConstruct) || list->input_count <= LEAST_RANK)
    return false;
  s->groups = kiln_node_input(list, 1);
  const kiln_node *sizes = sizes_of(kiln_node_input(list, 0), s->x);
  s->rank = sizes ? sizes->output_count : 0;
  return sizes && kiln_ir_value_const_int(s->groups, &groups) && groups >= 1 &&
         turns_groups(s->turn, s->rank + 1) &&
         is_sizes(kiln_node_input(s->cut, 1), sizes, s->groups) &&
         is_sizes(kiln_node_input(last, 1), sizes, NULL);
}

/* With its list: it would raise by its data, so dce would leave it. */
static void destroy_view(kiln_node *view) {
  kiln_node *list = kiln_node_input(view, 1)->node;
  kiln_node_destroy(view);
  kiln_node_destroy(list);
}

static bool to_channel_shuffle(kiln_pass *pass, kiln_node *last) {
  shuffle s;
  if (!find_shuffle(last, &s)) return false;
  kiln_ir_value *old = kiln_node_output(last, 0);
  if (kiln_alias_has_writers(kiln_pass_alias(pass), old)) return false;
  kiln_node *made = kiln_node_create_like(last, KILN_OP_shuffle_groups);
  kiln_node_add_input(made, s.x);
  kiln_node_add_input(made, s.groups);
  kiln_ir_value *rank = kiln_insert_int_before(last, s.rank);
  kiln_node_add_input(made, rank);
  kiln_node_insert_before(made, last);
  kiln_ir_value *out = kiln_node_add_output(made, old->type);
  if (old->name.len > 0) kiln_ir_value_set_name(out, old->name);
  kiln_ir_value_replace_uses(old, out);
  destroy_view(last);
  if (s.copy) kiln_node_destroy(s.copy);
  kiln_node_destroy(s.turn);
  destroy_view(s.cut);
  return true; /* dce takes the sizes */
}

static void visit_block(kiln_pass *pass, kiln_block *block) {
  for (kiln_node *n = block->first, *next; n; n = next) {
    for (int b = 0; b < n->block_count; b++) visit_block(pass, n->blocks[b]);
    next = n->next;
    if (!n->op) continue;
    if (to_channel_shuffle(pass, n)) {
      pass->changed = true;
      continue;
    }
    /* The unpack that goes with the chunk may be the next node. */
    bool next_is_user = next && n->output_count == 1 && kiln_node_output(n, 0)->uses &&
                        kiln_node_output(n, 0)->uses->user == next;
    kiln_node *after = next_is_user ? next->next : next;
    if (to_constant_chunk(n)) {
      next = after;
      pass->changed = true;
    }
  }
}

kiln_status *kiln_pass_canonicalize_ops(kiln_pass *pass) {
  visit_block(pass, pass->graph->top);
  return NULL;
}
