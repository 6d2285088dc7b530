/* custom.c: custom operators: their registration, and what a kernel asks of its call.
 *
 * A kernel sees its arguments through handles that lie on our stack and borrow everything, so that
 * a call allocates nothing but the results. */
#include "api/custom.h"

enum { MAX_ARGS = 64, FLAGS_KNOWN = KILN_OP_SPEC_PURE | KILN_OP_SPEC_NONDETERMINISTIC };

/* -- Registering -- */

static void destroy_custom(void *user) {
  kiln__custom *custom = user;
  if (custom->destroy_user) custom->destroy_user(custom->user);
  kiln_mem_free(custom->context->env->mem, custom, sizeof *custom);
}

static kiln_status *read_spec(const kiln_context *context, const kiln_op_spec *given,
                              kiln_op_spec *spec) {
  KILN_ABI_READ(kiln_op_spec, given, spec);
  if (!context || !spec->schema || !spec->kernel) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "an operator needs a context, a schema and a kernel");
  }
  if (spec->flags & ~(uint32_t)FLAGS_KNOWN) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "unknown flags of an operator: %#x", spec->flags);
  }
  return NULL;
}

kiln_status *kiln_op_register(kiln_context *context, const kiln_op_spec *given) {
  kiln_op_spec read, *spec = &read;
  KILN_TRY(read_spec(context, given, spec));
  kiln_mem *mem = context->env->mem;
  kiln__custom *custom = kiln_mem_alloc(mem, sizeof *custom);
  if (!custom) return kiln_status_oom();
  *custom =
      (kiln__custom){context, NULL, spec->kernel, spec->shape, spec->user, spec->destroy_user};
  kiln_op_def def = {.text = spec->schema,
                     .body = kiln__custom_run,
                     .cost = KILN_COST_data,
                     .user = custom,
                     .destroy = destroy_custom};
  if (!(spec->flags & KILN_OP_SPEC_PURE)) def.flags |= KILN_OP_SIDE_EFFECT;
  if (spec->flags & KILN_OP_SPEC_NONDETERMINISTIC) def.flags |= KILN_OP_NONDETERMINISTIC;
  if (spec->shape) { /* it is asked about what the profile saw */
    def.shape = kiln__custom_infer;
    def.flags |= KILN_OP_PROFILED;
  }
  kiln_status *status = kiln_registry_add(context->registry, &def, &custom->op);
  if (status) kiln_mem_free(mem, custom, sizeof *custom);
  return status;
}

const char *kiln_op_registered(const kiln_context *context, int index) {
  if (!context) return NULL;
  const kiln_op *op = kiln_registry_custom_at(context->registry, index);
  return op ? op->text : NULL;
}

kiln_status *kiln_op_error(kiln_code code, const char *format, ...) {
  va_list args;
  va_start(args, format);
  kiln_status *status = kiln_status_create_v(code, __FILE__, __LINE__, format, args);
  va_end(args);
  return status;
}

/* -- Arguments -- */

kiln_context *kiln_op_context(const kiln_op_call *call) {
  if (!call) return NULL;
  return call->custom->context;
}

const kiln_value *kiln_op_argument(const kiln_op_call *call, int index) {
  if (!call) return NULL;
  return index >= 0 && index < call->schema->arg_count ? &call->values[index] : NULL;
}

/* The tensor that may be written, or NULL. */
static kiln_tensor *written_tensor(const kiln_op_call *call, int index, int element) {
  if (index < 0 || index >= call->schema->arg_count) return NULL;
  const kiln_schema_arg *arg = &call->schema->args[index];
  kiln_ivalue v = call->args[index];
  bool marked = element < 0 ? arg->alias.is_write : arg->elem_alias.is_write;
  if (!marked) return NULL;
  if (element >= 0) {
    if (v.tag != KILN_TAG_LIST || element >= v.u.list->count) return NULL;
    v = v.u.list->items[element];
  }
  bool defined = v.tag == KILN_TAG_TENSOR && !kiln_tensor_is_undefined(v.u.tensor);
  return defined ? v.u.tensor : NULL;
}

kiln_status *kiln_op_writable(kiln_op_call *call, int index, int element, void **out_data) {
  KILN_NEEDS(call && out_data);
  kiln_tensor *t = written_tensor(call, index, element);
  *out_data = NULL;
  if (!t) {
    return KILN_OP_FAIL("%s: argument %d is no tensor that its schema marks as written",
                        call->call->kernel->name, index);
  }
  KILN_TRY(kiln_tensor_writable_data(t, out_data));
  if (t->numel == 0) *out_data = NULL;
  return NULL;
}

/* -- Results -- */

static kiln_status *check_index(const kiln_op_call *call, int index) {
  if (index >= 0 && index < call->schema->result_count) return NULL;
  return KILN_OP_FAIL("%s has no result %d", call->call->kernel->name, index);
}

static void set_out(kiln_op_call *call, int index, kiln_ivalue v) {
  kiln_ivalue_release_to(&call->call->cache, call->outs[index]);
  call->outs[index] = v;
  call->outs_set |= 1u << index;
}

kiln_status *kiln_op_result_tensor(kiln_op_call *call, int index, kiln_dtype dtype, int rank,
                                   const int64_t *sizes, void **out_data) {
  KILN_NEEDS(call && out_data);
  kiln_tensor *t = NULL;
  *out_data = NULL;
  KILN_TRY(check_index(call, index));
  if (kiln_dtype_size(dtype) == 0 || rank < 0 || rank > KILN_MAX_RANK || (rank > 0 && !sizes)) {
    return KILN_OP_FAIL("%s: no tensor has dtype %d and %d dimensions", call->call->kernel->name,
                        (int)dtype, rank);
  }
  KILN_TRY(kiln_call_tensor(call->call, dtype, rank, sizes, &t));
  kiln_status *status = kiln_tensor_writable_data(t, out_data);
  if (status) {
    kiln_tensor_release(t);
    return status;
  }
  set_out(call, index, kiln_of_tensor(t));
  return NULL;
}

kiln_status *kiln_op_set_result(kiln_op_call *call, int index, const kiln_value *value) {
  KILN_NEEDS(call);
  KILN_TRY(check_index(call, index));
  if (!value) {
    return KILN_OP_FAIL("%s: result %d is a NULL handle", call->call->kernel->name, index);
  }
  set_out(call, index, kiln_ivalue_retain(value->v));
  return NULL;
}

kiln_status *kiln_op_check(kiln_op_call *call, uint64_t work) {
  KILN_NEEDS(call);
  return kiln_call_check(call->call, work);
}

/* -- Running -- */

/* The host's own words in one of the codes that a failing operator has. */
static kiln_status *fit_code(kiln_status *status) {
  switch (kiln_status_code(status)) {
    case KILN_OP_ERROR:
    case KILN_RAISED:
    case KILN_UNSUPPORTED:
    case KILN_LIMIT:
    case KILN_CANCELLED:
    case KILN_OUT_OF_MEMORY:
    case KILN_INTERNAL: return status;
    default: break;
  }
  kiln_status *fit = KILN_OP_FAIL("%s", kiln_status_message(status));
  kiln_status_destroy(status);
  return fit;
}

/* A result marked as written is its argument, unless the kernel set another. */
static void default_results(kiln_op_call *c) {
  for (int i = 0; i < c->schema->result_count; i++) {
    const kiln_alias_info *mark = &c->schema->results[i].alias;
    if ((c->outs_set & 1u << i) || !mark->is_write) continue;
    for (int k = 0; k < c->schema->arg_count; k++) {
      if (!(c->schema->args[k].alias.sets & mark->sets)) continue;
      c->outs[i] = kiln_ivalue_retain(c->args[k]);
      break;
    }
  }
}

static kiln_status *finish(kiln_op_call *c) {
  kiln__custom_answer answers[KILN_MAX_OUTS];
  int count = c->schema->result_count;
  default_results(c);
  bool told = c->custom->shape &&
              kiln__custom_ask(c->custom, c->args, c->schema->arg_count, count, answers);
  for (int i = 0; i < count; i++) {
    KILN_TRY(kiln__custom_finish(c, i, told && answers[i].is_set ? &answers[i] : NULL));
  }
  return NULL;
}

kiln_status *kiln__custom_run(kiln_call *call, const kiln_ivalue *args, kiln_ivalue *outs) {
  const kiln__custom *custom = call->kernel->user;
  const kiln_schema *schema = custom->op->schema;
  int count = schema->arg_count;
  kiln_value values[MAX_ARGS];
  KILN_CHECK(call->arg_count == count && count <= MAX_ARGS);
  for (int i = 0; i < count; i++) {
    values[i] = (kiln_value){.context = custom->context,
                             .model = call->host,
                             .v = args[i],
                             .stripe = (uint8_t)kiln_stripe_here()};
  }
  kiln_op_call c = {.call = call,
                    .custom = custom,
                    .schema = schema,
                    .args = args,
                    .outs = outs,
                    .values = values};
  kiln_status *status = custom->kernel(custom->user, &c);
  status = status ? fit_code(status) : finish(&c);
  for (int i = 0; i < count; i++) {
    char *text = values[i].type_text;
    if (text) kiln_mem_free(custom->context->env->mem, text, strlen(text) + 1);
  }
  return status;
}
