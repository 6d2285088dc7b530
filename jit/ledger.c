/* ledger.c: costs and savings of levels, and what follows from them. */
#include "jit/executor.h"

/* How many runs are compared, how many calls may come until there are as many, and what a first
 * level is expected to take for each node of its graph. */
enum { METERED_RUNS = 16, TRIED_RUNS = 8, MOST_ASKED = 1024, NODE_NS = 100000 };

/* -- Before a level -- */

static int count_nodes(const kiln_block *block) {
  int count = 0;
  for (const kiln_node *n = block->first; n; n = n->next) {
    count++;
    for (int b = 0; b < n->block_count; b++) count += count_nodes(n->blocks[b]);
  }
  return count;
}

void kiln__ledger_measure(kiln_executor *ex, const kiln_graph *graph) {
  __atomic_store_n(&ex->nodes, count_nodes(graph->top), __ATOMIC_RELAXED);
}

void kiln__ledger_meter(kiln_executor *ex, kiln_call *call, uint64_t hash) {
  if (__atomic_load_n(&ex->metered_hash, __ATOMIC_RELAXED) != hash) {
    __atomic_store_n(&ex->metered_hash, hash, __ATOMIC_RELAXED);
    __atomic_store_n(&ex->interim_meter.least_ns, 0, __ATOMIC_RELAXED);
  }
  call->meter = &ex->interim_meter;
}

static uint64_t nodes_of(const kiln_executor *ex) {
  return (uint64_t)__atomic_load_n(&ex->nodes, __ATOMIC_RELAXED);
}

/* What the executor's next level may take, as those of the model did for each of their nodes. */
static uint64_t expected_ns(const kiln_executor *ex) {
  const kiln_jit *jit = ex->jit;
  const uint64_t nodes = __atomic_load_n(&jit->made_nodes, __ATOMIC_RELAXED);
  const uint64_t ns = __atomic_load_n(&jit->made_ns, __ATOMIC_RELAXED);
  return nodes_of(ex) * (nodes ? ns / nodes : NODE_NS);
}

bool kiln__ledger_pays(const kiln_executor *ex) {
  const uint64_t percent = (uint64_t)ex->jit->env.flags.compile_after;
  if (percent == 0 || __atomic_load_n(&ex->jit->eager, __ATOMIC_RELAXED)) return true;
  return __atomic_load_n(&ex->interim_meter.ns, __ATOMIC_RELAXED) >=
         expected_ns(ex) / 100 * percent;
}

uint64_t kiln__ledger_worth(const kiln_executor *ex) {
  const uint64_t expected = expected_ns(ex);
  const uint64_t spent = __atomic_load_n(&ex->interim_meter.ns, __ATOMIC_RELAXED);
  return expected ? spent * 1000 / expected : spent;
}

/* -- Behind it -- */

void kiln__ledger_open(kiln_executor *ex, kiln_variant *v, uint64_t ns) {
  v->entry.hash = __atomic_load_n(&ex->metered_hash, __ATOMIC_RELAXED);
  kiln_meter_write(&v->entry.interpreted, kiln_meter_read(&ex->interim_meter));
  kiln_meter_write(&ex->interim_meter, (kiln_meter){0});
  __atomic_fetch_add(&v->entry.made_ns, ns, __ATOMIC_RELAXED);
  __atomic_fetch_add(&ex->jit->made_ns, ns, __ATOMIC_RELAXED);
  __atomic_fetch_add(&ex->jit->made_nodes, nodes_of(ex), __ATOMIC_RELAXED);
  __atomic_fetch_or(&v->state, KILN_VARIANT_METERED, __ATOMIC_RELEASE);
}

void kiln__ledger_try(kiln_variant *v) {
  kiln_meter_write(&v->entry.interpreted, (kiln_meter){0});
  kiln_meter_write(&v->entry.own, (kiln_meter){0});
  __atomic_store_n(&v->entry.asked, 0, __ATOMIC_RELAXED);
  __atomic_fetch_and(&v->state, (uint8_t)~KILN_VARIANT_METERED, __ATOMIC_RELAXED);
  __atomic_fetch_or(&v->state, KILN_VARIANT_TRIED, __ATOMIC_RELEASE);
}

static void end_trial(kiln_executor *ex, kiln_variant *v) {
  enum { SLACK_NS = 500 };
  const kiln_meter plain = kiln_meter_read(&v->entry.interpreted);
  const kiln_meter own = kiln_meter_read(&v->entry.own);
  const bool lost = plain.runs >= TRIED_RUNS && own.runs >= TRIED_RUNS &&
                    own.least_ns > plain.least_ns + plain.least_ns / 16 + SLACK_NS;
  const uint8_t tried =
      __atomic_fetch_and(&v->state, (uint8_t)~KILN_VARIANT_TRIED, __ATOMIC_ACQ_REL);
  if (!lost || !(tried & KILN_VARIANT_TRIED)) return; /* another thread has ended it */
  __atomic_fetch_or(&v->state, KILN_VARIANT_RETIRED, __ATOMIC_RELEASE);
  __atomic_fetch_add(&ex->jit->retired, 1, __ATOMIC_RELAXED);
  const kiln_timeline_arg args[] = {{"compiled_ns", .number = (int64_t)own.least_ns},
                                    {"interpreted_ns", .number = (int64_t)plain.least_ns}};
  kiln_timeline_mark(ex->jit->env.timeline, KILN_EVENT_retired, ex->callable.name, 2, args);
}

static const kiln_plan *plan_without_jit(const kiln_executor *ex) {
  const kiln_variant *plain = __atomic_load_n(&ex->plain, __ATOMIC_ACQUIRE);
  return plain->plan; /* which the trial's job has made */
}

const kiln_plan *kiln__ledger_choose(kiln_executor *ex, kiln_call *call, uint64_t hash,
                                     kiln_variant *v, bool *out_doubtful) {
  kiln_ledger_entry *e = &v->entry;
  const uint8_t state = __atomic_load_n(&v->state, __ATOMIC_ACQUIRE);
  if (state & KILN_VARIANT_RETIRED) return plan_without_jit(ex);
  const uint32_t asked = __atomic_fetch_add(&e->asked, 1, __ATOMIC_RELAXED);
  const kiln_meter own = kiln_meter_read(&e->own);
  const bool compares = !e->hash || hash == e->hash;
  if (state & KILN_VARIANT_TRIED) {
    const kiln_meter plain = kiln_meter_read(&e->interpreted);
    if (asked >= MOST_ASKED || (own.runs >= TRIED_RUNS && plain.runs >= TRIED_RUNS)) {
      end_trial(ex, v);
    } else if (compares) {
      const bool interprets = asked % 2;
      call->meter = interprets ? &e->interpreted : &e->own;
      if (interprets) return plan_without_jit(ex);
    }
  } else if (state & KILN_VARIANT_METERED) {
    const bool done = own.runs >= METERED_RUNS;
    *out_doubtful =
        done && ex->jit->jobs && e->interpreted.least_ns && own.least_ns > e->interpreted.least_ns;
    if (asked >= MOST_ASKED || (done && !*out_doubtful))
      __atomic_fetch_and(&v->state, (uint8_t)~KILN_VARIANT_METERED, __ATOMIC_RELAXED);
    else if (compares && !done)
      call->meter = &e->own;
  }
  return v->plan;
}

/* -- Telling -- */

void kiln_jit_each_variant(kiln_jit *jit, void (*each)(void *user, const kiln_jit_ledger_row *row),
                           void *user) {
  if (!kiln_job_lock_look(&jit->lock)) return;
  for (const kiln_executor *ex = jit->now->executors.first; ex; ex = ex->next) {
    for (const kiln_variant *v = ex->variants; v; v = v->next) {
      const uint64_t made_ns = __atomic_load_n(&v->entry.made_ns, __ATOMIC_RELAXED);
      const kiln_meter plain = kiln_meter_read(&v->entry.interpreted);
      const kiln_meter own = kiln_meter_read(&v->entry.own);
      const uint8_t state = __atomic_load_n(&v->state, __ATOMIC_RELAXED);
      const kiln_jit_ledger_row row = {.name = ex->callable.name,
                                       .site = ex->site ? ex->site : "",
                                       .depth = v->depth,
                                       .made_ns = made_ns,
                                       .interpreted_ns = plain.least_ns,
                                       .compiled_ns = own.least_ns,
                                       .interpreted_runs = plain.runs,
                                       .compiled_runs = own.runs,
                                       .is_retired = state & KILN_VARIANT_RETIRED};
      if (made_ns) each(user, &row); /* or it was never a level's */
    }
  }
  kiln_job_lock_give(&jit->lock);
}
