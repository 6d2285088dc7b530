"""The digit reader: a convolution, then a recurrent cell that scans the rows from the top; an
image that it is not sure of is read again, with what the first reading left in memory."""
from typing import Tuple

import torch
from torch import Tensor, nn


class Linear(nn.Module):
    """nn.Linear with its one line here, where a report can point at it."""

    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        start = nn.Linear(inputs, outputs)
        self.weight, self.bias = start.weight, start.bias

    def forward(self, x: Tensor) -> Tensor:
        return torch.nn.functional.linear(x, self.weight, self.bias)


class Cell(nn.Module):
    """A gated recurrent unit, written out."""

    def __init__(self, inputs: int, hidden: int):
        super().__init__()
        self.from_input = Linear(inputs, 3 * hidden)
        self.from_state = Linear(hidden, 3 * hidden)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        x_reset, x_update, x_new = self.from_input(x).chunk(3, 1)
        h_reset, h_update, h_new = self.from_state(h).chunk(3, 1)
        reset = torch.sigmoid(x_reset + h_reset)
        update = torch.sigmoid(x_update + h_update)
        new = torch.tanh(x_new + reset * h_new)
        return new + update * (h - new)


class Digits(nn.Module):
    def __init__(self, channels: int = 12, hidden: int = 96):
        super().__init__()
        self.hidden = hidden
        self.sure = 0.95
        self.most_readings = 3
        start = nn.Conv2d(1, channels, 3)
        self.weight, self.bias = start.weight, start.bias
        self.cell = Cell(8 * channels, hidden)
        self.out = Linear(hidden, 10)

    def see(self, images: Tensor) -> Tensor:
        return torch.relu(torch.conv2d(images, self.weight, self.bias, padding=1))

    def read(self, features: Tensor, state: Tensor) -> Tensor:
        for y in range(features.size(2)):
            state = self.cell(features[:, :, y].flatten(1), state)
        return state

    def forward(self, images: Tensor) -> Tuple[Tensor, int]:
        """images: N x 1 x 8 x 8, 0 to 1. Gives N x 10 probabilities and the number of readings."""
        features = self.see(images)
        state = torch.zeros(images.size(0), self.hidden)
        state = self.read(features, state)
        probabilities = torch.softmax(self.out(state), 1)
        readings = 1
        unsure = probabilities.max(1)[0] < self.sure
        while readings < self.most_readings and bool(unsure.any()):
            again = self.read(features, state)
            state = torch.where(unsure.unsqueeze(1), again, state)
            probabilities = torch.softmax(self.out(state), 1)
            unsure = probabilities.max(1)[0] < self.sure
            readings += 1
        return probabilities, readings
