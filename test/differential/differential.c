/* differential.c: the JIT never changes a dtype, a size, a stride, an alias, a bit or an error.
 *
 *   differential [--rounds N] [--seed N] [--only WORDS] [--part I/N] [--wild] [--edges] [--list]
 *                [--no-llvm]
 *   differential --only OPERATOR --case SEED [--edge EDGE] [--print]
 *
 * Runs cases (trial.h) of every operator of the table, or of those whose names have the words,
 * until each has given results, N times; or one case again. --wild: cases as the fuzzer has them.
 * --edges: each argument of a case that gave results becomes each edge of its type, one after the
 * other, then some of them some; --edge 2.0.0.0 is the second choice and the first edge, 0.0.1.3
 * the first tensor and the fourth edge (trial.h). --list names each before it runs; --no-llvm: in
 * the interpreter and the evaluator alone, ten times as fast. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/differential/trial.h"

/* Each edge in the place of each choice and tensor of the last case, `t`, and of all tensors; then
 * some in the places of some. */
static void run_edges(trial t) {
  enum { MIXED = 4 };
  const int choices = trial_counted.choices, tensors = trial_counted.tensors;
  for (t.at = 1; t.at <= choices; t.at++) {
    for (t.which = 0; t.which < DRAW_EDGES; t.which++) trial_run(&t);
  }
  t.at = t.which = 0;
  for (t.tensor = tensors > 1 ? -1 : 1; t.tensor <= tensors; t.tensor++) {
    for (t.other = 0; t.tensor && t.other < DRAW_TENSOR_EDGES; t.other++) trial_run(&t);
  }
  draw d = draw_from(t.seed, 0xed);
  t.at = -1;
  for (t.which = 0; t.which < MIXED * (choices + tensors); t.which++) {
    t.tensor = draw_below(&d, tensors + 2) - 1;
    t.other = draw_below(&d, DRAW_TENSOR_EDGES);
    trial_run(&t);
  }
}

/* Draws until the operator has been run with success, and a few more; t.seed decides. */
static void run_op(trial t, int rounds) {
  enum { TRIES = 12 };
  const uint64_t seed = t.seed;
  for (int round = 0; round < rounds; round++) {
    for (int attempt = 0; attempt < TRIES; attempt++) {
      draw d = draw_from(seed, (uint64_t)(round * TRIES + attempt));
      for (const char *c = t.op->name; *c; c++) d = draw_from(d.state, (uint64_t)*c);
      (void)draw_below(&d, 2);
      t.seed = d.state >> 8 | (seed & DRAW_WILD);
      if (trial_run(&t) != 1) continue;
      if (t.edges) run_edges(t);
      break;
    }
  }
}

int main(int argc, char **argv) {
  const char *only = "";
  int rounds = 1, part = 0, parts = 1;
  uint64_t seed = 1;
  bool one = false;
  trial t = {0};
  for (int i = 1; i < argc; i++) {
    const char *value = i + 1 < argc ? argv[i + 1] : "";
    if (strcmp(argv[i], "--print") == 0) {
      t.print = true;
    } else if (strcmp(argv[i], "--list") == 0) {
      t.list = true;
    } else if (strcmp(argv[i], "--wild") == 0) {
      seed |= DRAW_WILD;
    } else if (strcmp(argv[i], "--edges") == 0) {
      t.edges = true;
    } else if (strcmp(argv[i], "--no-llvm") == 0) {
      t.no_llvm = true;
    } else {
      if (strcmp(argv[i], "--rounds") == 0) rounds = atoi(value);
      if (strcmp(argv[i], "--seed") == 0) seed = strtoull(value, NULL, 10) | (seed & DRAW_WILD);
      if (strcmp(argv[i], "--only") == 0) only = value;
      if (strcmp(argv[i], "--part") == 0) sscanf(value, "%d/%d", &part, &parts);
      if (strcmp(argv[i], "--edge") == 0) trial_take_edges(&t, value);
      if (strcmp(argv[i], "--case") == 0) {
        one = true;
        seed = strtoull(value, NULL, 10);
      }
      i++;
    }
  }
  kiln_limits limits = {.time_ms = 1000}; /* a polynomial of degree INT64_MAX takes longer */
  if (t.edges || seed & DRAW_WILD) limits = trial_wild_limits;
  if (t.edges) limits.time_ms = 20;
  trial_open(&limits);
  t.seed = seed;
  const int count = trial_op_count();
  for (int i = 0; i < count; i++) {
    t.op = trial_op_at(i);
    if (one && strcmp(t.op->name, only) == 0) trial_run(&t);
    if (!one && strstr(t.op->name, only) && i % parts == part) run_op(t, rounds);
  }
  const trial_counts c = trial_counted;
  printf("seed %llu: %d operators, %d cases, %d with results, %d not built, %llu compiled runs, "
         "%d found\n",
         (unsigned long long)seed, count, c.cases, c.succeeded, c.unbuilt,
         (unsigned long long)c.compiled_runs, c.found);
  printf("%d passed, %d failed\n", c.cases > c.found ? c.cases - c.found : 0, c.found);
  trial_close();
  /* A run of the whole table in which nothing was compiled would have tested nothing. */
  return c.found > 0 ||
         (!*only && parts == 1 && (c.succeeded < count / 2 || c.compiled_runs < 1000));
}
