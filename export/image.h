/* image.h: constant data of a program as bytes and relocations, and the object file of it. For
 * export/ alone; all memory is of the arena, and functions that cannot fail leave the scope where
 * there is none. */
#pragma once

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"

typedef struct kiln__relocation {
  size_t at;          /* 8 bytes of the data */
  const char *symbol; /* of another object; NULL: of this one, in */
  bool in_code;       /* its code, or its data */
  size_t target;
} kiln__relocation;

typedef struct kiln__function {
  const char *name;
  size_t at, bytes;
} kiln__function;

typedef struct kiln__image {
  kiln_arena *arena;
  KILN_VEC(char) data, code;
  KILN_VEC(kiln__relocation) relocations;
  KILN_VEC(kiln__function) functions; /* in the code, by name */
  kiln_map texts;                     /* that are in the data: place + 1 */
} kiln__image;

kiln__image kiln__image_in(kiln_arena *arena);
/* Appends to the data; gives the place. */
size_t kiln__image_put(kiln__image *image, const void *bytes, size_t size, size_t align);
size_t kiln__image_text(kiln__image *image, const char *text);
size_t kiln__image_code(kiln__image *image, const char *name, const void *bytes, size_t size);
/* The 8 bytes at `at` will be the address of what is at `target`, or of a symbol of elsewhere. */
void kiln__image_point(kiln__image *image, size_t at, size_t target);
void kiln__image_point_code(kiln__image *image, size_t at, size_t target);
void kiln__image_name(kiln__image *image, size_t at, const char *symbol);

/* A value of `type`, whose addresses are pointed afterwards. */
#define KILN__PUT(image, value) kiln__image_put((image), &(value), sizeof(value), 8)
#define KILN__POINT(image, at, type, field, target) \
  kiln__image_point((image), (at) + offsetof(type, field), (target))

/* x86-64 ELF, to be linked; `symbol` is the data at `at`, `bytes` of it. */
kiln_str kiln__image_object(const kiln__image *image, const char *symbol, size_t at, size_t bytes);
