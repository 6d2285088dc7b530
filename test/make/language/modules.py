"""Cases of test/make/language.py: modules: state, containers, hooks, interfaces, fork."""
from typing import Any, Dict, Final, List, NamedTuple, Optional, Tuple
import torch
import torch.nn as nn
from torch import Tensor


class Sub(nn.Module):
    def __init__(self, k: float):
        super().__init__()
        self.k = k
        self.w = nn.Parameter(torch.full((3,), k))

    def forward(self, x: Tensor, scale: float = 1.0) -> Tensor:
        return x * self.w * scale + self.k

    def extra(self, x: Tensor) -> Tensor:
        return x - self.k


@case((torch.ones(3),), (torch.zeros(3),))
class State(nn.Module):
    names: List[str]
    table: Dict[str, int]
    last: Optional[Tensor]

    def __init__(self):
        super().__init__()
        self.count = 0
        self.total = 0.0
        self.names = []
        self.table = {}
        self.last = None
        self.pair = (1, "a")
        self.flag = False
        self.register_buffer("buf", torch.zeros(3))
        self.register_buffer("nobuf", None)
        self.shape = [2, 3]

    def forward(self, x: Tensor):
        self.count += 1
        self.total += float(x.sum())
        self.names.append("n" + str(self.count))
        self.table["k" + str(self.count % 2)] = self.count
        self.buf += x
        self.buf[0] = self.count
        last = self.last
        s = 0.0
        if last is not None:
            s = float(last.sum())
        self.last = x + self.count
        self.pair = (self.count, self.pair[1] + "b")
        self.flag = not self.flag
        self.shape[0] = self.count
        return self.count, self.total, self.names, self.table, self.buf.clone(), s, self.pair, self.flag, self.shape, self.nobuf


@case((torch.ones(3),),)
class Containers(nn.Module):
    def __init__(self):
        super().__init__()
        self.list = nn.ModuleList([Sub(1.0), Sub(2.0)])
        self.seq = nn.Sequential(Sub(3.0), nn.ReLU(), Sub(-1.0))
        self.dict = nn.ModuleDict({"a": Sub(0.5), "b c": Sub(0.25)})
        self.empty = nn.ModuleList()

    def forward(self, x: Tensor):
        out: List[Tensor] = []
        for m in self.list:
            out.append(m(x))
        for i, m in enumerate(self.list):
            x = m(x, float(i))
        for m in self.seq:
            x = m(x)
        names: List[str] = []
        for k, m in self.dict.items():
            names.append(k)
            x = x + m(x)
        for k in self.dict.keys():
            names.append(k)
        for m in self.dict.values():
            x = m.extra(x)
        for m in self.empty:
            x = x * 0
        for a, b in zip(self.list, (10.0, 20.0)):
            x = a(x, b)
        for m in self.list[1:]:
            x = m(x)
        y = self.list[0](x) + self.list[-1].extra(x) + self.dict["a"](x) + self.seq(x)
        return out, x, names, y, len(self.list), len(self.dict), len(self.empty), "a" in self.dict, len(self.seq)


@case((torch.ones(3),),)
class Params(nn.Module):
    def __init__(self):
        super().__init__()
        self.ps = nn.ParameterList([nn.Parameter(torch.ones(3) * i) for i in range(3)])
        self.register_parameter("none", None)

    def forward(self, x: Tensor):
        for p in self.ps:
            x = x + p
        return x + self.ps[1], self.none is None


@case((torch.ones(3), 2), (torch.ones(3), -2))
class Exported(nn.Module):
    N: Final[int] = 4
    WORDS: Final[List[str]]
    __constants__ = ["old"]

    def __init__(self):
        super().__init__()
        self.old = 7
        self.WORDS = ["x", "yé"]
        self.sub = Sub(2.0)
        self.size: Final[Tuple[int, int]] = (3, 4)

    @torch.jit.export
    def helper(self, x: Tensor, n: int = 3) -> Tensor:
        if n < 0:
            return self.negative(x, n)
        return x * n

    def negative(self, x: Tensor, n: int):
        return self.sub.extra(x) * n

    @torch.jit.ignore
    def ignored(self, x: Tensor) -> Tensor:
        return x

    @torch.jit.unused
    def unused(self, x: Tensor) -> Tensor:
        return x

    @property
    def twice(self) -> int:
        return self.old * 2

    def forward(self, x: Tensor, n: int):
        if n > 1000:
            return self.unused(x), 0, self.WORDS, 0
        return self.helper(x, n) + self.helper(x, 2), self.N + self.old + self.size[1], self.WORDS, self.twice


@case((torch.ones(3),),)
class Unused(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = Sub(1.0)

    @torch.jit.unused
    def unused(self, x: Tensor) -> Tensor:
        return x

    def forward(self, x: Tensor):
        return self.unused(x)


class Hooked(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2


def pre(self, input: Tuple[Tensor]) -> Tuple[Tensor]:
    return (input[0] + 1,)


def post(self, input: Tuple[Tensor], output: Tensor) -> Tensor:
    return output + input[0]


def post_none(self, input: Tuple[Tensor], output: Tensor) -> None:
    print("hook", output)


@case((torch.ones(3),),)
class Hooks(nn.Module):
    def __init__(self):
        super().__init__()
        self.h = Hooked()
        self.h.register_forward_pre_hook(pre)
        self.h.register_forward_hook(post)
        self.h.register_forward_hook(post_none)

    def forward(self, x: Tensor):
        return self.h(x), self.h(self.h(x))


@torch.jit.interface
class Layer(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pass


class L1(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = 0

    def forward(self, x: Tensor) -> Tensor:
        self.n += 1
        return x + self.n


class L2(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 10


@case((torch.ones(2), 0), (torch.ones(2), 1))
class Interfaces(nn.Module):
    layer: Layer

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([L1(), L2()])
        self.named = nn.ModuleDict({"one": L1(), "two": L2()})
        self.layer = L1()

    def forward(self, x: Tensor, i: int):
        m: Layer = self.layers[i]
        k = "one" if i == 0 else "two"
        d: Layer = self.named[k]
        return m.forward(x), d.forward(x), self.layer.forward(x)


@case((torch.ones(2),),)
class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        s = L1()
        self.a = s
        self.b = s
        self.w = nn.Parameter(torch.ones(2))
        self.v = self.w

    def forward(self, x: Tensor):
        y = self.a(x) + self.b(x)
        self.w.data.add_(1.0)
        return y, self.v.detach().clone(), self.a.n


class Base(nn.Module):
    def __init__(self, k: int):
        super().__init__()
        self.k = k

    def step(self, x: Tensor) -> Tensor:
        return x + self.k

    def forward(self, x: Tensor) -> Tensor:
        return self.step(x)


class Derived(Base):
    def step(self, x: Tensor) -> Tensor:
        return x * self.k


@case((torch.ones(2),),)
class Inherit(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Base(3)
        self.b = Derived(5)

    def forward(self, x: Tensor):
        return self.a(x), self.b(x), self.training


@case((torch.ones(2, 4),),)
class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.l = nn.Linear(4, 4)
        self.bn = nn.BatchNorm1d(4)
        self.ln = nn.LayerNorm(4)
        self.drop = nn.Dropout(0.5)
        self.emb = nn.Embedding(5, 4)
        self.act = nn.GELU()

    def forward(self, x: Tensor):
        y = self.drop(self.act(self.ln(self.bn(self.l(x)))))
        return y + self.emb(torch.tensor([1, 3]))


@case((torch.ones(2), 3),)
class Fork(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = L2()

    def work(self, x: Tensor, n: int) -> Tensor:
        for i in range(n):
            x = x + i
        return x

    def forward(self, x: Tensor, n: int):
        f = torch.jit.fork(self.work, x, n)
        g = torch.jit.fork(self.sub, x)
        fs: List[torch.jit.Future[Tensor]] = []
        for i in range(3):
            fs.append(torch.jit.fork(self.work, x, i))
        r: List[Tensor] = []
        for h in fs:
            r.append(torch.jit.wait(h))
        return torch.jit.wait(f) + torch.jit.wait(g), r


@case((torch.ones(2), 3), (torch.ones(2), 7))
class ForkRaise(nn.Module):
    def work(self, x: Tensor, n: int) -> Tensor:
        if n > 5:
            raise ValueError("in fork")
        return x

    def forward(self, x: Tensor, n: int):
        f = torch.jit.fork(self.work, x, n)
        return torch.jit.wait(f)


@case((torch.ones(2),),)
class Attr(nn.Module):
    d: Dict[str, List[int]]
    t: Tuple[int, Optional[str]]
    nested: List[List[float]]

    def __init__(self):
        super().__init__()
        self.d = {"a": [1]}
        self.t = (1, None)
        self.dev = torch.device("cpu")
        self.dt = torch.float64
        self.f = float("inf")
        self.s = "é\n\"quoted\""
        self.nested = [[1.0], []]
        self.ts: List[Tensor] = [torch.ones(1), torch.zeros(2)]
        self.c = 1 + 2j
        self.b = True
        self.fn = torch.relu

    def forward(self, x: Tensor):
        self.d["a"].append(len(self.d["a"]))
        self.nested[1].append(2.5)
        self.ts.append(x)
        self.ts[0] += 1
        has = hasattr(self, "nothing")
        return self.d, self.t, x.to(self.dt), self.f, self.s, self.nested, self.ts, self.c, self.b, has, getattr(self, "f"), x.device == self.dev


@case((torch.ones(2), torch.zeros(2)),)
class Traced(nn.Module):
    def __init__(self):
        super().__init__()
        self.t = torch.jit.trace(lambda a, b: a.sin() + b.cos() * 2, (torch.ones(2), torch.ones(2)))

    def forward(self, x: Tensor, y: Tensor):
        return self.t(x, y)


@torch.jit.script
def over(x: Tensor, n: int = 2) -> Tensor:
    return x * n


@case((torch.ones(2),),)
class Functions(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = over

    def forward(self, x: Tensor):
        return over(x), self.f(x, 5), over(n=3, x=x)
