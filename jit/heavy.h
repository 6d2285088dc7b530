/* heavy.h: which groups run their contraction in the core's kernels; between groups.c, layouts.c
 * and heavy.c. */
#pragma once

#include "codegen/codegen.h"
#include "runtime/plan.h"

/* Which inputs of the group nobody writes, a bit each of the first 64. */
uint64_t kiln__heavy_weights(const kiln_node *group);
/* Whether the group's contraction runs so, and how; `weights` as above. */
bool kiln__heavy_choose(kiln_env *env, const kiln_graph *body, uint64_t weights,
                        kiln_group_heavy *out);
/* Whether its contraction would run by Winograd's kernels if its image and its result had channels
 * last. */
bool kiln__heavy_wants_channels_last(kiln_env *env, const kiln_graph *body);
/* Whether a convolution of groups would run so if both had. */
bool kiln__heavy_takes_groups(const kiln_env *env, const kiln_node *conv);
/* The graph of what is left of such a group, whose last input is the contraction's result; in the
 * arena of `body`. */
kiln_graph *kiln__heavy_rest(kiln_graph *body, const kiln_group_heavy *heavy, kiln_arena *scratch);
/* Whether the kernel of what is left can go over rows in place; fills in how. */
bool kiln__heavy_fits(kiln_group_heavy *heavy, const kiln_kernel_info *info);
/* "by Winograd's F4", "in blocks"; in the arena. */
const char *kiln__heavy_name(const kiln_group_heavy *heavy, kiln_arena *arena);
