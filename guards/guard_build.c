/* guard_build.c: from tensor types to the words that a guard compares. */
#include "guards/guards.h"

static void build_entry(kiln_arena *arena, const kiln_type *type, kiln_guard_entry *entry) {
  *entry = (kiln_guard_entry){0};
  const kiln_tensor_detail *d = type->detail;
  if (type->kind != KILN_TYPE_TENSOR || !d) return;
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
  if (mask.word) mask.f.layout = KILN_LAYOUT_STRUCTURED; /* whose types are never recorded */
  entry->key_word = key.word;
  entry->key_mask = mask.word;
  if (!kiln_type_is_complete_tensor(type)) return;
  size_t rank = (size_t)d->rank;
  entry->rank = (uint8_t)d->rank;
  entry->check_dims = true;
  entry->dims = KILN_NEW_ARRAY(arena, int64_t, 2 * rank + 1);
  if (rank) {
    memcpy(entry->dims, d->sizes, rank * sizeof *entry->dims);
    memcpy(entry->dims + rank, d->strides, rank * sizeof *entry->dims);
  }
}

void kiln_guard_build(kiln_arena *arena, const kiln_type *const *types, int count,
                      kiln_guard_desc *out_guard) {
  *out_guard = (kiln_guard_desc){.count = count};
  out_guard->entries = KILN_NEW_ARRAY(arena, kiln_guard_entry, count + 1);
  for (int i = 0; i < count; i++) build_entry(arena, types[i], &out_guard->entries[i]);
  out_guard->hash = kiln_guard_entries_hash(out_guard->entries, count);
}
