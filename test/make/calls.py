"""Makes test/data/own/calls: a module with state, and methods for every kind of argument.

    /usr/bin/python3 test/make/calls.py test/data/own/calls

Needs torch 1.13 (Debian: python3-torch). The case runs forward, which adds its argument to what the
module holds; test/unit/api calls the other methods.
"""
import json
import os
import sys
from collections import OrderedDict

import torch
from neutral import define

SOURCE = '''from typing import Dict, List, NamedTuple, Optional, Tuple

import torch


class Point(NamedTuple):
    x: float
    y: int


class Part(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total.add_(x)
        return self.total * 2.0


class Calls(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()
        self.count = 0
        self.names = ["a"]

    def forward(self, x: torch.Tensor) -> Tuple[torch.Tensor, int]:
        self.count += 1
        return (self.part(x) + x, self.count)

    @torch.jit.export
    def number(self, f: float) -> float:
        return f * 2.0

    @torch.jit.export
    def numbers(self, fs: List[float], more: float = 0.5) -> List[float]:
        fs.append(more)
        return fs

    @torch.jit.export
    def ints(self, values: List[int]) -> int:
        values.append(9)
        return len(values)

    @torch.jit.export
    def optional(self, values: Optional[List[int]] = None) -> int:
        if values is None:
            return -1
        return len(values)

    @torch.jit.export
    def point(self, p: Point) -> float:
        return p.x + p.y

    @torch.jit.export
    def table(self, t: Dict[str, List[int]], key: str) -> int:
        return t[key][0]

    @torch.jit.export
    def tensors(self, pair: Tuple[torch.Tensor, Optional[torch.Tensor]]) -> torch.Tensor:
        return pair[0]

    @torch.jit.export
    def spin(self, n: int) -> int:
        s = self.count
        for i in range(n):
            s = s + i % 3
        return s

    @torch.jit.export
    def spin_and_write(self, n: int) -> int:
        for i in range(n):
            self.count = i
        return self.count

    @torch.jit.export
    def spin_and_write_in_place(self, n: int) -> int:
        total = self.part.total
        for i in range(n):
            total.add_(1.0)
        return n

    @torch.jit.export
    def forever(self, n: int) -> int:
        while n > 0:
            n = n + 1
        return n
'''
Calls = define(SOURCE).Calls


def main(folder):
    os.makedirs(folder, exist_ok=True)
    model = Calls().eval()
    torch.jit.script(model).save(os.path.join(folder, "model.pt"))
    sets = [torch.tensor([1.0, 2.0, 3.0]), torch.tensor([0.5, -1.0, 0.25]), torch.ones(3)]
    for i, x in enumerate(sets):
        torch.save((x,), os.path.join(folder, "inputs_%d.pt" % i))
        torch.save(model(x), os.path.join(folder, "expected_%d.pt" % i))
    case = OrderedDict(
        name="calls", category="own", producer="torch 1.13.1", kind="script", method="forward",
        n_cases=len(sets), rtol=1e-5, atol=1e-6, stateful=True, note="test/make/calls.py")
    with open(os.path.join(folder, "case.json"), "w") as f:
        json.dump(case, f, indent=1)
        f.write("\n")


main(sys.argv[1])
