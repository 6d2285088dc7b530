/* debug_model.c: what a model is made of, without running any of it: facts, sources, operators,
 * tensors, and what a call would cost. */
#include <inttypes.h>
#include <stdio.h>

#include "api/internal.h"
#include "jit/call_cost.h"
#include "kiln/debug.h"

/* -- Facts -- */

static void tell_number(kiln_debug_row_fn row, void *user, const char *name, uint64_t number) {
  char text[32];
  snprintf(text, sizeof text, "%" PRIu64, number);
  row(user, (const char *[]){name, text}, 2);
}

kiln_status *kiln_debug_model_facts(kiln_model *model, kiln_debug_row_fn row, void *user) {
  KILN_NEEDS(model && row);
  const kiln_torchscript *script = model->script;
  const kiln_unit *unit = script->unit;
  char root[256];
  snprintf(root, sizeof root, KILN_STR_FMT,
           KILN_STR_ARG(script->root.u.object->type->cls->qualname));
  row(user, (const char *[]){"fact", "value"}, 2);
  row(user, (const char *[]){"root", root}, 2);
  tell_number(row, user, "version", (uint64_t)script->version);
  tell_number(row, user, "bytes", script->mapping->size);
  tell_number(row, user, "files", (uint64_t)script->entry_count);
  tell_number(row, user, "deflated_files", (uint64_t)script->deflated_count);
  tell_number(row, user, "functions", (uint64_t)unit->all.count);
  tell_number(row, user, "setstate_calls", (uint64_t)script->pending_count);
  if (unit->custom_classes) row(user, (const char *[]){"custom_classes", unit->custom_classes}, 2);
  return NULL;
}

static kiln_status *tell_sources(const kiln_model *model, kiln_debug_row_fn row, void *user) {
  const kiln_torchscript *script = model->script;
  kiln_arena *arena = kiln_arena_scoped(model->context->env->mem);
  row(user, (const char *[]){"file", "text"}, 2);
  for (int i = 0; i < script->source_count; i++) {
    const kiln_extra_file *file = &script->sources[i];
    const char *text = kiln_arena_str(arena, file->data).data;
    row(user, (const char *[]){file->name.data, text}, 2);
  }
  return NULL;
}

kiln_status *kiln_debug_model_sources(kiln_model *model, kiln_debug_row_fn row, void *user) {
  KILN_NEEDS(model && row);
  KILN_PROTECT(tell_sources(model, row, user));
}

kiln_status *kiln_debug_model_errors(kiln_model *model, kiln_debug_row_fn row, void *user) {
  KILN_NEEDS(model && row);
  const kiln_unit *unit = model->script->unit;
  row(user, (const char *[]){"function", "why"}, 2);
  for (int i = 0; i < unit->all.count; i++) {
    const kiln_function *function = unit->all.data[i];
    if (!function->error) continue;
    row(user, (const char *[]){function->qualname, kiln_status_message(function->error)}, 2);
  }
  return NULL;
}

static kiln_status *tell_functions(const kiln_model *model, kiln_debug_row_fn row, void *user) {
  const kiln_unit *unit = model->script->unit;
  kiln_arena *arena = kiln_arena_scoped(model->context->env->mem);
  row(user, (const char *[]){"function", "graph"}, 2);
  for (int i = 0; i < unit->all.count; i++) {
    const kiln_function *function = unit->all.data[i];
    if (!function->graph || function->error) continue;
    kiln_text text = kiln_text_in(arena);
    kiln_graph_print(&text, function->graph, 3, false);
    row(user, (const char *[]){function->qualname, text.data}, 2);
  }
  return NULL;
}

kiln_status *kiln_debug_model_functions(kiln_model *model, kiln_debug_row_fn row, void *user) {
  KILN_NEEDS(model && row);
  KILN_PROTECT(tell_functions(model, row, user));
}

/* -- Operators -- */

typedef struct op_count {
  kiln_str name;
  bool known;
  uint64_t count;
  kiln_source_loc loc; /* of the first */
} op_count;

/* `counts`: full name -> op_count* */
static void count_node(kiln_map *counts, const kiln_node *node) {
  kiln_str name = node->op ? node->op->full_name : node->name;
  op_count *c = kiln_map_find(counts, name);
  if (!c) {
    c = KILN_NEW(counts->arena, op_count);
    c->name = kiln_arena_str(counts->arena, name);
    /* Structural operators need no kernel. */
    c->known =
        node->op && (node->op->kernel.body || !node->op->schema || kiln_str_starts(name, "prim::"));
    c->loc = kiln_source_range_loc(node->range);
    kiln_map_set(counts, c->name, c);
  }
  c->count++;
}

static void count_block(kiln_map *counts, const kiln_block *block) {
  for (const kiln_node *node = block->first; node; node = node->next) {
    count_node(counts, node);
    for (int i = 0; i < node->block_count; i++) count_block(counts, node->blocks[i]);
  }
}

static kiln_status *tell_ops(const kiln_model *model, kiln_debug_row_fn row, void *user) {
  const kiln_unit *unit = model->script->unit;
  kiln_map counts = kiln_map_in(kiln_arena_scoped(model->context->env->mem));
  for (int i = 0; i < unit->all.count; i++) {
    const kiln_function *function = unit->all.data[i];
    if (function->graph) count_block(&counts, function->graph->top);
  }
  row(user, (const char *[]){"operator", "count", "kernel", "where"}, 4);
  for (int i = 0; i < counts.count; i++) {
    const op_count *c = counts.entries[i].value;
    char count[32], place[256] = "";
    snprintf(count, sizeof count, "%" PRIu64, c->count);
    if (c->loc.line) snprintf(place, sizeof place, "%s:%d", c->loc.file, c->loc.line);
    row(user, (const char *[]){c->name.data, count, c->known ? "yes" : "no", place}, 4);
  }
  return NULL;
}

kiln_status *kiln_debug_model_ops(kiln_model *model, kiln_debug_row_fn row, void *user) {
  KILN_NEEDS(model && row);
  KILN_PROTECT(tell_ops(model, row, user));
}

/* -- Tensors -- */

enum { PATH_SIZE = 1024, MAX_DEPTH = 64 };

typedef struct weight_job {
  kiln_debug_row_fn row;
  void *user;
  char path[PATH_SIZE];
} weight_job;

static void tell_tensor(weight_job *job, const char *role, const kiln_tensor *t) {
  char shape[256] = "[", bytes[32];
  size_t len = 1;
  if (t->key.f.undefined) return;
  for (int i = 0; i < kiln_tensor_rank(t) && len < sizeof shape - 32; i++) {
    len += (size_t)snprintf(shape + len, sizeof shape - len, "%s%lld", i ? ", " : "",
                            (long long)kiln_tensor_sizes(t)[i]);
  }
  snprintf(shape + len, sizeof shape - len, "]");
  snprintf(bytes, sizeof bytes, "%llu",
           (unsigned long long)t->numel * (unsigned long long)kiln_tensor_item_size(t));
  job->row(job->user,
           (const char *[]){job->path, role, kiln_dtype_name(kiln_tensor_dtype(t)), shape, bytes},
           5);
}

static void walk_object(weight_job *job, const kiln_object *object, size_t len, int depth) {
  const kiln_class_info *cls = object->type->cls;
  for (int i = 0; i < object->count && i < cls->attribute_count && depth < MAX_DEPTH; i++) {
    kiln_ivalue v = object->slots[i];
    kiln_str name = cls->attributes[i].name;
    int n = snprintf(job->path + len, PATH_SIZE - len, "%s" KILN_STR_FMT, len ? "." : "",
                     KILN_STR_ARG(name));
    if (n < 0 || (size_t)n >= PATH_SIZE - len) continue;
    const kiln_class_attribute *a = &cls->attributes[i];
    const char *role = a->is_parameter ? "parameter" : a->is_buffer ? "buffer" : "attribute";
    if (v.tag == KILN_TAG_TENSOR && v.u.tensor) tell_tensor(job, role, v.u.tensor);
    if (v.tag == KILN_TAG_OBJECT) walk_object(job, v.u.object, len + (size_t)n, depth + 1);
  }
}

/* What frozen modules have instead: the tensors of constants.pkl, as the source names them. */
static void tell_constants(weight_job *job, kiln_ivalue constants) {
  for (int i = 0; constants.tag == KILN_TAG_TUPLE && i < constants.u.tuple->count; i++) {
    const kiln_ivalue v = constants.u.tuple->items[i];
    snprintf(job->path, PATH_SIZE, "CONSTANTS.c%d", i);
    if (v.tag == KILN_TAG_TENSOR && v.u.tensor) tell_tensor(job, "constant", v.u.tensor);
  }
}

kiln_status *kiln_debug_model_weights(kiln_model *model, kiln_debug_row_fn row, void *user) {
  KILN_NEEDS(model && row);
  weight_job job = {.row = row, .user = user};
  row(user, (const char *[]){"name", "role", "dtype", "shape", "bytes"}, 5);
  walk_object(&job, model->script->root.u.object, 0, 0);
  tell_constants(&job, model->script->constants);
  return NULL;
}

/* -- Cost -- */

static void tell_cost(const kiln_cost *cost, kiln_debug_row_fn row, void *user) {
  row(user, (const char *[]){"operator", "count", "flops", "bytes", "unknown"}, 5);
  for (int i = 0; i < cost->rows.count; i++) {
    const kiln_cost_row *r = cost->rows.entries[i].value;
    const uint64_t numbers[] = {r->count, r->flops, r->bytes, r->unknown};
    char text[4][32];
    for (int k = 0; k < 4; k++) snprintf(text[k], sizeof text[k], "%" PRIu64, numbers[k]);
    row(user, (const char *[]){r->name.data, text[0], text[1], text[2], text[3]}, 5);
  }
}

/* Argument `i` (0 is self) of a call with these inputs, or its default. */
static kiln_status *cost_argument(const kiln__method *method, kiln_value *const *inputs, int count,
                                  int i, kiln_ivalue *out) {
  const kiln_schema_arg *arg = &method->function->schema->args[i];
  const bool given = i <= count && inputs[i - 1];
  if (!given && !arg->has_default) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "%s() lacks argument '%.*s'", method->name,
                      KILN_STR_ARG(arg->name));
  }
  *out = given ? inputs[i - 1]->v : arg->default_value;
  if (kiln_ivalue_matches(*out, arg->type)) return NULL;
  return KILN_ERROR(KILN_INVALID_ARGUMENT, "argument '%.*s' of %s() is of another type",
                    KILN_STR_ARG(arg->name), method->name);
}

static kiln_status *find_cost(const kiln_model *model, const kiln__method *method,
                              kiln_value *const *inputs, int count, kiln_debug_cost *out_cost,
                              kiln_debug_row_fn row, void *user) {
  kiln_env *env = model->context->env;
  kiln_arena *arena = kiln_arena_scoped(env->mem);
  const int arg_count = method->function->schema->arg_count;
  kiln_ivalue *args = KILN_NEW_ARRAY(arena, kiln_ivalue, arg_count);
  kiln_cost cost;
  args[0] = model->script->root;
  for (int i = 1; i < arg_count; i++) {
    KILN_TRY(cost_argument(method, inputs, count, i, &args[i]));
  }
  KILN_TRY(kiln_call_cost(env, method->function, args, arg_count, arena, &cost));
  *out_cost = cost.total;
  tell_cost(&cost, row, user);
  return NULL;
}

kiln_status *kiln_debug_model_cost(kiln_model *model, const char *method, kiln_value *const *inputs,
                                   int count, kiln_debug_cost *out_cost, kiln_debug_row_fn row,
                                   void *user) {
  KILN_NEEDS(model && (inputs || count <= 0) && out_cost && row);
  const kiln__method *m = kiln__model_method(model, method);
  *out_cost = (kiln_debug_cost){0};
  if (!m) return kiln__model_no_method(model, method);
  if (count > m->argument_count) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "%s() takes %d argument%s, not %d", method,
                      m->argument_count, kiln_plural((uint64_t)m->argument_count), count);
  }
  KILN_PROTECT(find_cost(model, m, inputs, count, out_cost, row, user));
}
