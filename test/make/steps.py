"""Makes test/data/own/steps with PyTorch (1.13 or 2.x): loops whose steps multiply what comes in by a weight.

Run from the root of the project: python3 test/make/steps.py

Cells written as loops, whose products may be made for all steps at once; and loops where they may not: what
comes in is written on the way, the product is written or given out, the weight is another one in each step,
the loop ends early, goes backwards, or has more steps than there are. One step, none, and many rows too.
"""
import torch

import neutral


SOURCE = """\
import torch
from typing import List


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w_in = torch.nn.Parameter(torch.randn(24, 6) * 0.3)
        self.w_state = torch.nn.Parameter(torch.randn(24, 6) * 0.3)
        self.bias = torch.nn.Parameter(torch.randn(24) * 0.3)
        self.square = torch.nn.Parameter(torch.randn(6, 6) * 0.3)

    def lstm(self, x, limit: int):
        h = torch.zeros(x.size(1), 6)
        c = torch.zeros(x.size(1), 6)
        seen: List[torch.Tensor] = []
        for t in range(min(x.size(0), limit)):
            gates = torch.mm(x[t], self.w_in.t()) + self.bias + torch.mm(h, self.w_state.t())
            i, f, g, o = gates.chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            seen.append(h)
        return torch.stack(seen) if len(seen) > 0 else h

    def rnn(self, x):
        h = torch.zeros(x.size(0), 6)
        for t in range(x.size(1)):
            h = torch.tanh(torch.matmul(x[:, t], self.square) + torch.nn.functional.linear(h, self.square))
        return h

    def written_input(self, x):
        total = torch.zeros(x.size(1), 6)
        for t in range(x.size(0)):
            total = torch.relu(total + torch.mm(x[t], self.square))
            if t + 1 < x.size(0):
                x[t + 1].mul_(0.5)
        return total

    def given_out(self, x):
        seen: List[torch.Tensor] = []
        for t in range(x.size(0)):
            y = torch.mm(x[t], self.square)
            seen.append(y)
            y.add_(float(t))
            seen[0].mul_(1.25)
        return seen

    def other_weights(self, x):
        w = self.square * 1.0
        total = torch.zeros(x.size(1), 6)
        for t in range(x.size(0)):
            total = torch.tanh(total + torch.mm(x[t], w))
            w = w * 0.5
        return total

    def ends_early(self, x):
        total = torch.zeros(x.size(1), 6)
        for t in range(x.size(0)):
            y = torch.tanh(torch.mm(x[t], self.square)) + total
            if bool(y.sum() > 2):
                break
            total = torch.relu(y + 0.25)
        return total

    def backwards(self, x):
        total = torch.zeros(x.size(1), 6)
        for t in range(x.size(0)):
            total = torch.tanh(total + torch.mm(x[x.size(0) - 1 - t], self.square) * 0.5)
        return total

    def inner(self, x):
        total = torch.zeros(x.size(1), 6)
        for k in range(2):
            y = x + float(k)
            for t in range(x.size(0)):
                total = torch.tanh(total + torch.mm(y[t], self.square) * 0.5)
        return total

    def forward(self, x, limit: int):
        turned = x.transpose(0, 1)
        return (self.lstm(x, limit), self.rnn(turned), self.written_input(x.clone()), self.given_out(x),
                self.other_weights(x), self.ends_early(x), self.backwards(x), self.inner(x))
"""
Model = neutral.define(SOURCE).Model

torch.manual_seed(0)
model = Model().eval()
for parameter in model.parameters():
    parameter.requires_grad_(False)
shapes = ((5, 1, 9), (5, 1, 3), (7, 3, 7), (1, 1, 1), (4, 20, 4), (0, 2, 0), (3, 0, 3), (2, 16, 2))
neutral.save_case("steps", model, ((torch.randn(steps, rows, 6), limit) for steps, rows, limit in shapes),
                  "loops whose steps multiply what comes in by a weight", atol=1e-5)
