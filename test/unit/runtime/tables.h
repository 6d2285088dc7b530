/* tables.h: reading the tables of test/data/runtime. KILN_TEST_DATA is that folder's parent. */
#pragma once

#include <stdlib.h>

#include "runtime/tensor.h"
#include "test/unit/unit.h"

static inline FILE *open_table(const char *name) {
  char path[1000];
  snprintf(path, sizeof path, "%s/runtime/%s", KILN_TEST_DATA, name);
  FILE *file = fopen(path, "r");
  if (!file) print_error("cannot open %s\n", path);
  assert_non_null(file);
  return file;
}

/* "F32" as the tables name dtypes. */
static inline kiln_dtype table_dtype(const char *name) {
#define ONE(name_, ...) \
  if (!strcmp(name, #name_)) return KILN_DTYPE_##name_;
  KILN_DTYPE_LIST(ONE)
#undef ONE
  print_error("no dtype %s\n", name);
  fail();
  return KILN_DTYPE_NONE;
}

static inline kiln_mem *test_mem(void) {
  kiln_mem *mem = NULL;
  assert_ok(kiln_mem_create(KILN_MEM_DEFAULT, &mem));
  return mem;
}
