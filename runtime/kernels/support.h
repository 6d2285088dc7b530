/* support.h: what the kernels of every family share. */
#pragma once

#include "base/checked.h"
#include "runtime/kernel.h"
#include "runtime/kernels/dispatch.h"

#define KILN_UNUSED __attribute__((unused))
/* Opens the definition of the kernel that KERNEL(name) of the operator tables refers to. */
#define KILN_KERNEL(name)                                                                        \
  kiln_status *kiln__kernel_##name(kiln_call *call, const kiln_ivalue *args, kiln_ivalue *outs); \
  kiln_status *kiln__kernel_##name(KILN_UNUSED kiln_call *call,                                  \
                                   KILN_UNUSED const kiln_ivalue *args,                          \
                                   KILN_UNUSED kiln_ivalue *outs)
/* Such a kernel's body, for the kernels that are made of others. */
#define KILN_BODY_OF(name)                                                             \
  __extension__({                                                                      \
    kiln_status *kiln__kernel_##name(kiln_call *, const kiln_ivalue *, kiln_ivalue *); \
    kiln__kernel_##name;                                                               \
  })

/* Elements of cheap work that are worth a thread: 2 to 5 us. A multiple of 64, so that pieces of a
 * range begin on cache lines. */
enum { KILN_PW_GRAIN = 8192 };

/* memset to 0 and memmove, which look at the budget now and then. */
void kiln__zero(void *to, size_t bytes);
void kiln__move(void *to, const void *from, size_t bytes);

/* -- Numbers -- */

/* A Scalar: int, float, bool or complex. `kind` is I64, F64, BOOL or C128. */
typedef struct kiln_number {
  kiln_dtype kind;
  int64_t i;
  double f, im; /* f is also set for ints and bools */
} kiln_number;
kiln_number kiln__number(kiln_ivalue v);
static inline kiln_number kiln__number_int(int64_t i) {
  return (kiln_number){KILN_DTYPE_I64, i, (double)i, 0};
}
static inline kiln_number kiln__number_float(double f) {
  return (kiln_number){KILN_DTYPE_F64, 0, f, 0};
}
/* Writes it as an element of `dtype`; `to` holds 16 bytes. */
void kiln__number_store(kiln_number number, kiln_dtype dtype, void *to);
/* Truncated towards zero where it is a float. */
int64_t kiln__number_i64(kiln_number number);
/* PyTorch's complaint about a number that an integral dtype cannot hold. A negative one in an
 * unsigned type wraps, unless it is a float. */
kiln_status *kiln__number_fits(kiln_number number, kiln_dtype dtype) KILN_MUST_USE;

/* -- Arguments -- */

/* Tensors of a kernel's `args`, borrowed. */
#define SELF ARG(0)
#define ARG(i) kiln_arg_tensor(args, i)
/* Optional dtype: `fallback` where None. */
static inline kiln_dtype kiln__arg_dtype_or(const kiln_ivalue *args, int i, kiln_dtype fallback) {
  return args[i].tag == KILN_TAG_INT ? (kiln_dtype)args[i].u.i : fallback;
}
/* A dtype that kernels can compute with; else KILN_OP_ERROR. */
kiln_status *kiln__check_dtype(kiln_call *call, kiln_dtype dtype) KILN_MUST_USE;
/* The same of what is only made, filled, converted and moved: 8-bit floats too. */
kiln_status *kiln__check_stored(kiln_call *call, kiln_dtype dtype) KILN_MUST_USE;
/* int[] or int: into out (at most KILN_MAX_RANK). None: count 0. */
kiln_status *kiln__arg_int_list(const kiln_ivalue *args, int i, int64_t *out,
                                int *out_count) KILN_MUST_USE;
/* Dimensions of a reduction: a mask of wrapped ones; None or empty gives all. Refuses repeats. */
kiln_status *kiln__arg_dims(const kiln_ivalue *args, int i, int rank,
                            uint64_t *out_mask) KILN_MUST_USE;

/* -- Results -- */

/* "add" of "aten::add.Tensor", for errors. */
kiln_str kiln__op_name(const kiln_call *call);
kiln_status *kiln__not_implemented(const kiln_call *call,
                                   kiln_dtype dtype) KILN_MUST_USE KILN__NOT_NULL;
/* NULL is not. */
static inline bool kiln__is_complex(const kiln_tensor *t) {
  return t && kiln_dtype_is_complex(kiln_tensor_dtype(t));
}
static inline kiln_tensor *kiln__dest(const kiln_ivalue *out) {
  return out->tag == KILN_TAG_TENSOR ? out->u.tensor : NULL;
}
/* Results, taken. That cannot fail: the status is NULL, so that a kernel can end with it. */
static inline kiln_status *kiln__give_value(kiln_ivalue *out, kiln_ivalue v) {
  *out = v;
  return NULL;
}
static inline kiln_status *kiln__give(kiln_ivalue *out, kiln_tensor *t) {
  return kiln__give_value(out, kiln_of_tensor(t));
}
static inline kiln_status *kiln__give_int(kiln_ivalue *out, int64_t i) {
  return kiln__give_value(out, kiln_int(i));
}
static inline kiln_status *kiln__give_float(kiln_ivalue *out, double f) {
  return kiln__give_value(out, kiln_float(f));
}
static inline kiln_status *kiln__give_bool(kiln_ivalue *out, bool b) {
  return kiln__give_value(out, kiln_bool(b));
}
kiln_status *kiln__give_complex(kiln_call *call, double re, double im,
                                kiln_ivalue *out) KILN_MUST_USE;
/* A new int[]. */
kiln_status *kiln__give_ints(kiln_call *call, int count, const int64_t *ints,
                             kiln_ivalue *out) KILN_MUST_USE;
/* The tensor to write a result of these sizes to: the destination, resized and its dtype checked,
 * or a new contiguous one, put into *out. */
kiln_status *kiln__result(kiln_call *call, kiln_ivalue *out, kiln_dtype dtype, int rank,
                          const int64_t *sizes, kiln_tensor **out_tensor) KILN_MUST_USE;
/* Makes `value` (taken) the result: copied into the destination where there is one. */
kiln_status *kiln__finish(kiln_call *call, kiln_ivalue *out, kiln_tensor *value) KILN_MUST_USE;
/* The same kernel run on other arguments; `dest_free` outs. */
kiln_status *kiln__contiguous(kiln_call *call, kiln_tensor *t, kiln_tensor **out) KILN_MUST_USE;
/* t as a contiguous tensor of another dtype; t itself, retained, where it is one. */
kiln_status *kiln__as_dtype(kiln_call *call, kiln_tensor *t, kiln_dtype dtype,
                            kiln_tensor **out) KILN_MUST_USE;
/* t in a dtype with these strides, or with those that empty_like(of) or a pointwise operator of
 * these operands gives (runtime/strides.h; a NULL one is a number); t itself, retained, where
 * it is so. */
kiln_status *kiln__lay(kiln_call *call, kiln_tensor *t, kiln_dtype dtype, const int64_t *strides,
                       kiln_tensor **out) KILN_MUST_USE;
kiln_status *kiln__lay_like(kiln_call *call, kiln_tensor *t, kiln_dtype dtype,
                            const kiln_tensor *of, kiln_tensor **out) KILN_MUST_USE;
kiln_status *kiln__lay_pointwise(kiln_call *call, kiln_tensor *t, kiln_dtype dtype, int count,
                                 kiln_tensor *const *operands, kiln_tensor **out) KILN_MUST_USE;
/* A contiguous F64 or I64 reading of element `i` (in memory order from the first) for small loops.
 */
double kiln__element_f64(const kiln_tensor *t, int64_t index);
int64_t kiln__element_i64(const kiln_tensor *t, int64_t index);
/* The same as TorchScript's number of the tensor's kind. */
kiln_status *kiln__element(kiln_call *call, const kiln_tensor *t, int64_t index,
                           kiln_ivalue *out) KILN_MUST_USE;
/* A place that numbers of a model lead to, cut to a whole one of [0, last]: NaN is 0. */
static inline int64_t kiln__place_within(double at, int64_t last) {
  return !(at > 0) ? 0 : at < (double)last ? (int64_t)at : last;
}
/* Row-major walk: the offset in elements of linear index `i` under sizes and strides. */
int64_t kiln__offset_of(int rank, const int64_t *sizes, const int64_t *strides, int64_t i);

/* New list of a basic element type. */
kiln_status *kiln__new_list(kiln_call *call, kiln_type_kind elem, int64_t reserve,
                            kiln_list **out) KILN_MUST_USE;

/* "[2, 3]" for errors. */
typedef struct kiln__sizes_text {
  char text[256];
} kiln__sizes_text;
static inline kiln__sizes_text kiln__sizes(int rank, const int64_t *sizes) {
  kiln__sizes_text s;
  kiln_sizes_print(rank, sizes, s.text, sizeof s.text);
  return s;
}
static inline kiln__sizes_text kiln__sizes_of(const kiln_tensor *t) {
  return kiln__sizes(kiln_tensor_rank(t), kiln_tensor_sizes(t));
}
