/* hash.c: XXH3, compiled in from xxhash's header, so nothing of it is linked or exported. */
#include "base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t kiln_hash_bytes(uint64_t seed, const void *data, size_t size) {
  return XXH3_64bits_withSeed(data, size, seed);
}

kiln_digest kiln_digest_bytes(const void *data, size_t size) {
  XXH128_hash_t hash = XXH3_128bits(data, size);
  return (kiln_digest){hash.low64, hash.high64};
}

void kiln_digest_format(kiln_digest digest, char out_hex[33]) {
  static const char digits[] = "0123456789abcdef";
  for (int i = 0; i < 16; i++) {
    out_hex[i] = digits[digest.hi >> (60 - 4 * i) & 15];
    out_hex[16 + i] = digits[digest.lo >> (60 - 4 * i) & 15];
  }
  out_hex[32] = 0;
}
