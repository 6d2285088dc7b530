/* seats_threads_test.c: calls that write nothing, side by side in an instance's seats, and what
 * must not run beside them: writers that are refused or wait, functions that want the instance for
 * themselves, calls from within calls, children of a fork. */
#include <pthread.h>
#include <sys/wait.h>

#include "api/internal.h"
#include "base/sanitize.h"
#include "test/unit/api/fixture.h"

enum { READERS = 3, FEW = 10 };
#define LONG ((int64_t)1 << 40)
#define METHODS TEST_DATA "/own/calls/model.pt"

static void nap(void) { nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); }

/* -- Calls by other threads -- */

typedef struct caller {
  pthread_t thread;
  kiln_instance *instance;
  const char *method;
  int64_t n;
  kiln_call_options options;
  int repeat, fine, busy;
  int64_t result; /* of the last call */
  bool odd;       /* a result was neither `may_be` */
  int64_t may_be[2];
  kiln_status *status; /* of the call that failed; none is made after it, but after KILN_BUSY */
} caller;

static kiln_status *call_once(caller *c) {
  kiln_value *n = NULL, *result = NULL;
  kiln_status *status = kiln_value_int(c->instance->model->context, c->n, &n);
  if (!status) status = kiln_instance_call(c->instance, c->method, &n, 1, &c->options, &result);
  if (!status) c->result = kiln_value_as_int(result);
  kiln_value_destroy(result);
  kiln_value_destroy(n);
  return status;
}
static void *run(void *arg) {
  caller *c = arg;
  for (int i = 0; !c->status && i < c->repeat; i++) {
    c->status = call_once(c);
    if (kiln_status_code(c->status) == KILN_BUSY) {
      kiln_status_destroy(c->status);
      c->status = NULL;
      c->busy++;
    } else if (!c->status) {
      c->fine++;
      c->odd |= c->may_be[1] && c->result != c->may_be[0] && c->result != c->may_be[1];
    }
  }
  return NULL;
}
static void start(caller *c) { assert_int_equal(pthread_create(&c->thread, NULL, run, c), 0); }
/* One call on the test's own thread. */
static kiln_status *call(kiln_instance *instance, const char *method, int64_t n) {
  return call_once(&(caller){.instance = instance, .method = method, .n = n});
}

/* -- What the instance is like -- */

static int seats_taken(const kiln_instance *instance) {
  int count = 0;
  for (int i = 0; i < KILN__SEATS; i++) {
    count += __atomic_load_n(&instance->seats[i].thread, __ATOMIC_SEQ_CST) != 0;
  }
  return count;
}
static bool has_readers(const kiln_instance *instance) {
  return __atomic_load_n(&instance->readers, __ATOMIC_SEQ_CST) != 0;
}
static bool has_active(kiln_instance *instance) {
  pthread_mutex_lock(&instance->lock);
  const bool has = instance->active != NULL;
  pthread_mutex_unlock(&instance->lock);
  return has;
}

/* A model, an instance of it, and a token that ends long calls. */
typedef struct stage {
  subject s;
  kiln_cancel *cancel;
  caller readers[READERS];
} stage;

static void open_stage(stage *g, bool wait) {
  *g = (stage){.s = {.context = context_with("busy", wait ? "wait" : "refuse")}};
  load_subject(&g->s, METHODS);
  assert_ok(kiln_cancel_create(&g->cancel));
}
static void close_stage(stage *g) {
  kiln_cancel_destroy(g->cancel);
  close_subject(&g->s);
}

static void start_long(stage *g, caller *c, const char *method) {
  *c = (caller){.instance = g->s.instance, .method = method, .n = LONG, .repeat = 1};
  c->options.limits.cancel = g->cancel;
  start(c);
}
static void end_long(stage *g, caller *callers, int count) {
  kiln_call_cancel(g->cancel);
  for (int i = 0; i < count; i++) {
    pthread_join(callers[i].thread, NULL);
    assert_error(callers[i].status, KILN_CANCELLED, NULL);
  }
  kiln_cancel_reset(g->cancel);
}
/* Two calls of spin() meet: it is a reader. */
static void meet(stage *g) {
  caller first;
  assert_false(has_readers(g->s.instance));
  start_long(g, &first, "spin");
  while (!has_active(g->s.instance)) nap();
  assert_false(has_readers(g->s.instance)); /* one alone is not looked at */
  assert_ok(call(g->s.instance, "spin", FEW));
  assert_true(has_readers(g->s.instance));
  end_long(g, &first, 1);
}
static void fill_seats(stage *g) {
  meet(g);
  for (int i = 0; i < READERS; i++) start_long(g, &g->readers[i], "spin");
  while (seats_taken(g->s.instance) < READERS) nap();
  assert_false(has_active(g->s.instance));
}

/* -- Refusing -- */

/* All that wants the instance for itself. */
static void assert_refuses(kiln_instance *instance) {
  kiln_model *frozen = NULL;
  kiln_value *zero = NULL, *seen = NULL;
  size_t written = 0;
  assert_ok(kiln_value_int(instance->model->context, 0, &zero));
  assert_error(kiln_instance_set(instance, "count", zero), KILN_BUSY, "kiln_instance_set");
  assert_error(kiln_instance_save_to(instance, count_bytes, &written, NULL), KILN_BUSY, "save");
  assert_error(kiln_instance_freeze(instance, NULL, &frozen), KILN_BUSY, "freeze");
  assert_ok(kiln_instance_get(instance, "count", &seen)); /* a reader, too */
  kiln_value_destroy(seen);
  kiln_value_destroy(zero);
}

static void writers_are_refused(void **state) {
  stage g;
  (void)state;
  open_stage(&g, false);
  kiln_instance *instance = g.s.instance;
  fill_seats(&g);
  assert_error(call(instance, "spin_and_write", FEW), KILN_BUSY,
               "spin_and_write() cannot run while the instance is in spin:");
  assert_false(has_readers(instance)); /* nobody comes by a seat now */
  assert_int_equal(seats_taken(instance), READERS);
  assert_refuses(instance);
  assert_ok(call(instance, "spin", FEW)); /* beside them, and a reader again */
  assert_true(has_readers(instance));
  assert_refuses(instance);
  assert_ok(call(instance, "spin", FEW));
  end_long(&g, g.readers, READERS);
  assert_int_equal(seats_taken(instance), 0);
  assert_true(has_readers(instance));
  assert_ok(call(instance, "spin_and_write", FEW));
  assert_false(has_readers(instance) || instance->has_seats);
  close_stage(&g);
}

/* -- Waiting -- */

/* The writer has no limit, so that it looks again only when it is told. */
static void writers_wait_for_seats(void **state) {
  stage g;
  kiln_value *count = NULL;
  (void)state;
  open_stage(&g, true);
  kiln_instance *instance = g.s.instance;
  fill_seats(&g);
  caller writer = {.instance = instance, .method = "spin_and_write", .n = FEW, .repeat = 1};
  start(&writer);
  while (!__atomic_load_n(&instance->is_awaited, __ATOMIC_SEQ_CST)) nap();
  caller late = {.instance = instance, .method = "spin", .n = FEW, .repeat = 1};
  late.options.limits.time_ms = 20;
  assert_error(call_once(&late), KILN_LIMIT, "20 ms"); /* it stands behind the writer */
  assert_false(has_readers(instance));
  assert_int_equal(seats_taken(instance), READERS);
  assert_refuses(instance); /* busy=wait is for calls alone */
  end_long(&g, g.readers, READERS);
  pthread_join(writer.thread, NULL);
  assert_ok(writer.status);
  assert_int_equal(writer.result, FEW - 1);
  assert_ok(kiln_instance_get(instance, "count", &count));
  assert_int_equal(kiln_value_as_int(count), FEW - 1);
  kiln_value_destroy(count);
  assert_false(__atomic_load_n(&instance->is_awaited, __ATOMIC_SEQ_CST));
  close_stage(&g);
}

/* s = sum of i % 3 for i < n */
static int64_t spun(int64_t n) { return n / 3 * 3 + (n % 3 == 2 ? 1 : 0); }

/* Readers come and go, and writers between them, who count to `n` - 1 each: no reader sees less. */
static void storm(bool wait) {
  enum { N = 200, WRITES = KILN_SANITIZED ? 100 : 300 };
  stage g;
  open_stage(&g, wait);
  kiln_instance *instance = g.s.instance;
  meet(&g);
  caller writers[2];
  for (int i = 0; i < READERS; i++) {
    g.readers[i] = (caller){.instance = instance,
                            .method = "spin",
                            .n = FEW,
                            .repeat = INT32_MAX,
                            .may_be = {spun(FEW), N - 1 + spun(FEW)}};
    g.readers[i].options.limits.cancel = g.cancel;
    start(&g.readers[i]);
  }
  for (int i = 0; i < 2; i++) {
    writers[i] = (caller){.instance = instance,
                          .method = "spin_and_write",
                          .n = N,
                          .repeat = WRITES,
                          .may_be = {N - 1, N - 1}};
    start(&writers[i]);
  }
  for (int i = 0; i < 2; i++) {
    pthread_join(writers[i].thread, NULL);
    assert_ok(writers[i].status);
    assert_false(writers[i].odd);
    assert_int_equal(writers[i].fine + writers[i].busy, WRITES);
    assert_true(!wait || writers[i].busy == 0);
  }
  end_long(&g, g.readers, READERS);
  for (int i = 0; i < READERS; i++) {
    assert_false(g.readers[i].odd);
    assert_true(!wait || g.readers[i].busy == 0);
  }
  assert_int_equal(seats_taken(instance), 0);
  assert_ok(call(instance, "spin_and_write", N)); /* usable */
  close_stage(&g);
}
static void a_storm_of_readers(void **state) {
  (void)state;
  storm(true);
  storm(false);
}

/* -- From within -- */

typedef struct nest {
  stage g;
  caller writer;
  int depth, most_seats;
  kiln_status *statuses[3];
} nest;

/* The log's line of a call comes while it is still in its seat. */
static void on_line(void *user, const char *channel, int level, const char *line) {
  nest *t = user;
  kiln_instance *instance = t->g.s.instance;
  kiln_value *zero = NULL;
  (void)channel, (void)level, (void)line;
  if (t->depth == 0) return;
  const int taken = seats_taken(instance);
  if (taken > t->most_seats) t->most_seats = taken;
  if (t->depth-- != 2) return;
  t->statuses[0] = call(instance, "spin", FEW);
  t->depth = 0;
  start(&t->writer);
  while (!__atomic_load_n(&instance->is_awaited, __ATOMIC_SEQ_CST)) nap();
  t->statuses[1] = call(instance, "spin", FEW); /* it would wait for itself */
  t->statuses[2] = call(instance, "spin_and_write", FEW);
  assert_ok(kiln_value_int(t->g.s.context, 0, &zero));
  assert_error(kiln_instance_set(instance, "count", zero), KILN_BUSY, "kiln_instance_set");
  kiln_value_destroy(zero);
}

static void calls_from_within_a_seat(void **state) {
  static nest t;
  (void)state;
  t = (nest){.g = {.s = {.context = context_with("busy", "wait")}}};
  assert_ok(kiln_context_set(t.g.s.context, "log", "run=1", NULL));
  kiln_context_set_log(t.g.s.context, on_line, &t);
  load_subject(&t.g.s, METHODS);
  assert_ok(kiln_cancel_create(&t.g.cancel));
  t.writer =
      (caller){.instance = t.g.s.instance, .method = "spin_and_write", .n = FEW, .repeat = 1};
  meet(&t.g);
  t.depth = 2;
  assert_ok(call(t.g.s.instance, "spin", FEW));
  pthread_join(t.writer.thread, NULL);
  assert_int_equal(t.most_seats, 2);
  assert_ok(t.writer.status);
  assert_ok(t.statuses[0]);
  assert_ok(t.statuses[1]);
  assert_error(t.statuses[2], KILN_BUSY, "in spin");
  close_stage(&t.g);
}

/* -- Children -- */

/* Calls of the parent's other threads stay in their seats: readers take others, and nobody waits
 * for what does not end. */
static void children_of_a_fork(void **state) {
  (void)state;
  for (int wait = 0; wait < 2; wait++) {
    stage g;
    int exited = -1;
    open_stage(&g, wait);
    fill_seats(&g);
    const pid_t child = fork();
    if (child == 0) {
      kiln_status *read = call(g.s.instance, "spin", FEW);
      kiln_status *written = call(g.s.instance, "spin_and_write", FEW);
      kiln_status *again = call(g.s.instance, "spin", FEW);
      const bool fine = !read && kiln_status_code(written) == KILN_BUSY && !again;
      const bool stay = seats_taken(g.s.instance) == READERS;
      kiln_instance_release(g.s.instance); /* what the others use stays */
      _exit(fine && stay ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &exited, 0), child);
    assert_int_equal(exited, 0);
    end_long(&g, g.readers, READERS);
    close_stage(&g);
  }
}

/* -- More methods than bits -- */

static void methods_beyond_the_mask(void **state) {
  stage g;
  (void)state;
  open_stage(&g, false);
  kiln_model *model = g.s.model;
  kiln_instance *instance = g.s.instance;
  kiln__method *own = model->methods, *many = NULL;
  const int count = model->method_count;
  many = calloc((size_t)(KILN__MASK_METHODS + count), sizeof *many);
  assert_non_null(many);
  for (int i = 0; i < KILN__MASK_METHODS; i++) many[i].name = "another";
  memcpy(many + KILN__MASK_METHODS, own, (size_t)count * sizeof *own);
  model->methods = many;
  model->method_count += KILN__MASK_METHODS;
  for (int i = 0; i < READERS; i++) start_long(&g, &g.readers[i], "spin");
  while (!has_active(instance)) nap();
  assert_ok(call(instance, "spin", FEW)); /* beside them */
  assert_false(has_readers(instance));
  assert_int_equal(seats_taken(instance), 0);
  assert_error(call(instance, "spin_and_write", FEW), KILN_BUSY, "in spin");
  assert_refuses(instance);
  end_long(&g, g.readers, READERS);
  assert_ok(call(instance, "spin_and_write", FEW));
  memcpy(own, many + KILN__MASK_METHODS, (size_t)count * sizeof *own);
  model->methods = own;
  model->method_count = count;
  free(many);
  close_stage(&g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(writers_are_refused), cmocka_unit_test(writers_wait_for_seats),
      cmocka_unit_test(a_storm_of_readers),  cmocka_unit_test(calls_from_within_a_seat),
      cmocka_unit_test(children_of_a_fork),  cmocka_unit_test(methods_beyond_the_mask),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
