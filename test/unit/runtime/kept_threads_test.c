/* kept_threads_test.c: results that a plan keeps (kept.h): when they are computed, who owns them,
 * what the verifier refuses, and threads that run one plan. */
#include <pthread.h>

#include "test/unit/runtime/plan_support.h"

enum { THREADS = 4, CALLS = 200 };

static int computed; /* atomic */

/* The first argument plus one, and the first itself. */
static kiln_status *parts(kiln_call *call, const kiln_ivalue *args, kiln_ivalue *outs) {
  __atomic_fetch_add(&computed, 1, __ATOMIC_RELAXED);
  KILN_TRY(increment(call, args, outs));
  outs[1] = kiln_ivalue_retain(args[0]);
  return NULL;
}
static const kiln_kernel parts_kernel = {"test::parts", parts, 1, 2, -1, NULL, 0, 0, 0, 0,
                                         NULL,          0,     0};
/* The first argument plus one, and again. */
static kiln_status *twice(kiln_call *call, const kiln_ivalue *args, kiln_ivalue *outs) {
  __atomic_fetch_add(&computed, 1, __ATOMIC_RELAXED);
  KILN_TRY(increment(call, args, outs));
  return increment(call, args, outs + 1);
}
static const kiln_kernel increment_twice = {"test::twice", twice, 1, 2, -1, NULL, 0, 0, 0, 0,
                                            NULL,          0,     0};
static kiln_status *fails(kiln_call *call, const kiln_ivalue *args, kiln_ivalue *outs) {
  KILN_TRY(increment(call, args, outs));
  return KILN_OP_FAIL("it failed");
}
static const kiln_kernel fail_kernel = {"test::fail", fails, 1, 2, -1, NULL, 0, 0, 0, 0,
                                        NULL,         0,     0};

typedef struct keeper {
  program p;
  kiln_kept_op op;
  kiln_kept_slot slot;
} keeper;

/* r1, r2 = parts(r0), kept, of which r3 and r4 own what is computed; returns increment(r1). */
static void build(keeper *k, const kiln_kernel *kernel) {
  program_init(&k->p, "keeps", 1, 6);
  k->slot = (kiln_kept_slot){0};
  k->op = (kiln_kept_op){kernel, &k->slot};
  k->p.plan.kept = &k->op;
  k->p.plan.kept_count = 1;
  k->p.plan.borrowed_count = 2;
  k->p.kernels[0] = &increment_kernel;
  emit(&k->p, KILN_INSTR_KEPT, 0, 1, 4, R(0), R(1), R(2), R(3), R(4));
  emit(&k->p, KILN_INSTR_OP, 0, 1, 1, R(1), R(5));
  emit(&k->p, KILN_INSTR_RET, 0, 1, 0, RM(5));
  computed = 0;
}

static void put(kiln_tensor *t, float value) {
  void *data;
  assert_ok(kiln_tensor_writable_data(t, &data));
  *(float *)data = value;
}

/* The result of the program's run. */
static float run(fixture *f, keeper *k, kiln_tensor *weight) {
  const kiln_ivalue arg = kiln_of_tensor(weight);
  kiln_ivalue result = run_good(f, &k->p, &arg);
  const float got = *(const float *)kiln_tensor_data(result.u.tensor);
  kiln_ivalue_release(result);
  return got;
}

static void it_is_computed_once(void **state) {
  fixture *f = *state;
  keeper k;
  build(&k, &parts_kernel);
  kiln_tensor *w = make_tensor(f, 1);
  put(w, 5);
  for (int i = 0; i < 5; i++) assert_true(run(f, &k, w) == 7);
  assert_int_equal(computed, 1);
  assert_int_equal(w->refs, 2); /* the second result is the weight itself */
  kiln_kept_slot_release(&k.slot);
  assert_int_equal(w->refs, 1);
  kiln_tensor_release(w);
}

/* What is kept is that of the first weights; others are computed, and theirs comes back. */
static void others_are_computed(void **state) {
  fixture *f = *state;
  keeper k;
  build(&k, &parts_kernel);
  kiln_tensor *w = make_tensor(f, 1), *v = make_tensor(f, 1);
  put(w, 5);
  put(v, 50);
  for (int i = 0; i < 3; i++) {
    assert_true(run(f, &k, w) == 7);
    assert_true(run(f, &k, v) == 52);
  }
  assert_int_equal(computed, 1 + 3);
  kiln_kept_slot_release(&k.slot);
  kiln_tensor_release(w);
  kiln_tensor_release(v);
}

static void what_was_written_is_computed(void **state) {
  fixture *f = *state;
  keeper k;
  build(&k, &parts_kernel);
  kiln_tensor *w = make_tensor(f, 1);
  put(w, 5);
  assert_true(run(f, &k, w) == 7);
  put(w, 6);
  for (int i = 0; i < 3; i++) assert_true(run(f, &k, w) == 8);
  assert_int_equal(computed, 1 + 3);
  kiln_kept_slot_release(&k.slot);
  kiln_tensor_release(w);
}

/* Weights that come twice in a row are kept as well, and those that were there before serve again;
 * what was written or let go is not held. */
static void weights_that_stay_are_kept(void **state) {
  fixture *f = *state;
  keeper k;
  kiln_epoch epoch;
  build(&k, &increment_twice);
  kiln_epoch_init(&epoch, f->env->mem);
  f->call->epoch = &epoch;
  kiln_tensor *w = make_tensor(f, 1), *v = make_tensor(f, 1);
  put(w, 5);
  put(v, 50);
  assert_true(run(f, &k, w) == 7);
  for (int i = 0; i < 4; i++) assert_true(run(f, &k, v) == 52);
  for (int i = 0; i < 4; i++) assert_true(run(f, &k, w) == 7 && run(f, &k, v) == 52);
  assert_int_equal(computed, 1 + 2);
  put(w, 6);
  for (int i = 0; i < 4; i++) assert_true(run(f, &k, w) == 8);
  assert_int_equal(computed, 3 + 2);
  for (int i = 0; i < 8; i++) (void)kiln_epoch_collect(&epoch);
  const size_t before = kiln_mem_bytes(f->env->mem);
  for (int i = 0; i < 20; i++) { /* each is written before a third run could find it */
    put(w, (float)i);
    assert_true(run(f, &k, w) == (float)(i + 2) && run(f, &k, w) == (float)(i + 2));
    for (int j = 0; j < 8; j++) (void)kiln_epoch_collect(&epoch);
  }
  assert_int_equal(computed, 5 + 2 * 20);
  assert_int_equal(kiln_mem_bytes(f->env->mem), before);
  kiln_kept_slot_release(&k.slot);
  f->call->epoch = NULL;
  kiln_epoch_deinit(&epoch);
  kiln_tensor_release(w);
  kiln_tensor_release(v);
}

/* The same memory with other sizes, strides or another beginning. */
static void other_geometry_is_computed(void **state) {
  fixture *f = *state;
  keeper k;
  build(&k, &parts_kernel);
  kiln_tensor *w = make_tensor(f, 4), *views[3];
  static const struct {
    int64_t size, stride, offset;
  } cut[3] = {{2, 1, 0}, {2, 2, 0}, {2, 1, 1}};
  for (int i = 0; i < 3; i++)
    assert_ok(kiln_tensor_view(NULL, w, 1, &cut[i].size, &cut[i].stride, cut[i].offset, &views[i]));
  assert_true(run(f, &k, views[0]) == 2);
  for (int i = 0; i < 3; i++) assert_true(run(f, &k, views[i]) == 2);
  assert_int_equal(computed, 1 + 2);
  kiln_kept_slot_release(&k.slot);
  for (int i = 0; i < 3; i++) kiln_tensor_release(views[i]);
  kiln_tensor_release(w);
}

/* The storage is held: no other weight gets its address. */
static void weights_are_held(void **state) {
  fixture *f = *state;
  keeper k;
  build(&k, &parts_kernel);
  kiln_tensor *w = make_tensor(f, 1);
  put(w, 5);
  assert_true(run(f, &k, w) == 7);
  kiln_tensor_release(w);
  for (int i = 0; i < 3; i++) {
    kiln_tensor *v = make_tensor(f, 1);
    put(v, (float)i);
    assert_true(run(f, &k, v) == (float)(i + 2));
    kiln_tensor_release(v);
  }
  assert_int_equal(computed, 1 + 3);
  kiln_kept_slot_release(&k.slot);
}

/* Another instance's storage on the same weights. */
static kiln_tensor *share(fixture *f, kiln_tensor *w) {
  kiln_storage *storage;
  kiln_tensor *t;
  assert_ok(kiln_storage_share(w->storage, &storage));
  assert_ok(kiln_tensor_create_on(f->env->mem, NULL, storage, KILN_DTYPE_F32, 1, &w->numel,
                                  (int64_t[]){1}, 0, &t));
  kiln_storage_release(storage);
  return t;
}

/* Instances that share weights share what is made of them, until one of them writes: to a copy of
 * its own, also where it is the last that there is. */
static void instances_share(void **state) {
  enum { SHARED = 4096 }; /* too large to be copied */
  fixture *f = *state;
  keeper k;
  build(&k, &parts_kernel);
  kiln_tensor *w = make_tensor(f, SHARED), *v = share(f, w);
  assert_true(v->storage != w->storage);
  assert_ptr_equal(v->storage->data, w->storage->data);
  for (int i = 0; i < 3; i++) assert_true(run(f, &k, w) == 2 && run(f, &k, v) == 2);
  assert_int_equal(computed, 1);
  put(v, 5);
  assert_true(run(f, &k, v) == 7 && run(f, &k, w) == 2);
  assert_int_equal(computed, 1 + 1);
  put(w, 6);
  assert_true(run(f, &k, w) == 8 && run(f, &k, v) == 7);
  assert_int_equal(computed, 1 + 3);
  kiln_kept_slot_release(&k.slot);
  kiln_tensor_release(w);
  kiln_tensor_release(v);
}

static void destroy_owner(kiln_owner *owner) { (void)owner; }

/* Memory that somebody lends and may write, and runs with gradients: nothing is kept. */
static void nothing_is_kept(void **state) {
  fixture *f = *state;
  keeper k;
  float lent = 5;
  kiln_owner owner = {.refs = 1, .destroy = destroy_owner};
  kiln_storage *storage;
  kiln_tensor *w, *v = make_tensor(f, 1);
  build(&k, &parts_kernel);
  assert_ok(kiln_storage_wrap(f->env->mem, &owner, &lent, sizeof lent, 0, &storage));
  assert_ok(kiln_tensor_create_on(f->env->mem, NULL, storage, KILN_DTYPE_F32, 1, (int64_t[]){1},
                                  (int64_t[]){1}, 0, &w));
  assert_true(run(f, &k, w) == 7);
  lent = 6;
  assert_true(run(f, &k, w) == 8);
  f->call->grad_mode = true;
  for (int i = 0; i < 2; i++) assert_true(run(f, &k, v) == 2);
  f->call->grad_mode = false;
  assert_null(k.slot.records.first);
  assert_int_equal(computed, 4);
  kiln_storage_release(storage);
  kiln_tensor_release(w);
  kiln_tensor_release(v);
}

/* Results of a kernel that failed are nobody's, and nothing is kept. */
static void errors_keep_nothing(void **state) {
  fixture *f = *state;
  keeper k;
  build(&k, &fail_kernel);
  kiln_tensor *w = make_tensor(f, 1);
  const kiln_ivalue arg = kiln_of_tensor(w);
  kiln_call_begin(f->call, NULL);
  (void)run_bad(f, &k.p, &arg, "it failed");
  assert_null(k.slot.records.first);
  kiln_tensor_release(w);
}

/* r1, r2 three times in one frame: each time what was computed before goes. */
static void again_in_one_frame(void **state) {
  fixture *f = *state;
  keeper k;
  build(&k, &parts_kernel);
  kiln_tensor *w = make_tensor(f, 1), *v = make_tensor(f, 1);
  assert_true(run(f, &k, w) == 2);
  program *p = &k.p;
  p->plan.code_count = p->used = 0;
  memset(p->code, 0, sizeof p->code);
  for (int i = 0; i < 3; i++) emit(p, KILN_INSTR_KEPT, 0, 1, 4, R(0), R(1), R(2), R(3), R(4));
  emit(p, KILN_INSTR_OP, 0, 1, 1, R(1), R(5));
  emit(p, KILN_INSTR_RET, 0, 1, 0, RM(5));
  put(v, 1);
  assert_true(run(f, &k, v) == 3);
  assert_int_equal(computed, 1 + 3);
  assert_int_equal(v->refs, 1);
  kiln_kept_slot_release(&k.slot);
  kiln_tensor_release(w);
  kiln_tensor_release(v);
}

static void faults_are_found(void **state) {
  (void)state;
  keeper k;
  build(&k, &parts_kernel);
  k.p.operands[1] = R(5); /* a result in a register that is released */
  assert_error(kiln_plan_verify(&k.p.plan), KILN_INTERNAL, "a borrowed register");
  build(&k, &parts_kernel);
  k.p.operands[3] = R(1); /* owned by one that is not */
  assert_error(kiln_plan_verify(&k.p.plan), KILN_INTERNAL, "a borrowed register");
  build(&k, &parts_kernel);
  k.p.code[0].out_count = 2; /* nobody owns them */
  assert_error(kiln_plan_verify(&k.p.plan), KILN_INTERNAL, "2 outputs");
  build(&k, &parts_kernel);
  k.p.code[0].x = 1;
  assert_error(kiln_plan_verify(&k.p.plan), KILN_INTERNAL, "out of range");
}

/* -- Threads -- */

typedef struct thread {
  pthread_t id;
  kiln_env *env;
  keeper *k;
  kiln_tensor *weights[2]; /* in turn */
  bool good;
} thread;

static void *call_often(void *data) {
  thread *t = data;
  kiln_call *call;
  t->good = !kiln_call_create(t->env, &call);
  for (int i = 0; t->good && i < CALLS; i++) {
    kiln_ivalue arg = kiln_of_tensor(t->weights[i % 2]), result = kiln_none();
    kiln_call_begin(call, NULL);
    t->good = !kiln_interp_run(call, &t->k->p.callable, &arg, 1, &result);
    const float want = *(const float *)kiln_tensor_data(t->weights[i % 2]) + 2;
    t->good = t->good && *(const float *)kiln_tensor_data(result.u.tensor) == want;
    kiln_ivalue_release(result);
  }
  kiln_call_destroy(call);
  return NULL;
}

/* The first of them to be done has its results kept; the others find them, or compute. */
static void threads_share_a_plan(void **state) {
  fixture *f = *state;
  keeper k;
  thread threads[THREADS];
  build(&k, &parts_kernel);
  kiln_tensor *w = make_tensor(f, 1), *v = make_tensor(f, 1);
  put(w, 5);
  put(v, 9);
  for (int i = 0; i < THREADS; i++) {
    threads[i] = (thread){.env = f->env, .k = &k, .weights = {w, i % 2 ? v : w}};
    assert_int_equal(pthread_create(&threads[i].id, NULL, call_often, &threads[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i].id, NULL);
    assert_true(threads[i].good);
  }
  /* v's in half of the runs of half of the threads, w's once a thread at most */
  assert_in_range(computed, 1 + THREADS / 2 * CALLS / 2, THREADS + THREADS / 2 * CALLS / 2);
  kiln_kept_slot_release(&k.slot);
  kiln_tensor_release(w);
  kiln_tensor_release(v);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(it_is_computed_once),
      TEST(others_are_computed),
      TEST(what_was_written_is_computed),
      TEST(weights_that_stay_are_kept),
      TEST(other_geometry_is_computed),
      TEST(weights_are_held),
      TEST(instances_share),
      TEST(nothing_is_kept),
      TEST(errors_keep_nothing),
      TEST(again_in_one_frame),
      TEST(faults_are_found),
      TEST(threads_share_a_plan),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
