/* executor.h: how one function goes from its first call to compiled code.
 *
 * An executor is what a function (or a fallback) runs through; it owns variants. A variant is one
 * specialisation: a guard (none for a function's own), a depth, a plan and its groups. The function
 * itself has one variant, at depth 0, whose plan holds guards inside; behind each of its guards
 * stands the executor of the guarded region, with variants at depth 1, 2, …: "the fallback function
 * of level k" is the dispatch to level k + 1. A region's variant is chosen by its guard before its
 * plan starts, by a small hash of the input types and then in order, so the plan has no guard left.
 * Where groups of a region depend on more than the region's inputs, its variant is unguarded and
 * has guards and regions of its own, as PyTorch's fallbacks do (KILN_COMPAT=torch: always).
 *
 * States. A level is made in the states from EMPTY to COMPILED; a miss of all variants starts the
 * next one. Moves (rows: from; the table is kiln_executor_moves):
 *   EMPTY      -> PROFILING  first call: instrumented plan
 *              -> NOOP       nothing to profile: the simple plan serves for good
 *              -> SIMPLE     no depth left: the simple plan serves for good
 *              -> FAILED     a pass failed: the simple plan serves, with a reason
 *   PROFILING  -> QUEUED     enough runs were recorded, a call came
 *   QUEUED     -> COMPILED   the variant is published
 *              -> FAILED     the job was abandoned
 *   COMPILED   -> EMPTY      every variant's guard missed: the next level begins
 *
 * Publication. Variants, once linked, do not change; get_plan reads them with acquire loads and
 * takes the model's lock only when none fits. The profiling plan of a finished level is retired to
 * the epoch.
 *
 * Budgets. A call's thread compiles under a budget of its own (jit/compile_budget.c), which is not
 * the call's: a job that runs out of it leaves its executor in the state that it was in, the call
 * goes on in the plan of calls without JIT, and a later call tries again, KILN__MAX_TRIES times in
 * all.
 *
 * Flags of modules are constants in all these plans (jit/frozen.h); a call on an object whose flags
 * differ gets the plan of calls without JIT.
 *
 * A compile job works on a copy of the graph with its own arena and type table; when it fails, the
 * copy is thrown away and the reason kept: a compile failure is never a run failure. */
#ifndef KILN_JIT_EXECUTOR_H
#define KILN_JIT_EXECUTOR_H

#include "base/job_lock.h"
#include "jit/epoch.h"
#include "jit/frozen.h"
#include "jit/groups.h"
#include "jit/jit.h"
#include "jit/pass_run.h"
#include "profiler/profile.h"

#define KILN_EXECUTOR_STATES(X)                                            \
  X(EMPTY, "nothing of this level was made yet")                           \
  X(PROFILING, "the next runs record types")                               \
  X(QUEUED, "enough was recorded; the next call compiles")                 \
  X(COMPILED, "the deepest variant is published")                          \
  X(FAILED, "the compile job was abandoned: the plain interpreter serves") \
  X(SIMPLE, "the depth is used up: the plain interpreter serves")          \
  X(NOOP, "there is nothing to specialise: the plain interpreter serves")

typedef enum kiln_executor_state {
#define KILN_STATE_ENUM(name, meaning) KILN_EXECUTOR_##name,
  KILN_EXECUTOR_STATES(KILN_STATE_ENUM)
#undef KILN_STATE_ENUM
      KILN_EXECUTOR__COUNT
} kiln_executor_state;
extern const uint8_t kiln_executor_moves[KILN_EXECUTOR__COUNT]; /* bit of each state reached */
const char *kiln_executor_state_name(kiln_executor_state state);

/* A graph with its types, and the plan made of it. */
typedef struct kiln_program {
  kiln_type_table *types; /* owned */
  kiln_graph *graph;      /* owned */
  kiln_plan *plan;        /* owned; NULL: not emitted */
} kiln_program;
void kiln_program_destroy(kiln_program *code);

typedef struct kiln_variant {
  struct kiln_variant *next; /* atomic: the next deeper one */
  kiln_guard_desc *guard;    /* of the arguments; NULL: always holds */
  int depth;
  bool is_simple;        /* of a state that stays */
  kiln_program shown;    /* the graph as PyTorch would print it, guards and calls included */
  kiln_program code;     /* what runs; its graph is NULL where `shown` has the plan */
  kiln_program profiled; /* the instrumented graph */
  kiln_profile *profile; /* owned; NULL: never profiled */
  double cost;           /* estimated nanoseconds of its groups' kernels, one run */
} kiln_variant;

typedef struct kiln_executor {
  kiln_callable callable; /* first */
  struct kiln_jit *jit;
  kiln_function *function;          /* NULL: a region */
  const struct kiln_executor *root; /* of the function that it belongs to */
  const char *site;                 /* lasting name: method#digest */
  kiln_program source;              /* what levels start from; a root's is made at its first call */
  kiln_frozen *frozen;              /* atomic: what its plans take for granted, or NULL */
  int base_depth;                   /* of its first level: 0 for functions */
  kiln_executor_state state;        /* under the jit's lock */
  int level;                        /* that is being made, or was made last */
  kiln_variant *variants;           /* atomic; in order of depth */
  kiln_variant *building;           /* of the level being profiled */
  const kiln_plan *profiling_plan;  /* atomic; NULL when no level is profiling */
  kiln_program *plain;              /* atomic: the plan for calls without JIT */
  kiln_program draft;               /* of `plain`, while it is made */
  int tries;                        /* compile jobs that ran out of their budget */
  bool given_up;              /* atomic: after too many, `plain` serves where no variant does */
  kiln_variant *hints[8];     /* atomic: by hash of the input types */
  int group_count;            /* names of a root's groups */
  struct kiln_executor *next; /* of the jit */
} kiln_executor;

typedef struct kiln_compile_allowance kiln_compile_allowance;

typedef struct kiln_refusal {
  kiln_jit_refusal public;
  struct kiln_refusal *same_hash; /* an earlier one */
} kiln_refusal;

struct kiln_jit {
  kiln_env env; /* a copy with the model's flags */
  kiln_unit *unit;
  struct kiln_codegen *codegen;
  kiln_arena *arena;  /* executors, variants, group records, names */
  kiln_job_lock lock; /* all below, and all executors but their atomic fields */
  kiln_pass_runner runner;
  kiln_method_lookup methods;
  kiln_epoch epoch;
  kiln_strategy strategy;
  int depth; /* total of the strategy */
  kiln_executor *executors, *last_executor;
  kiln_group_record *groups, *last_group;
  kiln_group_record *spare_groups; /* of jobs that were not finished: theirs are kernels, no more */
  struct {                         /* before the job under way, if it has a root */
    kiln_executor *root;
    int group_count; /* of the root */
    kiln_group_record *last_group;
  } before_job;
  KILN_VEC(kiln_refusal *) refusals;
  kiln_map refusal_index;   /* hash -> kiln_refusal */
  kiln_map warned;          /* place of an aten::warn -> bool: it has warned; atomic */
  kiln_guard_misses misses; /* with a lock of its own */
  kiln_counter_book book;
  uint32_t calls;               /* the counter of the host's calls */
  bool timed;                   /* plans made from now on have times */
  const kiln_executor *current; /* of the compile job under way: passes tell refusals to it */
  const kiln_compile_allowance *allowance; /* of the compile job under way */
  uint64_t compiles, compile_failures, compile_ns, simple_plans;
  uint64_t profiled_runs; /* atomic */
  uint32_t max_depth;
  bool told_dynamic;
};

/* -- executor.c; under the jit's lock, inside a scope -- */

kiln_executor *kiln__executor_create(kiln_jit *jit, kiln_function *function, const char *name);
void kiln__executor_destroy(kiln_executor *executor);
/* Adds to the counts; bounded. `loc` may be zero. */
void kiln__jit_refuse(kiln_jit *jit, const kiln_executor *executor, kiln_reason reason,
                      const char *detail, kiln_source_loc loc);
kiln_status *kiln__jit_callable(kiln_jit *jit, kiln_function *function,
                                const kiln_callable **out_callable) KILN_MUST_USE;

/* -- dump.c, dump_files.c -- */

/* The text of one stage that is a variant's: profiled, optimized, bytecode. */
kiln_status *kiln__dump_variant(const kiln_executor *executor, const kiln_variant *variant,
                                kiln_jit_stage stage, kiln_text *text) KILN_MUST_USE;
/* With the flag `dump`: a variant that was made, and its groups, as files. */
void kiln__dump_files(kiln_executor *executor, const kiln_variant *variant);

/* -- compile_budget.c -- */

enum { KILN__MAX_TRIES = 3 };

/* A compile job on a call's thread, with what it may take. */
struct kiln_compile_allowance {
  kiln_call *call;
  kiln_budget budget;
  uint64_t begin_ns, groups_until_ns; /* 0: no limit */
  size_t held;
  bool is_limited; /* by the call, and not by flags */
};

/* What can be left to the interpreter gets the call's allowance for compiling; what the call
 * `needs` also the time that it has left. */
void kiln__compile_begin(kiln_compile_allowance *allowance, const kiln_jit *jit, kiln_call *call,
                         bool needs);
/* The call is charged only with what went beyond the allowance. */
void kiln__compile_end(kiln_compile_allowance *allowance);

/* -- compile.c: jobs; under the jit's lock -- */

/* A copy of a graph with types of its own. */
kiln_status *kiln__program_copy(kiln_jit *jit, const kiln_graph *graph,
                                kiln_program *out) KILN_MUST_USE;
/* executor->source of a function: ensured, copied, preoptimised, with the flags of `self` (args[0]
 * of a method's call) for constants. */
kiln_status *kiln__compile_source(kiln_executor *executor, const kiln_ivalue *args,
                                  int arg_count) KILN_MUST_USE;
/* The plan of calls without JIT; `bare`: without inlining, in little time. */
kiln_status *kiln__compile_plain(kiln_executor *executor, bool bare,
                                 kiln_program *out) KILN_MUST_USE;
/* The plan that serves for good; the graph of `variant->shown`. */
kiln_status *kiln__compile_simple(kiln_executor *executor, kiln_variant *variant) KILN_MUST_USE;
/* The instrumented plan of a new level; *out_sites: how many sites it has. */
kiln_status *kiln__compile_profiling(kiln_executor *executor, kiln_variant *variant,
                                     int *out_sites) KILN_MUST_USE;
/* From a ready profile to a variant that can be published. */
/* The groups of a job that was not finished are not told and not counted; a later job finds their
 * kernels. */
void kiln__drop_unfinished_groups(kiln_jit *jit);
kiln_status *kiln__compile_optimized(kiln_executor *executor, kiln_variant *variant) KILN_MUST_USE;

#endif
