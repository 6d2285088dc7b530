/* cost.h: what the nodes of a graph cost, as far as their types say sizes: floating-point
 * operations, bytes made, and how many bytes live at once. */
#ifndef KILN_IR_COST_H
#define KILN_IR_COST_H

#include "ir/ir.h"
#include "kiln/debug.h"

/* All nodes of one operator. */
typedef struct kiln_cost_row {
  kiln_str name;
  uint64_t count, flops, bytes, unknown;
} kiln_cost_row;

typedef struct kiln_cost {
  kiln_arena *arena;
  kiln_map rows; /* full name -> kiln_cost_row */
  kiln_debug_cost total;
} kiln_cost;

/* Adds the graph's nodes to `cost`, whose arena and map are set. Inside a run of that arena. */
void kiln_cost_count(kiln_cost *cost, const kiln_graph *graph);
/* Bytes of the tensors that operators make and that live at the same time, at most. Inside a run of
 * `arena`. */
uint64_t kiln_cost_peak(kiln_arena *arena, const kiln_graph *graph);
/* Elements and bytes of a value; false where its type does not say them. */
bool kiln_cost_sizes(const kiln_ir_value *value, uint64_t *out_numel, uint64_t *out_bytes);

#endif
