/* mem_test.c: accounting, limits, large blocks, caches, in every kind of kiln_mem. */
#include "base/sanitize.h"
#include "test/unit/unit.h"

static kiln_mem *make(kiln_mem_kind kind) {
  kiln_mem *mem = NULL;
  assert_ok(kiln_mem_create(kind, &mem));
  return mem;
}

static const kiln_mem_kind kinds[] = {KILN_MEM_DEFAULT, KILN_MEM_SYSTEM};
#define FOR_KINDS(mem)                       \
  for (size_t kind_ = 0; kind_ < 2; kind_++) \
    for (kiln_mem *mem = make(kinds[kind_]); mem; kiln_mem_release(mem), mem = NULL)

static void blocks_are_aligned_and_counted(void **state) {
  (void)state;
  FOR_KINDS(mem) {
    static const size_t sizes[] = {0,     1,     15,    16,     17,     48,      63,     64,
                                   65,    100,   4096,  65535,  65536,  65537,   100000, 1 << 20,
                                   81920, 81921, 98304, 114688, 131072, 3000000, 16};
    void *blocks[sizeof sizes / sizeof *sizes];
    size_t sum = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
      blocks[i] = kiln_mem_alloc(mem, sizes[i]);
      assert_non_null(blocks[i]);
      assert_int_equal((uintptr_t)blocks[i] % (sizes[i] >= 64 ? 64 : 16), 0);
      memset(blocks[i], (int)i, sizes[i]);
      sum += sizes[i];
      assert_int_equal(kiln_mem_bytes(mem), sum);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
      for (size_t k = 0; k < sizes[i]; k++) assert_int_equal(((unsigned char *)blocks[i])[k], i);
      kiln_mem_free(mem, blocks[i], sizes[i]);
    }
    assert_int_equal(kiln_mem_bytes(mem), 0);
    assert_int_equal(kiln_mem_peak_bytes(mem), sum);
    kiln_mem_free(mem, NULL, 5);
  }
}

static void zeroed_blocks_are_zero_when_reused(void **state) {
  (void)state;
  static const size_t sizes[] = {24, 1000, 70000, 5 << 20};
  FOR_KINDS(mem) {
    for (size_t i = 0; i < 4; i++) {
      for (int round = 0; round < 3; round++) {
        unsigned char *block = kiln_mem_alloc_zero(mem, sizes[i]);
        assert_non_null(block);
        for (size_t k = 0; k < sizes[i]; k++) assert_int_equal(block[k], 0);
        memset(block, 255, sizes[i]);
        kiln_mem_free(mem, block, sizes[i]);
      }
    }
  }
}

/* What MemorySanitizer is to see, it must be told: the fill of tests is no writing. */
static void fresh_blocks_count_as_unwritten(void **state) {
  (void)state;
#if KILN_MSAN
  FOR_KINDS(mem) {
    kiln_mem_set_fill(mem, 0x41);
    unsigned char *block = kiln_mem_alloc(mem, 100), *zero = kiln_mem_alloc_zero(mem, 100);
    memset(block, 1, 50);
    assert_int_equal(__msan_test_shadow(block, 100), 50);
    assert_int_equal(__msan_test_shadow(zero, 100), -1);
    kiln_mem_free(mem, block, 100);
    kiln_mem_free(mem, zero, 100);
  }
#else
  skip();
#endif
}

static void large_blocks_are_kept_by_class(void **state) {
  (void)state;
  if (KILN_SANITIZED) skip();
  kiln_mem *mem = make(KILN_MEM_DEFAULT);
  void *first = kiln_mem_alloc(mem, 100000); /* class 114688 */
  kiln_mem_free(mem, first, 100000);
  void *second = kiln_mem_alloc(mem, 114688);
  assert_ptr_equal(first, second); /* the last one given back comes first */
  kiln_mem_free(mem, second, 114688);
  kiln_mem_release(mem);
}

static void realloc_keeps_contents(void **state) {
  (void)state;
  static const size_t steps[] = {10, 10, 100, 64, 5000, 70000, 75000, 200000, 66000, 100, 1};
  FOR_KINDS(mem) {
    unsigned char *block = kiln_mem_realloc(mem, NULL, 0, steps[0]);
    assert_non_null(block);
    memset(block, 7, steps[0]);
    for (size_t i = 1; i < sizeof steps / sizeof *steps; i++) {
      block = kiln_mem_realloc(mem, block, steps[i - 1], steps[i]);
      assert_non_null(block);
      size_t kept = steps[i - 1] < steps[i] ? steps[i - 1] : steps[i];
      for (size_t k = 0; k < kept; k++) assert_int_equal(block[k], 7);
      memset(block, 7, steps[i]);
      assert_int_equal(kiln_mem_bytes(mem), steps[i]);
    }
    kiln_mem_free(mem, block, 1);
    assert_int_equal(kiln_mem_bytes(mem), 0);
  }
}

static void limit_refuses_without_counting(void **state) {
  (void)state;
  FOR_KINDS(mem) {
    kiln_mem_set_limit(mem, 1000);
    void *block = kiln_mem_alloc(mem, 900);
    assert_non_null(block);
    assert_null(kiln_mem_alloc(mem, 200));
    assert_null(kiln_mem_alloc_zero(mem, 101));
    assert_null(kiln_mem_realloc(mem, block, 900, 1001));
    assert_int_equal(kiln_mem_bytes(mem), 900);
    void *more = kiln_mem_alloc(mem, 100);
    assert_non_null(more);
    kiln_mem_free(mem, more, 100);
    kiln_mem_set_limit(mem, 0);
    more = kiln_mem_alloc(mem, 100000);
    assert_non_null(more);
    kiln_mem_free(mem, more, 100000);
    kiln_mem_free(mem, block, 900);
  }
}

/* Small and large blocks, in any order: reserves of either side of theirs show nowhere. */
static void counts_are_exact(void **state) {
  (void)state;
  FOR_KINDS(mem) {
    enum { BLOCKS = 64 };
    void *blocks[BLOCKS] = {NULL};
    size_t sizes[BLOCKS] = {0}, held = 0, most = 0;
    uint32_t random = 1;
    for (int i = 0; i < 4000; i++) {
      random = random * 1664525u + 1013904223u;
      const int at = (int)(random >> 26);
      kiln_mem_free(mem, blocks[at], sizes[at]);
      held -= sizes[at];
      sizes[at] = (random >> 8 & 7) ? random >> 8 & 0x7ff : random >> 8 & 0x1ffff;
      blocks[at] = kiln_mem_alloc(mem, sizes[at]);
      assert_non_null(blocks[at]);
      held += sizes[at];
      if (held > most) most = held;
      assert_int_equal(kiln_mem_bytes(mem), held);
      if (i % 512 == 0) assert_int_equal(kiln_mem_peak_bytes(mem), most);
    }
    assert_int_equal(kiln_mem_peak_bytes(mem), most);
    kiln_mem_set_limit(mem, held + 100);
    assert_int_equal(kiln_mem_bytes(mem), held);
    for (int i = 0; i < BLOCKS; i++) kiln_mem_free(mem, blocks[i], sizes[i]);
    assert_int_equal(kiln_mem_bytes(mem), 0);
    assert_int_equal(kiln_mem_peak_bytes(mem), most);
  }
}

static void impossible_sizes_are_refused(void **state) {
  (void)state;
  FOR_KINDS(mem) {
    volatile size_t size = SIZE_MAX;
    assert_null(kiln_mem_alloc(mem, size));
    size = (size_t)1 << 60;
    assert_null(kiln_mem_alloc(mem, size));
    assert_null(kiln_mem_alloc_zero(mem, size));
    /* More than any machine has, and yet mapped by whoever reserves nothing. */
    size = (size_t)1 << 45;
    assert_null(kiln_mem_alloc(mem, size));
    assert_int_equal(kiln_mem_bytes(mem), 0);
  }
}

static void nth_request_fails_and_only_that(void **state) {
  (void)state;
  FOR_KINDS(mem) {
    kiln_mem_fail_at(mem, 3);
    void *a = kiln_mem_alloc(mem, 10);
    void *b = kiln_mem_realloc(mem, a, 10, 20);
    assert_non_null(b);
    assert_null(kiln_mem_alloc(mem, 10));
    void *c = kiln_mem_alloc_zero(mem, 100000);
    assert_non_null(c);
    assert_int_equal(kiln_mem_fail_at(mem, 0), 4);
    assert_int_equal(kiln_mem_fail_at(mem, 0), 0);
    kiln_mem_free(mem, b, 20);
    kiln_mem_free(mem, c, 100000);
  }
}

static void outlives_its_first_owner(void **state) {
  (void)state;
  kiln_mem *mem = make(KILN_MEM_DEFAULT);
  kiln_mem_retain(mem);
  void *block = kiln_mem_alloc(mem, 100);
  kiln_mem_release(mem);
  kiln_mem_free(mem, block, 100);
  kiln_mem_release(mem);
}

static void many_contexts_at_once(void **state) {
  (void)state;
  static kiln_mem *mems[200];
  for (int i = 0; i < 200; i++) {
    mems[i] = make(KILN_MEM_DEFAULT);
    kiln_mem_free(mems[i], kiln_mem_alloc(mems[i], 200000), 200000);
  }
  for (int i = 0; i < 200; i++) kiln_mem_release(mems[i]);
}

/* -- Caches -- */

static void classes_cover_their_sizes(void **state) {
  (void)state;
  unsigned last = 0;
  for (size_t size = 1; size <= (size_t)2 << 20; size = size < 70000 ? size + 1 : size + 511) {
    unsigned index = kiln__cache_class(size);
    assert_true(index < KILN_CACHE_CLASSES);
    assert_true(index == last || index == last + 1);
    assert_true(kiln__cache_class_size(index) >= size);
    assert_true(index == 0 || kiln__cache_class_size(index - 1) < size);
    last = index;
  }
  assert_int_equal(kiln__cache_class((size_t)2 << 20), KILN_CACHE_CLASSES - 1);
  assert_true(kiln__cache_class(((size_t)2 << 20) + 1) >= KILN_CACHE_CLASSES);
  assert_true(kiln__cache_class(0) >= KILN_CACHE_CLASSES);
}

static void caches_reuse_blocks_last_first(void **state) {
  (void)state;
  if (KILN_SANITIZED) skip();
  kiln_mem *mem = make(KILN_MEM_DEFAULT);
  kiln_cache cache;
  kiln_cache_init(&cache, mem, 1 << 20);
  void *a = kiln_cache_alloc(&cache, 100), *b = kiln_cache_alloc(&cache, 112);
  kiln_cache_free(&cache, a, 100);
  kiln_cache_free(&cache, b, 112);
  assert_int_equal(cache.bytes, 224);
  kiln_mem_fail_at(mem, 0);
  assert_ptr_equal(kiln_cache_alloc(&cache, 97), b); /* the same class */
  assert_ptr_equal(kiln_cache_alloc(&cache, 100), a);
  assert_int_equal(kiln_mem_fail_at(mem, 0), 0); /* without the mem */
  kiln_cache_free(&cache, a, 100);
  kiln_cache_free(&cache, b, 97);
  kiln_cache_deinit(&cache);
  assert_int_equal(kiln_mem_bytes(mem), 0);
  kiln_mem_release(mem);
}

static void caches_keep_only_so_much(void **state) {
  (void)state;
  kiln_mem *mem = make(KILN_MEM_DEFAULT);
  kiln_cache cache;
  kiln_cache_init(&cache, mem, 10000);
  void *blocks[100];
  for (int i = 0; i < 100; i++) blocks[i] = kiln_cache_alloc(&cache, 1000);
  for (int i = 0; i < 100; i++) kiln_cache_free(&cache, blocks[i], 1000);
  assert_true(cache.bytes <= 10000);
  assert_int_equal(kiln_mem_bytes(mem), cache.bytes);
  kiln_cache_trim(&cache);
  assert_int_equal(kiln_mem_bytes(mem), 0);
  kiln_cache_deinit(&cache);
  kiln_mem_release(mem);
}

static void caches_of_one_mem_share_blocks(void **state) {
  (void)state;
  kiln_mem *mem = make(KILN_MEM_DEFAULT);
  kiln_cache one, other;
  kiln_cache_init(&one, mem, 1 << 20);
  kiln_cache_init(&other, mem, 1 << 20);
  static const size_t sizes[] = {0, 1, 16, 65, 4000, 100000, 3000000};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    void *a = kiln_cache_alloc(&one, sizes[i]), *b = kiln_cache_alloc(&one, sizes[i]);
    assert_non_null(a);
    memset(a, 1, sizes[i]);
    kiln_cache_free(&other, a, sizes[i]);
    kiln_cache_free_mem(mem, b, sizes[i]);
    kiln_cache_free(&other, kiln_cache_alloc(&other, sizes[i]), sizes[i]);
  }
  kiln_cache_free(&one, NULL, 10);
  kiln_cache_deinit(&one);
  kiln_cache_deinit(&other);
  kiln_cache_deinit(&other); /* twice is fine */
  assert_int_equal(kiln_mem_bytes(mem), 0);
  kiln_mem_release(mem);
}

static void caches_give_way_to_the_limit(void **state) {
  (void)state;
  kiln_mem *mem = make(KILN_MEM_DEFAULT);
  kiln_cache cache;
  kiln_cache_init(&cache, mem, 1 << 20);
  kiln_mem_set_limit(mem, 100000);
  void *block = kiln_cache_alloc(&cache, 80000);
  kiln_cache_free(&cache, block, 80000);
  block = kiln_cache_alloc(&cache, 40000); /* another class: what is kept must go */
  assert_non_null(block);
  assert_null(kiln_cache_alloc(&cache, 90000));
  kiln_cache_free(&cache, block, 40000);
  kiln_cache_deinit(&cache);
  kiln_mem_release(mem);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(blocks_are_aligned_and_counted),
      cmocka_unit_test(zeroed_blocks_are_zero_when_reused),
      cmocka_unit_test(fresh_blocks_count_as_unwritten),
      cmocka_unit_test(large_blocks_are_kept_by_class),
      cmocka_unit_test(realloc_keeps_contents),
      cmocka_unit_test(limit_refuses_without_counting),
      cmocka_unit_test(counts_are_exact),
      cmocka_unit_test(impossible_sizes_are_refused),
      cmocka_unit_test(nth_request_fails_and_only_that),
      cmocka_unit_test(outlives_its_first_owner),
      cmocka_unit_test(many_contexts_at_once),
      cmocka_unit_test(classes_cover_their_sizes),
      cmocka_unit_test(caches_reuse_blocks_last_first),
      cmocka_unit_test(caches_keep_only_so_much),
      cmocka_unit_test(caches_of_one_mem_share_blocks),
      cmocka_unit_test(caches_give_way_to_the_limit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
