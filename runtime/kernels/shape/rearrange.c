/* rearrange.c: copies with elements in other places: repeat, flip, roll, padding, interleaving. */
#include <string.h>

#include "runtime/kernels/index/index.h"
#include "runtime/kernels/pointwise/iter.h"
#include "runtime/kernels/nn/nn.h"
#include "runtime/kernels/shape/view.h"

#define SELF kiln_arg_tensor(args, 0)

static kiln_status *new_like(kiln_call *call, const kiln_tensor *t, int rank, const int64_t *sizes,
                             kiln_tensor **out) {
  return kiln_call_tensor(call, kiln_tensor_dtype(t), rank, sizes, out);
}

/* A repeat is a copy of t into every block of the result, which is seen as alternating
 * [repeats, size] dimensions. */
static kiln_status *repeat(kiln_call *call, kiln_tensor *t, int count, const int64_t *repeats,
                           kiln_ivalue *out) {
  int own = kiln_tensor_rank(t), pad = count - own;
  int64_t sizes[KILN_MAX_RANK], twice[2 * KILN_MAX_RANK], source[2 * KILN_MAX_RANK];
  if (pad < 0) {
    return KILN_OP_FAIL("Number of dimensions of repeat dims can not be smaller than number of "
                        "dimensions of tensor");
  }
  if (2 * count > KILN_MAX_RANK) return KILN_OP_FAIL("repeat: too many dimensions");
  for (int i = 0; i < count; i++) {
    int64_t size = i < pad ? 1 : kiln_tensor_sizes(t)[i - pad];
    if (repeats[i] < 0) {
      return KILN_OP_FAIL("Trying to create tensor with negative dimension %lld",
                          (long long)(repeats[i] < -INT32_MAX ? repeats[i] : size * repeats[i]));
    }
    if (!kiln_checked_mul_i64(size, repeats[i], &sizes[i])) return kiln_status_oom();
    twice[2 * i] = repeats[i];
    twice[2 * i + 1] = size;
    source[2 * i] = 0;
    source[2 * i + 1] = i < pad ? 0 : kiln_tensor_strides(t)[i - pad];
  }
  kiln_tensor *result, *blocks = NULL, *spread = NULL;
  KILN_TRY(new_like(call, t, count, sizes, &result));
  kiln_status *status = NULL;
  if (result->numel) {
    status = kiln__reshape(call, result, 2 * count, twice, &blocks);
    if (!status) {
      status = kiln_tensor_view(&call->cache, t, 2 * count, twice, source, t->offset, &spread);
    }
    if (!status) status = kiln_pw_copy(call, blocks, spread);
    kiln_tensor_release_to(&call->cache, blocks);
    kiln_tensor_release_to(&call->cache, spread);
  }
  if (status) {
    kiln_tensor_release_to(&call->cache, result);
    return status;
  }
  return kiln__finish(call, out, result);
}
KILN_KERNEL(repeat) {
  int64_t repeats[KILN_MAX_RANK];
  int count;
  KILN_TRY(kiln__arg_int_list(args, 1, repeats, &count));
  return repeat(call, SELF, count, repeats, outs);
}
KILN_KERNEL(tile) {
  int64_t given[KILN_MAX_RANK], repeats[KILN_MAX_RANK];
  int count, rank = kiln_tensor_rank(SELF);
  KILN_TRY(kiln__arg_int_list(args, 1, given, &count));
  int total = count > rank ? count : rank;
  for (int i = 0; i < total; i++) repeats[i] = i < total - count ? 1 : given[i - (total - count)];
  return repeat(call, SELF, total, repeats, outs);
}
KILN_KERNEL(repeat_interleave) { /* int repeats, dim or None */
  kiln_tensor *t = SELF, *flat = NULL, *wide = NULL, *plain = NULL, *result = NULL, *lifted = NULL;
  int64_t n = kiln_arg_int(args, 1), numel = t->numel, sizes[KILN_MAX_RANK + 1];
  int dim = 0;
  if (n < 0) return KILN_OP_FAIL("Repeats must be non-negative");
  kiln_status *status = NULL;
  if (kiln_arg_is_none(args, 2) || kiln_tensor_rank(t) == 0) {
    status = kiln__reshape(call, t, 1, &numel, &flat);
  } else {
    KILN_TRY(kiln_wrap_dim(kiln_arg_int(args, 2), kiln_tensor_rank(t), &dim));
    flat = kiln_tensor_retain(t);
  }
  /* One more dimension after dim, repeated, then merged. */
  if (!status) status = kiln__unsqueeze(call, flat, dim + 1, &lifted);
  if (!status) {
    int rank = kiln_tensor_rank(lifted);
    memcpy(sizes, kiln_tensor_sizes(lifted), sizeof(int64_t) * (size_t)rank);
    sizes[dim + 1] = n;
    int64_t all;
    if (!kiln_checked_mul_i64(sizes[dim], n, &all)) {
      status = KILN_OP_FAIL("repeat_interleave: %lld repeats are too many", (long long)n);
    }
    if (!status) status = kiln__expand(call, lifted, rank, sizes, &wide);
    if (!status) status = kiln__contiguous(call, wide, &plain);
    if (!status) sizes[dim] = all;
    memmove(&sizes[dim + 1], &sizes[dim + 2], sizeof(int64_t) * (size_t)(rank - dim - 2));
    if (!status) status = kiln__reshape(call, plain, rank - 1, sizes, &result);
  }
  kiln_tensor_release_to(&call->cache, flat);
  kiln_tensor_release_to(&call->cache, lifted);
  kiln_tensor_release_to(&call->cache, wide);
  kiln_tensor_release_to(&call->cache, plain);
  KILN_TRY(status);
  return kiln__finish(call, outs, result);
}

/* result[i] = t[map(i)] along one dimension: `places` gives the source of each. */
static kiln_status *pick(kiln_call *call, kiln_tensor *t, int dim, const int64_t *places,
                         int64_t count, kiln_tensor **out) {
  int rank = kiln_tensor_rank(t);
  int64_t sizes[KILN_MAX_RANK];
  memcpy(sizes, kiln_tensor_sizes(t), sizeof(int64_t) * (size_t)rank);
  sizes[dim] = count;
  kiln_tensor *plain;
  KILN_TRY(kiln__contiguous(call, t, &plain));
  kiln_status *status = new_like(call, t, rank, sizes, out);
  if (!status && (*out)->numel) {
    size_t block = kiln_tensor_item_size(t);
    int64_t outer = 1, n = kiln_tensor_sizes(t)[dim];
    for (int i = 0; i < dim; i++) outer *= sizes[i];
    for (int i = dim + 1; i < rank; i++) block *= (size_t)sizes[i];
    kiln__take_rows((char *)(uintptr_t)kiln_tensor_data(*out), kiln_tensor_data(plain), outer, n,
                    places, count, block);
  }
  kiln_tensor_release_to(&call->cache, plain);
  return status;
}
/* The same with the places from a function of (index, size, argument). */
static kiln_status *pick_by(kiln_call *call, kiln_tensor *t, int dim, int64_t count,
                            int64_t (*place)(int64_t i, int64_t size, int64_t arg), int64_t arg,
                            kiln_tensor **out) {
  size_t bytes;
  if (!kiln_checked_mul_size((size_t)(count ? count : 1), sizeof(int64_t), &bytes)) {
    return kiln_status_oom();
  }
  KILN_TRY(kiln_budget_room(&call->budget, bytes));
  int64_t *places = kiln_cache_alloc(&call->cache, bytes);
  if (!places) return kiln_status_oom();
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; i < count && !kiln_budget_spent(&left, 8); i++) {
    places[i] = place(i, kiln_tensor_sizes(t)[dim], arg);
  }
  kiln_status *status = kiln_budget_check(&call->budget, 0); /* are all of them known? */
  if (!status) status = pick(call, t, dim, places, count, out);
  kiln_cache_free(&call->cache, places, bytes);
  return status;
}
static int64_t place_flip(int64_t i, int64_t size, int64_t arg) {
  (void)arg;
  return size - 1 - i;
}
static int64_t place_roll(int64_t i, int64_t size, int64_t shift) {
  return ((i - shift % size) % size + size) % size;
}
/* Replaces *t (owned) by what pick_by makes of it. */
static kiln_status *replace(kiln_call *call, kiln_tensor **t, int dim, int64_t count,
                            int64_t (*place)(int64_t, int64_t, int64_t), int64_t arg) {
  kiln_tensor *next;
  kiln_status *status = pick_by(call, *t, dim, count, place, arg, &next);
  kiln_tensor_release_to(&call->cache, *t);
  *t = status ? NULL : next;
  return status;
}
KILN_KERNEL(flip) {
  kiln_tensor *t;
  uint64_t mask = 0;
  if (kiln_arg_list(args, 1)->count) {
    KILN_TRY(kiln__arg_dims(args, 1, kiln_tensor_rank(SELF), &mask));
  }
  KILN_TRY(kiln__contiguous(call, SELF, &t));
  if (t == SELF) { /* not the argument itself */
    kiln_tensor_release_to(&call->cache, t);
    KILN_TRY(new_like(call, SELF, kiln_tensor_rank(SELF), kiln_tensor_sizes(SELF), &t));
    kiln_status *status = kiln_pw_copy(call, t, SELF);
    if (status) {
      kiln_tensor_release_to(&call->cache, t);
      return status;
    }
  }
  for (int d = 0; d < kiln_tensor_rank(t); d++) {
    if (mask >> d & 1) KILN_TRY(replace(call, &t, d, kiln_tensor_sizes(t)[d], place_flip, 0));
  }
  return kiln__finish(call, outs, t);
}
KILN_KERNEL(roll) {
  int64_t shifts[KILN_MAX_RANK], dims[KILN_MAX_RANK], shape[KILN_MAX_RANK];
  int n, m, rank = kiln_tensor_rank(SELF);
  kiln_tensor *t, *flat;
  KILN_TRY(kiln__arg_int_list(args, 1, shifts, &n));
  KILN_TRY(kiln__arg_int_list(args, 2, dims, &m));
  if (n == 0) return KILN_OP_FAIL("`shifts` required");
  if (rank == 0 && m > 0) {
    return KILN_OP_FAIL("Dimension specified as 0 but tensor has no dimensions");
  }
  KILN_TRY(new_like(call, SELF, rank, kiln_tensor_sizes(SELF), &t));
  kiln_status *status = kiln_pw_copy(call, t, SELF);
  if (status) {
    kiln_tensor_release_to(&call->cache, t);
    return status;
  }
  if (t->numel == 0) return kiln__finish(call, outs, t);
  if (m == 0 && n == 1) { /* over all elements in a row */
    int64_t all = t->numel;
    memcpy(shape, kiln_tensor_sizes(t), sizeof(int64_t) * (size_t)rank);
    status = kiln__reshape(call, t, 1, &all, &flat);
    kiln_tensor_release_to(&call->cache, t);
    KILN_TRY(status);
    KILN_TRY(replace(call, &flat, 0, all, place_roll, shifts[0]));
    status = kiln__reshape(call, flat, rank, shape, &t);
    kiln_tensor_release_to(&call->cache, flat);
    KILN_TRY(status);
    return kiln__finish(call, outs, t);
  }
  if (n != m) {
    kiln_tensor_release_to(&call->cache, t);
    return KILN_OP_FAIL("shifts and dimensions must align. shifts: %d, dims:%d", n, m);
  }
  for (int i = 0; i < n; i++) {
    int dim;
    status = kiln_wrap_dim(dims[i], rank, &dim);
    if (status) {
      kiln_tensor_release_to(&call->cache, t);
      return status;
    }
    KILN_TRY(replace(call, &t, dim, kiln_tensor_sizes(t)[dim], place_roll, shifts[i]));
  }
  return kiln__finish(call, outs, t);
}

/* -- Padding -- */

static kiln_status *pad_constant(kiln_call *call, kiln_tensor *t, int count, const int64_t *pads,
                                 kiln_number value, kiln_ivalue *out) {
  int rank = kiln_tensor_rank(t);
  int64_t sizes[KILN_MAX_RANK], from[KILN_MAX_RANK] = {0}, to[KILN_MAX_RANK] = {0};
  if (count % 2) return KILN_OP_FAIL("Length of pad must be even but instead it equals %d", count);
  if (count / 2 > rank) {
    return KILN_OP_FAIL(
        "Length of pad should be no more than twice the number of dimensions of the "
        "input. Pad length is %d while the input has %d dimensions.",
        count, rank);
  }
  memcpy(sizes, kiln_tensor_sizes(t), sizeof(int64_t) * (size_t)rank);
  for (int i = 0; i < count / 2; i++) { /* the last dimension first */
    int d = rank - 1 - i;
    int64_t left = pads[2 * i], right = pads[2 * i + 1];
    if (!kiln_checked_add_i64(sizes[d], left, &sizes[d]) ||
        !kiln_checked_add_i64(sizes[d], right, &sizes[d])) {
      return KILN_OP_FAIL("Padding %lld and %lld of dimension %d is beyond 64 bits",
                          (long long)left, (long long)right, d);
    }
    if (sizes[d] < 0) {
      return KILN_OP_FAIL(
          "The input size %lld, plus negative padding %lld and %lld resulted in a "
          "negative output size, which is invalid. Check dimension %d of your input.",
          (long long)kiln_tensor_sizes(t)[d], (long long)left, (long long)right, d);
    }
    const int64_t size = kiln_tensor_sizes(t)[d];
    if (left < -size || right < -size) {
      return KILN_OP_FAIL("narrow(): length must be non-negative. Padding %lld and %lld takes more "
                          "than dimension %d has, %lld.",
                          (long long)left, (long long)right, d, (long long)size);
    }
    if (left < 0)
      from[d] = -left;
    else
      to[d] = left;
  }
  kiln_tensor *result, *inner, *source;
  KILN_TRY(new_like(call, t, rank, sizes, &result));
  kiln_status *status = kiln_pw_fill_fitting(call, result, value);
  inner = kiln_tensor_retain(result);
  source = kiln_tensor_retain(t);
  bool empty = false;
  for (int d = 0; d < rank && !status; d++) {
    int64_t length = kiln_tensor_sizes(t)[d] - from[d];
    if (length > sizes[d] - to[d]) length = sizes[d] - to[d];
    if (length <= 0) {
      empty = true;
      break;
    }
    kiln_tensor *a, *b = NULL;
    status = kiln__narrow(call, inner, d, to[d], length, &a);
    if (!status) {
      kiln_tensor_release_to(&call->cache, inner);
      inner = a;
      status = kiln__narrow(call, source, d, from[d], length, &b);
    }
    if (!status) {
      kiln_tensor_release_to(&call->cache, source);
      source = b;
    }
  }
  if (!status && !empty) status = kiln_pw_copy(call, inner, source);
  kiln_tensor_release_to(&call->cache, inner);
  kiln_tensor_release_to(&call->cache, source);
  if (status) {
    kiln_tensor_release_to(&call->cache, result);
    return status;
  }
  return kiln__finish(call, out, result);
}
KILN_KERNEL(constant_pad_nd) {
  int64_t pads[KILN_MAX_RANK];
  int count;
  KILN_TRY(kiln__arg_int_list(args, 1, pads, &count));
  return pad_constant(call, SELF, count, pads, kiln__number(args[2]), outs);
}
static int64_t place_reflect(int64_t i, int64_t size, int64_t left) {
  int64_t at = i - left;
  if (at < 0) at = -at;
  return at >= size ? 2 * (size - 1) - at : at;
}
static int64_t place_replicate(int64_t i, int64_t size, int64_t left) {
  int64_t at = i - left;
  return at < 0 ? 0 : at >= size ? size - 1 : at;
}
static int64_t place_circular(int64_t i, int64_t size, int64_t left) {
  return ((i - left) % size + size) % size;
}
static kiln_status *pad_by(kiln_call *call, kiln_tensor *t, int count, const int64_t *pads,
                           kiln_str mode, kiln_ivalue *out) {
  int rank = kiln_tensor_rank(t);
  bool reflect = kiln_str_is(mode, "reflect"), circular = kiln_str_is(mode, "circular");
  if (count % 2 || count / 2 > rank || !(reflect || circular || kiln_str_is(mode, "replicate"))) {
    return KILN_ERROR(KILN_UNSUPPORTED, "padding mode '" KILN_STR_FMT "' for %d dimensions",
                      KILN_STR_ARG(mode), rank);
  }
  bool planes = circular; /* which circular ones need not have */
  for (int d = rank == count / 2 + 2; d < rank && !circular; d++) {
    planes = kiln_tensor_sizes(t)[d] > 0;
    if (!planes) break;
  }
  if (!planes) {
    return KILN_OP_FAIL("Expected %dD or %dD (batch mode) tensor with possibly 0 batch size and "
                        "other non-zero dimensions for input, but got: %s",
                        count / 2 + 1, count / 2 + 2, kiln__sizes_of(t).text);
  }
  kiln_tensor *x = kiln_tensor_retain(t);
  for (int i = 0; i < count / 2; i++) {
    int d = rank - 1 - i;
    int64_t left = pads[2 * i], right = pads[2 * i + 1], size = kiln_tensor_sizes(x)[d];
    int64_t most = reflect ? size - 1 : circular ? size : INT64_MAX, padded = 0;
    kiln_status *status = NULL;
    if (left > most || right > most || size == 0) {
      status =
          KILN_OP_FAIL("Padding size should be less than the corresponding input dimension, but "
                       "got: padding (%lld, %lld) at dimension %d of size %lld",
                       (long long)left, (long long)right, d, (long long)size);
    } else if (left < INT64_MIN / 2 || !kiln_checked_add_i64(size, left, &padded) ||
               !kiln_checked_add_i64(padded, right, &padded) || padded <= 0) {
      status = KILN_OP_FAIL("padding leaves nothing of dimension %d, or too much", d);
    }
    if (status) {
      kiln_tensor_release_to(&call->cache, x);
      return status;
    }
    if (circular && (left < 0 || right < 0)) { /* what is cut off is not wrapped around */
      int64_t from = left < 0 ? -left : 0, length = size - from + (right < 0 ? right : 0);
      kiln_tensor *cut;
      status = length > 0 ? kiln__narrow(call, x, d, from, length, &cut)
                          : KILN_OP_FAIL("padding leaves nothing of dimension %d", d);
      kiln_tensor_release_to(&call->cache, x);
      KILN_TRY(status);
      x = cut;
      size = length;
      left = left < 0 ? 0 : left;
      right = right < 0 ? 0 : right;
    }
    KILN_TRY(replace(call, &x, d, size + left + right,
                     reflect    ? place_reflect
                     : circular ? place_circular
                                : place_replicate,
                     left));
  }
  return kiln__finish(call, out, x);
}
KILN_KERNEL(pad) { /* pad, mode, value */
  int64_t pads[KILN_MAX_RANK];
  int count;
  KILN_TRY(kiln__arg_int_list(args, 1, pads, &count));
  kiln_str mode = kiln_arg_str(args, 2);
  if (kiln_str_is(mode, "constant")) {
    double value = kiln_arg_is_none(args, 3) ? 0 : kiln_arg_float(args, 3);
    return pad_constant(call, SELF, count, pads, kiln__number_float(value), outs);
  }
  return pad_by(call, SELF, count, pads, mode, outs);
}
#define PAD(name, mode)                                           \
  KILN_KERNEL(name) {                                             \
    int64_t pads[KILN_MAX_RANK];                                  \
    int count;                                                    \
    KILN_TRY(kiln__arg_int_list(args, 1, pads, &count));          \
    return pad_by(call, SELF, count, pads, KILN_STR(mode), outs); \
  }
PAD(reflection_pad, "reflect")
PAD(replication_pad, "replicate")
PAD(_pad_circular, "circular")

/* -- Blocks of channels -- */

/* [.., C r r, H, W] to [.., C, H r, W r] */
KILN_KERNEL(pixel_shuffle) {
  kiln_tensor *t = SELF, *split, *turned = NULL, *result = NULL;
  int rank = kiln_tensor_rank(t), n = rank - 3, dims[KILN_MAX_RANK];
  int64_t r = kiln_arg_int(args, 1), sizes[KILN_MAX_RANK];
  if (rank < 3)
    return KILN_OP_FAIL("pixel_shuffle expects input to have at least 3 dimensions, but got input "
                        "with %d dimension(s)",
                        rank);
  if (r <= 0)
    return KILN_OP_FAIL("pixel_shuffle expects a positive upscale_factor, but got %lld",
                        (long long)r);
  const int64_t *s = kiln_tensor_sizes(t);
  int64_t square;
  if (!kiln_checked_mul_i64(r, r, &square)) square = INT64_MAX;
  int64_t c = s[n] / square, h = s[n + 1], w = s[n + 2];
  if (s[n] % square) {
    return KILN_OP_FAIL(
        "pixel_shuffle expects its input's 'channel' dimension to be divisible by the "
        "square of upscale_factor, but input.size(-3)=%lld is not divisible by %lld",
        (long long)s[n], (long long)square);
  }
  if (rank + 2 > KILN_MAX_RANK) return KILN_OP_FAIL("pixel_shuffle: too many dimensions");
  memcpy(sizes, s, sizeof(int64_t) * (size_t)n);
  int64_t parts[5] = {c, r, r, h, w};
  memcpy(sizes + n, parts, sizeof parts);
  KILN_TRY(kiln__reshape(call, t, rank + 2, sizes, &split));
  static const int order[5] = {0, 3, 1, 4, 2};
  for (int i = 0; i < rank + 2; i++) dims[i] = i < n ? i : n + order[i - n];
  kiln_status *status = kiln__permute(call, split, dims, &turned);
  sizes[n] = c, sizes[n + 1] = h * r, sizes[n + 2] = w * r;
  if (!status) status = kiln__reshape(call, turned, rank, sizes, &result);
  kiln_tensor_release_to(&call->cache, split);
  kiln_tensor_release_to(&call->cache, turned);
  KILN_TRY(status);
  return kiln__finish(call, outs, result);
}
/* The first half of a dimension times the sigmoid of the second. */
KILN_KERNEL(glu) {
  kiln_tensor *t = SELF, *half[2] = {NULL, NULL};
  int dim;
  if (kiln_tensor_rank(t) == 0) return KILN_OP_FAIL("glu does not support 0-dimensional tensors");
  KILN_TRY(kiln_wrap_dim(kiln_arg_int(args, 1), kiln_tensor_rank(t), &dim));
  int64_t size = kiln_tensor_sizes(t)[dim];
  if (size % 2) {
    return KILN_OP_FAIL("Halving dimension must be even, but dimension %d is size %lld", dim,
                        (long long)size);
  }
  kiln_status *status = kiln__narrow(call, t, dim, 0, size / 2, &half[0]);
  if (!status) status = kiln__narrow(call, t, dim, size / 2, size / 2, &half[1]);
  kiln_ivalue gate = kiln_none();
  if (!status) {
    kiln_pw pw = {.functor = KILN_PW_sigmoid,
                  .in_count = 1,
                  .common = kiln_tensor_dtype(t),
                  .in = {{.tensor = half[1]}}};
    status = kiln_pw_run(call, &pw, &gate);
  }
  if (!status) {
    kiln_pw pw = {.functor = KILN_PW_mul,
                  .in_count = 2,
                  .common = kiln_tensor_dtype(t),
                  .in = {{.tensor = half[0]}, {.tensor = gate.u.tensor}}};
    status = kiln_pw_run(call, &pw, outs);
  }
  kiln_ivalue_release_to(&call->cache, gate);
  kiln_tensor_release_to(&call->cache, half[0]);
  kiln_tensor_release_to(&call->cache, half[1]);
  return status;
}
