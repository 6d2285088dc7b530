/* explain.c: what `kiln explain` stands on: refusals, failed guards, groups, times and
 * memory of a model. */
#include <inttypes.h>
#include <stdio.h>

#include "api/internal.h"
#include "base/workspace.h"
#include "kiln/debug.h"

/* -- Refusals -- */

kiln_status *kiln_debug_refusal(kiln_model *model, int index,
                                kiln_debug_refusal_info *out_refusal) {
  KILN_NEEDS(model && out_refusal);
  kiln_jit_refusal r;
  if (!kiln_jit_refusal_at(model->jit, index, &r)) {
    return KILN_ERROR(KILN_NOT_FOUND, "there is no refusal %d", index);
  }
  *out_refusal = (kiln_debug_refusal_info){.site = r.site,
                                           .reason = kiln_reason_id(r.reason),
                                           .sentence = kiln_reason_sentence(r.reason),
                                           .detail = r.detail,
                                           .file = r.loc.line ? r.loc.file : NULL,
                                           .line = r.loc.line,
                                           .count = r.count};
  return NULL;
}

/* -- Rows -- */

typedef struct teller {
  kiln_debug_row_fn row;
  void *user;
} teller;

enum { NUMBER = 32, SCHEDULE = 96 };

#define ROW(t, ...) KILN__ROW((t)->row, (t)->user, __VA_ARGS__)

static const char *number(char text[NUMBER], uint64_t n) {
  snprintf(text, NUMBER, "%" PRIu64, n);
  return text;
}

static const char *line_of(char text[NUMBER], kiln_source_loc loc) {
  return loc.line ? number(text, (uint64_t)loc.line) : "";
}
static const char *file_of(kiln_source_loc loc) { return loc.line && loc.file ? loc.file : ""; }

kiln_status *kiln_debug_model_misses(kiln_model *model, kiln_debug_row_fn row, void *user) {
  KILN_NEEDS(model && row);
  const teller t = {row, user};
  kiln_guard_miss m;
  ROW(&t, "site", "value", "expected", "seen", "file", "line", "call", "count");
  for (int i = 0; kiln_jit_guard_miss_at(model->jit, i, &m); i++) {
    char line[NUMBER], call[NUMBER], count[NUMBER];
    ROW(&t, m.site, m.value, m.expected, m.seen, file_of(m.loc), line_of(line, m.loc),
        number(call, m.call), number(count, m.count));
  }
  return NULL;
}

static const char *schedule_of(char text[SCHEDULE], const kiln_tuned *tuned) {
  const double rules = (double)tuned->rule_ns * 1e-3, best = (double)tuned->best_ns * 1e-3;
  *text = 0;
  if (tuned->is_known && tuned->best_ns == tuned->rule_ns)
    snprintf(text, SCHEDULE, "the rules', %.2f us: the best of %d", rules, tuned->tried);
  else if (tuned->is_known)
    snprintf(text, SCHEDULE, "autotune's, %.2f us for %.2f us", best, rules);
  return text;
}

static void tell_group(void *user, const kiln_jit_group_words *g) {
  char line[NUMBER], schedule[SCHEDULE];
  ROW((const teller *)user, g->name, g->operators, g->shapes, file_of(g->loc),
      line_of(line, g->loc), schedule_of(schedule, &g->tuned));
}

kiln_status *kiln_debug_model_groups(kiln_model *model, kiln_debug_row_fn row, void *user) {
  KILN_NEEDS(model && row);
  teller t = {row, user};
  ROW(&t, "name", "operators", "shapes", "file", "line", "schedule");
  kiln_jit_each_group(model->jit, tell_group, &t);
  return NULL;
}

static void tell_variant(void *user, const kiln_jit_ledger_row *r) {
  char depth[NUMBER], made[NUMBER], plain[NUMBER], plain_runs[NUMBER], own[NUMBER], runs[NUMBER];
  ROW((const teller *)user, r->name, r->site, number(depth, (uint64_t)r->depth),
      number(made, r->made_ns), number(plain, r->interpreted_ns),
      number(plain_runs, r->interpreted_runs), number(own, r->compiled_ns),
      number(runs, r->compiled_runs), r->is_retired ? "yes" : "");
}

kiln_status *kiln_debug_model_ledger(kiln_model *model, kiln_debug_row_fn row, void *user) {
  KILN_NEEDS(model && row);
  teller t = {row, user};
  ROW(&t, "function", "site", "level", "made_ns", "interpreted_ns", "interpreted_runs",
      "compiled_ns", "compiled_runs", "retired");
  kiln_jit_each_variant(model->jit, tell_variant, &t);
  return NULL;
}

/* -- Times -- */

kiln_status *kiln_debug_model_time(kiln_model *model, uint32_t every) {
  KILN_NEEDS(model);
  if (every) kiln_jit_time(model->jit);
  __atomic_store_n(&model->timed, every, __ATOMIC_RELAXED);
  return NULL;
}

static void tell_time(void *user, const kiln_jit_time_row *r) {
  char depth[NUMBER], line[NUMBER], ns[NUMBER], count[NUMBER], flops[NUMBER], bytes[NUMBER];
  ROW((const teller *)user, r->kind, r->name, r->function, number(depth, (uint64_t)r->depth),
      file_of(r->loc), line_of(line, r->loc), number(ns, r->ns), number(count, r->count),
      number(flops, r->flops), number(bytes, r->bytes));
}

kiln_status *kiln_debug_model_times(kiln_model *model, kiln_debug_row_fn row, void *user) {
  KILN_NEEDS(model && row);
  teller t = {row, user};
  ROW(&t, "kind", "name", "function", "depth", "file", "line", "ns", "count", "flops", "bytes");
  kiln_jit_each_time(model->jit, tell_time, &t);
  return NULL;
}

/* -- Memory -- */

/* Who made each block of a plan. */
typedef struct namer {
  const kiln_workspace_plan *plan;
  kiln_jit_time_row *makers;
} namer;
static void name_blocks(void *user, const kiln_jit_time_row *row) {
  const namer *n = user;
  for (int i = 0; i < n->plan->count; i++)
    if (n->plan->blocks[i].tag == row->tag) n->makers[i] = *row;
}
static kiln_status *tell_blocks(kiln_model *model, const kiln_workspace_plan *plan,
                                const teller *t) {
  kiln_mem *mem = model->context->env->mem;
  const size_t size = sizeof(kiln_jit_time_row) * (size_t)plan->count;
  namer n = {plan, kiln_mem_alloc_zero(mem, size)};
  if (!n.makers) return kiln_status_oom();
  kiln_jit_each_time(model->jit, name_blocks, &n);
  ROW(t, "maker", "file", "line", "offset", "bytes", "from", "to");
  for (int i = 0; i < plan->count; i++) {
    const kiln_workspace_block *b = &plan->blocks[i];
    const kiln_jit_time_row *maker = &n.makers[i];
    char line[NUMBER], offset[NUMBER], bytes[NUMBER], from[NUMBER], to[NUMBER];
    ROW(t, maker->name ? maker->name : "", file_of(maker->loc), line_of(line, maker->loc),
        number(offset, b->offset), number(bytes, b->bytes), number(from, b->from),
        number(to, b->to));
  }
  kiln_mem_free(mem, n.makers, size);
  return NULL;
}

kiln_status *kiln_debug_instance_memory(kiln_instance *instance, kiln_debug_memory *out_memory,
                                        kiln_debug_row_fn row, void *user) {
  KILN_NEEDS(instance && out_memory);
  kiln_workspace_plan plan;
  const kiln_call *call =
      instance->idle_count > 0 ? instance->idle[instance->idle_count - 1] : NULL;
  if (!call || !kiln_workspace_plan_of(&call->cache, &plan))
    return KILN_ERROR(KILN_NOT_FOUND,
                      "no call of this instance had a memory plan yet: four of equal sizes make "
                      "one, of tensors of 4 KB and more that the call does not return, where the "
                      "flag memory_plan is on");
  *out_memory = (kiln_debug_memory){
      .tensors = (uint64_t)plan.count, .bytes = plan.bytes, .least = plan.least, .runs = plan.runs};
  const teller t = {row, user};
  return row ? tell_blocks(instance->model, &plan, &t) : NULL;
}
