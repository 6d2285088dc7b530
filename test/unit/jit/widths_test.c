/* widths_test.c: programs wider than an instruction, or than what a call has room for. */
#include "test/unit/jit/jit_support.h"

/* Results whose sizes a call works out of symbols, as many as a group may have. */
static void many_sizes(void **state) {
  enum { RESULTS = 120 };
  (void)state;
  for (int rank = 4; rank <= 8; rank += 4) {
    model m;
    char text[256 * RESULTS], *end = text;
    end += sprintf(end, "graph(%%x : Tensor):\n  %%one : int = prim::Constant[value=1]()\n");
    for (int i = 0; i < RESULTS; i++)
      end += sprintf(end, "  %%r%d : Tensor = aten::add(%%x, %%one, %%one)\n", i);
    end += sprintf(end, "  return (%%r0");
    for (int i = 1; i < RESULTS; i++) end += sprintf(end, ", %%r%d", i);
    sprintf(end, ")\n");
    model_open(
        &m, text,
        (const char *[]){"codegen=eval", "fusion_strategy=DYNAMIC,2", "pass_limit=cse=0", NULL});
    for (int i = 0; i < 4; i++) {
      const int64_t sizes[8] = {2 + i, 2, 1, 1, 1, 1, 1, 1};
      kiln_ivalue x = make_tensor(&m, rank, sizes, 0.5);
      check_call(&m, &x, 1);
      kiln_ivalue_release(x);
    }
    assert_true(counters(&m).compiled_runs > 0);
    model_close(&m);
  }
}

/* An instruction counts its operands in 16 bits: a branch of more results has no plan. */
static void many_results(void **state) {
  (void)state;
  for (int count = 65535; count <= 65536; count++) {
    model m;
    char *text = malloc(64 * (size_t)count), *end = text;
    end += sprintf(end, "graph(%%c : bool, %%x : Tensor, %%y : Tensor):\n  ");
    for (int i = 0; i < count; i++) end += sprintf(end, "%s%%a%d : Tensor", i ? ", " : "", i);
    end += sprintf(end, " = prim::If(%%c)\n");
    for (int b = 0; b < 2; b++) {
      end += sprintf(end, "    block%d():\n      -> (", b);
      for (int i = 0; i < count; i++)
        end += sprintf(end, "%s%%%c", i ? ", " : "", "xy"[(b + i) % 2]);
      end += sprintf(end, ")\n");
    }
    end += sprintf(end, "  return (%%a0");
    for (int i = 1; i < count; i++) end += sprintf(end, ", %%a%d", i);
    sprintf(end, ")\n");
    model_open(&m, text, NULL);
    kiln_ivalue args[3] = {kiln_bool(true), make_matrix(&m, 1, 1, 1), make_matrix(&m, 1, 1, 1)};
    kiln_ivalue result = kiln_none();
    m.call->jit = false;
    kiln_call_begin(m.call, NULL);
    kiln_status *status = kiln_jit_call(m.jit, m.call, m.function, args, 3, &result);
    if (count > 65535)
      assert_error(status, KILN_UNSUPPORTED, "more than 65535 values");
    else
      assert_ok(status);
    for (int i = 0; i < 3; i++) kiln_ivalue_release(args[i]);
    kiln_ivalue_release(result);
    free(text);
    model_close(&m);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(many_sizes), cmocka_unit_test(many_results)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
