/* einsum.c: einsum, and contractions that are one: tensordot, inner.
 *
 * Every operand is seen with one dimension for each label: those of the result in front, those that
 * are summed behind, size 1 where it lacks one. Operands are then contracted from left to right;
 * each pair is one batched product: labels of both that live on are its batch, labels of both that
 * end there its inner dimension. */
#include <string.h>

#include "runtime/einsum.h"
#include "runtime/kernels/composite.h"

/* -- Pairs -- */

/* Dimensions of a product by role, in their order. */
typedef struct roles {
  int count;
  int dims[KILN_MAX_RANK];
  int64_t size; /* of all together */
} roles;
static void add_dim(roles *to, int dim, int64_t size) {
  to->dims[to->count++] = dim;
  to->size *= size;
}
static kiln_tensor *arrange(kiln__composite *r, kiln_tensor *t, const roles *a, const roles *b,
                            const roles *c, const roles *rest) {
  int64_t order[KILN_MAX_RANK];
  const roles *all[4] = {a, b, c, rest};
  int n = 0;
  for (int k = 0; k < 4; k++) {
    for (int i = 0; i < all[k]->count; i++) order[n++] = all[k]->dims[i];
  }
  t = KILN_STEP(r, permute, T(t), kiln__composite_ints(r, n, order));
  return kiln__composite_reshape(r, t, 3, (const int64_t[]){a->size, b->size, c->size});
}
/* The product of two tensors of the same rank, whose sizes broadcast, summed over `sum`: those
 * dimensions stay with size 1. Where nothing is summed it is that of each element. */
static kiln_tensor *contract(kiln__composite *r, kiln_tensor *a, kiln_tensor *b, uint64_t sum) {
  const int rank = kiln__composite_rank(a);
  roles batch = {0, {0}, 1}, left = batch, right = batch, inner = batch, none = batch;
  int64_t sizes[KILN_MAX_RANK], order[KILN_MAX_RANK], full[KILN_MAX_RANK];
  int n = 0;
  bool summed = false;
  if (sum == 0) return KILN_STEP(r, mul, T(a), T(b));
  for (int d = 0; d < rank; d++) {
    const int64_t x = kiln__composite_size(a, d), y = kiln__composite_size(b, d);
    if (x != y && x != 1 && y != 1) {
      return FAIL(r,
                  "einsum(): operands do not broadcast with remapped shapes: "
                  "dimension %d has sizes %lld and %lld",
                  d, (long long)x, (long long)y);
    }
    const bool ends = sum >> d & 1;
    full[d] = x == 1 ? y : x;
    if (ends && (x == 1) != (y == 1)) { /* of one alone: summed before */
      kiln_tensor **one = x == 1 ? &b : &a;
      *one = KILN_STEP(r, sum_dim, T(*one), INTS(d), B(true), NONE); /* whole numbers: int64 */
      summed = true;
      add_dim(&none, d, 1);
    } else if (ends && x != 1) {
      add_dim(&inner, d, x);
    } else if (x == 1 && y == 1) {
      add_dim(&none, d, 1);
    } else if (x != 1 && y != 1) {
      add_dim(&batch, d, x);
    } else {
      add_dim(x != 1 ? &left : &right, d, x != 1 ? x : y);
    }
  }
  roles left_rest = right, right_rest = left; /* size 1 there */
  memcpy(left_rest.dims + left_rest.count, none.dims, sizeof(int) * (size_t)none.count);
  left_rest.count += none.count;
  memcpy(right_rest.dims + right_rest.count, none.dims, sizeof(int) * (size_t)none.count);
  right_rest.count += none.count;
  if (summed) {
    const kiln_dtype dtype = kiln_dtype_promote(kiln__composite_dtype(a), kiln__composite_dtype(b));
    a = kiln__composite_to(r, a, dtype);
    b = kiln__composite_to(r, b, dtype);
  }
  a = arrange(r, a, &batch, &left, &inner, &left_rest);
  b = arrange(r, b, &batch, &inner, &right, &right_rest);
  kiln_tensor *product = KILN_STEP(r, bmm, T(a), T(b));
  /* batch, left, right, then those of size 1; and back into the labels' order. */
  const roles *groups[5] = {&batch, &left, &right, &inner, &none};
  for (int k = 0; k < 5; k++) {
    for (int i = 0; i < groups[k]->count; i++, n++) {
      const int d = groups[k]->dims[i];
      sizes[n] = k < 3 ? full[d] : 1;
      order[d] = n;
    }
  }
  product = kiln__composite_reshape(r, product, rank, sizes);
  return KILN_STEP(r, permute, T(product), kiln__composite_ints(r, rank, order));
}

/* -- Operands -- */

/* The operand with a dimension for every label; repeated labels are its diagonal. */
static kiln_tensor *place_operand(kiln__composite *r, const kiln_einsum *e, kiln_tensor *t,
                                  const int8_t *places) {
  int64_t sizes[KILN_MAX_RANK], strides[KILN_MAX_RANK];
  bool seen[KILN_MAX_RANK] = {false};
  for (int d = 0; d < e->rank; d++) sizes[d] = 1, strides[d] = 0;
  for (int d = 0; d < kiln_tensor_rank(t); d++) {
    const int64_t size = kiln_tensor_sizes(t)[d];
    const int at = places[d];
    if (seen[at] && sizes[at] != size)
      return FAIL(r,
                  "einsum(): subscript is repeated for an operand but the sizes "
                  "don't match, %lld != %lld",
                  (long long)size, (long long)sizes[at]);
    seen[at] = true;
    sizes[at] = size;
    strides[at] += kiln_tensor_strides(t)[d];
  }
  return KILN_OWN(
      r, kiln_tensor_view(&r->call->cache, t, e->rank, sizes, strides, t->offset, &own_tensor));
}
/* Contracts the placed operands; takes labels away as soon as no later operand has them. */
static kiln_tensor *contract_all(kiln__composite *r, const kiln_einsum *e, kiln_tensor **operands) {
  kiln_tensor *now = operands[0];
  for (int i = 1; i < e->operands && !r->status; i++) {
    uint64_t sum = 0;
    for (int d = e->out_rank; d < e->rank; d++) {
      bool later = false;
      for (int k = i + 1; k < e->operands; k++) later |= kiln__composite_size(operands[k], d) != 1;
      if (!later) sum |= 1ull << d;
    }
    now = contract(r, now, operands[i], sum);
  }
  if (e->operands == 1 && e->rank > e->out_rank) {
    int64_t dims[KILN_MAX_RANK];
    for (int d = e->out_rank; d < e->rank; d++) dims[d - e->out_rank] = d;
    const kiln_ivalue summed = kiln__composite_ints(r, e->rank - e->out_rank, dims);
    now = KILN_STEP(r, sum_dim, T(now), summed, B(true), NONE);
  }
  if (r->status || e->rank == e->out_rank) return now;
  return kiln__composite_reshape(r, now, e->out_rank, kiln_tensor_sizes(now));
}
/* Sizes of a letter are equal, or 1; seen[place] - 1 is what it has so far. */
static bool check_sizes(kiln__composite *r, const kiln_einsum *e, const kiln_tensor *t, int operand,
                        int64_t *seen) {
  for (int d = 0; d < kiln_tensor_rank(t); d++) {
    const int at = e->places[operand][d];
    const int64_t n = kiln_tensor_sizes(t)[d], had = seen[at] - 1;
    if (e->letters[at] != '.' && had >= 0 && had != 1 && n != 1 && n != had) {
      return FAIL(r,
                  "einsum(): subscript %c has size %lld for operand %d which does "
                  "not broadcast with previously seen size %lld",
                  e->letters[at], (long long)n, operand, (long long)had);
    }
    if (had < 0 || had == 1) seen[at] = n + 1;
  }
  return true;
}
KILN_COMPOSITE(einsum) {
  const kiln_list *list = kiln_arg_list(args, 1);
  kiln_einsum e;
  kiln_tensor *operands[KILN_EINSUM_OPERANDS];
  int ranks[KILN_EINSUM_OPERANDS];
  int64_t seen[KILN_MAX_RANK] = {0};
  for (int i = 0; i < list->count && i < KILN_EINSUM_OPERANDS; i++) {
    operands[i] = list->items[i].u.tensor;
    ranks[i] = kiln_tensor_rank(operands[i]);
  }
  const int count = list->count <= KILN_EINSUM_OPERANDS ? (int)list->count : -1;
  if (!kiln__composite_ok(r, kiln_einsum_read(kiln_arg_str(args, 0), count, ranks, &e)))
    return NULL;
  for (int i = 0; i < count; i++)
    if (!check_sizes(r, &e, operands[i], i, seen)) return NULL;
  for (int i = 0; i < count && !r->status; i++)
    operands[i] = place_operand(r, &e, operands[i], e.places[i]);
  return r->status ? NULL : contract_all(r, &e, operands);
}

/* -- tensordot, inner -- */

KILN_COMPOSITE(tensordot) {
  kiln_tensor *a = SELF, *b = ARG(1);
  const int ra = kiln_tensor_rank(a), rb = kiln_tensor_rank(b);
  int64_t x[KILN_MAX_RANK], y[KILN_MAX_RANK], order_a[KILN_MAX_RANK], order_b[KILN_MAX_RANK];
  int64_t sizes[2 * KILN_MAX_RANK], rows = 1, columns = 1, inner = 1;
  int n, m, free_a = 0, free_b = 0, rank = 0;
  uint64_t used_a = 0, used_b = 0;
  if (!kiln__composite_ok(r, kiln__arg_int_list(args, 2, x, &n)) ||
      !kiln__composite_ok(r, kiln__arg_int_list(args, 3, y, &m))) {
    return NULL;
  }
  if (n != m) FAIL(r, "both dimension lists should have same length");
  for (int i = 0; i < n && !r->status; i++) {
    const int dx = kiln__composite_dim(r, x[i], ra), dy = kiln__composite_dim(r, y[i], rb);
    KILN_ASSERT(dx >= 0 && dy >= 0);
    const int64_t p = kiln__composite_size(a, dx), q = kiln__composite_size(b, dy);
    if (p != 1 && q != 1 && p != q) {
      FAIL(r,
           "contracted dimensions need to match, but first has size %lld in dim %d "
           "and second has size %lld in dim %d",
           (long long)p, dx, (long long)q, dy);
    }
    if ((used_a >> dx & 1) || (used_b >> dy & 1)) {
      FAIL(r, "dim %d appears multiple times in the list of dims", dx);
    }
    used_a |= 1ull << dx;
    used_b |= 1ull << dy;
    x[i] = dx;
    y[i] = dy;
    if (p != q) { /* broadcast: the sum of the other alone */
      kiln_tensor **wide = p == 1 ? &b : &a;
      *wide = KILN_STEP(r, sum_dim, T(*wide), INTS(p == 1 ? dy : dx), B(true),
                        I(kiln__composite_dtype(*wide)));
    } else {
      inner *= p;
    }
  }
  if (r->status) return NULL;
  for (int d = 0; d < ra; d++) {
    if (used_a >> d & 1) continue;
    order_a[free_a++] = d;
    sizes[rank++] = kiln__composite_size(a, d);
    rows *= kiln__composite_size(a, d);
  }
  for (int d = 0; d < rb; d++) {
    if (used_b >> d & 1) continue;
    order_b[n + free_b++] = d;
    sizes[rank++] = kiln__composite_size(b, d);
    columns *= kiln__composite_size(b, d);
  }
  for (int i = 0; i < n; i++) {
    order_a[free_a + i] = x[i];
    order_b[i] = y[i];
  }
  if (rank > KILN_MAX_RANK) return FAIL(r, "tensordot: too many dimensions");
  a = KILN_STEP(r, permute, T(a), kiln__composite_ints(r, ra, order_a));
  b = KILN_STEP(r, permute, T(b), kiln__composite_ints(r, rb, order_b));
  a = kiln__composite_reshape(r, a, 2, (const int64_t[]){rows, inner});
  b = kiln__composite_reshape(r, b, 2, (const int64_t[]){inner, columns});
  return kiln__composite_reshape(r, KILN_STEP(r, mm, T(a), T(b)), rank, sizes);
}
KILN_COMPOSITE(inner) {
  kiln_tensor *a = SELF, *b = ARG(1);
  const int ra = kiln_tensor_rank(a), rb = kiln_tensor_rank(b);
  int64_t sizes[2 * KILN_MAX_RANK];
  int rank = 0;
  if (ra == 0 || rb == 0) return KILN_STEP(r, mul, T(a), T(b));
  const int64_t k = kiln__composite_size(a, -1);
  if (k != kiln__composite_size(b, -1)) {
    return FAIL(r,
                "inner() the last dimension must match on both input tensors but "
                "got shapes with last dimensions %lld and %lld",
                (long long)k, (long long)kiln__composite_size(b, -1));
  }
  int64_t rows = 1, columns = 1;
  for (int d = 0; d + 1 < ra; d++) rows *= sizes[rank++] = kiln__composite_size(a, d);
  for (int d = 0; d + 1 < rb; d++) columns *= sizes[rank++] = kiln__composite_size(b, d);
  if (rank > KILN_MAX_RANK) return FAIL(r, "inner: too many dimensions");
  a = kiln__composite_reshape(r, a, 2, (const int64_t[]){rows, k});
  b = kiln__composite_reshape(r, b, 2, (const int64_t[]){columns, k});
  b = KILN_STEP(r, transpose, T(b), I(0), I(1));
  return kiln__composite_reshape(r, KILN_STEP(r, mm, T(a), T(b)), rank, sizes);
}
