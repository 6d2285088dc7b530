/* value_dict.c: dictionaries with Python's order and equality.
 *
 * Entries stand in order of insertion; an open-addressing table of entry numbers finds them, as in
 * CPython since 3.6. A removed entry stays, dead, until the table grows, but leaves the index at
 * once, as in base/map.c. Numbers that are equal hash alike whatever their kind: 1, 1.0, True and
 * 1+0j are one key. */
#include "runtime/block.h"
#include "runtime/value.h"

enum { MIN_SLOTS = 8 };

static uint64_t hash_number(uint64_t seed, double f) {
  if (f >= -0x1p63 && f < 0x1p63 && (double)(int64_t)f == f) {
    return kiln_hash_id(seed, (uint64_t)(int64_t)f);
  }
  uint64_t bits;
  memcpy(&bits, &f, sizeof bits);
  return kiln_hash_id(seed, ~bits);
}

/* False for what cannot be a key. */
static bool hash_key(uint64_t seed, kiln_ivalue v, uint64_t *out) {
  switch ((kiln_tag)v.tag) {
    case KILN_TAG_INT: *out = kiln_hash_id(seed, (uint64_t)v.u.i); return true;
    case KILN_TAG_BOOL: *out = kiln_hash_id(seed, (uint64_t)v.u.b); return true;
    case KILN_TAG_FLOAT: *out = hash_number(seed, v.u.f); return true;
    case KILN_TAG_COMPLEX: {
      *out = hash_number(seed, v.u.complex->re);
      if (v.u.complex->im != 0) *out = kiln_hash_mix(*out, hash_number(seed, v.u.complex->im));
      return true;
    }
    case KILN_TAG_STRING:
      *out = kiln_hash_bytes(seed, v.u.string->data, v.u.string->len);
      return true;
    case KILN_TAG_DEVICE:
      *out = kiln_hash_id(seed, (uint64_t)(v.u.device.kind * 65536 + v.u.device.index));
      return true;
    case KILN_TAG_TENSOR: *out = kiln_hash_id(seed, (uint64_t)(uintptr_t)v.u.tensor); return true;
    default: return false;
  }
}

kiln_status *kiln_dict_create(kiln_mem *mem, const kiln_type *key_type, const kiln_type *value_type,
                              kiln_dict **out) {
  kiln_dict *dict = kiln_cache_alloc_mem(mem, sizeof *dict);
  if (!dict) return kiln_status_oom();
  *dict = (kiln_dict){.box = {.refs = 1, .tag = KILN_TAG_DICT, .mem = mem},
                      .key_type = key_type,
                      .value_type = value_type,
                      .seed = kiln_mem_hash_seed(mem)};
  *out = dict;
  return NULL;
}

static void add_slot(int32_t *slots, int64_t slot_count, uint64_t hash, int64_t entry) {
  uint64_t mask = (uint64_t)slot_count - 1, i = hash & mask;
  while (slots[i]) i = (i + 1) & mask;
  slots[i] = (int32_t)(entry + 1);
}

/* New tables with room for one more entry, without the dead ones. Nothing changes on failure. */
static kiln_status *grow(kiln_dict *dict) {
  kiln_mem *mem = dict->box.mem;
  int64_t slot_count = MIN_SLOTS;
  while (slot_count / 2 <= dict->live) slot_count *= 2;
  int64_t capacity = slot_count / 2 + slot_count / 4; /* at most 3/4 full */
  if (capacity >= INT32_MAX) return kiln_status_oom();
  size_t entry_bytes = (size_t)capacity * sizeof *dict->entries;
  size_t slot_bytes = (size_t)slot_count * sizeof *dict->slots;
  kiln_dict_entry *entries = kiln_cache_alloc_mem(mem, entry_bytes);
  if (!entries) return kiln_status_oom();
  int32_t *slots = kiln_cache_alloc_mem(mem, slot_bytes);
  if (!slots) {
    kiln_cache_free_mem(mem, entries, entry_bytes);
    return kiln_status_oom();
  }
  memset(slots, 0, slot_bytes);
  int64_t count = 0;
  for (int64_t i = 0; i < dict->count; i++) {
    if (!dict->entries[i].live) continue;
    entries[count] = dict->entries[i];
    add_slot(slots, slot_count, entries[count].hash, count);
    count++;
  }
  if (dict->entries) {
    kiln_cache_free_mem(mem, dict->entries, (size_t)dict->capacity * sizeof *entries);
    kiln_cache_free_mem(mem, dict->slots, (size_t)dict->slot_count * sizeof *slots);
  }
  dict->entries = entries;
  dict->slots = slots;
  dict->count = count;
  dict->capacity = capacity;
  dict->slot_count = slot_count;
  return NULL;
}

/* The slot of a key, or -1. */
static int64_t find_slot(const kiln_dict *dict, kiln_ivalue key, uint64_t hash) {
  if (dict->live == 0) return -1;
  uint64_t mask = (uint64_t)dict->slot_count - 1;
  for (uint64_t i = hash & mask; dict->slots[i]; i = (i + 1) & mask) {
    const kiln_dict_entry *entry = &dict->entries[dict->slots[i] - 1];
    if (entry->hash == hash && kiln_ivalue_equal(entry->key, key)) return (int64_t)i;
  }
  return -1;
}

static kiln_dict_entry *find_entry(const kiln_dict *dict, kiln_ivalue key, uint64_t hash) {
  int64_t slot = find_slot(dict, key, hash);
  return slot < 0 ? NULL : &dict->entries[dict->slots[slot] - 1];
}

/* Empties a slot; what stands behind it in the probe sequence moves up. */
static void close_slot(kiln_dict *dict, uint64_t hole) {
  uint64_t mask = (uint64_t)dict->slot_count - 1;
  for (uint64_t i = (hole + 1) & mask; dict->slots[i]; i = (i + 1) & mask) {
    uint64_t home = dict->entries[dict->slots[i] - 1].hash;
    if (((i - home) & mask) < ((i - hole) & mask)) continue; /* its search starts behind */
    dict->slots[hole] = dict->slots[i];
    hole = i;
  }
  dict->slots[hole] = 0;
}

kiln_status *kiln_dict_set(kiln_dict *dict, kiln_ivalue key, kiln_ivalue value) {
  kiln_status *status = NULL;
  uint64_t hash;
  if (!hash_key(dict->seed, key, &hash)) {
    status = KILN_ERROR(KILN_INVALID_ARGUMENT,
                        "a dict key must be an int, float, bool, complex, str, device or Tensor");
  }
  kiln_dict_entry *entry = status ? NULL : find_entry(dict, key, hash);
  if (entry) {
    kiln_ivalue old = entry->value;
    entry->value = value;
    kiln_ivalue_release(old);
    kiln_ivalue_release(key);
    return NULL;
  }
  if (!status && dict->count == dict->capacity) status = grow(dict);
  if (status) {
    kiln_ivalue_release(key);
    kiln_ivalue_release(value);
    return status;
  }
  add_slot(dict->slots, dict->slot_count, hash, dict->count);
  dict->entries[dict->count++] = (kiln_dict_entry){hash, key, value, true};
  dict->live++;
  return NULL;
}

kiln_ivalue *kiln_dict_find(const kiln_dict *dict, kiln_ivalue key) {
  uint64_t hash;
  if (!hash_key(dict->seed, key, &hash)) return NULL;
  kiln_dict_entry *entry = find_entry(dict, key, hash);
  return entry ? &entry->value : NULL;
}

bool kiln_dict_remove(kiln_dict *dict, kiln_ivalue key) {
  uint64_t hash;
  int64_t slot = hash_key(dict->seed, key, &hash) ? find_slot(dict, key, hash) : -1;
  if (slot < 0) return false;
  kiln_dict_entry *entry = &dict->entries[dict->slots[slot] - 1];
  close_slot(dict, (uint64_t)slot);
  kiln_ivalue old_key = entry->key, old_value = entry->value;
  entry->live = false;
  dict->live--;
  kiln_ivalue_release(old_key);
  kiln_ivalue_release(old_value);
  return true;
}

void kiln_dict_clear(kiln_dict *dict) {
  for (int64_t i = 0; i < dict->count; i++) {
    if (!dict->entries[i].live) continue;
    dict->entries[i].live = false;
    kiln_ivalue_release(dict->entries[i].key);
    kiln_ivalue_release(dict->entries[i].value);
  }
  if (dict->slots) memset(dict->slots, 0, (size_t)dict->slot_count * sizeof *dict->slots);
  dict->count = dict->live = 0;
}

bool kiln_dict_next(const kiln_dict *dict, int64_t *index, kiln_ivalue **out_key,
                    kiln_ivalue **out_value) {
  for (int64_t i = *index; i < dict->count; i++) {
    if (!dict->entries[i].live) continue;
    *out_key = &dict->entries[i].key;
    *out_value = &dict->entries[i].value;
    *index = i + 1;
    return true;
  }
  return false;
}
