/* fusion_test.c: what keeps a group from growing, on graphs too large to be written down. */
#include "ir/pass.h"
#include "jit/fusion.h"
#include "test/unit/ir/ir_support.h"

enum { LISTED = 400, READS = 300, VALUES = KILN_GROUP_VALUES };

static int refused[KILN_REASON__COUNT];

static void note_refusal(kiln_pass *pass, const kiln_node *node, kiln_reason reason,
                         const char *detail) {
  (void)pass, (void)node, (void)detail;
  refused[reason]++;
}

/* The operators of the graph's groups; *out_groups: how many groups. */
static int fuse(fixture *f, kiln_graph *graph, int *out_groups) {
  memset(refused, 0, sizeof refused);
  kiln_pass pass = {.graph = graph,
                    .scratch = f->arena,
                    .env = f->env,
                    .groups_left = 100,
                    .refuse = note_refusal};
  assert_ok(kiln_pass_fuse_groups(&pass));
  assert_ok(kiln_graph_verify(graph));
  int count = 0;
  *out_groups = 0;
  for (const kiln_node *n = graph->top->first; n; n = n->next) {
    if (!kiln_node_is_group(n)) continue;
    ++*out_groups;
    const kiln_graph *body = kiln_node_graph(n, "Subgraph");
    for (const kiln_node *m = body->top->first; m; m = m->next) {
      count += !kiln_node_is(m, KILN_OP_prim_Constant);
    }
  }
  return count;
}

#define F1 "Float(3, strides=[1], requires_grad=0, device=cpu)"

/* So many accesses to so many written tensors of a list are not told apart: every write is a
 * barrier. What is read before it does not move behind it, also where it stands right behind
 * another barrier. */
static void barriers_stand_in_for_accesses(void **state) {
  fixture *f = *state;
  kiln_text text = kiln_text_in(f->arena);
  kiln_text_puts(&text, "graph(%x : " F1 ", %y : " F1 "):\n"
                        "  %none : NoneType = prim::Constant()\n"
                        "  %one : int = prim::Constant[value=1]()\n"
                        "  %zero : int = prim::Constant[value=0]()\n");
  for (int i = 0; i < LISTED; i++) {
    kiln_text_printf(&text, "  %%t%d : " F1 " = aten::clone(%%x, %%none)\n", i);
    kiln_text_printf(&text, "  %%w%d : Tensor = aten::zero_(%%t%d)\n", i, i);
  }
  kiln_text_puts(&text, "  %l : Tensor[] = prim::ListConstruct(%t0");
  for (int i = 1; i < LISTED; i++) kiln_text_printf(&text, ", %%t%d", i);
  kiln_text_puts(&text, ")\n");
  for (int i = 0; i < READS; i++) {
    kiln_text_printf(&text, "  %%s%d : Tensor = aten::stack(%%l, %%zero)\n", i);
  }
  kiln_text_puts(&text, "  %u : Tensor = aten::zero_(%t1)\n"
                        "  %a : " F1 " = aten::mul(%t0, %y)\n"
                        "  %v : Tensor = aten::zero_(%t0)\n"
                        "  %b : " F1 " = aten::add(%a, %y, %one)\n"
                        "  return (%b)\n");
  kiln_graph *graph = parse(f, text.data);
  int groups;
  assert_int_equal(fuse(f, graph, &groups), 0);
  kiln_graph_release(graph);
}

/* A chain over one tensor more than a group may hold, and the result. */
static void groups_hold_so_many_values(void **state) {
  fixture *f = *state;
  kiln_text text = kiln_text_in(f->arena);
  kiln_text_puts(&text, "graph(%x0 : " F1);
  for (int i = 1; i <= VALUES; i++) kiln_text_printf(&text, ", %%x%d : " F1, i);
  kiln_text_puts(&text, "):\n  %s0 : " F1 " = aten::mul(%x0, %x0)\n");
  for (int i = 1; i <= VALUES; i++) {
    kiln_text_printf(&text, "  %%s%d : " F1 " = aten::mul(%%s%d, %%x%d)\n", i, i - 1, i);
  }
  kiln_text_printf(&text, "  return (%%s%d)\n", VALUES);
  kiln_graph *graph = parse(f, text.data);
  int groups;
  (void)fuse(f, graph, &groups);
  /* Told by the one that is full, and by the rest, which does not join it. */
  assert_int_equal(refused[KILN_REASON_too_many_values], 2);
  assert_in_range(groups, 1, 2);
  for (const kiln_node *n = graph->top->first; n; n = n->next) {
    assert_true(n->input_count + n->output_count <= VALUES);
  }
  kiln_graph_release(graph);
}

/* Only what computes is worth a word: a view alone is not told. */
static void views_are_not_refused(void **state) {
  fixture *f = *state;
  kiln_graph *graph = parse(f, "graph(%x : Tensor, %y : Tensor):\n"
                               "  %one : int = prim::Constant[value=1]()\n"
                               "  %v : Tensor = aten::unsqueeze(%x, %one)\n"
                               "  return (%v)\n");
  int groups, all = 0;
  assert_int_equal(fuse(f, graph, &groups), 0);
  for (int i = 0; i < KILN_REASON__COUNT; i++) all += refused[i];
  assert_int_equal(all, 0);
  kiln_graph_release(graph);
  graph = parse(f, "graph(%x : Tensor, %y : Tensor):\n"
                   "  %m : Tensor = aten::mul(%x, %y)\n"
                   "  return (%m)\n");
  assert_int_equal(fuse(f, graph, &groups), 0);
  for (int i = 0; i < KILN_REASON__COUNT; i++) all += refused[i];
  assert_int_equal(all, 1);
  kiln_graph_release(graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(barriers_stand_in_for_accesses, fixture_setup,
                                      fixture_teardown),
      cmocka_unit_test_setup_teardown(groups_hold_so_many_values, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(views_are_not_refused, fixture_setup, fixture_teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
