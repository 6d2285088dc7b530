/* guard.h: kiln_guard_desc, a guard in the plain words that a plan carries, and its check.
 *
 * A guard on one tensor is its key word and its dims block: a word compare and a block compare. An
 * undefined tensor passes only a guard that recorded an undefined one. `key_mask` leaves out the
 * parts of the word that are not guarded.
 *
 * The check is asked here and nowhere else, by TYPECHECK in a plan and by the dispatch to a
 * region's variants before one. How guards are made, explained and counted stands in guards/. */
#pragma once

#include "runtime/call.h"
#include "runtime/dim_program.h"
#include "runtime/operand.h"

typedef struct kiln_guard_entry {
  uint64_t key_word, key_mask;
  uint8_t rank;
  bool check_dims; /* sizes and strides */
  bool some;       /* of them: those that are numbers */
  kiln_dim *dims;  /* sizes[rank] then strides[rank]; in the plan's arena */
} kiln_guard_entry;

enum { KILN_GUARD_SYMBOLS = 64, KILN_GUARD_ROOM = 512 };
typedef struct kiln_guard_place {
  int entry, dim; /* in its `dims` */
} kiln_guard_place;
/* A relation of order: two results of the program, the first of which is at most the second. */
typedef struct kiln_guard_order {
  kiln_guard_place place; /* where its first symbol is bound */
  const char *words;      /* "s0 <= 64" */
} kiln_guard_order;
/* Of a guard for many sizes. A symbol is bound by the size where it stands first, and is what sizes
 * of symbols may be: 2 or more, of n0 1 or more. Every other dimension that is no number must be
 * what its expression makes of the symbols. x of [s0, s1] with strides [s1, 1] and y of [s0]: s0
 * and s1 are sizes of x; x's first stride must be s1, and y's size s0. */
typedef struct kiln_guard_symbols {
  int symbol_count;             /* at most KILN_GUARD_SYMBOLS */
  uint64_t from_one;            /* of them: a bit for each that may be 1 */
  const kiln_guard_place *bind; /* of each; entry -1: it is none of this guard's */
  int relation_count;
  const kiln_guard_place *relations;
  int order_count;
  const kiln_guard_order *orders;
  const kiln_dim_program *program; /* what relations must be, then two results of each order; room
                                    * and results within KILN_GUARD_ROOM */
  const char *const *words;        /* of each entry: its type; NULL where it has no symbols */
} kiln_guard_symbols;

typedef struct kiln_guard_desc {
  int count;
  uint32_t stress; /* chance of 2^32 that it fails although its types match */
  kiln_guard_entry *entries;
  const kiln_operand *at;            /* where the entries' values stand */
  const kiln_guard_symbols *symbols; /* NULL: there are none */
  int symbols_at;                    /* where its symbols stand in the frame's */
  uint64_t hash;                     /* of key words and dims */
  uint32_t hits, misses;             /* counters, runtime/counter.h */
  struct kiln_guard_watch *watch;    /* NULL: nobody is told of misses */
} kiln_guard_desc;

/* Who wants to know why a guard failed. Filled by guards/. */
typedef struct kiln_guard_watch {
  void (*missed)(struct kiln_guard_watch *self, const kiln_guard_desc *guard,
                 const kiln_ivalue *registers, const kiln_ivalue *constants, bool grad_mode);
} kiln_guard_watch;

/* A tensor's key word as a run sees it: without grad mode no tensor requires a gradient. */
static inline uint64_t kiln_guard_word(const kiln_tensor *t, bool grad_mode) {
  const kiln_tensor_key grad = {.f = {.requires_grad = 0xff}};
  return grad_mode ? t->key.word : t->key.word & ~grad.word;
}
static inline bool kiln_guard_entry_holds(const kiln_guard_entry *entry, const kiln_ivalue *v,
                                          bool grad_mode) {
  if (v->tag != KILN_TAG_TENSOR) return false;
  const kiln_tensor *t = v->u.tensor;
  if ((kiln_guard_word(t, grad_mode) ^ entry->key_word) & entry->key_mask) return false;
  if (!entry->check_dims) return true;
  if (__builtin_expect(!entry->some, 1))
    return memcmp(t->dims, entry->dims, 2 * sizeof(int64_t) * entry->rank) == 0;
  for (int i = 0; i < 2 * entry->rank; i++) {
    if (kiln_dim_is_number(entry->dims[i]) && entry->dims[i] != t->dims[i]) return false;
  }
  return true;
}
/* The dimension that is not what the symbols ask for; entry -1: there is none. All entries hold.
 * *out_order (may be NULL): the order that does not hold there, or -1. */
kiln_guard_place kiln_guard_unbound(const kiln_guard_desc *guard, const kiln_ivalue *registers,
                                    const kiln_ivalue *constants, int *out_order);
/* The symbols of a guard that holds. */
void kiln_guard_bind(const kiln_guard_desc *guard, const kiln_ivalue *registers,
                     const kiln_ivalue *constants, int64_t *out_symbols);
/* All entries, in order. */
static inline bool kiln_guard_holds(const kiln_guard_desc *guard, const kiln_ivalue *registers,
                                    const kiln_ivalue *constants, bool grad_mode) {
  for (int i = 0; i < guard->count; i++) {
    const kiln_ivalue *v = kiln_operand_read(guard->at[i], registers, constants);
    if (!kiln_guard_entry_holds(&guard->entries[i], v, grad_mode)) return false;
  }
  return !guard->symbols || kiln_guard_unbound(guard, registers, constants, NULL).entry < 0;
}
/* The same for a run, which flag stress_bailout may let fail. Counts nothing. */
static inline bool kiln_guard_check(const kiln_guard_desc *guard, const kiln_ivalue *registers,
                                    const kiln_ivalue *constants, kiln_call *call) {
  if (!kiln_guard_holds(guard, registers, constants, call->grad_mode)) return false;
  if (__builtin_expect(guard->stress == 0, 1)) return true;
  return (uint32_t)kiln_hash_mix(call->stressed++, guard->hash) >= guard->stress;
}
