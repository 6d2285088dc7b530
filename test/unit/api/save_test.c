/* save_test.c: models and instances saved and loaded again: state, ties, extra files, files that
 * stay whole. What PyTorch makes of the archives is test/make/convert.py's to tell. */
#include <dirent.h>
#include <sys/stat.h>

#include "api/internal.h"
#include "test/unit/api/values.h"
#include "test/unit/sweep.h"

static kiln_model *model;
static char folder[64];

static int open_all(void **state) {
  open_context(state);
  strcpy(folder, "/tmp/kiln_save_XXXXXX");
  assert_non_null(mkdtemp(folder));
  assert_ok(kiln_model_load(context, TEST_DATA "/own/saved/model.pt", NULL, &model));
  return 0;
}

/* The files of the folder, which are removed. */
static int empty_folder(void) {
  int count = 0;
  DIR *dir = opendir(folder);
  assert_non_null(dir);
  for (struct dirent *e; (e = readdir(dir));) {
    char path[512];
    if (e->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    assert_int_equal(unlink(path), 0);
    count++;
  }
  closedir(dir);
  return count;
}

static int close_all(void **state) {
  kiln_model_release(model);
  empty_folder();
  rmdir(folder);
  return close_context(state);
}

/* -- Memory -- */

static kiln_model *load(const archive_bytes *b) {
  kiln_model *again = NULL;
  assert_ok(kiln_model_load_memory(context, b->data, b->size, NULL, &again));
  return again;
}

static void assert_attribute(kiln_instance *instance, const char *name, const char *want) {
  kiln_value *v = NULL;
  assert_ok(kiln_instance_get(instance, name, &v));
  assert_prints(v, want);
  kiln_value_destroy(v);
}

static kiln_value *call(kiln_instance *instance) {
  const float data[6] = {1, 2, 3, 4, 5, 6};
  const int64_t sizes[2] = {2, 3};
  kiln_value *x = NULL, *result = NULL;
  assert_ok(kiln_value_tensor(context, KILN_DTYPE_F32, 2, sizes, data, &x));
  assert_ok(kiln_instance_call(instance, "forward", &x, 1, NULL, &result));
  kiln_value_destroy(x);
  return result;
}

/* -- Tests -- */

static void test_state(void **state) {
  kiln_instance *used = instance_of(model), *fresh;
  archive_bytes b = {0};
  (void)state;
  kiln_value_destroy(call(used));
  kiln_value_destroy(call(used));
  kiln_value *words[1] = {NULL}, *list = NULL;
  assert_ok(kiln_value_string(context, "set", 3, &words[0]));
  assert_ok(kiln_value_list(context, words, 1, &list));
  assert_ok(kiln_instance_set(used, "words", list));
  assert_ok(kiln_instance_save_to(used, take_bytes, &b, NULL));
  kiln_model *again = load(&b);
  fresh = instance_of(again);
  assert_attribute(fresh, "steps", "2");
  assert_attribute(fresh, "words", "['set']");
  assert_attribute(fresh, "counter.n", "9"); /* through __getstate__ and __setstate__ */
  assert_attribute(fresh, "pair", "(-5, 'five')");
  assert_attribute(fresh, "nested", "[[1], [], [2, 3]]");
  assert_attribute(fresh, "numbers", "{3: 0.1, -1: inf}");
  assert_attribute(fresh, "some", "[1, -2, 1099511627776]");
  assert_attribute(fresh, "none", "None");
  /* Both go on alike. */
  kiln_value *a = call(used), *c = call(fresh);
  char *text = NULL;
  assert_ok(kiln_value_print(a, 100, &text));
  assert_prints(c, text);
  kiln_value_destroy(c);
  kiln_text_free(text);
  kiln_value_destroy(a);
  kiln_value_destroy(list);
  kiln_value_destroy(words[0]);
  kiln_instance_release(fresh);
  kiln_model_release(again);
  kiln_instance_release(used);
  free(b.data);
}

static const void *data_of(kiln_instance *instance, const char *name, kiln_value **out) {
  assert_ok(kiln_instance_get(instance, name, out));
  return kiln_value_data(*out);
}

static void test_sharing(void **state) {
  archive_bytes b = {0};
  (void)state;
  assert_ok(kiln_model_save_to(model, take_bytes, &b, NULL));
  kiln_model *again = load(&b);
  kiln_instance *instance = instance_of(again);
  kiln_value *v[4] = {NULL};
  assert_ptr_equal(data_of(instance, "first.weight", &v[0]),
                   data_of(instance, "second.weight", &v[1]));
  const char *rows = data_of(instance, "rows", &v[2]),
             *columns = data_of(instance, "columns", &v[3]);
  assert_ptr_equal(rows, columns);
  assert_int_equal(kiln_value_strides(v[3])[0], 1);
  assert_int_equal(kiln_value_strides(v[3])[1], 4);
  assert_int_equal(((const double *)(const void *)rows)[0], 4); /* an offset of 4 elements */
  /* Weights lie in the bytes that were written, aligned. */
  assert_true(rows >= b.data && rows < b.data + b.size);
  assert_int_equal((rows - 4 * sizeof(double) - b.data) % 64, 0);
  for (int i = 0; i < 4; i++) kiln_value_destroy(v[i]);
  kiln_instance_release(instance);
  kiln_model_release(again);
  free(b.data);
}

static void assert_extra(const kiln_model *m, int index, const char *name, const char *text) {
  kiln_extra extra;
  assert_ok(kiln_model_extra_file(m, index, &extra));
  assert_string_equal(extra.name, name);
  assert_int_equal(extra.size, strlen(text));
  assert_memory_equal(extra.data, text, extra.size);
}

static void test_extras(void **state) {
  const kiln_extra files[2] = {{"a/b.json", "{}", 2}, {"note.txt", "new", 3}};
  kiln_save_options options = {.extras = files, .extra_count = 1};
  kiln_extra extra;
  (void)state;
  archive_bytes kept = {0}, replaced = {0}, dropped = {0};
  assert_ok(kiln_model_save_to(model, take_bytes, &kept, &options));
  kiln_model *again = load(&kept);
  assert_extra(again, 0, "a/b.json", "{}");
  assert_extra(again, 1, "note.txt", "kept");
  kiln_model_release(again);
  options.extra_count = 2;
  assert_ok(kiln_model_save_to(model, take_bytes, &replaced, &options));
  again = load(&replaced);
  assert_extra(again, 1, "note.txt", "new");
  kiln_model_release(again);
  options = (kiln_save_options){.drop_extras = 1};
  assert_ok(kiln_model_save_to(model, take_bytes, &dropped, &options));
  again = load(&dropped);
  assert_error(kiln_model_extra_file(again, 0, &extra), KILN_NOT_FOUND, NULL);
  kiln_model_release(again);
  const kiln_extra twice[2] = {{"x", "1", 1}, {"x", "2", 1}};
  options = (kiln_save_options){.extras = twice, .extra_count = 2};
  archive_bytes none = {0};
  assert_error(kiln_model_save_to(model, take_bytes, &none, &options), KILN_INVALID_ARGUMENT,
               "two files");
  options = (kiln_save_options){.extra_count = 1};
  assert_error(kiln_model_save_to(model, take_bytes, &none, &options), KILN_INVALID_ARGUMENT,
               "extra");
  free(kept.data);
  free(replaced.data);
  free(dropped.data);
  free(none.data);
}

static void test_files(void **state) {
  char path[128], missing[128], link[128];
  struct stat info;
  kiln_model *mapped = NULL;
  (void)state;
  snprintf(path, sizeof path, "%s/m.pt", folder);
  snprintf(link, sizeof link, "%s/link.pt", folder);
  snprintf(missing, sizeof missing, "%s/no/m.pt", folder);
  assert_ok(kiln_model_save(model, path, NULL));
  assert_int_equal(chmod(path, 0640), 0);
  assert_int_equal(symlink(path, link), 0);
  /* Over the file that is mapped, through a link: the loaded model goes on. */
  assert_ok(kiln_model_load(context, path, NULL, &mapped));
  assert_ok(kiln_model_save(mapped, link, NULL));
  kiln_instance *instance = instance_of(mapped);
  assert_attribute(instance, "steps", "0");
  kiln_value_destroy(call(instance));
  kiln_instance_release(instance);
  kiln_model_release(mapped);
  assert_int_equal(lstat(link, &info), 0);
  assert_true(S_ISLNK(info.st_mode));
  assert_int_equal(stat(path, &info), 0);
  assert_int_equal(info.st_mode & 0777, 0640);
  assert_error(kiln_model_save(model, missing, NULL), KILN_INVALID_FILE, "No such file");
  assert_error(kiln_model_save(model, folder, NULL), KILN_INVALID_FILE, "directory");
  assert_error(kiln_model_save(model, "", NULL), KILN_INVALID_ARGUMENT, "path");
  /* A failure midway leaves the file as it was, and nothing else. */
  const kiln_extra bad = {"", "x", 1};
  const kiln_save_options options = {.extras = &bad, .extra_count = 1};
  assert_error(kiln_model_save(model, path, &options), KILN_INVALID_ARGUMENT, "name");
  assert_ok(kiln_model_load(context, path, NULL, &mapped));
  kiln_model_release(mapped);
  assert_int_equal(empty_folder(), 2);
}

static void test_refused(void **state) {
  archive_bytes b = {.fail_at = 1000};
  (void)state;
  assert_error(kiln_model_save_to(model, NULL, NULL, NULL), KILN_INVALID_ARGUMENT, "function");
  assert_error(kiln_model_save_to(model, take_bytes, &b, NULL), KILN_INVALID_FILE, "host");
  free(b.data);
}

/* The N-th request for memory fails, for each N. */
static kiln_status *save_once(kiln_mem *mem, void *arg) {
  archive_bytes b = {0};
  (void)mem;
  kiln_status *status = kiln_model_save_to(arg, take_bytes, &b, NULL);
  free(b.data);
  return status;
}

static void test_memory(void **state) {
  kiln_model *small = NULL;
  (void)state;
  assert_ok(kiln_model_load(context, TEST_DATA "/own/triple_add/model.pt", NULL, &small));
  sweep__run(context->env->mem, save_once, small, false);
  kiln_model_release(small);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_state),   cmocka_unit_test(test_sharing),
                                     cmocka_unit_test(test_extras),  cmocka_unit_test(test_files),
                                     cmocka_unit_test(test_refused), cmocka_unit_test(test_memory)};
  return cmocka_run_group_tests(tests, open_all, close_all);
}
