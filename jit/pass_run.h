/* pass_run.h: the one runner of passes, over jit/passes.def and jit/pipelines.def.
 *
 * It verifies the graph after each pass (debug builds, or KILN_VERIFY), times it, prints what it
 * changed (KILN_LOG=pass=1, with the graph at 2), stops it after its n-th run (KILN_PASS_LIMIT),
 * and with KILN_VERIFY checks that a pass tells its changes and keeps what it says it keeps, and
 * prints and reparses the graph. */
#pragma once

#include "ir/pass.h"

/* -- Tables -- */

/* What a pass leaves as it is; checked where the runner verifies. */
typedef enum kiln_pass_keeps {
  KILN_KEEPS_,       /* nothing is said */
  KILN_KEEPS_shapes, /* the types of values */
  KILN_KEEPS_graph,  /* everything: an analysis, which prints to `report` */
} kiln_pass_keeps;

typedef struct kiln_pass_info {
  const char *name, *meaning;
  kiln_pass_fn fn;
  kiln_pass_keeps keeps;
} kiln_pass_info;

typedef enum kiln_pass_id {
#define KILN_PASS(name, meaning, fn, keeps) KILN_PASS_##name,
#include "jit/passes.def"
#undef KILN_PASS
  KILN_PASS__COUNT
} kiln_pass_id;
extern const kiln_pass_info kiln_pass_table[];

typedef struct kiln_pipeline_info {
  const char *name, *meaning;
  int step_count;
  const uint8_t *steps; /* kiln_pass_id */
} kiln_pipeline_info;

typedef enum kiln_pipeline_id {
#define KILN_PIPELINE(name, meaning, steps) KILN_PIPELINE_##name,
#include "jit/pipelines.def"
#undef KILN_PIPELINE
  KILN_PIPELINE__COUNT
} kiln_pipeline_id;
extern const kiln_pipeline_info kiln_pipeline_table[];

/* -- The runner -- */

/* What the passes of one model may do in all, whichever runner runs them. Atomic. */
typedef struct kiln_pass_quota {
  uint64_t fold_left;              /* bytes of constants that passes may still make */
  uint32_t runs[KILN_PASS__COUNT]; /* that are left of each; UINT32_MAX: any number */
} kiln_pass_quota;
/* KILN_INVALID_ARGUMENT when the flag pass_limit names a pass that is none. */
kiln_status *kiln_pass_quota_init(kiln_pass_quota *quota, const kiln_env *env) KILN_MUST_USE;

/* Used by one thread at a time. Counts and times are over its life. */
typedef struct kiln_pass_runner {
  kiln_env *env;       /* borrowed; its flags are those of the model */
  kiln_call *call;     /* owned: runs kernels on constants */
  kiln_arena *scratch; /* owned */
  void *context;       /* handed to the passes */
  void (*refuse)(kiln_pass *pass, const kiln_node *node, kiln_reason reason, const char *detail);
  kiln_text *report; /* borrowed: where analyses print; NULL: nowhere */
  bool verify;
  int64_t groups_left;    /* for a pass that makes groups; at first the flag max_groups */
  kiln_pass_quota *quota; /* borrowed, or: */
  kiln_pass_quota own;
  uint32_t changes[KILN_PASS__COUNT];
  uint64_t ns[KILN_PASS__COUNT];
} kiln_pass_runner;

/* `quota` NULL: one of its own, and kiln_pass_quota_init's failures. */
kiln_status *kiln_pass_runner_init(kiln_pass_runner *runner, kiln_env *env,
                                   kiln_pass_quota *quota) KILN_MUST_USE;
void kiln_pass_runner_deinit(kiln_pass_runner *runner);

/* Runs one pass over the graph. After a failure the graph is to be thrown away. */
kiln_status *kiln_pass_run(kiln_pass_runner *runner, kiln_graph *graph,
                           kiln_pass_id pass) KILN_MUST_USE;
kiln_status *kiln_pipeline_run(kiln_pass_runner *runner, kiln_graph *graph,
                               kiln_pipeline_id pipeline) KILN_MUST_USE;
/* Runs the pipeline until it changes nothing, or for the 64th time. */
kiln_status *kiln_pipeline_settle(kiln_pass_runner *runner, kiln_graph *graph,
                                  kiln_pipeline_id pipeline) KILN_MUST_USE;
/* "dce,cse": names of passes or pipelines; KILN_NOT_FOUND names one that is neither. */
kiln_status *kiln_pass_run_names(kiln_pass_runner *runner, kiln_graph *graph,
                                 kiln_str names) KILN_MUST_USE;
