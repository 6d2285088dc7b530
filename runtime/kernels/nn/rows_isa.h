/* rows_isa.h: softmax, layer norm and the like over contiguous rows of one type (see rows_isa.c).
 * No include guard. Sums follow reduce/reduce.h; exp and log are those of runtime/math. */
enum { JOIN(LANES) = (int)(sizeof(V) / sizeof(T)) };

static inline T JOIN(reduce)(kiln_reduce_op op, const T *in, int64_t n, T shift) {
  T result;
  KILN_ISA_CAT2(kiln__reduce_, KILN_KERNEL_ISA)
  [op][CTYPE]((char *)&result, (const char *)in, n, (int64_t)sizeof(T), 1, 0, &shift);
  return result;
}
/* out = e^(in - max), without denormals */
static void JOIN(exp_row)(T *out, const T *in, int64_t n, T max) {
  int64_t i = 0;
  for (; i + JOIN(LANES) <= n; i += JOIN(LANES)) {
    *(VU *)(out + i) = VF(exp_normal)(*(const VU *)(in + i) - max);
  }
  if (i < n) {
    V x = {0};
    memcpy(&x, in + i, (size_t)(n - i) * sizeof(T));
    x = VF(exp_normal)(x - max);
    memcpy(out + i, &x, (size_t)(n - i) * sizeof(T));
  }
}
static void JOIN(softmax)(void *out_row, const void *in_row, int64_t n) {
  T *out = out_row;
  JOIN(exp_row)(out, in_row, n, JOIN(reduce)(KILN_REDUCE_MAX, in_row, n, 0));
  const T sum = JOIN(reduce)(KILN_REDUCE_SUM, out, n, 0);
  KILN_IVDEP for (int64_t i = 0; i < n; i++) out[i] = out[i] / sum;
}
static void JOIN(log_softmax)(void *out_row, const void *in_row, int64_t n) {
  T *out = out_row;
  const T *in = in_row;
  const T max = JOIN(reduce)(KILN_REDUCE_MAX, in, n, 0);
  JOIN(exp_row)(out, in, n, max);
  const T log_sum = VS(log)(JOIN(reduce)(KILN_REDUCE_SUM, out, n, 0));
  KILN_IVDEP for (int64_t i = 0; i < n; i++) out[i] = in[i] - max - log_sum;
}
static void JOIN(layer_norm)(void *out_row, const void *in_row, int64_t n, const void *weight,
                             const void *bias, double eps, void *out_mean, void *out_rstd) {
  T *out = out_row;
  const T *in = in_row, *w = weight, *b = bias;
  const T mean = JOIN(reduce)(KILN_REDUCE_SUM, in, n, 0) / (T)n;
  const T variance = JOIN(reduce)(KILN_REDUCE_SUMSQ, in, n, mean) / (T)n;
  const T rstd = 1 / SQRT(variance + (T)eps);
  if (w && b) {
    KILN_IVDEP for (int64_t i = 0; i < n; i++) out[i] = (in[i] - mean) * rstd * w[i] + b[i];
  } else if (w) {
    KILN_IVDEP for (int64_t i = 0; i < n; i++) out[i] = (in[i] - mean) * rstd * w[i];
  } else if (b) {
    KILN_IVDEP for (int64_t i = 0; i < n; i++) out[i] = (in[i] - mean) * rstd + b[i];
  } else {
    KILN_IVDEP for (int64_t i = 0; i < n; i++) out[i] = (in[i] - mean) * rstd + 0;
  }
  if (out_mean) *(T *)out_mean = mean;
  if (out_rstd) *(T *)out_rstd = rstd;
}
/* Of one place, or of those of a vector. */
#define ADD_PLACES(type, load)                              \
  type sums[4] = {0};                                       \
  int64_t r = 0;                                            \
  for (; r + 4 <= rows; r += 4) {                           \
    for (int k = 0; k < 4; k++) {                           \
      const type x = load(in + (r + k) * apart + c) - mean; \
      sums[k] += squares ? x * x : x;                       \
    }                                                       \
  }                                                         \
  for (int k = 0; r + k < rows; k++) {                      \
    const type x = load(in + (r + k) * apart + c) - mean;   \
    sums[k] += squares ? x * x : x;                         \
  }                                                         \
  const type sum = (sums[0] + sums[1]) + (sums[2] + sums[3])
#define LOAD_VECTOR(p) (*(const VU *)(p))
#define LOAD_PLACE(p) (*(p))
static inline __attribute__((always_inline)) void JOIN(add_places)(T *out, const T *in,
                                                                   int64_t apart, int64_t rows,
                                                                   int64_t n, const T *means,
                                                                   const bool squares) {
  int64_t c = 0;
  for (; c + JOIN(LANES) <= n; c += JOIN(LANES)) {
    const V mean = squares ? (V)LOAD_VECTOR(means + c) : (V){0};
    ADD_PLACES(V, LOAD_VECTOR);
    *(VU *)(out + c) = sum;
  }
  for (; c < n; c++) {
    const T mean = squares ? means[c] : 0;
    ADD_PLACES(T, LOAD_PLACE);
    out[c] = sum;
  }
}
#undef ADD_PLACES
#undef LOAD_VECTOR
#undef LOAD_PLACE
static void JOIN(add_rows)(void *out, const void *in, int64_t apart, int64_t rows, int64_t n,
                           const void *means) {
  if (means)
    JOIN(add_places)(out, in, apart, rows, n, means, true);
  else
    JOIN(add_places)(out, in, apart, rows, n, NULL, false);
}
static void JOIN(scale_shift)(void *out_row, const void *in_row, int64_t n, double scale,
                              double shift) {
  T *out = out_row;
  const T *in = in_row, a = (T)scale, b = (T)shift;
  KILN_IVDEP for (int64_t i = 0; i < n; i++) out[i] = in[i] * a + b;
}
static void JOIN(greatest)(void *out_row, const void *in_rows, int64_t apart, int64_t rows,
                           int64_t n) {
  typedef __typeof__((V){0} > (V){0}) flags;
  T *out = out_row;
  int64_t i = 0;
  for (; i + JOIN(LANES) <= n; i += JOIN(LANES)) {
    const T *in = (const T *)in_rows + i;
    V most = *(const VU *)in;
    for (int64_t row = 1; row < rows; row++) {
      const V x = *(const VU *)(in + row * apart);
      const flags take = (x > most) | (x != x);
      most = (V)((take & (flags)x) | (~take & (flags)most));
    }
    *(VU *)(out + i) = most;
  }
  for (; i < n; i++) {
    const T *in = (const T *)in_rows + i;
    T most = *in;
    for (int64_t row = 1; row < rows; row++) {
      const T x = in[row * apart];
      most = x > most || x != x ? x : most;
    }
    out[i] = most;
  }
}
const kiln_row_kernels KILN_ISA_CAT4(kiln__rows_, TAG, _, KILN_KERNEL_ISA) = {
    .softmax = JOIN(softmax),
    .log_softmax = JOIN(log_softmax),
    .layer_norm = JOIN(layer_norm),
    .add_rows = JOIN(add_rows),
    .scale_shift = JOIN(scale_shift),
    .greatest = JOIN(greatest)};
