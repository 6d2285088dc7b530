/* remove_list_mutation.c: pass `remove_list_mutation`: lists that grow by append become lists that
 * are made once, and again for whoever reads them in between:
 *
 *   l = [x]; l.append(y); a = cat(l); l.append(z); b = l[1]   becomes   a = cat([x, y]); b = [x, y,
 * z][1]
 *
 * That holds while the list is appended to in its own block and else only read, by operators that
 * give nobody another way to it. What comes first that is neither, a store, a loop that appends,
 * gets the list that there is then, which stays the one that it is from there on. A list that is
 * read again and again while it grows would be copied as often: MAX_ITEMS ends that. */
#include "ir/pass.h"

#include <stdlib.h>

enum { MAX_ITEMS = 4096 }; /* of all the lists that are made of one */

typedef struct list_use {
  kiln_node *at, *user; /* of the list's block: the user, or where it stands in; and the user */
  int index;
} list_use;

/* The node of the block that the user is or stands in; NULL: none. */
static kiln_node *find_in(const kiln_block *block, kiln_node *user) {
  while (user && user->block != block) user = user->block ? user->block->owner : NULL;
  return user;
}

static int compare_uses(const void *a, const void *b) {
  const list_use *x = a, *y = b;
  if (x->at == y->at) return x->index - y->index;
  const kiln_node *ret = x->at->block->ret;
  if (x->at == ret || y->at == ret) return x->at == ret ? 1 : -1;
  return kiln_node_is_before(x->at, y->at) ? -1 : 1;
}

typedef struct growing {
  kiln_pass *pass;
  kiln_node *list;
  kiln_map *lists; /* that were made of others, and stay */
  KILN_VEC(kiln_ir_value *) items;
  kiln_ir_value *now; /* a list of all items; NULL: none is made yet */
  int made;           /* items of those that were */
} growing;

/* The list of all items, made before that node. */
static kiln_ir_value *list_before(growing *g, kiln_node *at) {
  if (g->now) return g->now;
  kiln_node *list = kiln_node_create_like(g->list, KILN_OP_prim_ListConstruct);
  for (int i = 0; i < g->items.count; i++) kiln_node_add_input(list, g->items.data[i]);
  if (at == at->block->ret)
    kiln_node_append(at->block, list);
  else
    kiln_node_insert_before(list, at);
  kiln_map_set_ptr(g->lists, list, list);
  g->made += g->items.count;
  g->now = kiln_node_add_output(list, kiln_node_output(g->list, 0)->type);
  return g->now;
}

static bool is_append(const growing *g, const list_use *use) {
  return use->at == use->user && use->index == 0 && kiln_node_is(use->user, KILN_OP_append_t) &&
         !kiln_node_output(use->user, 0)->uses &&
         kiln_node_input(use->user, 1) != kiln_node_output(g->list, 0);
}

/* All uses up to the first that is no append and no read; then all that are left. */
static void follow(growing *g, const list_use *uses, int count) {
  bool grows = true;
  for (int i = 0; i < count; i++) {
    const list_use *use = &uses[i];
    grows = grows && g->made <= MAX_ITEMS;
    if (grows && is_append(g, use)) {
      kiln_vec_push(g->pass->scratch, &g->items, kiln_node_input(use->user, 1));
      g->now = NULL;
      kiln_node_destroy(use->user);
      continue;
    }
    grows = grows && kiln_shape_only_reads(use->user, use->index);
    kiln_node_set_input(use->user, use->index, list_before(g, use->at));
  }
}

static void visit_list(kiln_pass *pass, kiln_node *list, kiln_map *made) {
  const kiln_ir_value *v = kiln_node_output(list, 0);
  KILN_VEC(list_use) uses = {0};
  growing g = {.pass = pass, .list = list, .lists = made};
  for (const kiln_use *use = v->uses; use; use = use->next) {
    const list_use found = {find_in(list->block, use->user), use->user, use->index};
    if (!found.at) return;
    kiln_vec_push(pass->scratch, &uses, found);
  }
  if (uses.count == 0) return;
  qsort(uses.data, (size_t)uses.count, sizeof *uses.data, compare_uses);
  int reads = 0; /* before the first append */
  while (reads < uses.count && !is_append(&g, &uses.data[reads]) &&
         kiln_shape_only_reads(uses.data[reads].user, uses.data[reads].index))
    reads++;
  if (reads == uses.count || !is_append(&g, &uses.data[reads])) return;
  for (int i = 0; i < list->input_count; i++)
    kiln_vec_push(pass->scratch, &g.items, kiln_node_input(list, i));
  follow(&g, uses.data, uses.count);
  kiln_node_destroy(list);
  pass->changed = true;
}

static void visit_block(kiln_pass *pass, kiln_block *block, kiln_map *made) {
  for (kiln_node *n = block->first, *next; n; n = next) {
    next = n->next;
    for (int b = 0; b < n->block_count; b++) visit_block(pass, n->blocks[b], made);
    if (!kiln_node_is(n, KILN_OP_prim_ListConstruct) || kiln_map_find_ptr(made, n)) continue;
    while (next && kiln_node_is(next, KILN_OP_append_t)) next = next->next; /* which may go */
    visit_list(pass, n, made);
  }
}

kiln_status *kiln_pass_remove_list_mutation(kiln_pass *pass) {
  kiln_map made = kiln_map_in(pass->scratch);
  visit_block(pass, pass->graph->top, &made);
  if (pass->changed) kiln_pass_forget_alias(pass);
  return NULL;
}
