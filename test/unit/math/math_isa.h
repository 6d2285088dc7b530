/* math_isa.h: the vector math library as arrays, once for each instruction set. */
#pragma once

#include <stddef.h>

typedef struct math_fn {
  const char *name;
  int arity;
  double ulp_f32, ulp_f64;
  void (*run_f32)(const float *x, const float *y, float *out, size_t count);
  void (*run_f64)(const double *x, const double *y, double *out, size_t count);
} math_fn;

typedef struct math_isa {
  int lanes;
  int count;
  const math_fn *fns;
  void (*to_f16)(const float *x, unsigned short *out, size_t count);
  void (*from_f16)(const unsigned short *x, float *out, size_t count);
  void (*to_bf16)(const float *x, unsigned short *out, size_t count);
} math_isa;

/* plain: without fma, as v2. */
extern const math_isa math_isa_v2, math_isa_avx2, math_isa_avx512, math_isa_plain_avx2,
    math_isa_plain_avx512;
