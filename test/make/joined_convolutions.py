"""Makes test/data/own/joined_convolutions with PyTorch (2.x): sums of convolutions over one image, behind batch norms or
not, of windows that stand in each other or do not, strided, dilated, grouped, of one to three dimensions, beside the
image and other terms; and sums whose parts are read elsewhere, train, or are of several images.

Run from the root of the project: python3 test/make/joined_convolutions.py
"""
import torch
from torch import nn

import neutral


def norm(kind, channels):
    return neutral.drawn_norm(kind(channels))


class Branch(nn.Module):
    def __init__(self, conv):
        super().__init__()
        self.conv = conv
        self.norm = norm(nn.BatchNorm2d, conv.out_channels)

    def forward(self, x):
        return self.norm(self.conv(x))


def branch(*args, **kwargs):
    return Branch(nn.Conv2d(*args, **kwargs))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = branch(6, 8, 1, stride=2)
        self.stem = nn.ModuleList(branch(6, 8, 3, stride=2, padding=1, bias=False) for _ in range(3))
        self.same = norm(nn.BatchNorm2d, 8)
        self.each = nn.ModuleList(branch(8, 8, 3, padding=1, groups=8) for _ in range(2))
        self.large = branch(8, 8, 7, padding=3, groups=8)
        self.small = nn.Conv2d(8, 8, 1, groups=8)
        self.wides = nn.ModuleList(nn.Conv2d(8, 8, (3, 5), padding=(1, 2), groups=2) for _ in range(6))
        self.talls = nn.ModuleList(branch(8, 8, (3, 1), padding=(1, 0), groups=2) for _ in range(7))
        self.apart = nn.Conv2d(8, 8, 3, padding=2, dilation=2, groups=2)
        self.far = nn.ModuleList(nn.Conv2d(8, 8, 3, padding=4, dilation=2, groups=2) for _ in range(2))
        self.valid = nn.ModuleList(nn.Conv2d(8, 8, 3, groups=2) for _ in range(2))
        self.cross = nn.Conv2d(8, 8, (1, 3), padding=(0, 1), groups=2)
        self.line = nn.ModuleList(nn.Conv1d(8, 5, k, padding=k // 2) for k in (5, 3))
        self.volume = nn.ModuleList(nn.Conv3d(2, 3, k, padding=k // 2) for k in (3, 1))
        self.trains = norm(nn.BatchNorm2d, 8).train()
        self.trains.momentum = 0.0

    def forward(self, x):
        out = []
        y = self.scale(x)
        for stem in self.stem:
            y += stem(x)
        y = torch.relu(y)
        wides, talls = iter(self.wides), iter(self.talls)
        out.append(torch.relu(self.same(y) + self.each[0](y) + self.small(y)))
        out.append(torch.relu(self.large(y) + (y + self.each[1](y))))
        out.append(next(wides)(y) + next(talls)(y) + torch.tanh(y))
        out.append(self.apart(y) + next(wides)(y) + next(talls)(y))
        out.append(self.far[0](y) + self.far[1](y))
        out.append(torch.relu(self.valid[0](y)) + self.valid[1](y))
        out.append(self.cross(y) + next(talls)(y))
        out.append(torch.add(next(wides)(y), next(talls)(y), alpha=2))
        a, b = next(wides)(y), next(talls)(y)
        out += [a + b, b.sum()]
        out.append(next(wides)(y) + next(talls)(torch.relu(out[0])))
        out.append(self.trains(next(wides)(y)) + next(talls)(y))
        out.append(torch.relu(self.line[0](y[:, :, 0]) + self.line[1](y[:, :, 0])))
        z = y.view(y.shape[0], 2, 4, y.shape[2], y.shape[3])
        out.append(torch.relu(self.volume[0](z) + self.volume[1](z)))
        return tuple(out)


def calls():
    for n, sizes in enumerate(((1, 14, 17), (1, 14, 17), (1, 14, 17), (2, 9, 12), (2, 9, 12), (1, 30, 9))):
        torch.manual_seed(n)
        yield (torch.randn(sizes[0], 6, *sizes[1:]),)


torch.manual_seed(0)
model = Model()
model.eval()
model.trains.train()
neutral.save_case("joined_convolutions", torch.jit.trace(model, next(calls()), check_trace=False), calls(),
                  "sums of convolutions over one image", 1e-4, 1e-5, kind="trace")
