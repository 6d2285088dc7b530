"""Asks PyTorch whether it takes what `kiln convert` writes, and keeps the digests of what it took.

Each model is converted; then PyTorch loads the original and the converted archive and runs every
recorded input set on both: results, and errors, must be the same to the bit, and the state dicts
too. Run it with each PyTorch, from the root of the project:

    python3 test/make/convert.py --kiln build/kiln [--keep] CASE...

--keep writes test/data/convert.txt: a line `digest case versions` for each archive that was
accepted; test/convert.py compares with it, without PyTorch.
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

OPTIONS = {'copy': [], 'reprint': ['--reprint'], 'freeze': ['--freeze']}
LIST = pathlib.Path('test/data/convert.txt')


def same(a, b):
    if isinstance(a, torch.Tensor):
        if not isinstance(b, torch.Tensor) or a.dtype != b.dtype or a.shape != b.shape:
            return False
        if a.requires_grad != b.requires_grad or a.stride() != b.stride():
            return False
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


def compare(case, converted):
    """None when PyTorch sees no difference, else what it sees; 'skip: ...' where it cannot."""
    about = json.loads((case / 'case.json').read_text())
    try:
        old = torch.jit.load(str(case / 'model.pt'), map_location='cpu')
    except Exception as error:
        return f'skip: the original does not load: {str(error).strip().splitlines()[0][:80]}'
    new = torch.jit.load(converted, map_location='cpu')
    if not same(dict(old.state_dict()), dict(new.state_dict())):
        return 'the state dicts differ'
    ties = [[i for i, q in enumerate(ps) if q is p] for ps in
            (list(m.parameters()) for m in (old, new)) for p in ps]
    if ties[:len(ties) // 2] != ties[len(ties) // 2:]:
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
    if not hasattr(torch.load, 'kiln') and 'weights_only' in torch.load.__code__.co_varnames:
        load = torch.load
        torch.load = lambda path: load(path, weights_only=False)
    version = torch.__version__.split('a')[0].split('+')[0]
    kept = {}
    if LIST.exists():
        for line in LIST.read_text().splitlines():
            if line and not line.startswith('#'):
                words = line.split()
                kept[words[1]] = (words[0], words[2:])
    failed = skipped = passed = 0
    for case in args.cases:
        name = f'{case.parent.name}/{case.name}'
        with tempfile.TemporaryDirectory() as folder:
            out = str(pathlib.Path(folder) / 'converted.pt')
            run = subprocess.run([args.kiln, 'convert', *OPTIONS[args.how],
                                  str(case / 'model.pt'), out],
                                 capture_output=True, text=True)
            complaint = run.stderr.strip() if run.returncode else compare(case, out)
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
        lines = ['# Archives that `kiln convert` wrote and PyTorch loaded and ran with the results of',
                 '# the originals: digest of the members, case, versions. test/make/convert.py makes it.']
        lines += [f'{value} {name} {" ".join(versions)}' for name, (value, versions)
                  in sorted(kept.items())]
        LIST.write_text('\n'.join(lines) + '\n')
    print(f'{passed} passed, {failed} failed, {skipped} skipped, torch {torch.__version__}')
    return failed > 0


if __name__ == '__main__':
    sys.exit(main())
