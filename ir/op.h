/* op.h: operators: schemas, the tables, the registry.
 *
 * ir/ops/<family>.def, gathered by ir/ops.def in registration order (which is the order of overload
 * resolution), is the one place to add an operator. Columns are keyed; each layer defines its own
 * columns and the others as nothing (ir/ops_columns.h):
 *   KILN_OP(id, "schema", columns), or a macro of ir/ops.def that makes such rows:
 *   ATEN(relu, "(Tensor self) -> Tensor", columns)
 *   OVERLOAD(add, Tensor, "(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", columns)
 *     SHAPE(fn)    kiln__shape_fn: types of the results from those of the arguments
 *     KERNEL(fn)   kiln__kernel_fn: what the interpreter runs (runtime/kernels)
 *     LOWER(fn)    kiln__lower_fn: to loop IR (codegen); LOWER_EACH where it has several results,
 *                  LOWER_ROWS(fn, dims) where it reduces: all dimensions, named or last ones,
 *                  LOWER_NEW where it makes its elements of numbers and places alone
 *     LACKS(form)  the reason why there is none of these: what loop IR lacks for it
 *     APART(fn)    kiln__apart_fn: takes it apart, so that its parts are lowered
 *     COST(class)  free, view, metadata, pointwise, reduction, heavy, data
 *     FLOPS(fn)    kiln__flops_fn: floating-point operations of a heavy operator (ir/cost.c)
 *     FLAGS(a | b) KILN_OP_* below
 *     DIMS(n)      windows, strides and padding are over the last n dimensions
 *     RESULT(kind) dtype of a reduction's result: wide, truth, index (kiln_op_result)
 *     SIZES(from)  what else than its types a result's sizes come from: data, masks (kiln_op_sizes)
 *     RAISES(arg)  index of the argument whose elements, or number, may be such that it raises
 *                  although types are right, such as a place that is out of bounds
 *     WRITES_STATS(mean, variance, training)  indices: both arguments are written, unless the third
 *                  is False, which PyTorch's schema does not say
 *     DTYPES(any)  its kernel takes tensors of every dtype, the rare ones too (KILN_RARE_DTYPES);
 *                  without it, that is so for views and metadata only
 *     FORMAT(from) self, image, signal, convolution: KERNEL and SHAPE make row-major results, which
 *                  then get channels last where arguments suggest that (kiln_format_from)
 *     DEVICES(any) its kernel looks at no element, so it runs wherever its tensors are; without it,
 *                  on the CPU (runtime/device.h)
 *     SPARSE(fn)   kiln__kernel_fn: runs where an argument is a sparse tensor; absent: refuses
 *     NESTED(way)  refuses, keeps, knows: what it does with a nested tensor (kiln_nested_way)
 *     QUANT(way)   keeps, moves, knows, compares: what it does with a quantised tensor, which it
 *                  refuses without (kiln_quant_way)
 *     VARIANTS(inplace, out)  makes `add_` and `add.out` with derived schemas; every operator that
 *                  is written in place also gets its functional form, `kiln::add_`
 * A name without parentheses is a structural operator (prim::If): no schema, any arguments.
 * Built-in and custom operators live in one registry, owned by a context; a node points to a
 * `const kiln_op *`. */
#pragma once

#include "runtime/kernel.h"

typedef struct kiln_op kiln_op;
typedef struct kiln_registry kiln_registry;
typedef struct kiln_node kiln_node;

/* -- Schemas -- */

/* Alias annotation of a schema: (a), (a!), (a|b), (a -> *). Sets are bits: 'a' is bit 0. */
typedef struct kiln_alias_info {
  bool present;
  bool is_write;
  uint32_t sets;  /* before the call; wildcard: KILN_ALIAS_WILDCARD */
  uint32_t after; /* after it, for (a -> *) */
} kiln_alias_info;
#define KILN_ALIAS_WILDCARD 0x80000000u

typedef struct kiln_schema_arg {
  kiln_str name; /* "" for unnamed results */
  const kiln_type *type;
  int fixed_count; /* N of int[N]; 0: none */
  bool kwarg_only;
  bool has_default;
  kiln_ivalue default_value; /* owned by the schema's owner */
  kiln_alias_info alias;
  kiln_alias_info elem_alias; /* of list elements: Tensor(a!)[] */
} kiln_schema_arg;

typedef struct kiln_schema {
  kiln_str name;     /* "aten::add", or a function's qualified name */
  kiln_str overload; /* "Tensor", or "" */
  int arg_count, result_count;
  kiln_schema_arg *args, *results;
  bool is_vararg, is_varret;
} kiln_schema;

/* Parses "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor" into `arena`;
 * types are made in `types`. Also accepts PyTorch's SymInt, ScalarType, Layout, MemoryFormat
 * (ints), Dimname and Generator. */
kiln_status *kiln_schema_parse(kiln_arena *arena, kiln_type_table *types, const char *text,
                               kiln_schema **out_schema) KILN_MUST_USE;
/* The type that a single word means in a schema, or in an annotation of source; NULL: none. */
const kiln_type *kiln_type_of_word(kiln_str word, bool source);
void kiln_schema_print(kiln_text *text, const kiln_schema *schema);
/* An argument, or what it holds, is written. */
bool kiln_schema_writes(const kiln_schema *schema);
/* Releases default values. */
void kiln_schema_deinit(kiln_schema *schema);

/* -- Operators -- */

typedef enum kiln_op_id {
#define KILN_OP(id, schema, ...) KILN_OP_##id,
#include "ir/ops.def"
#undef KILN_OP
  KILN_OP__BUILTIN_COUNT,
  KILN_OP__CUSTOM /* every registered custom operator */
} kiln_op_id;

typedef enum kiln_op_variant {
  KILN_VARIANT_NONE,
  KILN_VARIANT_INPLACE,
  KILN_VARIANT_OUT,
  KILN_VARIANT_COPY, /* kiln::add_: what add_ would make of self, in new memory */
  KILN_VARIANT__COUNT
} kiln_op_variant;

enum {
  KILN_OP_SIDE_EFFECT = 1,      /* never removed, folded, merged or reordered with its like */
  KILN_OP_NONDETERMINISTIC = 2, /* not folded or merged */
  KILN_OP_PROFILED = 4,         /* tensor inputs are profiled (of pointwise ones, views: always) */
  KILN_OP_NO_FOLD = 8,          /* constant propagation leaves it alone */
  KILN_OP_QUANTISED = 16,       /* makes quantised tensors, or asks about them (runtime/quant.h) */
  KILN_OP_HAS_VARIANT_INPLACE = 32,
  KILN_OP_HAS_VARIANT_OUT = 64,
  KILN_OP_WRITES = 128,    /* set by the registry: an argument of the schema is written */
  KILN_OP_SAME_TYPE = 256, /* the result has the dtype and sizes of the first argument, or the
                              operator and its form in place both refuse the arguments */
  KILN_OP_MAY_RETURN_ARG =
      512, /* the result may be the first argument, though the schema does not say so */
  KILN_OP_STRUCTURES = 1024,    /* makes sparse or nested tensors (runtime/structure.h) */
  KILN_OP_UNINITIALISED = 2048, /* what a result holds is not said; any other operator's result
                                   depends on its arguments alone (test/differential/trial.c) */
  KILN_OP_GATHERS = 4096,       /* it reads its first argument at places that the next tensor has */
  KILN_OP_WINDOWS = 8192,   /* its elements are of windows of its first argument, which overlap */
  KILN_OP_FUNCTION = 16384, /* pointwise, and each element takes as long as many products do: exp */
  KILN_OP_ANY_LAYOUT = 32768, /* its results do not tell how its first argument lies in memory,
                                 and it is as fast where that has channels last */
};

typedef enum kiln_op_cost {
  KILN_COST_none,      /* not said */
  KILN_COST_free,      /* structure: no work at run time */
  KILN_COST_metadata,  /* size, dim, dtype; scalar arithmetic */
  KILN_COST_view,      /* result shares the argument's storage */
  KILN_COST_pointwise, /* one result element from one element of each argument */
  KILN_COST_reduction,
  KILN_COST_heavy, /* matmul, convolution */
  KILN_COST_data,  /* copies, factories, indexing */
} kiln_op_cost;

/* The dtype of a reduction's result, where it is not the argument's. */
typedef enum kiln_op_result {
  KILN_RESULT_same,
  KILN_RESULT_wide,  /* int64 of integers and bool; else the argument's */
  KILN_RESULT_truth, /* uint8 of uint8, else bool */
  KILN_RESULT_index, /* int64 */
  KILN_RESULT_real,  /* the argument's, of complex numbers that of their parts */
} kiln_op_result;

/* What says the sizes of the results, beside types and constants. */
typedef enum kiln_op_sizes {
  KILN_SIZES_types, /* nothing */
  KILN_SIZES_data,  /* elements of the arguments */
  KILN_SIZES_masks, /* elements, where a tensor in the list of its second argument is a mask */
} kiln_op_sizes;

/* Which arguments a norm writes; all 0: none. */
typedef struct kiln_op_stats {
  uint8_t mean, variance;
  uint8_t training; /* False: it writes none */
} kiln_op_stats;

/* What the formula of a heavy operator says; false: the node's types do not tell. */
typedef bool (*kiln_flops_fn)(const kiln_node *node, uint64_t *out_flops);

struct kiln_shape_query;
/* Fills query->outs; false: not known. */
typedef bool (*kiln_shape_fn)(struct kiln_shape_query *query);

struct kiln_op {
  int id; /* kiln_op_id; variants have their base's */
  kiln_op_variant variant;
  kiln_str name;             /* "aten::add" */
  kiln_str full_name;        /* "aten::add.Tensor" */
  const char *text;          /* as the table has it */
  const kiln_schema *schema; /* NULL: structural */
  kiln_kernel kernel;
  kiln_shape_fn shape;
  kiln_flops_fn flops; /* NULL: no formula */
  uint32_t flags;
  kiln_op_cost cost;
  kiln_op_result result;
  kiln_op_sizes sizes;
  kiln_op_stats stats;
  uint8_t raises; /* the argument's index + 1; 0: none */
  uint8_t dims;   /* 0: not said */
};

/* Its own form, or one in place made functional: kiln::add_. */
static inline bool kiln_op_is_functional(const kiln_op *op) {
  return op->variant == KILN_VARIANT_NONE || op->variant == KILN_VARIANT_COPY;
}
/* Its first argument is over the memory of its second from then on, which no schema can say. */
static inline bool kiln_op_joins_memory(const kiln_op *op) {
  return op->id == KILN_OP_set__source_Tensor ||
         op->id == KILN_OP_set__source_Tensor_storage_offset;
}

/* -- Registry -- */

/* All operators of one name, in registration order. */
typedef struct kiln_op_set {
  kiln_str name;
  int count, capacity;
  const kiln_op **ops;
} kiln_op_set;

/* Reads the names of the tables; `env` is borrowed. Lookups, from any thread, parse what nobody has
 * asked for: they are made in a scope, which fails where there is no memory; a fault in a table is
 * KILN_INTERNAL. What they find lives as long as the registry. */
kiln_status *kiln_registry_create(kiln_env *env, kiln_registry **out_registry) KILN_MUST_USE;
void kiln_registry_destroy(kiln_registry *registry);
/* The context's root table: all types that name no class. */
kiln_type_table *kiln_registry_types(const kiln_registry *registry);
/* NULL when no operator has that name ("aten::add"). */
const kiln_op_set *kiln_registry_find(const kiln_registry *registry, kiln_str name);
/* What a linker knows the function of an operator's kernel as, behind "kiln__kernel_"; NULL: it is
 * none of the tables. */
const char *kiln_registry_kernel_name(const kiln_registry *registry, const kiln_kernel *kernel);
/* By full name ("aten::add.Tensor", "prim::If"); NULL when absent. */
const kiln_op *kiln_registry_find_exact(const kiln_registry *registry, kiln_str full_name);
/* A built-in one, never NULL. */
const kiln_op *kiln_registry_op(const kiln_registry *registry, kiln_op_id id);
const kiln_op *kiln_registry_variant(const kiln_registry *registry, kiln_op_id id,
                                     kiln_op_variant variant);
/* All operators in order, variants after their base, custom ones last: all are parsed. */
int kiln_registry_count(const kiln_registry *registry);
const kiln_op *kiln_registry_at(const kiln_registry *registry, int index);

/* A custom operator: its schema's text and its columns. */
typedef struct kiln_op_def {
  const char *text;
  kiln_kernel_body body; /* finds `user` in call->kernel */
  kiln_shape_fn shape;   /* NULL: none; finds `user` in query->op->kernel */
  uint32_t flags;
  kiln_op_cost cost;
  void *user;
  void (*destroy)(void *user); /* called when the registry goes; NULL: nothing to do */
} kiln_op_def;
/* Adds an operator that no table has, at any time and from any thread: lookups that begin later
 * find it. KILN_INVALID_ARGUMENT for a bad schema, a name of the tables, of aten or prim, or an
 * overload that is there; then `user` is not destroyed. `text` is copied. *out_op is set before
 * anybody can find the operator. */
kiln_status *kiln_registry_add(kiln_registry *registry, const kiln_op_def *def,
                               const kiln_op **out_op) KILN_MUST_USE;
/* Custom operators in the order of their registration; NULL beyond the last. */
const kiln_op *kiln_registry_custom_at(const kiln_registry *registry, int index);

/* -- Shape functions -- */

/* A list argument whose elements are known one by one: a constant list, or what a
 * prim::ListConstruct gathers. */
typedef struct kiln_shape_list {
  int count;
  const kiln_tensor_detail *const *tensors; /* of tensors: NULL where nothing is known; else NULL */
  const int64_t *ints;                      /* of ints; else NULL */
  const bool *known;    /* [count]: of ints: it is a constant; of tensors: None */
  const kiln_dim *dims; /* of ints: what it is as a size, proved to be 0 or more; else unknown */
} kiln_shape_list;

/* A query: what a node's results would be, given what is known of its inputs. Not only for nodes:
 * the arguments are given as types and constants. */
typedef struct kiln_shape_query {
  kiln_arena *arena; /* for sizes and strides of the answer */
  kiln_dims *dims;   /* of all their expressions */
  const kiln_op *op;
  int arg_count;
  const kiln_type *const *types;          /* of the arguments, tensor details left aside */
  const kiln_tensor_detail *const *args;  /* NULL where not a tensor, or nothing is known */
  const kiln_ivalue *const *constants;    /* NULL where not a constant */
  const kiln_shape_list *const *lists;    /* NULL where not a list, or nothing is known of it */
  const kiln_dim *sizes;                  /* of ints: expressions that they are, else unknown */
  int out_count;                          /* results of the node: chunk and split need it */
  kiln_tensor_detail outs[KILN_MAX_OUTS]; /* KILN_TENSOR_DETAIL_ANY on entry */
  /* Of an operator whose result is one list of tensors (chunk, split): what its elements are. */
  const kiln_tensor_detail *elems;
  int elem_count;
} kiln_shape_query;

/* Asks the shape function of query->op, which has one; results then get the operator's format. */
bool kiln_shape_run(kiln_shape_query *query);

/* For shape functions above this layer: result `index` is a tensor of that dtype (NONE: not known)
 * and rank (-1: not known), on the device of the arguments, with row-major strides or unknown ones.
 */
void kiln_shape_answer(kiln_shape_query *query, int index, kiln_dtype dtype, int rank,
                       const int64_t *sizes, bool row_major);
