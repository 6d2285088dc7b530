"""Runs model source under a neutral file name, so that archives hold no path of the machine."""
import linecache
import os
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
