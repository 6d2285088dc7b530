/* zip_write.c: local headers, entries, the central directory and both end records (PKWARE's
 * APPNOTE 4.3). Sizes are known before an entry is written, so there are no data descriptors. */
#include "frontend/zip_write.h"

#include <libdeflate.h>

#include "frontend/zip.h"

enum { ALIGNMENT = 64, MIN_DEFLATED = 200, MAX_NAME = 4096, DEFLATED = 8, UTF8_NAMES = 0x0800 };
#define LIMIT32 0xffffffffu

typedef struct entry {
  kiln_str name; /* prefix included */
  uint64_t offset, packed, size;
  uint32_t crc;
  uint16_t method;
} entry;

struct kiln_zip_writer {
  kiln_arena *arena;
  const kiln_sink *sink;
  const char *prefix;
  uint64_t offset;
  kiln_text head; /* being put together */
  KILN_VEC(entry *) entries;
  kiln_map by_name; /* whole name -> entry */
};

kiln_zip_writer *kiln_zip_writer_create(kiln_arena *arena, const kiln_sink *sink,
                                        const char *prefix) {
  kiln_zip_writer *zip = KILN_NEW(arena, kiln_zip_writer);
  zip->arena = arena;
  zip->sink = sink;
  zip->prefix = prefix;
  zip->head = kiln_text_in(arena);
  zip->by_name = kiln_map_in(arena);
  return zip;
}

/* -- Bytes -- */

static void put_number(kiln_text *text, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; i++) kiln_text_putc(text, (char)((value >> (8 * i)) & 0xff));
}

/* A field of 4 bytes; what does not fit is told by the zip64 extra field. */
static void put_limited(kiln_text *text, uint64_t value) {
  put_number(text, value >= LIMIT32 ? LIMIT32 : value, 4);
}

static kiln_status *emit(kiln_zip_writer *zip, const void *data, size_t size) {
  KILN_TRY(kiln_sink_put(zip->sink, data, size));
  zip->offset += size;
  return NULL;
}

static kiln_status *emit_head(kiln_zip_writer *zip) {
  kiln_status *status = emit(zip, zip->head.data, zip->head.len);
  zip->head.len = 0;
  return status;
}

static bool is_large(const entry *e) { return e->packed >= LIMIT32 || e->size >= LIMIT32; }

/* What the local header and the directory have in common, from "version needed" on. */
static void put_common(kiln_text *h, const entry *e, bool zip64, unsigned extra) {
  put_number(h, zip64 ? 45 : e->method == DEFLATED ? 20 : 10, 2);
  put_number(h, UTF8_NAMES, 2);
  put_number(h, e->method, 2);
  put_number(h, 0, 4); /* no time, so that equal contents are equal files */
  put_number(h, e->crc, 4);
  put_limited(h, e->packed);
  put_limited(h, e->size);
  put_number(h, e->name.len, 2);
  put_number(h, extra, 2);
}

/* -- Entries -- */

static void put_local(kiln_zip_writer *zip, const entry *e) {
  kiln_text *h = &zip->head;
  unsigned zip64 = is_large(e) ? 20 : 0;
  uint64_t begin = e->offset + 30 + e->name.len + zip64 + 4;
  unsigned pad = (unsigned)((ALIGNMENT - begin % ALIGNMENT) % ALIGNMENT);
  put_number(h, 0x04034b50, 4);
  put_common(h, e, zip64 > 0, zip64 + 4 + pad);
  kiln_text_put(h, e->name);
  if (zip64) {
    put_number(h, 1, 2);
    put_number(h, 16, 2);
    put_number(h, e->size, 8);
    put_number(h, e->packed, 8);
  }
  kiln_text_puts(h, "FB");
  put_number(h, pad, 2);
  for (unsigned i = 0; i < pad; i++) kiln_text_putc(h, 'Z');
}

/* The deflated bytes in the arena, or NULL where that saves nothing. */
static const void *deflated(kiln_zip_writer *zip, const void *data, size_t size, size_t *out_size) {
  if (size < MIN_DEFLATED) return NULL;
  char *packed = kiln_arena_alloc(zip->arena, size);
  struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(6);
  if (!compressor) return NULL;
  *out_size = libdeflate_deflate_compress(compressor, data, size, packed, size - 1);
  libdeflate_free_compressor(compressor);
  return *out_size > 0 ? packed : NULL;
}

static kiln_str whole_name(const kiln_zip_writer *zip, kiln_str name) {
  return kiln_str_from(
      kiln_arena_printf(zip->arena, "%s/" KILN_STR_FMT, zip->prefix, KILN_STR_ARG(name)));
}

bool kiln_zip_writer_has(const kiln_zip_writer *zip, kiln_str name) {
  return kiln_map_find(&zip->by_name, whole_name(zip, name)) != NULL;
}

kiln_status *kiln_zip_writer_add(kiln_zip_writer *zip, kiln_str name, const void *data, size_t size,
                                 bool deflate) {
  if (name.len == 0 || name.len > MAX_NAME) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "a file in an archive has a name of 1 to %d bytes",
                      MAX_NAME);
  }
  if (!kiln_zip_name_is_safe(name) || name.data[name.len - 1] == '/') {
    return KILN_ERROR(KILN_INVALID_ARGUMENT,
                      "a file in an archive cannot have the name '" KILN_STR_FMT
                      "': no backslash, no .., no / at either end",
                      KILN_STR_ARG(name));
  }
  entry *e = KILN_NEW(zip->arena, entry);
  e->name = whole_name(zip, name);
  if (kiln_map_find(&zip->by_name, e->name)) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "the archive would have two files '" KILN_STR_FMT "'",
                      KILN_STR_ARG(name));
  }
  e->offset = zip->offset;
  e->size = e->packed = size;
  e->crc = libdeflate_crc32(0, data, size);
  size_t packed_size = 0;
  const void *packed = deflate ? deflated(zip, data, size, &packed_size) : NULL;
  if (packed) {
    e->method = DEFLATED;
    e->packed = packed_size;
    data = packed;
  }
  put_local(zip, e);
  kiln_vec_push(zip->arena, &zip->entries, e);
  kiln_map_set(&zip->by_name, e->name, e);
  KILN_TRY(emit_head(zip));
  return emit(zip, data, (size_t)e->packed);
}

/* -- The end -- */

static void put_directory_entry(kiln_text *h, const entry *e) {
  bool far = e->offset >= LIMIT32;
  unsigned extra = (e->size >= LIMIT32 ? 8u : 0) + (e->packed >= LIMIT32 ? 8u : 0) + (far ? 8u : 0);
  put_number(h, 0x02014b50, 4);
  put_number(h, 45, 2); /* made by */
  put_common(h, e, extra > 0, extra ? extra + 4 : 0);
  put_number(h, 0, 2); /* comment, disk, attributes */
  put_number(h, 0, 2);
  put_number(h, 0, 2);
  put_number(h, 0, 4);
  put_limited(h, e->offset);
  kiln_text_put(h, e->name);
  if (!extra) return;
  put_number(h, 1, 2);
  put_number(h, extra, 2);
  if (e->size >= LIMIT32) put_number(h, e->size, 8);
  if (e->packed >= LIMIT32) put_number(h, e->packed, 8);
  if (far) put_number(h, e->offset, 8);
}

static void put_end(kiln_text *h, uint64_t count, uint64_t begin, uint64_t size) {
  put_number(h, 0x06064b50, 4);
  put_number(h, 44, 8); /* bytes of this entry that follow */
  put_number(h, 45, 2);
  put_number(h, 45, 2);
  put_number(h, 0, 8); /* disks */
  put_number(h, count, 8);
  put_number(h, count, 8);
  put_number(h, size, 8);
  put_number(h, begin, 8);
  put_number(h, 0x07064b50, 4); /* where that entry is */
  put_number(h, 0, 4);
  put_number(h, begin + size, 8);
  put_number(h, 1, 4);
  put_number(h, 0x06054b50, 4);
  put_number(h, 0, 4);
  put_number(h, count >= 0xffff ? 0xffff : count, 2);
  put_number(h, count >= 0xffff ? 0xffff : count, 2);
  put_limited(h, size);
  put_limited(h, begin);
  put_number(h, 0, 2);
}

kiln_status *kiln_zip_writer_finish(kiln_zip_writer *zip) {
  uint64_t begin = zip->offset;
  for (int i = 0; i < zip->entries.count; i++) {
    put_directory_entry(&zip->head, zip->entries.data[i]);
    KILN_TRY(emit_head(zip));
  }
  put_end(&zip->head, (uint64_t)zip->entries.count, begin, zip->offset - begin);
  return emit_head(zip);
}
