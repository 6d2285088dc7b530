"""Makes test/data/own/tuple_item with PyTorch: a tuple indexed by a number that a run finds.

Run from the root of the project: python3 test/make/tuple_item.py
"""
import json
import pathlib

import torch

import neutral

SOURCE = """\
from typing import Tuple
import torch


class Model(torch.nn.Module):
    def forward(self, x: Tuple[torch.Tensor, torch.Tensor, torch.Tensor], i: int):
        sizes = (3, 5, 7)
        y = torch.relu(x[i] + sizes[i])
        return y * x[i - 1], sizes[-i]
"""
Model = neutral.define(SOURCE).Model

torch.manual_seed(0)
folder = pathlib.Path("test/data/own/tuple_item")
folder.mkdir(parents=True, exist_ok=True)
model = torch.jit.script(Model())
model.save(str(folder / "model.pt"))
x = tuple(torch.randn(4) for _ in range(3))
for n, i in enumerate((0, 2, -2)):
    torch.save((x, i), folder / f"inputs_{n}.pt")
    torch.save(model(x, i), folder / f"expected_{n}.pt")
torch.save((x, 3), folder / "inputs_3.pt")
try:
    model(x, 3)
except RuntimeError as error:
    print(error)
case = {
    "name": "tuple_item", "category": "own", "producer": f"torch {torch.__version__}",
    "method": "forward", "n_cases": 4, "rtol": 1e-5, "atol": 1e-6, "kind": "script",
    "stateful": False, "note": "elements of one type are picked by any int",
    "raises": [{"input": 3, "contains": "out of range"}],
}
(folder / "case.json").write_text(json.dumps(case, indent=1) + "\n")
