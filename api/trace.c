/* trace.c: operators called by the host, and recorded.
 *
 * A call is put into a builder's graph first, with the nodes that make its arguments fit, and then
 * those nodes are run one by one: so what runs is what is recorded. Values of the graph have their
 * values of the run beside them, which keeps addresses from being used again while they tell what a
 * host's handle means. A call without a trace has a graph of its own for its duration. */
#include "api/builder.h"

enum { MAX_UNPACKED = 256 };

struct kiln_trace {
  kiln_builder *b;
  kiln_call *call;
  uint64_t serial;
  KILN_VEC(kiln_ivalue) values;  /* of variable i + 1; owned; in the unit's arena, as the others */
  kiln_map vars;                 /* value of the graph -> variable */
  kiln_map addresses;            /* tensor or box -> variable */
  KILN_VEC(kiln_node *) unpacks; /* made in case an element is used */
};

/* -- Variables -- */

static int var_of(const kiln_trace *t, const kiln_ir_value *value) {
  return (int)(intptr_t)kiln_map_find_ptr(&t->vars, value);
}

/* Room for the run's value, and a number; the value is None until it is known. */
static int add_var(kiln_trace *t, kiln_ir_value *value) {
  kiln_vec_push(t->b->unit->arena, &t->values, kiln_none());
  int var = kiln__builder_var(t->b, value);
  kiln_map_set_ptr(&t->vars, value, (void *)(intptr_t)var);
  return var;
}

static void note_address(kiln_trace *t, int var) {
  kiln_ivalue v = t->values.data[var - 1];
  if (v.tag < KILN_TAG__COUNTED) return;
  kiln_map_set_ptr(&t->addresses, v.u.box, (void *)(intptr_t)var);
}

/* A value of the host as a value of the graph: known, or a constant. */
static kiln_status *host_actual(kiln_trace *t, const kiln_value *value, kiln_arg *actual) {
  kiln_ivalue v = value ? value->v : kiln_none();
  int var = value && value->trace == t->serial ? value->var : 0;
  if (!var && v.tag >= KILN_TAG__COUNTED) {
    var = (int)(intptr_t)kiln_map_find_ptr(&t->addresses, v.u.box);
  }
  if (var) return kiln__builder_value(t->b, var, &actual->value);
  KILN_TRY(kiln__builder_host_actual(t->b, value, actual));
  var = add_var(t, actual->value);
  t->values.data[var - 1] = kiln_ivalue_retain(v); /* itself, not the constant's copy */
  note_address(t, var);
  return NULL;
}

/* -- Running nodes -- */

static kiln_ivalue *value_at(const kiln_trace *t, const kiln_ir_value *value) {
  return &t->values.data[var_of(t, value) - 1];
}

static kiln_status *run_list(kiln_trace *t, const kiln_node *node) {
  kiln_list *list = NULL;
  KILN_TRY(kiln_list_create(t->b->context->env->mem, kiln_node_output(node, 0)->type->elems[0],
                            node->input_count, &list));
  *value_at(t, kiln_node_output(node, 0)) = kiln_of_box(list);
  for (int i = 0; i < node->input_count; i++) {
    KILN_TRY(kiln_list_push(list, kiln_ivalue_retain(*value_at(t, kiln_node_input(node, i)))));
  }
  return NULL;
}

static kiln_status *run_tuple(kiln_trace *t, const kiln_node *node) {
  kiln_tuple *tuple = NULL;
  KILN_TRY(kiln_tuple_create(t->b->context->env->mem, kiln_node_output(node, 0)->type,
                             node->input_count, &tuple));
  *value_at(t, kiln_node_output(node, 0)) = kiln_of_box(tuple);
  for (int i = 0; i < node->input_count; i++) {
    tuple->items[i] = kiln_ivalue_retain(*value_at(t, kiln_node_input(node, i)));
  }
  return NULL;
}

static void run_unpack(kiln_trace *t, const kiln_node *node) {
  kiln_ivalue from = *value_at(t, kiln_node_input(node, 0));
  const kiln_ivalue *items = from.tag == KILN_TAG_LIST ? from.u.list->items : from.u.tuple->items;
  for (int i = 0; i < node->output_count; i++) {
    *value_at(t, kiln_node_output(node, i)) = kiln_ivalue_retain(items[i]);
  }
}

static kiln_status *run_kernel(kiln_trace *t, const kiln_node *node) {
  const kiln_kernel *kernel = &node->op->kernel;
  kiln_ivalue outs[KILN_MAX_OUTS] = {{0}};
  if (!kernel->body || node->output_count > KILN_MAX_OUTS) {
    return KILN_ERROR(KILN_MISSING_OP, "%.*s cannot be run: Kiln has no kernel for it",
                      KILN_STR_ARG(node->op->full_name));
  }
  kiln_ivalue *args =
      KILN_NEW_ARRAY(t->b->graph->arena, kiln_ivalue, node->input_count + 1); /* borrowed */
  for (int i = 0; i < node->input_count; i++) args[i] = *value_at(t, kiln_node_input(node, i));
  if (kernel->dest_arg >= 0) outs[0] = kiln_ivalue_retain(args[kernel->dest_arg]);
  kiln_status *status = kiln_kernel_run(t->call, kernel, args, node->input_count, outs);
  for (int i = 0; i < KILN_MAX_OUTS; i++) {
    if (!status && i < node->output_count) {
      *value_at(t, kiln_node_output(node, i)) = outs[i];
    } else {
      kiln_ivalue_release(outs[i]);
    }
  }
  return status;
}

static kiln_status *run_node(kiln_trace *t, const kiln_node *node) {
  switch (node->op->id) {
    case KILN_OP_prim_Constant: {
      kiln_ivalue *value = value_at(t, kiln_node_output(node, 0));
      const kiln_ivalue *c = kiln_ir_value_constant(kiln_node_output(node, 0));
      if (value->tag == KILN_TAG_NONE && c) *value = kiln_ivalue_retain(*c);
      return NULL;
    }
    case KILN_OP_prim_ListConstruct: return run_list(t, node);
    case KILN_OP_prim_TupleConstruct: return run_tuple(t, node);
    case KILN_OP_prim_TupleUnpack: run_unpack(t, node); return NULL;
    default: return run_kernel(t, node);
  }
}

/* The elements of a list or tuple that came out, each with a name in the graph. */
static void unpack_result(kiln_trace *t, kiln_ir_value *value) {
  kiln_builder *b = t->b;
  kiln_ivalue v = *value_at(t, value);
  bool is_list = v.tag == KILN_TAG_LIST && value->type->kind == KILN_TYPE_LIST &&
                 value->type->elems[0]->kind == KILN_TYPE_TENSOR;
  bool is_tuple = v.tag == KILN_TAG_TUPLE && value->type->kind == KILN_TYPE_TUPLE &&
                  value->type->elem_count == v.u.tuple->count;
  if (!is_list && !is_tuple) return;
  int64_t count = is_list ? v.u.list->count : v.u.tuple->count;
  if (count == 0 || count > MAX_UNPACKED) return;
  kiln_node *node =
      kiln_node_create_id(b->graph, is_list ? KILN_OP_prim_ListUnpack : KILN_OP_prim_TupleUnpack);
  kiln_node_add_input(node, value);
  kiln_node_append(b->block, node);
  for (int i = 0; i < count; i++) {
    const kiln_type *type = value->type->elems[is_list ? 0 : i];
    (void)add_var(t, kiln_node_add_output(node, type));
  }
  run_unpack(t, node);
  for (int i = 0; i < count; i++) note_address(t, var_of(t, kiln_node_output(node, i)));
  kiln_vec_push(b->unit->arena, &t->unpacks, node);
}

/* -- Calls -- */

/* Runs what the call adds. */
static kiln_status *record(kiln_trace *t, const char *op, const kiln_call_arg *args, int count,
                           int max_results, kiln_node **out_node) {
  kiln_builder *b = t->b;
  const kiln_node *last = b->block->last;
  kiln_arg *actuals = KILN_NEW_ARRAY(b->graph->arena, kiln_arg, count + 1);
  for (int i = 0; i < count; i++) {
    if (args[i].name) actuals[i].keyword = kiln_str_from(args[i].name);
    KILN_TRY(host_actual(t, args[i].value, &actuals[i]));
  }
  KILN_TRY(kiln__builder_call(b, op, actuals, count, out_node));
  const kiln_node *node = *out_node;
  if (node->output_count > max_results) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "%s gives %d results, and there is room for %d", op,
                      node->output_count, max_results);
  }
  kiln_node *first = last ? last->next : b->block->first;
  for (kiln_node *n = first; n; n = n->next) {
    for (int i = 0; i < n->output_count; i++) {
      if (!var_of(t, kiln_node_output(n, i))) (void)add_var(t, kiln_node_output(n, i));
    }
  }
  for (kiln_node *n = first; n; n = n->next) KILN_TRY_NOTE(run_node(t, n), "in %s", op);
  for (int i = 0; i < node->output_count; i++) {
    kiln_ir_value *value = kiln_node_output(node, i);
    note_address(t, var_of(t, value));
    unpack_result(t, value);
  }
  return NULL;
}
static kiln_status *try_record(kiln_trace *t, const char *op, const kiln_call_arg *args, int count,
                               int max_results, kiln_node **out_node) {
  KILN__BUILDER_STEP(t->b, record(t, op, args, count, max_results, out_node));
}

/* Forgets what a failed call had added. */
static void forget(kiln_trace *t, int count) {
  while (t->values.count > count) {
    kiln_ivalue v = kiln_vec_pop(&t->values);
    if (v.tag >= KILN_TAG__COUNTED) {
      int var = (int)(intptr_t)kiln_map_find_ptr(&t->addresses, v.u.box);
      if (var > count) kiln_map_remove_ptr(&t->addresses, v.u.box);
    }
    kiln_ivalue_release(v);
  }
}

static kiln_status *wrap_results(kiln_trace *t, const kiln_node *node, kiln_value **out_results) {
  kiln_context *context = t->b->context;
  KILN_ASSERT(out_results || node->output_count == 0); /* record has counted */
  for (int i = 0; i < node->output_count; i++) {
    int var = var_of(t, kiln_node_output(node, i));
    kiln_status *status = kiln__value_wrap(
        context, NULL, kiln_ivalue_retain(t->values.data[var - 1]), &out_results[i]);
    if (status) {
      while (i > 0) kiln_value_destroy(out_results[--i]);
      return status;
    }
    out_results[i]->trace = t->serial;
    out_results[i]->var = var;
  }
  return NULL;
}

static kiln_status *call_in(kiln_trace *t, const char *op, const kiln_call_arg *args, int count,
                            kiln_value **out_results, int max_results, int *out_count) {
  const int known = t->values.count;
  kiln_node *node = NULL;
  kiln_status *status = try_record(t, op, args, count, out_results ? max_results : 0, &node);
  if (status) {
    forget(t, known);
    return status;
  }
  KILN_ASSERT(node); /* record has made it */
  KILN_TRY(wrap_results(t, node, out_results));
  if (out_count) *out_count = node->output_count;
  return NULL;
}

/* -- Traces -- */

static kiln_status *init_trace(kiln_trace *t, kiln_context *context) {
  t->serial = __atomic_add_fetch(&context->trace_serial, 1, __ATOMIC_RELAXED);
  KILN_TRY(kiln_builder_create(context, &t->b));
  KILN_TRY(kiln_call_create(context->env, &t->call));
  t->call->types = t->b->unit->types;
  t->call->print = context->print;
  t->call->print_user = context->print_user;
  kiln_call_begin(t->call, NULL);
  t->vars = kiln_map_in(t->b->unit->arena);
  t->addresses = kiln_map_in(t->b->unit->arena);
  return NULL;
}

void kiln_trace_destroy(kiln_trace *t) {
  if (!t) return;
  kiln_builder *b = t->b;
  kiln_context *context = b ? b->context : NULL;
  for (int i = 0; i < t->values.count; i++) kiln_ivalue_release(t->values.data[i]);
  t->values.count = 0;
  kiln_call_destroy(t->call);
  t->call = NULL;
  if (context) {
    kiln__context_retain(context);
    kiln_builder_destroy(b);
    kiln_mem_free(context->env->mem, t, sizeof *t);
    kiln_context_release(context);
  }
}

static kiln_status *create_trace(kiln_context *context, kiln_trace **out_trace) {
  kiln_trace *t = kiln_mem_alloc_zero(context->env->mem, sizeof *t);
  if (!t) return kiln_status_oom();
  kiln_status *status = init_trace(t, context);
  if (!status) {
    *out_trace = t;
    return NULL;
  }
  if (t->b) {
    kiln_trace_destroy(t);
  } else {
    kiln_mem_free(context->env->mem, t, sizeof *t);
  }
  return status;
}

kiln_status *kiln_operator_call(kiln_context *context, kiln_trace *trace, const char *op,
                                const kiln_call_arg *args, int count, kiln_value **out_results,
                                int max_results, int *out_count) {
  KILN_NEEDS(context);
  if (out_count) *out_count = 0;
  if (!op || count < 0 || (count > 0 && !args)) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "a call needs an operator and its arguments");
  }
  for (int i = 1; i < count; i++) {
    if (args[i].name || !args[i - 1].name) continue;
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "argument %d comes after a keyword", i);
  }
  kiln_trace *t = trace;
  if (!t) KILN_TRY(create_trace(context, &t));
  kiln_status *status = call_in(t, op, args, count, out_results, max_results, out_count);
  if (!trace) kiln_trace_destroy(t);
  return status;
}

static kiln_status *begin(kiln_trace *t, kiln_value *const *inputs, const char *const *names,
                          int count) {
  kiln_builder *b = t->b;
  for (int i = 0; i < count; i++) {
    kiln_value *value = inputs[i];
    if (!value) return KILN_ERROR(KILN_INVALID_ARGUMENT, "input %d is no value", i);
    const char *name = names && names[i] ? names[i] : kiln_arena_printf(b->graph->arena, "x%d", i);
    KILN_TRY(kiln__builder_check_argument(b, name));
    const kiln_type *type = kiln__builder_type_of(b, value->v);
    int var = add_var(t, kiln_graph_add_input(b->graph, name, type));
    t->values.data[var - 1] = kiln_ivalue_retain(value->v);
    note_address(t, var);
    value->trace = t->serial;
    value->var = var;
  }
  return NULL;
}
static kiln_status *try_begin(kiln_trace *t, kiln_value *const *inputs, const char *const *names,
                              int count) {
  KILN__BUILDER_STEP(t->b, begin(t, inputs, names, count));
}

kiln_status *kiln_trace_begin(kiln_context *context, kiln_value *const *inputs,
                              const char *const *names, int count, kiln_trace **out_trace) {
  KILN_NEEDS(context && out_trace);
  kiln_trace *t = NULL;
  *out_trace = NULL;
  if (count < 0 || (count > 0 && !inputs)) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "%d inputs are wanted, and none is given", count);
  }
  KILN_TRY(create_trace(context, &t));
  kiln_status *status = try_begin(t, inputs, names, count);
  if (status) {
    kiln_trace_destroy(t);
    return status;
  }
  *out_trace = t;
  return NULL;
}

static kiln_status *end(kiln_trace *t, kiln_value *const *results, int count, kiln_var **out_vars) {
  kiln_var *vars = *out_vars = KILN_NEW_ARRAY(t->b->graph->arena, kiln_var, count + 1);
  for (int i = 0; i < count; i++) {
    kiln_arg actual = {0};
    KILN_TRY(host_actual(t, results[i], &actual));
    vars[i] = var_of(t, actual.value);
  }
  return NULL;
}
static kiln_status *try_end(kiln_trace *t, kiln_value *const *results, int count,
                            kiln_var **out_vars) {
  KILN__BUILDER_STEP(t->b, end(t, results, count, out_vars));
}

/* Unpacked elements that nobody used. */
static void drop_unpacks(kiln_trace *t) {
  for (int i = t->unpacks.count - 1; i >= 0; i--) {
    kiln_node *node = t->unpacks.data[i];
    int uses = 0;
    for (int k = 0; k < node->output_count; k++) uses += node->outputs[k]->use_count;
    if (uses == 0) kiln_node_destroy(node);
  }
  t->unpacks.count = 0;
}

kiln_status *kiln_trace_end(kiln_trace *t, kiln_value *const *results, int count,
                            kiln_builder **out_builder) {
  KILN_NEEDS(t && out_builder);
  kiln_status *status = NULL;
  kiln_var *vars = NULL;
  *out_builder = NULL;
  if (count < 0 || (count > 0 && !results)) {
    status = KILN_ERROR(KILN_INVALID_ARGUMENT, "%d results are wanted, and none is given", count);
  }
  if (!status) status = try_end(t, results, count, &vars);
  if (!status) status = kiln_builder_return(t->b, vars, count);
  if (!status) {
    kiln_context *context = t->b->context;
    drop_unpacks(t);
    t->b->vars.count = 0; /* the host has no number of any */
    *out_builder = t->b;
    for (int i = 0; i < t->values.count; i++) kiln_ivalue_release(t->values.data[i]);
    kiln_call_destroy(t->call);
    kiln_mem_free(context->env->mem, t, sizeof *t);
    return NULL;
  }
  kiln_trace_destroy(t);
  return status;
}
