#!/usr/bin/env python3
"""Makes test/data/kernels/families.txt: a few samples of every operator that the other files lack.

Usage: families.py OUTPUT      (with torch 1.13; ops.py tells the format)

Arguments follow from the schemas: tensors of several dtypes and layouts, numbers, text, lists, dicts.
What PyTorch refuses is left out, and so is what is random, has no result or is about devices.
"""
import os
import random
import re
import sys

import torch

import ops
from ops import B8, BF16, C64, F16, F32, F64, I64, U8, values

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
sys.path.append(os.path.join(ROOT, "test", "meta"))
from tree import operator_rows  # noqa: E402
OTHERS = ("ops.txt", "compose.txt", "library.txt", "inner.txt", "models.txt")
SKIP = re.compile(r"rand|bernoulli|normal|uniform|exponential|empty|dropout|seed|autocast|grad|tracing|"
                  r"inference|leaf|warn|Print|device|cuda|cpu|vulkan|data|\bto\b|requires|is_(mps|ipu|xpu|"
                  r"ort|meta|mkl)|format|scripting|as_strided|::hash|prim::(layout|type|id)|uninitialized|"
                  r"_alias|percent|contiguous|::list|::dict|copy_|Delete|Size|::tensor|as_tensor|"
                  r"tolist|sort(ed)?\.(any|t)|\.any|EnumName|EnumValue|_unwrap|masked_fill_|version|"
                  r"rnn|lstm|gru|scatter\.|conv_|AutogradZero|isinstance|"
                  # The place of equal elements, NaN of another sign, or a fault of that version
                  r"aten::(native_batch_norm|masked_fill\.Tensor|pow\.float_complex|pow\.int_to_int)$|"
                  r"log\.\w*_\w*complex|log\.complex_|log\.\w+_complex|shift|can_cast|promote_types|"
                  r"aten::(sort|argsort|argsort\.stable|polar\.\w+|round\.(int|Scalar))$")
LAYOUTS = (lambda d: values(d, (2, 3)), lambda d: values(d, (3,)), lambda d: values(d, (3, 2)).t(),
           lambda d: values(d, ()), lambda d: values(d, (0, 3)), lambda d: values(d, (4, 3))[::2])
ROUNDS = ((F32, 0, 0), (F32, 2, 1), (I64, 0, 1), (B8, 0, 2), (F64, 5, 3), (C64, 0, 1), (F16, 1, 1),
          (BF16, 0, 0), (U8, 2, 0), (F32, 4, 1), (F32, 3, 3))
NUMBERS = {"int": (2, 3, -3, 5), "float": (0.5, 2.0, -1.25, 0.0), "bool": (True, False),
           "str": ("b", "a1", "Ab"), "complex": (1 + 2j, -0.5 + 0j, 2 - 1j),
           "number": (2, 0.5, 3), "Scalar": (2, 0.5, 3)}
rng = random.Random(5)


def argument(formal, turn, nth):
    """The nth argument of its type, in that turn."""
    kind = str(formal.type)
    optional = kind.startswith("Optional[")
    if formal.has_default_value() and (turn < 2 or optional):
        return formal.default_value
    if optional:
        kind = kind[9:-1]
    if kind == "Tensor":
        dtype, first, second = ROUNDS[turn % len(ROUNDS)]
        return LAYOUTS[first if nth == 0 else second](dtype)
    if formal.name == "reduction":
        return turn % 3
    if kind == "int" and formal.name.startswith("dim"):
        return (0, -1)[turn % 2]
    if kind in NUMBERS:
        return NUMBERS[kind][(turn + nth) % len(NUMBERS[kind])]
    if kind.startswith("List["):
        inner = kind[5:-1]
        if inner == "Tensor":
            return [LAYOUTS[0](ROUNDS[turn % len(ROUNDS)][0]) for _ in range(2)]
        if inner == "int" and (formal.name in ("size", "shape")):
            return [2, 2, 3]
        if inner == "int" and formal.name.startswith("dim"):
            return [[0], [1], [0, 1]][turn % 3]
        if inner in ("t", "T"):
            inner = "int"
        return [NUMBERS[inner][(turn + nth + i) % len(NUMBERS[inner])] for i in range(3)]
    if kind.startswith("Dict("):
        key, inner = kind[5:-1].split(", ")
        if inner == "t":
            inner = "int"
        keys = NUMBERS[key][:2]
        if inner == "Tensor":
            return {k: LAYOUTS[1](F32) for k in keys}
        return {k: NUMBERS[inner][(turn + i) % len(NUMBERS[inner])] for i, k in enumerate(keys)}
    if kind in ("t", "tVal", "tKey"):
        return 2
    raise ValueError(kind)


def names():
    """Operators of the tables that no other file has."""
    found = re.findall(r'^KILN_OP\(\s*\w+,\s*"((?:aten|prim)::[^"(]+)\(',
                       operator_rows(lambda path: open(os.path.join(ROOT, path)).read()), re.M)
    have = set()
    for name in OTHERS:
        with open(os.path.join(ROOT, "test", "data", "kernels", name), encoding="utf-8") as f:
            have |= {line.split("\t")[0] for line in f if "\t" in line}
    return [n for n in found if n not in have and not SKIP.search(n)]


def sample(name, most=4):
    got = 0
    try:
        op, _ = ops.call(name, ())
    except (AttributeError, RuntimeError):
        return
    tensors = any("Tensor" in str(a.type) for a in op._schema.arguments)
    for turn in range(len(ROUNDS) if tensors else 4):
        count = len(ops.lines)
        try:
            ops.case(name, *[argument(a, turn, i) for i, a in enumerate(op._schema.arguments)])
        except (ValueError, TypeError, KeyError, NotImplementedError, ZeroDivisionError,
                AssertionError, OverflowError):
            del ops.lines[count:]
        # Errors and operators without a result tell nothing here.
        if len(ops.lines) > count and "\t=\t" not in ops.lines[-1]:
            del ops.lines[count:]
        got += len(ops.lines) - count
        if got == most:
            return


def by_hand():
    """Those whose arguments do not follow from their types."""
    for dtype in (F32, I64, B8, C64, BF16):
        t, u = values(dtype, (2, 3, 4)), values(dtype, (4, 3)).t()
        ops.case("aten::swapaxes", t, 0, -1, strides=True)
        ops.case("aten::moveaxis.int", t, 0, -1, strides=True)
        ops.case("aten::movedim.int", t, 2, 0, strides=True)
        ops.case("aten::moveaxis.intlist", t, [0, 1], [2, 0], strides=True)
        ops.case("aten::narrow.Tensor", t, 2, torch.tensor(1), 2)
        ops.case("aten::index_copy", u, 1, torch.tensor([2, 0]), values(dtype, (3, 2)))
        ops.case("aten::index_fill.int_Scalar", u, -1, torch.tensor([0, 3]), 2)
        ops.case("aten::index_fill.int_Tensor", u, 0, torch.tensor(1), values(dtype, ()))
        ops.case("aten::split.sizes", t, [1, 3], 2)
        ops.case("aten::unsafe_split_with_sizes", t, [1, 2], 1)
        ops.case("aten::tensor_split.sections", t, 3, 2)
        ops.case("aten::tensor_split.indices", u, [1, 2], 1)
        ops.case("aten::as_strided", t, [2, 2], [3, 1], 1)
        ops.case("aten::masked_fill.Tensor", u, values(B8, (3, 1)), values(dtype, ()))
        ops.case("aten::meshgrid", [values(dtype, (2,)), values(dtype, (3,))])
        ops.case("aten::meshgrid.indexing", [values(dtype, (2,)), values(dtype, ())], "xy")
        ops.case("aten::index.Tensor_hacked_twin", u, [torch.tensor([0, 2]), torch.tensor([1, -1])])
        ops.case("aten::index_put.hacked_twin", u, [torch.tensor([0, 2])], values(dtype, (2, 4)), False)
    for dtype in (F32, I64, F16):
        t, index = values(dtype, (3, 4)), torch.tensor([[0, 1, 0, 2]])
        for how in ("add", "multiply"):
            ops.case("aten::scatter.reduce", t, 0, index, values(dtype, (1, 4)), how)
            ops.case("aten::scatter.value_reduce", t, 1, index % 4, 2, how)
        ops.case("aten::clip", t, -1, 2)
        row = torch.arange(7).to(dtype)[torch.tensor([3, 0, 6, 2, 5, 1, 4])]
        for down in (False, True):
            ops.case("aten::sort", row, 0, down)
            ops.case("aten::argsort", row, 0, down)
            ops.case("aten::argsort.stable", t, True, 1, down)
    for dtype in (I64, torch.int32, U8):
        t, by = values(dtype, (2, 3)), torch.tensor([0, 1, 3], dtype=dtype)
        for side in ("left", "right"):
            ops.case("aten::bitwise_%s_shift.Tensor" % side, t, by)
            ops.case("aten::bitwise_%s_shift.Tensor_Scalar" % side, t, 2)
        ops.case("aten::__lshift__.Tensor", t, by)
        ops.case("aten::__rshift__.Tensor", t, by)
    for a in (5, -5, 0):
        ops.case("aten::__lshift__.int", a, 2)
        ops.case("aten::__rshift__.int", a, 1)
    for dtype in (F32, F64):
        for dims in (1, 2, 3):
            t = values(dtype, (1, 2) + (3, 4, 3)[:dims])
            for pad in ([1, 2] * dims, [0, 1] * dims):
                ops.case("aten::replication_pad%dd" % dims, t, pad)
                if dims < 3:
                    ops.case("aten::reflection_pad%dd" % dims, t[0], pad)
    for dtype in (F32, I64):
        ops.case("aten::pixel_shuffle", values(dtype, (1, 8, 2, 3)), 2)
    ops.case("aten::view_as_complex", values(F32, (3, 2)))
    ops.case("aten::conv_transpose3d.input", values(F32, (1, 2, 2, 3, 2)), values(F32, (2, 1, 2, 2, 2)),
             values(F32, (2,)), [1, 2, 1], [0, 1, 0], [0, 1, 0], 2, [1, 1, 1])
    for a in (U8, I64, F16, F32, C64, B8):
        for b in (torch.int8, F64, BF16, B8):
            ops.case("aten::promote_types", a, b)
            ops.case("aten::can_cast", a, b)
    for x, y in ((2.0, 0.5), (1, 2), (2.0, 3), (3, 0.25)):
        names = {(float, float): "float", (int, int): "int", (float, int): "float_int", (int, float): "int_float"}
        ops.case("aten::polar." + names[type(x), type(y)], x, y)
    for x in (0.5, 1.5, -2.5, 2.7):
        ops.case("aten::round.Scalar", x)
    ops.case("aten::round.int", 3)
    ops.case("aten::rindex", "abcab", "ab", 0, -1)
    ops.case("aten::index.str", "abcab", "ca", 0, -1)


def families():
    for name in names():
        sample(name)


if __name__ == "__main__":
    ops.write(sys.argv[1], "families.py", (by_hand, families))
