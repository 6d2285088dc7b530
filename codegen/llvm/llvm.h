/* llvm.h: libLLVM as Kiln sees it: a table of functions, opened at run time. For codegen/llvm only.
 *
 * The library is shared with a host that uses the same one, so nothing global in it is changed but
 * the fatal error handler, which only acts inside our own calls. */
#pragma once

#include <llvm-c/Analysis.h>
#include <llvm-c/BitReader.h>
#include <llvm-c/Core.h>
#include <llvm-c/Error.h>
#include <llvm-c/ErrorHandling.h>
#include <llvm-c/Linker.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>

#include "base/env.h"
#include "codegen/loop/loop.h"

typedef struct kiln__llvm {
#define KILN_LLVM(name) __typeof__(&LLVM##name) name;
#define KILN_LLVM_OPTIONAL(name) void (*name)(void);
#include "codegen/llvm/llvm_symbols.def"
#undef KILN_LLVM_OPTIONAL
#undef KILN_LLVM
  void *library;
  char path[512];
  int *unloads; /* of Kiln's own (build-aux/slim_llvm): whether its objects go with it; NULL: it is
                 * the system's, and stays in memory */
} kiln__llvm;

/* Opens libLLVM 19, at `path`, or ("") Kiln's own beside this library, else where systems have it,
 * and finds all functions. KILN_UNSUPPORTED says what was tried. */
kiln_status *kiln__llvm_open(const char *path, kiln__llvm *out_llvm) KILN_MUST_USE;
/* For the last time. True: it is in memory no more, as it unloads and nobody else has it. */
bool kiln__llvm_close(kiln__llvm *llvm);

/* Runs body(arg); a fatal error inside LLVM ends it and gives KILN_INTERNAL (what LLVM had
 * allocated is then lost, and the caller should not use LLVM again). */
kiln_status *kiln__llvm_protect(void (*body)(void *arg), void *arg, bool *out_fatal) KILN_MUST_USE;

/* -- emit.c: from loop IR to a module -- */

typedef struct kiln__llvm_target {
  kiln_isa isa;  /* whose bits its results have: of the form with fma, or of the other */
  int lanes;     /* floats in a vector; 1: values are numbers */
  int registers; /* of vectors */
  bool masks;    /* masked loads and stores are as cheap as others, of all types */
  int masked;    /* bytes of the least element for which there are such; 0: there are none */
  const char *cpu, *features; /* LLVM's names */
  bool gpu;                   /* a thread for each iteration of a nest (emit_gpu.c) */
  bool pairs; /* products of two pairs of bf16 are an instruction (emit_tile_pairs.c) */
} kiln__llvm_target;

extern const kiln__llvm_target kiln__llvm_targets[KILN_ISA__COUNT];
/* In the order of the words of the flag ptx. */
enum { KILN__LLVM_GPUS = 2 };
extern const kiln__llvm_target kiln__llvm_gpus[KILN__LLVM_GPUS];

/* Bytes that emitting it takes: all is at hand before LLVM is called, which may jump out of it. */
size_t kiln__llvm_emit_room(const kiln_loop_flat *kernel);
/* Adds the kernel as function `name` to an empty module. It is verified. Failure is KILN_INTERNAL
 * (an intrinsic that is missing), or KILN_UNSUPPORTED: more than a GPU has. *out_math: whether
 * functions of runtime/math are called. */
kiln_status *kiln__llvm_emit(const kiln__llvm *llvm, LLVMContextRef context, LLVMModuleRef module,
                             const kiln_loop_flat *kernel, const kiln__llvm_target *target,
                             const char *name, void *room, bool *out_math) KILN_MUST_USE;
