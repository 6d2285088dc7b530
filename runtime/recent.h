/* recent.h: what a call's thread has read lately, for kernels that read far more than they compute.
 *
 * A weight that one row is multiplied by takes as long as it takes to come. Whether it lies in the
 * second cache is guessed by the bytes that were read since it was read last: in a loop of some
 * cell little else, in a network all other weights. Guesses change how a kernel reads, never what
 * it computes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KILN_RECENT_LOG = 6, KILN_RECENT_READS = 1 << KILN_RECENT_LOG };
typedef struct kiln_recent {
  uint64_t bytes; /* read so far, of weights and by kernels */
  struct kiln_recent_read {
    const void *data;
    uint64_t at;    /* `bytes` when it had been read */
    bool backwards; /* it was, from its end to its begin */
  } reads[KILN_RECENT_READS];
} kiln_recent;

/* Time of something else, as bytes: what a core takes in from beyond its caches meanwhile. */
static inline void kiln_recent_worked(kiln_recent *recent, double ns) {
  enum { BYTES_A_NS = 16 };
  recent->bytes += (uint64_t)(ns * (double)BYTES_A_NS);
}

/* `data` is read now, all of it. Whether that and what was read since the last time is at most
 * `reach`; while it is, data is read to and fro: what was read last is read first, while it is
 * there. */
static inline bool kiln_recent_read(kiln_recent *recent, const void *data, uint64_t bytes,
                                    uint64_t reach, bool *out_backwards) {
  const uint64_t hash = ((uint64_t)(uintptr_t)data >> 6) * 0x9e3779b97f4a7c15u;
  struct kiln_recent_read *read = &recent->reads[hash >> (64 - KILN_RECENT_LOG)];
  const bool near = read->data == data && recent->bytes - read->at + bytes <= reach;
  recent->bytes += bytes;
  *read = (struct kiln_recent_read){data, recent->bytes, near && !read->backwards};
  *out_backwards = read->backwards;
  return near;
}
