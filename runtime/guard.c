/* guard.c: what TYPECHECK does with its words when they have to be hashed, or told. */
#include "runtime/guard.h"

bool kiln_guard_holds(const kiln_guard_desc *guard, const kiln_ivalue *values, bool grad_mode) {
  for (int i = 0; i < guard->count; i++) {
    if (!kiln_guard_entry_holds(&guard->entries[i], values[i], grad_mode)) return false;
  }
  return true;
}

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

uint64_t kiln_guard_entries_hash(const kiln_guard_entry *entries, int count) {
  uint64_t h = (uint64_t)count;
  for (int i = 0; i < count; i++) {
    h = hash_dims(kiln_hash_mix(h, entries[i].key_word), entries[i].dims, entries[i].rank);
  }
  return h;
}

/* -- In words -- */

static void detail_of_key(uint64_t word, kiln_tensor_detail *d) {
  kiln_tensor_key key = {.word = word};
  *d = KILN_TENSOR_DETAIL_ANY;
  d->dtype = key.f.dtype;
  d->rank = (int8_t)key.f.rank;
  d->requires_grad = (int8_t)key.f.requires_grad;
  d->undefined = (int8_t)key.f.undefined;
  d->device = key.f.device_kind;
  d->device_index = key.f.device_index;
}

/* Only what the guard looks at is told of what it expects. */
static void print_expected(kiln_text *text, const kiln_guard_entry *entry) {
  kiln_tensor_detail d;
  detail_of_key(entry->key_word, &d);
  kiln_tensor_key mask = {.word = entry->key_mask};
  int64_t unknown[KILN_MAX_RANK];
  for (int i = 0; i < KILN_MAX_RANK; i++) unknown[i] = KILN_DIM_UNKNOWN;
  if (!mask.f.dtype) d.dtype = KILN_DTYPE_NONE;
  if (!mask.f.rank) d.rank = -1;
  if (!mask.f.requires_grad) d.requires_grad = -1;
  if (!mask.f.device_kind) d.device = -1;
  d.sizes = entry->check_dims ? entry->dims : unknown;
  d.strides = entry->check_dims ? entry->dims + entry->rank : NULL;
  d.has_strides = entry->check_dims;
  kiln_tensor_detail_print(text, &d, 3);
}

static void print_given(kiln_text *text, kiln_ivalue v, bool grad_mode) {
  if (v.tag != KILN_TAG_TENSOR) {
    kiln_ivalue_type_name(text, v);
    return;
  }
  const kiln_tensor *t = v.u.tensor;
  kiln_tensor_detail d;
  detail_of_key(kiln_guard_word(t, grad_mode), &d);
  d.sizes = kiln_tensor_sizes(t);
  d.strides = kiln_tensor_strides(t);
  d.has_strides = true;
  kiln_tensor_detail_print(text, &d, 3);
}

static const char *layout_word(uint8_t layout) {
  switch ((kiln_layout_class)layout) {
    case KILN_LAYOUT_CONTIGUOUS: return "contiguous";
    case KILN_LAYOUT_CHANNELS_LAST: return "channels last";
    case KILN_LAYOUT_SPARSE: return "sparse";
    case KILN_LAYOUT_NESTED: return "nested";
    default: return "strided";
  }
}

int kiln_guard_explain(const kiln_guard_desc *guard, const kiln_ivalue *values, bool grad_mode,
                       kiln_text *expected, kiln_text *seen) {
  for (int i = 0; i < guard->count; i++) {
    const kiln_guard_entry *entry = &guard->entries[i];
    if (kiln_guard_entry_holds(entry, values[i], grad_mode)) continue;
    print_given(seen, values[i], grad_mode);
    print_expected(expected, entry);
    kiln_tensor_key mask = {.word = entry->key_mask}, key = {.word = entry->key_word};
    if (values[i].tag == KILN_TAG_TENSOR && mask.f.layout &&
        values[i].u.tensor->key.f.layout != key.f.layout) {
      kiln_text_printf(seen, ", %s", layout_word(values[i].u.tensor->key.f.layout));
      kiln_text_printf(expected, ", %s", layout_word(key.f.layout));
    }
    return i;
  }
  return -1;
}
