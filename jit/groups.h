/* groups.h: between the executor and codegen: a group, with its kernel or what it does without. */
#pragma once

#include "codegen/codegen.h"
#include "jit/bytecode.h"
#include "jit/jit.h"

/* On a prim::TensorExprGroup: its kiln_group_info. */
#define KILN_ATTR_INFO "info"

/* What is known of one group for as long as the model lives; in the arena of its job. Its graph is
 * made again where it is asked for (jit/program.c). */
typedef struct kiln_group_info {
  kiln_callable callable; /* first; of a group whose operators are interpreted: it has no kernel, or
                           * one that can fault */
  kiln_plan *plan;        /* of those; owned; NULL: they are not, or it was not emitted */
  struct kiln_group_slot *slot; /* jit/executor.h: has */
  const char *name;             /* "forward/TensorExprGroup_0" */
  const struct kiln_variant *variant;
  const kiln_callable *site; /* the executor that it belongs to */
  char hash[33];             /* of its loop IR; "" */
  kiln_reason reason;        /* why it has no kernel, or none */
  int number;                /* in the graph of its variant, from 0 */
  uint32_t depth, operators;
  const char *where;          /* what its guard says of the order of symbols: "s0 <= 64"; or "" */
  const char *words, *shapes; /* its operators by name, and its results: "Float(2, 3)" */
  kiln_source_loc loc;
  const int64_t *symbols;  /* what the symbols of its loop IR are now; NULL: there are none */
  const kiln_graph *graph; /* its graph and loop IR, until it is compiled; then NULL */
  kiln_loop_fn *loops;
  uint64_t weights; /* inputs of its graph that nobody writes, a bit each of the first 64 */
  kiln_factor_type factors;
  bool is_heavy; /* loops, and its kernel, are what is left of it */
  kiln_group_heavy heavy;
  kiln_compiled *code;                    /* retained; NULL: none */
  kiln_pack_slot packs[KILN_GROUP_PACKS]; /* of its kernel's packed inputs */
  uint64_t compile_ns;
  uint64_t tune_ns; /* that searching for its schedule took, beside that */
  kiln_tuned tuned; /* what is known of its schedule */
  uint32_t runs;    /* counters: its own, and its guard's; 0: it has none */
  uint32_t hits, misses;
  struct {
    uint64_t runs, hits, misses;
  } before;                     /* what earlier ones have counted there */
  struct kiln_group_info *next; /* in order of making */
} kiln_group_info;

typedef struct kiln_group_list {
  kiln_group_info *first, *last;
} kiln_group_list;
void kiln_groups_append(kiln_group_list *list, kiln_group_list more);
/* Their kernels, plans and packed inputs. */
void kiln_groups_release(kiln_group_list groups);

/* Fills in `loops`, in `arena`. A failure is told in info->reason, and to the log. */
void kiln_group_lower(kiln_env *env, kiln_arena *arena, kiln_group_info *info);
/* Gets the kernel of what was lowered: the context's, where an equal group was compiled before
 * (then compile_ns is 0 and false is returned). Failures as above. `search`: whether there is time
 * to search for its schedule. */
bool kiln_group_compile(kiln_env *env, struct kiln_codegen *codegen, kiln_group_info *info,
                        bool search);
/* Whether its loops round factors of contractions to bf16. */
bool kiln_group_rounds(const kiln_group_info *info);
/* Fills in what people are told of it; texts in `arena`. */
void kiln_group_tell(kiln_group_info *info, kiln_arena *arena);
/* What the interpreter needs of one that has a kernel; memory in `arena`. */
kiln_status *kiln_group_describe(const kiln_node *node, kiln_group_info *info, kiln_arena *arena,
                                 kiln_group *out_group) KILN_MUST_USE;
/* The stages LOOP, LLVM and ASM, from its graph. */
kiln_status *kiln_group_dump(struct kiln_codegen *codegen, const kiln_group_info *info,
                             const kiln_graph *graph, kiln_jit_stage stage,
                             kiln_text *text) KILN_MUST_USE;
