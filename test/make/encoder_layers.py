"""Makes test/data/own/encoder_layers with PyTorch (1.13 or 2.x): one operator that is a network.

Run from the root of the project: python3 test/make/encoder_layers.py

What nn.TransformerEncoderLayer and nn.MultiheadAttention call when they do not train: layers with both
activations, norms first and last, self-attention with and without a mask that is given when it runs, and a
batch of nested tensors, for which the operator stays.
"""
import json
import pathlib

import torch

import neutral


SOURCE = """\
import torch
from typing import List, Optional


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.randn(48, 16) * 0.3)
        self.b = torch.nn.Parameter(torch.randn(48))
        self.p = torch.nn.Parameter(torch.randn(16, 16) * 0.3)
        self.c = torch.nn.Parameter(torch.randn(16))
        self.g = torch.nn.Parameter(torch.rand(16) + 0.5)
        self.f = torch.nn.Parameter(torch.randn(40, 16) * 0.3)
        self.d = torch.nn.Parameter(torch.randn(40))
        self.h = torch.nn.Parameter(torch.randn(16, 40) * 0.3)

    def layer(self, x, gelu: bool, first: bool, mask: Optional[torch.Tensor], kind: Optional[int]):
        return torch._transformer_encoder_layer_fwd(
            x, 16, 4, self.w, self.b, self.p, self.c, gelu, first, 1e-5, self.g, self.c, self.g, self.c, self.f,
            self.d, self.h, self.c, mask, kind)

    def attend(self, x, mask: Optional[torch.Tensor], kind: Optional[int]):
        return torch._native_multi_head_attention(
            x, x, x, 16, 2, self.w, self.b, self.p, self.c, mask, False, True, kind)[0]

    def forward(self, x, mask: Optional[torch.Tensor], lengths: Optional[torch.Tensor]):
        kind: Optional[int] = None
        if mask is not None:
            kind = 1
        y = torch.tanh(self.layer(x, True, False, None, None))
        y = self.layer(y, False, True, None, None) * 0.5
        z = self.attend(torch.relu(x), mask, kind) + 1
        if lengths is not None:
            nested = torch._nested_tensor_from_mask(x, lengths)
            return y, z, self.layer(nested, True, True, None, None).to_padded_tensor(0.0)
        return y, z, self.layer(x, False, False, None, None)
"""
Model = neutral.define(SOURCE).Model

torch.manual_seed(0)
folder = pathlib.Path("test/data/own/encoder_layers")
folder.mkdir(parents=True, exist_ok=True)
model = Model().eval()
for parameter in model.parameters():
    parameter.requires_grad_(False)
torch.jit.script(model).save(str(folder / "model.pt"))
shapes = ((2, 5, ""), (2, 5, "nested"), (2, 5, "mask"), (1, 40, ""), (2, 5, "nested"), (3, 17, ""))
for i, (batch, length, what) in enumerate(shapes):
    x = torch.randn(batch, length, 16)
    hidden = torch.zeros(batch, length, dtype=torch.bool)
    hidden[1:, 3:] = True
    inputs = (x, hidden if what == "mask" else None, ~hidden if what == "nested" else None)
    torch.save(inputs, folder / f"inputs_{i}.pt")
    with torch.no_grad():
        torch.save(model(*inputs), folder / f"expected_{i}.pt")
case = {
    "name": "encoder_layers", "category": "own", "producer": f"torch {torch.__version__}",
    "method": "forward", "n_cases": len(shapes), "rtol": 1e-5, "atol": 1e-5, "kind": "script",
    "stateful": False, "note": "operators that are networks: attention, encoder layers",
}
(folder / "case.json").write_text(json.dumps(case, indent=1) + "\n")
