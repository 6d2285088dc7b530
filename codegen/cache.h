/* cache.h: the kernels of a context, by what they are made of. For codegen/ only.
 *
 * One of equal groups is compiled, whichever model, variant or thread asks, a job that was given up
 * included. A kernel lives as long as somebody has it: what goes for lack of room, the longest
 * unused first, is compiled anew when it is asked for again.
 *
 * Threads A and B ask for one kernel. A enters first, and finds no code; B waits in enter. A
 * compiles, and leaves: B enters and takes the code. Had A failed, B would compile, under a budget
 * of its own. Who asks for another kernel waits for neither. */
#pragma once

#include "base/hash.h"
#include "base/job_lock.h"
#include "codegen/codegen.h"

enum { KILN__CACHE_SLOTS = 1024 };

typedef struct kiln__cache_entry {
  struct kiln__cache_entry *same_slot;
  struct kiln__cache_entry *older, *newer; /* by last use */
  kiln_digest key;
  kiln_job_lock making; /* of `code` */
  kiln_compiled *code;  /* retained; NULL: none yet */
  int users;            /* threads between enter and leave, those that wait included */
  uint64_t bytes;       /* of it that are counted */
} kiln__cache_entry;

typedef struct kiln__cache {
  const kiln_env *env;
  pid_t maker;
  pthread_mutex_t lock; /* of all but `making` and what it protects; for moments */
  uint64_t budget, bytes;
  kiln__cache_entry *oldest, *newest;
  kiln__cache_entry *slots[KILN__CACHE_SLOTS];
} kiln__cache;

void kiln__cache_init(kiln__cache *cache, const kiln_env *env, uint64_t budget);
void kiln__cache_deinit(kiln__cache *cache);
/* The entry of that key, which this thread alone has until it leaves; it may fill in the code.
 * Fails when the thread's budget ends, or in a child of a fork where a thread of the parent has it.
 */
kiln_status *kiln__cache_enter(kiln__cache *cache, kiln_digest key,
                               kiln__cache_entry **out_entry) KILN_MUST_USE;
void kiln__cache_leave(kiln__cache *cache, kiln__cache_entry *entry);
