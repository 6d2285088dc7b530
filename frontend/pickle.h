/* pickle.h: reads torch's pickles by an allowlist: no global is imported, no code is run.
 *
 * The machine is pickle protocol 2, as far as torch writes it. Classes come from a callback;
 * tensors lie on storages that are mapped from the archive, one storage for each key, so aliases
 * stay aliases. Refused: unknown globals and opcodes, indices and lengths out of range, tensors
 * that reach outside their storage, reference cycles, nesting deeper than KILN_PICKLE_MAX_DEPTH.
 * Reference: torch/csrc/jit/serialization/unpickler.cpp, torch/serialization.py. */
#pragma once

#include "frontend/devices.h"
#include "frontend/zip.h"
#include "runtime/value.h"

enum { KILN_PICKLE_MAX_DEPTH = 500 };

/* What the reader asks of its user. A NULL function: such things are refused. */
typedef struct kiln_pickle_hooks {
  void *user;
  const kiln_budget *budget; /* NULL: no limits */
  kiln_device_map *devices;  /* NULL: tensors that are not on the CPU are refused */
  bool *quantised;           /* set when a quantised tensor was read; or NULL */
  bool whole_name;           /* the name given is that of the entry, ".pkl" and all */
  /* The CLASS or ENUM type of "__torch__.m.C", with its attributes defined. */
  kiln_status *(*find_class)(void *user, kiln_str qualname, const kiln_type **out_type);
  /* The type of "Dict[str, int]". */
  kiln_status *(*parse_type)(void *user, kiln_str text, const kiln_type **out_type);
  /* Objects of that class are filled by their __setstate__. */
  bool (*wants_state)(void *user, const kiln_type *type);
  /* Called for each such object, in order, when all is read. Borrows both. */
  kiln_status *(*set_state)(void *user, kiln_ivalue object, kiln_ivalue state);
  /* Asked now and then, with the bytes that the objects made so far take; an error ends the read.
   * NULL: no limit. */
  kiln_status *(*check)(void *user, size_t bytes);
} kiln_pickle_hooks;

/* Reads "<name>.pkl" with storages "<name>/<key>" of the archive. Allocates from `arena`. The value
 * outlives arena and zip; its storages retain `mapping`. */
kiln_status *kiln_pickle_read(kiln_env *env, kiln_arena *arena, kiln_type_table *types,
                              kiln_zip *zip, kiln_mapping *mapping, const char *name,
                              const kiln_pickle_hooks *hooks, kiln_ivalue *out_value) KILN_MUST_USE;

/* Gives containers inside `value` that do not know their element types those of `type`; makes None
 * an undefined tensor where a Tensor is declared. */
kiln_status *kiln_pickle_restore_types(kiln_mem *mem, kiln_ivalue *value,
                                       const kiln_type *type) KILN_MUST_USE;
/* The same where no type is declared: element types follow from the elements, unlike ones are Any.
 */
const kiln_type *kiln_pickle_infer_types(kiln_type_table *types, kiln_ivalue value);
/* The same, empty containers too: nothing is left whose type an isinstance could decide. */
const kiln_type *kiln_pickle_settle_types(kiln_type_table *types, kiln_ivalue value);
