/* cpu.c: see cpu.h. */
#include "base/cpu.h"

#include <stdbool.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* No leaf tells it. Intel's cores complete each line that they fetch to a pair of 128 bytes (the
 * spatial prefetcher: Intel 64 and IA-32 Architectures Optimization Reference Manual, "Data
 * Prefetching"). */
static int64_t lines_fetched(void) {
#if defined(__x86_64__)
  unsigned a, b, c, d;
  if (__get_cpuid(0, &a, &b, &c, &d) && b == signature_INTEL_ebx && c == signature_INTEL_ecx &&
      d == signature_INTEL_edx)
    return 2;
#endif
  return 1;
}

static int64_t bytes_of(int name, int64_t usual) {
  const long bytes = sysconf(name);
  return bytes > 0 ? bytes : usual;
}
kiln_cpu_caches kiln_cpu_find_caches(void) {
  const int64_t line = bytes_of(_SC_LEVEL1_DCACHE_LINESIZE, 64);
  return (kiln_cpu_caches){.l1 = bytes_of(_SC_LEVEL1_DCACHE_SIZE, 32 << 10),
                           .l2 = bytes_of(_SC_LEVEL2_CACHE_SIZE, 256 << 10),
                           .l3 = bytes_of(_SC_LEVEL3_CACHE_SIZE, 4 << 20),
                           .line = line,
                           .fetch = line * lines_fetched()};
}

/* -- Control groups -- */

int kiln_cpu_count(bool cores_only) {
  cpu_set_t allowed, first;
  CPU_ZERO(&first);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 1;
  int count = 0;
  for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    unsigned core = cpu;
    char path[96];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list", cpu);
    FILE *file = cores_only ? fopen(path, "re") : NULL;
    if (file) {
      if (fscanf(file, "%u", &core) != 1 || core >= CPU_SETSIZE) core = cpu;
      fclose(file);
    }
    if (!CPU_ISSET(core, &first)) count++;
    CPU_SET(core, &first);
  }
  return count > 0 ? count : 1;
}

double kiln__cpu_quota_of(const char *text) {
  long long quota, period;
  if (sscanf(text, "%lld %lld", &quota, &period) != 2 || quota <= 0 || period <= 0) return 0;
  return (double)quota / (double)period;
}

/* Adds the file's text; false: there is none, or no room. */
static bool add_file(const char *path, char *text, size_t size) {
  FILE *file = fopen(path, "re");
  if (!file) return false;
  const size_t used = strlen(text), more = fread(text + used, 1, size - used - 1, file);
  text[used + more] = 0;
  fclose(file);
  return more > 0;
}

/* In a container its group is the root of what it sees. */
double kiln_cpu_quota(void) {
  char v2[64] = "", v1[64] = "";
  if (add_file("/sys/fs/cgroup/cpu.max", v2, sizeof v2)) return kiln__cpu_quota_of(v2);
  if (add_file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", v1, sizeof v1) &&
      add_file("/sys/fs/cgroup/cpu/cpu.cfs_period_us", v1, sizeof v1))
    return kiln__cpu_quota_of(v1);
  return 0;
}
