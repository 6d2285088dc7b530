"""convert.py: `kiln convert` and back: every recorded case is converted, the archive must have the
digest that PyTorch accepted (test/data/convert.txt, where the case is listed), hold itself to
torch's layout, convert to itself again, and pass `kiln check` in the place of the original.

    convert.py --kiln build/kiln [--eighth] [CASE or FOLDER]...
"""
import argparse
import hashlib
import pathlib
import struct
import subprocess
import sys
import tempfile
import zipfile
import zlib

LIST = pathlib.Path(__file__).resolve().parent / 'data/convert.txt'


def digest(path):
    """Of the members' names and bytes, in order; not of how they are packed."""
    sums = hashlib.sha256()
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            data = archive.read(info)
            sums.update(f'{info.filename} {len(data)}\n'.encode())
            sums.update(data)
    return sums.hexdigest()[:32]


def layout_complaint(path, original):
    """What of torch's layout the archive lacks, or None. Code that means what it did before 2.1 keeps to
    go without a byte order, as the original does."""
    with zipfile.ZipFile(original) as archive:
        early = not any(n.endswith('/byteorder') for n in archive.namelist())
    with zipfile.ZipFile(path) as archive:
        names = {i.filename.split('/', 1)[1] for i in archive.infolist()}
        for need in ('data.pkl', 'constants.pkl', 'version', 'byteorder'):
            if need not in names and not (early and need == 'byteorder'):
                return f'it lacks {need}'
        raw = pathlib.Path(path).read_bytes()
        for info in archive.infolist():
            at = info.header_offset
            name_size, extra_size = struct.unpack_from('<HH', raw, at + 26)
            if (at + 30 + name_size + extra_size) % 64:
                return f'{info.filename} does not begin at a multiple of 64'
    return None


def accepted(path=LIST):
    """case -> digest of the archive that PyTorch accepted."""
    lines = path.read_text().splitlines() if path.exists() else []
    words = [line.split() for line in lines if line and not line.startswith('#')]
    return {w[1]: w[0] for w in words}


def cases_of(paths):
    for path in paths:
        found = [path] if (path / 'case.json').exists() else [
            p.parent for p in sorted(path.rglob('case.json'))]
        yield from (c for c in found if (c / 'model.pt').exists() and c.parent.name not in ('bad', 'hostile', 'lies'))


def convert(kiln, source, target, *options):
    run = subprocess.run([kiln, 'convert', *options, source, target], capture_output=True,
                         text=True)
    return run.stderr.strip() if run.returncode else None


def try_case(kiln, case, folder, wanted):
    """The complaint, or None; the converted case is left in `folder`."""
    out, again = folder / 'model.pt', folder / 'again.pt'
    complaint = convert(kiln, case / 'model.pt', out) or layout_complaint(out, case / 'model.pt')
    if complaint:
        return complaint
    name = f'{case.parent.name}/{case.name}'
    if name in wanted and digest(out) != wanted[name]:
        return 'not the archive that PyTorch accepted: run test/make/convert.py'
    complaint = convert(kiln, out, again)
    if complaint or out.read_bytes() != again.read_bytes():
        return complaint or 'converting it again gives another archive'
    again.unlink()
    return None


def run_cases(kiln, paths, try_case):
    """Tries each case, try_case(case, folder): (complaint or None, whether `kiln check` is to pass
    what it left in `folder`, where all but the model lies already). The exit status."""
    failed = count = 0
    with tempfile.TemporaryDirectory() as top:
        good = []
        for case in cases_of(paths):
            count += 1
            name = f'{case.parent.name}/{case.name}'
            folder = pathlib.Path(top) / str(count) / name
            folder.mkdir(parents=True)
            for path in case.iterdir():
                if path.name != 'model.pt':
                    (folder / path.name).symlink_to(path.resolve())
            complaint, check = try_case(case, folder)
            if complaint:
                print(f'FAIL {name}: {complaint}')
                failed += 1
            elif check:
                good.append(str(folder))
        if good:
            run = subprocess.run([kiln, 'check', '--repeat', '2', *good], capture_output=True,
                                 text=True)
            failed += run.returncode != 0
            print(''.join(f'{line}\n' for line in run.stdout.splitlines()
                          if not line.startswith('PASS')), end='')
    print(f'{count - failed} passed, {failed} failed')
    return failed > 0 or count == 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--kiln', required=True)
    parser.add_argument('paths', nargs='*', type=pathlib.Path,
                        default=[LIST.parent])
    parser.add_argument('--eighth', action='store_true', help='an eighth that is always the same')
    args = parser.parse_args()
    wanted = accepted()
    paths = [c for c in cases_of(args.paths) if not args.eighth or zlib.crc32(c.name.encode()) % 8 == 0]
    return run_cases(args.kiln, paths,
                     lambda case, folder: (try_case(args.kiln, case, folder, wanted), True))


if __name__ == '__main__':
    sys.exit(main())
