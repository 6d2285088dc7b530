/* schedule_rules.c: which schedule a kernel gets, from the shape of its nests and the machine.
 *
 * A contraction is a tile of rows by vectors in registers: each iteration of its loops reads
 * `vectors` vectors of one operand and one element for each row of the other, for rows * vectors
 * multiplications and additions. */
#include <math.h>

#include "codegen/loop/schedule.h"

/* -- Contractions -- */

enum {
  LATENCY = 4 /* of a sum, in cycles */,
  USUAL_VECTORS = 4, /* of a tile; of many rows more, where nothing else has as little to do */
  MOST_VECTORS = 7,
  LONG = 512 /* what a symbol is taken for */,
  /* Rows during whose work the CPU brings the next panel by itself, wherever it comes from, so that
   * asking for it takes time alone. */
  ASKED_ROWS = 256,
  FEW_ROWS = 96 /* that wait for the weights; a symbol is taken for as many */
};
static const double FAR_BYTES = 16;             /* of what is behind the second cache, in a cycle */
static const double NEAR = 1.02, SHARED = 1.06; /* what takes as long, and what that is worth */

/* Which loops of a nest move the operands of its contractions. */
typedef struct operands {
  uint32_t first, second;      /* a bit for each loop of the nest */
  int first_load, second_load; /* -1: no load, or several contractions */
} operands;

/* Loops of the nest that a value moves with. */
static uint32_t loops_of(const kiln_loop_nest *nest, int value) {
  const kiln_loop_inst *inst = &nest->body.data[value];
  uint32_t loops = 0;
  if (kiln_loop_has_map(inst)) {
    for (int d = 0; d < nest->rank; d++) loops |= (uint32_t)(inst->strides[d] != 0) << d;
  }
  return loops;
}

/* Through casts. */
static int load_of(const kiln_loop_nest *nest, int value) {
  while (nest->body.data[value].op == KILN_LOOP_cast) value = nest->body.data[value].args[0];
  return nest->body.data[value].op == KILN_LOOP_load ? value : -1;
}

/* False: the nest has several contractions, or operands that are computed. */
static bool find_operands(const kiln_loop_nest *nest, operands *out) {
  const kiln_loop_inst *only = NULL;
  for (int i = 0; i < nest->body.count; i++) {
    if (nest->body.data[i].op != KILN_LOOP_contract) continue;
    if (only) return false;
    only = &nest->body.data[i];
  }
  if (!only) return false;
  out->first_load = load_of(nest, only->args[0]);
  out->second_load = load_of(nest, only->args[1]);
  if (out->first_load < 0 || out->second_load < 0) return false;
  out->first = loops_of(nest, out->first_load);
  out->second = loops_of(nest, out->second_load);
  return true;
}

/* The loop with most iterations of those that the one operand alone moves with, the innermost of
 * several; of columns one along which results lie, if there is one. -1: none. */
static int best_loop(const kiln_loop_nest *nest, uint32_t own, uint32_t other, bool columns) {
  int best = -1;
  bool lies = false;
  int64_t most = 0;
  for (int d = 0; d < nest->rank; d++) {
    if (!(own >> d & 1) || (other >> d & 1)) continue;
    bool along = false;
    for (int i = 0; i < nest->body.count && columns; i++) {
      const kiln_loop_inst *inst = &nest->body.data[i];
      along |= inst->op == KILN_LOOP_store && inst->strides[d] == 1;
    }
    const int64_t count = kiln_dim_or(nest->extents[d], INT64_MAX);
    if (best >= 0 && (lies > along || (lies == along && count < most))) continue;
    best = d;
    most = count;
    lies = along;
  }
  return best;
}

/* Cycles of a tile for a product of one vector: as many as `ports` sums begin in each, and as many
 * loads; but a panel's vectors come from the second cache, one in each, or from behind it, in `far`
 * cycles. A row's element is a load for all its vectors, or one for each where it is a vector
 * too. */
static double cycles_of(int vectors, int rows, int ports, bool both, double far) {
  const double chains = vectors * rows, loads = vectors + (both ? chains : rows) / ports;
  const double comes = fmax(loads, vectors * far);
  return fmax(1.0 / ports, fmax(comes / chains, (double)LATENCY / chains));
}

/* The same of `count` rows, in tiles. */
static double cycles_of_rows(int vectors, int rows, int64_t count, int ports, bool both,
                             double far) {
  const int left = (int)(count % rows);
  double cycles = (double)(count - left) * cycles_of(vectors, rows, ports, both, far);
  if (left) cycles += left * cycles_of(vectors, left, ports, both, far);
  return cycles;
}

typedef struct tile_shape {
  int vectors, rows;
} tile_shape;

int kiln_schedule_most_sums(int registers, bool both) {
  return both ? registers / 2 : registers * 13 / 16;
}

int kiln_schedule_chains(int sums, int registers, bool both) {
  enum { MOST = 4, BUSY = 8 /* sums that keep the CPU at work */ };
  const int fitting = kiln_schedule_most_sums(registers, both);
  int chains = 1;
  while (chains < MOST && sums * chains < BUSY && 2 * sums * chains <= fitting) chains *= 2;
  return chains;
}

/* Rows whose accumulators are in registers with the vectors and an element of the other operand.
 * Where each element serves one vector alone, LLVM makes its register the sum's next one, so that
 * sums take two each; AVX-512, of which there are more, spreads an element as it reads it. */
static int most_rows(int vectors, const kiln_machine *m, bool both) {
  const int each = vectors == 1 && !both && m->registers <= 16 ? 2 : vectors;
  const int fitting = (m->registers - 1 - vectors) / each;
  const int kept = kiln_schedule_most_sums(m->registers, both) / vectors;
  const int rows = fitting < kept ? fitting : kept;
  return rows > KILN_SCHEDULE_MAX_ROWS ? KILN_SCHEDULE_MAX_ROWS : rows < 1 ? 1 : rows;
}

/* How many vectors a tile has. */
typedef struct range {
  int least, most;
} range;
static range only(int vectors) { return (range){vectors, vectors}; }

/* Of tiles that take as long the one that reads least. A last panel that is not full takes as long
 * as the others: 64 columns in vectors of 8 are 4 panels of 2, not 3 of 3. `bytes`: of one vector
 * in all of a panel's depth. */
static tile_shape find_shape(int64_t columns, int64_t rows, int width, const kiln_machine *m,
                             bool both, double bytes, range wanted, double *out_cycles) {
  const int64_t vectors = (columns + width - 1) / width;
  tile_shape best = {wanted.least, 1};
  double least = INFINITY, reads = INFINITY;
  for (int v = wanted.least; v <= wanted.most && v <= vectors; v++) {
    const int most = most_rows(v, m, both);
    if (v > 1 && (m->registers - 1 - v) / v < 1) break;
    for (int r = most < rows ? most : (int)rows; r >= 1; r--) {
      const int64_t full = (vectors + v - 1) / v * v;
      const double far = v * bytes > (double)(m->l2_bytes / 2) ? (double)width * 4 / FAR_BYTES : 0;
      const double cycles = (double)full * cycles_of_rows(v, r, rows, m->ports, both, far);
      const double loads = (double)(v + r) / (v * r);
      const bool is_near = cycles > least / NEAR, wide = v > USUAL_VECTORS;
      if (cycles > least * NEAR || (is_near && (loads >= reads || wide)) || (wide && rows < 4 * r))
        continue;
      if (cycles < least) least = cycles;
      reads = loads;
      best = (tile_shape){v, r};
    }
  }
  *out_cycles = least;
  return best;
}

/* A panel that is asked for while the one before it is at work: not one that is soon there, nor one
 * that the second cache does not keep until it is at work itself. */
static bool can_ask(double bytes, const kiln_machine *m) {
  enum { SMALL = 1 << 14 };
  return bytes >= (double)SMALL && bytes <= 0.75 * (double)m->l2_bytes;
}

/* Vectors of whole lines that a core fetches together: where each row has vectors of its own, a
 * narrower panel has each of them fetched twice. */
static int together(int64_t columns, int width, const kiln_machine *m) {
  const int64_t bytes = width * 4, vectors = (columns + width - 1) / width;
  const int64_t fetched = bytes < m->line_bytes ? 1 : m->fetch_bytes / bytes;
  return (int)(fetched < 1 ? 1 : fetched < vectors ? fetched : vectors);
}

/* Panels are as wide as for many rows, where that is about as fast: kernels for different numbers
 * of rows share the packed weights then. All rows in one tile read the weights once. Few rows that
 * would be several tiles wait for the weights: their panels are as narrow as is fast, so that tiles
 * have more rows, and that the next panel can be asked for. */
static tile_shape shape_for(int64_t columns, int64_t rows, int width, const kiln_machine *m,
                            bool both, double bytes, bool few) {
  const range any = {both ? together(columns, width, m) : 1, MOST_VECTORS};
  double least, cycles;
  const int usual = find_shape(columns, LONG, width, m, both, bytes, any, &least).vectors;
  const tile_shape best = find_shape(columns, rows, width, m, both, bytes, any, &least);
  const tile_shape same = find_shape(columns, rows, width, m, both, bytes, only(usual), &cycles);
  const bool is_shared = cycles <= least * SHARED;
  if (is_shared && same.rows == rows) return same;
  for (int v = 1; few && can_ask(v * bytes, m); v++) {
    const tile_shape narrow = find_shape(columns, rows, width, m, both, bytes, only(v), &cycles);
    if (cycles <= least * NEAR) return narrow;
  }
  return is_shared && best.rows < rows ? same : best;
}

/* Panels that stand inside of the rows' loop: what they read stays in half of the L2 cache while
 * all rows go over it. They are cut evenly, if they can be. */
static int strip_for(const kiln_loop_nest *nest, int load, int64_t panel, int64_t panels,
                     const kiln_machine *m) {
  double bytes = (double)panel * kiln_loop_size(nest->body.data[load].dtype);
  for (int i = 0; i < nest->body.count; i++) {
    if (nest->body.data[i].op == KILN_LOOP_reduce)
      bytes *= (double)kiln_dim_or(nest->body.data[i].offset, 1);
  }
  int64_t most = (int64_t)((double)m->l2_bytes / 2 / bytes);
  if (most < 1) most = 1;
  if (most > panels) most = panels < 1 ? 1 : panels;
  if (most > KILN_SCHEDULE_MAX_STRIP) most = KILN_SCHEDULE_MAX_STRIP;
  for (int64_t strip = most; 2 * strip > most; strip--)
    if (panels % strip == 0) return (int)strip;
  return (int)most;
}

/* Which loops are columns and rows, and which operand is read in vectors. */
typedef struct sides {
  int column, row;
  int load;        /* that operand's */
  bool is_swapped; /* it is the first one */
  bool both;       /* the other one is read in vectors too */
} sides;

static bool stores_along(const kiln_loop_nest *nest, int loop) {
  bool along = false;
  for (int i = 0; i < nest->body.count; i++) {
    const kiln_loop_inst *inst = &nest->body.data[i];
    along |= loop >= 0 && inst->op == KILN_LOOP_store && inst->strides[loop] == 1;
  }
  return along;
}

/* Windows over one channel, channels last: both operands move with the channels, and pixels are the
 * rows. */
static bool find_alike(const kiln_loop_nest *nest, const operands *o, sides *out) {
  const int of_first = best_loop(nest, o->first, o->second, false);
  const int of_second = best_loop(nest, o->second, o->first, false);
  *out = (sides){.column = -1, .row = of_first, .load = o->second_load, .both = true};
  if (of_first < 0) out->row = of_second, out->load = o->first_load;
  for (int d = 0; d < nest->rank; d++)
    if ((o->first & o->second) >> d & 1 && stores_along(nest, d)) out->column = d;
  return out->column >= 0 && out->row >= 0;
}

/* The columns are those along which the result lies, if their number is known. */
static bool find_sides(const kiln_loop_nest *nest, const operands *o, sides *out) {
  const int column = best_loop(nest, o->second, o->first, true);
  const int swapped = best_loop(nest, o->first, o->second, true);
  *out = (sides){.column = column, .load = o->second_load};
  out->is_swapped = !stores_along(nest, column) && stores_along(nest, swapped) &&
                    (column < 0 || kiln_dim_is_number(nest->extents[swapped]));
  out->row = best_loop(nest, o->first, o->second, false);
  if (out->is_swapped) {
    out->column = swapped;
    out->load = o->first_load;
    out->row = best_loop(nest, o->second, o->first, false);
    /* Windows over one channel: there is no loop that the weights alone move with. */
    if (out->row < 0) out->row = best_loop(nest, o->first & ~(1u << swapped), o->second, false);
  }
  if ((out->column >= 0 && out->row >= 0) || find_alike(nest, o, out)) return true;
  /* One row of a product whose weight has half the bytes: reading them is what takes time. */
  *out = (sides){.column = column, .row = -1, .load = o->second_load};
  return column >= 0 && o->first == 0 && kiln__schedule_is_rounded(nest, o->second_load);
}

/* Bytes of an element of what is packed. */
static int packed_size(const kiln_loop_nest *nest, const kiln_loop_inst *load) {
  const bool narrow = kiln__schedule_is_rounded(nest, (int)(load - nest->body.data));
  return kiln_loop_size(narrow ? KILN_DTYPE_BF16 : load->dtype);
}

/* Bytes of a panel that is packed. */
static double panel_bytes(const kiln_loop_nest *nest, const kiln_loop_inst *load, int64_t panel) {
  double bytes = (double)panel * packed_size(nest, load);
  for (int i = 0, d = nest->rank; i < nest->body.count; i++) {
    const kiln_loop_inst *inst = &nest->body.data[i];
    if (kiln_loop_ops[inst->op].rule != KILN_LOOP_RULE_OPEN) continue;
    if (load->strides[d++] != 0) bytes *= (double)kiln_dim_or(inst->offset, LONG);
  }
  return bytes;
}

/* Rows that go over a panel, in all loops that do not move what is packed; of a symbol so many. */
static double rows_over(const kiln_loop_nest *nest, const kiln_loop_inst *load, int64_t symbol) {
  double rows = 1;
  for (int d = 0; d < nest->rank; d++)
    if (load->strides[d] == 0) rows *= (double)kiln_dim_or(nest->extents[d], symbol);
  return rows;
}

/* Where one tile has all rows, what is read some way on is asked for, a quarter of the first cache
 * ahead: the CPU stops at each page. Of several tiles the next panel is, where it comes from far
 * for many of them; but not for so few that it takes longer to come than they take. */
static void choose_prefetch(const kiln_loop_nest *nest, const kiln_loop_inst *load,
                            const kiln_machine *m, kiln_schedule_nest *s) {
  const double rows = rows_over(nest, load, FEW_ROWS), bytes = packed_size(nest, load);
  const double comes = kiln__schedule_width(nest, m->lanes) * bytes / FAR_BYTES;
  const double panel = panel_bytes(nest, load, s->panel);
  if (s->pack < 0) return;
  if (rows <= s->tile) {
    const double step = s->panel * bytes * (1 + s->pairs), way = (double)(m->l1_bytes / 4);
    s->prefetch = panel * (double)kiln__schedule_panels(nest, s) > (double)m->l1_bytes;
    s->ahead = s->prefetch ? (int)fmin(fmax(way / step, 1), KILN_SCHEDULE_MAX_AHEAD) : 0;
  } else {
    s->prefetch = nest->extents[s->panel_loop] > s->panel && rows <= (double)ASKED_ROWS &&
                  rows / m->ports >= comes && can_ask(panel, m);
  }
}

static double buffer_bytes(const kiln_loop_buffer *b) {
  double bytes = kiln_loop_size(b->dtype);
  for (int d = 0; d < b->rank; d++) bytes *= (double)kiln_dim_or(b->sizes[d], LONG);
  return bytes;
}

/* What the second cache does not keep comes from far when it is written, and a tile that waits for
 * that sums nothing. Not where each row has vectors of both factors: it sums little, and waits for
 * what it reads. */
static bool wants_claim(const kiln_loop_fn *fn, const kiln_loop_nest *nest,
                        const kiln_schedule_nest *s, const kiln_machine *m) {
  for (int i = 0; i < nest->body.count; i++) {
    const kiln_loop_inst *inst = &nest->body.data[i];
    if (inst->op == KILN_LOOP_store && inst->strides[s->panel_loop] == 1 &&
        buffer_bytes(&fn->buffers.data[inst->index]) > (double)(m->l2_bytes / 2))
      return true;
  }
  return false;
}

static const double FAR = 4; /* what is behind the second cache costs as many times as much */

/* What reading it costs, where all of it is gone over before it is read again: nothing out of the
 * first cache, by bytes of the second one else, and more out of what is behind. */
static double cost_of_bytes(double bytes, const kiln_machine *m) {
  if (bytes <= (double)(m->l1_bytes / 2)) return 0;
  return bytes <= (double)(m->l2_bytes / 2) ? bytes : FAR * bytes;
}

/* Whether the loop moves what is packed, and is not the panels': of a convolution, its groups. */
static bool is_of_groups(const kiln_schedule_nest *s, const kiln_loop_inst *load, int d) {
  return d != s->panel_loop && load->strides[d] != 0;
}

/* Whether all panels, of all groups, stand inside of the rows' loop. There each tile reads all that
 * is packed, the first one from far; but what the rows read is read once, and not for each panel,
 * and their lines are whole: a panel that stands outside comes to parts of lines, which its
 * neighbour comes to once more. */
static bool wants_strip(const kiln_loop_fn *fn, const kiln_loop_nest *nest,
                        const kiln_schedule_nest *s, const kiln_loop_inst *load, bool both,
                        const kiln_machine *m) {
  const kiln_dim all = nest->extents[s->panel_loop];
  const int64_t width = (int64_t)s->panel * packed_size(nest, load);
  const bool lines = (width % m->line_bytes == 0 && all * width / s->panel % m->line_bytes == 0) ||
                     (both && m->lanes * kiln_loop_size(load->dtype) >= m->line_bytes);
  double groups = 1;
  for (int d = 0; d < nest->rank; d++)
    if (is_of_groups(s, load, d)) groups *= (double)kiln_dim_or(nest->extents[d], LONG);
  const double columns = (double)all * groups;
  const double packed = panel_bytes(nest, load, all) * groups;
  const double tiles = rows_over(nest, load, LONG) / (double)s->tile;
  if (packed > (double)(m->l2_bytes / 2) || columns <= s->panel) return false;
  /* Two panels share half a line, on average, but where all begin with one. Where lines come
   * together, what comes from far does with all that lies between. */
  const double parts = lines ? 1 : (double)(2 * width + m->line_bytes) / (double)(2 * width);
  const double all_of_it = columns / s->panel;
  const bool near = cost_of_bytes(packed * s->panel / columns, m) == 0;
  double outside = packed * (s->prefetch ? 1 : FAR) + (near ? 0 : packed * tiles);
  double inside = packed * FAR + (cost_of_bytes(packed, m) == 0 ? 0 : packed * tiles);
  for (int i = 0; i < nest->body.count; i++) {
    const kiln_loop_inst *inst = &nest->body.data[i];
    if (inst == load || !kiln_loop_is_access(inst)) continue;
    const double bytes = buffer_bytes(&fn->buffers.data[inst->index]);
    const double cost = cost_of_bytes(bytes, m);
    const bool between = both && m->fetch_bytes > m->line_bytes && cost > bytes;
    inside += cost;
    bool moves = inst->strides[s->panel_loop] != 0;
    for (int d = 0; d < nest->rank; d++) moves |= is_of_groups(s, load, d) && inst->strides[d] != 0;
    outside += cost * (moves && !between ? parts : all_of_it);
  }
  return inside < outside;
}

/* Callers round what is not packed, where they can. */
static void choose_rounds(const kiln_loop_fn *fn, int number, const operands *o,
                          kiln_schedule_nest *s) {
  const int loads[] = {o->first_load, o->second_load};
  for (int i = 0; i < 2; i++) {
    const int input = fn->nests.data[number]->body.data[loads[i]].index;
    if (input != s->pack && !kiln__schedule_round_refuses(fn, number, input))
      s->rounds[s->round_count++] = input;
  }
}

/* Whether two of its products are one instruction. */
static bool wants_pairs(const kiln_loop_fn *fn, int number, const kiln_machine *m,
                        const kiln_schedule_nest *s, kiln_arena *arena) {
  const kiln_loop_nest *nest = fn->nests.data[number];
  const kiln_loop_scopes scopes = kiln_loop_scopes_of(nest, arena);
  kiln__contraction c;
  return m->pairs && !kiln__find_contraction(fn, nest, &scopes, -1, &c) &&
         nest->rank + c.loops + 1 < KILN_LOOP_MAX_RANK &&
         !kiln__schedule_pairs_refuse(fn, number, s, &c);
}

/* Of an image the copy is made for vectors already. */
static bool may_pack_copy(const kiln_loop_fn *fn, const kiln_loop_nest *nest, int load,
                          kiln_arena *scratch) {
  const kiln_loop_buffer *b = &fn->buffers.data[nest->body.data[load].index];
  const kiln_loop_scopes scopes = kiln_loop_scopes_of(nest, scratch);
  kiln__contraction c;
  return !kiln__find_contraction(fn, nest, &scopes, -1, &c) &&
         kiln__schedule_may_pack_copy(b, nest, load, &c);
}

/* `packs`: also what lies as vectors read it, where the copy has half the bytes. */
static bool choose(const kiln_loop_fn *fn, int number, const kiln_machine *m, bool packs,
                   kiln_arena *arena, kiln_schedule_nest *out) {
  const kiln_loop_nest *nest = fn->nests.data[number];
  operands o;
  sides s;
  if (!find_operands(nest, &o) || !find_sides(nest, &o, &s)) return false;
  const kiln_dim columns = nest->extents[s.column];
  if (!kiln_dim_is_number(columns)) return false;
  const int width = kiln__schedule_tile_width(nest, m, columns);
  const kiln_loop_inst *inst = &nest->body.data[s.load];
  const kiln_loop_buffer *b = &fn->buffers.data[inst->index];
  const int64_t rows = s.row < 0 ? 1 : kiln_dim_or(nest->extents[s.row], LONG);
  const double bytes = panel_bytes(nest, inst, width);
  const bool halves = packs && !s.is_swapped && kiln__schedule_is_rounded(nest, s.load);
  const bool lies = (inst->strides[s.column] == 1 && !halves) ||
                    (s.is_swapped && inst->strides[s.column] == 2) ||
                    (b->copy && (s.is_swapped || !may_pack_copy(fn, nest, s.load, arena)));
  const tile_shape shape = shape_for(columns, rows, width, m, s.both, bytes,
                                     !lies && rows_over(nest, inst, FEW_ROWS) <= (double)FEW_ROWS);
  const int64_t panel = shape.vectors * width, tiles = (rows + shape.rows - 1) / shape.rows;
  *out =
      (kiln_schedule_nest){.panel_loop = s.column,
                           .panel = (int)panel,
                           .pack = lies ? -1 : inst->index,
                           .tile_loop = s.row,
                           .tile = (int)((rows + tiles - 1) / tiles)}; /* of about as many rows */
  choose_rounds(fn, number, &o, out);
  out->pairs = wants_pairs(fn, number, m, out, arena);
  choose_prefetch(nest, inst, m, out);
  if (out->pack >= 0 && s.row >= 0 && wants_strip(fn, nest, out, inst, s.both, m)) {
    out->strip = (int)kiln__schedule_panels(nest, out);
    out->prefetch = false, out->ahead = 0;
  }
  out->claim = !s.both && wants_claim(fn, nest, out, m);
  if (s.is_swapped && lies) out->strip = strip_for(nest, s.load, panel, columns / panel, m);
  return true;
}

/* -- Contractions of the body -- */

enum { MOST_ROWS = 72 };

/* A loop of the body whose iterations are results of contractions. */
typedef struct product {
  int loop, open; /* its number, and its instruction */
  int rows;       /* the loop of the body that holds it alone; -1 */
  int loads[2];   /* of the operands */
} product;

static bool is_local(const kiln_loop_fn *fn, const kiln_loop_inst *inst) {
  return inst->index >= fn->input_count + fn->output_count;
}

/* Behind which the first one comes. */
static product before_all(void) { return (product){.loop = -1, .open = -1}; }

/* The next product behind one; false: there is none. */
static bool next_product(const kiln_loop_fn *fn, const kiln_loop_nest *nest,
                         const kiln_loop_scopes *scopes, product *p) {
  kiln__contraction c;
  for (int i = p->open + 1, loop = p->loop; i < nest->body.count; i++) {
    const kiln_loop_opcode op = nest->body.data[i].op;
    loop += kiln_loop_ops[op].rule == KILN_LOOP_RULE_OPEN;
    if (op != KILN_LOOP_for || kiln__find_contraction(fn, nest, scopes, i, &c)) continue;
    const kiln_loop_inst *only = NULL;
    for (int k = c.inner_open; k < c.end; k++) {
      const kiln_loop_inst *inst = &nest->body.data[k];
      if (inst->op != KILN_LOOP_contract) continue;
      if (only) return false;
      only = inst;
    }
    const int around = scopes->parent[i];
    const bool alone = around >= 0 && around == i - 1 &&
                       nest->body.data[around].op == KILN_LOOP_for &&
                       scopes->end[around] == scopes->end[i] + 1;
    *p = (product){.loop = loop, .open = i, .rows = alone ? loop - 1 : -1};
    for (int a = 0; a < 2; a++) p->loads[a] = load_of(nest, only->args[a]);
    return p->loads[0] >= 0 && p->loads[1] >= 0;
  }
  return false;
}

/* Which operand the columns move, where the rows move the other alone: their loop has that depth.
 * Local buffers that hold a row do so too. -1: none. */
static int column_operand(const kiln_loop_fn *fn, const kiln_loop_nest *nest, const product *p,
                          int column, int row) {
  for (int a = 0; a < 2; a++) {
    const kiln_loop_inst *x = &nest->body.data[p->loads[a]], *y = &nest->body.data[p->loads[!a]];
    const bool rows = y->strides[row] != 0 || (row < nest->rank && is_local(fn, y));
    const bool fixed = x->strides[row] == 0 && !(row < nest->rank && is_local(fn, x));
    if (x->strides[column] != 0 && fixed && rows && y->strides[column] == 0) return a;
  }
  return -1;
}

static int rows_for(int vectors, int registers) {
  const int rows = (registers - 1 - vectors) / vectors;
  return rows < 1 ? 1 : rows > 8 ? 8 : rows;
}

/* Vectors that are left over are tiles of their own, with as many rows. */
static int body_vectors(int64_t columns, int width, const kiln_machine *m) {
  const int64_t vectors = (columns + width - 1) / width;
  int best = 1;
  double least = INFINITY;
  for (int v = 3; v >= 1; v--) {
    const int rows = rows_for(v, m->registers);
    const int64_t left = vectors % v;
    const double cost = (double)(vectors - left) * cycles_of(v, rows, m->ports, false, 0) +
                        (double)left * cycles_of(1, rows, m->ports, false, 0);
    if (cost >= least) continue;
    least = cost;
    best = v;
  }
  return best;
}

static bool choose_tile(const kiln_loop_fn *fn, const kiln_loop_nest *nest,
                        const kiln_loop_scopes *scopes, const product *p, const kiln_machine *m,
                        int block_loop, kiln_schedule_tile *out) {
  const int column = scopes->depth[p->open], row = p->rows < 0 ? block_loop : column - 1;
  const int operand = column_operand(fn, nest, p, column, row);
  if (operand < 0) return false;
  const kiln_loop_inst *load = &nest->body.data[p->loads[operand]];
  const int width = kiln__schedule_width(nest, m->lanes);
  const int vectors = body_vectors(kiln_dim_or(nest->body.data[p->open].offset, LONG), width, m);
  *out = (kiln_schedule_tile){.panel_loop = p->loop,
                              .panel = vectors * width,
                              .stage = load->strides[column] == 1 ? -1 : load->index,
                              .tile_loop = p->rows,
                              .tile = rows_for(vectors, m->registers)};
  return true;
}

/* Rows that go through the body together: so many that copies of panels are little beside the
 * products, and that what parts hand on stays in the second cache. */
static int block_of(const kiln_loop_fn *fn, kiln_dim rows, int tile, const kiln_machine *m) {
  double bytes = 1;
  for (int i = fn->input_count + fn->output_count; i < fn->buffers.count; i++)
    bytes += buffer_bytes(&fn->buffers.data[i]);
  int64_t most = (int64_t)((double)m->l2_bytes / bytes);
  most = most > MOST_ROWS ? MOST_ROWS : most < tile ? tile : most;
  if (kiln_dim_is_number(rows)) { /* as many in each */
    const int64_t blocks = (rows + most - 1) / most;
    most = (rows + blocks - 1) / blocks;
  }
  return (int)((most + tile - 1) / tile * tile);
}

/* The loop of the nest with most iterations that can be the rows of all products which stand in no
 * loop of the body; -1: there is none, or no such product. */
static int block_loop_of(const kiln_loop_fn *fn, const kiln_loop_nest *nest,
                         const kiln_loop_scopes *scopes) {
  int best = -1;
  for (int d = 0; d < nest->rank; d++) {
    product p = before_all();
    bool any = false, all = true;
    while (next_product(fn, nest, scopes, &p)) {
      if (p.rows >= 0) continue;
      any = true;
      all &= column_operand(fn, nest, &p, scopes->depth[p.open], d) >= 0;
    }
    if (!any || !all) continue;
    const int64_t most = best < 0 ? 0 : kiln_dim_or(nest->extents[best], INT64_MAX);
    if (kiln_dim_or(nest->extents[d], INT64_MAX) > most) best = d;
  }
  return best;
}

static bool choose_body(const kiln_loop_fn *fn, int number, const kiln_machine *m,
                        kiln_arena *arena, kiln_schedule_nest *out) {
  const kiln_loop_nest *nest = fn->nests.data[number];
  const kiln_loop_scopes scopes = kiln_loop_scopes_of(nest, arena);
  const int block_loop = block_loop_of(fn, nest, &scopes);
  *out = (kiln_schedule_nest){.pack = -1};
  out->body = KILN_NEW_ARRAY(arena, kiln_schedule_tile, KILN_SCHEDULE_MAX_TILES);
  product p = before_all();
  int rows = 0;
  while (next_product(fn, nest, &scopes, &p)) {
    kiln_schedule_tile *t = &out->body[out->body_count];
    if (p.rows < 0 && block_loop < 0) continue;
    if (!choose_tile(fn, nest, &scopes, &p, m, block_loop, t)) continue;
    if (p.rows < 0 && t->tile > rows) rows = t->tile;
    if (++out->body_count == KILN_SCHEDULE_MAX_TILES) break;
  }
  if (rows > 0) {
    out->block_loop = block_loop;
    out->block = block_of(fn, nest->extents[block_loop], rows, m);
  }
  return out->body_count > 0;
}

/* Of the contractions alone. */
static kiln_schedule choose_tiles(const kiln_loop_fn *fn, const kiln_machine *machine,
                                  kiln_arena *arena) {
  kiln_schedule s = kiln__schedule_nothing(fn, arena);
  for (int i = 0; i < s.count; i++) {
    bool legal = !kiln_loop_contracts(fn->nests.data[i]);
    for (int turn = 0; turn < 3 && !legal; turn++) {
      kiln_schedule_nest n;
      if (!(turn == 2 ? choose_body(fn, i, machine, arena, &n)
                      : choose(fn, i, machine, turn == 0, arena, &n)))
        continue;
      s.nests[i] = n;
      kiln_status *status = kiln_schedule_verify(fn, &s, arena);
      legal = !status;
      kiln_status_destroy(status);
      if (!legal) s.nests[i] = (kiln_schedule_nest){.pack = -1};
    }
  }
  return s;
}

void kiln_schedule_complete(const kiln_loop_fn *fn, const kiln_machine *machine,
                            kiln_schedule *schedule, kiln_arena *arena) {
  const double most = kiln__schedule_most_iterations(fn, arena);
  for (int i = 0; i < schedule->count; i++)
    if (!kiln__schedule_runs(&schedule->nests[i]))
      kiln__schedule_choose_run(fn, i, machine, most, arena, &schedule->nests[i]);
}

kiln_schedule kiln_schedule_choose(const kiln_loop_fn *fn, const kiln_machine *machine,
                                   kiln_arena *arena) {
  kiln_schedule s = choose_tiles(fn, machine, arena);
  kiln_schedule_complete(fn, machine, &s, arena);
  return s;
}

/* Whether a contraction stands in a tile. */
static bool has_tile(const kiln_loop_nest *nest, const kiln_loop_scopes *scopes,
                     const kiln_schedule_nest *s, int number) {
  bool found = s->tile > 0;
  for (int k = 0; k < s->body_count; k++) {
    const int open = kiln__loop_of_body(nest, s->body[k].panel_loop);
    found |= open < number && number < scopes->end[open];
  }
  return found;
}

bool kiln_schedule_has_tiles(const kiln_loop_fn *fn, kiln_arena *scratch) {
  const kiln_machine any = {.lanes = 8,
                            .registers = 16,
                            .ports = 2,
                            .l1_bytes = 1 << 15,
                            .l2_bytes = 1 << 18,
                            .line_bytes = 64,
                            .fetch_bytes = 64};
  const kiln_schedule s = choose_tiles(fn, &any, scratch);
  for (int n = 0; n < fn->nests.count; n++) {
    const kiln_loop_nest *nest = fn->nests.data[n];
    const kiln_loop_scopes scopes = kiln_loop_scopes_of(nest, scratch);
    for (int i = 0; i < nest->body.count; i++) {
      if (nest->body.data[i].op == KILN_LOOP_contract && !has_tile(nest, &scopes, &s.nests[n], i))
        return false;
    }
  }
  return true;
}
