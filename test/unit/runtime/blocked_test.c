/* blocked_test.c: products in blocks against sums in double: random sizes, strides, slices and
 * biases, on every instruction set of this machine, with threads and without; bits that do not
 * depend on either; rows that are handed on once, complete; how large the errors are
 * beside those of sums in order; what is chosen; sizes that overflow, and budgets that
 * end. */
#include "test/unit/unit.h"

#include <math.h>
#include <stdlib.h>

#include "base/sanitize.h"
#include "runtime/half.h"
#include "runtime/kernels/heavy/tiles.h"
#include "test/unit/runtime/numbers.h"
#include "test/unit/traps.h"

/* -- Problems -- */

typedef struct problem {
  kiln_blocked p;
  kiln_blocked_weight weight; /* but for its slice */
  int64_t in_count, out_count;
  float *x, *w, *bias;        /* bias NULL: none */
  double *exact[2], *size[2]; /* of factors as they are, and in bf16: [row][output]: results, and
                                 sums of sizes */
} problem;

static float *numbers(int64_t n, double deviation) {
  float *data = floats(n);
  for (int64_t i = 0; i < n; i++) data[i] = (float)(normal() * deviation);
  return data;
}
static double factor(float x, bool rounds) {
  return (double)(rounds ? kiln_bf16_to_float(kiln_float_to_bf16(x)) : x);
}
static void sum_up(problem *t, bool rounds) {
  const kiln_blocked *p = &t->p;
  double *exact = malloc((size_t)(p->rows * p->outputs) * sizeof(double));
  double *sizes = malloc((size_t)(p->rows * p->outputs) * sizeof(double));
  assert_true(exact && sizes);
  for (int64_t i = 0; i < p->rows * p->outputs; i++) {
    const int64_t row = i / p->outputs, n = i % p->outputs;
    double sum = t->bias ? t->bias[n] : 0, size = fabs(sum);
    for (int64_t k = 0; k < p->depth; k++) {
      const double product = factor(t->x[row * p->x_row + k], rounds) *
                             factor(t->w[n * t->weight.output + k * t->weight.along], rounds);
      sum += product;
      size += fabs(product);
    }
    exact[i] = sum;
    sizes[i] = size;
  }
  t->exact[rounds] = exact;
  t->size[rounds] = sizes;
}
/* `turned`: a weight of [depth][outputs]. */
static void make(problem *t, int64_t in_gap, int64_t out_gap, bool turned, bool has_bias) {
  kiln_blocked *p = &t->p;
  p->x_row = p->depth + in_gap;
  p->y_row = p->outputs + out_gap;
  t->in_count = (p->rows - 1) * p->x_row + p->depth;
  t->out_count = (p->rows - 1) * p->y_row + p->outputs;
  t->x = numbers(t->in_count, 1);
  t->w = numbers(p->depth * p->outputs, 1);
  t->bias = has_bias ? numbers(p->outputs, 1) : NULL;
  t->weight = (kiln_blocked_weight){.data = t->w,
                                    .output = turned ? 1 : p->depth,
                                    .along = turned ? p->outputs : 1,
                                    .outputs = p->outputs,
                                    .depth = p->depth};
  sum_up(t, false);
  sum_up(t, true);
}
static void discard(problem *t) {
  free(t->x), free(t->w), free(t->bias);
  for (int i = 0; i < 2; i++) free(t->exact[i]), free(t->size[i]);
}

/* -- Runs -- */

enum { WORKERS = 3, GAP = 0x7f7f7f7f };
static int runs_by_panels, runs_by_strips, runs_in_slices, runs_in_place;

/* Counts the rows that it gets, and doubles their outputs. */
typedef struct rows_done {
  const kiln_blocked *p;
  float *y;
  int *times; /* by several threads, but a row by one of them */
  bool wrong; /* atomic */
} rows_done;
static void take_rows(void *user, int64_t first, int64_t count, int worker) {
  rows_done *d = user;
  const kiln_blocked *p = d->p;
  if (worker < 0 || worker >= WORKERS || count < 1 || first + count > p->rows) {
    __atomic_store_n(&d->wrong, true, __ATOMIC_RELAXED);
    return;
  }
  for (int64_t row = first; row < first + count; row++) {
    d->times[row]++;
    for (int64_t n = 0; n < p->outputs; n++) d->y[row * p->y_row + n] *= 2;
  }
}

/* Into `y`, of out_count floats, whose gaps must stay as they are; `rows`: and their double. */
static void run(const problem *t, kiln_isa isa, kiln_blocked_form form, int64_t slice, int threads,
                kiln_pool *pool, const kiln_core_machine *machine, bool rows, float *y) {
  const kiln_dispatch *dispatch = kiln_dispatch_select(isa);
  const kiln_blocked *p = &t->p;
  kiln_blocked_weight weight = t->weight;
  kiln_blocked_plan plan;
  size_t bytes;
  weight.slice = slice;
  assert_ok(kiln_blocked_bytes(dispatch, form, &weight, &bytes));
  assert_ok(kiln_blocked_make_plan(p, form, slice, dispatch, machine, threads, &plan));
  runs_by_panels += plan.by_panels;
  runs_by_strips += plan.strips > 1;
  runs_in_slices += plan.slices > 1;
  runs_in_place += plan.in_place;
  const size_t size = kiln_blocked_scratch(&plan);
  assert_int_equal(size % 64, 0);
  float *u = aligned_alloc(64, (bytes + 63) / 64 * 64);
  void *scratch = aligned_alloc(64, size);
  assert_true(u && scratch);
  memset(u, 0xff, bytes);
  assert_ok(kiln_blocked_fill(dispatch, form, &weight, u, pool));
  memset(y, GAP & 0xff, (size_t)t->out_count * sizeof *y);
  rows_done done = {p, y, calloc((size_t)(p->rows), sizeof(int)), false};
  assert_non_null(done.times);
  traps_set(KILN_DTYPE_F32, scratch, size);
  kiln_blocked_run(&plan, t->x, u, t->bias, y, rows ? take_rows : NULL, &done, pool, scratch);
  assert_false(traps_were_used());
  assert_false(done.wrong);
  for (int64_t i = 0; rows && i < p->rows; i++) assert_int_equal(done.times[i], 1);
  free(done.times);
  free(scratch);
  free(u);
}
static void check_gaps(const problem *t, const float *y) {
  for (int64_t i = 0; i < t->out_count; i++) {
    int bits;
    memcpy(&bits, y + i, sizeof bits);
    if (i % t->p.y_row >= t->p.outputs) assert_int_equal(bits, GAP);
  }
}
/* A sum of n floats is within n / 2 units of the sum of their sizes. Strassen's sums have up to
 * twelve products of four factors' sizes, which are those of other outputs: of all of them. */
static void check_values(const problem *t, kiln_isa isa, kiln_blocked_form form, double times,
                         const float *y) {
  const double *exact = t->exact[kiln_blocked_is_tiles(form)];
  const double *sizes = t->size[kiln_blocked_is_tiles(form)];
  double largest = 0;
  for (int64_t i = 0; i < t->p.rows * t->p.outputs; i++) largest = fmax(largest, sizes[i]);
  for (int64_t i = 0; i < t->p.rows * t->p.outputs; i++) {
    const int64_t row = i / t->p.outputs, n = i % t->p.outputs;
    const double got = (double)y[row * t->p.y_row + n] / times;
    const double size = form == KILN_BLOCKED_STRASSEN ? 12 * largest : sizes[i];
    const double bound = 0x1p-24 * (double)(t->p.depth + 8) * size;
    if (fabs(got - exact[i]) <= bound) continue;
    fail_msg("%s form %d: %lld x %lld x %lld: output %lld is %.9g, not %.9g", kiln_isa_name(isa),
             (int)form, (long long)t->p.rows, (long long)t->p.outputs, (long long)t->p.depth,
             (long long)i, got, exact[i]);
  }
}
static bool has_form(kiln_blocked_form form) {
  return form != KILN_BLOCKED_NONE && (form != KILN_BLOCKED_TILES || kiln_isa_take_tiles());
}
static kiln_core_machine some_machine(kiln_isa isa) {
  return (kiln_core_machine){4 << isa, 2, 1 << 15, 1 << (12 + below(8)), 1 << 24, 0};
}
/* The same bits with any threads and machine; products as they stand: at any width of vectors too.
 * Strassen's sums pair the outputs of a panel with those of the next. */
static void check(const problem *t, kiln_pool *pool) {
  const size_t bytes = (size_t)t->out_count * sizeof(float);
  float *y = floats(t->out_count), *other = floats(t->out_count), *avx2 = floats(t->out_count);
  for (kiln_blocked_form form = KILN_BLOCKED_DIRECT; form < KILN_BLOCKED__COUNT; form++) {
    if (!has_form(form)) continue;
    const bool rows = below(2);
    const int64_t slice = below(2) ? t->p.depth : 2 * (1 + below(t->p.depth));
    const int64_t least = slice < t->p.depth ? slice : t->p.depth;
    for (kiln_isa isa = KILN_ISA_V2; isa <= kiln_dispatch_last(); isa++) {
      const kiln_core_machine machine = some_machine(isa);
      run(t, isa, form, least, 1, NULL, &machine, rows, y);
      check_values(t, isa, form, rows ? 2 : 1, y);
      check_gaps(t, y);
      for (int i = 0; i < 2; i++) {
        const kiln_core_machine another = some_machine(isa);
        run(t, isa, form, least, WORKERS, i ? pool : NULL, &another, rows, other);
        assert_memory_equal(y, other, bytes);
      }
      if (isa == KILN_ISA_AVX2) memcpy(avx2, y, bytes);
      if (isa > KILN_ISA_AVX2 && form == KILN_BLOCKED_DIRECT) assert_memory_equal(y, avx2, bytes);
    }
  }
  free(y);
  free(other);
  free(avx2);
}

enum { RANDOM = KILN_SANITIZED ? 60 : 300 };
static void test_random(void **state) {
  (void)state;
  kiln_pool *pool;
  assert_ok(kiln_pool_create(WORKERS, &pool));
  for (int i = 0; i < RANDOM; i++) {
    problem t = {.p = {.rows = 1 + below(90),
                       .depth = 1 + below(below(4) ? 70 : 300),
                       .outputs = 1 + below(below(4) ? 150 : 400)}};
    make(&t, below(2) * below(30), below(2) * below(30), below(2), below(2));
    check(&t, pool);
    discard(&t);
  }
  kiln_pool_release(pool);
  const int least = RANDOM / 15;
  assert_true(runs_by_panels > least && runs_by_strips > least && runs_in_slices > least &&
              runs_in_place > least);
}

/* -- Errors -- */

typedef struct errors {
  double most, sum;
} errors;
static void add_errors(errors *e, const problem *t, const float *y) {
  for (int64_t i = 0; i < t->p.rows * t->p.outputs; i++) {
    const double error = fabs((double)y[i] - t->exact[0][i]);
    e->most = fmax(e->most, error);
    e->sum += error;
  }
}
/* docs/numerics.md promises these bounds of Strassen's algorithm: the largest and the mean error as
 * a share of those of a sum in order, which the plain form is. The largest of few numbers hangs on
 * chance: it is that of several draws. What was measured is printed for that page. */
static void test_errors(void **state) {
  (void)state;
  enum { DRAWS = 4, ISAS = KILN_ISA__COUNT };
  static const int64_t depths[] = {256, 768, 1024, 3072};
  random_state = SEED; /* the same numbers whatever the machine's instruction sets are */
  for (size_t i = 0; i < sizeof depths / sizeof *depths; i++) {
    errors e[ISAS][KILN_BLOCKED__COUNT] = {0};
    for (int draw = 0; draw < DRAWS; draw++) {
      problem t = {.p = {.rows = 64, .depth = depths[i], .outputs = 64}};
      make(&t, 0, 0, false, false);
      float *y = floats(t.out_count);
      for (kiln_isa isa = KILN_ISA_V2; isa <= kiln_dispatch_last(); isa++) {
        const kiln_core_machine machine = {4 << isa, 2, 1 << 15, 1 << 20, 1 << 24, 0};
        for (kiln_blocked_form form = KILN_BLOCKED_DIRECT; form <= KILN_BLOCKED_STRASSEN; form++) {
          run(&t, isa, form, kiln_blocked_slice(form, depths[i], &machine), 1, NULL, &machine,
              false, y);
          add_errors(&e[isa][form], &t, y);
        }
      }
      free(y);
      discard(&t);
    }
    for (kiln_isa isa = KILN_ISA_V2; isa <= kiln_dispatch_last(); isa++) {
      const errors plain = e[isa][KILN_BLOCKED_DIRECT], sums = e[isa][KILN_BLOCKED_STRASSEN];
      const double most = sums.most / plain.most, mean = sums.sum / plain.sum;
      print_message("%-9s depth %4lld: largest %.2e, %.2f of a sum in order; mean %.2f\n",
                    kiln_isa_name(isa), (long long)depths[i], sums.most, most, mean);
      assert_true(most <= 2 && mean <= 1.7);
    }
  }
}

/* -- The choice -- */

static void test_choice(void **state) {
  (void)state;
  static const struct {
    int64_t rows, outputs, depth;
    bool alone;
    kiln_blocked_form form;
  } cases[] = {
      /* A kernel hides as much of the weight's way, up to a depth. */
      {128, 768, 768, true, KILN_BLOCKED_NONE},
      {32, 1024, 512, true, KILN_BLOCKED_NONE},
      {49, 2048, 1024, false, KILN_BLOCKED_NONE},
      {128, 768, 3072, true, KILN_BLOCKED_NONE},
      {16, 4096, 4096, true, KILN_BLOCKED_DIRECT},
      {48, 512, 8192, false, KILN_BLOCKED_DIRECT},
      {1, 1024, 4096, true, KILN_BLOCKED_NONE}, /* its weight is read once */
      {6, 1024, 4096, true, KILN_BLOCKED_NONE}, /* so it is by a tile of 6 rows */
      {7, 1024, 4096, true, KILN_BLOCKED_DIRECT},
      {128, 64, 4096, true, KILN_BLOCKED_NONE},  /* few panels */
      {3136, 256, 64, false, KILN_BLOCKED_NONE}, /* y is as large as x */
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const kiln_blocked p = {cases[i].rows, cases[i].depth, cases[i].outputs, cases[i].depth,
                            cases[i].outputs};
    const kiln_core_machine machine = {8, 2, 1 << 15, 1 << 19, 32 << 20, 0};
    assert_int_equal(kiln_blocked_choose(&p, &machine, cases[i].alone, false), cases[i].form);
  }
  const kiln_core_machine large = {16, 1, 1 << 15, 1 << 20, 32 << 20, 0};
  const kiln_blocked p = {128, 768, 768, 768, 768};
  assert_int_equal(kiln_blocked_choose(&p, &large, true, true), KILN_BLOCKED_STRASSEN);
  const kiln_blocked tile = {13, 4096, 768, 4096, 768}, tiles = {14, 4096, 768, 4096, 768};
  assert_int_equal(kiln_blocked_choose(&tile, &large, true, false), KILN_BLOCKED_NONE);
  assert_int_equal(kiln_blocked_choose(&tiles, &large, true, false), KILN_BLOCKED_DIRECT);
}

/* -- Limits -- */

/* -- Tiles -- */

/* What TDPBF16PS does of itself: one sum of the first factors of pairs, one of the second ones;
 * denormal factors and sums are zeros. And where the CPU has it: the same bits in C. */
static void test_tiles(void **state) {
  (void)state;
  const kiln_dispatch *dispatch = kiln_dispatch_select(KILN_ISA_V2);
  const kiln_core_machine machine = {16, 2, 1 << 15, 1 << 20, 1 << 24, KILN_TILES_IN_C};
  problem t = {.p = {.rows = 37, .depth = 75, .outputs = 50}};
  make(&t, 3, 5, false, true);
  for (int64_t i = 0; i < t.in_count; i += 3) t.x[i] *= 0x1p-120f;
  for (int64_t i = 0; i < t.p.depth * t.p.outputs; i += 2) t.w[i] *= 0x1p-40f;
  memset(t.bias, 0, (size_t)t.p.outputs * sizeof(float));
  t.x[t.p.x_row] = INFINITY;
  t.x[2 * t.p.x_row] = NAN;
  t.weight.slice = 64;
  kiln_blocked_plan plan;
  size_t bytes;
  assert_int_equal(kiln_blocked_choose_bf16(&t.p, &machine), KILN_BLOCKED_TILES_IN_C);
  assert_ok(kiln_blocked_bytes(dispatch, KILN_BLOCKED_TILES_IN_C, &t.weight, &bytes));
  assert_ok(
      kiln_blocked_make_plan(&t.p, KILN_BLOCKED_TILES_IN_C, 64, dispatch, &machine, 1, &plan));
  float *u = aligned_alloc(64, (bytes + 63) / 64 * 64), *y[2];
  void *scratch = aligned_alloc(64, kiln_blocked_scratch(&plan));
  assert_true(u && scratch);
  assert_ok(kiln_blocked_fill(dispatch, KILN_BLOCKED_TILES_IN_C, &t.weight, u, NULL));
  for (int i = 0; i < 2; i++) {
    y[i] = floats(t.out_count);
    memset(y[i], GAP & 0xff, (size_t)t.out_count * sizeof(float));
    if (i && kiln_isa_take_tiles()) plan.kernels = &kiln_tiles_amx;
    kiln_blocked_run(&plan, t.x, u, t.bias, y[i], NULL, NULL, NULL, scratch);
    check_gaps(&t, y[i]);
  }
  assert_memory_equal(y[0], y[1], (size_t)t.out_count * sizeof(float));
  for (int64_t n = 0; n < t.p.outputs; n++) {
    assert_true(isinf(y[0][t.p.y_row + n]));
    assert_true(isnan(y[0][2 * t.p.y_row + n]));
  }
  free(y[0]), free(y[1]), free(u), free(scratch);
  discard(&t);

  problem one = {.p = {.rows = 1, .depth = 4, .outputs = 1, .x_row = 4, .y_row = 1}};
  static const struct {
    float x[4], w[4], y;
  } cases[] = {
      {{1, 0x1p-24f, 0, -1}, {1, 1, 1, 1}, 0x1p-24f},                 /* 1 + 0 and 2^-24 - 1 */
      {{1, 0, 0x1p-24f, -1}, {1, 1, 1, 1}, 0},                        /* 1 + 2^-24 is 1 */
      {{0x1p-130f, 0, 1, 0}, {0x1p100f, 1, 0x1p-126f, 1}, 0x1p-126f}, /* a denormal factor */
      {{0x1p-70f, 0, 0, 0}, {0x1p-60f, 0, 0, 0}, 0},                  /* a denormal sum */
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    kiln_blocked_weight weight = {cases[i].w, 4, 1, 1, 4, 4};
    assert_ok(kiln_blocked_bytes(dispatch, KILN_BLOCKED_TILES_IN_C, &weight, &bytes));
    assert_ok(
        kiln_blocked_make_plan(&one.p, KILN_BLOCKED_TILES_IN_C, 4, dispatch, &machine, 1, &plan));
    float *packed = aligned_alloc(64, (bytes + 63) / 64 * 64), sum;
    void *room = aligned_alloc(64, kiln_blocked_scratch(&plan));
    assert_true(packed && room);
    assert_ok(kiln_blocked_fill(dispatch, KILN_BLOCKED_TILES_IN_C, &weight, packed, NULL));
    kiln_blocked_run(&plan, cases[i].x, packed, NULL, &sum, NULL, NULL, NULL, room);
    assert_true(sum == cases[i].y);
    free(packed), free(room);
  }
}

static void test_too_large(void **state) {
  (void)state;
  const kiln_dispatch *dispatch = kiln_dispatch_select(kiln_isa_detect());
  const kiln_core_machine machine = {4, 2, 1 << 15, 1 << 20, 1 << 24, 0};
  const int64_t far = INT64_C(1) << 40;
  const kiln_blocked_weight weight = {NULL, far, 1, far, far, far};
  size_t bytes;
  kiln_blocked_plan plan;
  for (kiln_blocked_form form = KILN_BLOCKED_DIRECT; form < KILN_BLOCKED__COUNT; form++) {
    const kiln_blocked deep = {1, INT64_MAX - 3, 1, INT64_MAX - 3, 1};
    assert_error(kiln_blocked_bytes(dispatch, form, &weight, &bytes), KILN_OUT_OF_MEMORY, NULL);
    assert_error(kiln_blocked_make_plan(&deep, form, deep.depth, dispatch, &machine, 1, &plan),
                 KILN_OUT_OF_MEMORY, NULL);
  }
}

static void test_budget(void **state) {
  (void)state;
  problem t = {.p = {.rows = 6, .depth = 5, .outputs = 7}};
  make(&t, 0, 0, false, false);
  const kiln_dispatch *dispatch = kiln_dispatch_select(kiln_isa_detect());
  kiln_cancel *cancel;
  kiln_budget budget;
  size_t bytes;
  t.weight.slice = 5;
  assert_ok(kiln_cancel_create(&cancel));
  kiln_call_cancel(cancel);
  kiln_budget_begin(&budget, "the call", NULL, &(kiln_limits){.cancel = cancel});
  kiln_budget *outer = kiln_budget_enter(&budget);
  assert_ok(kiln_blocked_bytes(dispatch, KILN_BLOCKED_DIRECT, &t.weight, &bytes));
  float *u = aligned_alloc(64, (bytes + 63) / 64 * 64);
  assert_non_null(u);
  assert_error(kiln_blocked_fill(dispatch, KILN_BLOCKED_DIRECT, &t.weight, u, NULL), KILN_CANCELLED,
               NULL);
  kiln_budget_leave(outer);
  free(u);
  kiln_cancel_destroy(cancel);
  discard(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_random),    cmocka_unit_test(test_errors),
      cmocka_unit_test(test_choice),    cmocka_unit_test(test_tiles),
      cmocka_unit_test(test_too_large), cmocka_unit_test(test_budget)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
