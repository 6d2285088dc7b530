/* wishes.c: what a guard asks of symbols beside types (3 <= s0): what shape functions and lowering
 * could not prove, and what is so now (region.h). */
#include "guards/region.h"

static kiln_dims *dims_of(const kiln_region *r) {
  return kiln_type_table_dims(r->pass->graph->types);
}

/* Makes room for an order more where others, but for the first `kept`, say what the rest says. */
static void drop_implied(kiln_region *r, int kept) {
  kiln_dims *dims = dims_of(r);
  if (r->checks.order_count < KILN_DIMS_ASSUMED) return;
  r->checks.order_count = kiln_dims_drop_implied(dims, kept);
  for (int i = kept; i < r->checks.order_count; i++)
    r->checks.orders[i] = kiln_dims_assumed_at(dims, i);
}

/* Wishes [from, end) that are so now; whether there are any. x[:n] has n rows where n is at most
 * the number of x's. */
static bool grant_some(kiln_region *r, const kiln_dim_wishes *wishes, int from, int end, int kept) {
  kiln_dims *dims = dims_of(r);
  const uint64_t bound = kiln__symbols_bound(&r->checks);
  bool any = false;
  for (int i = from; r->symbols && i < end; i++) {
    const kiln_dim_order order = wishes->all[i];
    const uint64_t symbols =
        kiln_dim_symbols(dims, order.less) | kiln_dim_symbols(dims, order.more);
    if (symbols & ~bound || !kiln__symbols_hold(r->symbols, r->pass->scratch, order)) continue;
    const int weaker = kiln_dims_weaker(dims, order);
    if (weaker >= 0) { /* whoever goes back keeps the stronger one */
      kiln_dims_assume_at(dims, weaker, order);
      r->checks.orders[weaker] = order;
    } else {
      drop_implied(r, kept);
      if (!kiln_dims_assume(dims, order)) continue;
      r->checks.orders[r->checks.order_count++] = order;
    }
    any = true;
  }
  return any;
}

bool kiln__region_grant(kiln_region *r, const kiln_dim_wishes *needed, const kiln_dim_wishes *liked,
                        int kept) {
  return grant_some(r, needed, needed->first, needed->count, kept) ||
         grant_some(r, liked, liked->first, liked->count, kept) ||
         grant_some(r, needed, 0, needed->first, kept) ||
         grant_some(r, liked, 0, liked->first, kept);
}
