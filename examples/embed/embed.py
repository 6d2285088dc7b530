"""embed.py: embed.c by ctypes, without any binding: python3 embed.py libkiln.so model.pt 4 13"""
import ctypes
import sys

kiln = ctypes.CDLL(sys.argv[1])
Handle = ctypes.c_void_p
for name in ("kiln_status_report", "kiln_version"):
    getattr(kiln, name).restype = ctypes.c_char_p
FLOAT32 = 6  # PyTorch's number of the dtype


def call(name, *args):
    """Calls a function that returns a status and its result last."""
    out = Handle()
    function = getattr(kiln, name)
    function.restype = Handle
    status = function(*args, ctypes.byref(out))
    if status:
        raise RuntimeError(kiln.kiln_status_report(Handle(status)).decode())
    return out


sizes = [int(a) for a in sys.argv[3:]]
count = 1
for size in sizes:
    count *= size
context = call("kiln_context_create", None)
model = call("kiln_model_load", context, sys.argv[2].encode(), None)
instance = call("kiln_instance_create", model)
x = call("kiln_value_tensor", context, FLOAT32, len(sizes), (ctypes.c_int64 * len(sizes))(*sizes),
         (ctypes.c_float * count)(*[0.5] * count))
y = call("kiln_instance_call", instance, b"forward", ctypes.byref(x), 1, None)
text = call("kiln_value_print", y, 100)
print(ctypes.string_at(text.value).decode())
for release, handle in (("text_free", text), ("value_destroy", y), ("value_destroy", x),
                        ("instance_release", instance), ("model_release", model),
                        ("context_release", context)):
    getattr(kiln, "kiln_" + release)(handle)
