/* affine_grid.c: grids of affine maps, for grid_sampler. */
#include <string.h>

#include "runtime/kernels/composite.h"

/* Place i of n between -1 and 1. */
static double grid_place(int64_t i, int64_t n, bool corners) {
  if (n <= 1) return 0;
  const double x = -1 + 2 * (double)i / (double)(n - 1);
  return corners ? x : x * (double)(n - 1) / (double)n;
}
/* theta [N, k, k + 1], size [N, C, ..k dimensions], align_corners -> [N, .., k] */
KILN_COMPOSITE(affine_grid_generator) {
  kiln_tensor *t = SELF, *in, *out;
  const bool corners = kiln_arg_bool(args, 2);
  int64_t size[KILN_MAX_RANK];
  int count;
  if (!kiln__composite_ok(r, kiln__arg_int_list(args, 1, size, &count))) return NULL;
  if (count != 4 && count != 5) {
    return FAIL(r, "AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.");
  }
  const int k = count - 2;
  if (kiln_tensor_rank(t) != 3 || kiln_tensor_sizes(t)[0] != size[0] ||
      kiln_tensor_sizes(t)[1] != k || kiln_tensor_sizes(t)[2] != k + 1) {
    return FAIL(
        r, "Expected a batch of %dx%d affine matrices of shape Nx%dx%d for size of %d dimensions",
        k, k + 1, k, k + 1, count);
  }
  int64_t sizes[KILN_MAX_RANK], at[3 + 1] = {0};
  sizes[0] = size[0];
  memcpy(sizes + 1, size + 2, sizeof *sizes * (size_t)k);
  sizes[k + 1] = k;
  const double *theta = kiln__composite_read(r, t, KILN_DTYPE_F64, &in);
  double *to = kiln__composite_new(r, KILN_DTYPE_F64, k + 2, sizes, &out);
  if (r->status) return NULL;
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; i < out->numel && !kiln_budget_spent(&left, 8 * k); i += k) {
    const double *m = theta + at[0] * k * (k + 1);
    for (int row = 0; row < k; row++) { /* coordinates run from the last dimension: x, y, z */
      double sum = m[row * (k + 1) + k];
      for (int c = 0; c < k; c++) {
        sum += m[row * (k + 1) + c] * grid_place(at[k - c], sizes[k - c], corners);
      }
      to[i + row] = sum;
    }
    for (int d = k; d >= 0 && ++at[d] == sizes[d]; d--) at[d] = 0;
  }
  return kiln__composite_to(r, out, kiln_tensor_dtype(t));
}
