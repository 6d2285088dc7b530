"""Makes test/data/own/ladders with PyTorch (1.13 or 2.x): branches that ranks decide, lists that grow, sizes of others.

Run from the root of the project: python3 test/make/ladders.py

nn.functional's ladders (if x.dim() == 4: .. elif x.dim() == 3: .. else: raise) around resized pictures whose sizes are
those of other tensors, or made of them; features that are gathered in a list and read in between. Pictures with and
without batch take turns, so that what was compiled for one rank meets the other, and sizes change.
"""
import torch

import neutral


SOURCE = """\
from typing import List

import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.second = torch.nn.Conv2d(8, 16, 3, stride=2, padding=1)
        self.last = torch.nn.Conv2d(24, 4, 1)

    def forward(self, x):
        features: List[torch.Tensor] = []
        size = x.shape[-2:]
        y = F.relu(self.first(x))
        features.append(y)
        y = F.relu(self.second(y))
        features.append(y)
        if y.dim() == 4:
            up = F.interpolate(y, size=features[0].shape[2:], mode="bilinear", align_corners=False)
            y = torch.cat([up, features[0]], 1)
        elif y.dim() == 3:
            up = F.interpolate(y, size=size[1:], mode="nearest")
            y = torch.cat([up, features[0][:, : up.shape[1], : up.shape[2]]], 0)
        else:
            raise ValueError("pictures have 3 or 4 dimensions")
        features.append(y)
        y = self.last(y)
        if y.dim() == 3:
            y = y.unsqueeze(0)
        corner = F.interpolate(y, size=[size[0] * 2, size[1] + 1], mode="nearest")
        middle = F.interpolate(y, size=[size[0] + 3, size[1] // 2], mode="bilinear", align_corners=True)
        half = F.interpolate(y, scale_factor=0.5, mode="nearest")
        flat = y.reshape(-1, features[1].shape[-1]) if y.numel() % features[1].shape[-1] == 0 else y.flatten()
        count = len(features)
        features.append(flat)
        return corner, middle, half, torch.tanh(flat * 2.0) + 1.0, features, count
"""

Model = neutral.define(SOURCE).Model

torch.manual_seed(11)
model = Model().eval()
shapes = ((1, 3, 8, 12), (1, 3, 8, 12), (2, 3, 9, 7), (3, 8, 8), (1, 3, 5, 16), (3, 6, 10), (1, 3, 16, 6), (2, 3, 9, 7),
          (3, 8, 8), (1, 3, 2, 3))
neutral.save_case("ladders", model, ((torch.rand(shape),) for shape in shapes),
                  "branches that ranks decide, lists that grow, sizes of others")
