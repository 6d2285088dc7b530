"""Makes test/data/own/attention: softmax of products in front of products, and what the operator
scaled_dot_product_attention makes of its masks, against sums in Python's floats.

Run from the root of the project: python3 test/make/attention.py build/kiln
Neither PyTorch nor NumPy is needed: Kiln itself writes the tensors, which it reads as .npz."""
import json
import math
import pathlib
import random
import struct
import subprocess
import sys
import zipfile

HEAD = """class Model(Module):
  __parameters__ = []
  __buffers__ = []
  training : bool
"""
MODEL = HEAD + """  def forward(self: __torch__.Model,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Tensor,
    seen: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    s = torch.div(torch.matmul(q, torch.transpose(k, -1, -2)), 4.)
    a = torch.softmax(torch.add(s, bias), -1)
    plain = torch.transpose(torch.matmul(a, v), 1, 2)
    causal = torch.scaled_dot_product_attention(q, k, v, None, 0., True)
    masked = torch.scaled_dot_product_attention(q, k, v, seen, 0., False, scale=0.5)
    n = torch.mul(torch.size(q, 0), torch.size(q, 1))
    q0 = torch.reshape(q, [n, torch.size(q, 2), -1])
    k0 = torch.reshape(k, [n, torch.size(k, 2), -1])
    v0 = torch.reshape(v, [n, torch.size(v, 2), -1])
    s0 = torch.baddbmm(bias, q0, torch.transpose(k0, 1, 2), beta=2., alpha=0.25)
    return (plain, causal, masked, torch.relu(torch.bmm(torch.softmax(s0, 2), v0)))
"""


def echo(count):
    names = [f"a{i}" for i in range(count)]
    return HEAD + (f"  def forward(self: __torch__.Model,\n    {': Tensor, '.join(names)}: Tensor)"
                   f" -> Tuple[{', '.join(['Tensor'] * count)}]:\n    return ({', '.join(names)})\n")


def write_model(path, source):
    with zipfile.ZipFile(path, "w") as z:
        for name, data in (("data.pkl", b"\x80\x02c__torch__\nModel\n)\x81}X\x08\x00\x00\x00training"
                            b"\x89sb."), ("constants.pkl", b"\x80\x02)."), ("version", b"10\n"),
                           ("code/__torch__.py", source.encode())):
            z.writestr(zipfile.ZipInfo("attention/" + name), data)


def npy(shape, data):
    kind, what = ("|b1", bytes(data)) if isinstance(data[0], bool) else (
        "<f4", struct.pack(f"<{len(data)}f", *data))
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    head += " " * (63 - (len(head) + 10) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + what


def write_tuple(kiln, folder, name, tensors):
    """Through a model that gives its arguments back."""
    model, arguments = folder / "echo.pt", folder / "echo.npz"
    write_model(model, echo(len(tensors)))
    with zipfile.ZipFile(arguments, "w") as z:
        for i, (shape, data) in enumerate(tensors):
            z.writestr(f"arr_{i}.npy", npy(shape, data))
    subprocess.run([kiln, "run", model, "--inputs", arguments, "--out", folder / name], check=True)
    model.unlink()
    arguments.unlink()


def attend(q, k, v, head, row, sizes, score):
    """A row of the result; score(sum, head, row, column)."""
    _, _, rows, keys, depth, width = sizes
    own = q[(head * rows + row) * depth:][:depth]
    scores = [score(math.fsum(a * b for a, b in zip(own, k[(head * keys + t) * depth:][:depth])),
                    head, row, t) for t in range(keys)]
    most = max(scores)
    weights = [0.0 if most == -math.inf else math.exp(s - most) for s in scores]
    total = sum(weights) or 1.0
    return [math.fsum(w / total * v[(head * keys + t) * width + e] for t, w in enumerate(weights))
            for e in range(width)]


def make(sizes):
    batch, heads, rows, keys, depth, width = sizes
    count = batch * heads
    single = struct.Struct("<f")
    numbers = lambda n: [single.unpack(single.pack(random.gauss(0, 1)))[0] for _ in range(n)]
    q, k, v = numbers(count * rows * depth), numbers(count * keys * depth), numbers(
        count * keys * width)
    bias = numbers(keys)
    seen = [t != 0 and random.random() < 0.3 for _ in range(batch * rows) for t in range(keys)]
    seen[:keys] = [False] * keys  # a row that sees nothing is 0
    hide = lambda s, is_seen: s if is_seen else -math.inf
    scores = [lambda s, h, i, t: s / 4 + bias[t],
              lambda s, h, i, t: hide(s / math.sqrt(depth), t <= i),
              lambda s, h, i, t: hide(s / 2, seen[(h // heads * rows + i) * keys + t]),
              lambda s, h, i, t: s / 4 + 2 * bias[t]]
    results = [[attend(q, k, v, h, i, sizes, score) for h in range(count) for i in range(rows)]
               for score in scores]
    flat = lambda table: [x for row in table for x in row]
    turned = [results[0][(b * heads + h) * rows + i] for b in range(batch) for i in range(rows)
              for h in range(heads)]
    shape = (batch, heads, rows, width)
    inputs = [((batch, heads, rows, depth), q), ((batch, heads, keys, depth), k),
              ((batch, heads, keys, width), v), ((1, 1, keys), bias),
              ((batch, 1, rows, keys), seen)]
    expected = [((batch, rows, heads, width), flat(turned)), (shape, flat(results[1])),
                (shape, flat(results[2])),
                ((count, rows, width), [max(x, 0.0) for x in flat(results[3])])]
    return inputs, expected


def main():
    kiln, folder = sys.argv[1], pathlib.Path("test/data/own/attention")
    random.seed(12)
    folder.mkdir(parents=True, exist_ok=True)
    write_model(folder / "model.pt", MODEL)
    calls = [(1, 2, 32, 32, 16, 16), (2, 2, 75, 29, 16, 9), (1, 3, 29, 75, 20, 24),
             (1, 2, 32, 32, 16, 16), (2, 1, 4, 64, 16, 16)]
    for i, sizes in enumerate(calls):
        inputs, expected = make(sizes)
        write_tuple(kiln, folder, f"inputs_{i}.pt", inputs)
        write_tuple(kiln, folder, f"expected_{i}.pt", expected)
    (folder / "case.json").write_text(json.dumps({
        "name": "attention", "category": "own", "producer": "sums in Python",
        "method": "forward", "n_cases": len(calls), "rtol": 1e-5, "atol": 1e-5, "kind": "script",
        "stateful": False, "note": "two products with softmax between, as a kernel",
    }, indent=1) + "\n")


main()
