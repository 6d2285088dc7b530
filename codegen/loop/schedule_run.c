/* schedule_run.c: the words of any nest: order, vector, unroll, parallel and grain: as text, what
 * is legal, and what they make of a nest. */
#include <string.h>

#include "codegen/loop/schedule.h"

#define REFUSE(number, ...) \
  return kiln_status_note(KILN_ERROR(KILN_INVALID_ARGUMENT, __VA_ARGS__), "nest %d", number)

/* -- Text -- */

bool kiln__schedule_runs(const kiln_schedule_nest *s) {
  return s->ordered || s->lanes || s->unroll || s->unroll_count || s->parallel || s->grain;
}

static void print_loops(kiln_text *text, uint32_t loops) {
  for (int d = 0; loops >> d; d++)
    if (loops >> d & 1) kiln_text_printf(text, " i%d", d);
}

void kiln__schedule_print_run(kiln_text *text, const kiln_schedule_nest *s, int number) {
  const char *before = "";
  if (!kiln__schedule_runs(s)) return;
  kiln_text_printf(text, "  nest %d: ", number);
  if (s->ordered) {
    kiln_text_puts(text, "order");
    for (int d = 0; s->order[d] >= 0; d++) kiln_text_printf(text, " i%d", s->order[d]);
    before = ", ";
  }
  if (s->lanes) {
    kiln_text_printf(text, "%svector ", before);
    if (s->vector_loop < 0)
      kiln_text_puts(text, "l");
    else
      kiln_text_printf(text, "i%d", s->vector_loop);
    kiln_text_printf(text, " %d", s->lanes);
    before = ", ";
  }
  if (s->unroll) {
    kiln_text_printf(text, "%sunroll i%d %d", before, s->vector_loop, s->unroll);
    before = ", ";
  }
  for (int i = 0; i < s->unroll_count; i++) {
    kiln_text_printf(text, "%sunroll l%d %d", before, s->unrolls[i].loop, s->unrolls[i].count);
    before = ", ";
  }
  if (s->parallel) {
    kiln_text_printf(text, "%sparallel", before);
    print_loops(text, s->parallel);
    before = ", ";
  }
  if (s->grain) kiln_text_printf(text, "%sgrain %lld", before, (long long)s->grain);
  kiln_text_putc(text, '\n');
}

#define FAIL(...) return KILN_ERROR(KILN_INVALID_ARGUMENT, __VA_ARGS__)

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

kiln_status *kiln__schedule_number(kiln_cursor *c, const char *word, int64_t most, int64_t *out) {
  if (!kiln_cursor_accept(c, word)) FAIL("'%s' was expected", word);
  kiln_cursor_skip(c);
  if (!kiln_str_parse_i64(kiln_cursor_take(c, is_digit), out)) FAIL("no number");
  if (*out >= most) FAIL("%lld is too large", (long long)*out);
  return NULL;
}

static bool is_loop_next(kiln_cursor *c) {
  kiln_cursor_skip(c);
  return kiln_cursor_peek(c) == 'i';
}

static kiln_status *parse_order(kiln_cursor *c, kiln_schedule_nest *s) {
  int count = 0;
  if (s->ordered) FAIL("'order' twice");
  s->ordered = true;
  while (is_loop_next(c)) {
    int64_t loop;
    KILN_TRY(kiln__schedule_number(c, "i", KILN_LOOP_MAX_RANK, &loop));
    if (count == KILN_LOOP_MAX_RANK) FAIL("too many loops in an order");
    s->order[count++] = (int)loop;
  }
  s->order[count] = -1;
  return NULL;
}

static kiln_status *parse_vector(kiln_cursor *c, kiln_schedule_nest *s) {
  int64_t loop = -1, lanes;
  if (s->lanes) FAIL("'vector' twice");
  if (is_loop_next(c)) {
    KILN_TRY(kiln__schedule_number(c, "i", KILN_LOOP_MAX_RANK, &loop));
  } else if (!kiln_cursor_accept(c, "l")) {
    FAIL("vectors go along a loop of the nest, or 'l'");
  }
  KILN_TRY(kiln__schedule_number(c, "", KILN_LOOP_LANES + 1, &lanes));
  if (lanes == 0 || (lanes & (lanes - 1))) FAIL("vectors of %lld", (long long)lanes);
  s->vector_loop = (int)loop;
  s->lanes = (int)lanes;
  return NULL;
}

static kiln_status *parse_unroll(kiln_cursor *c, kiln_schedule_nest *s, kiln_arena *arena) {
  int64_t loop, count;
  const bool in_body = !is_loop_next(c);
  KILN_TRY(kiln__schedule_number(c, in_body ? "l" : "i",
                                 in_body ? KILN_LOOP_MAX_INSTS : KILN_LOOP_MAX_RANK, &loop));
  KILN_TRY(kiln__schedule_number(c, "", KILN_SCHEDULE_MAX_UNROLL + 1, &count));
  if (count == 0) FAIL("an unrolled loop of nothing");
  if (!in_body) {
    if (s->unroll) FAIL("'unroll' of a loop of the nest twice");
    if (!s->lanes || loop != s->vector_loop)
      FAIL("i%lld is unrolled, but vectors do not go along it", (long long)loop);
    s->unroll = (int)count;
    return NULL;
  }
  if (s->unroll_count == KILN_SCHEDULE_MAX_UNROLLS) FAIL("too many unrolled loops");
  if (s->unroll_count && s->unrolls[s->unroll_count - 1].loop >= loop)
    FAIL("unrolled loops in another order than the text's");
  if (!s->unrolls)
    s->unrolls = KILN_NEW_ARRAY(arena, kiln_schedule_unroll, KILN_SCHEDULE_MAX_UNROLLS);
  s->unrolls[s->unroll_count++] = (kiln_schedule_unroll){(int)loop, (int)count};
  return NULL;
}

static kiln_status *parse_parallel(kiln_cursor *c, kiln_schedule_nest *s) {
  if (s->parallel) FAIL("'parallel' twice");
  while (is_loop_next(c)) {
    int64_t loop;
    KILN_TRY(kiln__schedule_number(c, "i", KILN_LOOP_MAX_RANK, &loop));
    if (s->parallel >> loop & 1) FAIL("i%lld is parallel twice", (long long)loop);
    s->parallel |= 1u << loop;
  }
  if (!s->parallel) FAIL("loops of the nest were expected");
  return NULL;
}

static kiln_status *parse_grain(kiln_cursor *c, kiln_schedule_nest *s) {
  if (s->grain) FAIL("'grain' twice");
  KILN_TRY(kiln__schedule_number(c, "", INT64_MAX, &s->grain));
  if (s->grain == 0) FAIL("a grain of nothing");
  return NULL;
}

kiln_status *kiln__schedule_parse_run(kiln_cursor *c, kiln_schedule_nest *s, kiln_arena *arena,
                                      bool *out_any) {
  *out_any = false;
  for (;;) {
    if (kiln_cursor_accept(c, "order")) {
      KILN_TRY(parse_order(c, s));
    } else if (kiln_cursor_accept(c, "vector")) {
      KILN_TRY(parse_vector(c, s));
    } else if (kiln_cursor_accept(c, "unroll")) {
      KILN_TRY(parse_unroll(c, s, arena));
    } else if (kiln_cursor_accept(c, "parallel")) {
      KILN_TRY(parse_parallel(c, s));
    } else if (kiln_cursor_accept(c, "grain")) {
      KILN_TRY(parse_grain(c, s));
    } else if (*out_any) {
      FAIL("'order', 'vector', 'unroll', 'parallel' or 'grain' was expected");
    } else {
      return NULL;
    }
    *out_any = true;
    if (!kiln_cursor_accept(c, ",")) return NULL;
  }
}

/* -- What is legal -- */

static int last_loop(const kiln_loop_nest *nest, const kiln_schedule_nest *s) {
  return nest->rank == 0 ? -1 : s->ordered ? s->order[nest->rank - 1] : nest->rank - 1;
}

static kiln_status *verify_order(const kiln_loop_nest *nest, int number,
                                 const kiln_schedule_nest *s) {
  uint32_t named = 0;
  int count = 0;
  for (; s->ordered && s->order[count] >= 0; count++) {
    if (s->order[count] >= nest->rank) REFUSE(number, "there is no loop i%d", s->order[count]);
    if (named >> s->order[count] & 1) REFUSE(number, "i%d is in the order twice", s->order[count]);
    named |= 1u << s->order[count];
  }
  if (s->ordered && count != nest->rank)
    REFUSE(number, "an order of %d loops, of %d that there are", count, nest->rank);
  return NULL;
}

/* Bytes of the largest element that the loops of a nest's body read. */
static int largest_read(const kiln_loop_nest *nest) {
  int largest = 1, open = 0;
  for (int i = 0; i < nest->body.count; i++) {
    const kiln_loop_inst *inst = &nest->body.data[i];
    const kiln_loop_rule rule = kiln_loop_ops[inst->op].rule;
    open += (rule == KILN_LOOP_RULE_OPEN) - (rule == KILN_LOOP_RULE_END);
    if (open && inst->op == KILN_LOOP_load && kiln_loop_size(inst->dtype) > largest)
      largest = kiln_loop_size(inst->dtype);
  }
  return largest;
}

int kiln__schedule_most_width(const kiln_loop_nest *nest, int lanes) {
  /* Of every second element twice as many are read. */
  const int most = KILN_KERNEL_PACK_BEHIND / 2 / largest_read(nest);
  return lanes < most ? lanes : most;
}

static bool has_loops(const kiln_loop_nest *nest) { return kiln__loop_of_body(nest, 0) >= 0; }

static kiln_status *verify_vector(const kiln_loop_nest *nest, int number,
                                  const kiln_schedule_nest *s) {
  const int loop = s->vector_loop;
  if (s->lanes < 1 || s->lanes > KILN_LOOP_LANES || (s->lanes & (s->lanes - 1)))
    REFUSE(number, "vectors of %d", s->lanes);
  if (loop >= nest->rank) REFUSE(number, "there is no loop i%d", loop);
  if (loop < 0 && !has_loops(nest)) REFUSE(number, "vectors of the body, which has no loops");
  if (s->panel) {
    if (loop != s->panel_loop) REFUSE(number, "vectors go along the panels, i%d", s->panel_loop);
    const int most = kiln__schedule_most_width(nest, s->lanes);
    if (s->lanes > most) REFUSE(number, "vectors of %d in panels have %d at most", s->lanes, most);
  } else if (s->body_count) {
    if (loop >= 0) REFUSE(number, "vectors of i%d, but tiles of the body", loop);
  } else if (loop >= 0 && loop != last_loop(nest, s)) {
    REFUSE(number, "vectors go along i%d, which is not the last loop", loop);
  }
  return NULL;
}

static bool is_innermost(const kiln_loop_nest *nest, const kiln_loop_scopes *scopes, int open) {
  for (int i = open + 1; i < scopes->end[open]; i++)
    if (kiln_loop_ops[nest->body.data[i].op].rule == KILN_LOOP_RULE_OPEN) return false;
  return true;
}

/* Rows times vectors of the tile that an innermost loop stands in. */
static int64_t sums_around(const kiln_loop_nest *nest, const kiln_loop_scopes *scopes,
                           const kiln_schedule_nest *s, int open) {
  const int lanes = s->lanes ? s->lanes : 1;
  int64_t sums = s->panel ? (int64_t)s->tile * ((s->panel + lanes - 1) / lanes) : 1;
  for (int k = 0; k < s->body_count; k++) {
    const kiln_schedule_tile *t = &s->body[k];
    const int column = kiln__loop_of_body(nest, t->panel_loop);
    if (column < open && open < scopes->end[column])
      sums = (int64_t)t->tile * ((t->panel + lanes - 1) / lanes);
  }
  return sums;
}

static kiln_status *verify_unrolls(const kiln_loop_nest *nest, int number,
                                   const kiln_schedule_nest *s, kiln_arena *scratch) {
  const kiln_loop_scopes scopes = kiln_loop_scopes_of(nest, scratch);
  int *count = KILN_NEW_ARRAY(scratch, int, nest->body.count + 1);
  int64_t code = 0;
  for (int i = 0; i < s->unroll_count; i++) {
    const int loop = s->unrolls[i].loop, open = kiln__loop_of_body(nest, loop);
    if (s->unrolls[i].count < 1 || s->unrolls[i].count > KILN_SCHEDULE_MAX_UNROLL)
      REFUSE(number, "l%d is unrolled %d times", loop, s->unrolls[i].count);
    if (open < 0) REFUSE(number, "there is no loop l%d", loop);
    if (!is_innermost(nest, &scopes, open))
      REFUSE(number, "l%d is unrolled, but holds another loop", loop);
    if (i > 0 && loop <= s->unrolls[i - 1].loop)
      REFUSE(number, "unrolled loops in another order than l%d, l%d", loop, s->unrolls[i - 1].loop);
    count[open] = s->unrolls[i].count;
  }
  for (int i = 0; i < nest->body.count; i++) {
    if (kiln_loop_ops[nest->body.data[i].op].rule != KILN_LOOP_RULE_OPEN) {
      code++;
    } else if (is_innermost(nest, &scopes, i)) {
      const int64_t sums = sums_around(nest, &scopes, s, i);
      if (sums > KILN_SCHEDULE_MAX_SUMS) REFUSE(number, "a tile of %lld vectors", (long long)sums);
      code += (scopes.end[i] - i) * sums * (count[i] ? count[i] : 1);
    }
  }
  if (s->unroll) code *= s->unroll;
  if (code > KILN_SCHEDULE_MAX_CODE && (s->unroll || s->unroll_count))
    REFUSE(number, "too much code: %lld instructions", (long long)code);
  return NULL;
}

kiln_status *kiln__schedule_verify_run(const kiln_loop_fn *fn, int number,
                                       const kiln_schedule_nest *s, kiln_arena *scratch) {
  const kiln_loop_nest *nest = fn->nests.data[number];
  KILN_TRY(verify_order(nest, number, s));
  if (s->lanes) KILN_TRY(verify_vector(nest, number, s));
  if (s->unroll && (!s->lanes || s->vector_loop < 0 || s->tile))
    REFUSE(number,
           s->tile ? "i%d is unrolled, but has panels"
                   : "i%d is unrolled, but vectors do not go along it",
           s->vector_loop);
  if (s->unroll > KILN_SCHEDULE_MAX_UNROLL || s->unroll < 0)
    REFUSE(number, "i%d is unrolled %d times", s->vector_loop, s->unroll);
  KILN_TRY(verify_unrolls(nest, number, s, scratch));
  if (s->parallel >> nest->rank)
    REFUSE(number, "there is no loop i%d", 31 - __builtin_clz(s->parallel));
  if (__builtin_popcount(s->parallel) > KILN_KERNEL_AXES)
    REFUSE(number, "%d parallel loops, of %d at most", __builtin_popcount(s->parallel),
           KILN_KERNEL_AXES);
  if (s->grain < 0 || (s->grain && !s->parallel)) REFUSE(number, "a grain without parallel loops");
  return NULL;
}

/* -- What it makes -- */

kiln_loop_nest *kiln__schedule_order(kiln_arena *arena, const kiln_loop_nest *from,
                                     const kiln_schedule_nest *s, kiln_schedule_nest *out_s) {
  kiln_loop_nest *nest = KILN_NEW(arena, kiln_loop_nest);
  int place[KILN_LOOP_MAX_RANK] = {0};
  *nest = *from;
  *out_s = *s;
  if (!s->ordered) return nest;
  memset(&nest->body, 0, sizeof nest->body);
  for (int d = 0; d < from->rank; d++) {
    nest->extents[d] = from->extents[s->order[d]];
    place[s->order[d]] = d;
  }
  for (int i = 0; i < from->body.count; i++) {
    kiln_loop_inst inst = from->body.data[i];
    for (int d = 0; d < from->rank && kiln_loop_has_map(&inst); d++)
      inst.strides[d] = from->body.data[i].strides[s->order[d]];
    kiln_vec_push(arena, &nest->body, inst);
  }
  out_s->ordered = false;
  out_s->panel_loop = place[s->panel_loop];
  if (s->tile_loop >= 0) out_s->tile_loop = place[s->tile_loop];
  out_s->block_loop = place[s->block_loop];
  if (s->vector_loop >= 0) out_s->vector_loop = place[s->vector_loop];
  out_s->parallel = 0;
  for (int d = 0; d < from->rank; d++) out_s->parallel |= (s->parallel >> d & 1) << place[d];
  return nest;
}

void kiln__schedule_run(kiln_loop_fn *to, kiln_loop_nest *nest, const kiln_schedule_nest *s,
                        const int *from, const int *opens) {
  kiln_loop_run *run = &nest->run;
  *run = (kiln_loop_run){.lanes = s->lanes ? s->lanes : 1,
                         .in_body = s->body_count || (s->lanes && s->vector_loop < 0),
                         .unroll = s->unroll,
                         .grain = s->grain};
  if (s->grain && s->block) run->grain = s->grain > s->block ? s->grain / s->block : 1;
  for (int k = 0; k < nest->rank && run->axis_count < KILN_KERNEL_AXES; k++)
    if (from[k] >= 0 && s->parallel >> from[k] & 1) run->axes[run->axis_count++] = k;
  memset(&nest->unrolls, 0, sizeof nest->unrolls);
  for (int i = 0; i < s->unroll_count; i++)
    kiln_vec_push(to->arena, &nest->unrolls,
                  ((kiln_loop_unroll){.open = opens[i], .count = s->unrolls[i].count}));
}
