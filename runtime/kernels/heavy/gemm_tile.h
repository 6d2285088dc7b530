/* gemm_tile.h: register tiles of the matrix product and how their sums get into C, for one type
 * (gemm_isa.c). No include guard. */

/* Where a tile of C goes: at most MR rows and NV vectors; its strides, and what it starts from. */
typedef struct NAME(dest) {
  T *c;
  int64_t c_row, c_col;
  const T *init; /* NULL: nothing is added */
  int64_t init_row, init_col;
  T alpha, beta;
} NAME(dest);

/* Where rows [i, ...) and columns [j, ...) of it begin. */
ALWAYS_INLINE NAME(dest) NAME(dest_at)(const NAME(dest) * p, int64_t i, int64_t j) {
  NAME(dest) at = *p;
  at.c += i * p->c_row + j * p->c_col;
  if (p->init) at.init += i * p->init_row + j * p->init_col;
  return at;
}

/* -- Transposition: S x S blocks, W / S of them side by side in the vectors -- */

/* Lanes whose number has bit d come from the other vector of a pair, d lanes apart. */
#define LOW(j, d) ((j) & (d) ? (j) - (d) + WIDTH : (j))
#define HIGH(j, d) ((j) & (d) ? (j) + WIDTH : (j) + (d))
#define STAGE(x, rows, d)                                                 \
  KILN_MATH_UNROLL for (int r_ = 0; r_ < (rows); r_++) {                  \
    if (r_ & (d)) continue;                                               \
    const V low_ = (x)[r_], high_ = (x)[r_ + (d)];                        \
    (x)[r_] = __builtin_shufflevector(low_, high_, LANES(LOW, d));        \
    (x)[r_ + (d)] = __builtin_shufflevector(low_, high_, LANES(HIGH, d)); \
  }
/* Element j of block b of x[i] and element i of block b of x[j] change places; `rows` is 2 to W. */
ALWAYS_INLINE void NAME(transpose)(V *x, const int rows) {
#if WIDTH >= 16
  if (rows >= 16) {
    STAGE(x, rows, 8)
  }
#endif
#if WIDTH >= 8
  if (rows >= 8) {
    STAGE(x, rows, 4)
  }
#endif
#if WIDTH >= 4
  if (rows >= 4) {
    STAGE(x, rows, 2)
  }
#endif
  STAGE(x, rows, 1)
}

/* -- From sums to C -- */

enum { NAME(S) = WIDTH < MR ? WIDTH : MR }; /* rows of a block that is transposed at once */

/* S rows and W columns of sums to a C whose columns are contiguous. */
static void NAME(finish_block)(const NAME(dest) * p, const T *sums, int64_t pitch) {
  enum { S = NAME(S) };
  V x[S];
  for (int i = 0; i < S; i++) {
    x[i] = *(const VU *)(sums + i * pitch);
    if (p->alpha != 1) x[i] *= p->alpha;
    if (p->init && p->init_col == 0) {
      const T one = p->init[i * p->init_row];
      x[i] += p->beta == 1 ? one : one * p->beta;
    }
  }
  NAME(transpose)(x, S);
  T column[S];
  for (int b = 0; b < WIDTH / S; b++) {
    for (int i = 0; i < S; i++) {
      const int64_t j = b * S + i;
      T *to = p->c + j * p->c_col;
      memcpy(column, (const T *)&x[i] + b * S, sizeof column);
      if (p->init && p->init_col != 0) {
        const T *from = p->init + j * p->init_col;
        if (p->init_row == 1) {
          for (int r = 0; r < S; r++) column[r] += from[r] * p->beta;
        } else {
          for (int r = 0; r < S; r++) column[r] += from[r * p->init_row] * p->beta;
        }
      }
      memcpy(to, column, sizeof column);
    }
  }
}
/* One row. `c` contiguous, `init` too or one element. */
static void NAME(finish_row)(const NAME(dest) * p, const T *sums, int64_t columns) {
  T *to = p->c;
  const T alpha = p->alpha, beta = p->beta, *from = p->init;
  if (!from) {
    KILN_IVDEP
    for (int64_t j = 0; j < columns; j++) to[j] = sums[j] * alpha;
  } else if (p->init_col == 0) {
    const T one = *from * beta;
    KILN_IVDEP
    for (int64_t j = 0; j < columns; j++) to[j] = sums[j] * alpha + one;
  } else {
    KILN_IVDEP
    for (int64_t j = 0; j < columns; j++) to[j] = sums[j] * alpha + from[j] * beta;
  }
}
/* Any sums, `pitch` elements from row to row. Multiplication by an alpha or beta of 1 is exact. */
static __attribute__((noinline)) void NAME(finish)(const NAME(dest) * p, const T *sums,
                                                   int64_t pitch, int64_t rows, int64_t columns) {
  int64_t j = 0;
  if (p->c_row == 1 && p->c_col != 1 && rows % NAME(S) == 0) {
    for (; j + WIDTH <= columns; j += WIDTH) {
      for (int64_t i = 0; i < rows; i += NAME(S)) {
        const NAME(dest) block = NAME(dest_at)(p, i, j);
        NAME(finish_block)(&block, sums + i * pitch + j, pitch);
      }
    }
  }
  for (int64_t i = 0; i < rows && j < columns; i++) {
    const NAME(dest) row = NAME(dest_at)(p, i, j);
    const T *from = sums + i * pitch + j;
    if (p->c_col == 1 && (!p->init || p->init_col == 0 || p->init_col == 1)) {
      NAME(finish_row)(&row, from, columns - j);
      continue;
    }
    for (int64_t q = 0; q < columns - j; q++) {
      T value = from[q] * p->alpha;
      if (p->init) value += row.init[q * p->init_col] * p->beta;
      row.c[q * p->c_col] = value;
    }
  }
}

/* -- Tiles -- */

/* What a tile multiplies: `rows` rows of the left factor, vectors of the right one. */
typedef struct NAME(factors) {
  int64_t k;
  const T *l, *r;
  int64_t l_row, l_k; /* strides of the left factor */
  int64_t r_k;        /* of the right one, from row to row */
  bool ahead;         /* a right factor that is read once, in place: rows are asked for */
} NAME(factors);

ALWAYS_INLINE void NAME(tile)(const NAME(factors) * f, const NAME(dest) * p, int64_t columns,
                              const int rows, const int vectors) {
  V acc[MR][NV];
  const T *l[MR];
  const T *r = f->r;
  const int64_t l_k = f->l_k, r_k = f->r_k;
  KILN_MATH_UNROLL for (int i = 0; i < rows; i++) {
    l[i] = f->l + i * f->l_row;
    KILN_MATH_UNROLL for (int q = 0; q < vectors; q++) acc[i][q] = (V){0};
  }
  const bool ahead = KILN_KERNEL_LEVEL == 2 && rows >= MR - 1 && f->ahead;
  int64_t at = 0;
  for (int64_t left = f->k; left > 0; left--, at += l_k, r += r_k) {
    V b[NV];
    KILN_MATH_UNROLL for (int q = 0; q < vectors; q++) {
      if (ahead) __builtin_prefetch(r + AHEAD * r_k + q * WIDTH, 0, 3);
      b[q] = *(const VU *)(r + q * WIDTH);
      KEEP(b[q]);
    }
    KILN_MATH_UNROLL for (int i = 0; i < rows; i++) {
      const V x = l[i][at] - (V){0};
      KILN_MATH_UNROLL for (int q = 0; q < vectors; q++) acc[i][q] = FMA(acc[i][q], b[q], x);
    }
  }
  if (p->c_col == 1 && columns == vectors * WIDTH && p->alpha == 1) {
    if (!p->init) {
      KILN_MATH_UNROLL for (int i = 0; i < rows; i++) {
        VU *to = (VU *)(p->c + i * p->c_row);
        KILN_MATH_UNROLL for (int q = 0; q < vectors; q++) to[q] = acc[i][q];
      }
      return;
    }
    if (p->init_col == 1 && p->beta == 1) {
      KILN_MATH_UNROLL for (int i = 0; i < rows; i++) {
        VU *to = (VU *)(p->c + i * p->c_row);
        const VU *from = (const VU *)(p->init + i * p->init_row);
        KILN_MATH_UNROLL for (int q = 0; q < vectors; q++) to[q] = acc[i][q] + from[q];
      }
      return;
    }
  }
  T sums[MR * NV * WIDTH];
  KILN_MATH_UNROLL for (int i = 0; i < rows; i++) {
    KILN_MATH_UNROLL for (int q = 0; q < vectors; q++) {
      *(VU *)(sums + (i * vectors + q) * WIDTH) = acc[i][q];
    }
  }
  NAME(finish)(p, sums, vectors * WIDTH, rows, columns);
}

typedef void (*NAME(tile_fn))(const NAME(factors) * f, const NAME(dest) * p, int64_t columns);
#define TILE(rows, vectors)                                             \
  static __attribute__((noinline)) void NAME(tile_##rows##_##vectors)(  \
      const NAME(factors) * f, const NAME(dest) * p, int64_t columns) { \
    NAME(tile)(f, p, columns, rows, vectors);                           \
  }
#if KILN_KERNEL_LEVEL > 0
#define TILES(rows) TILE(rows, 1) TILE(rows, 2) TILE(rows, 3)
#define TILES_OF(rows) {NAME(tile_##rows##_1), NAME(tile_##rows##_2), NAME(tile_##rows##_3)}
#else
#define TILES(rows) TILE(rows, 1) TILE(rows, 2)
#define TILES_OF(rows) {NAME(tile_##rows##_1), NAME(tile_##rows##_2)}
#endif
/* clang-format off */
TILES(1) TILES(2) TILES(3) TILES(4)
#if KILN_KERNEL_LEVEL == 2
TILES(5) TILES(6) TILES(7) TILES(8)
#endif
    /* clang-format on */
    static const NAME(tile_fn) NAME(tiles)[MR][NV] = {
        TILES_OF(1), TILES_OF(2), TILES_OF(3), TILES_OF(4),
#if KILN_KERNEL_LEVEL == 2
        TILES_OF(5), TILES_OF(6), TILES_OF(7), TILES_OF(8),
#endif
};
#undef TILE
#undef TILES
#undef TILES_OF
