/* loop_test.c: loop IR's text, verifier and passes. */
#include "codegen_support.h"
#include "test/unit/sweep.h"

static const char *const sample = "kernel {\n"
                                  "  in b0: f32[4, 3] [3, 1]\n"
                                  "  in b1: bool[3] [1]\n"
                                  "  out b2: f32[4, 3] [3, 1]\n"
                                  "  scalar x0: f64\n"
                                  "  nest [4, 3] {\n"
                                  "    %0 = load f32 b0 + 0 [3, 1]\n"
                                  "    %1 = load bool b1 + 0 [0, 1]\n"
                                  "    %2 = scalar f64 x0\n"
                                  "    %3 = cast f32 %2\n"
                                  "    %4 = const f32 -0.5\n"
                                  "    %5 = add f32 %0, %3\n"
                                  "    %6 = select f32 %1, %5, %4\n"
                                  "    store f32 b2 + 0 [3, 1], %6\n"
                                  "  }\n"
                                  "}\n";

static void test_text(void **unused) {
  (void)unused;
  fixture f;
  fixture_open(&f);
  kiln_str print, again;
  parse_loop(&f, sample, false, &print);
  assert_int_equal(print.len, strlen(sample));
  assert_memory_equal(print.data, sample, print.len);
  parse_loop(&f, kiln_arena_str(f.arena, print).data, false, &again);
  assert_true(kiln_str_equal(print, again));
  fixture_close(&f);
}

/* [i*3 + j + s0] and the second counter. */
static const char *const indices = "kernel {\n"
                                   "  in b0: i64[s0] [1]\n"
                                   "  out b1: i64[s0, 3] [3, 1]\n"
                                   "  nest [s0, 3] {\n"
                                   "    %0 = index i64 s0 [3, 1]\n"
                                   "    %1 = index i64 0 [0, 1]\n"
                                   "    %2 = add i64 %0, %1\n"
                                   "    store i64 b1 + 0 [3, 1], %2\n"
                                   "  }\n"
                                   "}\n";

static void test_indices(void **unused) {
  (void)unused;
  fixture f;
  fixture_open(&f);
  kiln_str print;
  parse_loop(&f, indices, false, &print);
  assert_string_equal(kiln_arena_str(f.arena, print).data, indices);
  parse_loop(&f, indices, true, &print);
  /* The loops stay two: only the first index and the store walk them as one. */
  assert_non_null(strstr(kiln_arena_str(f.arena, print).data, "nest [s0, 3]"));
  fixture_close(&f);
}

static void refuse_line(const char *kernel, const char *line, const char *wrong, const char *word) {
  fixture f;
  fixture_open(&f);
  const char *at = strstr(kernel, line);
  assert_non_null(at);
  char text[2048];
  snprintf(text, sizeof text, "%.*s%s%s", (int)(at - kernel), kernel, wrong, at + strlen(line));
  parse_job job = {.f = &f, .text = kiln_str_from(text)};
  kiln_status *status = parse_body(&job);
  assert_non_null(status);
  assert_int_equal(kiln_status_code(status), KILN_INVALID_ARGUMENT);
  if (!strstr(kiln_status_report(status), word))
    fail_msg("'%s' gave: %s", wrong, kiln_status_report(status));
  kiln_status_destroy(status);
  fixture_close(&f);
}

/* Each line of the sample replaced by a wrong one is refused, with a sentence that has a word. */
static void test_refusals(void **unused) {
  (void)unused;
  static const struct {
    const char *line, *wrong, *word;
  } cases[] = {
      {"%0 = load f32 b0 + 0 [3, 1]", "%0 = load f32 b0 + 1 [3, 1]", "outside"},
      {"%0 = load f32 b0 + 0 [3, 1]", "%0 = load f32 b0 + 0 [4, 1]", "outside"},
      {"%0 = load f32 b0 + 0 [3, 1]", "%0 = load f32 b0 + -1 [3, 1]", "outside"},
      {"%0 = load f32 b0 + 0 [3, 1]", "%0 = load f32 b2 + 0 [3, 1]", "inputs are loaded"},
      {"%0 = load f32 b0 + 0 [3, 1]", "%0 = load f64 b0 + 0 [3, 1]", "type of its buffer"},
      {"%0 = load f32 b0 + 0 [3, 1]", "%0 = load f32 b0 + 0 [3]", "strides"},
      {"%5 = add f32 %0, %3", "%5 = add f32 %0, %2", "different types"},
      {"%5 = add f32 %0, %3", "%5 = add f32 %0, %6", "does not exist"},
      {"%5 = add f32 %0, %3", "%5 = and f32 %0, %3", "does not take"},
      {"%5 = add f32 %0, %3", "%5 = addd f32 %0, %3", "not an opcode"},
      {"%5 = add f32 %0, %3", "%7 = add f32 %0, %3", "%7"},
      {"%6 = select f32 %1, %5, %4", "%6 = select f32 %5, %5, %4", "wrong types"},
      {"store f32 b2 + 0 [3, 1], %6", "store f32 b2 + 0 [3, 0], %6", "repeatedly"},
      {"store f32 b2 + 0 [3, 1], %6", "store f32 b2 + 0 [3, 1], %1", "another type"},
      {"nest [4, 3] {", "nest [0, 3] {", "empty loop"},
      {"in b1: bool[3] [1]", "in b1: qint8[3] [1]", "type"},
      {"in b1: bool[3] [1]", "in b1: bool[1152921504606846976] [1]", "2^59 elements"},
      {"scalar x0: f64", "scalar x0: f32", "not i64, f64 or bool"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    refuse_line(sample, cases[i].line, cases[i].wrong, cases[i].word);
  }
  /* The last four of s0 elements: of three they would begin before the first. */
  static const char backwards[] = "kernel {\n"
                                  "  in b0: f32[s0] [1]\n"
                                  "  out b1: f32[4] [1]\n"
                                  "  nest [4] {\n"
                                  "    %0 = load f32 b0 + 0 [0]\n"
                                  "    store f32 b1 + 0 [1], %0\n"
                                  "  }\n"
                                  "}\n";
  refuse_line(backwards, "b0 + 0 [0]", "b0 + s0 - 4 [1]", "outside");
  refuse_line(indices, "%1 = index i64 0 [0, 1]", "%1 = index i32 0 [0, 1]", "i64");
  refuse_line(indices, "%1 = index i64 0 [0, 1]", "%1 = index i64 0 [1]", "strides");
  refuse_line(indices, "%1 = index i64 0 [0, 1]", "%1 = index f32 0 [0, 1]", "does not take");
}

/* What no text can say: an instruction that reads itself. */
static void test_reads_itself(void **unused) {
  (void)unused;
  fixture f;
  fixture_open(&f);
  parse_job job = {.f = &f, .text = kiln_str_from(sample)};
  assert_ok(parse_body(&job));
  assert_ok(kiln_loop_verify(job.fn));
  job.fn->nests.data[0]->body.data[5].args[0] = 5;
  assert_error(kiln_loop_verify(job.fn), KILN_INTERNAL, "not an earlier value");
  fixture_close(&f);
}

/* The output may take the memory of any of 32 inputs, the last one too. */
static void test_donors_of_many(void **unused) {
  (void)unused;
  fixture f;
  fixture_open(&f);
  kiln_text text = kiln_text_in(f.arena);
  kiln_text_puts(&text, "kernel {");
  for (int i = 0; i < 32; i++) kiln_text_printf(&text, " in b%d: f32[4] [1]", i);
  kiln_text_puts(&text, " out b32: f32[4] [1]\nnest [4] {\n%0 = load f32 b0 + 0 [1]\n");
  for (int i = 1; i < 32; i++) {
    kiln_text_printf(&text, "%%%d = load f32 b%d + 0 [1]\n%%%d = add f32 %%%d, %%%d\n", 2 * i - 1,
                     i, 2 * i, 2 * i - 2, 2 * i - 1);
  }
  kiln_text_puts(&text, "store f32 b32 + 0 [1], %62 } }");
  parse_job job = {.f = &f, .text = kiln_text_str(&text)};
  assert_ok(parse_body(&job));
  assert_int_equal(info_of(&f, job.fn).donors[0], UINT32_MAX);
  fixture_close(&f);
}

/* No prefix of a kernel's text is a kernel, and none crashes. */
static void test_truncated(void **unused) {
  (void)unused;
  for (size_t n = 0; n + 2 < strlen(sample); n++) {
    fixture f;
    fixture_open(&f);
    parse_job job = {.f = &f, .text = kiln_str_make(sample, n)};
    kiln_status *status = parse_body(&job);
    assert_non_null(status);
    kiln_status_destroy(status);
    fixture_close(&f);
  }
}

/* Contiguous loops become one, a loop of one iteration goes, equal values are computed once, what
 * nobody stores not at all, casts of constants are folded. */
static void test_simplify(void **unused) {
  (void)unused;
  check_passes(
      "kernel { in b0: f32[2, 1, 8] [8, 8, 1] out b1: f32[2, 1, 8] [8, 8, 1] nest [2, 1, 8] {\n"
      "%0 = load f32 b0 + 0 [8, 8, 1]\n %1 = load f32 b0 + 0 [8, 8, 1]\n"
      "%2 = const i64 2\n %3 = cast f32 %2\n %4 = exp f32 %0\n %5 = mul f32 %1, %3\n"
      "%6 = mul f32 %0, %3\n %7 = add f32 %5, %6\n store f32 b1 + 0 [8, 8, 1], %7 } }",
      "kernel {\n"
      "  in b0: f32[2, 1, 8] [8, 8, 1]\n"
      "  out b1: f32[2, 1, 8] [8, 8, 1]\n"
      "  nest [16] {\n"
      "    %0 = load f32 b0 + 0 [1]\n"
      "    %1 = const f32 2\n"
      "    %2 = mul f32 %0, %1\n"
      "    %3 = add f32 %2, %2\n"
      "    store f32 b1 + 0 [1], %3\n"
      "  }\n"
      "}\n");
}

/* A transposed output is walked in its own order; a broadcast keeps the loops apart. */
static void test_order(void **unused) {
  (void)unused;
  check_passes("kernel { in b0: f32[3] [1] out b1: f32[4, 3] [1, 4] nest [4, 3] {\n"
               "%0 = load f32 b0 + 0 [0, 1]\n store f32 b1 + 0 [1, 4], %0 } }",
               "kernel {\n"
               "  in b0: f32[3] [1]\n"
               "  out b1: f32[4, 3] [1, 4]\n"
               "  nest [3, 4] {\n"
               "    %0 = load f32 b0 + 0 [1, 0]\n"
               "    store f32 b1 + 0 [4, 1], %0\n"
               "  }\n"
               "}\n");
}

/* Which input's memory each output may take. */
static void test_donors(void **unused) {
  (void)unused;
  static const struct {
    const char *text;
    uint32_t donors[2]; /* bits of inputs */
  } cases[] = {
      {"kernel { in b0: f32[8] [1] out b1: f32[8] [1] nest [8] {\n"
       "%0 = load f32 b0 + 0 [1]\n store f32 b1 + 0 [1], %0 } }",
       {1, 0}},
      /* a scalar for all, then the rows themselves */
      {"kernel { in b0: f32[1] [1] in b1: f32[8] [1] out b2: f32[8] [1] nest [8] {\n"
       "%0 = load f32 b0 + 0 [0]\n %1 = load f32 b1 + 0 [1]\n %2 = add f32 %0, %1\n"
       "store f32 b2 + 0 [1], %2 } }",
       {2, 0}},
      /* read elsewhere too */
      {"kernel { in b0: f32[8] [1] out b1: f32[8] [1] nest [8] {\n"
       "%0 = load f32 b0 + 0 [1]\n %1 = load f32 b0 + 3 [0]\n %2 = add f32 %0, %1\n"
       "store f32 b1 + 0 [1], %2 } }",
       {0, 0}},
      /* transposed */
      {"kernel { in b0: f32[3, 3] [3, 1] out b1: f32[3, 3] [3, 1] nest [3, 3] {\n"
       "%0 = load f32 b0 + 0 [1, 3]\n store f32 b1 + 0 [3, 1], %0 } }",
       {0, 0}},
      /* read after the store */
      {"kernel { in b0: f32[8] [1] out b1: f32[8] [1] out b2: f32[8] [1] nest [8] {\n"
       "%0 = load f32 b0 + 0 [1]\n store f32 b1 + 0 [1], %0\n %2 = load f32 b0 + 0 [1]\n"
       "%3 = neg f32 %2\n store f32 b2 + 0 [1], %3 } }",
       {0, 1}},
      /* another type, another layout */
      {"kernel { in b0: i32[8] [1] in b1: f32[4, 2] [2, 1] out b2: f32[8] [1] nest [8] {\n"
       "%0 = load i32 b0 + 0 [1]\n %1 = cast f32 %0\n %2 = load f32 b1 + 0 [1]\n"
       "%3 = add f32 %1, %2\n store f32 b2 + 0 [1], %3 } }",
       {0, 0}},
      /* both for both: the plan gives each to one */
      {"kernel { in b0: f32[8] [1] in b1: f32[8] [1] out b2: f32[8] [1] out b3: f32[8] [1]\n"
       "nest [8] { %0 = load f32 b0 + 0 [1]\n %1 = load f32 b1 + 0 [1]\n"
       "%2 = add f32 %0, %1\n store f32 b2 + 0 [1], %2\n store f32 b3 + 0 [1], %1 } }",
       {3, 3}},
      /* halves exchanged by two nests */
      {"kernel { in b0: f32[8] [1] out b1: f32[8] [1]\n"
       "nest [4] { %0 = load f32 b0 + 4 [1]\n store f32 b1 + 0 [1], %0 }\n"
       "nest [4] { %0 = load f32 b0 + 0 [1]\n store f32 b1 + 4 [1], %0 } }",
       {0, 0}},
      /* halves that stay */
      {"kernel { in b0: f32[8] [1] in b1: f32[4] [1] out b2: f32[8] [1]\n"
       "nest [4] { %0 = load f32 b0 + 0 [1]\n store f32 b2 + 0 [1], %0 }\n"
       "nest [4] { %0 = load f32 b1 + 0 [1]\n store f32 b2 + 4 [1], %0 } }",
       {1, 0}},
      /* read by a nest that does not store there */
      {"kernel { in b0: f32[8] [1] out b1: f32[8] [1] out b2: f32[4] [1]\n"
       "nest [8] { %0 = load f32 b0 + 0 [1]\n store f32 b1 + 0 [1], %0 }\n"
       "nest [4] { %0 = load f32 b0 + 0 [1]\n store f32 b2 + 0 [1], %0 } }",
       {0, 0}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    fixture f;
    fixture_open(&f);
    const kiln_kernel_info info = info_of(&f, parse_loop(&f, cases[i].text, false, NULL));
    for (int o = 0; o < 2; o++) {
      if (info.donors[o] != cases[i].donors[o])
        fail_msg("output %d has donors %#x in %s", o, info.donors[o], cases[i].text);
    }
    fixture_close(&f);
  }
}

/* The first of a row's running products: a local is read behind the loop that has written it,
 * though it moves with no loop; an input that moves with none comes first. */
static void test_locals_are_read_in_order(void **unused) {
  (void)unused;
  static const char text[] = "kernel {\n"
                             "  in b0: f32[3, 2] [2, 1]\n"
                             "  in b1: f32[1] [1]\n"
                             "  out b2: f32[3] [1]\n"
                             "  local b3: f32[2] [1]\n"
                             "  nest [3] {\n"
                             "    %0 = load f32 b1 + 0 [0]\n"
                             "    scan 2 {\n"
                             "      %2 = load f32 b0 + 0 [2, 1]\n"
                             "      %3 = cumprod f32 %2\n"
                             "      store f32 b3 + 0 [0, 1], %3\n"
                             "    }\n"
                             "    %6 = load f32 b3 + 0 [0]\n"
                             "    %7 = div f32 %6, %0\n"
                             "    store f32 b2 + 0 [1], %7\n"
                             "  }\n"
                             "}\n";
  fixture f;
  fixture_open(&f);
  int levels[16];
  kiln_loop_levels(parse_loop(&f, text, false, NULL)->nests.data[0], levels);
  assert_int_equal(levels[0], 0);
  assert_int_equal(levels[6], 1);
  assert_int_equal(levels[7], 1);
  fixture_close(&f);
}

/* Rows with a gap are not merged. */
static void test_must_not_collapse(void **unused) {
  (void)unused;
  const char *text = "kernel {\n"
                     "  in b0: f32[4, 3] [5, 1]\n"
                     "  out b1: f32[4, 3] [3, 1]\n"
                     "  nest [4, 3] {\n"
                     "    %0 = load f32 b0 + 0 [5, 1]\n"
                     "    store f32 b1 + 0 [3, 1], %0\n"
                     "  }\n"
                     "}\n";
  check_passes(text, text);
}

/* Two nests that would store to the same place are refused; those of a cat are not. */
static void test_overlap(void **unused) {
  (void)unused;
  static const char *const outs[] = {"f32[2, 4] [4, 1]", "f32[4, 2] [1, 4]"}; /* one memory */
  for (int i = 0; i < 8; i++) {
    const int offset = i % 4;
    fixture f;
    fixture_open(&f);
    char text[512];
    snprintf(text, sizeof text,
             "kernel { in b0: f32[2, 2] [2, 1] out b1: %s\n"
             "nest [2, 2] { %%0 = load f32 b0 + 0 [2, 1]\n store f32 b1 + 0 [4, 1], %%0 }\n"
             "nest [2, %d] { %%0 = load f32 b0 + 0 [2, 0]\n store f32 b1 + %d [4, 1], %%0 } }",
             outs[i / 4], 4 - offset, offset);
    parse_job job = {.f = &f, .text = kiln_str_from(text)};
    kiln_status *status = parse_body(&job);
    assert_true((status == NULL) == (offset >= 2));
    kiln_status_destroy(status);
    fixture_close(&f);
  }
}

/* The same of symbols: parts of rows, of columns, and of both, as cat, stack and pad have them. */
static void test_symbolic_overlap(void **unused) {
  (void)unused;
  static const struct {
    const char *out, *first, *second; /* a store's nest, and its offset and strides */
    bool apart;
  } cases[] = {
      {"[s0, s1 + s2] [s1 + s2, 1]", "[s0, s1] 0 [s1 + s2, 1]", "[s0, s2] s1 [s1 + s2, 1]", true},
      {"[s0, s1 + s2] [s1 + s2, 1]", "[s0, s1] 0 [s1 + s2, 1]", "[s0, s2] s2 [s1 + s2, 1]", false},
      {"[s0, s1 + s2] [s1 + s2, 1]", "[s0, s1] 0 [s1 + s2, 1]", "[s0, s2] s1 - 1 [s1 + s2, 1]",
       false},
      {"[s0 + s1, 8] [8, 1]", "[8*s0] 0 [1]", "[8*s1] 8*s0 [1]", true},
      {"[s0 + s1, 8] [8, 1]", "[8*s0] 0 [1]", "[8*s0] 8*s1 [1]", false},
      {"[s0, 2, s1] [2*s1, s1, 1]", "[s0, s1] 0 [2*s1, 1]", "[s0, s1] s1 [2*s1, 1]", true},
      {"[s0, s1, 2] [2*s1, 2, 1]", "[s0*s1] 0 [2]", "[s0*s1] 1 [2]", true},
      {"[s0, s1, 2] [2*s1, 2, 1]", "[s0*s1] 0 [2]", "[s0*s1] 0 [2]", false},
      /* Steps of the loops alone, as a shuffle of channels has them. */
      {"[s0, 2*s1] [2*s1, 1]", "[s0, s1] 0 [2*s1, 2]", "[s0, s1] 1 [2*s1, 2]", true},
      {"[s0, 2*s1] [2*s1, 1]", "[s0, s1] 1 [2*s1, 2]", "[s0, s1] 1 [2*s1, 2]", false},
      {"[6*s0] [1]", "[s0, 3] 0 [6, 1]", "[s0, 3] 3 [6, 1]", true},
      {"[6*s0] [1]", "[s0, 4] 0 [6, 1]", "[s0, 3] 3 [6, 1]", false},
      {"[6*s0] [1]", "[2*s0] 0 [3]", "[3*s0] 1 [2]", false},
      {"[s0 + 2, s1] [s1, 1]", "[s0, s1] s1 [s1, 1]", "[s1] 0 [1]", true},
      {"[s0, s1 + 2] [s1 + 2, 1]", "[s0 - 1, s1] s1 + 3 [s1 + 2, 1]", "[s0] 0 [s1 + 2]", true},
      {"[s0, s1 + 2] [s1 + 2, 1]", "[s0, s1] 1 [s1 + 2, 1]", "[s0] s1 [s1 + 2]", false},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    fixture f;
    fixture_open(&f);
    char text[1024], nest[64], place[64];
    int at = snprintf(text, sizeof text, "kernel { out b0: f32%s\n", cases[i].out);
    for (int k = 0; k < 2; k++) {
      const char *part = k ? cases[i].second : cases[i].first, *end = strchr(part, ']') + 1;
      snprintf(nest, sizeof nest, "%.*s", (int)(end - part), part);
      snprintf(place, sizeof place, "%s", end);
      at += snprintf(text + at, sizeof text - (size_t)at,
                     "nest %s { %%0 = const f32 0\n store f32 b0 + %s, %%0 }\n", nest, place);
    }
    snprintf(text + at, sizeof text - (size_t)at, "}");
    parse_job job = {.f = &f, .text = kiln_str_from(text)};
    kiln_status *status = parse_body(&job);
    if ((status == NULL) != cases[i].apart) fail_msg("%s", text);
    kiln_status_destroy(status);
    fixture_close(&f);
  }
}

static kiln_status *optimize_in(kiln_arena *arena, void *arg) {
  fixture f = {.arena = arena};
  parse_job job = {.f = &f, .text = kiln_str_from(arg), .optimize = true};
  return parse_body(&job);
}

static void test_lack_of_memory(void **unused) {
  (void)unused;
  sweep_arena(optimize_in, (void *)(uintptr_t)sample);
}

/* -- Symbols -- */

static const char *const symbolic = "kernel {\n"
                                    "  in b0: f32[s0, s1, 8] [8*s1, 8, 1]\n"
                                    "  in b1: f32[s0 + 2, 8] [s2, 1]\n"
                                    "  out b2: f32[s0, s1, 8] [8*s1, 8, 1]\n"
                                    "  nest [s0, s1, 8] {\n"
                                    "    %0 = load f32 b0 + 0 [8*s1, 8, 1]\n"
                                    "    %1 = load f32 b1 + 0 [s2, 0, 1]\n"
                                    "    %2 = add f32 %0, %1\n"
                                    "    store f32 b2 + 0 [8*s1, 8, 1], %2\n"
                                    "  }\n"
                                    "}\n";

/* A kernel for every size: the text is kept, and each access is proved. */
static void test_symbols(void **unused) {
  (void)unused;
  fixture f;
  fixture_open(&f);
  kiln_str print;
  parse_loop(&f, symbolic, false, &print);
  if (!kiln_str_is(print, symbolic)) fail_msg("got:\n" KILN_STR_FMT, KILN_STR_ARG(print));
  fixture_close(&f);
  check_passes("kernel { in b0: f32[2*s0, 8] [8, 1] out b1: f32[2*s0, 8] [8, 1] nest [2*s0, 8] {\n"
               "%0 = load f32 b0 + 0 [8, 1]\n store f32 b1 + 0 [8, 1], %0 } }",
               "kernel {\n"
               "  in b0: f32[2*s0, 8] [8, 1]\n"
               "  out b1: f32[2*s0, 8] [8, 1]\n"
               "  nest [16*s0] {\n"
               "    %0 = load f32 b0 + 0 [1]\n"
               "    store f32 b1 + 0 [1], %0\n"
               "  }\n"
               "}\n");
}

/* What is said of the order of symbols proves accesses, is kept, and is not taken for more. */
static void test_where(void **unused) {
  (void)unused;
  static const struct {
    const char *where;
    bool proves;
  } cases[] = {{"s0 <= 24", true},           {"s0 <= 25", false},          {"", false},
               {"s1 <= 24", false},          {"s0 + s1 <= 26", true},      {"s0 <= s1", false},
               {"s0 <= s1, s1 <= 24", true}, {"s0 <= s1, s1 <= 30", false}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    fixture f;
    fixture_open(&f);
    char text[1024], where[256] = "";
    const char *rest = cases[i].where;
    while (*rest) {
      const int len = (int)strcspn(rest, ",");
      const size_t at = strlen(where);
      snprintf(where + at, sizeof where - at, "  where %.*s\n", len, rest);
      rest += len + (rest[len] ? 2 : 0);
    }
    snprintf(text, sizeof text,
             "kernel {\n%s"
             "  in b0: f32[24, 24] [24, 1]\n"
             "  out b1: f32[s0, s0] [s0, 1]\n"
             "  nest [s0, s0] {\n"
             "    %%0 = load f32 b0 + 0 [24, 1]\n"
             "    store f32 b1 + 0 [s0, 1], %%0\n"
             "  }\n"
             "}\n",
             where);
    kiln_str print = {0};
    parse_job job = {.f = &f, .text = kiln_str_from(text)};
    kiln_status *status = parse_body(&job);
    if ((status == NULL) != cases[i].proves) fail_msg("%s", text);
    kiln_status_destroy(status);
    if (cases[i].proves) parse_loop(&f, text, false, &print);
    if (cases[i].proves && !kiln_str_is(print, text)) fail_msg("%s", text);
    fixture_close(&f);
  }
}

/* Each line of the symbolic kernel replaced by one that some sizes would make wrong. */
static void test_symbolic_refusals(void **unused) {
  (void)unused;
  static const struct {
    const char *line, *wrong, *word;
  } cases[] = {
      {"nest [s0, s1, 8] {", "nest [s0 + 1, s1, 8] {", "outside"},
      {"nest [s0, s1, 8] {", "nest [s1, s0, 8] {", "outside"},
      {"nest [s0, s1, 8] {", "nest [s0, s1, s2] {", "outside"},
      {"nest [s0, s1, 8] {", "nest [s0, *, 8] {", "empty loop"},
      {"%0 = load f32 b0 + 0 [8*s1, 8, 1]", "%0 = load f32 b0 + 1 [8*s1, 8, 1]", "outside"},
      {"%0 = load f32 b0 + 0 [8*s1, 8, 1]", "%0 = load f32 b0 + s0 [8*s1, 8, 1]", "outside"},
      {"%0 = load f32 b0 + 0 [8*s1, 8, 1]", "%0 = load f32 b0 + 0 [8*s0, 8, 1]", "outside"},
      {"%0 = load f32 b0 + 0 [8*s1, 8, 1]", "%0 = load f32 b0 + 0 [8*s1 + 1, 8, 1]", "outside"},
      {"%1 = load f32 b1 + 0 [s2, 0, 1]", "%1 = load f32 b1 + 0 [s2, 1, 1]", "outside"},
      {"%1 = load f32 b1 + 0 [s2, 0, 1]", "%1 = load f32 b1 + 0 [s2, s2, 1]", "outside"},
      {"store f32 b2 + 0 [8*s1, 8, 1], %2", "store f32 b2 + 0 [0, 8, 1], %2", "repeatedly"},
      {"in b1: f32[s0 + 2, 8] [s2, 1]", "in b1: f32[s0 - 1, 8] [s2, 1]", "outside"},
      {"in b1: f32[s0 + 2, 8] [s2, 1]", "in b1: f32[s0 + 2, 8] [s2", "expected"},
      {"in b1: f32[s0 + 2, 8] [s2, 1]", "in b1: f32[s0 + 2, 8] [s2*s2*s2*s2*s2*s2*s2, 1]",
       "is no dimension"},
      {"in b1: f32[s0 + 2, 8] [s2, 1]", "in b1: f32[*, 8] [s2, 1]", "negative size"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    refuse_line(symbolic, cases[i].line, cases[i].wrong, cases[i].word);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_text),           cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_reads_itself),   cmocka_unit_test(test_truncated),
      cmocka_unit_test(test_simplify),       cmocka_unit_test(test_order),
      cmocka_unit_test(test_donors),         cmocka_unit_test(test_donors_of_many),
      cmocka_unit_test(test_indices),        cmocka_unit_test(test_must_not_collapse),
      cmocka_unit_test(test_overlap),        cmocka_unit_test(test_symbolic_overlap),
      cmocka_unit_test(test_symbols),        cmocka_unit_test(test_locals_are_read_in_order),
      cmocka_unit_test(test_where),          cmocka_unit_test(test_symbolic_refusals),
      cmocka_unit_test(test_lack_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
