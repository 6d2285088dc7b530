/* program_input.c: what random programs are called with. */
#include <stdlib.h>
#include <string.h>

#include "test/differential/program.h"

const char *const program_inputs[INPUTS] = {"ab", "b", "a1", "cab", "aa"};

static int64_t draw_size(draw *d) {
  static const int64_t sizes[] = {1, 1, 2, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 33, 64, 0};
  return sizes[draw_below(d, draw_below(d, 6) ? 13 : (int)(sizeof sizes / sizeof *sizes))];
}

static void fill(draw *d, kiln_dtype dtype, int64_t count, void *data) {
  for (int64_t i = 0; i < count; i++) {
    const double f = (draw_below(d, 4001) - 2000) * 1e-3;
    if (dtype == KILN_DTYPE_F32) ((float *)data)[i] = (float)f;
    if (dtype == KILN_DTYPE_F64) ((double *)data)[i] = f;
    if (dtype == KILN_DTYPE_I64) ((int64_t *)data)[i] = (int64_t)(10 * f);
  }
}

/* Input `i` of the call whose sizes are a, b, c. */
kiln_value *program_input(kiln_context *context, draw *d, int i, const int64_t *abc) {
  static const kiln_dtype odd[] = {KILN_DTYPE_F64, KILN_DTYPE_I64};
  const kiln_dtype dtype = draw_below(d, 30) ? KILN_DTYPE_F32 : odd[draw_below(d, 2)];
  const char *letters = program_inputs[i];
  int64_t sizes[4], strides[4], numel = 1;
  const int rank = (int)strlen(letters), kind = draw_below(d, 12);
  for (int k = 0; k < rank; k++) sizes[k] = letters[k] == '1' ? 1 : abc[letters[k] - 'a'];
  if (draw_below(d, 60) == 0) sizes[draw_below(d, rank)] = 1;
  for (int n = 0; n < rank; n++) { /* row-major, or the other way round */
    const int k = kind == 0 ? n : rank - 1 - n;
    strides[k] = numel * (kind == 1 ? 2 : 1);
    numel *= sizes[k];
  }
  kiln_value *out = NULL;
  const size_t bytes = (size_t)(numel * 2 + 1) * kiln_dtype_size(dtype);
  void *data = aligned_alloc(64, (bytes + 63) / 64 * 64);
  if (!data) exit(2);
  fill(d, dtype, numel * 2, data);
  draw_must(
      kiln_value_tensor_over(context, dtype, rank, sizes, strides, data, bytes, free, data, &out));
  return out;
}

void program_draw_call(uint64_t seed, int call, draw *d, int64_t *abc) {
  *d = draw_from(seed, 0xca11 + (uint64_t)(call < 2 ? 0 : call));
  for (int i = 0; i < 3; i++) abc[i] = draw_size(d);
}
