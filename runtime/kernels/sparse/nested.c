/* nested.c: nested tensors, as nn.TransformerEncoder makes them of a padded batch: rows of
 * different lengths, padded again at the end (structure.h). */
#include "runtime/kernels/sparse/nested.h"

#include <string.h>

/* The length of every row of `mask` [B, T] (true: an element), a row's elements being its first
 * ones; *aligned false where one is not like that. */
static const int64_t *lengths_of(kiln__composite *r, kiln_tensor *t, kiln_tensor *mask,
                                 bool *aligned) {
  kiln_tensor *dense, *result;
  *aligned = true;
  if (kiln_tensor_dtype(mask) != KILN_DTYPE_BOOL) {
    return FAIL(r, "Expected mask to be of ScalarType Bool, but got %s instead.",
                kiln_dtype_ir_name(kiln_tensor_dtype(mask)));
  }
  if (kiln_tensor_rank(mask) != 2) return FAIL(r, "Padding mask should be 2D");
  if (kiln_tensor_rank(t) != 3) {
    return FAIL(r, "Input should be a 3D tensor, N * L * D");
  }
  const int64_t rows = kiln_tensor_sizes(mask)[0], length = kiln_tensor_sizes(mask)[1];
  if (rows != kiln_tensor_sizes(t)[0] || length != kiln_tensor_sizes(t)[1]) {
    return FAIL(r, "Mask size should match input size");
  }
  const uint8_t *at = kiln__composite_read(r, mask, KILN_DTYPE_BOOL, &dense);
  int64_t *lengths = kiln__composite_new(r, KILN_DTYPE_I64, 1, &rows, &result);
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; i < rows && lengths && at && !kiln_budget_spent(&left, length);
       i++, at += length) {
    int64_t count = 0, last = 0;
    for (int64_t k = 0; k < length; k++) {
      count += at[k] != 0;
      if (at[k]) last = k + 1;
    }
    lengths[i] = count;
    if (last != count) *aligned = false;
  }
  return lengths;
}
/* t (B, T, D), mask (B, T) */
KILN_COMPOSITE(_nested_tensor_from_mask_left_aligned) {
  bool aligned;
  (void)lengths_of(r, SELF, ARG(1), &aligned);
  if (!r->status) *outs = kiln_bool(aligned);
  return NULL;
}
/* t, mask, mask_check */
KILN_COMPOSITE(_nested_tensor_from_mask) {
  kiln_tensor *t = SELF;
  bool aligned;
  const int64_t *lengths = lengths_of(r, t, ARG(1), &aligned);
  if (r->status) return NULL;
  if (kiln_arg_bool(args, 2) && !aligned) {
    return FAIL(r, "Mask must be left-aligned without gaps");
  }
  kiln_tensor *copy = kiln__composite_copy(r, t); /* later writes to t are not seen */
  return kiln__nested_with(r, copy, lengths);
}

kiln_tensor *kiln__nested_padded(kiln__composite *r, const kiln_tensor *t) {
  kiln_tensor *out;
  if (r->status || !kiln__composite_ok(r, kiln_tensor_alias(&r->call->cache, t, &out))) return NULL;
  return kiln__composite_keep(r, out);
}
kiln_tensor *kiln__nested_padding(kiln__composite *r, const kiln_nested *n, int64_t length) {
  kiln_tensor *mask;
  uint8_t *at =
      kiln__composite_new(r, KILN_DTYPE_BOOL, 2, (const int64_t[]){n->count, length}, &mask);
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; i < n->count && at && !kiln_budget_spent(&left, length); i++) {
    for (int64_t k = 0; k < length; k++) *at++ = k >= n->lengths[i];
  }
  return mask;
}
kiln_tensor *kiln__nested_with(kiln__composite *r, const kiln_tensor *padded,
                               const int64_t *lengths) {
  kiln_tensor *result;
  if (r->status || !padded ||
      !kiln__composite_ok(
          r, kiln_nested_tensor(r->call->env->mem, &r->call->cache, padded, lengths, &result))) {
    return NULL;
  }
  return kiln__composite_keep(r, result);
}
static int64_t longest(const kiln_nested *n) {
  int64_t most = 0;
  for (int64_t i = 0; i < n->count; i++) most = n->lengths[i] > most ? n->lengths[i] : most;
  return most;
}
/* self, padding, output_size */
KILN_COMPOSITE(to_padded_tensor) {
  kiln_tensor *t = SELF;
  const kiln_nested *n = kiln_tensor_nested(t);
  const int rank = kiln_tensor_rank(t);
  int64_t sizes[KILN_MAX_RANK], asked[KILN_MAX_RANK];
  int count;
  if (!n) return FAIL(r, "to_padded_tensor: the tensor is not nested");
  if (!kiln__composite_ok(r, kiln__arg_int_list(args, 2, asked, &count))) return NULL;
  memcpy(sizes, kiln_tensor_sizes(t), sizeof *sizes * (size_t)rank);
  sizes[1] = longest(n);
  for (int d = 0; d < count; d++) {
    if (count == rank && asked[d] >= sizes[d]) continue;
    return FAIL(r, count == rank ? "Value in output_size is less than NestedTensor padded "
                                   "size. Truncation is not supported."
                                 : "Length of output_size does not match NestedTensor dims. "
                                   "Broadcasting is not supported.");
  }
  kiln_tensor *within = kiln__composite_narrow(r, kiln__nested_padded(r, t), 1, 0, sizes[1]);
  kiln_tensor *mask = kiln__nested_padding(r, n, sizes[1]), *result;
  for (int d = 2; d < rank; d++) mask = KILN_STEP(r, unsqueeze, T(mask), I(-1));
  kiln_tensor *filled = KILN_STEP(r, masked_fill, T(within), T(mask), args[1]);
  if (count == 0) memcpy(asked, sizes, sizeof sizes);
  result = KILN_STEP(r, full, kiln__composite_ints(r, rank, asked), args[1],
                     I(kiln_tensor_dtype(t)), NONE, NONE, NONE);
  kiln_tensor *part = result;
  for (int d = 0; d < rank; d++) part = kiln__composite_narrow(r, part, d, 0, sizes[d]);
  return part && filled && kiln__composite_ok(r, kiln_tensor_copy(part, filled)) ? result : NULL;
}
KILN_KERNEL(is_nested) { return kiln__give_bool(outs, kiln_tensor_nested(SELF) != NULL); }
/* The sizes of each row. */
KILN_COMPOSITE(_nested_tensor_size) {
  const kiln_tensor *t = SELF;
  const kiln_nested *n = kiln_tensor_nested(t);
  kiln_tensor *result;
  if (!n) return FAIL(r, "_nested_tensor_size: the tensor is not nested");
  const int64_t rank = kiln_tensor_rank(t) - 1;
  int64_t *to =
      kiln__composite_new(r, KILN_DTYPE_I64, 2, (const int64_t[]){n->count, rank}, &result);
  for (int64_t i = 0; i < n->count && to; i++) {
    *to++ = n->lengths[i];
    for (int64_t d = 1; d < rank; d++) *to++ = kiln_tensor_sizes(t)[d + 1];
  }
  return result;
}
