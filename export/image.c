/* image.c: bytes and relocations. */
#include "export/image.h"

#include <limits.h>

kiln__image kiln__image_in(kiln_arena *arena) {
  return (kiln__image){.arena = arena, .texts = kiln_map_in(arena)};
}

static void append(kiln_arena *arena, char **data, int *count, int *capacity, const void *bytes,
                   size_t size) {
  if (size > (size_t)(INT_MAX - *count)) kiln_scope_oom();
  if (*count + (int)size > *capacity)
    *data = kiln__vec_grow(arena, *data, *count, capacity, *count + (int)size, 1);
  if (size) memcpy(*data + *count, bytes, size);
  *count += (int)size;
}
#define APPEND(image, vec, bytes, size) \
  append((image)->arena, &(vec)->data, &(vec)->count, &(vec)->capacity, (bytes), (size))

static size_t pad(int count, size_t align) { return -(size_t)count & (align - 1); }

size_t kiln__image_put(kiln__image *image, const void *bytes, size_t size, size_t align) {
  static const char zeros[64];
  APPEND(image, &image->data, zeros, pad(image->data.count, align));
  const size_t at = (size_t)image->data.count;
  APPEND(image, &image->data, bytes, size);
  return at;
}

size_t kiln__image_text(kiln__image *image, const char *text) {
  const kiln_str s = kiln_str_from(text);
  void *known = kiln_map_find(&image->texts, s);
  if (known) return (size_t)(uintptr_t)known - 1;
  const size_t at = kiln__image_put(image, text, s.len + 1, 1);
  kiln_map_set(&image->texts, kiln_arena_str(image->arena, s), (void *)(uintptr_t)(at + 1));
  return at;
}

size_t kiln__image_code(kiln__image *image, const char *name, const void *bytes, size_t size) {
  static const char traps[64] = {[0 ... 63] = (char)0xcc};
  APPEND(image, &image->code, traps, pad(image->code.count, sizeof traps));
  const size_t at = (size_t)image->code.count;
  APPEND(image, &image->code, bytes, size);
  kiln_vec_push(image->arena, &image->functions, (kiln__function){name, at, size});
  return at;
}

void kiln__image_point(kiln__image *image, size_t at, size_t target) {
  kiln_vec_push(image->arena, &image->relocations, (kiln__relocation){.at = at, .target = target});
}
void kiln__image_point_code(kiln__image *image, size_t at, size_t target) {
  kiln_vec_push(image->arena, &image->relocations,
                (kiln__relocation){.at = at, .in_code = true, .target = target});
}
void kiln__image_name(kiln__image *image, size_t at, const char *symbol) {
  kiln_vec_push(image->arena, &image->relocations, (kiln__relocation){.at = at, .symbol = symbol});
}
