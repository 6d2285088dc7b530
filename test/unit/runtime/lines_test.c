/* lines_test.c: kernels that take several lines of memory at once, against what they mean element
 * by element: places of extremes, running sums, gathers, copies whose rows become columns. */
#include <math.h>

#include "runtime/kernels/pointwise/iter.h"
#include "test/unit/runtime/run_kernel.h"

enum { MOST_ROWS = 600, MOST_COLUMNS = 133 };

static kiln_tensor *make(fixture *f, kiln_dtype dtype, int64_t rows, int64_t columns, void *data) {
  const int64_t sizes[2] = {rows, columns};
  kiln_tensor *t;
  void **to = data;
  assert_ok(kiln_call_tensor(f->call, dtype, 2, sizes, &t));
  assert_ok(kiln_tensor_writable_data(t, to));
  return t;
}

static uint64_t next_random(void) {
  static uint64_t s = 88172645463325252ull;
  s ^= s << 13;
  s ^= s >> 7;
  return s ^= s << 17;
}

static const int64_t shapes[][2] = {{1, 1},    {3, 70},   {4, 64},    {5, 200}, {63, 65},
                                    {64, 128}, {257, 66}, {600, 133}, {9, 1},   {1, 130}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* The first of the greatest; a NaN is greater than all. */
static int64_t place_by_hand(const float *x, int64_t n, int64_t step) {
  int64_t best = 0;
  for (int64_t i = 1; i < n; i++) {
    const float now = x[i * step], old = x[best * step];
    if (isnan(now) ? !isnan(old) : now > old) best = i;
  }
  return best;
}
static void finds_places(void **state) {
  fixture *f = *state;
  for (int s = 0; s < SHAPES; s++) {
    const int64_t rows = shapes[s][0], columns = shapes[s][1];
    float *x;
    kiln_tensor *t = make(f, KILN_DTYPE_F32, rows, columns, &x);
    for (int64_t i = 0; i < rows * columns; i++)
      x[i] = next_random() % 997 ? (float)(next_random() % 300) : NAN;
    for (int dim = 0; dim < 2; dim++) {
      kiln_tensor *places = RUN(argmax, T(t), I(dim), B(false));
      const int64_t *at = kiln_tensor_data(places);
      for (int64_t i = 0; i < places->numel; i++)
        assert_int_equal(at[i], dim ? place_by_hand(x + i * columns, columns, 1)
                                    : place_by_hand(x + i, rows, columns));
      drop(f, places);
    }
    kiln_tensor *place = RUN(argmax, T(t), NONE, B(false));
    assert_int_equal(*(const int64_t *)kiln_tensor_data(place),
                     place_by_hand(x, rows * columns, 1));
    drop(f, place);
    drop(f, t);
  }
}

static void sums_on(void **state) {
  fixture *f = *state;
  for (int s = 0; s < SHAPES; s++) {
    const int64_t rows = shapes[s][0], columns = shapes[s][1];
    float *x;
    kiln_tensor *t = make(f, KILN_DTYPE_F32, rows, columns, &x);
    for (int64_t i = 0; i < rows * columns; i++) x[i] = (float)(next_random() % 1000) / 7 - 60;
    for (int dim = 0; dim < 2; dim++) {
      kiln_tensor *sums = RUN(cumsum, T(t), I(dim), NONE);
      const float *have = kiln_tensor_data(sums);
      const int64_t lines = dim ? rows : columns, length = dim ? columns : rows;
      for (int64_t k = 0; k < lines; k++) {
        const int64_t first = dim ? k * columns : k, step = dim ? 1 : columns;
        double sum = 0;
        for (int64_t i = 0; i < length; i++) {
          sum = i ? sum + (double)x[first + i * step] : (double)x[first];
          assert_true(have[first + i * step] == (float)sum);
        }
      }
      drop(f, sums);
    }
    drop(f, t);
  }
}

/* The rule of reduce.h in its own words: sums of x, or of squares of distances from `mean`. */
static float by_rule(const float *x, int64_t n, int64_t step, const float *mean) {
  float lanes[64] = {0};
  for (int64_t i = 0; i < n; i++) {
    const float d = mean ? x[i * step] - *mean : 0;
    lanes[i % 64] += mean ? d * d : x[i * step];
  }
  for (int w = 32; w > 0; w /= 2) {
    for (int j = 0; j < w; j++) lanes[j] += lanes[j + w];
  }
  return lanes[0];
}
/* Rows in blocks, whose means are there before their squares; more rows than a block has. */
static void spreads(void **state) {
  fixture *f = *state;
  for (int s = 0; s < SHAPES; s++) {
    const int64_t rows = shapes[s][0], columns = shapes[s][1];
    float *x;
    kiln_tensor *t = make(f, KILN_DTYPE_F32, rows, columns, &x);
    for (int64_t i = 0; i < rows * columns; i++) x[i] = (float)(next_random() % 1000) / 7 - 60;
    for (int dim = 0; dim < 2; dim++) {
      kiln_tensor *result = RUN(var_dim, T(t), I(dim), B(false), B(false));
      const float *have = kiln_tensor_data(result);
      const int64_t n = dim ? columns : rows, step = dim ? 1 : columns;
      for (int64_t i = 0; i < result->numel; i++) {
        const float *line = x + (dim ? i * columns : i),
                    mean = by_rule(line, n, step, NULL) / (float)n;
        assert_true(have[i] == by_rule(line, n, step, &mean) / (float)n);
      }
      drop(f, result);
    }
    drop(f, t);
  }
}

static void gathers(void **state) {
  fixture *f = *state;
  static const kiln_dtype dtypes[] = {KILN_DTYPE_I8, KILN_DTYPE_I16, KILN_DTYPE_I32, KILN_DTYPE_I64,
                                      KILN_DTYPE_C128};
  enum { ROWS = 6, COLUMNS = 29 };
  for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
    const size_t item = kiln_dtype_bytes(dtypes[d]);
    char *x;
    int64_t *at;
    kiln_tensor *t = make(f, dtypes[d], ROWS, COLUMNS, &x);
    kiln_tensor *index = make(f, KILN_DTYPE_I64, ROWS, COLUMNS, &at);
    for (size_t i = 0; i < ROWS * COLUMNS * item; i++) x[i] = (char)next_random();
    for (int dim = 0; dim < 2; dim++) {
      for (int i = 0; i < ROWS * COLUMNS; i++)
        at[i] = (int64_t)(next_random() % (dim ? COLUMNS : ROWS));
      kiln_tensor *result = RUN(gather, T(t), I(dim), T(index), B(false));
      const char *have = kiln_tensor_data(result);
      for (int r = 0; r < ROWS; r++) {
        for (int c = 0; c < COLUMNS; c++) {
          const int64_t i = at[r * COLUMNS + c];
          const size_t from = (size_t)(dim ? r * COLUMNS + i : i * COLUMNS + c);
          assert_memory_equal(have + (size_t)(r * COLUMNS + c) * item, x + from * item, item);
        }
      }
      drop(f, result);
    }
    for (int bad = 0; bad < COLUMNS; bad += 5) { /* in a step, and behind the last */
      const kiln_ivalue args[] = {T(t), I(1), T(index), B(false)};
      kiln_ivalue out = kiln_none();
      const int64_t old = at[bad];
      at[bad] = COLUMNS;
      assert_error(kiln_kernel_step(f->call, KILN_BODY_OF(gather), args, 4, &out), KILN_OP_ERROR,
                   "index 29 is out of bounds for dimension 1 with size 29");
      at[bad] = old;
    }
    drop(f, index);
    drop(f, t);
  }
}

/* Places that go up, stay and go down, in runs of all lengths. */
static void takes_runs(void **state) {
  fixture *f = *state;
  static const kiln_dtype dtypes[] = {KILN_DTYPE_I8, KILN_DTYPE_I16, KILN_DTYPE_I32, KILN_DTYPE_I64,
                                      KILN_DTYPE_C128};
  enum { ROWS = 3, COLUMNS = 40, TAKEN = 150 };
  for (int round = 0; round < 200; round++) {
    const kiln_dtype dtype = dtypes[round % 5];
    const size_t item = kiln_dtype_bytes(dtype);
    const uint64_t longest = 1 + next_random() % 80;
    char *x;
    int64_t *at;
    kiln_tensor *t = make(f, dtype, ROWS, COLUMNS, &x);
    kiln_tensor *index = make(f, KILN_DTYPE_I64, 1, TAKEN, &at);
    for (size_t i = 0; i < ROWS * COLUMNS * item; i++) x[i] = (char)next_random();
    for (int i = 0; i < TAKEN;) {
      const int64_t step = ((int64_t)(next_random() % 3) - 1) * (round % 4 ? 1 : 2);
      int64_t place = (int64_t)(next_random() % COLUMNS);
      for (uint64_t left = 1 + next_random() % longest; left > 0 && i < TAKEN; left--) {
        if (place < 0 || place >= COLUMNS) break;
        at[i++] = place;
        place += step;
      }
    }
    kiln_tensor *places = RUN(select, T(index), I(0), I(0));
    kiln_tensor *result = RUN(index_select, T(t), I(1), T(places));
    const char *have = kiln_tensor_data(result);
    for (size_t r = 0; r < ROWS; r++) {
      for (size_t i = 0; i < TAKEN; i++) {
        assert_memory_equal(have + (r * TAKEN + i) * item, x + (r * COLUMNS + (size_t)at[i]) * item,
                            item);
      }
    }
    drop(f, result);
    drop(f, places);
    drop(f, index);
    drop(f, t);
  }
}

/* Bytes, and what lies around them. */
static void turns(void **state) {
  (void)state;
  enum { ROOM = 5 };
  static char from[MOST_ROWS * (MOST_COLUMNS + ROOM) * 16];
  static char to[MOST_COLUMNS * (MOST_ROWS + ROOM) * 16];
  for (size_t i = 0; i < sizeof from; i++) from[i] = (char)next_random();
  for (int64_t item = 1; item <= 16; item *= 2) {
    for (int s = 0; s < SHAPES; s++) {
      const int64_t rows = shapes[s][0], columns = shapes[s][1];
      const int64_t from_step = (columns + ROOM) * item, to_step = (rows + ROOM) * item;
      memset(to, 0x5a, sizeof to);
      kiln__turn(to, to_step, from, from_step, rows, columns, item);
      for (int64_t c = 0; c < columns; c++) {
        for (int64_t r = 0; r < rows + ROOM; r++) {
          const char *have = to + c * to_step + r * item, *want = from + r * from_step + c * item;
          for (int64_t b = 0; b < item; b++) assert_true(have[b] == (r < rows ? want[b] : 0x5a));
        }
      }
    }
  }
}

/* Past the caches, and through the operators. */
static void turns_what_is_large(void **state) {
  fixture *f = *state;
  const int64_t rows = 3000, columns = 3001;
  float *x;
  kiln_tensor *t = make(f, KILN_DTYPE_F32, rows, columns, &x);
  for (int64_t i = 0; i < rows * columns; i++) x[i] = (float)i;
  kiln_tensor *view = RUN(transpose, T(t), I(0), I(1));
  kiln_tensor *result = RUN(contiguous, T(view), I(0));
  const float *have = kiln_tensor_data(result);
  for (int64_t c = 0; c < columns; c++) {
    for (int64_t r = 0; r < rows; r++) assert_true(have[c * rows + r] == x[r * columns + c]);
  }
  drop(f, result);
  drop(f, view);
  drop(f, t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(finds_places, setup, teardown),
      cmocka_unit_test_setup_teardown(sums_on, setup, teardown),
      cmocka_unit_test_setup_teardown(spreads, setup, teardown),
      cmocka_unit_test_setup_teardown(gathers, setup, teardown),
      cmocka_unit_test_setup_teardown(takes_runs, setup, teardown),
      cmocka_unit_test(turns),
      cmocka_unit_test_setup_teardown(turns_what_is_large, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
