/* place_parts.c: pass `place_parts`: groups write their parts of a join where the joined image is.
 *
 *   a = g1(x)                      y1 = g1(x)          writes channels 0 to 47 of new memory
 *   b = g2(x)               to     y2 = g2(x, y1)      writes channels 48 to 95 of y1's
 *   y = cat([a, b], 1)
 *
 * In g2 stands slice_scatter(y1, b, 1, 48, 96), in g1 the same of new_empty: what each computes is
 * still a value of its inputs, and the interpreter can run it. That only the part is written, in
 * memory that nobody else has, is how its kernel does it (kiln_codegen_place). A part that others
 * read too is copied into its place by a group of its own. */
#include "codegen/codegen.h"
#include "guards/guards.h"
#include "jit/fusion.h"
#include "jit/heavy.h"

enum { MOST_PIECES = 64 };

typedef struct piece {
  kiln_ir_value *value;
  int64_t begin, end;
  bool is_placed; /* what makes it writes it where it will be */
} piece;

typedef struct joined {
  kiln_node *group;
  int64_t dim;
  int count;
  piece pieces[MOST_PIECES]; /* those that are placed first, in the order in which they are made */
} joined;

/* -- What is joined -- */

/* The group's only operator, if that joins its inputs; else NULL. */
static const kiln_node *find_cat(const kiln_node *group) {
  const kiln_graph *body = kiln_node_graph(group, "Subgraph");
  const kiln_node *cat = NULL, *list = NULL;
  for (const kiln_node *n = body->top->first; n; n = n->next) {
    if (kiln_node_is(n, KILN_OP_cat) && !cat)
      cat = n;
    else if (kiln_node_is(n, KILN_OP_prim_ListConstruct) && !list)
      list = n;
    else if (!kiln_node_is(n, KILN_OP_prim_Constant))
      return NULL;
  }
  const bool joins = cat && list && kiln_node_input(cat, 0)->node == list &&
                     kiln_graph_output_count(body) == 1 &&
                     kiln_graph_output(body, 0) == cat->outputs[0];
  for (int i = 0; joins && i < list->input_count; i++)
    if (kiln_node_input(list, i)->node != body->top->param) return NULL;
  return joins ? cat : NULL;
}

/* But for zeros around. */
static bool lies_alike(const kiln_type *a, const kiln_type *b) {
  const int x = a->detail->physical, y = b->detail->physical;
  return x == y || (kiln_physical_is_channels_last(x) && kiln_physical_is_channels_last(y));
}

/* Whether the core's kernel would compute the part there, too: of numbers for sizes; and rows of a
 * product lie evenly. */
static bool may_place_heavy(const kiln_graph *body, const kiln_group_heavy *heavy,
                            const kiln_type *whole) {
  for (int i = 0; i < kiln_graph_input_count(body); i++) {
    const kiln_type *type = kiln_graph_input(body, i)->type;
    if (kiln_type_is_tensor(type) && !kiln_type_is_complete_tensor(type)) return false;
  }
  return kiln_type_is_complete_tensor(whole) && (heavy->pack.transform == KILN_TRANSFORM_WINOGRAD ||
                                                 !kiln_physical_border(whole->detail->physical));
}

/* Whether the group that makes the part may write it into the whole, of that type. */
static bool may_place(const kiln_pass *pass, const kiln_block *block, const kiln_ir_value *v,
                      const kiln_type *whole) {
  const kiln_node *group = v->node;
  kiln_group_heavy heavy;
  kiln_place place;
  if (!kiln_node_is_group(group) || group->block != block || v->use_count != 1 ||
      kiln_ir_value_is_weight(v) || !lies_alike(v->type, whole))
    return false;
  const kiln_graph *body = kiln_node_graph(group, "Subgraph");
  const kiln_ir_value *own = kiln_graph_output(body, v->index);
  return own->node != body->top->param && !kiln_codegen_place(body, v->index, &place) &&
         kiln_graph_input_count(body) + kiln_graph_output_count(body) < KILN_GROUP_VALUES &&
         (!kiln__heavy_choose(pass->env, body, kiln__heavy_weights(group), &heavy) ||
          may_place_heavy(body, &heavy, whole));
}

/* By where their groups stand, behind which are those that are copied. */
static bool comes_before(const piece *a, const piece *b) {
  if (a->is_placed != b->is_placed) return a->is_placed;
  return a->is_placed && a->value->node->mark < b->value->node->mark;
}

static void add_piece(joined *j, piece p) {
  int at = j->count++;
  for (; at > 0 && comes_before(&p, &j->pieces[at - 1]); at--) j->pieces[at] = j->pieces[at - 1];
  j->pieces[at] = p;
}

/* A value that is joined several times has no one place. */
static bool is_joined_once(const kiln_node *list, const kiln_ir_value *own) {
  int times = 0;
  for (const kiln_use *use = own->uses; use; use = use->next) times += use->user == list;
  return times == 1;
}

/* Whether the group joins values of which groups can write the larger part where it will be. */
static bool find_joined(const kiln_pass *pass, kiln_node *group, joined *out) {
  const kiln_node *cat = find_cat(group);
  const kiln_type *whole = cat ? group->outputs[0]->type : NULL;
  int64_t at = 0, placed = 0;
  *out = (joined){.group = group};
  if (!whole || !kiln_type_has_dims(whole) || !whole->detail->has_strides ||
      !kiln_ir_value_const_int(kiln_node_input(cat, 1), &out->dim))
    return false;
  if (out->dim < 0) out->dim += whole->detail->rank;
  const kiln_node *list = kiln_node_input(cat, 0)->node;
  if (out->dim < 0 || out->dim >= whole->detail->rank || list->input_count > MOST_PIECES)
    return false;
  for (int i = 0; i < list->input_count; i++) {
    kiln_ir_value *v = kiln_node_input(group, kiln_node_input(list, i)->index);
    const kiln_tensor_detail *d = kiln_type_has_dims(v->type) ? v->type->detail : NULL;
    if (!d || d->rank != whole->detail->rank || d->dtype != whole->detail->dtype ||
        !kiln_dim_is_number(d->sizes[out->dim]))
      return false;
    const int64_t size = d->sizes[out->dim];
    piece p = {
        v, at, at + size,
        is_joined_once(list, kiln_node_input(list, i)) && may_place(pass, group->block, v, whole)};
    for (int k = 0; k < out->count; k++) /* a group has one output there */
      if (out->pieces[k].value->node == v->node) p.is_placed = false;
    if (p.is_placed) placed += size;
    at += size;
    add_piece(out, p);
  }
  return placed > 0 && placed * 2 >= at && at == whole->detail->sizes[out->dim];
}

/* -- Groups that write parts -- */

static kiln_ir_value *append_int(kiln_block *block, int64_t number) {
  return kiln_append_constant(block, kiln_int(number), kiln_type_basic(KILN_TYPE_INT));
}

static kiln_node *append(kiln_graph *body, kiln_op_id id, const kiln_node *like) {
  kiln_node *n = kiln_node_create_id(body, id);
  n->range = like->range;
  kiln_node_append(body->top, n);
  return n;
}

/* Memory of the whole, of which nothing is written: new_empty(part, sizes). */
static kiln_ir_value *append_empty(kiln_graph *body, kiln_ir_value *part, const kiln_type *whole,
                                   const kiln_node *like) {
  const kiln_tensor_detail *d = whole->detail;
  kiln_ir_value *sizes[KILN_MAX_RANK];
  for (int i = 0; i < d->rank; i++) {
    if (kiln_dim_is_number(d->sizes[i])) {
      sizes[i] = append_int(body->top, d->sizes[i]);
      continue;
    }
    kiln_ir_value *number = append_int(body->top, i);
    kiln_node *size = append(body, KILN_OP_size_int, like);
    kiln_node_add_input(size, part);
    kiln_node_add_input(size, number);
    sizes[i] = kiln_node_add_output(size, kiln_type_basic(KILN_TYPE_INT));
  }
  kiln_ir_value *none =
      kiln_append_constant(body->top, kiln_none(), kiln_type_basic(KILN_TYPE_NONE));
  kiln_node *list = append(body, KILN_OP_prim_ListConstruct, like);
  for (int i = 0; i < d->rank; i++) kiln_node_add_input(list, sizes[i]);
  kiln_ir_value *all = kiln_list_give(list, kiln_type_basic(KILN_TYPE_INT));
  kiln_node *made = append(body, KILN_OP_new_empty, like);
  kiln_node_add_input(made, part);
  kiln_node_add_input(made, all);
  for (int i = 0; i < 4; i++) kiln_node_add_input(made, none);
  return kiln_node_add_output(made, whole);
}

/* The group's output becomes the whole, with its part in it and the rest as in `before`. */
static kiln_ir_value *write_piece(const joined *j, const piece *p, kiln_node *group, int output,
                                  kiln_ir_value *before) {
  const kiln_type *whole = j->group->outputs[0]->type;
  kiln_graph *body = kiln_node_graph(group, "Subgraph");
  kiln_ir_value *own = kiln_graph_output(body, output), *rest;
  if (before) {
    rest = kiln_graph_add_input(body, NULL, whole);
    kiln_node_add_input(group, before);
  } else {
    rest = append_empty(body, own, whole, group);
  }
  kiln_ir_value *numbers[] = {append_int(body->top, j->dim), append_int(body->top, p->begin),
                              append_int(body->top, p->end), append_int(body->top, 1)};
  kiln_node *scatter = append(body, KILN_OP_slice_scatter, group);
  kiln_node_add_input(scatter, rest);
  kiln_node_add_input(scatter, own);
  for (int i = 0; i < 4; i++) kiln_node_add_input(scatter, numbers[i]);
  kiln_node_set_input(body->top->ret, output, kiln_node_add_output(scatter, whole));
  group->outputs[output]->type = whole;
  return group->outputs[output];
}

static void place(const joined *j) {
  kiln_ir_value *whole = NULL;
  for (int i = 0; i < j->count; i++) {
    const piece *p = &j->pieces[i];
    kiln_node *group =
        p->is_placed ? p->value->node : kiln__fusion_insert_copy(j->group, p->value, j->group);
    whole = write_piece(j, p, group, p->is_placed ? p->value->index : 0, whole);
  }
  kiln_ir_value *result = j->group->outputs[0];
  kiln_node_remove_all_inputs(j->group);
  if (result->name.len) kiln_ir_value_set_name(whole, result->name);
  kiln_ir_value_replace_uses(result, whole);
  kiln_node_destroy(j->group);
}

/* -- The pass -- */

static void visit(kiln_pass *pass, kiln_block *block, joined *j) {
  uint32_t at = 0;
  for (kiln_node *n = block->first; n; n = n->next) {
    for (int b = 0; b < n->block_count; b++) visit(pass, n->blocks[b], j);
    n->mark = ++at;
  }
  if (!kiln_guards_is_hit(block)) return;
  for (kiln_node *n = block->first, *next; n; n = next) {
    next = n->next;
    if (!kiln_node_is_group(n) || !find_joined(pass, n, j)) continue;
    place(j);
    pass->changed = true;
  }
}

kiln_status *kiln_pass_place_parts(kiln_pass *pass) {
  if (pass->env->flags.compat != KILN_COMPAT_TORCH)
    visit(pass, pass->graph->top, KILN_NEW(pass->scratch, joined));
  return NULL;
}
