"""Makes test/data/own/borders with PyTorch (1.13 or 2.x): convolutions of one channel at a time behind others.

Run from the root of the project: python3 test/make/borders.py

Images that may lie with zeros around them: padding of 1, 2 and 3, steps of 1 and 2, two images at once, widths
from 14 pixels on and below; images that others read too, as elements, through the same padding or through another;
and windows that have gaps or no padding.
"""
import torch

import neutral


SOURCE = """\
import torch


class Block(torch.nn.Module):
    def __init__(self, taps: int, stride: int, padding: int, dilation: int):
        super().__init__()
        self.expand = torch.nn.Conv2d(20, 36, 1, bias=False)
        self.norm = torch.nn.BatchNorm2d(36)
        self.window = torch.nn.Conv2d(36, 36, taps, stride, padding, dilation, groups=36, bias=False)
        self.norm2 = torch.nn.BatchNorm2d(36)
        self.project = torch.nn.Conv2d(36, 20, 1)

    def forward(self, x):
        y = torch.nn.functional.hardswish(self.norm(self.expand(x)), inplace=True)
        y = torch.nn.functional.relu(self.norm2(self.window(y)), inplace=True)
        return self.project(y)


class Shared(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.expand = torch.nn.Conv2d(20, 20, 1)
        self.one = torch.nn.Conv2d(20, 20, 3, 1, 1, groups=20)
        self.other = torch.nn.Conv2d(20, 20, 3, 1, 1, groups=20)
        self.wide = torch.nn.Conv2d(20, 20, 5, 1, 2, groups=20)
        self.project = torch.nn.Conv2d(20, 20, 1)

    def forward(self, x):
        y = torch.relu(self.expand(x))
        x = torch.relu(self.project(torch.relu(self.one(y)))) + y
        y = torch.relu(self.expand(x))
        x = torch.relu(self.project(torch.relu(self.one(y)))) + torch.relu(self.other(y)) * y
        y = torch.relu(self.expand(x))
        return torch.relu(self.one(y)) + torch.relu(self.wide(y))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = torch.nn.Conv2d(3, 20, 3, stride=2, padding=1)
        self.first = torch.nn.Conv2d(20, 20, 3, padding=1, groups=20)
        self.same = Block(3, 1, 1, 1)
        self.wide = Block(5, 1, 2, 1)
        self.wider = Block(7, 1, 3, 1)
        self.apart = Block(3, 1, 2, 2)
        self.none = Block(3, 1, 0, 1)
        self.halved = Block(3, 2, 1, 1)
        self.fewer = Block(5, 2, 2, 1)
        self.shared = Shared()
        self.last = torch.nn.AdaptiveAvgPool2d(1)

    def forward(self, x):
        x = torch.relu(self.first(torch.relu(self.stem(x))))
        x = self.same(x) + x
        x = self.wide(x) + x
        x = self.wider(x) + x
        x = self.apart(x) + x
        x = self.shared(x) + x
        a = self.last(self.halved(x))
        b = self.last(self.fewer(x))
        c = self.last(self.none(x))
        return a, b, c
"""
Model = neutral.define(SOURCE).Model

torch.manual_seed(3)
model = Model().eval()
for parameter in model.parameters():
    parameter.requires_grad_(False)
shapes = ((1, 3, 64, 64), (2, 3, 70, 83), (1, 3, 40, 30), (1, 3, 22, 22))
neutral.save_case("borders", model, ((torch.randn(shape),) for shape in shapes),
                  "convolutions of one channel at a time behind others")
