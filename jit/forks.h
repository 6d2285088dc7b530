/* forks.h: which forked functions may run beside the frame that forks them (forks.c). */
#pragma once

#include "ir/pass.h"
#include "runtime/plan.h"

/* For a fork of `graph`; `alias` is the graph's. `inlined`: the forked function. Where calls are
 * not inlined in one of them, it is not known to be harmless. In a run of the scratch arena. */
kiln_fork_flag kiln__fork_purity(kiln_arena *scratch, const kiln_graph *graph,
                                 const kiln_alias *alias, const kiln_node *fork,
                                 const kiln_graph *inlined);
