/* env.h: the environment, which a context hands to the layers below it. No layer keeps process-wide
 * state: whatever would be global is reached through a kiln_env, which the context owns and others
 * borrow. */
#pragma once

#include "base/cpu.h"
#include "base/flags.h"
#include "base/job_queue.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/pool.h"
#include "base/timeline.h"

typedef enum kiln_isa {
  KILN_ISA_V2,
  KILN_ISA_AVX2,
  KILN_ISA_AVX512,
  KILN_ISA_AVX512BF16, /* products of pairs of bf16 */
  KILN_ISA__COUNT
} kiln_isa;

typedef struct kiln_env {
  kiln_mem *mem;
  kiln_log log;
  kiln_flags flags;
  uint64_t from_environment, from_options; /* who set a flag: its bit by its place in the table */
  kiln_isa isa;                            /* what this CPU has, capped by the flag */
  kiln_cpu_caches caches;
  bool tiles;              /* AMX's are there and taken: the flag matmul asks for bf16 */
  kiln_pool *pool;         /* retained; NULL: one thread */
  kiln_timeline *timeline; /* NULL: nobody asked for one */
  kiln_job_queue *jobs;    /* compile jobs beside calls */
} kiln_env;

/* Lays the environment variables (NULL: none) and `options` (NULL: none), entries of the same form,
 * over the defaults, makes the memory and the pool and finds the instruction set. */
kiln_status *kiln_env_create_with(char *const *environment, char *const *options,
                                  kiln_env **out_env) KILN_MUST_USE;
kiln_status *kiln_env_create(char *const *environment, kiln_env **out_env) KILN_MUST_USE;
/* What values of flags ask for at once, when they are set: the folder of `dump` is made, or
 * KILN_INVALID_FILE. */
kiln_status *kiln_env_check_flags(const kiln_flags *flags) KILN_MUST_USE;
void kiln_env_destroy(kiln_env *env);
/* The highest ISA of this CPU, by CPUID and the operating system's saved state. */
kiln_isa kiln_isa_detect(void);
/* Whether it has AMX's tiles of bf16 and the system lets this process use them, for which it is
 * asked: stacks for signals must be larger then (AT_MINSIGSTKSZ). */
bool kiln_isa_take_tiles(void);
const char *kiln_isa_name(kiln_isa isa);
