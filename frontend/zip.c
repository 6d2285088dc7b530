/* zip.c: reading zip archives. minizip's file callbacks are over memory; its handle is kept while
 * the archive is open, since local headers are looked at when an entry is first used. */
#include "frontend/zip.h"

#include <errno.h>
#include <libdeflate.h>
#include <limits.h>
#include <minizip/unzip.h>

#include "base/sanitize.h"
#include "frontend/formats.h"

enum { MAX_NAME = 4096, MAX_RECORDS = 1 << 20, DEFLATED = 8 };
enum { MAX_UNREAD = 16 << 20 }; /* of an entry that nobody reads, to be inflated for its sum */

struct kiln_zip {
  kiln_arena *arena;
  const kiln_mapping *mapping;
  unzFile file;
  struct libdeflate_decompressor *inflater; /* NULL: nothing was inflated yet */
  kiln_cleanup closing;                     /* of both */
  uint64_t position;                        /* of the callbacks */
  uint64_t inflate_left;
  const kiln_budget *budget;
  bool crc_warns, flat;
  int wrong_sums;
  kiln_str first_wrong;
  KILN_VEC(kiln_zip_entry) entries;
  kiln_map by_name; /* index + 1 */
};

/* minizip tells lack of memory as a failure like others; malloc leaves it in errno, which is 0
 * before minizip is first called. */
static bool lacks_memory(void) { return errno == ENOMEM; }
static kiln_status *bad_directory(void) {
  if (lacks_memory()) return kiln_status_oom();
  return KILN_ERROR(KILN_INVALID_FILE, "the archive's directory is damaged");
}

#define BAD_RECORD(name, fmt, ...) \
  KILN_ERROR(KILN_INVALID_FILE, "record '" KILN_STR_FMT "' " fmt, KILN_STR_ARG(name), ##__VA_ARGS__)

/* -- minizip's callbacks -- */

static voidpf ZCALLBACK memory_open(voidpf opaque, const void *filename, int mode) {
  (void)filename;
  return (mode & ZLIB_FILEFUNC_MODE_CREATE) ? NULL : opaque;
}

static uLong ZCALLBACK memory_read(voidpf opaque, voidpf stream, void *buffer, uLong size) {
  (void)opaque;
  kiln_zip *zip = stream;
  uint64_t left = zip->position < zip->mapping->size ? zip->mapping->size - zip->position : 0;
  uLong take = size < left ? size : (uLong)left;
  if (take > 0) memcpy(buffer, (const char *)zip->mapping->data + zip->position, take);
  zip->position += take;
  return take;
}

static ZPOS64_T ZCALLBACK memory_tell(voidpf opaque, voidpf stream) {
  (void)opaque;
  return ((kiln_zip *)stream)->position;
}

static long ZCALLBACK memory_seek(voidpf opaque, voidpf stream, ZPOS64_T offset, int origin) {
  (void)opaque;
  kiln_zip *zip = stream;
  uint64_t base = origin == ZLIB_FILEFUNC_SEEK_CUR   ? zip->position
                  : origin == ZLIB_FILEFUNC_SEEK_END ? zip->mapping->size
                                                     : 0;
  uint64_t at;
  if (__builtin_add_overflow(base, (uint64_t)offset, &at) || at > zip->mapping->size) return -1;
  zip->position = at;
  return 0;
}

/* Of closing, and of asking for errors. */
static int ZCALLBACK memory_nothing(voidpf opaque, voidpf stream) {
  (void)opaque;
  (void)stream;
  return 0;
}

/* -- The directory -- */

bool kiln_zip_name_is_safe(kiln_str name) {
  if (name.len == 0 || name.data[0] == '/') return false;
  size_t begin = 0;
  for (size_t i = 0; i <= name.len; i++) {
    if (i == name.len || name.data[i] == '/') {
      if (i - begin == 2 && name.data[begin] == '.' && name.data[begin + 1] == '.') return false;
      begin = i + 1;
    } else if (name.data[i] == '\0' || name.data[i] == '\\') {
      return false;
    }
  }
  return true;
}

/* The archive's first entry lies in no folder, as torch's never do. What is it then? */
static kiln_status *refuse_flat(kiln_zip *zip) {
  char name[MAX_NAME + 1], first[MAX_NAME + 1] = "";
  int row = INT_MAX, result = unzGoToFirstFile(zip->file);
  for (int i = 0; i < MAX_RECORDS && result == UNZ_OK; i++) {
    if (unzGetCurrentFileInfo64(zip->file, NULL, name, sizeof name, NULL, 0, NULL, 0) != UNZ_OK) {
      break;
    }
    kiln_msan_unpoison(name, sizeof name);
    name[MAX_NAME] = 0;
    if (i == 0) memcpy(first, name, sizeof first);
    const int of_record = kiln_format_of_entry(kiln_str_from(name));
    if (of_record < row) row = of_record;
    result = unzGoToNextFile(zip->file);
  }
  KILN_TRY(kiln_format_refuse_row(row));
  return KILN_ERROR(KILN_INVALID_FILE,
                    "a zip archive, but not PyTorch's: its first record '%s' lies in no folder",
                    first);
}

/* -- Headers --
 *
 * Of archives with more than 4 GiB minizip 1.1 takes 2^32 - 1 for the place and the sizes that are
 * in the zip64 field: they are read here (APPNOTE.TXT 6.3.10, 4.3.7, 4.3.12, 4.5.3). */

static uint64_t number_at(const unsigned char *p, int bytes) {
  uint64_t number = 0;
  for (int i = bytes - 1; i >= 0; i--) number = number << 8 | p[i];
  return number;
}
enum { CENTRAL_BYTES = 46, LOCAL_BYTES = 30, ZIP64_FIELD = 1 };
#define IN_ZIP64 UINT64_C(0xffffffff)

/* NULL: there is no whole one at that place. */
static const unsigned char *header_at(const kiln_mapping *mapping, uint64_t at, const char *magic,
                                      size_t bytes) {
  const unsigned char *p = mapping->data;
  if (at > mapping->size || mapping->size - at < bytes || memcmp(p + at, magic, 4) != 0)
    return NULL;
  return p + at;
}

/* Numbers that the field has in place of those that did not fit, in this order. */
static void take_zip64(const unsigned char *field, uint64_t bytes, uint64_t *const numbers[3]) {
  for (int i = 0; i < 3; i++) {
    if (*numbers[i] != IN_ZIP64 || bytes < 8) continue;
    *numbers[i] = number_at(field, 8);
    field += 8;
    bytes -= 8;
  }
}

/* Sizes, and where the local header is, by the directory's entry. */
static bool read_places(const kiln_mapping *mapping, uint64_t at, kiln_zip_entry *entry) {
  const unsigned char *p = header_at(mapping, at, "PK\1\2", CENTRAL_BYTES);
  if (!p) return false;
  const uint64_t name = number_at(p + 28, 2), extra = number_at(p + 30, 2);
  if (mapping->size - at - CENTRAL_BYTES < name + extra) return false;
  entry->packed = number_at(p + 20, 4);
  entry->size = number_at(p + 24, 4);
  entry->header = number_at(p + 42, 4);
  const unsigned char *field = p + CENTRAL_BYTES + name;
  for (uint64_t left = extra; left >= 4;) {
    const uint64_t bytes = number_at(field + 2, 2);
    if (left - 4 < bytes) return false;
    if (number_at(field, 2) == ZIP64_FIELD)
      take_zip64(field + 4, bytes,
                 (uint64_t *const[]){&entry->size, &entry->packed, &entry->header});
    field += 4 + bytes;
    left -= 4 + bytes;
  }
  return true;
}

/* -- Entries -- */

static kiln_status *add_entry(kiln_zip *zip, kiln_str *prefix) {
  unz_file_info64 info;
  char name[MAX_NAME + 1];
  if (unzGetCurrentFileInfo64(zip->file, &info, name, MAX_NAME, NULL, 0, NULL, 0) != UNZ_OK) {
    return bad_directory();
  }
  kiln_msan_unpoison(&info, sizeof info);
  kiln_msan_unpoison(name, sizeof name);
  if (info.size_filename > MAX_NAME) {
    return KILN_ERROR(KILN_INVALID_FILE, "the archive has a record name of %lu bytes",
                      info.size_filename);
  }
  kiln_str full = kiln_arena_str(zip->arena, kiln_str_make(name, info.size_filename));
  if (!kiln_zip_name_is_safe(full)) {
    return KILN_ERROR(KILN_INVALID_FILE, "the archive has a record with an unsafe name");
  }
  if (!prefix->data) {
    const char *slash = memchr(full.data, '/', full.len);
    if (!slash) return refuse_flat(zip);
    *prefix = kiln_str_make(full.data, (size_t)(slash - full.data) + 1);
  }
  if (full.len <= prefix->len || memcmp(full.data, prefix->data, prefix->len) != 0 ||
      full.data[full.len - 1] == '/') {
    return NULL; /* a folder, or somebody else's */
  }
  kiln_str below = kiln_str_make(full.data + prefix->len, full.len - prefix->len);
  if (kiln_map_find(&zip->by_name, below)) {
    return KILN_ERROR(KILN_INVALID_FILE, "the archive has two records named '" KILN_STR_FMT "'",
                      KILN_STR_ARG(below));
  }
  if (info.flag & 1) return BAD_RECORD(below, "is encrypted");
  if (info.compression_method != 0 && info.compression_method != DEFLATED) {
    return BAD_RECORD(below, "has compression method %lu", info.compression_method);
  }
  kiln_zip_entry entry = {
      .name = below, .crc = (uint32_t)info.crc, .deflated = info.compression_method == DEFLATED};
  unz64_file_pos position = {0, 0};
  if (unzGetFilePos64(zip->file, &position) != UNZ_OK ||
      !read_places(zip->mapping, position.pos_in_zip_directory, &entry))
    return bad_directory();
  kiln_vec_push(zip->arena, &zip->entries, entry);
  kiln_map_set(&zip->by_name, below, (void *)(uintptr_t)zip->entries.count);
  return NULL;
}

/* The end entry must end with the file: minizip would also take an archive whose last bytes are
 * missing, by its zip64 entry. */
static bool ends_with_end_record(const kiln_mapping *mapping) {
  const unsigned char *bytes = mapping->data;
  size_t last = mapping->size - 22, first = last > 65535 ? last - 65535 : 0;
  for (size_t at = last;; at--) {
    if (memcmp(bytes + at, "PK\5\6", 4) == 0 &&
        at + 22 + (size_t)(bytes[at + 20] | bytes[at + 21] << 8) == mapping->size) {
      return true;
    }
    if (at == first) return false;
  }
}

static kiln_status *read_directory(kiln_zip *zip) {
  kiln_str prefix = {0};
  if (zip->flat) prefix = KILN_STR("");
  int result = unzGoToFirstFile(zip->file);
  for (int i = 0; result == UNZ_OK; i++) {
    if (i == MAX_RECORDS) {
      return KILN_ERROR(KILN_INVALID_FILE, "the archive has more than %d records", MAX_RECORDS);
    }
    KILN_TRY(add_entry(zip, &prefix));
    result = unzGoToNextFile(zip->file);
  }
  return result == UNZ_END_OF_LIST_OF_FILE ? NULL : bad_directory();
}

static void close_file(void *arg) {
  kiln_zip *zip = arg;
  unzClose(zip->file);
  libdeflate_free_decompressor(zip->inflater);
}

kiln_status *kiln_zip_open(kiln_arena *arena, const kiln_mapping *mapping,
                           const kiln_zip_options *options, kiln_zip **out_zip) {
  kiln_zip *zip = KILN_NEW(arena, kiln_zip);
  *out_zip = zip;
  zip->arena = arena;
  zip->mapping = mapping;
  zip->inflate_left = options && options->inflate_cap ? options->inflate_cap : (uint64_t)4 << 30;
  zip->crc_warns = options && options->crc_warns;
  zip->flat = options && options->flat;
  zip->budget = options ? options->budget : NULL;
  zip->by_name = kiln_map_in(arena);
  zlib_filefunc64_def callbacks = {
      .zopen64_file = memory_open,
      .zread_file = memory_read,
      .ztell64_file = memory_tell,
      .zseek64_file = memory_seek,
      .zclose_file = memory_nothing,
      .zerror_file = memory_nothing,
      .opaque = zip,
  };
  const unsigned char *bytes = mapping->data;
  if (mapping->size < 22 || bytes[0] != 'P' || bytes[1] != 'K') {
    return KILN_ERROR(KILN_INVALID_FILE, "not a zip archive");
  }
  if (!ends_with_end_record(mapping)) {
    return KILN_ERROR(KILN_INVALID_FILE, "the zip archive is truncated or damaged");
  }
  errno = 0;
  zip->file = unzOpen2_64("", &callbacks);
  if (zip->file) kiln_scope_defer(&zip->closing, close_file, zip);
  if (!zip->file) {
    if (lacks_memory()) return kiln_status_oom();
    return KILN_ERROR(KILN_INVALID_FILE, "the zip archive is damaged: it has no directory");
  }
  return read_directory(zip);
}

int kiln_zip_count(const kiln_zip *zip) { return zip->entries.count; }

kiln_zip_entry *kiln_zip_at(kiln_zip *zip, int index) { return &zip->entries.data[index]; }

kiln_zip_entry *kiln_zip_find(kiln_zip *zip, kiln_str name) {
  uintptr_t index = (uintptr_t)kiln_map_find(&zip->by_name, name);
  return index ? &zip->entries.data[index - 1] : NULL;
}

/* -- Members -- */

static bool is_said(const unsigned char *p, uint64_t number) {
  const uint64_t said = number_at(p, 4);
  return said == number || said == IN_ZIP64;
}

/* Finds where the data begins, by the local header, and that it lies within the file. */
static kiln_status *locate(kiln_zip *zip, const kiln_zip_entry *entry, kiln_str *out_packed) {
  enum { SAID_BEHIND = 8 }; /* sums and sizes */
  const unsigned char *p = header_at(zip->mapping, entry->header, "PK\3\4", LOCAL_BYTES);
  bool agrees = p && number_at(p + 8, 2) == (entry->deflated ? DEFLATED : 0);
  if (agrees && !(p[6] & SAID_BEHIND))
    agrees = number_at(p + 14, 4) == entry->crc && is_said(p + 18, entry->packed) &&
             is_said(p + 22, entry->size);
  if (!agrees) return BAD_RECORD(entry->name, "has a damaged header");
  const uint64_t offset = entry->header + LOCAL_BYTES + number_at(p + 26, 2) + number_at(p + 28, 2);
  if (offset > zip->mapping->size || entry->packed > zip->mapping->size - offset) {
    return BAD_RECORD(entry->name, "reaches past the file's end");
  }
  *out_packed = kiln_str_make((const char *)zip->mapping->data + offset, entry->packed);
  return NULL;
}

/* Raw inflate of all of the entry's `packed` into `out`, exactly of its size. */
static kiln_status *inflate_all(kiln_zip *zip, const kiln_zip_entry *entry, kiln_str packed,
                                char *out) {
  size_t used = 0;
  if (!zip->inflater) zip->inflater = libdeflate_alloc_decompressor();
  if (!zip->inflater) return kiln_status_oom();
  enum libdeflate_result result = libdeflate_deflate_decompress_ex(
      zip->inflater, packed.data, packed.len, out, (size_t)entry->size, &used, NULL);
  kiln_msan_unpoison(out, used);
  if (result == LIBDEFLATE_SUCCESS && used == packed.len) return NULL;
  return BAD_RECORD(entry->name, "does not inflate to its stated size");
}

static kiln_status *inflate_entry(kiln_zip *zip, const kiln_zip_entry *entry, kiln_str packed,
                                  kiln_str *out_data) {
  if (entry->size > zip->inflate_left) {
    return KILN_ERROR(KILN_LIMIT, "record '" KILN_STR_FMT "' inflates past the limit",
                      KILN_STR_ARG(entry->name));
  }
  /* Deflate cannot do better than 1032 to 1, so a greater claim is a lie: no memory for it. */
  if (entry->size / 1040 > packed.len) return BAD_RECORD(entry->name, "states a false size");
  KILN_TRY(kiln_budget_check(zip->budget, entry->size));
  zip->inflate_left -= entry->size;
  char *out = kiln_arena_alloc_aligned(zip->arena, (size_t)entry->size + 1, 64);
  KILN_TRY(inflate_all(zip, entry, packed, out));
  *out_data = kiln_str_make(out, (size_t)entry->size);
  return NULL;
}

/* Sums are taken piece by piece, so that a limit of time is kept. */
static kiln_status *check_sum(kiln_zip *zip, kiln_zip_entry *entry, kiln_str data) {
  const size_t piece = (size_t)64 << 20;
  uint32_t crc = 0;
  for (size_t at = 0; at < data.len; at += piece) {
    size_t size = data.len - at < piece ? data.len - at : piece;
    crc = libdeflate_crc32(crc, data.data + at, size);
    KILN_TRY(kiln_budget_check(zip->budget, 0));
  }
  if (crc == entry->crc) return NULL;
  if (!zip->crc_warns) return BAD_RECORD(entry->name, "has a wrong checksum");
  if (zip->wrong_sums++ == 0) zip->first_wrong = entry->name;
  return NULL;
}

kiln_status *kiln_zip_read(kiln_zip *zip, kiln_zip_entry *entry, kiln_str *out_data) {
  if (!entry->read) {
    kiln_str packed;
    KILN_TRY(locate(zip, entry, &packed));
    if (entry->deflated) {
      KILN_TRY(inflate_entry(zip, entry, packed, &entry->data));
    } else if (entry->packed != entry->size) {
      return KILN_ERROR(KILN_INVALID_FILE, "stored record '" KILN_STR_FMT "' states two sizes",
                        KILN_STR_ARG(entry->name));
    } else {
      entry->data = packed;
    }
    KILN_TRY(check_sum(zip, entry, entry->data));
    entry->read = true;
  }
  *out_data = entry->data;
  return NULL;
}

/* The sum of a deflated entry that nobody reads: inflated into memory that is freed at once. */
static kiln_status *check_unread(kiln_zip *zip, kiln_zip_entry *entry) {
  kiln_str packed;
  KILN_TRY(locate(zip, entry, &packed));
  if (entry->size > MAX_UNREAD || entry->size / 1040 > packed.len) return NULL;
  KILN_TRY(kiln_budget_check(zip->budget, entry->size));
  kiln_mem *mem = kiln_arena_mem(zip->arena);
  char *out = kiln_mem_alloc(mem, (size_t)entry->size + 1);
  if (!out) return kiln_status_oom();
  kiln_status *status = inflate_all(zip, entry, packed, out);
  if (!status) status = check_sum(zip, entry, kiln_str_make(out, (size_t)entry->size));
  kiln_mem_free(mem, out, (size_t)entry->size + 1);
  return status;
}

kiln_status *kiln_zip_check_all(kiln_zip *zip) {
  for (int i = 0; i < zip->entries.count; i++) {
    kiln_zip_entry *entry = &zip->entries.data[i];
    kiln_str data;
    if (entry->read) continue;
    if (entry->deflated) {
      KILN_TRY(check_unread(zip, entry));
    } else {
      KILN_TRY(kiln_zip_read(zip, entry, &data));
    }
  }
  return NULL;
}

void kiln_zip_report(const kiln_zip *zip, kiln_env *env) {
  if (zip->wrong_sums == 0) return;
  KILN_LOG(&env->log, warn, 1,
           "%d of the archive's %d record%s %s a wrong checksum, the first '" KILN_STR_FMT
           "': it is damaged, or was written without checksums",
           zip->wrong_sums, zip->entries.count, kiln_plural((uint64_t)zip->entries.count),
           zip->wrong_sums == 1 ? "has" : "have", KILN_STR_ARG(zip->first_wrong));
}
