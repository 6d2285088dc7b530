/* levels.h: what dispatch, the state machine and jobs beside calls have in common. For executor.c,
 * levels.c and beside.c.
 *
 * A call asks find_variant first. Where nothing fits, its thread makes what is missing (levels.c),
 * or with compile=async asks for a job that does, and runs the plan that serves in the meantime
 * (beside.c). */
#pragma once

#include "jit/compile_job.h"

/* What one call asks for, and the jobs that it needs may take. */
typedef struct kiln__request {
  kiln_executor *ex;
  kiln_call *call;         /* NULL, with the arguments: of a job beside calls, which has */
  const kiln_ivalue *args; /* borrowed */
  int arg_count;
  const kiln_arguments_seen *seen; /* what is left of the arguments that it was asked for with */
  kiln_variant *preparing;         /* or: is to be prepared with these, or tried */
  const kiln_weights *weights;
  uint64_t lent_bytes;      /* by that call; of a job beside calls */
  bool is_quick;            /* what needs a compiler is left to others */
  bool varied;              /* its shapes, and those of calls before it: of such a job */
  uint32_t version;         /* of the executor at that time */
  kiln_compile_step *plain; /* kiln__compile_plain, or bare */
  kiln_compile_allowance allowance;
  const kiln_plan *plan; /* the answer */
} kiln__request;

/* -- executor.c -- */

/* The variant that serves these arguments, or NULL. */
kiln_variant *kiln__find_variant(kiln_executor *executor, kiln_call *call, const kiln_ivalue *args,
                                 int arg_count);
/* Counts a call that variant `taken` serves (NULL: none): those before it missed. Where it has
 * given way in the meantime, the one in its place has its counters. */
void kiln__count_dispatch(kiln_call *call, const kiln_executor *executor,
                          const kiln_variant *taken);
/* The object that a method is called on has the flags that its plans were made for. Its first job
 * finds out which they are, so before it any may do. */
bool kiln__flags_hold(const kiln_executor *executor, const kiln_ivalue *args, int arg_count);

/* -- levels.c -- */

typedef kiln_status *kiln__plan_maker(kiln__request *q);

/* Runs `make` under its lock, a root's of levels or of plain plans, and a budget for compiling.
 * `needs`: the call cannot go on without. */
kiln_status *kiln__run_locked(kiln__request *q, bool needs, kiln__plan_maker *make) KILN_MUST_USE;
/* Moves on until there is a plan for these arguments; none where another thread has made the
 * executor for other flags than the caller's. */
kiln__plan_maker kiln__make_level;
/* One move of a job beside calls: a level is begun, or what was recorded is compiled. */
kiln__plan_maker kiln__make_beside;
/* The first one of a method that was not called yet: its level is begun with args[0], and where a
 * file has its profile, that is what was recorded. */
kiln__plan_maker kiln__start_beside;
/* Another one: computes of weights what the first run of a variant would, which then serves. */
kiln__plan_maker kiln__prepare_beside;
/* Another one: a variant is to be tried against the plan of calls without JIT. */
kiln__plan_maker kiln__try_beside;
/* The plan of calls without JIT; where inlining takes too long, one without it. */
kiln_status *kiln__plan_without_jit(kiln__request *q, const kiln_plan **out_plan) KILN_MUST_USE;
/* A level failed: why, in one word where one fits. */
void kiln__tell_failure(kiln_executor *executor, kiln_status *status);

/* -- beside.c -- */

/* The plan that serves a call until a job has made a better one, which is asked for. `serving`: the
 * variant that holds, for all or unprepared, or NULL; `version`: from before it was looked for.
 * NULL: there is no plan yet. */
const kiln_plan *kiln__serve_beside(kiln_executor *executor, kiln_call *call,
                                    const kiln_ivalue *args, int arg_count, kiln_variant *serving,
                                    uint32_t version);
/* A job is to try the variant against the interpreter; `version` as above. */
void kiln__ask_trial(kiln_executor *executor, kiln_call *call, kiln_variant *variant,
                     uint32_t version);
/* The jobs of a model: no more are run, and those that wait or run are gone. */
void kiln__leave_jobs(kiln_jit *jit);
