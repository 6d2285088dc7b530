/* whole.c: whole random numbers: in a range, of all that a dtype holds, permutations.
 *
 * A number is a word modulo the size of its range: 32 bits for ranges below 2^28, else 64, so that
 * the modulo shows little (PyTorch 2.7 and later; before it, 2^32, and only 64-bit dtypes). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/kernels/factory/factory.h"
#include "runtime/kernels/random/random.h"
#include "runtime/kernels/composite.h"

enum { LONG_RANGE = 1 << 28 };

/* -- Ranges -- */

/* count == 0: 2^64 */
typedef struct range {
  uint64_t count;
  int64_t from;
} range;
static void draw_short(kiln_random *g, const void *params, void *to, int64_t n) {
  const range *r = params;
  const uint32_t count = (uint32_t)r->count;
  int64_t *x = to;
  for (int64_t i = 0; i < n; i++) x[i] = (int64_t)(kiln_random_u32(g) % count) + r->from;
}
static void draw_long(kiln_random *g, const void *params, void *to, int64_t n) {
  const range *r = params;
  int64_t *x = to;
  for (int64_t i = 0; i < n; i++) {
    const uint64_t word = kiln_random_u64(g);
    x[i] = (int64_t)((r->count ? word % r->count : word) + (uint64_t)r->from);
  }
}
/* Bits of the mantissa with the one that is not stored; 0: no float. */
static int digits_of(kiln_dtype dtype) {
  switch (dtype) {
    case KILN_DTYPE_F16: return 11;
    case KILN_DTYPE_BF16: return 8;
    case KILN_DTYPE_F32: return 24;
    case KILN_DTYPE_F64: return 53;
    default: return 0;
  }
}
/* The whole numbers of an int or bool. */
static void bounds_of(kiln_dtype dtype, int64_t *out_least, int64_t *out_most) {
  const int bits = 8 * (int)kiln_dtype_bytes(dtype);
  const bool positive = dtype == KILN_DTYPE_U8 || dtype == KILN_DTYPE_BOOL;
  *out_most = dtype == KILN_DTYPE_BOOL ? 1 : (int64_t)(UINT64_MAX >> (64 - bits + !positive));
  *out_least = positive ? 0 : -*out_most - 1;
}
const char *kiln__dtype_c_name(kiln_dtype dtype) {
  switch (dtype) {
    case KILN_DTYPE_U8: return "unsigned char";
    case KILN_DTYPE_I8: return "signed char";
    case KILN_DTYPE_I16: return "short int";
    case KILN_DTYPE_I32: return "int";
    case KILN_DTYPE_I64: return "long int";
    case KILN_DTYPE_F16: return "c10::Half";
    case KILN_DTYPE_BF16: return "c10::BFloat16";
    case KILN_DTYPE_F32: return "float";
    case KILN_DTYPE_F64: return "double";
    case KILN_DTYPE_C64: return "c10::complex<float>";
    case KILN_DTYPE_C128: return "c10::complex<double>";
    case KILN_DTYPE_BOOL: return "bool";
    default: return kiln_dtype_ir_name(dtype);
  }
}
/* What is left of x when it is stored with so many digits. */
static int64_t rounded(int64_t x, int digits) {
  const double wide = (double)x; /* once to 53 digits, as the cast does */
  int exponent;
  if (digits == 53 || x == 0) return wide >= 0x1p63 ? INT64_MAX : (int64_t)wide;
  const double part = frexp(wide, &exponent);
  const double cut = ldexp(nearbyint(ldexp(part, digits)), exponent - digits);
  return cut >= 0x1p63 ? INT64_MAX : (int64_t)cut;
}
static int64_t spacing(int64_t x, int digits) {
  const uint64_t size = x < 0 ? -(uint64_t)x : (uint64_t)x;
  const int log2 = size ? 63 - __builtin_clzll(size) : 0;
  return log2 - digits + 1 > 0 ? (int64_t)1 << (log2 - digits + 1) : 1;
}
/* Narrows [from, to) so that no number of it is rounded to one outside. */
static void narrow(int digits, int64_t *from, int64_t *to) {
  const int64_t low = rounded((int64_t)((uint64_t)*from + 1), digits);
  if (low < *from) *from = low + spacing((int64_t)((uint64_t)*from + 1), digits);
  if (!to) return;
  const int64_t high = rounded(*to - 1, digits);
  if (high >= *to) *to = high - spacing(*to - 1, digits);
}
static kiln_status *check_bounds(kiln_dtype dtype, int64_t from, int64_t last) {
  const char *name = NULL;
  if (dtype == KILN_DTYPE_F16) {
    name = from < -65504 || from > 65504 ? "from" : last < -65504 || last > 65504 ? "to - 1" : NULL;
  } else if (!digits_of(dtype)) {
    int64_t least, most;
    bounds_of(dtype, &least, &most);
    name = from < least || from > most ? "from" : last < least || last > most ? "to - 1" : NULL;
  }
  return name ? KILN_OP_FAIL("%s is out of bounds for %s", name, kiln__dtype_c_name(dtype)) : NULL;
}
static kiln_status *check_dtype(kiln_dtype dtype) {
  if (digits_of(dtype) || dtype == KILN_DTYPE_BOOL || kiln_dtype_is_int(dtype, true)) return NULL;
  return KILN_OP_FAIL(
      "check_random_bounds handles only integral, floating-point and boolean types");
}
static kiln_status *fill(kiln_call *call, kiln_random *g, kiln_tensor *t, range r) {
  const bool is_short = r.count > 0 && r.count < LONG_RANGE;
  return kiln__random_fill(call, g, t, is_short ? draw_short : draw_long, KILN_CTYPE_I64, &r);
}
kiln_status *kiln__random_whole(kiln_call *call, kiln_random *g, kiln_tensor *t, int64_t from,
                                int64_t to) {
  const kiln_dtype dtype = kiln_tensor_dtype(t);
  const int digits = digits_of(dtype);
  for (int i = 0; i < 2; i++) {
    if (from >= to) {
      return KILN_OP_FAIL(
          "random_ expects 'from'%s to be less than 'to'%s, but got from=%lld >= to=%lld",
          i ? " casted to dtype" : "", i ? " casted to dtype" : "", (long long)from, (long long)to);
    }
    if (i == 0 && digits) narrow(digits, &from, &to);
  }
  KILN_TRY(check_dtype(dtype));
  KILN_TRY(check_bounds(dtype, from, to - 1));
  return fill(call, g, t, (range){(uint64_t)to - (uint64_t)from, from});
}
/* From there to the last number that the dtype holds. */
static kiln_status *up_from(kiln_call *call, kiln_random *g, kiln_tensor *t, int64_t from) {
  const kiln_dtype dtype = kiln_tensor_dtype(t);
  const int digits = digits_of(dtype);
  int64_t least, last;
  KILN_TRY(check_dtype(dtype));
  if (from == INT64_MIN) {
    if (dtype != KILN_DTYPE_I64 && !digits) {
      return KILN_OP_FAIL(
          "random_full_64_bits_range_kernel_cpu handles only int64, double, float and bfloat16");
    }
    return fill(call, g, t, (range){0, 0});
  }
  if (digits) {
    last = (int64_t)1 << digits;
    narrow(digits, &from, NULL);
    if (from >= last) {
      return KILN_OP_FAIL(
          "random_ expects 'from' casted to dtype to be less than or equal to 'to_inc' casted to "
          "dtype, but got from=%lld > to_inc=%lld",
          (long long)from, (long long)last);
    }
  } else {
    bounds_of(dtype, &least, &last);
  }
  KILN_TRY(check_bounds(dtype, from, last));
  return fill(call, g, t, (range){(uint64_t)last - (uint64_t)from + 1, from});
}

/* -- All that a dtype holds from 0 on; floats as far as they are exact -- */

static void draw_words(kiln_random *g, const void *params, void *to, int64_t n) {
  const uint64_t *count = params;
  int64_t *x = to;
  for (int64_t i = 0; i < n; i++) x[i] = (int64_t)(kiln_random_u32(g) % *count);
}
static void draw_words64(kiln_random *g, const void *params, void *to, int64_t n) {
  const uint64_t *count = params;
  int64_t *x = to;
  for (int64_t i = 0; i < n; i++) x[i] = (int64_t)(kiln_random_u64(g) % *count);
}
static kiln_status *all_of_dtype(kiln_call *call, kiln_random *g, kiln_tensor *t) {
  const kiln_dtype dtype = kiln_tensor_dtype(t);
  const int digits = digits_of(dtype);
  const bool is_long = dtype == KILN_DTYPE_F64 || dtype == KILN_DTYPE_I64;
  int64_t least, last;
  if (kiln_dtype_is_complex(dtype)) return kiln__not_implemented(call, dtype);
  KILN_TRY(check_dtype(dtype));
  bounds_of(dtype, &least, &last);
  if (digits) last = (int64_t)1 << digits;
  const uint64_t count = (uint64_t)last + 1;
  return kiln__random_fill(call, g, t, is_long ? draw_words64 : draw_words, KILN_CTYPE_I64, &count);
}

/* -- Operators: self, ..., generator -- */

KILN_KERNEL(random_) {
  kiln_random *g;
  KILN_TRY(kiln__random_begin(call, args, 1, &g, outs));
  return all_of_dtype(call, g, SELF);
}
KILN_KERNEL(random_to_) {
  kiln_random *g;
  KILN_TRY(kiln__random_begin(call, args, 2, &g, outs));
  return kiln__random_whole(call, g, SELF, 0, kiln_arg_int(args, 1));
}
KILN_KERNEL(random_from_) {
  kiln_random *g;
  KILN_TRY(kiln__random_begin(call, args, 3, &g, outs));
  if (kiln_arg_is_none(args, 2)) return up_from(call, g, SELF, kiln_arg_int(args, 1));
  return kiln__random_whole(call, g, SELF, kiln_arg_int(args, 1), kiln_arg_int(args, 2));
}

#define INT(i) kiln_arg_int(args, i)
/* low, high; then from args[at] on: size [, generator], dtype, layout, device, pin_memory */
#define WHOLE(name, low, high, at, has_generator)                                        \
  KILN_KERNEL(name) {                                                                    \
    kiln_random *g;                                                                      \
    KILN_TRY(kiln__random_new(call, args, at, has_generator, KILN_DTYPE_I64, &g, outs)); \
    return kiln__random_whole(call, g, outs->u.tensor, low, high);                       \
  }
WHOLE(randint, 0, INT(0), 1, false)
WHOLE(randint_generator, 0, INT(0), 1, true)
WHOLE(randint_low, INT(0), INT(1), 2, false)
WHOLE(randint_low_generator, INT(0), INT(1), 2, true)
/* self, ...; from args[at] on: [generator,] dtype, layout, device, pin_memory, memory_format */
#define WHOLE_LIKE(name, low, high, at, has_generator)                        \
  KILN_KERNEL(name) {                                                         \
    kiln_random *g;                                                           \
    KILN_TRY(kiln__random_new_like(call, args, at, has_generator, &g, outs)); \
    return kiln__random_whole(call, g, outs->u.tensor, low, high);            \
  }
WHOLE_LIKE(randint_like, 0, INT(1), 2, false)
WHOLE_LIKE(randint_like_generator, 0, INT(1), 2, true)
WHOLE_LIKE(randint_like_low, INT(1), INT(2), 3, false)
WHOLE_LIKE(randint_like_low_generator, INT(1), INT(2), 3, true)

/* -- Permutations (Fisher and Yates, as Durstenfeld has it) -- */

/* Above it the remainder of 32 bits would show. */
enum { SHORT_PERM = UINT32_MAX / 20 };
static void shuffle(kiln_random *g, int64_t *to, int64_t n) {
  const bool is_short = n < SHORT_PERM;
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; is_short && i < n && !kiln_budget_spent(&left, 1); i++) to[i] = i;
  for (int64_t i = 0; i < n && !kiln_budget_spent(&left, 8); i++) {
    if (!is_short) { /* no order to begin with: what is there comes to its place later */
      const int64_t j = (int64_t)(kiln_random_u64(g) % (uint64_t)(i + 1));
      to[i] = i;
      to[i] = to[j];
      to[j] = i;
    } else if (i + 1 < n) {
      const int64_t j = i + kiln_random_u32(g) % (uint32_t)(n - i), kept = to[i];
      to[i] = to[j];
      to[j] = kept;
    }
  }
}
static kiln_status *permute(kiln_call *call, const kiln_ivalue *args, bool has_generator,
                            kiln_ivalue *outs) {
  const int64_t n = kiln_arg_int(args, 0);
  const kiln_dtype dtype = kiln__arg_dtype_or(args, 1 + has_generator, KILN_DTYPE_I64);
  const int digits = digits_of(dtype);
  kiln_tensor *t, *converted;
  kiln_random *g;
  KILN_TRY(kiln__generator(call, has_generator ? args[1] : kiln_none(), &g));
  if (n < 0) return KILN_OP_FAIL("n must be non-negative, got%lld", (long long)n);
  if (dtype == KILN_DTYPE_BOOL || kiln_dtype_is_complex(dtype)) {
    return kiln__not_implemented(call, dtype);
  }
  KILN_TRY(kiln__check_dtype(call, dtype));
  if (digits) {
    const int64_t most = ((int64_t)1 << digits) + 1;
    if (n > most) {
      return KILN_OP_FAIL("n cannot be greater than %lld for %s type.", (long long)most,
                          kiln_dtype_ir_name(dtype));
    }
  } else {
    int64_t least, most;
    bounds_of(dtype, &least, &most);
    if (n > 0 && n > most) {
      return KILN_OP_FAIL("value cannot be converted to type %s without overflow",
                          kiln_dtype_ir_name(dtype));
    }
  }
  KILN_TRY(kiln_call_tensor(call, KILN_DTYPE_I64, 1, &n, &t));
  pthread_mutex_lock(&g->lock);
  shuffle(g, (int64_t *)(uintptr_t)kiln_tensor_data(t), n);
  pthread_mutex_unlock(&g->lock);
  kiln_status *status = kiln__as_dtype(call, t, dtype, &converted);
  kiln_tensor_release_to(&call->cache, t);
  KILN_TRY(status);
  return kiln__give(outs, converted);
}
KILN_KERNEL(randperm) { return permute(call, args, false, outs); }
KILN_KERNEL(randperm_generator) { return permute(call, args, true, outs); }
