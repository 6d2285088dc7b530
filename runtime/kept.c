/* kept.c: results of operators that read weights alone. */
#include "runtime/kept.h"

#include <string.h>

/* An argument as it was; what is no tensor is a constant of the plan, or None. */
typedef struct argument {
  kiln_tag tag;
  kiln_memory memory; /* held */
  kiln_tensor_key key;
  const int64_t *dims; /* sizes and strides */
} argument;

typedef struct kiln__kept {
  kiln_mem *mem;
  size_t bytes; /* of this block */
  int count, out_count;
  kiln_ivalue *outs; /* owned */
  argument args[];
} kiln__kept;

static void destroy(kiln__kept *k) {
  for (int i = 0; i < k->count; i++) kiln_memory_release(&k->args[i].memory);
  for (int i = 0; i < k->out_count; i++) kiln_ivalue_release(k->outs[i]);
  kiln_mem_free(k->mem, k, k->bytes);
}

void kiln_kept_slot_release(kiln_kept_slot *slot) {
  if (slot->kept) destroy(slot->kept);
  slot->kept = NULL;
}

static size_t dims_bytes(const kiln_tensor *t) {
  return 2 * sizeof(int64_t) * (size_t)kiln_tensor_rank(t);
}

static bool is_as_it_was(const argument *was, kiln_ivalue v) {
  if (v.tag != was->tag) return false;
  if (v.tag != KILN_TAG_TENSOR) return true;
  const kiln_tensor *t = v.u.tensor;
  return kiln_memory_is(&was->memory, t) && t->key.word == was->key.word && !t->sides &&
         memcmp(t->dims, was->dims, dims_bytes(t)) == 0;
}

const kiln_ivalue *kiln_kept_find(const kiln_kept_slot *slot, const kiln_ivalue *args, int count) {
  const kiln__kept *k = __atomic_load_n(&slot->kept, __ATOMIC_ACQUIRE);
  if (!k || k->count != count) return NULL;
  for (int i = 0; i < count; i++)
    if (!is_as_it_was(&k->args[i], args[i])) return NULL;
  return k->outs;
}

static bool may_keep(kiln_ivalue v) {
  return v.tag != KILN_TAG_TENSOR || (!v.u.tensor->sides && kiln_memory_can_hold(v.u.tensor));
}

static kiln__kept *create(kiln_mem *mem, const kiln_ivalue *args, int count,
                          const kiln_ivalue *outs, int out_count) {
  size_t bytes = sizeof(kiln__kept) + (size_t)count * sizeof(argument) +
                 (size_t)out_count * sizeof(kiln_ivalue);
  for (int i = 0; i < count; i++)
    if (args[i].tag == KILN_TAG_TENSOR) bytes += dims_bytes(args[i].u.tensor);
  kiln__kept *k = kiln_mem_alloc_zero(mem, bytes);
  if (!k) return NULL;
  *k = (kiln__kept){.mem = mem, .bytes = bytes, .count = count, .out_count = out_count};
  k->outs = (kiln_ivalue *)(void *)(k->args + count);
  int64_t *dims = (int64_t *)(void *)(k->outs + out_count);
  for (int i = 0; i < out_count; i++) k->outs[i] = kiln_ivalue_retain(outs[i]);
  for (int i = 0; i < count; i++) {
    k->args[i].tag = args[i].tag;
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

void kiln_kept_offer(kiln_mem *mem, kiln_kept_slot *slot, const kiln_ivalue *args, int count,
                     const kiln_ivalue *outs, int out_count) {
  kiln__kept *none = NULL;
  if (__atomic_load_n(&slot->kept, __ATOMIC_ACQUIRE)) return;
  for (int i = 0; i < count; i++)
    if (!may_keep(args[i])) return;
  kiln__kept *k = create(mem, args, count, outs, out_count);
  if (k && !__atomic_compare_exchange_n(&slot->kept, &none, k, false, __ATOMIC_RELEASE,
                                        __ATOMIC_ACQUIRE))
    destroy(k);
}
