/* env_test.c: flags, log channels, the environment and the instruction set. */
#include "test/unit/sweep.h"

/* -- Flags -- */

static void every_default_reads_and_prints(void **state) {
  (void)state;
  kiln_flags flags, again;
  kiln_flags_init(&flags);
  for (int i = 0; i < kiln_flag_count; i++) {
    const kiln_flag_info *info = &kiln_flag_table[i];
    assert_ptr_equal(kiln_flags_find(info->name), info);
    assert_ok(kiln_flags_set(&flags, info->name, info->default_text));
    char text[KILN_FLAG_STRING_MAX];
    int len = kiln_flags_print(&flags, info, text, sizeof text);
    assert_int_equal(len, strlen(text));
    assert_string_equal(text, info->default_text);
    kiln_flags_init(&again);
    assert_ok(kiln_flags_set(&again, info->name, text));
    assert_true(strlen(info->meaning) > 10);
  }
  assert_null(kiln_flags_find("no_such_flag"));
}

static void values_have_their_types(void **state) {
  (void)state;
  kiln_flags flags;
  kiln_flags_init(&flags);
  assert_true(flags.jit && !flags.verify && flags.bailout_depth == -1);
  assert_ok(kiln_flags_set(&flags, "jit", "off"));
  assert_ok(kiln_flags_set(&flags, "verify", "1"));
  assert_ok(kiln_flags_set(&flags, "bailout_depth", "20"));
  assert_ok(kiln_flags_set(&flags, "codegen", "eval"));
  assert_ok(kiln_flags_set(&flags, "compat", "torch"));
  assert_int_equal(flags.compat, KILN_COMPAT_TORCH);
  assert_ok(kiln_flags_set(&flags, "alloc", "system"));
  assert_int_equal(flags.alloc, KILN_ALLOC_SYSTEM);
  assert_ok(kiln_flags_set(&flags, "isa", "avx512"));
  assert_int_equal(flags.isa, KILN_ISA_AVX512 + 1); /* after "native" */
  assert_ok(kiln_flags_set(&flags, "dump", "some/folder"));
  assert_ok(kiln_flags_set(&flags, "stress_bailout", "0.25"));
  assert_false(flags.jit);
  assert_true(flags.verify);
  assert_int_equal(flags.bailout_depth, 20);
  assert_int_equal(flags.codegen, 1);
  assert_string_equal(flags.dump.text, "some/folder");
  assert_true(flags.stress_bailout == 0.25);
}

static void wrong_values_are_refused(void **state) {
  (void)state;
  static const char *const wrong[][3] = {
      {"jit", "maybe", "on or off"},
      {"jit", "", "on or off"},
      {"bailout_depth", "1001", "-1 to 1000"},
      {"bailout_depth", "-2", "-1 to 1000"},
      {"bailout_depth", "2x", "integer"},
      {"num_profiled_runs", "0", "1 to 1000"},
      {"codegen", "ll", "llvm|eval"},
      {"codegen", "", "llvm|eval"},
      {"codegen", "llvm|eval", "llvm|eval"},
      {"stress_bailout", "1.5", "number"},
      {"stress_bailout", "nan", "number"},
      {"fusion_strategy", "STATIC", "levels"},
      {"fusion_strategy", "STATIC,x", "levels"},
      {"fusion_strategy", "static,2", "levels"},
      {"fusion_strategy", "STATIC,2;;DYNAMIC,1", "levels"},
      {"fusion_strategy", "STATIC,-1", "levels"},
      {"compile", "later", "sync|async"},
      {"compile_share", "100", "1 to 99"},
      {"nothing", "1", "no option"},
      {"JIT", "on", "no option"},
  };
  kiln_flags flags, before;
  kiln_flags_init(&flags);
  before = flags;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    assert_error(kiln_flags_set(&flags, wrong[i][0], wrong[i][1]), KILN_INVALID_ARGUMENT,
                 wrong[i][2]);
  char text[KILN_FLAG_STRING_MAX + 1];
  memset(text, 'x', sizeof text);
  text[KILN_FLAG_STRING_MAX] = 0;
  assert_error(kiln_flags_set(&flags, "dump", text), KILN_INVALID_ARGUMENT, "255 bytes");
  assert_memory_equal(&flags, &before, sizeof flags);
}

static void strategies_walk_from_the_back(void **state) {
  (void)state;
  kiln_flags flags;
  kiln_flags_init(&flags);
  assert_ok(kiln_flags_set(&flags, "fusion_strategy", "STATIC,2;DYNAMIC,10;"));
  kiln_strategy *strategy = &flags.fusion_strategy;
  assert_int_equal(strategy->count, 2);
  assert_int_equal(kiln_strategy_depth(strategy), 12);
  assert_false(kiln_strategy_is_dynamic(strategy, 12));
  assert_false(kiln_strategy_is_dynamic(strategy, 11));
  assert_true(kiln_strategy_is_dynamic(strategy, 10));
  assert_true(kiln_strategy_is_dynamic(strategy, 1));
  assert_ok(kiln_flags_set(&flags, "fusion_strategy", ""));
  assert_int_equal(kiln_strategy_depth(strategy), 0);
}

static void check_strategy(const char *given, const char *depth, const char *wanted) {
  kiln_flags flags;
  kiln_flags_init(&flags);
  if (given) assert_ok(kiln_flags_set(&flags, "fusion_strategy", given));
  assert_ok(kiln_flags_set(&flags, "bailout_depth", depth));
  flags.fusion_strategy = kiln_flags_strategy(&flags);
  char text[100];
  kiln_flags_print(&flags, kiln_flags_find("fusion_strategy"), text, sizeof text);
  assert_string_equal(text, wanted);
}

static void bailout_depth_caps_the_strategy(void **state) {
  (void)state;
  check_strategy(NULL, "-1", "STATIC,2;DYNAMIC,10");
  check_strategy(NULL, "20", "STATIC,20"); /* alone */
  check_strategy(NULL, "0", "STATIC,0");
  check_strategy("STATIC,2;DYNAMIC,10", "5", "STATIC,2;DYNAMIC,3");
  check_strategy("STATIC,2;DYNAMIC,10", "1", "STATIC,1;DYNAMIC,0");
  check_strategy("DYNAMIC,1", "5", "DYNAMIC,1");
}

/* -- The environment -- */

typedef struct seen {
  int count;
  char last[80];
} seen;

static void note_unknown(void *user, const char *name) {
  seen *s = user;
  s->count++;
  snprintf(s->last, sizeof s->last, "%s", name);
}

#define BIT_OF(name) ((uint64_t)1 << (kiln_flags_find(name) - kiln_flag_table))

static void environment_sets_flags(void **state) {
  (void)state;
  char *const environment[] = {
      "PATH=/bin",   "KILN_JIT=off",  "KILN_NUM_PROFILED_RUNS=3", "KILN_WHATEVER=1",
      "KILN_jit=on", "KILN_NOEQUALS", "XKILN_CODEGEN=eval",       NULL};
  kiln_flags flags;
  seen s = {0};
  uint64_t set = 0;
  kiln_flags_init(&flags);
  assert_ok(kiln_flags_read_env(&flags, environment, note_unknown, &s, &set));
  assert_int_equal(set, BIT_OF("jit") | BIT_OF("num_profiled_runs"));
  assert_false(flags.jit);
  assert_int_equal(flags.num_profiled_runs, 3);
  assert_int_equal(flags.codegen, 0);
  assert_int_equal(s.count, 2);
  assert_string_equal(s.last, "KILN_jit");
  assert_ok(kiln_flags_read_env(&flags, NULL, NULL, NULL, &set));
  char *const wrong[] = {"KILN_JIT=perhaps", NULL};
  kiln_status *status = kiln_flags_read_env(&flags, wrong, NULL, NULL, &set);
  assert_non_null(strstr(kiln_status_report(status), "KILN_JIT"));
  assert_error(status, KILN_INVALID_ARGUMENT, "jit");
}

static void env_obeys_its_flags(void **state) {
  (void)state;
  kiln_env *env = NULL;
  char *const v2[] = {"KILN_ISA=v2", "KILN_ALLOC=system", "KILN_LOG=fusion=2,warn=0", NULL};
  assert_ok(kiln_env_create(v2, &env));
  assert_int_equal(env->isa, KILN_ISA_V2);
  assert_int_equal(env->log.level[KILN_LOG_fusion], 2);
  assert_int_equal(env->log.level[KILN_LOG_warn], 0);
  kiln_env_destroy(env);

  char *const native[] = {"KILN_MEMORY_LIMIT=100000", NULL};
  assert_ok(kiln_env_create(native, &env));
  assert_int_equal(env->isa, kiln_isa_detect());
  assert_null(kiln_mem_alloc(env->mem, 200000));
  kiln_env_destroy(env);

  char *const wrong[] = {"KILN_LOG=fusion=x", NULL};
  assert_error(kiln_env_create(wrong, &env), KILN_INVALID_ARGUMENT, "fusion=x");
  assert_null(env);
  char *const tight[] = {"KILN_MEMORY_LIMIT=1", NULL}; /* the env itself is not refused by it */
  assert_ok(kiln_env_create(tight, &env));
  kiln_env_destroy(env);
  kiln_env_destroy(NULL);
}

/* GCC's own idea of this CPU, which also asks the operating system. */
static void isa_agrees_with_the_compiler(void **state) {
  (void)state;
  kiln_isa isa = kiln_isa_detect();
#if defined(__x86_64__)
  __builtin_cpu_init();
  bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
              __builtin_cpu_supports("bmi2");
  bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                __builtin_cpu_supports("avx512cd");
  const bool bf16 = avx512 && __builtin_cpu_supports("avx512bf16");
  assert_int_equal(isa, bf16     ? KILN_ISA_AVX512BF16
                        : avx512 ? KILN_ISA_AVX512
                        : avx2   ? KILN_ISA_AVX2
                                 : KILN_ISA_V2);
#else
  assert_int_equal(isa, KILN_ISA_V2);
#endif
  assert_string_equal(kiln_isa_name(KILN_ISA_V2), "v2");
  assert_string_equal(kiln_isa_name(KILN_ISA_AVX512), "avx512");
  assert_string_equal(kiln_isa_name(KILN_ISA_AVX512BF16), "avx512bf16");
  assert_string_equal(kiln_isa_name(KILN_ISA__COUNT), "unknown");
}

/* -- Log -- */

typedef struct lines {
  int count;
  char text[8][64];
} lines;

static void keep_line(void *user, const char *channel, int level, const char *line) {
  lines *l = user;
  if (l->count < 8)
    snprintf(l->text[l->count], sizeof l->text[0], "%s %d %.40s", channel, level, line);
  l->count++;
}

static void log_filters_and_splits(void **state) {
  (void)state;
  lines l = {0};
  kiln_log log;
  kiln_log_init(&log);
  log.callback = keep_line;
  log.user = &l;
  KILN_LOG(&log, fusion, 1, "silent");
  KILN_LOG(&log, warn, 1, "heard %d", 7);
  assert_ok(kiln_log_parse(&log, "fusion=2,guard"));
  KILN_LOG(&log, fusion, 2, "a\n\nb\n");
  KILN_LOG(&log, fusion, 3, "too fine");
  KILN_LOG(&log, guard, 1, "%03000d", 5);
  assert_int_equal(l.count, 5);
  assert_string_equal(l.text[0], "warn 1 heard 7");
  assert_string_equal(l.text[1], "fusion 2 a");
  assert_string_equal(l.text[2], "fusion 2 ");
  assert_string_equal(l.text[3], "fusion 2 b");
  assert_string_equal(l.text[4], "guard 1 0000000000000000000000000000000000000000");
}

static void log_refuses_what_it_does_not_know(void **state) {
  (void)state;
  kiln_log log;
  kiln_log_init(&log);
  static const char *const wrong[] = {"fuse=1", "fusion=", "fusion=10", "fusion=-1", "load=1,,"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    assert_error(kiln_log_parse(&log, wrong[i]), KILN_INVALID_ARGUMENT, "channels: load, profile");
  assert_int_equal(log.level[KILN_LOG_load], 0); /* nothing of a wrong text is taken */
  assert_ok(kiln_log_parse(&log, ""));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_default_reads_and_prints),
      cmocka_unit_test(values_have_their_types),
      cmocka_unit_test(wrong_values_are_refused),
      cmocka_unit_test(strategies_walk_from_the_back),
      cmocka_unit_test(bailout_depth_caps_the_strategy),
      cmocka_unit_test(environment_sets_flags),
      cmocka_unit_test(env_obeys_its_flags),
      cmocka_unit_test(isa_agrees_with_the_compiler),
      cmocka_unit_test(log_filters_and_splits),
      cmocka_unit_test(log_refuses_what_it_does_not_know),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
