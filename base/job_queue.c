/* job_queue.c: jobs that wait, and the thread that runs them. */
#include "base/job_queue.h"

#include "base/cpu.h"
#include "base/thread.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { TURN_NS = 100000 };
enum { POLL_NS = 5000000, SECOND_NS = 1000000000, ADOPTING = -1 };

/* Between the queue and who of the host comes. */
typedef struct gate {
  int refs;              /* atomic: the queue's, and of each that was handed over */
  pthread_mutex_t lock;  /* of one job at a time */
  kiln_job_queue *queue; /* NULL: it has gone */
} gate;

struct kiln_job_queue {
  kiln_mem *mem;
  int share, threads, nice;
  pid_t maker;          /* atomic: of the process that the thread is of; ADOPTING: it changes */
  pthread_mutex_t lock; /* of all below */
  pthread_cond_t came, ended;
  pthread_t thread;
  bool started, ending;
  kiln_host_jobs host; /* with a gate: runs the jobs */
  gate *gate;          /* NULL: the thread does */
  kiln_job_owner *owners;
  kiln_queued_job *first, *last;
  cpu_set_t processors;        /* that the thread may use */
  double most;                 /* of them at a time */
  uint64_t woke_ns, worked_ns; /* the thread's own: when its turn began, and its processor time */
  uint64_t gave_back_ns;       /* likewise: when memory was given back last */
  kiln_job_owner *running;     /* the owner of the job that runs; NULL: none does */
  bool running_is_counted;     /* with: among the calls */
  int waiters;                 /* threads that wait for jobs: counted among the calls too */
  void (*idle)(void *user);    /* or NULL; with */
  void *idle_user;
  int idle_seconds;
  bool idles; /* it runs */
};

/* -- The thread -- */

/* sched_setattr(2), which the C library has no name for. */
typedef struct attributes {
  uint32_t size, policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime, deadline, period;
} attributes;

/* Turns beside a busy caller are as short as Linux makes them (from 6.12 on; others choose): the
 * caller then loses the share, and not a few milliseconds at once. A refusal changes nothing but
 * speed. */
static void lower_priority(int nice) {
  const attributes own = {.size = sizeof own, .nice = nice, .runtime = TURN_NS};
  (void)syscall(SYS_sched_setattr, 0, &own, 0);
}

int kiln_job_queue_calls(kiln_job_queue *q) {
  int calls = 0;
  pthread_mutex_lock(&q->lock);
  for (kiln_job_owner *owner = q->owners; owner; owner = owner->next)
    if (owner->count_calls) calls += owner->count_calls(owner);
  calls -= q->waiters + (q->running && q->running_is_counted);
  pthread_mutex_unlock(&q->lock);
  return calls;
}

/* Whether calls keep all processors busy that this process may use. */
static bool is_crowded(kiln_job_queue *q) {
  const int calls = kiln_job_queue_calls(q);
  return calls > 0 && (double)calls * q->threads + 1 > q->most;
}

static uint64_t processor_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
}

static void begin_turn(kiln_job_queue *q) {
  q->woke_ns = kiln_now_ns();
  q->worked_ns = processor_ns();
}

void kiln_job_breathe(void) {
  kiln_job_queue *q = kiln__this_thread.jobs;
  if (!q || kiln_now_ns() - q->woke_ns < TURN_NS) return;
  const uint64_t worked = processor_ns() - q->worked_ns;
  const uint64_t rest = worked * (uint64_t)(100 - q->share) / (uint64_t)q->share;
  const uint64_t until = kiln_now_ns() + rest;
  while (worked >= TURN_NS && kiln_now_ns() < until && is_crowded(q))
    (void)nanosleep(&(struct timespec){.tv_nsec = TURN_NS}, NULL);
  begin_turn(q);
}

/* Those of the thread that has started this one, and those of the process's first: a host may keep
 * some threads on one. */
static void find_processors(kiln_job_queue *q) {
  cpu_set_t first;
  CPU_ZERO(&q->processors);
  (void)sched_getaffinity(0, sizeof q->processors, &q->processors);
  if (sched_getaffinity(getpid(), sizeof first, &first) == 0)
    CPU_OR(&q->processors, &q->processors, &first);
  const double all = CPU_COUNT(&q->processors), quota = kiln_cpu_quota();
  q->most = quota > 0 && quota < all ? quota : all;
}

/* From the processor `at`, if there is another one. */
static void keep_away(const kiln_job_queue *q, int at) {
  cpu_set_t allowed = q->processors;
  const size_t cpu = at < 0 ? CPU_SETSIZE : (size_t)at;
  if (cpu < CPU_SETSIZE && CPU_ISSET(cpu, &allowed) && CPU_COUNT(&allowed) > 1)
    CPU_CLR(cpu, &allowed);
  (void)sched_setaffinity(0, sizeof allowed, &allowed); /* of this thread */
}

/* Looks at all that wait: some 10 ns a job, and a job takes a millisecond. */
static kiln_queued_job *take_best(kiln_job_queue *q) {
  kiln_queued_job **best = &q->first, *before = NULL;
  uint64_t most = q->first->worth(q->first);
  for (kiln_queued_job *job = q->first; job->next; job = job->next) {
    const uint64_t worth = job->next->worth(job->next);
    if (worth <= most) continue;
    most = worth;
    best = &job->next;
    before = job;
  }
  kiln_queued_job *job = *best;
  *best = job->next;
  if (q->last == job) q->last = before;
  return job;
}

static void run_idle(kiln_job_queue *q) {
  void (*idle)(void *user) = q->idle;
  void *user = q->idle_user;
  q->idles = true;
  pthread_mutex_unlock(&q->lock);
  idle(user);
  pthread_mutex_lock(&q->lock);
  q->idles = false;
  pthread_cond_broadcast(&q->ended);
}

/* Under the lock, until there is one, or the queue ends. */
static void wait_for_job(kiln_job_queue *q) {
  const int64_t ns = (int64_t)q->idle_seconds * SECOND_NS;
  const struct timespec until = kiln__moment_in(CLOCK_MONOTONIC, ns);
  bool over = !q->idle;
  while (!q->first && !q->ending) {
    if (over) {
      pthread_cond_wait(&q->came, &q->lock);
    } else if (pthread_cond_timedwait(&q->came, &q->lock, &until) == ETIMEDOUT) {
      over = true;
      if (q->idle && !q->first && !q->ending) run_idle(q);
    }
  }
}

/* Leaves the lock. */
static kiln_queued_job *begin_job(kiln_job_queue *q) {
  kiln_queued_job *job = take_best(q);
  q->running = job->owner;
  q->running_is_counted = job->is_counted;
  pthread_mutex_unlock(&q->lock);
  return job;
}
/* Takes it. */
static void end_job(kiln_job_queue *q) {
  pthread_mutex_lock(&q->lock);
  q->running->jobs--;
  q->running = NULL;
  pthread_cond_broadcast(&q->ended);
}

/* Behind the last job: what they have worked on, calls would hardly take. Not often: who asks for
 * memory next, a job or a call, takes page faults. */
static void give_back(kiln_job_queue *q) {
  const uint64_t now = kiln_now_ns();
  if (now - q->gave_back_ns < SECOND_NS) return;
  q->gave_back_ns = now;
  pthread_mutex_unlock(&q->lock);
  kiln_mem_give_back(q->mem);
  pthread_mutex_lock(&q->lock);
}

static void *run_jobs(void *arg) {
  kiln_job_queue *q = arg;
  lower_priority(q->nice);
  find_processors(q);
  (void)kiln_mem_count_aside(true);
  kiln__this_thread.jobs = q;
  pthread_mutex_lock(&q->lock);
  for (;;) {
    wait_for_job(q);
    if (!q->first) break;
    kiln_queued_job *job = begin_job(q);
    keep_away(q, job->cpu);
    begin_turn(q);
    job->run(job); /* it may be added anew from here on, or be gone when this returns */
    end_job(q);
    if (!q->first) give_back(q);
  }
  pthread_mutex_unlock(&q->lock);
  return NULL;
}

static bool start(kiln_job_queue *q) {
  q->started = kiln__thread_start(&q->thread, run_jobs, q) == 0;
  return q->started;
}

/* -- The host -- */

static void release_gate(gate *g) {
  if (__atomic_sub_fetch(&g->refs, 1, __ATOMIC_ACQ_REL)) return;
  pthread_mutex_destroy(&g->lock);
  free(g);
}

/* At the gate: one job, if there is one. */
static void run_one(kiln_job_queue *q) {
  pthread_mutex_lock(&q->lock);
  if (q->first) {
    kiln_queued_job *job = begin_job(q);
    const bool was = kiln_mem_count_aside(true);
    job->run(job);
    kiln_mem_count_aside(was);
    end_job(q);
  }
  pthread_mutex_unlock(&q->lock);
}

static void come_to(void *data) {
  gate *g = data;
  pthread_mutex_lock(&g->lock);
  if (g->queue) run_one(g->queue);
  pthread_mutex_unlock(&g->lock);
  release_gate(g);
}

kiln_status *kiln_job_queue_set_host(kiln_job_queue *q, const kiln_host_jobs *host) {
  gate *g = q->gate ? q->gate : calloc(1, sizeof *g);
  if (!g) return kiln_status_oom();
  q->host = *host;
  if (q->gate) return NULL;
  *g = (gate){.refs = 1, .queue = q};
  pthread_mutex_init(&g->lock, NULL);
  q->gate = g;
  return NULL;
}

/* -- Making and ending -- */

static void init_conditions(kiln_job_queue *q) {
  kiln__condition_init(&q->came);
  kiln__condition_init(&q->ended);
}

kiln_status *kiln_job_queue_create(kiln_mem *mem, int share, int threads,
                                   kiln_job_queue **out_queue) {
  kiln_job_queue *q = *out_queue = kiln_mem_alloc_zero(mem, sizeof *q);
  if (!q) return kiln_status_oom();
  q->mem = mem;
  q->share = share;
  q->threads = threads;
  q->maker = getpid();
  const double of_caller = share / (100.0 - share);
  const int nice = (int)lround(-log(of_caller) / log(1.25));
  q->nice = nice < 0 ? 0 : nice > 19 ? 19 : nice;
  pthread_mutex_init(&q->lock, NULL);
  init_conditions(q);
  return NULL;
}

void kiln_job_queue_destroy(kiln_job_queue *q) {
  if (!q) return;
  const bool own = __atomic_load_n(&q->maker, __ATOMIC_ACQUIRE) == getpid();
  if (own && q->started) {
    pthread_mutex_lock(&q->lock);
    q->ending = true;
    pthread_cond_broadcast(&q->came);
    pthread_mutex_unlock(&q->lock);
    pthread_join(q->thread, NULL);
  }
  if (own && q->gate) {
    pthread_mutex_lock(&q->gate->lock);
    q->gate->queue = NULL;
    pthread_mutex_unlock(&q->gate->lock);
    release_gate(q->gate);
  }
  if (own) { /* a parent's may be in use in the child's copy of the memory */
    pthread_cond_destroy(&q->came);
    pthread_cond_destroy(&q->ended);
    pthread_mutex_destroy(&q->lock);
  }
  kiln_mem_free(q->mem, q, sizeof *q);
}

/* -- Forks -- */

/* Whether this process may use the queue: in the child of a fork its first thread to come takes it
 * over, with the jobs that waited, and others see it a moment later. Where the lock was held when
 * the process was forked, the list is half written, and is left behind. */
static bool adopt(kiln_job_queue *q) {
  pid_t maker = __atomic_load_n(&q->maker, __ATOMIC_ACQUIRE);
  const pid_t own = getpid();
  if (__builtin_expect(maker == own, 1)) return true;
  if (maker == ADOPTING || !__atomic_compare_exchange_n(&q->maker, &maker, (pid_t)ADOPTING, false,
                                                        __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
    return false;
  if (pthread_mutex_trylock(&q->lock) != 0) {
    q->first = q->last = NULL;
    q->owners = NULL;
  }
  pthread_mutex_init(&q->lock, NULL);
  init_conditions(q);
  q->started = q->ending = false;
  if (q->running) q->running->jobs--;
  q->running = NULL;
  q->waiters = 0; /* they are the parent's */
  q->idles = false;
  q->gate = NULL; /* the host's threads may have stayed with the parent too */
  __atomic_store_n(&q->maker, own, __ATOMIC_RELEASE);
  return true;
}

/* -- Jobs -- */

void kiln_job_queue_enter(kiln_job_queue *q, kiln_job_owner *owner) {
  if (!adopt(q)) return;
  pthread_mutex_lock(&q->lock);
  owner->next = q->owners;
  q->owners = owner;
  pthread_mutex_unlock(&q->lock);
}

void kiln_job_queue_set_idle(kiln_job_queue *q, int seconds, void (*idle)(void *user), void *user) {
  if (!adopt(q)) return;
  pthread_mutex_lock(&q->lock);
  while (q->idles) pthread_cond_wait(&q->ended, &q->lock);
  q->idle = seconds > 0 ? idle : NULL;
  q->idle_user = user;
  q->idle_seconds = seconds;
  pthread_mutex_unlock(&q->lock);
}

/* The queue's thread has the lock for moments, but may lose the processor in one of them, and has a
 * low priority. */
static bool lock_soon(kiln_job_queue *q) {
  enum { TRIES = 8, NS = 1000 };
  for (int i = 0; i < TRIES; i++) {
    if (pthread_mutex_trylock(&q->lock) == 0) return true;
    (void)nanosleep(&(struct timespec){.tv_nsec = NS}, NULL);
  }
  return false;
}

bool kiln_job_queue_add(kiln_job_queue *q, kiln_queued_job *job) {
  if (!adopt(q) || !lock_soon(q)) return false;
  gate *g = q->gate;
  const bool taken = g || q->started || start(q);
  if (taken) {
    job->next = NULL;
    job->cpu = sched_getcpu();
    job->owner->jobs++;
    *(q->last ? &q->last->next : &q->first) = job;
    q->last = job;
    pthread_cond_signal(&q->came);
  }
  pthread_mutex_unlock(&q->lock);
  if (g) {
    __atomic_add_fetch(&g->refs, 1, __ATOMIC_RELAXED);
    q->host.submit(q->host.user, come_to, g);
  }
  return taken;
}

/* Who waits for the host's threads helps them; without the lock. */
static void help(kiln_job_queue *q) {
  if (pthread_mutex_trylock(&q->gate->lock) != 0) return;
  run_one(q);
  pthread_mutex_unlock(&q->gate->lock);
}

static void wait_a_moment(kiln_job_queue *q) {
  const struct timespec until = kiln__moment_in(CLOCK_MONOTONIC, POLL_NS);
  (void)pthread_cond_timedwait(&q->ended, &q->lock, &until);
}

void kiln_job_queue_leave(kiln_job_queue *q, kiln_job_owner *owner) {
  if (!adopt(q)) return;
  pthread_mutex_lock(&q->lock);
  kiln_queued_job **link = &q->first, *dropped = NULL;
  q->last = NULL;
  while (*link) {
    if ((*link)->owner == owner) {
      kiln_queued_job *job = *link;
      *link = job->next;
      job->next = dropped;
      dropped = job;
      owner->jobs--;
    } else {
      q->last = *link;
      link = &(*link)->next;
    }
  }
  while (owner->jobs > 0) pthread_cond_wait(&q->ended, &q->lock);
  kiln_job_owner **place = &q->owners;
  while (*place && *place != owner) place = &(*place)->next;
  if (*place) *place = owner->next;
  pthread_mutex_unlock(&q->lock);
  for (kiln_queued_job *job = dropped, *next; job; job = next) {
    next = job->next;
    job->drop(job);
  }
}

kiln_status *kiln_job_queue_wait(kiln_job_queue *q, kiln_job_owner *owner,
                                 const kiln_budget *budget) {
  kiln_status *status = NULL;
  if (!adopt(q)) return NULL;
  pthread_mutex_lock(&q->lock);
  q->waiters++;
  while (!status && owner->jobs > 0) {
    if (q->gate && q->first) {
      pthread_mutex_unlock(&q->lock);
      help(q);
      pthread_mutex_lock(&q->lock);
    }
    if (owner->jobs == 0) break;
    if (kiln_budget_may_end(budget) || q->gate) {
      wait_a_moment(q);
      if (budget) status = kiln_budget_check(budget, 0);
    } else {
      pthread_cond_wait(&q->ended, &q->lock);
    }
  }
  q->waiters--;
  pthread_mutex_unlock(&q->lock);
  return status;
}
