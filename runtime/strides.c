/* strides.c: where the elements of results lie (strides.h). */
#include "runtime/strides.h"

#include <string.h>

/* -- Questions -- */

bool kiln_strides_are_contiguous(const kiln_strided *t) {
  int64_t plain[KILN_MAX_RANK];
  bool rows = true;
  kiln_strides_contiguous(t->rank, t->sizes, plain);
  for (int i = 0; i < t->rank; i++) {
    if (t->sizes[i] == 0) return true;
    rows &= t->sizes[i] == 1 || t->strides[i] == plain[i];
  }
  return rows;
}

bool kiln_strides_are_dense(const kiln_strided *t) {
  int order[KILN_MAX_RANK];
  int64_t strides[1][KILN_MAX_RANK], expect = 1;
  if (kiln_strides_are_contiguous(t)) return true;
  memcpy(strides[0], t->strides, sizeof(int64_t) * (size_t)t->rank);
  kiln_strides_order(t->rank, t->sizes, 1, (const int64_t(*)[KILN_MAX_RANK])strides, order);
  for (int i = 0; i < t->rank; i++) {
    const int64_t size = t->sizes[order[i]];
    if (size < 2) continue;
    if (strides[0][order[i]] != expect) return false;
    expect *= size;
  }
  return true;
}

static bool same_dims(const kiln_strided *a, const kiln_strided *b, bool strides) {
  if (a->rank != b->rank) return false;
  for (int i = 0; i < a->rank; i++) {
    if (a->sizes[i] != b->sizes[i] || (strides && a->strides[i] != b->strides[i])) return false;
  }
  return true;
}

/* -- Memory order -- */

void kiln_strides_spread(int rank, const int64_t *sizes, const kiln_strided *t,
                         int64_t *out_strides) {
  const int pad = rank - t->rank;
  for (int i = 0; i < rank; i++) {
    const bool repeated = i < pad || (t->sizes[i - pad] == 1 && sizes[i] != 1);
    out_strides[i] = repeated ? 0 : t->strides[i - pad];
  }
}

/* 1: dimension a lies outside of b, so they change places; -1: inside; 0: no operand says. */
static int compare_dims(int a, int b, const int64_t *sizes, int count,
                        const int64_t (*strides)[KILN_MAX_RANK]) {
  for (int k = 0; k < count; k++) {
    int64_t x = strides[k][a], y = strides[k][b];
    if (x == 0 || y == 0) continue;
    if (x < y) return -1;
    if (x > y) return 1;
    if (sizes[a] > sizes[b]) return 1;
  }
  return 0;
}

/* An insertion sort, as the order is partial. */
void kiln_strides_order(int rank, const int64_t *sizes, int count,
                        const int64_t (*strides)[KILN_MAX_RANK], int *out_order) {
  for (int i = 0; i < rank; i++) out_order[i] = rank - 1 - i;
  for (int i = 1; i < rank; i++) {
    int at = i;
    for (int j = i - 1; j >= 0; j--) {
      int order = compare_dims(out_order[j], out_order[at], sizes, count, strides);
      if (order > 0) {
        int swap = out_order[j];
        out_order[j] = out_order[at];
        out_order[at] = swap;
        at = j;
      } else if (order < 0) {
        break;
      }
    }
  }
}

/* 0 from an empty dimension on, as in PyTorch. Nobody has made a tensor of these sizes yet: two
 * operands with strides of 0 can be broadcast to more elements than there are numbers, and a size
 * that a program gives can be any number. */
static int64_t step_over(int64_t step, int64_t size) {
  return __builtin_mul_overflow(step, size, &step) || step > KILN_STRIDE_MAX ? KILN_STRIDE_MAX
                                                                             : step;
}

void kiln_strides_channels_last(int rank, const int64_t *sizes, int64_t *out_strides) {
  int64_t step = step_over(1, sizes[1]);
  out_strides[1] = 1;
  for (int i = rank - 1; i >= 0; i = i == 2 ? 0 : i - 1) {
    out_strides[i] = step;
    step = step_over(step, sizes[i]);
  }
}

/* A signal's (N, C, L) are those of (N, C, 1, L). */
static kiln_strided as_image(const kiln_strided *t, int64_t *sizes, int64_t *strides) {
  for (int i = 0; i < 4; i++) {
    const int from = i > 2 ? i - 1 : i;
    sizes[i] = i == 2 ? 1 : t->sizes[from];
    strides[i] = i == 2 ? step_over(t->strides[2], t->sizes[2]) : t->strides[from];
  }
  return (kiln_strided){4, sizes, strides};
}

bool kiln_strides_suggest_channels_last(const kiln_strided *t) {
  int64_t sizes[4], strides[4], least = 0;
  if (t->rank == 3) {
    const kiln_strided image = as_image(t, sizes, strides);
    return kiln_strides_suggest_channels_last(&image);
  }
  if (!kiln_has_channels_last(t->rank) || t->strides[1] == 0) return false;
  for (int k = 0, d = 1; k < t->rank; k++, d = d == 1 ? t->rank - 1 : d == 2 ? 0 : d - 1) {
    if (t->sizes[d] == 0 || t->strides[d] < least) return false;
    if (d == 0 && least == t->strides[1]) return false; /* of one element but for the batch */
    least = step_over(t->strides[d], t->sizes[d]);
  }
  return true;
}

void kiln_strides_ordered(int rank, const int64_t *sizes, int count,
                          const int64_t (*strides)[KILN_MAX_RANK], int64_t *out_strides) {
  int order[KILN_MAX_RANK];
  kiln_strides_order(rank, sizes, count, strides, order);
  bool plain = true;
  for (int i = 0; i < rank; i++) plain = plain && order[i] == rank - 1 - i;
  if (plain) {
    kiln_strides_contiguous(rank, sizes, out_strides);
    return;
  }
  int64_t step = 1;
  for (int i = 0; i < rank; i++) {
    out_strides[order[i]] = step;
    step = step_over(step, sizes[order[i]]);
  }
}

void kiln_strides_pointwise(int rank, const int64_t *sizes, const kiln_strided *operands, int count,
                            int64_t *out_strides) {
  int64_t strides[KILN_STRIDES_MAX_OPERANDS][KILN_MAX_RANK];
  bool one_shape = true, alike = true;
  KILN_ASSERT(count <= KILN_STRIDES_MAX_OPERANDS);
  for (int i = 1; i < count && one_shape; i++) {
    one_shape = same_dims(&operands[0], &operands[i], false);
    alike = alike && same_dims(&operands[0], &operands[i], true);
  }
  bool contiguous = one_shape;
  for (int i = 0; i < count && contiguous; i++) {
    contiguous = kiln_strides_are_contiguous(&operands[i]);
  }
  if (contiguous) {
    kiln_strides_contiguous(rank, sizes, out_strides);
  } else if (one_shape && alike && kiln_strides_are_dense(&operands[0])) {
    for (int i = 0; i < rank; i++) out_strides[i] = operands[0].strides[i];
  } else {
    for (int i = 0; i < count; i++) kiln_strides_spread(rank, sizes, &operands[i], strides[i]);
    kiln_strides_ordered(rank, sizes, count, (const int64_t(*)[KILN_MAX_RANK])strides, out_strides);
  }
}

void kiln_strides_like(const kiln_strided *t, int64_t *out_strides) {
  int64_t own[1][KILN_MAX_RANK];
  const bool dense = kiln_strides_are_dense(t);
  for (int i = 0; i < t->rank; i++) {
    own[0][i] = t->strides[i];
    if (dense) out_strides[i] = t->strides[i];
  }
  if (!dense)
    kiln_strides_ordered(t->rank, t->sizes, 1, (const int64_t(*)[KILN_MAX_RANK])own, out_strides);
}

void kiln_strides_columns(int rank, const int64_t *sizes, int64_t *out_strides) {
  kiln_strides_contiguous(rank, sizes, out_strides);
  if (rank < 2) return;
  out_strides[rank - 1] = sizes[rank - 2] > 1 ? sizes[rank - 2] : 1;
  out_strides[rank - 2] = 1;
}

/* -- Views -- */

/* Walks both shapes from the back; each run of old dimensions that is contiguous in memory must be
 * cut up exactly by new dimensions. */
bool kiln_strides_view(const kiln_strided *t, int rank, const int64_t *sizes,
                       int64_t *out_strides) {
  const kiln_strided to = {rank, sizes, NULL};
  bool empty = false;
  int d = rank - 1;
  for (int i = 0; i < t->rank; i++) empty |= t->sizes[i] == 0;
  if (empty && same_dims(t, &to, false)) {
    memcpy(out_strides, t->strides, sizeof(int64_t) * (size_t)rank);
    return true;
  }
  if (empty || t->rank == 0) {
    kiln_strides_contiguous(rank, sizes, out_strides);
    return true;
  }
  int64_t base = t->strides[t->rank - 1], run = 1, used = 1;
  for (int i = t->rank - 1; i >= 0; i--) {
    run *= t->sizes[i];
    if (i > 0 && (t->sizes[i - 1] == 1 || t->strides[i - 1] == run * base)) continue;
    for (; d >= 0 && (used < run || sizes[d] == 1); d--) {
      out_strides[d] = used * base;
      used *= sizes[d];
    }
    if (used != run) return false;
    if (i > 0) base = t->strides[i - 1], run = used = 1;
  }
  return d == -1;
}
