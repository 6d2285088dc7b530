/* chunk.h: a piece of memory that one thread lends in blocks, and gets back from any.
 *
 * Blocks lie at grains, a bit of which says that something is there: where the owner wants them, or
 * at the first place with room, so that what comes and goes in sizes ever new lies in the same few
 * pages and cache lines. The 64 bytes in front of a block name its chunk; sanitizers take them for
 * the end of the block before.
 *
 * One thread at a time is the owner: all but kiln_chunk_give_stray is its. Strays, blocks that
 * others give back, lie in a list until the owner collects them. */
#pragma once

#include <stdbool.h>

#include "base/mem.h"

enum {
  KILN_CHUNK_GRAIN = 320, /* no power of two: neighbours begin at other lines of their pages */
  KILN_CHUNK_HEAD = 64,
};
static inline uint32_t kiln_chunk_grains(size_t bytes) {
  return (uint32_t)((bytes + KILN_CHUNK_HEAD + KILN_CHUNK_GRAIN - 1) / KILN_CHUNK_GRAIN);
}

static inline size_t kiln_chunk_bytes(uint32_t grains) { return (size_t)grains * KILN_CHUNK_GRAIN; }

typedef struct kiln_chunk kiln_chunk;

/* NULL: no memory. What is free in a chunk was taken from the mem. */
kiln_chunk *kiln_chunk_create(kiln_mem *mem, uint32_t grains);
/* The owner needs it no more. The last of the blocks that are lent takes it along. */
void kiln_chunk_leave(kiln_chunk *chunk);

uint32_t kiln_chunk_size(const kiln_chunk *chunk); /* in grains */
bool kiln_chunk_lends(const kiln_chunk *chunk);    /* some of it */
uint32_t kiln_chunk_free(const kiln_chunk *chunk); /* in grains */

/* A block, 64-byte aligned, at grain `at`, or at the first with room; NULL: there is none. */
void *kiln_chunk_take_at(kiln_chunk *chunk, uint32_t at, size_t bytes);
void *kiln_chunk_take(kiln_chunk *chunk, size_t bytes);
/* The chunk that lends a block. */
kiln_chunk *kiln_chunk_of(const void *block);
void kiln_chunk_give(kiln_chunk *chunk, void *block, size_t bytes);
/* From any thread, of any chunk. */
void kiln_chunk_give_stray(void *block, size_t bytes);
/* Strays become room. */
void kiln_chunk_collect(kiln_chunk *chunk);

/* Of mem.c: as kiln_mem_set_fill says, in sanitizer builds. */
void kiln__mem_fill(const kiln_mem *mem, void *block, size_t size);
