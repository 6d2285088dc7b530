/* timeline_threads_test.c: events of several threads are lines of JSON, whatever their texts are.
 */
#include <cjson/cJSON.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/timeline.h"
#include "test/unit/files.h"

enum { THREADS = 4, EVENTS = 100 };

typedef struct fixture {
  char path[64];
  kiln_timeline *timeline;
} fixture;

static int setup(void **state) {
  fixture *f = calloc(1, sizeof *f);
  snprintf(f->path, sizeof f->path, "/tmp/kiln-timeline-XXXXXX");
  const int fd = mkstemp(f->path);
  if (fd < 0) return -1;
  close(fd);
  *state = f;
  return kiln_timeline_create(f->path, "", &f->timeline) ? -1 : 0;
}
static int teardown(void **state) {
  fixture *f = *state;
  unlink(f->path);
  free(f);
  return 0;
}

/* The events, once all are told. */
static cJSON *end(fixture *f) {
  kiln_timeline_destroy(f->timeline);
  static char text[1 << 20];
  text[read_file(f->path, text, sizeof text - 1)] = '\0';
  cJSON *events = cJSON_Parse(text);
  assert_non_null(events);
  return events;
}
static const char *text_of(const cJSON *event, const char *name) {
  return cJSON_GetStringValue(cJSON_GetObjectItem(event, name));
}
static double number_of(const cJSON *event, const char *name) {
  return cJSON_GetNumberValue(cJSON_GetObjectItem(event, name));
}

/* Two contexts that name one file, as an environment variable does for all of them. */
static void one_file_of_two(void **state) {
  fixture *f = *state;
  kiln_timeline *second, *third;
  char path[80], text[4096];
  assert_null(kiln_timeline_create(f->path, "", &second));
  kiln_timeline_mark(f->timeline, KILN_EVENT_guard, "first", 0, NULL);
  kiln_timeline_mark(second, KILN_EVENT_guard, "second", 0, NULL);
  kiln_timeline_destroy(second);
  assert_null(kiln_timeline_create(f->path, "", &third)); /* the second's file is free again */
  kiln_timeline_mark(third, KILN_EVENT_guard, "third", 0, NULL);
  kiln_timeline_destroy(third);
  cJSON *events = end(f);
  assert_int_equal(cJSON_GetArraySize(events), 2);
  assert_string_equal(text_of(cJSON_GetArrayItem(events, 1), "name"), "first");
  cJSON_Delete(events);
  snprintf(path, sizeof path, "%s.2", f->path);
  text[read_file(path, text, sizeof text - 1)] = '\0';
  unlink(path);
  events = cJSON_Parse(text);
  assert_int_equal(cJSON_GetArraySize(events), 2);
  assert_string_equal(text_of(cJSON_GetArrayItem(events, 1), "name"), "third");
  cJSON_Delete(events);
}

static void *tell(void *timeline) {
  for (int i = 0; i < EVENTS; i++) {
    const uint64_t began = kiln_timeline_now(timeline);
    kiln_timeline_mark(timeline, KILN_EVENT_guard, "a \"mark\"\n", 1,
                       &(kiln_timeline_arg){"i", .number = i});
    kiln_timeline_span(timeline, KILN_EVENT_call, "a\\span", began, 1,
                       &(kiln_timeline_arg){"seen", .text = "Float(2, 3)"});
  }
  return NULL;
}

static void events_of_threads(void **state) {
  fixture *f = *state;
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, tell, f->timeline), 0);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  cJSON *events = end(f), *event;
  int marks = 0, spans = 0;
  cJSON_ArrayForEach(event, events) {
    const char *phase = text_of(event, "ph");
    if (*phase == 'M') continue;
    assert_true(number_of(event, "ts") > 0 && number_of(event, "tid") > 0);
    if (*phase == 'X') {
      spans++;
      assert_true(number_of(event, "dur") >= 0);
      assert_string_equal(text_of(event, "name"), "a\\span");
      assert_string_equal(text_of(cJSON_GetObjectItem(event, "args"), "seen"), "Float(2, 3)");
    } else {
      marks++;
      assert_string_equal(text_of(event, "name"), "a \"mark\" ");
    }
  }
  assert_int_equal(marks, THREADS * EVENTS);
  assert_int_equal(spans, THREADS * EVENTS);
  cJSON_Delete(events);
}

static void long_texts_are_cut(void **state) {
  fixture *f = *state;
  static char name[10000], quotes[10000];
  for (size_t i = 0; i + 2 < sizeof name; i += 2) memcpy(name + i, "\xc3\xa4", 2);
  memset(quotes, '"', sizeof quotes - 1);
  kiln_timeline_arg args[6];
  for (int i = 0; i < 6; i++) args[i] = (kiln_timeline_arg){"value", .text = quotes};
  kiln_timeline_mark(f->timeline, KILN_EVENT_guard, name, 1, args);
  kiln_timeline_mark(f->timeline, KILN_EVENT_guard, name + 1, 6, args);
  cJSON *events = end(f);
  assert_int_equal(cJSON_GetArraySize(events), 3);
  const size_t length = strlen(text_of(cJSON_GetArrayItem(events, 1), "name"));
  assert_true(length > 400 && length % 2 == 0);
  cJSON_Delete(events);
}

static void a_child_is_silent(void **state) {
  fixture *f = *state;
  const pid_t child = fork();
  if (child == 0) {
    kiln_timeline_mark(f->timeline, KILN_EVENT_guard, "child", 0, NULL);
    kiln_timeline_destroy(f->timeline);
    _exit(0);
  }
  assert_int_equal(waitpid(child, NULL, 0), child);
  kiln_timeline_mark(f->timeline, KILN_EVENT_guard, "parent", 0, NULL);
  cJSON *events = end(f);
  assert_int_equal(cJSON_GetArraySize(events), 2);
  assert_string_equal(text_of(cJSON_GetArrayItem(events, 1), "name"), "parent");
  cJSON_Delete(events);
}

/* -- Lines -- */

typedef struct heard {
  int count;
  char last[8192];
} heard;
static void hear(void *user, const char *json) {
  heard *h = user;
  h->count++;
  snprintf(h->last, sizeof h->last, "%s", json);
}

/* A file of lines, and a host that gets the same: what is frequent is in neither. */
static void lines(void **state) {
  fixture *f = *state;
  heard h = {0};
  char text[8192];
  kiln_timeline_destroy(f->timeline);
  assert_int_equal(unlink(f->path), 0);
  assert_true(!kiln_timeline_create("", f->path, &f->timeline));
  kiln_timeline_set_fn(f->timeline, hear, &h);
  kiln_timeline_span(f->timeline, KILN_EVENT_call, "forward", kiln_timeline_now(f->timeline), 0,
                     NULL);
  assert_int_equal(h.count, 0);
  kiln_timeline_span(f->timeline, KILN_EVENT_kernel, "a \"name\"\n", kiln_timeline_now(f->timeline),
                     1, &(kiln_timeline_arg){"operators", .number = 7});
  kiln_timeline_mark(f->timeline, KILN_EVENT_failed, "forward", 1,
                     &(kiln_timeline_arg){"status", .text = "LIMIT"});
  assert_int_equal(h.count, 2);
  kiln_timeline_destroy(f->timeline);
  FILE *file = fopen(f->path, "r");
  assert_non_null(file);
  assert_non_null(fgets(text, sizeof text, file));
  cJSON *event = cJSON_Parse(text);
  assert_string_equal(text_of(event, "event"), "kernel");
  assert_string_equal(text_of(event, "name"), "a \"name\" ");
  assert_true(number_of(event, "operators") == 7 && number_of(event, "took_us") >= 0 &&
              number_of(event, "time") > 1.7e9);
  cJSON_Delete(event);
  assert_non_null(fgets(text, sizeof text, file));
  text[strcspn(text, "\n")] = 0;
  assert_string_equal(text, h.last);
  event = cJSON_Parse(text);
  assert_string_equal(text_of(event, "status"), "LIMIT");
  assert_null(cJSON_GetObjectItem(event, "took_us"));
  cJSON_Delete(event);
  assert_null(fgets(text, sizeof text, file));
  fclose(file);
}

static void no_file(void **state) {
  fixture *f = *state;
  kiln_timeline *none = NULL;
  kiln_status *status = kiln_timeline_create("/nowhere/at/all", "", &none);
  assert_int_equal(kiln_status_code(status), KILN_INVALID_FILE);
  kiln_status_destroy(status);
  kiln_timeline_span(NULL, KILN_EVENT_call, "nothing", kiln_timeline_now(NULL), 0, NULL);
  cJSON_Delete(end(f));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(events_of_threads, setup, teardown),
      cmocka_unit_test_setup_teardown(long_texts_are_cut, setup, teardown),
      cmocka_unit_test_setup_teardown(a_child_is_silent, setup, teardown),
      cmocka_unit_test_setup_teardown(one_file_of_two, setup, teardown),
      cmocka_unit_test_setup_teardown(lines, setup, teardown),
      cmocka_unit_test_setup_teardown(no_file, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
