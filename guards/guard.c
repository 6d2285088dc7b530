/* guard.c: makes guards: from tensor types to the words that runtime/guard.h compares. */
#include "guards/guards.h"

/* -- Words -- */

static void build_entry(kiln_arena *arena, const kiln_type *type, kiln_guard_entry *entry) {
  *entry = (kiln_guard_entry){0};
  const kiln_tensor_detail *d = type->detail;
  if (!d) return;
  kiln_tensor_key key = {0}, mask = {0};
  if (d->dtype != KILN_DTYPE_NONE) key.f.dtype = (int8_t)d->dtype, mask.f.dtype = -1;
  if (d->rank >= 0) key.f.rank = (uint8_t)d->rank, mask.f.rank = UINT8_MAX;
  if (d->requires_grad >= 0) {
    key.f.requires_grad = (uint8_t)d->requires_grad;
    mask.f.requires_grad = UINT8_MAX;
  }
  if (d->undefined >= 0) key.f.undefined = (uint8_t)d->undefined, mask.f.undefined = UINT8_MAX;
  if (d->device >= 0) {
    key.f.device_kind = d->device;
    key.f.device_index = d->device_index;
    mask.f.device_kind = -1;
    mask.f.device_index = -1;
  }
  mask.f.layout = KILN_LAYOUT_STRUCTURED; /* whose types are never recorded */
  entry->key_word = key.word;
  entry->key_mask = mask.word;
  if (!kiln_type_has_dims(type)) return;
  size_t rank = (size_t)d->rank;
  entry->rank = (uint8_t)d->rank;
  entry->check_dims = true;
  entry->some = !kiln_type_is_complete_tensor(type);
  entry->dims = KILN_NEW_ARRAY(arena, kiln_dim, 2 * rank + 1);
  for (size_t i = 0; i < rank; i++) {
    entry->dims[i] = d->sizes[i];
    entry->dims[rank + i] = d->strides[i];
  }
}

/* -- Symbols -- */

static const char *print_entry(kiln_arena *arena, const kiln_type *type) {
  kiln_text text = kiln_text_in(arena);
  kiln_type_print(&text, type, 4);
  return text.data;
}

static kiln_guard_order make_order(kiln_arena *arena, const kiln_dims *dims,
                                   const kiln_guard_place *bind, kiln_dim_order order) {
  const uint64_t symbols = kiln_dim_symbols(dims, order.less) | kiln_dim_symbols(dims, order.more);
  KILN_ASSERT(symbols);
  kiln_text text = kiln_text_in(arena);
  kiln_dim_order_print(&text, dims, order);
  return (kiln_guard_order){bind[__builtin_ctzll(symbols)], text.data};
}

/* Where each symbol is bound, and what the other dimensions must be. */
static kiln_guard_symbols *build_symbols(kiln_arena *arena, const kiln_dims *dims,
                                         const kiln_type *const *types,
                                         const kiln_guard_entry *entries, int count,
                                         const kiln_guard_checks *checks) {
  kiln_guard_symbols *s = KILN_NEW(arena, kiln_guard_symbols);
  kiln_guard_place *bind = KILN_NEW_ARRAY(arena, kiln_guard_place, KILN_GUARD_SYMBOLS);
  KILN_VEC(kiln_guard_place) relations = {0};
  KILN_VEC(kiln_dim) wanted = {0};
  const char **words = KILN_NEW_ARRAY(arena, const char *, count);
  uint64_t bound = 0;
  for (int i = 0; i < KILN_GUARD_SYMBOLS; i++) bind[i].entry = -1;
  for (int e = 0; e < count; e++) {
    if (entries[e].some) words[e] = print_entry(arena, types[e]);
    for (int i = 0; entries[e].some && i < 2 * entries[e].rank; i++) {
      const kiln_dim d = entries[e].dims[i];
      const int number = kiln_dim_is_symbol(d) ? kiln_dim_symbol_number(d) : KILN_GUARD_SYMBOLS;
      const kiln_guard_place place = {e, i};
      if (kiln_dim_is_number(d)) continue;
      if (number < KILN_GUARD_SYMBOLS && !(bound >> number & 1)) {
        bind[number] = place;
        bound |= UINT64_C(1) << number;
        if (kiln_dim_symbol_least(d) == 1) s->from_one |= UINT64_C(1) << number;
        if (number >= s->symbol_count) s->symbol_count = number + 1;
      } else {
        if (number < KILN_GUARD_SYMBOLS && kiln_dim_symbol_least(d) > 1)
          s->from_one &= ~(UINT64_C(1) << number);
        kiln_vec_push(arena, &relations, place);
        kiln_vec_push(arena, &wanted, d);
      }
    }
  }
  kiln_guard_order *made = KILN_NEW_ARRAY(arena, kiln_guard_order, KILN_DIMS_ASSUMED);
  const int order_count = checks ? checks->order_count : 0;
  for (int i = 0; i < order_count; i++) {
    made[i] = make_order(arena, dims, bind, checks->orders[i]);
    kiln_vec_push(arena, &wanted, checks->orders[i].less);
    kiln_vec_push(arena, &wanted, checks->orders[i].more);
  }
  s->orders = made;
  s->order_count = order_count;
  s->words = words;
  s->bind = bind;
  s->relations = relations.data;
  s->relation_count = relations.count;
  s->program = kiln_dim_program_create(arena, dims, wanted.data, wanted.count);
  KILN_ASSERT(s->program->symbol_count <= s->symbol_count);
  KILN_ASSERT(wanted.count <= KILN_GUARD_ROOM &&
              kiln_dim_program_room(s->program) <= KILN_GUARD_ROOM);
  return s;
}

/* -- Hashes -- */

static uint64_t hash_dims(uint64_t h, const int64_t *dims, int rank) {
  for (int i = 0; i < 2 * rank; i++) h = kiln_hash_mix(h, (uint64_t)dims[i]);
  return h;
}

uint64_t kiln_guard_hash(const kiln_ivalue *values, int count, bool grad_mode) {
  uint64_t h = (uint64_t)count;
  for (int i = 0; i < count; i++) {
    if (values[i].tag != KILN_TAG_TENSOR) {
      h = kiln_hash_mix(h, values[i].tag);
      continue;
    }
    const kiln_tensor *t = values[i].u.tensor;
    h = hash_dims(kiln_hash_mix(h, kiln_guard_word(t, grad_mode)), t->dims, kiln_tensor_rank(t));
  }
  return h;
}

/* Equal to that of values which are all as recorded, when every key word is whole and dims are set.
 */
static uint64_t entries_hash(const kiln_guard_entry *entries, int count) {
  uint64_t h = (uint64_t)count;
  for (int i = 0; i < count; i++) {
    h = hash_dims(kiln_hash_mix(h, entries[i].key_word), entries[i].dims, entries[i].rank);
  }
  return h;
}

/* -- Guards -- */

/* The chance of 2^32 that is nearest below. */
static uint32_t stress_of(double chance) {
  return chance <= 0 ? 0 : chance >= 1 ? UINT32_MAX : (uint32_t)(chance * 4294967295.0);
}

void kiln_guard_build(kiln_arena *arena, const kiln_type *const *types, int count,
                      const kiln_guard_checks *checks, kiln_guard_desc *out_guard) {
  *out_guard = (kiln_guard_desc){.count = count};
  out_guard->entries = KILN_NEW_ARRAY(arena, kiln_guard_entry, count + 1);
  kiln_operand *at = KILN_NEW_ARRAY(arena, kiln_operand, count + 1);
  const kiln_dims *dims = checks ? checks->dims : NULL;
  bool symbolic = false;
  for (int i = 0; i < count; i++) {
    build_entry(arena, types[i], &out_guard->entries[i]);
    at[i] = (kiln_operand)i;
    if (!out_guard->entries[i].some) continue;
    if (types[i]->detail->dims) dims = types[i]->detail->dims;
    symbolic = true;
  }
  if (symbolic)
    out_guard->symbols = build_symbols(arena, dims, types, out_guard->entries, count, checks);
  out_guard->at = at;
  out_guard->hash = entries_hash(out_guard->entries, count);
}

void kiln_guard_make(const kiln_guard_maker *maker, kiln_arena *arena,
                     const kiln_guard_checks *checks, const kiln_source_range *range,
                     kiln_guard_desc *out_guard) {
  kiln_guard_build(arena, checks->types.data, checks->types.count, checks, out_guard);
  out_guard->stress = stress_of(maker->stress);
  out_guard->hits = maker->counters;
  if (!out_guard->hits && maker->book) out_guard->hits = kiln_counter_book_new(maker->book, 2);
  out_guard->misses = out_guard->hits ? out_guard->hits + 1 : 0;
  out_guard->watch = kiln__guard_watch(maker, arena, checks, range);
}
