"""Makes the tables of test/data/runtime with PyTorch: python3 test/make/runtime_tables.py TABLE.

  promotion  promote_types, can_cast and result_type over mixed operands     (made with 1.13)
  convert    bytes of one dtype, bytes of the same elements in another       (1.13, then --new: 2.x)
  prints     tensors and what a TorchScript program prints of them           (1.13)
  types DIR  every type that the IR texts under DIR hold
  signs      signs of singular vectors and eigenvectors                      (2.15)
"""
import itertools
import os
import random
import re
import subprocess
import sys
import warnings

import torch

import neutral

warnings.simplefilter("ignore")
DTYPES = dict(U8=torch.uint8, I8=torch.int8, I16=torch.int16, I32=torch.int32, I64=torch.int64,
              F16=torch.float16, F32=torch.float32, F64=torch.float64, C32=torch.complex32,
              C64=torch.complex64, C128=torch.complex128, BOOL=torch.bool, BF16=torch.bfloat16)
NAMES = {v: k for k, v in DTYPES.items()}


def promotion():
    for a, b in itertools.product(DTYPES, DTYPES):
        print("promote", a, b, NAMES[torch.promote_types(DTYPES[a], DTYPES[b])])
        print("can_cast", a, b, int(torch.can_cast(DTYPES[a], DTYPES[b])))
    operands = [k + n for k in "dz" for n in DTYPES] + ["nI64", "nF64", "nBOOL", "nC128"]
    numbers = dict(nI64=3, nF64=1.5, nBOOL=True, nC128=1j)

    def make(o):
        if o[0] == "n":
            return numbers[o]
        return torch.empty((2,) if o[0] == "d" else (), dtype=DTYPES[o[1:]])

    # Three and more operands through where the pairs leave off: TensorIterator's own rule, which
    # torch.result_type shows for two; longer ones are folded by class as it documents.
    for a, b in itertools.product(operands, operands):
        print("result", a, b, NAMES[torch.result_type(make(a), make(b))])


def raw(t):
    t = t.contiguous()
    if t.dtype in (torch.bfloat16, torch.float16):
        t = t.view(torch.int16)
    elif t.dtype == torch.complex32:
        t = torch.view_as_real(t).contiguous().view(torch.int16)
    elif t.element_size() == 1 and t.dtype != torch.bool:
        t = t.view(torch.uint8)
    elif str(t.dtype) in ("torch.uint16", "torch.uint32", "torch.uint64"):
        t = t.view({2: torch.int16, 4: torch.int32, 8: torch.int64}[t.element_size()])
    return t.numpy().tobytes().hex()


def values_for(name):
    small = [0, 1, 2, 3, 7, 100, 127]
    signed = [-1, -2, -3, -100, -128]
    reals = [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, 3.999, -3.999, 0.1, 100.75, -100.75, 1e-3, 6.1e-5,
             5.96e-8, 2.98e-8, 2.981e-8, 1 + 2.0 ** -11, 1 + 2.0 ** -11 + 2.0 ** -20,
             1 + 3 * 2.0 ** -11, 1 + 2.0 ** -8, 1 + 3 * 2.0 ** -8, 1e-40, 1e-30]
    large = [65504.0, 65519.0, 65520.0, 1e5, 448.0, 464.0, 480.0, 57344.0, 61440.0, 3e38, 1e39,
             float("inf"), float("-inf"), float("nan")]
    if name == "BOOL":
        return [0, 1]
    if name in ("U8", "U16", "U32", "U64"):
        top = {"U8": 255, "U16": 65535, "U32": 2 ** 32 - 1, "U64": 2 ** 63 - 1}[name]
        return small + [200, 255, top]
    if name[0] == "I":
        bits = int(name[1:])
        more = [2 ** (bits - 1) - 1, -2 ** (bits - 1)]
        if bits == 64:
            more += [2 ** 24 + 1, 2 ** 53 + 1, 2 ** 62 + 1, 2049, 65520]
        return small + signed + more
    if name[0] == "C":
        return [complex(a, b) for a, b in zip(reals + large, reals[::-1] + large)]
    return reals + large


def fits(t, dst):
    """Out-of-range conversions to integers depend on how the loop was vectorised."""
    if dst == "BOOL" or dst[0] not in "UI" or not (t.is_floating_point() or t.is_complex()):
        return torch.ones(t.shape, dtype=torch.bool)
    x = (t.real if t.is_complex() else t).double()
    bits = int(dst[1:])
    low, high = (-1, 2.0 ** bits) if dst[0] == "U" else (-2.0 ** (bits - 1) - 1, 2.0 ** (bits - 1))
    return (x > low) & (x < high)


def convert(new):
    names = dict(DTYPES)
    if new:
        names.update(U16=torch.uint16, U32=torch.uint32, U64=torch.uint64,
                     F8E5M2=torch.float8_e5m2, F8E4M3=torch.float8_e4m3fn)
    for a, b in itertools.product(names, names):
        old = a in DTYPES and b in DTYPES and not (a[0] == "C" and b == "BOOL")
        if new == old:  # 1.13 looked at the real part alone to make a bool
            continue
        if a in ("U16", "U32", "U64"):
            wide = torch.tensor(values_for(a), dtype=torch.int64)
            t = wide.to(names[a])
        elif a in ("BOOL",) or a[0] in "UI":
            t = torch.tensor(values_for(a), dtype=names[a])
        else:
            base = torch.complex128 if a[0] == "C" else torch.float64
            t = torch.tensor(values_for(a), dtype=base).to(names[a])
        keep = [i for i, k in enumerate(fits(t.to(torch.float32) if a[:2] == "F8" else t, b)) if k]
        t = torch.stack([t[i] for i in keep])
        print(a, raw(t), b, raw(t.to(names[b])))


PRINTER = """
import torch
@torch.jit.script
def show(x):
    print(x)
"""


def print_cases():
    g = random.Random(7)
    r = lambda n, s: [g.uniform(-s, s) for _ in range(n)]
    f64, f32 = torch.float64, torch.float32
    yield torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    yield torch.tensor([1.0, -1000.5])
    yield torch.tensor([1e6, 2.5])
    yield torch.tensor([123456.7, 100000.1])
    yield torch.tensor([0.00012, 0.0005])
    yield torch.tensor([123456789])
    yield torch.tensor([12345678901, -5])
    yield torch.tensor([1e-120, 1.5], dtype=f64)
    yield torch.tensor([[0.00012, 0.0005], [0.0001, 0.0002]])
    yield torch.tensor([[[1.5, 2], [3, 4]], [[123456789.0, 1], [2, 3]]])
    yield torch.tensor([float("nan"), float("inf")])
    yield torch.tensor([float("-inf"), 1.0, float("nan"), 2.25])
    yield torch.zeros(0)
    yield torch.zeros(2, 0)
    yield torch.zeros(2, 2, 0)
    yield torch.tensor(1.23456789)
    yield torch.tensor(123456789)
    yield torch.tensor(1e10)
    yield torch.tensor(True)
    yield torch.tensor([True, False])
    yield torch.tensor([0.5, 123.25], dtype=torch.bfloat16)
    yield torch.tensor([1 + 2j, 3.5 - 4j])
    yield torch.tensor([-0.0, 0.5])
    yield torch.tensor(r(40, 1), dtype=f32).view(2, 20)
    yield torch.tensor(r(120, 1e6), dtype=f32).view(3, 40)
    yield torch.tensor(r(120, 1e6), dtype=f32).view(2, 3, 20)
    yield torch.tensor(r(48, 1e-3), dtype=f64).view(2, 2, 1, 12)
    yield torch.tensor(r(24, 30), dtype=torch.float16).view(2, 3, 4).transpose(0, 2)
    yield torch.arange(60).view(2, 30)
    yield torch.arange(24, dtype=torch.uint8).view(1, 2, 3, 4)
    for scale in (1e-9, 0.09, 0.9, 9, 99, 999, 99999, 1e7, 1e12, 1e200):
        yield torch.tensor(r(6, scale), dtype=f64).view(2, 3)
        yield torch.tensor(r(3, scale), dtype=f64)


def prints():
    scope = {"__name__": "show"}
    neutral.define(PRINTER, "show.py", scope)
    for t in print_cases():
        sys.stdout.flush()
        values = t.real if t.is_complex() else t
        flat = [float(x).hex() for x in values.double().reshape(-1)]
        print("case", NAMES[t.dtype], "x".join(map(str, t.shape)) or "-", *flat)
        sys.stdout.flush()
        scope["show"](t)
        sys.stdout.flush()
        print("end")


def type_at(text, i):
    depth, j = 0, i
    while j < len(text):
        c = text[j]
        if c in "([<":
            depth += 1
        elif c in ")]>":
            if depth == 0:
                break
            depth -= 1
        elif depth == 0 and (text.startswith(" =", j) or c in ",\n"):
            break
        j += 1
    return text[i:j]


def types(root):
    found = set()
    for folder, _, files in os.walk(root):
        for name in sorted(files):
            if not name.endswith(".txt"):
                continue
            text = open(os.path.join(folder, name)).read()
            for m in re.finditer(r"%[\w.]+ : ", text):
                found.add(type_at(text, m.end()))
    for t in sorted(found):
        print(t)


def numbers(seed):
    """Multiples of 2^-15 in [-1, 1)."""
    x = seed
    while True:
        x = (x * 1664525 + 1013904223) % 2 ** 32
        yield (x >> 16) / 2.0 ** 15 - 1


def matrix(draw, dtype, kind, m, n):
    """Of numbers that are exact in single precision; near: all values are near 4."""
    def one(i, j):
        x = complex(next(draw), next(draw)) if dtype.is_complex else next(draw)
        return x * 2.0 ** -(i // 2) if kind == "graded" else x / 256 + 4 * (i == j) if kind == "near" else x

    return torch.tensor([[one(i, j) for j in range(n)] for i in range(m)], dtype=dtype)


def signs():
    """Of each vector's sum with random weights: a bit where it is positive, the first one highest. None of the sums
    is near 0, none changes its sign where the matrix does by an epsilon."""
    def digest(what, a, side, weights):
        u = torch.linalg.svd(a)[0][:, :min(a.shape)] if what == "svd" else torch.linalg.eigh(a, side)[1]
        sums = (weights.to(u.dtype) @ u).real
        return None if sums.abs().min() < 2e-3 else "".join("01"[int(x > 0)] for x in sums)

    def stable(what, dtype, kind, m, n, side):
        noise = torch.Generator().manual_seed(0)
        for seed in range(1, 1000):
            draw = numbers(seed)
            a = matrix(draw, dtype, kind, m, n)
            if what == "eigh":
                a = a + a.mH
            weights = torch.tensor([next(draw) for _ in range(m)], dtype=torch.float64)
            first = digest(what, a, side, weights)
            for _ in range(3):
                b = a * (1 + torch.finfo(dtype).eps * torch.randint(-1, 2, a.shape, generator=noise).to(dtype))
                if what == "eigh":
                    b = b.tril() + b.tril(-1).mH
                if digest(what, b, side, weights) != first:
                    first = None
            if first:
                return seed, hex(int(first, 2))[2:].zfill(-(-m // 4) if what == "eigh" else -(-min(m, n) // 4))
        raise SystemExit("no stable matrix")

    for name in ("F64", "F32", "C128", "C64"):
        for kind in ("random", "graded", "near"):
            sizes = [(26, 26), (33, 33), (60, 52)]
            if kind == "random":
                sizes += [(45, 30), (44, 30), (58, 30), (30, 44), (30, 70), (52, 52), (104, 104), (130, 90)]
            for m, n in sizes:
                print("svd", name, kind, m, n, "-", *stable("svd", DTYPES[name], kind, m, n, None))
            for n in (26, 27, 51, 52) + (100, 130) * (kind == "random"):
                for side in "LU":
                    print("eigh", name, kind, n, n, side, *stable("eigh", DTYPES[name], kind, n, n, side))


if __name__ == "__main__":
    table = sys.argv[1]
    if table == "types":
        types(sys.argv[2])
    elif table == "convert":
        convert("--new" in sys.argv)
    else:
        dict(promotion=promotion, prints=prints, signs=signs)[table]()
