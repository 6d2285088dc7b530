/* schedule_run_rules.c: how each nest runs: its vectors, what is unrolled, which loops are cut
 * among threads. Tiles are chosen before (schedule_rules.c). */
#include "codegen/loop/schedule.h"
#include "runtime/dim_program.h"
#include "runtime/kernel_shape.h"

/* A nest as the rules see it. */
typedef struct look {
  const kiln_loop_fn *fn;
  const kiln_loop_nest *nest;
  const kiln_machine *m;
  kiln_loop_scopes scopes;
  kiln_schedule_nest *s;
} look;

static bool opens(const kiln_loop_nest *nest, int i) {
  return kiln_loop_ops[nest->body.data[i].op].rule == KILN_LOOP_RULE_OPEN;
}
/* -- Vectors -- */

int kiln__schedule_width(const kiln_loop_nest *nest, int lanes) {
  bool narrow = false, wide = false;
  for (int i = 0; i < nest->body.count; i++) {
    const kiln_dtype dtype = nest->body.data[i].dtype;
    if (dtype == KILN_DTYPE_BOOL || dtype == KILN_DTYPE_NONE) continue;
    *(kiln_loop_size(dtype) == 8 ? &wide : &narrow) = true;
  }
  return wide && !narrow && lanes > 1 ? lanes / 2 : lanes;
}

enum { NARROWEST = 4 /* lanes of a tile's vectors */ };

int kiln__schedule_tile_width(const kiln_loop_nest *nest, const kiln_machine *m, kiln_dim columns) {
  int lanes = kiln__schedule_most_width(nest, kiln__schedule_width(nest, m->lanes));
  while (m->masks > 1 && lanes > NARROWEST && kiln_dim_or(columns, lanes) <= lanes / 2) lanes /= 2;
  return lanes;
}

/* Whether loops of the body walk down more columns than a vector has, of which twice as many at
 * once read whole lines of memory, where they are far apart, and have their sums in the first
 * cache. Not where places are found, of which a vector fills registers enough. */
static bool wants_columns(const look *l, int lanes) {
  const kiln_loop_nest *nest = l->nest;
  const int last = nest->rank - 1;
  int64_t sums = 0, largest = 0;
  for (int i = 0; i < nest->body.count; i++) {
    const kiln_loop_inst *inst = &nest->body.data[i];
    if (kiln_loop_ops[inst->op].rule == KILN_LOOP_RULE_FIND) return false;
    if (kiln_loop_reduces(inst->op)) sums += kiln_loop_size(inst->dtype);
    if (kiln_loop_is_access(inst) && inst->strides[last] != 0 &&
        kiln_loop_size(inst->dtype) > largest)
      largest = kiln_loop_size(inst->dtype);
  }
  return kiln_dim_or(nest->extents[last], INT64_MAX) > lanes &&
         lanes * largest <= l->m->line_bytes &&
         2 * lanes * KILN_REDUCE_LANES * sums <= l->m->l1_bytes;
}

/* Whether sums down columns go along their loop all the same, in single elements. In vectors of
 * columns each column has KILN_REDUCE_LANES sums in memory, which are added up behind the loop: a
 * short loop takes less than that, and so does one of columns that fill no vector. Of AVX-512
 * nothing was measured. */
static bool wants_single(const look *l, int lanes) {
  enum { SHORT = 4, NARROW = 8 };
  const kiln_loop_nest *nest = l->nest;
  const int64_t columns = kiln_dim_or(nest->extents[nest->rank - 1], INT64_MAX);
  int64_t count = INT64_MAX;
  int loops = 0;
  for (int i = 0; i < nest->body.count; i++) {
    const kiln_loop_inst *inst = &nest->body.data[i];
    if (kiln_loop_ops[inst->op].rule == KILN_LOOP_RULE_FIND || kiln_loop_multiplies(inst->op) ||
        kiln_loop_carries(inst->op) || kiln_loop_is_math(inst->op))
      return false;
    if (!opens(nest, i)) continue;
    loops++;
    count = inst->op == KILN_LOOP_reduce ? kiln_dim_or(inst->offset, INT64_MAX) : INT64_MAX;
  }
  return loops == 1 && l->m->masks != 1 &&
         ((count <= SHORT && count < lanes) ||
          (columns < lanes && columns < NARROW && count <= KILN_REDUCE_LANES));
}

/* -- Borders -- */

/* Iterations of the nest's loops, a symbol being TYPICAL. */
static double iterations_of(const kiln_loop_fn *fn, const kiln_loop_nest *nest, kiln_arena *arena) {
  enum { TYPICAL = 64 };
  const kiln_dim_program *p = kiln_dim_program_create(arena, fn->dims, nest->extents, nest->rank);
  int64_t *symbols = KILN_NEW_ARRAY(arena, int64_t, p->symbol_count + 1);
  int64_t *room = KILN_NEW_ARRAY(arena, int64_t, kiln_dim_program_room(p) + 1);
  int64_t extents[KILN_LOOP_MAX_RANK];
  double count = 1;
  for (int i = 0; i < p->symbol_count; i++) symbols[i] = TYPICAL;
  if (!kiln_dim_program_run(p, symbols, room, extents)) return 0;
  for (int d = 0; d < nest->rank; d++) count *= (double)extents[d];
  return count;
}

double kiln__schedule_most_iterations(const kiln_loop_fn *fn, kiln_arena *arena) {
  enum { FEW = 2 }; /* nests, of which none is a border */
  double most = 0;
  for (int n = 0; fn->nests.count > FEW && n < fn->nests.count; n++) {
    if (fn->nests.data[n]->rank == 0) continue;
    const double count = iterations_of(fn, fn->nests.data[n], arena);
    if (count > most) most = count;
  }
  return most;
}

static bool has_symbols(const kiln_loop_nest *nest) {
  for (int d = 0; d < nest->rank; d++)
    if (!kiln_dim_is_number(nest->extents[d])) return true;
  return false;
}

/* Whether the nest has a small part of what another one of its kernel does: the border of a
 * picture, whose windows are cut. Vectors of it are not worth compiling where single elements take
 * an eighth of the other's time at most. Nests of symbols compile for longer: there a twelfth of
 * its iterations is little. */
static bool is_border(const look *l, double most, kiln_arena *arena) {
  const double twelfth = 12, eighth = 8 * (double)l->s->lanes;
  const double part = has_symbols(l->nest) ? twelfth : eighth;
  return most > 0 && iterations_of(l->fn, l->nest, arena) * part <= most;
}

/* Whether a sum of products goes through less than a vector in each turn of its innermost loop,
 * and results beside each other read neighbours, as windows of a picture do: these are lanes then.
 */
static bool has_short_products(const look *l, int lanes) {
  const kiln_loop_nest *nest = l->nest;
  const int last = nest->rank - 1;
  int64_t innermost = 0;
  bool contracts = false;
  for (int i = 0; last >= 0 && i < nest->body.count; i++) {
    const kiln_loop_inst *inst = &nest->body.data[i];
    if (opens(nest, i)) innermost = kiln_dim_or(inst->offset, INT64_MAX);
    if (inst->op == KILN_LOOP_store && inst->strides[last] != 1) return false;
    contracts |= inst->op == KILN_LOOP_contract;
  }
  return contracts && innermost < lanes && kiln_dim_or(nest->extents[last], INT64_MAX) >= lanes;
}

static void choose_vectors(const look *l, bool has_loops) {
  const kiln_loop_nest *nest = l->nest;
  kiln_schedule_nest *s = l->s;
  int lanes = kiln__schedule_width(nest, l->m->lanes);
  if (nest->rank == 0 && !has_loops) return;
  s->vector_loop = nest->rank - 1;
  if (s->tile) {
    s->vector_loop = s->panel_loop;
    lanes = kiln__schedule_tile_width(nest, l->m, nest->extents[s->panel_loop]);
  } else if (s->body_count || (has_loops && !has_short_products(l, lanes) &&
                               (kiln_loop_strips_body(nest) || wants_single(l, lanes)))) {
    s->vector_loop = -1;
  } else if (has_loops && lanes > 1 && wants_columns(l, lanes)) {
    lanes *= 2;
  }
  s->lanes = lanes;
}

/* -- Panels of nests that transpose -- */

enum { PAGE = 4096 }; /* from which places on a first cache looks alike */

static int64_t greatest_divisor(int64_t a, int64_t b) { return b ? greatest_divisor(b, a % b) : a; }

/* Whether `count` lines that lie `step` bytes apart are in the first cache when they are read
 * again, beside what goes through it. Where they lie at few places of it, few are. */
static bool stay_cached(const kiln_machine *m, int64_t count, int64_t step) {
  const int64_t apart = greatest_divisor(step, PAGE), line = m->line_bytes;
  const int64_t places = PAGE / (apart > line ? apart : line);
  return count <= places * (m->l1_bytes / PAGE) / 2;
}

/* The loop that walks a load by one element whose places lie far apart along the last loop, so that
 * each line is read again for the next iteration of that one, and is gone, as it may be of sizes
 * that are symbols; -1: there is none. */
static int crossing_loop(const look *l) {
  const kiln_loop_nest *nest = l->nest;
  const int last = nest->rank - 1;
  for (int i = 0; i < nest->body.count; i++) {
    const kiln_loop_inst *inst = &nest->body.data[i];
    if (inst->op != KILN_LOOP_load) continue;
    const kiln_dim step = inst->strides[last], count = nest->extents[last];
    const int size = kiln_loop_size(inst->dtype);
    if (step == 0 || step == 1) continue;
    if (kiln_dim_is_number(step) && kiln_dim_is_number(count) &&
        stay_cached(l->m, count, step * size))
      continue;
    for (int d = last - 1; d >= 0; d--)
      if (inst->strides[d] == 1) return d;
  }
  return -1;
}

/* Columns in panels of whole lines: the crossing loop goes through each panel, in which it reads a
 * line for each column, and the next elements of it in the next iteration. */
static void choose_panel(const look *l) {
  const kiln_loop_nest *nest = l->nest;
  kiln_schedule_nest *s = l->s;
  const int last = nest->rank - 1;
  int largest = 1, lanes = kiln__schedule_width(nest, l->m->lanes), panel, count = 0;
  if (s->panel || nest->rank < 2 || nest->rank == KILN_LOOP_MAX_RANK) return;
  const int crossing = crossing_loop(l);
  if (crossing < 0) return;
  for (int i = 0; i < nest->body.count; i++) {
    const kiln_loop_inst *inst = &nest->body.data[i];
    if (inst->op == KILN_LOOP_store && inst->strides[last] != 1) return;
    if (kiln_loop_is_access(inst) && kiln_loop_size(inst->dtype) > largest)
      largest = kiln_loop_size(inst->dtype);
  }
  panel = (int)(l->m->line_bytes / largest);
  if (panel < lanes) panel = lanes;
  if (panel > KILN_SCHEDULE_MAX_PANEL || kiln_dim_or(nest->extents[last], INT64_MAX) <= panel)
    return;
  s->panel_loop = last;
  s->panel = panel;
  if (crossing == last - 1) return;
  s->ordered = true;
  for (int d = 0; d < last; d++)
    if (d != crossing) s->order[count++] = d;
  s->order[count++] = crossing;
  s->order[count++] = last;
  s->order[count] = -1;
}

/* -- Unrolling -- */

enum {
  TWICE = 24, /* instructions of a nest without loops that stand in whole steps and partial ones */
  MANY = 1 << 14,
  BODIES = 32, /* of functions, in registers of a vector and as often as they stand: some 40 ms */
  ROW = 36,    /* instructions of a row that has no loop, of FEW steps at most */
  FEW = 7,
  BLOCK = 12, /* of a loop that reduces, with all its lanes in registers */
  WHOLE = 7   /* iterations of a tile's sum that are one step: of the taps of a window */
};

/* Whether some lanes of an access alone can be read or written. */
static bool has_masks(const kiln_machine *m, kiln_dtype dtype) {
  return m->masks && kiln_loop_size(dtype) >= m->masks;
}

static bool is_half(kiln_dtype dtype) { return kiln_loop_class(dtype) == KILN_LOOP_CLASS_H; }

/* Iterations of a nest; many, where they are symbols. */
static int64_t count_iterations(const kiln_loop_nest *nest) {
  int64_t count = 1;
  for (int d = 0; d < nest->rank; d++)
    if (__builtin_mul_overflow(count, kiln_dim_or(nest->extents[d], MANY), &count))
      return INT64_MAX;
  return count;
}

/* What the innermost loop of a nest without loops in its body computes. */
typedef struct step {
  int count, functions; /* instructions; of functions, which take long to compile */
  int stores;
  bool masked;   /* all accesses of vectors have masks where a step is partial */
  bool scatters; /* a store's elements lie apart */
  double ns;     /* of a vector no wider than a register, without what masks cost */
} step;

static step look_at_step(const look *l, kiln_arena *arena) {
  const kiln_loop_nest *nest = l->nest;
  const int last = nest->rank - 1;
  int *levels = KILN_NEW_ARRAY(arena, int, nest->body.count + 1);
  step s = {.masked = true};
  kiln_loop_levels(nest, levels);
  for (int i = 0; i < nest->body.count; i++) {
    const kiln_loop_inst *inst = &nest->body.data[i];
    const bool is_store = inst->op == KILN_LOOP_store;
    if (levels[i] < nest->rank && !is_store) continue; /* it stands further out */
    s.count++;
    s.functions += kiln_loop_is_math(inst->op);
    s.stores += is_store;
    s.scatters |= is_store && inst->strides[last] != 1;
    s.ns += kiln_loop_vector_cost(inst);
    if (inst->op == KILN_LOOP_cast && l->m->masks != 1 &&
        (is_half(inst->dtype) || is_half(nest->body.data[inst->args[0]].dtype))) {
      s.functions++;
      s.ns += l->m->masks ? 0.4 : 1.6; /* without an instruction of its own */
    }
    if (kiln_loop_is_access(inst) && (is_store || inst->strides[last] == 1))
      s.masked &= inst->strides[last] == 1 && has_masks(l->m, inst->dtype);
  }
  return s;
}

/* Whether whole steps get a body of their own, without masks: it runs faster, and compiles as fast
 * where it is short. Functions take long to compile, so that a call of so many iterations gains
 * what they take within some thousand calls; of symbols, one function at most. Where masks are
 * dear, all accesses have them then, for else the partial step is long too. */
static bool stands_twice(const look *l, const step *s) {
  const kiln_loop_nest *nest = l->nest;
  if (kiln_dim_or(nest->extents[nest->rank - 1], INT64_MAX) < l->s->lanes) return false;
  if (s->functions == 0) return s->count <= TWICE;
  if (!s->masked || count_iterations(nest) < MANY) return false;
  if (has_symbols(nest)) return s->functions == 1 && s->count <= TWICE;
  return 2 * (s->functions + s->count / TWICE) <= BODIES;
}

/* Nanoseconds beside its instructions of a step in which some lanes do not exist, `left` being
 * those that do: masked stores are slow where they are not for all types, and a constant mask of
 * one lane is no mask; what has no masks goes through the stack, element by element. */
static double partial_cost(const look *l, const step *s, int64_t left, bool twice) {
  if (l->m->masks == 1) return 0.3 * s->stores;
  if (!s->masked) return 10 + l->s->lanes;
  return left == 1 && twice ? 0 : 0.6 * l->s->lanes * s->stores;
}

/* Of a row; vectors as the schedule has them. */
static double row_cost(const look *l, const step *s, int64_t extent) {
  const int64_t lanes = l->s->lanes, left = extent % lanes;
  const double each = lanes == 1 ? s->ns + 0.6 /* the loop */ : s->ns;
  const double whole = (double)(extent / lanes) * each;
  return left ? whole + s->ns + partial_cost(l, s, left, stands_twice(l, s)) : whole;
}

/* Rows of which a vector, or the last of a few, has lanes that do not exist go in narrower ones
 * where that costs less: [N, 4] in vectors of 4. Boxes cut no row. */
static void narrow_vectors(const look *l, const step *s) {
  const kiln_dim extent = l->nest->extents[l->nest->rank - 1];
  int best = l->s->lanes;
  if (l->nest->rank < 2 || !kiln_dim_is_number(extent) || extent < 2 || s->scatters) return;
  double least = row_cost(l, s, extent) * 0.9; /* what is not clear stays */
  for (int lanes = best / 2; lanes >= 1; lanes /= 2) {
    l->s->lanes = lanes;
    const double cost = row_cost(l, s, extent);
    if (cost >= least) continue;
    least = cost;
    best = lanes;
  }
  l->s->lanes = best;
}

/* The instructions of a function wait for each other, and are more than a CPU looks ahead: the
 * steps are of several registers then, in turns (llvm/interleave.c), two where a call has MANY
 * elements and four from four times as many on, or where one kernel serves every size. Each
 * register compiles as long as one more body does. A row of unknown length may be less than one
 * register. */
static void widen_vectors(const look *l, const step *s) {
  const kiln_loop_nest *nest = l->nest;
  const kiln_dim extent = nest->extents[nest->rank - 1];
  const bool number = kiln_dim_is_number(extent), symbols = has_symbols(nest);
  const int64_t count = symbols ? INT64_MAX : count_iterations(nest);
  const int bodies = (symbols ? 1 : 2) * (s->functions + s->count / TWICE);
  const int most = symbols ? BODIES / 2 : BODIES;
  if (s->functions == 0 || !s->masked || (!number && nest->rank > 1)) return;
  for (int by = 2; by <= 4 && count >= (int64_t)MANY * by * by / 4 && bodies * by <= most;
       by *= 2) {
    const int lanes = 2 * l->s->lanes;
    if (lanes > KILN_LOOP_LANES) return;
    if (number && extent % lanes != 0 && extent < 16 * lanes) return;
    l->s->lanes = lanes;
  }
}

/* Where steps leave nothing of a row the body stands once all the same, without masks; a few short
 * steps are the row, without a loop. */
static int unroll_rows(const look *l, const step *s) {
  const kiln_dim extent = l->nest->extents[l->nest->rank - 1];
  if (l->nest->rank >= 2 && !l->s->panel && kiln_dim_is_number(extent) && extent > 0 &&
      extent % l->s->lanes == 0) {
    const int64_t steps = extent / l->s->lanes;
    const bool all = s->functions == 0 && steps <= FEW && steps * s->count <= ROW;
    return all ? (int)steps : l->s->lanes > 1;
  }
  return stands_twice(l, s);
}

/* Iterations of the innermost loop of a tile's sum. Few sums are several chains, which take the
 * iterations in turn. */
static int unroll_tile(const look *l, int64_t vectors, int rows, bool both, kiln_dim extent) {
  const int chains = kiln_schedule_chains((int)vectors * rows, l->m->registers, both);
  const int count = chains > 2 ? chains : 2;
  return kiln_dim_is_number(extent) && extent <= WHOLE && extent > count ? (int)extent : count;
}

/* Whether an operand of the nest's tile has vectors of its own in each row. */
static bool reads_both(const look *l, int open) {
  bool both = false;
  for (int i = open + 1; l->s->panel && i < l->scopes.end[open]; i++) {
    const kiln_loop_inst *inst = &l->nest->body.data[i];
    both |= inst->op == KILN_LOOP_load && inst->strides[l->s->panel_loop] != 0 &&
            l->s->tile_loop >= 0 && inst->strides[l->s->tile_loop] != 0;
  }
  return both;
}

/* Rows and vectors of the tile around a loop; false: there is none. Of a last panel that is less
 * than whole its own, which are fewer. */
static bool find_tile(const look *l, int open, int *out_rows, int64_t *out_vectors) {
  const kiln_schedule_nest *s = l->s;
  int64_t panel = s->panel, columns = 0;
  *out_rows = s->tile;
  if (panel) {
    columns = kiln_dim_or(l->nest->extents[s->panel_loop], panel);
    if (columns % panel && s->pack < 0) panel = columns % panel;
  }
  for (int k = 0; k < s->body_count; k++) {
    const int column = kiln__loop_of_body(l->nest, s->body[k].panel_loop);
    if (column > open || open > l->scopes.end[column]) continue;
    panel = s->body[k].panel;
    columns = kiln_dim_or(l->nest->body.data[column].offset, panel);
    *out_rows = s->body[k].tile;
  }
  if (columns < panel) panel = columns;
  *out_vectors = (panel + s->lanes - 1) / s->lanes;
  return panel > 0;
}

/* Whether the sums of a loop whose iterations are lanes are worth registers of their own: a body
 * that compiles fast, and enough of them. */
static bool wants_block(const look *l, int open) {
  const kiln_loop_nest *nest = l->nest;
  const kiln_dim extent = nest->body.data[open].offset;
  bool reduces = false;
  for (int i = open + 1; i < l->scopes.end[open]; i++) {
    const kiln_loop_inst *inst = &nest->body.data[i];
    if (kiln_loop_ops[inst->op].rule == KILN_LOOP_RULE_FIND || kiln_loop_is_math(inst->op))
      return false;
    if (!kiln_loop_reduces(inst->op)) continue;
    reduces = true;
    if (inst->index > 1 && (!kiln_dim_is_number(extent) || extent % KILN_REDUCE_LANES != 0))
      return false;
  }
  return reduces && l->scopes.end[open] - open - 1 <= BLOCK &&
         kiln_dim_or(extent, INT64_MAX) >= KILN_REDUCE_LANES;
}

/* How many vectors of a loop whose iterations are lanes go in turns (0: one after the other): of
 * one function, and little else, for all of it stands as often. What they leave goes vector by
 * vector, so that short rows are cut as evenly as they can be. */
static int turns_of(const look *l, int open) {
  enum { MOST = 4 /* interleave.c */, SHORT = 4 * MOST };
  const int end = l->scopes.end[open], lanes = l->s->lanes;
  int functions = 0;
  if (lanes <= 1 || end - open - 1 > BLOCK) return 0;
  for (int i = open + 1; i < end; i++) {
    const kiln_loop_inst *inst = &l->nest->body.data[i];
    if (kiln_loop_carries(inst->op) || kiln_loop_ops[inst->op].rule == KILN_LOOP_RULE_FIND)
      return 0;
    functions += kiln_loop_is_math(inst->op);
  }
  const int64_t vectors = kiln_dim_or(l->nest->body.data[open].offset, MANY) / lanes;
  if (functions != 1 || vectors < MOST) return 0;
  return vectors % MOST == 0 || vectors >= SHORT ? MOST : 2;
}

static void choose_unrolls(const look *l, kiln_arena *arena) {
  kiln_schedule_nest *s = l->s;
  for (int i = 0, loop = -1; i < l->nest->body.count; i++) {
    int rows, count = 0;
    int64_t vectors;
    if (!opens(l->nest, i)) continue;
    loop++;
    if (opens(l->nest, i + 1) || s->unroll_count == KILN_SCHEDULE_MAX_UNROLLS) continue;
    bool inner = true;
    for (int k = i + 1; k < l->scopes.end[i]; k++) inner &= !opens(l->nest, k);
    if (!inner) continue;
    if (find_tile(l, i, &rows, &vectors)) {
      count = unroll_tile(l, vectors, rows, reads_both(l, i), l->nest->body.data[i].offset);
    } else if (s->vector_loop < 0 && wants_block(l, i)) {
      count = KILN_REDUCE_LANES / s->lanes;
    } else if (s->vector_loop < 0) {
      count = turns_of(l, i);
    }
    if (!count) continue;
    if (!s->unrolls)
      s->unrolls = KILN_NEW_ARRAY(arena, kiln_schedule_unroll, KILN_SCHEDULE_MAX_UNROLLS);
    s->unrolls[s->unroll_count++] = (kiln_schedule_unroll){loop, count};
  }
}

/* -- Threads -- */

enum { FEW_TILES = 8 }; /* rows of so many tiles at least are cut: fewer stay together */

static bool cuts_tile(const look *l) {
  return l->s->tile_loop >= 0 &&
         kiln_dim_or(l->nest->extents[l->s->tile_loop], INT64_MAX) >= FEW_TILES * l->s->tile;
}

/* The outermost ones, as they stand. Of panels, in front of them what is packed moves with: other
 * panels are read there; where there are strips, the rows of a tile come before them. */
static void choose_parallel(const look *l, bool has_loops) {
  kiln_schedule_nest *s = l->s;
  const kiln_loop_nest *nest = l->nest;
  int first[KILN_LOOP_MAX_RANK + 2], count = 0;
  if (s->tile) {
    if (s->strip) {
      for (int d = 0; d < s->tile_loop; d++)
        if (d != s->panel_loop) first[count++] = d;
    }
    if (!s->strip || s->pack < 0) first[count++] = s->panel_loop; /* else there is one strip */
    for (int d = 0; d < nest->rank && !s->strip; d++)
      if (d != s->panel_loop && d != s->tile_loop) first[count++] = d;
    if (cuts_tile(l)) first[count++] = s->tile_loop;
  } else {
    const bool all = nest->rank <= 1 || (has_loops && s->vector_loop < 0);
    for (int d = 0; d < nest->rank - !all; d++) first[count++] = d;
  }
  for (int i = 0; i < count && i < KILN_KERNEL_AXES; i++) s->parallel |= 1u << first[i];
}

static void choose_grain(const look *l, bool has_loops) {
  const double part = KILN_KERNEL_PART_NS;
  const int width = kiln__schedule_width(l->nest, l->m->lanes);
  kiln_loop_nest nest = *l->nest;
  nest.run.lanes = !has_loops && l->s->lanes > width ? width : l->s->lanes;
  nest.tile.rows = l->s->tile;
  nest.body_tiles.count = l->s->body_count;
  const double cost = kiln_loop_iteration_cost(&nest, l->s->vector_loop);
  if (l->s->parallel && cost > 0 && part / cost >= 2) l->s->grain = (int64_t)(part / cost);
}

void kiln__schedule_choose_run(const kiln_loop_fn *fn, int number, const kiln_machine *machine,
                               double most, kiln_arena *arena, kiln_schedule_nest *s) {
  const look l = {.fn = fn,
                  .nest = fn->nests.data[number],
                  .m = machine,
                  .scopes = kiln_loop_scopes_of(fn->nests.data[number], arena),
                  .s = s};
  const bool has_loops = kiln__loop_of_body(l.nest, 0) >= 0;
  if (!has_loops) choose_panel(&l);
  choose_vectors(&l, has_loops);
  if (has_loops) {
    choose_unrolls(&l, arena);
  } else if (l.nest->rank > 0) {
    const step inner = look_at_step(&l, arena);
    if (is_border(&l, most, arena)) s->lanes = 1;
    if (!s->panel) narrow_vectors(&l, &inner);
    if (!s->panel) widen_vectors(&l, &inner);
    s->unroll = unroll_rows(&l, &inner);
  }
  kiln_status *status = kiln__schedule_verify_run(fn, number, s, arena);
  if (status) s->unroll = s->unroll_count = 0; /* too much code */
  kiln_status_destroy(status);
  choose_parallel(&l, has_loops);
  choose_grain(&l, has_loops);
}
