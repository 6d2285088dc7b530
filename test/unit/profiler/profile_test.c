/* profile_test.c: profile nodes in and out of a graph, records merged over runs and shapes. */
#include "profiler/profile.h"

#include "runtime/tensor.h"
#include "test/unit/graphs.h"
#include "test/unit/ir/ir_support.h"

/* -- Passes on textual graphs -- */

typedef struct pass_args {
  kiln_graph *graph;
  kiln_status *(*fn)(kiln_pass *pass);
  bool changed;
} pass_args;

static void pass_body(fixture *f, void *arg) {
  pass_args *a = arg;
  kiln_pass pass = {.graph = a->graph, .scratch = f->arena, .env = f->env};
  assert_ok(a->fn(&pass));
  a->changed = pass.changed;
}

/* Whether it changed the graph, which is well formed afterwards. */
static bool run_pass(fixture *f, kiln_graph *graph, kiln_status *(*fn)(kiln_pass *pass)) {
  pass_args a = {graph, fn, false};
  pass_body(f, &a);
  assert_ok(kiln_graph_verify(graph));
  return a.changed;
}

static void put_in_and_taken_out(void **state) {
  fixture *f = *state;
  kiln_graph *graph = parse(f, GRAPH_LOOP);
  assert_int_equal(kiln_profile_each(graph->top, NULL, NULL), 0);
  assert_true(run_pass(f, graph, kiln_pass_insert_profile_nodes));
  /* Both reads of mul, the tensor that the body gives, the one that the graph gives. */
  assert_int_equal(kiln_profile_each(graph->top, NULL, NULL), 4);
  const char *text = print(f, graph, false);
  assert_non_null(strstr(text, "prim::profile(%a)"));
  assert_non_null(strstr(text, "prim::profile(%6)"));
  assert_non_null(strstr(text, "prim::profile(%3)"));
  assert_non_null(strstr(text, " = prim::profile()"));
  assert_false(run_pass(f, graph, kiln_pass_insert_profile_nodes)); /* they are there already */
  assert_true(run_pass(f, graph, kiln_pass_remove_profile_nodes));
  assert_string_equal(print(f, graph, false), GRAPH_LOOP);
  assert_false(run_pass(f, graph, kiln_pass_remove_profile_nodes));
  kiln_graph_release(graph);
}

static void numbered_alike_in_copies(void **state) {
  fixture *f = *state;
  kiln_graph *graph = parse(f, GRAPH_LOOP), *copy;
  (void)run_pass(f, graph, kiln_pass_insert_profile_nodes);
  copy = kiln_graph_copy(graph, f->env->mem, f->types);
  assert_int_equal(kiln_profile_each(copy->top, NULL, NULL), 4);
  assert_string_equal(print(f, copy, false), print(f, graph, false));
  kiln_graph_release(copy);
  kiln_graph_release(graph);
}

/* -- Records over runs -- */

static kiln_ivalue tensor(fixture *f, kiln_dtype dtype, int64_t rows, int64_t columns) {
  kiln_tensor *t;
  assert_ok(kiln_tensor_create(f->env->mem, NULL, dtype, 2, (int64_t[]){rows, columns}, &t));
  return kiln_of_tensor(t);
}

/* One run that saw these values at site 0 (taken) and nothing at the others. */
static void commit_run(kiln_profile *p, int sites, const kiln_ivalue *values, int count) {
  kiln_type_record records[8];
  for (int i = 0; i < sites; i++) kiln_type_record_init(&records[i]);
  for (int i = 0; i < count; i++) {
    kiln_type_record_add(&records[0], values[i], false);
    kiln_ivalue_release(values[i]);
  }
  p->sink.commit(&p->sink, records, sites);
}

/* Annotates, and prints what the first site says. */
typedef struct annotate_args {
  kiln_profile *profile;
  kiln_graph *graph;
} annotate_args;
static void annotate_body(fixture *f, void *arg) {
  annotate_args *a = arg;
  (void)f;
  kiln_profile_annotate(a->profile, a->graph);
}
static const char *annotated(fixture *f, kiln_profile *p) {
  kiln_graph *graph = parse(f, "graph(%x : Tensor):\n  %1 : Tensor = prim::profile(%x)\n"
                               "  %2 : Tensor = prim::profile(%x)\n   = prim::profile()\n"
                               "  return (%1, %2)\n");
  annotate_args a = {p, graph};
  annotate_body(f, &a);
  const char *text = print(f, graph, false);
  kiln_graph_release(graph);
  return text;
}
#define assert_says(f, p, words)                                              \
  do {                                                                        \
    const char *text_ = annotated((f), (p));                                  \
    if (!strstr(text_, (words))) fail_msg("lacks '%s':\n%s", (words), text_); \
  } while (0)

static void merged_over_runs_and_shapes(void **state) {
  fixture *f = *state;
  kiln_profile *p;
  assert_ok(kiln_profile_create(f->env->mem, 2, 3, &p));
  assert_false(kiln_profile_is_ready(p));
  commit_run(p, 2, (kiln_ivalue[]){tensor(f, KILN_DTYPE_F32, 2, 3)}, 1);
  assert_says(f, p,
              "profiled_type=Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu), "
              "seen_none=0](%x)");
  commit_run(p, 2, (kiln_ivalue[]){tensor(f, KILN_DTYPE_F32, 5, 3), kiln_none()}, 2);
  /* The rows differ, the strides do not; a None was seen; the second site was never reached. */
  assert_says(f, p,
              "%1 : Tensor = prim::profile[profiled_type=Float(*, 3, strides=[3, 1], "
              "requires_grad=0, device=cpu), seen_none=1](%x)");
  assert_says(f, p, "%2 : Tensor = prim::profile[profiled_type=Tensor, seen_none=0](%x)");
  assert_int_equal(kiln_profile_runs(p), 2);
  assert_false(kiln_profile_is_ready(p));
  commit_run(p, 2, (kiln_ivalue[]){tensor(f, KILN_DTYPE_I64, 5, 3)}, 1);
  assert_true(kiln_profile_is_ready(p));
  assert_says(f, p, "profiled_type=Tensor(*, 3, strides=[3, 1], requires_grad=0, device=cpu)");
  /* A run that ends after the last one that was wanted changes nothing. */
  commit_run(p, 2, (kiln_ivalue[]){tensor(f, KILN_DTYPE_F32, 1, 9)}, 1);
  assert_int_equal(kiln_profile_runs(p), 3);
  assert_says(f, p, "profiled_type=Tensor(*, 3, strides=[3, 1], requires_grad=0, device=cpu)");
  kiln_profile_destroy(p);
}

/* However much flows, a profile holds what it held at first. */
static void bounded(void **state) {
  fixture *f = *state;
  kiln_profile *p;
  assert_ok(kiln_profile_create(f->env->mem, 2, 1000, &p));
  size_t before = kiln_mem_bytes(f->env->mem);
  for (int i = 1; i <= 200; i++) {
    commit_run(p, 2, (kiln_ivalue[]){tensor(f, KILN_DTYPE_F32, i, i + 1), kiln_int(i)}, 2);
  }
  assert_int_equal(kiln_mem_bytes(f->env->mem), before);
  assert_int_equal(p->records[0].seen, 400);
  assert_int_equal(p->records[0].seen_other, 200);
  assert_true(kiln_type_record_has_tensor(&p->records[0]));
  kiln_profile_destroy(p);
}

/* A plan that knows fewer sites than the profile tells of those alone. */
static void fewer_sites_than_the_profile(void **state) {
  fixture *f = *state;
  kiln_profile *p;
  assert_ok(kiln_profile_create(f->env->mem, 2, 1, &p));
  kiln_type_record records[2];
  kiln_ivalue x = tensor(f, KILN_DTYPE_F32, 2, 3);
  for (int i = 0; i < 2; i++) {
    kiln_type_record_init(&records[i]);
    kiln_type_record_add(&records[i], x, false);
  }
  kiln_ivalue_release(x);
  p->sink.commit(&p->sink, records, 1);
  assert_int_equal(p->records[0].seen, 1);
  assert_int_equal(p->records[1].seen, 0);
  kiln_profile_destroy(p);
  assert_ok(kiln_profile_create(f->env->mem, 2, 1, &p)); /* and the other way round */
  p->sink.commit(&p->sink, records, 2);
  p->count = 1;
  assert_says(f, p, "prim::profile[profiled_type=Float(2, 3, strides=[3, 1]");
  assert_says(f, p, "prim::profile[profiled_type=Tensor, seen_none=0](%x)");
  p->count = 2;
  kiln_profile_destroy(p);
}

/* -- Onto the types -- */

static void specialised(void **state) {
  fixture *f = *state;
  kiln_graph *graph =
      parse(f, "graph(%x : Tensor):\n"
               "  %1 : Tensor = prim::profile[profiled_type=Float(2, 3), seen_none=0](%x)\n"
               "  %2 : Tensor = aten::relu(%1)\n"
               "  %3 : Tensor = prim::profile[profiled_type=Float(2, 4), seen_none=0](%x)\n"
               "  %4 : Tensor = aten::neg(%3)\n"
               "  %5 : Tensor = prim::profile[profiled_type=Tensor, seen_none=0](%4)\n"
               "   = prim::profile()\n"
               "  return (%2, %5)\n");
  assert_true(run_pass(f, graph, kiln_pass_specialize_types));
  /* Two uses that saw different things leave what they agree on; a use that never ran, nothing. */
  assert_string_equal(print(f, graph, false), "graph(%x : Float(2, *)):\n"
                                              "  %2 : Tensor = aten::relu(%x)\n"
                                              "  %4 : Tensor = aten::neg(%x)\n"
                                              "  return (%2, %4)\n");
  assert_false(run_pass(f, graph, kiln_pass_specialize_types));
  assert_true(run_pass(f, graph, kiln_pass_remove_profile_nodes)); /* what was seen goes too */
  assert_non_null(strstr(print(f, graph, false), "graph(%x : Tensor):"));
  kiln_graph_release(graph);
}

/* -- The lasting name -- */

typedef struct digest_args {
  const kiln_graph *graph;
  kiln_digest digest;
} digest_args;
static void digest_body(fixture *f, void *arg) {
  digest_args *a = arg;
  a->digest = kiln_profile_digest(a->graph, f->arena);
}
static kiln_digest digest_of(fixture *f, const char *text) {
  digest_args a = {.graph = parse(f, text)};
  digest_body(f, &a);
  kiln_graph_release((kiln_graph *)(uintptr_t)a.graph);
  return a.digest;
}

static void digest_names_the_graph(void **state) {
  fixture *f = *state;
  kiln_digest a = digest_of(f, "graph(%x : Float(2)):\n  %1 : Float(2) = aten::relu(%x)\n"
                               "  return (%1)\n");
  kiln_digest b = digest_of(f, "graph(%x : Float(3, 4)): # model.py:3:4\n"
                               "  %1 : Float(3, 4) = aten::relu(%x) # model.py:7:8\n"
                               "  return (%1)\n");
  kiln_digest c = digest_of(f, "graph(%x : Float(2)):\n  %1 : Float(2) = aten::neg(%x)\n"
                               "  return (%1)\n");
  assert_memory_equal(&a, &b, sizeof a); /* sizes and places do not count */
  assert_memory_not_equal(&a, &c, sizeof a);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(put_in_and_taken_out, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(numbered_alike_in_copies, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(merged_over_runs_and_shapes, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(bounded, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(fewer_sites_than_the_profile, fixture_setup,
                                      fixture_teardown),
      cmocka_unit_test_setup_teardown(specialised, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(digest_names_the_graph, fixture_setup, fixture_teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
