/* job_lock.c: waiting for other threads, where they may be of the process before a fork(). */
#include "base/job_lock.h"

#include "base/thread.h"

#include <time.h>
#include <unistd.h>

enum { POLL_NS = 5000000, LOOKS = 4, SECOND_NS = 1000000000 };

void kiln_job_lock_init(kiln_job_lock *lock) {
  pthread_mutex_init(&lock->mutex, NULL);
  lock->holder = getpid();
}

void kiln_job_lock_deinit(kiln_job_lock *lock) { pthread_mutex_destroy(&lock->mutex); }

/* Whether it was taken before the fork() that made this process: whoever has taken it in this
 * process says so at once, if not at the first look. */
static bool is_orphan(const kiln_job_lock *lock) {
  for (int i = 0; i < LOOKS; i++) {
    if (__atomic_load_n(&lock->holder, __ATOMIC_RELAXED) == getpid()) return false;
    nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
  }
  return true;
}

static kiln_status *orphaned(void) {
  return KILN_ERROR(KILN_UNSUPPORTED,
                    "another thread was at work here when this process was forked: a child makes a "
                    "context of its own then");
}

static bool wait_for(pthread_mutex_t *mutex, int64_t ns) {
  const struct timespec until = kiln__moment_in(CLOCK_REALTIME, ns);
  return pthread_mutex_timedlock(mutex, &until) == 0;
}

kiln_status *kiln_job_lock_take(kiln_job_lock *lock, const kiln_budget *budget) {
  bool taken = pthread_mutex_trylock(&lock->mutex) == 0;
  if (!taken && is_orphan(lock)) {
    taken = pthread_mutex_trylock(&lock->mutex) == 0; /* it may have been taken and given since */
    if (!taken) return orphaned();
  }
  while (!taken && kiln_budget_may_end(budget)) {
    taken = wait_for(&lock->mutex, POLL_NS);
    if (!taken) KILN_TRY(kiln_budget_check(budget, 0));
  }
  if (!taken) pthread_mutex_lock(&lock->mutex);
  __atomic_store_n(&lock->holder, getpid(), __ATOMIC_RELAXED);
  return NULL;
}

bool kiln_job_lock_look(kiln_job_lock *lock) {
  kiln_status *status = kiln_job_lock_take(lock, NULL);
  kiln_status_destroy(status);
  return !status;
}

void kiln_job_lock_give(kiln_job_lock *lock) { pthread_mutex_unlock(&lock->mutex); }

kiln_status *kiln_short_lock_take(pthread_mutex_t *lock, pid_t maker) {
  if (__builtin_expect(pthread_mutex_trylock(lock) == 0, 1)) return NULL;
  if (maker != getpid()) return wait_for(lock, SECOND_NS) ? NULL : orphaned();
  pthread_mutex_lock(lock);
  return NULL;
}
