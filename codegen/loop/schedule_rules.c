/* schedule_rules.c: which schedule a kernel gets, from the shape of its nests and the machine.
 *
 * A contraction is a tile of rows by vectors in registers: each iteration of its loops reads
 * `vectors` vectors of one operand and one element for each row of the other, for rows * vectors
 * multiplications and additions. */
#include <stdlib.h>
#include <unistd.h>

#include "base/cursor.h"
#include "codegen/loop/schedule.h"

/* -- The machine -- */

static int64_t cache_of(int name, int64_t otherwise) {
  const long bytes = sysconf(name);
  return bytes > 0 ? bytes : otherwise;
}

static bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

static kiln_status * override(kiln_str text, kiln_machine *m) {
  kiln_cursor cursor = kiln_cursor_of(text), *c = &cursor;
  for (bool first = true; kiln_cursor_skip(c), c->at < c->end; first = false) {
    int64_t value;
    if (!first && !kiln_cursor_accept(c, ","))
      return KILN_ERROR(KILN_INVALID_ARGUMENT, "option machine: ',' was expected");
    kiln_cursor_skip(c);
    const kiln_str name = kiln_cursor_take(c, is_letter);
    if (!kiln_cursor_accept(c, "=") ||
        !kiln_str_parse_i64(kiln_cursor_take(c, is_letter), &value) || value < 1)
      return KILN_ERROR(KILN_INVALID_ARGUMENT, "option machine: NAME=NUMBER was expected");
    if (kiln_str_is(name, "registers") && value <= 64) {
      m->registers = (int)value;
    } else if (kiln_str_is(name, "l1")) {
      m->l1_bytes = value;
    } else if (kiln_str_is(name, "l2")) {
      m->l2_bytes = value;
    } else {
      return KILN_ERROR(KILN_INVALID_ARGUMENT,
                        "option machine: " KILN_STR_FMT
                        "=%lld is none of registers (to 64), l1, l2",
                        KILN_STR_ARG(name), (long long)value);
    }
  }
  return NULL;
}

kiln_status *kiln_machine_describe(kiln_isa isa, kiln_str text, kiln_machine *out) {
  static const struct {
    int lanes, registers;
  } vectors[KILN_ISA__COUNT] = {
      [KILN_ISA_V2] = {4, 16},
      [KILN_ISA_AVX2] = {8, 16},
      [KILN_ISA_AVX512] = {16, 32},
  };
  *out = (kiln_machine){.lanes = vectors[isa].lanes,
                        .registers = vectors[isa].registers,
                        .l1_bytes = cache_of(_SC_LEVEL1_DCACHE_SIZE, 32 << 10),
                        .l2_bytes = cache_of(_SC_LEVEL2_CACHE_SIZE, 256 << 10)};
  return override(text, out);
}

/* -- Contractions -- */

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

static int64_t number_or(kiln_dim d, int64_t otherwise) {
  return kiln_dim_is_number(d) ? d : otherwise;
}

/* The loop with most iterations of those that the one operand alone moves with; of columns one
 * along which results lie, if there is one. -1: none. */
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
    const int64_t count = number_or(nest->extents[d], INT64_MAX);
    if (best >= 0 && (lies > along || (lies == along && count <= most))) continue;
    best = d;
    most = count;
    lies = along;
  }
  return best;
}

/* Vectors of a panel: as many as lanes waste little of the last one. */
static int vectors_for(int64_t columns, int width, int most) {
  int best = most;
  int64_t least = INT64_MAX;
  for (int v = most; v >= 1; v--) {
    const int64_t vectors = (columns + width - 1) / width, panels = (vectors + v - 1) / v;
    /* A panel costs its vectors, and the other operand's elements, as much as one vector. */
    const int64_t cost = panels * (v + 1);
    if (cost < least) {
      least = cost;
      best = v;
    }
  }
  return best;
}

enum { EVEN_TILES = 8 };

static bool choose(const kiln_loop_fn *fn, int number, const kiln_machine *m,
                   kiln_schedule_nest *out) {
  const kiln_loop_nest *nest = fn->nests.data[number];
  operands o;
  if (!find_operands(nest, &o)) return false;
  int column = best_loop(nest, o.second, o.first, true),
      row = best_loop(nest, o.first, o.second, false);
  int load = o.second_load;
  const int swapped = best_loop(nest, o.first, o.second, true);
  /* The columns are those along which the result lies. */
  bool along = false, along_swapped = false;
  for (int i = 0; i < nest->body.count; i++) {
    const kiln_loop_inst *inst = &nest->body.data[i];
    if (inst->op != KILN_LOOP_store) continue;
    along |= column >= 0 && inst->strides[column] == 1;
    along_swapped |= swapped >= 0 && inst->strides[swapped] == 1;
  }
  if (!along && along_swapped) {
    column = swapped;
    row = best_loop(nest, o.second, o.first, false);
    load = o.first_load;
    /* Windows over one channel: there is no loop that the weights alone move with. */
    if (row < 0) row = best_loop(nest, o.first & ~(1u << column), o.second, false);
  }
  if (column < 0 || row < 0) return false;
  if (!kiln_dim_is_number(nest->extents[column])) return false;
  const int width = kiln_loop_width(nest, m->lanes);
  /* Accumulators, the vectors, and an element of the other operand. */
  const int vectors = vectors_for(nest->extents[column], width, 3);
  int rows = (m->registers - 1 - vectors) / vectors;
  const int64_t count = number_or(nest->extents[row], INT64_MAX);
  rows = rows < 1 ? 1 : rows > 8 ? 8 : rows; /* one, where registers are too few */
  const int64_t tiles = count / rows + (count % rows != 0);
  if (tiles < EVEN_TILES) rows = (int)((count + tiles - 1) / tiles); /* 5 rows: 3 and 2 */
  const kiln_loop_inst *inst = &nest->body.data[load];
  const bool lies = inst->strides[column] <= 2 || fn->buffers.data[inst->index].copy;
  *out = (kiln_schedule_nest){.panel_loop = column,
                              .panel = vectors * width,
                              .pack = lies ? -1 : inst->index,
                              .tile_loop = row,
                              .tile = rows};
  return true;
}

kiln_schedule kiln_schedule_choose(const kiln_loop_fn *fn, const kiln_machine *machine,
                                   kiln_arena *arena) {
  kiln_schedule s = kiln__schedule_nothing(fn, arena);
  for (int i = 0; i < s.count; i++) {
    kiln_schedule_nest n;
    if (!choose(fn, i, machine, &n)) continue;
    s.nests[i] = n;
    kiln_status *status = kiln_schedule_verify(fn, &s, arena);
    if (!status) continue;
    kiln_status_destroy(status);
    s.nests[i] = (kiln_schedule_nest){.pack = -1};
  }
  return s;
}

bool kiln_schedule_has_tiles(const kiln_loop_fn *fn, kiln_arena *scratch) {
  const kiln_machine any = {.lanes = 8, .registers = 16};
  const kiln_schedule s = kiln_schedule_choose(fn, &any, scratch);
  for (int n = 0; n < fn->nests.count; n++)
    if (kiln_loop_contracts(fn->nests.data[n]) && s.nests[n].tile == 0) return false;
  return true;
}
