/* gemm_dot.h: few rows times a transposed matrix: dot products of rows, for one type (gemm_isa.c).
 *
 * A dot product is summed in as many lanes as 64 bytes hold, lane l taking the elements l, l +
 * lanes,
 * ...; then the upper half of the lanes is added to the lower until one is left. No include guard.
 */

enum {
  NAME(SUM_LANES) = 64 / (int)sizeof(T),
  NAME(DV) = NAME(SUM_LANES) / WIDTH, /* vectors of a sum */
};

/* Neighbouring halves of segments of 2 d lanes: of a and b, all lower ones or all upper ones. */
#define SEGMENT_LOW(j, d) ((j) / (d) * 2 * (d) + (j) % (d))
#define SEGMENT_HIGH(j, d) ((j) / (d) * 2 * (d) + (j) % (d) + (d))
#define FOLD(x, count, d)                                                \
  if (WIDTH > (d)) {                                                     \
    KILN_MATH_UNROLL for (int i_ = 0; i_ < ((count) + 1) / 2; i_++) {    \
      const V a_ = (x)[2 * i_], b_ = (count) > 1 ? (x)[2 * i_ + 1] : a_; \
      (x)[i_] = __builtin_shufflevector(a_, b_, LANES(SEGMENT_LOW, d)) + \
                __builtin_shufflevector(a_, b_, LANES(SEGMENT_HIGH, d)); \
    }                                                                    \
  }
/* Lane i of the result is the sum of the lanes of x[i]; count is a power of two, at most W. */
ALWAYS_INLINE V NAME(sums_of)(V *x, const int count) {
  int left = count;
#if WIDTH >= 16
  FOLD(x, left, 8)
  left = (left + 1) / 2;
#endif
#if WIDTH >= 8
  FOLD(x, left, 4)
  left = (left + 1) / 2;
#endif
#if WIDTH >= 4
  FOLD(x, left, 2)
  left = (left + 1) / 2;
#endif
  FOLD(x, left, 1)
  return x[0];
}

/* Fewer elements than a sum has lanes, and zeros. */
ALWAYS_INLINE void NAME(load_rest)(const T *p, int64_t count, V out[NAME(DV)]) {
#if KILN_KERNEL_LEVEL == 2
  const unsigned mask = (1u << count) - 1;
  out[0] = sizeof(T) == 4 ? (V)_mm512_maskz_loadu_ps((__mmask16)mask, p)
                          : (V)_mm512_maskz_loadu_pd((__mmask8)mask, p);
#else
  T few[NAME(SUM_LANES)] = {0};
  memcpy(few, p, (size_t)count * sizeof(T));
  memcpy(out, few, sizeof few);
#endif
}

/* `rows` rows of a times `columns` rows of b, b_col elements apart, to sums[row * pitch + column].
 * What lies `ahead` elements behind them is asked for, into the second cache: rows that lie in the
 * third one or in memory are too short for what the CPU asks for by itself. */
ALWAYS_INLINE void NAME(dot_tile)(const T *a, int64_t a_row, const T *b, int64_t b_col, int64_t k,
                                  T *sums, int64_t pitch, const int rows, const int columns,
                                  const bool asks, int64_t ahead) {
  enum { DV = NAME(DV), LANES_ = NAME(SUM_LANES) };
  V acc[4][8][DV];
  KILN_MATH_UNROLL for (int i = 0; i < rows; i++) {
    KILN_MATH_UNROLL for (int j = 0; j < columns; j++) {
      KILN_MATH_UNROLL for (int q = 0; q < DV; q++) acc[i][j][q] = (V){0};
    }
  }
  int64_t p = 0;
  for (; p + LANES_ <= k; p += LANES_) {
    if (asks) {
      KILN_MATH_UNROLL for (int j = 0; j < columns; j++)
          __builtin_prefetch(b + ahead + j * b_col + p, 0, 2);
    }
    KILN_MATH_UNROLL for (int q = 0; q < DV; q++) {
      V x[4];
      KILN_MATH_UNROLL for (int i = 0; i < rows; i++) {
        x[i] = *(const VU *)(a + i * a_row + p + q * WIDTH);
        if (columns > 1) KEEP(x[i]);
      }
      KILN_MATH_UNROLL for (int j = 0; j < columns; j++) {
        V y = *(const VU *)(b + j * b_col + p + q * WIDTH);
        if (rows > 1) KEEP(y);
        KILN_MATH_UNROLL for (int i = 0; i < rows; i++) acc[i][j][q] = FMA(acc[i][j][q], y, x[i]);
      }
    }
  }
  if (p < k) { /* the rest, and zeros */
    V x[4][DV], y[DV];
    KILN_MATH_UNROLL for (int i = 0; i < rows; i++) NAME(load_rest)(a + i * a_row + p, k - p, x[i]);
    KILN_MATH_UNROLL for (int j = 0; j < columns; j++) {
      NAME(load_rest)(b + j * b_col + p, k - p, y);
      KILN_MATH_UNROLL for (int q = 0; q < DV; q++) {
        KILN_MATH_UNROLL for (int i = 0; i < rows; i++) acc[i][j][q] =
            FMA(acc[i][j][q], y[q], x[i][q]);
      }
    }
  }
  KILN_MATH_UNROLL for (int i = 0; i < rows; i++) {
    V one[8];
    KILN_MATH_UNROLL for (int j = 0; j < columns; j++) {
      KILN_MATH_UNROLL for (int w = DV / 2; w > 0; w /= 2) {
        KILN_MATH_UNROLL for (int q = 0; q < w; q++) acc[i][j][q] += acc[i][j][q + w];
      }
      one[j] = acc[i][j][0];
    }
    const V result = NAME(sums_of)(one, columns);
    memcpy(sums + i * pitch, &result, (size_t)columns * sizeof(T));
  }
}

/* Columns of a tile by its rows: what the registers hold. */
#if KILN_KERNEL_LEVEL == 2
#define DOT_COLUMNS(rows) 4
#elif KILN_KERNEL_LEVEL == 1
#define DOT_COLUMNS(rows) ((rows) > 1 ? 2 : 4)
#else
#define DOT_COLUMNS(rows) 2
#endif
enum { NAME(DOT_MR) = KILN_KERNEL_LEVEL == 2 ? 4 : KILN_KERNEL_LEVEL == 1 ? 3 : 1 };
#define DOT(name, rows, asks)                                                                     \
  static __attribute__((noinline)) void NAME(name)(const T *a, int64_t a_row, const T *b,         \
                                                   int64_t b_col, int64_t k, int64_t n, T *sums,  \
                                                   int64_t pitch, int64_t ahead) {                \
    enum { COLUMNS = DOT_COLUMNS(rows) < WIDTH ? DOT_COLUMNS(rows) : WIDTH };                     \
    int64_t j = 0;                                                                                \
    for (; j + COLUMNS <= n; j += COLUMNS) {                                                      \
      NAME(dot_tile)(a, a_row, b + j * b_col, b_col, k, sums + j, pitch, rows, COLUMNS, asks,     \
                     ahead);                                                                      \
    }                                                                                             \
    if (j < n && n >= COLUMNS) { /* the last columns, some of them once more: less than alone */  \
      NAME(dot_tile)                                                                              \
      (a, a_row, b + (n - COLUMNS) * b_col, b_col, k, sums + (n - COLUMNS), pitch, rows, COLUMNS, \
       false, 0);                                                                                 \
      return;                                                                                     \
    }                                                                                             \
    for (; j < n; j++)                                                                            \
      NAME(dot_tile)(a, a_row, b + j * b_col, b_col, k, sums + j, pitch, rows, 1, false, 0);      \
  }
enum { NAME(DOT_BLOCK) = 16 }; /* columns that all rows go over before the next ones */
DOT(dot_1, 1, false)
DOT(dot_1_ahead, 1, true)
#if KILN_KERNEL_LEVEL > 0
DOT(dot_2, 2, false)
DOT(dot_3, 3, false)
DOT(dot_3_ahead, 3, true)
#endif
#if KILN_KERNEL_LEVEL == 2
DOT(dot_4, 4, false)
DOT(dot_4_ahead, 4, true)
#endif
#undef DOT
#undef DOT_COLUMNS

/* All columns, a few at a time, so that b is read from memory once. m is at most
 * KILN_GEMM_DOT_ROWS. */
static void NAME(dot_rows)(const kiln_gemm_args *g, const kiln_gemm_plan *plan,
                           const NAME(dest) * c, T *scratch) {
  enum { BLOCK = NAME(DOT_BLOCK), MAX_ROWS = KILN_GEMM_DOT_ROWS, AHEAD_BYTES = 16384 };
  /* As they are; and of one row, and the first of many, while the others go over what is there. */
  static void (*const dots[2][NAME(DOT_MR)])(const T *, int64_t, const T *, int64_t, int64_t,
                                             int64_t, T *, int64_t, int64_t) = {
#if KILN_KERNEL_LEVEL == 2
      {NAME(dot_1), NAME(dot_2), NAME(dot_3), NAME(dot_4)},
      {NAME(dot_1_ahead), NAME(dot_2), NAME(dot_3_ahead), NAME(dot_4_ahead)},
#elif KILN_KERNEL_LEVEL == 1
      {NAME(dot_1), NAME(dot_2), NAME(dot_3)},
      {NAME(dot_1_ahead), NAME(dot_2), NAME(dot_3_ahead)},
#else
      {NAME(dot_1)},
      {NAME(dot_1_ahead)},
#endif
  };
  const T *a = g->a;
  int64_t a_row = g->a_row;
  if (g->a_col != 1) {
    for (int64_t i = 0; i < g->m; i++) {
      for (int64_t p = 0; p < g->k; p++) scratch[i * g->k + p] = a[i * g->a_row + p * g->a_col];
    }
    a = scratch;
    a_row = g->k;
  }
  T sums[MAX_ROWS * BLOCK];
  const int64_t blocks = (g->n + BLOCK - 1) / BLOCK;
  const int64_t alone = AHEAD_BYTES / (g->k * (int64_t)sizeof(T) + 1) + 1;
  const int64_t ahead = (g->m == 1 ? alone : BLOCK) * g->b_col;
  for (int64_t block = 0; block < blocks; block++) {
    const int64_t j = (plan->backwards ? blocks - 1 - block : block) * BLOCK;
    const int64_t columns = g->n - j < BLOCK ? g->n - j : BLOCK;
    for (int64_t i = 0; i < g->m;) {
      const int64_t left = g->m - i, most = NAME(DOT_MR);
      const int64_t tiles = (left + most - 1) / most, rows = (left + tiles - 1) / tiles;
      dots[plan->ahead && i == 0][rows - 1](a + i * a_row, a_row, (const T *)g->b + j * g->b_col,
                                            g->b_col, g->k, columns, sums + i * BLOCK, BLOCK,
                                            ahead);
      i += rows;
    }
    const NAME(dest) at = NAME(dest_at)(c, 0, j);
    NAME(finish)(&at, sums, BLOCK, g->m, columns);
  }
}
