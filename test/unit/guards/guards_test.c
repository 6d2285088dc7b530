/* guards_test.c: guards built from types, what makes them fail, and the fallbacks behind them. */
#include "guards/guards.h"

#include "test/unit/ir/ir_support.h"

/* -- Descriptors -- */

typedef struct build_args {
  const char *graph; /* one input: its type is the guard's */
  kiln_guard_desc guard;
} build_args;

static void build_body(fixture *f, void *arg) {
  build_args *a = arg;
  kiln_graph *graph = parse(f, a->graph);
  const kiln_type *types[4];
  int count = kiln_graph_input_count(graph);
  for (int i = 0; i < count; i++) types[i] = kiln_graph_input(graph, i)->type;
  kiln_guard_build(f->arena, types, count, &a->guard);
  kiln_graph_release(graph);
}

/* A guard of inputs of these types ("%x : Float(2)"); in the fixture's arena. */
static kiln_guard_desc guard_of(fixture *f, const char *inputs) {
  char text[512];
  snprintf(text, sizeof text, "graph(%s):\n  return ()\n", inputs);
  build_args a = {.graph = text};
  build_body(f, &a);
  return a.guard;
}

static kiln_ivalue strided(fixture *f, kiln_dtype dtype, int rank, const int64_t *sizes,
                           const int64_t *strides) {
  kiln_tensor *t;
  assert_ok(kiln_tensor_create_strided(f->env->mem, NULL, dtype, rank, sizes, strides, &t));
  return kiln_of_tensor(t);
}

static const int64_t sizes_23[] = {2, 3}, strides_31[] = {3, 1};
static const char full[] = "%x : Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)";

/* Whether the guard holds for the value, which is released. */
static bool holds(const kiln_guard_desc *guard, kiln_ivalue v, bool grad_mode) {
  bool result = kiln_guard_holds(guard, &v, grad_mode);
  kiln_ivalue_release(v);
  return result;
}

static void each_difference_fails(void **state) {
  fixture *f = *state;
  kiln_guard_desc guard = guard_of(f, full);
  assert_int_equal(guard.count, 1);
  assert_true(guard.entries[0].check_dims && guard.entries[0].rank == 2);
  assert_true(holds(&guard, strided(f, KILN_DTYPE_F32, 2, sizes_23, strides_31), false));
  assert_false(holds(&guard, strided(f, KILN_DTYPE_F64, 2, sizes_23, strides_31), false));
  assert_false(holds(&guard, strided(f, KILN_DTYPE_I32, 2, sizes_23, strides_31), false));
  int64_t rows[] = {4, 3}, columns[] = {2, 4}, flipped[] = {1, 2}, more[] = {1, 2, 3},
          steps[] = {6, 3, 1}, wide[] = {4, 1};
  assert_false(holds(&guard, strided(f, KILN_DTYPE_F32, 2, rows, strides_31), false));
  assert_false(holds(&guard, strided(f, KILN_DTYPE_F32, 2, columns, wide), false));
  assert_false(holds(&guard, strided(f, KILN_DTYPE_F32, 2, sizes_23, flipped), false));
  assert_false(holds(&guard, strided(f, KILN_DTYPE_F32, 2, sizes_23, wide), false));
  assert_false(holds(&guard, strided(f, KILN_DTYPE_F32, 3, more, steps), false));
  assert_false(holds(&guard, strided(f, KILN_DTYPE_F32, 1, rows, steps + 2), false));
  assert_false(holds(&guard, kiln_none(), false));
  assert_false(holds(&guard, kiln_int(2), false));
}

static void gradients_and_undefined(void **state) {
  fixture *f = *state;
  kiln_guard_desc guard = guard_of(f, full);
  kiln_ivalue v = strided(f, KILN_DTYPE_F32, 2, sizes_23, strides_31);
  v.u.tensor->key.f.requires_grad = 1;
  assert_true(kiln_guard_holds(&guard, &v, false)); /* without grad mode nothing requires one */
  assert_false(kiln_guard_holds(&guard, &v, true));
  kiln_guard_desc wants =
      guard_of(f, "%x : Float(2, 3, strides=[3, 1], requires_grad=1, device=cpu)");
  assert_true(kiln_guard_holds(&wants, &v, true));
  assert_false(kiln_guard_holds(&wants, &v, false));
  kiln_ivalue_release(v);
  kiln_tensor *undefined;
  assert_ok(kiln_tensor_undefined(f->env->mem, &undefined));
  assert_false(holds(&guard, kiln_of_tensor(undefined), false));
}

/* What a type leaves open is not compared. */
static void open_types(void **state) {
  fixture *f = *state;
  int64_t other[] = {7, 5}, steps[] = {5, 1}, one[] = {7};
  kiln_guard_desc any = guard_of(f, "%x : Tensor");
  assert_int_equal(any.entries[0].key_mask, 0);
  assert_true(holds(&any, strided(f, KILN_DTYPE_I64, 2, other, steps), false));
  assert_false(holds(&any, kiln_none(), false)); /* a tensor it must be */
  kiln_guard_desc rank = guard_of(f, "%x : Float(*, *)");
  assert_false(rank.entries[0].check_dims);
  assert_true(holds(&rank, strided(f, KILN_DTYPE_F32, 2, other, steps), false));
  assert_false(holds(&rank, strided(f, KILN_DTYPE_F64, 2, other, steps), false));
  assert_false(holds(&rank, strided(f, KILN_DTYPE_F32, 1, one, steps + 1), false));
}

static void several_values(void **state) {
  fixture *f = *state;
  kiln_guard_desc guard =
      guard_of(f, "%x : Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu), "
                  "%y : Long(requires_grad=0, device=cpu)");
  kiln_ivalue values[] = {strided(f, KILN_DTYPE_F32, 2, sizes_23, strides_31),
                          strided(f, KILN_DTYPE_I64, 0, NULL, NULL)};
  assert_int_equal(guard.count, 2);
  assert_true(kiln_guard_holds(&guard, values, false));
  kiln_ivalue swapped[] = {values[1], values[0]};
  assert_false(kiln_guard_holds(&guard, swapped, false));
  kiln_guard_desc same =
      guard_of(f, "%a : Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu), "
                  "%b : Long(requires_grad=0, device=cpu)");
  assert_true(guard.hash == same.hash);
  assert_false(guard.hash == guard_of(f, full).hash);
  for (int i = 0; i < 2; i++) kiln_ivalue_release(values[i]);
}

/* -- Regions -- */

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

#define F23 "Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)"
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
  assert_true(run_pass(f, graph, kiln_pass_insert_guards).changed);
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
  assert_false(run_pass(f, graph, kiln_pass_insert_guards).changed);
  /* Outside of the region the claims go, inside they are facts. */
  assert_true(run_pass(f, graph, kiln_pass_remove_type_specializations).changed);
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
                               "  %s : " F23 " = aten::softmax(%y, %one, %none)\n"
                               "  %z : " F23 " = prim::TensorExprGroup_1(%s)\n"
                               "  return (%z, %s)\n" GROUP(0) GROUP(1));
  (void)run_pass(f, graph, kiln_pass_insert_guards);
  pass_args merged = run_pass(f, graph, kiln_pass_merge_guards);
  assert_true(merged.changed && merged.refusals == 0);
  kiln_node *fallback = NULL, *check = NULL, *branch = NULL;
  assert_int_equal(count_nodes(graph->top, KILN_OP_prim_FallbackGraph, &fallback), 1);
  assert_int_equal(count_nodes(graph->top, KILN_OP_prim_TypeCheck, &check), 1);
  assert_int_equal(count_nodes(graph->top, KILN_OP_prim_If, &branch), 1);
  assert_int_equal(check->input_count, 1);
  assert_int_equal(branch->output_count, 2); /* %y is nobody's business outside */
  assert_int_equal(fallback->output_count, 2);
  static const char *const names[] = {"aten::mul", "prim::Constant", "prim::Constant",
                                      "aten::softmax", "aten::mul"};
  const kiln_node *n = kiln_node_graph(fallback, "Subgraph")->top->first;
  for (int i = 0; i < 5; i++, n = n->next) {
    assert_true(n && kiln_str_is(n->name, names[i]));
    assert_null(n->outputs[0]->type->detail);
  }
  assert_null(n);
  assert_false(run_pass(f, graph, kiln_pass_merge_guards).changed);
  assert_true(run_pass(f, graph, kiln_pass_assume_guards).changed); /* as in a region's variant */
  assert_int_equal(count_nodes(graph->top, KILN_OP_prim_If, &branch), 0);
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
  (void)run_pass(f, graph, kiln_pass_insert_guards);
  pass_args a = run_pass(f, graph, kiln_pass_merge_guards);
  assert_false(a.changed);
  assert_int_equal(a.refusals, 2);
  assert_int_equal(a.refused[0], KILN_REASON_guard_effect);
  assert_int_equal(a.refused[1], KILN_REASON_guard_not_proven);
  kiln_graph_release(graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(each_difference_fails, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(gradients_and_undefined, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(open_types, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(several_values, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(fallback_of_a_group, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(fallback_of_a_merged_region, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(refusals_are_told, fixture_setup, fixture_teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
