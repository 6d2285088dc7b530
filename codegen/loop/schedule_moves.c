/* schedule_moves.c: legal schedules beside a given one: what a search tries (codegen/tune.c).
 *
 * A move changes one thing of one nest: a tile's rows, or its vectors with as many rows as keep the
 * registers; whether panels stand in a strip; how often a loop is unrolled; how wide vectors are;
 * which loop comes last. What follows from a tile (unrolled loops, parallel ones) is chosen anew by
 * the rules. What is packed stays so: whoever calls the kernel packs weights once and other tensors
 * in each call, and a schedule does not know which is which. Nests that take little are left alone.
 */
#include <string.h>

#include "codegen/loop/schedule.h"

enum {
  MOST_NESTS = 2, /* of a kernel, that moves change */
  LONG = 512      /* what a symbol is taken for */
};
static const double LITTLE = 0.2; /* of the kernel's cost */

/* One nest that is to be changed. */
typedef struct mover {
  const kiln_loop_fn *fn;
  const kiln_machine *machine;
  kiln_arena *arena;
  int number;
  const kiln_loop_nest *nest;
  bool has_loops;        /* in its body */
  kiln_schedule_nest *s; /* a copy, with arrays of its own */
} mover;

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* -- Tiles of the nest -- */

/* All but the tile, by the rules. */
static bool complete(mover *m) {
  kiln_schedule_nest *s = m->s;
  s->ordered = false;
  s->lanes = s->vector_loop = s->unroll = s->unroll_count = 0;
  s->unrolls = NULL;
  s->parallel = 0;
  s->grain = 0;
  kiln__schedule_choose_run(m->fn, m->number, m->machine,
                            kiln__schedule_most_iterations(m->fn, m->arena), m->arena, s);
  return true;
}

/* Rows of a tile that there can be. */
static bool set_rows(int *tile, int64_t rows, kiln_dim extent) {
  rows = least(rows, kiln_dim_or(extent, KILN_SCHEDULE_MAX_ROWS));
  if (rows < 1 || rows > KILN_SCHEDULE_MAX_ROWS || rows == *tile) return false;
  *tile = (int)rows;
  return true;
}

static bool change_rows(mover *m, int by) {
  kiln_schedule_nest *s = m->s;
  if (!s->tile || !set_rows(&s->tile, s->tile + by, kiln__schedule_rows(m->nest, s))) return false;
  return complete(m);
}

static bool change_vectors(mover *m, int by) {
  kiln_schedule_nest *s = m->s;
  if (!s->tile || !s->lanes || s->panel % s->lanes) return false;
  const int vectors = s->panel / s->lanes, to = vectors + by;
  const int64_t columns = kiln_dim_or(m->nest->extents[s->panel_loop], INT64_MAX);
  if (to < 1 || to * s->lanes > KILN_SCHEDULE_MAX_PANEL || (to - 1) * s->lanes >= columns)
    return false;
  s->panel = to * s->lanes;
  (void)set_rows(&s->tile, least(s->tile * vectors / to, KILN_SCHEDULE_MAX_ROWS),
                 kiln__schedule_rows(m->nest, s));
  if (s->strip && s->pack >= 0) s->strip = (int)kiln__schedule_panels(m->nest, s);
  return complete(m);
}

/* 0: whether there is one; else it is longer or shorter, where nothing is packed. */
static bool change_strip(mover *m, int by) {
  kiln_schedule_nest *s = m->s;
  if (!s->tile || !kiln_dim_is_number(m->nest->extents[s->panel_loop])) return false;
  const int64_t panels = kiln__schedule_panels(m->nest, s);
  const int64_t to = by == 0 ? (s->strip ? 0 : panels) : by > 0 ? 2 * s->strip : s->strip / 2;
  if (by != 0 && (s->pack >= 0 || to < 1 || to > panels)) return false;
  if (to > KILN_SCHEDULE_MAX_STRIP) return false;
  s->strip = (int)to;
  if (s->strip) s->prefetch = false, s->ahead = 0;
  return complete(m);
}

/* On and off; 1 and -1: twice and half as many iterations on, of which none is the next panel. */
static bool change_prefetch(mover *m, int by) {
  kiln_schedule_nest *s = m->s;
  if (!s->tile || s->pack < 0 || s->strip) return false;
  const int ahead = by == 0 ? 0 : by > 0 ? (s->ahead ? 2 * s->ahead : 16) : s->ahead / 2;
  if ((by != 0 && !s->prefetch) || ahead > KILN_SCHEDULE_MAX_AHEAD) return false;
  if (by < 0 && s->ahead == 0) return false;
  s->prefetch = by != 0 || !s->prefetch;
  s->ahead = ahead;
  return true;
}

static bool change_claim(mover *m, int by) {
  (void)by;
  if (!m->s->tile) return false;
  m->s->claim = !m->s->claim;
  return true;
}

/* The loop that comes `by` loops behind the tile's. */
static bool change_tile_loop(mover *m, int by) {
  kiln_schedule_nest *s = m->s;
  if (!s->tile) return false;
  const int loop = (s->tile_loop + by) % m->nest->rank;
  if (loop == s->tile_loop || loop == s->panel_loop ||
      kiln_dim_or(m->nest->extents[loop], LONG) < 2)
    return false;
  s->tile_loop = loop;
  (void)set_rows(&s->tile, s->tile, m->nest->extents[loop]);
  return complete(m);
}

/* -- Blocks, and tiles of the body -- */

static bool change_block(mover *m, int by) {
  kiln_schedule_nest *s = m->s;
  const int to = by > 0 ? 2 * s->block : s->block / 2;
  if (!s->block || to < 1 || to > KILN_SCHEDULE_MAX_BLOCK) return false;
  if (by > 0 && s->block >= kiln_dim_or(m->nest->extents[s->block_loop], INT64_MAX)) return false;
  s->block = to;
  return true;
}

/* Of all tiles. */
static bool change_body_rows(mover *m, int by) {
  bool any = false;
  for (int k = 0; k < m->s->body_count; k++)
    any |= set_rows(&m->s->body[k].tile, m->s->body[k].tile + by, KILN_SCHEDULE_MAX_ROWS);
  return any;
}

static bool change_body_vectors(mover *m, int by) {
  const int lanes = m->s->lanes;
  bool any = false;
  for (int k = 0; lanes && k < m->s->body_count; k++) {
    kiln_schedule_tile *t = &m->s->body[k];
    const int to = t->panel / lanes + by;
    if (t->panel % lanes || to < 1 || to * lanes > KILN_SCHEDULE_MAX_PANEL) continue;
    (void)set_rows(&t->tile, least(t->tile * (t->panel / lanes) / to, KILN_SCHEDULE_MAX_ROWS),
                   KILN_SCHEDULE_MAX_ROWS);
    t->panel = to * lanes;
    any = true;
  }
  return any;
}

/* The input that the columns of a tile of the body move: -1: none. */
static int moved_input(const mover *m, const kiln_schedule_tile *t) {
  const kiln_loop_scopes scopes = kiln_loop_scopes_of(m->nest, m->arena);
  const int open = kiln__loop_of_body(m->nest, t->panel_loop);
  for (int i = open + 1; open >= 0 && i < scopes.end[open]; i++) {
    const kiln_loop_inst *inst = &m->nest->body.data[i];
    if (inst->op == KILN_LOOP_load && inst->index < m->fn->input_count &&
        inst->strides[scopes.depth[open]] != 0)
      return inst->index;
  }
  return -1;
}

/* Whether tile number `which` has copies. */
static bool change_stage(mover *m, int which) {
  if (which >= m->s->body_count) return false;
  kiln_schedule_tile *t = &m->s->body[which];
  const int before = t->stage;
  t->stage = before < 0 ? moved_input(m, t) : -1;
  return t->stage != before;
}

/* -- Any nest -- */

static bool is_plain(const mover *m) { return !m->s->tile && !m->s->body_count; }

static bool change_lanes(mover *m, int by) {
  if (!is_plain(m) || !m->s->lanes) return false;
  m->s->lanes = by > 0 ? 2 * m->s->lanes : m->s->lanes / 2;
  return m->s->lanes >= 1;
}

/* Vectors along the loops of the body, or along the nest's last. */
static bool change_vector_loop(mover *m, int by) {
  kiln_schedule_nest *s = m->s;
  (void)by;
  if (!is_plain(m) || !m->has_loops || !s->lanes || m->nest->rank == 0) return false;
  const int last = s->ordered ? s->order[m->nest->rank - 1] : m->nest->rank - 1;
  s->vector_loop = s->vector_loop < 0 ? last : -1;
  s->unroll = s->unroll_count = 0;
  return true;
}

static bool change_nest_unroll(mover *m, int to) {
  if (!is_plain(m) || !m->s->lanes || m->s->vector_loop < 0 || m->s->unroll == to) return false;
  m->s->unroll = to;
  return true;
}

/* Those of the body: all that are unrolled go twice as far, or half; where none is, all are. */
static bool change_body_unrolls(mover *m, int by) {
  kiln_schedule_nest *s = m->s;
  bool any = false;
  for (int i = 0; i < s->unroll_count; i++) {
    const int to = by > 0 ? 2 * s->unrolls[i].count : s->unrolls[i].count / 2;
    if (to < 1 || to > KILN_SCHEDULE_MAX_UNROLL) continue;
    s->unrolls[i].count = to;
    any = true;
  }
  if (s->unroll_count || by < 0 || !m->has_loops) return any;
  const kiln_loop_scopes scopes = kiln_loop_scopes_of(m->nest, m->arena);
  for (int i = 0, loop = -1; i < m->nest->body.count; i++) {
    if (kiln_loop_ops[m->nest->body.data[i].op].rule != KILN_LOOP_RULE_OPEN) continue;
    loop++;
    bool inner = true;
    for (int k = i + 1; k < scopes.end[i]; k++)
      inner &= kiln_loop_ops[m->nest->body.data[k].op].rule != KILN_LOOP_RULE_OPEN;
    if (!inner || s->unroll_count == KILN_SCHEDULE_MAX_UNROLLS) continue;
    s->unrolls[s->unroll_count++] = (kiln_schedule_unroll){loop, 2};
  }
  return s->unroll_count > 0;
}

/* 0: whether there are panels; else they are twice as wide, or half. */
static bool change_panel(mover *m, int by) {
  kiln_schedule_nest *s = m->s;
  if (!is_plain(m) || m->has_loops || !s->lanes || m->nest->rank < 2) return false;
  const int last = s->ordered ? s->order[m->nest->rank - 1] : m->nest->rank - 1;
  const int line = (int)(m->machine->line_bytes / 4), first = line > s->lanes ? line : s->lanes;
  if (by != 0 && !s->panel) return false;
  s->panel = by == 0 ? (s->panel ? 0 : first) : by > 0 ? 2 * s->panel : s->panel / 2;
  s->panel_loop = last;
  return s->panel <= KILN_SCHEDULE_MAX_PANEL &&
         s->panel < kiln_dim_or(m->nest->extents[last], INT64_MAX);
}

static bool walks(const kiln_loop_nest *nest, int loop) {
  bool any = false;
  for (int i = 0; i < nest->body.count; i++) {
    const kiln_loop_inst *inst = &nest->body.data[i];
    any |= kiln_loop_is_access(inst) && inst->strides[loop] == 1;
  }
  return any;
}

/* The loop `by` before the last comes last, if some access walks it by one element; 0: the first
 * two change places. */
static bool change_order(mover *m, int by) {
  kiln_schedule_nest *s = m->s;
  const int rank = m->nest->rank;
  if (!is_plain(m) || s->panel || rank < 2 || by >= rank || (by == 0 && rank < 3)) return false;
  for (int d = 0; d < rank && !s->ordered; d++) s->order[d] = d;
  s->ordered = true;
  s->order[rank] = -1;
  const int from = by == 0 ? 0 : rank - 1 - by, to = by == 0 ? 1 : rank - 1, loop = s->order[from];
  if (by > 0 && !walks(m->nest, loop)) return false;
  for (int k = from; k < to; k++) s->order[k] = s->order[k + 1];
  s->order[to] = loop;
  if (s->vector_loop >= 0) s->vector_loop = s->order[rank - 1];
  if (!s->parallel) return true;
  s->parallel = 0;
  for (int k = 0; k < rank - 1 && k < KILN_KERNEL_AXES; k++) s->parallel |= 1u << s->order[k];
  return true;
}

/* -- All of them -- */

/* What gains most, most of the time, comes first. False: there is nothing to change. */
static const struct {
  bool (*change)(mover *m, int by);
  int by;
} moves[] = {
    {change_rows, -1},       {change_vectors, 1},       {change_strip, 0},
    {change_vectors, -1},    {change_body_unrolls, 1},  {change_rows, 1},
    {change_prefetch, 0},    {change_prefetch, 1},      {change_prefetch, -1},
    {change_claim, 0},       {change_body_rows, -1},    {change_body_vectors, 1},
    {change_block, -1},      {change_stage, 0},         {change_body_vectors, -1},
    {change_block, 1},       {change_body_rows, 1},     {change_stage, 1},
    {change_nest_unroll, 2}, {change_lanes, 1},         {change_nest_unroll, 1},
    {change_vector_loop, 0}, {change_order, 1},         {change_panel, 0},
    {change_lanes, -1},      {change_body_unrolls, -1}, {change_nest_unroll, 4},
    {change_nest_unroll, 0}, {change_panel, 1},         {change_panel, -1},
    {change_rows, -2},       {change_strip, 1},         {change_strip, -1},
    {change_tile_loop, 1},   {change_tile_loop, 2},     {change_rows, 2},
    {change_vectors, 2},     {change_order, 2},         {change_order, 0},
};

static double cost_of(const kiln_loop_nest *from, const kiln_schedule_nest *s) {
  kiln_loop_nest nest = *from;
  nest.run.lanes = s->lanes;
  nest.tile.rows = s->tile;
  nest.body_tiles.count = s->body_count;
  double cost = kiln_loop_iteration_cost(&nest, s->vector_loop);
  if (cost < 0) cost = LONG; /* loops of its body are symbols */
  for (int d = 0; d < nest.rank; d++) cost *= (double)kiln_dim_or(nest.extents[d], LONG);
  return cost;
}

/* The costliest nests first; gives how many. */
static int find_nests(const kiln_loop_fn *fn, const kiln_schedule *from, int out[MOST_NESTS]) {
  double all = 0, costs[MOST_NESTS] = {0};
  int count = 0;
  for (int n = 0; n < fn->nests.count; n++) {
    const double cost = cost_of(fn->nests.data[n], &from->nests[n]);
    int at = count < MOST_NESTS ? count++ : cost > costs[MOST_NESTS - 1] ? MOST_NESTS - 1 : -1;
    all += cost;
    if (at < 0) continue;
    for (; at > 0 && costs[at - 1] < cost; at--) {
      costs[at] = costs[at - 1];
      out[at] = out[at - 1];
    }
    costs[at] = cost;
    out[at] = n;
  }
  while (count > 1 && costs[count - 1] < LITTLE * all) count--;
  return count;
}

static kiln_schedule_nest copy_nest(const kiln_schedule_nest *from, kiln_arena *arena) {
  kiln_schedule_nest to = *from;
  to.unrolls = KILN_NEW_ARRAY(arena, kiln_schedule_unroll, KILN_SCHEDULE_MAX_UNROLLS);
  to.body = KILN_NEW_ARRAY(arena, kiln_schedule_tile, KILN_SCHEDULE_MAX_TILES);
  for (int i = 0; i < from->unroll_count; i++) to.unrolls[i] = from->unrolls[i];
  for (int i = 0; i < from->body_count; i++) to.body[i] = from->body[i];
  return to;
}

static bool is_legal(const kiln_loop_fn *fn, const kiln_schedule *s, kiln_arena *scratch) {
  kiln_status *status = kiln_schedule_verify(fn, s, scratch);
  const bool legal = !status;
  kiln_status_destroy(status);
  return legal;
}

static bool make_move(const kiln_loop_fn *fn, const kiln_machine *machine,
                      const kiln_schedule *from, int number, size_t which, kiln_arena *arena,
                      kiln_schedule *out) {
  *out = (kiln_schedule){from->count, KILN_NEW_ARRAY(arena, kiln_schedule_nest, from->count + 1)};
  for (int n = 0; n < from->count; n++) out->nests[n] = from->nests[n];
  out->nests[number] = copy_nest(&from->nests[number], arena);
  mover m = {.fn = fn,
             .machine = machine,
             .arena = arena,
             .number = number,
             .nest = fn->nests.data[number],
             .has_loops = kiln__loop_of_body(fn->nests.data[number], 0) >= 0,
             .s = &out->nests[number]};
  return moves[which].change(&m, moves[which].by) && is_legal(fn, out, arena);
}

int kiln_schedule_moves(const kiln_loop_fn *fn, const kiln_machine *machine,
                        const kiln_schedule *from, int most, kiln_arena *arena,
                        kiln_schedule *out) {
  int nests[MOST_NESTS], count = 0;
  const int nest_count = find_nests(fn, from, nests);
  for (size_t i = 0; i < sizeof moves / sizeof *moves; i++)
    for (int n = 0; n < nest_count && count < most; n++)
      count += make_move(fn, machine, from, nests[n], i, arena, &out[count]);
  return count;
}

/* -- What others have found -- */

const char *kiln_schedule_beyond(const kiln_schedule *s, const kiln_schedule *rules) {
  enum { BLOCKS = 4 };
  for (int n = 0; n < s->count; n++) {
    const kiln_schedule_nest *a = &s->nests[n], *b = &rules->nests[n];
    if (a->pack != b->pack) return "it packs other inputs than the rules do";
    if (a->block > BLOCKS * (b->block ? b->block : KILN_SCHEDULE_MAX_ROWS))
      return "its blocks are far larger than the rules'";
  }
  return NULL;
}
