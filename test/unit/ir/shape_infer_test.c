/* shape_infer_test.c: what is inferred in graphs where something is known of some values: by shape
 * functions, in lists of pieces, and by running a kernel. */
#include "ir/pass.h"
#include "test/unit/ir/ir_support.h"

typedef struct infer_args {
  kiln_graph *graph;
  bool complete;
} infer_args;

static void infer_body(fixture *f, void *arg) {
  (void)f;
  infer_args *a = arg;
  for (kiln_node *n = a->graph->top->first; n; n = n->next) {
    a->complete = kiln_shape_infer(a->graph, n);
  }
}

static const char *type_of(fixture *f, const kiln_graph *graph, const char *name) {
  static char text[256];
  const char *all = print(f, graph, false);
  char key[32];
  snprintf(key, sizeof key, "%%%s : ", name);
  const char *at = strstr(all, key);
  assert_non_null(at);
  at += strlen(key);
  size_t n = strcspn(at, "=\n");
  const char *end = strstr(at, " = ");
  if (end) n = (size_t)(end - at);
  snprintf(text, sizeof text, "%.*s", (int)n, at);
  return text;
}

static void test_infer(void **state) {
  infer_args a = {
      .graph =
          parse(*state, "graph(%x : Float(4, 6, strides=[6, 1], requires_grad=0, device=cpu),\n"
                        "      %b : Float(6, strides=[1], requires_grad=0, device=cpu),\n"
                        "      %p : Float(*, 6, requires_grad=0, device=cpu),\n"
                        "      %u : Tensor,\n"
                        "      %f : Float(2, 6, strides=[1, 2], requires_grad=0, device=cpu),\n"
                        "      %m : Float(s0, s1, strides=[1, s0], requires_grad=0, device=cpu),\n"
                        "      %o : Float(s1, strides=[1], requires_grad=0, device=cpu),\n"
                        "      %l : Long(3, strides=[1], requires_grad=0, device=cpu),\n"
                        "      %i : int):\n"
                        "  %n : NoneType = prim::Constant()\n"
                        "  %no : bool = prim::Constant[value=0]()\n"
                        "  %5 : int = prim::Constant[value=5]()\n"
                        "  %wrong : int[] = prim::Constant[value=[2, 7]]()\n"
                        "  %g : Tensor = aten::add(%f, %f, %5)\n"
                        "  %j : Tensor = aten::add(%m, %m, %5)\n"
                        "  %k : Tensor = aten::add(%m, %o, %5)\n"
                        "  %places : Tensor?[] = prim::ListConstruct(%n, %l)\n"
                        "  %h : Tensor = aten::index(%f, %places)\n"
                        "  %r : Tensor = aten::arange(%5, %n, %n, %n, %n)\n"
                        "  %z : Tensor = aten::expand(%f, %wrong, %no)\n"
                        "  %s : Tensor = aten::add(%x, %b, %i)\n"
                        "  %q : Tensor = aten::mul(%p, %b)\n"
                        "  %w : Tensor = aten::add(%s, %u, %i)\n"
                        "  %e : Tensor = aten::eq(%s, %i)\n"
                        "  %c : Tensor, %d : Tensor = prim::ConstantChunk[chunks=2, dim=1](%s)\n"
                        "  %t : Tensor = aten::tanh(%c)\n"
                        "  return (%t)\n")};
  infer_body(*state, &a);
  assert_true(a.complete);
  assert_string_equal(type_of(*state, a.graph, "s"),
                      "Float(4, 6, strides=[6, 1], requires_grad=0, device=cpu)");
  assert_string_equal(type_of(*state, a.graph, "q"), "Float(*, 6, requires_grad=0, device=cpu)");
  assert_null(strchr(type_of(*state, a.graph, "w"), 'F')); /* the other may be of any dtype */
  assert_string_equal(type_of(*state, a.graph, "e"),
                      "Bool(4, 6, strides=[6, 1], requires_grad=0, device=cpu)");
  assert_string_equal(type_of(*state, a.graph, "d"),
                      "Float(4, 3, strides=[6, 1], requires_grad=0, device=cpu)");
  assert_string_equal(type_of(*state, a.graph, "g"),
                      "Float(2, 6, strides=[1, 2], requires_grad=0, device=cpu)");
  /* The same by find_strides, which symbols ask: one layout is kept. A vector tells none. */
  const kiln_type *turned = value(a.graph, "m")->type;
  assert_ptr_equal(value(a.graph, "j")->type, turned);
  assert_ptr_equal(value(a.graph, "k")->type, turned);
  assert_string_equal(type_of(*state, a.graph, "h"),
                      "Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)");
  assert_string_equal(type_of(*state, a.graph, "r"),
                      "Long(5, strides=[1], requires_grad=0, device=cpu)");
  assert_null(strchr(type_of(*state, a.graph, "z"), '7'));
  assert_string_equal(type_of(*state, a.graph, "t"),
                      "Float(4, 3, strides=[3, 1], requires_grad=0, device=cpu)");
  kiln_graph_release(a.graph);
}

/* Of nothing there is one piece of nothing, or as many as were asked for; 6 elements make no four
 * pieces, but three. */
static void test_uneven_pieces(void **state) {
  infer_args a = {.graph =
                      parse(*state,
                            "graph(%n : Float(0, 3, strides=[3, 1], requires_grad=0, device=cpu),\n"
                            "      %x : Float(6, strides=[1], requires_grad=0, device=cpu),\n"
                            "      %y : Float(2, strides=[1], requires_grad=0, device=cpu)):\n"
                            "  %0 : int = prim::Constant[value=0]()\n"
                            "  %2 : int = prim::Constant[value=2]()\n"
                            "  %4 : int = prim::Constant[value=4]()\n"
                            "  %s : Tensor[] = aten::split(%n, %2, %0)\n"
                            "  %a : Tensor = prim::ListUnpack(%s)\n"
                            "  %c : Tensor[] = aten::chunk(%n, %2, %0)\n"
                            "  %b : Tensor, %d : Tensor = prim::ListUnpack(%c)\n"
                            "  %k : Tensor[] = aten::chunk(%x, %4, %0)\n"
                            "  %e : Tensor, %f : Tensor, %g : Tensor = prim::ListUnpack(%k)\n"
                            "  return (%a, %d, %e, %g)\n")};
  infer_body(*state, &a);
  static const char *const empty[] = {"a", "b", "d"}, *const full[] = {"e", "f", "g"};
  for (int i = 0; i < 3; i++) {
    assert_ptr_equal(value(a.graph, empty[i])->type, value(a.graph, "n")->type);
    assert_ptr_equal(value(a.graph, full[i])->type, value(a.graph, "y")->type);
  }
  kiln_graph_release(a.graph);
}

/* A result of more dimensions than there may be has no type. */
static void test_too_many_dimensions(void **state) {
  infer_args a = {0};
  for (int rank = KILN_MAX_RANK - 1; rank <= KILN_MAX_RANK; rank++) {
    char text[1024] = "graph(%x : Long(1";
    for (int d = 1; d < rank; d++) strcat(text, ", 1");
    strcat(text, ")):\n"
                 "  %3 : int = prim::Constant[value=3]()\n"
                 "  %o : Tensor = aten::one_hot(%x, %3)\n"
                 "  return (%o)\n");
    a.graph = parse(*state, text);
    infer_body(*state, &a);
    const kiln_tensor_detail *d = value(a.graph, "o")->type->detail;
    if (rank < KILN_MAX_RANK) {
      assert_true(d && d->rank == KILN_MAX_RANK && d->sizes[rank] == 3);
    } else {
      assert_null(d);
    }
    kiln_graph_release(a.graph);
  }
}

/* What is found by running an operator is a change as well. */
static void test_probing_changes(void **state) {
  fixture *f = *state;
  kiln_call *call;
  kiln_graph *graph = parse(f, "graph(%x : Float(3, strides=[1], requires_grad=0, device=cpu)):\n"
                               "  %o : Tensor = aten::kron(%x, %x)\n"
                               "  return (%o)\n");
  assert_null(value(graph, "o")->node->op->shape); /* the kernel alone tells */
  assert_ok(kiln_call_create(f->env, &call));
  for (int i = 0; i < 2; i++) {
    kiln_pass pass = {.graph = graph, .scratch = f->arena, .env = f->env, .call = call};
    assert_ok(kiln_pass_infer_shapes(&pass));
    assert_true(pass.changed == (i == 0));
    assert_string_equal(type_of(f, graph, "o"),
                        "Float(9, strides=[1], requires_grad=0, device=cpu)");
  }
  kiln_call_destroy(call);
  kiln_graph_release(graph);
}

/* How many elements a mask takes is not found out on zeros; how many indices there are is. */
static void test_masks_are_not_probed(void **state) {
  fixture *f = *state;
  kiln_call *call;
  kiln_graph *graph =
      parse(f, "graph(%x : Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu),\n"
               "      %i : Long(4, strides=[1], requires_grad=0, device=cpu),\n"
               "      %m : Bool(2, strides=[1], requires_grad=0, device=cpu)):\n"
               "  %k : Tensor[] = prim::ListConstruct(%i)\n"
               "  %l : Tensor[] = prim::ListConstruct(%m)\n"
               "  %a : Tensor = aten::index(%x, %k)\n"
               "  %b : Tensor = aten::index(%x, %l)\n"
               "  return (%a, %b)\n");
  assert_ok(kiln_call_create(f->env, &call));
  kiln_pass pass = {.graph = graph, .scratch = f->arena, .env = f->env, .call = call};
  assert_ok(kiln_pass_infer_shapes(&pass));
  assert_string_equal(type_of(f, graph, "a"),
                      "Float(4, 3, strides=[3, 1], requires_grad=0, device=cpu)");
  assert_false(kiln_type_is_complete_tensor(value(graph, "b")->type));
  kiln_call_destroy(call);
  kiln_graph_release(graph);
}

/* Orders of memory that are kept, of numbers and of symbols; results that are row-major or lie by
 * columns whatever the argument is. */
static void test_results_lie(void **state) {
  static const struct {
    const char *value, *type;
  } wanted[] = {
      {"a", "Float(2, 6, strides=[1, 2], requires_grad=0, device=cpu)"},
      {"b", "Float(*, *, strides=[1, *], requires_grad=0, device=cpu)"},
      {"c", "Float(2, 6, strides=[6, 1], requires_grad=0, device=cpu)"},
      {"d", "Long(*, *, strides=[1, *], requires_grad=0, device=cpu)"},
      {"e", "Float(2, 6, strides=[6, 1], requires_grad=0, device=cpu)"},
      {"f", "Float(*, *, strides=[*, 1], requires_grad=0, device=cpu)"},
      {"g", "Float(4, 4, strides=[1, 4], requires_grad=0, device=cpu)"},
      {"h", "Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)"},
      {"i", "Float(3, 6, strides=[6, 1], requires_grad=0, device=cpu)"},
      {"j", "Float(3, 2, 5, strides=[10, 1, 2], requires_grad=0, device=cpu)"},
      {"l", "Float(2, 1, 3, strides=[3, 1, 1], requires_grad=0, device=cpu)"},
      {"m", "Float(2, 1, 3, strides=[3, 3, 1], requires_grad=0, device=cpu)"},
  };
  fixture *f = *state;
  infer_args a = {
      .graph =
          parse(f, "graph(%x : Float(2, 6, strides=[1, 2], requires_grad=0, device=cpu),\n"
                   "      %y : Float(s0, s1, strides=[1, s0], requires_grad=0, device=cpu),\n"
                   "      %z : Float(2, 6, strides=[1, 4], requires_grad=0, device=cpu),\n"
                   "      %u : Float(4, 4, strides=[4, 1], requires_grad=0, device=cpu),\n"
                   "      %v : Float(4, 2, 5, strides=[10, 1, 2], requires_grad=0, device=cpu),\n"
                   "      %w : Float(2, 1, 3, strides=[3, 1, 1], requires_grad=0, device=cpu),\n"
                   "      %k : Long(3, strides=[1], requires_grad=0, device=cpu)):\n"
                   "  %n : NoneType = prim::Constant()\n"
                   "  %no : bool = prim::Constant[value=0]()\n"
                   "  %0 : int = prim::Constant[value=0]()\n"
                   "  %1 : int = prim::Constant[value=1]()\n"
                   "  %2 : float = prim::Constant[value=2.]()\n"
                   "  %dims : int[] = prim::Constant[value=[0]]()\n"
                   "  %rows : Tensor?[] = prim::ListConstruct(%k)\n"
                   "  %columns : Tensor?[] = prim::ListConstruct(%n, %k)\n"
                   "  %a : Tensor = aten::flip(%x, %dims)\n"
                   "  %b : Tensor = aten::flip(%y, %dims)\n"
                   "  %o : Tensor, %d : Tensor = aten::sort(%y, %1, %no)\n"
                   "  %c : Tensor = aten::pow(%2, %x)\n"
                   "  %e : Tensor = aten::log_sigmoid(%z)\n"
                   "  %f : Tensor = aten::renorm(%y, %2, %0, %2)\n"
                   "  %g : Tensor = aten::cholesky_inverse(%u, %no)\n"
                   "  %h : Tensor = aten::index(%x, %columns)\n"
                   "  %i : Tensor = aten::index(%x, %rows)\n"
                   "  %j : Tensor = aten::index(%v, %rows)\n"
                   "  %l : Tensor = aten::add(%w, %2, %1)\n"
                   "  %m : Tensor = aten::sqrt(%w)\n"
                   "  return (%a)\n")};
  infer_body(f, &a);
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
    assert_string_equal(type_of(f, a.graph, wanted[i].value), wanted[i].type);
  }
  kiln_graph_release(a.graph);
}

/* Lists of so many pieces are told, and none of more. */
static void test_pieces(void **state) {
  fixture *f = *state;
  for (int count = 1024; count <= 1025; count++) {
    kiln_text text = kiln_text_in(f->arena);
    kiln_text_printf(&text,
                     "graph(%%x : Float(%d, strides=[1], requires_grad=0, device=cpu)):\n"
                     "  %%zero : int = prim::Constant[value=0]()\n"
                     "  %%one : int = prim::Constant[value=1]()\n"
                     "  %%l : Tensor[] = aten::split(%%x, %%one, %%zero)\n"
                     "  %%p0 : Tensor",
                     count);
    for (int i = 1; i < count; i++) kiln_text_printf(&text, ", %%p%d : Tensor", i);
    kiln_text_puts(&text, " = prim::ListUnpack(%l)\n  return (%p0)\n");
    infer_args a = {.graph = parse(f, text.data)};
    infer_body(f, &a);
    assert_int_equal(kiln_type_is_complete_tensor(value(a.graph, "p7")->type), count == 1024);
    kiln_graph_release(a.graph);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_infer),
      cmocka_unit_test(test_masks_are_not_probed),
      cmocka_unit_test(test_pieces),
      cmocka_unit_test(test_results_lie),
      cmocka_unit_test(test_probing_changes),
      cmocka_unit_test(test_uneven_pieces),
      cmocka_unit_test(test_too_many_dimensions),
  };
  return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
