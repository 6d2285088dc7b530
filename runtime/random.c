/* random.c: mt19937 by blocks, in loops that the compiler turns into vectors. */
#include "runtime/random.h"

#include <math.h>
#include <sys/random.h>
#include <time.h>

enum { N = KILN_RANDOM_WORDS, M = 397 };

static void destroy(kiln_box *box) {
  kiln_random *g = (kiln_random *)(void *)box;
  pthread_mutex_destroy(&g->lock);
  kiln_mem_free(box->mem, g, sizeof *g);
}

kiln_status *kiln_random_create(kiln_mem *mem, uint64_t seed, kiln_random **out) {
  kiln_random *g = kiln_mem_alloc(mem, sizeof *g);
  if (!g) return kiln_status_oom();
  g->box = (kiln_box){.refs = 1, .tag = KILN_TAG_OTHER, .mem = mem, .destroy = destroy};
  pthread_mutex_init(&g->lock, NULL);
  kiln_random_seed(g, seed);
  *out = g;
  return NULL;
}

kiln_random *kiln_random_of(kiln_ivalue v) {
  const bool is_one = v.tag == KILN_TAG_OTHER && v.u.box->destroy == destroy;
  return is_one ? (kiln_random *)(void *)v.u.box : NULL;
}

void kiln_random_seed(kiln_random *g, uint64_t seed) {
  g->seed = seed;
  g->seeded = false;
  g->has_normal = false;
  g->at = N;
}

uint64_t kiln_random_entropy(void) {
  uint64_t seed;
  if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) == (ssize_t)sizeof seed) return seed;
  struct timespec t; /* early in a boot */
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000007u ^ (uint64_t)t.tv_nsec << 20;
}

static void expand(kiln_random *g) {
  uint32_t x = (uint32_t)g->seed;
  for (uint32_t i = 0; i < N; i++) {
    if (i > 0) x = 1812433253u * (x ^ x >> 30) + i;
    g->state[i] = x;
  }
  g->seeded = true;
}

static inline uint32_t twist(uint32_t high, uint32_t low) {
  const uint32_t x = (high & 0x80000000u) | (low & 0x7fffffffu);
  return x >> 1 ^ (-(low & 1) & 0x9908b0dfu);
}

void kiln__random_refill(kiln_random *g) {
  uint32_t *s = g->state;
  if (!g->seeded) expand(g);
  for (int i = 0; i < N - M; i++) s[i] = s[i + M] ^ twist(s[i], s[i + 1]);
  for (int i = N - M; i < N - 1; i++) s[i] = s[i + M - N] ^ twist(s[i], s[i + 1]);
  s[N - 1] = s[M - 1] ^ twist(s[N - 1], s[0]);
  for (int i = 0; i < N; i++) {
    uint32_t x = s[i];
    x ^= x >> 11;
    x ^= x << 7 & 0x9d2c5680u;
    x ^= x << 15 & 0xefc60000u;
    g->words[i] = x ^ x >> 18;
  }
  g->at = 0;
}

double kiln_random_normal(kiln_random *g) {
  if (g->has_normal) {
    g->has_normal = false;
    return g->normal;
  }
  const double u = kiln_random_f64(g), v = kiln_random_f64(g);
  const double radius = sqrt(-2.0 * log1p(-v)), angle = 2.0 * M_PI * u;
  g->has_normal = true;
  g->normal = radius * sin(angle);
  return radius * cos(angle);
}
