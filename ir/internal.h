/* internal.h: what the files of ir/ share with each other. */
#ifndef KILN_IR_INTERNAL_H
#define KILN_IR_INTERNAL_H

#include "ir/ir.h"

/* -- graph.c -- */

/* A value that is not an output of anything yet, with the graph's next id. */
kiln_ir_value *kiln__value_create(kiln_graph *graph, const kiln_type *type);
/* An empty block; its pseudo nodes stand in it. */
kiln_block *kiln__block_create(kiln_graph *graph, kiln_node *owner);

/* -- value.c -- */

/* Forgets the value's name, so that the graph may use it again. */
void kiln__value_drop_name(kiln_ir_value *value);

/* -- node.c -- */

/* Puts `value` at the end of the node's outputs. */
void kiln__node_push_output(kiln_node *node, kiln_ir_value *value);

/* -- copy.c -- */

/* A copy in progress: `values` maps old to new. With `ranges`, source ranges are copied too (old to
 * new); `exact` keeps names and ids as they are. */
typedef struct kiln__copier {
  kiln_graph *to;
  const kiln_graph *from;
  kiln_map *values;
  kiln_map *ranges;
  bool exact;
} kiln__copier;

/* -- shape*.c -- */

/* The result is as argument 0: in-place variants. */
bool kiln__shape_self(struct kiln_shape_query *query);

#endif
