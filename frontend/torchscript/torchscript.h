/* torchscript.h: loads a TorchScript archive (torch.jit.save): code to graphs, data to objects.
 *
 * Reference: PyTorch's caffe2/serialize and torch/csrc/jit/serialization. Whatever the bytes are,
 * loading gives a result or a status within the limits; nothing of the model is executed. Calls of
 * __setstate__ that the archive asks for are returned, and api runs them in order, before anything
 * else of the model runs.
 *
 * Every function body is compiled at load, so that an error names its place. An unknown operator is
 * no error: its node is kept and fails when it is reached. With `lenient`, a body that does not
 * compile is kept as kiln_function.error.
 *
 * How calls look in the IR: prim::CallMethod[name](self, …); prim::CallFunction(f, …) where f is a
 * prim::Constant[name="qualified name"] of type Function with the kiln_function as POINTER
 * attribute "function" (kiln_append_function and kiln_call_callee of ir/unit.h). */
#pragma once

#include "frontend/devices.h"
#include "frontend/file.h"
#include "ir/unit.h"

/* object.__setstate__(state), asked for by the pickle. */
typedef struct kiln_pending_call {
  kiln_function *function;
  kiln_ivalue object, state; /* owned */
} kiln_pending_call;

/* A file of the user's, from extra/; or source, from code/. */
typedef struct kiln_extra_file {
  kiln_str name; /* below extra/; of source: whole. Terminated */
  kiln_str data; /* in the mapping, or inflated into the unit's arena */
} kiln_extra_file;

typedef struct kiln_torchscript {
  kiln_unit *unit;            /* owned: classes, functions, graphs */
  kiln_ivalue root;           /* owned: the root module, an OBJECT */
  kiln_ivalue constants;      /* owned: the tuple of constants.pkl */
  kiln_mapping *mapping;      /* retained: sources and weights lie in it */
  kiln_device_map *devices;   /* in the unit's arena: rules, and what they did */
  int64_t version;            /* which meaning of versioned operators its code has */
  bool early;                 /* written by PyTorch before 2.1 */
  bool has_early_calls;       /* whose code means something else since: so must it be saved */
  kiln_pending_call *pending; /* in the unit's arena */
  int pending_count;
  kiln_extra_file *extras; /* in the unit's arena */
  int extra_count;
  KILN_VEC(kiln_source_origin *) origins; /* of its code; in the unit's arena */
  int entry_count;                        /* files in the archive */
  int deflated_count;                     /* of them */
  kiln_extra_file *sources; /* with `at_rest`: every file of source; in the unit's arena */
  int source_count;
} kiln_torchscript;

typedef struct kiln_torchscript_options {
  kiln_limits limits; /* bytes also caps what is inflated (default 4 GiB); time_ms the whole load */
  const kiln_budget *begun; /* with these limits, when the file was opened; NULL: from now on */
  bool crc_warns;           /* a wrong checksum is a warning */
  const char *map_device;   /* rules of frontend/devices.h; NULL: none */
  bool lenient;             /* bodies that do not compile are errors of their calls only */
  bool at_rest;             /* to be looked at, not run: keeps the sources */
} kiln_torchscript_options;

/* `options` may be NULL. The mapping is retained. The registry and env outlive the result.
 * KILN_INVALID_FILE for a damaged or refused archive, with the place where it is in source. */
kiln_status *kiln_torchscript_load(kiln_env *env, const kiln_registry *registry,
                                   kiln_mapping *mapping, const kiln_torchscript_options *options,
                                   kiln_torchscript **out_model) KILN_MUST_USE;
/* Releases everything that it owns. NULL is fine. */
void kiln_torchscript_destroy(kiln_torchscript *model);
