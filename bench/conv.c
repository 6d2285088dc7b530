/* conv.c: the speed of the core's convolutions (runtime/kernels/heavy/conv.h) on the shapes of
 * resnet18 and mobilenet_v3_large, batch 1, as a share of the FMA peak of a core times the threads,
 * which it measures first. The operands are in the caches as far as they fit.
 *
 * conv [--threads N] [NAME] runs the shapes whose name contains NAME. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/conv_shapes.h"
#include "bench/peak.h"
#include "runtime/kernels/heavy/conv.h"
#include "runtime/math/math.h"

static void *filled(int64_t n) {
  float *data = aligned_alloc(64, ((size_t)n * sizeof(float) + 127) / 64 * 64);
  if (!data) exit(3);
  for (int64_t i = 0; i < n; i++) data[i] = (float)(i % 17) / 8 - 1;
  return data;
}
static kiln_conv_axis axis_of(const shape *s, int64_t in_stride, int64_t out, int64_t out_stride,
                              int64_t w_tap) {
  return (kiln_conv_axis){.in = s->in,
                          .in_stride = in_stride,
                          .out = out,
                          .out_stride = out_stride,
                          .step = s->stride,
                          .first = -(s->k / 2),
                          .taps = s->k,
                          .tap_step = 1,
                          .w_tap = w_tap};
}
static void run_shape(const shape *s, const kiln_dispatch *dispatch, kiln_pool *all, double peak) {
  const int64_t out = (s->in + 2 * (s->k / 2) - s->k) / s->stride + 1, taps = s->k * s->k;
  const int64_t channels = s->channels / s->groups;
  kiln_conv c = {.batch = 1,
                 .groups = s->groups,
                 .channels = channels,
                 .outputs = s->outputs / s->groups,
                 .in = filled(s->channels * s->in * s->in),
                 .weight = filled(s->outputs * channels * taps),
                 .bias = filled(s->outputs),
                 .out = filled(s->outputs * out * out),
                 .in_batch = 0,
                 .in_channel = s->in * s->in,
                 .out_channel = out * out,
                 .w_output = channels * taps,
                 .w_channel = taps};
  c.w_group = c.w_output * c.outputs;
  c.axis[0] = (kiln_conv_axis){1, 1, 1, 1, 1, 0, 1, 1, 0};
  c.axis[1] = axis_of(s, s->in, out, out, s->k);
  c.axis[2] = axis_of(s, 1, out, 1, 1);
  const int threads = kiln_conv_threads(&c, kiln_pool_threads(all));
  kiln_pool *pool = threads > 1 ? all : NULL;
  kiln_conv_plan plan;
  kiln_conv_make_plan(&c, dispatch, sizeof(float), threads, &plan);
  void *scratch = aligned_alloc(64, kiln_conv_scratch(&plan, threads));
  if (!scratch) exit(3);
  enum { RUNS = 200 };
  double times[RUNS];
  int runs = 0;
  for (double spent = 0; runs < RUNS && spent < 0.25; runs++) {
    const double start = bench_seconds();
    kiln_conv_run(&c, &plan, dispatch->conv_f32, pool, scratch);
    times[runs] = bench_seconds() - start;
    spent += times[runs];
  }
  const double time = bench_median(times, runs);
  const double rate = 2e-9 * (double)(s->outputs * out * out * channels * taps) / time;
  printf("%-30s %9.1f us %7.1f GFLOP/s", s->name, time * 1e6, rate);
  if (peak > 0) printf(" %5.1f %%", 100 * rate / peak);
  printf("\n");
  fflush(stdout);
  free(scratch);
  free((void *)(uintptr_t)c.in);
  free((void *)(uintptr_t)c.weight);
  free((void *)(uintptr_t)c.bias);
  free(c.out);
}

int main(int argc, char **argv) {
  kiln_pool *pool;
  int threads = 1;
  if (argc > 2 && strcmp(argv[1], "--threads") == 0) {
    threads = atoi(argv[2]);
    argc -= 2;
    argv += 2;
  }
  kiln_status *status = kiln_pool_create(threads, &pool);
  if (status) {
    fprintf(stderr, "%s\n", kiln_status_message(status));
    return 2;
  }
  const double peak = threads * bench_peak(kiln_isa_detect());
  printf("%-30s %12s %7.1f GFLOP/s\n", "FMA peak of the cores", "", peak);
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    if (argc < 2 || strstr(shapes[i].name, argv[1])) {
      run_shape(&shapes[i], kiln_dispatch_select(kiln_isa_detect()), pool, peak);
    }
  }
  kiln_pool_release(pool);
  return 0;
}
