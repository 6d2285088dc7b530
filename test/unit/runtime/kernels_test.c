/* kernels_test.c: the loops behind kiln_dispatch: every functor, conversion and reduction gives the
 * same bits on every instruction set, contiguous or strided, and reductions follow reduce.h.
 * Functors that stand on runtime/math have two forms, with fma (AVX2 and up) and without. */
#include <math.h>
#include <stdlib.h>

#include "runtime/half.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/reduce/reduce.h"
#include "test/unit/unit.h"

enum { N = 67, SLACK = 3 }; /* elements; every SLACKth is used in strided runs */

#include "runtime/kernels/pointwise/classes.h"
static const struct {
  const char *name;
  int arity;
  kiln_pw_result result;
} functors[KILN_PW__COUNT] = {
#define KILN_PW(name, arity, result) {#name, arity, KILN_PW_##result},
#include "runtime/kernels/pointwise/pointwise.def"
#undef KILN_PW
};

/* Those of class V. */
#undef KILN_PW_V1
#undef KILN_PW_V2
#define KILN_PW_V1(name, expr) [KILN_PW_##name] = true,
#define KILN_PW_V2(name, expr) [KILN_PW_##name] = true,
static const bool has_math[KILN_PW__COUNT] = {
#define KILN_PW(name, arity, result)
#include "runtime/kernels/pointwise/pointwise.def"
#undef KILN_PW
};

static int isa_count(void) { return (int)kiln_dispatch_last() + 1; }

static uint64_t next_random(void) {
  static uint64_t s = 88172645463325252ull;
  s ^= s << 13;
  s ^= s >> 7;
  return s ^= s << 17;
}
static double pick_float(void) {
  static const double special[] = {0.0, -0.0, 1, -1, INFINITY, -INFINITY, NAN, 0.5, 1e-30, 88.5};
  uint64_t r = next_random();
  if (r % 4 == 0) return special[r / 4 % 10];
  return ((double)(int64_t)(r >> 20) / 0x1p43 - 0.5) * (r % 3 ? 4 : 60);
}
/* `n` elements of a compute type. */
static void fill(void *to, kiln_ctype ctype, int n) {
  for (int i = 0; i < n; i++) {
    int64_t whole = (int64_t)(next_random() % 41) - 20;
    switch (ctype) {
      case KILN_CTYPE_BOOL: ((uint8_t *)to)[i] = next_random() & 1; break;
      case KILN_CTYPE_I32: ((int32_t *)to)[i] = i % 9 ? (int32_t)whole : INT32_MIN; break;
      case KILN_CTYPE_I64: ((int64_t *)to)[i] = i % 9 ? whole : INT64_MAX; break;
      case KILN_CTYPE_F32: ((float *)to)[i] = (float)pick_float(); break;
      case KILN_CTYPE_F64: ((double *)to)[i] = pick_float(); break;
      case KILN_CTYPE_C64:
        ((float *)to)[2 * i] = (float)pick_float();
        ((float *)to)[2 * i + 1] = (float)pick_float();
        break;
      default: ((double *)to)[2 * i] = pick_float(); ((double *)to)[2 * i + 1] = pick_float();
    }
  }
}
/* Bits are equal, or both are NaN. */
static bool same_element(const char *a, const char *b, kiln_ctype ctype) {
  size_t size = kiln_ctype_size(ctype), part = size;
  bool narrow = ctype == KILN_CTYPE_F32 || ctype == KILN_CTYPE_C64;
  if (ctype < KILN_CTYPE_F32) return memcmp(a, b, size) == 0;
  part = narrow ? 4 : 8;
  for (size_t at = 0; at < size; at += part) {
    if (memcmp(a + at, b + at, part) == 0) continue;
    double x = narrow ? (double)*(const float *)(a + at) : *(const double *)(a + at);
    double y = narrow ? (double)*(const float *)(b + at) : *(const double *)(b + at);
    if (!isnan(x) || !isnan(y)) return false;
  }
  return true;
}
static kiln_ctype result_of(int functor, kiln_ctype ctype) {
  if (functors[functor].result == KILN_PW_BOOL) return KILN_CTYPE_BOOL;
  if (functors[functor].result == KILN_PW_SAME) return ctype;
  return ctype == KILN_CTYPE_C64    ? KILN_CTYPE_F32
         : ctype == KILN_CTYPE_C128 ? KILN_CTYPE_F64
                                    : ctype;
}
static void spread(char *to, const char *from, size_t item, int n) {
  for (int i = 0; i < n; i++)
    memcpy(to + (size_t)(i * SLACK) * item, from + (size_t)i * item, item);
}

static char operands[3][N * 16], wide[3][N * 16 * SLACK], want[N * 16], got[N * 16],
    got_wide[N * 16 * SLACK];

typedef struct one_case {
  int functor;
  kiln_ctype ctype, out;
  kiln_ctype in[3];
  kiln_pw_params params;
} one_case;

/* scalar: which operand is one number, -1 none. */
static void run(const one_case *c, kiln_isa isa, bool strided, int scalar, char *to, int n) {
  char *data[4] = {to};
  int64_t strides[4] = {(int64_t)kiln_ctype_size(c->out) * (strided ? SLACK : 1)};
  for (int k = 0; k < functors[c->functor].arity; k++) {
    data[k + 1] = strided ? wide[k] : operands[k];
    strides[k + 1] = k == scalar ? 0 : (int64_t)kiln_ctype_size(c->in[k]) * (strided ? SLACK : 1);
  }
  kiln_pw_params params = c->params;
  kiln_dispatch_select(isa)->loops[c->ctype][c->functor](data, strides, n, &params);
}
static void expect(const one_case *c, const char *have, size_t step, const char *how) {
  size_t item = kiln_ctype_size(c->out);
  for (int i = 0; i < N; i++) {
    if (same_element(have + (size_t)i * step, want + (size_t)i * item, c->out)) continue;
    fail_msg("%s of compute type %d, %s: element %d differs", functors[c->functor].name,
             (int)c->ctype, how, i);
  }
}
/* The instruction set whose strided loop, element by element, is the reference of `isa`. */
static kiln_isa twin_of(const one_case *c, kiln_isa isa) {
  bool math = has_math[c->functor] && (c->ctype == KILN_CTYPE_F32 || c->ctype == KILN_CTYPE_F64);
  return math && isa > KILN_ISA_AVX2 ? KILN_ISA_AVX2 : math ? isa : KILN_ISA_V2;
}
static void check_whole(const one_case *c, kiln_isa isa) {
  size_t item = kiln_ctype_size(c->out);
  run(c, twin_of(c, isa), true, -1, got_wide, N);
  for (int i = 0; i < N; i++) {
    memcpy(want + (size_t)i * item, got_wide + (size_t)(i * SLACK) * item, item);
  }
  run(c, isa, false, -1, got, N);
  expect(c, got, item, "contiguous");
  run(c, isa, true, -1, got_wide, N);
  expect(c, got_wide, item * SLACK, "strided");
  for (int n = 1; n < 20; n++) { /* tails */
    memset(got, 0x5a, sizeof got);
    run(c, isa, false, -1, got, n);
    for (int i = 0; i < n; i++) {
      assert_true(same_element(got + (size_t)i * item, want + (size_t)i * item, c->out));
    }
    assert_int_equal(got[(size_t)n * item], 0x5a);
  }
}
static void check_functor(one_case *c) {
  int arity = functors[c->functor].arity;
  for (int k = 0; k < arity; k++) {
    fill(operands[k], c->in[k], N);
    spread(wide[k], operands[k], kiln_ctype_size(c->in[k]), N);
  }
  for (int isa = 0; isa < isa_count(); isa++) check_whole(c, (kiln_isa)isa);
  for (int k = 0; arity == 2 && k < 2; k++) { /* one operand repeated */
    size_t size = kiln_ctype_size(c->in[k]);
    for (int i = 1; i < N; i++) memcpy(operands[k] + (size_t)i * size, operands[k], size);
    for (int isa = 0; isa < isa_count(); isa++) {
      run(c, twin_of(c, (kiln_isa)isa), false, -1, want, N);
      run(c, (kiln_isa)isa, false, k, got, N);
      expect(c, got, kiln_ctype_size(c->out), "with a number");
    }
    fill(operands[k], c->in[k], N);
  }
}
static void test_functors(void **state) {
  (void)state;
  int count = 0;
  for (int f = 0; f < KILN_PW__COUNT; f++) {
    for (int t = 0; t < KILN_CTYPE__COUNT; t++) {
      kiln_ctype ctype = (kiln_ctype)t;
      for (int isa = 0; isa < isa_count(); isa++) { /* all have it, or none */
        assert_true(!kiln_dispatch_select((kiln_isa)isa)->loops[t][f] ==
                    !kiln_dispatch_select(KILN_ISA_V2)->loops[t][f]);
      }
      if (!kiln_dispatch_select(KILN_ISA_V2)->loops[t][f]) continue;
      one_case c = {.functor = f,
                    .ctype = ctype,
                    .out = result_of(f, ctype),
                    .in = {f == KILN_PW_where ? KILN_CTYPE_BOOL : ctype, ctype, ctype},
                    .params = {.f = {0.75, 1.5, 0.5, -2}, .i = {3, 5, 7, 1}}};
      check_functor(&c);
      count++;
    }
  }
  assert_true(count > 300);
}

/* -- Reductions -- */

/* reduce.h in its own words, for sums of float. */
static float sum_by_rule(const float *x, int n, int step) {
  float lanes[KILN_REDUCE_LANES] = {0};
  for (int i = 0; i < n; i++) lanes[i % KILN_REDUCE_LANES] += x[i * step];
  for (int w = KILN_REDUCE_LANES / 2; w > 0; w /= 2) {
    for (int j = 0; j < w; j++) lanes[j] += lanes[j + w];
  }
  return lanes[0];
}
static void test_sums_follow_the_rule(void **state) {
  (void)state;
  enum { ROWS = 330, COLUMNS = 150 }; /* more than a block of columns, and of lanes */
  static float x[ROWS * COLUMNS];
  float out[ROWS];
  static const int sizes[] = {0, 1, 2, 63, 64, 65, 127, 130, 200, 256, 257, ROWS};
  for (int i = 0; i < ROWS * COLUMNS; i++) x[i] = (float)((double)next_random() / 0x1p60 - 8);
  for (int isa = 0; isa < isa_count(); isa++) {
    kiln_reduce_loop sum =
        kiln_dispatch_select((kiln_isa)isa)->reduce[KILN_REDUCE_SUM][KILN_CTYPE_F32];
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
      int n = sizes[s];
      /* Rows, strided rows, and columns. */
      sum((char *)out, (const char *)x, n, 4, 3, 4 * ROWS, NULL);
      for (int r = 0; r < 3; r++) assert_true(out[r] == sum_by_rule(x + r * ROWS, n, 1));
      sum((char *)out, (const char *)x, n, 8, 1, 0, NULL);
      assert_true(out[0] == sum_by_rule(x, n, 2));
      sum((char *)out, (const char *)x, n, 4 * COLUMNS, COLUMNS, 4, NULL);
      for (int c = 0; c < COLUMNS; c++) assert_true(out[c] == sum_by_rule(x + c, n, COLUMNS));
    }
  }
}
static void test_reductions_agree(void **state) {
  (void)state;
  static char x[N * 16], shift[N * 16];
  char first[16], other[16];
  int count = 0;
  for (int op = 0; op < KILN_REDUCE__COUNT; op++) {
    for (int t = 0; t < KILN_CTYPE__COUNT; t++) {
      if (!kiln_dispatch_select(KILN_ISA_V2)->reduce[op][t]) continue;
      size_t item = kiln_ctype_size((kiln_ctype)t);
      fill(x, (kiln_ctype)t, N);
      fill(shift, (kiln_ctype)t, 1);
      count++;
      for (int n = 1; n <= N; n += 6) {
        for (int isa = 0; isa < isa_count(); isa++) {
          kiln_reduce_loop loop = kiln_dispatch_select((kiln_isa)isa)->reduce[op][t];
          char *to = isa ? other : first;
          loop(to, x, n, (int64_t)item, 1, 0, shift);
          assert_true(same_element(to, first, (kiln_ctype)t));
        }
      }
    }
  }
  assert_true(count >= 30);
}
/* A NaN anywhere wins; the neutral element does not show. */
static void test_extremes(void **state) {
  (void)state;
  float x[130], out;
  for (int i = 0; i < 130; i++) x[i] = (float)-i - 5;
  for (int isa = 0; isa < isa_count(); isa++) {
    const kiln_dispatch *d = kiln_dispatch_select((kiln_isa)isa);
    kiln_reduce_loop max = d->reduce[KILN_REDUCE_MAX][KILN_CTYPE_F32];
    kiln_reduce_loop min = d->reduce[KILN_REDUCE_MIN][KILN_CTYPE_F32];
    max((char *)&out, (const char *)x, 130, 4, 1, 0, NULL);
    assert_true(out == -5);
    min((char *)&out, (const char *)x, 130, 4, 1, 0, NULL);
    assert_true(out == -134);
    for (int at = 0; at < 130; at += 43) {
      float old = x[at];
      x[at] = NAN;
      max((char *)&out, (const char *)x, 130, 4, 1, 0, NULL);
      assert_true(isnan(out));
      min((char *)&out, (const char *)x, 130, 4, 1, 0, NULL);
      assert_true(isnan(out));
      x[at] = old;
    }
  }
}
static float any_float(void) { /* of any exponent, denormals and special values too */
  const uint32_t bits = (uint32_t)next_random();
  const float near = (float)pick_float();
  float x;
  memcpy(&x, &bits, sizeof x);
  return bits % 3 ? x : near;
}
/* Vectors of quotients have the C library's bits, of erfinv those of double within 3 units. */
static void test_quotients(void **state) {
  (void)state;
  enum { COUNT = 4096 };
  static float x[COUNT], y[COUNT], have[COUNT];
  char *data[] = {(char *)have, (char *)x, (char *)y};
  kiln_pw_params params = {0};
  for (int i = 0; i < COUNT; i++) {
    x[i] = any_float(), y[i] = any_float();
    if (i % 4 == 0) x[i] = y[i] * (float)(int32_t)(next_random() % 4000);
  }
  for (int isa = 0; isa < isa_count(); isa++) {
    const kiln_pw_loop *loops = kiln_dispatch_select((kiln_isa)isa)->loops[KILN_CTYPE_F32];
    loops[KILN_PW_fmod](data, (const int64_t[]){4, 4, 4}, COUNT, &params);
    for (int i = 0; i < COUNT; i++) {
      const float want_one = fmodf(x[i], y[i]);
      assert_true(same_element((char *)&have[i], (const char *)&want_one, KILN_CTYPE_F32));
    }
    loops[KILN_PW_remainder](data, (const int64_t[]){4, 4, 4}, COUNT, &params);
    for (int i = 0; i < COUNT; i++) {
      float want_one = fmodf(x[i], y[i]);
      if (want_one != 0 && (y[i] < 0) != (want_one < 0)) want_one += y[i];
      assert_true(same_element((char *)&have[i], (const char *)&want_one, KILN_CTYPE_F32));
    }
    loops[KILN_PW_erfinv](data, (const int64_t[]){4, 4}, COUNT, &params);
    for (int i = 0; i < COUNT; i++) {
      const float exact = (float)kiln__erfinv((double)x[i]);
      if (!isfinite(exact)) {
        assert_true(same_element((char *)&have[i], (const char *)&exact, KILN_CTYPE_F32));
      } else {
        const float unit = nextafterf(fabsf(exact), INFINITY) - fabsf(exact);
        assert_true(fabsf(have[i] - exact) <= 3 * unit);
      }
    }
  }
}
/* Of columns as of rows, whose elements lie apart; wide: in several blocks of columns, whose lanes
 * are taken in groups. */
static void check_columns(int most_rows, int step, int count) {
  char *x = malloc((size_t)most_rows * (size_t)count * 16), *columns = malloc((size_t)count * 16);
  char row[16];
  assert_non_null(x);
  assert_non_null(columns);
  for (int op = 0; op < KILN_REDUCE__COUNT; op++) {
    for (int t = 0; t < KILN_CTYPE__COUNT; t++) {
      const int64_t item = (int64_t)kiln_ctype_size((kiln_ctype)t);
      fill(x, (kiln_ctype)t, most_rows * count);
      for (int isa = 0; isa < isa_count(); isa++) {
        kiln_reduce_loop loop = kiln_dispatch_select((kiln_isa)isa)->reduce[op][t];
        for (int n = 1; loop && n <= most_rows; n += step) {
          loop(columns, x, n, count * item, count, item, NULL);
          for (int c = 0; c < count; c++) {
            loop(row, x + c * item, n, count * item, 1, 0, NULL);
            assert_true(same_element(columns + c * item, row, (kiln_ctype)t));
          }
        }
      }
    }
  }
  free(x);
  free(columns);
}
static void test_columns_are_as_rows(void **state) {
  (void)state;
  check_columns(300, 23, 70);
  check_columns(600, 299, 1100);
}

/* reduce.h in its own words, for extremes: of equal ones, as 0 and -0 are, the later in a lane and
 * the further lane. */
static double extreme_by_rule(const double *x, int n, int step, bool largest) {
  double lanes[KILN_REDUCE_LANES];
  for (int j = 0; j < KILN_REDUCE_LANES; j++) lanes[j] = largest ? -INFINITY : INFINITY;
#define FURTHER(acc, x) ((largest ? (acc) > (x) : (acc) < (x)) ? (acc) : (x))
  for (int i = 0; i < n; i++) {
    double *lane = &lanes[i % KILN_REDUCE_LANES];
    *lane = FURTHER(*lane, x[i * step]);
  }
  for (int w = KILN_REDUCE_LANES / 2; w > 0; w /= 2) {
    for (int j = 0; j < w; j++) lanes[j] = FURTHER(lanes[j], lanes[j + w]);
  }
  return lanes[0];
#undef FURTHER
}
static void check_zeros(const kiln_dispatch *d, const double *x, const float *narrow, int n,
                        int count, bool largest) {
  const int op = largest ? KILN_REDUCE_MAX : KILN_REDUCE_MIN;
  kiln_reduce_loop f64 = d->reduce[op][KILN_CTYPE_F64], f32 = d->reduce[op][KILN_CTYPE_F32];
  double *have = malloc(sizeof(double) * (size_t)count);
  float *few = malloc(sizeof(float) * (size_t)count);
  assert_non_null(have);
  assert_non_null(few);
  for (int rows = 0; rows < 2; rows++) { /* else columns */
    const int far = rows ? 1 : count, next = rows ? n : 1, many = rows ? 5 : count;
    f64((char *)have, (const char *)x, n, 8 * far, many, 8 * next, NULL);
    f32((char *)few, (const char *)narrow, n, 4 * far, many, 4 * next, NULL);
    for (int c = 0; c < many; c++) {
      const double want_one = extreme_by_rule(x + c * next, n, far, largest);
      const float narrow_one = (float)want_one;
      assert_memory_equal(&have[c], &want_one, sizeof want_one);
      assert_memory_equal(&few[c], &narrow_one, sizeof narrow_one);
    }
  }
  free(have);
  free(few);
}
/* Which zero comes out, of rows and columns of none, some and many that are not zero. */
static void test_extremes_of_zeros(void **state) {
  (void)state;
  enum { ROWS = 330, COLUMNS = 1100 };
  static double x[ROWS * COLUMNS];
  static float narrow[ROWS * COLUMNS];
  static const int sizes[] = {1, 2, 3, 7, 63, 64, 65, 66, 127, 130, 200, 256, 257, ROWS};
  for (int rare = 0; rare < 3; rare++) {
    for (int largest = 0; largest < 2; largest++) {
      for (int i = 0; i < ROWS * COLUMNS; i++) {
        const uint64_t r = next_random();
        x[i] = r % (rare ? 1000 : 2) == 0 ? 0.0 : -0.0; /* +0 rare or -0 rare, or neither */
        if (rare == 2) x[i] = -x[i];
        if (r / 1000 % 3 == 0) x[i] = largest ? -1 : 1;
        narrow[i] = (float)x[i];
      }
      for (int isa = 0; isa < isa_count(); isa++) {
        const kiln_dispatch *d = kiln_dispatch_select((kiln_isa)isa);
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
          check_zeros(d, x, narrow, sizes[s], 37, largest);
          if (s % 4 == 1) check_zeros(d, x, narrow, sizes[s], COLUMNS, largest);
        }
      }
    }
  }
}

/* -- Places -- */

/* An element that has the order of x's, and is NaN where x is. */
static double number_at(const char *x, kiln_ctype ctype) {
  switch (ctype) {
    case KILN_CTYPE_BOOL: return *x != 0;
    case KILN_CTYPE_I32: return *(const int32_t *)(const void *)x;
    case KILN_CTYPE_I64: return (double)*(const int64_t *)(const void *)x;
    case KILN_CTYPE_F32: return (double)*(const float *)(const void *)x;
    default: return *(const double *)(const void *)x;
  }
}
static int64_t place_by_rule(const char *x, kiln_ctype ctype, int64_t n, int64_t step,
                             bool largest) {
  int64_t place = 0;
  double best = number_at(x, ctype);
  for (int64_t i = 1; i < n && !isnan(best); i++) {
    const double y = number_at(x + i * step, ctype);
    if (isnan(y) || (largest ? y > best : y < best)) best = y, place = i;
  }
  return place;
}
static void check_places(const char *x, kiln_ctype ctype, int64_t n, int64_t count, bool rows) {
  const int64_t item = (int64_t)kiln_ctype_size(ctype);
  const int64_t far = rows ? item : count * item, next = rows ? n * item : item;
  int64_t *places = malloc((size_t)count * 8);
  char *values = malloc((size_t)(count * item));
  assert_non_null(places);
  assert_non_null(values);
  for (int largest = 0; largest < 2; largest++) {
    for (int isa = 0; isa < isa_count(); isa++) {
      kiln_dispatch_select((kiln_isa)isa)
          ->places[largest][ctype](places, values, x, n, far, count, next);
      for (int64_t c = 0; c < count; c++) {
        const int64_t at = place_by_rule(x + c * next, ctype, n, far, largest);
        const double want_one = number_at(x + c * next + at * far, ctype);
        const double have = number_at(values + c * item, ctype);
        assert_int_equal(places[c], at);
        assert_true(have == want_one || (isnan(have) && isnan(want_one)));
      }
    }
  }
  free(places);
  free(values);
}
/* kind 0: few values, so many equal ones, at last a NaN in a third of the rows; 1, 2: ever greater
 * or less, so that the last one is the place; 3: any. */
static void fill_places(char *x, kiln_ctype ctype, int kind, int count) {
  if (kind == 3) {
    fill(x, ctype, count);
    return;
  }
  for (int i = 0; i < count; i++) {
    const int ever = kind == 1 ? i : -i, few = (int)(next_random() % 5) - 2;
    const int v = kind ? ever : few;
    const bool nan = kind == 0 && next_random() % 3000 == 0;
    switch (ctype) {
      case KILN_CTYPE_BOOL: ((uint8_t *)x)[i] = (uint8_t)(v & 6); break;
      case KILN_CTYPE_I32: ((int32_t *)(void *)x)[i] = v; break;
      case KILN_CTYPE_I64: ((int64_t *)(void *)x)[i] = v; break;
      case KILN_CTYPE_F32: ((float *)(void *)x)[i] = nan ? NAN : (float)v; break;
      default: ((double *)(void *)x)[i] = nan ? (double)NAN : v;
    }
  }
}
static void test_places(void **state) {
  (void)state;
  enum { MOST = 1 << 17 };
  static const kiln_ctype types[] = {KILN_CTYPE_BOOL, KILN_CTYPE_I32, KILN_CTYPE_I64,
                                     KILN_CTYPE_F32, KILN_CTYPE_F64};
  static const int sizes[] = {1, 2, 15, 63, 64, 65, 130, 1000, 4095, 4096, 4097, 9000};
  static const int shapes[][2] = {{1, 3},     {2, 64},   {9, 65},   {64, 7},
                                  {70, 1030}, {300, 17}, {13, 4200}};
  static char x[MOST * 8];
  for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
    for (int kind = 0; kind < 4; kind++) {
      fill_places(x, types[t], kind, MOST);
      for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        check_places(x, types[t], sizes[s], MOST / 8 / sizes[s] < 9 ? 2 : 9, true);
      for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        check_places(x, types[t], shapes[s][0], shapes[s][1], false);
    }
  }
  for (int t = 0; t < KILN_CTYPE__COUNT; t++) { /* all have it, or none */
    for (int isa = 0; isa < isa_count(); isa++)
      assert_true(!kiln_dispatch_select((kiln_isa)isa)->places[0][t] == (t >= KILN_CTYPE_C64));
  }
}

/* -- Conversions -- */

/* In vectors and one by one: all halves, and floats between them. */
static void test_halves(void **state) {
  (void)state;
  enum { COUNT = 1 << 16 };
  static uint16_t from[COUNT], have[COUNT];
  static float floats[COUNT];
  for (int isa = 0; isa < isa_count(); isa++) {
    const kiln_dispatch *d = kiln_dispatch_select((kiln_isa)isa);
    for (int bf = 0; bf < 2; bf++) {
      const kiln_dtype dtype = bf ? KILN_DTYPE_BF16 : KILN_DTYPE_F16;
      for (int i = 0; i < COUNT; i++) from[i] = (uint16_t)i;
      d->load[dtype][KILN_CTYPE_F32]((char *)floats, 4, (const char *)from, 2, COUNT);
      for (int i = 0; i < COUNT; i++) {
        const float exact = bf ? kiln_bf16_to_float(from[i]) : kiln_half_to_float(from[i]);
        assert_true(kiln_float_bits(floats[i]) == kiln_float_bits(exact) ||
                    (isnan(exact) && isnan(floats[i])));
        /* Odd numbers of 13 bits behind it: ties and both sides of them. */
        floats[i] =
            kiln_float_from_bits(kiln_float_bits(exact) ^ (uint32_t)(next_random() % 3 * 0xfff));
      }
      d->store[KILN_CTYPE_F32][dtype]((char *)have, 2, (const char *)floats, 4, COUNT);
      for (int i = 0; i < COUNT; i++) {
        assert_int_equal(have[i],
                         bf ? kiln_float_to_bf16(floats[i]) : kiln_float_to_half(floats[i]));
      }
    }
  }
}

static void test_casts_agree(void **state) {
  (void)state;
  static char from[N * 16], raw[N * 16], first[N * 16], other[N * 16], far[N * 16 * SLACK];
  int count = 0;
  for (int d = 0; d < KILN_DTYPE__COUNT; d++) {
    if (kiln_ctype_of((kiln_dtype)d) == KILN_CTYPE_NONE) continue;
    kiln_ctype own = kiln_ctype_of((kiln_dtype)d);
    size_t item = kiln_dtype_bytes((kiln_dtype)d), own_item = kiln_ctype_size(own);
    fill(from, own, N);
    if (own >= KILN_CTYPE_F32) { /* only what integers hold too: others are the processor's */
      for (int i = 0; i < N; i++) {
        double pair[2] = {(double)(next_random() % 200) / 2, -3};
        kiln_dispatch_select(KILN_ISA_V2)
            ->load[KILN_DTYPE_C128][own](from + (size_t)i * own_item, 0, (const char *)pair, 0, 1);
      }
    }
    kiln_dispatch_select(KILN_ISA_V2)
        ->store[own][d](raw, (int64_t)item, from, (int64_t)own_item, N);
    for (int t = 0; t < KILN_CTYPE__COUNT; t++) {
      size_t to_item = kiln_ctype_size((kiln_ctype)t);
      count++;
      for (int isa = 0; isa < isa_count(); isa++) {
        const kiln_dispatch *k = kiln_dispatch_select((kiln_isa)isa);
        char *to = isa ? other : first;
        k->load[d][t](to, (int64_t)to_item, raw, (int64_t)item, N);
        assert_memory_equal(to, first, to_item * N);
        spread(far, raw, item, N);
        k->load[d][t](other, (int64_t)to_item, far, (int64_t)item * SLACK, N);
        assert_memory_equal(other, first, to_item * N);
        /* And back, which changes nothing where the compute type is the dtype's own. */
        k->store[t][d](other, (int64_t)item, first, (int64_t)to_item, N);
        if (t == (int)own) assert_memory_equal(other, raw, item * N);
      }
    }
  }
  assert_true(count >= 100);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_functors),
      cmocka_unit_test(test_sums_follow_the_rule),
      cmocka_unit_test(test_reductions_agree),
      cmocka_unit_test(test_extremes),
      cmocka_unit_test(test_casts_agree),
      cmocka_unit_test(test_columns_are_as_rows),
      cmocka_unit_test(test_halves),
      cmocka_unit_test(test_quotients),
      cmocka_unit_test(test_extremes_of_zeros),
      cmocka_unit_test(test_places),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
