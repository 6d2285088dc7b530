"""Makes test/data/own/floors with PyTorch 1.13: sizes that are rounded, of images of all sizes: pads to a multiple or to a
size, windows that leave a rest, pools whose results broadcast.

Run from the root of the project: python3 test/make/floors.py
"""
import torch

import neutral

SOURCE = """\
import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def forward(self, x):
        b, c, h, w = x.shape
        multiple = torch.relu(F.pad(x, [0, (8 - w % 8) % 8, 0, (8 - h % 8) % 8]) * 2)
        size = torch.relu(F.pad(x, [1, 47 - w], value=0.5) * 2)
        rows, columns = h // 4, w // 4
        parts = x[:, :, :rows * 4, :columns * 4].view(b, c, rows, 4, columns, 4).permute(0, 2, 4, 3, 5, 1)
        windows = torch.relu(parts * 2 + 1)
        pool = F.avg_pool2d(x, 4)
        return (multiple, size, windows, (pool - pool.mean([2, 3], True)) * 2)
"""


def calls():
    for n, (batch, height, width) in enumerate([(2, 16, 24), (3, 20, 17), (2, 33, 40), (4, 9, 31), (2, 25, 26)]):
        torch.manual_seed(n)
        yield (torch.randint(-2, 3, (batch, 3, height, width)) / 8,)


neutral.save_case("floors", neutral.define(SOURCE).Model(), calls(), "sizes that are rounded", 1e-6, 1e-6)
