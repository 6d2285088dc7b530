"""Makes test/data/hostile/*: archives that ask of operators what no model asks.

    python3 test/make/hostile.py test/data/hostile

Those of ERRORS must fail with a message, those of GOOD give a result, those of UNSURE
end soon. Standard library only.
"""
import json
import os
import sys

from bad import archive
from lies import FORWARD, PLAIN, root

INTERFACES = """class A(Interface):
  def go(self: __torch__.A) -> __torch__.B:
    pass
class B(Interface):
  def go(self: __torch__.B) -> __torch__.A:
    pass
class S(Interface):
  def go(self: __torch__.S) -> __torch__.S:
    pass
class C:
  v : int
  def __init__(self: __torch__.C) -> NoneType:
    self.v = 1
    return None
  def go(self: __torch__.C) -> __torch__.D:
    return __torch__.D()
class D:
  v : int
  def __init__(self: __torch__.D) -> NoneType:
    self.v = 1
    return None
  def go(self: __torch__.D) -> __torch__.C:
    return __torch__.C()
"""


# Interfaces in a chain, each of two methods that lead to the next: as a tree, 2^60 questions.
def chain(length=60):
    made = ""
    for i in range(length):
        to = min(i + 1, length - 1)
        for kind, base, body in (("I", "(Interface)", "pass"), ("K", "", "return __torch__.K%d()" % to)):
            made += "class %s%d%s:\n" % (kind, i, base)
            if kind == "K":
                made += ("  def __init__(self: __torch__.K%d) -> NoneType:\n    return None\n" % i)
            for name in ("a", "b"):
                made += "  def %s(self: __torch__.%s%d) -> __torch__.%s%d:\n    %s\n" % (
                    name, kind, i, kind, to, body)
    return made


# name: (type of the result, result or body)
ERRORS = {
    "sort_any": ("int", """
    l = annotate(List[Any], [1311768467463790320, "abc"])
    torch.sort(l)
    return torch.len(l)
"""),
    "sort_any_turned": ("int", """
    l = annotate(List[Any], ["abc", 1311768467463790320])
    torch.sort(l, True)
    return torch.len(l)
"""),
    "sorted_tuples": ("int", """
    l = annotate(List[Any], [(1, x), (1, 2), (1, "a")])
    return torch.len(torch.sorted(l))
"""),
    "trapezoid_scalar": ("Tensor", "torch.trapezoid(torch.sum(x))"),
    "cumulative_scalar": ("Tensor", "torch.cumulative_trapezoid(torch.sum(x))"),
    "fft_scalar": ("Tensor", "torch.fft_hfft2(torch.sum(x))"),
    "fft_scalar_dim": ("Tensor", "torch._fft_c2c(torch.to(torch.sum(x), 9), [0], 0, True)"),
    "triangular_vector": ("Tensor", "(torch.triangular_solve(torch.sum(x), torch.sum(x)))[0]"),
    "cholesky_vector": ("Tensor", "torch.cholesky_solve(torch.sum(x), torch.sum(x))"),
    "expand_overflow": ("Tensor", "torch.sum(torch.expand(torch.ones([1]), [4294967296, 4294967296]))"),
    "expand_wrapped": (
        "Tensor", "torch.reshape(torch.expand(torch.ones([1]), [7, 2635249153387078803]), [5])"),
    "unfold_overflow": (
        "Tensor", "torch.sum(torch.unfold(torch.expand(torch.ones([1]), [1099511627776]), 0, 549755813888, 1))"),
    "mesh_overflow": ("Tensor", """
    e = torch.expand(torch.ones([1]), [4294967296])
    return torch.sum((torch.meshgrid([e, e]))[0])
"""),
    "scale_none": (
        "Tensor", "torch.__interpolate(torch.ones([1, 1, 3]), None, annotate(List[float], []))"),
}
SPARSE = """
    s = torch.sparse_coo_tensor(torch.ones([2, 3], dtype=4), torch.ones([3]), [3, 3])
"""
GOOD = {
    # Indices are checked once; what is given out is not what products read.
    "sparse_indices_written": ("Tensor", SPARSE + """
    i = torch.add_(torch._indices(s), 1000000000)
    return torch.mm(s, torch.ones([3, 2]))
"""),
    "sparse_parts_resized": ("Tensor", SPARSE + """
    i = torch.resize_(torch._indices(s), [500, 1])
    v = torch.resize_(torch._values(s), [0])
    return torch.mm(s, torch.ones([3, 2]))
"""),
    # Draws that are none, and bins of no channel.
    "fraction_far": ("Tensor", """
    r = torch.mul(torch.ones([1, 1, 2]), 33554432.)
    y, i = torch.fractional_max_pool2d(torch.ones([1, 1, 7002, 2]), [2, 1], [8, 2], r)
    return y
"""),
    "no_channel_many_bins": (
        "int", "torch.numel((ops.torchvision.roi_pool(torch.zeros([1, 0, 9, 9]), torch.zeros([1, 5]), 1., "
        "2000000000, 2000000000))[0])"),
    "linear_no_columns": ("Tensor", "torch.linear(torch.zeros([9, 5, 0]), torch.zeros([4, 0]), torch.ones([4]))"),
    "linear_no_columns_huge": (
        "Tensor", "torch.sum(torch.linear(torch.zeros([1000, 100, 0]), torch.zeros([4, 0])))"),
    "interface_mutual": ("Tensor", """
    c : __torch__.A = __torch__.C()
    return x
"""),
    "interface_self": ("Tensor", """
    c : __torch__.S = __torch__.C()
    return x
"""),
}

UNSURE = {
    "interface_chain": ("Tensor", """
    c : __torch__.I0 = __torch__.K0()
    return x
"""),
}


def main(folder):
    for expect, programs in (("error", ERRORS), ("ok", GOOD), ("no crash", UNSURE)):
        for name, (result, body) in programs.items():
            rest = FORWARD % (result, body.lstrip("\n") if "\n" in body else "    return %s\n" % body)
            classes = chain() if name == "interface_chain" else INTERFACES if "interface" in name else ""
            path = os.path.join(folder, name)
            os.makedirs(path, exist_ok=True)
            with open(os.path.join(path, "model.pt"), "wb") as f:
                f.write(archive(source=classes + PLAIN + rest, data=root()))
            with open(os.path.join(path, "case.json"), "w") as f:
                json.dump({"name": name, "category": "bad", "expect": expect,
                           "note": "what no model asks of an operator"}, f, indent=1)
                f.write("\n")


if __name__ == "__main__":
    main(sys.argv[1])
