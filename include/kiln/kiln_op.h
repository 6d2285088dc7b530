/* kiln_op.h: operators of the host's own, for models that call them (PyTorch's torch.ops.ns.name).
 *
 * An operator is a schema in PyTorch's form, a kernel, and optionally a shape function. It is
 * registered with a context, and models that are loaded afterwards find it: calls are resolved
 * against the schema as PyTorch does, with defaults, keywords and several overloads of a name,
 * tried in the order of their registration. The interpreter, the profiler and the compiler treat it
 * as they treat Kiln's own, but for one thing: it is never part of a fused group.
 *
 *   static kiln_status *relu_cap(void *user, kiln_op_call *call) {
 *     const kiln_value *x = kiln_op_argument(call, 0);
 *     void *out;
 *     kiln_status *status = kiln_op_result_tensor(call, 0, KILN_DTYPE_F32, kiln_value_rank(x),
 *                                                 kiln_value_sizes(x), &out);
 *     if (status) return status;
 *     ...
 *   }
 *   kiln_op_spec spec = {.struct_size = sizeof spec,
 *                        .schema = "mine::relu_cap(Tensor x, float cap=6.) -> Tensor",
 *                        .kernel = relu_cap, .flags = KILN_OP_SPEC_PURE};
 *   status = kiln_op_register(context, &spec);
 *
 * Ownership, errors, threads and strings are as kiln.h says, and as said below. */
#ifndef KILN_KILN_OP_H
#define KILN_KILN_OP_H

#include "kiln/kiln.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One run of a kernel, and one question to a shape function. They belong to the callback's thread
 * and live until it returns. */
typedef struct kiln_op_call kiln_op_call;
typedef struct kiln_op_shape kiln_op_shape;

/* -- Registering -- */

/* Computes the results from the arguments. NULL when it is fine, else a status, which Kiln takes:
 * one of kiln_op_error, or of a function of Kiln that failed. The call of the model then fails with
 * it, and with the place in the model's source. Codes other than UNSUPPORTED, LIMIT, OUT_OF_MEMORY,
 * RAISED and INTERNAL are reported as KILN_OP_ERROR.
 * It may be called by several threads at once. It may use the whole API, but not call an instance
 * that it is called from, nor, where it is pure, any instance of that model (it may be run while
 * the model is being compiled). It must return: no longjmp, no C++ exception through it. */
typedef kiln_status *(*kiln_op_kernel_fn)(void *user, kiln_op_call *call);

/* Says what tensors the kernel would make, from what is known of the arguments: 1 when it called
 * kiln_op_shape_set, 0 when it cannot tell. It must be a function of what it asks alone, agree with
 * the kernel (each run is checked: KILN_OP_ERROR), and with more known never say something else. It
 * may be called by several threads at once, and calls no function but those of "Shapes" below. */
typedef int (*kiln_op_shape_fn)(void *user, kiln_op_shape *shape);

enum {
  /* The kernel does nothing but make its results and write the arguments that the schema marks as
   * written. Calls whose results nobody uses are removed, equal ones merged, those of constants
   * done once. Without it every call of the model is one call of the kernel, in the model's order.
   */
  KILN_OP_SPEC_PURE = 1,
  /* Equal arguments may give different results (random numbers, time): calls are not merged. */
  KILN_OP_SPEC_NONDETERMINISTIC = 2,
};

typedef struct kiln_op_spec {
  size_t struct_size; /* sizeof(kiln_op_spec) */
  /* "mine::scale.Tensor(Tensor x, Tensor by, *, float[] bias=[], int? axis=None) -> (Tensor, int)":
   * what torch.library's define takes, with the namespace. Alias marks are believed: an argument
   * that is written is marked, Tensor(a!) or Tensor(a!)[], and a result that shares memory with an
   * argument bears its mark. At most 64 arguments and 8 results; no type variables, no "...". */
  const char *schema;
  kiln_op_kernel_fn kernel;
  kiln_op_shape_fn shape; /* may be NULL */
  uint32_t flags;         /* KILN_OP_SPEC_* */
  void *user;             /* for the callbacks */
  /* Called once, when the context has gone with everything made from it; may be NULL. `user` holds
   * no handle of Kiln's, or the context would never go. */
  void (*destroy_user)(void *user);
} kiln_op_spec;

/* Registers an operator; `spec` and its strings are copied. It may be called at any time and from
 * any thread; models that are loaded already do not change. An operator cannot be taken back.
 * KILN_INVALID_ARGUMENT, and destroy_user is not called: a schema that does not parse or asks for
 * what is excluded above, a default of the wrong type, an overload that is registered already, a
 * name of Kiln's own operators, and the namespaces aten and prim: what PyTorch defines is not for a
 * host to change. */
KILN_API kiln_status *kiln_op_register(kiln_context *context, const kiln_op_spec *spec);
/* The schema of registered operator `index`, in order of registration; NULL beyond the last.
 * Borrowed until the context is released. */
KILN_API const char *kiln_op_registered(const kiln_context *context, int index);

/* A status for a kernel to return, made as printf would. Never NULL. */
KILN_API kiln_status *kiln_op_error(kiln_code code, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 2, 3)))
#endif
    ;

/* -- Inside a kernel -- */

/* The operator's context, borrowed, for the makers of kiln.h. */
KILN_API kiln_context *kiln_op_context(const kiln_op_call *call);
/* Arguments in the schema's order, defaults filled in, of the schema's types: `float` is a float,
 * `Tensor?` a tensor or None, int[2] a list. NULL beyond the last. Borrowed until the kernel
 * returns; kiln_value_share makes a handle that lasts. */
KILN_API const kiln_value *kiln_op_argument(const kiln_op_call *call, int index);
/* The first element, for writing, of a tensor that the schema marks as written: argument `index`,
 * or its element `element` where it is a list (-1: it is none). Strides are kiln_value_strides.
 * What kiln_value_data gave before for any tensor on this memory is stale after it. NULL address
 * where the tensor has no elements. KILN_OP_ERROR: no such tensor, or not marked. */
KILN_API kiln_status *kiln_op_writable(kiln_op_call *call, int index, int element, void **out_data);

/* Makes result `index` a new CPU tensor, row-major and 64-byte aligned, and gives its memory, which
 * is not initialised, for the kernel to fill before it returns. */
KILN_API kiln_status *kiln_op_result_tensor(kiln_op_call *call, int index, kiln_dtype dtype,
                                            int rank, const int64_t *sizes, void **out_data);
/* Makes result `index` the value (borrowed), which must fit the schema; an int is taken for a
 * float. A tensor or container that somebody else holds too, an argument for one, is copied, unless
 * the schema's marks say that the result shares it; a tensor of which the shape function told is
 * made row-major. A result that is set twice is the last one. */
KILN_API kiln_status *kiln_op_set_result(kiln_op_call *call, int index, const kiln_value *value);
/* A result that is not set is None; one that is marked as written, Tensor(a!), is the argument. */

/* KILN_LIMIT when the model's call has used up its limits; `work` is added to its operations. For
 * kernels that run long. */
KILN_API kiln_status *kiln_op_check(kiln_op_call *call, uint64_t work);

/* -- Shapes -- */

/* A size that is not known is negative. KILN_OP_SIZE_UNKNOWN says no more; another negative number
 * stands for one unknown size, and may be copied to results that have the same. */
#define KILN_OP_SIZE_UNKNOWN ((int64_t)-1)
enum { KILN_OP_MAX_RANK = 64 };

typedef struct kiln_op_tensor_info {
  kiln_dtype dtype; /* KILN_DTYPE_NONE: not known */
  int rank;         /* -1: not known */
  int64_t sizes[KILN_OP_MAX_RANK];
} kiln_op_tensor_info;

/* `element`: of a list argument, from 0; -1: the argument itself. Each returns 1 when it is a
 * tensor (an int or bool, a float or int) of which something is known, else 0. */
KILN_API int kiln_op_shape_tensor_sized(const kiln_op_shape *shape, int argument, int element,
                                        kiln_op_tensor_info *out_info, size_t struct_size);
KILN_API int kiln_op_shape_tensor(const kiln_op_shape *shape, int argument, int element,
                                  kiln_op_tensor_info *out_info);
#define kiln_op_shape_tensor(shape, argument, element, out) \
  kiln_op_shape_tensor_sized(shape, argument, element, out, sizeof(kiln_op_tensor_info))
KILN_API int kiln_op_shape_int(const kiln_op_shape *shape, int argument, int element,
                               int64_t *out_value);
KILN_API int kiln_op_shape_float(const kiln_op_shape *shape, int argument, int element,
                                 double *out_value);
/* Elements of a list argument; -1 when they are not known. */
KILN_API int kiln_op_shape_count(const kiln_op_shape *shape, int argument);
/* Whether the argument is None: 1, 0, or -1 when that is not known. */
KILN_API int kiln_op_shape_is_none(const kiln_op_shape *shape, int argument);
/* Result `index` will be a tensor like that: row-major, unless it is marked as sharing memory. */
KILN_API void kiln_op_shape_set(kiln_op_shape *shape, int index, kiln_dtype dtype, int rank,
                                const int64_t *sizes);

#ifdef __cplusplus
}
#endif

#endif
