"""Tensors in other layouts: nested ones (the batches of nn.TransformerEncoder), and set_."""
from typing import List, Optional, Tuple

import torch
from torch import Tensor

X = torch.arange(48, dtype=torch.float32).reshape(2, 4, 6) * 0.3 - 7
MASK = torch.tensor([[True, True, True, False], [True, False, False, False]])
GAPS = torch.tensor([[True, False, True, False], [True, False, False, False]])


def encoder(**kw):
    torch.manual_seed(3)
    layer = torch.nn.TransformerEncoderLayer(6, 2, 8, batch_first=True, **kw)
    made = torch.nn.TransformerEncoder(layer, 2).eval()
    for p in made.parameters():
        p.requires_grad_(False)
        if p.dim() == 1:
            p.add_(torch.arange(len(p)) * 0.01)
    return made


class Padded(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.after = encoder()
        self.first = encoder(norm_first=True, activation="gelu")

    def forward(self, x: Tensor, pad: Tensor) -> Tuple[Tensor, Tensor]:
        return (self.after(x, src_key_padding_mask=pad), self.first(x, src_key_padding_mask=pad))


class Masked(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = encoder(norm_first=True)

    def forward(self, x: Tensor, mask: Tensor, pad: Optional[Tensor]) -> Tensor:
        return self.inner(x, mask=mask, src_key_padding_mask=pad)


CAUSAL = torch.triu(torch.full((4, 4), -float("inf")), 1)
case((X, ~MASK), (X[:1], ~MASK[1:]), (X, ~GAPS),
     (X, torch.zeros(2, 4).masked_fill(~MASK, -float("inf"))))(Padded)
case((X, CAUSAL, None), (X, CAUSAL, ~MASK), (X, CAUSAL == 0, None))(Masked)


@case((X, MASK), (X, GAPS), (X, MASK.flip(1)))
def aligned(x: Tensor, mask: Tensor) -> bool:
    return torch._nested_tensor_from_mask_left_aligned(x, mask)


@case((X, MASK, 0.0), (X, MASK, -1.5), (X, GAPS, 0.0), (X, MASK[:1], 0.0))
def padded(x: Tensor, mask: Tensor, fill: float) -> Tuple[Tensor, bool, bool, int]:
    n = torch._nested_tensor_from_mask(x, mask)
    return n.to_padded_tensor(fill), n.is_nested, x.is_nested, n.dim()


@case((X, MASK, [2, 5, 6]), (X, MASK, [2, 4, 8]), (X, MASK, [2, 2, 6]), (X, MASK, [2, 4]))
def padded_to(x: Tensor, mask: Tensor, size: List[int]) -> Tensor:
    return torch._nested_tensor_from_mask(x, mask).to_padded_tensor(9.0, size)


@case((X, MASK))
def kept(x: Tensor, mask: Tensor) -> Tensor:
    n = torch._nested_tensor_from_mask(x, mask)
    return (n.relu() + n.neg()).clone().to_padded_tensor(0.5)


@case((X, MASK, [X]))
def through_lists(x: Tensor, mask: Tensor, made: List[Tensor]) -> Tensor:
    made.append(torch._nested_tensor_from_mask(x, mask))
    return made[-1].to_padded_tensor(0.0)


@case((X, MASK))
def sees_no_write(x: Tensor, mask: Tensor) -> Tuple[Tensor, Tensor]:
    y = x * 1
    n = torch._nested_tensor_from_mask(y, mask)
    y.add_(100.0)
    return n.to_padded_tensor(0.0), y


@case((X, X[:, 0]))
def set_shares_memory(x: Tensor, y: Tensor) -> Tuple[Tensor, Tensor, Tensor, int]:
    made, other = x * 1, y.clone()
    other.set_(made)
    other.add_(1.0)
    part = torch.zeros(1).set_(made, 2, [3, 2], [1, 6])
    part.mul_(2.0)
    return made, other, part, part.itemsize
