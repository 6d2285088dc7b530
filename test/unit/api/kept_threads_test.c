/* kept_threads_test.c: what compiled code keeps of an instance's weights is never another's:
 * instances with other weights, attributes that the host sets, buffers that a call writes, and
 * threads that call both. Expected numbers are worked out by hand. */
#include <pthread.h>

#include "api/internal.h"
#include "kiln/debug.h"
#include "test/unit/api/built.h"
#include "test/unit/api/values.h"

enum { THREADS = 4, CALLS = 100, WARM = 4 };

static kiln_var attribute(kiln_builder *b, const char *name, float first, float second) {
  return attribute_of(b, name, vector_of(2, (float[]){first, second}));
}

/* if writes: mean += 1 */
static void write_mean(kiln_builder *b, kiln_var mean) {
  const kiln_var writes = input_of(b, "writes", "bool");
  kiln_value *one = int_of(1);
  assert_ok(kiln_builder_if(b, writes));
  (void)call_with(b, "aten::add_", (kiln_builder_arg[]){{.var = mean}, {.value = one}}, 2);
  assert_ok(kiln_builder_else(b, NULL, 0));
  assert_ok(kiln_builder_end_if(b, NULL, 0, NULL));
  kiln_value_destroy(one);
}

/* relu(batch_norm(x, w, b, mean, var)) * (v + v): scale (1, 2), shift (-1, 1), times (2, 4). */
static kiln_model *make(bool writes) {
  kiln_builder *b = create_builder(context);
  const kiln_var x = input_of(b, "x", "Tensor");
  const kiln_var w = attribute(b, "w", 2, 1), bias = attribute(b, "b", 0, 1);
  const kiln_var mean = attribute(b, "mean", 1, 0), var = attribute(b, "var", 4, 0.25f);
  const kiln_var v = attribute(b, "v", 1, 2);
  kiln_value *no = NULL, *zero = float_of(0);
  assert_ok(kiln_value_bool(context, 0, &no));
  if (writes) write_mean(b, mean);
  const kiln_builder_arg norm[] = {{.var = x},      {.var = w},      {.var = bias},
                                   {.var = mean},   {.var = var},    {.value = no},
                                   {.value = zero}, {.value = zero}, {.value = no}};
  kiln_var y = call_with(b, "aten::batch_norm", norm, 9);
  y = call_of(b, "aten::relu", y, 0);
  const kiln_var twice = call_of(b, "aten::add", v, v);
  kiln_model *model = finish_with(b, call_of(b, "aten::mul", y, twice));
  kiln_value_destroy(no);
  kiln_value_destroy(zero);
  return model;
}

/* Of x = (1, 2), (3, 4); count 1 or, where `writes` is an input, 2. */
static bool gives(kiln_instance *instance, int count, int writes, const float *want) {
  float got[4];
  kiln_value *args[2] = {matrix_of(2, 2, (float[]){1, 2, 3, 4}), NULL}, *result = NULL;
  assert_ok(kiln_value_bool(context, writes, &args[1]));
  assert_ok(kiln_instance_call(instance, "forward", args, count, NULL, &result));
  assert_ok(kiln_value_copy_data(result, got, sizeof got));
  for (int i = 0; i < 2; i++) kiln_value_destroy(args[i]);
  kiln_value_destroy(result);
  return memcmp(got, want, sizeof got) == 0;
}

static void assert_kept(kiln_model *model, int times) {
  char *text = NULL;
  int found = 0;
  assert_ok(kiln_debug_graph(model, "forward", "optimized", NULL, 0, &text));
  for (const char *at = text; (at = strstr(at, "[kept=1]")); at++) found++;
  assert_int_equal(found, times);
  kiln_text_free(text);
}

static const float first[4] = {0, 20, 4, 36};
/* mean (0, 0): shift (0, 1) */
static const float other[4] = {2, 20, 6, 36};
/* mean (2, 1): shift (-2, -1) */
static const float written[4] = {0, 12, 2, 28};

static void set_mean(kiln_instance *instance, float a, float b) {
  kiln_value *v = vector_of(2, (float[]){a, b});
  assert_ok(kiln_instance_set(instance, "mean", v));
  kiln_value_destroy(v);
}

static void instances_have_their_own(void **state) {
  (void)state;
  kiln_model *model = make(false);
  kiln_instance *a, *b;
  assert_ok(kiln_instance_create(model, &a));
  assert_ok(kiln_instance_create(model, &b));
  set_mean(b, 0, 0);
  for (int i = 0; i < WARM; i++) assert_true(gives(a, 1, 0, first));
  assert_kept(model, 2);
  for (int i = 0; i < WARM; i++) assert_true(gives(b, 1, 0, other) && gives(a, 1, 0, first));
  kiln_instance_release(a); /* its weights may go, and their places be taken */
  for (int i = 0; i < WARM; i++) assert_true(gives(b, 1, 0, other));
  kiln_instance_release(b);
  kiln_model_release(model);
}

static void attributes_are_set(void **state) {
  (void)state;
  kiln_model *model = make(false);
  kiln_instance *a;
  assert_ok(kiln_instance_create(model, &a));
  for (int i = 0; i < WARM; i++) assert_true(gives(a, 1, 0, first));
  for (int i = 0; i < WARM; i++) {
    set_mean(a, 0, 0);
    assert_true(gives(a, 1, 0, other) && gives(a, 1, 0, other));
    set_mean(a, 1, 0);
    assert_true(gives(a, 1, 0, first) && gives(a, 1, 0, first));
  }
  kiln_instance_release(a);
  kiln_model_release(model);
}

/* What is made of weights that were replaced does not pile up. */
static void settings_do_not_pile_up(void **state) {
  (void)state;
  enum { SETTINGS = 40, FULL = 8 };
  kiln_model *model = make(false);
  kiln_instance *a;
  size_t full = 0;
  assert_ok(kiln_instance_create(model, &a));
  for (int i = 0; i < WARM; i++) assert_true(gives(a, 1, 0, first));
  for (int n = 0; n < SETTINGS; n++) {
    const float mean = (float)n / (float)SETTINGS, want[4] = {2 - 2 * mean, 20, 6 - 2 * mean, 36};
    set_mean(a, mean, 0);
    for (int i = 0; i < 2 * WARM; i++) assert_true(gives(a, 1, 0, want));
    if (n == FULL) full = kiln_mem_bytes(context->env->mem);
  }
  assert_int_equal(kiln_mem_bytes(context->env->mem), full);
  kiln_instance_release(a);
  kiln_model_release(model);
}

static void buffers_are_written(void **state) {
  (void)state;
  kiln_model *model = make(true);
  kiln_instance *a;
  assert_ok(kiln_instance_create(model, &a));
  for (int i = 0; i < WARM; i++) assert_true(gives(a, 2, 0, first));
  assert_kept(model, 2);
  assert_true(gives(a, 2, 1, written));
  for (int i = 0; i < WARM; i++) assert_true(gives(a, 2, 0, written));
  kiln_instance_release(a);
  kiln_model_release(model);
}

/* -- Bits -- */

enum { CHANNELS = 5, ELEMENTS = 2 * CHANNELS * 3 * 2 * 2 };

/* Some number between -1 and 1. */
static double some(int i) { return (double)(i * 7919 % 2003) / 1001.5 - 1; }

static kiln_value *tensor_of(kiln_dtype dtype, int rank, const int64_t *sizes, double least) {
  float floats[ELEMENTS];
  double doubles[ELEMENTS];
  kiln_value *v = NULL;
  for (int i = 0; i < ELEMENTS; i++) {
    doubles[i] = least + some(i + rank);
    floats[i] = (float)doubles[i];
  }
  const bool wide = dtype == KILN_DTYPE_F64;
  assert_ok(kiln_value_tensor(context, dtype, rank, sizes, wide ? (void *)doubles : floats, &v));
  return v;
}

static kiln_var parameter(kiln_builder *b, const char *name, kiln_dtype dtype, double least) {
  return attribute_of(b, name, tensor_of(dtype, 1, (int64_t[]){CHANNELS}, least));
}

/* neg(batch_norm(x)) by the context; `affine`: with a weight and a bias. */
static void norm_of(int rank, kiln_dtype dtype, bool affine, bool is_kept, void *out,
                    size_t bytes) {
  static const int64_t sizes[5] = {2, CHANNELS, 3, 2, 2};
  kiln_builder *b = create_builder(context);
  const kiln_var x = input_of(b, "x", "Tensor");
  kiln_value *no = NULL, *eps = float_of(1e-3);
  assert_ok(kiln_value_bool(context, 0, &no));
  kiln_builder_arg norm[9] = {{.var = x}};
  if (affine) norm[1].var = parameter(b, "w", dtype, 0.3);
  if (affine) norm[2].var = parameter(b, "b", dtype, 0.1);
  norm[3].var = parameter(b, "mean", dtype, 0.2);
  norm[4].var = parameter(b, "var", dtype, 1.01);
  norm[5].value = norm[8].value = no;
  norm[6].value = norm[7].value = eps;
  const kiln_var y = call_with(b, "aten::batch_norm", norm, 9);
  kiln_model *model = finish_with(b, call_of(b, "aten::neg", y, 0));
  kiln_instance *instance = instance_of(model);
  kiln_value *input = tensor_of(dtype, rank, sizes, 0);
  for (int i = 0; i < WARM; i++) {
    kiln_value *result = NULL;
    assert_ok(kiln_instance_call(instance, "forward", &input, 1, NULL, &result));
    assert_ok(kiln_value_copy_data(result, out, bytes));
    kiln_value_destroy(result);
  }
  if (is_kept) assert_kept(model, 1);
  kiln_value_destroy(input);
  kiln_value_destroy(no);
  kiln_value_destroy(eps);
  kiln_instance_release(instance);
  kiln_model_release(model);
}

static void norms_have_the_interpreters_bits(void **state) {
  (void)state;
  static const char *const settings[][2] = {{"jit", "off"}, {"codegen", "eval"}, {NULL, NULL}};
  static const int64_t sizes[5] = {2, CHANNELS, 3, 2, 2};
  int64_t numel = 2;
  for (int rank = 2; rank <= 5; rank++) {
    numel *= sizes[rank - 1];
    for (int kind = 0; kind < 4; kind++) {
      const kiln_dtype dtype = kind & 1 ? KILN_DTYPE_F64 : KILN_DTYPE_F32;
      const size_t bytes = (size_t)numel * (kind & 1 ? sizeof(double) : sizeof(float));
      double got[3][ELEMENTS];
      for (int way = 0; way < 3; way++) {
        context = context_with(settings[way][0], settings[way][1]);
        norm_of(rank, dtype, kind & 2, way > 0, got[way], bytes);
        kiln_context_release(context);
      }
      assert_memory_equal(got[1], got[0], bytes);
      assert_memory_equal(got[2], got[0], bytes);
    }
  }
}

/* -- Threads -- */

typedef struct thread {
  pthread_t id;
  kiln_instance *instance;
  const float *want;
  bool good;
} thread;

static void *call_often(void *data) {
  thread *t = data;
  t->good = true;
  for (int i = 0; i < CALLS; i++) t->good &= gives(t->instance, 1, 0, t->want);
  return NULL;
}

/* From the first call on, so that they also meet while the plan has nothing yet. */
static void threads_call_two_instances(void **state) {
  (void)state;
  thread threads[THREADS];
  kiln_model *model = make(false);
  kiln_instance *instances[2];
  for (int i = 0; i < 2; i++) assert_ok(kiln_instance_create(model, &instances[i]));
  set_mean(instances[1], 0, 0);
  for (int i = 0; i < THREADS; i++) {
    threads[i] = (thread){.instance = instances[i % 2], .want = i % 2 ? other : first};
    assert_int_equal(pthread_create(&threads[i].id, NULL, call_often, &threads[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i].id, NULL);
    assert_true(threads[i].good);
  }
  assert_kept(model, 2);
  for (int i = 0; i < 2; i++) kiln_instance_release(instances[i]);
  kiln_model_release(model);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_eval, close_context)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(instances_have_their_own),
      TEST(attributes_are_set),
      TEST(settings_do_not_pile_up),
      TEST(buffers_are_written),
      cmocka_unit_test(norms_have_the_interpreters_bits),
      TEST(threads_call_two_instances),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
