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
 *              -> SIMPLE     no depth left: the simple plan serves the rest
 *              -> FAILED     a pass failed: the simple plan serves, with a reason
 *   PROFILING  -> QUEUED     enough runs were recorded, a call came
 *   QUEUED     -> COMPILED   the variant is published
 *              -> FAILED     the job was abandoned
 *              -> SIMPLE     the same, where a variant was to give way: it stays, if there was one
 *   COMPILED   -> EMPTY      every variant's guard missed: the next level begins
 *              -> SIMPLE     it took the place of another variant (jit/renewal.c)
 *   SIMPLE     -> EMPTY      a variant is to give way, or the region's first to be made
 *
 * Publication. Variants, once linked, do not change; get_plan reads them with acquire loads. When
 * none fits, a compile job (jit/compile_job.h) makes the next one. The instrumented plan of a
 * finished level is retired to the epoch; what it has recorded stays. Graphs go with their jobs:
 * what prints ask for is made again.
 *
 * Locks, in the order in which a thread takes them:
 *   root->lock   of a function and all its regions: their states, and who compiles for them. Held
 *                for as long as a job takes; waiting ends with the waiter's budget.
 *   jit->lock    the model's lists and what is read by others: held to link what a job has made,
 *                and to look; never while something is compiled (but for a dump, which makes
 *                graphs again, and asks LLVM), logged or run.
 *   codegen's    an entry of the context's cache (codegen/cache.h), then a worker.
 * Thread A compiles a group of forward() for a second; thread B calls encode() for the first time,
 * and thread C reads the counters: neither waits. Thread D, which calls forward(), waits for A, and
 * finds its plan. In a child of a fork what a thread of the parent was compiling is
 * KILN_UNSUPPORTED (base/job_lock.h).
 *
 * Beside the calls (compile=async) it is a thread of the context that has root->lock so, and what
 * calls need of an executor is atomic: they wait for neither lock (jit/beside.c).
 *
 * Budgets. A call's thread compiles under a budget of its own (jit/compile_budget.c), which is not
 * the call's: a job that runs out of it, or is cancelled, leaves its executor in the state that it
 * was in, the call goes on in the plan of calls without JIT, and a later call tries again,
 * KILN__MAX_TRIES times in all. The kernels that it made are in the context's cache.
 *
 * Settings. Flags of modules are constants in all these plans (jit/frozen.h). A call on an object
 * whose flags differ goes on to the method's next root executor, `other`, which was made for others
 * and is profiled and specialised like the first; behind KILN__MAX_SETTINGS of them it gets the
 * plan of calls without JIT. After model.train() the second root compiles, after model.eval() the
 * first one serves again.
 *
 * A compile failure is never a run failure. */
#pragma once

#include "base/epoch.h"
#include "base/job_lock.h"
#include "jit/frozen.h"
#include "jit/groups.h"
#include "jit/jit.h"
#include "jit/ledger.h"
#include "jit/pass_run.h"
#include "profiler/profile_file.h"
#include "runtime/prepare.h"

#define KILN_EXECUTOR_STATES(X)                                            \
  X(EMPTY, "nothing of this level was made yet")                           \
  X(PROFILING, "the next runs record types")                               \
  X(QUEUED, "enough was recorded; the next call compiles")                 \
  X(COMPILED, "the deepest variant is published")                          \
  X(FAILED, "the compile job was abandoned: the plain interpreter serves") \
  X(SIMPLE, "the depth is used up: the plain interpreter serves the rest") \
  X(NOOP, "there is nothing to specialise: the plain interpreter serves")

typedef enum kiln_executor_state {
#define KILN_STATE_ENUM(name, meaning) KILN_EXECUTOR_##name,
  KILN_EXECUTOR_STATES(KILN_STATE_ENUM)
#undef KILN_STATE_ENUM
      KILN_EXECUTOR__COUNT
} kiln_executor_state;
extern const uint8_t kiln_executor_moves[KILN_EXECUTOR__COUNT]; /* bit of each state reached */
const char *kiln_executor_state_name(kiln_executor_state state);

/* A graph with its types, both owned (jit/program.c). */
typedef struct kiln_program {
  kiln_type_table *types;
  kiln_graph *graph;
} kiln_program;
void kiln_program_destroy(kiln_program *program);

/* What a group has for as long as it lives, and then the next one of the same function: all lies in
 * the model's arena, so that hosts may keep the texts. */
typedef struct kiln_group_slot {
  const char *name; /* "forward/TensorExprGroup_0" */
  char hash[33];    /* of the group that was published last */
  uint32_t runs;    /* a counter */
  bool is_used;
  struct kiln_group_slot *same_name; /* of a generation before */
} kiln_group_slot;

/* What dispatch looks at before it takes a variant whose guard holds; 0: nothing. */
typedef enum kiln_variant_state {
  KILN_VARIANT_UNPREPARED = 1, /* its first run would compute of weights: a job's (jit/beside.c) */
  KILN_VARIANT_METERED = 2,    /* its runs are timed (jit/ledger.c) */
  KILN_VARIANT_TRIED = 4,      /* in turns with the interpreter */
  KILN_VARIANT_RETIRED = 8,    /* which is faster, and serves in its place */
} kiln_variant_state;

typedef struct kiln_variant {
  struct kiln_variant *next; /* atomic: the next deeper one */
  kiln_guard_desc *guard;    /* of the arguments; NULL: always holds */
  kiln_plan *plan;           /* owned; NULL while its level is profiled */
  int depth;
  kiln_pipeline_id made_by; /* its plan's graph, which prints make again (kiln__program_make) */
  uint64_t fingerprint;     /* of that graph */
  int first_group;          /* how many groups its method had before */
  kiln_profile *profile;    /* owned; NULL: never profiled */
  const kiln_shape_history *history; /* of a DYNAMIC level, or NULL */
  kiln_plan *instrumented;           /* owned; NULL when the level has ended, as: */
  kiln_program recorded;             /* its graph */
  kiln_arena *arena;                 /* of the job that made it, when published */
  struct kiln_variant *recorder;     /* what was `building` before it */
  uint8_t state;                     /* atomic: bits of kiln_variant_state */
  kiln_ledger_entry entry;
  uint64_t hits_before;   /* when the region's window began (jit/renewal.c) */
  kiln_retired retired;   /* where it has given way: */
  kiln_group_list groups; /* those that were its own */
} kiln_variant;

/* What a job beside calls keeps of the arguments of the call that asked for it. */
typedef struct kiln_arguments_seen {
  uint64_t hash; /* kiln_guard_hash */
  int count;
  size_t bytes; /* of this block */
  kiln_shape_seen tensors[];
} kiln_arguments_seen;

typedef struct kiln_executor {
  kiln_callable callable; /* first */
  struct kiln_jit *jit;
  struct kiln_generation *of; /* that it goes with */
  kiln_function *function;    /* NULL: a region */
  struct kiln_executor *root; /* of the function that it belongs to */
  int base_depth;             /* of its first level: 0 for functions */
  kiln_job_lock plain_lock;   /* a function's: who makes its `plain` */
  kiln_job_lock lock;         /* a root's: all of its executors', whose it protects: */
  kiln_executor_state state;
  int level;                         /* that is being made, or was made last */
  int tries;                         /* compile jobs that ran out of their budget */
  uint64_t recorded;                 /* atomic: hash of the arguments that were recorded last */
  int group_count;                   /* atomic: of a root's groups; their slots: */
  KILN_VEC(kiln_group_slot *) slots; /* written under the jit's lock as well */
  const kiln_shape_seen *seen;       /* of its arguments, by the guard before it; NULL: none is */
  kiln_program source;    /* what levels start from; a root's is made at its first call */
  const char *site;       /* lasting name: method#digest; written under the jit's lock as well */
  kiln_variant *building; /* of the level being profiled; likewise */
  kiln_frozen *frozen;    /* atomic: what its plans take for granted, or NULL */
  struct kiln_executor *other; /* atomic: a root's: of the same method, for other flags */
  int setting;                 /* a root's: how many there were before it */
  kiln_variant *variants;      /* atomic; in order of depth */
  const kiln_variant *plain;   /* atomic: has the plan for calls without JIT */
  bool given_up;     /* atomic: after too many tries, `plain` serves where no variant does */
  uint16_t hints[8]; /* atomic: places of variants, by hash of the input types */

  /* jit/beside.c */
  const kiln_plan *interim; /* atomic: serves where no variant does; NULL: none was made yet */
  kiln_profile *profiling;  /* atomic: what `interim` records for, or NULL */
  uint32_t version;         /* atomic: how often a variant was published */
  bool asked;               /* atomic: a job waits or runs, whose are: */
  kiln_queued_job job;
  kiln_arguments_seen *seen_then; /* owned; of a call that no variant fits, or */
  kiln_weights *weights_then;     /* owned; of `preparing` */
  kiln_variant *preparing;        /* or, with */
  bool trial_then;                /* to be tried */
  bool varied_then;               /* shapes vary from call to call: the level is to be DYNAMIC */
  uint64_t other_hash;            /* atomic: of a call that was not recorded; 0: none was yet */
  kiln_ivalue self_then; /* owned; of a job that starts from a profile of another process */
  uint32_t version_then;
  uint64_t lent_then; /* call->compile_bytes */

  /* jit/ledger.c */
  kiln_meter interim_meter; /* of runs of `interim` since the last level was made */
  uint64_t metered_hash;    /* atomic: kiln_guard_hash of the arguments of the last one */
  int nodes;                /* atomic: of `source`; 0: it was not made yet */

  /* jit/renewal.c */
  bool is_renewable;       /* atomic: its strategy is used up, and variants may give way */
  bool recording;          /* atomic: what no variant serves is wanted for a profile */
  bool renewing;           /* the variant being made is none of the strategy's levels */
  kiln_variant *victim;    /* that gives way to it; NULL: it is the region's first */
  kiln_variant *newest;    /* that took a place; or NULL */
  uint64_t level_ns;       /* that making the last level took */
  uint64_t renewal_due_ns; /* atomic: of the model's unserved time, when the window ends;
                              UINT64_MAX while one is being made */
  uint64_t unserved_before;
  uint32_t patience;
  struct kiln_executor *next; /* of the jit */
} kiln_executor;

typedef struct kiln_executor_list {
  kiln_executor *first, *last;
} kiln_executor_list;
void kiln__executors_append(kiln_executor_list *list, kiln_executor_list more);

typedef struct kiln_refusal {
  kiln_jit_refusal public;
  struct kiln_refusal *same_hash; /* an earlier one */
} kiln_refusal;

/* An arena that a published job left. */
typedef struct kiln_kept_arena {
  struct kiln_kept_arena *next;
  kiln_arena *arena; /* which this lies in */
} kiln_kept_arena;

/* All that calls have had made since the model was loaded, or since what there was went
 * (generation.c). */
typedef struct kiln_generation {
  struct kiln_jit *jit;
  struct kiln_generation *older; /* of the jit's, one that is over */
  kiln_arena *arena;             /* functions' executors */
  kiln_kept_arena *kept;
  kiln_executor_list executors;
  kiln_group_list groups;
  kiln_job_owner owner; /* of its jobs, where there are any */
  bool has_left;        /* the queue */
  bool is_over;         /* atomic: it takes no new calls */
  kiln_retired retired;
} kiln_generation;

struct kiln_jit {
  kiln_env env; /* a copy with the model's flags */
  kiln_unit *unit;
  struct kiln_codegen *codegen;
  kiln_method_lookup methods;
  kiln_strategy strategy;
  int depth; /* total of the strategy */
  kiln_pass_quota quota;
  kiln_epoch epoch;
  kiln_counter_book book;
  uint32_t calls;           /* the counter of the host's calls */
  kiln_guard_misses misses; /* with a lock of its own */
  kiln_job_lock lock;       /* of all below that is not atomic */
  kiln_arena *arena;        /* refusals, slots, sites */
  kiln_generation *now;     /* whose lists are under the lock too; those before it that go: */
  kiln_generation *over;
  kiln_map sites; /* lasting names */
  kiln_map slots; /* name -> kiln_group_slot, the last that was made */
  KILN_VEC(kiln_group_slot *) all_slots;
  KILN_VEC(kiln_refusal *) refusals;
  kiln_map refusal_index; /* hash -> kiln_refusal */
  kiln_map warned;        /* place of an aten::warn -> bool: it has warned; atomic */
  uint32_t max_depth;
  bool timed; /* atomic: plans have times */
  struct {
    uint64_t groups, profiled_runs, never_run, fallback_calls, hits, misses, times;
  } gone;                                                        /* counts of what gave way */
  uint64_t unserved_ns, renewal_ns;                              /* atomic: jit/renewal.c */
  uint64_t compiles, compile_failures, compile_ns, simple_plans; /* atomic */

  /* jit/beside.c */
  kiln_job_queue *jobs; /* the context's; NULL: calls compile on their own thread */
  kiln_cancel *abandon; /* owned: asked when the model goes */
  kiln_arena *profile_arena;
  kiln_profile_file profiles;      /* there, of files and generations before; under the lock */
  bool has_kept_profiles;          /* of those */
  uint64_t asks;                   /* atomic: jobs that were asked for */
  uint64_t stalls, worst_stall_ns; /* atomic: of calls that waited (kiln_counters) */

  /* jit/pack_beside.c */
  kiln_packer packer; /* of its calls, where there are jobs */
  kiln_job_owner packs_owner;
  pthread_mutex_t packs_lock; /* of `asked_packs` */
  pid_t packs_maker;
  struct kiln_asked_pack *asked_packs;

  /* jit/ledger.c; atomic */
  uint64_t made_ns, made_nodes; /* of all levels: what they took, and how large they were */
  uint64_t retired;             /* variants */
  int eager;                    /* who wants all that can be made now, whether it pays or not */
};

/* -- executor.c -- */

/* In `arena`; `root` NULL: a function's. Its maker puts it into a list. */
kiln_executor *kiln__executor_create(kiln_jit *jit, kiln_arena *arena, kiln_executor *root,
                                     const char *name);
/* Whose callable that is; NULL: it is a group's. */
kiln_executor *kiln__executor_of(const kiln_callable *callable);
/* The programs that it owns; it lies in an arena. */
void kiln__executor_deinit(kiln_executor *executor);
void kiln__variant_deinit(kiln_variant *variant);

enum { KILN__MAX_SETTINGS = 4 }; /* of the flags that a method's roots are made for */

/* -- levels.c -- */

/* What served calls while this variant was made gives way to it, or to the plan before it. */
void kiln__end_interim(kiln_executor *executor, const kiln_variant *variant);

/* -- renewal.c -- */

/* The executor's last level is used up, and what serves the rest is published. */
void kiln__renewal_used_up(kiln_executor *executor);
/* A call that no guarded variant serves: whether it is wanted under the root's lock. */
bool kiln__renewal_wants(const kiln_executor *executor, kiln_call *call);
/* Under the root's lock: whether a variant is to be made beyond the strategy: then it is
 * `renewing`. Its end, with what was made, or NULL. */
bool kiln__renewal_begin(kiln_executor *executor);
void kiln__renewal_end(kiln_executor *executor, kiln_variant *made);
/* A job of the level being made has taken so long. */
void kiln__renewal_charge(kiln_executor *executor, uint64_t ns);
/* Under the model's lock too: puts `v` into the victim's place, or in front. */
void kiln__renewal_replace(kiln_executor *executor, kiln_variant *v);
/* The same lock: a variant that was unlinked is freed, with its groups, when no run has it. */
void kiln__variant_retire(kiln_executor *executor, kiln_variant *variant);

/* -- pack_beside.c -- */
typedef struct kiln_asked_pack kiln_asked_pack;
void kiln__packs_begin(kiln_jit *jit);
/* No call is under way. */
void kiln__packs_end(kiln_jit *jit);

/* -- generation.c -- */

/* A new one becomes the jit's; the one before is over, and goes when no run has it. */
kiln_status *kiln__generation_begin(kiln_jit *jit) KILN_MUST_USE;
/* No job of the model's is run any more; then, when no call is under way, all of it goes. */
void kiln__generations_leave(kiln_jit *jit);
void kiln__generations_end(kiln_jit *jit);
/* The lasting copy of a name, under the jit's lock, in a scope. */
const char *kiln__jit_site(kiln_jit *jit, const char *site);

/* -- jit.c -- */

/* Counts of the generation that is now, under the lock: all that may go with it. */
void kiln__jit_count(kiln_jit *jit, kiln_counters *out_counters);
/* The root that serves calls of other flags than `root`, made if there is none; NULL: there are
 * enough of them. */
kiln_status *kiln__jit_other(kiln_executor *root, kiln_executor **out_other);
void kiln__jit_give_lock(void *jit);
/* Whether a place has warned; in a scope, for as long as the jit lives. */
bool *kiln__jit_warned(kiln_jit *jit, const kiln_source_range *range);

/* -- keep_profiles.c -- */

/* Profiles of the generation that is now stay with the jit; under the lock. */
kiln_status *kiln__jit_keep_profiles(kiln_jit *jit) KILN_MUST_USE;

/* -- dump_files.c -- */

/* With the flag `dump`: a variant that was made, and its groups, as files. */
void kiln__dump_files(const kiln_executor *executor, const kiln_variant *variant,
                      kiln_group_list groups);
