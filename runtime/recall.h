/* recall.h: what a plan has made of weights (kept results, packed copies), found again by the
 * weights' memory.
 *
 * A place keeps entries for the last few settings of its weights. The first weights that it meets
 * get one; others do when they come a second time in a row, so weights that are set before every
 * call are not kept in vain. An entry is published by one store and does not change, so a run that
 * has found it may use it without counting references until it leaves its epoch (base/epoch.h).
 *
 * When one is added, those go whose weights are gone or were written. Where four are left, one that
 * nobody has found since the last time goes; if there is none, the new one is not added. An
 * instance whose weights are set anew is served by its new entry from the third call on. Five
 * instances that have weights of their own and take turns: four are served, and the fifth computes.
 */
#pragma once

#include "base/epoch.h"

typedef struct kiln_recalled {
  struct kiln_recalled *next; /* atomic */
  bool is_found;              /* atomic: since there was no room the last time */
  kiln_retired retired;
} kiln_recalled;

typedef struct kiln_recall {
  kiln_recalled *first; /* atomic */
  uint64_t missed;      /* atomic: kiln_memory_id of what was looked for in vain last */
  bool adding;          /* atomic: some thread adds */
} kiln_recall;

typedef struct kiln_recall_kind {
  bool (*is_stale)(const kiln_recalled *entry); /* nobody can find it any more */
  void (*destroy)(void *entry);
} kiln_recall_kind;

static inline kiln_recalled *kiln_recall_first(const kiln_recall *recall) {
  return __atomic_load_n(&recall->first, __ATOMIC_ACQUIRE);
}
static inline kiln_recalled *kiln_recall_next(const kiln_recalled *entry) {
  return __atomic_load_n(&entry->next, __ATOMIC_ACQUIRE);
}
/* A run has found the entry. Threads that find one and the same write no line that they share. */
static inline void kiln_recall_found(kiln_recalled *entry) {
  if (__builtin_expect(!__atomic_load_n(&entry->is_found, __ATOMIC_RELAXED), 0))
    __atomic_store_n(&entry->is_found, true, __ATOMIC_RELAXED);
}

/* A run has found nothing for weights of which one has this id: whether to make an entry.
 * `epoch` NULL: only a first one, as nothing can go. */
bool kiln_recall_wants(kiln_recall *recall, uint64_t memory, const kiln_epoch *epoch);
/* Publishes an entry; false: there is no room, or another thread adds one. */
bool kiln_recall_add(kiln_recall *recall, const kiln_recall_kind *kind, kiln_epoch *epoch,
                     kiln_recalled *entry);
/* Destroys all entries; no run is under way. */
void kiln_recall_release(kiln_recall *recall, const kiln_recall_kind *kind);
