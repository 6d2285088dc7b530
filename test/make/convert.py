"""Asks PyTorch whether it takes what `kiln convert` writes, and keeps the digests of what it took.

Each model is converted; then PyTorch loads the original and the converted archive and runs every
recorded input set on both: results, and errors, must be the same to the bit (of frozen ones: to the
case's tolerance), and the state dicts too. Run it with each PyTorch, from the root of the project:

    python3 test/make/convert.py --kiln build/kiln [--how copy|reprint|freeze] [--keep] CASE...

A case may also be a graph as text: then the archive has only to load. --keep writes
test/data/convert.txt (reprinted.txt, frozen.txt): a line `digest case versions` for each archive
that was accepted; test/convert.py, printed.py and frozen.py compare with it, without PyTorch.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from convert import digest  # noqa: E402
from frozen import freeze_options  # noqa: E402

LISTS = {'copy': 'convert.txt', 'reprint': 'reprinted.txt', 'freeze': 'frozen.txt'}
tolerance = None


def same(a, b):
    if isinstance(a, torch.Tensor):
        if not isinstance(b, torch.Tensor) or a.dtype != b.dtype or a.shape != b.shape:
            return False
        if not tolerance and (a.requires_grad != b.requires_grad or a.stride() != b.stride()):
            return False
        if tolerance and (a.is_floating_point() or a.is_complex()):
            return torch.allclose(a, b, *tolerance, equal_nan=True)
        return bool(((a == b) | ((a != a) & (b != b))).all())
    if isinstance(a, (list, tuple)):
        return type(a).__name__ == type(b).__name__ and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, float) and a != a:
        return isinstance(b, float) and b != b
    return type(a).__name__ == type(b).__name__ and (a == b or str(a) == str(b))


def call(module, method, path):
    """The result on fresh inputs and a fixed random state, or the error's last line."""
    arguments = torch.load(path)
    if not isinstance(arguments, tuple):
        arguments = (arguments,)
    torch.manual_seed(0)
    try:
        with torch.no_grad():
            return (getattr(module, method)(*arguments), arguments)
    except Exception as error:  # the model's own
        return f'{type(error).__name__}: {str(error).strip().splitlines()[-1]}'


def compare(case, converted, how):
    """None when PyTorch sees no difference, else what it sees; 'skip: ...' where it cannot."""
    global tolerance
    about = json.loads((case / 'case.json').read_text())
    try:
        old = torch.jit.load(str(case / 'model.pt'), map_location='cpu')
    except Exception as error:
        return f'skip: the original does not load: {str(error).strip().splitlines()[0][:80]}'
    new = torch.jit.load(converted, map_location='cpu')
    if how == 'freeze':
        tolerance = (about.get('rtol', 1e-5), about.get('atol', 1e-6))
        old.eval()
    elif not same(dict(old.state_dict()), dict(new.state_dict())):
        return 'the state dicts differ'
    ties = [[i for i, q in enumerate(ps) if q is p] for ps in
            (list(m.parameters()) for m in (old, new)) for p in ps]
    if how != 'freeze' and ties[:len(ties) // 2] != ties[len(ties) // 2:]:
        return 'parameters are tied in one only'
    for path in sorted(case.glob('inputs_*.pt')):
        results = [call(m, about.get('method', 'forward'), path) for m in (old, new)]
        if not same(*results):
            return f'{path.name}: the results differ'
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--kiln', default='build/kiln')
    parser.add_argument('--keep', action='store_true')
    parser.add_argument('--how', choices=['copy', 'reprint', 'freeze'], default='copy')
    parser.add_argument('cases', nargs='+', type=pathlib.Path)
    args = parser.parse_args()
    accepted_list = pathlib.Path('test/data') / LISTS[args.how]
    if not hasattr(torch.load, 'kiln') and 'weights_only' in torch.load.__code__.co_varnames:
        load = torch.load
        torch.load = lambda path: load(path, weights_only=False)
    version = torch.__version__.split('a')[0].split('+')[0]
    kept = {}
    if accepted_list.exists():
        for line in accepted_list.read_text().splitlines():
            if line and not line.startswith('#'):
                words = line.split()
                kept[words[1]] = (words[0], words[2:])
    failed = skipped = passed = 0
    for case in args.cases:
        name = f'{case.parent.name}/{case.name}'
        with tempfile.TemporaryDirectory() as folder:
            out = str(pathlib.Path(folder) / 'converted.pt')
            source = case if case.is_file() else case / 'model.pt'
            options = (freeze_options(args.kiln, source) if args.how == 'freeze' else
                       ['--reprint'] if args.how == 'reprint' else [])
            run = subprocess.run([args.kiln, 'convert', *options, str(source), out],
                                 capture_output=True, text=True)
            if run.returncode:
                complaint = run.stderr.strip()
            elif case.is_file():
                torch.jit.load(out)
                complaint = None
            else:
                complaint = compare(case, out, args.how)
            if complaint and complaint.startswith('skip:'):
                print(f'SKIP {name}: {complaint[6:]}')
                skipped += 1
                continue
            if complaint:
                print(f'FAIL {name}: {complaint}')
                failed += 1
                continue
            passed += 1
            value = digest(out)
            old_value, versions = kept.get(name, (value, []))
            if old_value != value:
                versions = []
            kept[name] = (value, sorted(set(versions) | {version}))
    if args.keep:
        lines = [f'# Archives that `kiln convert` wrote ({args.how}) and PyTorch ran with the results of',
                 '# the originals: digest of the members, case, versions. test/make/convert.py makes it.']
        lines += [f'{value} {name} {" ".join(versions)}' for name, (value, versions)
                  in sorted(kept.items())]
        accepted_list.write_text('\n'.join(lines) + '\n')
    print(f'{passed} passed, {failed} failed, {skipped} skipped, torch {torch.__version__}')
    return failed > 0


if __name__ == '__main__':
    sys.exit(main())
