/* nest_test.c: kernels that run kernels. Whatever operator a kernel is a step of, it has its own
 * arguments and no destination: overloads that differ in their arguments, and kernels that count
 * them, give the same under operators of any other count. */
#include "test/unit/runtime/run_kernel.h"

enum { MOST_ARGS = 12, MOST_NUMBERS = 256 };

/* One kernel with arguments; what stands behind those is none of its own. */
typedef struct step {
  const char *name;
  kiln_kernel_body body;
  int count;
  kiln_ivalue args[MOST_ARGS];
} step;

typedef struct answer {
  int count;
  double numbers[MOST_NUMBERS];
} answer;

static void put(answer *a, double x) {
  assert_true(a->count < MOST_NUMBERS);
  a->numbers[a->count++] = x;
}
static void put_value(answer *a, kiln_ivalue v) {
  put(a, v.tag);
  if (v.tag == KILN_TAG_TENSOR) {
    const kiln_tensor *t = v.u.tensor;
    put(a, kiln_tensor_dtype(t));
    for (int d = 0; d < kiln_tensor_rank(t); d++) put(a, (double)kiln_tensor_sizes(t)[d]);
    for (int64_t i = 0; i < t->numel; i++) {
      put(a, kiln__element_f64(t, kiln__offset_of(kiln_tensor_rank(t), kiln_tensor_sizes(t),
                                                  kiln_tensor_strides(t), i)));
    }
  } else if (v.tag == KILN_TAG_LIST) {
    for (int64_t i = 0; i < v.u.list->count; i++) put_value(a, v.u.list->items[i]);
  } else if (v.tag == KILN_TAG_STRING) {
    const kiln_str s = kiln_string_view(v.u.string);
    for (size_t i = 0; i < s.len; i++) put(a, s.data[i]);
  } else if (v.tag == KILN_TAG_FLOAT) {
    put(a, v.u.f);
  } else if (v.tag != KILN_TAG_NONE) {
    put(a, (double)v.u.i);
  }
}

/* The body of an operator whose `user` is a step. */
static kiln_status *run_step(kiln_call *call, const kiln_ivalue *args, kiln_ivalue *outs) {
  const kiln_kernel *own = call->kernel;
  const int count = call->arg_count;
  const step *s = own->user;
  (void)args;
  kiln_status *status = kiln_kernel_step(call, s->body, s->args, s->count, outs);
  assert_ptr_equal(call->kernel, own);
  assert_int_equal(call->arg_count, count);
  return status;
}
/* The same as a composite: two kernels deep. */
KILN_COMPOSITE(nest_step) {
  kiln_ivalue results[KILN_MAX_OUTS] = {{0}};
  (void)kiln__composite_ok(r, run_step(r->call, args, results));
  for (int i = 0; i < KILN_MAX_OUTS; i++) outs[i] = results[i];
  return NULL;
}

static void answer_of(fixture *f, const kiln_kernel *kernel, const kiln_ivalue *args, int count,
                      answer *out) {
  kiln_ivalue outs[KILN_MAX_OUTS] = {{0}};
  assert_ok(kiln_kernel_run(f->call, kernel, args, count, outs));
  out->count = 0;
  for (int i = 0; i < KILN_MAX_OUTS; i++) {
    put_value(out, outs[i]);
    kiln_ivalue_release_to(&f->call->cache, outs[i]);
  }
}

/* Under operators of 0 to 11 arguments, in place and not, with values behind its own. */
static void check_step(fixture *f, step *s, kiln_ivalue word) {
  const kiln_kernel alone = {
      .name = "aten::alone", .body = s->body, .arg_count = (int16_t)s->count, .dest_arg = -1};
  const kiln_ivalue behind[] = {word, I(1), F(0.5), NONE};
  answer want, got;
  answer_of(f, &alone, s->args, s->count, &want);
  for (int count = 0; count < MOST_ARGS; count++) {
    const kiln_ivalue given[MOST_ARGS] = {{0}};
    for (int way = 0; way < 4; way++) {
      kiln_kernel outer = {.name = "aten::outer.Scalar",
                           .body = way & 1 ? kiln__kernel_nest_step : run_step,
                           .arg_count = (int16_t)count,
                           .dest_arg = way & 2 ? 0 : -1,
                           .user = s};
      for (int i = s->count; i < MOST_ARGS; i++) s->args[i] = behind[(count + way) % 4];
      answer_of(f, &outer, given, count, &got);
      if (got.count == want.count &&
          memcmp(got.numbers, want.numbers, sizeof(double) * (size_t)got.count) == 0) {
        continue;
      }
      fail_msg("%s differs under an operator of %d arguments (way %d)", s->name, count, way);
    }
  }
  assert_null(f->call->kernel);
}

static kiln_tensor *tensor(fixture *f, kiln_dtype dtype, int rank, const int64_t *sizes) {
  kiln_tensor *t;
  void *data;
  assert_ok(kiln_call_tensor(f->call, dtype, rank, sizes, &t));
  assert_ok(kiln_tensor_writable_data(t, &data));
  for (int64_t i = 0; i < t->numel; i++) {
    const double v = (double)(i % 3);
    kiln__number_store(kiln__number_float(v), dtype,
                       (char *)data + (size_t)i * kiln_dtype_bytes(dtype));
  }
  return t;
}
static kiln_ivalue text(fixture *f, const char *s) {
  kiln_string *string;
  assert_ok(kiln_string_create(f->env->mem, kiln_str_from(s), &string));
  return kiln_of_box(string);
}
static kiln_ivalue ints(fixture *f, int64_t a, int64_t b) {
  kiln_list *list;
  assert_ok(kiln__new_list(f->call, KILN_TYPE_INT, 2, &list));
  assert_ok(kiln_list_push(list, kiln_int(a)));
  assert_ok(kiln_list_push(list, kiln_int(b)));
  return kiln_of_box(list);
}

#define STEP(name, ...)                                                     \
  {                                                                         \
    #name, KILN_BODY_OF(name), KILN_ARG_COUNT(__VA_ARGS__), { __VA_ARGS__ } \
  }

static void test_steps_have_their_own_arguments(void **state) {
  fixture *f = *state;
  kiln_tensor *m = tensor(f, KILN_DTYPE_F32, 2, (const int64_t[]){3, 4});
  kiln_tensor *v = tensor(f, KILN_DTYPE_F32, 1, (const int64_t[]){5});
  kiln_tensor *at = tensor(f, KILN_DTYPE_I64, 1, (const int64_t[]){4});
  kiln_tensor *from = tensor(f, KILN_DTYPE_I64, 1, (const int64_t[]){1});
  kiln_tensor *mask = tensor(f, KILN_DTYPE_BOOL, 2, (const int64_t[]){3, 4});
  kiln_tensor *x = tensor(f, KILN_DTYPE_F32, 4, (const int64_t[]){1, 2, 5, 5});
  kiln_tensor *w = tensor(f, KILN_DTYPE_F32, 4, (const int64_t[]){2, 2, 2, 2});
  kiln_list *two;
  assert_ok(kiln__new_list(f->call, KILN_TYPE_TENSOR, 2, &two));
  assert_ok(kiln_list_push(two, kiln_of_tensor(kiln_tensor_retain(v))));
  assert_ok(kiln_list_push(two, kiln_of_tensor(kiln_tensor_retain(v))));
  const kiln_ivalue xy = text(f, "xy"), pattern = text(f, "{} and {}"), list = kiln_of_box(two);
  const kiln_ivalue dims = ints(f, 0, 1), one = ints(f, 1, 1), far = ints(f, 2, 2);
  step steps[] = {
      STEP(meshgrid, list),
      STEP(meshgrid_indexing, list, xy),
      STEP(norm_dim, T(m), I(2), dims, B(false)),
      STEP(norm_dim_dtype, T(m), I(2), dims, B(false), I(KILN_DTYPE_F64)),
      STEP(frobenius_norm, T(m), dims, B(true)),
      STEP(nuclear_norm, T(m), B(true)),
      STEP(nuclear_norm_dim, T(m), dims, B(false)),
      STEP(thnn_conv2d, T(x), T(w), one, NONE, one, one),
      STEP(slow_conv_dilated2d, T(x), T(w), one, NONE, one, one, far),
      STEP(embedding_bag, T(m), T(at), T(from), B(false), I(0), B(false), NONE, B(false)),
      STEP(embedding_bag_padding_idx, T(m), T(at), T(from), B(false), I(0), B(false), NONE,
           B(false), I(-3)),
      STEP(_embedding_bag, T(m), T(at), T(from), B(false), I(0), B(false), NONE, B(false), I(1)),
      STEP(hann_window, I(6), NONE, NONE, NONE, NONE),
      STEP(hann_window_periodic, I(6), B(false), NONE, NONE, NONE, NONE),
      STEP(kaiser_window_beta, I(6), B(false), F(3), NONE, NONE, NONE, NONE),
      STEP(format, pattern, I(1), F(2)),
      STEP(math_exp, F(0.1)),
      STEP(math_exp_scalar, F(0.1)),
      STEP(block_diag, list),
      STEP(cartesian_prod, list),
      STEP(masked_scatter, T(m), T(mask), T(m)),
  };
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) check_step(f, &steps[i], xy);
  const kiln_ivalue values[] = {T(m), T(v), T(at),   T(from), T(mask), T(x), T(w),
                                xy,   list, pattern, dims,    one,     far};
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) kiln_ivalue_release(values[i]);
}

/* What a failing step complains about is the operator's. */
static void test_steps_complain_as_the_operator(void **state) {
  fixture *f = *state;
  const kiln_ivalue pattern = text(f, "{}");
  kiln_tensor *none = tensor(f, KILN_DTYPE_BOOL, 1, (const int64_t[]){2});
  step s = STEP(norm_dim, T(none), I(2), NONE, B(false));
  const kiln_kernel outer = {.name = "aten::outer.x", .body = run_step, .dest_arg = -1, .user = &s};
  kiln_ivalue outs[KILN_MAX_OUTS] = {{0}};
  assert_error(kiln_kernel_run(f->call, &outer, NULL, 0, outs), KILN_OP_ERROR, NULL);
  s = (step)STEP(format, pattern);
  assert_error(kiln_kernel_run(f->call, &outer, NULL, 0, outs), KILN_OP_ERROR, "Too few arguments");
  assert_null(f->call->kernel);
  kiln_ivalue_release(pattern);
  kiln_tensor_release(none);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_steps_have_their_own_arguments, setup, teardown),
      cmocka_unit_test_setup_teardown(test_steps_complain_as_the_operator, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
