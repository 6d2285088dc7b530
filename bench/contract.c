/* contract.c: contractions in loop IR, as their schedules have them: linear(x, w) + b and relu for
 * m rows, n columns and k products, in microseconds, GFLOP/s, and as a share of the FMA peak that
 * is measured beside it.
 *
 *   taskset -c 0 build/bench/bench_contract [--isa v2|avx2|avx512] [--machine TEXT]
 *       [--schedule TEXT] [M N K [bf16]]
 *
 * Results are compared with sums in double. Medians. Without a schedule the rules choose it. Beside
 * it, in turn, the products alone in blocks (runtime/kernels/heavy/blocked.h), as they stand and by
 * Strassen's algorithm, whichever the core would choose. With bf16 factors are rounded to that, and
 * the error is mostly theirs; what callers round for each call is in the time. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/kernels.h"
#include "runtime/kernels/heavy/blocked.h"

/* The kernel, and the blocked forms of f32. */
enum { TIMES = 31, WAYS = KILN_BLOCKED_STRASSEN + 1 };

static const int64_t shapes[][3] = {
    {2, 256, 256},    {5, 256, 1024},   {8, 512, 512},      {8, 1024, 1024}, {16, 1024, 256},
    {32, 256, 256},   {32, 1024, 256},  {32, 256, 1024},    {128, 768, 768}, {128, 3072, 768},
    {128, 768, 3072}, {512, 512, 512},  {1024, 1024, 1024}, {64, 64, 64},    {197, 64, 197},
    {197, 384, 384},  {196, 1000, 512}, {1024, 64, 576},
};

static const char kernel_text[] =
    "kernel {\n in b0: f32[%d, %d] [%d, 1]\n in b1: f32[%d, %d] [%d, 1]\n in b2: f32[%d] [1]\n"
    " out b3: f32[%d, %d] [%d, 1]\n nest [%d, %d] {\n reduce %d {\n"
    " %%1 = load f32 b0 + 0 [%d, 0, 1]\n %%2 = cast %s %%1\n %%3 = cast f32 %%2\n"
    " %%4 = load f32 b1 + 0 [0, %d, 1]\n %%5 = cast %s %%4\n %%6 = cast f32 %%5\n"
    " %%7 = contract f32 %%3, %%6 over 1\n }\n %%9 = load f32 b2 + 0 [0, 1]\n"
    " %%10 = add f32 %%7, %%9\n %%11 = const f32 0\n %%12 = max f32 %%10, %%11\n"
    " store f32 b3 + 0 [%d, 1], %%12\n }\n}\n";

static float *numbers(int64_t count, uint64_t seed) {
  float *out = aligned_alloc(64, ((size_t)count * sizeof *out + 63) / 64 * 64);
  for (int64_t i = 0; i < count; i++) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    out[i] = (float)((double)(seed >> 40) / (1 << 24) - 0.5);
  }
  return out;
}

static double worst_of(int64_t m, int64_t n, int64_t k, const float *x, const float *w,
                       const float *b, const float *y) {
  double worst = 0;
  for (int64_t i = 0; i < m; i++) {
    for (int64_t j = 0; j < n; j++) {
      double sum = b[j], size = fabs(b[j]);
      for (int64_t p = 0; p < k; p++) {
        sum += (double)x[i * k + p] * (double)w[j * k + p];
        size += fabs((double)x[i * k + p] * (double)w[j * k + p]);
      }
      const double error = fabs((sum > 0 ? sum : 0) - (double)y[i * n + j]) / size;
      if (!(error <= worst)) worst = error;
    }
  }
  return worst;
}

/* What of x is copied for each call; false: nothing. */
static bool find_copy(const kiln_compiled *code, int64_t numel, kiln_kernel_pack *out,
                      int *out_at) {
  for (int i = 0; i < code->info.pack_count; i++) {
    if (code->info.packs[i].input != 0) continue;
    *out = kiln_pack_of(&code->info.packs[i], numel, NULL, NULL);
    *out_at = i;
    return true;
  }
  return false;
}

/* -- In blocks -- */

typedef struct blocked {
  kiln_blocked_plan plan;
  float *u, *y;
  void *scratch;
} blocked;
static void *room(size_t bytes) {
  void *data = aligned_alloc(64, (bytes + 127) / 64 * 64);
  if (!data) exit(3);
  return data;
}
static blocked make_blocked(const bench *b, kiln_blocked_form form, const kiln_blocked *problem,
                            const float *weight) {
  const kiln_dispatch *dispatch = kiln_dispatch_select(b->env->isa);
  const kiln_core_machine machine = kiln_machine_of_core(&b->machine, false);
  const int64_t slice = kiln_blocked_slice(form, problem->depth, &machine);
  const kiln_blocked_weight from = {weight,           problem->depth, 1,
                                    problem->outputs, problem->depth, slice};
  blocked made;
  size_t bytes;
  expect(kiln_blocked_make_plan(problem, form, slice, dispatch, &machine, 1, &made.plan));
  expect(kiln_blocked_bytes(dispatch, form, &from, &bytes));
  made.u = room(bytes);
  made.y = room((size_t)(problem->rows * problem->outputs) * sizeof(float));
  made.scratch = room(kiln_blocked_scratch(&made.plan));
  expect(kiln_blocked_fill(dispatch, form, &from, made.u, NULL));
  return made;
}
static void discard(blocked *made) { free(made->u), free(made->y), free(made->scratch); }

static void run(const bench *b, int64_t m, int64_t n, int64_t k, const char *factors) {
  kiln_arena *arena;
  expect(kiln_arena_create(b->env->mem, &arena));
  char text[2048];
  kiln_loop_fn *fn;
  kiln_compiled *code;
  kiln_reason reason;
  const int M = (int)m, N = (int)n, K = (int)k;
  snprintf(text, sizeof text, kernel_text, M, K, K, N, K, K, N, M, N, N, M, N, K, K, factors, K,
           factors, N);
  expect(kiln_loop_parse(kiln_str_from(text), arena, &fn));
  const kiln_schedule schedule = bench_schedule(b, fn, arena);
  expect(kiln_codegen_compile_as(b->codegen, fn, &schedule, &reason, &code));
  float *x = numbers(m * k, 1), *w = numbers(n * k, 2), *bias = numbers(n, 3),
        *y = numbers(m * n, 4);
  const void *data[4] = {x, w, bias, y};
  void *copies[4] = {0};
  bench_pack(code, (const int64_t[]){m * k, n * k, n}, data, copies);
  const kiln_kernel_args args = {.data = (void *const *)data};
  kiln_kernel_pack rows;
  int at;
  const bool copies_x = find_copy(code, m * k, &rows, &at);
  const kiln_blocked problem = {m, k, n, k, n};
  blocked ways[WAYS];
  for (int i = KILN_BLOCKED_DIRECT; i < WAYS; i++)
    ways[i] = make_blocked(b, (kiln_blocked_form)i, &problem, w);
  double times[WAYS][TIMES], ns[WAYS], peaks[TIMES]; /* 0: the kernel */
  for (int t = -3; t < TIMES; t++) {
    if (t >= 0) peaks[t] = bench_peak_now(b);
    for (int i = 0; i < WAYS; i++) {
      const uint64_t begin = kiln_now_ns();
      int calls = 0;
      while (kiln_now_ns() - begin < 2000000 || calls == 0) {
        if (i > 0) {
          kiln_blocked_run(&ways[i].plan, x, ways[i].u, bias, ways[i].y, NULL, NULL, NULL,
                           ways[i].scratch);
        } else {
          if (copies_x) kiln_pack_copy(&rows, x, copies[at]);
          code->fn(&args, &code->info.work.grid);
        }
        calls++;
      }
      if (t >= 0) times[i][t] = (double)(kiln_now_ns() - begin) / calls;
    }
  }
  const double operations = 2.0 * (double)m * (double)n * (double)k;
  const double peak = bench_median(peaks, TIMES);
  double shares[WAYS];
  for (int i = 0; i < WAYS; i++) {
    ns[i] = bench_median(times[i], TIMES);
    shares[i] = 100 * operations / ns[i] / peak;
    if (i > 0) discard(&ways[i]);
  }
  printf("%5d %5d %5d  %9.1f us  %6.1f GFLOP/s  %5.1f %%  compiled %6.2f ms  error %.1e"
         "  in blocks %5.1f %%  Strassen %5.1f %%\n",
         M, N, K, ns[0] * 1e-3, operations / ns[0], shares[0], (double)code->compile_ns * 1e-6,
         worst_of(m, n, k, x, w, bias, y), shares[1], shares[2]);
  for (int i = 0; i < 4; i++) free(copies[i]);
  free(x), free(w), free(bias), free(y);
  kiln_compiled_release(code);
  kiln_arena_destroy(arena);
}

int main(int argc, char **argv) {
  bench b;
  const int at = bench_open(&b, argc, argv);
  if (at + 2 < argc) {
    run(&b, atoll(argv[at]), atoll(argv[at + 1]), atoll(argv[at + 2]),
        at + 3 < argc ? argv[at + 3] : "f32");
  } else {
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
      run(&b, shapes[i][0], shapes[i][1], shapes[i][2], "f32");
  }
  bench_close(&b);
  return 0;
}
