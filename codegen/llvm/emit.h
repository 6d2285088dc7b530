/* emit.h: what the parts of the emitter share (emit.c: the function, nests without loops in their
 * bodies; emit_tree.c: those with loops; emit_reduce.c: what they reduce; emit_tile.c: those with a
 * tile; emit_gpu.c: both of a GPU; emit_ops.c: values). */
#pragma once

#include "codegen/llvm/llvm.h"

typedef struct kiln__llvm_emitter {
  const kiln__llvm *ll;
  LLVMContextRef context;
  LLVMModuleRef module;
  LLVMBuilderRef builder;
  LLVMValueRef function;
  const kiln_loop_flat *kernel;
  const kiln_loop_fn *fn; /* of it */
  LLVMValueRef *steps;    /* of its program: the values, i64 */
  const kiln__llvm_target *target;
  LLVMTypeRef i1, i8, i32, i64, ptr;
  LLVMValueRef *data;    /* first element of each buffer */
  LLVMValueRef *scalars; /* i64 or double */
  LLVMValueRef fault;    /* the address of the fault word; of a kernel that can fault */
  int axes;              /* of the kernel's grid */
  LLVMValueRef begin[KILN_KERNEL_AXES], end[KILN_KERNEL_AXES]; /* of the box */
  LLVMBasicBlockRef entry; /* allocas; ends with a branch to `start` when all is emitted */
  LLVMBasicBlockRef start;
  bool math;
  const char *missing; /* an intrinsic that LLVM does not have */
  size_t stack_bytes;  /* of all allocas for numbers and vectors */
  /* Of the nest at work: */
  const kiln_loop_nest *nest;
  int width;            /* elements of a vector */
  LLVMValueRef *values; /* of its instructions: vectors of `width` */
  LLVMValueRef *tables; /* of what is the same in all rows: its memory, else NULL */
  struct access *accesses;
  int *levels, *same;
  /* Of its loops (emit_tree.c): accumulators in memory and, for short bodies, others; places. */
  LLVMValueRef *reductions, *fast, *places;
  kiln_loop_scopes scopes;
  /* Of a tile (emit_tile.c), for each of its rows and vectors: values; addresses and accumulators.
   */
  LLVMValueRef *tile_values, *tile_places;
  int *tile_moves;
} kiln__llvm_emitter;
/* Of an emitter `e`. */
#define LL e->ll
#define BUILD e->builder

/* The type of one element in registers (bool is i1; f16 and bf16 are i16) and in memory. */
LLVMTypeRef kiln__llvm_emit_scalar_type(const kiln__llvm_emitter *e, kiln_dtype dtype);
LLVMTypeRef kiln__llvm_emit_memory_type(const kiln__llvm_emitter *e, kiln_dtype dtype);
/* `width` elements; one is no vector. */
LLVMTypeRef kiln__llvm_emit_vector_of(const kiln__llvm_emitter *e, LLVMTypeRef scalar);
LLVMTypeRef kiln__llvm_emit_vector_type(const kiln__llvm_emitter *e, kiln_dtype dtype);
LLVMValueRef kiln__llvm_emit_splat(const kiln__llvm_emitter *e, LLVMValueRef scalar, int width);
LLVMValueRef kiln__llvm_emit_index(const kiln__llvm_emitter *e, int64_t value);
/* The function, and the builder in its first block. */
void kiln__llvm_emit_begin(kiln__llvm_emitter *e, const char *name, LLVMTypeRef *params, int count);
/* The type of a scalar as it is handed over. */
LLVMTypeRef kiln__llvm_emit_argument_type(const kiln__llvm_emitter *e, kiln_dtype dtype);
/* What the program makes of the symbols, which are its first values. */
void kiln__llvm_emit_steps(const kiln__llvm_emitter *e);
/* Local buffers lie behind each other in scratch memory. */
void kiln__llvm_emit_locals(const kiln__llvm_emitter *e, LLVMValueRef scratch);
/* A dimension of the kernel, i64. */
LLVMValueRef kiln__llvm_emit_dim(const kiln__llvm_emitter *e, kiln_dim d);
/* 0, 1, … width - 1 as a vector of i32. */
LLVMValueRef kiln__llvm_emit_iota(const kiln__llvm_emitter *e, int first, int width);
/* Calls an intrinsic that is overloaded on `types`. */
LLVMValueRef kiln__llvm_emit_intrinsic(kiln__llvm_emitter *e, const char *name, LLVMTypeRef *types,
                                       int type_count, LLVMValueRef *args, int arg_count);
/* The first `left` lanes of a vector: i1 in each lane. */
LLVMValueRef kiln__llvm_emit_mask(const kiln__llvm_emitter *e, LLVMValueRef left);
/* The branch at the end of a loop from `first` to `last`: LLVM is told how often it goes back,
 * where that is known. It guesses 31 times else, and takes loops of 3 that hold others for busier
 * than one of 768: then accumulators are spilled for what only their end needs. */
void kiln__llvm_emit_turns(const kiln__llvm_emitter *e, LLVMValueRef branch, LLVMValueRef first,
                           LLVMValueRef step, LLVMValueRef last);
/* What an opcode of rule REDUCE makes of two values (of dot: their sum). */
LLVMValueRef kiln__llvm_emit_join(kiln__llvm_emitter *e, kiln_loop_opcode op, kiln_dtype dtype,
                                  LLVMValueRef a, LLVMValueRef b);
/* Any instruction but load and store: its value as a vector. */
LLVMValueRef kiln__llvm_emit_value(kiln__llvm_emitter *e, const kiln_loop_inst *inst);
