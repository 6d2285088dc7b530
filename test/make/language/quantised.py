"""Quantised tensors: in and out, their parameters, what may be done with them."""
from typing import Dict, List, Tuple

import torch
from torch import Tensor

X = torch.tensor([[-1.0, 0.3, 1.26, 0.15], [2.5, 100.0, -50.0, 0.25]])
Y = torch.arange(-12, 12).to(torch.float32).reshape(2, 3, 4) * 0.35


@case((X, 0.1, 3), (Y, 0.25, 128), (torch.zeros(0, 2), 1.0, 0), (torch.tensor(1.7), 0.5, 10))
def round_trip_unsigned(x: Tensor, scale: float, zero_point: int) -> Tuple[Tensor, Tensor]:
    q = torch.quantize_per_tensor(x, scale, zero_point, torch.quint8)
    return q.int_repr(), q.dequantize()


@case((X, 0.1, 3), (Y, 0.25, -128), (Y.transpose(0, 2), 0.11, 5))
def round_trip_signed(x: Tensor, scale: float, zero_point: int) -> Tuple[Tensor, Tensor]:
    q = torch.quantize_per_tensor(x, scale, zero_point, torch.qint8)
    return torch.int_repr(q), torch.dequantize(q)


@case((X, 0.1, 3), (Y * 1000, 0.001, -70000))
def round_trip_wide(x: Tensor, scale: float, zero_point: int) -> Tuple[Tensor, Tensor]:
    q = torch.quantize_per_tensor(x, scale, zero_point, torch.qint32)
    return q.int_repr(), q.dequantize()


@case((X, torch.tensor([0.1, 0.2]), torch.tensor([0, 10]), 0),
      (X, torch.tensor([0.1, 0.2, 0.3, 0.4]), torch.tensor([0, 10, 20, 255]), 1),
      (Y, torch.tensor([0.1, 0.2, 0.7]), torch.tensor([7, 1, 2]), 1))
def by_channels(x: Tensor, scales: Tensor, zero_points: Tensor, axis: int
                ) -> Tuple[Tensor, Tensor, Tensor, Tensor, int]:
    q = torch.quantize_per_channel(x, scales, zero_points, axis, torch.quint8)
    return (q.int_repr(), q.dequantize(), q.q_per_channel_scales(),
            q.q_per_channel_zero_points(), q.q_per_channel_axis())


@case((X,), (Y,))
def parameters(x: Tensor) -> Tuple[float, int, bool, bool, int, List[int]]:
    q = torch.quantize_per_tensor(x, 0.1, 3, torch.quint8)
    print(q.qscheme(), q)
    return (q.q_scale(), q.q_zero_point(), q.is_quantized, x.is_quantized, q.dim(), q.size())


@case((X, torch.tensor(0.1), torch.tensor(3)))
def parameters_of_tensors(x: Tensor, scale: Tensor, zero_point: Tensor) -> Tuple[Tensor, float]:
    q = torch.quantize_per_tensor(x, scale, zero_point, torch.qint8)
    return q.dequantize(), q.q_scale()


@case((Y,))
def views(x: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, float]:
    q = torch.quantize_per_tensor(x, 0.1, 3, torch.quint8)
    v = q.transpose(1, 2)
    return (q.view(4, 6).dequantize(), v.dequantize(), v.contiguous().int_repr(),
            q[1].dequantize(), q[:, 1:].int_repr(), q.unsqueeze(0).flatten(1).dequantize(),
            q[0, 1].clone().q_scale())


@case((X,))
def copies(x: Tensor) -> Tuple[Tensor, bool, bool, bool]:
    q = torch.quantize_per_tensor(x, 0.1, 3, torch.quint8)
    c = q.clone()
    d = torch.quantize_per_tensor(x, 0.2, 3, torch.quint8)
    e = torch.quantize_per_tensor(x, 0.1, 3, torch.qint8)
    return c.dequantize(), torch.equal(q, c), torch.equal(q, d), torch.equal(q, e)


@case((X,))
def in_containers(x: Tensor) -> Tuple[Tensor, List[Tensor]]:
    l: List[Tensor] = []
    d: Dict[str, Tensor] = {}
    for i in range(3):
        l.append(torch.quantize_per_tensor(x, 0.1 * (i + 1), i, torch.quint8))
    d["a"] = l[1]
    return d["a"].dequantize(), torch.dequantize(l)


@case((torch.tensor([0, 200, 3], dtype=torch.uint8),))
def of_integers(x: Tensor) -> Tuple[Tensor, Tensor]:
    q = torch._make_per_tensor_quantized_tensor(x, 0.5, 10)
    c = torch._make_per_channel_quantized_tensor(x, torch.tensor([1.0, 2.0, 3.0]),
                                                 torch.tensor([0, 1, 2]), 0)
    return q.dequantize(), c.dequantize()


@case((X,))
def plain_tensors(x: Tensor) -> Tensor:
    return torch.dequantize(x)


@case((X, 300), (X, -1))
def zero_point_out_of_range(x: Tensor, zero_point: int) -> Tensor:
    return torch.quantize_per_tensor(x, 0.1, zero_point, torch.quint8).dequantize()


@case((X.to(torch.float64),))
def no_float(x: Tensor) -> Tensor:
    return torch.quantize_per_tensor(x, 0.1, 3, torch.quint8).dequantize()


@case((X,))
class Weights(torch.nn.Module):
    def __init__(self):
        super().__init__()
        w = torch.tensor([[0.5, -1.0], [2.0, 0.25], [1.5, -0.75], [0.0, 1.0]])
        self.register_buffer("w", torch.quantize_per_tensor(w, 0.25, 4, torch.qint8))
        self.register_buffer("c", torch.quantize_per_channel(
            w, torch.tensor([0.1, 0.2]), torch.tensor([0, 1]), 1, torch.qint8))

    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
        w = self.w.dequantize()
        return torch.matmul(x, w), torch.matmul(x, self.c.dequantize()), self.w.t().int_repr()
