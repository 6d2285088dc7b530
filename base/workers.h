/* workers.h: threads that run tasks, each one from its beginning to its end.
 *
 * Tasks wait in one list, and are begun in the order in which they came. A thread is started when a
 * task comes, none of those that there are is idle, and there may be more; it stays until the end.
 *
 * For example, of two threads A runs a task of a second and B many short ones; what comes meanwhile
 * waits for B alone. A task may drop the last reference on who owns the workers: their end, asked
 * for by thread A, waits for B, and A leaves when its task returns.
 *
 * fork(): threads and tasks stay with the parent. The child starts with none of either. */
#pragma once

#include "base/mem.h"

typedef struct kiln_queued_task {
  void (*run)(struct kiln_queued_task *task);
  struct kiln_queued_task *next; /* the workers' */
} kiln_queued_task;

typedef struct kiln_workers kiln_workers;

/* At most `most` threads. Its memory is not counted, since it may outlive who counts. */
kiln_status *kiln_workers_create(int most, kiln_workers **out_workers) KILN_MUST_USE;
/* No task waits, and those that run are at their ends. NULL is fine. */
void kiln_workers_destroy(kiln_workers *workers);
/* False: there is no thread, and none can be started. */
bool kiln_workers_add(kiln_workers *workers, kiln_queued_task *task);
