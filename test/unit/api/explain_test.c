/* explain_test.c: what `kiln explain` stands on: failed guards with both types, groups in words,
 * times of instructions, and the log's channels guard and run. */
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kiln/debug.h"
#include "test/unit/api/values.h"

static kiln_model *model;
static kiln_instance *instance;
static int guard_lines, run_lines;
static char last_guard[512];

static void on_log(void *user, const char *channel, int level, const char *line) {
  (void)user;
  (void)level;
  if (strcmp(channel, "guard") == 0) {
    guard_lines++;
    snprintf(last_guard, sizeof last_guard, "%s", line);
  }
  run_lines += strcmp(channel, "run") == 0;
}

static int open_model(void **state) {
  open_context(state);
  kiln_context_set_log(context, on_log, NULL);
  assert_ok(kiln_context_set(context, "log", "guard=1,run=1", NULL));
  assert_ok(kiln_model_load(context, TEST_DATA "/own/relu_linear/model.pt", NULL, &model));
  assert_ok(kiln_debug_model_time(model, 1));
  assert_ok(kiln_instance_create(model, &instance));
  guard_lines = run_lines = 0;
  return 0;
}

static int close_model(void **state) {
  kiln_instance_release(instance);
  kiln_model_release(model);
  return close_context(state);
}

static void call_rows(int64_t rows) {
  kiln_value *x = NULL, *result = NULL;
  assert_ok(kiln_value_tensor(context, KILN_DTYPE_F32, 2, (const int64_t[]){rows, 3}, NULL, &x));
  assert_ok(kiln_instance_call(instance, "forward", &x, 1, NULL, &result));
  kiln_value_destroy(result);
  kiln_value_destroy(x);
}

/* The rows of the last table, but for the titles. */
static struct {
  int count;
  char cells[64][10][160];
} table;

static void keep_row(void *user, const char *const *columns, int count) {
  (void)user;
  if (table.count >= 0 && table.count < 64) {
    for (int i = 0; i < 10; i++) {
      snprintf(table.cells[table.count][i], 160, "%s", i < count ? columns[i] : "");
    }
  }
  table.count++;
}

static void tells_why_guards_fail(void **state) {
  (void)state;
  for (int i = 0; i < 3; i++) call_rows(2);
  assert_int_equal(guard_lines, 0);
  assert_int_equal(run_lines, 3);
  for (int i = 0; i < 3; i++) call_rows(4);
  assert_true(guard_lines >= 1);
  assert_non_null(strstr(last_guard, "is Float(4, "));
  assert_non_null(strstr(last_guard, "not Float(2, "));
  table.count = -1;
  assert_ok(kiln_debug_model_misses(model, keep_row, NULL));
  assert_true(table.count >= 1);
  assert_non_null(strstr(table.cells[0][2], "Float(2, "));
  assert_non_null(strstr(table.cells[0][3], "Float(4, "));
  assert_string_equal(table.cells[0][6], "4"); /* the fourth call */
  /* The second level misses where a third shape comes. */
  call_rows(5);
  table.count = -1;
  assert_ok(kiln_debug_model_misses(model, keep_row, NULL));
  bool found = false;
  for (int i = 0; i < table.count; i++) {
    found =
        found || (strstr(table.cells[i][2], "Float(4, ") && strstr(table.cells[i][3], "Float(5, "));
  }
  assert_true(found);
}

/* A log hears of each miss, also of those that the table only counts. */
static void logs_each_miss(void **state) {
  (void)state;
  assert_ok(kiln_context_set(context, "fusion_strategy", "STATIC,1", NULL));
  kiln_instance_release(instance);
  kiln_model_release(model);
  assert_ok(kiln_model_load(context, TEST_DATA "/own/relu_linear/model.pt", NULL, &model));
  assert_ok(kiln_instance_create(model, &instance));
  for (int i = 0; i < 2; i++) call_rows(2);
  for (int i = 0; i < 20; i++) {
    const int before = guard_lines;
    call_rows(3 + i);
    assert_true(guard_lines > before);
  }
}

static void tells_groups_and_times(void **state) {
  (void)state;
  for (int i = 0; i < 4; i++) call_rows(2);
  table.count = -1;
  assert_ok(kiln_debug_model_groups(model, keep_row, NULL));
  assert_int_equal(table.count, 1);
  assert_string_equal(table.cells[0][1], "add, relu");
  assert_non_null(strstr(table.cells[0][2], "Float(2, 4"));
  table.count = -1;
  assert_ok(kiln_debug_model_times(model, keep_row, NULL));
  int groups = 0, operators = 0;
  for (int i = 0; i < table.count; i++) {
    if (strcmp(table.cells[i][0], "group") == 0) {
      groups++;
      assert_string_equal(table.cells[i][1], "forward/TensorExprGroup_0");
      assert_string_equal(table.cells[i][7], "3");
      assert_true(atoi(table.cells[i][6]) > 0);
    }
    operators += strcmp(table.cells[i][1], "aten::matmul") == 0;
  }
  assert_int_equal(groups, 1);
  assert_int_equal(operators, 1);
}

static const char *group_cell(int column) {
  table.count = -1;
  assert_ok(kiln_debug_model_times(model, keep_row, NULL));
  for (int i = 0; i < table.count; i++)
    if (strcmp(table.cells[i][0], "group") == 0) return table.cells[i][column];
  return "0";
}

static void times_one_call_of_many(void **state) {
  (void)state;
  assert_ok(kiln_debug_model_time(model, 1000));
  for (int i = 0; i < 3; i++) call_rows(2);
  assert_string_equal(group_cell(7), "0");
  assert_ok(kiln_debug_model_time(model, 3));
  for (int i = 0; i < 9; i++) call_rows(2);
  assert_string_equal(group_cell(7), "3");
  assert_ok(kiln_debug_model_time(model, 0));
  for (int i = 0; i < 5; i++) call_rows(2);
  assert_string_equal(group_cell(7), "3");
  assert_string_equal(group_cell(8), "16"); /* a sum and a maximum for each of 2 x 4 */
  assert_string_equal(group_cell(9), "80"); /* 8 floats in, 4 of the bias, 8 out */
}

/* The third call's level is compiled under the CALL of the first one's fallback. */
static void keeps_compiling_out_of_times(void **state) {
  (void)state;
  for (int i = 0; i < 3; i++) call_rows(2);
  for (int i = 0; i < 4; i++) call_rows(4);
  kiln_group_counters group;
  assert_ok(kiln_model_group(model, 1, &group));
  assert_true(group.depth == 1 && group.compile_ns > 0);
  table.count = -1;
  assert_ok(kiln_debug_model_times(model, keep_row, NULL));
  int calls = 0;
  for (int i = 0; i < table.count; i++) {
    if (strcmp(table.cells[i][1], "CALL") != 0) continue;
    calls++;
    assert_string_equal(table.cells[i][7], "4");
    assert_true((uint64_t)atoll(table.cells[i][6]) < group.compile_ns);
  }
  assert_int_equal(calls, 1);
}

static void dumps_files(void **state) {
  static const char *const endings[] = {".frontend.ir",
                                        ".level0.profiled.ir",
                                        ".level0.optimized.ir",
                                        ".level0.bytecode",
                                        ".loop",
                                        ".ll",
                                        ".s"};
  char folder[] = "explain_test.XXXXXX", path[512];
  (void)state;
  assert_non_null(mkdtemp(folder));
  assert_error(kiln_context_set(context, "dump", "/nonexistent/x", NULL), KILN_INVALID_FILE,
               "dump");
  assert_ok(kiln_context_set(context, "dump", folder, NULL));
  kiln_instance_release(instance);
  kiln_model_release(model);
  assert_ok(kiln_model_load(context, TEST_DATA "/own/relu_linear/model.pt", NULL, &model));
  assert_ok(kiln_instance_create(model, &instance));
  for (int i = 0; i < 3; i++) call_rows(2);
  DIR *dir = opendir(folder);
  assert_non_null(dir);
  int found[7] = {0};
  for (const struct dirent *e; (e = readdir(dir));) {
    if (e->d_name[0] == '.') continue;
    for (int i = 0; i < 7; i++) {
      const size_t len = strlen(e->d_name), end = strlen(endings[i]);
      found[i] += len > end && strcmp(e->d_name + len - end, endings[i]) == 0;
    }
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    struct stat info;
    assert_true(stat(path, &info) == 0 && info.st_size > 0);
    unlink(path);
  }
  closedir(dir);
  rmdir(folder);
  for (int i = 0; i < 7; i++) assert_int_equal(found[i], 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(tells_why_guards_fail, open_model, close_model),
      cmocka_unit_test_setup_teardown(logs_each_miss, open_model, close_model),
      cmocka_unit_test_setup_teardown(tells_groups_and_times, open_model, close_model),
      cmocka_unit_test_setup_teardown(times_one_call_of_many, open_model, close_model),
      cmocka_unit_test_setup_teardown(keeps_compiling_out_of_times, open_model, close_model),
      cmocka_unit_test_setup_teardown(dumps_files, open_model, close_model),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
