/* grouped_test.c: convolutions of narrow groups against direct ones in double: random sizes, pads,
 * steps, pitches and weights of any strides, on every instruction set of this machine that has
 * them; the same bits with threads and without; rows that are handed on once, complete; what does
 * not fit; sizes that overflow. */
#include "test/unit/unit.h"

#include <math.h>
#include <stdlib.h>

#include "base/sanitize.h"
#include "runtime/kernels/heavy/grouped.h"
#include "test/unit/runtime/numbers.h"

/* -- Problems -- */

typedef struct problem {
  kiln_grouped p;
  kiln_grouped_weight weight;
  int64_t in_count, weight_count, out_count;
  float *x, *w;
} problem;

/* Strides of pixels with `channels`, some floats between pixels, rows and images. */
static int64_t lay_out(int64_t channels, const int64_t sizes[2], int64_t batch, int64_t gap,
                       int64_t strides[2], int64_t *image) {
  strides[1] = channels + gap;
  strides[0] = sizes[1] * strides[1] + gap;
  *image = sizes[0] * strides[0] + gap;
  return (batch - 1) * *image + (sizes[0] - 1) * strides[0] + (sizes[1] - 1) * strides[1] +
         channels;
}
static void lay_out_weight(problem *t, bool mixed) {
  const int64_t sizes[] = {t->p.outputs, t->p.each, 3, 3};
  int64_t strides[4];
  t->weight_count = lay_in_order(4, sizes, mixed, strides);
  t->weight = (kiln_grouped_weight){NULL, strides[0], strides[1], {strides[2], strides[3]}};
}
static void make(problem *t, int64_t gap, bool mixed) {
  kiln_grouped *p = &t->p;
  for (int d = 0; d < 2; d++) p->out[d] = (p->in[d] + 2 * p->pad[d] - 3) / p->step + 1;
  t->in_count = lay_out(p->outputs, p->in, p->batch, gap, p->in_axis, &p->in_batch);
  t->out_count = lay_out(p->outputs, p->out, p->batch, gap, p->out_axis, &p->out_batch);
  lay_out_weight(t, mixed);
  t->x = floats(t->in_count);
  t->weight.data = t->w = floats(t->weight_count);
  for (int64_t i = 0; i < t->in_count; i++) t->x[i] = (float)normal();
  for (int64_t i = 0; i < t->weight_count; i++) t->w[i] = (float)normal();
}
static void discard(problem *t) {
  free(t->x);
  free(t->w);
}

/* The sum, and that of the products' sizes. */
static double solve(const problem *t, int64_t image, int64_t row, int64_t column, int64_t output,
                    double *out_size) {
  const kiln_grouped *p = &t->p;
  double sum = 0;
  *out_size = 0;
  for (int64_t tap = 0; tap < 9; tap++) {
    const int64_t y = row * p->step - p->pad[0] + tap / 3;
    const int64_t z = column * p->step - p->pad[1] + tap % 3;
    if (y < 0 || y >= p->in[0] || z < 0 || z >= p->in[1]) continue;
    const float *x = t->x + image * p->in_batch + y * p->in_axis[0] + z * p->in_axis[1] +
                     output / p->each * p->each;
    const float *w =
        t->w + output * t->weight.output + tap / 3 * t->weight.tap[0] + tap % 3 * t->weight.tap[1];
    for (int64_t c = 0; c < p->each; c++) {
      const double product = (double)x[c] * (double)w[c * t->weight.channel];
      sum += product;
      *out_size += fabs(product);
    }
  }
  return sum;
}

/* -- Runs -- */

enum { WORKERS = 3 };
static const float GAP = -12345;

/* Counts the rows that it gets, and doubles their outputs. */
typedef struct rows_done {
  const kiln_grouped *p;
  float *y;
  int *times; /* [image][row] */
} rows_done;
static void take_row(void *user, int64_t image, int64_t row, int worker) {
  rows_done *d = user;
  const kiln_grouped *p = d->p;
  (void)worker;
  d->times[image * p->out[0] + row]++;
  float *line = d->y + image * p->out_batch + row * p->out_axis[0];
  for (int64_t column = 0; column < p->out[1]; column++)
    for (int64_t n = 0; n < p->outputs; n++) line[column * p->out_axis[1] + n] *= 2;
}

static void run(const problem *t, const kiln_dispatch *dispatch, kiln_pool *pool, bool rows,
                float *y) {
  const kiln_grouped *p = &t->p;
  size_t bytes;
  assert_ok(kiln_grouped_bytes(dispatch, p->outputs, p->each, &bytes));
  float *u = aligned_alloc(64, bytes);
  assert_non_null(u);
  kiln_grouped_fill(dispatch, p->outputs, p->each, &t->weight, u);
  for (int64_t i = 0; i < t->out_count; i++) y[i] = GAP;
  rows_done done = {p, y, calloc((size_t)(p->batch * p->out[0]), sizeof(int))};
  assert_non_null(done.times);
  kiln_grouped_run(p, dispatch, t->x, u, y, rows ? take_row : NULL, &done, pool);
  for (int64_t i = 0; rows && i < p->batch * p->out[0]; i++) assert_int_equal(done.times[i], 1);
  free(done.times);
  free(u);
}

static void check_values(const problem *t, double times, const float *y) {
  const kiln_grouped *p = &t->p;
  int64_t gaps = t->out_count;
  for (int64_t i = 0; i < p->batch * p->out[0] * p->out[1] * p->outputs; i++) {
    const int64_t output = i % p->outputs, pixel = i / p->outputs, column = pixel % p->out[1];
    const int64_t row = pixel / p->out[1] % p->out[0], image = pixel / p->out[1] / p->out[0];
    const float *at = y + image * p->out_batch + row * p->out_axis[0] + column * p->out_axis[1];
    double size;
    const double want = solve(t, image, row, column, output, &size);
    const double got = (double)at[output] / times, bound = 0x1p-24 * 12 * size;
    if (fabs(got - want) > bound)
      fail_msg("groups of %lld, %lld outputs, %lldx%lld, step %lld: output %lld is %.9g, not %.9g",
               (long long)p->each, (long long)p->outputs, (long long)p->in[0], (long long)p->in[1],
               (long long)p->step, (long long)i, got, want);
    gaps--;
  }
  for (int64_t i = 0; i < t->out_count; i++) gaps -= y[i] == GAP;
  assert_int_equal(gaps, 0);
}

static bool is_there(kiln_isa isa) { return kiln_dispatch_select(isa)->grouped; }

enum { RANDOM = KILN_SANITIZED ? 60 : 300 };
static void test_random(void **state) {
  (void)state;
  int ran = 0;
  kiln_pool *pool;
  assert_ok(kiln_pool_create(WORKERS, &pool));
  for (int i = 0; i < RANDOM; i++) {
    problem t = {
        .p = {.batch = 1 + below(3), .each = INT64_C(2) << below(4), .step = 1 + below(2)}};
    t.p.outputs = t.p.each * (1 + below(below(20) ? 20 : 700));
    const int most = t.p.outputs > 400 ? 8 : below(4) ? 30 : 70;
    for (int d = 0; d < 2; d++) {
      t.p.in[d] = 1 + below(most);
      t.p.pad[d] = t.p.in[d] < 3 ? 1 + below(2) : below(3);
    }
    make(&t, below(2) * below(30), below(2));
    float *y = floats(t.out_count), *other = floats(t.out_count), *avx2 = floats(t.out_count);
    bool have_avx2 = false;
    for (kiln_isa isa = KILN_ISA_V2; isa <= kiln_dispatch_last(); isa++) {
      const kiln_dispatch *dispatch = kiln_dispatch_select(isa);
      if (!kiln_grouped_fits(&t.p, dispatch)) continue;
      const bool rows = below(2);
      const size_t bytes = (size_t)t.out_count * sizeof *y;
      run(&t, dispatch, NULL, rows, y);
      check_values(&t, rows ? 2 : 1, y);
      run(&t, dispatch, pool, rows, other);
      assert_memory_equal(y, other, bytes);
      if (!rows && have_avx2) assert_memory_equal(y, avx2, bytes);
      if (!rows) memcpy(avx2, y, bytes);
      have_avx2 |= !rows;
      ran++;
    }
    free(y);
    free(other);
    free(avx2);
    discard(&t);
  }
  kiln_pool_release(pool);
  assert_true(!is_there(kiln_dispatch_last()) || ran > RANDOM / 2);
}

static void test_fits(void **state) {
  (void)state;
  for (kiln_isa isa = KILN_ISA_V2; isa <= kiln_dispatch_last(); isa++) {
    const kiln_dispatch *dispatch = kiln_dispatch_select(isa);
    const int64_t lanes = is_there(isa) ? dispatch->grouped->lanes : 0;
    const struct {
      int64_t each, outputs, step;
      bool fits;
    } cases[] = {{4, 128, 1, lanes > 0}, {4, 128, 2, lanes > 0}, {16, 512, 1, lanes == 16},
                 {8, 8, 1, lanes == 8},  {8, 104, 1, lanes > 0}, {1, 128, 1, false},
                 {6, 96, 1, false},      {32, 1024, 1, false},   {4, 128, 3, false},
                 {4, 4, 1, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
      const kiln_grouped p = {
          .each = cases[i].each, .outputs = cases[i].outputs, .step = cases[i].step};
      assert_int_equal(kiln_grouped_fits(&p, dispatch), cases[i].fits);
    }
    size_t bytes;
    if (lanes > 0)
      assert_error(kiln_grouped_bytes(dispatch, INT64_MAX - 64, 8, &bytes), KILN_OUT_OF_MEMORY,
                   NULL);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_random), cmocka_unit_test(test_fits)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
