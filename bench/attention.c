/* attention.c: softmax(q k^T / sqrt d) v in loop IR, as its schedule has it: h heads of s rows and
 * d columns, in microseconds, GFLOP/s of the two products, and as a share of the FMA peak that is
 * measured beside it.
 *
 *   taskset -c 0 build/bench/bench_attention [--isa v2|avx2|avx512] [--machine TEXT]
 *       [--schedule TEXT] [H S D]
 *
 * Results are compared with sums in double. The least of several times of the processor. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/kernels.h"

enum { TIMES = 60 };

static const int64_t shapes[][3] = {{8, 128, 64}, {8, 512, 64}, {8, 1024, 64}, {12, 197, 64}};

/* The kernel that a group of these operators becomes. */
static kiln_loop_fn *make_kernel(kiln_arena *arena, int64_t h, int64_t s, int64_t d) {
  kiln_loop_fn *fn = kiln_loop_create(arena);
  const int64_t sizes[] = {h, s, d}, steps[] = {s * d, d, 1}, one = 1, nest_sizes[] = {h, s};
  const kiln_dtype f32 = KILN_DTYPE_F32;
  for (int i = 0; i < 3; i++) kiln_loop_add_input(fn, f32, 3, sizes, steps);
  kiln_loop_add_output(fn, f32, 3, sizes, steps);
  for (int i = 0; i < 3; i++) kiln_loop_add_local(fn, f32, 1, &s, &one);
  kiln_loop_nest *n = kiln_loop_add_nest(fn, 2, nest_sizes);
  const int scale = kiln_loop_const_f(fn, n, f32, 1 / sqrt((double)d));
  const int64_t row[] = {0, 0, 1};
  kiln_loop_open(fn, n, KILN_LOOP_for, s);
  kiln_loop_open(fn, n, KILN_LOOP_reduce, d);
  int x = kiln_loop_load(fn, n, 0, 0, (int64_t[]){s * d, d, 0, 1});
  int y = kiln_loop_load(fn, n, 1, 0, (int64_t[]){s * d, 0, d, 1});
  x = kiln_loop_reduce(fn, n, KILN_LOOP_contract, x, y, 1);
  kiln_loop_end(fn, n);
  kiln_loop_store(fn, n, 4, 0, row, kiln_loop_op(fn, n, KILN_LOOP_mul, x, scale, -1));
  kiln_loop_end(fn, n);
  kiln_loop_open(fn, n, KILN_LOOP_reduce, s);
  x = kiln_loop_load(fn, n, 4, 0, row);
  const int most = kiln_loop_reduce(fn, n, KILN_LOOP_amax, x, -1, 1);
  kiln_loop_end(fn, n);
  kiln_loop_open(fn, n, KILN_LOOP_reduce, s);
  x = kiln_loop_op(fn, n, KILN_LOOP_sub, kiln_loop_load(fn, n, 4, 0, row), most, -1);
  x = kiln_loop_op(fn, n, KILN_LOOP_exp, x, -1, -1);
  kiln_loop_store(fn, n, 5, 0, row, x);
  const int sum = kiln_loop_reduce(fn, n, KILN_LOOP_sum, x, -1, 1);
  kiln_loop_end(fn, n);
  kiln_loop_open(fn, n, KILN_LOOP_for, s);
  x = kiln_loop_op(fn, n, KILN_LOOP_div, kiln_loop_load(fn, n, 5, 0, row), sum, -1);
  kiln_loop_store(fn, n, 6, 0, row, x);
  kiln_loop_end(fn, n);
  kiln_loop_open(fn, n, KILN_LOOP_for, d);
  kiln_loop_open(fn, n, KILN_LOOP_reduce, s);
  x = kiln_loop_load(fn, n, 6, 0, (int64_t[]){0, 0, 0, 1});
  y = kiln_loop_load(fn, n, 2, 0, (int64_t[]){s * d, 0, 1, d});
  x = kiln_loop_reduce(fn, n, KILN_LOOP_contract, x, y, 1);
  kiln_loop_end(fn, n);
  kiln_loop_store(fn, n, 3, 0, (int64_t[]){s * d, d, 1}, x);
  kiln_loop_end(fn, n);
  return fn;
}

static float *numbers(int64_t count, uint64_t seed) {
  float *out = aligned_alloc(64, ((size_t)count * sizeof *out + 63) / 64 * 64);
  for (int64_t i = 0; i < count; i++) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    out[i] = (float)((double)(seed >> 40) / (1 << 24) - 0.5) * 2;
  }
  return out;
}

static double worst_of(int64_t h, int64_t s, int64_t d, float *const data[4]) {
  double worst = 0, *p = malloc((size_t)s * sizeof *p);
  for (int64_t row = 0; row < h * s; row++) {
    const float *q = data[0] + row * d, *k = data[1] + row / s * s * d,
                *v = data[2] + row / s * s * d;
    double sum = 0;
    for (int64_t t = 0; t < s; t++) {
      double x = 0;
      for (int64_t i = 0; i < d; i++) x += (double)q[i] * (double)k[t * d + i];
      sum += p[t] = exp(x / sqrt((double)d));
    }
    for (int64_t i = 0; i < d; i++) {
      double x = 0;
      for (int64_t t = 0; t < s; t++) x += p[t] / sum * (double)v[t * d + i];
      worst = fmax(worst, fabs(x - (double)data[3][row * d + i]));
    }
  }
  free(p);
  return worst;
}

static void run(const bench *b, int64_t h, int64_t s, int64_t d) {
  kiln_arena *arena;
  expect(kiln_arena_create(b->env->mem, &arena));
  kiln_loop_fn *fn = make_kernel(arena, h, s, d);
  kiln_compiled *code;
  kiln_reason reason;
  expect(kiln_loop_verify(fn));
  const kiln_schedule schedule = bench_schedule(b, fn, arena);
  expect(kiln_codegen_compile_as(b->codegen, fn, &schedule, &reason, &code));
  float *data[4];
  for (int i = 0; i < 4; i++) data[i] = numbers(h * s * d, (uint64_t)i + 1);
  void *scratch = aligned_alloc(64, code->info.work.scratch_bytes / 64 * 64 + 64);
  const kiln_kernel_args args = {.data = (void *const *)data, .scratch = scratch};
  double best = INFINITY, peak = 0;
  for (int t = -3; t < TIMES; t++) {
    const double begin = bench_thread_seconds();
    code->fn(&args, &code->info.work.grid);
    best = fmin(best, (bench_thread_seconds() - begin) * 1e9);
    peak = fmax(peak, bench_peak_now(b));
  }
  const double gflops = 4.0 * (double)(h * s * s * d) / best;
  printf("%3lld %5lld %3lld  %9.1f us  %6.1f GFLOP/s  %5.1f %%  compiled %6.2f ms  scratch %zu K  "
         "error %.1e\n",
         (long long)h, (long long)s, (long long)d, best * 1e-3, gflops, 100 * gflops / peak,
         (double)code->compile_ns * 1e-6, (size_t)code->info.work.scratch_bytes >> 10,
         worst_of(h, s, d, data));
  for (int i = 0; i < 4; i++) free(data[i]);
  free(scratch);
  kiln_compiled_release(code);
  kiln_arena_destroy(arena);
}

int main(int argc, char **argv) {
  bench b;
  const int at = bench_open(&b, argc, argv);
  if (at + 2 < argc) {
    run(&b, atoll(argv[at]), atoll(argv[at + 1]), atoll(argv[at + 2]));
  } else {
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
      run(&b, shapes[i][0], shapes[i][1], shapes[i][2]);
  }
  bench_close(&b);
  return 0;
}
