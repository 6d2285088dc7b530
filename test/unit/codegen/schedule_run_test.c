/* schedule_run_test.c: the words of any nest: order, vector, unroll, parallel and grain: as text,
 * what is refused, what rules choose by the machine, and which grid comes of them. That no legal
 * schedule changes a bit is in kernel_test, reduce_test and gather_test. */
#include "schedule_support.h"

/* Three loops, of which the second walks b0 by one element. */
static const char copy[] =
    "kernel {\n  in b0: f32[4, 30, 50] [1500, 1, 30]\n  out b1: f32[4, 30, 50] [1500, 50, 1]\n"
    "  nest [4, 30, 50] {\n    %0 = load f32 b0 + 0 [1500, 1, 30]\n    %1 = neg f32 %0\n"
    "    store f32 b1 + 0 [1500, 50, 1], %1\n  }\n}\n";
/* Rows of 200: their sum, then each element less it. */
static const char rows[] =
    "kernel {\n  in b0: f32[8, 200] [200, 1]\n  out b1: f32[8, 200] [200, 1]\n  nest [8] {\n"
    "    reduce 200 {\n      %1 = load f32 b0 + 0 [200, 1]\n      %2 = sum f32 %1 over 1\n    }\n"
    "    for 200 {\n      %5 = load f32 b0 + 0 [200, 1]\n      %6 = sub f32 %5, %2\n"
    "      store f32 b1 + 0 [200, 1], %6\n    }\n  }\n}\n";
/* The sums of 300 columns, or of as many as SIZE has. */
#define COLUMNS(type, size)                                                                   \
  "kernel {\n in b0: " type "[90, " size "] [" size ", 1]\n out b1: " type "[" size "] [1]\n" \
  " nest [" size "] {\n reduce 90 {\n %1 = load " type " b0 + 0 [1, " size "]\n"              \
  " %2 = sum " type " %1 over 1\n }\n store " type " b1 + 0 [1], %2\n }\n}\n"

static void test_text(void **unused) {
  (void)unused;
  static const char *const texts[][2] = {
      {copy, "order i1 i0 i2"},
      {copy, "vector i2 32"},
      {copy, "order i2 i0 i1, vector i1 16, unroll i1 2, parallel i0 i2, grain 4000"},
      {copy, "order i0 i1 i2, parallel i0 i1 i2"},
      {copy, "vector i2 1, unroll i2 64"},
      {copy, "panel i1 7\n  nest 0: order i2 i0 i1, vector i1 8, unroll i1 2, parallel i1"},
      {rows, "vector l 16, unroll l0 4, unroll l1 2, parallel i0"},
      {rows, "vector i0 4, unroll i0 3, unroll l0 64"},
      {rows, "unroll l1 1, parallel i0, grain 9223372036854775806"},
  };
  fixture f;
  fixture_open(&f);
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    char text[256];
    snprintf(text, sizeof text, "schedule {\n  nest 0: %s\n}\n", texts[i][1]);
    schedule_job job = {
        .fn = parse_loop(&f, texts[i][0], false, NULL), .text = text, .arena = f.arena};
    assert_ok(parse_schedule(&job));
    assert_string_equal(kiln_schedule_print(&job.schedule, f.arena).data, text);
  }
  /* Words on lines of their own are the same. */
  schedule_job job = {.fn = parse_loop(&f, copy, false, NULL),
                      .text = "schedule { nest 0: parallel i1 i0\nnest 0: vector i2 8\n}",
                      .arena = f.arena};
  assert_ok(parse_schedule(&job));
  assert_string_equal(kiln_schedule_print(&job.schedule, f.arena).data,
                      "schedule {\n  nest 0: vector i2 8, parallel i0 i1\n}\n");
  fixture_close(&f);
}

static void test_refused(void **unused) {
  (void)unused;
  static const char *const wrong[][3] = {
      {copy, "order", "an order of 0 loops, of 3"},
      {copy, "order i0 i1", "an order of 2 loops, of 3"},
      {copy, "order i0 i1 i1", "i1 is in the order twice"},
      {copy, "order i0 i1 i3", "no loop i3"},
      {copy, "order i0 i1 i2, order i0 i1 i2", "twice"},
      {copy, "vector i1 8", "i1, which is not the last loop"},
      {copy, "order i0 i2 i1, vector i2 8", "i2, which is not the last loop"},
      {copy, "vector i3 8", "no loop i3"},
      {copy, "vector i2 3", "vectors of 3"},
      {copy, "vector i2 0", "vectors of 0"},
      {copy, "vector i2 128", "128 is too large"},
      {copy, "vector i2", "no number"},
      {copy, "vector b0 8", "a loop of the nest, or 'l'"},
      {copy, "vector l 8", "the body, which has no loops"},
      {copy, "vector i2 8, vector i2 8", "twice"},
      {copy, "unroll i2 2", "vectors do not go along it"},
      {copy, "vector i2 8, unroll i1 2", "vectors do not go along it"},
      {copy, "vector i2 8, unroll i2 0", "nothing"},
      {copy, "vector i2 8, unroll i2 65", "65 is too large"},
      {copy, "vector i2 8, unroll i2 2, unroll i2 2", "twice"},
      {copy, "unroll l0 2", "no loop l0"},
      {copy, "parallel", "loops of the nest were expected"},
      {copy, "parallel i3", "no loop i3"},
      {copy, "parallel i0 i0", "parallel twice"},
      {copy, "parallel i0, parallel i1", "twice"},
      {copy, "grain 8", "without parallel loops"},
      {copy, "parallel i0, grain 0", "a grain of nothing"},
      {copy, "parallel i0, grain 8, grain 8", "twice"},
      {copy, "panel i1 8", "panels of i1, which is not the last loop"},
      {copy, "panel i2 8\nnest 0: order i0 i2 i1", "panels of i2, which is not the last loop"},
      {copy, "panel i2 8, strip 2", "not packed, nor in strips"},
      {copy, "panel i2 8, pack b0", "not packed, nor in strips"},
      {rows, "panel i0 8", "panels without a tile"},
      {copy, "parallel i0, tile i0 4", "'order', 'vector', 'unroll', 'parallel' or 'grain'"},
      {rows, "vector l 8, unroll i0 2", "vectors do not go along it"},
      {rows, "unroll l1 2, unroll l0 2", "another order"},
      {rows, "unroll l2 2", "no loop l2"},
      {rows, "unroll l0 65", "65 is too large"},
  };
  fixture f;
  fixture_open(&f);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    char text[256];
    snprintf(text, sizeof text, "schedule { nest 0: %s }", wrong[i][1]);
    schedule_job job = {
        .fn = parse_loop(&f, wrong[i][0], false, NULL), .text = text, .arena = f.arena};
    assert_error(parse_schedule(&job), KILN_INVALID_ARGUMENT, wrong[i][2]);
  }
  fixture_close(&f);
}

/* Four loops around one, and one that holds another. */
static void test_refused_loops(void **unused) {
  (void)unused;
  static const char text[] =
      "kernel { in b0: f32[2, 2, 2, 2, 6] [48, 24, 12, 6, 1]\n out b1: f32[2, 2, 2, 2] [8, 4, 2, 1]"
      "\n nest [2, 2, 2, 2] { reduce 2 { reduce 3 {\n %2 = load f32 b0 + 0 [48, 24, 12, 6, 3, 1]\n"
      "%3 = sum f32 %2 over 2\n } }\n store f32 b1 + 0 [8, 4, 2, 1], %3 } }";
  static const char *const wrong[][2] = {
      {"unroll l0 2", "l0 is unrolled, but holds another loop"},
      {"parallel i0 i1 i2 i3", "4 parallel loops, of 3 at most"},
  };
  fixture f;
  fixture_open(&f);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    char schedule[256];
    snprintf(schedule, sizeof schedule, "schedule { nest 0: %s }", wrong[i][0]);
    schedule_job job = {
        .fn = parse_loop(&f, text, false, NULL), .text = schedule, .arena = f.arena};
    assert_error(parse_schedule(&job), KILN_INVALID_ARGUMENT, wrong[i][1]);
  }
  fixture_close(&f);
}

/* -- Rules -- */

typedef struct rule_case {
  const char *kernel;
  kiln_isa isa;
  const char *machine, *wanted;
} rule_case;

static void check_rules(const rule_case *cases, size_t count) {
  for (size_t i = 0; i < count; i++) {
    fixture f;
    fixture_open(&f);
    kiln_machine machine;
    char wanted[256];
    kiln_loop_fn *fn = parse_loop(&f, cases[i].kernel, false, NULL);
    assert_ok(kiln_machine_describe(cases[i].isa, kiln_str_from(cases[i].machine), &machine));
    const kiln_schedule s = kiln_schedule_choose(fn, &machine, f.arena);
    snprintf(wanted, sizeof wanted, "schedule {\n  nest 0: %s\n}\n", cases[i].wanted);
    assert_string_equal(kiln_schedule_print(&s, f.arena).data, wanted);
    fixture_close(&f);
  }
}

/* Rows go along, with all 64 lanes in registers where enough are summed; columns go twice as wide
 * where a line of memory is wider than a vector, or as wide, and sums have room in the cache. */
static void test_rules(void **unused) {
  (void)unused;
  static const rule_case cases[] = {
      {rows, KILN_ISA_AVX512, "", "vector l 16, unroll l0 4, parallel i0, grain 95"},
      {rows, KILN_ISA_AVX2, "", "vector l 8, unroll l0 8, parallel i0, grain 47"},
      {rows, KILN_ISA_AVX512, "lanes=4", "vector l 4, unroll l0 16, parallel i0, grain 23"},
      {COLUMNS("f32", "300"), KILN_ISA_AVX512, "l1=32768,line=64",
       "vector i0 32, parallel i0, grain 1103"},
      {COLUMNS("f32", "300"), KILN_ISA_AVX512, "l1=32768,line=32",
       "vector i0 16, parallel i0, grain 551"},
      {COLUMNS("f32", "300"), KILN_ISA_AVX512, "l1=4096,line=64",
       "vector i0 16, parallel i0, grain 551"},
      {COLUMNS("f32", "300"), KILN_ISA_V2, "l1=32768,line=64",
       "vector i0 8, parallel i0, grain 275"},
      {COLUMNS("f32", "8"), KILN_ISA_AVX2, "l1=32768,line=64",
       "vector i0 8, parallel i0, grain 275"},
      {COLUMNS("f64", "300"), KILN_ISA_AVX2, "l1=32768,line=64",
       "vector i0 8, parallel i0, grain 275"},
  };
  check_rules(cases, sizeof cases / sizeof *cases);
}

/* Sums down a few elements, or of few columns, go along their loop in single elements. */
#define DOWN(count, n)                                                                        \
  "kernel {\n in b0: f32[90, " count ", " n "] [9000, " n ", 1]\n out b1: f32[90, " n "] [" n \
  ", 1]\n nest [90, " n "] {\n reduce " count " {\n %1 = load f32 b0 + 0 [9000, 1, " n        \
  "]\n %2 = sum f32 %1 over 1\n }\n store f32 b1 + 0 [" n ", 1], %2\n }\n}\n"

static void test_rules_of_short_sums(void **unused) {
  (void)unused;
  static const rule_case cases[] = {
      {DOWN("4", "30"), KILN_ISA_AVX2, "", "vector l 8, parallel i0 i1, grain 3225"},
      {DOWN("5", "30"), KILN_ISA_AVX2, "l1=32768", "vector i1 16, parallel i0, grain 8888"},
      {DOWN("64", "7"), KILN_ISA_AVX2, "", "vector l 8, unroll l0 8, parallel i0 i1, grain 237"},
      {DOWN("65", "7"), KILN_ISA_AVX2, "", "vector i1 8, parallel i0, grain 380"},
      {DOWN("3", "30"), KILN_ISA_V2, "", "vector l 4, parallel i0 i1, grain 3448"},
      {DOWN("4", "30"), KILN_ISA_V2, "l1=32768", "vector i1 8, parallel i0, grain 5405"},
      {DOWN("4", "30"), KILN_ISA_AVX512, "l1=32768", "vector i1 32, parallel i0, grain 21621"},
  };
  check_rules(cases, sizeof cases / sizeof *cases);
}

/* One function, of which 16 K elements or more gain what a second body takes to compile. */
#define FUNCTION(type, count)                                                                  \
  "kernel {\n in b0: " type "[" count "] [1]\n out b1: " type "[" count "] [1]\n nest [" count \
  "] {\n %0 = load " type " b0 + 0 [1]\n %1 = cast f32 %0\n %2 = exp f32 %1\n"                 \
  " %3 = cast " type " %2\n store " type " b1 + 0 [1], %3\n }\n}\n"

static void test_rules_of_bodies(void **unused) {
  (void)unused;
  static const char add[] =
      "kernel {\n in b0: f32[500] [1]\n out b1: f32[500] [1]\n nest [500] {\n"
      " %0 = load f32 b0 + 0 [1]\n %1 = add f32 %0, %0\n store f32 b1 + 0 [1], %1\n }\n}\n";
  static const rule_case cases[] = {
      {add, KILN_ISA_AVX512, "", "vector i0 16, unroll i0 1, parallel i0, grain 30769"},
      {add, KILN_ISA_V2, "", "vector i0 4, unroll i0 1, parallel i0, grain 7692"},
      {FUNCTION("f32", "16383"), KILN_ISA_AVX2, "", "vector i0 8, parallel i0, grain 2083"},
      {FUNCTION("f32", "16384"), KILN_ISA_AVX2, "",
       "vector i0 16, unroll i0 1, parallel i0, grain 2083"},
      {FUNCTION("f32", "16384"), KILN_ISA_AVX2, "masks=8", "vector i0 8, parallel i0, grain 2083"},
      {FUNCTION("f32", "16384"), KILN_ISA_V2, "", "vector i0 4, parallel i0, grain 1785"},
      {FUNCTION("f16", "s0"), KILN_ISA_AVX512, "",
       "vector i0 64, unroll i0 1, parallel i0, grain 4166"},
      {FUNCTION("f16", "s0"), KILN_ISA_AVX2, "", "vector i0 8, parallel i0, grain 2083"},
  };
  check_rules(cases, sizeof cases / sizeof *cases);
}

/* Rows of few columns, of an operand that they share: in vectors of which lanes are left out only
 * where that costs less than narrower ones, and whole rows without a loop where they are short. */
#define ROWS_OF(type, n, rest)                                                                \
  "kernel {\n in b0: " type "[9000, " n "] [" n ", 1]\n in b1: " type "[" n                   \
  "] [1]\n out b2: " type "[9000, " n "] [" n ", 1]\n nest [9000, " n "] {\n %0 = load " type \
  " b0 + 0 [" n ", 1]\n %1 = load " type " b1 + 0 [0, 1]\n" rest " store " type " b2 + 0 [" n \
  ", 1], %3\n }\n}\n"
#define ADD(type, n) ROWS_OF(type, n, " %2 = neg " type " %1\n %3 = add " type " %0, %2\n")
#define EXP(n) ROWS_OF("f32", n, " %2 = add f32 %0, %1\n %3 = exp f32 %2\n")
#define NOT(n) ROWS_OF("bool", n, " %2 = not bool %0\n %3 = or bool %1, %2\n")

static void test_rules_of_rows(void **unused) {
  (void)unused;
  static const rule_case cases[] = {
      {ADD("f32", "2"), KILN_ISA_AVX2, "", "vector i1 2, unroll i1 1, parallel i0, grain 4761"},
      {ADD("f32", "3"), KILN_ISA_AVX2, "", "vector i1 2, unroll i1 1, parallel i0, grain 4761"},
      {ADD("f32", "4"), KILN_ISA_AVX2, "", "vector i1 4, unroll i1 1, parallel i0, grain 4761"},
      {ADD("f32", "6"), KILN_ISA_AVX2, "", "vector i1 2, unroll i1 3, parallel i0, grain 4761"},
      {ADD("f32", "9"), KILN_ISA_AVX2, "", "vector i1 8, unroll i1 1, parallel i0, grain 9523"},
      {ADD("f32", "12"), KILN_ISA_AVX2, "", "vector i1 4, unroll i1 3, parallel i0, grain 4761"},
      {ADD("f32", "31"), KILN_ISA_AVX2, "", "vector i1 8, unroll i1 1, parallel i0, grain 9523"},
      {ADD("f64", "3"), KILN_ISA_AVX2, "", "vector i1 2, unroll i1 1, parallel i0, grain 4761"},
      {ADD("f64", "5"), KILN_ISA_AVX2, "", "vector i1 4, unroll i1 1, parallel i0, grain 4761"},
      {NOT("3"), KILN_ISA_AVX2, "", "vector i1 1, unroll i1 3, parallel i0, grain 4761"},
      {NOT("4"), KILN_ISA_AVX2, "", "vector i1 4, unroll i1 1, parallel i0, grain 4761"},
      {ADD("f32", "3"), KILN_ISA_V2, "", "vector i1 1, unroll i1 3, parallel i0, grain 4761"},
      {ADD("f32", "6"), KILN_ISA_V2, "", "vector i1 2, unroll i1 3, parallel i0, grain 4761"},
      {ADD("f32", "3"), KILN_ISA_AVX512, "", "vector i1 16, parallel i0, grain 19047"},
      {ADD("f32", "4"), KILN_ISA_AVX512, "", "vector i1 4, unroll i1 1, parallel i0, grain 4761"},
      {ADD("f32", "12"), KILN_ISA_AVX512, "", "vector i1 16, parallel i0, grain 19047"},
      /* A function costs more than the masks of a step. */
      {EXP("4"), KILN_ISA_AVX2, "", "vector i1 4, unroll i1 1, parallel i0, grain 1724"},
      {EXP("6"), KILN_ISA_AVX2, "", "vector i1 8, parallel i0, grain 2040"},
      {EXP("12"), KILN_ISA_AVX2, "", "vector i1 8, unroll i1 1, parallel i0, grain 2040"},
  };
  check_rules(cases, sizeof cases / sizeof *cases);
}

/* Two functions, beside each other or the one of the other: large calls gain what more bodies, and
 * wider ones, take to compile; so do kernels that serve calls of every size. */
#define FUNCTIONS(count, second)                                                     \
  "kernel {\n in b0: f32[" count "] [1]\n out b1: f32[" count "] [1]\n nest [" count \
  "] {\n %0 = load f32 b0 + 0 [1]\n %1 = exp f32 %0\n %2 = tanh f32 " second         \
  "\n %3 = mul f32 %1, %2\n store f32 b1 + 0 [1], %3\n }\n}\n"

static void test_rules_of_functions(void **unused) {
  (void)unused;
  static const char outer[] = /* a row plus a column, of any sizes */
      "kernel {\n in b0: f32[s0] [1]\n in b1: f32[s1] [1]\n out b2: f32[s0, s1] [s1, 1]\n"
      " nest [s0, s1] {\n %0 = load f32 b0 + 0 [1, 0]\n %1 = load f32 b1 + 0 [0, 1]\n"
      " %2 = add f32 %0, %1\n %3 = exp f32 %2\n %4 = tanh f32 %3\n store f32 b2 + 0 [s1, 1], %4\n"
      " }\n}\n";
  static const rule_case cases[] = {
      {FUNCTIONS("16383", "%0"), KILN_ISA_AVX2, "", "vector i0 8, parallel i0, grain 1156"},
      {FUNCTIONS("16384", "%0"), KILN_ISA_AVX2, "",
       "vector i0 16, unroll i0 1, parallel i0, grain 1156"},
      {FUNCTIONS("1000000", "%0"), KILN_ISA_AVX2, "",
       "vector i0 32, unroll i0 1, parallel i0, grain 1156"},
      {FUNCTIONS("16383", "%1"), KILN_ISA_AVX2, "", "vector i0 8, parallel i0, grain 1156"},
      {FUNCTIONS("16384", "%1"), KILN_ISA_AVX2, "",
       "vector i0 16, unroll i0 1, parallel i0, grain 1156"},
      {FUNCTIONS("65536", "%1"), KILN_ISA_AVX2, "",
       "vector i0 32, unroll i0 1, parallel i0, grain 1156"},
      {FUNCTIONS("s0", "%0"), KILN_ISA_AVX2, "", "vector i0 32, parallel i0, grain 1156"},
      {FUNCTIONS("s0", "%1"), KILN_ISA_AVX2, "", "vector i0 32, parallel i0, grain 1156"},
      {FUNCTIONS("65536", "%1"), KILN_ISA_V2, "", "vector i0 4, parallel i0, grain 1075"},
      {FUNCTIONS("16384", "%1"), KILN_ISA_AVX512, "",
       "vector i0 32, unroll i0 1, parallel i0, grain 2312"},
      {FUNCTIONS("65536", "%1"), KILN_ISA_AVX512, "",
       "vector i0 64, unroll i0 1, parallel i0, grain 2312"},
      {FUNCTIONS("s0", "%1"), KILN_ISA_AVX512, "", "vector i0 64, parallel i0, grain 2312"},
      {outer, KILN_ISA_AVX512, "", "vector i1 16, parallel i0, grain 2247"},
  };
  check_rules(cases, sizeof cases / sizeof *cases);
}

/* A line of the load is read again for each of the rows: where 300 of them are not in the first
 * cache any more, the rows go through 16 columns at a time. Places 4 KB apart are 12 there. */
#define CROSSING(n, m)                                                                     \
  "kernel {\n in b0: f32[" n ", 3, " m "] [1, " n ", 1024]\n out b1: f32[" n ", 3, " m     \
  "] [3072, 1024, 1]\n nest [" n ", 3, " m "] {\n %0 = load f32 b0 + 0 [1, " n ", 1024]\n" \
  " %1 = neg f32 %0\n store f32 b1 + 0 [3072, 1024, 1], %1\n }\n}\n"

static void test_rules_of_panels(void **unused) {
  (void)unused;
  static const char crossing[] = /* of any size */
      "kernel {\n in b0: f32[s1, s0] [s0, 1]\n out b1: f32[s0, s1] [s1, 1]\n nest [s0, s1] {\n"
      " %0 = load f32 b0 + 0 [1, s0]\n %1 = neg f32 %0\n store f32 b1 + 0 [s1, 1], %1\n }\n}\n";
  static const rule_case cases[] = {
      {CROSSING("64", "300"), KILN_ISA_AVX512, "l1=49152,line=64",
       "panel i2 16\n  nest 0: order i1 i0 i2, vector i2 16, unroll i2 1, parallel i0 i1, grain "
       "14285"},
      {CROSSING("64", "300"), KILN_ISA_AVX2, "l1=49152,line=128",
       "panel i2 32\n  nest 0: order i1 i0 i2, vector i2 8, unroll i2 1, parallel i0 i1, grain "
       "11111"},
      {CROSSING("64", "16"), KILN_ISA_AVX512, "l1=49152,line=64",
       "vector i2 16, unroll i2 1, parallel i0 i1, grain 14285"},
      {CROSSING("64", "300"), KILN_ISA_AVX512, "l1=4194304,line=64",
       "vector i2 16, unroll i2 1, parallel i0 i1, grain 14285"},
      {copy, KILN_ISA_AVX512, "l1=49152,line=64",
       "vector i2 16, unroll i2 1, parallel i0 i1, grain 14285"},
      {crossing, KILN_ISA_AVX2, "l1=49152,line=64",
       "panel i1 16\n  nest 0: vector i1 8, unroll i1 1, parallel i0, grain 11111"},
  };
  check_rules(cases, sizeof cases / sizeof *cases);
}

/* -- What they come to -- */

typedef struct compile_job {
  kiln_codegen *codegen;
  const kiln_loop_fn *fn;
  const char *text;
  kiln_arena *arena;
  kiln_compiled *code;
  kiln_str ptx;
} compile_job;
static kiln_status *compile_text(compile_job *job) {
  kiln_reason reason;
  kiln_schedule schedule;
  KILN_TRY(kiln_schedule_parse(kiln_str_from(job->text), job->fn, job->arena, &schedule));
  return kiln_codegen_compile_as(job->codegen, job->fn, &schedule, &reason, &job->code);
}

/* Axes are the loops that it names, as they stand; others are cut nowhere. The name of the code is
 * of both texts, so that each schedule has its own; the kernel's is of its own. */
static void test_grid(void **unused) {
  (void)unused;
  static const struct {
    const char *schedule;
    int64_t grid[KILN_KERNEL_AXES];
  } cases[] = {
      {"", {1, 1, 1}},
      {"schedule { nest 0: parallel i1 }", {30, 1, 1}},
      {"schedule { nest 0: order i2 i1 i0, parallel i0 i2 }", {50, 4, 1}},
      {"schedule { nest 0: vector i2 16, parallel i0 i1 i2 }", {4, 30, 50}},
  };
  fixture f;
  fixture_open(&f);
  kiln_compiled *made[4];
  kiln_loop_fn *fn = parse_loop(&f, copy, false, NULL);
  compile_job job = {.fn = fn, .arena = f.arena};
  assert_ok(kiln_codegen_create(f.env, &job.codegen));
  for (int i = 0; i < 4; i++) {
    job.text = cases[i].schedule;
    assert_ok(compile_text(&job));
    assert_memory_equal(job.code->info.work.grid.end, cases[i].grid, sizeof cases[i].grid);
    made[i] = job.code;
    assert_memory_equal(&made[i]->digest, &made[0]->digest, sizeof made[i]->digest);
    for (int k = 0; k < i; k++) assert_ptr_not_equal(made[k], made[i]);
    assert_ok(compile_text(&job)); /* from the cache */
    assert_ptr_equal(job.code, made[i]);
    kiln_compiled_release(job.code);
  }
  for (int i = 0; i < 4; i++) kiln_compiled_release(made[i]);
  kiln_codegen_destroy(job.codegen);
  fixture_close(&f);
}

/* A grain is what a thread gets at least, of one axis or more as one range: 600 of 6000 iterations
 * are 3 of 30, or 12 of 4 x 30. */
static void test_grain(void **unused) {
  (void)unused;
  static const struct {
    const char *schedule;
    int axes;
    int64_t grain;
  } cases[] = {
      {"schedule { nest 0: parallel i1, grain 600 }", 1, 3},
      {"schedule { nest 0: parallel i0 i1, grain 600 }", 2, 12},
      {"schedule { nest 0: parallel i0 i1, grain 1 }", 2, 1},
      {"schedule { nest 0: parallel i0 i1, grain 6000 }", 1, 4},
  };
  fixture f;
  fixture_open(&f);
  kiln_loop_fn *fn = parse_loop(&f, copy, false, NULL);
  compile_job job = {.fn = fn, .arena = f.arena};
  assert_ok(kiln_codegen_create(f.env, &job.codegen));
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    job.text = cases[i].schedule;
    assert_ok(compile_text(&job));
    assert_int_equal(job.code->info.work.axes, cases[i].axes);
    assert_int_equal(job.code->info.work.grain, cases[i].grain);
    kiln_compiled_release(job.code);
  }
  kiln_codegen_destroy(job.codegen);
  fixture_close(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_text),
      cmocka_unit_test(test_refused),
      cmocka_unit_test(test_refused_loops),
      cmocka_unit_test(test_rules),
      cmocka_unit_test(test_rules_of_bodies),
      cmocka_unit_test(test_rules_of_rows),
      cmocka_unit_test(test_rules_of_short_sums),
      cmocka_unit_test(test_rules_of_functions),
      cmocka_unit_test(test_rules_of_panels),
      cmocka_unit_test(test_grid),
      cmocka_unit_test(test_grain),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
