/* record.c: merging what flowed through a use. A property is kept while all tensors that were seen
 * agree on it, and forgotten at the first that differs. */
#include "runtime/record.h"

void kiln_type_record_init(kiln_type_record *record) { *record = (kiln_type_record){0}; }

static void from_tensor(kiln_type_record *r, const kiln_tensor *t, bool grad_mode) {
  *r = (kiln_type_record){.seen = 1};
  int rank = kiln_tensor_rank(t);
  if (t->key.f.layout >= KILN_LAYOUT_SPARSE) { /* nothing may be built on what its key says */
    *r = (kiln_type_record){.seen = 1, .rank = -1, .dtype = KILN_DTYPE_NONE, .undefined = -1};
    r->requires_grad = r->device_kind = -1, r->device_index = -1;
    return;
  }
  r->dtype = (int16_t)kiln_tensor_dtype(t);
  r->requires_grad = t->key.f.requires_grad && grad_mode;
  r->undefined = (int8_t)t->key.f.undefined;
  r->device_kind = t->key.f.device_kind;
  r->device_index = t->key.f.device_index;
  r->rank = -1;
  if (rank > KILN_RECORD_RANK || kiln_tensor_is_undefined(t)) return;
  r->rank = (int8_t)rank;
  r->strides_known = true;
  memcpy(r->sizes, kiln_tensor_sizes(t), sizeof(int64_t) * (size_t)rank);
  memcpy(r->strides, kiln_tensor_strides(t), sizeof(int64_t) * (size_t)rank);
}

static uint32_t add_saturating(uint32_t a, uint32_t b) {
  return a > UINT32_MAX - b ? UINT32_MAX : a + b;
}

static void merge_dims(int64_t *dims, const int64_t *other, int rank) {
  for (int i = 0; i < rank; i++) {
    if (dims[i] != other[i]) dims[i] = KILN_DIM_UNKNOWN;
  }
}

/* The tensor properties of two records that both have seen tensors. An undefined tensor agrees with
 * a defined one on nothing but requires_grad. */
static void merge_tensor(kiln_type_record *r, const kiln_type_record *o) {
  if (r->dtype != o->dtype) r->dtype = KILN_DTYPE_NONE;
  if (r->requires_grad != o->requires_grad) r->requires_grad = -1;
  if (r->undefined != o->undefined) r->undefined = -1;
  if (r->device_kind != o->device_kind) r->device_kind = -1, r->device_index = -1;
  if (r->device_index != o->device_index) r->device_kind = -1, r->device_index = -1;
  if (r->rank != o->rank) r->rank = -1;
  if (r->rank < 0 || !o->strides_known) r->strides_known = false;
  if (r->rank < 0) return;
  merge_dims(r->sizes, o->sizes, r->rank);
  if (r->strides_known) merge_dims(r->strides, o->strides, r->rank);
}

void kiln_type_record_merge(kiln_type_record *record, const kiln_type_record *other) {
  uint32_t seen = add_saturating(record->seen, other->seen);
  uint32_t seen_none = add_saturating(record->seen_none, other->seen_none);
  uint32_t seen_other = add_saturating(record->seen_other, other->seen_other);
  bool mine = kiln_type_record_has_tensor(record), theirs = kiln_type_record_has_tensor(other);
  if (mine && theirs) {
    merge_tensor(record, other);
  } else if (theirs) {
    *record = *other;
  }
  record->seen = seen;
  record->seen_none = seen_none;
  record->seen_other = seen_other;
}

void kiln_type_record_add(kiln_type_record *record, kiln_ivalue value, bool grad_mode) {
  kiln_type_record one = {.seen = 1};
  if (value.tag == KILN_TAG_TENSOR) {
    from_tensor(&one, value.u.tensor, grad_mode);
  } else if (value.tag == KILN_TAG_NONE) {
    one.seen_none = 1;
  } else {
    one.seen_other = 1;
  }
  kiln_type_record_merge(record, &one);
}

kiln_tensor_detail kiln_type_record_detail(const kiln_type_record *record) {
  kiln_tensor_detail d = KILN_TENSOR_DETAIL_ANY;
  if (!kiln_type_record_has_tensor(record)) return d;
  d.dtype = record->dtype;
  d.requires_grad = record->requires_grad;
  d.undefined = record->undefined;
  d.device = record->device_kind;
  d.device_index = record->device_index;
  d.rank = record->rank;
  d.has_strides = record->strides_known && record->rank >= 0;
  d.sizes = record->sizes;
  d.strides = record->strides;
  return d;
}
