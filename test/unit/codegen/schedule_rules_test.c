/* schedule_rules_test.c: what the rules of tiles choose for windows and products on machines of
 * words. */
#include "schedule_support.h"

/* Windows over one channel each. Where a core fetches lines in pairs, a panel has whole pairs; an
 * image that the second cache does not keep is read once, by all panels of a strip. */
#define WINDOWS(side, channels, row, image)                                                     \
  "kernel {\n in b0: f32[" side ", " side ", " channels "] [" row ", " channels ", 1]\n"        \
  " in b1: f32[" channels ", 1, 3, 3] [9, 9, 3, 1]\n out b2: f32[56, 56, " channels "] [" image \
  ", " channels ", 1]\n nest [56, 56, " channels "] {\n reduce 3 {\n reduce 3 {\n"              \
  " %2 = load f32 b0 + 0 [" row ", " channels ", 1, " row ", " channels "]\n"                   \
  " %3 = load f32 b1 + 0 [0, 0, 9, 3, 1]\n %4 = contract f32 %2, %3 over 2\n }\n }\n"           \
  " store f32 b2 + 0 [" image ", " channels ", 1], %4\n }\n}\n"

static void test_rules_of_windows(void **unused) {
  (void)unused;
  static const struct {
    const char *kernel, *machine;
    int panel, tile, strip;
  } cases[] = {
      {WINDOWS("58", "64", "3712", "3584"), "l2=1048576,fetch=64", 16, 14, 0},
      {WINDOWS("58", "64", "3712", "3584"), "l2=1048576,fetch=128", 32, 8, 2},
      {WINDOWS("58", "64", "3712", "3584"), "l2=4194304,fetch=128", 32, 8, 0},
      {WINDOWS("58", "16", "928", "896"), "l2=65536,fetch=128", 16, 14, 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    fixture f;
    fixture_open(&f);
    kiln_machine machine;
    kiln_loop_fn *fn = parse_loop(&f, cases[i].kernel, false, NULL);
    assert_ok(kiln_machine_describe(KILN_ISA_AVX512, kiln_str_from(cases[i].machine), &machine));
    const kiln_schedule s = kiln_schedule_choose(fn, &machine, f.arena);
    assert_int_equal(s.nests[0].panel, cases[i].panel);
    assert_int_equal(s.nests[0].tile, cases[i].tile);
    assert_int_equal(s.nests[0].strip, cases[i].strip);
    fixture_close(&f);
  }
}

/* Groups of few channels: a line of an image is of several groups, so that all of them go over a
 * tile of its pixels; and where masks are dear, a result's few columns are a narrow vector. Groups
 * whose weights the first cache does not keep stay outside. */
#define GROUPS(groups, each, all, w)                                                               \
  "kernel {\n in b0: f32[58, 58, " all "] [" all "0, " all ", 1]\n in b1: f32[" all ", " each      \
  ", 3, 3] [" w ", 9, 3, 1]\n out b2: f32[56, 56, " all "] [" all "0, " all                        \
  ", 1]\n nest [56, 56, " groups ", " each "] {\n reduce 3 {\n reduce 3 {\n reduce " each          \
  " {\n %3 = load f32 b0 + 0 [" all "0, " all ", " each ", 0, " all "0, " all                      \
  ", 1]\n %4 = load f32 b1 + 0 [0, 0, " each "0, " w ", 3, 1, 9]\n %5 = contract f32 %3, %4 over " \
  "3\n }\n }\n }\n store f32 b2 + 0 [" all "0, " all ", " each ", 1], %5\n }\n}\n"

static void test_rules_of_groups(void **unused) {
  (void)unused;
  static const struct {
    const char *kernel;
    kiln_isa isa;
    int lanes, strip;
  } cases[] = {
      {GROUPS("32", "4", "128", "36"), KILN_ISA_AVX2, 4, 1},
      {GROUPS("32", "4", "128", "36"), KILN_ISA_AVX512, 16, 1},
      {GROUPS("64", "2", "128", "18"), KILN_ISA_AVX2, 4, 1},
      {GROUPS("16", "8", "128", "72"), KILN_ISA_AVX2, 8, 0},
      {GROUPS("32", "32", "1024", "288"), KILN_ISA_AVX2, 8, 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    fixture f;
    fixture_open(&f);
    kiln_machine machine;
    kiln_loop_fn *fn = parse_loop(&f, cases[i].kernel, false, NULL);
    assert_ok(kiln_machine_describe(cases[i].isa, KILN_STR("l1=32768,l2=524288,line=64,fetch=64"),
                                    &machine));
    kiln_schedule s = kiln_schedule_choose(fn, &machine, f.arena);
    assert_int_equal(s.nests[0].lanes, cases[i].lanes);
    assert_int_equal(s.nests[0].strip, cases[i].strip);
    fixture_close(&f);
  }
}

/* A panel is asked for while few rows go through the one before, and what comes a quarter of the
 * first cache later where they are one tile. Few rows that would be several tiles have narrow
 * panels. */
#define PRODUCT(rows)                                                               \
  "kernel {\n in b0: f32[" rows ", 512] [512, 1]\n in b1: f32[512, 512] [512, 1]\n" \
  " out b2: f32[" rows ", 512] [512, 1]\n nest [" rows ", 512] {\n reduce 512 {\n"  \
  " %1 = load f32 b0 + 0 [512, 0, 1]\n %2 = load f32 b1 + 0 [0, 512, 1]\n"          \
  " %3 = contract f32 %1, %2 over 1\n }\n store f32 b2 + 0 [512, 1], %3\n }\n}\n"

static void test_rules_of_prefetch(void **unused) {
  enum { MB = 1 << 20 };
  (void)unused;
  static const struct {
    const char *kernel;
    kiln_isa isa;
    bool wanted;
    int panel, tile, ahead;
    int64_t l2;
  } cases[] = {
      {PRODUCT("3"), KILN_ISA_AVX2, true, 24, 3, 85, MB},
      {PRODUCT("4"), KILN_ISA_AVX2, true, 16, 4, 128, MB},
      {PRODUCT("8"), KILN_ISA_AVX2, true, 16, 4, 0, MB},
      {PRODUCT("97"), KILN_ISA_AVX2, true, 16, 6, 0, MB},
      {PRODUCT("6"), KILN_ISA_AVX512, true, 64, 6, 32, MB},
      {PRODUCT("8"), KILN_ISA_AVX512, true, 32, 8, 64, MB},
      {PRODUCT("13"), KILN_ISA_AVX512, true, 32, 13, 64, MB},
      {PRODUCT("14"), KILN_ISA_AVX512, true, 32, 7, 0, MB},
      {PRODUCT("96"), KILN_ISA_AVX512, true, 32, 12, 0, MB},
      {PRODUCT("97"), KILN_ISA_AVX512, true, 64, 6, 0, MB},
      {PRODUCT("256"), KILN_ISA_AVX512, true, 64, 6, 0, MB},
      {PRODUCT("257"), KILN_ISA_AVX512, false, 64, 6, 0, MB},
      {PRODUCT("97"), KILN_ISA_AVX2, true, 16, 6, 0, 44000}, /* a panel takes 32 KB */
      {PRODUCT("97"), KILN_ISA_AVX2, false, 16, 6, 0, 43000},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    fixture f;
    fixture_open(&f);
    kiln_machine machine;
    kiln_loop_fn *fn = parse_loop(&f, cases[i].kernel, false, NULL);
    assert_ok(
        kiln_machine_describe(cases[i].isa, KILN_STR("l1=32768,l3=33554432,line=64"), &machine));
    machine.l2_bytes = cases[i].l2;
    const kiln_schedule s = kiln_schedule_choose(fn, &machine, f.arena);
    assert_true(s.nests[0].pack == 1 && s.nests[0].strip == 0);
    assert_int_equal(s.nests[0].panel, cases[i].panel);
    assert_int_equal(s.nests[0].tile, cases[i].tile);
    assert_int_equal(s.nests[0].prefetch, cases[i].wanted);
    assert_int_equal(s.nests[0].ahead, cases[i].ahead);
    fixture_close(&f);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rules_of_windows),
      cmocka_unit_test(test_rules_of_groups),
      cmocka_unit_test(test_rules_of_prefetch),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
