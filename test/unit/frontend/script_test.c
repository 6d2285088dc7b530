/* script_test.c: statements and expressions to graphs. The expected structures are derived by hand
 * from the language's rules (reference: PyTorch's language reference and ir_emitter), not from
 * output. */
#include "test/unit/frontend/script_support.h"
#include "test/unit/sweep.h"

#define CLASS "class M(Module):\n  __parameters__ = []\n  __buffers__ = []\n"

/* `body` is the text of forward(self, x: Tensor, n: int, o: Optional[Tensor], l: List[int]). */
static kiln_status *compile_body(script *s, const char *result, const char *body) {
  static char code[8192];
  snprintf(code, sizeof code,
           CLASS "  def forward(self: __torch__.M, x: Tensor, n: int, o: Optional[Tensor], "
                 "l: List[int]) -> %s:\n%s",
           result, body);
  return script_compile(s, code);
}

static void expect(script *s, const char *result, const char *body, const char *structure) {
  if (s->lacks) skip();
  assert_ok(compile_body(s, result, body));
  assert_string_equal(script_show(s, "__torch__.M.forward"), structure);
}

static void refuse(script *s, const char *result, const char *body, const char *words) {
  assert_error(compile_body(s, result, body), KILN_INVALID_FILE, words);
}

static void branches(void **state) {
  script *s = *state;
  expect(s, "Tensor",
         "    if torch.gt(n, 0):\n      y = torch.exp(x)\n    else:\n"
         "      y = torch.neg(x)\n    return y\n",
         "gt If{exp ->1|neg ->1}");
  /* The same value on both sides needs no output; a name of one side alone is no result. */
  expect(s, "Tensor",
         "    y = x\n    if torch.gt(n, 0):\n      y = x\n      z = torch.exp(x)\n"
         "    else:\n      pass\n    return y\n",
         "gt If{exp ->0|->0}");
  refuse(s, "Tensor", "    if torch.gt(n, 0):\n      z = x\n    else:\n      pass\n    return z\n",
         "not defined in the false branch");
  refuse(s, "Tensor",
         "    if torch.gt(n, 0):\n      z = 1\n    else:\n      z = \"a\"\n"
         "    print(z, )\n    return x\n",
         "int in the true branch and str");
  /* A literal condition compiles one side only. */
  expect(s, "Tensor",
         "    if False:\n      return undefined\n    else:\n      y = torch.exp(x)\n"
         "    return y\n",
         "exp");
  expect(s, "Tensor", "    y = torch.exp(x) if torch.gt(n, 0) else x\n    return y\n",
         "gt If{exp ->1|->1}");
  /* b is evaluated only where it decides. */
  expect(s, "bool", "    return torch.gt(n, 0) and torch.lt(n, 9)\n", "gt If{lt ->1|->1}");
  expect(s, "bool", "    return torch.gt(n, 0) or torch.lt(n, 9)\n", "gt If{->1|lt ->1}");
}

static void loops(void **state) {
  script *s = *state;
  expect(s, "Tensor", "    y = x\n    for i in range(n):\n      y = torch.exp(y)\n    return y\n",
         "Loop{exp ->2}");
  /* What the body alone defines is not carried. */
  expect(s, "Tensor", "    for i in range(n):\n      z = torch.exp(x)\n    return x\n",
         "Loop{exp ->1}");
  expect(s, "int",
         "    c = torch.gt(n, 0)\n    k = 0\n    while c:\n      k = torch.add(k, 1)\n"
         "      c = torch.lt(k, n)\n    return k\n",
         "gt Loop{add lt ->3}");
  /* A while's condition is computed before, and at the end of each round. */
  expect(s, "int", "    k = 0\n    while k < n:\n      k = k + 1\n    return k\n",
         "lt Loop{add lt ->2}");
  expect(s, "int", "    k = 0\n    for v in l:\n      k = k + v\n    return k\n",
         "len Loop{__getitem__ add ->2}");
  expect(s, "int", "    k = 0\n    for i, v in enumerate(l):\n      k = k + v\n    return k\n",
         "len Loop{__getitem__ TupleConstruct TupleUnpack add ->2}");
  expect(s, "List[int]", "    return [v + 1 for v in l]\n",
         "ListConstruct len Loop{__getitem__ add append ->1}");
  expect(s, "List[int]", "    return [v for v in l if v > 0]\n",
         "ListConstruct len Loop{__getitem__ gt If{append ->0|->0} ->1}");
  expect(s, "Tensor", "    for y in (x, torch.exp(x)):\n      z = torch.neg(y)\n    return x\n",
         "exp TupleConstruct TupleUnpack neg neg");
  refuse(s, "int", "    k = 0\n    for i in range(n):\n      k = \"a\"\n    return k\n", "carries");
}

static void exits(void **state) {
  script *s = *state;
  /* break: the flags are joined by the If that holds it; the rest of the body runs when `skip` is
   * not set; the loop goes on unless `stop` is. */
  expect(s, "int",
         "    k = 0\n    for i in range(n):\n      if i > 2:\n        break\n      k = k + i\n"
         "    return k\n",
         "Loop{gt If{->2|->2} If{Uninitialized ->1|add ->1} If{->1|->1} If{->1|->1} ->2}");
  expect(s, "int",
         "    k = 0\n    for i in range(n):\n      if i > 2:\n        continue\n      k = k + i\n"
         "    return k\n",
         "Loop{gt If{->1|->1} If{Uninitialized ->1|add ->1} If{->1|->1} If{->1|->1} ->2}");
  /* An early return sets value and flags; the rest is under the flag. */
  expect(s, "int", "    if n > 2:\n      return 1\n    k = n + 1\n    return k\n",
         "Uninitialized gt If{->3|->3} If{->3|add ->3}");
  expect(s, "int", "    if n > 2:\n      return 1\n    else:\n      return 2\n",
         "Uninitialized gt If{->3|->3}");
  expect(s, "Tensor",
         "    if n > 2:\n      raise ValueError(\"no\")\n    else:\n      y = x\n"
         "    return y\n",
         "gt If{RaiseException Uninitialized ->1|->1}");
  expect(s, "Tensor", "    assert n > 2, \"small\"\n    return x\n",
         "gt If{->0|add RaiseException ->0}");
  refuse(s, "int", "    break\n    return 1\n", "not inside a loop");
}

static void refinement(void **state) {
  script *s = *state;
  expect(s, "Tensor",
         "    if o is not None:\n      y = torch.exp(o)\n    else:\n      y = x\n"
         "    return y\n",
         "__isnot__ If{unchecked_cast exp ->2|unchecked_cast ->2}");
  refuse(s, "Tensor", "    return o\n", "Optional[Tensor]");
  expect(s, "Tensor", "    assert o is not None\n    return o\n",
         "__isnot__ If{unchecked_cast ->1|RaiseException Uninitialized ->1}");
  expect(s, "Tensor", "    return o if o is not None else x\n",
         "__isnot__ If{unchecked_cast ->1|unchecked_cast ->1}");
}

static void values(void **state) {
  script *s = *state;
  expect(s, "Tuple[Tensor, int]",
         "    a, b = x, n\n    a, b = torch.exp(a), b\n    return (a, b)\n", "exp TupleConstruct");
  expect(s, "Tensor", "    t = (x, n)\n    a, b, = t\n    return a\n",
         "TupleConstruct TupleUnpack");
  expect(s, "int", "    a, b, = l\n    return a\n", "ListUnpack");
  refuse(s, "int", "    a, b, c, = (1, 2)\n    return a\n", "2 values");
  expect(s, "int", "    t = (x, n)\n    return (t)[1]\n", "TupleConstruct TupleIndex");
  expect(s, "Tuple[int, int]", "    t = (x, n, n)\n    return (t)[1:3]\n",
         "TupleConstruct TupleSlice");
  expect(s, "List[Tensor]", "    y = annotate(List[Tensor], [])\n    return y\n", "ListConstruct");
  expect(s, "Dict[str, int]", "    y = {\"a\": 1, \"b\": n}\n    return y\n", "DictConstruct");
  expect(s, "Tensor", "    y = uninitialized(Tensor)\n    return y\n", "Uninitialized");
  expect(s, "bool", "    return isinstance(x, Tensor)\n", "");
  expect(s, "float", "    return -inf\n", "");
  expect(s, "int", "    n += 1\n    return n\n", "add");
  expect(s, "Tensor", "    print(\"a\", n, )\n    return x\n", "Print");
  refuse(s, "Tensor", "    return y\n", "undefined name 'y'");
  refuse(s, "Tensor", "    return 1\n", "type int where Tensor");
}

static void calls(void **state) {
  script *s = *state;
  assert_ok(script_compile(s, "def f(a: Tensor, b: int=2) -> Tensor:\n  return torch.exp(a)\n" CLASS
                              "  def g(self: __torch__.M, y: Tensor) -> Tensor:\n    return y\n"
                              "  def forward(self: __torch__.M, x: Tensor) -> Tensor:\n"
                              "    h = __torch__.f\n    a = h(x, )\n    b = __torch__.f(a, b=3)\n"
                              "    return (self).g(b, )\n"));
  assert_string_equal(script_show(s, "__torch__.M.forward"),
                      "CallFunction CallFunction CallMethod");
  const kiln_function *forward =
      kiln_unit_find_function(s->model->unit, KILN_STR("__torch__.M.forward"));
  const kiln_node *last = forward->graph->top->last;
  assert_string_equal(kiln_call_callee(last)->qualname, "__torch__.M.g");
  /* The default of b, then the keyword. */
  int64_t seen[2], count = 0;
  for (const kiln_node *n = forward->graph->top->first; n; n = n->next) {
    if (!kiln_node_is(n, KILN_OP_prim_CallFunction)) continue;
    assert_int_equal(n->input_count, 3);
    seen[count++] = kiln_ir_value_constant(kiln_node_input(n, 2))->u.i;
  }
  assert_int_equal(seen[0], 2);
  assert_int_equal(seen[1], 3);
  assert_error(script_compile(s, "def f(a: Tensor) -> Tensor:\n  return a\n" CLASS
                                 "  def forward(self: __torch__.M, x: int) -> Tensor:\n"
                                 "    return __torch__.f(x, x, )\n"),
               KILN_INVALID_FILE, "__torch__.f");
}

static void forks(void **state) {
  script *s = *state;
  expect(s, "Tensor",
         "    def __f():\n      _0 = torch.exp(x)\n      return torch.neg(_0)\n"
         "    y = fork(__f)\n    return torch.wait(y)\n",
         "fork<exp neg> wait");
}

static void classes(void **state) {
  script *s = *state;
  if (s->lacks) skip();
  assert_ok(script_compile(
      s, "class Color(Enum):\n  RED = 1\n  BLUE = 5\n"
         "class Pair(NamedTuple):\n  a : Tensor\n  b : int\n"
         "class Vec:\n  v : float\n"
         "  def __init__(self: __torch__.Vec, v: float) -> NoneType:\n    self.v = v\n"
         "    return None\n"
         "  def __add__(self: __torch__.Vec, o: __torch__.Vec) -> __torch__.Vec:\n"
         "    return self\n" CLASS "  def forward(self: __torch__.M, x: Tensor) -> int:\n"
         "    p = __torch__.Pair(x, 3)\n    c = __torch__.Color.BLUE\n"
         "    w = __torch__.Vec.__new__(__torch__.Vec)\n    _0 = (w).__init__(2., )\n"
         "    u = (w).__add__(w, )\n    t = w + u\n"
         "    if u is w:\n      k = (c).value\n    else:\n      k = (p)[1]\n    return k\n"));
  assert_string_equal(script_show(s, "__torch__.M.forward"),
                      "TupleConstruct CreateObject CallMethod CallMethod CallMethod __is__ "
                      "If{EnumValue ->1|TupleIndex ->1}");
  assert_string_equal(script_show(s, "__torch__.Vec.__init__"), "SetAttr");
}

/* An unknown operator loads; its node has no op, its result fits what is wanted. */
static void unknown_operators(void **state) {
  script *s = *state;
  expect(s, "int",
         "    a, b = torch.frobnicate(x, n)\n    k = ops.nowhere.thing(a)\n    return k\n",
         "frobnicate e::thing unchecked_cast");
}

static void lenient(void **state) {
  script *s = *state;
  script_build(CLASS "  def forward(self: __torch__.M, x: Tensor) -> Tensor:\n    return x\n"
                     "  def bad(self: __torch__.M, x: Tensor) -> Tensor:\n    return y\n");
  assert_error(script_load(s, NULL), KILN_INVALID_FILE, "undefined name");
  kiln_torchscript_options options = {.lenient = true};
  assert_ok(script_load(s, &options));
  kiln_function *bad = kiln_unit_find_function(s->model->unit, KILN_STR("__torch__.M.bad"));
  assert_non_null(bad->error);
  assert_string_equal(kiln_status_location(bad->error), "code/__torch__.py:7:12");
  assert_error(kiln_unit_ensure(bad), KILN_INVALID_FILE, "undefined name");
}

static kiln_status *load_in(kiln_env *env, void *arg) {
  script s = {.env = env, .registry = ((script *)arg)->registry};
  kiln_status *status = script_load(&s, NULL);
  script_drop(&s);
  return status;
}

static void survives_lack_of_memory(void **state) {
  script *s = *state;
  if (s->lacks) skip();
  assert_ok(compile_body(
      s, "Tensor",
      "    y = x\n    for i in range(n):\n      if torch.gt(i, 1):\n        y = torch.exp(y)\n"
      "      else:\n        break\n    z = [torch.neg(a) for a in [x, y]]\n    return z[0]\n"));
  sweep_env(load_in, s, false);
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, script_setup, script_teardown)
      TEST(branches),
      TEST(loops),
      TEST(exits),
      TEST(refinement),
      TEST(values),
      TEST(calls),
      TEST(forks),
      TEST(classes),
      TEST(unknown_operators),
      TEST(lenient),
      TEST(survives_lack_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
