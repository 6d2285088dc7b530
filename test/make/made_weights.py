"""Makes test/data/own/made_weights with PyTorch (1.13 or 2.x): weights that operators make of others.

Run from the root of the project: python3 test/make/made_weights.py
Of a given length (weight_norm), of a mean and deviation (as normalizer-free networks have them) and of a table
at fixed places."""
import torch

import neutral


SOURCE = """\
import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.v = torch.nn.Parameter(torch.randn(24, 12, 3, 3))
        self.g = torch.nn.Parameter(torch.rand(24, 1, 1, 1) + 0.5)
        self.std = torch.nn.Parameter(torch.randn(16, 24, 3, 3))
        self.gain = torch.nn.Parameter(torch.rand(16) * 0.05)
        self.table = torch.nn.Parameter(torch.randn(9, 32))
        self.register_buffer("at", torch.randint(0, 9, (40,)))
        self.scale = torch.nn.Parameter(torch.randn(8, 16, 1, 1))

    def forward(self, x):
        w = self.v * (self.g / self.v.flatten(1).norm(2, [1]).view(24, 1, 1, 1))
        y = torch.relu(F.conv2d(x, w, padding=1))
        s = F.batch_norm(self.std.reshape(1, 16, -1), None, None, self.gain, None, True, 0.0, 1e-6)
        y = torch.relu(F.conv2d(y, s.reshape_as(self.std), padding=1))
        z = F.conv2d(y, self.scale * 0.5)
        rows = torch.index_select(self.table, 0, self.at) * 2.0
        flat = y.flatten(2).mean(1)[:, :32]
        return y, z, torch.tanh(F.linear(flat, rows))
"""
Model = neutral.define(SOURCE).Model

torch.manual_seed(51)
model = torch.jit.script(Model().eval())
for p in model.parameters():
    p.requires_grad_(False)
sizes = [(1, 12, 12), (1, 12, 12), (2, 9, 14)]
neutral.save_case("made_weights", model, ((torch.randn(n, 12, h, w),) for n, h, w in sizes), "weights that operators make of others", 1e-5, 1e-5)
