#!/usr/bin/env python3
"""Makes test/data/kernels/matmul.txt: arguments and results of matrix products, by PyTorch.

Usage: matmul_kernels.py OUTPUT      (with torch 1.13; the format is that of nn_kernels.py)
"""
import sys

import torch

import nn_kernels as nn
from nn_kernels import lines, put_args, r, strided, tensor_text

aten = torch.ops.aten
nn.DTYPES.update({torch.uint8: "u8"})


def case(kernel, *args, beta=None, alpha=None):
    lines.append("case " + kernel)
    put_args(args)
    extra = {}
    if beta is not None:
        extra = {"beta": beta, "alpha": alpha}
        put_args([beta, alpha])
    call = getattr(aten, kernel)
    if args[-1] is not None and any(a.dtype == torch.bfloat16 for a in args if a is not None):
        # One rounding: 1.13 rounds some sums of bfloat16 on the way.
        wide = [a.float() for a in args]
        out = call(*wide, **extra).bfloat16()
    else:
        out = call(*args, **extra)
    k = args[-1].shape[-1] if args[-1] is not None and args[-1].dim() else 1
    t = nn.TOLERANCE.get(out.dtype, 0) * (4 + k)
    lines.append("out %g %s" % (t, tensor_text(out.contiguous())))


def error(kernel, *args, words, beta=None, alpha=None):
    lines.append("case " + kernel)
    put_args(args)
    extra = {}
    if beta is not None:
        extra = {"beta": beta, "alpha": alpha}
        put_args([beta, alpha])
    try:
        getattr(aten, kernel)(*args, **extra)
    except RuntimeError as e:
        assert words in str(e), str(e)
    else:
        raise SystemExit("%s does not fail" % kernel)
    lines.append("error " + words)


def ints(*sizes, dtype):
    return torch.randint(-100 if dtype.is_signed else 0, 100, sizes, dtype=dtype)


def plain():
    for dtype in [torch.float32, torch.float64, torch.bfloat16]:
        case("mm", r(3, 5, dtype=dtype), r(5, 20, dtype=dtype))
        case("mm", strided(3, 5, dtype=dtype), strided(5, 4, dtype=dtype))
        case("bmm", r(2, 7, 3, dtype=dtype), strided(2, 3, 9, dtype=dtype))
        case("linear", r(2, 3, 6, dtype=dtype), r(4, 6, dtype=dtype), r(4, dtype=dtype))
    for dtype in [torch.int64, torch.int32, torch.uint8]:
        case("mm", ints(3, 5, dtype=dtype), ints(5, 4, dtype=dtype))
        case("bmm", ints(2, 3, 5, dtype=dtype), ints(2, 5, 4, dtype=dtype))
        case("dot", ints(9, dtype=dtype), ints(9, dtype=dtype))
        case("addmm", ints(4, dtype=dtype), ints(3, 5, dtype=dtype), ints(5, 4, dtype=dtype),
             beta=2, alpha=3)
    case("mm", r(0, 3), r(3, 4))
    case("mm", r(2, 0), r(0, 4))
    case("mm", r(2, 3), r(3, 0))
    case("mm", r(5)[1:2].expand(2, 3), r(3, 4))
    case("mv", r(4, 7), r(7))
    case("mv", strided(4, 7), strided(7, 2)[:, 1])
    case("mv", r(4, 0), r(0))
    case("dot", r(100), r(100))
    case("dot", r(0), r(0))


def ranks():
    shapes = [(5,), (3, 5), (2, 3, 5), (4, 2, 3, 5), (1, 3, 5), (2, 1, 3, 5), (0, 3, 5)]
    others = [(5,), (5, 4), (2, 5, 4), (4, 1, 5, 4), (1, 5, 4)]
    for a in shapes:
        for b in others:
            try:
                torch.broadcast_shapes(a[:-2], b[:-2])
            except RuntimeError:
                continue
            case("matmul", r(*a), r(*b))
            if len(a) > 1 and len(b) > 1:
                case("matmul", strided(*a), r(*b).transpose(-1, -2).contiguous().transpose(-1, -2))
    case("matmul", r(3, 5)[None].expand(4, 3, 5), r(4, 5, 2))
    case("matmul", r(4, 3, 5).transpose(0, 1), r(5, 2))
    for dtype in [torch.float32, torch.float64, torch.bfloat16]:
        case("matmul", r(1, 3, 5, dtype=dtype).transpose(0, 1), r(5, 2, dtype=dtype))
    case("matmul", ints(1, 3, 5, dtype=torch.int64).transpose(0, 1), ints(5, 2, dtype=torch.int64))
    case("matmul", r(4, 1, 3, 5).transpose(1, 2), r(5))
    for a in [(5,), (3, 5), (2, 3, 5), (2, 2, 3, 5), (0, 5)]:
        case("linear", r(*a), r(4, 5), None)
        if len(a) > 1:
            case("linear", r(*a), r(4, 5), r(4))
    case("linear", r(2, 3, 5).transpose(0, 1), strided(4, 5), r(8)[::2])
    case("linear", r(2, 0), r(4, 0), r(4))


def added():
    nan = torch.full((3, 4), float("nan"))
    for beta, alpha in [(1, 1), (0.5, -2.0), (0, 1), (2, 0.25), (1, 0)]:
        for self in [r(3, 4), r(4), r(3, 1), r(1), torch.tensor(2.0), strided(3, 4)]:
            case("addmm", self, r(3, 5), r(5, 4), beta=beta, alpha=alpha)
        case("addmm", r(4), r(3, 0), r(0, 4), beta=beta, alpha=alpha)
        case("baddbmm", r(2, 3, 4), r(2, 3, 5), strided(2, 5, 4), beta=beta, alpha=alpha)
        case("baddbmm", r(1, 4), r(2, 3, 5), r(2, 5, 4), beta=beta, alpha=alpha)
        case("addmv", r(3), r(3, 5), r(5), beta=beta, alpha=alpha)
        case("addmv", r(1), r(3, 5), r(5), beta=beta, alpha=alpha)
    case("addmm", nan, r(3, 5), r(5, 4), beta=0, alpha=1)


def errors():
    error("mm", r(2, 3), r(4, 5), words="mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)")
    error("mm", r(2, 3, 1), r(4, 5), words="self must be a matrix")
    error("mm", r(2, 3), r(3), words="mat2 must be a matrix")
    boolean = torch.zeros(2, 2, dtype=torch.bool)
    error("mm", boolean, boolean, words='"addmm_impl_cpu_" not implemented for \'Bool\'')
    error("bmm", r(2, 3), r(3, 4), words="batch1 must be a 3D tensor")
    error("bmm", r(2, 3, 4), r(2, 5, 4),
          words="size for first two dimensions of batch2 tensor to be: [2, 4] but got: [2, 5]")
    error("matmul", torch.tensor(1.0), r(3), words="need to be at least 1D, but they are 0D and 1D")
    error("matmul", r(3), r(4), words="expected tensor [3] and src [4]")
    error("matmul", r(3, 4), r(3), words="size mismatch, got 3, 3x4,3")
    error("matmul", r(3), r(4, 5), words="shapes cannot be multiplied (1x3 and 4x5)")
    error("matmul", r(2, 3, 4), r(5, 5), words="shapes cannot be multiplied (6x4 and 5x5)")
    error("matmul", r(2, 3, 4), r(5), words="size mismatch, got 6, 6x4,5")
    error("matmul", r(2, 3, 4), r(3, 4, 5),
          words="The size of tensor a (2) must match the size of tensor b (3)")
    error("matmul", r(2, 3, 4), r(2, 3, 5), words="to be: [2, 4] but got: [2, 3]")
    error("linear", r(2, 2, 3), r(4, 5), None, words="cannot be multiplied (4x3 and 5x4)")
    error("linear", r(2, 3), r(4, 3), r(5), words="The expanded size of the tensor (4) must match")
    error("addmm", r(7), r(2, 3), r(3, 5), beta=1, alpha=1,
          words="The expanded size of the tensor (5) must match")
    error("addmv", r(7), r(2, 3), r(3), beta=1, alpha=1, words="size mismatch, got 7, 2x3,3")
    error("mv", r(2, 3), r(4), words="size mismatch, got 2, 2x3,4")
    error("dot", r(2, 2), r(4), words="1D tensors expected, but got 2D and 1D tensors")
    error("dot", r(2), r(2, dtype=torch.float64),
          words="expected both vectors to have same dtype, but found Float and Double")


def main():
    plain()
    ranks()
    added()
    errors()
    with open(sys.argv[1], "w") as out:
        out.write("# Made by test/make/matmul_kernels.py with PyTorch %s.\n" % torch.__version__)
        out.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
