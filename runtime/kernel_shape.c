/* kernel_shape.c: the work of a kernel for given sizes. */
#include "runtime/kernel_shape.h"

#include <string.h>

enum { SCRATCH, GRID, PARTS = GRID + KILN_KERNEL_AXES };
/* Of a range: no thread is long without one where so many are shared. */
enum { ENOUGH_PIECES = 64 };

kiln_kernel_shape *kiln_kernel_shape_create(kiln_arena *arena, const kiln_dims *dims,
                                            kiln_dim scratch, const kiln_dim *grid, int part_count,
                                            const kiln_dim *part_runs, const double *part_cost) {
  kiln_dim results[KILN_KERNEL_SHAPE_ROOM] = {[SCRATCH] = scratch};
  if (part_count > KILN_KERNEL_SHAPE_ROOM - PARTS) return NULL;
  for (int i = 0; i < KILN_KERNEL_AXES; i++) results[GRID + i] = grid[i];
  for (int i = 0; i < part_count; i++) results[PARTS + i] = part_runs[i];
  for (int i = 0; i < PARTS + part_count; i++) {
    if (!kiln_dim_is_known(results[i])) return NULL;
  }
  const kiln_dim_program *program =
      kiln_dim_program_create(arena, dims, results, PARTS + part_count);
  if (kiln_dim_program_room(program) > KILN_KERNEL_SHAPE_ROOM) return NULL;
  const size_t costs = sizeof(double) * (size_t)part_count;
  const size_t bytes = sizeof(kiln_kernel_shape) + costs + program->bytes;
  kiln_kernel_shape *shape = kiln_arena_alloc(arena, bytes);
  *shape = (kiln_kernel_shape){
      .bytes = bytes, .part_count = part_count, .program = sizeof(kiln_kernel_shape) + costs};
  if (costs) memcpy(shape->part_cost, part_cost, costs);
  memcpy((char *)shape + shape->program, program, program->bytes);
  return shape;
}

/* Iterations of `cost` nanoseconds that are worth a thread. Whole multiples keep vectors whole. */
static int64_t grain_of(double cost) {
  const double count = cost > 0 ? (double)KILN_KERNEL_PART_NS / cost : 1;
  const int64_t grain = count < 1 ? 1 : count > 0x1p40 ? INT64_C(1) << 40 : (int64_t)count;
  return grain > 64 ? (grain + 63) / 64 * 64 : grain;
}

void kiln_kernel_cut(kiln_kernel_work *work) {
  int64_t most = 0, extent = 1;
  for (int axis = 0; axis < KILN_KERNEL_AXES && most < ENOUGH_PIECES; axis++) {
    if (__builtin_mul_overflow(extent, work->grid.end[axis], &extent)) break;
    const int64_t grain = grain_of(work->cost / (double)extent), pieces = extent / grain;
    if (axis > 0 && pieces <= most) continue;
    most = pieces;
    work->axes = axis + 1;
    work->grain = grain;
  }
}

int64_t kiln_kernel_range(const kiln_kernel_work *work) {
  int64_t extent = work->grid.end[0];
  for (int axis = 1; axis < work->axes; axis++) extent *= work->grid.end[axis];
  return extent;
}

int64_t kiln_kernel_next_box(const kiln_kernel_work *work, int64_t begin, int64_t end,
                             kiln_kernel_box *out_box) {
  int64_t each = kiln_kernel_range(work), rest = begin;
  *out_box = work->grid;
  for (int axis = 0;; axis++) {
    const int64_t extent = work->grid.end[axis];
    each /= extent;
    const int64_t at = rest / each, whole = (end - begin) / each;
    rest -= at * each;
    out_box->begin[axis] = at;
    if (rest == 0 && whole > 0) {
      const int64_t count = whole < extent - at ? whole : extent - at;
      out_box->end[axis] = at + count;
      return count * each;
    }
    out_box->end[axis] = at + 1;
  }
}

bool kiln_kernel_shape_work(const kiln_kernel_shape *shape, const int64_t *symbols,
                            kiln_kernel_work *out_work) {
  int64_t room[KILN_KERNEL_SHAPE_ROOM], results[KILN_KERNEL_SHAPE_ROOM];
  const void *program = (const char *)shape + shape->program;
  kiln_kernel_work work = {0};
  if (!kiln_dim_program_run(program, symbols, room, results)) return false;
  work.scratch_bytes = (size_t)results[SCRATCH];
  for (int i = 0; i < KILN_KERNEL_AXES; i++) work.grid.end[i] = results[GRID + i];
  for (int i = 0; i < shape->part_count; i++)
    work.cost += shape->part_cost[i] * (double)results[PARTS + i];
  kiln_kernel_cut(&work);
  *out_work = work;
  return true;
}
