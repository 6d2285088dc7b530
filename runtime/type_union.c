/* type_union.c: unions, joins, and types without their details. */
#include <stdlib.h>

#include "runtime/type_internal.h"
#include "runtime/type_weight.h"

/* -- Unions -- */

/* The order of PyTorch's kinds, in which it sorts the members of a union. */
static int kind_rank(kiln_type_kind kind) {
  static const unsigned char order[] = {
      KILN_TYPE_ANY,      KILN_TYPE_ENUM,      KILN_TYPE_ANY_ENUM,  KILN_TYPE_TENSOR,
      KILN_TYPE_STORAGE,  KILN_TYPE_TUPLE,     KILN_TYPE_LIST,      KILN_TYPE_DICT,
      KILN_TYPE_NUMBER,   KILN_TYPE_FLOAT,     KILN_TYPE_COMPLEX,   KILN_TYPE_FUTURE,
      KILN_TYPE_AWAIT,    KILN_TYPE_RREF,      KILN_TYPE_INT,       KILN_TYPE_NONE,
      KILN_TYPE_STR,      KILN_TYPE_GENERATOR, KILN_TYPE_BOOL,      KILN_TYPE_OPTIONAL,
      KILN_TYPE_VAR,      KILN_TYPE_DEVICE,    KILN_TYPE_STREAM,    KILN_TYPE_FUNCTION,
      KILN_TYPE_CLASS,    KILN_TYPE_CAPSULE,   KILN_TYPE_INTERFACE, KILN_TYPE_QSCHEME,
      KILN_TYPE_ANY_LIST, KILN_TYPE_ANY_TUPLE, KILN_TYPE_ANY_CLASS, KILN_TYPE_UNION,
  };
  for (int i = 0; i < (int)sizeof order; i++) {
    if (order[i] == kind) return i;
  }
  return (int)sizeof order;
}

static int compare_str(kiln_str a, kiln_str b) {
  size_t n = a.len < b.len ? a.len : b.len;
  int c = n > 0 ? memcmp(a.data, b.data, n) : 0;
  return c ? c : (a.len > b.len) - (a.len < b.len);
}

/* By kind, name, parts; last by age, which only equals never reach. */
static int compare_types(const kiln_type *a, const kiln_type *b) {
  if (a == b) return 0;
  if (a->kind != b->kind) return kind_rank(a->kind) - kind_rank(b->kind);
  int c = compare_str(a->name, b->name);
  for (int i = 0; !c && i < a->elem_count && i < b->elem_count; i++) {
    c = compare_types(a->elems[i], b->elems[i]);
  }
  if (!c) c = a->elem_count - b->elem_count;
  return c ? c : (a->id > b->id) - (a->id < b->id);
}

static int compare_slots(const void *a, const void *b) {
  return compare_types(*(const kiln_type *const *)a, *(const kiln_type *const *)b);
}

static int count_members(const kiln_type *const *elems, int count) {
  int n = 0;
  for (int i = 0; i < count; i++) {
    if (elems[i]->kind == KILN_TYPE_UNION) {
      n += count_members(elems[i]->elems, elems[i]->elem_count);
    } else if (elems[i]->kind == KILN_TYPE_OPTIONAL) {
      n += 1 + count_members(elems[i]->elems, 1);
    } else {
      n++;
    }
  }
  return n;
}

/* Keeps the types that no other covers. */
static int add_member(const kiln_type **members, int count, const kiln_type *type) {
  for (int i = 0; i < count; i++) {
    if (kiln_type_is_subtype(type, members[i])) return count;
  }
  int kept = 0;
  for (int i = 0; i < count; i++) {
    if (!kiln_type_is_subtype(members[i], type)) members[kept++] = members[i];
  }
  members[kept] = type;
  return kept + 1;
}

static int flatten(const kiln_type **members, int count, const kiln_type *const *elems, int n) {
  for (int i = 0; i < n; i++) {
    const kiln_type *t = elems[i];
    if (t->kind == KILN_TYPE_UNION || t->kind == KILN_TYPE_OPTIONAL) {
      count = flatten(members, count, t->elems, t->elem_count);
      if (t->kind == KILN_TYPE_OPTIONAL) {
        count = add_member(members, count, kiln_type_basic(KILN_TYPE_NONE));
      }
    } else {
      count = add_member(members, count, t);
    }
  }
  return count;
}

const kiln_type *kiln_type_union(kiln_type_table *table, const kiln_type *const *elems, int count) {
  int most = count_members(elems, count);
  const kiln_type *few[16], **members = few;
  if (most > 16) {
    members = (const kiln_type **)kiln__type_table_alloc(table, sizeof *members * (size_t)most);
  }
  int n = flatten(members, 0, elems, count);
  if (n == 0) return kiln_type_basic(KILN_TYPE_NONE);
  if (n == 1) return members[0];
  qsort(members, (size_t)n, sizeof *members, compare_slots);
  if (n == 2) {
    int none = members[0]->kind == KILN_TYPE_NONE ? 0 : members[1]->kind == KILN_TYPE_NONE ? 1 : -1;
    if (none >= 0) return kiln_type_optional(table, members[1 - none]);
  }
  return kiln__type_make(table, KILN_TYPE_UNION, members, n);
}

/* -- Joins -- */

static void merge_dims(kiln_dim *out, const kiln_dim *a, const kiln_dim *b, int rank,
                       bool same_dims) {
  for (int i = 0; i < rank; i++) {
    const bool same = a[i] == b[i] && (same_dims || !kiln_dim_is_expression(a[i]));
    out[i] = same ? a[i] : KILN_DIM_UNKNOWN;
  }
}

const kiln_type *kiln_type_merge_tensor(kiln_type_table *table, const kiln_type *a,
                                        const kiln_type *b) {
  if (a == b) return a;
  if (!a->detail || !b->detail) return kiln_type_basic(KILN_TYPE_TENSOR);
  kiln_tensor_detail d = *a->detail;
  const kiln_tensor_detail *o = b->detail;
  int64_t sizes[KILN_MAX_RANK], strides[KILN_MAX_RANK];
  if (d.dtype != o->dtype) d.dtype = KILN_DTYPE_NONE;
  if (d.requires_grad != o->requires_grad) d.requires_grad = -1;
  if (d.undefined != o->undefined) d.undefined = -1;
  if (d.device != o->device || d.device_index != o->device_index) {
    d.device = -1, d.device_index = -1;
  }
  if (d.rank != o->rank) d.rank = -1;
  if (d.rank > 0) {
    merge_dims(sizes, d.sizes, o->sizes, d.rank, d.dims == o->dims);
    d.sizes = sizes;
    d.has_strides = d.has_strides && o->has_strides;
    if (d.has_strides) merge_dims(strides, d.strides, o->strides, d.rank, d.dims == o->dims);
    d.strides = strides;
  }
  return kiln_type_tensor(table, &d);
}

static const kiln_type *unify_tuples(kiln_type_table *table, const kiln_type *a, const kiln_type *b,
                                     bool to_union) {
  int n = a->elem_count;
  if (n != b->elem_count) return NULL;
  const kiln_type *few[16], **elems = few;
  if (n > 16) elems = (const kiln_type **)kiln__type_table_alloc(table, sizeof *elems * (size_t)n);
  for (int i = 0; i < n; i++) {
    elems[i] = kiln_type_unify(table, a->elems[i], b->elems[i], to_union);
    if (!elems[i]) return NULL;
  }
  return kiln_type_tuple(table, elems, n);
}

/* The join by structure; NULL when the kinds do not meet. */
static const kiln_type *unify_parts(kiln_type_table *table, const kiln_type *a, const kiln_type *b,
                                    bool to_union) {
  if (a->kind == KILN_TYPE_OPTIONAL || b->kind == KILN_TYPE_OPTIONAL) {
    const kiln_type *x = a->kind == KILN_TYPE_OPTIONAL ? a->elems[0] : a;
    const kiln_type *y = b->kind == KILN_TYPE_OPTIONAL ? b->elems[0] : b;
    const kiln_type *elem = kiln_type_unify(table, x, y, to_union);
    return elem ? kiln_type_optional(table, elem) : NULL;
  }
  if (a->kind != b->kind) return NULL;
  switch (a->kind) {
    case KILN_TYPE_TENSOR: return kiln_type_merge_tensor(table, a, b);
    case KILN_TYPE_TUPLE: return unify_tuples(table, a, b, to_union);
    case KILN_TYPE_FUTURE: {
      const kiln_type *elem = kiln_type_unify(table, a->elems[0], b->elems[0], to_union);
      return elem ? kiln_type_future(table, elem) : NULL;
    }
    default: break;
  }
  /* Lists and dicts meet when only tensor details part them. */
  if (kiln_type_equal_unshaped(a, b)) return kiln_type_unshaped(table, a);
  return NULL;
}

const kiln_type *kiln_type_unify(kiln_type_table *table, const kiln_type *a, const kiln_type *b,
                                 bool to_union) {
  if (kiln_type_is_subtype(a, b)) return b;
  if (kiln_type_is_subtype(b, a)) return a;
  if (a->kind == KILN_TYPE_NONE) return kiln_type_optional(table, b);
  if (b->kind == KILN_TYPE_NONE) return kiln_type_optional(table, a);
  const kiln_type *type = unify_parts(table, a, b, to_union);
  if (!type && to_union) type = kiln_type_union(table, (const kiln_type *[]){a, b}, 2);
  return type;
}

/* -- Without details -- */

const kiln_type *kiln_type_unshaped(kiln_type_table *table, const kiln_type *type) {
  if (type->kind == KILN_TYPE_TENSOR) return kiln_type_basic(KILN_TYPE_TENSOR);
  if (!kiln_type_is_shaped(type)) return type;
  const kiln_type *few[16], **elems = few;
  int n = type->elem_count;
  if (n > 16) elems = (const kiln_type **)kiln__type_table_alloc(table, sizeof *elems * (size_t)n);
  bool changed = false;
  for (int i = 0; i < n; i++) {
    elems[i] = kiln_type_unshaped(table, type->elems[i]);
    changed |= elems[i] != type->elems[i];
  }
  if (!changed) return type;
  if (type->names) return kiln_type_named_tuple(table, type->name, type->names, elems, n);
  if (type->kind == KILN_TYPE_UNION) return kiln_type_union(table, elems, n);
  return kiln__type_make(table, type->kind, elems, n);
}
