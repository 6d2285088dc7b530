"""frozen.py: `kiln convert --freeze --eval`: every recorded case is frozen, with all methods of its
root; what is left must pass `kiln check` in the place of the original, have no attribute
`training`, and freeze again. It must have the digest that PyTorch accepted (test/data/frozen.txt,
where the case is listed).

    frozen.py --kiln build/kiln [--expect FILE] [CASE or FOLDER]...

Cases that cannot be frozen must be listed in FILE, with what `kiln` says of them.
"""
import argparse
import json
import pathlib
import subprocess
import sys

from convert import accepted, convert, digest, layout_complaint, run_cases

DATA = pathlib.Path(__file__).resolve().parent / 'data'


def refusals(path):
    """case -> the words of its refusal."""
    lines = path.read_text().splitlines() if path.exists() else []
    return dict(line.split(': ', 1) for line in lines if line and not line.startswith('#'))


def freeze_options(kiln, path):
    run = subprocess.run([kiln, 'inspect', path, '--json'], capture_output=True, text=True)
    methods = json.loads(run.stdout)['methods'] if run.returncode == 0 else []
    names = [m['name'] for m in methods if m['name'] != 'forward']
    return ['--freeze', '--eval', *(word for name in names for word in ('--preserve', name))]


def try_case(kiln, case, folder, refused, wanted):
    """(complaint or None, whether there is a case to check)."""
    out, again = folder / 'model.pt', folder / 'again.pt'
    complaint = convert(kiln, case / 'model.pt', out, *freeze_options(kiln, case / 'model.pt'))
    if refused:
        if complaint and refused in complaint:
            return None, False
        return f'expected the refusal "{refused}", got {complaint}', False
    complaint = complaint or layout_complaint(out, case / 'model.pt')
    if not complaint:
        source = subprocess.run([kiln, 'inspect', out, '--source'], capture_output=True,
                                text=True).stdout
        if '  training : bool' in source:
            complaint = 'an attribute `training` is left'
    complaint = complaint or convert(kiln, out, again, *freeze_options(kiln, out))
    if complaint:
        return complaint, False
    again.unlink()
    name = f'{case.parent.name}/{case.name}'
    if name in wanted and digest(out) != wanted[name]:
        return 'not the archive that PyTorch accepted: run test/make/convert.py --how freeze', False
    return None, case.parent.name != 'language'  # those expect lines of the old source


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--kiln', required=True)
    parser.add_argument('--expect', type=pathlib.Path, default=DATA / 'not_frozen.txt')
    parser.add_argument('paths', nargs='*', type=pathlib.Path, default=[DATA])
    args = parser.parse_args()
    refused = refusals(args.expect)
    wanted = accepted(DATA / 'frozen.txt')
    return run_cases(args.kiln, args.paths, lambda case, folder: try_case(
        args.kiln, case, folder, refused.get(f'{case.parent.name}/{case.name}'), wanted))


if __name__ == '__main__':
    sys.exit(main())
