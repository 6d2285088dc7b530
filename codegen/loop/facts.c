/* facts.c: what back ends and callers ask of a kernel: vectors, donors, cost, grid. */
#include <string.h>

#include "codegen/loop/loop.h"
#include "runtime/kernel_shape.h"

bool kiln_loop_strips_body(const kiln_loop_nest *nest) {
  if (nest->run.lanes) return nest->run.in_body;
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

kiln_loop_opcode kiln_loop_carried(kiln_loop_opcode op) {
  switch (op) {
    case KILN_LOOP_cumprod: return KILN_LOOP_prod;
    case KILN_LOOP_cummax: return KILN_LOOP_amax;
    case KILN_LOOP_cummin: return KILN_LOOP_amin;
    default: return KILN_LOOP_sum;
  }
}

double kiln_loop_first_f(kiln_loop_opcode op) {
  switch (op) {
    case KILN_LOOP_prod:
    case KILN_LOOP_cumprod: return 1;
    case KILN_LOOP_cumsum: return -0.0; /* and -0 is -0 */
    case KILN_LOOP_amax:
    case KILN_LOOP_cummax:
    case KILN_LOOP_argmax: return -__builtin_inf();
    case KILN_LOOP_amin:
    case KILN_LOOP_cummin:
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
    case KILN_LOOP_cumprod:
    case KILN_LOOP_all: return 1;
    case KILN_LOOP_amax:
    case KILN_LOOP_cummax:
    case KILN_LOOP_argmax: return is_unsigned ? 0 : -most - 1;
    case KILN_LOOP_amin:
    case KILN_LOOP_cummin:
    case KILN_LOOP_argmin: return most;
    default: return 0;
  }
}

/* Bytes of a local buffer, one for each lane. */
static kiln_sum local_bytes(const kiln_loop_fn *fn, int buffer, int lanes) {
  const kiln_loop_buffer *b = &fn->buffers.data[buffer];
  kiln_sum count = kiln_sum_number(1);
  for (int d = 0; d < b->rank; d++) {
    const kiln_sum last = kiln_sum_plus(kiln_sum_of(fn->dims, b->sizes[d]), kiln_sum_number(-1));
    const kiln_sum stride = kiln_sum_of(fn->dims, b->strides[d]);
    count = kiln_sum_plus(count, kiln_sum_product(fn->dims, last, stride));
  }
  count = kiln_sum_times(count, kiln_loop_size(b->dtype) * lanes);
  count = kiln_sum_plus(count, kiln_sum_number(63));
  return kiln_sum_times(kiln_sum_divided(fn->dims, count, 64), 64);
}

/* Where each local buffer begins, and where they end, from byte `first` on. */
static kiln_dim place_locals(const kiln_loop_fn *fn, int lanes, int64_t first,
                             kiln_dim *out_places) {
  const int shared = fn->input_count + fn->output_count;
  kiln_sum at = kiln_sum_number(first);
  int most = 1;
  for (int n = 0; n < fn->nests.count; n++) {
    const kiln_loop_nest *nest = fn->nests.data[n];
    const int own = nest->run.lanes ? nest->run.lanes : lanes;
    if (!kiln_loop_strips_body(nest) && own > most) most = own;
  }
  for (int i = shared; i < fn->buffers.count; i++) {
    if (out_places) out_places[i - shared] = kiln_sum_dim(fn->dims, at);
    at = kiln_sum_plus(at, local_bytes(fn, i, most));
  }
  return kiln_sum_dim(fn->dims, at);
}

int kiln_loop_nest_axes(const kiln_loop_nest *nest) {
  if (nest->run.lanes) return nest->run.axis_count;
  const bool all = nest->rank <= 1 || kiln_loop_strips_body(nest);
  const int axes = all ? nest->rank : nest->rank - 1;
  return axes < KILN_KERNEL_AXES ? axes : KILN_KERNEL_AXES;
}
int kiln_loop_nest_axis(const kiln_loop_nest *nest, int axis) {
  return nest->run.lanes ? nest->run.axes[axis] : axis;
}
bool kiln_loop_cuts_tile(const kiln_loop_nest *nest) {
  bool cuts = false;
  for (int i = 0; i < nest->run.axis_count; i++) cuts |= nest->run.axes[i] == nest->tile.row_loop;
  return cuts;
}
int kiln_loop_nest_step(const kiln_loop_nest *nest, int axis) {
  const bool cuts = nest->tile.rows && axis < kiln_loop_nest_axes(nest) &&
                    kiln_loop_nest_axis(nest, axis) == nest->tile.row_loop;
  return cuts ? nest->tile.rows : 1;
}
kiln_dim kiln_loop_nest_extent(const kiln_loop_nest *nest, int axis) {
  if (axis >= kiln_loop_nest_axes(nest)) return 1;
  return nest->extents[kiln_loop_nest_axis(nest, axis)];
}

_Static_assert((int)KILN_LOOP_FIRST_MATH == (int)KILN_LOOP_ge + 1, "");

/* Nanoseconds of a product in a tile, of vectors of so many elements. */
#define TILE_COST 0.02
/* What costs so much takes many instructions. Costs are those of vectors so long. */
#define LONG_COST 0.15
enum { TILE_LANES = 8, PLAIN_LANES = 4, LONG_LANES = 8 };

double kiln_loop_inst_cost(const kiln_loop_inst *inst) {
  switch (inst->op) {
    case KILN_LOOP_load:
    case KILN_LOOP_store: return 0.05;
    case KILN_LOOP_const:
    case KILN_LOOP_scalar:
    case KILN_LOOP_dim: return 0;
    case KILN_LOOP_div:
    case KILN_LOOP_sqrt: return 0.15;
    case KILN_LOOP_gather: return 0.2; /* a row's next elements less, those of other rows more */
    default: return kiln_loop_is_math(inst->op) ? 0.4 : 0.03;
  }
}

double kiln_loop_vector_cost(const kiln_loop_inst *inst) {
  const double cost = kiln_loop_inst_cost(inst);
  return cost * (cost < LONG_COST ? PLAIN_LANES : LONG_LANES);
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
  if (a->dtype != b->dtype || a->rank != b->rank || a->copy || a->rounded) return false;
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

/* -- Grid and cost -- */

/* What each loop's own instructions cost, and how often they run. */
typedef struct parts {
  int count;
  kiln_dim runs[KILN_KERNEL_SHAPE_ROOM];
  double cost[KILN_KERNEL_SHAPE_ROOM];
} parts;

/* Where there is no room, the last part takes the cost. */
static void add_part(parts *p, kiln_dim runs, double cost) {
  int i = p->count;
  while (i > 0 && p->runs[i - 1] != runs) i--;
  if (i == 0 && p->count < KILN_KERNEL_SHAPE_ROOM / 4) {
    p->runs[p->count] = runs;
    p->cost[p->count++] = cost;
  } else {
    p->cost[i == 0 ? p->count - 1 : i - 1] += cost;
  }
}

/* Where an instruction stands: below `loops` loops, the innermost of which holds a product or not;
 * vectors go along loop `vector` of the nest, or along the innermost of the body (-1). */
typedef struct standing {
  int loops, vector;
  bool in_product;
} standing;

/* Whether vectors of it are made as such: not where it stands outside of their loop, nor where it
 * moves there by more than an element. */
static bool is_vector(const kiln_loop_nest *nest, const kiln_loop_inst *inst, const standing *at) {
  const int loop = at->vector >= 0 ? at->vector : at->loops > nest->rank ? at->loops - 1 : -1;
  if (loop < 0) return false;
  return !kiln_loop_is_access(inst) || inst->strides[loop] == 0 || inst->strides[loop] == 1;
}

/* Nanoseconds on one element. In the loops of a tile nothing costs beside the products. */
static double cost_of(const kiln_loop_nest *nest, const kiln_loop_inst *inst, const standing *at) {
  const int lanes = nest->run.lanes ? nest->run.lanes : PLAIN_LANES;
  const bool in_tile = nest->tile.rows && at->loops > nest->rank;
  if (in_tile || (nest->body_tiles.count && at->in_product))
    return kiln_loop_multiplies(inst->op) ? TILE_COST * (double)TILE_LANES / lanes : 0;
  const double cost = kiln_loop_inst_cost(inst);
  const int known = cost < LONG_COST ? PLAIN_LANES : LONG_LANES;
  return lanes <= known || !is_vector(nest, inst, at) ? cost : cost * known / lanes;
}

/* Whether the loop that instruction `open` opens holds a product, not in a loop of its own. */
static bool holds_product(const kiln_loop_nest *nest, int open) {
  int depth = 0;
  for (int i = open + 1; i < nest->body.count && depth >= 0; i++) {
    const kiln_loop_rule rule = kiln_loop_ops[nest->body.data[i].op].rule;
    depth += (rule == KILN_LOOP_RULE_OPEN) - (rule == KILN_LOOP_RULE_END);
    if (depth == 0 && kiln_loop_multiplies(nest->body.data[i].op)) return true;
  }
  return false;
}

double kiln_loop_iteration_cost(const kiln_loop_nest *nest, int vector_loop) {
  double runs = 1, around[KILN_LOOP_MAX_RANK + 1] = {0}, cost = 0;
  standing at = {.loops = nest->rank, .vector = vector_loop};
  for (int i = 0; i < nest->body.count; i++) {
    const kiln_loop_inst *inst = &nest->body.data[i];
    const kiln_loop_rule rule = kiln_loop_ops[inst->op].rule;
    if (rule == KILN_LOOP_RULE_OPEN) {
      if (!kiln_dim_is_number(inst->offset)) return -1;
      around[at.loops++ - nest->rank] = runs;
      runs *= (double)inst->offset;
      at.in_product = holds_product(nest, i);
    } else if (rule == KILN_LOOP_RULE_END) {
      runs = around[--at.loops - nest->rank];
      at.in_product = false;
    } else {
      cost += runs * cost_of(nest, inst, &at);
    }
  }
  return cost;
}

static void add_nest(const kiln_loop_fn *fn, const kiln_loop_nest *nest, parts *p) {
  kiln_dim runs = 1, around[KILN_LOOP_MAX_RANK + 1] = {0};
  standing at = {.loops = nest->rank, .vector = nest->run.in_body ? -1 : nest->rank - 1};
  for (int d = 0; d < nest->rank; d++) runs = kiln_dim_product(fn->dims, runs, nest->extents[d]);
  if (nest->run.grain) {
    add_part(p, runs, (double)KILN_KERNEL_PART_NS / (double)nest->run.grain);
    return;
  }
  for (int i = 0; i < nest->body.count; i++) {
    const kiln_loop_inst *inst = &nest->body.data[i];
    const kiln_loop_rule rule = kiln_loop_ops[inst->op].rule;
    if (rule == KILN_LOOP_RULE_OPEN) {
      around[at.loops++ - nest->rank] = runs;
      runs = kiln_dim_product(fn->dims, runs, inst->offset);
      at.in_product = holds_product(nest, i);
    } else if (rule == KILN_LOOP_RULE_END) {
      runs = around[--at.loops - nest->rank];
      at.in_product = false;
    } else {
      add_part(p, runs, cost_of(nest, inst, &at));
    }
  }
}

/* What the nest takes of an axis of the grid. */
static kiln_dim grid_of(kiln_dims *dims, const kiln_loop_nest *nest, int axis) {
  const kiln_dim extent = kiln_loop_nest_extent(nest, axis);
  const int step = kiln_loop_nest_step(nest, axis);
  if (step == 1) return extent;
  const kiln_sum up = kiln_sum_plus(kiln_sum_of(dims, extent), kiln_sum_number(step - 1));
  return kiln_sum_dim(dims, kiln_sum_divided(dims, up, step));
}

/* The first output that the nest stores into; -1: none. */
static int stored_by(const kiln_loop_fn *fn, const kiln_loop_nest *nest) {
  for (int i = 0; i < nest->body.count; i++) {
    const kiln_loop_inst *inst = &nest->body.data[i];
    if (inst->op == KILN_LOOP_store && inst->index < fn->input_count + fn->output_count)
      return inst->index;
  }
  return -1;
}

bool kiln_loop_nest_joins(const kiln_loop_fn *fn, int n) {
  if (n == 0) return false;
  const kiln_loop_nest *before = fn->nests.data[n - 1], *nest = fn->nests.data[n];
  const int output = stored_by(fn, nest);
  return output >= 0 && output == stored_by(fn, before) && kiln_loop_nest_axes(nest) > 0 &&
         kiln_loop_nest_axes(before) > 0 &&
         kiln_loop_nest_extent(nest, 0) == kiln_loop_nest_extent(before, 0) &&
         kiln_loop_nest_step(nest, 0) == kiln_loop_nest_step(before, 0);
}

/* The greater of the two, or what is no less than either. */
static kiln_dim cover(kiln_dims *dims, kiln_dim a, kiln_dim b) {
  const kiln_sum x = kiln_sum_of(dims, a), y = kiln_sum_of(dims, b);
  if (kiln_sum_is_natural(dims, kiln_sum_minus(x, y))) return a;
  if (kiln_sum_is_natural(dims, kiln_sum_minus(y, x))) return b;
  return kiln_dim_plus(dims, a, b);
}

kiln_status *kiln_loop_info(const kiln_loop_fn *fn, int lanes, int64_t own_bytes, kiln_arena *arena,
                            kiln_kernel_info *out_info) {
  parts *p = KILN_NEW(arena, parts);
  kiln_dim grid[KILN_KERNEL_AXES] = {fn->nests.count ? 0 : 1, 1, 1};
  for (int n = 0; n < fn->nests.count; n++) {
    const kiln_loop_nest *nest = fn->nests.data[n];
    add_nest(fn, nest, p);
    if (!kiln_loop_nest_joins(fn, n))
      grid[0] = kiln_dim_plus(fn->dims, grid[0], grid_of(fn->dims, nest, 0));
    for (int axis = 1; axis < KILN_KERNEL_AXES; axis++)
      grid[axis] = cover(fn->dims, grid[axis], grid_of(fn->dims, nest, axis));
  }
  const kiln_dim scratch = place_locals(fn, lanes, own_bytes, NULL);
  kiln_kernel_info info = {.input_count = fn->input_count,
                           .output_count = fn->output_count,
                           .scalar_count = fn->scalars.count,
                           .symbol_count = kiln_loop_symbol_count(fn),
                           .can_fault = kiln_loop_can_fault(fn)};
  kiln_kernel_shape *shape =
      kiln_kernel_shape_create(arena, fn->dims, scratch, grid, p->count, p->runs, p->cost);
  if (!shape) return KILN_ERROR(KILN_UNSUPPORTED, "the kernel's sizes take too many steps");
  if (info.symbol_count > 0) {
    info.shape = shape;
  } else if (!kiln_kernel_shape_work(shape, NULL, &info.work)) {
    return KILN_ERROR(KILN_UNSUPPORTED, "the kernel is larger than 64 bits can count");
  }
  if (!info.can_fault) find_donors(fn, arena, info.donors); /* who computes it again reads inputs */
  *out_info = info;
  return NULL;
}

bool kiln_loop_can_fault(const kiln_loop_fn *fn) {
  bool checks = false;
  for (int n = 0; n < fn->nests.count; n++) {
    const kiln_loop_nest *nest = fn->nests.data[n];
    for (int i = 0; i < nest->body.count; i++) checks |= nest->body.data[i].op == KILN_LOOP_check;
  }
  return checks;
}

/* -- Dimensions as values -- */

static void count_symbols(const kiln_loop_fn *fn, int count, const kiln_dim *all, int *symbols) {
  for (int i = 0; i < count; i++) {
    const int here = kiln_dim_symbol_count(fn->dims, all[i]);
    if (here > *symbols) *symbols = here;
  }
}

static bool has_step(const kiln_loop_inst *inst) {
  return inst->op == KILN_LOOP_gather || kiln_loop_is_part(inst);
}

int kiln_loop_symbol_count(const kiln_loop_fn *fn) {
  int symbols = 0;
  for (int i = 0; i < fn->buffers.count; i++) {
    const kiln_loop_buffer *b = &fn->buffers.data[i];
    count_symbols(fn, b->rank, b->sizes, &symbols);
    count_symbols(fn, b->rank, b->strides, &symbols);
  }
  for (int n = 0; n < fn->nests.count; n++) {
    const kiln_loop_nest *nest = fn->nests.data[n];
    count_symbols(fn, nest->rank, nest->extents, &symbols);
    for (int i = 0; i < nest->body.count; i++) {
      const kiln_loop_inst *inst = &nest->body.data[i];
      count_symbols(fn, 1, &inst->offset, &symbols);
      count_symbols(fn, KILN_LOOP_MAX_RANK, inst->strides, &symbols);
      if (has_step(inst)) count_symbols(fn, 1, &inst->imm.step, &symbols);
    }
  }
  return symbols;
}

/* Distinct dimensions that are no numbers. */
typedef struct dim_list {
  kiln_arena *arena;
  kiln_map index; /* dimension -> its place, and 1 */
  KILN_VEC(kiln_dim) all;
} dim_list;

/* The symbol of the dimension's place. */
static kiln_dim flat_dim(dim_list *list, kiln_dim d) {
  if (kiln_dim_is_number(d)) return d;
  uintptr_t at = (uintptr_t)kiln_map_find_id(&list->index, (uint64_t)d);
  if (!at) {
    kiln_vec_push(list->arena, &list->all, d);
    at = (uintptr_t)list->all.count;
    kiln_map_set_id(&list->index, (uint64_t)d, (void *)at);
  }
  return kiln_dim_symbol((int)at - 1);
}

static void flatten_nest(dim_list *list, kiln_loop_nest *nest) {
  for (int d = 0; d < nest->rank; d++) nest->extents[d] = flat_dim(list, nest->extents[d]);
  for (int i = 0; i < nest->body.count; i++) {
    kiln_loop_inst *inst = &nest->body.data[i];
    inst->offset = flat_dim(list, inst->offset);
    for (int d = 0; d < KILN_LOOP_MAX_RANK; d++)
      inst->strides[d] = flat_dim(list, inst->strides[d]);
    if (has_step(inst)) inst->imm.step = flat_dim(list, inst->imm.step);
  }
}

kiln_loop_flat kiln_loop_flatten(const kiln_loop_fn *fn, int lanes, kiln_arena *arena) {
  const int locals = fn->buffers.count - fn->input_count - fn->output_count;
  dim_list list = {.arena = arena, .index = kiln_map_in(arena)};
  kiln_dim *places = KILN_NEW_ARRAY(arena, kiln_dim, locals + 1);
  kiln_loop_flat flat = {.fn = fn, .places = places};
  places[locals] = place_locals(fn, lanes, 0, places);
  if (kiln_loop_symbol_count(fn) == 0) return flat;
  kiln_loop_fn *copy = KILN_NEW(arena, kiln_loop_fn);
  *copy = *fn;
  copy->nests.data = KILN_NEW_ARRAY(arena, kiln_loop_nest *, fn->nests.count + 1);
  for (int n = 0; n < fn->nests.count; n++) {
    kiln_loop_nest *nest = copy->nests.data[n] = KILN_NEW(arena, kiln_loop_nest);
    *nest = *fn->nests.data[n];
    nest->body.data = KILN_NEW_ARRAY(arena, kiln_loop_inst, nest->body.count + 1);
    memcpy(nest->body.data, fn->nests.data[n]->body.data,
           sizeof *nest->body.data * (size_t)nest->body.count);
    flatten_nest(&list, nest);
  }
  for (int i = 0; i <= locals; i++)
    if (kiln_dim_is_known(places[i])) places[i] = flat_dim(&list, places[i]);
  flat.fn = copy;
  flat.values = kiln_dim_program_create(arena, fn->dims, list.all.data, list.all.count);
  return flat;
}
