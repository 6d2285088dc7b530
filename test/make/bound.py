"""Makes test/data/own/bound with PyTorch (1.13 or 2.x): results that a host wants in its own memory.

Run from the root of the project: python3 test/make/bound.py

A result of one kernel and of several, one that an attribute keeps, two of equal sizes that change places, a
part of a larger one, and a list that the model has too. test/unit/api/bound_test.c knows what they hold.
"""
import torch

import neutral

SOURCE = """\
import torch
from typing import List, Tuple


class Model(torch.nn.Module):
    all: List[torch.Tensor]

    def __init__(self):
        super().__init__()
        self.last = torch.zeros(1)
        self.all = []

    def forward(self, x):
        return torch.relu(x * 2 + 1)

    @torch.jit.export
    def chain(self, x):
        y = torch.relu(x * 2 + 1)
        z = torch.cumsum(y, 0)
        return torch.flip(z, [0]) + y

    @torch.jit.export
    def turned(self, x):
        return torch.flip(x, [0]) + x * 2

    @torch.jit.export
    def keep(self, x):
        y = torch.relu(x * 2 + 1)
        self.last = y
        return y

    @torch.jit.export
    def kept(self):
        return self.last

    @torch.jit.export
    def pair(self, x, flip: bool) -> Tuple[torch.Tensor, torch.Tensor]:
        a = torch.relu(x * 2 + 1)
        b = torch.cumsum(x, 0)
        if flip:
            return b, a
        return a, b

    @torch.jit.export
    def part(self, x):
        return torch.relu(x * 2 + 1)[1:]

    @torch.jit.export
    def listed(self, x) -> List[torch.Tensor]:
        self.all = [torch.relu(x * 2 + 1), x + 3]
        return self.all
"""



def main():
    model = neutral.define(SOURCE).Model().eval()
    x = torch.arange(-6, 6, dtype=torch.float32).reshape(3, 4)
    neutral.save_case("bound", model, [(x,)], "results in the memory of a host")


main()
