/* debug.c: what include/kiln/debug.h declares: tables, passes over text, stages of graphs. */
#include "kiln/debug.h"

#include <stdio.h>

#include "api/internal.h"
#include "codegen/codegen.h"
#include "jit/pass_run.h"

/* -- Tables -- */

typedef struct lister {
  kiln_context *context;
  kiln_debug_row_fn row;
  void *user;
} lister;

#define ROW(l, ...) KILN__ROW((l)->row, (l)->user, __VA_ARGS__)

static void list_passes(const lister *l) {
  static const char *const keeps[] = {"", "shapes", "graph"};
  ROW(l, "name", "keeps", "meaning");
  for (int i = 0; i < KILN_PASS__COUNT; i++) {
    const kiln_pass_info *p = &kiln_pass_table[i];
    ROW(l, p->name, keeps[p->keeps], p->meaning);
  }
  for (int i = 0; i < KILN_PIPELINE__COUNT; i++) {
    const kiln_pipeline_info *p = &kiln_pipeline_table[i];
    ROW(l, p->name, "", p->meaning);
  }
}

static void list_events(const lister *l) {
  static const char *const places[] = {
      [KILN_IN_TRACE] = "trace", [KILN_IN_LINES] = "events", [KILN_IN_ALL] = "trace, events"};
  ROW(l, "event", "told by", "meaning");
#define EVENT(name, where, meaning) ROW(l, #name, places[KILN_IN_##where], meaning);
  KILN_EVENTS(EVENT)
#undef EVENT
}

static void list_reasons(const lister *l) {
  ROW(l, "name", "sentence");
  for (int i = 0; i < KILN_REASON__COUNT; i++) {
    ROW(l, kiln_reason_id((kiln_reason)i), kiln_reason_sentence((kiln_reason)i));
  }
}

static void list_channels(const lister *l) {
  ROW(l, "name", "meaning");
#define LIST_CHANNEL(name, meaning) ROW(l, #name, meaning);
  KILN_LOG_CHANNELS(LIST_CHANNEL)
#undef LIST_CHANNEL
}

static void describe_values(const kiln_flag_info *f, char *values, size_t size) {
  switch (f->type) {
    case KILN_FLAG_BOOL: snprintf(values, size, "on|off"); break;
    case KILN_FLAG_ENUM: snprintf(values, size, "%s", f->words); break;
    case KILN_FLAG_STRATEGY: snprintf(values, size, "STATIC,n;DYNAMIC,n"); break;
    case KILN_FLAG_STRING: snprintf(values, size, "text"); break;
    default:
      if (f->max >= INT32_MAX) {
        snprintf(values, size, "%lld...", (long long)f->min);
      } else {
        snprintf(values, size, "%lld...%lld", (long long)f->min, (long long)f->max);
      }
  }
}

static void list_flags(const lister *l) {
  const kiln_env env = kiln__context_env(l->context);
  ROW(l, "variable", "option", "value", "source", "default", "values", "meaning");
  for (int i = 0; i < kiln_flag_count; i++) {
    const kiln_flag_info *f = &kiln_flag_table[i];
    char variable[80], values[64], value[KILN_FLAG_STRING_MAX];
    snprintf(variable, sizeof variable, "KILN_%s", f->name);
    for (char *c = variable; *c; c++) {
      if (*c >= 'a' && *c <= 'z') *c = (char)(*c - 'a' + 'A');
    }
    kiln_flags_print(&env.flags, f, value, sizeof value);
    describe_values(f, values, sizeof values);
    const char *source = env.from_options >> i & 1       ? "option"
                         : env.from_environment >> i & 1 ? "environment"
                                                         : "default";
    ROW(l, variable, f->name, value, source, f->default_text, values, f->meaning);
  }
}

static const char *cost_name(kiln_op_cost cost) {
  static const char *const names[] = {"",          "free",      "metadata", "view",
                                      "pointwise", "reduction", "heavy",    "data"};
  return (unsigned)cost < sizeof names / sizeof names[0] ? names[cost] : "";
}

static const char *quant_name(kiln_quant_way way) {
  static const char *const names[] = {"", "keeps", "moves", "knows", "compares"};
  return (unsigned)way < sizeof names / sizeof names[0] ? names[way] : "";
}

/* Whether it becomes loop IR, or the form that lacks. */
static const char *lowering_name(const kiln_op *op) {
  const kiln_reason lacks = kiln_codegen_lacks(op);
  if (lacks != KILN_REASON_none) return kiln_reason_id(lacks);
  return kiln_codegen_has_lowering(op) ? "yes" : "";
}

/* A hole in a column is a hole in the table. */
static kiln_status *list_ops(const lister *l) {
  const kiln_registry *registry = l->context->registry;
  kiln_arena *arena = kiln_arena_scoped(l->context->env->mem);
  ROW(l, "name", "cost", "kernel", "shape", "lowering", "flops", "quantised", "schema");
  for (int i = 0; i < kiln_registry_count(registry); i++) {
    const kiln_op *op = kiln_registry_at(registry, i);
    char name[128];
    kiln_text schema = kiln_text_in(arena);
    snprintf(name, sizeof name, KILN_STR_FMT, KILN_STR_ARG(op->full_name));
    if (op->schema) kiln_schema_print(&schema, op->schema);
    ROW(l, name, cost_name(op->cost), op->kernel.body ? "yes" : "", op->shape ? "yes" : "",
        lowering_name(op), op->flops ? "yes" : "", quant_name(op->kernel.quant), schema.data);
    kiln_arena_reset(arena);
  }
  return NULL;
}
static kiln_status *try_ops(const lister *l) { KILN_PROTECT(list_ops(l)); }

kiln_status *kiln_debug_list(kiln_context *context, const char *table, kiln_debug_row_fn row,
                             void *user) {
  KILN_NEEDS(context && table && row);
  lister l = {context, row, user};
  if (strcmp(table, "ops") == 0) return try_ops(&l);
  if (strcmp(table, "passes") == 0) {
    list_passes(&l);
  } else if (strcmp(table, "flags") == 0) {
    list_flags(&l);
  } else if (strcmp(table, "channels") == 0) {
    list_channels(&l);
  } else if (strcmp(table, "reasons") == 0) {
    list_reasons(&l);
  } else if (strcmp(table, "events") == 0) {
    list_events(&l);
  } else {
    return KILN_ERROR(KILN_NOT_FOUND,
                      "there is no table '%s': passes, ops, flags, channels, reasons, events",
                      table);
  }
  return NULL;
}

/* -- Passes over text -- */

typedef struct opting {
  kiln_context *context;
  kiln_pass_runner runner;
  kiln_type_table *types;
  kiln_graph *graph;
} opting;

static kiln_status *opt(opting *o, kiln_str source, kiln_str passes, int verbosity,
                        char **out_text) {
  const kiln_registry *registry = o->context->registry;
  kiln_mem *mem = o->context->env->mem;
  KILN_TRY(kiln_type_table_create(mem, kiln_registry_types(registry), &o->types));
  KILN_TRY(kiln_graph_parse(mem, registry, o->types, source, &o->graph));
  /* It was written so by the user: no fault of Kiln's own. */
  KILN_TRY(kiln_status_as(kiln_graph_verify(o->graph), KILN_INVALID_FILE,
                          "the graph does not verify: "));
  kiln_text text = kiln__text_begin(o->context);
  o->runner.report = &text;
  KILN_TRY(kiln_pass_run_names(&o->runner, o->graph, passes));
  kiln_graph_print(&text, o->graph, verbosity, false);
  return kiln__text_give(&text, out_text);
}
static kiln_status *try_opt(opting *o, kiln_str source, kiln_str passes, int verbosity,
                            char **out_text) {
  KILN_PROTECT(opt(o, source, passes, verbosity, out_text));
}

kiln_status *kiln_debug_opt(kiln_context *context, const char *source, size_t size,
                            const char *passes, int verbosity, char **out_text) {
  KILN_NEEDS(context && source && out_text);
  opting o = {.context = context};
  *out_text = NULL;
  KILN_TRY(kiln_pass_runner_init(&o.runner, context->env, NULL));
  o.runner.verify = true;
  kiln_status *status = try_opt(&o, kiln_str_make(source, size),
                                kiln_str_from(passes ? passes : ""), verbosity, out_text);
  kiln_graph_release(o.graph);
  kiln_type_table_destroy(o.types);
  kiln_pass_runner_deinit(&o.runner);
  return status;
}

/* -- Stages -- */

static const struct {
  const char *name, *meaning;
} stages[] = {
#define DEBUG_STAGE(id, name, meaning) {name, meaning},
    KILN_JIT_STAGE_LIST(DEBUG_STAGE)
#undef DEBUG_STAGE
};

const char *kiln_debug_stage(int index, const char **out_meaning) {
  if (index < 0 || index >= (int)(sizeof stages / sizeof stages[0])) return NULL;
  if (out_meaning) *out_meaning = stages[index].meaning;
  return stages[index].name;
}

static kiln_status *dump(kiln_model *model, kiln_function *function, kiln_jit_stage stage,
                         kiln_str site, bool dot, char **out_text) {
  kiln_text text = kiln__text_begin(model->context);
  KILN_TRY(kiln_jit_dump(model->jit, function, stage, site, dot, &text));
  return kiln__text_give(&text, out_text);
}

kiln_status *kiln_debug_graph(kiln_model *model, const char *method, const char *stage,
                              const char *site, int dot, char **out_text) {
  KILN_NEEDS(model && out_text);
  const kiln__method *m = kiln__model_method(model, method);
  *out_text = NULL;
  if (!m) return kiln__model_no_method(model, method);
  const kiln_jit_stage id = kiln_jit_stage_find(kiln_str_from(stage));
  if (id == KILN_JIT_STAGE__COUNT) {
    return KILN_ERROR(KILN_NOT_FOUND, "there is no stage '%s'", stage);
  }
  KILN_PROTECT(dump(model, m->function, id, kiln_str_from(site ? site : ""), dot != 0, out_text));
}
