/* builder.c: graphs built by the host: making, values, inputs, attributes, constants, looking. */
#include "api/builder.h"

/* -- Making and ending -- */

static kiln_status *init_class(void *arg) {
  kiln_builder *b = arg;
  b->cls = kiln_unit_add_class(b->unit, KILN_TYPE_CLASS, KILN_STR("__torch__.Graph"));
  b->cls->type->cls->is_module = true;
  return NULL;
}

static kiln_status *init_in_unit(void *arg) {
  kiln_builder *b = arg;
  return kiln_type_table_run(b->unit->types, init_class, b);
}

static kiln_status *init_self(kiln_builder *b, void *arg) {
  (void)arg;
  kiln_graph_add_input(b->graph, "self", b->cls->type);
  b->block = b->graph->top;
  return NULL;
}

static kiln_status *init(kiln_builder *b) {
  kiln_context *context = b->context;
  KILN_TRY(kiln_unit_create(context->env, context->registry, &b->unit));
  KILN_TRY(kiln_arena_run(b->unit->arena, init_in_unit, b));
  KILN_TRY(kiln_graph_create(context->env->mem, context->registry, b->unit->types, &b->graph));
  return kiln__builder_run(b, init_self, NULL);
}

kiln_status *kiln_builder_create(kiln_context *context, kiln_builder **out_builder) {
  KILN_NEEDS(context && out_builder);
  *out_builder = NULL;
  kiln_builder *b = kiln_mem_alloc_zero(context->env->mem, sizeof *b);
  if (!b) return kiln_status_oom();
  b->context = kiln__context_retain(context);
  kiln_status *status = init(b);
  if (status) {
    kiln_builder_destroy(b);
    return status;
  }
  *out_builder = b;
  return NULL;
}

void kiln_builder_destroy(kiln_builder *b) {
  if (!b) return;
  kiln_context *context = b->context;
  for (int i = 0; i < b->values.count; i++) kiln_ivalue_release(b->values.data[i]);
  if (b->graph) kiln_graph_release(b->graph);
  kiln_unit_destroy(b->unit);
  kiln_mem_free(context->env->mem, b, sizeof *b);
  kiln_context_release(context);
}

/* -- Running a step -- */

typedef struct run_job {
  kiln_builder *b;
  kiln_status *(*body)(kiln_builder *b, void *arg);
  void *arg;
} run_job;

static kiln_status *run_body(void *arg) {
  const run_job *job = arg;
  return job->body(job->b, job->arg);
}
static kiln_status *run_in_types(void *arg) {
  return kiln_type_table_run(((run_job *)arg)->b->unit->types, run_body, arg);
}
static kiln_status *run_in_unit(void *arg) {
  return kiln_arena_run(((run_job *)arg)->b->unit->arena, run_in_types, arg);
}

kiln_status *kiln__builder_run(kiln_builder *b, kiln_status *(*body)(kiln_builder *b, void *arg),
                               void *arg) {
  run_job job = {b, body, arg};
  if (!b->unit) return KILN_ERROR(KILN_INVALID_ARGUMENT, "the builder gave its model away");
  kiln_block *block = b->block;
  kiln_node *last = block ? block->last : NULL;
  const int vars = b->vars.count, open = b->open.count;
  const int outputs = block ? kiln_block_output_count(block) : 0;
  kiln_status *status = kiln_arena_run(b->graph->arena, run_in_unit, &job);
  if (!status) return NULL;
  b->vars.count = vars;
  b->open.count = open;
  b->block = block;
  while (block && kiln_block_output_count(block) > outputs) {
    kiln_block_remove_output(block, kiln_block_output_count(block) - 1);
  }
  while (block && block->last != last) kiln_node_destroy(block->last);
  return status;
}

/* -- Values -- */

kiln_var kiln__builder_var(kiln_builder *b, kiln_ir_value *value) {
  kiln_vec_push(b->unit->arena, &b->vars, value);
  return b->vars.count;
}

kiln_status *kiln__builder_value(kiln_builder *b, kiln_var var, kiln_ir_value **out_value) {
  if (var < 1 || var > b->vars.count) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "the builder has no value %d", var);
  }
  kiln_ir_value *value = b->vars.data[var - 1];
  const kiln_block *block = b->block;
  while (block && block != value->node->block) block = block->owner ? block->owner->block : NULL;
  if (!block) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "value %d belongs to a branch or loop that is closed",
                      var);
  }
  *out_value = value;
  return NULL;
}

kiln_status *kiln__builder_values(kiln_builder *b, const kiln_var *vars, int count,
                                  kiln_ir_value ***out_values) {
  if (count < 0 || (count > 0 && !vars)) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "%d values are wanted, and none is given", count);
  }
  *out_values = KILN_NEW_ARRAY(b->graph->arena, kiln_ir_value *, count + 1);
  for (int i = 0; i < count; i++) KILN_TRY(kiln__builder_value(b, vars[i], &(*out_values)[i]));
  return NULL;
}

const kiln_type *kiln__builder_type_of(kiln_builder *b, kiln_ivalue v) {
  const kiln_type *tensor = kiln_type_basic(KILN_TYPE_TENSOR);
  kiln_type_table *types = b->unit->types;
  if (v.tag == KILN_TAG_LIST && !v.u.list->elem_type && v.u.list->count == 0) {
    return kiln_type_list(types, tensor);
  }
  if (v.tag == KILN_TAG_DICT && !v.u.dict->key_type && v.u.dict->live == 0) {
    return kiln_type_dict(types, kiln_type_basic(KILN_TYPE_STR), tensor);
  }
  return kiln_type_unshaped(types, kiln_ivalue_type(types, v));
}

/* No objects of classes, no futures: nothing that has no form of its own in a graph. */
static bool is_plain(kiln_ivalue v, int depth) {
  if (depth > 64) return false;
  switch ((kiln_tag)v.tag) {
    case KILN_TAG_LIST:
      for (int64_t i = 0; i < v.u.list->count; i++) {
        if (!is_plain(v.u.list->items[i], depth + 1)) return false;
      }
      return true;
    case KILN_TAG_TUPLE:
      for (int64_t i = 0; i < v.u.tuple->count; i++) {
        if (!is_plain(v.u.tuple->items[i], depth + 1)) return false;
      }
      return true;
    case KILN_TAG_DICT: {
      int64_t index = 0;
      kiln_ivalue *key, *value;
      while (kiln_dict_next(v.u.dict, &index, &key, &value)) {
        if (!is_plain(*key, depth + 1) || !is_plain(*value, depth + 1)) return false;
      }
      return true;
    }
    default:
      return v.tag < KILN_TAG_FUNCTION || v.tag == KILN_TAG_TENSOR || v.tag == KILN_TAG_STRING ||
             v.tag == KILN_TAG_COMPLEX;
  }
}

static kiln_status *check_plain(kiln_ivalue v) {
  if (is_plain(v, 0)) return NULL;
  return KILN_ERROR(KILN_INVALID_ARGUMENT, "an object, enum or future cannot stand in a graph");
}

kiln_status *kiln__builder_constant(kiln_builder *b, kiln_ivalue v, kiln_ir_value **out_value) {
  KILN_TRY(check_plain(v));
  const kiln_type *type =
      v.tag == KILN_TAG_TENSOR ? kiln_ivalue_type(b->unit->types, v) : kiln__builder_type_of(b, v);
  kiln_ivalue copy = kiln_none();
  KILN_TRY(kiln_ivalue_clone(b->context->env->mem, v, &copy));
  *out_value = kiln_append_constant(b->block, copy, type);
  return NULL;
}

typedef struct var_job {
  const char *name, *text;
  const kiln_value *value;
  kiln_var var;
  kiln_var *out_var;
} var_job;

static kiln_status *constant(kiln_builder *b, void *arg) {
  const var_job *job = arg;
  kiln_ir_value *value;
  KILN_TRY(kiln__builder_constant(b, job->value->v, &value));
  *job->out_var = kiln__builder_var(b, value);
  return NULL;
}

kiln_status *kiln_builder_constant(kiln_builder *b, const kiln_value *value, kiln_var *out_var) {
  KILN_NEEDS(b && out_var);
  var_job job = {.value = value, .out_var = out_var};
  *out_var = 0;
  if (!value) return KILN_ERROR(KILN_INVALID_ARGUMENT, "a constant needs a value");
  return kiln__builder_run(b, constant, &job);
}

/* -- Inputs and attributes -- */

static bool is_name(const char *name) {
  if (!name || !((*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') || *name == '_'))
    return false;
  for (const char *c = name; *c; c++) {
    if (!((*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
          *c == '_')) {
      return false;
    }
  }
  return true;
}

static kiln_status *check_name(const char *name) {
  if (is_name(name)) return NULL;
  return KILN_ERROR(KILN_INVALID_ARGUMENT, "'%s' is no name", name ? name : "");
}

kiln_status *kiln__builder_check_argument(const kiln_builder *b, const char *name) {
  KILN_TRY(check_name(name));
  const kiln_ir_value *same = kiln_map_find(&b->graph->names, kiln_str_from(name));
  if (!same || same->node != b->graph->top->param) return NULL;
  return KILN_ERROR(KILN_INVALID_ARGUMENT, "there is an argument '%s' already", name);
}

static kiln_status *input(kiln_builder *b, void *arg) {
  const var_job *job = arg;
  const char *cursor = job->text, *end = job->text + strlen(job->text);
  const kiln_type *type;
  KILN_TRY(kiln_type_parse(b->unit->types, &cursor, end, false, &type));
  if (cursor != end) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "'%s' is no type", job->text);
  }
  KILN_TRY(kiln__builder_check_argument(b, job->name));
  type = kiln_type_unshaped(b->unit->types, type);
  kiln_vec_reserve(b->unit->arena, &b->vars, b->vars.count + 1);
  *job->out_var = kiln__builder_var(b, kiln_graph_add_input(b->graph, job->name, type));
  return NULL;
}

kiln_status *kiln_builder_input(kiln_builder *b, const char *name, const char *type,
                                kiln_var *out_var) {
  KILN_NEEDS(b && out_var);
  var_job job = {.name = name, .text = type ? type : "Tensor", .out_var = out_var};
  *out_var = 0;
  return kiln__builder_run(b, input, &job);
}

static int find_attribute(const kiln_builder *b, const char *name) {
  for (int i = 0; i < b->attributes.count; i++) {
    if (kiln_str_is(b->attributes.data[i].name, name)) return i;
  }
  return -1;
}

static kiln_ir_value *get_attribute(kiln_builder *b, int index) {
  const kiln_class_attribute *a = &b->attributes.data[index];
  kiln_node *node = kiln_node_create_id(b->graph, KILN_OP_prim_GetAttr);
  kiln_node_set_str(node, "name", a->name);
  kiln_node_add_input(node, kiln_graph_input(b->graph, 0));
  kiln_ir_value *value = kiln_node_add_output(node, a->type);
  kiln_ir_value_set_name(value, a->name);
  kiln_node_append(b->block, node);
  return value;
}

static kiln_status *attribute(kiln_builder *b, void *arg) {
  const var_job *job = arg;
  kiln_arena *arena = b->unit->arena;
  kiln_ivalue v = job->value->v;
  if (find_attribute(b, job->name) >= 0) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "there is an attribute '%s' already", job->name);
  }
  KILN_TRY(check_plain(v));
  bool is_tensor = v.tag == KILN_TAG_TENSOR;
  bool grad = is_tensor && v.u.tensor->key.f.requires_grad;
  kiln_class_attribute a = {.name = kiln_str_from(kiln_arena_strdup(arena, job->name)),
                            .type = kiln__builder_type_of(b, v),
                            .is_parameter = grad,
                            .is_buffer = is_tensor && !grad};
  kiln_vec_reserve(arena, &b->attributes, b->attributes.count + 1);
  kiln_vec_reserve(arena, &b->values, b->values.count + 1);
  kiln_vec_reserve(arena, &b->vars, b->vars.count + 1);
  b->attributes.data[b->attributes.count] = a;
  if (job->out_var) {
    b->attributes.count++; /* for get_attribute, which may run out of memory */
    kiln_ir_value *value = get_attribute(b, b->attributes.count - 1);
    *job->out_var = kiln__builder_var(b, value);
    b->attributes.count--;
  }
  b->attributes.count++;
  b->values.data[b->values.count++] = kiln_ivalue_retain(v);
  return NULL;
}

kiln_status *kiln_builder_attribute(kiln_builder *b, const char *name, const kiln_value *value,
                                    kiln_var *out_var) {
  KILN_NEEDS(b);
  var_job job = {.name = name, .value = value, .out_var = out_var};
  if (out_var) *out_var = 0;
  KILN_TRY(check_name(name));
  if (!value) return KILN_ERROR(KILN_INVALID_ARGUMENT, "an attribute needs a value");
  kiln_status *status = kiln__builder_run(b, attribute, &job);
  if (status) b->attributes.count = b->values.count;
  return status;
}

static kiln_status *get(kiln_builder *b, void *arg) {
  const var_job *job = arg;
  int index = find_attribute(b, job->name);
  if (index < 0) {
    return KILN_ERROR(KILN_NOT_FOUND, "the module has no attribute '%s'", job->name);
  }
  *job->out_var = kiln__builder_var(b, get_attribute(b, index));
  return NULL;
}

kiln_status *kiln_builder_get(kiln_builder *b, const char *name, kiln_var *out_var) {
  KILN_NEEDS(b && out_var);
  var_job job = {.name = name, .out_var = out_var};
  *out_var = 0;
  KILN_TRY(check_name(name));
  return kiln__builder_run(b, get, &job);
}

static kiln_status *set(kiln_builder *b, void *arg) {
  const var_job *job = arg;
  int index = find_attribute(b, job->name);
  kiln_ir_value *value;
  if (index < 0) {
    return KILN_ERROR(KILN_NOT_FOUND, "the module has no attribute '%s'", job->name);
  }
  KILN_TRY(kiln__builder_value(b, job->var, &value));
  const kiln_type *type = kiln_type_unshaped(b->unit->types, value->type);
  if (!kiln_type_is_subtype(type, b->attributes.data[index].type)) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "the value is not of the type of attribute '%s'",
                      job->name);
  }
  kiln_node *node = kiln_node_create_id(b->graph, KILN_OP_prim_SetAttr);
  kiln_node_set_str(node, "name", b->attributes.data[index].name);
  kiln_node_add_input(node, kiln_graph_input(b->graph, 0));
  kiln_node_add_input(node, value);
  kiln_node_append(b->block, node);
  return NULL;
}

kiln_status *kiln_builder_set(kiln_builder *b, const char *name, kiln_var var) {
  KILN_NEEDS(b);
  var_job job = {.name = name, .var = var};
  KILN_TRY(check_name(name));
  return kiln__builder_run(b, set, &job);
}

/* -- Looking -- */

static kiln_status *print_type(kiln_builder *b, void *arg) {
  var_job *job = arg;
  kiln_text text;
  if (job->var < 1 || job->var > b->vars.count) return NULL;
  kiln_text_init(&text, b->unit->arena);
  kiln_type_print(&text, b->vars.data[job->var - 1]->type, 3);
  job->text = text.data;
  return NULL;
}

const char *kiln_builder_type(kiln_builder *b, kiln_var var) {
  if (!b) return NULL;
  var_job job = {.var = var};
  kiln_status_destroy(kiln__builder_run(b, print_type, &job));
  return job.text;
}

typedef struct print_job {
  const kiln_graph *graph;
  int verbosity;
} print_job;

static kiln_status *print(kiln_text *text, void *arg) {
  const print_job *job = arg;
  kiln_graph_print(text, job->graph, job->verbosity, false);
  return NULL;
}

kiln_status *kiln_builder_print(kiln_builder *b, int verbosity, char **out_text) {
  KILN_NEEDS(b && out_text);
  print_job job = {b->graph, verbosity < 0 ? 0 : verbosity > 4 ? 4 : verbosity};
  *out_text = NULL;
  if (!b->unit) return KILN_ERROR(KILN_INVALID_ARGUMENT, "the builder gave its model away");
  return kiln__text_make(b->context, print, &job, out_text);
}
