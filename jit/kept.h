/* kept.h: between the passes hoist_constants, keep_constants and fuse_groups: what may be computed
 * once, of weights and constants alone, and kept (runtime/kept.h). */
#pragma once

#include "ir/pass.h"

/* Whether the operator's results depend on its arguments alone, and are tensors that are worth
 * keeping: of known sizes, without a gradient, and not much larger than what they are made of. */
bool kiln__is_keepable(const kiln_node *n);
/* Whether a view or a list: what it gives may be its argument's memory. */
bool kiln__may_share(const kiln_node *n);

/* Whether it is a weight, or will be kept as one (keep_constants.c): made by some operators of
 * weights and constants, as a weight of a given length is. */
bool kiln__is_made_of_weights(const kiln_ir_value *v);

/* Values of a block that somebody may see, and so write, who is neither a group nor an operator of
 * the block with results of its own; `seen` maps them to themselves. */
void kiln__find_seen(kiln_block *block, kiln_map *seen);
