/* gather_test.c: groups that read at places which data tells: an index that is out of bounds raises
 * what the plain interpreter raises, in whatever form a call runs, and spoils nothing. */
#include "test/unit/jit/jit_support.h"

/* One kernel: rows of a table, what is added to them, layer norm. */
#define GRAPH_EMBED                                                \
  "graph(%w : Tensor, %ids : Tensor, %x : Tensor, %g : Tensor):\n" \
  "  %1 : int = prim::Constant[value=1]()\n"                       \
  "  %m : int = prim::Constant[value=-1]()\n"                      \
  "  %no : bool = prim::Constant[value=0]()\n"                     \
  "  %8 : int = prim::Constant[value=8]()\n"                       \
  "  %n : int[] = prim::ListConstruct(%8)\n"                       \
  "  %e : float = prim::Constant[value=0.001]()\n"                 \
  "  %a : Tensor = aten::embedding(%w, %ids, %m, %no, %no)\n"      \
  "  %b : Tensor = aten::relu(%x)\n"                               \
  "  %c : Tensor = aten::add(%a, %b, %1)\n"                        \
  "  %d : Tensor = aten::layer_norm(%c, %n, %g, %g, %e, %no)\n"    \
  "  return (%d)\n"
/* Several results, of indices along other dimensions, which may be negative in one. */
#define GRAPH_PLACES                                               \
  "graph(%w : Tensor, %ids : Tensor, %x : Tensor, %g : Tensor):\n" \
  "  %0 : int = prim::Constant[value=0]()\n"                       \
  "  %1 : int = prim::Constant[value=1]()\n"                       \
  "  %no : bool = prim::Constant[value=0]()\n"                     \
  "  %i : Tensor = aten::select(%ids, %0, %0)\n"                   \
  "  %a : Tensor = aten::%s\n"                                     \
  "  %b : Tensor = aten::exp(%a)\n"                                \
  "  %c : Tensor = aten::neg(%a)\n"                                \
  "  %d : (Tensor, Tensor) = prim::TupleConstruct(%b, %c)\n"       \
  "  return (%d)\n"

enum { TABLE = 8 };

/* (2, length) of the table's rows, but for one. */
static kiln_ivalue make_ids(model *m, int64_t length, kiln_dtype dtype, int64_t other) {
  kiln_tensor *t;
  const int64_t sizes[] = {2, length};
  assert_ok(kiln_tensor_create(m->env->mem, NULL, dtype, 2, sizes, &t));
  for (int64_t i = 0; i < 2 * length; i++) {
    const int64_t id = i == 1 ? other : i * 5 % TABLE;
    if (dtype == KILN_DTYPE_I32)
      ((int32_t *)t->storage->data)[i] = (int32_t)id;
    else
      ((int64_t *)t->storage->data)[i] = id;
  }
  return kiln_of_tensor(t);
}

typedef struct arguments {
  kiln_ivalue at[4];
} arguments;
static arguments make_arguments(model *m, int64_t length, kiln_dtype dtype, int64_t other) {
  const int64_t sizes[] = {2, length, 8}, width[] = {8};
  return (arguments){{make_matrix(m, TABLE, 8, 0.02), make_ids(m, length, dtype, other),
                      make_tensor(m, 3, sizes, 0.01), make_tensor(m, 1, width, 0.03)}};
}
static void release_arguments(arguments *a) {
  for (int i = 0; i < 4; i++) kiln_ivalue_release(a->at[i]);
}

static void run_good(model *m, int64_t length, kiln_dtype dtype, int times) {
  for (int i = 0; i < times; i++) {
    arguments a = make_arguments(m, length, dtype, i % TABLE);
    check_call(m, a.at, 4);
    release_arguments(&a);
  }
}

static const char *complaint(model *m, arguments *a, bool jit) {
  kiln_ivalue result = kiln_none();
  kiln_call_begin(m->call, NULL);
  m->call->jit = jit;
  kiln_status *status = kiln_jit_call(m->jit, m->call, m->function, a->at, 4, &result);
  m->call->jit = true;
  if (!status) fail_msg("no complaint, jit %d", jit);
  char *text = strdup(kiln_status_report(status));
  kiln_status_destroy(status);
  return text;
}

/* The same complaint with and without JIT; what was given is as it was. */
static void run_bad(model *m, int64_t length, kiln_dtype dtype, int64_t other) {
  arguments a = make_arguments(m, length, dtype, other);
  arguments same = make_arguments(m, length, dtype, other);
  const char *with = complaint(m, &a, true), *without = complaint(m, &a, false);
  assert_string_equal(with, without);
  assert_close(a.at[2], same.at[2]);
  free((char *)(uintptr_t)with);
  free((char *)(uintptr_t)without);
  release_arguments(&a);
  release_arguments(&same);
}

static const char *const backends[] = {"codegen=eval", "codegen=llvm"};
static const char *const strategies[] = {"fusion_strategy=STATIC,2", "fusion_strategy=DYNAMIC,3",
                                         "fusion_strategy=STATIC,1;DYNAMIC,2"};

/* Bad ones are seen where the call profiles, runs compiled, has new sizes. */
static void run_forms(const char *graph, kiln_dtype dtype, const int64_t *wrong, int count) {
  for (int i = 0; i < 6; i++) {
    model m;
    model_open(&m, graph, (const char *[]){backends[i % 2], strategies[i / 2], NULL});
    for (int n = 0; n < count; n++) run_bad(&m, 3, dtype, wrong[n]);
    run_good(&m, 3, dtype, 4);
    const uint64_t ran = counters(&m).compiled_runs;
    assert_true(ran > 0);
    assert_int_equal(counters(&m).groups, 1);
    for (int n = 0; n < count; n++) run_bad(&m, 3, dtype, wrong[n]);
    assert_int_equal(counters(&m).compiled_runs, ran); /* what faulted does not count */
    run_good(&m, 3, dtype, 1);
    assert_int_equal(counters(&m).compiled_runs, ran + 1);
    run_good(&m, 5, dtype, 3);
    for (int n = 0; n < count; n++) run_bad(&m, 5, dtype, wrong[n]);
    for (int n = 0; n < count; n++) run_bad(&m, 7, dtype, wrong[n]);
    run_good(&m, 7, dtype, 2);
    assert_int_equal(counters(&m).compile_failures, 0);
    model_close(&m);
  }
}

static void test_embedding(void **state) {
  (void)state;
  static const int64_t wrong[] = {TABLE, -1, INT64_C(1) << 31};
  run_forms(GRAPH_EMBED, KILN_DTYPE_I64, wrong, 3);
  run_forms(GRAPH_EMBED, KILN_DTYPE_I32, wrong, 2);
}

static void run_places(const char *node, const int64_t *wrong, int count) {
  char graph[2048];
  const char *at = strstr(GRAPH_PLACES, "%s");
  snprintf(graph, sizeof graph, "%.*s%s%s", (int)(at - GRAPH_PLACES), GRAPH_PLACES, node, at + 2);
  run_forms(graph, KILN_DTYPE_I64, wrong, count);
}

static void test_places(void **state) {
  (void)state;
  static const int64_t wrong[] = {TABLE, -1, INT64_MIN, INT64_MAX};
  static const int64_t beyond[] = {TABLE, -TABLE - 1, INT64_MIN, INT64_MAX};
  run_places("index_select(%w, %0, %i)", wrong, 4);
  run_places("index_select(%w, %1, %i)", wrong, 4);
  run_places("gather(%w, %0, %ids, %no)", wrong, 4);
  run_places("gather(%w, %1, %ids, %no)", wrong, 4);
  run_places("take(%g, %ids)", beyond, 4);
}

/* x[:, ids[0]]: negative indices count from the end. */
static void test_index(void **state) {
  (void)state;
  static const int64_t beyond[] = {TABLE, -TABLE - 1, INT64_MIN, INT64_MAX};
  static const char graph[] = "graph(%w : Tensor, %ids : Tensor, %x : Tensor, %g : Tensor):\n"
                              "  %0 : int = prim::Constant[value=0]()\n"
                              "  %none : NoneType = prim::Constant()\n"
                              "  %i : Tensor = aten::select(%ids, %0, %0)\n"
                              "  %at : Tensor?[] = prim::ListConstruct(%none, %i)\n"
                              "  %a : Tensor = aten::index(%w, %at)\n"
                              "  %b : Tensor = aten::exp(%a)\n"
                              "  %c : Tensor = aten::neg(%b)\n"
                              "  return (%c)\n";
  run_forms(graph, KILN_DTYPE_I64, beyond, 4);
  run_forms(graph, KILN_DTYPE_I32, beyond, 2);
}

/* Two indices of a table, which are broadcast to each other; and a number of a class. */
static void test_several(void **state) {
  (void)state;
  static const int64_t beyond[] = {TABLE, -TABLE - 1, INT64_MIN, INT64_MAX};
  static const int64_t wrong[] = {TABLE, -1, INT64_MIN, INT64_MAX};
  static const char places[] = "graph(%w : Tensor, %ids : Tensor, %x : Tensor, %g : Tensor):\n"
                               "  %0 : int = prim::Constant[value=0]()\n"
                               "  %1 : int = prim::Constant[value=1]()\n"
                               "  %i : Tensor = aten::select(%ids, %0, %1)\n"
                               "  %at : Tensor?[] = prim::ListConstruct(%ids, %i)\n"
                               "  %a : Tensor = aten::index(%w, %at)\n"
                               "  %b : Tensor = aten::exp(%a)\n"
                               "  %c : Tensor = aten::neg(%b)\n"
                               "  return (%c)\n";
  static const char classes[] = "graph(%w : Tensor, %ids : Tensor, %x : Tensor, %g : Tensor):\n"
                                "  %0 : int = prim::Constant[value=0]()\n"
                                "  %8 : int = prim::Constant[value=8]()\n"
                                "  %a : Tensor = aten::one_hot(%ids, %8)\n"
                                "  %b : Tensor = aten::mul(%a, %g)\n"
                                "  %c : Tensor = aten::exp(%b)\n"
                                "  return (%c)\n";
  run_forms(places, KILN_DTYPE_I64, beyond, 4);
  run_forms(places, KILN_DTYPE_I32, beyond, 2);
  run_forms(classes, KILN_DTYPE_I64, wrong, 4);
}

/* A slice of what is gathered: the elements that nobody needs may have bad indices all the same, so
 * that there is no kernel of both. */
static void test_all_are_seen(void **state) {
  (void)state;
  model m;
  model_open(&m,
             "graph(%w : Tensor, %ids : Tensor, %x : Tensor, %g : Tensor):\n"
             "  %0 : int = prim::Constant[value=0]()\n"
             "  %1 : int = prim::Constant[value=1]()\n"
             "  %m : int = prim::Constant[value=-1]()\n"
             "  %no : bool = prim::Constant[value=0]()\n"
             "  %a : Tensor = aten::embedding(%w, %ids, %m, %no, %no)\n"
             "  %b : Tensor = aten::select(%a, %1, %0)\n"
             "  %c : Tensor = aten::exp(%b)\n"
             "  %d : Tensor = aten::neg(%c)\n"
             "  return (%d)\n",
             (const char *[]){"codegen=eval", NULL});
  run_good(&m, 3, KILN_DTYPE_I64, 4);
  assert_int_equal(counters(&m).groups, 1);
  run_bad(&m, 3, KILN_DTYPE_I64, TABLE);
  kiln_jit_refusal r;
  bool told = false;
  for (int i = 0; kiln_jit_refusal_at(m.jit, i, &r); i++)
    told |= r.reason == KILN_REASON_index_not_all_read;
  assert_true(told);
  model_close(&m);
}

/* Only what a guard knows anyway is asked of what is gathered: the complaint stays. */
static void test_sizes_alone(void **state) {
  (void)state;
  static const char *const uses[] = {
      "  %n : int = aten::size(%a, %1)\n"
      "  %s : int[] = prim::ListConstruct(%0, %n, %8)\n"
      "  %c : Tensor = aten::view(%b, %s)\n",
      "  %c : Tensor = aten::expand_as(%b, %a)\n",
      "  %z : Tensor = aten::zeros_like(%a, %none, %none, %none, %none, %none)\n"
      "  %c : Tensor = aten::add(%b, %z, %1)\n",
      "  %h : Tensor = aten::exp(%a)\n"
      "  %z : Tensor = aten::ones_like(%h, %none, %none, %none, %none, %none)\n"
      "  %y : Tensor = aten::cumsum(%z, %1, %none)\n"
      "  %c : Tensor = aten::mul(%b, %y)\n",
      "  %h : Tensor = aten::mul(%a, %b)\n"
      "  %n : int = aten::size(%h, %1)\n"
      "  %c : Tensor = aten::add(%b, %n, %1)\n",
  };
  for (size_t u = 0; u < 6 * (sizeof uses / sizeof *uses); u++) {
    model m;
    char graph[2048];
    snprintf(graph, sizeof graph,
             "graph(%%w : Tensor, %%ids : Tensor, %%x : Tensor, %%g : Tensor):\n"
             "  %%none : NoneType = prim::Constant()\n"
             "  %%0 : int = prim::Constant[value=2]()\n"
             "  %%1 : int = prim::Constant[value=1]()\n"
             "  %%8 : int = prim::Constant[value=8]()\n"
             "  %%m : int = prim::Constant[value=-1]()\n"
             "  %%no : bool = prim::Constant[value=0]()\n"
             "  %%a : Tensor = aten::embedding(%%w, %%ids, %%m, %%no, %%no)\n"
             "  %%b : Tensor = aten::relu(%%x)\n"
             "%s"
             "  %%d : Tensor = aten::exp(%%c)\n"
             "  %%e : Tensor = aten::neg(%%d)\n"
             "  return (%%e)\n",
             uses[u / 6]);
    fprintf(stderr, "u %zu\n", u);
    model_open(&m, graph, (const char *[]){backends[u % 2], strategies[u / 2 % 3], NULL});
    for (int64_t length = 3; length < 9; length += 2) {
      run_bad(&m, length, KILN_DTYPE_I64, TABLE);
      run_good(&m, length, KILN_DTYPE_I64, 3);
      run_bad(&m, length, KILN_DTYPE_I64, TABLE);
    }
    assert_true(counters(&m).compiled_runs > 0);
    model_close(&m);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_embedding),    cmocka_unit_test(test_places),
      cmocka_unit_test(test_index),        cmocka_unit_test(test_several),
      cmocka_unit_test(test_all_are_seen), cmocka_unit_test(test_sizes_alone)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
