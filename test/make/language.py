"""Makes test/data/language/NAME from test/make/language/NAME.py.

    /usr/bin/python3 test/make/language.py NAME test/data/language/NAME
    PYTHON test/make/language.py NAME test/data/language/NAME_215
    python3 test/make/language.py --verify test/data/language/NAME

Needs torch 1.13 (Debian: python3-torch), and 2.15 for the folders whose names say so (tensors has
none: the messages of operators differ there); --verify runs the same archive with another torch
and tells the calls that differ. A case is a function or a module under `@case(arguments, ...)`; one
root module has a method t_<case> for each. Every case is called ROUNDS times with all its
arguments in turn. samples.pt: (method, inputs, result, printed, class, message, place) for each
call, as tools/check_language.c reads it. Cases that torch cannot script are an error."""
import ast
import copy
import inspect
import json
import linecache
import os
import re
import sys
import tempfile
import types
from collections import OrderedDict

import torch
from neutral import define

ROUNDS = 3


def load(path, name):
    items = []

    def case(*arguments):
        def add(fn):
            items.append((fn.__name__, fn, arguments))
            return fn
        return add
    with open(path) as f:
        text = f.read()
    module = types.ModuleType(name[:-3])
    module.__file__ = name
    module.case = case
    sys.modules[module.__name__] = module
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    exec(compile(text, name, "exec"), module.__dict__)
    return module, ast.parse(text), items


def root_source(tree, items):
    """A module with a method for each case, which hands its arguments on."""
    defs = {n.name: n for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    init = ["class Root(torch.nn.Module):", "    def __init__(self):", "        super().__init__()"]
    methods = []
    for name, fn, _ in items:
        node, callee = defs[name], name
        if inspect.isclass(fn):
            init.append("        self.m_%s = %s()" % (name, name))
            node = [n for n in node.body if getattr(n, "name", "") == "forward"][0]
            callee = "self.m_%s" % name
        arguments = ast.unparse(node.args)
        if not inspect.isclass(fn):
            arguments = "self, " + arguments if node.args.args else "self"
        names = ", ".join(a.arg for a in node.args.args if a.arg != "self")
        methods += ["", "    @torch.jit.export", "    def t_%s(%s):" % (name, arguments),
                    "        return %s(%s)" % (callee, names)]
    return "\n".join(init + methods) + "\n"


class Printed:
    """What the C++ side prints."""

    def __enter__(self):
        sys.stdout.flush()
        self.saved, self.file = os.dup(1), tempfile.TemporaryFile()
        os.dup2(self.file.fileno(), 1)
        return self

    def __exit__(self, *_):
        os.dup2(self.saved, 1)
        os.close(self.saved)
        self.file.seek(0)
        self.text = self.file.read().decode()
        self.file.close()


def plain(value):
    """Copies, without the types of named tuples."""
    if isinstance(value, tuple):
        return tuple(plain(v) for v in value)
    if isinstance(value, list):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def describe(error):
    """Class, message and place of an error of TorchScript."""
    text = str(error).rstrip("\n")
    serialized = text.split("Traceback of TorchScript, original code")[0]
    places = re.findall(r'  File "(code/.*)", line (\d+)', serialized)
    tail = text[text.rfind("<--- HERE") + len("<--- HERE"):] if "<--- HERE" in text else "\n" + text
    tail = re.split(r"\n(?=[A-Za-z_][\w.]*: )", tail)[-1].strip("\n")
    match = re.match(r"([A-Za-z_][\w.]*): ?(.*)", tail, re.S)
    class_name, message = match.groups() if match else (None, tail)
    if class_name == "RuntimeError":
        class_name = None
    elif "." not in (class_name or ""):
        class_name, message = None, tail
    place = 'File "%s", line %s,' % places[-1] if places else None
    return class_name, message.split("\n")[0].strip(), place


def run(model, calls):
    samples = []
    for method, arguments in calls:
        given, result, class_name, message, place = copy.deepcopy(arguments), None, None, None, None
        with Printed() as printed:
            try:
                result = plain(getattr(model, method)(*given))
            except (RuntimeError, torch.jit.Error) as e:
                class_name, message, place = describe(e)
            except UnicodeDecodeError:
                continue  # a part of a character: Python has no such string
        samples.append((method, arguments, result, printed.text, class_name, message, place))
    return samples


def make(name, folder):
    here = os.path.dirname(os.path.abspath(__file__))
    module, tree, items = load(os.path.join(here, "language", name + ".py"), name + ".py")
    source = root_source(tree, items)
    define(source, "root.py", module.__dict__)
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "model.pt")
    torch.jit.script(module.Root().eval()).save(path)
    calls = [("t_" + case, arguments) for case, _, sets in items
             for _ in range(ROUNDS) for arguments in sets]
    samples = run(torch.jit.load(path).eval(), calls)
    torch.save(samples, os.path.join(folder, "samples.pt"))
    case = OrderedDict(name="language_" + os.path.basename(os.path.normpath(folder)),
                       category="language", producer="torch " + torch.__version__.split("+")[0],
                       calls=len(samples), rtol=1e-5, atol=1e-6, note="test/make/language.py")
    with open(os.path.join(folder, "case.json"), "w") as f:
        json.dump(case, f, indent=1)
        f.write("\n")


def verify(folder):
    want = torch.load(os.path.join(folder, "samples.pt"), weights_only=False)
    got = run(torch.jit.load(os.path.join(folder, "model.pt")).eval(), [s[:2] for s in want])
    for a, b in zip(want, got):
        if repr(a) != repr(b):
            print("%s%r\n  %r\n  %r" % (a[0], a[1], a[2:], b[2:]))


if __name__ == "__main__":
    torch.set_grad_enabled(False)
    if sys.argv[1] == "--verify":
        verify(sys.argv[2])
    else:
        make(sys.argv[1], sys.argv[2])
