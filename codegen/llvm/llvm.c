/* llvm.c: opening libLLVM, and surviving its fatal errors. */
#include "codegen/llvm/llvm.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#ifndef KILN_LLVM_LIBDIR
#define KILN_LLVM_LIBDIR "/usr/lib/llvm-19/lib"
#endif

/* Beside the library, or the program, that this code is in; false: nobody knows where. */
static bool find_own(char *path, size_t capacity) {
  Dl_info own;
  if (!dladdr((void *)(uintptr_t)kiln__llvm_open, &own) || !own.dli_fname) return false;
  const char *slash = strrchr(own.dli_fname, '/');
  if (!slash) return false;
  const int len =
      snprintf(path, capacity, "%.*s/libkiln-llvm.so", (int)(slash - own.dli_fname), own.dli_fname);
  return len > 0 && (size_t)len < capacity;
}

/* The loader keeps for each thread what it had to say, until it was asked, and asked again. */
static void forget_errors(void) {
  while (dlerror()) continue;
}

static kiln_status *open_first(const char *path, kiln__llvm *out_llvm) {
  char own[sizeof out_llvm->path];
  const char *const systems[] = {"libLLVM.so.19.1", "libLLVM-19.so.1", "libLLVM-19.so",
                                 KILN_LLVM_LIBDIR "/libLLVM.so.19.1",
                                 KILN_LLVM_LIBDIR "/libLLVM-19.so"};
  const char *names[2 + sizeof systems / sizeof *systems];
  size_t count = 0;
  memset(out_llvm, 0, sizeof *out_llvm);
  if (*path) names[count++] = path;
  if (!*path && find_own(own, sizeof own)) names[count++] = own;
  if (!*path) names[count++] = KILN_LIBDIR "/libkiln-llvm.so";
  for (size_t i = 0; !*path && i < sizeof systems / sizeof *systems; i++)
    names[count++] = systems[i];
  for (size_t i = 0; i < count && !out_llvm->library; i++) {
    out_llvm->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    snprintf(out_llvm->path, sizeof out_llvm->path, "%s", names[i]);
  }
  if (!out_llvm->library)
    return KILN_ERROR(KILN_UNSUPPORTED, "libLLVM 19 (%s) could not be loaded: %s",
                      *path ? path : systems[0], dlerror());
  out_llvm->unloads = dlsym(out_llvm->library, "kiln_llvm_unloads");
  struct {
    const char *name;
    size_t offset;
    bool optional;
  } symbols[] = {
#define KILN_LLVM(name) {"LLVM" #name, offsetof(kiln__llvm, name), false},
#define KILN_LLVM_OPTIONAL(name) {"LLVM" #name, offsetof(kiln__llvm, name), true},
#include "codegen/llvm/llvm_symbols.def"
#undef KILN_LLVM_OPTIONAL
#undef KILN_LLVM
  };
  for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
    void *address = dlsym(out_llvm->library, symbols[i].name);
    if (!address && !symbols[i].optional)
      return KILN_ERROR(KILN_UNSUPPORTED, "%s has no function %s", out_llvm->path, symbols[i].name);
    memcpy((char *)out_llvm + symbols[i].offset, &address, sizeof address);
  }
  unsigned major = 0;
  out_llvm->GetVersion(&major, NULL, NULL);
  if (major != LLVM_VERSION_MAJOR)
    return KILN_ERROR(KILN_UNSUPPORTED, "%s is LLVM %u, not %d", out_llvm->path, major,
                      LLVM_VERSION_MAJOR);
  return NULL;
}

kiln_status *kiln__llvm_open(const char *path, kiln__llvm *out_llvm) {
  kiln_status *status = open_first(path, out_llvm);
  forget_errors();
  return status;
}

bool kiln__llvm_close(kiln__llvm *llvm) {
  void *library = llvm->library;
  llvm->library = NULL;
  if (!library || !llvm->unloads) return false;
  *llvm->unloads = 1;
  dlclose(library);
  library = dlopen(llvm->path, RTLD_NOW | RTLD_NOLOAD);
  forget_errors();
  if (!library) return true;
  *llvm->unloads = 0; /* another context has it */
  dlclose(library);
  return false;
}

#ifdef __SANITIZE_THREAD__
/* Threads meet in libLLVM by atomics that ThreadSanitizer does not see: it was not built for it. */
__attribute__((visibility("default"))) const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void) { return "race:libLLVM\n"; }
#endif

/* -- Fatal errors -- */

/* Where the LLVM calls of this thread go back to. LLVM's handler has no argument for it. */
static _Thread_local jmp_buf *guard_target;
static _Thread_local char guard_message[256];

void kiln__llvm_fatal(const char *reason);
void kiln__llvm_fatal(const char *reason) {
  if (!guard_target) return; /* not ours: LLVM ends the program, as it does without a handler */
  snprintf(guard_message, sizeof guard_message, "%s", reason);
  longjmp(*guard_target, 1);
}

kiln_status *kiln__llvm_protect(void (*body)(void *arg), void *arg, bool *out_fatal) {
  jmp_buf here, *volatile outer = guard_target;
  *out_fatal = false;
  guard_target = &here;
  if (setjmp(here) == 0) {
    body(arg);
    guard_target = outer;
    return NULL;
  }
  guard_target = outer;
  *out_fatal = true;
  return KILN_ERROR(KILN_INTERNAL, "LLVM gave up: %s", guard_message);
}
