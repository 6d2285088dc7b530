"""Makes test/data/own/channels_last with PyTorch 1.13: where results lie whose images or weights have channels last,
told by strides, by what `view` takes, and by what writes to a reshaped result.

Run from the root of the project: python3 test/make/channels_last.py
"""
import torch

import neutral

SOURCE = """\
import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        def some(*sizes):
            return torch.randint(-4, 5, sizes) / 8
        self.register_buffer("stem", some(8, 3, 3, 3))
        self.register_buffer("mix", some(8, 8, 3, 3).contiguous(memory_format=torch.channels_last))
        self.register_buffer("windows", some(8, 1, 3, 3))
        self.register_buffer("bias", some(8))
        self.register_buffer("mean", some(8))
        self.register_buffer("variance", some(8) * 0 + 2)
        self.register_buffer("line", some(8, 8, 3).transpose(1, 2).contiguous().transpose(1, 2))

    def forward(self, x):
        a = torch.relu(F.batch_norm(F.conv2d(x, self.stem, None, 2, 1), self.mean, self.variance, self.bias, self.bias))
        b = torch.relu(F.conv2d(a, self.mix, self.bias, 1, 1)) + a
        c = F.group_norm(F.conv2d(b, self.windows, None, 1, 1, 1, 8), 2, self.bias, self.bias)
        d = F.interpolate(F.max_pool2d(c, 3, 2, 1), scale_factor=2.0, mode="bilinear")
        corner = F.pad(c, [0, -1, -1, 0])[:, :, :1, :1]
        e = torch.cat([F.avg_pool2d(d, 2), corner.expand(-1, -1, d.size(2) // 2, d.size(3) // 2)], 1)
        f = F.pixel_shuffle(F.pad(torch.stack([a, b], 1).flatten(1, 2), [1, 1]), 2)
        g = F.channel_shuffle(a.roll(1, 2), 4)
        s = F.conv1d(a.mean(3), self.line)
        rows = b.permute(0, 2, 3, 1).reshape(-1, 8)
        rows.mul_(2.0)
        lies = [list(a.stride()), list(b.stride()), list(c.stride()), list(d.stride()), list(e.stride()),
                list(f.stride()), list(g.stride()), list(s.stride()), list(rows.stride())]
        one = x[:, :1].clone(memory_format=torch.channels_last)
        norm = F.batch_norm(one, self.mean[:1], self.variance[:1])
        signal = F.conv1d(one[:, :, 0], self.line[:, :1].contiguous())
        lies += [list(one.stride()), list(norm.stride()), list(signal.stride()), list(a.roll(a.size(2), 2).stride())]
        t = a.permute(0, 2, 3, 1).is_contiguous()
        return (lies, t, b, c.sum(1), list(d.to(memory_format=torch.channels_last).stride()), e, f, g, s,
                list(F.adaptive_avg_pool2d(b, [1, 1]).stride()))
"""


def calls():
    for n, (batch, height, width, last) in enumerate([(1, 12, 16, True), (2, 12, 16, True), (2, 12, 16, False),
                                                      (1, 20, 12, True), (3, 8, 8, True), (2, 10, 14, True)]):
        torch.manual_seed(n)
        x = torch.randint(-2, 3, (batch, 3, height, width)) / 8
        yield (x.contiguous(memory_format=torch.channels_last) if last else x,)


torch.manual_seed(0)
neutral.save_case("channels_last", neutral.define(SOURCE).Model(), calls(), "results with channels last", 1e-5, 1e-5)
