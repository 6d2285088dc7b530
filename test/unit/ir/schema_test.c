/* schema_test.c: schemas: parse and print are inverse, what the parts say, faults; the registry
 * built from the tables: derived variants, lookup, and that it is quick; overload matching. */
#include <time.h>

#include "ir/match.h"
#include "test/unit/ir/ir_support.h"
#include "test/unit/sweep.h"

typedef struct schema_args {
  const char *text;
  kiln_schema *schema;
  kiln_status *status;
  const char *printed;
} schema_args;

static void schema_body(fixture *f, void *arg) {
  schema_args *a = arg;
  a->status = kiln_schema_parse(f->arena, f->types, a->text, &a->schema);
  if (a->status) return;
  kiln_text text = kiln_text_in(f->arena);
  kiln_schema_print(&text, a->schema);
  a->printed = text.data;
}

static kiln_schema *parse_schema(fixture *f, const char *text) {
  schema_args a = {.text = text};
  schema_body(f, &a);
  assert_ok(a.status);
  return a.schema;
}

static const char *const same[] = {
    "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
    "aten::chunk(Tensor(a) self, int chunks, int dim=0) -> Tensor(a)[]",
    "aten::append.t(t[](a!) self, t(c -> *) el) -> t[](a!)",
    "aten::__getitem__.Dict_str(Dict(str, t) self, str key) -> t(*)",
    "aten::max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    "aten::contiguous(Tensor(a) self, *, int memory_format=0) -> Tensor(a)",
    "aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
    "aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, int? dtype=None) -> "
    "Tensor",
    "aten::gelu(Tensor self, *, str approximate=\"none\") -> Tensor",
    "aten::layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? "
    "bias=None, float eps=1e-05, bool cudnn_enable=True) -> Tensor",
    "prim::NumToTensor.Scalar(Scalar a) -> Tensor",
    "aten::warn(str message, int stacklevel=2) -> ()",
    "aten::format(str self, ...) -> str",
    "prim::unchecked_cast(t x) -> ...",
    "aten::wait(Future[t] self) -> t",
    "aten::split.Tensor(Tensor(a -> *) self, int split_size, int dim=0) -> Tensor(a)[]",
    "aten::items.str(Dict(str, t) self) -> (str, t)[](*)",
    "test::either(Tensor(a) x, Tensor(b) y) -> Tensor(a|b)",
    "test::tuple((int, Tensor) pair, Device d, complex c) -> (int, Tensor[])",
};

static void test_round_trip(void **state) {
  for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
    schema_args a = {.text = same[i]};
    schema_body(*state, &a);
    assert_ok(a.status);
    assert_string_equal(a.printed, same[i]);
    kiln_schema_deinit(a.schema);
  }
}

static void test_parts(void **state) {
  kiln_schema *s = parse_schema(
      *state,
      "aten::conv2d(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, "
      "SymInt[2] padding=0, int[2] dilation=[1, 2], int groups=1, *, ScalarType? dtype=None, "
      "float eps=1, int reduction=Mean) -> Tensor(a!)[]");
  assert_int_equal(s->arg_count, 10);
  assert_true(kiln_str_is(s->name, "aten::conv2d"));
  assert_int_equal(s->overload.len, 0);
  const kiln_schema_arg *stride = &s->args[3];
  assert_int_equal(stride->fixed_count, 2);
  assert_int_equal(stride->default_value.tag, KILN_TAG_LIST); /* stride=1 is [1, 1] */
  assert_int_equal(stride->default_value.u.list->count, 2);
  assert_int_equal(stride->default_value.u.list->items[1].u.i, 1);
  assert_int_equal(s->args[5].default_value.u.list->items[1].u.i, 2);
  assert_int_equal(s->args[4].type->elems[0]->kind, KILN_TYPE_INT);
  assert_true(s->args[2].has_default);
  assert_int_equal(s->args[2].default_value.tag, KILN_TAG_NONE);
  assert_false(s->args[6].kwarg_only);
  assert_true(s->args[7].kwarg_only);
  assert_int_equal(s->args[8].default_value.tag, KILN_TAG_FLOAT); /* a float's default is one */
  assert_int_equal(s->args[9].default_value.u.i, 1);
  assert_false(s->results[0].alias.present);
  assert_true(s->results[0].elem_alias.is_write);
  kiln_schema_deinit(s);
}

static void test_faults(void **state) {
  static const char *const bad[] = {
      "",
      "aten::add",
      "aten::add(",
      "aten::add(Tensor self) -> ",
      "aten::add(Blah self) -> Tensor",
      "aten::add(Tensor self -> Tensor",
      "aten::add(Tensor(ab) self) -> Tensor",
      "aten::add(Tensor self, *, *, int a) -> Tensor",
      "aten::add(int a=[1]) -> Tensor",
      "aten::add(str a=\"x) -> Tensor",
      "aten::add(int[2] a=[\"x\", 1, foo]) -> Tensor",
      "aten::add(int a=foo) -> Tensor",
      "aten::add(int a) -> Tensor tail",
      "aten::add(Future(int] a) -> Tensor",
      "aten::add(int[99999999999] a) -> Tensor",
      "aten::add(((((((((((((((((((((((int))))))))))))))))))))))) a) -> Tensor",
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    schema_args a = {.text = bad[i]};
    schema_body(*state, &a);
    assert_non_null(a.status);
    assert_null(a.schema);
    assert_error(a.status, KILN_INVALID_ARGUMENT, "column");
  }
}

/* -- Registry -- */

static void test_registry(void **state) {
  fixture *f = *state;
  const kiln_op *add = kiln_registry_op(f->registry, KILN_OP_add_Tensor);
  assert_string_equal(add->kernel.name, "aten::add.Tensor");
  assert_int_equal(add->kernel.arg_count, 3);
  assert_int_equal(add->kernel.dest_arg, -1);
  assert_int_equal(add->cost, KILN_COST_pointwise);

  const kiln_op *inplace =
      kiln_registry_variant(f->registry, KILN_OP_add_Tensor, KILN_VARIANT_INPLACE);
  assert_string_equal(inplace->kernel.name, "aten::add_.Tensor");
  assert_int_equal(inplace->kernel.dest_arg, 0);
  assert_true(inplace->schema->args[0].alias.is_write);
  assert_true(inplace->schema->results[0].alias.is_write);
  assert_int_equal(inplace->schema->results[0].alias.sets, inplace->schema->args[0].alias.sets);
  assert_ptr_equal(inplace->kernel.body, add->kernel.body);

  const kiln_op *out = kiln_registry_variant(f->registry, KILN_OP_add_Tensor, KILN_VARIANT_OUT);
  assert_string_equal(out->kernel.name, "aten::add.out");
  assert_int_equal(out->kernel.arg_count, 4);
  assert_int_equal(out->kernel.dest_arg, 3);
  assert_true(out->schema->args[3].kwarg_only);
  assert_true(kiln_str_is(out->schema->args[3].name, "out"));

  assert_ptr_equal(kiln_registry_find_exact(f->registry, KILN_STR("aten::add_.Tensor")), inplace);
  assert_null(kiln_registry_find_exact(f->registry, KILN_STR("aten::nosuch")));
  const kiln_op_set *set = kiln_registry_find(f->registry, KILN_STR("aten::add"));
  assert_ptr_equal(set->ops[0], add);
  assert_null(kiln_registry_find(f->registry, KILN_STR("aten::ad")));
  const kiln_op *branch = kiln_registry_op(f->registry, KILN_OP_prim_If);
  assert_null(branch->schema);
  assert_int_equal(branch->kernel.arg_count, -1);
}

/* Every built-in operator is found by its full name, and its schema prints as what is registered.
 */
static void test_whole_table(void **state) {
  fixture *f = *state;
  int count = kiln_registry_count(f->registry);
  assert_true(count > 40);
  for (int i = 0; i < count; i++) {
    const kiln_op *op = kiln_registry_at(f->registry, i);
    assert_ptr_equal(kiln_registry_find_exact(f->registry, op->full_name), op);
    const kiln_op_set *set = kiln_registry_find(f->registry, op->name);
    bool found = false;
    for (int k = 0; k < set->count; k++) found |= set->ops[k] == op;
    assert_true(found);
  }
}

/* Making one and parsing all; that of 2,500 operators takes 2.3 ms on a quiet machine. */
static void test_quick(void **state) {
  fixture *f = *state;
  double best = 1e9;
  for (int i = 0; i < 20; i++) {
    struct timespec begin, end;
    kiln_registry *registry;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    assert_ok(kiln_registry_create(f->env, &registry));
    assert_true(kiln_registry_count(registry) > 40);
    clock_gettime(CLOCK_MONOTONIC, &end);
    kiln_registry_destroy(registry);
    double us =
        (double)(end.tv_sec - begin.tv_sec) * 1e6 + (double)(end.tv_nsec - begin.tv_nsec) * 1e-3;
    if (us < best) best = us;
  }
  int count = kiln_registry_count(f->registry);
  print_message("%d operators in %.0f us\n", count, best);
  assert_true(best < 20.0 * count);
}

static kiln_status *look_up(const kiln_registry *registry, const kiln_op **out_op) {
  *out_op = kiln_registry_find_exact(registry, KILN_STR("aten::add_.Tensor"));
  return kiln_registry_find(registry, KILN_STR("aten::no_such")) ? kiln_status_oom() : NULL;
}
static kiln_status *try_look_up(const kiln_registry *registry, const kiln_op **out_op) {
  KILN_PROTECT(look_up(registry, out_op));
}
/* A lookup for which there was no memory is made good by the next. */
static kiln_status *make_registry(kiln_env *env, void *arg) {
  (void)arg;
  kiln_registry *registry;
  const kiln_op *op = NULL;
  KILN_TRY(kiln_registry_create(env, &registry));
  kiln_status *status = try_look_up(registry, &op), *again = try_look_up(registry, &op);
  const bool good = !again && op && op->schema->arg_count == 3 &&
                    op == kiln_registry_variant(registry, KILN_OP_add_Tensor, KILN_VARIANT_INPLACE);
  kiln_status_destroy(again);
  kiln_registry_destroy(registry);
  return good ? status : kiln_status_as(status, KILN_INTERNAL, "the second time: ");
}

static void test_sweep_registry(void **state) {
  (void)state;
  sweep_env(make_registry, NULL, false);
}

/* -- Matching -- */

typedef struct match_case {
  const char *schema;
  const char *actuals; /* comma-separated IR types; "name=type" for keywords; "[]" an empty list */
  bool convert, fits;
  const char *fit;    /* letters of the slots */
  const char *result; /* type of the first result, or NULL */
} match_case;

/* Letters for fits, in the order of the enum. */
static const char letters[] = ".sRTECDiftnIFXbv";

static const match_case match_cases[] = {
    {"aten::f(Tensor self, Scalar a=1) -> Tensor", "Tensor", false, true, "sD", NULL},
    {"aten::f(Tensor self, Scalar a=1) -> Tensor", "Tensor, int", false, true, "ss", NULL},
    {"aten::f(Tensor self, Scalar a=1) -> Tensor", "Tensor, Tensor", false, false, NULL, NULL},
    {"aten::f(Tensor self, Scalar a=1) -> Tensor", "Tensor, Tensor", true, true, "sn", NULL},
    {"aten::f(Tensor self, Scalar a=1) -> Tensor", "Tensor, bool", true, true, "sb", NULL},
    {"aten::f(Tensor self, *, int a) -> Tensor", "Tensor, int", true, false, NULL, NULL},
    {"aten::f(Tensor self, *, int a) -> Tensor", "input=Tensor, a=int", true, true, "ss", NULL},
    {"aten::f(Tensor self, *, int a) -> Tensor", "self=Tensor, b=int, a=int", true, false, NULL,
     NULL},
    {"aten::f(Tensor self) -> Tensor", "Tensor, Tensor", true, false, NULL, NULL},
    {"aten::f(float p) -> Tensor", "int", true, false, NULL, NULL}, /* no int to float */
    {"aten::f(float p) -> Tensor", "Tensor", true, true, "f", NULL},
    {"aten::f(float p) -> Tensor", "Scalar", true, true, "F", NULL},
    {"aten::f(int p) -> Tensor", "Tensor", true, true, "i", NULL},
    {"aten::f(int p) -> Tensor", "bool", true, true, "b", NULL},
    {"aten::f(int p) -> Tensor", "bool", false, false, NULL, NULL},
    {"aten::f(Device d) -> Tensor", "str", true, true, "v", NULL},
    {"aten::f(Device? d) -> Tensor", "str", true, true, "v", NULL},
    {"aten::f(int[2] s) -> Tensor", "int", false, true, "R", NULL},
    {"aten::f(int[1]? s) -> Tensor", "int", false, true, "R", NULL},
    {"aten::f(int[2] s) -> Tensor", "float", true, false, NULL, NULL},
    {"aten::f(int[] s) -> Tensor", "int", false, false, NULL, NULL},
    {"aten::f(int[] s) -> Tensor", "int, int", true, true, "C", NULL},
    {"aten::f(int[] s, *, int? d=None) -> Tensor", "int, int, d=int", true, true, "Cs", NULL},
    {"aten::f(int[] s, int d) -> Tensor", "int, int", true, false, NULL, NULL},
    {"aten::f(int[] s) -> Tensor", "(int, int)", false, true, "T", NULL},
    {"aten::f(int[] s) -> Tensor", "[]", false, true, "E", NULL},
    {"aten::f(Tensor? t) -> Tensor", "NoneType", false, true, "s", NULL},
    {"aten::f(Tensor t) -> Tensor", "Tensor?", true, false, NULL, NULL},
    {"aten::f(Tensor?[] t) -> Tensor", "Tensor[]", false, true, "s", NULL},
    {"aten::f(t[] l, t e) -> t", "int[], int", false, true, "ss", "int"},
    {"aten::f(t[] l, t e) -> t", "int[], str", true, false, NULL, NULL}, /* no join: t is int */
    {"aten::f(t[] l, t e) -> t", "int[], int[]", true, false, NULL, NULL},
    {"aten::f(t[] l, t e) -> t", "int[], int?", true, false, NULL, NULL},
    {"aten::f(t[] l, t e) -> t", "int?[], int", false, true, "ss", "int?"},
    {"aten::f(t[] l) -> t[]", "(int, int)", false, true, "T", "int[]"},
    {"aten::f(Dict(str, t) d) -> t?", "Dict(str, Tensor)", false, true, "s", "Tensor?"},
    {"aten::f(t? o) -> t", "Tensor?", false, true, "s", "Tensor"},
    {"aten::f(t? o) -> t", "NoneType", false, false, NULL, NULL},
    {"aten::f(str s, ...) -> str", "str, int, Tensor", false, true, "s", "str"},
    {"aten::f(Any x) -> str", "int[]", false, true, "s", NULL},
    {"aten::f(float[] x) -> str", "int[]", true, false, NULL, NULL}, /* lists are invariant */
};

typedef struct match_args {
  const match_case *c;
  bool fits;
  char fit[8];
  const kiln_type *result;
  const char *why;
} match_args;

static int parse_actuals(fixture *f, const char *text, kiln_actual *actuals) {
  int count = 0;
  const char *p = text, *end = text + strlen(text);
  while (p < end) {
    kiln_actual *a = &actuals[count++];
    *a = (kiln_actual){.keyword = {"", 0}};
    const char *equals = strchr(p, '='), *comma = strchr(p, ',');
    if (equals && (!comma || equals < comma)) {
      a->keyword = kiln_str_make(p, (size_t)(equals - p));
      p = equals + 1;
    }
    if (strncmp(p, "[]", 2) == 0) {
      a->empty_list = true;
      a->type = kiln_type_list(f->types, kiln_type_basic(KILN_TYPE_TENSOR));
      p += 2;
    } else {
      assert_ok(kiln_type_parse(f->types, &p, end, false, &a->type));
    }
    while (p < end && (*p == ',' || *p == ' ')) p++;
  }
  return count;
}

static void match_body(fixture *f, void *arg) {
  match_args *a = arg;
  kiln_schema *schema;
  kiln_actual actuals[8];
  kiln_match_slot slots[8];
  int varargs;
  assert_ok(kiln_schema_parse(f->arena, f->types, a->c->schema, &schema));
  int count = parse_actuals(f, a->c->actuals, actuals);
  kiln_type_env env = {.types = f->types};
  kiln_text why = kiln_text_in(f->arena);
  a->fits = kiln_match_schema(&env, schema, actuals, count, a->c->convert, slots, &varargs, &why);
  a->why = why.data;
  for (int i = 0; a->fits && i < schema->arg_count; i++) a->fit[i] = letters[slots[i].fit];
  if (a->fits) a->result = kiln_type_env_eval(&env, schema->results[0].type);
  kiln_schema_deinit(schema);
}

static void test_match(void **state) {
  for (size_t i = 0; i < sizeof match_cases / sizeof *match_cases; i++) {
    const match_case *c = &match_cases[i];
    match_args a = {.c = c};
    match_body(*state, &a);
    if (a.fits != c->fits) print_error("%s with %s: %s\n", c->schema, c->actuals, a.why);
    assert_int_equal(a.fits, c->fits);
    if (!a.fits) {
      assert_true(strlen(a.why) > 0);
      continue;
    }
    if (strcmp(a.fit, c->fit) != 0) print_error("%s with %s\n", c->schema, c->actuals);
    assert_string_equal(a.fit, c->fit);
    if (!c->result) continue;
    const char *p = c->result;
    const kiln_type *want;
    fixture *f = *state;
    (void)f;
    assert_ok(kiln_type_parse(((fixture *)*state)->types, &p, p + strlen(p), false, &want));
    assert_ptr_equal(a.result, want);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_round_trip),     cmocka_unit_test(test_parts),
      cmocka_unit_test(test_faults),         cmocka_unit_test(test_registry),
      cmocka_unit_test(test_whole_table),    cmocka_unit_test(test_quick),
      cmocka_unit_test(test_sweep_registry), cmocka_unit_test(test_match),
  };
  return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
