/* bytecode.h: from a graph to a plan.
 *
 * Registers. Every value of the graph has a register from its definition to its last use; the
 * operand that is the last use moves the value out, so a tensor's memory returns at once. A value
 * whose last use lies in a branch of an If dies in the branch that uses it, and at the start of the
 * other. Registers of dead values are given to later ones. */
#pragma once

#include "guards/guards.h"
#include "ir/unit.h"
#include "runtime/plan.h"

/* On a prim::Constant of type Function, or a prim::fork: the kiln_callable that it stands for
 * (fallbacks, subgraphs). */
#define KILN_ATTR_CALLABLE "callable"

/* What the emitter asks its maker for. Everything is borrowed. */
typedef struct kiln_bytecode_env {
  kiln_env *env;
  const char *name;       /* of the plan; copied */
  kiln_type_table *types; /* of the model: element types of containers that the plan makes */
  void *user;
  /* The callable of a script function; NULL: calls are KILN_UNSUPPORTED. */
  kiln_status *(*callable)(void *user, kiln_function *function, const kiln_callable **out);
  /* The compiled kernel of a prim::TensorExprGroup, which runs where `guard` holds (NULL: always),
   * memory in `arena`; or, where it has none, what interprets its operators. */
  kiln_status *(*group)(void *user, const kiln_node *node, const kiln_guard_desc *guard,
                        kiln_arena *arena, kiln_group *out, const kiln_callable **out_interpreted);
  kiln_guard_maker guards; /* makes those of the plan */
  /* Asked before the plan starts in place of all the graph's checks, whose other sides the plan
   * then does not have; NULL: none. */
  const kiln_guard_desc *guard;
  /* Whether a place has warned, atomic; it outlives the plan. NULL: every time. */
  bool *(*warned)(void *user, const kiln_source_range *range);
  const kiln_method_lookup *methods;
  kiln_profile_sink *sink; /* of a profiling plan, else NULL */
  bool quantised;          /* operators that know nothing of quantised tensors refuse them */
  bool structured;         /* the same of sparse and nested tensors */
  bool timed;              /* instructions have times */
} kiln_bytecode_env;

/* Records are numbered in the order of kiln_profile_each (profiler/profile.h). The plan needs
 * nothing of the graph. */
kiln_status *kiln_bytecode_emit(const kiln_graph *graph, const kiln_bytecode_env *env,
                                kiln_plan **out_plan) KILN_MUST_USE;
