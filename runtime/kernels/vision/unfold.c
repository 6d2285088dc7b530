/* unfold.c: im2col (unfold) and col2im (fold): windows of pictures as columns, and back. */
#include <string.h>

#include "runtime/kernels/heavy/taps.h"
#include "runtime/kernels/index/index.h"
#include "runtime/kernels/nn/nn.h"

typedef struct windows {
  int64_t batch, channels, size[2], k[2], dilation[2], pad[2], stride[2], count[2];
} windows;

static kiln_status *read_pair(const kiln_ivalue *args, int i, int64_t least, const char *name,
                              int64_t out[2]) {
  int64_t values[KILN_MAX_RANK];
  int count;
  KILN_TRY(kiln__arg_int_list(args, i, values, &count));
  if (count != 1 && count != 2) {
    return KILN_OP_FAIL("It is expected %s equals to 2, but got size %d", name, count);
  }
  out[0] = values[0];
  out[1] = values[count - 1];
  for (int d = 0; d < 2; d++) {
    if (out[d] < least || out[d] > INT32_MAX) {
      return KILN_OP_FAIL("%s should be greater than %s, but got %lld", name,
                          least ? "zero" : "or equal to zero", (long long)out[d]);
    }
  }
  return NULL;
}
/* kernel_size, dilation, padding, stride from `i` on; `size` is set. */
static kiln_status *read_windows(windows *w, const kiln_ivalue *args, int i) {
  KILN_TRY(read_pair(args, i, 1, "kernel_size", w->k));
  KILN_TRY(read_pair(args, i + 1, 1, "dilation", w->dilation));
  KILN_TRY(read_pair(args, i + 2, 0, "padding", w->pad));
  KILN_TRY(read_pair(args, i + 3, 1, "stride", w->stride));
  for (int d = 0; d < 2; d++) {
    const int64_t room = w->size[d] + 2 * w->pad[d] - w->dilation[d] * (w->k[d] - 1) - 1;
    w->count[d] = room < 0 ? 0 : room / w->stride[d] + 1;
    if (w->count[d] < 1) {
      return KILN_OP_FAIL("Given input with spatial size (%lld, %lld), kernel_size=(%lld, %lld), "
                          "dilation=(%lld, %lld), padding=(%lld, %lld), calculated shape of the "
                          "array of sliding blocks is too small (non-positive)",
                          (long long)w->size[0], (long long)w->size[1], (long long)w->k[0],
                          (long long)w->k[1], (long long)w->dilation[0], (long long)w->dilation[1],
                          (long long)w->pad[0], (long long)w->pad[1]);
    }
  }
  return NULL;
}
/* A signal as a picture of one column has its elements beside each other, as one of one row has. */
static windows by_rows(windows w) {
  const windows as = w;
  if (w.size[1] != 1 || w.count[1] != 1 || w.k[1] != 1) return w;
  for (int d = 0; d < 2; d++) {
    w.size[d] = as.size[1 - d];
    w.k[d] = as.k[1 - d];
    w.dilation[d] = as.dilation[1 - d];
    w.pad[d] = as.pad[1 - d];
    w.stride[d] = as.stride[1 - d];
    w.count[d] = as.count[1 - d];
  }
  return w;
}

/* Elements of a row of the columns that lie beside each other, and those of the picture that are
 * `step` from the next one. */
typedef void (*move_fn)(char *column, char *picture, int64_t count, int64_t step, kiln_dtype dtype);
/* Calls of move for every run of a column's elements that lies in the picture, in the order of the
 * columns. */
static void walk(const windows *of, char *columns, char *picture, size_t item, kiln_dtype dtype,
                 move_fn move) {
  const windows rowwise = by_rows(*of), *w = &rowwise;
  const int64_t rows = w->channels * w->k[0] * w->k[1], places = w->count[0] * w->count[1];
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t b = 0; b < w->batch && !kiln_budget_spent(&left, 1); b++) {
    for (int64_t r = 0; r < rows && !kiln_budget_spent(&left, 16); r++) {
      const int64_t kx = r % w->k[1], ky = r / w->k[1] % w->k[0], c = r / (w->k[0] * w->k[1]);
      const int64_t x = kx * w->dilation[1] - w->pad[1];
      int64_t first, last;
      kiln_tap_range(x, w->stride[1], w->count[1], w->size[1], &first, &last);
      char *plane = picture + (size_t)((b * w->channels + c) * w->size[0] * w->size[1]) * item;
      char *row = columns + (size_t)((b * rows + r) * places) * item;
      for (int64_t j = 0; j < w->count[0] && !kiln_budget_spent(&left, 4); j++) {
        const int64_t y = j * w->stride[0] - w->pad[0] + ky * w->dilation[0];
        if (y < 0 || y >= w->size[0]) continue;
        for (int64_t i = first, end; i < last; i = end) {
          end = last - i < KILN_BUDGET_ITEMS ? last : i + KILN_BUDGET_ITEMS;
          if (kiln_budget_spent(&left, end - i)) return;
          move(row + (size_t)(j * w->count[1] + i) * item,
               plane + (size_t)(y * w->size[1] + x + i * w->stride[1]) * item, end - i,
               w->stride[1], dtype);
        }
      }
    }
  }
}
static void to_column(char *column, char *picture, int64_t count, int64_t step, kiln_dtype dtype) {
  const size_t item = kiln_dtype_bytes(dtype);
  if (step == 1) {
    memcpy(column, picture, (size_t)count * item);
    return;
  }
  for (int64_t i = 0; i < count; i++)
    kiln__move_element(column + (size_t)i * item, picture + (size_t)(i * step) * item, item);
}
static void to_picture(char *column, char *picture, int64_t count, int64_t step, kiln_dtype dtype) {
  const size_t item = kiln_dtype_bytes(dtype);
  if (step == 1 && dtype == KILN_DTYPE_F32) {
    float *restrict to = (float *)(void *)picture;
    const float *restrict from = (const float *)(void *)column;
    for (int64_t i = 0; i < count; i++) to[i] += from[i];
    return;
  }
  for (int64_t i = 0; i < count; i++)
    kiln__add_element(picture + (size_t)(i * step) * item, column + (size_t)i * item, dtype);
}
/* A new zeroed tensor of `rank` (3, or 4 for pictures), without the batch where there was none. */
static kiln_status *make_result(kiln__nn *nn, kiln_dtype dtype, bool batched, int rank,
                                const int64_t *sizes, kiln_tensor **out, char **out_data) {
  void *data;
  KILN_TRY(kiln__nn_make(nn, dtype, rank - !batched, sizes + !batched, out, &data));
  kiln__zero(data, (size_t)(*out)->numel * kiln_dtype_bytes(dtype));
  *out_data = data;
  return NULL;
}
KILN_NN_KERNEL(im2col) {
  kiln_tensor *t = SELF, *dense, *result;
  const int rank = kiln_tensor_rank(t);
  const int64_t *sizes = kiln_tensor_sizes(t);
  const kiln_dtype dtype = kiln_tensor_dtype(t);
  char *data;
  bool fits = rank == 3 || rank == 4;
  for (int d = rank - 3; fits && d < rank; d++) fits = sizes[d] > 0;
  if (!fits) {
    return KILN_OP_FAIL(
        "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other "
        "non-zero dimensions for input, but got: %s",
        kiln__sizes_of(t).text);
  }
  windows w = {.batch = rank == 4 ? sizes[0] : 1,
               .channels = sizes[rank - 3],
               .size = {sizes[rank - 2], sizes[rank - 1]}};
  KILN_TRY(kiln__check_dtype(nn->call, dtype));
  KILN_TRY(read_windows(&w, args, 1));
  KILN_TRY(kiln__nn_as(nn, t, dtype, &dense));
  const int64_t wanted[] = {w.batch, w.channels * w.k[0] * w.k[1], w.count[0] * w.count[1]};
  KILN_TRY(make_result(nn, dtype, rank == 4, 3, wanted, &result, &data));
  if (result->numel) {
    walk(&w, data, (char *)(uintptr_t)kiln_tensor_data(dense), kiln_dtype_bytes(dtype), dtype,
         to_column);
  }
  return kiln__finish(nn->call, outs, kiln_tensor_retain(result));
}
KILN_NN_KERNEL(col2im) {
  kiln_tensor *t = SELF, *dense, *result;
  const int rank = kiln_tensor_rank(t);
  const int64_t *sizes = kiln_tensor_sizes(t);
  const kiln_dtype dtype = kiln_tensor_dtype(t);
  char *data;
  if (rank != 2 && rank != 3) {
    return KILN_OP_FAIL(
        "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size "
        "and non-zero dimensions for input, but got: %s",
        kiln__sizes_of(t).text);
  }
  windows w = {.batch = rank == 3 ? sizes[0] : 1};
  KILN_TRY(kiln__check_dtype(nn->call, dtype));
  KILN_TRY(read_pair(args, 1, 1, "output_size", w.size));
  KILN_TRY(read_windows(&w, args, 2));
  const int64_t window = w.k[0] * w.k[1], places = w.count[0] * w.count[1];
  if (sizes[rank - 2] == 0 || sizes[rank - 2] % window != 0) {
    return KILN_OP_FAIL("Expected size of input's dimension 1 to be divisible by the product of "
                        "kernel_size, but got input.size(1)=%lld and kernel_size=(%lld, %lld).",
                        (long long)sizes[rank - 2], (long long)w.k[0], (long long)w.k[1]);
  }
  if (sizes[rank - 1] != places) {
    return KILN_OP_FAIL("Given output_size=(%lld, %lld), kernel_size=(%lld, %lld), "
                        "dilation=(%lld, %lld), padding=(%lld, %lld), stride=(%lld, %lld), "
                        "expected size of input's dimension 2 to match the calculated number of "
                        "sliding blocks %lld * %lld = %lld, but got input.size(2)=%lld.",
                        (long long)w.size[0], (long long)w.size[1], (long long)w.k[0],
                        (long long)w.k[1], (long long)w.dilation[0], (long long)w.dilation[1],
                        (long long)w.pad[0], (long long)w.pad[1], (long long)w.stride[0],
                        (long long)w.stride[1], (long long)w.count[0], (long long)w.count[1],
                        (long long)places, (long long)sizes[rank - 1]);
  }
  w.channels = sizes[rank - 2] / window;
  KILN_TRY(kiln__nn_as(nn, t, dtype, &dense));
  const int64_t wanted[] = {w.batch, w.channels, w.size[0], w.size[1]};
  KILN_TRY(make_result(nn, dtype, rank == 3, 4, wanted, &result, &data));
  if (result->numel) {
    walk(&w, (char *)(uintptr_t)kiln_tensor_data(dense), data, kiln_dtype_bytes(dtype), dtype,
         to_picture);
  }
  return kiln__finish(nn->call, outs, kiln_tensor_retain(result));
}
