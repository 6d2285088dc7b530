/* thread.h: thread-local state of base/, in one block: that of scope.c, budget.c and mem.c; and
 * threads of the library's own. The state is for base/ only. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

typedef struct kiln__thread {
  struct kiln_budget *budget;   /* of the work that it does; NULL: none */
  struct kiln_scope *scope;     /* the innermost; NULL: none */
  int exceeding;                /* kiln_mem_exceed_begin without its end */
  bool aside;                   /* kiln_mem_count_aside */
  struct kiln_job_queue *jobs;  /* of whose thread it is; NULL: of none */
  struct kiln_workers *workers; /* the same */
} kiln__thread;

extern _Thread_local kiln__thread kiln__this_thread;

/* With 8 MiB of stack, and none of the host's signals; 0, or an error of pthread_create. */
int kiln__thread_start(pthread_t *out_thread, void *(*body)(void *arg), void *arg);
/* A condition that is waited for by CLOCK_MONOTONIC. */
void kiln__condition_init(pthread_cond_t *condition);
/* So many nanoseconds from now on, for waits of pthreads. */
struct timespec kiln__moment_in(clockid_t clock, int64_t ns);
