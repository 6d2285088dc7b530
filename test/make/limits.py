#!/usr/bin/env python3
"""Makes test/data/kernels/limits.txt: numbers at and beyond the limits of integral dtypes, and
tensors of no dimensions where an operator wants one, by PyTorch.

Usage: limits.py OUTPUT      (with torch 2.15, whose clamp knows limits; ops.py tells the format)
"""
import sys

import torch

from ops import I64, INF, NAN, U8, case, write

NUMBERS = (-1, -1.5, 2.5, 255, 255.5, 256, 300, 1e30, NAN, INF)


def numbers():
    for dtype in (U8, torch.int8, torch.int32, I64):
        t, m = torch.tensor([0, 1, 2, 100], dtype=dtype), torch.tensor([True, False, True, True])
        for n in NUMBERS:
            case("aten::masked_fill.Scalar", t, m, n)
            case("aten::threshold", t, n, 1)
            case("aten::threshold", t, 1, n)
            case("aten::addcmul", t, t, t, n)
            if dtype != U8 or n != n or n >= 0:  # the versions' words differ
                case("aten::hardtanh", t, 0, n)
            if isinstance(n, int):
                case("aten::add.Tensor", t, t, n)
                case("aten::clamp", t, n, None)
                case("aten::clamp", t, None, n)


def no_dimensions():
    t = torch.tensor(2.0)
    case("aten::trapezoid.dx", t, 1, -1)
    for n in range(3):
        case("aten::index_select", t, 0, torch.zeros(n, dtype=I64))


if __name__ == "__main__":
    write(sys.argv[1], "limits.py", (numbers, no_dimensions))
