#!/usr/bin/env python3
"""Makes test/data/kernels/later.txt: operators of later versions, and corner cases, by PyTorch.

Usage: later.py OUTPUT      (with torch 2.15; ops.py tells the format)
"""
import sys

import torch

from ops import B8, BF16, C64, C128, F16, F32, F64, I64, NAN, case, rng, values, write


def ties():
    """Where equal elements end, below and above the lengths at which algorithms change."""
    for n in (5, 16, 17, 40, 300):
        for t in (torch.tensor([float(rng.randrange(6)) for _ in range(n)]),
                  torch.tensor([rng.randrange(3) for _ in range(n)]), values(B8, (n,))):
            for down in (False, True):
                case("aten::sort", t, 0, down)
                case("aten::argsort", t, 0, down)
                case("aten::sort.stable", t, None, 0, down)
                case("aten::sort.stable", t, True, 0, down)
            if t.dtype != B8:
                for k in (1, n // 64, n // 3, n):
                    case("aten::topk", t, k, 0, True, True)
                    case("aten::topk", t, k, 0, False, False)
    gaps = torch.tensor([float(rng.randrange(4)) for _ in range(40)])
    gaps[::7] = NAN
    case("aten::topk", gaps, 9, 0, True, True)
    case("aten::topk", gaps, 9, 0, False, True)
    case("aten::sort", gaps, 0, True)
    case("aten::sort", torch.tensor([[2.0], [1.0]]).expand(2, 20), 1, False)
    order = torch.arange(200)
    for t in (order, 199 - order, order % 2, (order - 100).abs(), (order * 77) % 200):
        case("aten::topk", t, 50, 0, False, True)
    cube = torch.tensor([[[float(rng.randrange(2)) for _ in range(4)] for _ in range(3)] for _ in range(2)])
    for dim in (0, 1, 2, -1):
        case("aten::unique_dim", cube, dim, True, True, True)


def corners():
    x, y = values(B8, (2,)), values(B8, (3,))
    for base in (values(B8, (2, 3)), values(B8, (3,)), torch.tensor(True)):
        for beta, alpha in ((3, 2), (0, 1), (1, 0)):
            case("aten::addr", base, x, y, beta, alpha)
    for weight in (torch.tensor([0.5]), torch.tensor(0.5)):
        case("aten::prelu", torch.tensor(-3.0), weight)
    none = torch.zeros(0)
    for training in (False, True):
        case("aten::batch_norm", none, None, None, none, none, training, 0.1, 1e-5, False)
    tail = [None, None, None]
    for ends in ((4.3, 0, 3), (0, 4.9, 4), (-2.7, 7.2, 5), (0.5, 9.9, 7)):
        for dtype in (I64, torch.int32, BF16, F16, F32):
            case("aten::linspace", *ends, dtype, *tail)
            case("aten::logspace", *ends, 2.0, dtype, *tail)
    case("aten::logspace", 4.3, 0, 2, 5.0, I64, *tail)
    case("aten::arange.start_step", 5, 0, -0.5, I64, *tail)
    case("aten::arange.start_step", 5, 0, 0, I64, *tail)
    t = torch.tensor([[1.0, NAN, 0.0], [0.0, -0.0, 5.0]])
    for u in (t, t.half(), t.to(BF16), t.double(), t.to(C64)):
        case("aten::linalg_vector_norm", u, 0, None, False, None)
        case("aten::norm.ScalarOpt_dim", u, 0, [1], True)
    for a, b in ((torch.zeros(0, 5), 2), (torch.zeros(5, 0), 2), (torch.zeros(2, 0, 3), 2)):
        case("aten::linalg_norm", a, b, [-2, -1], True, None)
        case("aten::linalg_norm", a, -b, [-2, -1], False, None, says="to have non-zero size.")
    t = values(F32, (2, 3))
    for dim, index in ((1, [[-1, 0], [2, 5]]), (0, [[-3, 1, 0]]), (None, [0, 5])):
        case("aten::take_along_dim", t, torch.tensor(index), dim)
    case("aten::take_along_dim", t, torch.tensor([-1]), None)
    for dtype in (F16, BF16, F32, I64):
        t = values(dtype, (5, 4))
        case("aten::gradient.array", t, [0, 1], 1)
        case("aten::gradient.scalarint", t, None, 0, 2)
    for z in (torch.tensor([1 + 2j, -3 + 0.5j, 0j, 20 - 1j]), torch.tensor(2j, dtype=C128)):
        case("aten::silu", z)
    for size, left in (((2, 5), False), ((4, 2), True), ((2, 4, 3), True), ((3, 3), False)):
        a, tau = torch.geqrf(values(F64, size))
        other = values(F64, size[:-2] + ((size[-2], 2) if left else (2, size[-2])))
        for transpose in (False, True):
            case("aten::ormqr", a, tau, other, left, transpose)
    case("aten::ormqr", torch.zeros(0, 2), torch.zeros(0), torch.zeros(2, 0), False, True)


if __name__ == "__main__":
    write(sys.argv[1], "later.py", (ties, corners))
