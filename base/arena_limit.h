/* arena_limit.h: a bound on what an arena lends out, for arenas in which the size of what is made
 * follows from what a model says. Beyond it, the arena is out of memory. */
#pragma once

#include "base/arena.h"

/* Bytes since the last reset, roughly (whole blocks); 0: any. */
void kiln_arena_set_limit(kiln_arena *arena, size_t bytes);
/* True when an allocation has failed for it since it was set. */
bool kiln_arena_limit_met(const kiln_arena *arena);
