"""Makes test/data/own/saved: a module with an attribute of every kind that an archive can hold, for
`kiln convert` and kiln_instance_save.

    /usr/bin/python3 test/make/saved.py test/data/own/saved

Needs torch 1.13 (Debian: python3-torch).
"""
import json
import os
import sys
from collections import OrderedDict

import torch
from neutral import define

SOURCE = '''from enum import Enum
from typing import Dict, List, NamedTuple, Optional, Tuple

import torch


class Color(Enum):
    RED = 1
    BLUE = 2


class Counter(torch.nn.Module):
    """Keeps half of what it counts in its state."""

    def __init__(self, n: int):
        super().__init__()
        self.n = n
        self.w = torch.ones(2)

    @torch.jit.export
    def __getstate__(self):
        return (self.n + 100, self.w, self.training)

    @torch.jit.export
    def __setstate__(self, state: Tuple[int, torch.Tensor, bool]):
        self.n = state[0] - 100
        self.w = state[1]
        self.training = state[2]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.n * self.w


class Part(torch.nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.weight = weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.weight


class Saved(torch.nn.Module):
    none: Optional[int]
    some: Optional[List[int]]
    table: Dict[str, torch.Tensor]
    numbers: Dict[int, float]
    words: List[str]
    nested: List[List[int]]
    empty: List[float]
    pair: Tuple[int, str]
    maybe: List[Optional[torch.Tensor]]
    history: List[torch.Tensor]

    def __init__(self):
        super().__init__()
        weight = torch.nn.Parameter(torch.randn(3, 3))
        self.first = Part(weight)
        self.second = Part(weight)
        self.counter = Counter(7)
        big = torch.arange(24, dtype=torch.float64)
        self.register_buffer("rows", big[4:16].view(3, 4))
        self.register_buffer("columns", big[4:16].view(3, 4).t())
        self.register_buffer("nothing", torch.empty(0, 5))
        self.register_buffer("flag", torch.tensor(True))
        self.register_buffer("halves", torch.tensor([0.5, -2.0], dtype=torch.float16))
        self.register_buffer("turn", torch.tensor([1 + 2j, -3j]))
        self.none = None
        self.some = [1, -2, 2 ** 40]
        self.table = {"b": torch.zeros(2), "a": torch.ones(1)}
        self.numbers = {3: 0.1, -1: float("inf")}
        self.words = ["a\\n\\"", "\\u00e9\\u4e2d", ""]
        self.nested = [[1], [], [2, 3]]
        self.empty = []
        self.pair = (-5, "five")
        self.maybe = [None, torch.tensor([4])]
        self.history = []
        self.color = Color.BLUE
        self.where = torch.device("cpu")
        self.z = 1.5 - 2j
        self.steps = 0

    def forward(self, x: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor, List[str], int, int, complex]:
        self.steps += 1
        self.history.append(x)
        self.words.append(str(self.steps))
        self.rows.add_(1.0)
        self.counter.n += 1
        self.table["n" + str(self.steps)] = x.sum()
        y = self.counter(x[:, :2]).sum() + self.second(self.first(x)).sum()
        for v in self.table.values():
            y = y + v.sum()
        if self.color == Color.BLUE:
            y = y * 2
        return y, self.columns.sum(), self.words, len(self.history), self.some_of(), self.z

    def some_of(self) -> int:
        some = self.some
        return -1 if some is None else some[2]
'''
Saved = define(SOURCE).Saved


def main(folder):
    os.makedirs(folder, exist_ok=True)
    torch.manual_seed(3)
    model = torch.jit.script(Saved().eval())
    model.save(os.path.join(folder, "model.pt"), _extra_files={"note.txt": "kept"})
    sets = [torch.randn(2, 3) for _ in range(3)]
    with torch.no_grad():
        for i, x in enumerate(sets):
            torch.save((x,), os.path.join(folder, "inputs_%d.pt" % i))
            result = model(x)
            torch.save((result[0], result[1], list(result[2]), *result[3:]), os.path.join(folder, "expected_%d.pt" % i))
    case = OrderedDict(
        name="saved", category="own", producer="torch 1.13.1", kind="script", method="forward",
        n_cases=len(sets), rtol=1e-5, atol=1e-6, stateful=True, note="test/make/saved.py")
    with open(os.path.join(folder, "case.json"), "w") as f:
        json.dump(case, f, indent=1)
        f.write("\n")


main(sys.argv[1])
