/* version.c: which Kiln this is. */
#include "kiln/kiln.h"

const char *kiln_version(void) { return KILN_VERSION; }
