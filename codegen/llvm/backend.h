/* backend.h: the LLVM back end without LLVM's types. For codegen/ only. Where Kiln is built without
 * LLVM's headers or clang, missing.c refuses with the reason. */
#pragma once

#include "base/env.h"
#include "codegen/loop/loop.h"

typedef struct kiln__llvm_backend kiln__llvm_backend;

typedef enum kiln__llvm_product {
  KILN__LLVM_OBJECT,
  KILN__LLVM_ASM,
  KILN__LLVM_IR,  /* after the passes */
  KILN__LLVM_PTX, /* for the GPU that the flag ptx names */
} kiln__llvm_product;
/* For which a kernel's local buffers are placed (kiln_loop_flatten). */
static inline int kiln__llvm_width(kiln__llvm_product product) {
  return product == KILN__LLVM_PTX ? 1 : KILN_LOOP_LANES;
}

/* Opens libLLVM and makes the target; one thread at a time. KILN_UNSUPPORTED where there is none.
 * *broken (borrowed) becomes true when LLVM ends in a fatal error: then none that shares it calls
 * LLVM again. */
kiln_status *kiln__llvm_backend_create(kiln_env *env, kiln_isa isa, bool *broken,
                                       kiln__llvm_backend **out_backend) KILN_MUST_USE;
void kiln__llvm_backend_destroy(kiln__llvm_backend *backend);
/* Whether it takes its library along, if it was the last. False for NULL. */
bool kiln__llvm_backend_unloads(const kiln__llvm_backend *backend);
/* One thread at a time, another backend's at the same. The product's bytes are from env->mem,
 * *out_size of them (text is not terminated). KILN_INTERNAL when LLVM refuses; KILN_UNSUPPORTED
 * where there is no PTX, of this libLLVM or of this kernel. */
kiln_status *kiln__llvm_backend_compile(kiln__llvm_backend *backend, const kiln_loop_flat *kernel,
                                        const char *name, kiln__llvm_product product,
                                        void **out_bytes, size_t *out_size) KILN_MUST_USE;
