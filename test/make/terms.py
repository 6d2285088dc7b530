"""Makes samples of kiln::group_norm_terms, by PyTorch's native_group_norm: scale is rstd * weight, shift bias - mean *
scale. Its lines stand in ops.txt.

Usage: terms.py >> test/data/kernels/ops.txt
"""
import torch

from ops import text

EPS = 1e-3


def sample(x, groups, weight, bias):
    """A line: the terms, or that it raises."""
    args = [text(x), f"i{groups}", text(weight), text(bias), f"f{EPS}"]
    try:
        if not x.is_floating_point():
            raise RuntimeError("group norm is of floats")
        n, c = x.shape[:2]
        wide = [t if t is None else t.double() for t in (x, weight, bias)]
        _, mean, rstd = torch.native_group_norm(*wide, n, c, x[0, 0].numel(), groups, EPS)
        mean, rstd = (t.reshape(n, groups, 1).expand(n, groups, c // groups).reshape(n, c) for t in (mean, rstd))
        scale = rstd * (1 if weight is None else weight)
        shift = (0 if bias is None else bias) - mean * scale
        to = torch.float64 if x.dtype == torch.float64 else torch.float32
        terms = [text(t.to(to).reshape(n, c, *[1] * (x.dim() - 2))) for t in (scale, shift)]
        print("\t".join(["kiln::group_norm_terms", *args, "=", *terms]))
    except (RuntimeError, IndexError, ValueError, ZeroDivisionError):
        print("\t".join(["kiln::group_norm_terms", *args, "!", ""]))


def numbers(*sizes, dtype=torch.float32):
    return torch.randint(-16, 17, sizes).to(dtype) / 8


torch.manual_seed(5)
last, last_3d = (dict(memory_format=f) for f in (torch.channels_last, torch.channels_last_3d))
w, b = numbers(6), numbers(6)
for x in (numbers(2, 6, 3, 2), numbers(2, 6, 3, 2).contiguous(**last), numbers(1, 6, 2, 2, 3).contiguous(**last_3d),
          numbers(2, 6, 3, 4)[:, :, :, ::2], numbers(2, 3, 2, 6).permute(0, 3, 1, 2), numbers(2, 6), numbers(2, 6, 5)):
    sample(x, 2, w, b)
    sample(x, 3, None, None)
x = numbers(1, 6, 2, 2).contiguous(**last)
sample(x, 6, w, None)
sample(x, 1, None, b)
sample(x.double(), 2, w.double(), b.double())
sample(x.half(), 2, None, None)
sample(torch.ones(1, 4, 3, 3).contiguous(**last), 2, None, None)  # a variance of 0
sample(x, 4, None, None)
sample(x, 0, None, None)
sample(x, 2, numbers(5), None)
sample(numbers(6), 2, None, None)
sample(numbers(1, 6, 0, 2), 2, None, None)
sample(x.long(), 2, None, None)
