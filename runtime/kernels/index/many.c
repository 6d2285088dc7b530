/* many.c: indexing by several tensors at once (x[i, j], x[mask]): reading and writing.
 *
 * Masks become the places where they hold. The index tensors are broadcast together; each place of
 * the broadcast shape names one block of the dimensions that are not indexed. The broadcast
 * dimensions stand where the first index stands, or in front when the indices are apart. */
#include "runtime/kernels/index/index.h"
#include "runtime/kernels/factory/factory.h"
#include "runtime/kernels/pointwise/iter.h"
#include "runtime/kernels/shape/view.h"
#include "runtime/strides.h"

typedef struct plan {
  kiln_tensor *index[KILN_MAX_RANK]; /* owned; int64, by dimension; NULL: not indexed */
  kiln_tensor *given[KILN_MAX_RANK]; /* the same with the strides that it came with: borrowed */
  int rank;                          /* of the indexed tensor */
  int wide_rank;                     /* of the broadcast indices */
  int64_t wide[KILN_MAX_RANK];
  int out_rank, first; /* the broadcast dimensions start at `first` of the result */
  int64_t out_sizes[KILN_MAX_RANK];
  bool scalar_mask, nothing; /* a mask has no dimensions; and hides all */
  int64_t count;             /* places */
  int64_t *offsets;          /* [count]: in elements; owned, from the cache */
} plan;

static void plan_deinit(kiln_call *call, plan *p) {
  for (int i = 0; i < p->rank; i++) kiln_tensor_release_to(&call->cache, p->index[i]);
  if (p->offsets) {
    kiln_cache_free(&call->cache, p->offsets, sizeof(int64_t) * (size_t)(p->count ? p->count : 1));
  }
}

/* A mask over dimensions dim, dim + 1, … */
static kiln_status *add_mask(kiln_call *call, plan *p, const kiln_tensor *t, kiln_tensor *mask,
                             int position, int *dim) {
  kiln_tensor *places;
  int n = kiln_tensor_rank(mask);
  for (int k = 0; k < n; k++) {
    if (*dim + k < p->rank && kiln_tensor_sizes(mask)[k] == kiln_tensor_sizes(t)[*dim + k])
      continue;
    return KILN_OP_FAIL("The shape of the mask %s at index %d does not match the shape of the "
                        "indexed tensor %s at index %d",
                        kiln__sizes_of(mask).text, position + k, kiln__sizes_of(t).text, *dim + k);
  }
  if (n == 0) {
    p->scalar_mask = true;
    p->nothing = p->nothing || kiln__element_i64(mask, 0) == 0;
    return p->rank ? NULL : KILN_OP_FAIL("too many indices for tensor of dimension 0 (got 1)");
  }
  KILN_TRY(kiln__nonzero(call, mask, &places));
  kiln_status *status = NULL;
  for (int k = 0; k < n && !status; k++) {
    kiln_tensor *column;
    status = kiln__select(call, places, 1, k, &column);
    if (!status) {
      status = kiln__as_index(call, column, &p->index[*dim + k]);
      p->given[*dim + k] = p->index[*dim + k];
      kiln_tensor_release_to(&call->cache, column);
    }
  }
  kiln_tensor_release_to(&call->cache, places);
  *dim += n;
  return status;
}

static kiln_status *add_indices(kiln_call *call, plan *p, const kiln_tensor *t,
                                const kiln_list *list) {
  int dim = 0;
  for (int64_t i = 0; i < list->count; i++) {
    kiln_ivalue v = list->items[i];
    bool none = v.tag != KILN_TAG_TENSOR || kiln_tensor_is_undefined(v.u.tensor);
    if (none) {
      dim++;
      continue;
    }
    kiln_dtype dtype = kiln_tensor_dtype(v.u.tensor);
    if (dtype == KILN_DTYPE_BOOL || dtype == KILN_DTYPE_U8) {
      KILN_TRY(add_mask(call, p, t, v.u.tensor, (int)i, &dim));
      continue;
    }
    if (dim >= p->rank) {
      return KILN_OP_FAIL("too many indices for tensor of dimension %d", p->rank);
    }
    p->given[dim] = v.u.tensor;
    KILN_TRY(kiln__as_index(call, v.u.tensor, &p->index[dim++]));
  }
  if (dim > p->rank) {
    return KILN_OP_FAIL("too many indices for tensor of dimension %d (got %lld)", p->rank,
                        (long long)list->count);
  }
  return NULL;
}

/* Broadcast shape, result's shape, and where each place lies. */
static kiln_status *place_indices(kiln_call *call, plan *p, const kiln_tensor *t) {
  int first = -1, last = -1, used = 0;
  for (int d = 0; d < p->rank; d++) {
    if (!p->index[d]) continue;
    kiln_status *status = kiln_broadcast(p->wide_rank, p->wide, kiln_tensor_rank(p->index[d]),
                                         kiln_tensor_sizes(p->index[d]), &p->wide_rank, p->wide);
    if (status) {
      kiln_status_destroy(status);
      return KILN_OP_FAIL("shape mismatch: indexing tensors could not be broadcast together");
    }
    if (first < 0) first = d;
    last = d;
    used++;
  }
  bool together = first >= 0 && last - first + 1 == used;
  if (p->rank - used + p->wide_rank > KILN_MAX_RANK)
    return KILN_OP_FAIL("index: too many dimensions");
  p->first = together ? first : 0;
  for (int d = 0; d <= p->rank; d++) {
    if (p->out_rank == p->first && (together ? d == first : d == 0)) {
      for (int k = 0; k < p->wide_rank; k++) p->out_sizes[p->out_rank++] = p->wide[k];
    }
    if (d < p->rank && !p->index[d]) p->out_sizes[p->out_rank++] = kiln_tensor_sizes(t)[d];
  }
  p->count = !p->nothing;
  for (int k = 0; k < p->wide_rank; k++) p->count *= p->wide[k];
  p->offsets = kiln_cache_alloc(&call->cache, sizeof(int64_t) * (size_t)(p->count ? p->count : 1));
  if (!p->offsets) return kiln_status_oom();
  kiln__zero(p->offsets, sizeof(int64_t) * (size_t)p->count);
  for (int d = 0; d < p->rank; d++) {
    if (!p->index[d]) continue;
    const kiln_tensor *x = p->index[d];
    int pad = p->wide_rank - kiln_tensor_rank(x);
    int64_t strides[KILN_MAX_RANK], size = kiln_tensor_sizes(t)[d];
    for (int k = 0; k < p->wide_rank; k++) {
      bool repeat = k < pad || kiln_tensor_sizes(x)[k - pad] == 1;
      strides[k] = repeat ? 0 : kiln_tensor_strides(x)[k - pad];
    }
    const int64_t *at = kiln_tensor_data(x);
    for (int64_t i = 0, end; (end = kiln_budget_piece(i, p->count)) > i;) {
      for (; i < end; i++) {
        int64_t k = at[kiln__offset_of(p->wide_rank, p->wide, strides, i)];
        if (k < -size || k >= size) {
          return KILN_OP_FAIL("index %lld is out of bounds for dimension %d with size %lld",
                              (long long)k, d, (long long)size);
        }
        p->offsets[i] += (k < 0 ? k + size : k) * kiln_tensor_strides(t)[d];
      }
    }
  }
  return kiln_budget_check(&call->budget, 0);
}
static kiln_status *make_plan(kiln_call *call, plan *p, const kiln_tensor *t,
                              const kiln_list *list) {
  memset(p, 0, sizeof *p);
  p->rank = kiln_tensor_rank(t);
  kiln_status *status = add_indices(call, p, t, list);
  if (!status) status = place_indices(call, p, t);
  if (status) {
    plan_deinit(call, p);
    p->rank = 0;
    p->offsets = NULL;
  }
  return status;
}

/* Calls for every element: offsets in the indexed tensor and, row-major, in the result. The kept
 * dimensions before the broadcast ones vary slowest. */
typedef struct walk {
  int pre, post; /* kept dimensions */
  int64_t pre_sizes[KILN_MAX_RANK], pre_strides[KILN_MAX_RANK];
  int64_t post_sizes[KILN_MAX_RANK], post_strides[KILN_MAX_RANK];
  int64_t pre_count, post_count;
} walk;
static walk walk_of(const plan *p, const kiln_tensor *t) {
  walk w = {.pre_count = 1, .post_count = 1};
  int kept = 0;
  for (int d = 0; d < p->rank; d++) {
    if (p->index[d]) continue;
    int64_t size = kiln_tensor_sizes(t)[d], stride = kiln_tensor_strides(t)[d];
    if (kept++ < p->first) {
      w.pre_sizes[w.pre] = size;
      w.pre_strides[w.pre++] = stride;
      w.pre_count *= size;
    } else {
      w.post_sizes[w.post] = size;
      w.post_strides[w.post++] = stride;
      w.post_count *= size;
    }
  }
  return w;
}
static bool dense(const walk *w) {
  int64_t expect = 1;
  for (int d = w->post - 1; d >= 0; d--) {
    if (w->post_sizes[d] != 1 && w->post_strides[d] != expect) return false;
    expect *= w->post_sizes[d];
  }
  return true;
}
/* what: 0 reads t into `other`, 1 writes, 2 adds; `other` is contiguous. */
static void move(const plan *p, const kiln_tensor *t, char *base, char *other, int what) {
  walk w = walk_of(p, t);
  size_t item = kiln_tensor_item_size(t), block = (size_t)w.post_count * item;
  const bool whole = dense(&w) && what != 2 && block;
  const int64_t work = whole ? 1 + (int64_t)(block / 16) : w.post_count;
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t a = 0; a < w.pre_count && !kiln_budget_spent(&left, 1); a++) {
    int64_t pre = kiln__offset_of(w.pre, w.pre_sizes, w.pre_strides, a);
    for (int64_t i = 0; i < p->count && !kiln_budget_spent(&left, work); i++) {
      char *at = base + (pre + p->offsets[i]) * (int64_t)item;
      if (whole) {
        memmove(what ? at : other, what ? other : at, block); /* values may be t's own */
        other += block;
        continue;
      }
      for (int64_t b = 0; b < w.post_count; b++, other += item) {
        if (b > 0 && b % KILN_BUDGET_ITEMS == 0 && kiln_budget_leaves_out()) return;
        char *x = at + kiln__offset_of(w.post, w.post_sizes, w.post_strides, b) * (int64_t)item;
        if (what == 0)
          kiln__move_element(other, x, item);
        else if (what == 1)
          kiln__move_element(x, other, item);
        else
          kiln__add_element(x, other, kiln_tensor_dtype(t));
      }
    }
  }
}

/* Strides of an index, broadcast with the others, which has one element along each dimension of the
 * result (of these sizes) that is not indexed. */
static void strides_of_places(const plan *p, const kiln_tensor *index, const int64_t *sizes,
                              int64_t *out_strides) {
  int64_t strides[KILN_MAX_RANK + 1];
  const int rank = p->wide_rank, pad = rank - kiln_tensor_rank(index);
  for (int k = rank - 1; k >= 0; k--) {
    const int64_t size = k < pad ? 1 : kiln_tensor_sizes(index)[k - pad];
    const int64_t outer = k + 1 < rank ? p->wide[k + 1] * strides[k + 1] : 1;
    strides[k] = size != p->wide[k] ? 0 : k < pad ? outer : kiln_tensor_strides(index)[k - pad];
  }
  const kiln_strided wide = {rank, p->wide, strides};
  if (!kiln_strides_view(&wide, p->out_rank, sizes, out_strides))
    kiln_strides_contiguous(p->out_rank, sizes, out_strides);
}
/* PyTorch iterates over what is indexed, with strides of 0 along the dimensions of the places, and
 * over the indices. */
static kiln_status *strides_of_result(kiln_call *call, const plan *p, const kiln_tensor *t,
                                      int64_t *out_strides) {
  kiln_strided operands[KILN_STRIDES_MAX_OPERANDS];
  int64_t sizes[KILN_MAX_RANK], *strides;
  const int rank = p->out_rank;
  const size_t bytes = sizeof *strides * (size_t)((p->rank + 1) * rank + 1);
  int count = 1, at = 0;
  strides = kiln_cache_alloc(&call->cache, bytes);
  if (!strides) return kiln_status_oom();
  operands[0] = (kiln_strided){rank, p->out_sizes, strides};
  for (int i = 0; i < rank; i++) {
    const bool placed = i >= p->first && i < p->first + p->wide_rank;
    sizes[i] = placed ? p->out_sizes[i] : 1;
    while (!placed && p->index[at]) at++;
    strides[i] = placed ? 0 : kiln_tensor_strides(t)[at++];
  }
  for (int d = 0; d < p->rank; d++) {
    if (!p->index[d]) continue;
    int64_t *to = strides + count * rank;
    strides_of_places(p, p->given[d], sizes, to);
    operands[count++] = (kiln_strided){rank, sizes, to};
  }
  kiln_strides_pointwise(rank, p->out_sizes, operands, count, out_strides);
  kiln_cache_free(&call->cache, strides, bytes);
  return NULL;
}

KILN_KERNEL(index) {
  kiln_tensor *t = SELF, *result, *laid = NULL;
  int64_t strides[KILN_MAX_RANK];
  plan p;
  KILN_TRY(make_plan(call, &p, t, kiln_arg_list(args, 1)));
  kiln_status *status =
      p.scalar_mask && t->numel > 0
          ? KILN_OP_FAIL("index: a mask without dimensions can only be written through")
          : strides_of_result(call, &p, t, strides);
  if (!status)
    status = kiln_call_tensor(call, kiln_tensor_dtype(t), p.out_rank, p.out_sizes, &result);
  if (!status && result->numel) {
    move(&p, t, (char *)(uintptr_t)kiln_tensor_data(t), (char *)(uintptr_t)kiln_tensor_data(result),
         0);
  }
  plan_deinit(call, &p);
  KILN_TRY(status);
  if (kiln__dest(outs)) return kiln__finish(call, outs, result);
  status = kiln__lay(call, result, kiln_tensor_dtype(t), strides, &laid);
  kiln_tensor_release_to(&call->cache, result);
  return status ? status : kiln__give(outs, laid);
}
static kiln_status *put(kiln_call *call, kiln_tensor *t, const kiln_list *indices,
                        kiln_tensor *values, bool accumulate) {
  plan p;
  kiln_tensor *wide = NULL, *plain = NULL;
  if (kiln_tensor_dtype(values) != kiln_tensor_dtype(t)) {
    return KILN_OP_FAIL(
        "Index put requires the source and destination dtypes match, got %s for the "
        "destination and %s for the source.",
        kiln_dtype_ir_name(kiln_tensor_dtype(t)), kiln_dtype_ir_name(kiln_tensor_dtype(values)));
  }
  KILN_TRY(make_plan(call, &p, t, indices));
  kiln_status *status = kiln__expand(call, values, p.out_rank, p.out_sizes, &wide);
  if (status) {
    kiln_status_destroy(status);
    status =
        KILN_OP_FAIL("shape mismatch: value tensor of shape %s cannot be broadcast to indexing "
                     "result of shape %s",
                     kiln__sizes_of(values).text, kiln__sizes(p.out_rank, p.out_sizes).text);
  }
  if (!status) status = kiln__contiguous(call, wide, &plain);
  void *data;
  if (!status) status = kiln_tensor_writable_data(t, &data);
  if (!status && plain->numel) {
    move(&p, t, data, (char *)(uintptr_t)kiln_tensor_data(plain), accumulate ? 2 : 1);
  }
  kiln_tensor_release_to(&call->cache, wide);
  kiln_tensor_release_to(&call->cache, plain);
  plan_deinit(call, &p);
  return status;
}
KILN_KERNEL(index_put_) {
  kiln_tensor *t = SELF;
  KILN_TRY(put(call, t, kiln_arg_list(args, 1), ARG(2), kiln_arg_bool(args, 3)));
  return kiln__give(outs, kiln_tensor_retain(t));
}
KILN_KERNEL(index_put) {
  kiln_tensor *t = SELF, *copy;
  KILN_TRY(kiln__empty_like(call, t, kiln_tensor_dtype(t), KILN_FORMAT_PRESERVE, &copy));
  kiln_status *status = kiln_pw_copy(call, copy, t);
  if (!status) {
    status = put(call, copy, kiln_arg_list(args, 1), ARG(2), kiln_arg_bool(args, 3));
  }
  if (status) {
    kiln_tensor_release_to(&call->cache, copy);
    return status;
  }
  return kiln__finish(call, outs, copy);
}
