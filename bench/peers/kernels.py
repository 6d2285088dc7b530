"""kernels.py BUILD [--only WORD] [--sizes 1K,64K,16M] [--seconds S] [--rounds R] [--write]

Single kernels in Kiln, PyTorch eager and torch.compile, at sizes from a call's cost to the memory's:
modules of a line each, the same inputs, one thread, one run. The three take turns: in each round
every one of them runs a row for S seconds; a figure is the median over the rounds of each round's
median, beside it the lowest and highest. Answers are compared before anything is timed. Beside the
times stands what Kiln has of the machine: bytes read and written against the bandwidth at that size,
or operations against the FMA peak, both of `bench_peak`, which runs in each round. Run it with a
Python that has torch and a C++ compiler (`compare.py --install FOLDER`); pinned, say by
`taskset -c 1`. --write puts the table into docs/performance-kernels.md.
"""
import argparse
import collections
import functools
import json
import os
import statistics
import subprocess
import sys

os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # no workers beside what is timed
import torch  # noqa: E402
from torch import nn  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "bench"), os.path.join(ROOT, "test", "make")]
import page  # noqa: E402
from neutral import define  # noqa: E402
SIZES = {"1K": (16, 64), "64K": (64, 1024), "16M": (16384, 1024)}  # rows and columns
TOLERANCE = 2e-3  # of the largest element: they round and reorder, this only finds mistakes
SLOWER = 1.03  # what a run cannot tell apart counts as equal

Case = collections.namedtuple("Case", "name params body inputs module bytes flops")


def floats(count=1):
    return lambda r, c: tuple(torch.randn(r, c) for _ in range(count))


def images(r, c):
    side = {16: 8, 64: 32, 16384: 128}[r]
    channels = 64 if r > 16 else 16
    return (torch.randn(r * c // (side * side * channels), channels, side, side),)


def of_images(make):
    return lambda r, c: make(64 if r > 16 else 16)


def batch_norm(channels):
    norm = nn.BatchNorm2d(channels)
    norm.running_mean.normal_(), norm.running_var.uniform_(0.5, 2)
    return norm.eval()


def rows_of(r, c):
    return (torch.randn(4096, c), torch.randint(4096, (r,)))


def moved(*tensors):
    return sum(t.numel() * t.element_size() for t in tensors)


def cases():
    def case(name, body, inputs=floats(), params="x", module=None, nbytes=None, flops=None):
        return Case(name, params, body, inputs, module, nbytes, flops)
    yield case("pointwise chain", "t = torch.tanh(a * b + c) * torch.sigmoid(a)\n"
               "        return (t - c).clamp(-1.0, 1.0) * 0.5 + torch.exp(-t * t)",
               floats(3), "a, b, c")
    yield case("softmax", "return torch.softmax(x, 1)")
    yield case("log_softmax", "return torch.log_softmax(x, 1)")
    yield case("layer norm", "return self.m(x)", module=lambda r, c: nn.LayerNorm(c))
    yield case("group norm", "return self.m(x)", images, module=of_images(lambda n: nn.GroupNorm(8, n)))
    yield case("batch norm", "return self.m(x)", images, module=of_images(batch_norm))
    for op in ("sum", "mean", "amax", "argmax", "var"):
        for what, dim in (("rows", "1"), ("columns", "0"), ("all", "")):
            yield case("%s, %s" % (op, what), "return torch.%s(x%s)" % (op, dim and ", " + dim))
    yield case("max and place, rows", "return torch.max(x, 1)")
    # A cell of 256: as many elements as the others have.
    yield case("LSTM cell", "return self.m(x, (h, c))",
               lambda r, c: tuple(torch.randn(r * c // 256, 256) for _ in range(3)), "x, h, c",
               lambda r, c: nn.LSTMCell(256, 256), None, lambda r, c: 2 * r * c * 512 * 4)
    yield case("LSTM cell behind its products",
               "i, f, g, o = x.chunk(4, 1)\n        y = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)\n"
               "        return torch.sigmoid(o) * torch.tanh(y), y",
               lambda r, c: (torch.randn(r * c // 256, 1024), torch.randn(r * c // 256, 256)), "x, c")
    yield case("embedding", "return torch.embedding(w, i)", rows_of, "w, i",
               nbytes=lambda i, o: moved(o[0], o[0], i[1]))
    yield case("index_select, rows", "return torch.index_select(w, 0, i)", rows_of, "w, i",
               nbytes=lambda i, o: moved(o[0], o[0], i[1]))
    yield case("gather, columns", "return torch.gather(x, 1, i)",
               lambda r, c: (torch.randn(r, c), torch.randint(c, (r, c))), "x, i")
    for source, target in (("float32", "float16"), ("float16", "float32"), ("float32", "bfloat16"),
                           ("bfloat16", "float32"), ("float32", "int32"), ("int32", "float32"),
                           ("float32", "int64"), ("int64", "float32")):
        yield case("%s to %s" % (source, target), "return x.to(torch.%s)" % target,
                   lambda r, c, source=source: ((torch.randn(r, c) * 100).to(getattr(torch, source)),))
    yield case("cumsum, rows", "return torch.cumsum(x, 1)")
    yield case("cumsum, columns", "return torch.cumsum(x, 0)")
    yield case("transposed copy", "return x.t().contiguous()")
    # Heads of 64; as many elements of queries as the others have.
    yield case("attention", "return torch.nn.functional.scaled_dot_product_attention(q, k, v)",
               lambda r, c: tuple(torch.randn(*{16: (1, 1, 16), 64: (1, 4, 256),
                                                16384: (16, 16, 1024)}[r], 64) for _ in range(3)),
               "q, k, v", flops=lambda r, c: 4 * r * c * {16: 16, 64: 256, 16384: 1024}[r])


def module_of(case, rows, columns):
    """A class of its own for each row, so that torch.compile knows each code for one shape."""
    source = "import torch\n\n\nclass Kernel(torch.nn.Module):\n"
    if case.module:
        source += "    def __init__(self, m):\n        super().__init__()\n        self.m = m\n\n"
    source += "    def forward(self, %s):\n        %s\n" % (case.params, case.body)
    kernel = define(source).Kernel
    parts = (case.module(rows, columns),) if case.module else ()
    return kernel(*parts).eval()



def tensors_of(answer):
    return [answer] if isinstance(answer, torch.Tensor) else list(answer)


@functools.cache
def inputs_of(path):
    return torch.load(path)


class Row:
    def __init__(self, case, size, args, folder):
        rows, columns = SIZES[size]
        torch.manual_seed(0)
        self.name, self.size, self.seconds = case.name, size, args.seconds
        self.inputs = case.inputs(rows, columns)
        self.module = module_of(case, rows, columns)
        self.compiled = torch.compile(self.module, fullgraph=True, dynamic=False)
        path = os.path.join(folder, "".join(c if c.isalnum() else "_" for c in case.name) + size)
        # Inputs of the same kind are one file; each case seeds anew.
        self.files = [path + ".pt", os.path.join(folder, "-".join(
            "%s_%s" % (str(t.dtype)[6:], "x".join(map(str, t.shape))) for t in self.inputs) + ".pt")]
        torch.jit.script(self.module).save(self.files[0])
        if not os.path.exists(self.files[1]):
            torch.save(self.inputs, self.files[1])
        self.inputs = inputs_of(self.files[1])
        self.kiln = os.path.join(args.build, "kiln")
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("KILN_")}
        outputs = self.check(path + "_answer.pt")
        self.bytes = case.bytes(self.inputs, outputs) if case.bytes else moved(*self.inputs, *outputs)
        self.reads = moved(*outputs) * 8 < self.bytes
        self.flops = case.flops(rows, columns) if case.flops else 0
        self.figures = {"Kiln": [], "eager": [], "compile": []}

    def check(self, path):
        command = [self.kiln, "run", self.files[0], "--inputs", self.files[1], "--repeat", "3", "--out", path]
        subprocess.check_call(command, env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        want = tensors_of(self.module(*self.inputs))
        for who, answer in (("Kiln", torch.load(path)), ("compile", self.compiled(*self.inputs))):
            for got, wanted in zip(tensors_of(answer), want):
                error = (got.double() - wanted.double()).abs().max() / wanted.double().abs().max()
                if got.dtype != wanted.dtype or not error < TOLERANCE:
                    sys.exit("kernels: %s at %s, %s: differs by %g of the largest element"
                             % (self.name, self.size, who, error))
        os.remove(path)
        return want

    def measure(self):
        ours = json.loads(subprocess.check_output(
            [self.kiln, "bench", self.files[0], "--inputs", self.files[1], "--duration",
             str(self.seconds), "--json", "-"], env=self.env))
        self.figures["Kiln"].append(ours["steady"]["median_ms"] * 1e3)
        self.figures["eager"].append(page.median(lambda: self.module(*self.inputs), self.seconds) * 1e6)
        self.figures["compile"].append(page.median(lambda: self.compiled(*self.inputs), self.seconds) * 1e6)

    def line(self, machine):
        medians = {who: statistics.median(times) for who, times in self.figures.items()}
        seconds = medians["Kiln"] * 1e-6
        of_bytes = self.bytes / seconds / machine["read" if self.reads else "copy"][self.size]
        of_flops = self.flops / seconds / machine["fma"]
        part = "%.0f %% of the %s" % (100 * max(of_bytes, of_flops),
                                      "FMA peak" if of_flops > of_bytes else "bandwidth")
        best = min(medians["eager"], medians["compile"])
        mark = " **" if medians["Kiln"] > best * SLOWER else " "
        cells = [page.cell(self.figures[who]) for who in ("Kiln", "eager", "compile")]
        return "| %s | %s | %s |%s%.2f%s | %s |" % (self.name, self.size, " | ".join(cells), mark,
                                                  medians["Kiln"] / best, mark.strip(), part)


def machine_of(rounds):
    """What bench_peak measured in the rounds: the best of each."""
    sizes = list(rounds[0]["read"])
    return {"fma": max(r["fma"] for r in rounds),
            **{kind: {s: max(r[kind][s] for r in rounds) for s in sizes} for kind in ("read", "copy")}}


def peak(build):
    counts = ["%s=%d" % (name, r * c * 4) for name, (r, c) in SIZES.items()]
    return json.loads(subprocess.check_output([os.path.join(build, "bench", "bench_peak"), *counts]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--only", default="")
    parser.add_argument("--sizes", default=",".join(SIZES))
    parser.add_argument("--seconds", type=float, default=0.2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    folder = os.path.join(args.build, "bench-models", "kernels")
    os.makedirs(folder, exist_ok=True)
    with torch.inference_mode():
        rows = [Row(case, size, args, folder) for case in cases() for size in args.sizes.split(",")
                if args.only in case.name]
        peaks = []
        for _ in range(args.rounds):
            peaks.append(peak(args.build))
            for row in rows:
                row.measure()
    machine = machine_of(peaks)
    lines = ["One thread, microseconds: the median of %d rounds, and the rounds' range. torch %s. The machine: "
             "%.0f GFLOP/s; %s." % (
                 args.rounds, torch.__version__, machine["fma"] * 1e-9,
                 "; ".join("%s floats: %.0f GB/s read, %.0f GB/s copied" % (
                     s, machine["read"][s] * 1e-9, machine["copy"][s] * 1e-9) for s in machine["read"])), "",
             "| kernel | elements | Kiln | PyTorch | torch.compile | Kiln to the best | Kiln has |",
             "|---" * 7 + "|"]
    lines += [row.line(machine) for row in rows]
    text = "\n".join(lines)
    print(text)
    if args.write:
        page.write("<!-- figures of kernels.py -->", "<!-- end of kernels.py -->", text)


main()
