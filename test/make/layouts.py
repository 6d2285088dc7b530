"""Makes test/data/own/layouts with PyTorch (1.13 or 2.x): what lies channels last between groups.

Run from the root of the project: python3 test/make/layouts.py
Windows of 3 x 3 of step 1, with a bias, with what stands behind them and alone, of images of odd
sizes and several batches (Winograd's kernels where they are wide enough); residual sums from inside
and outside, steps, windows over one channel, squeeze and excite, a pool, a concatenation, channels
that are shuffled, and operators without a lowering between and behind."""
import torch

import neutral


SOURCE = """\
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = torch.nn.Conv2d(16, 32, 3, padding=1)
        self.a = torch.nn.Conv2d(32, 32, 3, padding=1, bias=False)
        self.a_norm = torch.nn.BatchNorm2d(32)
        self.b = torch.nn.Conv2d(32, 48, 3, padding=1, stride=2, bias=False)
        self.b_norm = torch.nn.BatchNorm2d(48)
        self.c = torch.nn.Conv2d(48, 48, 3, padding=2, bias=False)
        self.c_norm = torch.nn.BatchNorm2d(48)
        self.down = torch.nn.Conv2d(32, 48, 1, stride=2, bias=False)
        self.down_norm = torch.nn.BatchNorm2d(48)
        self.depth = torch.nn.Conv2d(48, 48, 5, padding=1, stride=2, groups=48)
        self.squeeze = torch.nn.Conv2d(48, 12, 1)
        self.excite = torch.nn.Conv2d(12, 48, 1)
        self.project = torch.nn.Conv2d(96, 24, 1)
        self.grouped = torch.nn.Conv2d(24, 32, 3, groups=2)
        self.line = torch.nn.Linear(32, 10)

    def forward(self, x):
        x = x.relu()
        y = torch.relu(self.stem(x)) + x.repeat(1, 2, 1, 1)
        y = torch.relu(self.a_norm(self.a(y)) + y)
        z = torch.relu(self.b_norm(self.b(y)))
        z = torch.relu(self.c_norm(self.c(z))[:, :, 1:-1, 1:-1] + self.down_norm(self.down(y)))
        d = torch.nn.functional.hardswish(self.depth(z))
        e = torch.nn.functional.adaptive_avg_pool2d(d, 1)
        d = d * torch.nn.functional.hardsigmoid(self.excite(torch.relu(self.squeeze(e))))
        p = torch.nn.functional.max_pool2d(z, 2)[:, :, : d.size(2), : d.size(3)]
        d = d[:, :, : p.size(2), : p.size(3)]
        g = torch.cat([d, p], 1)
        n, c, h, w = g.size(0), g.size(1), g.size(2), g.size(3)
        g = g.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w)
        g = torch.relu(self.project(g))
        s = torch.sort(g, 1)[0]
        g = torch.relu(self.grouped(g) * 2.0)
        return self.line(g.mean([2, 3])), s, y
"""
Model = neutral.define(SOURCE).Model

torch.manual_seed(21)
module = Model().eval()
for norm in (module.a_norm, module.b_norm, module.c_norm, module.down_norm):
    norm.running_mean.normal_(0, 0.2)
    norm.running_var.uniform_(0.5, 2)
model = torch.jit.script(module)
sizes = [(1, 32, 32), (2, 30, 27), (1, 47, 50)]
neutral.save_case("layouts", model, ((torch.randn(n, 16, h, w),) for n, h, w in sizes), "what lies channels last between groups", 1e-5, 1e-5)
