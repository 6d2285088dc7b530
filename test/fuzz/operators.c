/* operators.c: the target of single operators. An input is a case of the differential test
 * (test/differential/trial.h), "aten::topk 17084474804382554": its operator and its seed, and with
 * a third word its edges; `kiln`'s own tests run it again by that. Calls are under kiln_limits. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/differential/trial.h"
#include "test/fuzz/mutate.h"

static void open_trials(void) {
  if (trial_op_count() == 0) trial_open(&trial_wild_limits);
}

void fuzz_operators(const uint8_t *data, size_t size) {
  static int runs;
  char text[256], *end = NULL;
  if (size >= sizeof text) return;
  memcpy(text, data, size);
  text[size] = '\0';
  const size_t name = strcspn(text, " ");
  if (text[name]) text[name] = '\0';
  const uint64_t seed = name < size ? strtoull(text + name + 1, &end, 10) : 0;
  open_trials();
  const draw_op *op = trial_find(text);
  if (!op) return;
  trial t = {.op = op, .seed = seed, .no_llvm = seed % 8 != 0};
  if (end && *end == ' ') trial_take_edges(&t, end + 1);
  trial_run(&t);
  if (trial_counted.found > 0) abort();
  if (++runs % 4096 == 0) trial_close();
}

/* Another seed, or that and another operator; most cases are wild. */
size_t fuzz_mutate_operator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
  char text[256];
  draw d = draw_from(seed, 0xf022);
  open_trials();
  const uint8_t *space = size > 0 ? memchr(data, ' ', size) : NULL;
  int name = space ? (int)(space - data) : 0;
  const char *chosen = (const char *)data;
  if (name == 0 || name > 200 || draw_below(&d, 4) == 0) {
    chosen = trial_op_at(draw_below(&d, trial_op_count()))->name;
    name = (int)strlen(chosen);
  }
  (void)draw_below(&d, 2);
  const uint64_t wild = draw_below(&d, 8) ? DRAW_WILD : 0;
  const int n = snprintf(text, sizeof text, "%.*s %" PRIu64, name, chosen, d.state >> 8 | wild);
  if (n < 0 || (size_t)n > max_size) return size;
  memcpy(data, text, (size_t)n);
  return (size_t)n;
}
