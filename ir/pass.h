/* pass.h: passes: what each is given, and the analyses that it may ask.
 *
 * A pass holds only its idea: `kiln_status *kiln_pass_x(kiln_pass *pass)` changes pass->graph and
 * sets pass->changed, or is an analysis and prints what it found to pass->report. Only
 * kiln_pass_run (jit/pass_run.h) runs one; it verifies, times, prints and counts. The table is
 * jit/passes.def; the code lives with what it changes: ir/pass/, guards/, profiler/, codegen/loop/.
 */
#pragma once

#include "ir/ir.h"
#include "ir/reason.h"

typedef struct kiln_alias kiln_alias;

typedef struct kiln_pass {
  kiln_graph *graph;
  kiln_arena *scratch; /* emptied after the pass */
  kiln_env *env;
  kiln_call *call;     /* to run kernels on constants; without limits of its own */
  uint64_t *fold_left; /* atomic: bytes that constants may still take; NULL: any */
  int64_t groups_left; /* that the method may still get */
  kiln_alias *alias;   /* see kiln_pass_alias */
  bool changed;        /* set by the pass */
  kiln_text *report;   /* what analyses print, in lines of "# "; NULL: nobody reads it */
  void *context;       /* of the runner's owner */
  /* Whether there will be a kernel of a group. */
  bool (*lowers)(const kiln_graph *group);
  /* Hears of every refusal; may be NULL. */
  void (*refuse)(struct kiln_pass *pass, const kiln_node *node, kiln_reason reason,
                 const char *detail);
} kiln_pass;

typedef kiln_status *(*kiln_pass_fn)(kiln_pass *pass);

/* The alias analysis of the graph as it is now: made at first use; a pass that changed what aliases
 * what calls kiln_pass_forget_alias before asking again. */
kiln_alias *kiln_pass_alias(kiln_pass *pass);
void kiln_pass_forget_alias(kiln_pass *pass);
void kiln_pass_refuse(kiln_pass *pass, const kiln_node *node, kiln_reason reason,
                      const char *detail);

/* -- Alias analysis (ir/alias.c). Conservative: "may". -- */

kiln_alias *kiln_alias_create(kiln_arena *arena, const kiln_graph *graph);
/* Some node writes memory that the value may share (or contains). */
bool kiln_alias_has_writers(const kiln_alias *alias, const kiln_ir_value *value);
bool kiln_alias_node_writes(const kiln_alias *alias, const kiln_node *node);
/* The node writes memory that `value`, or something in it, may share. */
bool kiln_alias_writes_to(const kiln_alias *alias, const kiln_node *node,
                          const kiln_ir_value *value);
/* What some nodes write, gathered, that many values can be asked against it: nodes and values cost
 * their sum, not their product. */
typedef struct kiln_alias_marks {
  bool *marked; /* locations */
  bool all;
} kiln_alias_marks;
kiln_alias_marks kiln_alias_marks_create(const kiln_alias *alias, kiln_arena *arena);
void kiln_alias_mark_writes(const kiln_alias *alias, const kiln_node *node,
                            kiln_alias_marks *marks);
/* One of the nodes writes memory that `value`, or something in it, may share. */
bool kiln_alias_is_marked(const kiln_alias *alias, const kiln_alias_marks *marks,
                          const kiln_ir_value *value);
/* The value may be memory that came from outside the graph, or went out of it. */
bool kiln_alias_is_wildcard(const kiln_alias *alias, const kiln_ir_value *value);
/* Locations of memory that the graph writes and that a node, or a node in it, reads or writes; two
 * nodes meet where one writes what the other reads or writes. False: not known, or there were more
 * than *steps, which is counted down. `out` is emptied first. */
typedef struct kiln_alias_accesses {
  kiln_vec_int reads, writes; /* numbers of locations; some occur twice */
} kiln_alias_accesses;
bool kiln_alias_collect(const kiln_alias *alias, kiln_arena *arena, const kiln_node *node,
                        int64_t *steps, kiln_alias_accesses *out);

/* Which of many nodes write memory that values of a growing set may share, each told once: what
 * passes ask that mark live values. In all as long as the sets of locations that are met. */
typedef struct kiln_alias_watch kiln_alias_watch;
kiln_alias_watch *kiln_alias_watch_create(const kiln_alias *alias, kiln_arena *arena);
void kiln_alias_watch_node(kiln_alias_watch *watch, kiln_node *node);
void kiln_alias_watch_value(kiln_alias_watch *watch, const kiln_ir_value *value);
/* One that was not told; NULL: there is none now. */
kiln_node *kiln_alias_watch_next(kiln_alias_watch *watch);

/* -- Shapes (ir/shape.c) -- */

/* Gives every output of the node whose type is incomplete the type that its shape function finds;
 * true when all tensor outputs are complete afterwards. */
bool kiln_shape_infer(kiln_graph *graph, kiln_node *node);
/* Gives outputs the types that a run of the node's kernel on zeros makes; nothing where it may not
 * be run, or an argument is not known. Returns what the kernel failed with. (ir/shape_probe.c) */
kiln_status *kiln_shape_probe(kiln_pass *pass, kiln_node *node) KILN_MUST_USE;
/* Whether the user of a list, its input `index`, leaves the list as it is, and gives nobody another
 * way to it. */
bool kiln_shape_only_reads(const kiln_node *user, int index);
/* Whether a list that a node makes has those elements wherever it is used: nobody writes it. */
bool kiln_shape_list_stays(const kiln_ir_value *list);
/* The elements of a list of ints, as far as constants, types of tensors whose sizes they are, and
 * what the graph's facts and sizes tell; memory in `arena`. NULL: not even how many. */
const kiln_shape_list *kiln_shape_ints_of(kiln_arena *arena, const kiln_ir_value *list);
/* Of a node of KILN_VARIANT_COPY whose types are known: its base operator would give the same dtype
 * and sizes, so that the two are the same. */
bool kiln_shape_keeps_self(const kiln_node *node);

/* -- Numbers (ir/numbers.c) -- */

/* What is known of a graph's ints and bools while somebody looks: sizes of tensors whose types are
 * known, and what is made of them. Its shape functions know it too. One at a time for a graph. */
typedef struct kiln_numbers {
  kiln_graph *graph;
  kiln_arena *scratch;
  const kiln_block *block;          /* where the region stands */
  const kiln_node *since;           /* the last write in front of it; NULL: there is none */
  kiln_map facts, sizes;            /* kiln_graph's */
  KILN_VEC(kiln_ir_value *) values; /* that they tell */
  kiln_map asked;                   /* nodes of outside that told it, and lists of what they give */
} kiln_numbers;
void kiln_numbers_begin(kiln_numbers *n, kiln_graph *graph, kiln_arena *scratch);
void kiln_numbers_end(kiln_numbers *n);
/* Forgets all but the first `count` values. */
void kiln_numbers_go_back(kiln_numbers *n, int count);
/* The number, or 0 or 1, that a value is known to be. */
bool kiln_numbers_find(const kiln_numbers *n, const kiln_ir_value *v, int64_t *out);
/* A loop that computes numbers alone, as often as its first input says. */
bool kiln_numbers_is_count(const kiln_node *node);
/* What a node gives, from what is known of its inputs. */
void kiln_numbers_learn(kiln_numbers *n, const kiln_node *node);
/* A value that is another one. */
void kiln_numbers_same(kiln_numbers *n, kiln_ir_value *v, const kiln_ir_value *other);
/* What its inputs are, and what those were made from in the block. `visit` (may be NULL) sees the
 * tensors that it would have to know. */
typedef void kiln_numbers_visit(void *user, kiln_ir_value *tensor);
void kiln_numbers_ask(kiln_numbers *n, const kiln_node *node, kiln_numbers_visit *visit,
                      void *user);

/* The value that a rule of the pass `peephole` has for the node's result; NULL: none has one. */
kiln_ir_value *kiln_peephole_try(kiln_pass *pass, kiln_node *node);
/* Puts what one side of a prim::If does in the node's place; gives what stands there then first. */
kiln_node *kiln_branch_splice(kiln_node *node, int side);
/* A prim::Loop that runs as often as its first input says. */
bool kiln_loop_is_counted(const kiln_node *node);
/* Splices branches that a constant decides, takes loops away that never run, and results of If and
 * Loop that are one value of outside however they run. `fold` gets each other node, behind those
 * before it, and tells whether it changed or removed it; NULL: none. */
void kiln_simplify_control_flow(kiln_pass *pass, bool (*fold)(kiln_pass *pass, kiln_node *node));
/* Pass decompose_composites has put the operator's parts beside it. */
bool kiln_node_is_whole(const kiln_node *node);

/* -- Passes that need no profile (ir/pass/<name>.c) -- */

kiln_status *kiln_pass_flatten_raises(kiln_pass *pass);
kiln_status *kiln_pass_sink_text(kiln_pass *pass);
kiln_status *kiln_pass_inline(kiln_pass *pass);
kiln_status *kiln_pass_unwrap_numbers(kiln_pass *pass);
kiln_status *kiln_pass_trace_numbers(kiln_pass *pass);
kiln_status *kiln_pass_lower_simple_tuples(kiln_pass *pass);
kiln_status *kiln_pass_constant_propagation(kiln_pass *pass);
kiln_status *kiln_pass_constant_pooling(kiln_pass *pass);
kiln_status *kiln_pass_cse(kiln_pass *pass);
kiln_status *kiln_pass_dce(kiln_pass *pass);
kiln_status *kiln_pass_remove_unused(kiln_pass *pass);
kiln_status *kiln_pass_simplify(kiln_pass *pass);
kiln_status *kiln_pass_peephole(kiln_pass *pass);
kiln_status *kiln_pass_canonicalize_ops(kiln_pass *pass);
kiln_status *kiln_pass_decompose_composites(kiln_pass *pass);
kiln_status *kiln_pass_unroll_loops(kiln_pass *pass);
kiln_status *kiln_pass_remove_list_mutation(kiln_pass *pass);
kiln_status *kiln_pass_remove_tensor_mutation(kiln_pass *pass);
kiln_status *kiln_pass_infer_shapes(kiln_pass *pass);

/* -- Analyses (ir/pass/<name>.c) -- */

kiln_status *kiln_pass_cost(kiln_pass *pass);
kiln_status *kiln_pass_effects(kiln_pass *pass);
/* Running the graph may change an attribute of an object that it did not make itself: what the pass
 * `effects` prints. */
bool kiln_graph_writes_attributes(const kiln_alias *alias, const kiln_graph *graph);
