/* cpu.h: the processor's caches, and how many processors a container may keep busy. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Bytes of the caches that a core reaches, the first one's for data, of a line, and of the lines
 * that a core fetches together. */
typedef struct kiln_cpu_caches {
  int64_t l1, l2, l3, line, fetch;
} kiln_cpu_caches;

/* Where the system does not tell, what is usual. A virtual machine may take microseconds for it:
 * kiln_env keeps what it told. */
kiln_cpu_caches kiln_cpu_find_caches(void);

/* Those that the calling thread may run on; `cores_only`: hardware threads of one core count once.
 * At least 1. */
int kiln_cpu_count(bool cores_only);
/* Processors that the control group of this process may keep busy, on average, whichever they are:
 * 1.5 of a container with 150 ms in each 100 (cgroup v2's cpu.max; of v1 cpu.cfs_quota_us). What
 * works more is halted for the rest of the period, callers with it. 0: there is no limit, or none
 * is told. */
double kiln_cpu_quota(void);
/* For it: of "150000 100000" or "max 100000", or of v1's two files one behind the other. */
double kiln__cpu_quota_of(const char *text);
