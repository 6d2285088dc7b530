/* half.h: f16 and bf16, which are storage only: conversions from and to f32 (part of math.h).
 * The 16 bits of a number stand in the low half of an int32 lane, the upper half is zero. To the
 * narrow type they round to nearest, ties to even; denormals are kept; NaN stays NaN, to the narrow
 * type the one of 0x7e00, with its sign. */

#if defined(__F16C__) && KILN_MATH_LANES == 8
KILN_MATH_PUBLIC kiln_f32v kiln_math_from_f16_f32v(kiln_i32v h) {
  const __m256i all = (__m256i)h;
  return (kiln_f32v)_mm256_cvtph_ps(
      _mm_packus_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1)));
}
KILN_MATH_INLINE kiln_i32v kiln_math__narrow(kiln_f32v x) {
  return (kiln_i32v)_mm256_cvtepu16_epi32(_mm256_cvtps_ph((__m256)x, _MM_FROUND_TO_NEAREST_INT));
}
#elif defined(__AVX512F__) && KILN_MATH_LANES == 16
KILN_MATH_PUBLIC kiln_f32v kiln_math_from_f16_f32v(kiln_i32v h) {
  return (kiln_f32v)_mm512_cvtph_ps(_mm512_cvtepi32_epi16((__m512i)h));
}
KILN_MATH_INLINE kiln_i32v kiln_math__narrow(kiln_f32v x) {
  return (kiln_i32v)_mm512_cvtepu16_epi32(
      _mm512_maskz_cvtps_ph(0xffff, (__m512)x, _MM_FROUND_TO_NEAREST_INT));
}
#else
KILN_MATH_PUBLIC kiln_f32v kiln_math_from_f16_f32v(kiln_i32v h) {
  kiln_i32v a = (h & 0x7fff) << 13;
  kiln_i32v special = (h & 0x7c00) == 0x7c00;
  kiln_f32v f = (kiln_f32v)a * 0x1p112f;
  return (kiln_f32v)((kiln_i32v)f | (special & 0x7f800000) | (h & 0x8000) << 16);
}
KILN_MATH_INLINE kiln_i32v kiln_math__narrow(kiln_f32v x) {
  kiln_i32v bits = (kiln_i32v)x, a = bits & 0x7fffffff;
  kiln_i32v normal = (a - (112 << 23) + 0xfff + (a >> 13 & 1)) >> 13;
  kiln_i32v tiny = (kiln_i32v)((kiln_f32v)a + 0.5f) - 0x3f000000;
  kiln_i32v is_tiny = a < 113 << 23, is_big = a >= 0x477ff000;
  kiln_i32v r = (tiny & is_tiny) | (normal & ~is_tiny);
  r = (r & ~is_big) | (is_big & 0x7c00);
  return r | (bits >> 16 & 0x8000);
}
#endif
KILN_MATH_PUBLIC kiln_i32v kiln_math_to_f16_f32v(kiln_f32v x) {
  kiln_i32v is_nan = x != x, sign = (kiln_i32v)x >> 16 & 0x8000;
  return (kiln_math__narrow(x) & ~is_nan) | (is_nan & (0x7e00 | sign));
}
KILN_MATH_PUBLIC kiln_f32v kiln_math_from_bf16_f32v(kiln_i32v h) { return (kiln_f32v)(h << 16); }
KILN_MATH_PUBLIC kiln_i32v kiln_math_to_bf16_f32v(kiln_f32v x) {
  kiln_i32v bits = (kiln_i32v)x;
  kiln_i32v is_nan = (bits & 0x7fffffff) > 0x7f800000;
  kiln_i32v r = bits + 0x7fff + (bits >> 16 & 1);
  r = (r & ~is_nan) | (is_nan & 0x7fc00000);
  return r >> 16 & 0xffff;
}
