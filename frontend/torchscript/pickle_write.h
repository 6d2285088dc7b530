/* pickle_write.h: values of a module to a pickle as torch's C++ pickler writes it: protocol 2,
 * typed lists, type tags on every other container, objects by their class's attributes. */
#ifndef KILN_FRONTEND_TORCHSCRIPT_PICKLE_WRITE_H
#define KILN_FRONTEND_TORCHSCRIPT_PICKLE_WRITE_H

#include "frontend/torchscript/save.h"

typedef struct kiln_pickle_writer {
  kiln_arena *arena;
  kiln_mem *mem;
  const kiln_torchscript_save_options *options;
  kiln_text out; /* the pickle */
  kiln_map memo; /* tensor, box or storage -> memo index + 1 */
  uint32_t memo_count;
  KILN_VEC(kiln_storage *) order; /* storage i is the member data/<i> */
  /* States that get_state gave: they hold storages until all is written. Release them. */
  KILN_VEC(kiln_ivalue) states;
} kiln_pickle_writer;

/* Pickles `value` into w->out; w is zero but for arena, mem and options. Inside kiln_arena_run. */
kiln_status *kiln__pickle_write(kiln_pickle_writer *w, kiln_ivalue value) KILN_MUST_USE;
/* Releases what it holds; also after a failure. */
void kiln__pickle_writer_deinit(kiln_pickle_writer *w);

#endif
