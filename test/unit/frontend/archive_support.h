/* archive_support.h: archives made in memory for tests, byte by byte (nothing of ours makes them):
 * stored or deflated members, wrong sums and sizes on request. */
#pragma once

#include <zlib.h>

#include "frontend/zip.h"
#include "test/unit/unit.h"

enum { ARCHIVE_MAX = 1 << 20, ARCHIVE_RECORDS = 64 };

typedef struct archive_builder {
  unsigned char bytes[ARCHIVE_MAX];
  size_t size;
  struct {
    char name[128];
    size_t name_size, offset, packed, size;
    uint32_t crc;
    int method;
  } entries[ARCHIVE_RECORDS];
  int count;
  /* What the directory's entries have in a zip64 field, as those of archives with more than 4 GiB:
     1 sizes, 2 places; and by how many bytes the field is too short for that. */
  int zip64, zip64_lacks;
} archive_builder;

static inline void archive__put(archive_builder *a, uint64_t value, int size) {
  for (int i = 0; i < size; i++) a->bytes[a->size++] = (unsigned char)(value >> (8 * i));
}

/* Adds a member. `stated`: the size that the directory claims (0: the true one). */
static inline void archive_add_named(archive_builder *a, const char *name, size_t name_size,
                                     const void *data, size_t size, bool deflated, size_t stated,
                                     bool wrong_crc) {
  int i = a->count++;
  memcpy(a->entries[i].name, name, name_size);
  a->entries[i].name_size = name_size;
  a->entries[i].offset = a->size;
  a->entries[i].size = stated ? stated : size;
  a->entries[i].crc = (uint32_t)crc32(0, data, (uInt)size) ^ (wrong_crc ? 1u : 0u);
  a->entries[i].method = deflated ? 8 : 0;
  archive__put(a, 0x04034b50, 4);
  archive__put(a, 20, 2);
  archive__put(a, 8, 2); /* sums and sizes follow the data: the header has zeros, as torch's has */
  archive__put(a, (uint64_t)a->entries[i].method, 2);
  archive__put(a, 0, 4);
  archive__put(a, 0, 4);
  archive__put(a, 0, 4);
  archive__put(a, 0, 4);
  archive__put(a, name_size, 2);
  size_t pad = deflated ? 0 : (64 - (a->size + 2 + name_size + 4) % 64) % 64;
  archive__put(a, deflated ? 0 : pad + 4, 2);
  memcpy(a->bytes + a->size, name, name_size);
  a->size += name_size;
  if (!deflated) {
    archive__put(a, 0x4246, 2);
    archive__put(a, pad, 2);
    memset(a->bytes + a->size, 'Z', pad);
    a->size += pad;
    memcpy(a->bytes + a->size, data, size);
    a->entries[i].packed = size;
  } else {
    z_stream s = {0};
    assert_int_equal(deflateInit2(&s, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
    s.next_in = (Bytef *)(uintptr_t)data;
    s.avail_in = (uInt)size;
    s.next_out = a->bytes + a->size;
    s.avail_out = (uInt)(ARCHIVE_MAX - a->size);
    assert_int_equal(deflate(&s, Z_FINISH), Z_STREAM_END);
    a->entries[i].packed = s.total_out;
    deflateEnd(&s);
  }
  a->size += a->entries[i].packed;
}

static inline void archive_add(archive_builder *a, const char *name, const char *text) {
  archive_add_named(a, name, strlen(name), text, strlen(text), false, 0, false);
}

static inline void archive_add_bytes(archive_builder *a, const char *name, const void *data,
                                     size_t size) {
  archive_add_named(a, name, strlen(name), data, size, false, 0, false);
}

static inline uint64_t archive__or_zip64(const archive_builder *a, int what, uint64_t number) {
  return a->zip64 & what ? UINT32_MAX : number;
}

/* The directory and the end entry. */
static inline void archive_finish(archive_builder *a) {
  size_t begin = a->size;
  const int field = (a->zip64 & 1 ? 16 : 0) + (a->zip64 & 2 ? 8 : 0) - a->zip64_lacks;
  for (int i = 0; i < a->count; i++) {
    archive__put(a, 0x02014b50, 4);
    archive__put(a, 0, 2);
    archive__put(a, 20, 2);
    archive__put(a, 8, 2);
    archive__put(a, (uint64_t)a->entries[i].method, 2);
    archive__put(a, 0, 4);
    archive__put(a, a->entries[i].crc, 4);
    archive__put(a, archive__or_zip64(a, 1, a->entries[i].packed), 4);
    archive__put(a, archive__or_zip64(a, 1, a->entries[i].size), 4);
    archive__put(a, a->entries[i].name_size, 2);
    archive__put(a, a->zip64 ? 6 + 4 + (uint64_t)field : 0, 2);
    archive__put(a, 0, 2 + 2 + 2);
    archive__put(a, 0, 4);
    archive__put(a, archive__or_zip64(a, 2, a->entries[i].offset), 4);
    memcpy(a->bytes + a->size, a->entries[i].name, a->entries[i].name_size);
    a->size += a->entries[i].name_size;
    if (!a->zip64) continue;
    archive__put(a, 0x4246, 2); /* somebody else's field comes first */
    archive__put(a, 2, 2);
    archive__put(a, 0, 2);
    archive__put(a, 1, 2);
    archive__put(a, (uint64_t)field, 2);
    const size_t before = a->size;
    if (a->zip64 & 1) archive__put(a, a->entries[i].size, 8);
    if (a->zip64 & 1) archive__put(a, a->entries[i].packed, 8);
    if (a->zip64 & 2) archive__put(a, a->entries[i].offset, 8);
    a->size = before + (size_t)field;
  }
  size_t end = a->size;
  archive__put(a, 0x06054b50, 4);
  archive__put(a, 0, 4);
  archive__put(a, (uint64_t)a->count, 2);
  archive__put(a, (uint64_t)a->count, 2);
  archive__put(a, end - begin, 4);
  archive__put(a, begin, 4);
  archive__put(a, 0, 2);
}

/* A whole archive of one file of source: `root` is its pickle. */
static inline void archive_of(archive_builder *a, const char *source, const char *root,
                              size_t root_size) {
  static const char constants[] = "\x80\x02).";
  a->size = 0;
  a->count = 0;
  archive_add_bytes(a, "t/data.pkl", root, root_size);
  archive_add_bytes(a, "t/code/__torch__.py", source, strlen(source));
  archive_add_bytes(a, "t/constants.pkl", constants, sizeof constants - 1);
  archive_add(a, "t/version", "9\n");
  archive_finish(a);
}
