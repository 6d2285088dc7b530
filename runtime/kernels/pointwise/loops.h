/* loops.h: loops over the functors of pointwise.def for one element type. No include guard.
 *
 * The includer defines KILN_PW_T (element type), KILN_PW_TAG (a token for names), one of
 * KILN_PW_IS_BOOL, _INT, _FLOAT, _COMPLEX, and includes this once; the result is the array
 * kiln__pw_<tag>_<isa>. Plain expressions are left to the compiler's vectoriser; class V is written
 * over the explicit vectors of runtime/math. */
#include "runtime/kernels/isa.h"

#define T KILN_PW_T
#define LOOP(name) KILN_ISA_CAT3(pw_##name, _, KILN_PW_TAG)
#define P(k) p##k
#define MAX_OF(v, lo) ((v) < (lo) ? (lo) : (v))
#define MIN_OF(v, hi) ((v) > (hi) ? (hi) : (v))

#if defined(KILN_PW_IS_COMPLEX)
#define PARAM(k) complex_of((R_OF)params->f[2 * (k)], (R_OF)params->f[2 * (k) + 1])
#elif defined(KILN_PW_IS_FLOAT)
#define PARAM(k) (T) params->f[k]
#else
#define PARAM(k) (T) params->i[k]
#endif
#define PARAMS                                         \
  const T p0 = PARAM(0), p1 = PARAM(1), p2 = PARAM(2); \
  (void)p0, (void)p1, (void)p2, (void)params

/* -- Plain loops -- */

#define AT(type, base, i, stride) (*(const type *)((base) + (i) * (stride)))
#if defined(KILN_PW_IS_BOOL)
#define VALUE(v) ((v) != 0) /* of a file or a host: any byte but 0 is true */
#else
#define VALUE(v) (v)
#endif
#define STORE(type, base, i, stride, v) (*(type *)((base) + (i) * (stride)) = (type)(v))
#define LOOP_HEAD(name)                                                        \
  static void LOOP(name)(char *const *data, const int64_t *strides, int64_t n, \
                         kiln_pw_params *params)

#define LOOP1(name, R, expr)                        \
  LOOP_HEAD(name) {                                 \
    PARAMS;                                         \
    char *o = data[0];                              \
    const char *a = data[1];                        \
    const int64_t so = strides[0], sa = strides[1]; \
    if (so == sizeof(R) && sa == sizeof(T)) {       \
      R *out = (R *)o;                              \
      const T *in = (const T *)a;                   \
      KILN_IVDEP for (int64_t i = 0; i < n; i++) {  \
        const T x = VALUE(in[i]);                   \
        out[i] = (R)(expr);                         \
      }                                             \
      return;                                       \
    }                                               \
    for (int64_t i = 0; i < n; i++) {               \
      const T x = VALUE(AT(T, a, i, sa));           \
      STORE(R, o, i, so, expr);                     \
    }                                               \
  }
#define LOOP2(name, R, expr)                                          \
  LOOP_HEAD(name) {                                                   \
    PARAMS;                                                           \
    char *o = data[0];                                                \
    const char *a = data[1], *b = data[2];                            \
    const int64_t so = strides[0], sa = strides[1], sb = strides[2];  \
    if (so == sizeof(R)) {                                            \
      R *out = (R *)o;                                                \
      const T *in = (const T *)a, *in2 = (const T *)b;                \
      if (sa == sizeof(T) && sb == sizeof(T)) {                       \
        KILN_IVDEP for (int64_t i = 0; i < n; i++) {                  \
          const T x = VALUE(in[i]), y = VALUE(in2[i]);                \
          out[i] = (R)(expr);                                         \
        }                                                             \
        return;                                                       \
      }                                                               \
      if (sa == sizeof(T) && sb == 0) {                               \
        const T y = VALUE(*in2);                                      \
        KILN_IVDEP for (int64_t i = 0; i < n; i++) {                  \
          const T x = VALUE(in[i]);                                   \
          out[i] = (R)(expr);                                         \
        }                                                             \
        return;                                                       \
      }                                                               \
      if (sa == 0 && sb == sizeof(T)) {                               \
        const T x = VALUE(*in);                                       \
        KILN_IVDEP for (int64_t i = 0; i < n; i++) {                  \
          const T y = VALUE(in2[i]);                                  \
          out[i] = (R)(expr);                                         \
        }                                                             \
        return;                                                       \
      }                                                               \
    }                                                                 \
    for (int64_t i = 0; i < n; i++) {                                 \
      const T x = VALUE(AT(T, a, i, sa)), y = VALUE(AT(T, b, i, sb)); \
      STORE(R, o, i, so, expr);                                       \
    }                                                                 \
  }
/* Of dense operands, `j` and `k` the places of y and z: i, or 0 where one is a number. */
#define LOOP3_DENSE(XT, expr, j, k)                                     \
  KILN_IVDEP for (int64_t i = 0; i < n; i++) {                          \
    const XT x = ((const XT *)a)[i];                                    \
    const T y = VALUE(((const T *)b)[j]), z = VALUE(((const T *)c)[k]); \
    ((T *)o)[i] = (T)(expr);                                            \
  }                                                                     \
  return;
#define LOOP3(name, XT, expr)                                                         \
  LOOP_HEAD(name) {                                                                   \
    PARAMS;                                                                           \
    char *o = data[0];                                                                \
    const char *a = data[1], *b = data[2], *c = data[3];                              \
    const int64_t so = strides[0], sa = strides[1], sb = strides[2], sc = strides[3]; \
    if (so == sizeof(T) && sa == sizeof(XT)) {                                        \
      if (sb == sizeof(T) && sc == sizeof(T)) {                                       \
        LOOP3_DENSE(XT, expr, i, i)                                                   \
      }                                                                               \
      if (sb == sizeof(T) && sc == 0) {                                               \
        LOOP3_DENSE(XT, expr, i, 0)                                                   \
      }                                                                               \
      if (sb == 0 && sc == sizeof(T)) {                                               \
        LOOP3_DENSE(XT, expr, 0, i)                                                   \
      }                                                                               \
    }                                                                                 \
    for (int64_t i = 0; i < n; i++) {                                                 \
      const XT x = AT(XT, a, i, sa);                                                  \
      const T y = VALUE(AT(T, b, i, sb)), z = VALUE(AT(T, c, i, sc));                 \
      STORE(T, o, i, so, expr);                                                       \
    }                                                                                 \
  }

/* -- Vector loops -- */

#if defined(KILN_PW_IS_FLOAT)
#define VF(name) KILN_ISA_CAT3(kiln_math_, name, KILN_PW_V_SUFFIX)
typedef KILN_PW_V V;
typedef KILN_PW_VU VU;
typedef KILN_PW_VI VI;
enum { LANES = (int)(sizeof(V) / sizeof(T)) };
#define VK(c) ((V){0} + (T)(c))
static inline V vector_select(VI mask, V a, V b) { return (V)((mask & (VI)a) | (~mask & (VI)b)); }
#define VSEL(mask, a, b) vector_select((VI)(mask), (a), (b))
#define VABS(v) VSEL((v) < 0, -(v), (v))

/* The next m elements, `stride` apart; lanes beyond m repeat the last, so that they raise nothing.
 */
static __attribute__((noinline)) void vector_gather(T *out, const char *base, int64_t stride,
                                                    int64_t m) {
  for (int64_t j = 0; j < m; j++) out[j] = AT(T, base, j, stride);
  for (int64_t j = m; j < LANES; j++) out[j] = out[m - 1];
}
static __attribute__((noinline)) void vector_scatter(char *base, int64_t stride, int64_t m,
                                                     const T *in) {
  for (int64_t j = 0; j < m; j++) STORE(T, base, j, stride, in[j]);
}
#define VECTOR_LOAD(v, base, stride)                                   \
  V v;                                                                 \
  if (m == LANES && (stride) == sizeof(T)) {                           \
    v = *(const VU *)((base) + i * (int64_t)sizeof(T));                \
  } else {                                                             \
    V gathered;                                                        \
    vector_gather((T *)&gathered, (base) + i * (stride), (stride), m); \
    v = gathered;                                                      \
  }
#define VECTOR_STORE(v)                                       \
  if (m == LANES && so == sizeof(T)) {                        \
    *(VU *)(o + i * (int64_t)sizeof(T)) = (v);                \
  } else {                                                    \
    V scattered = (v);                                        \
    vector_scatter(o + i * so, so, m, (const T *)&scattered); \
  }
#define LOOPV1(name, expr)                             \
  LOOP_HEAD(name) {                                    \
    PARAMS;                                            \
    char *o = data[0];                                 \
    const char *a = data[1];                           \
    const int64_t so = strides[0], sa = strides[1];    \
    for (int64_t i = 0; i < n; i += LANES) {           \
      const int64_t m = n - i < LANES ? n - i : LANES; \
      VECTOR_LOAD(x, a, sa)                            \
      const V result = (expr);                         \
      VECTOR_STORE(result)                             \
    }                                                  \
  }
#define LOOPV2(name, expr)                                           \
  LOOP_HEAD(name) {                                                  \
    PARAMS;                                                          \
    char *o = data[0];                                               \
    const char *a = data[1], *b = data[2];                           \
    const int64_t so = strides[0], sa = strides[1], sb = strides[2]; \
    for (int64_t i = 0; i < n; i += LANES) {                         \
      const int64_t m = n - i < LANES ? n - i : LANES;               \
      VECTOR_LOAD(x, a, sa)                                          \
      VECTOR_LOAD(y, b, sb)                                          \
      const V result = (expr);                                       \
      VECTOR_STORE(result)                                           \
    }                                                                \
  }

#include "runtime/kernels/pointwise/float_quotients.h"

static inline V softplus_of(V x) {
  /* log(1 + e^x), without overflow. */
  return VSEL(x > 0, x, VK(0)) + VF(log1p)(VF(exp)(-VABS(x)));
}
/* x Φ(x) */
static inline V gelu_erf(V x) { return VF(gelu)(x); }
static inline V sinc_of(V x) {
  V u = x * (T)3.14159265358979323846;
  return VSEL(u == 0, VK(1), VF(sin)(u) / u);
}
static inline V logit_of(V x, T eps) {
  if (eps >= 0) {
    x = VSEL(x < eps, VK(eps), VSEL(x > 1 - eps, VK(1 - eps), x));
  }
  return VF(log)(x / (1 - x));
}
#endif

#include "runtime/kernels/pointwise/classes.h"
#define KILN_PW(name, arity, result)
#include "runtime/kernels/pointwise/pointwise.def"
#undef KILN_PW
#undef KILN_PW_W3
#define KILN_PW_TABLE 1
#include "runtime/kernels/pointwise/classes.h"
#define KILN_PW(name, arity, result)
const kiln_pw_loop KILN_ISA_CAT4(kiln__pw_, KILN_PW_TAG, _, KILN_KERNEL_ISA)[KILN_PW__COUNT] = {
#include "runtime/kernels/pointwise/pointwise.def"
};
#undef KILN_PW
#undef KILN_PW_TABLE
