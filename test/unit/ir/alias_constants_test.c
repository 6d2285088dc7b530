/* alias_constants_test.c: constants that hold one tensor: who writes it writes what they hold. And
 * the value that is made last. */
#include "ir/pass.h"
#include "test/unit/ir/ir_support.h"

/* %d, whose text is a number, becomes a dict that holds the tensor of %a. */
static void give_dict(fixture *f, kiln_graph *graph) {
  kiln_ir_value *d = value(graph, "d");
  const kiln_type *text = kiln_type_basic(KILN_TYPE_STR);
  const kiln_type *tensor = kiln_type_basic(KILN_TYPE_TENSOR);
  kiln_mem *mem = kiln_arena_mem(f->arena);
  kiln_string *key;
  kiln_dict *dict;
  assert_ok(kiln_string_create(mem, KILN_STR("w"), &key));
  assert_ok(kiln_dict_create(mem, text, tensor, &dict));
  assert_ok(kiln_dict_set(dict, kiln_of_box(key),
                          kiln_ivalue_retain(*kiln_ir_value_constant(value(graph, "a")))));
  d->type = kiln_type_dict(f->types, text, tensor);
  kiln_node_set_value(d->node, "value", kiln_of_box(dict));
}

static void test_dict(void **state) {
  fixture *f = *state;
  kiln_graph *graph = parse(f, "graph(%x : Tensor):\n"
                               "  %a : Float(2, strides=[1], requires_grad=0, device=cpu) = "
                               "prim::Constant[value={[1., 2.]}]()\n"
                               "  %d : int = prim::Constant[value=1]()\n"
                               "  %u : Tensor = aten::relu_(%a)\n"
                               "  return (%x)\n");
  assert_false(kiln_alias_has_writers(kiln_alias_create(f->arena, graph), value(graph, "d")));
  give_dict(f, graph);
  assert_true(kiln_alias_has_writers(kiln_alias_create(f->arena, graph), value(graph, "d")));
  kiln_graph_release(graph);
}

/* It escapes as others do, although nothing is made behind it. */
static void test_last_escapes(void **state) {
  fixture *f = *state;
  kiln_graph *graph = parse(f, "graph(%x : Tensor):\n"
                               "  %a : Tensor = aten::relu(%x)\n"
                               "   = other::unknown(%a)\n"
                               "  return ()\n");
  const kiln_alias *alias = kiln_alias_create(f->arena, graph);
  kiln_ir_value *a = value(graph, "a");
  assert_true(kiln_alias_writes_to(alias, a->node->next, a));
  assert_true(kiln_alias_is_wildcard(alias, a));
  kiln_graph_release(graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_dict, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(test_last_escapes, fixture_setup, fixture_teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
