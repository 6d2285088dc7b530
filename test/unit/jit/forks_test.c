/* forks_test.c: which forked functions may run beside their frame.
 *
 * A row is a frame that forks one function. What is expected follows from forks.h: it may where
 * nobody can tell when it runs, and it is independent where it can hold no future of others. */
#include "jit/forks.h"

#include "test/unit/ir/ir_support.h"

typedef struct row {
  const char *type; /* of the frame's %x, which the function gets as %a */
  const char *body; /* of the function; it returns %r */
  const char *more; /* in the frame, behind the fork */
  kiln_fork_flag expected;
} row;

#define NEG "  %r : Tensor = aten::neg(%t)\n"
#define RETURN "  return (%r)\n"
#define FORKING                                \
  "  %g : Future[Tensor] = prim::fork_0(%t)\n" \
  "  %r : Tensor = aten::wait(%g)\n" RETURN "with prim::fork_0 = graph(%t : Tensor):\n"
static const row rows[] = {
    {"Tensor", NEG, "", KILN_FORK_INDEPENDENT},
    /* What it writes is its own, or it came from outside. */
    {"Tensor", "  %r : Tensor = aten::neg(%t)\n  %w : Tensor = aten::neg_(%r)\n", "",
     KILN_FORK_INDEPENDENT},
    {"Tensor", "  %r : Tensor = aten::neg_(%t)\n", "", KILN_FORK_INLINE},
    {"Tensor[]", "  %r : Tensor = aten::neg(%t)\n  %l : Tensor[] = aten::append(%a, %t)\n", "",
     KILN_FORK_INLINE},
    {"__torch__.Plain", NEG "   = prim::SetAttr[name=\"w\"](%a, %t)\n", "", KILN_FORK_INLINE},
    /* What others see, and what nobody knows. */
    {"Tensor", NEG "   = prim::Print(%t)\n", "", KILN_FORK_INLINE},
    {"Tensor",
     "  %none : NoneType = prim::Constant()\n  %r : Tensor = aten::bernoulli(%t, %none)\n", "",
     KILN_FORK_INLINE},
    {"Tensor", "  %r : Tensor = other::op(%t)\n", "", KILN_FORK_INLINE},
    {"__torch__.Plain", "  %r : Tensor = prim::CallMethod[name=\"f\"](%a)\n", "", KILN_FORK_INLINE},
    {"__torch__.Plain", NEG "  %e : Tensor = prim::Enter(%a)\n", "", KILN_FORK_INLINE},
    {"__torch__.Plain", NEG "  %e : Tensor = prim::Exit(%a, %t, %t, %t)\n", "", KILN_FORK_INLINE},
    {"str", NEG "   = prim::RaiseException(%a)\n", "", KILN_FORK_INDEPENDENT},
    /* The same in either block of a branch, and in a function that it forks. */
    {"bool",
     NEG "   = prim::If(%a)\n    block0():\n       = prim::Print(%t)\n      -> ()\n"
         "    block1():\n      -> ()\n",
     "", KILN_FORK_INLINE},
    {"bool",
     NEG "   = prim::If(%a)\n    block0():\n      -> ()\n"
         "    block1():\n       = prim::Print(%t)\n      -> ()\n",
     "", KILN_FORK_INLINE},
    {"bool",
     NEG "   = prim::If(%a)\n    block0():\n      -> ()\n"
         "    block1():\n      %w : Tensor = aten::neg(%t)\n      -> ()\n",
     "", KILN_FORK_INDEPENDENT},
    {"Tensor", FORKING NEG RETURN, "", KILN_FORK_INDEPENDENT},
    {"Tensor", FORKING NEG "   = prim::Print(%t)\n" RETURN, "", KILN_FORK_INLINE},
    /* The frame writes what the function reads, also within its blocks. */
    {"Tensor", NEG, "  %w : Tensor = aten::neg_(%t)\n", KILN_FORK_INLINE},
    {"Tensor", NEG, "  %w : Tensor = aten::neg(%t)\n  %z : Tensor = aten::neg_(%w)\n",
     KILN_FORK_INDEPENDENT},
    {"bool", NEG,
     "   = prim::If(%x)\n    block0():\n      -> ()\n"
     "    block1():\n      %w : Tensor = aten::neg_(%t)\n      -> ()\n",
     KILN_FORK_INLINE},
    /* What it gets may hold a future. */
    {"Future[Tensor]", "  %r : Tensor = aten::wait(%a)\n", "", KILN_FORK_BESIDE},
    {"Future[Tensor][]", NEG, "", KILN_FORK_BESIDE},
    {"(int, Future[Tensor])", NEG, "", KILN_FORK_BESIDE},
    {"Dict(str, Tensor)", NEG, "", KILN_FORK_INDEPENDENT},
    {"Any", NEG, "", KILN_FORK_BESIDE},
    {"__torch__.Plain", NEG, "", KILN_FORK_INDEPENDENT},
    {"__torch__.Holder", NEG, "", KILN_FORK_BESIDE},
    {"__torch__.Deep7", NEG, "", KILN_FORK_INDEPENDENT},
    {"__torch__.Deep8", NEG, "", KILN_FORK_BESIDE}, /* no longer looked into */
};

static kiln_type *add_class(fixture *f, const char *name, kiln_class_attribute *attribute) {
  kiln_type *type = kiln_type_nominal(f->types, KILN_TYPE_CLASS, kiln_str_from(name));
  type->cls->attributes = attribute;
  type->cls->attribute_count = 1;
  return type;
}

/* Deep8 has a Deep7, and so on; Deep1 has a tensor. */
static void add_classes(fixture *f) {
  kiln_class_attribute *all = KILN_NEW_ARRAY(f->arena, kiln_class_attribute, 10);
  const kiln_type *tensor = kiln_type_basic(KILN_TYPE_TENSOR), *inner = tensor;
  char name[32];
  for (int i = 1; i <= 8; i++) {
    all[i] = (kiln_class_attribute){.name = KILN_STR("w"), .type = inner};
    snprintf(name, sizeof name, "__torch__.Deep%d", i);
    inner = add_class(f, name, &all[i]);
  }
  all[0] = (kiln_class_attribute){.name = KILN_STR("w"), .type = tensor};
  add_class(f, "__torch__.Plain", &all[0]);
  all[9] =
      (kiln_class_attribute){.name = KILN_STR("w"), .type = kiln_type_future(f->types, tensor)};
  add_class(f, "__torch__.Holder", &all[9]);
}

static void who_may_run_beside(void **state) {
  fixture *f = *state;
  add_classes(f);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const row *r = &rows[i];
    char text[1024];
    snprintf(text, sizeof text,
             "graph(%%x : %s, %%t : Tensor):\n"
             "  %%f : Future[Tensor] = prim::fork_0(%%x, %%t)\n"
             "%s"
             "  %%y : Tensor = aten::wait(%%f)\n"
             "  return (%%y)\n"
             "with prim::fork_0 = graph(%%a : %s, %%t : Tensor):\n"
             "%s%s",
             r->type, r->more, r->type, r->body, strstr(r->body, RETURN) ? "" : RETURN);
    kiln_graph *graph = parse(f, text);
    const kiln_node *fork = value(graph, "f")->node;
    const kiln_fork_flag got =
        kiln__fork_purity(f->arena, graph, kiln_alias_create(f->arena, graph), fork,
                          kiln_node_graph(fork, "Subgraph"));
    if (got != r->expected) fail_msg("row %d: %d, not %d", (int)i, (int)got, (int)r->expected);
    kiln_graph_release(graph);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(who_may_run_beside, fixture_setup, fixture_teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
