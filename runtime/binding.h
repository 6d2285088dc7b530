/* binding.h: results of a call in memory that the host has given for them.
 *
 * Which of the blocks that a call takes its result will be in, the call before knows: it was the
 * n-th one of 4 KB and more. So block n of the next call is the host's memory, if its size is the
 * result's, and nothing is copied. Where the guess is wrong the result is copied, and the next call
 * knows better.
 *
 * Whoever else has a tensor in the host's memory when the call ends, say an attribute that keeps
 * the result, gets memory of its own:
 *   self.last = y; return y    y's block is the host's; `last` moves out of it, with a copy
 * So between two calls nothing of the model's lies there. */
#pragma once

#include "runtime/call.h"

enum { KILN_BINDING_OUTPUTS = 64 }; /* those beyond are copied */

typedef struct kiln_binding kiln_binding;

/* Whether the host alone has the tensor, so that no argument, attribute or other value is of its
 * memory. */
bool kiln_binding_is_alone(const kiln_tensor *output);
/* Before a call: `outputs` (borrowed; NULL: not bound) are dense tensors of the CPU, for the
 * result, or the items of a tuple or a list. `alone`: a bit for each that was, when the call was
 * asked for. Of those that overlap one of `args` none is written before the end. */
kiln_status *kiln_binding_begin(kiln_call *call, kiln_tensor *const *outputs, int count,
                                uint64_t alone, const kiln_ivalue *args,
                                int arg_count) KILN_MUST_USE;
/* Behind it: each output has its elements, and stands in the result; `result` NULL: the call has
 * failed. KILN_INVALID_ARGUMENT where dtype or sizes are others, or there is no such item. */
kiln_status *kiln_binding_end(kiln_call *call, kiln_ivalue *result) KILN_MUST_USE;
void kiln_binding_destroy(kiln_call *call);

/* For tests: how many outputs the last such call has copied. */
int kiln__binding_copied(const kiln_call *call);

/* -- For storage.c -- */

/* The run has asked for a block: a storage for it in the host's memory, or NULL. */
kiln_storage *kiln__binding_take(kiln_cache *cache, size_t bytes);
/* Where the last block of those lies, wherever it is from. */
void kiln__binding_note(kiln_cache *cache, const void *data);
