/* schedule.c: schedules as text, what is legal, and what they make of a kernel. */
#include "codegen/loop/schedule.h"

#include <string.h>

#include "base/cursor.h"

#define REFUSE(number, ...) \
  return kiln_status_note(KILN_ERROR(KILN_INVALID_ARGUMENT, __VA_ARGS__), "nest %d", number)

/* -- Text -- */

static bool is_empty(const kiln_schedule_nest *n) {
  return n->panel == 0 && n->block == 0 && n->body_count == 0 && !kiln__schedule_runs(n);
}

static void print_tile(kiln_text *text, const kiln_schedule_nest *n, int number,
                       const kiln_schedule_tile *t) {
  kiln_text_printf(text, "  nest %d: panel l%d %d", number, t->panel_loop, t->panel);
  if (t->stage >= 0) kiln_text_printf(text, ", stage b%d", t->stage);
  if (t->tile_loop < 0) {
    kiln_text_printf(text, ", tile i%d %d\n", n->block_loop, t->tile);
  } else {
    kiln_text_printf(text, ", tile l%d %d\n", t->tile_loop, t->tile);
  }
}

static void print_nest(kiln_text *text, const kiln_schedule_nest *n, int number) {
  if (n->panel) {
    kiln_text_printf(text, "  nest %d: panel i%d %d", number, n->panel_loop, n->panel);
    if (n->pack >= 0) kiln_text_printf(text, ", pack b%d", n->pack);
    if (n->prefetch) kiln_text_puts(text, ", prefetch");
    if (n->ahead) kiln_text_printf(text, " %d", n->ahead);
    for (int i = 0; i < n->round_count; i++) kiln_text_printf(text, ", round b%d", n->rounds[i]);
    if (n->pairs) kiln_text_puts(text, ", pairs");
    if (n->tile && n->tile_loop < 0) kiln_text_puts(text, ", tile 1");
    if (n->tile && n->tile_loop >= 0)
      kiln_text_printf(text, ", tile i%d %d", n->tile_loop, n->tile);
    if (n->claim) kiln_text_puts(text, ", claim");
    if (n->strip) kiln_text_printf(text, ", strip %d", n->strip);
    kiln_text_putc(text, '\n');
  }
  if (n->block)
    kiln_text_printf(text, "  nest %d: block i%d %d\n", number, n->block_loop, n->block);
  for (int k = 0; k < n->body_count; k++) print_tile(text, n, number, &n->body[k]);
  kiln__schedule_print_run(text, n, number);
}

kiln_str kiln_schedule_print(const kiln_schedule *schedule, kiln_arena *arena) {
  kiln_text text = kiln_text_in(arena);
  bool any = false;
  for (int i = 0; i < schedule->count; i++) {
    const kiln_schedule_nest *n = &schedule->nests[i];
    if (is_empty(n)) continue;
    if (!any) kiln_text_puts(&text, "schedule {\n");
    any = true;
    print_nest(&text, n, i);
  }
  if (any) kiln_text_puts(&text, "}\n");
  return kiln_text_str(&text);
}

static int line_of(const kiln_cursor *c) {
  int line = 1;
  for (const char *at = c->begin; at < c->at; at++) line += *at == '\n';
  return line;
}
#define FAIL(c, ...)                                                                           \
  return kiln_status_note(KILN_ERROR(KILN_INVALID_ARGUMENT, __VA_ARGS__), "schedule, line %d", \
                          line_of(c))

static kiln_status *parse_number(kiln_cursor *c, const char *word, int64_t most, int *out) {
  int64_t value;
  KILN_TRY_NOTE(kiln__schedule_number(c, word, most, &value), "schedule, line %d", line_of(c));
  *out = (int)value;
  return NULL;
}

/* A loop of the nest, whose letter is i, or of the body, l. */
static kiln_status *parse_loop(kiln_cursor *c, int *out_loop, bool *out_in_body) {
  kiln_cursor_skip(c);
  *out_in_body = kiln_cursor_peek(c) == 'l';
  return *out_in_body ? parse_number(c, "l", KILN_LOOP_MAX_INSTS, out_loop)
                      : parse_number(c, "i", KILN_LOOP_MAX_RANK, out_loop);
}

static kiln_status *parse_tile(kiln_cursor *c, int *out_loop, bool *out_in_body, int *out_tile) {
  KILN_TRY(parse_loop(c, out_loop, out_in_body));
  KILN_TRY(parse_number(c, "", KILN_SCHEDULE_MAX_ROWS + 1, out_tile));
  if (*out_tile == 0) FAIL(c, "a tile of nothing");
  return NULL;
}

/* Of the nest; a number alone, 1, has no loop yet. */
static kiln_status *parse_rows(kiln_cursor *c, kiln_schedule_nest *n) {
  bool in_body = false;
  kiln_cursor_skip(c);
  if (kiln_cursor_peek(c) == '1') {
    n->tile_loop = -1;
    return parse_number(c, "", 2, &n->tile);
  }
  KILN_TRY(parse_tile(c, &n->tile_loop, &in_body, &n->tile));
  if (in_body) FAIL(c, "panels of the nest, but a tile of the body");
  return NULL;
}

/* Behind the panel's loop. */
static kiln_status *parse_nest_tile(kiln_cursor *c, const kiln_loop_fn *fn, int number,
                                    kiln_schedule_nest *n) {
  if (n->panel) FAIL(c, "nest %d has a schedule already", number);
  KILN_TRY(parse_number(c, "", KILN_SCHEDULE_MAX_PANEL + 1, &n->panel));
  if (n->panel == 0) FAIL(c, "a panel of nothing");
  while (kiln_cursor_accept(c, ",")) {
    if (n->pack < 0 && kiln_cursor_accept(c, "pack")) {
      KILN_TRY(parse_number(c, "b", fn->buffers.count, &n->pack));
    } else if (!n->prefetch && kiln_cursor_accept(c, "prefetch")) {
      n->prefetch = true;
      kiln_cursor_skip(c);
      if (c->at < c->end && *c->at >= '0' && *c->at <= '9')
        KILN_TRY(parse_number(c, "", KILN_SCHEDULE_MAX_AHEAD + 1, &n->ahead));
    } else if (n->round_count < KILN_SCHEDULE_MAX_ROUNDS && kiln_cursor_accept(c, "round")) {
      KILN_TRY(parse_number(c, "b", fn->buffers.count, &n->rounds[n->round_count]));
      n->round_count++;
    } else if (!n->pairs && kiln_cursor_accept(c, "pairs")) {
      n->pairs = true;
    } else if (!n->tile && kiln_cursor_accept(c, "tile")) {
      KILN_TRY(parse_rows(c, n));
    } else if (!n->claim && kiln_cursor_accept(c, "claim")) {
      n->claim = true;
    } else if (!n->strip && kiln_cursor_accept(c, "strip")) {
      KILN_TRY(parse_number(c, "", KILN_SCHEDULE_MAX_STRIP + 1, &n->strip));
      if (n->strip == 0) FAIL(c, "a strip of nothing");
    } else {
      FAIL(c, "'pack', 'prefetch', 'round', 'pairs', 'tile', 'claim' or 'strip' was expected, once "
              "each");
    }
  }
  return NULL;
}

static kiln_status *parse_body_tile(kiln_cursor *c, const kiln_loop_fn *fn, kiln_schedule_tile *t,
                                    int *out_block_loop) {
  bool in_body = false;
  KILN_TRY(parse_number(c, "", KILN_SCHEDULE_MAX_PANEL + 1, &t->panel));
  if (t->panel == 0) FAIL(c, "a panel of nothing");
  while (kiln_cursor_accept(c, ",")) {
    if (t->stage < 0 && kiln_cursor_accept(c, "stage")) {
      KILN_TRY(parse_number(c, "b", fn->buffers.count, &t->stage));
    } else if (!t->tile && kiln_cursor_accept(c, "tile")) {
      KILN_TRY(parse_tile(c, &t->tile_loop, &in_body, &t->tile));
      if (in_body) continue;
      *out_block_loop = t->tile_loop;
      t->tile_loop = -1;
    } else {
      FAIL(c, "'stage' or 'tile' was expected, once each");
    }
  }
  return NULL;
}

static kiln_status *parse_nest(kiln_cursor *c, const kiln_loop_fn *fn, kiln_schedule *schedule,
                               kiln_arena *arena) {
  int number, loop, block_loop = -1;
  bool in_body, runs;
  KILN_TRY(parse_number(c, "nest", schedule->count, &number));
  kiln_schedule_nest *n = &schedule->nests[number];
  if (!kiln_cursor_accept(c, ":")) FAIL(c, "':' was expected");
  if (kiln_cursor_accept(c, "block")) {
    if (n->block) FAIL(c, "nest %d has blocks already", number);
    KILN_TRY(parse_number(c, "i", KILN_LOOP_MAX_RANK, &n->block_loop));
    KILN_TRY(parse_number(c, "", KILN_SCHEDULE_MAX_BLOCK + 1, &n->block));
    if (n->block == 0) FAIL(c, "a block of nothing");
    return NULL;
  }
  KILN_TRY_NOTE(kiln__schedule_parse_run(c, n, arena, &runs), "schedule, line %d", line_of(c));
  if (runs) return NULL;
  if (!kiln_cursor_accept(c, "panel"))
    FAIL(c, "'panel', 'block', or 'order', 'vector', 'unroll', 'parallel', 'grain' was expected");
  KILN_TRY(parse_loop(c, &loop, &in_body));
  if (!in_body) {
    n->panel_loop = loop;
    return parse_nest_tile(c, fn, number, n);
  }
  if (n->body_count == KILN_SCHEDULE_MAX_TILES) FAIL(c, "too many tiles");
  if (!n->body) n->body = KILN_NEW_ARRAY(arena, kiln_schedule_tile, KILN_SCHEDULE_MAX_TILES);
  kiln_schedule_tile *t = &n->body[n->body_count++];
  *t = (kiln_schedule_tile){.panel_loop = loop, .stage = -1, .tile_loop = -1};
  KILN_TRY(parse_body_tile(c, fn, t, &block_loop));
  if (block_loop >= 0 && (!n->block || n->block_loop != block_loop))
    FAIL(c, "i%d has no blocks", block_loop);
  return NULL;
}

kiln_schedule kiln__schedule_nothing(const kiln_loop_fn *fn, kiln_arena *arena) {
  kiln_schedule s = {fn->nests.count,
                     KILN_NEW_ARRAY(arena, kiln_schedule_nest, fn->nests.count + 1)};
  for (int i = 0; i < s.count; i++) s.nests[i] = (kiln_schedule_nest){.pack = -1};
  return s;
}

kiln_status *kiln_schedule_parse(kiln_str text, const kiln_loop_fn *fn, kiln_arena *arena,
                                 kiln_schedule *out_schedule) {
  kiln_cursor cursor = kiln_cursor_of(text), *c = &cursor;
  c->comment = ';';
  *out_schedule = kiln__schedule_nothing(fn, arena);
  kiln_cursor_skip(c);
  if (c->at == c->end) return NULL;
  if (!kiln_cursor_accept(c, "schedule") || !kiln_cursor_accept(c, "{"))
    FAIL(c, "'schedule {' was expected");
  while (!kiln_cursor_accept(c, "}")) KILN_TRY(parse_nest(c, fn, out_schedule, arena));
  kiln_cursor_skip(c);
  if (c->at != c->end) FAIL(c, "more behind the schedule");
  return kiln_schedule_verify(fn, out_schedule, arena);
}

/* -- What is legal -- */

static bool is_local(const kiln_loop_fn *fn, const kiln_loop_inst *inst) {
  return kiln_loop_is_access(inst) && inst->index >= fn->input_count + fn->output_count;
}

const char *kiln__find_contraction(const kiln_loop_fn *fn, const kiln_loop_nest *nest,
                                   const kiln_loop_scopes *scopes, int open,
                                   kiln__contraction *out) {
  const int begin = open + 1, end = open < 0 ? nest->body.count : scopes->end[open];
  *out = (kiln__contraction){.first_open = -1};
  bool any = false;
  for (int i = begin; i < end; i++) {
    const kiln_loop_inst *inst = &nest->body.data[i];
    const bool inside = scopes->parent[i] != open;
    if (open < 0 && is_local(fn, inst)) return "it has a local buffer";
    if (kiln_loop_ops[inst->op].rule == KILN_LOOP_RULE_OPEN) {
      if (inst->op != KILN_LOOP_reduce) return "its body has a loop that reduces nothing";
      if (out->first_open >= 0 && (!inside || out->inner_open != i - 1))
        return "the loops of its body are not perfectly nested";
      if (out->first_open < 0) out->first_open = i;
      out->inner_open = i;
      out->loops++;
    } else if (inside && inst->op == KILN_LOOP_store) {
      return "a loop of its body stores";
    } else if (kiln_loop_reduces(inst->op)) {
      if (inst->op != KILN_LOOP_contract) return "it reduces otherwise than by contractions";
      any = true;
    }
  }
  if (!any) return "it has no contraction";
  out->end = scopes->end[out->first_open];
  for (int i = out->inner_open + 1; i < out->end; i++) {
    const kiln_loop_inst *inst = &nest->body.data[i];
    if (inst->op == KILN_LOOP_contract && inst->index != out->loops)
      return "a contraction leaves out a loop";
    if (kiln_loop_ops[inst->op].rule == KILN_LOOP_RULE_END) continue;
    if (scopes->parent[i] != out->inner_open)
      return "the loops of its body are not perfectly nested";
  }
  return NULL;
}

static bool is_number(kiln_dim d) { return kiln_dim_is_number(d); }

int kiln__schedule_only_load(const kiln_loop_fn *fn, int number, int input) {
  int found = -1;
  for (int n = 0; n < fn->nests.count; n++) {
    const kiln_loop_nest *nest = fn->nests.data[n];
    for (int i = 0; i < nest->body.count; i++) {
      const kiln_loop_inst *inst = &nest->body.data[i];
      if (!kiln_loop_is_access(inst) || inst->index != input) continue;
      if (n != number || found >= 0) return -1;
      found = i;
    }
  }
  return found;
}

int64_t kiln__schedule_panels(const kiln_loop_nest *nest, const kiln_schedule_nest *s) {
  return (nest->extents[s->panel_loop] + s->panel - 1) / s->panel;
}

/* Panels without a tile: of a nest whose body has no loops. */
static kiln_status *verify_plain_panels(const kiln_loop_nest *nest, int number,
                                        const kiln_schedule_nest *s) {
  const int last = s->ordered ? s->order[nest->rank - 1] : nest->rank - 1;
  if (s->panel_loop >= nest->rank) REFUSE(number, "there is no loop i%d", s->panel_loop);
  if (s->panel_loop != last)
    REFUSE(number, "panels of i%d, which is not the last loop", s->panel_loop);
  if (nest->rank < 2) REFUSE(number, "panels of i%d, which is the only loop", s->panel_loop);
  if (nest->rank == KILN_LOOP_MAX_RANK) REFUSE(number, "too many loops for panels");
  if (s->pack >= 0 || s->strip || s->round_count || s->pairs)
    REFUSE(number, "panels without a tile are not packed, nor in strips, nor rounded");
  return NULL;
}

static kiln_status *verify_nest(const kiln_loop_fn *fn, int number, const kiln_schedule_nest *s,
                                kiln_arena *scratch) {
  const kiln_loop_nest *nest = fn->nests.data[number];
  kiln__contraction c;
  if (is_empty(s)) return NULL;
  if (s->block || s->body_count) return kiln__schedule_verify_body(fn, number, s, scratch);
  if (!s->panel) return NULL;
  if (s->prefetch && s->pack < 0) REFUSE(number, "panels are prefetched, but nothing is packed");
  if (!s->tile && kiln__loop_of_body(nest, 0) < 0) return verify_plain_panels(nest, number, s);
  if (s->panel_loop >= nest->rank) REFUSE(number, "there is no loop i%d", s->panel_loop);
  if (!s->tile) REFUSE(number, "panels without a tile");
  if (s->tile_loop >= nest->rank || s->tile_loop == s->panel_loop)
    REFUSE(number, "i%d is no loop for a tile beside panels of i%d", s->tile_loop, s->panel_loop);
  if (!is_number(nest->extents[s->panel_loop]))
    REFUSE(number, "i%d has panels, but its iterations are no number", s->panel_loop);
  const kiln_loop_scopes scopes = kiln_loop_scopes_of(nest, scratch);
  const char *why = kiln__find_contraction(fn, nest, &scopes, -1, &c);
  if (why) REFUSE(number, "no tile: %s", why);
  if (nest->rank + c.loops + (s->strip > 0) + s->pairs + (s->tile_loop < 0) >= KILN_LOOP_MAX_RANK)
    REFUSE(number, "too many loops for panels");
  if (s->strip && s->pack >= 0 && s->strip != kiln__schedule_panels(nest, s))
    REFUSE(number, "b%d is packed: all of its panels are a strip, or none", s->pack);
  if (s->strip && s->prefetch) REFUSE(number, "panels are prefetched, but in strips");
  KILN_TRY(kiln__schedule_verify_round(fn, number, s, &c));
  return s->pack < 0 ? NULL : kiln__schedule_verify_pack(fn, number, s, &scopes, &c);
}

kiln_status *kiln_schedule_verify(const kiln_loop_fn *fn, const kiln_schedule *schedule,
                                  kiln_arena *scratch) {
  KILN_ASSERT(schedule->count == fn->nests.count);
  for (int i = 0; i < schedule->count; i++) {
    KILN_TRY(verify_nest(fn, i, &schedule->nests[i], scratch));
    KILN_TRY(kiln__schedule_verify_run(fn, i, &schedule->nests[i], scratch));
  }
  return NULL;
}

/* -- What it makes -- */

/* The loops of a nest in panels: which old loop each new one is (the panel loop twice, or three
 * times). */
typedef struct plan {
  int rank, panel_at; /* where the loop over panels stands; the last is the one in a panel */
  int strip_at;       /* and the one over strips; -1: there is none */
  int tile_at;
  int from[KILN_LOOP_MAX_RANK];
} plan;

/* The nest's order, but for the panels, which come last; strips stand before the tile. */
static plan plan_strips(const kiln_loop_nest *nest, const kiln_schedule_nest *s) {
  plan p = {.strip_at = -1};
  for (int d = 0; d < nest->rank; d++) {
    if (d == s->tile_loop) {
      p.strip_at = p.rank;
      p.from[p.rank++] = s->panel_loop;
      p.tile_at = p.rank;
    }
    if (d != s->panel_loop) p.from[p.rank++] = d;
  }
  p.panel_at = p.rank;
  p.from[p.rank++] = s->panel_loop;
  p.from[p.rank++] = s->panel_loop;
  return p;
}

/* Of panels without a tile: the loop before the last goes through a panel, then through the next.
 */
static plan plan_plain(const kiln_loop_nest *nest) {
  plan p = {.strip_at = -1, .rank = nest->rank + 1, .panel_at = nest->rank - 2};
  for (int d = 0; d < nest->rank; d++) p.from[d + (d >= p.panel_at)] = d;
  p.from[p.panel_at] = nest->rank - 1;
  return p;
}

/* Outside of the panels are the loops that move what is packed: other panels are read there. Then
 * those over panels, which threads share; then the rest, the tile's last. */
static plan make_plan(const kiln_loop_nest *nest, const kiln_schedule_nest *s,
                      const kiln_loop_inst *packed) {
  plan p = {.strip_at = -1};
  if (!s->tile) return plan_plain(nest);
  if (s->strip) return plan_strips(nest, s);
  for (int pass = 0; pass < 2; pass++) {
    for (int d = 0; d < nest->rank; d++) {
      const bool outer = packed && packed->strides[d] != 0;
      if (d == s->panel_loop || d == s->tile_loop || outer != (pass == 0)) continue;
      p.from[p.rank++] = d;
    }
    if (pass > 0) continue;
    p.panel_at = p.rank;
    p.from[p.rank++] = s->panel_loop;
  }
  p.tile_at = p.rank;
  p.from[p.rank++] = s->tile_loop;
  p.from[p.rank++] = s->panel_loop;
  return p;
}

/* Elements from one iteration of each of its loops to the next, in the copy; then from panel to
 * panel, and of all. */
static void packed_strides(const kiln_kernel_pack *pack, int64_t *out_strides, int64_t *out_panel,
                           int64_t *out_all) {
  int64_t step = pack->panel;
  int last = pack->rank - 1;
  if (pack->pairs) {
    out_strides[last--] = 1;
    step *= 2;
  }
  for (int d = last; d >= pack->outer; d--) {
    out_strides[d] = step;
    step *= pack->sizes[d];
  }
  *out_panel = step;
  step *= (pack->columns + pack->panel - 1) / pack->panel;
  for (int d = pack->outer - 1; d >= 0; d--) {
    out_strides[d] = step;
    step *= pack->sizes[d];
  }
  *out_all = step;
}

/* The packed input has one dimension. */
static void pack_buffer(kiln_loop_fn *fn, const kiln_kernel_pack *pack) {
  int64_t strides[KILN_KERNEL_PACK_RANK], panel, all;
  kiln_loop_buffer *b = &fn->buffers.data[pack->input];
  packed_strides(pack, strides, &panel, &all);
  b->copy = NULL;
  b->rank = 1;
  b->sizes[0] = all;
  b->strides[0] = 1;
}

static void pack_load(kiln_loop_inst *load, const kiln_loop_nest *nest, const plan *p,
                      const kiln_kernel_pack *pack, const kiln_loop_inst *old, int old_rank) {
  int64_t strides[KILN_KERNEL_PACK_RANK], panel, all;
  int at = 0;
  packed_strides(pack, strides, &panel, &all);
  memset(load->strides, 0, sizeof load->strides);
  load->offset = 0;
  load->strides[p->panel_at] = panel;
  load->strides[nest->rank - 1] = pack->pairs ? 2 : 1;
  for (int d = 0; d < old_rank; d++) {
    if (old->strides[d] == 0 || d == p->from[p->panel_at]) continue;
    for (int k = 0; k < p->rank; k++)
      if (p->from[k] == d) load->strides[k] = strides[at];
    at++;
  }
  for (int i = 0; at < pack->rank; i++, at++) load->strides[nest->rank + i] = strides[at];
}

/* The nest's panels [first, first + strips * count), of which each has `inner` columns. Where there
 * are strips, or something is packed, these are numbers. */
static void add_part(kiln_loop_fn *to, const kiln_loop_nest *from, const kiln_schedule_nest *s,
                     const plan *p, kiln_dim first, int64_t strips, kiln_dim count, kiln_dim inner,
                     const kiln_kernel_pack *pack, int load) {
  kiln_dims *dims = to->dims;
  kiln_loop_nest *nest = KILN_NEW(to->arena, kiln_loop_nest);
  *nest = (kiln_loop_nest){.rank = p->rank,
                           .tile = {.rows = s->tile,
                                    .row_loop = p->tile_at,
                                    .packed = s->pack,
                                    .prefetch = s->prefetch,
                                    .ahead = s->ahead,
                                    .claim = s->claim,
                                    .pairs = s->pairs,
                                    .panel_loop = p->panel_at}};
  kiln_vec_push(to->arena, &to->nests, nest);
  for (int k = 0; k < p->rank; k++) nest->extents[k] = from->extents[p->from[k]];
  nest->extents[p->panel_at] = count;
  nest->extents[p->rank - 1] = inner;
  if (p->strip_at >= 0) nest->extents[p->strip_at] = strips;
  for (int i = 0; i < from->body.count; i++) {
    const kiln_loop_inst *old = &from->body.data[i];
    kiln_loop_inst inst = *old;
    if (i == load) {
      pack_load(&inst, nest, p, pack, old, from->rank);
      inst.offset = first * inst.strides[p->panel_at];
    } else if (kiln_loop_has_map(old)) {
      const kiln_dim column = old->strides[s->panel_loop];
      for (int k = 0; k < p->rank; k++) inst.strides[k] = old->strides[p->from[k]];
      inst.strides[p->panel_at] = kiln_dim_product(dims, s->panel, column);
      if (p->strip_at >= 0)
        inst.strides[p->strip_at] = kiln_dim_product(dims, count * s->panel, column);
      for (int k = p->rank; k < KILN_LOOP_MAX_RANK; k++)
        inst.strides[k] = old->strides[k - p->rank + from->rank];
      const kiln_dim place = kiln_dim_product(dims, first, inst.strides[p->panel_at]);
      inst.offset = kiln_dim_plus(dims, old->offset, place);
    }
    kiln_vec_push(to->arena, &nest->body, inst);
  }
  int made_of[KILN_LOOP_MAX_RANK], opens[KILN_SCHEDULE_MAX_UNROLLS];
  for (int k = 0; k < p->rank; k++) made_of[k] = k == p->rank - 1 ? -1 : p->from[k];
  for (int i = 0; i < s->unroll_count; i++) opens[i] = kiln__loop_of_body(from, s->unrolls[i].loop);
  kiln__schedule_run(to, nest, s, made_of, opens);
  if (s->tile || inner == s->panel) return;
  nest->run.partial = true;
  if (s->panel > s->lanes && s->lanes > 1) nest->run.lanes = s->panel;
}

/* Whether one access of the contraction's loops moves with the loop: that which is packed has whole
 * panels, others end with the columns. */
static bool moves_alone(const kiln_loop_nest *nest, const kiln__contraction *c, int loop) {
  int count = 0;
  for (int i = c->first_open; i < c->end; i++) {
    const kiln_loop_inst *inst = &nest->body.data[i];
    count += kiln_loop_has_map(inst) && inst->strides[loop] != 0;
  }
  return count == 1;
}

/* Panels of a loop whose iterations are a symbol: whole ones, and what they leave, each of which
 * may be none. */
static void schedule_symbolic(kiln_loop_fn *to, const kiln_loop_nest *from,
                              const kiln_schedule_nest *s, const plan *p) {
  kiln_dims *dims = to->dims;
  const kiln_sum columns = kiln_sum_of(dims, from->extents[s->panel_loop]);
  const kiln_sum whole = kiln_sum_divided(dims, columns, s->panel);
  const kiln_sum left = kiln_sum_minus(columns, kiln_sum_times(whole, s->panel));
  const kiln_dim count = kiln_sum_dim(dims, whole), rest = kiln_sum_dim(dims, left);
  add_part(to, from, s, p, 0, 1, count, s->panel, NULL, -1);
  if (rest != 0) add_part(to, from, s, p, count, 1, 1, rest, NULL, -1);
}

static void schedule_nest(kiln_loop_fn *to, const kiln_loop_fn *fn, int number,
                          const kiln_schedule_nest *s, kiln_kernel_pack *packs, int *pack_count) {
  const kiln_loop_nest *from = fn->nests.data[number];
  const kiln_loop_scopes scopes = kiln_loop_scopes_of(from, to->arena);
  kiln_kernel_pack *pack = NULL;
  kiln__contraction c;
  int load = -1;
  (void)kiln__find_contraction(fn, from, &scopes, -1, &c);
  if (s->pack >= 0) {
    load = kiln__schedule_only_load(fn, number, s->pack);
    pack = &packs[(*pack_count)++];
    *pack = kiln__schedule_describe_pack(fn, from, s, &from->body.data[load], &c);
    pack_buffer(to, pack);
  }
  const plan p = make_plan(from, s, load < 0 ? NULL : &from->body.data[load]);
  if (!is_number(from->extents[s->panel_loop])) {
    schedule_symbolic(to, from, s, &p);
    return;
  }
  const int64_t columns = from->extents[s->panel_loop], whole = columns / s->panel;
  if (pack && columns % s->panel && moves_alone(from, &c, s->panel_loop)) {
    add_part(to, from, s, &p, 0, 1, whole + 1, s->panel, pack, load);
    kiln_vec_last(&to->nests)->tile.columns = columns;
    return;
  }
  const int64_t strip = s->strip && s->strip < whole ? s->strip : whole;
  if (whole > 0) add_part(to, from, s, &p, 0, whole / strip, strip, s->panel, pack, load);
  if (whole > 0 && whole % strip)
    add_part(to, from, s, &p, whole / strip * strip, 1, whole % strip, s->panel, pack, load);
  if (columns % s->panel) add_part(to, from, s, &p, whole, 1, 1, columns % s->panel, pack, load);
}

/* The nest with a loop of one row around it, and the schedule with the names that loops have then.
 */
static kiln_loop_nest *add_row(kiln_arena *arena, const kiln_loop_nest *from,
                               kiln_schedule_nest *s) {
  kiln_loop_nest *nest = KILN_NEW(arena, kiln_loop_nest);
  *nest = *from;
  memset(&nest->body, 0, sizeof nest->body);
  nest->rank++;
  nest->extents[0] = 1;
  for (int d = 0; d < from->rank; d++) nest->extents[d + 1] = from->extents[d];
  for (int i = 0; i < from->body.count; i++) {
    kiln_loop_inst inst = from->body.data[i];
    for (int d = KILN_LOOP_MAX_RANK - 1; d > 0; d--) inst.strides[d] = inst.strides[d - 1];
    inst.strides[0] = 0;
    kiln_vec_push(arena, &nest->body, inst);
  }
  s->tile_loop = 0;
  s->panel_loop++;
  if (s->vector_loop >= 0) s->vector_loop++;
  s->parallel <<= 1;
  return nest;
}

/* Without panels: loops of the nest are what they were, but for that of blocks, which is the last.
 */
static void run_nest(kiln_loop_fn *to, kiln_loop_nest *nest, const kiln_schedule_nest *s) {
  int opens[KILN_SCHEDULE_MAX_UNROLLS], from[KILN_LOOP_MAX_RANK];
  for (int i = 0; i < s->unroll_count; i++) opens[i] = kiln__loop_of_body(nest, s->unrolls[i].loop);
  for (int d = 0; d < nest->rank; d++) from[d] = d;
  if (s->body_count) nest = kiln__schedule_apply_body(to, nest, s, opens, s->unroll_count);
  for (int d = s->block_loop; s->block && d < nest->rank; d++)
    from[d] = d == nest->rank - 1 ? s->block_loop : d + 1;
  kiln__schedule_run(to, nest, s, from, opens);
  kiln_vec_push(to->arena, &to->nests, nest);
}

kiln_scheduled kiln_schedule_apply(const kiln_loop_fn *fn, const kiln_schedule *schedule,
                                   kiln_arena *arena) {
  kiln_scheduled out = {.fn = fn};
  kiln_loop_fn *to = KILN_NEW(arena, kiln_loop_fn), ordered = *fn;
  kiln_kernel_pack *packs = KILN_NEW_ARRAY(arena, kiln_kernel_pack,
                                           (1 + KILN_SCHEDULE_MAX_ROUNDS) * (fn->nests.count + 1));
  kiln_schedule_nest *nests = KILN_NEW_ARRAY(arena, kiln_schedule_nest, fn->nests.count + 1);
  *to = *fn;
  to->arena = arena;
  memset(&to->buffers, 0, sizeof to->buffers);
  memset(&to->nests, 0, sizeof to->nests);
  for (int i = 0; i < fn->buffers.count; i++)
    kiln_vec_push(arena, &to->buffers, fn->buffers.data[i]);
  ordered.nests.data = KILN_NEW_ARRAY(arena, kiln_loop_nest *, fn->nests.count + 1);
  for (int i = 0; i < schedule->count; i++)
    ordered.nests.data[i] =
        kiln__schedule_order(arena, fn->nests.data[i], &schedule->nests[i], &nests[i]);
  for (int i = 0; i < schedule->count; i++) {
    if (nests[i].tile && nests[i].tile_loop < 0)
      ordered.nests.data[i] = add_row(arena, ordered.nests.data[i], &nests[i]);
    out.pack_count += kiln__schedule_round(to, &ordered, i, &nests[i], packs + out.pack_count);
    if (nests[i].panel) {
      schedule_nest(to, &ordered, i, &nests[i], packs, &out.pack_count);
    } else {
      run_nest(to, ordered.nests.data[i], &nests[i]);
    }
  }
  out.fn = to;
  out.packs = packs;
  return out;
}

kiln_status *kiln_scheduled_parse(kiln_str text, kiln_arena *arena, kiln_scheduled *out) {
  static const char mark[] = "\nschedule {";
  const char *at = memmem(text.data, text.len, mark, sizeof mark - 1);
  const size_t kernel = at ? (size_t)(at - text.data) + 1 : text.len;
  kiln_loop_fn *fn;
  kiln_schedule schedule;
  KILN_TRY(kiln_loop_parse(kiln_str_make(text.data, kernel), arena, &fn));
  KILN_TRY(kiln_schedule_parse(kiln_str_make(text.data + kernel, text.len - kernel), fn, arena,
                               &schedule));
  *out = kiln_schedule_apply(fn, &schedule, arena);
  return NULL;
}
