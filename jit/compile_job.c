/* compile_job.c: running compile jobs, and what is told of them. */
#include "jit/compile_job.h"

enum { MAX_REFUSALS = 4096 };

/* -- Refusals -- */

static void log_refusal(const kiln_jit *jit, const kiln_jit_refusal *r) {
  KILN_LOG(&jit->env.log, fusion, 1, "%s: %s%s%s", r->site, r->detail, *r->detail ? ": " : "",
           kiln_reason_sentence(r->reason));
}

/* Adds to the counts; bounded. Under the model's lock; texts are copied. */
static kiln_status *add_refusal(kiln_jit *jit, const kiln_jit_refusal *given) {
  uint64_t hash =
      kiln_hash_mix(jit->refusal_index.seed + (uint64_t)given->loc.line, (uint64_t)given->reason);
  hash = kiln_hash_bytes(kiln_hash_bytes(hash, given->site, strlen(given->site)), given->detail,
                         strlen(given->detail));
  kiln_refusal *same_hash = kiln_map_find_id(&jit->refusal_index, hash);
  for (kiln_refusal *r = same_hash; r; r = r->same_hash) {
    if (r->public.reason == given->reason && r->public.loc.line == given->loc.line &&
        strcmp(r->public.site, given->site) == 0 && strcmp(r->public.detail, given->detail) == 0) {
      r->public.count++;
      return NULL;
    }
  }
  if (jit->refusals.count >= MAX_REFUSALS) return NULL;
  kiln_refusal *r = KILN_NEW(jit->arena, kiln_refusal);
  r->public = *given;
  r->public.site = kiln__jit_site(jit, given->site);
  r->public.detail = kiln_arena_strdup(jit->arena, given->detail);
  if (given->loc.file) r->public.loc.file = kiln_arena_strdup(jit->arena, given->loc.file);
  r->public.count = 1;
  r->same_hash = same_hash;
  kiln_vec_push(jit->arena, &jit->refusals, r);
  kiln_map_set_id(&jit->refusal_index, hash, r);
  return NULL;
}
/* Without memory it is not told. */
static kiln_status *try_add_refusal(kiln_jit *jit, const kiln_jit_refusal *given) {
  KILN_PROTECT(add_refusal(jit, given));
}

void kiln__jit_refuse(const kiln_executor *ex, kiln_reason reason, const char *detail) {
  const kiln_jit_refusal refusal = {
      .site = ex->site ? ex->site : "", .reason = reason, .detail = detail};
  log_refusal(ex->jit, &refusal);
  if (!kiln_job_lock_look(&ex->jit->lock)) return;
  kiln_status_destroy(try_add_refusal(ex->jit, &refusal));
  kiln_job_lock_give(&ex->jit->lock);
}

void kiln__job_refuse(kiln_compile_job *job, kiln_reason reason, const char *detail,
                      kiln_source_loc loc) {
  const kiln_jit_refusal refusal = {.site = job->site,
                                    .reason = reason,
                                    .detail = kiln_arena_strdup(job->arena, detail),
                                    .loc = loc};
  log_refusal(job->jit, &refusal);
  kiln_vec_push(job->arena, &job->refusals, refusal);
}

static void refuse_node(kiln_pass *pass, const kiln_node *node, kiln_reason reason,
                        const char *detail) {
  const kiln_source_loc loc =
      node && node->range ? kiln_source_range_loc(node->range) : (kiln_source_loc){0};
  kiln__job_refuse(pass->context, reason, detail ? detail : "", loc);
}

/* -- Lists -- */

#define DEFINE_APPEND(function, list_type)                         \
  void function(list_type *list, list_type more) {                 \
    if (!more.first) return;                                       \
    *(list->last ? &list->last->next : &list->first) = more.first; \
    list->last = more.last;                                        \
  }
DEFINE_APPEND(kiln__executors_append, kiln_executor_list)
DEFINE_APPEND(kiln_groups_append, kiln_group_list)
#undef DEFINE_APPEND

/* -- Slots -- */

static kiln_group_slot *add_slot(kiln_jit *jit, kiln_executor *root) {
  const kiln_function *function = root->function;
  /* What its name has behind the function's: "@2". */
  const char *setting = function ? root->callable.name + strlen(function->qualname) : "";
  kiln_cleanup unlocking;
  kiln_status *status = kiln_job_lock_take(&jit->lock, NULL);
  if (status) kiln_scope_fail(status);
  kiln_scope_defer(&unlocking, kiln__jit_give_lock, jit);
  const char *name = kiln_arena_printf(
      root->of->arena, KILN_STR_FMT "%s/TensorExprGroup_%d",
      KILN_STR_ARG(function ? function->name : kiln_str_from(root->callable.name)), setting,
      root->slots.count);
  kiln_group_slot *first = kiln_map_find(&jit->slots, kiln_str_from(name)), *slot = first;
  while (slot && slot->is_used) slot = slot->same_name;
  if (!slot) {
    slot = KILN_NEW(jit->arena, kiln_group_slot);
    slot->name = kiln_arena_strdup(jit->arena, name);
    slot->runs = kiln_counter_book_new(&jit->book, 1);
    slot->same_name = first;
    kiln_map_set(&jit->slots, kiln_str_from(slot->name), slot);
    kiln_vec_push(jit->arena, &jit->all_slots, slot);
  }
  kiln_vec_push(root->of->arena, &root->slots, slot);
  kiln_scope_undefer(&unlocking);
  kiln_job_lock_give(&jit->lock);
  return slot;
}

kiln_group_slot *kiln__job_slot(kiln_compile_job *job) {
  kiln_executor *root = job->ex->root;
  while (job->slot_count < root->slots.count) {
    kiln_group_slot *slot = root->slots.data[job->slot_count++];
    if (!slot->is_used) return slot;
  }
  job->slot_count++;
  return add_slot(job->jit, root);
}

/* The groups are to be published. */
static void take_slots(const kiln_compile_job *job) {
  kiln_counter_book *book = &job->jit->book;
  for (kiln_group_info *g = job->groups.first; g; g = g->next) {
    g->slot->is_used = true;
    memcpy(g->slot->hash, g->hash, sizeof g->slot->hash);
    g->before.runs = kiln_counter_sum(book, g->runs);
    g->before.hits = kiln_counter_sum(book, g->hits);
    g->before.misses = kiln_counter_sum(book, g->misses);
  }
}

/* -- Jobs -- */

static kiln_status *begin(kiln_compile_job *job) {
  job->jit = job->ex->jit;
  job->site = "";
  KILN_TRY(kiln_arena_create(job->jit->env.mem, &job->arena));
  KILN_TRY(kiln_arena_create(job->jit->env.mem, &job->loops));
  KILN_TRY(kiln_pass_runner_init(&job->runner, &job->jit->env, &job->jit->quota));
  job->runner.context = job;
  job->runner.refuse = refuse_node;
  job->runner.groups_left -= __atomic_load_n(&job->ex->root->group_count, __ATOMIC_RELAXED);
  job->scratch = job->runner.scratch;
  return NULL;
}

static kiln_status *make_in_arena(kiln_compile_job *job, kiln_compile_step *make) {
  job->v = KILN_NEW(job->arena, kiln_variant);
  job->v->depth = job->depth;
  job->v->first_group = __atomic_load_n(&job->ex->root->group_count, __ATOMIC_RELAXED);
  return make(job);
}
static kiln_status *try_make(kiln_compile_job *job, kiln_compile_step *make) {
  KILN_PROTECT(make_in_arena(job, make));
}

/* Whether it was made or not; what was published is not the job's any more. */
static void end(kiln_compile_job *job) {
  if (job->arena) { /* not published */
    if (job->v) kiln__variant_deinit(job->v);
    kiln_program_destroy(&job->source);
    for (kiln_executor *ex = job->executors.first; ex; ex = ex->next) kiln__executor_deinit(ex);
    kiln_groups_release(job->groups);
    kiln_arena_destroy(job->arena);
  }
  kiln_program_destroy(&job->program);
  kiln_program_destroy(&job->other);
  kiln_arena_destroy(job->loops);
  kiln_pass_runner_deinit(&job->runner);
}

static kiln_status *link_all(kiln_compile_job *job, void (*publish)(kiln_compile_job *job)) {
  kiln_jit *jit = job->jit;
  kiln_kept_arena *kept = KILN_NEW(job->arena, kiln_kept_arena);
  kiln_cleanup unlocking;
  KILN_TRY(kiln_job_lock_take(&jit->lock, NULL));
  kiln_scope_defer(&unlocking, kiln__jit_give_lock, jit);
  job->site = kiln__jit_site(jit, job->site); /* from here on nothing fails */
  kiln_scope_undefer(&unlocking);
  kiln_generation *of = job->ex->of;
  *kept = (kiln_kept_arena){of->kept, job->arena};
  of->kept = kept;
  job->v->arena = job->arena;
  take_slots(job);
  kiln__executors_append(&of->executors, job->executors);
  kiln_groups_append(&of->groups, job->groups);
  __atomic_fetch_add(&job->ex->root->group_count, job->group_count, __ATOMIC_RELAXED);
  if ((uint32_t)job->depth > jit->max_depth) jit->max_depth = (uint32_t)job->depth;
  publish(job);
  for (int i = 0; i < job->refusals.count; i++) {
    kiln_status_destroy(try_add_refusal(jit, &job->refusals.data[i]));
  }
  job->arena = NULL;
  kiln_job_lock_give(&jit->lock);
  return NULL;
}
static kiln_status *try_link(kiln_compile_job *job, void (*publish)(kiln_compile_job *job)) {
  KILN_PROTECT(link_all(job, publish));
}

kiln_status *kiln__job_run(kiln_compile_job *job, kiln_compile_step *make,
                           void (*publish)(kiln_compile_job *job)) {
  kiln_timeline *timeline = job->ex->jit->env.timeline;
  const uint64_t began = kiln_timeline_now(timeline);
  kiln_status *status = begin(job);
  if (!status) status = try_make(job, make);
  const kiln_timeline_arg args[] = {{"depth", .number = job->depth},
                                    {"groups", .number = job->group_count}};
  if (!status) status = try_link(job, publish);
  kiln_timeline_span(timeline, KILN_EVENT_compile, job->ex->callable.name, began, 2, args);
  end(job);
  return status;
}
