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
/* Sets axes and grain from the grid and the cost: as few of the outermost axes as give enough
 * pieces worth a thread. Their iterations are one range, in the order in which one thread goes
 * through them, so that each thread keeps what an outer axis holds: 3 panels of weights by 49 rows
 * are 147 iterations; of two threads, one has panel 0 and 24 rows of panel 1, the other the rest.
 */
void kiln_kernel_cut(kiln_kernel_work *work);
/* How many iterations there are in the range. */
int64_t kiln_kernel_range(const kiln_kernel_work *work);
/* The longest box that iterations [begin, end) of the range begin with, and how many of them it
 * holds: whole iterations of an outer axis where they lie so. 24 .. 147 of 3 x 49 are rows 24 to 48
 * of panel 0, then panels 1 and 2. */
int64_t kiln_kernel_next_box(const kiln_kernel_work *work, int64_t begin, int64_t end,
                             kiln_kernel_box *out_box);
