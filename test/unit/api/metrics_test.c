/* metrics_test.c: what a context tells Prometheus, and which events a host gets. */
#include "test/unit/api/fixture.h"

#define CASE TEST_DATA "/own/relu_linear/"

/* The number behind `name`, -1: there is none. Each line is a comment, or a name, labels, and a
 * number. */
static double metric(kiln_context *context, const char *name) {
  char *text = NULL, *rest = NULL, *end;
  double found = -1;
  assert_ok(kiln_context_metrics(context, &text));
  for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
    if (strncmp(line, "# HELP kiln_", 12) == 0 || strncmp(line, "# TYPE kiln_", 12) == 0) continue;
    char *number = strrchr(line, ' ');
    assert_non_null(number);
    const double value = strtod(number + 1, &end);
    assert_true(*end == 0 && end > number + 1 && strncmp(line, "kiln_", 5) == 0);
    *number = 0;
    if (strcmp(line, name) == 0) found = value;
  }
  kiln_text_free(text);
  return found;
}

static void call(const subject *s) {
  kiln_value *x = take_first(read_recorded(s->context, CASE "inputs_0.pt")), *result = NULL;
  assert_ok(kiln_instance_call(s->instance, "forward", &x, 1, NULL, &result));
  kiln_value_destroy(result);
  kiln_value_destroy(x);
}

static void all_models_are_told(void **state) {
  subject s = {.context = context_with(NULL, NULL)}, other = s;
  (void)state;
  assert_true(metric(s.context, "kiln_memory_bytes") > 0);
  assert_true(metric(s.context, "kiln_model_calls_total") == -1); /* there are no models */
  load_subject(&s, CASE "model.pt");
  load_subject(&other, CASE "model.pt");
  for (int i = 0; i < 4; i++) call(&s);
  const char *first = "kiln_model_calls_total{model=\"" CASE "model.pt\",number=\"1\"}";
  const char *second = "kiln_model_calls_total{model=\"" CASE "model.pt\",number=\"2\"}";
  assert_true(metric(s.context, first) == 4);
  assert_true(metric(s.context, second) == 0);
  const char *time = "kiln_model_compile_seconds_total{model=\"" CASE "model.pt\",number=\"1\"}";
  const double seconds = metric(s.context, time);
  assert_true(seconds > 0 && seconds < 60);
  assert_true(metric(s.context, "kiln_kept_kernel_bytes") > 0);
  const char *bytes = "kiln_model_code_bytes{model=\"" CASE "model.pt\",number=\"1\"}";
  assert_true(metric(s.context, bytes) > 0);
  kiln_instance_release(s.instance);
  kiln_model_release(s.model);
  assert_true(metric(s.context, first) == -1);
  assert_true(metric(s.context, second) == 0);
  close_subject(&other);
}

static void names_are_quoted(void **state) {
  char link_path[] = "/tmp/kiln \"a\\b\".pt";
  subject s = {.context = context_with(NULL, NULL)};
  (void)state;
  unlink(link_path);
  assert_int_equal(symlink(CASE "model.pt", link_path), 0);
  load_subject(&s, link_path);
  unlink(link_path);
  assert_true(metric(s.context, "kiln_model_calls_total{model=\"/tmp/kiln \\\"a\\\\b\\\".pt\","
                                "number=\"1\"}") == 0);
  close_subject(&s);
}

/* -- Events -- */

enum { MOST = 64 };
typedef struct heard {
  int count;
  char lines[MOST][512];
} heard;
static void hear(void *user, const char *json) {
  heard *h = user;
  if (h->count < MOST) snprintf(h->lines[h->count++], sizeof h->lines[0], "%s", json);
}
static int count(const heard *h, const char *words) {
  int found = 0;
  for (int i = 0; i < h->count; i++) found += strstr(h->lines[i], words) != NULL;
  return found;
}

static void a_host_gets_events(void **state) {
  static heard h;
  subject s = {.context = context_with(NULL, NULL)};
  kiln_value *x = NULL, *result = NULL;
  (void)state;
  assert_ok(kiln_context_set_events(s.context, hear, &h));
  load_subject(&s, CASE "model.pt");
  for (int i = 0; i < 4; i++) call(&s);
  assert_int_equal(count(&h, "\"event\":\"load\""), 1);
  assert_int_equal(count(&h, "\"event\":\"kernel\""), 1);
  assert_int_equal(count(&h, "\"to\":\"COMPILED\""), 1);
  assert_int_equal(count(&h, "\"event\":\"call\""), 0);
  assert_ok(kiln_value_string(s.context, "no tensor", 9, &x));
  assert_error(kiln_instance_call(s.instance, "forward", &x, 1, NULL, &result),
               KILN_INVALID_ARGUMENT, NULL);
  assert_int_equal(count(&h, "\"event\":\"failed\",\"name\":\"forward\",\"status\":\"INVALID_ARG"),
                   1);
  kiln_value_destroy(x);
  kiln_instance_release(s.instance);
  kiln_model_release(s.model);
  assert_int_equal(count(&h, "\"event\":\"unload\""), 1);
  kiln_context_release(s.context);
}

/* Kernels for which there is no room go, and that is told. */
static void what_goes_is_told(void **state) {
  static heard h;
  subject s = {.context = context_with("code_cache", "1")};
  (void)state;
  assert_ok(kiln_context_set_events(s.context, hear, &h));
  load_subject(&s, CASE "model.pt");
  for (int i = 0; i < 4; i++) call(&s);
  assert_int_equal(count(&h, "\"event\":\"evicted\""), 1);
  assert_int_equal(count(&h, "\"code_cache\":1"), 1);
  close_subject(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_models_are_told),
      cmocka_unit_test(names_are_quoted),
      cmocka_unit_test(a_host_gets_events),
      cmocka_unit_test(what_goes_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
