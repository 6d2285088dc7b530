"""Makes test/data/own/mlp: a scripted MLP with its inputs and the results that PyTorch gives.

    /usr/bin/python3 test/make/mlp.py test/data/own/mlp

Needs torch 1.13 (Debian: python3-torch). The input sets are batches of 4, 9 and 1, so that new shapes
occur. The tolerance stands well above the distance to the same model in double precision.
"""
import json
import os
import sys
from collections import OrderedDict

import torch

from neutral import define

SOURCE = '''import torch


class Block(torch.nn.Module):
    """Linear layers by mm with a pointwise tail: gelu by hand, dropout switched off, a scale."""

    def __init__(self, n_in, n_out):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(n_in, n_out) / n_in ** 0.5)
        self.bias = torch.nn.Parameter(torch.randn(n_out) * 0.1)
        self.scale = torch.nn.Parameter(torch.rand(n_out) + 0.5)

    def forward(self, x):
        h = torch.mm(x, self.weight) + self.bias
        g = 0.5 * h * (1.0 + torch.tanh(0.79788456 * (h + 0.044715 * h * h * h)))
        return g * self.scale


class MLP(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Block(13, 32)
        self.second = Block(32, 32)
        self.last = Block(32, 5)

    def forward(self, x):
        h = self.first(x)
        h = self.second(h) + h
        y = self.last(h)
        return torch.sigmoid(y) * 2.0 - torch.exp(-y * y)
'''
MLP = define(SOURCE).MLP


def main(folder):
    os.makedirs(folder, exist_ok=True)
    torch.manual_seed(20)
    model = MLP().eval()
    script = torch.jit.script(model)
    script.save(os.path.join(folder, "model.pt"))
    sizes = [4, 9, 1]
    far = 0.0
    for i, n in enumerate(sizes):
        x = torch.randn(n, 13)
        with torch.no_grad():
            want = model(x)
            exact = MLP().double()
            exact.load_state_dict(model.state_dict())
            far = max(far, float((exact(x.double()) - want).abs().max()))
        torch.save((x,), os.path.join(folder, "inputs_%d.pt" % i))
        torch.save(want, os.path.join(folder, "expected_%d.pt" % i))
    case = OrderedDict(
        name="mlp", category="own", producer="torch 1.13.1", kind="script",
        method="forward", n_cases=len(sizes), rtol=1e-4, atol=1e-5, stateful=False,
        note="test/make/mlp.py", f64_dev={"abs": float("%.3g" % far)})
    with open(os.path.join(folder, "case.json"), "w") as f:
        json.dump(case, f, indent=1)
        f.write("\n")


main(sys.argv[1])
