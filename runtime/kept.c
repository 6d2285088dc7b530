/* kept.c: results of operators that read weights alone. */
#include "runtime/kept.h"

#include <string.h>

/* An argument as it was, or an item of a list, which follow it; what is no tensor is a constant of
 * the plan, or None. */
typedef struct argument {
  kiln_tag tag;
  int64_t items;      /* of a list */
  kiln_memory memory; /* held */
  kiln_tensor_key key;
  const int64_t *dims; /* sizes and strides */
} argument;

typedef struct record {
  kiln_recalled entry; /* first */
  kiln_mem *mem;
  size_t bytes; /* of this block */
  int count, out_count;
  kiln_ivalue *outs; /* owned */
  argument args[];
} record;

static void destroy(void *entry) {
  record *k = entry;
  for (int i = 0; i < k->count; i++) kiln_memory_release(&k->args[i].memory);
  for (int i = 0; i < k->out_count; i++) kiln_ivalue_release(k->outs[i]);
  kiln_mem_free(k->mem, k, k->bytes);
}

static bool is_stale(const kiln_recalled *entry) {
  const record *k = (const record *)entry;
  for (int i = 0; i < k->count; i++)
    if (kiln_memory_is_stale(&k->args[i].memory)) return true;
  return false;
}

static const kiln_recall_kind kind = {is_stale, destroy};

void kiln_kept_slot_release(kiln_kept_slot *slot) { kiln_recall_release(&slot->records, &kind); }

static size_t dims_bytes(const kiln_tensor *t) {
  return 2 * sizeof(int64_t) * (size_t)kiln_tensor_rank(t);
}

static bool is_as_it_was(const argument *was, kiln_ivalue v) {
  if (v.tag != was->tag) return false;
  if (v.tag == KILN_TAG_LIST) return v.u.list->count == was->items;
  if (v.tag != KILN_TAG_TENSOR) return true;
  const kiln_tensor *t = v.u.tensor;
  return kiln_memory_is(&was->memory, t) && t->key.word == was->key.word && !t->sides &&
         memcmp(t->dims, was->dims, dims_bytes(t)) == 0;
}

/* Items of an argument that is a list. */
static int64_t items_of(kiln_ivalue v, const kiln_ivalue **out_items) {
  *out_items = v.tag == KILN_TAG_LIST ? v.u.list->items : NULL;
  return v.tag == KILN_TAG_LIST ? v.u.list->count : 0;
}

static bool is_of(const record *k, const kiln_ivalue *args, int count) {
  const argument *was = k->args, *end = was + k->count;
  for (int i = 0; i < count; i++) {
    const kiln_ivalue *items;
    const int64_t more = items_of(args[i], &items);
    if (was == end || !is_as_it_was(was++, args[i])) return false;
    for (int64_t j = 0; j < more; j++)
      if (!is_as_it_was(was++, items[j])) return false;
  }
  return was == end;
}

const kiln_ivalue *kiln_kept_find(const kiln_kept_slot *slot, const kiln_ivalue *args, int count) {
  for (kiln_recalled *e = kiln_recall_first(&slot->records); e; e = kiln_recall_next(e)) {
    const record *k = (const record *)e;
    if (!is_of(k, args, count)) continue;
    kiln_recall_found(e);
    return k->outs;
  }
  return NULL;
}

static bool may_keep(kiln_ivalue v) {
  return v.tag != KILN_TAG_TENSOR || (!v.u.tensor->sides && kiln_memory_can_hold(v.u.tensor));
}

/* Of arguments one by one, lists before their items. */
static record *create_flat(kiln_mem *mem, const kiln_ivalue *args, int count,
                           const kiln_ivalue *outs, int out_count) {
  size_t bytes =
      sizeof(record) + (size_t)count * sizeof(argument) + (size_t)out_count * sizeof(kiln_ivalue);
  for (int i = 0; i < count; i++)
    if (args[i].tag == KILN_TAG_TENSOR) bytes += dims_bytes(args[i].u.tensor);
  record *k = kiln_mem_alloc_zero(mem, bytes);
  if (!k) return NULL;
  *k = (record){.mem = mem, .bytes = bytes, .count = count, .out_count = out_count};
  k->outs = (kiln_ivalue *)(void *)(k->args + count);
  int64_t *dims = (int64_t *)(void *)(k->outs + out_count);
  for (int i = 0; i < out_count; i++) k->outs[i] = kiln_ivalue_retain(outs[i]);
  for (int i = 0; i < count; i++) {
    k->args[i].tag = args[i].tag;
    if (args[i].tag == KILN_TAG_LIST) k->args[i].items = args[i].u.list->count;
    if (args[i].tag != KILN_TAG_TENSOR) continue;
    const kiln_tensor *t = args[i].u.tensor;
    const int rank = kiln_tensor_rank(t);
    k->args[i].memory = kiln_memory_hold(t);
    k->args[i].key = t->key;
    k->args[i].dims = dims;
    memcpy(dims, t->dims, dims_bytes(t));
    dims += 2 * rank;
  }
  return k;
}

enum { MOST_FLAT = 64 };
/* Arguments and the items of their lists; -1: there are too many. */
static int flatten(const kiln_ivalue *args, int count, kiln_ivalue *out) {
  int n = 0;
  for (int i = 0; i < count; i++) {
    const kiln_ivalue *items;
    const int64_t more = items_of(args[i], &items);
    if (n + 1 + more > MOST_FLAT) return -1;
    out[n++] = args[i];
    for (int64_t j = 0; j < more; j++) out[n++] = items[j];
  }
  return n;
}

/* Of the first tensor; 0: there is none. */
static uint64_t id_of(const kiln_ivalue *args, int count) {
  for (int i = 0; i < count; i++)
    if (args[i].tag == KILN_TAG_TENSOR) return kiln_memory_id(args[i].u.tensor);
  return 0;
}

void kiln_kept_offer(kiln_mem *mem, kiln_epoch *epoch, kiln_kept_slot *slot,
                     const kiln_ivalue *args, int count, const kiln_ivalue *outs, int out_count) {
  kiln_ivalue all[MOST_FLAT];
  const int n = flatten(args, count, all);
  if (n < 0) return;
  for (int i = 0; i < n; i++)
    if (!may_keep(all[i])) return;
  if (!kiln_recall_wants(&slot->records, id_of(all, n), epoch)) return;
  record *k = create_flat(mem, all, n, outs, out_count);
  if (k && !kiln_recall_add(&slot->records, &kind, epoch, &k->entry)) destroy(k);
}
