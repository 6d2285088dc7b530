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

static kiln_model *load(void) {
  static archive_builder archive;
  static const char root[] = "\x80\x02"
                             "c__torch__\nM\n)\x81}X\x08\0\0\0training\x89sb.";
  static const char constants[] = "\x80\x02).";
  kiln_model *model;
  archive_add_bytes(&archive, "t/data.pkl", root, sizeof root - 1);
  archive_add_bytes(&archive, "t/code/__torch__.py", source, sizeof source - 1);
  archive_add_bytes(&archive, "t/constants.pkl", constants, sizeof constants - 1);
  archive_add(&archive, "t/version", "9\n");
  archive_finish(&archive);
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
  kiln_model *model = load();
  assert_ok(kiln_instance_create(model, &instance));
  for (int i = 0; i < 4; i++) check(instance, 1, -2, 3);
  check(instance, 0, 30, 0);
  for (int i = 0; i < 4; i++) check(instance, 1, -30, 20);
  kiln_instance_release(instance);
  kiln_model_release(model);
  kiln_context_release(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_flag_that_a_branch_writes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
