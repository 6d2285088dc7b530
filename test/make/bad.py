"""Makes test/data/bad: small malformed archives, and the good one that they derive from.

    python3 test/make/bad.py test/data/bad

The module adds its weight w, 1 to 6 as 2 x 3, to its argument. Standard library only.
"""
import io
import json
import os
import struct
import sys
import zipfile

SOURCE = """class M(Module):
  __parameters__ = ["w", ]
  __buffers__ = []
  w : Tensor
  training : bool
  def forward(self: __torch__.M,
    x: Tensor) -> Tensor:
    w = self.w
    return torch.add(x, w)
  def named(self: __torch__.M,
    x: Tensor,
    n: int=2,
    names: Optional[List[str]]=None) -> Tuple[Tensor, int]:
    return (torch.mul(x, n), n)
"""


def text(s):
    return b"X" + struct.pack("<I", len(s)) + s.encode()


def number(n):
    return b"K" + bytes([n])


def items(*parts):
    return b"(" + b"".join(parts) + b"t"


def a_global(module, name):
    return b"c" + module.encode() + b"\n" + name.encode() + b"\n"


def tensor():
    storage = items(text("storage"), a_global("torch", "FloatStorage"), text("0"), text("cpu"),
                    number(6)) + b"Q"
    return (a_global("torch._utils", "_rebuild_tensor_v2") +
            items(storage, number(0), items(number(2), number(3)), items(number(3), number(1)),
                  b"\x89", a_global("collections", "OrderedDict") + b")R") + b"R")


def module():
    return (b"\x80\x02" + a_global("__torch__", "M") + b")\x81}(" + text("w") + tensor() +
            text("training") + b"\x89" + b"ub.")


def archive(source=SOURCE, data=None, version=b"3\n", method=zipfile.ZIP_STORED,
            more=()):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method, compresslevel=9) as z:
        for name, content in [("data.pkl", module() if data is None else data),
                              ("code/__torch__.py", source.encode()),
                              ("data/0", struct.pack("<6f", 1, 2, 3, 4, 5, 6)),
                              ("constants.pkl", b"\x80\x02)."), ("version", version), *more]:
            z.writestr(zipfile.ZipInfo("archive/" + name), content, method)
    return out.getvalue()


def main(folder):
    good = archive()
    forbidden = b"\x80\x02" + a_global("os", "system") + items(text("true")) + b"R."
    unknown = SOURCE.replace("torch.add(x, w)", "torch.frobnicate(x, w)")
    deflated = zipfile.ZIP_DEFLATED
    statements = SOURCE.replace("    w = self.w\n", "    w = self.w\n" + "    x\n" * 3000000)
    attributes = SOURCE.replace("  training", "".join("  a%d : int\n" % i for i in range(5000)) +
                                "  training")
    objects = (b"\x80\x02" + a_global("__torch__", "M") + b"q\x00)\x81](" + b"h\x00)\x81" * 30000 +
               b"e0.")
    cases = [
        ("good", "ok", "the archive that the others derive from", good),
        ("truncated", "error", "the first half of it", good[:len(good) // 2]),
        ("empty", "error", "no bytes at all", b""),
        ("not_a_zip", "error", "a text file", b"This is no archive.\n" * 20),
        ("forbidden_global", "error", "data.pkl calls os.system", archive(data=forbidden)),
        ("unknown_operator", "error", "forward calls torch.frobnicate", archive(source=unknown)),
        ("statement_bomb", "no crash", "30 KB that inflate to a function of 3 million statements",
         archive(source=statements, method=deflated)),
        ("object_bomb", "error", "30000 objects of a class of 5000 attributes",
         archive(source=attributes, data=objects, method=deflated)),
        ("wrong_version", "error", "version 9999", archive(version=b"9999\n")),
    ]
    for name, expect, note, data in cases:
        path = os.path.join(folder, name)
        os.makedirs(path, exist_ok=True)
        with open(os.path.join(path, "model.pt"), "wb") as f:
            f.write(data)
        with open(os.path.join(path, "case.json"), "w") as f:
            json.dump({"name": name, "category": "bad", "expect": expect, "note": note}, f, indent=1)
            f.write("\n")


if __name__ == "__main__":
    main(sys.argv[1])
