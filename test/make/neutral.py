"""Runs model source under a neutral file name, so that archives hold no path of the machine."""
import json
import linecache
import os
import pathlib
import sys
import types


def define(source, name="model.py", scope=None):
    """Runs source as the file `name`; torch.jit can still read its lines. Its names land in `scope`,
    where one is given, else in a module of that name; that is returned."""
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    if scope is not None:
        exec(compile(source, name, "exec"), scope)
        return scope
    module = types.ModuleType(os.path.splitext(name)[0])
    module.__file__ = name
    sys.modules[module.__name__] = module
    exec(compile(source, name, "exec"), module.__dict__)
    return module


def drawn_norm(made):
    """A batch norm with statistics and weights as if it had been trained."""
    made.running_mean.normal_(), made.running_var.uniform_(0.5, 2)
    made.weight.data.normal_(), made.bias.data.normal_()
    return made


def save_case(name, model, calls, note, rtol=1e-5, atol=1e-6, reference=None, kind="script"):
    """Writes test/data/own/name: the model, scripted if it is no trace (`kind`), and of each call its inputs and what PyTorch gives, or gives for
    the model `reference`."""
    import torch

    folder = pathlib.Path("test/data/own") / name
    folder.mkdir(parents=True, exist_ok=True)
    torch.jit.script(model).save(str(folder / "model.pt"))
    count = 0
    for inputs in calls:
        torch.save(inputs, folder / f"inputs_{count}.pt")
        with torch.no_grad():
            torch.save((reference or model)(*inputs), folder / f"expected_{count}.pt")
        count += 1
    case = {
        "name": name, "category": "own", "producer": f"torch {torch.__version__}",
        "method": "forward", "n_cases": count, "rtol": rtol, "atol": atol, "kind": kind,
        "stateful": False, "note": note,
    }
    (folder / "case.json").write_text(json.dumps(case, indent=1) + "\n")
