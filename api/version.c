/* version.c: which Kiln this is. */
#include "kiln/kiln.h"

const char *kiln_version(void) { return KILN_VERSION_STRING; }
int kiln_version_number(void) { return KILN_VERSION_NUMBER; }
