/* dict.c: TorchScript's dicts: ordered by insertion, references like lists. */
#include "runtime/kernels/support.h"

#define DICT (args[0].u.dict)

static kiln_status *key_error(kiln_call *call, kiln_text *text, void *key) {
  (void)call;
  kiln_ivalue_print(text, *(const kiln_ivalue *)key);
  return KILN_OP_FAIL("KeyError: " KILN_STR_FMT, KILN_STR_ARG(kiln_text_str(text)));
}
static kiln_status *missing(kiln_call *call, kiln_ivalue key) {
  return kiln_call_text(call, key_error, &key);
}

KILN_KERNEL(dict_get_item) {
  const kiln_ivalue *value = kiln_dict_find(DICT, args[1]);
  if (!value) return missing(call, args[1]);
  return kiln__give_value(outs, kiln_ivalue_retain(*value));
}
KILN_KERNEL(dict_get) {
  const kiln_ivalue *value = kiln_dict_find(DICT, args[1]);
  if (value) *outs = kiln_ivalue_retain(*value);
  return NULL;
}
KILN_KERNEL(dict_get_default) {
  const kiln_ivalue *value = kiln_dict_find(DICT, args[1]);
  return kiln__give_value(outs, kiln_ivalue_retain(value ? *value : args[2]));
}
/* Copies of key and value. */
static kiln_status *put(kiln_call *call, kiln_dict *dict, kiln_ivalue key, kiln_ivalue value) {
  KILN_TRY(kiln_cycle_note(call->env->mem, &call->roots, &dict->box, dict->value_type, value));
  return kiln_dict_set(dict, kiln_ivalue_retain(key), kiln_ivalue_retain(value));
}
KILN_KERNEL(dict_set_item) { return put(call, DICT, args[1], args[2]); }
KILN_KERNEL(dict_setdefault) {
  const kiln_ivalue *value = kiln_dict_find(DICT, args[1]);
  if (!value) {
    KILN_TRY(put(call, DICT, args[1], args[2]));
  }
  return kiln__give_value(outs, kiln_ivalue_retain(value ? *value : args[2]));
}
KILN_KERNEL(dict_contains) { return kiln__give_bool(outs, kiln_dict_find(DICT, args[1]) != NULL); }
KILN_KERNEL(dict_len) { return kiln__give_int(outs, DICT->live); }
KILN_KERNEL(dict_delete) {
  if (!kiln_dict_remove(DICT, args[1])) return missing(call, args[1]);
  return NULL;
}
KILN_KERNEL(dict_pop) {
  const kiln_ivalue *value = kiln_dict_find(DICT, args[1]);
  if (!value) return missing(call, args[1]);
  *outs = kiln_ivalue_retain(*value);
  kiln_dict_remove(DICT, args[1]);
  return NULL;
}
KILN_KERNEL(dict_pop_default) {
  const kiln_ivalue *value = kiln_dict_find(DICT, args[1]);
  *outs = kiln_ivalue_retain(value ? *value : args[2]);
  kiln_dict_remove(DICT, args[1]);
  return NULL;
}
static kiln_status *pair(kiln_call *call, kiln_ivalue key, kiln_ivalue value, kiln_ivalue *out) {
  kiln_tuple *tuple;
  KILN_TRY(kiln_tuple_create_in(call->env->mem, &call->cache, NULL, 2, &tuple));
  tuple->items[0] = kiln_ivalue_retain(key);
  tuple->items[1] = kiln_ivalue_retain(value);
  return kiln__give_value(out, kiln_of_box(tuple));
}
/* The first entry, as PyTorch takes it. */
KILN_KERNEL(dict_popitem) {
  int64_t at = 0;
  kiln_ivalue *key, *value;
  if (!kiln_dict_next(DICT, &at, &key, &value)) {
    return KILN_OP_FAIL("popitem(): dictionary is empty");
  }
  KILN_TRY(pair(call, *key, *value, outs));
  kiln_dict_remove(DICT, outs->u.tuple->items[0]);
  return NULL;
}
KILN_KERNEL(dict_clear) {
  kiln_dict_clear(DICT);
  return NULL;
}
static kiln_status *put_all(kiln_call *call, kiln_dict *to, const kiln_dict *from) {
  int64_t at = 0;
  kiln_ivalue *key, *value;
  if (to == from) return NULL;
  while (kiln_dict_next(from, &at, &key, &value)) {
    KILN_TRY(put(call, to, *key, *value));
  }
  return NULL;
}
KILN_KERNEL(dict_update) { return put_all(call, DICT, args[1].u.dict); }
KILN_KERNEL(dict_copy) {
  kiln_dict *copy;
  KILN_TRY(kiln_dict_create(call->env->mem, DICT->key_type, DICT->value_type, &copy));
  *outs = kiln_of_box(copy);
  return put_all(call, copy, DICT);
}

static kiln_status *collect(kiln_call *call, const kiln_dict *dict, int what, kiln_ivalue *out) {
  kiln_list *list;
  const kiln_type *elem = what == 0 ? dict->key_type : what == 1 ? dict->value_type : NULL;
  KILN_TRY(kiln_list_create_in(call->env->mem, &call->cache, elem, dict->live, &list));
  *out = kiln_of_box(list);
  int64_t at = 0;
  kiln_ivalue *key, *value, item;
  while (kiln_dict_next(dict, &at, &key, &value)) {
    if (what == 2)
      KILN_TRY(pair(call, *key, *value, &item));
    else
      item = kiln_ivalue_retain(what == 0 ? *key : *value);
    KILN_TRY(kiln_list_push(list, item));
  }
  return NULL;
}
KILN_KERNEL(dict_keys) { return collect(call, DICT, 0, outs); }
KILN_KERNEL(dict_values) { return collect(call, DICT, 1, outs); }
KILN_KERNEL(dict_items) { return collect(call, DICT, 2, outs); }

KILN_KERNEL(dict_empty) {
  kiln_dict *dict;
  KILN_TRY(kiln_dict_create(call->env->mem, kiln_type_basic(KILN_TYPE_STR),
                            kiln_type_basic(KILN_TYPE_TENSOR), &dict));
  return kiln__give_value(outs, kiln_of_box(dict));
}
/* dict(list of pairs) */
KILN_KERNEL(dict_from_pairs) {
  const kiln_list *list = kiln_arg_list(args, 0);
  const kiln_type *pair_type = list->elem_type, *key = NULL, *value = NULL;
  if (pair_type && pair_type->kind == KILN_TYPE_TUPLE && pair_type->elem_count == 2) {
    key = pair_type->elems[0];
    value = pair_type->elems[1];
  }
  kiln_dict *dict;
  KILN_TRY(kiln_dict_create(call->env->mem, key, value, &dict));
  *outs = kiln_of_box(dict);
  for (int64_t i = 0; i < list->count; i++) {
    const kiln_tuple *tuple = list->items[i].u.tuple;
    KILN_TRY(kiln_dict_set(dict, kiln_ivalue_retain(tuple->items[0]),
                           kiln_ivalue_retain(tuple->items[1])));
  }
  return NULL;
}
