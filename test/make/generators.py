"""Makes test/data/own/generators with PyTorch 2.15: generators that a script makes and draws from.

Run from the root of the project: python3 test/make/generators.py
"""
import json
import pathlib

import torch

import neutral

SOURCE = """\
from typing import Dict, List

import torch
from torch import Tensor


class Model(torch.nn.Module):
    def forward(self, x: Tensor, seed: int) -> Dict[str, Tensor]:
        out: Dict[str, Tensor] = {}
        torch.manual_seed(seed)
        fresh = torch.Generator()
        g = torch.Generator(device="cpu", seed=seed)
        out["rand"] = torch.rand([3], generator=g)
        out["global"] = torch.rand([3])
        out["fresh"] = torch.randn([2, 3], generator=fresh)
        out["randn"] = torch.randn([17], generator=g)
        out["randint"] = torch.randint(10, [5], generator=g)
        out["low"] = torch.randint(-3, 10, [5], generator=g)
        out["randperm"] = torch.randperm(9, generator=g)
        out["seeds"] = torch.tensor([fresh.initial_seed(), g.initial_seed()])
        h = g.manual_seed(seed + 1)
        out["uniform"] = torch.empty([4]).uniform_(0.0, 1.0, generator=g)
        out["same"] = torch.empty([4]).normal_(0.0, 1.0, generator=h)
        out["bernoulli"] = torch.bernoulli(torch.sigmoid(x * 0.5), generator=g)
        out["multinomial"] = torch.multinomial(torch.softmax(x, -1), 2, generator=g)
        other = torch.Generator(seed=seed)
        changed = other.seed()
        out["seed"] = torch.tensor([changed == other.initial_seed(), changed == seed])
        out["like"] = torch.rand_like(x, generator=g)
        out["normal_like"] = torch.randn_like(x, generator=g)
        out["int_like"] = torch.randint_like(x, 9, generator=g)
        out["low_like"] = torch.randint_like(x, 3, 9, generator=g)
        out["dropout"] = torch.nn.functional.dropout(x, 0.5, True)
        out["none"] = torch.rand([3], generator=None)
        return out
"""
Model = neutral.define(SOURCE).Model

folder = pathlib.Path("test/data/own/generators")
folder.mkdir(parents=True, exist_ok=True)
script = torch.jit.script(Model().eval())
script.save(str(folder / "model.pt"))
for i, seed in enumerate((0, 7, -5)):
    x = (torch.arange(12.0) / 8 - 0.5 * i).reshape(3, 4)
    torch.save((x, seed), folder / f"inputs_{i}.pt")
    with torch.no_grad():  # each its own: PyTorch folds `fresh`, which then goes on from call to call
        script = torch.jit.load(folder / "model.pt")
        torch.save(script(x, seed), folder / f"expected_{i}.pt")
case = {
    "name": "generators", "category": "own", "producer": f"torch {torch.__version__}",
    "method": "forward", "n_cases": 3, "rtol": 1e-5, "atol": 1e-6, "kind": "script",
    "stateful": False, "note": "test/make/generators.py",
}
(folder / "case.json").write_text(json.dumps(case, indent=1) + "\n")
