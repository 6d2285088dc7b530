/* guard.h: kiln_guard_desc, plain words that TYPECHECK compares with tensors.
 *
 * A static guard on one tensor is its key word and its dims block: a word compare and a memcmp.
 * An undefined tensor passes only a guard that recorded an undefined one. `key_mask` leaves out the
 * parts of the word that are not guarded. */
#ifndef KILN_RUNTIME_GUARD_H
#define KILN_RUNTIME_GUARD_H

#include "runtime/value.h"

typedef struct kiln_guard_entry {
  uint64_t key_word, key_mask;
  uint8_t rank;
  bool check_dims; /* sizes and strides */
  int64_t *dims;   /* sizes[rank] then strides[rank]; in the plan's arena */
} kiln_guard_entry;

typedef struct kiln_guard_desc {
  int count;
  kiln_guard_entry *entries;
  uint64_t hash;                  /* of key words and dims: dispatch */
  uint32_t hits, misses;          /* counters, runtime/counter.h */
  struct kiln_guard_watch *watch; /* NULL: nobody is told of misses */
} kiln_guard_desc;

/* Who wants to know why a guard failed. Filled by jit. */
typedef struct kiln_guard_watch {
  void (*missed)(struct kiln_guard_watch *self, const kiln_guard_desc *guard,
                 const kiln_ivalue *values, bool grad_mode);
} kiln_guard_watch;

/* A tensor's key word as a run sees it: without grad mode no tensor requires a gradient. */
static inline uint64_t kiln_guard_word(const kiln_tensor *t, bool grad_mode) {
  const kiln_tensor_key grad = {.f = {.requires_grad = 0xff}};
  return grad_mode ? t->key.word : t->key.word & ~grad.word;
}
static inline bool kiln_guard_entry_holds(const kiln_guard_entry *entry, kiln_ivalue v,
                                          bool grad_mode) {
  if (v.tag != KILN_TAG_TENSOR) return false;
  const kiln_tensor *t = v.u.tensor;
  if ((kiln_guard_word(t, grad_mode) ^ entry->key_word) & entry->key_mask) return false;
  return !entry->check_dims || memcmp(t->dims, entry->dims, 2 * sizeof(int64_t) * entry->rank) == 0;
}
/* The chance of 2^32 that a guard fails although its types match. */
static inline uint32_t kiln_guard_stress(double chance) {
  return chance <= 0 ? 0 : chance >= 1 ? UINT32_MAX : (uint32_t)(chance * 4294967295.0);
}
/* All entries, in order. Counts nothing. */
bool kiln_guard_holds(const kiln_guard_desc *guard, const kiln_ivalue *values, bool grad_mode);
/* The hash that kiln_guard_desc.hash has for these values. Non-tensors count by tag. */
uint64_t kiln_guard_hash(const kiln_ivalue *values, int count, bool grad_mode);
/* The same from a guard's entries, for its maker: equal to kiln_guard_hash of values that are all
 * as recorded, when every key word is whole and dims are set. */
uint64_t kiln_guard_entries_hash(const kiln_guard_entry *entries, int count);
/* The first entry that fails, -1 when all hold; and in words what it expects ("Float(4, 3, …)") and
 * what it saw, for logs and explain. */
int kiln_guard_explain(const kiln_guard_desc *guard, const kiln_ivalue *values, bool grad_mode,
                       kiln_text *expected, kiln_text *seen);

#endif
