"""Makes test/data/own/containers: the methods of dicts and lists, for every type of key and element.

    /usr/bin/python3 test/make/containers.py test/data/own/containers

Needs torch 1.13 (Debian: python3-torch), which computes the expected results.
"""
import json
import os
import sys
from collections import OrderedDict

import torch

from neutral import define

TYPES = ("int", "float", "bool", "str", "complex", "torch.Tensor")
DICT = '''
    def dict_@N(self, a: @T, b: @T, c: @T) -> Tuple[List[int], List[@T], List[int], List[bool]]:
        d = {a: 1, b: 2}
        d[c] = 3
        out = [len(d), d[a], d[b]]
        has = [a in d]
        got = d.get(a)
        if got is not None:
            out.append(got)
        out.append(d.get(b, 7))
        e = d.copy()
        out.append(e.setdefault(a, 9))
        out.append(e.pop(b))
        out.append(e.pop(b, 11))
        has.append(b in e)
        del e[a]
        out.append(len(e))
        e.update(d)
        f = dict([(a, 4), (c, 5)])
        h = dict(d)
        last = h.popitem()
        out.append(last[1])
        h.clear()
        for item in f.items():
            out.append(item[1])
        return out, list(d.keys()), list(e.values()), has + [len(h) == 0]
'''
LIST = '''
    def list_@N(self, a: @T, b: @T, c: @T) -> Tuple[List[@T], List[int], List[bool]]:
        x = [b, c, a]
        y = [a]
        x.insert(1, a)
        y.extend(x)
        n = [x.index(c), x.count(a), len(x)]
        y.remove(a)
        z = x.copy()
        z.clear()
        x += y
        x.pop()
        x.reverse()
        del x[0]
        w = x * 2
        v = 2 * [c]
        v *= 2
        u = list(v)
        return w + v + x[1:] + u, n + [len(z)], [x == y, x != y, c in y]
'''
SORT = '''
    def sort_@N(self, a: @T, b: @T, c: @T) -> Tuple[List[@T], List[@T]]:
        x = [b, c, a, b]
        x.sort()
        y = [a, c, b]
        y.sort(reverse=True)
        return x + sorted([c, b, a]), y
'''
HEAD = '''from typing import Dict, List, Optional, Tuple

import torch


class Containers(torch.nn.Module):
    def forward(self, i: int, f: float, s: str, t: torch.Tensor):
'''


def source():
    calls, methods = [], []
    args = {"int": "i, 2, i + 7", "float": "f, 2.5, f * 3.0", "bool": "False, True, i > 100",
            "str": 's, "b", s + "z"', "complex": "complex(f, 1.0), 2j, complex(i, 0)",
            "torch.Tensor": "t, t + 1.0, t * 3.0"}
    for kind in TYPES:
        name = kind.split(".")[-1].lower()
        parts = [DICT, LIST] + ([] if kind in ("complex",) else [SORT])
        for what, part in zip(("dict", "list", "sort"), parts):
            if what == "list" and kind in ("complex", "torch.Tensor"):
                part = part.replace("x.index(c), x.count(a), ", "").replace("        y.remove(a)\n", "")
                part = part.replace("[x == y, x != y, c in y]", "[len(x) == 1]")
            if kind == "bool":
                part = part.replace(", c in y]", "]")
            methods.append(part.replace("@N", name).replace("@T", kind))
            calls.append("self.%s_%s(%s)" % (what, name, args[kind]))
    body = "".join("        r%d = %s\n" % (i, c) for i, c in enumerate(calls))
    return HEAD + body + "        return " + ", ".join("r%d" % i for i in range(len(calls))) + "\n" + \
        "".join(methods)


def main(folder):
    os.makedirs(folder, exist_ok=True)
    model = torch.jit.script(define(source()).Containers().eval())
    model.save(os.path.join(folder, "model.pt"))
    sets = [(5, 0.5, "a", torch.tensor(2.0)), (-3, -1.25, "xy", torch.tensor(-1.0))]
    for i, args in enumerate(sets):
        torch.save(args, os.path.join(folder, "inputs_%d.pt" % i))
        torch.save(model(*args), os.path.join(folder, "expected_%d.pt" % i))
    case = OrderedDict(
        name="containers", category="own", producer="torch 1.13.1", kind="script", method="forward",
        n_cases=len(sets), rtol=1e-6, atol=0, stateful=False, note="test/make/containers.py")
    with open(os.path.join(folder, "case.json"), "w") as f:
        json.dump(case, f, indent=1)
        f.write("\n")


main(sys.argv[1])
