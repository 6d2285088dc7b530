/* differential.c: the JIT never changes a dtype, a size, a stride, an alias, a bit or an error.
 *
 *   differential [--rounds N] [--seed N] [--only WORDS] [--case SEED] [--wild] [--print]
 *
 * Runs cases (trial.h) of every operator of the table, or of those whose names have the words,
 * until each has given results, N times; or one case again. --wild: cases as the fuzzer has them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/differential/trial.h"

/* Draws until the operator has been run with success, and a few more. */
static void run_op(const trial_op *op, uint64_t seed, int rounds) {
  enum { TRIES = 12 };
  for (int round = 0; round < rounds; round++) {
    for (int attempt = 0; attempt < TRIES; attempt++) {
      draw d = draw_from(seed, (uint64_t)(round * TRIES + attempt));
      for (const char *c = op->name; *c; c++) d = draw_from(d.state, (uint64_t)*c);
      (void)draw_below(&d, 2);
      const trial t = {.op = op, .seed = d.state >> 8 | (seed & DRAW_WILD)};
      if (trial_run(&t) == 1) break;
    }
  }
}

int main(int argc, char **argv) {
  const char *only = "";
  uint64_t seed = 1, one = 0;
  int rounds = 1;
  bool print = false, wild = false;
  for (int i = 1; i < argc; i++) {
    const char *value = i + 1 < argc ? argv[i + 1] : "";
    if (strcmp(argv[i], "--print") == 0) {
      print = true;
    } else if (strcmp(argv[i], "--wild") == 0) {
      wild = true;
    } else {
      if (strcmp(argv[i], "--rounds") == 0) rounds = atoi(value);
      if (strcmp(argv[i], "--seed") == 0) seed = strtoull(value, NULL, 10);
      if (strcmp(argv[i], "--only") == 0) only = value;
      if (strcmp(argv[i], "--case") == 0) one = strtoull(value, NULL, 10);
      i++;
    }
  }
  if (wild) seed |= DRAW_WILD;
  static const kiln_limits none;
  trial_open((seed | one) & DRAW_WILD ? &trial_wild_limits : &none);
  const int count = trial_op_count();
  for (int i = 0; i < count; i++) {
    const trial_op *op = trial_op_at(i);
    if (one && strcmp(op->name, only) == 0) {
      trial_run(&(trial){.op = op, .seed = one, .print = print});
    } else if (!one && strstr(op->name, only)) {
      run_op(op, seed, rounds);
    }
  }
  const trial_counts c = trial_counted;
  printf("seed %llu: %d operators, %d cases, %d with results, %d not built, %llu compiled runs, "
         "%d found\n",
         (unsigned long long)seed, count, c.cases, c.succeeded, c.unbuilt,
         (unsigned long long)c.compiled_runs, c.found);
  trial_close();
  /* A run of the whole table in which nothing was compiled would have tested nothing. */
  return c.found > 0 || (!*only && (c.succeeded < count / 2 || c.compiled_runs < 1000));
}
