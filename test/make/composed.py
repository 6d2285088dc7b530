"""Makes test/data/own/composed_* with PyTorch (2.x): operators that are made of others, each between two that a group
has anyway.

Run from the root of the project: python3 test/make/composed.py

Functions of elements, rows and losses of two tensors, products by other names, and views and joins, over several
sizes of the same ranks.
"""
import torch

import neutral

ELEMENTS = """\
import torch
from typing import List


class Model(torch.nn.Module):
    def forward(self, x, y, v, a, b):
        out: List[torch.Tensor] = []
        x = x * 1.25
        y = y + 0.5
        out.append(torch.logaddexp2(x, y) * 2)
        out.append(torch.logaddexp2(a, b).tanh())
        out.append(torch.special.xlog1py(x, y.abs()) + 1)
        out.append(torch.special.xlog1py(a, 0.75) * 3)
        out.append(torch.special.xlog1py(2.5, y.abs()) + 1)
        out.append(torch.special.entr(y) - 1)
        out.append(torch.special.ndtr(x) * 2)
        out.append(torch.ldexp(x, torch.floor(y)) + 1)
        out.append(torch.float_power(x.abs(), y) * 2)
        out.append(torch.float_power(x, 2) * 2)
        out.append(torch.float_power(1.5, y) * 2)
        out.append(torch._prelu_kernel(x, v) + 1)
        out.append(torch.isclose(x, y, 0.5, 0.25).logical_not())
        out.append(torch.isclose(a, b, 0., 0., True).logical_not())
        out.append(torch.addr(x, y[:, 0], v, beta=0.5, alpha=2) * 2)
        out.append(torch.kron(x[:2], y[:, :3]) + 1)
        out.append(torch.fill(x, 2) + y)
        out.append(torch.fill(x, v[0] * 2) + y)
        out.append(torch.linalg.cross(x[:, :3], y[:, :3]) * 2)
        out.append(torch.cross(x[:3], y[:3], 0) * 2)
        return out
"""

ROWS = """\
import torch
from typing import List


class Model(torch.nn.Module):
    def forward(self, x, y, z):
        out: List[torch.Tensor] = []
        x = x * 1.25
        y = y + 0.25
        p = torch.sigmoid(y)
        s = torch.where(z > 0, 1.0, -1.0)
        out.append(torch.linalg.vecdot(x, y) * 2)
        out.append(torch.linalg.vecdot(x, y, dim=0) * 2)
        out.append(torch.dist(x, y, 3) * 2)
        out.append(torch.pairwise_distance(x, y) * 2)
        out.append(torch.pairwise_distance(x, y, 1., 0.125, True) * 2)
        out.append(torch.cosine_similarity(x, y, 1) * 2)
        out.append(torch.cosine_similarity(x, y, 0, 0.5) * 2)
        out.append(torch.kl_div(x, p, 2) * 2)
        out.append(torch.kl_div(x, y, 0, log_target=True) * 2)
        out.append(torch.margin_ranking_loss(x, y, s, 0.5, 1) * 2)
        out.append(torch.hinge_embedding_loss(x, s, 0.5, 2) * 2)
        out.append(torch._C._nn.soft_margin_loss(x, s, 1) * 2)
        out.append(torch.poisson_nll_loss(x, p * 4, True, True, 1e-8, 1) * 2)
        out.append(torch.poisson_nll_loss(p, y.abs(), False, False, 1e-8, 0) * 2)
        out.append(torch.binary_cross_entropy_with_logits(x, p, None, None, 1) * 2)
        out.append(torch.binary_cross_entropy_with_logits(x, p, p, p, 0) * 2)
        out.append(torch.nanmean(torch.where(z > 1, z / 0 * 0, z), 1) * 2)
        out.append(torch._weight_norm(x, y[:, :1]) * 2)
        out.append(torch.norm_except_dim(x, 2, 1) * 2)
        out.append(torch.renorm(x, 2, 0, 1.5) * 2)
        out.append(torch._safe_softmax(torch.where(z[:, :1] > 0, x, x * 0 - float('inf')), 1) * 2)
        out.append(torch.trace(x) * 2)
        return out
"""

PRODUCTS = """\
import torch
from typing import List


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.randn(48, 64) * 0.1)
        self.v = torch.nn.Parameter(torch.randn(64) * 0.1)
        self.u = torch.nn.Parameter(torch.randn(64, 48) * 0.1)
        self.b = torch.nn.Parameter(torch.randn(4, 48, 32) * 0.1)

    def forward(self, x, y):
        out: List[torch.Tensor] = []
        out.append(torch.mv(x, self.v).tanh())
        out.append(torch.addmv(x[:, 0], x, self.v, beta=0.5, alpha=2).tanh())
        out.append(torch.dot(x[0], self.v).tanh())
        out.append(torch.vdot(x[0], self.v).tanh())
        out.append(torch.matmul(x, self.v).tanh())
        out.append(torch.matmul(self.v, self.u).tanh())
        out.append(torch.matmul(y, self.u).tanh())
        out.append(torch.inner(x, self.w).tanh())
        out.append(torch.inner(y, self.w).tanh())
        out.append(torch.tensordot(y, self.u, [[2], [0]]).tanh())
        out.append(torch.tensordot(y[:, :, :48], self.b, [[0, 2], [0, 1]]).tanh())
        out.append(torch.addbmm(x[:, :32], y[:, :, :48], self.b).tanh())
        return out
"""

PLACES = """\
import torch
from typing import List


class Model(torch.nn.Module):
    def forward(self, x, y, v):
        out: List[torch.Tensor] = []
        x = x * 2
        v = v + 1
        a, b = torch.hsplit(x, 2)
        out.append(torch.tanh(a * b))
        a, b, c = torch.hsplit(x, [1, 3])
        out.append(torch.tanh((a + b[:, :1]) * c.sum()))
        a, b = torch.vsplit(x, 2)
        out.append(torch.tanh(a * b))
        a, b = torch.dsplit(y, [1])
        out.append(torch.tanh(a * b))
        out.append(torch.tanh(torch.column_stack([v, v * 2]) + 1))
        out.append(torch.tanh(torch.column_stack([x, x * 3]) + 1))
        out.append(torch.tanh(torch.dstack([x, x * 2]) + 1))
        out.append(torch.tanh(torch.dstack([y, y * 2]) + 1))
        out.append(torch.tanh(torch.diag_embed(v) + 1))
        out.append(torch.tanh(torch.diag_embed(x, 1) + 1))
        out.append(torch.tanh(torch.diag_embed(x, -2, 0, 2) + 1))
        out.append(torch.tanh(torch.diag(v, -1) + 1))
        out.append(torch.tanh(torch.diag(x, 1) * 3))
        out.append(torch.tanh(torch.diagflat(v, 2) + 1))
        out.append(torch.tanh(torch.select_scatter(x, v * 2, 0, 1) + 1))
        out.append(torch.tanh(torch.select_scatter(x, x[:, 0] * 2, 1, -1) + 1))
        out.append(torch.tanh(torch.slice_scatter(x, x[:, :2] * 3, 1, 1, 3) + 1))
        out.append(torch.tanh(torch.slice_scatter(x, x[:1] * 3, 0, -1) + 1))
        c, d = torch.split_copy(x, 2)[:2]
        out.append(torch.tanh(c * d))
        e = torch.unbind_copy(x)
        out.append(torch.tanh(e[0] * e[1]))
        return out
"""


def calls(sizes, *make):
    for n, size in enumerate(sizes):
        torch.manual_seed(n)
        yield tuple(f(*size) for f in make)


def special(count):
    """Infinities, NaN and zeros against each other."""
    v = torch.tensor([0.0, -0.0, float("inf"), -float("inf"), float("nan"), 1.5])
    return v.repeat(count)[:count], v.repeat_interleave(6).repeat(count)[:count]


def elements():
    for n, (rows, columns) in enumerate(((4, 6), (5, 7), (9, 33), (4, 6))):
        torch.manual_seed(n)
        a, b = special(36)
        yield torch.randn(rows, columns), torch.randn(rows, columns), torch.randn(columns), a, b


torch.manual_seed(0)
SIZES = ((4, 6), (6, 5), (8, 40), (4, 6))
NOTE = "operators that are made of others, between two of a group: %s"
neutral.save_case("composed_elements", neutral.define(ELEMENTS).Model(), elements(), NOTE % "functions of elements")
neutral.save_case("composed_rows", neutral.define(ROWS).Model(),
                  calls(SIZES, torch.randn, torch.randn, torch.randn), NOTE % "rows and losses of two tensors")
model = neutral.define(PRODUCTS).Model().eval()
for parameter in model.parameters():
    parameter.requires_grad_(False)
neutral.save_case("composed_products", model,
                  ((torch.randn(n, 64), torch.randn(4, n, 64)) for n in (24, 40, 33, 24)), NOTE % "products")
neutral.save_case("composed_places", neutral.define(PLACES).Model(),
                  calls(((4, 6), (6, 6), (8, 40), (4, 6)), torch.randn, lambda n, m: torch.randn(n, 3, 2),
                        lambda n, m: torch.randn(m)), NOTE % "views and joins", 1e-6, 1e-6)
