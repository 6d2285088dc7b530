"""Makes test/data/own/volumes with PyTorch (1.13 or 2.x): convolutions of volumes between groups.

Run from the root of the project: python3 test/make/volumes.py
Windows of several planes and of one, of one pixel, strided, dilated, grouped and channel by channel,
with batch and instance norm, residuals and pools between; sizes of which some planes of a window read zeros
alone; and the format channels_last_3d, which is told by strides."""
import torch

import neutral


SOURCE = """\
from typing import List

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = torch.nn.Conv3d(3, 24, (3, 5, 5), stride=(1, 2, 2), padding=(1, 2, 2))
        self.stem_norm = torch.nn.BatchNorm3d(24)
        self.a = torch.nn.Conv3d(24, 24, 3, padding=1, bias=False)
        self.a_norm = torch.nn.BatchNorm3d(24)
        self.b = torch.nn.Conv3d(24, 24, 3, padding=1)
        self.each = torch.nn.InstanceNorm3d(24, affine=True)
        self.plane = torch.nn.Conv3d(24, 32, (1, 3, 3), padding=(0, 1, 1))
        self.line = torch.nn.Conv3d(32, 32, (3, 1, 1), padding=(1, 0, 0))
        self.pixel = torch.nn.Conv3d(32, 16, 1)
        self.depth = torch.nn.Conv3d(16, 16, 3, padding=1, groups=16)
        self.grouped = torch.nn.Conv3d(16, 16, 3, padding=2, dilation=2, groups=2)
        self.down = torch.nn.Conv3d(16, 32, 3, stride=2, padding=1)
        self.last = torch.nn.Conv3d(32, 32, 3, padding=1)
        self.pool = torch.nn.MaxPool3d(2)
        self.head = torch.nn.Linear(32, 5)

    def forward(self, x):
        x = torch.relu(self.stem_norm(self.stem(x)))
        y = torch.relu(self.a_norm(self.a(x)))
        x = torch.relu(self.each(self.b(y)) + x)
        x = torch.relu(self.line(torch.relu(self.plane(x))))
        x = torch.relu(self.depth(torch.relu(self.pixel(x))))
        x = torch.relu(self.grouped(x)) + x
        y = torch.relu(self.down(x))
        z = torch.relu(self.last(self.pool(y)))
        z = torch.relu(self.last(z))
        mean = torch.nn.functional.adaptive_avg_pool3d(z, 1).flatten(1)
        turned = x.contiguous(memory_format=torch.channels_last_3d)
        joined = torch.cat([turned, turned * 2.0], 1)
        strides: List[List[int]] = [turned.stride(), joined.stride(), (turned + 1.0).stride(),
                                    torch.zeros_like(turned).stride()]
        last = joined.is_contiguous(memory_format=torch.channels_last_3d)
        return x, y, self.head(mean), strides, last
"""
Model = neutral.define(SOURCE).Model

torch.manual_seed(31)
module = Model().eval()
for conv in module.modules():
    if isinstance(conv, torch.nn.Conv3d):
        torch.nn.init.kaiming_normal_(conv.weight)  # elements stay as large as they are
for norm in (module.stem_norm, module.a_norm):
    norm.running_mean.normal_(0, 0.2)
    norm.running_var.uniform_(0.5, 2)
model = torch.jit.script(module)
sizes = [(1, 8, 24, 24), (2, 5, 18, 27), (1, 4, 41, 17)]
neutral.save_case("volumes", model, ((torch.randn(n, 3, d, h, w),) for n, d, h, w in sizes), "convolutions of volumes between groups", 1e-5, 1e-5)
