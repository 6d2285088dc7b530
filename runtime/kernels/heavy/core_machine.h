/* core_machine.h: what the choices and plans of the core's own kernels read of a machine. */
#pragma once

#include <stdint.h>

/* Products of tiles of bf16: AMX's instructions, or the same bits in C, for tests. */
typedef enum kiln_tiles { KILN_TILES_NONE, KILN_TILES_IN_C, KILN_TILES_AMX } kiln_tiles;

typedef struct kiln_core_machine {
  int lanes; /* floats of a vector */
  int ports; /* fused products of vectors that begin in a cycle */
  int64_t l1_bytes, l2_bytes, l3_bytes;
  kiln_tiles tiles;
} kiln_core_machine;
