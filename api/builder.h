/* builder.h: graphs under construction, between builder.c (values), builder_block.c
 * (branches, loops, results), builder_call.c (operators), builder_model.c (text in, model out) and
 * trace.c.
 *
 * A builder owns a unit with one class, __torch__.Graph, and the graph of its `forward`. The
 * graph's types and sizes are never believed beyond what the schemas say: values have plain types,
 * but for constants, whose types are made from them. */
#pragma once

#include "api/internal.h"
#include "ir/match.h"
#include "kiln/kiln_graph.h"

/* A branch or loop that is open. */
typedef struct kiln__open_block {
  kiln_node *node;
  bool is_loop, in_else;
} kiln__open_block;

struct kiln_builder {
  kiln_context *context; /* retained */
  kiln_unit *unit;       /* owned; NULL when the model was taken */
  kiln_class *cls;
  kiln_graph *graph; /* owned */
  kiln_block *block; /* that nodes go to */
  bool returned;
  KILN_VEC(kiln_ir_value *) vars; /* var - 1 -> value; in the unit's arena, as the others */
  KILN_VEC(kiln__open_block) open;
  KILN_VEC(kiln_class_attribute) attributes;
  KILN_VEC(kiln_ivalue) values; /* of the attributes, owned */
};

/* Where a builder stands before a step, and goes back to if the step fails. */
typedef struct kiln__builder_mark {
  kiln_cleanup going_back;
  kiln_builder *b;
  kiln_block *block;
  kiln_node *last;
  int vars, open, outputs;
} kiln__builder_mark;

/* The end of a function: what KILN_PROTECT is for others. On failure nodes, variables and outputs
 * of blocks that `call` made are gone again. KILN_INVALID_ARGUMENT when the builder is empty. */
#define KILN__BUILDER_STEP(b, call)                                                           \
  do {                                                                                        \
    kiln__builder_mark kiln_mark_;                                                            \
    KILN_TRY(kiln__builder_mark_set((b), &kiln_mark_));                                       \
    KILN_PROTECT((kiln__builder_begin(&kiln_mark_), kiln__builder_end(&kiln_mark_, (call)))); \
  } while (0)
kiln_status *kiln__builder_mark_set(kiln_builder *b, kiln__builder_mark *mark) KILN_MUST_USE;
void kiln__builder_begin(kiln__builder_mark *mark);
kiln_status *kiln__builder_end(kiln__builder_mark *mark, kiln_status *status) KILN_MUST_USE;

/* -- For steps -- */

kiln_var kiln__builder_var(kiln_builder *b, kiln_ir_value *value);
/* A new argument of the graph may be called so. */
kiln_status *kiln__builder_check_argument(const kiln_builder *b, const char *name);
/* The value, if it can be used here. */
kiln_status *kiln__builder_value(kiln_builder *b, kiln_var var,
                                 kiln_ir_value **out_value) KILN_MUST_USE;
/* The same of several, in an array of the graph's arena. */
kiln_status *kiln__builder_values(kiln_builder *b, const kiln_var *vars, int count,
                                  kiln_ir_value ***out_values) KILN_MUST_USE;
/* A constant with a copy of `v` (borrowed). */
kiln_status *kiln__builder_constant(kiln_builder *b, kiln_ivalue v,
                                    kiln_ir_value **out_value) KILN_MUST_USE;
/* The node of the call, appended, arguments and results filled in. */
kiln_status *kiln__builder_call(kiln_builder *b, const char *op, kiln_arg *actuals, int count,
                                kiln_node **out_node) KILN_MUST_USE;
/* What a function gives that has these results: None, the one, or a tuple. */
kiln_status *kiln__builder_join(kiln_builder *b, kiln_ir_value *const *values, int count,
                                kiln_ir_value **out_value) KILN_MUST_USE;
/* A value of the host as an actual: a constant. */
kiln_status *kiln__builder_host_actual(kiln_builder *b, const kiln_value *value,
                                       kiln_arg *out_actual) KILN_MUST_USE;
/* The graph's type of a host's value: without sizes, lists and dicts of nothing of tensors. */
const kiln_type *kiln__builder_type_of(kiln_builder *b, kiln_ivalue v);

/* Checks at run time what the block only claims: casts, uninitialised values (builder_harden.c). */
kiln_status *kiln__builder_harden(kiln_builder *b, const kiln_block *block) KILN_MUST_USE;

/* A builder of the same graph and attributes, whose values are shared (builder_model.c). */
kiln_status *kiln__builder_copy(kiln_builder *from, kiln_builder **out_builder) KILN_MUST_USE;

/* -- model.c -- */

/* A model of what `script` (taken, also on failure) holds. */
kiln_status *kiln__model_create(kiln_context *context, kiln_torchscript *script,
                                kiln_model **out_model) KILN_MUST_USE;
