/* formats.c: names foreign files by the table formats.def. */
#include "frontend/formats.h"

#include <ctype.h>
#include <limits.h>

#define EXPORT \
  "export the module with torch.jit.script(module).save(…) or torch.jit.trace(…).save(…)"

typedef enum format_kind { BYTES, TEXT, PROSE, RECORD } format_kind;

static const struct {
  format_kind kind;
  size_t offset, size;
  const char *magic, *name, *advice;
} formats[] = {
#define KILN_FORMAT(kind, offset, magic, name, advice) \
  {kind, offset, sizeof magic - 1, magic, name, advice},
#include "frontend/formats.def"
#undef KILN_FORMAT
};
enum { FORMAT_COUNT = sizeof formats / sizeof formats[0], MAX_BLANKS = 4096, LOOKED_AT = 512 };

static kiln_status *refuse(int i) {
  return KILN_ERROR(KILN_INVALID_FILE, "%s, not a TorchScript archive; %s", formats[i].name,
                    formats[i].advice);
}

static bool has_bytes(const char *data, size_t size, int i) {
  if (size < formats[i].offset || size - formats[i].offset < formats[i].size) return false;
  for (size_t k = 0; k < formats[i].size; k++) {
    const char c = formats[i].magic[k];
    if (c != '?' && c != data[formats[i].offset + k]) return false;
  }
  return true;
}

static bool has_text(const char *data, size_t size, int i) {
  if (size < formats[i].size) return false;
  for (size_t k = 0; k < formats[i].size; k++) {
    if (tolower((unsigned char)data[k]) != formats[i].magic[k]) return false;
  }
  return true;
}

static bool is_prose(const char *bytes, size_t size) {
  for (size_t i = 0; i < size && i < LOOKED_AT; i++) {
    if (iscntrl((unsigned char)bytes[i]) && !isspace((unsigned char)bytes[i])) return false;
  }
  return true;
}

/* The row that fits, or INT_MAX. */
static int find_format(const char *bytes, size_t size) {
  size_t blanks = 0;
  if (size >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0) blanks = 3;
  while (blanks < size && blanks < MAX_BLANKS && isspace((unsigned char)bytes[blanks])) blanks++;
  for (int i = 0; i < FORMAT_COUNT; i++) {
    if (formats[i].kind == BYTES && has_bytes(bytes, size, i)) return i;
    if (formats[i].kind == PROSE && is_prose(bytes, size)) return i;
    if (formats[i].kind == TEXT && has_text(bytes + blanks, size - blanks, i)) return i;
  }
  return INT_MAX;
}

kiln_status *kiln_format_refuse_model(const void *data, size_t size) {
  if (size == 0) {
    return KILN_ERROR(KILN_INVALID_FILE, "an empty file, not a TorchScript archive");
  }
  return kiln_format_refuse_row(find_format(data, size));
}

kiln_status *kiln_format_refuse_values(const void *data, size_t size) {
  const int row = find_format(data, size);
  if (size == 0) return KILN_ERROR(KILN_INVALID_FILE, "an empty file, not one of torch.save");
  if (row == INT_MAX) return NULL;
  return KILN_ERROR(KILN_INVALID_FILE, "%s, not an archive as torch.save writes it since 1.6",
                    formats[row].name);
}

int kiln_format_of_entry(kiln_str name) {
  for (int i = 0; i < FORMAT_COUNT; i++) {
    const size_t size = formats[i].size;
    if (formats[i].kind == RECORD && name.len >= size &&
        memcmp(name.data + name.len - size, formats[i].magic, size) == 0) {
      return i;
    }
  }
  return INT_MAX;
}

kiln_status *kiln_format_refuse_row(int row) { return row < FORMAT_COUNT ? refuse(row) : NULL; }
