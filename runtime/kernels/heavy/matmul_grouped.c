/* matmul_grouped.c: _grouped_mm: products of slices of two matrices, as mixtures of experts have
 * them. `offs` holds the end of each slice along the dimension that is cut. */
#include "runtime/kernels/composite.h"

#include <string.h>

#include "runtime/kernels/shape/view.h"

typedef struct grouped {
  kiln_tensor *a, *b, *out;
  int64_t groups, m, k, n;
  const int32_t *ends; /* NULL: both are batches */
} grouped;

static bool check_grouped(kiln__composite *r, const grouped *g, const kiln_ivalue *args) {
  const kiln_tensor *offs = kiln_arg_tensor_opt(args, 2);
  const int ra = kiln_tensor_rank(g->a), rb = kiln_tensor_rank(g->b);
  const kiln_dtype dtype = kiln_tensor_dtype(g->a);
  if ((ra != 2 && ra != 3) || (rb != 2 && rb != 3)) {
    FAIL(r, "mat_a and mat_b have to be 2 or 3 dimensional");
  } else if (kiln__composite_size(g->a, -1) != kiln__composite_size(g->b, -2)) {
    FAIL(r, "contraction dimension of mat_a and mat_b must match");
  } else if (dtype != kiln_tensor_dtype(g->b)) {
    FAIL(r, "Expected mat_a and mat_b to have the same dtype");
  } else if (!kiln_dtype_is_float(dtype)) {
    (void)kiln__composite_ok(r, kiln__not_implemented(r->call, dtype));
  } else if (kiln__arg_dtype_or(args, 4, dtype) != dtype) {
    FAIL(r, "Grouped gemm output dtype must match `mat_a` dtype");
  } else if (!kiln_arg_is_none(args, 3)) {
    FAIL(r, "Bias not supported yet");
  } else if ((offs != NULL) != (ra == 2 || rb == 2)) {
    FAIL(r, "Have to provide offsets if there is a 2d matrix, and only then");
  } else if (offs && (kiln_tensor_rank(offs) != 1 || kiln_tensor_dtype(offs) != KILN_DTYPE_I32)) {
    FAIL(r, "Offsets have to be a 1D tensor of type int32");
  } else if (offs && (ra == 3 || rb == 3) &&
             kiln_tensor_sizes(ra == 3 ? g->a : g->b)[0] != kiln_tensor_sizes(offs)[0]) {
    FAIL(r, "matrix batch sizes have to match");
  } else if (ra == 3 && rb == 3 && kiln_tensor_sizes(g->a)[0] != kiln_tensor_sizes(g->b)[0]) {
    FAIL(r, "batched dimension has to match");
  }
  return !r->status;
}
/* The part of a tensor that group i multiplies, or writes: a matrix. A 3d one is a batch, a 2d one
 * is cut along `dim`; -1: it is whole. */
static kiln_status *slice_of(kiln_call *call, kiln_tensor *t, int dim, int64_t i, int64_t from,
                             int64_t to, kiln_tensor **out) {
  if (kiln_tensor_rank(t) == 3) return kiln__select(call, t, 0, i, out);
  return kiln__narrow(call, t, dim, from, to - from, out);
}
static kiln_status *multiply(kiln_call *call, const grouped *g, int64_t i, int64_t from,
                             int64_t to) {
  const bool a_cut = kiln_tensor_rank(g->a) == 2, b_cut = kiln_tensor_rank(g->b) == 2;
  const int inner = a_cut && b_cut; /* the contracted dimension is cut */
  kiln_tensor *part[4] = {NULL};
  kiln_ivalue product = kiln_none();
  kiln_status *status = slice_of(call, g->a, inner ? 1 : 0, i, from, to, &part[0]);
  if (!status) status = slice_of(call, g->b, inner ? 0 : 1, i, from, to, &part[1]);
  if (!status) status = slice_of(call, g->out, a_cut ? 0 : 1, i, from, to, &part[2]);
  if (!status) {
    const kiln_ivalue args[] = {kiln_of_tensor(part[0]), kiln_of_tensor(part[1])};
    status = kiln_kernel_step(call, KILN_BODY_OF(mm), args, 2, &product);
  }
  if (!status) status = kiln_tensor_copy(part[2], product.u.tensor);
  kiln_ivalue_release_to(&call->cache, product);
  for (int p = 0; p < 3; p++) kiln_tensor_release_to(&call->cache, part[p]);
  return status;
}
/* self, mat2, offs, bias, out_dtype */
KILN_COMPOSITE(_grouped_mm) {
  grouped g = {.a = kiln_arg_tensor(args, 0), .b = kiln_arg_tensor(args, 1)};
  kiln_tensor *ends;
  if (!check_grouped(r, &g, args)) return NULL;
  const bool a_cut = kiln_tensor_rank(g.a) == 2, b_cut = kiln_tensor_rank(g.b) == 2;
  g.m = kiln__composite_size(g.a, -2);
  g.n = kiln__composite_size(g.b, -1);
  if (!a_cut && !b_cut) return KILN_STEP(r, bmm, T(g.a), T(g.b));
  g.ends = kiln__composite_read(r, kiln_arg_tensor(args, 2), KILN_DTYPE_I32, &ends);
  g.groups = kiln__composite_numel(ends);
  const bool inner = a_cut && b_cut;
  const int64_t sizes[] = {g.groups, g.m, g.n};
  void *data = kiln__composite_new(r, kiln_tensor_dtype(g.a), inner ? 3 : 2,
                                   inner ? sizes : sizes + 1, &g.out);
  if (r->status) return NULL;
  /* What no slice covers is 0. */
  if (g.out->numel > 0) kiln__zero(data, (size_t)g.out->numel * kiln_tensor_item_size(g.out));
  const int64_t limit = inner ? kiln__composite_size(g.a, 1) : a_cut ? g.m : g.n;
  int64_t from = 0;
  for (int64_t i = 0; i < g.groups && !r->status; i++) {
    const int64_t to = g.ends[i];
    if (to < from || to > limit) {
      return FAIL(r, "offsets must rise and end within the dimension of size %lld",
                  (long long)limit);
    }
    if (to > from) (void)kiln__composite_ok(r, multiply(r->call, &g, i, from, to));
    (void)kiln__composite_ok(r, kiln_call_check(r->call, 1));
    from = to;
  }
  return g.out;
}
