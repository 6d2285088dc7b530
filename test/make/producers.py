#!/usr/bin/env python3
"""Makes a case of test/data/versions in which the producer decides: operators whose results 1.13 and
2.15 have otherwise, and which an archive from before 2.1 (it has no record `byteorder`) means as then.

Usage: producers.py OUTPUT      (producer_1_13 with torch 1.13, producer_2_15 with torch 2.15)
"""
import json
import os
import sys
from typing import List

import torch


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> List[torch.Tensor]:
        low, high = torch.aminmax(x, dim=0, keepdim=True)
        left, right = torch.aminmax(y, dim=1, keepdim=True)
        least, most = torch.aminmax(x)
        return [low, high, left, right, least, most, y.mT]


class Early(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> List[torch.Tensor]:
        low, high = torch.aminmax(x, dim=0, keepdim=True)
        left, right = torch.aminmax(y, dim=1, keepdim=True)
        least, most = torch.aminmax(x)
        return [low, high, left, right, least, most, y.mT, x.mT]


def main(folder):
    model = torch.jit.script((Early if torch.__version__.startswith("1.") else Model)().eval())
    inputs = (torch.tensor(2.5), torch.tensor([[1.0, 3], [-2, 0]]))
    os.makedirs(folder, exist_ok=True)
    model.save(os.path.join(folder, "model.pt"))
    torch.save(inputs, os.path.join(folder, "inputs_0.pt"))
    torch.save(model(*inputs), os.path.join(folder, "expected_0.pt"))
    case = {"name": os.path.basename(folder), "category": "load", "producer": "torch " + torch.__version__,
            "kind": "script", "method": "forward", "n_cases": 1, "rtol": 0, "atol": 0, "stateful": False,
            "note": "test/make/producers.py"}
    with open(os.path.join(folder, "case.json"), "w", encoding="utf-8") as f:
        json.dump(case, f, indent=1)
        f.write("\n")


if __name__ == "__main__":
    main(sys.argv[1])
