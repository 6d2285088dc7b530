/* map_test.c: maps and vectors against the plain way of doing it. */
#include "test/unit/sweep.h"

static kiln_status *string_keys(kiln_arena *arena, void *arg) {
  (void)arg;
  kiln_map map = kiln_map_in(arena);
  KILN_CHECK(!kiln_map_find(&map, KILN_STR("absent")));
  KILN_CHECK(!kiln_map_remove(&map, KILN_STR("absent")));
  static int values[500];
  for (int i = 0; i < 500; i++)
    kiln_map_set(&map, kiln_str_from(kiln_arena_printf(arena, "key%d", i)), &values[i]);
  KILN_CHECK(map.count == 500);
  for (int i = 0; i < 500; i++) {
    char key[16];
    snprintf(key, sizeof key, "key%d", i);
    KILN_CHECK(kiln_map_find(&map, kiln_str_from(key)) == &values[i]);
    KILN_CHECK(map.entries[i].value == &values[i]); /* in order of insertion */
    KILN_CHECK(kiln_str_is(map.entries[i].key, key));
  }
  kiln_map_set(&map, KILN_STR("key7"), &values[8]);
  KILN_CHECK(map.count == 500 && kiln_map_find(&map, KILN_STR("key7")) == &values[8]);
  KILN_CHECK(!kiln_map_find(&map, KILN_STR("key")));
  KILN_CHECK(!kiln_map_find(&map, KILN_STR("")));
  kiln_map_set(&map, KILN_STR(""), &values[0]);
  KILN_CHECK(kiln_map_find(&map, (kiln_str){0}) == &values[0]);
  kiln_map_clear(&map);
  KILN_CHECK(map.count == 0 && !kiln_map_find(&map, KILN_STR("key7")));
  kiln_map_set(&map, KILN_STR("again"), &values[1]);
  KILN_CHECK(kiln_map_find(&map, KILN_STR("again")) == &values[1]);
  return NULL;
}

/* A large map, cleared again and again with little in it, some of it removed. */
static kiln_status *cleared_often(kiln_arena *arena, void *arg) {
  (void)arg;
  kiln_map map = kiln_map_in(arena);
  static int value;
  for (uint64_t id = 0; id < 3000; id++) kiln_map_set_id(&map, id, &value);
  for (uint64_t round = 0; round < 200; round++) {
    kiln_map_clear(&map);
    for (uint64_t id = 0; id < 3000; id++) KILN_CHECK(round % 50 || !kiln_map_find_id(&map, id));
    for (uint64_t id = round; id < 2 * round; id++) kiln_map_set_id(&map, id, &value);
    for (uint64_t id = round; id < 2 * round; id += 3) {
      KILN_CHECK(kiln_map_remove_id(&map, id) && !kiln_map_find_id(&map, id));
    }
    KILN_CHECK(map.count == (int)round);
  }
  kiln_map_clear(&map);
  for (int32_t slot = 0; slot < map.slot_count; slot++) KILN_CHECK(map.slots[slot].entry == 0);
  return NULL;
}

/* Each time it costs what is in it, not what once was: 80 GB would be emptied here. */
static kiln_status *cleared_in_no_time(void *arg) {
  kiln_map map = kiln_map_in(arg);
  static int value;
  for (uint64_t id = 0; id < 400000; id++) kiln_map_set_id(&map, id, &value);
  kiln_map_clear(&map);
  const uint64_t begin = kiln_now_ns();
  for (uint64_t round = 0; round < 20000; round++) {
    kiln_map_set_id(&map, round, &value);
    kiln_map_clear(&map);
  }
  KILN_CHECK(kiln_now_ns() - begin < 3000000000u);
  return NULL;
}

/* Random sets and removals of 200 ids beside an array that says what must be there. */
static kiln_status *random_ids(kiln_arena *arena, void *arg) {
  (void)arg;
  kiln_map map = kiln_map_in(arena);
  static int values[200];
  void *expected[200] = {0};
  uint32_t random = 1;
  for (int step = 0; step < 20000; step++) {
    random = random * 1664525u + 1013904223u;
    uint32_t id = (random >> 8) % 200;
    if (random >> 31) {
      kiln_map_set_id(&map, id, &values[random % 199]);
      expected[id] = &values[random % 199];
    } else {
      KILN_CHECK(kiln_map_remove_id(&map, id) == (expected[id] != NULL));
      expected[id] = NULL;
    }
    id = (random >> 16) % 200;
    KILN_CHECK(kiln_map_find_id(&map, id) == expected[id]);
  }
  int live = 0, wanted = 0;
  for (int i = 0; i < map.count; i++) live += map.entries[i].value != NULL;
  for (int i = 0; i < 200; i++) wanted += expected[i] != NULL;
  KILN_CHECK(live == wanted);
  KILN_CHECK(map.capacity <= 2048); /* removed entries are dropped again */
  kiln_map_set_ptr(&map, &map, expected);
  KILN_CHECK(kiln_map_find_ptr(&map, &map) == expected);
  KILN_CHECK(kiln_map_remove_ptr(&map, &map) && !kiln_map_find_ptr(&map, &map));
  return NULL;
}

static kiln_status *removed_entries_show_as_null(kiln_arena *arena, void *arg) {
  (void)arg;
  int value;
  kiln_map map = kiln_map_in(arena);
  kiln_map_set_id(&map, 1, &value);
  kiln_map_set_id(&map, 2, &value);
  kiln_map_remove_id(&map, 1);
  KILN_CHECK(map.count == 2 && !map.entries[0].value && map.entries[1].id == 2);
  kiln_map_set_id(&map, 1, &value); /* comes last now */
  KILN_CHECK(map.count == 3 && map.entries[2].id == 1);
  return NULL;
}

static kiln_status *vectors(kiln_arena *arena, void *arg) {
  (void)arg;
  KILN_VEC(int64_t) v = {0};
  for (int i = 0; i < 1000; i++) kiln_vec_push(arena, &v, i * 3);
  KILN_CHECK(v.count == 1000 && v.capacity >= 1000 && v.capacity <= 2000);
  for (int i = 0; i < 1000; i++) KILN_CHECK(v.data[i] == i * 3);
  KILN_CHECK(kiln_vec_last(&v) == 2997 && kiln_vec_pop(&v) == 2997 && v.count == 999);
  kiln_vec_reserve(arena, &v, 5000);
  KILN_CHECK(v.capacity >= 5000 && v.count == 999 && v.data[998] == 2994);
  int64_t *data = v.data;
  kiln_vec_reserve(arena, &v, 4000);
  KILN_CHECK(v.data == data);
  kiln_vec_clear(&v);
  KILN_CHECK(v.count == 0);
  struct pair {
    char a;
    double b;
  };
  KILN_VEC(struct pair) pairs = {0};
  kiln_vec_push(arena, &pairs, (struct pair){'x', 0.5});
  KILN_CHECK(pairs.data[0].a == 'x' && pairs.data[0].b == 0.5);
  return NULL;
}

static void keeps_strings_in_order(void **state) { (void)state, sweep_arena(string_keys, NULL); }
static void agrees_with_an_array(void **state) { (void)state, sweep_arena(random_ids, NULL); }
static void is_cleared_often(void **state) { (void)state, sweep_arena(cleared_often, NULL); }
static void costs_what_is_in_it(void **state) {
  (void)state;
  kiln_mem *mem = NULL;
  kiln_arena *arena = NULL;
  assert_ok(kiln_mem_create(KILN_MEM_DEFAULT, &mem));
  assert_ok(kiln_arena_create(mem, &arena));
  assert_ok(cleared_in_no_time(arena));
  kiln_arena_destroy(arena);
  kiln_mem_release(mem);
}
static void shows_removals(void **state) {
  (void)state;
  sweep_arena(removed_entries_show_as_null, NULL);
}
static void vectors_grow(void **state) { (void)state, sweep_arena(vectors, NULL); }

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(keeps_strings_in_order), cmocka_unit_test(agrees_with_an_array),
      cmocka_unit_test(is_cleared_often),       cmocka_unit_test(costs_what_is_in_it),
      cmocka_unit_test(shows_removals),         cmocka_unit_test(vectors_grow),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
