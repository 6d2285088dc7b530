/* aot.c: a program of `kiln compile` alone: from its start to its first answer, steady calls,
 * memory.
 *
 *     aot WEIGHTS CALLS DIMENSIONS...     "f32 1 256" or "i64 1 32" for each input
 *
 * Compiled by bench/aot.py for each model. Prints microseconds of the open, of the first call, of
 * the median call, and KB of the process at its largest. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "model.h"

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}
static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}
static void check(kiln_status *status) {
  if (!status) return;
  fprintf(stderr, "%s\n", kiln_status_report(status));
  exit(1);
}

/* Of this program: what getrusage tells begins with who started it. */
static long peak_kb(void) {
  char line[256];
  long kb = 0;
  FILE *file = fopen("/proc/self/status", "r");
  while (file && fgets(line, sizeof line, file))
    if (strncmp(line, "VmHWM:", 6) == 0) kb = strtol(line + 6, NULL, 10);
  if (file) fclose(file);
  return kb;
}

int main(int argc, char **argv) {
  kiln_aot_tensor inputs[MODEL_INPUTS + 1] = {0}, outputs[MODEL_OUTPUTS + 1] = {0};
  static const size_t bytes[] = {MODEL_OUTPUT_BYTES};
  kiln_aot_model *model;
  int n = -1;
  for (int i = 3; i < argc; i++) {
    if (strcmp(argv[i], "f32") == 0 || strcmp(argv[i], "i64") == 0) {
      inputs[++n].dtype = *argv[i] == 'f' ? KILN_DTYPE_F32 : KILN_DTYPE_I64;
    } else {
      inputs[n].sizes[inputs[n].rank++] = atoll(argv[i]);
    }
  }
  for (int i = 0; i <= n; i++) {
    size_t count = 1;
    for (int d = 0; d < inputs[i].rank; d++) count *= (size_t)inputs[i].sizes[d];
    inputs[i].data = aligned_alloc(64, (count * 8 + 64) & ~(size_t)63);
    for (size_t k = 0; k < count; k++) {
      if (inputs[i].dtype == KILN_DTYPE_F32)
        ((float *)inputs[i].data)[k] = (float)(k % 17) / 16;
      else
        ((int64_t *)inputs[i].data)[k] = (int64_t)(k % 17);
    }
  }
  for (int i = 0; i < MODEL_OUTPUTS; i++)
    outputs[i] = (kiln_aot_tensor){.data = malloc(bytes[i] + 1), .bytes = bytes[i]};
  const int calls = atoi(argv[2]);
  double *times = calloc((size_t)calls, sizeof *times);
  const double start = now_us();
  check(model_open(argv[1], NULL, &model));
  const double opened = now_us();
  for (int i = 0; i < calls; i++) {
    const double begin = now_us();
    check(model_call(model, inputs, outputs));
    times[i] = now_us() - begin;
  }
  const double first = times[0];
  qsort(times, (size_t)calls, sizeof *times, by_size);
  printf("%.0f %.0f %.1f %ld\n", opened - start, first, times[calls / 2], peak_kb());
  kiln_aot_close(model);
  return 0;
}
