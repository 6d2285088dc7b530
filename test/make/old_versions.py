"""Makes test/data/versions: archives whose version gives operators an old meaning, with what PyTorch
computes when it loads them.

    python test/make/old_versions.py test/data/versions      (torch 2.x)

Each case is written by hand, member by member, since no torch at hand writes these versions; a
`*_new` twin has the first version with today's meaning. Torch must load the archive and run it; the
result is what is kept. The tolerance is for float arithmetic alone.
"""
import io
import json
import os
import sys
import zipfile
from collections import OrderedDict

import torch

HEAD = '''class M(Module):
  __parameters__ = []
  __buffers__ = []
  training : bool
  def forward(self: __torch__.M,
    x: Tensor,
    i: Tensor,
    n: int) -> List[Tensor]:
'''

DIV = '''    two = torch.add(torch.zeros_like(i), -2)
    j = torch.add(i, 0)
    _1 = torch.div_(j, 2)
    k = torch.add(i, 0)
    _2 = torch.div_(k, two)
    y = torch.add(x, 0)
    _3 = torch.div_(y, 3)
    a = [torch.div(x, i), torch.div(i, 2), torch.div(i, -2.), torch.div(i, two)]
    b = [torch.div(i, 2, rounding_mode="floor"), torch.div(i, 2, rounding_mode=None), j, k, y]
    return torch.add(a, b)
'''
DIV_NEW = '''    a = [torch.div(x, i), torch.div(i, 2), torch.div(i, -2.), torch.div(x, 3)]
    return a
'''
DIV_OUT = '''    whole = torch.zeros([3], dtype=4)
    real = torch.zeros([3], dtype=6)
    _1 = torch.div(i, torch.add(torch.zeros_like(i), 2), out=whole)
    _2 = torch.div(i, torch.add(torch.zeros_like(i), 2), out=real)
    return [whole, real]
'''
FULL = '''    return [torch.full([2], 3), torch.full([2], n, dtype=4), torch.full([2, 1], n), torch.full([1], True), torch.full([2], 0.5)]
'''
STEPS = '''    return [torch.linspace(0, 1), torch.linspace(0., 3., 4), torch.linspace(-1, n, None), torch.linspace(0, 1, n, dtype=7)]
'''
STEPS_NEW = '''    return [torch.linspace(0., 3., 4), torch.linspace(-1, n, 100)]
'''
LOG = '''    return [torch.logspace(0, 1), torch.logspace(0, 1, 4), torch.logspace(0, 1, None, 2.), torch.logspace(0, n, base=3.)]
'''
LOG_NEW = '''    return [torch.logspace(0, 1, 4), torch.logspace(0, 1, 100, 2.)]
'''
GELU = '''    return [torch.gelu(x), torch.gelu(torch.mul(x, n))]
'''
GELU_NEW = '''    return [torch.gelu(x), torch.gelu(x, approximate="tanh")]
'''
CASES = [("div_1", 1, DIV), ("div_3", 3, DIV), ("div_4_new", 4, DIV_NEW), ("div_out_3", 3, DIV_OUT),
         ("full_4", 4, FULL), ("full_5_new", 5, FULL), ("linspace_7", 7, STEPS),
         ("linspace_8_new", 8, STEPS_NEW), ("logspace_8", 8, LOG), ("logspace_9_new", 9, LOG_NEW),
         ("gelu_9", 9, GELU), ("gelu_10_new", 10, GELU_NEW)]


def archive(source, version):
    out = io.BytesIO()
    module = b"\x80\x02c__torch__\nM\n)\x81}(X\x08\x00\x00\x00training\x89ub."
    with zipfile.ZipFile(out, "w") as z:
        for name, content in [("version", b"%d\n" % version), ("data.pkl", module),
                              ("constants.pkl", b"\x80\x02)."),
                              ("code/__torch__.py", source.encode())]:
            z.writestr(zipfile.ZipInfo("old/" + name), content)
    return out.getvalue()


def main(folder):
    x, i = torch.tensor([1.5, -2.5, 3.0]), torch.tensor([-7, 3, 9])
    for name, version, body in CASES:
        where = os.path.join(folder, name)
        os.makedirs(where, exist_ok=True)
        data = archive(HEAD + body, version)
        with open(os.path.join(where, "model.pt"), "wb") as f:
            f.write(data)
        module = torch.jit.load(io.BytesIO(data))
        for k, n in enumerate([3, 5]):
            torch.save((x, i, n), os.path.join(where, "inputs_%d.pt" % k))
            torch.save(module(x, i, n), os.path.join(where, "expected_%d.pt" % k))
        case = OrderedDict(
            name=name, category="load", producer="torch " + torch.__version__.split("+")[0],
            kind="script", method="forward", n_cases=2, rtol=2e-6, atol=1e-6, stateful=False,
            note="test/make/old_versions.py")
        with open(os.path.join(where, "case.json"), "w") as f:
            json.dump(case, f, indent=1)
            f.write("\n")


main(sys.argv[1])
