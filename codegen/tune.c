/* tune.c: searching for schedules, and what a context knows of them.
 *
 * The search goes uphill: it tries the moves of the best schedule so far, and where one wins goes
 * on from that. What it ends with meets the rules' once more, for longer, and must win again: of
 * sixteen that are as fast as each other one wins by chance. */
#include "codegen/tune.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
  MOST_TRIED = 16,
  WORTH_NS = 10000, /* of a call, as instructions cost: less is not searched */
  MOST_MOVES = 64,
  ROUNDS = 9,
  LAST_ROUNDS = 21,
  MOST_CALL_NS = 50000000 /* what a call takes: more is not measured */
};
static const uint64_t kernel_ns = UINT64_C(3000000000); /* of a search */

/* -- What is known -- */

void kiln__tuner_init(kiln__tuner *t, kiln_env *env, const kiln_machine *machine) {
  *t = (kiln__tuner){.env = env,
                     .machine = machine,
                     .mode = env->flags.autotune,
                     .exact = env->flags.exact,
                     .maker = getpid(),
                     .left_ns = (uint64_t)env->flags.autotune_time * 1000000};
  pthread_mutex_init(&t->lock, NULL);
  kiln_job_lock_init(&t->searching);
  if (t->mode != KILN__TUNE_OFF) kiln__store_folder(t);
}

void kiln__tuner_deinit(kiln__tuner *t) {
  for (int i = 0; i < KILN__TUNE_SLOTS; i++) {
    for (kiln__tuned *k = t->slots[i], *next; k; k = next) {
      next = k->same_slot;
      kiln_mem_free(t->env->mem, k, k->size);
    }
  }
  kiln_job_lock_deinit(&t->searching);
  pthread_mutex_destroy(&t->lock);
}

static kiln__tuned **slot_of(kiln__tuner *t, kiln_digest kernel) {
  kiln__tuned **slot = &t->slots[kernel.lo % KILN__TUNE_SLOTS];
  while (*slot && !kiln_digest_equal((*slot)->kernel, kernel)) slot = &(*slot)->same_slot;
  return slot;
}

/* NULL: nothing is. The block lives as long as the tuner. */
static const kiln__tuned *look(kiln__tuner *t, kiln_digest kernel, kiln_tuned *out_about) {
  kiln_status *status = kiln_short_lock_take(&t->lock, t->maker);
  const kiln__tuned *found = status ? NULL : *slot_of(t, kernel);
  *out_about = found ? found->about : (kiln_tuned){0};
  if (!status) pthread_mutex_unlock(&t->lock);
  kiln_status_destroy(status);
  return found;
}
static bool is_asked(kiln__tuner *t, kiln_digest kernel) {
  kiln_tuned about;
  return look(t, kernel, &about);
}

static kiln_status *remember(kiln__tuner *t, kiln_digest kernel, kiln_str text,
                             const kiln_tuned *about) {
  kiln__tuned *k = kiln_mem_alloc(t->env->mem, sizeof *k + text.len + 1);
  if (!k) return kiln_status_oom();
  *k = (kiln__tuned){.kernel = kernel, .size = sizeof *k + text.len + 1, .about = *about};
  if (text.len) memcpy(k->text, text.data, text.len);
  k->text[text.len] = 0;
  kiln_status *status = kiln_short_lock_take(&t->lock, t->maker);
  kiln__tuned **slot = status ? NULL : slot_of(t, kernel);
  const bool put = slot && !*slot;
  if (put) *slot = k;
  if (!status) pthread_mutex_unlock(&t->lock);
  if (!put) kiln_mem_free(t->env->mem, k, k->size);
  return status;
}

/* The block stays: another thread may be reading its text. */
void kiln__tuner_forget(kiln__tuner *t, kiln_digest kernel) {
  kiln_status *status = kiln_short_lock_take(&t->lock, t->maker);
  kiln__tuned *k = status ? NULL : *slot_of(t, kernel);
  if (k) k->about = (kiln_tuned){0};
  if (!status) pthread_mutex_unlock(&t->lock);
  kiln_status_destroy(status);
}

bool kiln__tuner_find(kiln__tuner *t, const kiln_loop_fn *fn, kiln_digest kernel, kiln_arena *arena,
                      kiln_schedule *out_schedule, kiln_tuned *out_about) {
  *out_about = (kiln_tuned){0};
  if (t->mode == KILN__TUNE_OFF) return false;
  const kiln__tuned *k = look(t, kernel, out_about);
  if (!out_about->is_known) return false;
  kiln_status *status = kiln_schedule_parse(kiln_str_from(k->text), fn, arena, out_schedule);
  if (status) *out_about = (kiln_tuned){0};
  kiln_status_destroy(status);
  return out_about->is_known;
}

kiln_tuned kiln_codegen_tuned(kiln_codegen *codegen, kiln_digest kernel) {
  kiln__tuner *t = kiln__codegen_tuner(codegen);
  kiln_tuned about = {0};
  if (t->mode != KILN__TUNE_OFF) (void)look(t, kernel, &about);
  return about;
}

/* -- Searching -- */

typedef struct search {
  kiln_codegen *codegen;
  kiln__tuner *tuner;
  const kiln_loop_fn *fn;
  kiln_digest kernel;
  kiln_arena *arena;
  uint64_t until_ns;
  kiln__probe probe;
  kiln__runner rules, best, other; /* `best` has no code where it is the rules' */
  kiln_schedule schedule;          /* the best */
  kiln_digest texts[MOST_TRIED + 1];
  int tried;
  double rule_ns; /* of the last turns of the rules'; 0: none yet */
} search;

static void end_search(void *arg) {
  search *s = arg;
  kiln__runner_close(&s->rules);
  kiln__runner_close(&s->best);
  kiln__runner_close(&s->other);
  kiln__probe_close(&s->probe);
}

static kiln__runner *best_of(search *s) { return s->best.probe ? &s->best : &s->rules; }

/* Whether it was not tried yet; it counts as such from now on. */
static bool is_new(search *s, const kiln_schedule *schedule) {
  const kiln_str text = kiln_schedule_print(schedule, s->arena);
  const kiln_digest digest = kiln_digest_bytes(text.data, text.len);
  for (int i = 0; i <= s->tried; i++)
    if (kiln_digest_equal(s->texts[i], digest)) return false;
  s->texts[++s->tried] = digest;
  return true;
}

/* What cannot be compiled, or finds a fault, is none. KILN_LIMIT and KILN_CANCELLED end all. */
static kiln_status *open_runner(search *s, const kiln_schedule *schedule, kiln__runner *out) {
  kiln_compiled *code;
  KILN_TRY(kiln__codegen_make(s->codegen, s->fn, schedule, &code));
  return kiln__runner_open(out, &s->probe, code);
}

static kiln_status *try_one(search *s, const kiln_schedule *schedule) {
  kiln__duel duel = {0};
  kiln_status *status = open_runner(s, schedule, &s->other);
  if (!status) status = kiln__runner_duel(best_of(s), &s->other, ROUNDS, s->until_ns, &duel);
  if (!status && best_of(s) == &s->rules) s->rule_ns = duel.a_ns;
  if (!status && duel.b_wins) {
    kiln__runner_close(&s->best);
    s->best = s->other;
    s->other = (kiln__runner){0};
    s->schedule = *schedule;
  }
  kiln__runner_close(&s->other);
  if (kiln_status_ends(status)) return status;
  kiln_status_destroy(status);
  return NULL;
}

/* Whether one of the moves of the best one wins: then that one is the best, and there are others.
 */
static kiln_status *climb(search *s, bool *out_higher) {
  const kiln_schedule from = s->schedule;
  kiln_schedule moves[MOST_MOVES];
  const int count =
      kiln_schedule_moves(s->fn, s->tuner->machine, &from, MOST_MOVES, s->arena, moves);
  *out_higher = false;
  for (int i = 0; i < count && s->tried < MOST_TRIED && !*out_higher; i++) {
    if (kiln_now_ns() > s->until_ns) return NULL;
    if (!is_new(s, &moves[i])) continue;
    KILN_TRY(try_one(s, &moves[i]));
    *out_higher = s->schedule.nests != from.nests;
  }
  return NULL;
}

/* The best one and the rules', once more. */
static kiln_status *decide(search *s, const kiln_schedule *rules, kiln_tuned *out) {
  kiln__duel duel = {0};
  *out = (kiln_tuned){.is_known = true, .tried = s->tried};
  if (s->best.probe)
    KILN_TRY(kiln__runner_duel(&s->rules, &s->best, LAST_ROUNDS, kiln_now_ns() + kernel_ns, &duel));
  if (duel.a_ns > 0) s->rule_ns = duel.a_ns;
  out->rule_ns = (int64_t)(s->rule_ns > 0 ? s->rule_ns : s->rules.call_ns);
  out->best_ns = duel.b_wins ? (int64_t)duel.b_ns : out->rule_ns;
  if (!duel.b_wins) s->schedule = *rules;
  return NULL;
}

static kiln_status *search_in(search *s, const kiln_schedule *rules, kiln_tuned *out) {
  kiln_compiled *code;
  bool higher = true;
  s->probe = (kiln__probe){
      .env = s->tuner->env, .fn = s->fn, .machine = s->tuner->machine, .symbols = s->probe.symbols};
  KILN_TRY(kiln__codegen_make(s->codegen, s->fn, rules, &code));
  s->rules = (kiln__runner){.probe = &s->probe, .code = code}; /* owned */
  KILN_TRY(kiln__probe_open(&s->probe, code, s->arena));
  KILN_TRY(kiln__runner_open(&s->rules, &s->probe, code));
  if (s->rules.call_ns > (double)MOST_CALL_NS)
    return KILN_ERROR(KILN_UNSUPPORTED, "a call takes too long to be measured");
  s->schedule = *rules;
  const kiln_str text = kiln_schedule_print(rules, s->arena);
  s->texts[0] = kiln_digest_bytes(text.data, text.len);
  while (higher) KILN_TRY(climb(s, &higher));
  if (s->tried == 0 && kiln_now_ns() > s->until_ns)
    return KILN_ERROR(KILN_UNSUPPORTED, "there is no time for it");
  return decide(s, rules, out);
}

/* Whether a call takes long enough. */
static kiln_status *weigh(const search *s, const kiln_schedule *rules, bool *out_worth) {
  kiln_kernel_info info;
  const kiln_scheduled scheduled = kiln_schedule_apply(s->fn, rules, s->arena);
  KILN_TRY(kiln_loop_info(scheduled.fn, KILN_LOOP_LANES, 0, s->arena, &info));
  *out_worth = !info.shape || (s->probe.symbols &&
                               kiln_kernel_shape_work(info.shape, s->probe.symbols, &info.work));
  *out_worth = *out_worth && info.work.cost >= (double)WORTH_NS;
  return NULL;
}

static kiln_status *run_search(search *s, kiln_tuned *out) {
  const kiln_schedule rules = kiln_schedule_choose(s->fn, s->tuner->machine, s->arena);
  const uint64_t begin = kiln_now_ns();
  bool worth;
  kiln_cleanup ending;
  KILN_TRY(weigh(s, &rules, &worth));
  if (!worth) return NULL;
  s->until_ns = begin + (s->tuner->left_ns < kernel_ns ? s->tuner->left_ns : kernel_ns);
  kiln_scope_defer(&ending, end_search, s);
  kiln_status *status = search_in(s, &rules, out);
  kiln_scope_undefer(&ending);
  end_search(s);
  const uint64_t spent = kiln_now_ns() - begin;
  s->tuner->left_ns -= spent < s->tuner->left_ns ? spent : s->tuner->left_ns;
  return status;
}

/* -- Both -- */

/* In one line, with its notes. */
static void warn(const kiln__tuner *t, kiln_status *status, const char *what) {
  char line[KILN__TUNE_PATH + 512];
  if (!status) return;
  snprintf(line, sizeof line, "%s", kiln_status_report(status));
  size_t to = 0;
  for (size_t from = 0; line[from]; from++) {
    const bool ends = line[from] == '\n';
    line[to++] = ends ? ';' : line[from];
    while (ends && line[from + 1] == ' ' && line[from + 2] == ' ') from++;
  }
  line[to] = 0;
  KILN_LOG(&t->env->log, warn, 1, "autotune: %s: %s", what, line);
  kiln_status_destroy(status);
}

/* A search that ended since there was no time left for it is not kept: another process may have it.
 */
static kiln_status *search_and_keep(search *s) {
  kiln__tuner *t = s->tuner;
  kiln_tuned about = {0};
  KILN_TRY(run_search(s, &about));
  const kiln_str text = about.is_known ? kiln_schedule_print(&s->schedule, s->arena) : KILN_STR("");
  if (about.is_known)
    KILN_LOG(&t->env->log, compile, 1,
             "autotune: %.2f us, %.2f us with the rules' schedule, %d tried",
             (double)about.best_ns * 1e-3, (double)about.rule_ns * 1e-3, about.tried);
  if (about.is_known && t->left_ns > 0)
    warn(t, kiln__store_write(t, s->kernel, text, &about, s->arena), "nothing is kept");
  return remember(t, s->kernel, text, &about);
}

/* That there is nothing to be known. */
static kiln_status *remember_none(search *s) {
  return remember(s->tuner, s->kernel, KILN_STR(""), &(kiln_tuned){0});
}

static kiln_status *search_once(search *s) {
  kiln_status *status = search_and_keep(s);
  if (!status || kiln_status_ends(status)) return status;
  KILN_LOG(&s->tuner->env->log, compile, 1, "autotune: not searched: %s",
           kiln_status_report(status));
  kiln_status_destroy(status);
  return remember_none(s);
}

/* Under the lock of searches. */
static kiln_status *find_or_search(search *s, bool may_search) {
  kiln__tuner *t = s->tuner;
  kiln_schedule schedule;
  kiln_tuned about;
  if (is_asked(t, s->kernel)) return NULL;
  kiln_status *status = kiln__store_read(t, s->kernel, s->fn, s->arena, &schedule, &about);
  if (!status) return remember(t, s->kernel, kiln_schedule_print(&schedule, s->arena), &about);
  if (kiln_status_code(status) == KILN_NOT_FOUND) {
    kiln_status_destroy(status);
  } else {
    warn(t, status, "a schedule is not used");
  }
  if (t->mode == KILN__TUNE_USE) return remember_none(s);
  if (!may_search) return NULL; /* a later job may */
  return t->left_ns > 0 ? search_once(s) : remember_none(s);
}

static void give_search(void *tuner) { kiln_job_lock_give(&((kiln__tuner *)tuner)->searching); }

static kiln_status *tune(search *s, bool may_search) {
  kiln__tuner *t = s->tuner;
  s->arena = kiln_arena_scoped(t->env->mem);
  const kiln_str text = kiln_loop_print(s->fn, s->arena);
  s->kernel = kiln_digest_bytes(text.data, text.len);
  if (is_asked(t, s->kernel)) return NULL;
  KILN_TRY(kiln_job_lock_take(&t->searching, kiln_budget_current()));
  kiln_cleanup giving;
  kiln_scope_defer(&giving, give_search, t);
  kiln_status *status = find_or_search(s, may_search);
  kiln_scope_undefer(&giving);
  give_search(t);
  return status;
}
static kiln_status *try_tune(search *s, bool may_search) { KILN_PROTECT(tune(s, may_search)); }

/* What a schedule changes the bits of. */
static bool contracts(const kiln_loop_fn *fn) {
  bool any = false;
  for (int n = 0; n < fn->nests.count; n++) any |= kiln_loop_contracts(fn->nests.data[n]);
  return any;
}

uint64_t kiln_codegen_tune(kiln_codegen *codegen, const kiln_loop_fn *fn, const int64_t *symbols,
                           bool may_search) {
  kiln__tuner *t = kiln__codegen_tuner(codegen);
  if (t->mode == KILN__TUNE_OFF || (t->exact && contracts(fn))) return 0;
  kiln_budget *budget = kiln_budget_current();
  const uint64_t begin = kiln_now_ns(), allowed = may_search ? 2 * kernel_ns : 0;
  const bool ends = budget && budget->deadline_ns;
  if (ends) budget->deadline_ns += allowed;
  search s = {.codegen = codegen, .tuner = t, .fn = fn, .probe = {.symbols = symbols}};
  kiln_status *status = try_tune(&s, may_search);
  if (status)
    KILN_LOG(&t->env->log, compile, 1, "autotune: not searched: %s", kiln_status_report(status));
  kiln_status_destroy(status);
  const uint64_t spent = kiln_now_ns() - begin;
  if (ends) budget->deadline_ns -= spent < allowed ? allowed - spent : 0;
  return spent;
}
