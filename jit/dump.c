/* dump.c: the stages of a function as text: what `kiln graph` prints.
 *
 * A site is the function's own executor, one of the regions behind its guards, or one of its
 * groups. Regions print after the function, each variant with its depth, as PyTorch prints the
 * nested graphs of fallback functions. */
#include <stdio.h>

#include "jit/compile_job.h"

kiln_jit_stage kiln_jit_stage_find(kiln_str name) {
#define STAGE_NAME(id, text, meaning) \
  if (kiln_str_is(name, text)) return KILN_JIT_STAGE_##id;
  KILN_JIT_STAGE_LIST(STAGE_NAME)
#undef STAGE_NAME
  return KILN_JIT_STAGE__COUNT;
}

typedef struct dump {
  kiln_jit *jit;
  kiln_function *function;
  kiln_jit_stage stage;
  kiln_str site;
  bool dot, found;
  kiln_text *text;
} dump;

static void print_graph(dump *d, const kiln_graph *graph) {
  if (d->dot) {
    kiln_graph_print_dot(d->text, graph);
  } else {
    kiln_graph_print(d->text, graph, 3, false);
  }
}

/* -- Profiled graphs: made again, with what was recorded -- */

typedef struct profiled {
  kiln_pass_runner runner;
  kiln_program program;
} profiled;

static void destroy(void *arg) {
  profiled *p = arg;
  kiln_program_destroy(&p->program);
  kiln_pass_runner_deinit(&p->runner);
}

static kiln_status *print_profiled(dump *d, const kiln_executor *ex, const kiln_variant *v) {
  profiled p = {0};
  kiln_cleanup destroying;
  KILN_TRY(kiln_pass_runner_init(&p.runner, &d->jit->env, NULL));
  kiln_scope_defer(&destroying, destroy, &p);
  kiln_status *status = kiln__instrument(ex, &p.runner, &p.program);
  if (!status && kiln_profile_each(p.program.graph->top, NULL, NULL) != v->profile->count) {
    kiln_text_puts(d->text, "; passes were limited then: this graph is not made again\n");
  } else if (!status) {
    kiln_profile_annotate(v->profile, p.program.graph);
    print_graph(d, p.program.graph);
  }
  kiln_scope_undefer(&destroying);
  destroy(&p);
  return status;
}

/* -- Executors -- */

static void print_plan(dump *d, const kiln_plan *plan) {
  if (plan) kiln_plan_print(plan, d->text);
}

static kiln_status *print_variant(dump *d, const kiln_executor *ex, const kiln_variant *v) {
  if (ex->base_depth > 0) {
    kiln_text_printf(d->text, "%s fallback_function, depth %d, %s:\n", d->dot ? "//" : ";",
                     v->depth,
                     v->is_simple ? "plain"
                     : v->guard   ? "guarded"
                                  : "unguarded");
  }
  switch (d->stage) {
    case KILN_JIT_STAGE_PROFILED: return v->profile ? print_profiled(d, ex, v) : NULL;
    case KILN_JIT_STAGE_OPTIMIZED: print_graph(d, v->shown.graph); return NULL;
    default: print_plan(d, kiln__variant_plan(v)); return NULL;
  }
}

kiln_status *kiln__dump_variant(const kiln_executor *ex, const kiln_variant *v,
                                kiln_jit_stage stage, kiln_text *text) {
  dump d = {.jit = ex->jit, .stage = stage, .text = text};
  return print_variant(&d, ex, v);
}

static const kiln_variant *last_variant(const kiln_executor *ex) {
  const kiln_variant *v = ex->variants;
  while (v && v->next) v = v->next;
  return v;
}

static kiln_status *print_executor(dump *d, const kiln_executor *ex) {
  d->found = true;
  const kiln_variant *building = ex->building;
  if (d->stage == KILN_JIT_STAGE_PROFILED && building && building->profile) {
    KILN_TRY(print_variant(d, ex, building));
  } else if (!last_variant(ex) && ex->plain && !building) { /* without JIT */
    if (d->stage == KILN_JIT_STAGE_OPTIMIZED) print_graph(d, ex->plain->shown.graph);
    if (d->stage == KILN_JIT_STAGE_BYTECODE) print_plan(d, ex->plain->shown.plan);
  } else if (!last_variant(ex)) {
    kiln_text_printf(d->text, "; %s: %s\n", ex->callable.name,
                     building ? "profiling: not optimised yet" : "not called yet");
  }
  for (const kiln_variant *v = ex->variants; v; v = v->next) KILN_TRY(print_variant(d, ex, v));
  return NULL;
}

static bool matches(const dump *d, const char *name, const char *hash) {
  if (d->site.len == 0) return false;
  if (kiln_str_is(d->site, "*") || (name && kiln_str_is(d->site, name))) return true;
  if (hash && strncmp(hash, d->site.data, d->site.len) == 0) return true;
  const char *last = name ? strrchr(name, '/') : NULL; /* forward/TensorExprGroup_0 */
  return last && kiln_str_is(d->site, last + 1);
}

static const char *site_hash(const kiln_executor *ex) {
  const char *mark = ex->site ? strrchr(ex->site, '#') : NULL;
  return mark ? mark + 1 : NULL;
}

/* A group where an executor's stage is asked for: its own graph, or what it is a part of. */
static kiln_status *print_group_stage(dump *d, const kiln_group_record *g) {
  if (d->stage != KILN_JIT_STAGE_OPTIMIZED) {
    return print_executor(d, (const kiln_executor *)g->site);
  }
  if (!g->graph) return NULL;
  d->found = true;
  if (!d->dot) kiln_text_printf(d->text, "; %s %s\n", g->name, g->hash);
  print_graph(d, g->graph);
  return NULL;
}

static kiln_status *print_executors(dump *d, const kiln_executor *root) {
  bool nested = d->stage == KILN_JIT_STAGE_OPTIMIZED && d->site.len == 0;
  for (const kiln_executor *ex = d->jit->executors.first; ex; ex = ex->next) {
    if (ex->root != root) continue;
    bool called = ex->variants || ex->building;
    if (ex == root ? d->site.len == 0 || matches(d, ex->site, site_hash(ex))
                   : (nested && called) || matches(d, ex->site, site_hash(ex))) {
      KILN_TRY(print_executor(d, ex));
    }
  }
  for (const kiln_group_record *g = d->jit->groups.first; g && d->site.len && !d->found;
       g = g->next) {
    if (((const kiln_executor *)g->site)->root == root && matches(d, g->name, g->hash)) {
      KILN_TRY(print_group_stage(d, g));
    }
  }
  return NULL;
}

/* -- Groups -- */

static kiln_status *print_groups(dump *d, const kiln_executor *root) {
  bool any = false;
  for (const kiln_group_record *g = d->jit->groups.first; g; g = g->next) {
    const kiln_executor *ex = (const kiln_executor *)g->site;
    if (ex->root != root) continue;
    any = true;
    if (d->site.len && !matches(d, g->name, g->hash)) continue;
    d->found = true;
    if (d->stage == KILN_JIT_STAGE_LOOP) {
      kiln_text_printf(d->text, "; %s %s\n", g->name, g->hash);
    }
    KILN_TRY(kiln_group_dump(d->jit->codegen, g, d->stage, d->text));
  }
  if (!any) {
    d->found = d->found || d->site.len == 0;
    kiln_text_puts(d->text, "; no groups\n");
  }
  return NULL;
}

/* -- All -- */

/* The function, or with "*" or a name also others of the archive. */
static kiln_status *print_frontend(dump *d) {
  KILN_TRY(kiln_unit_ensure(d->function));
  if (d->site.len == 0) {
    print_graph(d, d->function->graph);
    return NULL;
  }
  const kiln_unit *unit = d->jit->unit;
  for (int i = 0; i < unit->all.count; i++) {
    kiln_function *f = unit->all.data[i];
    if (!matches(d, f->qualname, NULL)) continue;
    d->found = true;
    kiln_text_printf(d->text, "%s %s:\n", d->dot ? "//" : ";", f->qualname);
    char why[256] = ""; /* of our own: where the text cannot grow, the status would be lost */
    kiln_status *status = kiln_unit_ensure(f);
    if (status) snprintf(why, sizeof why, "%s", kiln_status_message(status));
    kiln_status_destroy(status);
    if (*why) kiln_text_printf(d->text, "; %s\n", why);
    if (!*why) print_graph(d, f->graph);
  }
  return d->found ? NULL
                  : KILN_ERROR(KILN_NOT_FOUND, "no function '" KILN_STR_FMT "' in the archive",
                               KILN_STR_ARG(d->site));
}

static kiln_status *no_site(const dump *d, const kiln_executor *root) {
  kiln_text names;
  kiln_text_init(&names, d->text->arena);
  for (const kiln_group_record *g = d->jit->groups.first; g; g = g->next) {
    if (((const kiln_executor *)g->site)->root != root) continue;
    kiln_text_printf(&names, "%s%s", names.len ? ", " : "; there are ", g->name);
  }
  for (const kiln_executor *ex = d->jit->executors.first; ex; ex = ex->next) {
    if (ex->root != root || !ex->site) continue;
    kiln_text_printf(&names, "%s%s", names.len ? ", " : "; there are ", ex->site);
  }
  return KILN_ERROR(KILN_NOT_FOUND, "no group or region '" KILN_STR_FMT "' in %s" KILN_STR_FMT,
                    KILN_STR_ARG(d->site), d->function->qualname,
                    KILN_STR_ARG(kiln_text_str(&names)));
}

static kiln_status *print_all(dump *d) {
  if (d->stage == KILN_JIT_STAGE_FRONTEND) return print_frontend(d);
  const kiln_executor *root = NULL;
  for (const kiln_executor *ex = d->jit->executors.first; ex && !root; ex = ex->next) {
    if (ex->function == d->function) root = ex;
  }
  if (!root) {
    kiln_text_printf(d->text, "; %s: not called yet\n", d->function->qualname);
    return NULL;
  }
  if (d->stage == KILN_JIT_STAGE_LOOP || d->stage == KILN_JIT_STAGE_LLVM ||
      d->stage == KILN_JIT_STAGE_ASM) {
    KILN_TRY(print_groups(d, root));
  } else {
    KILN_TRY(print_executors(d, root));
  }
  return d->found || !d->site.len ? NULL : no_site(d, root);
}

kiln_status *kiln_jit_dump(kiln_jit *jit, kiln_function *function, kiln_jit_stage stage,
                           kiln_str site, bool dot, kiln_text *text) {
  dump d = {jit, function, stage, site, dot, false, text};
  kiln_cleanup unlocking;
  KILN_TRY(kiln_job_lock_take(&jit->lock, NULL));
  kiln_scope_defer(&unlocking, kiln__jit_give_lock, jit);
  kiln_status *status = print_all(&d);
  kiln_scope_undefer(&unlocking);
  kiln_job_lock_give(&jit->lock);
  return status;
}
