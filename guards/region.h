/* region.h: between guard_regions.c (what belongs to a region, and why), region_nodes.c (what may),
 * region_weights.c and region_build.c (putting it into the graph); for guards/ alone. */
#pragma once

#include "guards/guards.h"

typedef KILN_VEC(kiln_node *) kiln_node_vec;

/* The symbols of a graph's guards, by the histories that they stand for (symbols.c). */
enum { KILN_SYMBOL_HISTORY = 16 };
typedef struct kiln_symbol {
  int64_t now;
  bool is_stride, from_one;
  kiln_dim history[KILN_SYMBOL_HISTORY]; /* KILN_DIM_UNKNOWN: the level does not say it */
} kiln_symbol;
typedef struct kiln_symbols {
  kiln_type_table *types;
  const kiln_shape_history *history;
  int level_count; /* of them, that are looked at */
  bool from_one;   /* what has a history may be 1 */
  kiln_map fixed;  /* sizes of attributes: what has one of them at first keeps it */
  int count;
  kiln_symbol all[KILN_GUARD_SYMBOLS];
  kiln_dim same_as[KILN_GUARD_SYMBOLS]; /* what stands for them in kiln__symbols_relate; 0: they */
} kiln_symbols;
/* `claims` are types of the profile, by value. */
void kiln__symbols_begin(kiln_symbols *s, kiln_pass *pass, const kiln_map *claims);
/* The type that a guard checks of a value which has `type` now; `s` NULL: that one. */
const kiln_type *kiln__symbols_type(kiln_symbols *s, const kiln_ir_value *v, const kiln_type *type);
/* Whether a type of symbols is the one that there is now. */
bool kiln__symbols_agree(const kiln_symbols *s, kiln_arena *scratch, const kiln_type *type,
                         const kiln_type *now);
/* Whether the order is so now. */
bool kiln__symbols_hold(const kiln_symbols *s, kiln_arena *scratch, kiln_dim_order order);
/* Symbols that are a size of a checked value: those that the guard will bind, a bit each. */
uint64_t kiln__symbols_bound(const kiln_guard_checks *checks);
typedef KILN_VEC(const kiln_type *) kiln_type_vec;
/* Types checks from `first` on anew, `claims` being those of the profile, so that sizes which are
 * equal now are one expression: of `known` types, or a symbol of the checks. The guard asks for it
 * then. False: nothing changes. */
bool kiln__symbols_relate(kiln_symbols *s, kiln_arena *scratch, const kiln_map *claims,
                          const kiln_type_vec *known, kiln_guard_checks *checks, int first);
/* Gives a group's values the types that follow from those of its inputs (NULL: as it is). False,
 * and nothing is changed: they do not, or are not what there is now, or there is no such kernel: it
 * adds [s0] to [3], and s0 is 3 now. Types that were found are added to `found` then. */
bool kiln__symbols_retype(const kiln_symbols *s, const kiln_pass *pass, kiln_graph *body,
                          const kiln_type *const *inputs, kiln_type_vec *found);

/* Whether it draws random numbers: dropout that is told not to train does not, and attention that
 * drops nothing. */
bool kiln__region_is_random(const kiln_node *n);
/* Whether it may stand between a check and the region that this is moved into: it cannot fail. */
bool kiln__region_can_ask(const kiln_node *n);

/* Whether a guard has room for what the checks say of symbols. */
bool kiln__region_has_room(const kiln_guard_checks *checks);
/* Whether it, or a node of its blocks, reads one of the values, which the map has. */
bool kiln__region_reads_any(const kiln_node *n, const kiln_map *values);

/* Operators that make inputs of a region's groups of weights alone, and their copies in it. */
typedef struct kiln_region_weights {
  kiln_map copies; /* value -> its copy */
  kiln_node_vec from, made;
} kiln_region_weights;
/* Puts copies of the operators that make inputs of the group of weights and of sizes of tensors,
 * but for those that the map `in_region` has, behind `since` (may be NULL), in front of it, and
 * lets it read theirs; adds those that there were none of so far. What it read before, by input;
 * NULL: it still does. `claims`: of the profile. */
kiln_ir_value **kiln__region_copy_weights(kiln_pass *pass, kiln_region_weights *weights,
                                          kiln_map *claims, const kiln_map *in_region,
                                          kiln_node *group, const kiln_node *since);
/* As it was before, when there were so many copies. */
void kiln__region_leave_weights(kiln_region_weights *weights, int count, kiln_node *group,
                                kiln_ir_value **originals);
/* Removes the operators that nobody reads any more. */
void kiln__region_drop_weights(kiln_region_weights *weights);

/* Nodes of one block that one guard will cover. */
typedef struct kiln_region {
  kiln_pass *pass;
  kiln_map *claims;         /* value -> the type that the profile claims for it */
  kiln_map *proven;         /* of what regions give: the type that it has in them */
  kiln_node_vec parts;      /* groups and other nodes whose types are facts where the guard held */
  kiln_node *last;          /* of its groups: the region stands where this one stood */
  kiln_node_vec ahead;      /* reads of attributes that come to stand before it, in order */
  kiln_node_vec behind;     /* no parts, but they read some, and stand before `last` */
  kiln_guard_checks checks; /* of the guard */
  kiln_symbols *symbols;    /* NULL: its sizes are numbers */
  const kiln_map *asked;    /* nodes that the fallback has copies of: it asks again */
} kiln_region;

/* Lets the guard ask for orders that somebody lacks (runtime/dim.h): those of the operator that has
 * no type, or of the kernel that there is not, before those of others. The first `kept` that it
 * asks for stay. Whether there are any. */
bool kiln__region_grant(kiln_region *region, const kiln_dim_wishes *needed,
                        const kiln_dim_wishes *liked, int kept);

/* Puts the check, the If and the fallback into the graph. */
void kiln__region_build(kiln_region *region);
