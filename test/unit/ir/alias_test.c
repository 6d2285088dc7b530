/* alias_test.c: what may alias what, who writes what, and which nodes may change places.
 *
 * Operators that are not registered get schemas from the table below. The last test runs random
 * programs on a small machine before and after nodes that do not meet have changed places: that
 * never changes what comes out. */
#include "ir/alias_internal.h"
#include "ir/pass.h"
#include "test/unit/ir/ir_support.h"

/* -- Operators -- */

static const char *const schemas[] = {
    "test::view(Tensor(a) self) -> Tensor(a)",
    "test::either(Tensor(a) x, Tensor(b) y) -> Tensor(a|b)",
    "test::new(Tensor self) -> Tensor",
    "test::write_(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    "test::pieces(Tensor(a) self) -> Tensor(a)[]",
    "test::keep(Tensor(a -> *) self) -> ()",
    "test::append(t[](a!) self, t(c -> *) el) -> t[](a!)",
    "test::get(t[](a) list, int i) -> t(*)",
    "test::plus(t[] a, t[] b) -> t[]",
    "test::len(t[] a) -> int",
    "test::items(Dict(str, t) self) -> (str, t)[](*)",
    "test::unzip((str, t)[] pairs) -> Dict(str, t)",
    "test::lookup(Dict(str, t) self, str key) -> t(*)",
    "test::write_all_(Tensor(a!)[] self) -> ()",
    "test::fresh(Tensor self) -> Tensor[]",
    "test::split(Tensor(a -> *) self) -> Tensor(a)[]",
};
enum { SCHEMA_COUNT = sizeof schemas / sizeof *schemas };

typedef struct subject {
  fixture *f;
  const char *text;
  kiln_graph *graph;
  kiln_alias *alias;
  kiln_op ops[SCHEMA_COUNT];
} subject;

static void give_ops(subject *s, kiln_block *block) {
  for (kiln_node *n = block->first; n; n = n->next) {
    for (int i = 0; i < SCHEMA_COUNT && !n->op; i++) {
      if (kiln_str_equal(s->ops[i].name, n->name)) n->op = &s->ops[i];
    }
    for (int b = 0; b < n->block_count; b++) give_ops(s, n->blocks[b]);
  }
}

static void subject_body(fixture *f, void *arg) {
  subject *s = arg;
  for (int i = 0; i < SCHEMA_COUNT; i++) {
    kiln_schema *schema;
    assert_ok(kiln_schema_parse(f->arena, f->types, schemas[i], &schema));
    s->ops[i] = (kiln_op){.id = KILN_OP__CUSTOM, .name = schema->name, .schema = schema};
    for (int k = 0; k < schema->arg_count; k++) {
      bool writes = schema->args[k].alias.is_write || schema->args[k].elem_alias.is_write;
      if (writes) s->ops[i].flags |= KILN_OP_WRITES;
    }
  }
  give_ops(s, s->graph->top);
  s->alias = kiln_alias_create(f->arena, s->graph);
}

static void subject_init(subject *s, fixture *f, const char *text) {
  *s = (subject){.f = f, .text = text, .graph = parse(f, text)};
  assert_ok(kiln_graph_verify(s->graph));
  subject_body(f, s);
}

static void subject_deinit(subject *s) {
  kiln_graph_release(s->graph);
  kiln_arena_reset(s->f->arena);
}

static kiln_ir_value *val(const subject *s, const char *name) { return value(s->graph, name); }
/* One memory; with `deep` also what is in them. */
static bool meet(const subject *s, const char *a, const char *b, bool deep) {
  const kiln_ir_value *x = val(s, a), *y = val(s, b);
  bool all_x, all_y;
  const loc_set *px = kiln__alias_points(s->alias, x, &all_x);
  const loc_set *py = kiln__alias_points(s->alias, y, &all_y);
  if (!kiln__alias_mask(x->type) || !kiln__alias_mask(y->type)) return false;
  if (all_x || all_y || (!deep && kiln__locs_meet(px, py))) return true;
  for (int i = 0; deep && i < px->count; i++) {
    for (int k = 0; k < py->count; k++) {
      const location *at = s->alias->locs.data;
      if (kiln__locs_meet(&at[px->items[i]].deep, &at[py->items[k]].deep)) return true;
    }
  }
  return false;
}
static bool may_alias(const subject *s, const char *a, const char *b) {
  bool answer = meet(s, a, b, false);
  assert_int_equal(answer, meet(s, b, a, false));
  return answer;
}
static bool may_contain(const subject *s, const char *a, const char *b) {
  return meet(s, a, b, true);
}
static bool written(const subject *s, const char *a) {
  return kiln_alias_has_writers(s->alias, val(s, a));
}
static bool wild(const subject *s, const char *a) {
  return kiln_alias_is_wildcard(s->alias, val(s, a));
}

/* -- Order -- */

static bool is_in(const kiln_vec_int *set, int loc) {
  for (int i = 0; i < set->count; i++) {
    if (set->data[i] == loc) return true;
  }
  return false;
}

/* One writes what the other reads or writes, or uses its result. */
static bool keep_order(fixture *f, const kiln_alias *alias, const kiln_node *x,
                       const kiln_node *y) {
  kiln_alias_accesses a = {0}, b = {0};
  int64_t steps = 1 << 20;
  for (int i = 0; i < y->input_count; i++) {
    if (kiln_node_input(y, i)->node == x) return true;
  }
  if (!kiln_alias_collect(alias, f->arena, x, &steps, &a)) return true;
  if (!kiln_alias_collect(alias, f->arena, y, &steps, &b)) return true;
  for (int i = 0; i < a.writes.count; i++) {
    if (is_in(&b.reads, a.writes.data[i]) || is_in(&b.writes, a.writes.data[i])) return true;
  }
  for (int i = 0; i < b.writes.count; i++) {
    if (is_in(&a.reads, b.writes.data[i])) return true;
  }
  return false;
}

/* -- Facts -- */

static void test_views(void **state) {
  subject s;
  subject_init(&s, *state,
               "graph(%x : Tensor, %y : Tensor, %l : int[]):\n"
               "  %a : Tensor = test::new(%x)\n"
               "  %b : Tensor = test::new(%x)\n"
               "  %v : Tensor = test::view(%a)\n"
               "  %w : Tensor = test::view(%v)\n"
               "  %e : Tensor = test::either(%a, %b)\n"
               "  %u : Tensor = test::write_(%w, %y)\n"
               "  %c : Tensor = test::view(%x)\n"
               "  return (%b)\n");
  assert_true(may_alias(&s, "v", "a"));
  assert_true(may_alias(&s, "w", "v"));
  assert_true(may_alias(&s, "u", "a"));
  assert_false(may_alias(&s, "a", "b"));
  assert_true(may_alias(&s, "e", "a"));
  assert_true(may_alias(&s, "e", "b"));
  assert_false(may_alias(&s, "a", "x"));
  assert_true(may_alias(&s, "x", "y")); /* inputs may be the same */
  assert_true(may_alias(&s, "c", "y"));
  assert_false(may_alias(&s, "x", "l")); /* but not a tensor and a list */
  assert_true(written(&s, "a"));         /* through its view */
  assert_true(written(&s, "v"));
  assert_true(written(&s, "e"));
  assert_false(written(&s, "b"));
  assert_false(written(&s, "x"));
  assert_true(wild(&s, "x"));
  assert_true(wild(&s, "c"));
  assert_false(wild(&s, "a"));
  assert_true(wild(&s, "b")); /* it goes out */
  const kiln_node *writer = val(&s, "u")->node;
  assert_true(kiln_alias_node_writes(s.alias, writer));
  assert_false(kiln_alias_node_writes(s.alias, val(&s, "v")->node));
  assert_true(kiln_alias_writes_to(s.alias, writer, val(&s, "a")));
  assert_false(kiln_alias_writes_to(s.alias, writer, val(&s, "b")));
  subject_deinit(&s);
}

static void test_inputs_written(void **state) {
  subject s;
  subject_init(&s, *state,
               "graph(%x : Tensor, %y : Tensor):\n"
               "  %a : Tensor = test::new(%x)\n"
               "  %u : Tensor = test::write_(%x, %a)\n"
               "  return (%a)\n");
  assert_true(written(&s, "y")); /* it may be x */
  assert_false(written(&s, "a"));
  subject_deinit(&s);
}

static void test_containers(void **state) {
  subject s;
  subject_init(&s, *state,
               "graph(%x : Tensor, %i : int, %k : str):\n"
               "  %a : Tensor = test::new(%x)\n"
               "  %b : Tensor = test::new(%x)\n"
               "  %c : Tensor = test::new(%x)\n"
               "  %l : Tensor[] = prim::ListConstruct(%a)\n"
               "  %m : Tensor[] = prim::ListConstruct()\n"
               "  %n : Tensor[] = test::append(%m, %b)\n"
               "  %g : Tensor = test::get(%m, %i)\n"
               "  %p : Tensor[] = test::plus(%l, %m)\n"
               "  %q : Tensor = test::get(%p, %i)\n"
               "  %t : (Tensor, int) = prim::TupleConstruct(%a, %i)\n"
               "  %t1 : Tensor, %t2 : int = prim::TupleUnpack(%t)\n"
               "  %d : Dict(str, Tensor) = prim::DictConstruct(%k, %c)\n"
               "  %it : (str, Tensor)[] = test::items(%d)\n"
               "  %dd : Dict(str, Tensor) = test::unzip(%it)\n"
               "  %dg : Tensor = test::lookup(%dd, %k)\n"
               "  %sp : Tensor[] = test::pieces(%a)\n"
               "  %s1 : Tensor, %s2 : Tensor = prim::ListUnpack(%sp)\n"
               "  %u : Tensor = test::write_(%s1, %x)\n"
               "  return (%i)\n");
  assert_false(may_alias(&s, "l", "m"));
  assert_true(may_alias(&s, "n", "m"));
  assert_false(may_alias(&s, "p", "l")); /* a new list */
  assert_true(may_contain(&s, "l", "a"));
  assert_false(may_contain(&s, "l", "b"));
  assert_true(may_contain(&s, "m", "b"));
  assert_true(may_alias(&s, "g", "b"));
  assert_false(may_alias(&s, "g", "a"));
  assert_true(may_alias(&s, "q", "a"));
  assert_true(may_alias(&s, "q", "b"));
  assert_false(may_alias(&s, "q", "c"));
  assert_true(may_alias(&s, "t1", "a"));
  assert_true(may_contain(&s, "t", "a"));
  assert_true(may_contain(&s, "it", "c"));
  assert_true(may_alias(&s, "dg", "c"));
  assert_false(may_alias(&s, "dg", "a"));
  assert_true(may_alias(&s, "s2", "a"));
  assert_true(written(&s, "a"));
  assert_true(written(&s, "l")); /* what it contains is written */
  assert_true(written(&s, "t"));
  assert_false(written(&s, "d"));
  assert_false(written(&s, "c"));
  assert_true(written(&s, "m"));
  subject_deinit(&s);
}

static void test_control(void **state) {
  subject s;
  subject_init(&s, *state,
               "graph(%c : bool, %n : int, %x : Tensor):\n"
               "  %a : Tensor = test::new(%x)\n"
               "  %b : Tensor = test::new(%x)\n"
               "  %d : Tensor = test::new(%x)\n"
               "  %r : Tensor = prim::If(%c)\n"
               "    block0():\n"
               "      %v : Tensor = test::view(%a)\n"
               "      -> (%v)\n"
               "    block1():\n"
               "      %w : Tensor = test::write_(%b, %x)\n"
               "      -> (%b)\n"
               "  %p : Tensor, %q : Tensor = prim::Loop(%n, %c, %a, %d)\n"
               "    block0(%i : int, %p1 : Tensor, %q1 : Tensor):\n"
               "      -> (%c, %q1, %p1)\n"
               "  %l : Tensor[] = prim::ListConstruct()\n"
               "   = prim::Loop(%n, %c)\n"
               "    block0(%j : int):\n"
               "      %e : Tensor = test::new(%x)\n"
               "      %f : Tensor[] = test::append(%l, %e)\n"
               "      -> (%c)\n"
               "  return (%n)\n");
  assert_true(may_alias(&s, "r", "a"));
  assert_true(may_alias(&s, "r", "b"));
  assert_false(may_alias(&s, "a", "b")); /* the join does not make its sides one */
  assert_true(may_alias(&s, "p", "d"));  /* after an odd number of turns */
  assert_true(may_alias(&s, "p", "a"));
  assert_true(may_alias(&s, "q", "a"));
  assert_false(may_alias(&s, "p", "b"));
  assert_true(may_contain(&s, "l", "e"));
  const kiln_node *branch = val(&s, "r")->node;
  assert_true(kiln_alias_node_writes(s.alias, branch)); /* something in it does */
  assert_true(kiln_alias_writes_to(s.alias, branch, val(&s, "b")));
  assert_false(kiln_alias_writes_to(s.alias, branch, val(&s, "a")));
  subject_deinit(&s);
}

static void test_escapes(void **state) {
  subject s;
  subject_init(&s, *state,
               "graph(%self : __torch__.M, %x : Tensor, %xs : Tensor[], %i : int):\n"
               "  %a : Tensor = test::new(%x)\n"
               "  %b : Tensor = test::new(%x)\n"
               "  %c : Tensor = test::new(%x)\n"
               "  %d : Tensor = test::new(%x)\n"
               "  %v : Tensor = test::view(%b)\n"
               "   = test::keep(%b)\n"
               "  %w : Tensor = prim::GetAttr[name=\"w\"](%self)\n"
               "  %r : Tensor = prim::Unknown(%c)\n"
               "  %l : Tensor[] = test::append(%xs, %d)\n"
               "  return (%i)\n");
  assert_false(wild(&s, "a"));
  assert_true(wild(&s, "b"));
  assert_true(wild(&s, "v"));
  assert_true(may_alias(&s, "v", "x"));
  assert_true(wild(&s, "w"));
  assert_true(may_alias(&s, "w", "x"));
  assert_true(wild(&s, "c"));
  assert_true(wild(&s, "r"));
  assert_true(wild(&s, "d"));    /* it is in a list from outside */
  assert_true(written(&s, "x")); /* by the unknown operator, for all one knows */
  assert_false(written(&s, "a"));
  subject_deinit(&s);
}

/* Elements of a new list are new and may be each other; a list in a list is not that list. */
static void test_new_lists(void **state) {
  subject s;
  subject_init(&s, *state,
               "graph(%x : Tensor, %i : int):\n"
               "  %l : Tensor[] = test::fresh(%x)\n"
               "  %a : Tensor = test::get(%l, %i)\n"
               "  %b : Tensor = test::get(%l, %i)\n"
               "  %w : Tensor = test::write_(%a, %x)\n"
               "  %p : Tensor[] = prim::ListConstruct(%x)\n"
               "  %q : Tensor[] = prim::ListConstruct(%x)\n"
               "  %ll : Tensor[][] = prim::ListConstruct(%p)\n"
               "  %n : Tensor[][] = test::append(%ll, %q)\n"
               "  %g : Tensor[] = test::get(%ll, %i)\n"
               "  return (%i)\n");
  assert_true(may_alias(&s, "a", "b"));
  assert_true(written(&s, "b"));
  assert_false(may_alias(&s, "a", "x"));
  assert_false(written(&s, "x"));
  assert_true(may_alias(&s, "g", "q"));
  assert_false(may_alias(&s, "g", "ll"));
  subject_deinit(&s);
}

/* What goes into a result alone is found there, and nowhere else. */
static void test_pieces_do_not_escape(void **state) {
  subject s;
  subject_init(&s, *state,
               "graph(%x : Tensor, %y : Tensor, %i : int):\n"
               "  %a : Tensor = test::new(%x)\n"
               "  %l : Tensor[] = test::split(%a)\n"
               "  %b : Tensor = test::get(%l, %i)\n"
               "  %w : Tensor = test::write_(%y, %x)\n"
               "  return (%i)\n");
  assert_true(may_alias(&s, "a", "b"));
  assert_false(wild(&s, "a"));
  assert_false(written(&s, "a"));
  subject_deinit(&s);
}

/* Of what a tuple holds an element may be that of its kind alone. */
static void test_kinds_in_tuples(void **state) {
  subject s;
  subject_init(&s, *state,
               "graph(%x : Tensor, %i : int):\n"
               "  %p : Tensor = test::new(%x)\n"
               "  %l : Tensor[] = prim::ListConstruct(%p)\n"
               "  %q : Tensor = test::new(%x)\n"
               "  %t : (Tensor[], Tensor) = prim::TupleConstruct(%l, %q)\n"
               "  %b : Tensor = prim::TupleIndex(%t, %i)\n"
               "  return (%i)\n");
  assert_true(may_alias(&s, "b", "q"));
  assert_false(may_contain(&s, "b", "p"));
  subject_deinit(&s);
}

/* What the end of a body makes is there at its beginning, the first round aside. */
static void test_carried_from_nothing(void **state) {
  subject s;
  subject_init(&s, *state,
               "graph(%x : Tensor, %i : int, %c : bool):\n"
               "  %none : NoneType = prim::Constant()\n"
               "  %r : Tensor? = prim::Loop(%i, %c, %none)\n"
               "    block0(%k : int, %a : Tensor?):\n"
               "      %v : Tensor = prim::unchecked_unwrap_optional(%a)\n"
               "      %u : Tensor = test::view(%v)\n"
               "      %w : Tensor = test::write_(%u, %x)\n"
               "      %n : Tensor = test::new(%x)\n"
               "      -> (%c, %n)\n"
               "  return (%i)\n");
  assert_true(may_alias(&s, "u", "n"));
  assert_true(written(&s, "n"));
  assert_false(written(&s, "x"));
  subject_deinit(&s);
}

/* A result that its schema does not know may be anything. */
static void test_more_results_than_said(void **state) {
  fixture *f = *state;
  subject s = {.f = f,
               .text = "graph(%x : Tensor):\n"
                       "  %a : Tensor, %b : Tensor = test::new(%x)\n"
                       "  return (%x)\n"};
  s.graph = parse(f, s.text); /* the verifier would refuse it */
  subject_body(f, &s);
  assert_false(wild(&s, "a"));
  assert_true(wild(&s, "b"));
  subject_deinit(&s);
}

/* Without steps nothing is collected, and neither is what a node reads that was made later. */
static void test_collecting_gives_up(void **state) {
  subject s;
  subject_init(&s, *state,
               "graph(%x : Tensor):\n"
               "  %a : Tensor = test::new(%x)\n"
               "  %b : Tensor = test::new(%a)\n"
               "  %w : Tensor = test::write_(%a, %x)\n"
               "  return (%b)\n");
  static const struct {
    const char *name;
    int64_t steps;
    bool enough;
  } rows[] = {{"b", 0, false}, {"b", 1, false}, {"b", 2, true}, {"w", 0, false}, {"w", 9, true}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) { /* %b reads a place that %w writes */
    kiln_alias_accesses got = {0};
    int64_t left = rows[i].steps;
    const kiln_node *node = val(&s, rows[i].name)->node;
    assert_true(kiln_alias_collect(s.alias, s.f->arena, node, &left, &got) == rows[i].enough);
    if (rows[i].enough) assert_int_equal(got.writes.count, *rows[i].name == 'w');
  }
  kiln_map map = kiln_map_in(s.f->arena);
  kiln_node *made = kiln_node_copy(s.graph, val(&s, "a")->node, &map);
  kiln_node *reader = kiln_node_copy(s.graph, val(&s, "b")->node, &map);
  kiln_node_insert_before(made, val(&s, "w")->node);
  kiln_node_insert_after(reader, made);
  kiln_node_set_input(reader, 0, made->outputs[0]);
  kiln_alias_accesses accesses = {0};
  int64_t steps = 100;
  assert_false(kiln_alias_collect(s.alias, s.f->arena, reader, &steps, &accesses));
  subject_deinit(&s);
}

/* Writing an attribute writes the object, not the tensors of the graph. */
static void test_set_attr(void **state) {
  subject s;
  subject_init(&s, *state,
               "graph(%self : __torch__.M, %x : Tensor):\n"
               "  %a : Tensor = test::new(%x)\n"
               "   = prim::SetAttr[name=\"w\"](%self, %a)\n"
               "  %w : Tensor = prim::GetAttr[name=\"w\"](%self)\n"
               "  return (%w)\n");
  assert_true(may_alias(&s, "w", "a"));
  assert_false(written(&s, "x"));
  assert_true(written(&s, "self"));
  const kiln_node *set = val(&s, "a")->node->next, *get = val(&s, "w")->node;
  assert_true(keep_order(s.f, s.alias, set, get));
  subject_deinit(&s);
}

static void test_constants(void **state) {
  subject s;
  subject_init(&s, *state,
               "graph(%x : Tensor):\n"
               "  %a : Float(2, strides=[1], requires_grad=0, device=cpu) = "
               "prim::Constant[value={[1., 2.]}]()\n"
               "  %b : Float(2, strides=[1], requires_grad=0, device=cpu) = "
               "prim::Constant[value={[1., 2.]}]()\n"
               "  %u : Tensor = test::write_(%a, %x)\n"
               "  return (%x)\n");
  assert_true(written(&s, "a"));
  assert_false(written(&s, "b"));
  assert_false(may_alias(&s, "a", "x"));
  kiln_ivalue shared = *kiln_ir_value_constant(val(&s, "a"));
  kiln_node_attr(val(&s, "b")->node, "value")->u.value = shared; /* two constants, one tensor */
  subject_body(s.f, &s);
  assert_true(may_alias(&s, "a", "b"));
  subject_deinit(&s);
}

static void test_groups(void **state) {
  subject s;
  subject_init(&s, *state,
               "graph(%x : Tensor):\n"
               "  %a : Tensor = test::new(%x)\n"
               "  %g : Tensor, %h : Tensor = prim::TensorExprGroup_0(%a)\n"
               "  %t : Float(2, strides=[1], requires_grad=0, device=cpu), %ok : bool = "
               "prim::TypeCheck[types=[Float(2, strides=[1], requires_grad=0, device=cpu)]](%a)\n"
               "  return (%x)\n"
               "with prim::TensorExprGroup_0 = graph(%p : Tensor):\n"
               "  %q : Tensor = aten::tanh(%p)\n"
               "  return (%q, %p)\n");
  assert_false(may_alias(&s, "g", "a"));
  assert_true(may_alias(&s, "h", "a")); /* handed through */
  assert_true(may_alias(&s, "t", "a"));
  assert_false(kiln_alias_node_writes(s.alias, val(&s, "g")->node));
  subject_deinit(&s);
}

static void test_elements_written(void **state) {
  subject s;
  subject_init(&s, *state,
               "graph(%x : Tensor):\n"
               "  %a : Tensor = test::new(%x)\n"
               "  %b : Tensor = test::new(%x)\n"
               "  %l : Tensor[] = prim::ListConstruct(%a)\n"
               "   = test::write_all_(%l)\n"
               "  return (%x)\n");
  assert_true(written(&s, "a"));
  assert_false(written(&s, "b"));
  subject_deinit(&s);
}

/* -- Random programs: a machine whose tensors are cells with a number -- */

enum { MAX_VALUES = 64, CELLS = 4096 };

typedef struct machine {
  uint64_t cells[CELLS];
  int cell_count;
  kiln_map at; /* value -> cell + 1, or list */
} machine;

typedef struct list_value {
  int count, cells[64];
} list_value;

static int cell_of(machine *m, const kiln_ir_value *v) {
  return (int)(intptr_t)kiln_map_find_ptr(&m->at, v) - 1;
}
static void set_cell(machine *m, const kiln_ir_value *v, int cell) {
  kiln_map_set_ptr(&m->at, v, (void *)(intptr_t)(cell + 1));
}
static int new_cell(machine *m, uint64_t x) {
  assert_true(m->cell_count < CELLS);
  m->cells[m->cell_count] = x;
  return m->cell_count++;
}

static void step(machine *m, const kiln_node *n) {
  kiln_str name = n->name;
  const kiln_ir_value *in = n->input_count ? kiln_node_input(n, 0) : NULL;
  if (kiln_str_is(name, "test::new")) {
    set_cell(m, n->outputs[0], new_cell(m, kiln_hash_mix(m->cells[cell_of(m, in)], 1)));
  } else if (kiln_str_is(name, "test::view")) {
    set_cell(m, n->outputs[0], cell_of(m, in));
  } else if (kiln_str_is(name, "test::write_")) {
    int cell = cell_of(m, in);
    m->cells[cell] = kiln_hash_mix(m->cells[cell], m->cells[cell_of(m, kiln_node_input(n, 1))] + 7);
    set_cell(m, n->outputs[0], cell);
  } else if (kiln_str_is(name, "prim::ListConstruct")) {
    list_value *l = KILN_NEW(m->at.arena, list_value);
    for (int i = 0; i < n->input_count; i++) {
      l->cells[l->count++] = cell_of(m, kiln_node_input(n, i));
    }
    kiln_map_set_ptr(&m->at, n->outputs[0], l);
  } else if (kiln_str_is(name, "test::append")) {
    list_value *l = kiln_map_find_ptr(&m->at, in);
    l->cells[l->count++] = cell_of(m, kiln_node_input(n, 1));
    kiln_map_set_ptr(&m->at, n->outputs[0], l);
  } else if (kiln_str_is(name, "test::get")) { /* the last element */
    const list_value *l = kiln_map_find_ptr(&m->at, in);
    set_cell(m, n->outputs[0], l->cells[l->count - 1]);
  }
}

/* A hash of everything that goes out. With `same`, the inputs are one tensor. */
static uint64_t run(kiln_arena *arena, const kiln_graph *g, bool same) {
  machine *m = KILN_NEW(arena, machine);
  m->at = kiln_map_in(arena);
  for (int i = 0; i < kiln_graph_input_count(g); i++) {
    const kiln_ir_value *v = kiln_graph_input(g, i);
    if (v->type->kind != KILN_TYPE_TENSOR) continue;
    set_cell(m, v, same && m->cell_count ? 0 : new_cell(m, (uint64_t)i + 100));
  }
  int inputs = m->cell_count;
  for (const kiln_node *n = g->top->first; n; n = n->next) step(m, n);
  uint64_t h = 0;
  for (int i = 0; i < inputs; i++) h = kiln_hash_mix(h, m->cells[i]);
  for (int i = 0; i < kiln_graph_output_count(g); i++) {
    h = kiln_hash_mix(h, m->cells[cell_of(m, kiln_graph_output(g, i))]);
  }
  return h;
}

static uint64_t next_random(uint64_t *seed) {
  *seed = *seed * 6364136223846793005u + 1442695040888963407u;
  return *seed >> 33;
}

/* Text of a random program; lists are never empty. */
static char *random_program(uint64_t *seed) {
  char *text = malloc(8192);
  int tensors = 2, lists = 0, at = 0;
  at += sprintf(text, "graph(%%t0 : Tensor, %%t1 : Tensor, %%i : int):\n");
  for (int k = 0; k < 14; k++) {
    int a = (int)(next_random(seed) % (uint64_t)tensors);
    int b = (int)(next_random(seed) % (uint64_t)tensors);
    int l = lists ? (int)(next_random(seed) % (uint64_t)lists) : 0;
    uint64_t what = next_random(seed) % (lists ? 6 : 4);
    const char *format[] = {"  %%t%d : Tensor = test::new(%%t%d)\n",
                            "  %%t%d : Tensor = test::view(%%t%d)\n",
                            "  %%t%d : Tensor = test::write_(%%t%d, %%t%d)\n",
                            "  %%l%d : Tensor[] = prim::ListConstruct(%%t%d, %%t%d)\n",
                            "  %%x%d : Tensor[] = test::append(%%l%d, %%t%d)\n",
                            "  %%t%d : Tensor = test::get(%%l%d, %%i)\n"};
    const char *f = format[what];
    if (what < 2) at += sprintf(text + at, f, tensors++, a);
    if (what == 2) at += sprintf(text + at, f, tensors++, a, b);
    if (what == 3) at += sprintf(text + at, f, lists++, a, b);
    if (what == 4) at += sprintf(text + at, f, k, l, a);
    if (what == 5) at += sprintf(text + at, f, tensors++, l);
  }
  sprintf(text + at, "  return (%%t%d, %%t%d)\n", tensors - 1, tensors / 2);
  return text;
}

static kiln_node *node_at(const kiln_graph *g, uint64_t index) {
  kiln_node *n = g->top->first;
  while (index-- && n->next) n = n->next;
  return n;
}

typedef struct random_args {
  subject *s;
  uint64_t *seed;
  int done, refused;
} random_args;

static void random_moves(fixture *f, void *arg) {
  random_args *r = arg;
  const kiln_graph *g = r->s->graph;
  uint64_t apart = run(f->arena, g, false), same = run(f->arena, g, true);
  for (int k = 0; k < 20; k++) {
    kiln_node *node = node_at(g, next_random(r->seed) % 14), *next = node->next;
    if (!next) continue;
    if (keep_order(f, r->s->alias, node, next)) {
      r->refused++;
      continue;
    }
    kiln_node_detach(node);
    kiln_node_insert_after(node, next);
    r->done++;
    assert_ok(kiln_graph_verify(g));
    assert_true(run(f->arena, g, false) == apart);
    assert_true(run(f->arena, g, true) == same);
  }
}

static void test_random_moves(void **state) {
  uint64_t seed = 42;
  int done = 0, refused = 0;
  for (int i = 0; i < 400; i++) {
    subject s;
    char *text = random_program(&seed);
    subject_init(&s, *state, text);
    random_args r = {&s, &seed, 0, 0};
    random_moves(s.f, &r);
    done += r.done;
    refused += r.refused;
    subject_deinit(&s);
    free(text);
  }
  print_message("%d moves, %d refused\n", done, refused);
  assert_true(done > 1000 && refused > 500); /* it is neither too shy nor too bold to be a test */
}

/* -- Size -- */

static void test_large(void **state) {
  fixture *f = *state;
  enum { COUNT = 6000 };
  char *text = malloc(COUNT * 64);
  size_t at = (size_t)sprintf(text, "graph(%%t0 : Tensor, %%i : int):\n"
                                    "  %%l : Tensor[] = prim::ListConstruct()\n");
  for (int k = 1; k < COUNT; k++) {
    const char *format = k % 3 == 0    ? "  %%t%d : Tensor = test::view(%%t%d)\n"
                         : k % 50 == 1 ? "  %%t%d : Tensor = test::write_(%%t%d, %%t0)\n"
                                       : "  %%t%d : Tensor = test::new(%%t%d)\n";
    at += (size_t)sprintf(text + at, format, k, k - 1);
    if (k % 4 == 0) {
      at += (size_t)sprintf(text + at, "  %%a%d : Tensor[] = test::append(%%l, %%t%d)\n", k, k);
    }
  }
  sprintf(text + at, "  return (%%l)\n");
  subject s;
  subject_init(&s, f, text);
  assert_true(written(&s, "t1"));
  assert_true(may_contain(&s, "l", "t4"));
  assert_true(kiln_arena_bytes(f->arena) < (size_t)64 << 20);
  subject_deinit(&s);
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_views),
      cmocka_unit_test(test_inputs_written),
      cmocka_unit_test(test_containers),
      cmocka_unit_test(test_control),
      cmocka_unit_test(test_escapes),
      cmocka_unit_test(test_set_attr),
      cmocka_unit_test(test_constants),
      cmocka_unit_test(test_groups),
      cmocka_unit_test(test_elements_written),
      cmocka_unit_test(test_new_lists),
      cmocka_unit_test(test_more_results_than_said),
      cmocka_unit_test(test_carried_from_nothing),
      cmocka_unit_test(test_kinds_in_tuples),
      cmocka_unit_test(test_pieces_do_not_escape),
      cmocka_unit_test(test_collecting_gives_up),
      cmocka_unit_test(test_random_moves),
      cmocka_unit_test(test_large),
  };
  return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
