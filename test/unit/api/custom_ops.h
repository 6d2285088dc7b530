/* custom_ops.h: the operators of test/data/custom in C (test/make/custom_ops.py has them in
 * Python): of float tensors, rank 0 to 2. Each counts its runs in the custom_count that is its user
 * data. */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "kiln/kiln_op.h"

typedef struct custom_case {
  const char *schema;
  kiln_op_kernel_fn kernel;
  kiln_op_shape_fn shape;
  uint32_t flags;
} custom_case;

/* The runs of one operator, and how often its destructor came. */
typedef struct custom_count {
  int runs, destroyed;
} custom_count;

enum { CUSTOM_CASES = 10 };

static void ran(void *user) {
  __atomic_fetch_add(&((custom_count *)user)->runs, 1, __ATOMIC_RELAXED);
}

static int64_t numel(const kiln_value *x) {
  int64_t n = 1;
  for (int i = 0; i < kiln_value_rank(x); i++) n *= kiln_value_sizes(x)[i];
  return n;
}

/* The elements of any strided tensor of rank 1 or 2, in row-major order. */
static float at(const kiln_value *x, int64_t i) {
  const float *data = kiln_value_data(x);
  const int64_t *sizes = kiln_value_sizes(x), *strides = kiln_value_strides(x);
  if (kiln_value_rank(x) == 0) return data[0];
  if (kiln_value_rank(x) == 1) return data[i * strides[0]];
  return data[i / sizes[1] * strides[0] + i % sizes[1] * strides[1]];
}

static kiln_status *like(kiln_op_call *call, int index, const kiln_value *x, float **out) {
  return kiln_op_result_tensor(call, index, KILN_DTYPE_F32, kiln_value_rank(x), kiln_value_sizes(x),
                               (void **)out);
}

static kiln_status *relu_cap(void *user, kiln_op_call *call) {
  const kiln_value *x = kiln_op_argument(call, 0);
  float cap = (float)kiln_value_as_float(kiln_op_argument(call, 1)), *out;
  ran(user);
  kiln_status *status = like(call, 0, x, &out);
  for (int64_t i = 0; !status && i < numel(x); i++) out[i] = fminf(fmaxf(at(x, i), 0), cap);
  return status;
}

static int same_shape(void *user, kiln_op_shape *shape) {
  kiln_op_tensor_info info;
  (void)user;
  if (!kiln_op_shape_tensor(shape, 0, -1, &info)) return 0;
  kiln_op_shape_set(shape, 0, info.dtype, info.rank, info.sizes);
  return 1;
}

static kiln_status *scale_by(kiln_op_call *call, float factor) {
  const kiln_value *x = kiln_op_argument(call, 0);
  float *out;
  kiln_status *status = like(call, 0, x, &out);
  for (int64_t i = 0; !status && i < numel(x); i++) out[i] = at(x, i) * factor;
  return status;
}

static kiln_status *scale(void *user, kiln_op_call *call) {
  ran(user);
  return scale_by(call, (float)kiln_value_as_float(kiln_op_argument(call, 1)));
}

static kiln_status *scale_int(void *user, kiln_op_call *call) {
  float factor = (float)kiln_value_as_int(kiln_op_argument(call, 1));
  ran(user);
  return scale_by(call, kiln_value_as_bool(kiln_op_argument(call, 2)) ? -factor : factor);
}

static kiln_status *scale_tensor(void *user, kiln_op_call *call) {
  const kiln_value *x = kiln_op_argument(call, 0), *by = kiln_op_argument(call, 1);
  float *out;
  ran(user);
  if (numel(x) != numel(by)) return kiln_op_error(KILN_OP_ERROR, "scale: sizes differ");
  kiln_status *status = like(call, 0, x, &out);
  for (int64_t i = 0; !status && i < numel(x); i++) out[i] = at(x, i) * at(by, i);
  return status;
}

/* Results of three makers: by address, by value, an int. */
static kiln_status *minmax(void *user, kiln_op_call *call) {
  const kiln_value *x = kiln_op_argument(call, 0);
  float low = INFINITY, high = -INFINITY, *out;
  kiln_value *value = NULL;
  ran(user);
  for (int64_t i = 0; i < numel(x); i++) {
    low = fminf(low, at(x, i));
    high = fmaxf(high, at(x, i));
  }
  kiln_status *status = kiln_op_result_tensor(call, 0, KILN_DTYPE_F32, 0, NULL, (void **)&out);
  if (!status) *out = low;
  if (!status) {
    status = kiln_value_tensor(kiln_op_context(call), KILN_DTYPE_F32, 0, NULL, &high, &value);
  }
  if (!status) status = kiln_op_set_result(call, 1, value);
  kiln_value_destroy(value);
  if (!status) status = kiln_value_int(kiln_op_context(call), numel(x), &value);
  if (!status) {
    status = kiln_op_set_result(call, 2, value);
    kiln_value_destroy(value);
  }
  return status;
}

static kiln_status *add_(void *user, kiln_op_call *call) {
  const kiln_value *other = kiln_op_argument(call, 1);
  float *self;
  ran(user);
  kiln_status *status = kiln_op_writable(call, 0, -1, (void **)&self);
  for (int64_t i = 0; !status && i < numel(other); i++) self[i] += at(other, i);
  return status;
}

static kiln_status *halves(void *user, kiln_op_call *call) {
  const kiln_value *x = kiln_op_argument(call, 0);
  const int64_t *sizes = kiln_value_sizes(x);
  kiln_value *parts[2] = {NULL, NULL}, *list = NULL;
  kiln_status *status = NULL;
  float data[256];
  ran(user);
  int64_t first[2] = {sizes[0] / 2, sizes[1]}, rest[2] = {sizes[0] - first[0], sizes[1]};
  for (int64_t i = 0; i < numel(x) && i < 256; i++) data[i] = at(x, i);
  status = kiln_value_tensor(kiln_op_context(call), KILN_DTYPE_F32, 2, first, data, &parts[0]);
  if (!status) {
    status = kiln_value_tensor(kiln_op_context(call), KILN_DTYPE_F32, 2, rest,
                               data + first[0] * sizes[1], &parts[1]);
  }
  if (!status) status = kiln_value_list(kiln_op_context(call), parts, 2, &list);
  if (!status) status = kiln_op_set_result(call, 0, list);
  for (int i = 0; i < 2; i++) kiln_value_destroy(parts[i]);
  kiln_value_destroy(list);
  return status;
}

/* sum of xs[i] * weights[i], + bias, summed over axis 0 if it is given. */
static kiln_status *weighted(void *user, kiln_op_call *call) {
  const kiln_value *xs = kiln_op_argument(call, 0), *weights = kiln_op_argument(call, 1);
  const kiln_value *bias = kiln_op_argument(call, 2), *axis = kiln_op_argument(call, 3);
  float sums[256] = {0};
  int64_t sizes[2] = {0, 0};
  ran(user);
  kiln_status *status = NULL;
  for (int k = 0; !status && k < kiln_value_count(xs); k++) {
    kiln_value *x = NULL, *w = NULL;
    status = kiln_value_item(xs, k, &x);
    if (!status) status = kiln_value_item(weights, k, &w);
    for (int64_t i = 0; !status && i < numel(x); i++) {
      sums[i] += at(x, i) * (float)kiln_value_as_float(w);
    }
    if (!status) memcpy(sizes, kiln_value_sizes(x), sizeof sizes);
    kiln_value_destroy(x);
    kiln_value_destroy(w);
  }
  if (status) return status;
  bool has_bias = kiln_value_kind(bias) == KILN_KIND_TENSOR;
  for (int64_t i = 0; i < sizes[0] * sizes[1]; i++) sums[i] += has_bias ? at(bias, i) : 0;
  bool reduce = kiln_value_kind(axis) == KILN_KIND_INT;
  float *out;
  status = kiln_op_result_tensor(call, 0, KILN_DTYPE_F32, reduce ? 1 : 2,
                                 reduce ? sizes + 1 : sizes, (void **)&out);
  if (status) return status;
  for (int64_t i = 0; i < (reduce ? sizes[1] : sizes[0] * sizes[1]); i++) out[i] = 0;
  for (int64_t i = 0; i < sizes[0] * sizes[1]; i++) out[reduce ? i % sizes[1] : i] += sums[i];
  return NULL;
}

static kiln_status *note(void *user, kiln_op_call *call) {
  ran(user);
  return scale_by(call, 0.5f);
}

static kiln_status *fail(void *user, kiln_op_call *call) {
  ran(user);
  return kiln_op_error(KILN_INVALID_ARGUMENT, "mine::fail: %s",
                       kiln_value_as_string(kiln_op_argument(call, 1), NULL));
}

static const custom_case custom_cases[] = {
    {"mine::relu_cap(Tensor x, float cap=6.) -> Tensor", relu_cap, same_shape, KILN_OP_SPEC_PURE},
    {"mine::scale(Tensor x, float factor=2.) -> Tensor", scale, NULL, KILN_OP_SPEC_PURE},
    {"mine::scale.Tensor(Tensor x, Tensor by) -> Tensor", scale_tensor, NULL, KILN_OP_SPEC_PURE},
    {"mine::scale.int(Tensor x, int factor, *, bool negate=False) -> Tensor", scale_int, same_shape,
     KILN_OP_SPEC_PURE},
    {"mine::minmax(Tensor x) -> (Tensor low, Tensor high, int count)", minmax, NULL,
     KILN_OP_SPEC_PURE},
    {"mine::add_(Tensor(a!) self, Tensor other) -> Tensor(a!)", add_, same_shape,
     KILN_OP_SPEC_PURE},
    {"mine::halves(Tensor x) -> Tensor[]", halves, NULL, KILN_OP_SPEC_PURE},
    {"mine::weighted(Tensor[] xs, float[] weights, Tensor? bias=None, *, int? axis=None) -> Tensor",
     weighted, NULL, KILN_OP_SPEC_PURE},
    {"mine::note(Tensor x) -> Tensor", note, NULL, 0},
    {"mine::fail(Tensor x, str why) -> Tensor", fail, NULL, 0},
    {NULL, NULL, NULL, 0}};

static void destroyed(void *user) { ((custom_count *)user)->destroyed++; }

static kiln_status *custom_register(kiln_context *context, int index, custom_count *count) {
  const custom_case *c = &custom_cases[index];
  kiln_op_spec spec = {.struct_size = sizeof spec,
                       .schema = c->schema,
                       .kernel = c->kernel,
                       .shape = c->shape,
                       .flags = c->flags,
                       .user = count,
                       .destroy_user = destroyed};
  return kiln_op_register(context, &spec);
}

static kiln_status *custom_register_all(kiln_context *context, custom_count *counts) {
  kiln_status *status = NULL;
  for (int i = 0; !status && custom_cases[i].schema; i++) {
    status = custom_register(context, i, &counts[i]);
  }
  return status;
}

static inline int custom_find(const char *name) {
  size_t len = strlen(name);
  for (int i = 0; custom_cases[i].schema; i++) {
    if (strncmp(custom_cases[i].schema, name, len) == 0 && custom_cases[i].schema[len] == '(') {
      return i;
    }
  }
  return -1;
}
