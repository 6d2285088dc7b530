/* load_test.c: whole archives, as torch wrote them: every graph verifies, and print, parse, print
 * is the same text. */
#include "test/unit/frontend/script_support.h"
#include "test/unit/sweep.h"

static kiln_status *load_file(script *s, const char *path) {
  char full[512];
  snprintf(full, sizeof full, "%s/%s", KILN_TEST_DATA, path);
  kiln_mapping *mapping = NULL;
  KILN_TRY(kiln_mapping_open(s->env->mem, full, NULL, &mapping));
  kiln_status *status = kiln_torchscript_load(s->env, s->registry, mapping, NULL, &s->model);
  kiln_owner_release(&mapping->owner);
  return status;
}

typedef struct printing {
  script *s;
  kiln_graph *again;
} printing;

static kiln_status *print_parse_print(printing *p) {
  kiln_unit *unit = p->s->model->unit;
  for (int i = 0; i < unit->all.count; i++) {
    kiln_text first, second;
    if (!unit->all.data[i]->graph) continue;
    first = kiln_text_in(unit->arena);
    kiln_graph_print(&first, unit->all.data[i]->graph, 3, false);
    KILN_TRY(kiln_graph_parse(p->s->env->mem, p->s->registry, unit->types, kiln_text_str(&first),
                              &p->again));
    second = kiln_text_in(unit->arena);
    kiln_graph_print(&second, p->again, 3, false);
    assert_string_equal(first.data, second.data);
    kiln_graph_release(p->again);
    p->again = NULL;
  }
  return NULL;
}

static void loads_recorded_models(void **state) {
  script *s = *state;
  static const char *const models[] = {"rnn/lstm_cell_loop",  "rnn/lstm_layernorm_loop",
                                       "rnn/gru_masked_loop", "rnn/lstm_cell_frozen",
                                       "ir/pointwise_chain",  "ir/pointwise_chain_broadcast",
                                       "ir/lstm_cell",        "ir/softmax_by_hand",
                                       "ir/dtype_changes",    "ir/loop_counted",
                                       "ir/if_tensor",        "own/relu_linear"};
  for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
    char path[128];
    snprintf(path, sizeof path, "%s/model.pt", models[i]);
    assert_ok(load_file(s, path));
    kiln_unit *unit = s->model->unit;
    assert_int_equal(s->model->root.tag, KILN_TAG_OBJECT);
    for (int k = 0; k < unit->all.count; k++) {
      assert_null(unit->all.data[k]->error);
      if (unit->all.data[k]->graph) assert_ok(kiln_graph_verify(unit->all.data[k]->graph));
    }
    printing p = {.s = s};
    assert_ok(print_parse_print(&p));
    script_drop(s);
  }
}

/* lstm_cell_loop: a Layer with a cell of four parameters, hidden size from the file. */
static void has_the_objects(void **state) {
  script *s = *state;
  assert_ok(load_file(s, "rnn/lstm_cell_loop/model.pt"));
  const kiln_object *root = s->model->root.u.object;
  assert_string_equal(root->type->name.data, "__torch__.rnn_shared.Layer");
  int cell = kiln_type_find_attribute(root->type, KILN_STR("cell"));
  assert_true(cell >= 0);
  const kiln_object *object = root->slots[cell].u.object;
  int weight = kiln_type_find_attribute(object->type, KILN_STR("weight_ih"));
  assert_true(object->type->cls->attributes[weight].is_parameter);
  const kiln_tensor *tensor = object->slots[weight].u.tensor;
  assert_int_equal(kiln_tensor_rank(tensor), 2);
  assert_int_equal(kiln_tensor_dtype(tensor), KILN_DTYPE_F32);
  assert_int_equal(tensor->key.f.requires_grad, 0);
  assert_int_equal(tensor->storage->flags & KILN_STORAGE_READ_ONLY, KILN_STORAGE_READ_ONLY);
  const char *data = kiln_tensor_data(tensor), *file = s->model->mapping->data;
  assert_true(data >= file && data < file + s->model->mapping->size);
  assert_int_equal(s->model->version, 3);
}

static kiln_status *load_once(kiln_env *env, void *arg) {
  kiln_mapping *mapping = NULL;
  kiln_torchscript *model = NULL;
  KILN_TRY(kiln_mapping_wrap(env->mem, script_archive.bytes, script_archive.size, &mapping));
  kiln_status *status = kiln_torchscript_load(env, arg, mapping, NULL, &model);
  kiln_owner_release(&mapping->owner);
  kiln_torchscript_destroy(model);
  return status;
}

static void survives_lack_of_memory(void **state) {
  (void)state;
  script_build(
      "class C(Enum):\n  A = \"x\"\n"
      "class M(Module):\n  __parameters__ = []\n  k : Final[List[int]] = [1, 2]\n"
      "  def forward(self: __torch__.M, x: Tensor, s: str=\"a\") -> Tensor:\n"
      "    c = __torch__.C.A\n    y = x\n"
      "    for i in range(3):\n      if torch.gt(i, 1):\n        y = torch.exp(y)\n"
      "      else:\n        y = torch.nosuch(y, 2.5, \"b\")\n    return torch.add(y, 1)\n");
  kiln_env *env = NULL;
  kiln_registry *registry = NULL;
  assert_ok(kiln_env_create(NULL, &env));
  assert_ok(kiln_registry_create(env, &registry));
  assert_ok(load_once(env, registry)); /* types that the registry keeps */
  uint64_t requests = 0;
  size_t before = kiln_mem_bytes(env->mem);
  for (uint64_t n = 1; n <= 100000; n++) {
    kiln_mem_fail_at(env->mem, n);
    kiln_status *status = load_once(env, registry);
    requests = kiln_mem_fail_at(env->mem, 0);
    kiln_code code = kiln_status_code(status);
    kiln_status_destroy(status);
    assert_true(code == KILN_OUT_OF_MEMORY || code == KILN_OK);
    assert_int_equal(kiln_mem_bytes(env->mem), before);
    if (requests < n) break;
  }
  assert_true(requests > 10);
  kiln_registry_destroy(registry);
  kiln_env_destroy(env);
}

static void refuses_what_is_no_model(void **state) {
  script *s = *state;
  assert_error(load_file(s, "nosuch.pt"), KILN_INVALID_FILE, "cannot open");
  assert_error(load_file(s, "rnn/lstm_cell_loop/inputs_0.pt"), KILN_INVALID_FILE, "torch.save");
  assert_error(load_file(s, "rnn/lstm_cell_loop/case.json"), KILN_INVALID_FILE, "a JSON file");
}

static void keeps_limits(void **state) {
  script *s = *state;
  kiln_torchscript_options options = {.limits = {.bytes = 1}};
  memset(&script_archive, 0, sizeof script_archive);
  static const char root[] = "\x80\x02"
                             "c__torch__\nM\n)\x81}b.",
                    none[] = "\x80\x02).";
  static const char code[] = "class M(Module):\n  pass\n";
  archive_add_bytes(&script_archive, "t/data.pkl", root, sizeof root - 1);
  archive_add_named(&script_archive, "t/code/__torch__.py", 19, code, sizeof code - 1, true, 0,
                    false);
  archive_add_bytes(&script_archive, "t/constants.pkl", none, sizeof none - 1);
  archive_add(&script_archive, "t/version", "3\n");
  archive_finish(&script_archive);
  assert_error(script_load(s, &options), KILN_LIMIT, "limit");
  assert_ok(script_load(s, NULL));
}

/* What is small as a file and large in memory is refused where no limit is given too. */
static void refuses_bombs(void **state) {
  script *s = *state;
  const size_t before = kiln_mem_bytes(s->env->mem);
  assert_error(load_file(s, "bad/statement_bomb/model.pt"), KILN_LIMIT, "the load needs more than");
  assert_error(load_file(s, "bad/object_bomb/model.pt"), KILN_LIMIT, "the load needs more than");
  assert_true(kiln_mem_peak_bytes(s->env->mem) < before + ((size_t)512 << 20));
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, script_setup, script_teardown)
      TEST(loads_recorded_models),   TEST(has_the_objects), TEST(refuses_what_is_no_model),
      TEST(survives_lack_of_memory), TEST(keeps_limits),    TEST(refuses_bombs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
