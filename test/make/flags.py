"""Makes test/data/own/flags with PyTorch: what a module's bool attributes decide, in eval mode.

Run from the root of the project: python3 test/make/flags.py
"""
import json
import pathlib

import torch

import neutral

SOURCE = """\
import torch


class Part(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(3)
        self.negate = False

    def forward(self, x):
        x = torch.relu_(self.norm(x * 2))
        if self.negate:
            x = -x
        return x


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Part()
        self.second = Part()

    def forward(self, x):
        return self.second(self.first(x))
"""
Model = neutral.define(SOURCE).Model

torch.manual_seed(0)
folder = pathlib.Path("test/data/own/flags")
folder.mkdir(parents=True, exist_ok=True)
model = Model()
with torch.no_grad():
    for part in (model.first, model.second):
        part.norm.running_mean.copy_(torch.tensor([0.5, -1, 2]))
        part.norm.running_var.copy_(torch.tensor([1, 4, 0.25]))
        part.norm.weight.copy_(torch.tensor([1.5, -1, 0.5]))
        part.norm.bias.copy_(torch.tensor([0.25, 0.5, -0.125]))
    model.eval()
    script = torch.jit.script(model)
    script.save(str(folder / "model.pt"))
    for i in range(2):
        x = torch.randn(4, 3)
        torch.save((x,), folder / f"inputs_{i}.pt")
        torch.save(model(x), folder / f"expected_{i}.pt")
case = {
    "name": "flags", "category": "own", "producer": f"torch {torch.__version__}",
    "method": "forward", "n_cases": 2, "rtol": 1e-5, "atol": 1e-6, "kind": "script",
    "stateful": False, "note": "flags as constants: batch norm in eval mode, one kernel",
}
(folder / "case.json").write_text(json.dumps(case, indent=1) + "\n")
