"""Makes test/data/own/inline_*: what the text tests of the pass `inline` look at.

Run from the root of the project with PyTorch 1.13: python3 test/make/inline.py
"""
import json
import pathlib

import torch

import neutral

SOURCE = """\
import torch
from torch import Tensor, nn


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(3))

    def forward(self, x):
        return torch.relu(x) + self.w


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def again(self, x: Tensor) -> Tensor:
        return self.inner(x) * 2

    def forward(self, x: Tensor) -> Tensor:
        return self.again(self.inner(x))


class Nested(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def forward(self, x: Tensor, n: int) -> Tensor:
        for i in range(n):
            if i > 1:
                x = self.inner(x)
        return x


@torch.jit.interface
class Step(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pass


class Double(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + x


class Dynamic(nn.Module):
    step: Step

    def __init__(self):
        super().__init__()
        self.step = Double()

    def forward(self, x: Tensor) -> Tensor:
        return self.step.forward(x)
"""
model = neutral.define(SOURCE)

torch.manual_seed(0)
CASES = [("inline_twice", model.Twice(), [()]), ("inline_nested", model.Nested(), [(4,), (1,)]),
         ("inline_dynamic", model.Dynamic(), [()])]
for name, module, extras in CASES:
    folder = pathlib.Path("test/data/own") / name
    folder.mkdir(parents=True, exist_ok=True)
    scripted = torch.jit.script(module.eval())
    scripted.save(str(folder / "model.pt"))
    for i, extra in enumerate(extras):
        inputs = (torch.randn(2, 3),) + extra
        torch.save(inputs, folder / f"inputs_{i}.pt")
        with torch.no_grad():
            torch.save(module(*inputs), folder / f"expected_{i}.pt")
    case = {
        "name": name, "category": "own", "producer": f"torch {torch.__version__}",
        "method": "forward", "n_cases": len(extras), "rtol": 1e-5, "atol": 1e-6,
        "kind": "script", "stateful": False, "note": "for the pass inline",
    }
    (folder / "case.json").write_text(json.dumps(case, indent=1) + "\n")
