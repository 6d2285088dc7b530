/* image.h: what `kiln compile` writes and a program reads: constant data with addresses.
 *
 * The object file holds a kiln_aot_program as the linker wants it: structs as they lie in memory,
 * and a relocation for each address. Plans, guards and groups are the structs that the interpreter
 * takes (runtime/plan.h), so nothing is read or made of them but what belongs to one opened model:
 * its constants, the callables of its calls, and the slots of what is kept. These are numbers here,
 * places in the program's arrays.
 *
 * Values stand behind what they are made of. The weights' file is a head, then storages and packed
 * copies, each from a multiple of 64 bytes on. A storage of which nothing is read but packed copies
 * is not in it; it has addresses all the same, at which there is no memory. */
#pragma once

#include "base/hash.h"
#include "kiln/aot.h"
#include "runtime/kernels/dispatch.h"
#include "runtime/plan.h"

/* Of all structs here and in plan.h; a program of another version does not link. */
#define KILN_AOT_MARK kiln__aot_1
#define KILN_AOT_MARK_NAME "kiln__aot_1"
extern const char KILN_AOT_MARK;

enum { KILN_AOT_ALIGN = 64 };

typedef struct kiln_aot_head { /* of the weights' file */
  char magic[8];               /* "KILNAOT1" */
  uint64_t bytes;              /* of the file */
  kiln_digest digest;          /* of all behind the head */
  char padding[32];
} kiln_aot_head;
_Static_assert(sizeof(kiln_aot_head) == KILN_AOT_ALIGN, "storages are aligned");

typedef struct kiln_aot_type {
  kiln_type_kind kind;
  int elem_count;
  const int32_t *elems; /* types before it */
  kiln_str name;        /* of classes, enums and NamedTuples */
  const kiln_str *names;
  int slot_count; /* of a class: attributes */
  bool is_module;
  int member_count; /* of an enum: */
  const kiln_str *member_names;
  const int32_t *members; /* values */
} kiln_aot_type;

typedef struct kiln_aot_storage {
  int64_t at; /* in the weights' file, or among the addresses without memory */
  int64_t bytes;
  bool is_there;
} kiln_aot_storage;

typedef struct kiln_aot_strided {
  kiln_tensor_key key; /* undefined: nothing else counts */
  int32_t storage;
  int64_t offset;
  const int64_t *dims; /* sizes, then strides */
} kiln_aot_strided;

/* Beside the tags of values: input `item` of a call, and an attribute that is not set yet. */
enum { KILN_AOT_INPUT = 0x100, KILN_AOT_UNSET };
typedef struct kiln_aot_value {
  uint32_t tag;         /* kiln_tag, or one of those */
  int32_t type, second; /* of a list or dict what it holds, of others their own; -1: not known */
  int64_t count;
  const int32_t *items; /* values before it: of lists, tuples, objects; keys and values in turn */
  union {
    int64_t i; /* and a bool; the number of a callable, a member or an input */
    double f[2];
    const char *text; /* of `count` bytes */
    const kiln_aot_strided *tensor;
    kiln_device_id device;
  } u;
} kiln_aot_value;

/* A packed copy that lies in the weights' file. */
typedef struct kiln_aot_pack {
  int group, pack; /* of its packs; -1: of its heavy part */
  int32_t value;   /* that it is a copy of */
  int64_t at, bytes;
} kiln_aot_pack;
/* Results that a plan keeps. */
typedef struct kiln_aot_kept {
  int kept, arg_count, out_count;
  const int32_t *args, *outs; /* values */
} kiln_aot_kept;
typedef struct kiln_aot_types {
  int count;
  const int32_t *types;
} kiln_aot_types;

typedef struct kiln_aot_plan {
  kiln_plan plan;              /* without what follows */
  const int32_t *constants;    /* values */
  const int32_t *callables;    /* callables of the program */
  const int32_t *interpreted;  /* of each group; -1: it has none */
  const int32_t *types;        /* types of the program */
  const kiln_aot_types *lists; /* of plan.type_lists */
  int pack_count, kept_count;  /* kept_count: of results that are known */
  const kiln_aot_pack *packs;
  const kiln_aot_kept *kept;
} kiln_aot_plan;

typedef struct kiln_aot_variant {
  const kiln_guard_desc *guard; /* NULL: always holds */
  int32_t plan;
} kiln_aot_variant;
typedef struct kiln_aot_callable {
  const char *name;
  int arg_count, variant_count;
  const kiln_aot_variant *variants; /* in the order in which they are tried */
  kiln_fork_flag fork;
  bool is_part;
  const char *words;    /* what guards ask for: "(Float(2, 3))"; or NULL */
  const uint8_t *shown; /* [arg_count]: the arguments that these words tell of */
} kiln_aot_callable;

typedef struct kiln_aot_method {
  int32_t type, callable; /* of the class */
  kiln_str name;
} kiln_aot_method;

typedef struct kiln_aot_input {
  const char *name; /* "x", or "x[1]" */
  uint32_t tag;     /* TENSOR, INT, FLOAT or BOOL */
} kiln_aot_input;

struct kiln_aot_program {
  const char *name, *method;
  const char *mark; /* &KILN_AOT_MARK */
  const kiln_dispatch *dispatch;
  kiln_isa isa;               /* that its kernels are made of */
  bool needs_tiles;           /* AMX */
  const char *const *options; /* "KILN_MATMUL=bf16", ended by NULL */
  kiln_digest weights;
  int64_t weights_bytes, absent_bytes;
  int type_count, storage_count, value_count, plan_count, callable_count, method_count;
  const kiln_aot_type *types;
  const kiln_aot_storage *storages;
  const kiln_aot_value *values;
  const kiln_aot_plan *plans;
  const kiln_aot_callable *callables;
  const kiln_aot_method *methods;
  int32_t entry;       /* callable */
  int32_t self;        /* value */
  int arg_count;       /* without self */
  const int32_t *args; /* values, made for each call where an input is in them */
  int input_count, output_count;
  const kiln_aot_input *inputs;
  bool writes; /* attributes: calls go one after the other */
};
