/* half.h: 16- and 8-bit floats to and from float, in plain integer arithmetic.
 *
 * Round to nearest even, as PyTorch. float16 and bfloat16 keep infinities and make NaNs quiet;
 * float8_e5m2 overflows to infinity, float8_e4m3fn (which has none) stops at 448. The x86-64-v2
 * floor has no instruction for these; the kernels' faster forms must agree with them bit for bit.
 */
#pragma once

#include <stdint.h>
#include <string.h>

#include "runtime/dtype.h"

/* The greatest finite number of a dtype of floats, or of the parts of a complex one. */
static inline double kiln_float_greatest(kiln_dtype dtype) {
  switch (dtype) {
    case KILN_DTYPE_F16:
    case KILN_DTYPE_C32: return 65504;
    case KILN_DTYPE_BF16: return 0x1.fep127;
    case KILN_DTYPE_F32:
    case KILN_DTYPE_C64: return 0x1.fffffep127;
    default: return 0x1.fffffffffffffp1023;
  }
}

static inline float kiln_float_from_bits(uint32_t bits) {
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}
static inline uint32_t kiln_float_bits(float f) {
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  return bits;
}

static inline float kiln_bf16_to_float(uint16_t h) {
  return kiln_float_from_bits((uint32_t)h << 16);
}
static inline uint16_t kiln_float_to_bf16(float f) {
  uint32_t bits = kiln_float_bits(f);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fc0;
  return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

/* A small float with `exp` exponent and `man` mantissa bits, IEEE-like, to float. Exact. */
static inline float kiln_small_to_float(uint32_t h, int exp, int man) {
  uint32_t sign = (h >> (exp + man)) << 31;
  uint32_t bits = h & ((1u << (exp + man)) - 1);
  int bias = (1 << (exp - 1)) - 1;
  uint32_t e = bits >> man, m = bits & ((1u << man) - 1);
  if (e == (1u << exp) - 1) { /* infinity, NaN */
    return kiln_float_from_bits(sign | 0x7f800000u | m << (23 - man) | (m ? 0x400000u : 0));
  }
  if (e == 0) { /* zero, subnormal: m * 2^(1 - bias - man), exact in float */
    float scale = kiln_float_from_bits((uint32_t)(127 + 1 - bias - man) << 23);
    return kiln_float_from_bits(sign | kiln_float_bits((float)m * scale));
  }
  return kiln_float_from_bits(sign | (e + 127 - (uint32_t)bias) << 23 | m << (23 - man));
}

/* |f| as bits of the small float, rounded to nearest even; the result may carry into the exponent
 * of infinity (and beyond), which the callers cap. `f` is finite. */
static inline uint32_t kiln_float_to_small(uint32_t abs_bits, int exp, int man) {
  int bias = (1 << (exp - 1)) - 1;
  int e = (int)(abs_bits >> 23) - 127 + bias; /* exponent in the small format */
  uint32_t m = (abs_bits & 0x7fffffu) | 0x800000u;
  int shift = 23 - man;
  if (e < 1) {
    shift += 1 - e;
    e = 1;
    if (shift > 24) return 0; /* below half of the smallest subnormal */
  }
  uint32_t kept = m >> shift, rest = m & ((1u << shift) - 1), half = 1u << (shift - 1);
  kept += rest > half || (rest == half && (kept & 1)) ? 1 : 0;
  /* `kept` has its implicit bit set unless subnormal, and that bit counts one exponent. */
  return ((uint32_t)(e - 1) << man) + kept;
}

/* Without branches, so that loops of them become vectors (after F. Giesen, "Half to float done
 * quic", 2012): a product with 2^112 moves the exponent, of subnormals too. */
static inline float kiln_half_to_float(uint16_t h) {
  const uint32_t sign = (uint32_t)(h & 0x8000u) << 16, rest = h & 0x7fffu;
  const uint32_t bits = kiln_float_bits(kiln_float_from_bits(rest << 13) * 0x1p112f);
  const uint32_t quiet = rest > 0x7c00u ? 0x400000u : 0;
  return kiln_float_from_bits(sign | (rest >= 0x7c00u ? 0x7f800000u | rest << 13 | quiet : bits));
}
/* A sum with 0.5, whose last place is that of the subnormals, rounds to them. */
static inline uint16_t kiln_float_to_half(float f) {
  const uint32_t sign = kiln_float_bits(f) >> 16 & 0x8000u, bits = kiln_float_bits(f) & 0x7fffffffu;
  const uint32_t normal = (bits - (112u << 23) + 0xfffu + (bits >> 13 & 1)) >> 13;
  const uint32_t small = kiln_float_bits(kiln_float_from_bits(bits) + 0.5f) - 0x3f000000u;
  const uint32_t great = bits > 0x7f800000u ? 0x7e00u : 0x7c00u; /* from 65536 on */
  return (uint16_t)(sign | (bits >= 0x47800000u ? great : bits < 0x38800000u ? small : normal));
}

static inline float kiln_f8e5m2_to_float(uint8_t h) { return kiln_small_to_float(h, 5, 2); }
static inline uint8_t kiln_float_to_f8e5m2(float f) {
  uint32_t bits = kiln_float_bits(f), sign = bits >> 24 & 0x80u;
  bits &= 0x7fffffffu;
  if (bits > 0x7f800000u) return (uint8_t)(sign | 0x7f);
  if (bits >= 0x47800000u) return (uint8_t)(sign | 0x7c);
  return (uint8_t)(sign | kiln_float_to_small(bits, 5, 2));
}

/* e4m3fn: no infinity; only 0x7f is NaN, so the top exponent holds numbers up to 448. */
static inline float kiln_f8e4m3_to_float(uint8_t h) {
  if ((h & 0x7f) == 0x7f) return kiln_float_from_bits(0x7fc00000u | (uint32_t)(h & 0x80) << 24);
  if ((h & 0x78) == 0x78) { /* 256 + 32 m */
    float f = 256.0f + 32.0f * (float)(h & 7);
    return h & 0x80 ? -f : f;
  }
  return kiln_small_to_float(h, 4, 3);
}
static inline uint8_t kiln_float_to_f8e4m3(float f) {
  uint32_t bits = kiln_float_bits(f), sign = bits >> 24 & 0x80u;
  bits &= 0x7fffffffu;
  if (bits > 0x7f800000u) return (uint8_t)(sign | 0x7f);
  if (bits >= 0x43e80000u) return (uint8_t)(sign | 0x7e); /* 464 and above, infinity */
  return (uint8_t)(sign | kiln_float_to_small(bits, 4, 3));
}
