/* cost.h: what a method would cost on given inputs, by propagation of shapes; for api/cost*.c. */
#ifndef KILN_API_COST_H
#define KILN_API_COST_H

#include "api/internal.h"
#include "ir/cost.h"

/* Finds types of the node's results by a run on zeros, where its inputs are known and it may be run
 * (cost_probe.c); gives what the run failed with. Inside the graph's scope. */
kiln_status *kiln__cost_probe(kiln_call *call, kiln_graph *graph, kiln_node *node);

#endif
