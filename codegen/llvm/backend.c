/* backend.c: compiles one kernel: emit, link the math, a short pipeline, an object.
 *
 * Each kernel has an LLVMContext of its own, which bounds memory. Only trivial passes run: the IR
 * is already what should be executed (5 ms of O2 would buy nothing). The object is
 * position-independent code in the small model, so that it needs no GOT and any address does. */
#include "codegen/llvm/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/job_lock.h"
#include "base/job_queue.h"
#include "codegen/llvm/exit.h"
#include "codegen/llvm/interleave.h"
#include "codegen/llvm/llvm.h"
#include "codegen/llvm/math_bitcode.h"

static const char passes[] = "always-inline,globaldce,function(sroa,early-cse)";

/* What code is generated for. */
typedef struct machine {
  const kiln__llvm_target *target;
  const char *triple;
  LLVMRelocMode relocations;
  LLVMCodeModel model;
  LLVMTargetMachineRef llvm; /* NULL: not made yet */
  LLVMTargetDataRef layout;
} machine;

struct kiln__llvm_backend {
  const char *path; /* of libLLVM, borrowed from env; "": the system's */
  kiln_mem *mem;
  kiln__llvm llvm;
  machine cpu, gpu;
  bool *broken; /* atomic, of all that call LLVM: after a fatal error it is not called again */
};

/* -- Room --
 *
 * LLVM ends the program where a request for memory is refused. What it will take is therefore asked
 * for, and given back, before it is called: no promise, for other threads may take it meanwhile
 * (the flag compile_process is one), but what is exhausted for longer is noticed here. */

/* What was measured, and half as much again: libLLVM 19 maps 190 MB, 7 MB of them writable at
 * first; a kernel takes 1 MB, 3 KB for an operation and 80 KB for a function of runtime/math, which
 * is inlined. Of malloc less is asked than it maps by itself: giving such a block back changes its
 * settings. */
enum {
  LIBRARY_ADDRESSES = 224 << 20,
  LIBRARY_BYTES = 16 << 20,
  KERNEL_BYTES = 4 << 20,
  INST_BYTES = 4 << 10,
  MATH_BYTES = 128 << 10,
  MALLOC_BYTES = 64 << 10,
};

static kiln_status *ask_room(size_t addresses, size_t bytes) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
  void *unused = addresses ? mmap(NULL, addresses, PROT_NONE, flags, -1, 0) : NULL;
  void *room = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  void *volatile block = malloc(MALLOC_BYTES);
  const bool fits = unused != MAP_FAILED && room != MAP_FAILED && block;
  free(block);
  if (room != MAP_FAILED) munmap(room, bytes);
  if (addresses && unused != MAP_FAILED) munmap(unused, addresses);
  return fits ? NULL : kiln_status_oom();
}

static kiln_status *ask_room_for(const kiln_loop_fn *fn) {
  size_t bytes = KERNEL_BYTES;
  for (int n = 0; n < fn->nests.count; n++) {
    const kiln_loop_nest *nest = fn->nests.data[n];
    for (int i = 0; i < nest->body.count; i++) {
      bytes += kiln_loop_is_math(nest->body.data[i].op) ? MATH_BYTES : INST_BYTES;
    }
  }
  return ask_room(0, bytes);
}

/* One compilation: what it owns, and its result. */
typedef struct job {
  kiln__llvm_backend *backend;
  machine *machine;
  const kiln_loop_flat *kernel;
  const char *name;
  kiln__llvm_product product;
  void *room; /* to emit in */
  LLVMContextRef context;
  LLVMModuleRef module;
  LLVMMemoryBufferRef object;
  char *text;
  kiln_status *status;
  char diagnosis[256];
} job;

/* Keeps LLVM's complaints from stderr. */
static void on_diagnostic(LLVMDiagnosticInfoRef info, void *user) {
  job *j = user;
  const kiln__llvm *ll = &j->backend->llvm;
  if (ll->GetDiagInfoSeverity(info) != LLVMDSError) return;
  char *text = ll->GetDiagInfoDescription(info);
  snprintf(j->diagnosis, sizeof j->diagnosis, "%s", text);
  ll->DisposeMessage(text);
}

static void on_yield(LLVMContextRef context, void *user) {
  (void)context, (void)user;
  kiln__llvm_watch_exit();
  kiln_job_breathe();
}

static kiln_status *failed(const job *j, char *message, const char *what) {
  const kiln__llvm *ll = &j->backend->llvm;
  kiln_status *status =
      KILN_ERROR(KILN_INTERNAL, "LLVM, %s: %s", what, message ? message : j->diagnosis);
  if (message) ll->DisposeMessage(message);
  return status;
}

/* -- Steps -- */

typedef struct bitcode {
  const unsigned char *bytes;
  const size_t *size;
} bitcode;

static bitcode bitcode_for(const kiln__llvm_target *target) {
  static const bitcode of_cpu[KILN_ISA__COUNT] = {
      [KILN_ISA_V2] = {kiln__math_bitcode_v2, &kiln__math_bitcode_v2_size},
      [KILN_ISA_AVX2] = {kiln__math_bitcode_avx2, &kiln__math_bitcode_avx2_size},
      [KILN_ISA_AVX512] = {kiln__math_bitcode_avx512, &kiln__math_bitcode_avx512_size},
  };
  if (target->gpu) return (bitcode){kiln__math_bitcode_nvptx, &kiln__math_bitcode_nvptx_size};
  return of_cpu[target->isa];
}

static kiln_status *link_math(job *j) {
  const kiln__llvm *ll = &j->backend->llvm;
  const bitcode code = bitcode_for(j->machine->target);
  LLVMModuleRef math;
  /* Read lazily: the module takes the buffer, and only what is used is parsed. */
  LLVMMemoryBufferRef buffer =
      ll->CreateMemoryBufferWithMemoryRange((const char *)code.bytes, *code.size, "math", 0);
  if (ll->GetBitcodeModuleInContext2(j->context, buffer, &math)) {
    ll->DisposeMemoryBuffer(buffer);
    return failed(j, NULL, "reading the math library");
  }
  ll->SetTarget(math, j->machine->triple);
  ll->SetModuleDataLayout(math, j->machine->layout);
  if (ll->LinkModules2(j->module, math)) return failed(j, NULL, "linking the math library");
  kiln__llvm_interleave(ll, j->context, ll->GetNamedFunction(j->module, j->name));
  return NULL;
}

static kiln_status *run_passes(job *j) {
  const kiln__llvm *ll = &j->backend->llvm;
  LLVMPassBuilderOptionsRef options = ll->CreatePassBuilderOptions();
  LLVMErrorRef error = ll->RunPasses(j->module, passes, j->machine->llvm, options);
  ll->DisposePassBuilderOptions(options);
  if (!error) return NULL;
  char *message = ll->GetErrorMessage(error);
  kiln_status *status = KILN_ERROR(KILN_INTERNAL, "LLVM, passes: %s", message);
  ll->DisposeErrorMessage(message);
  return status;
}

/* LLVM's list of targets is the process's, and has no lock. Two contexts that open LLVM at the same
 * moment meet here: the first registers, once for a libLLVM, and both look their target up. */
static kiln_job_lock registering = {.mutex = PTHREAD_MUTEX_INITIALIZER};
static const void *registered[2]; /* under it: the library that has the target, of CPUs and GPUs */

static void register_cpu(const kiln__llvm *ll) {
  ll->InitializeX86TargetInfo();
  ll->InitializeX86Target();
  ll->InitializeX86TargetMC();
  ll->InitializeX86AsmPrinter();
}
static void register_gpu(const kiln__llvm *ll) {
  if (!ll->InitializeNVPTXTargetInfo || !ll->InitializeNVPTXTarget ||
      !ll->InitializeNVPTXTargetMC || !ll->InitializeNVPTXAsmPrinter)
    return; /* no target answers to the triple */
  ll->InitializeNVPTXTargetInfo();
  ll->InitializeNVPTXTarget();
  ll->InitializeNVPTXTargetMC();
  ll->InitializeNVPTXAsmPrinter();
}

static kiln_status *find_target(const kiln__llvm *ll, const machine *m, LLVMTargetRef *out_target) {
  const bool gpu = m->target->gpu;
  char *message = NULL;
  KILN_TRY(kiln_job_lock_take(&registering, kiln_budget_current()));
  if (registered[gpu] != ll->library) (gpu ? register_gpu : register_cpu)(ll);
  registered[gpu] = ll->library;
  const bool missing = ll->GetTargetFromTriple(m->triple, out_target, &message);
  kiln_job_lock_give(&registering);
  if (!missing) return NULL;
  kiln_status *status = KILN_ERROR(KILN_UNSUPPORTED, "%s: %s", ll->path, message);
  ll->DisposeMessage(message);
  return status;
}

/* Another library may come to lie where it lay. A thread of a fork's parent may have the lock: then
 * the library stays. */
static void close_library(kiln__llvm *ll) {
  if (!ll->unloads || !kiln_job_lock_look(&registering)) return;
  const void *library = ll->library;
  const bool gone = kiln__llvm_close(ll);
  for (int i = 0; gone && i < 2; i++)
    if (registered[i] == library) registered[i] = NULL;
  kiln_job_lock_give(&registering);
}

static kiln_status *make_machine(const kiln__llvm *ll, machine *m) {
  LLVMTargetRef target;
  if (m->llvm) return NULL;
  KILN_TRY(find_target(ll, m, &target));
  m->llvm = ll->CreateTargetMachine(target, m->triple, m->target->cpu, m->target->features,
                                    LLVMCodeGenLevelDefault, m->relocations, m->model);
  if (!m->llvm)
    return KILN_ERROR(KILN_UNSUPPORTED, "%s has no target for %s", ll->path, m->target->cpu);
  m->layout = ll->CreateTargetDataLayout(m->llvm);
  return NULL;
}

static kiln_status *compile(job *j) {
  const kiln__llvm *ll = &j->backend->llvm;
  bool math = false;
  char *message = NULL;
  KILN_TRY(make_machine(ll, j->machine));
  j->context = ll->ContextCreate();
  ll->ContextSetYieldCallback(j->context, on_yield, NULL); /* before passes of machine code */
  ll->ContextSetDiagnosticHandler(j->context, on_diagnostic, j);
  j->module = ll->ModuleCreateWithNameInContext("kiln", j->context);
  ll->SetTarget(j->module, j->machine->triple);
  ll->SetModuleDataLayout(j->module, j->machine->layout);
  KILN_TRY(kiln__llvm_emit(ll, j->context, j->module, j->kernel, j->machine->target, j->name,
                           j->room, &math));
  if (ll->VerifyModule(j->module, LLVMReturnStatusAction, &message))
    return failed(j, message, "verifying");
  ll->DisposeMessage(message);
  if (math) KILN_TRY(link_math(j));
  KILN_TRY(run_passes(j));
  if (j->product == KILN__LLVM_IR) {
    j->text = ll->PrintModuleToString(j->module);
    return NULL;
  }
  message = NULL;
  LLVMCodeGenFileType type = j->product == KILN__LLVM_OBJECT ? LLVMObjectFile : LLVMAssemblyFile;
  if (ll->TargetMachineEmitToMemoryBuffer(j->machine->llvm, j->module, type, &message, &j->object))
    return failed(j, message, "emitting");
  return NULL;
}

static void compile_protected(void *arg) {
  job *j = arg;
  j->status = compile(j);
}

static bool is_broken(const kiln__llvm_backend *backend) {
  return __atomic_load_n(backend->broken, __ATOMIC_RELAXED);
}

static kiln_status *take_result(const job *j, void **out_bytes, size_t *out_size) {
  const kiln__llvm *ll = &j->backend->llvm;
  const char *bytes = j->text ? j->text : ll->GetBufferStart(j->object);
  size_t size = j->text ? strlen(j->text) : ll->GetBufferSize(j->object);
  *out_bytes = kiln_mem_alloc(j->backend->mem, size);
  if (!*out_bytes) return kiln_status_oom();
  memcpy(*out_bytes, bytes, size);
  *out_size = size;
  return NULL;
}

static kiln_status *compile_kernel(kiln__llvm_backend *backend, const kiln_loop_flat *kernel,
                                   const char *name, kiln__llvm_product product, void **out_bytes,
                                   size_t *out_size) {
  bool fatal = false;
  if (is_broken(backend)) {
    return KILN_ERROR(KILN_UNSUPPORTED, "LLVM is not used after a fatal error");
  }
  KILN_TRY(ask_room_for(kernel->fn));
  job j = {.backend = backend, .kernel = kernel, .name = name, .product = product};
  j.machine = product == KILN__LLVM_PTX ? &backend->gpu : &backend->cpu;
  const kiln__llvm *ll = &backend->llvm;
  const size_t room = kiln__llvm_emit_room(kernel);
  j.room = kiln_mem_alloc(backend->mem, room);
  if (!j.room) return kiln_status_oom();
  kiln_status *status = kiln__llvm_protect(compile_protected, &j, &fatal);
  if (fatal) __atomic_store_n(backend->broken, true, __ATOMIC_RELAXED);
  if (!status) status = j.status;
  if (!status) status = take_result(&j, out_bytes, out_size);
  if (!is_broken(backend)) { /* after a fatal error nothing of LLVM's is safe to touch */
    if (j.object) ll->DisposeMemoryBuffer(j.object);
    if (j.text) ll->DisposeMessage(j.text);
    if (j.module) ll->DisposeModule(j.module);
    if (j.context) ll->ContextDispose(j.context);
  }
  kiln_mem_free(backend->mem, j.room, room);
  return status;
}

static kiln_status *process_ends(void) { return KILN_ERROR(KILN_CANCELLED, "the process ends"); }

kiln_status *kiln__llvm_backend_compile(kiln__llvm_backend *backend, const kiln_loop_flat *kernel,
                                        const char *name, kiln__llvm_product product,
                                        void **out_bytes, size_t *out_size) {
  if (!kiln__llvm_enter()) return process_ends();
  kiln_status *status = compile_kernel(backend, kernel, name, product, out_bytes, out_size);
  kiln__llvm_watch_exit();
  kiln__llvm_leave();
  return status;
}

/* -- Life -- */

void kiln__llvm_fatal(const char *reason);

static kiln_status *open_targets(kiln__llvm_backend *b) {
  kiln__llvm *ll = &b->llvm;
  KILN_TRY(ask_room(LIBRARY_ADDRESSES, LIBRARY_BYTES));
  KILN_TRY(kiln__llvm_open(b->path, ll));
  kiln__llvm_watch_exit();
  ll->InstallFatalErrorHandler(kiln__llvm_fatal);
  return make_machine(ll, &b->cpu);
}

static void end_machine(const kiln__llvm *ll, machine *m) {
  if (m->layout) ll->DisposeTargetData(m->layout);
  if (m->llvm) ll->DisposeTargetMachine(m->llvm);
}

kiln_status *kiln__llvm_backend_create(kiln_env *env, kiln_isa isa, bool *broken,
                                       kiln__llvm_backend **out_backend) {
  kiln__llvm_backend *b = kiln_mem_alloc_zero(env->mem, sizeof *b);
  if (!b) return kiln_status_oom();
  b->mem = env->mem;
  b->broken = broken;
  b->cpu = (machine){.target = &kiln__llvm_targets[isa],
                     .triple = "x86_64-unknown-linux-gnu",
                     .relocations = LLVMRelocPIC,
                     .model = LLVMCodeModelSmall};
  b->gpu = (machine){.target = &kiln__llvm_gpus[env->flags.ptx], .triple = "nvptx64-nvidia-cuda"};
  b->path = env->flags.llvm.text;
  kiln_status *status = kiln__llvm_enter() ? NULL : process_ends();
  if (!status) {
    status = open_targets(b);
    kiln__llvm_leave();
  }
  if (status) {
    kiln__llvm_backend_destroy(b);
    return status;
  }
  *out_backend = b;
  return NULL;
}

bool kiln__llvm_backend_unloads(const kiln__llvm_backend *backend) {
  return backend && backend->llvm.unloads && !is_broken(backend);
}

void kiln__llvm_backend_destroy(kiln__llvm_backend *backend) {
  if (!backend) return;
  if (!is_broken(backend) && kiln__llvm_enter()) {
    end_machine(&backend->llvm, &backend->cpu);
    end_machine(&backend->llvm, &backend->gpu);
    close_library(&backend->llvm);
    kiln__llvm_leave();
  }
  kiln_mem_free(backend->mem, backend, sizeof *backend);
}
