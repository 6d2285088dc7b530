/* aot_test.c: programs of `kiln compile`: what they refuse, and calls by several threads.
 *
 *     aot_test aot_mlp.weights aot_tied.weights
 *
 * That they give the library's bits is test/aot.py's. */
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <setjmp.h>

#include <cmocka.h>
#include <pthread.h>

#include "aot/aot.h"
#include "aot_mlp.h"
#include "aot_tied.h"

enum { MLP_ROWS = 4, MLP_COLUMNS = 13, TIED_SIZE = 2, MOST = 4096 };
static const char *mlp_weights, *tied_weights;

static void must(kiln_status *status) {
  if (status) fail_msg("%s", kiln_status_report(status));
}
static void refused(kiln_status *status, kiln_code code, const char *words) {
  if (kiln_status_code(status) != code || !strstr(kiln_status_message(status), words))
    fail_msg("%s: %s", kiln_code_name(kiln_status_code(status)), kiln_status_message(status));
  kiln_status_destroy(status);
}

static kiln_aot_model *open_mlp(int threads) {
  kiln_aot_model *model;
  const kiln_aot_options options = {.threads = threads, .struct_size = sizeof options};
  must(aot_mlp_open(mlp_weights, &options, &model));
  return model;
}

/* Of the shape that it was compiled with. */
static kiln_aot_tensor input_of(float *data) {
  for (int i = 0; i < MOST; i++) data[i] = (float)(i % 17) / 16 - 0.5f;
  return (kiln_aot_tensor){
      .data = data, .dtype = KILN_DTYPE_F32, .rank = 2, .sizes = {MLP_ROWS, MLP_COLUMNS}};
}

static void call(kiln_aot_model *model, float *out) {
  float in[MOST];
  const kiln_aot_tensor input = input_of(in);
  kiln_aot_tensor output = {.data = out, .bytes = AOT_MLP_OUTPUT_0_BYTES};
  must(aot_mlp_call(model, &input, &output));
  assert_int_equal(output.rank, 2);
  assert_int_equal(output.sizes[0], MLP_ROWS);
}

/* -- Opening -- */

static void *read_all(const char *path, size_t *out_size) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  fseek(file, 0, SEEK_END);
  *out_size = (size_t)ftell(file);
  rewind(file);
  void *data = aligned_alloc(64, (*out_size + 128) & ~(size_t)63);
  assert_int_equal(fread(data, 1, *out_size, file), *out_size);
  fclose(file);
  return data;
}

static void test_memory_is_like_a_file(void **state) {
  size_t size;
  float one[MOST], other[MOST];
  char *data = read_all(mlp_weights, &size);
  kiln_aot_model *file = open_mlp(1), *memory, *threads = open_mlp(2);
  (void)state;
  must(kiln_aot_open_memory(&aot_mlp_program, data, size, NULL, &memory));
  for (int i = 0; i < 3; i++) {
    call(file, one);
    call(memory, other);
    assert_memory_equal(one, other, AOT_MLP_OUTPUT_0_BYTES);
    call(threads, other);
    assert_memory_equal(one, other, AOT_MLP_OUTPUT_0_BYTES);
  }
  assert_true(kiln_aot_bytes(file) > 0);
  kiln_aot_close(file);
  kiln_aot_close(memory);
  kiln_aot_close(threads);
  free(data);
}

static kiln_status *open_bytes(const void *data, size_t size) {
  kiln_aot_model *model = NULL;
  kiln_status *status = kiln_aot_open_memory(&aot_mlp_program, data, size, NULL, &model);
  assert_true(status || model);
  kiln_aot_close(model);
  return status;
}

static void test_weights_of_others(void **state) {
  size_t size;
  char *data = read_all(mlp_weights, &size), path[] = "/tmp/kiln-aot-XXXXXX";
  kiln_aot_model *model;
  (void)state;
  refused(aot_mlp_open("no such file", NULL, &model), KILN_NOT_FOUND, "no such file: ");
  refused(aot_mlp_open("/", NULL, &model), KILN_INVALID_FILE, "/ is no file");
  refused(aot_mlp_open(tied_weights, NULL, &model), KILN_INVALID_FILE, "of another program");
  refused(open_bytes(data, size - 1), KILN_INVALID_FILE, "it is cut off");
  refused(open_bytes(data, 10), KILN_INVALID_FILE, "no weights of kiln compile");
  refused(open_bytes(data, 0), KILN_INVALID_FILE, "no weights of kiln compile");
  refused(open_bytes(data + 8, size - 8), KILN_INVALID_FILE, "no weights of kiln compile");
  memmove(data + 8, data, size);
  refused(open_bytes(data + 8, size), KILN_INVALID_ARGUMENT, "not 64-byte aligned");
  const int fd = mkstemp(path);
  close(fd);
  refused(aot_mlp_open(path, NULL, &model), KILN_INVALID_FILE, "no weights of kiln compile");
  unlink(path);
  refused(kiln_aot_open(&aot_mlp_program, NULL, NULL, &model), KILN_INVALID_ARGUMENT, "NULL");
  refused(kiln_aot_open_memory(NULL, data, size, NULL, &model), KILN_INVALID_ARGUMENT, "NULL");
  const kiln_aot_options few = {.threads = -1, .struct_size = sizeof few};
  refused(aot_mlp_open(mlp_weights, &few, &model), KILN_INVALID_ARGUMENT, "-1 threads");
  kiln_aot_close(NULL);
  free(data);
}

/* -- Calls -- */

static void test_wrong_arguments(void **state) {
  float in[MOST], out[MOST];
  kiln_aot_model *m = open_mlp(1);
  const kiln_aot_tensor right = input_of(in);
  kiln_aot_tensor wrong = right, o = {.data = out, .bytes = sizeof out};
  (void)state;
  refused(kiln_aot_call(NULL, &right, 1, &o, 1), KILN_INVALID_ARGUMENT, "the model is NULL");
  refused(kiln_aot_call(m, &right, 2, &o, 1), KILN_INVALID_ARGUMENT, "takes 1 inputs");
  refused(kiln_aot_call(m, &right, 1, &o, 0), KILN_INVALID_ARGUMENT, "gives 1 outputs");
  refused(kiln_aot_call(m, NULL, 1, &o, 1), KILN_INVALID_ARGUMENT, "an array is NULL");
  wrong.rank = KILN_AOT_RANK + 1;
  refused(aot_mlp_call(m, &wrong, &o), KILN_INVALID_ARGUMENT, "x: a rank of 9");
  wrong.rank = -1;
  refused(aot_mlp_call(m, &wrong, &o), KILN_INVALID_ARGUMENT, "x: a rank of -1");
  wrong = right;
  wrong.dtype = (kiln_dtype)99;
  refused(aot_mlp_call(m, &wrong, &o), KILN_INVALID_ARGUMENT, "x: dtype 99 is none");
  wrong = right;
  wrong.sizes[1] = -2;
  refused(aot_mlp_call(m, &wrong, &o), KILN_INVALID_ARGUMENT, "x: dimension 1 has size -2");
  wrong.sizes[0] = wrong.sizes[1] = INT64_MAX / 2;
  refused(aot_mlp_call(m, &wrong, &o), KILN_INVALID_ARGUMENT, "more elements than memory has");
  wrong = right;
  wrong.data = NULL;
  refused(aot_mlp_call(m, &wrong, &o), KILN_INVALID_ARGUMENT, "x: a tensor without data");
  wrong.data = (char *)in + 1;
  refused(aot_mlp_call(m, &wrong, &o), KILN_INVALID_ARGUMENT, "x: the data is not aligned");
  wrong = right;
  wrong.sizes[0] = MLP_ROWS + 1;
  refused(aot_mlp_call(m, &wrong, &o), KILN_INVALID_ARGUMENT, "aot_mlp was compiled for (Float(");
  wrong = right;
  wrong.dtype = KILN_DTYPE_I32;
  refused(aot_mlp_call(m, &wrong, &o), KILN_OP_ERROR, "expected scalar type Int but found Float");
  call(m, out); /* none of it stays */
  kiln_aot_close(m);
}

static void test_room_of_outputs(void **state) {
  float in[MOST], out[MOST];
  kiln_aot_model *m = open_mlp(1);
  const kiln_aot_tensor input = input_of(in);
  kiln_aot_tensor o = {.data = out, .bytes = AOT_MLP_OUTPUT_0_BYTES - 1};
  (void)state;
  memset(out, 0x5a, sizeof out);
  refused(aot_mlp_call(m, &input, &o), KILN_INVALID_ARGUMENT, "bytes, and there is room for");
  assert_int_equal(((char *)out)[0], 0x5a); /* nothing was written, and what it takes is known: */
  assert_int_equal(o.rank, 2);
  assert_int_equal(o.sizes[0] * o.sizes[1] * 4, AOT_MLP_OUTPUT_0_BYTES);
  o = (kiln_aot_tensor){0};
  refused(aot_mlp_call(m, &input, &o), KILN_INVALID_ARGUMENT, "there is room for 0");
  assert_int_equal(o.dtype, KILN_DTYPE_F32);
  kiln_aot_close(m);
}

/* Whatever request fails, the call has one status, or its answer. */
static void test_no_memory(void **state) {
  float in[MOST], out[MOST], want[MOST];
  kiln_aot_model *m = open_mlp(1);
  const kiln_aot_tensor input = input_of(in);
  (void)state;
  call(m, want);
  for (uint64_t n = 1, failed = 1; failed; n++) {
    kiln_aot_tensor o = {.data = out, .bytes = sizeof out};
    for (int i = 0; i < m->idle_count; i++) kiln_call_destroy(m->idle[i]); /* begin anew */
    m->idle_count = 0;
    kiln_mem_fail_at(m->env->mem, n);
    kiln_status *status = aot_mlp_call(m, &input, &o);
    failed = kiln_mem_fail_at(m->env->mem, 0) >= n;
    if (status)
      assert_int_equal(kiln_status_code(status), KILN_OUT_OF_MEMORY);
    else
      assert_memory_equal(out, want, AOT_MLP_OUTPUT_0_BYTES);
    kiln_status_destroy(status);
    assert_true(n < 10000);
  }
  kiln_aot_close(m);
}

/* -- Threads -- */

typedef struct worker {
  pthread_t thread;
  kiln_aot_model *mlp, *tied;
  float out[MOST];
} worker;

static void *work(void *data) {
  worker *w = data;
  float in[4] = {1, 2, 3, 4}, out[64];
  for (int i = 0; i < 50; i++) {
    call(w->mlp, w->out);
    const kiln_aot_tensor input = {
        .data = in, .dtype = KILN_DTYPE_F32, .rank = 2, .sizes = {TIED_SIZE, TIED_SIZE}};
    kiln_aot_tensor outputs[AOT_TIED_OUTPUTS];
    for (int k = 0; k < AOT_TIED_OUTPUTS; k++)
      outputs[k] = (kiln_aot_tensor){.data = out, .bytes = sizeof out};
    must(aot_tied_call(w->tied, &input, outputs));
  }
  return NULL;
}

/* One model by all: one that only reads, and one that writes to its attributes. */
static void test_threads(void **state) {
  enum { THREADS = 4 };
  static worker workers[THREADS];
  kiln_aot_model *mlp = open_mlp(1), *tied;
  (void)state;
  must(aot_tied_open(tied_weights, NULL, &tied));
  assert_false(aot_mlp_program.writes);
  assert_true(aot_tied_program.writes);
  for (int i = 0; i < THREADS; i++) {
    workers[i].mlp = mlp;
    workers[i].tied = tied;
    pthread_create(&workers[i].thread, NULL, work, &workers[i]);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(workers[i].thread, NULL);
  for (int i = 1; i < THREADS; i++)
    assert_memory_equal(workers[i].out, workers[0].out, AOT_MLP_OUTPUT_0_BYTES);
  kiln_aot_close(mlp);
  kiln_aot_close(tied);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_memory_is_like_a_file),
                                     cmocka_unit_test(test_weights_of_others),
                                     cmocka_unit_test(test_wrong_arguments),
                                     cmocka_unit_test(test_room_of_outputs),
                                     cmocka_unit_test(test_no_memory),
                                     cmocka_unit_test(test_threads)};
  if (argc != 3) return 2;
  mlp_weights = argv[1];
  tied_weights = argv[2];
  return cmocka_run_group_tests(tests, NULL, NULL);
}
