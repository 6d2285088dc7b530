/* dump.c: the stages of a function as text: what `kiln graph` prints.
 *
 * A site is the function's own executor, one of the regions behind its guards, or one of its
 * groups. Regions print after the function, each variant with its depth, as PyTorch prints the
 * nested graphs of fallback functions. */
#include <stdio.h>

#include "jit/dump.h"

kiln_jit_stage kiln_jit_stage_find(kiln_str name) {
#define STAGE_NAME(id, text, meaning) \
  if (kiln_str_is(name, text)) return KILN_JIT_STAGE_##id;
  KILN_JIT_STAGE_LIST(STAGE_NAME)
#undef STAGE_NAME
  return KILN_JIT_STAGE__COUNT;
}

typedef struct dump {
  kiln__printer printer;
  kiln_function *function;
  kiln_jit_stage stage;
  kiln_str site;
  bool found;
} dump;

static void print_graph(kiln__printer *p, const kiln_graph *graph) {
  if (p->dot) {
    kiln_graph_print_dot(p->text, graph);
  } else {
    kiln_graph_print(p->text, graph, 4, false);
  }
}

/* -- Graphs, made again -- */

static void forget(void *printer) {
  kiln__printer *p = printer;
  kiln_program_destroy(&p->program);
  kiln_pass_runner_deinit(&p->runner);
  memset(&p->groups, 0, sizeof p->groups);
  p->variant = NULL;
}

void kiln__printer_begin(kiln__printer *p) { kiln_scope_defer(&p->forgetting, forget, p); }

void kiln__printer_end(kiln__printer *p) {
  kiln_scope_undefer(&p->forgetting);
  forget(p);
}

static void find_groups(kiln__printer *p, const kiln_block *block) {
  for (const kiln_node *n = block->first; n; n = n->next) {
    for (int b = 0; b < n->block_count; b++) find_groups(p, n->blocks[b]);
    if (!kiln_node_is_group(n)) continue;
    kiln_vec_push(p->runner.scratch, &p->groups, kiln_node_graph(n, "Subgraph"));
  }
}

/* Puts the graph of a stage of the variant into the printer. */
static kiln_status *make_again(kiln__printer *p, const kiln_executor *ex, const kiln_variant *v,
                               kiln_pipeline_id id) {
  if (p->variant == v && p->id == id) return NULL;
  forget(p);
  KILN_TRY(kiln_pass_runner_init(&p->runner, &p->jit->env, NULL));
  p->runner.groups_left -= v->first_group;
  KILN_TRY(kiln__program_make(ex, v->profile ? v : NULL, id, &p->runner, &p->program));
  kiln_graph *graph = p->program.graph;
  bool same = id != v->made_by || kiln__program_fingerprint(&p->program) == v->fingerprint;
  if (id == KILN_PIPELINE_profile) {
    same = kiln_profile_each(graph->top, NULL, NULL) == v->profile->count;
  }
  KILN_TRY(kiln__replace_fallbacks(graph->top, p->runner.scratch, NULL));
  find_groups(p, graph->top);
  p->variant = v;
  p->id = id;
  p->graph = same ? graph : NULL;
  return NULL;
}

static kiln_status *print_again(kiln__printer *p, const kiln_executor *ex, const kiln_variant *v,
                                kiln_pipeline_id id) {
  KILN_TRY(make_again(p, ex, v, id));
  if (p->graph) {
    print_graph(p, p->graph);
  } else {
    kiln_text_puts(p->text, "; passes were limited then: this graph is not made again\n");
  }
  return NULL;
}

/* -- Executors -- */

static void print_plan(kiln__printer *p, const kiln_plan *plan) {
  if (plan) kiln_plan_print(plan, p->text);
}

kiln_status *kiln__print_variant(kiln__printer *p, const kiln_executor *ex, const kiln_variant *v,
                                 kiln_jit_stage stage) {
  if (ex->base_depth > 0) {
    kiln_text_printf(p->text, "%s fallback_function, depth %d, %s:\n", p->dot ? "//" : ";",
                     v->depth,
                     v->made_by != KILN_PIPELINE_optimize ? "plain"
                     : v->guard                           ? "guarded"
                                                          : "unguarded");
  }
  switch (stage) {
    case KILN_JIT_STAGE_PROFILED:
      return v->profile ? print_again(p, ex, v, KILN_PIPELINE_profile) : NULL;
    case KILN_JIT_STAGE_OPTIMIZED: return print_again(p, ex, v, v->made_by);
    default: print_plan(p, v->plan); return NULL;
  }
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
    KILN_TRY(kiln__print_variant(&d->printer, ex, building, d->stage));
  } else if (!last_variant(ex) && ex->plain && !building) { /* without JIT */
    if (d->stage != KILN_JIT_STAGE_PROFILED) {
      KILN_TRY(kiln__print_variant(&d->printer, ex, ex->plain, d->stage));
    }
  } else if (!last_variant(ex)) {
    kiln_text_printf(d->printer.text, "; %s: %s\n", ex->callable.name,
                     building ? "profiling: not optimised yet" : "not called yet");
  }
  for (const kiln_variant *v = ex->variants; v; v = v->next) {
    KILN_TRY(kiln__print_variant(&d->printer, ex, v, d->stage));
  }
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

/* -- Groups -- */

kiln_status *kiln__print_group(kiln__printer *p, const kiln_group_info *g, kiln_jit_stage stage) {
  const kiln_executor *ex = (const kiln_executor *)g->site;
  KILN_TRY(make_again(p, ex, g->variant, KILN_PIPELINE_optimize));
  if (!p->graph || g->number >= p->groups.count) {
    kiln_text_printf(p->text, "; %s: passes were limited then: it is not made again\n", g->name);
    return NULL;
  }
  const kiln_graph *graph = p->groups.data[g->number];
  if (stage != KILN_JIT_STAGE_OPTIMIZED) {
    return kiln_group_dump(p->jit->codegen, g, graph, stage, p->text);
  }
  if (!p->dot) kiln_text_printf(p->text, "; %s %s\n", g->name, g->hash);
  print_graph(p, graph);
  return NULL;
}

/* A group where an executor's stage is asked for: its own graph, or what it is a part of. */
static kiln_status *print_group_stage(dump *d, const kiln_group_info *g) {
  if (d->stage != KILN_JIT_STAGE_OPTIMIZED) {
    return print_executor(d, (const kiln_executor *)g->site);
  }
  d->found = true;
  return kiln__print_group(&d->printer, g, d->stage);
}

static kiln_status *print_executors(dump *d, const kiln_executor *root) {
  bool nested = d->stage == KILN_JIT_STAGE_OPTIMIZED && d->site.len == 0;
  for (const kiln_executor *ex = d->printer.jit->now->executors.first; ex; ex = ex->next) {
    if (ex->root != root) continue;
    bool called = ex->variants || ex->building;
    if (ex == root ? d->site.len == 0 || matches(d, ex->site, site_hash(ex))
                   : (nested && called) || matches(d, ex->site, site_hash(ex))) {
      KILN_TRY(print_executor(d, ex));
    }
  }
  for (const kiln_group_info *g = d->printer.jit->now->groups.first; g && d->site.len && !d->found;
       g = g->next) {
    if (((const kiln_executor *)g->site)->root == root && matches(d, g->name, g->hash)) {
      KILN_TRY(print_group_stage(d, g));
    }
  }
  return NULL;
}

static kiln_status *print_groups(dump *d, const kiln_executor *root) {
  bool any = false;
  for (const kiln_group_info *g = d->printer.jit->now->groups.first; g; g = g->next) {
    const kiln_executor *ex = (const kiln_executor *)g->site;
    if (ex->root != root) continue;
    any = true;
    if (d->site.len && !matches(d, g->name, g->hash)) continue;
    d->found = true;
    KILN_TRY(kiln__print_group(&d->printer, g, d->stage));
  }
  if (!any) {
    d->found = d->found || d->site.len == 0;
    kiln_text_puts(d->printer.text, "; no groups\n");
  }
  return NULL;
}

/* -- All -- */

/* The function, or with "*" or a name also others of the archive. */
static kiln_status *print_frontend(dump *d) {
  KILN_TRY(kiln_unit_ensure(d->function));
  if (d->site.len == 0) {
    print_graph(&d->printer, d->function->graph);
    return NULL;
  }
  const kiln_unit *unit = d->printer.jit->unit;
  for (int i = 0; i < unit->all.count; i++) {
    kiln_function *f = unit->all.data[i];
    if (!matches(d, f->qualname, NULL)) continue;
    d->found = true;
    kiln_text_printf(d->printer.text, "%s %s:\n", d->printer.dot ? "//" : ";", f->qualname);
    char why[256] = ""; /* of our own: where the text cannot grow, the status would be lost */
    kiln_status *status = kiln_unit_ensure(f);
    if (status) snprintf(why, sizeof why, "%s", kiln_status_message(status));
    kiln_status_destroy(status);
    if (*why) kiln_text_printf(d->printer.text, "; %s\n", why);
    if (!*why) print_graph(&d->printer, f->graph);
  }
  return d->found ? NULL
                  : KILN_ERROR(KILN_NOT_FOUND, "no function '" KILN_STR_FMT "' in the archive",
                               KILN_STR_ARG(d->site));
}

static kiln_status *no_site(const dump *d) {
  kiln_text names = kiln_text_in(d->printer.text->arena);
  for (const kiln_group_info *g = d->printer.jit->now->groups.first; g; g = g->next) {
    if (((const kiln_executor *)g->site)->root->function != d->function) continue;
    kiln_text_printf(&names, "%s%s", names.len ? ", " : "; there are ", g->name);
  }
  for (const kiln_executor *ex = d->printer.jit->now->executors.first; ex; ex = ex->next) {
    if (ex->root->function != d->function || !ex->site) continue;
    kiln_text_printf(&names, "%s%s", names.len ? ", " : "; there are ", ex->site);
  }
  return KILN_ERROR(KILN_NOT_FOUND, "no group or region '" KILN_STR_FMT "' in %s" KILN_STR_FMT,
                    KILN_STR_ARG(d->site), d->function->qualname,
                    KILN_STR_ARG(kiln_text_str(&names)));
}

static kiln_status *print_all(dump *d) {
  if (d->stage == KILN_JIT_STAGE_FRONTEND) return print_frontend(d);
  bool called = false;
  for (const kiln_executor *ex = d->printer.jit->now->executors.first; ex; ex = ex->next) {
    if (ex->function != d->function) continue; /* one for each setting of the flags */
    called = true;
    if (ex->setting > 0 && d->site.len == 0 && !d->printer.dot)
      kiln_text_printf(d->printer.text, "; %s: for flags that were changed\n", ex->callable.name);
    if (kiln__is_of_groups(d->stage)) {
      KILN_TRY(print_groups(d, ex));
    } else {
      KILN_TRY(print_executors(d, ex));
    }
  }
  if (!called) kiln_text_printf(d->printer.text, "; %s: not called yet\n", d->function->qualname);
  return d->found || !d->site.len || !called ? NULL : no_site(d);
}

kiln_status *kiln_jit_dump(kiln_jit *jit, kiln_function *function, kiln_jit_stage stage,
                           kiln_str site, bool dot, kiln_text *text) {
  dump d = {.printer = {.jit = jit, .text = text, .dot = dot},
            .function = function,
            .stage = stage,
            .site = site};
  kiln_cleanup unlocking;
  KILN_TRY(kiln_job_lock_take(&jit->lock, NULL));
  kiln_scope_defer(&unlocking, kiln__jit_give_lock, jit);
  kiln__printer_begin(&d.printer);
  kiln_status *status = print_all(&d);
  kiln__printer_end(&d.printer);
  kiln_scope_undefer(&unlocking);
  kiln_job_lock_give(&jit->lock);
  return status;
}
