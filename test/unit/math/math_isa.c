/* math_isa.c: every function of the library over arrays; compiled for each instruction set, with
 * MATH_ISA set to its name. Counts are multiples of 16. */
#include "math_isa.h"

#include <string.h>

#include "runtime/math/math.h"

#define RUN(name, type, suffix, ...)                                                         \
  static void run_##name##_##suffix(const type *x, const type *y, type *out, size_t count) { \
    (void)y;                                                                                 \
    size_t lanes = sizeof(kiln_##suffix##v) / sizeof(type);                                  \
    for (size_t i = 0; i < count; i += lanes) {                                              \
      kiln_##suffix##v a, b, r;                                                              \
      memcpy(&a, x + i, sizeof a);                                                           \
      memcpy(&b, y + i, sizeof b);                                                           \
      r = kiln_math_##name##_##suffix##v(__VA_ARGS__);                                       \
      memcpy(out + i, &r, sizeof r);                                                         \
    }                                                                                        \
  }
#define ARGS_1 a
#define ARGS_2 a, b
#define KILN_MATH_FN(name, arity, ulp_f32, ulp_f64) \
  RUN(name, float, f32, ARGS_##arity)               \
  RUN(name, double, f64, ARGS_##arity)
#include "runtime/math/functions.def"
#undef KILN_MATH_FN

static void run_to_16(const float *x, unsigned short *out, size_t count, int bf) {
  for (size_t i = 0; i < count; i += KILN_MATH_LANES) {
    kiln_f32v a;
    memcpy(&a, x + i, sizeof a);
    kiln_i32v r = bf ? kiln_math_to_bf16_f32v(a) : kiln_math_to_f16_f32v(a);
    for (int j = 0; j < KILN_MATH_LANES; j++) out[i + (size_t)j] = (unsigned short)r[j];
  }
}
static void run_to_f16(const float *x, unsigned short *out, size_t count) {
  run_to_16(x, out, count, 0);
}
static void run_to_bf16(const float *x, unsigned short *out, size_t count) {
  run_to_16(x, out, count, 1);
}
static void run_from_f16(const unsigned short *x, float *out, size_t count) {
  for (size_t i = 0; i < count; i += KILN_MATH_LANES) {
    kiln_i32v a;
    for (int j = 0; j < KILN_MATH_LANES; j++) a[j] = x[i + (size_t)j];
    kiln_f32v r = kiln_math_from_f16_f32v(a);
    memcpy(out + i, &r, sizeof r);
  }
}

static const math_fn fns[] = {
#define KILN_MATH_FN(name, arity, ulp_f32, ulp_f64) \
  {#name, arity, ulp_f32, ulp_f64, run_##name##_f32, run_##name##_f64},
#include "runtime/math/functions.def"
#undef KILN_MATH_FN
};

#define ISA_NAME_(isa) math_isa_##isa
#define ISA_NAME(isa) ISA_NAME_(isa)
const math_isa ISA_NAME(MATH_ISA) = {
    KILN_MATH_LANES, sizeof fns / sizeof *fns, fns, run_to_f16, run_from_f16, run_to_bf16};
