/* bound_test.c: results in memory of the host's: without a copy, and as right as any. */
#include <stdlib.h>

#include "api/internal.h"
#include "test/unit/api/fixture.h"

#define CASE TEST_DATA "/own/bound/model.pt"
enum { ROWS = 64, COLUMNS = 64, COUNT = ROWS * COLUMNS };

typedef struct world {
  subject s;
  float x[COUNT];
  float *memory[2]; /* of the outputs */
  kiln_value *outputs[2];
} world;

static void open_world(world *w, const char *jit) {
  w->s = (subject){.context = context_with("jit", jit)};
  load_subject(&w->s, CASE);
  for (int i = 0; i < COUNT; i++) w->x[i] = (float)(i % 23) - 11;
  for (int i = 0; i < 2; i++) {
    const int64_t sizes[2] = {ROWS, COLUMNS};
    w->memory[i] = aligned_alloc(64, COUNT * sizeof(float));
    memset(w->memory[i], 0xff, COUNT * sizeof(float));
    assert_ok(kiln_value_tensor_over(w->s.context, KILN_DTYPE_F32, 2, sizes, NULL, w->memory[i],
                                     COUNT * sizeof(float), NULL, NULL, &w->outputs[i]));
  }
}
static void close_world(world *w) {
  for (int i = 0; i < 2; i++) {
    kiln_value_destroy(w->outputs[i]);
    free(w->memory[i]);
  }
  close_subject(&w->s);
}

static kiln_value *input(const world *w, float shift) {
  const int64_t sizes[2] = {ROWS, COLUMNS};
  kiln_value *v = NULL;
  assert_ok(kiln_value_tensor(w->s.context, KILN_DTYPE_F32, 2, sizes, w->x, &v));
  for (int i = 0; i < COUNT; i++) ((float *)(uintptr_t)kiln_value_data(v))[i] += shift;
  return v;
}

static float affine(float x) { return x * 2 + 1 > 0 ? x * 2 + 1 : 0; }

/* What lies in output `at` is of x + shift: by `affine`, or summed up over rows. */
static void assert_affine(const world *w, int at, float shift) {
  for (int i = 0; i < COUNT; i++) assert_true(w->memory[at][i] == affine(w->x[i] + shift));
}
static void assert_summed(const world *w, int at, float shift) {
  float sum[COLUMNS] = {0};
  for (int i = 0; i < COUNT; i++) {
    sum[i % COLUMNS] += w->x[i] + shift;
    assert_true(w->memory[at][i] == sum[i % COLUMNS]);
  }
}

static kiln_status *call(const world *w, const char *method, kiln_value *const *args, int count,
                         int outputs, kiln_value **out_result) {
  const kiln_call_options options = {
      .struct_size = sizeof options, .outputs = w->outputs, .output_count = outputs};
  return kiln_instance_call(w->s.instance, method, args, count, &options, out_result);
}

static void run(const world *w, const char *method, float shift, int outputs) {
  kiln_value *x = input(w, shift), *result = NULL;
  assert_ok(call(w, method, &x, 1, outputs, &result));
  if (outputs == 1) assert_ptr_equal(kiln_value_data(result), w->memory[0]);
  kiln_value_destroy(result);
  kiln_value_destroy(x);
}

static void run_pair(const world *w, float shift, bool flip) {
  kiln_value *args[2] = {input(w, shift)}, *result = NULL;
  assert_ok(kiln_value_bool(w->s.context, flip, &args[1]));
  assert_ok(call(w, "pair", args, 2, 2, &result));
  for (int i = 0; i < 2; i++) {
    kiln_value *item = item_of(result, i);
    assert_ptr_equal(kiln_value_data(item), w->memory[i]);
    kiln_value_destroy(item);
  }
  kiln_value_destroy(result);
  for (int i = 0; i < 2; i++) kiln_value_destroy(args[i]);
}

/* How much the last call has copied into its outputs, in their number. */
static int copied(const world *w) {
  return kiln__binding_copied(w->s.instance->idle[w->s.instance->idle_count - 1]);
}

static const char *const ways[] = {"off", "on"};

/* The first calls copy: they learn, and the JIT changes what there is to be learnt. Then none. */
static void nothing_is_copied(void **state) {
  static const char *const methods[] = {"forward", "chain"};
  (void)state;
  for (int i = 0; i < 4; i++) {
    world w;
    open_world(&w, ways[i % 2]);
    for (int k = 0; k < 8; k++) {
      run(&w, methods[i / 2], (float)k, 1);
      if (i / 2 == 0) assert_affine(&w, 0, (float)k);
      if (k >= 6) assert_int_equal(copied(&w), 0);
    }
    close_world(&w);
  }
}

/* What a model keeps of a result is not in the host's memory. */
static void what_is_kept_moves_out(void **state) {
  (void)state;
  for (int way = 0; way < 2; way++) {
    world w;
    kiln_value *last = NULL;
    float was[COUNT];
    open_world(&w, ways[way]);
    for (int k = 0; k < 8; k++) {
      run(&w, "keep", (float)k, 1);
      assert_affine(&w, 0, (float)k);
      memset(w.memory[0], 0xff, COUNT * sizeof(float));
      assert_ok(kiln_instance_call(w.s.instance, "kept", NULL, 0, NULL, &last));
      assert_ok(kiln_value_copy_data(last, was, sizeof was));
      kiln_value_destroy(last);
      for (int i = 0; i < COUNT; i++) assert_true(was[i] == affine(w.x[i] + (float)k));
    }
    close_world(&w);
  }
}

/* Blocks that the last call has given to one output become the other's. */
static void results_change_places(void **state) {
  (void)state;
  for (int way = 0; way < 2; way++) {
    world w;
    open_world(&w, ways[way]);
    for (int k = 0; k < 12; k++) {
      const bool flip = k > 4 && k % 3 == 0;
      run_pair(&w, (float)k, flip);
      assert_affine(&w, flip, (float)k);
      assert_summed(&w, !flip, (float)k);
      if (k == 4) assert_int_equal(copied(&w), 0);
    }
    close_world(&w);
  }
}

/* An input that is the output too, by its handle or by its memory: each row of the result is of
 * two of the input's. */
static void an_input_may_be_the_output(void **state) {
  (void)state;
  for (int way = 0; way < 4; way++) {
    world w;
    const int64_t sizes[2] = {ROWS, COLUMNS};
    open_world(&w, ways[way % 2]);
    for (int k = 0; k < 8; k++) run(&w, "turned", 0, 1);
    assert_int_equal(copied(&w), 0);
    for (int k = 0; k < 4; k++) {
      kiln_value *x = w.outputs[0], *result = NULL;
      memcpy(w.memory[0], w.x, sizeof w.x);
      if (way / 2)
        assert_ok(kiln_value_tensor_over(w.s.context, KILN_DTYPE_F32, 2, sizes, NULL, w.memory[0],
                                         sizeof w.x, NULL, NULL, &x));
      assert_ok(call(&w, "turned", &x, 1, 1, &result));
      kiln_value_destroy(result);
      if (way / 2) kiln_value_destroy(x);
      for (int i = 0; i < COUNT; i++) {
        const int turned = (ROWS - 1 - i / COLUMNS) * COLUMNS + i % COLUMNS;
        assert_true(w.memory[0][i] == w.x[turned] + w.x[i] * 2);
      }
    }
    close_world(&w);
  }
}

static void others_are_copied(void **state) {
  world w;
  kiln_value *x, *result = NULL;
  (void)state;
  open_world(&w, "on");
  x = input(&w, 0);
  for (int k = 0; k < 6; k++) { /* the model has the list too */
    assert_ok(call(&w, "listed", &x, 1, 2, &result));
    assert_affine(&w, 0, 0);
    for (int i = 0; i < COUNT; i++) assert_true(w.memory[1][i] == w.x[i] + 3);
    kiln_value *item = take_first(result);
    assert_ptr_not_equal(kiln_value_data(item), w.memory[0]);
    kiln_value_destroy(item);
  }
  assert_error(call(&w, "part", &x, 1, 1, &result), KILN_INVALID_ARGUMENT, "output 0");
  assert_null(result);
  assert_error(call(&w, "forward", &x, 1, 2, &result), KILN_INVALID_ARGUMENT, "1 item");
  kiln_value_destroy(w.outputs[1]);
  w.outputs[1] = NULL; /* is not bound */
  assert_ok(call(&w, "forward", &x, 1, 2, &result));
  kiln_value_destroy(result);
  kiln_value_destroy(x);
  close_world(&w);
}

static void asynchronous_calls_have_outputs(void **state) {
  world w;
  kiln_pending *pending = NULL;
  (void)state;
  open_world(&w, "on");
  for (int k = 0; k < 8; k++) {
    const kiln_call_options options = {
        .struct_size = sizeof options, .outputs = w.outputs, .output_count = 1};
    kiln_value *x = input(&w, (float)k);
    assert_ok(
        kiln_instance_call_async(w.s.instance, "forward", &x, 1, &options, NULL, NULL, &pending));
    kiln_value_destroy(x);
    assert_ok(kiln_pending_wait(pending, -1, NULL));
    kiln_pending_release(pending);
    assert_affine(&w, 0, (float)k);
    if (k >= 6) assert_int_equal(copied(&w), 0);
  }
  close_world(&w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nothing_is_copied),     cmocka_unit_test(what_is_kept_moves_out),
      cmocka_unit_test(results_change_places), cmocka_unit_test(an_input_may_be_the_output),
      cmocka_unit_test(others_are_copied),     cmocka_unit_test(asynchronous_calls_have_outputs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
