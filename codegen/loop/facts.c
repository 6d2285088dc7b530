/* facts.c: what back ends and callers ask of a kernel: vectors, donors, cost, grid. */
#include <string.h>

#include "codegen/loop/loop.h"

static bool all_numbers(int count, const kiln_dim *dims) {
  for (int d = 0; d < count; d++) {
    if (!kiln_dim_is_number(dims[d])) return false;
  }
  return true;
}

static bool nest_is_static(const kiln_loop_nest *nest) {
  for (int i = 0; i < nest->body.count; i++) {
    const kiln_loop_inst *inst = &nest->body.data[i];
    if (!kiln_dim_is_number(inst->offset) || !all_numbers(KILN_LOOP_MAX_RANK, inst->strides)) {
      return false;
    }
  }
  return all_numbers(nest->rank, nest->extents);
}

kiln_status *kiln_loop_needs_numbers(const kiln_loop_fn *fn) {
  bool is_static = true;
  for (int i = 0; i < fn->buffers.count; i++) {
    const kiln_loop_buffer *b = &fn->buffers.data[i];
    is_static &= all_numbers(b->rank, b->sizes) && all_numbers(b->rank, b->strides);
  }
  for (int n = 0; n < fn->nests.count; n++) is_static &= nest_is_static(fn->nests.data[n]);
  if (is_static) return NULL;
  return KILN_ERROR(KILN_UNSUPPORTED, "the kernel has symbolic sizes: back ends need numbers");
}

bool kiln_loop_strips_body(const kiln_loop_nest *nest) {
  int body = 0, outer = 0, depth = nest->rank;
  bool loops = false;
  for (int i = 0; i < nest->body.count; i++) {
    const kiln_loop_inst *inst = &nest->body.data[i];
    const kiln_loop_rule rule = kiln_loop_ops[inst->op].rule;
    loops |= rule == KILN_LOOP_RULE_OPEN;
    depth += (rule == KILN_LOOP_RULE_OPEN) - (rule == KILN_LOOP_RULE_END);
    if (!kiln_loop_is_access(inst) || depth == nest->rank) continue;
    body += inst->strides[depth - 1] == 1;
    outer += nest->rank > 0 && inst->strides[nest->rank - 1] == 1;
  }
  return loops && (body >= outer || nest->rank == 0);
}

double kiln_loop_first_f(kiln_loop_opcode op) {
  switch (op) {
    case KILN_LOOP_prod: return 1;
    case KILN_LOOP_amax:
    case KILN_LOOP_argmax: return -__builtin_inf();
    case KILN_LOOP_amin:
    case KILN_LOOP_argmin: return __builtin_inf();
    default: return 0;
  }
}
int64_t kiln_loop_first_i(kiln_loop_opcode op, kiln_dtype dtype) {
  const bool is_unsigned = dtype == KILN_DTYPE_U8 || dtype == KILN_DTYPE_BOOL;
  const int bits = 8 * kiln_loop_size(dtype);
  const int64_t most = is_unsigned ? 255 : (int64_t)(UINT64_MAX >> (65 - bits));
  switch (op) {
    case KILN_LOOP_prod:
    case KILN_LOOP_all: return 1;
    case KILN_LOOP_amax:
    case KILN_LOOP_argmax: return is_unsigned ? 0 : -most - 1;
    case KILN_LOOP_amin:
    case KILN_LOOP_argmin: return most;
    default: return 0;
  }
}

size_t kiln_loop_local_bytes(const kiln_loop_fn *fn, int buffer, int lanes) {
  const kiln_loop_buffer *b = &fn->buffers.data[buffer];
  bool columns = false;
  size_t count = 1;
  for (int n = 0; n < fn->nests.count; n++) columns |= !kiln_loop_strips_body(fn->nests.data[n]);
  for (int d = 0; d < b->rank; d++) count += (size_t)((b->sizes[d] - 1) * b->strides[d]);
  return (count * (size_t)kiln_loop_size(b->dtype) * (size_t)(columns ? lanes : 1) + 63) / 64 * 64;
}

int kiln_loop_nest_axes(const kiln_loop_nest *nest) {
  const bool all = nest->rank <= 1 || kiln_loop_strips_body(nest);
  const int axes = all ? nest->rank : nest->rank - 1;
  return axes < KILN_KERNEL_AXES ? axes : KILN_KERNEL_AXES;
}
int64_t kiln_loop_nest_extent(const kiln_loop_nest *nest, int axis) {
  return axis < kiln_loop_nest_axes(nest) ? nest->extents[axis] : 1;
}

_Static_assert((int)KILN_LOOP_FIRST_MATH == (int)KILN_LOOP_ge + 1, "");

double kiln_loop_inst_cost(const kiln_loop_inst *inst) {
  switch (inst->op) {
    case KILN_LOOP_load:
    case KILN_LOOP_store: return 0.05;
    case KILN_LOOP_const:
    case KILN_LOOP_scalar: return 0;
    case KILN_LOOP_div:
    case KILN_LOOP_sqrt: return 0.15;
    default: return (int)inst->op >= (int)KILN_LOOP_FIRST_MATH ? 0.4 : 0.03;
  }
}

int kiln_loop_moves(const kiln_loop_fn *fn, const kiln_loop_nest *nest,
                    const kiln_loop_scopes *scopes, int number, kiln_loop_move *out_moves) {
  const kiln_loop_inst *inst = &nest->body.data[number];
  int count = 0;
  for (int at = scopes->parent[number]; at >= 0; at = scopes->parent[at]) {
    const kiln_dim extent = nest->body.data[at].offset, stride = inst->strides[scopes->depth[at]];
    if (extent == 1) continue;
    kiln_loop_move *inner = count > 0 ? &out_moves[count - 1] : NULL;
    if (inner && stride == kiln_dim_product(fn->dims, inner->extent, inner->stride)) {
      inner->extent = kiln_dim_product(fn->dims, extent, inner->extent);
    } else {
      out_moves[count++] = (kiln_loop_move){extent, stride};
    }
  }
  return count;
}

bool kiln_loop_same_moves(const kiln_loop_fn *fn, const kiln_loop_nest *nest,
                          const kiln_loop_scopes *scopes, int a, int b) {
  kiln_loop_move x[KILN_LOOP_MAX_RANK], y[KILN_LOOP_MAX_RANK];
  const int count = kiln_loop_moves(fn, nest, scopes, a, x);
  if (kiln_loop_moves(fn, nest, scopes, b, y) != count) return false;
  for (int i = 0; i < count; i++) {
    if (x[i].extent != y[i].extent || x[i].stride != y[i].stride) return false;
  }
  return nest->body.data[a].offset == nest->body.data[b].offset;
}

/* Whether a load before a store reads, in each iteration of the nest, the places that this writes:
 * in the same loops, or in other ones that end before the store's begin. */
static bool same_map(const kiln_loop_fn *fn, const kiln_loop_nest *nest,
                     const kiln_loop_scopes *scopes, int load, int store) {
  const kiln_loop_inst *a = &nest->body.data[load], *b = &nest->body.data[store];
  const int x = scopes->parent[load], y = scopes->parent[store];
  for (int d = 0; d < nest->rank; d++) {
    if (nest->extents[d] != 1 && a->strides[d] != b->strides[d]) return false;
  }
  if (x == y) {
    const size_t bytes = sizeof *a->strides * (size_t)(scopes->depth[load] - nest->rank);
    return a->offset == b->offset &&
           memcmp(a->strides + nest->rank, b->strides + nest->rank, bytes) == 0;
  }
  int outer = y;
  while (outer >= 0 && scopes->parent[outer] >= 0) outer = scopes->parent[outer];
  return (outer < 0 || load < outer) && kiln_loop_same_moves(fn, nest, scopes, load, store);
}

static bool same_layout(const kiln_loop_buffer *a, const kiln_loop_buffer *b) {
  if (a->dtype != b->dtype || a->rank != b->rank) return false;
  const size_t bytes = (size_t)a->rank * sizeof(int64_t);
  return memcmp(a->sizes, b->sizes, bytes) == 0 && memcmp(a->strides, b->strides, bytes) == 0;
}

/* Whether all loads of `input` in the nest come before a store to `output` at the same place. */
static bool reads_before(const kiln_loop_fn *fn, const kiln_loop_nest *nest,
                         const kiln_loop_scopes *scopes, int input, int output) {
  int store = -1;
  for (int i = nest->body.count - 1; i >= 0; i--) {
    const kiln_loop_inst *inst = &nest->body.data[i];
    if (inst->op == KILN_LOOP_store && inst->index == output) store = i;
    if (inst->op != KILN_LOOP_load || inst->index != input) continue;
    if (store < 0 || !same_map(fn, nest, scopes, i, store)) return false;
  }
  return true;
}

/* The inputs in whose memory each output may be written. */
static void find_donors(const kiln_loop_fn *fn, kiln_arena *scratch,
                        uint32_t donors[KILN_KERNEL_DONORS]) {
  kiln_loop_scopes *scopes = KILN_NEW_ARRAY(scratch, kiln_loop_scopes, fn->nests.count + 1);
  for (int n = 0; n < fn->nests.count; n++) {
    scopes[n] = kiln_loop_scopes_of(fn->nests.data[n], scratch);
  }
  for (int o = 0; o < KILN_KERNEL_DONORS && o < fn->output_count; o++) {
    const int output = fn->input_count + o;
    for (int i = 0; i < fn->input_count && i < 32; i++) {
      bool fits = same_layout(&fn->buffers.data[i], &fn->buffers.data[output]);
      for (int n = 0; n < fn->nests.count && fits; n++) {
        fits = reads_before(fn, fn->nests.data[n], &scopes[n], i, output);
      }
      if (fits) donors[o] |= 1u << i;
    }
  }
}

/* Iterations of `cost` nanoseconds that are worth a thread: a microsecond, as a fork and join takes
 * 0.4. Whole multiples keep vectors whole. */
static int64_t grain_of(double cost) {
  const double count = cost > 0 ? 1000 / cost : 1;
  const int64_t grain = count < 1 ? 1 : count > 0x1p40 ? INT64_C(1) << 40 : (int64_t)count;
  return grain > 64 ? (grain + 63) / 64 * 64 : grain;
}
/* By the axis that gives the most pieces, the outermost of equal ones. A kernel of 2 x 64 planes
 * that take 10 us each is cut into 64, not into 2. */
static void cut_grid(kiln_kernel_info *info) {
  int64_t most = -1;
  for (int axis = 0; axis < KILN_KERNEL_AXES; axis++) {
    const int64_t grain = grain_of(info->cost / (double)info->grid.end[axis]);
    const int64_t pieces = info->grid.end[axis] / grain;
    if (pieces <= most) continue;
    most = pieces;
    info->axis = axis;
    info->grain = grain;
  }
}

static double nest_cost(const kiln_loop_nest *nest) {
  double cost = 0, points = 1, around[KILN_LOOP_MAX_RANK + 1] = {0};
  int open = 0;
  for (int d = 0; d < nest->rank; d++) points *= (double)nest->extents[d];
  for (int i = 0; i < nest->body.count; i++) {
    const kiln_loop_inst *inst = &nest->body.data[i];
    const kiln_loop_rule rule = kiln_loop_ops[inst->op].rule;
    if (rule == KILN_LOOP_RULE_OPEN) {
      around[open++] = points;
      points *= (double)inst->offset;
    } else if (rule == KILN_LOOP_RULE_END) {
      points = around[--open];
    } else {
      cost += points * kiln_loop_inst_cost(inst);
    }
  }
  return cost;
}

kiln_kernel_info kiln_loop_info(const kiln_loop_fn *fn) {
  kiln_arena *scratch = kiln_arena_scoped(kiln_arena_mem(fn->arena));
  kiln_kernel_info info = {.input_count = fn->input_count,
                           .output_count = fn->output_count,
                           .scalar_count = fn->scalars.count,
                           .grid.end = {fn->nests.count ? 0 : 1, 1, 1}};
  for (int n = 0; n < fn->nests.count; n++) {
    const kiln_loop_nest *nest = fn->nests.data[n];
    info.cost += nest_cost(nest);
    info.grid.end[0] += kiln_loop_nest_extent(nest, 0);
    for (int axis = 1; axis < KILN_KERNEL_AXES; axis++) {
      const int64_t extent = kiln_loop_nest_extent(nest, axis);
      if (extent > info.grid.end[axis]) info.grid.end[axis] = extent;
    }
  }
  for (int i = fn->input_count + fn->output_count; i < fn->buffers.count; i++)
    info.scratch_bytes += kiln_loop_local_bytes(fn, i, KILN_REDUCE_LANES / 4);
  cut_grid(&info);
  find_donors(fn, scratch, info.donors);
  kiln_arena_destroy(scratch);
  return info;
}
