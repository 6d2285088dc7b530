/* bytecode_test.c: plans made of textual graphs, read as `kiln graph --stage bytecode` prints them.
 *
 * What is expected follows from the rules of bytecode.h: a register goes back at the last use,
 * which takes the value out (`!`, or `^` where its memory may take the result); the lowest free
 * register is taken first; a branch drops what only the other one uses; the results of a branch or
 * of a loop's body are made in their registers.
 */
#include "test/unit/jit/bytecode_support.h"

/* -- Straight lines -- */

static void moves_at_last_use(void **state) {
  check(*state,
        "graph(%x : Tensor, %y : Tensor):\n"
        "  %a : Tensor = aten::mul(%x, %y)\n"
        "  %b : Tensor = aten::mul(%a, %x)\n"
        "  %c : Tensor = aten::mul(%b, %b)\n"
        "  %d : Tensor = aten::mul(%c, %y)\n"
        "  return (%d)\n",
        "plan p: 2 arguments, 3 registers, 5 instructions\n"
        "   0 OP aten::mul.Tensor r0 r1 => r2\n"
        "   1 OP aten::mul.Tensor r2! r0! => r0\n"
        "   2 OP aten::mul.Tensor r0 r0! => r0\n" /* of two reads only one takes it */
        "   3 OP aten::mul.Tensor r0! r1! => r0\n"
        "   4 RET r0!\n");
}

/* Numbers hold no reference: their registers go back without a move. */
static void numbers_are_not_moved(void **state) {
  check(*state,
        "graph(%n : int, %m : int):\n"
        "  %a : int = aten::add(%n, %m)\n"
        "  %b : int = aten::mul(%a, %m)\n"
        "  return (%b)\n",
        "plan p: 2 arguments, 2 registers, 3 instructions\n"
        "   0 OP aten::add.int r0 r1 => r0\n"
        "   1 OP aten::mul.int r0 r1 => r0\n"
        "   2 RET r0\n");
}

static void drops_what_nobody_uses(void **state) {
  check(*state,
        "graph(%x : Tensor, %unused : Tensor, %n : int):\n"
        "  %a : Tensor, %b : Tensor = aten::max(%x, %n, %n)\n"
        "  return (%a)\n",
        "plan p: 3 arguments, 3 registers, 3 instructions\n"
        "   0 DROP r1\n"
        "   1 OP aten::max r0! r2 r2 => r0 _\n"
        "   2 RET r0!\n");
}

static void constants_are_shared(void **state) {
  check(*state,
        "graph(%x : Tensor):\n"
        "  %one : int = prim::Constant[value=1]()\n"
        "  %none : NoneType = prim::Constant()\n"
        "  %a : Tensor = aten::add(%x, %one, %one)\n"
        "  %b : Tensor = aten::softmax(%a, %one, %none)\n"
        "  return (%b)\n",
        "plan p: 1 argument, 1 register, 3 instructions\n"
        "  c0 = 1\n"
        "  c1 = None\n"
        "   0 OP aten::add.Scalar r0! c0 c0 => r0\n"
        "   1 OP aten::softmax.int r0! c0 c1 => r0\n"
        "   2 RET r0!\n");
}

static void several_results_are_a_tuple(void **state) {
  check(*state,
        "graph(%x : Tensor, %y : Tensor):\n"
        "  return (%y, %x, %y)\n",
        "plan p: 2 arguments, 2 registers, 2 instructions\n"
        "   0 TUPLE (Tensor, Tensor, Tensor) r1 r0! r1! => r0\n"
        "   1 RET r0!\n");
  check(*state, "graph():\n  return ()\n",
        "plan p: 0 arguments, 0 registers, 1 instruction\n"
        "  c0 = None\n"
        "   0 RET c0\n");
}

/* -- Control flow -- */

/* %x dies in the branch that uses it, and at the start of the other; both make %r in its place. */
static void branches(void **state) {
  check(*state,
        "graph(%c : bool, %x : Tensor, %y : Tensor):\n"
        "  %r : Tensor = prim::If(%c)\n"
        "    block0():\n"
        "      %a : Tensor = aten::relu(%x)\n"
        "      -> (%a)\n"
        "    block1():\n"
        "      %b : Tensor = aten::neg(%y)\n"
        "      -> (%b)\n"
        "  return (%r)\n",
        "plan p: 3 arguments, 4 registers, 7 instructions\n"
        "   0 JF ->4 r0\n"
        "   1 DROP r2\n"
        "   2 OP aten::relu r1^ => r3\n"
        "   3 JMP ->6\n"
        "   4 DROP r1\n"
        "   5 OP aten::neg r2^ => r3\n"
        "   6 RET r3!\n");
}

/* A result in register 0 frees it as any other. */
static void branch_into_the_first_register(void **state) {
  check(*state,
        "graph(%x : Tensor, %c : bool, %y : Tensor):\n"
        "  %zero : int = prim::Constant[value=0]()\n"
        "   = prim::Print(%x)\n"
        "  %r : Tensor = prim::If(%c)\n"
        "    block0():\n"
        "      %a : Tensor = aten::neg(%y)\n"
        "      -> (%a)\n"
        "    block1():\n"
        "      %b : Tensor = aten::relu(%y)\n"
        "      -> (%b)\n"
        "  %s : Tensor = aten::unsqueeze(%r, %zero)\n"
        "  %t : Tensor = aten::tanh(%s)\n"
        "  return (%t)\n",
        "plan p: 3 arguments, 3 registers, 8 instructions\n"
        "  c0 = 0\n"
        "   0 OP prim::Print r0!\n"
        "   1 JF ->4 r1\n"
        "   2 OP aten::neg r2^ => r0\n"
        "   3 JMP ->5\n"
        "   4 OP aten::relu r2^ => r0\n"
        "   5 OP aten::unsqueeze r0! c0 => r0\n"
        "   6 OP aten::tanh r0! => r0\n"
        "   7 RET r0!\n");
}

static void branch_without_else(void **state) {
  check(*state,
        "graph(%c : bool, %xs : Tensor[], %x : Tensor):\n"
        "   = prim::If(%c)\n"
        "    block0():\n"
        "      %ys : Tensor[] = aten::append(%xs, %x)\n"
        "      -> ()\n"
        "    block1():\n"
        "      -> ()\n"
        "  return (%xs)\n",
        "plan p: 3 arguments, 3 registers, 5 instructions\n"
        "   0 JF ->3 r0\n"
        "   1 OP aten::append.t r1 r2! => _\n"
        "   2 JMP ->4\n"
        "   3 DROP r2\n"
        "   4 RET r1!\n");
}

/* A counted loop: its condition needs no register, the next value is made where the old one was. */
static void counted_loop(void **state) {
  check(*state,
        "graph(%n : int, %x : Tensor, %w : Tensor):\n"
        "  %true : bool = prim::Constant[value=1]()\n"
        "  %r : Tensor = prim::Loop(%n, %true, %x)\n"
        "    block0(%i : int, %a : Tensor):\n"
        "      %b : Tensor = aten::mul(%a, %w)\n"
        "      -> (%true, %b)\n"
        "  return (%r)\n",
        "plan p: 3 arguments, 5 registers, 8 instructions\n"
        "  c0 = 0\n"
        "  c1 = True\n"
        "   0 LOADC c0 => r3\n"
        "   1 MOVE r1! => r4\n"
        "   2 LOOP ->6 r3 r0 c1\n"
        "   3 OP aten::mul.Tensor r4! r2 => r4\n"
        "   4 INC => r3\n"
        "   5 JMP ->2\n"
        "   6 DROP r2\n"
        "   7 RET r4!\n");
}

/* A loop that asks at each turn carries its condition in a register. What it started with keeps its
 * own, r1, until the end. */
static void asking_loop(void **state) {
  check(*state,
        "graph(%n : int, %go : bool, %k : int):\n"
        "  %r : int = prim::Loop(%n, %go, %k)\n"
        "    block0(%i : int, %a : int):\n"
        "      %b : int = aten::add(%a, %i)\n"
        "      %c : bool = aten::lt(%b, %n)\n"
        "      -> (%c, %b)\n"
        "  return (%r)\n",
        "plan p: 3 arguments, 7 registers, 9 instructions\n"
        "  c0 = 0\n"
        "   0 LOADC c0 => r3\n"
        "   1 MOVE r1 r2 => r4 r5\n"
        "   2 LOOP ->8 r3 r0 r4\n"
        "   3 OP aten::add.int r5 r3 => r5\n"
        "   4 OP aten::lt.int r5 r0 => r6\n"
        "   5 MOVE r6 => r4\n"
        "   6 INC => r3\n"
        "   7 JMP ->2\n"
        "   8 RET r5\n");
}

/* -- Donation -- */

/* The last use, of a register that nothing else of the instruction reads. */
static void donors_end(void **state) {
  check(*state,
        "graph(%x : Tensor, %y : Tensor):\n"
        "  %a : Tensor = aten::mul(%x, %y)\n"
        "  %b : Tensor = aten::relu(%a)\n"
        "  %c : Tensor = aten::relu(%x)\n"
        "  %d : Tensor = aten::neg(%a)\n"
        "  %l : Tensor[] = prim::ListConstruct(%b, %c, %d)\n"
        "  return (%l)\n",
        "plan p: 2 arguments, 3 registers, 6 instructions\n"
        "   0 OP aten::mul.Tensor r0 r1! => r1\n"
        "   1 OP aten::relu r1 => r2\n"
        "   2 OP aten::relu r0^ => r0\n"
        "   3 OP aten::neg r1^ => r1\n"
        "   4 LIST Tensor[] r2! r0! r1! => r0\n"
        "   5 RET r0!\n");
  check(*state,
        "graph(%x : Tensor, %y : Tensor):\n"
        "  %a : Tensor = aten::mul(%x, %y)\n"
        "  %g : Float(2) = prim::TensorExprGroup_0(%a, %a)\n"
        "  %h : Float(2) = prim::TensorExprGroup_1(%y, %g)\n"
        "  %i : Float(2), %j : Float(2), %k : Float(2) = prim::TensorExprGroup_2(%h, %x)\n"
        "  %l : Tensor[] = prim::ListConstruct(%i, %j, %k, %y)\n"
        "  return (%l)\n"
        "with prim::TensorExprGroup_0 = graph(%a : Float(2), %b : Float(2)):\n"
        "  %c : Float(2) = aten::mul(%a, %b)\n"
        "  return (%c)\n"
        "with prim::TensorExprGroup_1 = graph(%a : Float(2), %b : Float(2)):\n"
        "  %c : Float(2) = aten::mul(%a, %b)\n"
        "  return (%c)\n"
        "with prim::TensorExprGroup_2 = graph(%a : Float(2), %b : Float(2)):\n"
        "  %c : Float(2) = aten::mul(%a, %b)\n"
        "  %d : Float(2) = aten::mul(%c, %b)\n"
        "  %e : Float(2) = aten::mul(%d, %b)\n"
        "  return (%c, %d, %e)\n",
        "plan p: 2 arguments, 4 registers, 6 instructions\n"
        "   0 OP aten::mul.Tensor r0 r1 => r2\n"
        "   1 GROUP G r2 r2! => r2\n" /* read twice */
        "   2 GROUP G r1 r2^ => r2\n" /* the first goes on */
        "   3 GROUP G r2^ r0^ => r0 r2 r3\n"
        "   4 LIST Tensor[] r0! r2! r3! r1! => r0\n"
        "   5 RET r0!\n");
}

/* What an object or the plan has is not asked for; what is made of it is. */
static void held_memory_is_no_donor(void **state) {
  check(*state,
        "graph(%x : Tensor):\n"
        "  %one : int = prim::Constant[value=1]()\n"
        "  %c : Float(2) = prim::Constant[value={[1, 2]}]()\n"
        "  %v : Tensor = aten::unsqueeze(%c, %one)\n"
        "  %r : Tensor = aten::relu(%v)\n"
        "  %w : Tensor = aten::unsqueeze(%x, %one)\n"
        "  %s : Tensor = aten::relu(%w)\n"
        "  %t : Tensor = aten::relu(%s)\n"
        "  %l : Tensor[] = prim::ListConstruct(%r, %t)\n"
        "  return (%l)\n",
        "plan p: 1 argument, 2 registers, 7 instructions\n"
        "  c0 = <Tensor>\n"
        "  c1 = 1\n"
        "   0 OP aten::unsqueeze c0 c1 => r1\n"
        "   1 OP aten::relu r1! => r1\n"
        "   2 OP aten::unsqueeze r0! c1 => r0\n"
        "   3 OP aten::relu r0^ => r0\n"
        "   4 OP aten::relu r0^ => r0\n"
        "   5 LIST Tensor[] r1! r0! => r0\n"
        "   6 RET r0!\n");
  kiln_class_attribute weight = {.name = KILN_STR("w"), .type = kiln_type_basic(KILN_TYPE_TENSOR)};
  kiln_type *m =
      kiln_type_nominal(((fixture *)*state)->types, KILN_TYPE_CLASS, KILN_STR("__torch__.M"));
  m->cls->attributes = &weight;
  m->cls->attribute_count = 1;
  check(*state,
        "graph(%i : int, %o : __torch__.M):\n"
        "  %w : Tensor = prim::GetAttr[name=\"w\"](%o)\n"
        "  %t : Tensor = aten::t(%w)\n"
        "  %r : Tensor = aten::relu(%t)\n"
        "  %s : Tensor = aten::relu(%r)\n"
        "  return (%s)\n",
        "plan p: 2 arguments, 2 registers, 5 instructions\n"
        "   0 GET_ATTR 0 r1! => r0\n"
        "   1 OP aten::t r0! => r0\n"
        "   2 OP aten::relu r0! => r0\n"
        "   3 OP aten::relu r0^ => r0\n"
        "   4 RET r0!\n");
}

/* -- What the executor puts in -- */

/* A refined value is the register of what was checked; the fallback's side moves what dies there.
 */
static void guards_and_groups(void **state) {
  check(*state,
        "graph(%x : Tensor, %y : Tensor):\n"
        "  %a : Float(2), %b : Float(2), %ok : bool = "
        "prim::TypeCheck[types=[Float(2), Float(2)]](%x, %y)\n"
        "  %r : Tensor = prim::If(%ok)\n"
        "    block0():\n"
        "      %g : Float(2) = prim::TensorExprGroup_0(%a, %b)\n"
        "      -> (%g)\n"
        "    block1():\n"
        "      %h : Tensor = aten::mul(%x, %y)\n"
        "      -> (%h)\n"
        "  return (%r)\n"
        "with prim::TensorExprGroup_0 = graph(%a : Float(2), %b : Float(2)):\n"
        "  %c : Float(2) = aten::mul(%a, %b)\n"
        "  return (%c)\n",
        "plan p: 2 arguments, 4 registers, 6 instructions\n"
        "   0 TYPECHECK guard 0 r0 r1 => r2\n"
        "   1 JF ->4 r2\n"
        "   2 GROUP G r0^ r1! => r3\n"
        "   3 JMP ->5\n"
        "   4 OP aten::mul.Tensor r0! r1! => r3\n"
        "   5 RET r3!\n");
}

/* A plan as text, which is freed. */
static void check_text(kiln_plan *plan, fixture *f, const char *expected) {
  kiln_text text = kiln_text_in(f->arena);
  kiln_plan_print(plan, &text);
  assert_string_equal(text.data, expected);
  kiln_plan_destroy(plan);
}

/* Where its guard was asked before, a plan has no check and no other side; what only that side
 * reads goes at once. */
static void a_guard_before_the_plan(void **state) {
  fixture *f = *state;
  static const char text[] =
      "graph(%x : Tensor, %y : Tensor, %z : Tensor):\n"
      "  %a : Float(2), %b : Float(2), %ok : bool = prim::TypeCheck[types=[Float(2), Float(2)]](%x,"
      " %y)\n"
      "  %r : Tensor, %s : Tensor = prim::If(%ok)\n"
      "    block0():\n"
      "      %g : Float(2) = prim::TensorExprGroup_0(%a, %b)\n"
      "      %h : Float(2) = aten::mul(%g, %g)\n"
      "      -> (%g, %h)\n"
      "    block1():\n"
      "      %i : Tensor = aten::mul(%x, %z)\n"
      "      -> (%i, %i)\n"
      "  %t : Tensor = aten::mul(%r, %s)\n"
      "  %u : Tensor = aten::mul(%t, %y)\n"
      "  return (%u)\n"
      "with prim::TensorExprGroup_0 = graph(%a : Float(2), %b : Float(2)):\n"
      "  %c : Float(2) = aten::mul(%a, %b)\n"
      "  return (%c)\n";
  const kiln_guard_maker none = {0};
  const kiln_guard_desc whole = {.hits = 1000};
  kiln_plan *plan;
  assert_ok(emit_behind(f, text, &none, &whole, NULL, &plan));
  assert_int_equal(plan->guard_count, 0);
  assert_int_equal(plan->groups[0].runs, 1000);
  check_text(plan, f,
             "plan p: 3 arguments, 5 registers, 6 instructions\n"
             "   0 DROP r2\n"
             "   1 GROUP G r0^ r1 => r3\n"
             "   2 OP aten::mul.Tensor r3 r3 => r4\n"
             "   3 OP aten::mul.Tensor r3! r4! => r0\n"
             "   4 OP aten::mul.Tensor r0! r1! => r0\n"
             "   5 RET r0!\n");
}

/* A group without a kernel is called where it stands: its results are a tuple if there are several.
 */
static void groups_without_kernels(void **state) {
  fixture *f = *state;
  static const char text[] = "graph(%x : Float(2)):\n"
                             "  %a : Float(2), %b : Float(2) = prim::TensorExprGroup_0(%x)\n"
                             "  %c : Float(2) = prim::TensorExprGroup_1(%b)\n"
                             "  %d : Float(2) = aten::mul(%a, %c)\n"
                             "  return (%d)\n"
                             "with prim::TensorExprGroup_0 = graph(%x : Float(2)):\n"
                             "  %a : Float(2) = aten::neg(%x)\n"
                             "  %b : Float(2) = aten::neg(%a)\n"
                             "  return (%a, %b)\n"
                             "with prim::TensorExprGroup_1 = graph(%x : Float(2)):\n"
                             "  %a : Float(2) = aten::neg(%x)\n"
                             "  return (%a)\n";
  const kiln_guard_maker none = {0};
  kiln_callable interpreted = {.name = "G"};
  kiln_plan *plan;
  assert_ok(emit_behind(f, text, &none, NULL, &interpreted, &plan));
  assert_int_equal(plan->group_count, 0);
  check_text(plan, f,
             "plan p: 1 argument, 3 registers, 5 instructions\n"
             "   0 CALL G r0! => r0\n"
             "   1 TUPLE_UNPACK r0! => r1 r2\n"
             "   2 CALL G r2! => r0\n"
             "   3 OP aten::mul.Tensor r1! r0! => r0\n"
             "   4 RET r0!\n");
}

/* A group is told of the guard that it stands behind, in whatever order checks and groups come. */
static void groups_know_their_guards(void **state) {
  fixture *f = *state;
  static const char text[] =
      "graph(%x : Tensor, %n : int):\n"
      "  %t : bool = prim::Constant[value=1]()\n"
      "  %a : Float(2), %ok.a : bool = prim::TypeCheck[types=[Float(2)]](%x)\n"
      "  %free : Float(2) = prim::TensorExprGroup_0(%x)\n"
      "   = prim::Loop(%n, %t)\n"
      "    block0(%i : int):\n"
      "      %b : Float(2), %ok.b : bool = prim::TypeCheck[types=[Float(2)]](%free)\n"
      "      %r1 : Tensor = prim::If(%ok.b)\n"
      "        block0():\n"
      "          %g1 : Float(2) = prim::TensorExprGroup_1(%b)\n"
      "          -> (%g1)\n"
      "        block1():\n"
      "          -> (%x)\n"
      "      -> (%t)\n"
      "  %c : Float(2), %ok.c : bool = prim::TypeCheck[types=[Float(2)]](%free)\n"
      "  %r2 : Tensor = prim::If(%ok.c)\n"
      "    block0():\n"
      "      %g2 : Float(2) = prim::TensorExprGroup_2(%c)\n"
      "      -> (%g2)\n"
      "    block1():\n"
      "      -> (%x)\n"
      "  %r3 : Tensor = prim::If(%ok.a)\n"
      "    block0():\n"
      "      %g3 : Float(2) = prim::TensorExprGroup_3(%a)\n"
      "      -> (%g3)\n"
      "    block1():\n"
      "      -> (%x)\n"
      "  %r4 : Tensor = prim::If(%t)\n"
      "    block0():\n"
      "      %g4 : Float(2) = prim::TensorExprGroup_4(%a)\n"
      "      -> (%g4)\n"
      "    block1():\n"
      "      -> (%x)\n"
      "  return (%r2)\n"
      "with prim::TensorExprGroup_0 = graph(%a : Float(2)):\n"
      "  %c : Float(2) = aten::mul(%a, %a)\n"
      "  return (%c)\n"
      "with prim::TensorExprGroup_1 = graph(%a : Float(2)):\n"
      "  %c : Float(2) = aten::mul(%a, %a)\n"
      "  return (%c)\n"
      "with prim::TensorExprGroup_2 = graph(%a : Float(2)):\n"
      "  %c : Float(2) = aten::mul(%a, %a)\n"
      "  return (%c)\n"
      "with prim::TensorExprGroup_3 = graph(%a : Float(2)):\n"
      "  %c : Float(2) = aten::mul(%a, %a)\n"
      "  return (%c)\n"
      "with prim::TensorExprGroup_4 = graph(%a : Float(2)):\n"
      "  %c : Float(2) = aten::mul(%a, %a)\n"
      "  return (%c)\n";
  kiln_counter_book book;
  kiln_counter_book_init(&book, f->env->mem);
  const kiln_guard_maker maker = {.book = &book};
  kiln_plan *plan;
  assert_ok(emit_behind(f, text, &maker, NULL, NULL, &plan));
  assert_int_equal(plan->guard_count, 3);
  assert_int_equal(plan->group_count, 5);
  const kiln_guard_desc *g = plan->guards;
  const uint32_t want[] = {0, g[1].hits, g[2].hits, g[0].hits, 0};
  for (int i = 0; i < 5; i++) assert_int_equal(plan->groups[i].runs, want[i]);
  assert_true(g[0].hits && g[0].hits != g[1].hits && g[1].hits != g[2].hits);
  kiln_plan bad = *plan;
  kiln_guard_desc guards[3] = {g[0], g[1], g[2]};
  guards[1].at = g[2].at; /* operands of another instruction */
  bad.guards = guards;
  assert_error(kiln_plan_verify(&bad), KILN_INTERNAL, "TYPECHECK");
  guards[1] = g[1];
  assert_ok(kiln_plan_verify(&bad));
  kiln_plan_destroy(plan);
  kiln_counter_book_deinit(&book);
}

/* Without a sink a profile node is a name only. */
static void profile_nodes(void **state) {
  check(*state,
        "graph(%x : Tensor):\n"
        "  %1 : Tensor = prim::profile(%x)\n"
        "  %2 : Tensor = aten::relu(%1)\n"
        "   = prim::profile()\n"
        "  return (%2)\n",
        "plan p: 1 argument, 1 register, 2 instructions\n"
        "   0 OP aten::relu r0^ => r0\n"
        "   1 RET r0!\n");
}

/* What may not be set is checked where it is read, but for a guard, which looks itself. */
static void guards_look_at_what_is_unset(void **state) {
  static const char head[] = "graph(%x : Tensor, %c : bool):\n"
                             "  %u : Tensor = prim::Uninitialized()\n"
                             "  %v : Tensor = prim::If(%c)\n"
                             "    block0():\n      -> (%x)\n"
                             "    block1():\n      -> (%u)\n";
  static const char *const tails[] = {
      "  %a : Float(2), %ok : bool = prim::TypeCheck[types=[Float(2)]](%v)\n  return (%ok)\n",
      "  %r : Tensor = aten::relu(%v)\n  return (%r)\n"};
  for (int i = 0; i < 2; i++) {
    char text[1024];
    kiln_plan *plan;
    snprintf(text, sizeof text, "%s%s", head, tails[i]);
    assert_ok(emit(*state, text, 0, &plan));
    void *arg = plan;
    print_plan(*state, &arg);
    kiln_plan_destroy(plan);
    assert_true((strstr(arg, " CHECK ") != NULL) == (i == 1));
  }
}

/* What a side that raises gives is never looked at. */
static void raising_sides_give_nothing(void **state) {
  check(*state,
        "graph(%c : bool, %x : Tensor):\n"
        "  %s : str = prim::Constant[value=\"no\"]()\n"
        "  %none : NoneType = prim::Constant()\n"
        "  %v : Tensor = prim::If(%c)\n"
        "    block0():\n      -> (%x)\n"
        "    block1():\n"
        "      %u : Tensor = prim::Uninitialized()\n"
        "       = prim::RaiseException(%s, %none)\n"
        "      -> (%u)\n"
        "  %r : Tensor = aten::relu(%v)\n"
        "  return (%r)\n",
        "plan p: 2 arguments, 3 registers, 8 instructions\n"
        "  c0 = no\n  c1 = None\n  c2 = None\n"
        "   0 JF ->3 r0\n   1 MOVE r1! => r2\n   2 JMP ->6\n"
        "   3 DROP r1\n"
        "   4 RAISE c0 c1\n"
        "   5 MOVE c2 => r2\n"
        "   6 OP aten::relu r2^ => r0\n" /* no CHECK before it */
        "   7 RET r0!\n");
}

/* Of a kernel that is wrapped there is one, however often it is called. */
static void kernels_are_wrapped_once(void **state) {
  fixture *f = *state;
  kiln_graph *graph = parse(f, "graph(%x : Tensor):\n"
                               "  %a : Tensor = aten::relu(%x)\n"
                               "  %b : Tensor = aten::relu(%a)\n"
                               "  return (%b)\n");
  kiln_bytecode_env env = {
      .env = f->env, .name = "p", .types = f->types, .group = fake_group, .quantised = true};
  kiln_plan *plan;
  assert_ok(kiln_bytecode_emit(graph, &env, &plan));
  kiln_graph_release(graph);
  assert_int_equal(plan->kernel_count, 1);
  kiln_plan_destroy(plan);
}

#define CAST(condition)                         \
  "  %r : int = prim::If(" condition ")\n"      \
  "    block0():\n"                             \
  "      %n : int = prim::unchecked_cast(%x)\n" \
  "      -> (%n)\n"                             \
  "    block1():\n"                             \
  "      -> (%zero)\n"                          \
  "  return (%r)\n"

/* Whether the plan checks a cast of %x under a condition. */
static bool is_checked(fixture *f, const char *condition) {
  char text[1024];
  kiln_plan *plan;
  snprintf(text, sizeof text,
           "graph(%%x : Any, %%c : bool, %%d : bool):\n"
           "  %%zero : int = prim::Constant[value=0]()\n"
           "  %%true : bool = prim::Constant[value=1]()\n"
           "  %%false : bool = prim::Constant[value=0]()\n"
           "  %%i : bool = prim::isinstance[types=[int]](%%x)\n"
           "%s",
           condition);
  assert_ok(emit(f, text, 0, &plan));
  void *arg = plan;
  print_plan(f, &arg);
  kiln_plan_destroy(plan);
  return strstr(arg, " CHECK ") != NULL;
}

/* A cast needs no check where what leads to it says as much, and no other. */
static void casts_are_proved(void **state) {
  fixture *f = *state;
  assert_false(is_checked(f, CAST("%i")));
  assert_true(is_checked(f, CAST("%c")));
  static const char both[] = "  %b : bool = prim::If(%i)\n"
                             "    block0():\n      -> (%c)\n"
                             "    block1():\n      -> (%false)\n" CAST("%b");
  static const char either[] = "  %b : bool = prim::If(%i)\n"
                               "    block0():\n      -> (%true)\n"
                               "    block1():\n      -> (%c)\n" CAST("%b");
  static const char chosen[] = "  %b : bool = prim::If(%c)\n"
                               "    block0():\n      -> (%i)\n"
                               "    block1():\n      -> (%d)\n" CAST("%b");
  assert_false(is_checked(f, both));
  assert_true(is_checked(f, either));
  assert_true(is_checked(f, chosen));
}

/* What the Ifs around a cast leave of an optional or a union must fit, each of it. */
static void casts_of_what_is_left(void **state) {
  static const struct {
    const char *from, *condition;
    bool checked;
  } cases[] = {
      {"int?", "%some", false},
      {"int?", "%none", true}, /* None alone is left */
      {"int?", "%c", true},
      {"Union(float, int, NoneType)", "%some", true}, /* a float is left too */
      {"Union(int, NoneType)", "%some", false},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[1024];
    kiln_plan *plan;
    snprintf(text, sizeof text,
             "graph(%%x : %s, %%c : bool):\n"
             "  %%zero : int = prim::Constant[value=0]()\n"
             "  %%nothing : NoneType = prim::Constant()\n"
             "  %%some : bool = aten::__isnot__(%%x, %%nothing)\n"
             "  %%none : bool = aten::__is__(%%x, %%nothing)\n"
             "  %%r : int = prim::If(%s)\n"
             "    block0():\n"
             "      %%n : int = prim::unchecked_cast(%%x)\n"
             "      -> (%%n)\n"
             "    block1():\n"
             "      -> (%%zero)\n"
             "  return (%%r)\n",
             cases[i].from, cases[i].condition);
    assert_ok(emit(*state, text, 0, &plan));
    void *arg = plan;
    print_plan(*state, &arg);
    kiln_plan_destroy(plan);
    if ((strstr(arg, " CHECK ") != NULL) != cases[i].checked) fail_msg("%zu:\n%s", i, (char *)arg);
  }
}

static void stress_and_refusals(void **state) {
  fixture *f = *state;
  kiln_plan *plan;
  static const char guard[] =
      "graph(%x : Tensor):\n"
      "  %a : Float(2), %ok : bool = prim::TypeCheck[types=[Float(2)]](%x)\n"
      "  return (%ok)\n";
  assert_ok(emit(f, guard, 0.5, &plan));
  assert_int_equal(plan->guards[0].stress >> 28, 7); /* half of 2^32, rounded down */
  assert_int_equal(plan->guard_count, 1);
  assert_int_equal(plan->guards[0].count, 1);
  kiln_plan_destroy(plan);
  assert_error(emit(f,
                    "graph(%x : Tensor):\n"
                    "  %ok : bool = prim::TypeCheck(%x)\n"
                    "  return (%ok)\n",
                    0, &plan),
               KILN_INTERNAL, "no type for each input");
  assert_error(emit(f,
                    "graph(%x : Any):\n"
                    "  %ok : bool = prim::isinstance(%x)\n"
                    "  return (%ok)\n",
                    0, &plan),
               KILN_INTERNAL, "has no types");
  /* The reader is told of the arguments that no overload takes. */
  assert_ok(emit(f,
                 "graph(%x : Tensor, %n : int):\n"
                 "  %a : Tensor = aten::tanh(%x, %n)\n"
                 "  return (%a)\n",
                 0, &plan));
  assert_string_equal(plan->kernels[0]->user, " for (Tensor, int)");
  kiln_plan_destroy(plan);
  /* An operator that does not exist is an error of the run that reaches it, not of the plan. */
  check(f,
        "graph(%x : Tensor):\n"
        "  %a : Tensor = aten::nosuch(%x)\n"
        "  return (%a)\n",
        "plan p: 1 argument, 1 register, 2 instructions\n"
        "   0 OP aten::nosuch r0! => r0\n"
        "   1 RET r0!\n");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(moves_at_last_use, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(numbers_are_not_moved, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(drops_what_nobody_uses, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(constants_are_shared, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(several_results_are_a_tuple, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(branches, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(branch_without_else, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(branch_into_the_first_register, fixture_setup,
                                      fixture_teardown),
      cmocka_unit_test_setup_teardown(counted_loop, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(asking_loop, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(donors_end, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(held_memory_is_no_donor, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(guards_and_groups, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(a_guard_before_the_plan, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(groups_without_kernels, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(groups_know_their_guards, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(profile_nodes, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(guards_look_at_what_is_unset, fixture_setup,
                                      fixture_teardown),
      cmocka_unit_test_setup_teardown(raising_sides_give_nothing, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(kernels_are_wrapped_once, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(casts_are_proved, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(casts_of_what_is_left, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(stress_and_refusals, fixture_setup, fixture_teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
