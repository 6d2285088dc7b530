/* env.h: what a context hands to the layers below it. No layer keeps process-wide state: whatever
 * would be global is reached through a kiln_env, which the context owns and others borrow. */
#ifndef KILN_BASE_ENV_H
#define KILN_BASE_ENV_H

#include "base/flags.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/pool.h"

typedef enum kiln_isa { KILN_ISA_V2, KILN_ISA_AVX2, KILN_ISA_AVX512, KILN_ISA__COUNT } kiln_isa;

typedef struct kiln_env {
  kiln_mem *mem;
  kiln_log log;
  kiln_flags flags;
  kiln_isa isa;    /* what this CPU has, capped by the flag */
  kiln_pool *pool; /* retained; NULL: one thread */
} kiln_env;

/* Reads the environment variables (NULL: none) over the defaults, makes the memory and the pool and
 * finds the instruction set. */
kiln_status *kiln_env_create(char *const *environment, kiln_env **out_env) KILN_MUST_USE;
void kiln_env_destroy(kiln_env *env);
/* The highest ISA of this CPU, by CPUID and the operating system's saved state. */
kiln_isa kiln_isa_detect(void);
const char *kiln_isa_name(kiln_isa isa);

#endif
