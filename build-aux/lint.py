#!/usr/bin/env python3
"""lint.py: clang-format, clang-tidy and cppcheck over the sources, as `./dev lint` runs them.

    lint.py --build DIR [--jobs N] [--fix] [--all | FILE...]

Without --all or files: what differs from the main branch, or on it, the last commit; for a header,
the sources that include it too. DIR is configured for clang, so that clang-tidy understands every
flag. A file is one check of each tool; what passed is remembered in DIR/lint by the hash of the tool,
its options and the preprocessed text. Ends with "N passed, N failed"."""
import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys

FORMAT = 'clang-format-19'
TIDY = 'clang-tidy-19'
# What is built for its layer; tests, benchmarks and examples are only formatted.
LAYERS = ('base/', 'runtime/', 'ir/', 'profiler/', 'guards/', 'codegen/', 'jit/', 'frontend/',
          'api/', 'tools/')
CPPCHECK = [
    'cppcheck', '--quiet', '--std=c11', '--enable=warning,portability', '--inline-suppr',
    '--error-exitcode=1', '-I.', '-Iinclude', '--library=posix',
    # System and LLVM headers are not read.
    '--suppress=missingIncludeSystem',
    # A string literal in a condition is how KILN_ASSERT carries its sentence.
    '--suppress=incorrectStringBooleanError',
    # Elements are reached through pointers to bytes; the build says -fno-strict-aliasing.
    '--suppress=invalidPointerCast',
    # It reads 0x1p63 as an integer.
    '--suppress=incorrectLogicOperator',
    # It takes vectors for numbers. The sanitizers look for overflow.
    '--suppress=integerOverflow',
    # clang-tidy, which follows calls, finds these without the false ones: memory that a callee
    # fills, the address of a local variable that is lent to a callee or for a while.
    '--suppress=uninitvar',
    '--suppress=returnDanglingLifetime',
    '--suppress=autoVariables',
]


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def git(*arguments):
    code, text = run('git', *arguments)
    return text.split('\n')[:-1] if code == 0 else None


def tree_files():
    listed = git('ls-files', '-co', '--exclude-standard', '*.c', '*.h')
    return [f for f in listed if os.path.isfile(f)] if listed is not None else None


def changed(files):
    """Files that differ from the main branch; on it, those of the last commit."""
    head = git('rev-parse', 'HEAD')
    base = None
    for name in ('origin/HEAD', 'origin/main', 'main'):
        found = git('merge-base', 'HEAD', name)
        if found and found != head:
            base = found[0]
            break
    if base is None:
        base = 'HEAD~1' if git('rev-parse', '-q', '--verify', 'HEAD~1') else 'HEAD'
    names = set(git('diff', '--name-only', base) or [])
    names |= set(git('ls-files', '-o', '--exclude-standard') or [])
    picked = {f for f in files if f in names}
    headers = {f for f in picked if f.endswith('.h')}
    for f in files:
        if f.endswith('.c') and headers:
            with open(f, encoding='utf-8') as source:
                if headers & set(re.findall(r'^#include "([^"]+)"', source.read(), re.M)):
                    picked.add(f)
    return sorted(picked)


def database(build):
    """compile_commands.json with one entry a file: of the ISA variants, the last."""
    with open(os.path.join(build, 'compile_commands.json'), encoding='utf-8') as f:
        entries = {os.path.normpath(os.path.join(e['directory'], e['file'])): e
                   for e in json.load(f)}
    folder = os.path.join(build, 'lint')
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, 'compile_commands.json'), 'w', encoding='utf-8') as f:
        json.dump(list(entries.values()), f)
    root = os.getcwd() + '/'
    return folder, {path[len(root):]: e for path, e in entries.items() if path.startswith(root)}


def defines(entry):
    return re.findall(r'(?<= )-D\S+', entry['command'].replace('"', ''))


class Remembered:
    """Which (tool, file as the compiler sees it) passed: an empty file for each, in DIR/lint/passed."""

    def __init__(self, folder, entries):
        self.folder, self.entries = os.path.join(folder, 'passed'), entries
        os.makedirs(self.folder, exist_ok=True)
        with open('.clang-tidy', 'rb') as f:
            self.config = f.read()
        self.versions = ''.join(run(tool, '--version')[1] for tool in (TIDY, 'cppcheck'))

    def place(self, command, path):
        """None: it does not compile."""
        entry = self.entries[path]
        words = shlex.split(re.sub(r' -(MD|c|g|(MQ|MF|o) \S+)(?= )', '', entry['command']))
        # With comments, for some excuse a place; without line numbers, for lines move.
        text = subprocess.run(words + ['-E', '-C', '-P'], cwd=entry['directory'], capture_output=True,
                              check=False)
        if text.returncode != 0:
            return None
        key = hashlib.sha256(repr((command, self.versions)).encode() + self.config + text.stdout)
        return os.path.join(self.folder, key.hexdigest())


def every(jobs, tool, files, command, remembered=None):
    """Runs command(file) for each file, prints what complained, gives (passed, failed)."""
    if not files:
        return 0, 0

    def check(path):
        place = remembered and remembered.place(command(path), path)
        if place and os.path.exists(place):
            return 0, ''
        code, text = run('nice', *command(path))
        if code == 0 and place:
            open(place, 'w', encoding='utf-8').close()
        return code, text

    bad = 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for code, text in pool.map(check, files):
            if code != 0:
                bad += 1
                lines = text.split('\n')
                print('\n'.join(l for l in lines if not re.match(
                    r'\d+ warnings? |Suppressed |\[\d+/\d+\]|Use -header-filter', l)).rstrip())
                sys.stdout.flush()
    print('%s: %d passed, %d failed' % (tool, len(files) - bad, bad))
    sys.stdout.flush()
    return len(files) - bad, bad


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--build', required=True)
    parser.add_argument('--jobs', type=int, default=1)
    parser.add_argument('--fix', action='store_true')
    parser.add_argument('--all', action='store_true')
    parser.add_argument('files', nargs='*')
    args = parser.parse_args()
    files = tree_files()
    if files is None:
        print('lint: this is not a git checkout', file=sys.stderr)
        return 1
    if args.files:
        unknown = [f for f in args.files if f not in files]
        if unknown:
            print('lint: no such C file: %s' % ' '.join(unknown), file=sys.stderr)
            return 1
        files = args.files
    elif not args.all:
        files = changed(files)
    folder, built = database(args.build)
    sources = [f for f in files if f.endswith('.c') and f.startswith(LAYERS) and f in built]
    if args.fix and files:
        run(FORMAT, '-i', *files)
    remembered = Remembered(folder, built)
    counts = [
        every(args.jobs, 'clang-format', files, lambda f: [FORMAT, '--dry-run', '-Werror', f]),
        every(args.jobs, 'clang-tidy', sources, lambda f: [TIDY, '--quiet', '-p', folder, f],
              remembered),
        every(args.jobs, 'cppcheck', sources, lambda f: CPPCHECK + defines(built[f]) + [f],
              remembered),
    ]
    passed, failed = map(sum, zip(*counts))
    if not files:
        print('lint: nothing was changed (--all looks at everything)')
    print('%d passed, %d failed' % (passed, failed))
    return failed > 0


if __name__ == '__main__':
    sys.exit(main())
