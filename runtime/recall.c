/* recall.c: entries that are found by their weights, and which of them go. */
#include "runtime/recall.h"

enum { MOST_ENTRIES = 4 };

bool kiln_recall_wants(kiln_recall *recall, uint64_t memory, const kiln_epoch *epoch) {
  if (!kiln_recall_first(recall)) return true;
  if (!epoch) return false;
  if (__atomic_load_n(&recall->missed, __ATOMIC_RELAXED) == memory) return true;
  __atomic_store_n(&recall->missed, memory, __ATOMIC_RELAXED);
  return false;
}

/* An entry that is taken out still leads a run that stands at it to those behind it. */
static void take_out(kiln_recalled **link, const kiln_recall_kind *kind, kiln_epoch *epoch) {
  kiln_recalled *e = *link;
  __atomic_store_n(link, e->next, __ATOMIC_RELEASE);
  kiln_epoch_retire_in(epoch, &e->retired, kind->destroy, e);
}

/* Those that are stale go; returns how many stay. */
static int clear_stale(kiln_recall *recall, const kiln_recall_kind *kind, kiln_epoch *epoch) {
  int count = 0;
  for (kiln_recalled **link = &recall->first; *link;) {
    if (kind->is_stale(*link)) {
      take_out(link, kind, epoch);
    } else {
      link = &(*link)->next;
      count++;
    }
  }
  return count;
}

/* The oldest that was not found since the last time goes; false: all were. */
static bool clear_unused(kiln_recall *recall, const kiln_recall_kind *kind, kiln_epoch *epoch) {
  kiln_recalled **unused = NULL;
  for (kiln_recalled **link = &recall->first; *link; link = &(*link)->next) {
    if (!__atomic_exchange_n(&(*link)->is_found, false, __ATOMIC_RELAXED)) unused = link;
  }
  if (unused) take_out(unused, kind, epoch);
  return unused != NULL;
}

static bool make_room(kiln_recall *recall, const kiln_recall_kind *kind, kiln_epoch *epoch) {
  if (!recall->first) return true;
  return epoch &&
         (clear_stale(recall, kind, epoch) < MOST_ENTRIES || clear_unused(recall, kind, epoch));
}

bool kiln_recall_add(kiln_recall *recall, const kiln_recall_kind *kind, kiln_epoch *epoch,
                     kiln_recalled *entry) {
  if (__atomic_exchange_n(&recall->adding, true, __ATOMIC_ACQUIRE)) return false;
  const bool has_room = make_room(recall, kind, epoch);
  if (has_room) {
    entry->is_found = true;
    entry->next = recall->first;
    __atomic_store_n(&recall->first, entry, __ATOMIC_RELEASE);
    __atomic_store_n(&recall->missed, 0, __ATOMIC_RELAXED);
  }
  __atomic_store_n(&recall->adding, false, __ATOMIC_RELEASE);
  return has_room;
}

void kiln_recall_release(kiln_recall *recall, const kiln_recall_kind *kind) {
  for (kiln_recalled *e = recall->first, *next; e; e = next) {
    next = e->next;
    kind->destroy(e);
  }
  recall->first = NULL;
}
