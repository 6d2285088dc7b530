/* torch_save.h: reads and writes torch.save archives of plain data: tensors, numbers, strings,
 * None, lists, tuples, dicts, OrderedDict, torch.Size, devices and dtypes (as ints).
 *
 * Reading goes by an allowlist of pickle globals: nothing is imported. What is written is read by
 * torch.load (1.13 and 2.x, with weights_only too). Reference: torch/serialization.py. */
#pragma once

#include "frontend/file.h"
#include "runtime/value.h"

/* How an archive is read; all zero is right. */
typedef struct kiln_torch_save_options {
  kiln_limits limits;     /* bytes and time */
  const char *map_device; /* rules of frontend/devices.h; NULL: none */
} kiln_torch_save_options;

/* Storages are used where they lie in the mapping, which they retain. Element types are made in
 * `types`, which outlives the value; a list of unlike elements has element type Any. A wrong
 * checksum is only a warning: torch's writer may be told to leave them out. `options` may be NULL.
 */
kiln_status *kiln_torch_save_read(kiln_env *env, kiln_type_table *types, kiln_mapping *mapping,
                                  const kiln_torch_save_options *options,
                                  kiln_ivalue *out_value) KILN_MUST_USE;
/* Tensors that share a storage share it in the file too. KILN_INVALID_ARGUMENT for a value that has
 * no form there (an object, a future); KILN_INVALID_FILE when the file cannot be written. */
kiln_status *kiln_torch_save_write(kiln_env *env, kiln_ivalue value,
                                   const char *path) KILN_MUST_USE;
