/* checked.h: integer arithmetic that reports overflow. Sizes that come from a file or a model are
 * only ever combined through these. Each returns false, and leaves *out alone, on overflow. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KILN__CHECKED(name, operation, type)                      \
  static inline bool name(type a, type b, type *out) {            \
    type r;                                                       \
    if (__builtin_##operation##_overflow(a, b, &r)) return false; \
    *out = r;                                                     \
    return true;                                                  \
  }
KILN__CHECKED(kiln_checked_add_i64, add, int64_t)
KILN__CHECKED(kiln_checked_mul_i64, mul, int64_t)
KILN__CHECKED(kiln_checked_add_size, add, size_t)
KILN__CHECKED(kiln_checked_mul_size, mul, size_t)
#undef KILN__CHECKED

/* The greatest common divisor of natural numbers; of 0 and n it is n. */
static inline int64_t kiln_gcd_i64(int64_t a, int64_t b) {
  while (b) {
    const int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}
