/* turn.c: turns and shuffles: fliplr, rot90, channels of pictures; ravel. */
#include <string.h>

#include "runtime/kernels/composite.h"
#include "runtime/strides.h"

/* -- Turns -- */

static kiln_tensor *turn_over(kiln__composite *r, kiln_tensor *t, int dim) {
  if (kiln_tensor_rank(t) <= dim) {
    return FAIL(r, "Input must be >= %d-d.", dim + 1);
  }
  return KILN_STEP(r, flip, T(t), INTS(dim));
}
KILN_COMPOSITE(fliplr) { return turn_over(r, SELF, 1); }
KILN_COMPOSITE(flipud) { return turn_over(r, SELF, 0); }
KILN_COMPOSITE(rot90) {
  int64_t dims[KILN_MAX_RANK];
  int count;
  const int rank = kiln_tensor_rank(SELF);
  if (!kiln__composite_ok(r, kiln__arg_int_list(args, 2, dims, &count))) return NULL;
  if (count != 2 || rank < 2) {
    return FAIL(r, "expected total rotation dims == 2, but got dims = %d", count);
  }
  const int a = kiln__composite_dim(r, dims[0], rank), b = kiln__composite_dim(r, dims[1], rank);
  if (!r->status && a == b) {
    FAIL(r,
         "expected rotation dims to be different, but got dim0 = %lld and dim1 = "
         "%lld",
         (long long)dims[0], (long long)dims[1]);
  }
  if (r->status) return NULL;
  kiln_tensor *t = SELF;
  switch (((kiln_arg_int(args, 1) % 4) + 4) % 4) {
    case 1: t = KILN_STEP(r, transpose, T(KILN_STEP(r, flip, T(t), INTS(b))), I(a), I(b)); break;
    case 2: t = KILN_STEP(r, flip, T(t), INTS(a, b)); break;
    case 3: t = KILN_STEP(r, transpose, T(KILN_STEP(r, flip, T(t), INTS(a))), I(a), I(b)); break;
    default: t = KILN_STEP(r, clone, T(t), I(KILN_FORMAT_CONTIGUOUS)); break;
  }
  return t;
}
/* self, factor: the inverse of pixel_shuffle */
KILN_COMPOSITE(pixel_unshuffle) {
  const int rank = kiln_tensor_rank(SELF);
  const int64_t f = kiln_arg_int(args, 1), *sizes = kiln_tensor_sizes(SELF);
  int64_t wide[KILN_MAX_RANK + 2], order[KILN_MAX_RANK + 2];
  int64_t channels = 0;
  if (rank < 3 || rank + 2 > KILN_MAX_RANK || f <= 0 || sizes[rank - 2] % f ||
      sizes[rank - 1] % f || !kiln_checked_mul_i64(sizes[rank - 3], f, &channels) ||
      !kiln_checked_mul_i64(channels, f, &channels)) {
    return FAIL(r, "pixel_unshuffle expects an input of at least 3 dimensions whose "
                   "height and width are divisible by a positive downscale_factor");
  }
  if (SELF->numel == 0) { /* PyTorch leaves it as it is */
    return kiln__composite_copy(r, SELF);
  }
  const int n = rank - 3;
  memcpy(wide, sizes, sizeof *wide * (size_t)(n + 1));
  for (int d = 0; d <= n; d++) order[d] = d;
  const int64_t parts[] = {sizes[rank - 2] / f, f, sizes[rank - 1] / f, f};
  memcpy(wide + n + 1, parts, sizeof parts);
  const int64_t moved[] = {n + 2, n + 4, n + 1, n + 3};
  memcpy(order + n + 1, moved, sizeof moved);
  kiln_tensor *t = kiln__composite_reshape(r, SELF, n + 5, wide);
  t = KILN_STEP(r, permute, T(t), kiln__composite_ints(r, n + 5, order));
  const int64_t last[] = {channels, parts[0], parts[2]};
  memcpy(wide + n, last, sizeof last);
  return kiln__composite_copy(r, kiln__composite_reshape(r, t, rank, wide));
}
static kiln_tensor *shuffle(kiln__composite *r, const kiln_ivalue *args) {
  const int rank = kiln_tensor_rank(SELF);
  const int64_t groups = kiln_arg_int(args, 1), *sizes = kiln_tensor_sizes(SELF);
  if (rank < 3 || groups <= 0 || sizes[1] % groups != 0) {
    return FAIL(r, "channel_shuffle expects an input of more than 2 dimensions, "
                   "whose channels are divisible by a positive number of groups");
  }
  int64_t rest = 1;
  for (int d = 2; d < rank; d++) rest *= sizes[d];
  const int64_t wide[] = {sizes[0], groups, sizes[1] / groups, rest};
  kiln_tensor *t = kiln__composite_reshape(r, SELF, 4, wide);
  t = kiln__composite_copy(r, KILN_STEP(r, transpose, T(t), I(1), I(2)));
  return kiln__composite_reshape(r, t, rank, sizes);
}
KILN_COMPOSITE(channel_shuffle) { return shuffle(r, args); }
KILN_COMPOSITE(shuffle_groups) {
  const int64_t rank = kiln_arg_int(args, 2);
  if (kiln_tensor_rank(SELF) != rank) {
    return FAIL(r, "Expected %lld elements in a list but found %d: sizes of what is shuffled",
                (long long)rank, kiln_tensor_rank(SELF));
  }
  return shuffle(r, args);
}

/* -- At least so many dimensions -- */

/* Its elements as neighbours: itself where they are. */
KILN_COMPOSITE(ravel) { return kiln__composite_flat(r, KILN_STEP(r, contiguous, T(SELF), I(0))); }
