/* custom_shape.c: shape functions of custom operators.
 *
 * One question has two sides: the compiler's, where types and constants are known, and a run's,
 * where everything is. The function sees no difference. Its answers stand on our stack and go into
 * the arena when it has returned: an allocation that fails would jump over the host's frame. */
#include "api/custom.h"

/* -- What is known -- */

static const kiln_ivalue *value_of(const kiln_op_shape *shape, int argument) {
  if (argument < 0 || argument >= shape->arg_count) return NULL;
  return shape->args ? &shape->args[argument] : shape->query->constants[argument];
}

/* Element -1 is the value itself. */
static const kiln_ivalue *element_of(const kiln_ivalue *value, int element) {
  if (!value || element < 0) return value;
  if (value->tag != KILN_TAG_LIST || element >= value->u.list->count) return NULL;
  return &value->u.list->items[element];
}

static const kiln_shape_list *list_of(const kiln_op_shape *shape, int argument) {
  if (shape->args || argument < 0 || argument >= shape->arg_count) return NULL;
  return shape->query->lists[argument];
}

static int put_info(kiln_op_tensor_info *out, kiln_dtype dtype, int rank, const int64_t *sizes) {
  out->dtype = dtype;
  out->rank = rank <= KILN_OP_MAX_RANK ? rank : -1;
  for (int i = 0; i < out->rank; i++) {
    out->sizes[i] = sizes && sizes[i] >= 0 ? sizes[i] : KILN_DIM_UNKNOWN;
  }
  return dtype != KILN_DTYPE_NONE || out->rank >= 0;
}

static const kiln_tensor_detail *detail_of(const kiln_op_shape *shape, int argument, int element) {
  if (shape->args || argument < 0 || argument >= shape->arg_count) return NULL;
  if (element < 0) return shape->query->args[argument];
  const kiln_shape_list *list = list_of(shape, argument);
  return list && list->tensors && element < list->count ? list->tensors[element] : NULL;
}

static int tensor_info(const kiln_op_shape *shape, int argument, int element,
                       kiln_op_tensor_info *out_info) {
  const kiln_tensor_detail *d = detail_of(shape, argument, element);
  *out_info = (kiln_op_tensor_info){.dtype = KILN_DTYPE_NONE, .rank = -1};
  if (d) return put_info(out_info, (kiln_dtype)d->dtype, d->rank, d->sizes);
  const kiln_ivalue *v = element_of(value_of(shape, argument), element);
  if (!v || v->tag != KILN_TAG_TENSOR || kiln_tensor_is_undefined(v->u.tensor)) return 0;
  const kiln_tensor *t = v->u.tensor;
  return put_info(out_info, kiln_tensor_dtype(t), kiln_tensor_rank(t), kiln_tensor_sizes(t));
}

int kiln_op_shape_tensor_sized(const kiln_op_shape *shape, int argument, int element,
                               kiln_op_tensor_info *out_info, size_t struct_size) {
  if (!shape || !out_info) return 0;
  kiln_op_tensor_info info;
  int known = tensor_info(shape, argument, element, &info);
  kiln_abi_write(out_info, struct_size, &info, sizeof info);
  return known;
}

int(kiln_op_shape_tensor)(const kiln_op_shape *shape, int argument, int element,
                          kiln_op_tensor_info *out_info) {
  if (!shape || !out_info) return 0;
  return kiln_op_shape_tensor(shape, argument, element, out_info);
}

int kiln_op_shape_int(const kiln_op_shape *shape, int argument, int element, int64_t *out_value) {
  if (!shape || !out_value) return 0;
  const kiln_shape_list *list = list_of(shape, argument);
  *out_value = 0;
  if (list && element >= 0 && list->ints) {
    if (element >= list->count || !list->known[element]) return 0;
    *out_value = list->ints[element];
    return 1;
  }
  const kiln_ivalue *v = element_of(value_of(shape, argument), element);
  if (!v || (v->tag != KILN_TAG_INT && v->tag != KILN_TAG_BOOL)) return 0;
  *out_value = v->tag == KILN_TAG_INT ? v->u.i : v->u.b;
  return 1;
}

int kiln_op_shape_float(const kiln_op_shape *shape, int argument, int element, double *out_value) {
  if (!shape || !out_value) return 0;
  const kiln_ivalue *v = element_of(value_of(shape, argument), element);
  int64_t i;
  *out_value = 0;
  if (v && v->tag == KILN_TAG_FLOAT) {
    *out_value = v->u.f;
    return 1;
  }
  if (!kiln_op_shape_int(shape, argument, element, &i)) return 0;
  *out_value = (double)i;
  return 1;
}

int kiln_op_shape_count(const kiln_op_shape *shape, int argument) {
  if (!shape) return 0;
  const kiln_shape_list *list = list_of(shape, argument);
  const kiln_ivalue *v = value_of(shape, argument);
  if (list) return list->count;
  return v && v->tag == KILN_TAG_LIST && v->u.list->count <= INT32_MAX ? (int)v->u.list->count : -1;
}

int kiln_op_shape_is_none(const kiln_op_shape *shape, int argument) {
  if (!shape) return 0;
  const kiln_ivalue *v = value_of(shape, argument);
  if (v) return v->tag == KILN_TAG_NONE;
  if (shape->args || argument < 0 || argument >= shape->arg_count) return -1;
  kiln_type_kind kind = shape->query->types[argument]->kind;
  if (kind == KILN_TYPE_NONE) return 1;
  return kind == KILN_TYPE_OPTIONAL || kind == KILN_TYPE_ANY || kind == KILN_TYPE_UNION ? -1 : 0;
}

void kiln_op_shape_set(kiln_op_shape *shape, int index, kiln_dtype dtype, int rank,
                       const int64_t *sizes) {
  if (!shape) return;
  bool good = index >= 0 && index < shape->out_count && rank >= -1 && rank <= KILN_OP_MAX_RANK &&
              (rank <= 0 || sizes) && (dtype == KILN_DTYPE_NONE || kiln_dtype_size(dtype) > 0);
  if (!good) {
    shape->bad = true;
    return;
  }
  kiln__custom_answer *a = &shape->answers[index];
  a->is_set = true;
  (void)put_info(&a->info, dtype, rank, sizes);
}

/* -- Asking -- */

bool kiln__custom_ask(const kiln__custom *custom, const kiln_ivalue *args, int arg_count,
                      int out_count, kiln__custom_answer *answers) {
  kiln_op_shape shape = {
      .arg_count = arg_count, .out_count = out_count, .args = args, .answers = answers};
  for (int i = 0; i < out_count; i++) answers[i].is_set = false;
  return custom->shape(custom->user, &shape) != 0 && !shape.bad;
}

bool kiln__custom_infer(kiln_shape_query *query) {
  const kiln__custom *custom = query->op->kernel.user;
  kiln__custom_answer answers[KILN_MAX_OUTS];
  kiln_op_shape shape = {.arg_count = query->arg_count,
                         .out_count = query->op->schema->result_count,
                         .query = query,
                         .answers = answers};
  for (int i = 0; i < KILN_MAX_OUTS; i++) answers[i].is_set = false;
  if (!custom->shape(custom->user, &shape) || shape.bad) return false;
  for (int i = 0; i < shape.out_count; i++) {
    const kiln_schema_arg *result = &query->op->schema->results[i];
    const kiln_op_tensor_info *info = &answers[i].info;
    if (!answers[i].is_set || !kiln_type_is_tensor(result->type)) continue;
    kiln_shape_answer(query, i, info->dtype, info->rank, info->sizes, !result->alias.present);
  }
  return true;
}
