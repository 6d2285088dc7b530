/* cpu.h: the processor's caches. */
#pragma once

#include <stdint.h>

typedef enum kiln_cpu_cache {
  KILN_CPU_L1, /* of data */
  KILN_CPU_L2,
  KILN_CPU_L3,
  KILN_CPU_LINE,
  KILN_CPU__COUNT,
} kiln_cpu_cache;

/* Bytes of a cache that a core reaches, or of a line; where the system does not tell, what is
 * usual. It is asked once: a virtual machine may take microseconds to answer. Any threads. */
int64_t kiln_cpu_bytes(kiln_cpu_cache cache);
