/* thread.h: thread-local state of base/, in one block: that of scope.c, budget.c and mem.c. */
#pragma once

#include <stdbool.h>

typedef struct kiln__thread {
  struct kiln_budget *budget;  /* of the work that it does; NULL: none */
  struct kiln_scope *scope;    /* the innermost; NULL: none */
  int exceeding;               /* kiln_mem_exceed_begin without its end */
  bool aside;                  /* kiln_mem_count_aside */
  struct kiln_job_queue *jobs; /* of whose thread it is; NULL: of none */
} kiln__thread;

extern _Thread_local kiln__thread kiln__this_thread;
