"""Makes test/data/own/result_strides_*: where the elements of results lie, for arguments that are not row-major.

    /usr/bin/python3 test/make/strides.py test/data/own

Needs torch 1.13 (Debian: python3-torch): strides are that version's. A case is a list of expressions in x and y. Of
each result the model gives its strides, those of a pointwise operator's result of it, and a number that depends on
which element stands where; so a result that lies elsewhere than its type says has another number.
"""
import json
import os
import sys
from collections import OrderedDict

import torch

from neutral import define

HEAD = '''from typing import List, Tuple

import torch
import torch.nn.functional as F


def number(z: torch.Tensor) -> torch.Tensor:
    if z.is_complex():
        z = torch.view_as_real(torch.resolve_conj(z))
    flat = z.to(torch.float64).reshape(-1)
    return (flat * torch.arange(1, flat.numel() + 1)).sum() / max(flat.numel(), 1)


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> Tuple[List[List[int]], torch.Tensor]:
        strides: List[List[int]] = []
        numbers: List[torch.Tensor] = []
'''
EACH = '''        z = %s
        w = z * 2 + 1
        strides.append(z.stride())
        strides.append(w.stride())
        numbers.append(number(z))
        numbers.append(number(w))
'''
FOOT = '''        return strides, torch.stack(numbers)
'''

ORDERS = """
x.clone()
torch.zeros_like(x) + 1
x.double()
x.flip([3])
x.flip([0, 1])
torch.fliplr(x)
torch.rot90(x, 1, [2, 3])
torch.rot90(x, 2, [1, 2])
x.sort(1)[0]
x.sort(-1, True)[1]
x.argsort(2)
torch.msort(x)
x.index_fill(1, torch.tensor([0, 2]), 1.0)
x.index_put([torch.tensor([1])], torch.tensor(1.0))
x.put(torch.tensor([5]), torch.tensor([1.0]))
torch.select_scatter(x, y[:, 0], 1, 2)
torch.slice_scatter(x, y[:, :1], 1, 3, 4)
torch.diagonal_scatter(x, y.diagonal(0, 2, 3), 0, 2, 3)
torch.frexp(x)[1]
torch.polygamma(1, x)
torch.i0(x)
torch.special.i1e(x)
torch.special.zeta(x + 1.5, y)
torch.special.xlog1py(x, y)
torch.igamma(x, y)
torch.float_power(x, 2.0)
torch.complex(x, y)
torch.polar(x, y)
torch.complex(x, y).real
torch.complex(x, y).conj()
torch.complex(x, y).abs()
torch.isreal(x)
F.mse_loss(x, y, reduction='none')
F.l1_loss(x, y, reduction='none')
F.smooth_l1_loss(x, y, reduction='none')
F.huber_loss(x, y, reduction='none')
F.binary_cross_entropy(x, y, reduction='none')
F.binary_cross_entropy_with_logits(x, y, reduction='none')
F.soft_margin_loss(x, y, reduction='none')
F.logsigmoid(x)
F.rrelu(x)
2.0 ** x
torch.ldexp(y, x)
x.renorm(2.0, 1, 0.5)
(x + 1).mvlgamma(2)
torch._weight_norm(x, y[:, :1, :1, :1], 0)
torch.unique(x, dim=1)
"""

INDICES = """
x[torch.tensor([0, 1, 1])]
x[:, torch.tensor([0, 2])]
x[:, :, torch.tensor([[0, 1, 2], [2, 1, 0]])]
x[:, :, torch.tensor([[0, 1, 2], [2, 1, 0]]).t()]
x[:, torch.tensor([0, 2]), torch.tensor([1, 1])]
x[:, torch.tensor([0, 2]), :, torch.tensor([1, 1])]
x[torch.tensor([[0], [1]]), :, torch.tensor([0, 2, 4])]
x[torch.tensor([0, 1]), torch.tensor([0, 3]), torch.tensor([5, 0]), torch.tensor([2, 2])]
x[(y[:, 0, 0, 0] * 1.99).long()]
x[:, :, (y[0, 0] * 5.99).long()]
x[x > 0.5]
x[:, y[0, :, 0, 0] > 0.5]
x[:, :, y[0, 0] > 0.5]
x[torch.tensor(1)]
x[torch.zeros(0, dtype=torch.long)]
(x > 0.5).nonzero()
torch.argwhere(x[0, 0] > 0.5)
x.quantile(torch.tensor([0.25, 0.5, 0.75], dtype=torch.float32), 1)
x.quantile(torch.tensor([0.25, 0.5], dtype=torch.float32), -1, True)
x.nanquantile(torch.tensor([0.25], dtype=torch.float32), 2)
"""

# x: images of one channel, whose stride tells whether they have their channels last
ONES = """
x.clone()
torch.zeros_like(x) + x
x.double()
x + 1
1 - x
x * torch.tensor(2.0)
x * y
x / 3 + y
x > 0.5
x ** 2.0
2.0 ** x
torch.where(x > 0.5, x, 1.0)
torch.lerp(x, y, 0.25)
x.clamp(0.25, 0.75)
torch.sqrt(x)
x.flip([0])
x.sort(-1)[0]
x.index_fill(0, torch.tensor([1]), 0.5)
torch.slice_scatter(x, y[:1], 0, 1, 2)
torch.frexp(x)[0]
torch.complex(x, y)
F.mse_loss(x, y, reduction='none')
F.huber_loss(x, y, reduction='none')
F.soft_margin_loss(x, y, reduction='none')
F.binary_cross_entropy_with_logits(x, y, reduction='none')
F.logsigmoid(x)
x.renorm(2.0, 0, 0.5)
x[torch.tensor([1, 0])]
x[:, torch.tensor([0, 0])]
"""

# x: a batch of square matrices, y: of as many rows
MATRICES = """
torch.linalg.inv(x)
torch.inverse(x[0, 0])
torch.linalg.solve(x, y)
torch.linalg.solve(x, y[..., 0])
torch.linalg.solve(x, y.mT, left=False)
torch.linalg.solve(x[0, 0], y[0, 0, :, 0])
torch.linalg.cholesky(x @ x.mT)
torch.linalg.cholesky(x @ x.mT, upper=True)
torch.cholesky(x @ x.mT, True)
torch.cholesky_solve(y, torch.linalg.cholesky(x @ x.mT))
torch.cholesky_inverse(x)
torch.linalg.lstsq(x, y)[0]
torch.linalg.qr(x)[0].abs()
torch.linalg.qr(x)[1].abs()
torch.geqrf(x)[0]
torch.linalg.householder_product(x, y[..., 0])
torch.ormqr(x, y[..., 0], y)
torch.linalg.svd(x)[0].abs()
torch.linalg.svd(x)[2].abs()
torch.svd(x)[2].abs()
torch.svd(x, True, False)[2]
torch.linalg.eigh(x @ x.mT)[1].abs()
torch.linalg.eig(x)[0].real
torch.linalg.eig(x)[1].abs()
torch.linalg.lu_factor(x)[0]
torch.linalg.lu(x)[1]
torch.linalg.ldl_factor(x @ x.mT)[0]
torch.lu_solve(y, torch.linalg.lu_factor(x)[0], torch.linalg.lu_factor(x)[1])
torch.triangular_solve(y, x)[0]
torch.triangular_solve(y, x)[1]
torch.linalg.solve_triangular(x, y, upper=True)
torch.linalg.solve_triangular(x, y.mT, upper=False, left=False)
torch.matrix_exp(x[0, 0])
torch.matrix_exp(x[0])
torch.linalg.pinv(x)
torch.linalg.matrix_power(x, 3)
torch.linalg.tensorinv(x[0, 0].reshape(2, 2, 2, 2), 2)
"""


def r(*sizes):
    return torch.rand(*sizes) * 0.9 + 0.05


def layouts(n, c, h, w):
    """Images: row-major, channels last, others, with gaps, repeated."""
    return [r(n, c, h, w), r(n, h, w, c).permute(0, 3, 1, 2), r(c, n, h, w).transpose(0, 1),
            r(w, h, c, n).permute(3, 2, 1, 0), r(n, h, w, 2 * c).permute(0, 3, 1, 2)[:, ::2],
            r(n, c, h, 1).expand(n, c, h, w)]


def images():
    """Each pair of layouts in two sizes, so that kernels of symbols serve, too."""
    a, b = layouts(2, 4, 6, 5), layouts(3, 5, 7, 6)
    pairs = ((0, 0), (1, 1), (2, 1), (3, 3), (4, 4), (5, 0), (1, 0))
    return [(x[i], x[k]) for i, k in pairs for x in (a, b)]


def single():
    x = [r(2, 6, 5, 1).permute(0, 3, 1, 2), r(3, 4, 7, 1).permute(0, 3, 1, 2)]
    y = [r(2, 1, 6, 5), r(3, 1, 4, 7)]
    return [pair for i in (0, 1) for pair in ((x[i], x[i]), (x[i], y[i]), (y[i], x[i]))]


def matrices():
    near = torch.eye(4) * 4
    x = [r(2, 3, 4, 4) + near, (r(2, 3, 4, 4) + near).mT, (r(3, 2, 4, 4) + near).transpose(0, 1)]
    return [(x[0], r(2, 3, 4, 2)), (x[1], r(2, 3, 2, 4).mT), (x[2], r(2, 3, 4, 4)[..., ::2])]


CASES = {"orders": (ORDERS, images), "indices": (INDICES, images), "ones": (ONES, single),
         "matrices": (MATRICES, matrices)}


def make(folder, name, expressions, inputs):
    folder = os.path.join(folder, "result_strides_" + name)
    os.makedirs(folder, exist_ok=True)
    source = HEAD + "".join(EACH % e for e in expressions.strip().split("\n")) + FOOT
    model = torch.jit.script(define(source).Model().eval())
    model.save(os.path.join(folder, "model.pt"))
    torch.manual_seed(11)
    sets = inputs()
    for i, args in enumerate(sets):
        torch.save(args, os.path.join(folder, "inputs_%d.pt" % i))
        torch.save(model(*args), os.path.join(folder, "expected_%d.pt" % i))
    case = OrderedDict(
        name="result_strides_" + name, category="own", producer="torch 1.13.1", kind="script", method="forward",
        n_cases=len(sets), rtol=1e-3, atol=1e-4, stateful=False, note="test/make/strides.py")
    with open(os.path.join(folder, "case.json"), "w") as f:
        json.dump(case, f, indent=1)
        f.write("\n")


for key, (text, made) in CASES.items():
    make(sys.argv[1], key, text, made)
