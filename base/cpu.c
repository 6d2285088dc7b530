/* cpu.c: see cpu.h. */
#include "base/cpu.h"

#include <unistd.h>

static int64_t bytes_of(int name, int64_t usual) {
  const long bytes = sysconf(name);
  return bytes > 0 ? bytes : usual;
}
kiln_cpu_caches kiln_cpu_find_caches(void) {
  return (kiln_cpu_caches){.l1 = bytes_of(_SC_LEVEL1_DCACHE_SIZE, 32 << 10),
                           .l2 = bytes_of(_SC_LEVEL2_CACHE_SIZE, 256 << 10),
                           .l3 = bytes_of(_SC_LEVEL3_CACHE_SIZE, 4 << 20),
                           .line = bytes_of(_SC_LEVEL1_DCACHE_LINESIZE, 64)};
}
