/* tensor.h: storages and strided tensors, reference counted.
 *
 * A tensor keeps dtype, device, rank, requires_grad, undefined and layout class in one word, and
 * sizes and strides inline up to rank 6 in one block, so that a guard is a word compare and a
 * memcmp. Several tensors may share a storage (views).
 *
 * Storages. Mapped and shared storages are read-only: the first write (kiln_tensor_writable_data)
 * copies the storage in place, so that all its views follow; nobody caches the address across a
 * write. Every write raises `version`.
 *
 * Side structures. What a tensor has beside its storage and geometry hangs on it as a chain of
 * links, at most one of a kind; nearly every tensor has none, and that is NULL. A link never
 * changes once it hangs. A new one goes in front, so tensors share a chain, or the tail of one.
 *   kind    holds             a view          a copy     an operator that writes in place
 *   QUANT   scale, zero point drops it [1]    shares it  is refused
 *   SPARSE  indices, values   drops it [2]    shares it  is refused
 *   NESTED  lengths of rows   drops it [2]    shares it  is refused
 * New geometry (kiln_tensor_set) drops all of them.
 * [1] The operator hands it on where its column QUANT says so (quant.h).
 * [2] The operator makes a structure of its own where its columns say so (structure.h).
 *
 * Counts are atomic; the contents are not guarded. */
#pragma once

#include "runtime/device.h"
#include "runtime/dtype.h"

enum {
  KILN_STORAGE_READ_ONLY = 1,
  KILN_STORAGE_BOUND = 8, /* in the host's memory for a result, for one call (binding.h) */
};

/* What lends its memory to storages: a mapped file, a host's buffer, a frozen storage's block.
 * Whoever embeds one starts it with refs 1; destroy is called once, when nobody holds it. */
typedef struct kiln_owner {
  int refs; /* atomic */
  void (*destroy)(struct kiln_owner *owner);
  /* Some of its memory will hardly be read again, so that what it takes may be given back, if it
   * stays readable; any thread. NULL: nothing can be done. */
  void (*give_back)(struct kiln_owner *owner, const void *data, size_t bytes);
} kiln_owner;
void kiln_owner_retain(kiln_owner *owner);
void kiln_owner_release(kiln_owner *owner);

typedef struct kiln_storage {
  int refs; /* atomic */
  uint32_t flags;
  uint32_t version;      /* atomic: raised by every write */
  uint16_t block_offset; /* of this struct in its block: not 0 inside a small tensor's block */
  uint16_t holds;        /* atomic: how many of `refs` are kiln_memory's; UINT16_MAX: unknown */
  void *data;            /* in the device's memory */
  size_t bytes;
  kiln_mem *mem;             /* owns this struct, and data when owner is NULL */
  const kiln_device *device; /* where data lies */
  kiln_owner *owner;         /* retained: lends data; NULL: data is ours */
  size_t alloc_size; /* bytes to give back for this block (struct, and data where it is inline) */
} kiln_storage;

/* The guard word. */
typedef union kiln_tensor_key {
  uint64_t word;
  struct {
    int8_t dtype;
    uint8_t rank;
    uint8_t requires_grad; /* 0, 1 */
    uint8_t undefined;     /* 0, 1 */
    int8_t device_kind;
    uint8_t layout; /* kiln_layout_class */
    int16_t device_index;
  } f;
} kiln_tensor_key;
_Static_assert(sizeof(kiln_tensor_key) == 8, "a guard compares one word");

typedef enum kiln_layout_class {
  KILN_LAYOUT_CONTIGUOUS,    /* row-major; also every tensor of 0 or 1 elements */
  KILN_LAYOUT_CHANNELS_LAST, /* NHWC or NDHWC in memory, and not contiguous too */
  KILN_LAYOUT_STRIDED,       /* anything else */
  /* Its elements are not its storage's: structure.h. A guard asks for these bits alone. */
  KILN_LAYOUT_SPARSE = 4,
  KILN_LAYOUT_NESTED = 8,
  KILN_LAYOUT_STRUCTURED = 4 | 8
} kiln_layout_class;

typedef enum kiln_side_kind {
  KILN_SIDE_QUANT,  /* kiln_quant */
  KILN_SIDE_SPARSE, /* kiln_sparse */
  KILN_SIDE_NESTED  /* kiln_nested */
} kiln_side_kind;
/* The first member of a side structure. Its maker starts it with refs 1. */
typedef struct kiln_side {
  int refs; /* atomic */
  kiln_side_kind kind;
  struct kiln_side *next;                  /* retained, once it hangs */
  void (*destroy)(struct kiln_side *side); /* called once, when nobody holds it */
} kiln_side;

enum { KILN_INLINE_RANK = 6 };

/* Tensor flags. */
enum { KILN_TENSOR_FUSED = 1 }; /* one block with its first storage; bits 8 to 15: its class */

/* A small new tensor is one block: the tensor, its storage and the data. The tensor holds a
 * reference on that storage for life, and the block goes with the storage's last reference, so a
 * view keeps it. */
typedef struct kiln_tensor {
  int refs; /* atomic */
  uint32_t flags;
  kiln_tensor_key key;
  int64_t numel;
  int64_t offset;        /* elements from storage->data */
  kiln_storage *storage; /* retained; NULL when undefined */
  int64_t *dims;         /* sizes[rank] then strides[rank]: inline_dims, or a block of its own */
  int64_t inline_dims[2 * KILN_INLINE_RANK];
  kiln_mem *mem;    /* borrowed */
  kiln_side *sides; /* retained; NULL: none */
} kiln_tensor;

static inline int kiln_tensor_rank(const kiln_tensor *t) { return t->key.f.rank; }
static inline kiln_dtype kiln_tensor_dtype(const kiln_tensor *t) {
  return (kiln_dtype)t->key.f.dtype;
}
static inline const int64_t *kiln_tensor_sizes(const kiln_tensor *t) { return t->dims; }
static inline const int64_t *kiln_tensor_strides(const kiln_tensor *t) {
  return t->dims + t->key.f.rank;
}
static inline kiln_device_id kiln_tensor_device(const kiln_tensor *t) {
  return (kiln_device_id){t->key.f.device_kind, t->key.f.device_index};
}
static inline bool kiln_tensor_is_contiguous(const kiln_tensor *t) {
  return t->key.f.layout == KILN_LAYOUT_CONTIGUOUS;
}
static inline size_t kiln_tensor_item_size(const kiln_tensor *t) {
  return kiln_dtype_bytes(kiln_tensor_dtype(t));
}
static inline bool kiln_tensor_is_undefined(const kiln_tensor *t) { return t->key.f.undefined; }
/* First element, for reading. Any address when numel is 0. The tensor is not undefined. */
static inline const void *kiln_tensor_data(const kiln_tensor *t) {
  return (const char *)t->storage->data + (size_t)t->offset * kiln_tensor_item_size(t);
}
/* First element, for writing: makes the storage ours and raises its version. Addresses that were
 * read from any view of the storage before are stale after it. */
kiln_status *kiln_tensor_writable_data(kiln_tensor *t, void **out_data) KILN_MUST_USE;

/* Makers. `cache` (of a call; may be NULL) saves the allocator. Elements are not initialised.
 * Sizes are checked (negative, overflow): KILN_OP_ERROR. All count one reference. */
kiln_status *kiln_tensor_create(kiln_mem *mem, kiln_cache *cache, kiln_dtype dtype, int rank,
                                const int64_t *sizes, kiln_tensor **out_tensor) KILN_MUST_USE;
/* A contiguous tensor of `dtype` with the sizes of `model`, made from what the cache holds; NULL:
 * it holds no such block, or the tensor would not be small. For fast paths: nothing is checked. */
kiln_tensor *kiln_tensor_pop_like(kiln_cache *cache, const kiln_tensor *model, kiln_dtype dtype);
/* With given strides (all >= 0), dense or not: the storage holds the span they reach. */
kiln_status *kiln_tensor_create_strided(kiln_mem *mem, kiln_cache *cache, kiln_dtype dtype,
                                        int rank, const int64_t *sizes, const int64_t *strides,
                                        kiln_tensor **out_tensor) KILN_MUST_USE;
/* A tensor on an existing storage, and on its device; it must lie within it, else KILN_OP_ERROR
 * (KILN_INVALID_FILE is for the loader to say). Strides may be 0; negative ones are refused. */
kiln_status *kiln_tensor_create_on(kiln_mem *mem, kiln_cache *cache, kiln_storage *storage,
                                   kiln_dtype dtype, int rank, const int64_t *sizes,
                                   const int64_t *strides, int64_t offset,
                                   kiln_tensor **out_tensor) KILN_MUST_USE;
/* A view of `base` (same dtype, storage, device) with new geometry, checked likewise: whatever the
 * arithmetic of a kernel, no view reaches beyond its storage. */
kiln_status *kiln_tensor_view(kiln_cache *cache, const kiln_tensor *base, int rank,
                              const int64_t *sizes, const int64_t *strides, int64_t offset,
                              kiln_tensor **out_tensor) KILN_MUST_USE;
/* The transpose of a matrix on the caller's stack, for the time that `base` is there: it counts no
 * reference, so nobody may keep it. Threads that multiply by one weight write no line that they
 * share. */
kiln_status *kiln_tensor_transposed(const kiln_tensor *base, kiln_tensor *out_view) KILN_MUST_USE;
/* A 0-dim tensor holding `value` (I64, F64, BOOL bits by dtype conversion). */
kiln_status *kiln_tensor_scalar_f64(kiln_mem *mem, kiln_dtype dtype, double value,
                                    kiln_tensor **out_tensor) KILN_MUST_USE;
kiln_status *kiln_tensor_scalar_i64(kiln_mem *mem, kiln_dtype dtype, int64_t value,
                                    kiln_tensor **out_tensor) KILN_MUST_USE;
/* Another tensor on the storage of `base`, with its geometry, dtype and device; requires_grad 0. */
kiln_status *kiln_tensor_alias(kiln_cache *cache, const kiln_tensor *base,
                               kiln_tensor **out_tensor) KILN_MUST_USE;
/* Makes `t` a tensor over `storage` (retained) with new geometry and dtype, in place: set_, resize_
 * and a shared storage's swap. Checked like kiln_tensor_create_on; on failure t is unchanged. */
kiln_status *kiln_tensor_set(kiln_tensor *t, kiln_storage *storage, kiln_dtype dtype, int rank,
                             const int64_t *sizes, const int64_t *strides,
                             int64_t offset) KILN_MUST_USE;
/* Gives an out= destination the sizes that its operator computes: nothing when they are equal, else
 * new contiguous geometry, growing the storage where it is too small. */
kiln_status *kiln_tensor_resize(kiln_tensor *t, int rank, const int64_t *sizes) KILN_MUST_USE;
/* The undefined tensor. */
kiln_status *kiln_tensor_undefined(kiln_mem *mem, kiln_tensor **out_tensor) KILN_MUST_USE;

static inline kiln_tensor *kiln_tensor_retain(kiln_tensor *t) {
  __atomic_fetch_add(&t->refs, 1, __ATOMIC_RELAXED);
  return t;
}
void kiln_tensor_release(kiln_tensor *t); /* NULL is fine */
/* The same for a caller that has a cache. */
void kiln_tensor_release_to(kiln_cache *cache, kiln_tensor *t);

/* Storages. create: owned memory of a device, 64-byte aligned; wrap: host memory of `owner`, which
 * is retained. */
kiln_status *kiln_storage_create_on(const kiln_device *device, kiln_mem *mem, kiln_cache *cache,
                                    size_t bytes, kiln_storage **out_storage) KILN_MUST_USE;
static inline kiln_status *kiln_storage_create(kiln_mem *mem, kiln_cache *cache, size_t bytes,
                                               kiln_storage **out_storage) {
  return kiln_storage_create_on(&kiln_device_cpu, mem, cache, bytes, out_storage);
}
kiln_status *kiln_storage_wrap(kiln_mem *mem, kiln_owner *owner, void *data, size_t bytes,
                               uint32_t flags, kiln_storage **out_storage) KILN_MUST_USE;
/* A new storage that reads `base`'s memory and copies it on the first write (instances). A base
 * that owns its memory is frozen by it: it too copies on its next write, unless by then it is
 * alone. So sharing a storage of several threads needs it frozen (or wrapped read-only) before. */
kiln_status *kiln_storage_share(kiln_storage *base, kiln_storage **out_storage) KILN_MUST_USE;
static inline kiln_storage *kiln_storage_retain(kiln_storage *s) {
  __atomic_fetch_add(&s->refs, 1, __ATOMIC_RELAXED);
  return s;
}
void kiln_storage_release(kiln_storage *s);
void kiln_storage_release_to(kiln_cache *cache, kiln_storage *s);
/* Memory that its owner lends for reading: whoever writes to the storage writes a copy. */
static inline bool kiln_storage_is_lent(const kiln_storage *s) {
  return s->owner && (s->flags & KILN_STORAGE_READ_ONLY);
}
/* Makes an owned storage read-only: the next write copies it. */
kiln_status *kiln_storage_freeze(kiln_storage *s) KILN_MUST_USE;
/* Makes the memory ours and writable, raises the version. kiln_tensor_writable_data does it. */
kiln_status *kiln_storage_make_writable(kiln_storage *s) KILN_MUST_USE;
/* To memory of its own, with its contents. */
kiln_status *kiln_storage_move_out(kiln_storage *s) KILN_MUST_USE;
/* Grows to at least `bytes`, keeping the contents; what is new is not initialised. */
kiln_status *kiln_storage_grow(kiln_storage *s, size_t bytes) KILN_MUST_USE;

/* -- Memory that is to be known again -- */

/* What a tensor's elements were when it was held. A storage's own memory is that as long as nobody
 * has written to it; memory that is only read, wherever its owner lends it: instances of a model
 * have storages of their own on its weights. While it is held nobody else gets its address. */
typedef struct kiln_memory {
  kiln_owner *owner;     /* retained: of memory that is only read; else NULL */
  kiln_storage *storage; /* retained; NULL where there is an owner */
  uint32_t version;      /* of the storage */
  const void *data;      /* the first element */
} kiln_memory;
/* Not memory that its lender may change at any time, nor none. */
bool kiln_memory_can_hold(const kiln_tensor *t);
kiln_memory kiln_memory_hold(const kiln_tensor *t);
void kiln_memory_release(kiln_memory *memory);
/* The first `bytes` of it will hardly be read again: a file's pages leave memory. */
void kiln_memory_give_back(const kiln_memory *memory, size_t bytes);
static inline bool kiln_memory_is(const kiln_memory *memory, const kiln_tensor *t) {
  const kiln_storage *s = t->storage;
  if (!s || memory->data != kiln_tensor_data(t)) return false;
  return memory->owner ? s->owner == memory->owner && (s->flags & KILN_STORAGE_READ_ONLY)
                       : s == memory->storage && s->version == memory->version;
}
/* Of elements that are there no more, or of a storage that nobody else has. */
static inline bool kiln_memory_is_stale(const kiln_memory *memory) {
  const kiln_storage *s = memory->storage;
  if (!s) return false;
  const int holds = __atomic_load_n(&s->holds, __ATOMIC_ACQUIRE);
  return __atomic_load_n(&s->version, __ATOMIC_RELAXED) != memory->version ||
         __atomic_load_n(&s->refs, __ATOMIC_ACQUIRE) == holds;
}
/* Differs for tensors that begin elsewhere, and after a write. */
static inline uint64_t kiln_memory_id(const kiln_tensor *t) {
  return (uint64_t)(uintptr_t)kiln_tensor_data(t) + ((uint64_t)t->storage->version << 48) + 1;
}

/* -- Side structures -- */

/* Borrowed; NULL: it has none of this kind. */
static inline const kiln_side *kiln_tensor_side(const kiln_tensor *t, kiln_side_kind kind) {
  const kiln_side *side = t->sides;
  while (side && side->kind != kind) side = side->next;
  return side;
}
/* Hangs a new side structure on a tensor that has none of its kind. Takes `side`. */
void kiln_tensor_attach(kiln_tensor *t, kiln_side *side);
/* Gives `copy`, a new tensor with the elements and sizes of `t`, what hangs on `t`. */
void kiln_tensor_share_sides(kiln_tensor *copy, const kiln_tensor *t);
void kiln_side_release(kiln_side *side); /* NULL is fine */

/* -- Geometry -- */

/* "[2, 3]" for errors. */
void kiln_sizes_print(int rank, const int64_t *sizes, char *buffer, size_t size);
/* A tensor's strides end here: a greater one, which only a dimension of one element or a tensor of
 * none can have, is told as this. Times the bytes of an element, and twice that, it is an int64. */
#define KILN_STRIDE_MAX (INT64_MAX / 32)
/* The stride around a dimension of that stride and size, as a dense tensor has it. */
static inline int64_t kiln_stride_around(int64_t stride, int64_t size) {
  if (size <= 1) return stride;
  return __builtin_mul_overflow(stride, size, &stride) || stride > KILN_STRIDE_MAX ? KILN_STRIDE_MAX
                                                                                   : stride;
}
/* Row-major strides of `sizes`; numel with overflow check (false). */
void kiln_strides_contiguous(int rank, const int64_t *sizes, int64_t *out_strides);
/* Whether `strides` are those, of dimensions of one element too; without elements as well. */
static inline bool kiln_strides_are_rows(int rank, const int64_t *sizes, const int64_t *strides) {
  int64_t expect = 1;
  for (int i = rank - 1; i >= 0; i--) {
    if (strides[i] != expect) return false;
    expect = kiln_stride_around(expect, sizes[i]);
  }
  return true;
}
static inline bool kiln_tensor_has_rows(const kiln_tensor *t) {
  return kiln_strides_are_rows(kiln_tensor_rank(t), kiln_tensor_sizes(t), kiln_tensor_strides(t));
}
bool kiln_numel(int rank, const int64_t *sizes, int64_t *out_numel);
/* Broadcasts two shapes; KILN_OP_ERROR with PyTorch's sentence ("The size of tensor a (3) must
 * match the size of tensor b (4) at non-singleton dimension 1"). */
kiln_status *kiln_broadcast(int rank_a, const int64_t *a, int rank_b, const int64_t *b,
                            int *out_rank, int64_t *out_sizes /* [KILN_MAX_RANK] */) KILN_MUST_USE;
/* The same of two tensors. */
static inline kiln_status *kiln_tensor_broadcast(const kiln_tensor *a, const kiln_tensor *b,
                                                 int *out_rank, int64_t *out_sizes) {
  return kiln_broadcast(kiln_tensor_rank(a), kiln_tensor_sizes(a), kiln_tensor_rank(b),
                        kiln_tensor_sizes(b), out_rank, out_sizes);
}
bool kiln_tensor_has_sizes(const kiln_tensor *t, int rank, const int64_t *sizes);
static inline bool kiln_tensor_same_sizes(const kiln_tensor *a, const kiln_tensor *b) {
  return kiln_tensor_has_sizes(a, kiln_tensor_rank(b), kiln_tensor_sizes(b));
}
/* Wraps a dimension: -rank..rank-1 (rank 0 counts as 1); KILN_OP_ERROR as PyTorch says it. */
kiln_status *kiln_wrap_dim(int64_t dim, int rank, int *out_dim) KILN_MUST_USE;

/* -- Copies -- */

/* A contiguous tensor of dtype with t's elements; t itself (retained) when it already is one. */
kiln_status *kiln_tensor_contiguous(kiln_cache *cache, kiln_tensor *t,
                                    kiln_tensor **out_tensor) KILN_MUST_USE;
/* Element-wise copy with conversion between any two dtypes; shapes equal; any strides. */
kiln_status *kiln_tensor_copy(kiln_tensor *dst, const kiln_tensor *src) KILN_MUST_USE;
/* One element as a number; KILN_OP_ERROR unless numel is 1. */
kiln_status *kiln_tensor_item_f64(const kiln_tensor *t, double *out_value) KILN_MUST_USE;
/* Real and imaginary part of any dtype; int64 beyond 2^53 rounds. */
kiln_status *kiln_tensor_item_c128(const kiln_tensor *t, double *out_re,
                                   double *out_im) KILN_MUST_USE;
kiln_status *kiln_tensor_item_i64(const kiln_tensor *t, int64_t *out_value) KILN_MUST_USE;

/* An element where it lies; 0, and nothing put, where its dtype is a quantised one or none. */
bool kiln_dtype_has_elements(kiln_dtype dtype);
/* The real part; the imaginary one, where out_im is not NULL. */
double kiln_element_f64(kiln_dtype dtype, const void *at, double *out_im);
/* Truncated; what int64 cannot hold is INT64_MIN. */
int64_t kiln_element_i64(kiln_dtype dtype, const void *at);
/* Whole numbers wrap to the width of a whole dtype. */
void kiln_element_put_i64(kiln_dtype dtype, int64_t value, void *to);
void kiln_element_put_c128(kiln_dtype dtype, double re, double im, void *to);
