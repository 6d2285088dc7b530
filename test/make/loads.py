"""Makes test/data/load: archives that load only with an option, and those with odd containers.

    python test/make/loads.py test/data/load      (torch 2.x, which must load each of them)

`cuda`: as saved from a GPU, with a parameter on cuda:0, a device among its values and two in its
code. `crc`: one storage with a wrong checksum. `forever`: its __setstate__ does not end. `unset`: one that leaves
an attribute without a value. `nested`: a prefix of odd characters, zip64 records
for every member, data descriptors, extra files in folders, traced inputs and the members of the
lite interpreter. `flags`: what torch.save of today adds beside the data. Written by hand.
`values`, `quantised` and `sparse` are what torch.save writes; `numpy` and `set` what it writes and
no argument of a model can be.
"""
import io
import os
import struct
import sys
import zipfile
from collections import OrderedDict, defaultdict

import torch

SOURCE = '''class M(Module):
  __parameters__ = ["w", ]
  __buffers__ = []
  w : Tensor
  where : Device
  training : bool
  def forward(self: __torch__.M,
    x: Tensor) -> Tensor:
    w = self.w
    y = torch.add(x, torch.to(w, self.where))
    z = torch.zeros([2, 3], dtype=6, device=torch.device("%s"))
    u = torch.ones([2, 3], dtype=6, device=torch.device("%s"))
    return torch.add(torch.add(y, z), u)
'''


STATEFUL = '''class S(Module):
  n : int
  w : Tensor
  def __getstate__(self: __torch__.S) -> int:
    return self.n
  def __setstate__(self: __torch__.S,
    state: int) -> NoneType:
%s
    return None
class M(Module):
  __parameters__ = []
  __buffers__ = []
  s : __torch__.S
  training : bool
  def forward(self: __torch__.M,
    x: Tensor) -> Tensor:
    s = self.s
    return torch.add(x, s.w)
'''


def text(s):
    return b"X" + struct.pack("<I", len(s)) + s.encode()


def a_global(module, name):
    return b"c" + module.encode() + b"\n" + name.encode() + b"\n"


def module(device):
    storage = (b"(" + text("storage") + a_global("torch", "FloatStorage") + text("0") +
               text(device) + b"K\x06tQ")
    tensor = (a_global("torch._utils", "_rebuild_tensor_v2") + b"(" + storage +
              b"K\x00(K\x02K\x03t(K\x03K\x01t\x89" + a_global("collections", "OrderedDict") +
              b")RtR")
    place = a_global("torch", "device") + b"(" + text(device) + b"tR"
    return (b"\x80\x02" + a_global("__torch__", "M") + b")\x81}(" + text("w") + tensor +
            text("where") + place + text("training") + b"\x89ub.")


def members(device="cpu", prefix="m", extra=()):
    parts = [("data.pkl", module(device)),
             ("code/__torch__.py", (SOURCE % (device, device)).encode()),
             ("data/0", struct.pack("<6f", 1, 2, 3, 4, 5, 6)),
             ("constants.pkl", b"\x80\x02)."), ("version", b"3\n")]
    return [(prefix + "/" + name, data) for name, data in parts + list(extra)]


FOREVER = """    i = 0
    while True:
      i = torch.add(i, 1)
    self.n = i"""
UNSET = "    self.n = state"


def stateful(setstate):
    """torch would hang in FOREVER, and ends with UNSET."""
    data = (b"\x80\x02" + a_global("__torch__", "M") + b")\x81}(" + text("s") +
            a_global("__torch__", "S") + b")\x81K\x05b" + text("training") + b"\x89ub.")
    return [("m/data.pkl", data), ("m/code/__torch__.py", (STATEFUL % setstate).encode()),
            ("m/constants.pkl", b"\x80\x02)."), ("m/version", b"3\n")]


class Stream(io.RawIOBase):
    """What cannot seek makes zipfile write data descriptors."""

    def __init__(self):
        self.data = bytearray()

    def writable(self):
        return True

    def write(self, b):
        self.data += bytes(b)
        return len(b)


def pack(parts, zip64=False):
    stream = Stream()
    with zipfile.ZipFile(stream, "w") as z:
        for name, data in parts:
            info = zipfile.ZipInfo(name)
            if name.endswith(".py"):
                info.compress_type = zipfile.ZIP_DEFLATED
            with z.open(info, "w", force_zip64=zip64) as f:
                f.write(data)
    return bytes(stream.data)


def main(folder):
    plain = pack(members())
    crc = bytearray(plain)
    at = crc.index(struct.pack("<6f", 1, 2, 3, 4, 5, 6))
    crc[at + 3] ^= 0x80  # the first weight is -1
    odd = [("extra/notes/read me.txt", "caf\u00e9".encode()), ("extra/empty", b""),
           ("traced_inputs.pkl", b"not read"), ("traced_inputs/0", b""),
           ("bytecode.pkl", b"not read"), ("mobile_debug_handles.pkl", b"not read"),
           ("byteorder", b"little"), (".data/serialization_id", b"0" * 40),
           (".format_version", b"1"), (".storage_alignment", b"64")]
    archives = {"cuda": pack(members("cuda:0")), "crc": bytes(crc), "plain": plain,
                "nested": pack(members(prefix="a b-\u00e9.1", extra=odd), zip64=True)}
    os.makedirs(folder, exist_ok=True)
    archives.update(forever=pack(stateful(FOREVER)), unset=pack(stateful(UNSET)))
    for name, data in archives.items():
        if name not in ("crc", "forever", "unset"):
            model = torch.jit.load(io.BytesIO(data), map_location="cpu")
            if name != "cuda":  # torch leaves the devices in the code
                assert model(torch.zeros(2, 3)).tolist() == [[2, 3, 4], [5, 6, 7]]
        with open(os.path.join(folder, name + ".pt"), "wb") as f:
            f.write(data)
    lists = defaultdict(list)
    lists["k"].append(1)
    z = torch.tensor([1 + 2j, 3 - 4j])
    torch.save((OrderedDict([("b", 1), ("a", 2)]), lists, torch.Size([2, 3]), torch.device("cpu"),
                torch.sparse_coo, torch.float16, z.conj(), torch._neg_view(torch.tensor([1.0, -2.0]))),
               os.path.join(folder, "values.pt"))
    torch.save(torch.quantize_per_tensor(torch.ones(2), 0.5, 0, torch.quint8),
               os.path.join(folder, "quantised.pt"))
    torch.save(torch.eye(2).to_sparse(), os.path.join(folder, "sparse.pt"))
    torch.save((torch.ones(2).numpy(),), os.path.join(folder, "numpy.pt"))
    torch.save(({1, 2},), os.path.join(folder, "set.pt"))
    torch.save({"w": torch.arange(3.0)}, os.path.join(folder, "state.pt"))
    with open(os.path.join(folder, "state.pt"), "rb") as f:
        state = f.read()
    with zipfile.ZipFile(io.BytesIO(state)) as z, \
            zipfile.ZipFile(os.path.join(folder, "state_cuda.pt"), "w") as out:
        for info in z.infolist():
            data = z.read(info.filename)
            if info.filename.endswith("data.pkl"):
                data = data.replace(text("cpu"), text("cuda:1"))
            out.writestr(zipfile.ZipInfo(info.filename), data)


main(sys.argv[1])
