/* map.h: insertion-ordered hash maps in an arena, keyed by string view, pointer or integer.
 *
 * Values are pointers. Keys are borrowed: they must outlive the map (intern them in its arena).
 * Iterate with `for (int i = 0; i < map.count; i++) map.entries[i]...`; a removed entry has
 * value NULL, and NULL values cannot be stored. */
#pragma once

#include "base/arena.h"
#include "base/str.h"

typedef struct kiln_map_entry {
  kiln_str key; /* string maps */
  uint64_t id;  /* hash of a string key, or the integer or pointer itself */
  void *value;
} kiln_map_entry;

typedef struct kiln_map_slot {
  int32_t entry; /* its index + 1; 0: empty */
  uint32_t hash; /* of its key */
} kiln_map_slot;

typedef struct kiln_map {
  kiln_arena *arena; /* borrowed */
  kiln_map_entry *entries;
  int count, capacity;  /* entries in order of insertion, removed ones included */
  kiln_map_slot *slots; /* open addressing */
  int slot_count;
  uint64_t seed; /* of the arena's memory */
} kiln_map;

kiln_map kiln_map_in(kiln_arena *arena);
void kiln_map_clear(kiln_map *map);

/* find: NULL when absent. set: replaces. remove: true when it was there. */
void *kiln_map_find(const kiln_map *map, kiln_str key);
void kiln_map_set(kiln_map *map, kiln_str key, void *value);
bool kiln_map_remove(kiln_map *map, kiln_str key);

void *kiln_map_find_id(const kiln_map *map, uint64_t id);
void kiln_map_set_id(kiln_map *map, uint64_t id, void *value);
bool kiln_map_remove_id(kiln_map *map, uint64_t id);

#define kiln_map_find_ptr(map, key) kiln_map_find_id((map), (uint64_t)(uintptr_t)(key))
#define kiln_map_set_ptr(map, key, value) \
  kiln_map_set_id((map), (uint64_t)(uintptr_t)(key), (value))
#define kiln_map_remove_ptr(map, key) kiln_map_remove_id((map), (uint64_t)(uintptr_t)(key))
