"""Makes samples of scatter_add, index_add and index_copy of whole slices, by PyTorch: of an index that is expanded, and
of sources that lie otherwise, are longer, or are parts of what is written. Its lines stand in ops.txt.

Usage: slices.py >> test/data/kernels/ops.txt
"""
import torch

from ops import text

torch.manual_seed(7)
F32, F64, I64, I32 = torch.float32, torch.float64, torch.int64, torch.int32


def numbers(*sizes, dtype=F32):
    return (torch.randint(-16, 17, sizes) / (1 if dtype in (I64, I32) else 8)).to(dtype)


def sample(name, fn, *args):
    """A line: what PyTorch gives, or that it raises."""
    shown = [f"i{a}" if isinstance(a, int) else text(a) for a in args]
    try:
        print("\t".join([name, *shown, "=", text(fn(*args))]))
    except (RuntimeError, IndexError):
        print("\t".join([name, *shown, "!", ""]))


for dtype in (F32, F64, I64, I32):
    for dim, sizes in ((0, (5, 3)), (1, (2, 5, 3)), (2, (2, 3, 5))):
        to = numbers(*sizes, dtype=dtype)
        more = list(sizes)
        more[dim] = 7
        src = numbers(*more, dtype=dtype)
        at = torch.randint(0, 5, (7,))
        shape = [1] * len(sizes)
        shape[dim] = 7
        wide = at.reshape(shape).expand(more)
        sample("aten::scatter_add", torch.scatter_add, to, dim, wide, src)
        less = wide.narrow(dim, 1, 4)
        sample("aten::scatter_add", torch.scatter_add, to, dim, less, src)
        sample("aten::scatter_add", torch.scatter_add, to, dim, less, src.transpose(0, -1).contiguous().transpose(0, -1))
        sample("aten::scatter_add", torch.scatter_add, to, dim, wide + 1, src)  # some are out of bounds
        sample("aten::index_add", lambda t, d, i, s, a: torch.index_add(t, d, i, s, alpha=a), to, dim, at, src, 3)
        once = torch.randperm(5)
        sample("aten::index_copy", torch.index_copy, to, dim, once, src.narrow(dim, 0, 5))
        sample("aten::index_copy", torch.index_copy, to, dim, once, to)  # reads what is written
        sample("aten::index_copy", torch.index_copy, to, dim, once - 1, src.narrow(dim, 0, 5))
