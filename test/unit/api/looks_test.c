/* looks_test.c: every kernel that works long looks at the call's budget.
 *
 * A row is one operator. On large operands it must look some times more than on small ones, so it
 * is cancelled there at a look that the small ones do not come to: no clock is asked. Operands are
 * of a dtype that kernels compute in (F64, int64, bool), for the conversion of others looks, too.
 */
#include "base/sanitize.h"
#include "test/unit/api/fixture.h"
#include "test/unit/frontend/archive_support.h"

/* Sides of the square operands x, i (from 0 to the side) and b; MORE looks must be made. */
enum { SMALL = 16, LARGE = 1024, MORE = 2, MOST_LOOKS = 4000, MOST_BYTES = 1 << 20 };

static const char *const expressions[] = {
    "torch.nonzero(x)",
    "torch.nonzero(b)",
    "torch.masked_select(x, b)",
    "torch.index_select(x, 1, torch.select(i, 0, 0))",
    "torch.gather(x, 0, i)",
    "torch.gather(x, 1, i)",
    "torch.scatter(x, 0, i, x)",
    "torch.scatter_add(x, 1, i, x)",
    "torch.scatter(x, 1, i, 2.)",
    "torch.index(x, [b])",
    "torch.index(x, [i, i])",
    "torch.index_put(x, [i, i], x)",
    "torch.index_put(x, [i, i], x, True)",
    "torch.index_put(x, [b], torch.zeros([], dtype=7))",
    "torch.index_add(x, 0, torch.select(i, 0, 0), x)",
    "torch.index_copy(x, 0, torch.select(i, 0, 0), x)",
    "torch.index_fill(x, 1, torch.select(i, 0, 0), 1.)",
    "torch.take(x, i)",
    "torch.put(x, i, x)",
    "torch.masked_scatter(x, b, x)",
    "torch.masked_fill(x, b, 1.)",
    "torch.cumsum(x, 0)",
    "torch.cumsum(x, 1)",
    "torch.cumprod(x, 0)",
    "torch.cummax(x, 0)",
    "torch.cummin(x, 1)",
    "torch.logcumsumexp(x, 1)",
    "torch.sort(x, 0)",
    "torch.argsort(x, 0)",
    "torch.topk(x, 5)",
    "torch.topk(x, 5, 0)",
    "torch.kthvalue(x, 5)",
    "torch.median(x)",
    "torch.median(x, 0)",
    "torch.mode(x)",
    "torch.mode(x, 0)",
    "torch.unique_consecutive(i)",
    "torch._unique2(i)",
    "torch.unique_dim(i, 0)",
    "torch.bincount(torch.reshape(i, [-1]))",
    "torch.histc(x, 100)",
    "torch.searchsorted(torch.select(x, 0, 0), x)",
    "torch.bucketize(x, torch.select(x, 0, 0))",
    "torch.roll(x, [5, 3], [0, 1])",
    "torch.flip(x, [0, 1])",
    "torch.rot90(x)",
    "torch.tril(x)",
    "torch.triu(x)",
    "torch.repeat_interleave(x, 3, 0)",
    "torch.repeat(x, [4, 4])",
    "torch.cat([x, x], 1)",
    "torch.stack([x, x], 1)",
    "torch.clone(torch.t(x), memory_format=0)",
    "torch.sum(x, [0])",
    "torch.sum(x, [1])",
    "torch.sum(torch.t(x), [1])",
    "torch.prod(x, 0)",
    "torch.max(x, 0)",
    "torch.min(x, 1)",
    "torch.argmax(x)",
    "torch.argmax(x, 0)",
    "torch.argmin(x, 1)",
    "torch.all(b, 0)",
    "torch.var(x, [0])",
    "torch.std(x, [1])",
    "torch.norm(x, 3)",
    "torch.linalg_vector_norm(x, 3, [0])",
    "torch.logsumexp(x, [0])",
    "torch.softmax(x, 0)",
    "torch.softmax(x, 1)",
    "torch.log_softmax(x, 0)",
    "torch.amax(x, [0])",
    "torch.amin(x, [1])",
    "torch.nansum(x)",
    "torch.nanmedian(x)",
    "torch.count_nonzero(x)",
    "torch.count_nonzero(x, 0)",
    "torch.erfinv(x)",
    "torch.lgamma(x)",
    "torch.digamma(x)",
    "torch.polygamma(3, x)",
    "torch.igamma(x, x)",
    "torch.special_zeta(x, x)",
    "torch.pow(x, 1.7)",
    "torch.bernoulli(x)",
    "torch.rand_like(x)",
    "torch.randn_like(x)",
    "torch.normal(x, 1.)",
    "torch.poisson(x)",
    "torch._standard_gamma(x)",
    "torch.binomial(x, x)",
    "torch.multinomial(x, 3)",
    "torch.multinomial(x, 3, True)",
    "torch.randperm(torch.mul(n, n))",
    "torch.randint(5, [torch.mul(n, n)])",
    "torch.exponential_(torch.empty_like(x))",
    "torch.geometric_(torch.empty_like(x), 0.3)",
    "torch.cauchy_(torch.empty_like(x))",
    "torch.log_normal_(torch.empty_like(x))",
    "torch.dropout(x, 0.3, True)",
    "torch.rrelu(x, 0.1, 0.3, True)",
    "torch.layer_norm(x, [n])",
    "torch.batch_norm(x, None, None, None, None, True, 0.1, 0.00001, False)",
    "torch.max_pool2d(torch.reshape(x, [1, 4, n, -1]), [3, 3], [1, 1])",
    "torch.avg_pool2d(torch.reshape(x, [1, 4, n, -1]), [3, 3], [1, 1])",
    "torch.max_pool1d(torch.reshape(x, [4, n, -1]), [3], [1])",
    "torch.im2col(torch.reshape(x, [1, 4, n, -1]), [3, 3], [1, 1], [0, 0], [1, 1])",
    "torch.pixel_shuffle(torch.reshape(x, [1, 4, n, -1]), 2)",
    "torch.pixel_unshuffle(torch.reshape(x, [1, 4, n, -1]), 4)",
    "torch.channel_shuffle(torch.reshape(x, [1, 4, n, -1]), 2)",
    "torch.constant_pad_nd(x, [5, 5, 5, 5], 1.)",
    "torch.cosine_similarity(x, x, 1)",
    "torch.mm(x, x)",
    "torch.matmul(x, torch.t(x))",
    "torch.linear(x, x)",
    "torch.bmm(torch.reshape(x, [4, n, -1]), torch.reshape(x, [4, -1, n]))",
    "torch.addmm(x, x, x)",
    "torch.einsum(\"ij,jk->ik\", [x, x])",
    "torch.tensordot(x, x, [0], [0])",
    "torch.inverse(x)",
    "torch.det(x)",
    "torch.linalg_slogdet(x)",
    "torch.linalg_qr(x)",
    "torch.qr(x)",
    "torch.linalg_cholesky_ex(x)",
    "torch.linalg_solve(x, x)",
    "torch.linalg_lu(x)",
    "torch.linalg_lu_factor(x)",
    "torch.triangular_solve(x, x)",
    "torch.linalg_solve_triangular(x, x, upper=True)",
    "torch.cholesky_solve(x, x)",
    "torch.cholesky_inverse(x)",
    "torch.svd(x)",
    "torch.linalg_svd(x)",
    "torch.linalg_svdvals(x)",
    "torch.linalg_eigh(x)",
    "torch.linalg_eigvalsh(x)",
    "torch.linalg_eigvals(x)",
    "torch.linalg_eig(x)",
    "torch.linalg_lstsq(x, x)",
    "torch.linalg_pinv(x)",
    "torch.linalg_matrix_rank(x)",
    "torch.linalg_cond(x)",
    "torch.matrix_exp(x)",
    "torch.matrix_power(x, 7)",
    "torch.nuclear_norm(x)",
    "torch.geqrf(x)",
    "torch.orgqr(x, torch.select(x, 0, 0))",
    "torch.ormqr(x, torch.select(x, 0, 0), x)",
    "torch.linalg_householder_product(x, torch.select(x, 0, 0))",
    "torch.linalg_ldl_factor(x)",
    "torch.fft_fft(x)",
    "torch.fft_fft(x, None, 0)",
    "torch.fft_fft(torch.reshape(x, [-1]))",
    "torch.fft_rfft(x)",
    "torch.fft_irfft(x)",
    "torch.fft_fft2(x)",
    "torch.cross_entropy_loss(x, torch.select(i, 0, 0))",
    "torch.multi_margin_loss(x, torch.select(i, 0, 0))",
    "torch.kl_div(x, x)",
    "torch.smooth_l1_loss(x, x)",
    "torch.cov(x)",
    "torch.corrcoef(x)",
    "torch.cartesian_prod([torch.select(x, 0, 0), torch.select(x, 0, 0)])",
    "torch.renorm(x, 2, 0, 1.)",
    "torch.arange(torch.mul(n, n))",
    "torch.linspace(0., 1., torch.mul(n, n))",
    "torch.logspace(0., 1., torch.mul(n, n))",
    "torch.full([torch.mul(n, n)], 1.)",
    "torch.hann_window(torch.mul(n, n))",
    "torch.kaiser_window(torch.mul(n, n))",
    "torch.isin(i, torch.select(i, 0, 0))",
    "torch.equal(x, x)",
    "torch.allclose(x, x)",
    "torch.diff(x)",
    "torch.gradient(x)",
    "torch.trapz(x)",
    "torch.cumulative_trapezoid(x)",
    "torch.quantize_per_tensor(torch.to(x, 6), 0.1, 0, 13)",
    "torch.quantize_per_channel(torch.to(x, 6), torch.select(x, 0, 0), torch.zeros([n]), 0, 12)",
    "torch._values(torch.to_sparse(x))",
    "torch._to_dense(torch.to_sparse(x))",
    "torch.bitwise_and(i, i)",
    "torch.remainder(i, 7)",
    "torch.gcd(i, i)",
    "torch.lcm(i, i)",
    "torch.angle(x)",
    "torch.polar(x, x)",
    "torch.complex(x, x)",
    "torch.nan_to_num(x)",
    "torch.histogram(x, 100)",
    "torch.block_diag([x, x])",
    "torch.hstack([x, x])",
    "torch.column_stack([x, x])",
    "torch.lerp(x, x, 0.3)",
    "torch.addcmul(x, x, x)",
    "torch.frexp(x)",
    "torch.ldexp(x, x)",
    "torch.where(b, x, x)",
    "torch.where(b)",
    "torch.argwhere(b)",
    "torch._weight_norm(x, x)",
    "torch.celu(x)",
    "torch.pairwise_distance(x, x)",
    "torch.triplet_margin_loss(x, x, x)",
    "torch.sum_to_size(x, [1, n])",
    "torch.index_reduce(x, 0, torch.select(i, 0, 0), x, \"prod\")",
    "torch.scatter_reduce(x, 0, i, x, \"amax\")",
    "torch.scatter_reduce(x, 0, i, x, \"mean\")",
    "torch.diagonal_scatter(x, torch.select(x, 0, 0))",
    "torch.slice_scatter(x, x)",
    "torch.sort(x)",
    "torch.sort(i)",
    "torch.sort(x, stable=True, dim=-1, descending=True)",
    "torch.sort(torch.reshape(x, [-1]))",
    "torch.sort(torch.reshape(i, [-1]))",
    "torch.topk(torch.reshape(x, [-1]), 100)",
    "torch.topk(torch.reshape(x, [-1]), n)",
    "torch.median(torch.reshape(x, [-1]), 0)",
    "torch.mode(torch.reshape(x, [-1]))",
    "torch.kthvalue(torch.reshape(x, [-1]), 100)",
    "torch.mode(torch.reshape(x, [-1, 4]))",
    "torch.sort(torch.reshape(x, [-1, 4]))",
    "torch.median(torch.reshape(x, [-1, 4]), 1)",
    "torch.cumsum(torch.reshape(x, [-1, 2]), 1)",
    "torch.cummax(torch.reshape(x, [-1, 2]), 1)",
    "torch.argmax(torch.reshape(x, [-1, 2]), 1)",
    "torch.nonzero(torch.reshape(x, [-1]))",
    "torch.gather(torch.reshape(x, [-1]), 0, torch.reshape(i, [-1]))",
    "torch.gather(torch.reshape(x, [-1, 1]), 0, torch.reshape(i, [-1, 1]))",
    "torch.take_along_dim(x, i, 0)",
    "torch.index(x, [None, torch.select(i, 0, 0)])",
    "torch.index(torch.reshape(x, [-1]), [torch.reshape(i, [-1])])",
    "torch.index_select(torch.t(x), 0, torch.select(i, 0, 0))",
    "torch.embedding(torch.slice(x, 1, 0, 2), i)",
    "torch.embedding(x, torch.select(i, 0, 0))",
    "torch.embedding_renorm_(torch.clone(x), torch.select(i, 0, 0), 0.0001, 2.)",
    "torch.embedding_bag(x, torch.reshape(torch.slice(i, 0, 0, 8), [-1]), "
    "torch.select(torch.zeros_like(i), 0, 0))",
    "torch.one_hot(torch.reshape(i, [-1]), 1024)",
    "torch.one_hot(torch.select(i, 0, 0), n)",
    "torch.quantile(x, 0.3, 0)",
    "torch.nanquantile(x, 0.3)",
    "torch.bincount(torch.reshape(i, [-1]), torch.reshape(x, [-1]))",
    "torch.to(x, 6)",
    "torch.to(b, 7)",
    "torch.hash_tensor(x, [0])",
    "torch.isclose(torch.complex(x, x), torch.complex(x, x))",
    "torch.tile(x, [2, 2])",
    "torch.repeat_interleave(x, torch.select(i, 0, 0), 0)",
    "torch.repeat_interleave(torch.reshape(i, [-1]))",
    "torch.pad(torch.slice(x, 0, 0), [2, 2], \"constant\")",
    "torch.pad(torch.reshape(x, [1, 4, n, -1]), [1, 1, 1, 1], \"reflect\")",
    "torch.pad(torch.reshape(x, [1, 4, n, -1]), [1, 1, 1, 1], \"replicate\")",
    "torch.pad(torch.reshape(x, [1, 4, n, -1]), [1, 1, 1, 1], \"circular\")",
    "torch.pdist(torch.slice(x, 0, 0, 64))",
    "torch.cdist(torch.slice(x, 0, 0, 256), torch.slice(x, 0, 0, 256), 3.)",
    "torch.cdist(x, x)",
    "torch.kron(torch.slice(x, 0, 0, 4), torch.slice(x, 0, 0, 4))",
    "torch.fft_fft(torch.slice(torch.reshape(x, [-1]), 0, 3))",
    "torch.fft_fftfreq(torch.mul(n, n), 1.)",
    "torch.stft(torch.reshape(x, [1, -1]), 16, 4, 16, torch.hann_window(16, dtype=7), False, True, "
    "True)",
    "torch.istft(torch.stft(torch.reshape(x, [1, -1]), 16, 4, 16, torch.hann_window(16, dtype=7), "
    "False, True, True), 16, 4, 16, torch.hann_window(16, dtype=7))",
    "torch.conv1d(torch.reshape(x, [1, 4, -1]), torch.rand([4, 4, 3], dtype=7))",
    "torch.conv2d(torch.reshape(x, [1, 4, n, -1]), torch.rand([16, 4, 3, 3], dtype=7))",
    "torch.conv2d(torch.reshape(x, [1, 4, n, -1]), torch.rand([4, 1, 3, 3], dtype=7), None, [1, "
    "1], [0, 0], [1, 1], 4)",
    "torch.conv3d(torch.reshape(x, [1, 2, 2, n, -1]), torch.rand([4, 2, 2, 2, 2], dtype=7))",
    "torch.conv_transpose2d(torch.reshape(x, [1, 4, n, -1]), torch.rand([4, 4, 3, 3], dtype=7))",
    "torch.scaled_dot_product_attention(torch.reshape(x, [1, 1, -1, 8]), torch.reshape(x, [1, 1, "
    "-1, 8]), torch.reshape(x, [1, 1, -1, 8]))",
    "torch.bilinear(x, x, torch.reshape(x, [1, n, n]), None)",
    "torch.ctc_loss(torch.reshape(x, [-1, 1, 16]), torch.clamp(torch.slice(i, 0, 0, 1), 1, 3), "
    "torch.tensor([torch.floordiv(torch.mul(n, n), 16)]), torch.tensor([torch.floordiv(n, 2)]))",
    "torch.multilabel_margin_loss(x, torch.sub(torch.clamp(i, 0, 1), 1))",
    "torch.cosine_embedding_loss(x, x, torch.sign(torch.select(x, 0, 0)))",
    "torch.binary_cross_entropy(x, x)",
    "torch.binary_cross_entropy_with_logits(x, x)",
    "torch.huber_loss(x, x)",
    "torch.mse_loss(x, x)",
    "torch.cross_entropy_loss(x, x)",
    "torch.combinations(torch.slice(torch.select(x, 0, 0), 0, 0, 160), 3)",
    "torch.segment_reduce(x, \"sum\", lengths=torch.full([n], 1, dtype=4))",
    "torch.segment_reduce(torch.reshape(x, [-1]), \"max\", lengths=torch.full([torch.mul(n, n)], "
    "1, dtype=4))",
    "torch.tril_indices(n, n)",
    "torch.triu_indices(n, n)",
    "torch.eye(n)",
    "torch.str(x)",
    "torch.lstm_cell(x, [x, x], torch.rand([torch.mul(4, n), n], dtype=7), "
    "torch.rand([torch.mul(4, n), n], dtype=7))",
    "torch.gru_cell(x, x, torch.rand([torch.mul(3, n), n], dtype=7), torch.rand([torch.mul(3, n), "
    "n], dtype=7))",
    "torch.lstm(torch.reshape(x, [-1, 1, 16]), [torch.zeros([1, 1, 4], dtype=7), torch.zeros([1, "
    "1, 4], dtype=7)], [torch.rand([16, 16], dtype=7), torch.rand([16, 4], dtype=7)], False, 1, "
    "0., False, False, False)",
    "torch.gru(torch.reshape(x, [-1, 1, 16]), torch.zeros([1, 1, 4], dtype=7), [torch.rand([12, "
    "16], dtype=7), torch.rand([12, 4], dtype=7)], False, 1, 0., False, False, False)",
    "torch._pack_padded_sequence(torch.reshape(x, [-1, 4, 4]), torch.full([4], "
    "torch.floordiv(torch.mul(n, n), 16), dtype=4), False)",
    "ops.torchvision.nms(torch.reshape(x, [-1, 4]), torch.select(torch.reshape(x, [-1, 4]), 1, 0), "
    "0.5)",
    "ops.torchvision.roi_align(torch.reshape(x, [1, 4, n, -1]), torch.zeros([n, 5], dtype=7), 1., "
    "7, 7, 2, False)",
    "ops.torchvision.roi_pool(torch.reshape(x, [1, 4, n, -1]), torch.zeros([n, 5], dtype=7), 1., "
    "7, 7)",
    "torch.nonzero_static(b, size=100)",
    "torch.grid_sampler(torch.reshape(x, [1, 4, n, -1]), torch.reshape(x, [1, n, -1, 2]), 0, 0, "
    "False)",
    "torch.grid_sampler(torch.reshape(x, [1, 4, n, -1]), torch.reshape(x, [1, n, -1, 2]), 2, 1, "
    "False)",
    "torch.upsample_nearest2d(torch.reshape(x, [1, 4, n, -1]), [n, n])",
    "torch.upsample_bilinear2d(torch.reshape(x, [1, 4, n, -1]), [n, n], False)",
    "torch.upsample_bicubic2d(torch.reshape(x, [1, 4, n, -1]), [n, n], False)",
    "torch._upsample_bilinear2d_aa(torch.reshape(x, [1, 4, n, -1]), [n, n], False)",
    "torch.max_pool3d(torch.reshape(x, [1, 1, 2, n, -1]), [2, 2, 2], [1, 1, 1])",
    "torch.avg_pool3d(torch.reshape(x, [1, 1, 2, n, -1]), [2, 2, 2], [1, 1, 1])",
    "torch.avg_pool1d(torch.reshape(x, [4, n, -1]), [3], [1])",
    "torch.max_unpool2d(torch.reshape(x, [1, 4, n, -1]), torch.zeros_like(torch.reshape(i, [1, 4, "
    "n, -1])), [n, n])",
    "torch.adaptive_avg_pool2d(torch.reshape(x, [1, 4, n, -1]), [n, n])",
    "torch.adaptive_max_pool2d(torch.reshape(x, [1, 4, n, -1]), [n, n])",
    "torch.fractional_max_pool2d(torch.reshape(x, [1, 1, n, n]), [2, 2], [torch.sub(n, 2), "
    "torch.sub(n, 2)], torch.rand([1, 1, 2], dtype=7))",
    "torch.affine_grid_generator(torch.rand([1, 2, 3], dtype=7), [1, 3, n, n], False)",
    "torch.col2im(torch.reshape(x, [1, 4, -1]), [n, n], [2, 2], [1, 1], [0, 0], [2, 2])",
    "torch.group_norm(torch.reshape(x, [n, 16, -1]), 8)",
    "torch.instance_norm(torch.reshape(x, [1, n, -1]), None, None, None, None, True, 0.1, 0.00001, "
    "False)",
    "torch.batch_norm(torch.reshape(x, [-1, 1]), None, None, None, None, True, 0.1, 0.00001, "
    "False)",
    "torch.glu(x)",
    "torch.igammac(x, x)",
    "torch.special_bessel_j0(x)",
    "torch.special_i1e(x)",
    "torch.special_chebyshev_polynomial_t(x, i)",
    "torch.dequantize(torch.quantize_per_tensor(torch.to(x, 6), 0.1, 0, 13))",
    "torch.to_dense(torch.sparse_mask(x, torch.to_sparse(x)))",
    "torch._values(torch.coalesce(torch.sparse_coo_tensor(torch.slice(torch.reshape(i, [2, -1]), "
    "1), torch.select(torch.reshape(x, [2, -1]), 0, 0), [n, n])))",
    "torch.mm(torch.to_sparse(x), x)",
    "torch.where(b, x, 0.)",
    "torch.lu_solve(x, x, torch.to(torch.add(torch.select(i, 0, 0), 1), 3))",
    "torch.equal(torch.expand(torch.zeros([1]), [torch.mul(n, n)]), torch.expand(torch.zeros([1]), "
    "[torch.mul(n, n)]))",
    "torch.argmax(torch.expand(torch.zeros([1]), [torch.mul(n, n)]))",
    "torch.fill_(torch.empty_like(x), 3.)",
    "torch.zeros_like(x)",
    "torch.copy_(torch.empty_like(x), x)",
    "torch.clone(x)",
    "torch.polygamma(1, x)",
    "torch.masked_select(torch.expand(torch.zeros([1]), [n, n]), b)",
    "torch.histogramdd(torch.reshape(x, [-1, 2]), [4, 4])",
};

static kiln_context *context;
static kiln_cancel *cancel;
static kiln_value *small[4], *large[4];

static kiln_value *square(kiln_dtype dtype, int64_t n, size_t item) {
  const int64_t sizes[2] = {n, n};
  char *data = malloc((size_t)(n * n) * item);
  uint64_t seed = 1;
  kiln_value *value = NULL;
  assert_non_null(data);
  for (int64_t k = 0; k < n * n; k++) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    const uint64_t random = seed >> 33;
    if (dtype == KILN_DTYPE_F64) ((double *)(void *)data)[k] = (double)random / 0x1p31;
    if (dtype == KILN_DTYPE_I64) ((int64_t *)(void *)data)[k] = (int64_t)(random % (uint64_t)n);
    if (dtype == KILN_DTYPE_BOOL) data[k] = random & 1;
  }
  assert_ok(kiln_value_tensor(context, dtype, 2, sizes, data, &value));
  free(data);
  return value;
}

static void fill(kiln_value *operands[4], int64_t n) {
  operands[0] = square(KILN_DTYPE_F64, n, sizeof(double));
  operands[1] = square(KILN_DTYPE_I64, n, sizeof(int64_t));
  operands[2] = square(KILN_DTYPE_BOOL, n, 1);
  assert_ok(kiln_value_int(context, n, &operands[3]));
}

static int set_up(void **state) {
  (void)state;
  /* With a plan of memory equal calls would make one. */
  context = context_of(
      (const setting[]){{"jit", "off"}, {"memory_plan", "off"}, {"threads", "1"}, {NULL, NULL}});
  assert_ok(kiln_cancel_create(&cancel));
  fill(small, SMALL);
  fill(large, LARGE);
  return 0;
}
static int tear_down(void **state) {
  (void)state;
  for (int k = 0; k < 4; k++) {
    kiln_value_destroy(small[k]);
    kiln_value_destroy(large[k]);
  }
  kiln_cancel_destroy(cancel);
  kiln_context_release(context);
  return 0;
}

/* A model whose forward gives the expression. */
static kiln_status *load(const char *expression, kiln_instance **out) {
  static archive_builder archive;
  static const char root[] = "\x80\x02"
                             "c__torch__\nM\n)\x81}(X\x08\0\0\0training\x89ub.",
                    none[] = "\x80\x02).";
  char code[1024];
  kiln_model *model = NULL;
  snprintf(code, sizeof code,
           "class M(Module):\n  __parameters__ = []\n  __buffers__ = []\n  training : bool\n"
           "  def forward(self: __torch__.M, x: Tensor, i: Tensor, b: Tensor, n: int) -> Any:\n"
           "    return %s\n",
           expression);
  archive.size = 0;
  archive.count = 0;
  archive_add_bytes(&archive, "t/data.pkl", root, sizeof root - 1);
  archive_add(&archive, "t/code/__torch__.py", code);
  archive_add_bytes(&archive, "t/constants.pkl", none, sizeof none - 1);
  archive_add(&archive, "t/version", "9\n");
  archive_finish(&archive);
  KILN_TRY(kiln_model_load_memory(context, archive.bytes, archive.size, NULL, &model));
  kiln_status *status = kiln_instance_create(model, out);
  kiln_model_release(model);
  return status;
}

static kiln_status *call_under(kiln_instance *instance, kiln_value *const operands[4],
                               uint64_t bytes) {
  const kiln_call_options options = {.limits = {.bytes = bytes, .cancel = cancel}};
  kiln_value *result = NULL;
  kiln_status *status = kiln_instance_call(instance, "forward", operands, 4, &options, &result);
  kiln_value_destroy(result);
  return status;
}
/* The call, cancelled at the n-th look if it comes to it. */
static kiln_status *call(kiln_instance *instance, kiln_value *const operands[4], uint64_t n) {
  kiln_cancel_at_look(cancel, n);
  kiln_status *status = call_under(instance, operands, 0);
  kiln_cancel_at_look(cancel, 0);
  kiln_cancel_reset(cancel);
  return status;
}

/* Cancels the call at each of its looks, which are counted. */
static kiln_status *cancel_everywhere(kiln_instance *instance, uint64_t *out_looks) {
  uint64_t looks = 1;
  kiln_status *status = NULL;
  for (; looks < MOST_LOOKS; looks++) {
    status = call(instance, small, looks);
    if (kiln_status_code(status) != KILN_CANCELLED) break;
    kiln_status_destroy(status);
    status = NULL;
  }
  *out_looks = looks;
  return status;
}

/* NULL, or what is wrong. */
static const char *check_looks(kiln_instance *instance) {
  uint64_t looks = 0;
  kiln_status *status = call(instance, small, 0); /* the plan is made once */
  if (!status) status = cancel_everywhere(instance, &looks);
  if (status) {
    print_error("%s\n", kiln_status_report(status));
    kiln_status_destroy(status);
    return "small operands";
  }
  status = call(instance, large, looks + MORE);
  const kiln_code code = kiln_status_code(status);
  if (status && code != KILN_CANCELLED) print_error("%s\n", kiln_status_report(status));
  kiln_status_destroy(status);
  return !status ? "does not look" : code != KILN_CANCELLED ? "large operands" : NULL;
}

/* With all the bytes that the call may fail for, then cancelled at each look. */
static void fail_everywhere(kiln_instance *instance) {
  uint64_t looks;
  for (uint64_t bytes = 64; bytes < MOST_BYTES; bytes += bytes / 8 + 64) {
    kiln_status_destroy(call_under(instance, small, bytes));
  }
  kiln_status_destroy(cancel_everywhere(instance, &looks));
}
static const char *check_bytes(kiln_instance *instance) {
  fail_everywhere(instance); /* the instance's cache has its blocks */
  const size_t held = kiln_context_bytes(context);
  fail_everywhere(instance);
  fail_everywhere(instance);
  return kiln_context_bytes(context) > held ? "bytes stay behind" : NULL;
}

static void check_all(const char *(*check)(kiln_instance *instance), size_t step) {
  int wrong = 0;
  for (size_t k = 0; k < sizeof expressions / sizeof *expressions; k += step) {
    kiln_instance *instance = NULL;
    kiln_status *status = load(expressions[k], &instance);
    if (status) print_error("%s\n", kiln_status_report(status));
    const char *fault = status ? "does not load" : check(instance);
    kiln_status_destroy(status);
    if (fault) print_error("%s: %s\n", expressions[k], fault);
    wrong += fault != NULL;
    kiln_instance_release(instance);
  }
  assert_int_equal(wrong, 0);
}

static void long_work_looks(void **state) {
  (void)state;
  check_all(check_looks, KILN_SANITIZED ? 4 : 1);
}
static void failures_keep_nothing(void **state) {
  (void)state;
  check_all(check_bytes, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(long_work_looks, set_up, tear_down),
      cmocka_unit_test_setup_teardown(failures_keep_nothing, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
