/* epoch_test.c: what is retired is freed when no run can hold it, and not before. */
#include "base/epoch.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test/unit/unit.h"

static void count(void *object) { ++*(int *)object; }

static kiln_mem *memory(void) {
  kiln_mem *mem;
  assert_ok(kiln_mem_create(KILN_MEM_SYSTEM, &mem));
  return mem;
}

/* Collects as often as a busy model would. */
static void collect_often(kiln_epoch *e) {
  for (int i = 0; i < 8; i++) (void)kiln_epoch_collect(e);
}

static void test_waits_for_runs(void **state) {
  (void)state;
  kiln_mem *mem = memory();
  kiln_epoch e;
  kiln_epoch_init(&e, mem);
  int freed = 0;
  uint64_t old_run = kiln_epoch_enter(&e, 1);
  assert_true(kiln_epoch_retire(&e, count, &freed));
  collect_often(&e);
  assert_int_equal(freed, 0); /* the run may hold it */
  uint64_t later_run = kiln_epoch_enter(&e, 40);
  kiln_epoch_leave(&e, old_run);
  collect_often(&e);
  kiln_epoch_leave(&e, later_run);
  collect_often(&e);
  assert_int_equal(freed, 1);
  for (uint32_t stripe = 0; stripe < KILN_STRIPES; stripe++) { /* whichever it takes */
    const int before = freed;
    uint64_t run = kiln_epoch_enter(&e, stripe);
    assert_true(kiln_epoch_retire(&e, count, &freed));
    collect_often(&e);
    assert_int_equal(freed, before);
    kiln_epoch_leave(&e, run);
    collect_often(&e);
    assert_int_equal(freed, before + 1);
  }
  kiln_epoch_deinit(&e);
  kiln_mem_release(mem);
}

/* A run that began after the object was retired does not keep it, but the epochs between do. */
static void test_frees_without_runs(void **state) {
  (void)state;
  kiln_mem *mem = memory();
  kiln_epoch e;
  kiln_epoch_init(&e, mem);
  int freed = 0;
  assert_true(kiln_epoch_retire(&e, count, &freed));
  assert_int_equal(kiln_epoch_collect(&e), 0); /* two epochs, so two collections */
  assert_int_equal(kiln_epoch_collect(&e), 1);
  assert_int_equal(freed, 1);
  kiln_epoch_deinit(&e);
  kiln_mem_release(mem);
}

static void test_deinit_frees_all(void **state) {
  (void)state;
  kiln_mem *mem = memory();
  kiln_epoch e;
  kiln_epoch_init(&e, mem);
  int freed = 0;
  for (int i = 0; i < 3; i++) assert_true(kiln_epoch_retire(&e, count, &freed));
  kiln_epoch_deinit(&e);
  assert_int_equal(freed, 3);
  assert_int_equal(kiln_mem_bytes(mem), 0);
  kiln_mem_release(mem);
}

static void test_out_of_memory_keeps(void **state) {
  (void)state;
  kiln_mem *mem = memory();
  kiln_epoch e;
  kiln_epoch_init(&e, mem);
  int freed = 0;
  (void)kiln_mem_fail_at(mem, 1);
  assert_false(kiln_epoch_retire(&e, count, &freed));
  (void)kiln_mem_fail_at(mem, 0);
  kiln_epoch_deinit(&e);
  assert_int_equal(freed, 0); /* still its owner's */
  kiln_mem_release(mem);
}

/* -- A run that is held up between its two looks at the epoch -- */

static struct held_up {
  kiln_epoch *epoch; /* its stripes lie in memory that cannot be written */
  void *page;
  size_t bytes;
  int freed, moves;
} held_up;

/* Stands for the collector: the run has read the epoch, and is about to count itself. */
static void move_on(int number) {
  (void)number;
  if (held_up.moves++ || mprotect(held_up.page, held_up.bytes, PROT_READ | PROT_WRITE)) _exit(1);
  (void)kiln_epoch_retire(held_up.epoch, count, &held_up.freed);
  collect_often(held_up.epoch);
}

/* It counts itself where collectors look, not where it was when the epoch was another one. */
static void test_looks_twice(void **state) {
  (void)state;
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  const size_t stripes = (sizeof(kiln_epoch_stripe) * KILN_STRIPES + page - 1) / page * page;
  char *memory_of =
      mmap(NULL, page + stripes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_true(memory_of != MAP_FAILED);
  kiln_mem *mem = memory();
  kiln_epoch *e = (kiln_epoch *)(void *)(memory_of + page - offsetof(kiln_epoch, stripes));
  kiln_epoch_init(e, mem);
  held_up = (struct held_up){.epoch = e, .page = memory_of + page, .bytes = stripes};
  struct sigaction old, act = {.sa_handler = move_on};
  sigaction(SIGSEGV, &act, &old);
  assert_int_equal(mprotect(held_up.page, stripes, PROT_READ), 0);
  const uint64_t run = kiln_epoch_enter(e, 0);
  sigaction(SIGSEGV, &old, NULL);
  assert_int_equal(held_up.moves, 1);
  assert_int_equal(held_up.freed, 1); /* the epoch has moved on, by two at least */
  int freed = 0;
  assert_true(kiln_epoch_retire(e, count, &freed));
  collect_often(e);
  assert_int_equal(freed, 0); /* the run may hold it */
  kiln_epoch_leave(e, run);
  collect_often(e);
  assert_int_equal(freed, 1);
  kiln_epoch_deinit(e);
  kiln_mem_release(mem);
  munmap(memory_of, page + stripes);
}

/* -- Threads: readers dereference what a writer replaces -- */

enum { READERS = 3, ROUNDS = 2000 };
typedef struct shared {
  kiln_epoch epoch;
  int *published; /* atomic: 42, or -1 after it was freed */
  int stop;
} shared;

static void poison(void *object) { __atomic_store_n((int *)object, -1, __ATOMIC_RELAXED); }

static void *reader(void *arg) {
  shared *s = arg;
  intptr_t bad = 0;
  while (!__atomic_load_n(&s->stop, __ATOMIC_ACQUIRE)) {
    uint64_t ticket = kiln_epoch_enter(&s->epoch, (uint32_t)(uintptr_t)pthread_self() >> 8);
    const int *p = __atomic_load_n(&s->published, __ATOMIC_ACQUIRE);
    for (int i = 0; i < 20; i++) bad += __atomic_load_n(p, __ATOMIC_RELAXED) != 42;
    kiln_epoch_leave(&s->epoch, ticket);
  }
  return (void *)bad;
}

static void test_threads(void **state) {
  (void)state;
  kiln_mem *mem = memory();
  static int cells[ROUNDS + 1];
  for (int i = 0; i <= ROUNDS; i++) cells[i] = 42;
  shared s = {.published = &cells[0]};
  kiln_epoch_init(&s.epoch, mem);
  pthread_t threads[READERS];
  for (int i = 0; i < READERS; i++) pthread_create(&threads[i], NULL, reader, &s);
  for (int i = 1; i <= ROUNDS; i++) {
    int *old = s.published;
    __atomic_store_n(&s.published, &cells[i], __ATOMIC_RELEASE);
    assert_true(kiln_epoch_retire(&s.epoch, poison, old));
    (void)kiln_epoch_collect(&s.epoch);
  }
  __atomic_store_n(&s.stop, 1, __ATOMIC_RELEASE);
  for (int i = 0; i < READERS; i++) {
    void *bad;
    pthread_join(threads[i], &bad);
    assert_null(bad);
  }
  collect_often(&s.epoch);
  assert_int_equal(cells[ROUNDS - 1], -1); /* and it was freed at last */
  kiln_epoch_deinit(&s.epoch);
  kiln_mem_release(mem);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_waits_for_runs),   cmocka_unit_test(test_frees_without_runs),
      cmocka_unit_test(test_deinit_frees_all), cmocka_unit_test(test_out_of_memory_keeps),
      cmocka_unit_test(test_looks_twice),      cmocka_unit_test(test_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
