/* workers.c: threads and the tasks that wait for them. */
#include "base/workers.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/thread.h"

struct kiln_workers {
  pid_t maker;          /* atomic: of the process that the threads are of */
  pthread_mutex_t lock; /* of all below */
  pthread_cond_t came;
  bool ending;
  kiln_queued_task *first, *last;
  int waiting, idle; /* tasks; threads */
  int count, most;
  pthread_t threads[];
};

static void *run_tasks(void *arg) {
  kiln_workers *w = arg;
  kiln__this_thread.workers = w;
  pthread_mutex_lock(&w->lock);
  for (;;) {
    w->idle++;
    while (!w->first && !w->ending) pthread_cond_wait(&w->came, &w->lock);
    w->idle--;
    kiln_queued_task *task = w->first;
    if (!task) break;
    w->first = task->next;
    if (!w->first) w->last = NULL;
    w->waiting--;
    pthread_mutex_unlock(&w->lock);
    task->run(task);                             /* it may be gone when this returns */
    if (!kiln__this_thread.workers) return NULL; /* and so may they */
    pthread_mutex_lock(&w->lock);
  }
  pthread_mutex_unlock(&w->lock);
  return NULL;
}

kiln_status *kiln_workers_create(int most, kiln_workers **out_workers) {
  kiln_workers *w = *out_workers = calloc(1, sizeof *w + (size_t)most * sizeof *w->threads);
  if (!w) return kiln_status_oom();
  w->maker = getpid();
  w->most = most;
  pthread_mutex_init(&w->lock, NULL);
  pthread_cond_init(&w->came, NULL);
  return NULL;
}

void kiln_workers_destroy(kiln_workers *w) {
  if (!w) return;
  if (__atomic_load_n(&w->maker, __ATOMIC_ACQUIRE) == getpid()) {
    pthread_mutex_lock(&w->lock);
    w->ending = true;
    pthread_cond_broadcast(&w->came);
    pthread_mutex_unlock(&w->lock);
    for (int i = 0; i < w->count; i++) {
      if (pthread_equal(w->threads[i], pthread_self())) {
        pthread_detach(w->threads[i]);
        kiln__this_thread.workers = NULL;
      } else {
        pthread_join(w->threads[i], NULL);
      }
    }
    pthread_cond_destroy(&w->came);
    pthread_mutex_destroy(&w->lock);
  }
  free(w);
}

/* In a fork's child the first thread to come begins anew, and others wait for that moment. */
static void adopt(kiln_workers *w) {
  enum { ADOPTING = -1 };
  const pid_t own = getpid();
  for (;;) {
    pid_t maker = __atomic_load_n(&w->maker, __ATOMIC_ACQUIRE);
    if (__builtin_expect(maker == own, 1)) return;
    if (maker != ADOPTING && __atomic_compare_exchange_n(&w->maker, &maker, (pid_t)ADOPTING, false,
                                                         __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
      break;
    sched_yield();
  }
  pthread_mutex_init(&w->lock, NULL);
  pthread_cond_init(&w->came, NULL);
  w->first = w->last = NULL;
  w->waiting = w->idle = w->count = 0;
  __atomic_store_n(&w->maker, own, __ATOMIC_RELEASE);
}

bool kiln_workers_add(kiln_workers *w, kiln_queued_task *task) {
  adopt(w);
  pthread_mutex_lock(&w->lock);
  task->next = NULL;
  if (w->waiting >= w->idle && w->count < w->most &&
      kiln__thread_start(&w->threads[w->count], run_tasks, w) == 0)
    w->count++;
  const bool taken = w->count > 0;
  if (taken) {
    *(w->last ? &w->last->next : &w->first) = task;
    w->last = task;
    w->waiting++;
    pthread_cond_signal(&w->came);
  }
  pthread_mutex_unlock(&w->lock);
  return taken;
}
