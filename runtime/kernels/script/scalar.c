/* scalar.c: arithmetic, comparison and conversion of TorchScript's numbers, with Python's rules:
 * floor division, the divisor's sign in remainders, int64 that wraps around. A kernel serves all
 * overloads of its name: it looks at the values. */
#include <complex.h>
#undef complex /* a member's name */
#include <math.h>
#include <string.h>

#include "runtime/kernels/support.h"

#define WHOLE(n) ((n).kind == KILN_DTYPE_I64 || (n).kind == KILN_DTYPE_BOOL)
#define COMPLEX(n) ((n).kind == KILN_DTYPE_C128)

static inline int64_t wrap_add(int64_t a, int64_t b) {
  return (int64_t)((uint64_t)a + (uint64_t)b);
}
static inline int64_t wrap_sub(int64_t a, int64_t b) {
  return (int64_t)((uint64_t)a - (uint64_t)b);
}
static inline int64_t wrap_mul(int64_t a, int64_t b) {
  return (int64_t)((uint64_t)a * (uint64_t)b);
}

/* -- Arithmetic -- */

#define ARITHMETIC(name, whole, real, complex_re, complex_im)         \
  KILN_KERNEL(name) {                                                 \
    if (args[0].tag == KILN_TAG_INT && args[1].tag == KILN_TAG_INT) { \
      const int64_t a = args[0].u.i, b = args[1].u.i;                 \
      return kiln__give_int(outs, whole);                             \
    }                                                                 \
    kiln_number x = kiln__number(args[0]), y = kiln__number(args[1]); \
    if (COMPLEX(x) || COMPLEX(y)) {                                   \
      return kiln__give_complex(call, complex_re, complex_im, outs);  \
    }                                                                 \
    if (WHOLE(x) && WHOLE(y)) {                                       \
      const int64_t a = x.i, b = y.i;                                 \
      return kiln__give_int(outs, whole);                             \
    }                                                                 \
    return kiln__give_float(outs, real);                              \
  }
ARITHMETIC(scalar_add, wrap_add(a, b), x.f + y.f, x.f + y.f, x.im + y.im)
ARITHMETIC(scalar_sub, wrap_sub(a, b), x.f - y.f, x.f - y.f, x.im - y.im)
ARITHMETIC(scalar_mul, wrap_mul(a, b), x.f *y.f, x.f *y.f - x.im * y.im, x.f *y.im + x.im * y.f)

KILN_KERNEL(scalar_div) {
  kiln_number x = kiln__number(args[0]), y = kiln__number(args[1]);
  if (COMPLEX(x) || COMPLEX(y)) {
    double norm = y.f * y.f + y.im * y.im;
    return kiln__give_complex(call, (x.f * y.f + x.im * y.im) / norm,
                              (x.im * y.f - x.f * y.im) / norm, outs);
  }
  return kiln__give_float(outs, x.f / y.f);
}
static int64_t int_floordiv(int64_t a, int64_t b) {
  if (b == -1) return wrap_sub(0, a);
  int64_t q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}
static int64_t int_remainder(int64_t a, int64_t b) {
  if (b == -1) return 0;
  int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
static double float_remainder(double a, double b) {
  double r = fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
KILN_KERNEL(scalar_floordiv) {
  kiln_number x = kiln__number(args[0]), y = kiln__number(args[1]);
  if (WHOLE(x) && WHOLE(y)) {
    if (y.i == 0) return KILN_OP_FAIL("division by 0: the divisor is zero");
    return kiln__give_int(outs, int_floordiv(x.i, y.i));
  }
  return kiln__give_float(outs, floor(x.f / y.f));
}
KILN_KERNEL(round_to_zero_floordiv) {
  int64_t a = kiln_arg_int(args, 0), b = kiln_arg_int(args, 1);
  if (b == 0) return KILN_OP_FAIL("division by 0: the divisor is zero");
  return kiln__give_int(outs, b == -1 ? wrap_sub(0, a) : a / b);
}
KILN_KERNEL(scalar_remainder) {
  kiln_number x = kiln__number(args[0]), y = kiln__number(args[1]);
  if (WHOLE(x) && WHOLE(y)) {
    if (y.i == 0) return KILN_OP_FAIL("integer modulo by zero");
    return kiln__give_int(outs, int_remainder(x.i, y.i));
  }
  return kiln__give_float(outs, float_remainder(x.f, y.f));
}
/* IEEE remainder: math.remainder */
KILN_KERNEL(mathremainder) {
  kiln_number x = kiln__number(args[0]), y = kiln__number(args[1]);
  return kiln__give_float(outs, remainder(x.f, y.f));
}
KILN_KERNEL(scalar_fmod) {
  kiln_number x = kiln__number(args[0]), y = kiln__number(args[1]);
  return kiln__give_float(outs, fmod(x.f, y.f));
}
KILN_KERNEL(divmod) {
  kiln_number x = kiln__number(args[0]), y = kiln__number(args[1]);
  if (WHOLE(x) && WHOLE(y)) {
    if (y.i == 0) return KILN_OP_FAIL("ZeroDivisionError: integer division or modulo by zero");
    outs[0] = kiln_int(int_floordiv(x.i, y.i));
    outs[1] = kiln_int(int_remainder(x.i, y.i));
    return NULL;
  }
  if (y.f == 0) return KILN_OP_FAIL("ZeroDivisionError: float divmod()");
  double r = float_remainder(x.f, y.f);
  outs[0] = kiln_float((x.f - r) / y.f);
  outs[1] = kiln_float(r);
  return NULL;
}
/* As C++'s std::pow: a real exponent goes by the polar form. */
static void complex_pow(kiln_number x, kiln_number y, double *re, double *im) {
  double _Complex z;
  if (COMPLEX(y)) {
    z = cpow(__builtin_complex(x.f, COMPLEX(x) ? x.im : 0.0), __builtin_complex(y.f, y.im));
  } else if (x.im == 0 && x.f > 0) {
    z = pow(x.f, y.f);
  } else {
    double _Complex t = clog(__builtin_complex(x.f, x.im));
    double r = exp(y.f * creal(t)), angle = y.f * cimag(t);
    z = __builtin_complex(r * cos(angle), r * sin(angle));
  }
  *re = creal(z);
  *im = cimag(z);
}
KILN_KERNEL(scalar_pow) {
  kiln_number x = kiln__number(args[0]), y = kiln__number(args[1]);
  if (COMPLEX(x) || COMPLEX(y)) {
    double re, im;
    complex_pow(x, y, &re, &im);
    return kiln__give_complex(call, re, im, outs);
  }
  if (x.f == 0 && y.f < 0) return KILN_OP_FAIL("0.0 cannot be raised to a negative power");
  return kiln__give_float(outs, pow(x.f, y.f));
}
KILN_KERNEL(scalar_pow_int) {
  return kiln__give_int(outs, kiln__number_i64(kiln__number_float(pow(
                                  (double)kiln_arg_int(args, 0), (double)kiln_arg_int(args, 1)))));
}
KILN_KERNEL(scalar_neg) {
  kiln_number x = kiln__number(args[0]);
  if (COMPLEX(x)) return kiln__give_complex(call, -x.f, -x.im, outs);
  return kiln__give_value(outs, WHOLE(x) ? kiln_int(wrap_sub(0, x.i)) : kiln_float(-x.f));
}
KILN_KERNEL(scalar_abs) {
  if (args[0].tag == KILN_TAG_TENSOR) {
    return KILN_BODY_OF(abs)(call, args, outs);
  }
  kiln_number x = kiln__number(args[0]);
  if (COMPLEX(x)) return kiln__give_float(outs, hypot(x.f, x.im));
  return kiln__give_value(
      outs, WHOLE(x) ? kiln_int(x.i < 0 ? wrap_sub(0, x.i) : x.i) : kiln_float(fabs(x.f)));
}
KILN_KERNEL(scalar_max) {
  kiln_number x = kiln__number(args[0]), y = kiln__number(args[1]);
  if (WHOLE(x) && WHOLE(y)) return kiln__give_int(outs, x.i > y.i ? x.i : y.i);
  return kiln__give_float(outs, x.f >= y.f ? x.f : y.f);
}
KILN_KERNEL(scalar_min) {
  kiln_number x = kiln__number(args[0]), y = kiln__number(args[1]);
  if (WHOLE(x) && WHOLE(y)) return kiln__give_int(outs, x.i < y.i ? x.i : y.i);
  return kiln__give_float(outs, x.f >= y.f ? y.f : x.f);
}
KILN_KERNEL(gcd_int) {
  uint64_t a = (uint64_t)kiln_arg_int(args, 0), b = (uint64_t)kiln_arg_int(args, 1);
  if ((int64_t)a < 0) a = 0 - a;
  if ((int64_t)b < 0) b = 0 - b;
  while (a) {
    uint64_t rest = b % a;
    b = a;
    a = rest;
  }
  return kiln__give_int(outs, (int64_t)b);
}

/* -- Comparison -- */

/* -1, 0, 1; 2 where unordered. Ints and floats are compared by value. */
static int compare(kiln_ivalue a, kiln_ivalue b) {
  if (a.tag == KILN_TAG_STRING) {
    const kiln_string *x = a.u.string, *y = b.u.string;
    size_t n = x->len < y->len ? x->len : y->len;
    int order = memcmp(x->data, y->data, n);
    if (order == 0) order = x->len < y->len ? -1 : x->len > y->len;
    return order < 0 ? -1 : order > 0;
  }
  kiln_number x = kiln__number(a), y = kiln__number(b);
  if (WHOLE(x) && WHOLE(y)) return x.i < y.i ? -1 : x.i > y.i;
  return x.f < y.f ? -1 : x.f > y.f ? 1 : x.f == y.f ? 0 : 2;
}
#define ORDERED(name, test)                \
  KILN_KERNEL(name) {                      \
    int order = compare(args[0], args[1]); \
    return kiln__give_bool(outs, test);    \
  }
ORDERED(scalar_lt, order == -1)
ORDERED(scalar_le, order == -1 || order == 0)
ORDERED(scalar_gt, order == 1)
ORDERED(scalar_ge, order == 1 || order == 0)

static bool number_tag(uint32_t tag) {
  return tag == KILN_TAG_INT || tag == KILN_TAG_FLOAT || tag == KILN_TAG_BOOL ||
         tag == KILN_TAG_COMPLEX;
}
static bool equal(kiln_ivalue a, kiln_ivalue b) {
  if (number_tag(a.tag) && number_tag(b.tag)) {
    kiln_number x = kiln__number(a), y = kiln__number(b);
    if (WHOLE(x) && WHOLE(y)) return x.i == y.i;
    return x.f == y.f && x.im == y.im;
  }
  return kiln_ivalue_equal(a, b);
}
KILN_KERNEL(value_eq) { return kiln__give_bool(outs, equal(args[0], args[1])); }
KILN_KERNEL(value_ne) { return kiln__give_bool(outs, !equal(args[0], args[1])); }
KILN_KERNEL(is) { return kiln__give_bool(outs, kiln_ivalue_is(args[0], args[1])); }
KILN_KERNEL(isnot) { return kiln__give_bool(outs, !kiln_ivalue_is(args[0], args[1])); }

/* -- Bits and truth -- */

KILN_KERNEL(bool_not) { return kiln__give_bool(outs, !kiln_arg_bool(args, 0)); }
#define BITS(name, op)                                                             \
  KILN_KERNEL(name) {                                                              \
    if (args[0].tag == KILN_TAG_BOOL) {                                            \
      *outs = kiln_bool((int)args[0].u.b op(int) args[1].u.b);                     \
    } else {                                                                       \
      *outs = kiln_int((int64_t)((uint64_t)args[0].u.i op(uint64_t) args[1].u.i)); \
    }                                                                              \
    return NULL;                                                                   \
  }
BITS(scalar_and, &)
BITS(scalar_or, |)
BITS(scalar_xor, ^)
KILN_KERNEL(scalar_lshift) {
  return kiln__give_int(outs, (int64_t)((uint64_t)args[0].u.i << (args[1].u.i & 63)));
}
KILN_KERNEL(scalar_rshift) { return kiln__give_int(outs, args[0].u.i >> (args[1].u.i & 63)); }

/* -- Conversion -- */

KILN_KERNEL(to_int) {
  if (args[0].tag == KILN_TAG_STRING) {
    kiln_str text = kiln_arg_str(args, 0);
    size_t from = 0, end = text.len;
    int64_t i;
    while (from < end && strchr(" \t\n\v\f\r", text.data[from])) from++;
    bool plus = from < end && text.data[from] == '+';
    if (plus) from++;
    /* Reads as far as there are digits, as PyTorch does. */
    size_t stop = from + (from < end && text.data[from] == '-' && !plus);
    while (stop < end && text.data[stop] >= '0' && text.data[stop] <= '9') stop++;
    if (!kiln_str_parse_i64(kiln_str_make(text.data + from, stop - from), &i)) {
      return KILN_OP_FAIL("invalid literal for int(): '" KILN_STR_FMT "' (stoll)",
                          KILN_STR_ARG(text));
    }
    if (stop != end) {
      return KILN_OP_FAIL("invalid literal for int() with base 10: '" KILN_STR_FMT "'",
                          KILN_STR_ARG(text));
    }
    return kiln__give_int(outs, i);
  }
  return kiln__give_int(outs, kiln__number_i64(kiln__number(args[0])));
}
KILN_KERNEL(to_float32) {
  return kiln__give_float(outs, (double)(float)kiln_arg_float(args, 0));
}
KILN_KERNEL(to_float) {
  if (args[0].tag == KILN_TAG_STRING) {
    kiln_str text = kiln_arg_str(args, 0);
    const char *end;
    double f = kiln_str_scan_f64(text.data, &end);
    if (end != text.data + text.len) {
      return KILN_OP_FAIL("could not convert string to float: '" KILN_STR_FMT "'%s",
                          KILN_STR_ARG(text), end ? "" : " (stod)");
    }
    return kiln__give_float(outs, f);
  }
  kiln_number x = kiln__number(args[0]);
  if (COMPLEX(x)) return KILN_OP_FAIL("can't convert complex to float");
  return kiln__give_float(outs, x.f);
}
KILN_KERNEL(to_bool) {
  kiln_number x = kiln__number(args[0]);
  return kiln__give_bool(outs, x.f != 0 || x.im != 0);
}
/* Complex.Scalar, and of two parts, which may be tensors. */
static kiln_status *part(kiln_ivalue v, double *out) {
  if (v.tag == KILN_TAG_TENSOR) return kiln_tensor_item_f64(v.u.tensor, out);
  *out = kiln__number(v).f;
  return NULL;
}
KILN_KERNEL(to_complex) {
  kiln_number x = kiln__number(args[0]);
  return kiln__give_complex(call, x.f, x.im, outs);
}
KILN_KERNEL(to_complex_parts) {
  double re, im;
  KILN_TRY(part(args[0], &re));
  KILN_TRY(part(args[1], &im));
  return kiln__give_complex(call, re, im, outs);
}

/* -- math -- */

/* The overload for a Scalar, `name`_scalar, rounds to float, as PyTorch's does. */
#define MATH1(name, expr)                     \
  KILN_KERNEL(name) {                         \
    const double x = kiln__number(args[0]).f; \
    return kiln__give_float(outs, expr);      \
  }                                           \
  KILN_KERNEL(name##_scalar) { return rounded(kiln__kernel_##name(call, args, outs), outs); }
static kiln_status *rounded(kiln_status *status, kiln_ivalue *out) {
  if (!status && out->tag == KILN_TAG_FLOAT) *out = kiln_float((double)(float)out->u.f);
  return status;
}
MATH1(math_log1p, log1p(x))
MATH1(math_expm1, expm1(x))
MATH1(math_erf, erf(x))
MATH1(math_erfc, erfc(x))
MATH1(math_gamma, tgamma(x))
MATH1(math_fabs, fabs(x))
MATH1(math_degrees, x * 180 / M_PI)
MATH1(math_radians, x *M_PI / 180)
static double log_gamma(double x) {
  int sign;
  return lgamma_r(x, &sign);
}
MATH1(math_lgamma, log_gamma(x))
/* Those that take complex numbers too. */
#include <complex.h>
#undef I
static double _Complex as_complex(kiln_number x) {
  double _Complex z;
  __real__ z = x.f;
  __imag__ z = x.im;
  return z;
}
#define MATH1C(name, fn, complex_fn)                                  \
  KILN_KERNEL(math_##name) {                                          \
    kiln_number x = kiln__number(args[0]);                            \
    if (COMPLEX(x)) {                                                 \
      double _Complex z = complex_fn(as_complex(x));                  \
      return kiln__give_complex(call, __real__ z, __imag__ z, outs);  \
    }                                                                 \
    return kiln__give_float(outs, fn(x.f));                           \
  }                                                                   \
  KILN_KERNEL(math_##name##_scalar) {                                 \
    return rounded(kiln__kernel_math_##name(call, args, outs), outs); \
  }
static double _Complex log10_of(double _Complex z) { return clog(z) / 2.30258509299404568402; }
MATH1C(sqrt, sqrt, csqrt)
MATH1C(exp, exp, cexp)
MATH1C(sin, sin, csin)
MATH1C(cos, cos, ccos)
MATH1C(tan, tan, ctan)
MATH1C(asin, asin, casin)
MATH1C(acos, acos, cacos)
MATH1C(atan, atan, catan)
MATH1C(sinh, sinh, csinh)
MATH1C(cosh, cosh, ccosh)
MATH1C(tanh, tanh, ctanh)
MATH1C(asinh, asinh, casinh)
MATH1C(acosh, acosh, cacosh)
MATH1C(atanh, atanh, catanh)
MATH1C(log10, log10, log10_of)
MATH1C(log, log, clog)
KILN_KERNEL(math_log_base) {
  kiln_number x = kiln__number(args[0]), y = kiln__number(args[1]);
  if (COMPLEX(x) || COMPLEX(y)) {
    double _Complex z = clog(as_complex(x)) / clog(as_complex(y));
    return kiln__give_complex(call, __real__ z, __imag__ z, outs);
  }
  return kiln__give_float(outs, log(x.f) / log(y.f));
}
KILN_KERNEL(math_angle) {
  kiln_number x = kiln__number(args[0]);
  return kiln__give_float(outs, COMPLEX(x)   ? atan2(x.im, x.f)
                                : x.f != x.f ? x.f
                                : x.f < 0    ? M_PI
                                             : 0);
}
KILN_KERNEL(math_polar) {
  double r = kiln__number(args[0]).f, angle = kiln__number(args[1]).f;
  return kiln__give_complex(call, r * cos(angle), r * sin(angle), outs);
}
#define MATH2(name, expr)                                                  \
  KILN_KERNEL(name) {                                                      \
    const double x = kiln__number(args[0]).f, y = kiln__number(args[1]).f; \
    return kiln__give_float(outs, expr);                                   \
  }
MATH2(math_atan2, atan2(x, y))
MATH2(math_copysign, copysign(x, y))
KILN_KERNEL(math_ldexp) {
  int64_t e = kiln_arg_int(args, 1);
  return kiln__give_float(outs, ldexp(kiln_arg_float(args, 0), e > 10000    ? 10000
                                                               : e < -10000 ? -10000
                                                                            : (int)e));
}
KILN_KERNEL(math_frexp) {
  int e;
  outs[0] = kiln_float(frexp(kiln_arg_float(args, 0), &e));
  outs[1] = kiln_int(e);
  return NULL;
}
KILN_KERNEL(math_modf) {
  double whole;
  outs[0] = kiln_float(modf(kiln_arg_float(args, 0), &whole));
  outs[1] = kiln_float(whole);
  return NULL;
}
/* floor and ceil give an int; of a Scalar, an int too. */
static kiln_status *to_whole(kiln_ivalue v, double (*how)(double), kiln_ivalue *out) {
  kiln_number x = kiln__number(v);
  if (!WHOLE(x) && !(fabs(how(x.f)) <= 0x1p63)) {
    return KILN_OP_FAIL("Cannot convert float %f to integer", how(x.f));
  }
  return kiln__give_int(out, WHOLE(x) ? x.i : kiln__number_i64(kiln__number_float(how(x.f))));
}
KILN_KERNEL(math_floor) { return to_whole(args[0], floor, outs); }
KILN_KERNEL(math_ceil) { return to_whole(args[0], ceil, outs); }
KILN_KERNEL(math_round) {
  kiln_number x = kiln__number(args[0]);
  return kiln__give_float(outs, rint(x.f));
}
KILN_KERNEL(math_factorial) {
  int64_t n = kiln_arg_int(args, 0), result = 1;
  if (n < 0) return KILN_OP_FAIL("factorial() not defined for negative values");
  for (int64_t i = 2; i <= n && result != 0; i++) result = wrap_mul(result, i);
  return kiln__give_int(outs, result);
}
#define MATH_TEST(name, test)              \
  KILN_KERNEL(name) {                      \
    kiln_number z = kiln__number(args[0]); \
    const double x = z.f, y = z.im;        \
    return kiln__give_bool(outs, test);    \
  }
MATH_TEST(math_isnan, isnan(x) || isnan(y))
MATH_TEST(math_isinf, isinf(x) || isinf(y))
MATH_TEST(math_isfinite, isfinite(x) && isfinite(y))

/* -- Loops and sizes -- */

KILN_KERNEL(range_length) {
  int64_t low = kiln_arg_int(args, 0), high = kiln_arg_int(args, 1), step = kiln_arg_int(args, 2);
  if (step == 0) return KILN_OP_FAIL("range() arg 3 must not be zero");
  int64_t n = 0;
  if (step > 0 && low < high) {
    n = (int64_t)(1 + ((uint64_t)high - 1 - (uint64_t)low) / (uint64_t)step);
  } else if (step < 0 && low > high) {
    n = (int64_t)(1 + ((uint64_t)low - 1 - (uint64_t)high) / ((uint64_t)0 - (uint64_t)step));
  }
  return kiln__give_int(outs, n);
}
KILN_KERNEL(derive_index) {
  return kiln__give_int(outs, wrap_add(kiln_arg_int(args, 1),
                                       wrap_mul(kiln_arg_int(args, 0), kiln_arg_int(args, 2))));
}
KILN_KERNEL(is_grad_enabled) { return kiln__give_bool(outs, call->grad_mode); }
KILN_KERNEL(set_grad_enabled) {
  call->grad_mode = kiln_arg_bool(args, 0);
  return NULL;
}
KILN_KERNEL(say_false) { return kiln__give_bool(outs, false); }
KILN_KERNEL(say_true) { return kiln__give_bool(outs, true); }
KILN_KERNEL(can_cast) {
  return kiln__give_bool(outs, kiln_dtype_can_cast((kiln_dtype)kiln_arg_int(args, 0),
                                                   (kiln_dtype)kiln_arg_int(args, 1)));
}
KILN_KERNEL(promote_types) {
  return kiln__give_int(outs, kiln_dtype_promote((kiln_dtype)kiln_arg_int(args, 0),
                                                 (kiln_dtype)kiln_arg_int(args, 1)));
}
KILN_KERNEL(identity) { return kiln__give_value(outs, kiln_ivalue_retain(args[0])); }
KILN_KERNEL(unwrap_optional) {
  if (args[0].tag == KILN_TAG_NONE) return KILN_OP_FAIL("Unwrapping null optional");
  return kiln__give_value(outs, kiln_ivalue_retain(args[0]));
}
