/* dim_program.h: dimensions worked out for given symbols: what a call makes of the expressions that
 * a compile has left.
 *
 * A program is one block without pointers: whoever owns it may copy `bytes` of it. It never
 * changes, and any thread may run it. [s0, s0*s1 + 1, 7] is two steps for three results: v2 = s0 *
 * s1;  v3 = 1 + 1*v2;  v4 = 7;  results v0, v3, v4 where v0 and v1 are the symbols. */
#pragma once

#include "runtime/dim.h"

typedef struct kiln_dim_step {
  int64_t constant; /* of a sum */
  int64_t by;       /* the sum is floor-divided; 0: it is not; -1: a product of the terms' values */
  int first, count; /* of the terms */
} kiln_dim_step;
typedef struct kiln_dim_use {
  int64_t coefficient;
  int64_t value; /* its number */
} kiln_dim_use;

typedef struct kiln_dim_program {
  size_t bytes;
  int symbol_count; /* values [0, symbol_count) are the symbols s0, s1, ... */
  int step_count;   /* the next values, in order */
  int use_count;
  int result_count;
  int64_t words[]; /* steps, uses, and the number of each result's value */
} kiln_dim_program;

/* The symbols in a dimension are s0 up to that number. */
int kiln_dim_symbol_count(const kiln_dims *dims, kiln_dim d);

/* In the arena (arena rules). The results are known dimensions of `dims`. */
kiln_dim_program *kiln_dim_program_create(kiln_arena *arena, const kiln_dims *dims,
                                          const kiln_dim *results, int count);
static inline const kiln_dim_step *kiln_dim_steps(const kiln_dim_program *p) {
  return (const kiln_dim_step *)(const void *)p->words;
}
static inline const kiln_dim_use *kiln_dim_uses(const kiln_dim_program *p) {
  return (const kiln_dim_use *)(const void *)(kiln_dim_steps(p) + p->step_count);
}
/* The numbers of the results' values. */
static inline const int64_t *kiln_dim_results(const kiln_dim_program *p) {
  return (const int64_t *)(const void *)(kiln_dim_uses(p) + p->use_count);
}
/* How many int64 a run needs for its values. */
static inline int kiln_dim_program_room(const kiln_dim_program *p) {
  return p->symbol_count + p->step_count;
}
/* False where something on the way does not fit int64: then nothing has such a size. */
bool kiln_dim_program_run(const kiln_dim_program *p, const int64_t *symbols, int64_t *room,
                          int64_t *out_results);
