/* check.h: what the files of `kiln check` share.
 *
 * check.c finds the cases and tells the verdicts, check_worker.c runs them in child processes (a
 * crash is a verdict, not the end), check_case.c runs recorded calls, check_ops.c operator samples,
 * check_language.c sequences of calls, check_bad.c malformed archives, skips.c reads the list of
 * what cannot run yet. */
#pragma once

#include <cjson/cJSON.h>

#include "tools/compare.h"
#include "tools/input.h"
#include "tools/tool.h"

typedef struct check_options {
  int64_t repeat, timeout_s;
  double rtol, atol; /* negative: the case's own */
  const char *skips;
  bool require_compiled, async, strict, json, in_process;
  tool_settings settings;
} check_options;

typedef struct check_case {
  char *folder;
  char *name;      /* of case.json, else the folder's */
  char *category;  /* "" when case.json does not say */
  char *complaint; /* why case.json cannot be used; NULL */
  cJSON *json;
} check_case;

/* Plain data with `reason` owned. */
typedef struct check_result {
  bool passed;
  bool exempt_from_groups; /* --require-compiled does not ask this case for groups */
  char *reason;            /* why it failed; NULL */
  double worst;
  kiln_counters counters;
} check_result;

/* What is wrong with the keys of a case.json, freed by the caller; NULL: nothing. */
char *check_keys(const cJSON *json);

/* Fails the result with the first reason it gets; takes `reason`. Returns false. */
bool check_fail(check_result *result, char *reason);
bool check_fail_status(check_result *result, const char *what, kiln_status *status);
/* A context for one case: prints thrown away. */
kiln_status *check_context(const check_options *options, kiln_context **out_context);
/* The tolerance, tightened by the options; `json` is the case or a sample. */
tool_comparison check_tolerance(const check_options *options, const cJSON *json);
const char *check_text(const cJSON *json, const char *key, const char *fallback);
/* The arguments in a tuple, copied: the call may change them. */
kiln_status *check_copy_inputs(const kiln_value *tuple, tool_inputs *out_inputs);
/* Adds the model's counters. */
void check_count(check_result *result, const kiln_model *model);

/* Runs one case in this process, whatever its category. */
void check_run(const check_options *options, const check_case *c, check_result *result);
void check_run_recorded(const check_options *options, const check_case *c, check_result *result);
void check_run_ops(const check_options *options, const check_case *c, check_result *result);
void check_run_language(const check_options *options, const check_case *c, check_result *result);
void check_run_bad(const check_options *options, const check_case *c, check_result *result);
bool check_is_bad(const check_case *c);

/* Runs cases in child processes; calls `done` for each in order. False when a child ended badly
 * after its cases (a leak that a sanitizer found). */
typedef void (*check_done_fn)(void *user, int index, const check_result *result);
bool check_run_all(const check_options *options, const check_case *cases, int count,
                   check_done_fn done, void *user);

/* -- Skips -- */

/* One row of the file: "| case or category | reason | issue |". */
typedef struct check_skip {
  char *name, *reason;
  bool groups_only; /* it says why no group is formed; the case must pass */
} check_skip;
typedef struct check_skips {
  check_skip *items;
  int count;
} check_skips;

/* False with a complaint when the file cannot be read. */
bool check_skips_read(const char *path, check_skips *out_skips);
/* Matches the case's name, its category, or "category/name". NULL when it is not listed. */
const check_skip *check_skips_find(const check_skips *skips, const check_case *c, bool groups_only);
void check_skips_free(check_skips *skips);
