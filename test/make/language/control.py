"""Cases of test/make/language.py: branches, loops, refinement, exceptions, calls."""
from typing import Any, Dict, List, Optional, Tuple, Union
import torch


@case((5,), (0,), (-3,), (11,))
def early(x: int):
    if x < 0:
        return "neg"
    if x == 0:
        return "zero"
    for i in range(x):
        if i == 7:
            return "seven"
        if i > 9:
            break
    return "end"


@case((5,), (20,), (0,))
def loops(n: int):
    out: List[int] = []
    i = 0
    while True:
        i += 1
        if i % 2 == 0:
            continue
        if i > n:
            break
        for j in range(i):
            if j == 3:
                continue
            if j == 5:
                break
            out.append(i * 10 + j)
    return out, i


@case((5,), (3,))
def nested_return(n: int):
    for i in range(10):
        for j in range(10):
            if i * j == n:
                return i, j
            if i + j > 12:
                break
    return -1, -1


@case((3,), (0,))
def while_cond(n: int):
    k = n
    s = 0
    while k > 0 and s < 100:
        s += k
        k -= 1
    while not (k > 2 or s > 1000):
        k += 1
        s *= 2
    return k, s


@case((5,),)
def while_return(n: int):
    i = 0
    while i < 100:
        i += 1
        if i == n:
            return i * 2
    return -1


@case((None,), (3,), (0,))
def optional(x: Optional[int]):
    if x is None:
        return -1
    y = x + 1
    if x is not None and x > 2:
        y += 10
    z = x if x is not None else 0
    if not x is None:
        y += 1
    if x == 3:
        y += 100
    return y + z


@case((None, None), (3, None), (None, 4), (3, 4))
def optional2(x: Optional[int], y: Optional[int]):
    if x is None and y is None:
        return "none"
    if x is not None and y is not None:
        return str(x + y)
    if x is None:
        assert y is not None
        return "y" + str(y)
    return "x" + str(x)


@case((None,), (3,))
def optional_or(x: Optional[int]):
    if x is None or x > 5:
        return 0
    return x * 2


@case((None,), ("s",))
def optional_default(s: Optional[str] = None, n: int = 3, flag: bool = True):
    if s is None:
        s = "default"
    t = s + str(n)
    return t, flag


@case((None,), (torch.ones(2),))
def optional_tensor(x: Optional[torch.Tensor]):
    if x is None:
        x = torch.zeros(2)
    y = x + 1
    return y, x is None


@case((1,), ("a",), (2.5,), ([1, 2],), (None,), (True,))
def union(x: Union[int, str, float, List[int], None, bool]):
    if isinstance(x, int):
        r = "int" + str(x + 1)
    elif isinstance(x, str):
        r = "str" + x
    elif isinstance(x, float):
        r = "float" + str(x)
    elif isinstance(x, bool):
        r = "bool"
    elif x is None:
        r = "none"
    else:
        r = "list" + str(len(x))
    return r


@case((1,), ("a",))
def union2(x: Union[int, str]):
    if isinstance(x, str):
        return x + "!"
    else:
        return str(x + 1)


@case((1,), ("a",), (2.5,), (None,), ([1],), (["a"],), ((1, "b"),), ({"a": 1},), (torch.ones(1),), (True,))
def any_value(x: Any):
    if isinstance(x, bool):
        return "bool"
    if isinstance(x, int):
        return "int " + str(x)
    if isinstance(x, str):
        return "str " + x
    if isinstance(x, float):
        return "float"
    if isinstance(x, torch.Tensor):
        return "tensor"
    if torch.jit.isinstance(x, List[int]):
        return "list of int " + str(len(x))
    if torch.jit.isinstance(x, List[str]):
        return "list of str"
    if torch.jit.isinstance(x, Dict[str, int]):
        return "dict " + str(x["a"])
    if torch.jit.isinstance(x, Tuple[int, str]):
        return "tuple " + x[1]
    return "other"


@case((1,),)
def isinstance_static(x: int):
    a = isinstance(x, int)
    b = isinstance(x, (str, float))
    c = isinstance([x], list)
    d = isinstance((x, 1), tuple)
    e = isinstance(x, str)
    return a, b, c, d, e


@case((True, 3), (False, 3))
def branches(c: bool, n: int):
    if c:
        x = n
        y: Optional[int] = None
    else:
        x = -n
        y = n
    z = 0
    if y is not None:
        z = y
    return x, z


@case((3,), (-3,))
def asserts(n: int):
    assert n > 0, "n is " + str(n)
    assert n < 100
    return n


@case((3,), (-3,))
def assert_bare(n: int):
    assert n > 0
    return n


class MyError(Exception):
    pass


class Deep(MyError):
    pass


@case(*[(i,) for i in range(16)])
def raises(n: int):
    if n == 1:
        raise ValueError("value " + str(n))
    elif n == 2:
        raise TypeError("type")
    elif n == 3:
        raise KeyError("key")
    elif n == 4:
        raise IndexError("index")
    elif n == 5:
        raise RuntimeError("runtime")
    elif n == 6:
        raise NotImplementedError("not impl")
    elif n == 7:
        raise AssertionError("assertion")
    elif n == 8:
        raise ZeroDivisionError("zero")
    elif n == 9:
        raise Exception("plain")
    elif n == 10:
        raise MyError("mine")
    elif n == 11:
        raise StopIteration("stop")
    elif n == 12:
        raise AttributeError(f"attr {n}")
    elif n == 13:
        raise OverflowError("a {} b".format([n]))
    elif n == 14:
        raise Deep("deep")
    return n


@case((1,), (2,), (3,))
def raise_forms(n: int):
    if n == 1:
        raise ValueError()
    if n == 2:
        raise ValueError
    return n


@case((1,), (2,))
def raise_multi(n: int):
    if n == 1:
        raise ValueError("a", n)
    return n


@case((4,), (0,))
def raise_in_loop(n: int):
    t = 0
    for i in range(n):
        if i == 3:
            raise ValueError(f"at {i} with {t}")
        t += i
    return t


def helper_raises(n: int) -> int:
    if n > 2:
        raise KeyError("too big: %d" % n)
    return n


def helper_mid(n: int) -> int:
    return helper_raises(n + 1) * 2


@case((0,), (5,))
def raise_nested(n: int):
    return helper_mid(n) + 1


@case((torch.tensor(3),), (torch.tensor(0),))
def if_tensor(x: torch.Tensor):
    if x > 2:
        return 1
    elif bool(x):
        return 2
    while x < 5:
        x = x + 1
    return int(x)


@case((torch.tensor([1, 2]),))
def if_tensor_error(x: torch.Tensor):
    if x > 0:
        return 1
    return 0


@case((3,), (12,))
def ternary_chain(n: int):
    a = "big" if n > 10 else ("mid" if n > 5 else "small")
    b = n if n > 5 else None
    c = 1 if b is None else b
    return a, b, c


@case((True, False), (False, True), (True, True), (False, False))
def logic(a: bool, b: bool):
    n = 0
    if a and not b:
        n += 1
    if a or b:
        n += 2
    if not (a and b):
        n += 4
    if a == b:
        n += 8
    c = a and b or not a
    return n, c


def side(l: List[int], v: int) -> bool:
    l.append(v)
    return v > 1


@case((1, 2), (2, 1), (1, 1), (2, 2))
def short_circuit(a: int, b: int):
    l: List[int] = []
    x = side(l, a) and side(l, b)
    y = side(l, a) or side(l, b)
    z = 5 if side(l, 9) else 6
    return x, y, z, l


def fact(n: int, acc: int = 1) -> int:
    while n > 1:
        acc *= n
        n -= 1
    return acc


def kw(a: int, b: int = 2, c: int = 3, d: str = "d") -> str:
    return str(a) + str(b) + str(c) + d


@case((5,), (0,))
def calls(n: int):
    return fact(n), fact(n, 10), fact(acc=2, n=n), kw(1), kw(1, c=9), kw(a=1, d="x", b=7), kw(1, 5, d="y", c=0)


@case((3,),)
def shadow(n: int):
    x = 1
    for x in range(n):
        pass
    y = x
    for i in range(n):
        y += i
        i = 100
    return x, y


@case((3,), (0,))
def loop_var_type(n: int):
    x: Optional[int] = None
    for i in range(n):
        if x is None:
            x = i
        else:
            x = x + i
    return x


@case(([1, 2, 3],))
def pass_statements(l: List[int]):
    for x in l:
        pass
    if len(l) > 1:
        pass
    else:
        l.append(1)
    "a string"
    return l


@case((4,),)
def del_var(n: int):
    x = n
    del x
    x = 5
    return x


@case((2,),)
def with_grad(n: int):
    x = torch.ones(n)
    with torch.no_grad():
        y = x * 2
    return y


@case((5,), (2,))
def while_else_flags(n: int):
    found = False
    i = 0
    while i < 10 and not found:
        if i == n:
            found = True
        else:
            i += 1
    return found, i


@case((1000,),)
def long_loop(n: int):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, (a + b) % 1000007
    return a


@case((torch.arange(4.0), 3),)
def loop_tensor(x: torch.Tensor, n: int):
    h = torch.zeros(4)
    for i in range(n):
        h = torch.tanh(h + x * i)
        if i == 1:
            h = h * 2
    return h


@case((3,),)
def multi_assign(n: int):
    a = b = c = n
    a += 1
    l = m = [1]
    l.append(2)
    return a, b, c, l, m


@case((2,), (7,))
def no_return_value(n: int):
    if n > 5:
        print("big", n)
        return
    print("small")


@case((0,), (1,))
def exit_paths(n: int):
    l: List[str] = []
    for i in range(3):
        for j in range(3):
            if j == 2:
                l.append("c")
                continue
            if i == 1 and n == 1:
                l.append("b")
                break
            l.append(str(i) + str(j))
        if i == 1:
            return l
        l.append("|")
    l.append("never")
    return l


@case((3,), (1,))
def list_in_loop_return(n: int) -> Optional[List[int]]:
    l = [1, 2, 3]
    while len(l) > 0:
        x = l.pop()
        if x == n:
            return l
    return None


def keyword_only(a: int, *, c: int, d: str) -> str:
    return str(a) + str(c) + d


@case((5,),)
def keyword_only_calls(n: int):
    return keyword_only(n, c=1, d="x"), keyword_only(d="y", c=2, a=n)
