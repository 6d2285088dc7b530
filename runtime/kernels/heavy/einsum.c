/* einsum.c: einsum, and contractions that are one: tensordot, inner.
 *
 * Every operand is seen with one dimension for each label: those of the result in front, those that
 * are summed behind, size 1 where it lacks one. Operands are then contracted from left to right;
 * each pair is one batched product: labels of both that live on are its batch, labels of both that
 * end there its inner dimension. */
#include <ctype.h>
#include <string.h>

#include "runtime/kernels/composite.h"

enum { LETTERS = 52, LABELS = LETTERS + KILN_MAX_RANK };

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
 * dimensions stay with size 1. */
static kiln_tensor *contract(kiln__composite *r, kiln_tensor *a, kiln_tensor *b, uint64_t sum) {
  const int rank = kiln__composite_rank(a);
  roles batch = {0, {0}, 1}, left = batch, right = batch, inner = batch, none = batch;
  int64_t sizes[KILN_MAX_RANK], order[KILN_MAX_RANK], full[KILN_MAX_RANK];
  int n = 0;
  bool summed = false;
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

/* -- Equations -- */

typedef struct equation {
  int ellipsis;       /* dimensions that ... stands for: the most of any operand */
  int count[LABELS];  /* of the operands' subscripts */
  int place[LABELS];  /* in the common order; -1: not there */
  int out_rank, rank; /* of the result; of the common order */
} equation;

static int letter(char c) { return c >= 'a' ? c - 'a' + 26 : c - 'A'; }
/* Reads one operand's subscripts: a label for each of its dimensions, or the number of labels and
 * where the ellipsis stands (-1: nowhere). Ends at ',', '-' or the end. */
static bool read_subscripts(kiln__composite *r, const char **at, int *labels, int *out_count,
                            int *out_ellipsis) {
  *out_count = 0;
  *out_ellipsis = -1;
  for (; **at && **at != ',' && **at != '-'; (*at)++) {
    if (**at == ' ') continue;
    if (**at == '.') {
      if ((*at)[1] != '.' || (*at)[2] != '.' || *out_ellipsis >= 0) {
        return FAIL(r, "einsum(): found '.' that is not part of any ellipsis, or two of them");
      }
      *out_ellipsis = *out_count;
      *at += 2;
    } else if (isalpha((unsigned char)**at) && *out_count < KILN_MAX_RANK) {
      labels[(*out_count)++] = letter(**at);
    } else {
      return FAIL(r, "einsum(): invalid subscript given: %c, subscripts must be in [a-zA-Z]", **at);
    }
  }
  return true;
}
/* Labels of each dimension of an operand of `rank`, the ellipsis put in. */
static bool spread(kiln__composite *r, int rank, const int *labels, int count, int ellipsis,
                   int *out) {
  const int extra = rank - count;
  if (extra < 0 || (extra > 0 && ellipsis < 0)) {
    return FAIL(r,
                "einsum(): the number of subscripts in the equation (%d) does not "
                "match the number of dimensions (%d) for an operand",
                count, rank);
  }
  int n = 0;
  for (int i = 0; i <= count; i++) {
    if (i == ellipsis) {
      for (int k = 0; k < extra; k++) out[n++] = LETTERS + KILN_MAX_RANK - extra + k;
    }
    if (i < count) out[n++] = labels[i];
  }
  return true;
}
/* The result's labels come first, in its order; then the others. */
static bool order_labels(kiln__composite *r, equation *e, const char *arrow) {
  int labels[KILN_MAX_RANK], count, ellipsis;
  for (int i = 0; i < LABELS; i++) e->place[i] = -1;
  e->out_rank = 0;
  if (arrow) {
    if (!read_subscripts(r, &arrow, labels, &count, &ellipsis)) return false;
    for (int i = 0; i <= count; i++) {
      for (int k = e->ellipsis; i == ellipsis && k > 0; k--) e->place[LABELS - k] = e->out_rank++;
      if (i == count) break;
      if (e->count[labels[i]] == 0 || e->place[labels[i]] >= 0) {
        return FAIL(r, "einsum(): output subscript %c %s",
                    (char)(labels[i] < 26 ? 'A' + labels[i] : 'a' + labels[i] - 26),
                    e->count[labels[i]] ? "appears more than once in the output"
                                        : "does not appear in the equation for any input operand");
      }
      e->place[labels[i]] = e->out_rank++;
    }
  } else {
    for (int k = e->ellipsis; k > 0; k--) e->place[LABELS - k] = e->out_rank++;
    for (int i = 0; i < LETTERS; i++) {
      if (e->count[i] == 1) e->place[i] = e->out_rank++;
    }
  }
  e->rank = e->out_rank;
  for (int i = 0; i < LABELS; i++) {
    const bool used = i < LETTERS ? e->count[i] > 0 : i >= LABELS - e->ellipsis;
    if (used && e->place[i] < 0 && e->rank < KILN_MAX_RANK) e->place[i] = e->rank++;
  }
  return true;
}
/* The operand with a dimension for every label; repeated labels are its diagonal. */
static kiln_tensor *place_operand(kiln__composite *r, const equation *e, kiln_tensor *t,
                                  int *labels) {
  int rank = kiln__composite_rank(t);
  for (int i = 0; i < rank; i++) {
    for (int j = i + 1; j < rank; j++) {
      if (labels[i] != labels[j]) continue;
      if (kiln__composite_size(t, i) != kiln__composite_size(t, j)) {
        return FAIL(r,
                    "einsum(): subscript is repeated for an operand but the sizes "
                    "don't match, %lld != %lld",
                    (long long)kiln__composite_size(t, j), (long long)kiln__composite_size(t, i));
      }
      t = KILN_STEP(r, diagonal, T(t), I(0), I(i), I(j));
      const int label = labels[i];
      memmove(labels + j, labels + j + 1, sizeof *labels * (size_t)(rank - j - 1));
      memmove(labels + i, labels + i + 1, sizeof *labels * (size_t)(rank - i - 2));
      rank--;
      labels[rank - 1] = label;
      i = -1;
      break;
    }
  }
  if (!t || r->status) return NULL;
  int64_t sizes[KILN_MAX_RANK], strides[KILN_MAX_RANK];
  for (int d = 0; d < e->rank; d++) sizes[d] = 1, strides[d] = 0;
  for (int d = 0; d < rank; d++) {
    sizes[e->place[labels[d]]] = kiln_tensor_sizes(t)[d];
    strides[e->place[labels[d]]] = kiln_tensor_strides(t)[d];
  }
  kiln_tensor *view;
  if (!kiln__composite_ok(
          r, kiln_tensor_view(&r->call->cache, t, e->rank, sizes, strides, t->offset, &view))) {
    return NULL;
  }
  return kiln__composite_keep(r, view);
}
/* Contracts the placed operands; takes labels away as soon as no later operand has them. */
static kiln_tensor *contract_all(kiln__composite *r, const equation *e, int64_t count,
                                 kiln_tensor **operands) {
  kiln_tensor *now = operands[0];
  for (int64_t i = 1; i < count && !r->status; i++) {
    uint64_t sum = 0;
    for (int d = e->out_rank; d < e->rank; d++) {
      bool later = false;
      for (int64_t k = i + 1; k < count; k++) later |= kiln__composite_size(operands[k], d) != 1;
      if (!later) sum |= 1ull << d;
    }
    now = contract(r, now, operands[i], sum);
  }
  if (count == 1) {
    for (int d = e->out_rank; d < e->rank; d++) {
      now = KILN_STEP(r, sum_dim, T(now), INTS(d), B(true), NONE);
    }
  }
  if (r->status || e->rank == e->out_rank) return now;
  return kiln__composite_reshape(r, now, e->out_rank, kiln_tensor_sizes(now));
}
/* Sizes of a letter are equal, or 1; seen[label] - 1 is what it has so far. */
static bool check_sizes(kiln__composite *r, const kiln_tensor *t, int operand, const int *labels,
                        int64_t *seen) {
  for (int d = 0; d < kiln_tensor_rank(t); d++) {
    const int64_t n = kiln_tensor_sizes(t)[d], had = seen[labels[d]] - 1;
    if (labels[d] < LETTERS && had >= 0 && had != 1 && n != 1 && n != had) {
      return FAIL(r,
                  "einsum(): subscript %c has size %lld for operand %d which does "
                  "not broadcast with previously seen size %lld",
                  (char)(labels[d] < 26 ? 'A' + labels[d] : 'a' + labels[d] - 26), (long long)n,
                  operand, (long long)had);
    }
    if (had < 0 || had == 1) seen[labels[d]] = n + 1;
  }
  return true;
}
KILN_COMPOSITE(einsum) {
  const kiln_str text = kiln_arg_str(args, 0);
  const kiln_list *list = kiln_arg_list(args, 1);
  equation e = {0};
  enum { MAX_OPERANDS = 32 };
  int labels[MAX_OPERANDS][KILN_MAX_RANK];
  kiln_tensor *operands[MAX_OPERANDS];
  const char *at = text.data, *arrow = NULL;
  int64_t seen[LABELS] = {0};
  if (list->count < 1 || list->count > MAX_OPERANDS) {
    return FAIL(r, "einsum(): must provide at least one operand, and at most %d",
                (int)MAX_OPERANDS);
  }
  for (int64_t i = 0; i < list->count; i++) {
    int own[KILN_MAX_RANK], count, ellipsis;
    kiln_tensor *t = list->items[i].u.tensor;
    const int rank = kiln_tensor_rank(t);
    if (i > 0 && *at++ != ',') {
      return FAIL(r, "einsum(): more operands were provided than specified in the equation");
    }
    if (!read_subscripts(r, &at, own, &count, &ellipsis) ||
        !spread(r, rank, own, count, ellipsis, labels[i])) {
      return NULL;
    }
    for (int k = 0; k < count; k++) e.count[own[k]]++;
    if (!check_sizes(r, t, (int)i, labels[i], seen)) return NULL;
    if (rank - count > e.ellipsis) e.ellipsis = rank - count;
    operands[i] = t;
  }
  if (*at == '-' && at[1] == '>') {
    arrow = at + 2;
  } else if (*at) {
    return FAIL(r, "einsum(): fewer operands were provided than specified in the equation");
  }
  if (!order_labels(r, &e, arrow)) return NULL;
  for (int64_t i = 0; i < list->count; i++)
    operands[i] = place_operand(r, &e, operands[i], labels[i]);
  kiln_tensor *result = r->status ? NULL : contract_all(r, &e, list->count, operands);
  return result;
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
