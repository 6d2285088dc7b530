/* conv_kernels.c: convolutions as contractions of loop IR beside those of the interpreter
 * (runtime/kernels/heavy/conv.h), both with a bias, on shapes of resnet, mobilenet and shufflenet:
 * microseconds, and the share of the FMA peak.
 *
 *   taskset -c 0 build/bench/bench_conv_kernels [--channels-last] [--isa v2|avx2|avx512]
 *                                               [--schedule TEXT] [NAME]
 *
 * What a kernel reads from copies of its inputs is copied before, but for its first input, the
 * image, whose copy counts. Least times of turns. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/conv_shapes.h"
#include "bench/kernels.h"
#include "codegen/loop/schedule.h"
#include "runtime/kernels/heavy/conv.h"
#include "runtime/math/math.h"

static float *filled(int64_t n) {
  float *data = aligned_alloc(64, ((size_t)n * sizeof(float) + 127) / 64 * 64);
  if (!data) exit(3);
  for (int64_t i = 0; i < n; i++) data[i] = (float)(i * 7919 % 17) / 8 - 1;
  return data;
}

typedef struct problem {
  const shape *s;
  int out, pad;
  bool last; /* the kernel's image and result have their channels last in memory */
  float *x, *w, *b, *y, *y_kernel;
} problem;

/* -- The interpreter's -- */

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

typedef struct interpreted {
  kiln_conv c;
  kiln_conv_plan plan;
  const kiln_dispatch *dispatch;
  void *scratch;
} interpreted;

static interpreted make_interpreted(const problem *p, kiln_isa isa) {
  const shape *s = p->s;
  const int64_t taps = (int64_t)s->k * s->k, channels = s->channels / s->groups;
  const int64_t in = s->in, out = p->out;
  interpreted i = {.dispatch = kiln_dispatch_select(isa)};
  i.c = (kiln_conv){.batch = 1,
                    .groups = s->groups,
                    .channels = channels,
                    .outputs = s->outputs / s->groups,
                    .in = p->x,
                    .weight = p->w,
                    .bias = p->b,
                    .out = p->y,
                    .in_channel = in * in,
                    .out_channel = out * out,
                    .w_output = channels * taps,
                    .w_channel = taps};
  i.c.w_group = i.c.w_output * i.c.outputs;
  i.c.axis[0] = (kiln_conv_axis){1, 1, 1, 1, 1, 0, 1, 1, 0};
  i.c.axis[1] = axis_of(s, in, out, out, s->k);
  i.c.axis[2] = axis_of(s, 1, out, 1, 1);
  kiln_conv_make_plan(&i.c, i.dispatch, sizeof(float), 1, &i.plan);
  i.scratch = aligned_alloc(64, kiln_conv_scratch(&i.plan, 1));
  return i;
}

/* -- The kernel -- */

static kiln_loop_fn *make_kernel(const problem *p, kiln_arena *arena) {
  const shape *s = p->s;
  const int c = s->channels / s->groups, o = s->outputs / s->groups, in = s->in + 2 * p->pad;
  const int out = p->out, k = s->k, all = s->outputs, last = p->last;
  const int plane = last ? 1 : in * in, col = last ? s->channels : 1, row = in * col;
  const int to_plane = last ? 1 : out * out, to_col = last ? all : 1, to_row = out * to_col;
  char text[2048];
  const bool inner = last && c > 1; /* channels that lie last are summed last */
  const int counts[] = {inner ? k : c, k, inner ? c : k};
  const int x_steps[] = {inner ? row : plane, inner ? col : row, inner ? plane : col};
  const int w_steps[] = {inner ? k : k * k, inner ? 1 : k, inner ? k * k : 1};
  snprintf(text, sizeof text,
           "kernel {\n in b0: f32[%d, %d, %d, %d] [%d, %d, %d, %d]\n"
           " in b1: f32[%d, %d, %d, %d] [%d, %d, %d, 1]\n"
           " in b2: f32[%d] [1]\n out b3: f32[%d, %d, %d] [%d, %d, %d]\n nest [%d, %d, %d, %d] {\n"
           " reduce %d {\n reduce %d {\n reduce %d {\n"
           " %%3 = load f32 b0 + 0 [%d, 0, %d, %d, %d, %d, %d]\n"
           " %%4 = load f32 b1 + 0 [%d, %d, 0, 0, %d, %d, %d]\n"
           " %%5 = contract f32 %%3, %%4 over 3\n }\n }\n }\n"
           " %%9 = load f32 b2 + 0 [%d, 1, 0, 0]\n %%10 = add f32 %%5, %%9\n"
           " store f32 b3 + 0 [%d, %d, %d, %d], %%10\n }\n}\n",
           s->groups, c, in, in, c * plane, plane, row, col,        /* x */
           all, c, k, k, c * k * k, k * k, k,                       /* w */
           all, all, out, out, to_plane, to_row, to_col,            /* b, y */
           s->groups, o, out, out, counts[0], counts[1], counts[2], /* loops */
           c * plane, row * s->stride, col * s->stride, x_steps[0], x_steps[1], x_steps[2],
           o * c * k * k, c * k * k, w_steps[0], w_steps[1], w_steps[2], /* w's */
           o, o * to_plane, to_plane, to_row, to_col);
  kiln_loop_fn *fn;
  expect(kiln_loop_parse(kiln_str_from(text), arena, &fn));
  expect(kiln_loop_optimize(fn, arena));
  return fn;
}

/* With its channels last, or back. */
static float *turned(const float *from, int channels, int pixels, bool back) {
  float *to = filled((int64_t)channels * pixels);
  for (int c = 0; c < channels; c++)
    for (int i = 0; i < pixels; i++)
      to[back ? c * pixels + i : i * channels + c] = from[back ? i * channels + c : c * pixels + i];
  return to;
}

/* Its rows with zeros around them. */
static void pad_image(const problem *p, const float *from, float *to) {
  const int in = p->s->in, wide = in + 2 * p->pad;
  memset(to, 0, sizeof *to * (size_t)p->s->channels * (size_t)(wide * wide));
  if (p->last) {
    const size_t row = (size_t)p->s->channels * (size_t)in;
    for (int y = 0; y < in; y++)
      memcpy(to + ((int64_t)(y + p->pad) * wide + p->pad) * p->s->channels,
             from + (int64_t)y * (int64_t)row, sizeof *to * row);
    return;
  }
  for (int c = 0; c < p->s->channels; c++)
    for (int y = 0; y < in; y++)
      memcpy(to + (int64_t)c * wide * wide + (y + p->pad) * wide + p->pad,
             from + (int64_t)c * in * in + y * in, sizeof *to * (size_t)in);
}

static double worst_of(problem *p) {
  double worst = 0;
  if (p->last) {
    float *y = turned(p->y_kernel, p->s->outputs, p->out * p->out, true);
    free(p->y_kernel);
    p->y_kernel = y;
  }
  for (int64_t i = 0; i < (int64_t)p->s->outputs * p->out * p->out; i++) {
    const double error = fabs((double)p->y[i] - (double)p->y_kernel[i]);
    if (!(error <= worst)) worst = error;
  }
  return worst;
}

static double turn(double best, double begin) {
  const double time = bench_seconds() - begin;
  return time < best ? time : best;
}

static void run(const bench *b, const shape *s, bool last) {
  problem p = {.s = s, .pad = s->k / 2, .last = last};
  p.out = (s->in + 2 * p.pad - s->k) / s->stride + 1;
  const int64_t channels = s->channels / s->groups, wide = s->in + 2 * p.pad;
  const int64_t size = (int64_t)s->outputs * p.out * p.out;
  p.x = filled((int64_t)s->channels * s->in * s->in);
  p.w = filled(s->outputs * channels * s->k * s->k);
  p.b = filled(s->outputs);
  p.y = filled(size);
  p.y_kernel = filled(size);
  float *padded = filled(s->channels * wide * wide);
  kiln_arena *arena;
  kiln_compiled *code;
  kiln_reason reason;
  expect(kiln_arena_create(b->env->mem, &arena));
  kiln_loop_fn *fn = make_kernel(&p, arena);
  const kiln_schedule schedule = bench_schedule(b, fn, arena);
  expect(kiln_codegen_compile_as(b->codegen, fn, &schedule, &reason, &code));
  float *image = p.last ? turned(p.x, s->channels, s->in * s->in, false) : p.x;
  const void *data[4] = {p.pad ? padded : image, p.w, p.b, p.y_kernel};
  void *copies[4] = {0};
  const int64_t numel[] = {s->channels * (p.pad ? wide * wide : (int64_t)s->in * s->in),
                           s->outputs * channels * s->k * s->k, s->outputs};
  bench_pack(code, numel, data, copies);
  const kiln_kernel_args args = {.data = (void *const *)data};
  interpreted in = make_interpreted(&p, b->env->isa);
  double own = 1, other = 1, padding = 0, peak = 0;
  const double until = bench_seconds() + 0.4;
  for (int n = 0; n < 5 || bench_seconds() < until; n++) {
    double begin = bench_seconds();
    kiln_conv_run(&in.c, &in.plan, in.dispatch->conv_f32, NULL, in.scratch);
    other = turn(other, begin);
    begin = bench_seconds();
    if (p.pad) pad_image(&p, image, padded);
    padding = n ? turn(padding, begin) : 1;
    begin = bench_seconds();
    code->fn(&args, &code->info.work.grid);
    own = turn(own, begin);
    peak = fmax(peak, bench_peak_now(b));
  }
  const double flops = 2e-9 * (double)(size * channels * s->k * s->k);
  printf("%-28s interpreter %8.1f us %5.1f %%  kernel %8.1f us %5.1f %%, padding %6.1f us: %.2f  "
         "compiled %5.1f ms error %.1e  %s",
         s->name, other * 1e6, 100 * flops / other / peak, own * 1e6,
         100 * flops / own / peak, padding * 1e6, other / (own + padding),
         (double)code->compile_ns * 1e-6, worst_of(&p),
         kiln_schedule_print(&schedule, arena).len ? kiln_schedule_print(&schedule, arena).data + 11
                                                   : "none\n");
  fflush(stdout);
  for (int i = 0; i < 4; i++) free(copies[i]);
  if (p.last) free(image);
  free(p.x), free(p.w), free(p.b), free(p.y), free(p.y_kernel), free(padded), free(in.scratch);
  kiln_compiled_release(code);
  kiln_arena_destroy(arena);
}

int main(int argc, char **argv) {
  bench b;
  const bool last = argc > 1 && strcmp(argv[1], "--channels-last") == 0;
  argc -= last, argv += last;
  const int at = bench_open(&b, argc, argv);
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    if (at >= argc || strstr(shapes[i].name, argv[at])) run(&b, &shapes[i], last);
  bench_close(&b);
  return 0;
}
