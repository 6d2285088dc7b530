"""Makes test/data/own/around with PyTorch (2.x): what reads around the ends of a dimension, and with steps, over
images of several sizes: one kernel serves all of them.

Run from the root of the project: python3 test/make/around.py
"""
import torch

import neutral

SOURCE = """\
import torch
import torch.nn.functional as F
from typing import List


class Model(torch.nn.Module):
    def forward(self, x, y):
        out: List[torch.Tensor] = []
        x = x * 2
        y = y + 1
        out.append(torch.relu(torch.roll(x, [-2, 1], [2, 3])) + 1)
        out.append(torch.relu(torch.roll(x, [3], [2])) + y)
        out.append(torch.relu(torch.roll(x, [-1], [-1]) * y) + 1)
        out.append(torch.relu(F.pad(x[0], [1, 2], "reflect")) + 1)
        out.append(torch.relu(F.pad(x, [2, 1, 3, 0], "reflect")) + 1)
        out.append(torch.relu(F.pad(x, [1, 1, 2, 2], "replicate")) + 1)
        out.append(torch.relu(F.pad(x, [3, 1, 0, 2], "circular")) + 1)
        z = F.pad(x, [0, 0, 0, 0], "replicate")
        z.add_(1)
        out.append(z * x)
        out.append(torch.relu(x[:, :, ::2] * 3) + 1)
        out.append(torch.relu(x[:, :, 1::2, 1::3] * 3) + 1)
        out.append(torch.relu(x[:, :, :, ::2] * y[:, :, :, ::2]) + 1)
        out.append(torch.softmax(x[:, :, ::2, ::2], 1) * 2)
        out.append(torch.cat([x[:, :, ::2], y[:, :, ::2]], 1) * 2)
        out.append(torch.relu(F.conv2d(F.pad(x, [1, 1, 1, 1], "reflect"), torch.ones(2, 3, 3, 3) * 0.125)))
        return out
"""


def calls():
    for n, (height, width) in enumerate(((8, 6), (6, 10), (12, 8), (20, 34), (16, 12), (10, 14), (8, 6))):
        torch.manual_seed(n)
        yield torch.randn(2, 3, height, width), torch.randn(2, 3, height, width)


neutral.save_case("around", neutral.define(SOURCE).Model(), calls(), "reads around the ends, and with steps", 1e-5, 1e-6)
