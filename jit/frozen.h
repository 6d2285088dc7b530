/* frozen.h: bool attributes of modules (`training` and its like), and ints (the number of heads),
 * strings (a mode), numbers that the model compares (a probability) and Nones (a bias that is not
 * there) that no code of their class sets, as constants of compiled code; and that an optional
 * tensor is there.
 *
 * Scripted layers read their flags at every call, and almost nobody changes them: as constants they
 * decide branches, batch norm becomes pointwise, and x.view(b, t, self.heads, -1) has sizes that
 * are known. What was assumed is compared with the caller's object before every call; a caller
 * whose flags differ has plans of its own (jit/executor.h). Not for KILN_COMPAT=torch. */
#pragma once

#include "ir/ir.h"

typedef struct kiln_frozen kiln_frozen;

/* Replaces reads of such attributes that are reached from `self`, the graph's first input, by what
 * they are now. A graph that calls what cannot be looked into, or sets an attribute of that name,
 * is left alone. Gives what was assumed, in `arena`; NULL when nothing was replaced. `scratch` is
 * empty, and emptied. */
kiln_frozen *kiln__freeze_flags(kiln_graph *graph, kiln_ivalue self, kiln_arena *arena,
                                kiln_arena *scratch);
/* The object has the values that were assumed. */
bool kiln__frozen_holds(const kiln_frozen *frozen, kiln_ivalue self);
