"""Makes test/data/own/blocked with PyTorch (2.x): products with weights that are large enough to be made in
blocks (runtime/kernels/heavy/blocked.h), with what may stand behind them,
views around them, and several results of a group.

Rows of the weights overlap in memory: the archive is small. All numbers are small multiples of 1/8, so that
sums in any order are exact. Odd rows and depths, outputs that are no whole panels.

Run from the root of the project: python3 test/make/blocked.py
"""
import torch

import neutral

SOURCE = """\
import torch
import torch.nn.functional as F
from typing import List


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        numbers = torch.randint(-4, 5, (4000,)) / 8
        self.register_buffer("deep", numbers.as_strided((270, 1101), (7, 1)))
        self.register_buffer("wide", numbers.as_strided((288, 512), (5, 1)))
        self.register_buffer("tall", numbers.as_strided((512, 272), (1, 3)))
        self.register_buffer("window", numbers.as_strided((264, 600, 1, 1), (11, 1, 1, 1)))
        self.register_buffer("start", numbers.as_strided((600, 16, 5, 3), (5, 13, 1, 3)))
        self.register_buffer("back", numbers.as_strided((600, 264, 1, 1), (3, 1, 1, 1)))
        self.register_buffer("bias", torch.randint(-8, 9, (288,)) / 8)

    def forward(self, x, y, flat, image, row, rows):
        out: List[torch.Tensor] = []
        out.append(F.gelu(F.linear(x, self.deep, self.bias[:270])))
        out.append(F.linear(x, self.deep, self.bias[:270].clone()) - 1)
        out.append(F.linear(x, self.deep))
        z = torch.relu(F.linear(y, self.wide, self.bias))
        out.append(torch.relu(F.linear(y, self.wide) + z * 0.5))
        out.append(torch.relu(torch.mm(flat, self.tall) - 1))
        out.append(torch.tanh(y @ self.tall * 0.125))
        z = torch.addmm(self.bias[:272], y.view(-1, 512), self.tall).view(y.size(0), y.size(1), 272)
        out.append(torch.relu(z) * z.clamp(max=2.0))
        out.append(torch.addmm(self.bias[:272], y.view(-1, 512), self.tall).view(y.size(0), y.size(1), 272))
        z = F.linear(y, self.wide, self.bias)
        out += [z, torch.relu(z) * 2]
        z = F.linear(y, self.wide) * 0.5 + 1
        out += [torch.relu(z), z]
        out.append(F.linear(row.expand(10, 512), self.wide) * 2)
        out.append(F.linear(rows, self.wide) * 2)
        z = torch.relu(F.conv2d(image, self.start, padding=(2, 1)))
        z = torch.relu(F.conv2d(z, self.window, self.bias[:264]) - 1)
        out.append(F.conv2d(z, self.back)[:, ::8])
        return out
"""


def whole(*sizes):
    return torch.randint(-8, 9, sizes) / 8


def calls():
    for n, rows in enumerate((21, 12, 35)):
        torch.manual_seed(n)
        yield whole(1, rows, 1101), whole(1, rows, 512), whole(rows, 512), whole(1, 16, 9, 7), whole(512), whole(512).expand(8, 512)


torch.manual_seed(0)
neutral.save_case("blocked", neutral.define(SOURCE).Model(), calls(), "products in blocks", 1e-5, 1e-6)
