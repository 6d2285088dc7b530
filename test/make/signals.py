"""Makes test/data/own/signals with PyTorch (2.x): convolutions of one dimension as networks of sounds and of text have
them, between which channels may be last in memory: strided, dilated, grouped, over single channels with few and many taps,
transposed, with padding "same" and with weights as a direction and a size (wav2vec 2.0); norms over channels behind
transpose, over groups, over batches; joins and gates of channels, pools, means, resized signals, windows as columns
(ConvBERT); a grouped convolution of pixels for products (SqueezeBERT); without batches.

Run from the root of the project: python3 test/make/signals.py
"""
import torch
from torch import nn
import torch.nn.functional as F
from torch.nn.utils.parametrizations import weight_norm

import neutral


def norm(channels):
    return neutral.drawn_norm(nn.BatchNorm1d(channels))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv1d(1, 32, 10, 5, bias=False)
        self.stem_norm = nn.GroupNorm(32, 32)
        self.down = nn.Conv1d(32, 48, 3, 2)
        self.first, self.second = norm(48), norm(64)
        self.dilated = nn.Conv1d(48, 48, 3, padding=4, dilation=4)
        self.single = nn.Conv1d(48, 48, 9, padding="same", groups=48)
        self.points = nn.Conv1d(48, 64, 1)
        self.layer = nn.LayerNorm(64)
        self.query = nn.Conv1d(64, 64, 1, groups=4)
        self.place = weight_norm(nn.Conv1d(64, 64, 16, padding=8, groups=4), dim=2)
        self.gate = nn.Conv1d(64, 64, 5, padding=2)
        self.up = nn.ConvTranspose1d(32, 24, 4, 2, 1)
        self.parts = nn.ModuleList(nn.Conv1d(24, n, 3, padding=1) for n in (10, 14))
        self.taps = nn.Linear(24, 18)
        self.squeeze = nn.Sequential(nn.Conv1d(24, 8, 1), nn.ReLU(), nn.Conv1d(8, 24, 1), nn.Sigmoid())
        self.lone = nn.Conv1d(24, 4, 3)
        self.ends = nn.ModuleList(nn.Conv1d(n, 2, 1) for n in (64, 24, 24))

    def forward(self, x):
        x = F.gelu(self.stem_norm(self.stem(x)))
        x = F.relu(self.first(self.down(x)))
        x = x + F.leaky_relu(self.dilated(x), 0.1)
        x = torch.relu(self.second(self.points(self.single(x))))
        tokens = self.layer(x.transpose(1, 2)).transpose(1, 2)
        heads = self.query(tokens).view(x.size(0), 4, 16, -1)
        weights = torch.softmax(heads.transpose(2, 3) @ heads / 4, -1)
        x = x + (heads @ weights).flatten(1, 2)
        x = x + F.gelu(self.place(tokens)[:, :, :-1])
        a, b = torch.chunk(self.gate(x), 2, 1)
        y = F.relu(self.up(a * torch.sigmoid(b)))
        y = torch.cat([conv(y) for conv in self.parts], 1)
        y = y * self.squeeze(y.mean(2, keepdim=True))
        z = F.interpolate(F.max_pool1d(y, 3, 2, 1), size=y.size(2), mode="linear") + y
        kernel = torch.softmax(self.taps(z.transpose(1, 2)).reshape(-1, 9, 1), 1)
        columns = F.unfold(z.unsqueeze(-1), (9, 1), padding=(4, 0)).transpose(1, 2).reshape(x.size(0), -1, 24, 9)
        light = (columns.reshape(-1, 12, 9) @ kernel).reshape(x.size(0), -1, 24)
        ends = [end(v) for end, v in zip(self.ends, (x, z, light.transpose(1, 2)))]
        return (*ends, x.mean(-1), self.lone(z[0]), F.avg_pool1d(z, 4))


def calls():
    for n, sizes in enumerate(((1, 1203), (1, 1203), (1, 1203), (2, 800), (2, 800), (1, 1617))):
        torch.manual_seed(n)
        yield (torch.randn(sizes[0], 1, sizes[1]),)


torch.manual_seed(0)
model = Model().eval()
neutral.save_case("signals", torch.jit.trace(model, next(calls()), check_trace=False), calls(),
                  "convolutions of one dimension, and what stands between them", 1e-4, 1e-5, kind="trace")
