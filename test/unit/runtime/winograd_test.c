/* winograd_test.c: Winograd convolutions against direct ones in double: random sizes, planes, pads,
 * dilations, pitches and weights of any strides, on every instruction set of this machine, with
 * threads and without; bits that do not depend on either; rows that are handed on once, complete;
 * how large the errors are beside those of the interpreter's convolution; sizes that overflow, and
 * budgets that end. */
#include "test/unit/unit.h"

#include <math.h>
#include <stdlib.h>

#include "base/sanitize.h"
#include "runtime/kernels/heavy/conv.h"
#include "runtime/kernels/heavy/winograd.h"
#include "test/unit/runtime/numbers.h"
#include "test/unit/traps.h"

/* -- Problems -- */

typedef struct problem {
  kiln_winograd p;
  kiln_winograd_weight weight;
  int64_t in_count, weight_count, out_count;
  float *x, *w;
  double *exact;   /* results; [batch][plane][row][column][output] */
  double *largest; /* of an output: sum of the weights' sizes, each times its channel's largest */
} problem;

/* Strides of pixels with `channels`, some floats between pixels, rows, planes and images. */
static int64_t lay_out(int64_t channels, const int64_t sizes[3], int64_t batch, int64_t gap,
                       int64_t strides[3], int64_t *image) {
  int64_t step = channels + gap, count = channels;
  for (int d = 2; d >= 0; d--) {
    strides[d] = step;
    step = sizes[d] * step + (4 - d) * gap;
    count += (sizes[d] - 1) * strides[d];
  }
  *image = step;
  return count + (batch - 1) * *image;
}
static void lay_out_weight(problem *t, bool mixed) {
  const int64_t sizes[] = {t->p.outputs, t->p.channels, t->p.planes, 3, 3};
  int64_t strides[5];
  t->weight_count = lay_in_order(5, sizes, mixed, strides);
  t->weight =
      (kiln_winograd_weight){NULL, strides[0], strides[1], {strides[2], strides[3], strides[4]}};
}
static double tap_of(const problem *t, int64_t output, int64_t channel, int64_t plane, int64_t i,
                     int64_t j) {
  const kiln_winograd_weight *w = &t->weight;
  return (double)t->w[output * w->output + channel * w->channel + plane * w->tap[0] +
                      i * w->tap[1] + j * w->tap[2]];
}
/* Output `at`, counted as in `exact`. */
static void solve_one(problem *t, int64_t at) {
  const kiln_winograd *p = &t->p;
  const int64_t output = at % p->outputs, pixel = at / p->outputs;
  const int64_t column = pixel % p->out[2], line = pixel / p->out[2], row = line % p->out[1];
  const int64_t plane = line / p->out[1] % p->out[0], image = line / p->out[1] / p->out[0];
  double sum = 0;
  for (int64_t tap = 0; tap < p->planes * 9; tap++) {
    const int64_t h = tap / 9, i = tap / 3 % 3, j = tap % 3;
    const int64_t v = plane - p->pad[0] + h, y = row - p->pad[1] + i * p->dilation[0];
    const int64_t z = column - p->pad[2] + j * p->dilation[1];
    const float *x =
        t->x + image * p->in_batch + v * p->in_axis[0] + y * p->in_axis[1] + z * p->in_axis[2];
    if (v < 0 || v >= p->in[0] || y < 0 || y >= p->in[1] || z < 0 || z >= p->in[2]) continue;
    for (int64_t c = 0; c < p->channels; c++) sum += (double)x[c] * tap_of(t, output, c, h, i, j);
  }
  t->exact[at] = sum;
}
static void find_largest(problem *t) {
  const kiln_winograd *p = &t->p;
  for (int64_t c = 0; c < p->channels; c++) {
    double largest = 0;
    for (int64_t pixel = 0; pixel < p->batch * p->in[0] * p->in[1] * p->in[2]; pixel++) {
      const int64_t line = pixel / p->in[2], plane = line / p->in[1];
      largest = fmax(
          largest,
          (double)t->x[plane / p->in[0] * p->in_batch + plane % p->in[0] * p->in_axis[0] +
                       line % p->in[1] * p->in_axis[1] + pixel % p->in[2] * p->in_axis[2] + c]);
    }
    for (int64_t n = 0; n < p->outputs; n++) {
      for (int64_t k = 0; k < p->planes * 9; k++)
        t->largest[n] += largest * fabs(tap_of(t, n, c, k / 9, k / 3 % 3, k % 3));
    }
  }
}
/* Inputs are positive, as behind a relu, and weights normal: as in trained networks. */
static void make(problem *t, int64_t gap, bool mixed) {
  kiln_winograd *p = &t->p;
  for (int d = 0; d < 3; d++)
    p->out[d] = p->in[d] + 2 * p->pad[d] - (d ? 2 * p->dilation[d - 1] : p->planes - 1);
  t->in_count = lay_out(p->channels, p->in, p->batch, gap, p->in_axis, &p->in_batch);
  t->out_count = lay_out(p->outputs, p->out, p->batch, gap, p->out_axis, &p->out_batch);
  lay_out_weight(t, mixed);
  t->x = floats(t->in_count);
  t->weight.data = t->w = floats(t->weight_count);
  const double deviation = sqrt(2.0 / (9 * (double)(p->planes * p->channels)));
  for (int64_t i = 0; i < t->in_count; i++) t->x[i] = (float)fmax(normal() + 0.2, 0);
  for (int64_t i = 0; i < t->weight_count; i++) t->w[i] = (float)(normal() * deviation);
  const int64_t count = p->batch * p->out[0] * p->out[1] * p->out[2] * p->outputs;
  t->exact = malloc((size_t)count * sizeof(double));
  t->largest = calloc((size_t)p->outputs, sizeof(double));
  assert_true(t->exact && t->largest);
  for (int64_t i = 0; i < count; i++) solve_one(t, i);
  find_largest(t);
}
static void discard(problem *t) {
  free(t->x);
  free(t->w);
  free(t->exact);
  free(t->largest);
}
static int64_t count_of(const problem *t) {
  return t->p.batch * t->p.out[0] * t->p.out[1] * t->p.out[2] * t->p.outputs;
}
static int64_t place_of(const problem *t, int64_t at) {
  const kiln_winograd *p = &t->p;
  const int64_t pixel = at / p->outputs, line = pixel / p->out[2], plane = line / p->out[1];
  return plane / p->out[0] * p->out_batch + plane % p->out[0] * p->out_axis[0] +
         line % p->out[1] * p->out_axis[1] + pixel % p->out[2] * p->out_axis[2] + at % p->outputs;
}
static void describe(const problem *t, char *text, size_t size) {
  const kiln_winograd *p = &t->p;
  snprintf(text, size,
           "%lld x %lld->%lld, %lldx%lldx%lld, %lld planes, pad %lldx%lldx%lld, dilation %lldx%lld",
           (long long)p->batch, (long long)p->channels, (long long)p->outputs, (long long)p->in[0],
           (long long)p->in[1], (long long)p->in[2], (long long)p->planes, (long long)p->pad[0],
           (long long)p->pad[1], (long long)p->pad[2], (long long)p->dilation[0],
           (long long)p->dilation[1]);
}

/* -- Runs -- */

enum { WORKERS = 3, GAP = 0x7f7f7f7f };
static int runs_by_panels, runs_by_blocks, runs_by_strips;

/* Counts the rows that it gets, and doubles their outputs. */
typedef struct rows_done {
  const kiln_winograd *p;
  float *y;
  int *times; /* [plane of the batch][row]; by several threads, but a row by one of them */
  bool wrong; /* atomic */
} rows_done;
static void take_rows(void *user, int64_t image, int64_t first_row, int64_t rows, int worker) {
  rows_done *d = user;
  const kiln_winograd *p = d->p;
  if (worker < 0 || worker >= WORKERS || rows < 1 || first_row + rows > p->out[1]) {
    __atomic_store_n(&d->wrong, true, __ATOMIC_RELAXED);
    return;
  }
  for (int64_t row = first_row; row < first_row + rows; row++) {
    d->times[image * p->out[1] + row]++;
    float *line = d->y + image / p->out[0] * p->out_batch + image % p->out[0] * p->out_axis[0] +
                  row * p->out_axis[1];
    for (int64_t column = 0; column < p->out[2]; column++) {
      for (int64_t n = 0; n < p->outputs; n++) line[column * p->out_axis[2] + n] *= 2;
    }
  }
}

/* Into `y`, of out_count floats, whose gaps must stay as they are; `rows`: and their double. */
static void run(const problem *t, kiln_isa isa, kiln_winograd_form form, int threads,
                kiln_pool *pool, const kiln_core_machine *machine, bool rows, float *y) {
  const kiln_dispatch *dispatch = kiln_dispatch_select(isa);
  const kiln_winograd *p = &t->p;
  kiln_winograd_plan plan;
  size_t bytes;
  assert_ok(kiln_winograd_bytes(dispatch, form, p->planes, p->channels, p->outputs, &bytes));
  assert_ok(kiln_winograd_make_plan(p, form, dispatch, machine, threads, &plan));
  runs_by_panels += plan.by_panels;
  runs_by_blocks += !plan.by_panels && plan.blocks > 1;
  runs_by_strips += plan.strip < plan.block_rows * plan.row_tiles;
  const size_t size = kiln_winograd_scratch(&plan);
  assert_int_equal(size % 64, 0);
  float *u = aligned_alloc(64, (bytes + 63) / 64 * 64);
  void *scratch = aligned_alloc(64, size);
  assert_true(u && scratch);
  memset(u, 0xff, bytes);
  assert_ok(
      kiln_winograd_fill(dispatch, form, p->planes, p->channels, p->outputs, &t->weight, u, pool));
  memset(y, GAP & 0xff, (size_t)t->out_count * sizeof *y);
  const int64_t all = p->batch * p->out[0] * p->out[1];
  rows_done done = {p, y, calloc((size_t)all, sizeof(int)), false};
  assert_non_null(done.times);
  traps_set(KILN_DTYPE_F32, scratch, size);
  kiln_winograd_run(&plan, t->x, u, y, rows ? take_rows : NULL, &done, pool, scratch);
  assert_false(traps_were_used()); /* not in lanes that nobody reads either */
  assert_false(done.wrong);
  for (int64_t i = 0; rows && i < all; i++) assert_int_equal(done.times[i], 1);
  free(done.times);
  free(scratch);
  free(u);
}
static void check_gaps(const problem *t, const float *y) {
  char *written = calloc((size_t)t->out_count, 1);
  assert_non_null(written);
  for (int64_t i = 0; i < count_of(t); i++) written[place_of(t, i)] = 1;
  for (int64_t i = 0; i < t->out_count; i++) {
    int bits;
    memcpy(&bits, y + i, sizeof bits);
    if (!written[i]) assert_int_equal(bits, GAP);
  }
  free(written);
}
/* A transform spreads the error of one output over its tile, those at the border too. The factors
 * are some twice of what was seen. */
static double worst[KILN_WINOGRAD__COUNT];
static void check_values(const problem *t, kiln_isa isa, kiln_winograd_form form, double times,
                         const float *y) {
  for (int64_t i = 0; i < count_of(t); i++) {
    const double got = (double)y[place_of(t, i)] / times;
    const double unit = 0x1p-24 * t->largest[i % t->p.outputs];
    const double bound = (form == KILN_WINOGRAD_F4 ? 24 : 4) * unit;
    worst[form] = fmax(worst[form], fabs(got - t->exact[i]) / unit);
    if (fabs(got - t->exact[i]) <= bound) continue;
    char text[256];
    describe(t, text, sizeof text);
    fail_msg("%s F%d %s: output %lld is %.9g, not %.9g", kiln_isa_name(isa),
             (int)kiln_winograd_tile(form), text, (long long)i, got, t->exact[i]);
  }
}
static void check(const problem *t, kiln_pool *pool) {
  const size_t bytes = (size_t)t->out_count * sizeof(float);
  float *y = floats(t->out_count), *other = floats(t->out_count), *avx2 = floats(t->out_count);
  for (kiln_winograd_form form = KILN_WINOGRAD_F2; form <= KILN_WINOGRAD_F4; form++) {
    const bool rows = below(2);
    for (kiln_isa isa = KILN_ISA_V2; isa <= kiln_dispatch_last(); isa++) {
      const kiln_core_machine machine = {4 << isa, 2, 1 << 15, 1 << (14 + below(7)), 1 << 24, 0};
      run(t, isa, form, 1, NULL, &machine, rows, y);
      check_values(t, isa, form, rows ? 2 : 1, y);
      check_gaps(t, y);
      for (int i = 0; i < 2; i++) {
        const kiln_core_machine another = {4 << isa, 2, 1 << 15, 1 << (14 + below(7)), 1 << 24, 0};
        run(t, isa, form, WORKERS, i ? pool : NULL, &another, rows, other);
        assert_memory_equal(y, other, bytes);
      }
      if (isa == KILN_ISA_AVX2) memcpy(avx2, y, bytes);
      if (isa > KILN_ISA_AVX2) assert_memory_equal(y, avx2, bytes);
    }
  }
  free(y);
  free(other);
  free(avx2);
}

enum { RANDOM = KILN_SANITIZED ? 60 : 250 };
static void test_random(void **state) {
  (void)state;
  kiln_pool *pool;
  assert_ok(kiln_pool_create(WORKERS, &pool));
  for (int i = 0; i < RANDOM; i++) {
    const bool is_volume = below(2);
    problem t = {.p = {.batch = 1 + below(3), .channels = 1 + below(70), .outputs = 1 + below(70)}};
    t.p.planes = is_volume ? 1 + below(4) : 1;
    t.p.pad[0] = below((int)t.p.planes);
    t.p.in[0] = is_volume ? 1 + below(6) : 1;
    if (t.p.in[0] + 2 * t.p.pad[0] < t.p.planes) t.p.pad[0] = t.p.planes - 1;
    for (int d = 1; d < 3; d++) {
      const int64_t dilation = below(2) ? 1 : 1 + below(below(4) ? 4 : 20);
      t.p.dilation[d - 1] = dilation;
      t.p.pad[d] = below(2) ? dilation : below(2 * (int)dilation + 1);
      t.p.in[d] = 1 + below(is_volume ? 9 : below(4) ? 13 : d == 2 ? 150 : 30);
      if (t.p.in[d] + 2 * t.p.pad[d] <= 2 * dilation) t.p.pad[d] = dilation;
    }
    make(&t, below(2) * below(30), below(2));
    check(&t, pool);
    discard(&t);
  }
  kiln_pool_release(pool);
  print_message("largest errors: F2 %.2f, F4 %.2f units\n", worst[KILN_WINOGRAD_F2],
                worst[KILN_WINOGRAD_F4]);
  const int least = RANDOM / 12;
  assert_true(runs_by_panels > least && runs_by_blocks > least && runs_by_strips > least);
}

/* -- Errors -- */

typedef struct errors {
  double most, sum;
} errors;
static void add_errors(errors *e, const problem *t, const float *y) {
  for (int64_t i = 0; i < count_of(t); i++) {
    const double error = fabs((double)y[place_of(t, i)] - t->exact[i]);
    e->most = fmax(e->most, error);
    e->sum += error;
  }
}
/* The interpreter's convolution of the same numbers. */
static void run_direct(const problem *t, kiln_isa isa, float *y) {
  const kiln_winograd *p = &t->p;
  kiln_conv c = {.batch = p->batch,
                 .groups = 1,
                 .channels = p->channels,
                 .outputs = p->outputs,
                 .in = t->x,
                 .weight = t->w,
                 .out = y,
                 .in_batch = p->in_batch,
                 .in_channel = 1,
                 .out_batch = p->out_batch,
                 .out_channel = 1,
                 .w_output = t->weight.output,
                 .w_channel = t->weight.channel};
  for (int d = 0; d < 3; d++) {
    c.axis[d] = (kiln_conv_axis){.in = p->in[d],
                                 .in_stride = p->in_axis[d],
                                 .out = p->out[d],
                                 .out_stride = p->out_axis[d],
                                 .step = 1,
                                 .first = -p->pad[d],
                                 .taps = d ? 3 : p->planes,
                                 .tap_step = 1,
                                 .w_tap = t->weight.tap[d]};
  }
  kiln_conv_plan plan;
  kiln_conv_make_plan(&c, kiln_dispatch_select(isa), sizeof(float), 1, &plan);
  void *scratch = aligned_alloc(64, kiln_conv_scratch(&plan, 1));
  assert_non_null(scratch);
  kiln_conv_run(&c, &plan, kiln_dispatch_select(isa)->conv_f32, NULL, scratch);
  free(scratch);
}
/* docs/numerics.md promises these bounds, of the largest and the mean error as a share of the
 * interpreter's. The largest of few numbers hangs on chance: it is that of several draws. What was
 * measured is printed for that page. */
static void test_errors(void **state) {
  (void)state;
  enum { DRAWS = 4, ISAS = KILN_ISA__COUNT };
  static const struct {
    double most, mean;
  } bounds[] = {[KILN_WINOGRAD_F2] = {1, 1}, [KILN_WINOGRAD_F4] = {4, 2.4}};
  static const int64_t shapes[][2] = {{64, 20}, {128, 16}, {256, 14}, {512, 7}};
  random_state = SEED; /* the same numbers whatever the machine's instruction sets are */
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    errors e[ISAS][KILN_WINOGRAD__COUNT] = {0};
    for (int draw = 0; draw < DRAWS; draw++) {
      problem t = {.p = {.batch = 1,
                         .channels = shapes[i][0],
                         .outputs = 64,
                         .planes = 1,
                         .in = {1, shapes[i][1], shapes[i][1]},
                         .pad = {0, 1, 1},
                         .dilation = {1, 1}}};
      make(&t, 0, false);
      float *y = floats(t.out_count);
      for (kiln_isa isa = KILN_ISA_V2; isa <= kiln_dispatch_last(); isa++) {
        const kiln_core_machine machine = {4 << isa, 2, 1 << 15, 1 << 20, 1 << 24, 0};
        run_direct(&t, isa, y);
        add_errors(&e[isa][KILN_WINOGRAD_NONE], &t, y);
        for (kiln_winograd_form form = KILN_WINOGRAD_F2; form <= KILN_WINOGRAD_F4; form++) {
          run(&t, isa, form, 1, NULL, &machine, false, y);
          add_errors(&e[isa][form], &t, y);
        }
      }
      free(y);
      discard(&t);
    }
    for (kiln_isa isa = KILN_ISA_V2; isa <= kiln_dispatch_last(); isa++) {
      const errors direct = e[isa][KILN_WINOGRAD_NONE];
      for (kiln_winograd_form form = KILN_WINOGRAD_F2; form <= KILN_WINOGRAD_F4; form++) {
        const double most = e[isa][form].most / direct.most, mean = e[isa][form].sum / direct.sum;
        print_message("%-9s F%d %3lld channels: largest %.2e, %.2f of direct; mean %.2f\n",
                      kiln_isa_name(isa), (int)kiln_winograd_tile(form), (long long)shapes[i][0],
                      e[isa][form].most, most, mean);
        assert_true(most <= bounds[form].most && mean <= bounds[form].mean);
      }
    }
  }
}

/* -- The choice -- */

/* By tiles, by the size of U beside the caches and by the speed of products: a network's layers on
 * a server core, small maps and few channels, and what never pays. */
static void test_choice(void **state) {
  (void)state;
  static const struct {
    int64_t batch, channels, outputs, size, planes, depth, dilation;
    kiln_winograd_form v2, avx512;
  } cases[] = {
      {1, 64, 64, 56, 1, 1, 1, KILN_WINOGRAD_F4, KILN_WINOGRAD_F4},
      {1, 128, 128, 28, 1, 1, 1, KILN_WINOGRAD_F4, KILN_WINOGRAD_F4},
      {1, 256, 256, 14, 1, 1, 1, KILN_WINOGRAD_F4, KILN_WINOGRAD_F4},
      {1, 512, 512, 7, 1, 1, 1, KILN_WINOGRAD_F4, KILN_WINOGRAD_F2}, /* 38 MB of U for F4 */
      {8, 512, 512, 7, 1, 1, 1, KILN_WINOGRAD_F4, KILN_WINOGRAD_F4},
      {1, 16, 16, 56, 1, 1, 1, KILN_WINOGRAD_F4, KILN_WINOGRAD_F4},
      {1, 3, 64, 224, 1, 1, 1, KILN_WINOGRAD_NONE, KILN_WINOGRAD_NONE}, /* all is transforms */
      {1, 512, 512, 1, 1, 1, 1, KILN_WINOGRAD_NONE, KILN_WINOGRAD_NONE},
      {1, 512, 512, 2, 1, 1, 1, KILN_WINOGRAD_NONE, KILN_WINOGRAD_NONE},
      {1, 1, 1, 100, 1, 1, 1, KILN_WINOGRAD_NONE, KILN_WINOGRAD_NONE},
      {1, 64, 64, 28, 3, 8, 1, KILN_WINOGRAD_F4, KILN_WINOGRAD_F4},
      {1, 1, 1, 100, 3, 8, 1, KILN_WINOGRAD_NONE, KILN_WINOGRAD_NONE},
      {1, 512, 512, 2, 3, 2, 1, KILN_WINOGRAD_NONE, KILN_WINOGRAD_NONE},
      {1, 256, 256, 32, 1, 1, 2, KILN_WINOGRAD_F4, KILN_WINOGRAD_F4},
      {1, 512, 512, 32, 1, 1, 4, KILN_WINOGRAD_F4, KILN_WINOGRAD_F4},
      {1, 256, 256, 32, 1, 1, 24, KILN_WINOGRAD_NONE, KILN_WINOGRAD_NONE}, /* of 4 x 4 one is */
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const kiln_winograd p = {.batch = cases[i].batch,
                             .channels = cases[i].channels,
                             .outputs = cases[i].outputs,
                             .planes = cases[i].planes,
                             .in = {cases[i].depth, cases[i].size, cases[i].size},
                             .out = {cases[i].depth, cases[i].size, cases[i].size},
                             .pad = {cases[i].planes / 2, cases[i].dilation, cases[i].dilation},
                             .dilation = {cases[i].dilation, cases[i].dilation}};
    const kiln_core_machine small = {4, 2, 1 << 15, 1 << 20, 32 << 20, 0},
                            large = {16, 2, 1 << 15, 1 << 20, 32 << 20, 0};
    assert_int_equal(kiln_winograd_choose(&p, &small), cases[i].v2);
    assert_int_equal(kiln_winograd_choose(&p, &large), cases[i].avx512);
  }
}

/* -- Limits -- */

static void test_too_large(void **state) {
  (void)state;
  const kiln_dispatch *dispatch = kiln_dispatch_select(kiln_isa_detect());
  const kiln_core_machine machine = {4, 2, 1 << 15, 1 << 20, 1 << 24, 0};
  size_t bytes;
  kiln_winograd_plan plan;
  assert_error(kiln_winograd_bytes(dispatch, KILN_WINOGRAD_F4, 1, INT64_C(1) << 40,
                                   INT64_C(1) << 40, &bytes),
               KILN_OUT_OF_MEMORY, NULL);
  assert_error(kiln_winograd_bytes(dispatch, KILN_WINOGRAD_F2, 1, 1, INT64_MAX, &bytes),
               KILN_OUT_OF_MEMORY, NULL);
  assert_error(kiln_winograd_bytes(dispatch, KILN_WINOGRAD_F2, INT64_MAX / 2, 1, 1, &bytes),
               KILN_OUT_OF_MEMORY, NULL);
  for (int i = 0; i < 5; i++) {
    kiln_winograd p = {.batch = 1, .channels = 1, .outputs = 1, .planes = 1, .dilation = {1, 1}};
    for (int d = 0; d < 3; d++) p.in[d] = p.out[d] = 7;
    if (i == 0) p.channels = INT64_MAX - 3;
    if (i == 1) p.batch = INT64_MAX / 2;
    if (i == 2) p.out[1] = p.out[2] = INT64_MAX;
    if (i == 3) p.planes = p.channels = INT64_C(1) << 40;
    if (i == 4) p.out[0] = p.batch = INT64_C(1) << 40;
    assert_error(kiln_winograd_make_plan(&p, KILN_WINOGRAD_F4, dispatch, &machine, 1, &plan),
                 KILN_OUT_OF_MEMORY, NULL);
  }
}

static void test_budget(void **state) {
  (void)state;
  problem t = {.p = {.batch = 1, .channels = 5, .outputs = 7, .planes = 1, .dilation = {1, 1}}};
  t.p.in[0] = 1;
  t.p.in[1] = t.p.in[2] = 6;
  make(&t, 0, false);
  const kiln_dispatch *dispatch = kiln_dispatch_select(kiln_isa_detect());
  kiln_cancel *cancel;
  kiln_budget budget;
  size_t bytes;
  assert_ok(kiln_cancel_create(&cancel));
  kiln_call_cancel(cancel);
  kiln_budget_begin(&budget, "the call", NULL, &(kiln_limits){.cancel = cancel});
  kiln_budget *outer = kiln_budget_enter(&budget);
  assert_ok(kiln_winograd_bytes(dispatch, KILN_WINOGRAD_F4, 1, 5, 7, &bytes));
  float *u = aligned_alloc(64, bytes);
  assert_non_null(u);
  assert_error(kiln_winograd_fill(dispatch, KILN_WINOGRAD_F4, 1, 5, 7, &t.weight, u, NULL),
               KILN_CANCELLED, NULL);
  kiln_budget_leave(outer);
  free(u);
  kiln_cancel_destroy(cancel);
  discard(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_random), cmocka_unit_test(test_errors), cmocka_unit_test(test_choice),
      cmocka_unit_test(test_too_large), cmocka_unit_test(test_budget)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
