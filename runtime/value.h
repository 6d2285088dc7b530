/* value.h: kiln_ivalue, what an interpreter register holds (PyTorch's IValue), and the reference
 * counted objects behind it.
 *
 * An ivalue is 16 bytes, passed by value; whether a variable owns its reference is said by each
 * function (out_… and results own; arguments borrow). Lists, dicts and objects are reference
 * values: mutation is seen through every handle. Tuples and strings do not change. Containers know
 * their element types, which belong to the context's or the model's type table. Counts are atomic,
 * contents are not guarded. Reference cycles (a list in itself) are refused where they could arise
 * from a file, and looked for where a program closes them (runtime/cycles.h). */
#pragma once

#include "runtime/tensor.h"
#include "runtime/type.h"

typedef enum kiln_tag {
  KILN_TAG_NONE, /* all-zero bits are None */
  KILN_TAG_INT,
  KILN_TAG_FLOAT,
  KILN_TAG_BOOL,
  KILN_TAG_DEVICE,
  KILN_TAG_FUNCTION, /* kiln_callable, borrowed from the plan's owner */
  KILN_TAG__COUNTED, /* those below are reference counted */
  KILN_TAG_TENSOR = KILN_TAG__COUNTED,
  KILN_TAG_STRING,
  KILN_TAG_COMPLEX,
  KILN_TAG_LIST,
  KILN_TAG_TUPLE,
  KILN_TAG_DICT,
  KILN_TAG_OBJECT,
  KILN_TAG_ENUM,
  KILN_TAG_FUTURE,
  KILN_TAG_OTHER, /* generators, capsules: kiln_box with a destructor */
} kiln_tag;

typedef struct kiln_ivalue {
  uint32_t tag; /* kiln_tag */
  union {
    int64_t i;
    double f;
    bool b;
    kiln_device_id device;
    const struct kiln_callable *function;
    struct kiln_box *box; /* any counted object but a tensor */
    kiln_tensor *tensor;
    struct kiln_string *string;
    struct kiln_complex *complex;
    struct kiln_list *list;
    struct kiln_tuple *tuple;
    struct kiln_dict *dict;
    struct kiln_object *object;
    struct kiln_enum *enumerator;
    struct kiln_future *future;
  } u;
} kiln_ivalue;
_Static_assert(sizeof(kiln_ivalue) == 16, "registers are two words");

/* Every counted object but the tensor starts with this. */
typedef struct kiln_box {
  int refs; /* atomic */
  uint32_t tag;
  kiln_mem *mem; /* borrowed: the context outlives it or the handle retains it */
  union {
    void (*destroy)(struct kiln_box *box); /* OTHER only: frees the box too */
    struct kiln_box *next_dead;            /* while its last handle is released */
  };
} kiln_box;

typedef struct kiln_string {
  kiln_box box;
  size_t len;
  char data[]; /* UTF-8, terminated */
} kiln_string;

typedef struct kiln_complex {
  kiln_box box;
  double re, im;
} kiln_complex;

typedef struct kiln_list {
  kiln_box box;
  const kiln_type *elem_type; /* NULL: not known yet (an empty list from the host) */
  int64_t count, capacity;
  kiln_ivalue *items;
} kiln_list;

typedef struct kiln_tuple {
  kiln_box box;
  const kiln_type *type; /* TUPLE or NamedTuple; NULL: not known */
  int64_t count;
  kiln_ivalue items[];
} kiln_tuple;

typedef struct kiln_dict_entry {
  uint64_t hash;
  kiln_ivalue key, value; /* a removed entry has live == false */
  bool live;
} kiln_dict_entry;
/* Insertion-ordered; keys are int, float, bool, str, complex, device or tensor (by identity). */
typedef struct kiln_dict {
  kiln_box box;
  const kiln_type *key_type, *value_type; /* NULL: not known yet */
  int64_t live;                           /* entries that count */
  int64_t count, capacity;                /* entries used, removed ones included */
  kiln_dict_entry *entries;
  int32_t *slots;
  int64_t slot_count;
  uint64_t seed; /* of the hashes: the memory's */
} kiln_dict;

typedef struct kiln_object {
  kiln_box box;
  const kiln_type *type; /* CLASS */
  int64_t count;
  kiln_ivalue slots[]; /* in the class's attribute order; a NULL tensor means not set yet */
} kiln_object;

typedef struct kiln_enum {
  kiln_box box;
  const kiln_type *type;
  int member;
} kiln_enum;

/* What FORK made: `value`, or `error`, which WAIT raises (each time: copy it). While its function
 * may still run beside the frame that forked it, `fork` tells how to wait (interp_fork.c); no
 * future leaves that frame before it is complete. */
typedef struct kiln_future {
  kiln_box box;
  const kiln_type *elem_type; /* NULL: not known */
  kiln_ivalue value;
  kiln_status *error;
  struct kiln_fork *fork; /* owned; NULL: it has run on the thread that forked it */
} kiln_future;
bool kiln__future_complete(const kiln_future *future);
/* The part of a future that is given back with it. NULL is ignored. */
void kiln__fork_destroy(kiln_mem *mem, struct kiln_fork *fork);

/* -- Makers of plain values -- */
static inline kiln_ivalue kiln_none(void) { return (kiln_ivalue){.tag = KILN_TAG_NONE}; }
static inline kiln_ivalue kiln_int(int64_t i) {
  return (kiln_ivalue){.tag = KILN_TAG_INT, .u.i = i};
}
static inline kiln_ivalue kiln_float(double f) {
  return (kiln_ivalue){.tag = KILN_TAG_FLOAT, .u.f = f};
}
static inline kiln_ivalue kiln_bool(bool b) {
  kiln_ivalue v = {.tag = KILN_TAG_BOOL};
  v.u.i = b;
  return v;
}
static inline kiln_ivalue kiln_device_value(kiln_device_id d) {
  return (kiln_ivalue){.tag = KILN_TAG_DEVICE, .u.device = d};
}
/* Takes the reference. */
static inline kiln_ivalue kiln_of_tensor(kiln_tensor *t) {
  return (kiln_ivalue){.tag = KILN_TAG_TENSOR, .u.tensor = t};
}
static inline kiln_ivalue kiln_of_box(void *box) {
  return (kiln_ivalue){.tag = ((kiln_box *)box)->tag, .u.box = box};
}

/* -- References -- */
static inline kiln_ivalue kiln_ivalue_retain(kiln_ivalue v) {
  if (v.tag >= KILN_TAG__COUNTED) { /* refs is the first word of tensors and boxes alike */
    __atomic_fetch_add((int *)v.u.box, 1, __ATOMIC_RELAXED);
  }
  return v;
}
void kiln__ivalue_release_slow(kiln_cache *cache, kiln_ivalue v);
/* Deep structures are released in a loop, not by recursion. */
static inline void kiln_ivalue_release_to(kiln_cache *cache, kiln_ivalue v) {
  if (v.tag < KILN_TAG__COUNTED) return;
  if (v.tag == KILN_TAG_TENSOR) {
    kiln_tensor_release_to(cache, v.u.tensor);
  } else {
    kiln__ivalue_release_slow(cache, v);
  }
}
static inline void kiln_ivalue_release(kiln_ivalue v) { kiln_ivalue_release_to(NULL, v); }

/* -- Objects. Makers count one reference; what they are given is borrowed unless "takes". -- */
kiln_status *kiln_string_create(kiln_mem *mem, kiln_str text, kiln_string **out) KILN_MUST_USE;
kiln_status *kiln_complex_create(kiln_mem *mem, double re, double im,
                                 kiln_complex **out) KILN_MUST_USE;
/* Lists and tuples, which calls make and drop all the time: out of the call's cache, or NULL. */
kiln_status *kiln_list_create_in(kiln_mem *mem, kiln_cache *cache, const kiln_type *elem_type,
                                 int64_t reserve, kiln_list **out) KILN_MUST_USE;
/* Takes `item`, also on failure (it is then released). */
kiln_status *kiln_list_push_in(kiln_list *list, kiln_cache *cache, kiln_ivalue item) KILN_MUST_USE;
/* A tuple of None values, to be filled by its maker. */
kiln_status *kiln_tuple_create_in(kiln_mem *mem, kiln_cache *cache, const kiln_type *type,
                                  int64_t count, kiln_tuple **out) KILN_MUST_USE;
static inline kiln_status *kiln_list_create(kiln_mem *mem, const kiln_type *elem_type,
                                            int64_t reserve, kiln_list **out) {
  return kiln_list_create_in(mem, NULL, elem_type, reserve, out);
}
static inline kiln_status *kiln_list_push(kiln_list *list, kiln_ivalue item) {
  return kiln_list_push_in(list, NULL, item);
}
static inline kiln_status *kiln_tuple_create(kiln_mem *mem, const kiln_type *type, int64_t count,
                                             kiln_tuple **out) {
  return kiln_tuple_create_in(mem, NULL, type, count, out);
}
kiln_status *kiln_dict_create(kiln_mem *mem, const kiln_type *key_type, const kiln_type *value_type,
                              kiln_dict **out) KILN_MUST_USE;
/* Takes key and value, also on failure; replaces the value of an equal key, keeping its place. */
kiln_status *kiln_dict_set(kiln_dict *dict, kiln_ivalue key, kiln_ivalue value) KILN_MUST_USE;
/* What has a hash. */
static inline bool kiln_ivalue_is_key(kiln_ivalue v) {
  return v.tag == KILN_TAG_INT || v.tag == KILN_TAG_FLOAT || v.tag == KILN_TAG_BOOL ||
         v.tag == KILN_TAG_STRING || v.tag == KILN_TAG_COMPLEX || v.tag == KILN_TAG_TENSOR;
}
/* Borrowed, NULL when absent. */
kiln_ivalue *kiln_dict_find(const kiln_dict *dict, kiln_ivalue key);
bool kiln_dict_remove(kiln_dict *dict, kiln_ivalue key);
void kiln_dict_clear(kiln_dict *dict);
/* Iterate: index from 0; false at the end. Borrowed. */
bool kiln_dict_next(const kiln_dict *dict, int64_t *index, kiln_ivalue **out_key,
                    kiln_ivalue **out_value);
kiln_status *kiln_object_create(kiln_mem *mem, const kiln_type *type,
                                kiln_object **out) KILN_MUST_USE;
/* Takes everything out of a list, tuple (None is left), dict, object or future. */
void kiln_container_empty(kiln_ivalue v);
kiln_status *kiln_enum_create(kiln_mem *mem, const kiln_type *type, int member,
                              kiln_enum **out) KILN_MUST_USE;

/* Takes `value` and `error`, also on failure. */
kiln_status *kiln_future_create(kiln_mem *mem, const kiln_type *elem_type, kiln_ivalue value,
                                kiln_status *error, kiln_future **out) KILN_MUST_USE;

static inline kiln_str kiln_string_view(const kiln_string *s) {
  return kiln_str_make(s->data, s->len);
}

/* -- Questions -- */
/* Python's `==` on values other than tensors; tensors by identity. */
bool kiln_ivalue_equal(kiln_ivalue a, kiln_ivalue b);
/* Python's `is`. */
bool kiln_ivalue_is(kiln_ivalue a, kiln_ivalue b);
/* Nobody can tell them apart: the same type and bits (0.0 and -0.0 differ, 1 and True differ, NaN
 * equals itself); what could be written to, by identity. */
bool kiln_ivalue_same(kiln_ivalue a, kiln_ivalue b);
/* Equal for values that are the same, or would be if lists of the same items were. */
uint64_t kiln_ivalue_hash(uint64_t seed, kiln_ivalue v, bool lists_by_items);
/* The value is an instance of the type (isinstance; also used for argument checks). Ints are not
 * floats. A list or dict of unknown element type fits every type that it could be, and has the one
 * that it was asked for from then on. */
bool kiln_ivalue_matches(kiln_ivalue v, const kiln_type *type);
/* The most exact type of the value, made in `table` (inside its run). */
const kiln_type *kiln_ivalue_type(kiln_type_table *table, kiln_ivalue v);
/* "int", "Tensor", "List[Tensor]" … for errors. */
void kiln_ivalue_type_name(kiln_text *text, kiln_ivalue v);
/* What prim::Print, aten::str and aten::format write: PyTorch's own form, not quite Python's (1.0
 * is "1.", 0.1 has 17 digits, strings in lists have no quotes). */
void kiln_ivalue_print(kiln_text *text, kiln_ivalue v);
/* A tensor as PyTorch's C++ prints it: columns of 80 characters, then "[ CPUFloatType{2,2} ]". */
void kiln_tensor_print(kiln_text *text, const kiln_tensor *t);
/* A copy that shares no mutable container with v. Tensors and the storages under them are shared
 * copy-on-write (kiln_storage_share); aliasing inside v is kept. For instances and constants. */
kiln_status *kiln_ivalue_clone(kiln_mem *mem, kiln_ivalue v, kiln_ivalue *out) KILN_MUST_USE;
