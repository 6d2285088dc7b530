/* map.c: hash maps with linear probing over an index, entries in order of insertion.
 *
 * A removed entry keeps its place among the entries until the index is built anew, but leaves the
 * index at once: what stands behind it in the probe sequence moves up (Knuth 6.4, algorithm R).
 * With tombstones, a key that is set and removed again and again would be searched behind all its
 * former selves. */
#include "base/map.h"

#include <limits.h>

#include "base/hash.h"

kiln_map kiln_map_in(kiln_arena *arena) {
  return (kiln_map){.arena = arena, .seed = kiln_mem_hash_seed(kiln_arena_mem(arena))};
}

/* Where probing starts. */
static int first_slot(const kiln_map *map, uint64_t id) {
  return (int)(kiln_hash_id(map->seed, id) & (uint64_t)(map->slot_count - 1));
}

/* In proportion to what is in it: a map that was large once may be cleared often. */
void kiln_map_clear(kiln_map *map) {
  int mask = map->slot_count - 1;
  bool few = map->count < map->slot_count / 16;
  for (int i = 0; few && i < map->count; i++) {
    if (!map->entries[i].value) continue;
    int slot = first_slot(map, map->entries[i].id);
    while (map->slots[slot] != i + 1) slot = (slot + 1) & mask;
    map->slots[slot] = 0;
  }
  if (!few && map->slot_count) memset(map->slots, 0, sizeof *map->slots * (size_t)map->slot_count);
  map->count = 0;
}

/* The slot of a key (is_text: `key` counts too), or -1. */
static int find_slot(const kiln_map *map, uint64_t id, bool is_text, kiln_str key) {
  if (map->slot_count == 0) return -1;
  int mask = map->slot_count - 1;
  for (int slot = first_slot(map, id); map->slots[slot]; slot = (slot + 1) & mask) {
    const kiln_map_entry *entry = &map->entries[map->slots[slot] - 1];
    if (entry->id == id && (!is_text || kiln_str_equal(entry->key, key))) return slot;
  }
  return -1;
}

static kiln_map_entry *find_entry(const kiln_map *map, uint64_t id, bool is_text, kiln_str key) {
  int slot = find_slot(map, id, is_text, key);
  return slot < 0 ? NULL : &map->entries[map->slots[slot] - 1];
}

static void put_slot(kiln_map *map, int index) {
  int mask = map->slot_count - 1;
  int slot = first_slot(map, map->entries[index].id);
  while (map->slots[slot]) slot = (slot + 1) & mask;
  map->slots[slot] = index + 1;
}

/* Drops removed entries, makes room for one more, and builds the index anew where it is needed. */
static void make_room(kiln_map *map) {
  int live = 0;
  for (int i = 0; i < map->count; i++) {
    if (map->entries[i].value) map->entries[live++] = map->entries[i];
  }
  map->count = live;
  if (live >= map->capacity - map->capacity / 4) {
    /* An index of 2^30 slots is the most that int can count; beyond it is out of memory. */
    size_t capacity = map->capacity ? (size_t)map->capacity * 2 : 6;
    if (capacity > INT_MAX / 4) kiln_scope_oom();
    kiln_map_entry *entries = kiln_arena_alloc_array(map->arena, sizeof *entries, capacity);
    int slot_count = 8;
    while ((size_t)slot_count * 3 < capacity * 4) slot_count *= 2;
    int32_t *slots = kiln_arena_alloc_array(map->arena, sizeof *slots, (size_t)slot_count);
    if (live) memcpy(entries, map->entries, sizeof *entries * (size_t)live);
    map->entries = entries;
    map->capacity = (int)capacity;
    map->slots = slots;
    map->slot_count = slot_count;
  } else {
    memset(map->slots, 0, sizeof *map->slots * (size_t)map->slot_count);
  }
  for (int i = 0; i < live; i++) put_slot(map, i);
}

static void set_entry(kiln_map *map, uint64_t id, bool is_text, kiln_str key, void *value) {
  KILN_ASSERT(value);
  kiln_map_entry *entry = find_entry(map, id, is_text, key);
  if (entry) {
    entry->value = value;
    return;
  }
  if (map->count == map->capacity) make_room(map);
  map->entries[map->count] = (kiln_map_entry){.key = key, .id = id, .value = value};
  put_slot(map, map->count++);
}

static bool remove_entry(kiln_map *map, uint64_t id, bool is_text, kiln_str key) {
  int hole = find_slot(map, id, is_text, key);
  if (hole < 0) return false;
  map->entries[map->slots[hole] - 1].value = NULL;
  int mask = map->slot_count - 1;
  for (int slot = (hole + 1) & mask; map->slots[slot]; slot = (slot + 1) & mask) {
    int home = first_slot(map, map->entries[map->slots[slot] - 1].id);
    if (((slot - home) & mask) < ((slot - hole) & mask)) continue; /* its search starts behind */
    map->slots[hole] = map->slots[slot];
    hole = slot;
  }
  map->slots[hole] = 0;
  return true;
}

/* -- Keyed by text -- */

static uint64_t hash_key(const kiln_map *map, kiln_str key) {
  return kiln_hash_bytes(map->seed, key.data, key.len);
}

void *kiln_map_find(const kiln_map *map, kiln_str key) {
  kiln_map_entry *entry = find_entry(map, hash_key(map, key), true, key);
  return entry ? entry->value : NULL;
}

void kiln_map_set(kiln_map *map, kiln_str key, void *value) {
  set_entry(map, hash_key(map, key), true, key, value);
}

bool kiln_map_remove(kiln_map *map, kiln_str key) {
  return remove_entry(map, hash_key(map, key), true, key);
}

/* -- Keyed by integers and pointers -- */

void *kiln_map_find_id(const kiln_map *map, uint64_t id) {
  kiln_map_entry *entry = find_entry(map, id, false, (kiln_str){0});
  return entry ? entry->value : NULL;
}

void kiln_map_set_id(kiln_map *map, uint64_t id, void *value) {
  set_entry(map, id, false, (kiln_str){0}, value);
}

bool kiln_map_remove_id(kiln_map *map, uint64_t id) {
  return remove_entry(map, id, false, (kiln_str){0});
}
