"""Makes test/data/own/written_parts with PyTorch (2.x): writes to parts of tensors that the program made, one in the
other, of other dtypes and sizes, of constants, in branches and loops, beside views that see them; many of one tensor.

Run from the root of the project: python3 test/make/written_parts.py
"""
import torch
from torch import nn, Tensor
from typing import Tuple

import neutral


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Linear(3, 2)

    def places(self, n: int) -> Tensor:
        at = torch.arange(n)
        apart = at.unsqueeze(0) - at.unsqueeze(1)
        out = torch.zeros(n, n, 3)
        out[:, :, 0] = apart
        out[:, :, 1] = apart * apart
        out[..., 2] = 1.0
        return torch.softmax(self.scale(out), 0)

    def forward(self, x: Tensor, y: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
        a = x * 2
        a[1:, ::2] = a[1:, ::2] * 0.5
        a[:, -1] += y[:, 0]
        a[0].relu_()
        b = torch.zeros([4, 6], dtype=torch.float64)
        b[:] = 0.25
        b[2] = y[0, 0, 0]
        b[:, 3:5] *= 3
        c = x + y
        if bool(x[0, 0, 0] > 0):
            c[:2, :, 1:] = 4.0
        seen = c[1]
        c[1, 2] = 7.0
        c[::3] -= seen.sum()
        d = x - y
        for i in range(3):
            d[i] = d[i + 1] + i
        e = torch.relu(x)
        for i in range(2):
            e[:, i] = y[:, 0] * i
        e[:, 2] = y[:, 1]
        e[3, 3:] = -1.0
        e[0, 0, 0] = 2.0
        e[1:3, 4, ::2] = e[1:3, 5, ::2]
        e[2] = 1.0
        e[:, :, 4].mul_(0.5)
        e[0:1].fill_(3.0)
        e[1] = e[1].neg()
        e[..., 1] = 0.0
        f = torch.cat([x, y], 1)[:, :6]
        f += x
        f = torch.relu(f).permute(2, 0, 1)[1:]
        f.mul_(2).neg_()
        return a, b, c, d, e, f, self.places(x.size(1))


def calls():
    for n in range(6):
        torch.manual_seed(n)
        yield (torch.randn(4, 6, 5), torch.randn(4, 6, 5))


torch.manual_seed(0)
neutral.save_case("written_parts", torch.jit.script(Model().eval()), calls(), "writes to parts of new tensors", 1e-5,
                  1e-6, kind="script")
