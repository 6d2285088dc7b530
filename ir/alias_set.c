/* alias_set.c: small sorted sets of locations. Most hold one or two; a list that is filled in a
 * long unrolled loop has thousands, added in ascending order, which is appending. */
#include "ir/alias_internal.h"

/* The first index whose item is not below `loc`. */
static int lower_bound(const loc_set *set, int loc) {
  int low = 0, high = set->count;
  while (low < high) {
    int mid = low + (high - low) / 2;
    if (set->items[mid] < loc)
      low = mid + 1;
    else
      high = mid;
  }
  return low;
}

bool kiln__locs_has(const loc_set *set, int loc) {
  int at = lower_bound(set, loc);
  return at < set->count && set->items[at] == loc;
}

bool kiln__locs_add(kiln_arena *arena, loc_set *set, int loc) {
  int at = lower_bound(set, loc);
  if (at < set->count && set->items[at] == loc) return false;
  int *items = set->items;
  if (set->count == set->capacity || set->capacity == 0 || (set->lent && at < set->count)) {
    const int capacity = set->capacity > set->count ? set->capacity : 2 * set->count + 1;
    items = KILN_NEW_ARRAY(arena, int, capacity);
    if (at) memcpy(items, set->items, sizeof *items * (size_t)at);
    set->capacity = capacity;
    set->lent = false;
  }
  if (set->count > at) {
    memmove(items + at + 1, set->items + at, sizeof *items * (size_t)(set->count - at));
  }
  set->items = items;
  set->items[at] = loc;
  set->count++;
  return true;
}

bool kiln__locs_add_wildcards(kiln_arena *arena, loc_set *set, uint8_t mask) {
  bool changed = false;
  for (int b = 0; b < BUCKET__COUNT; b++) {
    if (mask >> b & 1) changed |= kiln__locs_add(arena, set, b);
  }
  return changed;
}

bool kiln__locs_meet(const loc_set *a, const loc_set *b) {
  if (a->count > b->count) {
    const loc_set *t = a;
    a = b;
    b = t;
  }
  if (b->count > 8 * a->count) {
    for (int i = 0; i < a->count; i++) {
      if (kiln__locs_has(b, a->items[i])) return true;
    }
    return false;
  }
  for (int i = 0, j = 0; i < a->count && j < b->count;) {
    if (a->items[i] == b->items[j]) return true;
    if (a->items[i] < b->items[j])
      i++;
    else
      j++;
  }
  return false;
}
