/* nn_test.c: kernels of neural network layers and of matrix products against the results of PyTorch
 * in test/data/kernels (made by test/make/nn_kernels.py, which tells the format, and
 * matmul_kernels.py). */
#include "test/unit/odd_strides.h"

#include <math.h>
#include <stdlib.h>

#include "base/sanitize.h"
#include "runtime/kernels/support.h"

/* -- The kernels by name -- */

#define KERNELS(X)                    \
  X(gru_cell)                         \
  X(lstm_cell)                        \
  X(rnn_tanh_cell)                    \
  X(rnn_relu_cell)                    \
  X(layer_norm)                       \
  X(native_layer_norm)                \
  X(softmax)                          \
  X(log_softmax)                      \
  X(_softmax)                         \
  X(_log_softmax)                     \
  X(dropout)                          \
  X(dropout_)                         \
  X(embedding)                        \
  X(one_hot)                          \
  X(batch_norm)                       \
  X(native_batch_norm)                \
  X(instance_norm)                    \
  X(group_norm)                       \
  X(mse_loss)                         \
  X(l1_loss)                          \
  X(smooth_l1_loss)                   \
  X(huber_loss)                       \
  X(binary_cross_entropy)             \
  X(binary_cross_entropy_with_logits) \
  X(nll_loss)                         \
  X(nll_loss_forward)                 \
  X(cross_entropy_loss)               \
  X(conv1d)                           \
  X(conv2d)                           \
  X(conv3d)                           \
  X(conv_transpose1d)                 \
  X(conv_transpose2d)                 \
  X(convolution)                      \
  X(max_pool2d)                       \
  X(max_pool2d_with_indices)          \
  X(avg_pool2d)                       \
  X(adaptive_avg_pool2d)              \
  X(mm)                               \
  X(bmm)                              \
  X(matmul)                           \
  X(linear)                           \
  X(addmm)                            \
  X(baddbmm)                          \
  X(addmv)                            \
  X(mv)                               \
  X(dot)
#define DECLARE(name) \
  kiln_status *kiln__kernel_##name(kiln_call *call, const kiln_ivalue *args, kiln_ivalue *outs);
KERNELS(DECLARE)
#define ENTRY(name_)             \
  {.name = "aten::" #name_,      \
   .body = kiln__kernel_##name_, \
   .arg_count = -1,              \
   .out_count = 1,               \
   .dest_arg = -1},
static const kiln_kernel kernels[] = {KERNELS(ENTRY)};

static const kiln_kernel *find_kernel(const char *name) {
  for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
    if (strcmp(kernels[i].name + 6, name) == 0) return &kernels[i];
  }
  fail_msg("no kernel %s", name);
  return NULL;
}

/* -- Reading -- */

enum { MAX_ARGS = 16, MAX_LINE = 1 << 16 };

typedef struct reader {
  kiln_env *env;
  kiln_call *call;
  FILE *file;
  int line_number;
  char line[MAX_LINE];
  bool held;        /* the line was read and not used */
  bool odd_strides; /* of arguments */
} reader;

static bool next_line(reader *r) {
  if (r->held) {
    r->held = false;
    return true;
  }
  do {
    if (!fgets(r->line, sizeof r->line, r->file)) return false;
    r->line_number++;
    r->line[strcspn(r->line, "\n")] = 0;
  } while (r->line[0] == '#');
  return true;
}
static int read_ints(const char *text, int64_t *out) {
  int count = 0;
  if (text[0] == '-' && text[1] == 0) return 0;
  for (char *end; *text; text = *end ? end + 1 : end) {
    assert_true(count < KILN_MAX_RANK);
    out[count++] = strtoll(text, &end, 10);
    assert_true(end != text);
  }
  return count;
}
static kiln_dtype read_dtype(const char *name) {
  static const struct {
    const char *name;
    kiln_dtype dtype;
  } names[] = {{"f32", KILN_DTYPE_F32}, {"f64", KILN_DTYPE_F64}, {"bf16", KILN_DTYPE_BF16},
               {"i64", KILN_DTYPE_I64}, {"i32", KILN_DTYPE_I32}, {"b8", KILN_DTYPE_BOOL},
               {"u8", KILN_DTYPE_U8}};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (strcmp(names[i].name, name) == 0) return names[i].dtype;
  }
  fail_msg("no dtype %s", name);
  return KILN_DTYPE_F32;
}
/* "DTYPE SIZES STRIDES : elements" */
static kiln_tensor *read_tensor(reader *r, char *text) {
  char dtype_name[8], sizes_text[128], strides_text[128];
  int used = 0;
  assert_int_equal(sscanf(text, "%7s %127s %127s :%n", dtype_name, sizes_text, strides_text, &used),
                   3);
  assert_true(used > 0);
  int64_t sizes[KILN_MAX_RANK], strides[KILN_MAX_RANK];
  const int rank = read_ints(sizes_text, sizes);
  read_ints(strides_text, strides);
  const kiln_dtype dtype = read_dtype(dtype_name);
  kiln_tensor *t;
  void *data;
  assert_ok(kiln_tensor_create_strided(r->env->mem, NULL, dtype, rank, sizes, strides, &t));
  assert_ok(kiln_tensor_writable_data(t, &data));
  char *at = text + used, *end;
  for (size_t i = 0;; i++, at = end) {
    const double value = strtod(at, &end);
    if (end == at) break;
    assert_true((i + 1) * kiln_dtype_bytes(dtype) <= t->storage->bytes);
    kiln__number_store(kiln_dtype_is_int(dtype, true) ? kiln__number_int((int64_t)value)
                                                      : kiln__number_float(value),
                       dtype, (char *)data + i * kiln_dtype_bytes(dtype));
  }
  return t;
}
static kiln_ivalue read_arg(reader *r);
static kiln_ivalue read_tensor_list(reader *r, int64_t count) {
  kiln_list *list;
  assert_ok(kiln_list_create(r->env->mem, kiln_type_basic(KILN_TYPE_TENSOR), count, &list));
  for (int64_t i = 0; i < count; i++) {
    assert_true(next_line(r));
    assert_ok(kiln_list_push(list, read_arg(r)));
  }
  return kiln_of_box(list);
}
/* Of the line "arg ...". */
static kiln_ivalue read_arg(reader *r) {
  assert_memory_equal(r->line, "arg ", 4);
  char *text = r->line + 4;
  if (strncmp(text, "TL ", 3) == 0) return read_tensor_list(r, atoi(text + 3));
  char *value = text[1] ? text + 2 : text + 1;
  switch (text[0]) {
    case 'T': {
      kiln_tensor *t = read_tensor(r, value);
      return kiln_of_tensor(r->odd_strides ? odd_strides(t) : t);
    }
    case 'I': return kiln_int(strtoll(value, NULL, 10));
    case 'F': return kiln_float(strtod(value, NULL));
    case 'B': return kiln_bool(value[0] == '1');
    case 'N': return kiln_none();
    case 'S': {
      kiln_string *string;
      assert_ok(kiln_string_create(r->env->mem, kiln_str_make(value, strlen(value)), &string));
      return kiln_of_box(string);
    }
    case 'L': {
      kiln_list *list;
      assert_ok(kiln_list_create(r->env->mem, kiln_type_basic(KILN_TYPE_INT), 4, &list));
      for (char *end; *value; value = end) {
        const int64_t i = strtoll(value, &end, 10);
        if (end == value) break;
        assert_ok(kiln_list_push(list, kiln_int(i)));
      }
      return kiln_of_box(list);
    }
    default: fail_msg("line %d: %s", r->line_number, r->line); return kiln_none();
  }
}

/* -- Comparing -- */

static double at(const kiln_tensor *t, int64_t i) {
  return kiln__element_f64(
      t, kiln__offset_of(kiln_tensor_rank(t), kiln_tensor_sizes(t), kiln_tensor_strides(t), i));
}
static void expect_tensor(const reader *r, const char *name, kiln_ivalue got,
                          const kiln_tensor *want, double tolerance) {
  assert_int_equal(got.tag, KILN_TAG_TENSOR);
  const kiln_tensor *t = got.u.tensor;
  assert_int_equal(kiln_tensor_dtype(t), kiln_tensor_dtype(want));
  assert_int_equal(kiln_tensor_rank(t), kiln_tensor_rank(want));
  for (int d = 0; d < kiln_tensor_rank(t); d++) {
    assert_int_equal(kiln_tensor_sizes(t)[d], kiln_tensor_sizes(want)[d]);
  }
  for (int64_t i = 0; i < t->numel; i++) {
    const double a = at(t, i), b = at(want, i);
    if (isnan(b) ? isnan(a) : a == b || fabs(a - b) <= tolerance * (1 + fabs(b))) continue;
    fail_msg("line %d: %s: element %lld is %.17g, not %.17g", r->line_number, name, (long long)i, a,
             b);
  }
}
/* The lines after the arguments. */
static void expect(reader *r, const kiln_kernel *kernel, kiln_status *status,
                   const kiln_ivalue *args, const kiln_ivalue *outs) {
  assert_true(next_line(r));
  if (strncmp(r->line, "error ", 6) == 0) {
    if (!status) print_error("line %d: %s\n", r->line_number, kernel->name);
    assert_error(status, KILN_OP_ERROR, r->line + 6);
    return;
  }
  if (status) print_error("line %d: %s\n", r->line_number, kernel->name);
  assert_ok(status);
  int count = 0;
  do {
    char *tensor = r->line + 4;
    const bool is_out = strncmp(r->line, "out ", 4) == 0;
    const kiln_ivalue got = is_out ? outs[count++] : args[strtol(r->line + 6, &tensor, 10)];
    const double tolerance = strtod(tensor, &tensor);
    kiln_tensor *want = read_tensor(r, tensor + 3);
    expect_tensor(r, kernel->name, got, want, tolerance);
    kiln_tensor_release(want);
  } while (next_line(r) &&
           (strncmp(r->line, "out ", 4) == 0 || strncmp(r->line, "after ", 6) == 0));
  r->held = !feof(r->file);
}

static void run_file(kiln_isa isa, bool odd, const char *name, int least) {
  static reader r;
  memset(&r, 0, sizeof r);
  r.odd_strides = odd;
  assert_ok(kiln_env_create(NULL, &r.env));
  assert_ok(kiln_call_create(r.env, &r.call));
  kiln_call_begin(r.call, NULL);
  r.call->dispatch = kiln_dispatch_select(isa);
  char path[1024];
  snprintf(path, sizeof path, "%s/kernels/%s", KILN_TEST_DATA, name);
  r.file = fopen(path, "r");
  assert_non_null(r.file);
  int cases = 0;
  for (; next_line(&r); cases++) {
    assert_memory_equal(r.line, "case ", 5);
    const kiln_kernel *kernel = find_kernel(r.line + 5);
    kiln_ivalue args[MAX_ARGS], outs[KILN_MAX_OUTS];
    int count = 0;
    while (next_line(&r) && strncmp(r.line, "arg ", 4) == 0) {
      assert_true(count < MAX_ARGS);
      args[count++] = read_arg(&r);
    }
    r.held = true;
    for (int i = 0; i < KILN_MAX_OUTS; i++) outs[i] = kiln_none();
    expect(&r, kernel, kiln_kernel_run(r.call, kernel, args, count, outs), args, outs);
    for (int i = 0; i < count; i++) kiln_ivalue_release(args[i]);
    for (int i = 0; i < KILN_MAX_OUTS; i++) kiln_ivalue_release(outs[i]);
  }
  assert_true(cases >= least);
  fclose(r.file);
  kiln_call_destroy(r.call);
  kiln_env_destroy(r.env);
}
/* On every instruction set of this processor. */
static void test_nn(void **state) {
  (void)state;
  for (int isa = 0; isa <= (int)kiln_dispatch_last(); isa++)
    run_file((kiln_isa)isa, false, "nn.txt", 150);
}
static void test_matmul(void **state) {
  (void)state;
  for (int isa = 0; isa <= (int)kiln_dispatch_last(); isa++) {
    run_file((kiln_isa)isa, false, "matmul.txt", 150);
  }
}
static void test_odd_strides(void **state) {
  (void)state;
  run_file(kiln_isa_detect(), true, "nn.txt", 150);
  run_file(kiln_isa_detect(), true, "matmul.txt", 150);
}

/* -- Dropout's noise -- */

static void test_dropout_keeps_its_share(void **state) {
  (void)state;
  enum { N = 20000 };
  kiln_env *env;
  kiln_call *call;
  assert_ok(kiln_env_create(NULL, &env));
  assert_ok(kiln_call_create(env, &call));
  kiln_call_begin(call, NULL);
  const kiln_kernel *dropout = find_kernel("dropout");
  kiln_tensor *t;
  void *data;
  const int64_t size = N;
  assert_ok(kiln_tensor_create(env->mem, NULL, KILN_DTYPE_F32, 1, &size, &t));
  assert_ok(kiln_tensor_writable_data(t, &data));
  for (int i = 0; i < N; i++) ((float *)data)[i] = 2;
  kiln_ivalue args[] = {kiln_of_tensor(t), kiln_float(0.25), kiln_bool(true)}, out = kiln_none();
  assert_ok(kiln_kernel_run(call, dropout, args, 3, &out));
  assert_ptr_not_equal(out.u.tensor, t);
  int zeros = 0;
  for (int64_t i = 0; i < N; i++) {
    const double value = at(out.u.tensor, i);
    if (value == 0)
      zeros++;
    else
      assert_true(fabs(value - 2 / 0.75) < 1e-6);
  }
  /* 5000 are expected, with a standard deviation of 61. */
  assert_in_range(zeros, 4600, 5400);
  kiln_ivalue_release(out);
  args[2] = kiln_bool(false);
  out = kiln_none();
  assert_ok(kiln_kernel_run(call, dropout, args, 3, &out));
  assert_ptr_equal(out.u.tensor, t);
  kiln_ivalue_release(out);
  kiln_tensor_release(t);
  kiln_call_destroy(call);
  kiln_env_destroy(env);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_nn),
      cmocka_unit_test(test_matmul),
      cmocka_unit_test(test_odd_strides),
      cmocka_unit_test(test_dropout_keeps_its_share),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
