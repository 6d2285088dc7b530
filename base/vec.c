/* vec.c: growing arrays by doubling. */
#include "base/vec.h"

#include <limits.h>

void *kiln__vec_grow(kiln_arena *arena, void *data, int count, int *capacity, int need,
                     size_t size) {
  int64_t wanted = *capacity > 0 ? (int64_t)*capacity * 2 : 8;
  if (wanted > INT_MAX) wanted = INT_MAX;
  if (wanted < need) wanted = need;
  void *grown = kiln_arena_alloc_array(arena, size, (size_t)wanted);
  if (count > 0) memcpy(grown, data, size * (size_t)count);
  *capacity = (int)wanted;
  return grown;
}
