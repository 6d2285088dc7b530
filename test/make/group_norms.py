"""Makes test/data/own/group_norms with PyTorch (1.13 or 2.x): group norm between convolutions.

Run from the root of the project: python3 test/make/group_norms.py
Of images and volumes, of one group, of as many as there are channels and of some between, with
weights and without, behind an upsampled image and before a residual sum; of images that are large
enough for statistics in several parts; and of a mean that is large beside the deviation."""
import torch

import neutral


SOURCE = """\
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Conv2d(4, 24, 3, padding=1)
        self.norms = torch.nn.ModuleList([torch.nn.GroupNorm(n, 24) for n in (1, 3, 8, 24)])
        self.convs = torch.nn.ModuleList([torch.nn.Conv2d(24, 24, 3, padding=1) for _ in range(4)])
        self.plain = torch.nn.GroupNorm(4, 24, affine=False)
        self.last = torch.nn.Conv2d(24, 8, 1)
        self.space = torch.nn.Conv3d(4, 16, 3, padding=1)
        self.space_norm = torch.nn.GroupNorm(4, 16)
        self.space_last = torch.nn.Conv3d(16, 8, 3, padding=1)

    def forward(self, x):
        y = self.first(x)
        for norm, conv in zip(self.norms, self.convs):
            y = y + conv(torch.nn.functional.silu(norm(y)))
        y = torch.nn.functional.interpolate(y, scale_factor=2.0, mode="nearest")
        z = self.last(torch.relu(self.plain(y)))
        far = self.last(self.plain(y * 0.2 + 2.0))
        box = torch.stack([x, x * 0.5, x - 1.0], 2)
        box = self.space_last(torch.nn.functional.silu(self.space_norm(self.space(box))))
        return y[:, ::6], z, far, box
"""
Model = neutral.define(SOURCE).Model

torch.manual_seed(41)
module = Model().eval()
for layer in module.modules():
    if isinstance(layer, (torch.nn.Conv2d, torch.nn.Conv3d)):
        torch.nn.init.kaiming_normal_(layer.weight)
    if isinstance(layer, torch.nn.GroupNorm) and layer.affine:
        layer.weight.data.uniform_(0.5, 2)
        layer.bias.data.normal_(0, 0.5)
model = torch.jit.script(module)
sizes = [(1, 16, 16), (2, 11, 14), (1, 30, 26)]
neutral.save_case("group_norms", model, ((torch.randn(n, 4, h, w),) for n, h, w in sizes), "group norm between convolutions", 1e-5, 2e-5)
