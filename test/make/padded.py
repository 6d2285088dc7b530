"""Makes test/data/own/padded with PyTorch (2.x): convolutions behind pads, whose zeros are those of their own padding or
are not: on sides of their own, of numbers and of sizes, negative, of other values, read by others too; and what a trace
computes of sizes in floats ("same" padding of images of any size).

Run from the root of the project: python3 test/make/padded.py
"""
import torch
import torch.nn.functional as F
from torch import nn

import neutral


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(4, 8, 3, stride=2)
        self.each = nn.Conv2d(8, 8, 3, stride=2, groups=8)
        self.wide = nn.Conv2d(8, 8, 5, padding=1, groups=8)
        self.pixel = nn.Conv2d(8, 6, 1)
        self.groups = nn.Conv2d(8, 4, (3, 2), groups=2, dilation=2)
        self.line = nn.Conv1d(4, 3, 4, stride=3)
        self.volume = nn.Conv3d(2, 3, 2)
        self.back = nn.ConvTranspose2d(8, 3, 2, stride=2)

    def same(self, x, taps, stride):
        sides = []
        for size in (x.shape[3], x.shape[2]):
            missing = torch.clamp((torch.ceil(size / stride) - 1) * stride + taps - size, min=0)
            sides += [missing // 2, missing - missing // 2]
        return F.pad(x, sides)

    def forward(self, x):
        out = []
        y = torch.relu(self.first(self.same(x, 3, 2)))
        out.append(y)
        z = F.relu6(self.each(self.same(y, 3, 2)))
        out.append(self.pixel(z))
        z = torch.relu(self.pixel(y).repeat(1, 2, 1, 1)[:, :8])
        out.append(torch.tanh(self.wide(F.pad(z, [0, 1, 2, 1]))))
        out.append(torch.relu(self.each(F.pad(torch.relu(y - 0.25), [1, 2, 0, 1]))) - 1)
        padded = F.pad(y, [1, 0, 3, 2])
        out.append(self.groups(padded))
        out.append(padded * 2)
        out.append(torch.relu(self.groups(F.pad(y, [1, 3, 2, 2], value=0.5))))
        out.append(torch.relu(self.groups(F.pad(y, [-1, 2, 3, 1]))))
        out.append(torch.relu(self.each(F.pad(y, [2, 1, 1, 1, 1, -1]))))
        out.append(torch.relu(self.pixel(F.pad(y, [0, 1]))))
        out.append(torch.relu(self.back(F.pad(y, [1, 0, 0, 1]))))
        out.append(torch.relu(self.line(F.pad(x[:, :, 0], [2, 1]))))
        out.append(torch.relu(self.volume(F.pad(x.view(x.shape[0], 2, 2, x.shape[2], x.shape[3]), [1, 0, 0, 2, 1, 1]))))
        return tuple(out)


def calls():
    for n, sizes in enumerate(((1, 18, 21), (1, 18, 21), (1, 18, 21), (2, 17, 12), (2, 17, 12), (2, 17, 12), (1, 32, 9))):
        torch.manual_seed(n)
        yield (torch.randn(sizes[0], 4, *sizes[1:]),)


torch.manual_seed(0)
model = torch.jit.trace(Model().eval(), next(calls()), check_trace=False)
neutral.save_case("padded", model, calls(), "convolutions behind pads", 1e-4, 1e-5, kind="trace")
