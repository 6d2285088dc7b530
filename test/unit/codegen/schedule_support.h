/* schedule_support.h: schedules of any kernel, read from text or random ones, what is compiled with
 * them, and runs of it in parts. */
#pragma once

#include "codegen/loop/schedule.h"
#include "codegen_support.h"

/* Words of a nest; some are not legal together. */
static inline void draw_words(uint64_t *seed, const kiln_loop_nest *nest, kiln_arena *arena,
                              kiln_schedule_nest *s) {
  static const int counts[] = {1, 2, 2, 3, 4, 5, 8};
  int loops = 0, last = nest->rank - 1;
  for (int i = 0; i < nest->body.count; i++)
    loops += kiln_loop_ops[nest->body.data[i].op].rule == KILN_LOOP_RULE_OPEN;
  if (nest->rank > 0 && random_below(seed, 2)) {
    s->ordered = true;
    for (int d = 0; d < nest->rank; d++) {
      const int other = random_below(seed, d + 1);
      s->order[d] = s->order[other];
      s->order[other] = d;
    }
    s->order[nest->rank] = -1;
    last = s->order[last];
  }
  if (loops == 0 && nest->rank > 1 && random_below(seed, 3) == 0) {
    s->panel_loop = last;
    s->panel = 1 + random_below(seed, 40);
  }
  s->lanes = 1 << random_below(seed, 7);
  s->vector_loop = s->panel ? s->panel_loop : s->body_count ? -1 : last;
  if (!s->panel && loops > 0 && random_below(seed, 2)) s->vector_loop = -1;
  if (s->vector_loop < 0 && loops == 0) s->lanes = 0;
  if (s->lanes && s->vector_loop >= 0 && !s->tile && random_below(seed, 2))
    s->unroll = counts[random_below(seed, 7)];
  s->unrolls = KILN_NEW_ARRAY(arena, kiln_schedule_unroll, loops + 1);
  for (int i = 0; i < loops; i++) {
    const int open = kiln__loop_of_body(nest, i), lanes = s->lanes ? s->lanes : 1;
    int next = open + 1;
    while (kiln_loop_ops[nest->body.data[next].op].rule < KILN_LOOP_RULE_OPEN) next++;
    if (nest->body.data[next].op != KILN_LOOP_end || random_below(seed, 2)) continue;
    const int whole = KILN_REDUCE_LANES / lanes;
    s->unrolls[s->unroll_count++] = (kiln_schedule_unroll){
        i, lanes >= 4 && random_below(seed, 2) ? whole : counts[random_below(seed, 7)]};
  }
  for (int d = 0; d < nest->rank; d++) s->parallel |= (uint32_t)random_below(seed, 2) << d;
  if (s->parallel && random_below(seed, 2)) s->grain = 1 + random_below(seed, 5000);
}

/* `tiles` (NULL: none): of each nest, what is drawn already. */
static inline kiln_schedule random_schedule(uint64_t *seed, const kiln_loop_fn *fn,
                                            const kiln_schedule *tiles, kiln_arena *arena) {
  kiln_schedule s = kiln__schedule_nothing(fn, arena);
  for (int i = 0; i < s.count; i++) {
    for (int tries = 0; tries < 20; tries++) {
      if (tiles) s.nests[i] = tiles->nests[i];
      draw_words(seed, fn->nests.data[i], arena, &s.nests[i]);
      kiln_status *status = kiln_schedule_verify(fn, &s, arena);
      const bool legal = !status;
      kiln_status_destroy(status);
      if (legal) break;
      s.nests[i] = tiles ? tiles->nests[i] : (kiln_schedule_nest){.pack = -1};
    }
  }
  return s;
}

/* A kernel of LLVM's under a random schedule, which is printed and read again. */
typedef struct drawn_job {
  kiln_codegen *codegen;
  const kiln_loop_fn *fn;
  const kiln_schedule *tiles;
  uint64_t *seed;
  kiln_arena *arena;
  kiln_str text;
  kiln_compiled *code;
} drawn_job;
static inline kiln_status *compile_drawn(drawn_job *d) {
  kiln_reason reason;
  const kiln_schedule s = random_schedule(d->seed, d->fn, d->tiles, d->arena);
  kiln_schedule again;
  d->text = kiln_schedule_print(&s, d->arena);
  KILN_TRY(kiln_schedule_parse(d->text, d->fn, d->arena, &again));
  if (!kiln_str_equal(kiln_schedule_print(&again, d->arena), d->text))
    return KILN_ERROR(KILN_INTERNAL, "not the same again: " KILN_STR_FMT, KILN_STR_ARG(d->text));
  return kiln_codegen_compile_as(d->codegen, d->fn, &again, &reason, &d->code);
}

typedef struct schedule_job {
  const kiln_loop_fn *fn;
  const char *text;
  kiln_arena *arena;
  kiln_schedule schedule;
} schedule_job;
static inline kiln_status *parse_schedule(schedule_job *job) {
  return kiln_schedule_parse(kiln_str_from(job->text), job->fn, job->arena, &job->schedule);
}

/* The box cut at a random place of each axis: all pieces, one after the other. */
static inline void run_in_boxes(uint64_t *seed, const kiln_compiled *code,
                                const kiln_kernel_args *args, kiln_kernel_box box, int axis) {
  if (axis == KILN_KERNEL_AXES) {
    code->fn(args, &box);
    return;
  }
  kiln_kernel_box before = box, after = box;
  before.end[axis] = after.begin[axis] = random_below(seed, (int)box.end[axis] + 1);
  run_in_boxes(seed, code, args, before, axis + 1);
  run_in_boxes(seed, code, args, after, axis + 1);
}
