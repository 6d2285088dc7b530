/* origins.c: source ranges of debug_pkl. Two forms: ('FORMAT_WITH_STRING_TABLE', strings, entries)
 * with sources (indices of their lines, index of the file's name, first line), since 1.10; and
 * entries alone, with sources (text, file, first line). An entry is (byte, (source, begin, end),
 * tag), and counts from its byte to that of the next.
 *
 * Reference: torch/csrc/jit/serialization/source_range_serialization.cpp. */
#include "frontend/torchscript/origins.h"

#include <pthread.h>

#include "frontend/pickle.h"
#include "frontend/zip.h"

/* Larger tables than any honest model's are not read, nor texts of more bytes gone through. */
enum { MAX_TABLE = 8 << 20, MAX_VALUES = 16 << 20, MAX_SCAN = 16 << 20 };

typedef struct origins {
  kiln_source_origin base;
  kiln_env *env;
  kiln_mapping *mapping;
  kiln_type_table *types;
  kiln_str entry;
  pthread_mutex_t lock; /* of what follows, until it is read */
  bool was_read;
  kiln_ivalue table;         /* owned */
  const kiln_tuple *entries; /* in the table; NULL: there are none */
  const kiln_tuple *strings; /* NULL: the older form */
} origins;

/* -- Reading -- */

static kiln_status *check_bytes(void *user, size_t bytes) {
  (void)user;
  if (bytes <= MAX_VALUES) return NULL;
  return KILN_ERROR(KILN_LIMIT, "a table of source ranges of too many values");
}

static kiln_status *read_table(origins *o) {
  const kiln_zip_options options = {.inflate_cap = MAX_TABLE, .crc_warns = true};
  const kiln_pickle_hooks hooks = {.check = check_bytes, .whole_name = true};
  KILN_TRY(kiln_mapping_check(o->mapping, true));
  kiln_arena *arena = kiln_arena_scoped(o->env->mem);
  kiln_zip *zip;
  KILN_TRY(kiln_zip_open(arena, o->mapping, &options, &zip));
  const kiln_zip_entry *entry = kiln_zip_find(zip, o->entry);
  if (!entry || entry->size > MAX_TABLE) return NULL;
  return kiln_pickle_read(o->env, arena, o->types, zip, o->mapping, o->entry.data, &hooks,
                          &o->table);
}
static kiln_status *try_table(origins *o) { KILN_PROTECT(read_table(o)); }

static const kiln_tuple *tuple_at(const kiln_tuple *tuple, int64_t i) {
  if (i >= tuple->count || tuple->items[i].tag != KILN_TAG_TUPLE) return NULL;
  return tuple->items[i].u.tuple;
}

static void read_once(origins *o) {
  o->was_read = true;
  kiln_status_destroy(try_table(o)); /* an error is being told already */
  if (o->table.tag != KILN_TAG_TUPLE) return;
  const kiln_tuple *top = o->table.u.tuple;
  if (top->count == 3 && top->items[0].tag == KILN_TAG_STRING) {
    o->strings = tuple_at(top, 1);
    o->entries = o->strings ? tuple_at(top, 2) : NULL;
  } else {
    o->entries = top;
  }
}

/* -- Looking up -- */

static bool int_at(const kiln_tuple *tuple, int64_t i, int64_t *out) {
  if (i >= tuple->count || tuple->items[i].tag != KILN_TAG_INT) return false;
  *out = tuple->items[i].u.i;
  return *out >= 0;
}

static bool string_at(const kiln_tuple *tuple, int64_t i, kiln_str *out) {
  if (i < 0 || i >= tuple->count || tuple->items[i].tag != KILN_TAG_STRING) return false;
  *out = kiln_string_view(tuple->items[i].u.string);
  return true;
}

/* The last entry that begins at or before byte `at`; torch wrote them in order. */
static const kiln_tuple *find_entry(const origins *o, uint32_t at) {
  int64_t low = 0, high = o->entries->count, byte;
  while (low < high) {
    int64_t mid = low + (high - low) / 2;
    const kiln_tuple *entry = tuple_at(o->entries, mid);
    if (!entry || !int_at(entry, 0, &byte)) return NULL;
    if (byte <= at)
      low = mid + 1;
    else
      high = mid;
  }
  return low > 0 ? tuple_at(o->entries, low - 1) : NULL;
}

/* A text in pieces: lines by index, or one string. */
typedef struct pieces {
  const kiln_list *lines; /* NULL: `whole` */
  const kiln_tuple *strings;
  kiln_str whole;
} pieces;

static bool piece_at(const pieces *p, int64_t i, kiln_str *out) {
  if (!p->lines) {
    *out = p->whole;
    return i == 0;
  }
  if (i >= p->lines->count || p->lines->items[i].tag != KILN_TAG_INT) return false;
  return string_at(p->strings, p->lines->items[i].u.i, out);
}

/* Finds the line that byte `begin` of the text stands in. */
static bool find_line(const pieces *p, int64_t begin, int64_t end, int64_t first_line,
                      kiln_original *out) {
  kiln_str piece;
  int64_t line = first_line, passed = 0;
  for (int64_t i = 0; piece_at(p, i, &piece); i++) {
    size_t from = 0;
    for (;;) {
      const char *newline =
          from < piece.len ? memchr(piece.data + from, '\n', piece.len - from) : NULL;
      size_t stop = newline ? (size_t)(newline - piece.data) : piece.len;
      if (begin < passed + (int64_t)(stop - from) + (newline != NULL)) {
        size_t len = stop - from < sizeof out->text - 1 ? stop - from : sizeof out->text - 1;
        memcpy(out->text, piece.data + from, len);
        out->text[len] = 0;
        out->line = line <= INT32_MAX ? (int)line : 0;
        out->column = (int)(begin - passed) + 1;
        int64_t width = end - begin, room = (int64_t)len - (begin - passed);
        out->end = begin - passed + (width < room ? width : room > 0 ? room : 0);
        return begin - passed < (int64_t)sizeof out->text;
      }
      passed += (int64_t)(stop - from) + (newline != NULL);
      if (passed > MAX_SCAN) return false;
      if (!newline) break;
      line++;
      from = stop + 1;
    }
  }
  return false;
}

static bool describe(const origins *o, const kiln_tuple *entry, kiln_original *out) {
  const kiln_tuple *range = tuple_at(entry, 1), *source = range ? tuple_at(range, 0) : NULL;
  int64_t begin, end, first_line, file;
  kiln_str name = {0};
  pieces p = {.strings = o->strings};
  if (!source || source->count != 3 || !int_at(range, 1, &begin) || !int_at(range, 2, &end) ||
      !int_at(source, 2, &first_line)) {
    return false;
  }
  if (o->strings) {
    if (source->items[0].tag != KILN_TAG_LIST || !int_at(source, 1, &file)) return false;
    p.lines = source->items[0].u.list;
    if (!string_at(o->strings, file, &name)) return false;
  } else if (!string_at(source, 0, &p.whole) || !string_at(source, 1, &name)) {
    return false;
  }
  if (name.len == 0 || name.len >= sizeof out->file || end <= begin) return false;
  memcpy(out->file, name.data, name.len);
  out->file[name.len] = 0;
  return find_line(&p, begin, end, first_line, out);
}

static bool find(kiln_source_origin *origin, uint32_t at, kiln_original *out) {
  origins *o = (origins *)origin;
  pthread_mutex_lock(&o->lock);
  if (!o->was_read) read_once(o);
  pthread_mutex_unlock(&o->lock);
  const kiln_tuple *entry = o->entries ? find_entry(o, at) : NULL;
  return entry && describe(o, entry, out);
}

/* -- Making -- */

kiln_source_origin *kiln__origins_create(kiln_arena *arena, kiln_env *env, kiln_mapping *mapping,
                                         kiln_type_table *types, kiln_str entry) {
  origins *o = KILN_NEW(arena, origins);
  o->base.find = find;
  o->env = env;
  o->mapping = mapping;
  o->types = types;
  o->entry = kiln_arena_str(arena, entry);
  pthread_mutex_init(&o->lock, NULL);
  return &o->base;
}

void kiln__origins_deinit(kiln_source_origin *origin) {
  origins *o = (origins *)origin;
  if (!o) return;
  kiln_ivalue_release(o->table);
  pthread_mutex_destroy(&o->lock);
}
