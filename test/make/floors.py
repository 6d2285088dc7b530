"""Makes test/data/own/floors with PyTorch 1.13: sizes that are rounded, of images of all sizes: pads to a multiple or to a
size, windows that leave a rest, pools whose results broadcast, columns of windows and back.

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
        size = torch.relu(F.pad(x, [1, 27 - w], value=0.5) * 2)
        high, wide = h // 4, w // 4
        parts = x[:, :, :high * 4, :wide * 4].view(b, c, high, 4, wide, 4).permute(0, 2, 4, 3, 5, 1)
        windows = torch.relu(parts * 2 + 1)
        pool = F.avg_pool2d(x, 4)
        columns = torch.relu(F.unfold(x, 3, stride=2) * 2)
        picture = torch.relu(F.fold(x.flatten(2).repeat(1, 6, 1), [h * 2, w * 3], [2, 3], stride=[2, 3]) * 2)
        return (multiple, size, windows, (pool - pool.mean([2, 3], True)) * 2, columns, picture)
"""


def calls():
    for n, (batch, height, width) in enumerate([(2, 12, 16), (3, 10, 17), (2, 17, 20), (4, 9, 11), (2, 13, 18)]):
        torch.manual_seed(n)
        yield (torch.randint(-2, 3, (batch, 2, height, width)) / 8,)


neutral.save_case("floors", neutral.define(SOURCE).Model(), calls(), "sizes that are rounded", 1e-6, 1e-6)
