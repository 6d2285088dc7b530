/* guards.h: the home of guards: making, lifting and explaining them, and the passes that put them
 * around compiled groups. Their data and their check are in runtime/guard.h, since plans carry them
 * and the interpreter asks them.
 *
 * A region is prim::TypeCheck(inputs) -> (refined inputs…, ok), then prim::If(ok) with groups and
 * what follows from the checked types in its first block, and prim::FallbackGraph in its second.
 * The types of values in the first block are facts. The check stands before any effect of its
 * region, so a fallback starts the region anew and needs no snapshot. */
#pragma once

#include <pthread.h>

#include "ir/pass.h"
#include "runtime/guard.h"

/* -- Misses -- */

/* A value that was not as recorded; one entry for each site, value and pair of types. */
typedef struct kiln_guard_miss {
  const char *site;            /* profile site: "__torch__.M.forward#0123456789abcdef" */
  const char *value;           /* "x.1" */
  const char *expected, *seen; /* the two types */
  kiln_source_loc loc;         /* of what was guarded; line 0: unknown */
  uint64_t call, count;        /* the host's call that it happened in first, from 1; how often */
  struct kiln_guard_miss *next;
} kiln_guard_miss;

/* Those of a model. Any thread may ask and tell. */
typedef struct kiln_guard_misses {
  const kiln_env *env; /* borrowed: its log and its timeline are told */
  kiln_counter_book *book;
  uint32_t calls; /* the book's counter of the host's calls */
  pid_t maker;
  pthread_mutex_t lock; /* of all below */
  kiln_arena *arena;
  kiln_guard_miss *first, *last;
  int count;
} kiln_guard_misses;

void kiln_guard_misses_init(kiln_guard_misses *misses, const kiln_env *env, kiln_counter_book *book,
                            uint32_t calls);
void kiln_guard_misses_deinit(kiln_guard_misses *misses);
/* False beyond the last. Texts are borrowed from the list. */
bool kiln_guard_miss_at(kiln_guard_misses *misses, int index, kiln_guard_miss *out_miss);

/* -- Making -- */

/* What the guards of one executor have in common; all of it outlives them. */
typedef struct kiln_guard_maker {
  kiln_counter_book *book;   /* that counts them; NULL: they are not counted */
  kiln_guard_misses *misses; /* that their misses are told to; NULL: they are not told */
  const char *site;          /* of those */
  double stress;             /* the flag stress_bailout */
  uint32_t counters;         /* of hits, and of misses behind it; 0: new ones */
} kiln_guard_maker;

/* What one guard looks at, in order. */
typedef struct kiln_guard_checks {
  KILN_VEC(kiln_ir_value *) values;
  KILN_VEC(const kiln_type *) types;
  int order_count; /* what else must hold of the types' symbols, which are all bound: */
  kiln_dim_order orders[KILN_DIMS_ASSUMED];
  const kiln_dims *dims; /* theirs; NULL: there are none */
} kiln_guard_checks;

/* On guards of symbols, and on groups behind them: the orders that hold, "s0 <= 64". */
#define KILN_ATTR_WHERE "where"
/* On a group behind a guard with symbols: what these are now, an int64_t each, by their number; in
 * the memory of the graph that the guard was put into, and no part of its text. */
#define KILN_ATTR_NOW "now"

/* Those of a prim::TypeCheck. */
kiln_guard_checks kiln_guard_checks_of(kiln_arena *arena, const kiln_node *check);
/* A guard of values that have these tensor types, one after the other: what a type leaves open is
 * not compared. `checks`: whose orders are asked too; NULL: there are none. Memory in `arena`. */
void kiln_guard_build(kiln_arena *arena, const kiln_type *const *types, int count,
                      const kiln_guard_checks *checks, kiln_guard_desc *out_guard);
/* The same, counted and told. `range` (may be NULL): what is guarded. */
void kiln_guard_make(const kiln_guard_maker *maker, kiln_arena *arena,
                     const kiln_guard_checks *checks, const kiln_source_range *range,
                     kiln_guard_desc *out_guard);
/* One guard on the graph's inputs in place of all its checks, for asking before its plan starts;
 * NULL where there is none, or one looks at something else. */
kiln_guard_desc *kiln_guard_lift(const kiln_guard_maker *maker, kiln_arena *arena,
                                 const kiln_graph *graph, kiln_arena *scratch);

/* -- Asking -- */

/* The hash of values by all that a guard could look at; non-tensors count by tag. */
uint64_t kiln_guard_hash(const kiln_ivalue *values, int count, bool grad_mode);
/* The first entry that fails, -1 when all hold; and in words what it expects ("Float(4, 3, …)") and
 * what it saw. */
int kiln_guard_explain(const kiln_guard_desc *guard, const kiln_ivalue *registers,
                       const kiln_ivalue *constants, bool grad_mode, kiln_text *expected,
                       kiln_text *seen);
/* Puts a miss of these arguments on the list of misses. */
void kiln_guard_tell(const kiln_guard_desc *guard, const kiln_ivalue *args, const kiln_call *call);

/* -- Symbols -- */

/* A tensor that stood where a graph's input is: sizes, then strides. Those of an earlier guard may
 * be its symbols. */
typedef struct kiln_shape_seen {
  int rank; /* -1: not known */
  const kiln_dim *dims;
} kiln_shape_seen;
/* What earlier levels of the same graph had. */
typedef struct kiln_shape_history {
  int level_count;
  const kiln_shape_seen *const *levels; /* each of one entry for each input */
  bool from_one;                        /* symbols of these histories may be 1 */
} kiln_shape_history;

/* -- Regions -- */

/* On a check of ranks in front of a whole graph: types behind it are claims still. */
#define KILN_ATTR_RANKS "ranks"
/* The block is entered only when a TypeCheck held; and tensor types in it are facts. */
bool kiln_guards_is_checked(const kiln_block *block);
bool kiln_guards_is_hit(const kiln_block *block);

/* Puts what branches do that the inputs' ranks decide behind one check of these. */
kiln_status *kiln_pass_guard_ranks(kiln_pass *pass);

/* Puts TensorExprGroups that are not guarded yet into regions; tensor types stay where they are
 * facts and go elsewhere. */
kiln_status *kiln_pass_guard_regions(kiln_pass *pass);

/* Puts the operators of a group in its place, without types; gives the first of them. */
kiln_node *kiln_guards_dissolve(kiln_pass *pass, kiln_node *group);

/* -- Between the files of guards/ -- */

/* Who is told of a guard's misses; NULL: nobody. */
kiln_guard_watch *kiln__guard_watch(const kiln_guard_maker *maker, kiln_arena *arena,
                                    const kiln_guard_checks *checks,
                                    const kiln_source_range *range);
