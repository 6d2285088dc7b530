"""Makes test/data/load/packed.pt: a quantised layer, whose weights are an object of a C++ class.

    /usr/bin/python3 test/make/packed.py test/data/load/packed.pt      (torch 1.13)
"""
import sys

import torch
from neutral import define

SOURCE = '''import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.pack = torch.ops.quantized.linear_prepack(
            torch.quantize_per_tensor(torch.ones(2, 3), 0.5, 0, torch.qint8), None)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.quantized.linear_dynamic(x, self.pack)
'''

torch.backends.quantized.engine = "qnnpack"
torch.jit.script(define(SOURCE).Model()).save(sys.argv[1])
