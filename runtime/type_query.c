/* type_query.c: subtyping and other questions that make nothing. */
#include "runtime/type.h"

/* `same_dims`: handles of expressions are of one table. */
static bool dims_agree(const kiln_dim *sub, const kiln_dim *super, int rank, bool same_dims) {
  for (int i = 0; i < rank; i++) {
    if (super[i] == KILN_DIM_UNKNOWN) continue;
    if (sub[i] != super[i] || (!same_dims && kiln_dim_is_expression(sub[i]))) return false;
  }
  return true;
}

/* All that `super` knows, `sub` knows too, and the same. */
static bool tensor_is_subtype(const kiln_tensor_detail *sub, const kiln_tensor_detail *super) {
  if (!super) return true;
  if (!sub) return false;
  if (super->dtype != KILN_DTYPE_NONE && sub->dtype != super->dtype) return false;
  if (super->requires_grad >= 0 && sub->requires_grad != super->requires_grad) return false;
  if (super->undefined >= 0 && sub->undefined != super->undefined) return false;
  if (super->device >= 0 &&
      (sub->device != super->device || sub->device_index != super->device_index)) {
    return false;
  }
  if (sub->physical != super->physical) return false;
  const int rank = super->rank;
  const bool same = sub->dims == super->dims;
  if (rank < 0) return true;
  if (sub->rank != rank || !dims_agree(sub->sizes, super->sizes, rank, same)) return false;
  return !super->has_strides || rank == 0 ||
         (sub->has_strides && dims_agree(sub->strides, super->strides, rank, same));
}

static bool is_subtype(const kiln_type *sub, const kiln_type *super, kiln_subtype_walk *walk);

static bool tuple_is_subtype(const kiln_type *sub, const kiln_type *super,
                             kiln_subtype_walk *walk) {
  if (sub->elem_count != super->elem_count) return false;
  if (super->names && !sub->names) return false;
  for (int i = 0; i < sub->elem_count; i++) {
    if (super->names && !kiln_str_equal(sub->names[i], super->names[i])) return false;
    if (!is_subtype(sub->elems[i], super->elems[i], walk)) return false;
  }
  return true;
}

static bool subtype_of_any_elem(const kiln_type *sub, const kiln_type *super,
                                kiln_subtype_walk *walk) {
  for (int i = 0; i < super->elem_count; i++) {
    if (is_subtype(sub, super->elems[i], walk)) return true;
  }
  return false;
}

/* Interfaces may refer to each other and to themselves: what is being asked already holds as long
 * as nothing speaks against it. More than the bounds is no program that somebody wrote. */
static bool implements(const kiln_type *sub, const kiln_type *interface, kiln_subtype_walk *walk) {
  enum { MAX_DEPTH = 100, MAX_STEPS = 20000 };
  kiln_subtype_walk own = {0};
  if (!walk) walk = &own;
  for (const kiln_subtype_pair *p = walk->pairs; p; p = p->outer) {
    if (p->sub == sub && p->interface == interface) return true;
  }
  if (walk->depth >= MAX_DEPTH || walk->steps++ >= MAX_STEPS) return false;
  const kiln_subtype_pair pair = {sub, interface, walk->pairs};
  walk->pairs = &pair;
  walk->depth++;
  const bool yes = interface->cls->implements(sub, interface, walk);
  walk->depth--;
  walk->pairs = pair.outer;
  return yes;
}

/* `super` is neither Any nor equal to `sub`, and `sub` is no union or Optional. */
static bool simple_is_subtype(const kiln_type *sub, const kiln_type *super,
                              kiln_subtype_walk *walk) {
  switch (super->kind) {
    case KILN_TYPE_OPTIONAL:
      return sub->kind == KILN_TYPE_NONE || is_subtype(sub, super->elems[0], walk);
    case KILN_TYPE_UNION: return subtype_of_any_elem(sub, super, walk);
    case KILN_TYPE_NUMBER:
      return sub->kind == KILN_TYPE_INT || sub->kind == KILN_TYPE_FLOAT ||
             sub->kind == KILN_TYPE_COMPLEX;
    case KILN_TYPE_ANY_LIST: return sub->kind == KILN_TYPE_LIST;
    case KILN_TYPE_ANY_TUPLE: return sub->kind == KILN_TYPE_TUPLE;
    case KILN_TYPE_ANY_CLASS: return sub->kind == KILN_TYPE_CLASS;
    case KILN_TYPE_ANY_ENUM: return sub->kind == KILN_TYPE_ENUM;
    case KILN_TYPE_INTERFACE:
      return (sub->kind == KILN_TYPE_CLASS || sub->kind == KILN_TYPE_INTERFACE) &&
             super->cls->implements && implements(sub, super, walk);
    default: break;
  }
  if (sub->kind != super->kind) return false;
  switch (sub->kind) {
    case KILN_TYPE_TENSOR: return tensor_is_subtype(sub->detail, super->detail);
    case KILN_TYPE_TUPLE: return tuple_is_subtype(sub, super, walk);
    case KILN_TYPE_FUTURE:
    case KILN_TYPE_AWAIT:
    case KILN_TYPE_RREF: return is_subtype(sub->elems[0], super->elems[0], walk);
    default: return kiln_type_equal_unshaped(sub, super);
  }
}

static bool is_subtype(const kiln_type *sub, const kiln_type *super, kiln_subtype_walk *walk) {
  if (sub == super || super->kind == KILN_TYPE_ANY) return true;
  if (sub->kind == KILN_TYPE_OPTIONAL) {
    return is_subtype(kiln_type_basic(KILN_TYPE_NONE), super, walk) &&
           is_subtype(sub->elems[0], super, walk);
  }
  if (sub->kind == KILN_TYPE_UNION) {
    for (int i = 0; i < sub->elem_count; i++) {
      if (!is_subtype(sub->elems[i], super, walk)) return false;
    }
    return true;
  }
  return simple_is_subtype(sub, super, walk);
}

bool kiln_type_is_subtype(const kiln_type *sub, const kiln_type *super) {
  return is_subtype(sub, super, NULL);
}
bool kiln_type_is_subtype_within(kiln_subtype_walk *walk, const kiln_type *sub,
                                 const kiln_type *super) {
  return is_subtype(sub, super, walk);
}

bool kiln_type_equal_unshaped(const kiln_type *a, const kiln_type *b) {
  if (a == b) return true;
  if (a->kind != b->kind || a->elem_count != b->elem_count || !a->names != !b->names) return false;
  if (a->kind == KILN_TYPE_TENSOR) return true;
  if (a->elem_count == 0) return a->kind == KILN_TYPE_TUPLE && kiln_str_equal(a->name, b->name);
  if (!kiln_str_equal(a->name, b->name)) return false;
  for (int i = 0; i < a->elem_count; i++) {
    if (a->names && !kiln_str_equal(a->names[i], b->names[i])) return false;
    if (!kiln_type_equal_unshaped(a->elems[i], b->elems[i])) return false;
  }
  return true;
}

bool kiln_type_has_var(const kiln_type *type) {
  if (type->kind == KILN_TYPE_VAR) return true;
  for (int i = 0; i < type->elem_count; i++) {
    if (kiln_type_has_var(type->elems[i])) return true;
  }
  return false;
}

bool kiln_type_is_mutable(const kiln_type *type) {
  switch (type->kind) {
    case KILN_TYPE_TENSOR:
    case KILN_TYPE_LIST:
    case KILN_TYPE_DICT:
    case KILN_TYPE_CLASS:
    case KILN_TYPE_INTERFACE:
    case KILN_TYPE_ANY:
    case KILN_TYPE_ANY_LIST:
    case KILN_TYPE_ANY_TUPLE:
    case KILN_TYPE_ANY_CLASS:
    case KILN_TYPE_GENERATOR:
    case KILN_TYPE_STREAM:
    case KILN_TYPE_STORAGE:
    case KILN_TYPE_CAPSULE:
    case KILN_TYPE_FUTURE:
    case KILN_TYPE_AWAIT:
    case KILN_TYPE_RREF:
    case KILN_TYPE_VAR: return true;
    default: break;
  }
  for (int i = 0; i < type->elem_count; i++) {
    if (kiln_type_is_mutable(type->elems[i])) return true;
  }
  return false;
}

bool kiln_type_has_dims(const kiln_type *type) {
  const kiln_tensor_detail *d = type->detail;
  if (type->kind != KILN_TYPE_TENSOR || !d || d->dtype == KILN_DTYPE_NONE || d->rank < 0 ||
      d->device < 0 || (d->rank > 0 && !d->has_strides)) {
    return false;
  }
  for (int i = 0; i < d->rank; i++) {
    if (!kiln_dim_is_known(d->sizes[i]) || !kiln_dim_is_known(d->strides[i])) return false;
  }
  return true;
}

bool kiln_type_is_complete_tensor(const kiln_type *type) {
  if (!kiln_type_has_dims(type)) return false;
  for (int i = 0; i < type->detail->rank; i++) {
    if (!kiln_dim_is_number(type->detail->sizes[i])) return false;
    if (!kiln_dim_is_number(type->detail->strides[i])) return false;
  }
  return true;
}

bool kiln_tensor_detail_same_sizes(const kiln_tensor_detail *a, const kiln_tensor_detail *b) {
  if (!a || !b || a->rank < 0 || a->rank != b->rank) return false;
  for (int i = 0; i < a->rank; i++)
    if (!kiln_dim_is_known(a->sizes[i]) || a->sizes[i] != b->sizes[i]) return false;
  return true;
}

void kiln_class_set_attributes(kiln_class_info *info, kiln_arena *arena,
                               kiln_class_attribute *attributes, int count) {
  info->attributes = attributes;
  info->attribute_count = count;
  if (count < 16) return;
  kiln_map *index = KILN_NEW(arena, kiln_map);
  *index = kiln_map_in(arena);
  for (int i = count - 1; i >= 0; i--) {
    kiln_map_set(index, attributes[i].name, (void *)(intptr_t)(i + 1));
  }
  info->attribute_index = index;
}

int kiln_type_find_attribute(const kiln_type *cls, kiln_str name) {
  if (!cls->cls) return -1;
  if (cls->cls->attribute_index) {
    return (int)(intptr_t)kiln_map_find(cls->cls->attribute_index, name) - 1;
  }
  for (int i = 0; i < cls->cls->attribute_count; i++) {
    if (kiln_str_equal(cls->cls->attributes[i].name, name)) return i;
  }
  return -1;
}
