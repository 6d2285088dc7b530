/* thread.c: starting a thread, and moments to wait for. */
#include "base/thread.h"

#include <signal.h>

int kiln__thread_start(pthread_t *out_thread, void *(*body)(void *arg), void *arg) {
  enum { STACK_BYTES = 8 << 20 };
  pthread_attr_t attr;
  sigset_t all, old;
  int error = pthread_attr_init(&attr);
  if (error) return error;
  pthread_attr_setstacksize(&attr, STACK_BYTES);
  /* The host's signals are for the host's threads: a new thread inherits the mask. */
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  error = pthread_create(out_thread, &attr, body, arg);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  pthread_attr_destroy(&attr);
  return error;
}

void kiln__condition_init(pthread_cond_t *condition) {
  pthread_condattr_t attr;
  pthread_condattr_init(&attr);
  pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
  pthread_cond_init(condition, &attr);
  pthread_condattr_destroy(&attr);
}

struct timespec kiln__moment_in(clockid_t clock, int64_t ns) {
  enum { SECOND_NS = 1000000000 };
  struct timespec moment;
  clock_gettime(clock, &moment);
  moment.tv_nsec += ns;
  moment.tv_sec += moment.tv_nsec / SECOND_NS;
  moment.tv_nsec %= SECOND_NS;
  return moment;
}
