/* lower_rows_test.c: what reduces and scans, lowered and run: rows that lie along and across
 * memory, against each operator's definition in double. */
#include "lower_support.h"

#include <math.h>

enum { ROWS = 3, LENGTH = 70 };
typedef double (*of_row)(const float *x, int n);

static double greatest(const float *x, int n) {
  double most = -INFINITY;
  for (int i = 0; i < n; i++) most = x[i] > most || x[i] != x[i] ? x[i] : most;
  return most;
}
static double place_of_greatest(const float *x, int n) {
  int at = 0;
  for (int i = 1; i < n; i++) at = x[i] > x[at] ? i : at;
  return at;
}
static double least(const float *x, int n) {
  double most = INFINITY;
  for (int i = 0; i < n; i++) most = x[i] < most ? x[i] : most;
  return most;
}
static double mean(const float *x, int n) {
  double sum = 0;
  for (int i = 0; i < n; i++) sum += x[i];
  return sum / n;
}
static double squares(const float *x, int n) {
  const double center = mean(x, n);
  double sum = 0;
  for (int i = 0; i < n; i++) sum += (x[i] - center) * (x[i] - center);
  return sum;
}
static double variance(const float *x, int n) { return squares(x, n) / (n - 1); }
static double deviation(const float *x, int n) { return sqrt(squares(x, n) / n); }
static double norm_of(const float *x, int n, double p) {
  double sum = 0;
  for (int i = 0; i < n; i++) sum += p == 0 ? x[i] != 0 : pow(fabs((double)x[i]), p);
  return p == 0 ? sum : pow(sum, 1 / p);
}
static double norm_0(const float *x, int n) { return norm_of(x, n, 0); }
static double norm_1(const float *x, int n) { return norm_of(x, n, 1); }
static double norm_2(const float *x, int n) { return norm_of(x, n, 2); }
static double norm_3(const float *x, int n) { return norm_of(x, n, 3); }
static double norm_most(const float *x, int n) { return fmax(greatest(x, n), -least(x, n)); }
static double log_sum(const float *x, int n) {
  double sum = 0;
  for (int i = 0; i < n; i++) sum += exp((double)x[i]);
  return log(sum);
}
static double mean_square(const float *x, int n) {
  double sum = 0;
  for (int i = 0; i < n; i++) sum += (double)x[i] * x[i];
  return sum / n;
}

/* Results of (3) floats or integers, of rows of (3, 70). */
static const struct {
  const char *call, *types; /* %d: the dimension */
  of_row expect[2];
  bool whole[2];
} cases[] = {
    {"aten::max(%x, %d, %no)", "fl", {greatest, place_of_greatest}, {false, true}},
    {"aten::aminmax(%x, %d, %no)", "ff", {least, greatest}, {false}},
    {"aten::var(%x, %dims, %yes, %no)", "f", {variance}, {false}},
    {"aten::std_mean(%x, %dims, %no, %no)", "ff", {deviation, mean}, {false}},
    {"aten::norm(%x, %p0, %dims, %no)", "f", {norm_0}, {false}},
    {"aten::norm(%x, %p1, %dims, %no)", "f", {norm_1}, {false}},
    {"aten::linalg_vector_norm(%x, %p2, %dims, %no, %none)", "f", {norm_2}, {false}},
    {"aten::linalg_vector_norm(%x, %p3, %dims, %no, %none)", "f", {norm_3}, {false}},
    {"aten::linalg_vector_norm(%x, %inf, %dims, %no, %none)", "f", {norm_most}, {false}},
    {"aten::frobenius_norm(%x, %dims, %no)", "f", {norm_2}, {false}},
    {"aten::logsumexp(%x, %dims, %no)", "f", {log_sum}, {false}},
    {"aten::count_nonzero(%x, %dims)", "l", {norm_0}, {true}},
};

static void fill(float *x, int count) {
  for (int i = 0; i < count; i++) x[i] = (float)((i * 37 + i * i * 11) % 101 - 50) * 0.0625f;
}

static void check_case(int number, bool across) {
  char source[2048], outputs[256];
  const int results = (int)strlen(cases[number].types);
  const char *types[2];
  for (int i = 0; i < results; i++) {
    types[i] = cases[number].types[i] == 'f' ? "Float(3, strides=[1], requires_grad=0, device=cpu)"
                                             : "Long(3, strides=[1], requires_grad=0, device=cpu)";
  }
  snprintf(outputs, sizeof outputs, results > 1 ? "%%a : %s, %%b : %s" : "%%a : %s", types[0],
           results > 1 ? types[1] : "");
  snprintf(source, sizeof source,
           "graph(%%x : %s):\n  %%d : int = prim::Constant[value=%d]()\n"
           "  %%dims : int[] = prim::Constant[value=[%d]]()\n"
           "  %%no : bool = prim::Constant[value=0]()\n"
           "  %%yes : bool = prim::Constant[value=1]()\n"
           "  %%none : NoneType = prim::Constant()\n"
           "  %%p0 : int = prim::Constant[value=0]()\n  %%p1 : int = prim::Constant[value=1]()\n"
           "  %%p2 : float = prim::Constant[value=2.]()\n"
           "  %%p3 : float = prim::Constant[value=3.]()\n"
           "  %%inf : float = prim::Constant[value=inf]()\n"
           "  %s = %s\n  return (%s)\n",
           across ? F32("70, 3", "3, 1") : F32("3, 70", "70, 1"), !across, !across, outputs,
           cases[number].call, results > 1 ? "%a, %b" : "%a");
  lowered t;
  float x[ROWS * LENGTH], row[LENGTH];
  union {
    float f[ROWS];
    int64_t i[ROWS];
  } out[2], again;
  fill(x, ROWS * LENGTH);
  void *data[] = {x, &out[0], &out[1]};
  assert_ok(open_graph(&t, source));
  for (int o = 0; o < results; o++) {
    run(&t, data, NULL, &again, 1 + o, cases[number].whole[o] ? sizeof out[o].i : sizeof out[o].f);
    for (int r = 0; r < ROWS; r++) {
      for (int i = 0; i < LENGTH; i++) row[i] = across ? x[i * ROWS + r] : x[r * LENGTH + i];
      const double want = cases[number].expect[o](row, LENGTH);
      const double got = cases[number].whole[o] ? (double)out[o].i[r] : (double)out[o].f[r];
      if (fabs(got - want) > 1e-6 * fabs(want))
        fail_msg("%s, row %d, result %d: %.9g, not %.9g", cases[number].call, r, o, got, want);
    }
  }
  close_graph(&t);
}
static void test_rows(void **unused) {
  (void)unused;
  for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
    check_case(i, false);
    check_case(i, true);
  }
}

/* -- Layers -- */

/* Normalises each of `rows` rows of `length`: channel c of the weights is of `part` elements. */
static void check_norm(const char *call, int rows, int length, int part, bool center) {
  enum { BATCH = 2, CHANNELS = 6, INNER = 35, COUNT = BATCH * CHANNELS * INNER };
  char source[1024];
  static float x[COUNT], y[COUNT], again[COUNT];
  float w[CHANNELS], b[CHANNELS];
  snprintf(source, sizeof source,
           "graph(%%x : %s, %%w : %s, %%b : %s):\n"
           "  %%none : NoneType = prim::Constant()\n  %%yes : bool = prim::Constant[value=1]()\n"
           "  %%three : int = prim::Constant[value=3]()\n"
           "  %%shape : int[] = prim::Constant[value=[6, 5, 7]]()\n"
           "  %%eps : float = prim::Constant[value=0.001]()\n"
           "  %%y : %s = %s\n  return (%%y)\n",
           F32("2, 6, 5, 7", "210, 35, 7, 1"), F32("6", "1"), F32("6", "1"),
           F32("2, 6, 5, 7", "210, 35, 7, 1"), call);
  fill(x, COUNT);
  for (int c = 0; c < CHANNELS; c++) w[c] = 0.5f * (float)c - 1, b[c] = 0.25f * (float)c;
  void *data[] = {x, w, b, y};
  lowered t;
  assert_ok(open_graph(&t, source));
  run(&t, data, NULL, again, 3, sizeof y);
  for (int r = 0; r < rows; r++) {
    const float *row = x + r * length;
    const double middle = center ? mean(row, length) : 0;
    const double spread = center ? squares(row, length) / length : mean_square(row, length);
    for (int i = 0; i < length; i++) {
      const int c = part ? (r * length + i) / part % CHANNELS : -1;
      const double plain = (row[i] - middle) / sqrt(spread + (center ? 0.001 : 0x1p-23));
      const double want = c < 0 ? plain : plain * (double)w[c] + (double)b[c];
      const double got = (double)y[r * length + i];
      if (fabs(got - want) > 1e-5) fail_msg("%s at %d: %.9g, not %.9g", call, i, got, want);
    }
  }
  close_graph(&t);
}
static void test_norms(void **unused) {
  (void)unused;
  check_norm("aten::group_norm(%x, %three, %w, %b, %eps, %yes)", 6, 70, 35, true);
  check_norm("aten::instance_norm(%x, %w, %b, %none, %none, %yes, %eps, %eps, %yes)", 12, 35, 35,
             true);
  check_norm("aten::instance_norm(%x, %none, %none, %none, %none, %yes, %eps, %eps, %yes)", 12, 35,
             0, true);
  check_norm("aten::layer_norm(%x, %shape, %none, %none, %eps, %yes)", 2, 210, 0, true);
  check_norm("aten::rms_norm(%x, %shape, %none, %none)", 2, 210, 0, false);
}

/* A pool of whole planes: the sum, divided as a double. */
static void test_pool(void **unused) {
  (void)unused;
  enum { PLANES = 12, PLANE = 35 };
  static float x[PLANES * PLANE];
  float y[PLANES], again[PLANES];
  void *data[] = {x, y};
  lowered t;
  fill(x, PLANES * PLANE);
  assert_ok(open_graph(
      &t,
      "graph(%x : " F32(
          "2, 6, 5, 7",
          "210, 35, 7, 1") "):\n"
                           "  %one : int[] = prim::Constant[value=[1, 1]]()\n"
                           "  %y : " F32("2, 6, 1, 1",
                                         "6, 1, 1, 1") " = aten::adaptive_avg_pool2d(%x, %one)\n"
                                                       "  return (%y)\n"));
  run(&t, data, NULL, again, 1, sizeof y);
  for (int p = 0; p < PLANES; p++)
    assert_true(fabs((double)y[p] - mean(x + p * PLANE, PLANE)) < 1e-6);
  close_graph(&t);
}

/* -- Losses -- */

static double square_of(double d) { return d * d; }
static double smooth(double d) { return fabs(d) < 0.5 ? d * d : fabs(d) - 0.25; }
static double huber_of(double d) { return fabs(d) <= 0.5 ? 0.5 * d * d : 0.5 * (fabs(d) - 0.25); }
static void check_loss(const char *call, double (*of)(double), int how) {
  char source[1024];
  float x[80], z[80], y[80], again[80];
  double sum = 0;
  snprintf(source, sizeof source,
           "graph(%%x : %s, %%z : %s):\n  %%how : int = prim::Constant[value=%d]()\n"
           "  %%half : float = prim::Constant[value=0.5]()\n"
           "  %%y : %s = %s\n  return (%%y)\n",
           F32("8, 10", "10, 1"), F32("8, 10", "10, 1"), how,
           how ? "Float(requires_grad=0, device=cpu)" : F32("8, 10", "10, 1"), call);
  fill(x, 80);
  for (int i = 0; i < 80; i++) z[i] = x[79 - i] * 0.5f;
  void *data[] = {x, z, y};
  lowered t;
  assert_ok(open_graph(&t, source));
  run(&t, data, NULL, again, 2, how ? sizeof *y : sizeof y);
  for (int i = 0; i < 80; i++) {
    const double want = of((double)x[i] - (double)z[i]);
    if (!how && fabs(want - (double)y[i]) > 1e-6 * want) fail_msg("%s at %d", call, i);
    sum += want;
  }
  if (how == 1) sum /= 80;
  if (how && fabs(sum - (double)y[0]) > 1e-6 * sum) fail_msg("%s: %g, not %g", call, y[0], sum);
  close_graph(&t);
}
static void test_losses(void **unused) {
  (void)unused;
  for (int how = 0; how < 3; how++) {
    check_loss("aten::mse_loss(%x, %z, %how)", square_of, how);
    check_loss("aten::l1_loss(%x, %z, %how)", fabs, how);
    check_loss("aten::smooth_l1_loss(%x, %z, %how, %half)", smooth, how);
    check_loss("aten::huber_loss(%x, %z, %how, %half)", huber_of, how);
  }
}

/* -- Scans -- */

enum { SCANS = 5, LONG = 150 };
/* y = cumsum(x) or cumprod(x), along or across memory; z = y / y.sum(), or y. */
static void check_scan(const char *op, bool across, bool again) {
  char source[1024];
  float x[SCANS * LONG], y[SCANS * LONG], copy[SCANS * LONG];
  const char *type = across ? F32("150, 5", "5, 1") : F32("5, 150", "150, 1"),
             *sum = across ? F32("1, 5", "5, 1") : F32("5, 1", "1, 1");
  snprintf(source, sizeof source,
           "graph(%%x : %s):\n  %%d : int = prim::Constant[value=%d]()\n"
           "  %%dims : int[] = prim::Constant[value=[%d]]()\n"
           "  %%yes : bool = prim::Constant[value=1]()\n"
           "  %%none : NoneType = prim::Constant()\n"
           "  %%y : %s = aten::%s(%%x, %%d, %%none)\n"
           "  %%s : %s = aten::amax(%%y, %%dims, %%yes)\n"
           "  %%z : %s = aten::div(%%y, %%s)\n  return (%s)\n",
           type, !across, !across, type, op, sum, type, again ? "%z" : "%y");
  fill(x, SCANS * LONG);
  if (strcmp(op, "cumprod") == 0)
    for (int i = 0; i < SCANS * LONG; i++) x[i] = 1 + x[i] * 0.01f;
  x[0] = -0.0f;
  lowered t;
  void *data[] = {x, y};
  assert_ok(open_graph(&t, source));
  assert_non_null(strstr(t.text.data, "scan 150"));
  assert_int_equal(strstr(t.text.data, "local") != NULL, again);
  run(&t, data, NULL, copy, 1, sizeof y);
  for (int r = 0; r < SCANS; r++) {
    const int first = across ? r : r * LONG, step = across ? SCANS : 1;
    float want[LONG], most = -INFINITY;
    double sum_so_far = (double)x[first];
    for (int i = 0; i < LONG; i++) {
      const double next = (double)x[first + i * step];
      if (i > 0) sum_so_far = strcmp(op, "cumprod") ? sum_so_far + next : sum_so_far * next;
      want[i] = (float)sum_so_far;
      most = want[i] > most ? want[i] : most;
    }
    for (int i = 0; i < LONG; i++) {
      const float value = again ? want[i] / most : want[i];
      assert_memory_equal(&value, &y[first + i * step], sizeof value);
    }
  }
  close_graph(&t);
}
static void test_scans(void **unused) {
  (void)unused;
  for (int way = 0; way < 4; way++) {
    check_scan("cumsum", way & 1, way & 2);
    check_scan("cumprod", way & 1, way & 2);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rows),   cmocka_unit_test(test_norms), cmocka_unit_test(test_pool),
      cmocka_unit_test(test_losses), cmocka_unit_test(test_scans),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
