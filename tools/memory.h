/* memory.h: the memory plan of a call, in words and as a picture. */
#pragma once

#include <stdio.h>

#include "kiln/debug.h"

/* "140 tensors in 4.13 MB, at most 4.10 MB of them live at once" */
enum { TOOL_MEMORY_WORDS = 160 };
const char *tool_memory_words(char text[TOOL_MEMORY_WORDS], const kiln_debug_memory *memory);
/* Draws tensors over time as SVG: a rectangle each, from when it is made to when it is let go, at
 * the place where it lies. */
kiln_status *tool_memory_draw(kiln_instance *instance, FILE *out);
