/* vec.h: growable arrays in an arena. KILN_VEC(type) declares one; zero-initialised is empty.
 * Growing leaves the old block in the arena. Use: KILN_VEC(int) v = {0}; kiln_vec_push(a, &v, 3).
 */
#pragma once

#include <string.h>

#include "base/arena.h"

#define KILN_VEC(type)   \
  struct {               \
    type *data;          \
    int count, capacity; \
  }

typedef KILN_VEC(int) kiln_vec_int;

/* Grows *data (of `size` bytes each) to hold at least `need`. */
void *kiln__vec_grow(kiln_arena *arena, void *data, int count, int *capacity, int need,
                     size_t size);

#define kiln_vec_reserve(arena, vec, need)                                                         \
  ((need) > (vec)->capacity                                                                        \
       ? (void)((vec)->data = kiln__vec_grow((arena), (vec)->data, (vec)->count, &(vec)->capacity, \
                                             (need), sizeof *(vec)->data))                         \
       : (void)0)
#define kiln_vec_push(arena, vec, ...)                 \
  (kiln_vec_reserve((arena), (vec), (vec)->count + 1), \
   (void)((vec)->data[(vec)->count++] = (__VA_ARGS__)))
#define kiln_vec_pop(vec) ((vec)->data[--(vec)->count])
#define kiln_vec_last(vec) ((vec)->data[(vec)->count - 1])
#define kiln_vec_clear(vec) ((void)((vec)->count = 0))
