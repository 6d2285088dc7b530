/* pickle_machine.h: the state of the pickle reader, between pickle.c (opcodes), pickle_build.c
 * (globals, values, objects), pickle_tensor.c (storages, tensors) and pickle_check.c (what has been
 * read as a whole). */
#pragma once

#include "frontend/pickle.h"

/* Things on the stack that are no values of the language: OTHER boxes with this destructor. None is
 * left in a result. */
typedef enum kiln_pickle_ref_kind {
  KILN_REF_FUNCTION,     /* of the allowlist */
  KILN_REF_CLASS,        /* CLASS or ENUM */
  KILN_REF_STORAGE_TYPE, /* torch.FloatStorage */
  KILN_REF_STORAGE,
} kiln_pickle_ref_kind;

typedef struct kiln_pickle kiln_pickle;
/* What REDUCE calls: pushes what it makes. */
typedef kiln_status *(*kiln_pickle_fn)(kiln_pickle *p, const kiln_tuple *args);

typedef struct kiln_pickle_ref {
  kiln_box box;
  kiln_pickle_ref_kind kind;
  kiln_pickle_fn call; /* of a FUNCTION */
  const kiln_type *type;
  kiln_dtype dtype;
  kiln_storage *storage;     /* retained, as the next are */
  kiln_storage *resolved[3]; /* with its elements conjugated, negated, both; where needed */
} kiln_pickle_ref;

typedef struct kiln_pickle_values {
  kiln_ivalue *data;
  size_t count, capacity;
} kiln_pickle_values;

struct kiln_pickle {
  kiln_env *env;
  kiln_mem *mem;
  kiln_arena *arena;
  kiln_type_table *types;
  kiln_zip *zip;
  kiln_mapping *mapping;
  const char *name;
  const kiln_pickle_hooks *hooks;
  kiln_device_map *devices; /* NULL: none */
  kiln_str bytes;
  size_t at;
  kiln_pickle_values stack;
  kiln_pickle_values memo;
  kiln_pickle_values made;    /* every container, so that broken graphs can be taken apart */
  size_t unreached;           /* the first of `made`; all until the check has passed */
  kiln_pickle_values pending; /* pairs: object, state */
  kiln_pickle_values marks;   /* ints: how high the stack was */
  kiln_map storages;          /* key -> kiln_pickle_ref, which `held` keeps */
  kiln_pickle_values held;
  kiln_ivalue result;

  size_t object_bytes;      /* of slots */
  kiln_map pending_objects; /* those in `pending` */
};

/* Asks hooks->check. */
kiln_status *kiln__pickle_ask(const kiln_pickle *p) KILN_MUST_USE;

/* Takes `value`, also on failure. */
kiln_status *kiln__pickle_add(kiln_pickle *p, kiln_pickle_values *values,
                              kiln_ivalue value) KILN_MUST_USE;
static inline kiln_status *kiln__pickle_push(kiln_pickle *p, kiln_ivalue value) {
  return kiln__pickle_add(p, &p->stack, value);
}
/* An error at the present place. */
#define KILN_PICKLE_ERROR(p, fmt, ...) \
  KILN_ERROR(KILN_INVALID_FILE, "%s.pkl at byte %zu: " fmt, (p)->name, (p)->at, ##__VA_ARGS__)

static inline const kiln_pickle_ref *kiln__pickle_ref_of(kiln_ivalue v) {
  return v.tag == KILN_TAG_OTHER ? (const kiln_pickle_ref *)v.u.box : NULL;
}

/* -- pickle_build.c: each borrows its arguments and pushes its result -- */
kiln_status *kiln__pickle_global(kiln_pickle *p, kiln_str module, kiln_str name) KILN_MUST_USE;
kiln_status *kiln__pickle_reduce(kiln_pickle *p, kiln_ivalue callee,
                                 kiln_ivalue args) KILN_MUST_USE;
kiln_status *kiln__pickle_new_object(kiln_pickle *p, kiln_ivalue cls,
                                     kiln_ivalue args) KILN_MUST_USE;
/* Pushes nothing: `target` is changed. */
kiln_status *kiln__pickle_build(kiln_pickle *p, kiln_ivalue target,
                                kiln_ivalue state) KILN_MUST_USE;
kiln_status *kiln__pickle_persistent(kiln_pickle *p, kiln_ivalue id) KILN_MUST_USE;

kiln_status *kiln__pickle_ref_create(kiln_pickle *p, kiln_pickle_ref_kind kind,
                                     kiln_pickle_ref **out_ref) KILN_MUST_USE;

/* -- pickle_tensor.c -- */
/* (storage, offset, size, stride, requires_grad, hooks [, meta]); v3: the last is a dtype. */
kiln_status *kiln__pickle_tensor(kiln_pickle *p, const kiln_tuple *args) KILN_MUST_USE;
kiln_status *kiln__pickle_tensor_v3(kiln_pickle *p, const kiln_tuple *args) KILN_MUST_USE;
/* (storage, offset, size, stride, parameters, requires_grad, hooks). */
kiln_status *kiln__pickle_qtensor(kiln_pickle *p, const kiln_tuple *args) KILN_MUST_USE;
/* (tensor, requires_grad, hooks). */
kiln_status *kiln__pickle_parameter(kiln_pickle *p, const kiln_tuple *args) KILN_MUST_USE;
/* A list or tuple of non-negative ints. */
bool kiln__pickle_dims(kiln_ivalue v, int64_t *out_dims, int *out_rank);

/* -- pickle_check.c -- */
/* The result is a tree or DAG of plain, complete values, not too deep. */
kiln_status *kiln__pickle_check(kiln_pickle *p) KILN_MUST_USE;
/* Takes apart every container that the result does not reach: all where it was not checked. */
void kiln__pickle_dismantle(kiln_pickle *p);
