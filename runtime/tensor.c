/* tensor.c: making and releasing tensors, and their geometry.
 *
 * A tensor of up to FUSED_BYTES is one block from the caller's cache: making and releasing one are
 * a list pop, some twenty stores and a list push. */
#include "runtime/tensor.h"

#include <stdio.h>

#include "runtime/block.h"
#include "runtime/tensor_internal.h"
#include "runtime/type.h"

/* In a fused block: tensor, storage, data, each on a cache line of its own. */
enum { FUSED_STORAGE = 192, FUSED_DATA = FUSED_STORAGE + (int)sizeof(kiln_storage) };
enum { FUSED_BYTES = 4096 - FUSED_DATA };
_Static_assert(sizeof(kiln_tensor) <= FUSED_STORAGE && FUSED_DATA % 64 == 0, "cache lines");

/* A fused tensor's flags hold the cache class of its block above the flags proper. Blocks are taken
 * for multiples of 64 bytes: the class of n lines, without a search for the highest bit. */
enum { CLASS_SHIFT = 8 };
#define LOG(n) (63 - __builtin_clzll((n) * 64ull - 1))
#define CLASS(n) (uint8_t)((LOG(n) - 5) * 4 + (((n) * 64ull - 1) >> (LOG(n) - 2) & 3))
#define CLASS4(n) CLASS(n), CLASS((n) + 1), CLASS((n) + 2), CLASS((n) + 3)
#define CLASS16(n) CLASS4(n), CLASS4((n) + 4), CLASS4((n) + 8), CLASS4((n) + 12)
static const uint8_t line_class[65] = {0,           3,           CLASS(2),   CLASS(3),
                                       CLASS4(4),   CLASS4(8),   CLASS4(12), CLASS16(16),
                                       CLASS16(32), CLASS16(48), CLASS(64)};

/* -- Sizes -- */

void kiln_sizes_print(int rank, const int64_t *sizes, char *buffer, size_t size) {
  size_t len = 0;
  for (int i = 0; i <= rank + 1; i++) {
    char piece[32];
    if (i == 0 || i > rank) {
      snprintf(piece, sizeof piece, i == 0 ? "[" : "]");
    } else {
      snprintf(piece, sizeof piece, i > 1 ? ", %lld" : "%lld", (long long)sizes[i - 1]);
    }
    size_t n = strlen(piece);
    if (len + n >= size) break;
    memcpy(buffer + len, piece, n);
    len += n;
  }
  buffer[len] = 0;
}

bool kiln_numel(int rank, const int64_t *sizes, int64_t *out_numel) {
  int64_t numel = 1, span = 1; /* span: without zeros, so that strides cannot overflow either */
  for (int i = 0; i < rank; i++) {
    if (sizes[i] < 0) return false;
    if (!kiln_checked_mul_i64(span, sizes[i] > 0 ? sizes[i] : 1, &span)) return false;
    numel *= sizes[i];
  }
  *out_numel = numel;
  return true;
}

static inline int64_t fit_stride(int64_t stride) {
  return stride < KILN_STRIDE_MAX ? stride : KILN_STRIDE_MAX;
}

void kiln_strides_contiguous(int rank, const int64_t *sizes, int64_t *out_strides) {
  int64_t stride = 1;
  for (int i = rank - 1; i >= 0; i--) {
    out_strides[i] = stride;
    stride = kiln_stride_around(stride, sizes[i]);
  }
}

static bool follows(const kiln_tensor *t, const int *order) {
  const int64_t *sizes = t->dims, *strides = t->dims + t->key.f.rank;
  int64_t expected = 1;
  for (int k = t->key.f.rank - 1; k >= 0; k--) {
    int i = order ? order[k] : k;
    if (sizes[i] == 1) continue;
    if (strides[i] != expected) return false;
    expected *= sizes[i];
  }
  return true;
}

/* Sets numel and the layout class after dims were written, all of which were checked. */
static inline void classify(kiln_tensor *t, int64_t numel, bool is_contiguous) {
  static const int nhwc[] = {0, 2, 3, 1}, ndhwc[] = {0, 2, 3, 4, 1};
  t->numel = numel;
  kiln_layout_class layout = KILN_LAYOUT_STRIDED;
  if (is_contiguous) {
    layout = KILN_LAYOUT_CONTIGUOUS;
  } else if ((t->key.f.rank == 4 && follows(t, nhwc)) ||
             (t->key.f.rank == 5 && follows(t, ndhwc))) {
    layout = KILN_LAYOUT_CHANNELS_LAST;
  }
  t->key.f.layout = (uint8_t)layout;
}

static void refresh(kiln_tensor *t) {
  uint64_t numel = 1;
  for (int i = 0; i < t->key.f.rank; i++) numel *= (uint64_t)t->dims[i];
  classify(t, (int64_t)numel, numel <= 1 || follows(t, NULL));
}

static kiln_status *bad_sizes(int rank, const int64_t *sizes) {
  char text[256];
  if (rank < 0 || rank > KILN_MAX_RANK) {
    return KILN_ERROR(KILN_OP_ERROR, "a tensor cannot have %d dimensions (at most %d)", rank,
                      (int)KILN_MAX_RANK);
  }
  kiln_sizes_print(rank, sizes, text, sizeof text);
  for (int i = 0; i < rank; i++) {
    if (sizes[i] < 0) {
      return KILN_ERROR(KILN_OP_ERROR, "Trying to create tensor with negative dimension %lld: %s",
                        (long long)sizes[i], text);
    }
  }
  return KILN_ERROR(KILN_OP_ERROR, "a tensor of sizes %s is too large", text);
}

/* -- Making -- */

static inline kiln_tensor_key make_key(kiln_dtype dtype, int rank) {
  return (kiln_tensor_key){.f = {.dtype = (int8_t)dtype,
                                 .rank = (uint8_t)rank,
                                 .device_kind = KILN_DEVICE_CPU,
                                 .layout = KILN_LAYOUT_CONTIGUOUS,
                                 .device_index = -1}};
}

static inline void init_tensor(kiln_tensor *t, kiln_mem *mem, kiln_dtype dtype, int rank) {
  t->refs = 1;
  t->flags = 0;
  t->key = make_key(dtype, rank);
  t->numel = 0;
  t->offset = 0;
  t->storage = NULL;
  t->dims = t->inline_dims;
  t->mem = mem;
  t->sides = NULL;
}

static size_t dims_bytes(int rank) { return 2 * sizeof(int64_t) * (size_t)rank; }

/* Room for sizes and strides of the tensor's rank. */
static inline bool has_dims(kiln_tensor *t, kiln_cache *cache) {
  if (t->key.f.rank <= KILN_INLINE_RANK) return true;
  int64_t *dims = kiln__block_alloc(t->mem, cache, dims_bytes(t->key.f.rank));
  if (!dims) return false;
  t->dims = dims;
  return true;
}
/* Sizes and strides of a fresh tensor; strides NULL: row-major. On failure it can be released. */
static kiln_status *set_dims(kiln_tensor *t, kiln_cache *cache, const int64_t *sizes,
                             const int64_t *strides) {
  int rank = t->key.f.rank;
  if (!has_dims(t, cache)) return kiln_status_oom();
  for (int i = 0; i < rank; i++) t->dims[i] = sizes[i];
  if (strides) {
    for (int i = 0; i < rank; i++) t->dims[rank + i] = fit_stride(strides[i]);
  } else {
    kiln_strides_contiguous(rank, t->dims, t->dims + rank);
  }
  return NULL;
}

static kiln_status *create_large(kiln_mem *mem, kiln_cache *cache, kiln_dtype dtype, int rank,
                                 const int64_t *sizes, int64_t numel, size_t bytes,
                                 kiln_tensor **out_tensor) {
  kiln_tensor *t = kiln__block_alloc(mem, cache, sizeof *t);
  if (!t) return kiln_status_oom();
  init_tensor(t, mem, dtype, rank);
  kiln_status *status = set_dims(t, cache, sizes, NULL);
  if (!status) status = kiln_storage_create(mem, cache, bytes, &t->storage);
  if (status) {
    kiln_tensor_release_to(cache, t);
    return status;
  }
  t->numel = numel;
  *out_tensor = t;
  return NULL;
}

/* Of 1, 2, 4, 8, 16. */
static inline unsigned log2_of_size(uint64_t size) { return (unsigned)__builtin_ctzll(size); }

/* A fused tensor in `block`. */
static inline kiln_tensor *init_fused(char *block, unsigned index, kiln_mem *mem, kiln_dtype dtype,
                                      int rank, const int64_t *sizes, uint64_t numel,
                                      size_t bytes) {
  kiln_tensor *t = (kiln_tensor *)(void *)block;
  kiln_storage *s = (kiln_storage *)(void *)(block + FUSED_STORAGE);
  kiln__storage_init(s, &kiln_device_cpu, mem, block + FUSED_DATA, bytes, FUSED_DATA + bytes,
                     FUSED_STORAGE);
  init_tensor(t, mem, dtype, rank);
  t->flags = KILN_TENSOR_FUSED | index << CLASS_SHIFT;
  t->numel = (int64_t)numel;
  t->storage = s;
  int64_t stride = 1;
  for (int i = rank - 1; i >= 0; i--) {
    int64_t n = sizes[i];
    t->inline_dims[i] = n;
    t->inline_dims[rank + i] = stride;
    stride *= n > 1 ? n : 1; /* at most five sizes of 2^12, beside a zero */
  }
  return t;
}

/* Bytes of an element; 0 for what is no dtype (a model may give any int for one). */
static inline size_t item_of(kiln_dtype dtype) {
  return (unsigned)dtype < 32 ? kiln_dtype_bytes(dtype) : 0;
}

/* The same for dtypes that every kernel takes; 0 for the rare ones too. */
static inline size_t common_item_of(kiln_dtype dtype) {
  return kiln_dtype_is_rare(dtype) ? 0 : item_of(dtype);
}

/* From now on calls in this memory look at the dtypes of arguments. */
static inline void note_dtype(kiln_mem *mem, kiln_dtype dtype) {
  if (kiln_dtype_is_rare(dtype)) kiln_mem_note(mem, KILN_MEM_RARE_DTYPES);
}

static kiln_status *bad_dtype(kiln_dtype dtype) {
  return KILN_ERROR(KILN_OP_ERROR, "%d is no dtype", (int)dtype);
}

/* Whatever the fast path leaves: large or odd tensors, and small ones when the cache is empty. */
static __attribute__((noinline)) kiln_status *create_slow(kiln_mem *mem, kiln_cache *cache,
                                                          kiln_dtype dtype, int rank,
                                                          const int64_t *sizes,
                                                          kiln_tensor **out_tensor) {
  size_t item = item_of(dtype), bytes;
  int64_t numel;
  if (item == 0) return bad_dtype(dtype);
  note_dtype(mem, dtype);
  if (rank < 0 || rank > KILN_MAX_RANK || !kiln_numel(rank, sizes, &numel) ||
      !kiln_checked_mul_size((size_t)numel, item, &bytes)) {
    return bad_sizes(rank, sizes);
  }
  for (int i = 0; i < rank; i++) {
    if (bytes > FUSED_BYTES || rank > KILN_INLINE_RANK || sizes[i] > FUSED_BYTES) {
      return create_large(mem, cache, dtype, rank, sizes, numel, bytes, out_tensor);
    }
  }
  char *block = kiln__block_alloc(mem, cache, FUSED_DATA + bytes);
  if (!block) return kiln_status_oom();
  unsigned index = line_class[(FUSED_DATA + bytes + 63) / 64];
  *out_tensor = init_fused(block, index, mem, dtype, rank, sizes, (uint64_t)numel, bytes);
  return NULL;
}

/* The fast path calls nothing, so it saves no registers. */
kiln_status *kiln_tensor_create(kiln_mem *mem, kiln_cache *cache, kiln_dtype dtype, int rank,
                                const int64_t *sizes, kiln_tensor **out_tensor) {
  /* Small: the product is bounded on the way, so it cannot overflow. */
  uint64_t item = common_item_of(dtype), bytes = item;
  bool small = (unsigned)rank <= KILN_INLINE_RANK && item > 0 && cache && cache->mem == mem;
  for (int i = 0; small && i < rank; i++) {
    small = (uint64_t)sizes[i] <= FUSED_BYTES && (bytes *= (uint64_t)sizes[i]) <= FUSED_BYTES;
  }
  if (__builtin_expect(small, 1)) {
    unsigned index = line_class[(FUSED_DATA + bytes + 63) / 64];
    char *block = kiln__cache_pop(cache, index);
    if (__builtin_expect(block != NULL, 1)) {
      uint64_t numel = bytes >> log2_of_size(item);
      *out_tensor = init_fused(block, index, mem, dtype, rank, sizes, numel, bytes);
      return NULL;
    }
  }
  return create_slow(mem, cache, dtype, rank, sizes, out_tensor);
}

kiln_tensor *kiln_tensor_pop_like(kiln_cache *cache, const kiln_tensor *model, kiln_dtype dtype) {
  uint64_t numel = (uint64_t)model->numel, bytes = numel * common_item_of(dtype);
  int rank = model->key.f.rank;
  /* No size is 0, so none is above FUSED_BYTES either. */
  if (numel - 1 >= FUSED_BYTES || bytes - 1 >= FUSED_BYTES || rank > KILN_INLINE_RANK ||
      cache->mem != model->mem) {
    return NULL;
  }
  unsigned index = line_class[(FUSED_DATA + bytes + 63) / 64];
  char *block = kiln__cache_pop(cache, index);
  if (__builtin_expect(!block, 0)) return NULL;
  return init_fused(block, index, cache->mem, dtype, rank, kiln_tensor_sizes(model), numel, bytes);
}

/* The elements that a geometry reaches: one past the last offset. False on overflow or negative
 * sizes or strides. */
static bool geometry_span(int rank, const int64_t *sizes, const int64_t *strides, int64_t offset,
                          int64_t *out_span) {
  int64_t numel, last = offset, step;
  if (rank < 0 || rank > KILN_MAX_RANK || offset < 0 || !kiln_numel(rank, sizes, &numel)) {
    return false;
  }
  for (int i = 0; i < rank; i++) {
    if (strides[i] < 0) return false;
    if (numel == 0) continue;
    if (!kiln_checked_mul_i64(sizes[i] - 1, strides[i], &step) ||
        !kiln_checked_add_i64(last, step, &last)) {
      return false;
    }
  }
  *out_span = 0;
  return numel == 0 || kiln_checked_add_i64(last, 1, out_span);
}

kiln_status *kiln_tensor_create_strided(kiln_mem *mem, kiln_cache *cache, kiln_dtype dtype,
                                        int rank, const int64_t *sizes, const int64_t *strides,
                                        kiln_tensor **out_tensor) {
  int64_t span;
  size_t item = item_of(dtype), bytes;
  if (item == 0) return bad_dtype(dtype);
  if (!geometry_span(rank, sizes, strides, 0, &span) ||
      !kiln_checked_mul_size((size_t)span, item, &bytes)) {
    return bad_sizes(rank, sizes);
  }
  kiln_storage *storage;
  KILN_TRY(kiln_storage_create(mem, cache, bytes, &storage));
  kiln_status *status =
      kiln_tensor_create_on(mem, cache, storage, dtype, rank, sizes, strides, 0, out_tensor);
  kiln_storage_release_to(cache, storage);
  return status;
}

/* The tensor's storage, with the device in the guard word. */
static inline void set_storage(kiln_tensor *t, kiln_storage *storage) {
  t->storage = storage;
  t->key.f.device_kind = storage->device->id.kind;
  t->key.f.device_index = storage->device->id.index;
}

/* KILN_OP_ERROR unless the geometry lies within the storage. */
static kiln_status *check_within(const kiln_storage *storage, kiln_dtype dtype, int rank,
                                 const int64_t *sizes, const int64_t *strides, int64_t offset) {
  int64_t span;
  size_t item = item_of(dtype), bytes;
  if (item == 0) return bad_dtype(dtype);
  if (!geometry_span(rank, sizes, strides, offset, &span) || offset > INT64_MAX / 16) {
    return bad_sizes(rank, sizes);
  }
  if (!kiln_checked_mul_size((size_t)span, item, &bytes) || bytes > storage->bytes) {
    char text[256], steps[256];
    kiln_sizes_print(rank, sizes, text, sizeof text);
    kiln_sizes_print(rank, strides, steps, sizeof steps);
    return KILN_ERROR(KILN_OP_ERROR,
                      "setStorage: sizes %s, strides %s, storage offset %lld, and itemsize %zu are "
                      "out of bounds for storage of size %zu",
                      text, steps, (long long)offset, item, storage->bytes);
  }
  return NULL;
}

kiln_status *kiln_tensor_create_on(kiln_mem *mem, kiln_cache *cache, kiln_storage *storage,
                                   kiln_dtype dtype, int rank, const int64_t *sizes,
                                   const int64_t *strides, int64_t offset,
                                   kiln_tensor **out_tensor) {
  KILN_TRY(check_within(storage, dtype, rank, sizes, strides, offset));
  note_dtype(mem, dtype);
  kiln_tensor *t = kiln__block_alloc(mem, cache, sizeof *t);
  if (!t) return kiln_status_oom();
  init_tensor(t, mem, dtype, rank);
  kiln_status *status = set_dims(t, cache, sizes, strides);
  if (status) {
    kiln_tensor_release_to(cache, t);
    return status;
  }
  t->offset = offset;
  set_storage(t, kiln_storage_retain(storage));
  refresh(t);
  *out_tensor = t;
  return NULL;
}

/* What one walk over a geometry says. Plain: some elements, no negative number, sizes and strides
 * below 2^29, so that 64 terms of them cannot overflow. */
typedef struct plain_geometry {
  bool is_plain, is_contiguous;
  int64_t numel;
  uint64_t last; /* element */
} plain_geometry;

/* Sets the tensor's sizes and strides in the walk that looks at them. */
static inline plain_geometry set_dims_looking(kiln_tensor *t, const int64_t *sizes,
                                              const int64_t *strides) {
  const int rank = t->key.f.rank;
  plain_geometry g = {.is_contiguous = true, .numel = 1, .last = (uint64_t)t->offset};
  uint64_t bits = g.last >> 29;
  bool overflows = false; /* the number of elements, of an expanded tensor */
  for (int i = rank - 1; i >= 0; i--) {
    const int64_t n = sizes[i], stride = strides[i];
    t->dims[i] = n;
    t->dims[rank + i] = fit_stride(stride);
    bits |= (uint64_t)(n | stride);
    g.is_contiguous &= stride == g.numel || n == 1;
    g.last += ((uint64_t)n - 1) * (uint64_t)stride;
    overflows |= __builtin_mul_overflow(g.numel, n, &g.numel);
  }
  g.is_plain = bits >> 29 == 0 && g.numel != 0 && !overflows;
  return g;
}

/* Makes `t`, which has room for the dimensions, a view that has no reference on its storage yet. */
static inline kiln_status *set_view(kiln_tensor *t, kiln_storage *storage, const int64_t *sizes,
                                    const int64_t *strides, int64_t offset) {
  const plain_geometry g = set_dims_looking(t, sizes, strides);
  const uint64_t room = storage->bytes >> log2_of_size(kiln_tensor_item_size(t));
  if (__builtin_expect(g.is_plain && g.last < room, 1)) {
    classify(t, g.numel, g.is_contiguous);
    return NULL;
  }
  KILN_TRY(
      check_within(storage, kiln_tensor_dtype(t), kiln_tensor_rank(t), sizes, strides, offset));
  refresh(t);
  return NULL;
}
static inline void init_view(kiln_tensor *t, const kiln_tensor *base, int rank, int64_t offset) {
  init_tensor(t, base->mem, kiln_tensor_dtype(base), rank);
  t->key.f.device_kind = base->key.f.device_kind;
  t->key.f.device_index = base->key.f.device_index;
  t->offset = offset;
}

kiln_status *kiln_tensor_view(kiln_cache *cache, const kiln_tensor *base, int rank,
                              const int64_t *sizes, const int64_t *strides, int64_t offset,
                              kiln_tensor **out_tensor) {
  kiln_storage *storage = base->storage;
  if (__builtin_expect(!storage || (unsigned)rank > KILN_MAX_RANK, 0)) {
    if (storage) return bad_sizes(rank, sizes);
    return KILN_ERROR(KILN_OP_ERROR, "an undefined tensor has no views");
  }
  kiln_tensor *t = kiln__block_alloc(base->mem, cache, sizeof *t);
  if (!t) return kiln_status_oom();
  init_view(t, base, rank, offset);
  kiln_status *status =
      has_dims(t, cache) ? set_view(t, storage, sizes, strides, offset) : kiln_status_oom();
  if (status) {
    kiln_tensor_release_to(cache, t);
    return status;
  }
  t->storage = kiln_storage_retain(storage);
  *out_tensor = t;
  return NULL;
}

kiln_status *kiln_tensor_transposed(const kiln_tensor *base, kiln_tensor *out_view) {
  const int64_t *sizes = kiln_tensor_sizes(base), *strides = kiln_tensor_strides(base);
  KILN_ASSERT(kiln_tensor_rank(base) == 2 && base->storage);
  init_view(out_view, base, 2, base->offset);
  KILN_TRY(set_view(out_view, base->storage, (const int64_t[]){sizes[1], sizes[0]},
                    (const int64_t[]){strides[1], strides[0]}, base->offset));
  out_view->storage = base->storage;
  return NULL;
}

kiln_status *kiln_tensor_alias(kiln_cache *cache, const kiln_tensor *base,
                               kiln_tensor **out_tensor) {
  if (kiln_tensor_is_undefined(base)) return kiln_tensor_undefined(base->mem, out_tensor);
  return kiln_tensor_view(cache, base, kiln_tensor_rank(base), kiln_tensor_sizes(base),
                          kiln_tensor_strides(base), base->offset, out_tensor);
}

kiln_status *kiln_tensor_undefined(kiln_mem *mem, kiln_tensor **out_tensor) {
  kiln_tensor *t = kiln_cache_alloc_mem(mem, sizeof *t);
  if (!t) return kiln_status_oom();
  init_tensor(t, mem, KILN_DTYPE_NONE, 0);
  t->key.f.undefined = 1;
  *out_tensor = t;
  return NULL;
}

/* -- Changing in place -- */

kiln_status *kiln_tensor_writable_data(kiln_tensor *t, void **out_data) {
  kiln_storage *s = t->storage;
  if (__builtin_expect(!s, 0)) {
    return KILN_ERROR(KILN_OP_ERROR, "an undefined tensor cannot be written to");
  }
  if (__builtin_expect(s->flags & KILN_STORAGE_READ_ONLY, 0)) {
    KILN_TRY(kiln_storage_make_writable(s));
  } else {
    __atomic_store_n(&s->version, s->version + 1, __ATOMIC_RELAXED);
  }
  *out_data = (char *)s->data + (size_t)t->offset * kiln_tensor_item_size(t);
  return NULL;
}

kiln_status *kiln_tensor_set(kiln_tensor *t, kiln_storage *storage, kiln_dtype dtype, int rank,
                             const int64_t *sizes, const int64_t *strides, int64_t offset) {
  KILN_TRY(check_within(storage, dtype, rank, sizes, strides, offset));
  note_dtype(t->mem, dtype);
  int64_t *dims = t->inline_dims, *old = t->dims;
  int old_rank = t->key.f.rank;
  if (rank > KILN_INLINE_RANK) {
    dims = kiln_cache_alloc_mem(t->mem, dims_bytes(rank));
    if (!dims) return kiln_status_oom();
  }
  int64_t given[2 * KILN_MAX_RANK]; /* either may be t's own */
  for (int i = 0; i < rank; i++) given[i] = sizes[i], given[rank + i] = fit_stride(strides[i]);
  memcpy(dims, given, dims_bytes(rank));
  if (old != t->inline_dims) kiln_cache_free_mem(t->mem, old, dims_bytes(old_rank));
  kiln_storage *previous = t->storage;
  bool own = (t->flags & KILN_TENSOR_FUSED) &&
             (char *)previous == (char *)t + FUSED_STORAGE; /* held for the tensor's life */
  bool takes_own = (t->flags & KILN_TENSOR_FUSED) && (char *)storage == (char *)t + FUSED_STORAGE;
  set_storage(t, takes_own ? storage : kiln_storage_retain(storage));
  if (!own) kiln_storage_release(previous);
  t->dims = dims;
  t->key.f.dtype = (int8_t)dtype;
  t->key.f.rank = (uint8_t)rank;
  t->key.f.undefined = 0;
  t->offset = offset;
  kiln_side_release(t->sides);
  t->sides = NULL;
  refresh(t);
  return NULL;
}

kiln_status *kiln_tensor_resize(kiln_tensor *t, int rank, const int64_t *sizes) {
  if (kiln_tensor_has_sizes(t, rank, sizes)) return NULL;
  int64_t numel, end, strides[KILN_MAX_RANK];
  size_t bytes;
  if (rank < 0 || rank > KILN_MAX_RANK || !kiln_numel(rank, sizes, &numel) || !t->storage ||
      !kiln_checked_add_i64(numel, t->offset, &end) ||
      !kiln_checked_mul_size((size_t)end, kiln_tensor_item_size(t), &bytes)) {
    return bad_sizes(rank, sizes);
  }
  kiln_strides_contiguous(rank, sizes, strides);
  if (numel > 0) KILN_TRY(kiln_storage_grow(t->storage, bytes));
  return kiln_tensor_set(t, t->storage, kiln_tensor_dtype(t), rank, sizes, strides, t->offset);
}

/* -- Side structures -- */

void kiln_side_release(kiln_side *side) {
  while (side && kiln__refs_drop(&side->refs)) {
    kiln_side *next = side->next;
    side->destroy(side);
    side = next;
  }
}

void kiln_tensor_attach(kiln_tensor *t, kiln_side *side) {
  KILN_ASSERT(!side->next && !kiln_tensor_side(t, side->kind));
  side->next = t->sides;
  t->sides = side;
}

void kiln_tensor_share_sides(kiln_tensor *copy, const kiln_tensor *t) {
  if (!t->sides) return;
  KILN_ASSERT(!copy->sides);
  __atomic_fetch_add(&t->sides->refs, 1, __ATOMIC_RELAXED);
  copy->sides = t->sides;
  if (t->key.f.layout >= KILN_LAYOUT_SPARSE) copy->key.f.layout = t->key.f.layout;
}

/* -- Releasing -- */

static __attribute__((noinline)) void destroy_tensor(kiln_cache *cache, kiln_tensor *t) {
  kiln_side_release(t->sides);
  if (t->dims != t->inline_dims) {
    kiln__block_free(t->mem, cache, t->dims, dims_bytes(t->key.f.rank));
  }
  kiln_storage *s = t->storage;
  if (t->flags & KILN_TENSOR_FUSED) {
    kiln_storage *own = (kiln_storage *)(void *)((char *)t + FUSED_STORAGE);
    if (s != own) kiln_storage_release_to(cache, s);
    if (kiln__refs_drop(&own->refs)) kiln__storage_destroy(own, cache);
    return;
  }
  kiln_storage_release_to(cache, s);
  kiln__block_free(t->mem, cache, t, sizeof *t);
}

static __attribute__((noinline)) void release_shared(kiln_cache *cache, kiln_tensor *t) {
  if (__atomic_fetch_sub(&t->refs, 1, __ATOMIC_ACQ_REL) == 1) destroy_tensor(cache, t);
}

/* A plain fused tensor that nobody shares, with its storage as it was made: its block can go back
 * as it is. */
static inline bool is_plain(const kiln_tensor *t) {
  const kiln_storage *own = (const kiln_storage *)(const void *)((const char *)t + FUSED_STORAGE);
  return (t->flags & KILN_TENSOR_FUSED) && !t->sides && t->dims == t->inline_dims &&
         t->storage == own && !own->owner && kiln__storage_is_inline(own) &&
         __atomic_load_n(&own->refs, __ATOMIC_ACQUIRE) == 1;
}

void kiln_tensor_release_to(kiln_cache *cache, kiln_tensor *t) {
  if (!t) return;
  if (__builtin_expect(__atomic_load_n(&t->refs, __ATOMIC_ACQUIRE) != 1, 0)) {
    release_shared(cache, t);
    return;
  }
  if (__builtin_expect(cache && cache->mem == t->mem && is_plain(t) &&
                           kiln__cache_push(cache, t, t->flags >> CLASS_SHIFT),
                       1)) {
    return;
  }
  destroy_tensor(cache, t);
}

void kiln_tensor_release(kiln_tensor *t) { kiln_tensor_release_to(NULL, t); }

/* -- Shapes -- */

bool kiln_tensor_has_sizes(const kiln_tensor *t, int rank, const int64_t *sizes) {
  if (kiln_tensor_rank(t) != rank) return false;
  return rank == 0 || memcmp(kiln_tensor_sizes(t), sizes, sizeof *sizes * (size_t)rank) == 0;
}
kiln_status *kiln_broadcast(int rank_a, const int64_t *a, int rank_b, const int64_t *b,
                            int *out_rank, int64_t *out_sizes) {
  int rank = rank_a > rank_b ? rank_a : rank_b;
  for (int i = rank - 1; i >= 0; i--) {
    int ia = i - (rank - rank_a), ib = i - (rank - rank_b);
    int64_t x = ia >= 0 ? a[ia] : 1, y = ib >= 0 ? b[ib] : 1;
    if (x != y && x != 1 && y != 1) {
      return KILN_ERROR(KILN_OP_ERROR,
                        "The size of tensor a (%lld) must match the size of tensor b (%lld) at "
                        "non-singleton dimension %d",
                        (long long)x, (long long)y, i);
    }
    out_sizes[i] = x == 1 ? y : x;
  }
  *out_rank = rank;
  return NULL;
}

kiln_status *kiln_wrap_dim(int64_t dim, int rank, int *out_dim) {
  int64_t n = rank > 0 ? rank : 1;
  if (dim < -n || dim >= n) {
    return KILN_ERROR(KILN_OP_ERROR,
                      "Dimension out of range (expected to be in range of [%lld, %lld], but got "
                      "%lld)",
                      (long long)-n, (long long)(n - 1), (long long)dim);
  }
  *out_dim = (int)(dim < 0 ? dim + n : dim);
  return NULL;
}
