/* job_queue_threads_test.c: jobs in their order, owners that leave, waits that end, forks. */
#include "base/cpu.h"
#include "base/job_queue.h"

#include <pthread.h>
#include <semaphore.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sanitize.h"
#include "test/unit/unit.h"

typedef struct world {
  kiln_mem *mem;
  kiln_job_queue *queue;
} world;

typedef struct counted {
  kiln_queued_job job; /* first */
  int number;
  int *last; /* the number of the job that ran before */
  uint64_t worth;
  bool ran, dropped;
  kiln_job_queue *again; /* to be added anew so often: */
  int times;
  sem_t *arrived, *go_on; /* where it is held up */
} counted;

/* Whoever adds does not wait for the queue: where others keep it busy, again. */
static void add(kiln_job_queue *queue, kiln_queued_job *job) {
  while (!kiln_job_queue_add(queue, job)) usleep(100);
}

static void run(kiln_queued_job *job) {
  counted *c = (counted *)job;
  if (c->arrived) {
    sem_post(c->arrived);
    while (sem_wait(c->go_on) != 0) continue;
  }
  if (c->last) {
    assert_int_equal(*c->last + 1, c->number);
    *c->last = c->number;
  }
  c->ran = true;
  if (c->times-- > 0) add(c->again, job);
}
static void drop(kiln_queued_job *job) { ((counted *)job)->dropped = true; }

static uint64_t worth_of(const kiln_queued_job *job) { return ((const counted *)job)->worth; }

static counted make(kiln_job_owner *owner) {
  return (counted){.job = {.run = run, .drop = drop, .worth = worth_of, .owner = owner}};
}

static void open_world(world *w) {
  assert_ok(kiln_mem_create(KILN_MEM_DEFAULT, &w->mem));
  assert_ok(kiln_job_queue_create(w->mem, 10, 1, &w->queue));
}
static void close_world(world *w) {
  kiln_job_queue_destroy(w->queue);
  kiln_mem_release(w->mem);
}

static void jobs_run_in_order(void **state) {
  enum { JOBS = 1000 };
  static counted jobs[JOBS];
  kiln_job_owner owner = {0};
  int last = -1;
  world w;
  (void)state;
  open_world(&w);
  for (int i = 0; i < JOBS; i++) {
    jobs[i] = make(&owner);
    jobs[i].number = i;
    jobs[i].last = &last;
    add(w.queue, &jobs[i].job);
  }
  assert_ok(kiln_job_queue_wait(w.queue, &owner, NULL));
  assert_int_equal(last, JOBS - 1);
  close_world(&w);
}

/* While one job is held up, others come, and the worth of one changes: the most is first, and of
 * equals the one that came first. */
static void the_most_worth_is_first(void **state) {
  static const uint64_t worth[] = {1, 7, 3, 7, 0, 9};
  static const int turn[] = {4, 1, 3, 2, 5, 0}; /* the last one's worth becomes 10 */
  enum { JOBS = sizeof worth / sizeof *worth };
  counted jobs[JOBS];
  kiln_job_owner owner = {0};
  int last = -1;
  sem_t arrived, go_on;
  world w;
  (void)state;
  open_world(&w);
  sem_init(&arrived, 0, 0);
  sem_init(&go_on, 0, 0);
  counted held = make(&owner);
  held.arrived = &arrived;
  held.go_on = &go_on;
  add(w.queue, &held.job);
  while (sem_wait(&arrived) != 0) continue;
  for (int i = 0; i < JOBS; i++) {
    jobs[i] = make(&owner);
    jobs[i].number = turn[i];
    jobs[i].last = &last;
    jobs[i].worth = worth[i];
    add(w.queue, &jobs[i].job);
  }
  jobs[JOBS - 1].worth = 10;
  sem_post(&go_on);
  assert_ok(kiln_job_queue_wait(w.queue, &owner, NULL));
  assert_int_equal(last, JOBS - 1);
  counted more = make(&owner); /* the list's end is where it should be */
  add(w.queue, &more.job);
  assert_ok(kiln_job_queue_wait(w.queue, &owner, NULL));
  assert_true(more.ran);
  close_world(&w);
}

static void a_wait_has_all_that_is_added(void **state) {
  kiln_job_owner owner = {0};
  world w;
  (void)state;
  open_world(&w);
  counted c = make(&owner);
  c.again = w.queue;
  c.times = 100;
  add(w.queue, &c.job);
  assert_ok(kiln_job_queue_wait(w.queue, &owner, NULL));
  assert_int_equal(c.times, -1);
  close_world(&w);
}

static void *post_later(void *arg) {
  usleep(20000);
  sem_post(arg);
  return NULL;
}

/* While one owner's job runs, that owner leaves: it waits for this one, and has no other run. Of
 * the other owner all run. */
static void an_owner_leaves(void **state) {
  kiln_job_owner first = {0}, second = {0};
  sem_t arrived, go_on;
  pthread_t thread;
  world w;
  (void)state;
  open_world(&w);
  sem_init(&arrived, 0, 0);
  sem_init(&go_on, 0, 0);
  counted held = make(&first), waiting = make(&first), others[2] = {make(&second), make(&second)};
  held.arrived = &arrived;
  held.go_on = &go_on;
  add(w.queue, &held.job);
  add(w.queue, &others[0].job);
  add(w.queue, &waiting.job);
  add(w.queue, &others[1].job);
  while (sem_wait(&arrived) != 0) continue;
  const kiln_limits limits = {.time_ms = 10};
  kiln_budget budget;
  kiln_budget_begin(&budget, "the wait", NULL, &limits);
  assert_error(kiln_job_queue_wait(w.queue, &second, &budget), KILN_LIMIT, "the wait");
  pthread_create(&thread, NULL, post_later, &go_on);
  kiln_job_queue_leave(w.queue, &first);
  pthread_join(thread, NULL);
  assert_true(held.ran && !held.dropped);
  assert_true(!waiting.ran && waiting.dropped);
  assert_ok(kiln_job_queue_wait(w.queue, &second, NULL));
  assert_true(others[0].ran && others[1].ran);
  close_world(&w);
}

/* A child goes on with the jobs that waited, and not with the one that ran. */
static void a_child_has_a_thread_of_its_own(void **state) {
  kiln_job_owner owner = {0};
  sem_t arrived, go_on;
  world w;
  int exited;
  (void)state;
  if (KILN_TSAN) skip(); /* test/SKIPPED.md */
  open_world(&w);
  sem_init(&arrived, 0, 0);
  sem_init(&go_on, 0, 0);
  counted held = make(&owner), waiting = make(&owner), more = make(&owner);
  held.arrived = &arrived;
  held.go_on = &go_on;
  add(w.queue, &held.job);
  add(w.queue, &waiting.job);
  while (sem_wait(&arrived) != 0) continue;
  const pid_t child = fork();
  if (child == 0) {
    bool good = kiln_job_queue_add(w.queue, &more.job);
    kiln_status *status = kiln_job_queue_wait(w.queue, &owner, NULL);
    good = good && !status && waiting.ran && more.ran && !held.ran;
    kiln_job_queue_destroy(w.queue);
    _exit(good ? 0 : 1);
  }
  assert_int_equal(waitpid(child, &exited, 0), child);
  assert_int_equal(exited, 0);
  sem_post(&go_on);
  assert_ok(kiln_job_queue_wait(w.queue, &owner, NULL));
  assert_true(held.ran && waiting.ran && !more.ran);
  close_world(&w);
}

/* -- Threads of a host's -- */

typedef struct handed {
  int count;
  struct {
    void (*run)(void *data);
    void *data;
  } runs[8];
} handed;
static void keep(void *user, void (*body)(void *data), void *data) {
  handed *h = user;
  h->runs[h->count].run = body;
  h->runs[h->count++].data = data;
}

/* The host comes when it likes to, and finds the job of most worth; who waits does the rest, and
 * who comes too late finds nothing. */
static void a_host_runs_jobs(void **state) {
  kiln_job_owner owner = {0}, gone = {0};
  handed h = {0};
  int last = -1;
  world w;
  (void)state;
  open_world(&w);
  assert_ok(kiln_job_queue_set_host(w.queue, &(kiln_host_jobs){.user = &h, .submit = keep}));
  counted jobs[3], dropped = make(&gone);
  for (int i = 0; i < 3; i++) {
    jobs[i] = make(&owner);
    jobs[i].last = &last;
    jobs[i].worth = i == 1 ? 9 : 0;
    add(w.queue, &jobs[i].job);
  }
  add(w.queue, &dropped.job);
  jobs[0].number = 1;
  jobs[1].number = 0;
  jobs[2].number = 2;
  assert_int_equal(h.count, 4);
  assert_int_equal(last, -1);
  h.runs[2].run(h.runs[2].data);
  assert_int_equal(last, 0);
  assert_true(jobs[1].ran);
  kiln_job_queue_leave(w.queue, &gone);
  assert_true(dropped.dropped);
  assert_ok(kiln_job_queue_wait(w.queue, &owner, NULL));
  assert_int_equal(last, 2);
  h.runs[0].run(h.runs[0].data);
  close_world(&w);
  h.runs[1].run(h.runs[1].data);
  h.runs[3].run(h.runs[3].data);
}

static void *come(void *arg) {
  const handed *h = arg;
  h->runs[0].run(h->runs[0].data);
  return NULL;
}

/* Two of the host's threads come at once, and one waits meanwhile: one job at a time. */
static void jobs_of_a_host_do_not_meet(void **state) {
  (void)state;
  for (int round = 0; round < 200; round++) {
    kiln_job_owner owner = {0};
    handed h[2] = {{0}};
    pthread_t threads[2];
    int last = -1;
    world w;
    open_world(&w);
    counted jobs[2];
    for (int i = 0; i < 2; i++) {
      assert_ok(kiln_job_queue_set_host(w.queue, &(kiln_host_jobs){.user = &h[i], .submit = keep}));
      jobs[i] = make(&owner);
      jobs[i].number = i;
      jobs[i].last = &last;
      add(w.queue, &jobs[i].job);
    }
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, come, &h[i]);
    assert_ok(kiln_job_queue_wait(w.queue, &owner, NULL));
    assert_int_equal(last, 1);
    if (round % 2) {
      close_world(&w); /* they may come later still */
      for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    } else {
      for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
      close_world(&w);
    }
  }
}

static void containers_have_quotas(void **state) {
  (void)state;
  assert_true(kiln__cpu_quota_of("150000 100000\n") == 1.5);
  assert_true(kiln__cpu_quota_of("50000\n100000\n") == 0.5); /* the two files of v1 */
  assert_true(kiln__cpu_quota_of("max 100000\n") == 0);
  assert_true(kiln__cpu_quota_of("-1\n100000\n") == 0);
  assert_true(kiln__cpu_quota_of("100000 0") == 0);
  assert_true(kiln__cpu_quota_of("") == 0);
  assert_true(kiln_cpu_quota() >= 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(jobs_run_in_order),
      cmocka_unit_test(the_most_worth_is_first),
      cmocka_unit_test(a_wait_has_all_that_is_added),
      cmocka_unit_test(an_owner_leaves),
      cmocka_unit_test(a_child_has_a_thread_of_its_own),
      cmocka_unit_test(containers_have_quotas),
      cmocka_unit_test(a_host_runs_jobs),
      cmocka_unit_test(jobs_of_a_host_do_not_meet),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
