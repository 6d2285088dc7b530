/* rnn_packed.c: sequences of several lengths, packed: the steps one after the other, each with the
 * rows that still go on; and back to padded ones. */
#include <string.h>

#include "runtime/kernels/composite.h"

/* An input [T, B, *] without its trailing dimensions: bytes of a row of one step. */
static size_t row_bytes(const kiln_tensor *t, int lead) {
  size_t bytes = kiln_tensor_item_size(t);
  for (int d = lead; d < kiln_tensor_rank(t); d++) bytes *= (size_t)kiln_tensor_sizes(t)[d];
  return bytes;
}

/* Lengths of a batch, descending and above 0; their sum. NULL after a failure. */
static const int64_t *read_lengths(kiln__composite *r, kiln_tensor *t, int64_t batch, int64_t steps,
                                   int64_t *out_rows) {
  kiln_tensor *dense;
  if (kiln_tensor_rank(t) != 1 || t->numel != batch) {
    return FAIL(r,
                "Expected `len(lengths)` to be equal to batch_size, but got %lld (batch_size=%lld)",
                (long long)t->numel, (long long)batch);
  }
  const int64_t *lengths = kiln__composite_read(r, t, KILN_DTYPE_I64, &dense);
  *out_rows = 0;
  for (int64_t i = 0; lengths && i < batch; i++) {
    if (lengths[batch - 1] <= 0 || lengths[i] <= 0) {
      FAIL(r, "Length of all samples has to be greater than 0, but found an element in "
              "'lengths' that is <= 0");
    } else if (i > 0 && lengths[i] > lengths[i - 1]) {
      FAIL(r, "`lengths` array must be sorted in decreasing order when "
              "`enforce_sorted` is True. You can pass `enforce_sorted=False` to "
              "pack_padded_sequence and/or pack_sequence to sidestep this requirement "
              "if you do not need ONNX exportability.");
    } else if (lengths[i] > steps) {
      FAIL(r,
           "start (0) + length (%lld) exceeds dimension size (%lld): a sequence is "
           "longer than the input",
           (long long)lengths[i], (long long)steps);
    }
    if (r->status) return NULL;
    *out_rows += lengths[i];
  }
  return lengths;
}

/* input [T, B, *], lengths, batch_first -> data [sum of lengths, *], batch_sizes */
KILN_COMPOSITE(_pack_padded_sequence) {
  kiln_tensor *t = SELF, *dense, *data, *counts;
  if (t->numel == 0 || kiln_tensor_rank(t) < 2) {
    return FAIL(r, "Cannot pack empty tensors.");
  }
  if (kiln_arg_bool(args, 2)) t = KILN_STEP(r, transpose, T(t), I(0), I(1));
  if (!t) return NULL;
  const int rank = kiln_tensor_rank(t);
  const int64_t steps = kiln_tensor_sizes(t)[0], batch = kiln_tensor_sizes(t)[1];
  int64_t rows, sizes[KILN_MAX_RANK];
  const int64_t *lengths = read_lengths(r, ARG(1), batch, steps, &rows);
  const char *from = kiln__composite_read(r, t, kiln_tensor_dtype(t), &dense);
  if (!lengths || r->status) return NULL;
  sizes[0] = rows;
  memcpy(sizes + 1, kiln_tensor_sizes(t) + 2, sizeof *sizes * (size_t)(rank - 2));
  char *to = kiln__composite_new(r, kiln_tensor_dtype(t), rank - 1, sizes, &data);
  int64_t *count = kiln__composite_new(r, KILN_DTYPE_I64, 1, lengths, &counts);
  if (r->status) return NULL;
  const size_t row = row_bytes(t, 2);
  int64_t going = batch;
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t step = 0;
       step < lengths[0] && !kiln_budget_spent(&left, 16 + going * (int64_t)(row / 16)); step++) {
    while (lengths[going - 1] <= step) going--;
    memcpy(to, from + (size_t)(step * batch) * row, (size_t)going * row);
    to += (size_t)going * row;
    count[step] = going;
  }
  kiln__composite_give(r, &outs[1], counts);
  return data;
}

/* data, batch_sizes, batch_first, padding_value, total_length -> output [T, B, *], lengths */
KILN_COMPOSITE(_pad_packed_sequence) {
  kiln_tensor *t = SELF, *dense, *in, *lengths;
  const int64_t *count = kiln__composite_read(r, ARG(1), KILN_DTYPE_I64, &dense);
  const char *from = kiln__composite_read(r, t, kiln_tensor_dtype(t), &in);
  const int64_t steps = kiln__composite_numel(dense), total = kiln_arg_int(args, 4);
  const int rank = kiln_tensor_rank(t) + 1;
  int64_t rows = 0, sizes[KILN_MAX_RANK + 1];
  if (r->status) return NULL;
  bool fits = steps > 0 && rank >= 2 && rank <= KILN_MAX_RANK;
  for (int64_t i = 0; fits && i < steps; i++) {
    fits = count[i] > 0 && (i == 0 || count[i] <= count[i - 1]) &&
           kiln_checked_add_i64(rows, count[i], &rows);
  }
  if (!fits || rows != kiln_tensor_sizes(t)[0]) {
    return FAIL(r, "_pad_packed_sequence: batch_sizes do not fit the packed data");
  }
  if (total > 0 && total < steps) {
    return FAIL(
        r,
        "Expected total_length to be at least the length of the longest sequence in input, but got "
        "total_length=%lld and max sequence length being %lld",
        (long long)total, (long long)steps);
  }
  sizes[0] = total > 0 ? total : steps;
  sizes[1] = count[0];
  memcpy(sizes + 2, kiln_tensor_sizes(t) + 1, sizeof *sizes * (size_t)(rank - 2));
  kiln_tensor *padded = KILN_STEP(r, full, kiln__composite_ints(r, rank, sizes), args[3],
                                  I(kiln_tensor_dtype(t)), NONE, NONE, NONE);
  int64_t *length = kiln__composite_new(r, KILN_DTYPE_I64, 1, &sizes[1], &lengths);
  void *data = NULL;
  if (r->status || !kiln__composite_ok(r, kiln_tensor_writable_data(padded, &data))) return NULL;
  const size_t row = row_bytes(t, 1);
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t step = 0;
       step < steps && !kiln_budget_spent(&left, count[step] * (1 + (int64_t)(row / 16))); step++) {
    memcpy((char *)data + (size_t)(step * count[0]) * row, from, (size_t)count[step] * row);
    from += (size_t)count[step] * row;
    for (int64_t i = 0; i < count[step]; i++) length[i] = step + 1;
  }
  if (kiln_arg_bool(args, 2)) padded = KILN_STEP(r, transpose, T(padded), I(0), I(1));
  kiln__composite_give(r, &outs[1], lengths);
  return padded;
}
