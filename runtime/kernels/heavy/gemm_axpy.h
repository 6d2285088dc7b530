/* gemm_axpy.h: few rows times a matrix whose rows are contiguous, for one type (gemm_isa.c). Rows
 * of the right factor are read from memory as they lie, several at a time, and added up in a strip
 * of sums that stays in the nearest cache; a tile would read them in pieces, pages apart. The order
 * of the sums is that of the tiles. No include guard. */

/* sums[i][j] += a[i][0 .. steps) times rows of b; `columns` is a multiple of W. */
ALWAYS_INLINE void NAME(axpy)(T *sums, const T *a, int64_t a_row, int64_t a_k, const T *b,
                              int64_t b_row, int64_t columns, const int rows, const int steps) {
  V x[KILN_GEMM_AXPY_ROWS][8];
  const T *from[8];
  KILN_MATH_UNROLL for (int q = 0; q < steps; q++) {
    from[q] = b + q * b_row;
    KILN_MATH_UNROLL for (int i = 0; i < rows; i++) x[i][q] = a[i * a_row + q * a_k] - (V){0};
  }
  for (int64_t j = 0; j < columns; j += WIDTH) {
    V acc[KILN_GEMM_AXPY_ROWS];
    KILN_MATH_UNROLL for (int i = 0; i < rows; i++) {
      acc[i] = *(const VU *)(sums + i * NAME(STRIP) + j);
    }
    KILN_MATH_UNROLL for (int q = 0; q < steps; q++) {
      V y = *(const VU *)(from[q] + j);
      if (rows > 1) KEEP(y);
      KILN_MATH_UNROLL for (int i = 0; i < rows; i++) acc[i] = FMA(acc[i], y, x[i][q]);
    }
    KILN_MATH_UNROLL for (int i = 0; i < rows; i++) {
      *(VU *)(sums + i * NAME(STRIP) + j) = acc[i];
    }
  }
}
/* Steps at once: what the registers hold. */
#if KILN_KERNEL_LEVEL == 2
#define AXPY_STEPS(rows) 8
#else
#define AXPY_STEPS(rows) ((rows) == 1 ? 8 : 4)
#endif
#define AXPY(rows)                                                                                \
  static __attribute__((noinline)) void NAME(axpy_##rows)(T * sums, const T *a, int64_t a_row,    \
                                                          int64_t a_k, const T *b, int64_t b_row, \
                                                          int64_t columns, int64_t k) {           \
    int64_t p = 0;                                                                                \
    for (; p + AXPY_STEPS(rows) <= k; p += AXPY_STEPS(rows)) {                                    \
      NAME(axpy)                                                                                  \
      (sums, a + p * a_k, a_row, a_k, b + p * b_row, b_row, columns, rows, AXPY_STEPS(rows));     \
    }                                                                                             \
    for (; p < k; p++) {                                                                          \
      NAME(axpy)(sums, a + p * a_k, a_row, a_k, b + p * b_row, b_row, columns, rows, 1);          \
    }                                                                                             \
  }
AXPY(1)
AXPY(2)
AXPY(3)
#undef AXPY
#undef AXPY_STEPS

/* m is at most KILN_GEMM_AXPY_ROWS. */
static void NAME(axpy_rows)(const kiln_gemm_args *g) {
  static void (*const axpys[])(T *, const T *, int64_t, int64_t, const T *, int64_t, int64_t,
                               int64_t) = {NAME(axpy_1), NAME(axpy_2), NAME(axpy_3)};
  T sums[KILN_GEMM_AXPY_ROWS * NAME(STRIP)];
  kiln_budget *budget = kiln_budget_current();
  for (int64_t j = 0; j < g->n; j += NAME(STRIP)) {
    const int64_t columns = g->n - j < NAME(STRIP) ? g->n - j : NAME(STRIP);
    const int64_t whole = columns / WIDTH * WIDTH;
    for (int64_t p = 0; p < g->k && !kiln_budget_is_over(budget); p += KC) {
      const int64_t k = g->k - p < KC ? g->k - p : KC;
      const T *a = (const T *)g->a + p * g->a_col, *b = (const T *)g->b + p * g->b_row + j;
      for (int64_t i = 0; i < g->m; i++) {
        memset(sums + i * NAME(STRIP), 0, (size_t)columns * sizeof(T));
      }
      axpys[g->m - 1](sums, a, g->a_row, g->a_col, b, g->b_row, whole, k);
      for (int64_t q = 0; q < k && whole < columns; q++) {
        for (int64_t i = 0; i < g->m; i++) {
          const T x = a[i * g->a_row + q * g->a_col];
          T *to = sums + i * NAME(STRIP);
          for (int64_t c = whole; c < columns; c++) to[c] = FMA1(to[c], b[q * g->b_row + c], x);
        }
      }
      const NAME(dest) c = NAME(whole)(g, p), at = NAME(dest_at)(&c, 0, j);
      NAME(finish)(&at, sums, NAME(STRIP), g->m, columns);
    }
  }
}
