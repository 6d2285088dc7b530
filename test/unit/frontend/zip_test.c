/* zip_test.c: members in place and inflated, and archives that lie. */
#include <stdlib.h>
#include <unistd.h>

#include "test/unit/frontend/archive_support.h"
#include "test/unit/sweep.h"

static archive_builder builder;

typedef struct reading {
  kiln_mapping *mapping;
  kiln_zip_options options;
  const char *name;
  kiln_str data;
  bool in_place;
  bool check_all; /* every entry's sum, before the read */
} reading;

static kiln_status *open_and_read(kiln_mem *mem, reading *r, const char *expected) {
  kiln_zip *zip;
  KILN_TRY(kiln_zip_open(kiln_arena_scoped(mem), r->mapping, &r->options, &zip));
  if (r->check_all) KILN_TRY(kiln_zip_check_all(zip));
  if (!r->name) return NULL;
  kiln_zip_entry *entry = kiln_zip_find(zip, kiln_str_from(r->name));
  if (!entry) return KILN_ERROR(KILN_NOT_FOUND, "no record");
  KILN_TRY(kiln_zip_read(zip, entry, &r->data));
  const char *begin = r->mapping->data;
  r->in_place = r->data.data >= begin && r->data.data < begin + r->mapping->size;
  if (expected && !kiln_str_is(r->data, expected)) return KILN_ERROR(KILN_INTERNAL, "other bytes");
  return NULL;
}
static kiln_status *try_read(kiln_mem *mem, reading *r, const char *expected) {
  KILN_PROTECT(open_and_read(mem, r, expected));
}

/* Reads `name` of the builder's archive; `expected` is compared while the arena lives. */
static kiln_status *read_with(kiln_mem *mem, reading *r, const char *name, const char *expected) {
  r->name = name;
  KILN_TRY(kiln_mapping_wrap(mem, builder.bytes, builder.size, &r->mapping));
  kiln_status *status = try_read(mem, r, expected);
  kiln_owner_release(&r->mapping->owner);
  return status;
}

static kiln_mem *mem;

static kiln_status *read_name(const char *name, const char *expected) {
  reading r = {0};
  return read_with(mem, &r, name, expected);
}

static void begin(void) { memset(&builder, 0, sizeof builder); }

static const char *const long_text = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                                     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab";

static void reads_members(void **state) {
  (void)state;
  begin();
  archive_add(&builder, "top/version", "3\n");
  archive_add_named(&builder, "top/code/a.py", 13, long_text, strlen(long_text), true, 0, false);
  archive_add(&builder, "top/empty", "");
  archive_add(&builder, "other/version", "9\n");
  archive_finish(&builder);
  reading r = {0};
  assert_ok(read_with(mem, &r, "version", "3\n"));
  assert_true(r.in_place);
  assert_int_equal((uintptr_t)r.data.data % 64, (uintptr_t)builder.bytes % 64);
  assert_ok(read_with(mem, &r, "code/a.py", long_text));
  assert_false(r.in_place);
  assert_ok(read_name("empty", ""));
  assert_error(read_name("other/version", NULL), KILN_NOT_FOUND, NULL);
}

/* Whatever of an entry is in its zip64 field; numbers that this lacks are 2^32 - 1. */
static void reads_zip64(void **state) {
  (void)state;
  for (int zip64 = 1; zip64 <= 3; zip64++) {
    for (int lacks = 0; lacks <= 1; lacks++) {
      begin();
      builder.zip64 = zip64;
      builder.zip64_lacks = lacks;
      archive_add(&builder, "top/version", "3\n");
      archive_add_named(&builder, "top/a", 5, long_text, strlen(long_text), true, 0, false);
      archive_finish(&builder);
      if (!lacks) {
        assert_ok(read_name("version", "3\n"));
        assert_ok(read_name("a", long_text));
      } else {
        assert_error(read_name("a", NULL), KILN_INVALID_FILE,
                     zip64 == 1 ? "reaches past the file's end" : "damaged header");
      }
    }
  }
}

static void names_flat_archives(void **state) {
  (void)state;
  begin();
  archive_add(&builder, "metadata.json", "{}");
  archive_add(&builder, "model.weights.h5", "x");
  archive_finish(&builder);
  assert_error(read_name("x", NULL), KILN_INVALID_FILE, "a Keras model");
  begin();
  archive_add(&builder, "readme", "x");
  archive_finish(&builder);
  assert_error(read_name("x", NULL), KILN_INVALID_FILE, "its first record 'readme'");
}

static void refuses_lies(void **state) {
  (void)state;
  begin();
  archive_add(&builder, "t/a", "x");
  archive_add_named(&builder, "t/crc", 5, "hello", 5, false, 0, true);
  archive_add_named(&builder, "t/short", 7, long_text, strlen(long_text), true, 50, false);
  archive_add_named(&builder, "t/long", 6, long_text, strlen(long_text), true, 200, false);
  archive_add_named(&builder, "t/bomb", 6, long_text, strlen(long_text), true, 0x70000000, false);
  archive_add_named(&builder, "t/two", 5, "hello", 5, false, 4, false);
  archive_finish(&builder);
  assert_ok(read_name("a", "x"));
  assert_error(read_name("crc", NULL), KILN_INVALID_FILE, "checksum");
  assert_error(read_name("short", NULL), KILN_INVALID_FILE, "stated size");
  assert_error(read_name("long", NULL), KILN_INVALID_FILE, "stated size");
  assert_error(read_name("bomb", NULL), KILN_INVALID_FILE, "false size");
  assert_error(read_name("two", NULL), KILN_INVALID_FILE, "two sizes");
  reading r = {.options = {.crc_warns = true}};
  assert_ok(read_with(mem, &r, "crc", "hello"));
  r.options = (kiln_zip_options){.inflate_cap = 10, .crc_warns = true};
  assert_error(read_with(mem, &r, "short", NULL), KILN_LIMIT, "limit");
}

static void checks_every_sum(void **state) {
  (void)state;
  for (int i = 0; i < 6; i++) { /* which sum is wrong, and whether its entry is deflated */
    reading r = {.check_all = true};
    begin();
    archive_add(&builder, "t/a", "x");
    archive_add_named(&builder, "t/b", 3, long_text, strlen(long_text), i % 2, 0, i / 2 == 1);
    archive_add_named(&builder, "t/c", 3, long_text, strlen(long_text), i % 2, 0, i / 2 == 2);
    archive_finish(&builder);
    kiln_status *status = read_with(mem, &r, "a", "x");
    if (i / 2 == 0) {
      assert_ok(status);
    } else {
      assert_error(status, KILN_INVALID_FILE,
                   i / 2 == 1 ? "record 'b' has a wrong" : "record 'c' has a wrong");
    }
    r.options.crc_warns = true;
    assert_ok(read_with(mem, &r, "a", "x"));
  }
}

static void refuses_names(void **state) {
  (void)state;
  static const struct {
    const char *name;
    size_t size;
  } bad[] = {{"t/../x", 6}, {"t/a\0b", 5}, {"/t/a", 4}, {"t\\a", 3}, {"t/..", 4}, {"naked", 5}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    begin();
    archive_add_named(&builder, bad[i].name, bad[i].size, "x", 1, false, 0, false);
    archive_finish(&builder);
    assert_error(read_name(NULL, NULL), KILN_INVALID_FILE, NULL);
  }
  begin();
  archive_add(&builder, "t/a", "1");
  archive_add(&builder, "t/a", "2");
  archive_finish(&builder);
  assert_error(read_name(NULL, NULL), KILN_INVALID_FILE, "two records");
}

/* Every truncation, and every byte changed, gives a status or a result. */
static void survives_damage(void **state) {
  (void)state;
  begin();
  archive_add(&builder, "top/version", "3\n");
  archive_add_named(&builder, "top/code", 8, long_text, strlen(long_text), true, 0, false);
  archive_finish(&builder);
  size_t whole = builder.size;
  for (size_t size = 0; size < whole; size++) {
    builder.size = size;
    assert_error(read_name("version", NULL), KILN_INVALID_FILE, NULL);
  }
  builder.size = whole;
  for (size_t i = 0; i < whole; i++) {
    for (int bit = 0; bit < 8; bit += 3) {
      builder.bytes[i] ^= (unsigned char)(1 << bit);
      kiln_status_destroy(read_name("code", NULL));
      builder.bytes[i] ^= (unsigned char)(1 << bit);
    }
  }
  assert_ok(read_name("code", long_text));
}

static kiln_status *sweep_read(kiln_mem *swept, void *arg) {
  (void)arg;
  reading r = {0};
  return read_with(swept, &r, "code/a.py", long_text);
}

static void survives_lack_of_memory(void **state) {
  (void)state;
  begin();
  archive_add_named(&builder, "t/code/a.py", 11, long_text, strlen(long_text), true, 0, false);
  archive_finish(&builder);
  sweep(sweep_read, NULL);
}

static void refuses_files(void **state) {
  (void)state;
  kiln_mapping *mapping = NULL;
  assert_error(kiln_mapping_open(mem, "/nonexistent/file", NULL, &mapping), KILN_INVALID_FILE,
               "cannot open");
  assert_error(kiln_mapping_open(mem, "/", NULL, &mapping), KILN_INVALID_FILE,
               "a directory, not a file");
}

/* Of the mapping that begins there, KiB that are in this process's memory. */
static long resident_kb(const void *begin) {
  char line[256], wanted[32];
  long kb = -1;
  bool here = false;
  FILE *f = fopen("/proc/self/smaps", "r");
  assert_non_null(f);
  snprintf(wanted, sizeof wanted, "%lx-", (unsigned long)(uintptr_t)begin);
  while (kb < 0 && fgets(line, sizeof line, f)) {
    if (strncmp(line, wanted, strlen(wanted)) == 0) here = true;
    if (here && sscanf(line, "Rss: %ld", &kb) == 1) break;
  }
  fclose(f);
  return kb;
}

static unsigned sum_of(const unsigned char *data, size_t size) {
  unsigned sum = 0;
  for (size_t i = 0; i < size; i++) sum = 31 * sum + data[i];
  return sum;
}

/* Whole pages of a file leave memory, and are the same when they come back. */
static void gives_pages_back(void **state) {
  enum { PAGE = 4096, PAGES = 64 };
  (void)state;
  char path[] = "/tmp/kiln_mapping_XXXXXX";
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  unsigned char page[PAGE];
  for (int i = 0; i < PAGES; i++) {
    for (int k = 0; k < PAGE; k++) page[k] = (unsigned char)(i * 7 + k * 13);
    assert_int_equal(write(fd, page, PAGE), PAGE);
  }
  close(fd);
  kiln_mapping *mapping;
  assert_ok(kiln_mapping_open(mem, path, NULL, &mapping));
  unlink(path);
  const unsigned char *data = mapping->data;
  const unsigned sum = sum_of(data, mapping->size);
  assert_int_equal(resident_kb(data), PAGES * PAGE / 1024);
  mapping->owner.give_back(&mapping->owner, data + 100, 3 * PAGE); /* two whole ones */
  assert_int_equal(resident_kb(data), (PAGES - 2) * PAGE / 1024);
  mapping->owner.give_back(&mapping->owner, data + 1, PAGE); /* none */
  assert_int_equal(resident_kb(data), (PAGES - 2) * PAGE / 1024);
  mapping->owner.give_back(&mapping->owner, data, mapping->size);
  assert_int_equal(resident_kb(data), 0);
  assert_int_equal(sum_of(data, mapping->size), sum);
  kiln_owner_release(&mapping->owner);
}

static int set_up(void **state) {
  (void)state;
  kiln_status *status = kiln_mem_create(KILN_MEM_DEFAULT, &mem);
  return status != NULL;
}
static int tear_down(void **state) {
  (void)state;
  kiln_mem_release(mem);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reads_members),           cmocka_unit_test(refuses_lies),
      cmocka_unit_test(refuses_names),           cmocka_unit_test(checks_every_sum),
      cmocka_unit_test(survives_damage),         cmocka_unit_test(refuses_files),
      cmocka_unit_test(survives_lack_of_memory), cmocka_unit_test(reads_zip64),
      cmocka_unit_test(names_flat_archives),     cmocka_unit_test(gives_pages_back),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
