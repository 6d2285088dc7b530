/* save.h: writes a loaded module as a TorchScript archive, which PyTorch (1.4 to 2.x) and Kiln
 * load.
 *
 * The source is the archive's own, byte for byte, with its constants, its version and the tables of
 * source places; or it is printed from the graphs as they were loaded or built (python_print.h),
 * where it is asked for and for models that came from no archive. What the optimiser did is never
 * seen. The state is that of the given root:
 * data.pkl and its storages are new. Tensors that share a storage share it in the file, objects
 * that are reached twice are one object. Weights go to the sink from where they lie. Left out are
 * members that no loader reads: traced_inputs, the lite interpreter's bytecode, the serialization
 * id. Reference: torch/csrc/jit/serialization/{export_module,pickler}.cpp. */
#pragma once

#include "base/sink.h"
#include "frontend/torchscript/torchscript.h"

typedef struct kiln_torchscript_save_options {
  const kiln_extra *extras; /* added under extra/, instead of the archive's of the same name */
  int extra_count;
  bool drop_extras; /* the archive's own are not kept */
  bool reprint;     /* source and constants are printed from the graphs */
  /* The state of an object whose class has __getstate__ and __setstate__; *out_state is owned. */
  kiln_status *(*get_state)(void *user, kiln_ivalue object, kiln_ivalue *out_state);
  void *user;
} kiln_torchscript_save_options;

/* Saves `root` (borrowed), an object of the script's unit. Nobody changes it meanwhile.
 * KILN_INVALID_ARGUMENT names what has no form in an archive (a future, an attribute that is not
 * set); then nothing was written. The sink is called inside arena runs of its caller's making. */
kiln_status *kiln_torchscript_save(kiln_env *env, const kiln_torchscript *script, kiln_ivalue root,
                                   const kiln_torchscript_save_options *options,
                                   const kiln_sink *sink) KILN_MUST_USE;
