/* image.h: constant data of a program as bytes and relocations, and the object file of it. For
 * export/ alone; all memory is of the arena, and functions that cannot fail leave the scope where
 * there is none.
 *
 * What is put has an address from then on. Nobody can read there: an address says where something
 * will lie. A struct is filled with addresses, and put with the list of the fields that hold them:
 *   own->dims = KILN__ARRAY(image, e->dims, e->rank);
 *   at = KILN__PUT(image, own, 1, &own->dims);
 * What is put behind a struct is set there: kiln__image_set(image, &at->name, text). */
#pragma once

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"

/* An address: one of these, then a place in it. */
typedef enum kiln__image_part {
  KILN__IMAGE_DATA = 1,
  KILN__IMAGE_CODE,
  KILN__IMAGE_SYMBOLS, /* of elsewhere */
} kiln__image_part;
enum { KILN__IMAGE_PLACE_BITS = 40 };

typedef struct kiln__relocation {
  size_t at; /* 8 bytes of the data */
  kiln__image_part part;
  size_t target; /* the place in it */
} kiln__relocation;

typedef struct kiln__function {
  const char *name;
  size_t at, bytes;
} kiln__function;

typedef struct kiln__image {
  kiln_arena *arena;
  KILN_VEC(char) data, code;
  KILN_VEC(const char *) symbols;
  KILN_VEC(kiln__relocation) relocations;
  KILN_VEC(kiln__function) functions; /* in the code, by name */
  kiln_map texts;                     /* that are in the data: their addresses */
} kiln__image;

kiln__image kiln__image_in(kiln_arena *arena);
/* All that put something give its address. */
void *kiln__image_put(kiln__image *image, const void *bytes, size_t size, size_t align);
/* Structs or pointers; `fields` are those of the first one that hold an address or NULL. */
void *kiln__image_structs(kiln__image *image, const void *structs, size_t size, int count,
                          const void *const *fields, size_t field_count);
/* Each text once; NULL: gives NULL. */
const char *kiln__image_text(kiln__image *image, const char *text);
kiln_str kiln__image_str(kiln__image *image, kiln_str text);
kiln_str *kiln__image_strs(kiln__image *image, const kiln_str *texts, int count);
void *kiln__image_code(kiln__image *image, const char *name, const void *bytes, size_t size);
void *kiln__image_symbol(kiln__image *image, const char *name);
/* The pointer that lies at `field` will be `target`; NULL: nothing happens. */
void kiln__image_set(kiln__image *image, const void *field, const void *target);

/* NULL where `elements` is; an array of none has a place as any other. */
#define KILN__ARRAY(image, elements, count)                                                   \
  ((elements) ? kiln__image_put((image), (elements), sizeof *(elements) * (size_t)(count), 8) \
              : NULL)
#define KILN__PUT(image, structs, count, ...)                         \
  kiln__image_structs((image), (structs), sizeof *(structs), (count), \
                      (const void *const[]){__VA_ARGS__},             \
                      sizeof((const void *const[]){__VA_ARGS__}) / sizeof(void *))

/* x86-64 ELF, to be linked; `symbol` is the data at the address `at`, `bytes` of it. */
kiln_str kiln__image_object(const kiln__image *image, const char *symbol, const void *at,
                            size_t bytes);
/* The place of an address. */
static inline size_t kiln__image_place(const void *address) {
  return (uintptr_t)address & (((uintptr_t)1 << KILN__IMAGE_PLACE_BITS) - 1);
}
