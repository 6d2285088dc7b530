/* mutate.c: changes that keep the structure of what is changed, since bytes alone rarely get past a
 * lexer or a CRC. */
#include "test/fuzz/mutate.h"

#include "test/unit/frontend/archive_support.h"

static uint32_t state;

static uint32_t draw(uint32_t below) {
  state = state * 1664525u + 1013904223u;
  return below ? (state >> 8) % below : 0;
}

/* -- Text -- */

typedef struct piece {
  size_t begin, size;
} piece;

static bool in_word(uint8_t c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         c == '.' || c == ':';
}
static bool in_number(uint8_t c) { return c >= '0' && c <= '9'; }

/* A run of such bytes that `skip` draws from somewhere in the text; size 0: none. */
static piece find_run(const uint8_t *data, size_t size, bool (*is)(uint8_t)) {
  size_t at = draw((uint32_t)size), end = 0;
  for (size_t i = 0; i < size && !(is(data[at]) && (at == 0 || !is(data[at - 1]))); i++) {
    at = at + 1 < size ? at + 1 : 0;
  }
  for (end = at; end < size && is(data[end]);) end++;
  return (piece){at, end - at};
}

/* A line or up to four, with their ends. */
static piece find_lines(const uint8_t *data, size_t size) {
  size_t at = draw((uint32_t)size), end = 0;
  while (at > 0 && data[at - 1] != '\n') at--;
  end = at;
  for (uint32_t n = 1 + draw(4); n > 0 && end < size; n--) {
    while (end < size && data[end] != '\n') end++;
    if (end < size) end++;
  }
  return (piece){at, end - at};
}

/* Puts `n` bytes in place of a piece; the size, unchanged when there is no room. */
static size_t replace(uint8_t *data, size_t size, size_t max_size, piece old, const void *bytes,
                      size_t n) {
  if (size - old.size + n > max_size) return size;
  memmove(data + old.begin + n, data + old.begin + old.size, size - old.begin - old.size);
  memcpy(data + old.begin, bytes, n);
  return size - old.size + n;
}

static size_t change_number(uint8_t *data, size_t size, size_t max_size) {
  static const char *const numbers[] = {"0",
                                        "1",
                                        "2",
                                        "3",
                                        "-1",
                                        "-2",
                                        "4",
                                        "5",
                                        "6",
                                        "7",
                                        "11",
                                        "15",
                                        "17",
                                        "33",
                                        "64",
                                        "100",
                                        "-100",
                                        "65536",
                                        "2147483647",
                                        "-2147483648",
                                        "4294967296",
                                        "1000000000000",
                                        "9223372036854775807",
                                        "-9223372036854775808",
                                        "9223372036854775808",
                                        "0.5",
                                        "-1.5",
                                        "1e308",
                                        "inf",
                                        "nan",
                                        "None",
                                        "True",
                                        "[0, 1]",
                                        "[]",
                                        "[-1]",
                                        "[9223372036854775807]",
                                        "[1, 0, 2]",
                                        "[4294967296, 4294967296]",
                                        "\"a\""};
  piece old = find_run(data, size, in_number);
  if (!old.size) return size;
  if (old.begin > 0 && data[old.begin - 1] == '-' && draw(2)) old.begin--, old.size++;
  const char *text = numbers[draw(sizeof numbers / sizeof numbers[0])];
  return replace(data, size, max_size, old, text, strlen(text));
}

size_t fuzz_mutate_text(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
  uint8_t copy[4096];
  state = seed;
  piece a, b;
  if (size < 4) return LLVMFuzzerMutate(data, size, max_size);
  switch (draw(8)) {
    case 0:
    case 1: return change_number(data, size, max_size);
    case 2:
    case 3: /* a word for another */
      a = find_run(data, size, in_word);
      b = find_run(data, size, in_word);
      break;
    case 4: /* lines doubled or moved over others */
      a = find_lines(data, size);
      b = find_lines(data, size);
      if (draw(2)) a.size = 0;
      break;
    case 5: /* lines dropped */
      a = find_lines(data, size);
      b = (piece){0, 0};
      break;
    default: return LLVMFuzzerMutate(data, size, max_size);
  }
  if (b.size > sizeof copy) b.size = sizeof copy;
  memcpy(copy, data + b.begin, b.size);
  return replace(data, size, max_size, a, copy, b.size);
}

/* -- Archives -- */

enum { member_max = ARCHIVE_MAX / 4 };

static archive_builder out;
static uint8_t member[member_max];

static uint32_t get(const uint8_t *p, int bytes) {
  uint32_t v = 0;
  for (int i = 0; i < bytes; i++) v |= (uint32_t)p[i] << (8 * i);
  return v;
}

typedef struct entry {
  const char *name;
  size_t name_size;
  bool deflated;
  const uint8_t *packed;
  size_t packed_size;
} entry;

/* The entries of a plain directory; -1 when it is not one. */
static int read_directory(const uint8_t *data, size_t size, entry entries[ARCHIVE_RECORDS]) {
  if (size < 22) return -1;
  const uint8_t *end = data + size - 22;
  if (get(end, 4) != 0x06054b50) return -1;
  size_t at = get(end + 16, 4);
  int count = (int)get(end + 10, 2);
  if (count > ARCHIVE_RECORDS - 2) return -1;
  for (int i = 0; i < count; i++) {
    const uint8_t *p = data + at;
    if (at + 46 > size || get(p, 4) != 0x02014b50) return -1;
    size_t name_size = get(p + 28, 2), local = get(p + 42, 4), packed = get(p + 20, 4);
    at += 46 + name_size + get(p + 30, 2) + get(p + 32, 2);
    if (at > size || name_size > 120 || local + 30 > size) return -1;
    size_t begin = local + 30 + get(data + local + 26, 2) + get(data + local + 28, 2);
    if (begin > size || packed > size - begin) return -1;
    entries[i] =
        (entry){(const char *)p + 46, name_size, get(p + 10, 2) == 8, data + begin, packed};
  }
  return count;
}

/* Into `member`; the size. */
static size_t unpack(const entry *e) {
  if (!e->deflated) {
    size_t size = e->packed_size < member_max ? e->packed_size : member_max;
    memcpy(member, e->packed, size);
    return size;
  }
  z_stream s = {0};
  if (inflateInit2(&s, -15) != Z_OK) return 0;
  s.next_in = (Bytef *)(uintptr_t)e->packed;
  s.avail_in = (uInt)e->packed_size;
  s.next_out = member;
  s.avail_out = member_max;
  inflate(&s, Z_FINISH);
  inflateEnd(&s);
  return s.total_out;
}

static bool ends_with(const entry *e, const char *tail) {
  size_t n = strlen(tail);
  return e->name_size >= n && memcmp(e->name + e->name_size - n, tail, n) == 0;
}

static size_t change_member(const entry *e, size_t size) {
  if (ends_with(e, ".py") || ends_with(e, "inputs")) {
    return fuzz_mutate_text(member, size, member_max, state);
  }
  return LLVMFuzzerMutate(member, size, member_max);
}

size_t fuzz_mutate_archive(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
  entry entries[ARCHIVE_RECORDS];
  state = seed;
  if (draw(16) == 0) return LLVMFuzzerMutate(data, size, max_size);
  int count = read_directory(data, size, entries);
  if (count <= 0) return LLVMFuzzerMutate(data, size, max_size);
  /* Of the members, sources and pickles are the ones worth it. */
  int chosen = (int)draw((uint32_t)count);
  for (int i = 0; i < 4 && !ends_with(&entries[chosen], ".py"); i++) {
    if (i > 0 && ends_with(&entries[chosen], ".pkl")) break;
    chosen = (int)draw((uint32_t)count);
  }
  uint32_t how = draw(24);
  out.size = 0;
  out.count = 0;
  for (int i = 0; i < count; i++) {
    size_t n = unpack(&entries[i]);
    if (i == chosen && how == 0) continue;
    if (i == chosen && how > 2) n = change_member(&entries[i], n);
    if (out.size + n + 4096 > ARCHIVE_MAX / 2) return size;
    /* Source may be deflated; weights never are. */
    bool deflated = entries[i].deflated && !(i == chosen && how == 3);
    archive_add_named(&out, entries[i].name, entries[i].name_size, member, n, deflated, 0, false);
    if (i == chosen && how == 1) {
      archive_add_named(&out, entries[i].name, entries[i].name_size, member, n, deflated, 0, false);
    }
    if (i == chosen && how == 2 && i + 1 < count) { /* under the name of another */
      n = unpack(&entries[i + 1]);
      archive_add_named(&out, entries[i].name, entries[i].name_size, member, n, false, 0, false);
    }
  }
  archive_finish(&out);
  if (out.size > max_size) return size;
  memcpy(data, out.bytes, out.size);
  return out.size;
}
