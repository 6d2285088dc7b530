/* object.h: a loader of ELF objects, those of generated kernels. For codegen/ only.
 *
 * Not a general loader: x86-64 ELF, code and constants, no writable data, no symbol from elsewhere,
 * relocations R_X86_64_PC32 and PLT32. Anything else is refused. Bytes are not trusted to be
 * well formed (they may come from a cache on disk); that they are honest is. */
#pragma once

#include "base/status.h"
#include "runtime/kernel_abi.h"

typedef struct kiln__pages {
  void *base;
  size_t size;
  size_t used;       /* of it; the rest is zeros up to a page's end */
  size_t code_bytes; /* of the function that was looked for */
} kiln__pages;

/* Maps the object and finds function `symbol`. KILN_UNSUPPORTED when it is refused. */
kiln_status *kiln__object_load(const void *bytes, size_t size, const char *symbol,
                               kiln__pages *out_pages, kiln_kernel_fn *out_fn) KILN_MUST_USE;
/* The object as a debugger wants it, in `out` of `size` bytes: its sections say where they lie in
 * the pages that it was loaded into, and `symbol` is called `name`, where that is no longer. */
kiln_status *kiln__object_describe(const void *bytes, size_t size, const kiln__pages *pages,
                                   const char *symbol, const char *name, void *out) KILN_MUST_USE;
/* Nothing runs in the pages any more. */
void kiln__pages_release(kiln__pages *pages);
