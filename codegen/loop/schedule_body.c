/* schedule_body.c: blocks of a nest's rows, and tiles over loops of its body.
 *
 * Both make another body of the nest. Blocks cut it into parts, each in a loop over the rows of a
 * block: a tile's loop is one, and so is all that stands between two of them. What two parts read
 * is computed in each, if no loop is needed for it, or goes through a local buffer. Then each tile
 * gets the loop over its panels, and in it, before the rows, the copy of what is staged. */
#include <string.h>

#include "codegen/loop/schedule.h"

#define REFUSE(number, ...) \
  return kiln_status_note(KILN_ERROR(KILN_INVALID_ARGUMENT, __VA_ARGS__), "nest %d", number)

static bool opens(const kiln_loop_inst *inst) {
  return kiln_loop_ops[inst->op].rule == KILN_LOOP_RULE_OPEN;
}

int kiln__loop_of_body(const kiln_loop_nest *nest, int loop) {
  for (int i = 0; i < nest->body.count; i++)
    if (opens(&nest->body.data[i]) && loop-- == 0) return i;
  return -1;
}

/* -- Parts -- */

/* The parts of a body: each instruction's, or which instructions any part may have: `free` are
 * those that stand in no loop and need none. */
typedef struct parts {
  int count;
  int *part;
  bool *free, *is_tile; /* of each part */
} parts;

static bool is_free(const kiln_loop_nest *nest, const kiln_loop_scopes *scopes, const bool *free,
                    int i) {
  const kiln_loop_inst *inst = &nest->body.data[i];
  if (scopes->parent[i] >= 0 || !kiln_loop_has_result(inst->op)) return false;
  if (kiln_loop_reduces(inst->op)) return false;
  for (int a = 0; a < kiln_loop_ops[inst->op].arity; a++)
    if (!free[inst->args[a]]) return false;
  return true;
}

/* Tiles of blocks are loops that stand in no other. */
static parts find_parts(const kiln_loop_fn *fn, const kiln_loop_nest *nest,
                        const kiln_loop_scopes *scopes, const kiln_schedule_nest *s,
                        kiln_arena *arena) {
  const int count = nest->body.count, shared = fn->input_count + fn->output_count;
  parts p = {.part = KILN_NEW_ARRAY(arena, int, count + 1),
             .free = KILN_NEW_ARRAY(arena, bool, count + 1),
             .is_tile = KILN_NEW_ARRAY(arena, bool, 2 * s->body_count + 2)};
  int tile = 0, end = -1;
  for (int i = 0; i < count; i++) {
    while (tile < s->body_count && s->body[tile].tile_loop >= 0) tile++;
    const bool begins =
        tile < s->body_count && kiln__loop_of_body(nest, s->body[tile].panel_loop) == i;
    if (begins) {
      end = scopes->end[i];
      tile++;
    }
    if (begins || (i > 0 && p.is_tile[p.count] && i > end)) p.count++;
    p.is_tile[p.count] |= begins;
    p.part[i] = p.count;
    const kiln_loop_inst *inst = &nest->body.data[i];
    p.free[i] =
        is_free(nest, scopes, p.free, i) && !(kiln_loop_is_access(inst) && inst->index >= shared);
  }
  p.count++;
  return p;
}

/* The part that alone uses a local buffer; -1: there are several. */
static int part_of_local(const kiln_loop_nest *nest, const parts *p, int buffer) {
  int only = -2;
  for (int i = 0; i < nest->body.count; i++) {
    const kiln_loop_inst *inst = &nest->body.data[i];
    if (!kiln_loop_is_access(inst) || inst->index != buffer) continue;
    if (only >= 0 && only != p->part[i]) return -1;
    only = p->part[i];
  }
  return only;
}

/* -- What is legal -- */

typedef struct body_check {
  const kiln_loop_fn *fn;
  const kiln_loop_nest *nest;
  const kiln_schedule_nest *s;
  kiln_loop_scopes scopes;
  int number;
} body_check;

/* The one load of the buffer in the contraction's loops; -1: there is none, or more. */
static int staged_load(const kiln_loop_nest *nest, const kiln__contraction *c, int buffer) {
  int found = -1;
  for (int i = c->inner_open + 1; i < c->end; i++) {
    const kiln_loop_inst *inst = &nest->body.data[i];
    if (!kiln_loop_is_access(inst) || inst->index != buffer) continue;
    if (found >= 0 || inst->op != KILN_LOOP_load) return -1;
    found = i;
  }
  return found;
}

static kiln_status *verify_stage(const body_check *b, const kiln_schedule_tile *t, int column_open,
                                 const kiln__contraction *c) {
  const int load = staged_load(b->nest, c, t->stage), column = b->scopes.depth[column_open];
  if (load < 0)
    REFUSE(b->number, "b%d is staged, but not read by one load in the contraction's loops",
           t->stage);
  const kiln_loop_inst *inst = &b->nest->body.data[load];
  const int row = t->tile_loop < 0 ? b->s->block_loop : column - 1;
  if (inst->strides[column] == 0)
    REFUSE(b->number, "b%d is staged, but does not move with l%d", t->stage, t->panel_loop);
  if (inst->strides[row] != 0)
    REFUSE(b->number, "b%d is staged, but moves with the rows", t->stage);
  return NULL;
}

static kiln_status *verify_tile(const body_check *b, const kiln_schedule_tile *t) {
  const kiln_loop_nest *nest = b->nest;
  const int column_open = kiln__loop_of_body(nest, t->panel_loop);
  kiln__contraction c;
  if (column_open < 0) REFUSE(b->number, "there is no loop l%d", t->panel_loop);
  if (!t->tile) REFUSE(b->number, "panels without a tile");
  if (t->tile_loop < 0) {
    if (!b->s->block) REFUSE(b->number, "a tile of rows without blocks");
    if (b->scopes.parent[column_open] >= 0)
      REFUSE(b->number, "l%d stands in another loop, not in that of blocks", t->panel_loop);
  } else {
    const int open = kiln__loop_of_body(nest, t->tile_loop);
    if (open < 0 || nest->body.data[open].op != KILN_LOOP_for || column_open != open + 1 ||
        b->scopes.end[open] != b->scopes.end[column_open] + 1)
      REFUSE(b->number, "l%d is no loop for a tile that holds l%d alone", t->tile_loop,
             t->panel_loop);
  }
  if (nest->body.data[column_open].op != KILN_LOOP_for)
    REFUSE(b->number, "l%d has panels, but its iterations depend on each other", t->panel_loop);
  const char *why = kiln__find_contraction(b->fn, nest, &b->scopes, column_open, &c);
  if (why) REFUSE(b->number, "no tile: %s", why);
  const int depth = b->scopes.depth[column_open] + 2 + c.loops + (b->s->block > 0);
  if (depth > KILN_LOOP_MAX_RANK) REFUSE(b->number, "too many loops for panels");
  return t->stage < 0 ? NULL : verify_stage(b, t, column_open, &c);
}

/* A loop more is around all parts, and no value goes from one to another. */
static kiln_status *verify_blocks(const body_check *b, kiln_arena *scratch) {
  const kiln_loop_nest *nest = b->nest;
  if (b->s->block_loop >= nest->rank) REFUSE(b->number, "there is no loop i%d", b->s->block_loop);
  const parts p = find_parts(b->fn, nest, &b->scopes, b->s, scratch);
  for (int i = 0; i < nest->body.count; i++) {
    const kiln_loop_inst *inst = &nest->body.data[i];
    if (b->scopes.depth[i] >= KILN_LOOP_MAX_RANK) REFUSE(b->number, "too many loops for blocks");
    for (int a = 0; a < kiln_loop_ops[inst->op].arity; a++) {
      const int value = inst->args[a];
      if (p.part[value] != p.part[i] && !p.free[value])
        REFUSE(b->number, "%%%d is read in another part of the body, by %%%d", value, i);
    }
  }
  return NULL;
}

kiln_status *kiln__schedule_verify_body(const kiln_loop_fn *fn, int number,
                                        const kiln_schedule_nest *s, kiln_arena *scratch) {
  body_check b = {.fn = fn, .nest = fn->nests.data[number], .s = s, .number = number};
  if (s->panel) REFUSE(number, "a nest with a tile has no other tiles, nor blocks");
  if (!s->body_count) REFUSE(number, "blocks without a tile");
  b.scopes = kiln_loop_scopes_of(b.nest, scratch);
  for (int k = 0; k < s->body_count; k++) {
    if (k > 0 && s->body[k].panel_loop <= s->body[k - 1].panel_loop)
      REFUSE(number, "tiles in another order than the loops l%d, l%d", s->body[k].panel_loop,
             s->body[k - 1].panel_loop);
    KILN_TRY(verify_tile(&b, &s->body[k]));
  }
  return s->block ? verify_blocks(&b, scratch) : NULL;
}

/* -- What it makes -- */

/* A body that is made again: where the old instructions are. */
typedef struct making {
  kiln_loop_fn *to;
  kiln_loop_nest *nest; /* the new one */
  const kiln_loop_nest *from;
  int *number;
} making;

static making begin_making(kiln_loop_fn *to, const kiln_loop_nest *from) {
  making m = {.to = to, .nest = KILN_NEW(to->arena, kiln_loop_nest), .from = from};
  *m.nest = *from;
  memset(&m.nest->body, 0, sizeof m.nest->body);
  m.number = KILN_NEW_ARRAY(to->arena, int, from->body.count + 1);
  return m;
}

/* The old instruction at the end of the new body. Gives it, for its map. */
static kiln_loop_inst *push_old(making *m, int i) {
  kiln_loop_inst inst = m->from->body.data[i];
  for (int a = 0; a < kiln_loop_ops[inst.op].arity; a++) inst.args[a] = m->number[inst.args[a]];
  m->number[i] = m->nest->body.count;
  kiln_vec_push(m->to->arena, &m->nest->body, inst);
  return &kiln_vec_last(&m->nest->body);
}

/* A loop over one part of `all` iterations, of which the counter of `loop` has the number; or over
 * `part` of them, where there are no others. */
static void open_part(making *m, kiln_dim all, int64_t part, int loop) {
  kiln_loop_open(m->to, m->nest, KILN_LOOP_for, part);
  if (kiln_dim_is_number(all) && all % part == 0) return;
  kiln_loop_inst *inst = &kiln_vec_last(&m->nest->body);
  inst->index = loop;
  inst->imm.step = all;
}

static int64_t part_of(kiln_dim all, int64_t part) {
  return kiln_dim_is_number(all) && all < part ? all : part;
}
static kiln_dim parts_of(kiln_dims *dims, kiln_dim all, int64_t part) {
  const kiln_sum sum = kiln_sum_plus(kiln_sum_of(dims, all), kiln_sum_number(part - 1));
  return kiln_sum_dim(dims, kiln_sum_divided(dims, sum, part));
}

/* -- Blocks -- */

enum { ROW_STEP = 16 }; /* elements: rows begin at whole vectors */

typedef struct blocks {
  making m;
  int loop;            /* of the old nest; the new one's is the last */
  int64_t size;        /* of a block */
  kiln_dim *row_steps; /* of each local buffer: from row to row; 0: it has one */
} blocks;

/* Rows lie apart by what is no power of two, so that those of a tile meet in no set of a cache. */
static void add_rows(blocks *b, int buffer) {
  kiln_dims *dims = b->m.to->dims;
  kiln_loop_buffer *local = &b->m.to->buffers.data[buffer];
  kiln_sum last = kiln_sum_number(ROW_STEP);
  for (int d = 0; d < local->rank; d++) {
    const kiln_sum more = kiln_sum_plus(kiln_sum_of(dims, local->sizes[d]), kiln_sum_number(-1));
    last = kiln_sum_plus(last, kiln_sum_product(dims, more, kiln_sum_of(dims, local->strides[d])));
  }
  const kiln_sum vectors = kiln_sum_divided(dims, last, ROW_STEP);
  const kiln_dim step =
      kiln_sum_dim(dims, kiln_sum_times(kiln_sum_plus(vectors, kiln_sum_number(1)), ROW_STEP));
  for (int d = local->rank; d > 0; d--) {
    local->sizes[d] = local->sizes[d - 1];
    local->strides[d] = local->strides[d - 1];
  }
  local->rank++;
  local->sizes[0] = b->size;
  local->strides[0] = step;
  b->row_steps[buffer] = step;
}

static void push_blocked(blocks *b, int i) {
  kiln_loop_inst *inst = push_old(&b->m, i);
  const kiln_loop_inst *old = &b->m.from->body.data[i];
  const int rank = b->m.from->rank;
  if (!kiln_loop_has_map(old)) return;
  for (int d = 0; d < rank; d++)
    inst->strides[d - (d > b->loop)] = d == b->loop ? 0 : old->strides[d];
  inst->strides[rank - 1] = kiln_dim_product(b->m.to->dims, b->size, old->strides[b->loop]);
  inst->strides[rank] = old->strides[b->loop];
  for (int d = rank; d + 1 < KILN_LOOP_MAX_RANK; d++) inst->strides[d + 1] = old->strides[d];
  if (kiln_loop_is_access(old) && b->row_steps[old->index])
    inst->strides[rank] = b->row_steps[old->index];
}

/* One part, with what it needs of those that any may have: of a tile in the loop over the columns.
 */
static void push_part(blocks *b, const parts *p, int part) {
  const kiln_loop_nest *from = b->m.from;
  const int count = from->body.count;
  bool *wanted = KILN_NEW_ARRAY(b->m.to->arena, bool, count + 1);
  int first = -1;
  for (int i = count - 1; i >= 0; i--) {
    const bool own = p->part[i] == part && !p->free[i];
    if (own) first = i;
    wanted[i] |= own;
    for (int a = 0; wanted[i] && a < kiln_loop_ops[from->body.data[i].op].arity; a++)
      wanted[from->body.data[i].args[a]] = true;
  }
  if (first < 0) return;
  open_part(&b->m, from->extents[b->loop], b->size, from->rank - 1);
  if (p->is_tile[part]) push_blocked(b, first);
  for (int i = 0; i < count; i++)
    if (wanted[i] && !(p->is_tile[part] && i == first)) push_blocked(b, i);
  kiln_loop_end(b->m.to, b->m.nest);
}

/* `opens`: instructions that open loops, `count` of them, which it puts right. */
static kiln_loop_nest *apply_blocks(kiln_loop_fn *to, const kiln_loop_nest *from,
                                    const kiln_schedule_nest *s, int *opens, int count) {
  const kiln_dim rows = from->extents[s->block_loop];
  const kiln_loop_scopes scopes = kiln_loop_scopes_of(from, to->arena);
  const parts p = find_parts(to, from, &scopes, s, to->arena);
  blocks b = {.m = begin_making(to, from), .loop = s->block_loop, .size = part_of(rows, s->block)};
  b.row_steps = KILN_NEW_ARRAY(to->arena, kiln_dim, to->buffers.count + 1);
  for (int i = to->input_count + to->output_count; i < to->buffers.count; i++)
    if (part_of_local(from, &p, i) == -1) add_rows(&b, i);
  for (int d = s->block_loop; d + 1 < from->rank; d++) b.m.nest->extents[d] = from->extents[d + 1];
  b.m.nest->extents[from->rank - 1] = parts_of(to->dims, rows, b.size);
  for (int part = 0; part < p.count; part++) push_part(&b, &p, part);
  for (int k = 0; k < count; k++) opens[k] = b.m.number[opens[k]];
  return b.m.nest;
}

/* -- Panels -- */

typedef struct panels {
  making m;
  kiln__contraction c;
  int rows, depth, end; /* the old rows' loop: its instruction, depth and end */
  int64_t size;         /* of a panel */
  int load;             /* of what is staged; -1 */
  int stage;            /* its local buffer */
} panels;

/* The copy of a panel, in the loop over them. */
static void push_copy(panels *p) {
  kiln_loop_fn *to = p->m.to;
  const kiln_loop_nest *from = p->m.from;
  const kiln_loop_inst *load = &from->body.data[p->load];
  const int loops = p->c.loops, column = p->depth + 1, first = p->depth + 1;
  kiln_dim sizes[KILN_LOOP_MAX_RANK], steps[KILN_LOOP_MAX_RANK];
  kiln_dim in[KILN_LOOP_MAX_RANK] = {0}, out[KILN_LOOP_MAX_RANK] = {0};
  kiln_dim step = 1;
  for (int i = loops; i >= 0; i--) {
    sizes[i] = i == loops ? p->size : from->body.data[p->c.first_open + i].offset;
    steps[i] = step;
    step = kiln_dim_product(to->dims, step, sizes[i]);
  }
  p->stage = kiln_loop_add_local(to, load->dtype, loops + 1, sizes, steps);
  for (int d = 0; d < p->depth; d++) in[d] = load->strides[d];
  in[p->depth] = kiln_dim_product(to->dims, p->size, load->strides[column]);
  for (int i = 0; i <= loops; i++) {
    in[first + i] = load->strides[i == loops ? column : column + 1 + i];
    out[first + i] = steps[i];
    if (i < loops) kiln_loop_open(to, p->m.nest, KILN_LOOP_for, sizes[i]);
  }
  open_part(&p->m, from->body.data[p->rows + 1].offset, p->size, p->depth);
  const int value = kiln_loop_load(to, p->m.nest, load->index, load->offset, in);
  kiln_loop_store(to, p->m.nest, p->stage, 0, out, value);
  for (int i = 0; i <= loops; i++) kiln_loop_end(to, p->m.nest);
}

static void push_in_panel(panels *p, int i) {
  kiln_dims *dims = p->m.to->dims;
  kiln_loop_inst *inst = push_old(&p->m, i);
  const kiln_loop_inst *old = &p->m.from->body.data[i];
  const int depth = p->depth;
  if (!kiln_loop_has_map(old)) return;
  for (int d = depth; d + 1 < KILN_LOOP_MAX_RANK; d++) inst->strides[d + 1] = old->strides[d];
  inst->strides[depth] = kiln_dim_product(dims, p->size, old->strides[depth + 1]);
  if (i != p->load) return;
  const kiln_loop_buffer *local = &p->m.to->buffers.data[p->stage];
  inst->index = p->stage;
  inst->offset = 0;
  memset(inst->strides, 0, sizeof inst->strides);
  inst->strides[depth + 2] = 1;
  for (int k = 0; k < p->c.loops; k++) inst->strides[depth + 3 + k] = local->strides[k];
}

/* The tile whose rows' loop instruction `rows` opens: in the new body *out_open. */
static kiln_loop_nest *apply_panels(kiln_loop_fn *to, const kiln_loop_nest *from,
                                    const kiln_schedule_tile *t, int rows, int *out_open,
                                    int *opens, int count) {
  const kiln_loop_scopes scopes = kiln_loop_scopes_of(from, to->arena);
  const kiln_dim columns = from->body.data[rows + 1].offset;
  panels p = {.m = begin_making(to, from), .rows = rows, .load = -1};
  p.depth = scopes.depth[rows];
  p.end = scopes.end[rows];
  p.size = part_of(columns, t->panel);
  (void)kiln__find_contraction(to, from, &scopes, rows + 1, &p.c); /* it was verified */
  for (int i = 0; i < rows; i++) push_old(&p.m, i);
  p.m.nest->open = p.depth - from->rank;
  kiln_loop_open(to, p.m.nest, KILN_LOOP_for, parts_of(to->dims, columns, p.size));
  if (t->stage >= 0) {
    p.load = staged_load(from, &p.c, t->stage);
    push_copy(&p);
  }
  *out_open = p.m.nest->body.count;
  for (int i = rows; i <= p.end; i++) {
    if (i != rows + 1) {
      push_in_panel(&p, i);
    } else {
      open_part(&p.m, columns, p.size, p.depth);
      p.m.number[i] = p.m.nest->body.count - 1;
    }
  }
  kiln_vec_push(to->arena, &p.m.nest->body, from->body.data[p.end]);
  for (int i = p.end + 1; i < from->body.count; i++) push_old(&p.m, i);
  for (int k = 0; k < count; k++) opens[k] = p.m.number[opens[k]];
  p.m.nest->open = 0;
  return p.m.nest;
}

kiln_loop_nest *kiln__schedule_apply_body(kiln_loop_fn *to, const kiln_loop_nest *from,
                                          const kiln_schedule_nest *s, int *opens, int count) {
  /* Of the tiles, then the caller's: all move. */
  const int all = s->body_count + count;
  int *moved = KILN_NEW_ARRAY(to->arena, int, all + 1);
  int *rows = KILN_NEW_ARRAY(to->arena, int, s->body_count + 1);
  kiln_loop_nest *nest = NULL;
  for (int k = 0; k < s->body_count; k++)
    moved[k] = kiln__loop_of_body(from, s->body[k].panel_loop);
  for (int k = 0; k < count; k++) moved[s->body_count + k] = opens[k];
  if (s->block) from = apply_blocks(to, from, s, moved, all);
  for (int k = 0; k < s->body_count; k++) {
    nest = apply_panels(to, from, &s->body[k], moved[k] - 1, &rows[k], moved, all);
    from = nest;
  }
  for (int k = 0; k < count; k++) opens[k] = moved[s->body_count + k];
  for (int k = 0; k < s->body_count; k++)
    kiln_vec_push(to->arena, &nest->body_tiles,
                  ((kiln_loop_body_tile){.open = rows[k], .rows = s->body[k].tile}));
  return nest;
}
