/* tune.c: what searching for schedules gains (codegen/tune.h): kernels of loop IR, one after the
 * other, with the time of a call under the rules' schedule and under the one that was found.
 *
 *   taskset -c 0 build/bench/bench_tune --autotune FOLDER [--isa v2|avx2|avx512]
 *       [--machine TEXT] [WORD]
 *
 * What the folder has is not searched again. */
#include <stdlib.h>

#include "bench/kernels.h"

enum { TEXT = 4096 };

static kiln_loop_fn *parse(const char *text, kiln_arena *arena) {
  kiln_loop_fn *fn;
  expect(kiln_loop_parse(kiln_str_from(text), arena, &fn));
  expect(kiln_loop_optimize(fn, arena));
  return fn;
}

/* relu(x (m, k) @ w (n, k).t() + b) */
static void linear(char *text, int m, int n, int k) {
  snprintf(text, TEXT,
           "kernel {\n in b0: f32[%d, %d] [%d, 1]\n in b1: f32[%d, %d] [%d, 1]\n"
           " in b2: f32[%d] [1]\n out b3: f32[%d, %d] [%d, 1]\n nest [%d, %d] {\n reduce %d {\n"
           " %%1 = load f32 b0 + 0 [%d, 0, 1]\n %%2 = load f32 b1 + 0 [0, %d, 1]\n"
           " %%3 = contract f32 %%1, %%2 over 1\n }\n %%5 = load f32 b2 + 0 [0, 1]\n"
           " %%6 = add f32 %%3, %%5\n %%7 = const f32 0\n %%8 = max f32 %%6, %%7\n"
           " store f32 b3 + 0 [%d, 1], %%8\n }\n}\n",
           m, k, k, n, k, k, n, m, n, n, m, n, k, k, k, n);
}

/* Channels last, of an image that has its border: `c` channels and `o` outputs of each group. */
static void conv(char *text, int groups, int c, int o, int out, int taps) {
  const int in = out + taps - 1, channels = groups * c, outputs = groups * o;
  snprintf(
      text, TEXT,
      "kernel {\n in b0: f32[%d, %d, %d] [%d, %d, 1]\n in b1: f32[%d, %d, %d, %d] [%d, %d, %d, "
      "1]\n in b2: f32[%d] [1]\n out b3: f32[%d, %d, %d] [%d, %d, 1]\n nest [%d, %d, %d, %d] {\n"
      " reduce %d {\n reduce %d {\n reduce %d {\n"
      " %%3 = load f32 b0 + 0 [%d, %d, %d, 0, %d, %d, 1]\n"
      " %%4 = load f32 b1 + 0 [0, 0, %d, %d, %d, 1, %d]\n"
      " %%5 = contract f32 %%3, %%4 over 3\n }\n }\n }\n"
      " %%9 = load f32 b2 + 0 [0, 0, %d, 1]\n %%10 = add f32 %%5, %%9\n"
      " store f32 b3 + 0 [%d, %d, %d, 1], %%10\n }\n}\n",
      in, in, channels, in * channels, channels, outputs, c, taps, taps, c * taps * taps,
      taps * taps, taps, outputs, out, out, outputs, out * outputs, outputs, out, out, groups, o,
      taps, taps, c, in * channels, channels, c, in * channels, channels, o * c * taps * taps,
      c * taps * taps, taps, taps * taps, o, out * outputs, outputs, o);
}

static void softmax(char *text, int rows, int columns) {
  snprintf(text, TEXT,
           "kernel {\n in b0: f32[%d, %d] [%d, 1]\n out b1: f32[%d, %d] [%d, 1]\n"
           " local b2: f32[%d] [1]\n nest [%d] {\n reduce %d {\n %%1 = load f32 b0 + 0 [%d, 1]\n"
           " %%2 = amax f32 %%1 over 1\n }\n reduce %d {\n %%5 = load f32 b0 + 0 [%d, 1]\n"
           " %%6 = sub f32 %%5, %%2\n %%7 = exp f32 %%6\n store f32 b2 + 0 [0, 1], %%7\n"
           " %%9 = sum f32 %%7 over 1\n }\n for %d {\n %%12 = load f32 b2 + 0 [0, 1]\n"
           " %%13 = div f32 %%12, %%9\n store f32 b1 + 0 [%d, 1], %%13\n }\n }\n}\n",
           rows, columns, columns, rows, columns, columns, columns, rows, columns, columns, columns,
           columns, columns, columns);
}

/* t = tanh(a b + c) sigmoid(a); (t - c) clamped to -1 and 1, by 0.5, + exp(-t t) */
static void chain(char *text, int count) {
  snprintf(text, TEXT,
           "kernel {\n in b0: f32[%d] [1]\n in b1: f32[%d] [1]\n in b2: f32[%d] [1]\n"
           " out b3: f32[%d] [1]\n nest [%d] {\n %%0 = load f32 b0 + 0 [1]\n"
           " %%1 = load f32 b1 + 0 [1]\n %%2 = load f32 b2 + 0 [1]\n %%3 = mul f32 %%0, %%1\n"
           " %%4 = add f32 %%3, %%2\n %%5 = tanh f32 %%4\n %%6 = neg f32 %%0\n %%7 = exp f32 %%6\n"
           " %%8 = const f32 1\n %%9 = add f32 %%7, %%8\n %%10 = div f32 %%5, %%9\n"
           " %%11 = sub f32 %%10, %%2\n %%12 = neg f32 %%8\n %%13 = max f32 %%11, %%12\n"
           " %%14 = min f32 %%13, %%8\n %%15 = const f32 0.5\n %%16 = mul f32 %%14, %%15\n"
           " %%17 = mul f32 %%10, %%10\n %%18 = neg f32 %%17\n %%19 = exp f32 %%18\n"
           " %%20 = add f32 %%16, %%19\n store f32 b3 + 0 [1], %%20\n }\n}\n",
           count, count, count, count, count);
}

/* out[j][i] = relu(in[i][j]) + in[i][j] */
static void transpose(char *text, int rows, int columns) {
  snprintf(text, TEXT,
           "kernel {\n in b0: f32[%d, %d] [%d, 1]\n out b1: f32[%d, %d] [%d, 1]\n nest [%d, %d] {\n"
           " %%0 = load f32 b0 + 0 [1, %d]\n %%1 = const f32 0\n %%2 = max f32 %%0, %%1\n"
           " %%3 = add f32 %%2, %%0\n store f32 b1 + 0 [%d, 1], %%3\n }\n}\n",
           rows, columns, columns, columns, rows, rows, columns, rows, columns, rows);
}

static void run(const bench *b, const char *word, const char *name, const char *text) {
  kiln_arena *arena;
  kiln_compiled *code;
  kiln_reason reason;
  kiln_str schedule;
  if (word && !strstr(name, word)) return;
  expect(kiln_arena_create(b->env->mem, &arena));
  const kiln_loop_fn *fn = parse(text, arena);
  const uint64_t spent = kiln_codegen_tune(b->codegen, fn, NULL, true);
  expect(kiln_codegen_compile(b->codegen, fn, KILN_BACKEND_LLVM, &reason, &code, NULL));
  const kiln_tuned t = kiln_codegen_tuned(b->codegen, code->digest);
  printf("%-24s rules %9.2f us  best %9.2f us  %5.2f  %2d tried in %6.0f ms\n", name,
         (double)t.rule_ns * 1e-3, (double)t.best_ns * 1e-3,
         t.best_ns ? (double)t.rule_ns / (double)t.best_ns : 0, t.tried, (double)spent * 1e-6);
  const kiln_schedule rules = kiln_schedule_choose(fn, &b->machine, arena);
  printf("rules' " KILN_STR_FMT, KILN_STR_ARG(kiln_schedule_print(&rules, arena)));
  expect(kiln_codegen_dump(b->codegen, fn, KILN_STAGE_SCHEDULE, arena, &schedule));
  if (t.best_ns != t.rule_ns) printf(KILN_STR_FMT, KILN_STR_ARG(schedule));
  fflush(stdout);
  kiln_compiled_release(code);
  kiln_arena_destroy(arena);
}

int main(int argc, char **argv) {
  bench b;
  char text[TEXT];
  const int at = bench_open(&b, argc, argv);
  const char *word = at < argc ? argv[at] : NULL;
  linear(text, 128, 768, 3072), run(&b, word, "linear 128x768x3072", text);
  linear(text, 8, 512, 512), run(&b, word, "linear 8x512x512", text);
  linear(text, 32, 1024, 256), run(&b, word, "linear 32x1024x256", text);
  conv(text, 1, 64, 64, 56, 3), run(&b, word, "conv3x3 64-64 56", text);
  conv(text, 1, 72, 24, 56, 1), run(&b, word, "conv1x1 72-24 56", text);
  conv(text, 120, 1, 1, 28, 5), run(&b, word, "depthwise5x5 120 28", text);
  softmax(text, 64, 1024), run(&b, word, "softmax 64x1024", text);
  chain(text, 65536), run(&b, word, "chain 64K", text);
  transpose(text, 512, 512), run(&b, word, "transpose 512x512", text);
  bench_close(&b);
  return 0;
}
