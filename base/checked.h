/* checked.h: integer arithmetic that reports overflow. Sizes that come from a file or a model are
 * only ever combined through these. Each returns false, and leaves *out alone, on overflow. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool kiln_checked_add_i64(int64_t a, int64_t b, int64_t *out) {
  int64_t r;
  if (__builtin_add_overflow(a, b, &r)) return false;
  *out = r;
  return true;
}
static inline bool kiln_checked_mul_i64(int64_t a, int64_t b, int64_t *out) {
  int64_t r;
  if (__builtin_mul_overflow(a, b, &r)) return false;
  *out = r;
  return true;
}
static inline bool kiln_checked_add_size(size_t a, size_t b, size_t *out) {
  size_t r;
  if (__builtin_add_overflow(a, b, &r)) return false;
  *out = r;
  return true;
}
static inline bool kiln_checked_mul_size(size_t a, size_t b, size_t *out) {
  size_t r;
  if (__builtin_mul_overflow(a, b, &r)) return false;
  *out = r;
  return true;
}

/* The greatest common divisor of natural numbers; of 0 and n it is n. */
static inline int64_t kiln_gcd_i64(int64_t a, int64_t b) {
  while (b) {
    const int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}
