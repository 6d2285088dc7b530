/* steady_test.c: what a steady call asks the context's memory for: its outputs, and nothing else.
 * Tensors, lists and tuples on the way come from the cache of the call. */
#include "api/internal.h"
#include "base/sanitize.h"
#include "kiln/kiln.h"
#include "test/unit/frontend/archive_support.h"

static kiln_context *context;
static kiln_model *model;
static kiln_instance *instance;

static const char source[] =
    "class M(Module):\n"
    "  __parameters__ = []\n"
    "  __buffers__ = []\n"
    "  training : bool\n"
    "  def group(self: __torch__.M, x: Tensor) -> Tensor:\n"
    "    return torch.mul(torch.tanh(torch.add(x, x)), x)\n"
    "  def lists(self: __torch__.M, x: Tensor) -> Tensor:\n"
    "    l = annotate(List[Tensor], [])\n"
    "    for i in range(20):\n"
    "      _0 = torch.append(l, torch.mul(x, i))\n"
    "    return torch.stack(l)\n"
    "  def parts(self: __torch__.M, x: Tensor) -> Tensor:\n"
    "    a, b = torch.chunk(x, 2, 1)\n"
    "    c = torch.split(x, 2)\n"
    "    return torch.add(torch.cat([b, a], 1), c[0])\n"
    "  def tuples(self: __torch__.M, x: Tensor) -> Tensor:\n"
    "    t = annotate(List[Tuple[Tensor, int]], [(x, 1), (torch.neg(x), 2)])\n"
    "    y, n = t[torch.len(torch.size(x)) - 1]\n"
    "    return torch.mul(y, n)\n"
    "  def sizes(self: __torch__.M, x: Tensor) -> Tensor:\n"
    "    s = torch.size(x)\n"
    "    _0 = torch.insert(s, 0, 1)\n"
    "    return torch.reshape(torch.neg(x), torch.add(s, [1, 1]))\n";

static int open_model(void **state) {
  (void)state;
  static archive_builder archive;
  static const char root[] = "\x80\x02"
                             "c__torch__\nM\n)\x81}X\x08\0\0\0training\x88sb.";
  archive_of(&archive, source, root, sizeof root - 1);
  assert_ok(kiln_context_create(NULL, &context));
  assert_ok(kiln_model_load_memory(context, archive.bytes, archive.size, NULL, &model));
  assert_ok(kiln_instance_create(model, &instance));
  return 0;
}

static int close_model(void **state) {
  (void)state;
  kiln_instance_release(instance);
  kiln_model_release(model);
  kiln_context_release(context);
  return 0;
}

/* The request of a call that fails, from 1; 0: all are counted. */
static uint64_t requests_of(const char *method, kiln_value *x) {
  kiln_value *result = NULL;
  (void)kiln_mem_fail_at(context->env->mem, 0);
  assert_ok(kiln_instance_call(instance, method, &x, 1, NULL, &result));
  const uint64_t count = kiln_mem_fail_at(context->env->mem, 0);
  kiln_value_destroy(result);
  return count;
}

/* A tensor is up to three blocks (itself, its storage, its elements), and the host's handle one. */
static void asks_for_outputs(void **state) {
  (void)state;
  enum { WARM = 10, OUTPUT = 4 };
  static const char *const methods[] = {"group", "lists", "parts", "tuples", "sizes"};
  kiln_value *x = NULL;
  float numbers[2 * 8] = {1, 2, 3};
  assert_ok(kiln_value_tensor(context, KILN_DTYPE_F32, 2, (const int64_t[]){2, 8}, numbers, &x));
  for (size_t m = 0; m < sizeof methods / sizeof *methods; m++) {
    for (int i = 0; i < WARM; i++) assert_true(requests_of(methods[m], x) > 0);
    for (int i = 0; i < 5 && !KILN_SANITIZED; i++) /* there caches keep nothing */
      assert_in_range(requests_of(methods[m], x), 1, OUTPUT);
  }
  kiln_value_destroy(x);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(asks_for_outputs),
  };
  return cmocka_run_group_tests(tests, open_model, close_model);
}
