/* workspace.h: the memory plan of a cache: what its runs lend and get back lies in one chunk
 * (chunk.h), the workspace, and of runs in sizes ever new in another, the pool.
 *
 * A run is what a call does between two kiln_workspace_begin_run. When two runs have asked for
 * blocks of the same sizes in the same order, the next one is recorded: when each block is lent,
 * and when it comes back. memory_plan.h finds places by that, and from then on block n of a run of
 * that order lies at its place. So views, lists, branches and fallbacks need no rules, and a tensor
 * whose last use was two operators ago makes room in the caches for the next.
 *
 * A plan is a guess that is checked: a place is given out only where nothing lies, by a bit a
 * grain. For what the recorded run did not give back (results), and where something lies, the
 * cache's lists and the mem answer. What no plan knows takes the first place with room in the pool,
 * which grows from 128 KiB to 8 MiB: blocks of every size come from the pages that others just
 * left. A block may stay when its run ends, its chunk too then.
 *
 * A cache keeps plans of four orders, of up to 4,096 blocks, of which the 512 greatest have places,
 * and a workspace of up to 64 MiB: what is larger comes from memory anyway. */
#pragma once

#include <stdbool.h>

#include "base/mem.h"

/* What a cache's plan is, for those who look at it. Offsets and sizes are in bytes, times count
 * what was lent and given back. */
typedef struct kiln_workspace_block {
  size_t bytes, offset;
  uint32_t from, to;
  const void *tag; /* of kiln_cache when it was lent */
} kiln_workspace_block;
typedef struct kiln_workspace_plan {
  int count; /* of blocks that have a place */
  const kiln_workspace_block *blocks;
  size_t bytes;  /* of the workspace */
  size_t least;  /* the most bytes of such blocks that are lent at once: no plan takes less */
  uint64_t runs; /* that went as planned */
} kiln_workspace_plan;

/* The cache may have plans from here on. */
kiln_status *kiln_workspace_open(kiln_cache *cache) KILN_MUST_USE;
/* Ends a run, and begins one; not `planned`: what there is of plans goes. Never fails: without
 * memory for it there is no plan. */
void kiln_workspace_begin_run(kiln_cache *cache, bool planned);
/* Gives all back but what is lent. */
void kiln_workspace_deinit(kiln_cache *cache);
/* The chunks themselves, where nothing of them is lent. */
void kiln_workspace_trim(kiln_cache *cache);

/* The run's next block, 64-byte aligned, for kiln_workspace_give; NULL: it is none of a chunk. */
void *kiln__workspace_take(kiln_cache *cache, size_t bytes);
static inline void *kiln_workspace_take(kiln_cache *cache, size_t bytes) {
  return cache->workspaces ? kiln__workspace_take(cache, bytes) : NULL;
}
/* Back from any thread, with its own cache or none. */
void kiln_workspace_give(kiln_cache *cache, void *block, size_t bytes);

/* For records: what was asked for last lies here, wherever it is from; a block was given back. */
void kiln__workspace_note(kiln_cache *cache, const void *block);
void kiln__workspace_gone(kiln_cache *cache, const void *block);
static inline void kiln_workspace_note(kiln_cache *cache, const void *block) {
  if (cache->workspaces) kiln__workspace_note(cache, block);
}
static inline void kiln_workspace_gone(kiln_cache *cache, const void *block) {
  if (cache && cache->workspaces) kiln__workspace_gone(cache, block);
}

/* The plan of the last run that went by one; false: none. Valid until the next run. */
bool kiln_workspace_plan_of(const kiln_cache *cache, kiln_workspace_plan *out_plan);
