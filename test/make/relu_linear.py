"""Makes test/data/own/relu_linear with PyTorch (1.13 or 2.x): the model that docs/ARCHITECTURE.md follows.

Run from the root of the project: python3 test/make/relu_linear.py
"""
import json
import pathlib

import torch

import neutral


SOURCE = """\
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.randn(3, 4))
        self.b = torch.nn.Parameter(torch.randn(4))

    def forward(self, x):
        return torch.relu(x @ self.w + self.b)
"""
Model = neutral.define(SOURCE).Model

torch.manual_seed(0)
folder = pathlib.Path("test/data/own/relu_linear")
folder.mkdir(parents=True, exist_ok=True)
model = Model().eval()
torch.jit.script(model).save(str(folder / "model.pt"))
for i, rows in enumerate((2, 5)):
    x = torch.randn(rows, 3)
    torch.save((x,), folder / f"inputs_{i}.pt")
    with torch.no_grad():
        torch.save(model(x), folder / f"expected_{i}.pt")
case = {
    "name": "relu_linear", "category": "own", "producer": f"torch {torch.__version__}",
    "method": "forward", "n_cases": 2, "rtol": 1e-5, "atol": 1e-6, "kind": "script",
    "stateful": False, "note": "relu(x @ w + b), of docs/ARCHITECTURE.md",
}
(folder / "case.json").write_text(json.dumps(case, indent=1) + "\n")
