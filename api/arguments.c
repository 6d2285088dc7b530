/* arguments.c: the host's values become a method's arguments, by its schema.
 *
 * What Python would take is taken: an int for a float, a tuple for a NamedTuple, containers whose
 * elements fit. A container that fits as it is is shared, so that the method's changes are seen. If
 * its element type was not known, or is another than the schema's, it is given the schema's, but
 * only where the host alone has it: who else holds it relies on the type that it had. Otherwise,
 * where elements had to be converted, and where it has types of another model, it is passed as a
 * copy. */
#include "api/internal.h"
#include "frontend/pickle.h"
#include "runtime/quant.h"

/* -- Converting one value -- */

typedef struct converter {
  kiln_context *context;
  kiln_type_table *types; /* where types of what is wanted as Any are made */
  int depth;
  int shared;   /* containers around this one that others hold too */
  bool foreign; /* the value is of another model */
  bool retyped; /* a container of the host's has been given a type of the model */
} converter;

enum { MAX_DEPTH = 200 };

static kiln_status *convert(converter *c, kiln_ivalue v, const kiln_type *type, bool *fits,
                            kiln_ivalue *out);

static bool is_same(kiln_ivalue a, kiln_ivalue b) { return a.tag == b.tag && a.u.i == b.u.i; }

/* The host's handle and this conversion hold it, or what it lies in and this conversion. */
static bool is_sole(const converter *c, const kiln_box *box) {
  return c->shared == 0 && __atomic_load_n(&box->refs, __ATOMIC_ACQUIRE) <= 2;
}

/* Whether what says `have` of its elements may go on as it is, being wanted with `want`. */
static bool may_stay(const converter *c, const kiln_box *box, const kiln_type *have,
                     const kiln_type *want) {
  if (c->foreign) return false;
  return have == want || (have && kiln_type_equal_unshaped(have, want)) || is_sole(c, box);
}

static void give_type(converter *c, const kiln_type **part, const kiln_type *type) {
  if (*part == type || (*part && kiln_type_equal_unshaped(*part, type))) return;
  *part = type;
  c->retyped = true;
}

/* Converts `count` items; *out_items is NULL when none changed, else a block of them all. `copy`:
 * all of them are wanted in any case. */
static kiln_status *convert_items(converter *c, const kiln_ivalue *items, int64_t count,
                                  const kiln_type *const *types, bool one_type, bool copy,
                                  bool *fits, kiln_ivalue **out_items) {
  kiln_mem *mem = c->context->env->mem;
  size_t size = sizeof(kiln_ivalue) * (size_t)count;
  kiln_ivalue *results = kiln_mem_alloc_zero(mem, size);
  kiln_status *status = NULL;
  bool changed = copy;
  *out_items = NULL;
  if (!results) return kiln_status_oom();
  for (int64_t i = 0; !status && *fits && i < count; i++) {
    const kiln_type *type = one_type ? types[0] : types[i];
    status = convert(c, kiln_ivalue_retain(items[i]), type, fits, &results[i]);
    changed = changed || !is_same(items[i], results[i]);
  }
  if (!status && *fits && changed) {
    *out_items = results;
    return NULL;
  }
  for (int64_t i = 0; i < count; i++) kiln_ivalue_release(results[i]);
  kiln_mem_free(mem, results, size);
  return status;
}

static kiln_status *convert_list(converter *c, kiln_ivalue v, const kiln_type *type, bool *fits,
                                 kiln_ivalue *out) {
  kiln_mem *mem = c->context->env->mem;
  kiln_list *list = v.u.list, *copy = NULL;
  kiln_ivalue *items = NULL;
  const bool stays = may_stay(c, &list->box, list->elem_type, type->elems[0]);
  const bool held = !is_sole(c, &list->box);
  c->shared += held;
  kiln_status *status =
      convert_items(c, list->items, list->count, type->elems, true, !stays, fits, &items);
  c->shared -= held;
  if (status || !*fits) return status;
  if (!items) {
    give_type(c, &list->elem_type, type->elems[0]);
    return NULL;
  }
  status = kiln_list_create(mem, type->elems[0], list->count, &copy);
  for (int64_t i = 0; i < list->count; i++) {
    if (status) {
      kiln_ivalue_release(items[i]);
    } else {
      status = kiln_list_push(copy, items[i]);
    }
  }
  kiln_mem_free(mem, items, sizeof *items * (size_t)list->count);
  if (status) {
    if (copy) kiln_ivalue_release(kiln_of_box(copy));
    return status;
  }
  kiln_ivalue_release(v);
  *out = kiln_of_box(copy);
  return NULL;
}

static kiln_status *convert_tuple(converter *c, kiln_ivalue v, const kiln_type *type, bool *fits,
                                  kiln_ivalue *out) {
  kiln_tuple *tuple = v.u.tuple, *copy = NULL;
  kiln_ivalue *items = NULL;
  if (tuple->count != type->elem_count) {
    *fits = false;
    return NULL;
  }
  const bool held = !is_sole(c, &tuple->box);
  c->shared += held;
  kiln_status *status =
      convert_items(c, tuple->items, tuple->count, type->elems, false, c->foreign, fits, &items);
  c->shared -= held;
  if (status || !*fits || (!items && tuple->type == type)) return status;
  if (!items && !type->names) {
    if (!tuple->type) give_type(c, &tuple->type, type);
    return NULL;
  }
  kiln_mem *mem = c->context->env->mem;
  status = kiln_tuple_create(mem, type, tuple->count, &copy);
  for (int64_t i = 0; i < tuple->count; i++) {
    kiln_ivalue item = items ? items[i] : kiln_ivalue_retain(tuple->items[i]);
    if (status) {
      kiln_ivalue_release(item);
    } else {
      copy->items[i] = item;
    }
  }
  if (items) kiln_mem_free(mem, items, sizeof *items * (size_t)tuple->count);
  if (status) return status;
  kiln_ivalue_release(v);
  *out = kiln_of_box(copy);
  return NULL;
}

static kiln_status *convert_dict(converter *c, kiln_ivalue v, const kiln_type *type, bool *fits,
                                 kiln_ivalue *out) {
  kiln_dict *dict = v.u.dict, *copy = NULL;
  kiln_ivalue *key, *value;
  bool changed = !may_stay(c, &dict->box, dict->key_type, type->elems[0]) ||
                 !may_stay(c, &dict->box, dict->value_type, type->elems[1]);
  const bool held = !is_sole(c, &dict->box);
  KILN_TRY(kiln_dict_create(c->context->env->mem, type->elems[0], type->elems[1], &copy));
  kiln_status *status = NULL;
  c->shared += held;
  for (int64_t i = 0; !status && *fits && kiln_dict_next(dict, &i, &key, &value);) {
    kiln_ivalue k = kiln_none(), e = kiln_none();
    status = convert(c, kiln_ivalue_retain(*key), type->elems[0], fits, &k);
    if (!status && *fits) {
      status = convert(c, kiln_ivalue_retain(*value), type->elems[1], fits, &e);
    }
    if (status || !*fits) {
      kiln_ivalue_release(k);
      kiln_ivalue_release(e);
      break;
    }
    changed = changed || !is_same(*key, k) || !is_same(*value, e);
    status = kiln_dict_set(copy, k, e);
  }
  c->shared -= held;
  if (!status && *fits && changed) {
    kiln_ivalue_release(v);
    *out = kiln_of_box(copy);
    return NULL;
  }
  kiln_ivalue_release(kiln_of_box(copy));
  if (!status && *fits) {
    give_type(c, &dict->key_type, type->elems[0]);
    give_type(c, &dict->value_type, type->elems[1]);
  }
  return status;
}

/* Looks down to the first container that says what is in it. */
static bool knows_types(kiln_ivalue v, int depth) {
  if (v.tag == KILN_TAG_LIST) return v.u.list->elem_type;
  if (v.tag == KILN_TAG_DICT) return v.u.dict->key_type && v.u.dict->value_type;
  if (v.tag != KILN_TAG_TUPLE) return true;
  if (depth > MAX_DEPTH) return false;
  for (int64_t i = 0; i < v.u.tuple->count; i++) {
    if (!knows_types(v.u.tuple->items[i], depth + 1)) return false;
  }
  return true;
}

static kiln_status *settle(kiln_type_table *types, kiln_ivalue v) {
  (void)kiln_pickle_settle_types(types, v);
  return NULL;
}
static kiln_status *try_settle(kiln_type_table *types, kiln_ivalue v) {
  KILN_PROTECT(settle(types, v));
}

/* What is wanted as Any has one type, also where it is empty. */
static kiln_status *convert_any(converter *c, kiln_ivalue v) {
  const bool container =
      v.tag == KILN_TAG_LIST || v.tag == KILN_TAG_DICT || v.tag == KILN_TAG_TUPLE;
  if (!container) return NULL;
  if (c->foreign) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT,
                      "a container of another model cannot be passed where any type is wanted");
  }
  if (knows_types(v, 0)) return NULL;
  return try_settle(c->types, v);
}

static kiln_status *convert_union(converter *c, kiln_ivalue v, const kiln_type *type, bool *fits,
                                  kiln_ivalue *out) {
  for (int i = 0; i < type->elem_count && !c->foreign; i++) { /* without conversion first */
    if (!knows_types(v, 0) || !kiln_ivalue_matches(v, type->elems[i])) continue;
    return NULL;
  }
  for (int i = 0; i < type->elem_count; i++) {
    bool one = true;
    KILN_TRY(convert(c, v, type->elems[i], &one, out));
    if (one) return NULL;
  }
  *fits = false;
  return NULL;
}

/* Takes v; on failure *out is what the caller has to release (v, unless it was replaced). */
static kiln_status *convert(converter *c, kiln_ivalue v, const kiln_type *type, bool *fits,
                            kiln_ivalue *out) {
  kiln_status *status = NULL;
  *out = v;
  if (c->depth >= MAX_DEPTH) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "the argument is nested too deeply");
  }
  c->depth++;
  if (type->kind == KILN_TYPE_LIST && v.tag == KILN_TAG_LIST) {
    status = convert_list(c, v, type, fits, out);
  } else if (type->kind == KILN_TYPE_TUPLE && v.tag == KILN_TAG_TUPLE) {
    status = convert_tuple(c, v, type, fits, out);
  } else if (type->kind == KILN_TYPE_DICT && v.tag == KILN_TAG_DICT) {
    status = convert_dict(c, v, type, fits, out);
  } else if (type->kind == KILN_TYPE_OPTIONAL && v.tag != KILN_TAG_NONE) {
    status = convert(c, v, type->elems[0], fits, out);
  } else if (type->kind == KILN_TYPE_UNION) {
    status = convert_union(c, v, type, fits, out);
  } else if (type->kind == KILN_TYPE_FLOAT && v.tag == KILN_TAG_INT) {
    *out = kiln_float((double)v.u.i);
  } else if (type->kind == KILN_TYPE_ANY) {
    status = convert_any(c, v);
  } else if (!kiln_ivalue_matches(v, type)) {
    *fits = false;
  }
  c->depth--;
  return status;
}

static kiln_status *run_converter(converter *c, kiln_ivalue v, const kiln_type *type,
                                  bool *out_fits, kiln_ivalue *out) {
  *out_fits = true;
  kiln_status *status = convert(c, v, type, out_fits, out);
  if (status) {
    kiln_ivalue_release(*out);
    *out = kiln_none();
  }
  return status;
}

kiln_status *kiln__convert(kiln_context *context, kiln_ivalue v, const kiln_type *type,
                           bool *out_fits, kiln_ivalue *out) {
  converter c = {.context = context, .types = kiln_registry_types(context->registry)};
  return run_converter(&c, v, type, out_fits, out);
}

kiln_status *kiln__convert_value(kiln_model *model, kiln_value *value, const kiln_type *type,
                                 bool *out_fits, kiln_ivalue *out) {
  kiln_model *of = __atomic_load_n(&value->model, __ATOMIC_ACQUIRE);
  converter c = {.context = model->context, .types = kiln__value_types(value)};
  c.foreign = of && of != model;
  if (c.foreign) KILN_TRY(kiln__value_readable(value)); /* the model's own file was looked at */
  if (!model->script->unit->quantised && kiln_ivalue_holds_quant(value->v)) {
    *out_fits = false;
    *out = kiln_none();
    return KILN_ERROR(KILN_INVALID_ARGUMENT,
                      "a quantised tensor, for a model that has no operator for such tensors");
  }
  KILN_TRY(run_converter(&c, kiln_ivalue_retain(value->v), type, out_fits, out));
  /* Types of the model are in it now. */
  if (c.retyped && !of) {
    kiln_model *none = NULL;
    kiln_refs_take(&model->refs, value->stripe);
    if (!__atomic_compare_exchange_n(&value->model, &none, model, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE)) {
      kiln__model_give(model, value->stripe);
    }
  }
  return NULL;
}

/* -- A method's arguments -- */

static kiln_status *tell_wrong_type(const kiln_context *context, const kiln__method *method,
                                    int index, kiln_ivalue v) {
  const kiln_argument *a = &method->arguments[index];
  kiln_text got = kiln__text_begin(context);
  kiln_ivalue_type_name(&got, v);
  return KILN_ERROR(KILN_INVALID_ARGUMENT, "%s() argument '%s' (position %d) must be %s, not %s",
                    method->name, a->name, index + 1, a->type, got.data);
}
static kiln_status *wrong_type(const kiln_context *context, const kiln__method *method, int index,
                               kiln_ivalue v) {
  KILN_PROTECT(tell_wrong_type(context, method, index, v));
}

static kiln_status *wrong_count(const kiln__method *method, int count) {
  if (count > method->argument_count) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "%s() takes %d argument%s, but %d %s given: %s",
                      method->name, method->argument_count,
                      kiln_plural((uint64_t)method->argument_count), count,
                      count == 1 ? "was" : "were", method->schema);
  }
  const kiln_argument *a = &method->arguments[count];
  return KILN_ERROR(KILN_INVALID_ARGUMENT,
                    "%s() is missing its argument '%s' of type %s (%d given): %s", method->name,
                    a->name, a->type, count, method->schema);
}

kiln_status *kiln__arguments_match(kiln_model *model, const kiln__method *method,
                                   kiln_value *const *values, int count, kiln_ivalue *args) {
  const kiln_schema *schema = method->function->schema;
  if (count > method->argument_count) return wrong_count(method, count);
  for (int i = 0; i < method->argument_count; i++) {
    const kiln_schema_arg *want = &schema->args[i + 1];
    if (i >= count || (!values[i] && want->has_default)) {
      if (!want->has_default) return wrong_count(method, i);
      /* A default list is a new one for each call. */
      KILN_TRY(kiln_ivalue_clone(model->context->env->mem, want->default_value, &args[i + 1]));
      continue;
    }
    if (!values[i]) {
      return KILN_ERROR(KILN_INVALID_ARGUMENT, "%s() argument '%s' is a NULL handle", method->name,
                        method->arguments[i].name);
    }
    bool fits = true;
    KILN_TRY(kiln__convert_value(model, values[i], want->type, &fits, &args[i + 1]));
    if (!fits) return wrong_type(model->context, method, i, values[i]->v);
  }
  return NULL;
}
