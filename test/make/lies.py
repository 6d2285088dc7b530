"""Makes test/data/lies/*: archives whose static types are not those of the values that flow.

    python3 test/make/lies.py test/data/lies

Each is refused at the load, or its forward fails with a message: nothing may read a value as what
it is not. Standard library only.
"""
import json
import os
import struct
import sys

from bad import a_global, archive, items, number, text

PLAIN = """class M(Module):
  __parameters__ = []
  __buffers__ = []
  training : bool
"""
FORWARD = """  def forward(self: __torch__.M,
    x: Tensor) -> %s:
%s"""
OTHERS = """class A:
  n : int
  s : str
  def __init__(self: __torch__.A) -> NoneType:
    self.n = 1
    self.s = "s"
    return None
class B:
  t : Tensor
  u : Tensor
  def __init__(self: __torch__.B,
    x: Tensor) -> NoneType:
    self.t = x
    self.u = x
    return None
  def both(self: __torch__.B) -> Tensor:
    return torch.add(self.t, self.u)
class E(Enum):
  P = 1
class F(Enum):
  P = "p"
class P(NamedTuple):
  a : Tensor
  b : Tensor
class I(Interface):
  def both(self) -> Tensor:
    pass
def late(x: Tensor, n: int) -> Tensor:
  y = uninitialized(Tensor)
  if torch.gt(n, 0):
    y = torch.relu(x)
  else:
    pass
  return y
class C:
  def __enter__(self: __torch__.C) -> Tensor:
    return torch.ones([2])
  def __exit__(self: __torch__.C, a: Tensor, b: int, c: str) -> NoneType:
    d = torch.relu(a)
    return None
class S:
  t : Tensor
  def __getstate__(self: __torch__.S) -> int:
    return 1
  def __setstate__(self: __torch__.S, state: int) -> NoneType:
    return None
"""

# name: (type of the result, body of forward)
PROGRAMS = {
    "cast_int": ("Tensor", "torch.relu(unchecked_cast(Tensor, 5))"),
    "cast_tensor": ("int", "torch.add(unchecked_cast(int, x), 1)"),
    "cast_string": ("str", "torch.upper(unchecked_cast(str, x))"),
    "cast_list": ("Tensor", "torch.relu((unchecked_cast(List[Tensor], [1, 2]))[0])"),
    "cast_dict": ("Tensor", 'torch.relu((unchecked_cast(Dict[str, Tensor], {"a": 1}))["a"])'),
    "cast_keys": ("List[int]", 'torch.keys(unchecked_cast(Dict[int, int], {"a": 1}))'),
    "cast_tuple": ("Tensor", "torch.relu((unchecked_cast(Tuple[int, Tensor], (1, 2)))[1])"),
    "cast_arity": ("Tensor", "torch.relu((unchecked_cast(Tuple[int, Tensor], (1,)))[1])"),
    "cast_named": ("Tensor", "(unchecked_cast(__torch__.P, (x, 1))).b"),
    "cast_class": ("Tensor", "(unchecked_cast(__torch__.B, __torch__.A())).both()"),
    "cast_attribute": ("Tensor", "torch.relu((unchecked_cast(__torch__.B, __torch__.A())).u)"),
    "cast_interface": ("Tensor", "(unchecked_cast(__torch__.I, __torch__.A())).both()"),
    "cast_enum": ("str", "torch.upper((unchecked_cast(__torch__.F, __torch__.E.P)).value)"),
    "cast_future": ("Tensor", "torch.relu(torch.wait(unchecked_cast(Future[Tensor], 3)))"),
    "cast_device": ("Tensor", "torch.to(x, unchecked_cast(Device, 5), 6)"),
    "cast_generator": ("List[Generator]", "[unchecked_cast(Generator, 5)]"),
    "cast_self": ("Tensor", "(unchecked_cast(__torch__.B, self)).both()"),
    "cast_complex": ("complex", "torch.add(unchecked_cast(complex, 1.5), 1)"),
    "annotate_list": ("Tensor", "torch.relu((annotate(List[Tensor], [1]))[0])"),
    "annotate_any": ("Tensor", "torch.relu(annotate(Tensor, annotate(Any, 1)))"),
    "wait_number": ("Tensor", "torch.wait(5)"),
    "wait_two": ("Tensor", "torch.wait(x, x)"),
    "unwrap_none": ("Tensor",
                    "torch.relu(ops.prim.unchecked_unwrap_optional(annotate(Optional[Tensor], None)))"),
    "tolist_float": ("int", "(annotate(List[int], (torch.flatten(x)).tolist()))[0]"),
    "wrong_self": ("Tensor", "__torch__.B.both(__torch__.A())"),
    "unset_attribute": ("Tensor", "torch.relu((__torch__.B.__new__(__torch__.B)).t)"),
    "unset_string": ("str", "torch.upper((__torch__.A.__new__(__torch__.A)).s)"),
    "null_tensor": ("Tensor", "torch.relu(uninitialized(Tensor))"),
    "null_string": ("str", "torch.upper(uninitialized(str))"),
    "null_list": ("int", "torch.len(uninitialized(List[int]))"),
    "null_dict": ("int", "torch.len(uninitialized(Dict[str, int]))"),
    "null_tuple": ("Tensor", "torch.relu((uninitialized(Tuple[int, Tensor]))[1])"),
    "null_object": ("Tensor", "torch.relu((uninitialized(__torch__.B)).t)"),
    "null_method": ("Tensor", "(uninitialized(__torch__.B)).both()"),
    "null_interface": ("Tensor", "(uninitialized(__torch__.I)).both()"),
    "null_enum": ("str", "(uninitialized(__torch__.F)).value"),
    "null_future": ("Tensor", "torch.wait(uninitialized(Future[Tensor]))"),
    "null_complex": ("complex", "torch.add(uninitialized(complex), 1)"),
    "null_result": ("Tensor", "torch.relu(__torch__.late(x, 0))"),
    "null_returned": ("Tensor", "uninitialized(Tensor)"),
    "null_item": ("List[Tensor]", "[x, uninitialized(Tensor)]"),
    "isinstance_any": ("Tensor", """
    l = [x]
    a = annotate(Any, l)
    if isinstance(a, List[Any]):
      _0 = torch.append(unchecked_cast(List[Any], a), 7)
    else:
      pass
    return torch.relu(l[1])
"""),
    "isinstance_other": ("Tensor", """
    a = annotate(Any, 5)
    if isinstance(a, int):
      y = torch.relu(unchecked_cast(Tensor, a))
    else:
      y = x
    return y
"""),
    "isinstance_wrong_side": ("Tensor", """
    a = annotate(Union[int, Tensor], 5)
    if isinstance(a, Tensor):
      y = x
    else:
      y = torch.relu(unchecked_cast(Tensor, a))
    return y
"""),
    "isinstance_another": ("Tensor", """
    a = annotate(Any, 5)
    b = annotate(Any, x)
    if isinstance(b, Tensor):
      y = torch.relu(unchecked_cast(Tensor, a))
    else:
      y = x
    return y
"""),
    "none_wrong_side": ("Tensor", """
    a = annotate(Optional[Tensor], None)
    if torch.__isnot__(a, None):
      y = x
    else:
      y = torch.relu(unchecked_cast(Tensor, a))
    return y
"""),
    "none_or": ("Tensor", """
    a = annotate(Optional[Tensor], None)
    if torch.__isnot__(a, None):
      b = True
    else:
      b = torch.gt(torch.dim(x), 0)
    if b:
      y = torch.relu(unchecked_cast(Tensor, a))
    else:
      y = x
    return y
"""),
    "union_unset": ("Tensor", """
    a = uninitialized(Union[int, Tensor])
    if isinstance(a, int):
      y = x
    else:
      y = torch.relu(unchecked_cast(Tensor, a))
    return y
"""),
    "null_branch": ("Tensor", """
    y = uninitialized(Tensor)
    if torch.lt(torch.dim(x), 0):
      y = torch.relu(x)
    else:
      pass
    return torch.relu(y)
"""),
    "null_loop": ("Tensor", """
    y = uninitialized(Tensor)
    z = x
    for i in range(3):
      z = torch.add(y, 1)
      y = z
    return z
"""),
    "null_loop_unrun": ("Tensor", """
    y = uninitialized(Tensor)
    for i in range(0):
      y = torch.add(x, 1)
    return torch.relu(y)
"""),
    "null_stored": ("Tensor", """
    b = __torch__.B(x)
    b.u = uninitialized(Tensor)
    return (b).both()
"""),
    "null_closure": ("Tensor", """
    y = uninitialized(Tensor)
    def later():
      return torch.relu(y)
    f = fork(later)
    return torch.wait(f)
"""),
    "future_type": ("Tensor", """
    def later():
      return torch.len("abc")
    f = fork(later)
    a = annotate(Any, f)
    return torch.relu(torch.wait(unchecked_cast(Future[Tensor], a)))
"""),
    "with_arguments": ("Tensor", """
    c = __torch__.C.__new__(__torch__.C)
    with c as y:
      z = torch.relu(y)
    return z
"""),
    "with_number": ("Tensor", """
    with 5 as y:
      z = torch.relu(x)
    return z
"""),
}

CLASSES = {
    "default_list": "  def forward(self: __torch__.M, x: Tensor, l: List[Tensor]=[1, 2]) -> Tensor:\n"
                    "    return torch.relu(l[0])\n",
    "default_dict": "  def forward(self: __torch__.M, x: Tensor, l: Dict[str, Tensor]={\"a\": 2}) -> "
                    "Tensor:\n    return torch.relu(l[\"a\"])\n",
    "final_list": "  c : Final[List[Tensor]] = [1, 2]\n  def forward(self: __torch__.M, x: Tensor) -> "
                  "Tensor:\n    return torch.relu((self.c)[0])\n",
    "final_string": "  c : Final[str] = 5\n  def forward(self: __torch__.M, x: Tensor) -> str:\n"
                    "    return torch.upper(self.c)\n",
}


def tag(value, name):
    return (a_global("torch.jit._pickle", "restore_type_tag") + items(value, text(name)) + b"R")


def a_list(*values):
    return b"](" + b"".join(values) + b"e"


def a_dict(*values):
    return b"}(" + b"".join(values) + b"u"


def an_object(name, *state):
    return a_global("__torch__", name) + b")\x81" + a_dict(*state) + b"b"


def q_tensor(parameters, storage="QUInt8Storage", function="_rebuild_qtensor", rest=b"\x89"):
    saved = items(text("storage"), a_global("torch", storage), text("0"), text("cpu"),
                  number(6)) + b"Q"
    return (a_global("torch._utils", function) +
            items(saved, number(0), items(number(2), number(3)), items(number(3), number(1)),
                  *parameters, rest, a_global("collections", "OrderedDict") + b")R") + b"R")


def column(storage, count):
    saved = items(text("storage"), a_global("torch", storage), text("1"), text("cpu"),
                  number(count)) + b"Q"
    return (a_global("torch._utils", "_rebuild_tensor_v2") +
            items(saved, number(0), items(number(count)), items(number(1)), b"\x89",
                  a_global("collections", "OrderedDict") + b")R") + b"R")


def a_float(value):
    return b"G" + struct.pack(">d", value)


def per_tensor(scale, zero_point):
    return [items(a_global("torch", "per_tensor_affine"), scale, zero_point)]


def per_channel(scales, zero_points, axis):
    return [items(a_global("torch", "per_channel_affine"), scales, zero_points, axis)]


INT = b"K\x05"
A_B = a_global("__torch__", "B") + b")\x81" + a_dict(text("t"), INT, text("u"), INT) + b"b"
# name: (declared type, the attribute's pickle, what forward does with it)
ATTRIBUTES = {
    "int": ("Tensor", INT, "torch.relu(v)"),
    "string": ("Tensor", text("v"), "torch.relu(v)"),
    "none": ("List[Tensor]", b"N", "v[0]"),
    "list": ("List[Tensor]", a_list(INT), "torch.relu(v[0])"),
    "tagged_list": ("List[Tensor]", tag(a_list(INT), "List[Tensor]"), "torch.relu(v[0])"),
    "other_tag": ("List[Tensor]", tag(a_list(INT), "List[int]"), "torch.relu(v[0])"),
    "any_tag": ("List[Any]", tag(a_list(INT), "List[Tensor]"), "torch.relu(v[0])"),
    "dict": ("Dict[str, Tensor]", a_dict(text("a"), INT), 'torch.relu(v["a"])'),
    "tagged_dict": ("Dict[str, Tensor]", tag(a_dict(text("a"), INT), "Dict[str, Tensor]"),
                    'torch.relu(v["a"])'),
    "dict_keys": ("Dict[str, int]", tag(a_dict(INT, INT), "Dict[str, int]"),
                  "torch.upper((torch.keys(v))[0])"),
    "nested": ("List[List[Tensor]]", a_list(a_list(INT)), "torch.relu((v[0])[0])"),
    "optional": ("Optional[Tensor]", INT, "torch.relu(ops.prim.unchecked_unwrap_optional(v))"),
    "union": ("Union[Tensor, str]", INT, "torch.relu(unchecked_cast(Tensor, v))"),
    "tuple": ("Tuple[int, Tensor]", items(INT, INT), "torch.relu(v[1])"),
    "arity": ("Tuple[int, Tensor]", items(INT), "torch.relu(v[1])"),
    "class": ("__torch__.B", an_object("A", text("n"), INT, text("s"), text("s")), "(v).both()"),
    "attribute": ("__torch__.B", A_B, "(v).both()"),
    "interface": ("__torch__.I", an_object("A", text("n"), INT, text("s"), text("s")), "(v).both()"),
    "enum": ("__torch__.F", a_global("__torch__", "E") + b"K\x01R", "torch.upper((v).value)"),
    "enum_value": ("__torch__.F", a_global("__torch__", "F") + b"K\x07R", "torch.upper((v).value)"),
    "future": ("Future[Tensor]", INT, "torch.wait(v)"),
    "generator": ("Generator", INT, "torch.relu(x)"),
    "state": ("__torch__.S", a_global("__torch__", "S") + b")\x81" + text("s") + b"b", "(v).t"),
    "unset": ("__torch__.S", a_global("__torch__", "S") + b")\x81K\x01b", "torch.relu((v).t)"),
    "shared": ("Tuple[List[Tensor], List[int]]",
               items(b"]q\x09(" + INT + b"e", b"h\x09"), "torch.relu((v[0])[0])"),
    "any_empty": ("Any", b"]", """
    y = x
    if isinstance(v, List[int]):
      _0 = torch.append(unchecked_cast(List[int], v), 5)
    else:
      pass
    if isinstance(v, List[str]):
      y = torch.zeros([torch.len((unchecked_cast(List[str], v))[0])])
    else:
      ops.prim.RaiseException("no list of strings")
    return y
"""),
    "quantised_relu": ("Tensor", q_tensor(per_tensor(a_float(0.5), number(3))), "torch.relu(v)"),
    "quantised_bits": ("Tensor", q_tensor(per_tensor(a_float(0.5), number(3))),
                       "torch.view(v, dtype=0)"),
    "quantised_zero_point": ("Tensor", q_tensor(per_tensor(a_float(0.5), b"M\x2c\x01")),
                             "torch.dequantize(v)"),
    "quantised_scale": ("Tensor", q_tensor(per_tensor(a_float(float("nan")), number(3))),
                        "torch.dequantize(v)"),
    "quantised_floats": ("Tensor", q_tensor(per_tensor(a_float(0.5), number(3)), "FloatStorage"),
                         "torch.dequantize(v)"),
    "quantised_plain": ("Tensor", q_tensor([], "QUInt8Storage", "_rebuild_tensor_v2"),
                        "torch.dequantize(v)"),
    "quantised_axis": ("Tensor", q_tensor(per_channel(column("DoubleStorage", 2), number(0),
                                                      number(2))), "torch.dequantize(v)"),
    "quantised_count": ("Tensor", q_tensor(per_channel(column("DoubleStorage", 1),
                                                       column("DoubleStorage", 1), number(0))),
                        "torch.dequantize(v)"),
    "any_cast": ("Any", INT, "torch.relu(unchecked_cast(Tensor, v))"),
}
RESULTS = {"dict_keys": "str", "enum": "str", "enum_value": "str"}


def root(*state):
    return (b"\x80\x02" + a_global("__torch__", "M") + b")\x81" +
            a_dict(*state, text("training"), b"\x89") + b"b.")


def cases():
    for name, (result, body) in PROGRAMS.items():
        if "\n" not in body:
            body = "    return %s\n" % body
        yield name, archive(
            source=OTHERS + PLAIN + FORWARD % (result, body.lstrip("\n")), data=root())
    for name, rest in CLASSES.items():
        yield name, archive(source=OTHERS + PLAIN + rest, data=root())
    for name, (declared, value, use) in ATTRIBUTES.items():
        source = OTHERS + PLAIN + "  v : %s\n" % declared + FORWARD % (
            RESULTS.get(name, "Tensor"),
            "    v = self.v\n" + (use.lstrip("\n") if "\n" in use else "    return %s\n" % use))
        yield "attribute_" + name, archive(source=source, data=root(text("v"), value),
                                           more=[("data/1", b"\0" * 16)] if "Double" in str(value)
                                           else ())


def main(folder):
    for name, data in cases():
        path = os.path.join(folder, name)
        os.makedirs(path, exist_ok=True)
        with open(os.path.join(path, "model.pt"), "wb") as f:
            f.write(data)
        with open(os.path.join(path, "case.json"), "w") as f:
            json.dump({"name": name, "category": "bad", "expect": "error",
                       "note": "a static type that the value does not have"}, f, indent=1)
            f.write("\n")


if __name__ == "__main__":
    main(sys.argv[1])
