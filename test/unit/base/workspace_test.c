/* workspace_test.c: places of blocks by their lifetimes, and what happens when a run goes
 * otherwise. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/memory_plan.h"
#include "base/workspace.h"
#include "test/unit/unit.h"

static uint64_t drawn = 1;
static uint32_t below(uint32_t n) {
  drawn = drawn * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(drawn >> 33) % n;
}

/* -- Places -- */

static void check_places(const kiln_lifetime *blocks, int count, uint32_t all) {
  uint32_t end = 0;
  for (int i = 0; i < count; i++) {
    const kiln_lifetime *a = &blocks[i];
    if (a->at + a->size > end) end = a->at + a->size;
    for (int k = 0; k < i; k++) {
      const kiln_lifetime *b = &blocks[k];
      const bool in_time = a->from < b->to && b->from < a->to;
      const bool in_space = a->at < b->at + b->size && b->at < a->at + a->size;
      assert_false(in_time && in_space);
    }
  }
  assert_int_equal(end, all);
}

static void blocks_that_follow_share_a_place(void **state) {
  (void)state;
  kiln_lifetime blocks[] = {{0, 4, 3, 0, 9, 9}, {1, 2, 2, 1, 9, 9}, {3, 5, 2, 2, 9, 9}};
  assert_int_equal(kiln_memory_plan(blocks, 3), 5);
  check_places(blocks, 3, 5);
  assert_int_equal(kiln_memory_plan(NULL, 0), 0);
}

static void random_blocks_never_meet(void **state) {
  (void)state;
  static kiln_lifetime blocks[KILN_MEMORY_PLAN_MOST];
  for (int trial = 0; trial < 300; trial++) {
    const int count = trial == 0 ? KILN_MEMORY_PLAN_MOST : (int)below(60);
    for (int i = 0; i < count; i++) {
      const uint32_t from = below(100);
      blocks[i] = (kiln_lifetime){from, from + 1 + below(20), 1 + below(1000), 0, 0, 0};
    }
    check_places(blocks, count, kiln_memory_plan(blocks, count));
  }
}

/* -- Runs -- */

typedef struct block {
  char *data;
  size_t bytes;
  bool chunk; /* of the workspace or the pool */
} block;

static block ask(kiln_cache *cache, size_t bytes) {
  block b = {kiln_workspace_take(cache, bytes), bytes, true};
  if (!b.data) {
    b.data = kiln_cache_alloc(cache, bytes);
    b.chunk = false;
  }
  assert_non_null(b.data);
  assert_int_equal((uintptr_t)b.data % 64, 0);
  kiln_workspace_note(cache, b.data);
  return b;
}
/* `cache` NULL: by somebody else. */
static void give(kiln_mem *mem, kiln_cache *cache, block *b) {
  if (cache) kiln_workspace_gone(cache, b->data);
  if (b->chunk) {
    kiln_workspace_give(cache, b->data, b->bytes);
  } else if (cache) {
    kiln_cache_free(cache, b->data, b->bytes);
  } else {
    kiln_cache_free_mem(mem, b->data, b->bytes);
  }
  b->data = NULL;
}

typedef struct fixture {
  kiln_mem *mem;
  kiln_cache cache;
} fixture;
static fixture open_fixture(void) {
  fixture f;
  assert_ok(kiln_mem_create(KILN_MEM_DEFAULT, &f.mem));
  kiln_cache_init(&f.cache, f.mem, 64 << 20);
  assert_ok(kiln_workspace_open(&f.cache));
  kiln_workspace_begin_run(&f.cache, true);
  return f;
}
static void close_fixture(fixture *f) {
  kiln_cache_deinit(&f->cache);
  assert_int_equal(kiln_mem_bytes(f->mem), 0);
  kiln_mem_release(f->mem);
}

/* 10,000 and 20,000 bytes, of which the first goes, and 9,000. The last one is the result: a plan
 * has no place for it, the pool has one for each. */
static block run(fixture *f, int *in_chunks) {
  block a = ask(&f->cache, 10000), b = ask(&f->cache, 20000);
  give(f->mem, &f->cache, &a);
  block c = ask(&f->cache, 9000), d = ask(&f->cache, 30000);
  *in_chunks = b.chunk + c.chunk + d.chunk;
  give(f->mem, &f->cache, &b);
  give(f->mem, &f->cache, &c);
  return d;
}
enum { BY_PLAN = 2, BY_POOL = 3 };
static int run_whole(fixture *f) {
  int in_chunks;
  block d = run(f, &in_chunks);
  give(f->mem, NULL, &d);
  kiln_workspace_begin_run(&f->cache, true);
  return in_chunks;
}
static void warm_up(fixture *f) {
  for (int i = 0; i < 3; i++) assert_int_equal(run_whole(f), BY_POOL);
}

static void the_fourth_run_has_places(void **state) {
  (void)state;
  fixture f = open_fixture();
  warm_up(&f);
  for (int i = 0; i < 5; i++) {
    kiln_mem_fail_at(f.mem, 0);
    assert_int_equal(run_whole(&f), BY_PLAN);
    assert_int_equal(kiln_mem_fail_at(f.mem, 0), 1); /* the result */
  }
  kiln_workspace_plan plan;
  assert_true(kiln_workspace_plan_of(&f.cache, &plan));
  assert_int_equal(plan.count, 3);
  assert_int_equal(plan.least, 30000);
  assert_true(plan.bytes < 33000 && plan.bytes >= plan.least);
  assert_int_equal(plan.runs, 5);
  for (int i = 0; i < 3; i++) assert_true(plan.blocks[i].from < plan.blocks[i].to);
  close_fixture(&f);
}

static uint64_t planned_runs(const fixture *f) {
  kiln_workspace_plan plan;
  return kiln_workspace_plan_of(&f->cache, &plan) ? plan.runs : 0;
}
static void runs_of_two_orders_take_turns(void **state) {
  (void)state;
  fixture f = open_fixture();
  for (uint64_t turn = 0; turn < 3; turn++) {
    for (int i = 0; i < 4; i++) {
      block a = ask(&f.cache, 50000);
      give(f.mem, &f.cache, &a);
      kiln_workspace_begin_run(&f.cache, true);
    }
    assert_int_equal(planned_runs(&f), 1 + 4 * turn);
    for (int i = 0; i < 4; i++) (void)run_whole(&f);
    assert_int_equal(planned_runs(&f), 1 + 4 * turn);
  }
  close_fixture(&f);
}

static void what_leaves_its_run_keeps_its_place(void **state) {
  (void)state;
  fixture f = open_fixture();
  warm_up(&f);
  int in_chunks;
  block a = ask(&f.cache, 10000), b = ask(&f.cache, 20000); /* and no more */
  assert_true(a.chunk && b.chunk);
  memset(a.data, 17, a.bytes);
  give(f.mem, &f.cache, &b);
  kiln_workspace_begin_run(&f.cache, true);
  for (int i = 0; i < 4; i++) assert_int_equal(run_whole(&f), 1); /* c would lie where a does */
  block d = run(&f, &in_chunks);
  memset(d.data, 3, d.bytes);
  for (size_t i = 0; i < a.bytes; i++) assert_int_equal(a.data[i], 17);
  give(f.mem, NULL, &d);
  give(f.mem, NULL, &a);
  kiln_workspace_begin_run(&f.cache, true);
  assert_int_equal(run_whole(&f), BY_PLAN);
  close_fixture(&f);
}

static void what_outlives_its_cache_keeps_its_workspace(void **state) {
  (void)state;
  fixture f = open_fixture();
  warm_up(&f);
  block a = ask(&f.cache, 10000);
  assert_true(a.chunk);
  kiln_cache_deinit(&f.cache);
  memset(a.data, 17, a.bytes);
  give(f.mem, NULL, &a);
  assert_int_equal(kiln_mem_bytes(f.mem), 0);
  kiln_mem_release(f.mem);
}

/* In sizes ever new: what was touched is what is lent at once, more or less, not a block a size. */
static void the_pool_lends_the_same_pages_in_every_size(void **state) {
  (void)state;
  fixture f = open_fixture();
  char *least = NULL, *most = NULL;
  for (int i = 0; i < 500; i++) {
    block blocks[3];
    for (int k = 0; k < 3; k++) {
      blocks[k] = ask(&f.cache, 4096 + below(40000));
      assert_true(blocks[k].chunk);
      memset(blocks[k].data, k, blocks[k].bytes);
      char *end = blocks[k].data + blocks[k].bytes;
      if (i > 250 && (!least || blocks[k].data < least)) least = blocks[k].data;
      if (i > 250 && (!most || end > most)) most = end;
    }
    for (int k = 0; k < 3; k++) give(f.mem, i % 3 == k ? NULL : &f.cache, &blocks[k]);
    kiln_workspace_begin_run(&f.cache, true);
  }
  assert_true(most - least < 4 * 45000);
  assert_true(kiln_mem_bytes(f.mem) < 700000);
  close_fixture(&f);
}

static void what_is_kept_of_a_pool_does_not_stop_it(void **state) {
  (void)state;
  enum { MANY = 300 };
  fixture f = open_fixture();
  static block kept[MANY];
  int in_chunks = 0;
  for (int i = 0; i < MANY; i++) {
    kept[i] = ask(&f.cache, 40000 + 8 * below(1000)); /* 13 MB in all: more than a pool has */
    in_chunks += kept[i].chunk;
    memset(kept[i].data, i, kept[i].bytes);
    block b = ask(&f.cache, 5000 + (size_t)i);
    give(f.mem, &f.cache, &b);
    kiln_workspace_begin_run(&f.cache, true);
  }
  assert_in_range(in_chunks, 180, 280);
  for (int i = 0; i < MANY; i++) {
    for (size_t k = 0; k < kept[i].bytes; k++) assert_int_equal(kept[i].data[k], (char)i);
    give(f.mem, NULL, &kept[i]);
  }
  block whole = ask(&f.cache, 2 << 20), more = ask(&f.cache, (2 << 20) + 1);
  assert_true(whole.chunk && !more.chunk);
  give(f.mem, &f.cache, &whole);
  give(f.mem, &f.cache, &more);
  close_fixture(&f);
}

static void the_workspace_gives_way_to_the_limit(void **state) {
  (void)state;
  fixture f = open_fixture();
  warm_up(&f);
  const size_t held = kiln_mem_bytes(f.mem) - f.cache.bytes; /* what is free counts for nobody */
  block a = ask(&f.cache, 10000);
  assert_true(kiln_mem_bytes(f.mem) - f.cache.bytes - held >= a.bytes);
  give(f.mem, &f.cache, &a);
  assert_int_equal(kiln_mem_bytes(f.mem) - f.cache.bytes, held);
  kiln_mem_set_limit(f.mem, kiln_mem_bytes(f.mem) + 1000);
  block b = ask(&f.cache, 25000); /* in the room of the workspace */
  assert_false(b.chunk);
  give(f.mem, &f.cache, &b);
  close_fixture(&f);
}

static void a_pool_leaves_a_limit_its_room(void **state) {
  (void)state;
  fixture f = open_fixture();
  kiln_mem_set_limit(f.mem, kiln_mem_bytes(f.mem) + (2 << 20));
  block blocks[12];
  int in_chunks = 0;
  for (int i = 0; i < 12; i++) in_chunks += (blocks[i] = ask(&f.cache, 30000)).chunk;
  assert_in_range(in_chunks, 1, 4);
  block large = ask(&f.cache, 3 << 19); /* beside what the pool has */
  give(f.mem, &f.cache, &large);
  for (int i = 0; i < 12; i++) give(f.mem, &f.cache, &blocks[i]);
  close_fixture(&f);
}

static void without_memory_there_is_no_plan(void **state) {
  (void)state;
  for (uint64_t n = 1; n < 40; n++) {
    fixture f = open_fixture();
    kiln_mem_fail_at(f.mem, n);
    for (int i = 0; i < 6; i++) {
      block blocks[3] = {{0}};
      static const size_t sizes[3] = {10000, 20000, 9000};
      for (int k = 0; k < 3; k++) {
        blocks[k] = (block){kiln_workspace_take(&f.cache, sizes[k]), sizes[k], true};
        if (!blocks[k].data)
          blocks[k] = (block){kiln_cache_alloc(&f.cache, sizes[k]), sizes[k], false};
        if (blocks[k].data) kiln_workspace_note(&f.cache, blocks[k].data);
      }
      for (int k = 0; k < 3; k++)
        if (blocks[k].data) give(f.mem, &f.cache, &blocks[k]);
      kiln_workspace_begin_run(&f.cache, true);
    }
    kiln_mem_fail_at(f.mem, 0);
    close_fixture(&f);
  }
}

static void a_cache_without_a_plan_has_no_workspace(void **state) {
  (void)state;
  fixture f = open_fixture();
  warm_up(&f);
  kiln_workspace_begin_run(&f.cache, false);
  block a = ask(&f.cache, 10000);
  assert_false(a.chunk);
  give(f.mem, &f.cache, &a);
  close_fixture(&f);
}

/* Runs of few orders that are often broken off, and blocks that are kept over runs and given back
 * by this cache, by another and by a thread: every block keeps what was written to it. */
enum { SLOTS = 24 };
static void check(const block *b, int number) {
  for (size_t i = 0; i < b->bytes; i += 509) assert_int_equal(b->data[i], (char)number);
}
typedef struct sent {
  kiln_mem *mem;
  block block;
} sent;
static void *give_there(void *arg) {
  sent *s = arg;
  give(s->mem, NULL, &s->block);
  return NULL;
}
static void random_runs_keep_what_they_write(void **state) {
  (void)state;
  fixture f = open_fixture();
  block held[SLOTS] = {{0}};
  int in_chunks = 0;
  for (int turn = 0; turn < 2000; turn++) {
    drawn = 7 + (uint64_t)(turn / 40 % 6);
    const int steps = 10 + (int)below(50);
    const bool odd = turn % 13 == 5;
    for (int i = 0; i < steps; i++) {
      const int slot = (int)below(SLOTS);
      block *b = &held[slot];
      const size_t bytes = 3000 + below(40) * 1000;
      if (b->data) {
        check(b, slot);
        give(f.mem, &f.cache, b);
      } else {
        *b = ask(&f.cache, bytes);
        in_chunks += b->chunk;
        memset(b->data, slot, b->bytes);
      }
      if (odd && i == steps / 2) break;
    }
    for (int slot = 0; slot < SLOTS; slot++) {
      block *b = &held[slot];
      if (!b->data || (turn % 97 == 9 && slot % 5 == 0)) continue;
      check(b, slot);
      if (turn % 29 == 3 && slot == 1) {
        sent s = {f.mem, *b};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, give_there, &s), 0);
        pthread_join(thread, NULL);
        b->data = NULL;
      } else {
        give(f.mem, turn % 7 ? &f.cache : NULL, b);
      }
    }
    kiln_workspace_begin_run(&f.cache, true);
  }
  assert_true(in_chunks > 1000);
  for (int slot = 0; slot < SLOTS; slot++)
    if (held[slot].data) give(f.mem, NULL, &held[slot]);
  close_fixture(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(blocks_that_follow_share_a_place),
      cmocka_unit_test(random_blocks_never_meet),
      cmocka_unit_test(the_fourth_run_has_places),
      cmocka_unit_test(runs_of_two_orders_take_turns),
      cmocka_unit_test(what_leaves_its_run_keeps_its_place),
      cmocka_unit_test(what_outlives_its_cache_keeps_its_workspace),
      cmocka_unit_test(the_pool_lends_the_same_pages_in_every_size),
      cmocka_unit_test(what_is_kept_of_a_pool_does_not_stop_it),
      cmocka_unit_test(the_workspace_gives_way_to_the_limit),
      cmocka_unit_test(a_pool_leaves_a_limit_its_room),
      cmocka_unit_test(without_memory_there_is_no_plan),
      cmocka_unit_test(a_cache_without_a_plan_has_no_workspace),
      cmocka_unit_test(random_runs_keep_what_they_write),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
