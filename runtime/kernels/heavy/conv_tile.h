/* conv_tile.h: the product of a tile, of one type and one vector (conv_isa.h): PRODUCT is its name,
 * P the vector, PU the same unaligned, PRODUCT_FMA its a + b * x. No include guard. */

/* c[rows][vectors] = start (or c) + a[rows][k] b[k][vectors]. Lines of c are prefetched for writing
 * before the sum, where c is written for the first time: it is rarely in a cache then, and stores
 * would wait for one line after the other. */
static inline __attribute__((always_inline)) void NAME(PRODUCT)(const int rows, const int vectors,
                                                                int64_t k, const T *a,
                                                                int64_t a_row, const T *b,
                                                                int64_t b_row, T *c, int64_t c_row,
                                                                const T *start, bool first) {
  enum { width = (int)(sizeof(P) / sizeof(T)) };
  P acc[NAME(MR)][3];
#pragma GCC unroll 8
  for (int i = 0; i < rows; i++) {
#pragma GCC unroll 3
    for (int j = 0; j < vectors; j++) {
      T *to = c + i * c_row + j * width;
      if (first) {
        __builtin_prefetch(to, 1);
        acc[i][j] = (start ? start[i] : 0) - (P){0};
      } else {
        acc[i][j] = *(PU *)to;
      }
    }
  }
  const T *a3 = a + 3 * a_row, *a6 = a3 + 3 * a_row;
  for (int64_t p = 0; p < k; p++, b += b_row) {
    P x[3];
#pragma GCC unroll 3
    for (int j = 0; j < vectors; j++) x[j] = *(const PU *)(b + j * width);
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) {
      const T *from = i < 3 ? a + i * a_row : i < 6 ? a3 + (i - 3) * a_row : a6 + (i - 6) * a_row;
      const P w = from[p] - (P){0};
#pragma GCC unroll 3
      for (int j = 0; j < vectors; j++) acc[i][j] = PRODUCT_FMA(acc[i][j], x[j], w);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < rows; i++) {
#pragma GCC unroll 3
    for (int j = 0; j < vectors; j++) *(PU *)(c + i * c_row + j * width) = acc[i][j];
  }
}
#undef PRODUCT
#undef P
#undef PU
#undef PRODUCT_FMA
