/* altered_test.c: `kiln check` must fail cases that are wrong.
 *
 * Copies of test/data/own/values are altered one by one: a recorded result, an argument, case.json,
 * a file. Each copy goes to a folder of its own, and `kiln check` must exit with 1 and say FAIL
 * with words that name the fault. The unaltered copy must pass, so a broken check cannot hide.
 * Usage: altered_test KILN DATA: the command, and the folder test/data. */
#include "test/check/alter.h"

#include <cmocka.h> /* behind what it needs */

/* Results of the case: 0 tensor, 1 dict, 2 ints, 3 string, 4 None, 5 float, 6 bool, 7 int,
 * 8 bool tensor, 9 int tensor. */
typedef struct alteration {
  const char *name;
  const char *words; /* of the FAIL line */
  void (*alter)(alter_case *c);
  const char *arguments; /* more of them for the command */
} alteration;

/* -- Recorded results -- */

static void nothing(alter_case *c) { (void)c; }

static void tensor_value(alter_case *c) {
  alter_put(c, "expected_0", 0, alter_tensor(c, "expected_0", 0, ALTER_NUDGE));
}
static void tensor_value_small(alter_case *c) {
  alter_put(c, "expected_0", 0, alter_tensor(c, "expected_0", 0, ALTER_NUDGE_SLIGHTLY));
}
static void tensor_nan(alter_case *c) {
  alter_put(c, "expected_0", 0, alter_tensor(c, "expected_0", 0, ALTER_TO_NAN));
}
static void tensor_not_nan(alter_case *c) {
  alter_put(c, "expected_0", 0, alter_tensor(c, "expected_0", 0, ALTER_FROM_NAN));
}
static void tensor_infinite(alter_case *c) {
  alter_put(c, "expected_0", 0, alter_tensor(c, "expected_0", 0, ALTER_TO_INFINITY));
}
static void tensor_dtype(alter_case *c) {
  alter_put(c, "expected_0", 0, alter_tensor(c, "expected_0", 0, ALTER_TO_F64));
}
static void tensor_shape(alter_case *c) {
  alter_put(c, "expected_0", 0, alter_tensor(c, "expected_0", 0, ALTER_FLATTEN));
}
static void tensor_rank(alter_case *c) {
  alter_put(c, "expected_0", 0, alter_tensor(c, "expected_0", 0, ALTER_ADD_DIM));
}
static void int_tensor(alter_case *c) {
  alter_put(c, "expected_0", 9, alter_tensor(c, "expected_0", 9, ALTER_NUDGE));
}
static void bool_tensor(alter_case *c) {
  alter_put(c, "expected_0", 8, alter_tensor(c, "expected_0", 8, ALTER_NUDGE));
}
static void bool_tensor_dtype(alter_case *c) {
  alter_put(c, "expected_0", 8, alter_tensor(c, "expected_0", 8, ALTER_TO_U8));
}
static void dict_order(alter_case *c) {
  alter_put(c, "expected_0", 1, alter_dict(c, "expected_0", 1, ALTER_SWAP));
}
static void dict_key(alter_case *c) {
  alter_put(c, "expected_0", 1, alter_dict(c, "expected_0", 1, ALTER_RENAME));
}
static void dict_missing(alter_case *c) {
  alter_put(c, "expected_0", 1, alter_dict(c, "expected_0", 1, ALTER_DROP));
}
static void list_length(alter_case *c) { alter_put(c, "expected_0", 2, alter_ints(c, 3, 3, 4, 5)); }
static void list_value(alter_case *c) { alter_put(c, "expected_0", 2, alter_ints(c, 2, 3, 5)); }
static void list_for_tuple(alter_case *c) { alter_put(c, "expected_0", 2, alter_pair(c, 3, 4)); }
static void string(alter_case *c) { alter_put(c, "expected_0", 3, alter_string(c, "Done")); }
static void string_longer(alter_case *c) {
  alter_put(c, "expected_0", 3, alter_string(c, "done "));
}
static void none(alter_case *c) {
  alter_put(c, "expected_0", 4, alter_tensor(c, "expected_0", 0, ALTER_KEEP));
}
static void tensor_for_none(alter_case *c) { alter_put(c, "expected_0", 0, alter_none(c)); }
static void float_value(alter_case *c) { alter_put(c, "expected_0", 5, alter_float(c, 1.51)); }
static void float_for_int(alter_case *c) { alter_put(c, "expected_0", 7, alter_float(c, 3)); }
static void bool_value(alter_case *c) { alter_put(c, "expected_0", 6, alter_bool(c, 0)); }
static void int_for_bool(alter_case *c) { alter_put(c, "expected_0", 6, alter_int(c, 1)); }
static void int_value(alter_case *c) { alter_put(c, "expected_0", 7, alter_int(c, 4)); }
static void result_missing(alter_case *c) { alter_resize(c, "expected_0", 9); }
static void result_extra(alter_case *c) { alter_resize(c, "expected_0", 11); }
static void second_set(alter_case *c) { alter_put(c, "expected_1", 7, alter_int(c, 1)); }

/* -- Arguments, files, case.json -- */

static void after_value(alter_case *c) { alter_put(c, "after_0", 2, alter_ints(c, 2, 7, 4)); }
static void after_missing(alter_case *c) { alter_remove(c, "after_0.pt"); }
static void expected_missing(alter_case *c) { alter_remove(c, "expected_1.pt"); }
static void inputs_missing(alter_case *c) { alter_remove(c, "inputs_0.pt"); }
static void model_missing(alter_case *c) { alter_remove(c, "model.pt"); }
static void model_cut(alter_case *c) { alter_cut(c, "model.pt", 900); }
static void expected_cut(alter_case *c) { alter_cut(c, "expected_0.pt", 400); }
static void raises_text(alter_case *c) {
  alter_json(c, "n must not be negative", "n must not be positive");
}
static void raises_other_set(alter_case *c) { alter_json(c, "\"input\": 2", "\"input\": 1"); }
static void method_name(alter_case *c) { alter_json(c, "\"forward\"", "\"backward\""); }
static void no_sets(alter_case *c) { alter_json(c, "\"n_cases\": 3", "\"n_cases\": 0"); }
static void rtol_text(alter_case *c) { alter_json(c, "\"rtol\": ", "\"rtol\": \"a\", \"atol\": "); }
static void unknown_key(alter_case *c) { alter_json(c, "\"rtol\"", "\"rtoll\""); }
static void raises_unknown(alter_case *c) { alter_json(c, "\"contains\"", "\"contain\""); }
static void not_json(alter_case *c) { alter_json(c, "{", "{{"); }
static void fewer_arguments(alter_case *c) { alter_resize(c, "inputs_0", 2); }
static void gradients(alter_case *c) { alter_json(c, "\"own\"", "\"training\""); }

static const alteration alterations[] = {
    {"tensor_value", "result[0]: 1 of 12 elements differ", tensor_value, ""},
    {"tensor_value_tighter", "result[0]: 1 of 12 elements differ", tensor_value_small,
     "--rtol 1e-7 --atol 1e-7"},
    {"tensor_nan", "want nan", tensor_nan, ""},
    {"tensor_not_nan", "got nan", tensor_not_nan, ""},
    {"tensor_infinite", "want inf", tensor_infinite, ""},
    {"tensor_dtype", "got dtype float32, want float64", tensor_dtype, ""},
    {"tensor_shape", "got shape [3, 4], want [12]", tensor_shape, ""},
    {"tensor_rank", "got shape [3, 4], want [1, 3, 4]", tensor_rank, ""},
    {"int_tensor", "result[9]: 1 of 12 elements differ", int_tensor, ""},
    {"bool_tensor", "result[8]: 1 of 12 elements differ", bool_tensor, ""},
    {"bool_tensor_dtype", "got dtype bool, want uint8", bool_tensor_dtype, ""},
    {"dict_order", "result[1] key 0: got 'second', want 'first'", dict_order, ""},
    {"dict_key", "want 'renamed'", dict_key, ""},
    {"dict_missing", "got 2 entries, want 1", dict_missing, ""},
    {"list_length", "result[2]: got 2 elements, want 3", list_length, ""},
    {"list_value", "result[2][1]: got 4, want 5", list_value, ""},
    {"list_for_tuple", "result[2]: got a list, want a tuple", list_for_tuple, ""},
    {"string", "result[3]: got 'done', want 'Done'", string, ""},
    {"string_longer", "want 'done '", string_longer, ""},
    {"none", "result[4]: got None, want a tensor", none, ""},
    {"tensor_for_none", "result[0]: got a tensor, want None", tensor_for_none, ""},
    {"float_value", "result[5]: got 1.5", float_value, ""},
    {"float_for_int", "result[7]: got an int, want a float", float_for_int, ""},
    {"bool_value", "result[6]: got True, want False", bool_value, ""},
    {"int_for_bool", "result[6]: got a bool, want an int", int_for_bool, ""},
    {"int_value", "result[7]: got 3, want 4", int_value, ""},
    {"result_missing", "result: got 10 elements, want 9", result_missing, ""},
    {"result_extra", "result: got 10 elements, want 11", result_extra, ""},
    {"second_set", "set 1, run 1: result[7]: got 0, want 1", second_set, ""},
    {"after_value", "arguments[2][1]: got 3, want 4", after_value, ""},
    {"after_missing", "changed by the call", after_missing, ""},
    {"expected_missing", "expected_1.pt", expected_missing, ""},
    {"inputs_missing", "inputs_0.pt", inputs_missing, ""},
    {"model_missing", "model.pt", model_missing, ""},
    {"model_cut", "load: INVALID_FILE", model_cut, ""},
    {"expected_cut", "INVALID_FILE", expected_cut, ""},
    {"raises_text", "want an error of the model with 'n must not be positive'", raises_text, ""},
    {"raises_other_set", "set 1, run 1: did not fail", raises_other_set, ""},
    {"method_name", "NOT_FOUND", method_name, ""},
    {"no_sets", "no input sets", no_sets, ""},
    {"rtol_text", "'rtol' is not a number", rtol_text, ""},
    {"unknown_key", "has the key 'rtoll', which means nothing", unknown_key, ""},
    {"raises_unknown", "has the key 'contain' in raises", raises_unknown, ""},
    {"not_json", "not a JSON object", not_json, ""},
    {"fewer_arguments", "missing its argument 'log'", fewer_arguments, ""},
    {"gradients", "gradients are not built", gradients, ""},
    {"jit_off_compiled", "no group was formed", nothing, "--require-compiled --jit off"},
};
enum { ALTERATION_COUNT = sizeof alterations / sizeof alterations[0] };

static void test_alteration(void **state) {
  const alteration *a = *state;
  alter_case c;
  alter_open(&c, a->name);
  a->alter(&c);
  char *output = NULL;
  int status = alter_check(&c, a->arguments, &output);
  bool says = strstr(output, "FAIL ") && strstr(output, a->words) &&
              strstr(output, "0 passed, 1 failed, 0 skipped\n");
  if (status != 1 || !says) {
    fail_msg("%s: exit status %d, want 1 and '%s'; printed:\n%s", a->name, status, a->words,
             output);
  }
  free(output);
  alter_close(&c);
}

/* -- What must not fail -- */

static void run_good(const char *name, void (*alter)(alter_case *c), const char *arguments,
                     const char *words) {
  alter_case c;
  char *output = NULL;
  alter_open(&c, name);
  alter(&c);
  int status = alter_check(&c, arguments, &output);
  if (status != 0 || !strstr(output, words)) {
    fail_msg("%s: exit status %d, want 0 and '%s'; printed:\n%s", name, status, words, output);
  }
  free(output);
  alter_close(&c);
}

static void test_unaltered(void **state) {
  (void)state;
  run_good("unaltered", nothing, "", "PASS values (");
}

static void test_within_tolerance(void **state) {
  (void)state;
  run_good("within", tensor_value_small, "", "PASS values (");
  /* --rtol and --atol only tighten. */
  run_good("not_loosened", tensor_value_small, "--rtol 1 --atol 1", "PASS values (");
}

static void test_wide_tolerance_is_no_way_out(void **state) {
  alter_case c;
  char *output = NULL;
  (void)state;
  alter_open(&c, "loosened");
  tensor_value(&c);
  assert_int_equal(alter_check(&c, "--rtol 10 --atol 10", &output), 1);
  free(output);
  alter_close(&c);
}

static void write_skips(const alter_case *c, const char *row) {
  FILE *file = alter_file(c, "skips.md");
  fprintf(file, "# Skips\n\n| case | reason | issue |\n|---|---|---|\n%s\n", row);
  fclose(file);
}

static void skip_and_check(const char *row, void (*alter)(alter_case *c), const char *arguments,
                           int want, const char *words) {
  alter_case c;
  char *output = NULL, *all = NULL;
  alter_open(&c, "skips");
  alter(&c);
  write_skips(&c, row);
  assert_true(asprintf(&all, "--skips %s/skips.md %s", c.folder, arguments) > 0);
  int status = alter_check(&c, all, &output);
  if (status != want || !strstr(output, words)) {
    fail_msg("%s %s: exit status %d, want %d and '%s'; printed:\n%s", row, arguments, status, want,
             words, output);
  }
  free(all);
  free(output);
  alter_close(&c);
}

static void test_skips(void **state) {
  (void)state;
  const char *row = "| values | not yet | B |";
  skip_and_check(row, tensor_value, "", 0, "SKIP values: not yet (B)\n0 passed, 0 failed, 1 sk");
  skip_and_check(row, tensor_value, "--strict", 1, "SKIP values: not yet (B)");
  skip_and_check(row, nothing, "", 1, "FAIL values: passes, but the skips list 'values'");
  skip_and_check("| own | not yet | B |", tensor_value, "", 0, "SKIP values");
  skip_and_check("| own/values | not yet | B |", tensor_value, "", 0, "SKIP values");
  skip_and_check("| own/value | not yet | B |", tensor_value, "", 1, "FAIL values");
  skip_and_check("| case | not yet | B |", nothing, "", 0, "PASS values");
}

static void test_no_group_rows(void **state) {
  (void)state;
  const char *rows = "\n## Cases with no group\n\n| case | reason | issue |\n|---|---|---|\n"
                     "| values | all integers | none |";
  skip_and_check(rows, nothing, "--require-compiled --jit off", 0, "PASS values");
  skip_and_check(rows, nothing, "", 0, "PASS values");
  skip_and_check(rows, tensor_value, "", 1, "FAIL values");
}

int main(int argc, char **argv) {
  if (argc != 3) return fprintf(stderr, "usage: altered_test KILN DATA\n"), 2;
  alter_setup(argv[1], argv[2]);
  struct CMUnitTest tests[ALTERATION_COUNT + 5];
  for (int i = 0; i < ALTERATION_COUNT; i++) {
    tests[i] = (struct CMUnitTest){alterations[i].name, test_alteration, NULL, NULL,
                                   (void *)(uintptr_t)&alterations[i]};
  }
  struct CMUnitTest more[] = {cmocka_unit_test(test_unaltered),
                              cmocka_unit_test(test_within_tolerance),
                              cmocka_unit_test(test_wide_tolerance_is_no_way_out),
                              cmocka_unit_test(test_skips), cmocka_unit_test(test_no_group_rows)};
  memcpy(tests + ALTERATION_COUNT, more, sizeof more);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
