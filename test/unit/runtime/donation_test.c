/* donation_test.c: results in the memory of operands. What the plan must not say is refused before
 * it runs; what it may say wrongly, for it cannot know, the run finds. */
#include "runtime/structure.h"
#include "test/unit/runtime/plan_support.h"

#define RD(n) (RM(n) | KILN_OPERAND_DONATE)

static kiln_status *alias(kiln_call *call, const kiln_ivalue *args, kiln_ivalue *outs) {
  kiln_tensor *t;
  KILN_TRY(kiln_tensor_alias(&call->cache, kiln_arg_tensor(args, 0), &t));
  outs[0] = kiln_of_tensor(t);
  return NULL;
}
static const kiln_kernel alias_kernel = {
    .name = "test::alias", .body = alias, .arg_count = 1, .out_count = 1, .dest_arg = -1};

/* -- Groups -- */

/* out = first + second, and whether it lies where one of them does. */
static int taken;
static void add_rows(const kiln_kernel_args *args, const kiln_kernel_box *box) {
  const float *a = args->data[0], *b = args->data[1];
  float *out = args->data[2];
  taken = out == a ? 0 : out == b ? 1 : -1;
  for (int64_t i = box->begin[0]; i < box->end[0]; i++) out[i] = a[i] + b[i];
}

typedef struct group_program {
  program p;
  kiln_group group;
  kiln_group_output out;
  int64_t elements, stride;
} group_program;

/* r0: the argument, of zeros; r1: ones; r2: an alias of r1, where one is asked for; r3: the sum. */
static void build_group(group_program *g, kiln_operand first, kiln_operand second, bool aliased,
                        int donor, int64_t elements) {
  g->elements = elements;
  g->stride = 1;
  g->out = (kiln_group_output){.dtype = KILN_DTYPE_F32,
                               .rank = 1,
                               .sizes = &g->elements,
                               .strides = &g->stride,
                               .contiguous = true,
                               .donor = donor};
  g->group = (kiln_group){.device = &kiln_device_cpu,
                          .fn = add_rows,
                          .input_count = 2,
                          .output_count = 1,
                          .outputs = &g->out,
                          .work.grid.end = {elements, 1, 1},
                          .work.grain = 1 << 20};
  program_init(&g->p, "group", 1, 4);
  g->p.kernels[0] = &increment_kernel;
  g->p.kernels[1] = &alias_kernel;
  g->p.plan.groups = &g->group;
  g->p.plan.group_count = 1;
  emit(&g->p, KILN_INSTR_OP, 0, 1, 1, R(0), R(1));
  if (aliased) emit(&g->p, KILN_INSTR_OP, 1, 1, 1, R(1), R(2));
  emit(&g->p, KILN_INSTR_GROUP, 0, 2, 1, first, second, R(3));
  emit(&g->p, KILN_INSTR_RET, 0, 1, 0, RM(3));
}

static void groups_take_what_nobody_holds(void **state) {
  fixture *f = *state;
  static const struct {
    kiln_operand first, second;
    bool aliased;
    int donor;
    int64_t elements; /* of the output */
    int taken;
  } cases[] = {
      {RD(1), R(0), false, 0, 64, 0},   /* nobody else has it */
      {R(0), RD(1), false, 1, 64, 1},   /* as the other operand */
      {RM(1), R(0), false, -1, 64, -1}, /* the plan does not say so */
      {RD(0), R(1), false, 0, 64, -1},  /* the host's */
      {RD(1), R(0), true, 0, 64, -1},   /* an alias lives */
      {RD(2), R(0), true, 0, 64, -1},   /* it is the alias */
      {RD(1), RM(2), true, 0, 64, -1},  /* the alias is read beside it, and ends there too */
      {RD(1), R(0), false, 0, 32, -1},  /* of another size */
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    group_program g;
    build_group(&g, cases[i].first, cases[i].second, cases[i].aliased, cases[i].donor,
                cases[i].elements);
    kiln_ivalue x = kiln_of_tensor(make_tensor(f, 64)), y = run_good(f, &g.p, &x);
    if (taken != cases[i].taken) fail_msg("case %d: %d", (int)i, taken);
    assert_int_equal(y.u.tensor->numel, cases[i].elements);
    const bool both = cases[i].second == RM(2);
    assert_true(((const float *)kiln_tensor_data(y.u.tensor))[31] == (both ? 2.0f : 1.0f));
    assert_true(((const float *)kiln_tensor_data(x.u.tensor))[31] == 0.0f);
    kiln_ivalue_release(y);
    kiln_ivalue_release(x);
  }
}

/* An output has the strides that the group says. */
static void groups_choose_strides(void **state) {
  fixture *f = *state;
  group_program g;
  build_group(&g, R(1), R(0), false, -1, 64);
  g.stride = 2;
  g.out.contiguous = false;
  kiln_ivalue x = kiln_of_tensor(make_tensor(f, 64)), y = run_good(f, &g.p, &x);
  assert_int_equal(kiln_tensor_strides(y.u.tensor)[0], 2);
  assert_true(y.u.tensor->storage->bytes >= 127 * sizeof(float));
  kiln_ivalue_release(y);
  kiln_ivalue_release(x);
}

/* A group without room for its first output leaves nothing behind, nor anything of a run before it,
 * whose outputs stood in the same place. */
static void groups_fail_clean(void **state) {
  fixture *f = *state;
  group_program g;
  build_group(&g, R(1), R(0), false, -1, 1 << 18);
  kiln_group_output outs[2] = {g.out, g.out};
  g.group.outputs = outs;
  g.group.output_count = 2;
  g.p.plan.register_count = 5;
  g.p.plan.code_count = g.p.used = 0;
  memset(g.p.code, 0, sizeof g.p.code);
  emit(&g.p, KILN_INSTR_GROUP, 0, 2, 2, R(0), R(0), R(3), R(4));
  emit(&g.p, KILN_INSTR_RET, 0, 1, 0, RM(4));
  kiln_ivalue x = kiln_of_tensor(make_tensor(f, 1 << 18)), y;
  for (int i = 0; i < 3; i++) {
    kiln_ivalue_release(run_good(f, &g.p, &x));
    kiln_call_begin(f->call, &(kiln_limits){.bytes = 1000});
    kiln_budget *outer = kiln_budget_enter(&f->call->budget);
    kiln_status *status = kiln_interp_run(f->call, &g.p.callable, &x, 1, &y);
    kiln_budget_leave(outer);
    assert_error(status, KILN_LIMIT, "bytes");
  }
  kiln_ivalue_release(x);
}

/* Ones that are the frame's alone, and yet not for the taking. */
typedef enum way { READ_ONLY, WITH_GRAD, STRIDED, WITH_SIDE, PLAIN, WAYS } way;
static void keep_side(kiln_side *side) { (void)side; }
static kiln_side a_side;

static kiln_status *make_odd(kiln_call *call, const kiln_ivalue *args, kiln_ivalue *outs) {
  const way odd = (way)kiln_arg_int(args, 1);
  const int64_t n = 64, stride = odd == STRIDED ? 2 : 1;
  kiln_tensor *t;
  KILN_TRY(
      kiln_tensor_create_strided(call->env->mem, &call->cache, KILN_DTYPE_F32, 1, &n, &stride, &t));
  for (int64_t i = 0; i < n * stride - stride + 1; i++) ((float *)t->storage->data)[i] = 1;
  if (odd == READ_ONLY) t->storage->flags |= KILN_STORAGE_READ_ONLY;
  if (odd == WITH_GRAD) t->key.f.requires_grad = 1;
  a_side = (kiln_side){.refs = 1, .kind = KILN_SIDE_QUANT, .destroy = keep_side};
  if (odd == WITH_SIDE) kiln_tensor_attach(t, &a_side);
  outs[0] = kiln_of_tensor(t);
  return NULL;
}
static const kiln_kernel odd_kernel = {
    .name = "test::odd", .body = make_odd, .arg_count = 2, .out_count = 1, .dest_arg = -1};

static void groups_leave_what_is_not_theirs(void **state) {
  fixture *f = *state;
  for (int odd = 0; odd < WAYS; odd++) {
    group_program g;
    build_group(&g, RD(1), R(0), false, 0, 64);
    g.p.plan.code_count = g.p.used = 0; /* again, with another maker of r1 */
    memset(g.p.code, 0, sizeof g.p.code);
    g.p.kernels[0] = &odd_kernel;
    g.p.constants[0] = kiln_int(odd);
    emit(&g.p, KILN_INSTR_OP, 0, 2, 1, R(0), C(0), R(1));
    emit(&g.p, KILN_INSTR_GROUP, 0, 2, 1, RD(1), R(0), R(3));
    emit(&g.p, KILN_INSTR_RET, 0, 1, 0, RM(3));
    kiln_ivalue x = kiln_of_tensor(make_tensor(f, 64)), y = run_good(f, &g.p, &x);
    if (taken != (odd == PLAIN ? 0 : -1)) fail_msg("way %d", odd);
    assert_int_equal(y.u.tensor->key.f.requires_grad, 0);
    assert_null(y.u.tensor->sides);
    kiln_ivalue_release(y);
    kiln_ivalue_release(x);
  }
}

/* -- Operators -- */

static const void *made_at, *wrote_to;
static kiln_status *make_ones(kiln_call *call, const kiln_ivalue *args, kiln_ivalue *outs) {
  KILN_TRY(increment(call, args, outs));
  made_at = kiln_tensor_data(outs[0].u.tensor);
  return NULL;
}
static const kiln_kernel ones_kernel = {
    .name = "test::ones", .body = make_ones, .arg_count = 1, .out_count = 1, .dest_arg = -1};

/* Adds one to the first argument: in the destination that it is given, or in a new tensor. */
static kiln_status *bump(kiln_call *call, const kiln_ivalue *args, kiln_ivalue *outs) {
  kiln_tensor *x = kiln_arg_tensor(args, 0);
  if (outs[0].tag != KILN_TAG_TENSOR) {
    kiln_tensor *made;
    KILN_TRY(kiln_call_tensor(call, KILN_DTYPE_F32, 1, kiln_tensor_sizes(x), &made));
    outs[0] = kiln_of_tensor(made);
  }
  void *data;
  KILN_TRY(kiln_tensor_writable_data(outs[0].u.tensor, &data));
  for (int64_t i = 0; i < x->numel; i++) {
    ((float *)data)[i] = ((const float *)kiln_tensor_data(x))[i] + 1;
  }
  wrote_to = data;
  return NULL;
}

static void operators_take_what_nobody_holds(void **state) {
  fixture *f = *state;
  static const struct {
    kiln_reuse reuse;
    kiln_operand
        operand; /* r0: the argument; r1: ones; r2: an alias of r1, where one is asked for */
    bool aliased, taken;
  } cases[] = {
      {KILN_REUSE_SELF, RD(1), false, true},  {KILN_REUSE_SELF, RM(1), false, false},
      {KILN_REUSE_SELF, RD(0), false, false}, {KILN_REUSE_SELF, RD(1), true, false},
      {KILN_REUSE_SELF, RD(2), true, false},  {KILN_REUSE_COPY, RD(1), false, true},
      {KILN_REUSE_COPY, RM(1), false, false}, {KILN_REUSE_COPY, RD(0), false, false},
      {KILN_REUSE_COPY, RD(1), true, false},  {KILN_REUSE_COPY, RD(2), true, false},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const bool copies = cases[i].reuse == KILN_REUSE_COPY;
    const kiln_kernel kernel = {.name = "test::bump",
                                .body = bump,
                                .arg_count = 1,
                                .out_count = 1,
                                .dest_arg = copies ? 0 : -1,
                                .reuse = cases[i].reuse};
    program p;
    program_init(&p, "bump", 1, 4);
    p.kernels[0] = &ones_kernel;
    p.kernels[1] = &alias_kernel;
    p.kernels[2] = &kernel;
    emit(&p, KILN_INSTR_OP, 0, 1, 1, R(0), R(1));
    if (cases[i].aliased) emit(&p, KILN_INSTR_OP, 1, 1, 1, R(1), R(2));
    emit(&p, KILN_INSTR_OP, 2, 1, 1, cases[i].operand, R(3));
    emit(&p, KILN_INSTR_RET, 0, 1, 0, RM(3));
    kiln_ivalue x = kiln_of_tensor(make_tensor(f, 8)), y = run_good(f, &p, &x);
    const bool of_host = cases[i].operand == RD(0);
    if ((wrote_to == made_at) != cases[i].taken) fail_msg("case %d", (int)i);
    assert_true(wrote_to != kiln_tensor_data(x.u.tensor));
    assert_true(((const float *)kiln_tensor_data(y.u.tensor))[7] == (of_host ? 1.0f : 2.0f));
    assert_true(((const float *)kiln_tensor_data(x.u.tensor))[7] == 0);
    kiln_ivalue_release(y);
    kiln_ivalue_release(x);
  }
}

/* The copy that an operator in place makes of what it may not write has what hangs on the operand:
 * a wrapper would take it for a plain tensor otherwise. */
static kiln_status *look_at_side(kiln_call *call, const kiln_ivalue *args, kiln_ivalue *outs) {
  (void)call;
  const kiln_tensor *t = kiln_arg_tensor(args, 0);
  outs[0] = kiln_bool(kiln_tensor_nested(t) && kiln_tensor_is_structured(t));
  return NULL;
}
static void copies_keep_side_structures(void **state) {
  fixture *f = *state;
  const kiln_kernel kernel = {.name = "test::look",
                              .body = look_at_side,
                              .arg_count = 1,
                              .out_count = 1,
                              .dest_arg = -1,
                              .reuse = KILN_REUSE_COPY};
  const int64_t sizes[2] = {2, 3}, lengths[2] = {1, 3};
  kiln_tensor *padded, *nested;
  assert_ok(kiln_tensor_create(f->env->mem, NULL, KILN_DTYPE_F32, 2, sizes, &padded));
  memset(padded->storage->data, 0, 6 * sizeof(float));
  assert_ok(kiln_nested_tensor(f->env->mem, NULL, padded, lengths, &nested));
  program p;
  program_init(&p, "look", 1, 2);
  p.kernels[0] = &kernel;
  emit(&p, KILN_INSTR_OP, 0, 1, 1, R(0), R(1));
  emit(&p, KILN_INSTR_RET, 0, 1, 0, R(1));
  kiln_ivalue x = kiln_of_tensor(nested);
  assert_true(run_good(f, &p, &x).u.b);
  kiln_ivalue_release(x);
  kiln_tensor_release(padded);
}

/* -- What a plan must not say -- */

static void false_donors_are_refused(void **state) {
  (void)state;
  static const struct {
    kiln_operand first, second;
    int donor;
  } groups[] = {
      {RD(1), R(0), -1},                     /* marked, but for no output */
      {RM(1), R(0), 0},                      /* an output's, but not marked */
      {R(1) | KILN_OPERAND_DONATE, R(0), 0}, /* its register goes on */
      {RD(1), R(1), 0},                      /* read as the other operand too */
      {RD(1), RD(1), 0},                     /* the same */
      {C(0) | KILN_OPERAND_DONATE, R(0), 0}, /* a constant */
      {RD(1), R(0), 2},                      /* there is no such operand */
      {RD(1), RD(0), 0},                     /* one more than the output takes */
  };
  for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
    group_program g;
    build_group(&g, groups[i].first, groups[i].second, false, groups[i].donor, 64);
    kiln_status *status = kiln_plan_verify(&g.p.plan);
    if (!status) fail_msg("group %d", (int)i);
    assert_error(status, KILN_INTERNAL, NULL);
  }
  group_program good;
  build_group(&good, RD(1), C(1), false, 0, 64); /* c1 is no r1 */
  assert_ok(kiln_plan_verify(&good.p.plan));
  kiln_group_output two[2] = {good.out, good.out}; /* one memory for two outputs */
  good.group.outputs = two;
  good.group.output_count = 2;
  assert_error(kiln_plan_verify(&good.p.plan), KILN_INTERNAL, "donated");

  program p;
  const kiln_kernel self = {.name = "test::bump",
                            .body = bump,
                            .arg_count = 2,
                            .out_count = 1,
                            .dest_arg = -1,
                            .reuse = KILN_REUSE_SELF};
  const struct {
    const kiln_kernel *kernel;
    kiln_operand first, second;
    bool good;
  } ops[] = {{&self, RD(0), R(1), true},
             {&self, R(0), RD(1), false}, /* its first argument it is, or none */
             {&self, RD(0), R(0), false},
             {&ones_kernel, RD(0), R(1), false}}; /* it makes its own memory */
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
    program_init(&p, "op", 2, 3);
    p.kernels[0] = ops[i].kernel;
    emit(&p, KILN_INSTR_OP, 0, 2, 1, ops[i].first, ops[i].second, R(2));
    emit(&p, KILN_INSTR_RET, 0, 1, 0, RM(2));
    kiln_status *status = kiln_plan_verify(&p.plan);
    if (!status != ops[i].good) fail_msg("operator %d", (int)i);
    kiln_status_destroy(status);
  }
  program_init(&p, "move", 1, 2);
  emit(&p, KILN_INSTR_MOVE, 0, 1, 1, RD(0), R(1));
  emit(&p, KILN_INSTR_RET, 0, 1, 0, RM(1));
  assert_error(kiln_plan_verify(&p.plan), KILN_INTERNAL, "donated");
}

int main(void) {
#define UNIT(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      UNIT(groups_choose_strides),
      UNIT(groups_fail_clean),
      UNIT(groups_take_what_nobody_holds),
      UNIT(groups_leave_what_is_not_theirs),
      UNIT(operators_take_what_nobody_holds),
      UNIT(copies_keep_side_structures),
      UNIT(false_donors_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
