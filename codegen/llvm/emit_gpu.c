/* emit_gpu.c: a GPU's function and nests: loop IR to LLVM IR for threads.
 *
 * Each parallel iteration of a nest is one thread's, which runs the body with all its loops in
 * turn. Values are numbers: bodies, values and accumulators are those of the other targets
 * (emit_tree.c, emit_ops.c) with vectors of one element, so that the bits are the same. Threads
 * share nothing. What is reduced has its KILN_REDUCE_LANES accumulators in the thread's own memory,
 * for it is the order of the additions that makes the result. */
#include "codegen/llvm/emit_state.h"

enum {
  GLOBAL_MEMORY = 1, /* LLVM's number of the address space */
  KERNEL_CONVENTION = 71
};

/* -- Parameters -- */

static int tensor_count(const kiln_loop_fn *fn) { return fn->input_count + fn->output_count; }
static int symbol_count(const kiln_loop_flat *kernel) {
  return kernel->values ? kernel->values->symbol_count : 0;
}
/* Of all local buffers of a thread. */
static kiln_dim local_bytes(const kiln_loop_flat *kernel) {
  return kernel->places[kernel->fn->buffers.count - tensor_count(kernel->fn)];
}
static bool needs_scratch(const kiln_loop_flat *kernel) {
  const kiln_dim bytes = local_bytes(kernel);
  return !kiln_dim_is_number(bytes) || bytes > KILN_GPU_LOCAL_BYTES;
}

kiln_status *kiln__llvm_gpu_fits(const kiln_loop_flat *kernel) {
  const int64_t count = (int64_t)tensor_count(kernel->fn) + kernel->fn->scalars.count +
                        symbol_count(kernel) + needs_scratch(kernel) +
                        kiln_loop_can_fault(kernel->fn);
  if (count > KILN_GPU_PARAMETERS)
    return KILN_ERROR(KILN_UNSUPPORTED, "the kernel takes %lld parameters, a GPU's has %d",
                      (long long)count, KILN_GPU_PARAMETERS);
  if (!kiln_dim_is_known(local_bytes(kernel)))
    return KILN_ERROR(KILN_UNSUPPORTED, "the kernel's local buffers are too much to work out");
  return NULL;
}

static int parameter_types(const kiln__llvm_emitter *e, LLVMTypeRef *out_types) {
  const kiln_loop_fn *fn = e->fn;
  LLVMTypeRef pointer = LL->PointerTypeInContext(e->context, GLOBAL_MEMORY);
  int count = 0;
  for (int i = 0; i < tensor_count(fn); i++) out_types[count++] = pointer;
  for (int i = 0; i < fn->scalars.count; i++)
    out_types[count++] = kiln__llvm_emit_argument_type(e, fn->scalars.data[i]);
  for (int i = 0; i < symbol_count(e->kernel); i++) out_types[count++] = e->i64;
  if (needs_scratch(e->kernel)) out_types[count++] = pointer;
  if (kiln_loop_can_fault(fn)) out_types[count++] = pointer;
  return count;
}

/* -- Threads -- */

static LLVMValueRef special_register(kiln__llvm_emitter *e, const char *name) {
  LLVMValueRef none = LL->ConstNull(e->i32);
  LLVMValueRef value = kiln__llvm_emit_intrinsic(e, name, NULL, 0, &none, 0);
  return LL->BuildCast(BUILD, LLVMZExt, value, e->i64, "");
}

typedef struct threads {
  LLVMValueRef self, count; /* its number; of the launch */
} threads;

static threads emit_threads(kiln__llvm_emitter *e) {
  LLVMValueRef block = special_register(e, "llvm.nvvm.read.ptx.sreg.ctaid.x");
  LLVMValueRef blocks = special_register(e, "llvm.nvvm.read.ptx.sreg.nctaid.x");
  LLVMValueRef in_block = special_register(e, "llvm.nvvm.read.ptx.sreg.tid.x");
  LLVMValueRef each = special_register(e, "llvm.nvvm.read.ptx.sreg.ntid.x");
  return (threads){binary(e, LLVMAdd, binary(e, LLVMMul, block, each), in_block),
                   binary(e, LLVMMul, blocks, each)};
}

static void take_parameters(kiln__llvm_emitter *e, const threads *t) {
  const kiln_loop_fn *fn = e->fn;
  unsigned next = 0;
  for (int i = 0; i < tensor_count(fn); i++) e->data[i] = LL->GetParam(e->function, next++);
  for (int i = 0; i < fn->scalars.count; i++) e->scalars[i] = LL->GetParam(e->function, next++);
  for (int i = 0; i < symbol_count(e->kernel); i++) e->steps[i] = LL->GetParam(e->function, next++);
  kiln__llvm_emit_steps(e);
  if (needs_scratch(e->kernel)) {
    LLVMValueRef bytes = kiln__llvm_emit_dim(e, local_bytes(e->kernel));
    LLVMValueRef own = binary(e, LLVMMul, t->self, bytes);
    LLVMValueRef scratch = LL->GetParam(e->function, next++);
    kiln__llvm_emit_locals(e, LL->BuildGEP2(BUILD, e->i8, scratch, &own, 1, ""));
  } else if (fn->buffers.count > tensor_count(fn)) {
    kiln__llvm_emit_locals(e, kiln__llvm_emit_stack(e, KILN_DTYPE_U8, local_bytes(e->kernel)));
  }
  if (kiln_loop_can_fault(fn)) e->fault = LL->GetParam(e->function, next);
}

/* -- Nests -- */

/* Iteration `number` of the nest, whose last loop counts fastest. */
static void place_counters(const kiln__llvm_emitter *e, nest_state *s, LLVMValueRef number) {
  for (int d = s->rank - 1; d > 0; d--) {
    LLVMValueRef extent = kiln__llvm_emit_dim(e, s->extents[d]);
    s->counters[d] = binary(e, LLVMURem, number, extent);
    number = binary(e, LLVMUDiv, number, extent);
  }
  s->counters[0] = number;
}

static void emit_nest(kiln__llvm_emitter *e, const kiln_loop_nest *nest, const threads *t) {
  nest_state state = {.rank = nest->rank, .count = nest->body.count}, *s = &state;
  LLVMValueRef size = kiln__llvm_emit_index(e, 1);
  for (int d = 0; d < nest->rank; d++) {
    s->extents[d] = nest->extents[d];
    size = binary(e, LLVMMul, size, kiln__llvm_emit_dim(e, nest->extents[d]));
  }
  s->levels = e->levels;
  e->nest = nest;
  kiln_loop_levels(nest, s->levels);
  LLVMBasicBlockRef behind = begin_if(e, LL->BuildICmp(BUILD, LLVMIntSLT, t->self, size, ""));
  loop l = loop_begin(e, t->self);
  place_counters(e, s, l.counter);
  for (int level = 0; level < s->rank; level++) kiln__llvm_emit_level(e, s, level);
  kiln__llvm_emit_iteration(e, s);
  loop_end_by(e, l, t->count, size);
  end_if(e, behind);
}

void kiln__llvm_emit_gpu(kiln__llvm_emitter *e, const char *name) {
  LLVMTypeRef params[KILN_GPU_PARAMETERS];
  const int count = parameter_types(e, params);
  e->width = e->target->lanes;
  kiln__llvm_emit_begin(e, name, params, count);
  LL->SetFunctionCallConv(e->function, KERNEL_CONVENTION);
  const threads t = emit_threads(e);
  take_parameters(e, &t);
  for (int n = 0; n < e->fn->nests.count; n++) emit_nest(e, e->fn->nests.data[n], &t);
}
