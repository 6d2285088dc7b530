"""Makes test/data/own/expanded with PyTorch 1.13: what is written to tensors whose elements share places.

Run from the root of the project: python3 test/make/expanded.py
"""
import torch

import neutral

SOURCE = """\
import torch


def rows(a):
    return a.clone().reshape(3, 1).expand(3, 4)


class Model(torch.nn.Module):
    def forward(self, a, m):
        i = torch.tensor([0, 2])
        b, c, d, f, g, h, j = rows(a), rows(a), rows(a), rows(a), rows(a), rows(a), rows(a)
        e = a.clone().reshape(1, 3).expand(4, 3)
        b.fill_(2.0)
        c[1:].zero_()
        d.masked_fill_(m, 7.0)
        e.masked_fill_(m.t(), 7.0)
        f.masked_fill_(m[0], torch.tensor(5.0))
        g.index_fill_(0, i, 1.5)
        h.index_fill_(1, i, 1.5)
        j.copy_(j)
        return (b * 1, c * 1, d * 1, e * 1, f * 1, g * 1, h * 1, j * 1)
"""


def calls():
    for n in range(2):
        torch.manual_seed(n)
        yield (torch.randint(-4, 5, (3,)) / 8, torch.rand(3, 4) > 0.7)


neutral.save_case("expanded", neutral.define(SOURCE).Model(), calls(), "writes to elements that share places", 0, 0)
