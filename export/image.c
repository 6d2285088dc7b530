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

static void *address(kiln__image_part part, int place) {
  return (void *)((uintptr_t)part << KILN__IMAGE_PLACE_BITS | (uintptr_t)place);
}

void *kiln__image_put(kiln__image *image, const void *bytes, size_t size, size_t align) {
  static const char zeros[64];
  APPEND(image, &image->data, zeros, pad(image->data.count, align));
  void *at = address(KILN__IMAGE_DATA, image->data.count);
  APPEND(image, &image->data, bytes, size);
  return at;
}

void *kiln__image_structs(kiln__image *image, const void *structs, size_t size, int count,
                          const void *const *fields, size_t field_count) {
  char *at = kiln__image_put(image, structs, size * (size_t)count, 8);
  for (size_t i = 0; i < (size_t)count; i++)
    for (size_t k = 0; k < field_count; k++) {
      const char *field = (const char *)fields[k] + i * size;
      const void *target;
      memcpy(&target, field, sizeof target);
      kiln__image_set(image, at + (field - (const char *)structs), target);
    }
  return at;
}

const char *kiln__image_text(kiln__image *image, const char *text) {
  if (!text) return NULL;
  const kiln_str s = kiln_str_from(text);
  const char *at = kiln_map_find(&image->texts, s);
  if (at) return at;
  void *put = kiln__image_put(image, text, s.len + 1, 1);
  kiln_map_set(&image->texts, kiln_arena_str(image->arena, s), put);
  return put;
}

kiln_str kiln__image_str(kiln__image *image, kiln_str text) {
  return kiln_str_make(kiln__image_text(image, kiln_arena_str(image->arena, text).data), text.len);
}

kiln_str *kiln__image_strs(kiln__image *image, const kiln_str *texts, int count) {
  kiln_str *own = KILN_NEW_ARRAY(image->arena, kiln_str, count);
  for (int i = 0; i < count; i++) own[i].len = texts[i].len;
  kiln_str *at = kiln__image_put(image, own, sizeof *own * (size_t)count, 8);
  for (int i = 0; i < count; i++)
    kiln__image_set(image, &at[i].data, kiln__image_str(image, texts[i]).data);
  return at;
}

void *kiln__image_code(kiln__image *image, const char *name, const void *bytes, size_t size) {
  static const char traps[64] = {[0 ... 63] = (char)0xcc};
  APPEND(image, &image->code, traps, pad(image->code.count, sizeof traps));
  const int at = image->code.count;
  APPEND(image, &image->code, bytes, size);
  kiln_vec_push(image->arena, &image->functions, (kiln__function){name, (size_t)at, size});
  return address(KILN__IMAGE_CODE, at);
}

void *kiln__image_symbol(kiln__image *image, const char *name) {
  kiln_vec_push(image->arena, &image->symbols, name);
  return address(KILN__IMAGE_SYMBOLS, image->symbols.count - 1);
}

void kiln__image_set(kiln__image *image, const void *field, const void *target) {
  const size_t at = kiln__image_place(field);
  const kiln__image_part part = (kiln__image_part)((uintptr_t)target >> KILN__IMAGE_PLACE_BITS);
  KILN_ASSERT((uintptr_t)field >> KILN__IMAGE_PLACE_BITS == KILN__IMAGE_DATA);
  if (!target) return;
  memset(image->data.data + at, 0, sizeof target); /* the linker writes it */
  kiln_vec_push(image->arena, &image->relocations,
                (kiln__relocation){at, part, kiln__image_place(target)});
}
