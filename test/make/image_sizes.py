"""Makes test/data/own/image_sizes, up_convolutions and residues with PyTorch (1.13 or 2.x): images of many sizes through one
network.

Run from the root of the project: python3 test/make/image_sizes.py
A picture of 3 channels, steps of 2 one behind the other, windows over one channel, residual sums, a pool with zeros
around, and a mean; and the way back, by transposed convolutions."""
import json
import pathlib

import torch

import neutral


SOURCE = """\
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = torch.nn.Conv2d(3, 16, 5, padding=2, stride=2, bias=False)
        self.stem_norm = torch.nn.BatchNorm2d(16)
        self.expand = torch.nn.Conv2d(16, 48, 1, bias=False)
        self.expand_norm = torch.nn.BatchNorm2d(48)
        self.depth = torch.nn.Conv2d(48, 48, 3, padding=1, stride=2, groups=48)
        self.project = torch.nn.Conv2d(48, 24, 1)
        self.pool = torch.nn.MaxPool2d(3, 2, 1)
        self.a = torch.nn.Conv2d(24, 24, 3, padding=1)
        self.b = torch.nn.Conv2d(24, 24, (1, 3), padding=(0, 2), dilation=2)
        self.last = torch.nn.Conv2d(24, 32, 3, padding=1, stride=2)
        self.line = torch.nn.Linear(32, 10)

    def forward(self, x):
        x = torch.relu(self.stem_norm(self.stem(x)))
        x = torch.relu(self.expand_norm(self.expand(x)))
        x = self.project(torch.nn.functional.hardswish(self.depth(x)))
        x = self.pool(x)
        x = torch.relu(self.b(torch.relu(self.a(x))) + x)
        x = torch.relu(self.last(x))
        return self.line(x.mean([2, 3])), x
"""
Model = neutral.define(SOURCE).Model

torch.manual_seed(22)
module = Model().eval()
for norm in (module.stem_norm, module.expand_norm):
    norm.running_mean.normal_(0, 0.2)
    norm.running_var.uniform_(0.5, 2)
model = torch.jit.script(module)
folder = pathlib.Path("test/data/own/image_sizes")
folder.mkdir(parents=True, exist_ok=True)
model.save(str(folder / "model.pt"))
sizes = [(1, 40, 40), (1, 33, 57), (1, 64, 48), (1, 47, 31), (1, 36, 36), (1, 18, 65)]
with torch.no_grad():
    for i, (n, h, w) in enumerate(sizes):
        inputs = (torch.randn(n, 3, h, w),)
        torch.save(inputs, folder / f"inputs_{i}.pt")
        torch.save(model(*inputs), folder / f"expected_{i}.pt")
(folder / "case.json").write_text(json.dumps({
    "name": "image_sizes", "category": "own", "producer": f"torch {torch.__version__}",
    "method": "forward", "n_cases": len(sizes), "rtol": 1e-5, "atol": 1e-5, "kind": "script",
    "stateful": False, "note": "images of many sizes",
}, indent=1) + "\n")

SOURCE = """\
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.ConvTranspose2d(24, 16, 2, 2)
        self.b = torch.nn.ConvTranspose2d(16, 16, 4, 2, 1, groups=16)
        self.c = torch.nn.ConvTranspose2d(16, 12, (3, 5), (1, 3), 1, (0, 1), groups=2, dilation=(2, 1))

    def forward(self, x):
        x = torch.relu(self.a(x) + 0.5)
        x = torch.relu(self.b(x) * 2)
        return torch.tanh(self.c(x) - 0.5)
"""
model = neutral.define(SOURCE).Model().eval()
for parameter in model.parameters():
    parameter.requires_grad_(False)
neutral.save_case("up_convolutions", model, ((torch.randn(1, 24, *size) * 0.5,) for size in (
    (4, 5), (3, 6), (5, 5), (2, 3), (6, 4))), "transposed convolutions of images of many sizes", 1e-4, 1e-5)

SOURCE = """\
import torch
from torch.nn import Conv2d, ConvTranspose2d, ConvTranspose3d


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = ConvTranspose2d(24, 20, 4, 2, 1)
        self.b = ConvTranspose2d(20, 16, 2, 2)
        self.c = ConvTranspose2d(16, 24, (8, 4), (4, 2), (2, 0), groups=2)
        self.d = ConvTranspose2d(24, 16, 3, 1, 2, dilation=2)
        self.e = ConvTranspose2d(16, 9, 4, 2, 5, bias=False)
        self.f = Conv2d(9, 5, 5, stride=4)
        self.u = ConvTranspose3d(4, 10, (1, 4, 2), (1, 2, 2), (0, 1, 0))
        self.v = ConvTranspose3d(10, 8, 2, 2)
        self.w = torch.nn.Conv3d(8, 3, 3, stride=3)

    def forward(self, x):
        y = x.view(x.shape[0], 4, 6, x.shape[2], x.shape[3])
        x = torch.nn.functional.gelu(self.b(torch.relu(self.a(x) + 0.5)) * 2)
        x = self.e(torch.tanh(self.d(torch.relu(self.c(x)))))
        y = self.w(torch.relu(self.v(torch.sigmoid(self.u(y)))))
        return self.f(torch.relu(x)), y
"""
model = neutral.define(SOURCE, "residues.py").Model().eval()
for parameter in model.parameters():
    parameter.requires_grad_(False)
neutral.save_case("residues", model, ((torch.randn(*size[:1], 24, *size[1:]) * 0.5,) for size in (
    (1, 4, 5), (1, 6, 6), (2, 5, 3), (1, 7, 4), (1, 3, 6))),
    "transposed convolutions by the residues of their places", 1e-4, 1e-5)
