/* tiles.h: products in blocks (blocked.h) whose factors are rounded to bf16, by tiles of 16 x 16
 * sums, of pairs: AMX's instructions (Intel SDM, volume 2, TDPBF16PS). A CPU without them computes
 * the same bits in C, for tests. */
#pragma once

#include "runtime/kernels/heavy/blocked.h"

enum { KILN_TILE_SIDE = 16, KILN_TILE_PAIRS = 16 /* that one instruction sums over */ };

/* Form KILN_BLOCKED_TILES' kernels; where the CPU has tiles, by them, once the system has let this
 * process use them. NULL: it does not let it. Any thread; asks once. A process that asked needs
 * larger stacks for signals (AT_MINSIGSTKSZ). */
const kiln_blocked_kernels *kiln_tiles_kernels(void);
/* The kernels in C. */
extern const kiln_blocked_kernels kiln__tiles_portable;
