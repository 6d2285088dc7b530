/* jit.h: the executors of one model: profile, specialise, compile, run, and tell about it.
 *
 * A kiln_jit belongs to a model and hands out a kiln_callable for every function of its unit. It
 * owns profiles, plans, compiled groups and their counters. Executors are made at first use.
 * How an executor moves through its states stands in jit/executor.h; the passes in jit/passes.def
 * and jit/pipelines.def.
 *
 * Threads: every function here may be called by several threads at once, except create and
 * destroy. Compilation is on the calling thread (the flag compile is sync), and nobody waits for it
 * but calls of the same function; or on a thread of the context (async), and nobody waits
 * (jit/beside.c). executor.h has the locks. */
#pragma once

#include "codegen/codegen.h"
#include "guards/guards.h"
#include "ir/reason.h"
#include "ir/unit.h"
#include "runtime/plan.h"

typedef struct kiln_jit kiln_jit;

/* `env`, `unit` and `codegen` are borrowed and outlive the jit; `flags` are copied: a model keeps
 * the settings that it was loaded with. `codegen` NULL: nothing is fused. */
kiln_status *kiln_jit_create(const kiln_env *env, const kiln_flags *flags, kiln_unit *unit,
                             struct kiln_codegen *codegen, kiln_jit **out_jit) KILN_MUST_USE;
/* No call is under way. NULL is fine. */
void kiln_jit_destroy(kiln_jit *jit);

/* The callable of a function or method (of self first), borrowed until the jit is destroyed; also
 * put into function->callable. Its body is compiled by kiln_unit_ensure when it first runs. */
kiln_status *kiln_jit_callable(kiln_jit *jit, kiln_function *function,
                               const kiln_callable **out_callable) KILN_MUST_USE;

/* Runs a function of the unit within the epoch of the model: what api calls for the host. Its
 * executor is made at its first call. `args` are borrowed and match the function's schema (self
 * first). call->jit false: the plain interpreter. */
kiln_status *kiln_jit_call(kiln_jit *jit, kiln_call *call, kiln_function *function,
                           const kiln_ivalue *args, int arg_count,
                           kiln_ivalue *out_result) KILN_MUST_USE;

/* All that calls have had made goes, when no call has it any more, but for counts and profiles; the
 * next calls have it made anew. Callables that were given before are gone with it. */
kiln_status *kiln_jit_drop(kiln_jit *jit) KILN_MUST_USE;

/* Bytes that plans, kernels and packed weights take, those that are shared with other models too.
 */
uint64_t kiln_jit_bytes(kiln_jit *jit);
/* Grows whenever something was made. */
uint64_t kiln_jit_made(const kiln_jit *jit);

/* Returns when no job of the model's waits or runs: what calls have asked for is made, or refused.
 * KILN_LIMIT and KILN_CANCELLED of the budget (NULL: as long as it takes). */
kiln_status *kiln_jit_wait_idle(kiln_jit *jit, const kiln_budget *budget) KILN_MUST_USE;
/* From `on` to its end levels are made whether they pay or not (jit/ledger.h). May be nested. */
void kiln_jit_hurry(kiln_jit *jit, bool on);
/* How many jobs were asked for until now. */
uint64_t kiln_jit_asks(kiln_jit *jit);

/* -- Profiles of other processes (profiler/profile_file.h) -- */

/* Takes what a file has; KILN_NOT_FOUND, KILN_INVALID_FILE. */
kiln_status *kiln_jit_read_profiles(kiln_jit *jit, const char *path) KILN_MUST_USE;
/* Makes the method's plan from such a profile, if there is one, before it is called: beside the
 * caller, but with compile=sync, or with `may_take_time` where no kernel needs a compiler, now.
 * `self` has the flags and the weights of the calls to come. */
void kiln_jit_start(kiln_jit *jit, kiln_function *function, kiln_ivalue self, bool may_take_time);
/* Writes what was read and what calls have seen. `only_new`: nothing where calls have seen nothing
 * that was not read; what has come into the file in the meantime stays. */
kiln_status *kiln_jit_write_profiles(kiln_jit *jit, const char *path, bool only_new) KILN_MUST_USE;

/* -- Counters -- */

/* Fills everything but `calls`. */
void kiln_jit_counters(kiln_jit *jit, kiln_counters *out_counters);
/* Groups in order of making, also those that failed to compile; KILN_NOT_FOUND beyond the last.
 * Names and reasons are borrowed until the jit is destroyed. */
kiln_status *kiln_jit_group(kiln_jit *jit, int index, kiln_group_counters *out_group) KILN_MUST_USE;

/* Refusals: why nodes were not fused, guards failed, and so on; one entry for each (site, reason,
 * detail) with its count. False beyond the last. For `kiln explain`. */
typedef struct kiln_jit_refusal {
  const char *site; /* profile site: "__torch__.M.forward#0123456789abcdef" */
  kiln_reason reason;
  const char *detail;  /* "aten::mm", or "" */
  kiln_source_loc loc; /* line 0: unknown */
  uint64_t count;
} kiln_jit_refusal;
bool kiln_jit_refusal_at(kiln_jit *jit, int index, kiln_jit_refusal *out_refusal);

/* Guards that failed; false beyond the last. */
bool kiln_jit_guard_miss_at(kiln_jit *jit, int index, kiln_guard_miss *out_miss);
/* The context's, with flags and levels of the log as they were at the model's load. */
kiln_env *kiln_jit_env(kiln_jit *jit);
/* Counts a call of the host, before it begins; how many there were. */
void kiln_jit_count_call(kiln_jit *jit, kiln_call *call);
uint64_t kiln_jit_calls(kiln_jit *jit);

/* Groups in words, in the order of kiln_jit_group. */
typedef struct kiln_jit_group_words {
  const char *name, *operators, *shapes; /* "mul, relu 2 times", "Float(2, 3)" */
  kiln_source_loc loc;
  kiln_tuned tuned; /* its kernel's schedule */
} kiln_jit_group_words;
void kiln_jit_each_group(kiln_jit *jit, void (*each)(void *user, const kiln_jit_group_words *words),
                         void *user);

/* What making a variant took, and its runs beside the interpreter's: jit/ledger.h. */
typedef struct kiln_jit_ledger_row {
  const char *name, *site; /* of the function; the profile's site */
  int depth;
  uint64_t made_ns, interpreted_ns, compiled_ns; /* the shortest runs; 0: none was measured */
  uint64_t interpreted_runs, compiled_runs;      /* that these are the shortest of */
  bool is_retired;
} kiln_jit_ledger_row;
void kiln_jit_each_variant(kiln_jit *jit, void (*each)(void *user, const kiln_jit_ledger_row *row),
                           void *user);

/* Plans that are made from now on keep the time of each instruction, of calls that are `timed`. */
void kiln_jit_time(kiln_jit *jit);
/* An instruction of a plan that ran timed. */
typedef struct kiln_jit_time_row {
  const char *function; /* that the plan belongs to */
  int depth;            /* level of the plan */
  const char *kind;     /* "group", "operator", or "interpreter" for what is neither */
  const char *name;     /* "forward/TensorExprGroup_0", "aten::mm", "CALL" */
  kiln_source_loc loc;  /* line 0: unknown */
  uint64_t ns, count;
  uint64_t flops, bytes; /* of one run; 0: nothing, or nothing that is known */
  const void *tag;       /* of kiln_cache, while it runs */
} kiln_jit_time_row;
void kiln_jit_each_time(kiln_jit *jit, void (*each)(void *user, const kiln_jit_time_row *row),
                        void *user);

/* -- Text: what `kiln graph` prints -- */

#define KILN_JIT_STAGE_LIST(X)                                                     \
  X(FRONTEND, "frontend", "the function's graph as it was loaded")                 \
  X(PROFILED, "profiled", "the graph with prim::profile and what it saw")          \
  X(OPTIMIZED, "optimized", "the graph that runs now, with its fallbacks")         \
  X(BYTECODE, "bytecode", "the plan that runs now")                                \
  X(LOOP, "loop", "loop IR of the compiled groups")                                \
  X(SCHEDULE, "schedule", "how LLVM is to run the loop IR of the compiled groups") \
  X(LLVM, "llvm", "LLVM IR of the compiled groups")                                \
  X(ASM, "asm", "machine code of the compiled groups, as assembly")                \
  X(PTX, "ptx", "code of the compiled groups for a GPU (the flag ptx says which)")

typedef enum kiln_jit_stage {
#define KILN_JIT_STAGE_ENUM(id, name, meaning) KILN_JIT_STAGE_##id,
  KILN_JIT_STAGE_LIST(KILN_JIT_STAGE_ENUM)
#undef KILN_JIT_STAGE_ENUM
      KILN_JIT_STAGE__COUNT
} kiln_jit_stage;
/* KILN_JIT_STAGE__COUNT when no stage has that name. */
kiln_jit_stage kiln_jit_stage_find(kiln_str name);

/* Writes one stage of a function to `text` (inside a scope).
 * `site` chooses: "" the function itself; "*" the function and everything made below it; or the
 * name, or a prefix of the hash, of one group or region. A stage that was not reached yet gives a
 * line starting with "; " that says so; KILN_NOT_FOUND when no such site exists.
 * `dot`: Graphviz, for the stages that are graphs. */
kiln_status *kiln_jit_dump(kiln_jit *jit, kiln_function *function, kiln_jit_stage stage,
                           kiln_str site, bool dot, kiln_text *text) KILN_MUST_USE;
