"""printed.py: source that Kiln prints: `kiln convert --reprint` and back, over recorded cases.

Each archive is written again with its source printed from the graphs. Loaded, it must have the
graphs of the original, but for names, the place of constants, and branches that a literal decides;
printed again, those too; and `kiln check` must pass it in the place of the
original. It must have the digest that PyTorch accepted (test/data/reprinted.txt, where the case is
listed).

    printed.py --kiln build/kiln [CASE or FOLDER]...
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys

from convert import accepted, convert, digest, layout_complaint, run_cases

VALUE = re.compile(r'%[\w.]+')
CONSTANT = re.compile(r'\s*(%[\w.]+) : (.*?) = prim::Constant(\[.*\])?\(\)$')
DATA = pathlib.Path(__file__).resolve().parent / 'data'


def text_of(graph):
    """A text of the graph without names: constants where they are used, values by number."""
    constants, lines = {}, []
    graph = graph.replace('"__upgrade__.', '"__torch__.__upgrade__.')
    for line in graph.splitlines():
        found = CONSTANT.match(line)
        if found:
            kind = '' if found[2].startswith(('Tensor', 'Float', 'Long')) else found[2]
            constants[found[1]] = f'<{kind}{found[3] or ""}>'
        elif line.strip():
            lines.append(line)
    numbers = {}

    def replace(match):
        name = match[0]
        return constants.get(name) or numbers.setdefault(name, f'%{len(numbers)}')

    parts = re.compile(r'("(?:[^"\\]|\\.)*")')
    out = []
    for line in lines:
        pieces = parts.split(line)
        pieces[::2] = [VALUE.sub(replace, piece) for piece in pieces[::2]]
        out.append(''.join(pieces))
    return '\n'.join(out)


def graphs_of(kiln, path):
    run = subprocess.run([kiln, 'inspect', path, '--functions', '--json'], capture_output=True,
                         text=True)
    if run.returncode:
        return {'error': run.stderr}
    rows = json.loads(run.stdout)['functions']
    return {row['function'].removeprefix('__torch__.'): text_of(row['graph']) for row in rows}


def difference(old, new):
    """The first graph that differs, or None."""
    for name, text in old.items():
        if name.endswith('.__kiln_sort__'):
            continue
        if name not in new:
            continue  # nobody calls it: a class that only the code of another names
        if new[name] == text or 'prim::If(<bool' in text:
            continue
        for a, b in zip(text.splitlines(), new[name].splitlines()):
            if a != b:
                return f'{name}:\n    was {a.strip()}\n    is  {b.strip()}'
        return f'{name}: one ends before the other'
    return None


def try_case(kiln, case, folder, wanted):
    out, again = folder / 'model.pt', folder / 'again.pt'
    complaint = convert(kiln, case / 'model.pt', out, '--reprint')
    complaint = complaint or layout_complaint(out, case / 'model.pt')
    if complaint:
        return complaint
    complaint = difference(graphs_of(kiln, case / 'model.pt'), graphs_of(kiln, out))
    if complaint:
        return complaint
    complaint = convert(kiln, out, again, '--reprint')
    complaint = complaint or difference(graphs_of(kiln, out), graphs_of(kiln, again))
    if complaint:
        return f'printed again: {complaint}'
    name = f'{case.parent.name}/{case.name}'
    if name in wanted and digest(out) != wanted[name]:
        return 'not the archive that PyTorch accepted: run test/make/convert.py --how reprint'
    again.unlink()
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--kiln', required=True)
    parser.add_argument('paths', nargs='*', type=pathlib.Path, default=[DATA])
    args = parser.parse_args()
    wanted = accepted(DATA / 'reprinted.txt')
    return run_cases(args.kiln, args.paths,
                     lambda case, folder: (try_case(args.kiln, case, folder, wanted),
                                           case.parent.name != 'language'))  # lines of the old source


if __name__ == '__main__':
    sys.exit(main())
