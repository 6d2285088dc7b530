"""Makes test/data/own/products with PyTorch (1.13 or 2.x): products whose weights a kernel has packed.

Run from the root of the project: python3 test/make/products.py
The weight of `scaled` is written in place when `change` is given: what was packed is then another."""
import json
import pathlib

import torch

import neutral


SOURCE = """\
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up = torch.nn.Linear(48, 100)
        self.down = torch.nn.Linear(100, 48, bias=False)
        self.heads = torch.nn.Parameter(torch.randn(3, 48, 20) * 0.1)
        self.register_buffer("scaled", torch.randn(20, 120) * 0.1)
        self.row = torch.nn.Parameter(torch.randn(120))

    def forward(self, x, change: bool):
        if change:
            self.scaled.copy_(self.scaled.flip(0))
        y = x + self.down(torch.nn.functional.gelu(self.up(x)))
        z = torch.relu(torch.matmul(y.unsqueeze(1), self.heads))
        out = torch.addmm(self.row, z[0, 1], self.scaled, beta=0.5, alpha=2.0).tanh()
        if change:
            self.scaled.copy_(self.scaled.flip(0))
        return y, z, out
"""
Model = neutral.define(SOURCE).Model

torch.manual_seed(11)
model = torch.jit.script(Model().eval())
folder = pathlib.Path("test/data/own/products")
folder.mkdir(parents=True, exist_ok=True)
model.save(str(folder / "model.pt"))
calls = [((2, 9), False), ((2, 9), True), ((2, 9), False), ((3, 4), False), ((1, 17), True),
         ((1, 1), False)]
with torch.no_grad():
    for i, (size, change) in enumerate(calls):
        inputs = (torch.randn(*size, 48), change)
        torch.save(inputs, folder / f"inputs_{i}.pt")
        torch.save(model(*inputs), folder / f"expected_{i}.pt")
(folder / "case.json").write_text(json.dumps({
    "name": "products", "category": "own", "producer": f"torch {torch.__version__}",
    "method": "forward", "n_cases": len(calls), "rtol": 1e-5, "atol": 1e-5, "kind": "script",
    "stateful": False, "note": "products with weights that a kernel packs",
}, indent=1) + "\n")
