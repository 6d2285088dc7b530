/* tiles.h: products in blocks (blocked.h) whose factors are rounded to bf16, by tiles of 16 x 16
 * sums, of pairs: AMX's instructions (Intel SDM, volume 2, TDPBF16PS). The same
 * bits can be computed in C, for tests. */
#pragma once

#include "runtime/kernels/heavy/blocked.h"

enum { KILN_TILE_SIDE = 16, KILN_TILE_PAIRS = 16 /* that one instruction sums over */ };

/* Pairs of a depth, up to whole tiles. */
static inline int64_t kiln_tile_pairs(int64_t depth) {
  return (depth / (2 * KILN_TILE_PAIRS) + (depth % (2 * KILN_TILE_PAIRS) > 0)) * KILN_TILE_PAIRS;
}

/* Of the forms KILN_BLOCKED_TILES, for processes that have taken them (kiln_isa_take_tiles), and
 * KILN_BLOCKED_TILES_IN_C. */
extern const kiln_blocked_kernels kiln_tiles_amx, kiln_tiles_in_c;
