"""Cases of test/make/language.py: lists, dicts and tuples."""
from typing import Any, Dict, List, Optional, Tuple, Union
import torch

NUMS = (([3, 1, 2],), ([],), ([5],), ([1, 1, 2, -3],))


@case(*NUMS)
def list_ops(l: List[int]):
    a = l + [9]
    b = l * 2
    c = [0] * 3
    d = l[:]
    d.append(7)
    d.extend([8, 8])
    d.insert(0, -1)
    d.insert(100, 100)
    d.insert(-1, 55)
    e = d.copy()
    e.reverse()
    return a, b, c, d, e, len(d), 1 in l, 2 not in l, l.count(1), d.index(7), sum(l), l == d, l != d


@case(*NUMS)
def list_mutate(l: List[int]):
    l.append(4)
    l[0] = 10
    l[-1] += 5
    l += [1]
    x = l.pop()
    y = l.pop(0)
    l.sort()
    del l[0]
    return l, x, y


@case(*NUMS)
def list_slices(l: List[int]):
    return l[1:], l[:-1], l[::2], l[-2:], l[5:1], l[0:100], l[-100:2], l[1:3:2]


@case(([1, 2, 3, 4], -1), ([1, 2], -2))
def list_negative_step(l: List[int], k: int):
    return l[::-1], l[::k], l[3:0:-1], l[-1:-3:-1]


@case(([1, 2, 3], 3), ([1, 2, 3], -4), ([], 0))
def list_index_error(l: List[int], i: int):
    return l[i]


@case(([1, 2, 3], 3), ([1], -2))
def list_set_error(l: List[int], i: int):
    l[i] = 0
    return l


@case(([],), ([1],))
def list_pop_error(l: List[int]):
    return l.pop()


@case(([1, 2],), ([3, 4],))
def list_remove(l: List[int]):
    l.remove(3)
    return l, l.index(4)


@case(([1, 2],), ([],))
def list_index_missing(l: List[int]):
    return l.index(7)


@case(([3.5, -1.0, 2.0],), ([],))
def list_floats(l: List[float]):
    s = sorted(l)
    l.sort(reverse=True)
    return s, l, sum(l), 2.0 in l, l.count(2.0), min([1.5, 2.5]), max([1.5, 2.5])


@case((["b", "a", "C"],), ([],))
def list_strs(l: List[str]):
    l.sort()
    m = sorted(l)
    return l, m, "a" in l, "".join(l), l + ["z"], l == m


@case(([True, False],), ([],))
def list_bools(l: List[bool]):
    l.sort()
    return l, any(l), all(l), sum(l), l.count(True), not l


@case(([],), ([1, 2],))
def min_max(l: List[int]):
    return min(l), max(l)


@case(([[1, 2], [3]],), ([[]],), ([],))
def nested(l: List[List[int]]):
    out: List[int] = []
    for r in l:
        for x in r:
            out.append(x)
    l.append([0])
    l[0].append(99)
    return out, l, [len(r) for r in l], [[y * 2 for y in r] for r in l], len(l)


@case(([1, 2, 3],),)
def alias(l: List[int]):
    m = l
    m.append(4)
    n = l.copy()
    n.append(5)
    t = (l, n)
    t[0].append(6)
    d = {"l": l}
    d["l"].append(7)
    return l, n, m is l, n is l, l is not n


@case(([1, 2, 3],), ([],))
def comprehension(l: List[int]):
    return [x * x for x in l], [(x, str(x)) for x in l], [x > 1 for x in l], [i + x for i, x in enumerate(l)], [a * b for a, b in zip(l, l)], {x: x * x for x in l}, {str(k): [k] for k in l}, [i for i in range(5)], [float(x) for x in l]


@case(([1, 2, 3], ["a", "b", "c", "d"]), ([], ["x"]))
def iterate(l: List[int], s: List[str]):
    out: List[str] = []
    for i, x in enumerate(l):
        out.append(str(i) + ":" + str(x))
    for a, b in zip(l, s):
        out.append(b * a if False else b + str(a))
    for i, (a, b) in enumerate(zip(l, s)):
        out.append(str(i) + b)
    for i in range(len(s) - 1, -1, -1):
        out.append(s[i])
    for i in range(0, 10, 4):
        out.append(str(i))
    for i, x in enumerate(s, 5):
        out.append(str(i))
    for i in range(3, 3):
        out.append("never")
    return out


@case((3,), (0,), (-3,))
def ranges(n: int):
    a = [i for i in range(n)]
    b: List[int] = []
    for i in range(10, n, -2):
        b.append(i)
    c: List[int] = []
    for i in range(-n, n):
        c.append(i)
    return a, b, c, list(range(n))


@case((0,), (2,))
def range_zero_step(n: int):
    out: List[int] = []
    for i in range(0, 4, n):
        out.append(i)
    return out


@case(([1, 2],), ([1, 2, 3],))
def unpack(l: List[int]):
    a, b = l
    return a, b


@case(((1, "a", 2.5),),)
def tuples(t: Tuple[int, str, float]):
    a, b, c = t
    d = (a, (b, c))
    x, (y, z) = d
    e = t + (True,)
    return t[0], t[-1], t[1:], t[:2], len(t), d, x, y, z, a == 1


@case((1, 2),)
def swap(a: int, b: int):
    a, b = b, a
    (a, b), c = (b, a + 1), 7
    x = y = a
    x += 1
    return a, b, c, x, y


@case(({"a": 1, "b": 2},), ({},), ({"z": 1, "y": 2, "x": 3},))
def dict_ops(d: Dict[str, int]):
    d["new"] = 5
    d["a"] = 10
    e = d.copy()
    e.update({"q": 1, "a": 0})
    p = e.pop("new")
    s = e.setdefault("s", 77)
    s2 = e.setdefault("q", 78)
    g = d.get("nope")
    h = d.get("a", -1)
    i = d.get("nope", -1)
    k = list(d.keys())
    v = list(d.values())
    it = list(d.items())
    del e["q"]
    return d, e, p, s, s2, g, h, i, k, v, it, len(d), "a" in d, "zz" in d, "zz" not in d


@case(({"a": 1},), ({},))
def dict_clear(d: Dict[str, int]):
    n = len(d)
    d.clear()
    return d, n, bool(len(d))


@case(({"a": 1}, "b"), ({"a": 1}, "a"))
def dict_missing(d: Dict[str, int], k: str):
    return d[k]


@case(({1: "x"}, 2), ({1: "x"}, 1))
def dict_del_missing(d: Dict[int, str], k: int):
    del d[k]
    return d


@case(({1.5: "x"}, 2.0), ({1.5: "x"}, 1.5))
def dict_pop_missing(d: Dict[float, str], k: float):
    return d.pop(k)


@case(({"a": 1},), ({},))
def dict_popitem(d: Dict[str, int]):
    return d.popitem()


@case(({"a": 1, "b": 2},), ({},))
def dict_iterate(d: Dict[str, int]):
    out: List[str] = []
    for k in d:
        out.append(k)
    for k, v in d.items():
        out.append(k + str(v))
    for k in d.keys():
        out.append(k)
    t = 0
    for v in d.values():
        t += v
    return out, t, [k for k in d], {k: v + 1 for k, v in d.items()}, [v for v in d.values()]


@case((3,),)
def dict_kinds(n: int):
    a = {1: 2, 3: 4}
    b = {1.5: "x"}
    c = {True: 1, False: 0}
    e: Dict[str, List[int]] = {}
    for i in range(n):
        key = "k" + str(i % 2)
        if key not in e:
            e[key] = torch.jit.annotate(List[int], [])
        e[key].append(i)
    f: Dict[int, Dict[str, float]] = {1: {"a": 0.5}}
    f[2] = {"b": 1.5}
    g = dict(a)
    g[7] = 8
    h = dict([("a", 1), ("b", 2)])
    i2 = {"x": 1, "x": 2}
    return a, b, c, e, f, g, h, i2


@case((torch.tensor([1.0, 2.0]),),)
def dict_tensors(x: torch.Tensor):
    d: Dict[str, torch.Tensor] = {"a": x}
    d["b"] = x * 2
    t = torch.zeros(2)
    for k in d:
        t = t + d[k]
    r = [d[k] for k in ["b", "a"]]
    return d, t, r, torch.stack(list(d.values()))


@case(([torch.tensor([2.0]), torch.tensor([1.0])],),)
def tensor_lists(l: List[torch.Tensor]):
    l.append(torch.ones(1))
    a, b, c = l
    return torch.cat(l), torch.stack(l), l[0] + l[-1], a, b, c, len(l), sorted([3, 1])


@case(([(2, "b"), (1, "c"), (1, "a")],),)
def sort_tuples(l: List[Tuple[int, str]]):
    m = sorted(l)
    l.sort()
    l.sort(reverse=True)
    return m, l


@case(([1, 2, 3],), ([],))
def truth(l: List[int]):
    d: Dict[str, int] = {}
    a = 1 if l else 0
    b = 1 if not l else 0
    c = 1 if d else 0
    if len(l) and l[0] == 1:
        a += 10
    return a, b, c, len(l) > 0


@case((),)
def empties():
    a: List[int] = []
    b: List[torch.Tensor] = []
    c: Dict[str, int] = {}
    d: List[List[str]] = []
    f = torch.jit.annotate(List[float], [])
    f.append(1.0)
    g = [torch.jit.annotate(Optional[int], None), 3]
    return a, b, c, d, f, g


@case(([None, 1, None],), ([],))
def optional_lists(l: List[Optional[int]]):
    n = 0
    s = 0
    for x in l:
        if x is None:
            n += 1
        else:
            s += x
    l.append(None)
    l.append(7)
    return n, s, l


@case(([1, 2],), )
def list_eq(l: List[int]):
    return l == [1, 2], l == [1], l != [1, 2], [1.0] == [1.0], ["a"] == ["b"], [True] != [True]


@case(([1, 2, 3, 4, 5],),)
def slice_assign(l: List[int]):
    m = l[1:3]
    m[0] = 99
    l[0], l[1] = l[1], l[0]
    return l, m


@case((["x", "y"],),)
def print_lists(s: List[str]):
    print(s, [s, s], {"k": s}, (s, 1))
    print([1.0, 2.5, 1e10], [True], [None, 1], [[1.5]], {1: [2, 3], 4: []})
    return str(s), str([[1], [2, 3]]), str({"a": [1.5]}), str(())


@case((5,),)
def list_of_default(n: int):
    grid = [[0] * n for _ in range(2)]
    grid[0][1] = 5
    total = 0
    for row in grid:
        total += sum(row)
    return grid, total


@case(([3, 1, 2],), ([],))
def iter_next(l: List[int]):
    it = l
    best = -1
    for x in it:
        if x > best:
            best = x
    return best


@case(([1, 2, 3],),)
def delete_many(l: List[int]):
    del l[0], l[0]
    return l


@case(([1, 2, 3],),)
def modify_while(l: List[int]):
    n = 0
    for x in l:
        if n < 3:
            l.append(x)
        n += 1
    return l, n
