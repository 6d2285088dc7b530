/* job_lock.h: a fork-aware lock, which a thread may hold for as long as a compile job takes.
 *
 * Waiting ends with the waiter's budget, or with an error where it would never end. For example,
 * thread A compiles and has the lock, and thread B calls fork(). The child has B alone; A's lock is
 * taken in its copy of the memory, and what it protects is half written. B asks for the lock: its
 * holder is of the parent's process, so B gets KILN_UNSUPPORTED. In the parent, thread C asks: the
 * holder is of C's own process, and C waits for A. */
#pragma once

#include <pthread.h>

#include "base/budget.h"

typedef struct kiln_job_lock {
  pthread_mutex_t mutex;
  pid_t holder; /* atomic: the process that took it last */
} kiln_job_lock;

void kiln_job_lock_init(kiln_job_lock *lock);
void kiln_job_lock_deinit(kiln_job_lock *lock);
/* KILN_LIMIT and KILN_CANCELLED of the budget (NULL: as long as it takes), KILN_UNSUPPORTED in a
 * child of a fork whose parent's other thread had it. */
kiln_status *kiln_job_lock_take(kiln_job_lock *lock, const kiln_budget *budget) KILN_MUST_USE;
/* The same, false for any of these: for those who only want to look. */
bool kiln_job_lock_look(kiln_job_lock *lock);
void kiln_job_lock_give(kiln_job_lock *lock);

/* A lock that is held for moments, at the cost of a mutex; `maker` is the process that made it.
 * KILN_UNSUPPORTED as above, after a second. Given back as any mutex. */
kiln_status *kiln_short_lock_take(pthread_mutex_t *lock, pid_t maker) KILN_MUST_USE;
