/* cost.c: shapes through a method without a call of it.
 *
 * A copy of the graph gets the module's attributes (types of tensors, numbers and flags as
 * constants) and the inputs' types; then shape functions, folding of constants and of decided
 * branches take turns until nothing more becomes known. What is computed is arithmetic on constants
 * (sizes, mostly), and operators without a shape function are run alone on zeros: no element of an
 * input is read, and nothing of the model's state changes. */
#include "api/cost.h"
#include "jit/pass_run.h"

#include <stdio.h>

enum { MAX_ROUNDS = 64 };

typedef struct cost_job {
  kiln_model *model;
  kiln_type_table *types; /* of the graph */
  kiln_pass_runner runner;
  const kiln__method *method;
  kiln_value *const *inputs;
  int count;
  kiln_graph *graph;
  kiln_map objects; /* value -> object of the module */
  kiln_map written; /* names of attributes that the graph sets */
  int known;        /* values whose type is complete */
  kiln_cost cost;
} cost_job;

/* -- Module and inputs -- */

/* Numbers, and lists and tuples of them. */
static bool is_number(kiln_ivalue v) {
  if (v.tag == KILN_TAG_LIST || v.tag == KILN_TAG_TUPLE) {
    bool list = v.tag == KILN_TAG_LIST;
    int64_t count = list ? v.u.list->count : v.u.tuple->count;
    const kiln_ivalue *items = list ? v.u.list->items : v.u.tuple->items;
    for (int64_t i = 0; i < count; i++) {
      if (items[i].tag != KILN_TAG_INT && items[i].tag != KILN_TAG_FLOAT) return false;
    }
    return !list || v.u.list->elem_type;
  }
  return v.tag == KILN_TAG_NONE || v.tag == KILN_TAG_INT || v.tag == KILN_TAG_FLOAT ||
         v.tag == KILN_TAG_BOOL || v.tag == KILN_TAG_DEVICE || v.tag == KILN_TAG_STRING;
}

/* What is known of a value that holds `v`: a constant in its place, or its type. */
static void bind_value(cost_job *job, kiln_ir_value *value, kiln_ivalue v, kiln_node *anchor) {
  kiln_type_table *types = job->graph->types;
  if (v.tag == KILN_TAG_TENSOR && !v.u.tensor) return;
  if (v.tag == KILN_TAG_OBJECT) {
    kiln_map_set_ptr(&job->objects, value, v.u.object);
  } else if (v.tag == KILN_TAG_TENSOR && v.u.tensor && !kiln_tensor_is_undefined(v.u.tensor)) {
    value->type = kiln_ivalue_type(types, v);
  } else if (is_number(v) && anchor) {
    const kiln_type *type = kiln_ivalue_type(types, v);
    kiln_ivalue copy = kiln_none();
    kiln_status *status = kiln_ivalue_clone(job->model->context->env->mem, v, &copy);
    if (status) kiln_scope_fail(status);
    kiln_ir_value_replace_uses(value, kiln_insert_constant_before(anchor, copy, type));
  }
}

static void bind_attribute(cost_job *job, kiln_node *node) {
  const kiln_object *object = kiln_map_find_ptr(&job->objects, kiln_node_input(node, 0));
  kiln_str name = kiln_node_str(node, "name");
  if (!object || kiln_map_find(&job->written, name)) return;
  int slot = kiln_type_find_attribute(object->type, name);
  if (slot >= 0) bind_value(job, kiln_node_output(node, 0), object->slots[slot], node->next);
}

static void find_written(cost_job *job, const kiln_block *block) {
  for (const kiln_node *n = block->first; n; n = n->next) {
    if (kiln_node_is(n, KILN_OP_prim_SetAttr)) {
      kiln_map_set(&job->written, kiln_node_str(n, "name"), job);
    }
    for (int i = 0; i < n->block_count; i++) find_written(job, n->blocks[i]);
  }
}

static void bind_block(cost_job *job, const kiln_block *block) {
  for (kiln_node *n = block->first, *next; n; n = next) {
    next = n->next;
    if (kiln_node_is(n, KILN_OP_prim_GetAttr)) bind_attribute(job, n);
    for (int i = 0; i < n->block_count; i++) bind_block(job, n->blocks[i]);
  }
}

static kiln_status *bind(cost_job *job) {
  const kiln_graph *graph = job->graph;
  const kiln_schema *schema = job->method->function->schema;
  kiln_map_init(&job->objects, graph->arena);
  kiln_map_init(&job->written, graph->arena);
  find_written(job, graph->top);
  kiln_map_set_ptr(&job->objects, kiln_graph_input(graph, 0), job->model->script->root.u.object);
  for (int i = 1; i < schema->arg_count && i < kiln_graph_input_count(graph); i++) {
    kiln_ir_value *input = kiln_graph_input(graph, i);
    bool given = i <= job->count && job->inputs[i - 1];
    if (!given && !schema->args[i].has_default) {
      return KILN_ERROR(KILN_INVALID_ARGUMENT, "%s() lacks argument '%.*s'", job->method->name,
                        KILN_STR_ARG(schema->args[i].name));
    }
    kiln_ivalue v = given ? job->inputs[i - 1]->v : schema->args[i].default_value;
    if (!kiln_ivalue_matches(v, schema->args[i].type)) {
      return KILN_ERROR(KILN_INVALID_ARGUMENT, "argument '%.*s' of %s() is of another type",
                        KILN_STR_ARG(schema->args[i].name), job->method->name);
    }
    bind_value(job, input, v, graph->top->first);
  }
  bind_block(job, graph->top);
  return NULL;
}

/* -- Propagation -- */

static void fold_to(kiln_node *node, kiln_ivalue v, kiln_type_kind kind) {
  kiln_ir_value *made = kiln_insert_constant_before(node, v, kiln_type_basic(kind));
  kiln_ir_value_replace_uses(kiln_node_output(node, 0), made);
}

static void fold_sizes(cost_job *job, kiln_node *node, const kiln_tensor_detail *d) {
  kiln_node *list = kiln_node_create_id(job->graph, KILN_OP_prim_ListConstruct);
  for (int i = 0; i < d->rank; i++) {
    kiln_node_add_input(list, kiln_insert_constant_before(node, kiln_int(d->sizes[i]),
                                                          kiln_type_basic(KILN_TYPE_INT)));
  }
  kiln_ir_value *made = kiln_node_add_output(list, kiln_node_output(node, 0)->type);
  kiln_node_insert_before(list, node);
  kiln_ir_value_replace_uses(kiln_node_output(node, 0), made);
}

/* What the passes leave: aten::size and aten::numel of known sizes, a value that is itself. */
static void fold_property(cost_job *job, kiln_node *node) {
  if (node->output_count != 1 || !node->op) return;
  if (node->input_count == 2 && kiln_node_input(node, 0) == kiln_node_input(node, 1)) {
    bool is = kiln_node_is(node, KILN_OP___is__);
    if (is || kiln_node_is(node, KILN_OP___isnot__)) fold_to(node, kiln_bool(is), KILN_TYPE_BOOL);
    return;
  }
  if (node->input_count != 1) return;
  const kiln_type *type = kiln_node_input(node, 0)->type;
  if (!kiln_type_is_complete_tensor(type)) return;
  if (kiln_node_is(node, KILN_OP_size)) {
    fold_sizes(job, node, type->detail);
  } else if (kiln_node_is(node, KILN_OP_numel)) {
    int64_t numel = 0;
    (void)kiln_numel(type->detail->rank, type->detail->sizes, &numel);
    fold_to(node, kiln_int(numel), KILN_TYPE_INT);
  }
}

static bool raises(const kiln_block *block) {
  return block->last && kiln_node_is(block->last, KILN_OP_prim_RaiseException);
}

/* Results of a branch that is not decided, where both sides agree or one only raises. */
static void join_branches(kiln_node *node) {
  bool first_raises = raises(node->blocks[0]), second_raises = raises(node->blocks[1]);
  for (int i = 0; i < node->output_count; i++) {
    const kiln_type *a = kiln_block_output(node->blocks[0], i)->type;
    const kiln_type *b = kiln_block_output(node->blocks[1], i)->type;
    if (first_raises) a = b;
    if (second_raises) b = a;
    if (a == b && kiln_type_is_complete_tensor(a)) node->outputs[i]->type = a;
  }
}

/* The first round of a loop sees the first values. */
static void enter_loop(kiln_node *node) {
  for (int i = 0; i < node->output_count; i++) {
    const kiln_type *type = kiln_node_input(node, i + 2)->type;
    kiln_ir_value *carried = kiln_block_input(node->blocks[0], i + 1);
    if (kiln_type_is_complete_tensor(type) && carried->type->kind == KILN_TYPE_TENSOR) {
      carried->type = type;
    }
  }
}

/* What comes out of it has the types that did not change in that round. */
static void leave_loop(kiln_node *node) {
  for (int i = 0; i < node->output_count; i++) {
    const kiln_type *first = kiln_node_input(node, i + 2)->type;
    const kiln_type *next = kiln_block_output(node->blocks[0], i + 1)->type;
    if (first == next && kiln_type_is_complete_tensor(next)) node->outputs[i]->type = next;
  }
}

/* An operator whose result its shape function does not know: runs it alone. Where it is reached in
 * every call and refuses its arguments, so would the call. */
static kiln_status *probe(cost_job *job, kiln_node *node) {
  kiln_status *status = kiln__cost_probe(job->runner.call, job->graph, node);
  if (!status) return NULL;
  if (kiln_status_code(status) == KILN_OP_ERROR && node->op->shape &&
      node->block == job->graph->top) {
    status = kiln_source_range_trace(node->range, status);
    return kiln_status_note(status, "the shapes do not fit " KILN_STR_FMT,
                            KILN_STR_ARG(node->name));
  }
  kiln_status_destroy(status);
  return NULL;
}

static kiln_status *infer_block(cost_job *job, const kiln_block *block) {
  for (kiln_node *n = block->first, *next; n; n = next) {
    next = n->next;
    if (kiln_node_is(n, KILN_OP_prim_Loop)) enter_loop(n);
    for (int i = 0; i < n->block_count; i++) KILN_TRY(infer_block(job, n->blocks[i]));
    if (kiln_node_is(n, KILN_OP_prim_If)) join_branches(n);
    if (kiln_node_is(n, KILN_OP_prim_Loop)) leave_loop(n);
    if (!kiln_shape_infer(job->graph, n)) KILN_TRY(probe(job, n));
    fold_property(job, n);
    for (int i = 0; i < n->output_count; i++) {
      job->known += kiln_type_is_complete_tensor(n->outputs[i]->type);
    }
  }
  return NULL;
}

static kiln_status *infer(cost_job *job) {
  job->known = 0;
  return infer_block(job, job->graph->top);
}

static uint64_t changes_of(const kiln_pass_runner *runner) {
  uint64_t sum = 0;
  for (int i = 0; i < KILN_PASS__COUNT; i++) sum += runner->changes[i];
  return sum;
}

static kiln_status *propagate(cost_job *job) {
  KILN_TRY(kiln_pass_run_names(&job->runner, job->graph, KILN_STR("inline")));
  KILN_TRY(bind(job));
  for (int round = 0; round < MAX_ROUNDS; round++) {
    const uint64_t changes = changes_of(&job->runner);
    const int known = job->known;
    KILN_TRY(infer(job));
    KILN_TRY(
        kiln_pass_run_names(&job->runner, job->graph,
                            KILN_STR("peephole,constant_propagation,lower_simple_tuples,dce")));
    if (changes_of(&job->runner) == changes && job->known == known) break;
  }
  return NULL;
}

/* -- The answer -- */

static void count(cost_job *job) {
  job->cost.arena = job->graph->arena;
  kiln_map_init(&job->cost.rows, job->graph->arena);
  kiln_cost_count(&job->cost, job->graph);
  job->cost.total.peak_bytes = kiln_cost_peak(job->graph->arena, job->graph);
}

static kiln_status *find_cost(cost_job *job) {
  const kiln_function *function = job->method->function;
  kiln_mem *mem = job->model->context->env->mem;
  KILN_TRY(kiln_type_table_create(mem, job->model->script->unit->types, &job->types));
  job->graph = kiln_graph_copy(function->graph, mem, job->types);
  KILN_TRY(propagate(job));
  count(job);
  return NULL;
}
static kiln_status *try_cost(cost_job *job) { KILN_PROTECT(find_cost(job)); }

static void tell(const kiln_cost *cost, kiln_debug_row_fn row, void *user) {
  row(user, (const char *[]){"operator", "count", "flops", "bytes", "unknown"}, 5);
  for (int i = 0; i < cost->rows.count; i++) {
    const kiln_cost_row *r = cost->rows.entries[i].value;
    char text[5][64];
    snprintf(text[0], sizeof text[0], "%.*s", KILN_STR_ARG(r->name));
    const uint64_t numbers[] = {r->count, r->flops, r->bytes, r->unknown};
    for (int k = 0; k < 4; k++) {
      snprintf(text[k + 1], sizeof text[0], "%llu", (unsigned long long)numbers[k]);
    }
    row(user, (const char *[]){text[0], text[1], text[2], text[3], text[4]}, 5);
  }
}

kiln_status *kiln_debug_model_cost(kiln_model *model, const char *method, kiln_value *const *inputs,
                                   int count_of_inputs, kiln_debug_cost *out_cost,
                                   kiln_debug_row_fn row, void *user) {
  KILN_NEEDS(model && (inputs || count_of_inputs <= 0) && out_cost && row);
  cost_job job = {.model = model, .inputs = inputs, .count = count_of_inputs};
  *out_cost = (kiln_debug_cost){0};
  job.method = kiln__model_method(model, method);
  if (!job.method) return kiln__model_no_method(model, method);
  if (count_of_inputs > job.method->argument_count) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "%s() takes %d argument%s, not %d", method,
                      job.method->argument_count, kiln_plural((uint64_t)job.method->argument_count),
                      count_of_inputs);
  }
  KILN_TRY(kiln_unit_ensure(job.method->function));
  KILN_TRY(kiln_pass_runner_init(&job.runner, model->context->env));
  kiln_status *status = try_cost(&job);
  if (!status) {
    *out_cost = job.cost.total;
    tell(&job.cost, row, user);
  }
  kiln_graph_release(job.graph);
  kiln_type_table_destroy(job.types);
  kiln_pass_runner_deinit(&job.runner);
  return status;
}
