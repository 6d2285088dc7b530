/* exits_test.c: programs that end while kernels are made beside their calls, releasing nothing:
 * exit() in the main thread, which calls the model, or has a thread that does.
 *
 * The program runs itself: `exits_test MODEL INPUTS` runs `exits_test MODEL INPUTS MICROSECONDS
 * WAY` for many moments of the compilation, from before libLLVM is opened to behind the last
 * kernel. */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sanitize.h"
#include "kiln/kiln.h"

/* With a sanitizer a program takes several times as long. */
enum {
  SLOWER = KILN_SANITIZED ? 4 : 1,
  MOMENTS = 40 / SLOWER,
  STEP_US = 4000 * SLOWER,
  FINE_US = 1000 * SLOWER
};

static const char *model_path, *inputs_path;
static int ready[2];

static void must(kiln_status *status) {
  if (!status) return;
  fprintf(stderr, "exits: %s\n", kiln_status_report(status));
  _exit(2);
}

static void call_twice(void) {
  kiln_context *context;
  kiln_model *model;
  kiln_instance *instance;
  kiln_value *inputs, *x, *result;
  must(kiln_context_create(NULL, &context));
  must(kiln_model_load(context, model_path, NULL, &model));
  must(kiln_instance_create(model, &instance));
  must(kiln_value_read(context, inputs_path, &inputs));
  must(kiln_value_item(inputs, 0, &x));
  for (int i = 0; i < 2; i++) must(kiln_instance_call(instance, "forward", &x, 1, NULL, &result));
}

static void *call_in_thread(void *arg) {
  call_twice();
  if (write(ready[1], "", 1) != 1) _exit(3);
  for (;;) pause();
  return arg;
}

static void end_beside_a_job(unsigned microseconds, bool in_thread) {
  pthread_t thread;
  char byte;
  if (!in_thread) {
    call_twice();
  } else if (pipe(ready) != 0 || pthread_create(&thread, NULL, call_in_thread, NULL) != 0 ||
             read(ready[0], &byte, 1) != 1) {
    _exit(3);
  }
  usleep(microseconds);
  exit(0);
}

static bool ends_well(char *self, int microseconds, const char *way) {
  char number[16];
  char *arguments[] = {self,   (char *)(uintptr_t)model_path, (char *)(uintptr_t)inputs_path,
                       number, (char *)(uintptr_t)way,        NULL};
  pid_t child;
  int status = 0;
  snprintf(number, sizeof number, "%d", microseconds);
  child = fork();
  if (child == 0) {
    execv(self, arguments);
    _exit(4);
  }
  if (waitpid(child, &status, 0) != child) return false;
  if (status != 0) fprintf(stderr, "exits: %s, %d us: status 0x%x\n", way, microseconds, status);
  return status == 0;
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  model_path = argv[1];
  inputs_path = argv[2];
  setenv("KILN_COMPILE", "async", 1);
  setenv("KILN_COMPILE_AFTER", "0", 1);
  if (argc > 4) end_beside_a_job((unsigned)atoi(argv[3]), strcmp(argv[4], "thread") == 0);
  setenv("ASAN_OPTIONS", "detect_leaks=0", 1); /* of what the programs leave, as they should */
  int failed = 0;
  for (int i = 0; i < MOMENTS; i++) {
    failed += !ends_well(argv[0], i * FINE_US, "main") + !ends_well(argv[0], i * FINE_US, "thread");
    failed += !ends_well(argv[0], i * STEP_US, "main") + !ends_well(argv[0], i * STEP_US, "thread");
  }
  printf("%d of %d ends failed\n", failed, 4 * MOMENTS);
  return failed > 0;
}
