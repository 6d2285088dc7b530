/* freeze_internal.h: between freeze.c (what is constant) and freeze_module.c (what is left). */
#pragma once

#include "jit/freeze.h"
#include "jit/pass_run.h"

/* A module on the way from the root. */
typedef struct kiln__frozen_object {
  kiln_object *object; /* borrowed */
  bool *pinned;        /* by slot: preserved */
  bool *changes;       /* by slot: somebody may store to it, or change what it holds */
  bool *needed;        /* by slot: it stays */
  bool whole;          /* preserved with all that it has */
  kiln_object *made;   /* what is left of it; owned by the root that is made */
} kiln__frozen_object;

/* A read of an attribute that may become a constant. */
typedef struct kiln__frozen_read {
  kiln_graph *graph;
  kiln_node *get;
  kiln_ir_value *constant;
  kiln__frozen_object *object;
  int slot;
} kiln__frozen_read;

typedef struct kiln__freezer {
  kiln_env *env;
  kiln_unit *from, *to;
  kiln_arena *arena;
  kiln_pass_runner runner;
  kiln_ivalue root;
  const kiln_freeze_request *request;
  KILN_VEC(kiln_function *) methods; /* that stay, of `from` */
  KILN_VEC(kiln_graph *) frozen;     /* their graphs, owned until `to` has them */
  KILN_VEC(kiln_graph *) graphs;     /* the same and those of forks in them */
  KILN_VEC(kiln__frozen_read) reads;
  KILN_VEC(kiln__frozen_object *) objects;
  kiln_map by_object; /* object -> kiln__frozen_object */
  kiln_map known;     /* value of a graph -> kiln__frozen_object */
  kiln_map visited;   /* containers of the value that is looked through */
  kiln_map memory;    /* addresses of what changes: storages, lists, dicts */
  kiln_map detached;  /* tensor -> the same without requires_grad, owned by `to` */
} kiln__freezer;

kiln__frozen_object *kiln__frozen_object_of(kiln__freezer *f, kiln_object *object);
/* Whether the value is a module of the root's, or below. */
static inline bool kiln__is_module(kiln_ivalue v) {
  return v.tag == KILN_TAG_OBJECT && v.u.object && v.u.object->type->cls->is_module;
}

/* The slot's value, or what it counts as. */
kiln_ivalue kiln__frozen_value(const kiln__freezer *f, const kiln_object *object, int slot);

/* Makes f->to's classes, functions and the root. */
kiln_status *kiln__freeze_make_module(kiln__freezer *f, kiln_ivalue *out_root) KILN_MUST_USE;
