/* type.h: TorchScript types, interned and compared by address.
 *
 * They live below the IR because values carry them too: a list its element type, an object its
 * class, `isinstance` a list of types. The printer's syntax is that of the IR ("int[]",
 * "Dict(str, Tensor)", "Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)"); see
 * reference: PyTorch's jit_type.h and irparser.
 *
 * Tables. A kiln_type_table owns types in an arena and may have a parent; looking a type up walks
 * the parents first. A composite type is put into the deepest table that one of its parts lives
 * in, so types without classes and tensor details end up in the context's root table, those that
 * name a model's classes in the model's, and profiled tensor types in the graph's own. Tables are
 * thread-safe. Making a type allocates from the table's arena: inside a scope (base/scope.h). */
#pragma once

#include "runtime/dim.h"
#include "runtime/dtype.h"

typedef struct kiln_type kiln_type;
typedef struct kiln_type_table kiln_type_table;

typedef enum kiln_type_kind {
  KILN_TYPE_TENSOR, /* with or without details */
  KILN_TYPE_INT,
  KILN_TYPE_FLOAT,
  KILN_TYPE_BOOL,
  KILN_TYPE_COMPLEX,
  KILN_TYPE_NUMBER, /* Scalar: int, float or complex */
  KILN_TYPE_STR,
  KILN_TYPE_NONE,   /* NoneType */
  KILN_TYPE_DEVICE, /* Device */
  KILN_TYPE_GENERATOR,
  KILN_TYPE_STREAM,
  KILN_TYPE_STORAGE,
  KILN_TYPE_QSCHEME,
  KILN_TYPE_ANY,
  KILN_TYPE_ANY_LIST,  /* in schemas and isinstance: list */
  KILN_TYPE_ANY_TUPLE, /* tuple */
  KILN_TYPE_ANY_CLASS,
  KILN_TYPE_ANY_ENUM,
  KILN_TYPE_FUNCTION, /* a function constant */
  KILN_TYPE_CAPSULE,
  KILN_TYPE_LIST,     /* elems[0] */
  KILN_TYPE_OPTIONAL, /* elems[0], never NoneType or Optional */
  KILN_TYPE_FUTURE,   /* elems[0] */
  KILN_TYPE_AWAIT,    /* elems[0] */
  KILN_TYPE_RREF,     /* elems[0] */
  KILN_TYPE_DICT,     /* elems[0] key, elems[1] value */
  KILN_TYPE_TUPLE,    /* elems; with names it is a NamedTuple */
  KILN_TYPE_UNION,    /* elems, sorted, more than one after None and Optional are resolved */
  KILN_TYPE_CLASS,    /* modules and script classes */
  KILN_TYPE_INTERFACE,
  KILN_TYPE_ENUM,
  KILN_TYPE_VAR, /* a type variable of a schema: "t", "tVal" */
} kiln_type_kind;

/* How a value lies in memory between groups of an optimised graph, apart from its strides, which
 * are those that PyTorch would give it: STRIDED as they say; ROWS row by row, whatever they say;
 * CHANNELS_LAST with dimension 1 as the innermost, for dimensions 0, 2, 3 .., 1. Nothing but
 * groups, what turns one into another and operators of KILN_OP_ANY_LAYOUT may see another layout
 * than STRIDED. */
typedef enum kiln_physical {
  KILN_PHYSICAL_STRIDED,
  KILN_PHYSICAL_ROWS,
  KILN_PHYSICAL_CHANNELS_LAST,
  /* The same, of images in memory that has zeros around them, one pixel wide, or two
     (runtime/border.h). */
  KILN_PHYSICAL_BORDER_1,
  KILN_PHYSICAL_BORDER_2,
  KILN_PHYSICAL__COUNT,
} kiln_physical;
static inline bool kiln_physical_is_channels_last(int physical) {
  return physical >= KILN_PHYSICAL_CHANNELS_LAST;
}
/* How wide the zeros are. */
static inline int kiln_physical_border(int physical) {
  return physical > KILN_PHYSICAL_CHANNELS_LAST ? physical - KILN_PHYSICAL_CHANNELS_LAST : 0;
}
const char *kiln_physical_name(int physical);
/* Its dimensions from the outermost in memory to the innermost. */
void kiln_physical_order(kiln_physical physical, int rank, int *out_order);
/* Strides of a tensor that lies so. */
void kiln_physical_strides(kiln_physical physical, int rank, const int64_t *sizes,
                           int64_t *out_strides);
/* The same of symbols, which are of that table. */
void kiln_physical_dims(kiln_dims *dims, kiln_physical physical, int rank, const kiln_dim *sizes,
                        kiln_dim *out_strides);

enum { KILN_MAX_RANK = 64 };

/* What is known of a tensor. Unknown dtype is KILN_DTYPE_NONE, unknown rank -1. Flags: -1 unknown,
 * 0, 1. */
typedef struct kiln_tensor_detail {
  int16_t dtype; /* kiln_dtype */
  int8_t rank;
  int8_t requires_grad;
  int8_t undefined;
  int8_t device;                   /* kiln_device_kind, -1 unknown */
  int8_t physical;                 /* kiln_physical */
  int16_t device_index;            /* -1: none */
  bool has_strides;                /* strides[] may hold KILN_DIM_UNKNOWN one by one */
  const kiln_dim *sizes, *strides; /* [rank] */
  const kiln_dims *dims;           /* of their expressions; may be NULL where they have none */
} kiln_tensor_detail;
/* Where the elements of a tensor of numbers lie: as its layout has them. */
void kiln_tensor_detail_strides(const kiln_tensor_detail *detail, int64_t *out_strides);
#define KILN_TENSOR_DETAIL_ANY                    \
  ((kiln_tensor_detail){.dtype = KILN_DTYPE_NONE, \
                        .rank = -1,               \
                        .requires_grad = -1,      \
                        .undefined = -1,          \
                        .device = -1,             \
                        .device_index = -1})

/* One attribute of a class, in slot order; or a constant (Final), which has no slot. */
typedef struct kiln_class_attribute {
  kiln_str name;
  const kiln_type *type;
  bool is_parameter, is_buffer;
  bool is_set; /* by code of its class */
} kiln_class_attribute;

/* A question of subtyping that led to others: the pairs of class and interface under way. */
typedef struct kiln_subtype_pair {
  const kiln_type *sub, *interface;
  const struct kiln_subtype_pair *outer;
} kiln_subtype_pair;
typedef struct kiln_subtype_walk {
  const kiln_subtype_pair *pairs;
  int depth, steps;
} kiln_subtype_walk;

/* Classes, interfaces and enums are nominal: made once, then filled in by the frontend. What only
 * the IR knows (methods, constants' values) hangs on `ir`, opaque here. */
typedef struct kiln_class_info {
  kiln_str qualname; /* "__torch__.m.Linear" */
  bool is_module, is_interface;
  int attribute_count;
  kiln_class_attribute *attributes;
  const kiln_map *attribute_index; /* name -> index + 1; NULL: they are few */
  /* Enums: member names and values. */
  int member_count;
  kiln_str *member_names;
  struct kiln_ivalue *member_values; /* ints, floats or strings; owned by the model */
  const kiln_type *value_type;
  void *ir; /* struct kiln_class of ir/unit.h */
  /* Interfaces: does that class (or interface) have all of the interface's methods? Set by ir. */
  bool (*implements)(const kiln_type *sub, const kiln_type *interface, kiln_subtype_walk *walk);
} kiln_class_info;

struct kiln_type {
  kiln_type_kind kind;
  uint32_t id;                  /* order of making within the table's chain, for sorting */
  const kiln_type_table *table; /* that owns it */
  int elem_count;
  const kiln_type **elems;
  const kiln_str *names;            /* NamedTuple fields [elem_count], or NULL */
  kiln_str name;                    /* of a VAR, CLASS, INTERFACE, ENUM or NamedTuple: qualified */
  const kiln_tensor_detail *detail; /* TENSOR: NULL for plain Tensor */
  kiln_class_info *cls;             /* CLASS, INTERFACE, ENUM */
};

/* -- Tables -- */

kiln_status *kiln_type_table_create(kiln_mem *mem, kiln_type_table *parent,
                                    kiln_type_table **out_table) KILN_MUST_USE;
void kiln_type_table_destroy(kiln_type_table *table);
/* Not for tables that several threads may use (the context's, a model's). */
kiln_arena *kiln_type_table_arena(kiln_type_table *table);
kiln_dims *kiln_type_table_dims(kiln_type_table *table);

/* Room for the parts of a type to be made, of the thread's own: the tables' arenas are everybody's.
 * Inside a scope. */
typedef struct kiln_type_room {
  const kiln_type *few[8];
  kiln_arena *arena; /* NULL: they are few */
} kiln_type_room;
const kiln_type **kiln_type_room_open(kiln_type_room *room, kiln_type_table *table, int64_t count);
void kiln_type_room_close(kiln_type_room *room);

/* -- Makers. Any table of the chain may be given. -- */

/* Kinds without parts: INT, STR, ANY, plain TENSOR, … These are static objects, the same in every
 * table, and need no memory. */
const kiln_type *kiln_type_basic(kiln_type_kind kind);
const kiln_type *kiln_type_list(kiln_type_table *table, const kiln_type *elem);
/* Optional of None, Any or an Optional is that type; of a Union it is the Union with None. */
const kiln_type *kiln_type_optional(kiln_type_table *table, const kiln_type *elem);
const kiln_type *kiln_type_future(kiln_type_table *table, const kiln_type *elem);
const kiln_type *kiln_type_dict(kiln_type_table *table, const kiln_type *key,
                                const kiln_type *value);
const kiln_type *kiln_type_tuple(kiln_type_table *table, const kiln_type *const *elems, int count);
const kiln_type *kiln_type_named_tuple(kiln_type_table *table, kiln_str qualname,
                                       const kiln_str *names, const kiln_type *const *elems,
                                       int count);
/* Flattens, removes what others cover, and gives Optional or a single type where that is left. */
const kiln_type *kiln_type_union(kiln_type_table *table, const kiln_type *const *elems, int count);
const kiln_type *kiln_type_var(kiln_type_table *table, kiln_str name);
/* FUTURE, AWAIT, RREF by kind. */
const kiln_type *kiln_type_wrap(kiln_type_table *table, kiln_type_kind kind, const kiln_type *elem);
/* A tensor type with details, in `table` itself, with its expressions among the table's own. */
const kiln_type *kiln_type_tensor(kiln_type_table *table, const kiln_tensor_detail *detail);
/* A new nominal type (CLASS, INTERFACE, ENUM) in `table` itself; fill in ->cls. Names are copied.
 */
kiln_type *kiln_type_nominal(kiln_type_table *table, kiln_type_kind kind, kiln_str qualname);
/* The nominal type or NamedTuple of that name in the chain, or NULL. */
const kiln_type *kiln_type_find(const kiln_type_table *table, kiln_str qualname);

/* -- Questions -- */

/* T <: Optional[T], None <: Optional[T], int/float/complex <: number, tuples covariant, lists and
 * dicts invariant (but tensor details inside are ignored), class <: interface by methods (asked
 * through `ir`), all <: Any; tensors: every known property of `super` is equal in `sub`. */
bool kiln_type_is_subtype(const kiln_type *sub, const kiln_type *super);
/* The same as part of the question `walk`: for kiln_class_info.implements. */
bool kiln_type_is_subtype_within(kiln_subtype_walk *walk, const kiln_type *sub,
                                 const kiln_type *super);
/* The same type when tensor details are left out of both, at every depth. */
bool kiln_type_equal_unshaped(const kiln_type *a, const kiln_type *b);
/* The join of both (branches of an If), NULL when there is none. With `to_union` it may be a Union.
 */
const kiln_type *kiln_type_unify(kiln_type_table *table, const kiln_type *a, const kiln_type *b,
                                 bool to_union);
/* Tensor join: what is equal in both stays known. */
const kiln_type *kiln_type_merge_tensor(kiln_type_table *table, const kiln_type *a,
                                        const kiln_type *b);
/* Tensor details removed, at every depth. */
const kiln_type *kiln_type_unshaped(kiln_type_table *table, const kiln_type *type);
bool kiln_type_has_var(const kiln_type *type);
bool kiln_type_is_mutable(const kiln_type *type); /* may be changed or aliased: Tensor, list, … */
static inline bool kiln_type_is_tensor(const kiln_type *type) {
  return type->kind == KILN_TYPE_TENSOR;
}
/* Dtype, sizes, strides and device are all known and static. */
bool kiln_type_is_complete_tensor(const kiln_type *type);
/* The same, but that its dimensions may be expressions. */
bool kiln_type_has_dims(const kiln_type *type);
/* Whether both are known to have the same sizes, of whatever dtype. NULL has none. */
bool kiln_tensor_detail_same_sizes(const kiln_tensor_detail *a, const kiln_tensor_detail *b);
/* Slot of an attribute, -1 when there is none. */
int kiln_type_find_attribute(const kiln_type *cls, kiln_str name);
/* The attributes of a class, which is new; memory in `arena`. */
void kiln_class_set_attributes(kiln_class_info *info, kiln_arena *arena,
                               kiln_class_attribute *attributes, int count);

/* -- Text -- */

/* How much of a tensor type is printed: 0 name, 1 sizes, 2 strides, 3 requires_grad and device
 * (the default), 4 symbols. */
void kiln_type_print(kiln_text *text, const kiln_type *type, int verbosity);
/* The same of tensor details that are no type yet. */
void kiln_tensor_detail_print(kiln_text *text, const kiln_tensor_detail *detail, int verbosity);
/* Annotation form, as Python source has it: "List[int]", "Optional[Tensor]". */
void kiln_type_print_annotation(kiln_text *text, const kiln_type *type);
/* Parses the IR form at *cursor, moves past it. Unknown class names are made as empty classes when
 * `make_classes`. Errors quote the text. */
kiln_status *kiln_type_parse(kiln_type_table *table, const char **cursor, const char *end,
                             bool make_classes, const kiln_type **out_type) KILN_MUST_USE;
