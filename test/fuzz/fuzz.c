/* fuzz.c: what the targets share. */
#include "test/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>

void fuzz_must(kiln_status *status) {
  if (!status) return;
  fprintf(stderr, "%s\n", kiln_status_report(status));
  abort();
}

void fuzz_may(kiln_status *status) {
  if (kiln_status_code(status) == KILN_INTERNAL) fuzz_must(status);
  kiln_status_destroy(status);
}
