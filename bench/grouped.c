/* grouped.c: the speed of convolutions of narrow groups (runtime/kernels/heavy/grouped.h) beside
 * the interpreter's (conv.h), on 3 x 3 windows with padding 1 and channels last, for each
 * instruction set of the machine that has such kernels, in turns. Times are the least; shares are
 * of the fused products that the run measured.
 *
 * bench_grouped [NAME] runs the shapes whose name contains NAME. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/operands.h"
#include "bench/peak.h"
#include "runtime/kernels/heavy/conv.h"
#include "runtime/kernels/heavy/grouped.h"

typedef struct shape {
  const char *name;
  int each, outputs, size, step;
} shape;
static const shape shapes[] = {
    {"32 of 2 @56", 2, 64, 56, 1},     {"32 of 4 @56", 4, 128, 56, 1},
    {"32 of 4 s2 @56", 4, 128, 56, 2}, {"13 of 8 @28", 8, 104, 28, 1},
    {"32 of 8 @28", 8, 256, 28, 1},    {"32 of 8 s2 @28", 8, 256, 28, 2},
    {"32 of 16 @14", 16, 512, 14, 1},  {"32 of 16 s2 @14", 16, 512, 14, 2},
    {"27 of 16 @7", 16, 432, 7, 1},
};

static int64_t out_of(const shape *s) { return (s->size - 1) / s->step + 1; }

static kiln_grouped problem_of(const shape *s) {
  const int64_t in = s->size, out = out_of(s);
  return (kiln_grouped){.batch = 1,
                        .outputs = s->outputs,
                        .each = s->each,
                        .in = {in, in},
                        .out = {out, out},
                        .pad = {1, 1},
                        .step = s->step,
                        .in_batch = s->outputs * in * in,
                        .in_axis = {s->outputs * in, s->outputs},
                        .out_batch = s->outputs * out * out,
                        .out_axis = {s->outputs * out, s->outputs}};
}
static kiln_conv direct_of(const shape *s, const float *x, const float *weight, float *y) {
  const int64_t in = s->size, out = out_of(s);
  kiln_conv c = {.batch = 1,
                 .groups = s->outputs / s->each,
                 .channels = s->each,
                 .outputs = s->each,
                 .in = x,
                 .weight = weight,
                 .out = y,
                 .in_batch = s->outputs * in * in,
                 .in_channel = 1,
                 .out_batch = s->outputs * out * out,
                 .out_channel = 1,
                 .w_group = 9 * s->each * s->each,
                 .w_output = 9 * s->each,
                 .w_channel = 9};
  c.axis[0] = (kiln_conv_axis){1, 1, 1, 1, 1, 0, 1, 1, 0};
  c.axis[1] = (kiln_conv_axis){in, s->outputs * in, out, s->outputs * out, s->step, -1, 3, 1, 3};
  c.axis[2] = (kiln_conv_axis){in, s->outputs, out, s->outputs, s->step, -1, 3, 1, 1};
  return c;
}

static void run_shape(const shape *s, const kiln_dispatch *dispatch, double peak) {
  const kiln_grouped p = problem_of(s);
  if (!kiln_grouped_fits(&p, dispatch)) return;
  float *x = bench_filled(p.in_batch), *y = bench_filled(p.out_batch);
  float *weight = bench_filled(9 * (int64_t)s->each * s->outputs);
  const kiln_grouped_weight from = {weight, 9 * s->each, 9, {3, 1}};
  size_t bytes;
  bench_must(kiln_grouped_bytes(dispatch, s->outputs, s->each, &bytes));
  float *u = bench_filled((int64_t)(bytes / sizeof(float)));
  kiln_grouped_fill(dispatch, s->outputs, s->each, &from, u);
  const kiln_conv direct = direct_of(s, x, weight, y);
  kiln_conv_plan plan;
  kiln_conv_make_plan(&direct, dispatch, sizeof(float), 1, &plan);
  void *scratch = bench_filled((int64_t)(kiln_conv_scratch(&plan, 1) / sizeof(float)) + 1);
  double ours = 1e9, its = 1e9;
  const double end = bench_seconds() + 0.4;
  for (int run = 0; run < 5 || (run < 2000 && bench_seconds() < end); run++) {
    const double begin = bench_seconds();
    kiln_grouped_run(&p, dispatch, x, u, y, NULL, NULL, NULL);
    const double middle = bench_seconds();
    kiln_conv_run(&direct, &plan, dispatch->conv_f32, NULL, scratch);
    const double last = bench_seconds();
    if (middle - begin < ours) ours = middle - begin;
    if (last - middle < its) its = last - middle;
  }
  const double products = 18e-9 * s->each * s->outputs * (double)out_of(s) * (double)out_of(s);
  printf("%-18s %8.1f us %5.1f %%   interpreter's %8.1f us %5.1f %%\n", s->name, ours * 1e6,
         100 * products / ours / peak, its * 1e6, 100 * products / its / peak);
  fflush(stdout);
  free(x);
  free(y);
  free(weight);
  free(u);
  free(scratch);
}

int main(int argc, char **argv) {
  static const char *const names[] = {"x86-64-v2", "AVX2", "AVX-512"};
  for (int isa = (int)kiln_dispatch_last(); isa >= 0; isa--) {
    const kiln_dispatch *dispatch = kiln_dispatch_select((kiln_isa)isa);
    if (!dispatch->grouped) continue;
    const double peak = bench_peak((kiln_isa)isa);
    printf("%s: FMA peak of the core %.1f GFLOP/s\n", names[isa], peak);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
      if (argc < 2 || strstr(shapes[i].name, argv[1])) run_shape(&shapes[i], dispatch, peak);
  }
  return 0;
}
