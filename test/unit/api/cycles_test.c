/* cycles_test.c: containers that a program puts into themselves are freed: when the call ends, when
 * the host lets go of what the call gave, when the instance goes. What is held is kept. */
#include "api/internal.h"
#include "kiln/kiln.h"
#include "test/unit/frontend/archive_support.h"

static kiln_context *context;
static kiln_model *model;

static const char source[] = "class M(Module):\n"
                             "  __parameters__ = []\n"
                             "  __buffers__ = []\n"
                             "  training : bool\n"
                             "  kept : List[Any]\n"
                             "  def alone(self: __torch__.M) -> int:\n"
                             "    l = annotate(List[Any], [])\n"
                             "    _0 = torch.append(l, l)\n"
                             "    return torch.len(l)\n"
                             "  def ring(self: __torch__.M) -> int:\n"
                             "    a = annotate(List[Any], [torch.ones([3])])\n"
                             "    d = annotate(Dict[str, Any], {})\n"
                             "    b = annotate(List[Any], [1, 2])\n"
                             "    _0 = torch._set_item(d, \"a\", (a, 5))\n"
                             "    _1 = torch._set_item(b, 0, d)\n"
                             "    _2 = torch.insert(a, 0, b)\n"
                             "    c = annotate(List[Any], [b])\n"
                             "    _3 = torch.extend(c, c)\n"
                             "    _4 = torch.append(c, c)\n"
                             "    return torch.len(a)\n"
                             "  def fails(self: __torch__.M) -> int:\n"
                             "    l = annotate(List[Any], [])\n"
                             "    _0 = torch.append(l, l)\n"
                             "    ops.prim.RaiseException(\"no\", \"builtins.ValueError\")\n"
                             "    return torch.len(l)\n"
                             "  def forks(self: __torch__.M) -> int:\n"
                             "    def later():\n"
                             "      l = annotate(List[Any], [])\n"
                             "      _0 = torch.append(l, l)\n"
                             "      return l\n"
                             "    f = fork(later)\n"
                             "    return torch.len(torch.wait(f))\n"
                             "  def many(self: __torch__.M, n: int) -> int:\n"
                             "    k = 0\n"
                             "    for i in range(n):\n"
                             "      l = annotate(List[Any], [i])\n"
                             "      m = annotate(List[Any], [l])\n"
                             "      _0 = torch.append(l, m)\n"
                             "      k = torch.add(k, torch.len(l))\n"
                             "    return k\n"
                             "  def give(self: __torch__.M) -> List[Any]:\n"
                             "    l = annotate(List[Any], [7])\n"
                             "    _0 = torch.append(l, l)\n"
                             "    return l\n"
                             "  def take(self: __torch__.M, l: List[Any]) -> int:\n"
                             "    _0 = torch.append(l, l)\n"
                             "    return torch.len(l)\n"
                             "  def keep(self: __torch__.M) -> int:\n"
                             "    l = self.kept\n"
                             "    _0 = torch.append(l, l)\n"
                             "    return torch.len(l)\n"
                             "  def long(self: __torch__.M) -> int:\n"
                             "    l = annotate(List[Any], [])\n"
                             "    v = annotate(List[Any], [])\n"
                             "    for i in range(300):\n"
                             "      _0 = torch.append(v, i)\n"
                             "    _1 = torch.append(v, l)\n"
                             "    _2 = torch.append(l, v)\n"
                             "    return torch.len(v)\n"
                             "  def drop(self: __torch__.M) -> NoneType:\n"
                             "    self.kept = annotate(List[Any], [])\n"
                             "    return None\n";

static int open_model(void **state) {
  (void)state;
  static archive_builder archive;
  static const char root[] =
      "\x80\x02"
      "c__torch__\nM\n)\x81}(X\x08\0\0\0training\x88X\x04\0\0\0kept"
      "ctorch.jit._pickle\nrestore_type_tag\n](eX\x09\0\0\0List[Any]\x86Rub.";
  archive_of(&archive, source, root, sizeof root - 1);
  assert_ok(kiln_context_create(NULL, &context));
  assert_ok(kiln_model_load_memory(context, archive.bytes, archive.size, NULL, &model));
  return 0;
}

static int close_model(void **state) {
  (void)state;
  kiln_model_release(model);
  kiln_context_release(context);
  return 0;
}

static int64_t int_of(kiln_value *value) {
  int64_t i = kiln_value_as_int(value);
  kiln_value_destroy(value);
  return i;
}

static int64_t call_int(kiln_instance *instance, const char *method) {
  kiln_value *result = NULL;
  assert_ok(kiln_instance_call(instance, method, NULL, 0, NULL, &result));
  return int_of(result);
}

/* Runs until everything is compiled and cached, then many times: nothing may be left each time. */
static void must_not_grow(void (*once)(kiln_instance *instance), kiln_instance *instance) {
  for (int i = 0; i < 10; i++) once(instance);
  const size_t before = kiln_context_bytes(context);
  for (int i = 0; i < 50; i++) once(instance);
  assert_int_equal(kiln_context_bytes(context), before);
}

static void call_alone(kiln_instance *instance) {
  assert_int_equal(call_int(instance, "alone"), 1);
}
/* The way from one list to the other lies behind more numbers than are looked at. */
static void call_long(kiln_instance *instance) {
  assert_int_equal(call_int(instance, "long"), 301);
}
static void call_ring(kiln_instance *instance) { assert_int_equal(call_int(instance, "ring"), 2); }
/* Of an instance of its own, with whose calls their free blocks go. */
static void call_forks(kiln_instance *ignored) {
  (void)ignored;
  kiln_instance *instance = NULL;
  assert_ok(kiln_instance_create(model, &instance));
  assert_int_equal(call_int(instance, "forks"), 1);
  kiln_instance_release(instance);
}
static void call_fails(kiln_instance *instance) {
  kiln_value *result = NULL;
  assert_error(kiln_instance_call(instance, "fails", NULL, 0, NULL, &result), KILN_RAISED, "no");
}
static void call_many(kiln_instance *instance) {
  kiln_value *n = NULL, *result = NULL;
  assert_ok(kiln_value_int(context, 300, &n));
  assert_ok(kiln_instance_call(instance, "many", &n, 1, NULL, &result));
  assert_int_equal(int_of(result), 600);
  kiln_value_destroy(n);
}

static void call_ends(void **state) {
  (void)state;
  kiln_instance *instance = NULL;
  assert_ok(kiln_instance_create(model, &instance));
  must_not_grow(call_alone, instance);
  must_not_grow(call_ring, instance);
  must_not_grow(call_long, instance);
  must_not_grow(call_fails, instance);
  must_not_grow(call_forks, instance);
  must_not_grow(call_many, instance);
  kiln_instance_release(instance);
}

/* The result stays whole while a handle on it, or on a part of it, is there. */
static void call_give(kiln_instance *instance) {
  kiln_value *result = NULL, *inner = NULL, *number = NULL;
  assert_ok(kiln_instance_call(instance, "give", NULL, 0, NULL, &result));
  assert_int_equal(kiln_value_count(result), 2);
  assert_ok(kiln_value_item(result, 1, &inner));
  kiln_value_destroy(result);
  assert_int_equal(call_int(instance, "alone"), 1);
  assert_int_equal(kiln_value_count(inner), 2);
  assert_ok(kiln_value_item(inner, 0, &number));
  assert_int_equal(int_of(number), 7);
  kiln_value_destroy(inner);
  assert_int_equal(call_int(instance, "alone"), 1);
}
static void call_take(kiln_instance *instance) {
  kiln_value *list = NULL, *result = NULL;
  assert_ok(kiln_value_list(context, NULL, 0, &list));
  for (int i = 0; i < 2; i++) {
    assert_ok(kiln_instance_call(instance, "take", &list, 1, NULL, &result));
    assert_int_equal(int_of(result), i + 1);
  }
  assert_int_equal(kiln_value_count(list), 2);
  kiln_value_destroy(list);
  assert_int_equal(call_int(instance, "alone"), 1);
}

/* Of a call that fails the arguments are marked too, as far as there are some. */
static void call_with_null(kiln_instance *instance) {
  kiln_value *held = NULL, *result = NULL, *null = NULL;
  assert_ok(kiln_instance_call(instance, "give", NULL, 0, NULL, &held));
  assert_error(kiln_instance_call(instance, "take", &null, 1, NULL, &result), KILN_INVALID_ARGUMENT,
               "NULL");
  assert_int_equal(kiln_value_count(held), 2);
  kiln_value_destroy(held);
  assert_int_equal(call_int(instance, "alone"), 1);
}

static void host_lets_go(void **state) {
  (void)state;
  kiln_instance *instance = NULL;
  assert_ok(kiln_instance_create(model, &instance));
  must_not_grow(call_give, instance);
  must_not_grow(call_take, instance);
  must_not_grow(call_with_null, instance);
  kiln_instance_release(instance);
}

/* Handles that outlive the instance. */
static void outlives(kiln_instance *ignored) {
  (void)ignored;
  kiln_instance *instance = NULL;
  kiln_value *result = NULL;
  assert_ok(kiln_instance_create(model, &instance));
  assert_ok(kiln_instance_call(instance, "give", NULL, 0, NULL, &result));
  kiln_instance_release(instance);
  assert_int_equal(kiln_value_count(result), 2);
  kiln_value_destroy(result);
}
static void keeps(kiln_instance *ignored) {
  (void)ignored;
  kiln_instance *instance = NULL;
  assert_ok(kiln_instance_create(model, &instance));
  assert_int_equal(call_int(instance, "keep"), 1);
  assert_int_equal(call_int(instance, "keep"), 2);
  assert_int_equal(call_int(instance, "alone"), 1);
  assert_int_equal(call_int(instance, "keep"), 3);
  kiln_instance_release(instance);
}
static void keep_and_drop(kiln_instance *instance) {
  kiln_value *result = NULL;
  assert_int_equal(call_int(instance, "keep"), 1);
  assert_ok(kiln_instance_call(instance, "drop", NULL, 0, NULL, &result));
  kiln_value_destroy(result);
}

static void instance_goes(void **state) {
  (void)state;
  kiln_instance *instance = NULL;
  must_not_grow(outlives, NULL);
  must_not_grow(keeps, NULL);
  assert_ok(kiln_instance_create(model, &instance));
  must_not_grow(keep_and_drop, instance);
  kiln_instance_release(instance);
}

/* Whatever request fails, and whatever limit is met: a container that could not be noted has not
 * been put into itself. */
static void no_memory(void **state) {
  (void)state;
  static const char *const methods[] = {"alone", "ring", "forks", "keep"};
  kiln_mem *mem = context->env->mem;
  size_t before = 0;
  for (int m = 0; m < 4; m++) {
    bool failed = true;
    for (uint64_t n = 0; failed; n++) {
      kiln_instance *instance = NULL;
      kiln_value *result = NULL;
      assert_ok(kiln_instance_create(model, &instance));
      if (n > 2) (void)kiln_mem_fail_at(mem, n - 2);
      kiln_status_destroy(kiln_instance_call(instance, methods[m], NULL, 0, NULL, &result));
      failed = n <= 2 || kiln_mem_fail_at(mem, 0) >= n - 2;
      kiln_value_destroy(result);
      kiln_instance_release(instance);
      if (n == 2) before = kiln_mem_bytes(mem);
      if (n > 2) assert_int_equal(kiln_mem_bytes(mem), before);
    }
  }
}

static void limit(void **state) {
  (void)state;
  kiln_mem *mem = context->env->mem;
  kiln_instance *instance = NULL;
  kiln_value *n = NULL, *result = NULL;
  assert_ok(kiln_value_int(context, 100000, &n));
  assert_ok(kiln_instance_create(model, &instance));
  const size_t before = kiln_mem_bytes(mem);
  kiln_mem_set_limit(mem, before + (1 << 20));
  assert_error(kiln_instance_call(instance, "many", &n, 1, NULL, &result), KILN_OUT_OF_MEMORY,
               "memory");
  assert_true(kiln_mem_bytes(mem) < before + (1 << 19));
  kiln_mem_set_limit(mem, 0);
  kiln_instance_release(instance);
  kiln_value_destroy(n);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(call_ends), cmocka_unit_test(host_lets_go),
                                     cmocka_unit_test(instance_goes), cmocka_unit_test(no_memory),
                                     cmocka_unit_test(limit)};
  return cmocka_run_group_tests(tests, open_model, close_model);
}
