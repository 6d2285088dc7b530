"""Makes test/data/own/pools with PyTorch (2.x): pools with padding over images of many sizes, for each of which one
kernel serves.

Run from the root of the project: python3 test/make/pools.py

Windows that are wider than their steps and narrower, that reach over an edge and over two of a small image, and such
an image that a window is all of.
"""
import torch

import neutral

SOURCE = """\
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        x = x * 2
        a = torch.tanh(torch.max_pool2d(x, 3, 3, 1)) + 1
        b = torch.tanh(torch.max_pool2d(x, [5, 3], [1, 3], [2, 1])) + 1
        c = torch.tanh(torch.max_pool2d(x, [4, 3], [3, 2], 1, [1, 2])) + 1
        d = torch.tanh(torch._C._nn.avg_pool2d(x, 3, 3, 1)) + 1
        e = torch.tanh(torch._C._nn.avg_pool2d(x, [5, 3], 2, [2, 1], False, False)) + 1
        return a, b, c, d, e
"""
SIZES = (20, 17), (31, 22), (16, 33), (5, 6), (3, 5), (25, 4), (40, 13)
torch.manual_seed(0)
neutral.save_case("pools", neutral.define(SOURCE).Model(), ((torch.randn(1, 2, *size),) for size in SIZES),
                  "pools with padding, one kernel for images of many sizes, small ones among them")
