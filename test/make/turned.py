"""Makes test/data/own/turned with PyTorch (2.x): arguments that do not lie row by row, one of them in a list.

Run from the root of the project: python3 test/make/turned.py
"""
import torch

import neutral

SOURCE = """\
import torch
import torch.nn.functional as F
from typing import List


class Model(torch.nn.Module):
    def forward(self, x, rest: List[torch.Tensor]):
        y = torch.relu(x * 2 + 1) - rest[0]
        return F.max_pool2d(y, 2), torch.sigmoid(rest[1]) * 3
"""


def calls():
    for n in range(3):
        torch.manual_seed(n)
        x = torch.randn(2, 3, 8, 6).to(memory_format=torch.channels_last)
        yield x, [torch.randn(2, 3, 6, 8).transpose(2, 3), torch.randn(7, 5).t()]


neutral.save_case("turned", neutral.define(SOURCE).Model(), calls(), "arguments that do not lie row by row", 1e-5, 1e-6)
