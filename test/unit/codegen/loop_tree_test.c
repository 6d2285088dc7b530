/* loop_tree_test.c: loops in the bodies of loop IR: their text, what is refused, the passes. */
#include "codegen_support.h"
#include "test/unit/sweep.h"

/* softmax over the rows of a matrix. */
static const char *const softmax = "kernel {\n"
                                   "  in b0: f32[4, 8] [8, 1]\n"
                                   "  out b1: f32[4, 8] [8, 1]\n"
                                   "  local b2: f32[8] [1]\n"
                                   "  nest [4] {\n"
                                   "    reduce 8 {\n"
                                   "      %1 = load f32 b0 + 0 [8, 1]\n"
                                   "      %2 = amax f32 %1 over 1\n"
                                   "    }\n"
                                   "    reduce 8 {\n"
                                   "      %5 = load f32 b0 + 0 [8, 1]\n"
                                   "      %6 = sub f32 %5, %2\n"
                                   "      %7 = exp f32 %6\n"
                                   "      store f32 b2 + 0 [0, 1], %7\n"
                                   "      %9 = sum f32 %7 over 1\n"
                                   "    }\n"
                                   "    for 8 {\n"
                                   "      %12 = load f32 b2 + 0 [0, 1]\n"
                                   "      %13 = div f32 %12, %9\n"
                                   "      store f32 b1 + 0 [8, 1], %13\n"
                                   "    }\n"
                                   "  }\n"
                                   "}\n";

static void same_text(const char *text) {
  fixture f;
  fixture_open(&f);
  kiln_str print;
  parse_loop(&f, text, false, &print);
  if (!kiln_str_is(print, text)) fail_msg("got:\n" KILN_STR_FMT, KILN_STR_ARG(print));
  fixture_close(&f);
}

/* The same with sizes that are names: all bounds are proved. */
static void test_text(void **unused) {
  (void)unused;
  same_text(softmax);
  same_text("kernel {\n"
            "  in b0: f32[s0, s1, s2] [s1*s2, s2, 1]\n"
            "  out b1: i64[s0, s2] [s2, 1]\n"
            "  local b2: f32[s1] [1]\n"
            "  nest [s0, s2] {\n"
            "    reduce s1 {\n"
            "      %1 = load f32 b0 + 0 [s1*s2, 1, s2]\n"
            "      store f32 b2 + 0 [0, 0, 1], %1\n"
            "      %3 = argmax i64 %1 over 1\n"
            "    }\n"
            "    reduce s1 {\n"
            "      %6 = load f32 b2 + 0 [0, 0, 1]\n"
            "      %7 = dot f32 %6, %6 over 1\n"
            "    }\n"
            "    %9 = cast i64 %7\n"
            "    %10 = add i64 %9, %3\n"
            "    store i64 b1 + 0 [s2, 1], %10\n"
            "  }\n"
            "}\n");
}

static void test_refusals(void **unused) {
  (void)unused;
  static const struct {
    const char *line, *wrong, *word;
  } cases[] = {
      {"%2 = amax f32 %1 over 1", "%2 = amax f32 %1 over 2", "over 2 of 1 loops"},
      {"%2 = amax f32 %1 over 1", "%2 = amax f32 %1 over 0", "over 0 of 1 loops"},
      {"%2 = amax f32 %1 over 1", "%2 = amax f32 %1", "'over' was expected"},
      {"%2 = amax f32 %1 over 1", "%2 = argmax f32 %1 over 1", "i64"},
      {"%2 = amax f32 %1 over 1", "%2 = any f32 %1 over 1", "does not take"},
      {"%6 = sub f32 %5, %2", "%6 = sub f32 %5, %1", "a loop that it does not stand in"},
      {"%13 = div f32 %12, %9", "%13 = div f32 %12, %7", "a loop that it does not stand in"},
      {"%6 = sub f32 %5, %2", "%6 = sum f32 %5 over 1", "a loop that it does not stand in"},
      {"for 8 {", "for 0 {", "empty loop"},
      {"for 8 {", "for 9 {", "outside of b2"},
      {"%12 = load f32 b2 + 0 [0, 1]", "%12 = load f32 b2 + 0 [1, 1]", "outside of b2"},
      {"%12 = load f32 b2 + 0 [0, 1]", "%12 = load f32 b2 + 0 [1]", "1 strides in 2 loops"},
      {"%12 = load f32 b2 + 0 [0, 1]", "%12 = load f32 b1 + 0 [8, 1]", "inputs are loaded"},
      {"%1 = load f32 b0 + 0 [8, 1]", "%1 = load f32 b2 + 0 [0, 1]", "not stored yet"},
      {"store f32 b2 + 0 [0, 1], %7", "store f32 b2 + 0 [0, 0], %7", "repeatedly"},
      {"store f32 b1 + 0 [8, 1], %13", "store f32 b2 + 0 [0, 1], %13", "stored already"},
      {"store f32 b1 + 0 [8, 1], %13", "store f32 b1 + 0 [8, 0], %13", "repeatedly"},
      {"%9 = sum f32 %7 over 1", "%9 = load f32 b2 + 0 [0, 1]", "still open"},
      {"local b2: f32[8] [1]", "in b2: f32[8] [1]", "an input after an output"},
      {"local b2: f32[8] [1]", "local b2: f32[8] [1] out b3: f32[8] [1]", "after a local"},
      {"%13 = div f32 %12, %9", "%13 = end f32 %12", "ends with '}'"},
      {"%13 = div f32 %12, %9", "%13 = for 8 {", "have no result"},
      {"nest [4] {",
       "nest [4] { for 1 { for 1 { for 1 { for 1 { for 1 { for 1 { for 1 { for 1 {"
       "for 1 { for 1 { for 1 { for 1 { for 1 { for 1 {",
       "more than 14 loops"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    fixture f;
    fixture_open(&f);
    const char *at = strstr(softmax, cases[i].line);
    assert_non_null(at);
    char text[2048];
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - softmax), softmax, cases[i].wrong,
             at + strlen(cases[i].line));
    parse_job job = {.f = &f, .text = kiln_str_from(text)};
    kiln_status *status = parse_body(&job);
    if (!status || !strstr(kiln_status_report(status), cases[i].word))
      fail_msg("'%s' gave: %s", cases[i].wrong, status ? kiln_status_report(status) : "nothing");
    kiln_status_destroy(status);
    fixture_close(&f);
  }
}

/* A store that leaves gaps is read as it was stored, not along all of the buffer. */
static void test_gaps(void **unused) {
  (void)unused;
  static const char form[] = "kernel {\n"
                             "  in b0: f32[4] [1]\n"
                             "  out b1: f32[%d] [1]\n"
                             "  local b2: f32[7] [1]\n"
                             "  nest [] {\n"
                             "    for 4 {\n"
                             "      %%1 = load f32 b0 + 0 [1]\n"
                             "      store f32 b2 + 0 [2], %%1\n"
                             "    }\n"
                             "    for %d {\n"
                             "      %%5 = load f32 b2 + 0 [%d]\n"
                             "      store f32 b1 + 0 [1], %%5\n"
                             "    }\n"
                             "  }\n"
                             "}\n";
  for (int all = 0; all < 2; all++) {
    fixture f;
    char text[512];
    fixture_open(&f);
    snprintf(text, sizeof text, form, all ? 7 : 4, all ? 7 : 4, all ? 1 : 2);
    parse_job job = {.f = &f, .text = kiln_str_from(text)};
    kiln_status *status = parse_body(&job);
    if (!all && status) fail_msg("%s", kiln_status_report(status));
    if (all) assert_non_null(strstr(kiln_status_report(status), "does not walk b2"));
    kiln_status_destroy(status);
    fixture_close(&f);
  }
}

/* What does not move with a loop stands before it; what is equal in a loop is one, in two loops it
 * is not; a loop that gives nothing goes. */
static void test_values(void **unused) {
  (void)unused;
  check_passes("kernel { in b0: f32[4, 8] [8, 1] out b1: f32[4] [1] nest [4] {\n"
               "reduce 8 { %1 = const f32 2 %2 = load f32 b0 + 0 [8, 1]\n"
               "  %3 = load f32 b0 + 1 [8, 0] %4 = mul f32 %1, %3 %5 = mul f32 %2, %4\n"
               "  %6 = load f32 b0 + 0 [8, 1] %7 = mul f32 %6, %4\n"
               "  %8 = sum f32 %5 over 1 %9 = sum f32 %7 over 1 }\n"
               "reduce 8 { %12 = load f32 b0 + 0 [8, 1] %13 = sum f32 %12 over 1\n"
               "  %14 = prod f32 %12 over 1 }\n"
               "reduce 8 { %17 = load f32 b0 + 0 [8, 1] %18 = sum f32 %17 over 1 }\n"
               "%20 = add f32 %8, %9 %21 = add f32 %20, %13 store f32 b1 + 0 [1], %21 } }",
               "kernel {\n"
               "  in b0: f32[4, 8] [8, 1]\n"
               "  out b1: f32[4] [1]\n"
               "  nest [4] {\n"
               "    %0 = const f32 2\n"
               "    %1 = load f32 b0 + 1 [8]\n"
               "    %2 = mul f32 %0, %1\n"
               "    reduce 8 {\n"
               "      %4 = load f32 b0 + 0 [8, 1]\n"
               "      %5 = mul f32 %4, %2\n"
               "      %6 = sum f32 %5 over 1\n"
               "    }\n"
               "    reduce 8 {\n"
               "      %9 = load f32 b0 + 0 [8, 1]\n"
               "      %10 = sum f32 %9 over 1\n"
               "    }\n"
               "    %12 = add f32 %6, %6\n"
               "    %13 = add f32 %12, %10\n"
               "    store f32 b1 + 0 [1], %13\n"
               "  }\n"
               "}\n");
}

/* Two loops that are walked as one are one, the place of the greatest the same; a local buffer that
 * nobody loads is not stored. */
static void test_collapse(void **unused) {
  (void)unused;
  check_passes("kernel { in b0: f32[3, 4, 5] [20, 5, 1] out b1: i64[3] [1] local b2: f32[20] [1]\n"
               "nest [3, 1] { reduce 4 { reduce 5 { %2 = load f32 b0 + 0 [20, 0, 5, 1]\n"
               "  store f32 b2 + 0 [0, 0, 5, 1], %2 %4 = argmax i64 %2 over 2 } }\n"
               "store i64 b1 + 0 [1, 0], %4 } }",
               "kernel {\n"
               "  in b0: f32[3, 4, 5] [20, 5, 1]\n"
               "  out b1: i64[3] [1]\n"
               "  local b2: f32[20] [1]\n"
               "  nest [3] {\n"
               "    reduce 20 {\n"
               "      %1 = load f32 b0 + 0 [20, 1]\n"
               "      %2 = argmax i64 %1 over 1\n"
               "    }\n"
               "    store i64 b1 + 0 [1], %2\n"
               "  }\n"
               "}\n");
}

/* exp(x - greatest) is computed once, and kept for the quotients. */
static void test_keep(void **unused) {
  (void)unused;
  check_passes("kernel { in b0: f32[4, 8] [8, 1] out b1: f32[4, 8] [8, 1] nest [4] {\n"
               "reduce 8 { %1 = load f32 b0 + 0 [8, 1] %2 = amax f32 %1 over 1 }\n"
               "reduce 8 { %5 = load f32 b0 + 0 [8, 1] %6 = sub f32 %5, %2 %7 = exp f32 %6\n"
               "  %8 = sum f32 %7 over 1 }\n"
               "for 8 { %11 = load f32 b0 + 0 [8, 1] %12 = sub f32 %11, %2 %13 = exp f32 %12\n"
               "  %14 = div f32 %13, %8 store f32 b1 + 0 [8, 1], %14 } } }",
               softmax);
  /* Read twice there, it is kept once. */
  check_passes("kernel { in b0: f32[4, 8] [8, 1] out b1: f32[4, 8] [8, 1] nest [4] {\n"
               "reduce 8 { %1 = load f32 b0 + 0 [8, 1] %2 = exp f32 %1\n"
               "  %3 = sum f32 %2 over 1 }\n"
               "for 8 { %6 = load f32 b0 + 0 [8, 1] %7 = exp f32 %6 %8 = div f32 %7, %3\n"
               "  %9 = mul f32 %8, %7 store f32 b1 + 0 [8, 1], %9 } } }",
               "kernel {\n"
               "  in b0: f32[4, 8] [8, 1]\n"
               "  out b1: f32[4, 8] [8, 1]\n"
               "  local b2: f32[8] [1]\n"
               "  nest [4] {\n"
               "    reduce 8 {\n"
               "      %1 = load f32 b0 + 0 [8, 1]\n"
               "      %2 = exp f32 %1\n"
               "      store f32 b2 + 0 [0, 1], %2\n"
               "      %4 = sum f32 %2 over 1\n"
               "    }\n"
               "    for 8 {\n"
               "      %7 = load f32 b2 + 0 [0, 1]\n"
               "      %8 = div f32 %7, %4\n"
               "      %9 = mul f32 %8, %7\n"
               "      store f32 b1 + 0 [8, 1], %9\n"
               "    }\n"
               "  }\n"
               "}\n");
}

/* A pass that finds nothing to do says so, and leaves the text. */
static void test_nothing_to_do(void **unused) {
  (void)unused;
  static const kiln_loop_pass passes[] = {kiln_loop_pass_cse, kiln_loop_pass_order,
                                          kiln_loop_pass_collapse, kiln_loop_pass_hoist,
                                          kiln_loop_pass_keep};
  fixture f;
  fixture_open(&f);
  kiln_loop_fn *fn = parse_loop(&f, softmax, true, NULL);
  for (size_t i = 0; i < sizeof passes / sizeof *passes; i++) {
    bool changed = true;
    assert_ok(passes[i](fn, f.arena, &changed));
    if (changed) fail_msg("pass %zu", i);
    assert_true(kiln_str_is(kiln_loop_print(fn, f.arena), softmax));
  }
  fixture_close(&f);
}

/* x's memory may take softmax(x): each row is read before it is written. Not so where a row's
 * elements are read again for each that is written. */
static void test_donors(void **unused) {
  (void)unused;
  fixture f;
  fixture_open(&f);
  assert_int_equal(info_of(&f, parse_loop(&f, softmax, true, NULL)).donors[0], 1);
  const char *again = "kernel { in b0: f32[8] [1] out b1: f32[8] [1] nest [] { for 8 {\n"
                      "reduce 8 { %2 = load f32 b0 + 0 [0, 1] %3 = sum f32 %2 over 1 }\n"
                      "store f32 b1 + 0 [1], %3 } } }";
  assert_int_equal(info_of(&f, parse_loop(&f, again, false, NULL)).donors[0], 0);
  fixture_close(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_text),     cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_gaps),     cmocka_unit_test(test_values),
      cmocka_unit_test(test_collapse), cmocka_unit_test(test_donors),
      cmocka_unit_test(test_keep),     cmocka_unit_test(test_nothing_to_do),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
