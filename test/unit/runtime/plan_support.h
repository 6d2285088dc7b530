/* plan_support.h: plans assembled by hand, and what runs them: an environment, a call, tensors.
 * Memory that is left when a test ends is a failure. */
#pragma once

#include <stdlib.h>

#include "runtime/plan.h"
#include "test/unit/unit.h"

/* -- Assembling -- */

#define R(n) ((kiln_operand)(n))
#define RM(n) ((kiln_operand)(n) | KILN_OPERAND_MOVE)
#define C(n) ((kiln_operand)(n) | KILN_OPERAND_CONSTANT)

enum { MAX_CODE = 32, MAX_OPS = 128 };

typedef struct fixture {
  kiln_env *env;
  kiln_call *call;
  size_t bytes; /* held before the call was made */
} fixture;

/* A plan and the callable that gives it. */
typedef struct program {
  kiln_callable callable; /* first */
  kiln_plan plan;
  kiln_instr code[MAX_CODE];
  kiln_operand operands[MAX_OPS];
  int used;
  kiln_ivalue constants[8];
  const kiln_kernel *kernels[4];
  const kiln_callable *callables[4];
  const kiln_source_range *ranges[MAX_CODE];
  kiln_guard_desc guard;
} program;

static inline kiln_status *get_plan(const kiln_callable *self, kiln_call *call,
                                    const kiln_ivalue *args, int arg_count,
                                    const kiln_plan **out_plan) {
  (void)call, (void)args, (void)arg_count;
  *out_plan = &((const program *)self)->plan;
  return NULL;
}

static inline void program_init(program *p, const char *name, int args, int registers) {
  memset(p, 0, sizeof *p);
  p->callable = (kiln_callable){.name = name, .get_plan = get_plan, .arg_count = args};
  p->plan.name = name;
  p->plan.arg_count = args;
  p->plan.register_count = registers;
  p->plan.result_count = 1;
  p->plan.max_in = 4;
  p->plan.code = p->code;
  p->plan.operands = p->operands;
  p->plan.constants = p->constants;
  p->plan.kernels = p->kernels;
  p->plan.callables = p->callables;
  p->plan.kernel_count = p->plan.callable_count = 4;
  p->plan.constant_count = 8;
  p->plan.guards = &p->guard;
}

static inline int emit(program *p, kiln_instr_op op, uint32_t x, int ins, int outs, ...) {
  va_list args;
  va_start(args, outs);
  p->code[p->plan.code_count] = (kiln_instr){.op = (uint16_t)op,
                                             .in_count = (uint16_t)ins,
                                             .out_count = (uint16_t)outs,
                                             .x = x,
                                             .operands = (uint32_t)p->used};
  for (int i = 0; i < ins + outs; i++) {
    kiln_operand o = p->operands[p->used++] = va_arg(args, kiln_operand);
    if (op == KILN_INSTR_OP && i < ins && i < KILN_INSTR_MOVE_BITS && o & KILN_OPERAND_MOVE) {
      p->code[p->plan.code_count].flags |= (uint16_t)(1u << i);
    }
  }
  va_end(args);
  return p->plan.code_count++;
}

/* -- Kernels -- */

/* A new tensor with the elements of the first plus one. */
static inline kiln_status *increment(kiln_call *call, const kiln_ivalue *args, kiln_ivalue *outs) {
  kiln_tensor *x = kiln_arg_tensor(args, 0), *y;
  KILN_TRY(kiln_call_tensor(call, KILN_DTYPE_F32, kiln_tensor_rank(x), kiln_tensor_sizes(x), &y));
  const float *from = kiln_tensor_data(x);
  float *to = y->storage->data;
  for (int64_t i = 0; i < x->numel; i++) to[i] = from[i] + 1;
  outs[0] = kiln_of_tensor(y);
  return NULL;
}
static const kiln_kernel increment_kernel = {
    "test::increment", increment, 1, 1, -1, NULL, 0, 0, 0, 0, NULL, 0, 0};

/* -- Fixtures -- */

static inline int set_up(void **state) {
  fixture *f = calloc(1, sizeof *f);
  assert_null(kiln_env_create(NULL, &f->env));
  f->bytes = kiln_mem_bytes(f->env->mem);
  assert_null(kiln_call_create(f->env, &f->call));
  *state = f;
  return 0;
}
/* kiln_env_destroy finds leaks in debug builds; here they are a failure in every build. */
static inline int tear_down(void **state) {
  fixture *f = *state;
  kiln_call_destroy(f->call);
  assert_int_equal(kiln_mem_bytes(f->env->mem), f->bytes);
  kiln_env_destroy(f->env);
  free(f);
  return 0;
}

static inline kiln_tensor *make_tensor(fixture *f, int64_t n) {
  kiln_tensor *t;
  assert_null(kiln_tensor_create(f->env->mem, NULL, KILN_DTYPE_F32, 1, &n, &t));
  memset(t->storage->data, 0, (size_t)n * sizeof(float));
  return t;
}

static inline kiln_ivalue run_good(fixture *f, program *p, const kiln_ivalue *args) {
  kiln_ivalue result = kiln_none();
  assert_null(kiln_plan_verify(&p->plan));
  kiln_call_begin(f->call, NULL);
  kiln_status *status = kiln_interp_run(f->call, &p->callable, args, p->plan.arg_count, &result);
  if (status) fail_msg("%s", kiln_status_report(status));
  return result;
}

static inline kiln_code run_bad(fixture *f, program *p, const kiln_ivalue *args,
                                const char *contains) {
  kiln_ivalue result = kiln_none();
  kiln_status *status = kiln_interp_run(f->call, &p->callable, args, p->plan.arg_count, &result);
  assert_non_null(status);
  if (!strstr(kiln_status_report(status), contains)) {
    fail_msg("'%s' lacks '%s'", kiln_status_report(status), contains);
  }
  kiln_code code = kiln_status_code(status);
  kiln_status_destroy(status);
  assert_int_equal(f->call->recursion, 0);
  return code;
}
