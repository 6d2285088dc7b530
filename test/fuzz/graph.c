/* graph.c: the target of IR text: any bytes are a graph or a status; a graph that verifies prints
 * as text that parses and prints the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/debug.h"
#include "test/fuzz/fuzz.h"

void fuzz_graph(const uint8_t *data, size_t size) {
  static kiln_context *context;
  static int runs;
  char *first = NULL, *second = NULL;
  if (!context) fuzz_must(kiln_context_create(NULL, &context));
  size_t before = kiln_context_bytes(context);
  kiln_status *status = kiln_debug_opt(context, (const char *)data, size, "", 3, &first);
  bool good = !status;
  fuzz_may(status);
  if (good) {
    fuzz_must(kiln_debug_opt(context, first, strlen(first), "", 3, &second));
    if (strcmp(first, second) != 0) {
      fprintf(stderr, "printed:\n%s\nparsed and printed again:\n%s\n", first, second);
      abort();
    }
  }
  kiln_text_free(first);
  kiln_text_free(second);
  if (kiln_context_bytes(context) > before + (1 << 20)) abort();
  if (++runs % 4096 == 0) {
    kiln_context_release(context);
    context = NULL;
  }
}
