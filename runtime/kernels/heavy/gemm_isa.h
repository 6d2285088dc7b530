/* gemm_isa.h: the matrix product for one type (see gemm_isa.c). No include guard. */

#if WIDTH == 16
#define LANES LANES16
#elif WIDTH == 8
#define LANES LANES8
#elif WIDTH == 4
#define LANES LANES4
#else
#define LANES LANES2
#endif

#include "runtime/kernels/heavy/gemm_tile.h"
#include "runtime/kernels/heavy/gemm_pack.h"
#include "runtime/kernels/heavy/gemm_dot.h"

/* C, and what it starts from in the block of k at p: later blocks add to what is there. */
static NAME(dest) NAME(whole)(const kiln_gemm_args *g, int64_t p) {
  NAME(dest)
  c = {.c = g->c, .c_row = g->c_row, .c_col = g->c_col, .alpha = (T)g->alpha, .beta = 1};
  if (p == 0 && g->init) {
    c.init = g->init, c.init_row = g->init_row, c.init_col = g->init_col;
  } else {
    c.init = g->c, c.init_row = g->c_row, c.init_col = g->c_col;
  }
  if (p == 0) {
    c.beta = (T)g->beta;
    if (g->beta == 0) c.init = NULL;
  }
  return c;
}

enum { NAME(STRIP) = 4096 / (int)sizeof(T) }; /* columns: a row of them is a page */
#include "runtime/kernels/heavy/gemm_axpy.h"

typedef struct NAME(job) {
  const kiln_gemm_args *g;
  bool pack_left, pack_right;
  int64_t columns; /* that tiles sum; those behind them are dot products */
  T *panel, *left; /* scratch */
} NAME(job);

/* How many vectors the next panel takes of those left: never a single one after wider ones. */
ALWAYS_INLINE int64_t NAME(next_vectors)(int64_t left) {
  if (left <= NV) return left;
  return left < 2 * NV && left - NV == 1 && NV > 2 ? (left + 1) / 2 : NV;
}

/* Rows [i0, i0 + m) times one panel: columns [j, j + columns), k rows from p on. */
static void NAME(rows)(const NAME(job) * job, const NAME(dest) * c, NAME(factors) f, int64_t i0,
                       int64_t m, int64_t j, int64_t columns, int64_t vectors) {
  const T *packed = job->left;
  const kiln_gemm_args *g = job->g;
  const T *a = f.l;
  for (int64_t i = 0; i < m;) {
    const int64_t rows = NAME(next_rows)(m - i);
    if (job->pack_left) {
      f.l = packed, f.l_row = 1, f.l_k = rows;
      packed += rows * f.k;
    } else {
      f.l = a + i * g->a_row, f.l_row = g->a_row, f.l_k = g->a_col;
    }
    const NAME(dest) at = NAME(dest_at)(c, i0 + i, j);
    NAME(tiles)[rows - 1][vectors - 1](&f, &at, columns);
    i += rows;
  }
}

/* The same rows of the last columns, as dot products: their transposes, few rows times many. */
static void NAME(tail)(const NAME(job) * job, const NAME(dest) * c, const T *a, int64_t i,
                       int64_t m, int64_t p, int64_t k) {
  const kiln_gemm_args *g = job->g;
  const kiln_gemm_plan plan = {0};
  const NAME(dest) at = NAME(dest_at)(c, i, job->columns);
  const NAME(dest) turned = {.c = at.c,
                             .c_row = at.c_col,
                             .c_col = at.c_row,
                             .init = at.init,
                             .init_row = at.init_col,
                             .init_col = at.init_row,
                             .alpha = at.alpha,
                             .beta = at.beta};
  const kiln_gemm_args dots = {.m = g->n - job->columns,
                               .n = m,
                               .k = k,
                               .a = (const T *)g->b + p + job->columns * g->b_col,
                               .b = a,
                               .a_row = g->b_col,
                               .a_col = 1,
                               .b_row = 1,
                               .b_col = g->a_row};
  NAME(dot_rows)(&dots, &plan, &turned, NULL);
}

/* Rows [i, i + m), products of [p, p + k). */
static void NAME(block)(const NAME(job) * job, int64_t i, int64_t m, int64_t p, int64_t k) {
  const kiln_gemm_args *g = job->g;
  const NAME(dest) c = NAME(whole)(g, p);
  const T *a = (const T *)g->a + i * g->a_row + p * g->a_col;
  if (job->columns < g->n) NAME(tail)(job, &c, a, i, m, p, k);
  if (job->pack_left) NAME(pack_left)(job->left, a, g->a_row, g->a_col, m, k);
  for (int64_t j = 0; j < job->columns;) {
    int64_t vectors = NAME(next_vectors)((job->columns - j + WIDTH - 1) / WIDTH);
    int64_t columns = vectors * WIDTH < job->columns - j ? vectors * WIDTH : job->columns - j;
    bool in_place = !job->pack_right;
    if (in_place && columns % WIDTH) { /* what is no whole vector is copied apart */
      if (vectors > 1) {
        columns = --vectors * WIDTH;
      } else {
        in_place = false;
      }
    }
    NAME(factors) f = {.k = k, .l = a, .ahead = in_place && g->m <= MR};
    if (in_place) {
      f.r = (const T *)g->b + p * g->b_row + j;
      f.r_k = g->b_row;
    } else {
      f.r = job->panel;
      f.r_k = vectors * WIDTH;
      NAME(pack_right)
      (job->panel, (const T *)g->b + p * g->b_row + j * g->b_col, g->b_row, g->b_col, k, columns,
       f.r_k);
    }
    NAME(rows)(job, &c, f, i, m, j, columns, vectors);
    j += columns;
  }
}

/* Nothing to sum: beta D. */
static void NAME(no_products)(const kiln_gemm_args *g) {
  const NAME(dest) c = NAME(whole)(g, 0);
  for (int64_t i = 0; i < g->m; i++) {
    for (int64_t j = 0; j < g->n; j++) {
      const NAME(dest) at = NAME(dest_at)(&c, i, j);
      *at.c = at.init ? *at.init * at.beta : (T)0;
    }
  }
}

void KILN_ISA_CAT4(kiln__gemm_, TAG, _, KILN_KERNEL_ISA)(const kiln_gemm_args *g,
                                                         const kiln_gemm_plan *plan,
                                                         void *scratch) {
  if (g->m == 0 || g->n == 0) return;
  if (g->k == 0) {
    NAME(no_products)(g);
    return;
  }
  if (plan->dot) {
    const NAME(dest) c = NAME(whole)(g, 0);
    NAME(dot_rows)(g, plan, &c, scratch);
    return;
  }
  if (plan->axpy) {
    NAME(axpy_rows)(g);
    return;
  }
  enum { GROUP = KILN_GEMM_GROUP_BYTES / (int)sizeof(T) };
  const int64_t kc = g->k < KC ? g->k : KC;
  const NAME(job) job = {.g = g,
                         .pack_left = plan->pack_left,
                         .pack_right = plan->pack_right || g->m > UNPACKED_ROWS,
                         .columns = plan->dot_tail ? g->n / GROUP * GROUP : g->n,
                         .panel = scratch,
                         .left = (T *)((char *)scratch + kc * KILN_GEMM_PANEL_BYTES)};
  kiln_budget *budget = kiln_budget_current();
  for (int64_t i = 0; i < g->m; i += MC) {
    const int64_t m = g->m - i < MC ? g->m - i : MC;
    for (int64_t p = 0; p < g->k && !kiln_budget_is_over(budget); p += KC) {
      NAME(block)(&job, i, m, p, g->k - p < KC ? g->k - p : KC);
    }
  }
}
