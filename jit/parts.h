/* parts.h: where the parts of a dimension are, for passes that cut and join. */
#pragma once

#include "ir/ir.h"

enum { KILN__MOST_PARTS = 64 };

/* Where they end. */
typedef struct kiln__parts {
  int count;
  int64_t dim;
  int64_t ends[KILN__MOST_PARTS];
} kiln__parts;

static inline bool kiln__find_dim(const kiln_ir_value *dim, int rank, int64_t *out_dim) {
  if (!kiln_ir_value_const_int(dim, out_dim)) return false;
  if (*out_dim < 0) *out_dim += rank;
  return *out_dim >= 0 && *out_dim < rank;
}

/* x[begin:end] along `dim`, before `anchor`. */
static inline kiln_ir_value *kiln__insert_slice(kiln_node *anchor, kiln_ir_value *x, int64_t dim,
                                                kiln_ir_value *begin, kiln_ir_value *end,
                                                const kiln_type *type) {
  kiln_node *slice = kiln_node_create_like(anchor, KILN_OP_slice_Tensor);
  kiln_node_insert_before(slice, anchor);
  kiln_node_add_input(slice, x);
  kiln_node_add_input(slice, kiln_insert_int_before(slice, dim));
  kiln_node_add_input(slice, begin);
  kiln_node_add_input(slice, end);
  kiln_node_add_input(slice, kiln_insert_int_before(slice, 1));
  return kiln_node_add_output(slice, type);
}

/* False: there are too many, or it does not fit a dimension of `all`. */
static inline bool kiln__add_part(kiln__parts *p, int64_t size, int64_t all) {
  const int64_t begin = p->count ? p->ends[p->count - 1] : 0;
  if (p->count == KILN__MOST_PARTS || size < 1 || size > all - begin) return false;
  p->ends[p->count++] = begin + size;
  return true;
}
