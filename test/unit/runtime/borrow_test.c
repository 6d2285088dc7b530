/* borrow_test.c: registers that hold no reference (plan.h): who has the object while a frame runs,
 * and what the verifier refuses. */
#include "test/unit/runtime/plan_support.h"

/* References of the object and of its tensor, as a kernel sees them while the frame runs. */
static int object_refs, tensor_refs;
static kiln_object *watched;

static kiln_status *look(kiln_call *call, const kiln_ivalue *args, kiln_ivalue *outs) {
  (void)call;
  object_refs = watched->box.refs;
  tensor_refs = args[0].u.tensor->refs;
  outs[0] = kiln_ivalue_retain(args[0]);
  return NULL;
}
static const kiln_kernel look_kernel = {"test::look", look, 1, 1, -1, NULL, 0, 0, 0, 0, NULL, 0, 0};
static kiln_status *fails(kiln_call *call, const kiln_ivalue *args, kiln_ivalue *outs) {
  (void)call, (void)args, (void)outs;
  return KILN_OP_FAIL("it failed");
}
static const kiln_kernel fail_kernel = {"test::fail", fails, 1, 1, -1, NULL, 0, 0, 0, 0,
                                        NULL,         0,     0};

static kiln_class_attribute weight = {.name = {"w", 1}};
static kiln_class_info info = {.attributes = &weight, .attribute_count = 1};
static kiln_type cls = {.kind = KILN_TYPE_CLASS, .cls = &info};

static kiln_ivalue make_object(fixture *f) {
  assert_null(kiln_object_create(f->env->mem, &cls, &watched));
  watched->slots[0] = kiln_of_tensor(make_tensor(f, 2));
  return kiln_of_box(watched);
}

/* r1 = self.w, borrowed; r2 = kernel(r1); returned. */
static void build(program *p, const kiln_kernel *kernel) {
  program_init(p, "method", 1, 3);
  p->plan.borrows_self = true;
  p->plan.borrowed_count = 1;
  p->kernels[0] = kernel;
  emit(p, KILN_INSTR_BORROW_ATTR, 0, 1, 1, R(0), R(1));
  emit(p, KILN_INSTR_OP, 0, 1, 1, R(1), R(2));
  emit(p, KILN_INSTR_RET, 0, 1, 0, RM(2));
}

/* The host's run counts neither; what it returns is counted. */
static void nothing_is_counted(void **state) {
  fixture *f = *state;
  program p;
  build(&p, &look_kernel);
  kiln_ivalue self = make_object(f), result = run_good(f, &p, &self);
  assert_int_equal(object_refs, 1);
  assert_int_equal(tensor_refs, 1);
  assert_ptr_equal(result.u.tensor, watched->slots[0].u.tensor);
  assert_int_equal(result.u.tensor->refs, 2);
  kiln_ivalue_release(self);
  assert_int_equal(result.u.tensor->refs, 1); /* it outlives the object */
  kiln_ivalue_release(result);
}

/* An error leaves both as they were; so does a limit in the middle of a frame. */
static void errors_give_nothing_back(void **state) {
  fixture *f = *state;
  program p;
  build(&p, &fail_kernel);
  kiln_ivalue self = make_object(f);
  kiln_call_begin(f->call, NULL);
  (void)run_bad(f, &p, &self, "it failed");
  kiln_call_begin(f->call, &(kiln_limits){.operations = 1});
  assert_int_equal(run_bad(f, &p, &self, "operations"), KILN_LIMIT);
  assert_int_equal(watched->box.refs, 1);
  assert_int_equal(watched->slots[0].u.tensor->refs, 1);
  kiln_ivalue_release(self);
}

/* A caller that makes the object and moves it into the call has it no longer: the method's frame
 * does, until it ends. */
static void a_callee_has_what_its_caller_moved(void **state) {
  fixture *f = *state;
  program method, caller;
  build(&method, &look_kernel);
  program_init(&caller, "caller", 1, 2);
  caller.callables[0] = &method.callable;
  emit(&caller, KILN_INSTR_CALL, 0, 1, 1, RM(0), R(1));
  emit(&caller, KILN_INSTR_RET, 0, 1, 0, RM(1));
  kiln_ivalue self = make_object(f);
  object_refs = 0;
  kiln_ivalue result = run_good(f, &caller, &self);
  assert_int_equal(object_refs, 2); /* the test's and the method's frame's */
  assert_int_equal(watched->box.refs, 1);
  kiln_ivalue_release(result);
  kiln_ivalue_release(self);
}

static void an_unset_attribute_is_told(void **state) {
  fixture *f = *state;
  program p;
  build(&p, &look_kernel);
  kiln_ivalue self = make_object(f);
  kiln_ivalue_release(watched->slots[0]);
  watched->slots[0] = (kiln_ivalue){.tag = KILN_TAG_TENSOR};
  kiln_call_begin(f->call, NULL);
  (void)run_bad(f, &p, &self, "attribute 'w' is used before it is set");
  watched->slots[0] = kiln_none();
  kiln_ivalue_release(self);
}

static void refused(program *p) {
  assert_error(kiln_plan_verify(&p->plan), KILN_INTERNAL, "a borrowed register is given away");
}

static void faults_are_found(void **state) {
  (void)state;
  program p;
  build(&p, &look_kernel);
  p.operands[p.code[1].operands] = RM(1);
  p.code[1].flags = 1;
  refused(&p);
  build(&p, &look_kernel);
  p.operands[p.code[0].operands] = RM(0); /* self */
  refused(&p);
  build(&p, &look_kernel);
  p.operands[p.code[0].operands + 1] = R(2); /* into a register that is released */
  refused(&p);
  build(&p, &look_kernel);
  p.code[0].op = KILN_INSTR_GET_ATTR; /* counted, and never given back */
  refused(&p);
  build(&p, &look_kernel);
  p.code[1] = (kiln_instr){.op = KILN_INSTR_DROP, .in_count = 1, .operands = p.code[1].operands};
  refused(&p);
  build(&p, &look_kernel);
  p.plan.borrowed_count = 3;
  assert_error(kiln_plan_verify(&p.plan), KILN_INTERNAL, "fewer registers");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(nothing_is_counted),
      TEST(errors_give_nothing_back),
      TEST(a_callee_has_what_its_caller_moved),
      TEST(an_unset_attribute_is_told),
      TEST(faults_are_found),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
