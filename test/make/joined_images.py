"""Makes test/data/own/joined_images with PyTorch (2.x): images that are split, convolved and joined, in the ways that
networks have them: windows of several sizes over parts of the channels (MixNet), branches over one image with pools among
them (Inception), each branch behind the one before (ghost and dense blocks, residual splits); with batch norms and
activations of the whole, which are computed of the parts; and joins that may not be placed: of an image twice, of one
that is read elsewhere or returned, that is written, along rows, of volumes.

Run from the root of the project: python3 test/make/joined_images.py
"""
import torch
from torch import nn
import torch.nn.functional as F

import neutral


def norm(channels):
    return neutral.drawn_norm(nn.BatchNorm2d(channels))


def window(channels, size, stride=1):
    return nn.Conv2d(channels, channels, size, stride, size // 2, groups=channels, bias=size != 5)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 24, 3, 2, 1)
        self.expand = nn.ModuleList(nn.Conv2d(12, n, 1) for n in (20, 28))
        self.norm = norm(48)
        self.mixed = nn.ModuleList(window(n, size, 2) for n, size in ((24, 3), (13, 5), (11, 7)))
        self.mixed_norm = norm(48)
        self.squeeze = nn.Conv2d(48, 48, 1)
        self.one = nn.Conv2d(48, 18, 1)
        self.three = nn.Sequential(nn.Conv2d(48, 10, 1), nn.ReLU(inplace=True), nn.Conv2d(10, 21, 3, padding=1))
        self.pool = nn.Conv2d(48, 7, 1)
        self.whole_norm = norm(46)
        self.ghost = nn.ModuleList((nn.Conv2d(46, 15, 1), window(15, 3)))
        self.dense = nn.ModuleList(nn.Conv2d(n, 8, 3, padding=1) for n in (30, 38))
        self.halves = nn.ModuleList(nn.Conv2d(23, 23, 3, padding=1) for _ in range(2))
        self.wide = nn.ModuleList(nn.Conv2d(46, 64, 3, padding=1) for _ in range(2))
        self.ends = nn.ModuleList(nn.Conv2d(n, 2, 1) for n in (46, 46, 69, 128, 128, 128, 64))
        self.volume = nn.ModuleList(nn.Conv3d(1, n, 3, padding=1) for n in (2, 3))

    def mix(self, x):
        x = torch.cat([conv(part) for conv, part in zip(self.expand, torch.split(x, [12, 12], 1))], 1)
        x = F.silu(self.norm(x))
        parts = torch.split(x, [24, 13, 11], -3)
        x = F.hardswish(self.mixed_norm(torch.cat([self.mixed[i](parts[i]) for i in range(3)], dim=1)))
        return x * torch.sigmoid(self.squeeze(x.mean((2, 3), keepdim=True)))

    def branches(self, x):
        pooled = F.relu(self.pool(F.avg_pool2d(x, 3, 1, 1)))
        return F.relu(self.whole_norm(torch.cat([self.one(x), self.three(x), pooled], 1)))

    def forward(self, x):
        out = []
        x = self.mix(torch.relu(self.stem(x)))
        y = self.branches(x)
        out.append(y)
        first = F.relu(self.ghost[0](y))
        z = torch.cat([first, F.relu(self.ghost[1](first))], 1)
        for conv in self.dense:
            z = torch.cat([z, F.leaky_relu(conv(z), 0.1)], 1)
        out.append(z)
        a, b = torch.chunk(y, 2, 1)
        a = F.relu(self.halves[0](a))
        out.append(torch.cat([a, F.relu(self.halves[1](a + b)), b], 1) * 2)
        wide = torch.cat([torch.tanh(conv(y)) for conv in self.wide], 1)
        out.append(wide + torch.sigmoid(wide))
        twice = self.wide[0](y)
        out.append(torch.cat([twice, twice], 1))
        joined = torch.cat([F.relu(self.wide[0](y)), F.relu(self.wide[1](y))], 1)
        joined[:, 60:70] += 1
        out.append(torch.relu(joined))
        out.append(torch.cat([F.relu(self.wide[0](y)), F.relu(self.wide[1](y))], 2))
        out.append(torch.relu(torch.cat([conv(y[:, :1, None, :, :].expand(-1, -1, 3, -1, -1)) for conv in self.volume], 1)))
        return tuple(end(y) for end, y in zip(self.ends, out)) + tuple(out[len(self.ends):])


def calls():
    for n, sizes in enumerate(((1, 64, 72), (1, 64, 72), (1, 64, 72), (2, 36, 44), (2, 36, 44), (1, 96, 33))):
        torch.manual_seed(n)
        yield (torch.randn(sizes[0], 3, *sizes[1:]),)


torch.manual_seed(0)
model = Model().eval()
neutral.save_case("joined_images", torch.jit.trace(model, next(calls()), check_trace=False), calls(),
                  "images that are split, convolved and joined", 1e-4, 1e-5, kind="trace")
