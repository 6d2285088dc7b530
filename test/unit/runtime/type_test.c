/* type_test.c: interning, the text form both ways, subtyping and joins. */
#include "runtime/type.h"

#include <pthread.h>

#include "test/unit/runtime/tables.h"
#include "test/unit/sweep.h"

static const kiln_type *parse(kiln_type_table *table, const char *text) {
  const char *at = text, *end = text + strlen(text);
  const kiln_type *type = NULL;
  kiln_status *status = kiln_type_parse(table, &at, end, true, &type);
  if (status) print_error("%s: %s\n", text, kiln_status_report(status));
  assert_null(status);
  if (at != end) print_error("%s: stopped at %s\n", text, at);
  assert_ptr_equal(at, end);
  return type;
}

static const char *text_of(kiln_type_table *table, const kiln_type *type, int verbosity) {
  kiln_text text = kiln_text_in(kiln_type_table_arena(table));
  kiln_type_print(&text, type, verbosity);
  return text.data;
}

static void round_trip(kiln_type_table *table, const char *line, int verbosity) {
  const kiln_type *type = parse(table, line);
  assert_string_equal(text_of(table, type, verbosity), line);
  assert_ptr_equal(parse(table, line), type); /* interned */
}

/* Every type of the recorded IR texts. */
static kiln_status *recorded_types(void *arg) {
  FILE *file = open_table("types.txt");
  char line[1000];
  int n = 0;
  for (; fgets(line, sizeof line, file); n++) {
    line[strcspn(line, "\n")] = 0;
    round_trip(arg, line, 3);
  }
  fclose(file);
  assert_int_equal(n, 70);
  return NULL;
}

/* Types as the printer writes them. */
static const char *const same[] = {"int",
                                   "float",
                                   "bool",
                                   "complex",
                                   "str",
                                   "Scalar",
                                   "Device",
                                   "NoneType",
                                   "Any",
                                   "Generator",
                                   "Stream",
                                   "Storage",
                                   "QScheme",
                                   "list",
                                   "tuple",
                                   "AnyClassType",
                                   "AnyEnumType",
                                   "Function",
                                   "Capsule",
                                   "t",
                                   "()",
                                   "(int)",
                                   "(int, (Tensor, str[])[])",
                                   "Tensor?[]",
                                   "Tensor[][]?",
                                   "Dict(str, int?[])",
                                   "Dict(str, Dict(int, Tensor))",
                                   "Future[int]",
                                   "Await[Tensor[]]",
                                   "RRef[int]",
                                   "Union(int[], int, str)",
                                   "Union(float, int, NoneType, str)",
                                   "NamedTuple(x : int, y : float[])",
                                   "Enum<__torch__.Color>",
                                   "InterfaceType<I>",
                                   "__torch__.a.___torch_mangle_3.B",
                                   "FloatTensor",
                                   "FloatTensor(requires_grad=1)",
                                   "Tensor(requires_grad=0, device=cuda:1)",
                                   "Float(*, 3)",
                                   "Half(2, 3, strides=[*, 1])",
                                   "BFloat16(requires_grad=0, device=cpu)",
                                   "ComplexFloat(2)",
                                   "Long(s0, 4, s1)",
                                   "Float(2*s0 + 1, (s0 + s1)//2, strides=[s0 + s1, 1])",
                                   "Tensor(*, *)",
                                   "Tensor(rank=0)",
                                   "Tensor(rank=0, requires_grad=0, device=cpu)",
                                   "Float(2, strides=[1], device=meta)",
                                   "Float(0, strides=[1])",
                                   "Tensor[Undefined]",
                                   "QUInt8(1, 2, 3, 4, 5, 6, 7, 8)"};

static kiln_status *written_types(void *arg) {
  for (size_t i = 0; i < sizeof same / sizeof *same; i++) round_trip(arg, same[i], 4);
  static const char *const other[][2] = {
      {"Union(str, int)", "Union(int, str)"},
      {"Union(int, None)", "int?"},
      {"Union(int, int)", "int"},
      {"Union(Scalar, int, float)", "Scalar"},
      {"Union(Union(int, str), float?)", "Union(float, int, NoneType, str)"},
      {"Union(int, str)?", "Union(int, NoneType, str)"},
      {"int??", "int?"},
      {"Any?", "Any"},
      {"None?", "NoneType"},
      {"Optional[List[int]]", "int[]?"},
      {"Future(int)", "Future[int]"},
      {"Float(SS(-1), 3)", "Float(*, 3)"},
      {"Float(SS(-2), SS(-3))", "Float(s0, s1)"},
      {"Float(s1 + s0, 4*s0//2)", "Float(s0 + s1, 2*s0)"},
      {"Float(2, strides=[*])", "Float(2)"},
      {"( int , Tensor )", "(int, Tensor)"},
      {"Float( 2, 3 , requires_grad=0 )", "Float(2, 3, requires_grad=0)"}};
  for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
    assert_string_equal(text_of(arg, parse(arg, other[i][0]), 4), other[i][1]);
  }
  const kiln_type *t =
      parse(arg, "Float(SS(-2), 3, strides=[3, 1], requires_grad=1, device=cuda:0)");
  static const char *const levels[] = {
      "Float", "Float(*, 3)", "Float(*, 3, strides=[3, 1])",
      "Float(*, 3, strides=[3, 1], requires_grad=1, device=cuda:0)",
      "Float(s0, 3, strides=[3, 1], requires_grad=1, device=cuda:0)"};
  for (int v = 0; v <= 4; v++) assert_string_equal(text_of(arg, t, v), levels[v]);
  return NULL;
}

static kiln_status *annotations(void *arg) {
  static const char *const pairs[][2] = {
      {"Float(2)", "Tensor"},
      {"int?[]", "List[Optional[int]]"},
      {"Dict(str, (int, Tensor))", "Dict[str, Tuple[int, Tensor]]"},
      {"()", "Tuple[()]"},
      {"Scalar", "number"},
      {"Union(int, str)", "Union[int, str]"},
      {"Future[Tensor]", "Future[Tensor]"},
      {"Enum<__torch__.Color>", "__torch__.Color"}};
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    kiln_text text = kiln_text_in(kiln_type_table_arena(arg));
    kiln_type_print_annotation(&text, parse(arg, pairs[i][0]));
    assert_string_equal(text.data, pairs[i][1]);
  }
  return NULL;
}

static kiln_status *bad_text(void *arg) {
  static const char *const texts[] = {"",
                                      " ",
                                      "(",
                                      "(int",
                                      "(int,)",
                                      "(int Tensor)",
                                      "Dict(int)",
                                      "Dict(int, int, int)",
                                      "Dict",
                                      "Union()",
                                      "Float(",
                                      "Float(2",
                                      "Float(-1)",
                                      "Float(2, strides=[1, 2])",
                                      "Float(2x3)",
                                      "Float(requires_grad=2)",
                                      "Float(device=tpu)",
                                      "Float(device=cuda:99999)",
                                      "Float(99999999999999999999)",
                                      "NamedTuple(int)",
                                      "Enum<>",
                                      "Enum<__torch__.X",
                                      "Unknown",
                                      "__torch__.Unknown",
                                      "9",
                                      "Float(2, strides=[-1])",
                                      "]",
                                      "Future[int)"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    const char *at = texts[i];
    const kiln_type *type = NULL;
    kiln_status *status = kiln_type_parse(arg, &at, at + strlen(at), false, &type);
    if (kiln_status_code(status) != KILN_INVALID_ARGUMENT) print_error("\"%s\"\n", texts[i]);
    assert_error(status, KILN_INVALID_ARGUMENT, "expected");
  }
  char deep[100001];
  memset(deep, '(', 100000);
  deep[100000] = 0;
  const char *at = deep;
  const kiln_type *type;
  assert_error(kiln_type_parse(arg, &at, deep + 100000, false, &type), KILN_INVALID_ARGUMENT,
               "deeply");
  for (int i = 0; i < 100000; i += 2) memcpy(deep + i, "[]", 2);
  memcpy(deep, "int", 3);
  memcpy(deep + 3, "?", 1);
  at = deep;
  assert_error(kiln_type_parse(arg, &at, deep + 100000, false, &type), KILN_INVALID_ARGUMENT,
               "deeply");
  /* the cursor stops behind the type */
  const char *rest = "int[2] x";
  at = rest;
  assert_ok(kiln_type_parse(arg, &at, rest + 8, false, &type));
  assert_ptr_equal(at, rest + 3);
  return NULL;
}

static kiln_status *subtypes(void *arg) {
  static const struct {
    const char *sub, *super;
    bool yes, back; /* and the other way */
  } cases[] = {
      {"int", "Scalar", true, false},
      {"bool", "Scalar", false, false},
      {"int", "float", false, false},
      {"int", "int?", true, false},
      {"NoneType", "int?", true, false},
      {"int?", "Scalar?", true, false},
      {"int?", "Union(int, NoneType, str)", true, false},
      {"Union(int, str)", "Union(float, int, str)", true, false},
      {"(int, Tensor)", "(Scalar, Any)", true, false},
      {"(int, Tensor)", "(int)", false, false},
      {"NamedTuple(x : int)", "(int)", true, false},
      {"NamedTuple(x : int)", "NamedTuple(y : int)", false, false},
      {"int[]", "int?[]", false, false},
      {"int[]", "list", true, false},
      {"()", "tuple", true, false},
      {"Float(2, 3)", "Tensor", true, false},
      {"Float(2, 3)", "Float(*, 3)", true, false},
      {"Float(2, 3)", "Float(2, 3, device=cpu)", false, true},
      {"Float(2, 3)", "Double(2, 3)", false, false},
      {"Float(2, 3)", "Float(2, 3, 1)", false, false},
      {"Float(2, 3, strides=[3, 1])", "Float(2, 3, strides=[*, 1])", true, false},
      {"Float(2)[]", "Tensor[]", true, true}, /* details inside containers are ignored */
      {"Dict(str, int)", "Dict(str, Scalar)", false, false},
      {"Future[int]", "Future[Scalar]", true, false},
      {"__torch__.A", "__torch__.B", false, false},
      {"__torch__.A", "AnyClassType", true, false},
      {"Dict(str, int)", "Any", true, false},
      {"Any", "Any?", true, true},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const kiln_type *a = parse(arg, cases[i].sub), *b = parse(arg, cases[i].super);
    if (kiln_type_is_subtype(a, b) != cases[i].yes || kiln_type_is_subtype(b, a) != cases[i].back) {
      print_error("%s and %s\n", cases[i].sub, cases[i].super);
      fail();
    }
  }
  return NULL;
}

static kiln_status *joins(void *arg) {
  static const struct {
    const char *a, *b, *join, *with_union; /* NULL: none */
  } cases[] = {
      {"int", "int", "int", "int"},
      {"int", "Scalar", "Scalar", "Scalar"},
      {"int", "NoneType", "int?", "int?"},
      {"int", "str", NULL, "Union(int, str)"},
      {"int?", "float", NULL, "Union(float, int, NoneType)"},
      {"Float(2, 3)", "Float(4, 3)", "Float(*, 3)", "Float(*, 3)"},
      {"Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)",
       "Double(2, 3, strides=[1, 2], requires_grad=0, device=cuda:0)",
       "Tensor(2, 3, requires_grad=0)", "Tensor(2, 3, requires_grad=0)"},
      {"Float(2, 3)", "Float(2)", "FloatTensor", "FloatTensor"},
      {"Float(2)?", "Float(3)", "Float(*)?", "Float(*)?"},
      {"(int, Float(2))", "(NoneType, Float(3))", "(int?, Float(*))", "(int?, Float(*))"},
      {"(int)", "(int, int)", NULL, "Union((int), (int, int))"},
      {"Float(2)[]", "Float(3)[]", "Float(3)[]", "Float(3)[]"},
      {"int[]", "float[]", NULL, "Union(float[], int[])"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const kiln_type *a = parse(arg, cases[i].a), *b = parse(arg, cases[i].b);
    const kiln_type *join = kiln_type_unify(arg, a, b, false);
    const kiln_type *with_union = kiln_type_unify(arg, a, b, true);
    if (!cases[i].join) {
      assert_null(join);
    } else {
      assert_string_equal(text_of(arg, join, 4), cases[i].join);
    }
    assert_string_equal(text_of(arg, with_union, 4), cases[i].with_union);
  }
  const kiln_type *shaped = parse(arg, "Dict(str, (Float(2), int)[])");
  assert_string_equal(text_of(arg, kiln_type_unshaped(arg, shaped), 4),
                      "Dict(str, (Tensor, int)[])");
  assert_true(kiln_type_is_complete_tensor(parse(arg, "Float(requires_grad=0, device=cpu)")));
  assert_true(kiln_type_is_complete_tensor(parse(arg, "Float(2, strides=[1], device=cpu)")));
  assert_false(kiln_type_is_complete_tensor(parse(arg, "Float(2, strides=[1])")));
  assert_false(kiln_type_is_complete_tensor(parse(arg, "Float(*, strides=[1], device=cpu)")));
  assert_true(kiln_type_has_var(parse(arg, "Dict(str, t[])")));
  assert_false(kiln_type_has_var(parse(arg, "Dict(str, int[])")));
  assert_true(kiln_type_is_mutable(parse(arg, "(int, Tensor?)")));
  assert_false(kiln_type_is_mutable(parse(arg, "(int, str?)")));
  return NULL;
}

static void run_on(kiln_status *(*body)(void *arg)) {
  kiln_mem *mem = test_mem();
  kiln_type_table *table;
  assert_ok(kiln_type_table_create(mem, NULL, &table));
  assert_ok(body(table));
  kiln_type_table_destroy(table);
  assert_int_equal(kiln_mem_bytes(mem), 0);
  kiln_mem_release(mem);
}

#define RUN(name)                        \
  static void run_##name(void **state) { \
    (void)state;                         \
    run_on(name);                        \
  }
RUN(recorded_types)
RUN(written_types)
RUN(annotations)
RUN(bad_text)
RUN(subtypes)
RUN(joins)

/* -- Chains of tables -- */

/* An interface whose method returns itself: asked again, it answers from what is under way. */
static bool implements(const kiln_type *sub, const kiln_type *interface, kiln_subtype_walk *walk) {
  if (!kiln_type_is_subtype_within(walk, sub, interface)) return false;
  return kiln_str_is(sub->name, "__torch__.Good");
}

/* Root, model, graph: each type lives where its parts do, whichever table was asked. */
static kiln_status *chain(void *arg) {
  kiln_type_table *graph = arg;
  kiln_type *good = kiln_type_nominal(graph, KILN_TYPE_CLASS, KILN_STR("__torch__.Good"));
  kiln_type *bad = kiln_type_nominal(graph, KILN_TYPE_CLASS, KILN_STR("__torch__.Bad"));
  kiln_type *face = kiln_type_nominal(graph, KILN_TYPE_INTERFACE, KILN_STR("__torch__.Face"));
  assert_false(kiln_type_is_subtype(good, face));
  face->cls->implements = implements;
  assert_true(kiln_type_is_subtype(good, face));
  assert_false(kiln_type_is_subtype(bad, face));
  assert_ptr_equal(parse(graph, "InterfaceType<Face>"), face);
  const kiln_type *ints = kiln_type_list(graph, kiln_type_basic(KILN_TYPE_INT));
  assert_ptr_not_equal(ints->table, graph); /* it went to the root */
  const kiln_type *goods = kiln_type_list(graph, good);
  assert_ptr_equal(goods->table, graph);
  assert_ptr_equal(kiln_type_tuple(graph, (const kiln_type *[]){ints, goods}, 2)->table, graph);
  assert_ptr_equal(parse(graph, "Float(2)")->table, graph);
  kiln_str names[2] = {KILN_STR("x"), KILN_STR("y")};
  const kiln_type *elems[2] = {ints, ints};
  const kiln_type *point =
      kiln_type_named_tuple(graph, KILN_STR("__torch__.Point"), names, elems, 2);
  assert_ptr_equal(kiln_type_find(graph, KILN_STR("__torch__.Point")), point);
  assert_null(kiln_type_find(graph, KILN_STR("__torch__.Nothing")));
  kiln_class_attribute attributes[2] = {{.name = names[0]}, {.name = names[1]}};
  good->cls->attributes = attributes;
  good->cls->attribute_count = 2;
  assert_int_equal(kiln_type_find_attribute(good, KILN_STR("y")), 1);
  assert_int_equal(kiln_type_find_attribute(good, KILN_STR("z")), -1);
  return NULL;
}

static void tables_make_a_chain(void **state) {
  (void)state;
  kiln_mem *mem = test_mem();
  kiln_type_table *root, *graph;
  assert_ok(kiln_type_table_create(mem, NULL, &root));
  assert_ok(kiln_type_table_create(mem, root, &graph));
  assert_ok(chain(graph));
  kiln_type_table_destroy(graph);
  kiln_type_table_destroy(root);
  kiln_mem_release(mem);
}

/* Four threads intern the same thousand types: one address each. */
typedef struct worker {
  kiln_type_table *table;
  const kiln_type *made[1000];
} worker;

static kiln_status *make_many(void *arg) {
  worker *w = arg;
  for (int i = 0; i < 1000; i++) {
    int64_t sizes[2] = {i, 3};
    kiln_tensor_detail d = KILN_TENSOR_DETAIL_ANY;
    d.dtype = KILN_DTYPE_F32, d.rank = 2, d.sizes = sizes;
    w->made[i] = kiln_type_list(w->table, kiln_type_tensor(w->table, &d));
  }
  return NULL;
}

static void *work(void *arg) {
  worker *w = arg;
  return make_many(w);
}

static void threads_share_a_table(void **state) {
  (void)state;
  kiln_mem *mem = test_mem();
  kiln_type_table *table;
  assert_ok(kiln_type_table_create(mem, NULL, &table));
  static worker workers[4];
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) {
    workers[i].table = table;
    assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
  }
  for (int i = 0; i < 4; i++) {
    void *status;
    pthread_join(threads[i], &status);
    assert_null(status);
    assert_memory_equal(workers[i].made, workers[0].made, sizeof workers[0].made);
  }
  kiln_type_table_destroy(table);
  kiln_mem_release(mem);
}

static kiln_status *some_types(void *arg) {
  static const char *const texts[] = {"Dict(str, (int, Float(2, 3))[])", "Union(int, str, float)?",
                                      "NamedTuple(x : int, y : __torch__.A)",
                                      "(int, int, int, int, int, int, int, int, int, int[][][])"};
  for (int i = 0; i < 4; i++) {
    const char *at = texts[i];
    const kiln_type *type, *again;
    KILN_TRY(kiln_type_parse(arg, &at, at + strlen(at), true, &type));
    again = kiln_type_unify(arg, type, kiln_type_basic(KILN_TYPE_NONE), true);
    text_of(arg, kiln_type_unshaped(arg, again), 4);
  }
  return NULL;
}

static kiln_status *try_types(kiln_type_table *table) { KILN_PROTECT(some_types(table)); }

static kiln_status *table_life(kiln_mem *mem, void *arg) {
  (void)arg;
  kiln_type_table *root = NULL, *table = NULL;
  kiln_status *status = kiln_type_table_create(mem, NULL, &root);
  if (!status) status = kiln_type_table_create(mem, root, &table);
  if (!status) status = try_types(table);
  kiln_type_table_destroy(table);
  kiln_type_table_destroy(root);
  return status;
}

static void survives_lack_of_memory(void **state) {
  (void)state;
  sweep(table_life, NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(run_recorded_types),
      cmocka_unit_test(run_written_types),
      cmocka_unit_test(run_annotations),
      cmocka_unit_test(run_bad_text),
      cmocka_unit_test(run_subtypes),
      cmocka_unit_test(run_joins),
      cmocka_unit_test(tables_make_a_chain),
      cmocka_unit_test(threads_share_a_table),
      cmocka_unit_test(survives_lack_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
