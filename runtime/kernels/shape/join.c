/* join.c: lists of tensors joined, as composites: stacks, blocks, products, padded rows. */
#include <string.h>

#include "runtime/kernels/composite.h"

/* -- At least so many dimensions -- */

static kiln_tensor *at_least(kiln__composite *r, kiln_tensor *t, int rank) {
  const int have = kiln__composite_rank(t);
  const int64_t n = kiln__composite_numel(t), a = kiln__composite_size(t, 0),
                b = kiln__composite_size(t, 1);
  if (have >= rank) return t;
  if (rank == 1) return kiln__composite_flat(r, t);
  if (rank == 2) return kiln__composite_reshape(r, t, 2, (const int64_t[]){1, n});
  if (have == 2) return kiln__composite_reshape(r, t, 3, (const int64_t[]){a, b, 1});
  return kiln__composite_reshape(r, t, 3, (const int64_t[]){1, n, 1});
}
enum { MANY = 256 };
/* Tensors of a list, each prepared; false after a failure. */
static bool all_at_least(kiln__composite *r, const kiln_list *list, int rank,
                         kiln_tensor *all[MANY]) {
  if (list->count < 1 || list->count > MANY) {
    return FAIL(r, "expected between 1 and %d tensors, got %lld", (int)MANY,
                (long long)list->count);
  }
  for (int64_t i = 0; i < list->count; i++) all[i] = at_least(r, list->items[i].u.tensor, rank);
  return !r->status;
}
#define AT_LEAST(name, rank)                                                    \
  KILN_COMPOSITE(name) { return at_least(r, SELF, rank); }                      \
  KILN_COMPOSITE(name##_list) {                                                 \
    kiln_tensor *all[MANY];                                                     \
    const kiln_list *list = kiln_arg_list(args, 0);                             \
    if (list->count && !all_at_least(r, list, rank, all)) return NULL;          \
    outs[0] = kiln_ivalue_retain(kiln__composite_tensors(r, list->count, all)); \
    return NULL;                                                                \
  }
AT_LEAST(atleast_1d, 1)
AT_LEAST(atleast_2d, 2)
AT_LEAST(atleast_3d, 3)

/* -- Joins -- */

static kiln_tensor *join(kiln__composite *r, const kiln_ivalue *args, int rank, int dim) {
  kiln_tensor *all[MANY];
  const kiln_list *list = kiln_arg_list(args, 0);
  if (!all_at_least(r, list, rank, all)) return NULL;
  if (dim == 1 && rank == 1) dim = kiln__composite_rank(all[0]) == 1 ? 0 : 1;
  return KILN_STEP(r, cat, kiln__composite_tensors(r, list->count, all), I(dim));
}
KILN_COMPOSITE(hstack) { return join(r, args, 1, 1); }
KILN_COMPOSITE(vstack) { return join(r, args, 2, 0); }
KILN_COMPOSITE(dstack) { return join(r, args, 3, 2); }
KILN_COMPOSITE(column_stack) {
  kiln_tensor *all[MANY];
  const kiln_list *list = kiln_arg_list(args, 0);
  if (!all_at_least(r, list, 0, all)) return NULL;
  for (int64_t i = 0; i < list->count; i++) {
    const int64_t n = kiln__composite_numel(all[i]);
    if (kiln__composite_rank(all[i]) > 1) continue;
    all[i] = kiln__composite_reshape(r, all[i], 2, (const int64_t[]){n, 1});
  }
  if (r->status) return NULL;
  return KILN_STEP(r, cat, kiln__composite_tensors(r, list->count, all), I(1));
}
KILN_COMPOSITE(block_diag) {
  kiln_tensor *all[MANY], *to;
  const kiln_list *list = kiln_arg_list(args, 0);
  int64_t size[2] = {0, 0}, at[2] = {0, 0};
  if (!all_at_least(r, list, 2, all)) return NULL;
  kiln_dtype dtype = kiln__composite_dtype(all[0]);
  for (int64_t i = 0; i < list->count; i++) {
    if (kiln__composite_rank(all[i]) != 2) {
      return FAIL(r,
                  "torch.block_diag: Input tensors must have 2 or fewer dimensions. "
                  "Input %lld has %d dimensions",
                  (long long)i, kiln__composite_rank(all[i]));
    }
    dtype = kiln_dtype_promote(dtype, kiln__composite_dtype(all[i]));
    for (int d = 0; d < 2; d++) size[d] += kiln__composite_size(all[i], d);
  }
  to = KILN_STEP(r, zeros, INTS(size[0], size[1]), I(dtype), NONE, NONE, NONE);
  for (int64_t i = 0; i < list->count; i++) {
    const int64_t n = kiln__composite_size(all[i], 0), m = kiln__composite_size(all[i], 1);
    kiln_tensor *part = kiln__composite_narrow(r, to, 0, at[0], n);
    part = kiln__composite_narrow(r, part, 1, at[1], m);
    (void)KILN_STEP(r, copy_, T(part), T(all[i]), B(false));
    at[0] += n;
    at[1] += m;
  }
  return to;
}
KILN_COMPOSITE(cartesian_prod) {
  const kiln_list *list = kiln_arg_list(args, 0);
  kiln_tensor *all[MANY];
  if (list->count == 0 || list->count > MANY) {
    return FAIL(r, "meshgrid expects a non-empty TensorList");
  }
  for (int64_t i = 0; i < list->count; i++) {
    if (kiln_tensor_rank(list->items[i].u.tensor) != 1) {
      return FAIL(r, "Expect a 1D vector, but got shape of %d dimensions",
                  kiln_tensor_rank(list->items[i].u.tensor));
    }
  }
  if (list->count == 1) return list->items[0].u.tensor;
  const kiln_list *grids = KILN_STEP_LIST(r, meshgrid, args[0]);
  for (int64_t i = 0; grids && i < grids->count; i++) {
    all[i] = kiln__composite_flat(r, grids->items[i].u.tensor);
  }
  if (r->status) return NULL;
  return KILN_STEP(r, stack, kiln__composite_tensors(r, list->count, all), I(1));
}

/* -- Differences -- */

/* tensors, dim, num_chunks: each is filled up with zeros to equal chunks along dim, which become
 * rows; then they are joined row by row. */
KILN_COMPOSITE(_chunk_cat) {
  const kiln_list *list = kiln_arg_list(args, 0);
  const int64_t chunks = kiln_arg_int(args, 2);
  const kiln_ivalue rows = kiln__composite_tensors(r, 0, NULL);
  if (list->count == 0) FAIL(r, "_chunk_cat expects a non-empty input tensor list");
  if (chunks < 1) FAIL(r, "_chunk_cat expects positive num_chunks");
  if (r->status) return NULL;
  const int dim =
      kiln__composite_dim(r, kiln_arg_int(args, 1), kiln_tensor_rank(list->items[0].u.tensor));
  for (int64_t i = 0; !r->status && i < list->count; i++) {
    kiln_tensor *t = list->items[i].u.tensor;
    int64_t sizes[KILN_MAX_RANK], pad[2 * KILN_MAX_RANK] = {0}, length = 1;
    const int rank = kiln_tensor_rank(t);
    if (rank <= dim || dim + 2 > KILN_MAX_RANK) {
      return FAIL(r, "_chunk_cat expects all tensors to have ndim > dim");
    }
    const int64_t n = kiln__composite_size(t, dim), each = n / chunks + (n % chunks != 0);
    if (!kiln_checked_mul_i64(each, chunks, &pad[2 * (rank - dim) - 1])) {
      return FAIL(r, "_chunk_cat: too many chunks");
    }
    pad[2 * (rank - dim) - 1] -= n;
    t = KILN_STEP(r, constant_pad_nd, T(t), kiln__composite_ints(r, 2 * (rank - dim), pad), I(0));
    for (int d = 0; d < dim; d++) sizes[d] = kiln__composite_size(t, d);
    for (int d = dim + 1; d < rank; d++) length *= kiln__composite_size(t, d);
    sizes[dim] = chunks;
    sizes[dim + 1] = each * length;
    t = kiln__composite_reshape(r, t, dim + 2, sizes);
    if (t) (void)kiln__composite_ok(r, kiln_list_push(rows.u.list, kiln_ivalue_retain(T(t))));
  }
  return KILN_STEP(r, cat, rows, I(dim + 1));
}

/* -- Several tensors -- */

/* sequences, batch_first, padding_value, padding_side */
KILN_COMPOSITE(pad_sequence) {
  const kiln_list *list = kiln_arg_list(args, 0);
  const bool first = kiln_arg_bool(args, 1), left = kiln_str_is(kiln_arg_str(args, 3), "left");
  int64_t sizes[KILN_MAX_RANK + 1], longest = 0;
  if (!left && !kiln_str_is(kiln_arg_str(args, 3), "right")) {
    return FAIL(r, "Expected padding_side to be one of left or right, but got " KILN_STR_FMT ".",
                KILN_STR_ARG(kiln_arg_str(args, 3)));
  }
  if (list->count == 0) return FAIL(r, "received an empty list of sequences");
  const kiln_tensor *model = list->items[0].u.tensor;
  const int rank = kiln_tensor_rank(model);
  for (int64_t i = 0; i < list->count; i++) {
    const kiln_tensor *t = list->items[i].u.tensor;
    if (kiln_tensor_rank(t) != rank || rank == 0 || rank >= KILN_MAX_RANK) {
      return FAIL(r,
                  "pad_sequence: sequences must have the same number of dimensions, at least one");
    }
    if (kiln_tensor_sizes(t)[0] > longest) longest = kiln_tensor_sizes(t)[0];
  }
  sizes[first ? 0 : 1] = list->count;
  sizes[first ? 1 : 0] = longest;
  memcpy(sizes + 2, kiln_tensor_sizes(model) + 1, sizeof *sizes * (size_t)(rank - 1));
  kiln_tensor *out = KILN_STEP(r, full, kiln__composite_ints(r, rank + 1, sizes), args[2],
                               I(kiln_tensor_dtype(model)), NONE, NONE, NONE);
  for (int64_t i = 0; i < list->count && !r->status; i++) {
    kiln_tensor *t = list->items[i].u.tensor;
    kiln_tensor *place = KILN_STEP(r, select, T(out), I(first ? 0 : 1), I(i));
    const int64_t n = kiln_tensor_sizes(t)[0];
    place = kiln__composite_narrow(r, place, 0, left ? longest - n : 0, n);
    KILN_STEP(r, copy_, T(place), T(t), B(false));
  }
  return out;
}
KILN_COMPOSITE(flatten_dense_tensors) {
  const kiln_list *list = kiln_arg_list(args, 0);
  kiln_tensor *flat[64];
  if (list->count > 64) {
    return FAIL(r, "flatten_dense_tensors: more than 64 tensors");
  }
  for (int64_t i = 0; i < list->count; i++) {
    flat[i] = kiln__composite_flat(r, list->items[i].u.tensor);
    if (r->status) return NULL;
  }
  return KILN_STEP(r, cat, kiln__composite_tensors(r, list->count, flat), I(0));
}
