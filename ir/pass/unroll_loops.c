/* unroll_loops.c: pass `unroll_loops`: a short loop that runs a known number of times becomes its
 * steps, one after the other:
 *
 *   for i in range(3): x = relu(x * w[i])
 *
 * becomes three products, which one kernel computes without x in memory in between, with w[0], w[1]
 * and w[2] known; `l.append(x)` becomes a list that is made once, and its stack(l) a part of that
 * kernel. A loop is a border for groups.
 *
 * It pays where steps are short. Products, sums and functions take as long unrolled, and their code
 * takes longer to compile: of 8 steps of tanh in one kernel each waits for the one before, and it
 * took twice as long as eight kernels. Loops that have such, whose condition is computed, or whose
 * steps raise, stay; MOST_NODES bounds what becomes of a loop (loops in it come first), MOST_GROWTH
 * what becomes of a graph's. */
#include "ir/pass.h"

enum { MOST_TRIPS = 64, MOST_NODES = 256, MOST_GROWTH = 2048 };

typedef struct unroller {
  kiln_pass *pass;
  int64_t growth; /* that is left */
} unroller;

/* Whether it is little beside what a loop takes for a step. */
static bool is_light(const kiln_node *n) {
  if (!n->op) return false;
  switch (n->op->cost) {
    case KILN_COST_free:
    case KILN_COST_metadata:
    case KILN_COST_view:
    case KILN_COST_data: return true;
    case KILN_COST_pointwise: return !(n->op->flags & KILN_OP_FUNCTION);
    default: return false;
  }
}

/* How many nodes a step has; more than MOST_NODES: too many, or some that are not light. */
static int64_t count_nodes(const kiln_block *block) {
  int64_t count = 0;
  for (const kiln_node *n = block->first; n && count <= MOST_NODES; n = n->next) {
    count += is_light(n) ? 1 : MOST_NODES + 1;
    for (int b = 0; b < n->block_count; b++) count += count_nodes(n->blocks[b]);
  }
  return count;
}

/* Whether all that a step gives is read, by the next step or behind the loop: what nobody reads of
 * the first steps would be removed, with its complaints. */
static bool hands_all_on(const kiln_node *loop) {
  for (int i = 0; i < loop->output_count; i++)
    if (!loop->outputs[i]->uses || !kiln_block_input(loop->blocks[0], 1 + i)->uses) return false;
  return true;
}

/* How often the loop runs, which is worth its growth; 0: it stays. */
static int64_t find_trips(const unroller *u, const kiln_node *loop, int64_t *growth) {
  int64_t trips;
  if (!kiln_loop_is_counted(loop) || kiln_block_raises(loop->blocks[0]) || !hands_all_on(loop) ||
      !kiln_ir_value_const_int(kiln_node_input(loop, 0), &trips) || trips < 1 || trips > MOST_TRIPS)
    return 0;
  *growth = count_nodes(loop->blocks[0]) * trips;
  return *growth <= MOST_NODES && *growth <= u->growth ? trips : 0;
}

static void copy_step(kiln_node *loop, kiln_map *map) {
  for (const kiln_node *n = loop->blocks[0]->first; n; n = n->next)
    kiln_node_insert_before(kiln_node_copy(loop->graph, n, map), loop);
}

static void unroll(const unroller *u, kiln_node *loop, int64_t trips) {
  kiln_block *body = loop->blocks[0];
  const int count = loop->output_count;
  kiln_ir_value **carried = KILN_NEW_ARRAY(u->pass->scratch, kiln_ir_value *, count);
  for (int i = 0; i < count; i++) carried[i] = kiln_node_input(loop, 2 + i);
  kiln_map map = kiln_map_in(u->pass->scratch);
  for (int64_t trip = 0; trip < trips; trip++) {
    kiln_ir_value *counter = kiln_insert_int_before(loop, trip);
    kiln_map_set_ptr(&map, kiln_block_input(body, 0), counter);
    for (int i = 0; i < count; i++)
      kiln_map_set_ptr(&map, kiln_block_input(body, 1 + i), carried[i]);
    copy_step(loop, &map);
    for (int i = 0; i < count; i++) {
      kiln_ir_value *next = kiln_block_output(body, 1 + i);
      kiln_ir_value *copy = kiln_map_find_ptr(&map, next);
      carried[i] = copy ? copy : next;
    }
  }
  for (int i = 0; i < count; i++) kiln_ir_value_replace_uses(kiln_node_output(loop, i), carried[i]);
  kiln_node_destroy(loop);
}

static void visit_block(unroller *u, kiln_block *block) {
  for (kiln_node *n = block->first, *next; n; n = next) {
    int64_t growth;
    next = n->next;
    for (int b = 0; b < n->block_count; b++) visit_block(u, n->blocks[b]);
    if (!kiln_node_is(n, KILN_OP_prim_Loop)) continue;
    const int64_t trips = find_trips(u, n, &growth);
    if (trips == 0) continue;
    unroll(u, n, trips);
    u->growth -= growth;
    u->pass->changed = true;
  }
}

kiln_status *kiln_pass_unroll_loops(kiln_pass *pass) {
  unroller u = {pass, MOST_GROWTH};
  visit_block(&u, pass->graph->top);
  if (pass->changed) kiln_pass_forget_alias(pass);
  return NULL;
}
