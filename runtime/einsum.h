/* einsum.h: what the equation of einsum says: the kernel computes by it, shape functions and
 * lowerings foretell by it.
 *
 * A label is a letter, or a dimension that the ellipsis stands for. Labels have places in one
 * order: the result's in front, in its order, then those that are summed. */
#pragma once

#include "runtime/type.h"

enum { KILN_EINSUM_OPERANDS = 32 };

typedef struct kiln_einsum {
  int operands;
  int ranks[KILN_EINSUM_OPERANDS];
  int8_t places[KILN_EINSUM_OPERANDS][KILN_MAX_RANK]; /* of the label of each dimension */
  int out_rank, rank;                                 /* labels of the result; all of them */
  char letters[KILN_MAX_RANK];                        /* of places; '.': of the ellipsis */
} kiln_einsum;

/* Fails as the operator does where the equation does not fit operands of those ranks. */
kiln_status *kiln_einsum_read(kiln_str equation, int operands, const int *ranks,
                              kiln_einsum *out) KILN_MUST_USE;
