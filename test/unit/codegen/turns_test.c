/* turns_test.c: functions of a loop in the body go in vectors that take turns (llvm/emit_tree.c),
 * with the evaluator's bits for rows of every length; how many, the rules say. */
#include "codegen_support.h"
#include "schedule_support.h"

enum { ROWS = 3, MOST = 130, ELEMENTS = ROWS * MOST };

/* A softmax without its largest element, then a function that is stored in the result itself. */
static kiln_loop_fn *parse_rows(fixture *f, int columns) {
  char text[700];
  snprintf(
      text, sizeof text,
      "kernel {\n in b0: f32[3, %d] [%d, 1]\n out b1: f32[3, %d] [%d, 1]\n local b2: f32[%d] [1]\n"
      " nest [3] {\n reduce %d {\n %%1 = load f32 b0 + 0 [%d, 1]\n %%2 = exp f32 %%1\n"
      " store f32 b2 + 0 [0, 1], %%2\n %%4 = sum f32 %%2 over 1\n }\n"
      " for %d {\n %%7 = load f32 b2 + 0 [0, 1]\n %%8 = div f32 %%7, %%4\n %%9 = tanh f32 %%8\n"
      " store f32 b1 + 0 [%d, 1], %%9\n }\n }\n}\n",
      columns, columns, columns, columns, columns, columns, columns, columns, columns);
  return parse_loop(f, text, true, NULL);
}

static void run(const kiln_compiled *code, float *in, float *out) {
  void *data[] = {in, out};
  void *scratch = aligned_alloc(64, code->info.work.scratch_bytes / 64 * 64 + 64);
  kiln_kernel_args args = {.data = data, .scratch = scratch, .closure = code->closure};
  memset(out, 0, ELEMENTS * sizeof *out);
  code->fn(&args, &code->info.work.grid);
  free(scratch);
}

/* `turns` 0: as the rules say. */
static void check_rows(kiln_codegen *codegen, fixture *f, int columns, int turns) {
  float in[ELEMENTS], plain[ELEMENTS], compiled[ELEMENTS];
  char text[96];
  kiln_reason reason;
  kiln_compiled *code;
  kiln_schedule s;
  for (int i = 0; i < ELEMENTS; i++) in[i] = (float)(i * 37 % 101) / 16 - 3;
  kiln_loop_fn *fn = parse_rows(f, columns);
  assert_ok(kiln_codegen_compile(codegen, fn, KILN_BACKEND_EVAL, &reason, &code, NULL));
  run(code, in, plain);
  kiln_compiled_release(code);
  snprintf(text, sizeof text, "schedule { nest 0: vector l 8, unroll l0 %d, unroll l1 %d }", turns,
           turns);
  if (turns) {
    assert_ok(kiln_schedule_parse(kiln_str_from(text), fn, f->arena, &s));
    assert_ok(kiln_codegen_compile_as(codegen, fn, &s, &reason, &code));
  } else {
    assert_ok(kiln_codegen_compile(codegen, fn, KILN_BACKEND_LLVM, &reason, &code, NULL));
  }
  run(code, in, compiled);
  kiln_compiled_release(code);
  if (memcmp(plain, compiled, sizeof plain) != 0)
    fail_msg("%d columns, %d in turns", columns, turns);
}

static void test_bits(void **unused) {
  (void)unused;
  for (int isa = 0; isa < isa_count(); isa++) {
    fixture f;
    kiln_codegen *codegen;
    fixture_open(&f);
    f.env->isa = (kiln_isa)isa;
    assert_ok(kiln_codegen_create(f.env, &codegen));
    for (int columns = 2; columns <= MOST; columns += columns < 40 ? 3 : 13)
      for (int turns = 0; turns <= 8; turns += turns == 5 ? 3 : 1)
        if (turns != 1) check_rows(codegen, &f, columns, turns);
    kiln_codegen_destroy(codegen);
    fixture_close(&f);
  }
}

static void test_rules(void **unused) {
  (void)unused;
  static const struct {
    kiln_isa isa;
    int columns, count;
  } cases[] = {
      {KILN_ISA_AVX2, 24, 0},   {KILN_ISA_AVX2, 32, 4}, {KILN_ISA_AVX2, 49, 2},
      {KILN_ISA_AVX2, 130, 4},  {KILN_ISA_V2, 24, 2},   {KILN_ISA_AVX512, 64, 4},
      {KILN_ISA_AVX512, 49, 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    fixture f;
    kiln_machine machine;
    fixture_open(&f);
    assert_ok(kiln_machine_describe(cases[i].isa, kiln_str_from(""), &machine));
    const kiln_schedule s =
        kiln_schedule_choose(parse_rows(&f, cases[i].columns), &machine, f.arena);
    const kiln_schedule_nest *nest = &s.nests[0];
    assert_int_equal(nest->unroll_count, cases[i].count ? 2 : 0);
    for (int k = 0; k < nest->unroll_count; k++)
      assert_int_equal(nest->unrolls[k].count, cases[i].count);
    fixture_close(&f);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_bits), cmocka_unit_test(test_rules)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
