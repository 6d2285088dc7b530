/* pack.c: copies of inputs in the order that kernels want, and those that are kept. */
#include "runtime/pack.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "base/budget.h"
#include "base/job_lock.h"
#include "runtime/half.h"
#include "runtime/kernels/heavy/blocked.h"
#include "runtime/kernels/heavy/grouped.h"
#include "runtime/kernels/heavy/winograd.h"
#include "runtime/kernels/pointwise/iter.h"

/* -- Copies -- */

void kiln_pack_join_columns(kiln_kernel_pack *p) {
  while (p->rank > 0 && p->column == 1 && p->panel == p->columns && p->columns_before == 0) {
    const int d = p->rank - 1;
    if (p->strides[d] != p->columns) return;
    const int64_t there = p->sizes[d] - p->before[d] - p->after[d];
    p->columns_before = p->before[d] * p->columns;
    p->panel = p->sizes[d] * p->columns;
    p->columns *= there;
    p->sizes[d] = p->strides[d] = p->before[d] = p->after[d] = 0;
    p->rank = d;
  }
}

kiln_kernel_pack kiln_pack_of(const kiln_kernel_pack *pack, int64_t numel, const int64_t *sizes,
                              const int64_t *strides) {
  kiln_kernel_pack own = *pack;
  if (pack->whole) {
    own.columns = numel;
    own.panel = numel > 0 ? numel : 1;
  }
  if (!pack->of_tensor) return own;
  for (int i = 0; i < pack->rank; i++) {
    own.sizes[i] = pack->before[i] + sizes[pack->dims[i]] + pack->after[i];
    own.strides[i] = strides[pack->dims[i]];
  }
  const int last = pack->dims[pack->rank];
  own.columns = sizes[last];
  own.column = strides[last];
  own.panel = pack->columns_before + own.columns + pack->columns_after;
  kiln_pack_join_columns(&own);
  return own;
}

bool kiln_pack_bytes(const kiln_kernel_pack *pack, size_t *out_bytes) {
  size_t bytes = (size_t)pack->item_size * (size_t)pack->panel;
  bool fits = !__builtin_mul_overflow(
      bytes, (size_t)((pack->columns + pack->panel - 1) / pack->panel), &bytes);
  for (int d = 0; d < pack->rank; d++)
    fits &= !__builtin_mul_overflow(bytes, (size_t)pack->sizes[d], &bytes);
  fits &= !__builtin_add_overflow(bytes, (size_t)KILN_KERNEL_PACK_BEHIND, &bytes);
  *out_bytes = bytes;
  return fits && bytes <= INT64_MAX;
}

/* A picture's three planes become pixels; four of them are three vectors. */
static void copy_pixels(const uint32_t *restrict from, int64_t column, uint32_t *restrict to,
                        int64_t count) {
  typedef uint32_t quad __attribute__((vector_size(16)));
  typedef quad quad_u __attribute__((aligned(4)));
  int64_t i = 0;
  for (; i + 4 <= count; i += 4, to += 12) {
    const quad r = *(const quad_u *)(from + i), g = *(const quad_u *)(from + column + i);
    const quad b = *(const quad_u *)(from + 2 * column + i);
    const quad rg = __builtin_shufflevector(r, g, 0, 4, 0, 1);
    const quad gb = __builtin_shufflevector(g, b, 1, 5, 0, 2);
    const quad br = __builtin_shufflevector(b, r, 2, 7, 0, 3);
    *(quad_u *)to = __builtin_shufflevector(rg, b, 0, 1, 4, 3);
    *(quad_u *)(to + 4) = __builtin_shufflevector(gb, r, 0, 1, 6, 3);
    *(quad_u *)(to + 8) = __builtin_shufflevector(br, g, 0, 1, 7, 3);
  }
  for (; i < count; i++, to += 3)
    for (int64_t j = 0; j < 3; j++) to[j] = from[j * column + i];
}

/* `count` rows of one panel, `step` apart, of which `columns` are there. */
#define COPY_ROWS(type)                                                                    \
  static void copy_rows_##type(const kiln_kernel_pack *pack, const type *from, type *to,   \
                               int64_t count, int64_t step, int64_t columns) {             \
    const int64_t lead = pack->columns_before, column = pack->column, panel = pack->panel; \
    const int64_t left = panel - lead - columns;                                           \
    for (int64_t i = 0; i < count; i++, from += step, to += panel) {                       \
      for (int64_t j = 0; j < lead; j++) to[j] = 0;                                        \
      if (column == 1) {                                                                   \
        memcpy(to + lead, from, (size_t)columns * sizeof *to);                             \
      } else {                                                                             \
        for (int64_t j = 0; j < columns; j++) to[lead + j] = from[j * column];             \
      }                                                                                    \
      for (int64_t j = 0; j < left; j++) to[lead + columns + j] = 0;                       \
    }                                                                                      \
  }
COPY_ROWS(uint8_t)
COPY_ROWS(uint16_t)
COPY_ROWS(uint32_t)
COPY_ROWS(uint64_t)

/* The same of f32 that becomes bf16, or stays f32. */
static inline float keep_f32(uint16_t h) { return kiln_bf16_to_float(h); }
static inline uint16_t keep_bf16(uint16_t h) { return h; }
#define ROUND_ROWS(name, type, KEEP)                                                            \
  static void name(const kiln_kernel_pack *pack, const float *from, type *to, int64_t count,    \
                   int64_t step, int64_t columns) {                                             \
    const int64_t lead = pack->columns_before, column = pack->column, panel = pack->panel;      \
    for (int64_t i = 0; i < count; i++, from += step, to += panel) {                            \
      if (columns < panel) memset(to, 0, (size_t)panel * sizeof *to);                           \
      if (column == 1) {                                                                        \
        for (int64_t j = 0; j < columns; j++) to[lead + j] = KEEP(kiln_float_to_bf16(from[j])); \
        continue;                                                                               \
      }                                                                                         \
      for (int64_t j = 0; j < columns; j++)                                                     \
        to[lead + j] = KEEP(kiln_float_to_bf16(from[j * column]));                              \
    }                                                                                           \
  }
ROUND_ROWS(round_rows_to_bf16, uint16_t, keep_bf16)
ROUND_ROWS(round_rows_in_f32, float, keep_f32)

/* Bytes of the input's elements. */
static int64_t size_from(const kiln_kernel_pack *pack) {
  return pack->rounds ? (int64_t)sizeof(float) : pack->item_size;
}

/* Planes become pixels in blocks of lines, for planes often lie a power of two apart: of FEW_PLANES
 * and as many pixels on. */
enum { FEW_PLANES = 4 };
static void turn_rows(const kiln_kernel_pack *pack, const void *from, void *to, int64_t count,
                      int64_t columns) {
  const int64_t size = pack->item_size;
  if (columns < pack->panel) memset(to, 0, (size_t)(count * pack->panel * size));
  kiln__turn((char *)to + pack->columns_before * size, pack->panel * size, from,
             pack->column * size, columns, count, size);
}

static void copy_rows(const kiln_kernel_pack *pack, const void *from, void *to, int64_t count,
                      int64_t step, int64_t columns) {
  if (pack->rounds && pack->item_size == 2) {
    round_rows_to_bf16(pack, from, to, count, step, columns);
    return;
  }
  if (pack->rounds) {
    round_rows_in_f32(pack, from, to, count, step, columns);
    return;
  }
  if (step == 1 && pack->column > 1 && columns >= FEW_PLANES && count >= FEW_PLANES) {
    turn_rows(pack, from, to, count, columns);
    return;
  }
  if (pack->item_size == 4 && columns == 3 && pack->panel == 3 && step == 1 && pack->column > 1) {
    copy_pixels(from, pack->column, to, count);
    return;
  }
  switch (pack->item_size) {
    case 1: copy_rows_uint8_t(pack, from, to, count, step, columns); break;
    case 2: copy_rows_uint16_t(pack, from, to, count, step, columns); break;
    case 4: copy_rows_uint32_t(pack, from, to, count, step, columns); break;
    default: copy_rows_uint64_t(pack, from, to, count, step, columns);
  }
}

/* Two rows, `step` apart, column by column; they are rounded. */
static void copy_pair(const kiln_kernel_pack *pack, const void *from, void *to, int64_t step,
                      int64_t columns) {
  const float *x = from;
  uint16_t *y = to;
  for (int64_t j = 0; j < columns; j++) {
    y[2 * j] = kiln_float_to_bf16(x[j * pack->column]);
    y[2 * j + 1] = kiln_float_to_bf16(x[j * pack->column + step]);
  }
  memset(y + 2 * columns, 0, (size_t)(pack->panel - columns) * 2 * sizeof *y);
}

static char *put_zeros(char *to, int64_t bytes) {
  memset(to, 0, (size_t)bytes);
  return to + bytes;
}

/* All rows of one panel, from dimension d of the pack's on; gives where the copy ends. */
static char *copy_panel(const kiln_kernel_pack *pack, int d, const char *from, char *to,
                        int64_t columns) {
  int64_t each = pack->panel * pack->item_size; /* bytes */
  for (int k = d + 1; k < pack->rank; k++) each *= pack->sizes[k];
  if (d >= pack->rank) {
    copy_rows(pack, from, to, 1, 0, columns);
    return to + each;
  }
  if (pack->pairs && d == pack->rank - 1) {
    copy_pair(pack, from, to, pack->strides[d], columns);
    return to + each * 2;
  }
  const int64_t step = pack->strides[d];
  const int64_t reach = pack->sizes[d] - pack->before[d] - pack->after[d];
  to = put_zeros(to, pack->before[d] * each);
  if (d == pack->rank - 1) {
    copy_rows(pack, from, to, reach, step, columns);
    to += reach * each;
  } else {
    for (int64_t i = 0; i < reach; i++)
      to = copy_panel(pack, d + 1, from + i * step * size_from(pack), to, columns);
  }
  return put_zeros(to, pack->after[d] * each);
}

static char *copy_outer(const kiln_kernel_pack *pack, int d, const char *from, char *to) {
  const int64_t size = size_from(pack);
  if (d < pack->outer) {
    for (int64_t i = 0; i < pack->sizes[d]; i++)
      to = copy_outer(pack, d + 1, from + i * pack->strides[d] * size, to);
    return to;
  }
  for (int64_t first = 0; first < pack->columns; first += pack->panel) {
    const int64_t left = pack->columns - first;
    to = copy_panel(pack, d, from + first * pack->column * size, to,
                    left < pack->panel ? left : pack->panel);
  }
  return to;
}

void kiln_pack_copy(const kiln_kernel_pack *pack, const void *from, void *to) {
  char *end = copy_outer(pack, 0, (const char *)from + pack->offset * size_from(pack), to);
  (void)put_zeros(end, KILN_KERNEL_PACK_BEHIND);
}

/* -- Transformed weights -- */

static kiln_blocked_weight blocked_of(const kiln_kernel_pack *pack, const void *from) {
  return (kiln_blocked_weight){.data = from,
                               .output = pack->strides[0],
                               .along = pack->strides[1],
                               .outputs = pack->sizes[0],
                               .depth = pack->sizes[1],
                               .slice = pack->sizes[2]};
}

static kiln_status *bytes_of(const kiln_call *call, const kiln_kernel_pack *pack,
                             size_t *out_bytes) {
  const kiln_blocked_weight blocked = blocked_of(pack, NULL);
  switch (pack->transform) {
    case KILN_TRANSFORM_WINOGRAD:
      return kiln_winograd_bytes(call->dispatch, (kiln_winograd_form)pack->form, pack->sizes[2],
                                 pack->sizes[1], pack->sizes[0], out_bytes);
    case KILN_TRANSFORM_GROUPED:
      return kiln_grouped_bytes(call->dispatch, pack->sizes[0], pack->sizes[1], out_bytes);
    case KILN_TRANSFORM_BLOCKED:
      return kiln_blocked_bytes(call->dispatch, (kiln_blocked_form)pack->form, &blocked, out_bytes);
    case KILN_TRANSFORM_NONE: break;
  }
  return kiln_pack_bytes(pack, out_bytes) ? NULL : kiln_status_oom();
}

static kiln_status *fill(const kiln_call *call, const kiln_kernel_pack *pack, const void *from,
                         void *to) {
  const kiln_winograd_weight windows = {(const float *)from + pack->offset,
                                        pack->strides[0],
                                        pack->strides[1],
                                        {pack->strides[2], pack->strides[3], pack->strides[4]}};
  const kiln_grouped_weight groups = {
      from, pack->strides[0], pack->strides[1], {pack->strides[3], pack->strides[4]}};
  const kiln_blocked_weight blocked = blocked_of(pack, from);
  switch (pack->transform) {
    case KILN_TRANSFORM_WINOGRAD:
      return kiln_winograd_fill(call->dispatch, (kiln_winograd_form)pack->form, pack->sizes[2],
                                pack->sizes[1], pack->sizes[0], &windows, to, call->pool);
    case KILN_TRANSFORM_GROUPED:
      kiln_grouped_fill(call->dispatch, pack->sizes[0], pack->sizes[1], &groups, to);
      return NULL;
    case KILN_TRANSFORM_BLOCKED:
      return kiln_blocked_fill(call->dispatch, (kiln_blocked_form)pack->form, &blocked, to,
                               call->pool);
    case KILN_TRANSFORM_NONE: break;
  }
  kiln_pack_copy(pack, from, to);
  return NULL;
}

/* -- Those that are kept -- */

enum { BUCKETS = 256 };

struct kiln__packed {
  struct kiln__packed *next; /* of its bucket */
  int refs;                  /* under the lock: slots */
  kiln_kernel_pack pack;     /* but for its `input`, which is 0 */
  kiln_memory from;          /* held */
  void *copy;
  size_t bytes;
  bool is_lent; /* the copy is somebody else's (kiln_pack_give) */
};

struct kiln_pack_store {
  kiln_mem *mem;
  pthread_mutex_t lock;
  pid_t maker;
  uint64_t made, bytes; /* atomic: all that were made; of those that there are */
  kiln__packed *buckets[BUCKETS];
};

kiln_status *kiln_pack_store_create(kiln_mem *mem, kiln_pack_store **out_store) {
  kiln_pack_store *store = kiln_mem_alloc_zero(mem, sizeof *store);
  if (!store) return kiln_status_oom();
  store->mem = mem;
  store->maker = getpid();
  pthread_mutex_init(&store->lock, NULL);
  *out_store = store;
  return NULL;
}

void kiln_pack_store_destroy(kiln_pack_store *store) {
  if (!store) return;
  pthread_mutex_destroy(&store->lock);
  kiln_mem_free(store->mem, store, sizeof *store);
}

uint64_t kiln__pack_store_made(const kiln_pack_store *store) {
  return __atomic_load_n(&store->made, __ATOMIC_RELAXED);
}

uint64_t kiln_pack_store_bytes(const kiln_pack_store *store) {
  return __atomic_load_n(&store->bytes, __ATOMIC_RELAXED);
}

static kiln__packed **bucket_of(kiln_pack_store *store, const void *from) {
  return &store->buckets[((uintptr_t)from >> 6) * UINT64_C(0x9e3779b97f4a7c15) >> 56];
}

static void destroy_packed(kiln_pack_store *store, kiln__packed *p) {
  if (!p->is_lent) {
    __atomic_fetch_sub(&store->bytes, p->bytes, __ATOMIC_RELAXED);
    kiln_cache_free_mem(store->mem, p->copy, p->bytes);
  }
  kiln_memory_release(&p->from);
  kiln_mem_free(store->mem, p, sizeof *p);
}

/* Whether both ask for the same copy, whichever input they are of. */
bool kiln_pack_is_same(const kiln_kernel_pack *a, const kiln_kernel_pack *b) {
  const size_t each = sizeof a->sizes;
  return a->item_size == b->item_size && a->rank == b->rank && a->outer == b->outer &&
         memcmp(a->sizes, b->sizes, each) == 0 && memcmp(a->strides, b->strides, each) == 0 &&
         memcmp(a->before, b->before, each) == 0 && memcmp(a->after, b->after, each) == 0 &&
         a->offset == b->offset && a->columns == b->columns && a->column == b->column &&
         a->panel == b->panel && a->columns_before == b->columns_before &&
         a->columns_after == b->columns_after && a->of_tensor == b->of_tensor &&
         memcmp(a->dims, b->dims, sizeof a->dims) == 0 && a->as_it_lies == b->as_it_lies &&
         a->rounds == b->rounds && a->pairs == b->pairs && a->whole == b->whole &&
         a->transform == b->transform && a->form == b->form;
}

/* The store's copy of the same, with a reference more; NULL: there is none. Under the lock. */
static kiln__packed *find_locked(kiln_pack_store *store, const kiln_kernel_pack *pack,
                                 const kiln_tensor *t) {
  for (kiln__packed *p = *bucket_of(store, kiln_tensor_data(t)); p; p = p->next) {
    if (!kiln_memory_is(&p->from, t) || !kiln_pack_is_same(&p->pack, pack)) continue;
    p->refs++;
    return p;
  }
  return NULL;
}

static kiln_status *find(kiln_pack_store *store, const kiln_kernel_pack *pack, const kiln_tensor *t,
                         kiln__packed **out) {
  KILN_TRY(kiln_short_lock_take(&store->lock, store->maker));
  *out = find_locked(store, pack, t);
  pthread_mutex_unlock(&store->lock);
  return NULL;
}

static kiln_status *make(const kiln_call *call, kiln_pack_store *store,
                         const kiln_kernel_pack *pack, kiln_tensor *t, size_t bytes,
                         kiln__packed **out) {
  kiln__packed *p = kiln_mem_alloc_zero(store->mem, sizeof *p);
  if (!p) return kiln_status_oom();
  *p = (kiln__packed){.refs = 1, .pack = *pack, .bytes = bytes};
  p->copy = kiln_cache_alloc_mem(store->mem, bytes);
  if (!p->copy) {
    kiln_mem_free(store->mem, p, sizeof *p);
    return kiln_status_oom();
  }
  __atomic_fetch_add(&store->bytes, bytes, __ATOMIC_RELAXED);
  p->from = kiln_memory_hold(t);
  kiln_status *status = fill(call, pack, p->from.data, p->copy);
  if (status) {
    destroy_packed(store, p);
    return status;
  }
  if (kiln_tensor_is_contiguous(t))
    kiln_memory_give_back(&p->from, (size_t)t->numel * kiln_tensor_item_size(t));
  __atomic_fetch_add(&store->made, 1, __ATOMIC_RELAXED);
  *out = p;
  return NULL;
}

/* Adds what was made; where another thread was faster, its copy is taken. */
static kiln_status *add(kiln_pack_store *store, const kiln_tensor *t, kiln__packed **made) {
  kiln_status *status = kiln_short_lock_take(&store->lock, store->maker);
  if (status) {
    destroy_packed(store, *made);
    return status;
  }
  kiln__packed *other = find_locked(store, &(*made)->pack, t), *unused = other ? *made : NULL;
  if (other) {
    *made = other;
  } else {
    kiln__packed **bucket = bucket_of(store, (*made)->from.data);
    (*made)->next = *bucket;
    *bucket = *made;
  }
  pthread_mutex_unlock(&store->lock);
  if (unused) destroy_packed(store, unused);
  return NULL;
}

/* In a child whose parent's other thread held the lock it is left alone. */
static void release(kiln_pack_store *store, kiln__packed *p) {
  kiln_status *locked = kiln_short_lock_take(&store->lock, store->maker);
  if (locked) {
    kiln_status_destroy(locked);
    return;
  }
  const bool last = --p->refs == 0;
  kiln__packed **link = bucket_of(store, p->from.data);
  while (last && *link != p) link = &(*link)->next;
  if (last) *link = p->next;
  pthread_mutex_unlock(&store->lock);
  if (last) destroy_packed(store, p);
}

/* A slot's hold on one of them. */
typedef struct holding {
  kiln_recalled entry; /* first */
  kiln_pack_store *store;
  kiln__packed *packed; /* retained */
} holding;

static void destroy_holding(void *entry) {
  holding *h = entry;
  kiln_pack_store *store = h->store;
  release(store, h->packed);
  kiln_mem_free(store->mem, h, sizeof *h);
}
static bool is_stale(const kiln_recalled *entry) {
  return kiln_memory_is_stale(&((const holding *)entry)->packed->from);
}
static const kiln_recall_kind kind = {is_stale, destroy_holding};

void kiln_pack_slot_release(kiln_pack_slot *slot) { kiln_recall_release(&slot->kept, &kind); }

/* The slot's copy of t; NULL: there is none. */
static const void *recall(const kiln_pack_slot *slot, const kiln_tensor *t) {
  for (kiln_recalled *e = kiln_recall_first(&slot->kept); e; e = kiln_recall_next(e)) {
    const kiln__packed *packed = ((const holding *)e)->packed;
    if (!kiln_memory_is(&packed->from, t)) continue;
    kiln_recall_found(e);
    return packed->copy;
  }
  return NULL;
}

/* What the store has, or is given now. */
static kiln_status *obtain(const kiln_call *call, kiln_pack_store *store,
                           const kiln_kernel_pack *pack, kiln_tensor *t, size_t bytes,
                           kiln__packed **out) {
  KILN_TRY(find(store, pack, t, out));
  if (*out) return NULL;
  KILN_TRY(make(call, store, pack, t, bytes, out));
  return add(store, t, out);
}

/* Adds that to the slot. */
static kiln_status *keep(const kiln_call *call, kiln_pack_slot *slot, const kiln_kernel_pack *pack,
                         kiln_tensor *t, size_t bytes) {
  kiln_pack_store *store = slot->store;
  holding *h = kiln_mem_alloc_zero(store->mem, sizeof *h);
  if (!h) return kiln_status_oom();
  kiln_status *status = obtain(call, store, pack, t, bytes, &h->packed);
  if (status) {
    kiln_mem_free(store->mem, h, sizeof *h);
    return status;
  }
  h->store = store;
  if (!kiln_recall_add(&slot->kept, &kind, call->epoch, &h->entry)) destroy_holding(h);
  return NULL;
}

kiln_status *kiln_pack_store_add(kiln_call *call, kiln_pack_store *store,
                                 const kiln_kernel_pack *pack, kiln_tensor *t,
                                 kiln__packed **out_held) {
  size_t bytes;
  KILN_TRY(bytes_of(call, pack, &bytes));
  return obtain(call, store, pack, t, bytes, out_held);
}
void kiln_pack_store_give(kiln_pack_store *store, kiln__packed *held) { release(store, held); }

/* Whether others than the call are to make it, and have not done so yet. */
static bool is_left(const kiln_call *call, const kiln_pack_slot *slot, const kiln_kernel_pack *pack,
                    const kiln_tensor *t, size_t bytes, bool is_wanted) {
  kiln__packed *made = NULL;
  if (!call->packer || bytes < KILN_PACK_BESIDE_BYTES || !kiln_storage_is_lent(t->storage))
    return false;
  kiln_status *status = find(slot->store, pack, t, &made);
  kiln_status_destroy(status);
  if (made) {
    release(slot->store, made);
    return false;
  }
  if (is_wanted) call->packer->ask(call->packer, slot->store, pack, t);
  return true;
}

size_t kiln_pack_slot_bytes(const kiln_pack_slot *slot) {
  size_t bytes = 0;
  for (kiln_recalled *e = kiln_recall_first(&slot->kept); e; e = kiln_recall_next(e))
    bytes += ((const holding *)e)->packed->bytes;
  return bytes;
}

const void *kiln_pack_find(const kiln_pack_slot *slot, const kiln_tensor *t, size_t *out_bytes) {
  for (kiln_recalled *e = kiln_recall_first(&slot->kept); e; e = kiln_recall_next(e)) {
    const kiln__packed *packed = ((const holding *)e)->packed;
    if (!kiln_memory_is(&packed->from, t)) continue;
    *out_bytes = packed->bytes;
    return packed->copy;
  }
  return NULL;
}

static kiln_status *lend(kiln_pack_store *store, const kiln_kernel_pack *pack, const kiln_tensor *t,
                         const void *copy, size_t bytes, kiln__packed **out) {
  kiln__packed *p = kiln_mem_alloc_zero(store->mem, sizeof *p);
  if (!p) return kiln_status_oom();
  *p = (kiln__packed){
      .refs = 1,
      .pack = kiln_pack_of(pack, t->numel, kiln_tensor_sizes(t), kiln_tensor_strides(t)),
      .from = kiln_memory_hold(t),
      .copy = (void *)(uintptr_t)copy,
      .bytes = bytes,
      .is_lent = true};
  p->pack.input = 0;
  *out = p;
  return add(store, t, out);
}

kiln_status *kiln_pack_give(kiln_epoch *epoch, kiln_pack_slot *slot, const kiln_kernel_pack *pack,
                            const kiln_tensor *t, const void *copy, size_t bytes) {
  kiln_pack_store *store = slot->store;
  holding *h = kiln_mem_alloc_zero(store->mem, sizeof *h);
  if (!h) return kiln_status_oom();
  h->store = store;
  kiln_status *status = lend(store, pack, t, copy, bytes, &h->packed);
  if (status) {
    kiln_mem_free(store->mem, h, sizeof *h);
  } else if (!kiln_recall_add(&slot->kept, &kind, epoch, &h->entry)) {
    destroy_holding(h);
  }
  return status;
}

kiln_status *kiln_pack_take(kiln_call *call, kiln_pack_slot *slot, const kiln_kernel_pack *pack,
                            kiln_tensor *t, const void **out_data, void **out_own,
                            size_t *out_bytes) {
  if (pack->of_tensor) slot = NULL; /* the next one may have other sizes */
  *out_own = NULL;
  *out_data = slot ? recall(slot, t) : NULL;
  if (__builtin_expect(*out_data != NULL, 1)) return NULL;
  kiln_kernel_pack same =
      kiln_pack_of(pack, t->numel, kiln_tensor_sizes(t), kiln_tensor_strides(t));
  same.input = 0;
  KILN_TRY(bytes_of(call, &same, out_bytes));
  KILN_TRY(kiln_budget_room(&call->budget, *out_bytes));
  const bool wanted = slot && kiln_memory_can_hold(t) &&
                      kiln_recall_wants(&slot->kept, kiln_memory_id(t), call->epoch);
  if (slot && is_left(call, slot, &same, t, *out_bytes, wanted)) return NULL;
  if (wanted) {
    const uint64_t begin = kiln_now_ns();
    KILN_TRY(keep(call, slot, &same, t, *out_bytes));
    call->waited_ns += kiln_now_ns() - begin;
    *out_data = recall(slot, t);
    if (*out_data) return NULL;
  }
  *out_own = kiln_cache_alloc(&call->cache, *out_bytes);
  if (!*out_own) return kiln_status_oom();
  kiln_status *status = fill(call, &same, kiln_tensor_data(t), *out_own);
  if (status) kiln_cache_free(&call->cache, *out_own, *out_bytes);
  if (status) *out_own = NULL;
  *out_data = *out_own;
  return status;
}
