/* unload_test.c: LLVM of Kiln's own leaves memory when no job has come for a while, and comes back.
 *
 *     unload_test libkiln-llvm.so model.pt */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kiln/kiln.h"

enum { SECOND_NS = 1000000000, MOST_S = 30 };

static void must(kiln_status *status, const char *what) {
  if (!status) return;
  fprintf(stderr, "unload: %s: %s\n", what, kiln_status_report(status));
  exit(1);
}
static void check(int right, const char *what) {
  if (right) return;
  fprintf(stderr, "unload: %s\n", what);
  exit(1);
}

static int is_mapped(void) {
  char line[512];
  int found = 0;
  FILE *maps = fopen("/proc/self/maps", "r");
  check(maps != NULL, "no /proc/self/maps");
  while (fgets(line, sizeof line, maps)) found |= strstr(line, "libkiln-llvm") != NULL;
  fclose(maps);
  return found;
}
static int is_mapped_after(double seconds) {
  struct timespec step = {.tv_nsec = SECOND_NS / 20};
  for (double t = 0; t < seconds && is_mapped(); t += 0.05) nanosleep(&step, NULL);
  return is_mapped();
}

typedef struct host {
  kiln_context *context;
  kiln_model *model;
} host;

static host open_host(const char *llvm, const char *path, const char *idle_s) {
  kiln_options *options = NULL;
  host h = {0};
  must(kiln_options_create(&options), "options");
  kiln_options_ignore_environment(options);
  must(kiln_options_set(options, "llvm", llvm), "llvm");
  must(kiln_options_set(options, "llvm_idle_s", idle_s), "llvm_idle_s");
  must(kiln_options_set(options, "compile", "async"), "compile");
  must(kiln_options_set(options, "fusion_strategy", "STATIC,20"), "fusion_strategy");
  must(kiln_context_create(options, &h.context), "context");
  kiln_options_destroy(options);
  must(kiln_model_load(h.context, path, NULL, &h.model), "load");
  return h;
}
static void close_host(host *h) {
  kiln_model_release(h->model);
  kiln_context_release(h->context);
}

/* Of so many rows; how many kernels were compiled until then. */
static uint64_t warm_up(const host *h, int64_t rows) {
  const int64_t sizes[2] = {rows, 3};
  kiln_value *x = NULL;
  kiln_counters counters;
  must(kiln_value_tensor(h->context, KILN_DTYPE_F32, 2, sizes, NULL, &x), "tensor");
  must(kiln_model_warm_up(h->model, "forward", &x, 1, NULL), "warm-up");
  kiln_value_destroy(x);
  kiln_model_counters(h->model, &counters);
  check(counters.compile_failures == 0, "a kernel could not be compiled");
  return counters.compiles;
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  check(!is_mapped(), "it is there at the start");
  host first = open_host(argv[1], argv[2], "1");
  uint64_t before = 0;
  for (int round = 0; round < 3; round++) {
    const uint64_t compiled = warm_up(&first, 5 + round);
    check(compiled > before, "nothing was compiled");
    before = compiled;
    check(is_mapped(), "it is not there behind a job");
    check(!is_mapped_after(MOST_S), "it stays");
  }
  /* While another context keeps it, it stays; behind that it is used anew by who has given it up.
   */
  host other = open_host(argv[1], argv[2], "0");
  check(warm_up(&other, 9) > 0, "nothing was compiled by the other");
  check(warm_up(&first, 20) > before, "nothing was compiled beside the other");
  check(is_mapped_after(3), "it goes though another context has it");
  before = warm_up(&first, 30);
  check(is_mapped(), "it is not there beside the other");
  close_host(&other);
  check(!is_mapped_after(MOST_S), "it stays when the other has gone");
  check(warm_up(&first, 40) > before, "nothing works behind the other");
  close_host(&first);
  check(!is_mapped(), "it is there at the end");
  puts("unloaded and loaded again");
  return 0;
}
