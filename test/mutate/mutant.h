/* mutant.h: stands before each source that plant.py has planted faults in. KILN_MUTANT(7) is true
 * where the environment says MUTANT=7. What a process passes is marked in the file MUTANT_HITS, a
 * byte a fault, which all processes of a test share: also those that crash or leave by _exit. The
 * names lack Kiln's prefix in the environment, whose variables tests clear. Of each name here the
 * linker keeps one. */
#pragma once
#pragma GCC system_header

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define KILN_MUTANT_MOST 4096
#define KILN_MUTANT_WEAK __attribute__((weak, visibility("hidden")))

KILN_MUTANT_WEAK int kiln_mutant_chosen = -1;
KILN_MUTANT_WEAK unsigned char kiln_mutant_unshared[KILN_MUTANT_MOST];
KILN_MUTANT_WEAK unsigned char *kiln_mutant_hits = kiln_mutant_unshared;

KILN_MUTANT_WEAK __attribute__((constructor)) void kiln_mutant_begin(void) {
  const char *chosen = getenv("MUTANT"), *path = getenv("MUTANT_HITS");
  if (kiln_mutant_chosen >= 0) return; /* a constructor for each object that includes this */
  kiln_mutant_chosen = chosen ? atoi(chosen) : KILN_MUTANT_MOST;
  FILE *file = path ? fopen(path, "r+e") : NULL;
  if (!file) return;
  void *hits = mmap(NULL, KILN_MUTANT_MOST, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
  fclose(file);
  if (hits != MAP_FAILED) kiln_mutant_hits = hits;
}

#define KILN_MUTANT(n) (kiln_mutant_hits[n] = 1, kiln_mutant_chosen == (n))
