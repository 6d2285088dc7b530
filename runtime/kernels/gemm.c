/* gemm.c: how a matrix product is made (gemm_isa.c makes it): which factor is read in vectors, what
 * is copied first. The choice depends on nothing but sizes and strides, so neither do the bits. */
#include "runtime/kernels/gemm.h"

kiln_gemm_args kiln__gemm_swapped(const kiln_gemm_args *g) {
  kiln_gemm_args s = *g;
  s.m = g->n, s.n = g->m;
  s.a = g->b, s.b = g->a;
  s.a_row = g->b_col, s.a_col = g->b_row;
  s.b_row = g->a_col, s.b_col = g->a_row;
  s.c_row = g->c_col, s.c_col = g->c_row;
  s.init_row = g->init_col, s.init_col = g->init_row;
  return s;
}

/* The left factor is copied where its elements along k are apart, or where rows lie so that their
 * lines fall into the same sets of the cache, and the copy serves several panels. */
static bool packs_left(const kiln_gemm_args *g, size_t item) {
  const int64_t panel = (int64_t)(KILN_GEMM_PANEL_BYTES / item);
  if (g->a_col != 1) return g->n > panel;
  return g->n >= 4 * panel && g->a_row * (int64_t)item % 2048 == 0;
}

kiln_gemm_form kiln__gemm_form(const kiln_gemm_args *g, size_t item) {
  kiln_gemm_form form = {0};
  if (g->pack_b) {
    form.pack_left = packs_left(g, item);
    form.pack_right = true;
    return form;
  }
  if (!g->chain) {
    const bool few_rows =
        g->m <= KILN_GEMM_DOT_ROWS && g->b_row == 1 && (g->b_col != 1 || g->n == 1);
    const bool few_columns = g->n <= KILN_GEMM_DOT_ROWS && g->a_col == 1;
    if (few_rows || few_columns) {
      form.dot = true;
      form.swap = few_columns && (!few_rows || g->n < g->m);
      return form;
    }
  }
  if (g->b_col == 1) {
    form.swap = g->c_row == 1 && g->c_col != 1 && g->a_row == 1;
  } else {
    form.swap = g->a_row == 1 || g->m < g->n;
  }
  const kiln_gemm_args s = form.swap ? kiln__gemm_swapped(g) : *g;
  form.axpy = s.b_col == 1 && s.m <= KILN_GEMM_AXPY_ROWS && s.n * (int64_t)item >= 64;
  if (form.axpy) return form;
  form.pack_left = packs_left(&s, item);
  form.pack_right = s.b_col != 1;
  return form;
}

size_t kiln_gemm_scratch(const kiln_gemm_args *args, size_t item) {
  const kiln_gemm_form form = kiln__gemm_form(args, item);
  const kiln_gemm_args g = form.swap ? kiln__gemm_swapped(args) : *args;
  const size_t k = (size_t)(g.k < KILN_GEMM_KC ? g.k : KILN_GEMM_KC);
  if (form.dot) return g.a_col == 1 ? 0 : (size_t)(g.m * g.k) * item;
  if (form.axpy) return 0;
  size_t bytes = k * KILN_GEMM_PANEL_BYTES;
  if (form.pack_left) bytes += k * (size_t)(g.m < KILN_GEMM_MC ? g.m : KILN_GEMM_MC) * item;
  return bytes;
}
