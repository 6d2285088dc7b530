/* job_queue.h: compile jobs beside calls: one thread of a context works them off.
 *
 * A job is a node at its owner's. Jobs of all models of a context wait in one list, and one thread
 * of low priority runs them, one after the other: the one of most worth first, and of equal ones
 * the one that came first. It starts with the first job. Whoever hands a job over goes on at once.
 *
 * For example, thread A calls a model, finds that a region has seen enough types, and adds the
 * region's job; A answers its call by the interpreter. The queue's thread runs the job, which
 * publishes a plan; A's next call finds it. Thread B releases another model in the meantime:
 * kiln_job_queue_leave drops that model's waiting jobs, and waits if one of them is running.
 *
 * Where calls keep all processors busy, say one call on a machine of one, or in a container that
 * may use as much (cpu.h), the thread works in turns of 0.1 ms, and sleeps in between until no call
 * runs, or as long as its share says. A step cannot be cut, and some of LLVM's passes take
 * milliseconds: then turns are the system's, which knows the thread's priority, a nice value of the
 * same share, and may give it a tick (4 ms) at once. Where there are other processors, a job keeps
 * away from the one of the call that asked for it: the system may leave both on one for some time,
 * and a tick is long for that call too.
 *
 * A host may run the jobs instead: each that is added is handed to it, and one is run whenever it
 * comes back, in the same order, one at a time; as fast as that thread is, without turns. It may
 * come when there is nothing left, or after the queue has gone, and finds that out at a gate. Who
 * waits for jobs then runs them.
 *
 * fork(): the queue's thread stays with the parent. In the child the first job that is added starts
 * a thread for those that wait; the job that ran when the process was forked runs in the parent
 * alone. */
#pragma once

#include "base/budget.h"

/* Whose jobs they are: a model's, or a part's of it. */
typedef struct kiln_job_owner {
  /* Set before it enters: how many calls are under way that no other owner counts (NULL: none). */
  int (*count_calls)(struct kiln_job_owner *owner);
  int jobs; /* that wait or run; the queue's, with: */
  struct kiln_job_owner *next;
} kiln_job_owner;

/* Either of the two is called once, and may add the job anew. */
typedef struct kiln_queued_job {
  void (*run)(struct kiln_queued_job *job);
  void (*drop)(struct kiln_queued_job *job); /* it will not be run */
  /* Of those that wait, the one of most worth is run first. It may change while the job waits; it
   * is asked for under the queue's lock, of each job before each job. */
  uint64_t (*worth)(const struct kiln_queued_job *job);
  kiln_job_owner *owner;
  bool is_counted; /* as a call, by some owner's count_calls, while it runs */
  int cpu;         /* that whoever has added it was on; the queue's, as is: */
  struct kiln_queued_job *next;
} kiln_queued_job;

typedef struct kiln_job_queue kiln_job_queue;

/* `share`: percent of a processor that the thread gets where calls keep all of them busy (1 to 99);
 * `threads`: those of a call. */
kiln_status *kiln_job_queue_create(kiln_mem *mem, int share, int threads,
                                   kiln_job_queue **out_queue) KILN_MUST_USE;
/* Before the first job: those to come are the host's. */
kiln_status *kiln_job_queue_set_host(kiln_job_queue *queue,
                                     const kiln_host_jobs *host) KILN_MUST_USE;
/* Nobody has jobs in it. NULL is fine. */
void kiln_job_queue_destroy(kiln_job_queue *queue);
/* An owner may have jobs from here until it leaves. */
void kiln_job_queue_enter(kiln_job_queue *queue, kiln_job_owner *owner);
/* Hands the job over. False: there is no thread for it, or the queue was in use for some 0.5 ms;
 * the job is not in the queue, and may be added later. */
bool kiln_job_queue_add(kiln_job_queue *queue, kiln_queued_job *job);
/* For the last time. Returns when no job of the owner's runs, and none waits: those were dropped.
 * Whoever wants the running one to end soon cancels it before. */
void kiln_job_queue_leave(kiln_job_queue *queue, kiln_job_owner *owner);
/* `idle` (NULL: none) is called on the thread when no job has come for so long, once behind the
 * last of them. When this returns, the one before it is not called any more. */
void kiln_job_queue_set_idle(kiln_job_queue *queue, int seconds, void (*idle)(void *user),
                             void *user);
/* Calls that are under way, of all owners together: neither the job that runs nor those who wait
 * for jobs, whom a model counts as it counts calls. */
int kiln_job_queue_calls(kiln_job_queue *queue);
/* In jobs, between steps of some 10 us: sleeps where calls need the processor and the thread has
 * had its share. Elsewhere nothing. */
void kiln_job_breathe(void);
/* Returns when all of the owner's jobs have run, those included that they added; KILN_LIMIT and
 * KILN_CANCELLED of the budget (NULL: as long as it takes). */
kiln_status *kiln_job_queue_wait(kiln_job_queue *queue, kiln_job_owner *owner,
                                 const kiln_budget *budget) KILN_MUST_USE;
