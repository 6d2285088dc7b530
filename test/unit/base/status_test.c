/* status_test.c: codes, messages, notes, places, tracebacks. */
#include "test/unit/unit.h"

static void codes_have_names(void **state) {
  (void)state;
  assert_string_equal(kiln_code_name(KILN_OK), "OK");
  assert_string_equal(kiln_code_name(KILN_INVALID_FILE), "INVALID_FILE");
  assert_string_equal(kiln_code_name(KILN_INTERNAL), "INTERNAL");
  assert_string_equal(kiln_code_name(KILN_CODE__COUNT), "UNKNOWN");
  assert_string_equal(kiln_code_name((kiln_code)-1), "UNKNOWN");
}

static void null_reads_as_fine(void **state) {
  (void)state;
  assert_int_equal(kiln_status_code(NULL), KILN_OK);
  assert_non_null(kiln_status_message(NULL));
  assert_non_null(kiln_status_report(NULL));
  assert_null(kiln_status_location(NULL));
  assert_null(kiln_status_exception(NULL));
  kiln_status_destroy(NULL);
}

static void message_is_the_sentence(void **state) {
  (void)state;
  kiln_status *status = KILN_ERROR(KILN_INVALID_FILE, "%s is not a zip, %d bytes", "a.pt", 12);
  assert_int_equal(kiln_status_code(status), KILN_INVALID_FILE);
  assert_string_equal(kiln_status_message(status), "a.pt is not a zip, 12 bytes");
  assert_string_equal(kiln_status_report(status), "a.pt is not a zip, 12 bytes");
  kiln_status_destroy(status);
}

static kiln_status *fails(void) { return KILN_ERROR(KILN_OP_ERROR, "shapes differ"); }
static kiln_status *passes_it_on(void) {
  KILN_TRY_NOTE(fails(), "calling add, input %d", 2);
  return NULL;
}
static kiln_status *passes_it_on_again(void) {
  KILN_TRY(passes_it_on());
  return NULL;
}

static void notes_come_in_order_of_the_way_up(void **state) {
  (void)state;
  kiln_status *status = kiln_status_note(passes_it_on_again(), "running forward");
  assert_string_equal(kiln_status_report(status),
                      "shapes differ\n  note: calling add, input 2\n  note: running forward");
  kiln_status_destroy(status);
}

static void innermost_place_wins(void **state) {
  (void)state;
  kiln_status *status = fails();
  status = kiln_status_at(status, (kiln_source_loc){0}); /* says nothing */
  assert_null(kiln_status_location(status));
  status = kiln_status_at(status, (kiln_source_loc){"model.py", 12, 4});
  status = kiln_status_at(status, (kiln_source_loc){"model.py", 30, 1});
  assert_string_equal(kiln_status_location(status), "model.py:12:4");
  assert_string_equal(kiln_status_report(status), "shapes differ\n  at model.py:12:4");
  kiln_status_destroy(status);
  status = kiln_status_at(fails(), (kiln_source_loc){"model.py", 12, 0});
  assert_string_equal(kiln_status_location(status), "model.py:12");
  kiln_status_destroy(status);
}

static void traceback_reads_like_pythons(void **state) {
  (void)state;
  kiln_status *status = kiln_status_set_exception(fails(), "builtins.ValueError");
  status = kiln_status_trace(status, "helper", (kiln_source_loc){"model.py", 3, 0},
                             "    return x + y\n", 11, 16);
  status = kiln_status_note(status, "a note");
  assert_non_null(strstr(kiln_status_report(status), "helper")); /* asked for in between */
  status = kiln_status_trace(status, "forward", (kiln_source_loc){"model.py", 9, 0}, NULL, 0, 0);
  assert_string_equal(kiln_status_exception(status), "builtins.ValueError");
  assert_string_equal(kiln_status_report(status),
                      "builtins.ValueError: shapes differ\n"
                      "Traceback of the model (most recent call last):\n"
                      "  File \"model.py\", line 9, in forward\n"
                      "  File \"model.py\", line 3, in helper\n"
                      "    return x + y\n"
                      "           ~~~~~ <--- HERE\n"
                      "  note: a note");
  kiln_status_destroy(status);
}

static void marks_outside_of_the_line_are_harmless(void **state) {
  (void)state;
  kiln_status *status = fails();
  status = kiln_status_trace(status, "f", (kiln_source_loc){NULL, 0, 0}, "  ab", -5, 100);
  status = kiln_status_trace(status, "g", (kiln_source_loc){"m", 1, 0}, "", 3, 2);
  assert_non_null(strstr(kiln_status_report(status), "    ab\n    ~~ <--- HERE"));
  kiln_status_destroy(status);
}

static void out_of_memory_is_static(void **state) {
  (void)state;
  kiln_status *status = kiln_status_oom();
  assert_int_equal(kiln_status_code(status), KILN_OUT_OF_MEMORY);
  status = kiln_status_note(status, "lost");
  status = kiln_status_at(status, (kiln_source_loc){"model.py", 1, 1});
  status = kiln_status_trace(status, "f", (kiln_source_loc){"model.py", 1, 1}, "x", 0, 1);
  status = kiln_status_set_exception(status, "MemoryError");
  assert_ptr_equal(status, kiln_status_oom());
  assert_string_equal(kiln_status_report(status), "out of memory");
  assert_null(kiln_status_location(status));
  kiln_status_destroy(status);
  kiln_status_destroy(kiln_status_oom());
}

static void internal_faults_name_our_source(void **state) {
  (void)state;
  kiln_status *status = kiln_status_create(KILN_INTERNAL, "../ir/graph.c", 7, "use list broken");
  assert_string_equal(kiln_status_report(status),
                      "fault in Kiln itself, ir/graph.c:7 (please report it): use list broken");
  kiln_status_destroy(status);
}

static void long_messages_are_kept_whole(void **state) {
  (void)state;
  char words[5000];
  memset(words, 'w', sizeof words - 1);
  words[sizeof words - 1] = 0;
  kiln_status *status = kiln_status_note(KILN_ERROR(KILN_LIMIT, "%s", words), "%s", words);
  assert_int_equal(strlen(kiln_status_message(status)), sizeof words - 1);
  assert_int_equal(strlen(kiln_status_report(status)),
                   2 * (sizeof words - 1) + strlen("\n  note: "));
  kiln_status_destroy(status);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(codes_have_names),
      cmocka_unit_test(null_reads_as_fine),
      cmocka_unit_test(message_is_the_sentence),
      cmocka_unit_test(notes_come_in_order_of_the_way_up),
      cmocka_unit_test(innermost_place_wins),
      cmocka_unit_test(traceback_reads_like_pythons),
      cmocka_unit_test(marks_outside_of_the_line_are_harmless),
      cmocka_unit_test(out_of_memory_is_static),
      cmocka_unit_test(internal_faults_name_our_source),
      cmocka_unit_test(long_messages_are_kept_whole),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
