#!/usr/bin/env python3
"""Makes test/data/kernels/shapes.txt: tensors without dimensions, of one element and of none where
indices, masks, sources and dimensions meet, and numbers that are searched for, by PyTorch.

Usage: shapes.py OUTPUT      (with torch 2.15; ops.py tells the format)

Of what PyTorch refuses only that it is refused is recorded.
"""
import sys

import torch

import ops
from ops import B8, F16, F32, F64, I32, I64, NAN, values

SHAPES = ((), (1,), (3,), (0,), (2, 3))
INDICES = [torch.tensor(i, dtype=I64) for i in (0, [0], [1], [0, 0], [], [[0]], [[1, 0, 1], [0, 1, 0]], [-1])]


def case(name, *args, loose=False):
    """As ops.case, without the words of a refusal; `loose`: without refusals."""
    count = len(ops.lines)
    try:
        ops.case(name, *args)
    except ValueError:
        ops.lines.append("\t".join([name] + [ops.text(a) for a in args] + ["!", ""]))
    if len(ops.lines) > count and "\t!\t" in ops.lines[-1]:
        refused = ops.lines.pop().split("\t!\t")[0] + "\t!\t"
        ops.lines += [] if loose else [refused]


def indices():
    for shape in SHAPES:
        for index in INDICES:
            x = values(F32, shape)
            case("aten::index_select", x, -1, index)
            case("aten::gather", x, 0, index, False)
            case("aten::scatter.value", x, 0, index, 1.5)
            case("aten::index_fill.int_Scalar", x, 0, index, 5)
            case("aten::index_fill.int_Tensor", x, 0, index, values(F32, (1,) * (len(shape) % 2)))
            case("aten::take", x, index)
            case("aten::index.Tensor", x, [index])
            for source in ((), (1,), (2,), (2, 3), (1, 3)):
                y = values(F32, source)
                either = len(shape) < 2 and len(source) < 2  # in older versions one stood for the other
                case("aten::index_add", x, 0, index, y, 2, loose=either)
                case("aten::index_copy", x, 0, index, y, loose=either)
                case("aten::scatter.src", x, 0, index, y)
                case("aten::scatter_reduce.two", x, 0, index.int(), y, "amax", True)
                case("aten::index_reduce", x, 0, index, y, "prod", True)
                case("aten::put", x, index, y, False)
                case("aten::index_put", x, [index], y, True)
    case("aten::index_add", values(F32, (2, 3)), 0, INDICES[1], values(F64, (1, 3)), 1)
    case("aten::index_copy", values(F32, (2, 3)), 0, INDICES[1], values(F64, (1, 3)))


def masks():
    for shape in SHAPES:
        for mask in ((), (1,), (3,), (0,), (2, 3), (2, 1)):
            x, hidden = values(F32, shape), values(B8, mask)
            case("aten::masked_select", x, hidden)
            case("aten::masked_fill.Scalar", x, hidden, 2)
            case("aten::masked_scatter", x, hidden, values(F32, (6,)))
            case("aten::masked_fill_.Scalar", x.clone(), hidden, 2)
            case("aten::index.Tensor", x, [hidden])
            for on in (hidden, ~hidden):
                case("aten::index_put", x, [on], values(F32, ()), False)


def dimensions():
    for shape in SHAPES:
        x = values(F32, shape)
        for name in ("cumsum", "cumprod"):
            case("aten::" + name, x, -1, None)
        for name in ("cummax", "cummin", "logcumsumexp", "unbind.int", "squeeze.dim", "unsqueeze"):
            case("aten::" + name, x, -1)
        for name in ("sort", "argsort", "mode", "median.dim", "max.dim", "argmin", "any.dim"):
            case("aten::" + name, x, 0, True)
        for k in (0, 1, 2):
            case("aten::topk", x, k, 0, True, True)
            case("aten::kthvalue", x, k, 0, False)
            case("aten::narrow", x, 0, k, 1)
            case("aten::select.int", x, 0, k - 1)
            case("aten::unfold", x, 0, k, 1)
            case("aten::diff", x, k, 0, None, None)
            case("aten::split.Tensor", x, k, 0)
        case("aten::take_along_dim", x, torch.zeros(shape, dtype=I64), None)
        for name in ("mT", "numpy_T", "t", "nonzero", "nonzero_numpy", "atleast_2d", "diag"):
            case("aten::" + name, x, *[1] * (name == "diag"))


def searches():
    """Numbers beyond 2^53, and such as two dtypes round differently."""
    great = torch.tensor([2 ** 53, 2 ** 53 + 1, 2 ** 62, 2 ** 62 + 1])
    tenths = torch.tensor([0.1, 0.2, 0.3])
    for right in (False, True):
        case("aten::searchsorted.Tensor", great, great + 1, False, right, None, None)
        case("aten::searchsorted.Scalar", great, 2 ** 53 + 1, False, right, None, None)
        case("aten::searchsorted.Scalar", tenths, 0.2, False, right, None, None)
        case("aten::bucketize.Tensor", great - 1, great, True, right)
        case("aten::bucketize.Scalar", 0.1, tenths, False, right)
        case("aten::bucketize.Tensor", torch.tensor([1, 2, 3]), torch.tensor([1.5, 2]), False, right)
    for invert in (False, True):
        for a, b in ((great, great + 1), (torch.tensor([1.0, NAN, 3]), torch.tensor([NAN, 3])),
                     (torch.tensor([2 ** 53 + 1]), torch.tensor([2.0 ** 53])), (tenths, torch.tensor([0.1, 0.25], dtype=F64)),
                     (tenths.half(), tenths), (values(I64, (2, 3)), values(I32, (3, 1, 2))),
                     (values(F32, ()), torch.zeros(0)), (torch.zeros(0, 2), values(F16, (40,))),
                     (values(F16, (7,)), values(F16, (40,)).expand(3, 40)), (values(B8, (2,)), values(B8, (2,)))):
            case("aten::isin.Tensor_Tensor", a, b, False, invert)
        case("aten::isin.Tensor_Scalar", tenths, 0.1, False, invert)
        case("aten::isin.Tensor_Scalar", torch.tensor([1, 2]), 1.5, False, invert)
        case("aten::isin.Scalar_Tensor", 2 ** 53 + 1, great, False, invert)


if __name__ == "__main__":
    ops.write(sys.argv[1], "shapes.py", (indices, masks, dimensions, searches))
