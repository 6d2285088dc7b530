/* window.c: windows for transforms. */
#include <math.h>

#include "runtime/kernels/composite.h"
#include "runtime/kernels/factory/factory.h"

typedef struct window {
  double n; /* points of the symmetric window, less one */
  double a, b;
} window;
typedef double (*window_fn)(const window *w, double i);
static double bartlett(const window *w, double i) {
  const double x = 2 * i / w->n;
  return x <= 1 ? x : 2 - x;
}
static double blackman(const window *w, double i) {
  const double x = M_PI * i / w->n;
  return 0.42 - 0.5 * cos(2 * x) + 0.08 * cos(4 * x);
}
static double cosine(const window *w, double i) { return w->a - w->b * cos(2 * M_PI * i / w->n); }
/* The modified Bessel function of the first kind and order 0: its power series. */
static double bessel_i0(double x) {
  double term = 1, sum = 1;
  for (int k = 1; k < 500 && term > sum * 1e-17; k++) {
    term *= x * x / (4.0 * k * k);
    sum += term;
  }
  return sum;
}
static double kaiser(const window *w, double i) {
  const double x = 2 * i / w->n - 1, root = 1 - x * x;
  return bessel_i0(w->a * sqrt(root > 0 ? root : 0)) / bessel_i0(w->a);
}
/* length, `more` of periodic and two numbers, dtype, layout, device, pin_memory */
static kiln_tensor *make_window(kiln__composite *r, const kiln_ivalue *args, int more,
                                const char *name, window_fn fn, double a, double b) {
  const int64_t length = kiln_arg_int(args, 0);
  const bool periodic = more < 1 || kiln_arg_bool(args, 1);
  const kiln_dtype dtype = kiln__arg_dtype_or(args, more + 1, KILN_DTYPE_F32);
  const window w = {(double)length - !periodic,
                    more > 1 ? kiln_arg_float(args, 2) : a, more > 2 ? kiln_arg_float(args, 3) : b};
  kiln_tensor *t;
  if (!kiln__composite_ok(r, kiln__check_device(args[more + 3]))) return NULL;
  if (!kiln_dtype_is_float(dtype)) {
    return FAIL(r, "%s expects floating point dtypes, got: %s", name, kiln_dtype_ir_name(dtype));
  }
  if (length < 0) {
    return FAIL(r, "%s requires non-negative window_length, got window_length=%lld", name,
                (long long)length);
  }
  double *to = kiln__composite_new(r, KILN_DTYPE_F64, 1, &length, &t);
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; to && i < length && !kiln_budget_spent(&left, 16); i++) {
    to[i] = length == 1 ? 1 : fn(&w, (double)i);
  }
  return kiln__composite_to(r, t, dtype);
}
#define WINDOW(kernel, more, name, fn, a, b) \
  KILN_COMPOSITE(kernel) { return make_window(r, args, more, #name, fn, a, b); }
WINDOW(bartlett_window, 0, bartlett_window, bartlett, 0, 0)
WINDOW(bartlett_window_periodic, 1, bartlett_window, bartlett, 0, 0)
WINDOW(blackman_window, 0, blackman_window, blackman, 0, 0)
WINDOW(blackman_window_periodic, 1, blackman_window, blackman, 0, 0)
WINDOW(hann_window, 0, hann_window, cosine, 0.5, 0.5)
WINDOW(hann_window_periodic, 1, hann_window, cosine, 0.5, 0.5)
WINDOW(hamming_window, 0, hamming_window, cosine, 0.54, 0.46)
WINDOW(hamming_window_periodic, 1, hamming_window, cosine, 0.54, 0.46)
WINDOW(hamming_window_periodic_alpha, 2, hamming_window, cosine, 0.54, 0.46)
WINDOW(hamming_window_periodic_alpha_beta, 3, hamming_window, cosine, 0.54, 0.46)
WINDOW(kaiser_window, 0, kaiser_window, kaiser, 12, 0)
WINDOW(kaiser_window_periodic, 1, kaiser_window, kaiser, 12, 0)
WINDOW(kaiser_window_beta, 2, kaiser_window, kaiser, 12, 0)
