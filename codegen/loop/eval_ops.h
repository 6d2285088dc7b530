/* eval_ops.h: the arithmetic of the evaluator, generated from opcodes.def (part of eval_isa.c).
 *
 * eval_<op>_<type>(r, x, y, z, n) runs one opcode over n elements. A pair that the verifier refuses
 * has a function too, which is never called. */

#define BY_TYPE(fn, x) \
  _Generic((x), float: __builtin_##fn##f((float)(x)), double: __builtin_##fn((double)(x)))
#define FABS(x) BY_TYPE(fabs, x)
#define SQRT(x) BY_TYPE(sqrt, x)
#define FLOOR(x) BY_TYPE(floor, x)
#define CEIL(x) BY_TYPE(ceil, x)
#define RINT(x) BY_TYPE(rint, x)
#define TRUNC(x) BY_TYPE(trunc, x)
/* Fused where the instruction set has it, as runtime/math. */
#if KILN_MATH_FMA
#define FMA(x, y, z)                                             \
  _Generic((x),                                                  \
      float: __builtin_fmaf((float)(x), (float)(y), (float)(z)), \
      double: __builtin_fma((double)(x), (double)(y), (double)(z)))
#else
#define FMA(x, y, z) ((x) * (y) + (z))
#endif
#define COPYSIGN(x, y)                                    \
  _Generic((x),                                           \
      float: __builtin_copysignf((float)(x), (float)(y)), \
      double: __builtin_copysign((double)(x), (double)(y)))

/* x, or a NaN where a is one: bits that are all set. Compilers make vectors of it in chains, where
 * they make none of a second selection. */
static inline float or_nan_f32(float x, float a) {
  union {
    float value;
    int32_t bits;
  } of_x = {x};
  of_x.bits |= -(int32_t)(a != a);
  return of_x.value;
}
static inline double or_nan_f64(double x, double a) {
  union {
    double value;
    int64_t bits;
  } of_x = {x};
  of_x.bits |= -(int64_t)(a != a);
  return of_x.value;
}
#define OR_NAN(x, a) _Generic((x), float: or_nan_f32, double: or_nan_f64)(x, a)

/* One vector of the first cache in an iteration is held up by the jump. */
#ifdef __clang__
#define EVAL_UNROLL
#else
#define EVAL_UNROLL _Pragma("GCC unroll 4")
#endif
#define BLOCK_LOOP(result_type, expression)            \
  KILN_IVDEP                                           \
  EVAL_UNROLL                                          \
  for (int i = 0; i < n; i++) {                        \
    T a = ((const T *)x)[i], b = ((const T *)y)[i];    \
    T c = ((const T *)z)[i];                           \
    (void)b, (void)c;                                  \
    ((result_type *)r)[i] = (result_type)(expression); \
  }
#define FLOAT_FI(float_expression, int_expression) BLOCK_LOOP(T, float_expression)
#define FLOAT_B(expression) BLOCK_LOOP(uint8_t, expression)
#define FLOAT_NONE
#define INT_FI(float_expression, int_expression) BLOCK_LOOP(T, int_expression)
#define INT_B(expression) BLOCK_LOOP(uint8_t, expression)
#define INT_NONE
#define INT_MATH(name)

/* Vectors; the last one may have fewer elements. */
#define MOVE_VECTOR(to, from, n, width, size)     \
  do {                                            \
    if ((n) >= (width))                           \
      memcpy(to, from, (size_t)(width) * (size)); \
    else                                          \
      memcpy(to, from, (size_t)(n) * (size));     \
  } while (0)
#define VECTOR_LOOP(V, arity, ...)                                              \
  enum { WIDTH = sizeof(V) / sizeof(T) };                                       \
  for (int i = 0; i < n; i += WIDTH) {                                          \
    V a = {0}, b = {0}, v;                                                      \
    MOVE_VECTOR(&a, (const T *)x + i, n - i, WIDTH, sizeof(T));                 \
    if (arity == 2) MOVE_VECTOR(&b, (const T *)y + i, n - i, WIDTH, sizeof(T)); \
    (void)b;                                                                    \
    v = __VA_ARGS__;                                                            \
    MOVE_VECTOR((T *)r + i, &v, n - i, WIDTH, sizeof(T));                       \
  }
#define MATH_CALL_1(name, suffix) kiln_math_##name##_##suffix(a)
#define MATH_CALL_2(name, suffix) kiln_math_##name##_##suffix(a, b)

/* What the column CLASSES is made of. */
enum {
  F = KILN_LOOP_CLASS_F,
  I = KILN_LOOP_CLASS_I,
  B = KILN_LOOP_CLASS_B,
  ANY = KILN_LOOP_CLASS_ANY
};
#define EVAL_FN(name, classes, type, suffix, unsigned_type, class, body)                   \
  static void eval_##name##_##suffix(void *r, const void *x, const void *y, const void *z, \
                                     int n) {                                              \
    typedef type T __attribute__((unused));                                                \
    typedef unsigned_type U __attribute__((unused));                                       \
    enum { IS_BOOL = class == B };                                                         \
    (void)r, (void)x, (void)y, (void)z, (void)n, (void)IS_BOOL;                            \
    if (!((classes) & (class))) return;                                                    \
    body                                                                                   \
  }
#define KILN_LOOP_OP(name, arity, rule, classes, eval, emit)    \
  EVAL_OP_FLOATS(name, arity, classes, eval)                    \
  EVAL_FN(name, classes, uint8_t, u8, uint32_t, I, INT_##eval)  \
  EVAL_FN(name, classes, int8_t, i8, uint32_t, I, INT_##eval)   \
  EVAL_FN(name, classes, int16_t, i16, uint32_t, I, INT_##eval) \
  EVAL_FN(name, classes, int32_t, i32, uint32_t, I, INT_##eval) \
  EVAL_FN(name, classes, int64_t, i64, uint64_t, I, INT_##eval) \
  EVAL_FN(name, classes, uint8_t, b1, uint32_t, B, INT_##eval)
#define EVAL_OP_FLOATS(name, arity, classes, eval) EVAL_OP_FLOATS_(name, arity, classes, eval)
#define EVAL_OP_FLOATS_(name, arity, classes, eval)                        \
  EVAL_FN(name, classes, float, f32, float, F, FLOAT_F32_##arity##_##eval) \
  EVAL_FN(name, classes, double, f64, double, F, FLOAT_F64_##arity##_##eval)
/* The arity chooses between one and two operands of a math function. */
#define FLOAT_F32_0_NONE
#define FLOAT_F64_0_NONE
#define FLOAT_F32_1_NONE
#define FLOAT_F64_1_NONE
#define FLOAT_F32_3_NONE
#define FLOAT_F64_3_NONE
#define FLOAT_F32_1_FI FLOAT_FI
#define FLOAT_F64_1_FI FLOAT_FI
#define FLOAT_F32_0_FI FLOAT_FI
#define FLOAT_F32_2_FI FLOAT_FI
#define FLOAT_F64_2_FI FLOAT_FI
#define FLOAT_F32_2_B FLOAT_B
#define FLOAT_F64_2_B FLOAT_B
#define FLOAT_F32_1_MATH(name) VECTOR_LOOP(kiln_f32v, 1, MATH_CALL_1(name, f32v))
#define FLOAT_F64_1_MATH(name) VECTOR_LOOP(kiln_f64v, 1, MATH_CALL_1(name, f64v))
#define FLOAT_F32_2_MATH(name) VECTOR_LOOP(kiln_f32v, 2, MATH_CALL_2(name, f32v))
#define FLOAT_F64_2_MATH(name) VECTOR_LOOP(kiln_f64v, 2, MATH_CALL_2(name, f64v))
#include "codegen/loop/opcodes.def"
#undef KILN_LOOP_OP

#define KILN_LOOP_OP(name, arity, rule, classes, eval, emit)                  \
  {eval_##name##_f32, eval_##name##_f64, eval_##name##_u8,  eval_##name##_i8, \
   eval_##name##_i16, eval_##name##_i32, eval_##name##_i64, eval_##name##_b1},
static const eval_fn eval_ops[KILN_LOOP__COUNT][EVAL_TYPE__COUNT] = {
#include "codegen/loop/opcodes.def"
};
#undef KILN_LOOP_OP

/* -- Casts -- */

/* As the machine does, and generated code: out of range gives the least number of the type that the
 * conversion goes through, which is i64 for i64 and i32 for all smaller ones. */
static inline int64_t f64_to_i64(double x) {
  return x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN;
}
static inline int32_t f64_to_i32(double x) {
  return x > -0x1p31 - 1 && x < 0x1p31 ? (int32_t)x : INT32_MIN;
}
#define TO_F32(x) (float)(x)
#define TO_F64(x) (double)(x)
#define TO_BOOL(x) ((x) != 0)
#define FROM_FLOAT_U8(x) (uint8_t)f64_to_i32((double)(x))
#define FROM_FLOAT_I8(x) (int8_t)f64_to_i32((double)(x))
#define FROM_FLOAT_I16(x) (int16_t)f64_to_i32((double)(x))
#define FROM_FLOAT_I32(x) f64_to_i32((double)(x))
#define FROM_FLOAT_I64(x) f64_to_i64((double)(x))
#define FROM_FLOAT_F32 TO_F32
#define FROM_FLOAT_F64 TO_F64
#define FROM_FLOAT_BOOL TO_BOOL
#define FROM_INT_U8(x) (uint8_t)(x)
#define FROM_INT_I8(x) (int8_t)(x)
#define FROM_INT_I16(x) (int16_t)(x)
#define FROM_INT_I32(x) (int32_t)(x)
#define FROM_INT_I64(x) (int64_t)(x)
#define FROM_INT_F32 TO_F32
#define FROM_INT_F64 TO_F64
#define FROM_INT_BOOL TO_BOOL
#define CAST_FN(from, from_type, to, to_suffix, to_type, kind)                                   \
  static void cast_##from##_to_##to_suffix(void *r, const void *x, const void *y, const void *z, \
                                           int n) {                                              \
    (void)y, (void)z;                                                                            \
    KILN_IVDEP                                                                                   \
    for (int i = 0; i < n; i++)                                                                  \
      ((to_type *)r)[i] = (to_type)FROM_##kind##_##to(((const from_type *)x)[i]);                \
  }
#define CASTS_FROM(from, from_type, kind)           \
  CAST_FN(from, from_type, F32, f32, float, kind)   \
  CAST_FN(from, from_type, F64, f64, double, kind)  \
  CAST_FN(from, from_type, U8, u8, uint8_t, kind)   \
  CAST_FN(from, from_type, I8, i8, int8_t, kind)    \
  CAST_FN(from, from_type, I16, i16, int16_t, kind) \
  CAST_FN(from, from_type, I32, i32, int32_t, kind) \
  CAST_FN(from, from_type, I64, i64, int64_t, kind) \
  CAST_FN(from, from_type, BOOL, b1, uint8_t, kind)
CASTS_FROM(f32, float, FLOAT)
CASTS_FROM(f64, double, FLOAT)
CASTS_FROM(u8, uint8_t, INT)
CASTS_FROM(i8, int8_t, INT)
CASTS_FROM(i16, int16_t, INT)
CASTS_FROM(i32, int32_t, INT)
CASTS_FROM(i64, int64_t, INT)
CASTS_FROM(b1, uint8_t, INT)
#define CAST_ROW(from)                                                                    \
  {cast_##from##_to_f32, cast_##from##_to_f64, cast_##from##_to_u8,  cast_##from##_to_i8, \
   cast_##from##_to_i16, cast_##from##_to_i32, cast_##from##_to_i64, cast_##from##_to_b1}
static const eval_fn eval_casts[EVAL_TYPE__COUNT][EVAL_TYPE__COUNT] = {
    CAST_ROW(f32), CAST_ROW(f64), CAST_ROW(u8),  CAST_ROW(i8),
    CAST_ROW(i16), CAST_ROW(i32), CAST_ROW(i64), CAST_ROW(b1)};

/* Vectors of KILN_MATH_LANES halves. */
typedef uint16_t halves __attribute__((vector_size(2 * KILN_MATH_LANES), aligned(2)));
#define HALF_FNS(name)                                                                            \
  static void cast_##name##_to_f32(void *r, const void *x, const void *y, const void *z, int n) { \
    (void)y, (void)z;                                                                             \
    for (int i = 0; i < n; i += KILN_MATH_LANES) {                                                \
      halves narrow = {0};                                                                        \
      MOVE_VECTOR(&narrow, (const uint16_t *)x + i, n - i, KILN_MATH_LANES, sizeof(uint16_t));    \
      const kiln_f32v v =                                                                         \
          kiln_math_from_##name##_f32v(__builtin_convertvector(narrow, kiln_i32v));               \
      MOVE_VECTOR((float *)r + i, &v, n - i, KILN_MATH_LANES, sizeof(float));                     \
    }                                                                                             \
  }                                                                                               \
  static void cast_f32_to_##name(void *r, const void *x, const void *y, const void *z, int n) {   \
    (void)y, (void)z;                                                                             \
    for (int i = 0; i < n; i += KILN_MATH_LANES) {                                                \
      kiln_f32v v = {0};                                                                          \
      MOVE_VECTOR(&v, (const float *)x + i, n - i, KILN_MATH_LANES, sizeof(float));               \
      const halves narrow = __builtin_convertvector(kiln_math_to_##name##_f32v(v), halves);       \
      MOVE_VECTOR((uint16_t *)r + i, &narrow, n - i, KILN_MATH_LANES, sizeof(uint16_t));          \
    }                                                                                             \
  }
HALF_FNS(f16)
HALF_FNS(bf16)
