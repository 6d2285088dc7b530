"""Makes test/data/own/layouts_refused with PyTorch: operators that no sparse or nested tensor knows.

Run from the root of the project: PYTHON test/make/refused.py      (torch 2.15)
"""
import json
import pathlib

import torch

import neutral

SOURCE = """\
import torch


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor, which: int):
        y = torch.sigmoid(x * 2.0 + 1.0)
        sparse = x.to_sparse()
        nested = torch._nested_tensor_from_mask(x.unsqueeze(2), x > 0)
        if which == 1:
            return torch.cumsum(sparse, 0)
        elif which == 2:
            return torch.cumsum(nested, 0)
        elif which == 3:
            return torch.stack([x, sparse])
        return sparse.to_dense() + nested.to_padded_tensor(0.0, [2, 3, 1]).squeeze(2) * y
"""
WORDS = {1: "'aten::cumsum' with arguments from the 'SparseCPU' backend",
         2: "'aten::cumsum' with arguments from the 'NestedTensorCPU' backend", 3: ""}
torch.manual_seed(0)
folder = pathlib.Path("test/data/own/layouts_refused")
folder.mkdir(parents=True, exist_ok=True)
torch.jit.script(neutral.define(SOURCE).Model()).save(str(folder / "model.pt"))
loaded = torch.jit.load(str(folder / "model.pt"))
raises = []
for i, which in enumerate((0, 1, 2, 3, 0)):
    x = torch.tensor([[1.0, 2.0, 3.0], [4.0, -5.0, -6.0]])
    torch.save((x, which), folder / f"inputs_{i}.pt")
    try:
        torch.save(loaded(x, which), folder / f"expected_{i}.pt")
    except RuntimeError as error:
        assert WORDS[which] in str(error), error
        raises.append({"input": i, "contains": WORDS[which] or "'SparseCPU' backend"})
case = {
    "name": "layouts_refused", "category": "own", "producer": f"torch {torch.__version__}",
    "method": "forward", "n_cases": 5, "rtol": 1e-5, "atol": 1e-6, "kind": "script",
    "note": "what a sparse or nested tensor is not known to refuses it by name",
    "raises": raises,
}
(folder / "case.json").write_text(json.dumps(case, indent=1) + "\n")
