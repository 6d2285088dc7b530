/* gemm_isa.h: the matrix product for one type (see gemm_isa.c). No include guard. */

/* Two vectors wide; as many rows as registers allow. */
enum {
  NAME(W) = (int)(sizeof(V) / sizeof(T)),
  NAME(NR) = 2 * NAME(W),
#if KILN_KERNEL_LEVEL == 2
  NAME(MR) = 12,
#else
  NAME(MR) = 4,
#endif
};

/* a[k][MR] times b[k][NR] into acc; both panels are padded with zeros. */
static inline __attribute__((always_inline)) void NAME(tile)(int64_t k, const T *a, const T *b,
                                                             V acc[NAME(MR)][2]) {
  for (int64_t p = 0; p < k; p++) {
    const V b0 = *(const VU *)(b + p * NAME(NR)), b1 = *(const VU *)(b + p * NAME(NR) + NAME(W));
#pragma GCC unroll 16
    for (int i = 0; i < NAME(MR); i++) {
      const V x = (V){0} + a[p * NAME(MR) + i];
      acc[i][0] = FMA(acc[i][0], b0, x);
      acc[i][1] = FMA(acc[i][1], b1, x);
    }
  }
}
/* One tile of C: beta on the first block of k, then sums. */
static __attribute__((noinline)) void NAME(tile_to)(int64_t k, const T *a, const T *b, T *c,
                                                    int64_t c_row, int64_t c_col, int64_t rows,
                                                    int64_t columns, T alpha, T beta) {
  V acc[NAME(MR)][2];
#pragma GCC unroll 16
  for (int i = 0; i < NAME(MR); i++) acc[i][0] = acc[i][1] = (V){0};
  NAME(tile)(k, a, b, acc);
  if (c_col == 1 && columns == NAME(NR)) {
    for (int i = 0; i < rows; i++) {
      VU *to = (VU *)(c + i * c_row);
      V low = alpha == 1 ? acc[i][0] : acc[i][0] * alpha;
      V high = alpha == 1 ? acc[i][1] : acc[i][1] * alpha;
      if (beta != 0) {
        low += *(const VU *)to * beta;
        high += *(const VU *)((T *)to + NAME(W)) * beta;
      }
      *to = low;
      *(VU *)((T *)to + NAME(W)) = high;
    }
    return;
  }
  for (int i = 0; i < rows; i++) {
    const T *row = (const T *)acc[i];
    for (int64_t j = 0; j < columns; j++) {
      T *to = c + i * c_row + j * c_col;
      const T value = alpha == 1 ? row[j] : row[j] * alpha;
      *to = beta == 0 ? value : value + *to * beta;
    }
  }
}
/* Rows [0, m) x k of A into panels of MR rows. */
static void NAME(pack_a)(T *to, const T *a, int64_t row, int64_t col, int64_t m, int64_t k) {
  for (int64_t i = 0; i < m; i += NAME(MR)) {
    const int64_t rows = m - i < NAME(MR) ? m - i : NAME(MR);
    for (int64_t p = 0; p < k; p++) {
      for (int64_t r = 0; r < NAME(MR); r++) {
        *to++ = r < rows ? a[(i + r) * row + p * col] : (T)0;
      }
    }
  }
}
/* k x columns [0, n) of B into panels of NR columns. */
static void NAME(pack_b)(T *to, const T *b, int64_t row, int64_t col, int64_t k, int64_t n) {
  for (int64_t j = 0; j < n; j += NAME(NR)) {
    const int64_t columns = n - j < NAME(NR) ? n - j : NAME(NR);
    if (col == 1 && columns == NAME(NR)) {
      for (int64_t p = 0; p < k; p++, to += NAME(NR)) {
        memcpy(to, b + p * row + j, sizeof(T) * NAME(NR));
      }
      continue;
    }
    /* By columns: where B is a transposed matrix, each is contiguous. */
    for (int64_t c = 0; c < NAME(NR); c++) {
      const T *from = b + (j + c) * col;
      if (c < columns) {
        for (int64_t p = 0; p < k; p++) to[p * NAME(NR) + c] = from[p * row];
      } else {
        for (int64_t p = 0; p < k; p++) to[p * NAME(NR) + c] = 0;
      }
    }
    to += k * NAME(NR);
  }
}
/* Few rows: each row of C is a sum of rows of B, in registers over a block of columns. */
static void NAME(few_rows)(const kiln_gemm_args *g) {
  const T alpha = (T)g->alpha, beta = (T)g->beta;
  for (int64_t i = 0; i < g->m; i++) {
    const T *a = (const T *)g->a + i * g->a_row;
    T *c = (T *)g->c + i * g->c_row;
    int64_t j = 0;
    for (; j + 4 * NAME(W) <= g->n; j += 4 * NAME(W)) {
      T *to = c + j;
      for (int64_t block = 0; block < g->k; block += KC) {
        const int64_t end = block + KC < g->k ? block + KC : g->k;
        V acc[4] = {{0}, {0}, {0}, {0}};
        for (int64_t p = block; p < end; p++) {
          const T *b = (const T *)g->b + p * g->b_row + j;
          const V x = (V){0} + a[p * g->a_col];
#pragma GCC unroll 4
          for (int q = 0; q < 4; q++) acc[q] = FMA(acc[q], *(const VU *)(b + q * NAME(W)), x);
        }
        const T scale = block == 0 ? beta : 1;
        for (int q = 0; q < 4; q++) {
          VU *at = (VU *)(to + q * NAME(W));
          const V value = alpha == 1 ? acc[q] : acc[q] * alpha;
          *at = scale == 0 ? value : value + *at * scale;
        }
      }
    }
    for (; j < g->n; j++) {
      for (int64_t block = 0; block < g->k; block += KC) {
        const int64_t end = block + KC < g->k ? block + KC : g->k;
        T acc = 0;
        for (int64_t p = block; p < end; p++) {
          acc = FMA1(acc, ((const T *)g->b)[p * g->b_row + j], a[p * g->a_col]);
        }
        const T scale = block == 0 ? beta : 1, value = alpha == 1 ? acc : acc * alpha;
        c[j] = scale == 0 ? value : value + c[j] * scale;
      }
    }
  }
}
/* Few rows times a transposed matrix. */
static T NAME(dot)(const T *a, const T *b, int64_t n) {
  enum { VECTORS = KILN_REDUCE_LANES / NAME(W) };
  V lanes[VECTORS];
#pragma GCC unroll 32
  for (int q = 0; q < VECTORS; q++) lanes[q] = (V){0};
  int64_t i = 0;
  for (; i + KILN_REDUCE_LANES <= n; i += KILN_REDUCE_LANES) {
#pragma GCC unroll 32
    for (int q = 0; q < VECTORS; q++) {
      lanes[q] = FMA(lanes[q], *(const VU *)(a + i + q * NAME(W)),
                     (V) * (const VU *)(b + i + q * NAME(W)));
    }
  }
  T sums[KILN_REDUCE_LANES];
  memcpy(sums, lanes, sizeof sums);
  for (int j = 0; i < n; i++, j++) sums[j] = FMA1(sums[j], a[i], b[i]);
  for (int w = KILN_REDUCE_LANES / 2; w > 0; w /= 2) {
    for (int j = 0; j < w; j++) sums[j] += sums[j + w];
  }
  return sums[0];
}
static void NAME(dot_rows)(const kiln_gemm_args *g) {
  const T alpha = (T)g->alpha, beta = (T)g->beta;
  for (int64_t j = 0; j < g->n; j++) {
    for (int64_t i = 0; i < g->m; i++) {
      T *to = (T *)g->c + i * g->c_row + j * g->c_col;
      T value =
          alpha * NAME(dot)((const T *)g->a + i * g->a_row, (const T *)g->b + j * g->b_col, g->k);
      *to = beta == 0 ? value : value + *to * beta;
    }
  }
}

void KILN_ISA_CAT4(kiln__gemm_, TAG, _, KILN_KERNEL_ISA)(const kiln_gemm_args *g) {
  if (g->k == 0) { /* beta C remains */
    for (int64_t i = 0; i < g->m; i++) {
      for (int64_t j = 0; j < g->n; j++) {
        T *to = (T *)g->c + i * g->c_row + j * g->c_col;
        *to = g->beta == 0 ? (T)0 : *to * (T)g->beta;
      }
    }
    return;
  }
  if (g->m <= 4 && g->b_col == 1 && g->c_col == 1) {
    NAME(few_rows)(g);
    return;
  }
  if (g->m <= 4 && g->a_col == 1 && g->b_row == 1) {
    NAME(dot_rows)(g);
    return;
  }
  T *packed_b = g->scratch;
  const int64_t nc = g->n < NC ? (g->n + NAME(NR) - 1) / NAME(NR) * NAME(NR) : NC;
  const int64_t kc = g->k < KC ? g->k : KC;
  T *packed_a = packed_b + nc * kc;
  for (int64_t jc = 0; jc < g->n; jc += NC) {
    const int64_t n = g->n - jc < NC ? g->n - jc : NC;
    for (int64_t pc = 0; pc < g->k; pc += KC) {
      const int64_t k = g->k - pc < KC ? g->k - pc : KC;
      const T beta = pc == 0 ? (T)g->beta : 1;
      NAME(pack_b)
      (packed_b, (const T *)g->b + pc * g->b_row + jc * g->b_col, g->b_row, g->b_col, k, n);
      for (int64_t ic = 0; ic < g->m; ic += MC) {
        const int64_t m = g->m - ic < MC ? g->m - ic : MC;
        NAME(pack_a)
        (packed_a, (const T *)g->a + ic * g->a_row + pc * g->a_col, g->a_row, g->a_col, m, k);
        for (int64_t j = 0; j < n; j += NAME(NR)) {
          for (int64_t i = 0; i < m; i += NAME(MR)) {
            NAME(tile_to)
            (k, packed_a + i * k, packed_b + j * k,
             (T *)g->c + (ic + i) * g->c_row + (jc + j) * g->c_col, g->c_row, g->c_col,
             m - i < NAME(MR) ? m - i : NAME(MR), n - j < NAME(NR) ? n - j : NAME(NR), (T)g->alpha,
             beta);
          }
        }
      }
    }
  }
}
