/* compile.c: what compiling a kernel takes, from loop IR to code that runs: milliseconds with
 * numbers for the sizes and with symbols, and of the first kernel of a process, which opens
 * libLLVM.
 *
 *   taskset -c 1 build/bench/bench_compile [--times N] [--isa v2|avx2|avx512] [--markdown] [WORD]
 *
 * Each of the kernels of samples.h whose name has WORD is compiled N times (--times, 21), all in
 * turns, so that a slow phase of the machine meets all alike. Opening is measured in processes of
 * their own. Figures are medians, least and most. */
#include <sys/wait.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/samples.h"

enum { SIDE = 256, FORMS = 2, MOST_TIMES = 1000, OPENINGS = 11 };

typedef struct bench {
  kiln_env *env;
  kiln_codegen *codegen; /* keeps no kernels */
  kiln_arena *arena;
  int times;
  bool markdown;
  const char *word;
  double ms[SAMPLE_COUNT][FORMS][MOST_TIMES];
} bench;

static void expect(kiln_status *status) {
  if (!status) return;
  fprintf(stderr, "bench_compile: %s\n", kiln_status_message(status));
  exit(2);
}

static double time_compile(const bench *b, int sample_number, bool symbolic) {
  const char *text = instance_of(samples[sample_number].text, symbolic ? 0 : SIDE, b->arena);
  kiln_loop_fn *fn;
  kiln_reason reason;
  kiln_compiled *code;
  expect(kiln_loop_parse(kiln_str_from(text), b->arena, &fn));
  expect(kiln_loop_optimize(fn, b->arena));
  const double begin = bench_thread_seconds();
  expect(kiln_codegen_compile(b->codegen, fn, KILN_BACKEND_LLVM, &reason, &code, NULL));
  const double end = bench_thread_seconds();
  kiln_compiled_release(code);
  return 1e3 * (end - begin);
}

/* -- The first of a process -- */

static double time_opening(const bench *b) {
  int ends[2];
  double ms = 0;
  if (pipe(ends)) exit(3);
  const pid_t child = fork();
  if (child == 0) {
    ms = time_compile(b, 0, false);
    _exit(write(ends[1], &ms, sizeof ms) != sizeof ms);
  }
  close(ends[1]);
  if (child < 0 || read(ends[0], &ms, sizeof ms) != sizeof ms) exit(3);
  close(ends[0]);
  waitpid(child, NULL, 0);
  return ms;
}

static void print_times(const bench *b, double *ms, int count) {
  const double median = bench_median(ms, count);
  printf(b->markdown ? " | %.2f (%.2f to %.2f)" : "  %6.2f (%6.2f to %6.2f)", median, ms[0],
         ms[count - 1]);
}

static void tell_opening(const bench *b) {
  double ms[OPENINGS];
  for (int i = 0; i < OPENINGS; i++) ms[i] = time_opening(b);
  printf(b->markdown ? "| the first of a process, %s" : "the first of a process, %s",
         samples[0].name);
  print_times(b, ms, OPENINGS);
  printf(b->markdown ? " | |\n" : "\n");
}

/* -- The others -- */

static bool is_asked(const bench *b, int i) { return !b->word || strstr(samples[i].name, b->word); }

static kiln_status *run(bench *b) {
  expect(kiln_arena_create(b->env->mem, &b->arena));
  tell_opening(b);
  time_compile(b, 0, false);
  for (int t = 0; t < b->times; t++) {
    for (int i = 0; i < SAMPLE_COUNT; i++) {
      for (int form = 0; form < FORMS && is_asked(b, i); form++)
        if (!form || !samples[i].numbers) b->ms[i][form][t] = time_compile(b, i, form);
    }
  }
  for (int i = 0; i < SAMPLE_COUNT; i++) {
    if (!is_asked(b, i)) continue;
    printf(b->markdown ? "| %s" : "%-18s", samples[i].name);
    for (int form = 0; form < FORMS; form++)
      if (!form || !samples[i].numbers) print_times(b, b->ms[i][form], b->times);
    printf(b->markdown && samples[i].numbers ? " | |\n" : b->markdown ? " |\n" : "\n");
  }
  kiln_arena_destroy(b->arena);
  return NULL;
}
/* Everything that takes memory of the arena stands in a scope. */
static kiln_status *protect(bench *b) { KILN_PROTECT(run(b)); }

int main(int argc, char **argv) {
  static bench b = {.times = 21};
  char *options[] = {"KILN_CODE_CACHE=0", NULL};
  expect(kiln_env_create_with(environ, options, &b.env));
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--markdown") == 0) {
      b.markdown = true;
    } else if (strcmp(argv[i], "--times") == 0 && i + 1 < argc) {
      b.times = atoi(argv[++i]);
    } else if (strcmp(argv[i], "--isa") == 0 && i + 1 < argc) {
      i++;
      while (b.env->isa > KILN_ISA_V2 && strcmp(kiln_isa_name(b.env->isa), argv[i]) != 0)
        b.env->isa--;
    } else {
      b.word = argv[i];
    }
  }
  if (b.times < 1 || b.times > MOST_TIMES) return 2;
  expect(kiln_codegen_create(b.env, &b.codegen));
  printf(
      b.markdown ? "| %s, ms | numbers | symbols |\n|---|---|---|\n" : "%s, ms: numbers, symbols\n",
      kiln_isa_name(b.env->isa));
  fflush(stdout);
  expect(protect(&b));
  kiln_codegen_destroy(b.codegen);
  kiln_env_destroy(b.env);
  return 0;
}
