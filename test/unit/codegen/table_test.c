/* table_test.c: functions that are the same in all rows of a nest are computed once, into a table
 * on the stack (llvm/emit_table.c), for every instruction set, with the evaluator's bits; and those
 * that are not are not. */
#include "codegen_support.h"

enum { COLUMNS = 32, ELEMENTS = 3 * 7 * COLUMNS };

/* Rows by columns of x (b0), g (b1) and h (b2). */
#define KERNEL(sizes, x, g, h, body, y)                                                           \
  "kernel {\n in b0: f32[672] [1]\n in b1: f32[672] [1]\n in b2: f32[672] [1]\n out b3: f32[672]" \
  " [1]\n nest " sizes " {\n %0 = load f32 b0 + 0 " x "\n %1 = load f32 b1 + 0 " g                \
  "\n %2 = load f32 b2 + 0 " h "\n" body "\n store f32 b3 + 0 " x ", " y "\n }\n}\n"
#define GATED(sizes, x, g, h) \
  KERNEL(sizes, x, g, h, " %3 = sigmoid f32 %1\n %4 = add f32 %0, %2\n %5 = mul f32 %3, %4", "%5")

static const struct {
  const char *text;
  int tables;
} cases[] = {
    {GATED("[21, 32]", "[32, 1]", "[0, 1]", "[32, 1]"), 1},
    /* A table for each image. */
    {GATED("[3, 7, 32]", "[224, 32, 1]", "[32, 0, 1]", "[224, 32, 1]"), 1},
    /* What is made of a function goes along; both are read in the rows. */
    {KERNEL("[21, 32]", "[32, 1]", "[0, 1]", "[0, 1]",
            " %3 = exp f32 %1\n %4 = add f32 %3, %2\n %5 = tanh f32 %4\n"
            " %6 = mul f32 %0, %5\n %7 = mul f32 %6, %3",
            "%7"),
     2},
    {KERNEL("[21, 32]", "[32, 1]", "[0, 1]", "[0, 1]",
            " %3 = exp f32 %1\n %4 = add f32 %3, %2\n %5 = tanh f32 %4\n %6 = mul f32 %0, %5",
            "%6"),
     1},
    /* A number of each row makes it another in each. */
    {KERNEL("[21, 32]", "[32, 1]", "[0, 1]", "[1, 0]",
            " %3 = add f32 %1, %2\n %4 = exp f32 %3\n %5 = mul f32 %0, %4", "%5"),
     0},
    {KERNEL("[21, 32]", "[32, 1]", "[0, 1]", "[0, 1]",
            " %3 = exp f32 %0\n %4 = add f32 %1, %2\n %5 = mul f32 %3, %4", "%5"),
     0},
    /* Too few rows; columns that are no whole vectors; nothing that takes long. */
    {GATED("[3, 32]", "[32, 1]", "[0, 1]", "[32, 1]"), 0},
    {GATED("[21, 31]", "[31, 1]", "[0, 1]", "[31, 1]"), 0},
    {KERNEL("[21, 32]", "[32, 1]", "[0, 1]", "[32, 1]",
            " %3 = add f32 %1, %1\n %4 = add f32 %0, %2\n %5 = mul f32 %3, %4", "%5"),
     0},
};

static void run(kiln_codegen *codegen, const kiln_loop_fn *fn, kiln_backend backend, float **data) {
  kiln_reason reason;
  kiln_compiled *code;
  assert_ok(kiln_codegen_compile(codegen, fn, backend, &reason, &code, NULL));
  void *scratch = aligned_alloc(64, code->info.work.scratch_bytes / 64 * 64 + 64);
  kiln_kernel_args args = {.data = (void *)data, .scratch = scratch, .closure = code->closure};
  code->fn(&args, &code->info.work.grid);
  free(scratch);
  kiln_compiled_release(code);
}

static void check_case(int number, int isa) {
  float in[3][ELEMENTS], plain[ELEMENTS] = {0}, compiled[ELEMENTS] = {0};
  uint64_t seed = 5;
  fixture f;
  kiln_codegen *codegen;
  kiln_str text;
  for (int i = 0; i < 3; i++)
    for (int e = 0; e < ELEMENTS; e++) in[i][e] = (float)random_below(&seed, 999) / 99 - 5;
  fixture_open(&f);
  f.env->isa = (kiln_isa)isa;
  assert_ok(kiln_codegen_create(f.env, &codegen));
  kiln_loop_fn *fn = parse_loop(&f, cases[number].text, true, NULL);
  run(codegen, fn, KILN_BACKEND_EVAL, (float *[]){in[0], in[1], in[2], plain});
  run(codegen, fn, KILN_BACKEND_LLVM, (float *[]){in[0], in[1], in[2], compiled});
  if (memcmp(plain, compiled, sizeof plain) != 0) fail_msg("case %d, isa %d", number, isa);
  assert_ok(kiln_codegen_dump(codegen, fn, KILN_STAGE_LLVM, f.arena, &text));
  int tables = 0;
  for (const char *at = text.data; (at = strstr(at, "alloca [32 x float]")); at++) tables++;
  if (tables != cases[number].tables) fail_msg("case %d, isa %d: %d tables", number, isa, tables);
  kiln_codegen_destroy(codegen);
  fixture_close(&f);
}

static void test_tables(void **unused) {
  (void)unused;
  for (int isa = 0; isa < isa_count(); isa++)
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_case((int)i, isa);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_tables)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
