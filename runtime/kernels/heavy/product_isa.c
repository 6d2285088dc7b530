/* product_isa.c: the product of product_tile.h for one instruction set: sums of all rows and
 * vectors in registers. */
#include "runtime/kernels/heavy/product_tile.h"

ALWAYS_INLINE void multiply(const int rows, const int vectors, const tile_factors *f, float *c,
                            int64_t c_row, const float *init, int64_t init_row) {
  V acc[ROWS][VECTORS];
  const float *a = f->a, *b = f->b, *ahead = f->ahead;
  const int64_t a_row = f->a_row, k = f->k, ahead_step = f->ahead_step;
  UNROLL for (int i = 0; i < rows; i++) {
    UNROLL for (int j = 0; j < vectors; j++) acc[i][j] = (V){0};
  }
  if (init) {
    UNROLL for (int i = 0; i < rows; i++) {
      UNROLL for (int j = 0; j < vectors; j++) acc[i][j] =
          *(const VU *)(init + i * init_row + j * LANES);
    }
  }
  for (int i = 0; f->claim && i < rows; i++) {
    UNROLL for (int j = 0; j * 16 < vectors * LANES; j++)
        __builtin_prefetch(c + i * c_row + j * 16, 1, 3);
  }
  const float *const a3 = a + 3 * a_row, *const a6 = a3 + 3 * a_row, *const a9 = a6 + 3 * a_row,
                     *const a12 = a9 + 3 * a_row;
  for (int64_t p = 0; p < k; p++, b += vectors * LANES, ahead += ahead_step) {
    V x[VECTORS];
    UNROLL for (int j = 0; j < vectors; j++) {
      x[j] = *(const VU *)(b + j * LANES);
      KILN_IN_REGISTER(x[j]);
      if (j * LANES % 16 == 0) __builtin_prefetch(ahead + j * LANES, 0, 2);
    }
    UNROLL for (int i = 0; i < rows; i++) {
      const float *from = i < 3    ? a + i * a_row
                          : i < 6  ? a3 + (i - 3) * a_row
                          : i < 9  ? a6 + (i - 6) * a_row
                          : i < 12 ? a9 + (i - 9) * a_row
                                   : a12 + (i - 12) * a_row;
      const V w = from[p] - (V){0};
      UNROLL for (int j = 0; j < vectors; j++) acc[i][j] = FMA(acc[i][j], x[j], w);
    }
  }
  UNROLL for (int i = 0; i < rows; i++) {
    UNROLL for (int j = 0; j < vectors; j++) * (VU *)(c + i * c_row + j * LANES) = acc[i][j];
  }
}
#define MULTIPLY(rows, vectors)                                                           \
  static void multiply_##rows##_##vectors(const tile_factors *f, float *c, int64_t c_row, \
                                          const float *init, int64_t init_row) {          \
    multiply(rows, vectors, f, c, c_row, init, init_row);                                 \
  }
#define ROWS_OF(rows) MULTIPLY(rows, 1) MULTIPLY(rows, 2)
#define ROWS_ENTRY(rows) {multiply_##rows##_1, multiply_##rows##_2},
#if KILN_KERNEL_LEVEL == 2
#define LARGER(each) each(7) each(8) each(9) each(10) each(11) each(12) each(13) each(14)
#else
#define LARGER(each)
#endif
#define EACH_ROWS(each) each(1) each(2) each(3) each(4) each(5) each(6) LARGER(each)
EACH_ROWS(ROWS_OF)
const multiply_fn multiplies[ROWS][VECTORS] = {EACH_ROWS(ROWS_ENTRY)};
