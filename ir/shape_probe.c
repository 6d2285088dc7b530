/* shape_probe.c: result types of an operator without a shape function: its kernel runs once on
 * zeros of the known sizes; the results are looked at and dropped.
 *
 * Only built-in operators without side effects are run, and none whose sizes depend on the
 * elements. Nothing is allocated from an arena while a tensor is held. */
#include "ir/pass.h"

enum { MAX_ARGS = 64, MAX_ITEMS = 256 };

/* -- Which -- */

/* A bool tensor among the indices: as many elements come out as it has true ones. */
static bool has_mask(const kiln_node *node) {
  const kiln_node *list = kiln_node_input(node, 1)->node;
  for (int i = 0; i < list->input_count; i++) {
    const kiln_tensor_detail *d = kiln_node_input(list, i)->type->detail;
    if (d && (d->dtype == KILN_DTYPE_BOOL || d->dtype == KILN_DTYPE_U8)) return true;
  }
  return false;
}

static bool depends_on_elements(const kiln_node *node) {
  return node->op->sizes == KILN_SIZES_data ||
         (node->op->sizes == KILN_SIZES_masks && has_mask(node));
}

static bool may_probe(const kiln_node *node) {
  if (!node->op || !node->op->schema || !node->op->kernel.body || node->block_count > 0 ||
      node->op->id == KILN_OP__CUSTOM || kiln_node_has_side_effects(node) ||
      node->input_count > MAX_ARGS || node->output_count > KILN_MAX_OUTS) {
    return false;
  }
  return !depends_on_elements(node);
}

/* -- Arguments -- */

static kiln_status *zeros_like(kiln_call *call, const kiln_tensor_detail *d, kiln_ivalue *out) {
  kiln_tensor *t = NULL;
  void *data;
  KILN_TRY(kiln_tensor_create_strided(call->env->mem, NULL, (kiln_dtype)d->dtype, d->rank, d->sizes,
                                      d->strides, &t));
  *out = kiln_of_tensor(t);
  KILN_TRY(kiln_tensor_writable_data(t, &data));
  memset(t->storage->data, 0, t->storage->bytes);
  return NULL;
}

/* *out_known false: nothing is known of the value. */
static kiln_status *argument(kiln_call *call, const kiln_ir_value *value, bool *out_known,
                             kiln_ivalue *out) {
  const kiln_ivalue *c = kiln_ir_value_constant(value);
  *out_known = true;
  if (c) {
    *out = kiln_ivalue_retain(*c);
    return NULL;
  }
  if (kiln_type_is_complete_tensor(value->type)) return zeros_like(call, value->type->detail, out);
  *out_known = false;
  if (!kiln_node_is(value->node, KILN_OP_prim_ListConstruct) ||
      value->node->input_count > MAX_ITEMS || value->type->kind != KILN_TYPE_LIST ||
      !kiln_shape_list_stays(value)) {
    return NULL;
  }
  kiln_list *list = NULL;
  KILN_TRY(
      kiln_list_create(call->env->mem, value->type->elems[0], value->node->input_count, &list));
  *out = kiln_of_box(list);
  *out_known = true;
  for (int i = 0; *out_known && i < value->node->input_count; i++) {
    const kiln_ir_value *item = kiln_node_input(value->node, i);
    kiln_ivalue v = kiln_none();
    bool nested = kiln_node_is(item->node, KILN_OP_prim_ListConstruct);
    kiln_status *status = nested ? NULL : argument(call, item, out_known, &v);
    if (nested) *out_known = false;
    if (!status) status = kiln_list_push(list, kiln_ivalue_retain(v));
    kiln_ivalue_release(v);
    KILN_TRY(status);
  }
  return NULL;
}

/* -- Results -- */

/* A tensor's type, out of the tensor. */
typedef struct seen {
  kiln_tensor_detail detail; /* rank -1: no tensor */
  int64_t dims[2 * KILN_MAX_RANK];
} seen;

static void look(seen *s, kiln_ivalue v) {
  s->detail = KILN_TENSOR_DETAIL_ANY;
  if (v.tag != KILN_TAG_TENSOR || kiln_tensor_is_undefined(v.u.tensor)) return;
  const kiln_tensor *t = v.u.tensor;
  int rank = kiln_tensor_rank(t);
  memcpy(s->dims, t->dims, sizeof *t->dims * 2 * (size_t)rank);
  s->detail = (kiln_tensor_detail){.dtype = t->key.f.dtype,
                                   .rank = (int8_t)rank,
                                   .requires_grad = 0,
                                   .device = t->key.f.device_kind,
                                   .device_index = t->key.f.device_index,
                                   .has_strides = true,
                                   .sizes = s->dims,
                                   .strides = s->dims + rank};
}

static kiln_status *run(kiln_call *call, const kiln_node *node, kiln_ivalue *args,
                        kiln_ivalue *outs, bool *out_ran) {
  const kiln_kernel *kernel = &node->op->kernel;
  *out_ran = false;
  for (int i = 0; i < node->input_count; i++) {
    bool known;
    KILN_TRY(argument(call, kiln_node_input(node, i), &known, &args[i]));
    if (!known) return NULL;
  }
  if (kernel->dest_arg >= 0) outs[0] = kiln_ivalue_retain(args[kernel->dest_arg]);
  KILN_TRY(kiln_kernel_run(call, kernel, args, node->input_count, outs));
  *out_ran = true;
  return NULL;
}

static void set_type(kiln_pass *pass, kiln_ir_value *value, const seen *s) {
  if (value->type->kind != KILN_TYPE_TENSOR) return;
  const kiln_type *type = kiln_type_tensor(pass->graph->types, &s->detail);
  if (value->type != type) pass->changed = true;
  value->type = type;
}

kiln_status *kiln_shape_probe(kiln_pass *pass, kiln_node *node) {
  kiln_ivalue args[MAX_ARGS] = {{0}}, outs[KILN_MAX_OUTS] = {{0}};
  seen results[KILN_MAX_OUTS];
  bool ran = false;
  if (!may_probe(node)) return NULL;
  kiln_status *status = run(pass->call, node, args, outs, &ran);
  for (int i = 0; ran && i < node->output_count; i++) look(&results[i], outs[i]);
  for (int i = 0; i < MAX_ARGS; i++) kiln_ivalue_release(args[i]);
  for (int i = 0; i < KILN_MAX_OUTS; i++) kiln_ivalue_release(outs[i]);
  for (int i = 0; ran && i < node->output_count; i++) {
    set_type(pass, kiln_node_output(node, i), &results[i]);
  }
  return status;
}
