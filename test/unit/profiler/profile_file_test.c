/* profile_file_test.c: profiles as text: written and read, merged, damaged, not to be trusted. */
#include "profiler/profile_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/unit/files.h"
#include "test/unit/ir/ir_support.h"

static char folder[] = "/tmp/kiln_profiles_XXXXXX", path[64];

static int make_folder(void **state) {
  (void)state;
  if (!mkdtemp(folder)) return -1;
  snprintf(path, sizeof path, "%s/x", folder);
  return 0;
}
static int remove_folder(void **state) {
  (void)state;
  unlink(path);
  return rmdir(folder);
}

static kiln_type_record matrix(int64_t rows, int64_t columns) {
  kiln_type_record r = {.seen = 1, .dtype = KILN_DTYPE_F32, .rank = 2, .strides_known = true};
  r.device_index = -1;
  r.sizes[0] = rows, r.sizes[1] = columns;
  r.strides[0] = columns, r.strides[1] = 1;
  return r;
}
static kiln_type_record none(void) {
  kiln_type_record r = {.seen = 3, .seen_none = 3, .dtype = KILN_DTYPE_NONE, .rank = -1};
  r.requires_grad = r.undefined = r.device_kind = -1, r.device_index = -1;
  return r;
}
static kiln_type_record unlike(void) { /* sizes that differed, strides too */
  kiln_type_record r = matrix(KILN_DIM_UNKNOWN, 4);
  r.strides[0] = KILN_DIM_UNKNOWN;
  return r;
}

static void read_all(fixture *f, kiln_profile_file *file) {
  *file = kiln_profile_file_in(f->arena);
  assert_ok(kiln_profile_file_read(file, path));
}

static void what_is_written_is_read(void **state) {
  fixture *f = *state;
  const kiln_type_record records[] = {matrix(2, 3), none(), unlike()};
  kiln_profile_file file = kiln_profile_file_in(f->arena), again;
  kiln_profile_file_add(&file, "__torch__.M.forward#01", records, 3, 2);
  kiln_profile_file_add(&file, "__torch__.M.encode#23", records + 1, 1, 1);
  kiln_profile_file_add(&file, "__torch__.N.forward#45", records, 0, 1);
  kiln_profile_file_add(&file, "a name\nwith lines", records, 1, 1); /* no line could hold it */
  assert_true(file.changed);
  assert_ok(kiln_profile_file_write(&file, path));
  read_all(f, &again);
  assert_false(again.changed);
  assert_int_equal(again.names.count, 3);
  const kiln_kept_profile *p = kiln_profile_file_find(&again, "__torch__.M.forward#01", 3);
  assert_non_null(p);
  assert_int_equal(p->times, 2);
  assert_memory_equal(&p->records[0], &records[0], sizeof *records);
  assert_memory_equal(&p->records[1], &records[1], sizeof *records);
  assert_memory_equal(&p->records[2], &records[2], sizeof *records);
  assert_null(kiln_profile_file_find(&again, "__torch__.M.forward#01", 2));
  assert_null(kiln_profile_file_find(&again, "__torch__.M.forward#02", 3));
  assert_true(kiln_profile_file_knows(&again, "__torch__.M.encode"));
  assert_false(kiln_profile_file_knows(&again, "__torch__.M.enc"));
  kiln_profile_file_add(&again, "__torch__.M.forward#01", records, 3,
                        1); /* as it was seen before */
  assert_false(again.changed);
  assert_int_equal(kiln_profile_file_find(&again, "__torch__.M.forward#01", 3)->times, 3);
}

/* Of the ways that a site was seen in the most frequent is found first, and a few are kept. */
static void ways_are_merged(void **state) {
  fixture *f = *state;
  kiln_profile_file file = kiln_profile_file_in(f->arena), more;
  for (int i = 0; i < 9; i++) {
    const kiln_type_record r = matrix(i + 1, 8);
    kiln_profile_file_add(&file, "m#1", &r, 1, i == 4 ? 20 : i + 1);
  }
  const kiln_kept_profile *p = kiln_profile_file_find(&file, "m#1", 1);
  int ways = 0;
  assert_int_equal(p->records[0].sizes[0], 5);
  for (; p; p = p->next) ways++;
  assert_int_equal(ways, KILN_PROFILE_WAYS);
  assert_ok(kiln_profile_file_write(&file, path));
  read_all(f, &more);
  const kiln_type_record r = matrix(9, 8);
  for (int i = 0; i < 12; i++) kiln_profile_file_add(&more, "m#1", &r, 1, 1);
  assert_int_equal(kiln_profile_file_find(&more, "m#1", 1)->records[0].sizes[0], 9);
  kiln_profile_file_add_all(&more, &file);
  assert_int_equal(kiln_profile_file_find(&more, "m#1", 1)->records[0].sizes[0], 5);
}

/* With the digest that it should have. */
static void put_signed(fixture *f, const char *body) {
  char hex[33];
  kiln_digest_format(kiln_digest_bytes(body, strlen(body)), hex);
  const char *text = kiln_arena_printf(f->arena, "%sdigest %s\n", body, hex);
  write_file(path, text, strlen(text));
}

static void expect_refused(fixture *f, const char *words) {
  kiln_profile_file file = kiln_profile_file_in(f->arena);
  assert_error(kiln_profile_file_read(&file, path), KILN_INVALID_FILE, words);
}

/* Each byte of a file decides whether it is read. */
static void damage_is_seen(void **state) {
  fixture *f = *state;
  char text[4096];
  const kiln_type_record records[] = {matrix(2, 3), none()};
  kiln_profile_file file = kiln_profile_file_in(f->arena);
  kiln_profile_file_add(&file, "m#1", records, 2, 1);
  assert_ok(kiln_profile_file_write(&file, path));
  const size_t size = read_file(path, text, sizeof text);
  for (size_t i = 0; i + 1 < size; i++) { /* the last line end may be another blank */
    text[i] ^= 1;
    write_file(path, text, size);
    expect_refused(f, "it ");
    text[i] ^= 1;
  }
  for (size_t n = 1; n < size; n++) {
    write_file(path, text, n);
    expect_refused(f, "it ");
  }
  write_file(path, text, size);
  read_all(f, &file);
}

/* What no process has written, though its digest is right. */
static void lies_are_seen(void **state) {
  fixture *f = *state;
#define TITLE "kiln profile 1\n"
  static const char *const bodies[][2] = {
      {TITLE "site m#1 1 records 1 times\n1 0 0 float32 0 0 0 -1 1 1 70368744177665 1\n",
       "record 1"},
      {TITLE "site m#1 1 records 1 times\n1 0 0 float32 0 0 0 -1 2 1 16777216 16777216 1 1\n",
       "record 1"},
      {TITLE "site m#1 1 records 1 times\n1 0 0 float32 0 0 0 -1 2 1 2 8388609 1 8388608\n",
       "record 1"},
      {TITLE "site m#1 1 records 1 times\n1 0 0 float32 0 0 0 -1 1 1 -2 1\n", "record 1"},
      {TITLE "site m#1 1 records 1 times\n1 0 0 float32 0 0 0 -1 9 0 1 1 1 1 1 1 1 1 1\n",
       "record 1"},
      {TITLE "site m#1 1 records 1 times\n1 0 0 float99 0 0 0 -1 1 1 2 1\n", "record 1"},
      {TITLE "site m#1 1 records 1 times\n1 0 0 float32 2 0 0 -1 1 1 2 1\n", "record 1"},
      {TITLE "site m#1 1 records 1 times\n1 0 0 float32 0 0 0 -1 -1 1\n", "record 1"},
      {TITLE "site m#1 1 records 1 times\n4294967296 0 0 float32 0 0 0 -1 0 1\n", "record 1"},
      {TITLE "site m#1 2 records 1 times\n1 0 0 float32 0 0 0 -1 0 1\n", "record 2"},
      {TITLE "site m#1 16777216 records 1 times\n", "ends early"},
      {TITLE "site m#1 -1 records 1 times\n", "cannot be read"},
      {TITLE "site  1 records 1 times\n1 0 0 float32 0 0 0 -1 0 1\n", "cannot be read"},
      {TITLE "site m#1 0 records 0 times\n", "cannot be read"},
      {TITLE "site m#1 0 records 1 times\nsomething else\n", "no site"},
      {"kiln profile 2\n", "no profile"},
      {"", "no profile"},
  };
  for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
    put_signed(f, bodies[i][0]);
    expect_refused(f, bodies[i][1]);
  }
  put_signed(f, TITLE "site m#1 1 records 1 times\n1 0 0 float32 0 0 0 -1 1 1 70368744177663 1\n");
  kiln_profile_file file;
  read_all(f, &file);
}

static void strangers_are_not_read(void **state) {
  fixture *f = *state;
  kiln_profile_file file = kiln_profile_file_in(f->arena);
  unlink(path);
  assert_error(kiln_profile_file_read(&file, path), KILN_NOT_FOUND, "no file");
  assert_error(kiln_profile_file_read(&file, "/nonexistent/x"), KILN_NOT_FOUND, "no folder");
  assert_error(kiln_profile_file_read(&file, "/tmp/"), KILN_INVALID_FILE, "no name");
  assert_error(kiln_profile_file_write(&file, "/proc/x/y"), KILN_INVALID_FILE, "/proc/x");
  assert_ok(kiln_profile_file_write(&file, path));
  chmod(path, 0666);
  expect_refused(f, "others may write");
  chmod(path, 0600);
  chmod(folder, 0777);
  expect_refused(f, "others may write");
  assert_error(kiln_profile_file_write(&file, path), KILN_INVALID_FILE, "others may write");
  chmod(folder, 0700);
  read_all(f, &file);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(what_is_written_is_read, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(ways_are_merged, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(damage_is_seen, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(lies_are_seen, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(strangers_are_not_read, fixture_setup, fixture_teardown),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
