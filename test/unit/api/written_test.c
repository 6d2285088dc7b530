/* written_test.c: what a program writes into itself is what it reads, also where flags have become
 * constants of a plan. */
#include "kiln/kiln.h"
#include "test/unit/frontend/archive_support.h"

/* 1 - x; once `keeps` is false, training is set and it is 10 relu(x). */
static const char source[] = "class M(Module):\n"
                             "  __parameters__ = []\n"
                             "  __buffers__ = []\n"
                             "  training : bool\n"
                             "  def forward(self: __torch__.M, x: Tensor, keeps: bool) -> Tensor:\n"
                             "    if keeps:\n"
                             "      y = torch.neg(x)\n"
                             "    else:\n"
                             "      self.training = True\n"
                             "      y = torch.relu(x)\n"
                             "    if self.training:\n"
                             "      z = torch.mul(y, 10)\n"
                             "    else:\n"
                             "      z = torch.add(y, 1)\n"
                             "    return z\n";

static kiln_context *context;

/* relu(2x) in rows of `width`, and how often step() was called added. */
static const char numbers[] =
    "class M(Module):\n"
    "  __parameters__ = []\n"
    "  __buffers__ = []\n"
    "  width : int\n"
    "  steps : int\n"
    "  def forward(self: __torch__.M, x: Tensor, unused: bool) -> Tensor:\n"
    "    width = self.width\n"
    "    rows = torch.view(torch.mul(x, 2), [-1, width])\n"
    "    return torch.add(torch.relu(rows), self.steps)\n"
    "  def step(self: __torch__.M) -> NoneType:\n"
    "    self.steps = torch.add(self.steps, 1)\n"
    "    return None\n";
static const char numbers_root[] = "\x80\x02"
                                   "c__torch__\nM\n)\x81}(X\x05\0\0\0widthK\x01"
                                   "X\x05\0\0\0stepsK\x00ub.";
static const char root[] = "\x80\x02"
                           "c__torch__\nM\n)\x81}X\x08\0\0\0training\x89sb.";

static kiln_model *load(const char *code, const char *data, size_t data_size) {
  static archive_builder archive;
  kiln_model *model;
  archive_of(&archive, code, data, data_size - 1);
  assert_ok(kiln_model_load_memory(context, archive.bytes, archive.size, NULL, &model));
  return model;
}

static void check(kiln_instance *instance, int keeps, float a, float b) {
  kiln_value *args[2], *result = NULL;
  float got[2];
  assert_ok(
      kiln_value_tensor(context, KILN_DTYPE_F32, 1, (int64_t[]){2}, (float[]){3, -2}, &args[0]));
  assert_ok(kiln_value_bool(context, keeps, &args[1]));
  assert_ok(kiln_instance_call(instance, "forward", args, 2, NULL, &result));
  assert_ok(kiln_value_copy_data(result, got, sizeof got));
  assert_true(got[0] == a && got[1] == b);
  for (int i = 0; i < 2; i++) kiln_value_destroy(args[i]);
  kiln_value_destroy(result);
}

static void a_flag_that_a_branch_writes(void **state) {
  (void)state;
  kiln_instance *instance;
  assert_ok(kiln_context_create(NULL, &context));
  kiln_model *model = load(source, root, sizeof root);
  assert_ok(kiln_instance_create(model, &instance));
  for (int i = 0; i < 4; i++) check(instance, 1, -2, 3);
  check(instance, 0, 30, 0);
  for (int i = 0; i < 4; i++) check(instance, 1, -30, 20);
  kiln_instance_release(instance);
  kiln_model_release(model);
  kiln_context_release(context);
}

static uint64_t compiled_runs(kiln_model *model) {
  kiln_counters counters;
  kiln_model_counters(model, &counters);
  return counters.compiled_runs;
}

/* One that no code of the class sets is a constant, and where the host sets it, another one, for
 * which a run records types again; one that step() sets never is, so that code stays compiled. */
static void numbers_that_are_set(void **state) {
  (void)state;
  kiln_instance *instance;
  kiln_value *two = NULL, *got = NULL;
  assert_ok(kiln_context_create(NULL, &context));
  kiln_model *model = load(numbers, numbers_root, sizeof numbers_root);
  assert_ok(kiln_instance_create(model, &instance));
  for (int i = 0; i < 4; i++) check(instance, 0, 6, 0);
  uint64_t before = compiled_runs(model);
  assert_true(before > 0);
  assert_ok(kiln_instance_call(instance, "step", NULL, 0, NULL, &got));
  for (int i = 0; i < 4; i++) check(instance, 0, 7, 1);
  assert_true(compiled_runs(model) == before + 4);
  assert_ok(kiln_value_int(context, 2, &two));
  assert_ok(kiln_instance_set(instance, "width", two));
  before = compiled_runs(model);
  for (int i = 0; i < 4; i++) check(instance, 0, 7, 1);
  assert_true(compiled_runs(model) == before + 3);
  kiln_value_destroy(two);
  kiln_value_destroy(got);
  kiln_instance_release(instance);
  kiln_model_release(model);
  kiln_context_release(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_flag_that_a_branch_writes),
                                     cmocka_unit_test(numbers_that_are_set)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
