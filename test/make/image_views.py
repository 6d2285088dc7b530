"""Makes test/data/own/image_views with PyTorch (2.x): a convolution of a view that its group makes, in front of
another that wants channels last: what the group makes is no memory that could be copied in another order.

Rows of the weights overlap in memory: the archive is small.

Run from the root of the project: python3 test/make/image_views.py
"""
import torch

import neutral

SOURCE = """\
import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        numbers = torch.randint(-4, 5, (1000,)) / 64
        self.register_buffer("mix", numbers.as_strided((256, 256, 1, 1), (2, 1, 1, 1)))
        self.register_buffer("window", numbers.as_strided((256, 1, 3, 3), (1, 1, 3, 1)) * 8)

    def forward(self, x):
        y = torch.relu(F.conv2d(x.repeat(1, 256, 1, 1), self.mix))
        y = torch.relu(F.conv2d(y, self.window, padding=1, groups=256))
        return (F.conv2d(y, self.mix)[:, ::32] * 2 - 1,)
"""


def calls():
    for n in range(2):
        torch.manual_seed(n)
        yield (torch.randint(-2, 3, (1, 1, 8, 28)) / 8,)


torch.manual_seed(0)
neutral.save_case("image_views", neutral.define(SOURCE).Model(), calls(), "convolutions of views", 1e-5, 1e-5)
