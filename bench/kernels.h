/* kernels.h: what programs share that measure one kernel of loop IR after another: options, the FMA
 * peak, copies of packed inputs. */
#pragma once

#include <stdio.h>
#include <string.h>

#include "bench/peak.h"
#include "codegen/loop/schedule.h"
#include "codegen/codegen.h"
#include "runtime/pack.h"

static inline void expect(kiln_status *status) {
  if (!status) return;
  fprintf(stderr, "%s\n", kiln_status_report(status));
  exit(2);
}

typedef struct bench {
  kiln_env *env;
  kiln_codegen *codegen;
  const char *schedule; /* NULL: the rules' */
  const char *folder;   /* of schedules that are searched for; NULL: none are */
  kiln_machine machine;
} bench;

/* GFLOP/s at this moment: a share of the peak is one of what was measured in turns with it. */
static inline double bench_peak_now(const bench *b) {
  return tool_peak_fma(bench_tool_isa(b->env->isa), 1);
}

/* What is asked for, with what rules choose of the rest; or all of theirs. */
static inline kiln_schedule bench_schedule(const bench *b, const kiln_loop_fn *fn,
                                           kiln_arena *arena) {
  kiln_schedule schedule;
  if (!b->schedule) return kiln_schedule_choose(fn, &b->machine, arena);
  expect(kiln_schedule_parse(kiln_str_from(b->schedule), fn, arena, &schedule));
  kiln_schedule_complete(fn, &b->machine, &schedule, arena);
  return schedule;
}

/* Takes [--isa NAME] [--machine TEXT] [--schedule TEXT] [--autotune FOLDER]; gives the number of
 * the first argument behind them. */
static inline int bench_open(bench *b, int argc, char **argv) {
  char isa[64] = "KILN_ISA=native", machine[256] = "KILN_MACHINE=", tune[] = "KILN_AUTOTUNE=off",
       folder[300] = "KILN_AUTOTUNE_DIR=", *const options[] = {isa, machine, tune, folder, NULL};
  int at = 1;
  *b = (bench){0};
  for (; at + 1 < argc && argv[at][0] == '-'; at += 2) {
    if (strcmp(argv[at], "--isa") == 0) snprintf(isa, sizeof isa, "KILN_ISA=%s", argv[at + 1]);
    if (strcmp(argv[at], "--machine") == 0)
      snprintf(machine, sizeof machine, "KILN_MACHINE=%s", argv[at + 1]);
    if (strcmp(argv[at], "--schedule") == 0) b->schedule = argv[at + 1];
    if (strcmp(argv[at], "--autotune") == 0) b->folder = argv[at + 1];
  }
  if (b->folder) {
    memcpy(strchr(tune, '=') + 1, "on", sizeof "on");
    snprintf(folder, sizeof folder, "KILN_AUTOTUNE_DIR=%s", b->folder);
  }
  expect(kiln_env_create_with(NULL, options, &b->env));
  expect(kiln_codegen_create(b->env, &b->codegen));
  expect(kiln_machine_describe(b->env->isa, kiln_str_from(strchr(machine, '=') + 1), &b->machine));
  printf("peak %.1f GFLOP/s, %s\n", bench_peak(b->env->isa), kiln_isa_name(b->env->isa));
  return at;
}
static inline void bench_close(bench *b) {
  kiln_codegen_destroy(b->codegen);
  kiln_env_destroy(b->env);
}

/* Puts copies of what is packed into data[], of so many elements each, and copies[], whose owner is
 * the caller. */
static inline void bench_pack(const kiln_compiled *code, const int64_t *numel, const void **data,
                              void **copies) {
  for (int i = 0; i < code->info.pack_count; i++) {
    const int input = code->info.packs[i].input;
    const kiln_kernel_pack pack = kiln_pack_of(&code->info.packs[i], numel[input], NULL, NULL);
    size_t bytes;
    if (!kiln_pack_bytes(&pack, &bytes)) exit(2);
    copies[i] = aligned_alloc(64, (bytes + 63) / 64 * 64);
    kiln_pack_copy(&pack, data[input], copies[i]);
    data[input] = copies[i];
  }
}
