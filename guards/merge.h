/* merge.h: between merge_guards.c (which guards may be one, and why) and merge_build.c (making it);
 * for guards/ alone. */
#ifndef KILN_GUARDS_MERGE_H
#define KILN_GUARDS_MERGE_H

#include "guards/guards.h"

typedef KILN_VEC(kiln_node *) kiln_node_vec;

/* prim::TypeCheck, the prim::If after it that alone reads the verdict, and the prim::FallbackGraph
 * that alone stands on the other side. */
typedef struct kiln_guarded {
  kiln_node *check, *branch, *fallback;
} kiln_guarded;

/* Regions of one block that become one, and what goes into it with them. */
typedef struct kiln_guard_part {
  kiln_node *inner; /* NULL: a region */
  kiln_guarded region;
} kiln_guard_part;
typedef struct kiln_guard_run {
  kiln_pass *pass;
  kiln_map *claims; /* value -> the type that the profile claims, for values that are no facts */
  KILN_VEC(kiln_guard_part) parts; /* in order; the last one is a region */
  kiln_node_vec behind;            /* what depends on them and stood between them, in order */
  kiln_guard_checks checks;        /* of the merged guard */
} kiln_guard_run;

static inline kiln_block *kiln__guarded_hit(const kiln_guarded *r) { return r->branch->blocks[0]; }

/* A check of that list; `refined` (may be NULL) gets a value -> refined value map. */
kiln_node *kiln__guard_check_create(kiln_graph *graph, const kiln_guard_checks *list,
                                    kiln_map *refined);
/* Puts one region where the last one stood. */
void kiln__guards_join(kiln_guard_run *run);

#endif
