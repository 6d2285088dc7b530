/* stripe.h: which part of an object a thread writes, so that threads which use one object at the
 * same time share no cache line.
 *
 * An object has KILN_STRIPES parts, each in the middle of KILN_STRIPE_BYTES of its own, wherever
 * the object begins: two lines, since processors fetch lines in pairs. Threads that meet on one
 * stripe are slower, never wrong. */
#pragma once

#include <pthread.h>
#include <stdint.h>

enum { KILN_STRIPE_LOG = 5, KILN_STRIPES = 1 << KILN_STRIPE_LOG, KILN_STRIPE_BYTES = 128 };

/* This thread's, by Fibonacci hashing (Knuth 6.4): threads' addresses are at equal distances, which
 * a multiplication with the golden ratio spreads evenly. */
static inline uint32_t kiln_stripe_here(void) {
  const uint64_t self = (uint64_t)(uintptr_t)pthread_self();
  return (uint32_t)(self * 0x9e3779b97f4a7c15u >> (64 - KILN_STRIPE_LOG));
}
