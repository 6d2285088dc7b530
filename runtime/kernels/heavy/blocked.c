/* blocked.c: which form of blocked.h a product takes, how it is cut, and its runs. */
#include "runtime/kernels/heavy/blocked.h"

#include <math.h>

#include "runtime/kernels/heavy/strips.h"
#include "runtime/kernels/heavy/tiles.h"

static const kiln_blocked_kernels *kernels_of(const kiln_dispatch *dispatch,
                                              kiln_blocked_form form) {
  return form == KILN_BLOCKED_TILES        ? &kiln_tiles_amx
         : form == KILN_BLOCKED_TILES_IN_C ? &kiln_tiles_in_c
                                           : &dispatch->blocked->forms[form];
}
/* Outputs of a panel. */
static int64_t width_of(kiln_blocked_form form, int64_t lanes) {
  return 2 * lanes * kiln_blocked_tile(form);
}
/* What a product of a slice sums over. */
static int64_t half_of(kiln_blocked_form form, int64_t depth) {
  if (kiln_blocked_is_tiles(form)) return kiln_tile_pairs(depth);
  return parts_of(depth, kiln_blocked_tile(form));
}

/* -- Weights -- */

/* A panel of a slice takes that share of the L2 cache, and the sums of so many tiles, where there
 * are sums, that one: beside them the panels of seven products pass. Shorter slices are not worth
 * that y is read and written for each. */
#define PANEL_SHARE 0.1
#define SUMS_SHARE 0.35
enum { STRASSEN_TILES = 64, LEAST_SLICE = 256 };
int64_t kiln_blocked_slice(kiln_blocked_form form, int64_t depth,
                           const kiln_core_machine *machine) {
  const double l2 = (double)machine->l2_bytes / sizeof(float);
  double most = PANEL_SHARE * l2 / (2 * machine->lanes);
  if (form == KILN_BLOCKED_STRASSEN)
    most = fmin(most, 2 * (SUMS_SHARE * l2 / (7 * STRASSEN_TILES) - (double)LINE));
  const int64_t limit = (int64_t)fmax(most, LEAST_SLICE) * (kiln_blocked_is_tiles(form) ? 2 : 1);
  if (depth <= limit) return depth;
  return parts_of(parts_of(depth, parts_of(depth, limit)), LINE) * LINE;
}

/* Floats of the packed weight. */
static bool size_of(kiln_blocked_form form, int64_t lanes, const kiln_blocked_weight *w,
                    int64_t *out) {
  const int64_t width = 2 * lanes, last = w->depth % w->slice;
  const int64_t rows = w->depth / w->slice * half_of(form, w->slice) + half_of(form, last);
  return kiln_checked_mul_i64(parts_of(w->outputs, width_of(form, lanes)), rows, out) &&
         kiln_checked_mul_i64(*out, kiln_blocked_positions(form) * width, out);
}
kiln_status *kiln_blocked_bytes(const kiln_dispatch *dispatch, kiln_blocked_form form,
                                const kiln_blocked_weight *w, size_t *out_bytes) {
  int64_t bytes;
  if (!size_of(form, kernels_of(dispatch, form)->lanes, w, &bytes) ||
      !kiln_checked_mul_i64(bytes, (int64_t)sizeof(float), &bytes))
    return kiln_status_oom();
  *out_bytes = (size_t)bytes;
  return NULL;
}

typedef struct fill_work {
  kiln_blocked_weight slice;
  float *u;
  const kiln_blocked_kernels *kernels;
} fill_work;
static void fill_panels(void *data, int64_t begin, int64_t end, int worker) {
  const fill_work *w = data;
  (void)worker;
  w->kernels->fill(&w->slice, w->u, begin, end);
}
kiln_status *kiln_blocked_fill(const kiln_dispatch *dispatch, kiln_blocked_form form,
                               const kiln_blocked_weight *weight, float *u, kiln_pool *pool) {
  const kiln_blocked_kernels *kernels = kernels_of(dispatch, form);
  const int64_t panels = parts_of(weight->outputs, width_of(form, kernels->lanes));
  fill_work w = {*weight, u, kernels};
  for (int64_t at = 0; at < weight->depth; at += weight->slice) {
    int64_t floats = 0;
    w.slice.data = weight->data + at * weight->along;
    w.slice.depth = w.slice.slice = least(weight->depth - at, weight->slice);
    kiln_pool_for(pool, panels, 1, fill_panels, &w);
    (void)size_of(form, kernels->lanes, &w.slice, &floats); /* less than all, which fitted */
    w.u += floats;
  }
  return kiln_budget_check(kiln_budget_current(), 0);
}

/* -- The choice -- */

/* The share of the peak that products reach with all in the caches, and bytes in a cycle from the
 * last one or memory. Both were measured on shapes of networks (bench/contract.c, AVX2). Half of a
 * weight that is larger than the L2 cache arrives behind products, which ask for the next panel
 * line by line: those in blocks, whose panels are slices of its depth, and those of a kernel whose
 * panels, of two vectors, take no more of that cache. */
#define SHARE 0.9
#define FAR_BYTES 12.0
#define KEPT_SHARE 0.4
/* Cycles of a vector: of x for what V is made of it; of y for each slice, and to be read and
 * written again by what else is computed of it. */
#define COPY_CYCLES 5
#define SUMS_CYCLES 10
#define AGAIN_CYCLES 5
static const double give_cycles[] = {[KILN_BLOCKED_DIRECT] = 2, [KILN_BLOCKED_STRASSEN] = 16};
/* Less than this is within what the shares are known to. */
#define WORTH_BLOCKED 0.98

/* V is x itself: its rows are not some number of pages apart, which would have them share few sets
 * of the L1 cache, nor are they slices of longer ones. */
static bool lies_well(const kiln_blocked *p, kiln_blocked_form form, int64_t slice) {
  return form == KILN_BLOCKED_DIRECT && slice >= p->depth && p->x_row % 1024 != 0;
}
static double cycles_of(const kiln_blocked *p, kiln_blocked_form form,
                        const kiln_core_machine *machine, bool alone) {
  const double lanes = (double)machine->lanes, rows = (double)p->rows, depth = (double)p->depth;
  const double outputs = ceil((double)p->outputs / lanes);
  const double products = rows * depth * outputs / (double)machine->ports;
  const double weight = depth * outputs * lanes * sizeof(float);
  const double arrival = weight > (double)machine->l2_bytes / 2 ? weight / FAR_BYTES : 0;
  const double panel = 2 * lanes * depth * sizeof(float);
  const bool hides = panel <= KEPT_SHARE * (double)machine->l2_bytes;
  if (form == KILN_BLOCKED_NONE) return products / SHARE + (hides ? 0.5 : 1) * arrival;
  const bool sums = form == KILN_BLOCKED_STRASSEN;
  const int64_t slice = kiln_blocked_slice(form, p->depth, machine);
  const double copy = sums ? SUMS_CYCLES : lies_well(p, form, slice) ? 0 : COPY_CYCLES;
  const double give = ceil(depth / (double)slice) * give_cycles[form] + (alone ? 0 : AGAIN_CYCLES);
  return (sums ? 7.0 / 8 : 1) * products / SHARE + (sums ? 7.0 / 8 : 0.5) * arrival +
         rows * depth / lanes * copy + rows * outputs * give;
}

/* Products of fewer vectors of outputs have too little to gain. Nor have those of so few rows that
 * they are one tile of a kernel, two vectors wide: it reads the weight once, and asks for it. */
enum { LEAST_PANELS = 8 };
static bool is_one_tile(const kiln_blocked *p, const kiln_core_machine *machine) {
  const int64_t registers = machine->lanes >= 16 ? 32 : 16;
  return 2 * p->rows <= registers * 13 / 16;
}
kiln_blocked_form kiln_blocked_choose(const kiln_blocked *problem, const kiln_core_machine *machine,
                                      bool alone, bool may_strassen) {
  if (is_one_tile(problem, machine) || problem->outputs < LEAST_PANELS * 2 * machine->lanes)
    return KILN_BLOCKED_NONE;
  kiln_blocked_form best = KILN_BLOCKED_NONE;
  double least_cycles = WORTH_BLOCKED * cycles_of(problem, best, machine, alone);
  for (int form = KILN_BLOCKED_DIRECT; form <= KILN_BLOCKED_STRASSEN; form++) {
    if (form == KILN_BLOCKED_STRASSEN && !may_strassen) continue;
    const double cycles = cycles_of(problem, (kiln_blocked_form)form, machine, alone);
    if (cycles >= least_cycles) continue;
    least_cycles = cycles;
    best = (kiln_blocked_form)form;
  }
  return best;
}

/* Fewer rows, and fewer outputs, leave most of a tile empty, or wait for the weight as a kernel
 * does. */
enum { LEAST_TILE_ROWS = 8 };
kiln_blocked_form kiln_blocked_choose_bf16(const kiln_blocked *problem,
                                           const kiln_core_machine *machine) {
  const bool few = problem->rows < LEAST_TILE_ROWS || problem->outputs < KILN_TILE_SIDE ||
                   problem->depth < 2 * KILN_TILE_PAIRS;
  if (few || machine->tiles == KILN_TILES_NONE) return KILN_BLOCKED_NONE;
  return machine->tiles == KILN_TILES_AMX ? KILN_BLOCKED_TILES : KILN_BLOCKED_TILES_IN_C;
}

/* -- Plans -- */

/* Where V and M of a strip are in a thread's scratch. */
static kiln_status *place(kiln_blocked_plan *p) {
  const int64_t positions = kiln_blocked_positions(p->form), panel = 2 * p->kernels->lanes;
  const int64_t sums = kiln_blocked_is_tiles(p->form) ? panel : p->strip; /* rows of M */
  int64_t v, m;
  if (!odd_lines(p->half, &p->v_row) || !kiln_checked_mul_i64(p->v_row, p->strip, &v) ||
      !odd_lines(v, &p->v_position) || !odd_lines(sums * panel, &p->m_position) ||
      !kiln_checked_mul_i64(p->v_position, positions * (int64_t)sizeof(float), &v))
    return kiln_status_oom();
  p->in_place = lies_well(&p->problem, p->form, p->slice);
  if (p->in_place) {
    p->v_row = p->problem.x_row;
    v = 0;
  }
  m = p->m_position * positions * (int64_t)sizeof(float);
  p->v_at = 64;
  p->m_at = p->v_at + (size_t)v;
  p->scratch = p->m_at + (size_t)m;
  return p->scratch > SIZE_MAX / KILN_POOL_MAX_THREADS ? kiln_status_oom() : NULL;
}

/* Of the L2 cache's bytes, those for V; what is left is for panels of the weight and y. */
#define STRIP_SHARE 0.7
/* Tiles of a strip at least: the weight comes from farther off for fewer. */
enum { LEAST_STRIP = 32, MOST_STRIP = 1024 };

static int64_t most_tiles(const kiln_blocked_plan *p, const kiln_core_machine *machine) {
  const double tile =
      (double)kiln_blocked_positions(p->form) * ((double)p->half + (double)LINE) * sizeof(float);
  const double most = STRIP_SHARE * (double)machine->l2_bytes / tile;
  return (int64_t)fmin(fmax(most, LEAST_STRIP), MOST_STRIP);
}
static double products_of(const kiln_blocked_plan *p, double tiles) {
  return tiles * (double)kiln_blocked_positions(p->form) * (double)p->half * (double)p->panels * 2 *
         (double)p->kernels->lanes;
}

kiln_status *kiln_blocked_make_plan(const kiln_blocked *problem, kiln_blocked_form form,
                                    int64_t slice, const kiln_dispatch *dispatch,
                                    const kiln_core_machine *machine, int threads,
                                    kiln_blocked_plan *p) {
  const kiln_blocked_kernels *kernels = kernels_of(dispatch, form);
  *p = (kiln_blocked_plan){.problem = *problem,
                           .form = form,
                           .kernels = kernels,
                           .threads = threads < 1 ? 1 : threads,
                           .slice = slice,
                           .slices = parts_of(problem->depth, slice),
                           .half = half_of(form, slice),
                           .tiles = parts_of(problem->rows, kiln_blocked_tile(form)),
                           .panels = parts_of(problem->outputs, width_of(form, kernels->lanes))};
  const int64_t most = most_tiles(p, machine);
  if (products_of(p, (double)p->tiles) * (double)p->slices < 2 * GRAIN_PRODUCTS) p->threads = 1;
  p->strips = parts_of(p->tiles, most);
  /* Threads take the panels of one strip after the other, so that each reads a part of the weight,
   * unless there are strips enough to keep them busy. */
  p->by_panels = p->threads > 1 && p->strips < 4 * p->threads && p->panels >= p->threads;
  if (!p->by_panels && p->strips < p->threads) p->strips = least(p->threads, p->tiles);
  p->strip = parts_of(p->tiles, p->strips);
  if (kiln_blocked_is_tiles(form)) p->strip = parts_of(p->strip, KILN_TILE_SIDE) * KILN_TILE_SIDE;
  p->strips = parts_of(p->tiles, p->strip);
  return place(p);
}

size_t kiln_blocked_scratch(const kiln_blocked_plan *p) { return p->scratch * (size_t)p->threads; }

/* -- Runs -- */

typedef struct work {
  const kiln_blocked_plan *plan;
  const float *x, *u, *bias;
  float *y;
  kiln_blocked_done done;
  void *user;
  char *scratch;
  int64_t strip, slice; /* by panels: of which */
} work;

static char *scratch_at(const work *w, int worker) {
  return w->scratch + (size_t)worker * w->plan->scratch;
}
static kiln_blocked_part part_at(const work *w, int64_t strip, int64_t slice, int worker) {
  const kiln_blocked_plan *p = w->plan;
  char *scratch = scratch_at(w, worker);
  float *v = (float *)(void *)(scratch + p->v_at);
  const int64_t at = slice * p->slice, tile = strip * p->strip;
  const int64_t depth = least(p->problem.depth - at, p->slice);
  const int64_t before =
      slice * p->half * kiln_blocked_positions(p->form) * p->panels * 2 * p->kernels->lanes;
  return (kiln_blocked_part){.plan = p,
                             .x = w->x + at,
                             .u = w->u + before,
                             .y = w->y,
                             .tile = tile,
                             .tiles = least(p->tiles - tile, p->strip),
                             .depth = depth,
                             .half = half_of(p->form, depth),
                             .add = slice > 0,
                             .bias = w->bias,
                             .v = p->in_place ? w->x + tile * p->v_row : v,
                             .gathered = v,
                             .m = (float *)(void *)(scratch + p->m_at)};
}
static int64_t rows_of(const kiln_blocked_plan *p, int64_t strip, int64_t *first) {
  const int64_t each = p->strip * kiln_blocked_tile(p->form);
  *first = strip * each;
  return least(p->problem.rows - *first, each);
}

static void run_strips(void *data, int64_t begin, int64_t end, int worker) {
  const work *w = data;
  const kiln_blocked_plan *p = w->plan;
  for (int64_t strip = begin; strip < end; strip++) {
    for (int64_t slice = 0; slice < p->slices; slice++) {
      const kiln_blocked_part part = part_at(w, strip, slice, worker);
      if (kiln_budget_leaves_out()) return;
      if (!p->in_place) p->kernels->gather(&part);
      for (int64_t panel = 0; panel < p->panels; panel++) p->kernels->panel(&part, panel);
    }
    int64_t first;
    const int64_t rows = rows_of(p, strip, &first);
    if (w->done) w->done(w->user, first, rows, worker);
  }
}

/* The first number of a thread's scratch says which V it has, counted from 1; 0: none. */
static void run_panels(void *data, int64_t begin, int64_t end, int worker) {
  const work *w = data;
  const kiln_blocked_plan *p = w->plan;
  const kiln_blocked_part part = part_at(w, w->strip, w->slice, worker);
  const int64_t number = w->strip * p->slices + w->slice + 1;
  int64_t *held = (int64_t *)(void *)scratch_at(w, worker);
  if (*held != number && !p->in_place) p->kernels->gather(&part);
  *held = number;
  for (int64_t panel = begin; panel < end; panel++) {
    if (kiln_budget_leaves_out()) return;
    p->kernels->panel(&part, panel);
  }
}
static void hand_on(void *data, int64_t begin, int64_t end, int worker) {
  const work *w = data;
  int64_t first;
  (void)rows_of(w->plan, w->strip, &first);
  w->done(w->user, first + begin, end - begin, worker);
}
static void run_by_panels(work *w, kiln_pool *pool) {
  const kiln_blocked_plan *p = w->plan;
  int64_t first;
  const double each = products_of(p, (double)p->strip) / (double)p->panels;
  for (int worker = 0; worker < p->threads; worker++) *(int64_t *)(void *)scratch_at(w, worker) = 0;
  for (w->strip = 0; w->strip < p->strips; w->strip++) {
    for (w->slice = 0; w->slice < p->slices; w->slice++) {
      kiln_pool_for(pool, p->panels, grain_of(each), run_panels, w);
      if (kiln_budget_leaves_out()) return;
    }
    if (w->done) kiln_pool_for(pool, rows_of(p, w->strip, &first), 1, hand_on, w);
  }
}

void kiln_blocked_run(const kiln_blocked_plan *p, const float *x, const float *u, const float *bias,
                      float *y, kiln_blocked_done done, void *user, kiln_pool *pool,
                      void *scratch) {
  work w = {.plan = p,
            .x = x,
            .u = u,
            .bias = bias,
            .y = y,
            .done = done,
            .user = user,
            .scratch = scratch};
  if (p->threads == 1) pool = NULL;
  if (p->by_panels)
    run_by_panels(&w, pool);
  else
    kiln_pool_for(pool, p->strips, 1, run_strips, &w);
}

kiln_status *kiln_blocked_call(kiln_call *call, const kiln_blocked_plan *p, const float *x,
                               const float *u, const float *bias, float *y, kiln_blocked_done done,
                               void *user) {
  kiln_tensor *block;
  void *scratch;
  KILN_TRY(take_scratch(call, kiln_blocked_scratch(p), &block, &scratch));
  kiln_blocked_run(p, x, u, bias, y, done, user, call->pool, scratch);
  kiln_tensor_release_to(&call->cache, block);
  return NULL;
}
