"""Runs model source under a neutral file name, so that archives hold no path of the machine."""
import linecache


def define(source, filename, scope):
    """Executes `source` in `scope` as the file `filename`; torch.jit can still read its lines."""
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    exec(compile(source, filename, "exec"), scope)
