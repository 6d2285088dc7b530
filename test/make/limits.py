#!/usr/bin/env python3
"""Makes test/data/kernels/limits.txt: numbers at and beyond the limits of dtypes, tensors of no
dimensions where an operator wants one, indices that do not fit, half floats among others, by PyTorch.

Usage: limits.py OUTPUT      (with torch 2.15, whose clamp knows limits; ops.py tells the format)
"""
import sys

import torch

from ops import BF16, C128, F16, F32, F64, I64, INF, NAN, U8, case, write

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
    a, b = torch.tensor([True, False, False, True]), torch.tensor([True, True, False, False])
    for n in (0, -1, 2, 256, True, False):
        case("aten::add.Tensor", a, b, n)
        case("aten::add.Scalar", a, True, n)


def floats():
    """Numbers that a dtype of floats cannot hold."""
    m = torch.tensor([True, False])
    for dtype in (F16, BF16, F32):
        t = torch.tensor([0.5, -2], dtype=dtype)
        for n in (65504, 65520.0, -1e6, 70000, 3.4e38, -1e39, INF, NAN):
            case("aten::masked_fill.Scalar", t, m, n)
            case("aten::masked_fill.Tensor", t, m, torch.tensor(n, dtype=F64))
            case("aten::fill.Scalar", t, n)
            case("aten::full_like", t, n, None, None, None, None, None)
            case("aten::constant_pad_nd", t, [0, 1], n)
            case("aten::index_fill.int_Scalar", t, 0, torch.tensor([1]), n)
            case("aten::threshold", t, n, 1)
            case("aten::threshold", t, 1, n)
            case("aten::add.Tensor", t, t, n)
            case("aten::addcmul", t, t, t, n)
            case("aten::mul.Scalar", t, n)
            case("aten::pow.Tensor_Scalar", t, n)
            case("aten::leaky_relu", t, n)
            if n == n:
                case("aten::clamp", t, n, None)
                case("aten::clamp", t, None, n)
    t = torch.tensor([0.5, -2j])
    for n in (-3.4e38, 1e39, complex(1, 1e39)):
        case("aten::masked_fill.Scalar", t, m, n)
        case("aten::fill.Scalar", t, n)
        case("aten::add.Tensor", t, t, n)
    case("aten::masked_fill.Tensor", torch.zeros(2, dtype=U8), m, torch.tensor(300))
    for name in ("aten::tensor", "aten::as_tensor"):  # in the default dtype first
        more = [False] if name == "aten::tensor" else []
        for n in (16777217.0, 1e39, -INF):
            for dtype in (None, F64, I64, F16):
                case(name + ".float", n, dtype, None, *more)
        case(name + ".complex", 16777217 + 1e39j, C128, None, *more)
        case(name + ".int", 16777217, F64, None, *more)


def no_dimensions():
    t = torch.tensor(2.0)
    case("aten::trapezoid.dx", t, 1, -1)
    for n in range(3):
        index = torch.zeros(n, dtype=I64)
        case("aten::index_select", t, 0, index)
        case("aten::gather", t, 0, index)
        case("aten::scatter.value", t, 0, index, 7)
        for name in ("aten::scatter.src", "aten::scatter_add"):
            case(name, t, 0, index, torch.arange(1.0, 3.0))
            case(name, t, 0, index, torch.tensor(9.0))
    one = torch.tensor(1)
    case("aten::gather", torch.arange(2.0), 0, one)
    case("aten::scatter_add", torch.zeros(2), 0, one, torch.arange(1.0, 4.0))
    case("aten::scatter.src", torch.zeros(2), 0, one, torch.tensor(3.0))


def meetings():
    """Index, self and source of sizes that do not go together."""
    t = torch.zeros(2, 3)
    for sizes in ((3, 1), (2, 1), (1, 2), (3,), (1, 1, 1)):
        index = torch.ones(sizes, dtype=I64)
        case("aten::gather", t, 1, index)
        case("aten::scatter.value", t, 1, index, 1.0)
        for source in ((2, 1), (2, 2)):
            case("aten::scatter.src", t, 1, index, torch.ones(source))
            case("aten::scatter_add", t, 1, index, torch.ones(source))
    for at in (-1, 3):
        case("aten::gather", t, 1, torch.full((2, 1), at))
        case("aten::scatter.value", t, 1, torch.full((2, 1), at), 1.0)


def mixed():
    """Half floats and other dtypes: what is rounded before it is computed with."""
    for dtype in (F16, BF16):
        t = torch.tensor([0.25, 7, -3], dtype=dtype)
        whole = torch.tensor([65536, 2049, 3])
        for other in (whole, torch.tensor(65536), torch.tensor(0.1), torch.tensor(0.1, dtype=torch.float64)):
            for name in ("add.Tensor", "sub.Tensor", "mul.Tensor", "div.Tensor", "fmod.Tensor", "remainder.Tensor",
                         "atan2", "maximum", "eq.Tensor", "pow.Tensor_Tensor"):
                case("aten::" + name, t, other)
                case("aten::" + name, other, t)
            for mode in ("floor", "trunc"):
                case("aten::div.Tensor_mode", t, other, mode)
                case("aten::div.Tensor_mode", other, t, mode)
            case("aten::addcmul", t, other, t)
            case("aten::addcdiv", t, t, other)
            if other.dim() == 0:
                case("aten::lerp.Tensor", t, t + 1, other)
    three, weight = torch.tensor([1.0, 2, 3]), torch.tensor(0.5)
    for end in (three.double(), three.half(), three.long(), weight.double()):
        says = "for `end` but got dtype"
        case("aten::lerp.Tensor", three, end, three, says=says)
        case("aten::lerp_.Tensor", three.clone(), end, three, says=says)
        case("aten::lerp.Scalar", three, end, 0.5, says=says)
    for other in (torch.float64, F16, I64, torch.complex64):
        case("aten::lerp.Tensor", three, three, three.to(other), says="for `weight` but got dtype")
        case("aten::lerp.Tensor", three, three + 1, torch.tensor(1).to(other))
        case("aten::lerp.Tensor", weight, weight + 1, torch.tensor(1).to(other))
    case("aten::lerp.Scalar", three.long(), three.long(), 0.5)
    case("aten::lerp.Scalar", three, three, 0.5j, says="cannot be converted to type float")


def pads():
    """Negative padding that leaves all, nothing, or less than nothing of a dimension."""
    t = torch.tensor([[1.0, 2, 3], [4, 5, 6]])
    for pad in ((-3, 0), (-3, 4), (4, -3), (0, -3), (-1, -2), (-2, 1)):
        case("aten::constant_pad_nd", t, list(pad), 7)
    for pad in ((-4, 5), (5, -4), (-5, 4), (-(1 << 62), 1 << 62), (1 << 62, -(1 << 62))):
        case("aten::constant_pad_nd", t, list(pad), 7, says="narrow(): length must be non-negative")


if __name__ == "__main__":
    write(sys.argv[1], "limits.py", (numbers, floats, no_dimensions, meetings, mixed, pads))
