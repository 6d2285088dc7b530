"""Makes test/data/own/convolutions with PyTorch (1.13 or 2.x): convolutions that groups take in.

Run from the root of the project: python3 test/make/convolutions.py
Of images of several sizes and batches: with what stands behind them, of one and of several groups,
strided, dilated, padded on one side more than on the other, of 1 to 3 dimensions, transposed, and
with an image that the group reads beside."""
import torch

import neutral


SOURCE = """\
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = torch.nn.Conv2d(3, 16, 3, stride=2, padding=1, bias=False)
        self.stem_norm = torch.nn.BatchNorm2d(16)
        self.expand = torch.nn.Conv2d(16, 48, 1, bias=False)
        self.expand_norm = torch.nn.BatchNorm2d(48)
        self.depth = torch.nn.Conv2d(48, 48, 3, padding=1, groups=48, bias=False)
        self.depth_norm = torch.nn.BatchNorm2d(48)
        self.project = torch.nn.Conv2d(48, 16, 1)
        self.grouped = torch.nn.Conv2d(16, 24, 3, padding=2, dilation=2, groups=4)
        self.wide = torch.nn.Conv2d(24, 8, (1, 4), padding="same")
        self.up = torch.nn.ConvTranspose2d(8, 6, 3, stride=2, padding=1, output_padding=1)
        self.line = torch.nn.Conv1d(8, 8, 5, padding=2)
        self.space = torch.nn.Conv3d(2, 3, 3, padding=1)

    def forward(self, x):
        x = torch.nn.functional.hardswish(self.stem_norm(self.stem(x)))
        y = torch.relu(self.expand_norm(self.expand(x)))
        y = torch.nn.functional.hardtanh(self.depth_norm(self.depth(y)), 0.0, 6.0)
        x = x + self.project(y)
        x = torch.relu(x + 0.1)
        z = torch.relu(self.grouped(x)) * 0.5
        z = torch.sigmoid(self.wide(z))
        u = torch.tanh(self.up(z)) + 1.0
        line = z.flatten(2)
        line = torch.relu(self.line(line) + line)
        box = z.reshape(z.size(0), 2, 4, z.size(2), z.size(3))
        return x, u, line, torch.relu(self.space(box)) - 0.5
"""
Model = neutral.define(SOURCE).Model

torch.manual_seed(12)
module = Model().eval()
for norm in (module.stem_norm, module.expand_norm, module.depth_norm):
    norm.running_mean.normal_(0, 0.2)
    norm.running_var.uniform_(0.5, 2)
model = torch.jit.script(module)
sizes = [(1, 32, 32), (2, 20, 29), (1, 7, 57)]
neutral.save_case("convolutions", model, ((torch.randn(n, 3, h, w),) for n, h, w in sizes), "convolutions that groups take in", 1e-5, 1e-5)
