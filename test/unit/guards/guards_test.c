/* guards_test.c: guards built from types, what makes them fail, and what is told of it. */
#include "guards/guards.h"

#include "test/unit/graphs.h"
#include "test/unit/ir/ir_support.h"

/* -- Descriptors -- */

typedef struct build_args {
  const char *graph; /* one input: its type is the guard's */
  kiln_guard_desc guard;
} build_args;

static void build_body(fixture *f, void *arg) {
  build_args *a = arg;
  kiln_graph *graph = parse(f, a->graph);
  const kiln_type *types[4];
  int count = kiln_graph_input_count(graph);
  for (int i = 0; i < count; i++) types[i] = kiln_graph_input(graph, i)->type;
  kiln_guard_build(f->arena, types, count, NULL, &a->guard);
  kiln_graph_release(graph);
}

/* A guard of inputs of these types ("%x : Float(2)"); in the fixture's arena. */
static kiln_guard_desc guard_of(fixture *f, const char *inputs) {
  char text[512];
  snprintf(text, sizeof text, "graph(%s):\n  return ()\n", inputs);
  build_args a = {.graph = text};
  build_body(f, &a);
  return a.guard;
}

static kiln_ivalue strided(fixture *f, kiln_dtype dtype, int rank, const int64_t *sizes,
                           const int64_t *strides) {
  kiln_tensor *t;
  assert_ok(kiln_tensor_create_strided(f->env->mem, NULL, dtype, rank, sizes, strides, &t));
  return kiln_of_tensor(t);
}

static const int64_t sizes_23[] = {2, 3}, strides_31[] = {3, 1};
static const char full[] = "%x : " F23;

/* Whether the guard holds for the value, which is released. */
static bool holds(const kiln_guard_desc *guard, kiln_ivalue v, bool grad_mode) {
  bool result = kiln_guard_holds(guard, &v, NULL, grad_mode);
  kiln_ivalue_release(v);
  return result;
}

static void each_difference_fails(void **state) {
  fixture *f = *state;
  kiln_guard_desc guard = guard_of(f, full);
  assert_int_equal(guard.count, 1);
  assert_true(guard.entries[0].check_dims && guard.entries[0].rank == 2);
  assert_true(holds(&guard, strided(f, KILN_DTYPE_F32, 2, sizes_23, strides_31), false));
  assert_false(holds(&guard, strided(f, KILN_DTYPE_F64, 2, sizes_23, strides_31), false));
  assert_false(holds(&guard, strided(f, KILN_DTYPE_I32, 2, sizes_23, strides_31), false));
  int64_t rows[] = {4, 3}, columns[] = {2, 4}, flipped[] = {1, 2}, more[] = {1, 2, 3},
          steps[] = {6, 3, 1}, wide[] = {4, 1};
  assert_false(holds(&guard, strided(f, KILN_DTYPE_F32, 2, rows, strides_31), false));
  assert_false(holds(&guard, strided(f, KILN_DTYPE_F32, 2, columns, wide), false));
  assert_false(holds(&guard, strided(f, KILN_DTYPE_F32, 2, sizes_23, flipped), false));
  assert_false(holds(&guard, strided(f, KILN_DTYPE_F32, 2, sizes_23, wide), false));
  assert_false(holds(&guard, strided(f, KILN_DTYPE_F32, 3, more, steps), false));
  assert_false(holds(&guard, strided(f, KILN_DTYPE_F32, 1, rows, steps + 2), false));
  assert_false(holds(&guard, kiln_none(), false));
  assert_false(holds(&guard, kiln_int(2), false));
}

static void gradients_and_undefined(void **state) {
  fixture *f = *state;
  kiln_guard_desc guard = guard_of(f, full);
  kiln_ivalue v = strided(f, KILN_DTYPE_F32, 2, sizes_23, strides_31);
  v.u.tensor->key.f.requires_grad = 1;
  assert_true(
      kiln_guard_holds(&guard, &v, NULL, false)); /* without grad mode nothing requires one */
  assert_false(kiln_guard_holds(&guard, &v, NULL, true));
  kiln_guard_desc wants =
      guard_of(f, "%x : Float(2, 3, strides=[3, 1], requires_grad=1, device=cpu)");
  assert_true(kiln_guard_holds(&wants, &v, NULL, true));
  assert_false(kiln_guard_holds(&wants, &v, NULL, false));
  kiln_ivalue_release(v);
  kiln_tensor *undefined;
  assert_ok(kiln_tensor_undefined(f->env->mem, &undefined));
  assert_false(holds(&guard, kiln_of_tensor(undefined), false));
}

/* A type that says no more than that a tensor is defined asks for that. */
static void defined_alone(void **state) {
  fixture *f = *state;
  kiln_tensor_detail detail = KILN_TENSOR_DETAIL_ANY;
  detail.undefined = 0;
  const kiln_type *type = kiln_type_tensor(f->types, &detail);
  kiln_guard_desc guard;
  kiln_guard_build(f->arena, &type, 1, NULL, &guard);
  kiln_tensor *undefined;
  assert_ok(kiln_tensor_undefined(f->env->mem, &undefined));
  assert_true(holds(&guard, strided(f, KILN_DTYPE_F32, 2, sizes_23, strides_31), false));
  assert_false(holds(&guard, kiln_of_tensor(undefined), false));
  detail.undefined = -1; /* and one that says nothing asks for nothing */
  type = kiln_type_tensor(f->types, &detail);
  kiln_guard_build(f->arena, &type, 1, NULL, &guard);
  assert_true(guard.entries[0].key_mask == 0 && !guard.entries[0].check_dims);
}

/* What a type leaves open is not compared. */
static void open_types(void **state) {
  fixture *f = *state;
  int64_t other[] = {7, 5}, steps[] = {5, 1}, one[] = {7};
  kiln_guard_desc any = guard_of(f, "%x : Tensor");
  assert_int_equal(any.entries[0].key_mask, 0);
  assert_true(holds(&any, strided(f, KILN_DTYPE_I64, 2, other, steps), false));
  assert_false(holds(&any, kiln_none(), false)); /* a tensor it must be */
  kiln_guard_desc rank = guard_of(f, "%x : Float(*, *)");
  assert_false(rank.entries[0].check_dims);
  assert_true(holds(&rank, strided(f, KILN_DTYPE_F32, 2, other, steps), false));
  assert_false(holds(&rank, strided(f, KILN_DTYPE_F64, 2, other, steps), false));
  assert_false(holds(&rank, strided(f, KILN_DTYPE_F32, 1, one, steps + 1), false));
}

static void several_values(void **state) {
  fixture *f = *state;
  kiln_guard_desc guard =
      guard_of(f, "%x : Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu), "
                  "%y : Long(requires_grad=0, device=cpu)");
  kiln_ivalue values[] = {strided(f, KILN_DTYPE_F32, 2, sizes_23, strides_31),
                          strided(f, KILN_DTYPE_I64, 0, NULL, NULL)};
  assert_int_equal(guard.count, 2);
  assert_true(kiln_guard_holds(&guard, values, NULL, false));
  kiln_ivalue swapped[] = {values[1], values[0]};
  assert_false(kiln_guard_holds(&guard, swapped, NULL, false));
  kiln_guard_desc same =
      guard_of(f, "%a : Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu), "
                  "%b : Long(requires_grad=0, device=cpu)");
  assert_true(guard.hash == same.hash);
  assert_false(guard.hash == guard_of(f, full).hash);
  for (int i = 0; i < 2; i++) kiln_ivalue_release(values[i]);
}

static bool is_place(kiln_guard_place place, int entry, int dim) {
  return place.entry == entry && place.dim == dim;
}

/* A symbol is bound where it stands first; where it stands again, alone or in an expression, is a
 * relation. Numbers are the entry's to compare, and a guard of numbers has no symbols. */
static void symbols_are_bound_once(void **state) {
  fixture *f = *state;
  const kiln_guard_desc guard =
      guard_of(f, "%x : Float(s1, 3, s0, strides=[3*s0, s0, 1], requires_grad=0, device=cpu), "
                  "%y : Float(s1, 2*s0, strides=[2*s0, 1], requires_grad=0, device=cpu)");
  const kiln_guard_symbols *s = guard.symbols;
  assert_non_null(s);
  assert_int_equal(s->symbol_count, 2);
  assert_true(is_place(s->bind[1], 0, 0) && is_place(s->bind[0], 0, 2));
  assert_int_equal(s->relation_count, 5);
  assert_true(is_place(s->relations[0], 0, 3) && is_place(s->relations[1], 0, 4));
  for (int i = 0; i < 3; i++) assert_true(is_place(s->relations[2 + i], 1, i));
  assert_null(guard_of(f, full).symbols);
}

/* -- In words -- */

static const char *explain(fixture *f, const kiln_guard_desc *guard, kiln_ivalue v) {
  kiln_text text, expected, seen;
  text = kiln_text_in(f->arena);
  expected = kiln_text_in(f->arena);
  seen = kiln_text_in(f->arena);
  const int input = kiln_guard_explain(guard, &v, NULL, true, &expected, &seen);
  kiln_ivalue_release(v);
  if (input < 0) return "every input is as expected";
  kiln_text_printf(&text, "input %d is %s where %s was expected", input, seen.data, expected.data);
  return text.data;
}

static void guards_explain(void **state) {
  fixture *f = *state;
  const int64_t rows[] = {4, 3}, nchw[] = {2, 3, 4, 5}, contiguous[] = {60, 20, 5, 1};
  const int64_t last[] = {60, 1, 15, 3};
  kiln_guard_desc guard = guard_of(f, full);
  assert_string_equal(explain(f, &guard, strided(f, KILN_DTYPE_F32, 2, sizes_23, strides_31)),
                      "every input is as expected");
  assert_string_equal(explain(f, &guard, strided(f, KILN_DTYPE_F32, 2, rows, strides_31)),
                      "input 0 is Float(4, 3, strides=[3, 1], requires_grad=0, device=cpu) where "
                      "Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu) was expected");
  assert_non_null(strstr(explain(f, &guard, kiln_none()), "input 0 is None where"));
  kiln_tensor *undefined;
  assert_ok(kiln_tensor_undefined(f->env->mem, &undefined));
  assert_non_null(strstr(explain(f, &guard, kiln_of_tensor(undefined)), "input 0 is Tensor"));
  /* What is masked out is neither looked at nor told. */
  kiln_ivalue v = strided(f, KILN_DTYPE_F32, 2, sizes_23, strides_31);
  v.u.tensor->key.f.requires_grad = 1;
  kiln_guard_desc open = guard_of(f, "%x : Tensor(*, *, requires_grad=0, device=cpu)");
  assert_string_equal(explain(f, &open, v),
                      "input 0 is Float(2, 3, strides=[3, 1], requires_grad=1, device=cpu) where "
                      "Tensor(*, *, requires_grad=0, device=cpu) was expected");
  /* Where only the layout's class differs, it is told. */
  kiln_ivalue four = strided(f, KILN_DTYPE_F32, 4, nchw, contiguous);
  kiln_guard_desc layout = {.count = 1, .entries = KILN_NEW(f->arena, kiln_guard_entry)};
  layout.at = guard.at;
  *layout.entries = (kiln_guard_entry){.key_word = four.u.tensor->key.word, .key_mask = UINT64_MAX};
  assert_non_null(strstr(explain(f, &layout, strided(f, KILN_DTYPE_F32, 4, nchw, last)),
                         ", channels last where"));
  kiln_ivalue_release(four);
}

#define SQUARE "Float(s0, s0, strides=[s0, 1], requires_grad=0, device=cpu)"

/* Of symbols: where they come from, and what does not go with them. */
static void symbols_are_explained(void **state) {
  fixture *f = *state;
  const int64_t square[] = {4, 4}, wide[] = {4, 5}, one[] = {1, 1}, dense[] = {4, 1},
                apart[] = {5, 1};
  const kiln_guard_desc guard = guard_of(f, "%x : " SQUARE);
  assert_string_equal(explain(f, &guard, strided(f, KILN_DTYPE_F32, 2, square, dense)),
                      "every input is as expected");
  assert_string_equal(explain(f, &guard, strided(f, KILN_DTYPE_F32, 2, wide, apart)),
                      "input 0 is Float(4, 5, strides=[5, 1], requires_grad=0, device=cpu) whose "
                      "size(1) differs where " SQUARE " with s0 = %*.size(0) = 4 was expected");
  assert_string_equal(explain(f, &guard, strided(f, KILN_DTYPE_F32, 2, square, apart)),
                      "input 0 is Float(4, 4, strides=[5, 1], requires_grad=0, device=cpu) whose "
                      "stride(0) differs where " SQUARE " with s0 = %*.size(0) = 4 was expected");
  assert_non_null(strstr(explain(f, &guard, strided(f, KILN_DTYPE_F32, 2, one, one)),
                         "whose size(0) is less than 2 where"));
  assert_non_null(strstr(explain(f, &guard, strided(f, KILN_DTYPE_I64, 2, square, dense)),
                         "input 0 is Long(4, 4, strides=[4, 1], requires_grad=0, device=cpu) "
                         "where " SQUARE " with s0 = %*.size(0) = 4 was"));
}

#define ROWS "Float(n0, s1, strides=[s1, 1], requires_grad=0, device=cpu)"

/* What may be 1 is not what must be more. */
static void ones_are_explained(void **state) {
  fixture *f = *state;
  static const struct {
    int64_t rows, columns;
    const char *seen; /* NULL: it holds */
  } cases[] = {{4, 3, NULL},
               {1, 3, NULL},
               {0, 3, "size(0) is less than 1 where " ROWS " with n0 = %*.size(0) = 0, s1"},
               {4, 1, "size(1) is less than 2 where " ROWS " with n0 = %*.size(0) = 4, s1"}};
  const kiln_guard_desc guard = guard_of(f, "%x : " ROWS);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const int64_t sizes[] = {cases[i].rows, cases[i].columns}, strides[] = {cases[i].columns, 1};
    const char *told = explain(f, &guard, strided(f, KILN_DTYPE_F32, 2, sizes, strides));
    const char *seen = cases[i].seen ? cases[i].seen : "every input is as expected";
    if (!strstr(told, seen)) fail_msg("%s", told);
  }
  /* Where one of its places must be 2 or more, all are. */
  const kiln_guard_desc both =
      guard_of(f, "%x : Float(n0, s0, strides=[s0, 1], requires_grad=0, device=cpu)");
  assert_int_equal(both.symbols->from_one, 0);
}

static void hashes_tell_what_guards_do(void **state) {
  fixture *f = *state;
  const int64_t rows[] = {4, 3}, flipped[] = {1, 2}, spread[] = {9, 2}, wider[] = {9, 3};
  kiln_ivalue v[] = {strided(f, KILN_DTYPE_F32, 2, sizes_23, strides_31),
                     strided(f, KILN_DTYPE_F32, 2, sizes_23, strides_31),
                     strided(f, KILN_DTYPE_F64, 2, sizes_23, strides_31),
                     strided(f, KILN_DTYPE_F32, 2, rows, strides_31),
                     strided(f, KILN_DTYPE_F32, 2, sizes_23, flipped),
                     strided(f, KILN_DTYPE_F32, 2, sizes_23, spread),
                     strided(f, KILN_DTYPE_F32, 2, sizes_23, wider),
                     kiln_none(),
                     kiln_int(2)};
  enum { COUNT = sizeof v / sizeof *v };
  uint64_t h[COUNT];
  for (int i = 0; i < COUNT; i++) h[i] = kiln_guard_hash(&v[i], 1, true);
  assert_true(h[0] == h[1]);
  for (int i = 1; i < COUNT; i++) {
    for (int k = i + 1; k < COUNT; k++) assert_true(h[i] != h[k]);
  }
  v[0].u.tensor->key.f.requires_grad = 1; /* counts in grad mode only */
  assert_true(kiln_guard_hash(v, 1, true) != h[0] && kiln_guard_hash(v, 1, false) == h[0]);
  for (int i = 0; i < COUNT; i++) kiln_ivalue_release(v[i]);
}

/* -- Stress -- */

/* The guard of a graph's inputs by a maker, for asking before the plan. */
static kiln_guard_desc *made(fixture *f, const kiln_guard_maker *maker, kiln_graph *graph) {
  kiln_guard_checks checks = {0};
  for (int i = 0; i < kiln_graph_input_count(graph); i++) {
    kiln_vec_push(f->arena, &checks.values, kiln_graph_input(graph, i));
    kiln_vec_push(f->arena, &checks.types, kiln_graph_input(graph, i)->type);
  }
  kiln_guard_desc *guard = KILN_NEW(f->arena, kiln_guard_desc);
  kiln_guard_make(maker, f->arena, &checks, NULL, guard);
  return guard;
}

/* The flag makes a guard fail that holds, as often as it says, and nothing else. */
static void stress_is_a_chance(void **state) {
  fixture *f = *state;
  static const struct {
    double chance;
    int least, most; /* of 1000 */
  } rows[] = {{0, 1000, 1000}, {0.25, 700, 800}, {0.5, 450, 550}, {1, 0, 0}};
  kiln_graph *graph = parse(f, "graph(%x : Float(2, 3, strides=[3, 1], requires_grad=0, "
                               "device=cpu)):\n  return (%x)\n");
  kiln_ivalue good = strided(f, KILN_DTYPE_F32, 2, sizes_23, strides_31), bad = kiln_none();
  for (int r = 0; r < 4; r++) {
    const kiln_guard_maker maker = {.stress = rows[r].chance};
    const kiln_guard_desc *guard = made(f, &maker, graph);
    assert_null(guard->watch); /* the maker has no list of misses */
    kiln_call call = {0};
    int held = 0;
    for (int i = 0; i < 1000; i++) {
      held += kiln_guard_check(guard, &good, NULL, &call);
      assert_false(kiln_guard_check(guard, &bad, NULL, &call));
      assert_true(kiln_guard_holds(guard, &good, NULL, false));
    }
    assert_in_range(held, rows[r].least, rows[r].most);
    assert_int_equal(call.stressed,
                     r == 0 ? 0 : 1000); /* what failed by itself was not drawn for */
  }
  kiln_ivalue_release(good);
  kiln_graph_release(graph);
}

/* -- Misses -- */

static void misses_are_listed(void **state) {
  fixture *f = *state;
  kiln_counter_book book;
  kiln_counter_book_init(&book, f->env->mem);
  kiln_guard_misses misses;
  kiln_guard_misses_init(&misses, f->env, &book, 0);
  kiln_guard_miss m;
  assert_false(kiln_guard_miss_at(&misses, 0, &m));
  kiln_graph *graph = parse(f, "graph(%x : Float(2, 3, strides=[3, 1], requires_grad=0, "
                               "device=cpu), %y : Long()):\n  return (%x)\n");
  const kiln_guard_maker maker = {.book = &book, .misses = &misses, .site = "here"};
  kiln_guard_desc *guard = made(f, &maker, graph), *other = made(f, &maker, graph);
  assert_true(guard->hits && guard->misses == guard->hits + 1 && other->hits > guard->misses);
  kiln_ivalue values[] = {strided(f, KILN_DTYPE_F32, 2, sizes_23, strides_31), kiln_int(1)};
  for (int i = 0; i < 20; i++) guard->watch->missed(guard->watch, guard, values, NULL, false);
  other->watch->missed(other->watch, other, values, NULL, false);
  assert_true(kiln_guard_miss_at(&misses, 0, &m));
  assert_string_equal(m.site, "here");
  assert_string_equal(m.value, "y");
  assert_string_equal(m.expected, "Long()");
  assert_string_equal(m.seen, "int");
  assert_int_equal(m.count, 8 + 1); /* each guard tells of its first ones */
  assert_false(kiln_guard_miss_at(&misses, 1, &m));
  const kiln_call call = {0};
  kiln_ivalue_release(values[1]);
  values[1] = strided(f, KILN_DTYPE_I64, 0, NULL, NULL);
  kiln_guard_tell(guard, values, &call); /* it holds: stress made it fail */
  assert_false(kiln_guard_miss_at(&misses, 1, &m));
  kiln_ivalue swapped[] = {values[1], values[0]};
  kiln_guard_tell(guard, swapped, &call);
  assert_true(kiln_guard_miss_at(&misses, 1, &m));
  assert_string_equal(m.value, "x");
  assert_int_equal(m.count, 1);
  assert_false(kiln_guard_miss_at(&misses, -1, &m));
  for (int i = 0; i < 2; i++) kiln_ivalue_release(values[i]);
  kiln_graph_release(graph);
  kiln_guard_misses_deinit(&misses);
  kiln_counter_book_deinit(&book);
}

/* A miss is another one where its place differs alone; the list takes so many, and then counts only
 * those that it has. */
static void misses_of_places(void **state) {
  enum { MOST = 1024 };
  fixture *f = *state;
  kiln_counter_book book;
  kiln_counter_book_init(&book, f->env->mem);
  kiln_guard_misses misses;
  kiln_guard_misses_init(&misses, f->env, &book, 0);
  kiln_graph *graph = parse(f, "graph(%x : Long()):\n  return (%x)\n");
  const kiln_ivalue none = kiln_none();
  const kiln_call call = {0};
  kiln_guard_miss m;
  char sites[MOST + 1][8];
  for (int i = 0; i <= MOST; i++) {
    snprintf(sites[i], sizeof sites[i], "s%d", i);
    const kiln_guard_maker maker = {.book = &book, .misses = &misses, .site = sites[i]};
    kiln_guard_tell(made(f, &maker, graph), &none, &call);
  }
  for (int i = 0; i < MOST; i++) {
    assert_true(kiln_guard_miss_at(&misses, i, &m));
    assert_string_equal(m.site, sites[i]);
    assert_int_equal(m.count, 1);
  }
  assert_false(kiln_guard_miss_at(&misses, MOST, &m));
  kiln_graph_release(graph);
  kiln_guard_misses_deinit(&misses);
  kiln_counter_book_deinit(&book);
}

/* -- Lifting -- */

/* The guard in front of a graph of these nodes over %n, %x, %y, %z; or NULL. */
static kiln_guard_desc *lift(fixture *f, const char *nodes) {
  char text[1024];
  snprintf(text, sizeof text,
           "graph(%%n : int, %%x : Tensor, %%y : Tensor, %%z : Tensor):\n%s  return (%%x)\n",
           nodes);
  kiln_graph *graph = parse(f, text);
  const kiln_guard_maker maker = {0};
  kiln_guard_desc *guard = kiln_guard_lift(&maker, f->arena, graph, f->arena);
  kiln_graph_release(graph);
  return guard;
}

static void checks_of_inputs_are_lifted(void **state) {
  fixture *f = *state;
  const kiln_guard_desc *guard =
      lift(f, "  %a : Long(), %b : " F23 ", %ok : bool = prim::TypeCheck[types=[Long(), " F23
              "]](%z, %x)\n"
              "  %c : Tensor, %ok.1 : bool = prim::TypeCheck[types=[Tensor]](%x)\n");
  assert_non_null(guard);
  assert_int_equal(guard->count, 2); /* in the order of the inputs, one entry a value */
  assert_true(guard->at[0] == 1 && guard->at[1] == 3);
  assert_true(guard->entries[0].check_dims && guard->entries[0].rank == 2); /* the narrower type */
  kiln_ivalue args[] = {kiln_int(1), strided(f, KILN_DTYPE_F32, 2, sizes_23, strides_31),
                        kiln_none(), strided(f, KILN_DTYPE_I64, 0, NULL, NULL)};
  assert_true(kiln_guard_holds(guard, args, NULL, false));
  kiln_ivalue other[] = {args[0], args[3], args[2], args[1]};
  assert_false(kiln_guard_holds(guard, other, NULL, false));
  for (int i = 0; i < 4; i++) kiln_ivalue_release(args[i]);
}

#define OPEN "Float(s0, s1, strides=[s1, 1], requires_grad=0, device=cpu)"

/* Relations of order are asked for and explained, also of several guards in one. */
static void orders_are_asked_for(void **state) {
  fixture *f = *state;
  const kiln_guard_desc *guard =
      lift(f, "  %a : " OPEN ", %ok : bool = prim::TensorExprDynamicGuard[types=[" OPEN
              "], where=\"s0 <= 4, s0 + s1 <= 9\"](%x)\n"
              "  %b : " OPEN ", %ok.1 : bool = prim::TensorExprDynamicGuard[types=[" OPEN
              "], where=\"s0 <= 4, 3 <= s1\"](%x)\n");
  static const struct {
    int64_t rows, columns;
    const char *seen; /* NULL: it holds */
  } cases[] = {{4, 3, NULL},
               {4, 5, NULL},
               {2, 7, NULL},
               {5, 3, "whose size(0) is not within s0 <= 4"},
               {3, 7, "whose size(0) is not within s0 + s1 <= 9"},
               {4, 2, "whose size(1) is not within 3 <= s1"}};
  assert_non_null(guard);
  assert_int_equal(guard->symbols->order_count, 3);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const int64_t sizes[] = {cases[i].rows, cases[i].columns}, strides[] = {cases[i].columns, 1};
    kiln_ivalue args[] = {kiln_int(1), strided(f, KILN_DTYPE_F32, 2, sizes, strides)};
    kiln_text expected = kiln_text_in(f->arena), seen = kiln_text_in(f->arena);
    assert_true(kiln_guard_holds(guard, args, NULL, false) == !cases[i].seen);
    const int failed = kiln_guard_explain(guard, args, NULL, false, &expected, &seen);
    assert_int_equal(failed, cases[i].seen ? 0 : -1);
    if (cases[i].seen && !strstr(seen.data, cases[i].seen)) fail_msg("%s", seen.data);
    kiln_ivalue_release(args[1]);
  }
}

static void what_is_not_lifted(void **state) {
  fixture *f = *state;
  assert_null(lift(f, "")); /* nothing is checked */
  assert_null(lift(f, "  %t : Tensor = aten::relu(%x)\n"
                      "  %a : " F23 ", %ok : bool = prim::TypeCheck[types=[" F23 "]](%t)\n"));
  assert_null(lift(f, "  %t : bool = prim::Constant[value=1]()\n"
                      "   = prim::Loop(%n, %t)\n"
                      "    block0(%i : int):\n"
                      "      %r : Tensor = aten::relu(%x)\n"
                      "      %a : " F23 ", %ok : bool = prim::TypeCheck[types=[" F23 "]](%r)\n"
                      "      -> (%t)\n"));
  assert_null(lift(f, "  %t : bool = prim::Constant[value=1]()\n"
                      "  %c : " F23 ", %ok.1 : bool = prim::TypeCheck[types=[" F23 "]](%y)\n"
                      "   = prim::Loop(%n, %t)\n"
                      "    block0(%i : int):\n"
                      "      %r : Tensor = aten::relu(%x)\n"
                      "      %a : " F23 ", %ok : bool = prim::TypeCheck[types=[" F23 "]](%r)\n"
                      "      -> (%t)\n"));
  assert_null(lift(f, "  %a : " F23 ", %ok : bool = prim::TypeCheck[types=[" F23 "]](%x)\n"
                      "  %b : Long(), %ok.1 : bool = prim::TypeCheck[types=[Long()]](%x)\n"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(each_difference_fails, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(gradients_and_undefined, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(defined_alone, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(open_types, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(several_values, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(symbols_are_bound_once, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(guards_explain, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(symbols_are_explained, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(ones_are_explained, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(hashes_tell_what_guards_do, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(stress_is_a_chance, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(misses_are_listed, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(misses_of_places, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(checks_of_inputs_are_lifted, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(orders_are_asked_for, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(what_is_not_lifted, fixture_setup, fixture_teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
