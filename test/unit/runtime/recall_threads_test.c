/* recall_threads_test.c: what is made of weights (recall.h): which get an entry, which entries go,
 * and threads that look while others add. */
#include "runtime/recall.h"

#include <pthread.h>

#include "test/unit/unit.h"

enum { THREADS = 4, ROUNDS = 4000, KEYS = 7, GONE = -1 };

typedef struct thing {
  kiln_recalled entry;
  kiln_mem *mem;
  int key;
  bool is_stale;
} thing;

static int alive; /* atomic */

static bool is_stale(const kiln_recalled *entry) { return ((const thing *)entry)->is_stale; }
static void destroy(void *entry) {
  thing *t = entry;
  t->key = GONE;
  __atomic_fetch_sub(&alive, 1, __ATOMIC_RELAXED);
  kiln_mem_free(t->mem, t, sizeof *t);
}
static const kiln_recall_kind kind = {is_stale, destroy};

static thing *find(const kiln_recall *recall, int key) {
  for (kiln_recalled *e = kiln_recall_first(recall); e; e = kiln_recall_next(e)) {
    if (((thing *)e)->key != key) continue;
    kiln_recall_found(e);
    return (thing *)e;
  }
  return NULL;
}

static bool add(kiln_recall *recall, kiln_epoch *epoch, kiln_mem *mem, int key) {
  thing *t = kiln_mem_alloc_zero(mem, sizeof *t);
  assert_non_null(t);
  t->mem = mem;
  t->key = key;
  __atomic_fetch_add(&alive, 1, __ATOMIC_RELAXED);
  const bool added = kiln_recall_add(recall, &kind, epoch, &t->entry);
  if (!added) destroy(t);
  return added;
}

typedef struct place {
  kiln_mem *mem;
  kiln_epoch epoch;
  kiln_recall recall;
} place;

static void open_place(place *p) {
  *p = (place){0};
  alive = 0;
  assert_ok(kiln_mem_create(KILN_MEM_SYSTEM, &p->mem));
  kiln_epoch_init(&p->epoch, p->mem);
}
static void close_place(place *p) {
  kiln_recall_release(&p->recall, &kind);
  kiln_epoch_deinit(&p->epoch);
  assert_int_equal(alive, 0);
  assert_int_equal(kiln_mem_bytes(p->mem), 0);
  kiln_mem_release(p->mem);
}

static void who_gets_one(void **state) {
  (void)state;
  place p;
  open_place(&p);
  assert_true(kiln_recall_wants(&p.recall, 1, NULL)); /* the first */
  assert_true(add(&p.recall, NULL, p.mem, 1));
  assert_false(kiln_recall_wants(&p.recall, 2, NULL)); /* nothing could ever go */
  assert_false(kiln_recall_wants(&p.recall, 2, NULL));
  for (int i = 0; i < 5; i++) { /* in turns: neither */
    assert_false(kiln_recall_wants(&p.recall, 2, &p.epoch));
    assert_false(kiln_recall_wants(&p.recall, 3, &p.epoch));
  }
  assert_true(kiln_recall_wants(&p.recall, 3, &p.epoch));
  assert_true(add(&p.recall, &p.epoch, p.mem, 3));
  assert_non_null(find(&p.recall, 1));
  assert_non_null(find(&p.recall, 3));
  assert_null(find(&p.recall, 2));
  close_place(&p);
}

static void what_goes(void **state) {
  (void)state;
  place p;
  open_place(&p);
  for (int key = 1; key <= 4; key++) assert_true(add(&p.recall, &p.epoch, p.mem, key));
  assert_false(add(&p.recall, &p.epoch, p.mem, 5)); /* all are found so far */
  for (int key = 1; key <= 4; key++) assert_non_null(find(&p.recall, key));
  assert_false(add(&p.recall, &p.epoch, p.mem, 5));
  assert_non_null(find(&p.recall, 1));
  assert_non_null(find(&p.recall, 4));
  const uint64_t ticket = kiln_epoch_enter(&p.epoch, 0);
  thing *two = find(&p.recall, 2); /* this run stands at it */
  two->entry.is_found = false;
  assert_true(add(&p.recall, &p.epoch, p.mem, 5)); /* 2 and 3 were not found: the older one goes */
  assert_null(find(&p.recall, 2));
  for (int i = 0; i < 8; i++) (void)kiln_epoch_collect(&p.epoch);
  assert_int_equal(two->key, 2);
  assert_non_null(kiln_recall_next(&two->entry)); /* and leads on */
  kiln_epoch_leave(&p.epoch, ticket);
  for (int i = 0; i < 8; i++) (void)kiln_epoch_collect(&p.epoch);
  assert_int_equal(alive, 4);
  find(&p.recall, 1)->is_stale = find(&p.recall, 5)->is_stale = true;
  assert_true(add(&p.recall, &p.epoch, p.mem, 6));
  for (int i = 0; i < 8; i++) (void)kiln_epoch_collect(&p.epoch);
  assert_int_equal(alive, 3);
  close_place(&p);
}

typedef struct thread {
  pthread_t id;
  place *p;
  uint32_t number;
  int wrong, found;
} thread;

static void *look_and_add(void *data) {
  thread *t = data;
  place *p = t->p;
  for (uint32_t i = 0; i < ROUNDS; i++) {
    const uint64_t ticket = kiln_epoch_enter(&p->epoch, t->number);
    const int key = (int)((i / 8 + t->number) % KEYS);
    const thing *got = find(&p->recall, key);
    if (!got && kiln_recall_wants(&p->recall, (uint64_t)key + 1, &p->epoch))
      (void)add(&p->recall, &p->epoch, p->mem, key);
    t->wrong += got && got->key != key;
    t->found += got != NULL;
    kiln_epoch_leave(&p->epoch, ticket);
    (void)kiln_epoch_collect(&p->epoch);
  }
  return NULL;
}

static void threads_look_and_add(void **state) {
  (void)state;
  place p;
  thread threads[THREADS];
  open_place(&p);
  for (uint32_t i = 0; i < THREADS; i++) {
    threads[i] = (thread){.p = &p, .number = i};
    assert_int_equal(pthread_create(&threads[i].id, NULL, look_and_add, &threads[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i].id, NULL);
    assert_int_equal(threads[i].wrong, 0);
    assert_true(threads[i].found > 0);
  }
  close_place(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(who_gets_one),
      cmocka_unit_test(what_goes),
      cmocka_unit_test(threads_look_and_add),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
