/* parts.c: tensors cut into lists of views, and joined: chunk, split, unbind, cat, stack. */
#include <string.h>

#include "runtime/kernels/pointwise/iter.h"
#include "runtime/kernels/shape/view.h"
#include "runtime/strides.h"

/* -- Cutting -- */

/* Appends a view; releases the list on failure. */
static kiln_status *push_narrow(kiln_call *call, kiln_list *list, kiln_tensor *t, int dim,
                                int64_t start, int64_t length) {
  kiln_tensor *view;
  KILN_TRY(kiln__narrow(call, t, dim, start, length, &view));
  return kiln_list_push(list, kiln_of_tensor(view));
}
static kiln_status *begin_list(kiln_call *call, int64_t count, kiln_list **list, kiln_ivalue *out) {
  KILN_TRY(kiln__new_list(call, KILN_TYPE_TENSOR, count, list));
  return kiln__give_value(out, kiln_of_box(*list));
}
static kiln_status *cut_dim(const kiln_ivalue *args, int arg, int *dim, int64_t *size) {
  kiln_tensor *t = SELF;
  if (kiln_tensor_rank(t) == 0)
    return KILN_OP_FAIL("split expects at least a 1-dimensional tensor");
  KILN_TRY(kiln_wrap_dim(kiln_arg_int(args, arg), kiln_tensor_rank(t), dim));
  *size = kiln_tensor_sizes(t)[*dim];
  return NULL;
}
static kiln_status *split_even(kiln_call *call, kiln_tensor *t, int dim, int64_t size, int64_t part,
                               kiln_ivalue *out) {
  if (part < 0) {
    return KILN_OP_FAIL("split expects split_size be non-negative, but got split_size=%lld",
                        (long long)part);
  }
  if (part == 0 && size != 0) {
    return KILN_OP_FAIL(
        "split_size can only be 0 if dimension size is 0, but got dimension size of "
        "%lld",
        (long long)size);
  }
  int64_t count = part == 0 ? 1 : size / part + (size % part != 0);
  if (count < 1) count = 1;
  kiln_list *list;
  KILN_TRY(begin_list(call, count, &list, out));
  for (int64_t i = 0; i < count; i++) {
    int64_t start = i * part, length = size - start < part ? size - start : part;
    KILN_TRY(push_narrow(call, list, t, dim, start, length));
  }
  return NULL;
}
KILN_KERNEL(split) {
  int dim = 0;
  int64_t size = 0;
  KILN_TRY(cut_dim(args, 2, &dim, &size));
  return split_even(call, SELF, dim, size, kiln_arg_int(args, 1), outs);
}
KILN_KERNEL(chunk) {
  int dim = 0;
  int64_t size = 0, chunks = kiln_arg_int(args, 1);
  KILN_TRY(cut_dim(args, 2, &dim, &size));
  if (chunks <= 0) {
    return KILN_OP_FAIL("chunk expects `chunks` to be greater than 0, got: %lld",
                        (long long)chunks);
  }
  kiln_tensor *t = SELF;
  int64_t part = size / chunks + (size % chunks != 0);
  if (part > 0 || size > 0) return split_even(call, t, dim, size, part, outs);
  /* An empty dimension still gives `chunks` pieces. */
  kiln_list *list;
  KILN_TRY(begin_list(call, chunks < 64 ? chunks : 64, &list, outs));
  for (int64_t i = 0; i < chunks; i++) KILN_TRY(push_narrow(call, list, t, dim, 0, 0));
  return NULL;
}
KILN_KERNEL(split_with_sizes) {
  int dim = 0;
  int64_t size = 0, sum = 0;
  KILN_TRY(cut_dim(args, 2, &dim, &size));
  const kiln_list *parts = kiln_arg_list(args, 1);
  for (int64_t i = 0; i < parts->count; i++) {
    if (parts->items[i].u.i < 0) {
      return KILN_OP_FAIL(
          "split_with_sizes expects split_sizes have only non-negative entries, but "
          "got split_sizes[%lld]=%lld",
          (long long)i, (long long)parts->items[i].u.i);
    }
    if (!kiln_checked_add_i64(sum, parts->items[i].u.i, &sum)) sum = -1;
  }
  if (sum != size) {
    return KILN_OP_FAIL(
        "split_with_sizes expects split_sizes to sum exactly to %lld (input tensor's "
        "size at dimension %d), but got a sum of %lld",
        (long long)size, dim, (long long)sum);
  }
  kiln_list *list;
  KILN_TRY(begin_list(call, parts->count, &list, outs));
  for (int64_t i = 0, start = 0; i < parts->count; start += parts->items[i++].u.i) {
    KILN_TRY(push_narrow(call, list, SELF, dim, start, parts->items[i].u.i));
  }
  return NULL;
}
KILN_KERNEL(unbind) {
  kiln_tensor *t = SELF;
  int dim = 0;
  if (kiln_tensor_rank(t) == 0)
    return KILN_OP_FAIL("Dimension specified as 0 but tensor has no dimensions");
  KILN_TRY(kiln_wrap_dim(kiln_arg_int(args, 1), kiln_tensor_rank(t), &dim));
  int64_t size = kiln_tensor_sizes(t)[dim];
  kiln_list *list;
  KILN_TRY(begin_list(call, size, &list, outs));
  for (int64_t i = 0; i < size; i++) {
    kiln_tensor *view;
    KILN_TRY(kiln__select(call, t, dim, i, &view));
    KILN_TRY(kiln_list_push(list, kiln_of_tensor(view)));
  }
  return NULL;
}
/* tensor_split.sections */
KILN_KERNEL(tensor_split_sections) {
  int dim = 0;
  int64_t size = 0, sections = kiln_arg_int(args, 1);
  KILN_TRY(cut_dim(args, 2, &dim, &size));
  if (sections <= 0) {
    return KILN_OP_FAIL("number of sections must be larger than 0, got %lld", (long long)sections);
  }
  kiln_list *list;
  KILN_TRY(begin_list(call, sections < 64 ? sections : 64, &list, outs));
  for (int64_t i = 0, start = 0; i < sections; i++) {
    int64_t length = size / sections + (i < size % sections);
    KILN_TRY(push_narrow(call, list, SELF, dim, start, length));
    start += length;
  }
  return NULL;
}
KILN_KERNEL(tensor_split_indices) {
  int dim = 0;
  int64_t size = 0, start = 0;
  KILN_TRY(cut_dim(args, 2, &dim, &size));
  const kiln_list *at = kiln_arg_list(args, 1);
  kiln_list *list;
  KILN_TRY(begin_list(call, at->count + 1, &list, outs));
  for (int64_t i = 0; i <= at->count; i++) {
    int64_t end = i < at->count ? at->items[i].u.i : size, from = start;
    if (end < 0) end = end + size < 0 ? 0 : end + size;
    if (end > size) end = size;
    if (from > size) from = size;
    KILN_TRY(push_narrow(call, list, SELF, dim, from, end > from ? end - from : 0));
    start = end;
  }
  return NULL;
}

/* -- Joining -- */

/* Old models concatenate 1-D empty tensors with anything: they do not count. */
static bool skipped(const kiln_tensor *t) {
  return kiln_tensor_rank(t) == 1 && kiln_tensor_sizes(t)[0] == 0;
}

/* All are images, or all volumes, that suggest it: then what joins them has channels last. */
static bool all_suggest_last(const kiln_list *list) {
  bool last = list->count > 0;
  for (int64_t i = 0; last && i < list->count; i++) {
    const kiln_tensor *t = list->items[i].u.tensor;
    last = kiln_has_channels_last(kiln_tensor_rank(t)) && kiln_tensor_suggests_channels_last(t);
  }
  return last;
}

static kiln_status *joined_shape(const kiln_list *list, int64_t wanted, int *out_dim, int *out_rank,
                                 int64_t *sizes, kiln_dtype *out_dtype) {
  kiln_promotion promotion = KILN_PROMOTION_INIT;
  const kiln_tensor *first = NULL;
  if (list->count == 0) return KILN_OP_FAIL("torch.cat(): expected a non-empty list of Tensors");
  for (int64_t i = 0; i < list->count; i++) {
    const kiln_tensor *t = list->items[i].u.tensor;
    kiln_promotion_add_tensor(&promotion, kiln_tensor_dtype(t), kiln_tensor_rank(t));
    if (kiln_tensor_rank(t) == 0) {
      return KILN_OP_FAIL("zero-dimensional tensor (at position %lld) cannot be concatenated",
                          (long long)i);
    }
    if (skipped(t)) continue;
    if (!first) {
      first = t;
      *out_rank = kiln_tensor_rank(t);
      memcpy(sizes, kiln_tensor_sizes(t), sizeof(int64_t) * (size_t)*out_rank);
      KILN_TRY(kiln_wrap_dim(wanted, *out_rank, out_dim));
      continue;
    }
    if (kiln_tensor_rank(t) != *out_rank) {
      return KILN_OP_FAIL("Tensors must have same number of dimensions: got %d and %d", *out_rank,
                          kiln_tensor_rank(t));
    }
    for (int d = 0; d < *out_rank; d++) {
      if (d == *out_dim) continue;
      if (kiln_tensor_sizes(t)[d] != sizes[d]) {
        return KILN_OP_FAIL(
            "Sizes of tensors must match except in dimension %d. Expected size %lld "
            "but got size %lld for tensor number %lld in the list.",
            *out_dim, (long long)sizes[d], (long long)kiln_tensor_sizes(t)[d], (long long)i);
      }
    }
    if (!kiln_checked_add_i64(sizes[*out_dim], kiln_tensor_sizes(t)[*out_dim], &sizes[*out_dim])) {
      return KILN_OP_FAIL("torch.cat(): the result is too large");
    }
  }
  if (!first) {
    *out_rank = 1;
    sizes[0] = 0;
    KILN_TRY(kiln_wrap_dim(wanted, 1, out_dim));
  }
  *out_dtype = kiln_promotion_result(&promotion);
  return NULL;
}

/* All contiguous and of the result's dtype: blocks are copied as bytes. */
static bool join_blocks(const kiln_list *list, kiln_tensor *result, int dim, char *to) {
  size_t item = kiln_tensor_item_size(result);
  int64_t outer = 1, inner = 1;
  for (int i = 0; i < dim; i++) outer *= kiln_tensor_sizes(result)[i];
  for (int i = dim + 1; i < kiln_tensor_rank(result); i++) inner *= kiln_tensor_sizes(result)[i];
  for (int64_t i = 0; i < list->count; i++) {
    const kiln_tensor *t = list->items[i].u.tensor;
    if (!kiln_tensor_is_contiguous(t) || kiln_tensor_dtype(t) != kiln_tensor_dtype(result) ||
        t->storage == result->storage) {
      return false;
    }
  }
  size_t row = (size_t)(kiln_tensor_sizes(result)[dim] * inner) * item, at = 0;
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; i < list->count; i++) {
    const kiln_tensor *t = list->items[i].u.tensor;
    if (skipped(t)) continue;
    size_t part = (size_t)(kiln_tensor_sizes(t)[dim] * inner) * item;
    const char *from = kiln_tensor_data(t);
    for (int64_t o = 0; part && o < outer; o++) {
      if (kiln_budget_spent(&left, 1 + (int64_t)(part / 16))) return true;
      memcpy(to + (size_t)o * row + at, from + (size_t)o * part, part);
    }
    at += part;
  }
  return true;
}

/* Channels last of what is joined along dimension `dim`; stacked: the dimension of which two are
 * made then, as a view does. */
static void joined_strides(int rank, const int64_t *sizes, int dim, bool stacked,
                           int64_t *out_strides) {
  int64_t joined[KILN_MAX_RANK];
  if (!stacked) {
    kiln_strides_channels_last(rank, sizes, out_strides);
    return;
  }
  for (int i = 0; i < rank - 1; i++) joined[i] = sizes[i < dim ? i : i + 1];
  joined[dim] *= sizes[dim];
  kiln_strides_channels_last(rank - 1, joined, out_strides);
  for (int i = rank - 1; i > dim; i--) out_strides[i] = out_strides[i - 1];
  out_strides[dim] *= sizes[dim + 1];
}

/* `last`: a new result has channels last. */
static kiln_status *join(kiln_call *call, const kiln_list *list, int64_t wanted, bool last,
                         bool stacked, kiln_ivalue *out) {
  int dim = 0, rank = 0;
  int64_t sizes[KILN_MAX_RANK], strides[KILN_MAX_RANK];
  kiln_dtype dtype = KILN_DTYPE_NONE;
  KILN_TRY(joined_shape(list, wanted, &dim, &rank, sizes, &dtype));
  kiln_tensor *result;
  if (last && !kiln__dest(out)) {
    joined_strides(rank, sizes, dim, stacked, strides);
    KILN_TRY(kiln_tensor_create_strided(call->env->mem, &call->cache, dtype, rank, sizes, strides,
                                        &result));
    kiln__give(out, result);
  } else {
    KILN_TRY(kiln__result(call, out, kiln__dest(out) ? kiln_tensor_dtype(kiln__dest(out)) : dtype,
                          rank, sizes, &result));
  }
  if (result->numel == 0) return NULL;
  void *data;
  KILN_TRY(kiln_tensor_writable_data(result, &data));
  if (kiln_tensor_is_contiguous(result) && join_blocks(list, result, dim, data)) return NULL;
  for (int64_t i = 0, start = 0; i < list->count; i++) {
    kiln_tensor *t = list->items[i].u.tensor, *part;
    if (skipped(t)) continue;
    int64_t length = kiln_tensor_sizes(t)[dim];
    KILN_TRY(kiln__narrow(call, result, dim, start, length, &part));
    kiln_status *status = length ? kiln_pw_copy(call, part, t) : NULL;
    kiln_tensor_release_to(&call->cache, part);
    KILN_TRY(status);
    start += length;
  }
  return NULL;
}
KILN_KERNEL(cat) {
  const kiln_list *list = kiln_arg_list(args, 0);
  return join(call, list, kiln_arg_int(args, 1), all_suggest_last(list), false, outs);
}

/* Joins a list of `count` views made by `view`; they are released. */
KILN_KERNEL(stack) {
  const kiln_list *list = kiln_arg_list(args, 0);
  if (list->count == 0) return KILN_OP_FAIL("stack expects a non-empty TensorList");
  const kiln_tensor *first = list->items[0].u.tensor;
  int dim, rank = kiln_tensor_rank(first);
  KILN_TRY(kiln_wrap_dim(kiln_arg_int(args, 1), rank + 1, &dim));
  kiln_list *views;
  KILN_TRY(kiln__new_list(call, KILN_TYPE_TENSOR, list->count, &views));
  kiln_status *status = NULL;
  for (int64_t i = 0; i < list->count && !status; i++) {
    kiln_tensor *t = list->items[i].u.tensor, *view;
    if (!kiln_tensor_same_sizes(t, first)) {
      status = KILN_OP_FAIL("stack expects each tensor to be equal size, but got %s at entry 0 and "
                            "%s at entry %lld",
                            kiln__sizes_of(first).text, kiln__sizes_of(t).text, (long long)i);
      break;
    }
    status = kiln__unsqueeze(call, t, dim, &view);
    if (!status) status = kiln_list_push(views, kiln_of_tensor(view));
  }
  /* One behind the other along `dim`, which is then two; behind the last each is a view first. */
  const bool stacked = dim < rank;
  if (!status)
    status = join(call, views, dim, all_suggest_last(stacked ? list : views), stacked, outs);
  kiln_ivalue_release_to(&call->cache, kiln_of_box(views));
  return status;
}
KILN_KERNEL(broadcast_tensors) {
  const kiln_list *list = kiln_arg_list(args, 0);
  int rank = 0;
  int64_t sizes[KILN_MAX_RANK];
  for (int64_t i = 0; i < list->count; i++) {
    const kiln_tensor *t = list->items[i].u.tensor;
    KILN_TRY(kiln_broadcast(rank, sizes, kiln_tensor_rank(t), kiln_tensor_sizes(t), &rank, sizes));
  }
  kiln_list *views;
  KILN_TRY(begin_list(call, list->count, &views, outs));
  for (int64_t i = 0; i < list->count; i++) {
    kiln_tensor *view;
    KILN_TRY(kiln__expand(call, list->items[i].u.tensor, rank, sizes, &view));
    KILN_TRY(kiln_list_push(views, kiln_of_tensor(view)));
  }
  return NULL;
}
static kiln_status *meshgrid(kiln_call *call, const kiln_list *list, bool xy, kiln_ivalue *outs) {
  int rank = (int)list->count;
  int64_t sizes[KILN_MAX_RANK];
  if (list->count == 0) return KILN_OP_FAIL("meshgrid expects a non-empty TensorList");
  if (list->count > KILN_MAX_RANK) return KILN_OP_FAIL("meshgrid: too many tensors");
  for (int i = 0; i < rank; i++) {
    const kiln_tensor *t = list->items[i].u.tensor;
    if (kiln_tensor_rank(t) > 1)
      return KILN_OP_FAIL("torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got a "
                          "tensor with %d dimensions",
                          kiln_tensor_rank(t));
    int at = xy && rank > 1 && i < 2 ? 1 - i : i;
    sizes[at] = t->numel;
  }
  kiln_list *views;
  KILN_TRY(begin_list(call, rank, &views, outs));
  for (int i = 0; i < rank; i++) {
    kiln_tensor *t = list->items[i].u.tensor, *view;
    int at = xy && rank > 1 && i < 2 ? 1 - i : i;
    int64_t strides[KILN_MAX_RANK] = {0};
    strides[at] = kiln_tensor_rank(t) ? kiln_tensor_strides(t)[0] : 1;
    KILN_TRY(kiln_tensor_view(&call->cache, t, rank, sizes, strides, t->offset, &view));
    KILN_TRY(kiln_list_push(views, kiln_of_tensor(view)));
  }
  return NULL;
}
KILN_KERNEL(meshgrid) { return meshgrid(call, kiln_arg_list(args, 0), false, outs); }
KILN_KERNEL(meshgrid_indexing) {
  return meshgrid(call, kiln_arg_list(args, 0), kiln_str_is(kiln_arg_str(args, 1), "xy"), outs);
}
