"""Makes samples of kiln::cell_fits: whether PyTorch's cells take their arguments. Its lines stand in ops.txt.

Usage: cells.py >> test/data/kernels/ops.txt
"""
import itertools

import torch

from ops import text

CELLS = {4: torch.lstm_cell, 3: torch.gru_cell, 1: torch.rnn_tanh_cell}


def sample(gates, x, h, c, w, u, b, d):
    """A line: what the cell of so many gates says to them."""
    try:
        if gates == 4:
            torch.lstm_cell(x, (h, c), w, u, b, d)
        else:
            CELLS[gates](x, h, w, u, b, d)
        fits = 1
    except (RuntimeError, IndexError):
        fits = 0
    args = [text(t) for t in (x, h, c if gates == 4 else None, w, u, b, d)]
    print("\t".join(["kiln::cell_fits", *args, f"i{gates}", "=", f"b{fits}"]))


def ones(*sizes, dtype=torch.float32):
    return torch.ones(*sizes, dtype=dtype)


for gates, bias in itertools.product(CELLS, (True, False)):
    b = ones(2 * gates) if bias else None
    fine = [ones(3, 2), ones(3, 2), ones(3, 2), ones(2 * gates, 2), ones(2 * gates, 2), b, b]
    sample(gates, *fine)
    sample(gates, *(t if t is None else t.double() for t in fine))
    for at, wrong in ((0, ones(3, 3)), (0, ones(2, 2)), (1, ones(3, 3)), (3, ones(2 * gates + 1, 2)), (3, ones(2 * gates, 3)),
                      (4, ones(2 * gates, 3)), (0, ones(3, 2).double()), (1, ones(3, 2).long())):
        sample(gates, *fine[:at], wrong, *fine[at + 1:])
