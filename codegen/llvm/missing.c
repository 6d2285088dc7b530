/* missing.c: stands for the LLVM back end where Kiln is built without it. */
#include "codegen/llvm/backend.h"

kiln_status *kiln__llvm_backend_create(kiln_env *env, kiln_isa isa, bool *broken,
                                       kiln__llvm_backend **out_backend) {
  (void)env, (void)isa, (void)broken;
  *out_backend = NULL;
  return KILN_ERROR(KILN_UNSUPPORTED, "this build has no LLVM back end (LLVM 19's headers or "
                                      "clang 19 were missing)");
}
void kiln__llvm_backend_destroy(kiln__llvm_backend *backend) { (void)backend; }
bool kiln__llvm_backend_unloads(const kiln__llvm_backend *backend) {
  (void)backend;
  return false;
}
kiln_status *kiln__llvm_backend_compile(kiln__llvm_backend *backend, const kiln_loop_flat *kernel,
                                        const char *name, kiln__llvm_product product,
                                        void **out_bytes, size_t *out_size) {
  (void)backend, (void)kernel, (void)name, (void)product, (void)out_bytes, (void)out_size;
  return KILN_ERROR(KILN_INTERNAL, "the LLVM back end was used without being there");
}
