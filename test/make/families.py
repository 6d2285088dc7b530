#!/usr/bin/env python3
"""Makes test/data/kernels/families.txt: a few samples of every operator that the other files lack.

Usage: families.py OUTPUT      (with torch 1.13; ops.py tells the format)

Arguments follow from the schemas: tensors of several dtypes and layouts, numbers, text, lists, dicts.
What PyTorch refuses is left out, and so is what is random, has no result or is about devices.
"""
import glob
import os
import random
import re
import sys

import torch

import ops
from ops import B8, BF16, C64, F16, F32, F64, I64, U8, values

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
OTHERS = ("ops.txt", "compose.txt", "library.txt")
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
    found = []
    for path in sorted(glob.glob(os.path.join(ROOT, "ir", "ops", "*.def"))):
        with open(path, encoding="utf-8") as f:
            found += re.findall(r'^KILN_OP\(\s*\w+,\s*"((?:aten|prim)::[^"(]+)\(', f.read(), re.M)
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


def families():
    for name in names():
        sample(name)


if __name__ == "__main__":
    ops.write(sys.argv[1], "families.py", (families,))
