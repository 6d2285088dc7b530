"""Makes test/data/own/empty_parts with PyTorch (1.13 or 2.x): parts of tensors that are none for some of the sizes.

Run from the root of the project: python3 test/make/empty_parts.py

x[:, 2:] of two columns has no element: sums, products, means, softmax, running sums, products of matrices, and what
stands beside other parts; and strides that cross. Sizes come in an order that makes symbols of them before the empty
ones come.
"""
import torch

import neutral


SOURCE = """\
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        rest = x[:, 2:]
        sums = rest.sum(1) * 2.0 + 1.0
        mean = torch.prod(rest * 1.5, 1) + x[:, ::3].mean(1)
        soft = torch.softmax(rest * 2.0, 1).sum(1) - 1.0
        running = torch.cat([rest.cumsum(1) * 2.0, x.exp()], 1)
        product = torch.matmul(rest * 1.5, rest.t() * 2.0) + 1.0
        deep = x.view(1, 1, 1, -1, 2)
        parts = torch.cat([deep[:, :, :, x.size(0) * 1:] * 2.0, deep + 1.0], 3)
        crossing = (rest.t() * 0.5 + rest.t().contiguous()).sigmoid()
        return sums, mean, soft, running, product, parts, crossing
"""

Model = neutral.define(SOURCE).Model

torch.manual_seed(7)
model = Model().eval()
shapes = ((6, 8), (4, 6), (8, 4), (4, 2), (2, 2), (2, 40), (6, 2), (30, 34))
neutral.save_case("empty_parts", model, ((torch.rand(shape),) for shape in shapes),
                  "parts of tensors that are none for some of the sizes")
