/* conv_test.c: the dispatched convolutions against their reference, on every instruction set of
 * this machine: random geometry of one to three axes, strides and weights of any order, all ways of
 * kiln_conv_mode, and bits that do not depend on how the work is cut. */
#include "test/unit/unit.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/kernels/heavy/conv.h"
#include "test/unit/runtime/numbers.h"
#include "test/unit/traps.h"

/* Exactly n elements, so that a checker of memory sees a step beyond them. */
static void *numbers(kiln_dtype dtype, int64_t n) {
  void *data = malloc((size_t)(n ? n : 1) * kiln_dtype_bytes(dtype));
  assert_non_null(data);
  for (int64_t i = 0; i < n; i++) set_value(dtype, data, i, (double)(below(2001) - 1000) / 500);
  return data;
}

typedef struct problem {
  kiln_conv conv;
  kiln_dtype dtype;
  int64_t in_count, weight_count, out_count;
  bool not_finite; /* inputs raise FE_INVALID themselves */
} problem;

static void random_axis(kiln_conv_axis *a, int64_t most) {
  a->step = below(3) ? 1 : 1 + below(5);
  a->taps = below(3) ? 1 + below(5) : 1;
  a->tap_step = below(3) ? 1 : 1 + below(7);
  a->out = 1 + below(most);
  a->first = below(4) ? -below((a->taps - 1) * a->tap_step + 2) : below(3);
  a->in = a->first + (a->out - 1) * a->step + (a->taps - 1) * a->tap_step + 1;
  if (below(2)) a->in += a->first - below(3); /* something is beyond the end too */
  if (a->in < 1) a->in = 1;
  if (below(40) == 0) a->first -= 2000; /* all is padding */
}
/* Strides for an order of the sizes; gives the count of elements. */
static int64_t lay_out(int count, const int64_t *sizes, int64_t *const *strides, bool mixed) {
  int order[6];
  for (int i = 0; i < count; i++) order[i] = i;
  for (int i = count - 1; mixed && i > 0; i--) {
    const int j = (int)below(i + 1), swap = order[i];
    order[i] = order[j];
    order[j] = swap;
  }
  int64_t step = 1;
  for (int i = count - 1; i >= 0; i--) {
    *strides[order[i]] = step;
    step *= sizes[order[i]];
  }
  return step;
}
static void lay_out_problem(problem *p, bool plain_in, bool plain_weights, bool plain_out) {
  kiln_conv *c = &p->conv;
  kiln_conv_axis *a = c->axis;
  p->in_count =
      lay_out(5, (int64_t[]){c->batch, c->groups * c->channels, a[0].in, a[1].in, a[2].in},
              (int64_t *[]){&c->in_batch, &c->in_channel, &a[0].in_stride, &a[1].in_stride,
                            &a[2].in_stride},
              !plain_in);
  p->weight_count =
      lay_out(6, (int64_t[]){c->groups, c->outputs, c->channels, a[0].taps, a[1].taps, a[2].taps},
              (int64_t *[]){&c->w_group, &c->w_output, &c->w_channel, &a[0].w_tap, &a[1].w_tap,
                            &a[2].w_tap},
              !plain_weights);
  p->out_count =
      lay_out(5, (int64_t[]){c->batch, c->groups * c->outputs, a[0].out, a[1].out, a[2].out},
              (int64_t *[]){&c->out_batch, &c->out_channel, &a[0].out_stride, &a[1].out_stride,
                            &a[2].out_stride},
              !plain_out);
}
static void allocate(problem *p) {
  kiln_conv *c = &p->conv;
  c->in = numbers(p->dtype, p->in_count);
  c->weight = numbers(p->dtype, p->weight_count);
  c->bias = below(2) ? numbers(p->dtype, c->groups * c->outputs) : NULL;
  c->out = numbers(p->dtype, p->out_count);
}
static void discard(problem *p) {
  free((void *)(uintptr_t)p->conv.in);
  free((void *)(uintptr_t)p->conv.weight);
  free((void *)(uintptr_t)p->conv.bias);
  free(p->conv.out);
}

enum { WORKERS = 3 };
static int runs_by_tiles;

/* Every index of a part alone, the last first, by different workers. */
static void run_part(const kiln_conv *c, const kiln_conv_plan *p, kiln_conv_fn fn,
                     kiln_conv_part part, int64_t count, char *scratch) {
  for (int64_t i = count - 1; i >= 0; i--) {
    part.begin = i;
    part.end = i + 1;
    fn(c, p, &part, scratch + (size_t)(i % WORKERS) * p->scratch);
  }
}
static void run_cut(const kiln_conv *c, const kiln_conv_plan *p, kiln_conv_fn fn, char *scratch) {
  kiln_conv_part part = {0};
  if (!p->by_tiles) {
    run_part(c, p, fn, part, p->slabs, scratch);
    return;
  }
  runs_by_tiles++;
  for (int i = 0; i < WORKERS; i++) memset(scratch + (size_t)i * p->scratch, 0, sizeof(int64_t));
  for (part.slab = 0; part.slab < p->slabs; part.slab++) {
    int64_t column;
    const int64_t columns = kiln__conv_part_columns(p, part.slab % p->column_slabs, &column);
    const int64_t rows = (c->outputs + p->tile_rows - 1) / p->tile_rows;
    for (part.channel = 0; part.channel < c->channels; part.channel += p->block_channels) {
      run_part(c, p, fn, part, rows * ((columns + p->panel - 1) / p->panel), scratch);
    }
  }
}
/* Runs it planned for `threads`: cut as finely as it can be, or, with `whole`, by kiln_conv_run. */
static kiln_conv_mode run(const problem *p, kiln_isa isa, int threads, bool whole, void *out) {
  kiln_conv c = p->conv;
  const kiln_dispatch *d = kiln_dispatch_select(isa);
  c.out = out;
  kiln_conv_plan plan;
  kiln_conv_make_plan(&c, d, kiln_dtype_bytes(p->dtype), threads, &plan);
  const kiln_conv_fn fn = p->dtype == KILN_DTYPE_F32 ? d->conv_f32 : d->conv_f64;
  const size_t bytes = kiln_conv_scratch(&plan, threads);
  assert_int_equal(bytes % 64, 0);
  char *scratch = aligned_alloc(64, bytes);
  assert_non_null(scratch);
  traps_set(p->dtype, scratch, bytes);
  if (whole)
    kiln_conv_run(&c, &plan, fn, NULL, scratch);
  else
    run_cut(&c, &plan, fn, scratch);
  free(scratch);
  assert_true(p->not_finite || !traps_were_used()); /* not in lanes that nobody reads either */
  return plan.mode;
}
static void describe(const problem *p, char *text, size_t size) {
  const kiln_conv *c = &p->conv;
  int at = snprintf(text, size, "%s batch %lld groups %lld channels %lld outputs %lld",
                    p->dtype == KILN_DTYPE_F32 ? "f32" : "f64", (long long)c->batch,
                    (long long)c->groups, (long long)c->channels, (long long)c->outputs);
  for (int d = 0; d < 3; d++) {
    const kiln_conv_axis *a = &c->axis[d];
    at += snprintf(text + at, size - (size_t)at,
                   "; in %lld out %lld step %lld first %lld taps %lld "
                   "by %lld",
                   (long long)a->in, (long long)a->out, (long long)a->step, (long long)a->first,
                   (long long)a->taps, (long long)a->tap_step);
  }
}
static void check(problem *p, unsigned *modes) {
  const size_t bytes = (size_t)p->out_count * kiln_dtype_bytes(p->dtype);
  const double unit = p->dtype == KILN_DTYPE_F32 ? 0x1p-23 : 0x1p-52;
  const double terms = (double)(p->conv.channels * p->conv.axis[0].taps * p->conv.axis[1].taps *
                                p->conv.axis[2].taps);
  void *got = malloc(bytes), *cut = malloc(bytes);
  assert_non_null(got);
  assert_non_null(cut);
  kiln__conv_reference(p->dtype, &p->conv);
  for (int isa = 0; isa <= (int)kiln_dispatch_last(); isa++) {
    memset(got, 0xff, bytes);
    *modes |= 1u << run(p, (kiln_isa)isa, 1, true, got);
    for (int whole = 0; whole < 2; whole++) {
      memset(cut, 0xff, bytes);
      run(p, (kiln_isa)isa, WORKERS, whole, cut);
      if (memcmp(got, cut, bytes) != 0) {
        char text[1024];
        describe(p, text, sizeof text);
        fail_msg("%s %s: cut for threads (whole: %d) the bits differ", kiln_isa_name((kiln_isa)isa),
                 text, whole);
      }
    }
    for (int64_t i = 0; i < p->out_count; i++) {
      const double x = value_of(p->dtype, got, i), y = value_of(p->dtype, p->conv.out, i);
      if (isnan(y) ? isnan(x) : x == y || fabs(x - y) <= unit * 4 * (8 + 2 * terms)) continue;
      char text[1024];
      describe(p, text, sizeof text);
      fail_msg("%s %s: element %lld is %.17g, not %.17g", kiln_isa_name((kiln_isa)isa), text,
               (long long)i, x, y);
    }
  }
  free(got);
  free(cut);
}
static void random_problem(problem *p) {
  kiln_conv *c = &p->conv;
  memset(p, 0, sizeof *p);
  p->dtype = below(3) ? KILN_DTYPE_F32 : KILN_DTYPE_F64;
  c->batch = 1 + below(2);
  c->groups = below(2) ? 1 : 1 + below(4);
  c->channels = below(2) ? 1 : 1 + below(9);
  c->outputs = 1 + below(below(2) ? 3 : 20);
  const int axes = 1 + (int)below(3);
  static const int64_t most[] = {300, 24, 8};
  for (int d = 0; d < 3; d++) {
    c->axis[d] = (kiln_conv_axis){1, 1, 1, 1, 1, 0, 1, 1, 0};
    if (d >= 3 - axes) random_axis(&c->axis[d], below(3) ? most[axes - 1] : 2);
  }
}

static void test_random(void **state) {
  (void)state;
  unsigned modes = 0;
  for (int i = 0; i < 1500; i++) {
    problem p;
    random_problem(&p);
    lay_out_problem(&p, below(4) != 0, below(4) != 0, below(4) != 0);
    allocate(&p);
    check(&p, &modes);
    discard(&p);
  }
  for (unsigned mode = KILN_CONV_DIRECT; mode <= KILN_CONV_DEPTHWISE; mode++) {
    if (mode != KILN_CONV_GATHER) assert_true(modes >> mode & 1);
  }
}

/* Many channels, taps and columns: several blocks of the sum, several slabs. */
static void test_blocks(void **state) {
  (void)state;
  static const struct {
    int64_t channels, outputs, groups, in[3], k[3], step, pad, dilation;
    unsigned mode;
  } cases[] = {
      {300, 70, 1, {1, 1, 500}, {1, 1, 1}, 1, 0, 1, KILN_CONV_DIRECT},
      {1500, 20, 1, {1, 9, 9}, {1, 1, 1}, 1, 0, 1, KILN_CONV_DIRECT},
      {130, 33, 1, {1, 20, 31}, {1, 3, 3}, 1, 1, 1, KILN_CONV_PADDED},
      {70, 17, 2, {1, 33, 300}, {1, 3, 5}, 2, 2, 1, KILN_CONV_PADDED},
      {5, 9, 1, {1, 1, 3000}, {1, 1, 700}, 3, 10, 1, KILN_CONV_PADDED},
      {40, 12, 1, {9, 10, 11}, {3, 3, 3}, 1, 1, 1, KILN_CONV_PADDED},
      {3, 12, 1, {12, 12, 70}, {3, 1, 3}, 2, 1, 2, KILN_CONV_PADDED},
      {2, 5, 1, {1, 40, 40}, {1, 2, 2}, 1, 390, 777, KILN_CONV_GATHER},
      {400, 50, 1, {1, 2, 2}, {1, 3, 3}, 1, 1, 1, KILN_CONV_DOT},
      {4000, 5, 1, {1, 7, 7}, {1, 7, 7}, 1, 0, 1, KILN_CONV_PADDED},
      {2, 3, 1, {1, 600, 2}, {1, 5, 1}, 1, 2, 1, KILN_CONV_PADDED},
      {1, 1, 40, {1, 7, 7}, {1, 5, 5}, 1, 2, 1, KILN_CONV_DEPTHWISE},
      {1, 2, 9, {1, 14, 14}, {1, 3, 3}, 2, 1, 1, KILN_CONV_DEPTHWISE},
      {1, 1, 3, {1, 300, 90}, {1, 7, 7}, 1, 3, 1, KILN_CONV_DEPTHWISE},
      {1, 1, 5, {1, 29, 33}, {1, 5, 5}, 2, 2, 1, KILN_CONV_DEPTHWISE},
      {1, 1, 5, {1, 30, 31}, {1, 7, 7}, 2, 3, 1, KILN_CONV_DEPTHWISE},
      {1, 1, 5, {1, 30, 31}, {1, 3, 3}, 1, 4, 4, KILN_CONV_DEPTHWISE},
      {1, 1, 70, {1, 1, 900}, {1, 1, 9}, 1, 4, 1, KILN_CONV_DEPTHWISE},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    problem p = {.dtype = i % 3 == 2 ? KILN_DTYPE_F64 : KILN_DTYPE_F32};
    kiln_conv *c = &p.conv;
    c->batch = 1;
    c->groups = cases[i].groups;
    c->channels = cases[i].channels;
    c->outputs = cases[i].outputs;
    for (int d = 0; d < 3; d++) {
      kiln_conv_axis *a = &c->axis[d];
      a->in = cases[i].in[d];
      a->taps = cases[i].k[d];
      a->step = a->in == 1 ? 1 : cases[i].step;
      a->tap_step = cases[i].dilation;
      a->first = a->taps == 1 ? 0 : -cases[i].pad;
      a->out = (a->in - 2 * a->first - (a->taps - 1) * a->tap_step - 1) / a->step + 1;
    }
    lay_out_problem(&p, true, i % 2 == 0, true);
    allocate(&p);
    unsigned modes = 0;
    check(&p, &modes);
    assert_int_equal(modes, 1u << cases[i].mode);
    discard(&p);
  }
  assert_true(runs_by_tiles > 5);
}

/* NaN and infinities reach the outputs that read them and no others. */
static void test_not_finite(void **state) {
  (void)state;
  unsigned modes = 0;
  for (int i = 0; i < 200; i++) {
    problem p;
    random_problem(&p);
    lay_out_problem(&p, true, true, true);
    allocate(&p);
    p.not_finite = true;
    void *in = (void *)(uintptr_t)p.conv.in;
    set_value(p.dtype, in, below(p.in_count), (double)NAN);
    set_value(p.dtype, in, below(p.in_count), (double)INFINITY);
    set_value(p.dtype, in, below(p.in_count), -(double)INFINITY);
    check(&p, &modes);
    discard(&p);
  }
}

int main(void) {
  random_state = 88172645463325252u;
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_random), cmocka_unit_test(test_blocks),
                                     cmocka_unit_test(test_not_finite)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
