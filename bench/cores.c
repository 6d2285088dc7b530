/* cores.c: how near two CPUs are: bench_cores A B prints `one`, `near` or `far`, and why.
 *
 * A virtual machine's CPUs move: for seconds they are two cores that share a cache, or two that do
 * not, or the two hardware threads of one core. Each shows in how fast B reads what A has just
 * written, as a part of how fast A does: about all of it through the caches of one core, a half
 * through a cache that they share, a tenth from afar. */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/bench.h"

enum { BYTES = 256 << 10, LINE = 64, TURNS = 9 };

static _Alignas(LINE) volatile char buffer[BYTES];
static _Alignas(LINE) int turn; /* even: A's, odd: B's; TURNS * 2: the end */
static int cpu_a, cpu_b;
static double others[TURNS];

static void pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET((unsigned)cpu, &set);
  if (pthread_setaffinity_np(pthread_self(), sizeof set, &set) != 0) {
    fprintf(stderr, "bench_cores: CPU %d cannot be had\n", cpu);
    exit(2);
  }
}
static double read_all(void) {
  int sum = 0;
  const double start = bench_seconds();
  for (int i = 0; i < BYTES; i += LINE) sum += buffer[i];
  const double time = bench_seconds() - start;
  return sum == 1 ? 0 : time; /* the sum is used */
}
static void wait_for(int value) {
  while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) != value) continue;
}
static void *run_b(void *unused) {
  pin(cpu_b);
  for (int i = 0; i < TURNS; i++) {
    wait_for(2 * i + 1);
    others[i] = read_all();
    __atomic_store_n(&turn, 2 * i + 2, __ATOMIC_RELEASE);
  }
  return unused;
}
static double rate(double *times) { return (double)BYTES / bench_median(times, TURNS) * 1e-9; }

int main(int argc, char **argv) {
  double own[TURNS];
  pthread_t b;
  cpu_a = argc > 1 ? atoi(argv[1]) : 0;
  cpu_b = argc > 2 ? atoi(argv[2]) : 1;
  pin(cpu_a);
  if (pthread_create(&b, NULL, run_b, NULL) != 0) return 2;
  for (int i = 0; i < TURNS; i++) {
    for (int at = 0; at < BYTES; at += LINE) buffer[at] = (char)i;
    own[i] = read_all();
    __atomic_store_n(&turn, 2 * i + 1, __ATOMIC_RELEASE);
    wait_for(2 * i + 2);
  }
  pthread_join(b, NULL);
  const double mine = rate(own), theirs = rate(others);
  printf("%s: %.0f GB/s of its own, %.0f GB/s of the other's\n",
         theirs > 0.85 * mine   ? "one"
         : theirs > 0.25 * mine ? "near"
                                : "far",
         mine, theirs);
  return 0;
}
