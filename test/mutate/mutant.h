/* mutant.h: stands before each source that plant.py has planted faults in. All faults are in one
 * build: KILN_MUTANT(7) is true where the environment says KILN_MUTANT=7. What a program passes is
 * added to the file KILN_MUTANT_HITS at its end, a number a line. Of each name the linker keeps
 * one. */
#ifndef KILN_TEST_MUTANT_H
#define KILN_TEST_MUTANT_H

#include <stdio.h>
#include <stdlib.h>

#define KILN_MUTANT_WEAK __attribute__((weak, visibility("hidden")))

KILN_MUTANT_WEAK int kiln_mutant_chosen = -1;
KILN_MUTANT_WEAK unsigned char kiln_mutant_hits[4096];

KILN_MUTANT_WEAK void kiln_mutant_end(void);
void kiln_mutant_end(void) {
  const char *path = getenv("KILN_MUTANT_HITS");
  FILE *file = path ? fopen(path, "ae") : NULL;
  for (int i = 0; file && i < (int)sizeof kiln_mutant_hits; i++) {
    if (kiln_mutant_hits[i]) fprintf(file, "%d\n", i);
  }
  if (file) fclose(file);
}

KILN_MUTANT_WEAK void kiln_mutant_begin(void);
__attribute__((constructor)) void kiln_mutant_begin(void) {
  const char *chosen = getenv("KILN_MUTANT");
  if (kiln_mutant_chosen >= 0) return; /* a constructor for each object that includes this */
  kiln_mutant_chosen = chosen ? atoi(chosen) : 4096;
  atexit(kiln_mutant_end);
}

#define KILN_MUTANT(n) (kiln_mutant_hits[n] = 1, kiln_mutant_chosen == (n))

#endif
