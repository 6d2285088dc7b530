/* shape.c: from a node to its results' types: gathers what is known of the arguments, asks the
 * operator's shape function, and sets the types. */
#include "ir/shape.h"
#include "runtime/strides.h"

#include "ir/pass.h"

/* -- Reading arguments -- */

bool kiln__shape_is_tensor(const kiln_shape_query *q, int i) {
  return i < q->arg_count && q->types[i]->kind == KILN_TYPE_TENSOR;
}

const kiln_tensor_detail *kiln__shape_tensor(const kiln_shape_query *q, int i) {
  static const kiln_tensor_detail any = {.dtype = KILN_DTYPE_NONE,
                                         .rank = -1,
                                         .requires_grad = -1,
                                         .undefined = -1,
                                         .device = -1,
                                         .device_index = -1};
  if (!kiln__shape_is_tensor(q, i)) return NULL;
  return q->args[i] ? q->args[i] : &any;
}

bool kiln__shape_int(const kiln_shape_query *q, int i, int64_t *out) {
  const kiln_ivalue *v = i < q->arg_count ? q->constants[i] : NULL;
  if (!v || v->tag != KILN_TAG_INT) return false;
  *out = v->u.i;
  return true;
}

bool kiln__shape_sum(const kiln_shape_query *q, int i, kiln_sum *out) {
  int64_t number;
  *out = kiln_sum_number(0);
  if (kiln__shape_int(q, i, &number)) {
    *out = kiln_sum_number(number);
  } else {
    *out = kiln_sum_of(q->dims, q->sizes && i < q->arg_count ? q->sizes[i] : KILN_DIM_UNKNOWN);
  }
  return out->known;
}

bool kiln__shape_bool(const kiln_shape_query *q, int i, bool *out) {
  const kiln_ivalue *v = i < q->arg_count ? q->constants[i] : NULL;
  if (!v || v->tag != KILN_TAG_BOOL) return false;
  *out = v->u.b;
  return true;
}

bool kiln__shape_is_none(const kiln_shape_query *q, int i) {
  return i >= q->arg_count || (q->constants[i] && q->constants[i]->tag == KILN_TAG_NONE);
}

bool kiln__shape_dim(const kiln_shape_query *q, int i, int rank, int *out) {
  int64_t dim;
  int64_t bound = rank > 0 ? rank : 1;
  if (!kiln__shape_int(q, i, &dim) || dim < -bound || dim >= bound) return false;
  *out = (int)(dim < 0 ? dim + bound : dim);
  return true;
}

bool kiln__shape_ints(const kiln_shape_query *q, int i, kiln_shape_list *out) {
  if (i >= q->arg_count) return false;
  if (q->lists[i] && q->lists[i]->ints) {
    *out = *q->lists[i];
    return out->count <= KILN_MAX_RANK;
  }
  kiln_sum sum;
  if (!kiln__shape_sum(q, i, &sum)) return false;
  int64_t *ints = KILN_NEW(q->arena, int64_t);
  bool *known = KILN_NEW(q->arena, bool);
  kiln_dim *dim = KILN_NEW(q->arena, kiln_dim);
  *known = kiln__shape_int(q, i, ints);
  if (!*known) *ints = KILN_DIM_UNKNOWN;
  *dim = kiln_sum_is_natural(q->dims, sum) ? kiln_sum_dim(q->dims, sum) : KILN_DIM_UNKNOWN;
  *out = (kiln_shape_list){.count = 1, .ints = ints, .known = known, .dims = dim};
  return true;
}

int kiln__shape_find(const kiln_shape_query *q, const char *name) {
  const kiln_schema *s = q->op->schema;
  for (int i = 0; s && i < s->arg_count; i++) {
    if (kiln_str_is(s->args[i].name, name)) return i;
  }
  return -1;
}

kiln_dtype kiln__shape_dtype(const kiln_shape_query *q, kiln_dtype fallback) {
  int i = kiln__shape_find(q, "dtype");
  int64_t dtype;
  if (i < 0 || kiln__shape_is_none(q, i)) return fallback;
  if (!kiln__shape_int(q, i, &dtype) || !kiln_dtype_is_valid(dtype)) return KILN_DTYPE_NONE;
  return (kiln_dtype)dtype;
}

/* Whether a dimension of more than one element has these elements, or fewer, within each step: the
 * next inner one of a tensor without gaps. */
static int next_inner(const kiln_tensor_detail *t, kiln_dim within, const bool *done) {
  int at = t->rank - 1;
  while (at >= 0 && (done[at] || t->sizes[at] == 1 || t->strides[at] != within)) at--;
  return at;
}

bool kiln__shape_is_dense(const kiln_shape_query *q, const kiln_tensor_detail *t, bool row_major) {
  bool done[KILN_MAX_RANK] = {false};
  kiln_dim within = 1;
  if (t->rank < 0 || (t->rank > 0 && !t->has_strides)) return false;
  int left = 0, last = t->rank;
  for (int i = 0; i < t->rank; i++) {
    if (t->sizes[i] == 0) return false; /* any strides are dense, and say nothing of a result's */
    left += t->sizes[i] != 1;
  }
  for (; left > 0; left--) {
    const int at = next_inner(t, within, done);
    if (at < 0 || (row_major && at > last)) return false;
    done[at] = true;
    last = at;
    within = kiln_dim_product(q->dims, within, t->sizes[at]);
    if (!kiln_dim_is_known(within)) return false;
  }
  return true;
}

bool kiln__shape_is_contiguous(const kiln_shape_query *q, const kiln_tensor_detail *t) {
  const kiln_strided dims = {t->rank, t->sizes, t->strides};
  if (t->rank < 0 || !t->has_strides) return false;
  return kiln__shape_static(t->rank, t->sizes) ? kiln_strides_are_contiguous(&dims)
                                               : kiln__shape_is_dense(q, t, true);
}

bool kiln__shape_has_rows(const kiln_shape_query *q, int rank, const kiln_dim *sizes,
                          const kiln_dim *strides) {
  kiln_dim within = 1;
  for (int d = rank - 1; d >= 0; d--) {
    if (!kiln_dim_is_known(within) || strides[d] != within) return false;
    if (sizes[d] != 0) within = kiln_dim_product(q->dims, within, sizes[d]);
  }
  return true;
}
bool kiln__shape_is_row_major(const kiln_shape_query *q, const kiln_tensor_detail *t) {
  return kiln__shape_is_contiguous(q, t) && kiln__shape_has_rows(q, t->rank, t->sizes, t->strides);
}

bool kiln__shape_chunks(kiln_dims *dims, kiln_dim size, int64_t count, kiln_dim *out_size,
                        kiln_dim *out_last) {
  const kiln_sum all = kiln_sum_of(dims, size), up = kiln_sum_number(count - 1);
  const kiln_sum piece = kiln_sum_divided(dims, kiln_sum_plus(all, up), count);
  const kiln_sum last = kiln_sum_minus(all, kiln_sum_times(piece, count - 1));
  *out_size = kiln_sum_dim(dims, piece);
  *out_last = kiln_sum_dim(dims, last);
  return kiln_sum_is_natural(dims, kiln_sum_minus(last, kiln_sum_number(1)));
}

/* -- Making results -- */

kiln_tensor_detail *kiln__shape_result(kiln_shape_query *q, int index) {
  kiln_tensor_detail *out = &q->outs[index];
  *out = KILN_TENSOR_DETAIL_ANY;
  out->undefined = 0;
  bool first = true, device_known = true;
  out->requires_grad = 0;
  for (int i = 0; i < q->arg_count; i++) {
    const kiln_tensor_detail *t = kiln__shape_tensor(q, i);
    int count = 1;
    const kiln_tensor_detail *const *items = &t;
    const bool *is_none = NULL;
    if (!t) {
      if (!q->lists[i] || !q->lists[i]->tensors) continue;
      count = q->lists[i]->count;
      items = q->lists[i]->tensors;
      is_none = q->lists[i]->known;
    }
    for (int k = 0; k < count; k++) {
      if (is_none && is_none[k]) continue;
      if (!items[k]) device_known = false;
      if (!items[k] || items[k]->requires_grad != 0) out->requires_grad = -1;
      if (!items[k] || (!first && items[k]->rank == 0)) continue;
      device_known &= first || items[k]->device == out->device;
      out->device = items[k]->device;
      out->device_index = items[k]->device_index;
      first = false;
    }
  }
  if (!device_known) out->device = -1, out->device_index = -1;
  return out;
}

int64_t *kiln__shape_new(kiln_shape_query *q, int rank) {
  return kiln_arena_alloc(q->arena, sizeof(int64_t) * (size_t)(rank ? rank : 1));
}

bool kiln__shape_static(int rank, const int64_t *sizes) {
  for (int i = 0; i < rank; i++) {
    if (!kiln_dim_is_number(sizes[i])) return false;
  }
  return rank >= 0;
}

bool kiln__shape_join_dim(kiln_dim *size, kiln_dim other) {
  if (kiln_dim_is_number(*size) && kiln_dim_is_number(other)) return *size == other;
  if (kiln_dim_is_number(other) || !kiln_dim_is_known(*size)) *size = other;
  return true;
}

void kiln__shape_set(kiln_shape_query *q, kiln_tensor_detail *out, int rank, const int64_t *sizes,
                     const int64_t *strides) {
  int64_t *copy = kiln__shape_new(q, rank);
  for (int i = 0; i < rank; i++) copy[i] = sizes[i];
  out->rank = (int8_t)rank;
  out->dims = q->dims;
  out->sizes = copy;
  out->has_strides = strides != NULL;
  out->strides = NULL;
  if (!strides) return;
  copy = kiln__shape_new(q, rank);
  for (int i = 0; i < rank; i++) copy[i] = strides[i];
  out->strides = copy;
}

void kiln__shape_row_major(kiln_shape_query *q, kiln_tensor_detail *out, int rank,
                           const int64_t *sizes) {
  int64_t strides[KILN_MAX_RANK];
  kiln_dim step = 1;
  for (int i = rank - 1; i >= 0; i--) {
    strides[i] = step;
    step = kiln_dim_product(q->dims, step, sizes[i] == 0 ? 1 : sizes[i]);
  }
  kiln__shape_set(q, out, rank, sizes, strides);
}

void kiln_shape_answer(kiln_shape_query *query, int index, kiln_dtype dtype, int rank,
                       const int64_t *sizes, bool row_major) {
  kiln_tensor_detail *out = kiln__shape_result(query, index);
  out->dtype = (int16_t)dtype;
  if (rank < 0) return;
  if (row_major) {
    kiln__shape_row_major(query, out, rank, sizes);
  } else {
    kiln__shape_set(query, out, rank, sizes, NULL);
  }
}

bool kiln__shape_give(kiln_shape_query *q, int index, int dtype, int rank, const int64_t *sizes,
                      bool plain) {
  kiln_shape_answer(q, index, (kiln_dtype)dtype, rank, sizes, plain);
  if (dtype == KILN_DTYPE_I64 || dtype == KILN_DTYPE_BOOL) q->outs[index].requires_grad = 0;
  return true;
}

/* -- From nodes -- */

/* What is known of a value, with its expressions among the graph's. */
static const kiln_tensor_detail *detail_of(const kiln_graph *graph, const kiln_ir_value *value) {
  const kiln_tensor_detail *d = value->type->kind == KILN_TYPE_TENSOR ? value->type->detail : NULL;
  const bool foreign = d && d->dims && d->dims != kiln_type_table_dims(graph->types);
  return foreign ? kiln_type_tensor(graph->types, d)->detail : d;
}

static const kiln_tensor_detail *detail_of_constant(kiln_arena *arena, kiln_ivalue v) {
  if (v.tag != KILN_TAG_TENSOR || v.u.tensor->key.f.undefined) return NULL;
  const kiln_tensor *t = v.u.tensor;
  kiln_tensor_detail *d = KILN_NEW(arena, kiln_tensor_detail);
  *d = KILN_TENSOR_DETAIL_ANY;
  d->dtype = t->key.f.dtype;
  d->rank = (int8_t)t->key.f.rank;
  d->requires_grad = (int8_t)t->key.f.requires_grad;
  d->undefined = 0;
  d->device = t->key.f.device_kind;
  d->device_index = t->key.f.device_index;
  d->has_strides = true;
  d->sizes = kiln_tensor_sizes(t);
  d->strides = kiln_tensor_strides(t);
  return d;
}

bool kiln_shape_only_reads(const kiln_node *user, int index) {
  const kiln_schema *schema = user->op ? user->op->schema : NULL;
  if (kiln_node_is(user, KILN_OP_prim_ListUnpack) || kiln_node_is_group(user) ||
      kiln_node_is(user, KILN_OP_prim_FallbackGraph) || user == user->graph->top->ret) {
    return true;
  }
  if (kiln_node_is(user, KILN_OP_prim_CallFunction)) { /* a region's, which has no effects */
    return index > 0 && kiln_node_attr(kiln_node_input(user, 0)->node, "fallback");
  }
  if (!schema || user->block_count > 0) return false;
  if (index >= schema->arg_count) /* "{}".format(list) */
    return schema->is_vararg && user->output_count == 1 &&
           user->outputs[0]->type->kind == KILN_TYPE_STR;
  const kiln_alias_info *a = &schema->args[index].alias;
  if (!a->present) return true;
  if (a->is_write || a->after != a->sets) return false;
  for (int i = 0; i < user->output_count; i++) {
    const int r = i < schema->result_count ? i : schema->result_count - 1;
    const bool same = r >= 0 && schema->results[r].alias.present &&
                      (schema->results[r].alias.sets & a->sets) != 0;
    if (same && user->outputs[i]->type->kind != KILN_TYPE_TENSOR) return false;
  }
  return true;
}

bool kiln_shape_list_stays(const kiln_ir_value *list) {
  for (const kiln_use *use = list->uses; use; use = use->next) {
    if (!kiln_shape_only_reads(use->user, use->index)) return false;
  }
  return true;
}

/* A constant, or a number that is known where the question is asked. */
static const kiln_ivalue *known(const kiln_ir_value *value) {
  const kiln_ivalue *constant = kiln_ir_value_constant(value);
  const kiln_map *facts = value->node->graph->facts;
  return constant || !facts ? constant : kiln_map_find_ptr(facts, value);
}

/* The expression that an int is known to be, where the question is asked. */
static kiln_dim known_size(const kiln_ir_value *value) {
  const kiln_map *sizes = value->node->graph->sizes;
  void *size = sizes ? kiln_map_find_ptr(sizes, value) : NULL;
  return size ? (kiln_dim)(intptr_t)size : KILN_DIM_UNKNOWN;
}

static const kiln_type *unwrapped(const kiln_type *type) {
  return type->kind == KILN_TYPE_OPTIONAL ? type->elems[0] : type;
}

/* The elements of a list of ints, and room for them. */
typedef struct int_list {
  kiln_shape_list list;
  int64_t *ints;
  bool *known;
  kiln_dim *dims;
} int_list;
static int_list new_ints(kiln_arena *arena, int64_t count) {
  int_list l = {.ints = KILN_NEW_ARRAY(arena, int64_t, count + 1),
                .known = KILN_NEW_ARRAY(arena, bool, count + 1),
                .dims = KILN_NEW_ARRAY(arena, kiln_dim, count + 1)};
  l.list = (kiln_shape_list){.count = (int)count, .ints = l.ints, .known = l.known, .dims = l.dims};
  return l;
}
static void put_int(int_list *l, int i, const kiln_ivalue *v) {
  l->known[i] = v && v->tag == KILN_TAG_INT;
  l->ints[i] = l->known[i] ? v->u.i : KILN_DIM_UNKNOWN;
  l->dims[i] = l->ints[i] >= 0 ? l->ints[i] : KILN_DIM_UNKNOWN;
}
static void put_ints(int_list *l, int at, const kiln_shape_list *from, int first, int count) {
  for (int i = 0; i < count; i++, at++, first++) {
    l->ints[at] = from->ints[first];
    l->known[at] = from->known[first];
    l->dims[at] = from->dims[first];
  }
}

enum {
  MAX_LIST = 4096,
  MAX_LISTS = 8
}; /* elements of a list; lists in a row that one is made from */

static bool ints_of(kiln_arena *arena, const kiln_ir_value *value, int depth, int_list *out);

/* x.size() of a tensor whose rank is known. */
static bool ints_of_sizes(kiln_arena *arena, const kiln_node *node, int_list *out) {
  const kiln_tensor_detail *d = detail_of(node->graph, kiln_node_input(node, 0));
  if (!d || d->rank < 0) return false;
  *out = new_ints(arena, d->rank);
  for (int i = 0; i < d->rank; i++) {
    out->known[i] = kiln_dim_is_number(d->sizes[i]);
    out->ints[i] = kiln_dim_or(d->sizes[i], KILN_DIM_UNKNOWN);
    out->dims[i] = d->sizes[i];
  }
  return true;
}
/* A place that a slice of `count` elements begins or ends at, as Python has it. */
static bool place_in(const kiln_ir_value *value, int64_t none, int64_t count, int64_t *out) {
  const kiln_ivalue *v = known(value);
  if (!v || (v->tag != KILN_TAG_INT && v->tag != KILN_TAG_NONE)) return false;
  int64_t at = v->tag == KILN_TAG_NONE ? none : v->u.i;
  if (at < 0) at += at < -count ? -at : count;
  *out = at > count ? count : at;
  return true;
}
static bool ints_of_slice(kiln_arena *arena, const kiln_node *node, int depth, int_list *out) {
  int_list from;
  int64_t begin, end, step;
  if (!ints_of(arena, kiln_node_input(node, 0), depth, &from)) return false;
  if (!place_in(kiln_node_input(node, 1), 0, from.list.count, &begin) ||
      !place_in(kiln_node_input(node, 2), from.list.count, from.list.count, &end) ||
      !kiln_ir_value_const_int(kiln_node_input(node, 3), &step) || step != 1)
    return false;
  const int count = end > begin ? (int)(end - begin) : 0;
  *out = new_ints(arena, count);
  put_ints(out, 0, &from.list, (int)begin, count);
  return true;
}
static bool ints_of_sum(kiln_arena *arena, const kiln_node *node, int depth, int_list *out) {
  int_list a, b;
  if (!ints_of(arena, kiln_node_input(node, 0), depth, &a) ||
      !ints_of(arena, kiln_node_input(node, 1), depth, &b) ||
      a.list.count + b.list.count > MAX_LIST)
    return false;
  *out = new_ints(arena, a.list.count + b.list.count);
  put_ints(out, 0, &a.list, 0, a.list.count);
  put_ints(out, a.list.count, &b.list, 0, b.list.count);
  return true;
}
static bool ints_of_items(kiln_arena *arena, const kiln_ir_value *value, int_list *out) {
  const kiln_ivalue *constant = kiln_ir_value_constant(value);
  const int64_t count = constant ? constant->u.list->count : value->node->input_count;
  kiln_dims *table = kiln_type_table_dims(value->node->graph->types);
  if (count > MAX_LIST) return false;
  *out = new_ints(arena, count);
  for (int i = 0; i < (int)count; i++) {
    const kiln_ir_value *item = constant ? NULL : kiln_node_input(value->node, i);
    put_int(out, i, constant ? &constant->u.list->items[i] : known(item));
    const kiln_dim size = constant ? KILN_DIM_UNKNOWN : known_size(item);
    if (kiln_dim_is_known(size) &&
        kiln_dims_prove(table, kiln_sum_number(0), kiln_sum_of(table, size)))
      out->dims[i] = size;
  }
  return true;
}

/* Of a constant, of what a node gathers, of sizes, and of parts and sums of these. */
static bool ints_of(kiln_arena *arena, const kiln_ir_value *value, int depth, int_list *out) {
  const kiln_ivalue *constant = kiln_ir_value_constant(value);
  const kiln_node *node = value->node;
  if (constant) return constant->tag == KILN_TAG_LIST && ints_of_items(arena, value, out);
  if (!node->op || depth == MAX_LISTS || !kiln_shape_list_stays(value)) return false;
  switch ((kiln_op_id)node->op->id) {
    case KILN_OP_prim_ListConstruct: return ints_of_items(arena, value, out);
    case KILN_OP_size: return ints_of_sizes(arena, node, out);
    case KILN_OP_slice_t: return ints_of_slice(arena, node, depth + 1, out);
    case KILN_OP_list_t: return ints_of(arena, kiln_node_input(node, 0), depth + 1, out);
    case KILN_OP_add_t: return ints_of_sum(arena, node, depth + 1, out);
    default: return false;
  }
}

const kiln_shape_list *kiln_shape_ints_of(kiln_arena *arena, const kiln_ir_value *list) {
  int_list own;
  if (!ints_of(arena, list, 0, &own)) return NULL;
  kiln_shape_list *out = KILN_NEW(arena, kiln_shape_list);
  *out = own.list;
  return out;
}

/* The elements of a list value, where they are known one by one. */
static const kiln_shape_list *list_of(kiln_arena *arena, const kiln_ir_value *value) {
  const kiln_type *type = unwrapped(value->type);
  if (type->kind != KILN_TYPE_LIST) return NULL;
  if (type->elems[0]->kind == KILN_TYPE_INT) return kiln_shape_ints_of(arena, value);
  if (!kiln_type_is_tensor(unwrapped(type->elems[0]))) return NULL;
  const kiln_ivalue *constant = kiln_ir_value_constant(value);
  bool is_constant = constant && constant->tag == KILN_TAG_LIST;
  if (!is_constant &&
      (!kiln_node_is(value->node, KILN_OP_prim_ListConstruct) || !kiln_shape_list_stays(value))) {
    return NULL;
  }
  int64_t count = is_constant ? constant->u.list->count : value->node->input_count;
  if (count > MAX_LIST) return NULL;
  kiln_shape_list *list = KILN_NEW(arena, kiln_shape_list);
  bool *is_none = KILN_NEW_ARRAY(arena, bool, count + 1);
  const kiln_tensor_detail **tensors = KILN_NEW_ARRAY(arena, const kiln_tensor_detail *, count + 1);
  for (int i = 0; i < (int)count; i++) {
    const kiln_ivalue *item =
        is_constant ? &constant->u.list->items[i] : known(kiln_node_input(value->node, i));
    is_none[i] = item && item->tag == KILN_TAG_NONE;
    tensors[i] = is_constant ? detail_of_constant(arena, *item)
                             : detail_of(value->node->graph, kiln_node_input(value->node, i));
  }
  *list = (kiln_shape_list){.count = (int)count, .tensors = tensors, .known = is_none};
  return list;
}

bool kiln_shape_run(kiln_shape_query *q) {
  if (!q->op->shape(q)) return false;
  if (q->op->kernel.format) kiln__shape_lay(q, (kiln_format_from)q->op->kernel.format);
  return true;
}

static bool run_query_as(const kiln_op *op, const kiln_node *node, kiln_shape_query *q) {
  if (!op || !op->shape) return false;
  int count = node->input_count;
  kiln_arena *arena = q->arena = node->graph->arena;
  q->dims = kiln_type_table_dims(node->graph->types);
  const kiln_type **types = KILN_NEW_ARRAY(arena, const kiln_type *, count + 1);
  const kiln_tensor_detail **args = KILN_NEW_ARRAY(arena, const kiln_tensor_detail *, count + 1);
  const kiln_ivalue **constants = KILN_NEW_ARRAY(arena, const kiln_ivalue *, count + 1);
  const kiln_shape_list **lists = KILN_NEW_ARRAY(arena, const kiln_shape_list *, count + 1);
  kiln_dim *sizes = KILN_NEW_ARRAY(arena, kiln_dim, count + 1);
  for (int i = 0; i < count; i++) {
    const kiln_ir_value *value = kiln_node_input(node, i);
    types[i] = value->type;
    args[i] = detail_of(node->graph, value);
    constants[i] = known(value);
    sizes[i] = known_size(value);
    if (constants[i] && constants[i]->tag == KILN_TAG_TENSOR && !args[i]) {
      args[i] = detail_of_constant(arena, *constants[i]);
    }
    lists[i] = list_of(arena, value);
  }
  q->op = op;
  q->arg_count = count;
  q->types = types;
  q->args = args;
  q->constants = constants;
  q->lists = lists;
  q->sizes = sizes;
  q->out_count = node->output_count;
  for (int i = 0; i < KILN_MAX_OUTS; i++) q->outs[i] = KILN_TENSOR_DETAIL_ANY;
  return kiln_shape_run(q);
}

static bool run_query(const kiln_node *node, kiln_shape_query *q) {
  return run_query_as(node->op, node, q);
}

/* Pieces of equal size along a dimension, the last one shorter: ConstantChunk[chunks, dim]. */
static bool run_constant_chunk(const kiln_node *node, kiln_shape_query *q) {
  const kiln_tensor_detail *self = detail_of(node->graph, kiln_node_input(node, 0));
  int64_t chunks = kiln_node_int(node, "chunks", -1), dim = kiln_node_int(node, "dim", 0);
  if (!self || self->rank < 1 || chunks < 1 || node->output_count > KILN_MAX_OUTS) return false;
  if (dim < 0) dim += self->rank;
  if (dim < 0 || dim >= self->rank) return false;
  q->arena = node->graph->arena;
  q->dims = kiln_type_table_dims(node->graph->types);
  const kiln_dim size = self->sizes[dim];
  kiln_dim sizes[KILN_MAX_RANK], step, last;
  const bool is_number = kiln_dim_is_number(size);
  if (is_number) step = (size + chunks - 1) / chunks;
  if (!is_number && !kiln__shape_chunks(q->dims, size, chunks, &step, &last))
    step = last = KILN_DIM_UNKNOWN;
  for (int i = 0; i < self->rank; i++) sizes[i] = self->sizes[i];
  for (int k = 0; k < node->output_count; k++) {
    const int64_t left = is_number ? size - k * step : 0;
    sizes[dim] = is_number ? (left < step ? left : step) : k + 1 < chunks ? step : last;
    if (left < 0) return false;
    q->outs[k] = *self;
    kiln__shape_set(q, &q->outs[k], self->rank, sizes, self->has_strides ? self->strides : NULL);
  }
  return true;
}

/* -- Setting types -- */

/* Dimension by dimension: `old` where it is known, else `found`. NULL stands for all unknown. */
static const int64_t *join_dims(kiln_arena *arena, int rank, const int64_t *old,
                                const int64_t *found) {
  if (!old || !found) return old ? old : found;
  int64_t *dims = KILN_NEW_ARRAY(arena, int64_t, rank);
  for (int i = 0; i < rank; i++) {
    const bool keeps = kiln_dim_is_number(old[i]) || !kiln_dim_is_known(found[i]);
    dims[i] = keeps ? old[i] : found[i];
  }
  return dims;
}

/* What is known by either; where both know, what was there stays. */
static kiln_tensor_detail join(kiln_arena *arena, const kiln_tensor_detail *old,
                               const kiln_tensor_detail *found) {
  if (!old) return *found;
  kiln_tensor_detail d = *old;
  if (!d.dims) d.dims = found->dims;
  if (d.dtype == KILN_DTYPE_NONE) d.dtype = found->dtype;
  if (d.requires_grad < 0) d.requires_grad = found->requires_grad;
  if (d.undefined < 0) d.undefined = found->undefined;
  if (d.device < 0) d.device = found->device, d.device_index = found->device_index;
  if (found->rank < 0 || (d.rank >= 0 && d.rank != found->rank)) return d;
  bool had_sizes = d.rank >= 0;
  d.rank = found->rank;
  d.sizes = join_dims(arena, d.rank, had_sizes ? d.sizes : NULL, found->sizes);
  d.strides = join_dims(arena, d.rank, d.has_strides ? d.strides : NULL,
                        found->has_strides ? found->strides : NULL);
  d.has_strides = d.has_strides || found->has_strides;
  return d;
}

static bool set_type(kiln_graph *graph, kiln_ir_value *value, const kiln_tensor_detail *found) {
  if (value->type->kind != KILN_TYPE_TENSOR) return true;
  if (kiln_type_has_dims(value->type)) return true;
  if (found) {
    kiln_tensor_detail d = join(graph->arena, detail_of(graph, value), found);
    value->type = kiln_type_tensor(graph->types, &d);
  }
  return kiln_type_has_dims(value->type);
}

bool kiln_shape_infer(kiln_graph *graph, kiln_node *node) {
  kiln_shape_query q = {0};
  const kiln_tensor_detail *found[KILN_MAX_OUTS] = {0};
  bool known = false, all = true;
  if (kiln_node_is(node, KILN_OP_prim_ListUnpack)) { /* of chunk, split, unbind */
    known = run_query(kiln_node_input(node, 0)->node, &q) && q.elem_count == node->output_count;
    for (int i = 0; i < node->output_count; i++) {
      all &= set_type(graph, node->outputs[i], known ? &q.elems[i] : NULL);
    }
    return all;
  }
  known = kiln_node_is(node, KILN_OP_prim_ConstantChunk) ? run_constant_chunk(node, &q)
                                                         : run_query(node, &q);
  for (int i = 0; known && i < KILN_MAX_OUTS; i++) found[i] = &q.outs[i];
  for (int i = 0; i < node->output_count; i++) {
    all &= set_type(graph, node->outputs[i], i < KILN_MAX_OUTS ? found[i] : NULL);
  }
  return all;
}

bool kiln_shape_keeps_self(const kiln_node *node) {
  kiln_shape_query q = {0};
  const kiln_tensor_detail *self = detail_of(node->graph, kiln_node_input(node, 0));
  const kiln_op *base = kiln_registry_op(node->graph->registry, (kiln_op_id)node->op->id);
  if (!self || !run_query_as(base, node, &q)) return false;
  const kiln_tensor_detail *out = &q.outs[0];
  if (out->dtype == KILN_DTYPE_NONE || out->dtype != self->dtype || out->rank < 0) return false;
  if (out->rank != self->rank || !kiln__shape_static(out->rank, out->sizes)) return false;
  size_t bytes = sizeof *out->sizes * (size_t)out->rank;
  return bytes == 0 || memcmp(out->sizes, self->sizes, bytes) == 0;
}
