/* winograd.c: the speed of Winograd convolutions (runtime/kernels/heavy/winograd.h) beside the
 * interpreter's (conv.h), on 3x3 convolutions with channels last, for each instruction set of the
 * machine and one after the other, A B A B, so that both have the same noise. Times are the least.
 * GFLOP/s count the products of a direct convolution. Operands are in the caches as far as they
 * fit; with --cold, weights take turns, so that they come from memory.
 *
 * bench_winograd [--threads N] [--cold] [NAME] runs the shapes whose name contains NAME. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/operands.h"
#include "bench/peak.h"
#include "runtime/kernels/heavy/conv.h"
#include "runtime/kernels/heavy/winograd.h"
#include "runtime/math/math.h"

typedef struct shape {
  const char *name;
  int batch, channels, outputs, size;
} shape;
static const shape shapes[] = {
    {"64->64 @56", 1, 64, 64, 56},       {"128->128 @28", 1, 128, 128, 28},
    {"256->256 @14", 1, 256, 256, 14},   {"512->512 @7", 1, 512, 512, 7},
    {"512->512 @14", 1, 512, 512, 14},   {"4 x 256->256 @14", 4, 256, 256, 14},
    {"8 x 512->512 @7", 8, 512, 512, 7}, {"64->64 @224", 1, 64, 64, 224},
    {"16->16 @56", 1, 16, 16, 56},       {"32->32 @56", 1, 32, 32, 56},
    {"16->64 @56", 1, 16, 64, 56},       {"64->16 @56", 1, 64, 16, 56},
    {"48->192 @28", 1, 48, 192, 28},     {"3->64 @224", 1, 3, 64, 224},
    {"70->70 @30", 1, 70, 70, 30},
};

typedef struct setting {
  int threads;
  bool cold;
  kiln_pool *pool;
  kiln_core_machine machine;
} setting;

/* A way to compute a shape, its weights in copies that take turns. */
typedef struct way {
  int copies, next;
  float *weights;
  int64_t copy; /* floats */
  kiln_conv conv;
  kiln_conv_plan conv_plan;
  kiln_conv_fn fn;
  kiln_winograd_plan plan;
  float *x, *y;
  void *scratch;
  double best;
} way;
enum { COLD_BYTES = 96 << 20 };
static void take_copies(way *w, const setting *t, int64_t floats) {
  w->copy = (floats + 15) / 16 * 16;
  w->copies = t->cold ? (int)(COLD_BYTES / (w->copy * 4)) + 2 : 1;
  w->weights = bench_filled(w->copy * w->copies);
}
static void run_way(way *w, kiln_pool *pool) {
  float *weights = w->weights + w->next * w->copy;
  w->next = (w->next + 1) % w->copies;
  const double start = bench_seconds();
  if (w->fn) {
    w->conv.weight = weights;
    kiln_conv_run(&w->conv, &w->conv_plan, w->fn, pool, w->scratch);
  } else {
    kiln_winograd_run(&w->plan, w->x, weights, w->y, NULL, NULL, pool, w->scratch);
  }
  const double time = bench_seconds() - start;
  if (time < w->best) w->best = time;
}
static void *scratch_of(size_t bytes) {
  void *scratch = aligned_alloc(64, (bytes + 63) / 64 * 64);
  if (!scratch) exit(3);
  return scratch;
}
static void make_direct(way *w, const shape *s, const kiln_dispatch *dispatch, const setting *t) {
  const int64_t size = s->size, plane = size * size;
  kiln_conv *c = &w->conv;
  *c = (kiln_conv){.batch = s->batch,
                   .groups = 1,
                   .channels = s->channels,
                   .outputs = s->outputs,
                   .in = bench_filled(s->batch * s->channels * plane),
                   .out = bench_filled(s->batch * s->outputs * plane),
                   .in_batch = s->channels * plane,
                   .out_batch = s->outputs * plane,
                   .in_channel = plane,
                   .out_channel = plane,
                   .w_output = 9 * s->channels,
                   .w_channel = 9};
  c->axis[0] = (kiln_conv_axis){1, 1, 1, 1, 1, 0, 1, 1, 0};
  c->axis[1] = (kiln_conv_axis){size, size, size, size, 1, -1, 3, 1, 3};
  c->axis[2] = (kiln_conv_axis){size, 1, size, 1, 1, -1, 3, 1, 1};
  take_copies(w, t, s->outputs * c->w_output);
  kiln_conv_make_plan(c, dispatch, sizeof(float), t->threads, &w->conv_plan);
  w->scratch = scratch_of(kiln_conv_scratch(&w->conv_plan, t->threads));
  w->fn = dispatch->conv_f32;
  w->best = 1e9;
}
static kiln_winograd problem_of(const shape *s) {
  const int64_t size = s->size;
  return (kiln_winograd){.batch = s->batch,
                         .dilation = {1, 1},
                         .channels = s->channels,
                         .outputs = s->outputs,
                         .planes = 1,
                         .in = {1, size, size},
                         .out = {1, size, size},
                         .pad = {0, 1, 1},
                         .in_batch = s->channels * size * size,
                         .in_axis = {0, s->channels * size, s->channels},
                         .out_batch = s->outputs * size * size,
                         .out_axis = {0, s->outputs * size, s->outputs}};
}
static void make_winograd(way *w, const shape *s, kiln_winograd_form form,
                          const kiln_dispatch *dispatch, const setting *t) {
  const kiln_winograd problem = problem_of(s);
  size_t bytes;
  bench_must(kiln_winograd_bytes(dispatch, form, 1, s->channels, s->outputs, &bytes));
  bench_must(kiln_winograd_make_plan(&problem, form, dispatch, &t->machine, t->threads, &w->plan));
  take_copies(w, t, (int64_t)(bytes / sizeof(float)));
  float *weight = bench_filled(9 * s->channels * s->outputs);
  const kiln_winograd_weight from = {weight, 9 * s->channels, 9, {0, 3, 1}};
  for (int i = 0; i < w->copies; i++) {
    bench_must(kiln_winograd_fill(dispatch, form, 1, s->channels, s->outputs, &from,
                                  w->weights + i * w->copy, NULL));
  }
  free(weight);
  w->x = bench_filled(s->batch * problem.in_batch);
  w->y = bench_filled(s->batch * problem.out_batch);
  w->scratch = scratch_of(kiln_winograd_scratch(&w->plan));
  w->best = 1e9;
}
static void discard(way *w) {
  free(w->weights);
  free((void *)(uintptr_t)w->conv.in);
  free(w->conv.out);
  free(w->x);
  free(w->y);
  free(w->scratch);
}

static void run_shape(const shape *s, kiln_isa isa, double peak, setting *t) {
  const kiln_dispatch *dispatch = kiln_dispatch_select(isa);
  t->machine.lanes = 4 << isa;
  way ways[3] = {0}; /* direct, then by form */
  make_direct(&ways[0], s, dispatch, t);
  make_winograd(&ways[1], s, KILN_WINOGRAD_F2, dispatch, t);
  make_winograd(&ways[2], s, KILN_WINOGRAD_F4, dispatch, t);
  const double end = bench_seconds() + 0.6;
  for (int run = 0; run < 5 || (run < 400 && bench_seconds() < end); run++) {
    for (int i = 0; i < 3; i++) run_way(&ways[i], t->pool);
  }
  const kiln_winograd problem = problem_of(s);
  const kiln_winograd_form chosen = kiln_winograd_choose(&problem, &t->machine);
  const double products =
      18e-9 * (double)s->batch * s->channels * s->outputs * (double)s->size * (double)s->size;
  printf("%-18s", s->name);
  for (int i = 0; i < 3; i++) {
    printf(" |%s%8.1f us %6.1f GFLOP/s", i == (int)chosen ? "*" : " ", ways[i].best * 1e6,
           products / ways[i].best);
    if (i > 0) {
      printf(" %4.2f x interp. %4.2f x 90 %%", ways[0].best / ways[i].best,
             products / (0.9 * peak) / ways[i].best);
    }
  }
  printf("  blocks %lld strip %lld%s\n", (long long)ways[2].plan.blocks,
         (long long)ways[2].plan.strip, ways[2].plan.by_panels ? " by panels" : "");
  fflush(stdout);
  for (int i = 0; i < 3; i++) discard(&ways[i]);
}

int main(int argc, char **argv) {
  setting t = {.threads = 1,
               .machine = {.l2_bytes = sysconf(_SC_LEVEL2_CACHE_SIZE),
                           .l3_bytes = sysconf(_SC_LEVEL3_CACHE_SIZE)}};
  for (; argc > 1 && argv[1][0] == '-'; argc--, argv++) {
    if (strcmp(argv[1], "--cold") == 0) t.cold = true;
    if (strcmp(argv[1], "--threads") == 0 && argc > 2) {
      t.threads = atoi(argv[2]);
      argc--, argv++;
    }
  }
  bench_must(kiln_pool_create(t.threads, &t.pool));
  static const char *const names[] = {"x86-64-v2", "AVX2", "AVX-512"};
  for (int isa = (int)kiln_dispatch_last(); isa >= 0; isa--) {
    const double peak = t.threads * bench_peak((kiln_isa)isa);
    printf("%s: FMA peak of the cores %.1f GFLOP/s\n%-18s | interpreter's %18s | F2 %51s | F4\n",
           names[isa], peak, "3x3, pad 1", "", "");
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
      if (argc < 2 || strstr(shapes[i].name, argv[1])) {
        run_shape(&shapes[i], (kiln_isa)isa, peak, &t);
      }
    }
  }
  kiln_pool_release(t.pool);
  return 0;
}
