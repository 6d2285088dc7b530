/* composite.h: operators made of other kernels.
 *
 * A composite calls kernels like functions: KILN_STEP(r, add, T(a), T(b), I(1)) is a tensor that
 * lives until the composite ends. The first failure is kept, every later call does nothing and
 * gives NULL, and all that a composite may ask of a tensor (size, rank, dtype) has an answer for
 * NULL: so a composite reads like a formula and fails with the first error. Loops must be bounded
 * without the answers. Arguments are all of the schema's, in its order, without defaults. */
#ifndef KILN_RUNTIME_KERNELS_COMPOSITE_H
#define KILN_RUNTIME_KERNELS_COMPOSITE_H

#include "runtime/kernels/support.h"

typedef struct kiln__composite {
  kiln_call *call;
  kiln_status *status; /* the first failure */
  int count, capacity;
  kiln_ivalue *temps; /* owned */
  kiln_ivalue few[24];
} kiln__composite;

/* Opens a kernel made by a composite: `r`, `args`, `outs`. */
#define KILN_COMPOSITE(name)                                                                    \
  static void composite_##name(kiln__composite *r, const kiln_ivalue *args, kiln_ivalue *outs); \
  KILN_KERNEL(name) { return kiln__composite_run(call, composite_##name, args, outs); }         \
  static void composite_##name(KILN_UNUSED kiln__composite *r,                                  \
                               KILN_UNUSED const kiln_ivalue *args, KILN_UNUSED kiln_ivalue *outs)
kiln_status *kiln__composite_run(kiln_call *call,
                                 void (*composite)(kiln__composite *, const kiln_ivalue *,
                                                   kiln_ivalue *),
                                 const kiln_ivalue *args, kiln_ivalue *outs) KILN_MUST_USE;

/* Keeps the first failure; true when there is none. */
bool kiln__composite_ok(kiln__composite *r, kiln_status *status);
#define KILN_COMPOSITE_FAIL(r, ...) \
  ((void)kiln__composite_ok(r, KILN_OP_FAIL(__VA_ARGS__)), KILN_ASSERT((r)->status))
/* True when nothing has failed and the budget is not over: no step goes on from one that was left
 * unfinished. Asked before each step and whenever something is kept. */
bool kiln__composite_goes_on(kiln__composite *r);
/* Takes a tensor (or value) over and gives it back; NULL stays NULL. */
kiln_tensor *kiln__composite_keep(kiln__composite *r, kiln_tensor *t);

/* The kernel's first result. */
kiln_tensor *kiln__composite_step(kiln__composite *r, kiln_kernel_body body, int count,
                                  const kiln_ivalue *args);
/* All of its results. */
void kiln__composite_step_many(kiln__composite *r, kiln_kernel_body body, int count,
                               const kiln_ivalue *args, int result_count, kiln_tensor **out);
/* A kernel whose result is a list of tensors: the list, NULL after a failure. */
kiln_list *kiln__composite_step_list(kiln__composite *r, kiln_kernel_body body, int count,
                                     const kiln_ivalue *args);
#define KILN_ARG_COUNT(...) \
  ((int)(sizeof((const kiln_ivalue[]){__VA_ARGS__}) / sizeof(kiln_ivalue)))
#define KILN_STEP(r, name, ...)                                             \
  kiln__composite_step(r, kiln__kernel_##name, KILN_ARG_COUNT(__VA_ARGS__), \
                       (const kiln_ivalue[]){__VA_ARGS__})
#define KILN_STEP_LIST(r, name, ...)                                             \
  kiln__composite_step_list(r, kiln__kernel_##name, KILN_ARG_COUNT(__VA_ARGS__), \
                            (const kiln_ivalue[]){__VA_ARGS__})
#define KILN_STEP_MANY(r, name, result_count, out, ...)                          \
  kiln__composite_step_many(r, kiln__kernel_##name, KILN_ARG_COUNT(__VA_ARGS__), \
                            (const kiln_ivalue[]){__VA_ARGS__}, result_count, out)
/* Writes it as result i of the operator. */
void kiln__composite_give(kiln__composite *r, kiln_ivalue *out, kiln_tensor *t);
/* Gives f of each element, which is read and computed as F64, in a dtype. */
void kiln__composite_map(kiln__composite *r, kiln_tensor *t, kiln_dtype dtype, double (*f)(double),
                         kiln_ivalue *out);

/* -- Arguments: borrowed -- */
#define T(t) kiln__composite_tensor(t)
#define I(i) kiln_int(i)
#define F(f) kiln_float(f)
#define B(b) kiln_bool(b)
#define NONE kiln_none()
static inline kiln_ivalue kiln__composite_tensor(kiln_tensor *t) {
  return t ? kiln_of_tensor(t) : kiln_none();
}
/* int[] and Tensor[], kept by the composite. */
kiln_ivalue kiln__composite_ints(kiln__composite *r, int count, const int64_t *ints);
kiln_ivalue kiln__composite_tensors(kiln__composite *r, int64_t count, kiln_tensor *const *tensors);
kiln_ivalue kiln__composite_text(kiln__composite *r, const char *text);
#define INTS(...)                                                                          \
  kiln__composite_ints(r, (int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), \
                       (const int64_t[]){__VA_ARGS__})
static inline kiln_ivalue kiln__composite_no_list(kiln__composite *r) {
  return kiln__composite_ints(r, 0, NULL);
}

/* -- Questions; NULL answers 0 -- */
static inline int kiln__composite_rank(const kiln_tensor *t) { return t ? kiln_tensor_rank(t) : 0; }
static inline int64_t kiln__composite_numel(const kiln_tensor *t) { return t ? t->numel : 0; }
/* dim may be negative; a dimension that is not there has size 1. */
static inline int64_t kiln__composite_size(const kiln_tensor *t, int dim) {
  int rank = kiln__composite_rank(t);
  if (dim < 0) dim += rank;
  return dim >= 0 && dim < rank ? kiln_tensor_sizes(t)[dim] : 1;
}
static inline kiln_dtype kiln__composite_dtype(const kiln_tensor *t) {
  return t ? kiln_tensor_dtype(t) : KILN_DTYPE_F32;
}
/* In which elements are worked on that are rounded once at the end. */
static inline kiln_dtype kiln__composite_work_dtype(kiln_dtype dtype) {
  return kiln_dtype_is_int(dtype, true) ? KILN_DTYPE_I64 : KILN_DTYPE_F64;
}
/* Refuses complex numbers and dtypes without arithmetic; true when there is no failure. */
bool kiln__composite_check_real(kiln__composite *r, const kiln_tensor *t);
/* A dimension argument, wrapped; 0 after a failure. */
int kiln__composite_dim(kiln__composite *r, int64_t dim, int rank);
/* Contiguous elements in a dtype, for reading; `out` is the tensor itself. NULL after a failure. */
const void *kiln__composite_read(kiln__composite *r, kiln_tensor *t, kiln_dtype dtype,
                                 kiln_tensor **out);
/* A new contiguous tensor and its elements; NULL after a failure. */
void *kiln__composite_new(kiln__composite *r, kiln_dtype dtype, int rank, const int64_t *sizes,
                          kiln_tensor **out);

/* -- Shorthand for the commonest kernels -- */
kiln_tensor *kiln__composite_to(kiln__composite *r, kiln_tensor *t, kiln_dtype dtype);
kiln_tensor *kiln__composite_reshape(kiln__composite *r, kiln_tensor *t, int rank,
                                     const int64_t *sizes);
kiln_tensor *kiln__composite_narrow(kiln__composite *r, kiln_tensor *t, int dim, int64_t start,
                                    int64_t length);
/* In its order of memory a fresh copy that is row-major. */
kiln_tensor *kiln__composite_copy(kiln__composite *r, kiln_tensor *t);
/* Whole numbers as float. */
kiln_tensor *kiln__composite_as_float(kiln__composite *r, kiln_tensor *t);
/* A loss by its reduction: 0 as it is, 1 mean, 2 sum. */
kiln_tensor *kiln__composite_reduced(kiln__composite *r, kiln_tensor *t, int64_t how);

/* -- The kernels that composites use -- */
#define KILN_COMPOSITE_KERNELS(X) \
  X(abs)                          \
  X(add)                          \
  X(sub)                          \
  X(mul)                          \
  X(div)                          \
  X(div_mode)                     \
  X(pow)                          \
  X(exp)                          \
  X(exp2)                         \
  X(log)                          \
  X(log1p)                        \
  X(log2)                         \
  X(sqrt)                         \
  X(square)                       \
  X(neg)                          \
  X(sign)                         \
  X(maximum)                      \
  X(minimum)                      \
  X(where)                        \
  X(eq)                           \
  X(ne)                           \
  X(lt)                           \
  X(le)                           \
  X(gt)                           \
  X(ge)                           \
  X(isnan)                        \
  X(logical_and)                  \
  X(logical_not)                  \
  X(logical_or)                   \
  X(clamp)                        \
  X(clamp_min)                    \
  X(lgamma)                       \
  X(digamma)                      \
  X(erfc)                         \
  X(erf)                          \
  X(sum)                          \
  X(sum_dim)                      \
  X(mean)                         \
  X(mean_dim)                     \
  X(prod_dim)                     \
  X(amax)                         \
  X(amin)                         \
  X(any)                          \
  X(all)                          \
  X(max_dim)                      \
  X(min_dim)                      \
  X(argmax)                       \
  X(cumsum)                       \
  X(cumprod)                      \
  X(sort_stable)                  \
  X(matmul)                       \
  X(mm)                           \
  X(bmm)                          \
  X(linear)                       \
  X(layer_norm)                   \
  X(softmax)                      \
  X(relu)                         \
  X(gelu)                         \
  X(dropout)                      \
  X(permute)                      \
  X(transpose)                    \
  X(t)                            \
  X(reshape)                      \
  X(view)                         \
  X(expand)                       \
  X(unsqueeze)                    \
  X(squeeze_dim)                  \
  X(select)                       \
  X(narrow)                       \
  X(slice)                        \
  X(diagonal)                     \
  X(flip)                         \
  X(cat)                          \
  X(stack)                        \
  X(flatten)                      \
  X(contiguous)                   \
  X(clone)                        \
  X(copy_)                        \
  X(zeros)                        \
  X(empty_like)                   \
  X(ones)                         \
  X(full)                         \
  X(zeros_like)                   \
  X(ones_like)                    \
  X(full_like)                    \
  X(arange)                       \
  X(gather)                       \
  X(index_select)                 \
  X(nonzero)                      \
  X(masked_fill)                  \
  X(masked_select)                \
  X(tril)                         \
  X(triu)                         \
  X(constant_pad_nd)              \
  X(repeat)                       \
  X(roll)                         \
  X(conj)                         \
  X(real)                         \
  X(imag)                         \
  X(complex)                      \
  X(view_as_real)                 \
  X(view_as_complex)              \
  X(linalg_vector_norm)           \
  X(logsumexp)                    \
  X(scatter_add)                  \
  X(angle)                        \
  X(to_dtype)                     \
  X(repeat_interleave)            \
  X(as_strided)                   \
  X(outer)                        \
  X(xlogy)                        \
  X(tensor_split_sections)        \
  X(tensor_split_indices)         \
  X(log_sigmoid)                  \
  X(linspace)                     \
  X(nan_to_num)                   \
  X(pad)                          \
  X(_fft_c2c)                     \
  X(_fft_r2c)                     \
  X(_fft_c2r)                     \
  X(count_nonzero)                \
  X(split_with_sizes)             \
  X(unbind)                       \
  X(chunk)                        \
  X(index_put)                    \
  X(index)                        \
  X(frac)                         \
  X(fill_)                        \
  X(dot)                          \
  X(sinc)                         \
  X(meshgrid)                     \
  X(isfinite)                     \
  X(reciprocal)                   \
  X(floor_divide)                 \
  X(remainder)                    \
  X(atan2)                        \
  X(var_dim)                      \
  X(topk)                         \
  X(bernoulli)                    \
  X(linalg_inv)                   \
  X(linalg_solve)                 \
  X(_unique2)                     \
  X(native_batch_norm)            \
  X(eye)                          \
  X(linalg_inv_ex)                \
  X(linalg_matrix_norm)           \
  X(upsample_nearest1d)           \
  X(upsample_nearest2d)           \
  X(upsample_nearest3d)           \
  X(adaptive_avg_pool1d)          \
  X(adaptive_avg_pool2d)          \
  X(adaptive_avg_pool3d)          \
  X(upsample_linear1d)            \
  X(upsample_bilinear2d)          \
  X(upsample_bicubic2d)           \
  X(upsample_trilinear3d)         \
  X(conv1d)                       \
  X(conv2d)                       \
  X(conv3d)                       \
  X(conv_transpose2d)             \
  X(conv_transpose3d)             \
  X(convolution)                  \
  X(torchaudio_lfilter_core_loop) \
  X(any_dim)                      \
  X(index_add)
#define KILN_COMPOSITE_DECLARE(name) \
  kiln_status *kiln__kernel_##name(kiln_call *call, const kiln_ivalue *args, kiln_ivalue *outs);
KILN_COMPOSITE_KERNELS(KILN_COMPOSITE_DECLARE)

#endif
