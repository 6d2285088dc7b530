"""models.py FOLDER [--seconds S]: makes the benchmark's models and times PyTorch on them.

Writes NAME.pt and NAME_inputs.pt to FOLDER and prints a line of JSON: for each model the median of
eager PyTorch and of torch.jit on one thread, in milliseconds. Run pinned, by bench/run.
"""
import argparse
import json
import os
import sys

import torch

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import page  # noqa: E402

SOURCE = '''import torch


class Chain(torch.nn.Module):
    """Pointwise work: one fused kernel, or a dozen calls."""

    def forward(self, a, b, c):
        t = torch.tanh(a * b + c) * torch.sigmoid(a)
        return (t - c).clamp(-1.0, 1.0) * 0.5 + torch.exp(-t * t)


class Small(torch.nn.Module):
    """4000 additions of tensors of four elements: what an operator costs besides its work."""

    def forward(self, x, y, n: int):
        for i in range(n):
            x = x + y
            x = x - y
            x = x + y
            x = x - y
        return x


class Many(torch.nn.Module):
    """Eight different groups, kept apart by products: what one more kernel costs to compile."""

    def forward(self, x, w):
        x = torch.mm(torch.tanh(x * 0.5 + 1.0) * x, w)
        x = torch.mm(torch.sigmoid(x) * x - 0.25, w)
        x = torch.mm(torch.exp(-x * x) + x, w)
        x = torch.mm((x + 1.0).clamp(-1.0, 1.0) * torch.tanh(x), w)
        x = torch.mm(torch.sigmoid(x * 2.0) + torch.exp(-x.abs()), w)
        x = torch.mm(torch.tanh(x) * torch.sigmoid(x) + x, w)
        x = torch.mm(torch.relu(x) * 0.5 + x * x, w)
        return torch.tanh(torch.exp(-x * x) - x)


class Lstm(torch.nn.Module):
    """A scripted LSTM: 50 steps, hidden size 256."""

    def __init__(self, n_in: int, n: int):
        super().__init__()
        self.w_ih = torch.nn.Parameter(torch.randn(4 * n, n_in) / n_in ** 0.5)
        self.w_hh = torch.nn.Parameter(torch.randn(4 * n, n) / n ** 0.5)
        self.b_ih = torch.nn.Parameter(torch.randn(4 * n) * 0.1)
        self.b_hh = torch.nn.Parameter(torch.randn(4 * n) * 0.1)

    def forward(self, x, h, c):
        outputs = []
        for step in x.unbind(0):
            gates = torch.mm(step, self.w_ih.t()) + self.b_ih + torch.mm(h, self.w_hh.t()) + self.b_hh
            i, f, g, o = gates.chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            outputs.append(h)
        return torch.stack(outputs), h, c
'''


def define():
    sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "test", "make"))
    from neutral import define as define_neutral
    globals().update((name, value) for name, value in vars(define_neutral(SOURCE)).items()
                     if isinstance(value, type))


def models():
    torch.manual_seed(3)
    a, b, c = (torch.randn(64, 1024) for _ in range(3))
    yield "chain", Chain(), (a, b, c)
    yield "small", Small(), (torch.randn(4), torch.randn(4), 1000)
    yield "many", Many(), (torch.randn(8, 64), torch.randn(64, 64) / 8)
    for batch in (1, 16):
        n = 256
        yield "lstm_b%d" % batch, Lstm(n, n), (torch.randn(50, batch, n), torch.zeros(batch, n),
                                               torch.zeros(batch, n))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--seconds", type=float, default=3)
    args = parser.parse_args()
    os.makedirs(args.folder, exist_ok=True)
    torch.set_num_threads(1)
    define()
    figures = {"torch": torch.__version__}
    with torch.no_grad():
        for name, model, inputs in models():
            model.eval()
            script = torch.jit.script(model)
            path = os.path.join(args.folder, name)
            script.save(path + ".pt")
            torch.save(inputs, path + "_inputs.pt")
            torch.save(model(*inputs), path + "_expected.pt")
            loaded = torch.jit.load(path + ".pt")
            figures[name] = {"eager_ms": page.median(lambda: model(*inputs), args.seconds, 10, 10) * 1e3,
                             "script_ms": page.median(lambda: loaded(*inputs), args.seconds, 10, 10) * 1e3}
    print(json.dumps(figures))


main()
