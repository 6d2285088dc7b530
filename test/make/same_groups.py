"""Makes test/data/own/same_groups with PyTorch: two groups with the same loop IR, one kernel.

Run from the root of the project: python3 test/make/same_groups.py
"""
import json
import pathlib

import torch

import neutral

SOURCE = """\
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        x = torch.relu(x + x)
        return torch.relu(x @ x + x @ x)
"""
Model = neutral.define(SOURCE).Model

torch.manual_seed(0)
folder = pathlib.Path("test/data/own/same_groups")
folder.mkdir(parents=True, exist_ok=True)
torch.jit.script(Model()).save(str(folder / "model.pt"))
x = torch.randn(4, 4)
torch.save((x,), folder / "inputs_0.pt")
torch.save(Model()(x), folder / "expected_0.pt")
case = {
    "name": "same_groups", "category": "own", "producer": f"torch {torch.__version__}",
    "method": "forward", "n_cases": 1, "rtol": 1e-5, "atol": 1e-6, "kind": "script",
    "stateful": False, "note": "two groups, one kernel",
}
(folder / "case.json").write_text(json.dumps(case, indent=1) + "\n")
