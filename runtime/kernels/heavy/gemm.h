/* gemm.h: the matrix product that all of Kiln stands on, at run-time sizes and strides, without any
 * set-up for a shape (gemm_isa.c). C = alpha A B + beta D.
 *
 * Strides are in elements and may be anything, 0 too; C's elements must be apart. D is what C
 * starts from: C itself where `init` is NULL, else a matrix of its own strides: a bias for each
 * column has init_row 0 and init_col 1, one for each row init_row 1 and init_col 0. With beta 0
 * neither is read, so NaN in them does not come through. In which order products are summed:
 * docs/numerics.md. */
#pragma once

#include "runtime/call.h"

/* The problem, or a part of it. */
typedef struct kiln_gemm_args {
  int64_t m, n, k;
  const void *a, *b;
  void *c;
  int64_t a_row, a_col, b_row, b_col, c_row, c_col;
  double alpha, beta;
  /* What is added, beta times; NULL: C. Borrowed. */
  const void *init;
  int64_t init_row, init_col;
} kiln_gemm_args;

/* How many products are summed in a row before the sum is added to C. */
enum { KILN_GEMM_KC = 384 };
/* Rows of the left factor that stay in the cache while panels of the right one pass. */
enum { KILN_GEMM_MC = 384 };
/* A row of a panel of the right factor, in bytes. */
enum { KILN_GEMM_PANEL_BYTES = 192 };

/* Up to so many rows the rows of the right factor are added up in memory. */
enum { KILN_GEMM_AXPY_ROWS = 3 };
/* Up to so many rows a product with a transposed matrix is made of dot products. */
enum { KILN_GEMM_DOT_ROWS = 32 };
/* Columns beyond whole groups of so many bytes, vectors of the largest instruction set, are dot
 * products, if they fill at most half a group: a vector would cost as much as a whole one. */
enum { KILN_GEMM_GROUP_BYTES = 64 };

/* How a product is made, by its sizes and strides alone. The left factor's elements are taken one
 * by one, the right one's as vectors. All parts of a product follow the plan of the whole, so their
 * bits are the same. */
typedef struct kiln_gemm_plan {
  bool swap;       /* C^T = B^T A^T instead: parts are cut from that */
  bool dot;        /* few rows on the left: dot products, both factors read along k */
  bool ahead;      /* the right factor of a dot lies beyond the second cache: it is asked for */
  bool backwards;  /* it is read from its end: the bits are the same */
  bool axpy;       /* few rows on the left: rows of the right factor are added up */
  bool pack_left;  /* the left factor is copied by blocks */
  bool pack_right; /* the right one too, whatever the number of rows */
  bool dot_tail;   /* columns beyond whole groups are dot products */
  size_t scratch;  /* bytes that a thread wants at a 64-byte boundary */
} kiln_gemm_plan;
kiln_gemm_plan kiln_gemm_make_plan(const kiln_gemm_args *args, size_t item_size, int64_t l2_bytes);
/* The problem as its plan makes it: A and B exchanged, with all that belongs to them, or as it is.
 */
kiln_gemm_args kiln__gemm_planned(const kiln_gemm_args *args, const kiln_gemm_plan *plan);
/* A part of a planned problem, or all of it, on one thread. */
typedef void (*kiln_gemm_fn)(const kiln_gemm_args *part, const kiln_gemm_plan *plan, void *scratch);

/* -- What kernels call -- */

/* The product, shared among the threads of the call's pool, in F32 or F64; scratch is taken from
 * the call. Its bits do not depend on the number of threads. */
kiln_status *kiln__gemm_run(kiln_call *call, kiln_dtype dtype,
                            const kiln_gemm_args *args) KILN_MUST_USE;
/* `count` products that differ in where they lie: locate(data, i, &args) sets a, b, c and init. */
typedef void (*kiln_gemm_locate)(const void *data, int64_t i, kiln_gemm_args *args);
kiln_status *kiln__gemm_run_many(kiln_call *call, kiln_dtype dtype, const kiln_gemm_args *args,
                                 int64_t count, kiln_gemm_locate locate,
                                 const void *data) KILN_MUST_USE;
