/* gdb.h: tells debuggers of generated kernels, as the flag `gdb` asks: GDB's JIT compilation
 * interface, which LLDB reads too (GDB's manual, "JIT Compilation Interface"). For codegen/ only.
 *
 * The process has one list of object files in memory, __jit_debug_descriptor; the debugger stops at
 * the empty function __jit_debug_register_code, which is called when the list has changed, and
 * reads names and unwind tables from the files. Both names are looked up in every library of the
 * process, and each has its own list: ours are hidden, so that they are not bound to those of
 * libLLVM. The debugger finds hidden names in the symbol table: a stripped library tells it
 * nothing, one whose symbols lie in a file of their own does. */
#pragma once

#include "base/mem.h"
#include "base/status.h"
#include "codegen/object.h"

typedef struct kiln__gdb_entry kiln__gdb_entry;

/* Enters a copy of the object that was loaded into `pages`, its function `symbol` called `name`,
 * which is no longer. Any thread. */
kiln_status *kiln__gdb_enter(kiln_mem *mem, const void *object, size_t size,
                             const kiln__pages *pages, const char *symbol, const char *name,
                             kiln__gdb_entry **out_entry) KILN_MUST_USE;
/* Before the pages go; NULL is fine. */
void kiln__gdb_leave(kiln__gdb_entry *entry);
