/* kernel.h: what an operator runs: a C function over ivalues.
 *
 * A kernel reads its arguments (borrowed; in the schema's order, defaults filled in) and writes its
 * results (owned by the caller). On entry every result is None, with one exception: where the
 * operator is an in-place or out= variant, outs[0] holds a retained reference to the destination
 * tensor, and the kernel writes there instead of making a tensor: one kernel serves `add`, `add_`
 * and `add.out`. On failure the caller releases what outs holds.
 * Errors are KILN_OP_ERROR with PyTorch's message in substance. */
#pragma once

#include "runtime/call.h"
#include "runtime/strides.h"

typedef kiln_status *(*kiln_kernel_body)(kiln_call *call, const kiln_ivalue *args,
                                         kiln_ivalue *outs);

enum { KILN_MAX_OUTS = 8 };

/* What becomes of a first argument that is donated (plan.h), and that nobody else holds: its memory
 * takes the result. */
typedef enum kiln_reuse {
  KILN_REUSE_NONE,
  KILN_REUSE_SELF, /* the result is like it: it may become the destination */
  KILN_REUSE_COPY, /* the destination: it, or else a copy of it */
} kiln_reuse;

/* What an operator does with a nested tensor (runtime/structure.h). */
typedef enum kiln_nested_way {
  KILN_NESTED_unsaid,  /* refuses, unless it looks at no element at all */
  KILN_NESTED_refuses, /* though it looks at no element */
  KILN_NESTED_keeps,   /* runs on the padded elements, whose rows stay as they are */
  KILN_NESTED_knows,   /* its kernel asks */
} kiln_nested_way;

/* What an operator does with a quantised tensor (runtime/quant.h). */
typedef enum kiln_quant_way {
  KILN_QUANT_refuses,
  KILN_QUANT_keeps,    /* its result has the parameters of its first argument */
  KILN_QUANT_moves,    /* the same, of tensors with one scale only */
  KILN_QUANT_knows,    /* it asks for the parameters itself, or looks at no element */
  KILN_QUANT_compares, /* aten::equal */
} kiln_quant_way;

/* One operator as the interpreter sees it. Made by ir's operator registry from the tables. */
typedef struct kiln_kernel {
  const char *name;      /* "aten::add.Tensor" */
  kiln_kernel_body body; /* NULL: missing, reaching it is KILN_MISSING_OP */
  int16_t arg_count;     /* of the schema; -1: variadic */
  int16_t out_count;
  int16_t dest_arg; /* in-place and out= variants: the argument that is the destination; -1 */
  void *user;       /* of a custom operator; of a missing one: a hint (const char *) or NULL */
  kiln_reuse reuse;
  uint32_t refuses; /* bits 1 << dtype of the tensors that it does not take */
  kiln_nested_way nested;
  kiln_quant_way quant;
  kiln_kernel_body sparse; /* runs instead where an argument is sparse; NULL: refuses */
  uint8_t format;          /* kiln_format_from, of results that its body makes row-major */
  uint8_t devices;         /* kinds of devices on which it runs beside the CPU: bits 1 << kind */
} kiln_kernel;

/* KILN_OP_ERROR when an argument is of a dtype that the kernel does not know, or on a device where
 * it does not run. Whoever runs a kernel on values of a model asks first; where no rare dtype was
 * ever made, and nothing but on the CPU, this is a load and a branch. */
kiln_status *kiln__kernel_refuses(const kiln_call *call, const kiln_kernel *kernel,
                                  const kiln_ivalue *args, int count) KILN_MUST_USE;
static inline kiln_status *kiln_kernel_admit(const kiln_call *call, const kiln_kernel *kernel,
                                             const kiln_ivalue *args, int count) {
  if (__builtin_expect(__atomic_load_n(call->facts, __ATOMIC_RELAXED) == 0, 1)) return NULL;
  return kiln__kernel_refuses(call, kernel, args, count);
}

/* Row-major results of the kernel that runs get the format that their arguments say. */
kiln_status *kiln__lay_results(kiln_call *call, kiln_format_from from, const kiln_ivalue *args,
                              kiln_ivalue *outs) KILN_MUST_USE;

/* Runs `body` as a kernel's. While it runs the kernel is the call's: its name serves errors, a
 * variadic one counts its arguments there. Afterwards the call's is the one that was before, so
 * kernels may run kernels: where meshgrid(tensors) is a step of an operator with two arguments, it
 * counts its own. */
static inline kiln_status *kiln_kernel_run_body(kiln_call *call, const kiln_kernel *kernel,
                                                kiln_kernel_body body, const kiln_ivalue *args,
                                                int count, kiln_ivalue *outs) {
  const kiln_kernel *outer = call->kernel;
  const int outer_count = call->arg_count;
  call->kernel = kernel;
  call->arg_count = count;
  kiln_status *status = kiln_kernel_admit(call, kernel, args, count);
  if (!status) status = body(call, args, outs);
  if (!status && kernel->format)
    status = kiln__lay_results(call, (kiln_format_from)kernel->format, args, outs);
  call->kernel = outer;
  call->arg_count = outer_count;
  return status;
}
/* The one way in which a kernel is run. */
static inline kiln_status *kiln_kernel_run(kiln_call *call, const kiln_kernel *kernel,
                                           const kiln_ivalue *args, int count, kiln_ivalue *outs) {
  return kiln_kernel_run_body(call, kernel, kernel->body, args, count, outs);
}
/* Runs a kernel as a step of the one that runs, without a destination; what it complains about is
 * that operator's. A body may also hand its own `args` and `outs` on to another one. */
static inline kiln_status *kiln_kernel_step(kiln_call *call, kiln_kernel_body body,
                                            const kiln_ivalue *args, int count, kiln_ivalue *outs) {
  const kiln_kernel step = {.name = call->kernel ? call->kernel->name : NULL,
                            .body = body,
                            .arg_count = (int16_t)count,
                            .dest_arg = -1};
  return kiln_kernel_run(call, &step, args, count, outs);
}
/* Whether the operator that runs is to write over its first argument. */
static inline bool kiln_kernel_is_in_place(const kiln_call *call) {
  return call->kernel && call->kernel->dest_arg == 0;
}

/* -- Reading arguments. The schema was matched, so a wrong tag is our bug. -- */
static inline kiln_tensor *kiln_arg_tensor(const kiln_ivalue *args, int i) {
  KILN_ASSERT(args[i].tag == KILN_TAG_TENSOR);
  return args[i].u.tensor;
}
/* None is NULL. */
static inline kiln_tensor *kiln_arg_tensor_opt(const kiln_ivalue *args, int i) {
  return args[i].tag == KILN_TAG_TENSOR ? args[i].u.tensor : NULL;
}
static inline int64_t kiln_arg_int(const kiln_ivalue *args, int i) { return args[i].u.i; }
static inline double kiln_arg_float(const kiln_ivalue *args, int i) { return args[i].u.f; }
static inline bool kiln_arg_bool(const kiln_ivalue *args, int i) { return args[i].u.b; }
static inline bool kiln_arg_is_none(const kiln_ivalue *args, int i) {
  return args[i].tag == KILN_TAG_NONE;
}
static inline int64_t kiln_arg_int_or(const kiln_ivalue *args, int i, int64_t fallback) {
  return args[i].tag == KILN_TAG_INT ? args[i].u.i : fallback;
}
/* A Scalar (int, float, bool) as double or int64. */
static inline double kiln_arg_number_f64(const kiln_ivalue *args, int i) {
  return args[i].tag == KILN_TAG_FLOAT  ? args[i].u.f
         : args[i].tag == KILN_TAG_BOOL ? (double)args[i].u.b
                                        : (double)args[i].u.i;
}
static inline int64_t kiln_arg_number_i64(const kiln_ivalue *args, int i) {
  return args[i].tag == KILN_TAG_FLOAT  ? (int64_t)args[i].u.f
         : args[i].tag == KILN_TAG_BOOL ? (int64_t)args[i].u.b
                                        : args[i].u.i;
}
static inline kiln_list *kiln_arg_list(const kiln_ivalue *args, int i) { return args[i].u.list; }
static inline kiln_str kiln_arg_str(const kiln_ivalue *args, int i) {
  return kiln_string_view(args[i].u.string);
}
/* An int[] into a fixed array; KILN_OP_ERROR when it has more than `max` elements. */
kiln_status *kiln_arg_ints(const kiln_ivalue *args, int i, int max, int64_t *out_ints,
                           int *out_count) KILN_MUST_USE;

/* An operator's complaint: KILN_OP_ERROR. */
#define KILN_OP_FAIL(...) KILN_ERROR(KILN_OP_ERROR, __VA_ARGS__)
