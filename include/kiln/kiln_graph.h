/* kiln_graph.h: models made by the host: built node by node, read from textual IR, or traced.
 *
 * A kiln_builder is a graph under construction: the method `forward` of a module. Values in it are
 * kiln_var, plain numbers that are valid for their builder. Operators are called by name; arguments
 * are checked against the schemas, with PyTorch's overloads, defaults, keywords and conversions.
 *
 *   kiln_var x, w, y;
 *   status = kiln_builder_input(b, "x", "Tensor", &x);
 *   status = kiln_builder_attribute(b, "w", weight, &w);
 *   status = kiln_builder_call(b, "aten::matmul", (kiln_builder_arg[]){{.var = x}, {.var = w}}, 2,
 *                              &y, 1, NULL);
 *   status = kiln_builder_return(b, &y, 1);
 *   status = kiln_builder_finish(b, &model);
 *
 * A builder and a trace belong to one thread at a time; what is made from them is a model like any
 * other. A function that fails leaves the builder as it was before. Errors are
 * KILN_INVALID_ARGUMENT for what a graph cannot hold, KILN_NOT_FOUND for unknown operators, and
 * those of kiln.h. Ownership and strings are as kiln.h says. */
#ifndef KILN_KILN_GRAPH_H
#define KILN_KILN_GRAPH_H

#include "kiln/kiln.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kiln_builder kiln_builder;
typedef struct kiln_trace kiln_trace;

/* A value of a builder's graph; 0 is none. */
typedef int kiln_var;

/* -- Building -- */

KILN_API kiln_status *kiln_builder_create(kiln_context *context, kiln_builder **out_builder);
/* From the text that kiln_builder_print, `kiln graph` and PyTorch's `print(graph)` give: one graph.
 * Errors are KILN_INVALID_FILE with line and column. Details of tensor types (sizes, dtypes) are
 * read but not believed. A first input of class type is the module. Refused, with KILN_UNSUPPORTED,
 * is what only an executor may say: profiles, guards, groups, calls of other functions. */
KILN_API kiln_status *kiln_builder_parse(kiln_context *context, const char *text, size_t size,
                                         kiln_builder **out_builder);
KILN_API void kiln_builder_destroy(kiln_builder *builder);

/* An argument of the method, of a type as the IR prints it: "Tensor", "int[]", "Tensor?". */
KILN_API kiln_status *kiln_builder_input(kiln_builder *builder, const char *name, const char *type,
                                         kiln_var *out_var);
/* An attribute of the module with its first value (retained), and what it holds here. Instances of
 * the model have it: kiln_instance_get and _set, PyTorch's state. */
KILN_API kiln_status *kiln_builder_attribute(kiln_builder *builder, const char *name,
                                             const kiln_value *value, kiln_var *out_var);
/* What an attribute holds here, and storing to it. */
KILN_API kiln_status *kiln_builder_get(kiln_builder *builder, const char *name, kiln_var *out_var);
KILN_API kiln_status *kiln_builder_set(kiln_builder *builder, const char *name, kiln_var var);
/* A constant; `value` is retained and must not be changed afterwards. */
KILN_API kiln_status *kiln_builder_constant(kiln_builder *builder, const kiln_value *value,
                                            kiln_var *out_var);

/* One argument of a call: a value of the graph, or else a value of the host, which becomes a
 * constant. */
typedef struct kiln_builder_arg {
  const char *name;        /* a keyword, or NULL: positional; those come first */
  kiln_var var;            /* 0: `value` */
  const kiln_value *value; /* borrowed; NULL: None */
} kiln_builder_arg;

/* Calls an operator: "aten::add" by overload resolution, "aten::add.Tensor" that one. Results go to
 * out_vars[0 … max_results), their number to *out_count (may be NULL); more results than there is
 * room for are KILN_INVALID_ARGUMENT. prim::ListConstruct (elements of one type, at least one),
 * prim::TupleConstruct, prim::TupleUnpack and prim::RaiseException (message) too are called so. */
KILN_API kiln_status *kiln_builder_call(kiln_builder *builder, const char *op,
                                        const kiln_builder_arg *args, int count, kiln_var *out_vars,
                                        int max_results, int *out_count);

/* if condition: …; else: …. What is made between _if, _else and _end_if stands in the branches,
 * and cannot be used outside: results are handed over, as many by each side, of types that join.
 * A branch that is never closed makes _return and _finish fail. */
KILN_API kiln_status *kiln_builder_if(kiln_builder *builder, kiln_var condition);
KILN_API kiln_status *kiln_builder_else(kiln_builder *builder, const kiln_var *results, int count);
KILN_API kiln_status *kiln_builder_end_if(kiln_builder *builder, const kiln_var *results, int count,
                                          kiln_var *out_vars);
/* A loop of at most `max_trip` rounds (an int; 0: no limit), while the condition holds (a bool; 0:
 * true). `carried` values have their first values here and new ones each round: *out_iteration (may
 * be NULL) and out_carried are what the body sees. _end_loop gives the next condition (0: true) and
 * the next values; out_vars are the last ones. Types must stay as they are. */
KILN_API kiln_status *kiln_builder_loop(kiln_builder *builder, kiln_var max_trip,
                                        kiln_var condition, const kiln_var *carried, int count,
                                        kiln_var *out_iteration, kiln_var *out_carried);
KILN_API kiln_status *kiln_builder_end_loop(kiln_builder *builder, kiln_var condition,
                                            const kiln_var *next, int count, kiln_var *out_vars);

/* What the method returns: None, a value, or several as a tuple. Once, last. */
KILN_API kiln_status *kiln_builder_return(kiln_builder *builder, const kiln_var *vars, int count);

/* -- Looking -- */

/* The type of a value as the IR prints it; borrowed until the builder is destroyed. NULL for no
 * such value. */
KILN_API const char *kiln_builder_type(kiln_builder *builder, kiln_var var);
/* KILN_INVALID_ARGUMENT with the complaint. _finish does it too. */
KILN_API kiln_status *kiln_builder_verify(kiln_builder *builder);
/* PyTorch's textual form. Verbosity, of tensor types: 0 names, 1 with sizes, 2 with strides, 3 with
 * requires_grad and device (what PyTorch prints), 4 with symbolic sizes, s0. Freed with
 * kiln_text_free. */
KILN_API kiln_status *kiln_builder_print(kiln_builder *builder, int verbosity, char **out_text);

/* -- Running -- */

/* A model whose method `forward` is the graph; the builder is empty after it and can only be
 * destroyed. The model profiles, compiles and runs like a loaded one, and is saved like one: its
 * source is printed from the graph. */
KILN_API kiln_status *kiln_builder_finish(kiln_builder *builder, kiln_model **out_model);

/* Writes the graph as a TorchScript archive, which PyTorch (torch.jit.load, 1.4 to 2.x) and Kiln
 * load: a module __torch__.Graph with the builder's attributes and the method `forward`, printed as
 * source. What a trace recorded is saved so too, after kiln_trace_end. The builder stays as it is
 * and may go on. Checks as _finish does: KILN_INVALID_ARGUMENT for a graph that is not complete;
 * KILN_UNSUPPORTED, with the operator's name, for what has no form in source: a call whose
 * arguments would mean another overload when the name is all that says which. The path, the
 * function that takes the bytes, and options are those of kiln_model_save. */
KILN_API kiln_status *kiln_builder_save(kiln_builder *builder, const char *path,
                                        const kiln_save_options *options);
KILN_API kiln_status *kiln_builder_save_to(kiln_builder *builder, kiln_write_fn write, void *user,
                                           const kiln_save_options *options);

/* -- Calling operators, and tracing -- */

typedef struct kiln_call_arg {
  const char *name;        /* a keyword, or NULL: positional; those come first */
  const kiln_value *value; /* borrowed; NULL: None */
} kiln_call_arg;

/* Calls one operator now, on the host's values, as kiln_builder_call would resolve it. With `trace`
 * (may be NULL) the call is recorded. Results are the caller's to destroy; on failure there are
 * none. Written arguments (aten::add_) are changed. */
KILN_API kiln_status *kiln_operator_call(kiln_context *context, kiln_trace *trace, const char *op,
                                         const kiln_call_arg *args, int count,
                                         kiln_value **out_results, int max_results, int *out_count);

/* Begins to record: the graph's arguments are `inputs`, named `names` (NULL: "x0", "x1", …), of
 * their types. Until the end the trace keeps what it saw alive.
 *
 * Recorded is what is called, not what decides it: a branch of the host's code is fixed, a number
 * that the host read from a tensor too. Values are known again by their handle, tensors, lists,
 * tuples and dicts also by what they are (another handle on the same tensor, an element of a list
 * that an operator gave); what the trace has not seen is a constant. */
KILN_API kiln_status *kiln_trace_begin(kiln_context *context, kiln_value *const *inputs,
                                       const char *const *names, int count, kiln_trace **out_trace);
/* Ends it: the graph returns `results`. The trace is gone, also on failure. */
KILN_API kiln_status *kiln_trace_end(kiln_trace *trace, kiln_value *const *results, int count,
                                     kiln_builder **out_builder);
/* Without a result. */
KILN_API void kiln_trace_destroy(kiln_trace *trace);

#ifdef __cplusplus
}
#endif

#endif
