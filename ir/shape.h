/* shape.h: shape functions: the query that they answer and what they share; for ir/shape*.c alone.
 *
 * A function fills in what is known: sizes may hold KILN_DIM_UNKNOWN or symbols, the dtype may be
 * NONE. It answers false when it knows nothing, or when the arguments are such that the operator
 * will fail at run time (that is for the kernel to say). Names in SHAPE columns: bool
 * kiln__shape_<fn>(kiln_shape_query *). */
#pragma once

#include "ir/internal.h"

/* -- shape.c: reading arguments -- */

/* What is known of a tensor argument; NULL when it is none. */
const kiln_tensor_detail *kiln__shape_tensor(const kiln_shape_query *q, int i);
/* The same, where its rank is known. */
static inline const kiln_tensor_detail *kiln__shape_ranked(const kiln_shape_query *q, int i) {
  const kiln_tensor_detail *t = kiln__shape_tensor(q, i);
  return t && t->rank >= 0 ? t : NULL;
}
bool kiln__shape_is_tensor(const kiln_shape_query *q, int i);
/* A constant int, bool or None argument; false when it is not a constant of that kind. */
bool kiln__shape_int(const kiln_shape_query *q, int i, int64_t *out);
bool kiln__shape_bool(const kiln_shape_query *q, int i, bool *out);
bool kiln__shape_is_none(const kiln_shape_query *q, int i);
/* An int argument that is a constant or an expression. */
bool kiln__shape_sum(const kiln_shape_query *q, int i, kiln_sum *out);
/* A dimension argument, wrapped. */
bool kiln__shape_dim(const kiln_shape_query *q, int i, int rank, int *out);
/* One that has a size: false for a number, which operators take dimension 0 of. */
static inline bool kiln__shape_sized_dim(const kiln_shape_query *q, int i, int rank, int *out) {
  return rank > 0 && kiln__shape_dim(q, i, rank, out);
}
/* The ints of a list argument, or of one int; KILN_DIM_UNKNOWN and known false where not constant.
 */
bool kiln__shape_ints(const kiln_shape_query *q, int i, kiln_shape_list *out);

/* The argument of that name; -1 when the schema has none. */
int kiln__shape_find(const kiln_shape_query *q, const char *name);
/* The dtype that an optional `dtype` argument asks for, else `fallback`; NONE when it is not known.
 */
kiln_dtype kiln__shape_dtype(const kiln_shape_query *q, kiln_dtype fallback);
/* Row-major, and all of it known. */
bool kiln__shape_is_contiguous(const kiln_shape_query *q, const kiln_tensor_detail *t);
/* Whether the strides are those of a row-major tensor, of dimensions of one element or none too. */
bool kiln__shape_has_rows(const kiln_shape_query *q, int rank, const kiln_dim *sizes,
                          const kiln_dim *strides);
/* Both: results whose dimensions have the strides' order
 * are row-major then. */
bool kiln__shape_is_row_major(const kiln_shape_query *q, const kiln_tensor_detail *t);
/* Whether the elements lie behind each other, in some order of the dimensions (proved, also of
 * symbols), or in the order that a contiguous tensor has. */
bool kiln__shape_is_dense(const kiln_shape_query *q, const kiln_tensor_detail *t, bool row_major);

/* The sizes of the pieces that chunk(x, count) makes of a dimension that is no number, and of the
 * last one; false where there may be fewer. */
bool kiln__shape_chunks(kiln_dims *dims, kiln_dim size, int64_t count, kiln_dim *out_size,
                        kiln_dim *out_last);

/* -- shape.c: making results -- */

/* Starts a result: nothing known but that it is defined, on the device of the tensor arguments, and
 * without gradient if they are. */
kiln_tensor_detail *kiln__shape_result(kiln_shape_query *q, int index);
int64_t *kiln__shape_new(kiln_shape_query *q, int rank);
/* Sets sizes with row-major strides (where the sizes say them). */
void kiln__shape_row_major(kiln_shape_query *q, kiln_tensor_detail *out, int rank,
                           const int64_t *sizes);
/* Sets sizes and strides; strides NULL: not known. */
void kiln__shape_set(kiln_shape_query *q, kiln_tensor_detail *out, int rank, const int64_t *sizes,
                     const int64_t *strides);
/* The whole of result `index`: row-major where `plain`, else of strides that are not known; indices
 * and truth have no gradient. Always true. */
bool kiln__shape_give(kiln_shape_query *q, int index, int dtype, int rank, const int64_t *sizes,
                      bool plain);
/* What may depend on what symbols are. */
typedef enum kiln_truth { KILN_NO, KILN_YES, KILN_OPEN } kiln_truth;
/* Whether images, volumes or signals suggest channels last (runtime/strides.h). Where that is open
 * the guard is asked for sizes of which it is told: those of a row-major tensor. */
kiln_truth kiln__shape_suggests_last(const kiln_shape_query *q, const kiln_tensor_detail *t);
/* Row-major results get the format that the arguments say (op.h, FORMAT); strides that depend on
 * what symbols are become unknown. */
void kiln__shape_lay(kiln_shape_query *q, kiln_format_from from);
/* The dtype that two share, or none. */
static inline int kiln__shape_shared(const kiln_tensor_detail *a, const kiln_tensor_detail *b) {
  return a->dtype == b->dtype ? a->dtype : (int)KILN_DTYPE_NONE;
}

/* -- shape_pointwise.c -- */

/* The size of a broadcast dimension; false when they do not fit. */
bool kiln__shape_broadcast_dim(const kiln_dims *dims, kiln_dim a, kiln_dim b, kiln_dim *out);
/* One of `count` equal parts of a size, KILN_DIM_UNKNOWN where a size that is known only later may
 * not have them: then the operator itself must see. False: it has none. */
bool kiln__shape_part(const kiln_shape_query *q, kiln_dim size, int64_t count, kiln_dim *out_part);
/* It is no 1, so that what broadcasts with it is it or 1. */
bool kiln__shape_is_not_one(const kiln_dims *dims, kiln_dim d);
/* It is 1 or is none for certain; where that is open the guard is asked for 2 and up. */
static inline bool kiln__shape_tells_one(kiln_dims *dims, kiln_dim d) {
  if (d == 1 || kiln__shape_is_not_one(dims, d)) return true;
  kiln_dims_like(dims, kiln_sum_number(2), kiln_sum_of(dims, d));
  return false;
}
/* The dimension that two tensors share, as far as one of them tells it; false when both do, and
 * differ for certain. */
bool kiln__shape_join_dim(kiln_dim *size, kiln_dim other);
/* Those of empty_like(t), which has t's strides where it is dense, else its order. */
void kiln__shape_set_like(kiln_shape_query *q, kiln_tensor_detail *out,
                          const kiln_tensor_detail *t);
/* Sizes and strides that a pointwise result of these operands gets. */
bool kiln__shape_broadcast(kiln_shape_query *q, kiln_tensor_detail *out,
                           const kiln_tensor_detail *const *operands, int count);

/* The same beside a number: it says no more than the strides of dimensions of one element, and
 * nothing beside what is row-major with these, too. */
bool kiln__shape_broadcast_with(kiln_shape_query *q, kiln_tensor_detail *out,
                                const kiln_tensor_detail *const *operands, int count, bool number);

/* -- shape_layer.c -- */

enum { KILN_SHAPE_NO_FIT = -77 /* beside sizes and KILN_DIM_UNKNOWN: no window fits */ };
/* Windows of `size` (spread by `dilation`) in `in` + 2 `padding`; unknown, or KILN_SHAPE_NO_FIT. */
kiln_dim kiln__shape_windows(kiln_dims *dims, kiln_dim in, int64_t size, int64_t stride,
                             int64_t padding, int64_t dilation, bool ceil_mode);

/* -- The SHAPE column -- */

#include "ir/ops_columns.h"
#undef SHAPE
#define SHAPE(fn) bool kiln__shape_##fn(kiln_shape_query *query);
#define KILN_OP(id, schema, ...) __VA_ARGS__
#include "ir/ops.def"
#undef KILN_OP
