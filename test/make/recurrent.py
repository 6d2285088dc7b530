"""Makes samples of kiln::recurrent_panels and kiln::recurrent, which give what PyTorch's layers give, and of these with
steps enough for panels. Its lines stand in ops.txt.

Usage: recurrent.py >> test/data/kernels/ops.txt
"""
import torch
from torch import nn

from ops import text

BLOCK = 16
CELLS = {"rnn_tanh": (0, 1), "rnn_relu": (1, 1), "lstm": (2, 4), "gru": (3, 3)}  # kiln_cell_kind, gates


def line(name, args, results):
    results = "!\t" if results is None else "=\t" + "\t".join(text(r) for r in results)
    print("\t".join([name, *map(text, args), results]))


def panels(w, gates):
    hidden = w.shape[1]
    blocks = (hidden + BLOCK - 1) // BLOCK
    padded = torch.zeros(gates, blocks * BLOCK, hidden)
    padded[:, :hidden] = w.view(gates, hidden, hidden)
    return padded.view(gates, blocks, BLOCK, hidden).permute(1, 3, 0, 2).contiguous()


def draw(*sizes):
    return torch.randint(-12, 13, sizes) / 16.0


def layers(cell, layer_count, both, biases, width, hidden):
    gates, directions = CELLS[cell][1], 2 if both else 1
    params = []
    for layer in range(layer_count):
        for _ in range(directions):
            read = width if layer == 0 else hidden * directions
            params += [draw(gates * hidden, read), draw(gates * hidden, hidden)]
            params += [draw(gates * hidden), draw(gates * hidden)] if biases else []
    return params


def sample(cell, steps, rows, width, hidden, layer_count=1, both=False, biases=True, batch_first=False, batch=None,
           with_panels=True):
    kind, gates = CELLS[cell]
    params = layers(cell, layer_count, both, biases, width, hidden)
    states = [draw(layer_count * (2 if both else 1), rows, hidden) for _ in range(2 if cell == "lstm" else 1)]
    rest = [biases, layer_count, 0.0, False, both]
    operator = getattr(torch, cell)
    hx = states if cell == "lstm" else states[0]
    if batch is None:
        x = draw(rows, steps, width) if batch_first else draw(steps, rows, width)
        own = [x, hx, params, *rest, batch_first]
        form = "input"
    else:
        x = draw(int(batch.sum()), width)
        own = [x, batch, hx, params, *rest]
        form = "data"
    results = operator(*own)
    made = [panels(w, gates) for w in params[1::4 if biases else 2]] if with_panels else []
    if steps >= BLOCK:
        line("aten::%s.%s" % (cell, form), own, results)
    results = list(results) + ([] if cell == "lstm" else [torch.zeros(0)])
    line("kiln::recurrent", [x, states, params, *rest, batch_first, batch, kind, made], results)


torch.manual_seed(0)
for gates, hidden in ((1, 3), (4, 2), (3, 5), (1, 17), (3, 16)):
    w = draw(gates * hidden, hidden)
    line("kiln::recurrent_panels", [w, gates], [panels(w, gates)])
for w, gates in ((draw(4, 2), 4), (draw(4, 2), 2), (draw(4, 2).double(), 1), (draw(3, 4), 1), (draw(4), 4), (draw(0, 0), 4), (draw(5, 5).t(), 1)):
    line("kiln::recurrent_panels", [w, gates], [panels(w, gates) if w.shape == (5, 5) else torch.zeros(0)])
for cell in CELLS:
    sample(cell, 2, 1, 2, 3)
    sample(cell, 3, 2, 2, 3, with_panels=False)
    sample(cell, 2, 7, 2, 2, batch_first=True)
    sample(cell, 2, 2, 3, 2, layer_count=2, both=True)
    sample(cell, 3, 3, 2, 2, both=True, batch=torch.tensor([3, 2, 2]))
    sample(cell, 17, 1, 1, 2, both=True, biases=False)
    sample(cell, 16, 2, 1, 2, batch=torch.tensor([2] * 9 + [1] * 7))
    sample(cell, 1, 0, 2, 2)
sample("rnn_tanh", 2, 4, 1, 17)
sample("rnn_relu", 1, 1, 1, 35, biases=False)
x, w = draw(2, 1, 2), layers("gru", 1, False, True, 2, 3)
fine = [True, 1, 0.0, False, False, False, None]
line("kiln::recurrent", [x, [draw(1, 1, 3)], w, *fine, 4, []], None)
line("kiln::recurrent", [x, [draw(1, 1, 3)], w, *fine, -1, []], None)
line("kiln::recurrent", [x, [draw(1, 1, 3)] * 2, w, *fine, 3, []], None)
line("kiln::recurrent", [x, [draw(1, 1, 3)], w, *fine, 2, []], None)
line("kiln::recurrent", [x, [draw(1, 1, 3)], w, *fine, 3, [panels(w[1], 3)] * 2], None)
line("kiln::recurrent", [x, [draw(1, 1, 3)], w, *fine, 3, [draw(1, 3, 3, 16)[..., :8]]], None)
