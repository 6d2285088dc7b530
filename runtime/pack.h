/* pack.h: inputs of kernels in the order that these want (kiln_kernel_pack): copied when a kernel
 * is called, or once for a tensor that nobody writes.
 *
 * A copy that is kept serves all kernels of its context that want the same order of the same
 * elements: of two variants of linear(x, w), one for 8 and one for 32 rows, both read one copy of
 * w, and so do a model's instances. It holds w's memory (kiln_memory), and goes with the last
 * kernel that reads it. Which tensors are kept: those whose memory is nobody's but Kiln's to write,
 * as long as nobody has written since. */
#pragma once

#include "runtime/call.h"
#include "runtime/kernel_abi.h"
#include "runtime/recall.h"
#include "runtime/tensor.h"

/* Rows whose columns follow those of the row before, without zeros, become columns of one row. */
void kiln_pack_join_columns(kiln_kernel_pack *pack);
/* What there is to do with a tensor of so many elements; its sizes and strides may be NULL where
 * the pack is not of_tensor. */
kiln_kernel_pack kiln_pack_of(const kiln_kernel_pack *pack, int64_t numel, const int64_t *sizes,
                              const int64_t *strides);
/* Bytes of a copy, with those behind it; false: more than 2^63. */
bool kiln_pack_bytes(const kiln_kernel_pack *pack, size_t *out_bytes);
/* The copy itself; `from` is the input's first element, `to` 64-byte aligned. */
void kiln_pack_copy(const kiln_kernel_pack *pack, const void *from, void *to);

/* The copies of a context; thread-safe. */
typedef struct kiln_pack_store kiln_pack_store;
kiln_status *kiln_pack_store_create(kiln_mem *mem, kiln_pack_store **out_store) KILN_MUST_USE;
void kiln_pack_store_destroy(kiln_pack_store *store);
uint64_t kiln_pack_store_bytes(const kiln_pack_store *store);
/* For tests: how many copies were made. */
uint64_t kiln__pack_store_made(const kiln_pack_store *store);

/* What a group keeps for one of its inputs; starts without anything kept, and outlives all calls.
 */
typedef struct kiln_pack_slot {
  kiln_pack_store *store; /* borrowed */
  kiln_recall kept;
} kiln_pack_slot;
void kiln_pack_slot_release(kiln_pack_slot *slot);
/* Bytes of its copies, within an epoch. */
size_t kiln_pack_slot_bytes(const kiln_pack_slot *slot);
/* The slot's copy of t, and its bytes; NULL: it keeps none. */
const void *kiln_pack_find(const kiln_pack_slot *slot, const kiln_tensor *t, size_t *out_bytes);
/* What such a copy is, made before, perhaps by another process: the slot keeps it, and others of
 * its store find it there. It stays its owner's, longer than the slot. Where the slot has no room
 * for it, it does without. */
kiln_status *kiln_pack_give(kiln_epoch *epoch, kiln_pack_slot *slot, const kiln_kernel_pack *pack,
                            const kiln_tensor *t, const void *copy, size_t bytes) KILN_MUST_USE;

/* -- Beside calls -- */

/* Who has copies made by others than calls, where that is wanted. Filled by jit. */
typedef struct kiln_packer {
  /* The copy is wanted in the store (`pack` is what kiln_pack_of gives); it may be asked for again
   * and again. `t` is of memory that is lent for reading. */
  void (*ask)(struct kiln_packer *self, kiln_pack_store *store, const kiln_kernel_pack *pack,
              const kiln_tensor *t);
} kiln_packer;
typedef struct kiln__packed kiln__packed;
/* Makes a copy in the store, or finds it there; whoever holds it gives it back. */
kiln_status *kiln_pack_store_add(kiln_call *call, kiln_pack_store *store,
                                 const kiln_kernel_pack *pack, kiln_tensor *t,
                                 kiln__packed **out_held) KILN_MUST_USE;
void kiln_pack_store_give(kiln_pack_store *store, kiln__packed *held);
bool kiln_pack_is_same(const kiln_kernel_pack *a, const kiln_kernel_pack *b);
/* A smaller copy is made by the call: reading it anew takes less than some 20 us. */
enum { KILN_PACK_BESIDE_BYTES = 128 << 10 };

/* What the kernel reads for tensor `t`, copied or transformed; `slot` is NULL where nothing is to
 * be kept. *out_own: memory of the call's cache, *out_bytes of it, which the caller gives back
 * after the kernel has run; NULL: it is kept. *out_data is NULL where the call has a packer, which
 * was asked for what is to be kept: the group's operators serve until it is there. */
kiln_status *kiln_pack_take(kiln_call *call, kiln_pack_slot *slot, const kiln_kernel_pack *pack,
                            kiln_tensor *t, const void **out_data, void **out_own,
                            size_t *out_bytes) KILN_MUST_USE;
