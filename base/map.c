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

/* Its lowest bits say where probing starts, all of it which entries are worth a look. */
static uint32_t hash_of(const kiln_map *map, uint64_t id) {
  return (uint32_t)kiln_hash_id(map->seed, id);
}

/* In proportion to what is in it: a map that was large once may be cleared often. */
void kiln_map_clear(kiln_map *map) {
  const uint32_t mask = (uint32_t)map->slot_count - 1;
  bool few = map->count < map->slot_count / 16;
  for (int i = 0; few && i < map->count; i++) {
    if (!map->entries[i].value) continue;
    uint32_t slot = hash_of(map, map->entries[i].id) & mask;
    while (map->slots[slot].entry != i + 1) slot = (slot + 1) & mask;
    map->slots[slot].entry = 0;
  }
  if (!few && map->slot_count) memset(map->slots, 0, sizeof *map->slots * (size_t)map->slot_count);
  map->count = 0;
}

/* The slot of a key (is_text: `key` counts too), or the empty one where its search ends. There are
 * slots. */
static kiln_map_slot *find_slot(const kiln_map *map, uint32_t hash, uint64_t id, bool is_text,
                                kiln_str key) {
  const uint32_t mask = (uint32_t)map->slot_count - 1;
  for (uint32_t at = hash & mask;; at = (at + 1) & mask) {
    kiln_map_slot *slot = &map->slots[at];
    if (!slot->entry) return slot;
    if (slot->hash != hash) continue;
    const kiln_map_entry *entry = &map->entries[slot->entry - 1];
    if (entry->id == id && (!is_text || kiln_str_equal(entry->key, key))) return slot;
  }
}

static kiln_map_entry *find_entry(const kiln_map *map, uint64_t id, bool is_text, kiln_str key) {
  if (map->slot_count == 0) return NULL;
  const kiln_map_slot *slot = find_slot(map, hash_of(map, id), id, is_text, key);
  return slot->entry ? &map->entries[slot->entry - 1] : NULL;
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
    kiln_map_slot *slots = kiln_arena_alloc_array(map->arena, sizeof *slots, (size_t)slot_count);
    if (live) memcpy(entries, map->entries, sizeof *entries * (size_t)live);
    map->entries = entries;
    map->capacity = (int)capacity;
    map->slots = slots;
    map->slot_count = slot_count;
  } else {
    memset(map->slots, 0, sizeof *map->slots * (size_t)map->slot_count);
  }
  const uint32_t mask = (uint32_t)map->slot_count - 1;
  for (int i = 0; i < live; i++) {
    const uint32_t hash = hash_of(map, map->entries[i].id);
    uint32_t at = hash & mask;
    while (map->slots[at].entry) at = (at + 1) & mask;
    map->slots[at] = (kiln_map_slot){.entry = i + 1, .hash = hash};
  }
}

static void set_entry(kiln_map *map, uint64_t id, bool is_text, kiln_str key, void *value) {
  KILN_ASSERT(value);
  const uint32_t hash = hash_of(map, id);
  kiln_map_slot *slot = map->slot_count ? find_slot(map, hash, id, is_text, key) : NULL;
  if (slot && slot->entry) {
    map->entries[slot->entry - 1].value = value;
    return;
  }
  if (map->count == map->capacity) {
    make_room(map);
    slot = find_slot(map, hash, id, is_text, key);
  }
  map->entries[map->count] = (kiln_map_entry){.key = key, .id = id, .value = value};
  *slot = (kiln_map_slot){.entry = ++map->count, .hash = hash};
}

static bool remove_entry(kiln_map *map, uint64_t id, bool is_text, kiln_str key) {
  if (map->slot_count == 0) return false;
  kiln_map_slot *found = find_slot(map, hash_of(map, id), id, is_text, key);
  if (!found->entry) return false;
  map->entries[found->entry - 1].value = NULL;
  const uint32_t mask = (uint32_t)map->slot_count - 1;
  uint32_t hole = (uint32_t)(found - map->slots);
  for (uint32_t at = (hole + 1) & mask; map->slots[at].entry; at = (at + 1) & mask) {
    const uint32_t home = map->slots[at].hash & mask;
    if (((at - home) & mask) < ((at - hole) & mask)) continue; /* its search starts behind */
    map->slots[hole] = map->slots[at];
    hole = at;
  }
  map->slots[hole].entry = 0;
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
