/* kernel_shape.h: what there is to do for a kernel whose sizes are known when it is called. */
#pragma once

#include "runtime/dim_program.h"
#include "runtime/kernel_abi.h"

/* One block without pointers, as the program in it. */
typedef struct kiln_kernel_shape {
  size_t bytes;
  int part_count; /* loops with a price of their own */
  size_t program; /* where it lies; its results: scratch bytes, the grid's extents, and how often
                   * each part runs */
  double part_cost[]; /* nanoseconds of one iteration */
} kiln_kernel_shape;

enum { KILN_KERNEL_SHAPE_ROOM = 256 }; /* values of its program, and results */

/* In the arena; NULL: it would be too long. The dimensions are those of one kernel: extents of the
 * grid, and how often each part runs. */
kiln_kernel_shape *kiln_kernel_shape_create(kiln_arena *arena, const kiln_dims *dims,
                                            kiln_dim scratch, const kiln_dim *grid, int part_count,
                                            const kiln_dim *part_runs, const double *part_cost);
/* False where a size does not fit int64. */
bool kiln_kernel_shape_work(const kiln_kernel_shape *shape, const int64_t *symbols,
                            kiln_kernel_work *out_work);
/* Nanoseconds of work that are worth a thread: a fork and join takes 400. */
enum { KILN_KERNEL_PART_NS = 1000 };
/* Sets axis and grain from the grid and the cost: the axis that gives the most pieces worth a
 * thread, the outermost of equal ones. A kernel of 2 x 64 planes that take 10 us each is cut into
 * 64, not into 2. */
void kiln_kernel_cut(kiln_kernel_work *work);
