/* cost.h: what a method would cost on given inputs, by propagation of shapes; for api/cost*.c. */
#ifndef KILN_API_COST_H
#define KILN_API_COST_H

#include "api/internal.h"
#include "kiln/debug.h"

/* Costs of the nodes of a graph whose types say what is known (cost_count.c). Inside arena runs of
 * the graph and of `arena`. */
typedef struct kiln__cost_row {
  kiln_str name;
  uint64_t count, flops, bytes, unknown;
} kiln__cost_row;

typedef struct kiln__cost {
  kiln_arena *arena;
  kiln_map rows; /* full name -> kiln__cost_row */
  kiln_debug_cost total;
} kiln__cost;

void kiln__cost_count(kiln__cost *cost, const kiln_graph *graph);
/* Bytes of the tensors that operators make and that live at the same time, at most
 * (cost_memory.c). */
uint64_t kiln__cost_peak(kiln_arena *arena, const kiln_graph *graph);
/* Finds types of the node's results by a run on zeros, where its inputs are known and it may be run
 * (cost_probe.c); gives what the run failed with. Inside arena runs of the graph. */
kiln_status *kiln__cost_probe(kiln_call *call, kiln_graph *graph, kiln_node *node);
/* Elements and bytes of a value, when its type is complete; false otherwise. */
bool kiln__cost_sizes(const kiln_ir_value *value, uint64_t *out_numel, uint64_t *out_bytes);

#endif
