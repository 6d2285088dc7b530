/* specialise_test.c: the life of a recurrent model as its counters and graphs tell it: profiled,
 * compiled, a new batch size, the bailout depth used up; and that x + x + x is one kernel. */
#include "kiln/debug.h"
#include "test/unit/api/fixture.h"

#define LSTM TEST_DATA "/rnn/lstm_cell_loop/"

static subject open_subject(const char *folder, const char *option, const char *value) {
  subject s = {.context = context_with(option, value)};
  char path[512];
  snprintf(path, sizeof path, "%smodel.pt", folder);
  load_subject(&s, path);
  return s;
}

static kiln_value *read_inputs(const subject *s, const char *folder, int set) {
  return read_recorded(s->context, "%sinputs_%d.pt", folder, set);
}
static kiln_value *read_expected(const subject *s, const char *folder, int set) {
  return read_recorded(s->context, "%sexpected_%d.pt", folder, set);
}

/* Calls forward with a recorded input set and compares the result, within the tolerance of LSTM.
 * Returns the first size of the first argument. */
static int64_t call(const subject *s, const char *folder, int set) {
  kiln_value *want = read_expected(s, folder, set), *args[4], *result;
  const int count = take_items(read_inputs(s, folder, set), args, 4);
  const int64_t steps = kiln_value_sizes(args[0])[0];
  assert_ok(kiln_instance_call(s->instance, "forward", args, count, NULL, &result));
  assert_close(result, want, 1e-4f, 1.2e-5f);
  destroy_values(args, count);
  kiln_value_destroy(result);
  kiln_value_destroy(want);
  return steps;
}

static int count_of(const char *text, const char *word) {
  int n = 0;
  for (const char *at = text; (at = strstr(at, word)); at += strlen(word)) n++;
  return n;
}

static void stage_of(const subject *s, const char *stage, const char *site, char **out_text) {
  *out_text = NULL;
  assert_ok(kiln_debug_graph(s->model, "forward", stage, site, 0, out_text));
}

static void test_lstm_is_one_guarded_group(void **state) {
  (void)state;
  subject s = open_subject(LSTM, NULL, NULL);
  uint64_t steps = (uint64_t)call(&s, LSTM, 0);
  kiln_counters c = counters_of(s.model);
  assert_int_equal(c.profiled_runs, 1);
  assert_int_equal(c.groups, 0);
  assert_int_equal(c.compiles, 0);
  call(&s, LSTM, 0);
  c = counters_of(s.model);
  assert_int_equal(c.profiled_runs, 1);
  assert_int_equal(c.groups, 1);
  assert_int_equal(c.compiles, 1);
  assert_int_equal(c.compile_failures, 0);
  assert_int_equal(c.guard_hits, steps);
  assert_int_equal(c.guard_misses, 0);
  assert_int_equal(c.compiled_runs, steps);

  char *graph;
  stage_of(&s, "optimized", NULL, &graph);
  const char *group = strstr(graph, "with prim::TensorExprGroup_0");
  assert_non_null(group);
  assert_int_equal(count_of(graph, "= prim::TensorExprGroup_0("), 1);
  assert_int_equal(count_of(graph, "prim::TypeCheck["), 1);
  assert_int_equal(count_of(graph, "fallback_function"), 1);
  /* The whole pointwise part of the cell, and the chunk, are inside; nothing of it is left. */
  assert_int_equal(count_of(group, "prim::ConstantChunk"), 1);
  assert_int_equal(count_of(group, "aten::sigmoid"), 3);
  assert_int_equal(count_of(group, "aten::tanh"), 2);
  assert_int_equal(count_of(group, "aten::mul"), 3);
  assert_int_equal(count_of(group, "aten::add("), 4);
  assert_int_equal(count_of(graph, "aten::sigmoid"), 3);
  assert_int_equal(count_of(group, "aten::mm"), 0);
  kiln_text_free(graph);
  close_subject(&s);
}

static void test_new_batch_bails_out_and_specialises(void **state) {
  (void)state;
  subject s = open_subject(LSTM, NULL, NULL);
  call(&s, LSTM, 0);
  call(&s, LSTM, 0);
  kiln_counters before = counters_of(s.model);
  uint64_t steps = (uint64_t)call(&s, LSTM, 1);
  kiln_counters after = counters_of(s.model);
  assert_int_equal(after.guard_misses - before.guard_misses, steps);
  assert_int_equal(after.profiled_runs - before.profiled_runs, 1); /* one level down */
  assert_int_equal(after.compiles - before.compiles, 1);           /* the second step compiles */
  assert_int_equal(after.max_depth, 1);
  assert_int_equal(after.compiled_runs - before.compiled_runs, steps - 1);
  kiln_group_counters g;
  assert_ok(kiln_model_group(s.model, 1, &g));
  assert_int_equal(g.depth, 1);
  uint64_t hits = g.guard_hits;
  before = after;
  call(&s, LSTM, 1);
  after = counters_of(s.model);
  assert_ok(kiln_model_group(s.model, 1, &g));
  assert_int_equal(g.guard_hits - hits, steps); /* then hits */
  assert_int_equal(after.compiles, before.compiles);
  assert_int_equal(after.profiled_runs, before.profiled_runs);
  assert_int_equal(after.compiled_runs - before.compiled_runs, steps);
  before = after;
  uint64_t first = (uint64_t)call(&s, LSTM, 0); /* and the first shape is as fast as ever */
  after = counters_of(s.model);
  assert_int_equal(after.guard_hits - before.guard_hits, first);
  assert_int_equal(after.compiles, before.compiles);
  close_subject(&s);
}

static void test_depth_used_up_is_interpreted(void **state) {
  (void)state;
  subject s = open_subject(LSTM, "bailout_depth", "1");
  call(&s, LSTM, 0);
  call(&s, LSTM, 0);
  kiln_counters before = counters_of(s.model);
  assert_int_equal(before.compiles, 1);
  uint64_t steps = (uint64_t)call(&s, LSTM, 1);
  call(&s, LSTM, 1);
  kiln_counters after = counters_of(s.model);
  assert_int_equal(after.compiles, 1);
  assert_int_equal(after.profiled_runs, before.profiled_runs);
  assert_int_equal(after.fallback_calls - before.fallback_calls, 2 * steps);
  assert_int_equal(after.simple_plans, 1);
  close_subject(&s);

  s = open_subject(LSTM, "bailout_depth", "0");
  for (int i = 0; i < 3; i++) call(&s, LSTM, 0);
  after = counters_of(s.model);
  assert_int_equal(after.compiles, 0);
  assert_int_equal(after.profiled_runs, 0);
  close_subject(&s);
}

static void test_triple_add_is_one_kernel(void **state) {
  (void)state;
  const char *folder = TEST_DATA "/own/triple_add/";
  subject s = open_subject(folder, "isa", "v2");
  call(&s, folder, 0);
  call(&s, folder, 0);
  kiln_counters c = counters_of(s.model);
  assert_int_equal(c.groups, 1);
  assert_int_equal(c.compiles, 1);
  char *loop, *assembly;
  stage_of(&s, "loop", "*", &loop);
  assert_int_equal(count_of(loop, "nest "), 1);
  assert_int_equal(count_of(loop, "= load "), 1);
  assert_int_equal(count_of(loop, "= add f32 "), 2);
  assert_int_equal(count_of(loop, "store "), 1);
  kiln_text_free(loop);
  stage_of(&s, "asm", "*", &assembly);
  assert_true(count_of(assembly, "addps") >= 2); /* adds of whole vectors */
  assert_int_equal(count_of(assembly, "mulps"), 0);
  kiln_text_free(assembly);
  close_subject(&s);
}

static void test_equal_groups_share_a_kernel(void **state) {
  (void)state;
  const char *folder = TEST_DATA "/own/same_groups/";
  subject s = open_subject(folder, NULL, NULL);
  for (int i = 0; i < 3; i++) call(&s, folder, 0);
  kiln_counters c = counters_of(s.model);
  assert_int_equal(c.groups, 2);
  assert_int_equal(c.compiles, 1);
  assert_int_equal(c.compiled_runs, 4);
  assert_int_equal(c.groups_never_run, 0);
  close_subject(&s);
}

/* The largest element of forward's result on an input set, and of what was recorded for it. */
static void first_of(const subject *s, const char *folder, int set, float *out_got,
                     float *out_want) {
  kiln_value *want = read_expected(s, folder, set), *x = take_first(read_inputs(s, folder, set));
  kiln_value *result;
  float all[12];
  assert_ok(kiln_instance_call(s->instance, "forward", &x, 1, NULL, &result));
  assert_ok(kiln_value_copy_data(result, all, sizeof all));
  int most = 0;
  for (int i = 0; i < 12; i++) most = fabsf(all[i]) > fabsf(all[most]) ? i : most;
  *out_got = all[most];
  assert_ok(kiln_value_copy_data(want, all, sizeof all));
  *out_want = all[most];
  kiln_value_destroy(x);
  kiln_value_destroy(result);
  kiln_value_destroy(want);
}

/* Flags of modules are constants of compiled code; an instance whose flags are others is served by
 * the interpreter, with its own flags, and the others by the kernel. */
static void test_flags_are_constants(void **state) {
  (void)state;
  const char *folder = TEST_DATA "/own/flags/";
  subject s = open_subject(folder, NULL, NULL), other = s;
  float got, want;
  assert_ok(kiln_instance_create(s.model, &other.instance));
  for (int i = 0; i < 3; i++) call(&s, folder, 0);
  kiln_counters c = counters_of(s.model);
  assert_int_equal(c.groups, 1); /* two batch norms and what stands between them */
  uint64_t before = c.compiled_runs;
  kiln_value *yes, *no;
  assert_ok(kiln_value_bool(s.context, 1, &yes));
  assert_ok(kiln_value_bool(s.context, 0, &no));
  assert_ok(kiln_instance_set(other.instance, "second.negate", yes));
  first_of(&other, folder, 0, &got, &want);
  assert_true(fabsf(want) > 0.1f && fabsf(got + want) < 1e-5f);
  assert_int_equal(counters_of(s.model).compiled_runs, before);
  call(&s, folder, 0);
  assert_int_equal(counters_of(s.model).compiled_runs, before + 1);
  assert_ok(kiln_instance_set(other.instance, "second.negate", no));
  call(&other, folder, 0);
  assert_int_equal(counters_of(s.model).compiled_runs, before + 2);
  kiln_value_destroy(yes);
  kiln_value_destroy(no);
  kiln_instance_release(other.instance);
  close_subject(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_lstm_is_one_guarded_group),
      cmocka_unit_test(test_new_batch_bails_out_and_specialises),
      cmocka_unit_test(test_depth_used_up_is_interpreted),
      cmocka_unit_test(test_triple_add_is_one_kernel),
      cmocka_unit_test(test_equal_groups_share_a_kernel),
      cmocka_unit_test(test_flags_are_constants),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
