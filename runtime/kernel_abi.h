/* kernel_abi.h: how a fused kernel is called. The interpreter calls it, codegen makes it.
 *
 * A kernel is one function for all back ends. It reads everything from the struct: generated code
 * holds no address and calls nothing outside itself. One call covers a box of the kernel's grid,
 * whose three axes are its outermost parallel loops (loop.h); their extents are in
 * kiln_kernel_info. Calls on disjoint boxes may run at the same time on the same args (scratch is
 * then one block for each call). It needs no stack worth mentioning and keeps no state.
 *
 * A kernel can fail in one way: an index that it checks is out of bounds (`can_fault`). It reads
 * nothing out of bounds, goes on, and sets the fault word. None of its outputs is of use then; its
 * inputs are as they were, so that who called it can compute them again and has the complaint.
 *
 * Objects outlive the process that made them, so this page has a version: it is in the name that a
 * kernel's object gives it, and the loader finds no other. Whatever changes here raises it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A Python number given at run time. bool is 0 or 1 in `i`. */
typedef union kiln_kernel_scalar {
  int64_t i;
  double f;
} kiln_kernel_scalar;

/* Kernels are called this and the digest of their loop IR and schedule: 4 is the version. */
#define KILN_KERNEL_SYMBOL "kiln_k4_"
enum { KILN_KERNEL_SYMBOL_BYTES = sizeof KILN_KERNEL_SYMBOL + 32 };

typedef struct kiln_kernel_args {
  void *const *data;                 /* first element of each tensor: inputs, then outputs */
  const kiln_kernel_scalar *scalars; /* in the order of the kernel's scalar inputs */
  const int64_t *symbols;            /* what s0, s1, ... of its dimensions are; NULL: it has none */
  void *scratch;                     /* scratch_bytes, 64-byte aligned; NULL when 0 */
  const void *closure;               /* the group's closure: the evaluator's program, else NULL */
  uint32_t *fault; /* 0; a kernel that can fault makes it 1, several calls at a time */
} kiln_kernel_args;
#ifdef __x86_64__
_Static_assert(offsetof(kiln_kernel_args, data) == 0, "version 4");
_Static_assert(offsetof(kiln_kernel_args, scalars) == 8, "version 4");
_Static_assert(offsetof(kiln_kernel_args, symbols) == 16, "version 4");
_Static_assert(offsetof(kiln_kernel_args, scratch) == 24, "version 4");
_Static_assert(offsetof(kiln_kernel_args, closure) == 32, "version 4");
_Static_assert(offsetof(kiln_kernel_args, fault) == 40, "version 4");
_Static_assert(sizeof(kiln_kernel_args) == 48 && sizeof(kiln_kernel_scalar) == 8, "version 4");
#endif

enum { KILN_KERNEL_AXES = 3 };

/* A box of a kernel's grid: iterations [begin, end) of each axis. A kernel reads the axes that it
 * has; of another one, whose extent is 1, the box holds the iteration 0. */
typedef struct kiln_kernel_box {
  int64_t begin[KILN_KERNEL_AXES], end[KILN_KERNEL_AXES];
} kiln_kernel_box;
_Static_assert(offsetof(kiln_kernel_box, begin) == 0, "version 4");
_Static_assert(offsetof(kiln_kernel_box, end) == 24, "version 4");
_Static_assert(sizeof(kiln_kernel_box) == 48, "version 4");

typedef void (*kiln_kernel_fn)(const kiln_kernel_args *args, const kiln_kernel_box *box);

/* -- On a GPU --
 *
 * A kernel is the one entry of a module of PTX: KILN_GPU_SYMBOL and the digest of its loop IR. Its
 * parameters, 8 bytes each, are in this order
 *   - for each tensor, inputs, then outputs: the address of its first element (global memory);
 *   - for each scalar: a double of f64, else an int64 (of bool 0 or 1);
 *   - for each symbol: an int64;
 *   - where local buffers take more than KILN_GPU_LOCAL_BYTES, or no number of them: the
 *     address of scratch (global memory, 64-byte aligned), scratch_bytes for each thread;
 *   - where the kernel can fault: the address of the fault word (global memory).
 *
 * It is launched with any number of blocks, and of threads in each, along x. Each nest's
 * iterations, of which the last loop's count fastest, go to the threads in turn: thread t of n
 * takes t, t + n, t + 2n, ... */
#define KILN_GPU_SYMBOL "kiln_"
enum {
  KILN_GPU_PARAMETERS = 4352 / 8,  /* at most; others have no PTX */
  KILN_GPU_LOCAL_BYTES = 4096,     /* of local buffers, in the thread's own memory */
  KILN_GPU_STACK_BYTES = 512 << 10 /* with the accumulators; others have no PTX */
};

enum { KILN_KERNEL_DONORS = 4 };

typedef enum kiln_transform {
  KILN_TRANSFORM_NONE,
  KILN_TRANSFORM_WINOGRAD, /* heavy/winograd.h: sizes and strides of outputs, channels, taps */
  KILN_TRANSFORM_GROUPED,  /* heavy/grouped.h: as those, of a group's channels */
  KILN_TRANSFORM_BLOCKED,  /* heavy/blocked.h: of outputs and the depth; sizes[2] is a slice */
} kiln_transform;
enum { KILN_KERNEL_PACK_RANK = 12, KILN_KERNEL_PACK_BEHIND = 128 };

/* An input that the kernel wants in another order, which whoever calls it makes: with 2 loops, of 3
 * and 5 iterations, one of them outside of the panels, and 100 columns in panels of 48, element
 * [a][p][b][c] of the copy, (3, 3, 5, 48), is the input's element at offset + a * strides[0] + b *
 * strides[1] + (48 p + c) * column, and 0 where 48 p + c is 100 or more. All are numbers of
 * elements.
 *
 * Zeros may stand around: in each loop `before` of them, then elements, then `after`. Columns that
 * have such are all in one panel. Behind a copy are bytes that kernels may read, and make nothing
 * of.
 *
 * Elements of f32 may be rounded to bf16 on the way (nearest even), and are f32 still in the copy,
 * or bf16, as its item_size says.
 *
 * Sizes that are known when it is called alone are those of the tensor: loop i goes over its
 * dimension dims[i], columns over dims[rank]. export/structs.c names every field, too. */
typedef struct kiln_kernel_pack {
  int input;
  int item_size;   /* bytes */
  int rank, outer; /* loops; how many of them stand outside of the panels */
  int64_t sizes[KILN_KERNEL_PACK_RANK], strides[KILN_KERNEL_PACK_RANK];
  int64_t before[KILN_KERNEL_PACK_RANK], after[KILN_KERNEL_PACK_RANK];
  int64_t offset, columns, column, panel, columns_before, columns_after;
  bool of_tensor; /* `sizes`, `strides`, `columns`, `column` and `panel` are not there */
  int8_t dims[KILN_KERNEL_PACK_RANK];
  bool as_it_lies; /* the input's elements lie as those of the copy do: where zeros are around them
                      in memory, it is that memory */
  bool rounds;     /* the input's elements are f32, and rounded */
  bool pairs;      /* the last loop has two iterations, which stand beside each other in a column:
                      (.., panel, 2), not (.., 2, panel) */
  bool whole;      /* of all its elements as they lie, without gaps: `columns` and `panel` are to be
                      their number (kiln_pack_of) */
  kiln_transform transform; /* of a weight with `sizes`, `strides` and `offset`, which with the form
                               is all that is said then */
  int form;
} kiln_kernel_pack;

/* What there is to do. */
typedef struct kiln_kernel_work {
  size_t scratch_bytes; /* for each call */
  kiln_kernel_box grid; /* all of it: begin is 0, end the extents, each at least 1 */
  int axes;             /* so many of the outermost are cut among threads, as one range */
  int64_t grain;        /* iterations of the range which are worth a thread */
  double cost;          /* estimated nanoseconds of the grid on one core */
} kiln_kernel_work;

/* What a caller must know of a kernel before it calls it. */
typedef struct kiln_kernel_info {
  int input_count;  /* tensors */
  int output_count; /* tensors; data[input_count + i] is output i, allocated by the caller */
  int scalar_count;
  int symbol_count;
  bool can_fault;                        /* then it has no donors */
  kiln_kernel_work work;                 /* of a kernel without symbols */
  const struct kiln_kernel_shape *shape; /* else what it is made of (kernel_shape.h) */
  /* Donation: the inputs, bits 1 << i, in whose memory each of the first outputs may be written.
   * Such an input has the output's dtype, sizes and strides, and each element of it is read for the
   * last time where that element of the output is written: in relu(x + 1), element k of the result
   * may take the place of x's. */
  uint32_t donors[KILN_KERNEL_DONORS];
  int pack_count;
  const kiln_kernel_pack *packs;
} kiln_kernel_info;
