/* graph_test.c: the core of graphs: use lists, order, blocks, names, attributes, constants, copies.
 */
#include "test/unit/ir/ir_support.h"

static const kiln_type *tensor(void) { return kiln_type_basic(KILN_TYPE_TENSOR); }
static const kiln_type *integer(void) { return kiln_type_basic(KILN_TYPE_INT); }

static kiln_graph *new_graph(fixture *f) {
  return kiln_graph_create(f->env->mem, f->registry, f->types);
}

/* A node of an operator that takes anything. */
static kiln_node *append(kiln_block *block, int inputs, kiln_ir_value *const *values) {
  kiln_node *node = kiln_node_create_unknown(block->graph, KILN_STR("test::op"));
  for (int i = 0; i < inputs; i++) kiln_node_add_input(node, values[i]);
  kiln_node_append(block, node);
  kiln_node_add_output(node, tensor());
  return node;
}

/* -- Uses -- */

static void uses_body(fixture *f, void *arg) {
  (void)f;
  kiln_graph *g = arg;
  kiln_ir_value *x = kiln_graph_add_input(g, "x", tensor());
  kiln_ir_value *y = kiln_graph_add_input(g, "y", tensor());
  kiln_node *n = append(g->top, 2, (kiln_ir_value *[]){x, x});
  assert_int_equal(x->use_count, 2);
  kiln_node_insert_input(n, 1, y);
  assert_ptr_equal(kiln_node_input(n, 1), y);
  assert_ptr_equal(kiln_node_input(n, 2), x);
  assert_int_equal(n->inputs[2]->index, 2);
  kiln_node_set_input(n, 0, y);
  assert_int_equal(x->use_count, 1);
  assert_int_equal(y->use_count, 2);
  kiln_ir_value_replace_uses(y, x);
  assert_int_equal(x->use_count, 3);
  assert_null(y->uses);
  kiln_node_remove_input(n, 1);
  assert_int_equal(n->input_count, 2);
  assert_int_equal(x->use_count, 2);
  kiln_graph_add_output(g, n->outputs[0]);
  assert_int_equal(n->outputs[0]->use_count, 1);
  kiln_block_remove_output(g->top, 0);
  assert_int_equal(n->outputs[0]->use_count, 0);
  assert_ok(kiln_graph_verify(g));
  kiln_node_destroy(n);
  assert_int_equal(x->use_count, 0);
  assert_null(g->top->first);
}

static void test_uses(void **state) {
  kiln_graph *g = new_graph(*state);
  uses_body(*state, g);
  kiln_graph_release(g);
}

/* -- Order -- */

/* Inserting at one spot again and again keeps the order, through renumbering. */
static void order_body(fixture *f, void *arg) {
  (void)f;
  kiln_graph *g = arg;
  kiln_node *first = append(g->top, 0, NULL), *last = append(g->top, 0, NULL);
  kiln_node *before = last;
  for (int i = 0; i < 1000; i++) {
    kiln_node *n = kiln_node_create_unknown(g, KILN_STR("test::op"));
    switch (i % 4) {
      case 0: kiln_node_insert_before(n, before); break;
      case 1: kiln_node_insert_after(n, first); break;
      case 2: kiln_node_prepend(g->top, n); break;
      default: kiln_node_append(g->top, n); break;
    }
    if (i % 4 == 0) before = n;
  }
  assert_true(kiln_node_is_before(first, last));
  assert_false(kiln_node_is_before(last, first));
  int count = 0;
  for (kiln_node *n = g->top->first; n; n = n->next) {
    if (n->next) assert_true(kiln_node_is_before(n, n->next));
    assert_true(kiln_node_is_before(g->top->param, n));
    assert_true(kiln_node_is_before(n, g->top->ret));
    count++;
  }
  assert_int_equal(count, 1002);
  assert_ok(kiln_graph_verify(g));
}

static void test_order(void **state) {
  kiln_graph *g = new_graph(*state);
  order_body(*state, g);
  kiln_graph_release(g);
}

static void test_dominance(void **state) {
  kiln_graph *g = parse(*state, "graph(%c : bool, %x : Tensor):\n"
                                "  %1 : Tensor = prim::A(%x)\n"
                                "  %2 : Tensor = prim::If(%c)\n"
                                "    block0():\n"
                                "      %3 : Tensor = prim::B(%1)\n"
                                "      -> (%3)\n"
                                "    block1():\n"
                                "      -> (%1)\n"
                                "  %4 : Tensor = prim::C(%2)\n"
                                "  return (%4)\n");
  kiln_node *a = value(g, "1")->node, *branch = value(g, "2")->node, *b = value(g, "3")->node,
            *c = value(g, "4")->node, *param = g->top->param;
  assert_true(kiln_node_dominates(a, b));
  assert_true(kiln_node_dominates(param, b));
  assert_true(kiln_node_dominates(branch, c));
  assert_false(kiln_node_dominates(branch, b)); /* its results are not there yet */
  assert_false(kiln_node_dominates(b, c));
  assert_false(kiln_node_dominates(c, a));
  assert_false(kiln_node_dominates(a, a));
  assert_ptr_equal(kiln_node_in_block(b, g->top), branch);
  assert_ptr_equal(kiln_node_in_block(c, g->top), c);
  assert_null(kiln_node_in_block(a, branch->blocks[0]));
  kiln_graph_release(g);
}

/* -- Names: the latest owner keeps the plain one, as in PyTorch -- */

static void names_body(fixture *f, void *arg) {
  (void)f;
  kiln_graph *g = arg;
  kiln_ir_value *v[5];
  for (int i = 0; i < 5; i++) v[i] = kiln_graph_add_input(g, NULL, tensor());
  kiln_ir_value_set_name(v[0], KILN_STR("x"));
  kiln_ir_value_set_name(v[1], KILN_STR("x"));
  assert_true(kiln_str_is(v[0]->name, "x.1"));
  assert_true(kiln_str_is(v[1]->name, "x"));
  kiln_ir_value_set_name(v[2], KILN_STR("x"));
  assert_true(kiln_str_is(v[1]->name, "x.2"));
  kiln_ir_value_set_name(v[3], KILN_STR("x.2"));
  assert_true(kiln_str_is(v[1]->name, "x.3"));
  assert_true(kiln_str_is(v[3]->name, "x.2"));
  kiln_ir_value_set_name(v[4], KILN_STR("12"));
  assert_int_equal(v[4]->name.len, 0);
  kiln_ir_value_set_name(v[2], KILN_STR("")); /* gives "x" back */
  kiln_ir_value_set_name(v[4], KILN_STR("x"));
  assert_true(kiln_str_is(v[4]->name, "x"));
  assert_true(kiln_str_is(v[0]->name, "x.1"));
}

static void test_names(void **state) {
  kiln_graph *g = new_graph(*state);
  names_body(*state, g);
  kiln_graph_release(g);
}

/* -- Attributes and constants -- */

static void attrs_body(fixture *f, void *arg) {
  (void)f;
  kiln_graph *g = arg;
  kiln_node *n = append(g->top, 0, NULL);
  kiln_node_set_int(n, "a", 3);
  kiln_node_set_str(n, "s", KILN_STR("text"));
  kiln_node_set_type(n, "t", integer());
  const kiln_type *types[] = {integer(), tensor()};
  kiln_node_set_types(n, "ts", types, 2);
  kiln_node_set_int(n, "a", 4);
  kiln_node_set_pointer(n, "p", g);
  kiln_graph *sub = kiln_graph_create_sub(g);
  kiln_node_set_graph(n, "Subgraph", sub);
  assert_int_equal(kiln_node_int(n, "a", -1), 4);
  assert_int_equal(kiln_node_int(n, "none", -1), -1);
  assert_true(kiln_str_is(kiln_node_str(n, "s"), "text"));
  assert_int_equal(kiln_node_str(n, "a").len, 0);
  assert_ptr_equal(kiln_node_graph(n, "Subgraph"), sub);
  assert_string_equal(n->attrs->name, "a"); /* setting again keeps the place */

  kiln_ir_value *none = kiln_append_constant(g->top, kiln_none(), kiln_type_basic(KILN_TYPE_NONE));
  kiln_ir_value *five = kiln_insert_constant_before(n, kiln_int(5), integer());
  assert_true(kiln_ir_value_is_none(none));
  assert_false(kiln_ir_value_is_none(five));
  assert_int_equal(kiln_ir_value_constant(five)->u.i, 5);
  assert_null(kiln_ir_value_constant(n->outputs[0]));
  assert_ptr_equal(five->node->next, n);
}

static void test_attrs(void **state) {
  kiln_graph *g = new_graph(*state);
  attrs_body(*state, g);
  kiln_graph_release(g);
}

/* A node with blocks has the effects of what stands in them; unknown operators may do anything. */
static void test_effects(void **state) {
  kiln_graph *g = parse(*state, "graph(%c : bool, %x : Tensor, %i : int):\n"
                                "  %1 : Tensor = aten::add(%x, %x, %i)\n"
                                "  %2 : Tensor = prim::Foo(%x)\n"
                                "  %3 : Tensor = prim::If(%c)\n"
                                "    block0():\n"
                                "       = prim::Print(%x)\n"
                                "      -> (%x)\n"
                                "    block1():\n"
                                "      -> (%1)\n"
                                "  %4 : Tensor = prim::If(%c)\n"
                                "    block0():\n"
                                "      -> (%x)\n"
                                "    block1():\n"
                                "      -> (%1)\n"
                                "  return (%1)\n");
  assert_false(kiln_node_has_side_effects(value(g, "1")->node));
  assert_true(kiln_node_has_side_effects(value(g, "2")->node));
  assert_true(kiln_node_has_side_effects(value(g, "3")->node));
  assert_false(kiln_node_has_side_effects(value(g, "4")->node));
  assert_true(kiln_node_is_nondeterministic(value(g, "2")->node));
  assert_false(kiln_node_is_nondeterministic(value(g, "3")->node));
  kiln_graph_release(g);
}

/* -- Copies -- */

static const char loop_text[] = "graph(%n : int,\n"
                                "      %x.1 : Tensor):\n"
                                "  %2 : bool = prim::Constant[value=1]()\n"
                                "  %x : Tensor = prim::Loop(%n, %2, %x.1)\n"
                                "    block0(%i : int, %x.5 : Tensor):\n"
                                "      %6 : Tensor = prim::Foo(%x.5, %n)\n"
                                "      -> (%2, %6)\n"
                                "  return (%x)\n";

typedef struct copy_args {
  kiln_graph *to;
  const kiln_graph *from;
} copy_args;

/* A node with a block, copied into another graph: inputs through the map, the rest anew. */
static void copy_body(fixture *f, void *arg) {
  (void)f;
  copy_args *a = arg;
  kiln_ir_value *n = kiln_graph_add_input(a->to, "n", integer());
  kiln_ir_value *c = kiln_graph_add_input(a->to, "c", kiln_type_basic(KILN_TYPE_BOOL));
  kiln_ir_value *t = kiln_graph_add_input(a->to, "t", tensor());
  kiln_map map = kiln_map_in(a->to->arena);
  kiln_map_set_ptr(&map, value(a->from, "n"), n);
  kiln_map_set_ptr(&map, value(a->from, "2"), c);
  kiln_map_set_ptr(&map, value(a->from, "x.1"), t);
  kiln_node *loop = kiln_node_copy(a->to, value(a->from, "x")->node, &map);
  kiln_node_append(a->to->top, loop);
  assert_ptr_equal(kiln_map_find_ptr(&map, value(a->from, "x")), loop->outputs[0]);
  assert_ptr_equal(kiln_node_input(loop, 2), t);
  kiln_graph_add_output(a->to, loop->outputs[0]);
  assert_ok(kiln_graph_verify(a->to));
  assert_int_equal(n->use_count, 2); /* of the loop, and in its body */
}

static void test_copy(void **state) {
  kiln_graph *from = parse(*state, loop_text);
  assert_ok(kiln_graph_verify(from));
  copy_args args = {new_graph(*state), from};
  copy_body(*state, &args);
  kiln_graph_release(from);
  assert_string_equal(print(*state, args.to, false), "graph(%n : int,\n"
                                                     "      %c : bool,\n"
                                                     "      %t : Tensor):\n"
                                                     "  %x : Tensor = prim::Loop(%n, %c, %t)\n"
                                                     "    block0(%i : int, %x.5 : Tensor):\n"
                                                     "      %5 : Tensor = prim::Foo(%x.5, %n)\n"
                                                     "      -> (%c, %5)\n"
                                                     "  return (%x)\n");
  kiln_graph_release(args.to);
}

/* A graph keeps what its attributes point to in other arenas. */
static void retain_body(fixture *f, void *arg) {
  (void)f;
  kiln_graph **graphs = arg;
  kiln_node *n = append(graphs[0]->top, 0, NULL);
  kiln_node_set_graph(n, "Subgraph", graphs[1]);
}

static void test_retain(void **state) {
  kiln_graph *graphs[2] = {new_graph(*state), parse(*state, loop_text)};
  retain_body(*state, graphs);
  kiln_graph_release(graphs[1]);
  assert_non_null(strstr(print(*state, graphs[0], false), "prim::Loop"));
  kiln_graph_release(graphs[0]);
}

/* Tensor details belong to the graph's own table: a copy has them in its own. */
static void test_copy_types(void **state) {
  fixture *f = *state;
  static const char text[] = "graph(%x : Float(2, strides=[1], requires_grad=0, device=cpu)):\n"
                             "  %1 : (Long(3, strides=[1], requires_grad=0, device=cpu), int) = "
                             "prim::Foo[t=Float(5, strides=[1], requires_grad=0, device=cpu)](%x)\n"
                             "  return (%1)\n";
  kiln_type_table *other;
  kiln_graph *graph, *copy;
  assert_ok(kiln_type_table_create(f->env->mem, kiln_registry_types(f->registry), &other));
  assert_ok(kiln_graph_parse(f->env->mem, f->registry, other, kiln_str_from(text), &graph));
  copy = kiln_graph_copy(graph, f->env->mem, f->types);
  kiln_graph_release(graph);
  kiln_type_table_destroy(other);
  assert_string_equal(print(f, copy, false), text);
  kiln_graph_release(copy);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_uses),       cmocka_unit_test(test_order),
      cmocka_unit_test(test_dominance),  cmocka_unit_test(test_names),
      cmocka_unit_test(test_attrs),      cmocka_unit_test(test_effects),
      cmocka_unit_test(test_copy),       cmocka_unit_test(test_retain),
      cmocka_unit_test(test_copy_types),
  };
  return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
