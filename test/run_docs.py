"""run_docs.py: pages that show a command show what it prints.

A fenced block whose first line is "$ kiln ..." is run from the root of the project; the rest of the
block must be its standard output. A line "..." in the block stands for any lines. KILN_BLESS=1
rewrites blocks that have no such line.

    run_docs.py --kiln build/kiln PAGE...
"""
import argparse
import difflib
import os
import re
import shlex
import subprocess
import sys

BLOCK = re.compile(r'^```\n\$ (kiln .*)\n((?:(?!```).*\n)*)```$', re.M)


def run(kiln, command):
    args = shlex.split(command)
    env = {k: v for k, v in os.environ.items() if not k.startswith('KILN_')}
    done = subprocess.run([kiln] + args[1:], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=env, timeout=60, check=False)
    if done.returncode:
        return None, f'exit status {done.returncode}: {done.stderr.decode()}'
    lines = [line.rstrip() for line in done.stdout.decode().split('\n')]
    return '\n'.join(lines).rstrip('\n') + '\n', None


def fits(want, got):
    parts = [re.escape(part) for part in re.split(r'(?m)^\.\.\.\n', want)]
    return re.fullmatch('(?s:.*)'.join(parts), got) is not None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--kiln', required=True)
    parser.add_argument('pages', nargs='+')
    options = parser.parse_args()
    passed = failed = 0
    for page in options.pages:
        with open(page, encoding='utf-8') as f:
            text = f.read()
        for block in list(BLOCK.finditer(text)):
            command, want = block.group(1), block.group(2)
            got, error = run(options.kiln, command)
            if error is None and fits(want, got):
                passed += 1
            elif error is None and os.environ.get('KILN_BLESS') and '\n...\n' not in '\n' + want:
                text = text.replace(block.group(0), f'```\n$ {command}\n{got}```')
                with open(page, 'w', encoding='utf-8') as f:
                    f.write(text)
                passed += 1
            else:
                failed += 1
                print(f'FAIL {page}: $ {command}')
                print(error or ''.join(difflib.unified_diff(
                    want.splitlines(True), got.splitlines(True), 'page', 'command')))
                print('  (KILN_BLESS=1 rewrites the page; read it before you commit it)')
    print(f'{passed} passed, {failed} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
