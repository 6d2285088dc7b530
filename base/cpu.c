/* cpu.c: see cpu.h. */
#include "base/cpu.h"

#include <unistd.h>

int64_t kiln_cpu_bytes(kiln_cpu_cache cache) {
  static const struct {
    int name;
    int64_t usual;
  } caches[KILN_CPU__COUNT] = {
      [KILN_CPU_L1] = {_SC_LEVEL1_DCACHE_SIZE, 32 << 10},
      [KILN_CPU_L2] = {_SC_LEVEL2_CACHE_SIZE, 256 << 10},
      [KILN_CPU_L3] = {_SC_LEVEL3_CACHE_SIZE, 4 << 20},
      [KILN_CPU_LINE] = {_SC_LEVEL1_DCACHE_LINESIZE, 64},
  };
  static int64_t told[KILN_CPU__COUNT]; /* atomic; 0: not yet */
  int64_t bytes = __atomic_load_n(&told[cache], __ATOMIC_RELAXED);
  if (bytes == 0) {
    bytes = sysconf(caches[cache].name);
    if (bytes <= 0) bytes = caches[cache].usual;
    __atomic_store_n(&told[cache], bytes, __ATOMIC_RELAXED);
  }
  return bytes;
}
