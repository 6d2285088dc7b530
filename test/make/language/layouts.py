"""Tensors in other layouts: nested ones (the batches of nn.TransformerEncoder), sparse ones; set_."""
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


# -- Sparse --

I = torch.tensor([[2, 0, 1, 2, 0], [1, 0, 2, 1, 3]])
V = torch.tensor([1.5, -2.0, 0.25, 4.0, 3.0])
D = torch.arange(12, dtype=torch.float32).reshape(4, 3) * 0.5 - 2
BLOCKS = torch.arange(10, dtype=torch.float64).reshape(5, 2)


@case((I, V, [3, 4]), (I, BLOCKS, [4, 4, 2]), (I, V[:3], [3, 4]), (I[:, :0], V[:0], [3, 4]),
      (I, V.long(), [3, 5]))
def make(i: Tensor, v: Tensor, size: List[int]) -> Tuple[Tensor, bool, bool, List[int], int, int, int]:
    s = torch.sparse_coo_tensor(i, v, size)
    return (s.to_dense(), s.is_sparse, s.is_coalesced(), s.size(), s._nnz(), s.sparse_dim(),
            s.dense_dim())


@case((I, V), (I, BLOCKS), (I[:, :1], V[:1]))
def make_unsized(i: Tensor, v: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor, int]:
    s = torch.sparse_coo_tensor(i, v)
    c = s.coalesce()
    return s._indices(), s._values(), c.indices(), c.values(), c._nnz()


@case((I, V))
def uncoalesced(i: Tensor, v: Tensor) -> Tensor:
    return torch.sparse_coo_tensor(i, v, [3, 4]).values()


@case(([2, 3],), ([0],))
def make_empty(size: List[int]) -> Tuple[Tensor, bool]:
    s = torch.sparse_coo_tensor(size, dtype=torch.float64)
    return s.to_dense(), s.is_coalesced()


@case((D,), (D.relu(),), (torch.zeros(2, 0),), ((D > 0),))
def from_dense(x: Tensor) -> Tuple[Tensor, Tensor, Tensor, bool]:
    s = x.to_sparse()
    return s.indices(), s.values(), s.to_dense(), x.is_sparse


@case((torch.stack([D.relu(), D * 0]), 1), (torch.stack([D.relu(), D * 0]), 2), (D, 3))
def from_dense_part(x: Tensor, dims: int) -> Tuple[Tensor, Tensor, Tensor]:
    s = x.to_sparse(dims)
    return s.indices(), s.values(), s.to_dense()


@case((I, V, D), (I, V, D[:, :0]), (I, V.double(), D), (I, V, D[:3]), (I, V.long(), D.long()))
def products(i: Tensor, v: Tensor, d: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    s = torch.sparse_coo_tensor(i, v, [3, 4])
    return (torch.sparse.mm(s, d), torch.mm(s, d), s.matmul(d), s @ d)


@case((I, V, D))
def more_products(i: Tensor, v: Tensor, d: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    s = torch.sparse_coo_tensor(i, v, [3, 4])
    base = torch.ones(3, 3)
    return (torch.addmm(base, s, d, beta=2, alpha=0.5), torch.sparse.addmm(base, s, d),
            torch.mv(s, d[:, 0]), torch.bmm(torch.stack([d.relu(), d.relu() * 2]).to_sparse(),
                                            torch.stack([d.t(), d.t() + 1])))


@case((I, V))
def arithmetic(i: Tensor, v: Tensor) -> List[Tensor]:
    s = torch.sparse_coo_tensor(i, v, [3, 4])
    c = s.coalesce()
    dense = torch.ones(3, 4)
    made = [s + s, s - c, c + c * 2.0, s * c, c * dense, s / 4, -s, s.t(), s.transpose(0, 1).neg(),
            c.abs(), c.sqrt(), s.relu(), s.clone(), s.detach(), s.to(torch.float64), s * 3]
    found = [x.to_dense() for x in made]
    found.append(dense + s)
    return found


@case((I, V))
def sums(i: Tensor, v: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    s = torch.sparse_coo_tensor(i, v, [3, 4])
    return (torch._sparse_sum(s), torch._sparse_sum(s, [0]).to_dense(),
            torch._sparse_sum(s, [1]).to_dense(), torch._sparse_sum(s, [0, 1]))


@case((D, I, V))
def masked(d: Tensor, i: Tensor, v: Tensor) -> Tensor:
    return d.t().sparse_mask(torch.sparse_coo_tensor(i, v, [3, 4]).coalesce()).to_dense()


@case((I, V))
def inner_names(i: Tensor, v: Tensor) -> Tuple[int, int, Tensor, Tensor, Tensor, Tensor, Tensor]:
    s = torch.ops.aten._sparse_coo_tensor_unsafe(i, v, [3, 4])
    empty = torch.ops.aten._sparse_coo_tensor_with_dims(2, 0, [3, 4], dtype=6, layout=1,
                                                        device=torch.device("cpu"))
    again = torch.ops.aten._sparse_coo_tensor_with_dims_and_tensors(
        2, 0, [3, 4], i, v, dtype=6, layout=1, device=torch.device("cpu"))
    return (torch.ops.aten._dimI(s), torch.ops.aten._dimV(s), torch.ops.aten._coalesce(s).to_dense(),
            empty.to_dense(), again.to_dense(), torch._sparse_sum(s, dtype=7),
            torch._sparse_sum(s, [0], dtype=7).to_dense())


@case((X, MASK))
def padded_again(x: Tensor, keep: Tensor) -> Tuple[Tensor, Tensor]:
    n = torch._nested_tensor_from_mask(x, keep)
    return torch.ops.aten._nested_tensor_size(n), torch.ops.aten.nested_to_padded_tensor(n, 0.5)


class Graph(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.first = torch.nn.Linear(3, 4)
        self.second = torch.nn.Linear(4, 2)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        n = x.size(0)
        a = torch.sparse_coo_tensor(edges, torch.ones(edges.size(1)), [n, n])
        degree = torch._sparse_sum(a, [1]).to_dense().clamp(min=1.0).unsqueeze(1)
        x = torch.relu(torch.sparse.mm(a, self.first(x)) / degree)
        return torch.sparse.mm(a, self.second(x))


case((D, torch.tensor([[0, 1, 2, 3, 3], [1, 0, 3, 2, 0]])),
     (D[:2], torch.tensor([[0, 1], [1, 0]])))(Graph)
