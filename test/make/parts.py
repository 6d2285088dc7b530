"""Makes test/data/own/parts_* with PyTorch (2.x): operators that `decompose_composites` takes apart, and those that are
other operators by their kernels' names.

Run from the root of the project: python3 test/make/parts.py

Each call of a model has other sizes of the same ranks, so that static kernels and those of symbols serve.
"""
import torch

import neutral

HEAD = """\
import torch
from typing import List


class Model(torch.nn.Module):
"""

CELLS = HEAD + """\
    def __init__(self):
        super().__init__()
        self.lstm = torch.nn.LSTMCell(24, 16)
        self.gru = torch.nn.GRUCell(16, 12)
        self.tanh = torch.nn.RNNCell(12, 8, bias=False)
        self.relu = torch.nn.RNNCell(8, 20, nonlinearity="relu")

    def forward(self, x, y):
        h = torch.zeros(x.shape[1], 16)
        c = torch.zeros(x.shape[1], 16)
        g = y[:, :12]
        out: List[torch.Tensor] = []
        for i in range(x.shape[0]):
            h, c = self.lstm(x[i], (h, c))
            g = self.gru(h, g)
        out.append(h * 2)
        out.append(c)
        t = self.tanh(g, y[:, :8])
        out.append(t * 2)
        out.append(self.relu(t, y) * 2)
        return out
"""

NAMES = HEAD + """\
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.randn(6, 4, 3, 3) * 0.2)
        self.b = torch.nn.Parameter(torch.randn(6))
        self.d = torch.nn.Parameter(torch.randn(8, 1, 3, 3) * 0.2)
        self.v = torch.nn.Parameter(torch.randn(6, 4, 2, 3, 3) * 0.2)
        self.e = torch.nn.Parameter(torch.randn(4, 1, 2, 3, 3) * 0.2)
        self.u = torch.nn.Parameter(torch.randn(4, 6, 3, 3) * 0.2)
        self.r = torch.nn.Parameter(torch.randn(4, 6, 2, 3, 3) * 0.2)
        self.t = torch.nn.Parameter(torch.randn(3, 4, 5) * 0.2)
        self.s = torch.nn.Parameter(torch.randn(4))
        self.m = torch.nn.Parameter(torch.rand(4) + 0.5)

    def forward(self, x, y):
        aten = torch.ops.aten
        out: List[torch.Tensor] = []
        x = x * 2
        out.append(torch.relu(aten.thnn_conv2d(x, self.w, [3, 3], self.b, [2, 2], [1, 1])))
        out.append(torch.relu(aten._slow_conv2d_forward(x, self.w, [3, 3], None, [1, 1], [0, 0])))
        out.append(torch.relu(aten.slow_conv_dilated2d(x, self.w, [3, 3], self.b, [1, 1], [1, 1], [2, 2])))
        out.append(torch.relu(aten.slow_conv_transpose2d(x, self.u, [3, 3], self.b, [2, 2], [1, 1], [1, 1])))
        out.append(torch.relu(aten._conv_depthwise2d(x, self.d[::2], [3, 3], self.s, [1, 1], [1, 1], [1, 1])))
        out.append(torch.relu(aten.conv_depthwise3d(y, self.e, [2, 3, 3], None, [1, 1, 1], [0, 1, 1], [1, 1, 1])))
        out.append(torch.relu(aten.slow_conv3d(y, self.v, [2, 3, 3], self.b, [1, 2, 2], [1, 1, 1])))
        out.append(torch.relu(aten.slow_conv_dilated3d(y, self.v, [2, 3, 3], None, [1, 1, 1], [0, 1, 1], [1, 1, 1])))
        out.append(torch.relu(aten.slow_conv_transpose3d(y, self.r, [2, 3, 3], self.b)))
        out.append(torch.relu(aten.conv_tbc(x[:, :, :, 0].transpose(1, 2).contiguous(), self.t, self.b[:5], 1)))
        out.append(torch.relu(aten.native_batch_norm(x, self.s, self.m, self.s, self.m, False, 0.1, 1e-5)[0]))
        out.append(torch.relu(aten._batch_norm_impl_index(x, self.m, None, self.s, self.m, False, 0.1, 1e-5, False)[0]))
        out.append(torch.relu(aten._native_batch_norm_legit_no_training(x, self.s, None, self.s, self.m, 0.1, 1e-5)[0]))
        out.append(torch.relu(aten._batch_norm_no_update(x, None, self.s, self.s, self.m, 0.1, 1e-5)[0]))
        out.append(torch.relu(aten.native_group_norm(x, self.s, self.m, x.size(0), 4, x.size(2) * x.size(3), 2, 1e-5)[0]))
        w, n = aten._weight_norm_interface(x[:, :, 0, 0].contiguous(), y[:, :1, 0, 0, 0].contiguous(), 0)
        out.append(w + n)
        out.append(torch.relu(aten._masked_softmax(x, x > 0, 3)) + 1)
        return out
"""

RESIZED = """\
import torch
from typing import List


def resized(x, y):
    aten = torch.ops.aten
    out: List[torch.Tensor] = []
    out.append(aten.__interpolate(x, None, 2., "nearest", None, None, False) + 1)
    out.append(aten.__interpolate(x, None, 1.7, "nearest", None, False, False) + 1)
    out.append(aten.__interpolate(x, None, [2., 1.5], "bilinear", False, False, False) + 1)
    out.append(aten.__interpolate(x, [9, 11], None, "bilinear", True, None, False) + 1)
    out.append(aten.__interpolate(x, 12, None, "area", None, None, False) + 1)
    out.append(aten.__interpolate(y, [6, 9, 3], None, "trilinear", False, None, False) + 1)
    out.append(aten.__interpolate(y[0, 0], None, 2.5, "linear", False, None, False) + 1)
    return out


class Model(torch.nn.Module):
    def forward(self, x, y):
        return resized(x, y)
"""

LOSSES = HEAD + """\
    def forward(self, x, y, c, t, w, s):
        aten = torch.ops.aten
        out: List[torch.Tensor] = []
        x = x * 2
        y = y + 0.5
        out.append(aten.cross_entropy_loss(x, t) * 2)
        out.append(aten.cross_entropy_loss(x, t, w, 2, 1) * 2)
        out.append(aten.cross_entropy_loss(x, torch.softmax(y, 1)) * 2)
        out.append(aten.cross_entropy_loss(x, t, w, 0, 2) * 2)
        out.append(aten.nll_loss(x, t, w, 1, -100) * 2)
        out.append(aten.nll_loss(x, t, None, 0, 1) * 2)
        out.append(aten.nll_loss(x, t, None, 2, -100) * 2)
        out.append(aten.nll_loss_nd(x, t, None, 1, 0) * 2)
        out.append(aten.nll_loss2d(c, torch.argmax(c, 1), w, 1, -100) * 2)
        out.append(aten.nll_loss2d(c, torch.argmin(c, 1), w, 0, -100) * 2)
        a, b = aten.nll_loss_forward(x, t, w, 1, -100)
        out.append(a + b)
        out.append(aten.multi_margin_loss(x, t, 1, 1, w, 1) * 2)
        out.append(aten.multi_margin_loss(x, t, 2, 0.5, None, 0) * 2)
        out.append(aten.multi_margin_loss(x[0], t[0], 1, 1, None, 2) * 2)
        out.append(aten.triplet_margin_loss(x, y, x + y) * 2)
        out.append(torch.triplet_margin_loss(x, y, x * y, 0.5, 1., 1e-6, True, 2) * 2)
        out.append(torch.triplet_margin_loss(x, y, x * y, 0.5, 3., 1e-6, True, 0) * 2)
        out.append(torch.cosine_embedding_loss(x, y, s, 0.1, 1) * 2)
        out.append(torch.cosine_embedding_loss(x, y, s, 0.1, 0) * 2)
        p = torch.softmax(y, 1)
        out.append(aten._softmax_backward_data(x, p, 1, 6) * 2)
        out.append(aten._log_softmax_backward_data(x, torch.log(p), -1, 6) * 2)
        return out
"""

PRODUCTS = HEAD + """\
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.randn(12, 8) * 0.3)
        self.v = torch.nn.Parameter(torch.randn(8, 5) * 0.3)
        self.b = torch.nn.Bilinear(12, 8, 6)

    def forward(self, x, y, q):
        aten = torch.ops.aten
        out: List[torch.Tensor] = []
        x = x * 2
        out.append(torch.linalg.multi_dot([x, self.w, self.v]).tanh())
        out.append(aten.chain_matmul([x, self.w, self.v, self.v.t()]).tanh())
        out.append(aten.matrix_power(q, 5).tanh())
        out.append(aten.linalg_matrix_power(q, 2).tanh())
        out.append(self.b(x, y).tanh())
        out.append(torch.cdist(x, y @ self.w.t()).tanh())
        out.append(torch.cdist(x, y @ self.w.t(), 1.).tanh())
        out.append(torch.cdist(x.repeat(9, 1), x * 0.5 + 1).tanh())
        out.append(torch.cdist(x.unsqueeze(0), x.unsqueeze(0) + 1, 3.).tanh())
        out.append(torch.cov(x).tanh())
        out.append(torch.cov(x, correction=0).tanh())
        out.append(torch.corrcoef(x) * 2)
        k = x.reshape(1, 2, -1, 6)
        out.append(aten._scaled_dot_product_flash_attention_for_cpu(k, k * 2, k + 1)[0] * 2)
        return out
"""

PLACES = HEAD + """\
    def forward(self, x, y, v, s):
        aten = torch.ops.aten
        out: List[torch.Tensor] = []
        x = x * 2
        v = v + 1
        out.append(torch.trapezoid(x, dx=0.5).tanh())
        out.append(torch.trapezoid(x, v).tanh())
        out.append(torch.trapezoid(x, y, dim=0).tanh())
        out.append(torch.trapz(x, dx=0.25, dim=0).tanh())
        out.append(torch.cumulative_trapezoid(x, dx=0.5, dim=1).tanh())
        out.append(torch.cumulative_trapezoid(x, y, dim=0).tanh())
        out.append(torch.vander(v, 4).tanh())
        out.append(torch.vander(v, 3, increasing=True).tanh())
        out.append(torch.linalg.vander(v, N=5).tanh())
        out.append(aten.flatten_dense_tensors([x, v]).tanh())
        a, b = aten.atleast_2d([v, x])
        out.append(torch.tanh(a + b))
        out.append(torch.tanh(aten.block_diag([x, v.unsqueeze(0), y]) + 1))
        out.append(torch.tanh(aten.cartesian_prod([v, s, x[0]]) + 1))
        out.append(torch.tanh(aten._chunk_cat([x, y * 2], 0, 3) + 1))
        out.append(torch.tanh(aten._chunk_cat([x.unsqueeze(2), y.unsqueeze(2)], 1, 2) + 1))
        out.append(torch.tanh(torch._C._nn.pad_sequence([v, v[1:] * 2, s], False, 0.5) + 1))
        out.append(torch.tanh(torch._C._nn.pad_sequence([x, x[1:] * 2], True) + 1))
        out.append(torch.tanh(torch._C._nn.pad_sequence([x, x[1:] * 2], True, 1., "left") + 1))
        out.append(torch.tanh(torch.diagonal_scatter(x, torch.diagonal(x) * 3, 0) + 1))
        out.append(torch.tanh(torch.diagonal_scatter(x[:4, :5], v[:4] * 3, 1) + 1))
        out.append(torch.tanh(torch.diagonal_scatter(x[:4, :5], v[:2] * 3, -2) + 1))
        out.append(torch.tanh(aten.sum_to_size(x, [1, 1]) + 1))
        out.append(torch.tanh(aten.sum_to_size(x[:, :4], [4]) + 1))
        a, b = torch.gradient(x)
        out.append(torch.tanh(a * b))
        a, b = torch.gradient(x, spacing=0.5, edge_order=2)
        out.append(torch.tanh(a * b))
        (c,) = torch.gradient(x, spacing=[v.cumsum(0)], dim=1)
        out.append(torch.tanh(c + 1))
        (c,) = torch.gradient(x, spacing=2, dim=0)
        out.append(torch.tanh(c + 1))
        theta = x[:2, :3].unsqueeze(0).repeat(2, 1, 1)
        out.append(torch.tanh(torch.affine_grid_generator(theta, [2, 1, 3, 5], False)))
        out.append(torch.tanh(torch.affine_grid_generator(theta, [2, 1, 4, 1], True)))
        return out
"""


def model_of(source):
    torch.manual_seed(0)
    model = neutral.define(source).Model().eval()
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    return model


def save(name, source, note, make, sizes, rtol=1e-5, atol=1e-6, reference=None):
    """`reference`: the same model where PyTorch has its operators on other devices alone."""
    def calls():
        for n, size in enumerate(sizes):
            torch.manual_seed(n)
            yield make(*size)

    neutral.save_case("parts_" + name, model_of(source), calls(), note, rtol, atol,
                      reference and model_of(reference))


def losses(n, classes, side):
    sign = torch.where(torch.randn(n) > 0, 1.0, -1.0)
    return (torch.randn(n, classes), torch.randn(n, classes), torch.randn(n, 7, side, side),
            torch.randint(0, classes, (n,)), torch.rand(7) + 0.5, sign)


randn = torch.randn
save("cells", CELLS, "steps of recurrent layers", lambda t, n: (randn(t, n, 24), randn(n, 20)),
     ((3, 4), (5, 9), (2, 33), (3, 4)))
save("names", NAMES, "convolutions and norms by other names", lambda n, h, w: (randn(n, 4, h, w), randn(n, 4, 3, h, w)),
     ((2, 8, 8), (1, 11, 9), (3, 10, 16), (2, 8, 8)), 1e-4, 1e-5,
     NAMES.replace("aten._conv_depthwise2d(x, self.d[::2], [3, 3], self.s,", "torch.conv2d(x, self.d[::2], self.s,")
     .replace("aten.conv_depthwise3d(y, self.e, [2, 3, 3], None,", "torch.conv3d(y, self.e, None,")
     .replace("[1, 1], [1, 1], [1, 1])))\n        out.append(torch.relu(torch.conv3d", "[1, 1], [1, 1], [1, 1], 4)))\n        out.append(torch.relu(torch.conv3d")
     .replace("[0, 1, 1], [1, 1, 1])))\n        out.append(torch.relu(aten.slow_conv3d", "[0, 1, 1], [1, 1, 1], 4)))\n        out.append(torch.relu(aten.slow_conv3d"))
save("resized", RESIZED, "interpolation by its name in scripts", lambda n, h, w: (randn(n, 3, h, w), randn(n, 3, 3, h, w)),
     ((2, 6, 6), (1, 8, 4), (3, 10, 5), (2, 6, 6)))
save("losses", LOSSES, "losses of classes and of rows", losses, ((4, 7, 3), (6, 7, 5), (33, 7, 4), (4, 7, 3)))
save("products", PRODUCTS, "products of several steps, distances, covariances",
     lambda n: (randn(n, 12), randn(n, 8), randn(6, 6) * 0.4), ((6,), (9,), (24,), (6,)), 1e-4, 1e-5)
save("places", PLACES, "slices, joins and gradients",
     lambda n, m: (randn(n, m), randn(n, m), randn(m).abs(), randn(3)), ((4, 6), (7, 6), (12, 9), (4, 6)))
