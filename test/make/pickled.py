"""Makes test/data/pickled: modules whose data.pkl has every kind of value that torch.jit.save
writes, with what PyTorch gives for them.

    python test/make/pickled.py test/data/pickled      (torch 1.13; views_2 and values_2: torch 2.x)

Each module hands its attributes out, so that the check compares what was read.
"""
import json
import os
import sys
from collections import OrderedDict

import torch

from neutral import define

SOURCE = '''import enum
from typing import Dict, List, NamedTuple, Optional, Tuple

import torch


class Color(enum.Enum):
    RED = 1
    GREEN = 2


class Name(enum.Enum):
    A = "a"
    B = "b"


class Point(NamedTuple):
    x: int
    y: torch.Tensor


@torch.jit.script
class Pair:
    def __init__(self, a: int, b: List[int]):
        self.a = a
        self.b = b


@torch.jit.script
class Packed:
    """Its state is another tensor and another number than what it has."""

    def __init__(self, t: torch.Tensor, n: int):
        self.t = t
        self.n = n

    def __getstate__(self) -> Tuple[torch.Tensor, int]:
        return self.t + 1, self.n * 2

    def __setstate__(self, state: Tuple[torch.Tensor, int]) -> None:
        self.t = state[0] - 1
        self.n = state[1] // 2


class Dtypes(torch.nn.Module):
    def __init__(self):
        super().__init__()
        x = torch.tensor([[1.5, -2.25, 3.0], [0.5, 100.0, -7.0]])
        for name in ("float32", "float64", "float16", "bfloat16", "uint8", "int8", "int16", "int32",
                     "int64", "bool", "complex64", "complex128"):
            t = x.abs() if name == "uint8" else x
            self.register_buffer("b_" + name, t.to(getattr(torch, name)))
        self.register_buffer("empty", torch.zeros(0, 3))
        self.register_buffer("scalar", torch.tensor(2.5))
        self.register_buffer("strided", torch.arange(12.0).view(3, 4).t())
        self.register_buffer("expanded", torch.arange(3.0).view(3, 1).expand(3, 4))
        self.register_buffer("offset", torch.arange(12.0)[5:9])
        self.register_buffer("last", torch.arange(24.0).view(1, 2, 3, 4)
                             .contiguous(memory_format=torch.channels_last))

    def forward(self) -> List[torch.Tensor]:
        return [self.b_float32, self.b_float64, self.b_float16, self.b_bfloat16, self.b_uint8,
                self.b_int8, self.b_int16, self.b_int32, self.b_int64, self.b_bool,
                self.b_complex64, self.b_complex128, self.empty, self.scalar, self.strided,
                self.expanded, self.offset, self.last]


class Views(torch.nn.Module):
    def __init__(self):
        super().__init__()
        z = torch.tensor([[1 + 2j, 3 - 4j, 0.5j], [2 + 0j, -1j, 1 + 1j]])
        self.register_buffer("conj", z.conj())
        self.register_buffer("conj_t", z.t().conj())
        self.register_buffer("neg", torch._neg_view(torch.tensor([1.0, -2.0])))
        self.register_buffer("both", torch._neg_view(z.conj()))
        self.register_buffer("plain", z)

    def forward(self) -> List[torch.Tensor]:
        return [self.conj + 0, self.conj_t * 2, self.neg + 0, self.both + 0, self.plain]


class Values(torch.nn.Module):
    counts: Dict[str, int]
    table: Dict[int, torch.Tensor]
    nested: Dict[str, List[int]]
    rows: List[List[int]]
    words: List[str]
    maybe: List[Optional[torch.Tensor]]
    none: Optional[int]
    some: Optional[int]
    empty: List[float]
    no_items: Dict[str, torch.Tensor]
    pairs: List[Tuple[int, str]]

    def __init__(self):
        super().__init__()
        self.counts = {"b": 2, "a": 1, "\\u00e9\\u4e2d": 3}
        self.table = {7: torch.tensor([1, 2]), -3: torch.tensor(4.0)}
        self.nested = {"x": [1, 2], "y": []}
        self.rows = [[1, 2], [], [3]]
        self.words = ["one", "", "tw\\to\\n"]
        self.maybe = [torch.tensor([1.0]), None]
        self.none = None
        self.some = -5
        self.empty = []
        self.no_items = {}
        self.pairs = [(1, "a"), (2, "b")]
        self.i_big = 9223372036854775807
        self.i_low = -9223372036854775808
        self.i_mid = 70000
        self.i_neg = -129
        self.f = 0.1
        self.f_inf = float("inf")
        self.c = complex(1.5, -2.0)
        self.flag = True
        self.ints = [1, 300, 70000, -1, 1 << 40]
        self.floats = [1.0, -0.5]
        self.bools = [True, False]
        self.tensors = [torch.tensor([1, 2]), torch.tensor([3.0])]
        self.t = (1, "a", (2.5, True))

    def forward(self):
        return (self.counts, self.table, self.nested, self.rows, self.words, self.maybe, self.none,
                self.some, self.empty, self.no_items, self.pairs, self.i_big, self.i_low,
                self.i_mid, self.i_neg, self.f, self.f_inf, self.c, self.flag, self.ints,
                self.floats, self.bools, self.tensors, self.t)


class Kinds(torch.nn.Module):
    point: Point

    def __init__(self):
        super().__init__()
        self.device = torch.device("cpu")
        self.dtype = torch.float16
        self.color = Color.GREEN
        self.name = Name.B
        self.point = Point(3, torch.tensor([1.0, 2.0]))

    def forward(self, x: torch.Tensor):
        a = torch.ones(2, dtype=self.dtype, device=self.device)
        return (a, self.color == Color.GREEN, self.color.value, self.name.value, self.name.name,
                self.point.x, self.point.y, x.to(self.device))


class Objects(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.pair = Pair(3, [1, 2])
        self.same = self.pair
        self.packed = Packed(torch.tensor([1.0, 2.0]), 5)

    def forward(self) -> Tuple[int, List[int], torch.Tensor, int]:
        self.pair.b.append(9)
        return self.pair.a, self.same.b, self.packed.t, self.packed.n


class Half(torch.nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.weight = weight

    def forward(self, x):
        return x + self.weight


class Tied(torch.nn.Module):
    """One parameter in two submodules, and buffers that are views of one storage: what is written to
    one shows in the others."""

    def __init__(self):
        super().__init__()
        w = torch.nn.Parameter(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
        self.a = Half(w)
        self.b = Half(w)
        whole = torch.arange(6.0)
        self.register_buffer("whole", whole)
        self.register_buffer("part", whole[2:5])
        self.register_buffer("folded", whole.view(2, 3).t())

    def forward(self, x):
        with torch.no_grad():
            self.a.weight.add_(1.0)
            self.part.mul_(10.0)
        return self.b(x), self.whole + 0, self.folded + 0
'''

CASES = [("dtypes", "Dtypes", lambda: ()), ("views", "Views", lambda: ()),
         ("values", "Values", lambda: ()), ("kinds", "Kinds", lambda: (torch.ones(2),)),
         ("objects", "Objects", lambda: ()), ("tied", "Tied", lambda: (torch.ones(2, 2),))]


def main(folder):
    module = define(SOURCE, "pickled.py")
    for name, cls, inputs in CASES:
        where = os.path.join(folder, name)
        os.makedirs(where, exist_ok=True)
        path = os.path.join(where, "model.pt")
        torch.jit.script(getattr(module, cls)().eval()).save(path)
        with torch.no_grad():
            model = torch.jit.load(path)
            torch.save(inputs(), os.path.join(where, "inputs_0.pt"))
            torch.save(model(*inputs()), os.path.join(where, "expected_0.pt"))
        case = OrderedDict(
            name=name, category="load", producer="torch " + torch.__version__.split("+")[0],
            kind="script", method="forward", n_cases=1, rtol=0, atol=0,
            stateful=name in ("tied", "objects"), note="test/make/pickled.py")
        with open(os.path.join(where, "case.json"), "w") as f:
            json.dump(case, f, indent=1)
            f.write("\n")


main(sys.argv[1])
