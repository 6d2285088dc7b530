"""Makes test/data/own/einsum with PyTorch (1.13 or 2.x): products that einsum names.

Run from the root of the project: python3 test/make/einsum.py

Attention by heads with a mask, projections to heads and back with weights of three dimensions, a product of
several summed dimensions, of a diagonal, with an ellipsis, over sizes of 1, and what no kernel has: three
operands, one, and labels of one operand alone.
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
        self.q = torch.nn.Parameter(torch.randn(48, 4, 16) * 0.1)
        self.k = torch.nn.Parameter(torch.randn(48, 4, 16) * 0.1)
        self.v = torch.nn.Parameter(torch.randn(4, 16, 48) * 0.1)
        self.o = torch.nn.Parameter(torch.randn(4, 16, 48) * 0.1)
        self.m = torch.nn.Parameter(torch.randn(40, 48, 48) * 0.1)

    def forward(self, x, y, mask):
        q = torch.einsum('bqc,chd->bqhd', x, self.q)
        k = torch.relu(torch.einsum('...kc,chd->...khd', y, self.k) + 0.5)
        v = torch.einsum('bkc,hdc->bkhd', y, self.v)
        scores = torch.einsum('bqhd,bkhd->bhqk', q, k) * 0.25 + mask
        z = torch.einsum('bhqk,bkhd->bqhd', torch.softmax(scores, -1), v)
        z = torch.einsum('bqhd,hdc->bqc', z, self.o) + x
        diagonal = torch.einsum('bqc,dcc->bqd', x, self.m).tanh()
        both = torch.einsum('bqc,bkc', x, y[:1]) * 2
        three = torch.einsum('bqc,bkc,bkd->bqd', x, y, y) + 1
        alone = torch.einsum('bqc->bc', x).tanh(), torch.einsum('bqc,bkd->bqd', x, y).sin()
        return z, diagonal, both, three, alone
"""
Model = neutral.define(SOURCE).Model

torch.manual_seed(0)
folder = pathlib.Path("test/data/own/einsum")
folder.mkdir(parents=True, exist_ok=True)
model = Model().eval()
for parameter in model.parameters():
    parameter.requires_grad_(False)
torch.jit.script(model).save(str(folder / "model.pt"))
shapes = ((2, 24, 32), (1, 24, 32), (3, 17, 50), (2, 1, 1), (2, 40, 24), (2, 64, 17))
for i, (batch, length, keys) in enumerate(shapes):
    mask = torch.zeros(keys).masked_fill(torch.arange(keys) % 5 == 4, float("-inf"))
    inputs = (torch.randn(batch, length, 48) * 0.3, torch.randn(batch, keys, 48) * 0.3, mask)
    torch.save(inputs, folder / f"inputs_{i}.pt")
    with torch.no_grad():
        torch.save(model(*inputs), folder / f"expected_{i}.pt")
case = {
    "name": "einsum", "category": "own", "producer": f"torch {torch.__version__}",
    "method": "forward", "n_cases": len(shapes), "rtol": 1e-5, "atol": 1e-5, "kind": "script",
    "stateful": False, "note": "products that einsum names, in kernels and not",
}
(folder / "case.json").write_text(json.dumps(case, indent=1) + "\n")
