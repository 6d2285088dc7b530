/* half.h: f16 and bf16, which are storage only: conversions from and to f32 (part of math.h).
 * The 16 bits of a number stand in the low half of an int32 lane, the upper half is zero. To the
 * narrow type they round to nearest, ties to even; denormals are kept; NaN stays NaN. */

KILN_MATH_PUBLIC kiln_f32v kiln_math_from_f16_f32v(kiln_i32v h) {
  kiln_i32v a = (h & 0x7fff) << 13;
  kiln_i32v special = (h & 0x7c00) == 0x7c00;
  kiln_f32v f = (kiln_f32v)a * 0x1p112f;
  return (kiln_f32v)((kiln_i32v)f | (special & 0x7f800000) | (h & 0x8000) << 16);
}
KILN_MATH_PUBLIC kiln_i32v kiln_math_to_f16_f32v(kiln_f32v x) {
  kiln_i32v bits = (kiln_i32v)x, a = bits & 0x7fffffff;
  kiln_i32v normal = (a - (112 << 23) + 0xfff + (a >> 13 & 1)) >> 13;
  kiln_i32v tiny = (kiln_i32v)((kiln_f32v)a + 0.5f) - 0x3f000000;
  kiln_i32v is_tiny = a < 113 << 23, is_big = a >= 0x477ff000, is_nan = a > 0x7f800000;
  kiln_i32v r = (tiny & is_tiny) | (normal & ~is_tiny);
  r = (r & ~is_big) | (is_big & 0x7c00) | (is_nan & 0x0200);
  return r | (bits >> 16 & 0x8000);
}
KILN_MATH_PUBLIC kiln_f32v kiln_math_from_bf16_f32v(kiln_i32v h) { return (kiln_f32v)(h << 16); }
KILN_MATH_PUBLIC kiln_i32v kiln_math_to_bf16_f32v(kiln_f32v x) {
  kiln_i32v bits = (kiln_i32v)x;
  kiln_i32v is_nan = (bits & 0x7fffffff) > 0x7f800000;
  kiln_i32v r = bits + 0x7fff + (bits >> 16 & 1);
  r = (r & ~is_nan) | (is_nan & 0x7fc00000);
  return r >> 16 & 0xffff;
}
