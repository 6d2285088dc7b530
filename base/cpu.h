/* cpu.h: the processor's caches. */
#pragma once

#include <stdint.h>

/* Bytes of the caches that a core reaches, the first one's for data, and of a line. */
typedef struct kiln_cpu_caches {
  int64_t l1, l2, l3, line;
} kiln_cpu_caches;

/* Where the system does not tell, what is usual. A virtual machine may take microseconds for it:
 * kiln_env keeps what it told. */
kiln_cpu_caches kiln_cpu_find_caches(void);
