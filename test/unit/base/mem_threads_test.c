/* mem_threads_test.c: several threads on one kiln_mem, blocks given back by another thread. */
#include <pthread.h>
#include <stdatomic.h>

#include "base/workspace.h"
#include "test/unit/unit.h"

enum { THREADS = 4, ROUNDS = 3000, SHELF = 16 };

typedef struct shared {
  kiln_mem *mem;
  _Atomic(void *) shelf[SHELF]; /* blocks that wait for any thread to free them */
  atomic_int bad;
} shared;

static void run_threads(void *(*body)(void *), shared *s) {
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, body, s), 0);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

static size_t size_of_place(unsigned place) { return place < 12 ? 16 + place * 37 : 70000 * place; }

static void *work(void *arg) {
  shared *s = arg;
  kiln_cache cache;
  kiln_cache_init(&cache, s->mem, 1 << 20);
  uint32_t random = (uint32_t)(uintptr_t)&cache | 1;
  for (int i = 0; i < ROUNDS; i++) {
    random = random * 1664525u + 1013904223u;
    unsigned place = random >> 28;
    size_t size = size_of_place(place);
    unsigned char *block = kiln_cache_alloc(&cache, size);
    if (!block) {
      atomic_fetch_add(&s->bad, 1);
      continue;
    }
    block[0] = block[size - 1] = (unsigned char)place;
    unsigned char *old = atomic_exchange(&s->shelf[place], block);
    if (!old) continue;
    if (old[0] != place || old[size - 1] != place) atomic_fetch_add(&s->bad, 1);
    if (random & 1 << 20) {
      kiln_cache_free(&cache, old, size);
    } else {
      kiln_cache_free_mem(s->mem, old, size);
    }
  }
  kiln_cache_deinit(&cache);
  return NULL;
}

static void blocks_wander_between_threads(void **state) {
  (void)state;
  static shared s;
  assert_ok(kiln_mem_create(KILN_MEM_DEFAULT, &s.mem));
  run_threads(work, &s);
  for (unsigned i = 0; i < SHELF; i++) kiln_cache_free_mem(s.mem, s.shelf[i], size_of_place(i));
  assert_int_equal(atomic_load(&s.bad), 0);
  assert_int_equal(kiln_mem_bytes(s.mem), 0);
  kiln_mem_release(s.mem);
}

/* Blocks of pools: each thread is the owner of one, and many blocks come back by others. */
static void *work_in_pool(void *arg) {
  shared *s = arg;
  kiln_cache cache;
  kiln_cache_init(&cache, s->mem, 1 << 20);
  if (kiln_workspace_open(&cache)) return NULL;
  kiln_workspace_begin_run(&cache, true);
  uint32_t random = (uint32_t)(uintptr_t)&cache | 1;
  int lent = 0;
  for (int i = 0; i < ROUNDS; i++) {
    random = random * 1664525u + 1013904223u;
    const unsigned place = random >> 28;
    const size_t size = 5000 + 3000 * place;
    if (i % 50 == 49) kiln_workspace_begin_run(&cache, true);
    unsigned char *block = kiln_workspace_take(&cache, size);
    if (!block) continue; /* the pool does not grow beyond its most */
    lent++;
    block[0] = block[size - 1] = (unsigned char)place;
    unsigned char *old = atomic_exchange(&s->shelf[place], block);
    if (!old) continue;
    if (old[0] != place || old[size - 1] != place) atomic_fetch_add(&s->bad, 1);
    kiln_workspace_give(random & 1 << 20 ? &cache : NULL, old, size);
  }
  if (lent < ROUNDS / 2) atomic_fetch_add(&s->bad, 1);
  kiln_cache_deinit(&cache);
  return NULL;
}

static void blocks_wander_between_pools(void **state) {
  (void)state;
  static shared s;
  assert_ok(kiln_mem_create(KILN_MEM_DEFAULT, &s.mem));
  run_threads(work_in_pool, &s);
  for (unsigned i = 0; i < SHELF; i++)
    if (s.shelf[i]) kiln_workspace_give(NULL, s.shelf[i], 5000 + 3000 * i);
  assert_int_equal(atomic_load(&s.bad), 0);
  assert_int_equal(kiln_mem_bytes(s.mem), 0);
  kiln_mem_release(s.mem);
}

static void *limited_work(void *arg) {
  shared *s = arg;
  for (int i = 0; i < ROUNDS; i++) {
    void *block = kiln_mem_alloc(s->mem, 600);
    if (kiln_mem_bytes(s->mem) > 4000) atomic_fetch_add(&s->bad, 1);
    kiln_mem_free(s->mem, block, block ? 600 : 0);
  }
  return NULL;
}

/* A refused request may be counted for a moment: at most one a thread. */
static void limit_holds_for_all_threads(void **state) {
  (void)state;
  static shared s;
  assert_ok(kiln_mem_create(KILN_MEM_SYSTEM, &s.mem));
  kiln_mem_set_limit(s.mem, 1600);
  run_threads(limited_work, &s);
  assert_int_equal(atomic_load(&s.bad), 0);
  assert_true(kiln_mem_peak_bytes(s.mem) <= 1600);
  assert_int_equal(kiln_mem_bytes(s.mem), 0);
  kiln_mem_release(s.mem);
}

static void *small_work(void *arg) {
  shared *s = arg;
  for (size_t i = 0; i < 100; i++) kiln_mem_free(s->mem, kiln_mem_alloc(s->mem, 100 + i), 100 + i);
  return NULL;
}

/* What threads have left in their reserves is there for a thread that is at the limit. */
static void reserves_do_not_count(void **state) {
  enum { LIMIT = 1 << 20 };
  (void)state;
  static shared s;
  assert_ok(kiln_mem_create(KILN_MEM_SYSTEM, &s.mem));
  kiln_mem_set_limit(s.mem, LIMIT);
  run_threads(small_work, &s);
  assert_int_equal(kiln_mem_bytes(s.mem), 0);
  void *most = kiln_mem_alloc(s.mem, LIMIT - 200), *rest = kiln_mem_alloc(s.mem, 200);
  assert_non_null(most);
  assert_non_null(rest);
  assert_int_equal(kiln_mem_bytes(s.mem), LIMIT);
  assert_null(kiln_mem_alloc(s.mem, 1));
  kiln_mem_free(s.mem, most, LIMIT - 200);
  kiln_mem_free(s.mem, rest, 200);
  assert_int_equal(kiln_mem_bytes(s.mem), 0);
  assert_int_equal(kiln_mem_peak_bytes(s.mem), LIMIT);
  kiln_mem_release(s.mem);
}

/* Opens, fills and closes one mem after the other, till `bad` is set. */
static void *open_and_close(void *arg) {
  shared *s = arg;
  while (!atomic_load(&s->bad)) {
    enum { BLOCKS = 8 };
    const size_t least = 100000;
    void *blocks[BLOCKS];
    kiln_mem *mem = NULL;
    kiln_status_destroy(kiln_mem_create(KILN_MEM_DEFAULT, &mem));
    if (!mem) break;
    for (size_t i = 0; i < BLOCKS; i++) blocks[i] = kiln_mem_alloc(mem, least << i);
    for (size_t i = 0; i < BLOCKS; i++) kiln_mem_free(mem, blocks[i], blocks[i] ? least << i : 0);
    kiln_mem_release(mem);
  }
  return NULL;
}

/* What one gives back leaves alone what others close. */
static void one_gives_back_while_others_close(void **state) {
  (void)state;
  static shared s;
  assert_ok(kiln_mem_create(KILN_MEM_DEFAULT, &s.mem));
  pthread_t threads[2];
  for (int i = 0; i < 2; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, open_and_close, &s), 0);
  for (int i = 0; i < 10 * ROUNDS; i++) {
    kiln_mem_free(s.mem, kiln_mem_alloc(s.mem, 300000), 300000);
    kiln_mem_give_back(s.mem);
  }
  atomic_store(&s.bad, 1);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  assert_int_equal(kiln_mem_bytes(s.mem), 0);
  kiln_mem_release(s.mem);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(blocks_wander_between_threads),
      cmocka_unit_test(blocks_wander_between_pools),
      cmocka_unit_test(limit_holds_for_all_threads),
      cmocka_unit_test(reserves_do_not_count),
      cmocka_unit_test(one_gives_back_while_others_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
