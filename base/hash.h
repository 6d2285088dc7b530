/* hash.h: hashes. kiln_hash_* are fast, for tables in memory; kiln_digest is 128 bits of XXH3
 * (xxhash, see docs/dependencies.md) for names that last: loop IR, graphs, cache keys.
 *
 * A table whose keys come from a file or a program hashes under its memory's secret seed
 * (kiln_mem_hash_seed), so that nobody can choose keys that meet in one place. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

static inline uint64_t kiln_hash_mix(uint64_t a, uint64_t b) {
  uint64_t h = (a ^ (b + 0x9e3779b97f4a7c15u + (a << 6) + (a >> 2))) * 0xff51afd7ed558ccdu;
  return h ^ (h >> 32);
}
uint64_t kiln_hash_bytes(uint64_t seed, const void *data, size_t size);
/* An integer or address. The seed is in both factors: which ids meet depends on it. */
static inline uint64_t kiln_hash_id(uint64_t seed, uint64_t id) {
  uint64_t factor = 0x9e3779b97f4a7c15u ^ (seed << 32 | seed >> 32);
  unsigned __int128 product = (unsigned __int128)(id ^ seed) * (factor | 1);
  return (uint64_t)product ^ (uint64_t)(product >> 64);
}

typedef struct kiln_digest {
  uint64_t lo, hi;
} kiln_digest;

kiln_digest kiln_digest_bytes(const void *data, size_t size);
/* 32 hexadecimal digits and a terminator. */
void kiln_digest_format(kiln_digest digest, char out_hex[33]);
static inline int kiln_digest_equal(kiln_digest a, kiln_digest b) {
  return a.lo == b.lo && a.hi == b.hi;
}
