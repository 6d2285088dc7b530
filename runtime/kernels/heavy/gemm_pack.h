/* gemm_pack.h: copies of parts of the factors in the order in which tiles read them, for one type
 * (gemm_isa.c). No include guard. */

/* k rows and n columns of the right factor, `panel` (a multiple of W) elements a row, then zeros.
 */
static void NAME(pack_right)(T *to, const T *from, int64_t row, int64_t col, int64_t k, int64_t n,
                             int64_t panel) {
  if (col == 1) {
    if (n == NV * WIDTH && panel == n) {
      for (int64_t p = 0; p < k; p++, to += panel, from += row) {
        KILN_MATH_UNROLL for (int q = 0; q < NV; q++)((V *)to)[q] = ((const VU *)from)[q];
      }
      return;
    }
    int64_t p = 0;
    if (n < WIDTH && panel == WIDTH && row >= n) { /* whole vectors, as far as the matrix goes */
      T mask[WIDTH];
      memset(mask, 0, sizeof mask);
      memset(mask, 0xff, (size_t)n * sizeof(T));
      const VI bits = (VI) * (const VU *)mask;
      for (; p * row + WIDTH <= (k - 1) * row + n; p++, to += panel, from += row) {
        *(V *)to = (V)((VI) * (const VU *)from & bits);
      }
    }
    for (; p < k; p++, to += panel, from += row) {
      for (int64_t j = 0; j < n; j++) to[j] = from[j];
      for (int64_t j = n; j < panel; j++) to[j] = 0;
    }
    return;
  }
  for (int64_t c = 0; c < panel; c += WIDTH) {
    const int64_t columns = n - c < WIDTH ? n - c : WIDTH;
    int64_t p = 0;
    if (row == 1 && columns > 0) { /* a transposed matrix: by blocks of W x W */
      for (; p + WIDTH <= k; p += WIDTH) {
        V x[WIDTH];
        if (columns == WIDTH) {
          KILN_MATH_UNROLL for (int j = 0; j < WIDTH; j++) {
            x[j] = *(const VU *)(from + (c + j) * col + p);
          }
        } else {
          for (int j = 0; j < WIDTH; j++) {
            x[j] = (V){0};
            if (j < columns) x[j] = *(const VU *)(from + (c + j) * col + p);
          }
        }
        NAME(transpose)(x, WIDTH);
        KILN_MATH_UNROLL for (int j = 0; j < WIDTH; j++) * (V *)(to + (p + j) * panel + c) = x[j];
      }
    }
    for (; p < k; p++) {
      for (int64_t j = 0; j < WIDTH; j++) {
        to[p * panel + c + j] = j < columns ? from[p * row + (c + j) * col] : (T)0;
      }
    }
  }
}

/* How many rows the next tile takes of those left: the last two are about equal. */
ALWAYS_INLINE int64_t NAME(next_rows)(int64_t left) {
  if (left <= MR) return left;
  return left < 2 * MR ? (left + 1) / 2 : MR;
}

/* Rows of the left factor, those of a tile interleaved: [tile][k][rows of the tile]. */
static void NAME(pack_left)(T *to, const T *from, int64_t row, int64_t col, int64_t m, int64_t k) {
  for (int64_t i = 0; i < m;) {
    const int64_t rows = NAME(next_rows)(m - i);
    const T *at = from + i * row;
    int64_t p = 0;
    if (rows == NAME(S) && col == 1) {
      enum { S = NAME(S) };
      for (; p + WIDTH <= k; p += WIDTH) {
        V x[S];
        KILN_MATH_UNROLL for (int r = 0; r < S; r++) x[r] = *(const VU *)(at + r * row + p);
        NAME(transpose)(x, S);
        KILN_MATH_UNROLL for (int r = 0; r < S; r++) {
          for (int b = 0; b < WIDTH / S; b++) {
            memcpy(to + (p + b * S + r) * S, (const T *)&x[r] + b * S, S * sizeof(T));
          }
        }
      }
    } else if (rows == MR && row == 1) {
      for (; p < k; p++) memcpy(to + p * MR, at + p * col, MR * sizeof(T));
    }
    for (; p < k; p++) {
      for (int64_t r = 0; r < rows; r++) to[p * rows + r] = at[r * row + p * col];
    }
    to += rows * k;
    i += rows;
  }
}
