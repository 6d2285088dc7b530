"""Makes test/data/own/gathers with PyTorch (1.13 or 2.x): elements at places that data tells, in groups.

Run from the root of the project: python3 test/make/gathers.py

What BERT begins with, three embeddings, their sum and a layer norm, is one kernel. The other groups read along
other dimensions, with indices of either integral dtype, computed ones and negative ones, and what joins no group.
"""
import json
import pathlib

import torch

import neutral


SOURCE = """\
import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words = torch.nn.Parameter(torch.randn(50, 24))
        self.places = torch.nn.Parameter(torch.randn(16, 24))
        self.kinds = torch.nn.Parameter(torch.randn(2, 24))
        self.norm = torch.nn.LayerNorm(24)
        self.table = torch.nn.Parameter(torch.randn(24, 7).t())

    def embed(self, ids, kinds):
        places = torch.arange(ids.size(1)).unsqueeze(0)
        x = F.embedding(ids, self.words) + F.embedding(places, self.places)
        return self.norm(x + F.embedding(kinds, self.kinds))

    def forward(self, ids, kinds, order, x):
        e = self.embed(ids, kinds)
        rows = torch.relu(torch.index_select(x, 0, order) - 0.5)
        columns = torch.index_select(x, 1, order.int()) * 2 + 1
        few = torch.gather(x, 1, kinds * 2 + 1).exp() * 0.5
        flat = torch.tanh(torch.take(x[0], order - order.size(0))) + 1
        turned = torch.sigmoid(F.embedding(ids % 7, self.table) * 3)
        first = F.embedding(ids, self.words)[:, 0] * 2 - 1
        scaled = F.embedding(ids, self.words * 0.5) + 1
        wide = torch.cat([F.embedding(kinds, self.kinds), e], 1).neg()
        halves = torch.index_select((x > 0), 0, order).logical_not()
        middle = (x[:, kinds] * 2 - 1).abs()
        ends = torch.exp(e[:, :, order - order.size(0)]) - 1
        pairs = x[order, order] * 2 + 1
        return e, rows, columns, few, flat, turned, first, scaled, wide, halves, middle, ends, pairs
"""
Model = neutral.define(SOURCE).Model

torch.manual_seed(0)
folder = pathlib.Path("test/data/own/gathers")
folder.mkdir(parents=True, exist_ok=True)
model = Model().eval()
torch.jit.script(model).save(str(folder / "model.pt"))
for i, (batch, length) in enumerate(((2, 5), (3, 16), (2, 9))):
    ids = torch.randint(0, 50, (batch, length))
    kinds = torch.randint(0, 2, (batch, length))
    order = torch.randperm(length)
    x = torch.randn(length, length)
    torch.save((ids, kinds, order, x), folder / f"inputs_{i}.pt")
    with torch.no_grad():
        torch.save(model(ids, kinds, order, x), folder / f"expected_{i}.pt")
case = {
    "name": "gathers", "category": "own", "producer": f"torch {torch.__version__}",
    "method": "forward", "n_cases": 3, "rtol": 1e-5, "atol": 1e-6, "kind": "script",
    "stateful": False, "note": "elements at places that data tells, in groups",
}
(folder / "case.json").write_text(json.dumps(case, indent=1) + "\n")
