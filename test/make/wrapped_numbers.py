"""Makes test/data/own/wrapped_numbers with PyTorch: numbers that a trace keeps as tensors.

Run from the root of the project: python3 test/make/wrapped_numbers.py

Some meet what is constant, so that folding them decides on dtypes; some tensors only look like them.
The expected results are those of PyTorch's executor with the loaded archive.
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
        self.register_buffer("scale", torch.tensor(0.25, dtype=torch.float64))

    def forward(self, ints, halves, floats, complexes):
        n = torch.arange(0, 8, 2)
        out = [torch.exp(n * (-9.2 / 8)), n * 0.5 + ints.sum(), (n + 1.5) / torch.arange(1, 5),
               n - 0.5, n / 2, n + 2j, 0.5 + n, 0.5 - n, 1.5 / (n + 1), (n + 1) // 2.5,
               torch.ones(4, dtype=torch.int64) * torch.tensor(0.5, dtype=torch.float64).neg(),
               n * self.scale, self.scale * n]
        for x in (ints, halves, floats, complexes):
            out += [x * 0.5, x + 2, x - 2.5, x / 3, x * 2j, 0.5 * x + 1, x.clone().add_(1),
                    x * torch.tensor(0.5, dtype=torch.float64).neg(), x * self.scale]
        return tuple(out)
"""
Model = neutral.define(SOURCE).Model

folder = pathlib.Path("test/data/own/wrapped_numbers")
folder.mkdir(parents=True, exist_ok=True)
n = torch.arange(1, 7).reshape(2, 3)
inputs = (n, n.half() / 2, n.float() / 4, n.to(torch.complex64) / 4)
path = str(folder / "model.pt")
torch.jit.trace(Model(), inputs).save(path)
loaded = torch.jit.load(path)
expected = [loaded(*inputs) for _ in range(4)]
for other in expected[1:]:
    assert [t.dtype for t in other] == [t.dtype for t in expected[0]]
torch.save(inputs, folder / "inputs_0.pt")
torch.save(expected[0], folder / "expected_0.pt")
case = {
    "name": "wrapped_numbers", "category": "own", "producer": f"torch {torch.__version__}",
    "method": "forward", "n_cases": 1, "rtol": 1e-6, "atol": 1e-6, "kind": "trace",
    "stateful": False, "note": "numbers that a trace keeps as tensors, and tensors that look so",
}
(folder / "case.json").write_text(json.dumps(case, indent=1) + "\n")
