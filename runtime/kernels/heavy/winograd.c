/* winograd.c: which form of winograd.h a convolution takes, how it is cut, and its runs. */
#include "runtime/kernels/heavy/winograd.h"

#include <math.h>

#include "runtime/kernels/heavy/strips.h"

/* -- Weights -- */

static const kiln_winograd_kernels *kernels_of(const kiln_dispatch *dispatch,
                                               kiln_winograd_form form) {
  return &dispatch->winograd->forms[form];
}

kiln_status *kiln_winograd_bytes(const kiln_dispatch *dispatch, kiln_winograd_form form,
                                 int64_t planes, int64_t channels, int64_t outputs,
                                 size_t *out_bytes) {
  const int64_t lanes = kernels_of(dispatch, form)->lanes;
  int64_t bytes;
  if (channels > INT64_MAX - lanes ||
      !kiln_checked_mul_i64(parts_of(outputs, lanes), lanes, &bytes) ||
      !kiln_checked_mul_i64(bytes, kiln__winograd_pitch(planes, channels, lanes), &bytes) ||
      !kiln_checked_mul_i64(bytes, planes, &bytes) ||
      !kiln_checked_mul_i64(bytes, kiln_winograd_positions(form) * (int64_t)sizeof(float),
                            &bytes)) {
    return kiln_status_oom();
  }
  *out_bytes = (size_t)bytes;
  return NULL;
}

typedef struct fill_work {
  kiln_winograd_filling filling;
  const kiln_winograd_kernels *kernels;
} fill_work;
static void fill_panels(void *data, int64_t begin, int64_t end, int worker) {
  const fill_work *w = data;
  (void)worker;
  w->kernels->fill(&w->filling, begin, end);
}
kiln_status *kiln_winograd_fill(const kiln_dispatch *dispatch, kiln_winograd_form form,
                                int64_t planes, int64_t channels, int64_t outputs,
                                const kiln_winograd_weight *weight, float *u, kiln_pool *pool) {
  fill_work w = {.filling = {weight, planes, channels, outputs, u},
                 .kernels = kernels_of(dispatch, form)};
  kiln_pool_for(pool, parts_of(outputs, 2 * w.kernels->lanes), 1, fill_panels, &w);
  return kiln_budget_check(kiln_budget_current(), 0);
}

/* -- The choice -- */

/* Cycles of a core that starts two products of vectors in each. The numbers were measured on
 * several shapes, instruction sets and caches that the weights were in or not (bench/winograd.c):
 * what a vector of channels or outputs of a tile takes for its transform, its way to M included. */
static const struct {
  double gather, give;
} transform_cycles[] = {[KILN_WINOGRAD_F2] = {65, 55}, [KILN_WINOGRAD_F4] = {180, 160}};
/* Shares of the peak that products reach. */
#define DIRECT_SHARE 0.9
#define WINOGRAD_SHARE 0.88
/* Fewer tiles than these leave the registers' sums waiting for each other. */
#define BUSY_TILES 4.0
/* Bytes in a cycle from memory, of which machines gave 4 to 9, and from the last cache. */
#define MEMORY_BYTES 5.0
#define L3_BYTES 16.0
/* Of the time in which weights arrive the products, which ask for them ahead, do not hide so much.
 */
#define ARRIVAL_SEEN 0.25
/* U is in the last cache if it takes no more of it: the network's other weights were there since.
 */
#define L3_SHARE 0.0625
/* A form that needs more memory, or has larger errors, must be so much faster. */
#define WORTH_WINOGRAD 0.85
#define WORTH_F4 0.95
/* Of so many the first and the last, which read fewer, make no difference. */
enum { MANY_PLANES = 64 };

static double with_weights(const kiln_core_machine *machine, double cycles, double floats) {
  const double bytes = floats * sizeof(float);
  if (bytes <= (double)machine->l2_bytes / 2) return cycles;
  const bool near = bytes <= L3_SHARE * (double)machine->l3_bytes;
  const double arrival = bytes / (near ? L3_BYTES : MEMORY_BYTES),
               sum = cycles + ARRIVAL_SEEN * arrival;
  return sum > arrival ? sum : arrival;
}
/* Planes of a window that an output reads, on average. */
static double planes_read(const kiln_winograd *p) {
  const double least = fmin((double)p->in[0], (double)p->planes);
  int64_t sum = 0, begin;
  if (p->planes == 1 || p->out[0] > MANY_PLANES) return least;
  for (int64_t plane = 0; plane < p->out[0]; plane++)
    sum += kiln_winograd_taps(p, plane, &begin) - begin;
  return (double)sum / (double)p->out[0];
}
static double cycles_of(const kiln_winograd *p, kiln_winograd_form form, double planes,
                        const kiln_core_machine *machine) {
  const double lanes = (double)machine->lanes, channels = planes * (double)p->channels;
  const double pitch =
      planes * (double)kiln__winograd_pitch(p->planes, p->channels, machine->lanes);
  const double outputs = ceil((double)p->outputs / lanes);
  const double images = (double)p->batch * (double)p->out[0];
  if (form == KILN_WINOGRAD_NONE) {
    const double weights = 9 * channels * (double)p->outputs;
    const double pixels = images * (double)p->out[1] * (double)p->out[2];
    return with_weights(machine, weights * pixels / lanes / 2 / DIRECT_SHARE, weights);
  }
  const double positions = (double)kiln_winograd_positions(form);
  const double tiles =
      images * (double)kiln_winograd_tiles(p, form, 0) * (double)kiln_winograd_tiles(p, form, 1);
  const double products = positions * pitch * outputs * fmax(tiles, BUSY_TILES);
  const double transforms =
      transform_cycles[form].gather * planes * ceil((double)p->channels / lanes) +
      transform_cycles[form].give * outputs;
  return with_weights(machine, products / 2 / WINOGRAD_SHARE + tiles * transforms,
                      positions * pitch * outputs * lanes);
}
kiln_winograd_form kiln_winograd_choose(const kiln_winograd *problem,
                                        const kiln_core_machine *machine) {
  const double planes = planes_read(problem);
  const double direct = cycles_of(problem, KILN_WINOGRAD_NONE, planes, machine);
  const double f2 = cycles_of(problem, KILN_WINOGRAD_F2, planes, machine);
  const double f4 = cycles_of(problem, KILN_WINOGRAD_F4, planes, machine);
  const kiln_winograd_form form = f4 < WORTH_F4 * f2 ? KILN_WINOGRAD_F4 : KILN_WINOGRAD_F2;
  return (form == KILN_WINOGRAD_F4 ? f4 : f2) < WORTH_WINOGRAD * direct ? form : KILN_WINOGRAD_NONE;
}

/* -- Plans -- */

/* Where V and M of `tiles` are in a thread's scratch. */
static kiln_status *place(kiln_winograd_plan *p, int64_t tiles) {
  const int64_t positions = kiln_winograd_positions(p->form);
  int64_t v, m;
  p->strip = tiles;
  if (!odd_lines(p->depth, &p->v_row) || !kiln_checked_mul_i64(p->v_row, tiles, &v) ||
      !odd_lines(v, &p->v_position) || !odd_lines(tiles * p->panel, &p->m_position) ||
      !kiln_checked_mul_i64(p->v_position, positions * (int64_t)sizeof(float), &v)) {
    return kiln_status_oom();
  }
  m = p->m_position * positions * (int64_t)sizeof(float);
  p->v_at = 64;
  p->m_at = p->v_at + (size_t)v;
  p->scratch = p->m_at + (size_t)m;
  return p->scratch > SIZE_MAX / KILN_POOL_MAX_THREADS ? kiln_status_oom() : NULL;
}

/* Of the L2 cache's bytes, those for V and M; what is left is for U, and inputs and outputs on
 * their way. */
#define STRIP_SHARE 0.75
/* Tiles of a strip at least: U comes from farther off for fewer. */
enum { LEAST_STRIP = 28, MOST_STRIP = 1024 };
/* What a block and a group of rows of a product cost beside its tiles, in tiles. */
enum { BLOCK_TILES = 3, GROUP_TILES = 1 };

static int64_t most_tiles(const kiln_winograd_plan *p, const kiln_core_machine *machine) {
  const double tile = (double)kiln_winograd_positions(p->form) *
                      ((double)p->depth + (double)(LINE + p->panel)) * sizeof(float);
  const double most = STRIP_SHARE * (double)machine->l2_bytes / tile;
  return (int64_t)fmin(fmax(most, (double)LEAST_STRIP), (double)MOST_STRIP);
}
static double products_of(const kiln_winograd_plan *p, double tiles) {
  return tiles * (double)kiln_winograd_positions(p->form) * (double)p->depth *
         (double)p->problem.outputs;
}

/* Tiles that the slowest of the threads works on, and what comes on top. */
static double cost_of(const kiln_winograd_plan *p, int64_t rows, int64_t block_rows, int threads) {
  const double each = (double)parts_of(parts_of(rows, block_rows), threads);
  const int64_t tiles = block_rows * p->row_tiles;
  return each * (double)(tiles + BLOCK_TILES + GROUP_TILES * parts_of(tiles, p->kernels->rows));
}
/* Rows of tiles of a block, which is one strip if it can be. What it costs. */
static double cut_blocks(kiln_winograd_plan *p, int64_t rows, int64_t most, int threads) {
  double cheapest = cost_of(p, rows, 1, threads);
  p->block_rows = 1;
  for (int64_t n = 2; n <= rows && n * p->row_tiles <= most; n++) {
    const double cost = cost_of(p, rows, n, threads);
    if (cost > cheapest) continue;
    cheapest = cost;
    p->block_rows = n;
  }
  p->blocks = parts_of(rows, p->block_rows);
  return cheapest;
}
/* The transform of an input costs as much as its products with so many outputs. */
#define GATHER_OUTPUTS 8.0
/* Threads take blocks, or, where these would not keep them equally busy, the panels of one block
 * after the other. Then each of them has a V of its own, since another's would come from the other
 * core's cache. */
static void cut_for_threads(kiln_winograd_plan *p, int64_t rows, int64_t most) {
  if (p->threads == 1 || p->panels < p->threads) {
    cut_blocks(p, rows, most, p->threads);
    return;
  }
  const double share = (double)parts_of(p->panels, p->threads) / (double)p->panels;
  const double all = cut_blocks(p, rows, most, 1);
  const double gathers = (double)(rows * p->row_tiles) * GATHER_OUTPUTS;
  const double by_panels = all * share + gathers / (double)p->problem.outputs;
  kiln_winograd_plan other = *p;
  p->by_panels = by_panels < cut_blocks(&other, rows, most, p->threads);
  if (!p->by_panels) *p = other;
}

kiln_status *kiln_winograd_make_plan(const kiln_winograd *problem, kiln_winograd_form form,
                                     const kiln_dispatch *dispatch,
                                     const kiln_core_machine *machine, int threads,
                                     kiln_winograd_plan *p) {
  *p =
      (kiln_winograd_plan){.problem = *problem, .form = form, .threads = threads < 1 ? 1 : threads};
  p->kernels = kernels_of(dispatch, form);
  p->panel = 2 * p->kernels->lanes;
  p->panels = parts_of(problem->outputs, p->panel);
  p->lines = kiln_winograd_tiles(problem, form, 0);
  p->columns = kiln_winograd_tiles(problem, form, 1);
  p->rows = p->lines / problem->dilation[0];
  int64_t rows, all;
  if (problem->channels > INT64_MAX - p->panel) return kiln_status_oom();
  p->pitch = kiln__winograd_pitch(problem->planes, problem->channels, p->kernels->lanes);
  if (!kiln_checked_mul_i64(problem->batch, problem->out[0], &p->images) ||
      !kiln_checked_mul_i64(problem->planes, p->pitch, &p->depth) ||
      !kiln_checked_mul_i64(p->images, p->rows, &rows) ||
      !kiln_checked_mul_i64(problem->dilation[0], p->columns, &p->row_tiles) ||
      !kiln_checked_mul_i64(rows, p->row_tiles, &all)) {
    return kiln_status_oom();
  }
  const int64_t most = most_tiles(p, machine);
  if (products_of(p, (double)all) < 2 * GRAIN_PRODUCTS) p->threads = 1;
  cut_for_threads(p, rows, most);
  const int64_t block = p->block_rows * p->row_tiles;
  return place(p, parts_of(block, parts_of(block, most)));
}

size_t kiln_winograd_scratch(const kiln_winograd_plan *p) {
  return p->scratch * (size_t)p->threads;
}

/* -- Runs -- */

typedef struct work {
  const kiln_winograd_plan *plan;
  const float *x, *u;
  float *y;
  kiln_winograd_done done;
  void *user;
  char *scratch;
  int64_t tile, tiles; /* by panels: of the strip */
} work;

static char *scratch_at(const work *w, int worker) {
  return w->scratch + (size_t)worker * w->plan->scratch;
}
/* Later planes begin and end with earlier taps. */
static void find_taps(kiln_winograd_strip *s) {
  const kiln_winograd *p = &s->plan->problem;
  const int64_t image_tiles = s->plan->lines * s->plan->columns, planes = p->out[0];
  const int64_t first = s->tile / image_tiles, last = (s->tile + s->tiles - 1) / image_tiles;
  const bool is_one = first / planes == last / planes; /* volume; of several all planes */
  int64_t begin;
  s->last_tap = kiln_winograd_taps(p, is_one ? first % planes : 0, &begin);
  (void)kiln_winograd_taps(p, is_one ? last % planes : planes - 1, &s->first_tap);
}
static kiln_winograd_strip strip_at(const work *w, int64_t tile, int64_t tiles, int worker) {
  char *scratch = scratch_at(w, worker);
  kiln_winograd_strip strip = {.plan = w->plan,
                               .x = w->x,
                               .u = w->u,
                               .y = w->y,
                               .tile = tile,
                               .tiles = tiles,
                               .v = (float *)(void *)(scratch + w->plan->v_at),
                               .m = (float *)(void *)(scratch + w->plan->m_at)};
  find_taps(&strip);
  return strip;
}
/* Hands on the rows of tiles [first, first + rows) of all images, image by image. */
static void hand_on(const work *w, int64_t first, int64_t rows, int worker) {
  const kiln_winograd_plan *p = w->plan;
  const int64_t tile = kiln_winograd_tile(p->form) * p->problem.dilation[0];
  const int64_t image_rows = p->rows;
  while (w->done && rows > 0) {
    const int64_t row = first % image_rows, some = least(image_rows - row, rows);
    const int64_t end = least((row + some) * tile, p->problem.out[1]);
    w->done(w->user, first / image_rows, row * tile, end - row * tile, worker);
    first += some;
    rows -= some;
  }
}

/* Strips of a block, and the tiles [*tile, *tile + result) of one of them. */
static int64_t strips_of(const kiln_winograd_plan *p, int64_t rows) {
  return parts_of(rows * p->row_tiles, p->strip);
}
static int64_t cut_strip(const kiln_winograd_plan *p, int64_t row, int64_t rows, int64_t index,
                         int64_t *tile) {
  const int64_t tiles = rows * p->row_tiles, strips = strips_of(p, rows);
  const int64_t from = index * tiles / strips;
  *tile = row * p->row_tiles + from;
  return (index + 1) * tiles / strips - from;
}
/* Rows of tiles of a block. */
static int64_t rows_of(const kiln_winograd_plan *p, int64_t block) {
  return least(p->images * p->rows - block * p->block_rows, p->block_rows);
}

static void run_blocks(void *data, int64_t begin, int64_t end, int worker) {
  const work *w = data;
  const kiln_winograd_plan *p = w->plan;
  for (int64_t block = begin; block < end; block++) {
    const int64_t row = block * p->block_rows, rows = rows_of(p, block);
    for (int64_t i = 0; i < strips_of(p, rows); i++) {
      int64_t tile;
      const int64_t tiles = cut_strip(p, row, rows, i, &tile);
      const kiln_winograd_strip strip = strip_at(w, tile, tiles, worker);
      if (kiln_budget_leaves_out()) return;
      p->kernels->gather(&strip);
      for (int64_t panel = 0; panel < p->panels; panel++) p->kernels->panel(&strip, panel);
    }
    hand_on(w, row, rows, worker);
  }
}

/* The first number of a thread's scratch says which strip its V is of: one more than its first
 * tile; 0: none. */
static void run_panels(void *data, int64_t begin, int64_t end, int worker) {
  const work *w = data;
  const kiln_winograd_strip strip = strip_at(w, w->tile, w->tiles, worker);
  int64_t *held = (int64_t *)(void *)scratch_at(w, worker);
  if (*held != w->tile + 1) w->plan->kernels->gather(&strip);
  *held = w->tile + 1;
  for (int64_t panel = begin; panel < end; panel++) {
    if (kiln_budget_leaves_out()) return;
    w->plan->kernels->panel(&strip, panel);
  }
}
static void hand_on_rows(void *data, int64_t begin, int64_t end, int worker) {
  const work *w = data;
  hand_on(w, w->tile / w->plan->row_tiles + begin, end - begin, worker);
}
static void run_by_panels(work *w, kiln_pool *pool) {
  const kiln_winograd_plan *p = w->plan;
  for (int worker = 0; worker < p->threads; worker++) *(int64_t *)(void *)scratch_at(w, worker) = 0;
  for (int64_t block = 0; block < p->blocks; block++) {
    const int64_t row = block * p->block_rows, rows = rows_of(p, block);
    for (int64_t i = 0; i < strips_of(p, rows); i++) {
      w->tiles = cut_strip(p, row, rows, i, &w->tile);
      const double each = products_of(p, (double)w->tiles) / (double)p->panels;
      kiln_pool_for(pool, p->panels, grain_of(each), run_panels, w);
      if (kiln_budget_leaves_out()) return;
    }
    w->tile = row * p->row_tiles;
    if (w->done) kiln_pool_for(pool, rows, 1, hand_on_rows, w);
  }
}

void kiln_winograd_run(const kiln_winograd_plan *p, const float *x, const float *u, float *y,
                       kiln_winograd_done done, void *user, kiln_pool *pool, void *scratch) {
  work w = {.plan = p, .x = x, .u = u, .y = y, .done = done, .user = user, .scratch = scratch};
  if (p->threads == 1) pool = NULL;
  if (p->by_panels) {
    run_by_panels(&w, pool);
    return;
  }
  const double each = products_of(p, (double)(p->block_rows * p->row_tiles));
  kiln_pool_for(pool, p->blocks, grain_of(each), run_blocks, &w);
}

kiln_status *kiln_winograd_call(kiln_call *call, const kiln_winograd_plan *p, const float *x,
                                const float *u, float *y, kiln_winograd_done done, void *user) {
  kiln_tensor *block;
  void *scratch;
  KILN_TRY(take_scratch(call, kiln_winograd_scratch(p), &block, &scratch));
  kiln_winograd_run(p, x, u, y, done, user, call->pool, scratch);
  kiln_tensor_release_to(&call->cache, block);
  return NULL;
}
