/* internal.h: what the files of ir/ share with each other. */
#pragma once

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

/* -- shape.c -- */

/* The rank is known, and all sizes are numbers. */
bool kiln__shape_static(int rank, const kiln_dim *sizes);

/* -- attr.c -- */

/* Sets an attribute to a value that the graph owns already. */
void kiln__node_set_owned(kiln_node *node, const char *name, kiln_ivalue value);

/* -- literal_print.c -- */

/* A constant as attributes show it; kiln__literal_parse reads it back. At the top level booleans
 * are 0 and 1. */
void kiln__literal_print(kiln_text *text, kiln_ivalue value);
/* The same where no type stands by it that tells a tensor's dtype and sizes. */
void kiln__literal_print_untyped(kiln_text *text, kiln_ivalue value);
/* A double with 17 digits and a point, as PyTorch prints it: "1.0000000000000001e-05", "3.". */
void kiln__print_double(kiln_text *text, double value);

/* -- print.c -- */

void kiln__value_print(kiln_text *text, const kiln_ir_value *value); /* "%x.1" */
