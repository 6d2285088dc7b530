/* verify_test.c: the verifier refuses what is malformed, and says what; the DOT printer. */
#include "test/unit/ir/ir_support.h"

static const struct {
  const char *text, *complaint;
} bad[] = {
    {"graph(%x : Tensor):\n"
     "  %1 : Tensor = prim::If(%x)\n    block0():\n      -> (%x)\n    block1():\n      -> (%x)\n"
     "  return (%1)\n",
     "prim::If takes one bool"},
    {"graph(%c : bool, %x : Tensor):\n"
     "  %1 : Tensor = prim::If(%c)\n    block0():\n      -> (%x)\n  return (%1)\n",
     "prim::If has 1 blocks"},
    {"graph(%c : bool, %x : Tensor):\n"
     "  %1 : Tensor = prim::If(%c)\n    block0():\n      -> (%x)\n    block1():\n      -> ()\n"
     "  return (%1)\n",
     "block 1 gives 0 results, not 1"},
    {"graph(%c : bool, %x : Tensor):\n"
     "  %1 : Tensor = prim::If(%c)\n    block0():\n      -> (%x)\n    block1():\n      -> (%c)\n"
     "  return (%1)\n",
     "result 0 of block 1 does not fit"},
    {"graph(%c : bool, %n : int, %x : Tensor):\n"
     "  %1 : Tensor = prim::Loop(%n, %c, %x)\n    block0(%i : int):\n      -> (%c)\n"
     "  return (%1)\n",
     "1 carried values"},
    {"graph(%c : bool, %n : int, %x : Tensor):\n"
     "  %1 : Tensor = prim::Loop(%n, %c, %x)\n    block0(%i : int, %y : Tensor):\n"
     "      -> (%c, %i)\n  return (%1)\n",
     "the next value of carried value 0 does not fit"},
    {"graph(%c : bool, %n : int, %x : Tensor):\n"
     "  %1 : Tensor = prim::Loop(%c, %n, %x)\n    block0(%i : int, %y : Tensor):\n"
     "      -> (%c, %y)\n  return (%1)\n",
     "an int and a bool first"},
    {"graph():\n  %1 : int = prim::Constant[value=\"x\"]()\n  return (%1)\n", "not of its type"},
    {"graph():\n  %1 : int = prim::Constant()\n  return (%1)\n", "a constant without value"},
    {"graph(%x : Tensor):\n  %1 : int[] = prim::ListConstruct(%x)\n  return (%1)\n",
     "element 0 does not fit the list"},
    {"graph(%x : Tensor):\n  %1 : (Tensor, int) = prim::TupleConstruct(%x)\n  return (%1)\n",
     "the tuple type has 2 elements"},
    {"graph(%x : Tensor):\n"
     "  %1 : Tensor, %2 : Tensor = aten::tanh(%x)\n  return (%1)\n",
     "gives 1 results, not 2"},
    {"graph(%x : Tensor):\n"
     "  %1 : Tensor = prim::TensorExprGroup_0(%x)\n  return (%1)\n"
     "with prim::TensorExprGroup_0 = graph(%a : Tensor, %b : Tensor):\n  return (%a)\n",
     "the group has 1 inputs, its subgraph 2"},
    {"graph(%x : Tensor):\n  %1 : Tensor = aten::tanh[kept=1](%x)\n"
     "  %2 : Tensor = aten::tanh(%1)\n  return (%2)\n",
     "input 0 is no weight"},
    {"graph(%m : __torch__.M):\n  %w : Tensor = prim::GetAttr[name=\"w\"](%m)\n"
     "  %1 : Tensor = aten::tanh[kept=1](%w)\n  return (%1)\n",
     "result 0 is kept, and leaves its block"},
    {"graph(%m : __torch__.M):\n  %w : Tensor = prim::GetAttr[name=\"w\"](%m)\n"
     "  %1 : Tensor = aten::tanh_[kept=1](%w)\n  %2 : Tensor = aten::tanh(%1)\n  return (%2)\n",
     "results are kept of what has effects"},
    {"graph(%m : __torch__.M):\n  %w : Tensor = prim::GetAttr[name=\"w\"](%m)\n"
     "  %n : NoneType = prim::Constant()\n"
     "  %1 : Tensor = aten::bernoulli[kept=1](%w, %n)\n"
     "  %2 : Tensor = aten::tanh(%1)\n  return (%2)\n",
     "or is not the same each time"},
    {"graph(%x : Tensor, %i : int):\n"
     "  %1 : Tensor, %2 : bool = prim::TypeCheck[types=[Tensor]](%x)\n"
     "  %3 : Tensor = aten::add_(%x, %x, %i)\n"
     "  %4 : Tensor = prim::If(%2)\n    block0():\n      -> (%1)\n    block1():\n      -> (%x)\n"
     "  return (%4)\n",
     "an effect stands between a guard and what it decides"},
    {"graph(%x : Tensor, %y : Tensor, %i : int):\n" /* the last argument is written */
     "  %1 : Tensor, %2 : bool = prim::TypeCheck[types=[Tensor]](%x)\n"
     "  %3 : Tensor = aten::add(%x, %x, %i, %y)\n"
     "  %4 : Tensor = prim::If(%2)\n    block0():\n      -> (%1)\n    block1():\n      -> (%x)\n"
     "  return (%4)\n",
     "an effect stands between a guard and what it decides"},
    {"graph(%c : bool, %x : Tensor):\n" /* within the last block */
     "   = prim::If(%c)\n    block0():\n      -> ()\n    block1():\n"
     "      %1 : int[] = prim::ListConstruct(%x)\n      -> ()\n  return (%x)\n",
     "element 0 does not fit the list"},
    {"graph(%c : bool, %l : Tensor[], %o : Tensor?):\n"
     "  %1 : Tensor[] = prim::If(%c)\n    block0():\n      -> (%l)\n    block1():\n      -> (%o)\n"
     "  return (%1)\n",
     "result 0 of block 1 does not fit"},
    {"graph(%x : Tensor, %i : int):\n"
     "  %1 : Tensor, %2 : bool = prim::TypeCheck[types=[Tensor, Tensor]](%x)\n"
     "  return (%1)\n",
     "a guard has 2 types for 1 inputs"},
#define ASKING(where)                                                                    \
  "graph(%x : Tensor):\n"                                                                \
  "  %1 : Float(s0, s1, strides=[s1, 1], requires_grad=0, device=cpu), %2 : bool = "     \
  "prim::TensorExprDynamicGuard[types=[Float(s0, s1, strides=[s1, 1], requires_grad=0, " \
  "device=cpu)], where=\"" where "\"](%x)\n  return (%1)\n"
    {ASKING("s0"), "'s0' is no list of relations"},
    {ASKING("s0 <= s1 <= 4"), "is no list of relations"},
    {ASKING("s0 <= 4, s1 <= s2"), "a relation of symbols that no size binds"},
    {ASKING("3 <= 4"), "a relation without symbols"},
};

static void test_refuses(void **state) {
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    kiln_graph *graph = parse(*state, bad[i].text);
    assert_error(kiln_graph_verify(graph), KILN_INTERNAL, bad[i].complaint);
    kiln_graph_release(graph);
  }
}

/* What writes nothing may stand between a guard and what it decides. */
static void test_no_effect_behind_a_guard(void **state) {
  kiln_graph *graph = parse(
      *state,
      "graph(%x : Tensor, %i : int):\n"
      "  %1 : Tensor, %2 : bool = prim::TypeCheck[types=[Tensor]](%x)\n"
      "  %3 : Tensor = aten::add(%x, %x, %i)\n"
      "  %5 : Tensor = prim::profile(%3)\n"
      "  %4 : Tensor = prim::If(%2)\n    block0():\n      -> (%1)\n    block1():\n      -> (%5)\n"
      "  return (%4)\n");
  assert_ok(kiln_graph_verify(graph));
  kiln_graph_release(graph);
}

static const char good_text[] = "graph(%x : Tensor, %i : int):\n"
                                "  %1 : Tensor = aten::add(%x, %x, %i)\n"
                                "  %2 : Tensor = aten::tanh(%1)\n"
                                "  return (%2)\n";

/* Breaks that no text can have. */
static void test_broken_links(void **state) {
  kiln_graph *g = parse(*state, good_text);
  kiln_node *add = value(g, "1")->node, *tanh = value(g, "2")->node;
  assert_ok(kiln_graph_verify(g));

  kiln_use *use = tanh->inputs[0];
  use->value = value(g, "2"); /* a value before it is there */
  assert_error(kiln_graph_verify(g), KILN_INTERNAL, NULL);
  use->value = value(g, "1");

  add->outputs[0]->use_count++;
  assert_error(kiln_graph_verify(g), KILN_INTERNAL, "counts 2 uses but has 1");
  add->outputs[0]->use_count--;

  value(g, "x")->use_count++; /* of a block's pseudo node */
  assert_error(kiln_graph_verify(g), KILN_INTERNAL, "counts 3 uses but has 2");
  value(g, "x")->use_count--;

  int64_t position = add->position;
  add->position = tanh->position + 1;
  assert_error(kiln_graph_verify(g), KILN_INTERNAL, NULL);
  add->position = position;

  kiln_node_set_input(add, 1, value(g, "i"));
  assert_error(kiln_graph_verify(g), KILN_INTERNAL, "argument other of aten::add.Tensor");
  kiln_node_set_input(add, 1, value(g, "x"));

  kiln_node_remove_input(add, 2);
  assert_error(kiln_graph_verify(g), KILN_INTERNAL, "takes 3 arguments, not 2");
  kiln_graph_release(g);
}

static void test_dominance(void **state) {
  kiln_graph *g = parse(*state, good_text);
  kiln_node *node = value(g, "1")->node, *next = node->next;
  kiln_node_detach(node);
  kiln_node_insert_after(node, next);
  assert_error(kiln_graph_verify(g), KILN_INTERNAL, "input 0 is not defined before its use");
  kiln_graph_release(g);
}

/* The report shows the node. */
static void test_report(void **state) {
  kiln_graph *g = parse(*state, bad[0].text);
  kiln_status *status = kiln_graph_verify(g);
  assert_non_null(strstr(kiln_status_report(status), "%1 : Tensor = prim::If(%x)"));
  kiln_status_destroy(status);
  kiln_graph_release(g);
}

static void test_dot(void **state) {
  kiln_graph *g = parse(*state, "graph(%c : bool, %x : Tensor):\n"
                                "  %s : str = prim::Constant[value=\"a\\\"b\"]()\n"
                                "  %l : str[] = prim::ListConstruct(%s)\n"
                                "  %1 : Tensor = prim::If(%c)\n    block0():\n      -> (%x)\n"
                                "    block1():\n      %2 : Tensor = aten::tanh(%x)\n      -> (%2)\n"
                                "  return (%1)\n");
  const fixture *f = *state;
  kiln_text dot = kiln_text_in(f->arena);
  kiln_graph_print_dot(&dot, g);
  const char *text = dot.data;
  int open = 0, deepest = 0;
  bool quoted = false;
  for (const char *p = text; *p; p++) { /* braces and quotes match */
    if (*p == '\\' && p[1])
      p++;
    else if (*p == '"')
      quoted = !quoted;
    else if (!quoted && *p == '{' && ++open > deepest)
      deepest = open;
    else if (!quoted && *p == '}')
      open--;
  }
  assert_int_equal(open, 0);
  assert_int_equal(deepest, 3);
  assert_false(quoted);
  assert_non_null(strstr(text, "[shape=diamond,label=\"prim::If(%c)"));
  assert_non_null(strstr(text, "label=\"aten::tanh(%x)"));
  assert_non_null(strstr(text, "label=\"%x\""));
  assert_null(strstr(text, "prim::Constant")); /* stands in the label of its user */
  /* Edges stand behind all clusters, or they would draw their ends into one. */
  assert_true(strrchr(text, '}') > strstr(text, " -> "));
  assert_null(strstr(strstr(text, " -> "), "subgraph"));
  kiln_graph_release(g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_refuses),
      cmocka_unit_test(test_broken_links),
      cmocka_unit_test(test_no_effect_behind_a_guard),
      cmocka_unit_test(test_broken_links),
      cmocka_unit_test(test_dominance),
      cmocka_unit_test(test_report),
      cmocka_unit_test(test_dot),
  };
  return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
