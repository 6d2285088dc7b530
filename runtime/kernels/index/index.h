/* index.h: what the kernels of indexing share. */
#pragma once

#include <string.h>

#include "runtime/kernels/support.h"

/* Copies one element of `item` bytes. */
static inline void kiln__move_element(char *to, const char *from, size_t item) {
  switch (item) {
    case 1: *to = *from; break;
    case 2: memcpy(to, from, 2); break;
    case 4: memcpy(to, from, 4); break;
    case 8: memcpy(to, from, 8); break;
    default: memcpy(to, from, item); break;
  }
}
/* to += from, in the dtype. */
void kiln__add_element(char *to, const char *from, kiln_dtype dtype);
/* How many of n bytes are not 0; fewer where the call's budget is over. */
int64_t kiln__count_set(const uint8_t *flags, int64_t n);
/* Places of the elements that are not 0, row by row: int64 [count, rank], contiguous. */
kiln_status *kiln__nonzero(kiln_call *call, kiln_tensor *t, kiln_tensor **out) KILN_MUST_USE;
/* Blocks of bytes at `count` places, which are `apart` from the next one: side by side. */
void kiln__take_blocks(char *to, const char *from, const int64_t *places, int64_t count,
                       size_t apart, size_t block);
/* The same in each of `outer` rows of n blocks. */
void kiln__take_rows(char *to, const char *from, int64_t outer, int64_t n, const int64_t *places,
                     int64_t count, size_t block);
/* A contiguous int64 reading of an index tensor; KILN_OP_ERROR for other kinds. */
kiln_status *kiln__as_index(kiln_call *call, kiln_tensor *t, kiln_tensor **out) KILN_MUST_USE;
/* scatter_add where all slices of the index along `dim` say the same (index.expand_as(from)): whole
 * slices of `from` are added. *out_added false: something lies otherwise or is out of bounds, and
 * nothing was done. */
kiln_status *kiln__add_expanded(kiln_call *call, kiln_tensor *to, int dim, kiln_tensor *index,
                                const kiln_tensor *from, bool *out_added) KILN_MUST_USE;
