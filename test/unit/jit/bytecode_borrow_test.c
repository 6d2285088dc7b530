/* bytecode_borrow_test.c: attributes that a plan reads without counting them (runtime/plan.h), as
 * `kiln graph --stage bytecode` prints them: BORROW_ATTR fills a register of its own, which nothing
 * moves or drops. */
#include "test/unit/jit/bytecode_support.h"

/* A module M with a tensor w, a number n and a module m like itself. */
static int set_up_classes(void **state) {
  if (fixture_setup(state)) return -1;
  fixture *f = *state;
  kiln_type *m = kiln_type_nominal(f->types, KILN_TYPE_CLASS, KILN_STR("__torch__.M"));
  static kiln_class_attribute attributes[3];
  attributes[0] =
      (kiln_class_attribute){.name = KILN_STR("w"), .type = kiln_type_basic(KILN_TYPE_TENSOR)};
  attributes[1] =
      (kiln_class_attribute){.name = KILN_STR("n"), .type = kiln_type_basic(KILN_TYPE_INT)};
  attributes[2] = (kiln_class_attribute){.name = KILN_STR("m"), .type = m};
  m->cls->attributes = attributes;
  m->cls->attribute_count = 3;
  return 0;
}

/* The last use of either is none that moves. Numbers have registers as always. */
static void chains(void **state) {
  check(*state,
        "graph(%self : __torch__.M, %x : Tensor):\n"
        "  %m : __torch__.M = prim::GetAttr[name=\"m\"](%self)\n"
        "  %w : Tensor = prim::GetAttr[name=\"w\"](%m)\n"
        "  %n : int = prim::GetAttr[name=\"n\"](%m)\n"
        "  %y : Tensor = aten::mul(%x, %w)\n"
        "  %z : Tensor = aten::add(%y, %w, %n)\n"
        "  return (%z)\n",
        "plan p: 2 arguments, 5 registers, 6 instructions\n"
        "   0 BORROW_ATTR 2 r0 => r2\n"
        "   1 BORROW_ATTR 0 r2 => r3\n"
        "   2 GET_ATTR 1 r2 => r4\n"
        "   3 OP aten::mul.Tensor r1! r3 => r1\n"
        "   4 OP aten::add.Tensor r1! r3 r4 => r1\n"
        "   5 RET r1!\n");
}

/* What leaves the register is counted: by RET, LIST, and the MOVE to an If's result. */
static void results(void **state) {
  check(*state,
        "graph(%self : __torch__.M, %b : bool):\n"
        "  %w : Tensor = prim::GetAttr[name=\"w\"](%self)\n"
        "  %y : Tensor = prim::If(%b)\n"
        "    block0():\n"
        "      -> (%w)\n"
        "    block1():\n"
        "      %v : Tensor = prim::GetAttr[name=\"w\"](%self)\n"
        "      -> (%v)\n"
        "  %l : Tensor[] = prim::ListConstruct(%y, %w)\n"
        "  return (%l)\n",
        "plan p: 2 arguments, 5 registers, 8 instructions\n"
        "   0 BORROW_ATTR 0 r0 => r2\n"
        "   1 JF ->4 r1\n"
        "   2 MOVE r2 => r4\n"
        "   3 JMP ->6\n"
        "   4 BORROW_ATTR 0 r0 => r3\n"
        "   5 MOVE r3 => r4\n"
        "   6 LIST Tensor[] r4! r2 => r1\n"
        "   7 RET r1!\n");
  check(*state,
        "graph(%self : __torch__.M):\n"
        "  return (%self)\n",
        "plan p: 1 argument, 1 register, 1 instruction\n"
        "   0 RET r0\n");
}

/* A name that is set, in whatever block and on whatever object, is not borrowed; nor is what hangs
 * on it: m.w is another tensor once m is another module. */
static void what_is_set(void **state) {
  check(*state,
        "graph(%self : __torch__.M, %b : bool, %o : __torch__.M):\n"
        "  %m : __torch__.M = prim::GetAttr[name=\"m\"](%self)\n"
        "  %w : Tensor = prim::GetAttr[name=\"w\"](%m)\n"
        "  %v : Tensor = prim::GetAttr[name=\"w\"](%self)\n"
        "   = prim::If(%b)\n"
        "    block0():\n"
        "      -> ()\n"
        "    block1():\n"
        "       = prim::SetAttr[name=\"m\"](%self, %o)\n"
        "      -> ()\n"
        "  %y : Tensor = aten::mul(%w, %v)\n"
        "  return (%y)\n",
        "plan p: 3 arguments, 5 registers, 9 instructions\n"
        "   0 GET_ATTR 2 r0 => r4\n"
        "   1 GET_ATTR 0 r4! => r4\n"
        "   2 BORROW_ATTR 0 r0 => r3\n"
        "   3 JF ->6 r1\n"
        "   4 DROP r2\n"
        "   5 JMP ->7\n"
        "   6 SET_ATTR 2 r0 r2!\n"
        "   7 OP aten::mul.Tensor r4! r3 => r1\n"
        "   8 RET r1!\n");
}

/* A call that is not inlined may set anything; an object that is no method's self may go. */
static void what_is_not_known(void **state) {
  check(*state,
        "graph(%self : __torch__.M, %x : Tensor):\n"
        "  %w : Tensor = prim::GetAttr[name=\"w\"](%self)\n"
        "  %y : Tensor = prim::CallMethod[name=\"f\"](%self, %x)\n"
        "  %z : Tensor = aten::mul(%w, %y)\n"
        "  return (%z)\n",
        "plan p: 2 arguments, 3 registers, 4 instructions\n"
        "   0 GET_ATTR 0 r0 => r2\n"
        "   1 CALL_METHOD f r0 r1! => r1\n"
        "   2 OP aten::mul.Tensor r2! r1! => r1\n"
        "   3 RET r1!\n");
  check(*state,
        "graph(%x : Tensor, %o : __torch__.M):\n"
        "  %w : Tensor = prim::GetAttr[name=\"w\"](%o)\n"
        "  %z : Tensor = aten::mul(%w, %x)\n"
        "  return (%z)\n",
        "plan p: 2 arguments, 2 registers, 3 instructions\n"
        "   0 GET_ATTR 0 r1! => r1\n"
        "   1 OP aten::mul.Tensor r1! r0! => r0\n"
        "   2 RET r0!\n");
}

/* A frame has a register for each, so they have an end. */
static void there_is_an_end(void **state) {
  enum { READS = 5000, ROOM = 1 << 19 };
  static char text[ROOM];
  size_t used = (size_t)snprintf(text, ROOM, "graph(%%self : __torch__.M):\n");
  for (int i = 0; i < READS; i++) {
    used += (size_t)snprintf(text + used, ROOM - used,
                             "  %%w%d : Tensor = prim::GetAttr[name=\"w\"](%%self)\n"
                             "  %%x%d : Tensor = aten::relu(%%w%d)\n",
                             i, i, i);
  }
  snprintf(text + used, ROOM - used, "  return (%%x0)\n");
  kiln_plan *plan;
  assert_ok(emit(*state, text, 0, &plan));
  assert_int_equal(plan->borrowed_count, 4096);
  assert_in_range(plan->register_count, 4097, 4110); /* the others share some */
  kiln_plan_destroy(plan);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_classes, fixture_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(chains),          TEST(results), TEST(what_is_set), TEST(what_is_not_known),
      TEST(there_is_an_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
