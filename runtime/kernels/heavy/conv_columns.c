/* conv_columns.c: transposed convolutions as a matrix product and sums (col2im).
 *
 * Each pixel gives to taps of its own: of x (C, P) and w (C, O T) the product x^T w has, for each
 * pixel, the T values of each output, and these are added where the window that stands there
 * writes. The weights are read once, in rows as they lie; the residues of conv.c read them once for
 * each, some taps apart, in products of few columns. Some outputs at a time, so that what is
 * between is in the second cache. Sums run over the channels first, then over pixels and taps. */
#include "base/pool.h"
#include "runtime/kernels/heavy/conv_columns.h"
#include "runtime/kernels/heavy/gemm.h"
#include "runtime/kernels/heavy/taps.h"

enum { BLOCK_BYTES = 512 << 10, MOST_BYTES = 1 << 20 };
/* Pixels from which rows of them are added, tap by tap. */
enum { BY_TAPS = 32 };

static int64_t pixels_of(const kiln_conv *p) {
  return p->axis[0].in * p->axis[1].in * p->axis[2].in;
}
static int64_t taps_of(const kiln_conv *p) {
  return p->axis[0].taps * p->axis[1].taps * p->axis[2].taps;
}

/* Whether pixels lie equally far apart. */
static bool lies_in_line(const kiln_conv *p) {
  int64_t step = p->axis[2].in_stride * p->axis[2].in;
  for (int d = 1; d >= 0; d--) {
    if (p->axis[d].in != 1 && p->axis[d].in_stride != step) return false;
    step *= p->axis[d].in;
  }
  return true;
}

bool kiln__conv_has_columns(const kiln_conv *p, size_t item) {
  const int64_t pixels = pixels_of(p), taps = taps_of(p);
  return p->channels >= 8 && p->outputs * taps >= 4 && pixels > 0 &&
         taps <= MOST_BYTES / (int64_t)item / pixels && p->axis[2].out_stride == 1 &&
         p->w_output == taps && lies_in_line(p);
}

/* Some outputs of a group of an image. */
typedef struct block {
  const kiln_conv *p;
  const void *columns; /* [pixel][output][tap]; or [output][tap][pixel] */
  const void *bias;    /* of the first; or NULL */
  void *out;
  int64_t count;
} block;

/* By pixels: where each stands, its taps. By taps: for each, rows of pixels. */
#define DEFINE_SUMS(T)                                                                          \
  static void add_pixels_##T(const kiln_conv_axis *a, const T *from, int64_t row, T *out) {     \
    const int64_t pixels = a[0].in * a[1].in * a[2].in;                                         \
    for (int64_t i = 0; i < pixels; i++, from += row) {                                         \
      const int64_t at[] = {i / a[2].in / a[1].in, i / a[2].in % a[1].in, i % a[2].in};         \
      int64_t begin[3], first[3], last[3];                                                      \
      for (int d = 0; d < 3; d++) {                                                             \
        begin[d] = at[d] * a[d].step + a[d].first;                                              \
        kiln_tap_range(begin[d], a[d].tap_step, a[d].taps, a[d].out, &first[d], &last[d]);      \
      }                                                                                         \
      for (int64_t z = first[0]; z < last[0]; z++) {                                            \
        for (int64_t y = first[1]; y < last[1]; y++) {                                          \
          const T *of = from + (z * a[1].taps + y) * a[2].taps;                                 \
          T *to = out + (begin[0] + z * a[0].tap_step) * a[0].out_stride +                      \
                  (begin[1] + y * a[1].tap_step) * a[1].out_stride + begin[2];                  \
          for (int64_t x = first[2]; x < last[2]; x++) to[x * a[2].tap_step] += of[x];          \
        }                                                                                       \
      }                                                                                         \
    }                                                                                           \
  }                                                                                             \
  static void add_tap_##T(const kiln_conv_axis *a, const int64_t *tap, const T *from, T *out) { \
    int64_t begin[3], first[3], last[3];                                                        \
    for (int d = 0; d < 3; d++) {                                                               \
      begin[d] = a[d].first + tap[d] * a[d].tap_step;                                           \
      kiln_tap_range(begin[d], a[d].step, a[d].in, a[d].out, &first[d], &last[d]);              \
    }                                                                                           \
    for (int64_t z = first[0]; z < last[0]; z++) {                                              \
      for (int64_t y = first[1]; y < last[1]; y++) {                                            \
        const T *restrict of = from + (z * a[1].in + y) * a[2].in;                              \
        T *restrict to = out + (begin[0] + z * a[0].step) * a[0].out_stride +                   \
                         (begin[1] + y * a[1].step) * a[1].out_stride + begin[2];               \
        const int64_t step = a[2].step;                                                         \
        if (step == 1) {                                                                        \
          for (int64_t x = first[2]; x < last[2]; x++) to[x] += of[x];                          \
        } else {                                                                                \
          for (int64_t x = first[2]; x < last[2]; x++) to[x * step] += of[x];                   \
        }                                                                                       \
      }                                                                                         \
    }                                                                                           \
  }                                                                                             \
  static void sum_##T(void *data, int64_t begin, int64_t end, int worker) {                     \
    const block *b = data;                                                                      \
    const kiln_conv_axis *a = b->p->axis;                                                       \
    const int64_t taps = taps_of(b->p), pixels = pixels_of(b->p);                               \
    (void)worker;                                                                               \
    for (int64_t c = begin; c < end && !kiln_budget_leaves_out(); c++) {                        \
      T *out = (T *)b->out + c * b->p->out_channel;                                             \
      const T *from = b->columns, bias = b->bias ? ((const T *)b->bias)[c] : 0;                 \
      for (int64_t i = 0; i < b->p->out_channel; i++) out[i] = bias;                            \
      if (pixels < BY_TAPS) {                                                                   \
        add_pixels_##T(a, from + c * taps, b->count * taps, out);                               \
        continue;                                                                               \
      }                                                                                         \
      for (int64_t t = 0; t < taps; t++) {                                                      \
        const int64_t x = a[2].taps, y = a[1].taps, tap[] = {t / x / y, t / x % y, t % x};      \
        add_tap_##T(a, tap, from + (c * taps + t) * pixels, out);                               \
      }                                                                                         \
    }                                                                                           \
  }
DEFINE_SUMS(float)
DEFINE_SUMS(double)

static kiln_status *run_block(kiln__nn *nn, const kiln_conv *p, const block *b, const char *x,
                              const char *w) {
  const bool wide = nn->dtype == KILN_DTYPE_F64;
  const int64_t taps = taps_of(p), pixels = pixels_of(p);
  const kiln_gemm_args g = {.m = pixels,
                            .n = b->count * taps,
                            .k = p->channels,
                            .a = x,
                            .a_row = p->axis[2].in_stride,
                            .a_col = p->in_channel,
                            .b = w,
                            .b_row = p->w_channel,
                            .b_col = 1,
                            .c = (void *)(uintptr_t)b->columns,
                            .c_row = pixels < BY_TAPS ? b->count * taps : 1,
                            .c_col = pixels < BY_TAPS ? 1 : pixels,
                            .alpha = 1};
  KILN_TRY(kiln__gemm_run(nn->call, nn->dtype, &g));
  enum { GRAIN = 1 << 14 };
  kiln_pool_for(nn->call->pool, b->count, 1 + GRAIN / (pixels * taps),
                wide ? sum_double : sum_float, (void *)(uintptr_t)b);
  return kiln_call_check(nn->call, 1);
}

/* Of an image's group: outputs in blocks. */
static kiln_status *run_group(kiln__nn *nn, const kiln_conv *p, int64_t image, int64_t group,
                              void *columns, int64_t most) {
  const int64_t item = (int64_t)nn->item, taps = taps_of(p);
  const char *x =
      (const char *)p->in + (image * p->in_batch + group * p->channels * p->in_channel) * item;
  const char *w = (const char *)p->weight + group * p->w_group * item;
  for (int64_t first = 0; first < p->outputs; first += most) {
    const int64_t output = group * p->outputs + first;
    const block b = {
        .p = p,
        .columns = columns,
        .bias = p->bias ? (const char *)p->bias + output * item : NULL,
        .out = (char *)p->out + (image * p->out_batch + output * p->out_channel) * item,
        .count = p->outputs - first < most ? p->outputs - first : most};
    KILN_TRY(run_block(nn, p, &b, x, w + first * taps * item));
  }
  return NULL;
}

kiln_status *kiln__conv_by_columns(kiln__nn *nn, const kiln_conv *p) {
  const int64_t each = pixels_of(p) * taps_of(p);
  int64_t most = BLOCK_BYTES / (int64_t)nn->item / each;
  if (most < 1) most = 1;
  if (most > p->outputs) most = p->outputs;
  const int64_t elements = most * each;
  kiln_tensor *columns;
  void *data;
  KILN_TRY(kiln__nn_make(nn, nn->dtype, 1, &elements, &columns, &data));
  for (int64_t i = 0; i < p->batch * p->groups; i++)
    KILN_TRY(run_group(nn, p, i / p->groups, i % p->groups, data, most));
  return NULL;
}
