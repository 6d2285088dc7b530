"""Makes test/data/own/recurrent_layers with PyTorch (2.x): layers of all recurrent cells, whose weights are packed when
a plan is made, over sequences of some lengths, padded and packed.

Run from the root of the project: python3 test/make/recurrent_layers.py
"""
import torch

import neutral

SOURCE = """\
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from typing import List


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(6, 17, num_layers=2, bidirectional=True, batch_first=True)
        self.gru = nn.GRU(34, 16, bidirectional=True, bias=False)
        self.tanh = nn.RNN(32, 35)
        self.relu = nn.RNN(35, 5, nonlinearity="relu", batch_first=True)
        self.projected = nn.LSTM(5, 7, proj_size=4)
        self.lengths = nn.GRU(4, 19, num_layers=2, batch_first=True)

    def forward(self, x, lengths):
        out: List[torch.Tensor] = []
        y, (h, c) = self.lstm(x)
        out += [y, h, c]
        y, h = self.gru(y.transpose(0, 1))
        out += [h]
        y, h = self.tanh(y, h[:1, :, :1].repeat(1, 1, 35))
        y, h = self.relu(y.transpose(0, 1))
        out += [y]
        y, state = self.projected(y.transpose(0, 1))
        out += [y, state[1]]
        packed, h = self.lengths(pack_padded_sequence(y, lengths, enforce_sorted=False, batch_first=True))
        y, sizes = pad_packed_sequence(packed, batch_first=True)
        return out + [torch.relu(y) * 0.5, h]
"""


def calls():
    for n, (rows, steps) in enumerate(((3, 5), (3, 5), (1, 1), (7, 18), (2, 16))):
        torch.manual_seed(n)
        lengths = torch.randint(1, rows + 1, (steps,))  # of sequences along the rows: the batch is the other way
        lengths[0] = rows
        yield torch.randn(rows, steps, 6), lengths


torch.manual_seed(0)
neutral.save_case("recurrent_layers", neutral.define(SOURCE).Model().eval(), calls(), "recurrent layers", 1e-4, 1e-5)
