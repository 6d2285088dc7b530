/* compile_job.h: one compile job: what it works with, what it makes, how that is published.
 *
 * A job is run by the thread that has its executor's root->lock. What it makes lies in its own
 * arena, on graphs copied with types of their own; what it reads (the executor's source, a profile
 * that is ready, constants by reference) does not change. Nobody sees any of it before it is
 * published, under the model's lock: then variant, regions, groups and refusals are linked,
 * and the arena is the model's. A job that fails, for memory too, leaves nothing but its kernels in
 * the context's cache. Synchronous compilation is the job run on the calling thread. */
#pragma once

#include "jit/executor.h"

enum { KILN__MAX_TRIES = 3 };

/* -- compile_budget.c -- */

/* What the jobs of one call may take. */
typedef struct kiln_compile_allowance {
  kiln_call *call;
  kiln_budget budget;
  uint64_t begin_ns, groups_until_ns; /* 0: no limit */
  size_t held;
  bool is_limited; /* by the call, and not by flags */
} kiln_compile_allowance;

/* `call` NULL: of a job beside calls, which has until the model goes what flags give it, and the
 * memory that the call lent it which asked (call->compile_bytes).
 * What can be left to the interpreter gets the call's allowance for compiling; what the call
 * `needs` also the time that it has left. */
void kiln__compile_begin(kiln_compile_allowance *allowance, const kiln_jit *jit, kiln_call *call,
                         uint64_t lent_bytes, bool needs);
/* The call is charged only with what went beyond the allowance. */
void kiln__compile_end(kiln_compile_allowance *allowance);

/* -- compile_job.c -- */

typedef struct kiln_compile_job {
  /* Given by whoever runs it. */
  kiln_executor *ex;
  const kiln_compile_allowance *allowance;
  const kiln_ivalue *args; /* of the call: for kiln__compile_source */
  int arg_count;
  const kiln_arguments_seen *seen; /* the same of a job beside calls, which has none */
  int depth;                       /* of the variant */

  /* What it works with. */
  kiln_jit *jit;
  kiln_pass_runner runner;
  kiln_arena *arena;    /* of all that it makes, graphs excepted; the model's when published */
  kiln_arena *scratch;  /* the runner's */
  kiln_arena *loops;    /* of what groups are lowered to; ends with the job, as: */
  kiln_program program; /* what the variant's plan is made of, and another one to choose from: */
  kiln_program other;
  const char *site; /* whose refusals are told, or "" */

  /* What it makes. */
  kiln_variant *v;
  kiln_program source; /* with site and frozen, of kiln__compile_source */
  kiln_frozen *frozen;
  kiln_executor_list executors; /* of regions and forks */
  kiln_group_list groups;
  int group_count, kernel_count;
  uint64_t tune_ns; /* that searches for schedules took, beside the limit on compiling */
  int slot_count;   /* of the root's, that were looked at */
  KILN_VEC(kiln_jit_refusal) refusals;
} kiln_compile_job;

typedef kiln_status *kiln_compile_step(kiln_compile_job *job);

/* Runs `make` in a scope of its own, then `publish` under the model's lock; destroys the job.
 * `publish` links job->v, or takes the job's source; it cannot fail. */
kiln_status *kiln__job_run(kiln_compile_job *job, kiln_compile_step *make,
                           void (*publish)(kiln_compile_job *job)) KILN_MUST_USE;
/* A slot of the root that no group has; in a scope. */
kiln_group_slot *kiln__job_slot(kiln_compile_job *job);
/* Of the job's executor: told when it is published. `loc` may be zero. */
void kiln__job_refuse(kiln_compile_job *job, kiln_reason reason, const char *detail,
                      kiln_source_loc loc);
/* The same outside of jobs, told at once; where there is no memory for it, not at all. */
void kiln__jit_refuse(const kiln_executor *executor, kiln_reason reason, const char *detail);

/* -- program.c -- */

/* A copy of a graph with types of its own. */
kiln_status *kiln__program_copy(kiln_jit *jit, const kiln_graph *graph,
                                kiln_program *out) KILN_MUST_USE;
/* What a variant's plan is made of, by the pipeline `id` and those before it: noopt, bare, simple,
 * profile (`of` a variant whose profile is ready, with what it saw) or optimize (its groups, behind
 * guards). The same whenever it is made. */
kiln_status *kiln__program_make(const kiln_executor *executor, const kiln_variant *of,
                                kiln_pipeline_id id, kiln_pass_runner *runner,
                                kiln_program *out) KILN_MUST_USE;
/* Its groups behind guards: for the sizes of its types, or with a history for others too. */
kiln_status *kiln__program_guard(kiln_graph *graph, const kiln_shape_history *history,
                                 kiln_pass_runner *runner) KILN_MUST_USE;
/* Of its nodes and how they read each other. */
uint64_t kiln__program_fingerprint(const kiln_program *program);

/* -- compile.c: what jobs make -- */

/* Fallbacks become calls, of new regions' executors; `job` NULL: of nobody, for printing. */
kiln_status *kiln__replace_fallbacks(kiln_block *block, kiln_arena *scratch,
                                     kiln_compile_job *job) KILN_MUST_USE;
/* What levels start from: of a function ensured, copied, preoptimised, with the flags of `self`
 * (args[0] of a method's call) for constants. */
kiln_compile_step kiln__compile_source;
/* The plan of calls without JIT; bare: without inlining, in little time. */
kiln_compile_step kiln__compile_plain, kiln__compile_bare;
/* The plan that serves for good. */
kiln_compile_step kiln__compile_simple;
/* The instrumented plan of a new level; where there is nothing to profile, the simple one. */
kiln_compile_step kiln__compile_profiling;
/* The plan that the building variant's ready profile gives: fuse, guard, lower, compile, finish. */
kiln_compile_step kiln__compile_optimized;
