"""Cases of test/make/language.py: script classes, enums, NamedTuples, with."""
from enum import Enum
from typing import Any, Dict, Final, List, NamedTuple, Optional, Tuple, Union
import torch


class Color(Enum):
    RED = 1
    GREEN = 2
    BLUE = 7


class Mode(Enum):
    FAST = "fast"
    SLOW = "slow é"


class Level(Enum):
    LOW = 0.5
    HIGH = 2.5


@case((1,), (2,), (3,))
def enums(n: int):
    c = Color.RED if n == 1 else Color.BLUE
    m = Mode.FAST
    l = Level.HIGH
    out: List[str] = []
    for x in [Color.RED, Color.GREEN, Color.BLUE]:
        out.append(x.name)
    for y in Color:
        out.append(y.name + str(y.value))
    d = {"a": c.value}
    return c == Color.RED, c != Color.RED, c is Color.RED, c.name, c.value, m.value, m.name, l.value, out, m == Mode.SLOW, d, [z.value for z in Mode]


def take_enum(c: Color, d: Color = Color.GREEN) -> str:
    if c == d:
        return "same " + c.name
    return c.name + d.name


@case((1,), (2,))
def enum_args(n: int):
    print(Color.RED, [Mode.FAST], (Level.LOW, 1))
    e: Optional[Color] = None
    if n > 1:
        e = Color.BLUE
    s = "none"
    if e is not None:
        s = e.name
    return take_enum(Color.RED), take_enum(Color.GREEN), take_enum(Color.RED, Color.BLUE), s, str(Color.RED), "{}".format(Mode.SLOW)


@case((1,),)
def enum_dict(n: int):
    x = [Color.RED, Color.BLUE]
    x.append(Color.GREEN)
    return len(x), x[0] == Color.RED, [c.value for c in x]


class Point(NamedTuple):
    x: float
    y: int = 7
    name: str = "p"


class Pair(NamedTuple):
    first: torch.Tensor
    second: Optional[int]


@case((1.5, 2),)
def named(a: float, b: int):
    p = Point(a, b, "q")
    q = Point(a)
    r = Point(x=a, y=b)
    x, y, n = p
    t = (1, p)
    print(p, [q])
    return p, q, r, p.x + p.y, p[0], p[-1], x, y, n, len(p), p[:2], t[1].name, str(p)


@case((torch.ones(2),),)
def named2(x: torch.Tensor):
    p = Pair(x, None)
    q = Pair(first=x + 1, second=3)
    l = [p, q]
    s = 0
    for e in l:
        v = e.second
        if v is not None:
            s += v
    return p, q, s, l[0].first + l[1].first


@case(((1.5, 2, "z"),), )
def named_arg(p: Point) -> Point:
    return Point(p.x * 2, p.y + 1, p.name + "!")


@torch.jit.script
class Vec:
    def __init__(self, x: int, y: int = 2):
        self.x = x
        self.y = y
        self.log: List[str] = []

    def __add__(self, other: "Vec") -> "Vec":
        return Vec(self.x + other.x, self.y + other.y)

    def __sub__(self, other: "Vec") -> "Vec":
        return Vec(self.x - other.x, self.y - other.y)

    def __mul__(self, k: int) -> "Vec":
        return Vec(self.x * k, self.y * k)

    def __truediv__(self, k: float) -> float:
        return self.x / k

    def __mod__(self, k: int) -> int:
        return self.x % k

    def __pow__(self, k: int) -> int:
        return int(self.x ** k)

    def __floordiv__(self, k: int) -> int:
        return self.x // k

    def __and__(self, k: int) -> int:
        return self.x & k

    def __or__(self, k: int) -> int:
        return self.x | k

    def __xor__(self, k: int) -> int:
        return self.x ^ k

    def __eq__(self, other: "Vec") -> bool:
        return self.x == other.x and self.y == other.y

    def __ne__(self, other: "Vec") -> bool:
        return not (self == other)

    def __lt__(self, other: "Vec") -> bool:
        return self.x < other.x

    def __le__(self, other: "Vec") -> bool:
        return self.x <= other.x

    def __gt__(self, other: "Vec") -> bool:
        return self.x > other.x

    def __ge__(self, other: "Vec") -> bool:
        return self.x >= other.x

    def __len__(self) -> int:
        return self.x

    def __contains__(self, k: int) -> bool:
        return k == self.x or k == self.y

    def __getitem__(self, i: int) -> int:
        if i == 0:
            return self.x
        elif i == 1:
            return self.y
        else:
            raise IndexError("no item " + str(i))

    def __setitem__(self, i: int, v: int) -> None:
        if i == 0:
            self.x = v
        else:
            self.y = v

    def __neg__(self) -> "Vec":
        return Vec(-self.x, -self.y)

    def __call__(self, k: int) -> int:
        return self.x * k + self.y

    def __str__(self) -> str:
        return "Vec(" + str(self.x) + ", " + str(self.y) + ")"

    def __bool__(self) -> bool:
        return self.x != 0

    def __int__(self) -> int:
        return self.x

    def __float__(self) -> float:
        return float(self.y)

    @staticmethod
    def zero() -> "Vec":
        return Vec(0, 0)

    @property
    def norm(self) -> int:
        return self.x * self.x + self.y * self.y

    @property
    def double(self) -> int:
        return self.x * 2

    @double.setter
    def double(self, v: int) -> None:
        self.x = v // 2

    def bump(self, by: int = 1) -> int:
        self.x += by
        self.log.append("bump")
        return self.x


@case((1, 2), (0, 0), (5, 5))
def magic(a: int, b: int):
    v, w = Vec(a, b), Vec(b)
    u = v + w
    s = v - w
    m = v * 3
    return u.x, u.y, s.x, m.y, v / 2.0, v % 3, v ** 2, v & 3, v | 4, v ^ 1, v == w, v != w, v < w, v <= w, v > w, v >= w


@case((1, 2), (0, 0), (5, 5))
def magic2(a: int, b: int):
    v = Vec(a, b)
    n = -v
    v[0] = v[1] + 10
    v.double = 14
    e = 1 if v else 0
    return len(v), a in v, 99 not in v, v[0], v[1], n.x, v(3), str(v), bool(v), int(v), float(v), Vec.zero().x, v.norm, v.double, v.bump(), v.bump(by=5), v.log, e


@case((0,), (2,))
def magic_error(i: int):
    return Vec(1, 2)[i]


@case((3,), (1,))
def class_list(n: int):
    l: List[Vec] = []
    for i in range(n):
        l.append(Vec((i * 7) % 5, i))
    d = {"a": l[0]}
    d["a"].x = 100
    t = 0
    for v in l:
        t += v.x
    return t, l[0].x, [v.y for v in l], l[0] is d["a"]


@case((5,), (1,), (20,))
def class_sort(n: int):
    l: List[Vec] = []
    for i in range(n):
        l.append(Vec((i * 7) % 5, i))
    m = sorted(l)
    l.sort(reverse=True)
    return [v.x for v in m], [v.x for v in l]


@torch.jit.script
class Counter:
    def __init__(self) -> None:
        self.n = 0
        self.hist = [0]

    def __enter__(self) -> int:
        self.n += 1
        return self.n

    def __exit__(self, type: Any, value: Any, tb: Any) -> None:
        self.n += 10
        self.hist.append(self.n)

    def tick(self, k: int) -> "Counter":
        self.n += k
        return self


@case((1,), (2,))
def with_object(k: int):
    c = Counter()
    with c as n:
        c.tick(k).tick(k)
        with Counter() as m:
            k += m
    with c:
        pass
    return c.n, n, m, c.hist


@case((1,), (5,))
def with_return(k: int):
    c = Counter()
    with c:
        if k > 3:
            c.tick(100)
            return c.n
        c.tick(1)
    return c.n


@case((1,), (5,))
def with_raise(k: int):
    c = Counter()
    with c:
        if k > 3:
            raise ValueError("inside")
    return c.n


@torch.jit.script
class Stack:
    def __init__(self):
        self.limit = 3
        self.items: List[int] = []

    def push(self, x: int) -> bool:
        if len(self.items) >= self.limit:
            return False
        self.items.append(x)
        return True

    def pop(self) -> int:
        return self.items.pop()

    def peek(self) -> Optional[int]:
        if len(self.items) == 0:
            return None
        return self.items[-1]


@case((2,), (5,))
def stack(n: int):
    s = Stack()
    ok: List[bool] = []
    for i in range(n):
        ok.append(s.push(i))
    p = s.peek()
    return ok, s.items, s.pop(), p


@torch.jit.script
class Holder:
    def __init__(self, t: torch.Tensor, p: Point):
        self.t = t
        self.p = p
        self.opt = torch.jit.annotate(Optional[torch.Tensor], None)
        self.vec = Vec(1, 2)

    def run(self, x: torch.Tensor) -> torch.Tensor:
        self.t = self.t + x
        self.opt = x
        o = self.opt
        assert o is not None
        return self.t * o + self.vec.x + self.p.x


@case((torch.ones(2),),)
def holder(x: torch.Tensor):
    h = Holder(x, Point(1.0))
    a = h.run(x * 2)
    b = h.run(x)
    g = h
    g.vec.x = 50
    return a, b, h.vec.x, h.p.y, h is g


@torch.jit.interface
class Shape:
    def area(self, k: float) -> float:
        pass

    def name(self) -> str:
        pass


@torch.jit.script
class Square:
    def __init__(self, s: float):
        self.s = s

    def area(self, k: float) -> float:
        return self.s * self.s * k

    def name(self) -> str:
        return "square"


@torch.jit.script
class Circle:
    def __init__(self, r: float):
        self.r = r

    def area(self, k: float) -> float:
        return 3.0 * self.r * self.r * k

    def name(self) -> str:
        return "circle"


def total(shapes: List[Shape], k: float) -> float:
    t = 0.0
    for s in shapes:
        t += s.area(k)
    return t


@case((1,), ("a",))
def object_any(x: Any):
    if isinstance(x, Vec):
        return 1
    return 0


@case((1,),)
def any_object(n: int):
    v: Any = Vec(n, 2)
    r = 0
    if isinstance(v, Vec):
        r = v.x + v.y
    return r


@case((3,),)
def optional_object(n: int):
    v: Optional[Vec] = None
    r = 0
    if n > 2:
        v = Vec(n)
    if v is not None:
        r = v.x
    return r


def gen(n: int) -> Tuple[int, Vec]:
    return n, Vec(n, n)


@case((3,),)
def tuple_object(n: int):
    a, v = gen(n)
    b, (c, w) = 1, gen(a)
    return a, v.x, b, c, w.y


@case((3,),)
def del_item(n: int):
    v = Vec(n, n)
    v.x += 5
    v.y *= 2
    v.log += ["z"]
    v.log[0] += "!"
    return v.x, v.y, v.log
