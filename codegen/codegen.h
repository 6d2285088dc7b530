/* codegen.h: from a group's graph to a kernel that runs.
 *
 * Three entries: kiln_codegen_lower (a group's graph to loop IR), kiln_loop_pass_* in
 * codegen/loop/loop.h (its passes), kiln_codegen_compile (loop IR to a kernel, or a reason).
 * A kiln_codegen belongs to a context and is thread-safe: threads compile at the same time.
 * libLLVM is opened by the first compilation that needs it, and not before: in this process, or
 * with the flag compile_process in one of its own (codegen/process.h). */
#pragma once

#include "base/env.h"
#include "codegen/loop/loop.h"
#include "ir/ir.h"
#include "ir/reason.h"

typedef struct kiln_codegen kiln_codegen;

typedef enum kiln_backend { KILN_BACKEND_LLVM, KILN_BACKEND_EVAL } kiln_backend; /* as the flag */

/* A compiled kernel, reference counted (atomic); its code pages go with the last reference. */
typedef struct kiln_compiled {
  kiln_kernel_fn fn;
  const void *closure; /* for kiln_kernel_args */
  kiln_kernel_info info;
  kiln_backend backend;
  kiln_digest digest; /* of the canonical loop IR, whatever its schedule */
  int64_t compile_ns;
  size_t code_bytes;  /* mapped for it, or of the program */
  bool is_found;      /* in a file: nobody has compiled it in this process */
  const void *object; /* the object file; NULL from the evaluator */
  size_t object_bytes;
} kiln_compiled;

/* -- From graphs -- */

/* Whether the operator has a LOWER column (its in-place and out= variants have none). */
bool kiln_codegen_has_lowering(const kiln_op *op);
/* Whether it makes its elements of numbers and places alone. */
bool kiln_codegen_is_new(const kiln_op *op);
/* Whether this node, with the types that its values have, can be part of a group; none: it can. */
kiln_reason kiln_codegen_can_lower(const kiln_node *node);
/* What contractions multiply f32 in; as the flag matmul. */
typedef enum kiln_factor_type { KILN_FACTORS_F32, KILN_FACTORS_BF16 } kiln_factor_type;
/* Whether a group can compute the outputs from the inputs: all its nodes together. */
kiln_reason kiln_codegen_can_lower_values(kiln_ir_value *const *inputs, int input_count,
                                          kiln_ir_value *const *outputs, int output_count,
                                          kiln_factor_type factors, kiln_mem *mem);
/* The same of a whole group. */
kiln_reason kiln_codegen_can_lower_group(const kiln_graph *body, kiln_factor_type factors,
                                         kiln_mem *mem);
/* What loop IR lacks for it (its column LACKS), or none. */
kiln_reason kiln_codegen_lacks(const kiln_op *op);
/* Whether its lowering is a contraction. */
bool kiln_codegen_contracts(const kiln_op *op);
/* The factors of a product, and which dimensions of the first are summed over, a bit each; false:
 * it is a convolution, attention, or ranks are not known. */
typedef struct kiln_factors {
  kiln_ir_value *values[2];
  uint64_t summed;
} kiln_factors;
bool kiln_codegen_factors(const kiln_node *node, kiln_factors *out);
/* Whether that is a convolution: its image, its weights, its bias. */
bool kiln_codegen_convolves(const kiln_op *op);
/* What the windows of a convolution go over, and the zeros that stand around it beyond those of its
 * padding: of conv(pad(x, [0, 1, 0, 1])), x, and a row and a column behind it. They are added to
 * `before` and `after` ([3], zeros at first, by dimension of the window). */
const kiln_ir_value *kiln_codegen_image(const kiln_node *node, kiln_arena *scratch, int64_t *before,
                                        int64_t *after);
/* Whether it is x[:, 48:96] of images, by constants: channels, from *out_begin on. */
bool kiln_codegen_cuts_channels(const kiln_node *node, int64_t *out_begin);
/* Whether its lowering reduces dimensions of the first input, and which: a bit each. */
bool kiln_codegen_reduces(const kiln_node *node, uint64_t *out_mask);
/* An output that is written where most of it lies already: of
 *   y1 = slice_scatter(y, conv(x), 1, 48, 96)
 * the kernel computes `part`, conv(x), and stores it in channels 48 to 95 of y's own memory.
 * `whole` is the group's input y, which nothing else in it reads; or NULL, where y is
 * new_empty(..): the first of those that write it. False: the output is computed as a whole. */
typedef struct kiln_place {
  const kiln_ir_value *part, *whole;
  int dim;
  int64_t begin;
} kiln_place;
bool kiln_codegen_place(const kiln_graph *graph, int output, kiln_place *out);
/* A group's graph as loop IR, optimised and verified, in `arena`. All
 * tensors have complete types. Buffers are the tensor inputs in order, then the outputs, or their
 * parts; scalars are the int, float and bool inputs in order. On failure *out_reason says why. */
kiln_status *kiln_codegen_lower(const kiln_graph *graph, kiln_factor_type factors,
                                kiln_arena *arena, kiln_reason *out_reason,
                                kiln_loop_fn **out_fn) KILN_MUST_USE;

/* -- Schedules that are found by measuring (the flag autotune; codegen/tune.h) -- */

/* Of a kernel of LLVM's. */
typedef struct kiln_tuned {
  bool is_known; /* there was a search, in this process or another; else the rules' serves */
  int tried;     /* schedules */
  int64_t rule_ns, best_ns; /* a call with the rules' schedule, and with the one that serves; they
                             * are alike where the rules' was the best */
} kiln_tuned;

/* Before the kernel is compiled: looks for what was found, and with `search`, where the flag says
 * so, searches, which takes up to seconds: kernels are compiled and run. `symbols`: sizes that it
 * is measured at; NULL: it has none, or they are not known, and nothing is searched. Gives the
 * nanoseconds that it took, by which the deadline of the thread's budget is moved. What fails, the
 * rules' schedule serves. */
uint64_t kiln_codegen_tune(kiln_codegen *codegen, const kiln_loop_fn *fn, const int64_t *symbols,
                           bool search);
/* What is known of the kernel whose canonical loop IR has that digest. */
kiln_tuned kiln_codegen_tuned(kiln_codegen *codegen, kiln_digest kernel);

/* -- To kernels -- */

/* `env` is borrowed and outlives the codegen and all its kernels. */
kiln_status *kiln_codegen_create(kiln_env *env, kiln_codegen **out_codegen) KILN_MUST_USE;
void kiln_codegen_destroy(kiln_codegen *codegen);
/* Bytes of the kernels that are kept for whoever asks again; some thread may be at it. */
uint64_t kiln_codegen_kept_bytes(struct kiln_codegen *codegen);
/* Around compilations that belong together: with the flag compile_process they share a process,
 * which may take `memory` bytes (0: no limit) and ends with the last of those that are under way;
 * threads that compile at the same time have one each.
 * NULL is fine. */
void kiln_codegen_begin(kiln_codegen *codegen, uint64_t memory);
void kiln_codegen_end(kiln_codegen *codegen);
/* This thread's exit() waits until no other thread is within LLVM (codegen/llvm/exit.h). */
void kiln_codegen_watch_exit(void);
/* The packed inputs that its kernels keep. */
struct kiln_pack_store *kiln_codegen_packs(const kiln_codegen *codegen);
/* Whether libLLVM was opened in this process; a compilation did it. */
bool kiln_codegen_llvm_is_open(const kiln_codegen *codegen);

/* The kernel of verified loop IR, from the context's cache, where each is compiled once: who asks
 * for one that another thread is compiling waits, and compiles it where the other has failed.
 * *out_made (may be NULL): this call compiled it. On failure *out_reason says it in one word, the
 * status in a sentence; the caller's group then stays with the interpreter. */
kiln_status *kiln_codegen_compile(kiln_codegen *codegen, const kiln_loop_fn *fn,
                                  kiln_backend backend, kiln_reason *out_reason,
                                  kiln_compiled **out_code, bool *out_made) KILN_MUST_USE;
/* The same with the schedule that the rules choose, whatever was found. */
kiln_status *kiln_codegen_compile_ruled(kiln_codegen *codegen, const kiln_loop_fn *fn,
                                        kiln_backend backend, kiln_reason *out_reason,
                                        kiln_compiled **out_code, bool *out_made) KILN_MUST_USE;
/* The same, of LLVM, with that schedule, which is legal, instead of the one that the rules choose.
 */
struct kiln_schedule;
kiln_status *kiln_codegen_compile_as(kiln_codegen *codegen, const kiln_loop_fn *fn,
                                     const struct kiln_schedule *schedule, kiln_reason *out_reason,
                                     kiln_compiled **out_code) KILN_MUST_USE;
kiln_compiled *kiln_compiled_retain(kiln_compiled *code);
void kiln_compiled_release(kiln_compiled *code);

/* Machine code that may lie anywhere, at a multiple of 64 bytes: kernels know no address. */
typedef struct kiln_code_image {
  const void *bytes;  /* borrowed from the kernel */
  size_t size, entry; /* of its function */
} kiln_code_image;
/* That of a kernel with an object. */
kiln_code_image kiln_compiled_image(const kiln_compiled *code);

/* Text of a stage, in `arena`: its schedule (schedule.h), LLVM IR after its passes, assembly, or
 * PTX for the GPU that the flag ptx names: kernel_abi.h says how it is launched; a thread's scratch
 * is kiln_loop_info's for one lane. KILN_UNSUPPORTED: there is none of this kernel. */
typedef enum kiln_codegen_stage {
  KILN_STAGE_SCHEDULE,
  KILN_STAGE_LLVM,
  KILN_STAGE_ASM,
  KILN_STAGE_PTX
} kiln_codegen_stage;
kiln_status *kiln_codegen_dump(kiln_codegen *codegen, const kiln_loop_fn *fn,
                               kiln_codegen_stage stage, kiln_arena *arena,
                               kiln_str *out_text) KILN_MUST_USE;
/* The same of a kernel that kiln_codegen_compile_ruled has made. */
kiln_status *kiln_codegen_dump_ruled(kiln_codegen *codegen, const kiln_loop_fn *fn,
                                     kiln_codegen_stage stage, kiln_arena *arena,
                                     kiln_str *out_text) KILN_MUST_USE;
