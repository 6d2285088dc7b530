"""Makes test/data/custom with PyTorch 2.x: a model that calls operators of torch.library, which
test/unit/api/custom_op_test.c and examples/custom_op supply to Kiln.

Run from the root of the project: python3 test/make/custom_ops.py
For each call a pair of files: NAME_in.pt (the tuple of arguments) and NAME_out.pt (the result).
"""
import pathlib

import torch

import neutral

lib = torch.library.Library("mine", "DEF")


def define(schema, function):
    lib.define(schema)
    lib.impl(schema.split("(")[0], function, "CPU")


def weighted(xs, weights, bias=None, *, axis=None):
    total = sum(x * w for x, w in zip(xs, weights))
    if bias is not None:
        total = total + bias
    return total if axis is None else total.sum(axis)


def fail(x, why):
    raise ValueError(why)


define("relu_cap(Tensor x, float cap=6.) -> Tensor", lambda x, cap=6.0: x.clamp(0.0, cap))
define("scale(Tensor x, float factor=2.) -> Tensor", lambda x, factor=2.0: x * factor)
define("scale.Tensor(Tensor x, Tensor by) -> Tensor", lambda x, by: x * by)
define("scale.int(Tensor x, int factor, *, bool negate=False) -> Tensor",
       lambda x, factor, negate=False: -x * factor if negate else x * factor)
define("minmax(Tensor x) -> (Tensor low, Tensor high, int count)",
       lambda x: (x.min(), x.max(), x.numel()))
define("add_(Tensor(a!) self, Tensor other) -> Tensor(a!)", lambda a, b: a.add_(b))
define("halves(Tensor x) -> Tensor[]",
       lambda x: [x[:x.size(0) // 2].clone(), x[x.size(0) // 2:].clone()])
define("weighted(Tensor[] xs, float[] weights, Tensor? bias=None, *, int? axis=None) -> Tensor",
       weighted)
define("note(Tensor x) -> Tensor", lambda x: x * 0.5)
define("fail(Tensor x, str why) -> Tensor", fail)

SOURCE = """\
import torch
from typing import List, Tuple


class Custom(torch.nn.Module):
    def forward(self, x, y):
        a = torch.tanh(x * 2.0 + y)
        b = torch.ops.mine.relu_cap(a, cap=0.5)
        c = torch.sigmoid(b * y - 1.0)
        return c + b

    @torch.jit.export
    def overloads(self, x, y):
        a = torch.ops.mine.relu_cap(x)
        b = torch.ops.mine.scale(a) + torch.ops.mine.scale(a, 0.25)
        c = torch.ops.mine.scale(b, y) - torch.ops.mine.scale(b, 3)
        return c + torch.ops.mine.scale(x, 5, negate=True)

    @torch.jit.export
    def several(self, x) -> Tuple[torch.Tensor, int]:
        low, high, count = torch.ops.mine.minmax(x)
        return (x - low) / (high - low), count

    @torch.jit.export
    def in_place(self, x, y):
        a = x * 2.0
        before = a + 1.0
        torch.ops.mine.add_(a, y)
        return before + a * y

    @torch.jit.export
    def lists(self, x, y):
        a = torch.ops.mine.weighted([x, y], [0.25, 0.75])
        b = torch.ops.mine.weighted([x], [2.0], y, axis=0)
        halves = torch.ops.mine.halves(x)
        return a + b, halves[0], halves[1]

    @torch.jit.export
    def noted(self, x, n: int):
        total = x
        for i in range(n):
            total = total + torch.ops.mine.note(x) + torch.ops.mine.note(x)
            total = total - torch.ops.mine.scale(x, 7.0) * torch.ops.mine.scale(x, 7.0)
        return total

    @torch.jit.export
    def constants(self, x):
        return torch.ops.mine.scale(torch.ones([2, 3]), 4.0) + x

    @torch.jit.export
    def fails(self, x):
        return torch.ops.mine.fail(x + 1.0, "no such luck")
"""


def main():
    torch.manual_seed(0)
    folder = pathlib.Path("test/data/custom")
    folder.mkdir(parents=True, exist_ok=True)
    model = torch.jit.script(neutral.define(SOURCE).Custom().eval())
    model.save(str(folder / "model.pt"))
    x, y = torch.randn(4, 3), torch.randn(4, 3)
    wide = (torch.randn(6, 20), torch.randn(6, 20))
    calls = [("forward", "forward", (x, y)), ("forward", "wide", wide),
             ("overloads", "overloads", (x, y)), ("several", "several", (x,)),
             ("in_place", "in_place", (x, y)), ("lists", "lists", (x, y)),
             ("noted", "noted", (x, 3)), ("constants", "constants", (torch.randn(2, 3),))]
    for method, name, args in calls:
        torch.save(args, folder / f"{name}_in.pt")
        with torch.no_grad():
            torch.save(getattr(model, method)(*args), folder / f"{name}_out.pt")


main()
