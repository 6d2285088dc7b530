/* compose_older.c: older and inner names of common operators, and small compositions: what traces
 * of Python code and of other versions hold. */
#include <math.h>
#include <string.h>

#include "runtime/kernels/recipe.h"

#define SELF kiln_arg_tensor(args, 0)

/* -- Written in place -- */

#define IN_PLACE(name)                                                                           \
  kiln_status *kiln__kernel_##name(kiln_call *call, const kiln_ivalue *args, kiln_ivalue *outs); \
  KILN_KERNEL(name##_inplace) {                                                                  \
    kiln__give(outs, kiln_tensor_retain(SELF));                                                  \
    return kiln__kernel_##name(call, args, outs);                                                \
  }
IN_PLACE(bitwise_and)
IN_PLACE(bitwise_or)
IN_PLACE(bitwise_xor)
IN_PLACE(shift_left)
IN_PLACE(shift_right)
IN_PLACE(float_power)

KILN_KERNEL(give_self) {
  kiln__give(outs, kiln_tensor_retain(SELF));
  return NULL;
}
KILN_KERNEL(give_false) {
  *outs = kiln_bool(false);
  return NULL;
}
/* self, size */
KILN_KERNEL(resize_) {
  int64_t sizes[KILN_MAX_RANK];
  int rank;
  KILN_TRY(kiln__arg_int_list(args, 1, sizes, &rank));
  for (int d = 0; d < rank; d++) {
    if (sizes[d] < 0) {
      return KILN_OP_FAIL("Trying to create tensor with negative dimension %lld",
                          (long long)sizes[d]);
    }
  }
  KILN_TRY(kiln_tensor_resize(SELF, rank, sizes));
  kiln__give(outs, kiln_tensor_retain(SELF));
  return NULL;
}
KILN_KERNEL(resize_as_) {
  const kiln_tensor *model = kiln_arg_tensor(args, 1);
  KILN_TRY(kiln_tensor_resize(SELF, kiln_tensor_rank(model), kiln_tensor_sizes(model)));
  kiln__give(outs, kiln_tensor_retain(SELF));
  return NULL;
}
/* -- set_: self becomes another tensor over the source's storage -- */

static kiln_status *set_to(kiln_tensor *t, const kiln_tensor *source, int rank,
                           const int64_t *sizes, const int64_t *strides, int64_t offset) {
  if (kiln_tensor_dtype(t) != kiln_tensor_dtype(source)) {
    return KILN_OP_FAIL("Could not set tensor of type %s to a tensor of type %s",
                        kiln_dtype_ir_name(kiln_tensor_dtype(source)),
                        kiln_dtype_name(kiln_tensor_dtype(t)));
  }
  if (kiln_tensor_is_undefined(t) || kiln_tensor_is_undefined(source)) {
    return KILN_OP_FAIL("set_: an undefined tensor has no storage");
  }
  return kiln_tensor_set(t, source->storage, kiln_tensor_dtype(t), rank, sizes, strides, offset);
}
/* self: empty, over no storage of anyone's */
KILN_KERNEL(set_) {
  const int64_t none = 0, one = 1;
  kiln_tensor *empty;
  KILN_TRY(kiln_call_tensor(call, kiln_tensor_dtype(SELF), 1, &none, &empty));
  kiln_status *status = set_to(SELF, empty, 1, &none, &one, 0);
  kiln_tensor_release_to(&call->cache, empty);
  if (!status) kiln__give(outs, kiln_tensor_retain(SELF));
  return status;
}
KILN_KERNEL(set_source) {
  const kiln_tensor *source = kiln_arg_tensor(args, 1);
  KILN_TRY(set_to(SELF, source, kiln_tensor_rank(source), kiln_tensor_sizes(source),
                  kiln_tensor_strides(source), source->offset));
  kiln__give(outs, kiln_tensor_retain(SELF));
  return NULL;
}
/* self, source, storage_offset, size, stride */
KILN_KERNEL(set_source_geometry) {
  int64_t sizes[KILN_MAX_RANK], strides[KILN_MAX_RANK];
  int rank, count;
  KILN_TRY(kiln__arg_int_list(args, 3, sizes, &rank));
  KILN_TRY(kiln__arg_int_list(args, 4, strides, &count));
  if (count == 0) kiln_strides_contiguous(rank, sizes, strides);
  if (count != 0 && count != rank) {
    return KILN_OP_FAIL("unequal size length (%d) and stride length (%d)", rank, count);
  }
  KILN_TRY(set_to(SELF, kiln_arg_tensor(args, 1), rank, sizes, strides, kiln_arg_int(args, 2)));
  kiln__give(outs, kiln_tensor_retain(SELF));
  return NULL;
}
/* self, fill_value, wrap: in tall matrices the diagonal may begin again */
KILN_RECIPE(fill_diagonal_) {
  kiln_tensor *t = SELF;
  const int rank = kiln_tensor_rank(t);
  int64_t least = INT64_MAX, step = 0, sizes[1], strides[1];
  if (rank < 2) {
    KILN_RECIPE_FAIL(r, "dimensions must larger than 1");
    return;
  }
  for (int d = 0; d < rank; d++) {
    if (kiln_tensor_sizes(t)[d] < least) least = kiln_tensor_sizes(t)[d];
    step += kiln_tensor_strides(t)[d];
    if (rank > 2 && kiln_tensor_sizes(t)[d] != kiln_tensor_sizes(t)[0]) {
      KILN_RECIPE_FAIL(r, "all dimensions of input must be of equal length");
      return;
    }
  }
  sizes[0] = least;
  strides[0] = step;
  kiln_tensor *line = KILN_COOK(r, as_strided, T(t), kiln__recipe_ints(r, 1, sizes),
                                kiln__recipe_ints(r, 1, strides), NONE);
  KILN_COOK(r, fill_, T(line), args[1]);
  const int64_t rows = kiln_tensor_sizes(t)[0], columns = kiln_tensor_sizes(t)[1];
  const int64_t begin = columns + 1;
  if (kiln_arg_bool(args, 2) && rank == 2 && rows > begin) {
    for (int64_t at = begin; at < rows && !r->status; at += begin) {
      kiln_tensor *rest = kiln__recipe_narrow(r, t, 0, at, rows - at);
      kiln_tensor *more = KILN_COOK(r, diagonal, T(rest), I(0), I(0), I(1));
      KILN_COOK(r, fill_, T(more), args[1]);
    }
  }
  if (!r->status) kiln__give(outs, kiln_tensor_retain(t));
}

/* -- New tensors -- */

/* self, value: a number or a tensor of no dimensions */
KILN_RECIPE(fill) {
  kiln_ivalue value = args[1];
  if (value.tag == KILN_TAG_TENSOR && kiln_tensor_rank(value.u.tensor) != 0) {
    KILN_RECIPE_FAIL(r,
                     "fill_ only supports 0-dimension value tensor but got tensor with %d "
                     "dimensions.",
                     kiln_tensor_rank(value.u.tensor));
    return;
  }
  kiln_tensor *t = KILN_COOK(r, zeros_like, T(SELF), NONE, NONE, NONE, NONE, NONE);
  if (value.tag == KILN_TAG_TENSOR)
    KILN_COOK(r, copy_, T(t), value, B(false));
  else
    KILN_COOK(r, fill_, T(t), value);
  kiln__recipe_give(r, outs, t);
}
KILN_RECIPE(zero) {
  kiln__recipe_give(r, outs, KILN_COOK(r, zeros_like, T(SELF), NONE, NONE, NONE, NONE, NONE));
}
#define CAST(name, dtype) \
  KILN_RECIPE(name) { kiln__recipe_give(r, outs, kiln__recipe_to(r, SELF, dtype)); }
CAST(_cast_Byte, KILN_DTYPE_U8)
CAST(_cast_Char, KILN_DTYPE_I8)
CAST(_cast_Short, KILN_DTYPE_I16)
CAST(_cast_Int, KILN_DTYPE_I32)
CAST(_cast_Long, KILN_DTYPE_I64)
CAST(_cast_Half, KILN_DTYPE_F16)
CAST(_cast_Float, KILN_DTYPE_F32)
CAST(_cast_Double, KILN_DTYPE_F64)
KILN_RECIPE(_shape_as_tensor) {
  const int64_t rank = kiln_tensor_rank(SELF);
  kiln_tensor *out;
  int64_t *to = kiln__recipe_new(r, KILN_DTYPE_I64, 1, &rank, &out);
  if (to) memcpy(to, kiln_tensor_sizes(SELF), sizeof *to * (size_t)rank);
  kiln__recipe_give(r, outs, out);
}
KILN_RECIPE(_reshape_from_tensor) {
  kiln_tensor *shape = kiln_arg_tensor(args, 1), *dense;
  const int64_t *sizes = kiln__recipe_read(r, shape, KILN_DTYPE_I64, &dense);
  if (!r->status && (kiln_tensor_rank(shape) != 1 || shape->numel > KILN_MAX_RANK)) {
    KILN_RECIPE_FAIL(r, "_reshape_from_tensor: shape must be a vector");
  }
  if (r->status) return;
  const kiln_ivalue list = kiln__recipe_ints(r, (int)shape->numel, sizes);
  kiln__recipe_give(r, outs, KILN_COOK(r, reshape, T(SELF), list));
}
KILN_KERNEL(is_nonzero) {
  if (SELF->numel != 1) {
    return KILN_OP_FAIL("Boolean value of Tensor with %s is ambiguous",
                        SELF->numel ? "more than one value" : "no values");
  }
  double re, im;
  KILN_TRY(kiln_tensor_item_c128(SELF, &re, &im));
  *outs = kiln_bool(re != 0 || im != 0);
  return NULL;
}
/* x, N, increasing */
KILN_RECIPE(vander) {
  kiln_tensor *t = SELF;
  if (kiln_tensor_rank(t) != 1) {
    KILN_RECIPE_FAIL(r, "x must be a one-dimensional tensor.");
    return;
  }
  const int64_t n = kiln_arg_int_or(args, 1, t->numel);
  const kiln_dtype dtype = kiln_tensor_dtype(t);
  if (n < 0) {
    KILN_RECIPE_FAIL(r, "N must be non-negative.");
    return;
  }
  if (kiln_dtype_is_int(dtype, true)) t = kiln__recipe_to(r, t, KILN_DTYPE_I64);
  const int64_t sizes[2] = {kiln__recipe_numel(t), n};
  kiln_tensor *out = KILN_COOK(r, ones, kiln__recipe_ints(r, 2, sizes), I(kiln__recipe_dtype(t)),
                               NONE, NONE, NONE);
  if (n > 1) {
    kiln_tensor *rest = kiln__recipe_narrow(r, out, 1, 1, n - 1);
    KILN_COOK(r, copy_, T(rest), T(KILN_COOK(r, unsqueeze, T(t), I(1))), B(false));
    KILN_COOK(r, copy_, T(rest), T(KILN_COOK(r, cumprod, T(rest), I(1), NONE)), B(false));
  }
  if (!kiln_arg_bool(args, 2)) out = KILN_COOK(r, flip, T(out), INTS(1));
  kiln__recipe_give(r, outs, out);
}

/* -- Several tensors -- */

/* Tensor[] matrices */
KILN_RECIPE(chain_matmul) {
  const kiln_list *list = kiln_arg_list(args, 0);
  if (list->count == 0) {
    KILN_RECIPE_FAIL(r, "chain_matmul(): Expected one or more matrices");
    return;
  }
  kiln_tensor *t = list->items[0].u.tensor;
  for (int64_t i = 0; i < list->count; i++) {
    if (kiln_tensor_rank(list->items[i].u.tensor) == 2) continue;
    KILN_RECIPE_FAIL(r, "Tensor dimension is %d, expected 2 instead.",
                     kiln_tensor_rank(list->items[i].u.tensor));
    return;
  }
  if (list->count == 1) {
    kiln__give(outs, kiln_tensor_retain(t));
    return;
  }
  for (int64_t i = 1; i < list->count; i++) t = KILN_COOK(r, mm, T(t), list->items[i]);
  kiln__recipe_give(r, outs, t);
}
/* sequences, batch_first, padding_value, padding_side */
KILN_RECIPE(pad_sequence) {
  const kiln_list *list = kiln_arg_list(args, 0);
  const bool first = kiln_arg_bool(args, 1), left = kiln_str_is(kiln_arg_str(args, 3), "left");
  int64_t sizes[KILN_MAX_RANK + 1], longest = 0;
  if (!left && !kiln_str_is(kiln_arg_str(args, 3), "right")) {
    KILN_RECIPE_FAIL(r,
                     "Expected padding_side to be one of left or right, but got " KILN_STR_FMT ".",
                     KILN_STR_ARG(kiln_arg_str(args, 3)));
    return;
  }
  if (list->count == 0) {
    KILN_RECIPE_FAIL(r, "received an empty list of sequences");
    return;
  }
  const kiln_tensor *model = list->items[0].u.tensor;
  const int rank = kiln_tensor_rank(model);
  for (int64_t i = 0; i < list->count; i++) {
    const kiln_tensor *t = list->items[i].u.tensor;
    if (kiln_tensor_rank(t) != rank || rank == 0 || rank >= KILN_MAX_RANK) {
      KILN_RECIPE_FAIL(r, "pad_sequence: sequences must have the same number of dimensions, at "
                          "least one");
      return;
    }
    if (kiln_tensor_sizes(t)[0] > longest) longest = kiln_tensor_sizes(t)[0];
  }
  sizes[first ? 0 : 1] = list->count;
  sizes[first ? 1 : 0] = longest;
  memcpy(sizes + 2, kiln_tensor_sizes(model) + 1, sizeof *sizes * (size_t)(rank - 1));
  kiln_tensor *out = KILN_COOK(r, full, kiln__recipe_ints(r, rank + 1, sizes), args[2],
                               I(kiln_tensor_dtype(model)), NONE, NONE, NONE);
  for (int64_t i = 0; i < list->count && !r->status; i++) {
    kiln_tensor *t = list->items[i].u.tensor;
    kiln_tensor *place = KILN_COOK(r, select, T(out), I(first ? 0 : 1), I(i));
    const int64_t n = kiln_tensor_sizes(t)[0];
    place = kiln__recipe_narrow(r, place, 0, left ? longest - n : 0, n);
    KILN_COOK(r, copy_, T(place), T(t), B(false));
  }
  kiln__recipe_give(r, outs, out);
}
KILN_RECIPE(flatten_dense_tensors) {
  const kiln_list *list = kiln_arg_list(args, 0);
  kiln_tensor *flat[64];
  if (list->count > 64) {
    KILN_RECIPE_FAIL(r, "flatten_dense_tensors: more than 64 tensors");
    return;
  }
  for (int64_t i = 0; i < list->count; i++) {
    const int64_t n = list->items[i].u.tensor->numel;
    flat[i] = kiln__recipe_reshape(r, list->items[i].u.tensor, 1, &n);
    if (r->status) return;
  }
  kiln__recipe_give(r, outs, KILN_COOK(r, cat, kiln__recipe_tensors(r, list->count, flat), I(0)));
}
/* self, sorted, return_inverse -> values, inverse */
KILN_RECIPE(_unique) {
  kiln_tensor *both[3];
  kiln__recipe_cook_many(r, kiln__kernel__unique2,
                         (kiln_ivalue[]){args[0], args[1], args[2], B(false)}, 3, both);
  kiln__recipe_give(r, &outs[0], both[0]);
  kiln__recipe_give(r, &outs[1], both[1]);
}

/* -- Norms -- */

/* v, pow, dim: over all other dimensions, which stay as 1; dim -1: of all */
static kiln_tensor *norm_except(kiln__recipe *r, kiln_tensor *v, double p, int64_t dim) {
  const int rank = kiln_tensor_rank(v);
  int64_t others[KILN_MAX_RANK];
  int count = 0;
  if (dim == -1) return KILN_COOK(r, linalg_vector_norm, T(v), F(p), NONE, B(false), NONE);
  if (dim < 0 || dim >= rank) {
    KILN_RECIPE_FAIL(r,
                     "Dimension out of range (expected to be in range of [%d, %d], but got %lld)",
                     -rank, rank - 1, (long long)dim);
    return NULL;
  }
  for (int d = 0; d < rank; d++) {
    if (d != dim) others[count++] = d;
  }
  if (count == 0) return KILN_COOK(r, abs, T(v));
  return KILN_COOK(r, linalg_vector_norm, T(v), F(p), kiln__recipe_ints(r, count, others), B(true),
                   NONE);
}
KILN_RECIPE(norm_except_dim) {
  kiln__recipe_give(r, outs,
                    norm_except(r, SELF, (double)kiln_arg_int(args, 1), kiln_arg_int(args, 2)));
}
/* v, g, dim -> w, norms */
KILN_RECIPE(_weight_norm_interface) {
  kiln_tensor *norms = norm_except(r, SELF, 2, kiln_arg_int(args, 2));
  kiln_tensor *scale = KILN_COOK(r, div, args[1], T(norms));
  kiln__recipe_give(r, &outs[0], KILN_COOK(r, mul, args[0], T(scale)));
  kiln__recipe_give(r, &outs[1], norms);
}
/* self, [dim,] keepdim */
KILN_RECIPE(nuclear_norm) {
  const bool all = r->call->kernel->arg_count == 2;
  const kiln_ivalue dims = all ? INTS(0, 1) : args[1];
  if (all && kiln_tensor_rank(SELF) != 2) {
    KILN_RECIPE_FAIL(r,
                     "Expected a tensor with 2 dimensions, but got a tensor with %d dimensions "
                     "instead.",
                     kiln_tensor_rank(SELF));
    return;
  }
  kiln__recipe_give(r, outs,
                    KILN_COOK(r, linalg_matrix_norm, args[0], kiln__recipe_text(r, "nuc"), dims,
                              args[all ? 1 : 2], NONE));
}
/* self, ind */
KILN_RECIPE(linalg_tensorinv) {
  const int rank = kiln_tensor_rank(SELF);
  const int64_t ind = kiln_arg_int(args, 1), *sizes = kiln_tensor_sizes(SELF);
  int64_t square[2] = {1, 1}, turned[KILN_MAX_RANK];
  if (ind <= 0) {
    KILN_RECIPE_FAIL(r, "Expected a strictly positive integer for 'ind', but got %lld",
                     (long long)ind);
    return;
  }
  for (int d = 0; d < rank; d++) square[d >= ind] *= sizes[d];
  if (square[0] != square[1] || ind > rank) {
    KILN_RECIPE_FAIL(r,
                     "Expected self to satisfy the requirement prod(self.shape[ind:]) == "
                     "prod(self.shape[:ind]), but got %lld != %lld",
                     (long long)square[1], (long long)square[0]);
    return;
  }
  for (int d = 0; d < rank; d++) turned[d] = sizes[(d + ind) % rank];
  kiln_tensor *x = KILN_COOK(r, linalg_inv, T(kiln__recipe_reshape(r, SELF, 2, square)));
  kiln__recipe_give(r, outs, kiln__recipe_reshape(r, x, rank, turned));
}
/* A, B, dims */
KILN_RECIPE(linalg_tensorsolve) {
  kiln_tensor *a = SELF, *b = kiln_arg_tensor(args, 1);
  const int rank = kiln_tensor_rank(a), b_rank = kiln_tensor_rank(b);
  int64_t dims[KILN_MAX_RANK], order[KILN_MAX_RANK], sizes[KILN_MAX_RANK];
  int count = 0, n = 0;
  if (!kiln__recipe_ok(r, kiln__arg_int_list(args, 2, dims, &count))) return;
  for (int d = 0; d < rank; d++) {
    bool moved = false;
    for (int k = 0; k < count; k++) moved |= kiln__recipe_dim(r, dims[k], rank) == d;
    if (!moved) order[n++] = d;
  }
  for (int k = 0; k < count && n < rank; k++) order[n++] = kiln__recipe_dim(r, dims[k], rank);
  if (r->status) return;
  if (count > 0) a = KILN_COOK(r, permute, T(a), kiln__recipe_ints(r, rank, order));
  if (!a || b_rank > rank) {
    KILN_RECIPE_FAIL(r, "linalg.tensorsolve: B has more dimensions than A");
    return;
  }
  const int left = rank - b_rank;
  int64_t product = 1;
  for (int d = 0; d < left; d++) product *= sizes[d] = kiln_tensor_sizes(a)[b_rank + d];
  if (product != b->numel) {
    KILN_RECIPE_FAIL(r,
                     "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
                     "prod(self.shape[:other.ndim]), but got %lld != %lld",
                     (long long)product, (long long)b->numel);
    return;
  }
  const int64_t square[2] = {product, product};
  kiln_tensor *flat = kiln__recipe_reshape(r, b, 1, &product);
  kiln_tensor *x =
      KILN_COOK(r, linalg_solve, T(kiln__recipe_reshape(r, a, 2, square)), T(flat), B(true));
  kiln__recipe_give(r, outs, kiln__recipe_reshape(r, x, left, sizes));
}

/* -- Layers by their inner names -- */

/* self -> output, buffer exp(-|x|) */
KILN_RECIPE(log_sigmoid_forward) {
  kiln_tensor *size = KILN_COOK(r, abs, args[0]);
  kiln__recipe_give(r, &outs[0], KILN_COOK(r, log_sigmoid, args[0]));
  kiln__recipe_give(r, &outs[1], KILN_COOK(r, exp, T(KILN_COOK(r, neg, T(size)))));
}
KILN_RECIPE(_prelu_kernel) {
  kiln_tensor *above = KILN_COOK(r, gt, args[0], I(0));
  kiln__recipe_give(r, outs,
                    KILN_COOK(r, where, T(above), args[0], T(KILN_COOK(r, mul, args[0], args[1]))));
}
/* Rows in which all is masked give zeros. */
static kiln_tensor *safe_softmax(kiln__recipe *r, kiln_tensor *t, kiln_ivalue dim,
                                 kiln_ivalue dtype) {
  kiln_tensor *y = KILN_COOK(r, softmax, T(t), dim, dtype);
  const kiln_ivalue low = F(-INFINITY);
  kiln_tensor *masked = KILN_COOK(r, eq, T(t), low);
  if (kiln__recipe_numel(t) == 0) return y;
  kiln_tensor *lost = KILN_COOK(r, amin, T(masked), INTS(dim.u.i), B(true));
  return KILN_COOK(r, masked_fill, T(y), T(lost), F(0));
}
/* self, dim, dtype */
KILN_RECIPE(_safe_softmax) { kiln__recipe_give(r, outs, safe_softmax(r, SELF, args[1], args[2])); }
/* self, mask (true: left out), dim, mask_type: 0 (L, L), 1 (B, L), 2 as self */
KILN_RECIPE(_masked_softmax) {
  kiln_tensor *mask = kiln_arg_tensor(args, 1);
  const int64_t kind = kiln_arg_int_or(args, 3, 2);
  if (kiln_tensor_dtype(mask) != KILN_DTYPE_BOOL) {
    KILN_RECIPE_FAIL(r, "Mask should be a boolean tensor");
    return;
  }
  if (kind == 1 && kiln_tensor_rank(mask) == 2 && kiln_tensor_rank(SELF) == 4) {
    const int64_t *sizes = kiln_tensor_sizes(mask), wide[4] = {sizes[0], 1, 1, sizes[1]};
    mask = kiln__recipe_reshape(r, mask, 4, wide);
  }
  kiln_tensor *t = KILN_COOK(r, masked_fill, args[0], T(mask), F(-INFINITY));
  if (t && (kiln_tensor_rank(t) != kiln_tensor_rank(SELF) || t->numel != SELF->numel)) {
    KILN_RECIPE_FAIL(r, "Mask shape should match input. mask: %d dimensions",
                     kiln_tensor_rank(mask));
  }
  kiln__recipe_give(r, outs, safe_softmax(r, t, I(kiln_arg_int_or(args, 2, -1)), NONE));
}
/* -> output, mean, inverse deviation, reserve, which implementation */
KILN_RECIPE(_batch_norm_impl_index) {
  kiln_tensor *parts[3], *none;
  const int64_t zero = 0;
  kiln__recipe_cook_many(r, kiln__kernel_native_batch_norm, args, 3, parts);
  (void)kiln__recipe_new(r, KILN_DTYPE_U8, 1, &zero, &none);
  for (int i = 0; i < 3; i++) kiln__recipe_give(r, &outs[i], parts[i]);
  kiln__recipe_give(r, &outs[3], none);
  if (!r->status) outs[4] = kiln_int(0);
}
/* input, weight, bias, training, momentum, eps */
KILN_RECIPE(_native_batch_norm_legit_no_stats) {
  kiln_tensor *parts[3];
  const kiln_ivalue all[] = {args[0], args[1], args[2], NONE, NONE, args[3], args[4], args[5]};
  kiln__recipe_cook_many(r, kiln__kernel_native_batch_norm, all, 3, parts);
  for (int i = 0; i < 3; i++) kiln__recipe_give(r, &outs[i], parts[i]);
}
/* input, weight, bias, running_mean, running_var, momentum, eps */
KILN_RECIPE(_native_batch_norm_legit_no_training) {
  kiln_tensor *parts[3];
  const kiln_ivalue all[] = {args[0], args[1],  args[2], args[3],
                             args[4], B(false), args[5], args[6]};
  kiln__recipe_cook_many(r, kiln__kernel_native_batch_norm, all, 3, parts);
  for (int i = 0; i < 3; i++) kiln__recipe_give(r, &outs[i], parts[i]);
}
/* input, weight, bias, running_mean, running_var, momentum, eps -> three and a reserve */
static void norm_with_reserve(kiln__recipe *r, const kiln_ivalue *args, bool training,
                              kiln_ivalue *outs) {
  kiln_tensor *parts[3], *none;
  const int64_t zero = 0;
  const kiln_ivalue all[] = {args[0], args[1],     args[2], args[3],
                             args[4], B(training), args[5], args[6]};
  kiln__recipe_cook_many(r, kiln__kernel_native_batch_norm, all, 3, parts);
  (void)kiln__recipe_new(r, KILN_DTYPE_U8, 1, &zero, &none);
  for (int i = 0; i < 3; i++) kiln__recipe_give(r, &outs[i], parts[i]);
  kiln__recipe_give(r, &outs[3], none);
}
KILN_RECIPE(_batch_norm_with_update) { norm_with_reserve(r, args, true, outs); }
KILN_RECIPE(_batch_norm_no_update) { norm_with_reserve(r, args, false, outs); }
/* query, key, value, dropout_p, is_causal, attn_mask, scale -> output, logsumexp */
KILN_RECIPE(_scaled_dot_product_flash_attention_for_cpu) {
  const kiln_dtype own = kiln_tensor_dtype(SELF);
  const kiln_dtype wide = own == KILN_DTYPE_F64 ? own : KILN_DTYPE_F32;
  kiln_tensor *q = kiln__recipe_to(r, SELF, wide);
  kiln_tensor *k = kiln__recipe_to(r, kiln_arg_tensor(args, 1), wide);
  kiln_tensor *v = kiln__recipe_to(r, kiln_arg_tensor(args, 2), wide);
  kiln_tensor *mask = kiln_arg_tensor_opt(args, 5);
  if (kiln_tensor_rank(SELF) != 4 || kiln__recipe_rank(k) != 4 || kiln__recipe_rank(v) != 4) {
    KILN_RECIPE_FAIL(r, "scaled_dot_product_attention_flash_attention: Accept only 4 dims inputs "
                        "shape of {B, H, T, K}");
  } else if (kiln_arg_float(args, 3) != 0) {
    KILN_RECIPE_FAIL(r, "scaled_dot_product_attention_flash_attention: Currently do not support "
                        "dropout > 0");
  } else if (mask && kiln_arg_bool(args, 4)) {
    KILN_RECIPE_FAIL(r, "scaled_dot_product_attention_flash_attention: attn_mask and is_causal are "
                        "both set");
  }
  const double size = (double)kiln__recipe_size(q, -1);
  const double scale = kiln_arg_is_none(args, 6) ? 1 / sqrt(size) : kiln_arg_float(args, 6);
  kiln_tensor *turned = KILN_COOK(r, transpose, T(k), I(-2), I(-1));
  kiln_tensor *w = KILN_COOK(r, matmul, T(KILN_COOK(r, mul, T(q), F(scale))), T(turned));
  if (kiln_arg_bool(args, 4)) {
    kiln_tensor *one = KILN_COOK(r, ones, INTS(kiln__recipe_size(q, -2), kiln__recipe_size(k, -2)),
                                 I(KILN_DTYPE_BOOL), NONE, NONE, NONE);
    mask = KILN_COOK(r, tril, T(one), I(0));
  }
  if (mask && kiln_tensor_dtype(mask) == KILN_DTYPE_BOOL) {
    w = KILN_COOK(r, masked_fill, T(w), T(KILN_COOK(r, logical_not, T(mask))), F(-INFINITY));
  } else if (mask) {
    w = KILN_COOK(r, add, T(w), T(mask), I(1));
  }
  kiln__recipe_give(r, &outs[1], KILN_COOK(r, logsumexp, T(w), INTS(-1), B(false)));
  w = KILN_COOK(r, matmul, T(KILN_COOK(r, softmax, T(w), I(-1), NONE)), T(v));
  kiln__recipe_give(r, &outs[0], kiln__recipe_to(r, w, own));
}
/* query, key, value, attn_mask, dropout_p, (need_attn_weights,) is_causal -> output, weights */
KILN_RECIPE(_scaled_dot_product_attention) {
  kiln_tensor *q = SELF, *k = kiln_arg_tensor(args, 1), *mask = kiln_arg_tensor_opt(args, 3);
  const double size = (double)kiln__recipe_size(q, -1);
  if (kiln_arg_bool(args, 6) && mask) {
    KILN_RECIPE_FAIL(r, "_scaled_dot_product_attention: Explicit attn_mask should not be set when "
                        "is_causal=True");
    return;
  }
  if (kiln_arg_bool(args, 6)) {
    kiln_tensor *one = KILN_COOK(r, ones, INTS(kiln__recipe_size(q, -2), kiln__recipe_size(k, -2)),
                                 I(KILN_DTYPE_BOOL), NONE, NONE, NONE);
    mask = KILN_COOK(r, tril, T(one), I(0));
  }
  kiln_tensor *scaled = KILN_COOK(r, mul, T(q), F(1 / sqrt(size)));
  kiln_tensor *turned = KILN_COOK(r, transpose, T(k), I(-2), I(-1));
  kiln_tensor *w = KILN_COOK(r, matmul, T(scaled), T(turned));
  if (mask && kiln_tensor_dtype(mask) == KILN_DTYPE_BOOL) {
    w = KILN_COOK(r, masked_fill, T(w), T(KILN_COOK(r, logical_not, T(mask))), F(-INFINITY));
  } else if (mask) {
    w = KILN_COOK(r, add, T(w), T(mask), I(1));
  }
  w = KILN_COOK(r, softmax, T(w), I(-1), NONE);
  if (kiln_arg_float(args, 4) > 0) w = KILN_COOK(r, dropout, T(w), args[4], B(true));
  kiln__recipe_give(r, &outs[0], KILN_COOK(r, matmul, T(w), args[2]));
  kiln__recipe_give(r, &outs[1], w);
}

/* -- Reduction over segments -- */

/* data, reduce, lengths, indices, offsets, axis, unsafe, initial */
KILN_RECIPE(segment_reduce) {
  kiln_tensor *t = SELF, *lengths = kiln_arg_tensor_opt(args, 2), *in, *dense, *out;
  kiln_tensor *offsets = kiln_arg_tensor_opt(args, 4);
  const kiln_str how = kiln_arg_str(args, 1);
  const bool is_max = kiln_str_is(how, "max"), is_min = kiln_str_is(how, "min");
  const bool is_mean = kiln_str_is(how, "mean"), is_prod = kiln_str_is(how, "prod");
  const int rank = kiln_tensor_rank(t);
  kiln_tensor *ends = lengths ? lengths : offsets;
  int64_t sizes[KILN_MAX_RANK], axis = kiln_arg_int(args, 5);
  if (axis < 0) axis += rank;
  if (!ends || kiln_tensor_rank(ends) < 1 || axis < 0 || axis >= rank ||
      axis != kiln_tensor_rank(ends) - 1 || !kiln_dtype_is_float(kiln_tensor_dtype(t))) {
    KILN_RECIPE_FAIL(r, "segment_reduce(): expected float data, and lengths or offsets whose last "
                        "dimension is the axis");
    return;
  }
  if (!is_max && !is_min && !is_mean && !is_prod && !kiln_str_is(how, "sum")) {
    KILN_RECIPE_FAIL(r, "reduction type " KILN_STR_FMT " is not supported", KILN_STR_ARG(how));
    return;
  }
  const bool given = args[7].tag != KILN_TAG_NONE;
  const double initial = given    ? kiln__number(args[7]).f
                         : is_max ? -INFINITY
                         : is_min ? INFINITY
                                  : is_prod;
  const int64_t segments = kiln__recipe_size(ends, -1) - (lengths ? 0 : 1);
  int64_t outer = 1, inner = 1;
  memcpy(sizes, kiln_tensor_sizes(t), sizeof *sizes * (size_t)rank);
  for (int d = 0; d < axis; d++) {
    outer *= sizes[d];
    if (sizes[d] != kiln_tensor_sizes(ends)[d])
      KILN_RECIPE_FAIL(r, "Expected all dimensions of data before the axis to match lengths");
  }
  for (int64_t d = axis + 1; d < rank; d++) inner *= sizes[d];
  const int64_t n = sizes[axis];
  sizes[axis] = segments < 0 ? 0 : segments;
  const double *x = kiln__recipe_read(r, t, KILN_DTYPE_F64, &in);
  const int64_t *end = kiln__recipe_read(r, ends, KILN_DTYPE_I64, &dense);
  double *to = kiln__recipe_new(r, KILN_DTYPE_F64, rank, sizes, &out);
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t o = 0; !r->status && o < outer; o++) {
    int64_t at = 0;
    for (int64_t s = 0; s < segments; s++) {
      const int64_t *own = end + o * (segments + !lengths) + s;
      const int64_t begin = lengths ? at : own[0], stop = lengths ? at + own[0] : own[1];
      if (begin < 0 || stop < begin || stop > n) {
        KILN_RECIPE_FAIL(r, "Expected all rows of lengths along axis to sum to data.size(axis)");
        return;
      }
      for (int64_t c = 0; c < inner && !kiln_budget_spent(&left, 4); c++) {
        double sum = initial;
        for (int64_t i = begin; i < stop && !kiln_budget_spent(&left, 2); i++) {
          const double v = x[(o * n + i) * inner + c];
          if (is_max) sum = v != v || v > sum ? v : sum;
          if (is_min) sum = v != v || v < sum ? v : sum;
          if (is_prod) sum *= v;
          if (!is_max && !is_min && !is_prod) sum += v;
        }
        if (is_mean && stop > begin) sum /= (double)(stop - begin);
        if (is_mean && stop == begin && !given) sum = NAN;
        to[(o * segments + s) * inner + c] = sum;
      }
      at = stop;
    }
    if (lengths && at != n && !kiln_arg_bool(args, 6)) {
      KILN_RECIPE_FAIL(r, "Expected all rows of lengths along axis to sum to "
                          "data.size(lengths.dim()-1) when !unsafe.");
    }
  }
  kiln__recipe_give(r, outs, kiln__recipe_to(r, out, kiln_tensor_dtype(t)));
}
