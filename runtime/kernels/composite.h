/* composite.h: operators made of other kernels.
 *
 * A composite calls kernels like functions: KILN_STEP(r, add, T(a), T(b), I(1)) is a tensor that
 * lives until the composite ends. The first failure is kept, every later call does nothing and
 * gives NULL, and all that a composite may ask of a tensor (size, rank, dtype) has an answer for
 * NULL: so a composite reads like a formula and fails with the first error. Loops must be bounded
 * without the answers. Arguments are all of the schema's, in its order, without defaults. */
#pragma once

#include "runtime/kernels/support.h"

typedef struct kiln__composite {
  kiln_call *call;
  kiln_status *status; /* the first failure */
  int count, capacity;
  kiln_ivalue *temps; /* owned */
  kiln_ivalue few[24];
} kiln__composite;

/* Opens a kernel made by a composite: `r`, `args`, `outs`. What it returns is the operator's first
 * result; NULL after a failure, or where outs[0] has the result. */
#define KILN_COMPOSITE(name)                                                            \
  static kiln__composite_body composite_##name;                                         \
  KILN_KERNEL(name) { return kiln__composite_run(call, composite_##name, args, outs); } \
  static kiln_tensor *composite_##name(KILN_UNUSED kiln__composite *r,                  \
                                       KILN_UNUSED const kiln_ivalue *args,             \
                                       KILN_UNUSED kiln_ivalue *outs)
typedef kiln_tensor *kiln__composite_body(kiln__composite *r, const kiln_ivalue *args,
                                          kiln_ivalue *outs);
kiln_status *kiln__composite_run(kiln_call *call, kiln__composite_body *composite,
                                 const kiln_ivalue *args, kiln_ivalue *outs) KILN_MUST_USE;

/* Keeps the first failure; true when there is none. */
bool kiln__composite_ok(kiln__composite *r, kiln_status *status);
/* The same of one; NULL (false), so that what fails can return it. */
static inline void *kiln__composite_fail(kiln__composite *r, kiln_status *status) {
  (void)kiln__composite_ok(r, status);
  KILN_ASSERT(r->status);
  return NULL;
}
#define FAIL(r, ...) kiln__composite_fail(r, KILN_OP_FAIL(__VA_ARGS__))
/* True when nothing has failed and the budget is not over: no step goes on from one that was left
 * unfinished. Asked before each step and whenever something is kept. */
bool kiln__composite_goes_on(kiln__composite *r);
/* Takes a tensor (or value) over and gives it back; NULL stays NULL. */
kiln_tensor *kiln__composite_keep(kiln__composite *r, kiln_tensor *t);
/* What is kept after a mark may be dropped before the composite ends. */
static inline int kiln__composite_mark(const kiln__composite *r) { return r->count; }
void kiln__composite_drop(kiln__composite *r, int mark);
/* What `expr`, which gives a status, puts into own_tensor: kept. */
#define KILN_OWN(r, expr)                                                                    \
  __extension__({                                                                            \
    kiln_tensor *own_tensor = NULL;                                                          \
    !(r)->status &&kiln__composite_ok(r, expr) ? kiln__composite_keep(r, own_tensor) : NULL; \
  })

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
#define KILN_STEP(r, name, ...)                                            \
  kiln__composite_step(r, KILN_BODY_OF(name), KILN_ARG_COUNT(__VA_ARGS__), \
                       (const kiln_ivalue[]){__VA_ARGS__})
#define KILN_STEP_LIST(r, name, ...)                                            \
  kiln__composite_step_list(r, KILN_BODY_OF(name), KILN_ARG_COUNT(__VA_ARGS__), \
                            (const kiln_ivalue[]){__VA_ARGS__})
#define KILN_STEP_MANY(r, name, result_count, out, ...)                         \
  kiln__composite_step_many(r, KILN_BODY_OF(name), KILN_ARG_COUNT(__VA_ARGS__), \
                            (const kiln_ivalue[]){__VA_ARGS__}, result_count, out)
/* A list of the composite's as the operator's result; NULL. */
kiln_tensor *kiln__composite_give_list(kiln__composite *r, kiln_ivalue *out, kiln_list *list);
/* Writes it as result i of the operator. */
void kiln__composite_give(kiln__composite *r, kiln_ivalue *out, kiln_tensor *t);
/* Gives f of each element, which is read and computed as F64, in a dtype; where its elements lie is
 * a pointwise operator's rule. */
kiln_tensor *kiln__composite_map(kiln__composite *r, kiln_tensor *t, kiln_dtype dtype,
                                 double (*f)(double));
/* The same of two that broadcast; `work`: what one takes, in items of a budget. */
kiln_tensor *kiln__composite_map2(kiln__composite *r, kiln_tensor *a, kiln_tensor *b,
                                  kiln_dtype dtype, double (*f)(double, double), int64_t work);
/* A number as a tensor of no dimensions; a tensor as it is. */
kiln_tensor *kiln__composite_operand(kiln__composite *r, kiln_ivalue v, kiln_dtype dtype);

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
/* The sizes that both broadcast to; None after a failure. */
kiln_ivalue kiln__composite_broadcast(kiln__composite *r, const kiln_tensor *a,
                                      const kiln_tensor *b);
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

/* A new tensor [0]. */
kiln_tensor *kiln__composite_empty(kiln__composite *r, kiln_dtype dtype);

/* -- Shorthand for the commonest kernels -- */
kiln_tensor *kiln__composite_to(kiln__composite *r, kiln_tensor *t, kiln_dtype dtype);
kiln_tensor *kiln__composite_reshape(kiln__composite *r, kiln_tensor *t, int rank,
                                     const int64_t *sizes);
/* All elements in one dimension. */
kiln_tensor *kiln__composite_flat(kiln__composite *r, kiln_tensor *t);
kiln_tensor *kiln__composite_narrow(kiln__composite *r, kiln_tensor *t, int dim, int64_t start,
                                    int64_t length);
/* Copies the elements, converted and broadcast; false after a failure. */
bool kiln__composite_put(kiln__composite *r, kiln_tensor *to, kiln_tensor *from);
/* In its order of memory a fresh copy that is row-major. */
kiln_tensor *kiln__composite_copy(kiln__composite *r, kiln_tensor *t);
/* Whole numbers as float. */
kiln_tensor *kiln__composite_as_float(kiln__composite *r, kiln_tensor *t);
/* Of kiln__lay_like and kiln__lay_pointwise: what they give, kept. */
kiln_tensor *kiln__composite_lay_like(kiln__composite *r, kiln_tensor *t, kiln_dtype dtype,
                                      const kiln_tensor *of);
kiln_tensor *kiln__composite_lay_pointwise(kiln__composite *r, kiln_tensor *t, kiln_dtype dtype,
                                           int count, kiln_tensor *const *operands);
/* A loss by its reduction: 0 as it is, 1 mean, 2 sum. */
kiln_tensor *kiln__composite_reduced(kiln__composite *r, kiln_tensor *t, int64_t how);
