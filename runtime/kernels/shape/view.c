/* view.c: operators whose result shares the argument's storage. */
#include "runtime/kernels/shape/view.h"

#include <string.h>

#include "runtime/kernels/pointwise/iter.h"
#include "runtime/strides.h"

/* -- The geometry -- */

static kiln_status *view_of(kiln_call *call, const kiln_tensor *t, int rank, const int64_t *sizes,
                            const int64_t *strides, int64_t offset, kiln_tensor **out) {
  return kiln_tensor_view(&call->cache, t, rank, sizes, strides, offset, out);
}

/* A composite's arithmetic may ask for a dimension that a tensor of rank 0 does not have. */
static kiln_status *no_dim(int dim, int rank) {
  if (rank == 0) {
    return KILN_OP_FAIL("Dimension specified as %d but tensor has no dimensions", dim);
  }
  return KILN_OP_FAIL("Dimension out of range (expected to be in range of [0, %d], but got %d)",
                      rank - 1, dim);
}
static bool has_dim(int dim, int rank) { return (unsigned)dim < (unsigned)rank; }
/* Where element `index` of a dimension is; what wraps is refused with the view. */
static int64_t offset_at(const kiln_tensor *t, int dim, int64_t index) {
  return (int64_t)((uint64_t)t->offset + (uint64_t)index * (uint64_t)kiln_tensor_strides(t)[dim]);
}
/* The stride of a new dimension before one of these: of no effect where the product wraps, which it
 * does in tensors without elements only. */
static int64_t stride_over(int64_t size, int64_t stride) {
  return (int64_t)((uint64_t)size * (uint64_t)stride & INT64_MAX);
}

kiln_status *kiln__narrow(kiln_call *call, kiln_tensor *t, int dim, int64_t start, int64_t length,
                          kiln_tensor **out) {
  int rank = kiln_tensor_rank(t);
  if (!has_dim(dim, rank)) return no_dim(dim, rank);
  int64_t sizes[KILN_MAX_RANK];
  memcpy(sizes, kiln_tensor_sizes(t), sizeof(int64_t) * (size_t)rank);
  sizes[dim] = length;
  return view_of(call, t, rank, sizes, kiln_tensor_strides(t), offset_at(t, dim, start), out);
}

kiln_status *kiln__select(kiln_call *call, kiln_tensor *t, int dim, int64_t index,
                          kiln_tensor **out) {
  int rank = kiln_tensor_rank(t), n = 0;
  if (!has_dim(dim, rank)) return no_dim(dim, rank);
  int64_t sizes[KILN_MAX_RANK], strides[KILN_MAX_RANK];
  for (int i = 0; i < rank; i++) {
    if (i == dim) continue;
    sizes[n] = kiln_tensor_sizes(t)[i];
    strides[n++] = kiln_tensor_strides(t)[i];
  }
  return view_of(call, t, n, sizes, strides, offset_at(t, dim, index), out);
}

kiln_status *kiln__unsqueeze(kiln_call *call, kiln_tensor *t, int dim, kiln_tensor **out) {
  int rank = kiln_tensor_rank(t);
  int64_t sizes[KILN_MAX_RANK + 1], strides[KILN_MAX_RANK + 1];
  if (rank >= KILN_MAX_RANK)
    return KILN_OP_FAIL("tensors of more than %d dimensions are not supported", KILN_MAX_RANK);
  if (!has_dim(dim, rank + 1)) return no_dim(dim, rank + 1);
  for (int i = 0; i < rank; i++) {
    sizes[i + (i >= dim)] = kiln_tensor_sizes(t)[i];
    strides[i + (i >= dim)] = kiln_tensor_strides(t)[i];
  }
  sizes[dim] = 1;
  strides[dim] =
      dim < rank ? stride_over(kiln_tensor_sizes(t)[dim], kiln_tensor_strides(t)[dim]) : 1;
  return view_of(call, t, rank + 1, sizes, strides, t->offset, out);
}

kiln_status *kiln__permute(kiln_call *call, kiln_tensor *t, const int *dims, kiln_tensor **out) {
  int rank = kiln_tensor_rank(t);
  int64_t sizes[KILN_MAX_RANK], strides[KILN_MAX_RANK];
  for (int i = 0; i < rank; i++) {
    if (!has_dim(dims[i], rank)) return no_dim(dims[i], rank);
    sizes[i] = kiln_tensor_sizes(t)[dims[i]];
    strides[i] = kiln_tensor_strides(t)[dims[i]];
  }
  return view_of(call, t, rank, sizes, strides, t->offset, out);
}

kiln_status *kiln__transpose(kiln_call *call, kiln_tensor *t, int a, int b, kiln_tensor **out) {
  int dims[KILN_MAX_RANK];
  for (int i = 0; i < kiln_tensor_rank(t); i++) dims[i] = i == a ? b : i == b ? a : i;
  return kiln__permute(call, t, dims, out);
}

kiln_status *kiln__expand(kiln_call *call, kiln_tensor *t, int rank, const int64_t *sizes,
                          kiln_tensor **out) {
  int own = kiln_tensor_rank(t);
  int64_t result[KILN_MAX_RANK], strides[KILN_MAX_RANK];
  if (rank < own) {
    return KILN_OP_FAIL(
        "expand(torch.%sTensor{%s}, size=%s): the number of sizes provided (%d) must "
        "be greater or equal to the number of dimensions in the tensor (%d)",
        kiln_dtype_ir_name(kiln_tensor_dtype(t)), kiln__sizes_of(t).text,
        kiln__sizes(rank, sizes).text, rank, own);
  }
  for (int i = rank - 1; i >= 0; i--) {
    int from = i - (rank - own);
    int64_t size = from >= 0 ? kiln_tensor_sizes(t)[from] : 1;
    strides[i] = from >= 0      ? kiln_tensor_strides(t)[from]
                 : i + 1 < rank ? stride_over(result[i + 1], strides[i + 1])
                                : 1;
    result[i] = sizes[i];
    if (result[i] == -1) {
      if (from < 0) {
        return KILN_OP_FAIL("The expanded size of the tensor (-1) isn't allowed in a leading, "
                            "non-existing dimension %d",
                            i);
      }
      result[i] = size;
    }
    if (size != result[i]) {
      if (size != 1) {
        return KILN_OP_FAIL("The expanded size of the tensor (%lld) must match the existing size "
                            "(%lld) at non-singleton dimension %d.  Target sizes: %s.  Tensor "
                            "sizes: %s",
                            (long long)result[i], (long long)size, i, kiln__sizes(rank, sizes).text,
                            kiln__sizes_of(t).text);
      }
      strides[i] = 0;
    }
  }
  return view_of(call, t, rank, result, strides, t->offset, out);
}

kiln_status *kiln__infer_size(int64_t numel, int rank, const int64_t *sizes, int64_t *out_sizes) {
  int64_t known = 1;
  int unknown = -1;
  bool bad = false;
  for (int i = 0; i < rank; i++) {
    out_sizes[i] = sizes[i];
    if (sizes[i] == -1) {
      if (unknown >= 0) return KILN_OP_FAIL("only one dimension can be inferred");
      unknown = i;
    } else if (sizes[i] < 0) {
      return KILN_OP_FAIL("invalid shape dimension %lld", (long long)sizes[i]);
    } else if (!kiln_checked_mul_i64(known, sizes[i], &known)) {
      bad = true;
    }
  }
  if (!bad && unknown >= 0) {
    if (known == 0) {
      if (numel == 0) {
        return KILN_OP_FAIL("cannot reshape tensor of 0 elements into shape with unspecified "
                            "dimension size -1, because it can be any value and is ambiguous");
      }
      bad = true;
    } else if (numel % known != 0) {
      bad = true;
    } else {
      out_sizes[unknown] = numel / known;
    }
  } else if (known != numel) {
    bad = true;
  }
  if (!bad) return NULL;
  char shape[512];
  kiln_sizes_print(rank, sizes, shape, sizeof shape);
  return KILN_OP_FAIL("shape '%s' is invalid for input of size %lld", shape, (long long)numel);
}

bool kiln__view_strides(const kiln_tensor *t, int rank, const int64_t *sizes,
                        int64_t *out_strides) {
  const kiln_strided from = kiln_tensor_strided(t);
  return kiln_strides_view(&from, rank, sizes, out_strides);
}

kiln_status *kiln__reshape(kiln_call *call, kiln_tensor *t, int rank, const int64_t *sizes,
                           kiln_tensor **out) {
  int64_t result[KILN_MAX_RANK], strides[KILN_MAX_RANK];
  KILN_TRY(kiln__infer_size(t->numel, rank, sizes, result));
  if (kiln__view_strides(t, rank, result, strides)) {
    return view_of(call, t, rank, result, strides, t->offset, out);
  }
  kiln_tensor *copy;
  KILN_TRY(kiln__contiguous(call, t, &copy));
  kiln_strides_contiguous(rank, result, strides);
  kiln_status *status = view_of(call, copy, rank, result, strides, copy->offset, out);
  kiln_tensor_release_to(&call->cache, copy);
  return status;
}

/* -- Operators -- */

static kiln_status *give(kiln_ivalue *out, kiln_status *status, kiln_tensor *t) {
  if (!status) kiln__give(out, t);
  return status;
}
#define GIVE(expr)                        \
  do {                                    \
    kiln_tensor *view = NULL;             \
    kiln_status *view_status = (expr);    \
    return give(outs, view_status, view); \
  } while (0)

KILN_KERNEL(alias) { GIVE(kiln_tensor_alias(&call->cache, kiln_arg_tensor(args, 0), &view)); }
KILN_KERNEL(self) { return kiln__give(outs, kiln_tensor_retain(kiln_arg_tensor(args, 0))); }

KILN_KERNEL(view) {
  kiln_tensor *t = kiln_arg_tensor(args, 0);
  int64_t sizes[KILN_MAX_RANK], result[KILN_MAX_RANK], strides[KILN_MAX_RANK];
  int rank;
  KILN_TRY(kiln__arg_int_list(args, 1, sizes, &rank));
  KILN_TRY(kiln__infer_size(t->numel, rank, sizes, result));
  if (!kiln__view_strides(t, rank, result, strides)) {
    return KILN_OP_FAIL("view size is not compatible with input tensor's size and stride (at least "
                        "one dimension spans across two contiguous subspaces). Use .reshape(...) "
                        "instead.");
  }
  GIVE(view_of(call, t, rank, result, strides, t->offset, &view));
}
KILN_KERNEL(reshape) {
  int64_t sizes[KILN_MAX_RANK];
  int rank;
  KILN_TRY(kiln__arg_int_list(args, 1, sizes, &rank));
  GIVE(kiln__reshape(call, kiln_arg_tensor(args, 0), rank, sizes, &view));
}
KILN_KERNEL(reshape_as) {
  kiln_tensor *other = kiln_arg_tensor(args, 1);
  GIVE(kiln__reshape(call, kiln_arg_tensor(args, 0), kiln_tensor_rank(other),
                     kiln_tensor_sizes(other), &view));
}
KILN_KERNEL(view_as) {
  kiln_tensor *t = kiln_arg_tensor(args, 0), *other = kiln_arg_tensor(args, 1);
  int64_t result[KILN_MAX_RANK], strides[KILN_MAX_RANK];
  int rank = kiln_tensor_rank(other);
  KILN_TRY(kiln__infer_size(t->numel, rank, kiln_tensor_sizes(other), result));
  if (!kiln__view_strides(t, rank, result, strides)) {
    return KILN_OP_FAIL("view size is not compatible with input tensor's size and stride (at least "
                        "one dimension spans across two contiguous subspaces). Use .reshape(...) "
                        "instead.");
  }
  GIVE(view_of(call, t, rank, result, strides, t->offset, &view));
}
KILN_KERNEL(flatten) {
  kiln_tensor *t = kiln_arg_tensor(args, 0);
  int rank = kiln_tensor_rank(t), start, end, n = 0;
  KILN_TRY(kiln_wrap_dim(kiln_arg_int(args, 1), rank, &start));
  KILN_TRY(kiln_wrap_dim(kiln_arg_int(args, 2), rank, &end));
  KILN_ASSERT(start >= 0);
  if (start > end)
    return KILN_OP_FAIL("flatten() has invalid args: start_dim cannot come after end_dim");
  if (rank == 0) {
    int64_t one = 1;
    GIVE(kiln__reshape(call, t, 1, &one, &view));
  }
  if (start == end) return kiln__kernel_self(call, args, outs);
  int64_t sizes[KILN_MAX_RANK];
  for (int i = 0; i < rank; i++) {
    if (i > start && i <= end)
      sizes[n - 1] *= kiln_tensor_sizes(t)[i];
    else
      sizes[n++] = kiln_tensor_sizes(t)[i];
  }
  GIVE(kiln__reshape(call, t, n, sizes, &view));
}
KILN_KERNEL(unflatten) {
  kiln_tensor *t = kiln_arg_tensor(args, 0);
  int rank = kiln_tensor_rank(t), dim, count;
  int64_t parts[KILN_MAX_RANK], sizes[2 * KILN_MAX_RANK], resolved[KILN_MAX_RANK];
  KILN_TRY(kiln_wrap_dim(kiln_arg_int(args, 1), rank, &dim));
  KILN_TRY(kiln__arg_int_list(args, 2, parts, &count));
  if (count < 1) return KILN_OP_FAIL("unflatten: sizes must be non-empty");
  if (rank == 0) {
    return KILN_OP_FAIL("Dimension specified as %d but tensor has no dimensions", dim);
  }
  if (rank + count - 1 > KILN_MAX_RANK) return KILN_OP_FAIL("unflatten: too many dimensions");
  kiln_status *status = kiln__infer_size(kiln_tensor_sizes(t)[dim], count, parts, resolved);
  if (status) {
    kiln_status_destroy(status);
    return KILN_OP_FAIL(
        "unflatten: Provided sizes %s don't multiply up to the size of dim %d (%lld) "
        "in the input tensor",
        kiln__sizes(count, parts).text, dim, (long long)kiln_tensor_sizes(t)[dim]);
  }
  int n = 0;
  for (int i = 0; i < dim; i++) sizes[n++] = kiln_tensor_sizes(t)[i];
  for (int k = 0; k < count; k++) sizes[n++] = resolved[k];
  for (int i = dim + 1; i < rank; i++) sizes[n++] = kiln_tensor_sizes(t)[i];
  GIVE(kiln__reshape(call, t, n, sizes, &view));
}

KILN_KERNEL(transpose) {
  kiln_tensor *t = kiln_arg_tensor(args, 0);
  int a, b;
  KILN_TRY(kiln_wrap_dim(kiln_arg_int(args, 1), kiln_tensor_rank(t), &a));
  KILN_TRY(kiln_wrap_dim(kiln_arg_int(args, 2), kiln_tensor_rank(t), &b));
  GIVE(kiln__transpose(call, t, a, b, &view));
}
KILN_KERNEL(t) {
  kiln_tensor *t = kiln_arg_tensor(args, 0);
  if (kiln_tensor_rank(t) > 2) {
    return KILN_OP_FAIL("t() expects a tensor with <= 2 dimensions, but self is %dD",
                        kiln_tensor_rank(t));
  }
  GIVE(kiln__transpose(call, t, 0, kiln_tensor_rank(t) - 1, &view));
}
KILN_KERNEL(numpy_T) {
  kiln_tensor *t = kiln_arg_tensor(args, 0);
  int dims[KILN_MAX_RANK], rank = kiln_tensor_rank(t);
  for (int i = 0; i < rank; i++) dims[i] = rank - 1 - i;
  GIVE(kiln__permute(call, t, dims, &view));
}
KILN_KERNEL(matrix_T) {
  kiln_tensor *t = kiln_arg_tensor(args, 0);
  int rank = kiln_tensor_rank(t);
  if (rank == 0) GIVE(kiln__expand(call, t, 0, NULL, &view));
  if (rank < 2) {
    return KILN_OP_FAIL("tensor.mT is only supported on matrices or batches of matrices. Got %d-D "
                        "tensor.",
                        rank);
  }
  GIVE(kiln__transpose(call, t, rank - 2, rank - 1, &view));
}
KILN_KERNEL(permute) {
  kiln_tensor *t = kiln_arg_tensor(args, 0);
  int64_t wanted[KILN_MAX_RANK];
  int count, dims[KILN_MAX_RANK], rank = kiln_tensor_rank(t);
  uint64_t seen = 0;
  KILN_TRY(kiln__arg_int_list(args, 1, wanted, &count));
  if (count != rank) {
    return KILN_OP_FAIL("permute(sparse_coo): number of dimensions in the tensor input does not "
                        "match the length of the desired ordering of dimensions i.e. input.dim() = "
                        "%d is not equal to len(dims) = %d",
                        rank, count);
  }
  for (int i = 0; i < rank; i++) {
    KILN_TRY(kiln_wrap_dim(wanted[i], rank, &dims[i]));
    if (seen >> dims[i] & 1) return KILN_OP_FAIL("permute(): duplicate dims are not allowed.");
    seen |= 1ull << dims[i];
  }
  GIVE(kiln__permute(call, t, dims, &view));
}
/* Dimensions `source` go to the places `destination`; the others keep their order. */
KILN_KERNEL(movedim) {
  kiln_tensor *t = kiln_arg_tensor(args, 0);
  int64_t from[KILN_MAX_RANK], to[KILN_MAX_RANK];
  int n, m, rank = kiln_tensor_rank(t), dims[KILN_MAX_RANK];
  KILN_TRY(kiln__arg_int_list(args, 1, from, &n));
  KILN_TRY(kiln__arg_int_list(args, 2, to, &m));
  if (n != m) {
    return KILN_OP_FAIL("movedim: Invalid source or destination dims: source (%d dims) should "
                        "contain the same number of dims as destination (%d dims)",
                        n, m);
  }
  if (rank == 0) return kiln__kernel_alias(call, args, outs);
  uint64_t taken = 0, used = 0;
  for (int i = 0; i < rank; i++) dims[i] = -1;
  for (int i = 0; i < n; i++) {
    int a, b;
    KILN_TRY(kiln_wrap_dim(from[i], rank, &a));
    KILN_TRY(kiln_wrap_dim(to[i], rank, &b));
    if (used >> a & 1 || taken >> b & 1) return KILN_OP_FAIL("movedim: repeated dim");
    used |= 1ull << a;
    taken |= 1ull << b;
    dims[b] = a;
  }
  for (int i = 0, next = 0; i < rank; i++) {
    if (dims[i] >= 0) continue;
    while (used >> next & 1) next++;
    dims[i] = next++;
  }
  GIVE(kiln__permute(call, t, dims, &view));
}

KILN_KERNEL(expand) {
  int64_t sizes[KILN_MAX_RANK];
  int rank;
  KILN_TRY(kiln__arg_int_list(args, 1, sizes, &rank));
  GIVE(kiln__expand(call, kiln_arg_tensor(args, 0), rank, sizes, &view));
}
KILN_KERNEL(expand_as) {
  kiln_tensor *other = kiln_arg_tensor(args, 1);
  GIVE(kiln__expand(call, kiln_arg_tensor(args, 0), kiln_tensor_rank(other),
                    kiln_tensor_sizes(other), &view));
}

/* -- Dimensions of size 1 -- */

static kiln_status *squeeze(kiln_call *call, kiln_tensor *t, uint64_t mask, kiln_tensor **out) {
  int rank = kiln_tensor_rank(t), n = 0;
  int64_t sizes[KILN_MAX_RANK], strides[KILN_MAX_RANK];
  for (int i = 0; i < rank; i++) {
    if ((mask >> i & 1) && kiln_tensor_sizes(t)[i] == 1) continue;
    sizes[n] = kiln_tensor_sizes(t)[i];
    strides[n++] = kiln_tensor_strides(t)[i];
  }
  return view_of(call, t, n, sizes, strides, t->offset, out);
}
KILN_KERNEL(squeeze) { GIVE(squeeze(call, kiln_arg_tensor(args, 0), ~0ull, &view)); }
KILN_KERNEL(squeeze_dim) {
  int dim;
  KILN_TRY(kiln_wrap_dim(kiln_arg_int(args, 1), kiln_tensor_rank(kiln_arg_tensor(args, 0)), &dim));
  GIVE(squeeze(call, kiln_arg_tensor(args, 0), 1ull << dim, &view));
}
KILN_KERNEL(squeeze_dims) {
  uint64_t mask;
  if (kiln_arg_list(args, 1)->count == 0) return kiln__kernel_alias(call, args, outs);
  KILN_TRY(kiln__arg_dims(args, 1, kiln_tensor_rank(kiln_arg_tensor(args, 0)), &mask));
  GIVE(squeeze(call, kiln_arg_tensor(args, 0), mask, &view));
}
KILN_KERNEL(unsqueeze) {
  kiln_tensor *t = kiln_arg_tensor(args, 0);
  int dim;
  KILN_TRY(kiln_wrap_dim(kiln_arg_int(args, 1), kiln_tensor_rank(t) + 1, &dim));
  GIVE(kiln__unsqueeze(call, t, dim, &view));
}

/* In-place forms change the tensor itself. */
static kiln_status *become(kiln_tensor *self, kiln_call *call, kiln_status *status,
                           kiln_tensor *view, kiln_ivalue *out) {
  if (status) return status;
  status = kiln_tensor_set(self, self->storage, kiln_tensor_dtype(self), kiln_tensor_rank(view),
                           kiln_tensor_sizes(view), kiln_tensor_strides(view), view->offset);
  kiln_tensor_release_to(&call->cache, view);
  if (status) return status;
  return kiln__give(out, kiln_tensor_retain(self));
}
#define IN_PLACE(name)                                                            \
  KILN_KERNEL(name##_) {                                                          \
    kiln_ivalue result = kiln_none();                                             \
    kiln_status *status = KILN_BODY_OF(name)(call, args, &result);                \
    return become(kiln_arg_tensor(args, 0), call, status, result.u.tensor, outs); \
  }
IN_PLACE(squeeze)
IN_PLACE(squeeze_dim)
IN_PLACE(squeeze_dims)
IN_PLACE(unsqueeze)
IN_PLACE(transpose)
IN_PLACE(t)
IN_PLACE(as_strided)

/* -- Parts -- */

KILN_KERNEL(select) {
  kiln_tensor *t = kiln_arg_tensor(args, 0);
  int rank = kiln_tensor_rank(t), dim;
  if (rank == 0) return KILN_OP_FAIL("select() cannot be applied to a 0-dim tensor.");
  KILN_TRY(kiln_wrap_dim(kiln_arg_int(args, 1), rank, &dim));
  int64_t index = kiln_arg_int(args, 2), size = kiln_tensor_sizes(t)[dim];
  if (index < -size || index >= size) {
    return KILN_OP_FAIL("select(): index %lld out of range for tensor of size %s at dimension %d",
                        (long long)index, kiln__sizes_of(t).text, dim);
  }
  GIVE(kiln__select(call, t, dim, index < 0 ? index + size : index, &view));
}

KILN_KERNEL(slice) {
  kiln_tensor *t = kiln_arg_tensor(args, 0);
  int rank = kiln_tensor_rank(t), dim;
  if (rank == 0) return KILN_OP_FAIL("slice() cannot be applied to a 0-dim tensor.");
  KILN_TRY(kiln_wrap_dim(kiln_arg_int(args, 1), rank, &dim));
  int64_t size = kiln_tensor_sizes(t)[dim], step = kiln_arg_int(args, 4);
  int64_t start = kiln_arg_int_or(args, 2, 0), end = kiln_arg_int_or(args, 3, INT64_MAX);
  if (step <= 0) return KILN_OP_FAIL("slice step must be positive");
  if (start < 0) start += size;
  if (end < 0) end += size;
  start = start < 0 ? 0 : start > size ? size : start;
  end = end < start ? start : end > size ? size : end;
  int64_t sizes[KILN_MAX_RANK], strides[KILN_MAX_RANK];
  memcpy(sizes, kiln_tensor_sizes(t), sizeof(int64_t) * (size_t)rank);
  memcpy(strides, kiln_tensor_strides(t), sizeof(int64_t) * (size_t)rank);
  int64_t offset = offset_at(t, dim, start);
  sizes[dim] = end == start ? 0 : (end - start - 1) / step + 1;
  if (step > 1 && !kiln_checked_mul_i64(strides[dim], step, &strides[dim])) strides[dim] = 1;
  if (sizes[dim] == 0) offset = t->offset;
  GIVE(view_of(call, t, rank, sizes, strides, offset, &view));
}

KILN_KERNEL(narrow) {
  kiln_tensor *t = kiln_arg_tensor(args, 0);
  int rank = kiln_tensor_rank(t), dim;
  if (rank == 0) return KILN_OP_FAIL("narrow() cannot be applied to a 0-dim tensor.");
  KILN_TRY(kiln_wrap_dim(kiln_arg_int(args, 1), rank, &dim));
  int64_t size = kiln_tensor_sizes(t)[dim], length = kiln_arg_int(args, 3), start;
  if (args[2].tag == KILN_TAG_TENSOR)
    KILN_TRY(kiln_tensor_item_i64(args[2].u.tensor, &start));
  else
    start = kiln_arg_int(args, 2);
  if (length < 0) return KILN_OP_FAIL("narrow(): length must be non-negative.");
  if (start < 0) start += size;
  if (start < 0 || start > size || length > size - start) {
    return KILN_OP_FAIL("start (%lld) + length (%lld) exceeds dimension size (%lld).",
                        (long long)start, (long long)length, (long long)size);
  }
  GIVE(kiln__narrow(call, t, dim, start, length, &view));
}

KILN_KERNEL(as_strided) {
  kiln_tensor *t = kiln_arg_tensor(args, 0);
  int64_t sizes[KILN_MAX_RANK], strides[KILN_MAX_RANK];
  int rank, count;
  KILN_TRY(kiln__arg_int_list(args, 1, sizes, &rank));
  KILN_TRY(kiln__arg_int_list(args, 2, strides, &count));
  if (rank != count) return KILN_OP_FAIL("mismatch in length of strides and shape");
  GIVE(kiln_tensor_create_on(call->env->mem, &call->cache, t->storage, kiln_tensor_dtype(t), rank,
                             sizes, strides, kiln_arg_int_or(args, 3, t->offset), &view));
}

KILN_KERNEL(diagonal) {
  kiln_tensor *t = kiln_arg_tensor(args, 0);
  int rank = kiln_tensor_rank(t), a, b, n = 0;
  int64_t offset = kiln_arg_int(args, 1);
  KILN_TRY(kiln_wrap_dim(kiln_arg_int(args, 2), rank, &a));
  KILN_TRY(kiln_wrap_dim(kiln_arg_int(args, 3), rank, &b));
  if (a == b) {
    return KILN_OP_FAIL("diagonal dimensions cannot be identical %lld, %lld",
                        (long long)kiln_arg_int(args, 2), (long long)kiln_arg_int(args, 3));
  }
  const int64_t *own = kiln_tensor_sizes(t), *step = kiln_tensor_strides(t);
  int64_t length = offset >= 0 ? (own[a] < own[b] - offset ? own[a] : own[b] - offset)
                               : (own[a] + offset < own[b] ? own[a] + offset : own[b]);
  if (length < 0) length = 0;
  int64_t sizes[KILN_MAX_RANK], strides[KILN_MAX_RANK], at = t->offset;
  for (int i = 0; i < rank; i++) {
    if (i == a || i == b) continue;
    sizes[n] = own[i];
    strides[n++] = step[i];
  }
  sizes[n] = length;
  strides[n] = (int64_t)(((uint64_t)step[a] + (uint64_t)step[b]) & INT64_MAX);
  if (length > 0) at += offset >= 0 ? offset * step[b] : -offset * step[a];
  GIVE(view_of(call, t, n + 1, sizes, strides, at, &view));
}

KILN_KERNEL(unfold) {
  kiln_tensor *t = kiln_arg_tensor(args, 0);
  int rank = kiln_tensor_rank(t), dim;
  KILN_TRY(kiln_wrap_dim(kiln_arg_int(args, 1), rank, &dim));
  int64_t size = kiln_arg_int(args, 2), step = kiln_arg_int(args, 3);
  int64_t have = rank ? kiln_tensor_sizes(t)[dim] : 1;
  if (size < 0 || size > have) {
    return KILN_OP_FAIL("maximum size for tensor at dimension %d is %lld but size is %lld", dim,
                        (long long)have, (long long)size);
  }
  if (step <= 0) return KILN_OP_FAIL("step is %lld but must be > 0", (long long)step);
  if (rank >= KILN_MAX_RANK) return KILN_OP_FAIL("unfold: too many dimensions");
  int64_t sizes[KILN_MAX_RANK], strides[KILN_MAX_RANK];
  for (int i = 0; i < rank; i++) {
    sizes[i] = i == dim ? (have - size) / step + 1 : kiln_tensor_sizes(t)[i];
    strides[i] = kiln_tensor_strides(t)[i];
    /* The stride of a single window may be anything. */
    if (i == dim && !kiln_checked_mul_i64(step, strides[i], &strides[i])) strides[i] = 1;
  }
  sizes[rank] = size;
  strides[rank] = rank ? kiln_tensor_strides(t)[dim] : 1;
  GIVE(view_of(call, t, rank + 1, sizes, strides, t->offset, &view));
}
