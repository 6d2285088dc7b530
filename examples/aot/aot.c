/* aot.c: a model without its archive, a compiler or libkiln: handwritten digits, read by what
 * `kiln compile` has made of examples/digits/digits.pt.
 *
 *   kiln compile digits.pt --input 1x1x8x8xf32 --symbolic --general -o .
 *   cc aot.c digits.o -lkiln-aot -lm -lpthread -o aot
 *   ./aot digits.weights < picture
 *
 * A picture is eight lines of eight characters, from a space or '.' for paper to '#' for ink. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "digits.h"

enum { SIDE = 8, CLASSES = 10 };

static void check(kiln_status *status, const char *what) {
  if (!status) return;
  fprintf(stderr, "aot: %s: %s\n", what, kiln_status_report(status));
  exit(1);
}

/* How dark a character is, from 0 to 1. */
static float ink(char c) {
  static const char dark[] = ".:-=+*%#";
  const char *at = strchr(dark, c);
  return at && *at ? (float)(at - dark) / (float)(sizeof dark - 2) : 0;
}

static void read_picture(float pixels[SIDE][SIDE]) {
  char line[256];
  for (int y = 0; y < SIDE && fgets(line, sizeof line, stdin); y++)
    for (int x = 0; x < SIDE && line[x] && line[x] != '\n'; x++) pixels[y][x] = ink(line[x]);
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: aot digits.weights < picture\n");
    return 1;
  }
  kiln_aot_model *model;
  check(digits_open(argv[1], NULL, &model), argv[1]);

  float pixels[SIDE][SIDE] = {{0}}, probabilities[CLASSES];
  int64_t readings = 0;
  read_picture(pixels);
  const kiln_aot_tensor picture = {
      .data = pixels, .dtype = KILN_DTYPE_F32, .rank = 4, .sizes = {1, 1, SIDE, SIDE}};
  kiln_aot_tensor outputs[DIGITS_OUTPUTS] = {
      {.data = probabilities, .bytes = sizeof probabilities},
      {.data = &readings, .bytes = sizeof readings},
  };
  check(digits_call(model, &picture, outputs), "call");

  int best = 0;
  for (int i = 1; i < CLASSES; i++)
    if (probabilities[i] > probabilities[best]) best = i;
  printf("%d, %.0f %% sure after %lld reading%s\n", best, 100.0 * (double)probabilities[best],
         (long long)readings, readings == 1 ? "" : "s");
  kiln_aot_close(model);
  return 0;
}
