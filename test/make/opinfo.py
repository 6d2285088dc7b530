#!/usr/bin/env python3
"""Compares Kiln with PyTorch's own operator database (OpInfo), outside the build and the tests.

    opinfo.py make FOLDER [--dtypes float32,int64] [--ops REGEX] [--samples N]
    opinfo.py run FOLDER KILN [--jit on|off] [--repeat N] [--table FILE]

`make` needs torch (2.x or 1.13) and expecttest, which the database imports. It writes a case of
`kiln check` for each operator and dtype: model.pt has a traced method for each sample, samples.pt
what torch gives for it, twice the same. Left out are samples whose trace differs from the eager
call (random numbers, uninitialised memory) or returns no tensor. `run` checks them all and prints
what fails, and a table: operators and samples right, wrong, missing, by dtype. An operator is missing
where a complaint says so. Tolerances are those of the dtype, widened by the distance from the same
call in the next wider dtype.
"""
import argparse
import collections
import json
import os
import random
import re
import shutil
import subprocess
import sys
import warnings

DTYPES = "float32,int64,bool,bfloat16,float16,complex64"
TOLERANCE = {"float32": (3e-5, 2e-6), "float64": (1e-9, 1e-11), "float16": (2e-3, 1e-3),
             "bfloat16": (1.6e-2, 1e-2), "complex64": (5e-5, 1e-5), "complex128": (1e-9, 1e-11)}
LARGEST = 20000  # elements of a sample


def leaves(v, found=None):
    """The tensors of a nest of lists, tuples and dicts."""
    import torch
    found = [] if found is None else found
    if isinstance(v, torch.Tensor):
        found.append(v)
    elif isinstance(v, (tuple, list, dict)):
        for x in v.values() if isinstance(v, dict) else v:
            leaves(x, found)
    return found


def rebuild(v, tensors):
    """The same nest with other tensors, in their order."""
    import torch
    if isinstance(v, torch.Tensor):
        return next(tensors)
    if isinstance(v, dict):
        return {k: rebuild(x, tensors) for k, x in v.items()}
    if isinstance(v, tuple):
        return tuple(rebuild(x, tensors) for x in v)
    return [rebuild(x, tensors) for x in v] if isinstance(v, list) else v


def plain(v):
    """A result without named tuples, pending conjugations and gradients."""
    import torch
    if isinstance(v, torch.Tensor):
        return v.detach().resolve_conj().resolve_neg()
    if isinstance(v, (tuple, list)):
        return tuple(plain(x) for x in v)
    raise TypeError("returns a Python value")


def same(a, b, rtol, atol):
    import torch
    if isinstance(a, tuple):
        return len(a) == len(b) and all(same(x, y, rtol, atol) for x, y in zip(a, b))
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.is_floating_point() or a.is_complex():
        return torch.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True)
    return torch.equal(a, b)


class Sample:
    """A call as a function of its tensors."""

    def __init__(self, op, s):
        self.op = op.op
        self.whole = (s.input, s.args, s.kwargs)
        self.tensors = tuple(plain(t) for t in leaves(self.whole))

    def inputs(self):
        import torch
        copies = []
        for t in self.tensors:
            c = torch.empty_strided(t.shape, t.stride(), dtype=t.dtype) if t.numel() else t.clone()
            try:
                copies.append(c.copy_(t))
            except RuntimeError:  # an expanded one
                copies.append(t.clone())
        return tuple(copies)

    def call(self, *tensors):
        first, args, kwargs = rebuild(self.whole, iter(tensors))
        out = self.op(first, *args, **kwargs)
        return tuple(out) if isinstance(out, (list, tuple)) else out

    def label(self):
        import torch

        def one(v):
            if isinstance(v, torch.Tensor):
                return ("x".join(map(str, v.shape)) or "0d") + ("" if v.is_contiguous() else "~")
            if isinstance(v, (list, tuple)):
                return "[%s]" % ",".join(map(one, v))
            return str(v)
        first, args, kwargs = self.whole
        words = [one(x) for x in (first, *args)]
        return " ".join(words + ["%s=%s" % (k, one(x)) for k, x in kwargs.items()])[:160]


def deviation(sample, want, dtype):
    """How far the same call in a wider dtype is, of the largest element."""
    import torch
    wider = {torch.float32: torch.float64, torch.float16: torch.float32,
             torch.bfloat16: torch.float32, torch.complex64: torch.complex128}
    if dtype not in wider:
        return 0.0
    try:
        got = plain(sample.call(*(t.to(wider.get(t.dtype, t.dtype)) for t in sample.inputs())))
        gaps = [(a.to(b.dtype) - b).abs() for a, b in zip(leaves(want), leaves(got))
                if b.is_floating_point() or b.is_complex()]
        worst = max([float(g[g.isfinite()].max()) for g in gaps if g.isfinite().any()] or [0.0])
        return worst if worst < 1e3 else 0.0
    except Exception:
        return 0.0


def tolerances(sample, want, dtype, name):
    rtol, atol = TOLERANCE.get(name, TOLERANCE["float32"])
    real = [t for t in leaves((sample.tensors, want)) if t.is_floating_point() or t.is_complex()]
    large = [float(t.abs().max()) for t in real if t.numel()]
    large = max([x for x in large if x < 1e4] or [1.0])
    return rtol, max(atol, atol * large, 8 * deviation(sample, want, dtype))


def good_samples(op, dtype, name, most, left_out):
    """(sample, rtol, atol), of those that a trace can hold."""
    import torch
    torch.manual_seed(0)
    pool = []
    for s in op.sample_inputs("cpu", dtype, requires_grad=False):
        sample = Sample(op, s)
        if sum(t.numel() for t in sample.tensors) <= LARGEST:
            pool.append(sample)
    random.Random(op.formatted_name).shuffle(pool)
    for sample in pool[:most]:
        try:
            want = plain(sample.call(*sample.inputs()))
            if not leaves(want):
                raise TypeError("returns no tensor")
            rtol, atol = tolerances(sample, want, dtype, name)
            traced = torch.jit.trace(sample.call, sample.inputs(), check_trace=False)
            if not same(want, plain(traced(*sample.inputs())), rtol, atol) or not same(
                    want, plain(sample.call(*sample.inputs())), rtol, atol):
                raise ValueError("is not the same twice")
            yield sample, rtol, atol
        except Exception as e:
            left_out[(str(e).strip().splitlines() or [type(e).__name__])[0][:90]] += 1


def make_case(folder, op, dtype, name, most, left_out):
    import torch
    chosen = list(good_samples(op, dtype, name, most, left_out))
    if not chosen:
        return 0
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    cls = type("Op", (torch.nn.Module,), {})
    inputs, rows, infos = {}, [], []
    for i, (sample, _, _) in enumerate(chosen):
        setattr(cls, "s%d" % i, (lambda s: lambda self, *a: s.call(*a))(sample))
        inputs["s%d" % i] = sample.inputs()
    model = os.path.join(folder, "model.pt")
    torch.jit.trace_module(cls().eval(), inputs, check_trace=False).save(model)
    loaded = torch.jit.load(model)
    for i, (sample, rtol, atol) in enumerate(chosen):
        want = plain(getattr(loaded, "s%d" % i)(*sample.inputs()))
        rows.append(("s%d" % i, sample.tensors, want))
        infos.append({"method": "s%d" % i, "rtol": rtol, "atol": atol, "args": sample.label()})
    torch.save(rows, os.path.join(folder, "samples.pt"))
    with open(os.path.join(folder, "case.json"), "w", encoding="utf-8") as f:
        json.dump({"name": os.path.basename(folder), "category": "ops", "samples": infos,
                   "producer": "torch " + torch.__version__, "kind": "trace",
                   "n_cases": len(rows)}, f, indent=1)
    return len(rows)


def make(options):
    warnings.simplefilter("ignore")
    import torch
    from torch.testing._internal.common_methods_invocations import op_db
    torch.set_num_threads(1)
    os.makedirs(options.folder, exist_ok=True)
    count = 0
    with open(os.path.join(options.folder, "left_out.txt"), "a", encoding="utf-8") as log:
        for op in op_db:
            title = re.sub(r"\W", "_", op.formatted_name)
            if not re.search(options.ops, title):
                continue
            for name in options.dtypes.split(","):
                dtype = getattr(torch, name)
                if dtype not in op.supported_dtypes("cpu"):
                    continue
                left_out = collections.Counter()
                try:
                    folder = os.path.join(options.folder, "%s.%s" % (title, name))
                    count += make_case(folder, op, dtype, name, options.samples, left_out)
                except Exception as e:
                    left_out["case: " + str(e)[:90]] += 1
                for why, n in left_out.items():
                    print("%s.%s: %d: %s" % (title, name, n, why), file=log, flush=True)
    print("%d samples" % count)


def run(options):
    """A line of `kiln check` for each failing case, then the table."""
    cases = sorted(d for d in os.listdir(options.folder)
                   if os.path.exists(os.path.join(options.folder, d, "case.json")))
    total = {}
    for d in cases:
        with open(os.path.join(options.folder, d, "case.json"), encoding="utf-8") as f:
            total[d] = json.load(f)["samples"]
    command = [options.kiln, "check", "--jit", options.jit, "--repeat", str(options.repeat)]
    out = subprocess.run(command + [os.path.join(options.folder, d) for d in cases],
                         capture_output=True, text=True, check=False).stdout
    rows = collections.defaultdict(lambda: [0] * 5)
    for line in out.splitlines():
        word, _, rest = line.partition(" ")
        name, _, reason = rest.partition(": " if word == "FAIL" else " (")
        if word not in ("PASS", "FAIL") or name not in total:
            continue
        row, n = rows[name.rpartition(".")[2]], len(total[name])
        missing = word == "FAIL" and re.search(r"operator \S+ is not implemented", reason)
        wrong = int((re.match(r"(\d+) of", reason) or [0, n])[1]) if word == "FAIL" else 0
        row[0 if word == "PASS" else 2 if missing else 1] += 1
        row[3] += n - wrong
        row[4] += wrong
        if word == "FAIL":
            which = re.search(r"\bs(\d+), run", reason)
            args = total[name][int(which[1])]["args"] if which else ""
            print("%s [%s] %s" % (name, args, reason))
    print("\n| dtype | operators right | wrong | missing | samples right | wrong |")
    print("|---|---|---|---|---|---|")
    for dtype, row in sorted(rows.items()):
        print("| %s | %s |" % (dtype, " | ".join(map(str, row))))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("make")
    one.add_argument("folder")
    one.add_argument("--dtypes", default=DTYPES)
    one.add_argument("--ops", default="")
    one.add_argument("--samples", type=int, default=30)
    two = commands.add_parser("run")
    two.add_argument("folder")
    two.add_argument("kiln")
    two.add_argument("--jit", default="on")
    two.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    make(options) if options.command == "make" else run(options)


if __name__ == "__main__":
    sys.exit(main())
