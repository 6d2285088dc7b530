/* math_test.c: accuracy, special values and equality over instruction sets of runtime/math.
 *
 * The reference is the C library's long double functions. Errors are in units of the last place of
 * the true result; the bounds are those that functions.def promises. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "math_isa.h"

enum { BLOCK = 4096 };

static long double sigmoidl(long double x) {
  return x >= 0 ? 1 / (1 + expl(-x)) : expl(x) / (1 + expl(x));
}
static long double ndtrl(long double x) {
  return erfcl(-x * 0.70710678118654752440084436210484904L) / 2;
}
static long double gelul(long double x) { return x * ndtrl(x); }
typedef struct reference {
  const char *name;
  long double (*one)(long double);
  long double (*two)(long double, long double);
} reference;
static const reference references[] = {
    {"exp", expl, NULL},         {"exp_normal", expl, NULL}, {"exp2", exp2l, NULL},
    {"expm1", expm1l, NULL},     {"log", logl, NULL},        {"log1p", log1pl, NULL},
    {"log2", log2l, NULL},       {"log10", log10l, NULL},    {"tanh", tanhl, NULL},
    {"sigmoid", sigmoidl, NULL}, {"erf", erfl, NULL},        {"erfc", erfcl, NULL},
    {"ndtr", ndtrl, NULL},       {"gelu", gelul, NULL},      {"sin", sinl, NULL},
    {"cos", cosl, NULL},         {"tan", tanl, NULL},        {"asin", asinl, NULL},
    {"acos", acosl, NULL},       {"atan", atanl, NULL},      {"sinh", sinhl, NULL},
    {"cosh", coshl, NULL},       {"atan2", NULL, atan2l},    {"pow", NULL, powl}};

/* `normal`: the least normal number. */
static long double want_of(const char *name, long double x, long double y, long double normal) {
  for (size_t i = 0; i < sizeof references / sizeof *references; i++) {
    if (strcmp(references[i].name, name) != 0) continue;
    const long double want = references[i].one ? references[i].one(x) : references[i].two(x, y);
    const int is_normal = strcmp(name, "exp_normal") == 0 || strcmp(name, "sigmoid") == 0;
    return is_normal && want < normal ? 0 : want;
  }
  fail_msg("no reference for %s", name);
  return 0;
}

/* Error of `got` in units of the last of `digits` digits of `want`, or of `least` where that is
 * greater; results beyond the greatest number count as 2^top, the next one. */
static double ulps(double got, long double want, long double least, int digits, int top) {
  if (isnan(want) || isnan(got)) return isnan(want) && isnan(got) ? 0 : 1e9;
  long double big = ldexpl(1, top), g = (long double)got, w = want;
  if (g > big) g = big;
  if (g < -big) g = -big;
  if (w > big) w = big;
  if (w < -big) w = -big;
  if (w == 0) return g == 0 && !signbit(got) == !signbit(want) ? 0 : 1e9;
  int e;
  (void)frexpl(fabsl(w) < least ? least : w, &e);
  if (e < 3 - top) e = 3 - top;
  if (e > top) e = top;
  return (double)(fabsl(g - w) / ldexpl(1, e - digits));
}

static uint64_t state = 88172645463325252u;
static uint64_t next_random(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}
static double from_bits(uint64_t u) {
  double d;
  memcpy(&d, &u, sizeof d);
  return d;
}
/* Bit patterns of all kinds, small and large intervals, whole numbers, neighbourhoods of pi/2. */
static double random_number(void) {
  uint64_t u = next_random();
  double unit = (double)(int64_t)u * 0x1p-63;
  switch (next_random() % 8) {
    case 0: return from_bits(u);
    case 1: return unit;
    case 2: return unit * 30;
    case 3: return unit * 750;
    case 4: return ldexp(unit, (int)(next_random() % 40) - 20);
    case 5: return ((double)(u % 2000) - 1000) * 1.5707963267948966;
    case 6: return 1 + unit / 2;
    default: return (double)(u % 41) - 20;
  }
}
static const double specials[] = {0.0,
                                  -0.0,
                                  1.0,
                                  -1.0,
                                  0.5,
                                  -0.5,
                                  2.0,
                                  -2.0,
                                  3.0,
                                  -3.0,
                                  INFINITY,
                                  -INFINITY,
                                  NAN,
                                  0x1p-149,
                                  -0x1p-149,
                                  0x1p-126,
                                  0x1.fffffep127,
                                  -0x1.fffffep127,
                                  88.0,
                                  89.0,
                                  -88.0,
                                  -104.0,
                                  0x1p-1074,
                                  -0x1p-1074,
                                  0x1p-1022,
                                  710.0,
                                  -746.0,
                                  0x1.fffffffffffffp1023,
                                  -0x1.fffffffffffffp1023,
                                  1e22,
                                  -1e300,
                                  0.625,
                                  0.47,
                                  1e-30};
enum { SPECIALS = sizeof specials / sizeof *specials };

/* The form at work: its instruction sets must agree to the bit. */
static const math_isa *isas[3];
static int isa_count;

static int plain_form(void **unused) {
  (void)unused;
  isa_count = 0;
  isas[isa_count++] = &math_isa_v2;
  if (__builtin_cpu_supports("avx2")) isas[isa_count++] = &math_isa_plain_avx2;
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
    isas[isa_count++] = &math_isa_plain_avx512;
  return 0;
}
static int fma_form(void **unused) {
  (void)unused;
  isa_count = 0;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    isas[isa_count++] = &math_isa_avx2;
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
    isas[isa_count++] = &math_isa_avx512;
  return 0;
}

static float xf[BLOCK], yf[BLOCK], of[3][BLOCK];
static double xd[BLOCK], yd[BLOCK], od[3][BLOCK];

/* Runs the block on every instruction set, checks that all give the same bits (any NaN equals any
 * other), and the first against the reference. */
/* Below 0 gelu is held to what PyTorch's own difference has (functions.def). */
static long double least_of(const char *name, float x) {
  return strcmp(name, "gelu") == 0 && isfinite(x) ? fabsl((long double)x) / 8 : 0;
}
static void check_f32(int fn) {
  const math_fn *f = &isas[0]->fns[fn];
  for (int k = 0; k < isa_count; k++) isas[k]->fns[fn].run_f32(xf, yf, of[k], BLOCK);
  for (int i = 0; i < BLOCK; i++) {
    long double want =
        want_of(f->name, (long double)xf[i], (long double)yf[i], (long double)FLT_MIN);
    double error = ulps((double)of[0][i], want, least_of(f->name, xf[i]), 24, 128);
    if (error > f->ulp_f32)
      fail_msg("%s f32 of %a, %a: %a, not %La: %g ulp", f->name, (double)xf[i], (double)yf[i],
               (double)of[0][i], want, error);
    for (int k = 1; k < isa_count; k++) {
      if (memcmp(&of[0][i], &of[k][i], 4) != 0 && !(isnan(of[0][i]) && isnan(of[k][i])))
        fail_msg("%s f32 of %a, %a: %a at %d lanes, %a at %d", f->name, (double)xf[i],
                 (double)yf[i], (double)of[0][i], isas[0]->lanes, (double)of[k][i], isas[k]->lanes);
    }
  }
}
static void check_f64(int fn) {
  const math_fn *f = &isas[0]->fns[fn];
  for (int k = 0; k < isa_count; k++) isas[k]->fns[fn].run_f64(xd, yd, od[k], BLOCK);
  for (int i = 0; i < BLOCK; i++) {
    long double want =
        want_of(f->name, (long double)xd[i], (long double)yd[i], (long double)DBL_MIN);
    double error = ulps(od[0][i], want, 0, 53, 1024);
    if (error > f->ulp_f64)
      fail_msg("%s f64 of %a, %a: %a, not %La: %g ulp", f->name, xd[i], yd[i], od[0][i], want,
               error);
    for (int k = 1; k < isa_count; k++) {
      if (memcmp(&od[0][i], &od[k][i], 8) != 0 && !(isnan(od[0][i]) && isnan(od[k][i])))
        fail_msg("%s f64 of %a, %a: %a at %d lanes, %a at %d", f->name, xd[i], yd[i], od[0][i],
                 isas[0]->lanes, od[k][i], isas[k]->lanes);
    }
  }
}

static void test_random(void **unused) {
  (void)unused;
  for (int fn = 0; fn < isas[0]->count; fn++) {
    for (int round = 0; round < 24; round++) {
      for (int i = 0; i < BLOCK; i++) {
        xd[i] = random_number();
        yd[i] = random_number();
        xf[i] = (float)xd[i];
        yf[i] = (float)yd[i];
      }
      check_f32(fn);
      check_f64(fn);
    }
  }
}

/* Every 9973rd of the floats, so all exponents with hundreds of numbers each. */
static void test_sweep_f32(void **unused) {
  (void)unused;
  for (int fn = 0; fn < isas[0]->count; fn++) {
    uint64_t bits = 0;
    while (bits < UINT64_C(1) << 32) {
      for (int i = 0; i < BLOCK; i++, bits += 9973) {
        uint32_t b = (uint32_t)bits, c = (uint32_t)next_random();
        memcpy(&xf[i], &b, 4);
        memcpy(&yf[i], &c, 4);
      }
      check_f32(fn);
    }
  }
}

static void test_specials(void **unused) {
  (void)unused;
  for (int fn = 0; fn < isas[0]->count; fn++) {
    for (int i = 0; i < BLOCK; i++) {
      xd[i] = specials[i % SPECIALS];
      yd[i] = specials[i / SPECIALS % SPECIALS];
      xf[i] = (float)xd[i];
      yf[i] = (float)yd[i];
    }
    check_f32(fn);
    check_f64(fn);
  }
}

/* By the definition of the format: all 65536 values there and back. */
static void test_half(void **unused) {
  (void)unused;
  static unsigned short h[16], back[16];
  static float f[16];
  for (int k = 0; k < isa_count; k++) {
    for (int b = 0; b < 65536; b += 16) {
      for (int i = 0; i < 16; i++) h[i] = (unsigned short)(b + i);
      isas[k]->from_f16(h, f, 16);
      isas[k]->to_f16(f, back, 16);
      for (int i = 0; i < 16; i++) {
        int e = h[i] >> 10 & 31, m = h[i] & 1023;
        double want =
            e == 31 ? (m ? NAN : INFINITY) : (e ? ldexp(1024 + m, e - 25) : ldexp(m, -24));
        if (h[i] >> 15) want = -want;
        if (isnan(want)) {
          assert_true(isnan(f[i]));
          assert_true((back[i] & 0x7c00) == 0x7c00 && (back[i] & 0x3ff));
        } else {
          assert_true((double)f[i] == want && !signbit(f[i]) == !signbit(want));
          assert_int_equal(back[i], h[i]);
        }
      }
    }
    /* Rounding: halfway goes to even, beyond it away, the largest finite to infinity. */
    const float in[16] = {1 + 0x1p-11f, 1 + 3 * 0x1p-11f, 1 + 0x1.1p-11f, 65504.0f,
                          65519.0f,     65520.0f,         0x1p-25f,       0x1.1p-25f,
                          0x1.8p-24f,   -0x1p-24f,        0x1.ffep-15f,   0x1.fffp-15f,
                          1e10f,        -INFINITY,        0x1p-149f,      -0.0f};
    const unsigned short out[16] = {0x3c00, 0x3c02, 0x3c01, 0x7bff, 0x7bff, 0x7c00, 0x0000, 0x0001,
                                    0x0002, 0x8001, 0x0400, 0x0400, 0x7c00, 0xfc00, 0x0000, 0x8000};
    isas[k]->to_f16(in, back, 16);
    for (int i = 0; i < 16; i++) assert_int_equal(back[i], out[i]);
    const float bin[16] = {1.0f,
                           1 + 0x1p-8f,
                           1 + 3 * 0x1p-8f,
                           1 + 0x1.1p-8f,
                           -0.0f,
                           INFINITY,
                           0x1.fffffep127f,
                           0x1p-133f,
                           0x1p-134f,
                           0x1.8p-134f,
                           -2.5f,
                           0,
                           0,
                           0,
                           0,
                           0};
    const unsigned short bout[16] = {0x3f80, 0x3f80, 0x3f82, 0x3f81, 0x8000, 0x7f80, 0x7f80, 0x0001,
                                     0x0000, 0x0001, 0xc020, 0,      0,      0,      0,      0};
    isas[k]->to_bf16(bin, back, 16);
    for (int i = 0; i < 16; i++) assert_int_equal(back[i], bout[i]);
    const float nan_in[16] = {NAN};
    isas[k]->to_bf16(nan_in, back, 16);
    assert_true((back[0] & 0x7f80) == 0x7f80 && (back[0] & 0x7f));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_specials),
      cmocka_unit_test(test_half),
      cmocka_unit_test(test_random),
      cmocka_unit_test(test_sweep_f32),
  };
  int failures = cmocka_run_group_tests_name("without fma", tests, plain_form, NULL);
  fma_form(NULL);
  if (isa_count == 0) return failures;
  return failures + cmocka_run_group_tests_name("with fma", tests, fma_form, NULL);
}
