/* parse_test.c: print → parse → print is a fixed point, on recorded graphs of PyTorch
 * (test/data/ir, and the whole corpus where it is); values, attributes and errors of the textual
 * form. */
#include <dirent.h>

#include "test/unit/ir/ir_support.h"
#include "test/unit/sweep.h"

/* -- Files -- */

static char *read_file(const char *path, size_t *out_size) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  fseek(file, 0, SEEK_END);
  long size = ftell(file);
  rewind(file);
  char *text = malloc((size_t)size + 1);
  assert_int_equal(fread(text, 1, (size_t)size, file), size);
  text[size] = 0;
  fclose(file);
  *out_size = (size_t)size;
  return text;
}

/* The text must come back as it is, and so must that of a copy; and the graph is well-formed. */
static void check_fixed_point(fixture *f, const char *text, const char *name) {
  kiln_graph *graph = parse(f, text), *copy;
  const char *printed = print(f, graph, false);
  if (strcmp(text, printed) != 0) {
    print_error("%s:\n--- expected\n%s\n--- got\n%s\n", name, text, printed);
  }
  assert_string_equal(text, printed);
  kiln_status *status = kiln_graph_verify(graph);
  if (status) print_error("%s:\n", name);
  assert_ok(status);
  copy = kiln_graph_copy(graph, f->env->mem, f->types);
  kiln_graph_release(graph);
  assert_ok(kiln_graph_verify(copy));
  assert_string_equal(text, print(f, copy, false));
  kiln_graph_release(copy);
  kiln_arena_reset(f->arena);
}

/* A file may hold several graphs, with comments and empty lines between. */
static int check_file(fixture *f, const char *path) {
  size_t size;
  int graphs = 0;
  char *text = read_file(path, &size);
  for (char *p = strncmp(text, "graph(", 6) == 0 ? text : strstr(text, "\ngraph("); p;) {
    if (*p == '\n') p++;
    char *next = strstr(p, "\n\n");
    char *following = next ? strstr(next, "\ngraph(") : NULL;
    if (next) next[1] = 0;
    check_fixed_point(f, p, path);
    graphs++;
    p = following;
  }
  free(text);
  return graphs;
}

static int check_folder(fixture *f, const char *folder, int depth) {
  DIR *dir = opendir(folder);
  int graphs = 0;
  if (!dir) return 0;
  for (struct dirent *entry; (entry = readdir(dir));) {
    char path[2048];
    if (entry->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    size_t n = strlen(path);
    if (n > 4 && strcmp(path + n - 4, ".txt") == 0) {
      graphs += check_file(f, path);
    } else if (depth > 0) {
      graphs += check_folder(f, path, depth - 1);
    }
  }
  closedir(dir);
  return graphs;
}

static void test_data(void **state) {
  assert_int_equal(check_folder(*state, KILN_SOURCE_DIR "/test/data/ir", 0), 8);
}

/* The corpus lies beside the tree, or where the variable says. */
static void test_corpus(void **state) {
  const char *places[] = {getenv("KILN_TEST_CORPUS"), KILN_SOURCE_DIR "/../shared/corpus",
                          KILN_SOURCE_DIR "/../../shared/corpus"};
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    char folder[1024];
    snprintf(folder, sizeof folder, "%s/ir", places[i] ? places[i] : "");
    DIR *dir = opendir(folder);
    if (!dir) continue;
    closedir(dir);
    assert_true(check_folder(*state, folder, 1) > 150);
    return;
  }
  skip();
}

/* -- Forms -- */

static void test_values(void **state) {
  static const char text[] =
      "graph(%self : __torch__.M,\n"
      "      %x.1 : Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)):\n"
      "  %1 : int = prim::Constant[value=-9223372036854775808]()\n"
      "  %2 : float = prim::Constant[value=0.10000000000000001]()\n"
      "  %3 : float = prim::Constant[value=-0.]()\n"
      "  %4 : float = prim::Constant[value=inf]()\n"
      "  %5 : float = prim::Constant[value=nan]()\n"
      "  %6 : bool = prim::Constant[value=1]()\n"
      "  %7 : str = prim::Constant[value=\"a\\n\\\"b\\\\\"]()\n"
      "  %8 : Device = prim::Constant[value=\"cuda:1\"]()\n"
      "  %9 : NoneType = prim::Constant()\n"
      "  %10 : int[] = prim::Constant[value=[1, -2]]()\n"
      "  %11 : int[] = prim::Constant[value=annotate(List[int], [])]()\n"
      "  %12 : bool[] = prim::Constant[value=[True, False]]()\n"
      "  %13 : (int, float, str) = prim::Constant[value=(1, 2.5, \"x\")]()\n"
      "  %14 : Dict(str, int) = prim::Constant[value={\"a\": 1, \"b\": 2}]()\n"
      "  %15 : complex = prim::Constant[value=1.-2.5j]()\n"
      "  %16 : Tensor? = prim::Constant()\n"
      "  %17 : float = prim::Constant[value=1e+20]()\n"
      "  %18 : Function = prim::Constant[name=\"f\"]()\n"
      "  %19 : int[][] = prim::Constant[value=[[1], [2, 3]]]()\n"
      "  %y : Tensor = prim::Foo[a=1, b=[\"p\", \"q\"], t=Tensor, ts=[int, (int, Tensor)], "
      "f=2.](%x.1), scope: __module.c/__module.d\n"
      "   = prim::Print(%y)\n"
      "  return (%y, %1)\n";
  check_fixed_point(*state, text, "values");
}

static void test_tensors(void **state) {
  static const char text[] =
      "graph():\n"
      "  %0 : Float(requires_grad=0, device=cpu) = prim::Constant[value={3.14}]()\n"
      "  %1 : Long(1, 1, strides=[1, 1], requires_grad=0, device=cpu) = "
      "prim::Constant[value={7}]()\n"
      "  %2 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = "
      "prim::Constant[value={[[1., 2.5], [-3., 1e-05]]}]()\n"
      "  %3 : Bool(2, strides=[1], requires_grad=0, device=cpu) = "
      "prim::Constant[value={[1, 0]}]()\n"
      "  %4 : Double(20, strides=[1], requires_grad=0, device=cpu) = "
      "prim::Constant[value=<Tensor>]()\n"
      "  %5 : Float(2, 2, strides=[1, 2], requires_grad=0, device=cpu) = "
      "prim::Constant[value={[[1., 2.], [3., 4.]]}]()\n"
      "  %6 : Double(requires_grad=0, device=cpu) = "
      "prim::Constant[value={0.10000000000000001}]()\n"
      "  %7 : Float(0, strides=[1], requires_grad=0, device=cpu) = "
      "prim::Constant[value={[]}]()\n"
      "  return (%0)\n";
  check_fixed_point(*state, text, "tensors");
  kiln_graph *graph = parse(*state, text);
  const kiln_ivalue *v = kiln_ir_value_constant(value(graph, "5"));
  assert_int_equal(v->tag, KILN_TAG_TENSOR);
  const float *data = kiln_tensor_data(v->u.tensor); /* strides [1, 2]: columns */
  const float want[] = {1, 3, 2, 4};
  for (int i = 0; i < 4; i++) assert_true(data[i] == want[i]);
  kiln_graph_release(graph);
}

/* What PyTorch prints for small tensors is read too: " 1  2 [ CPULongType{2} ]". */
static void test_dump(void **state) {
  kiln_graph *graph =
      parse(*state, "graph():\n"
                    "  %0 : Long(2, strides=[1], requires_grad=0, device=cpu) = "
                    "prim::Constant[value= 1  2 [ CPULongType{2} ]]()\n"
                    "  %1 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = "
                    "prim::Constant[value=0.01 *  1.5  2  3 -4 [ CPUFloatType{2,2} ]]()\n"
                    "  return (%0)\n");
  const int64_t *longs = kiln_tensor_data(kiln_ir_value_constant(value(graph, "0"))->u.tensor);
  assert_int_equal(longs[0], 1);
  assert_int_equal(longs[1], 2);
  const float *floats = kiln_tensor_data(kiln_ir_value_constant(value(graph, "1"))->u.tensor);
  const float want[] = {0.015f, 0.02f, 0.03f, -0.04f};
  for (int i = 0; i < 4; i++) assert_true(floats[i] == want[i]);
  kiln_graph_release(graph);
}

/* The forms in which PyTorch prints attributes (print(graph) after n.t_("t", …) and so on): dumps
 * of more dimensions, nested ones, and where no type tells the dtype. */
static void test_attributes(void **state) {
  static const char text[] =
      "graph(%x : Tensor):\n"
      "  %1 : Tensor = prim::Foo[i=1, f=0.5, is=[1, 2], fs=[0.5, 1.], s=\"a\\tb\", ss=[\"x\", "
      "\"y\"], c=0.+2.j, cs=[1.+1.j], t={3.14}, ts=[{1}, {2}], ty=Tensor?, tys=[int, Tensor[]], "
      "fs0=annotate(List[float], []), inf=inf, minf=-inf, nan=nan, big=1e+22, two=2., "
      "d= 1.5 2. [ CPUDoubleType{2} ], h= 3 4 [ CPUIntType{2,1} ], o= 7 [ CPULongType{1} ], "
      "z=[ CPUFloatType{0,5} ], l=[ 0 1 [ CPUBoolType{2} ], {[1, 2]}]](%x)\n"
      "  return (%1)\n";
  check_fixed_point(*state, text, "attributes");
  kiln_graph *graph =
      parse(*state, "graph(%x : Tensor):\n"
                    "  %1 : Tensor = prim::Foo[a= 1  2 [ CPUFloatType{2} ], b=(1,.,.) = \n"
                    "   1  2\n  3  4\n\n(2,.,.) = \n   5  6\n  7  8\n[ CPULongType{2,2,2} ], "
                    "c= 1  2\n 3  4\n[ CPUIntType{2,2} ], d=[ CPUDoubleType{0} ], "
                    "e=(1, torch.device(\"cuda:1\"),  0  5 [ CPUByteType{2} ])](%x)\n"
                    "  return (%1)\n");
  const kiln_node *node = value(graph, "1")->node;
  const kiln_tensor *a = kiln_node_attr(node, "a")->u.value.u.tensor;
  const kiln_tensor *b = kiln_node_attr(node, "b")->u.value.u.tensor;
  const kiln_tensor *c = kiln_node_attr(node, "c")->u.value.u.tensor;
  const kiln_tensor *d = kiln_node_attr(node, "d")->u.value.u.tensor;
  const kiln_tuple *e = kiln_node_attr(node, "e")->u.value.u.tuple;
  assert_int_equal(kiln_tensor_dtype(a), KILN_DTYPE_F32);
  assert_true(((const float *)kiln_tensor_data(a))[1] == 2);
  assert_int_equal(kiln_tensor_dtype(b), KILN_DTYPE_I64);
  assert_int_equal(kiln_tensor_rank(b), 3);
  assert_int_equal(((const int64_t *)kiln_tensor_data(b))[6], 7);
  assert_int_equal(kiln_tensor_dtype(c), KILN_DTYPE_I32);
  assert_int_equal(((const int32_t *)kiln_tensor_data(c))[2], 3);
  assert_int_equal(kiln_tensor_dtype(d), KILN_DTYPE_F64);
  assert_int_equal(d->numel, 0);
  assert_int_equal(e->items[1].tag, KILN_TAG_DEVICE);
  assert_int_equal(e->items[1].u.device.index, 1);
  assert_int_equal(kiln_tensor_dtype(e->items[2].u.tensor), KILN_DTYPE_U8);
  kiln_graph_release(graph);
}

static void test_ranges(void **state) {
  static const char text[] = "graph(%x : Tensor):\n"
                             "  %1 : Tensor = prim::Foo(%x) # dir/model.py:12:4\n"
                             "  return (%1)\n";
  kiln_graph *graph = parse(*state, text), *copy;
  assert_string_equal(text, print(*state, graph, true));
  fixture *f = *state;
  copy = kiln_graph_copy(graph, f->env->mem, f->types);
  kiln_graph_release(graph); /* the copy's ranges are its own */
  assert_string_equal(text, print(*state, copy, true));
  kiln_graph_release(copy);
}

static void test_subgraphs(void **state) {
  static const char text[] = "graph(%x : Tensor):\n"
                             "  %1 : Tensor = prim::DifferentiableGraph_0(%x)\n"
                             "  %2 : Tensor = prim::TensorExprGroup_1[k=1](%1)\n"
                             "  %3 : Tensor = prim::Foo_7(%2)\n"
                             "  return (%3)\n"
                             "with prim::DifferentiableGraph_0 = graph(%a : Tensor):\n"
                             "  %1 : Tensor = prim::TensorExprGroup_0(%a)\n"
                             "  return (%1)\n"
                             "with prim::TensorExprGroup_0 = graph(%b : Tensor):\n"
                             "  return (%b)\n"
                             "with prim::TensorExprGroup_1 = graph(%c : Tensor):\n"
                             "  return (%c)\n";
  check_fixed_point(*state, text, "subgraphs");
  kiln_graph *graph = parse(*state, text);
  const kiln_node *group = value(graph, "1")->node;
  assert_true(kiln_node_is(group, KILN_OP_prim_DifferentiableGraph));
  const kiln_graph *sub = kiln_node_graph(group, "Subgraph");
  assert_non_null(sub);
  assert_non_null(kiln_node_graph(value(sub, "1")->node, "Subgraph"));
  assert_null(value(graph, "3")->node->op);
  kiln_graph_release(graph);
}

/* Overloads come from the types of the inputs, in registration order. */
static void test_overloads(void **state) {
  kiln_graph *graph = parse(*state, "graph(%x : Tensor, %i : int):\n"
                                    "  %1 : Tensor = aten::add(%x, %x, %i)\n"
                                    "  %2 : Tensor = aten::add(%x, %i, %i)\n"
                                    "  %3 = aten::add_(%x, %x, %i)\n"
                                    "  %4 : Tensor = aten::add(%x)\n"
                                    "  return (%1)\n");
  assert_true(kiln_str_is(value(graph, "1")->node->op->full_name, "aten::add.Tensor"));
  assert_true(kiln_str_is(value(graph, "2")->node->op->full_name, "aten::add.Scalar"));
  assert_true(kiln_str_is(value(graph, "3")->node->op->full_name, "aten::add_.Tensor"));
  assert_ptr_equal(value(graph, "3")->type, kiln_type_basic(KILN_TYPE_TENSOR));
  assert_null(value(graph, "4")->node->op);
  kiln_graph_release(graph);
}

/* -- Errors -- */

static const struct {
  const char *text, *complaint;
} bad[] = {
    {"", "line 1, column 1: expected 'graph'"},
    {"graph(%x : Tensor):\n  return (%y)\n", "line 2, column 13: %y is not defined here"},
    {"graph(%x : Tensor, %x : Tensor):\n  return (%x)\n", "%x is defined twice"},
    {"graph(%x : Blah(3)):\n  return (%x)\n", "line 1, column 16: expected ')'"},
    {"graph(%x : Tensor):\n  %1 : int = prim::Constant[value=1\n", "expected ']'"},
    {"graph(%x : Tensor):\n  %1 : int = foo(%x)\n", "expected an operator"},
    {"graph():\n  %1 : str = prim::Constant[value=\"abc]()\n", "unterminated string"},
    {"graph():\n  %1 : str = prim::Constant[value=\"a\\q\"]()\n", "unknown escape"},
    {"graph():\n  %1 : Tensor = prim::Constant[value={[[1], [1, 2]]}]()\n", "unequal length"},
    {"graph():\n  %1 : Tensor = prim::Constant[value=<Tensor>]()\n", "needs a type"},
    {"graph():\n  return ()\nmore", "unexpected text"},
    {"graph(%c : bool):\n  %a : int = prim::If(%c)\n    block0():\n      %b : int = "
     "prim::Constant[value=1]()\n      -> (%b)\n    block1():\n      -> (%b)\n  return (%a)\n",
     "%b is not defined here"},
};

static void test_errors(void **state) {
  fixture *f = *state;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    kiln_graph *graph;
    kiln_status *status =
        kiln_graph_parse(f->env->mem, f->registry, f->types, kiln_str_from(bad[i].text), &graph);
    assert_non_null(status);
    assert_int_equal(kiln_status_code(status), KILN_INVALID_FILE);
    if (!strstr(kiln_status_message(status), bad[i].complaint)) {
      print_error("%s: %s\n", bad[i].complaint, kiln_status_message(status));
      fail();
    }
    assert_null(graph);
    kiln_status_destroy(status);
  }
}

/* Any bytes give a graph or a status: cuts and changes of a good text. */
static void test_garbage(void **state) {
  fixture *f = *state;
  size_t size;
  char *text = read_file(KILN_SOURCE_DIR "/test/data/ir/lstm_cell_optimized_dynamic.txt", &size);
  uint64_t seed = 12345;
  for (int i = 0; i < 3000; i++) {
    char *copy = malloc(size);
    memcpy(copy, text, size);
    size_t length = size;
    for (int k = 0; k < 3; k++) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      size_t at = (size_t)(seed >> 33) % size;
      static const char bytes[] = "()[]{}:,=%.\"\n #-1a\0\xff";
      copy[at] = bytes[(seed >> 20) % (sizeof bytes - 1)];
      if (k == 2 && i % 3 == 0) length = at;
    }
    kiln_graph *graph = NULL;
    kiln_status *status =
        kiln_graph_parse(f->env->mem, f->registry, f->types, kiln_str_make(copy, length), &graph);
    assert_true((status == NULL) == (graph != NULL));
    if (graph) {
      kiln_status_destroy(kiln_graph_verify(graph));
      (void)print(f, graph, true);
      kiln_graph_release(graph);
      kiln_arena_reset(f->arena);
    }
    kiln_status_destroy(status);
    free(copy);
  }
  free(text);
}

static void test_deep(void **state) {
  fixture *f = *state;
  enum { DEPTH = 100000 };
  char *text = malloc(DEPTH + 100);
  strcpy(text, "graph():\n  %1 : int[] = prim::Constant[value=");
  memset(text + strlen(text), '[', DEPTH);
  text[45 + DEPTH] = 0;
  kiln_graph *graph;
  kiln_status *status =
      kiln_graph_parse(f->env->mem, f->registry, f->types, kiln_str_from(text), &graph);
  assert_non_null(status);
  assert_non_null(strstr(kiln_status_message(status), "nested too deeply"));
  kiln_status_destroy(status);
  free(text);
}

/* -- Failing memory -- */

static const char sweep_text[] = "graph(%x : Tensor):\n"
                                 "  %1 : str = prim::Constant[value=\"abc\"]()\n"
                                 "  %2 : int[][] = prim::Constant[value=[[1], [2, 3]]]()\n"
                                 "  %3 : Dict(str, int) = prim::Constant[value={\"a\": 1}]()\n"
                                 "  %4 : Float(2, strides=[1], requires_grad=0, device=cpu) = "
                                 "prim::Constant[value={[1., 2.]}]()\n"
                                 "  %5 : (int, str) = prim::Constant[value=(1, \"x\")]()\n"
                                 "  %6 : Tensor = prim::TensorExprGroup_0(%x) # m.py:1:2\n"
                                 "  return (%6)\n"
                                 "with prim::TensorExprGroup_0 = graph(%b : Tensor):\n"
                                 "  return (%b)\n";

typedef struct parsed {
  kiln_type_table *types, *types2;
  kiln_graph *graph, *copy;
} parsed;

static kiln_status *parse_and_copy(kiln_mem *mem, const kiln_registry *registry, parsed *p) {
  KILN_TRY(kiln_type_table_create(mem, kiln_registry_types(registry), &p->types));
  KILN_TRY(kiln_type_table_create(mem, kiln_registry_types(registry), &p->types2));
  KILN_TRY(kiln_graph_parse(mem, registry, p->types, kiln_str_from(sweep_text), &p->graph));
  p->copy = kiln_graph_copy(p->graph, mem, p->types2);
  return kiln_graph_verify(p->copy);
}
static kiln_status *try_parse(kiln_mem *mem, const kiln_registry *registry, parsed *p) {
  KILN_PROTECT(parse_and_copy(mem, registry, p));
}

static kiln_status *parse_in(kiln_mem *mem, void *arg) {
  const fixture *f = arg;
  parsed p = {0};
  kiln_status *status = try_parse(mem, f->registry, &p);
  kiln_graph_release(p.graph);
  kiln_graph_release(p.copy);
  kiln_type_table_destroy(p.types2);
  kiln_type_table_destroy(p.types);
  return status;
}

static void test_sweep(void **state) { sweep(parse_in, *state); }

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_values),    cmocka_unit_test(test_tensors),
      cmocka_unit_test(test_dump),      cmocka_unit_test(test_attributes),
      cmocka_unit_test(test_ranges),    cmocka_unit_test(test_subgraphs),
      cmocka_unit_test(test_overloads), cmocka_unit_test(test_errors),
      cmocka_unit_test(test_garbage),   cmocka_unit_test(test_deep),
      cmocka_unit_test(test_sweep),     cmocka_unit_test(test_data),
      cmocka_unit_test(test_corpus),
  };
  return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
