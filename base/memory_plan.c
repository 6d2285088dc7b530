/* memory_plan.c: where blocks lie in one block: the best of some greedy orders. */
#include "base/memory_plan.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

/* -- Orders -- */

static int falling(uint64_t x, uint64_t y) { return x > y ? -1 : x < y; }
static int by_start(const void *a, const void *b) {
  const kiln_lifetime *x = a, *y = b;
  return x->from != y->from ? falling(y->from, x->from) : falling(x->size, y->size);
}
static int by_size(const void *a, const void *b) {
  const kiln_lifetime *x = a, *y = b;
  return x->size != y->size ? falling(x->size, y->size) : by_start(a, b);
}
static uint64_t area_of(const kiln_lifetime *b) { return (uint64_t)b->size * (b->to - b->from); }
static int by_area(const void *a, const void *b) {
  const uint64_t x = area_of(a), y = area_of(b);
  return x != y ? falling(x, y) : by_start(a, b);
}
static int (*const orders[])(const void *, const void *) = {by_size, by_area, by_start};

/* -- Places -- */

static bool are_together(const kiln_lifetime *a, const kiln_lifetime *b) {
  return a->from < b->to && b->from < a->to;
}

/* Sets `tried` of each in turn; returns the units that all together take up. */
static uint32_t place(kiln_lifetime *blocks, int count) {
  uint32_t all = 0;
  int first = -1, next[KILN_MEMORY_PLAN_MOST]; /* those that have a place, in that order */
  for (int i = 0; i < count; i++) {
    kiln_lifetime *b = &blocks[i];
    uint32_t end = 0, tightest = UINT32_MAX;
    for (int k = first; k >= 0; k = next[k]) {
      const kiln_lifetime *placed = &blocks[k];
      if (!are_together(b, placed)) continue;
      if (placed->tried >= end + b->size && placed->tried - end < tightest) {
        tightest = placed->tried - end;
        b->tried = end;
      }
      if (placed->tried + placed->size > end) end = placed->tried + placed->size;
    }
    if (tightest == UINT32_MAX) b->tried = end;
    int *link = &first;
    while (*link >= 0 && blocks[*link].tried < b->tried) link = &next[*link];
    next[i] = *link;
    *link = i;
    if (b->tried + b->size > all) all = b->tried + b->size;
  }
  return all;
}

/* The most units that are lent at once: of any time that is one when a block is lent. */
static uint32_t bound_of(const kiln_lifetime *blocks, int count) {
  uint32_t most = 0;
  for (int i = 0; i < count; i++) {
    uint32_t lent = 0;
    for (int k = 0; k < count; k++)
      if (blocks[k].from <= blocks[i].from && blocks[i].from < blocks[k].to) lent += blocks[k].size;
    if (lent > most) most = lent;
  }
  return most;
}

/* The one that lies highest goes first. */
static void raise_highest(kiln_lifetime *blocks, int count) {
  int highest = 0;
  for (int i = 0; i < count; i++)
    if (blocks[i].tried + blocks[i].size > blocks[highest].tried + blocks[highest].size)
      highest = i;
  const kiln_lifetime first = blocks[highest];
  memmove(blocks + 1, blocks, sizeof *blocks * (size_t)highest);
  blocks[0] = first;
}

uint32_t kiln_memory_plan(kiln_lifetime *blocks, int count) {
  enum { ORDERS = sizeof orders / sizeof *orders, TRIES = 64, STEPS = 1 << 20 };
  if (count == 0) return 0;
  const uint32_t bound = bound_of(blocks, count);
  uint32_t least = UINT32_MAX;
  KILN_ASSERT(count <= KILN_MEMORY_PLAN_MOST);
  for (int k = 0; k < ORDERS + TRIES && least > bound; k++) {
    if (k >= ORDERS && k * count * count > STEPS) break;
    if (k < ORDERS) {
      qsort(blocks, (size_t)count, sizeof *blocks, orders[k]);
    } else {
      raise_highest(blocks, count);
    }
    const uint32_t all = place(blocks, count);
    if (all >= least) continue;
    least = all;
    for (int i = 0; i < count; i++) blocks[i].at = blocks[i].tried;
  }
  return least;
}
