"""Makes test/data/own/patches with PyTorch (1.13 or 2.x): windows as columns and back, and other maps.

Run from the root of the project: python3 test/make/patches.py

Patches of a picture as rows, as MobileViT has them, and back; windows that overlap, with steps and between;
with a border, which no kernel has; differences of neighbours; tensors that are broadcast to each other.
"""
import torch

import neutral


SOURCE = """\
import torch
from torch.nn.functional import fold, unfold


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3, padding="same")

    def forward(self, x, y):
        columns = unfold(torch.sigmoid(x), [2, 2], stride=[2, 2]) * 2
        batch, rows, count = columns.shape
        tokens = columns.reshape(batch, rows // 4, 4, count).softmax(-1)
        picture = fold(tokens.reshape(batch, rows, count) + 1, [8, 12], [2, 2], stride=[2, 2]).tanh()
        lone = fold(columns[0] - 0.5, [8, 12], [2, 2], stride=[2, 2]).exp()
        apart = unfold(x + 1, [3, 2], dilation=[2, 1], stride=[1, 3]).relu()
        border = unfold(x * 2, [3, 3], padding=[1, 1]).relu()
        added = fold(border, [8, 12], [3, 3], padding=[1, 1]).cos()
        steps = torch.diff(x.sin()) + 1, torch.diff(x, dim=1).abs() * 2
        a, b = torch.broadcast_tensors(y, x)
        return picture, lone, apart, border, added, steps, a * b + a, self.conv(x).relu() + 1
"""
Model = neutral.define(SOURCE).Model

torch.manual_seed(0)
model = Model().eval()
for parameter in model.parameters():
    parameter.requires_grad_(False)
shapes = ((2, (8, 1)), (1, (12,)), (3, (3, 8, 12)), (2, (1, 1)))
neutral.save_case("patches", model, ((torch.randn(batch, 3, 8, 12), torch.randn(other)) for batch, other in shapes),
                  "windows as columns and back, differences, broadcasting", atol=1e-5)
