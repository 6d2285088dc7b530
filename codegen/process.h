/* process.h: out-of-process compilation: LLVM in a child (compile_process). For codegen/ only.
 *
 * LLVM ends the program when a request for memory is refused, cannot be interrupted and is counted
 * nowhere. In a child process none of this is the host's: the child is limited, killed when the
 * budget of the thread is over, and what it dies of is a status. It gets loop IR as text and gives
 * back object files, which codegen/object.c loads. This process never opens libLLVM then. */
#pragma once

#include <sys/types.h>

#include "codegen/llvm/backend.h"
#include "ir/reason.h"

/* Zeroed: none runs. One thread at a time. */
typedef struct kiln__process {
  pid_t pid;   /* 0: none runs */
  pid_t owner; /* that started it: a fork of the host's has none */
  int handle;  /* pidfd; -1: the system has none */
  int socket;
} kiln__process;

/* What kiln__llvm_backend_compile does, in the process, which is started if none runs; `text` is of
 * the loop IR. `memory`: bytes that the process may take beyond what it starts with (0: no limit).
 * KILN_LIMIT and KILN_CANCELLED are of the thread's budget. The process has ended after a failure.
 */
kiln_status *kiln__process_compile(kiln__process *process, const kiln_env *env, uint64_t memory,
                                   kiln_str text, const char *name, kiln__llvm_product product,
                                   kiln_reason *out_reason, void **out_bytes,
                                   size_t *out_size) KILN_MUST_USE;
void kiln__process_end(kiln__process *process);
