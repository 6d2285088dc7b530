/* compose_tensor.c: rearrangements, joins, splits and scattered copies, as recipes. */
#include <string.h>

#include "runtime/kernels/recipe.h"

#define SELF kiln_arg_tensor(args, 0)

/* -- At least so many dimensions -- */

static kiln_tensor *at_least(kiln__recipe *r, kiln_tensor *t, int rank) {
  const int have = kiln__recipe_rank(t);
  const int64_t n = kiln__recipe_numel(t), a = kiln__recipe_size(t, 0), b = kiln__recipe_size(t, 1);
  if (have >= rank) return t;
  if (rank == 1) return kiln__recipe_reshape(r, t, 1, &n);
  if (rank == 2) return kiln__recipe_reshape(r, t, 2, (const int64_t[]){1, n});
  if (have == 2) return kiln__recipe_reshape(r, t, 3, (const int64_t[]){a, b, 1});
  return kiln__recipe_reshape(r, t, 3, (const int64_t[]){1, n, 1});
}
/* Tensors of a list, each prepared; NULL after a failure. */
static kiln_tensor **all_at_least(kiln__recipe *r, const kiln_list *list, int rank,
                                  kiln_tensor **few, int few_count) {
  if (list->count < 1 || list->count > few_count) {
    KILN_RECIPE_FAIL(r, "expected between 1 and %d tensors, got %lld", few_count,
                     (long long)list->count);
    return NULL;
  }
  for (int64_t i = 0; i < list->count; i++) few[i] = at_least(r, list->items[i].u.tensor, rank);
  return r->status ? NULL : few;
}
enum { MANY = 256 };
#define AT_LEAST(name, rank)                                                              \
  KILN_RECIPE(name) { kiln__recipe_give(r, outs, at_least(r, SELF, rank)); }              \
  KILN_RECIPE(name##_list) {                                                              \
    kiln_tensor *all[MANY];                                                               \
    const kiln_list *list = kiln_arg_list(args, 0);                                       \
    kiln_tensor **given = list->count ? all_at_least(r, list, rank, all, MANY) : all;     \
    if (given) outs[0] = kiln_ivalue_retain(kiln__recipe_tensors(r, list->count, given)); \
  }
AT_LEAST(atleast_1d, 1)
AT_LEAST(atleast_2d, 2)
AT_LEAST(atleast_3d, 3)
KILN_RECIPE(ravel) {
  const int64_t n = SELF->numel;
  kiln__recipe_give(r, outs, kiln__recipe_reshape(r, SELF, 1, &n));
}
KILN_RECIPE(positive) {
  if (kiln_tensor_dtype(SELF) == KILN_DTYPE_BOOL) {
    KILN_RECIPE_FAIL(r, "The `+` operator, on a bool tensor is not supported.");
  }
  kiln__recipe_give(r, outs, SELF);
}

/* -- Joins -- */

static void join(kiln__recipe *r, const kiln_ivalue *args, int rank, int dim, kiln_ivalue *outs) {
  kiln_tensor *all[MANY];
  const kiln_list *list = kiln_arg_list(args, 0);
  if (!all_at_least(r, list, rank, all, MANY)) return;
  if (dim == 1 && rank == 1) dim = kiln__recipe_rank(all[0]) == 1 ? 0 : 1;
  kiln__recipe_give(r, outs, KILN_COOK(r, cat, kiln__recipe_tensors(r, list->count, all), I(dim)));
}
KILN_RECIPE(hstack) { join(r, args, 1, 1, outs); }
KILN_RECIPE(vstack) { join(r, args, 2, 0, outs); }
KILN_RECIPE(dstack) { join(r, args, 3, 2, outs); }
KILN_RECIPE(column_stack) {
  kiln_tensor *all[MANY];
  const kiln_list *list = kiln_arg_list(args, 0);
  if (!all_at_least(r, list, 0, all, MANY)) return;
  for (int64_t i = 0; i < list->count; i++) {
    const int64_t n = kiln__recipe_numel(all[i]);
    if (kiln__recipe_rank(all[i]) > 1) continue;
    all[i] = kiln__recipe_reshape(r, all[i], 2, (const int64_t[]){n, 1});
  }
  if (r->status) return;
  kiln__recipe_give(r, outs, KILN_COOK(r, cat, kiln__recipe_tensors(r, list->count, all), I(1)));
}
KILN_RECIPE(block_diag) {
  kiln_tensor *all[MANY], *to;
  const kiln_list *list = kiln_arg_list(args, 0);
  int64_t size[2] = {0, 0}, at[2] = {0, 0};
  if (!all_at_least(r, list, 2, all, MANY)) return;
  kiln_dtype dtype = kiln__recipe_dtype(all[0]);
  for (int64_t i = 0; i < list->count; i++) {
    if (kiln__recipe_rank(all[i]) != 2) {
      KILN_RECIPE_FAIL(r,
                       "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input "
                       "%lld has %d dimensions",
                       (long long)i, kiln__recipe_rank(all[i]));
      return;
    }
    dtype = kiln_dtype_promote(dtype, kiln__recipe_dtype(all[i]));
    for (int d = 0; d < 2; d++) size[d] += kiln__recipe_size(all[i], d);
  }
  to = KILN_COOK(r, zeros, INTS(size[0], size[1]), I(dtype), NONE, NONE, NONE);
  for (int64_t i = 0; i < list->count; i++) {
    const int64_t n = kiln__recipe_size(all[i], 0), m = kiln__recipe_size(all[i], 1);
    kiln_tensor *part = kiln__recipe_narrow(r, to, 0, at[0], n);
    part = kiln__recipe_narrow(r, part, 1, at[1], m);
    (void)KILN_COOK(r, copy_, T(part), T(all[i]), B(false));
    at[0] += n;
    at[1] += m;
  }
  kiln__recipe_give(r, outs, to);
}
KILN_RECIPE(cartesian_prod) {
  const kiln_list *list = kiln_arg_list(args, 0);
  kiln_tensor *all[MANY];
  if (list->count == 0 || list->count > MANY) {
    KILN_RECIPE_FAIL(r, "meshgrid expects a non-empty TensorList");
    return;
  }
  for (int64_t i = 0; i < list->count; i++) {
    if (kiln_tensor_rank(list->items[i].u.tensor) != 1) {
      KILN_RECIPE_FAIL(r, "Expect a 1D vector, but got shape of %d dimensions",
                       kiln_tensor_rank(list->items[i].u.tensor));
      return;
    }
  }
  if (list->count == 1) {
    kiln__recipe_give(r, outs, list->items[0].u.tensor);
    return;
  }
  const kiln_list *grids = KILN_COOK_LIST(r, meshgrid, args[0]);
  for (int64_t i = 0; grids && i < grids->count; i++) {
    const int64_t n = grids->items[i].u.tensor->numel;
    all[i] = kiln__recipe_reshape(r, grids->items[i].u.tensor, 1, &n);
  }
  if (r->status) return;
  kiln__recipe_give(r, outs, KILN_COOK(r, stack, kiln__recipe_tensors(r, list->count, all), I(1)));
}

/* -- Splits: sections or indices along a dimension -- */

static void give_list(kiln__recipe *r, kiln_ivalue *out, kiln_list *list) {
  if (list && !r->status) *out = kiln_ivalue_retain(kiln_of_box(list));
}
static void split_at(kiln__recipe *r, const kiln_ivalue *args, const char *name, int least, int dim,
                     kiln_ivalue *outs) {
  const int rank = kiln_tensor_rank(SELF);
  if (rank < least) {
    KILN_RECIPE_FAIL(r,
                     "torch.%s requires a tensor with at least %d dimension, but got a tensor "
                     "with %d dimensions!",
                     name, least, rank);
    return;
  }
  if (least == 1 && rank == 1) dim = 0;
  if (args[1].tag != KILN_TAG_INT) {
    give_list(r, outs, KILN_COOK_LIST(r, tensor_split_indices, T(SELF), args[1], I(dim)));
    return;
  }
  const int64_t n = kiln__recipe_size(SELF, dim), parts = args[1].u.i;
  if (parts == 0 || n % parts != 0) {
    KILN_RECIPE_FAIL(r,
                     "torch.%s attempted to split along dimension %d, but the size of the "
                     "dimension %lld is not divisible by the split_size %lld!",
                     name, dim, (long long)n, (long long)parts);
    return;
  }
  give_list(r, outs, KILN_COOK_LIST(r, tensor_split_sections, T(SELF), args[1], I(dim)));
}
KILN_RECIPE(hsplit) { split_at(r, args, "hsplit", 1, 1, outs); }
KILN_RECIPE(vsplit) { split_at(r, args, "vsplit", 2, 0, outs); }
KILN_RECIPE(dsplit) { split_at(r, args, "dsplit", 3, 2, outs); }
/* self, sections (no dimensions) or indices (one), dim */
KILN_RECIPE(tensor_split_tensor) {
  kiln_tensor *how = kiln_arg_tensor(args, 1), *dense;
  if (kiln_tensor_dtype(how) != KILN_DTYPE_I64 || kiln_tensor_rank(how) > 1) {
    KILN_RECIPE_FAIL(r, "tensor_split expected tensor_indices_or_sections to be a zero-dimensional "
                        "or one-dimensional tensor of dtype long");
    return;
  }
  const int64_t *at = kiln__recipe_read(r, how, KILN_DTYPE_I64, &dense);
  if (!at) return;
  if (kiln_tensor_rank(how) == 0) {
    give_list(r, outs, KILN_COOK_LIST(r, tensor_split_sections, T(SELF), I(at[0]), args[2]));
  } else {
    const kiln_ivalue list = kiln__recipe_ints(r, (int)how->numel, at);
    give_list(r, outs, KILN_COOK_LIST(r, tensor_split_indices, T(SELF), list, args[2]));
  }
}

/* -- Diagonals -- */

KILN_RECIPE(trace) {
  if (kiln_tensor_rank(SELF) != 2) {
    KILN_RECIPE_FAIL(r, "trace: expected a matrix, but got tensor with dim %d",
                     kiln_tensor_rank(SELF));
    return;
  }
  kiln__recipe_give(r, outs,
                    KILN_COOK(r, sum, T(KILN_COOK(r, diagonal, T(SELF), I(0), I(0), I(1))), NONE));
}
/* A new tensor with t's last dimension as the diagonal of the dimensions a < b. */
static kiln_tensor *embed(kiln__recipe *r, kiln_tensor *t, int64_t offset, int64_t dim1,
                          int64_t dim2) {
  const int rank = kiln__recipe_rank(t) + 1;
  const int a = kiln__recipe_dim(r, dim1, rank), b = kiln__recipe_dim(r, dim2, rank);
  int64_t sizes[KILN_MAX_RANK + 1];
  if (!r->status && (a == b || rank > KILN_MAX_RANK)) {
    KILN_RECIPE_FAIL(r, "diagonal dimensions cannot be identical %lld, %lld", (long long)dim1,
                     (long long)dim2);
  }
  if (r->status || !t) return NULL;
  int64_t n;
  if (offset == INT64_MIN ||
      !kiln_checked_add_i64(kiln__recipe_size(t, -1), offset < 0 ? -offset : offset, &n)) {
    KILN_RECIPE_FAIL(r, "a diagonal at %lld is too far away", (long long)offset);
    return NULL;
  }
  for (int d = 0, from = 0; d < rank; d++) {
    sizes[d] = d == a || d == b ? n : kiln_tensor_sizes(t)[from++];
  }
  kiln_tensor *to = KILN_COOK(r, zeros, kiln__recipe_ints(r, rank, sizes), I(kiln__recipe_dtype(t)),
                              NONE, NONE, NONE);
  kiln_tensor *line = KILN_COOK(r, diagonal, T(to), I(offset), I(a), I(b));
  (void)KILN_COOK(r, copy_, T(line), T(t), B(false));
  return to;
}
KILN_RECIPE(diag_embed) {
  if (kiln_tensor_rank(SELF) == 0) {
    KILN_RECIPE_FAIL(r, "diag_embed expects a tensor of at least one dimension");
    return;
  }
  kiln__recipe_give(
      r, outs, embed(r, SELF, kiln_arg_int(args, 1), kiln_arg_int(args, 2), kiln_arg_int(args, 3)));
}
KILN_RECIPE(diagflat) {
  const int64_t n = SELF->numel;
  kiln__recipe_give(r, outs,
                    embed(r, kiln__recipe_reshape(r, SELF, 1, &n), kiln_arg_int(args, 1), 0, 1));
}
KILN_RECIPE(diag) {
  const int rank = kiln_tensor_rank(SELF);
  if (rank == 1) {
    kiln__recipe_give(r, outs, embed(r, SELF, kiln_arg_int(args, 1), 0, 1));
  } else if (rank == 2) {
    kiln_tensor *line = KILN_COOK(r, diagonal, T(SELF), args[1], I(0), I(1));
    kiln__recipe_give(r, outs, kiln__recipe_copy(r, line));
  } else {
    KILN_RECIPE_FAIL(r, "diag(): Supports 1D or 2D tensors. Got %dD", rank);
  }
}

/* -- Copies into a part -- */

/* `copy` of self, whose part that `view` makes is written with args[1]. */
static void scatter_into(kiln__recipe *r, kiln_tensor *copy, const kiln_ivalue *args,
                         kiln_kernel_body view, const kiln_ivalue *view_args, int count,
                         kiln_ivalue *outs) {
  kiln_ivalue own[6];
  kiln_tensor *src = kiln_arg_tensor(args, 1);
  if (!copy) return;
  own[0] = T(copy);
  memcpy(own + 1, view_args, sizeof *own * (size_t)count);
  kiln_tensor *part = kiln__recipe_cook(r, view, own);
  if (!part) return;
  if (kiln_tensor_rank(part) != kiln_tensor_rank(src) ||
      memcmp(kiln_tensor_sizes(part), kiln_tensor_sizes(src),
             sizeof(int64_t) * (size_t)kiln_tensor_rank(part)) != 0) {
    char have[256], want[256];
    kiln_sizes_print(kiln_tensor_rank(src), kiln_tensor_sizes(src), have, sizeof have);
    kiln_sizes_print(kiln_tensor_rank(part), kiln_tensor_sizes(part), want, sizeof want);
    KILN_RECIPE_FAIL(r,
                     "expected src to have a size equal to the slice of self. src size = %s, "
                     "slice size = %s",
                     have, want);
    return;
  }
  (void)KILN_COOK(r, copy_, T(part), T(src), B(false));
  kiln__recipe_give(r, outs, copy);
}
KILN_RECIPE(select_scatter) {
  scatter_into(r, kiln__recipe_copy(r, SELF), args, kiln__kernel_select, args + 2, 2, outs);
}
KILN_RECIPE(slice_scatter) {
  scatter_into(r, kiln__recipe_copy(r, SELF), args, kiln__kernel_slice, args + 2, 4, outs);
}
KILN_RECIPE(diagonal_scatter) {
  scatter_into(r, kiln__recipe_copy(r, SELF), args, kiln__kernel_diagonal, args + 2, 3, outs);
}

/* A copy of t within one of its storage, where as_strided finds all at the places it has in t. */
static kiln_tensor *copy_in_place(kiln__recipe *r, kiln_tensor *t) {
  const int rank = kiln_tensor_rank(t);
  const int64_t *sizes = kiln_tensor_sizes(t), *strides = kiln_tensor_strides(t);
  bool in_place = !kiln_tensor_is_undefined(t); /* and each element has a place of its own */
  for (int d = 0; d < rank; d++) in_place = in_place && (sizes[d] <= 1 || strides[d] != 0);
  if (!in_place) return kiln__recipe_copy(r, t);
  const int64_t whole = (int64_t)(t->storage->bytes / kiln_tensor_item_size(t));
  kiln_tensor *all = KILN_COOK(r, as_strided, T(t), INTS(whole), INTS(1), I(0));
  return KILN_COOK(r, as_strided, T(kiln__recipe_copy(r, all)), kiln__recipe_ints(r, rank, sizes),
                   kiln__recipe_ints(r, rank, strides), I(t->offset));
}
KILN_RECIPE(as_strided_scatter) {
  scatter_into(r, copy_in_place(r, SELF), args, kiln__kernel_as_strided, args + 2, 3, outs);
}

/* -- Turns -- */

static void turn_over(kiln__recipe *r, kiln_tensor *t, const char *name, int dim,
                      kiln_ivalue *outs) {
  if (kiln_tensor_rank(t) <= dim) {
    KILN_RECIPE_FAIL(r, "Input must be >= %d-d.", dim + 1);
    (void)name;
    return;
  }
  kiln__recipe_give(r, outs, KILN_COOK(r, flip, T(t), INTS(dim)));
}
KILN_RECIPE(fliplr) { turn_over(r, SELF, "fliplr", 1, outs); }
KILN_RECIPE(flipud) { turn_over(r, SELF, "flipud", 0, outs); }
KILN_RECIPE(rot90) {
  int64_t dims[KILN_MAX_RANK];
  int count;
  const int rank = kiln_tensor_rank(SELF);
  if (!kiln__recipe_ok(r, kiln__arg_int_list(args, 2, dims, &count))) return;
  if (count != 2 || rank < 2) {
    KILN_RECIPE_FAIL(r, "expected total rotation dims == 2, but got dims = %d", count);
    return;
  }
  const int a = kiln__recipe_dim(r, dims[0], rank), b = kiln__recipe_dim(r, dims[1], rank);
  if (!r->status && a == b) {
    KILN_RECIPE_FAIL(r,
                     "expected rotation dims to be different, but got dim0 = %lld and dim1 = "
                     "%lld",
                     (long long)dims[0], (long long)dims[1]);
  }
  if (r->status) return;
  kiln_tensor *t = SELF;
  switch (((kiln_arg_int(args, 1) % 4) + 4) % 4) {
    case 1: t = KILN_COOK(r, transpose, T(KILN_COOK(r, flip, T(t), INTS(b))), I(a), I(b)); break;
    case 2: t = KILN_COOK(r, flip, T(t), INTS(a, b)); break;
    case 3: t = KILN_COOK(r, transpose, T(KILN_COOK(r, flip, T(t), INTS(a))), I(a), I(b)); break;
    default: t = kiln__recipe_copy(r, t); break;
  }
  kiln__recipe_give(r, outs, t);
}
/* self, factor: the inverse of pixel_shuffle */
KILN_RECIPE(pixel_unshuffle) {
  const int rank = kiln_tensor_rank(SELF);
  const int64_t f = kiln_arg_int(args, 1), *sizes = kiln_tensor_sizes(SELF);
  int64_t wide[KILN_MAX_RANK + 2], order[KILN_MAX_RANK + 2];
  int64_t channels = 0;
  if (rank < 3 || rank + 2 > KILN_MAX_RANK || f <= 0 || sizes[rank - 2] % f ||
      sizes[rank - 1] % f || !kiln_checked_mul_i64(sizes[rank - 3], f, &channels) ||
      !kiln_checked_mul_i64(channels, f, &channels)) {
    KILN_RECIPE_FAIL(r,
                     "pixel_unshuffle expects an input of at least 3 dimensions whose height and "
                     "width are divisible by a positive downscale_factor");
    return;
  }
  if (SELF->numel == 0) { /* PyTorch leaves it as it is */
    kiln__recipe_give(r, outs, kiln__recipe_copy(r, SELF));
    return;
  }
  const int n = rank - 3;
  memcpy(wide, sizes, sizeof *wide * (size_t)(n + 1));
  for (int d = 0; d <= n; d++) order[d] = d;
  const int64_t parts[] = {sizes[rank - 2] / f, f, sizes[rank - 1] / f, f};
  memcpy(wide + n + 1, parts, sizeof parts);
  const int64_t moved[] = {n + 2, n + 4, n + 1, n + 3};
  memcpy(order + n + 1, moved, sizeof moved);
  kiln_tensor *t = kiln__recipe_reshape(r, SELF, n + 5, wide);
  t = KILN_COOK(r, permute, T(t), kiln__recipe_ints(r, n + 5, order));
  const int64_t last[] = {channels, parts[0], parts[2]};
  memcpy(wide + n, last, sizeof last);
  kiln__recipe_give(r, outs, kiln__recipe_copy(r, kiln__recipe_reshape(r, t, rank, wide)));
}
KILN_RECIPE(channel_shuffle) {
  const int rank = kiln_tensor_rank(SELF);
  const int64_t groups = kiln_arg_int(args, 1), *sizes = kiln_tensor_sizes(SELF);
  if (rank < 3 || groups <= 0 || sizes[1] % groups != 0) {
    KILN_RECIPE_FAIL(r,
                     "channel_shuffle expects an input of more than 2 dimensions, whose channels "
                     "are divisible by a positive number of groups");
    return;
  }
  int64_t rest = 1;
  for (int d = 2; d < rank; d++) rest *= sizes[d];
  const int64_t wide[] = {sizes[0], groups, sizes[1] / groups, rest};
  kiln_tensor *t = kiln__recipe_reshape(r, SELF, 4, wide);
  t = kiln__recipe_copy(r, KILN_COOK(r, transpose, T(t), I(1), I(2)));
  kiln__recipe_give(r, outs, kiln__recipe_reshape(r, t, rank, sizes));
}

/* -- Places -- */

KILN_RECIPE(argwhere) { kiln__recipe_give(r, outs, KILN_COOK(r, nonzero, T(SELF))); }
/* self, size, fill_value: as many rows as asked for */
KILN_RECIPE(nonzero_static) {
  const int64_t size = kiln_arg_int(args, 1), rank = kiln_tensor_rank(SELF);
  if (size < 0) {
    KILN_RECIPE_FAIL(r, "nonzero_static: 'size' must be an non-negative integer");
    return;
  }
  kiln_tensor *places = KILN_COOK(r, nonzero, T(SELF));
  const int64_t have = kiln__recipe_size(places, 0);
  if (have >= size) {
    kiln__recipe_give(r, outs, kiln__recipe_copy(r, kiln__recipe_narrow(r, places, 0, 0, size)));
    return;
  }
  kiln_tensor *to =
      KILN_COOK(r, full, INTS(size, rank), args[2], I(KILN_DTYPE_I64), NONE, NONE, NONE);
  kiln_tensor *part = kiln__recipe_narrow(r, to, 0, 0, have);
  (void)KILN_COOK(r, copy_, T(part), T(places), B(false));
  kiln__recipe_give(r, outs, to);
}
/* rows, columns, offset, dtype: the places of a triangle, row by row */
static void triangle(kiln__recipe *r, const kiln_ivalue *args, bool upper, kiln_ivalue *outs) {
  const int64_t n = kiln_arg_int(args, 0), m = kiln_arg_int(args, 1), k = kiln_arg_int(args, 2);
  if (n < 0 || m < 0 || k > INT32_MAX || k < -INT32_MAX) {
    KILN_RECIPE_FAIL(r, "row and col must be non-negative");
    return;
  }
  kiln_tensor *ones = KILN_COOK(r, ones, INTS(n, m), I(KILN_DTYPE_BOOL), NONE, NONE, NONE);
  ones = upper ? KILN_COOK(r, triu, T(ones), I(k)) : KILN_COOK(r, tril, T(ones), I(k));
  kiln_tensor *t = KILN_COOK(r, nonzero, T(ones));
  t = kiln__recipe_copy(r, KILN_COOK(r, transpose, T(t), I(0), I(1)));
  kiln__recipe_give(r, outs, kiln__recipe_to(r, t, kiln__arg_dtype_or(args, 3, KILN_DTYPE_I64)));
}
KILN_RECIPE(tril_indices) { triangle(r, args, false, outs); }
KILN_RECIPE(triu_indices) { triangle(r, args, true, outs); }
/* self, repeats (a tensor), dim, output_size */
KILN_RECIPE(repeat_interleave_tensor) {
  kiln_tensor *t = SELF, *repeats = kiln_arg_tensor(args, 1), *counts, *index;
  const int64_t numel = t->numel;
  int dim = 0;
  if (kiln_arg_is_none(args, 2)) {
    t = kiln__recipe_reshape(r, t, 1, &numel);
  } else {
    dim = kiln__recipe_dim(r, kiln_arg_int(args, 2), kiln_tensor_rank(t));
  }
  if (kiln_tensor_dtype(repeats) != KILN_DTYPE_I64 &&
      kiln_tensor_dtype(repeats) != KILN_DTYPE_I32) {
    KILN_RECIPE_FAIL(r, "repeats has to be Long or Int tensor");
  }
  const int64_t n = kiln__recipe_size(t, dim),
                *count = kiln__recipe_read(r, repeats, KILN_DTYPE_I64, &counts);
  const bool one = repeats->numel == 1;
  if (!r->status && !one && (kiln_tensor_rank(repeats) != 1 || repeats->numel != n)) {
    KILN_RECIPE_FAIL(r, "repeats must have the same size as input along dim");
  }
  if (r->status) return;
  int64_t total = 0;
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; i < n && !kiln_budget_spent(&left, 1); i++) {
    const int64_t c = count[one ? 0 : i];
    if (c < 0 || !kiln_checked_add_i64(total, c, &total)) {
      KILN_RECIPE_FAIL(r, "repeats can not be negative");
      return;
    }
  }
  int64_t *to = kiln__recipe_new(r, KILN_DTYPE_I64, 1, &total, &index);
  for (int64_t i = 0; to && i < n && !kiln_budget_spent(&left, 1); i++) {
    for (int64_t k = count[one ? 0 : i]; k > 0 && !kiln_budget_spent(&left, 1); k--) *to++ = i;
  }
  kiln__recipe_give(r, outs, KILN_COOK(r, index_select, T(t), I(dim), T(index)));
}
KILN_RECIPE(repeat_interleave_counts) {
  kiln_tensor *range = KILN_COOK(r, arange, I(SELF->numel), NONE, NONE, NONE, NONE);
  if (kiln_tensor_rank(SELF) != 1) {
    KILN_RECIPE_FAIL(r, "repeat_interleave only accept 1D vector as repeat");
  }
  const kiln_ivalue own[] = {T(range), T(SELF), I(0), NONE};
  if (!r->status) {
    kiln__recipe_give(r, outs, kiln__recipe_cook(r, kiln__kernel_repeat_interleave_tensor, own));
  }
}

/* -- Differences -- */

/* self, n, dim, prepend, append */
KILN_RECIPE(diff) {
  kiln_tensor *t = kiln_arg_tensor(args, 0), *parts[3];
  int64_t n = kiln_arg_int(args, 1);
  int count = 0;
  const int rank = kiln_tensor_rank(t), dim = kiln__recipe_dim(r, kiln_arg_int(args, 2), rank);
  if (!r->status && rank == 0) {
    KILN_RECIPE_FAIL(r, "diff expects input to be at least one-dimensional");
  }
  if (!r->status && n < 0) {
    KILN_RECIPE_FAIL(r, "order must be non-negative but got %lld", (long long)n);
  }
  if (r->status) return;
  if (n == 0) { /* what would be put around is not looked at */
    kiln__recipe_give(r, outs, kiln__recipe_copy(r, t));
    return;
  }
  if (!kiln_arg_is_none(args, 3)) parts[count++] = kiln_arg_tensor(args, 3);
  parts[count++] = t;
  if (!kiln_arg_is_none(args, 4)) parts[count++] = kiln_arg_tensor(args, 4);
  if (count > 1) t = KILN_COOK(r, cat, kiln__recipe_tensors(r, count, parts), I(dim));
  if (n > kiln__recipe_size(t, dim)) n = kiln__recipe_size(t, dim);
  if (n == 0) t = kiln__recipe_copy(r, t);
  for (int64_t i = 0; i < n && !r->status; i++) {
    const int64_t rest = kiln__recipe_size(t, dim) > 0 ? kiln__recipe_size(t, dim) - 1 : 0;
    kiln_tensor *high = kiln__recipe_narrow(r, t, dim, rest ? 1 : 0, rest);
    kiln_tensor *low = kiln__recipe_narrow(r, t, dim, 0, rest);
    t = kiln__recipe_dtype(t) == KILN_DTYPE_BOOL ? KILN_COOK(r, ne, T(high), T(low))
                                                 : KILN_COOK(r, sub, T(high), T(low), I(1));
  }
  kiln__recipe_give(r, outs, t);
}

/* tensors, dim, num_chunks: each is filled up with zeros to equal chunks along dim, which become
 * rows; then they are joined row by row. */
KILN_RECIPE(_chunk_cat) {
  const kiln_list *list = kiln_arg_list(args, 0);
  const int64_t chunks = kiln_arg_int(args, 2);
  const kiln_ivalue rows = kiln__recipe_tensors(r, 0, NULL);
  if (list->count == 0) KILN_RECIPE_FAIL(r, "_chunk_cat expects a non-empty input tensor list");
  if (chunks < 1) KILN_RECIPE_FAIL(r, "_chunk_cat expects positive num_chunks");
  if (r->status) return;
  const int dim =
      kiln__recipe_dim(r, kiln_arg_int(args, 1), kiln_tensor_rank(list->items[0].u.tensor));
  for (int64_t i = 0; !r->status && i < list->count; i++) {
    kiln_tensor *t = list->items[i].u.tensor;
    int64_t sizes[KILN_MAX_RANK], pad[2 * KILN_MAX_RANK] = {0}, length = 1;
    const int rank = kiln_tensor_rank(t);
    if (rank <= dim || dim + 2 > KILN_MAX_RANK) {
      KILN_RECIPE_FAIL(r, "_chunk_cat expects all tensors to have ndim > dim");
      return;
    }
    const int64_t n = kiln__recipe_size(t, dim), each = n / chunks + (n % chunks != 0);
    if (!kiln_checked_mul_i64(each, chunks, &pad[2 * (rank - dim) - 1])) {
      KILN_RECIPE_FAIL(r, "_chunk_cat: too many chunks");
      return;
    }
    pad[2 * (rank - dim) - 1] -= n;
    t = KILN_COOK(r, constant_pad_nd, T(t), kiln__recipe_ints(r, 2 * (rank - dim), pad), I(0));
    for (int d = 0; d < dim; d++) sizes[d] = kiln__recipe_size(t, d);
    for (int d = dim + 1; d < rank; d++) length *= kiln__recipe_size(t, d);
    sizes[dim] = chunks;
    sizes[dim + 1] = each * length;
    t = kiln__recipe_reshape(r, t, dim + 2, sizes);
    if (t) (void)kiln__recipe_ok(r, kiln_list_push(rows.u.list, kiln_ivalue_retain(T(t))));
  }
  kiln__recipe_give(r, outs, KILN_COOK(r, cat, rows, I(dim + 1)));
}
