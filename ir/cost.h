/* cost.h: FLOPs and bytes of a graph's nodes, as far as their types say sizes: the analysis that
 * the pass `cost` prints. */
#pragma once

#include "ir/ir.h"
#include "kiln/debug.h"

/* All nodes of one operator. */
typedef struct kiln_cost_row {
  kiln_str name;
  uint64_t count, flops, bytes, unknown;
} kiln_cost_row;

typedef struct kiln_cost {
  kiln_arena *arena; /* of rows and names; borrowed */
  kiln_map rows;     /* full name -> kiln_cost_row */
  kiln_debug_cost total;
} kiln_cost;

/* The cost of one run of the graph, in rows of `arena`. */
void kiln_cost_find(kiln_cost *cost, kiln_arena *arena, const kiln_graph *graph);
/* What a group's graph computes, and the bytes of the tensors that go in and out. False where
 * something of it is not known, and missing. */
bool kiln_cost_of_group(kiln_arena *scratch, const kiln_graph *body, uint64_t *out_flops,
                        uint64_t *out_bytes);
/* The same of a node with an operator: nothing, for views and bookkeeping. */
bool kiln_cost_of_node(const kiln_node *node, uint64_t *out_flops, uint64_t *out_bytes);
/* Elements and bytes of a value; false where its type does not say them. */
bool kiln_cost_sizes(const kiln_ir_value *value, uint64_t *out_numel, uint64_t *out_bytes);
/* Bytes of the tensors that operators make and that live at the same time, at most (cost_memory.c,
 * for kiln_cost_find). */
uint64_t kiln__cost_peak(kiln_arena *arena, const kiln_graph *graph);
