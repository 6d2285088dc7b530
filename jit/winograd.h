/* winograd.h: which groups run their convolution by Winograd's kernels; between groups.c and
 * winograd.c. */
#pragma once

#include "codegen/codegen.h"
#include "runtime/plan.h"

/* Whether the group's convolution runs so, and how. */
bool kiln__winograd_choose(kiln_env *env, const kiln_graph *body, kiln_group_winograd *out);
/* The graph of what is left of such a group, whose last input is the convolution's result; in the
 * arena of `body`. */
kiln_graph *kiln__winograd_rest(kiln_graph *body, kiln_arena *scratch);
/* Whether the kernel of what is left can go over rows in place; fills in how. */
bool kiln__winograd_fits(kiln_group_winograd *winograd, const kiln_kernel_info *info);
