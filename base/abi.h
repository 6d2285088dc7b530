/* abi.h: versioned structs: options and results that hosts of other versions give and take.
 *
 * A host is compiled against one kiln.h and may run with a later or an earlier libkiln. Structs
 * only ever grow at their end, so what both know is the shorter prefix. The protocol is that of
 * Linux's copy_struct_from_user: options that the library does not know must be 0, else they are
 * refused and not ignored. struct_size 0 is the size in the first release of this minor version. */
#pragma once

#include <string.h>

#include "base/status.h"

/* Fills `out` (of `known` bytes) from the options that a host gave: NULL gives zeros. `struct_size`
 * is what the host wrote into them, `least` the bytes up to and with that field. */
kiln_status *kiln_abi_read(const char *name, const void *given, size_t struct_size, size_t least,
                           size_t known, void *out) KILN_MUST_USE;

/* KILN_ABI_READ(kiln_save_options, options, &own) */
#define KILN_ABI_READ(type, given, out)                                              \
  KILN_TRY(kiln_abi_read(#type, (given), (given) ? (given)->struct_size : 0,         \
                         offsetof(type, struct_size) + sizeof(size_t), sizeof(type), \
                         (type *)(out)))

/* Gives `ours` to a host whose struct has `struct_size` bytes; what it has beyond ours is 0. */
static inline void kiln_abi_write(void *out, size_t struct_size, const void *ours, size_t known) {
  memcpy(out, ours, struct_size < known ? struct_size : known);
  if (struct_size > known) memset((char *)out + known, 0, struct_size - known);
}
