"""Makes test/data/own/permuted with PyTorch (1.13 or 2.x): rows of channels whose strides are an image's.

Run from the root of the project: python3 test/make/permuted.py
What permute(0, 2, 3, 1) makes of a convolution's result is normalised, multiplied and added to, layer by layer, keeps the
image's strides, is cut into windows whose number is computed as a trace does it, and becomes an image again."""
import torch

import neutral


SOURCE = """\
import torch
import torch.nn.functional as F


class Block(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.first = torch.nn.LayerNorm(size)
        self.second = torch.nn.LayerNorm(size)
        self.mix = torch.nn.Linear(size, size)
        self.wide = torch.nn.Linear(size, 3 * size)
        self.narrow = torch.nn.Linear(3 * size, size)

    def forward(self, x):
        n, h, w, c = x.shape
        y = self.first(x).view(n, h // 4, 4, w // 4, 4, c).permute(0, 1, 3, 2, 4, 5).contiguous()
        y = torch.softmax(self.mix(y.view(-1, 16, c)), 1)
        y = y.view(n, h // 4, w // 4, 4, 4, c).permute(0, 1, 3, 2, 4, 5).contiguous()
        x = x + y.view(n, h, w, c)
        return x + self.narrow(F.gelu(self.wide(self.second(x))))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = torch.nn.Conv2d(3, 24, 3, padding=1)
        self.blocks = torch.nn.Sequential(Block(24), Block(24))
        self.last = torch.nn.Conv2d(24, 16, 3, padding=1)

    def forward(self, x):
        y = F.relu(self.stem(x)).permute(0, 2, 3, 1)
        z = self.blocks(y + 1.0)
        return F.relu(self.last(z.permute(0, 3, 1, 2))), z.mean((1, 2)), z.amax(-1)
"""
Model = neutral.define(SOURCE).Model

torch.manual_seed(61)
module = Model().eval()
sizes = [(1, 16, 16), (2, 8, 20), (1, 12, 24)]
with torch.no_grad():
    model = torch.jit.trace(module, torch.randn(1, 3, 16, 16), check_trace=False)
neutral.save_case("permuted", model, ((torch.randn(n, 3, h, w),) for n, h, w in sizes), "rows of channels whose strides are an image's", 1e-5, 1e-5, kind="trace")
