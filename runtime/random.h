/* random.h: generators of random numbers: PyTorch's for the CPU, mt19937 (Matsumoto and Nishimura,
 * 1998) with one normal number kept back.
 *
 * An instance has one, which its calls draw from; a program may make others. A generator is 5 KB
 * and is seeded when the first number is drawn: what draws nothing pays nothing. Who draws holds
 * the lock, for as long as one operator's numbers belong together. */
#pragma once

#include <pthread.h>

#include "runtime/value.h"

enum { KILN_RANDOM_WORDS = 624 };
/* What a generator starts with that nobody seeded, as torch.Generator() does. */
#define KILN_RANDOM_SEED 67280421310721u

typedef struct kiln_random {
  kiln_box box; /* KILN_TAG_OTHER */
  pthread_mutex_t lock;
  uint64_t seed;   /* as it was given; the state follows from its low 32 bits */
  bool has_normal; /* `normal` is the second of a pair, not given out yet */
  double normal;
  bool seeded; /* `state` follows from `seed` */
  int at;      /* words of `words` given out */
  uint32_t state[KILN_RANDOM_WORDS], words[KILN_RANDOM_WORDS];
} kiln_random;

/* Counted by its box. */
kiln_status *kiln_random_create(kiln_mem *mem, uint64_t seed, kiln_random **out) KILN_MUST_USE;
/* The generator that a value is; NULL: it is none. */
kiln_random *kiln_random_of(kiln_ivalue v);
static inline void kiln_random_release(kiln_random *g) {
  if (g) kiln_ivalue_release(kiln_of_box(g));
}
/* Starts the sequence of a seed. */
void kiln_random_seed(kiln_random *g, uint64_t seed);
/* A seed that nobody can foresee. */
uint64_t kiln_random_entropy(void);

/* -- Drawing -- */

/* Makes the next block of words. */
void kiln__random_refill(kiln_random *g);
static inline uint32_t kiln_random_u32(kiln_random *g) {
  if (g->at == KILN_RANDOM_WORDS) kiln__random_refill(g);
  return g->words[g->at++];
}
/* The first of two words is the high one. */
static inline uint64_t kiln_random_u64(kiln_random *g) {
  const uint64_t high = kiln_random_u32(g);
  return high << 32 | kiln_random_u32(g);
}
/* In [0, 1), of 24 or 53 random bits: the low ones. */
static inline float kiln_random_f32(kiln_random *g) {
  return (float)(kiln_random_u32(g) & 0xffffff) * 0x1p-24f;
}
static inline double kiln_random_f64(kiln_random *g) {
  return (double)(kiln_random_u64(g) & 0x1fffffffffffff) * 0x1p-53;
}
/* Of mean 0 and deviation 1 (Box and Muller, 1958). */
double kiln_random_normal(kiln_random *g);
