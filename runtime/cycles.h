/* cycles.h: containers that contain themselves, which reference counts alone would leave behind.
 *
 * A cycle is closed by the write that puts into a container something from which the container can
 * be reached. Only containers that may hold values of any type can close one, so the writes into
 * those look first (a few steps; what is larger counts as found) and note the container as a
 * possible root of the call. Suspects are counted through when the call ends: those that only hold
 * one another are emptied. Those that live on are the instance's to look at again (api/instance.c).
 * A write whose container cannot be noted fails; the counting is refused by no limit, for what a
 * call has left is given back all the more when a limit ended it (some 100 bytes a container).
 * Who writes nothing but numbers, strings, tensors and typed containers pays one comparison. */
#pragma once

#include "runtime/value.h"

typedef struct kiln_possible_roots {
  struct kiln_possible_root_block *first; /* NULL: none */
} kiln_possible_roots;

/* What a list, tuple, object or complete future holds, and a dict: keys and values in turn, None in
 * the place of what was removed. Others hold nothing. */
int64_t kiln_child_count(kiln_ivalue v);
kiln_ivalue kiln_child_at(kiln_ivalue v, int64_t i); /* borrowed */

/* `v` (borrowed) is about to be put into `box`, as a `type` (NULL: any). Out of memory: it must not
 * be. */
kiln_status *kiln__cycle_look(kiln_mem *mem, kiln_possible_roots *roots, kiln_box *box,
                              const kiln_type *type, kiln_ivalue v) KILN_MUST_USE;
static inline kiln_status *kiln_cycle_note(kiln_mem *mem, kiln_possible_roots *roots, kiln_box *box,
                                           const kiln_type *type, kiln_ivalue v) {
  if (__builtin_expect(v.tag < KILN_TAG_LIST, 1)) return NULL;
  return kiln__cycle_look(mem, roots, box, type, v);
}
/* Moves all of `from` to `to`. */
void kiln_possible_roots_take(kiln_possible_roots *to, kiln_possible_roots *from);
/* Frees what is reached from the roots and held by nobody else; those that live remain. */
void kiln_possible_roots_collect(kiln_mem *mem, kiln_possible_roots *roots);
/* Collects, then lets go of the rest. */
void kiln_possible_roots_deinit(kiln_mem *mem, kiln_possible_roots *roots);
/* Releases `v`, and what it leaves behind. */
void kiln_ivalue_release_cyclic(kiln_mem *mem, kiln_ivalue v);
