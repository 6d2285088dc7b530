"""Makes test/data/own/splits with PyTorch (2.x): parts of a split by their place, from either end, for calls of other
lengths, whose parts are others; and views around a product that have the sizes of its input for some lengths alone.

Run from the root of the project: python3 test/make/splits.py
"""
import neutral

SOURCE = '''
import torch
from typing import List
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.wide = nn.Linear(4, 12)

    def ends(self, parts: List[torch.Tensor]):
        return parts[-1] + parts[0].sum()

    def forward(self, x):
        a, b, c = self.wide(x).split([4, 4, 4], -1)
        y = torch.tanh(a + b) * c
        last = y.split(2)[-1]
        z = y.clone()
        z.split(1, 0)[-1].mul_(2)
        t = torch.stack([x[:4], x[2:], x[:4]]) if x.size(0) == 6 else torch.stack([x, x + 1])
        u = torch.addmm(self.wide.bias, t.view(-1, 4), self.wide.weight.t()).view(2, -1, 12)
        return torch.relu(u) * 2, last * 2, torch.relu(y.split(2)[0]) + 1, self.ends(y.split(2)), torch.tanh(y.t().split(2, 1)[-1]), z
'''
import torch  # noqa: E402

torch.manual_seed(0)
Model = neutral.define(SOURCE).Model


def calls():
    for n, length in enumerate((4, 4, 4, 6, 6, 8, 5, 2, 4, 6)):
        torch.manual_seed(n)
        yield (torch.randn(length, 4),)


neutral.save_case("splits", Model().eval(), calls(), "parts of splits by their place, for lengths that change")
