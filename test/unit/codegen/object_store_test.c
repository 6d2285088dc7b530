/* object_store_test.c: kernels in files: what is read, and what is told of those that are not.
 * test/kernel_files.py has whole processes. */
#include "codegen/object_store.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/unit/codegen/codegen_support.h"
#include "test/unit/files.h"

static fixture f;
static kiln__object_store store;
static char folder[32];
static const kiln__object_name one = {.kernel = "kiln_k0_one", .group = "11aa"};
static const kiln__object_name two = {.kernel = "kiln_k0_two", .group = "22bb"};

static void open_store(void) {
  fixture_open(&f);
  assert_ok(kiln_flags_set(&f.env->flags, "cache_dir", folder));
  kiln__object_store_init(&store, f.env);
}
static void close_store(void) {
  kiln__object_store_deinit(&store);
  fixture_close(&f);
}

static int setup(void **state) {
  (void)state;
  snprintf(folder, sizeof folder, "/tmp/kiln_store_XXXXXX");
  if (!mkdtemp(folder)) return -1;
  open_store();
  return 0;
}
static int teardown(void **state) {
  (void)state;
  close_store();
  DIR *d = opendir(folder);
  for (const struct dirent *e; (e = readdir(d));)
    if (*e->d_name != '.') (void)unlinkat(dirfd(d), e->d_name, 0);
  closedir(d);
  return rmdir(folder);
}

static bool finds(const kiln__object_name *name, const char *want) {
  void *bytes = NULL;
  size_t size = 0;
  const bool found = kiln__object_store_read(&store, name, &bytes, &size);
  assert_int_equal(found, bytes != NULL);
  if (found) assert_int_equal(size, strlen(want));
  if (found) assert_memory_equal(bytes, want, size);
  if (found) kiln_mem_free(f.env->mem, bytes, size);
  return found;
}

/* The files as they are told, the longest unused first. */
static kiln__object_files list(void) {
  kiln__object_files files = {0};
  assert_ok(kiln__object_store_list(&store, f.arena, &files));
  return files;
}

/* Its only file, as text to be written anew. */
static void change(char *(*edit)(char *text, size_t *size)) {
  char path[128], *text = calloc(1, 4097);
  assert_int_equal(list().count, 1);
  snprintf(path, sizeof path, "%s/%s", folder, list().data[0].file.name);
  size_t size = read_file(path, text, 4096);
  const char *from = edit(text, &size);
  write_file(path, from, size);
  free(text);
}

static void what_is_written_is_found(void **state) {
  (void)state;
  assert_false(finds(&one, NULL));
  kiln__object_store_write(&store, &one, "first", 5);
  kiln__object_store_write(&store, &two, "second", 6);
  close_store();
  open_store(); /* as another process would */
  assert_true(finds(&one, "first"));
  assert_true(finds(&two, "second"));
  const kiln__object_name other = {.kernel = "kiln_k0_one", .group = "22bb"};
  assert_false(finds(&other, NULL));
  f.env->isa = f.env->isa ? KILN_ISA_V2 : KILN_ISA_AVX2;
  assert_false(finds(&one, NULL));
}

static void nothing_without_a_folder(void **state) {
  (void)state;
  const char *was = store.folder;
  void *bytes = (void *)1;
  size_t size;
  kiln__object_store_write(&store, &one, "first", 5);
  store.folder = "";
  assert_false(kiln__object_store_read(&store, &one, &bytes, &size));
  assert_null(bytes);
  store.folder = was;
}

static void files_are_told(void **state) {
  (void)state;
  kiln__object_store_write(&store, &one, "first", 5);
  usleep(20000); /* files have the times of ticks */
  kiln__object_store_write(&store, &two, "second", 6);
  kiln__object_files files = list();
  assert_int_equal(files.count, 2);
  assert_string_equal(files.data[0].kernel, one.kernel);
  assert_string_equal(files.data[0].group, one.group);
  assert_string_equal(files.data[1].kernel, two.kernel);
  assert_string_equal(files.data[1].group, two.group);
  assert_string_equal(files.data[1].isa, kiln_isa_name(f.env->isa));
  assert_null(files.data[0].why);
  assert_false(files.data[0].is_useless);
  usleep(20000);
  assert_true(finds(&one, "first")); /* used: it is the last to go */
  assert_string_equal(list().data[0].kernel, two.kernel);
  f.env->isa = f.env->isa ? KILN_ISA_V2 : KILN_ISA_AVX2;
  files = list();
  assert_string_equal(files.data[0].why, "another CPU's");
  assert_false(files.data[0].is_useless);
}

/* -- Damage -- */

static char *last_byte(char *text, size_t *size) {
  text[*size - 1] ^= 1;
  return text;
}
static char *digest(char *text, size_t *size) {
  char *line = strchr(strchr(text, '\n') + 1, '\n') + 1;
  (void)size;
  line[3] ^= 1;
  return text;
}
static char *after_digest(char *text, size_t *size) {
  char *line = strchr(strchr(text, '\n') + 1, '\n') + 1;
  (void)size;
  line[32] = ' ';
  return text;
}
static char *title(char *text, size_t *size) {
  (void)size;
  text[2] = 'x';
  return text;
}
static char *generator(char *text, size_t *size) {
  (void)size;
  strchr(text, '\n')[1] = 'x';
  return text;
}
static char *no_lines(char *text, size_t *size) {
  *size = 20;
  return text;
}

static void damage_is_told_and_pruned(void **state) {
  static const struct {
    char *(*edit)(char *text, size_t *size);
    const char *why;
  } cases[] = {
      {last_byte, "it is damaged"},    {digest, "it is damaged"},
      {after_digest, "it is damaged"}, {title, "it is no kernel of this Kiln's"},
      {generator, "another Kiln's"},   {no_lines, "it is damaged"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int removed = 0;
    kiln__object_store_write(&store, &one, "first", 5);
    change(cases[i].edit);
    assert_false(finds(&one, NULL));
    assert_string_equal(list().data[0].why, cases[i].why);
    assert_true(list().data[0].is_useless);
    kiln__object_store_write(&store, &two, "second", 6);
    assert_ok(kiln__object_store_prune(&store, 0, &removed));
    assert_int_equal(removed, 1);
    assert_int_equal(list().count, 1);
    assert_string_equal(list().data[0].kernel, two.kernel);
    assert_ok(kiln__object_store_prune(&store, 1, &removed));
    assert_int_equal(removed, 1);
    assert_int_equal(list().count, 0);
  }
}

static void lookups_are_kept(void **state) {
  (void)state;
  kiln__object_store_write(&store, &one, "first", 5);
  kiln__object_store_watch(&store);
  assert_true(finds(&one, "first"));
  assert_false(finds(&two, NULL));
  kiln__object_store_write(&store, &two, "second", 6); /* is not */
  change(last_byte);
  assert_false(finds(&one, NULL));
  assert_int_equal(store.lookups.count, 3);
  const kiln__object_lookup *all = store.lookups.data;
  assert_null(all[0].why);
  assert_string_equal(all[0].name.kernel, one.kernel);
  assert_string_equal(all[1].why, "");
  assert_string_equal(all[1].name.group, two.group);
  assert_string_equal(all[2].why, "it is damaged");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(what_is_written_is_found, setup, teardown),
      cmocka_unit_test_setup_teardown(nothing_without_a_folder, setup, teardown),
      cmocka_unit_test_setup_teardown(files_are_told, setup, teardown),
      cmocka_unit_test_setup_teardown(damage_is_told_and_pruned, setup, teardown),
      cmocka_unit_test_setup_teardown(lookups_are_kept, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
