/* value.c: makes values and gives them back. */
#include "api/internal.h"

#include <limits.h>

#include "runtime/structure.h"

/* -- Handles -- */

static kiln_status *wrap_on(uint32_t stripe, kiln_context *context, kiln_model *model,
                            kiln_ivalue v, kiln_value **out_value) {
  *out_value = NULL;
  /* A model can have put one into a list of the host's, which knows of no model. */
  const bool is_one =
      v.tag == KILN_TAG_TENSOR && v.u.tensor && kiln_tensor_is_structured(v.u.tensor);
  if (is_one || (model && model->script->unit->structured && kiln_ivalue_holds_structured(v))) {
    kiln_ivalue_release(v);
    return KILN_ERROR(KILN_UNSUPPORTED, "a sparse or nested tensor does not leave its model: make "
                                        "it dense by to_dense() or to_padded_tensor()");
  }
  kiln_value *value = kiln_mem_alloc(context->env->mem, sizeof *value);
  if (!value) {
    kiln_ivalue_release(v);
    return kiln_status_oom();
  }
  *value = (kiln_value){.context = context, .model = model, .v = v, .stripe = (uint8_t)stripe};
  kiln_refs_take(&context->refs, stripe);
  if (model) kiln_refs_take(&model->refs, stripe);
  *out_value = value;
  return NULL;
}

kiln_status *kiln__value_wrap(kiln_context *context, kiln_model *model, kiln_ivalue v,
                              kiln_value **out_value) {
  return wrap_on(kiln_stripe_here(), context, model, v, out_value);
}

void kiln_value_destroy(kiln_value *value) {
  if (!value) return;
  kiln_context *context = value->context;
  kiln_mem *mem = context->env->mem;
  kiln_model *model = value->model;
  const uint32_t stripe = value->stripe;
  if (value->cyclic) {
    kiln_ivalue_release_cyclic(mem, value->v);
  } else {
    kiln_ivalue_release(value->v);
  }
  if (value->type_text) kiln_mem_free(mem, value->type_text, strlen(value->type_text) + 1);
  kiln_mem_free(mem, value, sizeof *value);
  if (model) kiln__model_give(model, stripe);
  kiln__context_give(context, stripe);
}

/* A handle on what is, or holds, the values of `parts`. Where `model` or `context` is theirs alone,
 * it has references on the stripe of one of them. */
static kiln_status *wrap_like(const kiln_value *const *parts, int count, kiln_context *context,
                              kiln_model *model, kiln_ivalue v, kiln_value **out_value) {
  uint32_t stripe = count > 0 ? parts[0]->stripe : kiln_stripe_here();
  bool cyclic = false;
  for (int i = 0; i < count; i++) {
    cyclic |= __atomic_load_n(&parts[i]->cyclic, __ATOMIC_RELAXED);
    if (model && parts[i]->model == model) stripe = parts[i]->stripe;
  }
  KILN_TRY(wrap_on(stripe, context, model, v, out_value));
  (*out_value)->cyclic = cyclic;
  return NULL;
}

kiln_status *kiln__value_wrap_like(const kiln_value *value, kiln_ivalue v, kiln_value **out_value) {
  return wrap_like(&value, 1, value->context, value->model, v, out_value);
}

kiln_status *kiln_value_share(const kiln_value *value, kiln_value **out_value) {
  KILN_NEEDS(value && out_value);
  return kiln__value_wrap_like(value, kiln_ivalue_retain(value->v), out_value);
}

kiln_status *kiln_value_clone(const kiln_value *value, kiln_value **out_value) {
  KILN_NEEDS(value && out_value);
  kiln_ivalue copy;
  *out_value = NULL;
  KILN_TRY(kiln_ivalue_clone(value->context->env->mem, value->v, &copy));
  return kiln__value_wrap_like(value, copy, out_value);
}

/* Of a container the model's file is asked for, whatever is in it. */
kiln_status *kiln__value_readable(const kiln_value *value) {
  kiln_mapping *mapping = value->model ? value->model->script->mapping : NULL;
  if (value->v.tag == KILN_TAG_TENSOR && value->v.u.tensor->storage) {
    mapping = kiln_mapping_of(value->v.u.tensor->storage->owner);
  }
  return mapping ? kiln_mapping_check(mapping, true) : NULL;
}

/* -- Plain values -- */

kiln_status *kiln_value_none(kiln_context *context, kiln_value **out_value) {
  KILN_NEEDS(context && out_value);
  return kiln__value_wrap(context, NULL, kiln_none(), out_value);
}

kiln_status *kiln_value_int(kiln_context *context, int64_t i, kiln_value **out_value) {
  KILN_NEEDS(context && out_value);
  return kiln__value_wrap(context, NULL, kiln_int(i), out_value);
}

kiln_status *kiln_value_float(kiln_context *context, double f, kiln_value **out_value) {
  KILN_NEEDS(context && out_value);
  return kiln__value_wrap(context, NULL, kiln_float(f), out_value);
}

kiln_status *kiln_value_bool(kiln_context *context, int b, kiln_value **out_value) {
  KILN_NEEDS(context && out_value);
  return kiln__value_wrap(context, NULL, kiln_bool(b != 0), out_value);
}

kiln_status *kiln_value_complex(kiln_context *context, double re, double im,
                                kiln_value **out_value) {
  KILN_NEEDS(context && out_value);
  kiln_complex *complex = NULL;
  *out_value = NULL;
  KILN_TRY(kiln_complex_create(context->env->mem, re, im, &complex));
  return kiln__value_wrap(context, NULL, kiln_of_box(complex), out_value);
}

kiln_status *kiln_value_string(kiln_context *context, const char *text, size_t size,
                               kiln_value **out_value) {
  KILN_NEEDS(context && out_value);
  kiln_string *string = NULL;
  *out_value = NULL;
  if (!text && size > 0) return KILN_ERROR(KILN_INVALID_ARGUMENT, "a string without text");
  KILN_TRY(kiln_string_create(context->env->mem, kiln_str_make(text, size), &string));
  return kiln__value_wrap(context, NULL, kiln_of_box(string), out_value);
}

/* -- Tensors -- */

static kiln_status *check_shape(kiln_dtype dtype, int rank, const int64_t *sizes) {
  int64_t numel = 0;
  size_t bytes = 0;
  if (kiln_dtype_size(dtype) == 0) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "%d is no dtype", (int)dtype);
  }
  if (rank < 0 || rank > KILN_MAX_RANK) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "a tensor has 0 to %d dimensions, not %d",
                      KILN_MAX_RANK, rank);
  }
  if (rank > 0 && !sizes) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "the sizes of a tensor of %d dimension%s are NULL",
                      rank, kiln_plural((uint64_t)rank));
  }
  for (int i = 0; i < rank; i++) {
    if (sizes[i] < 0) {
      return KILN_ERROR(KILN_INVALID_ARGUMENT, "dimension %d has the negative size %lld", i,
                        (long long)sizes[i]);
    }
  }
  if (!kiln_numel(rank, sizes, &numel) ||
      !kiln_checked_mul_size((size_t)numel, kiln_dtype_size(dtype), &bytes) ||
      bytes > PTRDIFF_MAX) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "a tensor of these sizes is too large");
  }
  return NULL;
}

kiln_status *kiln_value_tensor(kiln_context *context, kiln_dtype dtype, int rank,
                               const int64_t *sizes, const void *data, kiln_value **out_value) {
  KILN_NEEDS(context && out_value);
  kiln_tensor *tensor = NULL;
  void *elements = NULL;
  *out_value = NULL;
  KILN_TRY(check_shape(dtype, rank, sizes));
  KILN_TRY(kiln_tensor_create(context->env->mem, NULL, dtype, rank, sizes, &tensor));
  kiln_status *status = kiln_tensor_writable_data(tensor, &elements);
  if (status) {
    kiln_tensor_release(tensor);
    return status;
  }
  size_t size = (size_t)tensor->numel * kiln_tensor_item_size(tensor);
  if (size > 0) {
    if (data) {
      memcpy(elements, data, size);
    } else {
      memset(elements, 0, size);
    }
  }
  return kiln__value_wrap(context, NULL, kiln_of_tensor(tensor), out_value);
}

/* The host's memory, as an owner of storages. */
typedef struct lent {
  kiln_owner owner;
  kiln_context *context; /* taken, on `stripe` */
  uint32_t stripe;
  void (*release)(void *user);
  void *user;
} lent;

static void destroy_lent(kiln_owner *owner) {
  lent *l = (lent *)owner;
  kiln_context *context = l->context;
  const uint32_t stripe = l->stripe;
  if (l->release) l->release(l->user);
  kiln_mem_free(context->env->mem, l, sizeof *l);
  kiln__context_give(context, stripe);
}

kiln_status *kiln_value_tensor_over(kiln_context *context, kiln_dtype dtype, int rank,
                                    const int64_t *sizes, const int64_t *strides, void *data,
                                    size_t data_size, void (*release)(void *user), void *user,
                                    kiln_value **out_value) {
  KILN_NEEDS(context && out_value);
  kiln_mem *mem = context->env->mem;
  int64_t packed[KILN_MAX_RANK];
  kiln_storage *storage = NULL;
  kiln_tensor *tensor = NULL;
  *out_value = NULL;
  KILN_TRY(check_shape(dtype, rank, sizes));
  if (!data && data_size > 0) return KILN_ERROR(KILN_INVALID_ARGUMENT, "a tensor without data");
  if ((uintptr_t)data % kiln_dtype_size(dtype) != 0 && kiln_dtype_size(dtype) <= 8) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "the data is not aligned to its elements");
  }
  if (!strides) {
    kiln_strides_contiguous(rank, sizes, packed);
    strides = packed;
  }
  for (int i = 0; i < rank; i++) {
    if (strides[i] < 0) {
      return KILN_ERROR(KILN_INVALID_ARGUMENT, "dimension %d has the negative stride %lld", i,
                        (long long)strides[i]);
    }
  }
  lent *owner = kiln_mem_alloc(mem, sizeof *owner);
  if (!owner) return kiln_status_oom();
  /* `release` is set last: on failure the memory stays the caller's. */
  *owner = (lent){.owner = {.refs = 1, .destroy = destroy_lent},
                  .context = context,
                  .stripe = kiln_stripe_here()};
  kiln_refs_take(&context->refs, owner->stripe);
  kiln_status *status = kiln_storage_wrap(mem, &owner->owner, data, data_size, 0, &storage);
  if (!status) {
    status = kiln_tensor_create_on(mem, NULL, storage, dtype, rank, sizes, strides, 0, &tensor);
    kiln_storage_release(storage);
  }
  if (!status) status = kiln__value_wrap(context, NULL, kiln_of_tensor(tensor), out_value);
  if (!status) {
    owner->release = release;
    owner->user = user;
  }
  kiln_owner_release(&owner->owner);
  return status;
}

/* -- Containers -- */

const kiln_type *kiln__elements_type(kiln_type_table *table, const kiln_ivalue *items,
                                     int64_t count) {
  const kiln_type *type = NULL;
  for (int64_t i = 0; i < count; i++) {
    const kiln_type *item = kiln_type_unshaped(table, kiln_ivalue_type(table, items[i]));
    type = type && type != item ? kiln_type_unify(table, type, item, false) : item;
    if (!type) return kiln_type_basic(KILN_TYPE_ANY);
  }
  return type ? type : kiln_type_basic(KILN_TYPE_ANY);
}

/* What the elements' handles need must live as long as the container: its model, if any. */
static kiln_status *find_model(kiln_value *const *items, int count, kiln_model **model) {
  for (int i = 0; i < count; i++) {
    if (!items[i]->model || items[i]->model == *model) continue;
    if (*model) {
      return KILN_ERROR(KILN_INVALID_ARGUMENT, "a container cannot mix values of two models");
    }
    *model = items[i]->model;
  }
  return NULL;
}

static kiln_status *check_items(kiln_value *const *items, int count) {
  if (count < 0 || (count > 0 && !items)) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "a container of %d elements", count);
  }
  for (int i = 0; i < count; i++) {
    if (!items[i]) return KILN_ERROR(KILN_INVALID_ARGUMENT, "element %d is missing", i);
  }
  return NULL;
}

static kiln_type_table *table_of(kiln_context *context, kiln_model *model) {
  return model ? model->script->unit->types : kiln_registry_types(context->registry);
}

/* NULL of an empty container: the method's schema says. */
static kiln_status *infer(kiln_type_table *table, const kiln_ivalue *items, int64_t count,
                          const kiln_type **out_type) {
  *out_type = count > 0 ? kiln__elements_type(table, items, count) : NULL;
  return NULL;
}
static kiln_status *try_infer(kiln_type_table *table, const kiln_ivalue *items, int64_t count,
                              const kiln_type **out_type) {
  KILN_PROTECT(infer(table, items, count, out_type));
}

kiln_status *kiln_value_list(kiln_context *context, kiln_value *const *items, int count,
                             kiln_value **out_value) {
  KILN_NEEDS(context && out_value);
  kiln_model *model = NULL;
  kiln_list *list = NULL;
  *out_value = NULL;
  KILN_TRY(check_items(items, count));
  KILN_TRY(find_model(items, count, &model));
  KILN_TRY(kiln_list_create(context->env->mem, NULL, count, &list));
  kiln_status *status = NULL;
  for (int i = 0; !status && i < count; i++) {
    status = kiln_list_push(list, kiln_ivalue_retain(items[i]->v));
  }
  if (!status) {
    status = try_infer(table_of(context, model), list->items, list->count, &list->elem_type);
  }
  if (status) {
    kiln_ivalue_release(kiln_of_box(list));
    return status;
  }
  return wrap_like((const kiln_value *const *)items, count, context, model, kiln_of_box(list),
                   out_value);
}

kiln_status *kiln_value_tuple(kiln_context *context, kiln_value *const *items, int count,
                              kiln_value **out_value) {
  KILN_NEEDS(context && out_value);
  kiln_model *model = NULL;
  kiln_tuple *tuple = NULL;
  *out_value = NULL;
  KILN_TRY(check_items(items, count));
  KILN_TRY(find_model(items, count, &model));
  KILN_TRY(kiln_tuple_create(context->env->mem, NULL, count, &tuple));
  for (int i = 0; i < count; i++) tuple->items[i] = kiln_ivalue_retain(items[i]->v);
  return wrap_like((const kiln_value *const *)items, count, context, model, kiln_of_box(tuple),
                   out_value);
}

static kiln_status *fill_dict(kiln_dict *dict, kiln_type_table *table, kiln_value *const *keys,
                              kiln_value *const *values, int count, kiln_mem *mem) {
  kiln_list *columns[2] = {NULL, NULL};
  kiln_status *status = NULL;
  for (int i = 0; !status && i < 2; i++) status = kiln_list_create(mem, NULL, count, &columns[i]);
  for (int i = 0; !status && i < count; i++) {
    if (!kiln_ivalue_is_key(keys[i]->v)) {
      status = KILN_ERROR(KILN_INVALID_ARGUMENT, "key %d is no number, string or tensor", i);
      break;
    }
    status = kiln_dict_set(dict, kiln_ivalue_retain(keys[i]->v), kiln_ivalue_retain(values[i]->v));
    if (!status) status = kiln_list_push(columns[0], kiln_ivalue_retain(keys[i]->v));
    if (!status) status = kiln_list_push(columns[1], kiln_ivalue_retain(values[i]->v));
  }
  if (!status) status = try_infer(table, columns[0]->items, count, &dict->key_type);
  if (!status) status = try_infer(table, columns[1]->items, count, &dict->value_type);
  for (int i = 0; i < 2; i++) {
    if (columns[i]) kiln_ivalue_release(kiln_of_box(columns[i]));
  }
  return status;
}

kiln_status *kiln_value_dict(kiln_context *context, kiln_value *const *keys,
                             kiln_value *const *values, int count, kiln_value **out_value) {
  KILN_NEEDS(context && out_value);
  kiln_model *model = NULL;
  kiln_dict *dict = NULL;
  *out_value = NULL;
  KILN_TRY(check_items(keys, count));
  KILN_TRY(check_items(values, count));
  KILN_TRY(find_model(keys, count, &model));
  KILN_TRY(find_model(values, count, &model));
  KILN_TRY(kiln_dict_create(context->env->mem, NULL, NULL, &dict));
  kiln_status *status =
      fill_dict(dict, table_of(context, model), keys, values, count, context->env->mem);
  if (status) {
    kiln_ivalue_release(kiln_of_box(dict));
    return status;
  }
  return wrap_like((const kiln_value *const *)values, count, context, model, kiln_of_box(dict),
                   out_value);
}
