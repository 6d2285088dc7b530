/* iter.h: pointwise iteration: broadcasting, type promotion and conversion, memory order of new
 * results, in-place and out= destinations with their checks. Follows PyTorch's TensorIterator. */
#pragma once

#include "runtime/kernels/support.h"

enum { KILN_PW_MAX_IN = 3 };

/* An operand: a tensor (borrowed), or a number where tensor is NULL. */
typedef struct kiln_pw_arg {
  kiln_tensor *tensor;
  kiln_number number;
} kiln_pw_arg;

typedef struct kiln_pw {
  kiln_pw_functor functor;
  int in_count;
  kiln_dtype common; /* operands are converted to it; the loop is that of its compute type */
  bool fixed_shape;  /* a destination keeps its shape, as in place */
  bool select;       /* operand 0 is a bool condition, not converted to `common` */
  kiln_pw_arg in[KILN_PW_MAX_IN];
  kiln_pw_params params;
} kiln_pw;

static inline kiln_pw_arg kiln_pw_arg_of(kiln_ivalue v) {
  kiln_pw_arg arg = {0};
  if (v.tag == KILN_TAG_TENSOR)
    arg.tensor = v.u.tensor;
  else
    arg.number = kiln__number(v);
  return arg;
}
/* at::result_type of the operands from `first` on. */
kiln_dtype kiln_pw_promote(const kiln_pw *pw, int first);
kiln_status *kiln_pw_param(kiln_pw *pw, int index, kiln_number number) KILN_MUST_USE;

/* Runs it; *out holds the destination or gets the result. */
kiln_status *kiln_pw_run(kiln_call *call, kiln_pw *pw, kiln_ivalue *out) KILN_MUST_USE;
/* The same; a new result is row-major, whatever its operands, of which one is a tensor of its
 * sizes, are. */
kiln_status *kiln_pw_run_rows(kiln_call *call, kiln_pw *pw, kiln_ivalue *out) KILN_MUST_USE;

/* dst = src with conversion and broadcasting of src to dst's shape. */
kiln_status *kiln_pw_copy(kiln_call *call, kiln_tensor *dst, kiln_tensor *src) KILN_MUST_USE;
/* Every element of dst = number. */
kiln_status *kiln_pw_fill(kiln_call *call, kiln_tensor *dst, kiln_number number) KILN_MUST_USE;
/* The same; a number that float16 cannot hold is refused. */
kiln_status *kiln_pw_fill_fitting(kiln_call *call, kiln_tensor *dst,
                                  kiln_number number) KILN_MUST_USE;

/* Element (r, c) of rows x columns: from from + r * from_step + c * item to to + c * to_step + r *
 * item (turn.c). */
void kiln__turn(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t rows,
                int64_t columns, int64_t item);

/* -- Where elements lie (geometry.c) -- */

/* Whether elements share a place: of expand(3, 4) of (3, 1) those of a row do. */
bool kiln__repeats(const kiln_tensor *t);
/* A view of it that has each place once: those (3, 1). t itself, retained, where nothing repeats.
 */
kiln_status *kiln__once(kiln_call *call, kiln_tensor *t, kiln_tensor **out) KILN_MUST_USE;
/* The destination's elements lie apart, and do not lie partly in `source`: else KILN_OP_ERROR. */
kiln_status *kiln__check_overlap(const kiln_tensor *dest, const kiln_tensor *source) KILN_MUST_USE;
