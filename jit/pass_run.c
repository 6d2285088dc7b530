/* pass_run.c: the pass runner. */
#include "jit/pass_run.h"

#include "base/budget.h"
#include "codegen/codegen.h"
#include "guards/guards.h"
#include "jit/fusion.h"
#include "profiler/profile.h"

/* -- Tables -- */

const kiln_pass_info kiln_pass_table[] = {
#define KEEPS(what) KILN_KEEPS_##what
#define KILN_PASS(name, meaning, fn, keeps) {#name, meaning, fn, keeps},
#include "jit/passes.def"
#undef KILN_PASS
#undef KEEPS
};

#define STEP(name) KILN_PASS_##name,
#define KILN_PIPELINE(name, meaning, steps) static const uint8_t steps_##name[] = {steps};
#include "jit/pipelines.def"
#undef KILN_PIPELINE
#undef STEP
const kiln_pipeline_info kiln_pipeline_table[] = {
#define KILN_PIPELINE(name, meaning, steps) {#name, meaning, sizeof steps_##name, steps_##name},
#include "jit/pipelines.def"
#undef KILN_PIPELINE
};
_Static_assert(KILN_PASS__COUNT <= UINT8_MAX, "a step is a byte");

static kiln_pass_id find_pass(kiln_str name) {
  kiln_pass_id id = 0;
  while (id < KILN_PASS__COUNT && !kiln_str_is(name, kiln_pass_table[id].name)) id++;
  return id;
}

static kiln_pipeline_id find_pipeline(kiln_str name) {
  kiln_pipeline_id id = 0;
  while (id < KILN_PIPELINE__COUNT && !kiln_str_is(name, kiln_pipeline_table[id].name)) id++;
  return id;
}

/* Cuts the text before the first `separator` off *rest, without spaces around it. */
static kiln_str cut(kiln_str *rest, char separator) {
  const char *end = memchr(rest->data, separator, rest->len);
  size_t len = end ? (size_t)(end - rest->data) : rest->len;
  kiln_str word = kiln_str_make(rest->data, len);
  size_t used = end ? len + 1 : len;
  *rest = kiln_str_make(rest->data + used, rest->len - used);
  while (word.len && word.data[0] == ' ') word.data++, word.len--;
  while (word.len && word.data[word.len - 1] == ' ') word.len--;
  return word;
}

/* -- Making a runner -- */

kiln_status *kiln_pass_quota_init(kiln_pass_quota *quota, const kiln_env *env) {
  quota->fold_left = (uint64_t)env->flags.fold_memory;
  for (int i = 0; i < KILN_PASS__COUNT; i++) quota->runs[i] = UINT32_MAX;
  kiln_str rest = kiln_str_from(env->flags.pass_limit.text);
  while (rest.len) {
    kiln_str entry = cut(&rest, ',');
    kiln_str name = cut(&entry, '=');
    kiln_pass_id id = find_pass(name);
    int64_t limit;
    if (id == KILN_PASS__COUNT || !kiln_str_parse_i64(entry, &limit) || limit < 0 ||
        limit >= UINT32_MAX) {
      return KILN_ERROR(KILN_INVALID_ARGUMENT,
                        "pass_limit is a list of pass=count, and '" KILN_STR_FMT
                        "' is not such a pair (kiln list passes shows the names)",
                        KILN_STR_ARG(name));
    }
    quota->runs[id] = (uint32_t)limit;
  }
  return NULL;
}

static bool lowers(const kiln_graph *group) {
  kiln_arena *scratch = kiln_arena_scoped(kiln_arena_mem(group->arena));
  kiln_reason reason;
  kiln_loop_fn *fn;
  kiln_status *status = kiln_codegen_lower(group, KILN_FACTORS_F32, scratch, &reason, &fn);
  const bool good = status == NULL;
  kiln_status_destroy(status);
  kiln_arena_destroy(scratch);
  return good;
}

kiln_status *kiln_pass_runner_init(kiln_pass_runner *r, kiln_env *env, kiln_pass_quota *quota) {
  *r = (kiln_pass_runner){.env = env,
                          .verify = env->flags.verify,
                          .groups_left = env->flags.max_groups,
                          .quota = quota ? quota : &r->own};
#ifndef NDEBUG
  r->verify = true;
#endif
  if (!quota) KILN_TRY(kiln_pass_quota_init(&r->own, env));
  KILN_TRY(kiln_call_create(env, &r->call));
  kiln_status *status = kiln_arena_create(env->mem, &r->scratch);
  if (status) kiln_pass_runner_deinit(r);
  return status;
}

void kiln_pass_runner_deinit(kiln_pass_runner *r) {
  kiln_call_destroy(r->call);
  kiln_arena_destroy(r->scratch);
  r->call = NULL;
  r->scratch = NULL;
}

/* -- Running one -- */

typedef struct pass_job {
  kiln_pass_runner *runner;
  const kiln_pass_info *info;
  kiln_pass pass;
  kiln_map types; /* value -> type before the pass, for KEEPS(shapes) */
  kiln_str before;
} pass_job;

static kiln_str print(const pass_job *job) {
  kiln_text text = kiln_text_in(job->pass.scratch);
  kiln_graph_print(&text, job->pass.graph, 4, false);
  return kiln_text_str(&text);
}

static void remember_types(pass_job *job, const kiln_block *block) {
  for (int i = 0; i < block->param->output_count; i++) {
    kiln_map_set_ptr(&job->types, block->param->outputs[i], (void *)block->param->outputs[i]->type);
  }
  for (const kiln_node *n = block->first; n; n = n->next) {
    for (int i = 0; i < n->output_count; i++) {
      kiln_map_set_ptr(&job->types, n->outputs[i], (void *)n->outputs[i]->type);
    }
    for (int b = 0; b < n->block_count; b++) remember_types(job, n->blocks[b]);
  }
}

/* KEEPS(shapes): values that are still there say as much about themselves as before. */
static kiln_status *check_types(const pass_job *job, const kiln_block *block) {
  for (const kiln_node *n = block->first; n; n = n->next) {
    for (int i = 0; i < n->output_count; i++) {
      const kiln_type *before = kiln_map_find_ptr(&job->types, n->outputs[i]);
      if (before && !kiln_type_is_subtype(n->outputs[i]->type, before)) {
        return KILN_ERROR(KILN_INTERNAL,
                          "pass %s keeps shapes, but lost the type of a value of " KILN_STR_FMT,
                          job->info->name, KILN_STR_ARG(n->name));
      }
    }
    for (int b = 0; b < n->block_count; b++) KILN_TRY(check_types(job, n->blocks[b]));
  }
  return NULL;
}

static kiln_status *check_reparse(pass_job *job, kiln_str text) {
  kiln_graph *graph;
  kiln_cleanup releasing;
  KILN_TRY_NOTE(kiln_graph_parse(kiln_arena_mem(job->pass.graph->arena), job->pass.graph->registry,
                                 job->pass.graph->types, text, &graph),
                "reparsing the graph after pass %s", job->info->name);
  kiln_graph_defer(graph, &releasing);
  kiln_text again = kiln_text_in(job->pass.scratch);
  kiln_graph_print(&again, graph, 4, false);
  kiln_scope_undefer(&releasing);
  kiln_graph_release(graph);
  if (!kiln_str_equal(kiln_text_str(&again), text)) {
    return KILN_ERROR(KILN_INTERNAL, "after pass %s the graph reads back differently",
                      job->info->name);
  }
  return NULL;
}

/* Tensors print as <Tensor>, and pointers do not print: such graphs cannot be read back. */
static bool has_text_form(const kiln_block *block) {
  for (const kiln_node *n = block->first; n; n = n->next) {
    for (const kiln_attr *a = n->attrs; a; a = a->next) {
      if (a->kind == KILN_ATTR_POINTER) return false;
      if (a->kind == KILN_ATTR_VALUE && a->u.value.tag >= KILN_TAG__COUNTED &&
          a->u.value.tag != KILN_TAG_STRING) {
        return false;
      }
      if (a->kind == KILN_ATTR_GRAPH && !has_text_form(a->u.graph->top)) return false;
    }
    for (int b = 0; b < n->block_count; b++) {
      if (!has_text_form(n->blocks[b])) return false;
    }
  }
  return true;
}

static kiln_status *check_after(pass_job *job) {
  kiln_graph *graph = job->pass.graph;
  kiln_str after = print(job);
  KILN_TRY_NOTE(kiln_graph_verify(graph), "after pass %s", job->info->name);
  if (!job->pass.changed && !kiln_str_equal(job->before, after)) {
    return KILN_ERROR(KILN_INTERNAL, "pass %s changed the graph without saying so",
                      job->info->name);
  }
  if (job->pass.changed && job->info->keeps == KILN_KEEPS_graph) {
    return KILN_ERROR(KILN_INTERNAL, "the analysis %s changed the graph", job->info->name);
  }
  if (job->info->keeps == KILN_KEEPS_shapes) KILN_TRY(check_types(job, graph->top));
  bool reparse = job->runner->env->flags.verify && has_text_form(graph->top);
  return reparse ? check_reparse(job, after) : NULL;
}

static kiln_status *run_pass(pass_job *job) {
  if (job->runner->verify) {
    job->before = print(job);
    job->types = kiln_map_in(job->pass.scratch);
    remember_types(job, job->pass.graph->top);
  }
  uint64_t start = kiln_now_ns();
  kiln_status *status = job->info->fn(&job->pass);
  job->runner->ns[job->info - kiln_pass_table] += kiln_now_ns() - start;
  if (status) return kiln_status_note(status, "in pass %s", job->info->name);
  if (job->runner->verify) KILN_TRY(check_after(job));
  const kiln_log *log = &job->runner->env->log;
  if (job->pass.changed && kiln_log_on(log, KILN_LOG_pass, 1)) {
    kiln_str text = kiln_log_on(log, KILN_LOG_pass, 2) ? print(job) : KILN_STR("");
    KILN_LOG(log, pass, 1, "%s changed the graph%s" KILN_STR_FMT, job->info->name,
             text.len ? ":\n" : "", KILN_STR_ARG(text));
  }
  return NULL;
}

/* False: none is left. */
static bool take_run(kiln_pass_quota *quota, kiln_pass_id id) {
  uint32_t left = __atomic_load_n(&quota->runs[id], __ATOMIC_RELAXED);
  while (left != 0 && left != UINT32_MAX &&
         !__atomic_compare_exchange_n(&quota->runs[id], &left, left - 1, true, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED)) {
  }
  return left != 0;
}

kiln_status *kiln_pass_run(kiln_pass_runner *r, kiln_graph *graph, kiln_pass_id id) {
  KILN_TRY(kiln_budget_check(kiln_budget_current(), 0));
  if (!take_run(r->quota, id)) return NULL;
  pass_job job = {.runner = r,
                  .info = &kiln_pass_table[id],
                  .pass = {.graph = graph,
                           .scratch = r->scratch,
                           .env = r->env,
                           .call = r->call,
                           .fold_left = &r->quota->fold_left,
                           .groups_left = r->groups_left,
                           .context = r->context,
                           .lowers = lowers,
                           .report = r->report,
                           .refuse = r->refuse}};
  kiln_status *status = run_pass(&job);
  kiln_arena_reset(r->scratch);
  if (job.pass.changed) r->changes[id]++;
  return status;
}

kiln_status *kiln_pipeline_run(kiln_pass_runner *r, kiln_graph *graph, kiln_pipeline_id id) {
  const kiln_pipeline_info *info = &kiln_pipeline_table[id];
  for (int i = 0; i < info->step_count; i++) {
    KILN_TRY_NOTE(kiln_pass_run(r, graph, info->steps[i]), "in pipeline %s", info->name);
  }
  return NULL;
}

static uint64_t changes_of(const kiln_pass_runner *r) {
  uint64_t sum = 0;
  for (int i = 0; i < KILN_PASS__COUNT; i++) sum += r->changes[i];
  return sum;
}

kiln_status *kiln_pipeline_settle(kiln_pass_runner *r, kiln_graph *graph, kiln_pipeline_id id) {
  enum { MAX_ROUNDS = 64 };
  for (int round = 0; round < MAX_ROUNDS; round++) {
    const uint64_t before = changes_of(r);
    KILN_TRY(kiln_pipeline_run(r, graph, id));
    if (changes_of(r) == before) break;
  }
  return NULL;
}

kiln_status *kiln_pass_run_names(kiln_pass_runner *r, kiln_graph *graph, kiln_str names) {
  while (names.len) {
    kiln_str name = cut(&names, ',');
    kiln_pass_id pass = find_pass(name);
    kiln_pipeline_id pipeline = find_pipeline(name);
    if (pass < KILN_PASS__COUNT) {
      KILN_TRY(kiln_pass_run(r, graph, pass));
    } else if (pipeline < KILN_PIPELINE__COUNT) {
      KILN_TRY(kiln_pipeline_run(r, graph, pipeline));
    } else {
      return KILN_ERROR(KILN_NOT_FOUND,
                        "no pass or pipeline '" KILN_STR_FMT "' (kiln list passes shows them)",
                        KILN_STR_ARG(name));
    }
  }
  return NULL;
}
