/* call_cost.c: cost of a call by shape propagation.
 *
 * A copy of the graph gets the arguments and the attributes of self: types of tensors, numbers and
 * flags as constants. The pipeline `one_call` propagates them until nothing more becomes known; the
 * analysis of ir/cost.h counts. No element of an argument is read and no state changes. */
#include "jit/call_cost.h"

#include "jit/pass_run.h"

typedef struct binder {
  kiln_mem *mem;
  kiln_graph *graph;
  kiln_map objects; /* value -> object of the module */
  kiln_map written; /* names of attributes that the graph sets */
} binder;

/* -- Arguments and attributes -- */

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
static void bind_value(binder *b, kiln_ir_value *value, kiln_ivalue v, kiln_node *anchor) {
  kiln_type_table *types = b->graph->types;
  if (v.tag == KILN_TAG_TENSOR && !v.u.tensor) return;
  if (v.tag == KILN_TAG_OBJECT) {
    kiln_map_set_ptr(&b->objects, value, v.u.object);
  } else if (v.tag == KILN_TAG_TENSOR && v.u.tensor && !kiln_tensor_is_undefined(v.u.tensor)) {
    value->type = kiln_ivalue_type(types, v);
  } else if (is_number(v) && anchor) {
    const kiln_type *type = kiln_ivalue_type(types, v);
    kiln_ivalue copy = kiln_none();
    kiln_status *status = kiln_ivalue_clone(b->mem, v, &copy);
    if (status) kiln_scope_fail(status);
    kiln_ir_value_replace_uses(value, kiln_insert_constant_before(anchor, copy, type));
  }
}

static void bind_attribute(binder *b, kiln_node *node) {
  const kiln_object *object = kiln_map_find_ptr(&b->objects, kiln_node_input(node, 0));
  kiln_str name = kiln_node_str(node, "name");
  if (!object || kiln_map_find(&b->written, name)) return;
  int slot = kiln_type_find_attribute(object->type, name);
  if (slot >= 0) bind_value(b, kiln_node_output(node, 0), object->slots[slot], node->next);
}

static void find_written(binder *b, const kiln_block *block) {
  for (const kiln_node *n = block->first; n; n = n->next) {
    if (kiln_node_is(n, KILN_OP_prim_SetAttr)) {
      kiln_map_set(&b->written, kiln_node_str(n, "name"), b);
    }
    for (int i = 0; i < n->block_count; i++) find_written(b, n->blocks[i]);
  }
}

static void bind_block(binder *b, const kiln_block *block) {
  for (kiln_node *n = block->first, *next; n; n = next) {
    next = n->next;
    if (kiln_node_is(n, KILN_OP_prim_GetAttr)) bind_attribute(b, n);
    for (int i = 0; i < n->block_count; i++) bind_block(b, n->blocks[i]);
  }
}

static void bind(kiln_mem *mem, kiln_graph *graph, const kiln_ivalue *args, int arg_count) {
  binder b = {.mem = mem, .graph = graph};
  b.objects = kiln_map_in(graph->arena);
  b.written = kiln_map_in(graph->arena);
  find_written(&b, graph->top);
  for (int i = 0; i < arg_count && i < kiln_graph_input_count(graph); i++) {
    bind_value(&b, kiln_graph_input(graph, i), args[i], graph->top->first);
  }
  bind_block(&b, graph->top);
}

/* -- The call -- */

typedef struct cost_job {
  kiln_pass_runner runner;
  kiln_type_table *types; /* of the graph */
  kiln_graph *graph;
} cost_job;

static kiln_status *find_cost(cost_job *job, const kiln_function *function, const kiln_ivalue *args,
                              int arg_count, kiln_arena *arena, kiln_cost *out_cost) {
  kiln_mem *mem = job->runner.env->mem;
  KILN_TRY(kiln_type_table_create(mem, function->unit->types, &job->types));
  job->graph = kiln_graph_copy(function->graph, mem, job->types);
  KILN_TRY(kiln_pass_run(&job->runner, job->graph, KILN_PASS_inline));
  bind(mem, job->graph, args, arg_count);
  KILN_TRY(kiln_pipeline_settle(&job->runner, job->graph, KILN_PIPELINE_one_call));
  kiln_cost_find(out_cost, arena, job->graph);
  return NULL;
}
static kiln_status *try_cost(cost_job *job, const kiln_function *function, const kiln_ivalue *args,
                             int arg_count, kiln_arena *arena, kiln_cost *out_cost) {
  KILN_PROTECT(find_cost(job, function, args, arg_count, arena, out_cost));
}

kiln_status *kiln_call_cost(kiln_env *env, kiln_function *function, const kiln_ivalue *args,
                            int arg_count, kiln_arena *arena, kiln_cost *out_cost) {
  cost_job job = {0};
  KILN_TRY(kiln_unit_ensure(function));
  KILN_TRY(kiln_pass_runner_init(&job.runner, env, NULL));
  kiln_status *status = try_cost(&job, function, args, arg_count, arena, out_cost);
  kiln_graph_release(job.graph);
  kiln_type_table_destroy(job.types);
  kiln_pass_runner_deinit(&job.runner);
  return status;
}
