"""Makes test/data/own/root_hooks with PyTorch: forward hooks of the root and of a module in it.

Run from the root of the project: python3 test/make/hooks.py
"""
import json
import pathlib

import torch

import neutral

SOURCE = """\
from typing import Tuple
import torch


class Scale(torch.nn.Module):
    def forward(self, x: torch.Tensor):
        return x * 2


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = Scale()
        self.calls = 0

    def forward(self, x: torch.Tensor, n: int):
        return self.scale(x) + n


def count(self, input: Tuple[torch.Tensor, int]) -> None:
    self.calls += 1


def widen(self, input: Tuple[torch.Tensor, int]) -> Tuple[torch.Tensor, int]:
    return input[0] * 10, input[1] + self.calls


def look(self, input: Tuple[torch.Tensor, int], output: Tuple[torch.Tensor, int]) -> None:
    if input[1] > 20:
        raise ValueError("n became {}".format(input[1]))


def pair(self, input: Tuple[torch.Tensor, int], output: torch.Tensor) -> Tuple[torch.Tensor, int]:
    return output.relu() - input[0], input[1]


def single(self, input: Tuple[torch.Tensor]) -> torch.Tensor:
    return input[0] + 1


def negate(self, input: Tuple[torch.Tensor], output: torch.Tensor) -> torch.Tensor:
    return -output
"""
module = neutral.define(SOURCE)

torch.manual_seed(0)
folder = pathlib.Path("test/data/own/root_hooks")
folder.mkdir(parents=True, exist_ok=True)
model = module.Model()
model.scale.register_forward_pre_hook(module.single)
model.scale.register_forward_hook(module.negate)
model.register_forward_pre_hook(module.count)
model.register_forward_pre_hook(module.widen)
model.register_forward_hook(module.pair)
model.register_forward_hook(module.look)
torch.jit.script(model).save(str(folder / "model.pt"))
loaded = torch.jit.load(str(folder / "model.pt"))
for i, n in enumerate((0, 3, 40)):
    x = torch.randn(3, 4)
    torch.save((x, n), folder / f"inputs_{i}.pt")
    try:
        torch.save(loaded(x, n), folder / f"expected_{i}.pt")
    except torch.jit.Error as error:
        print(i, error)
case = {
    "name": "root_hooks", "category": "own", "producer": f"torch {torch.__version__}",
    "method": "forward", "n_cases": 3, "rtol": 1e-5, "atol": 1e-6, "kind": "script",
    "stateful": True, "note": "hooks before and after, with and without a result; one counts",
    "raises": [{"input": 2, "contains": "n became 43"}],
}
(folder / "case.json").write_text(json.dumps(case, indent=1) + "\n")
