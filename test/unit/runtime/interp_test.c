/* interp_test.c: plans assembled by hand, run by the interpreter. */
#include <unistd.h>

#include "base/pool.h"
#include "base/sanitize.h"
#include "kiln/kiln.h"
#include "runtime/cycles.h"
#include "runtime/interp_internal.h"
#include "test/unit/runtime/plan_support.h"

/* -- Kernels -- */

static kiln_status *add_ints(kiln_call *call, const kiln_ivalue *args, kiln_ivalue *outs) {
  (void)call;
  outs[0] = kiln_int(args[0].u.i + args[1].u.i);
  return NULL;
}
static const kiln_kernel add_kernel = {"test::add", add_ints, 2, 1,    -1, NULL, 0,
                                       0,           0,        0, NULL, 0,  0};

static kiln_status *refuse(kiln_call *call, const kiln_ivalue *args, kiln_ivalue *outs) {
  (void)call;
  outs[0] = kiln_ivalue_retain(args[0]); /* a half-made result, which the caller releases */
  return KILN_OP_FAIL("it failed");
}
static const kiln_kernel fail_kernel = {"test::fail", refuse, 1, 1, -1, NULL, 0, 0, 0, 0,
                                        NULL,         0,      0};
static const kiln_kernel missing_kernel = {
    "test::missing", NULL, 1, 1, -1, NULL, 0, 0, 0, 0, NULL, 0, 0};

static kiln_status *fill_in_place(kiln_call *call, const kiln_ivalue *args, kiln_ivalue *outs) {
  (void)call, (void)args;
  assert_true(outs[0].tag == KILN_TAG_TENSOR); /* the destination is preset */
  void *data;
  KILN_TRY(kiln_tensor_writable_data(outs[0].u.tensor, &data));
  ((float *)data)[0] = 7;
  return NULL;
}
static const kiln_kernel fill_kernel = {
    "test::fill_", fill_in_place, 1, 1, 0, NULL, 0, 0, 0, 0, NULL, 0, 0};

/* -- Tests -- */

/* for i in range(n): s += i */
static void build_sum(program *p) {
  program_init(p, "sum", 1, 3);
  p->constants[0] = kiln_int(0);
  p->constants[1] = kiln_bool(true);
  p->kernels[0] = &add_kernel;
  emit(p, KILN_INSTR_LOADC, 0, 0, 1, R(1)); /* i */
  emit(p, KILN_INSTR_MOVE, 0, 1, 1, C(0), R(2));
  int loop = emit(p, KILN_INSTR_LOOP, 0, 3, 0, R(1), R(0), C(1));
  emit(p, KILN_INSTR_OP, 0, 2, 1, R(2), R(1), R(2));
  emit(p, KILN_INSTR_INC, 0, 0, 1, R(1));
  emit(p, KILN_INSTR_JMP, (uint32_t)loop, 0, 0);
  p->code[loop].x = (uint32_t)emit(p, KILN_INSTR_RET, 0, 1, 0, R(2));
}

static void test_loop(void **state) {
  program p;
  build_sum(&p);
  kiln_ivalue ten = kiln_int(10), none = kiln_int(0);
  assert_int_equal(run_good(*state, &p, &ten).u.i, 45);
  assert_int_equal(run_good(*state, &p, &none).u.i, 0);
}

static void test_operation_limit(void **state) {
  fixture *f = *state;
  program p;
  build_sum(&p);
  kiln_ivalue n = kiln_int(1000000);
  kiln_call_begin(f->call, &(kiln_limits){.operations = 1000});
  assert_int_equal(run_bad(f, &p, &n, "operations"), KILN_LIMIT);
  kiln_ivalue ten = kiln_int(10); /* the call is usable after it */
  assert_int_equal(run_good(f, &p, &ten).u.i, 45);
}

static void test_moves_release_tensors(void **state) {
  fixture *f = *state;
  program p;
  program_init(&p, "chain", 1, 2);
  p.kernels[0] = &increment_kernel;
  emit(&p, KILN_INSTR_OP, 0, 1, 1, R(0), R(1));
  for (int i = 0; i < 8; i++) emit(&p, KILN_INSTR_OP, 0, 1, 1, RM(1), R(1));
  emit(&p, KILN_INSTR_RET, 0, 1, 0, RM(1));
  kiln_ivalue x = kiln_of_tensor(make_tensor(f, 64));
  kiln_ivalue_release_to(&f->call->cache, run_good(f, &p, &x)); /* fills the pools */
  (void)kiln_mem_fail_at(f->env->mem, 0);
  kiln_ivalue y = run_good(f, &p, &x);
  uint64_t requests = kiln_mem_fail_at(f->env->mem, 0);
  if (!KILN_SANITIZED) assert_int_equal(requests, 0); /* a steady run allocates nothing */
  assert_true(((const float *)kiln_tensor_data(y.u.tensor))[63] == 9.0f);
  assert_int_equal(y.u.tensor->refs, 1);
  assert_int_equal(x.u.tensor->refs, 1);
  kiln_ivalue_release(y);
  kiln_ivalue_release(x);
}

static void test_in_place_gets_destination(void **state) {
  fixture *f = *state;
  program p;
  program_init(&p, "fill", 1, 1);
  p.kernels[0] = &fill_kernel;
  emit(&p, KILN_INSTR_OP, 0, 1, 1, RM(0), R(0));
  emit(&p, KILN_INSTR_RET, 0, 1, 0, RM(0));
  kiln_ivalue x = kiln_of_tensor(make_tensor(f, 2));
  kiln_ivalue y = run_good(f, &p, &x);
  assert_ptr_equal(y.u.tensor, x.u.tensor);
  assert_true(((const float *)kiln_tensor_data(x.u.tensor))[0] == 7.0f);
  kiln_ivalue_release(y);
  kiln_ivalue_release(x);
}

static void test_parallel_move(void **state) {
  fixture *f = *state;
  program p; /* swap, with one value going to two places */
  program_init(&p, "swap", 2, 5);
  p.plan.types = (const kiln_type *const[]){NULL};
  p.plan.type_count = 1;
  emit(&p, KILN_INSTR_MOVE, 0, 3, 3, RM(0), RM(1), R(1), R(1), R(0), R(2));
  emit(&p, KILN_INSTR_TUPLE, 0, 3, 1, RM(0), RM(1), RM(2), R(3));
  emit(&p, KILN_INSTR_RET, 0, 1, 0, RM(3));
  kiln_ivalue args[2] = {kiln_of_tensor(make_tensor(f, 1)), kiln_of_tensor(make_tensor(f, 2))};
  kiln_ivalue t = run_good(f, &p, args);
  assert_int_equal(t.u.tuple->items[0].u.tensor->numel, 2);
  assert_int_equal(t.u.tuple->items[1].u.tensor->numel, 1);
  assert_int_equal(t.u.tuple->items[2].u.tensor->numel, 2);
  kiln_ivalue_release(t);
  assert_int_equal(args[0].u.tensor->refs, 1);
  assert_int_equal(args[1].u.tensor->refs, 1);
  kiln_ivalue_release(args[0]);
  kiln_ivalue_release(args[1]);
}

static void test_error_unwinds(void **state) {
  fixture *f = *state;
  static const char text[] = "def f(x):\n    return fail(x)\n";
  kiln_source source = {.name = KILN_STR("m.py"), .text = kiln_str_from(text), .first_line = 1};
  kiln_source_range inner = {.source = &source, .begin = 21, .end = 28, .function = "f"};
  program callee, caller;
  program_init(&callee, "callee", 1, 2);
  callee.kernels[0] = &increment_kernel;
  callee.kernels[1] = &fail_kernel;
  callee.plan.ranges = callee.ranges;
  emit(&callee, KILN_INSTR_OP, 0, 1, 1, R(0), R(1));
  callee.ranges[emit(&callee, KILN_INSTR_OP, 1, 1, 1, RM(1), R(1))] = &inner;
  emit(&callee, KILN_INSTR_RET, 0, 1, 0, RM(1));
  program_init(&caller, "caller", 1, 3);
  caller.callables[0] = &callee.callable;
  caller.kernels[0] = &increment_kernel;
  emit(&caller, KILN_INSTR_OP, 0, 1, 1, R(0), R(1));
  emit(&caller, KILN_INSTR_CALL, 0, 1, 1, R(0), R(2));
  emit(&caller, KILN_INSTR_RET, 0, 1, 0, RM(2));
  kiln_ivalue x = kiln_of_tensor(make_tensor(f, 4));
  kiln_call_begin(f->call, NULL);
  assert_int_equal(run_bad(f, &caller, &x, "m.py"), KILN_OP_ERROR);
  assert_int_equal(run_bad(f, &caller, &x, "it failed"), KILN_OP_ERROR);
  assert_int_equal(x.u.tensor->refs, 1);
  kiln_ivalue_release(x);
}

static void test_missing_operator(void **state) {
  program p;
  program_init(&p, "p", 1, 1);
  p.kernels[0] = &missing_kernel;
  emit(&p, KILN_INSTR_OP, 0, 1, 1, R(0), R(0));
  emit(&p, KILN_INSTR_RET, 0, 1, 0, R(0));
  kiln_ivalue one = kiln_int(1);
  kiln_call_begin(((fixture *)*state)->call, NULL);
  assert_int_equal(run_bad(*state, &p, &one, "test::missing"), KILN_MISSING_OP);
}

/* Calls itself until the limit says no; C's stack is not used. */
static void test_recursion_limit(void **state) {
  fixture *f = *state;
  program p;
  program_init(&p, "again", 1, 2);
  p.callables[0] = &p.callable;
  emit(&p, KILN_INSTR_CALL, 0, 1, 1, R(0), R(1));
  emit(&p, KILN_INSTR_RET, 0, 1, 0, RM(1));
  kiln_ivalue x = kiln_of_tensor(make_tensor(f, 1));
  kiln_call_begin(f->call, &(kiln_limits){.recursion = 100000});
  assert_int_equal(run_bad(f, &p, &x, "limit of 100000 (recursion)"), KILN_LIMIT);
  assert_int_equal(x.u.tensor->refs, 1);
  kiln_ivalue_release(x);
}

/* A chain of functions that name each other is as long as it is; a limit counts all. */
static void test_named_calls_have_no_limit_of_their_own(void **state) {
  enum { LENGTH = 3000 };
  fixture *f = *state;
  program *chain = calloc(LENGTH, sizeof *chain);
  for (int i = 0; i < LENGTH; i++) {
    program_init(&chain[i], "link", 1, 2);
    if (i + 1 < LENGTH) {
      chain[i].callables[0] = &chain[i + 1].callable;
      emit(&chain[i], KILN_INSTR_CALL, 0, 1, 1, R(0), R(1));
    }
    emit(&chain[i], KILN_INSTR_RET, 0, 1, 0, R(i + 1 < LENGTH ? 1 : 0));
  }
  kiln_ivalue x = kiln_int(3);
  kiln_call_begin(f->call, NULL);
  assert_int_equal(run_good(f, chain, &x).u.i, 3);
  assert_int_equal(f->call->recursion, 0);
  kiln_call_begin(f->call, &(kiln_limits){.recursion = LENGTH});
  assert_int_equal(run_good(f, chain, &x).u.i, 3);
  kiln_call_begin(f->call, &(kiln_limits){.recursion = LENGTH - 1});
  assert_int_equal(run_bad(f, chain, &x, "limit of 2999 (recursion)"), KILN_LIMIT);
  free(chain);
}

/* fork runs at once; what it raises is raised by wait, each time. */
static void test_future_keeps_error(void **state) {
  fixture *f = *state;
  program bad, good;
  program_init(&bad, "bad", 1, 1);
  bad.kernels[0] = &fail_kernel;
  emit(&bad, KILN_INSTR_OP, 0, 1, 1, R(0), R(0));
  emit(&bad, KILN_INSTR_RET, 0, 1, 0, R(0));
  program_init(&good, "good", 1, 3);
  good.callables[0] = &bad.callable;
  good.kernels[0] = &add_kernel;
  emit(&good, KILN_INSTR_FORK, 0, 1, 1, R(0), R(1));
  emit(&good, KILN_INSTR_OP, 0, 2, 1, R(0), R(0), R(0)); /* goes on after the failed fork */
  int wait = emit(&good, KILN_INSTR_WAIT, 0, 1, 1, R(1), R(2));
  emit(&good, KILN_INSTR_RET, 0, 1, 0, R(2));
  kiln_ivalue one = kiln_int(1);
  kiln_call_begin(f->call, NULL);
  assert_int_equal(run_bad(f, &good, &one, "it failed"), KILN_OP_ERROR);
  good.code[wait].op = KILN_INSTR_DROP; /* never waited for */
  good.code[wait].out_count = 0;
  good.operands[good.code[wait + 1].operands] = R(0);
  assert_int_equal(run_good(f, &good, &one).u.i, 2);
}

/* Keeps the one worker of a pool busy. */
typedef struct blocker {
  kiln_task task;
  bool begun, may_end; /* atomic */
} blocker;
static void block(void *data) {
  blocker *b = data;
  __atomic_store_n(&b->begun, true, __ATOMIC_RELEASE);
  while (!__atomic_load_n(&b->may_end, __ATOMIC_ACQUIRE)) usleep(100);
}

/* A forked function that nobody has begun runs where its frame ends, if its future goes on; what is
 * left of it goes with the future. One whose future is dropped need not run. */
static void test_future_outlives_its_frame(void **state) {
  fixture *f = *state;
  kiln_pool *pool;
  assert_ok(kiln_pool_create(2, &pool));
  blocker b = {.task = {.fn = block, .data = &b}};
  kiln_pool_submit(pool, &b.task);
  while (!__atomic_load_n(&b.begun, __ATOMIC_ACQUIRE)) usleep(100);
  f->call->pool = pool;
  program twice, p;
  program_init(&twice, "twice", 1, 2);
  twice.callable.fork = KILN_FORK_INDEPENDENT;
  twice.kernels[0] = &add_kernel;
  emit(&twice, KILN_INSTR_OP, 0, 2, 1, R(0), R(0), R(1));
  emit(&twice, KILN_INSTR_RET, 0, 1, 0, R(1));
  program_init(&p, "p", 1, 3);
  p.callables[0] = &twice.callable;
  emit(&p, KILN_INSTR_FORK, 0, 1, 1, R(0), R(1));
  emit(&p, KILN_INSTR_FORK, 0, 1, 1, R(0), R(2));
  emit(&p, KILN_INSTR_DROP, 0, 1, 0, RM(2));
  emit(&p, KILN_INSTR_RET, 0, 1, 0, RM(1));
  kiln_ivalue three = kiln_int(3), result = run_good(f, &p, &three);
  assert_int_equal(result.tag, KILN_TAG_FUTURE);
  assert_true(kiln__future_complete(result.u.future));
  assert_true(result.u.future->value.tag == KILN_TAG_INT && result.u.future->value.u.i == 6);
  kiln_ivalue_release(result);
  f->call->pool = NULL;
  __atomic_store_n(&b.may_end, true, __ATOMIC_RELEASE);
  kiln_pool_wait(pool, &b.task);
  kiln_pool_release(pool);
}

/* Only what leads back to the list that it is put into may hold itself. */
static void test_possible_roots(void **state) {
  fixture *f = *state;
  kiln_mem *mem = f->env->mem;
  kiln_list *inner, *outer;
  kiln_possible_roots roots = {0};
  assert_ok(kiln_list_create(mem, NULL, 0, &inner));
  assert_ok(kiln_list_create(mem, NULL, 0, &outer));
  assert_ok(kiln_list_push(inner, kiln_int(1)));
  assert_ok(kiln_cycle_note(mem, &roots, &outer->box, NULL, kiln_of_box(inner)));
  assert_null(roots.first);
  assert_ok(kiln_list_push(inner, kiln_ivalue_retain(kiln_of_box(outer))));
  assert_ok(kiln_cycle_note(mem, &roots, &outer->box, NULL, kiln_of_box(inner)));
  assert_non_null(roots.first);
  kiln_possible_roots_deinit(mem, &roots);
  kiln_ivalue_release(kiln_of_box(inner));
  kiln_ivalue_release(kiln_of_box(outer));
}

/* A fork becomes a task where another thread could run it. */
static void test_forks_that_are_worth_a_task(void **state) {
  fixture *f = *state;
  for (int threads = 1; threads <= 2; threads++) {
    kiln_pool *pool;
    assert_ok(kiln_pool_create(threads, &pool));
    f->call->pool = pool;
    for (int flag = KILN_FORK_INLINE; flag <= KILN_FORK_INDEPENDENT; flag++) {
      const kiln_callable callable = {.fork = (kiln_fork_flag)flag};
      assert_true(kiln__fork_is_worth(f->call, &callable) ==
                  (threads == 2 && flag != KILN_FORK_INLINE));
    }
    f->call->pool = NULL;
    kiln_pool_release(pool);
  }
}

typedef struct test_sink {
  kiln_profile_sink sink;
  int commits;
  kiln_type_record record;
} test_sink;
static void commit(kiln_profile_sink *self, const kiln_type_record *records, int count) {
  test_sink *s = (test_sink *)self;
  assert_int_equal(count, 1);
  s->commits++;
  s->record = records[0];
}

static void test_profile_commits_on_success(void **state) {
  fixture *f = *state;
  test_sink sink = {.sink.commit = commit};
  program p;
  program_init(&p, "p", 1, 1);
  p.plan.record_count = 1;
  p.plan.sink = &sink.sink;
  p.kernels[0] = &fail_kernel;
  emit(&p, KILN_INSTR_PROFILE, 0, 1, 0, R(0));
  int op = emit(&p, KILN_INSTR_OP, 0, 1, 1, RM(0), R(0));
  emit(&p, KILN_INSTR_RET, 0, 1, 0, RM(0));
  kiln_ivalue x = kiln_of_tensor(make_tensor(f, 5));
  kiln_call_begin(f->call, NULL);
  (void)run_bad(f, &p, &x, "it failed");
  assert_int_equal(sink.commits, 0); /* a failed run leaves no trace */
  p.kernels[0] = &increment_kernel;
  (void)op;
  kiln_ivalue_release(run_good(f, &p, &x));
  assert_int_equal(sink.commits, 1);
  assert_int_equal(sink.record.seen, 1);
  assert_int_equal(sink.record.rank, 1);
  assert_int_equal(sink.record.sizes[0], 5);
  kiln_ivalue_release(x);
}

static void test_guard(void **state) {
  fixture *f = *state;
  kiln_ivalue x = kiln_of_tensor(make_tensor(f, 3)), y = kiln_of_tensor(make_tensor(f, 4));
  kiln_guard_entry entry = {.key_word = x.u.tensor->key.word,
                            .key_mask = UINT64_MAX,
                            .rank = 1,
                            .check_dims = true,
                            .dims = x.u.tensor->dims};
  program p;
  program_init(&p, "p", 1, 2);
  p.plan.guard_count = 1;
  kiln_counter_book book;
  kiln_counter_book_init(&book, f->env->mem);
  const uint32_t hits = kiln_counter_book_new(&book, 2);
  kiln_tally_begin(&f->call->tally, &book);
  p.guard = (kiln_guard_desc){
      .count = 1, .entries = &entry, .at = p.operands, .hits = hits, .misses = hits + 1};
  emit(&p, KILN_INSTR_TYPECHECK, 0, 1, 1, R(0), R(1));
  emit(&p, KILN_INSTR_RET, 0, 1, 0, R(1));
  assert_true(run_good(f, &p, &x).u.b);
  assert_false(run_good(f, &p, &y).u.b);
  x.u.tensor->key.f.requires_grad = 1;
  entry.key_word = 0;
  entry.key_word = x.u.tensor->key.word;
  ((kiln_tensor_key *)&entry.key_word)->f.requires_grad = 0;
  assert_true(run_good(f, &p, &x).u.b); /* without grad mode nothing requires a gradient */
  f->call->grad_mode = true;
  assert_false(run_good(f, &p, &x).u.b);
  f->call->grad_mode = false;
  assert_int_equal(kiln_counter_sum(&book, hits), 2);
  assert_int_equal(kiln_counter_sum(&book, hits + 1), 2);
  kiln_tally_end(&f->call->tally);
  assert_int_equal(kiln_counter_sum(&book, hits), 2);
  kiln_counter_book_deinit(&book);
  p.guard.stress = UINT32_MAX; /* fails although the types match */
  assert_false(run_good(f, &p, &x).u.b);
  kiln_ivalue_release(x);
  kiln_ivalue_release(y);
}

/* RAISE with so many operands, the second one of them a constant; behind it stands one that reads
 * constant 1, which is none of its own. */
static void check_raise(fixture *f, int count, int second, const char *exception) {
  kiln_string *message, *cls;
  assert_null(kiln_string_create(f->env->mem, KILN_STR("bad value"), &message));
  assert_null(kiln_string_create(f->env->mem, KILN_STR("builtins.ValueError"), &cls));
  program p;
  program_init(&p, "p", 0, 1);
  p.constants[0] = kiln_of_box(message);
  p.constants[1] = kiln_of_box(cls);
  p.constants[2] = kiln_int(1);
  if (count == 1) emit(&p, KILN_INSTR_RAISE, 0, 1, 0, C(0));
  if (count == 2) emit(&p, KILN_INSTR_RAISE, 0, 2, 0, C(0), C(second));
  emit(&p, KILN_INSTR_RET, 0, 1, 0, C(1));
  kiln_call_begin(f->call, NULL);
  kiln_ivalue result;
  kiln_status *status = kiln_interp_run(f->call, &p.callable, NULL, 0, &result);
  assert_int_equal(kiln_status_code(status), KILN_RAISED);
  assert_string_equal(kiln_status_message(status), "bad value");
  assert_string_equal(kiln_status_exception(status), exception);
  kiln_status_destroy(status);
  kiln_ivalue_release(p.constants[0]);
  kiln_ivalue_release(p.constants[1]);
}

static void test_raise(void **state) {
  check_raise(*state, 2, 1, "builtins.ValueError");
  check_raise(*state, 2, 2, "torch.jit.Error");
  check_raise(*state, 1, 0, "torch.jit.Error");
}

/* -- Attributes -- */

/* What is no object has none, and an object has no more than its own. */
static void test_set_attr_refuses(void **state) {
  fixture *f = *state;
  program p;
  program_init(&p, "p", 0, 1);
  p.constants[0] = kiln_int(1);
  emit(&p, KILN_INSTR_SET_ATTR, 0, 2, 0, C(0), C(0));
  emit(&p, KILN_INSTR_RET, 0, 1, 0, C(0));
  kiln_call_begin(f->call, NULL);
  kiln_ivalue result;
  assert_error(kiln_interp_run(f->call, &p.callable, NULL, 0, &result), KILN_INTERNAL,
               "SET_ATTR without an object");
}

/* -- with -- */

typedef struct test_lookup {
  kiln_method_lookup lookup;
  const kiln_callable *enter, *leave;
} test_lookup;
static kiln_status *find(const kiln_method_lookup *self, const kiln_type *cls, kiln_str name,
                         const kiln_callable **out) {
  const test_lookup *l = (const test_lookup *)self;
  (void)cls;
  *out = kiln_str_is(name, "__enter__") ? l->enter : l->leave;
  return NULL;
}
static int enter_count, leave_count;
static kiln_status *count_enter(kiln_call *call, const kiln_ivalue *args, kiln_ivalue *outs) {
  (void)call, (void)args, (void)outs;
  enter_count++;
  return NULL;
}
static kiln_status *count_leave(kiln_call *call, const kiln_ivalue *args, kiln_ivalue *outs) {
  (void)call, (void)args, (void)outs;
  leave_count++;
  return NULL;
}
static const kiln_kernel enter_kernel = {"test::enter", count_enter, 1, 1, -1, NULL, 0, 0, 0, 0,
                                         NULL,          0,           0};
static const kiln_kernel leave_kernel = {"test::leave", count_leave, 4, 1, -1, NULL, 0, 0, 0, 0,
                                         NULL,          0,           0};

static void test_exit_runs_while_unwinding(void **state) {
  fixture *f = *state;
  program enter, leave, p;
  program_init(&enter, "__enter__", 1, 1);
  enter.kernels[0] = &enter_kernel;
  emit(&enter, KILN_INSTR_OP, 0, 1, 1, RM(0), R(0));
  emit(&enter, KILN_INSTR_RET, 0, 1, 0, R(0));
  program_init(&leave, "__exit__", 4, 4);
  leave.kernels[0] = &leave_kernel;
  emit(&leave, KILN_INSTR_OP, 0, 4, 1, RM(0), R(1), R(2), R(3), R(0));
  emit(&leave, KILN_INSTR_RET, 0, 1, 0, R(0));
  test_lookup lookup = {{find}, &enter.callable, &leave.callable};
  program_init(&p, "p", 2, 3);
  p.plan.methods = &lookup.lookup;
  p.plan.max_entered = 1;
  p.kernels[0] = &fail_kernel;
  emit(&p, KILN_INSTR_ENTER, 0, 1, 1, R(0), R(KILN_OPERAND_NONE));
  int op = emit(&p, KILN_INSTR_OP, 0, 1, 1, R(1), R(2));
  emit(&p, KILN_INSTR_EXIT, 0, 0, 1, R(KILN_OPERAND_NONE));
  emit(&p, KILN_INSTR_RET, 0, 1, 0, R(1));
  kiln_type cls = {.kind = KILN_TYPE_CLASS};
  kiln_class_info info = {.qualname = KILN_STR("Guard")};
  cls.cls = &info;
  kiln_object *object;
  assert_null(kiln_object_create(f->env->mem, &cls, &object));
  kiln_ivalue args[2] = {kiln_of_box(object), kiln_int(3)};
  kiln_call_begin(f->call, NULL);
  (void)run_bad(f, &p, args, "it failed");
  assert_int_equal(enter_count, 1);
  assert_int_equal(leave_count, 1);
  p.code[op].op = KILN_INSTR_MOVE;
  assert_int_equal(run_good(f, &p, args).u.i, 3);
  assert_int_equal(enter_count, 2);
  assert_int_equal(leave_count, 2);
  assert_int_equal(object->box.refs, 1);
  kiln_ivalue_release(args[0]);
}

/* Only a run can make a method call itself: through an interface. */
static void test_chosen_calls_have_a_limit(void **state) {
  fixture *f = *state;
  program p;
  kiln_str name = KILN_STR("again");
  program_init(&p, "again", 1, 2);
  test_lookup lookup = {{find}, &p.callable, &p.callable};
  p.plan.methods = &lookup.lookup;
  p.plan.strings = &name;
  emit(&p, KILN_INSTR_CALL_METHOD, 0, 1, 1, R(0), R(1));
  emit(&p, KILN_INSTR_RET, 0, 1, 0, R(1));
  kiln_class_info info = {.qualname = KILN_STR("Again")};
  kiln_type cls = {.kind = KILN_TYPE_CLASS, .cls = &info};
  kiln_object *object;
  assert_null(kiln_object_create(f->env->mem, &cls, &object));
  kiln_ivalue self = kiln_of_box(object);
  kiln_call_begin(f->call, NULL);
  assert_int_equal(run_bad(f, &p, &self, "deeper than 1000"), KILN_LIMIT);
  kiln_call_begin(f->call, &(kiln_limits){.recursion = 7});
  assert_int_equal(run_bad(f, &p, &self, "limit of 7 (recursion)"), KILN_LIMIT);
  assert_int_equal(object->box.refs, 1);
  kiln_ivalue_release(self);
}

static void test_verify_refuses(void **state) {
  (void)state;
  program p;
  build_sum(&p);
  assert_null(kiln_plan_verify(&p.plan));
  p.code[3].x = 4; /* no such kernel */
  kiln_status *status = kiln_plan_verify(&p.plan);
  assert_int_equal(kiln_status_code(status), KILN_INTERNAL);
  kiln_status_destroy(status);
  build_sum(&p);
  p.operands[p.code[3].operands] = R(9); /* no such register */
  status = kiln_plan_verify(&p.plan);
  assert_int_equal(kiln_status_code(status), KILN_INTERNAL);
  kiln_status_destroy(status);
  build_sum(&p);
  p.code[3].flags ^= 2; /* a move that is not on the operand */
  status = kiln_plan_verify(&p.plan);
  assert_int_equal(kiln_status_code(status), KILN_INTERNAL);
  kiln_status_destroy(status);
  build_sum(&p);
  p.code[3].op = KILN_INSTR_OP_FRESH;
  assert_null(kiln_plan_verify(&p.plan));
  p.kernels[0] = &missing_kernel; /* that is not simple */
  status = kiln_plan_verify(&p.plan);
  assert_int_equal(kiln_status_code(status), KILN_INTERNAL);
  kiln_status_destroy(status);
  build_sum(&p);
  p.plan.code_count--; /* control runs off the end */
  status = kiln_plan_verify(&p.plan);
  assert_non_null(status);
  kiln_status_destroy(status);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_loop),
      TEST(test_operation_limit),
      TEST(test_moves_release_tensors),
      TEST(test_in_place_gets_destination),
      TEST(test_parallel_move),
      TEST(test_error_unwinds),
      TEST(test_missing_operator),
      TEST(test_recursion_limit),
      TEST(test_named_calls_have_no_limit_of_their_own),
      TEST(test_chosen_calls_have_a_limit),
      TEST(test_future_keeps_error),
      TEST(test_possible_roots),
      TEST(test_forks_that_are_worth_a_task),
      TEST(test_future_outlives_its_frame),
      TEST(test_profile_commits_on_success),
      TEST(test_guard),
      TEST(test_raise),
      TEST(test_set_attr_refuses),
      TEST(test_exit_runs_while_unwinding),
      TEST(test_verify_refuses),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
