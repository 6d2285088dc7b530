"""Makes test/data/own/narrow_groups with PyTorch (1.13 or 2.x): convolutions of groups of few channels.

Run from the root of the project: python3 test/make/narrow_groups.py
Groups of 2, 4, 8 and 16 channels with steps of 1 and 2 and with and without padding, where channels are whole vectors
and where they are not; residuals, a concatenation and norms behind them; dilated windows; and pixels that a reshape
has put into another order in front of windows."""
import torch

import neutral


SOURCE = """\
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = torch.nn.Conv2d(3, 32, 3, stride=2, padding=1)
        self.fours = torch.nn.Conv2d(32, 32, 3, padding=1, groups=8, bias=False)
        self.norm = torch.nn.BatchNorm2d(32)
        self.wide = torch.nn.Conv2d(32, 40, 1)
        self.eights = torch.nn.Conv2d(40, 40, 3, stride=2, padding=1, groups=5)
        self.more = torch.nn.Conv2d(40, 48, 1)
        self.sixteens = torch.nn.Conv2d(48, 48, 3, padding=1, groups=3)
        self.twos = torch.nn.Conv2d(96, 96, 3, padding=2, groups=48)
        self.last = torch.nn.Conv2d(96, 32, 1)
        self.apart = torch.nn.Conv2d(32, 32, 3, padding=2, dilation=2)
        self.farther = torch.nn.Conv2d(32, 32, 3, padding=(3, 1), dilation=(3, 2))
        self.folded = torch.nn.Conv2d(32, 24, 3, padding=1)

    def forward(self, x):
        x = torch.relu(self.stem(x))
        x = torch.relu(self.norm(self.fours(x)) + x)
        x = torch.relu(self.eights(torch.relu(self.wide(x))))
        y = torch.relu(self.more(x))
        x = torch.cat([y, torch.relu(self.sixteens(y))], 1)
        x = torch.relu(self.last(torch.relu(self.twos(x))))
        z = torch.relu(self.apart(x)) + x
        w = torch.relu(self.farther(z))
        n, c, h, v = z.shape
        parts = z.reshape(n, c, h // 2, 2, v // 2, 2).permute(0, 1, 3, 2, 5, 4)
        turned = parts.reshape(n, c, h, v)
        return w, torch.relu(self.folded(turned))
"""
Model = neutral.define(SOURCE).Model

torch.manual_seed(47)
module = Model().eval()
for conv in module.modules():
    if isinstance(conv, torch.nn.Conv2d):
        torch.nn.init.kaiming_normal_(conv.weight)  # elements stay as large as they are
neutral.drawn_norm(module.norm)
model = torch.jit.script(module)
sizes = [(1, 32, 32), (2, 45, 37), (1, 29, 62)]
neutral.save_case("narrow_groups", model, ((torch.randn(n, 3, h, w),) for n, h, w in sizes),
                  "convolutions of groups of few channels, and dilated ones", 1e-5, 1e-4)
