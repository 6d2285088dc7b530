/* order.c: sorting of numbers by their keys.
 *
 * Where a caller does not ask for a stable order, PyTorch sorts with libstdc++'s std::sort,
 * std::partial_sort and std::nth_element, and models see where equal elements end. These are the
 * same steps: introsort (Musser, 1997) with the median of three moved to the front, runs of 16 left
 * to one insertion sort, heapsort where the recursion is deeper than 2 log2(n); introselect; a heap
 * of the first elements. */
#include "runtime/kernels/reduce/order.h"

#include <string.h>

#include "base/budget.h"

enum { SHORT = 16 };

void kiln__order_stable(const kiln__keys *k, int64_t *order, int64_t *spare, int64_t n) {
  int64_t left = KILN_BUDGET_ITEMS; /* not k->left: in a register */
  for (int64_t width = 1; width < n; width *= 2) {
    for (int64_t from = 0; from < n; from += 2 * width) {
      int64_t middle = from + width < n ? from + width : n;
      int64_t end = from + 2 * width < n ? from + 2 * width : n, a = from, b = middle;
      for (int64_t i = from; i < end; i++) {
        if (kiln_budget_spent(&left, 2)) return;
        bool right = a >= middle || (b < end && kiln__keys_before(k, order[b], order[a]));
        spare[i] = right ? order[b++] : order[a++];
      }
    }
    memcpy(order, spare, sizeof(int64_t) * (size_t)n);
  }
}

static inline void swap(int64_t *a, int64_t *b) {
  const int64_t kept = *a;
  *a = *b;
  *b = kept;
}

/* -- Heaps: no element comes before its children -- */

static void sift(const kiln__keys *k, int64_t *heap, int64_t hole, int64_t n, int64_t value) {
  const int64_t top = hole;
  int64_t child = hole;
  while (child < (n - 1) / 2) { /* down to a leaf, the later child first */
    child = 2 * (child + 1);
    if (kiln__keys_before(k, heap[child], heap[child - 1])) child--;
    heap[hole] = heap[child];
    hole = child;
  }
  if (n % 2 == 0 && child == (n - 2) / 2) { /* an only child */
    child = 2 * child + 1;
    heap[hole] = heap[child];
    hole = child;
  }
  while (hole > top) { /* and up to its place */
    const int64_t parent = (hole - 1) / 2;
    if (!kiln__keys_before(k, heap[parent], value)) break;
    heap[hole] = heap[parent];
    hole = parent;
  }
  heap[hole] = value;
}
/* The heap's top goes to *to, whose element comes into the heap. */
static void exchange_top(const kiln__keys *k, int64_t *heap, int64_t n, int64_t *to) {
  const int64_t value = *to;
  *to = heap[0];
  sift(k, heap, 0, n, value);
}
/* The first `count` of n are a heap of those that come first. */
static void heap_first(const kiln__keys *k, int64_t *order, int64_t count, int64_t n) {
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = count / 2 - 1; i >= 0 && !kiln_budget_spent(&left, 16); i--) {
    sift(k, order, i, count, order[i]);
  }
  for (int64_t i = count; i < n && !kiln_budget_spent(&left, 2); i++) {
    if (kiln__keys_before(k, order[i], order[0])) exchange_top(k, order, count, order + i);
  }
}
static void partial_sort(const kiln__keys *k, int64_t *order, int64_t count, int64_t n) {
  heap_first(k, order, count, n);
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = count - 1; i > 0 && !kiln_budget_spent(&left, 64); i--) {
    exchange_top(k, order, i, order + i);
  }
}

/* -- Partitions -- */

static __attribute__((noinline)) void insertion_sort(const kiln__keys *k, int64_t *order,
                                                     int64_t from, int64_t n) {
  for (int64_t i = from; i < n; i++) {
    const int64_t value = order[i];
    int64_t at = i;
    while (at > 0 && kiln__keys_before(k, value, order[at - 1])) order[at] = order[at - 1], at--;
    order[at] = value;
  }
}
/* Of the second, the middle and the last element the median becomes the first. */
static void median_to_front(const kiln__keys *k, int64_t *order, int64_t n) {
  int64_t *a = order + 1, *b = order + n / 2, *c = order + n - 1;
  const bool ab = kiln__keys_before(k, *a, *b), bc = kiln__keys_before(k, *b, *c);
  const bool ac = kiln__keys_before(k, *a, *c);
  if (ab)
    swap(order, bc ? b : ac ? c : a);
  else
    swap(order, ac ? a : bc ? c : b);
}
/* Around that median: where the second part begins. A call within the loop costs a tenth. */
static inline __attribute__((always_inline)) int64_t partition_by(const kiln__keys *k,
                                                                  int64_t *order, int64_t n,
                                                                  bool looks) {
  int64_t low = 1, high = n, left = KILN_BUDGET_ITEMS;
  median_to_front(k, order, n);
  for (;; low++) {
    while (kiln__keys_before(k, order[low], order[0])) low++;
    high--;
    while (kiln__keys_before(k, order[0], order[high])) high--;
    if (low >= high || (looks && kiln_budget_spent(&left, 8))) return low;
    swap(order + low, order + high);
  }
}
static __attribute__((noinline)) int64_t partition_short(const kiln__keys *k, int64_t *order,
                                                         int64_t n) {
  return partition_by(k, order, n, false);
}
static __attribute__((noinline)) int64_t partition_long(const kiln__keys *k, int64_t *order,
                                                        int64_t n) {
  return partition_by(k, order, n, true);
}
static int64_t partition(const kiln__keys *k, int64_t *order, int64_t n) {
  return (n > 32 * KILN_BUDGET_ITEMS ? partition_long : partition_short)(k, order, n);
}
static int depth_of(int64_t n) { return 2 * (63 - __builtin_clzll((unsigned long long)n)); }
static void introsort(const kiln__keys *k, int64_t *order, int64_t n, int depth) {
  for (; n > SHORT && !kiln_budget_spent(k->left, n); depth--) {
    if (depth == 0) {
      partial_sort(k, order, n, n);
      return;
    }
    const int64_t cut = partition(k, order, n);
    introsort(k, order + cut, n - cut, depth - 1);
    n = cut;
  }
}
void kiln__order_quick(const kiln__keys *k, int64_t *order, int64_t n) {
  if (n < 2) return;
  introsort(k, order, n, depth_of(n));
  const int64_t piece = KILN_BUDGET_ITEMS / SHORT;
  for (int64_t i = 1, end; i < n && !kiln_budget_spent(k->left, piece); i = end) {
    end = n - i < piece ? n : i + piece; /* quick only where all else is done */
    insertion_sort(k, order, i, end);
  }
}
/* Element `nth` comes to its place, those before it before it. */
static void introselect(const kiln__keys *k, int64_t *order, int64_t nth, int64_t n) {
  for (int depth = depth_of(n); n > 3; depth--) {
    if (depth == 0) {
      heap_first(k, order, nth + 1, n);
      swap(order, order + nth);
      return;
    }
    if (kiln_budget_spent(k->left, n)) return;
    const int64_t cut = partition(k, order, n);
    if (cut <= nth)
      order += cut, nth -= cut, n -= cut;
    else
      n = cut;
  }
  insertion_sort(k, order, 1, n);
}
void kiln__order_first(const kiln__keys *k, int64_t *order, int64_t n, int64_t count, bool sorted) {
  if (count <= n / 64) {
    partial_sort(k, order, count, n);
    return;
  }
  introselect(k, order, count - 1, n);
  if (sorted) kiln__order_quick(k, order, count - 1);
}
