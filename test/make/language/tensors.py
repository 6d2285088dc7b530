"""Cases of test/make/language.py: tensors: indexing, keywords, errors."""
from typing import Any, Dict, List, Optional, Tuple, Union
import torch
from torch import Tensor

X = torch.arange(24.0).view(2, 3, 4)


@case((X, 1),)
def indexing(x: Tensor, i: int):
    return x[0], x[-1], x[0, 1], x[0, 1, 2], x[:, 1], x[..., 0], x[0, ..., 1], x[None], x[:, None, 0], x[1:], x[:, ::2], x[i], x[i, i:], x[:, :, -1], x[:, 1:3, ::3], x[..., None], x[:], x[0][1], x[i:i + 1, -i], x[:1, 0, None, 1:]


@case((X, 1),)
def masks(x: Tensor, i: int):
    m = x > 10
    idx = torch.tensor([1, 0])
    return x[m], x[idx], x[:, idx], x[idx, idx], x[0][m[0]], x[idx, :, idx], x[:, torch.tensor([0, 2]), 1], x[idx][:, None], x[m.any(2)], x[torch.tensor(1)], x[:, :, torch.tensor([[0, 1], [2, 3]])]


@case((X, [1, 0]),)
def list_index(x: Tensor, l: List[int]):
    return x[[0, 1]], x[:, [2, 0]], x[l]


@case((X.clone(), 1), )
def assignment(x: Tensor, i: int):
    y = x.clone()
    y[0] = 1
    y[1, 2] = torch.tensor([9.0, 8.0, 7.0, 6.0])
    y[:, 0] += 5
    y[..., 3] *= 2
    y[i, i, i] = 100.0
    z = x.clone()
    z[z > 12] = 0
    z[torch.tensor([0]), 1] = -1.0
    z[:, torch.tensor([0, 2]), 0] = 50
    z[:, 1:2, ::2] -= 3
    w = torch.zeros(3, dtype=torch.long)
    w[1] = 7
    w[2] = True
    w[0] = int(x[0, 0, 1])
    b = torch.zeros(3, dtype=torch.bool)
    b[1] = True
    v = x.clone()
    v[0, :2] = v[1, :2]
    v[v < 5] = v[v < 5] * 10
    v[None, 0, 0, 0] = 3
    return y, z, w, b, v


@case((X.clone(),), )
def inplace(x: Tensor):
    x += 1
    x.mul_(2)
    x[0].zero_()
    y = x.view(-1)
    y[5:8] = -1
    x -= x * 0.5
    x /= 2
    return x, y


@case((X, 3), (X, -3))
def index_error(x: Tensor, i: int):
    return x[i]


@case((X,),)
def too_many(x: Tensor):
    return x[0, 0, 0, 0]


@case((X,),)
def attributes(x: Tensor):
    return x.shape, x.size(), x.size(1), x.dim(), x.ndim, x.dtype, str(x.device), x.is_cuda, x.requires_grad, x.numel(), x.stride(), x.T.shape if x.dim() == 2 else x.shape, x.is_floating_point(), x.is_contiguous(), x.data.sum(), x.layout, x.element_size(), len(x), x.shape[0], x.shape[-1], x.size(-2), list(x.shape), x.is_complex(), x.storage_offset()


@case((X,),)
def keywords(x: Tensor):
    return x.sum(dim=1), x.sum(dim=[0, 1], keepdim=True), x.mean(dim=-1), x.mean((0, 2)), x.max(dim=1)[0], x.max(dim=1, keepdim=True)[1], torch.max(x, 0), x.argmax(dim=-1), torch.cat([x, x], dim=1).shape, torch.cat(tensors=(x, x)).shape, x.transpose(dim0=0, dim1=1).shape, x.permute(2, 0, 1).shape, x.permute([2, 0, 1]).shape, x.reshape(-1, 4).shape, x.view([6, 4]).shape, torch.zeros(2, 3, dtype=torch.int).dtype, torch.ones([2]), torch.full((2,), 7), torch.full([2], 1.5), torch.arange(0, 5, 2), torch.arange(5, dtype=torch.float), torch.linspace(0, 1, steps=3), torch.zeros_like(x, dtype=torch.long).dtype, x.clamp(min=2, max=5), x.clamp(min=20.0), x.std(dim=0, unbiased=False), torch.where(x > 5, x, -x), x.softmax(dim=-1), x.expand(2, 2, 3, 4).shape, x.repeat(1, 2, 1).shape, x.unsqueeze(0).squeeze(0).shape, x.flatten(start_dim=1).shape, x.split(2, dim=2)[1], x.chunk(3, dim=1)[2], x.unbind(dim=0)[1], x.to(torch.float64).dtype, x.to(dtype=torch.int32).dtype, x.to("cpu").device, x.type_as(torch.ones(1, dtype=torch.double)).dtype, x.new_zeros(2), x.new_ones([1, 2]), x.new_full((2,), 3.0), torch.eye(2), x.sort(dim=-1, descending=True)[0], x.topk(2, dim=2)[0], x.gather(2, torch.zeros(2, 3, 1, dtype=torch.long)), x.index_select(1, torch.tensor([0, 2])), x.masked_fill(x > 3, 0.0), x.cumsum(dim=0), x.any(), (x > 1).all(dim=2), x.norm(), x.abs().sqrt().pow(2), x.tolist() if False else 1


@case((X,),)
def unpacks(x: Tensor):
    a, b = x.unbind(0)
    c, d, e = x.unbind(1)
    v, i = x.max(dim=0)
    s, t, u = x.sum(), x[0, 0, 0], x[0, 0, 1]
    p, q = torch.split(x, 1)
    m = torch.max(x, 1)
    n, o = x.shape[0], x.shape[1]
    f, g, h = x.size(0), x.size(1), x.size(2)
    return a, b, c, e, v, i, s, t, u, q, m.values, m.indices, n + o, f * g * h


@case((X, 2), )
def iterate(x: Tensor, n: int):
    t = torch.zeros(3, 4)
    for r in x:
        t = t + r
    out: List[float] = []
    for i, r in enumerate(x[0]):
        out.append(float(r.sum()) + i)
    for a, b in zip(x[0], x[1]):
        t = t + (a * b).sum()
    return t, out, [float(v) for v in x[0, 0]], len(x), [r.sum() for r in x]


@case((X,),)
def scalars(x: Tensor):
    a = float(x[0, 0, 1])
    b = int(x[0, 1, 1])
    c = bool(x[0, 0, 0])
    d = x[0, 0, 2].item()
    e: List[float] = x[0, 0].tolist()
    f: List[List[List[float]]] = x.tolist()
    g = torch.tensor(3).item()
    return a, b, c, d, e, f, g, a + x[0, 0, 1], torch.tensor(a), torch.tensor([a, 2.0]), torch.tensor([[1, 2], [3, 4]]), torch.tensor(True), torch.tensor([b], dtype=torch.float), torch.tensor(1.5, dtype=torch.long), torch.tensor([1, 2, 3]).sum(), torch.tensor([True, False]), torch.tensor(2 + 1j), torch.as_tensor([1.0, 2.0])


@case((X,),)
def item_error(x: Tensor):
    return float(x)


@case((X,),)
def shape_error(x: Tensor):
    return x + torch.ones(5)


@case((X,),)
def matmul_error(x: Tensor):
    return x @ torch.ones(3, 3)


@case((X,),)
def view_error(x: Tensor):
    y = x * 2
    return y.view(5, 5)


@case((X,),)
def cat_error(x: Tensor):
    return torch.cat([x, x[0]])


@case((X,),)
def dim_error(x: Tensor):
    return x.sum(dim=3)


@case((X,),)
def dtype_error(x: Tensor):
    return torch.nn.functional.embedding(x, x[0])


@case((X, 0), (X, 1), (X, 2), (X, 3), (X, 4), (X, 5), (X, 6), (X, 7), (X, 8), (X, 9), (X, 10))
def op_errors(x: Tensor, n: int):
    if n == 0:
        return x.index_select(0, torch.tensor([5]))
    if n == 1:
        return x.squeeze(7)
    if n == 2:
        return torch.stack([x, x[0]])
    if n == 3:
        return x.expand(5, 5, 5)
    if n == 4:
        return x.permute(0, 1)
    if n == 5:
        return torch.nn.functional.linear(x, torch.ones(2, 3))
    if n == 6:
        return x.gather(0, torch.zeros(1, dtype=torch.long))
    if n == 7:
        return torch.mm(x, x)
    if n == 8:
        return x.long() / torch.ones(3)
    if n == 9:
        return x[torch.tensor([9])]
    if n == 10:
        return torch.arange(3).mean()
    return x.split([1, 2])[0]


@case((X,),)
def operators(x: Tensor):
    y = x[0]
    z = y @ y.t()
    return x + 1, 1 + x, x - 1, 1 - x, x * 2, 2 * x, x / 2, 2 / (x + 1), x // 2, x % 3, x ** 2, 2 ** y, -x, x > 2, x >= 2, 2 < x, x == 2, x != 2, 3 == y, z, (x > 1) & (x < 5), (x > 1) | (x < 5), (x > 1) ^ (x < 5), ~(x > 1), x.long() << 1, x.long() >> 1, x.long() & 3, x.int() | 4, abs(-x), x // x.clamp(min=1), x.long() // 3, x.long() % 4, 7 // (x + 1), x.long() / 2, divmod(7, 2)


@case((X,),)
def devices(x: Tensor):
    d = torch.device("cpu")
    e = torch.device("cuda:1")
    return x.to(d), d.type, d == x.device, d != e, str(e), e.index, d.index, torch.zeros(2, device=d), torch.zeros(1, device="cpu"), x.device.type


@case((X, torch.float64), (X, torch.int32))
def dtypes(x: Tensor, dt: torch.dtype):
    y = x.to(dt)
    return y, y.dtype == dt, x.dtype == torch.float32, torch.zeros(2, dtype=dt), y.dtype, torch.float16, torch.promote_types(x.dtype, dt) if False else dt, torch.iinfo(torch.int32).max if False else 0


@case((torch.tensor([1 + 2j, -1j]),), )
def complex_tensor(z: Tensor):
    return z.real, z.imag, z.abs(), z.conj(), z * (1 + 1j), z + 2, torch.complex(z.real, z.imag), torch.view_as_real(z), z.angle()


@case((X,),)
def functional(x: Tensor):
    F = torch.nn.functional.relu(x - 3)
    return F, torch.nn.functional.softmax(x, dim=1), torch.nn.functional.pad(x, [1, 1]), torch.nn.functional.interpolate(x, scale_factor=2.0).shape, torch.nn.functional.gelu(x), torch.nn.functional.layer_norm(x, [4]), torch.einsum("bij,bkj->bik", x, x), torch.nn.functional.one_hot(torch.tensor([0, 2]), 3), torch.nn.functional.normalize(x, dim=2), torch.nn.functional.dropout(x, 0.5, training=False), torch.nn.functional.cross_entropy(x[0], torch.tensor([1, 0, 3])), torch.nn.functional.mse_loss(x, x + 1)


@case((X, None), (X, torch.tensor([2.0])))
def optional_arg(x: Tensor, w: Optional[Tensor]):
    if w is not None:
        x = x * w
    return torch.clamp(x, max=10.0), torch.sum(x)


@case((X,),)
def loops(x: Tensor):
    acc: List[Tensor] = []
    h = x[0]
    for t in range(x.size(1)):
        h = torch.tanh(h * 0.1 + x[1, t])
        if bool(h.sum() > 1):
            acc.append(h)
        else:
            acc.append(-h)
    out = torch.stack(acc, dim=0)
    while out.sum() > 0:
        out = out - 1
    return out, h


@case((X,),)
def tolist_ints(x: Tensor):
    a: List[int] = x.long()[0, 0].tolist()
    b: List[bool] = (x > 3)[0, 0].tolist()
    c: float = x.sum().tolist()
    return a, b, c


@case((X,),)
def tolist_wrong(x: Tensor):
    a: List[int] = x[0, 0].tolist()
    return a


@case((X,),)
def tolist_dims(x: Tensor):
    a: List[float] = x.tolist()
    return a


@case((X,),)
def numel_checks(x: Tensor):
    return x is not None, x.shape == [2, 3, 4], list(x.size()) == [1], x.size()[0], x.shape[1:], len(x.shape), [int(s) for s in x.shape], torch.Size([1, 2]) if False else x.shape


@case((torch.tensor([3, 1, 2]),),)
def sorts(x: Tensor):
    v, i = torch.sort(x)
    u = x
    return v, i, u, torch.argsort(x), x.flip(0), torch.roll(x, 1), torch.nonzero(x > 1), torch.unique(x)[0]
