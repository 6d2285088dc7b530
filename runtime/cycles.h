/* cycles.h: containers that contain themselves, which reference counts alone would leave behind.
 *
 * A cycle is closed by the write that puts into a container something from which the container can
 * be reached. Only containers that may hold values of any type can close one, so the writes into
 * those look (a few steps; what is larger counts as found) and note the container as a suspect of
 * the call. Suspects are counted through when the call ends: those that only hold one another are
 * emptied. Those that live on are the instance's to look at again (api/instance.c).
 * Who writes nothing but numbers, strings, tensors and typed containers pays one comparison. */
#ifndef KILN_RUNTIME_CYCLES_H
#define KILN_RUNTIME_CYCLES_H

#include "runtime/value.h"

typedef struct kiln_suspects {
  kiln_ivalue *items; /* containers, retained */
  size_t count, capacity;
} kiln_suspects;

/* `v` (borrowed) has been put into `box`, as a `type` (NULL: any). Short of memory, the container
 * is not noted. */
void kiln__cycle_look(kiln_mem *mem, kiln_suspects *suspects, kiln_box *box, const kiln_type *type,
                      kiln_ivalue v);
static inline void kiln_cycle_note(kiln_mem *mem, kiln_suspects *suspects, kiln_box *box,
                                   const kiln_type *type, kiln_ivalue v) {
  if (__builtin_expect(v.tag >= KILN_TAG_LIST, 0)) kiln__cycle_look(mem, suspects, box, type, v);
}
/* One suspect more; short of memory, none. */
void kiln_suspects_add(kiln_mem *mem, kiln_suspects *suspects, kiln_ivalue v);
/* Moves all of `from` to the end of `to`. */
void kiln_suspects_take(kiln_mem *mem, kiln_suspects *to, kiln_suspects *from);
/* Frees what is reached from the suspects and held by nobody else; those that live remain. */
void kiln_suspects_collect(kiln_mem *mem, kiln_suspects *suspects);
/* Collects, then lets go of the rest. */
void kiln_suspects_deinit(kiln_mem *mem, kiln_suspects *suspects);
/* Releases `v`, and what it leaves behind. */
void kiln_ivalue_release_cyclic(kiln_mem *mem, kiln_ivalue v);

#endif
