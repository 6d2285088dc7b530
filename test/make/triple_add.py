"""Makes test/data/own/triple_add with PyTorch: x + x + x, which must be one kernel.

Run from the root of the project: python3 test/make/triple_add.py
"""
import json
import pathlib

import torch

import neutral

SOURCE = """\
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x + x + x
"""
Model = neutral.define(SOURCE).Model

torch.manual_seed(0)
folder = pathlib.Path("test/data/own/triple_add")
folder.mkdir(parents=True, exist_ok=True)
torch.jit.script(Model()).save(str(folder / "model.pt"))
x = torch.randn(4, 4)
torch.save((x,), folder / "inputs_0.pt")
torch.save(x + x + x, folder / "expected_0.pt")
case = {
    "name": "triple_add", "category": "own", "producer": f"torch {torch.__version__}",
    "method": "forward", "n_cases": 1, "rtol": 0, "atol": 0, "kind": "script",
    "stateful": False, "note": "two adds, one kernel",
}
(folder / "case.json").write_text(json.dumps(case, indent=1) + "\n")
