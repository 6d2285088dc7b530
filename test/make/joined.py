"""Makes samples of kiln::joined_convolution, which give the weight and the bias of a convolution whose results are
PyTorch's sum over the branches. Its lines stand in ops.txt.

Usage: joined.py >> test/data/kernels/ops.txt
"""
import torch
from torch import nn
import torch.nn.functional as F

from ops import text

EPS = 0.25


def draw(*sizes):
    return torch.randint(-12, 13, sizes) / 16.0


def norm(count, full=True):
    """weight, bias, mean, variance: 1 / sqrt(variance + EPS) is a number of few digits."""
    affine = [draw(count), draw(count)] if full else [None, None]
    return affine + [draw(count), torch.tensor([0.0, 0.75, 3.75])[torch.randint(3, (count,))]]


def line(name, args, results):
    results = ["!", "joined_convolution: "] if results is None else ["="] + [text(r) for r in results]
    print("\t".join([name, *map(text, args), *results]))


def joined(sizes, branches, places):
    """In the order of the arguments: the first weight, the parameters, eps, sizes, places; and the result."""
    weight, bias = torch.zeros(sizes, dtype=torch.float64), torch.zeros(sizes[0], dtype=torch.float64)
    for (w, b, gamma, beta, mean, var), place in zip(branches, places):
        if w is None:
            w = torch.zeros(sizes[0], sizes[1], *[1] * (len(sizes) - 2))
            nn.init.dirac_(w, sizes[0] // sizes[1])
        scale, shift = torch.ones(sizes[0], dtype=torch.float64), torch.zeros(sizes[0], dtype=torch.float64)
        if mean is not None:
            scale = 1 / torch.sqrt(var.double() + EPS) * (1 if gamma is None else gamma.double())
            shift = (0 if beta is None else beta.double()) - mean.double() * scale
        pads = []
        for at, own, all_of_it in reversed(list(zip(place, w.shape[2:], sizes[2:]))):
            pads += [at, all_of_it - own - at]
        weight += F.pad(w.double() * scale.view(-1, *[1] * (len(sizes) - 1)), pads)
        bias += shift + (0 if b is None else b.double() * scale)
    flat = [p for branch in branches for p in branch]
    like = branches[0][0]
    args = [like, flat, [EPS] * len(branches), list(sizes), [at for place in places for at in place]]
    return args, [weight.to(like.dtype), bias.to(like.dtype)]


def main():
    torch.manual_seed(0)
    none = [None] * 4
    cases = [
        ((4, 3, 3, 3), [[draw(4, 3, 3, 3), None] + norm(4), [draw(4, 3, 1, 1), draw(4)] + norm(4, False)],
         [(0, 0), (1, 1)]),
        ((6, 2, 3, 5), [[draw(6, 2, 3, 5), draw(6)] + none, [draw(6, 2, 2, 1), None] + norm(6), [None, None] + norm(6)],
         [(0, 0), (1, 4), (2, 0)]),
        ((5, 1, 4), [[draw(5, 1, 4), draw(5)] + norm(5), [draw(5, 1, 4), None] + none, [None, None] + none],
         [(0,), (0,), (3,)]),
        ((3, 2, 2, 1, 3), [[draw(3, 2, 2, 1, 3).double(), draw(3).double()] + none,
                           [draw(3, 2, 1, 1, 2).double(), None] + [t.double() for t in norm(3)]], [(0, 0, 0), (1, 0, 1)]),
    ]
    for case in cases:
        line("kiln::joined_convolution", *joined(*case))
    args, _ = joined(*cases[0])
    for wrong in ([args[0], args[1][:-1], *args[2:]], [*args[:4], [0, 0, 1, 3]], [*args[:4], [0, 0, -1, 0]],
                  [*args[:3], [4, 3], args[4]], [*args[:3], [4, 3, 3, 0], args[4]], [*args[:4], [0, 0]],
                  [args[0], [*args[1][:-1], draw(3)], *args[2:]], [args[0], [*args[1][:-1], None], *args[2:]]):
        line("kiln::joined_convolution", wrong, None)


main()
