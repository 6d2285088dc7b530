/* layouts.h: between fusion_product.c, layouts.c and borders.c. */
#pragma once

#include "guards/guards.h"

/* Whether values of so many dimensions may have channels last: images and volumes, as PyTorch has
 * formats of them. */
static inline bool kiln__may_lie_last(int rank) { return rank == 4 || rank == 5; }

/* Of a block behind a guard, whose layouts were found: zeros around images of convolutions. */
void kiln__lay_borders(kiln_pass *pass, kiln_block *block);
