/* alias_internal.h: the data of the alias analysis; for ir/alias*.c alone.
 *
 * Locations stand for memory: one for each value that makes new memory, one for each of its unnamed
 * elements, and one wildcard for each bucket of types, which stands for everything that came from
 * outside or escaped. A value points to a set of locations, a location contains a set of them. */
#pragma once

#include "ir/internal.h"
#include "ir/pass.h"

/* Types whose values can never be the same memory are in different buckets. */
typedef enum bucket {
  BUCKET_TENSOR,
  BUCKET_LIST,
  BUCKET_DICT,
  BUCKET_TUPLE,
  BUCKET_OBJECT,
  BUCKET_FUTURE,
  BUCKET_OTHER,
  BUCKET__COUNT
} bucket;
enum { ALL_BUCKETS = (1 << BUCKET__COUNT) - 1 };
_Static_assert(ALL_BUCKETS <= UINT8_MAX, "a set of buckets is a byte, bit 1 << bucket");

/* Sorted. capacity 0: the items are another set's, which is `lent` then: both copy them before an
 * insertion, but the lender may append, for the others see no more than they did. */
typedef struct loc_set {
  int *items;
  int count, capacity;
  bool lent;
} loc_set;

typedef struct location {
  uint8_t bucket;
  bool escaped; /* stands for its bucket's wildcard */
  bool written; /* by some node */
  bool leaves;  /* is, or is in, a result of the graph */
  int merged;   /* into this location, and 1; 0: it stands for itself */
  loc_set contents;
  loc_set deep;         /* after the solution: itself and all that it contains */
  loc_set written_deep; /* those of them that are written */
} location;

typedef struct alias_var {
  uint8_t mask; /* buckets of its type */
  loc_set points;
} alias_var;

typedef enum constraint_kind {
  COPY,           /* points(dst) ⊇ points(src) */
  LOAD,           /* points(dst) ⊇ contents of points(src) */
  STORE,          /* contents of points(dst) ⊇ points(src) */
  STORE_CONTENTS, /* contents of points(dst) ⊇ contents of points(src) */
  INTO,           /* contents(loc) ⊇ points(src) */
  INTO_CONTENTS,  /* contents(loc) ⊇ contents of points(src) */
  INTO_DEEP,      /* contents(loc) ⊇ all that points(src) contain, at any depth */
  ESCAPE,         /* points(src) escape */
} constraint_kind;

typedef struct constraint {
  constraint_kind kind;
  int loc;
  alias_var *dst, *src;
} constraint;

/* A node writes what a value points to, or its elements; NULL: everything that outsiders know. */
typedef struct write_fact {
  const kiln_node *node;
  const alias_var *var;
  bool elements;
} write_fact;

struct kiln_alias {
  kiln_arena *arena;
  const kiln_graph *graph;
  kiln_map vars;           /* value -> alias_var */
  kiln_map writes;         /* node (and each node around it) -> loc_set */
  kiln_map quiet;          /* blocks within nodes in which nothing was written */
  kiln_map memory;         /* storage or box of a constant -> location + 1 */
  KILN_VEC(location) locs; /* the first BUCKET__COUNT are the wildcards */
  KILN_VEC(constraint) constraints;
  KILN_VEC(write_fact) write_facts;
  KILN_VEC(const kiln_node *) around; /* while building: the nodes around the present block */
};

/* alias_set.c */
/* Adds, keeping order; true when it was not there. */
bool kiln__locs_add(kiln_arena *arena, loc_set *set, int loc);
/* Adds the wildcards of the buckets in `mask`; true when one was not there. */
bool kiln__locs_add_wildcards(kiln_arena *arena, loc_set *set, uint8_t mask);
bool kiln__locs_has(const loc_set *set, int loc);
bool kiln__locs_meet(const loc_set *a, const loc_set *b);

/* alias_solve.c */
void kiln__alias_solve(kiln_alias *a);
uint8_t kiln__alias_mask(const kiln_type *type);

/* alias.c: queries. What the analysis does not know is everything (*out_all). */
const loc_set *kiln__alias_points(const kiln_alias *a, const kiln_ir_value *value, bool *out_all);
const loc_set *kiln__alias_writes(const kiln_alias *a, const kiln_node *node, bool *out_all);
