/* custom_shape_test.c: shape functions of custom operators as the compiler asks them: of graphs,
 * where something is known, or nothing; and the registry under a failing allocator. */
#include "api/internal.h"
#include "ir/pass.h"
#include "kiln/kiln_op.h"
#include "test/unit/sweep.h"

static kiln_status *never(void *user, kiln_op_call *call) {
  (void)user;
  (void)call;
  return kiln_op_error(KILN_INTERNAL, "it ran");
}

/* cat along dimension 0 of a list, with `extra` rows more, and the row count's dtype as given. */
static int stack_shape(void *user, kiln_op_shape *shape) {
  kiln_op_tensor_info all, one;
  int64_t extra;
  int count = kiln_op_shape_count(shape, 0);
  (void)user;
  if (count < 1 || !kiln_op_shape_tensor(shape, 0, 0, &all) || all.rank < 1) return 0;
  for (int i = 1; i < count; i++) {
    if (!kiln_op_shape_tensor(shape, 0, i, &one) || one.rank != all.rank) return 0;
    bool known = all.sizes[0] >= 0 && one.sizes[0] >= 0;
    all.sizes[0] = known ? all.sizes[0] + one.sizes[0] : KILN_OP_SIZE_UNKNOWN;
  }
  if (!kiln_op_shape_int(shape, 1, -1, &extra) || all.sizes[0] < 0) {
    all.sizes[0] = KILN_OP_SIZE_UNKNOWN;
  } else {
    all.sizes[0] += extra;
  }
  kiln_op_shape_set(shape, 0, all.dtype, all.rank, all.sizes);
  /* A second result only where the optional argument is known to be there. */
  if (kiln_op_shape_is_none(shape, 2) == 0) kiln_op_shape_set(shape, 1, KILN_DTYPE_I64, 0, NULL);
  return 1;
}

/* Answers that make no sense are none. */
static int mad_shape(void *user, kiln_op_shape *shape) {
  const int64_t sizes[1] = {3};
  const int *kind = user;
  kiln_op_shape_set(shape, *kind == 0 ? 7 : 0, *kind == 1 ? (kiln_dtype)99 : KILN_DTYPE_F32,
                    *kind == 2 ? 65 : 1, *kind == 3 ? NULL : sizes);
  return 1;
}

static void assert_infers(kiln_context *context, const char *source, const char *want) {
  kiln_arena *arena;
  kiln_graph *graph;
  assert_ok(kiln_arena_create(context->env->mem, &arena));
  assert_ok(kiln_graph_parse(context->env->mem, context->registry,
                             kiln_registry_types(context->registry), kiln_str_from(source),
                             &graph));
  for (kiln_node *n = graph->top->first; n; n = n->next) (void)kiln_shape_infer(graph, n);
  kiln_text text = kiln_text_in(arena);
  kiln_graph_print(&text, graph, 3, false);
  kiln_graph_release(graph);
  if (!strstr(text.data, want)) print_error("%s\nis not in\n%s\n", want, text.data);
  assert_non_null(strstr(text.data, want));
  kiln_arena_destroy(arena);
}

static void add(kiln_context *context, const char *schema, kiln_op_shape_fn shape, void *user) {
  kiln_op_spec spec = {.struct_size = sizeof spec,
                       .schema = schema,
                       .kernel = never,
                       .shape = shape,
                       .flags = KILN_OP_SPEC_PURE,
                       .user = user};
  assert_ok(kiln_op_register(context, &spec));
}

#define STACK "mine::stack(Tensor[] xs, int extra, Tensor? more) -> (Tensor, Tensor)"
#define INPUT(sizes) "Float(" sizes ", strides=[6, 1], requires_grad=0, device=cpu)"
#define GRAPH(first, type, more)                                                                   \
  "graph(%x : " first ", %y : " INPUT("3, 6") ", %i : int, "                                       \
                                              "%m : " type "):\n"                                  \
                                              "  %two : int = prim::Constant[value=2]()\n"         \
                                              "  %l : Tensor[] = prim::ListConstruct(%x, %y)\n"    \
                                              "  %a : Tensor, %b : Tensor = mine::stack(%l, " more \
                                              ", %m)\n  return (%a, %b)\n"

static void test_graph(void **state) {
  kiln_context *context = NULL;
  (void)state;
  assert_ok(kiln_context_create(NULL, &context));
  add(context, STACK, stack_shape, NULL);
  /* Of %m nothing is known: so neither are device and requires_grad. */
  assert_infers(context, GRAPH(INPUT("4, 6"), "Tensor", "%two"),
                "%a : Float(9, 6, strides=[6, 1]), %b : Long() =");
  assert_infers(context, GRAPH(INPUT("4, 6"), "Tensor?", "%two"),
                "%a : Float(9, 6, strides=[6, 1], requires_grad=0, device=cpu), %b : Tensor =");
  assert_infers(context, GRAPH(INPUT("4, 6"), "Tensor", "%i"),
                "%a : Float(*, 6, strides=[6, 1]), %b");
  assert_infers(context, GRAPH("Tensor", "Tensor", "%two"), "%a : Tensor, %b : Tensor =");
  kiln_context_release(context);
}

static void test_mad_answers(void **state) {
  (void)state;
  for (int kind = 0; kind < 5; kind++) {
    kiln_context *context = NULL;
    assert_ok(kiln_context_create(NULL, &context));
    add(context, "mine::mad(Tensor x) -> Tensor", mad_shape, &kind);
    assert_infers(context, "graph(%x : Tensor):\n  %a : Tensor = mine::mad(%x)\n  return (%a)\n",
                  kind < 4 ? "%a : Tensor =" : "%a : Float(3, strides=[1]");
    kiln_context_release(context);
  }
}

/* -- The registry when memory is short -- */

static void count_destroyed(void *user) { ++*(int *)user; }

static kiln_status *add_two(kiln_env *env, void *arg) {
  static const char *const texts[] = {"mine::f(int[] n=[1, 2], str s=\"a\") -> Tensor",
                                      "mine::f.more(Tensor(a!) x, float[2] k=3) -> Tensor(a!)"};
  kiln_registry *registry = NULL;
  KILN_TRY(kiln_registry_create(env, &registry));
  kiln_status *status = NULL;
  int made = 0, destroyed = 0;
  for (int i = 0; !status && i < 2; i++) {
    const kiln_op *op = NULL;
    kiln_op_def def = {.text = texts[i], .user = &destroyed, .destroy = count_destroyed};
    status = kiln_registry_add(registry, &def, &op);
    const kiln_op_set *set = kiln_registry_find(registry, KILN_STR("mine::f"));
    made += !status;
    bool good = (set ? set->count : 0) == made && kiln_registry_custom_at(registry, made) == NULL;
    if (!status) good &= kiln_registry_find_exact(registry, op->full_name) == op;
    if (!good) *(int *)arg += 1;
  }
  kiln_registry_destroy(registry);
  if (destroyed != made) *(int *)arg += 1;
  return status;
}

static void test_short_memory(void **state) {
  int faults = 0;
  (void)state;
  sweep_env(add_two, &faults, false);
  assert_int_equal(faults, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_graph),
      cmocka_unit_test(test_mad_answers),
      cmocka_unit_test(test_short_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
