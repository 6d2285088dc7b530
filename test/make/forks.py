"""Makes test/data/own/forks with PyTorch 1.13: forked functions that may run at the same time, and
some that may not; test/unit/api/fork_threads_test.c calls the methods beside forward.

Run from the root of the project: /usr/bin/python3 test/make/forks.py
"""
import json
import pathlib

import torch

import neutral


SOURCE = """\
from typing import List

import torch
from torch import Tensor


def steps(x: Tensor, n: int) -> Tensor:
    for i in range(n):
        x = torch.tanh(x * 1.5 + float(i))
    return x


def both(x: Tensor, n: int) -> Tensor:
    left = torch.jit.fork(steps, x, n)
    right = torch.jit.fork(steps, -x, n + 1)
    return torch.jit.wait(left) - torch.jit.wait(right)


def after(x: torch.jit.Future[Tensor], y: Tensor) -> Tensor:
    return torch.jit.wait(x) + y


def must_be_small(x: Tensor) -> Tensor:
    if float(x.max()) > 100.0:
        raise ValueError("too large")
    return x * 2


def note(x: Tensor, seen: List[int], i: int) -> Tensor:
    seen.append(i)
    return x + i


def count(n: int) -> int:
    total = 0
    for i in range(n):
        total += i % 3
    return total


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)
        self.calls = 0

    def forward(self, x: Tensor, n: int) -> Tensor:
        futures: List[torch.jit.Future[Tensor]] = []
        for i in range(n):
            futures.append(torch.jit.fork(steps, x + float(i), i + 1))
        y = self.linear(x)
        nested = torch.jit.fork(both, x, n)
        for future in futures:
            y = y + torch.jit.wait(future)
        return y + torch.jit.wait(nested)

    @torch.jit.export
    def chained(self, x: Tensor, n: int) -> Tensor:
        future = torch.jit.fork(steps, x, n)
        for i in range(n):
            future = torch.jit.fork(after, future, x)
        return torch.jit.wait(future)

    @torch.jit.export
    def small(self, x: Tensor) -> Tensor:
        a = torch.jit.fork(must_be_small, x)
        b = torch.jit.fork(must_be_small, x + 1.0)
        return torch.jit.wait(a) + torch.jit.wait(b)

    @torch.jit.export
    def unwaited(self, x: Tensor) -> Tensor:
        torch.jit.fork(must_be_small, x)
        return x + 1

    @torch.jit.export
    def in_order(self, x: Tensor, n: int) -> List[int]:
        seen: List[int] = []
        futures: List[torch.jit.Future[Tensor]] = []
        for i in range(n):
            futures.append(torch.jit.fork(note, x, seen, i))
            seen.append(-i)
        for future in futures:
            torch.jit.wait(future)
        return seen

    @torch.jit.export
    def counts(self, n: int) -> int:
        a = torch.jit.fork(count, n)
        b = torch.jit.fork(count, n)
        return count(n) + torch.jit.wait(a) + torch.jit.wait(b)
"""
Model = neutral.define(SOURCE).Model

torch.manual_seed(0)
folder = pathlib.Path("test/data/own/forks")
folder.mkdir(parents=True, exist_ok=True)
model = Model().eval()
script = torch.jit.script(model)
script.save(str(folder / "model.pt"))
for i, (rows, n) in enumerate(((2, 3), (5, 6), (2, 0))):
    x = torch.randn(rows, 8)
    torch.save((x, n), folder / f"inputs_{i}.pt")
    with torch.no_grad():
        torch.save(script(x, n), folder / f"expected_{i}.pt")
case = {
    "name": "forks", "category": "own", "producer": f"torch {torch.__version__}",
    "method": "forward", "n_cases": 3, "rtol": 1e-5, "atol": 1e-6, "kind": "script",
    "stateful": False, "note": "test/make/forks.py",
}
(folder / "case.json").write_text(json.dumps(case, indent=1) + "\n")
