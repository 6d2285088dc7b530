/* regions_test.c: regions around groups: their checks, and the fallbacks behind them. */
#include "guards/region.h"
#include "test/unit/graphs.h"
#include "test/unit/ir/ir_support.h"

typedef struct pass_args {
  kiln_graph *graph;
  kiln_status *(*fn)(kiln_pass *pass);
  bool changed;
  int refused[8], refusals;
} pass_args;

static void note_refusal(kiln_pass *pass, const kiln_node *node, kiln_reason reason,
                         const char *detail) {
  pass_args *a = pass->context;
  (void)node;
  (void)detail;
  a->refused[a->refusals++] = (int)reason;
}

static void pass_body(fixture *f, void *arg) {
  pass_args *a = arg;
  kiln_pass pass = {
      .graph = a->graph, .scratch = f->arena, .env = f->env, .context = a, .refuse = note_refusal};
  assert_ok(a->fn(&pass));
  a->changed = pass.changed;
}

static pass_args run_pass(fixture *f, kiln_graph *graph, kiln_status *(*fn)(kiln_pass *pass)) {
  pass_args a = {.graph = graph, .fn = fn};
  pass_body(f, &a);
  assert_ok(kiln_graph_verify(graph));
  return a;
}

#define GROUP(n)                                               \
  "with prim::TensorExprGroup_" #n " = graph(%p : " F23 "):\n" \
  "  %q : " F23 " = aten::mul(%p, %p)\n"                       \
  "  return (%q)\n"

/* Nodes of that operator anywhere in the block; the last one is *out. */
static int count_nodes(const kiln_block *block, kiln_op_id id, kiln_node **out) {
  int count = 0;
  for (kiln_node *n = block->first; n; n = n->next) {
    if (kiln_node_is(n, id)) count++, *out = n;
    for (int b = 0; b < n->block_count; b++) count += count_nodes(n->blocks[b], id, out);
  }
  return count;
}

/* The fallback: the group's nodes without a claim, over what was not refined. */
static void fallback_of_a_group(void **state) {
  fixture *f = *state;
  kiln_graph *graph = parse(f, "graph(%x : " F23 "):\n"
                               "  %y : " F23 " = prim::TensorExprGroup_0(%x)\n"
                               "  return (%y)\n" GROUP(0));
  assert_true(run_pass(f, graph, kiln_pass_guard_regions).changed);
  kiln_node *fallback = NULL, *group = NULL, *check = NULL;
  assert_int_equal(count_nodes(graph->top, KILN_OP_prim_FallbackGraph, &fallback), 1);
  assert_int_equal(count_nodes(graph->top, KILN_OP_prim_TensorExprGroup, &group), 1);
  assert_int_equal(count_nodes(graph->top, KILN_OP_prim_TypeCheck, &check), 1);
  assert_ptr_equal(kiln_node_input(fallback, 0), value(graph, "x"));
  assert_ptr_equal(kiln_node_input(group, 0), kiln_node_output(check, 0));
  assert_true(kiln_guards_is_hit(group->block));
  assert_false(kiln_guards_is_hit(fallback->block));
  assert_false(kiln_guards_is_hit(graph->top));
  const kiln_graph *body = kiln_node_graph(fallback, "Subgraph");
  assert_null(kiln_graph_input(body, 0)->type->detail);
  assert_null(kiln_graph_output(body, 0)->type->detail);
  assert_non_null(kiln_graph_output(kiln_node_graph(group, "Subgraph"), 0)->type->detail);
  assert_false(run_pass(f, graph, kiln_pass_guard_regions).changed);
  /* Outside of the region the claims go, inside they are facts. */
  assert_null(value(graph, "x")->type->detail);
  assert_non_null(kiln_node_output(check, 0)->type->detail);
  assert_non_null(kiln_node_output(group, 0)->type->detail);
  kiln_graph_release(graph);
}

/* Two groups and what stands between: one fallback, in the old order, without a claim. */
static void fallback_of_a_merged_region(void **state) {
  fixture *f = *state;
  kiln_graph *graph = parse(f, "graph(%x : " F23 "):\n"
                               "  %one : int = prim::Constant[value=1]()\n"
                               "  %none : NoneType = prim::Constant()\n"
                               "  %y : " F23 " = prim::TensorExprGroup_0(%x)\n"
                               "  %s : " F23 " = aten::cumsum(%y, %one, %none)\n"
                               "  %z : " F23 " = prim::TensorExprGroup_1(%s)\n"
                               "  return (%z, %s)\n" GROUP(0) GROUP(1));
  pass_args merged = run_pass(f, graph, kiln_pass_guard_regions);
  assert_true(merged.changed && merged.refusals == 0);
  kiln_node *fallback = NULL, *check = NULL, *branch = NULL;
  assert_int_equal(count_nodes(graph->top, KILN_OP_prim_FallbackGraph, &fallback), 1);
  assert_int_equal(count_nodes(graph->top, KILN_OP_prim_TypeCheck, &check), 1);
  assert_int_equal(count_nodes(graph->top, KILN_OP_prim_If, &branch), 1);
  assert_int_equal(check->input_count, 1);
  assert_int_equal(branch->output_count, 2); /* %y is nobody's business outside */
  assert_int_equal(fallback->output_count, 2);
  static const char *const names[] = {"aten::mul", "prim::Constant", "prim::Constant",
                                      "aten::cumsum", "aten::mul"};
  const kiln_node *n = kiln_node_graph(fallback, "Subgraph")->top->first;
  for (int i = 0; i < 5; i++, n = n->next) {
    assert_true(n && kiln_str_is(n->name, names[i]));
    assert_null(n->outputs[0]->type->detail);
  }
  assert_null(n);
  assert_false(run_pass(f, graph, kiln_pass_guard_regions).changed);
  kiln_graph_release(graph);
}

/* What the guard proves stays on the values of the region. */
static void types_are_facts(void **state) {
  fixture *f = *state;
  kiln_graph *graph = parse(f, "graph(%x : " F23 ", %n : int):\n"
                               "  %one : int = prim::Constant[value=1]()\n"
                               "  %none : NoneType = prim::Constant()\n"
                               "  %y : " F23 " = prim::TensorExprGroup_0(%x)\n"
                               "  %s : Tensor = aten::cumsum(%y, %one, %none)\n"
                               "  %z : Tensor = aten::select(%s, %one, %n)\n"
                               "  %i : " F23 " = aten::nonzero(%s)\n"
                               "  return (%z, %i)\n" GROUP(0));
  assert_true(run_pass(f, graph, kiln_pass_guard_regions).changed);
  kiln_node *branch = NULL;
  assert_int_equal(count_nodes(graph->top, KILN_OP_prim_If, &branch), 1);
  static const char *const facts[] = {"y", "s", "z"};
  for (int i = 0; i < 3; i++) {
    assert_ptr_equal(value(graph, facts[i])->node->block, branch->blocks[0]);
    assert_true(kiln_type_is_complete_tensor(value(graph, facts[i])->type));
  }
  assert_int_equal(value(graph, "z")->type->detail->rank, 1);
  assert_null(value(graph, "i")->type->detail); /* a claim */
  assert_null(value(graph, "x")->type->detail);
  for (int i = 0; i < branch->output_count; i++) {
    assert_null(kiln_node_output(branch, i)->type->detail); /* the other side gives others */
  }
  const kiln_guard_maker maker = {0};
  assert_non_null(kiln_guard_lift(&maker, f->arena, graph, f->arena));
  kiln_graph_release(graph);
}

/* No guard grows without bound: a group that asks for too much begins the next region. */
static void checks_are_bounded(void **state) {
  enum { INPUTS = 1040, MOST = 1024 };
  fixture *f = *state;
  kiln_text text = kiln_text_in(f->arena);
  for (int i = 0; i < INPUTS; i++) {
    kiln_text_printf(&text, "%s%%x%d : " F23, i ? ", " : "graph(", i);
  }
  kiln_text_puts(&text, "):\n");
  for (int i = 0; i < INPUTS; i++) {
    kiln_text_printf(&text, "  %%y%d : " F23 " = prim::TensorExprGroup_%d(%%x%d)\n", i, i, i);
  }
  kiln_text_puts(&text, "  return (%y0, %y1039)\n");
  for (int i = 0; i < INPUTS; i++) {
    kiln_text_printf(&text,
                     "with prim::TensorExprGroup_%d = graph(%%p : " F23 "):\n"
                     "  %%q : " F23 " = aten::mul(%%p, %%p)\n  return (%%q)\n",
                     i);
  }
  kiln_graph *graph = parse(f, text.data);
  pass_args a = run_pass(f, graph, kiln_pass_guard_regions);
  assert_int_equal(a.refusals, 1);
  kiln_node *check = NULL;
  assert_int_equal(count_nodes(graph->top, KILN_OP_prim_TypeCheck, &check), 2);
  assert_int_equal(check->input_count, INPUTS - MOST);
  kiln_graph_release(graph);
}

/* Nor does what it works out of symbols, of the last check too. */
static void symbols_are_bounded(void **state) {
  enum { MOST = 256 };
  fixture *f = *state;
  kiln_graph *graph = parse(f, "graph(%x : Float(s0, 3, strides=[3, 1])):\n  return ()\n");
  kiln_ir_value *x = value(graph, "x");
  kiln_guard_checks checks = {0};
  for (int i = 1; i <= MOST + 1; i++) {
    kiln_vec_push(f->arena, &checks.values, x);
    kiln_vec_push(f->arena, &checks.types, x->type);
    assert_true(kiln__region_has_room(&checks) == (i <= MOST));
  }
  kiln_graph_release(graph);
}

static bool lowers_all(const kiln_graph *group) {
  (void)group;
  return true;
}

/* Types of symbols hold for a group if what follows from them is what there is now; else nothing
 * changes. Rows are s0, 2 now. */
static void symbols_must_agree(void **state) {
  fixture *f = *state;
  static const char symbolic[] = "Float(s0, 3, strides=[3, 1], requires_grad=0, device=cpu)";
  static const char *const results[] = {F23, F23,
                                        "Float(4, 3, strides=[3, 1], requires_grad=0, device=cpu)",
                                        "Float(2, 3, strides=[1, 2], requires_grad=0, device=cpu)"};
  for (int i = 0; i < 4; i++) {
    char text[512];
    snprintf(text, sizeof text, "graph(%%x : %s):\n  return ()\n", symbolic);
    kiln_graph *other = parse(f, text);
    snprintf(text, sizeof text,
             "graph(%%x : " F23 "):\n  %%y : %s = aten::mul(%%x, %%x)\n  return (%%y)\n",
             results[i]);
    kiln_graph *body = parse(f, text);
    const kiln_type *input = kiln_graph_input(other, 0)->type;
    const kiln_type *before = value(body, "y")->type;
    const kiln_symbols symbols = {.types = f->types, .count = 1, .all[0].now = i == 1 ? 5 : 2};
    const kiln_pass pass = {
        .graph = body, .scratch = f->arena, .env = f->env, .lowers = lowers_all};
    kiln_type_vec found = {0};
    assert_true(kiln__symbols_retype(&symbols, &pass, body, &input, &found) == (i == 0));
    assert_int_equal(found.count, i == 0 ? 0 : 2);
    assert_ptr_equal(value(body, "y")->type, i == 0 ? input : before);
    kiln_graph_release(body);
    kiln_graph_release(other);
  }
}

/* A number that was there before the region is asked again in the fallback, though a check has
 * learned it already: its passes want to see where it comes from. */
static void numbers_are_asked_again(void **state) {
  fixture *f = *state;
  kiln_graph *graph = parse(f, "graph(%x : " F23 "):\n"
                               "  %zero : int = prim::Constant[value=0]()\n"
                               "  %one : int = prim::Constant[value=1]()\n"
                               "  %n : int = aten::size(%x, %zero)\n"
                               "  %y : " F23 " = prim::TensorExprGroup_0(%x)\n"
                               "  %z : Tensor = aten::narrow(%y, %one, %zero, %n)\n"
                               "  return (%z)\n" GROUP(0));
  assert_true(run_pass(f, graph, kiln_pass_guard_regions).changed);
  kiln_node *fallback = NULL, *size = NULL;
  assert_int_equal(count_nodes(graph->top, KILN_OP_prim_FallbackGraph, &fallback), 1);
  assert_int_equal(fallback->input_count, 1);
  const kiln_graph *plain = kiln_node_graph(fallback, "Subgraph");
  assert_int_equal(count_nodes(plain->top, KILN_OP_size_int, &size), 1);
  assert_ptr_equal(kiln_node_input(size, 0), kiln_graph_input(plain, 0));
  kiln_graph_release(graph);
}

static void refusals_are_told(void **state) {
  fixture *f = *state;
  kiln_graph *graph = parse(f, "graph(%x : " F23 ", %o : Tensor[]):\n"
                               "  %y : " F23 " = prim::TensorExprGroup_0(%x)\n"
                               "  %l : Tensor[] = aten::append(%o, %y)\n"
                               "  %z : " F23 " = prim::TensorExprGroup_1(%y)\n"
                               "  %c : " F23 " = aten::nonzero(%z)\n"
                               "  %w : " F23 " = prim::TensorExprGroup_2(%c)\n"
                               "  return (%w)\n" GROUP(0) GROUP(1) GROUP(2));
  pass_args a = run_pass(f, graph, kiln_pass_guard_regions);
  assert_int_equal(a.refusals, 2);
  assert_int_equal(a.refused[0], KILN_REASON_guard_effect);
  assert_int_equal(a.refused[1], KILN_REASON_guard_not_proven);
  kiln_graph_release(graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(fallback_of_a_group, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(fallback_of_a_merged_region, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(types_are_facts, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(checks_are_bounded, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(symbols_are_bounded, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(symbols_must_agree, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(numbers_are_asked_again, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(refusals_are_told, fixture_setup, fixture_teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
