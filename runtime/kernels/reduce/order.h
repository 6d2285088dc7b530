/* order.h: the order of numbers by their keys, ties as PyTorch leaves them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct kiln__keys {
  const int64_t *whole; /* one of the two */
  const double *real;   /* NaN is the greatest */
  bool descending;
  int64_t *left; /* of kiln_budget_spent; what is left out leaves an order all the same */
} kiln__keys;

static inline bool kiln__keys_before(const kiln__keys *k, int64_t a, int64_t b) {
  if (k->descending) {
    int64_t swap = a;
    a = b;
    b = swap;
  }
  if (k->whole) return k->whole[a] < k->whole[b];
  const double x = k->real[a], y = k->real[b];
  return x < y || (y != y && x == x);
}

/* `order` holds n numbers of keys; `spare` room for n more. */
void kiln__order_stable(const kiln__keys *k, int64_t *order, int64_t *spare, int64_t n);
/* As std::sort of libstdc++ moves them. */
void kiln__order_quick(const kiln__keys *k, int64_t *order, int64_t n);
/* The first `count` (1 to n) in order, the others behind them, as PyTorch's topk finds them: by
 * std::partial_sort or std::nth_element; without `sorted` the latter's order is left. */
void kiln__order_first(const kiln__keys *k, int64_t *order, int64_t n, int64_t count, bool sorted);
