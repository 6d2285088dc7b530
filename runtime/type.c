/* type.c: tables of interned types, and the makers.
 *
 * Hash-consing: a composite type is looked up by its kind, the addresses of its parts and its
 * names, in the one table that it can live in. Types without parts are static, shared by all
 * tables.
 *
 * Locks. Each table has one, held for a lookup or one making at a time, never two at once. Where
 * memory is taken the unlocking is a cleanup of the scope. */
#include "runtime/type.h"

#include <pthread.h>

#include "runtime/type_internal.h"
#include "runtime/type_weight.h"

typedef struct interned {
  kiln_type type; /* first: what has a table is one of these */
  uint32_t weight;
  bool shaped;
  uint64_t hash;
  struct interned *next;
} interned;

struct kiln_type_table {
  kiln_mem *mem; /* retained */
  kiln_arena *arena;
  kiln_type_table *parent, *root; /* borrowed: parents outlive their children */
  int depth;
  pthread_mutex_t lock;
  interned **buckets;
  uint32_t bucket_count, count;
  kiln_map names;   /* nominal types and NamedTuples by qualified name */
  kiln_dims *dims;  /* made when first asked for */
  uint32_t next_id; /* atomic; the root's serves the chain */
};

/* -- Tables -- */

kiln_status *kiln_type_table_create(kiln_mem *mem, kiln_type_table *parent,
                                    kiln_type_table **out_table) {
  kiln_type_table *table = kiln_mem_alloc_zero(mem, sizeof *table);
  if (!table) return kiln_status_oom();
  kiln_status *status = kiln_arena_create(mem, &table->arena);
  if (status) {
    kiln_mem_free(mem, table, sizeof *table);
    return status;
  }
  kiln_mem_retain(mem);
  table->mem = mem;
  table->parent = parent;
  table->root = parent ? parent->root : table;
  table->depth = parent ? parent->depth + 1 : 0;
  table->next_id = KILN_TYPE_VAR + 1;
  pthread_mutex_init(&table->lock, NULL);
  table->names = kiln_map_in(table->arena);
  *out_table = table;
  return NULL;
}

void kiln_type_table_destroy(kiln_type_table *table) {
  if (!table) return;
  kiln_mem *mem = table->mem;
  pthread_mutex_destroy(&table->lock);
  kiln_arena_destroy(table->arena);
  kiln_mem_free(mem, table, sizeof *table);
  kiln_mem_release(mem);
}

kiln_arena *kiln_type_table_arena(kiln_type_table *table) { return table->arena; }

const kiln_type **kiln_type_room_open(kiln_type_room *room, kiln_type_table *table, int64_t count) {
  const bool few = count <= (int64_t)(sizeof room->few / sizeof *room->few);
  room->arena = few ? NULL : kiln_arena_scoped(kiln_arena_mem(table->arena));
  return few ? room->few : KILN_NEW_ARRAY(room->arena, const kiln_type *, count);
}
void kiln_type_room_close(kiln_type_room *room) { kiln_arena_destroy(room->arena); }

kiln_dims *kiln_type_table_dims(kiln_type_table *table) {
  if (!table->dims) table->dims = kiln_dims_create(table->arena);
  return table->dims;
}

static void unlock(void *table) { pthread_mutex_unlock(&((kiln_type_table *)table)->lock); }

/* For what takes memory. */
static void lock(kiln_type_table *table, kiln_cleanup *unlocking) {
  pthread_mutex_lock(&table->lock);
  kiln_scope_defer(unlocking, unlock, table);
}
static void give_back(kiln_type_table *table, kiln_cleanup *unlocking) {
  kiln_scope_undefer(unlocking);
  unlock(table);
}

bool kiln__type_table_parse_dim(kiln_type_table *table, kiln_str *text, kiln_dim *out_dim,
                                const kiln_dims **out_dims) {
  kiln_cleanup unlocking;
  lock(table, &unlocking);
  kiln_dims *dims = kiln_type_table_dims(table);
  const bool is_dim = kiln_dim_parse(dims, text, out_dim);
  give_back(table, &unlocking);
  *out_dims = dims;
  return is_dim;
}

void *kiln__type_table_alloc(kiln_type_table *table, size_t size) {
  kiln_cleanup unlocking;
  lock(table, &unlocking);
  void *block = kiln_arena_alloc(table->arena, size);
  give_back(table, &unlocking);
  return block;
}

/* -- Layouts -- */

void kiln_physical_order(kiln_physical physical, int rank, int *out_order) {
  const bool last = kiln_physical_is_channels_last((int)physical) && rank > 2;
  for (int i = 0; i < rank; i++) out_order[i] = !last || i == 0 ? i : i == rank - 1 ? 1 : i + 1;
}

void kiln_physical_strides(kiln_physical physical, int rank, const int64_t *sizes,
                           int64_t *out_strides) {
  int order[KILN_MAX_RANK];
  int64_t step = 1;
  kiln_physical_order(physical, rank, order);
  for (int i = rank - 1; i >= 0; i--) {
    out_strides[order[i]] = step;
    step *= sizes[order[i]] + (order[i] >= 2 ? 2 * kiln_physical_border((int)physical) : 0);
  }
}

void kiln_physical_dims(kiln_dims *dims, kiln_physical physical, int rank, const kiln_dim *sizes,
                        kiln_dim *out_strides) {
  const int64_t zeros = 2 * kiln_physical_border((int)physical);
  int order[KILN_MAX_RANK];
  kiln_dim step = 1;
  kiln_physical_order(physical, rank, order);
  for (int i = rank - 1; i >= 0; i--) {
    const kiln_dim size = sizes[order[i]];
    out_strides[order[i]] = step;
    step = kiln_dim_product(dims, step, order[i] >= 2 ? kiln_dim_plus(dims, size, zeros) : size);
  }
}

void kiln_tensor_detail_strides(const kiln_tensor_detail *d, int64_t *out_strides) {
  if (d->physical) {
    kiln_physical_strides((kiln_physical)d->physical, d->rank, d->sizes, out_strides);
  } else if (d->rank > 0) {
    memcpy(out_strides, d->strides, sizeof *out_strides * (size_t)d->rank);
  }
}

/* -- Interning -- */

static bool same_detail(const kiln_tensor_detail *a, const kiln_tensor_detail *b) {
  if (!a || !b) return a == b;
  if (a->dtype != b->dtype || a->rank != b->rank || a->requires_grad != b->requires_grad ||
      a->undefined != b->undefined || a->device != b->device ||
      a->device_index != b->device_index || a->physical != b->physical ||
      a->has_strides != b->has_strides || a->dims != b->dims) {
    return false;
  }
  if (a->rank <= 0) return true;
  size_t bytes = sizeof(int64_t) * (size_t)a->rank;
  return memcmp(a->sizes, b->sizes, bytes) == 0 &&
         (!a->has_strides || memcmp(a->strides, b->strides, bytes) == 0);
}

static uint64_t hash_detail(uint64_t h, const kiln_tensor_detail *d) {
  h = kiln_hash_mix(h, (uint64_t)d->dtype);
  h = kiln_hash_mix(h, (uint64_t)d->rank);
  h = kiln_hash_mix(h, (uint64_t)(d->requires_grad * 64 + d->undefined * 8 + d->has_strides));
  h = kiln_hash_mix(h, (uint64_t)(d->device * 65536 + d->device_index));
  h = kiln_hash_mix(h, (uint64_t)d->physical);
  for (int i = 0; i < d->rank; i++) {
    h = kiln_hash_mix(h, (uint64_t)d->sizes[i]);
    if (d->has_strides) h = kiln_hash_mix(h, (uint64_t)d->strides[i]);
  }
  return h;
}

static bool same_type(const kiln_type *a, const kiln_type *b) {
  if (a->kind != b->kind || a->elem_count != b->elem_count || !a->names != !b->names ||
      !kiln_str_equal(a->name, b->name) || !same_detail(a->detail, b->detail)) {
    return false;
  }
  for (int i = 0; i < a->elem_count; i++) {
    if (a->elems[i] != b->elems[i]) return false;
    if (a->names && !kiln_str_equal(a->names[i], b->names[i])) return false;
  }
  return true;
}

static uint64_t hash_type(uint64_t seed, const kiln_type *t) {
  uint64_t h = kiln_hash_mix(seed + (uint64_t)t->kind, (uint64_t)t->elem_count);
  for (int i = 0; i < t->elem_count; i++) {
    h = kiln_hash_mix(h, (uint64_t)(uintptr_t)t->elems[i]);
    if (t->names) h = kiln_hash_mix(h, kiln_hash_bytes(seed, t->names[i].data, t->names[i].len));
  }
  if (t->name.len > 0) h = kiln_hash_mix(h, kiln_hash_bytes(seed, t->name.data, t->name.len));
  return t->detail ? hash_detail(h, t->detail) : h;
}

static const kiln_type *lookup(const kiln_type_table *table, const kiln_type *proto,
                               uint64_t hash) {
  if (table->bucket_count == 0) return NULL;
  for (interned *i = table->buckets[hash & (table->bucket_count - 1)]; i; i = i->next) {
    if (i->hash == hash && same_type(&i->type, proto)) return &i->type;
  }
  return NULL;
}

static const kiln_type *lookup_locked(kiln_type_table *table, const kiln_type *proto,
                                      uint64_t hash) {
  pthread_mutex_lock(&table->lock);
  const kiln_type *found = lookup(table, proto, hash);
  pthread_mutex_unlock(&table->lock);
  return found;
}

static void grow_buckets(kiln_type_table *table) {
  uint32_t count = table->bucket_count ? 2 * table->bucket_count : 64;
  interned **buckets = KILN_NEW_ARRAY(table->arena, interned *, count);
  for (uint32_t b = 0; b < table->bucket_count; b++) {
    for (interned *i = table->buckets[b], *next; i; i = next) {
      next = i->next;
      i->next = buckets[i->hash & (count - 1)];
      buckets[i->hash & (count - 1)] = i;
    }
  }
  table->buckets = buckets;
  table->bucket_count = count;
}

static const kiln_tensor_detail *copy_detail(kiln_arena *arena, const kiln_tensor_detail *from) {
  kiln_tensor_detail *to = KILN_NEW(arena, kiln_tensor_detail);
  *to = *from;
  size_t bytes = sizeof(int64_t) * (size_t)(from->rank > 0 ? from->rank : 0);
  to->sizes = bytes ? (const int64_t *)kiln_arena_copy(arena, from->sizes, bytes) : NULL;
  to->strides = bytes && from->has_strides
                    ? (const int64_t *)kiln_arena_copy(arena, from->strides, bytes)
                    : NULL;
  return to;
}

uint32_t kiln_type_weight(const kiln_type *type) {
  return type->table ? ((const interned *)type)->weight : 1;
}

bool kiln_type_is_shaped(const kiln_type *type) {
  return type->table && ((const interned *)type)->shaped;
}

/* A copy of `proto` and all it points to, not in the buckets yet. */
static interned *copy_type(kiln_type_table *table, const kiln_type *proto) {
  kiln_arena *arena = table->arena;
  interned *node = KILN_NEW(arena, interned);
  kiln_type *t = &node->type;
  *t = *proto;
  t->id = __atomic_fetch_add(&table->root->next_id, 1, __ATOMIC_RELAXED);
  t->table = table;
  size_t n = (size_t)proto->elem_count;
  if (n > 0) {
    t->elems = (const kiln_type **)kiln_arena_copy(arena, proto->elems, n * sizeof *t->elems);
  }
  if (proto->names) {
    kiln_str *names = KILN_NEW_ARRAY(arena, kiln_str, n);
    for (size_t i = 0; i < n; i++) names[i] = kiln_arena_str(arena, proto->names[i]);
    t->names = names;
  }
  t->name = kiln_arena_str(arena, proto->name);
  if (proto->detail) t->detail = copy_detail(arena, proto->detail);
  uint64_t weight = 1;
  node->shaped = t->detail != NULL;
  for (size_t i = 0; i < n; i++) {
    weight += kiln_type_weight(t->elems[i]);
    node->shaped = node->shaped || kiln_type_is_shaped(t->elems[i]);
  }
  if (weight > KILN_TYPE_MAX_WEIGHT) kiln_scope_oom();
  node->weight = (uint32_t)weight;
  return node;
}

/* Under the lock. */
static const kiln_type *make(kiln_type_table *table, const kiln_type *proto, uint64_t hash) {
  const kiln_type *found = lookup(table, proto, hash); /* someone may have been faster */
  if (found) return found;
  if (table->count >= table->bucket_count) grow_buckets(table);
  interned *node = copy_type(table, proto);
  if (node->type.names && node->type.name.len > 0) {
    kiln_map_set(&table->names, node->type.name, &node->type);
  }
  node->hash = hash;
  node->next = table->buckets[hash & (table->bucket_count - 1)];
  table->buckets[hash & (table->bucket_count - 1)] = node;
  table->count++;
  return &node->type;
}

/* The interned type equal to `proto`: found in `home` or its parents, else made in `home`. */
static const kiln_type *intern(kiln_type_table *home, const kiln_type *proto) {
  KILN_ASSERT(home);
  uint64_t hash = hash_type(kiln_mem_hash_seed(home->mem), proto);
  for (kiln_type_table *t = home; t; t = t->parent) {
    const kiln_type *found = lookup_locked(t, proto, hash);
    if (found) return found;
  }
  kiln_cleanup unlocking;
  lock(home, &unlocking);
  const kiln_type *made = make(home, proto, hash);
  give_back(home, &unlocking);
  return made;
}

/* The deepest table that a part lives in; `floor` when all are above it. */
static kiln_type_table *home_of(kiln_type_table *floor, const kiln_type *const *elems, int count) {
  kiln_type_table *home = floor;
  for (int i = 0; i < count; i++) {
    const kiln_type_table *t = elems[i]->table;
    if (t && t->depth > home->depth) home = (kiln_type_table *)t;
  }
  return home;
}

/* -- Makers -- */

#define BASIC(kind_name) \
  [KILN_TYPE_##kind_name] = {.kind = KILN_TYPE_##kind_name, .id = KILN_TYPE_##kind_name}
static const kiln_type basic_types[] = {
    BASIC(TENSOR),    BASIC(INT),       BASIC(FLOAT),    BASIC(BOOL),     BASIC(COMPLEX),
    BASIC(NUMBER),    BASIC(STR),       BASIC(NONE),     BASIC(DEVICE),   BASIC(GENERATOR),
    BASIC(STREAM),    BASIC(STORAGE),   BASIC(QSCHEME),  BASIC(ANY),      BASIC(ANY_LIST),
    BASIC(ANY_TUPLE), BASIC(ANY_CLASS), BASIC(ANY_ENUM), BASIC(FUNCTION), BASIC(CAPSULE),
};

const kiln_type *kiln_type_basic(kiln_type_kind kind) {
  KILN_ASSERT(kind <= KILN_TYPE_CAPSULE);
  return &basic_types[kind];
}

const kiln_type *kiln__type_make(kiln_type_table *table, kiln_type_kind kind,
                                 const kiln_type *const *elems, int count) {
  kiln_type proto = {.kind = kind, .elem_count = count, .elems = (const kiln_type **)elems};
  return intern(home_of(table->root, elems, count), &proto);
}

const kiln_type *kiln_type_list(kiln_type_table *table, const kiln_type *elem) {
  return kiln__type_make(table, KILN_TYPE_LIST, &elem, 1);
}

const kiln_type *kiln_type_wrap(kiln_type_table *table, kiln_type_kind kind,
                                const kiln_type *elem) {
  KILN_ASSERT(kind == KILN_TYPE_FUTURE || kind == KILN_TYPE_AWAIT || kind == KILN_TYPE_RREF);
  return kiln__type_make(table, kind, &elem, 1);
}

const kiln_type *kiln_type_future(kiln_type_table *table, const kiln_type *elem) {
  return kiln_type_wrap(table, KILN_TYPE_FUTURE, elem);
}

const kiln_type *kiln_type_dict(kiln_type_table *table, const kiln_type *key,
                                const kiln_type *value) {
  const kiln_type *elems[2] = {key, value};
  return kiln__type_make(table, KILN_TYPE_DICT, elems, 2);
}

const kiln_type *kiln_type_tuple(kiln_type_table *table, const kiln_type *const *elems, int count) {
  return kiln__type_make(table, KILN_TYPE_TUPLE, elems, count);
}

const kiln_type *kiln_type_named_tuple(kiln_type_table *table, kiln_str qualname,
                                       const kiln_str *names, const kiln_type *const *elems,
                                       int count) {
  kiln_type proto = {.kind = KILN_TYPE_TUPLE,
                     .elem_count = count,
                     .elems = (const kiln_type **)elems,
                     .names = names,
                     .name = qualname};
  return intern(home_of(table, elems, count), &proto);
}

const kiln_type *kiln_type_optional(kiln_type_table *table, const kiln_type *elem) {
  const kiln_type *none = kiln_type_basic(KILN_TYPE_NONE);
  switch (elem->kind) {
    case KILN_TYPE_NONE:
    case KILN_TYPE_ANY:
    case KILN_TYPE_OPTIONAL: return elem;
    case KILN_TYPE_UNION: return kiln_type_union(table, (const kiln_type *[]){elem, none}, 2);
    default: return kiln__type_make(table, KILN_TYPE_OPTIONAL, &elem, 1);
  }
}

const kiln_type *kiln_type_var(kiln_type_table *table, kiln_str name) {
  return intern(table->root, &(kiln_type){.kind = KILN_TYPE_VAR, .name = name});
}

static bool has_expression(int rank, const kiln_dim *dims) {
  for (int i = 0; i < rank; i++) {
    if (kiln_dim_is_expression(dims[i])) return true;
  }
  return false;
}

static const kiln_dim *copy_dims(kiln_type_table *table, const kiln_dims *from, int rank,
                                 const kiln_dim *dims, kiln_dim *copy) {
  for (int i = 0; i < rank; i++) copy[i] = kiln_dim_copy(table->dims, from, dims[i]);
  return copy;
}

/* A tensor's detail with all its expressions in the table's dims: `sizes` and `strides` have room
 * for what is copied. Where there are none it has no dims. */
static void take_dims(kiln_type_table *table, kiln_tensor_detail *d, kiln_dim *sizes,
                      kiln_dim *strides) {
  const bool in_sizes = d->rank > 0 && has_expression(d->rank, d->sizes);
  const bool in_strides = d->has_strides && has_expression(d->rank, d->strides);
  if (!in_sizes && !in_strides) {
    d->dims = NULL;
  } else if (d->dims != table->dims) {
    kiln_cleanup unlocking;
    lock(table, &unlocking);
    kiln_dims *dims = kiln_type_table_dims(table);
    d->sizes = copy_dims(table, d->dims, d->rank, d->sizes, sizes);
    if (d->has_strides) d->strides = copy_dims(table, d->dims, d->rank, d->strides, strides);
    d->dims = dims;
    give_back(table, &unlocking);
  }
}

const kiln_type *kiln_type_tensor(kiln_type_table *table, const kiln_tensor_detail *detail) {
  kiln_dim sizes[KILN_MAX_RANK], strides[KILN_MAX_RANK];
  kiln_tensor_detail d = *detail;
  if (d.rank < 0) d.sizes = NULL;
  if (d.rank < 0 || !d.has_strides) d.strides = NULL, d.has_strides = false;
  if (d.device < 0) d.device_index = -1;
  bool some =
      d.rank == 0; /* strides that are all unknown are no strides; those of rank 0 are known */
  for (int i = 0; i < d.rank && d.has_strides; i++) some |= d.strides[i] != KILN_DIM_UNKNOWN;
  d.has_strides = some;
  take_dims(table, &d, sizes, strides);
  if (d.dtype == KILN_DTYPE_NONE && d.rank < 0 && d.requires_grad < 0 && d.undefined < 0 &&
      d.device < 0) {
    return kiln_type_basic(KILN_TYPE_TENSOR);
  }
  return intern(table, &(kiln_type){.kind = KILN_TYPE_TENSOR, .detail = &d});
}

kiln_type *kiln_type_nominal(kiln_type_table *table, kiln_type_kind kind, kiln_str qualname) {
  const kiln_type proto = {.kind = kind, .name = qualname};
  kiln_cleanup unlocking;
  lock(table, &unlocking);
  kiln_class_info *cls = KILN_NEW(table->arena, kiln_class_info);
  kiln_type *type = &copy_type(table, &proto)->type;
  cls->qualname = type->name;
  cls->is_interface = kind == KILN_TYPE_INTERFACE;
  type->cls = cls;
  kiln_map_set(&table->names, type->name, type);
  give_back(table, &unlocking);
  return type;
}

const kiln_type *kiln_type_find(const kiln_type_table *table, kiln_str qualname) {
  for (const kiln_type_table *t = table; t; t = t->parent) {
    pthread_mutex_t *lock = (pthread_mutex_t *)&t->lock;
    pthread_mutex_lock(lock);
    const kiln_type *found = kiln_map_find(&t->names, qualname);
    pthread_mutex_unlock(lock);
    if (found) return found;
  }
  return NULL;
}

const kiln_type *kiln__type_find_interface(const kiln_type_table *table, kiln_str atom) {
  const kiln_type *found = NULL;
  for (const kiln_type_table *t = table; t && !found; t = t->parent) {
    pthread_mutex_t *lock = (pthread_mutex_t *)&t->lock;
    pthread_mutex_lock(lock);
    for (int i = 0; i < t->names.count && !found; i++) {
      const kiln_type *type = t->names.entries[i].value;
      if (!type || type->kind != KILN_TYPE_INTERFACE || type->name.len <= atom.len) continue;
      const char *tail = type->name.data + type->name.len - atom.len;
      if (tail[-1] == '.' && memcmp(tail, atom.data, atom.len) == 0) found = type;
    }
    pthread_mutex_unlock(lock);
  }
  return found;
}
