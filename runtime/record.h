/* record.h: kiln_type_record, plain data that PROFILE merges into. It says what flowed through one
 * use of a value: merged within a run (a loop passes several times), then over runs, by the
 * executor. It is bounded: a fixed size, whatever flows. */
#pragma once

#include "runtime/value.h"

enum { KILN_RECORD_RANK = 8 }; /* tensors of higher rank are recorded without sizes */

typedef struct kiln_type_record {
  uint32_t seen;       /* values that passed (saturating); 0: never reached */
  uint32_t seen_none;  /* how many were None */
  uint32_t seen_other; /* how many were neither None nor a tensor */
  /* All below is meaningful when a tensor was seen; -1 and NONE where values differed. */
  int16_t dtype;
  int8_t requires_grad, undefined;
  int8_t device_kind;
  int8_t rank; /* -1: differed, or above KILN_RECORD_RANK */
  int16_t device_index;
  bool strides_known;
  int64_t sizes[KILN_RECORD_RANK];   /* KILN_DIM_UNKNOWN where values differed */
  int64_t strides[KILN_RECORD_RANK]; /* likewise */
} kiln_type_record;

void kiln_type_record_init(kiln_type_record *record);
static inline bool kiln_type_record_has_tensor(const kiln_type_record *record) {
  return record->seen > record->seen_none && record->seen - record->seen_none > record->seen_other;
}
/* What the record says of its tensors; sizes and strides point into the record. */
kiln_tensor_detail kiln_type_record_detail(const kiln_type_record *record);
/* One value passes: a tensor, None, or anything else (counted only). */
void kiln_type_record_add(kiln_type_record *record, kiln_ivalue value, bool grad_mode);
/* Merges what another run saw. */
void kiln_type_record_merge(kiln_type_record *record, const kiln_type_record *other);
