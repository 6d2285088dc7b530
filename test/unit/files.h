/* files.h: small files, read and written whole. */
#pragma once

#include "test/unit/unit.h"

/* How many bytes there are, at most `capacity`. */
static inline size_t read_file(const char *path, void *data, size_t capacity) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  const size_t size = fread(data, 1, capacity, file);
  assert_int_equal(fclose(file), 0);
  return size;
}

static inline void write_file(const char *path, const void *data, size_t size) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(data, 1, size, file), size);
  assert_int_equal(fclose(file), 0);
}
