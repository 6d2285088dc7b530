"""Checks that PyTorch reads what Kiln writes, and Kiln what torch.save writes.

    python test/make/round_trip.py build/kiln      (torch 1.13 and 2.x)

Values go through torch.save, `kiln run` of a method that hands its argument back, and torch.load:
every dtype, state dicts, views that share a storage, strides, nesting, plain values. Arrays go
through numpy.save, Kiln and numpy.load. Nothing is kept: the units read recorded files of each.
"""
import os
import subprocess
import sys
import tempfile
from collections import OrderedDict, defaultdict

import numpy
import torch

from neutral import define

SOURCE = '''from typing import Any, Dict, List

import torch


class Back(torch.nn.Module):
    def forward(self, x: torch.Tensor):
        return x

    @torch.jit.export
    def back_any(self, x: Any) -> Any:
        return x

    @torch.jit.export
    def back_state(self, x: Dict[str, torch.Tensor]) -> Dict[str, torch.Tensor]:
        return x

    @torch.jit.export
    def back_list(self, x: List[torch.Tensor]) -> List[torch.Tensor]:
        return x
'''
NAMES = ("float32 float64 float16 bfloat16 uint8 int8 int16 int32 int64 bool complex64 complex128 "
         "float8_e5m2 float8_e4m3fn uint16 uint32 uint64").split()
DTYPES = [getattr(torch, n) for n in NAMES if hasattr(torch, n)]


def same(a, b):
    if isinstance(a, torch.Tensor):
        if not isinstance(b, torch.Tensor) or a.dtype != b.dtype or a.shape != b.shape:
            return False
        if a.stride() != b.stride() and a.numel() > 1:
            return False
        return torch.equal(bits(a), bits(b))
    if isinstance(a, dict):
        return isinstance(b, dict) and list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return isinstance(b, (list, tuple)) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and (a == b or (a != a and b != b))


def bits(t):
    size = t.element_size()
    t = t.resolve_conj().resolve_neg().contiguous()
    if t.dtype == torch.complex128:
        return torch.view_as_real(t).view(torch.int64)
    return t.view(-1).view({1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[size])


class Kiln:
    def __init__(self, program, folder):
        self.program, self.folder, self.failures, self.count = program, folder, 0, 0
        self.model = os.path.join(folder, "back.pt")
        torch.jit.script(define(SOURCE).Back()).save(self.model)

    def run(self, method, source, target):
        done = subprocess.run([self.program, "run", self.model, "--method", method, "--inputs",
                               source, "--out", target], capture_output=True, text=True)
        return done.stderr

    def check(self, what, method, value, want=None):
        source, target = (os.path.join(self.folder, n) for n in ("in.pt", "out.pt"))
        torch.save((value,), source)
        error = self.run(method, source, target)
        self.count += 1
        want = value if want is None else want
        good, got = not error, None
        if good:
            got = torch.load(target)
            good = same(want, got)
        if not good:
            self.failures += 1
            print("FAIL %s: %s" % (what, error.strip() or "%r, want %r" % (got, want)))
        return got


def main(program):
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as folder:
        kiln = Kiln(program, folder)
        base = torch.randn(4, 6) * 3
        for dtype in DTYPES:
            t = base.abs() if "uint" in str(dtype) else base
            t = t.to(dtype)
            kiln.check(str(dtype), "forward", t)
            kiln.check("%s, a state dict" % dtype, "back_state", OrderedDict(w=t, b=t[1]))
            kiln.check("%s, empty" % dtype, "forward", t[:0])
            kiln.check("%s, no dimensions" % dtype, "forward", t[0, 0])
            kiln.check("%s, transposed" % dtype, "forward", t.t())
        whole = torch.arange(12.0)
        got = kiln.check("views of a storage", "back_list", [whole, whole[2:5], whole.view(3, 4).t()])
        if got:
            got[0][3] = 100.0
            if got[1][1] != 100.0 or got[2][3, 0] != 100.0:
                kiln.failures += 1
                print("FAIL views do not share a storage")
        same_tensor = torch.ones(2)
        got = kiln.check("one tensor twice", "back_list", [same_tensor, same_tensor])
        if got and got[0].data_ptr() != got[1].data_ptr():
            kiln.failures += 1
            print("FAIL one tensor became two")
        z = torch.randn(3, 2, dtype=torch.complex64)
        if torch.__version__ >= "2":  # 1.13 forgets the mark itself
            kiln.check("conj", "forward", z.conj())
            kiln.check("conj of a transposed", "forward", z.t().conj())
            kiln.check("neg", "forward", torch._neg_view(torch.randn(3)))
        kiln.check("a parameter", "forward", torch.nn.Parameter(torch.ones(2)))
        kiln.check("channels last", "forward",
                   torch.randn(1, 3, 4, 5).contiguous(memory_format=torch.channels_last))
        kiln.check("expanded", "forward", torch.arange(3.0).view(3, 1).expand(3, 4))
        module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
        kiln.check("a module's state dict", "back_state", module.state_dict())
        for value in [1, -1, 255, 256, 65536, -(1 << 31), 1 << 31, (1 << 63) - 1, -(1 << 63), 0.5,
                      float("inf"), float("nan"), -0.0, True, False, None, "", "text", "caf\u00e9 \u4e2d",
                      1.5 - 2j, [1, 2], [], (), (1, "a", None), {"a": 1, "b": [1.0]}, {},
                      {1: (2, 3)}, [[1], [2, 3]], ["a", "b"], [True], [(1, "x"), (2, "y")],
                      torch.device("cpu")]:
            kiln.check(repr(value), "back_any", value)
        kiln.check("torch.Size", "back_any", torch.Size([2, 3]), [2, 3])
        kiln.check("OrderedDict", "back_any", OrderedDict([("b", 1), ("a", 2)]), {"b": 1, "a": 2})
        lists = defaultdict(list)
        lists["k"].append(1)
        kiln.check("defaultdict", "back_any", lists, {"k": [1]})
        kiln.check("a layout", "back_any", torch.sparse_coo, 1)
        kiln.check("a dtype", "back_any", torch.float16, 5)
        for name in "bool uint8 int8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 " \
                    "complex64 complex128".split():
            for order in ("<", ">"):
                array = (numpy.arange(6).reshape(2, 3) % 2 + 1).astype(name)
                array = array.astype(array.dtype.newbyteorder(order))
                for form in (array, numpy.asfortranarray(array), array[:0], array[0, 0]):
                    source, target = (os.path.join(folder, n) for n in ("in.npy", "out.npy"))
                    numpy.save(source, form)
                    done = subprocess.run([program, "run", kiln.model, "--input", "@" + source,
                                           "--out", target], capture_output=True, text=True)
                    kiln.count += 1
                    got = None if done.stderr else numpy.load(target)
                    if got is None or got.dtype != numpy.dtype(name) or not numpy.array_equal(got, form):
                        kiln.failures += 1
                        print("FAIL npy %s%s: %s" % (order, name, done.stderr or got))
        print("torch %s: %d values, %d failures" % (torch.__version__, kiln.count, kiln.failures))
        return 1 if kiln.failures else 0


sys.exit(main(os.path.abspath(sys.argv[1])))
