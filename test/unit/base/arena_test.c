/* arena_test.c: allocation, reset, and what cannot be had. */
#include "base/sanitize.h"
#include "test/unit/sweep.h"

typedef struct fixture {
  kiln_mem *mem;
  kiln_arena *arena;
} fixture;

static int set_up(void **state) {
  static fixture f;
  assert_ok(kiln_mem_create(KILN_MEM_DEFAULT, &f.mem));
  assert_ok(kiln_arena_create(f.mem, &f.arena));
  *state = &f;
  return 0;
}

static int tear_down(void **state) {
  fixture *f = *state;
  kiln_arena_destroy(f->arena);
  assert_int_equal(kiln_mem_bytes(f->mem), 0);
  kiln_mem_release(f->mem);
  return 0;
}

static void pieces_are_zeroed_aligned_and_apart(void **state) {
  fixture *f = *state;
  unsigned char *pieces[300];
  for (size_t i = 0; i < 300; i++) {
    size_t align = (size_t)1 << (i % 7);
    pieces[i] = kiln_arena_alloc_aligned(f->arena, i * 13, align);
    assert_int_equal((uintptr_t)pieces[i] % align, 0);
    for (size_t k = 0; k < i * 13; k++) assert_int_equal(pieces[i][k], 0);
    memset(pieces[i], (int)i & 255, i * 13);
  }
  for (size_t i = 0; i < 300; i++) {
    for (size_t k = 0; k < i * 13; k++) assert_int_equal(pieces[i][k], i & 255);
  }
  assert_int_equal((uintptr_t)kiln_arena_alloc(f->arena, 1) % 16, 0);
  assert_true(kiln_arena_bytes(f->arena) >= 13 * 299 * 150);
  assert_ptr_equal(kiln_arena_mem(f->arena), f->mem);
}

static void large_pieces_get_a_block(void **state) {
  fixture *f = *state;
  char *small = kiln_arena_alloc(f->arena, 8);
  char *large = kiln_arena_alloc(f->arena, 3000000);
  memset(large, 1, 3000000);
  assert_int_equal(small[7], 0);
}

static void text_is_copied_and_terminated(void **state) {
  fixture *f = *state;
  assert_string_equal(kiln_arena_strdup(f->arena, "kiln"), "kiln");
  assert_string_equal(kiln_arena_str(f->arena, kiln_str_make("kiln", 2)).data, "ki");
  assert_string_equal(kiln_arena_printf(f->arena, "%d-%s", 7, "x"), "7-x");
  assert_int_equal(strlen(kiln_arena_printf(f->arena, "%09000d", 1)), 9000);
  assert_memory_equal(kiln_arena_copy(f->arena, "a\0b", 3), "a\0b", 3);
}

static void reset_keeps_the_blocks(void **state) {
  fixture *f = *state;
  for (int i = 0; i < 100; i++) memset(kiln_arena_alloc(f->arena, 1000), 255, 1000);
  size_t held = kiln_mem_bytes(f->mem);
  for (int round = 0; round < 5; round++) {
    kiln_arena_reset(f->arena);
    assert_int_equal(kiln_arena_bytes(f->arena), 0);
    for (int i = 0; i < 100; i++) {
      char *piece = kiln_arena_alloc(f->arena, 1000);
      for (int k = 0; k < 1000; k++) assert_int_equal(piece[k], 0);
      memset(piece, 255, 1000);
    }
    assert_int_equal(kiln_mem_bytes(f->mem), held);
  }
}

/* -- What cannot be had -- */

static kiln_status *allocate_too_much(kiln_arena *arena) {
  kiln_arena_alloc(arena, PTRDIFF_MAX);
  return KILN_ERROR(KILN_INTERNAL, "unreachable");
}
static kiln_status *try_too_much(kiln_arena *arena) { KILN_PROTECT(allocate_too_much(arena)); }

static kiln_status *allocate_overflow(kiln_arena *arena) {
  volatile int count = INT32_MAX;
  volatile size_t size = SIZE_MAX / 1000;
  kiln_arena_alloc_array(arena, size, (size_t)count);
  return KILN_ERROR(KILN_INTERNAL, "unreachable");
}
static kiln_status *try_overflow(kiln_arena *arena) { KILN_PROTECT(allocate_overflow(arena)); }

static void impossible_sizes_are_out_of_memory(void **state) {
  fixture *f = *state;
  assert_error(try_too_much(f->arena), KILN_OUT_OF_MEMORY, NULL);
  assert_error(try_overflow(f->arena), KILN_OUT_OF_MEMORY, NULL);
  kiln_arena_alloc(f->arena, 10); /* still good */
}

/* -- The failing allocator -- */

static kiln_status *uses_everything(kiln_arena *arena, void *arg) {
  (void)arg;
  for (size_t i = 1; i < 40; i++) kiln_arena_alloc(arena, i * 500);
  kiln_arena *other = kiln_arena_scoped(kiln_arena_mem(arena));
  kiln_arena_alloc(other, 100000);
  kiln_arena_printf(other, "%05000d", 1);
  kiln_arena_destroy(other);
  kiln_arena_alloc(kiln_arena_scoped(kiln_arena_mem(arena)), 100000); /* left to the scope */
  kiln_arena_reset(arena);
  kiln_arena_alloc(arena, 200000);
  return NULL;
}

static void survives_a_failing_allocator(void **state) {
  (void)state;
  sweep_arena(uses_everything, NULL);
}

static void free_space_is_poisoned(void **state) {
  fixture *f = *state;
  char *piece = kiln_arena_alloc(f->arena, 20);
#if KILN_ASAN
  assert_false(__asan_address_is_poisoned(piece + 19));
  assert_true(__asan_address_is_poisoned(piece + 20));
  kiln_arena_reset(f->arena);
  assert_true(__asan_address_is_poisoned(piece));
#else
  (void)piece;
  skip();
#endif
}

int main(void) {
#define WITH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      WITH(pieces_are_zeroed_aligned_and_apart),
      WITH(large_pieces_get_a_block),
      WITH(text_is_copied_and_terminated),
      WITH(reset_keeps_the_blocks),
      WITH(impossible_sizes_are_out_of_memory),
      WITH(free_space_is_poisoned),
      cmocka_unit_test(survives_a_failing_allocator),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
