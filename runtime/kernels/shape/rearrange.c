/* rearrange.c: copies with elements in other places: repeat, flip, roll, padding, interleaving. */
#include <string.h>

#include "runtime/kernels/composite.h"
#include "runtime/kernels/index/index.h"
#include "runtime/kernels/nn/nn.h"
#include "runtime/kernels/pointwise/iter.h"

/* A repeat is a copy of t into every block of the result, which is seen as alternating
 * [repeats, size] dimensions. */
static kiln_tensor *repeat(kiln__composite *r, kiln_tensor *t, int count, const int64_t *repeats) {
  const int own = kiln_tensor_rank(t), pad = count - own;
  int64_t sizes[KILN_MAX_RANK], twice[2 * KILN_MAX_RANK], source[2 * KILN_MAX_RANK];
  if (pad < 0) {
    return FAIL(r, "Number of dimensions of repeat dims can not be smaller than "
                   "number of dimensions of tensor");
  }
  if (2 * count > KILN_MAX_RANK) return FAIL(r, "repeat: too many dimensions");
  for (int i = 0; i < count; i++) {
    int64_t size = i < pad ? 1 : kiln_tensor_sizes(t)[i - pad];
    if (repeats[i] < 0) {
      return FAIL(r, "Trying to create tensor with negative dimension %lld",
                  (long long)(repeats[i] < -INT32_MAX ? repeats[i] : size * repeats[i]));
    }
    if (!kiln_checked_mul_i64(size, repeats[i], &sizes[i])) {
      return kiln__composite_fail(r, kiln_status_oom());
    }
    twice[2 * i] = repeats[i];
    twice[2 * i + 1] = size;
    source[2 * i] = 0;
    source[2 * i + 1] = i < pad ? 0 : kiln_tensor_strides(t)[i - pad];
  }
  kiln_tensor *result;
  (void)kiln__composite_new(r, kiln_tensor_dtype(t), count, sizes, &result);
  if (r->status || result->numel == 0) return result;
  kiln_tensor *blocks = kiln__composite_reshape(r, result, 2 * count, twice);
  kiln_tensor *spread = KILN_OWN(
      r, kiln_tensor_view(&r->call->cache, t, 2 * count, twice, source, t->offset, &own_tensor));
  return kiln__composite_put(r, blocks, spread) ? result : NULL;
}
KILN_COMPOSITE(repeat) {
  int64_t repeats[KILN_MAX_RANK];
  int count;
  if (!kiln__composite_ok(r, kiln__arg_int_list(args, 1, repeats, &count))) return NULL;
  return repeat(r, SELF, count, repeats);
}
KILN_COMPOSITE(tile) {
  int64_t given[KILN_MAX_RANK], repeats[KILN_MAX_RANK];
  int count, rank = kiln_tensor_rank(SELF);
  if (!kiln__composite_ok(r, kiln__arg_int_list(args, 1, given, &count))) return NULL;
  int total = count > rank ? count : rank;
  for (int i = 0; i < total; i++) repeats[i] = i < total - count ? 1 : given[i - (total - count)];
  return repeat(r, SELF, total, repeats);
}
/* New memory, also where the elements stay where they are. */
static kiln_tensor *apart(kiln__composite *r, kiln_tensor *t, const kiln_tensor *from) {
  return t && t->storage == from->storage ? kiln__composite_copy(r, t) : t;
}
KILN_COMPOSITE(repeat_interleave) { /* int repeats, dim or None */
  kiln_tensor *t = SELF;
  const int64_t n = kiln_arg_int(args, 1);
  int64_t sizes[KILN_MAX_RANK], all;
  int dim = 0;
  if (n < 0) return FAIL(r, "Repeats must be non-negative");
  if (kiln_arg_is_none(args, 2) || kiln_tensor_rank(t) == 0)
    t = kiln__composite_flat(r, t);
  else
    dim = kiln__composite_dim(r, kiln_arg_int(args, 2), kiln_tensor_rank(t));
  /* One more dimension after dim, repeated, then merged. */
  kiln_tensor *lifted = KILN_STEP(r, unsqueeze, T(t), I(dim + 1));
  if (!lifted) return NULL;
  const int rank = kiln_tensor_rank(lifted);
  memcpy(sizes, kiln_tensor_sizes(lifted), sizeof *sizes * (size_t)rank);
  sizes[dim + 1] = n;
  if (!kiln_checked_mul_i64(sizes[dim], n, &all)) {
    return FAIL(r, "repeat_interleave: %lld repeats are too many", (long long)n);
  }
  t = KILN_STEP(r, expand, T(lifted), kiln__composite_ints(r, rank, sizes), B(false));
  t = kiln__composite_to(r, t, kiln_tensor_dtype(lifted));
  sizes[dim] = all;
  memmove(&sizes[dim + 1], &sizes[dim + 2], sizeof *sizes * (size_t)(rank - dim - 2));
  return apart(r, kiln__composite_reshape(r, t, rank - 1, sizes), SELF);
}

/* result[i] = t[place(i, size, arg)] along one dimension: a new tensor. */
static kiln_tensor *pick(kiln__composite *r, kiln_tensor *t, int dim, int64_t count,
                         int64_t (*place)(int64_t i, int64_t size, int64_t arg), int64_t arg) {
  int64_t sizes[KILN_MAX_RANK], outer = 1, left = KILN_BUDGET_ITEMS;
  kiln_tensor *places, *result;
  int64_t *at = kiln__composite_new(r, KILN_DTYPE_I64, 1, &count, &places);
  if (r->status) return NULL;
  const int rank = kiln_tensor_rank(t);
  const int64_t n = kiln_tensor_sizes(t)[dim];
  for (int64_t i = 0; i < count && !kiln_budget_spent(&left, 8); i++) at[i] = place(i, n, arg);
  const kiln_tensor *plain = kiln__composite_to(r, t, kiln_tensor_dtype(t));
  memcpy(sizes, kiln_tensor_sizes(t), sizeof *sizes * (size_t)rank);
  sizes[dim] = count;
  char *to = kiln__composite_new(r, kiln_tensor_dtype(t), rank, sizes, &result);
  if (!kiln__composite_goes_on(r) || result->numel == 0) return result; /* all places are known */
  size_t block = kiln_tensor_item_size(t);
  for (int i = 0; i < dim; i++) outer *= sizes[i];
  for (int i = dim + 1; i < rank; i++) block *= (size_t)sizes[i];
  kiln__take_rows(to, kiln_tensor_data(plain), outer, n, at, count, block);
  return result;
}
static int64_t place_flip(int64_t i, int64_t size, int64_t arg) {
  (void)arg;
  return size - 1 - i;
}
static int64_t place_roll(int64_t i, int64_t size, int64_t shift) {
  return ((i - shift % size) % size + size) % size;
}
KILN_COMPOSITE(flip) {
  kiln_tensor *t = SELF;
  const int rank = kiln_tensor_rank(t);
  uint64_t mask = 0;
  if (kiln_arg_list(args, 1)->count &&
      !kiln__composite_ok(r, kiln__arg_dims(args, 1, rank, &mask))) {
    return NULL;
  }
  if (mask == 0) return KILN_STEP(r, clone, T(t), NONE);
  for (int d = 0; d < rank && !r->status; d++) {
    if (mask >> d & 1) t = pick(r, t, d, kiln_tensor_sizes(t)[d], place_flip, 0);
  }
  return kiln__composite_lay_like(r, t, kiln_tensor_dtype(SELF), SELF);
}
static kiln_tensor *roll(kiln__composite *r, const kiln_ivalue *args,
                         KILN_UNUSED kiln_ivalue *outs) {
  int64_t shifts[KILN_MAX_RANK], dims[KILN_MAX_RANK];
  kiln_tensor *t = SELF;
  int n, m, rank = kiln_tensor_rank(t);
  if (!kiln__composite_ok(r, kiln__arg_int_list(args, 1, shifts, &n)) ||
      !kiln__composite_ok(r, kiln__arg_int_list(args, 2, dims, &m))) {
    return NULL;
  }
  if (n == 0) return FAIL(r, "`shifts` required");
  if (rank == 0 && m > 0) {
    return FAIL(r, "Dimension specified as 0 but tensor has no dimensions");
  }
  if (t->numel == 0) return KILN_STEP(r, clone, T(t), NONE);
  if (m == 0 && n == 1) { /* over all elements in a row */
    t = pick(r, kiln__composite_flat(r, t), 0, t->numel, place_roll, shifts[0]);
    return kiln__composite_reshape(r, t, rank, kiln_tensor_sizes(SELF));
  }
  if (n != m) {
    return FAIL(r, "shifts and dimensions must align. shifts: %d, dims:%d", n, m);
  }
  for (int i = 0; i < n; i++) {
    const int dim = kiln__composite_dim(r, dims[i], rank);
    if (!r->status) t = pick(r, t, dim, kiln_tensor_sizes(t)[dim], place_roll, shifts[i]);
  }
  return t;
}
KILN_KERNEL(roll) {
  const kiln_list *shifts = kiln_arg_list(args, 1), *dims = kiln_arg_list(args, 2);
  const int64_t *sizes = kiln_tensor_sizes(SELF);
  KILN_TRY(kiln__composite_run(call, roll, args, outs));
  bool joins = dims->count > 0 && SELF->numel > 0; /* two parts, of which none is empty */
  for (int64_t i = 0; joins && i < dims->count; i++) {
    const int64_t dim = dims->items[i].u.i;
    joins = shifts->items[i].u.i % sizes[dim < 0 ? dim + kiln_tensor_rank(SELF) : dim] != 0;
  }
  return joins ? kiln__lay_results(call, KILN_FORMAT_FROM_self, args, outs) : NULL;
}

/* -- Padding -- */

static kiln_tensor *pad_constant(kiln__composite *r, const kiln_ivalue *args, kiln_number value) {
  kiln_tensor *t = SELF, *result;
  int rank = kiln_tensor_rank(t), count;
  int64_t pads[KILN_MAX_RANK], sizes[KILN_MAX_RANK];
  int64_t from[KILN_MAX_RANK] = {0}, to[KILN_MAX_RANK] = {0};
  bool grows = false;
  if (!kiln__composite_ok(r, kiln__arg_int_list(args, 1, pads, &count))) return NULL;
  if (count % 2) {
    return FAIL(r, "Length of pad must be even but instead it equals %d", count);
  }
  if (count / 2 > rank) {
    return FAIL(r,
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
      return FAIL(r, "Padding %lld and %lld of dimension %d is beyond 64 bits", (long long)left,
                  (long long)right, d);
    }
    if (sizes[d] < 0) {
      return FAIL(r,
                  "The input size %lld, plus negative padding %lld and %lld resulted in a "
                  "negative output size, which is invalid. Check dimension %d of your input.",
                  (long long)kiln_tensor_sizes(t)[d], (long long)left, (long long)right, d);
    }
    const int64_t size = kiln_tensor_sizes(t)[d];
    if (left < -size || right < -size) {
      return FAIL(
          r,
          "narrow(): length must be non-negative. Padding %lld and %lld takes more than dimension "
          "%d has, %lld.",
          (long long)left, (long long)right, d, (long long)size);
    }
    grows = grows || left > 0 || right > 0;
    if (left < 0)
      from[d] = -left;
    else
      to[d] = left;
  }
  if (!grows) { /* it lies as the part does */
    for (int d = 0; d < rank; d++) t = kiln__composite_narrow(r, t, d, from[d], sizes[d]);
    return KILN_STEP(r, clone, T(t), NONE);
  }
  (void)kiln__composite_new(r, kiln_tensor_dtype(t), rank, sizes, &result);
  if (r->status || !kiln__composite_ok(r, kiln_pw_fill_fitting(r->call, result, value))) {
    return NULL;
  }
  kiln_tensor *inner = result, *source = t;
  for (int d = 0; d < rank; d++) {
    int64_t length = kiln_tensor_sizes(t)[d] - from[d];
    if (length > sizes[d] - to[d]) length = sizes[d] - to[d];
    if (length <= 0) return result;
    inner = kiln__composite_narrow(r, inner, d, to[d], length);
    source = kiln__composite_narrow(r, source, d, from[d], length);
  }
  return kiln__composite_put(r, inner, source) ? result : NULL;
}
KILN_COMPOSITE(constant_pad_nd) { return pad_constant(r, args, kiln__number(args[2])); }
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
static kiln_tensor *pad_by(kiln__composite *r, const kiln_ivalue *args, kiln_str mode) {
  kiln_tensor *x = SELF;
  int rank = kiln_tensor_rank(x), count;
  int64_t pads[KILN_MAX_RANK];
  bool reflect = kiln_str_is(mode, "reflect"), circular = kiln_str_is(mode, "circular");
  if (!kiln__composite_ok(r, kiln__arg_int_list(args, 1, pads, &count))) return NULL;
  if (count % 2 || count / 2 > rank || !(reflect || circular || kiln_str_is(mode, "replicate"))) {
    return kiln__composite_fail(
        r, KILN_ERROR(KILN_UNSUPPORTED, "padding mode '" KILN_STR_FMT "' for %d dimensions",
                      KILN_STR_ARG(mode), rank));
  }
  bool planes = circular; /* which circular ones need not have */
  for (int d = rank == count / 2 + 2; d < rank && !circular; d++) {
    planes = kiln_tensor_sizes(x)[d] > 0;
    if (!planes) break;
  }
  if (!planes) {
    return FAIL(r,
                "Expected %dD or %dD (batch mode) tensor with possibly 0 batch size "
                "and other non-zero dimensions for input, but got: %s",
                count / 2 + 1, count / 2 + 2, kiln__sizes_of(x).text);
  }
  for (int i = 0; i < count / 2 && x; i++) {
    int d = rank - 1 - i;
    int64_t left = pads[2 * i], right = pads[2 * i + 1], size = kiln_tensor_sizes(x)[d];
    int64_t most = reflect ? size - 1 : circular ? size : INT64_MAX, padded = 0;
    if (left > most || right > most || size == 0) {
      return FAIL(
          r,
          "Padding size should be less than the corresponding input dimension, but got: padding "
          "(%lld, %lld) at dimension %d of size %lld",
          (long long)left, (long long)right, d, (long long)size);
    }
    if (left < INT64_MIN / 2 || !kiln_checked_add_i64(size, left, &padded) ||
        !kiln_checked_add_i64(padded, right, &padded) || padded <= 0) {
      return FAIL(r, "padding leaves nothing of dimension %d, or too much", d);
    }
    if (circular && (left < 0 || right < 0)) { /* what is cut off is not wrapped around */
      int64_t from = left < 0 ? -left : 0, length = size - from + (right < 0 ? right : 0);
      if (length <= 0) {
        return FAIL(r, "padding leaves nothing of dimension %d", d);
      }
      x = kiln__composite_narrow(r, x, d, from, length);
      size = length;
      left = left < 0 ? 0 : left;
      right = right < 0 ? 0 : right;
    }
    x = pick(r, x, d, size + left + right,
             reflect    ? place_reflect
             : circular ? place_circular
                        : place_replicate,
             left);
  }
  /* New memory, also where nothing is padded or only cut off. */
  return x && x->storage == SELF->storage ? kiln__composite_copy(r, x) : x;
}
static bool is_constant(const kiln_ivalue *args) {
  return kiln_str_is(kiln_arg_str(args, 2), "constant");
}
static kiln_tensor *pad(kiln__composite *r, const kiln_ivalue *args,
                        KILN_UNUSED kiln_ivalue *outs) {
  if (!is_constant(args)) return pad_by(r, args, kiln_arg_str(args, 2));
  return pad_constant(r, args,
                      kiln__number_float(kiln_arg_is_none(args, 3) ? 0 : kiln_arg_float(args, 3)));
}
KILN_KERNEL(pad) { /* pad, mode, value */
  KILN_TRY(kiln__composite_run(call, pad, args, outs));
  return is_constant(args) ? kiln__lay_results(call, KILN_FORMAT_FROM_self, args, outs) : NULL;
}
#define PAD(name, mode) \
  KILN_COMPOSITE(name) { return pad_by(r, args, KILN_STR(mode)); }
PAD(reflection_pad, "reflect")
PAD(replication_pad, "replicate")
PAD(_pad_circular, "circular")

/* -- Blocks of channels -- */

/* [.., C r r, H, W] to [.., C, H r, W r] */
KILN_COMPOSITE(pixel_shuffle) {
  const int rank = kiln_tensor_rank(SELF), n = rank - 3;
  const int64_t *s = kiln_tensor_sizes(SELF), f = kiln_arg_int(args, 1);
  int64_t sizes[KILN_MAX_RANK], dims[KILN_MAX_RANK], square;
  if (rank < 3) {
    return FAIL(r,
                "pixel_shuffle expects input to have at least 3 dimensions, but got "
                "input with %d dimension(s)",
                rank);
  }
  if (f <= 0) {
    return FAIL(r, "pixel_shuffle expects a positive upscale_factor, but got %lld", (long long)f);
  }
  if (!kiln_checked_mul_i64(f, f, &square)) square = INT64_MAX;
  if (s[n] % square) {
    return FAIL(r,
                "pixel_shuffle expects its input's 'channel' dimension to be divisible by the "
                "square of upscale_factor, but input.size(-3)=%lld is not divisible by %lld",
                (long long)s[n], (long long)square);
  }
  if (rank + 2 > KILN_MAX_RANK) {
    return FAIL(r, "pixel_shuffle: too many dimensions");
  }
  const int64_t c = s[n] / square, h = s[n + 1], w = s[n + 2], parts[5] = {c, f, f, h, w};
  static const int order[5] = {0, 3, 1, 4, 2};
  memcpy(sizes, s, sizeof(int64_t) * (size_t)n);
  memcpy(sizes + n, parts, sizeof parts);
  for (int i = 0; i < rank + 2; i++) dims[i] = i < n ? i : n + order[i - n];
  kiln_tensor *t = kiln__composite_reshape(r, SELF, rank + 2, sizes);
  t = KILN_STEP(r, permute, T(t), kiln__composite_ints(r, rank + 2, dims));
  if (!kiln_checked_mul_i64(h, f, &sizes[n + 1]) || !kiln_checked_mul_i64(w, f, &sizes[n + 2])) {
    return kiln__composite_fail(r, kiln_status_oom());
  }
  return apart(r, kiln__composite_reshape(r, t, rank, sizes), SELF);
}
/* The first half of a dimension times the sigmoid of the second. */
KILN_COMPOSITE(glu) {
  kiln_tensor *t = SELF;
  if (kiln_tensor_rank(t) == 0) {
    return FAIL(r, "glu does not support 0-dimensional tensors");
  }
  const int dim = kiln__composite_dim(r, kiln_arg_int(args, 1), kiln_tensor_rank(t));
  const int64_t size = kiln__composite_size(t, dim);
  if (!r->status && size % 2) {
    return FAIL(r, "Halving dimension must be even, but dimension %d is size %lld", dim,
                (long long)size);
  }
  if (kiln_dtype_is_int(kiln_tensor_dtype(t), true)) {
    return kiln__composite_fail(r, kiln__not_implemented(r->call, kiln_tensor_dtype(t)));
  }
  kiln_tensor *gate = kiln__composite_narrow(r, t, dim, size / 2, size / 2);
  t = kiln__composite_narrow(r, t, dim, 0, size / 2);
  return KILN_STEP(r, mul, T(t), T(KILN_STEP(r, sigmoid, T(gate))));
}
