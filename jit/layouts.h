/* layouts.h: between layouts.c and borders.c. */
#pragma once

#include "guards/guards.h"

/* Of a block behind a guard, whose layouts were found: zeros around images of convolutions. */
void kiln__lay_borders(kiln_pass *pass, kiln_block *block);
