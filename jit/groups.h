/* groups.h: between the executor and codegen: one compiled group. */
#ifndef KILN_JIT_GROUPS_H
#define KILN_JIT_GROUPS_H

#include "codegen/codegen.h"
#include "jit/bytecode.h"
#include "jit/jit.h"

/* On a prim::TensorExprGroup: the kiln_group_record of its kernel. */
#define KILN_ATTR_RECORD "record"

/* What is known of one group for as long as the model lives; in the arena of its job. */
typedef struct kiln_group_record {
  const char *name;          /* "forward/TensorExprGroup_0" */
  const kiln_callable *site; /* the executor that it belongs to */
  char hash[33];             /* of its loop IR; "" */
  kiln_reason reason;        /* why it has no kernel, or none */
  uint32_t depth, operators;
  const char *words, *shapes; /* its operators by name, and its results: "Float(2, 3)" */
  kiln_source_loc loc;
  kiln_compiled *code;     /* retained; NULL: none */
  const kiln_graph *graph; /* of the variant, where it has a kernel; NULL */
  const char *loop_ir;     /* text, of one that has none but was lowered; NULL */
  uint64_t compile_ns;
  uint32_t runs; /* counters: its own, and its guard's; 0: it has none */
  uint32_t hits, misses;
  struct kiln_group_record *next; /* in order of making */
} kiln_group_record;

typedef struct kiln_group_list {
  kiln_group_record *first, *last;
} kiln_group_list;
void kiln_groups_append(kiln_group_list *list, kiln_group_list more);
/* Their kernels. */
void kiln_groups_release(kiln_group_list groups);

/* Gets the kernel of the group's graph: the context's, where an equal group was compiled before
 * (then compile_ns is 0 and false is returned). A failure is told in record->reason, and to the
 * log. `arena` keeps the texts. */
bool kiln_group_compile(kiln_env *env, struct kiln_codegen *codegen, const kiln_graph *graph,
                        kiln_arena *arena, kiln_group_record *record);
/* Fills in what people are told of it; texts in `arena`. */
void kiln_group_tell(const kiln_node *node, kiln_arena *arena, kiln_group_record *record);
/* What the interpreter needs of it; memory in `arena`. The record's graph is the node's. */
kiln_status *kiln_group_describe(const kiln_node *node, kiln_group_record *record,
                                 kiln_arena *arena, kiln_group *out_group) KILN_MUST_USE;
/* Puts the group's nodes back where the group stands. Inside runs of the graph's arena and types.
 */
void kiln_group_dissolve(kiln_node *group, kiln_arena *scratch);
/* The stages LOOP, LLVM and ASM. */
kiln_status *kiln_group_dump(struct kiln_codegen *codegen, const kiln_group_record *record,
                             kiln_jit_stage stage, kiln_text *text) KILN_MUST_USE;

#endif
