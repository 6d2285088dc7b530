"""Makes test/data/own/halves with PyTorch (2.x): a network of bfloat16 and of float16, whose products and convolutions have
weights that are widened once: convolutions with batch norms and residual sums, of one dimension too, linear layers with
and without biases, addmm and attention; and weights that a kernel makes in each call, since the module
writes one of them. All numbers are small multiples of 1/8, so that sums of
products are exact in any order; what is not (norms, softmax) is compared within what a half holds.

Run from the root of the project: python3 test/make/halves.py
"""
import torch

import neutral

SOURCE = """\
import torch
import torch.nn.functional as F
from typing import List


class Part(torch.nn.Module):
    def __init__(self, dtype: torch.dtype, writes: bool):
        super().__init__()
        self.writes = writes

        def weight(*sizes):
            return (torch.randint(-2, 3, sizes) / 8).to(dtype)

        self.register_buffer("stem", weight(32, 3, 3, 3))
        self.register_buffer("square", weight(32, 32, 3, 3))
        self.register_buffer("single", weight(32, 1, 3, 3))
        self.register_buffer("signal", weight(32, 32, 3))
        self.register_buffer("wide", weight(96, 32))
        self.register_buffer("tall", weight(96, 64))
        self.register_buffer("bias", weight(96))
        self.register_buffer("mean", weight(32))
        self.register_buffer("var", weight(32).abs() + 1)

    def forward(self, x):
        out: List[torch.Tensor] = []
        x = torch.relu(F.conv2d(x, self.stem, self.bias[:32], stride=2, padding=1)).clamp(max=2.0)
        y = F.batch_norm(F.conv2d(x, self.square, padding=1), self.mean, self.var, None, None, False, 0.1, 1e-5)
        x = torch.relu(y + x).clamp(max=2.0)
        out.append(x)
        x = torch.relu(F.conv2d(x, self.square * 0.25, padding=1)).clamp(max=2.0)
        out.append(x)
        x = torch.relu(F.conv2d(x, self.single, padding=1, groups=32)).clamp(max=2.0)
        z = x.flatten(2)
        out.append(F.conv1d(z, self.signal, self.bias[:32], padding=1))
        z = z.transpose(1, 2)
        q = F.linear(z, self.wide, self.bias)
        out.append(q)
        k = torch.tanh(F.linear(z, self.wide))
        out.append(torch.softmax(q @ k.transpose(1, 2) * 0.01, -1) @ k)
        flat = k.reshape(-1, 96)
        out.append(torch.relu(torch.addmm(self.bias[:64], flat, self.tall)))
        out.append(flat @ self.tall)
        if self.writes:
            self.wide += 0.0
        return out


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.brain = Part(torch.bfloat16, True)
        self.narrow = Part(torch.float16, False)
        self.single = Part(torch.float32, True)

    def forward(self, x):
        return self.brain(x.to(torch.bfloat16)), self.narrow(x.to(torch.float16)), self.single(x)
"""


def calls():
    for n, sizes in enumerate(((1, 20, 20), (1, 20, 20), (2, 12, 16))):
        torch.manual_seed(n)
        yield (torch.randint(-2, 3, (sizes[0], 3, *sizes[1:])) / 4,)


torch.manual_seed(0)
neutral.save_case("halves", neutral.define(SOURCE).Model(), calls(), "products of bfloat16 and float16", 2e-2, 2e-2)
