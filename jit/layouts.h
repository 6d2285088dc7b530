/* layouts.h: how values lie in memory: what the passes around layouts.c ask of it, and borders.c.
 */
#pragma once

#include "guards/guards.h"
#include "runtime/strides.h"

/* Whether strides are PyTorch's for that order of the dimensions, and no other layout is said. */
bool kiln__is_row_major(kiln_dims *dims, const kiln_tensor_detail *t);
/* The same of images and volumes with channels last. */
bool kiln__is_channels_last(kiln_dims *dims, const kiln_tensor_detail *t);

/* Whether a view has all elements of it, as far as types tell. */
bool kiln__has_all_of(const kiln_ir_value *view, const kiln_ir_value *v);

/* Of a block behind a guard, whose layouts were found: zeros around images of convolutions. */
void kiln__lay_borders(kiln_pass *pass, kiln_block *block);
