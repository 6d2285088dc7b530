/* profile_file.c: profiles as text.
 *
 *   kiln profile 1
 *   site __torch__.M.forward#0123456789abcdef 2 records 1 times
 *   1 0 0 float32 0 0 0 -1 2 1 4 8 8 1
 *   1 1 0 none -1 -1 -1 -1 -1 0
 *   digest 0123456789abcdef0123456789abcdef
 *
 * A record is: values, how many of them None, how many no tensors; dtype, requires_grad, undefined,
 * kind and index of the device, rank, whether strides are known, sizes, strides. */
#include "profiler/profile_file.h"

#include <stdio.h>
#include <string.h>

#include "base/cursor.h"
#include "base/text.h"

enum { MOST_BYTES = 256 << 20, MOST_RECORDS = 1 << 24 };
/* Of a dimension: products of KILN_RECORD_RANK of them are looked at as a whole. */
static const int64_t most_size = (int64_t)1 << 46;

#define FAIL(...) return KILN_ERROR(KILN_INVALID_FILE, __VA_ARGS__)
static const char title[] = "kiln profile 1\n";

kiln_profile_file kiln_profile_file_in(kiln_arena *arena) {
  return (kiln_profile_file){
      .arena = arena, .sites = kiln_map_in(arena), .methods = kiln_map_in(arena)};
}

/* -- Profiles -- */

const kiln_kept_profile *kiln_profile_file_find(const kiln_profile_file *file, const char *site,
                                                int count) {
  const kiln_kept_profile *p = kiln_map_find(&file->sites, kiln_str_from(site));
  while (p && p->count != count) p = p->next;
  return p;
}

bool kiln_profile_file_knows(const kiln_profile_file *file, const char *method) {
  return kiln_map_find(&file->methods, kiln_str_from(method)) != NULL;
}

/* Records may have bytes that nobody set: field by field. */
static bool is_same_record(const kiln_type_record *a, const kiln_type_record *b) {
  bool same = a->dtype == b->dtype && a->requires_grad == b->requires_grad &&
              a->undefined == b->undefined && a->device_kind == b->device_kind &&
              a->device_index == b->device_index && a->rank == b->rank &&
              a->strides_known == b->strides_known && !a->seen == !b->seen &&
              !a->seen_none == !b->seen_none && !a->seen_other == !b->seen_other;
  for (int i = 0; same && i < a->rank; i++)
    same = a->sizes[i] == b->sizes[i] && (!a->strides_known || a->strides[i] == b->strides[i]);
  return same;
}

static bool is_same(const kiln_kept_profile *p, const kiln_type_record *records, int count) {
  bool same = p->count == count;
  for (int i = 0; same && i < count; i++) same = is_same_record(&p->records[i], &records[i]);
  return same;
}

static int64_t sum(int64_t a, int64_t b) { return a > INT64_MAX - b ? INT64_MAX : a + b; }

/* The most frequent first; the least frequent of too many goes, but for the new one. */
static void insert(kiln_profile_file *file, kiln_kept_profile *first, kiln_kept_profile *p) {
  kiln_kept_profile **link = &first;
  int ways = 0;
  while (*link && (*link)->times >= p->times && ++ways < KILN_PROFILE_WAYS) link = &(*link)->next;
  p->next = *link;
  *link = p;
  kiln_kept_profile *last = first;
  for (int i = 1; last && i < KILN_PROFILE_WAYS; i++) last = last->next;
  if (last) last->next = NULL;
  kiln_map_set(&file->sites, kiln_str_from(p->site), first);
}

void kiln_profile_file_add(kiln_profile_file *file, const char *site,
                           const kiln_type_record *records, int count, int64_t times) {
  if (strpbrk(site, " \t\r\n")) return; /* a line of the file could not hold it */
  kiln_kept_profile *first = kiln_map_find(&file->sites, kiln_str_from(site)), *p = NULL;
  for (kiln_kept_profile **link = &first; *link; link = &(*link)->next) {
    if (!is_same(*link, records, count)) continue;
    p = *link;
    *link = p->next;
    break;
  }
  if (!p) {
    p = KILN_NEW(file->arena, kiln_kept_profile);
    p->count = count;
    p->records = KILN_NEW_ARRAY(file->arena, kiln_type_record, count + 1);
    if (count) memcpy(p->records, records, (size_t)count * sizeof *records);
    p->site = first ? first->site : kiln_arena_strdup(file->arena, site);
    if (!first) kiln_vec_push(file->arena, &file->names, p->site);
    const char *end = strchr(p->site, '#');
    if (end)
      kiln_map_set(&file->methods, kiln_str_make(p->site, (size_t)(end - p->site)), file->arena);
    file->changed = true;
  }
  p->times = sum(p->times, times);
  insert(file, first, p);
}

void kiln_profile_file_add_all(kiln_profile_file *file, const kiln_profile_file *from) {
  for (int i = 0; i < from->names.count; i++) {
    const kiln_kept_profile *p = kiln_map_find(&from->sites, kiln_str_from(from->names.data[i]));
    for (; p; p = p->next) kiln_profile_file_add(file, p->site, p->records, p->count, p->times);
  }
}

/* -- Writing -- */

static void print_record(kiln_text *text, const kiln_type_record *r) {
  kiln_text_printf(text, "%u %u %u %s %d %d %d %d %d %d", r->seen, r->seen_none, r->seen_other,
                   r->dtype == KILN_DTYPE_NONE ? "none" : kiln_dtype_name((kiln_dtype)r->dtype),
                   r->requires_grad, r->undefined, r->device_kind, r->device_index, r->rank,
                   r->strides_known);
  for (int i = 0; i < r->rank; i++) kiln_text_printf(text, " %lld", (long long)r->sizes[i]);
  for (int i = 0; r->strides_known && i < r->rank; i++)
    kiln_text_printf(text, " %lld", (long long)r->strides[i]);
  kiln_text_puts(text, "\n");
}

/* The folder, "." if there is none, and the name in it. */
static kiln_status *split(const char *path, char out_folder[KILN_FOLDER_PATH],
                          const char **out_name) {
  const char *slash = strrchr(path, '/');
  const size_t len = slash ? (size_t)(slash - path) : 0;
  *out_name = slash ? slash + 1 : path;
  if (len >= KILN_FOLDER_PATH || !**out_name || strlen(*out_name) >= KILN_FOLDER_NAME)
    FAIL("%s: it is no name of a file, of at most %d bytes", path, KILN_FOLDER_NAME - 1);
  memcpy(out_folder, path, len);
  snprintf(out_folder + len, 2, "%s", !slash ? "." : len ? "" : "/");
  return NULL;
}

kiln_status *kiln_profile_file_write(const kiln_profile_file *file, const char *path) {
  char folder[KILN_FOLDER_PATH + 2], hex[33];
  const char *name;
  kiln_text text = kiln_text_in(file->arena);
  kiln_text_puts(&text, title);
  for (int i = 0; i < file->names.count; i++) {
    const kiln_kept_profile *p = kiln_map_find(&file->sites, kiln_str_from(file->names.data[i]));
    for (; p; p = p->next) {
      kiln_text_printf(&text, "site %s %d records %lld times\n", p->site, p->count,
                       (long long)p->times);
      for (int k = 0; k < p->count; k++) print_record(&text, &p->records[k]);
    }
  }
  kiln_digest_format(kiln_digest_bytes(text.data, text.len), hex);
  kiln_text_printf(&text, "digest %s\n", hex);
  KILN_TRY(split(path, folder, &name));
  const kiln_str whole = kiln_str_make(text.data, text.len);
  return kiln_folder_write(folder, name, &whole, 1);
}

/* -- Reading -- */

static bool is_word(char c) { return c != ' ' && c != '\n'; }
static kiln_str take_word(kiln_cursor *c) {
  kiln_cursor_skip(c);
  return kiln_cursor_take(c, is_word);
}

static bool take_int(kiln_cursor *c, int64_t least, int64_t most, int64_t *out) {
  if (!kiln_str_parse_i64(take_word(c), out)) return false;
  return *out >= least && *out <= most;
}

static bool take_dtype(kiln_cursor *c, int16_t *out) {
  const kiln_str word = take_word(c);
  *out = KILN_DTYPE_NONE;
  if (kiln_str_is(word, "none")) return true;
  for (int d = 0; d < KILN_DTYPE__COUNT; d++) {
    const char *name = kiln_dtype_name((kiln_dtype)d);
    if (name && kiln_str_is(word, name)) *out = (int16_t)d;
  }
  return *out != KILN_DTYPE_NONE;
}

/* As of tensors that can be: their places are numbers of 63 bits. */
static bool is_possible(const kiln_type_record *r) {
  double elements = 1, reach = 1;
  for (int i = 0; i < r->rank; i++) {
    if (r->sizes[i] > 0) elements *= (double)r->sizes[i];
    if (r->sizes[i] > 0 && r->strides[i] > 0)
      reach += (double)(r->sizes[i] - 1) * (double)r->strides[i];
  }
  return elements < (double)most_size && reach < (double)most_size;
}

static bool take_record(kiln_cursor *c, kiln_type_record *r) {
  int64_t n[9], dtype_at = 3;
  const int64_t least[] = {0, 0, 0, 0, -1, -1, -1, -1, -1}, counts = UINT32_MAX;
  const int64_t most[] = {counts, counts, counts, 0, 1, 1, INT8_MAX, INT16_MAX, KILN_RECORD_RANK};
  kiln_type_record_init(r);
  for (int64_t i = 0; i < 9; i++) {
    const bool good =
        i == dtype_at ? take_dtype(c, &r->dtype) : take_int(c, least[i], most[i], &n[i]);
    if (!good) return false;
  }
  int64_t known;
  if (!take_int(c, 0, 1, &known)) return false;
  r->seen = (uint32_t)n[0];
  r->seen_none = (uint32_t)n[1];
  r->seen_other = (uint32_t)n[2];
  r->requires_grad = (int8_t)n[4];
  r->undefined = (int8_t)n[5];
  r->device_kind = (int8_t)n[6];
  r->device_index = (int16_t)n[7];
  r->rank = (int8_t)n[8];
  r->strides_known = known;
  for (int i = 0; i < r->rank; i++)
    if (!take_int(c, KILN_DIM_UNKNOWN, most_size, &r->sizes[i])) return false;
  for (int i = 0; known && i < r->rank; i++)
    if (!take_int(c, KILN_DIM_UNKNOWN, most_size, &r->strides[i])) return false;
  return (r->rank >= 0 || !known) && is_possible(r);
}

static kiln_status *take_site(kiln_profile_file *file, kiln_cursor *c) {
  int64_t count, times;
  const kiln_str site = take_word(c);
  if (!take_int(c, 0, MOST_RECORDS, &count) || !kiln_cursor_accept(c, "records") ||
      !take_int(c, 1, INT64_MAX, &times) || !kiln_cursor_accept(c, "times"))
    FAIL("a site cannot be read");
  if (count > (int64_t)kiln_cursor_rest(c).len) FAIL("it ends early");
  kiln_type_record *records = KILN_NEW_ARRAY(file->arena, kiln_type_record, count + 1);
  for (int64_t i = 0; i < count; i++)
    if (!take_record(c, &records[i]))
      FAIL("record %lld of " KILN_STR_FMT " cannot be read", (long long)i + 1, KILN_STR_ARG(site));
  kiln_profile_file_add(file, kiln_arena_str(file->arena, site).data, records, (int)count, times);
  return NULL;
}

static kiln_status *parse(kiln_profile_file *file, kiln_str text) {
  enum { TAIL = 7 + 32 + 1 };
  char hex[33];
  if (!kiln_str_starts(text, title)) FAIL("it is no profile of Kiln's");
  if (text.len < sizeof title - 1 + TAIL) FAIL("it ends early");
  const kiln_str tail = kiln_str_make(text.data + text.len - TAIL, TAIL);
  text.len -= TAIL;
  kiln_digest_format(kiln_digest_bytes(text.data, text.len), hex);
  if (!kiln_str_starts(tail, "digest ") || memcmp(tail.data + 7, hex, 32) != 0)
    FAIL("it is damaged");
  kiln_cursor c = kiln_cursor_of(text);
  (void)kiln_cursor_accept(&c, title);
  while (kiln_cursor_accept(&c, "site ")) KILN_TRY(take_site(file, &c));
  kiln_cursor_skip(&c);
  if (kiln_cursor_rest(&c).len) FAIL("a line is no site");
  return NULL;
}

kiln_status *kiln_profile_file_read(kiln_profile_file *file, const char *path) {
  char folder[KILN_FOLDER_PATH + 2];
  const char *name;
  kiln_str text;
  const bool changed = file->changed;
  KILN_TRY(split(path, folder, &name));
  kiln_status *status = kiln_folder_read(folder, name, MOST_BYTES, file->arena, &text);
  if (!status) status = parse(file, text);
  file->changed = changed;
  return status ? kiln_status_note(status, "%s", path) : NULL;
}
