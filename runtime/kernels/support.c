/* support.c: numbers, arguments and results (support.h). */
#include "runtime/kernels/support.h"

#include <math.h>
#include <string.h>

#include "runtime/half.h"
#include "runtime/kernels/pointwise/iter.h"
#include "runtime/quant.h"
#include "runtime/strides.h"

void kiln__zero(void *to, size_t bytes) {
  enum { BLOCK = 1 << 20 };
  char *at = to;
  for (; bytes > BLOCK; at += BLOCK, bytes -= BLOCK) {
    memset(at, 0, BLOCK);
    if (kiln_budget_leaves_out()) return;
  }
  memset(at, 0, bytes);
}
void kiln__move(void *to, const void *from, size_t bytes) {
  enum { BLOCK = 1 << 20 };
  char *at = to;
  const char *source = from;
  const bool apart = at + bytes <= source || source + bytes <= at;
  for (; apart && bytes > BLOCK; at += BLOCK, source += BLOCK, bytes -= BLOCK) {
    memcpy(at, source, BLOCK);
    if (kiln_budget_leaves_out()) return;
  }
  memmove(at, source, bytes);
}

/* -- Numbers -- */

kiln_number kiln__number(kiln_ivalue v) {
  switch (v.tag) {
    case KILN_TAG_INT: return kiln__number_int(v.u.i);
    case KILN_TAG_FLOAT: return kiln__number_float(v.u.f);
    case KILN_TAG_BOOL: return (kiln_number){KILN_DTYPE_BOOL, v.u.b, v.u.b, 0};
    case KILN_TAG_COMPLEX:
      return (kiln_number){KILN_DTYPE_C128, 0, v.u.complex->re, v.u.complex->im};
    default: return kiln__number_int(0);
  }
}

int64_t kiln__number_i64(kiln_number number) {
  if (number.kind == KILN_DTYPE_I64 || number.kind == KILN_DTYPE_BOOL) return number.i;
  return number.f >= -0x1p63 && number.f < 0x1p63 ? (int64_t)number.f : INT64_MIN;
}

/* Quantised elements are integers. */
static kiln_dtype element_dtype(kiln_dtype dtype) {
  return kiln_dtype_is_quant(dtype) ? kiln_quant_integers(dtype) : dtype;
}
void kiln__number_store(kiln_number number, kiln_dtype dtype, void *to) {
  dtype = element_dtype(dtype);
  if (kiln_dtype_is_int(dtype, false))
    kiln_element_put_i64(dtype, kiln__number_i64(number), to);
  else
    kiln_element_put_c128(dtype, number.f, number.im, to);
}

/* -- Arguments -- */

kiln_status *kiln__check_dtype(kiln_call *call, kiln_dtype dtype) {
  if (kiln_ctype_of(dtype) == KILN_CTYPE_NONE) return kiln__not_implemented(call, dtype);
  return NULL;
}

kiln_status *kiln__check_stored(kiln_call *call, kiln_dtype dtype) {
  const bool eight = dtype == KILN_DTYPE_F8E5M2 || dtype == KILN_DTYPE_F8E4M3;
  return eight ? NULL : kiln__check_dtype(call, dtype);
}

kiln_status *kiln_arg_ints(const kiln_ivalue *args, int i, int max, int64_t *out_ints,
                           int *out_count) {
  *out_count = 0;
  if (args[i].tag == KILN_TAG_NONE) return NULL;
  if (args[i].tag == KILN_TAG_INT) {
    out_ints[0] = args[i].u.i;
    *out_count = 1;
    return NULL;
  }
  const kiln_list *list = args[i].u.list;
  if (list->count > max) {
    return KILN_OP_FAIL("expected at most %d integers but got %lld", max, (long long)list->count);
  }
  for (int64_t k = 0; k < list->count; k++) {
    if (list->items[k].tag != KILN_TAG_INT) return KILN_OP_FAIL("expected a list of integers");
    out_ints[k] = list->items[k].u.i;
  }
  *out_count = (int)list->count;
  return NULL;
}

kiln_status *kiln__arg_int_list(const kiln_ivalue *args, int i, int64_t *out, int *out_count) {
  return kiln_arg_ints(args, i, KILN_MAX_RANK, out, out_count);
}

kiln_status *kiln__arg_dims(const kiln_ivalue *args, int i, int rank, uint64_t *out_mask) {
  int64_t dims[KILN_MAX_RANK];
  int count;
  KILN_TRY(kiln__arg_int_list(args, i, dims, &count));
  uint64_t all = rank >= 64 ? ~0ull : (1ull << rank) - 1;
  if (count == 0) {
    *out_mask = all;
    return NULL;
  }
  uint64_t mask = 0;
  for (int k = 0; k < count; k++) {
    int dim;
    KILN_TRY(kiln_wrap_dim(dims[k], rank, &dim));
    if (mask >> dim & 1)
      return KILN_OP_FAIL("dim %d appears multiple times in the list of dims", dim);
    mask |= 1ull << dim;
  }
  *out_mask = mask & all;
  return NULL;
}

kiln_status *kiln__number_fits(kiln_number number, kiln_dtype dtype) {
  const double greatest = kiln_float_greatest(dtype); /* whole numbers are below */
  if ((isfinite(number.f) && fabs(number.f) > greatest) ||
      (isfinite(number.im) && fabs(number.im) > greatest)) {
    return KILN_OP_FAIL("value cannot be converted to type %s without overflow",
                        dtype == KILN_DTYPE_F32    ? "float"
                        : dtype == KILN_DTYPE_F16  ? "c10::Half"
                        : dtype == KILN_DTYPE_BF16 ? "c10::BFloat16"
                        : dtype == KILN_DTYPE_C64  ? "c10::complex<float>"
                                                   : "c10::complex<c10::Half>");
  }
  if (!kiln_dtype_is_int(dtype, false) || number.kind == KILN_DTYPE_BOOL) return NULL;
  const bool is_unsigned = dtype == KILN_DTYPE_U8;
  const int bits = 8 * (int)kiln_dtype_bytes(dtype);
  const int64_t high = (int64_t)(UINT64_MAX >> (is_unsigned ? 64 - bits : 65 - bits));
  const int64_t low = is_unsigned ? -high : -high - 1;
  const double below = is_unsigned ? -1 : (double)low - 1; /* fractions are cut */
  const bool fits =
      number.kind == KILN_DTYPE_I64
          ? number.i >= low && number.i <= high
          : (bits == 64 ? number.f >= -0x1p63 : number.f > below) && number.f < (double)high + 1;
  if (fits) return NULL;
  return KILN_OP_FAIL("value cannot be converted to type %s%s without overflow",
                      dtype == KILN_DTYPE_I32   ? "int"
                      : dtype == KILN_DTYPE_I64 ? "int64"
                      : dtype == KILN_DTYPE_I16 ? "int16"
                      : dtype == KILN_DTYPE_I8  ? "int8"
                                                : "uint8",
                      dtype == KILN_DTYPE_I32 ? "" : "_t");
}

/* -- Results -- */

kiln_str kiln__op_name(const kiln_call *call) {
  if (!call->kernel || !call->kernel->name) return KILN_STR("operator");
  const char *name = call->kernel->name, *colon = strstr(name, "::");
  if (colon) name = colon + 2;
  return kiln_str_make(name, strcspn(name, "."));
}

kiln_status *kiln__not_implemented(const kiln_call *call, kiln_dtype dtype) {
  const char *name = kiln_dtype_ir_name(dtype);
  kiln_str op = kiln__op_name(call);
  if (op.len > 1 && op.data[op.len - 1] == '_') op.len--; /* relu_ is computed by relu */
  return KILN_OP_FAIL("\"" KILN_STR_FMT "_cpu\" not implemented for '%s'", KILN_STR_ARG(op),
                      name ? name : "Undefined");
}

kiln_status *kiln__kernel_refuses(const kiln_call *call, const kiln_kernel *kernel,
                                  const kiln_ivalue *args, int count) {
  for (int i = 0; i < count; i++) {
    const bool list = args[i].tag == KILN_TAG_LIST;
    const kiln_ivalue *items = list ? args[i].u.list->items : &args[i];
    for (int64_t k = 0, n = list ? args[i].u.list->count : 1; k < n; k++) {
      if (items[k].tag != KILN_TAG_TENSOR || !items[k].u.tensor) continue;
      const kiln_dtype dtype = kiln_tensor_dtype(items[k].u.tensor);
      const int device = items[k].u.tensor->key.f.device_kind;
      if (device != KILN_DEVICE_CPU && !(kernel->devices >> device & 1)) {
        return KILN_OP_FAIL("%s does not run on tensors of the device '%s'", kernel->name,
                            kiln_device_kind_name(device));
      }
      if (kernel->refuses >> (dtype & 31) & 1) return kiln__not_implemented(call, dtype);
    }
  }
  return NULL;
}

/* A destination that is argument 0 keeps its shape; out= takes that of the result. */
static kiln_status *fit_dest(const kiln_call *call, kiln_tensor *dest, int rank,
                             const int64_t *sizes) {
  if (kiln_tensor_has_sizes(dest, rank, sizes) || !kiln_kernel_is_in_place(call)) {
    return kiln_tensor_resize(dest, rank, sizes);
  }
  return KILN_OP_FAIL("Bad in-place call: input tensor size %s and output tensor size %s should "
                      "match",
                      kiln__sizes_of(dest).text, kiln__sizes(rank, sizes).text);
}

kiln_status *kiln__result(kiln_call *call, kiln_ivalue *out, kiln_dtype dtype, int rank,
                          const int64_t *sizes, kiln_tensor **out_tensor) {
  kiln_tensor *dest = kiln__dest(out);
  if (dest) {
    if (kiln_tensor_dtype(dest) != dtype) {
      return KILN_OP_FAIL("Expected out tensor to have dtype %s, but got %s instead",
                          kiln_dtype_short_name(dtype),
                          kiln_dtype_short_name(kiln_tensor_dtype(dest)));
    }
    KILN_TRY(fit_dest(call, dest, rank, sizes));
    *out_tensor = dest;
    return NULL;
  }
  KILN_TRY(kiln_call_tensor(call, dtype, rank, sizes, out_tensor));
  return kiln__give(out, *out_tensor);
}

static kiln_status *copy_result(kiln_call *call, kiln_tensor *dest, kiln_tensor *value) {
  if (!kiln_dtype_can_cast(kiln_tensor_dtype(value), kiln_tensor_dtype(dest))) {
    return KILN_OP_FAIL("result type %s can't be cast to the desired output type %s",
                        kiln_dtype_ir_name(kiln_tensor_dtype(value)),
                        kiln_dtype_ir_name(kiln_tensor_dtype(dest)));
  }
  KILN_TRY(fit_dest(call, dest, kiln_tensor_rank(value), kiln_tensor_sizes(value)));
  return kiln_pw_copy(call, dest, value);
}
kiln_status *kiln__finish(kiln_call *call, kiln_ivalue *out, kiln_tensor *value) {
  kiln_tensor *dest = kiln__dest(out);
  if (!dest) {
    return kiln__give(out, value);
  }
  kiln_status *status = value == dest ? NULL : copy_result(call, dest, value);
  kiln_tensor_release_to(&call->cache, value);
  return status;
}

kiln_status *kiln__contiguous(kiln_call *call, kiln_tensor *t, kiln_tensor **out) {
  return kiln__as_dtype(call, t, kiln_tensor_dtype(t), out);
}

kiln_status *kiln__as_dtype(kiln_call *call, kiln_tensor *t, kiln_dtype dtype, kiln_tensor **out) {
  if (kiln_tensor_dtype(t) == dtype && kiln_tensor_is_contiguous(t)) {
    *out = kiln_tensor_retain(t);
    return NULL;
  }
  kiln_tensor *copy;
  KILN_TRY(kiln_call_tensor(call, dtype, kiln_tensor_rank(t), kiln_tensor_sizes(t), &copy));
  kiln_status *status = kiln_pw_copy(call, copy, t);
  if (status) {
    kiln_tensor_release_to(&call->cache, copy);
    return status;
  }
  *out = copy;
  return NULL;
}

/* -- Where results lie -- */

kiln_status *kiln__lay(kiln_call *call, kiln_tensor *t, kiln_dtype dtype, const int64_t *strides,
                       kiln_tensor **out) {
  const int rank = kiln_tensor_rank(t);
  const size_t bytes = sizeof(int64_t) * (size_t)rank;
  kiln_tensor *copy;
  if (kiln_tensor_dtype(t) == dtype &&
      (rank == 0 || memcmp(strides, kiln_tensor_strides(t), bytes) == 0)) {
    *out = kiln_tensor_retain(t);
    return NULL;
  }
  KILN_TRY(kiln_call_check(call, 0));
  KILN_TRY(kiln_tensor_create_strided(call->env->mem, &call->cache, dtype, rank,
                                      kiln_tensor_sizes(t), strides, &copy));
  kiln_status *status = kiln_pw_copy(call, copy, t);
  if (status)
    kiln_tensor_release_to(&call->cache, copy);
  else
    *out = copy;
  return status;
}
kiln_status *kiln__lay_like(kiln_call *call, kiln_tensor *t, kiln_dtype dtype,
                            const kiln_tensor *of, kiln_tensor **out) {
  const kiln_strided like = kiln_tensor_strided(of);
  int64_t strides[KILN_MAX_RANK];
  kiln_strides_like(&like, strides);
  return kiln__lay(call, t, dtype, strides, out);
}
kiln_status *kiln__lay_pointwise(kiln_call *call, kiln_tensor *t, kiln_dtype dtype, int count,
                                 kiln_tensor *const *operands, kiln_tensor **out) {
  kiln_strided dims[KILN_STRIDES_MAX_OPERANDS];
  int64_t strides[KILN_MAX_RANK];
  for (int i = 0; i < count; i++) {
    dims[i] = operands[i] ? kiln_tensor_strided(operands[i]) : (kiln_strided){0, NULL, NULL};
  }
  kiln_strides_pointwise(kiln_tensor_rank(t), kiln_tensor_sizes(t), dims, count, strides);
  return kiln__lay(call, t, dtype, strides, out);
}

int64_t kiln__offset_of(int rank, const int64_t *sizes, const int64_t *strides, int64_t i) {
  int64_t offset = 0;
  for (int d = rank - 1; d >= 0; d--) {
    offset += i % sizes[d] * strides[d];
    i /= sizes[d];
  }
  return offset;
}

static const char *element_at(const kiln_tensor *t, int64_t index) {
  return (const char *)kiln_tensor_data(t) + (size_t)index * kiln_tensor_item_size(t);
}
double kiln__element_f64(const kiln_tensor *t, int64_t index) {
  if (kiln_tensor_is_undefined(t)) return 0;
  return kiln_element_f64(element_dtype(kiln_tensor_dtype(t)), element_at(t, index), NULL);
}
int64_t kiln__element_i64(const kiln_tensor *t, int64_t index) {
  if (kiln_tensor_is_undefined(t)) return 0;
  return kiln_element_i64(element_dtype(kiln_tensor_dtype(t)), element_at(t, index));
}
kiln_status *kiln__element(kiln_call *call, const kiln_tensor *t, int64_t index, kiln_ivalue *out) {
  const kiln_dtype dtype = kiln_tensor_dtype(t);
  double im;
  if (dtype == KILN_DTYPE_BOOL) return kiln__give_bool(out, kiln__element_i64(t, index) != 0);
  if (kiln_dtype_is_int(dtype, false)) return kiln__give_int(out, kiln__element_i64(t, index));
  if (!kiln_dtype_is_complex(dtype)) return kiln__give_float(out, kiln__element_f64(t, index));
  const double re = kiln_element_f64(dtype, element_at(t, index), &im);
  return kiln__give_complex(call, re, im, out);
}
kiln_status *kiln__give_complex(kiln_call *call, double re, double im, kiln_ivalue *out) {
  kiln_complex *z;
  KILN_TRY(kiln_complex_create(call->env->mem, re, im, &z));
  return kiln__give_value(out, kiln_of_box(z));
}
kiln_status *kiln__give_ints(kiln_call *call, int count, const int64_t *ints, kiln_ivalue *out) {
  kiln_list *list;
  KILN_TRY(kiln__new_list(call, KILN_TYPE_INT, count ? count : 1, &list));
  *out = kiln_of_box(list);
  for (int i = 0; i < count; i++) KILN_TRY(kiln_list_push(list, kiln_int(ints[i])));
  return NULL;
}

kiln_status *kiln__new_list(kiln_call *call, kiln_type_kind elem, int64_t reserve,
                            kiln_list **out) {
  return kiln_list_create_in(call->env->mem, &call->cache, kiln_type_basic(elem), reserve, out);
}
