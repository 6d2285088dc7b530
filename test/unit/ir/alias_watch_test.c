/* alias_watch_test.c: nodes that write what live values share are told once, whichever of both is
 * met first; so is a node that is newer than the analysis, which may write anything. */
#include "ir/pass.h"
#include "test/unit/ir/ir_support.h"

static void test_watch(void **state) {
  fixture *f = *state;
  kiln_graph *g = parse(f, "graph(%x : Tensor, %y : Tensor):\n"
                           "  %a : Tensor = aten::neg(%x)\n"
                           "  %b : Tensor = aten::neg(%y)\n"
                           "  %w : Tensor = aten::relu_(%a)\n"
                           "  %v : Tensor = aten::relu_(%b)\n"
                           "  return (%a)\n");
  const kiln_alias *alias = kiln_alias_create(f->arena, g);
  const kiln_ir_value *a = value(g, "a"), *b = value(g, "b");
  kiln_node *writer = value(g, "w")->node, *other = value(g, "v")->node;
  kiln_map copies = kiln_map_in(f->arena);
  kiln_node *newer = kiln_node_copy(g, other, &copies);
  kiln_node_insert_after(newer, other);
  for (int first = 0; first < 2; first++) { /* the value, or the nodes */
    kiln_alias_watch *watch = kiln_alias_watch_create(alias, f->arena);
    if (first) kiln_alias_watch_value(watch, a);
    kiln_alias_watch_node(watch, a->node);
    kiln_alias_watch_node(watch, writer);
    kiln_alias_watch_node(watch, other);
    kiln_alias_watch_node(watch, newer);
    if (!first) assert_null(kiln_alias_watch_next(watch));
    if (!first) kiln_alias_watch_value(watch, a);
    const kiln_node *told[] = {kiln_alias_watch_next(watch), kiln_alias_watch_next(watch)};
    assert_true((told[0] == newer && told[1] == writer) || (told[1] == newer && told[0] == writer));
    assert_null(kiln_alias_watch_next(watch));
    kiln_alias_watch_value(watch, b);
    assert_ptr_equal(kiln_alias_watch_next(watch), other);
    assert_null(kiln_alias_watch_next(watch));
  }
  kiln_graph_release(g);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_watch)};
  return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
