/* pickle_write.h: values of a module to a pickle as torch's C++ pickler writes it: protocol 2,
 * typed lists, type tags on every other container, objects by their class's attributes. */
#pragma once

#include "frontend/pickle_out.h"
#include "frontend/torchscript/save.h"

typedef struct kiln_pickle_writer {
  const kiln_torchscript_save_options *options;
  kiln_pickle_out out;
} kiln_pickle_writer;

/* Pickles `value` into w->out; w is zero but for options. */
kiln_status *kiln__pickle_write(kiln_pickle_writer *w, kiln_arena *arena,
                                kiln_ivalue value) KILN_MUST_USE;
