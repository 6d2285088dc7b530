/* kiln/aot.h: models that `kiln compile` has made into code of a C program.
 *
 *   kiln compile mlp.pt --inputs x.pt -o mlp       mlp/mlp.h, mlp/mlp.o, mlp/mlp.weights
 *   cc main.c mlp/mlp.o -lkiln-aot -lm -lpthread
 *
 * The program needs libkiln-aot.a alone: no libkiln, no LLVM, no archive. mlp.h names what stands
 * here by the model's name; docs/aot.md has the whole of it.
 *
 * Threads. A model may be called by several threads at once; where its code changes attributes,
 * calls go one after the other. A call runs on `threads` threads, its caller included.
 *
 * Errors are those of kiln.h, of which this library has kiln_status_*, kiln_code_name and
 * kiln_dtype_*. */
#ifndef KILN_AOT_H
#define KILN_AOT_H

#include "kiln/kiln.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the object file holds; constant. */
typedef struct kiln_aot_program kiln_aot_program;
/* A program with its weights. */
typedef struct kiln_aot_model kiln_aot_model;

enum { KILN_AOT_RANK = 8 };

/* A tensor of the caller's: its elements lie row by row, without gaps. A number is a tensor without
 * dimensions: rank 0, of KILN_DTYPE_I64, F64 or BOOL.
 *
 * Of an input all is the caller's, and read; like PyTorch, a model that writes to its argument
 * writes to `data`. Of an output `data` and `bytes` say where there is how much room (64-byte
 * aligned is best); the call fills in dtype, rank and sizes, also where the room is too small for
 * it: then it is not written, and the call is KILN_INVALID_ARGUMENT. */
typedef struct kiln_aot_tensor {
  void *data;
  size_t bytes; /* room; of inputs not looked at */
  kiln_dtype dtype;
  int rank;
  int64_t sizes[KILN_AOT_RANK];
} kiln_aot_tensor;

/* Set struct_size to sizeof(kiln_aot_options); NULL is all zero. */
typedef struct kiln_aot_options {
  int threads; /* that one call may use; 0: one */
  size_t struct_size;
} kiln_aot_options;

/* Opens the program with the weights that were written with it. KILN_NOT_FOUND and
 * KILN_INVALID_FILE of the file; KILN_UNSUPPORTED where this processor lacks the instructions that
 * the program is made of. The file is mapped: it must not be changed as long as the model is open.
 */
kiln_status *kiln_aot_open(const kiln_aot_program *program, const char *weights,
                           const kiln_aot_options *options, kiln_aot_model **out_model);
/* The same of weights in memory, 64-byte aligned, which stay the caller's and are only read. */
kiln_status *kiln_aot_open_memory(const kiln_aot_program *program, const void *weights, size_t size,
                                  const kiln_aot_options *options, kiln_aot_model **out_model);
/* No call is under way. NULL is fine. */
void kiln_aot_close(kiln_aot_model *model);

/* Inputs and outputs are as many as the program's header says, in its order. */
kiln_status *kiln_aot_call(kiln_aot_model *model, const kiln_aot_tensor *inputs, int input_count,
                           kiln_aot_tensor *outputs, int output_count);

/* Bytes that the model holds beside its weights' file. */
size_t kiln_aot_bytes(const kiln_aot_model *model);

#ifdef __cplusplus
}
#endif
#endif
