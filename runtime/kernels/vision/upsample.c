/* upsample.c: upsample_nearest, linear, bicubic and their kin over the last one to three
 * dimensions.
 *
 * One dimension after the other: each result element of a dimension is a sum of weighted elements
 * (taps) of it, from a table that is made once. Nearest moves elements of any dtype. Positions are
 * computed in float for all dtypes but double, as PyTorch does: they decide which element is near.
 */
#include <math.h>
#include <string.h>

#include "runtime/kernels/index/index.h"
#include "runtime/kernels/nn/nn.h"

typedef enum resample_kind {
  NEAREST,
  NEAREST_EXACT,
  LINEAR,
  CUBIC,
  LINEAR_AA, /* filters that widen when they shrink the picture */
  CUBIC_AA,
  LANCZOS_AA
} resample_kind;

enum { MAX_SPATIAL = 3 };

typedef struct resample {
  resample_kind kind;
  int spatial;
  bool align;
  int64_t in[MAX_SPATIAL], out[MAX_SPATIAL];
  double scale[MAX_SPATIAL]; /* as given; 0: none */
} resample;

/* -- Arguments -- */

static kiln_status *check_input(const resample *p, const kiln_tensor *t) {
  const int rank = kiln_tensor_rank(t);
  if (rank != p->spatial + 2) {
    return KILN_OP_FAIL("It is expected input_size equals to %d, but got size %d", p->spatial + 2,
                        rank);
  }
  for (int d = 0; d < p->spatial; d++) {
    if (p->in[d] <= 0 || p->out[d] <= 0) {
      return KILN_OP_FAIL("Input and output sizes should be greater than 0, but got input (%lld) "
                          "output (%lld)",
                          (long long)p->in[d], (long long)p->out[d]);
    }
  }
  for (int d = 1; d < rank; d++) {
    if (kiln_tensor_sizes(t)[d] == 0) {
      return KILN_OP_FAIL("Non-empty %dD data tensor expected but got a tensor with sizes %s", rank,
                          kiln__sizes_of(t).text);
    }
  }
  return NULL;
}
/* output_size and, from `scales` on, an optional float for each dimension. */
static kiln_status *read_sizes(resample *p, const kiln_ivalue *args, int scales) {
  const kiln_tensor *t = SELF;
  int64_t sizes[KILN_MAX_RANK];
  int count;
  KILN_TRY(kiln__arg_int_list(args, 1, sizes, &count));
  if (count != 1 && count != p->spatial) {
    return KILN_OP_FAIL("It is expected output_size equals to %d, but got size %d", p->spatial,
                        count);
  }
  for (int d = 0; d < p->spatial; d++) {
    p->out[d] = sizes[count == 1 ? 0 : d];
    p->scale[d] = kiln_arg_is_none(args, scales + d) ? 0 : kiln_arg_float(args, scales + d);
  }
  return check_input(p, t);
}
/* Of the .vec overloads: output_size or a list of factors, at `factors`. */
static kiln_status *read_factors(resample *p, const kiln_ivalue *args, int factors) {
  const kiln_tensor *t = SELF;
  if (kiln_arg_is_none(args, 1) == kiln_arg_is_none(args, factors)) {
    return KILN_OP_FAIL("Must specify exactly one of output_size and scale_factors");
  }
  const bool by_size = !kiln_arg_is_none(args, 1);
  const kiln_list *list = kiln_arg_list(args, by_size ? 1 : factors);
  if (list->count != p->spatial) {
    return KILN_OP_FAIL("It is expected %s equals to %d, but got size %lld",
                        by_size ? "output_size" : "scale_factors", p->spatial,
                        (long long)list->count);
  }
  for (int d = 0; d < p->spatial; d++) {
    p->scale[d] = by_size ? 0 : list->items[d].u.f;
    const double wanted = (double)p->in[d] * p->scale[d];
    if (!by_size && !(wanted >= 0 && wanted < 0x1p40)) {
      return KILN_OP_FAIL("scale_factors: %g is out of range", p->scale[d]);
    }
    p->out[d] = by_size ? list->items[d].u.i : (int64_t)wanted;
  }
  return check_input(p, t);
}

/* -- Where result elements come from -- */

/* Input elements for each output element. */
static double ratio(const resample *p, int d, bool wide) {
  if (p->align) {
    if (p->out[d] <= 1) return 0;
    return wide ? (double)(p->in[d] - 1) / (double)(p->out[d] - 1)
                : (double)((float)(p->in[d] - 1) / (float)(p->out[d] - 1));
  }
  if (p->scale[d] > 0) return wide ? 1 / p->scale[d] : (double)(float)(1 / p->scale[d]);
  return wide ? (double)p->in[d] / (double)p->out[d] : (double)((float)p->in[d] / (float)p->out[d]);
}
static double product(double a, double b, bool wide) {
  return wide ? a * b : (double)((float)a * (float)b);
}
static double position(const resample *p, double scale, int64_t at, bool wide) {
  if (p->align) return product(scale, (double)at, wide);
  const double x = product(scale, (double)at + 0.5, wide);
  return wide ? x - 0.5 : (double)((float)x - 0.5f);
}
/* Factors that a model chooses lead anywhere, NaN too: `x`, or the end that it lies behind. */
static double between(double low, double x, double high) {
  return !(x > low) ? low : x < high ? x : high;
}
static void nearest_places(const resample *p, int d, bool wide, int64_t *places) {
  const double scale = ratio(p, d, wide), shift = p->kind == NEAREST_EXACT ? 0.5 : 0;
  for (int64_t i = 0; i < p->out[d]; i++) {
    const double x = product((double)i + shift, scale, wide);
    places[i] = kiln__place_within(x, p->in[d] - 1);
  }
}

typedef struct taps {
  int64_t count; /* for each result element */
  int64_t *places;
  double *weights;
  float *f32; /* weights, as float; NULL where it is computed in double */
} taps;

static double cubic_near(double x, double a) { return ((a + 2) * x - (a + 3)) * x * x + 1; }
static double cubic_far(double x, double a) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; }

static void plain_taps(const resample *p, int d, bool wide, const taps *t) {
  const double scale = ratio(p, d, wide);
  const int64_t last = p->in[d] - 1;
  for (int64_t i = 0; i < p->out[d]; i++) {
    double x = between(-2, position(p, scale, i, wide), (double)last + 1);
    if (p->kind == LINEAR && x < 0) x = 0;
    int64_t first = (int64_t)floor(x);
    if (first > last) first = last;
    double rest = x - (double)first;
    rest = rest < 0 ? 0 : rest > 1 ? 1 : rest;
    double *w = t->weights + i * t->count;
    if (p->kind == LINEAR) {
      w[0] = wide ? 1 - rest : (double)(1.0f - (float)rest);
      w[1] = rest;
    } else {
      w[0] = cubic_far(rest + 1, -0.75);
      w[1] = cubic_near(rest, -0.75);
      w[2] = cubic_near(1 - rest, -0.75);
      w[3] = cubic_far(2 - rest, -0.75);
      first--;
    }
    for (int64_t k = 0; k < t->count; k++) {
      const int64_t at = first + k;
      t->places[i * t->count + k] = at < 0 ? 0 : at > last ? last : at;
    }
  }
}
static double sinc(double x) { return x == 0 ? 1 : sin(M_PI * x) / (M_PI * x); }
static double filter(resample_kind kind, double x) {
  x = fabs(x);
  if (kind == LINEAR_AA) return x < 1 ? 1 - x : 0;
  if (kind == LANCZOS_AA) return x < 3 ? sinc(x) * sinc(x / 3) : 0;
  return x < 1 ? cubic_near(x, -0.5) : x < 2 ? cubic_far(x, -0.5) : 0;
}
static double support(const resample *p, double scale) {
  return (p->kind == LINEAR_AA ? 1 : p->kind == CUBIC_AA ? 2 : 3) * (scale >= 1 ? scale : 1);
}
static void wide_taps(const resample *p, int d, bool wide, const taps *t) {
  const double scale = ratio(p, d, wide), reach = support(p, scale);
  for (int64_t i = 0; i < p->out[d]; i++) {
    const double center = scale * ((double)i + 0.5);
    int64_t first = kiln__place_within(center - reach + 0.5, p->in[d]);
    int64_t end = kiln__place_within(center + reach + 0.5, p->in[d]);
    double sum = 0, *w = t->weights + i * t->count;
    if (end - first > t->count) end = first + t->count;
    for (int64_t k = 0; k < t->count; k++) {
      const bool inside = first + k < end;
      w[k] = inside
                 ? filter(p->kind, ((double)(first + k) - center + 0.5) / (scale >= 1 ? scale : 1))
                 : 0;
      sum += w[k];
      t->places[i * t->count + k] = inside ? first + k : p->in[d] - 1;
    }
    for (int64_t k = 0; sum != 0 && k < t->count; k++) w[k] /= sum;
  }
}
static kiln_status *make_taps(kiln__nn *nn, const resample *p, int d, taps *t) {
  const bool wide = nn->dtype == KILN_DTYPE_F64;
  kiln_tensor *places, *weights;
  void *data;
  t->count = p->kind == LINEAR ? 2 : p->kind == CUBIC ? 4 : 0;
  if (t->count == 0) {
    const double reach = 2 * ceil(support(p, ratio(p, d, wide))) + 1;
    t->count = reach < (double)p->in[d] ? (int64_t)reach : p->in[d];
  }
  const int64_t sizes[] = {p->out[d], t->count};
  KILN_TRY(kiln__nn_make(nn, KILN_DTYPE_I64, 2, sizes, &places, &data));
  t->places = data;
  KILN_TRY(kiln__nn_make(nn, KILN_DTYPE_F64, 2, sizes, &weights, &data));
  t->weights = data;
  if (p->kind == LINEAR || p->kind == CUBIC)
    plain_taps(p, d, wide, t);
  else
    wide_taps(p, d, wide, t);
  t->f32 = NULL;
  if (wide) return NULL;
  KILN_TRY(kiln__nn_make(nn, KILN_DTYPE_F32, 2, sizes, &weights, &data));
  t->f32 = data;
  for (int64_t i = 0; i < p->out[d] * t->count; i++) t->f32[i] = (float)t->weights[i];
  return NULL;
}

/* -- One dimension: [outer, in, inner] to [outer, out, inner] -- */

/* Elements `i` up to `end` of one row, each of two elements, or of several. */
#define RESAMPLE_DIM(name, type, of_type)                                                          \
  static void name##_pairs(const int64_t *place, const type *weight, const type *restrict from,    \
                           type *restrict to, int64_t count) {                                     \
    for (int64_t i = 0; i < count; i++)                                                            \
      to[i] = from[place[2 * i]] * weight[2 * i] + from[place[2 * i + 1]] * weight[2 * i + 1];     \
  }                                                                                                \
  static void name##_row(const taps *t, int64_t i, const type *from, type *restrict to,            \
                         int64_t inner) {                                                          \
    const int64_t *place = t->places + i * t->count;                                               \
    const type *weight = t->of_type + i * t->count;                                                \
    const type *restrict a = from + place[0] * inner;                                              \
    const type *restrict b = from + place[t->count > 1] * inner;                                   \
    const type v = weight[0], w = weight[t->count > 1];                                            \
    if (t->count > 1) {                                                                            \
      for (int64_t c = 0; c < inner; c++) to[c] = a[c] * v + b[c] * w;                             \
    } else {                                                                                       \
      for (int64_t c = 0; c < inner; c++) to[c] = a[c] * v;                                        \
    }                                                                                              \
    for (int64_t k = 2; k < t->count; k++) {                                                       \
      const type *row = from + place[k] * inner, u = weight[k];                                    \
      for (int64_t c = 0; c < inner; c++) to[c] += row[c] * u;                                     \
    }                                                                                              \
  }                                                                                                \
  static void name(const taps *t, const char *from_data, char *to_data, int64_t outer, int64_t in, \
                   int64_t out, int64_t inner) {                                                   \
    const type *from = (const type *)(const void *)from_data;                                      \
    type *to = (type *)(void *)to_data;                                                            \
    const int64_t work = 4 + t->count * inner, step = 1 + KILN_BUDGET_ITEMS / work;                \
    int64_t left = KILN_BUDGET_ITEMS;                                                              \
    for (int64_t o = 0; o < outer; o++, from += in * inner) {                                      \
      for (int64_t i = 0, end; i < out; to += (end - i) * inner, i = end) {                        \
        end = out - i < step ? out : i + step;                                                     \
        if (kiln_budget_spent(&left, (end - i) * work)) return;                                    \
        if (inner == 1 && t->count == 2) {                                                         \
          name##_pairs(t->places + 2 * i, t->of_type + 2 * i, from, to, end - i);                  \
          continue;                                                                                \
        }                                                                                          \
        for (int64_t k = i; k < end; k++) name##_row(t, k, from, to + (k - i) * inner, inner);     \
      }                                                                                            \
    }                                                                                              \
  }
RESAMPLE_DIM(resample_f32, float, f32)
RESAMPLE_DIM(resample_f64, double, weights)

/* Weights of bytes are whole numbers of at most 15 bits, one for each place (at the edges several
 * taps share one), and every dimension is rounded: the factor by which they were multiplied. */
static double whole_weights(const taps *t, int64_t out) {
  double *weights = (double *)(uintptr_t)t->weights, most = 0, factor = 1;
  for (int64_t i = 0; i < out * t->count; i++) {
    if (i % t->count > 0 && t->places[i] == t->places[i - 1]) {
      weights[i] += weights[i - 1];
      weights[i - 1] = 0;
    }
    most = fmax(most, weights[i]);
  }
  while (factor < 0x1p22 && 0.5 + most * 2 * factor < 0x1p15) factor *= 2;
  for (int64_t i = 0; i < out * t->count; i++) weights[i] = round(weights[i] * factor);
  return factor;
}
static void round_bytes(double *x, int64_t n, double factor) {
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; i < n && !kiln_budget_spent(&left, 2); i++) {
    const double whole = floor((x[i] + factor / 2) / factor);
    x[i] = whole < 0 ? 0 : whole > 255 ? 255 : whole;
  }
}
static kiln_status *weigh(kiln__nn *nn, const resample *p, kiln_tensor *t, kiln_ivalue *out) {
  const int rank = p->spatial + 2;
  const char *from;
  int64_t sizes[MAX_SPATIAL + 2];
  kiln_tensor *now = NULL;
  const bool bytes = kiln_tensor_dtype(t) == KILN_DTYPE_U8;
  KILN_TRY(kiln__nn_begin(nn, bytes ? KILN_DTYPE_F64 : kiln_tensor_dtype(t)));
  KILN_TRY(kiln__nn_dense(nn, t, &from));
  memcpy(sizes, kiln_tensor_sizes(t), sizeof(int64_t) * (size_t)rank);
  for (int pass = 0; pass < p->spatial; pass++) {
    const int d = p->spatial - 1 - pass; /* rows first, as PyTorch, while there are few of them */
    taps table;
    char *to;
    int64_t outer = 1, inner = 1;
    KILN_TRY(make_taps(nn, p, d, &table));
    for (int i = 0; i < d + 2; i++) outer *= sizes[i];
    for (int i = d + 3; i < rank; i++) inner *= sizes[i];
    sizes[d + 2] = p->out[d];
    KILN_TRY(kiln__nn_new(nn, rank, sizes, &now, &to));
    const double factor = bytes ? whole_weights(&table, p->out[d]) : 1;
    (nn->dtype == KILN_DTYPE_F64 ? resample_f64 : resample_f32)(&table, from, to, outer, p->in[d],
                                                                p->out[d], inner);
    if (bytes) round_bytes((double *)(void *)to, now->numel, factor);
    from = to;
  }
  return kiln__nn_give(nn, now, kiln_tensor_dtype(t), out);
}
/* Elements of a row at these places. */
#define PICK_ROW(type)                                                       \
  case sizeof(type):                                                         \
    for (int64_t x = 0; x < count; x++)                                      \
      ((type *)(void *)to)[x] = ((const type *)(const void *)row)[place[x]]; \
    break;
static void pick_row(char *restrict to, const char *restrict row, const int64_t *place,
                     int64_t count, size_t item) {
  switch (item) {
    PICK_ROW(uint8_t)
    PICK_ROW(uint16_t)
    PICK_ROW(uint32_t)
    PICK_ROW(uint64_t)
    default:
      for (int64_t x = 0; x < count; x++)
        kiln__move_element(to + (size_t)x * item, row + (size_t)place[x] * item, item);
  }
}
static kiln_status *pick(kiln__nn *nn, const resample *p, kiln_tensor *t, kiln_ivalue *out) {
  const int rank = p->spatial + 2;
  const bool wide = kiln_tensor_dtype(t) == KILN_DTYPE_F64;
  const size_t item = kiln_tensor_item_size(t);
  int64_t sizes[MAX_SPATIAL + 2], total = 0, in[3] = {1, 1, 1}, n[3] = {1, 1, 1}, zero = 0;
  int64_t *places[3] = {&zero, &zero, &zero};
  kiln_tensor *dense, *result, *table;
  void *data;
  KILN_TRY(kiln__check_dtype(nn->call, kiln_tensor_dtype(t)));
  KILN_TRY(kiln__nn_as(nn, t, kiln_tensor_dtype(t), &dense));
  memcpy(sizes, kiln_tensor_sizes(t), sizeof(int64_t) * (size_t)rank);
  for (int d = 0; d < p->spatial; d++) {
    if (!kiln_checked_add_i64(total, p->out[d], &total)) return kiln_status_oom();
    sizes[d + 2] = p->out[d];
  }
  KILN_TRY(kiln__nn_make(nn, KILN_DTYPE_I64, 1, &total, &table, &data));
  int64_t *next = data;
  for (int d = 0; d < p->spatial; d++, next += p->out[d - 1]) {
    const int at = MAX_SPATIAL - p->spatial + d;
    nearest_places(p, d, wide, next);
    places[at] = next;
    in[at] = p->in[d];
    n[at] = p->out[d];
  }
  KILN_TRY(kiln__nn_make(nn, kiln_tensor_dtype(t), rank, sizes, &result, &data));
  char *to = data;
  const char *from = kiln_tensor_data(dense);
  const int64_t planes = sizes[0] * sizes[1];
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t plane = 0; plane < planes; plane++) {
    for (int64_t z = 0; z < n[0]; z++) {
      for (int64_t y = 0; y < n[1]; y++) {
        const char *row =
            from + (size_t)(((plane * in[0] + places[0][z]) * in[1] + places[1][y]) * in[2]) * item;
        const size_t bytes = (size_t)n[2] * item;
        if (kiln_budget_spent(&left, n[2])) break;
        if (y > 0 && places[1][y] == places[1][y - 1]) /* the row before it again */
          memcpy(to, to - bytes, bytes);
        else
          pick_row(to, row, places[2], n[2], item);
        to += bytes;
      }
    }
  }
  return kiln__finish(nn->call, out, kiln_tensor_retain(result));
}

/* -- The operators -- */

static kiln_status *run_resample(kiln__nn *nn, const kiln_ivalue *args, resample_kind kind,
                                 int spatial, bool by_factors, kiln_ivalue *out) {
  const bool near = kind == NEAREST || kind == NEAREST_EXACT;
  resample p = {.kind = kind, .spatial = spatial};
  p.align = !near && kiln_arg_bool(args, 2);
  for (int d = 0; d < spatial; d++) {
    const int at = kiln_tensor_rank(SELF) - spatial + d;
    p.in[d] = at >= 0 ? kiln_tensor_sizes(SELF)[at] : 0;
  }
  KILN_TRY(by_factors ? read_factors(&p, args, near ? 2 : 3) : read_sizes(&p, args, near ? 2 : 3));
  return (near ? pick : weigh)(nn, &p, SELF, out);
}
#define UPSAMPLE(name, kind, spatial)                                                 \
  KILN_NN_KERNEL(name) { return run_resample(nn, args, kind, spatial, false, outs); } \
  KILN_NN_KERNEL(name##_vec) { return run_resample(nn, args, kind, spatial, true, outs); }
UPSAMPLE(upsample_nearest1d, NEAREST, 1)
UPSAMPLE(upsample_nearest2d, NEAREST, 2)
UPSAMPLE(upsample_nearest3d, NEAREST, 3)
UPSAMPLE(_upsample_nearest_exact1d, NEAREST_EXACT, 1)
UPSAMPLE(_upsample_nearest_exact2d, NEAREST_EXACT, 2)
UPSAMPLE(_upsample_nearest_exact3d, NEAREST_EXACT, 3)
UPSAMPLE(upsample_linear1d, LINEAR, 1)
UPSAMPLE(upsample_bilinear2d, LINEAR, 2)
UPSAMPLE(upsample_trilinear3d, LINEAR, 3)
UPSAMPLE(upsample_bicubic2d, CUBIC, 2)
UPSAMPLE(_upsample_bilinear2d_aa, LINEAR_AA, 2)
UPSAMPLE(_upsample_bicubic2d_aa, CUBIC_AA, 2)
UPSAMPLE(_upsample_lanczos2d_aa, LANCZOS_AA, 2)
